/* Failures: what is tried again, where and with what, what is not, and what is
 * remembered about nodes, inputs and commands. After each test the journal is replayed
 * and must give the same state. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/number.h"
#include "brain/brain.h"

#define GIB (UINT64_C(1) << 30)
#define HOUR (3600 * SW_NS_PER_S)

static const struct sw_brain_config config = {
	.policy = "fifo",
	.placement = "pack",
	.silence_ns = 100 * 24 * HOUR,
	.silence_margin_ns = 5 * SW_NS_PER_S,
	.retry_backoff_ns = 30 * SW_NS_PER_S,
};
static const struct sw_user alice = {.uid = 1000, .gid = 1000}, bob = {.uid = 1001, .gid = 1001}, root = {.is_operator = true};

struct desk {
	struct sw_brain *brain;
	SW_VEC(struct kept {
		sw_ns at;
		struct sw_record record;
	})
	journal;
	sw_ns now;
	uint64_t number;
};

static void apply_all(struct desk *desk, sw_records *records, uint64_t *ret_job)
{
	struct sw_err err = {0};
	for (size_t r = 0; r < records->count; r++) {
		if (sw_brain_apply_record(desk->brain, desk->now, &records->items[r], ret_job, &err) < 0)
			fail_msg("%s: %s", err.fact, err.detail);
		*sw_vec_push(&desk->journal) = (struct kept){desk->now, records->items[r]};
	}
	sw_vec_free(records);
	if (sw_brain_validate(desk->brain, &err) < 0)
		fail_msg("%s", err.fact);
}

/* The agent of a node with four GPUs of 80 GiB says this of one run, or nothing. */
static void hear(struct desk *desk, const char *node, struct sw_sync_run *run)
{
	struct sw_sync_gpu gpus[4];
	char uuids[4][32];
	for (int g = 0; g < 4; g++) {
		snprintf(uuids[g], sizeof uuids[g], "GPU-%s-%d", node, g);
		gpus[g] = (struct sw_sync_gpu){.uuid = uuids[g], .name = "g", .memory_bytes = 80 * GIB};
	}
	const struct sw_sync_inventory inventory = {gpus, 4, 16, 64 * GIB};
	const struct sw_sync sync = {
		.node = node, .instance = "a1", .number = ++desk->number, .inventory = &inventory, .runs = run, .run_count = run != NULL};
	sw_records records = {0};
	struct sw_err err = {0};
	if (sw_brain_hear(desk->brain, desk->now, &sync, &records, &err) < 0)
		fail_msg("%s", err.fact);
	apply_all(desk, &records, NULL);
}

static struct sw_job_view look(const struct desk *desk, uint64_t job)
{
	struct sw_job_view view;
	assert_true(sw_brain_job(desk->brain, desk->now, job, &view));
	return view;
}

static uint64_t submit_as(struct desk *desk, const struct sw_user *user, const char *json)
{
	sw_records records = {0};
	uint64_t job = 0;
	struct sw_job_request *asked = NULL;
	struct sw_err err = {0};
	if (sw_job_request_decode("test", json, strlen(json), &asked, &err) < 0)
		fail_msg("%s: %s", err.fact, err.detail);
	assert_int_equal(sw_brain_propose_submit(desk->brain, user, asked, &records, NULL), 0);
	sw_job_request_free(asked);
	apply_all(desk, &records, &job);
	return job;
}

static uint64_t submit(struct desk *desk, const char *json)
{
	return submit_as(desk, &alice, json);
}

/* The run that is on ends like this, on the node of its first part. */
static void end_with(struct desk *desk, uint64_t job, struct sw_sync_run end)
{
	struct sw_job_view view = look(desk, job);
	assert_string_equal(view.state, "CF");
	end.id = (struct sw_run_id){job, view.epoch};
	end.state = SW_RUN_EXITED;
	if (end.reason == NULL)
		end.reason = "";
	char node[64];
	snprintf(node, sizeof node, "%s", view.node);
	hear(desk, node, &end);
}

