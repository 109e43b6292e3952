/* Seeded faults: when nodes break and come back, and which runs fail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/number.h"
#include "sim/faults.h"

#define NODES 40u
#define HOUR (3600 * SW_NS_PER_S)

static struct sw_topology *make_topology(void)
{
	struct sw_topology_node nodes[NODES];
	struct sw_topology *topology = NULL;
	for (uint32_t n = 0; n < NODES; n++)
		nodes[n] = (struct sw_topology_node){.gpus = 1};
	assert_int_equal(sw_topology_new(nodes, NODES, &topology, NULL), 0);
	return topology;
}

static struct sw_faults *make(const struct sw_world *world, uint64_t seed)
{
	SW_CLEANUP(sw_topology_freep) struct sw_topology *topology = make_topology();
	struct sw_faults *faults = NULL;
	assert_int_equal(sw_faults_new(world, topology, seed, &faults), 0);
	return faults;
}

/* Aim: in a world without faults nothing ever breaks. */
static void test_no_faults(void **state)
{
	(void)state;
	const struct sw_world world = {0};
	struct sw_faults *faults = make(&world, 1);
	uint32_t node, at;
	bool up;
	assert_int_equal(sw_faults_next(faults), INT64_MAX);
	assert_false(sw_faults_take(faults, INT64_MAX - 1, &node, &up));
	for (uint32_t run = 0; run < 1000; run++)
		assert_false(sw_faults_run_fails(faults, run, 1, &at));
	sw_faults_free(faults);
}

/* Aim: each node goes down and up in turns, is down for just the repair time,
 * and time never runs back. */
static void test_down_and_up(void **state)
{
	(void)state;
	const struct sw_world world = {.node_mtbf_ns = 10 * HOUR, .node_repair_ns = HOUR};
	struct sw_faults *faults = make(&world, 5);
	int64_t down_since[NODES] = {0}, now = 0;
	bool down[NODES] = {false};
	uint64_t failures = 0;
	while (failures < 20000) {
		uint32_t node;
		bool up;
		int64_t next = sw_faults_next(faults);
		assert_true(next >= now);
		now = next;
		assert_false(sw_faults_take(faults, now - 1, &node, &up));
		assert_true(sw_faults_take(faults, now, &node, &up));
		assert_true(node < NODES);
		assert_int_equal(up, down[node]);
		if (up)
			assert_int_equal(now - down_since[node], HOUR);
		else
			down_since[node] = now;
		down[node] = !up;
		failures += !up;
	}
	/* 40 nodes, each down once in 11 hours on average. */
	double expected = (double)now / (11.0 * (double)HOUR) * NODES;
	assert_true((double)failures > 0.97 * expected && (double)failures < 1.03 * expected);
	sw_faults_free(faults);
}

/* Aim: the same seed breaks the same nodes at the same nanosecond; another seed breaks others. */
static void test_seeds(void **state)
{
	(void)state;
	const struct sw_world world = {.node_mtbf_ns = 10 * HOUR, .node_repair_ns = HOUR, .job_failure_ppm = 500000};
	struct sw_faults *a = make(&world, 5), *b = make(&world, 5), *c = make(&world, 6);
	bool differs = false;
	for (int i = 0; i < 200; i++) {
		uint32_t node_a = 0, node_b = 0, at_a = 0, at_b = 0;
		bool up_a = false, up_b = false;
		int64_t at = sw_faults_next(a);
		assert_int_equal(at, sw_faults_next(b));
		differs |= at != sw_faults_next(c);
		assert_true(sw_faults_take(a, at, &node_a, &up_a));
		assert_true(sw_faults_take(b, at, &node_b, &up_b));
		assert_int_equal(node_a, node_b);
		assert_int_equal(up_a, up_b);
		/* Questions about runs do not disturb the clocks of nodes, in
		 * whatever order they are asked. */
		bool fails = sw_faults_run_fails(a, (uint32_t)i, 1, &at_a);
		(void)sw_faults_run_fails(b, 7, 7, &at_b);
		assert_int_equal(sw_faults_run_fails(b, (uint32_t)i, 1, &at_b), fails);
		if (fails)
			assert_int_equal(at_a, at_b);
	}
	assert_true(differs);
	sw_faults_free(a);
	sw_faults_free(b);
	sw_faults_free(c);
}

/* Aim: so many runs fail as the world says, each run of a job by its own coin, at a moment
 * that is anywhere in it. */
static void test_share_of_runs_that_fail(void **state)
{
	(void)state;
	const struct sw_world world = {.job_failure_ppm = 200000};
	struct sw_faults *faults = make(&world, 5);
	uint32_t failed = 0, again = 0, early = 0, at;
	for (uint32_t job = 0; job < 20000; job++) {
		bool first = sw_faults_run_fails(faults, job, 1, &at);
		failed += first;
		if (first) {
			assert_true(at < 1000);
			early += at < 500;
			again += sw_faults_run_fails(faults, job, 2, &at);
		}
	}
	assert_in_range(failed, 3800, 4200);
	assert_in_range(again * 10, failed * 17 / 10, failed * 23 / 10);
	assert_in_range(early * 100, failed * 46, failed * 54);
	const struct sw_world doomed = {.job_failure_ppm = 1000000};
	struct sw_faults *all = make(&doomed, 5);
	for (uint32_t job = 0; job < 1000; job++)
		assert_true(sw_faults_run_fails(all, job, 1, &at));
	sw_faults_free(faults);
	sw_faults_free(all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_faults),
		cmocka_unit_test(test_down_and_up),
		cmocka_unit_test(test_seeds),
		cmocka_unit_test(test_share_of_runs_that_fail),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
