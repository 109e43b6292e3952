/* What agent and controller say to each other: nothing is lost on the way, and nonsense is
 * named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/sync.h"

static const char *gpu_items[] = {"GPU-a", "GPU-b", NULL};
static const char *argv_items[] = {"python", "train.py", "--name=\"x\"\n", NULL};
static const char *env_items[] = {"HOME=/home/u", "EMPTY=", NULL};

static struct sw_run_spec full_spec(void)
{
	struct sw_run_spec spec;
	sw_run_spec_defaults(&spec);
	spec.name = "großer Lauf";
	spec.argv = (struct sw_texts){argv_items, 3};
	spec.env = (struct sw_texts){env_items, 2};
	spec.workdir = "/home/u";
	spec.uid = 1000;
	spec.gid = 100;
	spec.umask = 077;
	spec.stdout_path = "/home/u/out";
	spec.stderr_path = "err";
	spec.append = true;
	spec.log_limit_bytes = 12345678;
	spec.time_limit_ms = 3600000;
	spec.stop_signal = 10;
	spec.grace_ms = 0;
	spec.warn_signal = 12;
	spec.warn_ms = 60000;
	spec.suspend = SW_SUSPEND_NONE;
	spec.cpus = 8;
	spec.memory_bytes = UINT64_C(1) << 36;
	spec.open_files = 4096;
	spec.core_bytes = 1;
	spec.slurm_env = true;
	spec.gpu_memory_bytes = UINT64_C(1) << 34;
	spec.opportunistic = true;
	spec.bare_gpu = true;
	return spec;
}

static void assert_same_texts(const struct sw_texts *a, const struct sw_texts *b)
{
	assert_int_equal(a->count, b->count);
	for (size_t i = 0; i < a->count; i++)
		assert_string_equal(a->items[i], b->items[i]);
	assert_null(a->items[a->count]);
}

static void assert_same_spec(const struct sw_run_spec *a, const struct sw_run_spec *b)
{
	assert_string_equal(a->name, b->name);
	assert_same_texts(&a->argv, &b->argv);
	assert_same_texts(&a->env, &b->env);
	assert_string_equal(a->workdir, b->workdir);
	assert_string_equal(a->stdout_path, b->stdout_path);
	assert_string_equal(a->stderr_path, b->stderr_path);
	/* The numbers: everything, once the pointers are made equal. */
	struct sw_run_spec left = *a, right = *b;
	left.name = right.name;
	left.argv = right.argv;
	left.env = right.env;
	left.workdir = right.workdir;
	left.stdout_path = right.stdout_path;
	left.stderr_path = right.stderr_path;
	assert_int_equal(left.uid, right.uid);
	assert_int_equal(left.gid, right.gid);
	assert_int_equal(left.umask, right.umask);
	assert_int_equal(left.append, right.append);
	assert_true(left.log_limit_bytes == right.log_limit_bytes && left.time_limit_ms == right.time_limit_ms);
	assert_true(left.stop_signal == right.stop_signal && left.grace_ms == right.grace_ms);
	assert_true(left.warn_signal == right.warn_signal && left.warn_ms == right.warn_ms && left.suspend == right.suspend);
	assert_true(left.cpus == right.cpus && left.memory_bytes == right.memory_bytes && left.open_files == right.open_files);
	assert_true(left.core_bytes == right.core_bytes && left.slurm_env == right.slurm_env);
	assert_true(left.gpu_memory_bytes == right.gpu_memory_bytes && left.opportunistic == right.opportunistic);
	assert_int_equal(left.bare_gpu, right.bare_gpu);
}

/* Of a GPU, of a run without one, and of a run on a GPU: every figure has its own value. */
static struct sw_sync_sample samples[] = {
	{.at_ns = 3, .gpu = "GPU-a", .memory_bytes = 4, .busy_milli = 1000, .power_mw = 700000, .temperature_c = -3, .processes = 2},
	{.at_ns = 3, .has_run = true, .run = {7, 2}, .memory_bytes = 8},
	{.at_ns = 3,
	 .gpu = "GPU-a",
	 .has_run = true,
	 .run = {7, 2},
	 .limit_bytes = INT64_MAX,
	 .host_bytes = 12,
	 .outside = 3,
	 .iteration_ns = 312000000,
	 .runtime = true,
	 .suspended = true,
	 .moving = true,
	 .charged_bytes = 13,
	 .fixed_bytes = 14,
	 .peak_bytes = 15,
	 .floor_bytes = 16,
	 .iterations = 17,
	 .launches = 18,
	 .share_milli = 19,
	 .yields = true,
	 .watched = true},
};