static void fail_with(struct desk *desk, uint64_t job, const char *failure, const char *line)
{
	end_with(desk, job, (struct sw_sync_run){.code = 1, .failure = failure, .failure_line = line});
}

static void pass_time(struct desk *desk, sw_ns by)
{
	desk->now += by;
	for (int rounds = 0; sw_brain_next(desk->brain) <= desk->now && rounds < 100; rounds++) {
		sw_records records = {0};
		assert_int_equal(sw_brain_tick(desk->brain, desk->now, &records, NULL), 0);
		apply_all(desk, &records, NULL);
	}
}

static void expect_words(const char *text, const char *words)
{
	if (strstr(text, words) == NULL)
		fail_msg("'%s' does not say '%s'", text, words);
}

static int set_up(void **state)
{
	struct desk *desk = calloc(1, sizeof *desk);
	desk->now = 1000 * SW_NS_PER_S;
	if (sw_brain_new(&config, &desk->brain, NULL) < 0)
		return -1;
	*state = desk;
	hear(desk, "a", NULL);
	hear(desk, "b", NULL);
	hear(desk, "c", NULL);
	return 0;
}

static int tear_down(void **state)
{
	struct desk *desk = *state;
	struct sw_brain *again = NULL;
	int r = sw_brain_new(&config, &again, NULL);
	for (size_t i = 0; r == 0 && i < desk->journal.count; i++) {
		const struct kept *kept = &desk->journal.items[i];
		r = sw_brain_apply(again, kept->at, kept->record.kind, kept->record.body, kept->record.size, NULL, NULL);
	}
	if (r == 0 && sw_brain_log_hash(again) != sw_brain_log_hash(desk->brain))
		r = -1;
	for (uint64_t job = 1; r == 0 && job <= sw_brain_job_count(again); job++) {
		struct sw_job_view now, then;
		sw_brain_job(desk->brain, desk->now, job, &now);
		sw_brain_job(again, desk->now, job, &then);
		if (strcmp(now.failure, then.failure) != 0 || strcmp(now.failure_done, then.failure_done) != 0 ||
		    strcmp(now.warning, then.warning) != 0)
			r = -1;
	}
	sw_brain_free(again);
	sw_brain_free(desk->brain);
	for (size_t i = 0; i < desk->journal.count; i++)
		free(desk->journal.items[i].record.body);
	sw_vec_free(&desk->journal);
	free(desk);
	return r;
}

/* ---- retries */

/* An error of the user's is told in words and not tried again, whatever the job asked for. */
static void test_user_errors_are_not_tried_again(void **state)
{
	struct desk *desk = *state;
	uint64_t job = submit(desk, "{\"command\": [\"x\"], \"retries\": 5}");
	fail_with(desk, job, "import-error", "ModuleNotFoundError: No module named 'x'");
	struct sw_job_view view = look(desk, job);
	assert_string_equal(view.state, "F");
	assert_string_equal(view.reason, "import-error");
	assert_string_equal(view.failure_layer, "user");
	assert_string_equal(view.failure_line, "ModuleNotFoundError: No module named 'x'");
	expect_words(view.failure_done, "not tried again");
	char why[1500];
	sw_brain_explain(desk->brain, desk->now, job, why, sizeof why);
	expect_words(why, "No module named 'x'");
	expect_words(why, "Install it");
}

/* Failures of the framework are tried again after 30, 60, 120 s, as often as the
 * class allows and not more. */
