/* What records say, for a replay of the history: jobs as the engine was asked for them, and to
 * other users no more than lists of jobs say. */
#include <stdlib.h>
#include <string.h>

#include "api/when.h"
#include "core/spec.h"
#include "unit/brain/desk.h"

/* The `index`-th of this kind that the journal tells this user; the caller drops it. NULL: the
 * user is not told. */
static json_t *heard(const struct desk *desk, const struct sw_user *user, const char *kind, size_t index)
{
	for (size_t i = 0; i < desk->journal.count; i++) {
		const struct kept *kept = &desk->journal.items[i];
		char *text = sw_brain_retell(desk->brain, user, i + 1, kept->at, kept->record.kind, kept->record.body, kept->record.size);
		json_t *event = text != NULL ? json_loads(text, 0, NULL) : NULL;
		free(text);
		if (event != NULL && strcmp(json_string_value(json_object_get(event, "kind")), kind) == 0 && index-- == 0) {
			assert_int_equal(json_integer_value(json_object_get(event, "seq")), i + 1);
			assert_non_null(json_string_value(json_object_get(event, "at")));
			return event;
		}
		json_decref(event);
	}
	return NULL;
}

static json_t *told(const struct desk *desk, const struct sw_user *user, const char *kind, size_t index)
{
	json_t *event = heard(desk, user, kind, index);
	if (event == NULL)
		fail_msg("the journal tells of no more '%s'", kind);
	return event;
}

static uint64_t field(const json_t *event, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(json_object_get(event, "spec"), name));
}

static const char *text_of(const json_t *event, const char *name)
{
	return json_string_value(json_object_get(event, name));
}

/* Aim: each field of what the engine was asked is told, as it was. */
static void test_submit(void **state)
{
	struct desk *desk = *state;
	desk_submit(
		desk,
		"{\"command\": [\"x\"], \"gpus\": 2, \"gpu_memory\": \"3G\", \"gpu_floor\": \"1G\", \"cpus\": 3, \"memory\": \"5G\", "
		"\"class\": \"auto\", "
		"\"expected\": \"90s\", \"weight\": 2, \"preempt\": \"suspend\", \"model\": \"resnet50\", \"hold\": true, \"retries\": 7, "
		"\"deadline\": \"2199-01-01T00:00:00Z\"}");
	json_t *event = told(desk, &alice, "submit", 0);
	const struct sw_job *job = sw_engine_job(desk->brain->engine, (struct sw_job_id){0});
	assert_int_equal(field(event, "gpus"), job->gpus);
	assert_int_equal(field(event, "min_gpus"), job->min_gpus);
	assert_int_equal(field(event, "gpu_memory_bytes"), job->gpu_memory_bytes);
	assert_int_equal(field(event, "gpu_floor_bytes"), job->gpu_floor_bytes);
	assert_int_equal(field(event, "host_memory_bytes"), job->host_memory_bytes);
	assert_int_equal(field(event, "cpus"), job->cpus);
	assert_int_equal(field(event, "weight_milli"), job->weight_milli);
	assert_int_equal(field(event, "retries"), job->retries_left);
	assert_int_equal(field(event, "knowledge"), SW_PREDICTED);
	assert_int_equal(field(event, "work_ns"), 90 * SW_NS_PER_S);
	assert_int_equal(field(event, "auto"), 1);
	assert_int_equal(field(event, "held"), 1);
	assert_int_equal(field(event, "stop_rule"), SW_STOP_SUSPEND);
	assert_string_equal(text_of(event, "model"), "resnet50");
	assert_string_equal(text_of(event, "deadline"), "2199-01-01T00:00:00Z");
	assert_non_null(text_of(event, "tenant"));
	assert_true(json_is_false(json_object_get(event, "prerun")));
	json_decref(event);
}

static uint64_t rule_told(const struct desk *desk, size_t index)
{
	json_t *event = told(desk, &alice, "submit", index);
	uint64_t rule = field(event, "stop_rule");
	json_decref(event);
	return rule;
}

/* Aim: how a job may be stopped is told as its owner said it, and not at all where the world
 * said it, whatever the world says by now. */