/* A sync with everything in it comes back as it was. */
static void test_sync_round_trip(void **state)
{
	(void)state;
	struct sw_sync_gpu gpus[] = {{"GPU-a", "H100", UINT64_C(80) << 30, 1}, {"GPU-b", "", 0, 0}};
	struct sw_sync_inventory inventory = {gpus, 2, 64, UINT64_C(1) << 39};
	struct sw_sync_run runs[] = {
		{.id = {7, 2}, .state = SW_RUN_RUNNING, .pid = 4321, .started_at_ns = 17, .reason = "", .log_bytes = 99},
		{.id = {8, 1},
		 .state = SW_RUN_EXITED,
		 .code = 255,
		 .signal = 9,
		 .started_at_ns = 1,
		 .ended_at_ns = INT64_MAX,
		 .reason = SW_REASON_LEASE,
		 .detail = "too long",
		 .failure = "gpu-oom",
		 .failure_line = "CUDA out of memory",
		 .max_rss_bytes = 5,
		 .cpu_ns = 6,
		 .speed = {.iteration_ns = 7, .alone_ns = INT64_MAX, .iterations = 8, .beside = {{3, SW_SYNC_JOB_MAX}, 2}}},
	};
	struct sw_sync sync = {
		.node = "n1",
		.instance = "abc",
		.number = 12,
		.have = 5,
		.inventory = &inventory,
		.runs = runs,
		.run_count = 2,
		.samples = samples,
		.sample_count = 3,
		.looked = true,
		.shut = (struct sw_sync_shut[]){{"GPU-a", SW_SHUT_STRANGER, 5, NULL}, {"GPU-b", SW_SHUT_SILENT, INT64_MAX, "no answer"}},
		.shut_count = 2,
		.strangers = (struct sw_sync_stranger[]){{"GPU-a", 4711, "alice", "python", UINT64_C(20) << 30, 5}, {.gpu = "GPU-a"}},
		.stranger_count = 2};
	char *text = NULL;
	size_t size;
	assert_int_equal(sw_sync_encode(&sync, &text, &size, NULL), 0);
	assert_int_equal(size, strlen(text));
	struct sw_sync *back = NULL;
	struct sw_err err = {0};
	assert_int_equal(sw_sync_decode(text, size, &back, &err), 0);
	assert_string_equal(back->node, "n1");
	assert_string_equal(back->instance, "abc");
	assert_true(back->number == 12 && back->have == 5 && back->run_count == 2 && back->sample_count == 3);
	assert_true(back->inventory->gpu_count == 2 && back->inventory->cpus == 64 && back->inventory->memory_bytes == UINT64_C(1) << 39);
	assert_string_equal(back->inventory->gpus[0].uuid, "GPU-a");
	assert_true(back->inventory->gpus[0].memory_bytes == UINT64_C(80) << 30 && back->inventory->gpus[0].link_group == 1);
	assert_true(back->runs[0].id.job == 7 && back->runs[0].id.epoch == 2 && back->runs[0].state == SW_RUN_RUNNING);
	assert_true(back->runs[0].pid == 4321 && back->runs[0].log_bytes == 99);
	assert_string_equal(back->runs[0].reason, "");
	assert_null(back->runs[0].detail);
	assert_true(back->runs[1].code == 255 && back->runs[1].signal == 9 && back->runs[1].ended_at_ns == INT64_MAX);
	assert_true(back->runs[1].max_rss_bytes == 5 && back->runs[1].cpu_ns == 6);
	const struct sw_sync_speed *speed = &back->runs[1].speed;
	assert_true(speed->iteration_ns == 7 && speed->alone_ns == INT64_MAX && speed->iterations == 8);
	assert_true(speed->beside.count == 2 && speed->beside.items[0] == 3 && speed->beside.items[1] == SW_SYNC_JOB_MAX);
	assert_true(back->runs[0].speed.iteration_ns == 0 && back->runs[0].speed.beside.count == 0);
	assert_string_equal(back->runs[1].reason, SW_REASON_LEASE);
	assert_string_equal(back->runs[1].detail, "too long");
	assert_string_equal(back->runs[1].failure, "gpu-oom");
	assert_string_equal(back->runs[1].failure_line, "CUDA out of memory");
	assert_null(back->runs[1].failure_path);
	assert_null(back->runs[0].failure);
	assert_string_equal(back->samples[0].gpu, "GPU-a");
	assert_true(!back->samples[0].has_run && back->samples[0].temperature_c == -3 && back->samples[0].busy_milli == 1000);
	assert_null(back->samples[1].gpu);
	assert_true(back->samples[1].has_run && back->samples[1].run.job == 7 && back->samples[1].memory_bytes == 8);
	assert_true(back->samples[1].limit_bytes == 0 && back->samples[1].host_bytes == 0 && back->samples[1].iteration_ns == 0);
	assert_string_equal(back->samples[2].gpu, "GPU-a");
	assert_true(back->samples[2].has_run && back->samples[2].limit_bytes == INT64_MAX && back->samples[2].host_bytes == 12 &&
		    back->samples[2].outside == 3);
	assert_true(back->samples[2].iteration_ns == 312000000);
	const struct sw_sync_sample *seen = &back->samples[2];
	assert_true(seen->runtime && seen->suspended && seen->moving && seen->yields && seen->watched);
	assert_true(seen->charged_bytes == 13 && seen->fixed_bytes == 14 && seen->peak_bytes == 15 && seen->floor_bytes == 16);
	assert_true(seen->iterations == 17 && seen->launches == 18 && seen->share_milli == 19);
	assert_true(back->looked && back->shut_count == 2 && back->stranger_count == 2);
	assert_true(back->shut[0].why == SW_SHUT_STRANGER && back->shut[0].since_ns == 5 && back->shut[0].detail == NULL);
	assert_true(back->shut[1].why == SW_SHUT_SILENT && back->shut[1].since_ns == INT64_MAX);
	assert_string_equal(back->shut[1].gpu, "GPU-b");
	assert_string_equal(back->shut[1].detail, "no answer");
	assert_true(back->strangers[0].pid == 4711 && back->strangers[0].memory_bytes == UINT64_C(20) << 30 &&
		    back->strangers[0].since_ns == 5);
	assert_string_equal(back->strangers[0].user, "alice");
	assert_string_equal(back->strangers[0].program, "python");
	assert_true(back->strangers[1].pid == 0 && back->strangers[1].user == NULL && back->strangers[1].program == NULL);
	sw_sync_free(back);
	free(text);
}

