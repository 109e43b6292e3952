/* The whole agent with real supervisors and jobs, against a controller of a few lines. Killing
 * anything at any time loses no run and no exit. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>

#include "agent/agent.h"
#include "agent/folder.h"
#include "base/number.h"
#include "base/rng.h"
#include "unit/agent/harness.h"

enum { PATIENCE_MS = 60000, WANTS = 256 };

/* The GPUs of examples/gpus.yaml-like files that the tests write. */
static const char *const uuids[] = {"GPU-00000000-0000-0000-0000-000000000000", "GPU-00000000-0000-0000-0000-000000000001"};

/* The controller: what it wishes, and what it was told last. */
struct fake {
	struct harness *harness;
	struct event_base *base;
	struct evhttp *http;
	char address[200];
	pid_t agent;
	uint64_t version;
	int64_t lease_ms; /* of runs that are wanted from now on; 0: none */
	struct sw_want wants[WANTS];
	size_t want_count;
	struct sw_sync *sync; /* the last */
	uint64_t syncs;
	bool mute; /* answers nothing */
	struct sw_sync_inventory *inventory;
	uint64_t gpus_seen;
	size_t samples_seen;
	int64_t answered_at_ns; /* the last answer, by the clock of the reports */
};

static int64_t real_now(void)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * SW_NS_PER_S + now.tv_nsec;
}

static void on_request(struct evhttp_request *request, void *context)
{
	struct fake *fake = context;
	struct evbuffer *input = evhttp_request_get_input_buffer(request);
	size_t size = evbuffer_get_length(input);
	struct sw_err err = {0};
	sw_sync_free(fake->sync);
	fake->sync = NULL;
	if (sw_sync_decode((const char *)evbuffer_pullup(input, -1), size, &fake->sync, &err) < 0)
		fail_msg("%s: %s", err.fact, err.detail);
	assert_string_equal(evhttp_request_get_uri(request), "/v1/agents/sync");
	assert_string_equal(fake->sync->node, "here");
	fake->syncs++;
	if (fake->sync->inventory != NULL)
		fake->gpus_seen = fake->sync->inventory->gpu_count;
	fake->samples_seen += fake->sync->sample_count;
	if (fake->mute) {
		evhttp_send_error(request, 503, "later");
		return;
	}
	struct sw_answer_message answer = {.version = fake->version,
					   .lease_ms = SW_LEASE_OF_OLD_MS,
					   .retry_ms = 100,
					   .wants = fake->wants,
					   .want_count = fake->want_count};
	char *text = NULL;
	assert_int_equal(sw_answer_encode(&answer, &text, &size, NULL), 0);
	struct evbuffer *body = evbuffer_new();
	evbuffer_add(body, text, size);
	free(text);
	evhttp_send_reply(request, 200, "OK", body);
	evbuffer_free(body);
	fake->answered_at_ns = real_now();
}

/* `exclude`: GPUs to keep back; NULL: none. */
static void start_agent_with(struct fake *fake, const char *gpus, const char *exclude)
{
	fake->agent = fork();
	if (fake->agent == 0) {
		/* Of a driver there is nothing but the name. */
		setenv("LD_LIBRARY_PATH", fake->harness->state, 1);
		execl("/proc/self/exe", "sharewell", "agent", fake->harness->state, fake->address, gpus, exclude, (char *)NULL);
		_exit(127);
	}
	assert_true(fake->agent > 0);
}

static void start_agent(struct fake *fake)
{
	char gpus[128];
	snprintf(gpus, sizeof gpus, "%s/gpus.yaml", fake->harness->state);
	start_agent_with(fake, gpus, NULL);
}

static void kill_agent(struct fake *fake, int signal, int status)
{
	kill(fake->agent, signal);
	int real;
	assert_int_equal(waitpid(fake->agent, &real, 0), fake->agent);
	assert_int_equal(real, status);
	fake->agent = 0;
}

static void on_tick(evutil_socket_t fd, short what, void *context)
{
	(void)fd, (void)what, (void)context;
}

/* Lets things happen for a moment. */
static void turn(struct fake *fake)
{
	struct event *tick = evtimer_new(fake->base, on_tick, NULL);
	evtimer_add(tick, &(struct timeval){.tv_usec = 5000});
	event_base_loop(fake->base, EVLOOP_ONCE);
	event_free(tick);
}

