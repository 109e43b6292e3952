/* Jobs that have ended leave the state once their time is over and nothing refers to them. */
#include "unit/brain/bench.h"

/* What the driver remembers of jobs that have left. */
static struct sw_fate remembered[64];
static size_t remembered_count;

static bool find_fate(void *context, uint64_t job, struct sw_fate *ret_fate)
{
	(void)context;
	for (size_t i = 0; i < remembered_count; i++)
		if (remembered[i].job == job) {
			*ret_fate = remembered[i];
			return true;
		}
	return false;
}

static int remember(void *user, uint64_t job)
{
	struct bench *bench = user;
	remembered[remembered_count++] = (struct sw_fate){.job = job, .ok = strcmp(look(bench, job).state, "CD") == 0, .uid = 1000};
	return 0;
}

static const struct sw_brain_config few = {
	.policy = "srtf",
	.placement = "pack",
	.silence_ns = 3000 * SW_NS_PER_S,
	.silence_margin_ns = 5 * SW_NS_PER_S,
	.retry_backoff_ns = 10 * SW_NS_PER_S,
	.forgets = true,
	.keep_jobs = 2,
	.keep_for_ns = 1000 * SW_NS_PER_S,
	.find_fate = find_fate,
};

static int set_up_few(void **state)
{
	remembered_count = 0;
	return set_up_with(state, &few, 2);
}

/* Whatever is due; how many jobs left. */
static uint64_t tick(struct bench *bench)
{
	uint64_t before = sw_brain_known_count(bench->brain);
	sw_records records = {0};
	assert_int_equal(sw_brain_tick(bench->brain, bench->now, &records, NULL), 0);
	for (size_t r = 0; r < records.count; r++)
		if (records.items[r].kind == SW_RECORD_FORGET)
			assert_int_equal(
				sw_brain_each_forgotten(bench->brain, records.items[r].body, records.items[r].size, remember, bench, NULL),
				0);
	apply_all(bench, &records, NULL);
	return before - sw_brain_known_count(bench->brain);
}

static bool knows(const struct bench *bench, uint64_t job)
{
	struct sw_job_view view;
	return sw_brain_job(bench->brain, bench->now, job, &view);
}

/* Runs to its end. */
static uint64_t done(struct bench *bench, int code)
{
	uint64_t job = submit(bench, 5, "");
	sync_now(bench);
	runs(bench, job, 1);
	bench->now += SW_NS_PER_S;
	bench->runs[0] = (struct sw_sync_run){.id = {job, 1}, .state = SW_RUN_EXITED, .code = code, .reason = ""};
	sync_now(bench);
	bench->run_count = 0;
	sync_now(bench);
	return job;
}

/* Aim: of jobs that have ended the last two stay, the others leave in the order of
 * their ends; numbers go on. */
static void test_keeps_some(void **state)
{
	struct bench *bench = *state;
	for (int i = 0; i < 5; i++)
		done(bench, 0);
	assert_int_equal(tick(bench), 3);
	assert_false(knows(bench, 1) || knows(bench, 2) || knows(bench, 3));
	assert_true(knows(bench, 4) && knows(bench, 5));
	assert_int_equal(remembered_count, 3);
	assert_true(remembered[0].job == 1 && remembered[0].ok);
	assert_int_equal(tick(bench), 0);
	assert_int_equal(submit(bench, 5, ""), 6);
	assert_int_equal(sw_brain_next_job(bench->brain, 1), 4);
	/* Nothing can be done about one that has left. */
	sw_records records = {0};
	assert_int_equal(sw_brain_propose_change(bench->brain, &alice, SW_RECORD_CANCEL, "cancel", 2, &records, NULL), SW_EINPUT);
	/* A late word of its agent is answered: it may forget the run. */
	bench->runs[0] = (struct sw_sync_run){.id = {2, 1}, .state = SW_RUN_EXITED, .reason = ""};
	bench->run_count = 1;
	sync_now(bench);
	WISH(2, 1, SW_WANT_FORGET);
	bench->run_count = 0;
}

/* Aim: a job that has ended leaves when its time is over, though few have
 * ended; the newest stays. */
