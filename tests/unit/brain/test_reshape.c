/* Nodes that have other GPUs than they had, and what becomes of the jobs on them. Every test's
 * journal is replayed at its end (desk.h). */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit/brain/desk.h"

#define GPU(uuid_)                                                               \
	{                                                                        \
		.uuid = (uuid_), .name = "g", .memory_bytes = UINT64_C(80) << 30 \
	}

static struct sw_sync_gpu second[] = {GPU("GPU-1")};
static struct sw_sync_gpu three[] = {GPU("GPU-9"), GPU("GPU-1"), GPU("GPU-0")};
static struct sw_sync_gpu replaced[] = {GPU("GPU-0"), GPU("GPU-7")};
static struct sw_sync_gpu doubled[] = {GPU("GPU-0"), GPU("GPU-0"), GPU("GPU-0")};
static struct sw_sync_gpu four[] = {GPU("GPU-0"), GPU("GPU-1"), GPU("GPU-2"), GPU("GPU-3")};
static struct sw_sync_gpu without_second[] = {GPU("GPU-0"), GPU("GPU-2"), GPU("GPU-3")};
static struct sw_sync_gpu swapped[] = {GPU("GPU-1"), GPU("GPU-0")};
static const struct sw_sync_inventory one_left = {second, 1, 16, UINT64_C(64) << 30};
static const struct sw_sync_inventory one_more = {three, 3, 16, UINT64_C(64) << 30};
static const struct sw_sync_inventory one_other = {replaced, 2, 16, UINT64_C(64) << 30};
static const struct sw_sync_inventory thrice = {doubled, 3, 16, UINT64_C(64) << 30};
static const struct sw_sync_inventory all_four = {four, 4, 16, UINT64_C(64) << 30};
static const struct sw_sync_inventory three_left = {without_second, 3, 16, UINT64_C(64) << 30};
static const struct sw_sync_inventory other_order = {swapped, 2, 16, UINT64_C(64) << 30};
static const struct sw_sync_inventory none = {NULL, 0, 16, UINT64_C(64) << 30};

static struct sw_node_view look_at_node(const struct desk *desk)
{
	struct sw_node_view view;
	assert_true(sw_brain_node(desk->brain, 0, &view));
	assert_int_equal(sw_brain_node_count(desk->brain), 1);
	return view;
}

static struct sw_job_view look_at(const struct desk *desk, uint64_t job)
{
	struct sw_job_view view;
	assert_true(sw_brain_job(desk->brain, desk->now, job, &view));
	return view;
}

/* The GPUs that the answer gives to the job's run, by name. */
static const char *gpus_for(const struct sw_answer_message *answer, uint64_t job)
{
	static char text[128];
	text[0] = '\0';
	for (size_t w = 0; w < answer->want_count; w++)
		for (size_t g = 0; answer->wants[w].id.job == job && g < answer->wants[w].gpus.count; g++)
			snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", g > 0 ? " " : "", answer->wants[w].gpus.items[g]);
	return text;
}

/* Two jobs of one GPU each that run, job 1 on GPU-0 and job 2 on GPU-1. */
static void run_two(struct desk *desk, const char *more)
{
	char request[128];
	snprintf(request, sizeof request, "{\"command\": [\"sleep\", \"9\"]%s}", more);
	desk_sync_and_drop(desk);
	for (uint64_t job = 1; job <= 2; job++) {
		desk_submit(desk, request);
		desk->runs[job - 1] = (struct sw_sync_run){.id = {job, 1}, .state = SW_RUN_RUNNING, .reason = ""};
	}
	desk->run_count = 2;
	desk_sync_and_drop(desk);
	assert_string_equal(desk_state(desk, 2), "R");
}

/* Aim: a node that was lost and is back with fewer GPUs has those, and no job is sent to others. */
static void test_fewer_after_a_loss(void **state)
{
	struct desk *desk = *state;
	run_two(desk, "");
	desk_pass_time(desk, 40 * SW_NS_PER_S);
	desk->run_count = 0;
	desk->inventory = &one_left;
	struct sw_answer_message *answer = desk_sync(desk);
	assert_int_equal(look_at_node(desk).gpus, 1);
	assert_true(look_at_node(desk).up);
	/* That the runs are gone is sure when it says so again. */
	sw_brain_answer_free(answer);
	answer = desk_sync(desk);
	assert_string_equal(gpus_for(answer, 1), "GPU-1");
	assert_string_equal(gpus_for(answer, 2), "");
	sw_brain_answer_free(answer);
	assert_string_equal(desk_state(desk, 2), "PD");
	desk_expect_why(desk, 2, "it needs 1 GPU and 0 are free");
	struct sw_job_request *large = desk_request("{\"command\": [\"x\"], \"gpus\": 2}");
	sw_records records = {0};
	struct sw_err err = {0};
	assert_int_equal(sw_brain_propose_submit(desk->brain, &alice, large, &records, &err), SW_EINPUT);
	assert_true(strstr(err.detail, "the cluster has 1") != NULL);
	sw_job_request_free(large);
}