static void test_backoff_and_budget(void **state)
{
	struct desk *desk = *state;
	uint64_t job = submit(desk, "{\"command\": [\"x\"], \"retries\": 100}");
	for (int n = 0; n < 3; n++) {
		char line[64];
		snprintf(line, sizeof line, "NCCL broke in way %c", 'a' + n);
		fail_with(desk, job, "nccl-failure", line);
		assert_string_equal(look(desk, job).state, "PD");
		pass_time(desk, (30 << n) * SW_NS_PER_S - 1);
		assert_string_equal(look(desk, job).state, "PD");
		expect_words(look(desk, job).failure_done, "in 1 s");
		pass_time(desk, 1);
		assert_string_equal(look(desk, job).state, "CF");
	}
	expect_words(look(desk, job).failure_done, "(3 of 3)");
	fail_with(desk, job, "nccl-failure", "NCCL broke in way d");
	assert_string_equal(look(desk, job).state, "F");
	expect_words(look(desk, job).failure_done, "3 of 3");
}

/* What the user says bounds it: no retries means none. */
static void test_explicit_retries(void **state)
{
	struct desk *desk = *state;
	uint64_t none = submit(desk, "{\"command\": [\"x\"], \"retries\": 0}");
	fail_with(desk, none, "nccl-failure", "l");
	assert_string_equal(look(desk, none).state, "F");
	uint64_t unknown = submit(desk, "{\"command\": [\"y\"]}"), asked = submit(desk, "{\"command\": [\"z\"], \"retries\": 7}");
	fail_with(desk, unknown, "unknown", "");
	assert_string_equal(look(desk, unknown).state, "F");
	fail_with(desk, asked, "unknown", "");
	pass_time(desk, 60 * SW_NS_PER_S);
	assert_string_equal(look(desk, asked).state, "CF"); /* once */
	fail_with(desk, asked, "unknown", "");
	assert_string_equal(look(desk, asked).state, "F");
}

/* A job whose node failed it starts on another one, at once and for nothing if the node was
 * lost. */
static void test_another_node(void **state)
{
	struct desk *desk = *state;
	uint64_t job = submit(desk, "{\"command\": [\"x\"]}");
	char first[32];
	snprintf(first, sizeof first, "%s", look(desk, job).node);
	fail_with(desk, job, "gpu-hardware", "uncorrectable ECC error");
	pass_time(desk, 31 * SW_NS_PER_S);
	assert_string_equal(look(desk, job).state, "CF");
	assert_string_not_equal(look(desk, job).node, first);
	for (int i = 0; i < 3; i++) {
		snprintf(first, sizeof first, "%s", look(desk, job).node);
		end_with(desk, job, (struct sw_sync_run){.signal = 9, .reason = SW_REASON_LEASE});
		assert_string_equal(look(desk, job).state, "CF");
		assert_string_not_equal(look(desk, job).node, first);
		expect_words(look(desk, job).failure_done, "it was tried again on another node");
	}
	/* A supervisor that died leaves no code: that is no success. */
	end_with(desk, job, (struct sw_sync_run){.reason = SW_REASON_SUPERVISOR_LOST});
	assert_string_equal(look(desk, job).state, "PD"); /* by now it waits a while */
	pass_time(desk, 61 * SW_NS_PER_S);
	assert_string_equal(look(desk, job).state, "CF");
}

/* The very same failure on two nodes is the job's own; on the same node it is not. */
static void test_same_failure_on_two_nodes(void **state)
{
	struct desk *desk = *state;
	uint64_t job = submit(desk, "{\"command\": [\"x\"], \"retries\": 9}");
	fail_with(desk, job, "gpu-unavailable", "no CUDA-capable device 0 is detected");
	pass_time(desk, 31 * SW_NS_PER_S);
	fail_with(desk, job, "gpu-unavailable", "no CUDA-capable device 3 is detected");
	assert_string_equal(look(desk, job).state, "F");
	expect_words(look(desk, job).failure_done, "the very same failure on two nodes");
	uint64_t other = submit(desk, "{\"command\": [\"y\"], \"retries\": 9}");
	for (int n = 0; n < 3; n++) { /* a failure that does not send it elsewhere */
		fail_with(desk, other, "checkpoint-error", "could only be replicated to 0 nodes");
		pass_time(desk, 1000 * SW_NS_PER_S);
		assert_string_equal(look(desk, other).state, "CF");
	}
}

