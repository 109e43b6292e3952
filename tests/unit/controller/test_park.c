/* Runs that are parked in place of stopped: who stands still, who goes on, who has to give way. One node with two GPUs of 80 GiB, shortest job first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/number.h"
#include "controller/brain.h"

#define NO_WISH ((enum sw_want_kind)99)

static const struct sw_brain_config config = {
	.policy = "srtf",
	.placement = "pack",
	.lease_ns = 30 * SW_NS_PER_S,
	.lease_margin_ns = 5 * SW_NS_PER_S,
	.retry_backoff_ns = 10 * SW_NS_PER_S,
};
static const struct sw_user alice = {.uid = 1000, .gid = 1000};

/* A policy that has every job at the first free GPU, but for a while when it moves nobody. */
#define RESTS_FROM (2000 * SW_NS_PER_S)
#define RESTS_UNTIL (9000 * SW_NS_PER_S)
static sw_ns tidy(struct sw_plan *plan)
{
	struct sw_view *view = sw_plan_view(plan);
	bool rests = sw_view_now(view) >= RESTS_FROM && sw_view_now(view) < RESTS_UNTIL;
	const struct sw_job *next;
	for (const struct sw_job *job = sw_view_next_running(view, NULL); job != NULL && !rests; job = sw_view_next_running(view, job))
		(void)sw_plan_migrate(plan, job);
	for (const struct sw_job *job = sw_view_next_waiting(view, NULL); job != NULL; job = next) {
		next = sw_view_next_waiting(view, job);
		(void)sw_plan_start(plan, job);
	}
	return SW_TIME_NEVER;
}
static const struct sw_policy tidy_policy = {.abi = SW_POLICY_ABI, .name = "tidy", .about = "moves jobs", .decide = tidy};

struct bench {
	const struct sw_brain_config *config;
	uint32_t gpus; /* of the node */
	struct sw_brain *brain;
	SW_VEC(struct kept {
		sw_ns at;
		struct sw_record record;
	})
	journal;
	sw_ns now;
	uint64_t number, have;
	struct sw_sync_run runs[8];
	size_t run_count;
	struct sw_answer_message *answer; /* the last one */
};

static void apply_all(struct bench *bench, sw_records *records, uint64_t *ret_job)
{
	struct sw_err err = {0};
	for (size_t r = 0; r < records->count; r++) {
		if (sw_brain_apply(bench->brain, bench->now, records->items[r].kind, records->items[r].body, records->items[r].size,
				   ret_job, &err) < 0)
			fail_msg("%s: %s", err.fact, err.detail);
		*sw_vec_push(&bench->journal) = (struct kept){bench->now, records->items[r]};
	}
	sw_vec_free(records);
	if (sw_brain_validate(bench->brain, &err) < 0)
		fail_msg("%s", err.fact);
}

/* What the agent says of its runs reaches the controller; what it hears back is in bench->answer. */
static void sync_now(struct bench *bench)
{
	struct sw_sync_gpu gpus[] = {{.uuid = "GPU-0", .name = "g", .memory_bytes = UINT64_C(80) << 30},
				     {.uuid = "GPU-1", .name = "g", .memory_bytes = UINT64_C(80) << 30},
				     {.uuid = "GPU-2", .name = "g", .memory_bytes = UINT64_C(80) << 30},
				     {.uuid = "GPU-3", .name = "g", .memory_bytes = UINT64_C(80) << 30}};
	const struct sw_sync_inventory inventory = {gpus, bench->gpus, 16, UINT64_C(64) << 30};
	const struct sw_sync sync = {.node = "n",
				     .instance = "a1",
				     .number = ++bench->number,
				     .have = bench->have,
				     .inventory = &inventory,
				     .runs = bench->runs,
				     .run_count = bench->run_count};
	sw_records records = {0};
	assert_int_equal(sw_brain_hear(bench->brain, bench->now, &sync, &records, NULL), 0);
	apply_all(bench, &records, NULL);
	if (bench->answer != NULL)
		sw_brain_answer_free(bench->answer);
	bench->answer = NULL;
	assert_int_equal(sw_brain_answer(bench->brain, bench->now, &sync, &bench->answer, NULL), 0);
	bench->have = bench->answer->version;
}

static enum sw_want_kind wish(const struct bench *bench, uint64_t job, uint32_t epoch)
{
	for (size_t w = 0; w < bench->answer->want_count; w++)
		if (bench->answer->wants[w].id.job == job && bench->answer->wants[w].id.epoch == epoch)
			return bench->answer->wants[w].want;
	return NO_WISH;
}

/* The agent's account of a run; the first time, it gets the run. */
static void tell(struct bench *bench, uint64_t job, uint32_t epoch, enum sw_run_state state, uint32_t signal, const char *reason)
{
	size_t r = 0;
	while (r < bench->run_count && (bench->runs[r].id.job != job || bench->runs[r].id.epoch != epoch))
		r++;
	assert_true(r < sizeof bench->runs / sizeof bench->runs[0]);
	bench->run_count = r == bench->run_count ? r + 1 : bench->run_count;
	bench->runs[r] = (struct sw_sync_run){.id = {job, epoch}, .state = state, .signal = signal, .reason = reason};
	sync_now(bench);
}

