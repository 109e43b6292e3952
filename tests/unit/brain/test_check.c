/* Records that do not fit the state: they change nothing, and what would not fit is
 * refused before it is stored. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/state.h"
#include "unit/brain/desk.h"

static int apply(struct desk *desk, enum sw_record_kind kind, const char *body, struct sw_err *err)
{
	return sw_brain_apply(desk->brain, desk->now + 1000, kind, body, strlen(body), NULL, err);
}

/* Aim: each record that names what is not there, or lacks a field, is refused with words, and the
 * state is bit for bit what it was. */
static void test_nothing_changes(void **state)
{
	struct desk *desk = *state;
	static const struct {
		enum sw_record_kind kind;
		const char *body;
	} cases[] = {
		{SW_RECORD_SUBMIT, "this is not JSON"},
		{SW_RECORD_SUBMIT, "{}"},
		{SW_RECORD_SUBMIT, "{\"uid\":1,\"gid\":1}"},
		{SW_RECORD_SUBMIT, "{\"member\":\"x\"}"},
		{SW_RECORD_CANCEL, "{}"},
		{SW_RECORD_CANCEL, "{\"job\":99,\"by\":0}"},
		{SW_RECORD_HOLD, "{\"job\":-1,\"by\":0}"},
		{SW_RECORD_RELEASE, "{\"job\":0,\"by\":0}"},
		{SW_RECORD_REQUEUE, "{\"job\":99,\"by\":0}"},
		{SW_RECORD_LIMIT, "{\"job\":99,\"memory_bytes\":1}"},
		{SW_RECORD_MOVE, "{\"job\":99,\"epoch\":1,\"mask\":1}"},
		{SW_RECORD_NODE, "{\"name\":\"m\"}"},
		{SW_RECORD_NODE, "{\"name\":\"m\",\"cpus\":1,\"memory_bytes\":1,\"gpu_memory_bytes\":1,\"gpus\":[1]}"},
		{SW_RECORD_NODE_LOST, "{\"name\":\"nowhere\"}"},
		{SW_RECORD_NODE_CLOSE, "{\"name\":\"nowhere\",\"by\":0}"},
		{SW_RECORD_POLICY, "{\"policy\":\"fifo\"}"},
		{SW_RECORD_POLICY, "{\"policy\":\"fifo\",\"settings\":{\"none\":\"1\"}}"},
	};
	desk_sync_and_drop(desk);
	desk_submit(desk, "{\"command\":[\"x\"]}");
	struct sw_pack before = {0}, after = {0};
	sw_brain_save(desk->brain, &before);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct sw_err err = {0};
		int r = apply(desk, cases[i].kind, cases[i].body, &err);
		if (r != SW_EINPUT || err.fact[0] == '\0')
			fail_msg("%s: %d, '%s'", cases[i].body, r, err.fact);
	}
	sw_brain_save(desk->brain, &after);
	size_t size[2];
	SW_CLEANUP(sw_freep) unsigned char *one = sw_pack_take(&before, &size[0]), *other = sw_pack_take(&after, &size[1]);
	assert_int_equal(size[0], size[1]);
	assert_memory_equal(one, other, size[0]);
}

/* Aim: what is no fault of the record is told apart: a policy that is missing, a kind that only
 * a newer version knows. */
static void test_not_its_fault(void **state)
{
	struct desk *desk = *state;
	struct sw_err err = {0};
	assert_int_equal(apply(desk, SW_RECORD_POLICY, "{\"policy\":\"lost\",\"settings\":{}}", &err), SW_ENOTFOUND);
	assert_non_null(strstr(err.hint, "--plugin"));
	sw_err_clear(&err);
	assert_int_equal(sw_brain_apply(desk->brain, 0, (enum sw_record_kind)9999, "{}", 2, NULL, &err), SW_ELIMIT);
	assert_non_null(strstr(err.fact, "does not know"));
}