/* Aim: of a node that was never lost, a job on a GPU that is gone stops and starts anew once
 * nothing is left of it, at no cost to its retries; one on a GPU that is still there goes on. */
static void test_fewer_while_jobs_run(void **state)
{
	struct desk *desk = *state;
	run_two(desk, ", \"retries\": 0");
	desk->inventory = &one_left;
	struct sw_answer_message *answer = desk_sync(desk);
	assert_int_equal(look_at_node(desk).gpus, 1);
	assert_int_equal(desk_wanted(answer, 1, 1), SW_WANT_STOP);
	assert_int_equal(desk_wanted(answer, 2, 1), SW_WANT_RUN);
	assert_string_equal(gpus_for(answer, 2), "GPU-1");
	sw_brain_answer_free(answer);
	assert_string_equal(desk_state(desk, 1), "PD");
	assert_string_equal(look_at(desk, 1).reason, "its GPUs are gone");
	assert_string_equal(desk_state(desk, 2), "R");
	assert_int_equal(look_at(desk, 2).epoch, 1);
	assert_int_equal(look_at(desk, 2).gpu_mask, 1);
	desk->runs[0] = (struct sw_sync_run){.id = {2, 1}, .state = SW_RUN_EXITED, .reason = ""};
	desk->runs[1] = (struct sw_sync_run){.id = {1, 1}, .state = SW_RUN_RUNNING, .reason = ""};
	answer = desk_sync(desk);
	assert_string_equal(desk_state(desk, 2), "CD");
	assert_int_equal(desk_wanted(answer, 1, 2), (enum sw_want_kind)99); /* its first run has not stopped */
	sw_brain_answer_free(answer);
	desk->run_count = 0;
	answer = desk_sync(desk);
	assert_string_equal(gpus_for(answer, 1), "GPU-1");
	sw_brain_answer_free(answer);
}

/* Aim: a job that ended well before the GPU was gone has ended, though both are heard at once. */
static void test_ended_in_time(void **state)
{
	struct desk *desk = *state;
	run_two(desk, "");
	desk->inventory = &one_left;
	desk->runs[0].state = SW_RUN_EXITED;
	desk_sync_and_drop(desk);
	assert_string_equal(desk_state(desk, 1), "CD");
	assert_string_equal(desk_state(desk, 2), "R");
}

/* Aim: GPUs that are new are used, and jobs keep theirs whatever their numbers are now. */
static void test_more(void **state)
{
	struct desk *desk = *state;
	run_two(desk, "");
	desk_submit(desk, "{\"command\": [\"sleep\", \"9\"]}");
	assert_string_equal(desk_state(desk, 3), "PD");
	desk->inventory = &one_more;
	struct sw_answer_message *answer = desk_sync(desk);
	assert_string_equal(gpus_for(answer, 1), "GPU-0");
	assert_string_equal(gpus_for(answer, 2), "GPU-1");
	assert_string_equal(gpus_for(answer, 3), "GPU-9");
	sw_brain_answer_free(answer);
	assert_int_equal(look_at(desk, 1).gpu_mask, 4);
	assert_int_equal(look_at_node(desk).gpus, 3);
	uint64_t hash = sw_brain_log_hash(desk->brain);
	desk->runs[2] = (struct sw_sync_run){.id = {3, 1}, .state = SW_RUN_EXITED, .reason = ""};
	desk_sync_and_drop(desk); /* the same inventory again is no news */
	assert_true(hash == sw_brain_log_hash(desk->brain));
}

/* Aim: a GPU in the place of another is another, though there are as many as before; the node
 * stays closed if it was. */