static void runs(struct bench *bench, uint64_t job, uint32_t epoch)
{
	tell(bench, job, epoch, SW_RUN_RUNNING, 0, "");
}

static uint64_t submit(struct bench *bench, unsigned expected_s, const char *more)
{
	char json[300];
	snprintf(json, sizeof json, "{\"command\": [\"job\"], \"expected\": %u%s}", expected_s, more);
	struct sw_job_request *asked = NULL;
	struct sw_err err = {0};
	if (sw_job_request_decode("test", json, strlen(json), &asked, &err) < 0)
		fail_msg("%s: %s", err.fact, err.detail);
	sw_records records = {0};
	uint64_t job = 0;
	assert_int_equal(sw_brain_propose_submit(bench->brain, &alice, asked, &records, NULL), 0);
	sw_job_request_free(asked);
	apply_all(bench, &records, &job);
	return job;
}

static void change(struct bench *bench, enum sw_record_kind kind, uint64_t job)
{
	sw_records records = {0};
	assert_int_equal(sw_brain_propose_change(bench->brain, &alice, kind, "change", job, &records, NULL), 0);
	apply_all(bench, &records, NULL);
	sync_now(bench);
}

static struct sw_job_view look(const struct bench *bench, uint64_t job)
{
	struct sw_job_view view;
	assert_true(sw_brain_job(bench->brain, bench->now, job, &view));
	return view;
}

#define STATE(job, expected) assert_string_equal(look(bench, (job)).state, (expected))
#define WISH(job, epoch, expected) assert_int_equal(wish(bench, (job), (epoch)), (expected))
#define WITH(gib) ", \"gpus\": 2, \"preempt\": \"suspend\", \"gpu_memory\": \"" #gib "GiB\""

static int set_up_with(void **state, const struct sw_brain_config *chosen, uint32_t gpus)
{
	struct bench *bench = calloc(1, sizeof *bench);
	assert_non_null(bench);
	bench->now = 1000 * SW_NS_PER_S;
	bench->config = chosen;
	bench->gpus = gpus;
	assert_int_equal(sw_brain_new(chosen, &bench->brain, NULL), 0);
	sync_now(bench);
	*state = bench;
	return 0;
}

static int set_up(void **state)
{
	return set_up_with(state, &config, 2);
}

static int set_up_four(void **state)
{
	return set_up_with(state, &config, 4);
}

static int set_up_tidy(void **state)
{
	static struct sw_brain_config tidy_config;
	tidy_config = config;
	tidy_config.plugin = &tidy_policy;
	tidy_config.policy = "tidy";
	return set_up_with(state, &tidy_config, 2);
}

/* At the end of each test: the journal alone gives the same state again. */
static int tear_down(void **state)
{
	struct bench *bench = *state;
	struct sw_brain *again = NULL;
	assert_int_equal(sw_brain_new(bench->config, &again, NULL), 0);
	for (size_t r = 0; r < bench->journal.count; r++) {
		struct kept *kept = &bench->journal.items[r];
		assert_int_equal(sw_brain_apply(again, kept->at, kept->record.kind, kept->record.body, kept->record.size, NULL, NULL), 0);
	}
	assert_true(sw_brain_log_hash(again) == sw_brain_log_hash(bench->brain));
	for (uint64_t job = 1; job <= sw_brain_job_count(again); job++) {
		struct sw_job_view view;
		assert_true(sw_brain_job(again, bench->now, job, &view));
		assert_string_equal(view.state, look(bench, job).state);
		assert_string_equal(view.reason, look(bench, job).reason);
		assert_int_equal(view.epoch, look(bench, job).epoch);
	}
	sw_brain_free(again);
	sw_brain_answer_free(bench->answer);
	sw_brain_free(bench->brain);
	for (size_t r = 0; r < bench->journal.count; r++)
		free(bench->journal.items[r].record.body);
	sw_vec_free(&bench->journal);
	free(bench);
	return 0;
}

/* Job 1 runs on both GPUs with 20 GiB of each and is preempted by job 2. */
static void park_the_first(struct bench *bench, const char *second)
{
	submit(bench, 100, WITH(20));
	sync_now(bench);
	WISH(1, 1, SW_WANT_RUN);
	runs(bench, 1, 1);
	bench->now += 10 * SW_NS_PER_S;
	submit(bench, 5, second);
	sync_now(bench);
}

/* ---- */

/* Aim: a preempted job stands still under the other, is shown so, and goes on in the same run; only the time that it was active counts. */
static void test_goes_on_where_it_was(void **state)
{
	struct bench *bench = *state;
	park_the_first(bench, WITH(40));
	WISH(1, 1, SW_WANT_SUSPEND);
	WISH(2, 1, SW_WANT_RUN);
	STATE(1, "S");
	assert_string_equal(look(bench, 1).reason, "suspended in place for job 2");
	char why[200];
	sw_brain_explain(bench->brain, bench->now, 1, why, sizeof why);
	assert_non_null(strstr(why, "goes on when job 2"));
	tell(bench, 1, 1, SW_RUN_SUSPENDED, 0, "");
	runs(bench, 2, 1);
	bench->now += 50 * SW_NS_PER_S;
	tell(bench, 2, 1, SW_RUN_EXITED, 0, "");
	WISH(1, 1, SW_WANT_RUN);
	STATE(1, "R");
	runs(bench, 1, 1);
	bench->now += 7 * SW_NS_PER_S;
	tell(bench, 1, 1, SW_RUN_EXITED, 0, "");
	STATE(1, "CD");
	struct sw_job_view view = look(bench, 1);
	assert_int_equal(view.epoch, 1);
	assert_int_equal(view.preemptions, 1);
	assert_int_equal(view.ran_ns, 17 * SW_NS_PER_S);
}

