/* The terms of the cluster's world: put in force by a record, kept over a restart, and refused
 * where a live cluster cannot have them. */
#include <stdlib.h>
#include <string.h>

#include "brain/record.h"
#include "contention/learn.h"
#include "unit/brain/desk.h"
#include "world/world.h"

static struct sw_world *load(const char *text)
{
	struct sw_world *world = NULL;
	struct sw_err err = {0};
	if (sw_world_parse("mine", text, strlen(text), &world, &err) < 0)
		fail_msg("%s: %s", err.fact, err.detail);
	return world;
}

static int propose(struct desk *desk, const struct sw_user *user, const char *text, sw_records *records, struct sw_err *err)
{
	SW_CLEANUP(sw_world_freep) struct sw_world *world = load(text);
	return sw_brain_propose_world(desk->brain, user, world->name, world, records, err);
}

static void put_in_force(struct desk *desk, const char *text)
{
	sw_records records = {0};
	struct sw_err err = {0};
	if (propose(desk, &root, text, &records, &err) < 0)
		fail_msg("%s: %s", err.fact, err.detail);
	desk_apply(desk, &records, NULL);
}

/* Aim: the engine decides under the terms of the record: a job that runs is not preempted before
 * the new quantum, and is once that is over. */
static void test_engine_hears(void **state)
{
	struct desk *desk = *state;
	sw_records records = {0};
	assert_int_equal(sw_brain_propose_policy(desk->brain, &root, "srtf", NULL, 0, &records, NULL), 0);
	desk_apply(desk, &records, NULL);
	put_in_force(desk, "base: live\nname: mine\nquantum: 100s\n");
	assert_int_equal(sw_engine_terms(desk->brain->engine)->quantum_ns, 100 * SW_NS_PER_S);
	desk_sync_and_drop(desk);
	desk_submit(desk, "{\"command\": [\"x\"], \"gpus\": 2, \"preempt\": \"requeue\", \"expected\": \"1h\"}");
	desk_submit(desk, "{\"command\": [\"x\"], \"gpus\": 2, \"preempt\": \"requeue\", \"expected\": \"1s\"}");
	desk_sync_and_drop(desk);
	assert_string_equal(desk_state(desk, 2), "PD");
	put_in_force(desk, "base: live\nname: mine\nquantum: 0s\n");
	assert_string_equal(desk_state(desk, 1), "PD");
}

/* Aim: how a job may be stopped whose owner said nothing is the operator's affair;
 * what an owner said holds. */
static void test_stops(void **state)
{
	struct desk *desk = *state;
	put_in_force(desk, "base: live\nname: mine\nstops: {guaranteed: never, opportunistic: requeue}\n");
	desk_sync_and_drop(desk);
	desk_submit(desk, "{\"command\": [\"x\"]}");
	desk_submit(desk, "{\"command\": [\"x\"], \"class\": \"opportunistic\"}");
	desk_submit(desk, "{\"command\": [\"x\"], \"preempt\": \"suspend\"}");
	assert_int_equal(sw_engine_job(desk->brain->engine, (struct sw_job_id){0})->stop_rule, SW_STOP_NEVER);
	assert_int_equal(sw_engine_job(desk->brain->engine, (struct sw_job_id){1})->stop_rule, SW_STOP_RESTART);
	assert_int_equal(sw_engine_job(desk->brain->engine, (struct sw_job_id){2})->stop_rule, SW_STOP_SUSPEND);
}

/* Aim: a state that is saved and loaded has the world, its terms and the user that chose it. */
static void test_restart(void **state)
{
	struct desk *desk = *state;
	struct sw_brain *loaded = NULL;
	struct sw_pack pack = {0};
	bool adopted = true, chosen = false;
	char *name = NULL, *text = NULL;
	put_in_force(desk, "base: live\nname: mine\nquantum: 7s\n");
	sw_brain_save(desk->brain, &pack);
	assert_int_equal(sw_brain_load(&desk->brain->config, pack.bytes, pack.size, &loaded, &adopted, NULL), 0);
	assert_false(adopted);
	assert_null(sw_terms_differ(sw_brain_terms(desk->brain), sw_brain_terms(loaded)));
	assert_null(sw_terms_differ(sw_brain_terms(loaded), sw_engine_terms(loaded->engine)));
	assert_int_equal(sw_brain_look_world(loaded, &name, &text, &chosen), 0);
	assert_string_equal(name, "mine");
	assert_string_equal(text, "base: live\nname: mine\nquantum: 7s\n");
	assert_true(chosen);
	free(name);
	free(text);
	sw_pack_release(&pack);
	sw_brain_free(loaded);
}

