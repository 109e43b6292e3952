/* sharewell by hand: which job goes first, gets a seat beside which, moves away again,
 * and loses patience when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "unit/core/rig.h"

static const struct sw_topology_node two[] = {RIG_NODE(0, 2)};
static const struct sw_topology_node four[] = {RIG_NODE(0, 4)};
static const struct sw_topology_node two_by_two[] = {RIG_NODE(0, 2), RIG_NODE(0, 2)};

enum { UNKNOWN, LIGHT, MEDIUM, HEAVY }; /* models */

/* Two light jobs do not feel each other; a medium one takes a third longer beside another; a heavy
 * one bears none. Opportunistic ones beside guaranteed ones stand still. */
static bool speeds(void *context, const uint32_t *models, const bool *guaranteed, size_t count, uint32_t *ret_speed_milli)
{
	(void)context;
	uint32_t heaviest = 0, guarantees = 0;
	for (size_t i = 0; i < count; i++) {
		if (models[i] == UNKNOWN)
			return false;
		heaviest = models[i] > heaviest ? models[i] : heaviest;
		guarantees += guaranteed[i];
	}
	for (size_t i = 0; i < count; i++)
		ret_speed_milli[i] = guarantees > 0 && !guaranteed[i] ? 1 : heaviest == LIGHT ? 1000 : heaviest == MEDIUM ? 750 : 400;
	return true;
}

/* The same, but a guaranteed job leaves two fifths of the time to an opportunistic
 * one, and pays 2 % for it. */
static bool gated(void *context, const uint32_t *models, const bool *guaranteed, size_t count, uint32_t *ret_speed_milli)
{
	bool all_alike = true, known = speeds(context, models, guaranteed, count, ret_speed_milli);
	for (size_t i = 0; i < count; i++)
		all_alike &= guaranteed[i] == guaranteed[0];
	for (size_t i = 0; i < count && !all_alike; i++)
		ret_speed_milli[i] = guaranteed[i] ? 980 : 400;
	return known;
}

static void open_with(struct rig *rig, const struct sw_topology_node *nodes, uint32_t count, const char *const *words)
{
	rig_open(rig, nodes, count,
		 (struct sw_engine_config){
			 .policy = &sw_policy_sharewell, .terms.keeps_state = true, .terms.tells_speed = true, .predictor = {NULL, speeds}},
		 words);
}

static uint32_t submit(struct rig *rig, int64_t at_s, uint32_t gpus, uint32_t model, uint8_t job_class)
{
	struct sw_job_spec spec = rig_spec(gpus, 100000);
	spec.gpu_memory_bytes = 10 * RIG_GIB;
	spec.model = model;
	spec.job_class = job_class;
	return rig_submit(rig, at_s, &spec);
}

static uint32_t job(struct rig *rig, int64_t at_s, uint32_t gpus, uint32_t model)
{
	return submit(rig, at_s, gpus, model, SW_CLASS_GUARANTEED);
}

static bool meet(const struct rig *rig, uint32_t a, uint32_t b)
{
	return sw_jobs_meet(sw_engine_view(rig->engine), rig_job(rig, a), rig_job(rig, b));
}

/* Aim: of two running jobs, the one with which a newcomer does most gets it as a guest; a third
 * finds no seat, since pairs are pairs. */
static void test_seat_beside_the_best(void **state)
{
	(void)state;
	struct rig rig;
	open_with(&rig, two, 1, NULL);
	uint32_t medium = job(&rig, 0, 1, MEDIUM), light = job(&rig, 1, 1, LIGHT), guest = job(&rig, 2, 1, LIGHT);
	assert_true(rig_runs(&rig, guest));
	assert_true(meet(&rig, guest, light));
	assert_false(meet(&rig, guest, medium));
	uint32_t next = job(&rig, 3, 1, LIGHT), last = job(&rig, 4, 1, LIGHT);
	assert_true(meet(&rig, next, medium));
	assert_int_equal(rig_state(&rig, last), SW_JOB_WAITING);
	rig_close(&rig);
}

