/* What a decision of sharewell costs, counted in steps over jobs (the linker puts the
 * functions below before those of base/oset and base/bitmap): it follows what has changed, not
 * how many jobs there are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/bitmap.h"
#include "base/oset.h"
#include "unit/core/rig.h"

static uint32_t steps;

uint32_t __real_sw_oset_next(const struct sw_oset_links *links, uint32_t id);
uint32_t __real_sw_oset_prev(const struct sw_oset_links *links, uint32_t id);
uint32_t __real_sw_oset_next_marked(const struct sw_oset_links *links, uint32_t id, uint32_t marks);
uint32_t __real_sw_oset_prev_marked(const struct sw_oset_links *links, uint32_t id, uint32_t marks);
uint32_t __real_sw_bitmap_next(const struct sw_bitmap *bitmap, uint32_t from);
uint32_t __wrap_sw_oset_next(const struct sw_oset_links *links, uint32_t id);
uint32_t __wrap_sw_oset_prev(const struct sw_oset_links *links, uint32_t id);
uint32_t __wrap_sw_oset_next_marked(const struct sw_oset_links *links, uint32_t id, uint32_t marks);
uint32_t __wrap_sw_oset_prev_marked(const struct sw_oset_links *links, uint32_t id, uint32_t marks);
uint32_t __wrap_sw_bitmap_next(const struct sw_bitmap *bitmap, uint32_t from);

uint32_t __wrap_sw_oset_next(const struct sw_oset_links *links, uint32_t id)
{
	steps++;
	return __real_sw_oset_next(links, id);
}

uint32_t __wrap_sw_oset_prev(const struct sw_oset_links *links, uint32_t id)
{
	steps++;
	return __real_sw_oset_prev(links, id);
}

uint32_t __wrap_sw_oset_next_marked(const struct sw_oset_links *links, uint32_t id, uint32_t marks)
{
	steps++;
	return __real_sw_oset_next_marked(links, id, marks);
}

uint32_t __wrap_sw_oset_prev_marked(const struct sw_oset_links *links, uint32_t id, uint32_t marks)
{
	steps++;
	return __real_sw_oset_prev_marked(links, id, marks);
}

uint32_t __wrap_sw_bitmap_next(const struct sw_bitmap *bitmap, uint32_t from)
{
	steps++;
	return __real_sw_bitmap_next(bitmap, from);
}

enum { GPUS = 8, NODES_MAX = 32 };

/* Busy nodes of jobs that would have to start anew if they were stopped, as in a live cluster. */
static void open_busy(struct rig *rig, uint32_t nodes)
{
	struct sw_topology_node shapes[NODES_MAX] = {0};
	for (uint32_t n = 0; n < nodes; n++)
		shapes[n] = (struct sw_topology_node)RIG_NODE(0, GPUS);
	rig_open(rig, shapes, nodes, (struct sw_engine_config){.policy = &sw_policy_sharewell, .terms.moves = SW_MOVES_NEVER}, NULL);
	for (uint32_t j = 0; j < nodes * GPUS; j++)
		assert_true(rig_runs(rig, rig_submit_plain(rig, 0, 1, 1000000)));
}

static void submit_until(struct rig *rig, uint32_t jobs)
{
	while (sw_engine_job_count(rig->engine) < jobs)
		(void)rig_submit_plain(rig, 1, 1, 1000000);
}

/* Steps of one event; those of the check that comes after it do not count. */
static uint32_t steps_of(struct rig *rig, int64_t at_s, struct sw_event event)
{
	struct sw_err err = {0};
	steps = 0;
	rig_must(sw_engine_step(rig->engine, at_s * SW_NS_PER_S, &event, 1, &rig->step, &err), &err);
	uint32_t taken = steps;
	rig_must(sw_engine_validate(rig->engine, &err), &err);
	return taken;
}

/* One more job waits. */
static uint32_t steps_of_submit(struct rig *rig, int64_t at_s, uint8_t job_class)
{
	struct sw_job_spec spec = rig_spec(1, 1000000);
	spec.job_class = job_class;
	uint32_t taken = steps_of(rig, at_s, (struct sw_event){.kind = SW_EV_SUBMIT, .spec = &spec});
	assert_false(rig_runs(rig, sw_engine_job_count(rig->engine) - 1));
	return taken;
}

/* One more runs, in the place of one that ends. */
static uint32_t steps_of_end(struct rig *rig, int64_t at_s, uint32_t id)
{
	uint32_t taken = steps_of(rig, at_s, rig_answer(rig, SW_EV_FINISH, id));
	assert_int_equal(rig_commands(rig), 1);
	return taken;
}

/* Aim: a job that comes or ends costs the same behind a thousand that wait as behind ten. */
static void test_waiting_jobs_cost_nothing(void **state)
{
	(void)state;
	struct rig rig;
	open_busy(&rig, 1);
	submit_until(&rig, GPUS + 20);
	uint32_t of_submit = steps_of_submit(&rig, 2, SW_CLASS_GUARANTEED), of_end = steps_of_end(&rig, 3, 0);
	(void)steps_of_submit(&rig, 4, SW_CLASS_GUARANTEED);
	submit_until(&rig, GPUS + 1000);
	assert_in_range(steps_of_submit(&rig, 5, SW_CLASS_GUARANTEED), 1, of_submit);
	assert_in_range(steps_of_end(&rig, 6, 1), 1, of_end);
	rig_close(&rig);
}

/* Aim: a job that comes or ends costs the same beside hundreds of running jobs that do not give way
 * as beside a few, whether it is guaranteed or not. */
static void test_running_jobs_cost_nothing(void **state)
{
	(void)state;
	static const uint8_t classes[] = {SW_CLASS_GUARANTEED, SW_CLASS_OPPORTUNISTIC};
	for (size_t c = 0; c < RIG_COUNT(classes); c++) {
		uint32_t of_submit[2], of_end[2];
		for (int many = 0; many < 2; many++) {
			struct rig rig;
			open_busy(&rig, many ? NODES_MAX : 1);
			for (int j = 0; j < 20; j++)
				(void)steps_of_submit(&rig, 1, classes[c]);
			rig_tick(&rig, 9999); /* those that run have done so for so long that they are behind all others */
			of_submit[many] = steps_of_submit(&rig, 10000, classes[c]);
			of_end[many] = steps_of_end(&rig, 10001, 0);
			rig_close(&rig);
		}
		assert_in_range(of_submit[1], 1, of_submit[0]);
		assert_in_range(of_end[1], 1, of_end[0]);
	}
}

/* Aim: where nothing runs because of a quota, a job that comes costs the same behind a
 * thousand as behind ten. */
static void test_jobs_that_cannot_start_cost_nothing(void **state)
{
	(void)state;
	struct rig rig;
	static const struct sw_topology_node node[] = {RIG_NODE(0, GPUS)};
	rig_open(&rig, node, 1, (struct sw_engine_config){.policy = &sw_policy_sharewell}, NULL);
	rig_event(&rig, 0, (struct sw_event){.kind = SW_EV_QUOTA, .tenant = 0, .gpus = 0});
	submit_until(&rig, 20);
	uint32_t of_submit = steps_of_submit(&rig, 2, SW_CLASS_GUARANTEED);
	submit_until(&rig, 1000);
	assert_in_range(steps_of_submit(&rig, 3, SW_CLASS_GUARANTEED), 1, of_submit);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_waiting_jobs_cost_nothing),
		cmocka_unit_test(test_running_jobs_cost_nothing),
		cmocka_unit_test(test_jobs_that_cannot_start_cost_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
