/* philly by hand: the request loop to the second, the levels, which jobs overtake, which lend
 * and which are preempted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "unit/core/rig.h"

static const struct sw_topology_node two_fours[] = {RIG_NODE(0, 4), RIG_NODE(0, 4)};
static const struct sw_topology_node four_fours[] = {RIG_NODE(0, 4), RIG_NODE(0, 4), RIG_NODE(0, 4), RIG_NODE(0, 4)};
static const struct sw_topology_node two_racks[] = {RIG_NODE(0, 4), RIG_NODE(0, 4), RIG_NODE(1, 4), RIG_NODE(1, 4)};
static const struct sw_topology_node ten[] = {RIG_NODE(0, 10)};
static const struct sw_topology_node uneven[] = {RIG_NODE(0, 8), RIG_NODE(0, 2), RIG_NODE(0, 2)};

static void open_philly(struct rig *rig, const struct sw_topology_node *nodes, uint32_t count, const char *const *words)
{
	rig_open(rig, nodes, count, (struct sw_engine_config){.policy = &sw_policy_philly, .terms.keeps_state = true}, words);
}

static uint32_t submit_of(struct rig *rig, int64_t at_s, uint32_t tenant, uint32_t gpus)
{
	struct sw_job_spec spec = rig_spec(gpus, 1000000);
	spec.tenant = tenant;
	return rig_submit(rig, at_s, &spec);
}

static uint32_t submit(struct rig *rig, int64_t at_s, uint32_t gpus)
{
	return submit_of(rig, at_s, 0, gpus);
}

static void set_quota(struct rig *rig, int64_t at_s, uint32_t tenant, uint32_t gpus)
{
	rig_event(rig, at_s, (struct sw_event){.kind = SW_EV_QUOTA, .tenant = tenant, .gpus = gpus});
}

static uint32_t gpus_free(const struct rig *rig)
{
	return sw_engine_ledger(rig->engine)->gpus_free;
}

/* Steps whenever the engine wants to, up to `until_s`; when the job started, or -1. */
static int64_t follow(struct rig *rig, uint32_t id, int64_t until_s)
{
	while (!rig_runs(rig, id)) {
		assert_true(rig->step.wake_at > rig->now);
		if (rig->step.wake_at > until_s * SW_NS_PER_S)
			return -1;
		rig_step_ns(rig, rig->step.wake_at, NULL, 0);
	}
	return rig_job(rig, id)->since / SW_NS_PER_S;
}

/* Fills two nodes of four so that two GPUs of each are free. */
static void fragment(struct rig *rig, uint32_t nodes)
{
	uint32_t fills[16], count = 0;
	while (gpus_free(rig) > 0)
		fills[count++] = submit(rig, 0, 2);
	assert_int_equal(count, 2 * nodes);
	for (uint32_t n = 0; n < nodes; n++)
		rig_finish(rig, 0, fills[2 * n]);
	assert_int_equal(gpus_free(rig), 2 * nodes);
}

/* ---- the request loop ---- */

/* Aim: a try lasts 150 s, the back-off 120 s, to the second; GPUs that come free in a try are taken
 * at once, in a back-off when it ends. */
static void test_loop(void **state)
{
	(void)state;
	static const struct {
		int64_t freed_s, starts_s;
	} cases[] = {{1, 1}, {149, 149}, {150, 270}, {269, 270}, {270, 270}, {419, 419}, {420, 540}, {539, 540}, {700, 810}};
	for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
		struct rig rig;
		open_philly(&rig, two_fours, 1, NULL);
		uint32_t first = submit(&rig, 0, 4), second = submit(&rig, 0, 4);
		assert_int_equal(follow(&rig, second, cases[c].freed_s - 1), -1);
		rig_finish(&rig, cases[c].freed_s, first);
		assert_int_equal(follow(&rig, second, 2000), cases[c].starts_s);
		rig_close(&rig);
	}
}

