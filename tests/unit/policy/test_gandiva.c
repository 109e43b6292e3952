/* Gandiva: where jobs go, whose turn it is, which pairs stay together, which jobs
 * move, grow and shrink. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "unit/core/rig.h"

#define QUANTUM 60

static const struct sw_topology_node one_gpu[] = {RIG_NODE(0, 1)}, two_gpus[] = {RIG_NODE(0, 2)}, four_gpus[] = {RIG_NODE(0, 4)},
				     two_ones[] = {RIG_NODE(0, 1), RIG_NODE(0, 1)}, two_fours[] = {RIG_NODE(0, 4), RIG_NODE(0, 4)},
				     three_ones[] = {RIG_NODE(0, 1), RIG_NODE(0, 1), RIG_NODE(0, 1)},
				     two_eights[] = {RIG_NODE(0, 8), RIG_NODE(0, 8)},
				     three_fours[] = {RIG_NODE(0, 4), RIG_NODE(0, 4), RIG_NODE(0, 4)};

static void open_with(struct rig *rig, const struct sw_topology_node *nodes, uint32_t count, struct sw_engine_config config)
{
	config.policy = &sw_policy_gandiva;
	config.placement = &sw_placement_pack;
	rig_open(rig, nodes, count, config, NULL);
}

/* A world that suspends, and tells how fast jobs run. */
static void open_gandiva(struct rig *rig, const struct sw_topology_node *nodes, uint32_t count)
{
	open_with(rig, nodes, count, (struct sw_engine_config){.terms.keeps_state = true, .terms.tells_speed = true});
}

/* Steps whenever the engine wants to be woken, up to this second. */
static void live_until(struct rig *rig, int64_t until_s)
{
	while (rig->step.wake_at <= until_s * SW_NS_PER_S)
		rig_step_ns(rig, rig->step.wake_at, NULL, 0);
	if (rig->now < until_s * SW_NS_PER_S)
		rig_tick(rig, until_s);
}

static int64_t ran_s(const struct rig *rig, uint32_t id)
{
	return sw_job_ran(sw_engine_view(rig->engine), rig_job(rig, id)) / SW_NS_PER_S;
}

static uint32_t submit_with_memory(struct rig *rig, int64_t at_s, uint32_t gpus, uint64_t gib)
{
	struct sw_job_spec spec = rig_spec(gpus, 100000);
	spec.gpu_memory_bytes = gib * RIG_GIB;
	return rig_submit(rig, at_s, &spec);
}

/* A job whose processes can stand still where they are, and nowhere else. */
static uint32_t submit_in_place(struct rig *rig, int64_t at_s, uint32_t gpus, uint64_t gib)
{
	struct sw_job_spec spec = rig_spec(gpus, 100000);
	spec.gpu_memory_bytes = gib * RIG_GIB;
	spec.prefers_home = true;
	return rig_submit(rig, at_s, &spec);
}

/* ---- turns */

/* Aim: six jobs of one GPU on four get ten quanta each, within 5 %, and at no time is one more than
 * a quantum ahead of another. */
static void test_equal_turns(void **state)
{
	(void)state;
	struct rig rig;
	open_gandiva(&rig, four_gpus, 1);
	for (int j = 0; j < 6; j++)
		rig_submit_plain(&rig, 0, 1, 100000);
	for (int64_t turn = 1; turn <= 15; turn++) {
		live_until(&rig, turn * QUANTUM);
		int64_t least = INT64_MAX, most = 0;
		for (uint32_t id = 0; id < 6; id++) {
			least = ran_s(&rig, id) < least ? ran_s(&rig, id) : least;
			most = ran_s(&rig, id) > most ? ran_s(&rig, id) : most;
		}
		assert_in_range(most - least, 0, QUANTUM);
		assert_int_equal(sw_view_gpus_free(sw_engine_view(rig.engine)), 0);
	}
	for (uint32_t id = 0; id < 6; id++)
		assert_in_range(ran_s(&rig, id), 10 * QUANTUM * 95 / 100, 10 * QUANTUM * 105 / 100);
	rig_close(&rig);
}

/* Aim: a gang gets its turn on all its GPUs at once, although small jobs behind it could
 * have had theirs earlier. */