/* What ended one job ends others of the same user with the same command without retries, until it
 * works again or a day has passed. */
static void test_jobs_alike(void **state)
{
	struct desk *desk = *state;
	static const char command[] = "{\"command\": [\"x\", \"1\"], \"retries\": 1}";
	uint64_t first = submit(desk, command);
	fail_with(desk, first, "rendezvous", "a");
	pass_time(desk, 31 * SW_NS_PER_S);
	fail_with(desk, first, "rendezvous", "b");
	assert_string_equal(look(desk, first).state, "F");
	uint64_t second = submit(desk, command), other_user = submit_as(desk, &bob, command),
		 other = submit(desk, "{\"command\": [\"x\", \"2\"], \"retries\": 1}");
	fail_with(desk, second, "rendezvous", "a");
	fail_with(desk, other_user, "rendezvous", "a");
	fail_with(desk, other, "rendezvous", "a");
	assert_string_equal(look(desk, second).state, "F");
	expect_words(look(desk, second).failure_done, "another job of yours");
	assert_string_equal(look(desk, other_user).state, "PD");
	assert_string_equal(look(desk, other).state, "PD");
	pass_time(desk, 25 * HOUR);
	uint64_t later = submit(desk, command);
	fail_with(desk, later, "rendezvous", "a");
	assert_string_equal(look(desk, later).state, "PD");
	pass_time(desk, 60 * SW_NS_PER_S);
	end_with(desk, later, (struct sw_sync_run){.code = 0});
	assert_string_equal(look(desk, later).state, "CD");
}

/* GPU memory that ran out is answered with half as much again, up to whole GPUs; a job that had
 * those is not tried again. */
static void test_more_gpu_memory(void **state)
{
	struct desk *desk = *state;
	uint64_t job = submit(desk, "{\"command\": [\"x\"], \"gpu_memory\": \"40G\"}");
	assert_true(look(desk, job).gpu_memory_bytes == 40 * GIB);
	fail_with(desk, job, "gpu-oom", "CUDA out of memory");
	assert_true(look(desk, job).gpu_memory_bytes == 60 * GIB);
	expect_words(look(desk, job).failure_done, "with 60");
	pass_time(desk, 31 * SW_NS_PER_S);
	fail_with(desk, job, "gpu-oom", "CUDA out of memory");
	pass_time(desk, 61 * SW_NS_PER_S);
	assert_string_equal(look(desk, job).state, "CF");
	assert_true(look(desk, job).gpu_memory_bytes == 0);
	fail_with(desk, job, "gpu-oom", "CUDA out of memory");
	assert_string_equal(look(desk, job).state, "F");
	expect_words(look(desk, job).failure_done, "whole GPUs already");
}

/* Of a gang the cause counts, not what the others said when they lost it. */
static void test_cause_in_a_gang(void **state)
{
	struct desk *desk = *state;
	uint64_t job = submit(desk, "{\"command\": [\"x\"], \"gpus\": 8}");
	struct sw_sync_run one = {
		.id = {job, 1}, .state = SW_RUN_EXITED, .code = 1, .reason = "", .failure = "nccl-failure", .failure_line = "timeout"};
	struct sw_sync_run two = {
		.id = {job, 1}, .state = SW_RUN_EXITED, .code = 1, .reason = "", .failure = "import-error", .failure_line = "no module"};
	hear(desk, "a", &one);
	assert_string_equal(look(desk, job).state, "CF");
	hear(desk, "b", &two);
	assert_string_equal(look(desk, job).state, "F");
	assert_string_equal(look(desk, job).failure, "import-error");
}

/* An agent that does not classify, or knows classes that we do not, is no worse than its exit code;
 * one that lies is cut to size. */
