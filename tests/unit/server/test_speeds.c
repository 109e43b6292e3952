/* Jobs that share a GPU: what their agent measured is told beside what was predicted, is learned
 * from once, and outlives the controller. The agent here is a hand that writes syncs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "unit/server/served.h"

static struct served served;
static char slowdowns[160], notes[160], profiles[160];
static int number; /* of the last sync */

/* In the controller's process. */
static void keep_note(void *user, const char *line)
{
	(void)user;
	FILE *file = fopen(notes, "a");
	if (file != NULL) {
		fprintf(file, "%s\n", line);
		fclose(file);
	}
}

static int set_up(void **state)
{
	(void)state;
	served_make(&served);
	snprintf(slowdowns, sizeof slowdowns, "%s/slowdowns.json", served.folder);
	snprintf(notes, sizeof notes, "%s/notes", served.folder);
	snprintf(profiles, sizeof profiles, "%s/profiles.yaml", served.folder);
	served.options.policy = "antman"; /* a second job runs beside the first, and gives way */
	served.options.slowdowns_path = slowdowns;
	served.options.profiles = profiles;
	served.options.on_note = keep_note;
	served_start(&served);
	number = 0;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	served_remove(&served);
	return 0;
}

/* One whole sync of the node's agent; `more` are further fields, with their comma in front. */
static void sync_once(const char *more)
{
	char body[2048];
	int fd = dial(&served);
	snprintf(body, sizeof body,
		 "{\"node\": \"n1\", \"instance\": \"abc\", \"number\": %d, \"have\": 0, \"inventory\": {\"gpus\": [{\"uuid\": \"GPU-a\", "
		 "\"name\": "
		 "\"Card\", \"memory_bytes\": 17179869184, \"link_group\": 0}], \"cpus\": 8, \"memory_bytes\": 34359738368}%s}",
		 ++number, more);
	struct reply reply = ask(fd, "POST", "/v1/agents/sync", NULL, body);
	if (reply.status != 200)
		fail_msg("the sync gave %d: %s", reply.status, reply.body);
	reply_free(&reply);
	close(fd);
}

/* The slowdown of both is known. */
static bool is_measured(void)
{
	bool measured = true;
	for (int id = 1; id <= 2; id++) {
		char path[64];
		snprintf(path, sizeof path, "/v1/jobs/%d", id);
		json_t *job = ask_json(&served, "GET", path, NULL, 200);
		measured = measured && json_is_number(json_object_get(json_object_get(job, "sharing"), "measured"));
		json_decref(job);
	}
	return measured;
}

/* Two jobs of these names on the one GPU, measured alone and beside each other. */
static void share(const char *first, const char *second)
{
	char body[300];
	sync_once("");
	snprintf(body, sizeof body, "{\"name\": \"%s\", \"command\": [\"x\"], \"gpu_memory\": \"2G\", \"preempt\": \"requeue\"}", first);
	assert_int_equal(submit(&served, body), 1);
	snprintf(body, sizeof body, "{\"name\": \"%s\", \"command\": [\"x\"], \"gpu_memory\": \"2G\", \"preempt\": \"requeue\"}", second);
	sync_once(", \"jobs\": [{\"job\": 1, \"epoch\": 1, \"state\": \"running\"}]");
	sync_once(", \"jobs\": [{\"job\": 1, \"epoch\": 1, \"state\": \"running\", \"alone_ns\": 10000000}]");
	assert_int_equal(submit(&served, body), 2);
	sync_once(", \"jobs\": [{\"job\": 1, \"epoch\": 1, \"state\": \"running\", \"alone_ns\": 10000000}, {\"job\": 2, \"epoch\": 1, "
		  "\"state\": "
		  "\"running\"}]");
	expect_state(&served, 2, "R");
	/* What agents say anew is not recorded at once, but they say it again. */
	for (int tries = 0; tries < 600 && !is_measured(); tries++) {
		usleep(100000);
		sync_once(", \"jobs\": [{\"job\": 1, \"epoch\": 1, \"state\": \"running\", \"iteration_ns\": 10600000, \"alone_ns\": "
			  "10000000, "
			  "\"iterations\": 99, \"beside\": [2]}, {\"job\": 2, \"epoch\": 1, \"state\": \"running\", \"iteration_ns\": "
			  "30000000, "
			  "\"alone_ns\": 20000000, \"iterations\": 99, \"beside\": [1]}]");
	}
}

static bool file_has(const char *path, const char *word)
{
	char text[8192] = "";
	FILE *file = fopen(path, "r");
	if (file == NULL)
		return false;
	size_t size = fread(text, 1, sizeof text - 1, file);
	fclose(file);
	text[size] = '\0';
	return strstr(text, word) != NULL;
}

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

