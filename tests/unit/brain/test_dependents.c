/* Jobs that wait for others: what is looked at when one ends, in what portions, and that
 * nothing is overlooked. */
#include "unit/brain/desk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

static uint64_t looks;
struct sw_live *__real_sw_brain_live(const struct sw_brain *brain, uint64_t id);
struct sw_live *__wrap_sw_brain_live(const struct sw_brain *brain, uint64_t id);
struct sw_live *__wrap_sw_brain_live(const struct sw_brain *brain, uint64_t id)
{
	looks++;
	return __real_sw_brain_live(brain, id);
}

/* Without the check of the whole state after each, which would be most of the work. */
static void submit(struct desk *desk, const char *json)
{
	sw_records records = {0};
	struct sw_job_request *asked = desk_request(json);
	assert_int_equal(sw_brain_propose_submit(desk->brain, &alice, asked, &records, NULL), 0);
	sw_job_request_free(asked);
	assert_int_equal(sw_brain_apply_record(desk->brain, desk->now, &records.items[0], NULL, NULL), 0);
	*sw_vec_push(&desk->journal) = (struct kept){desk->now, records.items[0]};
	sw_vec_free(&records);
}

static void submit_array(struct desk *desk, const char *json, uint32_t members)
{
	sw_records records = {0};
	struct sw_job_request *asked = desk_request(json);
	asked->is_member = true;
	assert_int_equal(sw_brain_propose_submit(desk->brain, &alice, asked, &records, NULL), 0);
	assert_int_equal(sw_brain_propose_others(asked, members, &records, NULL), 0);
	sw_job_request_free(asked);
	desk_apply(desk, &records, NULL);
}

static void cancel(struct desk *desk, uint64_t job)
{
	sw_records records = {0};
	assert_int_equal(sw_brain_propose_change(desk->brain, &alice, SW_RECORD_CANCEL, "cancel", job, &records, NULL), 0);
	desk_apply(desk, &records, NULL);
}

static size_t count_ended(const struct desk *desk)
{
	size_t count = 0;
	for (uint64_t job = 1; job <= sw_brain_job_count(desk->brain); job++)
		count += sw_brain_has_ended(desk->brain, job);
	return count;
}

/* Applies what the brain asks for until it asks for nothing. The most jobs
 * that ended by one record. */
static size_t settle(struct desk *desk)
{
	size_t most = 0, before = count_ended(desk);
	for (int rounds = 0; sw_brain_next(desk->brain) <= desk->now; rounds++) {
		assert_true(rounds < 1000);
		sw_records records = {0};
		assert_int_equal(sw_brain_tick(desk->brain, desk->now, &records, NULL), 0);
		assert_int_equal(records.count, 1);
		desk_apply(desk, &records, NULL);
		size_t now = count_ended(desk);
		most = now - before > most ? now - before : most;
		before = now;
	}
	return most;
}

/* Aim: the end of a long chain, each of which waits for the 64 before it, costs as much as there is
 * to wait for, in portions that do not hold anything up. */
static void test_a_chain_ends_in_portions(void **state)
{
	enum { JOBS = 3000, WAITS = 64 };
	struct desk *desk = *state;
	submit(desk, "{\"command\": [\"x\"], \"hold\": true}");
	for (int job = 2; job <= JOBS; job++) {
		char json[2000] = "{\"command\": [\"x\"], \"depends\": \"";
		size_t used = strlen(json);
		for (int before = job > WAITS ? job - WAITS : 1; before < job; before++)
			used += (size_t)snprintf(json + used, sizeof json - used, "%s:%d%s", before == job - 1 ? "afterok" : "afterany",
						 before, before == job - 1 ? "\"}" : ",");
		submit(desk, json);
	}
	looks = 0;
	cancel(desk, 1);
	size_t first = count_ended(desk), most = settle(desk);
	assert_true(first <= 1001 && most > 0 && most <= 1000);
	assert_int_equal(count_ended(desk), JOBS);
	/* Some for each thing that is waited for, and those of the checks
	 * after each of few records. */
	assert_in_range(looks, 1, (uint64_t)JOBS * WAITS * 40);
}

/* Aim: a job that ends costs nothing of the many that wait for others. */
static void test_others_that_wait_cost_nothing(void **state)
{
	struct desk *desk = *state;
	submit(desk, "{\"command\": [\"x\"], \"hold\": true}");
	submit(desk, "{\"command\": [\"x\"], \"hold\": true}");
	for (int i = 0; i < 2000; i++)
		submit(desk, "{\"command\": [\"x\"], \"depends\": \"afterok:1\"}");
	sw_records records = {0};
	assert_int_equal(sw_brain_propose_change(desk->brain, &alice, SW_RECORD_CANCEL, "cancel", 2, &records, NULL), 0);
	looks = 0;
	assert_int_equal(sw_brain_apply_record(desk->brain, desk->now, &records.items[0], NULL, NULL), 0);
	assert_in_range(looks, 1, 20);
	*sw_vec_push(&desk->journal) = (struct kept){desk->now, records.items[0]};
	sw_vec_free(&records);
}

