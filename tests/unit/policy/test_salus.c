/* Salus, step by step: which job gets which lane, whose turn it is, and that memory is never
 * promised twice whatever happens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "../core/rig.h"
#include "base/rng.h"
#include "core/state.h"
#include "policy/salus.h"

#define EVENTS 100000u

static const struct sw_topology_node one[] = {RIG_NODE(0, 1)};

static void open_salus(struct rig *rig, const struct sw_topology_node *nodes, uint32_t count, const char *const *words)
{
	rig_open(rig, nodes, count,
		 (struct sw_engine_config){
			 .policy = &sw_policy_salus, .placement = &sw_placement_pack, .terms.keeps_state = true, .seed = 1},
		 words);
}

/* `keeps` GiB between iterations and `needs` more within one. */
static uint32_t submit_job(struct rig *rig, int64_t at_s, uint64_t keeps, uint64_t needs, int64_t work_s)
{
	struct sw_job_spec spec = rig_spec(1, work_s);
	spec.gpu_memory_bytes = (keeps + needs) * RIG_GIB;
	spec.gpu_floor_bytes = keeps * RIG_GIB;
	return rig_submit(rig, at_s, &spec);
}

static const struct card *card_in(const struct rig *rig, uint32_t id)
{
	return card_of(&rig->engine->view, rig_job(rig, id));
}

static uint32_t lane_of(const struct rig *rig, uint32_t id)
{
	const struct salus_room *room = room_of(&rig->engine->view, card_in(rig, id)->room);
	for (uint32_t m = 0; room != NULL && m < room->count; m++)
		if (room->members[m] == id + 1)
			return room->lane[m];
	fail_msg("job %u is in no room", id);
	return 0;
}

static bool works(const struct rig *rig, uint32_t id)
{
	return rig_runs(rig, id) && !rig_job(rig, id)->paused;
}

/* Aim: a job gets a lane of its own while there is room, else the tightest that is large enough,
 * else one that grows; and queues where that does not fit either. */
static void test_rules(void **state)
{
	(void)state;
	struct rig rig;
	open_salus(&rig, one, 1, (const char *const[]){"order=fifo", "lanes=8", NULL});
	uint32_t a = submit_job(&rig, 0, 10, 20, 1000); /* 30 of 80 */
	uint32_t b = submit_job(&rig, 1, 10, 10, 1000); /* 50: rule 1 */
	assert_int_equal(lane_of(&rig, a), 0);
	assert_int_equal(lane_of(&rig, b), 1);
	uint32_t c = submit_job(&rig, 2, 22, 9, 1000); /* 72: no room for 9 more, the lane of 10 is tighter than that of 20 */
	assert_int_equal(lane_of(&rig, c), 1);
	uint32_t d = submit_job(&rig, 3, 2, 24, 1000); /* 78: the lane of 20 grows by 4 */
	assert_int_equal(lane_of(&rig, d), 0);
	uint32_t e = submit_job(&rig, 4, 1, 26, 1000); /* would be 81 */
	assert_int_equal(rig_state(&rig, e), SW_JOB_WAITING);
	uint32_t f = submit_job(&rig, 5, 1, 10, 1000); /* 79, and overtakes */
	assert_int_equal(lane_of(&rig, f), 1);
	assert_true(works(&rig, a) && works(&rig, b) && !works(&rig, c) && !works(&rig, d) && !works(&rig, f));
	/* The lane shrinks to 20 with its largest member: 73, and it may grow to 26. */
	rig_finish(&rig, 6, d);
	assert_true(rig_runs(&rig, e));
	rig_close(&rig);
}

/* Aim: where a lane has gone with its last member, one that stood still in another
 * gets a lane of its own. */
static void test_lanes_are_used(void **state)
{
	(void)state;
	struct rig rig;
	open_salus(&rig, one, 1, (const char *const[]){"order=fifo", "lanes=2", NULL});
	uint32_t ids[4];
	for (uint32_t j = 0; j < 4; j++)
		ids[j] = submit_job(&rig, 0, 5, 5, 1000);
	assert_true(works(&rig, ids[0]) && works(&rig, ids[1]) && !works(&rig, ids[2]) && !works(&rig, ids[3]));
	rig_finish(&rig, 10, ids[1]);
	assert_true(works(&rig, ids[0]) && works(&rig, ids[2]) && !works(&rig, ids[3]));
	rig_finish(&rig, 20, ids[0]);
	assert_true(works(&rig, ids[2]) && works(&rig, ids[3]));
	rig_close(&rig);
}

