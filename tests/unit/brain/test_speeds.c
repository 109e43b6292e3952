/* What agents measured of runs and users of models, in the controller's brain: what policies are
 * told of it, and what is kept. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "brain/known.h"
#include "unit/brain/desk.h"

/* What the agent of node "n" says of a job's speed; how many records that makes. */
static size_t say_speed(struct desk *desk, struct sw_sync_speed speed)
{
	size_t before = desk->journal.count;
	desk->runs[0].speed = speed;
	desk_sync_and_drop(desk);
	return desk->journal.count - before;
}

/* Aim: what agents measured of runs is recorded when it is new, not again and not too often, is
 * what policies see, and is forgotten with the run but for the time alone. */
static void test_speeds(void **state)
{
	struct desk *desk = *state;
	struct sw_speed_view view;
	desk_sync_and_drop(desk);
	uint64_t job = desk_submit(desk, "{\"command\": [\"a\"]}");
	desk_say(desk, job, 1, SW_RUN_RUNNING, 0);
	desk_sync_and_drop(desk);
	assert_string_equal(desk_state(desk, job), "R");
	assert_false(sw_brain_speed(desk->brain, job, &view));
	const struct sw_view *seen = sw_engine_view(desk->brain->engine);
	const struct sw_job *engine_job = sw_engine_job(desk->brain->engine, (struct sw_job_id){(uint32_t)(job - 1)});

	struct sw_sync_speed speed = {.iteration_ns = 1000, .alone_ns = 1000, .iterations = 50};
	assert_int_equal(say_speed(desk, speed), 1);
	assert_int_equal(say_speed(desk, speed), 0);
	assert_int_equal(sw_job_speed_milli(seen, engine_job), 1000);
	assert_true(sw_brain_speed(desk->brain, job, &view) && view.slow_milli == 1000 && view.iterations == 50);
	/* A neighbour comes: taken back at once, then measured anew. */
	speed.iteration_ns = 0;
	assert_int_equal(say_speed(desk, speed), 1);
	assert_int_equal(say_speed(desk, speed), 0);
	assert_int_equal(sw_job_speed_milli(seen, engine_job), 0);
	speed.iteration_ns = 1250;
	speed.beside = (struct sw_sync_jobs){{job, 99}, 2}; /* one of which is not known here */
	assert_int_equal(say_speed(desk, speed), 0);	    /* too soon */
	desk_pass_time(desk, 5 * SW_NS_PER_S);
	assert_int_equal(say_speed(desk, speed), 1);
	assert_int_equal(sw_job_speed_milli(seen, engine_job), 800);
	assert_true(sw_brain_speed(desk->brain, job, &view) && view.slow_milli == 1250 && view.beside.count == 1);
	/* The next run of the job was never alone. */
	sw_records records = {0};
	assert_int_equal(sw_brain_propose_change(desk->brain, &alice, SW_RECORD_REQUEUE, "requeue", job, &records, NULL), 0);
	desk_apply(desk, &records, NULL);
	assert_int_equal(say_speed(desk, speed), 0); /* late words about the first */
	desk_say(desk, job, 1, SW_RUN_EXITED, 0);
	desk_sync_and_drop(desk);
	desk_say(desk, job, 2, SW_RUN_RUNNING, 0);
	desk_sync_and_drop(desk);
	assert_int_equal(sw_job_speed_milli(seen, engine_job), 0);
	assert_true(sw_brain_speed(desk->brain, job, &view) && view.iteration_ns == 0 && view.alone_ns == 1000);
	desk_pass_time(desk, 5 * SW_NS_PER_S);
	assert_int_equal(say_speed(desk, (struct sw_sync_speed){.iteration_ns = 2000, .beside = {{job}, 1}}), 1);
	assert_int_equal(say_speed(desk, (struct sw_sync_speed){.iteration_ns = 2000, .beside = {{job}, 1}}), 0);
	assert_int_equal(sw_job_speed_milli(seen, engine_job), 500);
	/* Of others that never were alone, one of its kind takes what it took; one of
	 * another kind has none to ask. */
	static const char *const commands[] = {"{\"command\": [\"b\"]}", "{\"command\": [\"a\"]}"};
	for (int like = 0; like < 2; like++) {
		desk_say(desk, job, like == 0 ? 2 : 1, SW_RUN_EXITED, 0);
		desk_sync_and_drop(desk);
		job = desk_submit(desk, commands[like]);
		desk_say(desk, job, 1, SW_RUN_RUNNING, 0);
		desk_sync_and_drop(desk);
		assert_int_equal(say_speed(desk, (struct sw_sync_speed){.iteration_ns = 4000}), 1);
		assert_true(sw_brain_speed(desk->brain, job, &view) && view.iteration_ns == 4000);
		assert_int_equal(view.alone_ns, like == 0 ? 0 : 1000);
		assert_int_equal(view.slow_milli, like == 0 ? 0 : 4000);
	}
}

