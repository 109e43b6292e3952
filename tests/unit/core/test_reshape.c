/* Nodes that have other GPUs than they had. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/rng.h"
#include "scripted.h"

static const struct sw_topology_node four_and_two[] = {RIG_NODE(0, 4), RIG_NODE(0, 2)};

/* So many GPUs; the words say what becomes of those that it had: "0 - 1" loses the second of
 * three. */
static struct sw_topology_change change_to(uint32_t gpus, const char *words)
{
	struct sw_topology_change change = {.shape = RIG_NODE(0, gpus)};
	memset(change.to, SW_GPU_GONE, sizeof change.to);
	for (uint32_t g = 0; *words != '\0'; g++, words += strcspn(words, " "), words += *words == ' ')
		if (*words != '-')
			change.to[g] = (uint8_t)strtoul(words, NULL, 10);
	return change;
}

static void change(struct rig *rig, int64_t at_s, uint32_t node, const struct sw_topology_change *to)
{
	rig_event(rig, at_s, (struct sw_event){.kind = SW_EV_NODE_CHANGE, .node = {node}, .change = to});
}

static uint32_t submit_homely(struct rig *rig, uint32_t gpus)
{
	struct sw_job_spec spec = rig_spec(gpus, 100);
	spec.prefers_home = true;
	return rig_submit(rig, 0, &spec);
}

/* Aim: with fewer GPUs, jobs on those that are gone wait again at no cost to their retries; the
 * others go on, under new numbers, and none elsewhere notices. */
static void test_fewer(void **state)
{
	(void)state;
	struct rig rig;
	rig_open(&rig, four_and_two, 2, (struct sw_engine_config){.policy = &sw_policy_fifo}, NULL);
	uint32_t elsewhere = rig_submit_plain(&rig, 0, 2, 100), first = rig_submit_plain(&rig, 0, 1, 100),
		 second = rig_submit_plain(&rig, 0, 1, 100), pair = rig_submit_plain(&rig, 0, 2, 100);
	assert_string_equal(rig_place(&rig, second), "0:2");
	assert_string_equal(rig_place(&rig, pair), "0:c");
	struct sw_topology_change less = change_to(3, "0 - 1 2");
	change(&rig, 10, 0, &less);
	const struct sw_command *stop = rig_command(&rig, SW_CMD_STOP, second);
	assert_non_null(stop);
	assert_int_equal(stop->reason, SW_REASON_NODE_LOST);
	assert_int_equal(rig_commands(&rig), 1);
	assert_int_equal(rig_state(&rig, second), SW_JOB_WAITING);
	assert_int_equal(rig_job(&rig, second)->restarts, 1);
	assert_string_equal(rig_place(&rig, first), "0:1");
	assert_string_equal(rig_place(&rig, pair), "0:6");
	assert_string_equal(rig_place(&rig, elsewhere), "1:3");
	assert_int_equal(sw_view_gpus(sw_engine_view(rig.engine)), 5);
	assert_int_equal(sw_view_node_gpus_max(sw_engine_view(rig.engine)), 3);
	rig_finish(&rig, 20, pair);
	assert_string_equal(rig_place(&rig, second), "0:2");
	rig_finish(&rig, 30, elsewhere);
	rig_close(&rig);
}

/* Aim: GPUs that come are used at once, wherever they are among those that were there, and by jobs
 * that were too large before. */
static void test_more(void **state)
{
	(void)state;
	struct rig rig;
	rig_open(&rig, two_by_two, 2, (struct sw_engine_config){.policy = &sw_policy_fifo, .terms.may_grow = true}, NULL);
	uint32_t here = rig_submit_plain(&rig, 0, 2, 100), behind = rig_submit_plain(&rig, 0, 2, 100),
		 large = rig_submit_plain(&rig, 0, 5, 100);
	struct sw_topology_change more = change_to(7, "1 6");
	change(&rig, 10, 0, &more);
	assert_string_equal(rig_place(&rig, here), "0:42");
	assert_string_equal(rig_place(&rig, behind), "1:3");
	assert_string_equal(rig_place(&rig, large), "0:3d");
	assert_int_equal(rig_commands(&rig), 1);
	rig_finish(&rig, 20, behind);
	rig_close(&rig);
}