/* Aim: one that is moved to a GPU of its own has left its room, and none stands
 * still for it any more. */
static void test_moved_away(void **state)
{
	(void)state;
	static const struct sw_topology_node two[] = {RIG_NODE(0, 2)};
	struct rig rig;
	open_salus(&rig, two, 1, (const char *const[]){"order=fifo", "lanes=1", NULL});
	uint32_t whole = rig_submit_plain(&rig, 0, 1, 1000), a = submit_job(&rig, 1, 5, 5, 1000), b = submit_job(&rig, 2, 5, 5, 1000);
	assert_true(works(&rig, whole) && works(&rig, a) && rig_runs(&rig, b) && !works(&rig, b));
	rig_finish(&rig, 3, whole);
	rig_event(&rig, 4, rig_answer(&rig, SW_EV_BEGUN, a));
	struct sw_event move = rig_answer(&rig, SW_EV_MOVE, a);
	move.mask = 1;
	rig_event(&rig, 4, move);
	assert_string_equal(rig_place(&rig, a), "0:1");
	assert_true(works(&rig, a) && works(&rig, b));
	assert_int_not_equal(card_in(&rig, a)->room, card_in(&rig, b)->room);
	rig_close(&rig);
}

/* Aim: under srtf the shortest works at once and the other stands still on its GPU, in the same
 * run; afterwards it goes on. */
static void test_srtf_preempts_in_place(void **state)
{
	(void)state;
	struct rig rig;
	open_salus(&rig, one, 1, (const char *const[]){"order=srtf", "lanes=1", NULL});
	uint32_t longer = submit_job(&rig, 0, 10, 10, 1000), shorter = submit_job(&rig, 100, 10, 10, 100);
	assert_true(works(&rig, shorter) && rig_runs(&rig, longer) && rig_job(&rig, longer)->paused);
	rig_finish(&rig, 200, shorter);
	assert_true(works(&rig, longer));
	assert_int_equal(sw_job_remaining(sw_engine_view(rig.engine), rig_job(&rig, longer)), 900 * SW_NS_PER_S);
	assert_int_equal(rig_job(&rig, longer)->preemptions + rig_job(&rig, longer)->migrations, 0);
	assert_int_equal(sw_engine_epoch(rig.engine, (struct sw_job_id){longer}), 1);
	rig_close(&rig);
}

/* Aim: under fair the time that members of a lane have worked never differs by more than one
 * turn. */
static void test_fair_spread(void **state)
{
	(void)state;
	const sw_ns turn = 10 * SW_NS_PER_S;
	struct rig rig;
	open_salus(&rig, one, 1, (const char *const[]){"order=fair", "lanes=1", "turn=10s", NULL});
	for (uint32_t j = 0; j < 5; j++)
		submit_job(&rig, 3, 5, 20, 100000);
	uint32_t turns = 0;
	for (; rig.now < 3600 * SW_NS_PER_S; turns++) {
		assert_true(rig.step.wake_at <= rig.now + turn);
		rig_step_ns(&rig, rig.step.wake_at, NULL, 0);
		sw_ns least = INT64_MAX, most = 0;
		uint32_t working = 0;
		for (uint32_t j = 0; j < 5; j++) {
			sw_ns ran = sw_job_ran(sw_engine_view(rig.engine), rig_job(&rig, j));
			least = ran < least ? ran : least;
			most = ran > most ? ran : most;
			working += works(&rig, j);
		}
		assert_int_equal(working, 1);
		assert_true(most - least <= turn);
	}
	assert_true(turns > 300);
	rig_close(&rig);
}

/* Aim: a job that does not say what it needs has its GPU for itself, and says
 * so to others that wait. */