/* Aim: no job sits beside one that does not bear it, one that is not known, one of another size, or
 * beside one of another class that leaves it no time; and with slow=1 beside none. */
static void test_no_seat(void **state)
{
	(void)state;
	static const struct {
		uint32_t host_gpus, host, guest;
		uint8_t guest_class;
		const char *words[2];
	} cases[] = {
		{2, HEAVY, LIGHT, SW_CLASS_GUARANTEED, {NULL}},
		{2, UNKNOWN, LIGHT, SW_CLASS_GUARANTEED, {NULL}},
		{2, LIGHT, UNKNOWN, SW_CLASS_GUARANTEED, {NULL}},
		{1, LIGHT, LIGHT, SW_CLASS_GUARANTEED, {NULL}},
		{2, LIGHT, LIGHT, SW_CLASS_OPPORTUNISTIC, {NULL}},
		{2, LIGHT, LIGHT, SW_CLASS_GUARANTEED, {"slow=1", NULL}},
		{2, MEDIUM, LIGHT, SW_CLASS_GUARANTEED, {"worth=1.6", NULL}},
		{2, MEDIUM, LIGHT, SW_CLASS_GUARANTEED, {"slow=1.3", NULL}},
	};
	for (size_t c = 0; c < RIG_COUNT(cases); c++) {
		struct rig rig;
		open_with(&rig, two, 1, cases[c].words);
		uint32_t host = job(&rig, 0, cases[c].host_gpus, cases[c].host);
		uint32_t guest = submit(&rig, 1, 2, cases[c].guest, cases[c].guest_class);
		assert_true(rig_runs(&rig, host));
		if (rig_state(&rig, guest) != SW_JOB_WAITING)
			fail_msg("case %zu: it runs", c);
		rig_close(&rig);
	}
}

static void open_gated(struct rig *rig, const char *const *words)
{
	rig_open(rig, two, 1,
		 (struct sw_engine_config){
			 .policy = &sw_policy_sharewell, .terms.keeps_state = true, .terms.tells_speed = true, .predictor = {NULL, gated}},
		 words);
}

/* Aim: an opportunistic job that finds no place runs in the time that a guaranteed one leaves idle,
 * unless that would be worth too little, the host would feel it, or no job shares. */
static void test_fills(void **state)
{
	(void)state;
	static const struct {
		const char *words[2];
		bool runs;
	} cases[] = {{{NULL}, true},
		     {{"slow=1.03", NULL}, true},
		     {{"slow=1.01", NULL}, false},
		     {{"worth=1.4", NULL}, false},
		     {{"slow=1", NULL}, false}};
	for (size_t c = 0; c < RIG_COUNT(cases); c++) {
		struct rig rig;
		open_gated(&rig, cases[c].words);
		uint32_t host = job(&rig, 0, 2, HEAVY), filler = submit(&rig, 1, 2, LIGHT, SW_CLASS_OPPORTUNISTIC);
		assert_true(rig_runs(&rig, host));
		if (rig_runs(&rig, filler) != cases[c].runs)
			fail_msg("case %zu", c);
		uint32_t second = submit(&rig, 2, 2, LIGHT, SW_CLASS_OPPORTUNISTIC);
		assert_int_equal(rig_state(&rig, second), SW_JOB_WAITING);
		rig_close(&rig);
	}
}

/* Aim: a guaranteed job takes the place of one that fills; the other waits
 * again, and gets it back. */
static void test_guest_takes_the_place_of_a_filler(void **state)
{
	(void)state;
	struct rig rig;
	open_gated(&rig, NULL);
	uint32_t host = job(&rig, 0, 2, LIGHT), filler = submit(&rig, 1, 2, LIGHT, SW_CLASS_OPPORTUNISTIC);
	assert_true(meet(&rig, host, filler));
	uint32_t guest = job(&rig, 2, 2, MEDIUM);
	assert_true(meet(&rig, host, guest));
	assert_false(rig_runs(&rig, filler));
	rig_finish(&rig, 10, guest);
	assert_true(rig_runs(&rig, host));
	assert_true(meet(&rig, host, filler));
	rig_close(&rig);
}

