/* One live agent for each name of a node: which one is heard, and what the other is told. */
#include <string.h>

#include "unit/brain/desk.h"

#define HOME_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define HOME_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

struct word {
	const char *home;
	uint64_t start, number;
	const char *instance;
	struct sw_sync_run *run; /* NULL: it has none */
};

/* 0 or what it is refused with. *ret_wants: of how many runs it hears. */
static int speak(struct desk *desk, const struct word *word, size_t *ret_wants, struct sw_err *err)
{
	struct sw_sync_gpu gpus[] = {{.uuid = "GPU-0", .name = "g", .memory_bytes = UINT64_C(80) << 30},
				     {.uuid = "GPU-1", .name = "g", .memory_bytes = UINT64_C(80) << 30}};
	const struct sw_sync_inventory inventory = {gpus, 2, 16, UINT64_C(64) << 30};
	const struct sw_sync sync = {.node = "n",
				     .home = word->home,
				     .start = word->start,
				     .instance = word->instance != NULL ? word->instance : "i",
				     .number = word->number,
				     .leases = true,
				     .inventory = &inventory,
				     .runs = word->run,
				     .run_count = word->run != NULL};
	sw_records records = {0};
	struct sw_answer_message *answer = NULL;
	int r = sw_brain_hear(desk->brain, desk->now, &sync, &records, err);
	desk_apply(desk, &records, NULL);
	if (r == 0)
		r = sw_brain_answer(desk->brain, desk->now, &sync, &answer, err);
	if (r < 0)
		return r;
	*ret_wants = answer->want_count;
	sw_brain_answer_free(answer);
	return 0;
}

static void expect_heard(struct desk *desk, struct word word, size_t wants)
{
	size_t told = 0;
	struct sw_err err = {0};
	if (speak(desk, &word, &told, &err) < 0)
		fail_msg("%s: %s", err.fact, err.detail);
	assert_int_equal(told, wants);
}

static void expect_refused(struct desk *desk, struct word word, const char *words)
{
	size_t told = 0;
	struct sw_err err = {0};
	assert_int_equal(speak(desk, &word, &told, &err), SW_EDENIED);
	if (strstr(err.fact, words) == NULL)
		fail_msg("'%s' does not say '%s'", err.fact, words);
	assert_true(err.detail[0] != '\0' && err.hint[0] != '\0');
}

/* While the first is alive, a second one with a folder of its own is told that, hears of
 * no run and loses none. */
static void test_second_agent_is_refused(void **state)
{
	struct desk *desk = *state;
	expect_heard(desk, (struct word){.home = HOME_A, .start = 1, .number = 1}, 0);
	desk_submit(desk, "{\"command\": [\"sleep\", \"9\"]}");
	expect_heard(desk, (struct word){.home = HOME_A, .start = 1, .number = 2}, 1);
	struct sw_sync_run run = {.id = {1, 1}, .state = SW_RUN_RUNNING, .reason = ""};
	expect_heard(desk, (struct word){.home = HOME_A, .start = 1, .number = 3, .run = &run}, 1);
	for (int i = 0; i < 3; i++) {
		desk->now += 5 * SW_NS_PER_S;
		expect_refused(desk, (struct word){.home = HOME_B, .start = 9, .number = 9}, "node 'n' has an agent already");
		expect_refused(desk, (struct word){.home = NULL, .start = 0, .number = 1, .instance = "zz"},
			       "node 'n' has an agent already");
		expect_heard(desk, (struct word){.home = HOME_A, .start = 1, .number = 4 + (uint64_t)i, .run = &run}, 1);
	}
	assert_string_equal(desk_state(desk, 1), "R");
}

/* An agent that is started again in its folder is heard at once; what an earlier start of it says
 * is not, and it is told. */
static void test_restart_is_heard_at_once(void **state)
{
	struct desk *desk = *state;
	expect_heard(desk, (struct word){.home = HOME_A, .start = 1, .number = 500, .instance = "2030"}, 0);
	/* Its clock went back, so it sorts before. */
	expect_heard(desk, (struct word){.home = HOME_A, .start = 2, .number = 1, .instance = "1970"}, 0);
	struct sw_sync_run run = {.id = {1, 1}, .state = SW_RUN_EXITED, .reason = ""};
	desk_submit(desk, "{\"command\": [\"true\"]}");
	expect_heard(desk, (struct word){.home = HOME_A, .start = 2, .number = 2, .instance = "1970", .run = &run}, 1);
	assert_string_equal(desk_state(desk, 1), "CD");
	expect_refused(desk, (struct word){.home = HOME_A, .start = 1, .number = 501, .instance = "2030"}, "node 'n' has an agent already");
}