static void test_keeps_for_a_time(void **state)
{
	struct bench *bench = *state;
	done(bench, 0);
	done(bench, 0);
	assert_int_equal(tick(bench), 0);
	assert_true(sw_brain_next(bench->brain) > bench->now);
	bench->now += 1001 * SW_NS_PER_S;
	assert_true(sw_brain_next(bench->brain) <= bench->now);
	assert_int_equal(tick(bench), 1);
	assert_true(knows(bench, 2));
	/* It is still needed: it is not asked again at once. */
	assert_int_equal(tick(bench), 0);
	assert_true(sw_brain_next(bench->brain) > bench->now);
}

/* Aim: one that lives, or that others wait for, does not leave. */
static void test_stays_while_needed(void **state)
{
	struct bench *bench = *state;
	uint64_t lives = submit(bench, 500, ", \"hold\": true");
	uint64_t first = done(bench, 0);
	char more[80];
	/* Waits for the held one too: it has not looked at the other yet. */
	snprintf(more, sizeof more, ", \"depends\": \"afterok:%d,afterok:%d\"", (int)lives, (int)first);
	uint64_t waits = submit(bench, 5, more);
	for (int i = 0; i < 5; i++)
		done(bench, 0);
	assert_int_equal(tick(bench), 3);
	assert_true(knows(bench, lives) && knows(bench, first) && knows(bench, waits));
	change(bench, SW_RECORD_CANCEL, lives);
	STATE(waits, "CA");
	for (int i = 0; i < 3; i++)
		done(bench, 0);
	bench->now += 20 * SW_NS_PER_S;
	while (tick(bench) > 0)
		;
	assert_false(knows(bench, lives) || knows(bench, first) || knows(bench, waits));
}

/* Aim: a job that depends on one that has left hears what became of it. */
static void test_depends_on_the_past(void **state)
{
	struct bench *bench = *state;
	done(bench, 0);
	done(bench, 1);
	for (int i = 0; i < 4; i++)
		done(bench, 0);
	bench->now += 100 * SW_NS_PER_S;
	tick(bench);
	assert_false(knows(bench, 1) || knows(bench, 2));
	uint64_t goes = submit(bench, 5, ", \"depends\": \"afterok:1,afternotok:2,afterany:2\"");
	uint64_t never = submit(bench, 5, ", \"depends\": \"afterok:1,afterok:2\"");
	STATE(goes, "CF");
	STATE(never, "CA");
	assert_string_equal(look(bench, never).reason, "dependency never satisfied");
	struct sw_job_request *asked = NULL;
	static const char json[] = "{\"command\": [\"x\"], \"depends\": \"afterok:77\"}";
	assert_int_equal(sw_job_request_decode("test", json, strlen(json), &asked, NULL), 0);
	sw_records records = {0};
	assert_int_equal(sw_brain_propose_submit(bench->brain, &alice, asked, &records, NULL), SW_EINPUT);
	sw_job_request_free(asked);
}

/* Aim: a job that leaves between a request that names it and its record counts as it ended. */
static void test_leaves_in_between(void **state)
{
	struct bench *bench = *state;
	for (int i = 0; i < 4; i++)
		done(bench, 0);
	struct sw_job_request *asked = NULL;
	static const char json[] = "{\"command\": [\"x\"], \"depends\": \"afterok:1\"}";
	assert_int_equal(sw_job_request_decode("test", json, strlen(json), &asked, NULL), 0);
	sw_records records = {0};
	assert_int_equal(sw_brain_propose_submit(bench->brain, &alice, asked, &records, NULL), 0);
	sw_job_request_free(asked);
	assert_int_equal(tick(bench), 2);
	assert_false(knows(bench, 1));
	uint64_t job = 0;
	apply_all(bench, &records, &job);
	STATE(job, "CF");
}

/* Aim: what a record names is left alone if something refers to it by then; a record that names
 * what is not there does no harm. */
static void test_record_of_another_time(void **state)
{
	struct bench *bench = *state;
	done(bench, 0);
	done(bench, 0);
	uint64_t lives = submit(bench, 100, "");
	sw_records records = {0};
	static const char body[] = "{\"jobs\": [1, 3, 1, 77, -4, 2]}";
	*sw_vec_push(&records) = (struct sw_record){.kind = SW_RECORD_FORGET, .body = strdup(body), .size = strlen(body)};
	apply_all(bench, &records, NULL);
	assert_false(knows(bench, 1) || knows(bench, 2));
	assert_true(knows(bench, lives));
}