static void expect_type(const struct sw_brain *brain, uint32_t number, const char *name, uint32_t speed_milli, uint32_t busy_watts)
{
	struct sw_gpu_type type;
	assert_true(sw_view_gpu_type(sw_engine_view(brain->engine), number, &type));
	assert_string_equal(type.name, name);
	assert_int_equal(type.speed_milli, speed_milli);
	assert_int_equal(type.busy_watts, busy_watts);
}

/* Aim: nodes have types by what their drivers call their GPUs, and what the world says of these
 * names holds from its record on, also after a restart. */
static void test_gpu_types(void **state)
{
	struct desk *desk = *state;
	struct sw_sync_gpu gpus[] = {{.uuid = "GPU-0", .name = "NVIDIA H200", .memory_bytes = UINT64_C(80) << 30},
				     {.uuid = "GPU-1", .name = "NVIDIA H200", .memory_bytes = UINT64_C(80) << 30}};
	const struct sw_sync_inventory inventory = {gpus, 2, 16, UINT64_C(64) << 30};
	desk->inventory = &inventory;
	desk_sync_and_drop(desk);
	struct sw_node node;
	sw_view_node(sw_engine_view(desk->brain->engine), (struct sw_node_id){0}, &node);
	assert_int_equal(node.gpu_type, 1);
	assert_int_equal(sw_view_gpu_types(sw_engine_view(desk->brain->engine)), 2);
	expect_type(desk->brain, 0, "gpu", 1000, 0);
	expect_type(desk->brain, 1, "NVIDIA H200", 1000, 0);
	put_in_force(desk, "base: live\nname: mine\ngpu_types: {h200: {speed: 2, power: 700 W, models: {bert: 3}}}\n");
	expect_type(desk->brain, 1, "NVIDIA H200", 2000, 700);
	desk_submit(desk, "{\"command\": [\"x\"], \"model\": \"bert\"}");
	struct sw_brain *loaded = NULL;
	struct sw_pack pack = {0};
	bool adopted = true;
	sw_brain_save(desk->brain, &pack);
	assert_int_equal(sw_brain_load(&desk->brain->config, pack.bytes, pack.size, &loaded, &adopted, NULL), 0);
	assert_false(adopted);
	expect_type(loaded, 1, "NVIDIA H200", 2000, 700);
	const struct sw_job *job = sw_engine_job(loaded->engine, (struct sw_job_id){0});
	assert_in_range(sw_job_type_speed_milli(sw_engine_view(loaded->engine), job, 1), 2990, 3010);
	assert_int_equal(sw_job_type_speed_milli(sw_engine_view(loaded->engine), job, 0), 1000);
	sw_pack_release(&pack);
	sw_brain_free(loaded);
	/* GPUs of two names have none in common. */
	gpus[1].name = "NVIDIA A100";
	gpus[1].uuid = "GPU-2";
	desk_sync_and_drop(desk);
	sw_view_node(sw_engine_view(desk->brain->engine), (struct sw_node_id){0}, &node);
	assert_int_equal(node.gpu_type, 0);
	put_in_force(desk, "base: live\nname: mine\n");
	expect_type(desk->brain, 1, "NVIDIA H200", 1000, 0);
	desk->inventory = NULL;
}

/* Time of a guaranteed job beside an opportunistic one, as it is predicted for people. */
static uint32_t predict_gated(const struct sw_brain *brain)
{
	static const char *const pair[] = {"resnet50", "data2vec"};
	struct sw_learn_answer answer;
	sw_learn_ask(brain->learn, &(struct sw_learn_case){SW_WAY_GATE, pair, 2, 0}, &answer);
	return answer.slow_milli;
}

/* Aim: what was learned corrects predictions under the gate of the world that is in force, and a
 * controller that starts anew predicts the same. */
static void test_lessons_under_a_gate(void **state)
{
	struct desk *desk = *state;
	static const char *const seen[] = {"deepfm", "dlrm"};
	struct sw_brain *brain = NULL, *loaded = NULL; /* not the desk's: no record has this lesson */
	struct sw_pack pack = {0};
	sw_records records = {0};
	bool adopted = true;
	assert_int_equal(propose(desk, &root, "base: live\nname: mine\ngate: 1.5\n", &records, NULL), 0);
	assert_int_equal(sw_brain_new(&desk_config, &brain, NULL), 0);
	assert_int_equal(sw_learn_add(brain->learn, &(struct sw_learn_case){SW_WAY_GATE, seen, 2, 0}, 1100, 60, NULL), 0);
	uint32_t before = predict_gated(brain);
	assert_int_equal(sw_brain_apply_record(brain, desk->now, &records.items[0], NULL, NULL), 0);
	sw_records_clear(&records);
	uint32_t after = predict_gated(brain);
	assert_in_range(after, before + 100, UINT32_MAX);
	sw_brain_save(brain, &pack);
	assert_int_equal(sw_brain_load(&desk_config, pack.bytes, pack.size, &loaded, &adopted, NULL), 0);
	assert_int_equal(predict_gated(loaded), after);
	sw_pack_release(&pack);
	sw_brain_free(brain);
	sw_brain_free(loaded);
}