/* An answer with a full spec comes back as it was; so does an order for a supervisor. */
static void test_answer_round_trip(void **state)
{
	(void)state;
	struct sw_run_spec spec = full_spec();
	struct sw_want wants[] = {
		{.id = {1, 1},
		 .want = SW_WANT_RUN,
		 .gpus = {gpu_items, 2},
		 .spec = &spec,
		 .grace_ms = -1,
		 .gpu_limit_bytes = UINT64_C(10) << 30,
		 .gpu_share_milli = 300,
		 .upgraded = true,
		 .paused = true},
		{.id = {2, 3}, .want = SW_WANT_STOP, .grace_ms = 0, .signal = 2, .why = "by user ann (cancel)"},
		{.id = {SW_SYNC_JOB_MAX, UINT32_MAX}, .want = SW_WANT_FORGET, .grace_ms = -1},
	};
	struct sw_answer_message answer = {.version = 9, .lease_ms = 30000, .retry_ms = 1000, .wants = wants, .want_count = 3};
	char *text = NULL;
	size_t size;
	assert_int_equal(sw_answer_encode(&answer, &text, &size, NULL), 0);
	struct sw_answer_message *back = NULL;
	assert_int_equal(sw_answer_decode(text, size, &back, NULL), 0);
	assert_true(back->version == 9 && back->lease_ms == 30000 && back->retry_ms == 1000 && back->want_count == 3);
	assert_same_texts(&back->wants[0].gpus, &wants[0].gpus);
	assert_same_spec(back->wants[0].spec, &spec);
	assert_true(back->wants[1].want == SW_WANT_STOP && back->wants[1].grace_ms == 0 && back->wants[1].signal == 2);
	assert_null(back->wants[1].spec);
	assert_true(back->wants[0].gpu_limit_bytes == UINT64_C(10) << 30 && back->wants[0].gpu_share_milli == 300);
	assert_true(back->wants[1].gpu_limit_bytes == 0 && back->wants[1].gpu_share_milli == 0);
	assert_null(back->wants[0].why);
	assert_string_equal(back->wants[1].why, "by user ann (cancel)");
	assert_true(back->wants[0].upgraded && !back->wants[1].upgraded);
	assert_true(back->wants[0].paused && !back->wants[1].paused);
	assert_true(back->wants[2].id.job == SW_SYNC_JOB_MAX && back->wants[2].id.epoch == UINT32_MAX);
	sw_answer_free(back);
	free(text);

	struct sw_run_order order = {.node = "n", .lease_boot_ns = 5, .cgroup = "/sys/x", .want = wants[0]}, *again = NULL;
	assert_int_equal(sw_run_order_encode(&order, &text, &size, NULL), 0);
	assert_int_equal(sw_run_order_decode(text, size, &again, NULL), 0);
	assert_string_equal(again->cgroup, "/sys/x");
	assert_true(again->lease_boot_ns == 5 && again->want.id.job == 1);
	assert_true(again->want.gpu_limit_bytes == UINT64_C(10) << 30 && again->want.gpu_share_milli == 300);
	assert_same_spec(again->want.spec, &spec);
	sw_run_order_free(again);
	free(text);
}

/* A copy of a wish stays whole when the original is gone. */
static void test_copy(void **state)
{
	(void)state;
	struct sw_run_spec spec = full_spec();
	struct sw_want want = {.id = {1, 1}, .gpus = {gpu_items, 2}, .spec = &spec, .grace_ms = 7, .why = "a reason"}, *copy = NULL,
		       *bare = NULL;
	assert_int_equal(sw_want_copy(&want, &copy), 0);
	assert_true(copy->spec != &spec && copy->gpus.items != gpu_items && copy->grace_ms == 7);
	assert_same_spec(copy->spec, &spec);
	assert_true(copy->why != want.why && strcmp(copy->why, "a reason") == 0);
	assert_same_texts(&copy->gpus, &want.gpus);
	free(copy);
	assert_int_equal(sw_want_copy(&(struct sw_want){.id = {2, 2}}, &bare), 0);
	assert_true(bare->spec == NULL && bare->gpus.count == 0 && bare->id.job == 2);
	free(bare);
}