static void turn_for(struct fake *fake, int ms)
{
	for (int64_t end = harness_now_ns() + ms * SW_NS_PER_MS; harness_now_ns() < end;)
		turn(fake);
}

/* The run as the last sync tells it; NULL: it does not. */
static const struct sw_sync_run *told(const struct fake *fake, uint64_t job, uint32_t epoch)
{
	for (size_t i = 0; fake->sync != NULL && i < fake->sync->run_count; i++)
		if (fake->sync->runs[i].id.job == job && fake->sync->runs[i].id.epoch == epoch)
			return &fake->sync->runs[i];
	return NULL;
}

/* Waits until a run is told to be in this state. */
static const struct sw_sync_run *await(struct fake *fake, uint64_t job, uint32_t epoch, enum sw_run_state state)
{
	for (int64_t end = harness_now_ns() + PATIENCE_MS * SW_NS_PER_MS; harness_now_ns() < end;) {
		const struct sw_sync_run *run = told(fake, job, epoch);
		if (run != NULL && run->state == state)
			return run;
		turn(fake);
	}
	fail_msg("job %" PRIu64 " never became %s", job, sw_run_state_name(state));
	return NULL;
}

/* Waits until it is told no more. */
static void await_gone(struct fake *fake, uint64_t job, uint32_t epoch)
{
	for (int64_t end = harness_now_ns() + PATIENCE_MS * SW_NS_PER_MS; told(fake, job, epoch) != NULL;) {
		assert_true(harness_now_ns() < end);
		turn(fake);
	}
}

/* ---- wishes */

static void want(struct fake *fake, uint64_t job, uint32_t epoch, enum sw_want_kind kind, unsigned gpus, const char *script)
{
	struct sw_want *slot = NULL;
	for (size_t i = 0; i < fake->want_count && slot == NULL; i++)
		if (fake->wants[i].id.job == job && fake->wants[i].id.epoch == epoch)
			slot = &fake->wants[i];
	if (slot == NULL) {
		assert_true(fake->want_count < WANTS);
		slot = &fake->wants[fake->want_count++];
		/* The specs of tests live as long as the process. */
		struct sw_run_spec *spec = malloc(sizeof *spec);
		const char **argv = calloc(4, sizeof *argv), **list = calloc(3, sizeof *list);
		*spec = *harness_spec(fake->harness, "");
		argv[0] = "sh";
		argv[1] = "-c";
		argv[2] = script != NULL ? script : "true";
		spec->argv = (struct sw_texts){argv, 3};
		spec->lease_ms = fake->lease_ms;
		*slot = (struct sw_want){.id = {job, epoch}, .spec = spec, .gpus = {list, 0}};
		for (unsigned i = 0; i < 2; i++)
			if (gpus >> i & 1)
				list[slot->gpus.count++] = uuids[i];
	}
	slot->want = kind;
	slot->grace_ms = -1;
	fake->version++;
}

static void release_wants(struct fake *fake)
{
	for (size_t i = 0; i < fake->want_count; i++) {
		const struct sw_run_spec *spec = fake->wants[i].spec;
		free(spec->argv.items);
		free(fake->wants[i].gpus.items);
		free((void *)(uintptr_t)spec);
	}
	fake->want_count = 0;
}

/* ---- life */

static void listen_tcp(struct fake *fake)
{
	struct evhttp_bound_socket *bound = evhttp_bind_socket_with_handle(fake->http, "127.0.0.1", 0);
	assert_non_null(bound);
	struct sockaddr_storage address;
	socklen_t size = sizeof address;
	getsockname(evhttp_bound_socket_get_fd(bound), (struct sockaddr *)&address, &size);
	const struct sockaddr_in *inet = (const struct sockaddr_in *)&address;
	snprintf(fake->address, sizeof fake->address, "http://127.0.0.1:%d", ntohs(inet->sin_port));
}