/* One that is gone leaves its name to another, if nothing of it can still run. */
static void test_gone_agent_leaves_its_name(void **state)
{
	struct desk *desk = *state;
	expect_heard(desk, (struct word){.home = HOME_A, .start = 1, .number = 1}, 0);
	const struct sw_sync last = {.node = "n", .home = HOME_A, .start = 1, .instance = "i", .number = 1};
	sw_brain_left(desk->brain, desk->now, &last);
	desk->now += 4 * SW_NS_PER_S;
	expect_refused(desk, (struct word){.home = HOME_B, .start = 1, .number = 1}, "has an agent already");
	desk->now += 2 * SW_NS_PER_S;
	expect_heard(desk, (struct word){.home = HOME_B, .start = 1, .number = 1}, 0);
	expect_refused(desk, (struct word){.home = HOME_A, .start = 1, .number = 2}, "has an agent already");
	/* Without a word of its end it counts as alive for longer. */
	desk->now += 29 * SW_NS_PER_S;
	expect_refused(desk, (struct word){.home = HOME_A, .start = 1, .number = 3}, "has an agent already");
	desk->now += 2 * SW_NS_PER_S;
	expect_heard(desk, (struct word){.home = HOME_A, .start = 1, .number = 4}, 0);
}

/* A sync that was replaced before its connection closed does not mean that the agent has gone. */
static void test_replaced_sync_is_no_end(void **state)
{
	struct desk *desk = *state;
	expect_heard(desk, (struct word){.home = HOME_A, .start = 1, .number = 1}, 0);
	expect_heard(desk, (struct word){.home = HOME_A, .start = 1, .number = 2}, 0);
	const struct sw_sync old = {.node = "n", .home = HOME_A, .start = 1, .instance = "i", .number = 1};
	sw_brain_left(desk->brain, desk->now, &old);
	desk->now += 20 * SW_NS_PER_S;
	expect_refused(desk, (struct word){.home = HOME_B, .start = 1, .number = 1}, "has an agent already");
}

/* Jobs that may still run on a machine that is silent keep its name: the
 * stranger is told what to do. */
static void test_runs_keep_the_name(void **state)
{
	struct desk *desk = *state;
	expect_heard(desk, (struct word){.home = HOME_A, .start = 1, .number = 1}, 0);
	desk_submit(desk, "{\"command\": [\"sleep\", \"9\"]}");
	expect_heard(desk, (struct word){.home = HOME_A, .start = 1, .number = 2}, 1);
	desk->now += 31 * SW_NS_PER_S; /* no tick: nothing else is known of it */
	expect_refused(desk, (struct word){.home = HOME_B, .start = 1, .number = 1},
		       "node 'n' has jobs of an agent with another state folder");
	expect_heard(desk, (struct word){.home = HOME_A, .start = 2, .number = 1}, 1);
}

static void remove_node(struct desk *desk)
{
	sw_records records = {0};
	struct sw_err err = {0};
	if (sw_brain_propose_remove(desk->brain, &root, "n", "on fire", &records, &err) < 0)
		fail_msg("%s: %s", err.fact, err.detail);
	desk_apply(desk, &records, NULL);
}

/* Once an operator has removed the node, another agent is heard under its name, hears of no old run
 * and gets new ones; the old agent is refused then. */
static void test_removed_node_leaves_its_name(void **state)
{
	struct desk *desk = *state;
	expect_heard(desk, (struct word){.home = HOME_A, .start = 1, .number = 1}, 0);
	uint64_t old = desk_submit(desk, "{\"command\": [\"sleep\", \"9\"]}");
	struct sw_sync_run run = {.id = {old, 1}, .state = SW_RUN_RUNNING, .reason = ""};
	expect_heard(desk, (struct word){.home = HOME_A, .start = 1, .number = 2, .run = &run}, 1);
	desk_pass_time(desk, 40 * SW_NS_PER_S);
	expect_refused(desk, (struct word){.home = HOME_B, .start = 1, .number = 1},
		       "node 'n' has jobs of an agent with another state folder");
	remove_node(desk);
	expect_heard(desk, (struct word){.home = HOME_B, .start = 1, .number = 2}, 0);
	assert_string_equal(desk_state(desk, old), "NF");
	uint64_t fresh = desk_submit(desk, "{\"command\": [\"sleep\", \"9\"]}");
	expect_heard(desk, (struct word){.home = HOME_B, .start = 1, .number = 3}, 1);
	run.id = (struct sw_run_id){fresh, 1};
	expect_heard(desk, (struct word){.home = HOME_B, .start = 1, .number = 4, .run = &run}, 1);
	assert_string_equal(desk_state(desk, fresh), "R");
	expect_refused(desk, (struct word){.home = HOME_A, .start = 1, .number = 3}, "node 'n' has an agent already");
	expect_refused(desk, (struct word){.home = HOME_A, .start = 2, .number = 1}, "node 'n' has an agent already");
	assert_string_equal(desk_state(desk, fresh), "R");
}