/* Aim: a job that takes the GPUs of a guaranteed job takes those of its filler too; one whose host
 * has ended is behind every guaranteed job again. */
static void test_filler_goes_with_its_host(void **state)
{
	(void)state;
	for (int host_ends = 0; host_ends < 2; host_ends++) {
		struct rig rig;
		open_gated(&rig, NULL);
		uint32_t host = job(&rig, 0, 2, LIGHT), filler = submit(&rig, 1, 2, LIGHT, SW_CLASS_OPPORTUNISTIC);
		if (host_ends)
			rig_finish(&rig, 2, host);
		else
			rig_tick(&rig, 700); /* it has left the first queue */
		assert_true(rig_runs(&rig, filler));
		uint32_t first = job(&rig, 701, 2, HEAVY);
		assert_true(rig_runs(&rig, first));
		assert_false(rig_runs(&rig, host));
		/* It fills beside the jobs that are there now. */
		rig_tick(&rig, 703);
		assert_true(meet(&rig, first, filler));
		rig_close(&rig);
	}
}

/* Aim: a filler moves to free GPUs, even if a job waits that cannot use them. */
static void test_fillers_move_first(void **state)
{
	(void)state;
	struct rig rig;
	open_gated(&rig, NULL);
	uint32_t a = job(&rig, 0, 1, HEAVY), b = job(&rig, 0, 1, HEAVY), filler = submit(&rig, 1, 1, LIGHT, SW_CLASS_OPPORTUNISTIC);
	uint32_t wide = job(&rig, 2, 2, HEAVY), host = meet(&rig, a, filler) ? a : b;
	assert_true(meet(&rig, host, filler));
	rig_finish(&rig, 3, host == a ? b : a);
	assert_int_equal(rig_state(&rig, wide), SW_JOB_WAITING);
	assert_true(rig_runs(&rig, filler));
	assert_false(meet(&rig, host, filler));
	rig_close(&rig);
}

/* Aim: a job that has filled and is alone on GPUs of its own now is behind every guaranteed job
 * again, whichever way it came to be alone. */
static void test_parted_filler_yields(void **state)
{
	(void)state;
	struct rig rig;
	open_gated(&rig, NULL);
	uint32_t a = job(&rig, 0, 1, HEAVY), b = job(&rig, 0, 1, HEAVY), filler = submit(&rig, 1, 1, LIGHT, SW_CLASS_OPPORTUNISTIC);
	uint32_t host = meet(&rig, a, filler) ? a : b;
	rig_finish(&rig, 2, host == a ? b : a);
	assert_true(rig_runs(&rig, filler));
	assert_false(meet(&rig, host, filler));
	uint32_t next = job(&rig, 3, 1, HEAVY);
	assert_true(rig_runs(&rig, next));
	assert_true(rig_runs(&rig, host));
	rig_close(&rig);
}

/* Aim: a guest moves to GPUs that become free while none waits for them, and both are hosts
 * then. */
static void test_guests_spread(void **state)
{
	(void)state;
	struct rig rig;
	open_with(&rig, two, 1, NULL);
	uint32_t a = job(&rig, 0, 1, HEAVY), b = job(&rig, 0, 1, LIGHT), guest = job(&rig, 1, 1, LIGHT);
	assert_true(meet(&rig, b, guest));
	rig_finish(&rig, 2, a);
	assert_false(meet(&rig, b, guest));
	assert_true(rig_runs(&rig, guest));
	uint32_t third = job(&rig, 3, 1, LIGHT), fourth = job(&rig, 3, 1, LIGHT);
	assert_true(rig_runs(&rig, third));
	assert_true(rig_runs(&rig, fourth));
	rig_close(&rig);
}