static void test_unknown_memory(void **state)
{
	(void)state;
	struct rig rig;
	char text[200];
	open_salus(&rig, one, 1, NULL);
	uint32_t whole = rig_submit_plain(&rig, 0, 1, 100), small = submit_job(&rig, 1, 1, 1, 100);
	assert_true(works(&rig, whole));
	sw_engine_explain(rig.engine, (struct sw_job_id){small}, text, sizeof text);
	assert_non_null(strstr(text, "no others have room beside their lanes for the 1024 MiB that it keeps"));
	uint32_t other = rig_submit_plain(&rig, 2, 1, 100);
	sw_engine_explain(rig.engine, (struct sw_job_id){other}, text, sizeof text);
	assert_non_null(strstr(text, "does not say how much GPU memory"));
	rig_finish(&rig, 10, whole);
	assert_true(works(&rig, small));
	rig_close(&rig);
	/* So does one that nothing would hold. */
	struct sw_job_spec bare = rig_spec(1, 100);
	bare.gpu_memory_bytes = 2 * RIG_GIB;
	bare.cannot_pause = true;
	open_salus(&rig, one, 1, NULL);
	rig_submit(&rig, 0, &bare);
	small = submit_job(&rig, 1, 1, 1, 100);
	assert_true(works(&rig, 0) && !rig_runs(&rig, small));
	other = rig_submit(&rig, 2, &bare);
	sw_engine_explain(rig.engine, (struct sw_job_id){other}, text, sizeof text);
	assert_non_null(strstr(text, "runs without the GPU runtime"));
	assert_int_equal(rig.engine->misuses, 0);
	rig_close(&rig);
}

/* ---- anything may happen */

/* What members keep and the largest of each lane, counted anew, fit; and in each lane one works. */
static void check_room(const struct rig *rig, const struct salus_room *room, uint64_t capacity)
{
	uint64_t sizes[MEMBERS_MAX] = {0}, sum = 0;
	uint32_t working[MEMBERS_MAX] = {0};
	assert_in_range(room->count, 1, MEMBERS_MAX);
	for (uint32_t m = 0; m < room->count; m++) {
		const struct sw_job *job = rig_job(rig, room->members[m] - 1);
		assert_int_equal(job->state, SW_JOB_RUNNING);
		uint64_t needs = job->gpu_memory_bytes - sw_job_floor(job);
		sizes[room->lane[m]] = needs > sizes[room->lane[m]] ? needs : sizes[room->lane[m]];
		working[room->lane[m]] += !job->paused;
		sum += job->gpu_memory_bytes == 0 ? capacity : sw_job_floor(job);
	}
	for (uint32_t l = 0; l < MEMBERS_MAX; l++) {
		sum += sizes[l];
		assert_int_equal(working[l], l < room->lanes);
	}
	assert_int_equal(sum, room->used);
	assert_true(sum <= capacity);
}

/* Of each GPU; and that all of a room's members are on the same GPUs, and no other is. */
static void check_gpus(const struct rig *rig)
{
	const struct sw_ledger *ledger = sw_engine_ledger(rig->engine);
	for (uint32_t g = 0; g < ledger->topology->gpu_count; g++) {
		const struct sw_gpu *gpu = &ledger->gpus[g];
		if (gpu->residents == 0)
			continue;
		const struct salus_room *room = room_of(&rig->engine->view, card_in(rig, gpu->who[0])->room);
		assert_int_equal(room->count, gpu->residents);
		for (uint32_t r = 0; r < gpu->residents; r++)
			assert_int_equal(room->members[r], gpu->who[r] + 1);
		check_room(rig, room, ledger->topology->nodes[gpu->node].gpu_memory_bytes);
	}
}

static uint32_t draw_running(const struct rig *rig, struct sw_rng *rng)
{
	const struct sw_view *view = sw_engine_view(rig->engine);
	const struct sw_job *job = sw_view_next_running(view, NULL);
	for (uint64_t skip = sw_rng_below(rng, sw_view_running(view) + 1); skip > 1; skip--)
		job = sw_view_next_running(view, job);
	return job == NULL ? UINT32_MAX : job->id.v;
}

static struct sw_job_spec draw_spec(struct sw_rng *rng)
{
	struct sw_job_spec spec = rig_spec(UINT32_C(1) << sw_rng_below(rng, 3), 1 + (int64_t)sw_rng_below(rng, 1000));
	if (sw_rng_below(rng, 10) > 0)
		spec.gpu_memory_bytes = 1 + sw_rng_below(rng, 40 * RIG_GIB);
	if (sw_rng_below(rng, 5) > 0)
		spec.gpu_floor_bytes = sw_rng_below(rng, 20 * RIG_GIB);
	spec.job_class = sw_rng_below(rng, 4) == 0 ? SW_CLASS_OPPORTUNISTIC : SW_CLASS_GUARANTEED;
	spec.retries = 3;
	return spec;
}