static void test_gang_among_small_jobs(void **state)
{
	(void)state;
	struct rig rig;
	open_gandiva(&rig, four_gpus, 1);
	for (int j = 0; j < 4; j++)
		rig_submit_plain(&rig, 7 * j, 1, 100000);
	uint32_t gang = rig_submit_plain(&rig, 30, 4, 100000);
	rig_submit_plain(&rig, 31, 1, 100000);
	live_until(&rig, 3 * QUANTUM);
	assert_int_not_equal(rig_job(&rig, gang)->first_start_at, SW_TIME_NEVER);
	assert_int_equal(ran_s(&rig, gang), QUANTUM);
	live_until(&rig, 20 * QUANTUM);
	assert_in_range(ran_s(&rig, gang), 6 * QUANTUM, 11 * QUANTUM); /* one turn of two, or of three */
	rig_close(&rig);
}

/* Aim: a job that loses its work by a stop is not stopped; others take turns around it. */
static void test_only_those_that_keep_their_state(void **state)
{
	(void)state;
	struct rig rig;
	open_with(&rig, two_gpus, 1, (struct sw_engine_config){0});
	for (int j = 0; j < 3; j++)
		rig_submit_plain(&rig, 0, 1, 100000);
	live_until(&rig, 20 * QUANTUM);
	assert_int_equal(ran_s(&rig, 0), 20 * QUANTUM);
	assert_int_equal(ran_s(&rig, 1), 20 * QUANTUM);
	assert_int_equal(ran_s(&rig, 2), 0);
	char text[300];
	sw_engine_explain(rig.engine, (struct sw_job_id){2}, text, sizeof text);
	assert_non_null(strstr(text, "a stop would cost it its work"));
	rig_finish(&rig, 20 * QUANTUM + 1, 0);
	assert_true(rig_runs(&rig, 2));
	rig_close(&rig);
}

/* Aim: jobs that stand still where they are come back to those GPUs, each GPU with its own
 * round. */
static void test_turns_in_place(void **state)
{
	(void)state;
	struct rig rig;
	char place[4][256];
	open_with(&rig, two_gpus, 1, (struct sw_engine_config){.terms.moves = SW_MOVES_RESTART});
	for (uint32_t id = 0; id < 4; id++)
		submit_in_place(&rig, 0, 1, 30);
	for (int64_t turn = 0; turn <= 20; turn++) {
		live_until(&rig, turn * QUANTUM);
		for (uint32_t id = 0; id < 4; id++) {
			assert_int_equal(rig_runs(&rig, id), (turn + id / 2) % 2 == 0);
			if (!rig_runs(&rig, id))
				continue;
			if (turn >= 2)
				assert_string_equal(rig_place(&rig, id), place[id]);
			snprintf(place[id], sizeof place[id], "%s", rig_place(&rig, id));
		}
	}
	for (uint32_t id = 0; id < 4; id++) {
		assert_int_equal(ran_s(&rig, id), 10 * QUANTUM);
		assert_int_equal(rig_job(&rig, id)->migrations, 0);
	}
	rig_close(&rig);
}

/* Aim: what stands on a GPU keeps its memory there: no more take turns in place than fit, and none
 * of which it is not known. */
static void test_memory_of_those_who_stand(void **state)
{
	(void)state;
	struct rig rig;
	open_with(&rig, one_gpu, 1, (struct sw_engine_config){.terms.moves = SW_MOVES_RESTART});
	uint32_t first = submit_in_place(&rig, 0, 1, 30), second = submit_in_place(&rig, 0, 1, 45), third = submit_in_place(&rig, 0, 1, 10);
	uint32_t unknown = submit_in_place(&rig, 0, 1, 0);
	live_until(&rig, 20 * QUANTUM);
	assert_int_equal(ran_s(&rig, first), 10 * QUANTUM);
	assert_int_equal(ran_s(&rig, second), 10 * QUANTUM);
	assert_int_equal(rig_job(&rig, third)->first_start_at, SW_TIME_NEVER); /* 85 of 80 GiB */
	assert_int_equal(rig_job(&rig, unknown)->first_start_at, SW_TIME_NEVER);
	rig_close(&rig);
}

/* Aim: a job larger than a node gets its turn, too, and gives the nodes back after it. */
static void test_larger_than_a_node(void **state)
{
	(void)state;
	struct rig rig;
	open_gandiva(&rig, three_fours, 2);
	for (int j = 0; j < 4; j++)
		rig_submit_plain(&rig, 0, 2, 100000);
	uint32_t wide = rig_submit_plain(&rig, 1, 8, 100000);
	live_until(&rig, 3 * QUANTUM);
	assert_int_not_equal(rig_job(&rig, wide)->first_start_at, SW_TIME_NEVER);
	live_until(&rig, 30 * QUANTUM);
	assert_in_range(ran_s(&rig, wide), 8 * QUANTUM, 20 * QUANTUM);
	for (uint32_t id = 0; id < 4; id++)
		assert_in_range(ran_s(&rig, id), 8 * QUANTUM, 22 * QUANTUM);
	rig_close(&rig);
}