/* Aim: a job that got a guest, and then is lifted in vain for another in the same decision,
 * runs on beside its guest. */
static void test_host_is_not_stopped_in_vain(void **state)
{
	(void)state;
	static const struct sw_topology_node three[] = {RIG_NODE(0, 2), RIG_NODE(0, 2), RIG_NODE(0, 2)};
	struct rig rig;
	uint32_t hosts[3], others[3];
	open_with(&rig, three, 3, NULL);
	for (int node = 0; node < 3; node++) {
		hosts[node] = job(&rig, 0, 1, node == 0 ? LIGHT : HEAVY);
		others[node] = job(&rig, 0, 1, HEAVY);
		assert_int_equal(rig_place(&rig, hosts[node])[0], '0' + node);
	}
	for (int node = 0; node < 3; node++)
		rig_finish(&rig, 1, others[node]);
	rig_tick(&rig, 700); /* the hosts have left the first queue */
	for (int node = 0; node < 3; node++)
		(void)job(&rig, 700, 1, HEAVY);
	/* GPUs of three hosts are enough for two, but not on one node. */
	struct sw_job_spec wide = rig_spec(2, 100), guest = rig_spec(1, 100);
	wide.gpu_memory_bytes = guest.gpu_memory_bytes = 10 * RIG_GIB;
	wide.model = HEAVY;
	guest.model = LIGHT;
	rig_step(&rig, 701,
		 (struct sw_event[]){{.kind = SW_EV_SUBMIT, .spec = &wide},
				     {.kind = SW_EV_SUBMIT, .spec = &guest},
				     {.kind = SW_EV_SUBMIT, .spec = &wide}},
		 3);
	uint32_t came = sw_engine_job_count(rig.engine) - 2;
	assert_true(rig_runs(&rig, came));
	assert_true(rig_runs(&rig, hosts[0]));
	assert_true(meet(&rig, came, hosts[0]));
	rig_close(&rig);
}

/* Aim: where a move is a start anew, a guest stays where it is. */
static void test_guests_that_would_start_anew_stay(void **state)
{
	(void)state;
	struct rig rig;
	rig_open(&rig, two, 1,
		 (struct sw_engine_config){.policy = &sw_policy_sharewell, .terms.moves = SW_MOVES_RESTART, .predictor = {NULL, speeds}},
		 NULL);
	uint32_t a = job(&rig, 0, 1, HEAVY), b = job(&rig, 0, 1, LIGHT), guest = job(&rig, 1, 1, LIGHT);
	assert_true(meet(&rig, b, guest));
	rig_finish(&rig, 2, a);
	assert_true(meet(&rig, b, guest));
	rig_close(&rig);
}

/* Aim: a job that has used up the first queue gives way to a newcomer, the last in the order first;
 * one that has not stays. */
static void test_queues(void **state)
{
	(void)state;
	struct rig rig;
	open_with(&rig, two, 1, (const char *const[]){"first=100s", NULL});
	uint32_t first = job(&rig, 0, 1, HEAVY), second = job(&rig, 50, 1, HEAVY);
	rig_tick(&rig, 120);
	uint32_t third = job(&rig, 121, 1, HEAVY), fourth = job(&rig, 122, 1, HEAVY);
	assert_false(rig_runs(&rig, first)); /* 121 GPU-seconds: the second queue */
	assert_true(rig_runs(&rig, second)); /* 71 */
	assert_true(rig_runs(&rig, third));
	assert_false(rig_runs(&rig, fourth));
	rig_close(&rig);
}

/* Aim: where history predicts what is left, that decides: a job that ran for long but is nearly
 * done keeps its GPUs before one that will run for long. */
static void test_prediction_decides(void **state)
{
	(void)state;
	struct rig rig;
	struct sw_job_spec spec = rig_spec(2, 90);
	open_with(&rig, two, 1, (const char *const[]){"first=100s", NULL});
	spec.knowledge = SW_PREDICTED;
	spec.work_ns = 5000 * SW_NS_PER_S;
	uint32_t longer = rig_submit(&rig, 0, &spec);
	spec.work_ns = 40 * SW_NS_PER_S;
	uint32_t shorter = rig_submit(&rig, 1, &spec);
	assert_false(rig_runs(&rig, longer));
	assert_true(rig_runs(&rig, shorter));
	rig_close(&rig);
}