/* Aim: a parked run whose memory does not fit beside the newcomer's is stopped like any other, and the job starts anew. */
static void test_gives_way_where_memory_does_not_fit(void **state)
{
	static const char *const newcomers[] = {WITH(61), ", \"gpus\": 1"};
	for (size_t n = 0; n < 2; n++) {
		if (n > 0) {
			tear_down(state);
			set_up(state);
		}
		struct bench *bench = *state;
		park_the_first(bench, newcomers[n]);
		WISH(1, 1, SW_WANT_STOP);
		WISH(2, 1, SW_WANT_RUN);
		STATE(1, "PD");
		tell(bench, 1, 1, SW_RUN_EXITED, 15, "stopped");
		runs(bench, 2, 1);
		tell(bench, 2, 1, SW_RUN_EXITED, 0, "");
		WISH(1, 2, SW_WANT_RUN);
		STATE(1, "CF");
	}
}

/* Aim: a job that does not say how it is to be preempted is stopped and started anew. */
static void test_others_are_stopped(void **state)
{
	struct bench *bench = *state;
	submit(bench, 100, ", \"gpus\": 2, \"gpu_memory\": \"20GiB\"");
	sync_now(bench);
	runs(bench, 1, 1);
	submit(bench, 5, WITH(20));
	sync_now(bench);
	WISH(1, 1, SW_WANT_STOP);
	STATE(1, "PD");
}

/* Aim: what was not seen running is not parked: it has nothing to keep. */
static void test_what_has_not_started_is_not_parked(void **state)
{
	struct bench *bench = *state;
	submit(bench, 100, WITH(20));
	sync_now(bench);
	submit(bench, 5, WITH(20));
	sync_now(bench);
	STATE(1, "PD");
	assert_true(wish(bench, 1, 1) != SW_WANT_SUSPEND);
}

/* Aim: of several that are parked, the one that has been for longest gives way first. */
static void test_who_was_parked_first_goes_first(void **state)
{
	struct bench *bench = *state;
	park_the_first(bench, WITH(20));
	tell(bench, 1, 1, SW_RUN_SUSPENDED, 0, "");
	runs(bench, 2, 1);
	bench->now += SW_NS_PER_S;
	submit(bench, 2, WITH(20));
	sync_now(bench);
	WISH(1, 1, SW_WANT_SUSPEND);
	WISH(2, 1, SW_WANT_SUSPEND);
	WISH(3, 1, SW_WANT_RUN);
	runs(bench, 3, 1);
	assert_string_equal(look(bench, 1).reason, "suspended in place for job 3");
	bench->now += SW_NS_PER_S / 2;
	submit(bench, 1, WITH(30));
	sync_now(bench);
	WISH(1, 1, SW_WANT_STOP);
	WISH(2, 1, SW_WANT_SUSPEND);
	WISH(3, 1, SW_WANT_SUSPEND);
	WISH(4, 1, SW_WANT_RUN);
	STATE(1, "PD");
}

/* Aim: a user suspends and resumes in place, others leave the GPU alone while there is another, and they are told what it needs. */
static void test_suspended_by_its_user(void **state)
{
	struct bench *bench = *state;
	submit(bench, 100, ", \"preempt\": \"suspend\"");
	sync_now(bench);
	runs(bench, 1, 1);
	change(bench, SW_RECORD_HOLD, 1);
	WISH(1, 1, SW_WANT_SUSPEND);
	STATE(1, "S");
	assert_int_equal(look(bench, 1).held_by, 1000);
	char why[200];
	sw_brain_explain(bench->brain, bench->now, 1, why, sizeof why);
	assert_non_null(strstr(why, "sharewell resume 1"));
	/* It holds a whole GPU's memory; there is another GPU. */
	submit(bench, 5, "");
	sync_now(bench);
	WISH(1, 1, SW_WANT_SUSPEND);
	WISH(2, 1, SW_WANT_RUN);
	change(bench, SW_RECORD_RELEASE, 1);
	WISH(1, 1, SW_WANT_RUN);
	STATE(1, "R");
	assert_int_equal(look(bench, 1).epoch, 1);
	assert_int_equal(look(bench, 1).held_by, UINT32_MAX);
}

static int propose_deep(struct bench *bench, uint64_t job, struct sw_err *err)
{
	sw_records records = {0};
	if (err != NULL)
		*err = (struct sw_err){0};
	int r = sw_brain_propose_deep(bench->brain, &alice, job, &records, err);
	apply_all(bench, &records, NULL);
	sync_now(bench);
	return r;
}

static bool is_wished_deep(const struct bench *bench, uint64_t job)
{
	for (size_t w = 0; w < bench->answer->want_count; w++)
		if (bench->answer->wants[w].id.job == job)
			return bench->answer->wants[w].deep;
	return false;
}