/* The rest of it is as in the world 'live'. A gate is left out only by a file without a base. */
static const char no_gate[] = "name: m\npreempt: in_place\nstops: {guaranteed: suspend_if_free, opportunistic: suspend}\nmoves: restart\n"
			      "nodes_join: true\ntells_speed: false\nsharing_slowdown: true\nsharing_by: slices\nfaults: {retries: 3}\n";

/* Aim: worlds that a live cluster cannot have are refused with what it cannot do, and
 * only operators choose. */
static void test_refused(void **state)
{
	struct desk *desk = *state;
	static const struct {
		const char *text, *why;
	} cases[] = {
		{"base: measured\nname: m\n", "preempt: in_place"},
		{"base: live\nname: m\npreempt: restart\nstops: {guaranteed: requeue, opportunistic: requeue}\n", "preempt: in_place"},
		{"base: live\nname: m\nreplace_is_free: true\n", "replace_is_free"},
		{"base: live\nname: m\nmoves: freely\n", "moves"},
		{"base: live\nname: m\ntells_speed: true\n", "tells_speed"},
		{"base: live\nname: m\nsharing_by: profiles\n", "sharing_by"},
		{"base: live\nname: m\nsplit: 1.1\n", "split"},
		{"base: live\nname: m\nnodes: {switch: true}\n", "agents cannot switch nodes off and on yet"},
		{"base: live\nname: m\nstops: {guaranteed: world}\n", "stops"},
		{"base: live\nname: m\nevent_overhead: {default: 1s}\n", "event_overhead"},
		{"base: live\nname: m\nhost: {cpus_per_gpu: 4}\n", "host"},
		{"base: live\nname: m\nhost: {memory_per_gpu: 8G}\n", "host"},
		{"base: live\nname: m\nfaults: {retries: 0}\n", "faults: {retries: 3}"},
		{"base: live\nname: m\nlearned: slowdowns.json\n", "learned"},
		{no_gate, "gate"},
	};
	sw_records records = {0};
	for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
		struct sw_err err = {0};
		assert_int_equal(propose(desk, &root, cases[c].text, &records, &err), SW_EINPUT);
		assert_string_equal(err.fact, "a live cluster cannot run the world 'm'");
		assert_non_null(strstr(err.detail, cases[c].why));
	}
	assert_int_equal(propose(desk, &alice, "base: live\nname: m\n", &records, NULL), SW_EDENIED);
	assert_int_equal(records.count, 0);
}

/* Aim: whether nodes join may change as long as no job waits or runs, whatever worlds there were
 * before; with one it may not, not even by the first world. */
static void test_nodes_join(void **state)
{
	struct desk *desk = *state;
	static const char *const worlds[] = {"base: live\nname: mine\n", "base: live\nname: mine\nnodes_join: false\n"};
	sw_records records = {0};
	uint64_t job = desk_submit(desk, "{\"command\": [\"x\"], \"gpus\": 64}");
	for (int round = 0; round < 3; round++) {
		struct sw_err err = {0};
		assert_string_equal(desk_state(desk, job), "PD");
		assert_int_equal(propose(desk, &root, worlds[1], &records, &err), SW_EINPUT);
		assert_string_equal(err.fact, "'nodes_join' cannot change while the cluster has jobs");
		assert_int_equal(sw_brain_propose_change(desk->brain, &alice, SW_RECORD_CANCEL, "cancel", job, &records, NULL), 0);
		desk_apply(desk, &records, NULL);
		put_in_force(desk, worlds[1]);
		assert_false(sw_engine_terms(desk->brain->engine)->may_grow);
		put_in_force(desk, worlds[0]);
		job = desk_submit(desk, "{\"command\": [\"x\"], \"gpus\": 64}");
	}
}

/* Aim: a damaged record of a world is not applied. */
static void test_damaged(void **state)
{
	struct desk *desk = *state;
	static const char *const bodies[] = {
		"{}",
		"{\"name\": \"m\", \"text\": \"\", \"terms\": {\"quantum\": -1}}",
		"{\"name\": \"m\", \"text\": \"\", \"terms\": {\"quantum\": \"1s\"}}",
		"{\"name\": \"m\", \"text\": \"\", \"terms\": {\"moves\": 0}}",
		"{\"name\": \"m\", \"text\": \"\", \"terms\": {\"of tomorrow\": 1}}",
		"{\"name\": \"m\", \"text\": \"\", \"terms\": {}, \"gpu_types\": {}}",
		"{\"name\": \"m\", \"text\": \"\", \"terms\": {}, \"gpu_types\": [{\"name\": \"x\", \"speed_milli\": 0}]}",
		"{\"name\": \"m\", \"text\": \"\", \"terms\": {}, \"gpu_types\": [{\"name\": \"x\", \"speed_milli\": 1000, \"busy_watts\": "
		"-1}]}",
	};
	for (size_t b = 0; b < sizeof bodies / sizeof *bodies; b++) {
		struct sw_err err = {0};
		assert_true(sw_brain_apply(desk->brain, desk->now, SW_RECORD_WORLD, bodies[b], strlen(bodies[b]), NULL, &err) < 0);
		assert_null(sw_terms_differ(sw_brain_terms(desk->brain), &sw_terms_unsaid));
	}
}

