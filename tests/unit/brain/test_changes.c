/* Changes of many jobs at once: all of them or none, one decision, and nothing lost
 * where the rest of them is. */
#include <stdlib.h>
#include <string.h>

#include "brain/dependents.h"
#include "unit/brain/desk.h"

static const struct sw_change cancels = {.kind = SW_RECORD_CANCEL, .verb = "cancel"};
static const struct sw_change holds = {.kind = SW_RECORD_HOLD, .verb = "hold"};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static void propose(struct desk *desk, const struct sw_change *change, const uint64_t *jobs, size_t count, sw_records *records)
{
	struct sw_err err = {0};
	if (sw_brain_propose_changes(desk->brain, &alice, change, jobs, count, records, &err) < 0)
		fail_msg("%s: %s", err.fact, err.detail);
}

static void change(struct desk *desk, enum sw_record_kind kind, const uint64_t *jobs, size_t count)
{
	sw_records records = {0};
	propose(desk, &(struct sw_change){.kind = kind, .verb = "change"}, jobs, count, &records);
	desk_apply(desk, &records, NULL);
}

static const char *reason(const struct desk *desk, uint64_t job)
{
	static struct sw_job_view view;
	assert_true(sw_brain_job(desk->brain, desk->now, job, &view));
	return view.reason;
}

/* So many that run alone on a GPU, on a node with two. */
static void submit(struct desk *desk, int count)
{
	desk_sync_and_drop(desk);
	for (int job = 0; job < count; job++)
		desk_submit(desk, "{\"command\": [\"x\"], \"preempt\": \"requeue\"}");
}

/* Aim: where one job cannot be changed none is, and the error names it as that
 * of the job alone would. */
static void test_all_or_none(void **state)
{
	struct desk *desk = *state;
	sw_records records = {0};
	struct sw_err err = {0};
	submit(desk, 4);
	change(desk, SW_RECORD_CANCEL, (uint64_t[]){3}, 1);
	assert_int_equal(sw_brain_propose_changes(desk->brain, &alice, &cancels, (uint64_t[]){1, 2, 9}, 3, &records, &err), SW_ENOTFOUND);
	assert_string_equal(err.fact, "there is no job 9");
	assert_string_equal(err.hint, "None of the 3 jobs was changed.");
	err = (struct sw_err){0};
	assert_int_equal(sw_brain_propose_changes(desk->brain, &alice, &holds, (uint64_t[]){1, 3, 2}, 3, &records, &err), SW_EINPUT);
	assert_string_equal(err.fact, "cannot hold job 3");
	assert_string_equal(err.detail, "it has ended");
	err = (struct sw_err){0};
	assert_int_equal(sw_brain_propose_changes(desk->brain, &bob, &cancels, (uint64_t[]){1, 2}, 2, &records, &err), SW_EDENIED);
	assert_string_equal(err.fact, "job 1 belongs to another user");
	/* Whose job it is comes before whether it has ended: another user's is never left alone. */
	const struct sw_change skips = {.kind = SW_RECORD_CANCEL, .verb = "cancel", .skips_ended = true};
	assert_int_equal(sw_brain_propose_changes(desk->brain, &bob, &skips, (uint64_t[]){3}, 1, &records, NULL), SW_EDENIED);
	assert_int_equal(sw_brain_propose_changes(desk->brain, &alice, &skips, (uint64_t[]){0}, 1, &records, NULL), SW_ENOTFOUND);
	err = (struct sw_err){0};
	const struct sw_change deep = {.kind = SW_RECORD_HOLD, .verb = "suspend", .deep = true};
	assert_int_equal(sw_brain_propose_changes(desk->brain, &alice, &deep, (uint64_t[]){1, 2}, 2, &records, &err), SW_EINPUT);
	assert_string_equal(err.fact, "cannot take job 1 off its GPUs whole");
	assert_non_null(strstr(err.hint, "--force' does that. None of the 2 jobs"));
	assert_int_equal(records.count, 0);
}

/* Aim: jobs that have ended can be left alone; the last record that there is
 * says that it is the last. */
static void test_ended_ones_are_left_alone(void **state)
{
	struct desk *desk = *state;
	sw_records records = {0};
	submit(desk, 5);
	change(desk, SW_RECORD_CANCEL, (uint64_t[]){2, 5}, 2);
	const struct sw_change skips = {.kind = SW_RECORD_CANCEL, .verb = "cancel", .skips_ended = true};
	propose(desk, &skips, (uint64_t[]){2, 5}, 2, &records);
	assert_int_equal(records.count, 0);
	propose(desk, &skips, (uint64_t[]){2, 3, 1, 5}, 4, &records);
	assert_int_equal(records.count, 2);
	assert_memory_equal(records.items[0].body, "{\"by\":1000,\"job\":3,\"more\":true", 29);
	assert_memory_equal(records.items[1].body, "{\"by\":1000,\"job\":1,\"more\":false", 30);
	desk_apply(desk, &records, NULL);
	assert_string_equal(desk_state(desk, 4), "CF");
	/* One that is changed alone does not say so. */
	assert_int_equal(sw_brain_propose_change(desk->brain, &alice, SW_RECORD_CANCEL, "cancel", 4, &records, NULL), 0);
	assert_null(strstr(records.items[0].body, "more"));
	sw_records_clear(&records);
}