static void test_stop_rules(void **state)
{
	struct desk *desk = *state;
	desk_submit(desk, "{\"command\": [\"x\"]}");
	desk_submit(desk, "{\"command\": [\"x\"], \"class\": \"opportunistic\"}");
	desk_submit(desk, "{\"command\": [\"x\"], \"preempt\": \"never\"}");
	desk_submit(desk, "{\"command\": [\"x\"], \"preempt\": \"requeue\"}");
	for (int changed = 0; changed < 2; changed++) {
		assert_int_equal(rule_told(desk, 0), SW_STOP_AS_WORLD);
		assert_int_equal(rule_told(desk, 1), SW_STOP_AS_WORLD);
		assert_int_equal(rule_told(desk, 2), SW_STOP_NEVER);
		assert_int_equal(rule_told(desk, 3), SW_STOP_RESTART);
		desk->brain->terms.guaranteed_stop = SW_STOP_RESTART;
	}
}

/* Aim: a user hears of a job of another one how many GPUs it has; an operator hears all. */
static void test_others(void **state)
{
	struct desk *desk = *state;
	desk_submit(desk, "{\"command\": [\"x\"], \"gpus\": 2, \"gpu_memory\": \"3G\", \"tenant\": \"secret\", \"model\": \"bert\"}");
	json_t *event = told(desk, &bob, "submit", 0);
	assert_int_equal(field(event, "gpus"), 2);
	assert_int_equal(json_object_size(event), 5); /* seq, at, kind, spec, prerun */
	assert_int_equal(json_object_size(json_object_get(event, "spec")), 1);
	assert_null(json_object_get(event, "tenant"));
	assert_null(json_object_get(event, "model"));
	json_decref(event);
	event = told(desk, &root, "submit", 0);
	assert_string_equal(text_of(event, "tenant"), "secret");
	json_decref(event);
}

/* Aim: of the memory of a run its owner and operators hear; when it began, and of holds and
 * releases, all users do, as they do in lists of jobs. */
static void test_other_runs(void **state)
{
	struct desk *desk = *state;
	sw_records records = {0};
	desk_sync_and_drop(desk);
	desk_submit(desk, "{\"command\": [\"x\"]}");
	desk_sync_and_drop(desk);
	desk_say(desk, 1, 1, SW_RUN_RUNNING, 0);
	desk_sync_and_drop(desk);
	const struct sw_user *const hear[] = {&alice, &root};
	for (size_t i = 0; i < 2; i++)
		json_decref(told(desk, hear[i], "run", 0));
	json_t *run = told(desk, &bob, "run", 0);
	assert_true(json_is_true(json_object_get(run, "begins")) && json_is_false(json_object_get(run, "frees")));
	json_decref(run);
	assert_int_equal(sw_brain_propose_change(desk->brain, &alice, SW_RECORD_HOLD, "hold", 1, &records, NULL), 0);
	desk_apply(desk, &records, NULL);
	json_t *event = told(desk, &bob, "hold", 0);
	assert_int_equal(json_integer_value(json_object_get(event, "job")), 1);
	assert_int_equal(json_object_size(event), 5); /* seq, at, kind, job, leaves */
	json_decref(event);
}

static void requeue(struct desk *desk, const struct sw_user *user, enum sw_record_kind kind, const char *verb, uint64_t job)
{
	sw_records records = {0};
	assert_int_equal(sw_brain_propose_change(desk->brain, user, kind, verb, job, &records, NULL), 0);
	desk_apply(desk, &records, NULL);
}

static int64_t number(const json_t *event, const char *name)
{
	return json_integer_value(json_object_get(event, name));
}

/* Aim: an end tells all that a replay needs: how, how long the job was on GPUs in all its runs, and
 * how often it was stopped. Its owner hears that also when the job has left; others hear when. */