/* What the agent says of a run that is suspended. */
static void stands(struct bench *bench, size_t run, enum sw_run_depth depth, const char *detail)
{
	bench->runs[run].state = SW_RUN_SUSPENDED;
	bench->runs[run].depth = depth;
	bench->runs[run].detail = detail;
	sync_now(bench);
}

/* Aim: a job that is off its GPUs whole, or on its way, leaves all their memory to others, and goes on as the same run. */
static void test_off_its_gpus(void **state)
{
	struct bench *bench = *state;
	char why[200];
	submit(bench, 100, WITH(60));
	sync_now(bench);
	runs(bench, 1, 1);
	submit(bench, 200, ", \"gpus\": 2");
	assert_int_equal(propose_deep(bench, 1, NULL), 0);
	WISH(1, 1, SW_WANT_SUSPEND);
	assert_true(is_wished_deep(bench, 1));
	WISH(2, 1, SW_WANT_RUN);
	assert_int_equal(look(bench, 1).depth, SW_DEPTH_LEAVING);
	sw_brain_explain(bench->brain, bench->now, 2, why, sizeof why);
	assert_non_null(strstr(why, "job 1 is on its way off them"));
	stands(bench, 0, SW_DEPTH_LEAVING, NULL);
	assert_int_equal(look(bench, 1).depth, SW_DEPTH_LEAVING);
	stands(bench, 0, SW_DEPTH_OFF, NULL);
	assert_int_equal(look(bench, 1).depth, SW_DEPTH_OFF);
	size_t records = bench->journal.count;
	sync_now(bench);
	assert_int_equal(bench->journal.count, records);
	sw_brain_explain(bench->brain, bench->now, 1, why, sizeof why);
	assert_non_null(strstr(why, "off its GPUs whole"));
	change(bench, SW_RECORD_RELEASE, 1);
	runs(bench, 2, 1);
	STATE(1, "R"); /* it is the shorter one */
	assert_false(is_wished_deep(bench, 1));
	WISH(1, 1, SW_WANT_RUN);
	WISH(2, 1, SW_WANT_STOP);
	assert_int_equal(look(bench, 1).depth, SW_DEPTH_USUAL);
	/* The next time it stands still as usual, and does not fit beside the other. */
	runs(bench, 1, 1);
	change(bench, SW_RECORD_HOLD, 1);
	WISH(1, 1, SW_WANT_STOP);
}

/* Aim: one that cannot be taken off counts like any other that stands still: where its memory does not fit beside others, it goes. */
static void test_not_off_its_gpus(void **state)
{
	struct bench *bench = *state;
	char why[300];
	submit(bench, 100, WITH(60));
	sync_now(bench);
	runs(bench, 1, 1);
	change(bench, SW_RECORD_HOLD, 1);
	assert_int_equal(propose_deep(bench, 1, NULL), 0);
	assert_true(is_wished_deep(bench, 1));
	stands(bench, 0, SW_DEPTH_REFUSED, "the driver is too old");
	WISH(1, 1, SW_WANT_SUSPEND);
	assert_false(is_wished_deep(bench, 1));
	assert_int_equal(look(bench, 1).depth, SW_DEPTH_REFUSED);
	sw_brain_explain(bench->brain, bench->now, 1, why, sizeof why);
	assert_non_null(strstr(why, "the driver is too old"));
	/* It may be tried again, while others wait for its memory. */
	bench->runs[0].depth = SW_DEPTH_USUAL;
	assert_int_equal(propose_deep(bench, 1, NULL), 0);
	assert_int_equal(look(bench, 1).depth, SW_DEPTH_LEAVING);
	submit(bench, 5, ", \"gpus\": 2");
	sync_now(bench);
	WISH(1, 1, SW_WANT_SUSPEND);
	WISH(2, 1, SW_WANT_RUN);
	stands(bench, 0, SW_DEPTH_REFUSED, NULL);
	WISH(1, 1, SW_WANT_STOP);
	STATE(1, "S"); /* held */
}

/* Aim: one that was said to be off before it went on, in an answer that came late, and cannot be taken off this time, is not waited for. */
static void test_refused_after_a_late_word(void **state)
{
	struct bench *bench = *state;
	submit(bench, 100, WITH(60));
	sync_now(bench);
	runs(bench, 1, 1);
	assert_int_equal(propose_deep(bench, 1, NULL), 0);
	stands(bench, 0, SW_DEPTH_OFF, NULL);
	assert_int_equal(look(bench, 1).depth, SW_DEPTH_OFF);
	stands(bench, 0, SW_DEPTH_REFUSED, "the driver is too old");
	assert_int_equal(look(bench, 1).depth, SW_DEPTH_REFUSED);
	assert_false(is_wished_deep(bench, 1));
}