/* ---- places */

/* Aim: a job goes to a node of its size with room, else to an empty one, else to any with room,
 * else it takes turns on one of its size. */
static void test_order_of_places(void **state)
{
	(void)state;
	struct rig rig;
	static const struct {
		uint32_t gpus;
		const char *place;
	} jobs[] = {{1, "0:1"}, {4, "1:f"}, {1, "0:2"}, {2, "2:3"}, {2, "2:c"}, {2, "0:c"}, {4, ""}};
	open_gandiva(&rig, three_fours, 3);
	for (uint32_t j = 0; j < RIG_COUNT(jobs); j++)
		assert_string_equal(rig_place(&rig, rig_submit_plain(&rig, 0, jobs[j].gpus, 100000)), jobs[j].place);
	live_until(&rig, QUANTUM);
	assert_string_equal(rig_place(&rig, 6), "1:f");
	assert_false(rig_runs(&rig, 1));
	char text[300];
	sw_engine_explain(rig.engine, (struct sw_job_id){1}, text, sizeof text);
	assert_string_equal(text, "it takes turns of 60 s with others: the jobs of its node ask for 8 GPUs and it has 4");
	rig_close(&rig);
}

/* Aim: a job that comes when all nodes are given away as often as they may be queues, and says
 * so. */
static void test_height(void **state)
{
	(void)state;
	struct rig rig;
	const char *const words[] = {"height=2", NULL};
	rig_open(&rig, one_gpu, 1, (struct sw_engine_config){.policy = &sw_policy_gandiva, .terms.keeps_state = true}, words);
	for (int j = 0; j < 3; j++)
		rig_submit_plain(&rig, 0, 1, 100000);
	live_until(&rig, 10 * QUANTUM);
	assert_int_equal(ran_s(&rig, 2), 0);
	char text[300];
	sw_engine_explain(rig.engine, (struct sw_job_id){2}, text, sizeof text);
	assert_non_null(strstr(text, "given away 2 times over"));
	rig_finish(&rig, 10 * QUANTUM + 1, rig_runs(&rig, 0) ? 0 : 1);
	live_until(&rig, 13 * QUANTUM);
	assert_int_not_equal(ran_s(&rig, 2), 0);
	rig_close(&rig);
}

/* Aim: when a job ends, one that took turns elsewhere takes the GPUs that are free. */
static void test_departure_relieves(void **state)
{
	(void)state;
	struct rig rig;
	open_gandiva(&rig, two_ones, 2);
	for (int j = 0; j < 3; j++)
		rig_submit_plain(&rig, 0, 1, 100000);
	live_until(&rig, 5 * QUANTUM);
	rig_finish(&rig, 5 * QUANTUM + 1, 1);
	assert_true(rig_runs(&rig, 0) && rig_runs(&rig, 2));
	live_until(&rig, 9 * QUANTUM);
	assert_true(rig_runs(&rig, 0) && rig_runs(&rig, 2));
	rig_close(&rig);
}

/* Aim: a job of eight GPUs that is spread 4 + 4 is brought together by one migration when
 * a job ends, and stays. */
static void test_spread_job_is_gathered(void **state)
{
	(void)state;
	struct rig rig;
	open_gandiva(&rig, two_eights, 2);
	for (int j = 0; j < 3; j++)
		rig_submit_plain(&rig, 0, 4, 100000);
	rig_finish(&rig, 1, 1);
	uint32_t large = rig_submit_plain(&rig, 2, 8, 100000);
	assert_string_equal(rig_place(&rig, large), "0:f0 1:f0");
	live_until(&rig, 10);
	rig_finish(&rig, 10, 0);
	assert_string_equal(rig_place(&rig, large), "0:ff");
	live_until(&rig, 1000);
	assert_int_equal(rig_job(&rig, large)->migrations, 1);
	assert_int_equal(rig_job(&rig, large)->preemptions, 0);
	assert_int_equal(rig_job(&rig, 2)->migrations, 0);
	rig_close(&rig);
}

/* Aim: where no node has room for a spread job, the one with most free GPUs is cleared
 * of what fits elsewhere. */
