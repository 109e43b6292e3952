/* Which process is outside the runtime, by what the driver lists and what the page says. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "share/outside.h"

#define GIB (UINT64_C(1) << 30)

static char path[64];

static struct sw_share_page *make(void)
{
	const char *const uuids[] = {"GPU-00000000-0000-0000-0000-000000000001", "GPU-00000000-0000-0000-0000-000000000002"};
	struct sw_share_page *page = NULL;
	snprintf(path, sizeof path, "/tmp/sharewell-test-outside-%d", (int)getpid());
	unlink(path);
	assert_int_equal(sw_share_page_new(path, uuids, 2, &page, NULL), 0);
	return page;
}

static struct sw_outside look(struct sw_share_page *page, uint64_t bytes)
{
	struct sw_outside outside = {0};
	sw_outside_add(page, 1, getpid(), bytes, &outside);
	return outside;
}

/* A process that the page does not know is outside, whatever it holds; one that it knows only where
 * it holds far more than is charged. */
static void test_who_is_outside(void **state)
{
	(void)state;
	SW_CLEANUP(sw_share_page_closep) struct sw_share_page *page = make();
	struct sw_page_slot *slot = &sw_share_page_shared(page)->slots[7];
	assert_int_equal(look(page, 0).processes, 1);
	assert_int_equal(look(page, 5).bytes, 5);
	assert_int_equal(look(page, 5).pid, getpid());
	atomic_store(&slot->pid, getpid());
	assert_int_equal(look(page, 0).processes, 0);
	assert_int_equal(look(page, GIB).processes, 0);
	assert_int_equal(look(page, GIB + (1 << 20)).processes, 1);
	/* What is charged on another GPU does not count. */
	atomic_store(&slot->gpus[0].charged_bytes, 100 * GIB);
	assert_int_equal(look(page, 2 * GIB).processes, 1);
	atomic_store(&slot->gpus[1].charged_bytes, 4 * GIB);
	assert_int_equal(look(page, 6 * GIB).processes, 0);
	assert_int_equal(look(page, 6 * GIB + (1 << 20)).processes, 1);
	unlink(path);
}

/* A process that is gone is none, and a GPU that the page does not have is none. */
static void test_who_is_not(void **state)
{
	(void)state;
	SW_CLEANUP(sw_share_page_closep) struct sw_share_page *page = make();
	struct sw_outside outside = {0};
	pid_t pid = fork();
	if (pid == 0)
		_exit(0);
	waitpid(pid, NULL, 0);
	sw_outside_add(page, 1, pid, GIB, &outside);
	sw_outside_add(page, SW_PAGE_GPUS, getpid(), GIB, &outside);
	assert_int_equal(outside.processes, 0);
	unlink(path);
}

/* What is noted is among the figures. */
static void test_notes(void **state)
{
	(void)state;
	SW_CLEANUP(sw_share_page_closep) struct sw_share_page *page = make();
	struct sw_share_figures figures;
	sw_outside_note(page, 1, &(struct sw_outside){.processes = 2, .bytes = GIB, .pid = 77});
	sw_share_page_look(page, &figures);
	assert_int_equal(figures.gpus[1].outside_processes, 2);
	assert_int_equal(figures.gpus[1].outside_bytes, GIB);
	assert_int_equal(figures.gpus[1].outside_pid, 77);
	assert_int_equal(figures.gpus[0].outside_processes, 0);
	assert_int_equal(sw_share_page_gpu(page, "GPU-00000000-0000-0000-0000-000000000002"), 1);
	assert_int_equal(sw_share_page_gpu(page, "GPU-00000000-0000-0000-0000-000000000003"), -1);
	assert_int_equal(sw_share_page_gpu(page, "nonsense"), -1);
	unlink(path);
}

/* Whose a process is follows from the page in its environment and, where there is none, from the
 * process that started it. */
static void test_whose_it_is(void **state)
{
	(void)state;
	int hold[2];
	assert_int_equal(pipe(hold), 0);
	pid_t root = fork();
	if (root == 0) {
		char byte;
		close(hold[1]);
		_exit(read(hold[0], &byte, 1) != 0);
	}
	assert_true(sw_outside_is_of(root, getpid(), "/there/is/none"));
	assert_false(sw_outside_is_of(getpid(), root, "/there/is/none"));
	assert_false(sw_outside_is_of(1, getpid(), "/there/is/none"));
	close(hold[1]);
	waitpid(root, NULL, 0);
	char sleep[] = "sleep", minute[] = "60", variable[] = SW_PAGE_ENV "=/one/page";
	char *const words[] = {sleep, minute, NULL};
	char *const variables[] = {variable, NULL};
	pid_t named = fork();
	if (named == 0) {
		execve("/bin/sleep", words, variables);
		_exit(127);
	}
	for (int i = 0; i < 6000 && !sw_outside_is_of(named, -1, "/one/page"); i++)
		usleep(10000);
	assert_true(sw_outside_is_of(named, -1, "/one/page"));
	assert_false(sw_outside_is_of(named, getpid(), "/another/page"));
	kill(named, SIGKILL);
	waitpid(named, NULL, 0);
}

/* Of two looks in a row the lower count holds; the first look has none before
 * it, and counts as it is. */
static void test_steady(void **state)
{
	(void)state;
	uint32_t memory = 0;
	assert_int_equal(sw_outside_steady(&memory, 2), 2);
	assert_int_equal(sw_outside_steady(&memory, 3), 2);
	assert_int_equal(sw_outside_steady(&memory, 1), 1);
	assert_int_equal(sw_outside_steady(&memory, 0), 0);
	assert_int_equal(sw_outside_steady(&memory, 1), 0);
}

int main(void)
{
	unsetenv(SW_PAGE_ENV);
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_who_is_outside), cmocka_unit_test(test_who_is_not),
					   cmocka_unit_test(test_notes), cmocka_unit_test(test_whose_it_is), cmocka_unit_test(test_steady)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