/* Aim: who cannot be taken off whole at all is told at once, and nothing happens to it. */
static void test_cannot_be_deep(void **state)
{
	struct bench *bench = *state;
	struct sw_err err = {0};
	submit(bench, 100, "");
	submit(bench, 100, ", \"preempt\": \"suspend\", \"gpu_runtime\": \"off\"");
	submit(bench, 100, ", \"preempt\": \"suspend\"");
	sync_now(bench);
	runs(bench, 1, 1);
	runs(bench, 2, 1);
	assert_int_equal(propose_deep(bench, 1, &err), SW_EINPUT);
	assert_non_null(strstr(err.detail, "--preempt suspend"));
	assert_int_equal(propose_deep(bench, 2, &err), SW_EINPUT);
	assert_non_null(strstr(err.detail, "--gpu-runtime off"));
	assert_int_equal(propose_deep(bench, 3, &err), SW_EINPUT);
	assert_non_null(strstr(err.detail, "does not run"));
	assert_int_equal(propose_deep(bench, 4, &err), SW_ENOTFOUND);
	WISH(1, 1, SW_WANT_RUN);
	WISH(2, 1, SW_WANT_RUN);
}

/* Aim: cancelling a parked job stops its run, requeueing starts it anew, and requeueing a running one does not park it. */
static void test_cancel_and_requeue(void **state)
{
	struct bench *bench = *state;
	park_the_first(bench, WITH(20));
	change(bench, SW_RECORD_REQUEUE, 1);
	WISH(1, 1, SW_WANT_STOP);
	STATE(1, "PD");
	runs(bench, 2, 1);
	change(bench, SW_RECORD_REQUEUE, 2);
	WISH(2, 1, SW_WANT_STOP);
	tell(bench, 2, 1, SW_RUN_EXITED, 15, "stopped");
	WISH(2, 2, SW_WANT_RUN);
	runs(bench, 2, 2);
	change(bench, SW_RECORD_HOLD, 2);
	WISH(2, 2, SW_WANT_SUSPEND);
	change(bench, SW_RECORD_CANCEL, 2);
	WISH(2, 2, SW_WANT_STOP);
	STATE(2, "CG");
}

/* Aim: a parked run that is killed or lost costs its job nothing but its work. */
static void test_parked_run_is_lost(void **state)
{
	struct bench *bench = *state;
	park_the_first(bench, WITH(20));
	runs(bench, 2, 1);
	tell(bench, 1, 1, SW_RUN_EXITED, 9, "");
	WISH(1, 1, SW_WANT_FORGET);
	STATE(1, "PD");
	tell(bench, 2, 1, SW_RUN_EXITED, 0, "");
	WISH(1, 2, SW_WANT_RUN);
	STATE(1, "CF");
	/* Parked again, and then its node is silent for too long. */
	runs(bench, 1, 2);
	change(bench, SW_RECORD_HOLD, 1);
	change(bench, SW_RECORD_RELEASE, 1);
	change(bench, SW_RECORD_HOLD, 1);
	WISH(1, 2, SW_WANT_SUSPEND);
	bench->now += 36 * SW_NS_PER_S;
	sw_records records = {0};
	assert_int_equal(sw_brain_tick(bench->brain, bench->now, &records, NULL), 0);
	apply_all(bench, &records, NULL);
	change(bench, SW_RECORD_RELEASE, 1);
	WISH(1, 2, SW_WANT_STOP);
	WISH(1, 3, SW_WANT_RUN); /* its lease has ended the old one */
	tell(bench, 1, 2, SW_RUN_EXITED, 9, "lease");
	STATE(1, "CF");
	assert_int_equal(look(bench, 1).epoch, 3);
}

/* Aim: a run that ends by itself before it stands still has ended: well, or badly with its own code. */
static void test_ends_before_it_stands_still(void **state)
{
	struct bench *bench = *state;
	park_the_first(bench, WITH(20));
	tell(bench, 1, 1, SW_RUN_EXITED, 0, "");
	STATE(1, "CD");
	runs(bench, 2, 1);
	change(bench, SW_RECORD_HOLD, 2);
	bench->runs[1].code = 7;
	bench->runs[1].state = SW_RUN_EXITED;
	sync_now(bench);
	STATE(2, "F");
	assert_int_equal(look(bench, 2).code, 7);
}

/* Aim: the host's memory, where jobs say what they need, is not given twice either. */
static void test_host_memory(void **state)
{
	struct bench *bench = *state;
	submit(bench, 100, ", \"preempt\": \"suspend\", \"gpu_memory\": \"1GiB\", \"memory\": \"40GiB\"");
	sync_now(bench);
	runs(bench, 1, 1);
	change(bench, SW_RECORD_HOLD, 1);
	WISH(1, 1, SW_WANT_SUSPEND);
	submit(bench, 5, ", \"memory\": \"20GiB\"");
	sync_now(bench);
	WISH(1, 1, SW_WANT_SUSPEND);
	submit(bench, 5, ", \"memory\": \"40GiB\", \"gpu_memory\": \"1GiB\"");
	sync_now(bench);
	WISH(1, 1, SW_WANT_STOP);
}

/* Aim: what an elastic job gets beside its GPUs follows the GPUs that it was given. */
static void test_limits_follow_the_gpus(void **state)
{
	struct bench *bench = *state;
	submit(bench, 100, ", \"gpus\": 2, \"cpus\": 3, \"memory\": \"2GiB\"");
	sync_now(bench);
	assert_int_equal(bench->answer->wants[0].gpus.count, 2);
	assert_int_equal(bench->answer->wants[0].spec->cpus, 6);
	assert_true(bench->answer->wants[0].spec->memory_bytes == UINT64_C(4) << 30);
}