/* Aim: the members of an array whose first was refused do not go to the array before it. */
static void test_members_of_none(void **state)
{
	struct desk *desk = *state;
	struct sw_err err = {0};
	SW_CLEANUP(sw_job_request_freep) struct sw_job_request *request = desk_request("{\"command\":[\"x\"],\"array\":\"1-3\"}");
	sw_records records = {0};
	request->is_member = true;
	request->array_index = 1;
	assert_int_equal(sw_brain_propose_submit(desk->brain, &alice, request, &records, &err), 0);
	assert_int_equal(sw_brain_propose_others(request, 3, &records, &err), 0);
	desk_apply(desk, &records, NULL);
	assert_int_equal(sw_brain_job_count(desk->brain), 3);
	assert_int_equal(apply(desk, SW_RECORD_SUBMIT, "{\"uid\":1}", NULL), SW_EINPUT);
	assert_int_equal(apply(desk, SW_RECORD_SUBMIT, "{\"member\":2}", NULL), SW_EINPUT);
	assert_int_equal(apply(desk, SW_RECORD_SUBMIT, "{\"member\":3}", NULL), SW_EINPUT);
	assert_int_equal(sw_brain_job_count(desk->brain), 3);
	sw_brain_pass_over(desk->brain, SW_RECORD_SUBMIT, "nonsense", 8);
	assert_int_equal(apply(desk, SW_RECORD_SUBMIT, "{\"member\":2}", NULL), SW_EINPUT);
	/* The next one that fits has its own. */
	desk_submit(desk, "{\"command\":[\"x\"]}");
	assert_int_equal(sw_brain_job_count(desk->brain), 4);
}

/* Aim: parameters with which a policy does not start are refused before they are stored. */
static void test_policy_that_does_not_start(void **state)
{
	struct desk *desk = *state;
	struct sw_err err = {0};
	const char *settings[] = {"thresholds=3600,60"};
	sw_records records = {0};
	assert_int_equal(sw_brain_propose_policy(desk->brain, &root, "las", settings, 1, &records, &err), SW_EINPUT);
	assert_non_null(strstr(err.detail, "must grow"));
	assert_int_equal(records.count, 0);
	settings[0] = "thresholds=60,3600";
	sw_err_clear(&err);
	assert_int_equal(sw_brain_propose_policy(desk->brain, &root, "las", settings, 1, &records, &err), 0);
	desk_apply(desk, &records, NULL);
	assert_string_equal(sw_brain_policy(desk->brain), "las");
}

enum { OF_A_NODE = 64 };

/* A sync of a node that has this many GPUs. */
static int hear(struct desk *desk, const char *node, size_t gpus, sw_records *records, struct sw_err *err)
{
	static struct sw_sync_gpu list[OF_A_NODE];
	static char names[OF_A_NODE][40];
	assert_true(gpus <= OF_A_NODE);
	for (size_t g = 0; g < gpus; g++) {
		snprintf(names[g], sizeof names[g], "%s-%zu", node, g);
		list[g].uuid = names[g];
		list[g].name = names[g];
		list[g].memory_bytes = 1 << 30;
	}
	const struct sw_sync_inventory inventory = {.gpus = list, .gpu_count = gpus, .cpus = 1, .memory_bytes = 1 << 30};
	char copy[24], instance[] = "a";
	snprintf(copy, sizeof copy, "%s", node);
	const struct sw_sync sync = {.node = copy, .instance = instance, .number = ++desk->number, .inventory = &inventory};
	return sw_brain_hear(desk->brain, desk->now, &sync, records, err);
}

/* The bound of a cluster, here in place of a million GPUs. The linker puts this function between
 * the brain and its engine. */
enum { GPUS_MAX = 200 };
struct sw_engine_room __real_sw_engine_room(const struct sw_engine *engine); /* NOLINT(bugprone-reserved-identifier): the linker's name */
struct sw_engine_room __wrap_sw_engine_room(const struct sw_engine *engine); /* NOLINT(bugprone-reserved-identifier): the linker's name */
struct sw_engine_room __wrap_sw_engine_room(const struct sw_engine *engine)  /* NOLINT(bugprone-reserved-identifier): the linker's name */
{
	struct sw_engine_room room = __real_sw_engine_room(engine);
	const uint32_t held = SW_CLUSTER_GPUS_MAX - room.gpus;
	room.gpus = held < GPUS_MAX ? GPUS_MAX - held : 0;
	return room;
}

