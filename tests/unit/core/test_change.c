/* Nodes that are closed, jobs that keep off a node, and GPU memory that grows between runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rig.h"

static uint32_t node_of(const struct rig *rig, uint32_t id)
{
	uint32_t parts = sw_engine_parts(rig->engine, (struct sw_job_id){id});
	return parts == SW_NO_PART ? UINT32_MAX : sw_engine_ledger(rig->engine)->parts[parts].node;
}

static void open_two(struct rig *rig, const struct sw_policy *policy)
{
	const struct sw_topology_node nodes[] = {RIG_NODE(0, 2), RIG_NODE(0, 2)};
	rig_open(rig, nodes, 2, (struct sw_engine_config){.policy = policy}, NULL);
}

static struct sw_event change(uint32_t job, uint64_t bytes, uint32_t avoid)
{
	return (struct sw_event){.kind = SW_EV_CHANGE, .job = {job}, .gpu_memory_bytes = bytes, .avoid = avoid};
}

/* Nothing that it did was kept. */
static struct sw_event failure_of(const struct rig *rig, uint32_t job)
{
	struct sw_event event = rig_answer(rig, SW_EV_FAIL, job);
	event.left_ns = -1;
	return event;
}

/* A closed node takes no job in; one that runs there stays to the end, and its GPUs count as free
 * only when it is open again. */
static void test_closed_node(void **state)
{
	(void)state;
	struct rig rig;
	open_two(&rig, &sw_policy_fifo);
	uint32_t first = rig_submit_plain(&rig, 0, 2, 100);
	uint32_t home = node_of(&rig, first);
	rig_event(&rig, 1, rig_node_event(SW_EV_NODE_CLOSE, home));
	assert_true(rig_runs(&rig, first));
	uint32_t second = rig_submit_plain(&rig, 2, 2, 100), third = rig_submit_plain(&rig, 3, 1, 100);
	assert_true(rig_runs(&rig, second) && node_of(&rig, second) != home);
	rig_finish(&rig, 4, first);
	assert_false(rig_runs(&rig, third));
	assert_int_equal(sw_view_gpus_free(sw_engine_view(rig.engine)), 0);
	rig_event(&rig, 5, rig_node_event(SW_EV_NODE_OPEN, home));
	assert_true(rig_runs(&rig, third) && node_of(&rig, third) == home);
	rig_close(&rig);
}

/* Preempting a job on a closed node would help none: a shorter job does not get in that way. */
static void test_closed_is_not_preempted(void **state)
{
	(void)state;
	struct rig rig;
	open_two(&rig, &sw_policy_srtf);
	uint32_t a = rig_submit_plain(&rig, 0, 2, 1000), b = rig_submit_plain(&rig, 0, 2, 2000);
	rig_event(&rig, 1, rig_node_event(SW_EV_NODE_CLOSE, node_of(&rig, b)));
	uint32_t small = rig_submit_plain(&rig, 2, 2, 10);
	assert_true(rig_runs(&rig, b) && rig_runs(&rig, small) && !rig_runs(&rig, a));
	rig_close(&rig);
}

/* A node that goes down while it is closed, and comes back, is still closed. */
static void test_closed_and_down(void **state)
{
	(void)state;
	struct rig rig;
	open_two(&rig, &sw_policy_fifo);
	rig_event(&rig, 0, rig_node_event(SW_EV_NODE_CLOSE, 0));
	rig_event(&rig, 1, rig_node_event(SW_EV_NODE_DOWN, 0));
	rig_event(&rig, 2, rig_node_event(SW_EV_NODE_UP, 0));
	assert_int_equal(sw_view_gpus_free(sw_engine_view(rig.engine)), 2);
	rig_event(&rig, 3, rig_node_event(SW_EV_NODE_DOWN, 0));
	rig_event(&rig, 4, rig_node_event(SW_EV_NODE_OPEN, 0));
	rig_event(&rig, 5, rig_node_event(SW_EV_NODE_UP, 0));
	assert_int_equal(sw_view_gpus_free(sw_engine_view(rig.engine)), 4);
	rig_close(&rig);
}

/* A job that failed on a node starts on another one, even where the rule prefers the first, and
 * waits for it if it must. */
static void test_keeps_off_a_node(void **state)
{
	(void)state;
	const struct sw_policy *policies[] = {&sw_policy_fifo, &sw_policy_srtf};
	for (size_t p = 0; p < 2; p++) {
		struct rig rig;
		open_two(&rig, policies[p]);
		struct sw_job_spec spec = rig_spec(1, 100);
		spec.retries = 3;
		uint32_t job = rig_submit(&rig, 0, &spec), home = node_of(&rig, job);
		const struct sw_event events[] = {failure_of(&rig, job),
						  {.kind = SW_EV_HOLD, .job = {job}},
						  change(job, 0, home),
						  {.kind = SW_EV_RELEASE, .job = {job}}};
		rig_step(&rig, 1, events, 4);
		assert_true(rig_runs(&rig, job) && node_of(&rig, job) != home);
		/* And while the other is full it waits. */
		const struct sw_event again[] = {failure_of(&rig, job), {.kind = SW_EV_HOLD, .job = {job}}, change(job, 0, home)};
		rig_step(&rig, 2, again, 3);
		rig_event(&rig, 3, rig_node_event(SW_EV_NODE_CLOSE, home));
		uint32_t other = rig_submit_plain(&rig, 4, 2, 10);
		rig_event(&rig, 5, rig_node_event(SW_EV_NODE_OPEN, home));
		rig_event(&rig, 6, (struct sw_event){.kind = SW_EV_RELEASE, .job = {job}});
		assert_true(rig_runs(&rig, other) && !rig_runs(&rig, job));
		rig_finish(&rig, 7, other);
		assert_true(rig_runs(&rig, job) && node_of(&rig, job) != home);
		rig_close(&rig);
	}
}