/* Aim: a job is known by its model, or where that has no profile or it says none by its name. Under
 * a policy that packs, one that finds no GPU goes beside another if the profiles say that both do
 * well; one whose name says nothing waits, and is told so. */
static void test_jobs_are_packed_by_their_names(void **state)
{
	struct desk *desk = *state;
	sw_records records = {0};
	assert_int_equal(sw_brain_propose_policy(desk->brain, &root, "fifo+pack", NULL, 0, &records, NULL), 0);
	desk_apply(desk, &records, NULL);
	desk_sync_and_drop(desk);
	desk_submit(desk, "{\"command\": [\"a\"], \"name\": \"any\", \"model\": \"data2vec\", \"gpu_memory\": \"20G\"}");
	desk_submit(desk, "{\"command\": [\"a\"], \"name\": \"data2vec\", \"gpu_memory\": \"20G\"}");
	desk_submit(desk, "{\"command\": [\"a\"], \"name\": \"data2vec\", \"model\": \"only mine\", \"gpu_memory\": \"20G\"}");
	desk_submit(desk, "{\"command\": [\"a\"], \"name\": \"my work\", \"gpu_memory\": \"20G\"}");
	desk_sync_and_drop(desk);
	for (uint64_t job = 1; job <= 3; job++)
		desk->runs[job - 1] = (struct sw_sync_run){.id = {job, 1}, .state = SW_RUN_RUNNING, .reason = ""};
	desk->run_count = 3;
	desk_sync_and_drop(desk);
	desk_expect_why(desk, 1, "shares gpu0 with job 3");
	desk_expect_why(desk, 3, "shares gpu0 with job 1");
	desk_expect_why(desk, 4, "its model has no profile yet");
	/* A user that names a model that there is not is told. */
	static const char *const warnings[] = {"", "", "there is no profile of the model 'only mine'; 'sharewell profile' measures one",
					       ""};
	for (uint64_t job = 1; job <= 4; job++) {
		struct sw_job_view view;
		assert_true(sw_brain_job(desk->brain, desk->now, job, &view));
		assert_string_equal(view.warning, warnings[job - 1]);
	}
}

/* As the server proposes it before a job of that model. */
static size_t tell_profile(struct desk *desk, const char *name, const struct sw_profile *profile)
{
	sw_records records = {0};
	assert_int_equal(sw_brain_propose_profile(desk->brain, name, profile, &records, NULL), 0);
	size_t count = records.count;
	desk_apply(desk, &records, NULL);
	return count;
}

/* Aim: what a user measured of a model lets policies pack jobs of it that they would not pack
 * without; it is recorded once, counts when it changes, is found again in a snapshot, and is
 * forgotten when it is taken back. */