static void test_other_agents(void **state)
{
	struct desk *desk = *state;
	uint64_t old = submit(desk, "{\"command\": [\"x\"]}"), strange = submit(desk, "{\"command\": [\"x\"]}"),
		 liar = submit(desk, "{\"command\": [\"x\"]}");
	end_with(desk, old, (struct sw_sync_run){.code = 127});
	assert_string_equal(look(desk, old).failure, "command-not-found");
	end_with(desk, strange, (struct sw_sync_run){.code = 1, .failure = "new-class", .failure_line = "CUDA out of memory"});
	assert_string_equal(look(desk, strange).failure, "gpu-oom");
	char line[900];
	memset(line, 7, sizeof line - 1);
	line[sizeof line - 1] = '\0';
	end_with(desk, liar, (struct sw_sync_run){.code = 1, .failure = "gpu-oom", .failure_line = line, .failure_path = line});
	assert_string_equal(look(desk, liar).failure_line, "");
}

/* ---- nodes */

static struct sw_node_view node_named(const struct desk *desk, const char *name)
{
	struct sw_node_view view;
	for (uint32_t n = 0; sw_brain_node(desk->brain, n, &view); n++)
		if (strcmp(view.name, name) == 0)
			return view;
	fail_msg("no node %s", name);
	return view;
}

static void door(struct desk *desk, const char *name, bool closed, const char *why)
{
	sw_records records = {0};
	assert_int_equal(sw_brain_propose_door(desk->brain, &root, name, closed, why, &records, NULL), 0);
	apply_all(desk, &records, NULL);
}

/* A drained node keeps its jobs and gets no others until it is resumed; only operators do that. */
static void test_drain(void **state)
{
	struct desk *desk = *state;
	sw_records records = {0};
	assert_int_equal(sw_brain_propose_door(desk->brain, &alice, "a", true, "", &records, NULL), SW_EDENIED);
	assert_int_equal(sw_brain_propose_door(desk->brain, &root, "nowhere", true, "", &records, NULL), SW_ENOTFOUND);
	uint64_t job = submit(desk, "{\"command\": [\"x\"], \"gpus\": 4}");
	char home[32];
	snprintf(home, sizeof home, "%s", look(desk, job).node);
	door(desk, home, true, "new fans\n");
	assert_true(node_named(desk, home).closed && node_named(desk, home).in_use && node_named(desk, home).gpus_free == 0);
	assert_string_equal(node_named(desk, home).reason, "new fans");
	assert_string_equal(look(desk, job).state, "CF");
	end_with(desk, job, (struct sw_sync_run){.code = 0});
	for (int i = 0; i < 2; i++)
		assert_string_equal(look(desk, submit(desk, "{\"command\": [\"x\"], \"gpus\": 4}")).state, "CF");
	uint64_t waits = submit(desk, "{\"command\": [\"x\"], \"gpus\": 4}");
	assert_string_equal(look(desk, waits).state, "PD");
	door(desk, home, false, "");
	assert_string_equal(look(desk, waits).state, "CF");
	assert_string_equal(look(desk, waits).node, home);
}

/* Fails a job of its own on this node; others stay closed meanwhile by being full. */
static void fail_on(struct desk *desk, const char *node, const char *failure, int number)
{
	char command[128], line[64];
	for (const char *other = "abc"; *other != '\0'; other++)
		if (*other != node[0])
			door(desk, (const char[]){*other, '\0'}, true, "");
	snprintf(command, sizeof command, "{\"command\": [\"x\", \"%d\"], \"retries\": 0}", number);
	uint64_t job = submit(desk, command);
	assert_string_equal(look(desk, job).node, node);
	for (const char *other = "abc"; *other != '\0'; other++)
		if (*other != node[0])
			door(desk, (const char[]){*other, '\0'}, false, "");
	snprintf(line, sizeof line, "line %c", 'a' + number);
	fail_with(desk, job, failure, line);
}

/* Three failures of a node's own within a day from two jobs close it; the user's own errors do not,
 * and the last open node stays. */