/* Aim: each record acts as it comes, nothing starts before the last, and nothing ever
 * starts that goes with it. */
static void test_one_decision(void **state)
{
	struct desk *desk = *state;
	static const uint64_t jobs[] = {1, 7, 2, 3, 4};
	sw_records records = {0};
	submit(desk, 6);
	desk_submit(desk, "{\"command\": [\"x\"], \"depends\": \"afterok:1\"}");
	propose(desk, &cancels, jobs, COUNT(jobs), &records);
	for (size_t r = 0; r < COUNT(jobs); r++) {
		sw_records one = {0};
		*sw_vec_push(&one) = records.items[r];
		assert_string_equal(desk_state(desk, 5), "PD");
		desk_apply(desk, &one, NULL);
		assert_string_equal(reason(desk, jobs[r]), "cancelled");
		assert_int_equal(sw_brain_next(desk->brain) == 0, r + 1 < COUNT(jobs));
	}
	sw_vec_free(&records);
	assert_string_equal(desk_state(desk, 5), "CF");
	assert_string_equal(desk_state(desk, 6), "CF");
	for (uint64_t job = 1; job <= 4; job++)
		assert_int_equal(sw_brain_live(desk->brain, job)->epoch, job <= 2);
}

/* Aim: hold, release and requeue do to many what they do to one. */
static void test_other_verbs(void **state)
{
	struct desk *desk = *state;
	submit(desk, 5);
	change(desk, SW_RECORD_REQUEUE, (uint64_t[]){1, 2}, 2);
	assert_int_equal(sw_brain_live(desk->brain, 1)->epoch, 2);
	assert_string_equal(desk_state(desk, 3), "PD");
	change(desk, SW_RECORD_HOLD, (uint64_t[]){1, 2, 3}, 3);
	assert_string_equal(desk_state(desk, 4), "CF");
	assert_string_equal(desk_state(desk, 5), "CF");
	assert_true(sw_brain_live(desk->brain, 3)->user_held);
	change(desk, SW_RECORD_CANCEL, (uint64_t[]){4, 5}, 2);
	assert_string_equal(desk_state(desk, 3), "PD");
	change(desk, SW_RECORD_RELEASE, (uint64_t[]){3, 2, 1}, 3);
	assert_string_equal(desk_state(desk, 1), "CF");
	assert_string_equal(desk_state(desk, 2), "CF");
	assert_string_equal(desk_state(desk, 3), "PD");
}

/* A chain, one that only wants an end, an array of which one runs at a time. */
static void submit_dependents(struct desk *desk)
{
	sw_records records = {0};
	submit(desk, 3);
	desk_submit(desk, "{\"command\": [\"x\"], \"depends\": \"afterok:1\"}");
	desk_submit(desk, "{\"command\": [\"x\"], \"depends\": \"afterok:4\"}");
	desk_submit(desk, "{\"command\": [\"x\"], \"depends\": \"afterok:5\"}");
	desk_submit(desk, "{\"command\": [\"x\"], \"depends\": \"afterany:2\"}");
	struct sw_job_request *asked = desk_request("{\"command\":[\"x\"],\"array\":\"0-3%1\"}");
	asked->is_member = true;
	assert_int_equal(sw_brain_propose_submit(desk->brain, &alice, asked, &records, NULL), 0);
	assert_int_equal(sw_brain_propose_others(asked, 4, &records, NULL), 0);
	sw_job_request_free(asked);
	desk_apply(desk, &records, NULL);
}

/* Aim: a job that waits for others is judged when all have been changed: one that goes too is
 * cancelled, not ended for want of another, and the rest follows. */
static void test_dependents(void **state)
{
	struct desk *desk = *state;
	submit_dependents(desk);
	change(desk, SW_RECORD_CANCEL, (uint64_t[]){1, 4, 2, 8, 9, 3}, 6);
	assert_string_equal(reason(desk, 4), "cancelled");
	assert_string_equal(desk_state(desk, 5), "CA");
	assert_string_equal(reason(desk, 5), "dependency never satisfied");
	assert_string_equal(reason(desk, 6), "dependency never satisfied");
	assert_string_equal(desk_state(desk, 7), "CF");
	assert_string_equal(desk_state(desk, 10), "CF");
	assert_string_equal(reason(desk, 11), "JobArrayTaskLimit");
	assert_true(sw_brain_is_settled(desk->brain));
}