static int set_up(void **state)
{
	void *harness = NULL;
	if (harness_set_up(&harness) != 0)
		return -1;
	struct fake *fake = calloc(1, sizeof *fake);
	fake->harness = harness;
	fake->base = event_base_new();
	fake->http = evhttp_new(fake->base);
	evhttp_set_gencb(fake->http, on_request, fake);
	evhttp_set_max_body_size(fake->http, SW_SYNC_BYTES_MAX);
	fake->version = 1;
	char path[128];
	snprintf(path, sizeof path, "%s/gpus.yaml", fake->harness->state);
	FILE *file = fopen(path, "w");
	fputs("uuid_prefix: GPU-00000000\ngpus:\n  - name: Test\n    count: 2\n    memory: 16G\n", file);
	fclose(file);
	snprintf(path, sizeof path, "%s/libnvidia-ml.so.1", fake->harness->state);
	file = fopen(path, "w");
	fputs("no library", file);
	fclose(file);
	listen_tcp(fake);
	*state = fake;
	return 0;
}

static int tear_down(void **state)
{
	struct fake *fake = *state;
	void *harness = fake->harness;
	/* Nothing is wanted any more: what is left stops. */
	fake->mute = false;
	release_wants(fake);
	fake->version += 1000;
	if (fake->agent > 0) {
		for (int i = 0; i < 3000; i++) {
			bool alive = false;
			for (size_t k = 0; fake->sync != NULL && k < fake->sync->run_count; k++)
				alive |= fake->sync->runs[k].state != SW_RUN_EXITED;
			if (!alive && i > 50)
				break;
			turn(fake);
		}
		kill_agent(fake, SIGTERM, 0);
	}
	evhttp_free(fake->http);
	event_base_free(fake->base);
	sw_sync_free(fake->sync);
	free(fake);
	return harness_tear_down(&harness);
}

/* ---- tests */

/* A job is started, ends, is reported with its true code until it is forgotten; then its folder is
 * gone and its log is kept. */
static void test_one_job(void **state)
{
	struct fake *fake = *state;
	start_agent(fake);
	want(fake, 1, 1, SW_WANT_RUN, 3, "echo $CUDA_VISIBLE_DEVICES; exit 42");
	const struct sw_sync_run *run = await(fake, 1, 1, SW_RUN_EXITED);
	assert_true(run->code == 42 && run->signal == 0 && run->reason[0] == '\0' && run->log_bytes > 0);
	assert_int_equal(fake->gpus_seen, 2);
	/* It stays told for as long as it is not forgotten. */
	uint64_t syncs = fake->syncs;
	while (fake->syncs < syncs + 5) {
		turn(fake);
		assert_non_null(told(fake, 1, 1));
	}
	want(fake, 1, 1, SW_WANT_FORGET, 0, NULL);
	await_gone(fake, 1, 1);
	char path[256], text[200];
	struct stat info;
	snprintf(path, sizeof path, "%s/runs/1.1", fake->harness->state);
	assert_int_not_equal(stat(path, &info), 0);
	snprintf(text, sizeof text, "%s,%s\n", uuids[0], uuids[1]);
	assert_string_equal(harness_read(fake->harness, "logs/1.1.log"), text);
	/* A wish that comes back by mistake starts nothing, not even in the
	 * next life of the agent. */
	kill_agent(fake, SIGKILL, SIGKILL);
	start_agent(fake);
	want(fake, 1, 1, SW_WANT_RUN, 3, NULL);
	run = await(fake, 1, 1, SW_RUN_EXITED);
	assert_string_equal(run->reason, SW_REASON_STALE);
}

/* An order that cannot be read ends its own run with the reason; the run beside it goes on, and the
 * next order is carried out. */
static void test_unreadable_order(void **state)
{
	struct fake *fake = *state;
	start_agent(fake);
	want(fake, 1, 1, SW_WANT_RUN, 1, "exec sleep 600");
	uint32_t pid = await(fake, 1, 1, SW_RUN_RUNNING)->pid;
	want(fake, 2, 1, SW_WANT_RUN, 2, "true");
	const struct sw_run_spec *own = fake->wants[1].spec;
	struct sw_run_spec beyond = *own;
	beyond.time_limit_ms = INT64_MAX;
	fake->wants[1].spec = &beyond;
	const struct sw_sync_run *run = await(fake, 2, 1, SW_RUN_EXITED);
	assert_string_equal(run->reason, SW_REASON_ORDER);
	assert_non_null(strstr(run->detail, "time_limit_ms"));
	assert_int_equal(run->code, 125);
	want(fake, 2, 1, SW_WANT_FORGET, 0, NULL);
	want(fake, 3, 1, SW_WANT_RUN, 2, "exit 7");
	assert_int_equal(await(fake, 3, 1, SW_RUN_EXITED)->code, 7);
	run = await(fake, 1, 1, SW_RUN_RUNNING);
	assert_int_equal(run->pid, pid);
	fake->wants[1].spec = own; /* it is freed in the end */
}