/* ---- other GPUs of the node */

static int propose_move(struct bench *bench, uint64_t job, uint64_t mask, struct sw_err *err)
{
	sw_records records = {0};
	*err = (struct sw_err){0};
	int r = sw_brain_propose_move(bench->brain, &alice, job, mask, &records, err);
	apply_all(bench, &records, NULL);
	sync_now(bench);
	return r;
}

/* A record as it stands in a journal. */
static void apply_report(struct bench *bench, const char *body)
{
	sw_records records = {0};
	struct sw_record *record = sw_vec_push(&records);
	*record = (struct sw_record){.kind = SW_RECORD_REPORT, .body = strdup(body), .size = strlen(body)};
	apply_all(bench, &records, NULL);
}

static const char *gpu_of(const struct bench *bench, uint64_t job)
{
	for (size_t w = 0; w < bench->answer->want_count; w++)
		if (bench->answer->wants[w].id.job == job)
			return bench->answer->wants[w].gpus.items[0];
	return "";
}

#define ONE ", \"gpu_memory\": \"60GiB\", \"preempt\": \"suspend\""

/* Aim: a run is wished on its new GPU as the same run, others get the old one, and it is there when its agent says so. */
static void test_moves(void **state)
{
	struct bench *bench = *state;
	struct sw_err err;
	char why[300];
	submit(bench, 100, ONE);
	sync_now(bench);
	assert_int_equal(propose_move(bench, 1, 2, &err), SW_EINPUT);
	assert_string_equal(err.detail, "it has not started yet");
	runs(bench, 1, 1);
	assert_string_equal(gpu_of(bench, 1), "GPU-0");
	assert_int_equal(propose_move(bench, 1, 1, &err), SW_EINPUT);
	assert_int_equal(propose_move(bench, 1, 3, &err), SW_EINPUT);
	assert_int_equal(propose_move(bench, 1, 4, &err), SW_EINPUT);
	assert_int_equal(propose_move(bench, 1, 0, &err), 0);
	assert_string_equal(gpu_of(bench, 1), "GPU-1");
	WISH(1, 1, SW_WANT_RUN);
	assert_true(look(bench, 1).is_moving);
	assert_int_equal(propose_move(bench, 1, 1, &err), SW_EINPUT);
	assert_string_equal(err.detail, "it is on its way to other GPUs already");
	submit(bench, 200, ONE);
	sync_now(bench);
	assert_string_equal(gpu_of(bench, 2), "GPU-0");
	sw_brain_explain(bench->brain, bench->now, 2, why, sizeof why);
	assert_non_null(strstr(why, "job 1 is on its way off them"));
	bench->runs[0].gpus = "GPU-0";
	bench->runs[0].moving = "GPU-1";
	sync_now(bench);
	assert_true(look(bench, 1).is_moving);
	bench->runs[0].gpus = "GPU-1";
	bench->runs[0].moving = NULL;
	sync_now(bench);
	assert_false(look(bench, 1).is_moving);
	assert_int_equal(look(bench, 1).epoch, 1);
	assert_int_equal(look(bench, 1).gpu_mask, 2);
	size_t records = bench->journal.count;
	sync_now(bench);
	assert_int_equal(bench->journal.count, records);
	runs(bench, 2, 1);
	STATE(2, "R");
	/* Where the agent says nothing of it, that is the answer in the end. */
	tell(bench, 2, 1, SW_RUN_EXITED, 0, "");
	assert_int_equal(propose_move(bench, 1, 1, &err), 0);
	bench->now += 500 * SW_NS_PER_S;
	sync_now(bench);
	assert_true(look(bench, 1).is_moving);
	bench->now += 200 * SW_NS_PER_S;
	sync_now(bench);
	assert_false(look(bench, 1).is_moving);
	assert_int_equal(look(bench, 1).gpu_mask, 2);
	assert_non_null(strstr(look(bench, 1).unmoved, "did not say in time"));
}

/* Aim: a run that cannot go has its GPU again, and who was given it in the meantime begins elsewhere. */
static void test_stays(void **state)
{
	struct bench *bench = *state;
	struct sw_err err;
	submit(bench, 100, ONE);
	sync_now(bench);
	runs(bench, 1, 1);
	assert_int_equal(propose_move(bench, 1, 2, &err), 0);
	submit(bench, 200, ONE);
	sync_now(bench);
	assert_string_equal(gpu_of(bench, 2), "GPU-0");
	bench->runs[0].unmoved = "the driver is too old";
	/* An answer that it has not heard yet may say something else. */
	bench->have--;
	sync_now(bench);
	assert_true(look(bench, 1).is_moving);
	sync_now(bench);
	bench->runs[0].unmoved = NULL;
	assert_false(look(bench, 1).is_moving);
	assert_string_equal(look(bench, 1).unmoved, "the driver is too old");
	assert_string_equal(gpu_of(bench, 1), "GPU-0");
	WISH(1, 1, SW_WANT_RUN);
	sync_now(bench);
	sync_now(bench);
	assert_int_equal(wish(bench, 2, 2), SW_WANT_RUN);
	assert_int_equal(look(bench, 2).gpu_mask, 2);
	/* One that stands still meanwhile goes on where it is. */
	change(bench, SW_RECORD_CANCEL, 2);
	assert_int_equal(propose_move(bench, 1, 2, &err), 0);
	change(bench, SW_RECORD_HOLD, 1);
	bench->runs[0].state = SW_RUN_SUSPENDED;
	bench->runs[0].unmoved = "it was suspended before it could go";
	sync_now(bench);
	sync_now(bench);
	bench->runs[0].unmoved = NULL;
	assert_string_equal(gpu_of(bench, 1), "GPU-0");
	change(bench, SW_RECORD_RELEASE, 1);
	WISH(1, 1, SW_WANT_RUN);
	assert_string_equal(gpu_of(bench, 1), "GPU-0");
}