static void test_black_list(void **state)
{
	struct desk *desk = *state;
	for (int i = 0; i < 5; i++)
		fail_on(desk, "a", "import-error", i);
	assert_false(node_named(desk, "a").closed);
	/* One job alone closes nothing. */
	uint64_t one = submit(desk, "{\"command\": [\"y\"], \"retries\": 9}");
	for (int i = 0; i < 2; i++) {
		char line[32];
		snprintf(line, sizeof line, "fault %c", 'a' + i);
		fail_with(desk, one, "gpu-hardware", line);
		pass_time(desk, 100 * SW_NS_PER_S);
	}
	for (const char *n = "abc"; *n != '\0'; n++)
		assert_false(node_named(desk, (const char[]){*n, '\0'}).closed);
	pass_time(desk, 30 * HOUR);
	fail_on(desk, "b", "gpu-hardware", 10);
	fail_on(desk, "b", "disk-full", 11);
	assert_false(node_named(desk, "b").closed);
	fail_on(desk, "b", "gpu-hardware", 12);
	assert_true(node_named(desk, "b").closed);
	expect_words(node_named(desk, "b").reason, "gpu-hardware");
	door(desk, "a", true, "");
	uint64_t last = submit(desk, "{\"command\": [\"z\"], \"retries\": 0}");
	assert_string_equal(look(desk, last).node, "c");
	fail_with(desk, last, "gpu-hardware", "x");
	for (int i = 0; i < 4; i++) {
		char command[64];
		snprintf(command, sizeof command, "{\"command\": [\"z%d\"], \"retries\": 0}", i);
		fail_with(desk, submit(desk, command), "gpu-hardware", "x");
	}
	assert_false(node_named(desk, "c").closed);
	door(desk, "b", false, "");
	assert_false(node_named(desk, "b").closed);
}

/* ---- inputs */

static void fail_input(struct desk *desk, uint64_t job, const char *path)
{
	end_with(desk, job, (struct sw_sync_run){.code = 1, .failure = "incorrect-input", .failure_line = "gone", .failure_path = path});
}

/* An input that two jobs failed on is flagged for jobs that name it later, for a day. */
static void test_bad_inputs(void **state)
{
	struct desk *desk = *state;
	fail_input(desk, submit(desk, "{\"command\": [\"a\"]}"), "/data/set7");
	assert_string_equal(look(desk, submit(desk, "{\"command\": [\"b\", \"/data/set7/x\"], \"hold\": true}")).warning, "");
	fail_input(desk, submit_as(desk, &bob, "{\"command\": [\"c\"]}"), "/data/set7");
	uint64_t by_argument = submit(desk, "{\"command\": [\"d\", \"--in=/data/set7/x\"], \"hold\": true}");
	uint64_t by_variable = submit(desk, "{\"command\": [\"d\"], \"env\": {\"IN\": \"/data/set7\"}, \"hold\": true}");
	uint64_t other = submit(desk, "{\"command\": [\"d\", \"/data/set8\"], \"hold\": true}");
	expect_words(look(desk, by_argument).warning, "'/data/set7' was missing or damaged for 2 jobs");
	expect_words(look(desk, by_variable).warning, "/data/set7");
	assert_string_equal(look(desk, other).warning, "");
	pass_time(desk, 25 * HOUR);
	assert_string_equal(look(desk, submit(desk, "{\"command\": [\"d\", \"/data/set7\"]}")).warning, "");
}

/* ---- pre-runs */

static const char gang[] = "{\"command\": [\"x\"], \"name\": \"big\", \"gpus\": 8, \"prerun\": \"5m\"}";

