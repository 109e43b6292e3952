/* bigbrain by hand: where whole jobs go, which are split and which wait, when a split job becomes
 * whole, and what it says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/rng.h"
#include "split/cut.h"
#include "unit/core/rig.h"

static const struct sw_topology_node two[] = {RIG_NODE(0, 2)};
static const struct sw_topology_node four[] = {RIG_NODE(0, 2), RIG_NODE(0, 2)};
static struct sw_cut cut;

static void open_bigbrain(struct rig *rig, const struct sw_topology_node *nodes, uint32_t count, uint32_t price_milli,
			  const char *const *words)
{
	cut = sw_cut_make(price_milli);
	rig_open(rig, nodes, count,
		 (struct sw_engine_config){
			 .policy = &sw_policy_bigbrain, .terms.keeps_state = true, .splitter = price_milli > 0 ? &cut.splitter : NULL},
		 words);
}

/* A job of one GPU that uses half of it. */
static uint32_t submit(struct rig *rig, int64_t at_s, uint64_t gib, int64_t work_s)
{
	struct sw_job_spec spec = rig_spec(1, work_s);
	spec.gpu_memory_bytes = gib * RIG_GIB;
	spec.use_milli = 500;
	return rig_submit(rig, at_s, &spec);
}

static uint32_t split_milli(const struct rig *rig, uint32_t id)
{
	return sw_job_split_milli(sw_engine_view(rig->engine), rig_job(rig, id));
}

/* Aim: whole jobs go to the GPU with the fewest residents, of equal ones to the one with the most
 * memory left, and there are k on each at most. */
static void test_where_whole_jobs_go(void **state)
{
	(void)state;
	struct rig rig;
	open_bigbrain(&rig, two, 1, 0, (const char *const[]){"k=3", NULL});
	uint32_t jobs[8];
	static const uint64_t gib[] = {20, 10, 5, 5, 5, 5, 5, 5};
	for (uint32_t j = 0; j < 8; j++)
		jobs[j] = submit(&rig, j, gib[j], 1000);
	static const char *const places[] = {"0:1", "0:2", "0:2", "0:1", "0:2", "0:1", "", ""};
	for (uint32_t j = 0; j < 8; j++)
		assert_string_equal(rig_place(&rig, jobs[j]), places[j]);
	rig_finish(&rig, 9, jobs[4]);
	assert_string_equal(rig_place(&rig, jobs[6]), "0:2");
	assert_int_equal(rig_state(&rig, jobs[7]), SW_JOB_WAITING);
	rig_close(&rig);
}

/* Aim: one more job needs its memory, a context for every process there, and a part of the GPU that
 * stays free; to the byte. */
static void test_head_room(void **state)
{
	(void)state;
	/* 80 GiB less 4 for the reserve and 2 x 1.25 for contexts leave 73.5 for both. */
	for (uint64_t extra = 0; extra < 2; extra++) {
		struct rig rig;
		open_bigbrain(&rig, (const struct sw_topology_node[]){RIG_NODE(0, 1)}, 1, 0,
			      (const char *const[]){"context=1.25", "reserve=0.05", NULL});
		uint32_t first = submit(&rig, 0, 40, 1000);
		struct sw_job_spec spec = rig_spec(1, 1000);
		uint64_t context = 1250 * RIG_GIB / 1000, reserve = 80 * RIG_GIB / 1000 * 50;
		spec.gpu_memory_bytes = 40 * RIG_GIB - 2 * context - reserve + extra;
		uint32_t second = rig_submit(&rig, 1, &spec);
		assert_true(rig_runs(&rig, first));
		assert_int_equal(rig_runs(&rig, second), extra == 0);
		rig_close(&rig);
	}
	/* A job that fills a GPU gets an idle one all the same. */
	struct rig rig;
	open_bigbrain(&rig, two, 1, 0, NULL);
	uint32_t full = submit(&rig, 0, 80, 1000);
	assert_true(rig_runs(&rig, full));
	rig_close(&rig);
}

/* Aim: the first job that finds no place holds up the others, unless they may overtake; a job over
 * its quota holds up none. */