/* Aim: the engine is woken at the end of each try and each back-off, and at no other moment. */
static void test_wakes(void **state)
{
	(void)state;
	struct rig rig;
	open_philly(&rig, two_fours, 1, NULL);
	submit(&rig, 0, 4);
	submit(&rig, 0, 4);
	for (int64_t cycle = 0; cycle < 10; cycle++) {
		assert_int_equal(rig.step.wake_at, (cycle * 270 + 150) * SW_NS_PER_S);
		rig_step_ns(&rig, rig.step.wake_at, NULL, 0);
		assert_int_equal(rig.step.wake_at, (cycle + 1) * 270 * SW_NS_PER_S);
		rig_step_ns(&rig, rig.step.wake_at, NULL, 0);
	}
	rig_close(&rig);
}

/* Aim: a try holds nothing, neither while it lasts nor once it is over: others take GPUs that do
 * not suit it, and each such start is counted. */
static void test_nothing_is_held(void **state)
{
	(void)state;
	struct rig rig;
	char text[400];
	open_philly(&rig, two_fours, 2, NULL);
	fragment(&rig, 2);
	uint32_t waits = submit(&rig, 0, 4);
	assert_int_equal(gpus_free(&rig), 4);
	uint32_t in_try = submit(&rig, 100, 2);
	assert_true(rig_runs(&rig, in_try));
	rig_tick(&rig, 150);
	assert_int_equal(gpus_free(&rig), 2);
	uint32_t in_backoff = submit(&rig, 151, 2);
	assert_true(rig_runs(&rig, in_backoff) && !rig_runs(&rig, waits));
	sw_engine_explain(rig.engine, (struct sw_job_id){waits}, text, sizeof text);
	assert_string_equal(text, "it backs off for 119 s more after try 1 for 4 GPUs; it has waited 0 s for its tenant's share and 151 s "
				  "for a place, and 2 jobs have overtaken older ones");
	rig_close(&rig);
}

/* Aim: a job that has to share the rack's gaps starts after exactly `relax-after` tries in vain, by
 * default two, each of 270 s. */
static void test_relaxes_after_tries(void **state)
{
	(void)state;
	static const char *const words[][2] = {{"relax-after=1", NULL}, {"relax-after=2", NULL}, {"relax-after=5", NULL}, {NULL, NULL}};
	static const int64_t starts_s[] = {270, 540, 1350, 540};
	for (size_t w = 0; w < 4; w++) {
		struct rig rig;
		open_philly(&rig, two_fours, 2, words[w]);
		fragment(&rig, 2);
		uint32_t job = submit(&rig, 0, 4);
		assert_int_equal(follow(&rig, job, 10000), starts_s[w]);
		assert_string_equal(rig_place(&rig, job), "0:3 1:3");
		rig_close(&rig);
	}
}

/* Aim: the levels come one after the other: twice the nodes after two tries in vain, any nodes of
 * the rack after four, other racks after six. */
static void test_levels(void **state)
{
	(void)state;
	struct rig rig;
	/* One GPU free on each node of a rack: four nodes instead of one is level 2. */
	open_philly(&rig, four_fours, 4, NULL);
	uint32_t singles[16];
	for (uint32_t s = 0; s < 16; s++)
		singles[s] = submit(&rig, 0, 1);
	for (uint32_t n = 0; n < 4; n++)
		rig_finish(&rig, 0, singles[4 * n]);
	uint32_t job = submit(&rig, 0, 4);
	assert_int_equal(follow(&rig, job, 10000), 4 * 270);
	rig_close(&rig);
	/* Two on one node and one on each of two others: three nodes are too many for level 1. */
	open_philly(&rig, four_fours, 4, NULL);
	for (uint32_t s = 0; s < 16; s++)
		singles[s] = submit(&rig, 0, 1);
	for (uint32_t n = 0; n < 3; n++)
		rig_finish(&rig, 0, singles[4 * n]);
	rig_finish(&rig, 0, singles[1]);
	job = submit(&rig, 0, 4);
	assert_int_equal(follow(&rig, job, 10000), 4 * 270);
	rig_close(&rig);
	/* Two GPUs free in each of two racks: level 3. */
	open_philly(&rig, two_racks, 4, NULL);
	uint32_t fills[8];
	for (uint32_t f = 0; f < 8; f++)
		fills[f] = submit(&rig, 0, 2);
	for (uint32_t rack = 0; rack < 2; rack++)
		for (uint32_t f = 0, found = 0; f < 8 && !found; f++)
			if (rig_runs(&rig, fills[f]) && (uint32_t)(rig_place(&rig, fills[f])[0] - '0') / 2 == rack) {
				rig_finish(&rig, 0, fills[f]);
				found = 1;
			}
	assert_int_equal(gpus_free(&rig), 4);
	job = submit(&rig, 0, 4);
	assert_int_equal(follow(&rig, job, 10000), 6 * 270);
	rig_close(&rig);
}

