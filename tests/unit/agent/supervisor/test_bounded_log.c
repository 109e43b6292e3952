/* Logs with a bound: never larger than it, and what is left out is counted and said. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/supervisor/bounded_log.h"
#include "base/rng.h"

static int open_file(void)
{
	char name[] = "/tmp/sharewell-log-XXXXXX";
	int fd = mkstemp(name);
	assert_true(fd >= 0);
	unlink(name);
	return fd;
}

static char *read_back(int fd, size_t *ret_size)
{
	struct stat info;
	assert_int_equal(fstat(fd, &info), 0);
	char *text = malloc((size_t)info.st_size + 1);
	assert_int_equal(pread(fd, text, (size_t)info.st_size, 0), info.st_size);
	text[info.st_size] = '\0';
	*ret_size = (size_t)info.st_size;
	return text;
}

/* What fits is kept byte for byte. */
static void test_small(void **state)
{
	(void)state;
	int fd = open_file();
	struct sw_bounded_log log;
	assert_int_equal(sw_bounded_log_init(&log, fd, 5000), 0);
	for (int i = 0; i < 499; i++)
		sw_bounded_log_write(&log, "123456789\n", 10);
	size_t size;
	char *text = read_back(fd, &size);
	assert_int_equal(size, 4990);
	for (size_t i = 0; i < size; i++)
		assert_int_equal(text[i], "123456789\n"[i % 10]);
	assert_true(log.dropped == 0 && log.lost == 0);
	free(text);
	close(fd);
}

/* Random pieces against the whole: the file is never too large, begins and ends like the whole, and
 * what it leaves out is what it says. */
static void test_random_pieces(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct sw_rng rng;
		sw_rng_seed(&rng, seed);
		int fd = open_file();
		const char before[] = "what was there\n";
		size_t old = seed % 2 ? sizeof before - 1 : 0;
		assert_int_equal(write(fd, before, old), (ssize_t)old);
		uint64_t limit = 4096 + sw_rng_below(&rng, 20000);
		struct sw_bounded_log log;
		assert_int_equal(sw_bounded_log_init(&log, fd, limit), 0);
		size_t total = 0, want = 200000;
		char *whole = malloc(want + 10000);
		while (total < want) {
			size_t piece = 1 + sw_rng_below(&rng, sw_rng_below(&rng, 10) == 0 ? 9000 : 100);
			for (size_t i = 0; i < piece; i++)
				whole[total + i] = sw_rng_below(&rng, 30) == 0 ? '\n' : (char)('a' + sw_rng_below(&rng, 26));
			sw_bounded_log_write(&log, whole + total, piece);
			total += piece;
			struct stat info;
			fstat(fd, &info);
			assert_true((uint64_t)info.st_size <= old + limit);
		}
		size_t size;
		char *text = read_back(fd, &size);
		assert_memory_equal(text, before, old);
		char *marker = strstr(text + old, "\n[sharewell: ");
		assert_non_null(marker);
		size_t head = (size_t)(marker - text) - old;
		assert_memory_equal(text + old, whole, head);
		assert_true(head >= limit / 2 - 1);
		unsigned long long dropped = strtoull(marker + strlen("\n[sharewell: "), NULL, 10);
		assert_true(dropped == log.dropped);
		char *tail = strchr(marker + 1, '\n') + 1;
		size_t tail_size = size - (size_t)(tail - text);
		assert_true(tail_size >= limit / 8);
		/* Everything is accounted for: head, what was left out, tail. */
		assert_int_equal(head + dropped + tail_size, total);
		assert_memory_equal(tail, whole + total - tail_size, tail_size);
		/* The tail begins with a whole line. */
		assert_int_equal(whole[total - tail_size - 1], '\n');
		free(text);
		free(whole);
		close(fd);
	}
}

/* A disk that is full loses output, not the job: it is counted, and writing goes
 * on when there is room. */
static void test_full_disk(void **state)
{
	(void)state;
	int fd = open("/dev/full", O_RDWR);
	struct sw_bounded_log log;
	assert_int_equal(sw_bounded_log_init(&log, fd, 4096), 0);
	sw_bounded_log_write(&log, "12345", 5);
	sw_bounded_log_write(&log, "678", 3);
	assert_true(log.lost == 8);
	close(fd);
}

/* Only files and devices take output. */
static void test_not_a_file(void **state)
{
	(void)state;
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	struct sw_bounded_log log;
	assert_int_not_equal(sw_bounded_log_init(&log, ends[1], 4096), 0);
	close(ends[0]);
	close(ends[1]);
	assert_int_not_equal(sw_bounded_log_init(&log, -1, 4096), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_small),
		cmocka_unit_test(test_random_pieces),
		cmocka_unit_test(test_full_disk),
		cmocka_unit_test(test_not_a_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