static void test_ends(void **state)
{
	struct desk *desk = *state;
	desk_sync_and_drop(desk);
	desk_submit(desk, "{\"command\": [\"x\"], \"preempt\": \"requeue\"}");
	desk_sync_and_drop(desk);
	desk_say(desk, 1, 1, SW_RUN_RUNNING, 0);
	desk_sync_and_drop(desk);
	desk->now += 7 * SW_NS_PER_S;
	requeue(desk, &alice, SW_RECORD_REQUEUE, "requeue", 1);
	desk_sync_and_drop(desk);
	desk_say(desk, 1, 1, SW_RUN_EXITED, 15);
	desk_sync_and_drop(desk);
	desk_say(desk, 1, 2, SW_RUN_RUNNING, 0);
	desk_sync_and_drop(desk);
	desk->now += 5 * SW_NS_PER_S;
	desk_say(desk, 1, 2, SW_RUN_EXITED, 0);
	desk_sync_and_drop(desk);
	assert_string_equal(desk_state(desk, 1), "CD");
	json_t *event = told(desk, &alice, "exit", 0);
	assert_int_equal(number(event, "job"), 1);
	assert_string_equal(text_of(event, "how"), "completed");
	assert_int_equal(number(event, "ran_ns"), 12 * SW_NS_PER_S);
	assert_int_equal(number(event, "stops"), 0);
	json_decref(event);
	event = told(desk, &bob, "exit", 0);
	assert_string_equal(text_of(event, "how"), "completed");
	assert_null(json_object_get(event, "ran_ns"));
	json_decref(event);
	event = told(desk, &bob, "requeue", 0);
	assert_int_equal(number(event, "job"), 1);
	json_decref(event);
	desk_submit(desk, "{\"command\": [\"x\"], \"name\": \"second\", \"depends\": \"afterany:1\"}");
	desk_sync_and_drop(desk);
	desk->now += 3 * SW_NS_PER_S;
	requeue(desk, &root, SW_RECORD_CANCEL, "cancel", 2);
	event = told(desk, &alice, "cancel", 0);
	assert_int_equal(number(event, "ran_ns"), 3 * SW_NS_PER_S);
	json_decref(event);
	event = told(desk, &bob, "cancel", 0);
	assert_null(json_object_get(event, "ran_ns"));
	json_decref(event);
	event = told(desk, &alice, "submit", 1);
	assert_int_equal(json_integer_value(json_array_get(json_object_get(event, "depends"), 0)), 1);
	assert_string_equal(text_of(event, "name"), "second");
	assert_non_null(text_of(event, "user"));
	json_decref(event);
}

/* Aim: an end that an earlier version recorded has no run time, and is told all the same. */
static void test_end_of_an_earlier_version(void **state)
{
	struct desk *desk = *state;
	static const char body[] =
		"{\"code\":1,\"epoch\":1,\"job\":7,\"node\":\"n\",\"reason\":\"time-limit\",\"signal\":0,\"state\":\"exited\"}";
	char *text = sw_brain_retell(desk->brain, &root, 1, 5, SW_RECORD_REPORT, body, sizeof body - 1);
	json_t *event = json_loads(text, 0, NULL);
	assert_string_equal(text_of(event, "how"), "timed out");
	assert_null(json_object_get(event, "ran_ns"));
	json_decref(event);
	free(text);
}

/* Aim: a change of the policy is a mark. */
static void test_marks(void **state)
{
	struct desk *desk = *state;
	static const char *const bodies[] = {"{\"policy\": \"las\"}", "{\"name\": \"mine\"}", "{\"above\": 12}"};
	static const enum sw_record_kind kinds[] = {SW_RECORD_POLICY, SW_RECORD_WORLD, SW_RECORD_NUMBERS};
	for (size_t i = 0; i < 3; i++) {
		char *text = sw_brain_retell(desk->brain, &bob, 1, 5, kinds[i], bodies[i], strlen(bodies[i]));
		json_t *event = json_loads(text, 0, NULL);
		assert_string_equal(text_of(event, "kind"), i == 0 ? "policy" : i == 1 ? "world" : "numbers");
		assert_true(i == 2 ? number(event, "above") == 12
				   : strcmp(text_of(event, i == 0 ? "policy" : "world"), i == 0 ? "las" : "mine") == 0);
		json_decref(event);
		free(text);
	}
}