static void test_a_node_is_cleared(void **state)
{
	(void)state;
	static const struct sw_topology_node nodes[] = {RIG_NODE(0, 4), RIG_NODE(0, 4), RIG_NODE(0, 2)};
	struct rig rig;
	open_gandiva(&rig, nodes, 3);
	uint32_t small = rig_submit_plain(&rig, 0, 1, 100000); /* 0:1 */
	uint32_t other = rig_submit_plain(&rig, 0, 4, 100000);
	rig_submit_plain(&rig, 0, 2, 100000); /* 2:3 */
	uint32_t pair = rig_submit_plain(&rig, 0, 2, 100000);
	assert_string_equal(rig_place(&rig, pair), "0:6");
	rig_finish(&rig, 1, other);
	struct sw_job_spec half = rig_spec(2, 100000);
	uint32_t filler = rig_submit(&rig, 2, &half);
	assert_string_equal(rig_place(&rig, filler), "1:3");
	rig_finish(&rig, 3, pair);
	uint32_t large = rig_submit_plain(&rig, 4, 4, 100000);
	assert_string_equal(rig_place(&rig, large), "0:e 1:4");
	rig_finish(&rig, 5, 2); /* node 2 is free: too small for the large one, but not for the small */
	live_until(&rig, 5 * QUANTUM);
	assert_int_equal(rig_job(&rig, large)->migrations, 1);
	assert_int_equal(rig_job(&rig, small)->migrations + rig_job(&rig, filler)->migrations, 1);
	rig_close(&rig);
}

/* ---- pairs */

/* The world tells that a job has so much work left and how fast it does it. */
static void tell_speed(struct rig *rig, int64_t at_s, uint32_t id, int64_t speed_milli)
{
	struct sw_event event = rig_answer(rig, SW_EV_PROGRESS, id);
	event.as_of = at_s * SW_NS_PER_S;
	event.left_ns = 90000 * SW_NS_PER_S;
	event.ends_at = event.as_of + event.left_ns * 1000 / speed_milli;
	rig_event(rig, at_s, event);
}

/* Two jobs on one GPU, up to their trial as a pair from the second quantum on, in which
 * each runs at this speed. */
static void try_pair(struct rig *rig, int64_t first_milli, int64_t second_milli)
{
	open_gandiva(rig, one_gpu, 1);
	submit_with_memory(rig, 0, 1, 30);
	submit_with_memory(rig, 0, 1, 40);
	live_until(rig, 2 * QUANTUM - 1);
	assert_int_equal(sw_view_running(sw_engine_view(rig->engine)), 1);
	live_until(rig, 2 * QUANTUM);
	assert_true(rig_runs(rig, 0) && rig_runs(rig, 1));
	tell_speed(rig, 2 * QUANTUM + 1, 0, first_milli);
	tell_speed(rig, 2 * QUANTUM + 1, 1, second_milli);
}

/* Aim: a pair that does 1.3 of what one does alone stays together; a third job
 * takes turns with both. */
static void test_good_pair_is_kept(void **state)
{
	(void)state;
	struct rig rig;
	try_pair(&rig, 800, 500);
	live_until(&rig, 10 * QUANTUM);
	assert_true(rig_runs(&rig, 0) && rig_runs(&rig, 1));
	assert_int_equal(rig_job(&rig, 0)->preemptions + rig_job(&rig, 1)->preemptions, 1); /* before the trial */
	submit_with_memory(&rig, 10 * QUANTUM + 1, 1, 70);
	for (int64_t turn = 11; turn < 20; turn++) {
		live_until(&rig, turn * QUANTUM + 1);
		assert_int_equal(rig_runs(&rig, 0), rig_runs(&rig, 1));
		assert_int_not_equal(rig_runs(&rig, 0), rig_runs(&rig, 2));
	}
	assert_in_range(ran_s(&rig, 2), 4 * QUANTUM, 5 * QUANTUM);
	rig_close(&rig);
}

/* Aim: a pair that does 0.9 is parted after one quantum, and never tried again. */
static void test_bad_pair_is_parted(void **state)
{
	(void)state;
	struct rig rig;
	try_pair(&rig, 450, 450);
	live_until(&rig, 3 * QUANTUM);
	for (int64_t turn = 3; turn < 40; turn++) {
		live_until(&rig, turn * QUANTUM + 1);
		assert_int_equal(sw_view_running(sw_engine_view(rig.engine)), 1);
	}
	assert_in_range(ran_s(&rig, 0) - ran_s(&rig, 1) + QUANTUM, 0, 2 * QUANTUM);
	rig_close(&rig);
}