/* Aim: one that was suspended on its way and has to stay keeps its state: who was given its GPU in the meantime begins elsewhere, unless it has begun there. */
static void test_stays_suspended(void **state)
{
	struct bench *bench = *state;
	struct sw_err err;
	submit(bench, 100, ONE);
	sync_now(bench);
	runs(bench, 1, 1);
	for (uint64_t newcomer = 2; newcomer <= 4; newcomer++) {
		bool late = newcomer == 3, begins = newcomer == 4;
		assert_int_equal(propose_move(bench, 1, 2, &err), 0);
		if (late)
			change(bench, SW_RECORD_HOLD, 1);
		submit(bench, 200, ONE);
		sync_now(bench);
		assert_string_equal(gpu_of(bench, newcomer), "GPU-0");
		if (!late)
			change(bench, SW_RECORD_HOLD, 1);
		WISH(1, 1, SW_WANT_SUSPEND);
		if (begins)
			runs(bench, newcomer, 1);
		bench->runs[0].state = SW_RUN_SUSPENDED;
		bench->runs[0].unmoved = "it was suspended before it could go";
		sync_now(bench);
		sync_now(bench);
		bench->runs[0].unmoved = NULL;
		assert_false(look(bench, 1).is_moving);
		if (begins)
			break;
		WISH(1, 1, SW_WANT_SUSPEND);
		assert_string_equal(gpu_of(bench, 1), "GPU-0");
		assert_int_equal(wish(bench, newcomer, 2), SW_WANT_RUN);
		assert_string_equal(gpu_of(bench, newcomer), "GPU-1");
		change(bench, SW_RECORD_CANCEL, newcomer);
		change(bench, SW_RECORD_RELEASE, 1);
		runs(bench, 1, 1);
	}
	STATE(4, "R");
	assert_string_equal(gpu_of(bench, 4), "GPU-0");
	assert_int_equal(look(bench, 4).epoch, 1);
	WISH(1, 1, SW_WANT_STOP);
}

/* Aim: of moves that were proposed together the first is made, and of each other one it is known why not. */
static void test_moves_together(void **state)
{
	struct bench *bench = *state;
	struct sw_err err = {0};
	sw_records records = {0};
	for (uint64_t job = 1; job <= 2; job++) {
		submit(bench, 100, ONE);
		sync_now(bench);
		runs(bench, job, 1);
	}
	assert_int_equal(sw_brain_propose_move(bench->brain, &alice, 1, 4, &records, NULL), 0);
	assert_int_equal(sw_brain_propose_move(bench->brain, &alice, 1, 8, &records, NULL), 0);
	assert_int_equal(sw_brain_propose_move(bench->brain, &alice, 2, 4, &records, NULL), 0);
	apply_all(bench, &records, NULL);
	assert_int_equal(sw_brain_check_move(bench->brain, 1, 4, &err), 0);
	assert_int_equal(sw_brain_check_move(bench->brain, 1, 0, &err), 0);
	assert_int_equal(sw_brain_check_move(bench->brain, 1, 8, &err), SW_EINPUT);
	assert_string_equal(err.detail, "it is on its way to other GPUs already");
	err = (struct sw_err){0};
	assert_int_equal(sw_brain_check_move(bench->brain, 2, 4, &err), SW_EINPUT);
	assert_string_equal(err.detail, "others got these GPUs first");
	assert_int_equal(look(bench, 2).gpu_mask, 2);
}

/* Aim: who goes anywhere goes neither where somebody stands still nor where somebody has not left yet, while there are others. */
static void test_moves_anywhere(void **state)
{
	struct bench *bench = *state;
	struct sw_err err;
	for (uint64_t job = 1; job <= 3; job++) {
		submit(bench, 100, ONE);
		sync_now(bench);
		runs(bench, job, 1);
	}
	change(bench, SW_RECORD_HOLD, 2);
	WISH(2, 1, SW_WANT_SUSPEND);
	assert_int_equal(propose_move(bench, 1, 0, &err), 0);
	assert_string_equal(gpu_of(bench, 1), "GPU-3");
	WISH(2, 1, SW_WANT_SUSPEND);
	/* Where the first one was is free, but it may have to stay. */
	assert_int_equal(propose_move(bench, 3, 0, &err), 0);
	assert_string_equal(gpu_of(bench, 3), "GPU-1");
}

