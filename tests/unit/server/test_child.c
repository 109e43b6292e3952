/* Child processes: what they leave, and what becomes of those that fail, are killed, or reach a
 * limit. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/child.h"

#define MIB ((size_t)1 << 20)

static bool says_hello(void *work)
{
	return sw_child_write(work, strlen(work));
}

static bool says_nothing(void *work)
{
	(void)work;
	return true;
}

static bool gives_up(void *work)
{
	(void)work;
	return !sw_child_write("half", 4);
}

static bool sleeps(void *work)
{
	(void)work;
	pause();
	return true;
}

static bool computes(void *work)
{
	for (volatile uint64_t *count = work;; (*count)++)
		;
	return true;
}

/* So many bytes of address space, none of which is touched. */
static bool takes(void *work)
{
	void *map = mmap(NULL, *(size_t *)work, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return map != MAP_FAILED && sw_child_write("had", 3);
}

static struct sw_child start(sw_child_fn *run, void *work)
{
	const struct sw_child_task task = {
		.name = "sw-test", .purpose = "a test", .run = run, .work = work, .cpu_s = 1, .alarm_s = 600, .more_bytes = 256 * MIB};
	struct sw_child child = {0};
	struct sw_err err = {0};
	if (sw_child_start(&task, &child, &err) < 0)
		fail_msg("%s: %s", err.fact, err.detail);
	return child;
}

/* Waits for its end; true with the text that it left. */
static bool ends_well(struct sw_child *child, const char *text, struct sw_err *err)
{
	struct sw_child_result result = {0};
	char byte;
	while (read(child->end, &byte, 1) < 0) /* the end of the pipe */
		usleep(1000);
	if (sw_child_end(child, &result, err) < 0)
		return false;
	assert_int_equal(result.size, strlen(text));
	assert_memory_equal(result.map, text, result.size);
	munmap(result.map, result.size);
	assert_int_equal(child->pid, 0);
	return true;
}

/* Aim: what a child writes is what the controller reads. */
static void test_result(void **state)
{
	(void)state;
	static char hello[] = "hello";
	struct sw_child child = start(says_hello, hello);
	assert_true(ends_well(&child, "hello", NULL));
}

/* Aim: a child that wrote nothing, or failed half-way, leaves no result, and it is said why. */
static void test_failures(void **state)
{
	(void)state;
	struct sw_err err = {0};
	struct sw_child child = start(says_nothing, NULL);
	assert_false(ends_well(&child, "", &err));
	assert_string_equal(err.fact, "its process left no result");
	err = (struct sw_err){0};
	child = start(gives_up, NULL);
	assert_false(ends_well(&child, "", &err));
	assert_string_equal(err.fact, "its process ended with status 1");
}

/* Aim: a child that is killed leaves no result; one whose result is not wanted is ended. */
static void test_killed(void **state)
{
	(void)state;
	struct sw_err err = {0};
	struct sw_child child = start(sleeps, NULL);
	assert_int_equal(kill(child.pid, SIGKILL), 0);
	assert_false(ends_well(&child, "", &err));
	assert_non_null(strstr(err.fact, "signal 9"));
	child = start(sleeps, NULL);
	assert_int_equal(sw_child_end(&child, NULL, NULL), SW_EIO);
	assert_int_equal(child.pid, 0);
}

/* Aim: the kernel ends a child that computes for longer than it may. */
static void test_time(void **state)
{
	(void)state;
	struct sw_err err = {0};
	uint64_t count = 0;
	struct sw_child child = start(computes, &count);
	assert_false(ends_well(&child, "", &err));
	assert_non_null(strstr(err.fact, "signal"));
}

/* Aim: a child has the memory that it may have, and no more. */
static void test_memory(void **state)
{
	(void)state;
	struct sw_err err = {0};
	size_t little = 100 * MIB, much = 300 * MIB;
	struct sw_child child = start(takes, &little);
	assert_true(ends_well(&child, "had", &err));
	child = start(takes, &much);
	assert_false(ends_well(&child, "had", &err));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_result), cmocka_unit_test(test_failures), cmocka_unit_test(test_killed),
		cmocka_unit_test(test_time),   cmocka_unit_test(test_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