/* Aim: with relaxing off a job waits for its locality, however long, and starts in the
 * try in which it is there. */
static void test_strict(void **state)
{
	(void)state;
	static const char *const words[] = {"relax=off", NULL};
	struct rig rig;
	open_philly(&rig, two_fours, 2, words);
	fragment(&rig, 2);
	uint32_t job = submit(&rig, 0, 4);
	assert_int_equal(follow(&rig, job, 100000), -1);
	rig_finish(&rig, 370 * 270, 1);
	assert_int_equal(follow(&rig, job, 200000), 370 * 270);
	assert_string_equal(rig_place(&rig, job), "0:f");
	rig_close(&rig);
}

/* Aim: no job waits for a locality that the cluster could not give it were it idle, not
 * even with relaxing off. */
static void test_impossible_levels_are_left_out(void **state)
{
	(void)state;
	static const char *const words[] = {"relax=off", NULL};
	struct rig rig;
	open_philly(&rig, two_racks, 4, words);
	uint32_t small = submit(&rig, 0, 1), large = submit(&rig, 1, 12);
	assert_true(rig_runs(&rig, small) && rig_runs(&rig, large));
	rig_close(&rig);
	/* 11 GPUs of nodes of up to 8 are two nodes at best, but here three. */
	open_philly(&rig, uneven, 3, words);
	small = submit(&rig, 0, 1);
	large = submit(&rig, 1, 11);
	assert_true(rig_runs(&rig, small) && rig_runs(&rig, large));
	rig_close(&rig);
}

/* Aim: a rack with more nodes that suit is taken first, and jobs of one GPU fill the
 * tightest gap of the cluster. */
static void test_choice_of_place(void **state)
{
	(void)state;
	struct rig rig;
	open_philly(&rig, two_racks, 4, NULL);
	uint32_t first = submit(&rig, 0, 4), second = submit(&rig, 1, 3), single = submit(&rig, 2, 1);
	assert_string_equal(rig_place(&rig, first), "0:f");
	assert_string_equal(rig_place(&rig, second), "2:7"); /* two nodes suit in rack 1, one in rack 0 */
	assert_string_equal(rig_place(&rig, single), "2:8");
	rig_close(&rig);
}

/* Aim: a job that was held begins its loop anew when it is let go, at the first level. */
static void test_held_and_let_go(void **state)
{
	(void)state;
	struct rig rig;
	open_philly(&rig, two_fours, 2, NULL);
	fragment(&rig, 2);
	uint32_t job = submit(&rig, 0, 4);
	rig_event(&rig, 500, (struct sw_event){.kind = SW_EV_HOLD, .job = {job}});
	rig_event(&rig, 1000, (struct sw_event){.kind = SW_EV_RELEASE, .job = {job}});
	assert_int_equal(follow(&rig, job, 10000), 1540);
	rig_close(&rig);
}

/* Aim: where many wait, none is woken so late that it misses a try, however short a try is. */
static void test_no_try_is_missed(void **state)
{
	(void)state;
	static const char *const words[] = {"acquire=1s", "backoff=2m", NULL};
	struct rig rig;
	open_philly(&rig, two_fours, 1, words);
	uint32_t first = submit(&rig, 0, 4), waits[5];
	for (uint32_t w = 0; w < 5; w++)
		waits[w] = submit(&rig, 0, 4);
	rig_finish(&rig, 10, first);
	int64_t at_s = follow(&rig, waits[0], 1000);
	assert_in_range(at_s, 121, 122);
	rig_close(&rig);
}

/* ---- shares ---- */

/* Aim: a tenant runs jobs beyond its quota on idle GPUs, and its jobs are preempted when another
 * one below its quota needs them: the one that started last first, and no more than needed; the
 * quota is there in the very decision. */