/* A job with a lease may run on a removed machine until that is over. Another agent under its name
 * cannot know, and is refused so long: else the job would run twice. The old one can, at any time,
 * also with an older count of its starts. */
static void test_leases_keep_a_removed_name(void **state)
{
	struct desk *desk = *state;
	expect_heard(desk, (struct word){.home = HOME_A, .start = 5, .number = 1}, 0);
	uint64_t job =
		desk_submit(desk, "{\"command\": [\"sleep\", \"9\"], \"on_lost\": \"restart\", \"lease\": \"1h\", \"grace\": \"20s\"}");
	struct sw_sync_run run = {.id = {job, 1}, .state = SW_RUN_RUNNING, .reason = ""};
	expect_heard(desk, (struct word){.home = HOME_A, .start = 5, .number = 2, .run = &run}, 1);
	desk_pass_time(desk, 40 * SW_NS_PER_S);
	remove_node(desk);
	for (int i = 0; i < 2; i++) {
		assert_string_equal(desk_state(desk, job), "UN");
		expect_refused(desk, (struct word){.home = HOME_B, .start = 1, .number = 1},
			       "node 'n' was removed, and a job of it may still run");
		desk_pass_time(desk, 1700 * SW_NS_PER_S);
	}
	desk_pass_time(desk, 400 * SW_NS_PER_S);
	assert_string_equal(desk_state(desk, job), "PD");
	expect_heard(desk, (struct word){.home = HOME_B, .start = 1, .number = 2}, 1);
	run.id.epoch = 2;
	expect_heard(desk, (struct word){.home = HOME_B, .start = 1, .number = 4, .run = &run}, 1);
	assert_string_equal(desk_state(desk, job), "R");
	desk_pass_time(desk, 40 * SW_NS_PER_S);
	remove_node(desk);
	expect_heard(desk, (struct word){.home = HOME_B, .start = 0, .number = 1}, 0);
	expect_heard(desk, (struct word){.home = HOME_B, .start = 0, .number = 2}, 1);
	run.id.epoch = 3;
	expect_heard(desk, (struct word){.home = HOME_B, .start = 0, .number = 3, .run = &run}, 1);
	assert_string_equal(desk_state(desk, job), "R");
}

/* Agents of version 0.1 are ordered by the moment of their start, and one that is
 * upgraded is heard at once. */
static void test_upgrade(void **state)
{
	struct desk *desk = *state;
	expect_heard(desk, (struct word){.home = NULL, .start = 0, .number = 5, .instance = "a1"}, 0);
	desk_submit(desk, "{\"command\": [\"sleep\", \"9\"]}");
	expect_heard(desk, (struct word){.home = NULL, .start = 0, .number = 1, .instance = "a2"}, 1);
	struct sw_sync_run run = {.id = {1, 1}, .state = SW_RUN_RUNNING, .reason = ""};
	expect_heard(desk, (struct word){.home = HOME_A, .start = 1, .number = 1, .instance = "a0", .run = &run}, 1);
	assert_string_equal(desk_state(desk, 1), "R");
	expect_refused(desk, (struct word){.home = NULL, .start = 0, .number = 9, .instance = "a3"}, "has an agent already");
}

/* The controller knows after a restart which agent it was. */
static void test_restart_of_the_controller(void **state)
{
	struct desk *desk = *state;
	expect_heard(desk, (struct word){.home = HOME_A, .start = 3, .number = 1}, 0);
	struct sw_pack out = {0};
	sw_brain_save(desk->brain, &out);
	struct sw_brain *again = NULL;
	bool adopted;
	assert_int_equal(sw_brain_load(&desk_config, out.bytes, out.size, &again, &adopted, NULL), 0);
	assert_string_equal(again->nodes.items[0].home, HOME_A);
	sw_brain_free(again);
	sw_pack_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DESK_TEST(test_second_agent_is_refused),    DESK_TEST(test_restart_is_heard_at_once),
		DESK_TEST(test_gone_agent_leaves_its_name), DESK_TEST(test_replaced_sync_is_no_end),
		DESK_TEST(test_runs_keep_the_name),	    DESK_TEST(test_removed_node_leaves_its_name),
		DESK_TEST(test_leases_keep_a_removed_name), DESK_TEST(test_upgrade),
		DESK_TEST(test_restart_of_the_controller),
	};
	return cmocka_run_group_tests(tests, desk_load_profiles, desk_unload_profiles);
}
