/* The folders of runs, the logs that outlive them, and the memory of those that are gone. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/epochs.h"
#include "agent/folder.h"
#include "agent/kept_logs.h"
#include "unit/agent/harness.h"

/* Names and runs translate into each other, and nothing else is taken for a run. */
static void test_names(void **state)
{
	(void)state;
	char name[SW_FOLDER_NAME_MAX];
	struct sw_run_id id = {0};
	assert_string_equal(sw_folder_name((struct sw_run_id){SW_SYNC_JOB_MAX, UINT32_MAX}, name), "9007199254740991.4294967295");
	assert_true(sw_folder_parse(name, &id) && id.job == SW_SYNC_JOB_MAX && id.epoch == UINT32_MAX);
	static const char *const bad[] = {"",	  ".",	   "..",   "1",	   "1.",    ".1",   "a.1",	    "01.1",
					  "1.01", "1.2.3", "+1.1", " 1.1", "1.0.0", "-1.1", "1.4294967296", ".new-1.1"};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		if (sw_folder_parse(bad[i], &id))
			fail_msg("'%s' counts as a run", bad[i]);
}

/* A folder is made once, whole, and deleted whole, whatever lies in it. */
static void test_create_and_delete(void **state)
{
	struct harness *harness = *state;
	struct run run;
	harness_create(harness, harness_spec(harness, "true"), 1000, &run);
	struct sw_run_order order = {.node = "n", .want = {.id = run.id, .spec = harness_spec(harness, "false")}};
	struct sw_err err = {0};
	assert_int_equal(sw_folder_create(harness->runs, &order, &err), SW_EINPUT);
	int folder = -1;
	assert_int_equal(sw_folder_open(harness->runs, "1.3", &folder, NULL), 0);
	struct sw_run_order *back = NULL;
	assert_int_equal(sw_folder_order(folder, &back, NULL), 0);
	assert_string_equal(back->want.spec->argv.items[2], "true");
	sw_run_order_free(back);
	for (int i = 0; i < 20; i++) {
		char name[32];
		snprintf(name, sizeof name, "file-%d", i);
		assert_int_equal(sw_folder_write(folder, name, "x", 1, i % 2, NULL), 0);
	}
	struct sw_run_account *account = NULL;
	assert_int_equal(sw_folder_account(folder, "exit.json", &account, NULL), SW_ENOTFOUND);
	assert_int_equal(sw_folder_write(folder, "exit.json", "{", 1, true, NULL), 0);
	assert_int_equal(sw_folder_account(folder, "exit.json", &account, NULL), SW_EINPUT);
	close(folder);
	assert_int_equal(sw_folder_delete(harness->runs, "1.3", &err), 0);
	assert_int_equal(sw_folder_open(harness->runs, "1.3", &folder, NULL), SW_ENOTFOUND);
	assert_int_equal(sw_folder_delete(harness->runs, "1.3", &err), 0);
}

/* A lock is held as long as its process lives, and asking about it does not take it. */
static void test_lock(void **state)
{
	struct harness *harness = *state;
	struct run run;
	harness_create(harness, harness_spec(harness, "true"), 1000, &run);
	int folder = -1, lock = -1, up[2];
	assert_int_equal(sw_folder_open(harness->runs, "1.3", &folder, NULL), 0);
	assert_false(sw_folder_is_locked(folder, "lock"));
	assert_int_equal(pipe(up), 0);
	pid_t pid = fork();
	if (pid == 0) {
		int r = sw_folder_lock(folder, "lock", &lock, NULL);
		(void)!write(up[1], r == 0 ? "y" : "n", 1);
		pause();
		_exit(0);
	}
	char word;
	assert_int_equal(read(up[0], &word, 1), 1);
	assert_int_equal(word, 'y');
	assert_true(sw_folder_is_locked(folder, "lock"));
	assert_int_equal(sw_folder_lock(folder, "lock", &lock, NULL), SW_EINPUT);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_false(sw_folder_is_locked(folder, "lock"));
	assert_int_equal(sw_folder_lock(folder, "lock", &lock, NULL), 0);
	/* Another file of the same process sees it, too. */
	assert_true(sw_folder_is_locked(folder, "lock"));
	close(lock);
	assert_false(sw_folder_is_locked(folder, "lock"));
	close(folder);
	close(up[0]);
	close(up[1]);
}