/* Samples of GPUs and of the job's processes come along. */
static void test_samples(void **state)
{
	struct fake *fake = *state;
	start_agent(fake);
	want(fake, 1, 1, SW_WANT_RUN, 1, "while :; do :; done");
	bool gpu = false, run = false;
	for (int64_t end = harness_now_ns() + PATIENCE_MS * SW_NS_PER_MS; !(gpu && run) && harness_now_ns() < end; turn(fake))
		for (size_t i = 0; fake->sync != NULL && i < fake->sync->sample_count; i++) {
			const struct sw_sync_sample *sample = &fake->sync->samples[i];
			gpu |= sample->gpu != NULL && strcmp(sample->gpu, uuids[0]) == 0;
			run |= sample->has_run && sample->run.job == 1 && sample->memory_bytes > 0 && sample->busy_milli > 100;
		}
	assert_true(gpu && run);
}

/* The agent is killed: its jobs go on; what ended meanwhile is told by the next one, and
 * nothing is started again. */
static void test_agent_killed(void **state)
{
	struct fake *fake = *state;
	start_agent(fake);
	want(fake, 1, 1, SW_WANT_RUN, 1, "echo s >>started; trap 'exit 11' TERM; while :; do echo x >>count; sleep 0.02; done");
	want(fake, 2, 1, SW_WANT_RUN, 2, "echo s >>started; while [ ! -e go ]; do sleep 0.02; done; exit 77");
	int64_t first = await(fake, 1, 1, SW_RUN_RUNNING)->started_at_ns;
	int64_t second = await(fake, 2, 1, SW_RUN_RUNNING)->started_at_ns;
	kill_agent(fake, SIGKILL, SIGKILL);
	size_t count = strlen(harness_read(fake->harness, "count"));
	char path[128];
	snprintf(path, sizeof path, "%s/go", fake->harness->state);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	for (int i = 0; i < 4; i++) {
		harness_sleep_ms(100);
		sw_sync_free(fake->sync);
		fake->sync = NULL;
		start_agent(fake);
		/* In between it is killed at any moment of its beginning. */
		if (i < 3) {
			turn_for(fake, 30 * i);
			kill_agent(fake, SIGKILL, SIGKILL);
		}
	}
	const struct sw_sync_run *run = await(fake, 2, 1, SW_RUN_EXITED);
	assert_true(run->code == 77 && run->started_at_ns == second && run->reason[0] == '\0');
	run = await(fake, 1, 1, SW_RUN_RUNNING);
	assert_true(run->started_at_ns == first);
	assert_true(strlen(harness_read(fake->harness, "count")) > count);
	/* The new agent rules it as the old one did. */
	want(fake, 1, 1, SW_WANT_SUSPEND, 0, NULL);
	await(fake, 1, 1, SW_RUN_SUSPENDED);
	want(fake, 1, 1, SW_WANT_STOP, 0, NULL);
	run = await(fake, 1, 1, SW_RUN_EXITED);
	assert_true(run->code == 11);
	assert_string_equal(run->reason, SW_REASON_STOPPED);
	assert_string_equal(harness_read(fake->harness, "started"), "s\ns\n");
}

/* A supervisor is killed: its job dies with it, whatever hid, and that is told; the GPU
 * then goes to the next. */