static void test_quota_comes_back(void **state)
{
	(void)state;
	struct rig rig;
	open_philly(&rig, ten, 1, NULL);
	set_quota(&rig, 0, 0, 4);
	set_quota(&rig, 0, 1, 6);
	uint32_t lent[5];
	for (uint32_t l = 0; l < 5; l++)
		lent[l] = submit_of(&rig, (int64_t)l + 1, 0, 2);
	assert_int_equal(gpus_free(&rig), 0);
	assert_int_equal(rig_job(&rig, lent[1])->job_class, SW_CLASS_GUARANTEED);
	assert_int_equal(rig_job(&rig, lent[4])->job_class, SW_CLASS_OPPORTUNISTIC);
	uint32_t mine = submit_of(&rig, 10, 1, 3);
	assert_true(rig_runs(&rig, mine));
	assert_true(rig_runs(&rig, lent[2]) && !rig_runs(&rig, lent[3]) && !rig_runs(&rig, lent[4]));
	uint32_t rest = submit_of(&rig, 20, 1, 3);
	assert_true(rig_runs(&rig, rest) && rig_runs(&rig, lent[1]) && !rig_runs(&rig, lent[2]));
	/* Its quota is used up now: one more waits, and so does the other tenant. */
	uint32_t more = submit_of(&rig, 30, 1, 1);
	assert_int_equal(follow(&rig, more, 5000), -1);
	assert_true(rig_runs(&rig, lent[0]) && rig_runs(&rig, lent[1]));
	rig_close(&rig);
}

/* Aim: below 90 % occupancy none is preempted, at 90 % one is. */
static void test_occupancy(void **state)
{
	(void)state;
	for (uint32_t used = 8; used <= 9; used++) {
		struct rig rig;
		open_philly(&rig, ten, 1, NULL);
		set_quota(&rig, 0, 0, 1);
		set_quota(&rig, 0, 1, 5);
		for (uint32_t l = 0; l < used; l++)
			submit_of(&rig, 1, 0, 1);
		uint32_t mine = submit_of(&rig, 10, 1, 3);
		assert_int_equal(follow(&rig, mine, 5000), used == 9 ? 10 : -1);
		assert_int_equal(sw_view_tenant_borrowed(sw_engine_view(rig.engine), 0), used == 9 ? 6 : 7);
		rig_close(&rig);
	}
}

static uint32_t used_by(const struct rig *rig, uint32_t tenant)
{
	const struct sw_view *view = sw_engine_view(rig->engine);
	return sw_view_tenant_held(view, tenant) + sw_view_tenant_borrowed(view, tenant);
}

/* Aim: none is preempted for a job beyond its own tenant's share, nor for one that waits only for
 * GPUs near to each other, nor where all that others have too much would not do. */
static void test_nobody_is_preempted_in_vain(void **state)
{
	(void)state;
	static const char *const words[] = {"occupancy=0.5", NULL};
	struct rig rig;
	open_philly(&rig, ten, 1, NULL);
	set_quota(&rig, 0, 0, 1);
	set_quota(&rig, 0, 1, 2);
	uint32_t large = submit_of(&rig, 1, 0, 8), mine = submit_of(&rig, 2, 1, 2), more = submit_of(&rig, 3, 1, 1);
	assert_true(rig_runs(&rig, mine));
	assert_int_equal(follow(&rig, more, 5000), -1);
	assert_true(rig_runs(&rig, large));
	rig_close(&rig);
	open_philly(&rig, two_fours, 2, words);
	set_quota(&rig, 0, 0, 1);
	set_quota(&rig, 0, 1, 4);
	fragment(&rig, 2);
	mine = submit_of(&rig, 1, 1, 4);
	assert_int_equal(follow(&rig, mine, 500), -1);
	assert_int_equal(used_by(&rig, 0), 4);
	rig_close(&rig);
	open_philly(&rig, ten, 1, NULL);
	set_quota(&rig, 0, 0, 8);
	set_quota(&rig, 0, 1, 4);
	for (uint32_t s = 0; s < 10; s++)
		submit_of(&rig, 1, 0, 1);
	mine = submit_of(&rig, 2, 1, 4);
	assert_int_equal(used_by(&rig, 0), 10);
	assert_int_equal(follow(&rig, mine, 5000), -1);
	rig_close(&rig);
}