/* Aim: journals of versions that stopped and started what a policy moved within its node are read as they were meant. */
static void test_earlier_journals(void **state)
{
	struct bench *bench = *state;
	submit(bench, 100, "");
	submit(bench, 100, "");
	sync_now(bench);
	runs(bench, 1, 1);
	runs(bench, 2, 1);
	tell(bench, 1, 1, SW_RUN_EXITED, 0, "");
	assert_true(look(bench, 2).is_moving);
	apply_report(bench,
		     "{\"node\": \"n\", \"job\": 2, \"epoch\": 2, \"state\": \"running\", \"code\": 0, \"signal\": 0, \"reason\": \"\"}");
	assert_false(look(bench, 2).is_moving);
	assert_int_equal(look(bench, 2).epoch, 2);
	assert_int_equal(look(bench, 2).gpu_mask, 1);
	STATE(2, "R");
	apply_report(bench,
		     "{\"node\": \"n\", \"job\": 2, \"epoch\": 2, \"state\": \"exited\", \"code\": 0, \"signal\": 0, \"reason\": \"\"}");
	bench->run_count = 0;
	sync_now(bench);
	STATE(2, "CD");
}

/* Aim: what a policy moves within its node goes on as the same run; where it could not, the policy's next wish stops and starts it as ever. */
static void test_policy_moves(void **state)
{
	struct bench *bench = *state;
	submit(bench, 100, "");
	submit(bench, 100, "");
	sync_now(bench);
	runs(bench, 1, 1);
	runs(bench, 2, 1);
	assert_string_equal(gpu_of(bench, 2), "GPU-1");
	tell(bench, 1, 1, SW_RUN_EXITED, 0, "");
	STATE(1, "CD");
	WISH(2, 1, SW_WANT_RUN);
	assert_string_equal(gpu_of(bench, 2), "GPU-0");
	assert_true(look(bench, 2).is_moving);
	bench->runs[1].gpus = "GPU-0";
	sync_now(bench);
	assert_false(look(bench, 2).is_moving);
	/* The next one cannot go. */
	submit(bench, 100, "");
	sync_now(bench);
	runs(bench, 3, 1);
	assert_int_equal(look(bench, 3).gpu_mask, 2);
	tell(bench, 2, 1, SW_RUN_EXITED, 0, "");
	WISH(3, 1, SW_WANT_RUN);
	assert_true(look(bench, 3).is_moving);
	bench->runs[2].unmoved = "the driver is too old";
	sync_now(bench);
	sync_now(bench);
	assert_false(look(bench, 3).is_moving);
	WISH(3, 1, SW_WANT_STOP);
	tell(bench, 3, 1, SW_RUN_EXITED, 15, SW_REASON_STOPPED);
	sync_now(bench);
	WISH(3, 2, SW_WANT_RUN);
	assert_int_equal(look(bench, 3).gpu_mask, 1);
}

/* Aim: a run that could not be moved is moved, and not stopped, when a policy wishes so a good while later. */
static void test_refusals_pass(void **state)
{
	struct bench *bench = *state;
	submit(bench, 100, "");
	submit(bench, 100, "");
	sync_now(bench);
	runs(bench, 1, 1);
	runs(bench, 2, 1);
	tell(bench, 1, 1, SW_RUN_EXITED, 0, "");
	assert_true(look(bench, 2).is_moving);
	bench->now = RESTS_FROM;
	bench->runs[1].unmoved = "others hold the GPU's memory";
	sync_now(bench);
	bench->runs[1].unmoved = NULL;
	assert_false(look(bench, 2).is_moving);
	assert_int_equal(look(bench, 2).gpu_mask, 2);
	sync_now(bench);
	WISH(2, 1, SW_WANT_RUN);
	bench->now = RESTS_UNTIL;
	submit(bench, 100, ", \"gpus\": 2");
	sync_now(bench);
	WISH(2, 1, SW_WANT_RUN);
	assert_true(look(bench, 2).is_moving);
	assert_int_equal(look(bench, 2).gpu_mask, 1);
	assert_string_equal(look(bench, 2).unmoved, "");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_goes_on_where_it_was),
		TEST(test_gives_way_where_memory_does_not_fit),
		TEST(test_others_are_stopped),
		TEST(test_what_has_not_started_is_not_parked),
		TEST(test_who_was_parked_first_goes_first),
		TEST(test_suspended_by_its_user),
		TEST(test_off_its_gpus),
		TEST(test_not_off_its_gpus),
		TEST(test_refused_after_a_late_word),
		TEST(test_cannot_be_deep),
		TEST(test_cancel_and_requeue),
		TEST(test_parked_run_is_lost),
		TEST(test_ends_before_it_stands_still),
		TEST(test_host_memory),
		TEST(test_limits_follow_the_gpus),
		TEST(test_moves),
		TEST(test_stays),
		TEST(test_stays_suspended),
		cmocka_unit_test_setup_teardown(test_earlier_journals, set_up_tidy, tear_down),
		cmocka_unit_test_setup_teardown(test_moves_together, set_up_four, tear_down),
		cmocka_unit_test_setup_teardown(test_moves_anywhere, set_up_four, tear_down),
		cmocka_unit_test_setup_teardown(test_policy_moves, set_up_tidy, tear_down),
		cmocka_unit_test_setup_teardown(test_refusals_pass, set_up_tidy, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