static void test_supervisor_killed(void **state)
{
	struct fake *fake = *state;
	start_agent(fake);
	want(fake, 1, 1, SW_WANT_RUN, 1,
	     "(setsid sh -c 'trap \"\" TERM HUP; echo $$ >deep; sleep 1000' &); env -i sleep 1000 & echo $! >bare; sleep 1000");
	await(fake, 1, 1, SW_RUN_RUNNING);
	pid_t deep = atoi(harness_await(fake->harness, "deep")), bare = atoi(harness_await(fake->harness, "bare"));
	want(fake, 2, 1, SW_WANT_RUN, 1, "case $(grep State: /proc/$(cat deep)/status 2>/dev/null) in *[RSDT]\\ *) exit 1;; esac; exit 0");
	await(fake, 2, 1, SW_RUN_STARTING);
	pid_t supervisor = atoi(harness_read(fake->harness, "runs/1.1/pid"));
	assert_true(supervisor > 1);
	assert_int_equal(kill(supervisor, SIGKILL), 0);
	const struct sw_sync_run *run = await(fake, 1, 1, SW_RUN_EXITED);
	assert_string_equal(run->reason, SW_REASON_SUPERVISOR_LOST);
	assert_true(harness_is_gone(deep));
	assert_true(harness_is_gone(bare));
	/* It found the hidden process dead when it was started. */
	run = await(fake, 2, 1, SW_RUN_EXITED);
	assert_int_equal(run->code, 0);
	/* Killed while no agent looks: the next agent tells. */
	want(fake, 3, 1, SW_WANT_RUN, 2, "sleep 1000");
	await(fake, 3, 1, SW_RUN_RUNNING);
	kill_agent(fake, SIGKILL, SIGKILL);
	supervisor = atoi(harness_read(fake->harness, "runs/3.1/pid"));
	assert_int_equal(kill(supervisor, SIGKILL), 0);
	start_agent(fake);
	run = await(fake, 3, 1, SW_RUN_EXITED);
	assert_string_equal(run->reason, SW_REASON_SUPERVISOR_LOST);
	char record[1000];
	snprintf(record, sizeof record, "%s", harness_read(fake->harness, "runs/3.1/exit.json"));
	turn_for(fake, 300);
	assert_string_equal(harness_read(fake->harness, "runs/3.1/exit.json"), record);
}

/* The controller is away: a job without a lease goes on; one with a lease goes on while it lasts,
 * then gets its signal and its grace. */
static void test_controller_away(void **state)
{
	struct fake *fake = *state;
	start_agent(fake);
	want(fake, 2, 1, SW_WANT_RUN, 2, "trap 'echo x >>signals' TERM; until [ -e enough ]; do echo x >>endless; sleep 0.02; done");
	fake->lease_ms = 2500;
	want(fake, 1, 1, SW_WANT_RUN, 1, "trap 'sleep 0.3; echo x >last; exit 7' TERM; while :; do echo x >>count; sleep 0.02; done");
	await(fake, 1, 1, SW_RUN_RUNNING);
	await(fake, 2, 1, SW_RUN_RUNNING);
	/* Many times the lease, as long as there are answers. */
	turn_for(fake, 6000);
	fake->mute = true;
	turn_for(fake, 1000);
	fake->mute = false;
	turn_for(fake, 1000);
	assert_int_equal(told(fake, 1, 1)->state, SW_RUN_RUNNING);
	fake->mute = true;
	const struct sw_sync_run *run = await(fake, 1, 1, SW_RUN_EXITED);
	assert_string_equal(run->reason, SW_REASON_LEASE);
	assert_int_equal(run->code, 7);
	assert_string_equal(harness_read(fake->harness, "last"), "x\n");
	size_t count = strlen(harness_read(fake->harness, "count")), endless = strlen(harness_read(fake->harness, "endless"));
	turn_for(fake, 300);
	assert_int_equal(strlen(harness_read(fake->harness, "count")), count);
	assert_true(strlen(harness_read(fake->harness, "endless")) > endless);
	assert_string_equal(harness_read(fake->harness, "signals"), "");
	/* Nor does it end with the agent. */
	kill(fake->agent, SIGKILL);
	waitpid(fake->agent, NULL, 0);
	endless = strlen(harness_read(fake->harness, "endless"));
	turn_for(fake, 3000);
	assert_true(strlen(harness_read(fake->harness, "endless")) > endless);
	fake->mute = false;
	start_agent(fake);
	await(fake, 2, 1, SW_RUN_RUNNING);
	assert_string_equal(harness_read(fake->harness, "signals"), "");
	char enough[128];
	snprintf(enough, sizeof enough, "%s/enough", fake->harness->state);
	FILE *file = fopen(enough, "we");
	assert_non_null(file);
	fclose(file);
	await(fake, 2, 1, SW_RUN_EXITED);
}

