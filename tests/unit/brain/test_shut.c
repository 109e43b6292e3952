/* GPUs that take no jobs, as agents tell of them. Every test's journal is
 * replayed at its end (desk.h). */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "unit/brain/desk.h"

static void shut(struct desk *desk, const char *gpu, enum sw_shut why, const char *detail)
{
	desk->looked = true;
	desk->shut[desk->shut_count++] = (struct sw_sync_shut){gpu, why, 1000, detail};
}

static void strange(struct desk *desk, const char *gpu, uint32_t pid, const char *user, const char *program)
{
	desk->strangers[desk->stranger_count++] = (struct sw_sync_stranger){gpu, pid, user, program, UINT64_C(20) << 30, 1000};
}

static struct sw_node_view look(const struct desk *desk)
{
	struct sw_node_view view;
	assert_true(sw_brain_node(desk->brain, 0, &view));
	return view;
}

static const char *gpu_of(struct desk *desk, uint64_t job)
{
	static char text[64];
	struct sw_answer_message *answer = desk_sync(desk);
	text[0] = '\0';
	for (size_t w = 0; w < answer->want_count; w++)
		if (answer->wants[w].id.job == job && answer->wants[w].gpus.count > 0)
			snprintf(text, sizeof text, "%s", answer->wants[w].gpus.items[0]);
	sw_brain_answer_free(answer);
	return text;
}

/* Aim: a job that was there first does not get a GPU that the first word of its
 * node says a stranger uses. */
static void test_first_word(void **state)
{
	struct desk *desk = *state;
	desk_submit(desk, "{\"command\": [\"a\"]}");
	shut(desk, "GPU-0", SW_SHUT_STRANGER, NULL);
	strange(desk, "GPU-0", 4711, "alice", "python");
	assert_string_equal(gpu_of(desk, 1), "GPU-1");
	assert_int_equal(look(desk).gpus_shut, 1);
	assert_int_equal(look(desk).gpus_free, 0);
}

/* Aim: a job that waits says which process of which user is on the GPU; it
 * starts when that has left. */
static void test_why_and_after(void **state)
{
	struct desk *desk = *state;
	shut(desk, "GPU-0", SW_SHUT_STRANGER, NULL);
	strange(desk, "GPU-0", 4711, "alice", "python");
	desk_sync_and_drop(desk);
	desk_submit(desk, "{\"command\": [\"a\"]}");
	desk_submit(desk, "{\"command\": [\"b\"]}");
	assert_string_equal(desk_state(desk, 1), "CF");
	assert_string_equal(desk_state(desk, 2), "PD");
	desk_sync_and_drop(desk);
	desk_expect_why(desk, 2, "1 of 2 GPUs is used by processes outside the queue: alice's python (pid 4711, 20.0 GiB) on n gpu0");
	strange(desk, "GPU-0", 4712, NULL, NULL);
	strange(desk, "GPU-0", 4713, NULL, NULL);
	desk->strangers[1].pid = 0;
	size_t records = desk->journal.count;
	desk_sync_and_drop(desk);
	assert_int_equal(desk->journal.count, records); /* one more process is no record */
	desk_expect_why(desk, 2, "alice's python (pid 4711, 20.0 GiB), a process (20.0 GiB) and 1 more on n gpu0");
	desk->shut_count = desk->stranger_count = 0;
	desk_sync_and_drop(desk);
	assert_string_equal(desk_state(desk, 2), "CF");
	assert_int_equal(look(desk).gpus_shut, 0);
}

/* Aim: a job that runs on the GPU where a stranger comes goes on, and says so; a sync that does
 * not know changes nothing. */
static void test_a_job_there_goes_on(void **state)
{
	struct desk *desk = *state;
	desk_sync_and_drop(desk);
	desk_submit(desk, "{\"command\": [\"a\"]}");
	desk_say(desk, 1, 1, SW_RUN_RUNNING, 0);
	shut(desk, "GPU-0", SW_SHUT_STRANGER, NULL);
	strange(desk, "GPU-0", 4711, "alice", "python");
	desk_sync_and_drop(desk);
	assert_string_equal(desk_state(desk, 1), "R");
	desk_expect_why(desk, 1, "; its gpu0 is also used from outside the queue: alice's python (pid 4711, 20.0 GiB)");
	desk->looked = false;
	desk_sync_and_drop(desk);
	assert_int_equal(look(desk).gpus_shut, 1);
	desk_say(desk, 1, 1, SW_RUN_EXITED, 0);
	desk_sync_and_drop(desk);
	desk->run_count = 0;
	desk_submit(desk, "{\"command\": [\"b\"]}");
	assert_string_equal(gpu_of(desk, 2), "GPU-1");
}

