#include "unit/brain/desk.h"

#include <stdlib.h>
#include <string.h>

struct sw_brain_config desk_config = {
	.policy = "fifo",
	.placement = "pack",
	.silence_ns = 30 * SW_NS_PER_S,
	.silence_margin_ns = 5 * SW_NS_PER_S,
	.retry_backoff_ns = 10 * SW_NS_PER_S,
};
const struct sw_user alice = {.uid = 1000, .gid = 1000}, bob = {.uid = 1001, .gid = 1001}, root = {.is_operator = true};

void desk_apply(struct desk *desk, sw_records *records, uint64_t *ret_job)
{
	struct sw_err err = {0};
	for (size_t r = 0; r < records->count; r++) {
		if (sw_brain_apply_record(desk->brain, desk->now, &records->items[r], ret_job, &err) < 0)
			fail_msg("%s: %s", err.fact, err.detail);
		*sw_vec_push(&desk->journal) = (struct kept){desk->now, records->items[r]};
	}
	sw_vec_free(records); /* the bodies live on in the journal */
	if (sw_brain_validate(desk->brain, &err) < 0)
		fail_msg("%s", err.fact);
}

struct sw_job_request *desk_request(const char *json)
{
	struct sw_job_request *asked = NULL;
	struct sw_err err = {0};
	if (sw_job_request_decode("test", json, strlen(json), &asked, &err) < 0)
		fail_msg("%s: %s", err.fact, err.detail);
	return asked;
}

uint64_t desk_submit(struct desk *desk, const char *json)
{
	sw_records records = {0};
	uint64_t job = 0;
	struct sw_job_request *asked = desk_request(json);
	assert_int_equal(sw_brain_propose_submit(desk->brain, &alice, asked, &records, NULL), 0);
	sw_job_request_free(asked);
	desk_apply(desk, &records, &job);
	return job;
}

struct sw_answer_message *desk_sync_with(struct desk *desk, uint64_t number)
{
	struct sw_sync_gpu gpus[] = {{.uuid = "GPU-0", .name = "g", .memory_bytes = UINT64_C(80) << 30},
				     {.uuid = "GPU-1", .name = "g", .memory_bytes = UINT64_C(80) << 30}};
	const struct sw_sync_inventory inventory = {gpus, 2, 16, UINT64_C(64) << 30};
	const struct sw_sync sync = {.node = "n",
				     .instance = desk->instance != NULL ? desk->instance : "a1",
				     .number = number,
				     .have = desk->have,
				     .leases = !desk->old_agent,
				     .inventory = desk->inventory != NULL ? desk->inventory : &inventory,
				     .runs = desk->runs,
				     .run_count = desk->run_count,
				     .unread = desk->unread,
				     .unread_count = desk->unread_count,
				     .looked = desk->looked,
				     .shut = desk->shut,
				     .shut_count = desk->shut_count,
				     .strangers = desk->strangers,
				     .stranger_count = desk->stranger_count};
	sw_records records = {0};
	struct sw_err err = {0};
	struct sw_answer_message *answer = NULL;
	assert_int_equal(sw_brain_hear(desk->brain, desk->now, &sync, &records, &err), 0);
	desk_apply(desk, &records, NULL);
	assert_int_equal(sw_brain_answer(desk->brain, desk->now, &sync, &answer, &err), 0);
	desk->have = answer->version;
	return answer;
}

struct sw_answer_message *desk_sync(struct desk *desk)
{
	return desk_sync_with(desk, ++desk->number);
}

enum sw_want_kind desk_wanted(const struct sw_answer_message *answer, uint64_t job, uint32_t epoch)
{
	for (size_t w = 0; w < answer->want_count; w++)
		if (answer->wants[w].id.job == job && answer->wants[w].id.epoch == epoch)
			return answer->wants[w].want;
	return (enum sw_want_kind)99;
}

void desk_say(struct desk *desk, uint64_t job, uint32_t epoch, enum sw_run_state state, uint32_t code)
{
	desk->runs[0] = (struct sw_sync_run){.id = {job, epoch}, .state = state, .code = code, .reason = ""};
	desk->run_count = 1;
}