/* Lessons may wait for a few seconds until they are taken in. */
static void expect_sets(int count)
{
	for (int tries = 0; tries < 600 && (int)figure(&served, "sharewell_slowdown_sets") != count; tries++)
		usleep(100000);
	assert_int_equal((int)figure(&served, "sharewell_slowdown_sets"), count);
}

static void expect_why(long long id, const char *words)
{
	char path[64];
	snprintf(path, sizeof path, "/v1/jobs/%lld/why", id);
	json_t *why = ask_json(&served, "GET", path, NULL, 200);
	const char *text = json_string_value(json_object_get(why, "why"));
	if (strstr(text, words) == NULL)
		fail_msg("'%s' is not in '%s'", words, text);
	json_decref(why);
}

/* Aim: of jobs with profiles both sides are predicted and measured, in words and as figures; what
 * was learned is in a file and counts once, however the controller ends. */
static void test_predicted_and_measured(void **state)
{
	(void)state;
	share("resnet50", "DeepFM");
	expect_why(1, "shares gpu0 with job 2: predicted 1.0");
	expect_why(1, ", measured 1.06x; job 2: predicted ");
	expect_why(2, ", measured 1.50x; job 1: predicted 1.0");
	json_t *job = ask_json(&served, "GET", "/v1/jobs/1", NULL, 200);
	const json_t *sharing = json_object_get(job, "sharing"), *speed = json_object_get(job, "speed");
	const json_t *other = json_array_get(json_object_get(sharing, "with"), 0);
	assert_true(json_number_value(json_object_get(sharing, "measured")) == 1.06);
	assert_true(json_number_value(json_object_get(sharing, "predicted")) >= 1.0);
	assert_int_equal(json_integer_value(json_object_get(other, "job")), 2);
	assert_true(json_number_value(json_object_get(other, "measured")) == 1.5);
	assert_true(json_number_value(json_object_get(speed, "alone_s")) == 0.01);
	assert_int_equal(json_integer_value(json_array_get(json_object_get(speed, "beside"), 0)), 2);
	json_decref(job);
	expect_sets(2);
	expect_why(2, "x (learned), measured 1.50x; job 1: predicted 1.0");
	served_stop(&served);
	assert_true(file_has(slowdowns, "\"jobs\": [\"resnet50\", \"deepfm\"], \"which\": 0, \"slowdowns\": [1.060]"));
	assert_true(file_has(slowdowns, "\"way\": \"gate\", \"jobs\": [\"resnet50\", \"deepfm\"], \"which\": 1, \"slowdowns\": [1.500]"));
	for (int round = 0; round < 2; round++) {
		served_start(&served);
		expect_sets(2);
		expect_why(1, ", measured 1.06x; job 2: predicted ");
		served_kill(&served); /* the journal is read again, and the file is as it was */
	}
	assert_true(file_has(slowdowns, "\"slowdowns\": [1.060]"));
	assert_int_equal(access(notes, F_OK), -1);
	served_start(&served);
}

/* Aim: without a profile of both nothing is predicted or learned, and that is said. */
static void test_no_profile(void **state)
{
	(void)state;
	share("resnet50", "something");
	expect_why(1,
		   "shares gpu0 with job 2: no profile: not predicted, measured 1.06x; job 2: no profile: not predicted, measured 1.50x");
	json_t *job = ask_json(&served, "GET", "/v1/jobs/2", NULL, 200);
	assert_true(json_is_null(json_object_get(json_object_get(job, "sharing"), "predicted")));
	json_decref(job);
	assert_int_equal((int)figure(&served, "sharewell_slowdown_sets"), 0);
	served_stop(&served);
	assert_int_equal(access(slowdowns, F_OK), -1);
	served_start(&served);
}

/* Aim: the file of what was learned is for people alone: what lies there in its place is
 * not read, and replaced. */
static void test_foreign_file(void **state)
{
	(void)state;
	served_stop(&served);
	write_file(slowdowns, "{\"format\": 1, \"observations\": [{\"way\": \"mps\", ");
	served_start(&served);
	share("resnet50", "deepfm");
	expect_sets(2);
	served_stop(&served);
	assert_true(file_has(slowdowns, "\"slowdowns\": [1.060]"));
	assert_int_equal(access(notes, F_OK), -1);
	served_start(&served);
}

#define STORE(peak) "profiles:\n  - name: \"mine\"\n    command: \"./mine\"\n    runs:\n      - {wall: 61s, busy: 0.5, peak: " peak "}\n"

/* Aim: what was measured of a model by its user is predicted and learned from like a built-in
 * profile, before and after a restart, whatever becomes of the file. */