static void test_one_replaced(void **state)
{
	struct desk *desk = *state;
	run_two(desk, "");
	sw_records records = {0};
	assert_int_equal(sw_brain_propose_door(desk->brain, &root, "n", true, "repair", &records, NULL), 0);
	desk_apply(desk, &records, NULL);
	desk->inventory = &one_other;
	desk_sync_and_drop(desk);
	assert_string_equal(desk_state(desk, 1), "R");
	assert_string_equal(desk_state(desk, 2), "PD");
	assert_true(look_at_node(desk).closed);
	assert_string_equal(sw_brain_gpu_uuid(desk->brain, 0, 1), "GPU-7");
	/* A lost node that is back and says nothing of its GPUs has those that it had last. */
	desk_pass_time(desk, 40 * SW_NS_PER_S);
	assert_int_equal(sw_brain_propose_door(desk->brain, &root, "n", false, "", &records, NULL), 0);
	desk_apply(desk, &records, NULL);
	const struct sw_sync silent = {.node = "n", .instance = "a1", .number = ++desk->number, .have = desk->have};
	assert_int_equal(sw_brain_hear(desk->brain, desk->now, &silent, &records, NULL), 0);
	desk_apply(desk, &records, NULL);
	assert_int_equal(look_at_node(desk).gpus, 2);
	assert_string_equal(desk_state(desk, 2), "CF");
}

/* Aim: a run that stands still stays where it is while its GPU does, and is gone with it. */
static void test_parked(void **state)
{
	struct desk *desk = *state;
	run_two(desk, ", \"preempt\": \"suspend\", \"gpu_memory\": \"20GB\"");
	for (uint64_t job = 1; job <= 2; job++) {
		sw_records records = {0};
		assert_int_equal(sw_brain_propose_change(desk->brain, &alice, SW_RECORD_HOLD, "suspend", job, &records, NULL), 0);
		desk_apply(desk, &records, NULL);
		desk->runs[job - 1].state = SW_RUN_SUSPENDED;
	}
	desk_sync_and_drop(desk);
	desk->inventory = &one_left;
	struct sw_answer_message *answer = desk_sync(desk);
	assert_int_equal(desk_wanted(answer, 1, 1), SW_WANT_STOP);
	assert_int_equal(desk_wanted(answer, 2, 1), SW_WANT_SUSPEND);
	sw_brain_answer_free(answer);
	sw_records records = {0};
	assert_int_equal(sw_brain_propose_change(desk->brain, &alice, SW_RECORD_RELEASE, "resume", 2, &records, NULL), 0);
	desk_apply(desk, &records, NULL);
	answer = desk_sync(desk);
	assert_int_equal(desk_wanted(answer, 2, 1), SW_WANT_RUN);
	assert_string_equal(gpus_for(answer, 2), "GPU-1");
	sw_brain_answer_free(answer);
}

/* Aim: an agent that names one GPU several times hurts none, there and back. */
static void test_one_name_for_all(void **state)
{
	struct desk *desk = *state;
	run_two(desk, "");
	desk->inventory = &thrice;
	desk_sync_and_drop(desk);
	assert_string_equal(desk_state(desk, 1), "R");
	assert_int_equal(look_at_node(desk).gpus, 3);
	desk->inventory = NULL;
	desk_sync_and_drop(desk);
	assert_string_equal(desk_state(desk, 1), "R");
	assert_int_equal(look_at_node(desk).gpus, 2);
}

/* Aim: GPUs in another order are numbered as the node numbers them, and jobs keep theirs. */
static void test_other_order(void **state)
{
	struct desk *desk = *state;
	run_two(desk, "");
	desk->inventory = &other_order;
	struct sw_answer_message *answer = desk_sync(desk);
	assert_string_equal(gpus_for(answer, 1), "GPU-0");
	sw_brain_answer_free(answer);
	assert_string_equal(sw_brain_gpu_uuid(desk->brain, 0, 0), "GPU-1");
	assert_int_equal(look_at(desk, 1).gpu_mask, 2);
	assert_string_equal(desk_state(desk, 1), "R");
}

/* Aim: an agent that sees no GPU at all does not see them: where jobs run they go on. */
static void test_blind(void **state)
{
	struct desk *desk = *state;
	run_two(desk, "");
	desk->inventory = &none;
	desk_sync_and_drop(desk);
	assert_string_equal(desk_state(desk, 1), "R");
	assert_int_equal(look_at_node(desk).gpus, 2);
	desk->runs[0].state = desk->runs[1].state = SW_RUN_EXITED;
	desk_sync_and_drop(desk);
	desk_sync_and_drop(desk);
	assert_int_equal(look_at_node(desk).gpus, 0);
}

/* Aim: a run that is still on a GPU that is gone, on its way to others, starts anew: it could not
 * be told that it cannot leave. */