/* Aim: a job whose memory would stay on its GPUs is not suspended for another that has no room
 * beside it; where others make too little room, nothing is stopped. */
static void test_memory_that_stays(void **state)
{
	(void)state;
	static const struct sw_topology_node four[] = {{.gpus = 4, .cpus = 8, .gpu_memory_bytes = UINT64_C(16) << 30}};
	static const struct {
		int frees; /* so many of the victims leave their GPUs, those that started first */
		uint64_t gib;
		uint32_t gpus, stopped;
	} cases[] = {{0, 0, 1, 0}, {1, 0, 1, 1}, {1, 0, 2, 0}, {3, 0, 2, 2}, {0, 6, 2, 2}, {0, 7, 1, 0}};
	for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
		struct rig rig;
		rig_open(&rig, four, 1, (struct sw_engine_config){.policy = &sw_policy_philly, .terms.moves = SW_MOVES_RESTART}, NULL);
		set_quota(&rig, 0, 0, 1);
		set_quota(&rig, 0, 1, 4);
		struct sw_job_spec victim = rig_spec(1, 1000000), mine = rig_spec(cases[c].gpus, 1000);
		victim.stop_rule = SW_STOP_SUSPEND;
		victim.gpu_memory_bytes = UINT64_C(10) << 30;
		mine.stop_rule = SW_STOP_NEVER;
		mine.tenant = 1;
		mine.gpu_memory_bytes = cases[c].gib << 30;
		for (int v = 0; v < 4; v++) {
			uint32_t id = rig_submit(&rig, 1 + v, &victim);
			struct sw_event event = rig_answer(&rig, SW_EV_KEEPS, id);
			event.gpus = true;
			event.frees = v < cases[c].frees;
			rig_event(&rig, 1 + v, event);
		}
		uint32_t job = rig_submit(&rig, 10, &mine);
		assert_int_equal(rig_runs(&rig, job), cases[c].stopped > 0);
		assert_int_equal(used_by(&rig, 0), 4 - cases[c].stopped);
		/* It waits, unless what others hold changes. */
		assert_int_equal(follow(&rig, job, 1000), cases[c].stopped > 0 ? 10 : -1);
		assert_int_equal(used_by(&rig, 0), 4 - cases[c].stopped);
		rig_close(&rig);
	}
}

static void say_keeps(struct rig *rig, int64_t at_s, uint32_t id, bool frees)
{
	struct sw_event event = rig_answer(rig, SW_EV_KEEPS, id);
	event.gpus = true;
	event.frees = frees;
	rig_event(rig, at_s, event);
}

/* Aim: a free GPU on which a suspended run holds the memory is none for a job that does not fit
 * beside it: others are stopped instead, but not where that is not enough. */
static void test_crowded_gpus(void **state)
{
	(void)state;
	static const struct sw_topology_node two[] = {
		{.gpus = 2, .cpus = 8, .memory_bytes = UINT64_C(64) << 30, .gpu_memory_bytes = UINT64_C(16) << 30}};
	static const struct {
		bool of_host; /* what is short: host memory */
		uint32_t gpus;
		bool starts;
	} cases[] = {{false, 1, true}, {false, 2, false}, {true, 1, false}, {true, 2, false}};
	for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
		struct rig rig;
		rig_open(&rig, two, 1, (struct sw_engine_config){.policy = &sw_policy_philly, .terms.moves = SW_MOVES_RESTART}, NULL);
		set_quota(&rig, 0, 0, 0);
		set_quota(&rig, 0, 1, 2);
		struct sw_job_spec lent = rig_spec(1, 1000000), mine = rig_spec(cases[c].gpus, 1000);
		lent.stop_rule = SW_STOP_SUSPEND;
		lent.host_memory_bytes = cases[c].of_host ? UINT64_C(20) << 30 : 0;
		mine.stop_rule = SW_STOP_NEVER;
		mine.tenant = 1;
		mine.host_memory_bytes = cases[c].of_host ? UINT64_C(40) << 30 : 0;
		uint32_t held = rig_submit(&rig, 0, &lent), victim = rig_submit(&rig, 0, &lent);
		assert_true(rig_runs(&rig, held) && rig_runs(&rig, victim));
		say_keeps(&rig, 1, held, cases[c].of_host);
		say_keeps(&rig, 1, victim, true);
		rig_event(&rig, 2, (struct sw_event){.kind = SW_EV_HOLD, .job = {held}});
		uint32_t job = rig_submit(&rig, 3, &mine);
		if (!cases[c].starts)
			assert_int_equal(follow(&rig, job, 3000), -1);
		assert_int_equal(rig_runs(&rig, job), cases[c].starts);
		assert_int_equal(rig_job(&rig, victim)->preemptions, cases[c].starts);
		rig_close(&rig);
	}
}

