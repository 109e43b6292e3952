#include "unit/store/scratch.h"

#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/rng.h"

/* In memory where possible: what is killed here is processes, and a real disk only makes it
 * slow. */
void scratch_make(struct scratch *scratch)
{
	snprintf(scratch->folder, sizeof scratch->folder, "%s/sw-store-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	assert_non_null(mkdtemp(scratch->folder));
	snprintf(scratch->path, sizeof scratch->path, "%s/journal", scratch->folder);
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *where)
{
	(void)info, (void)type, (void)where;
	return remove(path);
}

void scratch_remove(const struct scratch *scratch)
{
	assert_int_equal(chmod(scratch->folder, 0700), 0);
	assert_int_equal(nftw(scratch->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

int scratch_setup(void **state)
{
	struct scratch *scratch = calloc(1, sizeof *scratch);
	assert_non_null(scratch);
	scratch_make(scratch);
	*state = scratch;
	return 0;
}

int scratch_teardown(void **state)
{
	scratch_remove(*state);
	free(*state);
	return 0;
}

static void copy_file(const char *from, const char *to)
{
	unlink(to);
	int in = open(from, O_RDONLY | O_CLOEXEC);
	if (in < 0)
		return;
	int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(out >= 0);
	char buffer[65536];
	ssize_t size;
	while ((size = read(in, buffer, sizeof buffer)) > 0)
		assert_int_equal(write(out, buffer, (size_t)size), size);
	close(in);
	close(out);
}

void scratch_copy(const struct scratch *from, const struct scratch *to)
{
	static const char *const suffixes[] = {"", "-wal", ".mark"};
	for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
		char one[128], other[128];
		snprintf(one, sizeof one, "%s%s", from->path, suffixes[i]);
		snprintf(other, sizeof other, "%s%s", to->path, suffixes[i]);
		copy_file(one, other);
	}
}

void scratch_bring(const struct scratch *scratch, const char *path)
{
	assert_int_equal(access(path, R_OK), 0);
	copy_file(path, scratch->path);
}

unsigned char *record_new(uint64_t seq, size_t *ret_size)
{
	struct sw_rng rng;
	sw_rng_seed(&rng, seq);
	size_t size = sw_rng_below(&rng, 40) == 0 ? 60000 : sw_rng_below(&rng, 3000);
	if (seq % 17 == 0)
		size = 0;
	unsigned char *bytes = malloc(size + 1);
	assert_non_null(bytes);
	for (size_t i = 0; i < size; i++)
		bytes[i] = (unsigned char)(seq * 31 + i * 7);
	*ret_size = size;
	return bytes;
}

int64_t record_at(uint64_t seq)
{
	return (int64_t)(seq * 1000) - 5000; /* some are negative */
}

uint32_t record_kind(uint64_t seq)
{
	return seq % 5 == 0 ? UINT32_MAX : (uint32_t)seq;
}

struct sw_journal *must_open(const char *path)
{
	struct sw_err err = {0};
	struct sw_journal *journal = NULL;
	if (sw_journal_open(path, &journal, &err) < 0)
		fail_msg("%s: %s", err.fact, err.detail);
	return journal;
}

int append(struct sw_journal *journal, uint64_t count)
{
	uint64_t next = sw_journal_last_seq(journal) + journal->pending + 1;
	for (uint64_t i = 0; i < count; i++) {
		size_t size;
		SW_CLEANUP(sw_freep) unsigned char *bytes = record_new(next + i, &size);
		uint64_t seq = 0;
		int r = sw_journal_append(journal, record_at(next + i), record_kind(next + i), bytes, size, &seq);
		if (r < 0)
			return r;
		assert_int_equal(seq, next + i);
	}
	return 0;
}

void must_commit(struct sw_journal *journal)
{
	struct sw_err err = {0};
	if (sw_journal_commit(journal, &err) < 0)
		fail_msg("%s: %s", err.fact, err.detail);
}

int write_snapshot(struct sw_journal *journal, uint64_t seq, size_t repeat, struct sw_err *err)
{
	size_t size;
	SW_CLEANUP(sw_freep) unsigned char *one = record_new(seq, &size);
	unsigned char *bytes = malloc(size * repeat + 1);
	assert_non_null(bytes);
	for (size_t i = 0; i < repeat; i++)
		memcpy(bytes + i * size, one, size);
	bool more = true;
	int r = sw_journal_snapshot_begin(journal, seq, bytes, size * repeat, err);
	while (r == 0 && more)
		r = sw_journal_snapshot_step(journal, &more, err);
	return r;
}

static int check_record(void *user, uint64_t seq, int64_t at_ns, uint32_t kind, const void *bytes, size_t size)
{
	uint64_t *next = user;
	assert_int_equal(seq, *next);
	size_t expected;
	SW_CLEANUP(sw_freep) unsigned char *record = record_new(seq, &expected);
	assert_int_equal(size, expected);
	if (size > 0)
		assert_memory_equal(bytes, record, size);
	assert_true(at_ns == record_at(seq));
	assert_true(kind == record_kind(seq));
	(*next)++;
	return 0;
}

static void check_snapshot(struct sw_journal *journal)
{
	struct sw_err err = {0};
	SW_CLEANUP(sw_freep) void *bytes = NULL;
	uint64_t seq = 0;
	size_t size = 0, one;
	if (sw_journal_snapshot_read(journal, &seq, &bytes, &size, &err) < 0)
		fail_msg("%s: %s", err.fact, err.detail);
	if (seq == 0) {
		assert_null(bytes);
		assert_int_equal(sw_journal_first_seq(journal), 1);
		return;
	}
	assert_true(seq <= sw_journal_last_seq(journal));
	assert_true(sw_journal_first_seq(journal) <= seq + 1);
	SW_CLEANUP(sw_freep) unsigned char *record = record_new(seq, &one);
	assert_true(one == 0 ? size == 0 : size % one == 0);
	for (size_t at = 0; at < size; at += one)
		assert_memory_equal((unsigned char *)bytes + at, record, one);
}

void must_be_whole(struct sw_journal *journal)
{
	struct sw_err err = {0};
	uint64_t next = sw_journal_first_seq(journal);
	if (sw_journal_replay(journal, 1, check_record, &next, &err) != 0)
		fail_msg("%s: %s", err.fact, err.detail);
	assert_int_equal(next, sw_journal_last_seq(journal) + 1);
	check_snapshot(journal);
}

void assert_contains(const char *text, const char *part)
{
	if (strstr(text, part) == NULL)
		fail_msg("'%s' does not contain '%s'", text, part);
}