/* Aim: none is packed where there is no overload, where memory is short or unknown, which fills a
 * GPU alone, or where speed is not measured. */
static void test_who_is_not_packed(void **state)
{
	(void)state;
	static const struct {
		uint64_t first_gib, second_gib;
		bool measured;
	} cases[] = {{50, 40, true}, {0, 40, true}, {30, 0, true}, {30, 40, false}};
	struct rig rig;
	for (size_t c = 0; c < RIG_COUNT(cases); c++) {
		open_with(&rig, one_gpu, 1, (struct sw_engine_config){.terms.keeps_state = true, .terms.tells_speed = cases[c].measured});
		submit_with_memory(&rig, 0, 1, cases[c].first_gib);
		submit_with_memory(&rig, 0, 1, cases[c].second_gib);
		for (int64_t turn = 0; turn < 10; turn++) {
			live_until(&rig, turn * QUANTUM + 1);
			assert_int_equal(sw_view_running(sw_engine_view(rig.engine)), 1);
		}
		rig_close(&rig);
	}
	open_gandiva(&rig, one_gpu, 1);
	struct sw_job_spec busy = rig_spec(1, 100000);
	busy.gpu_memory_bytes = 10 * RIG_GIB;
	busy.use_milli = 960;
	rig_submit(&rig, 0, &busy);
	submit_with_memory(&rig, 0, 1, 10);
	for (int64_t turn = 0; turn < 10; turn++) {
		live_until(&rig, turn * QUANTUM + 1);
		assert_int_equal(sw_view_running(sw_engine_view(rig.engine)), 1);
	}
	rig_close(&rig);
	open_gandiva(&rig, two_gpus, 1);
	submit_with_memory(&rig, 0, 1, 10);
	submit_with_memory(&rig, 0, 1, 10);
	live_until(&rig, 10 * QUANTUM);
	assert_int_equal(sw_view_gpus_free(sw_engine_view(rig.engine)), 0);
	rig_close(&rig);
}

/* Aim: when a GPU becomes free, the guest of a pair takes it; when its host
 * ends, it stays where it is. */
static void test_end_of_a_pair(void **state)
{
	(void)state;
	struct rig rig;
	try_pair(&rig, 800, 800);
	live_until(&rig, 5 * QUANTUM);
	uint32_t host = rig_job(&rig, 0)->compute_milli > 0 ? 0 : 1, guest = 1 - host;
	rig_finish(&rig, 5 * QUANTUM + 1, host);
	assert_true(rig_runs(&rig, guest));
	live_until(&rig, 9 * QUANTUM);
	assert_string_equal(rig_place(&rig, guest), "0:1");
	rig_close(&rig);

	open_gandiva(&rig, two_gpus, 1);
	for (int j = 0; j < 3; j++)
		submit_with_memory(&rig, 0, 1, 20);
	live_until(&rig, 8 * QUANTUM); /* at full speed: one pair, one alone */
	assert_int_equal(sw_view_running(sw_engine_view(rig.engine)), 3);
	uint32_t alone = 0;
	while (alone < 2 && (rig_job(&rig, alone)->compute_milli == 0 || strcmp(rig_place(&rig, alone), rig_place(&rig, 2)) == 0))
		alone++;
	rig_finish(&rig, 8 * QUANTUM + 1, alone);
	live_until(&rig, 10 * QUANTUM);
	assert_int_equal(sw_view_gpus_free(sw_engine_view(rig.engine)), 0);
	for (uint32_t id = 0; id < 3; id++)
		if (id != alone)
			assert_int_equal(rig_job(&rig, id)->compute_milli, 1000);
	rig_close(&rig);
}

/* ---- sizes */

/* Aim: an elastic job grows onto GPUs that were idle for ten minutes, and gives them back at
 * once when a job comes. */
static void test_grow_and_shrink(void **state)
{
	(void)state;
	struct rig rig;
	open_gandiva(&rig, four_gpus, 1);
	struct sw_job_spec spec = rig_spec(1, 100000);
	spec.max_gpus = 3;
	uint32_t elastic = rig_submit(&rig, 0, &spec);
	live_until(&rig, 9 * QUANTUM);
	assert_int_equal(rig_job(&rig, elastic)->gpus_held, 1);
	live_until(&rig, 11 * QUANTUM);
	assert_int_equal(rig_job(&rig, elastic)->gpus_held, 3);
	uint32_t other = rig_submit_plain(&rig, 12 * QUANTUM, 3, 100000);
	assert_true(rig_runs(&rig, other));
	assert_int_equal(rig_job(&rig, elastic)->gpus_held, 1);
	rig_close(&rig);
}

