/* One owner: a journal that is held is refused to others, and free again when its holder is
 * gone, however it went. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "store/lock.h"
#include "unit/store/scratch.h"

static void refused(const char *path, const char *detail)
{
	struct sw_err err = {0};
	struct sw_journal *journal = NULL;
	assert_int_equal(sw_journal_open(path, &journal, &err), SW_EIO);
	assert_null(journal);
	assert_contains(err.fact, path);
	assert_contains(err.detail, detail);
}

/* A child that has the journal open when this returns. With `with_child` it forks one
 * more that does not exec. */
static pid_t start_holder(const char *path, bool with_child, pid_t *ret_grandchild)
{
	int ready[2];
	assert_int_equal(pipe(ready), 0);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct sw_journal *journal = NULL;
		uint64_t seq;
		if (sw_journal_open(path, &journal, NULL) < 0 || sw_journal_append(journal, 1, 1, "x", 1, &seq) < 0 ||
		    sw_journal_commit(journal, NULL) < 0)
			_exit(1);
		pid_t grandchild = with_child ? fork() : 0;
		if (!with_child || grandchild > 0)
			(void)!write(ready[1], &grandchild, sizeof grandchild);
		for (;;)
			pause();
	}
	pid_t grandchild;
	close(ready[1]);
	assert_int_equal(read(ready[0], &grandchild, sizeof grandchild), (ssize_t)sizeof grandchild);
	close(ready[0]);
	if (ret_grandchild != NULL)
		*ret_grandchild = grandchild;
	return child;
}

static void end(pid_t child)
{
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

/* A second opener in another process is told the first one's number, and gets the journal
 * when that one is killed. */
static void test_other_process(void **state)
{
	const struct scratch *scratch = *state;
	pid_t child = start_holder(scratch->path, false, NULL);
	char words[64];
	snprintf(words, sizeof words, "process %ld holds it", (long)child);
	refused(scratch->path, words);
	refused(scratch->path, words);
	end(child);
	struct sw_journal *journal = must_open(scratch->path);
	assert_int_equal(sw_journal_last_seq(journal), 1);
	sw_journal_close(journal);
}

/* A second opener in the same process is refused too; a refusal takes nothing from the holder. */
static void test_same_process(void **state)
{
	const struct scratch *scratch = *state;
	struct sw_journal *journal = must_open(scratch->path);
	char words[64];
	snprintf(words, sizeof words, "process %ld holds it", (long)getpid());
	refused(scratch->path, words);
	assert_int_equal(append(journal, 3), 0);
	must_commit(journal);
	refused(scratch->path, words);
	sw_journal_close(journal);
	journal = must_open(scratch->path);
	must_be_whole(journal);
	sw_journal_close(journal);
}

/* While a child of a dead holder lives, the journal is held, and the words tell why. */
static void test_orphaned(void **state)
{
	const struct scratch *scratch = *state;
	pid_t grandchild;
	pid_t child = start_holder(scratch->path, true, &grandchild);
	end(child);
	char words[64];
	snprintf(words, sizeof words, "process %ld held it and has ended", (long)child);
	refused(scratch->path, words);
	/* It ends while the next one waits for it. */
	pid_t killer = fork();
	if (killer == 0) {
		nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
		kill(grandchild, SIGKILL);
		_exit(0);
	}
	struct sw_journal *journal = must_open(scratch->path);
	assert_int_equal(sw_journal_last_seq(journal), 1);
	sw_journal_close(journal);
	waitpid(killer, NULL, 0);
}

/* What stands in the lock file is for people: nonsense in it changes nothing but the words. */
static void test_lock_text(void **state)
{
	const struct scratch *scratch = *state;
	static const char *const texts[] = {"", "\n", "hello\n", "-5\n", "0\n", "99999999999999999999\n", "12 34 56 78 90 12 34 56 78\n"};
	char path[128];
	snprintf(path, sizeof path, "%s/lock", scratch->folder);
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		int fd = -1, other = -1;
		struct sw_err err = {0};
		FILE *file = fopen(path, "w");
		assert_non_null(file);
		fputs(texts[i], file);
		fclose(file);
		assert_int_equal(sw_lock_take(path, &fd, &err), 0);
		file = fopen(path, "w");
		assert_non_null(file);
		fputs(texts[i], file);
		fclose(file);
		assert_int_equal(sw_lock_take(path, &other, &err), SW_EIO);
		assert_int_equal(other, -1);
		assert_string_equal(err.detail, "another process holds it");
		close(fd);
	}
}

/* Another program that has the file open is no reason to wait or to write. */
static void test_other_program(void **state)
{
	const struct scratch *scratch = *state;
	sw_journal_close(must_open(scratch->path));
	pid_t child = fork();
	if (child == 0) {
		sqlite3 *db;
		sqlite3_open(scratch->path, &db);
		_exit(sqlite3_exec(db, "BEGIN; SELECT count(*) FROM records", NULL, NULL, NULL) == SQLITE_OK && raise(SIGSTOP) == 0 ? 0
																    : 1);
	}
	int status;
	assert_int_equal(waitpid(child, &status, WUNTRACED), child);
	assert_true(WIFSTOPPED(status));
	refused(scratch->path, "another program has the file open");
	end(child);
	sw_journal_close(must_open(scratch->path));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_other_process), TEST(test_same_process), TEST(test_orphaned), TEST(test_lock_text), TEST(test_other_program),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