static void test_own_profile(void **state)
{
	(void)state;
	write_file(profiles, STORE("1G"));
	share("resnet50", "MINE");
	expect_why(1, "shares gpu0 with job 2: predicted 1.");
	expect_why(2, "job 1: predicted 1.");
	expect_sets(2);
	served_stop(&served);
	assert_int_equal(unlink(profiles), 0);
	assert_true(file_has(slowdowns, "\"jobs\": [\"resnet50\", \"mine\"], \"which\": 0, \"slowdowns\": [1.060]"));
	served_start(&served);
	expect_why(1, "shares gpu0 with job 2: predicted 1.");
	expect_sets(2);
}

/* Aim: the model that a job was submitted with is its model, whatever it is called; also after the
 * state was read from a snapshot. */
static void test_model_of_a_job(void **state)
{
	(void)state;
	share("first\", \"model\": \"resnet50", "second\", \"model\": \"deepfm");
	expect_why(1, "shares gpu0 with job 2: predicted 1.0");
	expect_sets(2);
	served_stop(&served);
	assert_true(file_has(slowdowns, "\"jobs\": [\"resnet50\", \"deepfm\"], \"which\": 0, \"slowdowns\": [1.060]"));
	served_start(&served);
	expect_why(1, "shares gpu0 with job 2: predicted 1.0");
}

/* Aim: measured profiles that cannot be read are said once, however many jobs come. */
static void test_damaged_profiles(void **state)
{
	(void)state;
	char text[4096] = "";
	served_stop(&served);
	write_file(profiles, "profiles: [\n");
	served_start(&served);
	for (long long id = 1; id <= 3; id++)
		assert_int_equal(submit(&served, "{\"command\": [\"x\"], \"model\": \"resnet50\"}"), id);
	FILE *file = fopen(notes, "r");
	assert_non_null(file);
	size_t size = fread(text, 1, sizeof text - 1, file);
	fclose(file);
	assert_int_equal(text[size - 1], '\n');
	assert_ptr_equal(strchr(text, '\n'), text + size - 1);
	assert_non_null(strstr(text, "profiles.yaml"));
}

/* Aim: a job has room to spare beyond what was measured of it, but not so much that
 * no GPU is large enough. */
static void test_room_to_spare(void **state)
{
	(void)state;
	static const char job[] = "{\"command\": [\"x\"], \"model\": \"mine\", \"hold\": true}";
	write_file(profiles, STORE("8G"));
	sync_once("");
	assert_int_equal(submit(&served, job), 1);
	write_file(profiles, STORE("15800M"));
	assert_int_equal(submit(&served, job), 2);
	static const long long expected[] = {9663676416, 17179869184};
	for (int id = 1; id <= 2; id++) {
		char path[64];
		snprintf(path, sizeof path, "/v1/jobs/%d", id);
		json_t *view = ask_json(&served, "GET", path, NULL, 200);
		assert_int_equal(json_integer_value(json_object_get(view, "gpu_memory_bytes")), expected[id - 1]);
		json_decref(view);
	}
	write_file(profiles, STORE("17G"));
	json_t *refused = ask_json(&served, "POST", "/v1/jobs", job, 400);
	json_decref(refused);
}

/* Aim: of two that take turns on a GPU neither is said to slow the other down, and
 * nothing is learned from them. */
static void test_turns(void **state)
{
	(void)state;
	json_decref(
		ask_json(&served, "POST", "/v1/policy", "{\"policy\": \"salus\", \"set\": {\"lanes\": \"1\", \"order\": \"fifo\"}}", 200));
	sync_once("");
	for (int id = 1; id <= 2; id++)
		assert_int_equal(
			submit(&served, "{\"name\": \"resnet50\", \"command\": [\"x\"], \"gpu_memory\": \"2G\", \"gpu_floor\": \"1G\"}"),
			id);
	for (int round = 0; round < 2; round++)
		sync_once(", \"jobs\": [{\"job\": 1, \"epoch\": 1, \"state\": \"running\"}, {\"job\": 2, \"epoch\": 1, \"state\": "
			  "\"running\"}]");
	expect_state(&served, 2, "R");
	/* As an agent says that does not know of pauses. */
	sync_once(", \"jobs\": [{\"job\": 1, \"epoch\": 1, \"state\": \"running\", \"iteration_ns\": 10600000, \"alone_ns\": 10000000, "
		  "\"iterations\": 99, "
		  "\"beside\": [2]}, {\"job\": 2, \"epoch\": 1, \"state\": \"running\", \"iteration_ns\": 30000000, \"alone_ns\": "
		  "20000000, \"iterations\": 99, "
		  "\"beside\": [1]}]");
	expect_why(1, "shares gpu0 with job 2: the others are paused: not predicted");
	expect_why(1, "job 2: paused: not predicted");
	assert_int_equal((int)figure(&served, "sharewell_slowdown_sets"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_predicted_and_measured, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_profile, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_foreign_file, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_own_profile, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_model_of_a_job, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_damaged_profiles, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_room_to_spare, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_turns, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