/* A job that cannot be stopped and keeps off node 1 waits for node 0, where another such job runs;
 * on node 1 one runs that can stand still there. */
static void open_in_vain(struct rig *rig)
{
	open_with(rig, two_ones, 2, (struct sw_engine_config){.terms.moves = SW_MOVES_RESTART});
	submit_with_memory(rig, 0, 1, 30);
	submit_in_place(rig, 0, 1, 30);
	submit_with_memory(rig, 0, 1, 30);
	rig_event(rig, 1, (struct sw_event){.kind = SW_EV_CHANGE, .job = {2}, .gpu_memory_bytes = 30 * RIG_GIB, .avoid = 1});
	assert_string_equal(rig_place(rig, 0), "0:1");
	assert_string_equal(rig_place(rig, 1), "1:1");
	assert_false(rig_runs(rig, 2));
}

/* Aim: one that was stopped for a job that then did not come goes on, although nothing
 * else happens on its node. */
static void test_stopped_in_vain(void **state)
{
	(void)state;
	struct rig rig;
	open_in_vain(&rig);
	while (rig_runs(&rig, 1) && rig.now < 5 * QUANTUM * SW_NS_PER_S)
		rig_step_ns(&rig, rig.step.wake_at, NULL, 0);
	assert_false(rig_runs(&rig, 1));
	int64_t stopped_s = rig.now / SW_NS_PER_S;
	rig_finish(&rig, stopped_s + 1, 0);
	assert_true(rig_runs(&rig, 2));
	live_until(&rig, stopped_s + 2 * QUANTUM);
	assert_true(rig_runs(&rig, 1));
	live_until(&rig, stopped_s + 10 * QUANTUM);
	assert_in_range(ran_s(&rig, 1), stopped_s + 8 * QUANTUM, stopped_s + 10 * QUANTUM);
	rig_close(&rig);
}

/* Aim: a job that waits long for another node does not have the same one stopped
 * in vain again and again. */
static void test_seldom_stopped_in_vain(void **state)
{
	(void)state;
	struct rig rig;
	open_in_vain(&rig);
	live_until(&rig, 100 * QUANTUM);
	assert_in_range(ran_s(&rig, 1), 90 * QUANTUM, 99 * QUANTUM);
	rig_finish(&rig, 100 * QUANTUM + 1, 0);
	assert_true(rig_runs(&rig, 2));
	rig_close(&rig);
}

/* Aim: the same of two that are stopped for a job that is larger than a node and keeps
 * off that of one of them. */
static void test_stopped_in_vain_for_a_gang(void **state)
{
	(void)state;
	struct rig rig;
	open_with(&rig, three_ones, 3, (struct sw_engine_config){.terms.moves = SW_MOVES_RESTART});
	submit_with_memory(&rig, 0, 1, 30);
	submit_in_place(&rig, 0, 1, 30);
	submit_in_place(&rig, 0, 1, 30);
	submit_with_memory(&rig, 0, 2, 30);
	rig_event(&rig, 1, (struct sw_event){.kind = SW_EV_CHANGE, .job = {3}, .gpu_memory_bytes = 30 * RIG_GIB, .avoid = 2});
	live_until(&rig, 100 * QUANTUM);
	assert_in_range(ran_s(&rig, 1), 90 * QUANTUM, 99 * QUANTUM);
	assert_in_range(ran_s(&rig, 2), 90 * QUANTUM, 99 * QUANTUM);
	rig_finish(&rig, 100 * QUANTUM + 1, 0);
	live_until(&rig, 300 * QUANTUM);
	assert_string_equal(rig_place(&rig, 3), "0:1 1:1");
	assert_in_range(ran_s(&rig, 2), 285 * QUANTUM, 299 * QUANTUM);
	rig_close(&rig);
}

/* Aim: a job that waits on its node because its tenant has all of its quota elsewhere goes on
 * when that is given back. */