/* Nodes that do not exist, until there is room for `left` GPUs. */
static void invent_nodes(struct desk *desk, uint32_t left)
{
	const struct sw_topology *topology = desk->brain->engine->topology;
	sw_records records = {0};
	struct sw_err err = {0};
	for (unsigned i = 0; topology->gpu_count < GPUS_MAX - left; i++) {
		char name[16];
		uint32_t room = GPUS_MAX - left - topology->gpu_count;
		snprintf(name, sizeof name, "i%u", i);
		if (hear(desk, name, room < OF_A_NODE ? room : OF_A_NODE, &records, &err) < 0)
			fail_msg("node %u: %s: %s", i, err.fact, err.detail);
		desk_apply(desk, &records, NULL);
	}
	assert_int_equal(topology->gpu_count, GPUS_MAX - left);
}

/* Aim: nodes that are invented until the cluster is full end there: the next one is refused before
 * it is stored, and its record, where it was stored all the same, changes nothing. */
static void test_full_cluster(void **state)
{
	struct desk *desk = *state;
	struct sw_err err = {0};
	sw_records records = {0};
	desk_sync_and_drop(desk);
	invent_nodes(desk, 3);
	assert_int_equal(hear(desk, "m", 4, &records, &err), SW_EINPUT);
	assert_int_equal(records.count, 0);
	assert_non_null(strstr(err.fact, "no room for node 'm' with 4 GPUs"));
	assert_non_null(strstr(err.detail, "and 3 GPUs more"));
	/* Each of two that are heard in one turn fits, and both together do not. */
	sw_err_clear(&err);
	sw_records first = {0}, second = {0};
	assert_int_equal(hear(desk, "m", 2, &first, &err), 0);
	assert_int_equal(hear(desk, "o", 2, &second, &err), 0);
	assert_true(first.count == 1 && second.count == 1);
	desk_apply(desk, &first, NULL);
	assert_non_null(sw_brain_find_node(desk->brain, "m"));
	const struct sw_record *late = &second.items[0];
	uint64_t hash = sw_brain_log_hash(desk->brain);
	assert_int_equal(sw_brain_apply(desk->brain, desk->now, late->kind, late->body, late->size, NULL, &err), SW_EINPUT);
	assert_non_null(strstr(err.fact, "no room for node 'o'"));
	assert_true(hash == sw_brain_log_hash(desk->brain));
	assert_null(sw_brain_find_node(desk->brain, "o"));
	/* Other GPUs in a node that is there need room as well. */
	sw_err_clear(&err);
	static const char changed[] =
		"{\"name\":\"n\",\"cpus\":1,\"memory_bytes\":1,\"gpu_memory_bytes\":1,\"gpus\":[\"a\",\"b\",\"c\"],\"changed\":true}";
	assert_int_equal(apply(desk, SW_RECORD_NODE, changed, &err), SW_EINPUT);
	assert_true(hash == sw_brain_log_hash(desk->brain));
	/* The last place can be taken. */
	sw_err_clear(&err);
	assert_int_equal(hear(desk, "o", 1, &records, &err), 0);
	desk_apply(desk, &records, NULL);
	assert_non_null(sw_brain_find_node(desk->brain, "o"));
	sw_records_clear(&second);
}

int main(void)
{
	const struct CMUnitTest tests[] = {DESK_TEST(test_nothing_changes), DESK_TEST(test_not_its_fault), DESK_TEST(test_members_of_none),
					   DESK_TEST(test_policy_that_does_not_start), DESK_TEST(test_full_cluster)};
	return cmocka_run_group_tests(tests, desk_load_profiles, desk_unload_profiles);
}