/* Aim: for a job that can only go on where it was, nothing is stopped elsewhere. */
static void test_presses_for_its_home(void **state)
{
	(void)state;
	static const struct sw_topology_node two[] = {{.gpus = 2, .cpus = 8, .gpu_memory_bytes = UINT64_C(16) << 30}};
	for (int at_home = 0; at_home < 2; at_home++) {
		struct rig rig;
		rig_open(&rig, two, 1, (struct sw_engine_config){.policy = &sw_policy_philly, .terms.moves = SW_MOVES_RESTART}, NULL);
		set_quota(&rig, 0, 0, 0);
		set_quota(&rig, 0, 1, 2);
		struct sw_job_spec lent = rig_spec(1, 1000000), mine = rig_spec(1, 1000), never = rig_spec(1, 1000000);
		lent.stop_rule = mine.stop_rule = SW_STOP_SUSPEND;
		never.stop_rule = SW_STOP_NEVER;
		mine.tenant = never.tenant = 1;
		uint32_t job = rig_submit(&rig, 0, &mine), other = rig_submit(&rig, 0, at_home ? &never : &lent);
		say_keeps(&rig, 1, job, true);
		say_keeps(&rig, 1, other, true);
		rig_event(&rig, 2, (struct sw_event){.kind = SW_EV_HOLD, .job = {job}});
		uint32_t guest = rig_submit(&rig, 3, at_home ? &lent : &never);
		assert_string_equal(rig_place(&rig, guest), "0:1");
		say_keeps(&rig, 3, guest, true);
		rig_event(&rig, 4, (struct sw_event){.kind = SW_EV_RELEASE, .job = {job}});
		if (!at_home)
			assert_int_equal(follow(&rig, job, 3000), -1);
		assert_int_equal(rig_runs(&rig, job), at_home);
		assert_int_equal(rig_job(&rig, at_home ? guest : other)->preemptions, at_home);
		rig_close(&rig);
	}
}

/* Aim: a preempted job looks for another place a second later, and finds it where the job that it
 * made room for left some. */
static void test_preempted_look_again(void **state)
{
	(void)state;
	struct rig rig;
	open_philly(&rig, ten, 1, NULL);
	set_quota(&rig, 0, 0, 1);
	set_quota(&rig, 0, 1, 3);
	uint32_t stays = submit_of(&rig, 1, 0, 5), large = submit_of(&rig, 2, 0, 4), small = submit_of(&rig, 3, 0, 1);
	uint32_t mine = submit_of(&rig, 10, 1, 3);
	assert_true(rig_runs(&rig, mine) && rig_runs(&rig, stays) && !rig_runs(&rig, large) && !rig_runs(&rig, small));
	assert_int_equal(follow(&rig, small, 1000), 11);
	assert_false(rig_runs(&rig, large));
	rig_close(&rig);
}

/* Aim: others are preempted for a job once in a try: where it insists on its locality, they would
 * come and go every second. */
static void test_presses_once_in_a_try(void **state)
{
	(void)state;
	static const char *const words[] = {"relax=off", NULL};
	struct rig rig;
	open_philly(&rig, two_fours, 2, words);
	set_quota(&rig, 0, 0, 4);
	set_quota(&rig, 0, 1, 4);
	uint32_t jobs[12];
	for (uint32_t j = 0; j < 8; j++)
		jobs[j] = submit_of(&rig, 1, 0, 1);
	for (uint32_t j = 0; j < 8; j += 2)
		rig_finish(&rig, 2, jobs[j]);
	for (uint32_t j = 8; j < 12; j++)
		jobs[j] = submit_of(&rig, 3, 0, 1);
	/* The four that are beyond the share are two on each node: their places are no
	 * place for four together. */
	uint32_t mine = submit_of(&rig, 10, 1, 4);
	assert_int_equal(gpus_free(&rig), 4);
	assert_int_equal(follow(&rig, mine, 279), -1);
	for (uint32_t j = 8; j < 12; j++)
		assert_int_equal(rig_job(&rig, jobs[j])->since, 11 * SW_NS_PER_S);
	assert_int_equal(follow(&rig, mine, 280), -1);
	assert_int_equal(gpus_free(&rig), 4);
	rig_close(&rig);
}