/* What is left out has the documented defaults, and fields of a later version are no trouble. */
static void test_defaults_and_unknown_fields(void **state)
{
	(void)state;
	static const char text[] =
		"{\"version\":1,\"lease_ms\":1,\"news\":{\"a\":[1.5]},\"wants\":[{\"job\":1,\"epoch\":0,\"want\":\"run\",\"moon\":true,"
		"\"spec\":{\"argv\":[\"true\"],\"workdir\":\"/\",\"uid\":0,\"gid\":0,\"name\":null,\"colour\":\"red\"}}]}";
	struct sw_answer_message *answer = NULL;
	struct sw_err err = {0};
	assert_int_equal(sw_answer_decode(text, sizeof text - 1, &answer, &err), 0);
	struct sw_run_spec preset;
	sw_run_spec_defaults(&preset);
	const struct sw_run_spec *spec = answer->wants[0].spec;
	assert_null(spec->name);
	assert_true(spec->umask == 022 && spec->stop_signal == 15 && spec->grace_ms == preset.grace_ms && spec->env.count == 0);
	assert_true(spec->log_limit_bytes == preset.log_limit_bytes && answer->wants[0].grace_ms == -1);
	sw_answer_free(answer);
}

/* The reason of a wish is for people: one that cannot be read, or is too long, is left
 * out, and the wish stands. */
static void test_reason_spoils_nothing(void **state)
{
	(void)state;
	char text[1000], why[SW_SYNC_WHY_MAX + 2];
	for (size_t size = SW_SYNC_WHY_MAX; size <= SW_SYNC_WHY_MAX + 1; size++) {
		memset(why, 'x', size);
		why[size] = '\0';
		snprintf(text, sizeof text,
			 "{\"version\":1,\"lease_ms\":1,\"wants\":[{\"job\":1,\"epoch\":1,\"want\":\"suspend\",\"deep\":true,\"why\":\"%"
			 "s\"},"
			 "{\"job\":2,\"epoch\":1,\"want\":\"suspend\",\"deep\":true,\"why\":{\"a\":1}}]}",
			 why);
		struct sw_answer_message *answer = NULL;
		assert_int_equal(sw_answer_decode(text, strlen(text), &answer, NULL), 0);
		assert_true(answer->want_count == 2 && answer->unread_count == 0 && answer->wants[0].deep && answer->wants[1].deep);
		assert_null(answer->wants[1].why);
		if (size == SW_SYNC_WHY_MAX)
			assert_string_equal(answer->wants[0].why, why);
		else
			assert_null(answer->wants[0].why);
		sw_answer_free(answer);
	}
}