static void test_quota_is_given_back_elsewhere(void **state)
{
	(void)state;
	struct rig rig;
	open_with(&rig, two_ones, 2, (struct sw_engine_config){.terms.moves = SW_MOVES_RESTART});
	rig_event(&rig, 0, (struct sw_event){.kind = SW_EV_QUOTA, .tenant = 1, .gpus = 1});
	uint32_t fixed = submit_with_memory(&rig, 0, 1, 30);
	struct sw_job_spec spec = rig_spec(1, 100000);
	spec.gpu_memory_bytes = 30 * RIG_GIB;
	spec.prefers_home = true;
	spec.tenant = 1;
	uint32_t job = rig_submit(&rig, 0, &spec), other = submit_in_place(&rig, 0, 1, 30);
	live_until(&rig, QUANTUM);
	assert_false(rig_runs(&rig, job));
	assert_true(rig_runs(&rig, other));
	rig_finish(&rig, QUANTUM + 1, fixed);
	uint32_t same_tenant = rig_submit(&rig, QUANTUM + 2, &spec);
	assert_string_equal(rig_place(&rig, same_tenant), "0:1");
	rig_finish(&rig, QUANTUM + 3, other);
	assert_false(rig_runs(&rig, job));
	live_until(&rig, 5 * QUANTUM);
	assert_false(rig_runs(&rig, job));
	rig_finish(&rig, 5 * QUANTUM + 1, same_tenant);
	live_until(&rig, 8 * QUANTUM);
	assert_true(rig_runs(&rig, job));
	rig_close(&rig);
}

/* ---- what people and machines do */

/* Aim: a job that stands still and is released goes on where it stands, whichever is released
 * first, though other nodes are as empty. */
static void test_released_where_they_stand(void **state)
{
	(void)state;
	struct rig rig;
	open_with(&rig, three_ones, 3, (struct sw_engine_config){.terms.moves = SW_MOVES_RESTART});
	for (uint32_t id = 0; id < 3; id++)
		submit_in_place(&rig, 0, 1, 30);
	assert_string_equal(rig_place(&rig, 2), "2:1");
	for (uint32_t id = 0; id < 3; id++)
		rig_event(&rig, 10, (struct sw_event){.kind = SW_EV_HOLD, .job = {id}});
	for (uint32_t id = 3; id-- > 0;) {
		rig_event(&rig, 20, (struct sw_event){.kind = SW_EV_RELEASE, .job = {id}});
		assert_string_equal(rig_place(&rig, id), ((const char *[]){"0:1", "1:1", "2:1"})[id]);
	}
	rig_close(&rig);
}

/* Aim: a job that stands still on a node that others have all of, and cannot start on the one where
 * it is to take turns, does not wait there for ever. */
static void test_does_not_stand_where_it_waits(void **state)
{
	(void)state;
	struct rig rig;
	open_with(&rig, two_ones, 2, (struct sw_engine_config){.terms.moves = SW_MOVES_RESTART});
	uint32_t other = submit_in_place(&rig, 0, 1, 30), job = 1;
	struct sw_job_spec spec = rig_spec(1, 100000);
	spec.gpu_memory_bytes = 30 * RIG_GIB;
	spec.prefers_home = spec.held = true;
	rig_submit(&rig, 0, &spec);
	rig_event(&rig, 0, (struct sw_event){.kind = SW_EV_CHANGE, .job = {job}, .gpu_memory_bytes = 30 * RIG_GIB, .avoid = 0});
	rig_event(&rig, 0, (struct sw_event){.kind = SW_EV_RELEASE, .job = {job}});
	assert_string_equal(rig_place(&rig, job), "1:1");
	rig_event(&rig, 10, (struct sw_event){.kind = SW_EV_HOLD, .job = {job}});
	uint32_t fixed = submit_with_memory(&rig, 10, 1, 30);
	assert_string_equal(rig_place(&rig, fixed), "1:1");
	rig_event(&rig, 20, (struct sw_event){.kind = SW_EV_RELEASE, .job = {job}});
	live_until(&rig, 5 * QUANTUM);
	assert_false(rig_runs(&rig, job));
	assert_true(ran_s(&rig, other) > 2 * QUANTUM);
	rig_finish(&rig, 5 * QUANTUM + 1, fixed);
	live_until(&rig, 10 * QUANTUM);
	assert_string_equal(rig_place(&rig, job), "1:1");
	assert_true(rig_runs(&rig, other));
	rig_close(&rig);
}

/* Aim: a job that is held while it waits loses its turn without harm to others, and is
 * back after its release. */