/* Aim: the profile of a model is of the program of one user: operators alone hear of it. */
static void test_profiles(void **state)
{
	struct desk *desk = *state;
	sw_records records = {0};
	struct sw_profile profile = *sw_profiles_find(desk->brain->profiles, "bert");
	profile.name = "secret";
	assert_int_equal(sw_brain_propose_profile(desk->brain, "secret", &profile, &records, NULL), 0);
	desk_apply(desk, &records, NULL);
	assert_null(heard(desk, &alice, "profile", 0));
	json_t *event = told(desk, &root, "profile", 0);
	assert_string_equal(text_of(event, "name"), "secret");
	json_decref(event);
}

/* Aim: that a run began, and whether its memory leaves its GPUs; nodes and quotas, in the
 * engine's terms. */
static void test_cluster(void **state)
{
	struct desk *desk = *state;
	sw_records records = {0};
	desk_sync_and_drop(desk);
	desk_submit(desk, "{\"command\": [\"x\"]}");
	desk_sync_and_drop(desk);
	desk_say(desk, 1, 1, SW_RUN_RUNNING, 0);
	desk_sync_and_drop(desk);
	json_t *event = told(desk, &alice, "run", 0);
	assert_int_equal(json_integer_value(json_object_get(event, "job")), 1);
	assert_true(json_is_true(json_object_get(event, "begins")));
	assert_true(json_is_boolean(json_object_get(event, "frees")));
	json_decref(event);
	assert_int_equal(sw_brain_propose_quota(desk->brain, &root, "team", 3, &records, NULL), 0);
	assert_int_equal(sw_brain_propose_door(desk->brain, &root, "n", true, "fans", &records, NULL), 0);
	desk_apply(desk, &records, NULL);
	event = told(desk, &bob, "quota", 0);
	assert_string_equal(text_of(event, "tenant"), "team");
	assert_int_equal(json_integer_value(json_object_get(event, "gpus")), 3);
	json_decref(event);
	event = told(desk, &bob, "node", 0);
	assert_string_equal(text_of(event, "node"), "n");
	json_decref(event);
	event = told(desk, &bob, "node_closed", 0);
	assert_string_equal(text_of(event, "node"), "n");
	assert_null(json_object_get(event, "why"));
	json_decref(event);
}

/* Aim: what is no record of ours is no event, and no error. */
static void test_nonsense(void **state)
{
	struct desk *desk = *state;
	static const char *const bodies[] = {
		"", "{", "[]", "{}", "{\"request\": 7}", "{\"request\": {\"command\": 3}}", "{\"job\": \"x\"}"};
	for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
		for (int kind = 0; kind < 64; kind++)
			free(sw_brain_retell(desk->brain, &bob, 1, 1, (enum sw_record_kind)kind, bodies[i], strlen(bodies[i])));
}

/* Aim: a record of a moment that no text has is told without one, and ends nothing. */
static void test_moments(void **state)
{
	struct desk *desk = *state;
	static const sw_ns moments[] = {INT64_MAX, SW_WHEN_MAX_NS + 1, -1, INT64_MIN};
	for (size_t i = 0; i < sizeof moments / sizeof *moments; i++) {
		char *text = sw_brain_retell(desk->brain, &bob, 1, moments[i], SW_RECORD_WAKE, "{}", 2);
		json_t *event = json_loads(text, 0, NULL);
		free(text);
		assert_true(json_is_null(json_object_get(event, "at")));
		assert_string_equal(text_of(event, "kind"), "wake");
		json_decref(event);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DESK_TEST(test_submit),	    DESK_TEST(test_stop_rules), DESK_TEST(test_others),
		DESK_TEST(test_other_runs), DESK_TEST(test_ends),	DESK_TEST(test_end_of_an_earlier_version),
		DESK_TEST(test_marks),	    DESK_TEST(test_profiles),	DESK_TEST(test_cluster),
		DESK_TEST(test_nonsense),   DESK_TEST(test_moments)};
	return cmocka_run_group_tests(tests, desk_load_profiles, desk_unload_profiles);
}