/* One GPU, two jobs: the second starts when the first stands still, and only then. */
static void test_take_turns(void **state)
{
	struct fake *fake = *state;
	start_agent(fake);
	want(fake, 1, 1, SW_WANT_RUN, 1, "while :; do echo x >>one; sleep 0.01; done");
	await(fake, 1, 1, SW_RUN_RUNNING);
	want(fake, 2, 1, SW_WANT_RUN, 1, "while :; do echo x >>two; sleep 0.01; done");
	await(fake, 2, 1, SW_RUN_STARTING);
	turn_for(fake, 300);
	assert_string_equal(harness_read(fake->harness, "two"), "");
	want(fake, 1, 1, SW_WANT_SUSPEND, 1, NULL);
	await(fake, 2, 1, SW_RUN_RUNNING);
	assert_int_equal(told(fake, 1, 1)->state, SW_RUN_SUSPENDED);
	size_t one = strlen(harness_read(fake->harness, "one"));
	turn_for(fake, 200);
	assert_int_equal(strlen(harness_read(fake->harness, "one")), one);
	want(fake, 1, 1, SW_WANT_RUN, 1, NULL);
	turn_for(fake, 300);
	assert_int_equal(told(fake, 1, 1)->state, SW_RUN_SUSPENDED);
	want(fake, 2, 1, SW_WANT_STOP, 1, NULL);
	await(fake, 1, 1, SW_RUN_RUNNING);
	assert_int_equal(told(fake, 2, 1)->state, SW_RUN_EXITED);
}

/* Waits until both GPUs are told as shut for this reason; SIZE_MAX: as open. */
static void await_shut(struct fake *fake, size_t why)
{
	for (int64_t end = harness_now_ns() + PATIENCE_MS * SW_NS_PER_MS; harness_now_ns() < end; turn(fake)) {
		const struct sw_sync *sync = fake->sync;
		if (sync == NULL || !sync->looked || sync->shut_count != (why != SIZE_MAX ? 2 : 0))
			continue;
		if (why == SIZE_MAX || (sync->shut[0].why == why && sync->shut[1].why == why))
			return;
	}
	fail_msg("the GPUs are not told so");
}

static void forget_syncs(struct fake *fake)
{
	sw_sync_free(fake->sync);
	fake->sync = NULL;
	fake->gpus_seen = 0;
}

/* An agent that knows its GPUs starts although the driver is gone, and tells them as silent; one
 * that knows none says so and ends. */
static void test_driver_gone(void **state)
{
	struct fake *fake = *state;
	start_agent_with(fake, "nvml", NULL);
	kill_agent(fake, 0, 1 << 8);
	start_agent(fake);
	await_shut(fake, SIZE_MAX);
	kill_agent(fake, SIGKILL, SIGKILL);
	forget_syncs(fake);
	start_agent_with(fake, "nvml", NULL);
	await_shut(fake, SW_SHUT_SILENT);
	assert_int_equal(fake->gpus_seen, 2);
}

/* A GPU that is to be kept back and is not there any more keeps no agent from starting that knows
 * its GPUs; one that knows none takes it for a mistake. */
static void test_excluded_gpu_gone(void **state)
{
	struct fake *fake = *state;
	char gpus[128];
	snprintf(gpus, sizeof gpus, "%s/gpus.yaml", fake->harness->state);
	start_agent_with(fake, gpus, "GPU-ffffffff");
	kill_agent(fake, 0, 1 << 8);
	start_agent(fake);
	await_shut(fake, SIZE_MAX);
	kill_agent(fake, SIGKILL, SIGKILL);
	forget_syncs(fake);
	start_agent_with(fake, gpus, "GPU-ffffffff,0,1");
	await_shut(fake, SW_SHUT_EXCLUDED);
}