/* Aim: a world of an earlier version in which no opportunistic job could run is in force still, and
 * such a job is refused in words that are true. */
static void test_earlier_rule(void **state)
{
	struct desk *desk = *state;
	sw_records records = {0};
	struct sw_err err = {0};
	assert_int_equal(propose(desk, &root, "base: live\nname: mine\n", &records, &err), 0);
	const char *body = records.items[0].body, *at = strstr(body, "\"opportunistic_stop\":");
	assert_non_null(at);
	const char *rest = at + strcspn(at, ",}");
	char *earlier = NULL;
	int size = asprintf(&earlier, "%.*s\"opportunistic_stop\":%d%s", (int)(at - body), body, SW_STOP_NEVER, rest);
	sw_records_clear(&records);
	assert_int_equal(sw_record_push_text(&records, SW_RECORD_WORLD, earlier, (size_t)size, NULL), 0);
	desk_apply(desk, &records, NULL);
	uint64_t job = desk_submit(desk, "{\"command\": [\"x\"], \"class\": \"opportunistic\"}");
	assert_int_equal(sw_engine_job(desk->brain->engine, (struct sw_job_id){(uint32_t)job - 1})->state, SW_JOB_REFUSED);
	assert_string_equal(desk->brain->jobs.items[job - 1].reason, "the world's rules for stops forbid its class");
}

/* Aim: a restart under another policy can leave a job without any place, which is refused by
 * whatever record comes first, also by one of a run that has begun. */
static void test_refused_after_restart(void **state)
{
	struct desk *desk = *state;
	static struct sw_sync_gpu gpu = {.uuid = "GPU-0", .name = "g", .memory_bytes = UINT64_C(80) << 30};
	static const struct sw_sync_inventory one_gpu = {&gpu, 1, 16, UINT64_C(64) << 30};
	static const char began[] = "{\"code\":0,\"epoch\":1,\"job\":1,\"node\":\"n\",\"reason\":\"\",\"signal\":0,\"state\":\"running\"}";
	put_in_force(desk, "base: live\nname: mine\nnodes_join: false\n");
	desk_sync_and_drop(desk);
	desk_submit(desk, "{\"command\": [\"x\"], \"gpus\": 1}");
	desk_submit(desk, "{\"command\": [\"x\"], \"gpus\": 2}");
	desk_sync_and_drop(desk);
	desk->inventory = &one_gpu;
	desk_sync_and_drop(desk);
	assert_string_equal(desk_state(desk, 2), "PD");
	struct sw_brain_config other = desk->brain->config;
	struct sw_brain *loaded = NULL;
	struct sw_pack pack = {0};
	struct sw_err err = {0};
	bool adopted = false;
	other.policy = "srtf";
	sw_brain_save(desk->brain, &pack);
	assert_int_equal(sw_brain_load(&other, pack.bytes, pack.size, &loaded, &adopted, NULL), 0);
	assert_true(adopted);
	assert_int_equal(sw_brain_apply(loaded, desk->now + 1, SW_RECORD_REPORT, began, strlen(began), NULL, &err), 0);
	assert_true(sw_engine_has_begun(loaded->engine, (struct sw_job_id){0}));
	assert_int_equal(sw_engine_job(loaded->engine, (struct sw_job_id){1})->state, SW_JOB_REFUSED);
	assert_string_equal(loaded->jobs.items[1].reason, "no node could hold it");
	assert_int_equal(loaded->jobs.items[1].ended_at, desk->now + 1);
	assert_int_equal(sw_brain_validate(loaded, NULL), 0);
	sw_pack_release(&pack);
	sw_brain_free(loaded);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DESK_TEST(test_engine_hears), DESK_TEST(test_stops),   DESK_TEST(test_restart),	     DESK_TEST(test_refused_after_restart),
		DESK_TEST(test_refused),      DESK_TEST(test_damaged), DESK_TEST(test_earlier_rule), DESK_TEST(test_lessons_under_a_gate),
		DESK_TEST(test_nodes_join),   DESK_TEST(test_gpu_types),
	};
	return cmocka_run_group_tests(tests, desk_load_profiles, desk_unload_profiles);
}