static struct sw_event draw_event(const struct rig *rig, struct sw_rng *rng, struct sw_job_spec *spec)
{
	uint32_t running = draw_running(rig, rng), jobs = sw_engine_job_count(rig->engine);
	uint64_t what = sw_rng_below(rng, 100);
	*spec = draw_spec(rng);
	if (what < 42)
		return (struct sw_event){.kind = SW_EV_SUBMIT, .spec = spec};
	if (what < 82 && running != UINT32_MAX)
		return rig_answer(rig, SW_EV_FINISH, running);
	if (what < 86 && running != UINT32_MAX)
		return rig_answer(rig, SW_EV_FAIL, running);
	if (what < 96) {
		enum sw_event_kind kinds[] = {SW_EV_CANCEL, SW_EV_HOLD, SW_EV_RELEASE, SW_EV_RELEASE};
		uint64_t kind = sw_rng_below(rng, 4), back = sw_rng_below(rng, jobs < 60 ? jobs : 60);
		return (struct sw_event){.kind = kinds[kind], .job = {jobs - 1 - (uint32_t)back}};
	}
	enum sw_event_kind kinds[] = {SW_EV_NODE_DOWN, SW_EV_NODE_UP, SW_EV_NODE_UP, SW_EV_NODE_CLOSE, SW_EV_NODE_OPEN, SW_EV_NODE_OPEN};
	uint64_t kind = sw_rng_below(rng, 6), node = sw_rng_below(rng, 3);
	return rig_node_event(kinds[kind], (uint32_t)node);
}

/* Aim: after each of 10^5 random events, under each order, what jobs keep and their lanes fit on
 * every GPU, and one works in each lane. */
static void test_memory_is_never_promised_twice(void **state)
{
	(void)state;
	static const char *const orders[] = {"order=fair", "order=fifo", "order=srtf", "order=pack"};
	static const struct sw_topology_node nodes[] = {RIG_NODE(0, 4), RIG_NODE(0, 4), RIG_NODE(0, 2)};
	uint32_t shared = 0;
	for (size_t o = 0; o < 4; o++) {
		struct rig rig;
		struct sw_rng rng;
		struct sw_err err = {0};
		sw_rng_seed(&rng, o);
		open_salus(&rig, nodes, 3, (const char *const[]){orders[o], "lanes=3", "turn=10s", NULL});
		for (uint32_t e = 0; e < EVENTS / 4; e++) {
			struct sw_job_spec spec;
			struct sw_event event = draw_event(&rig, &rng, &spec);
			rig.now += (sw_ns)sw_rng_below(&rng, 20) * SW_NS_PER_S;
			rig_must(sw_engine_step(rig.engine, rig.now, &event, 1, &rig.step, &err), &err);
			if (e % 500 == 0)
				rig_must(sw_engine_validate(rig.engine, &err), &err);
			check_gpus(&rig);
			shared += rig.engine->paused > 0;
		}
		assert_string_equal(sw_engine_notes(rig.engine), "");
		assert_int_equal(rig.engine->misuses, 0);
		rig_close(&rig);
	}
	print_message("after %u of %u events a job was paused\n", shared, EVENTS);
	assert_true(shared > EVENTS / 4);
}

/* Aim: another policy and back: what salus finds paused or together it goes on with. */
static void test_taken_over(void **state)
{
	(void)state;
	struct rig rig;
	struct sw_err err = {0};
	open_salus(&rig, one, 1, (const char *const[]){"order=fifo", "lanes=1", NULL});
	uint32_t a = submit_job(&rig, 0, 10, 30, 1000), b = submit_job(&rig, 0, 10, 30, 1000), c = submit_job(&rig, 0, 10, 30, 1000);
	rig_must(sw_engine_set_policy(rig.engine, &sw_policy_salus, NULL, &err), &err);
	rig_tick(&rig, 1);
	assert_true(rig_runs(&rig, a) && rig_runs(&rig, b) && rig_runs(&rig, c));
	assert_int_equal(works(&rig, a) + works(&rig, b) + works(&rig, c), 1);
	rig_finish(&rig, 2, works(&rig, a) ? a : works(&rig, b) ? b : c);
	assert_int_equal(works(&rig, a) + works(&rig, b) + works(&rig, c), 2);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_lanes_are_used),
		cmocka_unit_test(test_moved_away),
		cmocka_unit_test(test_srtf_preempts_in_place),
		cmocka_unit_test(test_fair_spread),
		cmocka_unit_test(test_unknown_memory),
		cmocka_unit_test(test_memory_is_never_promised_twice),
		cmocka_unit_test(test_taken_over),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