/* Aim: opportunistic jobs run where GPUs are idle and give way to any other, however much that one
 * has used; they never take GPUs from it. */
static void test_opportunistic_jobs_yield(void **state)
{
	(void)state;
	struct rig rig;
	open_with(&rig, two, 1, (const char *const[]){"first=100s", NULL});
	uint32_t old = job(&rig, 0, 2, HEAVY);
	rig_tick(&rig, 60);
	rig_event(&rig, 61, (struct sw_event){.kind = SW_EV_HOLD, .job = {old}});
	uint32_t idle = submit(&rig, 62, 1, HEAVY, SW_CLASS_OPPORTUNISTIC);
	assert_true(rig_runs(&rig, idle));
	rig_event(&rig, 63, (struct sw_event){.kind = SW_EV_RELEASE, .job = {old}});
	assert_true(rig_runs(&rig, old)); /* in the second queue, but by right */
	assert_false(rig_runs(&rig, idle));
	rig_tick(&rig, 10000);
	assert_true(rig_runs(&rig, old));
	rig_close(&rig);
}

/* Aim: a job of all GPUs does not starve behind a stream of small new ones: at its patience it is
 * ahead of all, and runs as soon as they can be stopped. */
static void test_patience(void **state)
{
	(void)state;
	struct rig rig;
	open_with(&rig, four, 1, (const char *const[]){"patience=1000s", "first=10h", NULL});
	for (int i = 0; i < 4; i++)
		job(&rig, 0, 1, HEAVY);
	uint32_t large = job(&rig, 1, 4, HEAVY);
	for (int64_t t = 100; t < 1000; t += 100) {
		job(&rig, t, 1, HEAVY);
		assert_false(rig_runs(&rig, large));
	}
	rig_tick(&rig, 1001);
	assert_true(rig_runs(&rig, large));
	assert_int_equal(rig_job(&rig, large)->promotions, 1);
	rig_close(&rig);
}

/* Aim: a job that is held back loses no patience meanwhile, and has as much as any
 * other once it is released. */
static void test_patience_of_held_jobs(void **state)
{
	(void)state;
	struct rig rig;
	open_with(&rig, two, 1, (const char *const[]){"patience=1000s", "first=10h", NULL});
	uint32_t held = job(&rig, 0, 2, HEAVY);
	rig_event(&rig, 1, (struct sw_event){.kind = SW_EV_HOLD, .job = {held}});
	uint32_t other = job(&rig, 2, 2, HEAVY);
	rig_tick(&rig, 1500);
	rig_event(&rig, 2400, (struct sw_event){.kind = SW_EV_RELEASE, .job = {held}});
	rig_tick(&rig, 3300);
	assert_true(rig_runs(&rig, other));
	for (int64_t t = 3400; t < 3600; t += 60)
		rig_tick(&rig, t);
	assert_true(rig_runs(&rig, held));
	rig_close(&rig);
}

/* Aim: a job waits for GPUs that are near to each other, but not longer than `locality`. */
static void test_locality(void **state)
{
	(void)state;
	struct rig rig;
	open_with(&rig, two_by_two, 2, (const char *const[]){"locality=300s", NULL});
	uint32_t hosts[4];
	for (int i = 0; i < 4; i++)
		hosts[i] = job(&rig, 0, 1, HEAVY);
	/* One on each node goes. */
	bool gone[2] = {false, false};
	for (int i = 0; i < 4; i++) {
		int node = rig_place(&rig, hosts[i])[0] - '0';
		if (!gone[node])
			rig_finish(&rig, 1, hosts[i]);
		gone[node] = true;
	}
	uint32_t gang = job(&rig, 2, 2, HEAVY);
	assert_false(rig_runs(&rig, gang));
	rig_tick(&rig, 250);
	assert_false(rig_runs(&rig, gang));
	rig_tick(&rig, 2 + 300 + 60);
	assert_true(rig_runs(&rig, gang));
	rig_close(&rig);
}