static void test_hold_and_release(void **state)
{
	(void)state;
	struct rig rig;
	open_gandiva(&rig, one_gpu, 1);
	for (int j = 0; j < 3; j++)
		rig_submit_plain(&rig, 0, 1, 100000);
	rig_event(&rig, 10, (struct sw_event){.kind = SW_EV_HOLD, .job = {1}});
	live_until(&rig, 10 * QUANTUM);
	assert_int_equal(ran_s(&rig, 1), 0);
	assert_int_equal(ran_s(&rig, 0), 5 * QUANTUM);
	rig_event(&rig, 10 * QUANTUM + 1, (struct sw_event){.kind = SW_EV_RELEASE, .job = {1}});
	live_until(&rig, 14 * QUANTUM);
	assert_in_range(ran_s(&rig, 1), QUANTUM, 2 * QUANTUM);
	rig_close(&rig);
}

/* Aim: residents of a node that goes down or is closed go on elsewhere, and
 * come back when it does. */
static void test_nodes_come_and_go(void **state)
{
	(void)state;
	struct rig rig;
	open_gandiva(&rig, two_ones, 2);
	for (int j = 0; j < 4; j++)
		rig_submit_plain(&rig, 0, 1, 100000);
	live_until(&rig, 4 * QUANTUM);
	rig_event(&rig, 4 * QUANTUM + 1, rig_node_event(SW_EV_NODE_DOWN, 1));
	live_until(&rig, 12 * QUANTUM + 1);
	for (uint32_t id = 0; id < 4; id++)
		assert_in_range(ran_s(&rig, id), 3 * QUANTUM, 5 * QUANTUM);
	rig_event(&rig, 12 * QUANTUM + 2, rig_node_event(SW_EV_NODE_UP, 1));
	assert_int_equal(sw_view_running(sw_engine_view(rig.engine)), 2);
	rig_event(&rig, 12 * QUANTUM + 3, rig_node_event(SW_EV_NODE_CLOSE, 0));
	live_until(&rig, 30 * QUANTUM);
	for (uint32_t id = 0; id < 4; id++)
		assert_in_range(ran_s(&rig, id), 5 * QUANTUM, 25 * QUANTUM);
	rig_close(&rig);
}

/* Aim: a job that waits on a node that has become too small for it takes turns elsewhere. */
static void test_too_small_now(void **state)
{
	(void)state;
	struct rig rig;
	open_with(&rig, two_fours, 2, (struct sw_engine_config){.terms.may_grow = true});
	uint32_t first = submit_in_place(&rig, 0, 4, 20), second = submit_in_place(&rig, 0, 4, 20);
	assert_string_equal(rig_place(&rig, first), "0:f");
	assert_string_equal(rig_place(&rig, second), "1:f");
	const struct sw_topology_change less = {.shape = RIG_NODE(0, 2), .to = {0, 1, [2 ... SW_NODE_GPUS_MAX - 1] = SW_GPU_GONE}};
	rig_event(&rig, QUANTUM, (struct sw_event){.kind = SW_EV_NODE_CHANGE, .change = &less});
	live_until(&rig, 21 * QUANTUM);
	assert_in_range(ran_s(&rig, first), 5 * QUANTUM, 15 * QUANTUM);
	assert_in_range(ran_s(&rig, second), 5 * QUANTUM, 15 * QUANTUM);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_equal_turns),
		cmocka_unit_test(test_gang_among_small_jobs),
		cmocka_unit_test(test_only_those_that_keep_their_state),
		cmocka_unit_test(test_turns_in_place),
		cmocka_unit_test(test_memory_of_those_who_stand),
		cmocka_unit_test(test_larger_than_a_node),
		cmocka_unit_test(test_order_of_places),
		cmocka_unit_test(test_height),
		cmocka_unit_test(test_departure_relieves),
		cmocka_unit_test(test_spread_job_is_gathered),
		cmocka_unit_test(test_a_node_is_cleared),
		cmocka_unit_test(test_good_pair_is_kept),
		cmocka_unit_test(test_bad_pair_is_parted),
		cmocka_unit_test(test_who_is_not_packed),
		cmocka_unit_test(test_end_of_a_pair),
		cmocka_unit_test(test_grow_and_shrink),
		cmocka_unit_test(test_released_where_they_stand),
		cmocka_unit_test(test_does_not_stand_where_it_waits),
		cmocka_unit_test(test_stopped_in_vain),
		cmocka_unit_test(test_seldom_stopped_in_vain),
		cmocka_unit_test(test_stopped_in_vain_for_a_gang),
		cmocka_unit_test(test_quota_is_given_back_elsewhere),
		cmocka_unit_test(test_hold_and_release),
		cmocka_unit_test(test_nodes_come_and_go),
		cmocka_unit_test(test_too_small_now),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