/* Aim: a node that was down is up with what it has now; one that was closed stays closed. */
static void test_down_and_closed(void **state)
{
	(void)state;
	struct rig rig;
	rig_open(&rig, two_by_two, 2, (struct sw_engine_config){.policy = &sw_policy_fifo}, NULL);
	rig_step(&rig, 0, (struct sw_event[]){rig_node_event(SW_EV_NODE_DOWN, 0), rig_node_event(SW_EV_NODE_CLOSE, 1)}, 2);
	uint32_t one = rig_submit_plain(&rig, 1, 1, 100), two = rig_submit_plain(&rig, 1, 2, 100);
	struct sw_topology_change less = change_to(1, "- 0"), more = change_to(3, "0 1");
	change(&rig, 2, 0, &less);
	assert_string_equal(rig_place(&rig, one), "0:1");
	change(&rig, 3, 1, &more);
	assert_int_equal(sw_view_gpus(sw_engine_view(rig.engine)), 4);
	assert_false(rig_runs(&rig, two));
	rig_event(&rig, 4, rig_node_event(SW_EV_NODE_OPEN, 1));
	assert_string_equal(rig_place(&rig, two), "1:3");
	rig_close(&rig);
}

/* Aim: a node without GPUs takes none, and gets over it. */
static void test_none(void **state)
{
	(void)state;
	struct rig rig;
	rig_open(&rig, two_by_two, 2, (struct sw_engine_config){.policy = &sw_policy_fifo}, NULL);
	uint32_t id = rig_submit_plain(&rig, 0, 4, 100);
	struct sw_topology_change none = change_to(0, "- -"), back = change_to(2, "");
	change(&rig, 1, 1, &none);
	assert_false(rig_runs(&rig, id));
	assert_int_equal(sw_view_gpus(sw_engine_view(rig.engine)), 2);
	change(&rig, 2, 1, &back);
	assert_string_equal(rig_place(&rig, id), "0:3 1:3");
	rig_close(&rig);
}

/* Aim: where there is less beside the GPUs than there was, none stays; where
 * there is more, all do. */
static void test_what_is_beside(void **state)
{
	(void)state;
	struct rig rig;
	rig_open(&rig, two_by_two, 1, (struct sw_engine_config){.policy = &sw_policy_fifo}, NULL);
	uint32_t id = rig_submit_plain(&rig, 0, 2, 100);
	struct sw_topology_change same = change_to(2, "0 1");
	same.shape.memory_bytes += RIG_GIB;
	same.shape.gpu_memory_bytes += RIG_GIB;
	change(&rig, 1, 0, &same);
	assert_int_equal(rig_commands(&rig), 0);
	same.shape.memory_bytes -= RIG_GIB;
	change(&rig, 2, 0, &same);
	assert_non_null(rig_command(&rig, SW_CMD_STOP, id));
	assert_non_null(rig_command(&rig, SW_CMD_START, id));
	rig_close(&rig);
}

static void preempt_both(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_stop(plan, job_of(plan, 0), SW_PREEMPT), SW_YES);
	assert_int_equal(sw_plan_stop(plan, job_of(plan, 1), SW_PREEMPT), SW_YES);
}

static void start_second(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), NULL), SW_YES);
}

/* Aim: a job comes back to the GPUs that it had, whatever their numbers are now; one whose GPUs are
 * gone has no home any more. */
static void test_homes(void **state)
{
	(void)state;
	struct rig rig;
	open_scripted(&rig, four_and_two, 1, (struct sw_engine_config){0});
	uint32_t lost = submit_homely(&rig, 2), kept = submit_homely(&rig, 1);
	run_script(&rig, 0, start_all);
	assert_string_equal(rig_place(&rig, kept), "0:4");
	run_script(&rig, 1, preempt_both);
	struct sw_topology_change less = change_to(3, "2 - 0 1");
	change(&rig, 2, 0, &less);
	run_script(&rig, 3, start_second);
	assert_string_equal(rig_place(&rig, kept), "0:1");
	run_script(&rig, 4, start_first);
	assert_string_equal(rig_place(&rig, lost), "0:6");
	rig_close(&rig);
}

/* Aim: what cannot be is an error and changes nothing; a node that is not there is passed over. */
static void test_refused(void **state)
{
	(void)state;
	struct rig rig;
	struct sw_err err = {0};
	rig_open(&rig, two_by_two, 2, (struct sw_engine_config){.policy = &sw_policy_fifo}, NULL);
	rig_submit_plain(&rig, 0, 1, 100);
	uint64_t hash = sw_engine_log_hash(rig.engine);
	struct sw_topology_change doubled = change_to(2, "1 1"), huge = change_to(SW_NODE_GPUS_MAX + 1, "0 1");
	const struct sw_topology_change *bad[] = {&doubled, &huge};
	for (int i = 0; i < 2; i++) {
		const struct sw_event event = {.kind = SW_EV_NODE_CHANGE, .node = {0}, .change = bad[i]};
		assert_int_equal(sw_engine_step(rig.engine, 0, &event, 1, &rig.step, &err), SW_EINPUT);
		assert_true(strstr(err.fact, "makes of a node what cannot be") != NULL);
		sw_err_clear(&err);
	}
	assert_true(sw_engine_log_hash(rig.engine) == hash);
	struct sw_topology_change less = change_to(1, "0");
	change(&rig, 1, 2, &less);
	assert_int_equal(sw_view_gpus(sw_engine_view(rig.engine)), 4);
	rig_close(&rig);
}