/* Aim: members of an array leave while others wait for their turn, and the array goes on. */
static void test_array(void **state)
{
	struct bench *bench = *state;
	struct sw_job_request *asked = NULL;
	static const char json[] = "{\"command\": [\"x\"], \"array\": \"0-5%1\", \"stdout\": \"/tmp/%A-%a\"}";
	assert_int_equal(sw_job_request_decode("test", json, strlen(json), &asked, NULL), 0);
	sw_records records = {0};
	asked->is_member = true;
	assert_int_equal(sw_brain_propose_submit(bench->brain, &alice, asked, &records, NULL), 0);
	assert_int_equal(sw_brain_propose_others(asked, 6, &records, NULL), 0);
	sw_job_request_free(asked);
	apply_all(bench, &records, NULL);
	submit(bench, 100, ", \"hold\": true"); /* so that the array is not the newest */
	submit(bench, 100, ", \"hold\": true");
	for (uint64_t job = 1; job <= 6; job++) {
		bench->run_count = 0;
		sync_now(bench);
		WISH(job, 1, SW_WANT_RUN);
		assert_string_equal(look(bench, job).state, "CF");
		if (job == 5) {
			for (size_t w = 0; w < bench->answer->want_count; w++)
				if (bench->answer->wants[w].id.job == job)
					assert_string_equal(bench->answer->wants[w].spec->stdout_path, "/tmp/1-4");
		}
		runs(bench, job, 1);
		bench->now += 20 * SW_NS_PER_S;
		tell(bench, job, 1, SW_RUN_EXITED, 0, "");
		STATE(job, "CD");
		bench->run_count = 0;
		sync_now(bench);
		tick(bench);
		assert_false(job > 3 && knows(bench, job - 3));
	}
}

/* Aim: through bytes and back, the past of the state included. */
static void test_saved(void **state)
{
	struct bench *bench = *state;
	for (int i = 0; i < 6; i++)
		done(bench, i % 2);
	tick(bench);
	submit(bench, 5, ", \"depends\": \"afterok:1\"");
	struct sw_pack pack = {0};
	sw_brain_save(bench->brain, &pack);
	size_t size;
	unsigned char *bytes = sw_pack_take(&pack, &size);
	struct sw_brain *loaded = NULL;
	struct sw_err err = {0};
	bool adopted;
	if (sw_brain_load(&few, bytes, size, &loaded, &adopted, &err) < 0)
		fail_msg("%s: %s", err.fact, err.detail);
	free(bytes);
	assert_int_equal(sw_brain_known_count(loaded), sw_brain_known_count(bench->brain));
	assert_int_equal(sw_brain_job_count(loaded), sw_brain_job_count(bench->brain));
	sw_brain_free(bench->brain);
	bench->brain = loaded;
	done(bench, 0);
	done(bench, 0);
	bench->now += 20 * SW_NS_PER_S;
	assert_true(tick(bench) > 0);
}

/* Aim: numbers can be left out; what comes next has a higher one. */
static void test_skips_numbers(void **state)
{
	struct bench *bench = *state;
	struct sw_brain *brain = NULL;
	assert_int_equal(sw_brain_new(&few, &brain, NULL), 0);
	assert_int_equal(sw_brain_skip_numbers(brain, 4000, NULL), 0);
	uint64_t job = 0;
	static const char body[] = "{\"uid\": 1, \"gid\": 1, \"request\": {\"command\": [\"x\"]}}";
	assert_int_equal(sw_brain_apply(brain, bench->now, SW_RECORD_SUBMIT, body, strlen(body), &job, NULL), 0);
	assert_int_equal(job, 4001);
	assert_int_equal(sw_brain_known_count(brain), 1);
	assert_int_equal(sw_brain_validate(brain, NULL), 0);
	sw_brain_free(brain);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_keeps_some, set_up_few, tear_down),
		cmocka_unit_test_setup_teardown(test_keeps_for_a_time, set_up_few, tear_down),
		cmocka_unit_test_setup_teardown(test_stays_while_needed, set_up_few, tear_down),
		cmocka_unit_test_setup_teardown(test_depends_on_the_past, set_up_few, tear_down),
		cmocka_unit_test_setup_teardown(test_leaves_in_between, set_up_few, tear_down),
		cmocka_unit_test_setup_teardown(test_record_of_another_time, set_up_few, tear_down),
		cmocka_unit_test_setup_teardown(test_array, set_up_few, tear_down),
		cmocka_unit_test_setup_teardown(test_saved, set_up_few, tear_down),
		cmocka_unit_test_setup_teardown(test_skips_numbers, set_up_few, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