/* A pre-run that fails by the user's fault ends the gang in its words, and costs one GPU. */
static void test_prerun_fails(void **state)
{
	struct desk *desk = *state;
	uint64_t job = submit(desk, gang);
	assert_int_equal(job, 2);
	struct sw_job_view first = look(desk, 1);
	assert_string_equal(first.name, "big.prerun");
	assert_string_equal(first.state, "CF");
	assert_int_equal(first.gpus, 1);
	assert_true(first.is_prerun);
	expect_words(first.request, "\"time_limit\":300");
	assert_string_equal(look(desk, job).state, "PD");
	char why[500];
	sw_brain_explain(desk->brain, desk->now, job, why, sizeof why);
	expect_words(why, "pre-run on one GPU, job 1");
	desk->now += 20 * SW_NS_PER_S;
	fail_with(desk, 1, "import-error", "No module named 'x'");
	struct sw_job_view view = look(desk, job);
	assert_string_equal(view.state, "F");
	assert_string_equal(view.failure, "import-error");
	assert_string_equal(view.failure_line, "No module named 'x'");
	expect_words(view.failure_done, "pre-run");
	assert_int_equal(view.code, 1);
	assert_true(view.ran_ns == 0 && look(desk, 1).ran_ns == 20 * SW_NS_PER_S);
}

/* Success, the end of its time, memory that is short on one GPU, and failures that are not the
 * user's let the gang start. */
static void test_prerun_passes(void **state)
{
	struct desk *desk = *state;
	static const struct sw_sync_run ends[] = {
		{.code = 0},
		{.signal = 15, .reason = SW_REASON_TIME_LIMIT},
		{.code = 1, .failure = "gpu-oom"},
		{.code = 1, .failure = "gpu-hardware"},
		{.code = 1, .failure = "unknown"},
	};
	for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
		uint64_t job = submit(desk, gang);
		end_with(desk, job - 1, ends[i]);
		assert_string_equal(look(desk, job).state, "CF");
		assert_int_equal(look(desk, job).gpus, 8);
		assert_string_equal(look(desk, job - 1).state, i < 2 ? "CD" : "F");
		struct sw_sync_run done = {.id = {job, 1}, .state = SW_RUN_EXITED, .reason = ""};
		for (const char *node = "abc"; *node != '\0'; node++)
			hear(desk, (const char[]){*node, '\0'}, &done);
		assert_string_equal(look(desk, job).state, "CD");
	}
}

/* Cancelling the gang cancels its pre-run; a hold keeps both back. */
static void test_prerun_goes_with_its_gang(void **state)
{
	struct desk *desk = *state;
	uint64_t job = submit(desk, gang);
	sw_records records = {0};
	assert_int_equal(sw_brain_propose_change(desk->brain, &alice, SW_RECORD_CANCEL, "cancel", job, &records, NULL), 0);
	apply_all(desk, &records, NULL);
	assert_string_equal(look(desk, job).state, "CA");
	assert_string_equal(look(desk, job - 1).state, "CG");
	job = submit(desk, "{\"command\": [\"x\"], \"gpus\": 8, \"prerun\": \"5m\", \"hold\": true}");
	assert_string_equal(look(desk, job - 1).state, "PD");
	assert_int_equal(sw_brain_propose_change(desk->brain, &alice, SW_RECORD_RELEASE, "release", job, &records, NULL), 0);
	apply_all(desk, &records, NULL);
	assert_string_equal(look(desk, job - 1).state, "CF");
	assert_string_equal(look(desk, job).state, "PD");
	end_with(desk, job - 1, (struct sw_sync_run){.code = 0});
	assert_string_equal(look(desk, job).state, "CF");
}

/* All members of an array wait for one pre-run, which goes when none of them needs it any more; its
 * end lets them all start. */