/* Logs are kept up to a limit, the oldest go first, also after a restart. */
static void test_kept_logs(void **state)
{
	struct harness *harness = *state;
	int state_folder = open(harness->state, O_RDONLY | O_DIRECTORY);
	struct sw_kept_logs logs;
	assert_int_equal(sw_kept_logs_open(&logs, state_folder, 50000), 0);
	static char text[10000];
	memset(text, 'x', sizeof text);
	for (uint32_t i = 1; i <= 10; i++) {
		struct run run;
		harness_create(harness, harness_spec(harness, "true"), 1000, &run);
		int folder = open(run.path, O_RDONLY | O_DIRECTORY);
		assert_int_equal(sw_folder_write(folder, "out.log", text, sizeof text, false, NULL), 0);
		sw_kept_logs_keep(&logs, folder, run.id);
		assert_false(sw_folder_has(folder, "out.log"));
		/* One that wrote elsewhere has none. */
		sw_kept_logs_keep(&logs, folder, run.id);
		close(folder);
		harness_sleep_ms(15);
	}
	assert_true(logs.bytes <= 50000 && logs.list.count >= 3 && logs.list.count <= 5);
	size_t kept = logs.list.count;
	assert_int_equal(logs.list.items[kept - 1].id.job, 10);
	sw_kept_logs_close(&logs);
	assert_int_equal(sw_kept_logs_open(&logs, state_folder, 50000), 0);
	assert_int_equal(logs.list.count, kept);
	assert_int_equal(logs.list.items[kept - 1].id.job, 10);
	sw_kept_logs_close(&logs);
	assert_int_equal(sw_kept_logs_open(&logs, state_folder, 13000), 0);
	assert_int_equal(logs.list.count, 1);
	sw_kept_logs_close(&logs);
	assert_int_equal(strlen(harness_read(harness, "logs/10.3.log")), sizeof text);
	assert_string_equal(harness_read(harness, "logs/9.3.log"), "");
	close(state_folder);
}

struct seen {
	size_t count;
	struct sw_run_id last;
};

static int note(void *context, struct sw_run_id id)
{
	struct seen *seen = context;
	seen->count++;
	seen->last = id;
	return 0;
}

/* Runs that are gone are remembered across restarts, in bounded space; a line that a
 * crash cut off does no harm. */
static void test_epochs(void **state)
{
	struct harness *harness = *state;
	int folder = open(harness->state, O_RDONLY | O_DIRECTORY);
	struct sw_epochs epochs;
	struct seen seen = {0};
	assert_int_equal(sw_epochs_open(&epochs, folder, note, &seen), 0);
	assert_int_equal(seen.count, 0);
	enum { MANY = 300000 };
	for (uint32_t i = 1; i <= MANY; i++)
		assert_int_equal(sw_epochs_add(&epochs, (struct sw_run_id){i, 7}), 0);
	sw_epochs_close(&epochs);
	struct stat info;
	assert_int_equal(fstatat(folder, "epochs", &info, 0), 0);
	assert_true(info.st_size <= (off_t)SW_EPOCHS_BYTES_MAX);
	assert_int_equal(fstatat(folder, "epochs.old", &info, 0), 0);
	assert_true(info.st_size <= (off_t)SW_EPOCHS_BYTES_MAX);
	assert_int_equal(sw_epochs_open(&epochs, folder, note, &seen), 0);
	assert_true(seen.count >= 100000 && seen.count < MANY);
	assert_true(seen.last.job == MANY && seen.last.epoch == 7);
	sw_epochs_close(&epochs);
	int fd = openat(folder, "epochs", O_WRONLY | O_APPEND);
	assert_int_equal(write(fd, "12", 2), 2);
	close(fd);
	seen.count = 0;
	assert_int_equal(sw_epochs_open(&epochs, folder, note, &seen), 0);
	assert_true(seen.last.job == MANY);
	assert_int_equal(sw_epochs_add(&epochs, (struct sw_run_id){34, 5}), 0);
	sw_epochs_close(&epochs);
	assert_int_equal(sw_epochs_open(&epochs, folder, note, &seen), 0);
	assert_true(seen.last.job == 34 && seen.last.epoch == 5);
	sw_epochs_close(&epochs);
	close(folder);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, harness_set_up, harness_tear_down)

int main(int argc, char **argv)
{
	harness_main(argc, argv);
	const struct CMUnitTest tests[] = {
		TEST(test_names), TEST(test_create_and_delete), TEST(test_lock), TEST(test_kept_logs), TEST(test_epochs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