static void test_line(void **state)
{
	(void)state;
	for (int skip = 0; skip < 2; skip++) {
		struct rig rig;
		open_bigbrain(&rig, two, 1, 0, (const char *const[]){skip ? "skip=on" : "skip=off", NULL});
		submit(&rig, 0, 40, 1000);
		submit(&rig, 0, 40, 1000);
		uint32_t large = submit(&rig, 1, 70, 1000), small = submit(&rig, 2, 10, 1000);
		assert_int_equal(rig_state(&rig, large), SW_JOB_WAITING);
		assert_int_equal(rig_runs(&rig, small), skip);
		rig_close(&rig);
	}
	struct rig rig;
	open_bigbrain(&rig, two, 1, 0, NULL);
	rig_event(&rig, 0, (struct sw_event){.kind = SW_EV_QUOTA, .tenant = 1, .gpus = 0});
	struct sw_job_spec spec = rig_spec(1, 1000);
	spec.gpu_memory_bytes = RIG_GIB;
	spec.tenant = 1;
	uint32_t poor = rig_submit(&rig, 1, &spec), other = submit(&rig, 2, 1, 1000);
	assert_int_equal(rig_state(&rig, poor), SW_JOB_WAITING);
	assert_true(rig_runs(&rig, other));
	rig_event(&rig, 3, (struct sw_event){.kind = SW_EV_QUOTA, .tenant = 1, .gpus = 1});
	assert_true(rig_runs(&rig, poor));
	rig_close(&rig);
}

/* Aim: jobs of several GPUs and those that do not say their memory take free GPUs, and others go
 * beside the former only. */
static void test_gangs_and_unknown_memory(void **state)
{
	(void)state;
	struct rig rig;
	open_bigbrain(&rig, four, 2, 0, NULL);
	struct sw_job_spec gang = rig_spec(2, 1000);
	gang.gpu_memory_bytes = 10 * RIG_GIB;
	uint32_t first = rig_submit(&rig, 0, &gang), unknown = rig_submit_plain(&rig, 1, 1, 1000), alone = submit(&rig, 2, 10, 1000);
	assert_int_equal(rig_job(&rig, first)->gpus_held, 2);
	assert_true(rig_runs(&rig, unknown));
	/* One each beside what has room: the gang's two GPUs and the last one. */
	uint32_t beside[3];
	for (uint32_t j = 0; j < 3; j++)
		beside[j] = submit(&rig, 3 + j, 10, 1000);
	uint32_t last = submit(&rig, 9, 10, 1000);
	const struct sw_view *view = sw_engine_view(rig.engine);
	for (uint32_t j = 0; j < 3; j++) {
		assert_true(rig_runs(&rig, beside[j]));
		assert_false(sw_jobs_meet(view, rig_job(&rig, beside[j]), rig_job(&rig, unknown)));
	}
	assert_true(rig_runs(&rig, alone));
	assert_int_equal(rig_state(&rig, last), SW_JOB_WAITING);
	uint32_t second = rig_submit(&rig, 10, &gang);
	rig_finish(&rig, 11, unknown);
	assert_true(rig_runs(&rig, last));
	assert_int_equal(rig_state(&rig, second), SW_JOB_WAITING);
	rig_close(&rig);
}

/* Aim: a job of several GPUs that finds no free ones goes beside others on one node, k on each GPU
 * at most, and says so when it cannot. */
static void test_gangs_share(void **state)
{
	(void)state;
	struct rig rig;
	char text[400];
	open_bigbrain(&rig, four, 2, 1100, NULL);
	for (uint32_t j = 0; j < 3; j++)
		submit(&rig, j, 10, 1000);
	struct sw_job_spec gang = rig_spec(2, 1000);
	gang.gpu_memory_bytes = 10 * RIG_GIB;
	uint32_t first = rig_submit(&rig, 3, &gang), second = rig_submit(&rig, 4, &gang), third = rig_submit(&rig, 5, &gang);
	assert_string_equal(rig_place(&rig, first), "1:3"); /* where one job is, not two */
	assert_string_equal(rig_place(&rig, second), "0:3");
	assert_int_equal(rig_state(&rig, third), SW_JOB_WAITING);
	sw_engine_explain(rig.engine, (struct sw_job_id){third}, text, sizeof text);
	assert_non_null(
		strstr(text, "it needs 2 GPUs and 0 are free; no node has so many with room for its 10 GiB and fewer than 2 whole jobs"));
	rig_close(&rig);
}