/* Two agents do not share a folder. */
static void test_second_agent(void **state)
{
	struct fake *fake = *state;
	start_agent(fake);
	want(fake, 1, 1, SW_WANT_RUN, 1, "sleep 1000");
	await(fake, 1, 1, SW_RUN_RUNNING);
	pid_t first = fake->agent;
	start_agent(fake);
	int status;
	assert_int_equal(waitpid(fake->agent, &status, 0), fake->agent);
	assert_int_equal(WEXITSTATUS(status), 1);
	fake->agent = first;
	assert_int_equal(told(fake, 1, 1)->state, SW_RUN_RUNNING);
}

/* What a killed agent had forked may hold its lock for a moment longer; the
 * next agent waits for that. */
static void test_late_lock(void **state)
{
	struct fake *fake = *state;
	int folder = open(fake->harness->state, O_RDONLY | O_DIRECTORY | O_CLOEXEC), lock = -1;
	pid_t holder = fork();
	if (holder == 0) {
		(void)sw_folder_lock(folder, "lock", &lock, NULL);
		pause();
		_exit(0);
	}
	while (!sw_folder_is_locked(folder, "lock"))
		harness_sleep_ms(1);
	start_agent(fake);
	turn_for(fake, 200);
	assert_int_equal(fake->syncs, 0);
	kill(holder, SIGKILL);
	waitpid(holder, NULL, 0);
	close(folder);
	want(fake, 1, 1, SW_WANT_RUN, 1, "exit 3");
	assert_int_equal(await(fake, 1, 1, SW_RUN_EXITED)->code, 3);
}

/* A UNIX socket is a way to the controller, too. */
static void test_unix_socket(void **state)
{
	struct fake *fake = *state;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	snprintf(address.sun_path, sizeof address.sun_path, "%.60s/controller.sock", fake->harness->state);
	struct evconnlistener *listener = evconnlistener_new_bind(fake->base, NULL, NULL, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 16,
								  (struct sockaddr *)&address, sizeof address);
	assert_non_null(listener);
	assert_non_null(evhttp_bind_listener(fake->http, listener));
	snprintf(fake->address, sizeof fake->address, "unix:%s", address.sun_path);
	start_agent(fake);
	want(fake, 1, 1, SW_WANT_RUN, 1, "exit 5");
	assert_int_equal(await(fake, 1, 1, SW_RUN_EXITED)->code, 5);
}

/* Kills a supervisor that there is, if there is one. */
static void kill_some_supervisor(struct fake *fake, struct sw_rng *rng)
{
	const struct sw_sync *sync = fake->sync;
	if (sync == NULL || sync->run_count == 0)
		return;
	struct sw_run_id id = sync->runs[sw_rng_below(rng, sync->run_count)].id;
	char name[64];
	snprintf(name, sizeof name, "runs/%" PRIu64 ".%" PRIu32 "/pid", id.job, id.epoch);
	int pid = atoi(harness_read(fake->harness, name));
	char comm[64], title[16] = "";
	snprintf(comm, sizeof comm, "/proc/%d/comm", pid);
	int fd = pid > 1 ? open(comm, O_RDONLY) : -1;
	if (fd < 0)
		return;
	/* One that has ended may have left its number to a stranger. */
	if (read(fd, title, sizeof title - 1) > 0 && strncmp(title, "sw:", 3) == 0)
		kill(pid, SIGKILL);
	close(fd);
}

/* Agents and supervisors are killed at any moment: every run ends once, with its true code or lost
 * with its supervisor, and ran at most once. */