static void test_one_prerun_for_an_array(void **state)
{
	struct desk *desk = *state;
	sw_records records = {0};
	SW_CLEANUP(sw_job_request_freep) struct sw_job_request *asked = NULL;
	const char *json = "{\"command\": [\"x\"], \"gpus\": 2, \"prerun\": \"5m\", \"array\": \"0-2\"}";
	for (uint64_t first = 1; first <= 5; first += 4) { /* made anew, and cancelled first */
		assert_int_equal(sw_job_request_decode("test", json, strlen(json), &asked, NULL), 0);
		asked->is_member = true;
		assert_int_equal(sw_brain_propose_submit(desk->brain, &alice, asked, &records, NULL), 0);
		assert_int_equal(sw_brain_propose_others(asked, 3, &records, NULL), 0);
		sw_job_request_free(SW_TAKE(asked));
		apply_all(desk, &records, NULL);
		assert_int_equal(sw_brain_job_count(desk->brain), first + 3);
		assert_true(look(desk, first).is_prerun);
		for (uint64_t job = first + 1; job <= first + 3; job++) {
			assert_string_equal(look(desk, job).state, "PD");
			assert_false(look(desk, job).is_prerun);
		}
		for (uint64_t job = first + 1; first == 1 && job <= first + 3; job++) {
			assert_string_equal(look(desk, first).state, "CF");
			assert_int_equal(sw_brain_propose_change(desk->brain, &alice, SW_RECORD_CANCEL, "cancel", job, &records, NULL), 0);
			apply_all(desk, &records, NULL);
		}
	}
	assert_string_equal(look(desk, 1).reason, "cancelled");
	end_with(desk, 5, (struct sw_sync_run){.signal = 15, .reason = SW_REASON_TIME_LIMIT});
	struct sw_job_view passed = look(desk, 5);
	assert_string_equal(passed.state, "CD");
	assert_string_equal(passed.failure, "");
	assert_true(passed.code == 0 && passed.signal == 0);
	expect_words(passed.reason, "passed");
	for (uint64_t job = 6; job <= 8; job++)
		assert_string_equal(look(desk, job).state, "CF");
}

/* Aim: a member of an array says what it waits for still: the job before it, then its
 * pre-run, then its turn. */
static void test_members_tell_what_is_still_to_come(void **state)
{
	struct desk *desk = *state;
	sw_records records = {0};
	SW_CLEANUP(sw_job_request_freep) struct sw_job_request *asked = NULL;
	const char *json = "{\"command\": [\"x\"], \"gpus\": 2, \"prerun\": \"5m\", \"array\": \"0-2%1\", \"depends\": \"afterok:1\"}";
	static const struct {
		const char *why, *reason;
	} says[] = {{"it waits for job 1 to end", "Dependency"},
		    {"its pre-run on one GPU, job 2", "Dependency"},
		    {"1 of them may run at a time", "JobArrayTaskLimit"}};
	submit(desk, "{\"command\": [\"before\"]}");
	assert_int_equal(sw_job_request_decode("test", json, strlen(json), &asked, NULL), 0);
	asked->is_member = true;
	assert_int_equal(sw_brain_propose_submit(desk->brain, &alice, asked, &records, NULL), 0);
	assert_int_equal(sw_brain_propose_others(asked, 3, &records, NULL), 0);
	apply_all(desk, &records, NULL);
	for (uint64_t job = 1; job <= 3; job++) {
		char why[300];
		sw_brain_explain(desk->brain, desk->now, 5, why, sizeof why);
		expect_words(why, says[job - 1].why);
		assert_string_equal(look(desk, 5).reason, says[job - 1].reason);
		end_with(desk, job, (struct sw_sync_run){.code = 0});
	}
	assert_string_equal(look(desk, 4).state, "CF");
	assert_string_equal(look(desk, 5).state, "PD");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_user_errors_are_not_tried_again),
		TEST(test_backoff_and_budget),
		TEST(test_explicit_retries),
		TEST(test_another_node),
		TEST(test_same_failure_on_two_nodes),
		TEST(test_jobs_alike),
		TEST(test_more_gpu_memory),
		TEST(test_cause_in_a_gang),
		TEST(test_other_agents),
		TEST(test_drain),
		TEST(test_black_list),
		TEST(test_bad_inputs),
		TEST(test_prerun_fails),
		TEST(test_prerun_passes),
		TEST(test_prerun_goes_with_its_gang),
		TEST(test_one_prerun_for_an_array),
		TEST(test_members_tell_what_is_still_to_come),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