/* Aim: where nothing runs, none waits for a place that there is not: two GPUs of two nodes, of
 * which the others are down. */
static void test_locality_of_the_only_job(void **state)
{
	(void)state;
	static const struct sw_topology_node nodes[] = {RIG_NODE(0, 2), RIG_NODE(0, 1), RIG_NODE(0, 1)};
	struct rig rig;
	open_with(&rig, nodes, 3, NULL);
	rig_event(&rig, 0, rig_node_event(SW_EV_NODE_DOWN, 0));
	uint32_t gang = job(&rig, 1, 2, HEAVY);
	assert_true(rig_runs(&rig, gang));
	rig_close(&rig);
}

/* Aim: a job that would take GPUs of jobs that are still protected is tried again as soon as these
 * are not, though nothing else happens. */
static void test_protected_jobs_give_way_later(void **state)
{
	(void)state;
	struct rig rig;
	rig_open(
		&rig, two, 1,
		(struct sw_engine_config){.policy = &sw_policy_sharewell, .terms.keeps_state = true, .terms.quantum_ns = 600 * SW_NS_PER_S},
		(const char *const[]){"first=100s", NULL});
	uint32_t old = job(&rig, 0, 2, HEAVY);
	rig_tick(&rig, 60); /* 120 GPU-seconds: the second queue */
	uint32_t young = job(&rig, 200, 2, HEAVY);
	assert_false(rig_runs(&rig, young));
	rig_tick(&rig, 300);
	assert_false(rig_runs(&rig, young));
	assert_int_equal(rig.step.wake_at, 600 * SW_NS_PER_S);
	rig_tick(&rig, 600);
	assert_true(rig_runs(&rig, young));
	assert_false(rig_runs(&rig, old));
	rig_close(&rig);
}

/* Tells how fast a run gets on. */
static void measure(struct rig *rig, int64_t at_s, uint32_t id, uint32_t speed_milli)
{
	struct sw_event event = rig_answer(rig, SW_EV_PROGRESS, id);
	event.left_ns = 1000 * SW_NS_PER_S;
	event.as_of = at_s * SW_NS_PER_S;
	event.ends_at = event.as_of + event.left_ns * 1000 / speed_milli;
	rig_event(rig, at_s, event);
}

/* Aim: a pair that is slower than predicted at two reviews is parted, and their models do not meet
 * again; one that is as fast as predicted stays. */
static void test_bad_pairs_part(void **state)
{
	(void)state;
	for (int bad = 0; bad < 2; bad++) {
		struct rig rig;
		open_with(&rig, two, 1, (const char *const[]){"first=10h", NULL});
		uint32_t host = job(&rig, 0, 1, LIGHT), other = job(&rig, 0, 1, HEAVY);
		measure(&rig, 1, host, 1000);
		uint32_t guest = job(&rig, 2, 1, LIGHT);
		assert_true(meet(&rig, host, guest));
		for (int64_t t = 200; t < 500; t += 70)
			measure(&rig, t, guest, bad ? 700 : 980);
		assert_int_equal(rig_runs(&rig, guest), !bad);
		assert_true(rig_runs(&rig, host));
		uint32_t next = job(&rig, 600, 1, LIGHT);
		assert_false(rig_runs(&rig, next));
		(void)other;
		rig_close(&rig);
	}
}

/* Aim: a job of class auto over its tenant's quota runs as an opportunistic one; any other over
 * quota waits, until the quota grows. */