static struct sw_brain *replay_some(const struct desk *desk, size_t count)
{
	struct sw_brain *brain = NULL;
	struct sw_err err = {0};
	assert_int_equal(sw_brain_new(&desk_config, &brain, NULL), 0);
	for (size_t r = 0; r < count; r++) {
		const struct kept *kept = &desk->journal.items[r];
		if (sw_brain_apply(brain, kept->at, kept->record.kind, kept->record.body, kept->record.size, NULL, &err) < 0)
			fail_msg("%s: %s", err.fact, err.detail);
	}
	return brain;
}

/* Saved and loaded. */
static struct sw_brain *reload(struct sw_brain *brain)
{
	struct sw_pack pack = {0};
	struct sw_brain *loaded = NULL;
	size_t size;
	bool adopted;
	sw_brain_save(brain, &pack);
	SW_CLEANUP(sw_freep) unsigned char *bytes = sw_pack_take(&pack, &size);
	sw_brain_free(brain);
	assert_int_equal(sw_brain_load(&desk_config, bytes, size, &loaded, &adopted, NULL), 0);
	assert_false(adopted);
	return loaded;
}

static void tick(struct sw_brain *brain, sw_ns now)
{
	sw_records records = {0};
	struct sw_err err = {0};
	assert_int_equal(sw_brain_tick(brain, now, &records, NULL), 0);
	assert_true(records.count > 0);
	for (size_t r = 0; r < records.count; r++)
		assert_int_equal(
			sw_brain_apply(brain, now, records.items[r].kind, records.items[r].body, records.items[r].size, NULL, &err), 0);
	sw_records_clear(&records);
	if (sw_brain_validate(brain, &err) < 0)
		fail_msg("%s", err.fact);
}

/* Aim: a journal that ends between the records of one request, which it promises not to, comes to a
 * sound state all the same: what is there acts, the controller wakes at once and decides, and a job
 * that waited for the cancelled is let go or ended. */
static void test_a_journal_that_was_cut(void **state)
{
	struct desk *desk = *state;
	submit_dependents(desk);
	size_t before = desk->journal.count;
	change(desk, SW_RECORD_CANCEL, (uint64_t[]){2, 1, 8, 9, 3}, 5);
	for (size_t kept = 1; kept < 5; kept++) {
		struct sw_brain *brain = replay_some(desk, before + kept);
		if (kept % 2 == 0)
			brain = reload(brain);
		assert_true(sw_brain_next(brain) <= desk->now);
		tick(brain, desk->now);
		assert_true(sw_brain_next(brain) > desk->now);
		struct sw_job_view view;
		for (uint64_t job = 1; job <= 11; job++) {
			/* 2 is gone, and 7 wanted no more than that; where 1 is gone too, so are
			 * those that wanted it to do well. Both GPUs are in use. */
			bool gone = job == 2 || (kept >= 2 && (job == 1 || (job >= 4 && job <= 6))) || (kept >= 3 && job == 8) ||
				    (kept >= 4 && job == 9);
			bool runs = kept == 1 ? job == 1 || job == 3 : job == 3 || job == 7;
			assert_true(sw_brain_job(brain, desk->now, job, &view));
			if (strcmp(view.state, gone ? "CA" : runs ? "CF" : "PD") != 0 && strcmp(view.state, gone ? "CG" : "") != 0)
				fail_msg("with %zu records job %d is %s", kept, (int)job, view.state);
		}
		sw_brain_free(brain);
	}
}

/* Aim: a state that was saved between the records of one request goes on as the one that was
 * not. */
static void test_saved_in_between(void **state)
{
	struct desk *desk = *state;
	submit_dependents(desk);
	size_t before = desk->journal.count;
	change(desk, SW_RECORD_CANCEL, (uint64_t[]){2, 1, 8, 9, 3}, 5);
	for (size_t kept = 1; kept < 5; kept++) {
		struct sw_brain *brain = reload(replay_some(desk, before + kept));
		for (size_t r = before + kept; r < desk->journal.count; r++) {
			const struct kept *record = &desk->journal.items[r];
			assert_int_equal(sw_brain_apply(brain, record->at, record->record.kind, record->record.body, record->record.size,
							NULL, NULL),
					 0);
		}
		assert_true(sw_brain_log_hash(brain) == sw_brain_log_hash(desk->brain));
		sw_brain_free(brain);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DESK_TEST(test_all_or_none),	  DESK_TEST(test_ended_ones_are_left_alone),
		DESK_TEST(test_one_decision),	  DESK_TEST(test_other_verbs),
		DESK_TEST(test_dependents),	  DESK_TEST(test_a_journal_that_was_cut),
		DESK_TEST(test_saved_in_between),
	};
	return cmocka_run_group_tests(tests, desk_load_profiles, desk_unload_profiles);
}
