/* The harness itself: a case that fails leaves nothing behind. */
#include "unit/agent/harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* Aim: supervisors, jobs and what jobs have sent away end with the case that started them, though
 * they were not stopped. */
static void test_nothing_is_left(void **unused)
{
	(void)unused;
	static const char script[] = "setsid sh -c 'trap \"\" TERM HUP; echo $$ > away; sleep 1000' & echo $$ > first; wait";
	void *state = NULL;
	assert_int_equal(harness_set_up(&state), 0);
	struct harness *harness = state;
	struct run runs[2];
	pid_t pids[4];
	for (unsigned i = 0; i < 2; i++) {
		harness_start(harness, harness_spec(harness, i == 0 ? script : "echo $$ > second; kill -STOP $$"), &runs[i]);
		sw_run_account_free(harness_wait(&runs[i], SW_RUN_RUNNING));
		pids[i] = (pid_t)atoi(harness_run_file(&runs[i], "pid"));
	}
	pids[2] = (pid_t)atoi(harness_await(harness, "away"));
	pids[3] = (pid_t)atoi(harness_await(harness, "second"));
	for (unsigned i = 0; i < 4; i++)
		assert_false(harness_has_ended(pids[i]));
	harness_close(&runs[0]);
	harness_close(&runs[1]);
	assert_int_equal(harness_tear_down(&state), 0);
	for (unsigned i = 0; i < 4; i++)
		assert_true(harness_has_ended(pids[i]));
}

int main(int argc, char **argv)
{
	harness_main(argc, argv);
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_nothing_is_left)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