static void test_measured_profiles_reach_policies(void **state)
{
	struct desk *desk = *state;
	sw_records records = {0};
	struct sw_profile idle = *sw_profiles_find(desk_config.profiles, "not known");
	idle.name = "only mine";
	idle.busy_milli = 100;
	idle.busy_known = true;
	memset(idle.use_milli, 0, sizeof idle.use_milli);
	assert_int_equal(sw_brain_propose_policy(desk->brain, &root, "fifo+pack", NULL, 0, &records, NULL), 0);
	desk_apply(desk, &records, NULL);
	desk_sync_and_drop(desk);
	static const char job[] = "{\"command\": [\"a\"], \"model\": \"Only Mine\", \"gpu_memory\": \"20G\"}";
	for (int i = 0; i < 3; i++)
		desk_submit(desk, job);
	desk_expect_why(desk, 3, "its model has no profile yet");
	assert_int_equal(tell_profile(desk, "Only Mine", &idle), 1);
	assert_int_equal(tell_profile(desk, "Only Mine", &idle), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(sw_brain_propose_change(desk->brain, &alice, SW_RECORD_CANCEL, "cancel", 1 + (uint64_t)i, &records, NULL),
				 0);
		desk_apply(desk, &records, NULL);
	}
	desk_sync_and_drop(desk);
	for (uint64_t i = 0; i < 3; i++)
		desk->runs[i] = (struct sw_sync_run){.id = {desk_submit(desk, job), 1}, .state = SW_RUN_RUNNING, .reason = ""};
	desk->run_count = 3;
	desk_sync_and_drop(desk);
	desk_expect_why(desk, 6, "shares gpu");

	struct sw_pack out = {0};
	struct sw_brain *loaded = NULL;
	bool adopted;
	sw_brain_save(desk->brain, &out);
	assert_int_equal(sw_brain_load(&desk_config, out.bytes, out.size, &loaded, &adopted, NULL), 0);
	sw_pack_release(&out);
	const struct sw_profile *known = sw_profiles_find(loaded->profiles, "only mine");
	assert_true(known->is_own && known->busy_milli == 100 && known->busy_known);
	assert_true(sw_engine_job(loaded->engine, (struct sw_job_id){5})->model == known->number);
	sw_brain_free(loaded);

	idle.busy_milli = 1000;
	assert_int_equal(tell_profile(desk, "Only Mine", &idle), 1);
	assert_int_equal(sw_profiles_find(desk->brain->profiles, "only mine")->busy_milli, 1000);
	assert_int_equal(tell_profile(desk, "Only Mine", NULL), 1);
	assert_int_equal(tell_profile(desk, "Only Mine", NULL), 0);
	assert_int_equal(tell_profile(desk, "resnet50", NULL), 0);
	assert_true(sw_profiles_find(desk->brain->profiles, "only mine")->is_default);
	/* Of a list of jobs of one model there is one record. */
	for (int i = 0; i < 3; i++)
		assert_int_equal(sw_brain_propose_profile(desk->brain, "Only Mine", &idle, &records, NULL), 0);
	assert_int_equal(records.count, 1);
	sw_records_clear(&records);
}

/* The speed that policies are told for the first of two jobs on one GPU. */
static uint32_t told(const struct desk *desk, uint64_t job, uint64_t beside)
{
	const struct sw_engine *engine = desk->brain->engine;
	const struct sw_job *jobs[] = {sw_engine_job(engine, (struct sw_job_id){(uint32_t)(job - 1)}),
				       sw_engine_job(engine, (struct sw_job_id){(uint32_t)(beside - 1)})};
	uint32_t speeds[2] = {0};
	assert_true(sw_predict_together(sw_engine_view(engine), jobs, 2, speeds));
	return speeds[0];
}

/* Aim: slowdowns that were measured beside others correct what policies are told, several at a time
 * and not at every record; people are told the same; a brain that was saved goes on alike. */