/* ---- at random */

static const struct sw_topology_node mixed[] = {RIG_NODE(0, 3), RIG_NODE(0, 1), RIG_NODE(1, 4)};

static struct sw_engine_config config_of(const struct sw_policy *policy)
{
	return (struct sw_engine_config){
		.policy = policy, .fallback = &sw_policy_fifo, .placement = &sw_placement_pack, .seed = 5, .terms.may_grow = true};
}

/* Any number of GPUs, and for each that was there a new place or none. */
static struct sw_topology_change draw_change(struct sw_rng *rng)
{
	struct sw_topology_change drawn = change_to((uint32_t)sw_rng_below(rng, 7), "");
	uint64_t left = (UINT64_C(1) << drawn.shape.gpus) - 1;
	for (uint32_t g = 0; g < 8; g++) {
		uint8_t to = (uint8_t)sw_rng_below(rng, 8);
		if (sw_rng_below(rng, 4) == 0 || (left >> to & 1) == 0)
			continue;
		drawn.to[g] = to;
		left &= ~(UINT64_C(1) << to);
	}
	return drawn;
}

static void draw_job(struct rig *rig, struct sw_rng *rng, int64_t at_s)
{
	struct sw_job_spec spec = rig_spec(1 + (uint32_t)sw_rng_below(rng, 4), 50);
	spec.prefers_home = sw_rng_below(rng, 2) == 0;
	spec.gpu_memory_bytes = sw_rng_below(rng, 2) * (10 + 10 * sw_rng_below(rng, 4)) * RIG_GIB;
	spec.job_class = sw_rng_below(rng, 3) == 0 ? SW_CLASS_OPPORTUNISTIC : SW_CLASS_GUARANTEED;
	rig_submit(rig, at_s, &spec);
}

static void live(struct rig *rig, struct sw_rng *rng)
{
	for (int64_t at_s = 0; at_s < 400; at_s += 1 + (int64_t)sw_rng_below(rng, 10)) {
		uint32_t job = (uint32_t)sw_rng_below(rng, sw_engine_job_count(rig->engine) + 1), node = (uint32_t)sw_rng_below(rng, 3);
		struct sw_topology_change drawn = draw_change(rng);
		switch (sw_rng_below(rng, 6)) {
		case 0:
			change(rig, at_s, node, &drawn);
			break;
		case 1:
			if (job < sw_engine_job_count(rig->engine))
				rig_event(rig, at_s, rig_answer(rig, SW_EV_FINISH, job));
			break;
		case 2:
			rig_event(rig, at_s, rig_node_event(sw_rng_below(rng, 2) == 0 ? SW_EV_NODE_DOWN : SW_EV_NODE_UP, node));
			break;
		default:
			draw_job(rig, rng, at_s);
		}
	}
}

/* Aim: under any policy, whatever nodes become, all invariants hold (the rig looks after every
 * step), and the state is saved and loaded to the last byte. */
static void test_at_random(void **state)
{
	(void)state;
	for (size_t p = 0; sw_policies[p] != NULL; p++) {
		struct rig rig;
		struct sw_rng rng;
		struct sw_err err = {0};
		struct sw_engine *loaded = NULL;
		struct sw_pack saved = {0}, again = {0};
		bool adopted = true;
		size_t size, again_size;
		sw_rng_seed(&rng, p + 1);
		rig_open(&rig, mixed, RIG_COUNT(mixed), config_of(sw_policies[p]), NULL);
		live(&rig, &rng);
		sw_engine_save(rig.engine, &saved);
		SW_CLEANUP(sw_freep) unsigned char *bytes = sw_pack_take(&saved, &size);
		struct sw_engine_config config = config_of(sw_policies[p]);
		config.params = rig.params;
		rig_must(sw_engine_load(&config, bytes, size, &loaded, &adopted, &err), &err);
		rig_must(sw_engine_validate(loaded, &err), &err);
		assert_false(adopted);
		sw_engine_save(loaded, &again);
		SW_CLEANUP(sw_freep) unsigned char *same = sw_pack_take(&again, &again_size);
		assert_int_equal(size, again_size);
		assert_memory_equal(bytes, same, size);
		sw_engine_free(loaded);
		rig_close(&rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fewer),	cmocka_unit_test(test_more),	  cmocka_unit_test(test_down_and_closed),
		cmocka_unit_test(test_none),	cmocka_unit_test(test_homes),	  cmocka_unit_test(test_what_is_beside),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_at_random),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