static void test_on_its_way(void **state)
{
	struct desk *desk = *state;
	desk->inventory = &all_four;
	desk_sync_and_drop(desk);
	desk_submit(desk, "{\"command\": [\"sleep\", \"9\"], \"gpus\": 2}");
	desk->runs[0] = (struct sw_sync_run){.id = {1, 1}, .state = SW_RUN_RUNNING, .reason = "", .gpus = "GPU-0,GPU-1"};
	desk->run_count = 1;
	desk_sync_and_drop(desk);
	sw_records records = {0};
	assert_int_equal(sw_brain_propose_move(desk->brain, &alice, 1, 12, &records, NULL), 0);
	desk_apply(desk, &records, NULL);
	desk_sync_and_drop(desk);
	desk->inventory = &three_left;
	struct sw_answer_message *answer = desk_sync(desk);
	assert_int_equal(desk_wanted(answer, 1, 1), SW_WANT_STOP);
	sw_brain_answer_free(answer);
	desk->run_count = 0;
	answer = desk_sync(desk);
	assert_int_equal(desk_wanted(answer, 1, 2), SW_WANT_RUN);
	assert_string_equal(gpus_for(answer, 1), "GPU-2 GPU-3");
	sw_brain_answer_free(answer);
}

/* Aim: such a run cannot be suspended before it has begun anew. */
static void test_anew_and_not_begun(void **state)
{
	struct desk *desk = *state;
	desk->inventory = &all_four;
	desk_sync_and_drop(desk);
	desk_submit(desk, "{\"command\": [\"sleep\", \"9\"], \"gpus\": 2, \"preempt\": \"suspend\"}");
	desk->runs[0] = (struct sw_sync_run){.id = {1, 1}, .state = SW_RUN_RUNNING, .reason = "", .gpus = "GPU-0,GPU-1"};
	desk->run_count = 1;
	desk_sync_and_drop(desk);
	sw_records records = {0};
	struct sw_err err = {0};
	assert_int_equal(sw_brain_propose_move(desk->brain, &alice, 1, 12, &records, NULL), 0);
	desk_apply(desk, &records, NULL);
	desk->inventory = &three_left;
	desk_sync_and_drop(desk);
	assert_string_equal(desk_state(desk, 1), "CF");
	assert_int_equal(sw_brain_propose_change(desk->brain, &alice, SW_RECORD_HOLD, "suspend", 1, &records, &err), SW_EINPUT);
	assert_non_null(strstr(err.detail, "it is just starting"));
}

/* Aim: one that is suspended on that way is lost as well, and holds nothing any
 * more where it was to go. */
static void test_suspended_on_its_way(void **state)
{
	struct desk *desk = *state;
	desk->inventory = &all_four;
	desk_sync_and_drop(desk);
	desk_submit(desk, "{\"command\": [\"sleep\", \"9\"], \"gpus\": 2, \"preempt\": \"suspend\"}");
	desk->runs[0] = (struct sw_sync_run){.id = {1, 1}, .state = SW_RUN_RUNNING, .reason = "", .gpus = "GPU-0,GPU-1"};
	desk->run_count = 1;
	desk_sync_and_drop(desk);
	sw_records records = {0};
	assert_int_equal(sw_brain_propose_move(desk->brain, &alice, 1, 12, &records, NULL), 0);
	desk_apply(desk, &records, NULL);
	assert_int_equal(sw_brain_propose_change(desk->brain, &alice, SW_RECORD_HOLD, "suspend", 1, &records, NULL), 0);
	desk_apply(desk, &records, NULL);
	assert_string_equal(desk_state(desk, 1), "S");
	desk->inventory = &three_left;
	struct sw_answer_message *answer = desk_sync(desk);
	assert_int_equal(desk_wanted(answer, 1, 1), SW_WANT_STOP);
	sw_brain_answer_free(answer);
	assert_string_equal(desk_state(desk, 1), "PD");
	/* Whole GPUs for another. */
	desk->run_count = 0;
	desk_submit(desk, "{\"command\": [\"sleep\", \"9\"], \"gpus\": 3}");
	answer = desk_sync(desk);
	assert_string_equal(gpus_for(answer, 2), "GPU-0 GPU-2 GPU-3");
	sw_brain_answer_free(answer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DESK_TEST(test_fewer_after_a_loss),
		DESK_TEST(test_fewer_while_jobs_run),
		DESK_TEST(test_ended_in_time),
		DESK_TEST(test_more),
		DESK_TEST(test_one_replaced),
		DESK_TEST(test_parked),
		DESK_TEST(test_one_name_for_all),
		DESK_TEST(test_other_order),
		DESK_TEST(test_blind),
		DESK_TEST(test_on_its_way),
		DESK_TEST(test_anew_and_not_begun),
		DESK_TEST(test_suspended_on_its_way),
	};
	return cmocka_run_group_tests(tests, desk_load_profiles, desk_unload_profiles);
}