/* Aim: so does a member of a large array of which many may be under way: it is not counted anew. */
static void test_members_are_not_counted_anew(void **state)
{
	struct desk *desk = *state;
	looks = 0;
	submit_array(desk, "{\"command\":[\"x\"],\"array\":\"0-3999%1000\",\"hold\":true}", 4000);
	assert_in_range(looks, 1, 4000 * 40);
	assert_string_equal(desk_state(desk, 4000), "PD");
	for (uint64_t job = 1001; job < 3999; job++) {
		sw_records records = {0};
		assert_int_equal(sw_brain_propose_change(desk->brain, &alice, SW_RECORD_CANCEL, "cancel", job, &records, NULL), 0);
		assert_int_equal(sw_brain_apply_record(desk->brain, desk->now, &records.items[0], NULL, NULL), 0);
		*sw_vec_push(&desk->journal) = (struct kept){desk->now, records.items[0]};
		sw_vec_free(&records);
	}
	struct sw_job_view view;
	assert_true(sw_brain_job(desk->brain, desk->now, 3999, &view));
	assert_string_equal(view.reason, "JobArrayTaskLimit");
	cancel(desk, 7);
	settle(desk);
	assert_true(sw_brain_job(desk->brain, desk->now, 3999, &view));
	assert_string_equal(view.reason, "JobHeldUser");
	assert_true(sw_brain_job(desk->brain, desk->now, 4000, &view));
	assert_string_equal(view.reason, "JobArrayTaskLimit");
}

/* Whether a job has anything to wait for, by looking at everything. */
static bool waits_naively(const struct sw_brain *brain, uint64_t job)
{
	const struct sw_live *live = sw_brain_live(brain, job);
	for (uint32_t d = 0; d < live->depend_count; d++) {
		const struct sw_depend *depend = &live->depends[d];
		uint64_t before = 0;
		if (depend->kind == SW_AFTER_SLOT) {
			for (uint64_t other = live->array_first; other < job; other++)
				before +=
					sw_brain_live(brain, other)->array_first == live->array_first && !sw_brain_has_ended(brain, other);
			if (before >= depend->job)
				return true;
		} else if (!sw_brain_has_ended(brain, depend->job)) {
			return true;
		}
	}
	return false;
}

/* Aim: whatever is submitted, ends and is cancelled in whatever order, no job waits without
 * something to wait for. */
static void test_nothing_is_overlooked(void **state)
{
	struct desk *desk = *state;
	struct sw_rng rng;
	sw_rng_seed(&rng, 16);
	for (int round = 0; round < 400; round++) {
		uint64_t count = sw_brain_job_count(desk->brain), roll = sw_rng_below(&rng, 10);
		char json[300];
		int used = snprintf(json, sizeof json, "{\"command\": [\"x\"]%s", sw_rng_below(&rng, 3) == 0 ? ", \"hold\": true" : "");
		if (roll < 2) {
			snprintf(json + used, sizeof json - (size_t)used, ", \"array\": \"0-%d%%%d\"%s}", 3 + (int)sw_rng_below(&rng, 9),
				 1 + (int)sw_rng_below(&rng, 3), count > 0 && roll == 0 ? ", \"depends\": \"afterany:1\"" : "");
			submit_array(desk, json, 4);
		} else if (roll < 6 || count < 5) {
			static const char *const kinds[] = {"afterok", "afterany", "afternotok"};
			used += snprintf(json + used, sizeof json - (size_t)used, "%s", count > 0 ? ", \"depends\": \"" : "}");
			for (int d = 0; count > 0 && d < 3; d++)
				used += snprintf(json + used, sizeof json - (size_t)used, "%s:%u%s", kinds[sw_rng_below(&rng, 3)],
						 1 + (unsigned)sw_rng_below(&rng, count), d == 2 ? "\"}" : ",");
			submit(desk, json);
		} else {
			uint64_t job = 1 + sw_rng_below(&rng, count);
			if (!sw_brain_has_ended(desk->brain, job))
				cancel(desk, job);
		}
		settle(desk);
		for (uint64_t job = 1; job <= sw_brain_job_count(desk->brain); job++)
			if (sw_brain_live(desk->brain, job)->depend_count > 0 && !waits_naively(desk->brain, job))
				fail_msg("round %d: job %d waits for nothing", round, (int)job);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DESK_TEST(test_a_chain_ends_in_portions),
		DESK_TEST(test_others_that_wait_cost_nothing),
		DESK_TEST(test_members_are_not_counted_anew),
		DESK_TEST(test_nothing_is_overlooked),
	};
	return cmocka_run_group_tests(tests, desk_load_profiles, desk_unload_profiles);
}