void desk_sync_and_drop(struct desk *desk)
{
	sw_brain_answer_free(desk_sync(desk));
}

const char *desk_state(const struct desk *desk, uint64_t job)
{
	struct sw_job_view view;
	assert_true(sw_brain_job(desk->brain, desk->now, job, &view));
	return view.state;
}

void desk_pass_time(struct desk *desk, sw_ns by)
{
	desk->now += by;
	for (int rounds = 0; sw_brain_next(desk->brain) <= desk->now && rounds < 100; rounds++) {
		sw_records records = {0};
		assert_int_equal(sw_brain_tick(desk->brain, desk->now, &records, NULL), 0);
		desk_apply(desk, &records, NULL);
	}
}

void desk_expect_why(const struct desk *desk, uint64_t job, const char *words)
{
	char why[600];
	sw_brain_explain(desk->brain, desk->now, job, why, sizeof why);
	if (strstr(why, words) == NULL)
		fail_msg("job %d: '%s' does not say '%s'", (int)job, why, words);
}

/* Runs after every test: the journal, applied to a new brain, gives the same state. */
static void replay(struct desk *desk)
{
	struct sw_brain *again;
	struct sw_err err = {0};
	assert_int_equal(sw_brain_new(&desk_config, &again, NULL), 0);
	for (size_t r = 0; r < desk->journal.count; r++) {
		const struct kept *kept = &desk->journal.items[r];
		if (sw_brain_apply(again, kept->at, kept->record.kind, kept->record.body, kept->record.size, NULL, &err) < 0)
			fail_msg("%s: %s", err.fact, err.detail);
	}
	assert_true(sw_brain_log_hash(again) == sw_brain_log_hash(desk->brain));
	assert_int_equal(sw_brain_job_count(again), sw_brain_job_count(desk->brain));
	for (uint64_t job = 1; job <= sw_brain_job_count(again); job++) {
		struct sw_job_view a, b;
		sw_brain_job(again, desk->now, job, &a);
		sw_brain_job(desk->brain, desk->now, job, &b);
		assert_string_equal(a.state, b.state);
		assert_int_equal(a.code, b.code);
		assert_int_equal(a.epoch, b.epoch);
		assert_true(a.limit_bytes == b.limit_bytes && a.limit_milli == b.limit_milli);
		struct sw_speed_view fast = {0}, also = {0};
		assert_int_equal(sw_brain_speed(desk->brain, job, &fast), sw_brain_speed(again, job, &also));
		assert_true(fast.iteration_ns == also.iteration_ns && fast.alone_ns == also.alone_ns && fast.slow_milli == also.slow_milli);
	}
	struct sw_pack one = {0}, two = {0};
	sw_brain_save(again, &one);
	sw_brain_save(desk->brain, &two);
	assert_int_equal(one.size, two.size);
	assert_memory_equal(one.bytes, two.bytes, one.size);
	sw_pack_release(&one);
	sw_pack_release(&two);
	sw_brain_free(again);
}

int desk_load_profiles(void **state)
{
	static struct sw_profiles *profiles;
	*state = &profiles;
	int r = sw_profiles_load_default(&profiles, NULL);
	desk_config.profiles = profiles;
	return r;
}

int desk_unload_profiles(void **state)
{
	struct sw_profiles **profiles = *state;
	sw_profiles_free(*profiles);
	return 0;
}

int desk_up(void **state)
{
	struct desk *desk = calloc(1, sizeof *desk);
	struct sw_err err = {0};
	if (desk == NULL || sw_brain_new(&desk_config, &desk->brain, &err) < 0)
		return -1;
	desk->now = SW_NS_PER_S;
	*state = desk;
	return 0;
}

int desk_down(void **state)
{
	struct desk *desk = *state;
	replay(desk);
	for (size_t r = 0; r < desk->journal.count; r++)
		free(desk->journal.items[r].record.body);
	sw_vec_free(&desk->journal);
	sw_brain_free(desk->brain);
	free(desk);
	return 0;
}