/* Aim: each reason has its words, and a GPU that goes from one to the other is a record of its
 * own. */
static void test_reasons(void **state)
{
	struct desk *desk = *state;
	shut(desk, "GPU-0", SW_SHUT_EXCLUDED, NULL);
	shut(desk, "GPU-1", SW_SHUT_DEAD, "GPU is lost\n\033[31m");
	desk_sync_and_drop(desk);
	desk_sync_and_drop(desk);
	desk_submit(desk, "{\"command\": [\"a\"]}");
	desk_expect_why(desk, 1, "it needs 1 GPU and only 0 are open to jobs");
	desk_expect_why(desk, 1,
			"1 of 2 GPUs is kept back by the operator: on n gpu0; 1 of 2 GPUs does not answer its driver: GPU is lost");
	struct sw_shut_view view;
	assert_true(sw_brain_gpu_shut(desk->brain, 0, 1, &view));
	assert_true(view.why == SW_SHUT_DEAD && view.since_ns == 1000 && strchr(view.by, '\033') == NULL);
	desk->shut[1].why = SW_SHUT_SILENT;
	desk_sync_and_drop(desk);
	assert_true(sw_brain_gpu_shut(desk->brain, 0, 1, &view));
	assert_int_equal(view.why, SW_SHUT_SILENT);
	desk_expect_why(desk, 1, "on a node whose driver does not answer");
}

/* Aim: what is shut stays so when the node is lost and back, and goes with the GPU
 * when the node has others. */
static void test_loss_and_change(void **state)
{
	struct desk *desk = *state;
	shut(desk, "GPU-1", SW_SHUT_DEAD, NULL);
	desk_sync_and_drop(desk);
	desk_pass_time(desk, 40 * SW_NS_PER_S);
	assert_true(look(desk).silent);
	desk_sync_and_drop(desk);
	assert_true(look(desk).up && !look(desk).silent);
	assert_int_equal(look(desk).gpus_free, 1);
	struct sw_sync_gpu swapped[] = {{.uuid = "GPU-1", .name = "g", .memory_bytes = UINT64_C(80) << 30},
					{.uuid = "GPU-0", .name = "g", .memory_bytes = UINT64_C(80) << 30}};
	const struct sw_sync_inventory inventory = {swapped, 2, 16, UINT64_C(64) << 30};
	desk->inventory = &inventory;
	desk_sync_and_drop(desk);
	struct sw_shut_view view;
	assert_true(sw_brain_gpu_shut(desk->brain, 0, 0, &view));
	assert_false(sw_brain_gpu_shut(desk->brain, 0, 1, &view));
	desk_submit(desk, "{\"command\": [\"a\"]}");
	assert_string_equal(gpu_of(desk, 1), "GPU-0");
	desk->inventory = NULL;
	desk->looked = false;
	desk->shut_count = 0;
}

/* Aim: a UUID that the node does not have, or one that stands twice, does no harm. */
static void test_odd_words(void **state)
{
	struct desk *desk = *state;
	shut(desk, "GPU-9", SW_SHUT_STRANGER, NULL);
	shut(desk, "GPU-1", SW_SHUT_STRANGER, NULL);
	shut(desk, "GPU-1", SW_SHUT_DEAD, NULL);
	for (int i = 0; i < 3; i++)
		desk_sync_and_drop(desk);
	assert_int_equal(look(desk).gpus_shut, 1);
	assert_int_equal(desk->journal.count, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DESK_TEST(test_first_word), DESK_TEST(test_why_and_after),   DESK_TEST(test_a_job_there_goes_on),
		DESK_TEST(test_reasons),    DESK_TEST(test_loss_and_change), DESK_TEST(test_odd_words),
	};
	return cmocka_run_group_tests(tests, desk_load_profiles, desk_unload_profiles);
}