static void refuse_sync(const char *text, const char *complaint)
{
	struct sw_sync *sync = (void *)1;
	struct sw_err err = {0};
	int r = sw_sync_decode(text, strlen(text), &sync, &err);
	assert_int_equal(r, SW_EINPUT);
	assert_ptr_equal(sync, (void *)1);
	assert_string_equal(err.fact, "cannot read the sync");
	if (strstr(err.detail, complaint) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", err.detail, complaint);
}

/* Wrong syncs are refused, and the complaint names the place and what was expected there. */
static void test_bad_syncs(void **state)
{
	(void)state;
	refuse_sync("", "not JSON");
	refuse_sync("{\"node\":\"n\",\"node\":\"m\"}", "not JSON");
	refuse_sync("{\"jobs\":[],\"node\":\"m\",\"jobs\":[]}", "'jobs' twice");
	refuse_sync("{\"jobs\":null,\"node\":\"m\",\"jobs\":[]}", "'jobs' twice");
	refuse_sync("{\"inventory\":null,\"inventory\":{}}", "'inventory' twice");
	refuse_sync("{\"node\":\"n\"", "ends too soon");
	refuse_sync("{\"node\":\"n\"} x", "not JSON: line 1, column 14");
	refuse_sync("{\"node\":\"n\",\n\"jobs\":[1 2]}", "line 2");
	refuse_sync("{\"node\":\"n\",\"jobs\":[{},{\"job\":1,}]}", "'jobs[1]'");
	refuse_sync("[1]", "it is a list, expected an object");
	refuse_sync("{}", "'node' is missing, expected a text of 1 to 255 bytes");
	refuse_sync("{\"node\":\"\",\"instance\":\"i\",\"number\":1}", "'node' is ''");
	refuse_sync("{\"node\":\"n\",\"instance\":\"i\",\"number\":0}", "'number' is 0, expected a whole number from 1 to");
	refuse_sync("{\"node\":\"n\",\"instance\":\"i\",\"number\":1.5}", "'number' is 1.5");
	refuse_sync("{\"node\":\"n\",\"instance\":\"i\",\"number\":1,\"jobs\":{}}", "'jobs' is an object, expected a list");
}

static void assert_says(const char *text, const char *complaint)
{
	if (text == NULL || strstr(text, complaint) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", text != NULL ? text : "(nothing)", complaint);
}

/* A sync whose runs are job 5, which is in order, and this one. The caller frees. */
static struct sw_sync *read_beside(const char *run)
{
	char text[2000];
	snprintf(text, sizeof text,
		 "{\"node\":\"n\",\"instance\":\"i\",\"number\":1,\"jobs\":[%s,{\"job\":5,\"epoch\":2,\"state\":\"running\",\"pid\":6}]}",
		 run);
	struct sw_sync *sync = NULL;
	struct sw_err err = {0};
	assert_int_equal(sw_sync_decode(text, strlen(text), &sync, &err), 0);
	assert_int_equal(err.code, 0);
	const struct sw_sync_run *last = &sync->runs[sync->run_count - 1];
	assert_true(last->id.job == 5 && last->id.epoch == 2 && last->pid == 6 && last->unread == NULL);
	return sync;
}

static void spoil_run(const char *run, bool has_id, const char *complaint)
{
	struct sw_sync *sync = read_beside(run);
	assert_true(sync->run_count == 1 && sync->unread_count == 1);
	assert_int_equal(sync->unread[0].has_id, has_id);
	assert_int_equal(sync->unread[0].id.job, has_id ? 1 : 0);
	assert_says(sync->unread[0].why, complaint);
	sw_sync_free(sync);
}

/* A run whose id or state cannot be read is named, with its id where that could be
 * read; the others are heard. */
static void test_runs_one_by_one(void **state)
{
	(void)state;
	spoil_run("3", false, "'jobs[0]' is 3, expected an object");
	spoil_run("{\"job\":1,\"epoch\":-1,\"state\":\"exited\"}", false,
		  "'jobs[0].epoch' is -1, expected a whole number from 0 to 4294967295");
	spoil_run("{\"job\":9007199254740992,\"epoch\":1,\"state\":\"exited\"}", false, "'jobs[0].job' is 9007199254740992");
	spoil_run("{\"job\":1,\"epoch\":1,\"state\":\"sleeping\"}", true,
		  "'jobs[0].state' is 'sleeping', expected starting, running, suspended or exited");
	spoil_run("{\"job\":1,\"epoch\":1}", true, "'jobs[0].state' is missing");
	/* Twice: the first stands. */
	struct sw_sync *sync = read_beside("{\"job\":1,\"epoch\":1,\"state\":\"exited\"},{\"job\":1,\"epoch\":1,\"state\":\"running\"}");
	assert_true(sync->run_count == 2 && sync->runs[0].id.job == 1 && sync->runs[0].state == SW_RUN_EXITED);
	assert_true(sync->unread_count == 1 && sync->unread[0].has_id && sync->unread[0].id.job == 1);
	assert_says(sync->unread[0].why, "'jobs' has job 1, epoch 1 twice");
	sw_sync_free(sync);
}

/* What else of a run cannot be read is as if it were not there. */
static void test_readable_part(void **state)
{
	(void)state;
	static const struct {
		const char *more, *complaint;
	} cases[] = {
		{"\"alone_ns\":-1", "'jobs[0].alone_ns' is -1"},
		{"\"beside\":[1,-2]", "'jobs[0].beside' is a list of 2, expected a list of at most 8 numbers of jobs"},
		{"\"beside\":[1,2,3,4,5,6,7,8,9]", "'jobs[0].beside' is a list of 9"},
		{"\"beside\":5", "'jobs[0].beside' is 5"},
		{"\"detail\":[],\"code\":256", "'jobs[0].code' is 256"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char run[200];
		snprintf(run, sizeof run, "{\"job\":1,\"epoch\":1,\"state\":\"running\",\"log_bytes\":8,%s}", cases[i].more);
		struct sw_sync *sync = read_beside(run);
		assert_true(sync->run_count == 2 && sync->unread_count == 0);
		assert_true(sync->runs[0].log_bytes == 8 && sync->runs[0].speed.beside.count == 0 && sync->runs[0].speed.alone_ns == 0);
		assert_says(sync->runs[0].unread, cases[i].complaint);
		assert_string_equal(sync->runs[0].reason, "");
		sw_sync_free(sync);
	}
}

/* An end whose code, signal or reason cannot be read is an end, and never a good one; one that only
 * lacks words for people is as it was. */
static void test_unreadable_end(void **state)
{
	(void)state;
	static const char *const ends[] = {"\"code\":256", "\"code\":\"0\"", "\"signal\":65", "\"reason\":7", "\"code\":0.0,\"signal\":0"};
	for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
		char run[200];
		snprintf(run, sizeof run, "{\"job\":1,\"epoch\":1,\"state\":\"exited\",%s}", ends[i]);
		struct sw_sync *sync = read_beside(run);
		assert_true(sync->runs[0].state == SW_RUN_EXITED && sync->runs[0].code == 125 && sync->runs[0].signal == 0);
		assert_string_equal(sync->runs[0].reason, SW_REASON_REPORT);
		assert_says(sync->runs[0].detail, "'jobs[0].");
		sw_sync_free(sync);
	}
	struct sw_sync *sync = read_beside("{\"job\":1,\"epoch\":1,\"state\":\"exited\",\"code\":3,\"failure_line\":1}");
	assert_true(sync->runs[0].code == 3 && sync->runs[0].failure_line == NULL);
	assert_string_equal(sync->runs[0].reason, "");
	sw_sync_free(sync);
}

/* An inventory that cannot be read hides no run; samples that cannot be read are dropped. */
static void test_unreadable_rest(void **state)
{
	(void)state;
	static const char text[] =
		"{\"node\":\"n\",\"instance\":\"i\",\"number\":1,\"jobs\":[{\"job\":1,\"epoch\":1,\"state\":\"running\"}],"
		"\"inventory\":{\"cpus\":3,\"gpus\":[{\"uuid\":5}]},"
		"\"samples\":[{\"job\":1},{\"at_ns\":4},{\"iteration_ns\":-1}]}";
	struct sw_sync *sync = NULL;
	assert_int_equal(sw_sync_decode(text, sizeof text - 1, &sync, NULL), 0);
	assert_null(sync->inventory);
	assert_says(sync->inventory_unread, "'inventory.gpus[0].uuid' is 5, expected a text");
	assert_true(sync->run_count == 1 && sync->unread_count == 0 && sync->sample_count == 1 && sync->samples[0].at_ns == 4);
	sw_sync_free(sync);
}

static void refuse_answer(const char *text, const char *complaint)
{
	struct sw_answer_message *answer = (void *)1;
	struct sw_err err = {0};
	assert_int_equal(sw_answer_decode(text, strlen(text), &answer, &err), SW_EINPUT);
	assert_ptr_equal(answer, (void *)1);
	if (strstr(err.detail, complaint) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", err.detail, complaint);
}

/* An answer that says nothing for certain is refused as a whole: half a list of wishes would stop
 * runs that are not to be stopped. */
static void test_bad_answers(void **state)
{
	(void)state;
	refuse_answer("{\"version\":0,\"lease_ms\":1}", "'version' is 0");
	refuse_answer("{\"version\":1}", "'lease_ms' is missing");
	refuse_answer("{\"version\":1,\"lease_ms\":86400001}", "'lease_ms' is 86400001");
	refuse_answer("{\"version\":1,\"lease_ms\":1}", "'wants' is missing, expected a list");
	refuse_answer("{\"version\":1,\"lease_ms\":1,\"wants\":7}", "'wants' is 7, expected a list");
	refuse_answer("{\"version\":1,\"lease_ms\":1,\"wants\":[{\"job\":1,\"want\":\"a\\u0000b\"}]}", "not JSON");
	struct sw_run_order *order = NULL;
	struct sw_err err = {0};
	static const char bare[] = "{\"node\":\"n\",\"lease_boot_ns\":1,\"job\":1,\"epoch\":1,\"want\":\"run\"}";
	assert_int_equal(sw_run_order_decode(bare, sizeof bare - 1, &order, &err), SW_EINPUT);
	assert_string_equal(err.detail, "'spec' is missing, expected an object");
}

/* Beside a wish that is in order. The caller frees. */
static struct sw_answer_message *read_wish(const char *want)
{
	char text[2000];
	snprintf(text, sizeof text, "{\"version\":1,\"lease_ms\":1,\"wants\":[%s,{\"job\":5,\"epoch\":2,\"want\":\"stop\",\"signal\":9}]}",
		 want);
	struct sw_answer_message *answer = NULL;
	struct sw_err err = {0};
	assert_int_equal(sw_answer_decode(text, strlen(text), &answer, &err), 0);
	const struct sw_want *last = &answer->wants[answer->want_count - 1];
	assert_true(last->id.job == 5 && last->id.epoch == 2 && last->want == SW_WANT_STOP && last->signal == 9);
	return answer;
}

static void spoil_wish(const char *want, bool has_id, const char *complaint)
{
	struct sw_answer_message *answer = read_wish(want);
	assert_true(answer->want_count == 1 && answer->unread_count == 1);
	assert_int_equal(answer->unread[0].has_id, has_id);
	assert_int_equal(answer->unread[0].id.job, has_id ? 1 : 0);
	assert_says(answer->unread[0].why, complaint);
	sw_answer_free(answer);
}

/* A wish that cannot be read is named, and the others are heard. */
static void test_wishes_one_by_one(void **state)
{
	(void)state;
#define WANT(spec) "{\"job\":1,\"epoch\":1,\"want\":\"run\",\"spec\":" spec "}"
	spoil_wish("[]", false, "'wants[0]' is a list of 0, expected an object");
	spoil_wish("{\"epoch\":1,\"want\":\"run\"}", false, "'wants[0].job' is missing");
	spoil_wish("{\"job\":1,\"epoch\":1,\"want\":\"dance\"}", true, "expected run, suspend, stop or forget");
	spoil_wish("{\"job\":1,\"epoch\":1,\"want\":\"run\",\"gpu_share_milli\":1001}", true,
		   "'wants[0].gpu_share_milli' is 1001, expected a whole number from 0 to 1000");
	spoil_wish(WANT("[]"), true, "'wants[0].spec' is a list of 0, expected an object");
	spoil_wish(WANT("{\"argv\":[],\"workdir\":\"/\",\"uid\":0,\"gid\":0}"), true,
		   "'wants[0].spec.argv' is a list of 0, expected a list of 1 to 4096 texts");
	spoil_wish(WANT("{\"argv\":[\"\"],\"workdir\":\"/\",\"uid\":0,\"gid\":0}"), true, "expected a command as its first text");
	spoil_wish(WANT("{\"argv\":[\"a\",7],\"workdir\":\"/\",\"uid\":0,\"gid\":0}"), true, "'wants[0].spec.argv[1]' is 7");
	spoil_wish(WANT("{\"argv\":[\"a\"],\"workdir\":\"/\",\"gid\":0}"), true, "'wants[0].spec.uid' is missing");
	spoil_wish(WANT("{\"argv\":[\"a\"],\"workdir\":\"/\",\"uid\":4294967295,\"gid\":0}"), true, "'wants[0].spec.uid' is 4294967295");
	spoil_wish(WANT("{\"argv\":[\"a\"],\"workdir\":\"/\",\"uid\":0,\"gid\":0,\"env\":[\"A=1\",\"=x\"]}"), true,
		   "'wants[0].spec.env[1]' is '=x', expected NAME=VALUE");
#undef WANT
	struct sw_answer_message *answer = read_wish("{\"job\":1,\"epoch\":1,\"want\":\"stop\"},{\"job\":1,\"epoch\":1,\"want\":\"run\"}");
	assert_true(answer->want_count == 2 && answer->wants[0].id.job == 1 && answer->wants[0].want == SW_WANT_STOP);
	assert_true(answer->unread_count == 1 && answer->unread[0].has_id && answer->unread[0].id.job == 1);
	assert_says(answer->unread[0].why, "'wants' has job 1, epoch 1 twice");
	sw_answer_free(answer);
}

/* To stop a run, its id is enough: what else cannot be read has its default. */
static void test_stop_is_heard(void **state)
{
	(void)state;
	struct sw_answer_message *answer = read_wish("{\"job\":1,\"epoch\":1,\"want\":\"stop\",\"signal\":65,\"grace_ms\":-7,\"gpus\":3},{"
						     "\"job\":2,\"epoch\":1,\"want\":\"forget\",\"paused\":1}");
	assert_true(answer->want_count == 3 && answer->unread_count == 0);
	assert_true(answer->wants[0].want == SW_WANT_STOP && answer->wants[0].signal == 0 && answer->wants[0].grace_ms == -1);
	assert_true(answer->wants[1].want == SW_WANT_FORGET && answer->wants[1].id.job == 2);
	sw_answer_free(answer);
}

/* More than the bounds say is refused before it costs anything. */
static void test_bounds(void **state)
{
	(void)state;
	struct sw_sync_run *runs = calloc(SW_SYNC_RUNS_MAX + 1, sizeof *runs);
	for (uint32_t i = 0; i <= SW_SYNC_RUNS_MAX; i++)
		runs[i] = (struct sw_sync_run){.id = {i, 1}, .reason = ""};
	struct sw_sync sync = {.node = "n", .instance = "i", .number = 1, .runs = runs, .run_count = SW_SYNC_RUNS_MAX}, *back = NULL;
	struct sw_err err = {0};
	for (int extra = 0; extra <= 1; extra++) {
		char *text = NULL;
		size_t size;
		sync.run_count = SW_SYNC_RUNS_MAX + (size_t)extra;
		assert_int_equal(sw_sync_encode(&sync, &text, &size, NULL), 0);
		assert_int_equal(sw_sync_decode(text, size, &back, &err), 0);
		/* Nothing may be concluded from the absence of those beyond. */
		assert_true(back->run_count == SW_SYNC_RUNS_MAX && back->unread_count == (size_t)extra);
		if (extra > 0) {
			assert_false(back->unread[0].has_id);
			assert_says(back->unread[0].why, "'jobs' is a list of 4097, expected at most 4096");
		}
		sw_sync_free(back);
		free(text);
	}
	free(runs);
	char *big = malloc(SW_SYNC_BYTES_MAX + 1);
	memset(big, ' ', SW_SYNC_BYTES_MAX + 1);
	sw_err_clear(&err);
	assert_int_equal(sw_sync_decode(big, SW_SYNC_BYTES_MAX + 1, &back, &err), SW_ELIMIT);
	assert_non_null(strstr(err.detail, "expected at most"));
	free(big);
}

/* A sync in steps: the same as at one go, and no step takes more than a piece of it. */
static void test_in_steps(void **state)
{
	(void)state;
	enum { RUNS = 4096, DETAIL = 900 };
	char detail[DETAIL + 1];
	memset(detail, 'd', DETAIL);
	detail[DETAIL] = '\0';
	struct sw_sync_run *runs = calloc(RUNS, sizeof *runs);
	assert_non_null(runs);
	for (size_t i = 0; i < RUNS; i++)
		runs[i] = (struct sw_sync_run){.id = {RUNS - i, 1}, .state = SW_RUN_EXITED, .reason = "", .detail = detail};
	struct sw_sync sync = {.node = "n", .instance = "i", .number = 1, .runs = runs, .run_count = RUNS};
	char *text = NULL, *again = NULL;
	size_t size = 0, again_size = 0, at = 0, steps = 0;
	assert_int_equal(sw_sync_encode(&sync, &text, &size, NULL), 0);
	struct sw_sync_reader *reader = NULL;
	struct sw_sync *read = NULL;
	assert_int_equal(sw_sync_reader_new(text, size, &reader, NULL), 0);
	for (; read == NULL; steps++) {
		assert_int_equal(sw_sync_reader_step(reader, &read, NULL), 0);
		assert_true(sw_sync_reader_at(reader) - at <= (16u << 10) + 2);
		at = sw_sync_reader_at(reader);
	}
	assert_true(steps > RUNS && at == size);
	sw_sync_reader_free(reader);
	assert_int_equal(sw_sync_encode(read, &again, &again_size, NULL), 0);
	assert_true(size == again_size && memcmp(text, again, size) == 0);
	sw_sync_free(read);
	free(again);
	/* One that is given up in the middle leaves nothing behind. */
	assert_int_equal(sw_sync_reader_new(text, size, &reader, NULL), 0);
	for (read = NULL, steps = 0; steps < 100; steps++)
		assert_int_equal(sw_sync_reader_step(reader, &read, NULL), 0);
	assert_null(read);
	sw_sync_reader_free(reader);
	free(text);
	free(runs);
}

/* What is too long to be parsed at one go is not read: of a run that is not known, of an inventory
 * that it is the node's trouble; what no table knows may be of any size. */
static void test_long_pieces(void **state)
{
	(void)state;
	enum { LONG = 600000 };
	static const char *const forms[] = {
		"{\"node\":\"n\",\"instance\":\"i\",\"number\":1,\"jobs\":[{\"job\":1,\"epoch\":1,\"state\":\"running\"},{\"detail\":\"%"
		"s\"}]}",
		"{\"node\":\"n\",\"instance\":\"i\",\"number\":1,\"inventory\":{\"x\":\"%s\"}}",
		"{\"node\":\"n\",\"instance\":\"i\",\"number\":1,\"future\":[\"%s\"],\"samples\":[[\"%1$s\"]]}",
		"{\"node\":\"n\",\"instance\":\"i\",\"number\":1,\"about\":\"%s\"}",
	};
	char *filler = malloc(LONG + 1), *text = malloc(2 * LONG + 500);
	assert_true(filler != NULL && text != NULL);
	memset(filler, 'x', LONG);
	filler[LONG] = '\0';
	for (size_t f = 0; f < sizeof forms / sizeof forms[0]; f++) {
		struct sw_sync *sync = NULL;
		struct sw_err err = {0};
		size_t size = 0;
		for (const char *at = forms[f]; *at != '\0'; at++) {
			bool here = at[0] == '%';
			size += (size_t)sprintf(text + size, "%.*s", here ? LONG : 1, here ? filler : at);
			at += here ? (at[1] == 's' ? 1 : 3) : 0;
		}
		int r = sw_sync_decode(text, size, &sync, &err);
		if (f == 3) {
			assert_int_equal(r, SW_EINPUT);
			assert_non_null(strstr(err.detail, "'about' has 600002 bytes"));
			continue;
		}
		assert_int_equal(r, 0);
		assert_int_equal(sync->run_count, f == 0);
		assert_int_equal(sync->unread_count, f == 0);
		if (f == 0)
			assert_false(sync->unread[0].has_id);
		assert_int_equal(sync->inventory_unread != NULL, f == 1);
		assert_int_equal(sync->sample_count, 0);
		sw_sync_free(sync);
	}
	free(filler);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sync_round_trip),
		cmocka_unit_test(test_answer_round_trip),
		cmocka_unit_test(test_copy),
		cmocka_unit_test(test_reason_spoils_nothing),
		cmocka_unit_test(test_defaults_and_unknown_fields),
		cmocka_unit_test(test_bad_syncs),
		cmocka_unit_test(test_runs_one_by_one),
		cmocka_unit_test(test_readable_part),
		cmocka_unit_test(test_unreadable_end),
		cmocka_unit_test(test_unreadable_rest),
		cmocka_unit_test(test_bad_answers),
		cmocka_unit_test(test_wishes_one_by_one),
		cmocka_unit_test(test_stop_is_heard),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_in_steps),
		cmocka_unit_test(test_long_pieces),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