static void test_slowdowns_reach_policies(void **state)
{
	struct desk *desk = *state;
	sw_records records = {0};
	assert_int_equal(sw_brain_propose_policy(desk->brain, &root, "fifo+pack", NULL, 0, &records, NULL), 0);
	desk_apply(desk, &records, NULL);
	desk_sync_and_drop(desk);
	for (uint64_t i = 0; i < 3; i++)
		desk->runs[i] = (struct sw_sync_run){
			.id = {desk_submit(desk, "{\"command\": [\"a\"], \"name\": \"data2vec\", \"gpu_memory\": \"20G\"}"), 1},
			.state = SW_RUN_RUNNING,
			.reason = "",
			.speed = {.alone_ns = 1000}};
	desk->run_count = 3;
	desk_sync_and_drop(desk);
	desk_sync_and_drop(desk); /* what is said of a run counts once it is known to run */
	desk_expect_why(desk, 3, "shares gpu0 with job 1");
	uint32_t before = told(desk, 1, 3), once;
	desk_pass_time(desk, 10 * SW_NS_PER_S);
	/* Twice, of either side, with much the same outcome: believed. The first is taken in at
	 * once, what follows some seconds later, without another word. */
	desk->runs[0].speed = (struct sw_sync_speed){.alone_ns = 1000, .iteration_ns = 2000, .iterations = 9, .beside = {{3}, 1}};
	desk_sync_and_drop(desk);
	assert_int_equal(desk->brain->lesson_count, 0);
	once = told(desk, 1, 3);
	assert_true(once < before);
	desk->runs[2].speed = (struct sw_sync_speed){.alone_ns = 1000, .iteration_ns = 2050, .iterations = 9, .beside = {{1}, 1}};
	desk_sync_and_drop(desk);
	assert_int_equal(desk->brain->lesson_count, 1);
	assert_int_equal(told(desk, 1, 3), once);

	struct sw_pack out = {0};
	struct desk loaded = *desk;
	bool adopted;
	sw_brain_save(desk->brain, &out);
	assert_int_equal(sw_brain_load(&desk_config, out.bytes, out.size, &loaded.brain, &adopted, NULL), 0);
	sw_pack_release(&out);
	assert_int_equal(told(&loaded, 1, 3), once);

	assert_true(sw_brain_next(desk->brain) <= desk->now + 5 * SW_NS_PER_S);
	desk_pass_time(desk, 5 * SW_NS_PER_S);
	assert_int_equal(desk->brain->lesson_count, 0);
	uint32_t twice = told(desk, 1, 3);
	assert_true(twice < once && twice > 400);
	struct sw_learn_answer answer;
	assert_null(sw_brain_predict(desk->brain, 1, (const uint64_t[]){3}, 1, &answer));
	assert_int_equal((1000000 + answer.slow_milli / 2) / answer.slow_milli, twice);
	assert_int_equal(answer.times, 2);

	const struct kept *last = &desk->journal.items[desk->journal.count - 1];
	assert_int_equal(sw_brain_apply(loaded.brain, last->at, last->record.kind, last->record.body, last->record.size, NULL, NULL), 0);
	assert_int_equal(told(&loaded, 1, 3), twice);
	sw_brain_free(loaded.brain);
}

/* Aim: measured profiles are bounded; where there is no room those go that no living job needs, and
 * never what is built in. */
static void test_measured_profiles_are_bounded(void **state)
{
	struct desk *desk = *state;
	struct sw_profile idle = *sw_profiles_find(desk_config.profiles, "resnet50");
	char name[24];
	for (unsigned i = 0; i <= SW_BRAIN_PROFILES; i++) {
		snprintf(name, sizeof name, "p%u", i);
		idle.name = name;
		assert_int_equal(tell_profile(desk, name, &idle), 1);
		if (i == 7)
			desk_submit(desk, "{\"command\": [\"a\"], \"model\": \"p7\"}");
	}
	assert_true(sw_profiles_find(desk->brain->profiles, "p7")->is_own);
	assert_true(sw_profiles_find(desk->brain->profiles, name)->is_own);
	assert_true(sw_profiles_find(desk->brain->profiles, "p8")->is_default);
	assert_false(sw_profiles_find(desk->brain->profiles, "resnet50")->is_default);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DESK_TEST(test_jobs_are_packed_by_their_names),	  DESK_TEST(test_speeds),
		DESK_TEST(test_measured_profiles_reach_policies), DESK_TEST(test_slowdowns_reach_policies),
		DESK_TEST(test_measured_profiles_are_bounded),
	};
	return cmocka_run_group_tests(tests, desk_load_profiles, desk_unload_profiles);
}