/* Aim: with a gain of 5 % and jobs that use half of a GPU, whose work together grows by 33, 12.5,
 * 6.7 and then 4.2 %, four share one however large k is. */
static void test_admission_by_benefit(void **state)
{
	(void)state;
	for (int benefit = 0; benefit < 2; benefit++) {
		struct rig rig;
		uint32_t running = 0;
		open_bigbrain(&rig, (const struct sw_topology_node[]){RIG_NODE(0, 1)}, 1, 0,
			      (const char *const[]){"k=8", benefit ? "gain=0.05" : "gain=0", NULL});
		for (uint32_t j = 0; j < 8; j++)
			running += rig_runs(&rig, submit(&rig, j, 1, 1000));
		assert_int_equal(running, benefit ? 4 : 8);
		rig_close(&rig);
	}
}

/* What a GPU holds with the contexts of its processes, and what it has. */
static void check_memory(const struct rig *rig, uint32_t gpu)
{
	const struct sw_view *view = sw_engine_view(rig->engine);
	const struct sw_node_id node = {0};
	uint64_t residents = 0, held = 80 * RIG_GIB - sw_gpu_memory_free(view, node, gpu), parts = 0;
	const struct sw_job *job;
	for (; (job = sw_gpu_resident(view, node, gpu, (uint32_t)residents)) != NULL; residents++)
		parts += sw_job_split_milli(view, job) != 0;
	assert_true(residents - parts <= 3 && parts <= 1);
	if (residents > 1 || parts > 0)
		assert_true(held + residents * (1200 * RIG_GIB / 1000) <= 80 * RIG_GIB - 80 * RIG_GIB / 1000 * 50);
}

/* Aim: whatever comes and goes, no GPU runs out of memory, with a context for every process; k
 * whole jobs and one part are on it at most. */
static void test_never_out_of_memory(void **state)
{
	(void)state;
	struct rig rig;
	struct sw_rng rng;
	uint32_t split = 0, merged = 0;
	sw_rng_seed(&rng, 3);
	open_bigbrain(&rig, (const struct sw_topology_node[]){RIG_NODE(0, 4)}, 1, 1100,
		      (const char *const[]){"k=3", "skip=on", "restart=1s", NULL});
	for (int64_t at = 0; at < 4000; at++) {
		const struct sw_view *view = sw_engine_view(rig.engine);
		const struct sw_job *job = sw_view_next_running(view, NULL);
		for (uint64_t skip = sw_rng_below(&rng, 12); skip > 0 && job != NULL; skip--)
			job = sw_view_next_running(view, job);
		if (job != NULL && sw_rng_below(&rng, 100) < 60)
			rig_finish(&rig, at, job->id.v);
		else
			submit(&rig, at, 1 + sw_rng_below(&rng, sw_rng_below(&rng, 2) ? 20 : 79), 1 + (int64_t)sw_rng_below(&rng, 500));
		for (size_t c = 0; c < rig_commands(&rig); c++) {
			split += rig.step.commands[c].gpus == 2;
			merged += rig.step.commands[c].kind == SW_CMD_MOVE;
		}
		for (uint32_t gpu = 0; gpu < 4; gpu++)
			check_memory(&rig, gpu);
	}
	assert_true(split > 50 && merged > 10);
	rig_close(&rig);
}

/* ---- split or wait ---- */

/* Aim: of being split now and whole later the one with the smaller predicted end is taken. k is 1,
 * residents of 30 GiB use half of each GPU, so a part gets on at 2/3 of its speed. */