static void test_random_kills(void **state)
{
	struct fake *fake = *state;
	enum { JOBS = 60, AT_ONCE = 12 };
	struct sw_rng rng;
	sw_rng_seed(&rng, 20);
	static const char script[] = "echo s >>ran.$SHAREWELL_JOB_ID; sleep 0.0$((SHAREWELL_JOB_ID % 10)); exit $SHAREWELL_JOB_ID";
	bool over[JOBS + 1] = {false}, lost[JOBS + 1] = {false};
	uint64_t next = 1, done = 0, losses = 0, restarts = 0;
	start_agent(fake);
	while (done < JOBS) {
		for (; next <= JOBS && next - done <= AT_ONCE; next++)
			want(fake, next, 1, SW_WANT_RUN, 0, script);
		turn(fake);
		for (uint64_t job = 1; job < next; job++) {
			const struct sw_sync_run *run = told(fake, job, 1);
			if (run == NULL || run->state != SW_RUN_EXITED || over[job])
				continue;
			over[job] = true;
			done++;
			lost[job] = strcmp(run->reason, SW_REASON_SUPERVISOR_LOST) == 0;
			losses += lost[job];
			if (!lost[job] && (run->code != job || run->reason[0] != '\0'))
				fail_msg("job %" PRIu64 " ended with code %u, signal %u, '%s'", job, run->code, run->signal, run->reason);
			want(fake, job, 1, SW_WANT_FORGET, 0, NULL);
		}
		if (sw_rng_below(&rng, 12) == 0)
			kill_some_supervisor(fake, &rng);
		if (sw_rng_below(&rng, 40) == 0) {
			kill_agent(fake, SIGKILL, SIGKILL);
			start_agent(fake);
			restarts++;
		}
	}
	for (uint64_t job = 1; job <= JOBS; job++) {
		char name[32];
		snprintf(name, sizeof name, "ran.%" PRIu64, job);
		const char *ran = harness_read(fake->harness, name);
		if (strcmp(ran, "s\n") != 0 && !(lost[job] && ran[0] == '\0'))
			fail_msg("job %" PRIu64 " ran like this: '%s'", job, ran);
	}
	print_message("%d jobs, %" PRIu64 " lost with their supervisors, %" PRIu64 " restarts of the agent\n", JOBS, losses, restarts);
}

static int compare(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
	return left < right ? -1 : left > right;
}

/* Many short jobs all end with their own code; how long a start takes is printed, not judged. */
static void test_many_jobs(void **state)
{
	struct fake *fake = *state;
	enum { JOBS = 100 };
	start_agent(fake);
	want(fake, 1000, 1, SW_WANT_RUN, 0, "true");
	await(fake, 1000, 1, SW_RUN_EXITED);
	int64_t begin = harness_now_ns();
	static char scripts[JOBS][16];
	for (uint64_t i = 0; i < JOBS; i++) {
		snprintf(scripts[i], sizeof scripts[i], "exit %d", (int)i);
		want(fake, i + 1, 1, SW_WANT_RUN, 0, scripts[i]);
	}
	for (uint64_t i = 0; i < JOBS; i++)
		assert_int_equal(await(fake, i + 1, 1, SW_RUN_EXITED)->code, i);
	int64_t all = harness_now_ns() - begin;
	for (uint64_t i = 0; i < JOBS; i++)
		want(fake, i + 1, 1, SW_WANT_FORGET, 0, NULL);
	for (uint64_t i = 0; i < JOBS; i++)
		await_gone(fake, i + 1, 1);
	int64_t waits[20];
	for (uint64_t i = 0; i < 20; i++) {
		fake->answered_at_ns = 0;
		uint64_t version = fake->version;
		want(fake, 2000 + i, 1, SW_WANT_RUN, 0, "true");
		/* The answer that carries the wish is the next one. */
		while (fake->answered_at_ns == 0 || fake->version == version)
			turn(fake);
		int64_t answered = fake->answered_at_ns;
		const struct sw_sync_run *run = await(fake, 2000 + i, 1, SW_RUN_EXITED);
		waits[i] = run->started_at_ns - answered;
	}
	qsort(waits, 20, sizeof waits[0], compare);
	print_message("100 jobs at once: %" PRId64 " ms; from answer to start of the process: median %" PRId64 " us, slowest of 20 %" PRId64
		      " us\n",
		      all / SW_NS_PER_MS, waits[10] / SW_NS_PER_US, waits[19] / SW_NS_PER_US);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(int argc, char **argv)
{
	harness_main(argc, argv);
	signal(SIGPIPE, SIG_IGN);
	const struct CMUnitTest tests[] = {
		TEST(test_one_job),	      TEST(test_unreadable_order),  TEST(test_samples),	     TEST(test_agent_killed),
		TEST(test_supervisor_killed), TEST(test_controller_away),   TEST(test_take_turns),   TEST(test_second_agent),
		TEST(test_late_lock),	      TEST(test_unix_socket),	    TEST(test_random_kills), TEST(test_many_jobs),
		TEST(test_driver_gone),	      TEST(test_excluded_gpu_gone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
