/* How runs get on, as the agent's brain tells it: what an iteration takes, beside which runs, and
 * what it took alone; not more often than need be, and never what is true no longer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"

#define GIB (UINT64_C(1) << 30)
enum { RUNS = 2 };

static struct {
	struct sw_agent_brain *brain;
	struct sw_run_spec spec;
	struct sw_want wants[RUNS];
	size_t count;
	uint64_t version;
	int64_t now;
	/* Of the pages: */
	int64_t iteration_ns[RUNS];
	uint64_t iterations[RUNS], host_bytes;
	bool suspended;
	uint32_t told; /* how often what is said of job 1 has changed */
	struct sw_sync_speed last;
} world;

static int set_up(void **state)
{
	(void)state;
	memset(&world, 0, sizeof world);
	world.spec = *fixture_spec();
	world.spec.gpu_memory_bytes = GIB / 4;
	world.now = START_NS;
	world.brain = fixture_brain("a", 1);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	sw_agent_brain_free(world.brain);
	return 0;
}

static void answer(void)
{
	world.now += 600 * MS;
	sw_agent_brain_nudge(world.brain);
	fixture_answer(world.brain, world.now, ++world.version, world.wants, world.count);
	fixture_act(world.brain, world.now, false);
}

/* One more job on the GPU. */
static void start(int64_t iteration_ns)
{
	uint64_t job = world.count + 1;
	world.iteration_ns[world.count] = iteration_ns;
	world.wants[world.count] = fixture_want(job, 1, SW_WANT_RUN, 1);
	world.wants[world.count++].spec = &world.spec;
	answer();
	fixture_link(world.brain, job, 1, true);
	fixture_said(world.brain, job, 1, SW_RUN_RUNNING);
}

static const struct sw_sync_speed *said(uint64_t job)
{
	const struct sw_sync_run *runs;
	size_t count = sw_agent_brain_runs(world.brain, &runs);
	assert_true(job <= count);
	return &runs[job - 1].speed;
}

/* The agent looks once a second. */
static void pass(int seconds)
{
	for (int s = 0; s < seconds; s++) {
		struct sw_sync_sample samples[RUNS] = {0};
		world.now += SW_NS_PER_S;
		for (size_t i = 0; i < world.count; i++) {
			if (!world.suspended && world.iteration_ns[i] > 0)
				world.iterations[i] += (uint64_t)(SW_NS_PER_S / world.iteration_ns[i]);
			samples[i] =
				(struct sw_sync_sample){.gpu = fixture_uuids[0],
							.has_run = true,
							.run = {i + 1, 1},
							.runtime = true,
							.suspended = world.suspended,
							.charged_bytes = GIB / 8,
							.host_bytes = world.host_bytes,
							.iterations = world.iterations[i] > 0 ? world.iterations[i] : 1,
							.iteration_ns = (uint64_t)(world.iteration_ns[i] > 0 ? world.iteration_ns[i] : MS)};
		}
		sw_agent_brain_look(world.brain, world.now, samples, world.count);
		fixture_act(world.brain, world.now, false);
		world.told += memcmp(said(1), &world.last, sizeof world.last) != 0;
		world.last = *said(1);
	}
}

/* Aim: a run alone is measured, said once, and not again while nothing changes by more than 3 %. */
static void test_alone(void **state)
{
	(void)state;
	start(10 * MS);
	pass(2);
	assert_int_equal(said(1)->iteration_ns, 0);
	pass(58);
	assert_int_equal(said(1)->iteration_ns, 10 * MS);
	assert_int_equal(said(1)->alone_ns, 10 * MS);
	assert_int_equal(said(1)->beside.count, 0);
	assert_true(said(1)->iterations >= 100);
	assert_int_equal(world.told, 1);
	world.iteration_ns[0] = 10 * MS + MS / 5;
	pass(60);
	assert_int_equal(world.told, 1);
	/* It grew for good: that is what it takes alone, by and by, and is not said every
	 * second. */
	world.iteration_ns[0] = 12 * MS;
	pass(60);
	assert_true(said(1)->iteration_ns > 11 * MS && said(1)->alone_ns > 11 * MS);
	assert_in_range(world.told, 2, 8);
}

/* Aim: what was found is taken back as soon as a run comes or goes, and then found again
 * beside those that are there. */
static void test_neighbours(void **state)
{
	(void)state;
	start(10 * MS);
	pass(10);
	start(20 * MS);
	world.iteration_ns[0] = 13 * MS;
	pass(1);
	assert_int_equal(said(1)->iteration_ns, 0);
	assert_int_equal(said(1)->alone_ns, 10 * MS);
	pass(9);
	assert_int_equal(said(1)->iteration_ns, 13 * MS);
	assert_int_equal(said(1)->alone_ns, 10 * MS);
	assert_int_equal(said(1)->beside.count, 1);
	assert_int_equal(said(1)->beside.items[0], 2);
	assert_int_equal(said(2)->beside.items[0], 1);
	/* The second one never was alone. */
	assert_int_equal(said(2)->iteration_ns, 20 * MS);
	assert_int_equal(said(2)->alone_ns, 0);
	world.wants[1].want = SW_WANT_STOP;
	answer();
	fixture_said(world.brain, 2, 1, SW_RUN_EXITED);
	world.iteration_ns[0] = 10 * MS;
	pass(1);
	assert_int_equal(said(1)->iteration_ns, 0);
	assert_int_equal(said(2)->iteration_ns, 0);
	pass(9);
	assert_int_equal(said(1)->iteration_ns, 10 * MS);
	assert_int_equal(said(1)->beside.count, 0);
}

/* Aim: what it takes with memory in the host, or suspended in between, is not what it takes
 * alone. */
static void test_held_back(void **state)
{
	(void)state;
	start(10 * MS);
	world.host_bytes = GIB / 8;
	pass(10);
	assert_int_equal(said(1)->iteration_ns, 10 * MS);
	assert_int_equal(said(1)->alone_ns, 0);
	world.host_bytes = 0;
	world.suspended = true;
	pass(1);
	assert_int_equal(said(1)->iteration_ns, 0);
	world.suspended = false;
	pass(10);
	assert_int_equal(said(1)->alone_ns, 10 * MS);
}

/* Aim: one that stands still beside others is told to be slower and slower, without a word every
 * second; one that pauses alone is not. */
static void test_stands_still(void **state)
{
	(void)state;
	start(10 * MS);
	pass(10);
	world.iteration_ns[0] = 0;
	pass(60);
	assert_int_equal(said(1)->iteration_ns, 10 * MS);
	start(20 * MS);
	pass(10);
	assert_int_equal(said(1)->iteration_ns, 0);
	uint32_t told = world.told;
	pass(50);
	assert_true(said(1)->iteration_ns > 20 * SW_NS_PER_S);
	assert_in_range(world.told - told, 1, 10);
}

/* Aim: one that is paused by order is not told to be slow, and one that works beside it is
 * alone. */
static void test_paused(void **state)
{
	(void)state;
	start(10 * MS);
	start(20 * MS);
	pass(10);
	assert_int_equal(said(1)->beside.count, 1);
	world.wants[1].paused = true;
	answer();
	world.iteration_ns[1] = 0;
	pass(60);
	assert_int_equal(said(2)->iteration_ns, 0);
	assert_int_equal(said(1)->iteration_ns, 10 * MS);
	assert_int_equal(said(1)->beside.count, 0);
	assert_int_equal(said(1)->alone_ns, 10 * MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_alone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_neighbours, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_held_back, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_stands_still, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_paused, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