static void test_split_or_wait(void **state)
{
	(void)state;
	static const struct {
		int64_t work_s, first_left_s, second_left_s;
		uint32_t price_milli;
		double split_s, wait_s; /* from the submit to the end */
	} table[] = {
		{100, 60, 500, 1100, 165.2, 160},					/* a place is free soon */
		{100, 70, 500, 1100, 165.2, 170},   {1000, 700, 640, 1100, 1652, 1640}, /* the second is free first */
		{1000, 700, 660, 1100, 1652, 1660}, {100, 300, 300, 3000, 450.4, 400},	/* a cut that is dear */
		{10, 6, 6, 1000, 15.02, 16},						/* and one that is free */
	};
	for (size_t c = 0; c < sizeof table / sizeof table[0]; c++) {
		struct rig rig;
		open_bigbrain(&rig, two, 1, table[c].price_milli, (const char *const[]){"k=1", NULL});
		submit(&rig, 0, 30, table[c].first_left_s);
		submit(&rig, 0, 30, table[c].second_left_s);
		uint32_t job = submit(&rig, 0, 20, table[c].work_s);
		bool splits = table[c].split_s < table[c].wait_s;
		/* What the table says of the split is what is predicted. */
		double step = table[c].price_milli * 1e-6 * 1000000 / 666;
		assert_true(table[c].split_s >= table[c].work_s * (step - 0.003) && table[c].split_s <= table[c].work_s * (step + 0.003));
		if (rig_runs(&rig, job) != splits || split_milli(&rig, job) != (splits ? table[c].price_milli : 0))
			fail_msg("case %zu: it %s", c + 1, rig_runs(&rig, job) ? "was split" : "waits");
		rig_close(&rig);
	}
}

/* Aim: a job that has a place only over two GPUs runs there; one part of a split job on each GPU at
 * a time, and 2 k + 1 jobs on two GPUs. */
static void test_one_slot(void **state)
{
	(void)state;
	struct rig rig;
	open_bigbrain(&rig, two, 1, 1100, (const char *const[]){"k=1", NULL});
	submit(&rig, 0, 40, 10000);
	submit(&rig, 0, 50, 10000);
	uint32_t split = submit(&rig, 1, 45, 1000), next = submit(&rig, 2, 5, 1000);
	assert_string_equal(rig_place(&rig, split), "0:1 0:2");
	assert_int_equal(rig_state(&rig, next), SW_JOB_WAITING);
	/* In proportion to 40 and 30 GiB, less what is held back of each: two contexts and 4
	 * GiB. */
	const struct sw_view *view = sw_engine_view(rig.engine);
	uint64_t left[] = {sw_gpu_memory_free(view, (struct sw_node_id){0}, 0), sw_gpu_memory_free(view, (struct sw_node_id){0}, 1)};
	assert_true(left[0] + left[1] == 25 * RIG_GIB && left[0] > left[1]);
	rig_finish(&rig, 3, split);
	assert_int_equal(rig_job(&rig, next)->gpus_held, 2);
	rig_close(&rig);
	open_bigbrain(&rig, two, 1, 1100, (const char *const[]){"k=1", "slots=0", NULL});
	submit(&rig, 0, 40, 10000);
	submit(&rig, 0, 50, 10000);
	assert_int_equal(rig_state(&rig, submit(&rig, 1, 45, 1000)), SW_JOB_WAITING);
	rig_close(&rig);
}

/* Aim: a split job becomes whole when a place is there and what it saves is more than the restart
 * costs, and not for less. */
static void test_merging(void **state)
{
	(void)state;
	for (int pays = 0; pays < 2; pays++) {
		struct rig rig;
		/* Of 1000 s of work 990 or so are left, which take 99 more in parts than whole. */
		open_bigbrain(&rig, two, 1, 1100, (const char *const[]){"k=1", pays ? "restart=90s" : "restart=110s", NULL});
		uint32_t first = submit(&rig, 0, 40, 10000);
		submit(&rig, 0, 40, 10000);
		uint32_t job = submit(&rig, 0, 45, 1000);
		assert_int_equal(split_milli(&rig, job), 1100);
		rig_finish(&rig, 10, first);
		assert_true(rig_runs(&rig, job));
		assert_int_equal(split_milli(&rig, job), pays ? 0 : 1100);
		assert_string_equal(rig_place(&rig, job), pays ? "0:1" : "0:1 0:2");
		assert_int_equal(rig_job(&rig, job)->migrations, pays);
		rig_close(&rig);
	}
}