/* Where there is no other place the job goes back to where it failed: on a cluster of one node, or
 * when the others go away. */
static void test_nowhere_else(void **state)
{
	(void)state;
	struct rig rig;
	const struct sw_topology_node one[] = {RIG_NODE(0, 2)};
	struct sw_job_spec spec = rig_spec(2, 100);
	spec.retries = 3;
	rig_open(&rig, one, 1, (struct sw_engine_config){.policy = &sw_policy_fifo}, NULL);
	uint32_t job = rig_submit(&rig, 0, &spec);
	const struct sw_event events[] = {
		failure_of(&rig, job), {.kind = SW_EV_HOLD, .job = {job}}, change(job, 0, 0), {.kind = SW_EV_RELEASE, .job = {job}}};
	rig_step(&rig, 1, events, 4);
	assert_true(rig_runs(&rig, job));
	rig_close(&rig);

	open_two(&rig, &sw_policy_fifo);
	job = rig_submit(&rig, 0, &spec);
	uint32_t home = node_of(&rig, job);
	const struct sw_event more[] = {failure_of(&rig, job), {.kind = SW_EV_HOLD, .job = {job}}, change(job, 0, home)};
	rig_step(&rig, 1, more, 3);
	rig_event(&rig, 2, rig_node_event(SW_EV_NODE_DOWN, 1 - home));
	rig_event(&rig, 3, (struct sw_event){.kind = SW_EV_RELEASE, .job = {job}});
	assert_true(rig_runs(&rig, job) && node_of(&rig, job) == home);
	rig_close(&rig);
}

/* GPU memory changes between runs, not beyond what a GPU has, and never under a run. */
static void test_memory(void **state)
{
	(void)state;
	struct rig rig;
	open_two(&rig, &sw_policy_fifo);
	struct sw_job_spec spec = rig_spec(1, 100);
	spec.retries = 3;
	spec.gpu_memory_bytes = 10 * RIG_GIB;
	uint32_t job = rig_submit(&rig, 0, &spec);
	rig_event(&rig, 1, change(job, 20 * RIG_GIB, UINT32_MAX));
	assert_true(rig_job(&rig, job)->gpu_memory_bytes == 10 * RIG_GIB); /* it runs */
	const struct sw_event events[] = {failure_of(&rig, job), {.kind = SW_EV_HOLD, .job = {job}}, change(job, 20 * RIG_GIB, UINT32_MAX)};
	rig_step(&rig, 2, events, 3);
	assert_true(rig_job(&rig, job)->gpu_memory_bytes == 20 * RIG_GIB);
	rig_event(&rig, 3, change(job, 1000 * RIG_GIB, UINT32_MAX));
	assert_true(rig_job(&rig, job)->gpu_memory_bytes == 20 * RIG_GIB);
	rig_event(&rig, 4, change(job, 0, UINT32_MAX)); /* a whole GPU */
	rig_event(&rig, 5, (struct sw_event){.kind = SW_EV_RELEASE, .job = {job}});
	assert_true(rig_runs(&rig, job) && rig_job(&rig, job)->gpu_memory_bytes == 0);
	rig_close(&rig);
}

/* The driver may say that a failure costs no retry, or is the last. */
static void test_verdicts(void **state)
{
	(void)state;
	struct rig rig;
	open_two(&rig, &sw_policy_fifo);
	struct sw_job_spec spec = rig_spec(1, 100);
	spec.retries = 1;
	uint32_t job = rig_submit(&rig, 0, &spec);
	for (int i = 0; i < 5; i++) {
		struct sw_event failure = failure_of(&rig, job);
		failure.verdict = SW_FAIL_FREE;
		rig_event(&rig, 1, failure);
		assert_true(rig_runs(&rig, job) && rig_job(&rig, job)->retries_left == 1);
	}
	struct sw_event failure = failure_of(&rig, job);
	failure.verdict = SW_FAIL_FINAL;
	rig_event(&rig, 2, failure);
	assert_int_equal(rig_state(&rig, job), SW_JOB_FAILED);
	rig_close(&rig);
}

/* However many jobs keep off however many nodes, their lanes are used again. */
static void test_lanes_are_used_again(void **state)
{
	(void)state;
	struct rig rig;
	const struct sw_topology_node nodes[] = {RIG_NODE(0, 1), RIG_NODE(0, 1), RIG_NODE(0, 1), RIG_NODE(0, 1)};
	rig_open(&rig, nodes, 4, (struct sw_engine_config){.policy = &sw_policy_srtf}, NULL);
	struct sw_job_spec spec = rig_spec(1, 100);
	for (uint32_t i = 0; i < 200; i++) {
		spec.held = true;
		spec.cpus = i % 7;
		uint32_t job = rig_submit(&rig, i, &spec);
		rig_event(&rig, i, change(job, 0, i % 4));
		rig_event(&rig, i, (struct sw_event){.kind = SW_EV_RELEASE, .job = {job}});
		assert_true(rig_runs(&rig, job) && node_of(&rig, job) != i % 4);
		rig_finish(&rig, i, job);
	}
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_closed_node),	cmocka_unit_test(test_closed_is_not_preempted),
		cmocka_unit_test(test_closed_and_down), cmocka_unit_test(test_keeps_off_a_node),
		cmocka_unit_test(test_nowhere_else),	cmocka_unit_test(test_memory),
		cmocka_unit_test(test_verdicts),	cmocka_unit_test(test_lanes_are_used_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