/* Aim: the tenant that is furthest beyond its share gives first, until another one is. */
static void test_who_gives(void **state)
{
	(void)state;
	struct rig rig;
	open_philly(&rig, ten, 1, NULL);
	set_quota(&rig, 0, 0, 1);
	set_quota(&rig, 0, 1, 1);
	set_quota(&rig, 0, 2, 8);
	for (uint32_t l = 0; l < 6; l++)
		submit_of(&rig, 1, 0, 1);
	for (uint32_t l = 0; l < 4; l++)
		submit_of(&rig, 2, 1, 1);
	uint32_t mine = submit_of(&rig, 10, 2, 2);
	assert_true(rig_runs(&rig, mine));
	assert_int_equal(used_by(&rig, 0), 4);
	assert_int_equal(used_by(&rig, 1), 4);
	submit_of(&rig, 20, 2, 6);
	assert_int_equal(used_by(&rig, 0), 1);
	assert_int_equal(used_by(&rig, 1), 1);
	rig_close(&rig);
}

/* Aim: time at the quota counts as waiting for the share, time below it as waiting for a place. */
static void test_delays(void **state)
{
	(void)state;
	struct rig rig;
	char text[400];
	open_philly(&rig, two_fours, 2, NULL);
	set_quota(&rig, 0, 0, 4);
	set_quota(&rig, 0, 1, 4);
	uint32_t first = submit_of(&rig, 0, 0, 3), second = submit_of(&rig, 0, 1, 3), third = submit_of(&rig, 10, 0, 2);
	rig_tick(&rig, 110);
	sw_engine_explain(rig.engine, (struct sw_job_id){third}, text, sizeof text);
	assert_string_equal(
		text, "its tenant holds 3 of a quota of 4 GPUs and the job needs 2 more; it wants 2 GPUs on the fewest nodes of one rack "
		      "and 2 are free; this is try 1, for 50 s more; it has waited 100 s for its tenant's share and 0 s for a place, "
		      "and 0 jobs have overtaken older ones");
	rig_event(&rig, 110, (struct sw_event){.kind = SW_EV_QUOTA, .tenant = 0, .gpus = 8});
	rig_tick(&rig, 160);
	rig_tick(&rig, 200);
	sw_engine_explain(rig.engine, (struct sw_job_id){third}, text, sizeof text);
	assert_string_equal(text,
			    "it backs off for 80 s more after try 1 for 2 GPUs; it has waited 150 s for its tenant's share and 40 s for a "
			    "place, and 0 jobs have overtaken older ones");
	rig_finish(&rig, 280, first);
	assert_int_equal(follow(&rig, third, 1000), 280);
	assert_true(rig_runs(&rig, second));
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_loop),
		cmocka_unit_test(test_wakes),
		cmocka_unit_test(test_nothing_is_held),
		cmocka_unit_test(test_relaxes_after_tries),
		cmocka_unit_test(test_levels),
		cmocka_unit_test(test_strict),
		cmocka_unit_test(test_impossible_levels_are_left_out),
		cmocka_unit_test(test_choice_of_place),
		cmocka_unit_test(test_held_and_let_go),
		cmocka_unit_test(test_no_try_is_missed),
		cmocka_unit_test(test_quota_comes_back),
		cmocka_unit_test(test_occupancy),
		cmocka_unit_test(test_nobody_is_preempted_in_vain),
		cmocka_unit_test(test_memory_that_stays),
		cmocka_unit_test(test_crowded_gpus),
		cmocka_unit_test(test_presses_for_its_home),
		cmocka_unit_test(test_preempted_look_again),
		cmocka_unit_test(test_presses_once_in_a_try),
		cmocka_unit_test(test_who_gives),
		cmocka_unit_test(test_delays),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