/* Aim: a job of unknown length is split rather than left waiting. */
static void test_unknown_length(void **state)
{
	(void)state;
	struct rig rig;
	open_bigbrain(&rig, two, 1, 1100, (const char *const[]){"k=1", NULL});
	for (uint32_t j = 0; j < 3; j++) {
		struct sw_job_spec spec = rig_spec(1, 0);
		spec.knowledge = SW_UNKNOWN;
		spec.work_ns = 0;
		spec.gpu_memory_bytes = 20 * RIG_GIB;
		rig_submit(&rig, j, &spec);
	}
	assert_int_equal(split_milli(&rig, 2), 1100);
	rig_close(&rig);
}

/* ---- what it says ---- */

static const char *why(struct rig *rig, uint32_t id)
{
	static char text[400];
	sw_engine_explain(rig->engine, (struct sw_job_id){id}, text, sizeof text);
	return text;
}

/* Aim: each reason to wait is told. */
static void test_why(void **state)
{
	(void)state;
	struct rig rig;
	open_bigbrain(&rig, two, 1, 3000, (const char *const[]){"k=1", NULL});
	submit(&rig, 0, 30, 300);
	submit(&rig, 0, 30, 300);
	uint32_t waits = submit(&rig, 0, 20, 100), behind = submit(&rig, 0, 20, 100);
	assert_non_null(strstr(why(&rig, waits),
			       "a GPU has a place for it in about 300 s; that is quicker than to run split now, 4.50 times as slow"));
	assert_non_null(strstr(why(&rig, behind), "an earlier job is ahead of it in the line and has no place yet"));
	rig_close(&rig);
	open_bigbrain(&rig, two, 1, 0, (const char *const[]){"k=1", NULL});
	submit(&rig, 0, 30, 300);
	submit(&rig, 0, 30, 300);
	waits = submit(&rig, 0, 20, 100);
	assert_non_null(strstr(why(&rig, waits),
			       "no GPU with room for its 20 GiB runs fewer than 1 whole jobs, and it cannot be split over what is left"));
	rig_close(&rig);
	open_bigbrain(&rig, two, 1, 0, NULL);
	submit(&rig, 0, 30, 300);
	waits = rig_submit_plain(&rig, 1, 2, 100);
	assert_non_null(
		strstr(why(&rig, waits), "it needs 2 GPUs of its own, since it does not say how much memory it needs, and 1 is free"));
	rig_close(&rig);
}

/* Aim: parameters that make no sense are refused. */
static void test_bad_parameters(void **state)
{
	(void)state;
	static const char *const bad[][2] = {{"k", "0"},	  {"k", "9"},	    {"k", "2.5"},      {"k", "many"},  {"k", ""},
					     {"context", "-1"},	  {"reserve", "1"}, {"skip", "maybe"}, {"slots", "9"}, {"restart", "-1s"},
					     {"restart", "soon"}, {"gain", "9"},    {"gain", "nan"}};
	SW_CLEANUP(sw_params_freep) struct sw_params *params = NULL;
	assert_int_equal(sw_params_new(&sw_policy_bigbrain, &params, NULL), 0);
	for (size_t b = 0; b < sizeof bad / sizeof bad[0]; b++) {
		const struct sw_param *param = sw_params_find(&sw_policy_bigbrain, bad[b][0], NULL);
		assert_non_null(param);
		if (sw_params_set(params, param, bad[b][1], strlen(bad[b][1]), NULL) >= 0)
			fail_msg("%s=%s was taken", bad[b][0], bad[b][1]);
	}
	assert_null(sw_params_find(&sw_policy_bigbrain, "kk", NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_where_whole_jobs_go),
		cmocka_unit_test(test_head_room),
		cmocka_unit_test(test_line),
		cmocka_unit_test(test_gangs_and_unknown_memory),
		cmocka_unit_test(test_gangs_share),
		cmocka_unit_test(test_admission_by_benefit),
		cmocka_unit_test(test_never_out_of_memory),
		cmocka_unit_test(test_split_or_wait),
		cmocka_unit_test(test_one_slot),
		cmocka_unit_test(test_merging),
		cmocka_unit_test(test_unknown_length),
		cmocka_unit_test(test_why),
		cmocka_unit_test(test_bad_parameters),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