static void test_quota(void **state)
{
	(void)state;
	struct rig rig;
	open_with(&rig, two, 1, NULL);
	rig_event(&rig, 0, (struct sw_event){.kind = SW_EV_QUOTA, .tenant = 0, .gpus = 0});
	uint32_t plain = job(&rig, 1, 1, LIGHT);
	assert_false(rig_runs(&rig, plain));
	struct sw_job_spec spec = rig_spec(1, 1000);
	spec.is_auto = true;
	uint32_t either = rig_submit(&rig, 2, &spec);
	assert_true(rig_runs(&rig, either));
	assert_int_equal(rig_job(&rig, either)->job_class, SW_CLASS_OPPORTUNISTIC);
	rig_event(&rig, 3, (struct sw_event){.kind = SW_EV_QUOTA, .tenant = 0, .gpus = 1});
	assert_true(rig_runs(&rig, plain));
	rig_close(&rig);
}

/* Aim: a job that would have to start anew keeps its GPUs before newcomers, but not before one that
 * has lost its patience. */
static void test_who_would_start_anew_is_spared(void **state)
{
	(void)state;
	struct rig rig;
	rig_open(&rig, two, 1, (struct sw_engine_config){.policy = &sw_policy_sharewell},
		 (const char *const[]){"first=10s", "patience=1000s", NULL});
	uint32_t old = job(&rig, 0, 2, HEAVY);
	rig_tick(&rig, 60);
	uint32_t newcomer = job(&rig, 61, 2, HEAVY);
	rig_tick(&rig, 900);
	assert_true(rig_runs(&rig, old));
	for (int64_t t = 1000; t < 1200; t += 60)
		rig_tick(&rig, t);
	assert_true(rig_runs(&rig, newcomer));
	rig_close(&rig);
}

static void assert_explained(struct rig *rig, uint32_t id, const char *expected)
{
	char text[512];
	sw_engine_explain(rig->engine, (struct sw_job_id){id}, text, sizeof text);
	assert_string_equal(text, expected);
}

/* Aim: a waiting job is told its queue, what is free and whether near, and why it has no seat. */
static void test_explain(void **state)
{
	(void)state;
	struct rig rig;
	open_with(&rig, two, 1, (const char *const[]){"patience=1000s", NULL});
	job(&rig, 0, 2, HEAVY);
	uint32_t unknown = job(&rig, 1, 1, UNKNOWN), heavy = submit(&rig, 1, 1, HEAVY, SW_CLASS_OPPORTUNISTIC);
	assert_explained(&rig, unknown,
			 "it is in queue 1, behind jobs that likely need less GPU time; it needs 1 GPU, 0 are free, and it has no profile "
			 "yet: it shares a GPU only after a first run");
	assert_explained(
		&rig, heavy,
		"it is in opportunistic queue 1, behind jobs that likely need less GPU time; it needs 1 GPU, 0 are free, and no running "
		"job of its size would share its GPUs well with it");
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_seat_beside_the_best),
		cmocka_unit_test(test_no_seat),
		cmocka_unit_test(test_fills),
		cmocka_unit_test(test_guest_takes_the_place_of_a_filler),
		cmocka_unit_test(test_filler_goes_with_its_host),
		cmocka_unit_test(test_fillers_move_first),
		cmocka_unit_test(test_parted_filler_yields),
		cmocka_unit_test(test_guests_spread),
		cmocka_unit_test(test_host_is_not_stopped_in_vain),
		cmocka_unit_test(test_guests_that_would_start_anew_stay),
		cmocka_unit_test(test_queues),
		cmocka_unit_test(test_prediction_decides),
		cmocka_unit_test(test_opportunistic_jobs_yield),
		cmocka_unit_test(test_patience),
		cmocka_unit_test(test_patience_of_held_jobs),
		cmocka_unit_test(test_locality),
		cmocka_unit_test(test_locality_of_the_only_job),
		cmocka_unit_test(test_protected_jobs_give_way_later),
		cmocka_unit_test(test_bad_pairs_part),
		cmocka_unit_test(test_quota),
		cmocka_unit_test(test_who_would_start_anew_is_spared),
		cmocka_unit_test(test_explain),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
