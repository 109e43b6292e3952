#include "agent/agent.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <curl/curl.h>

#include "agent/agent_gpus.h"
#include "agent/agent_links.h"
#include "agent/agent_samples.h"
#include "agent/agent_scan.h"
#include "agent/agent_state.h"
#include "agent/cgroup.h"
#include "agent/device_group.h"
#include "agent/folder.h"
#include "agent/identity.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/now.h"
#include "base/number.h"
#include "share/node.h"
#include "share/preload.h"
#include "share/throttle.h"

enum { ACTIONS = 64, LOCK_PATIENCE_MS = 1000, LOCK_STEP_MS = 10 };

void sw_agent_options_defaults(struct sw_agent_options *options)
{
	*options = (struct sw_agent_options){.keep_logs_bytes = UINT64_C(1) << 30, .stop_fd = -1};
}

void sw_agent_say(struct sw_agent *agent, const char *fmt, ...)
{
	if (agent->options->say == NULL)
		return;
	char line[1000];
	va_list args;
	va_start(args, fmt);
	vsnprintf(line, sizeof line, fmt, args);
	va_end(args);
	agent->options->say(agent->options->context, line);
}

/* ---- actions */

static void start_run(struct sw_agent *agent, const struct sw_agent_action *action)
{
	struct sw_run_order order = {
		.node = agent->node,
		.lease_boot_ns = action->lease_boot_ns,
		.cgroup = agent->cgroup[0] != '\0' ? agent->cgroup : NULL,
		.no_device_rule = agent->options->no_device_rules,
		.gpu_library = agent->gpu_library[0] != '\0' ? agent->gpu_library : NULL,
		.want = *action->want,
	};
	struct sw_err err = {0};
	if (sw_folder_create(agent->runs, &order, &err) == 0) {
		sw_agent_spawn(agent, action->id);
		return;
	}
	char detail[1000];
	sw_err_format(&err, detail, sizeof detail);
	sw_agent_say(agent, "job %" PRIu64 " cannot be started: %s", action->id.job, detail);
	struct sw_sync_run run = {.id = action->id, .state = SW_RUN_EXITED, .code = 125, .reason = SW_REASON_LAUNCH, .detail = detail};
	sw_agent_brain_said(agent->brain, &run, 0);
}

/* From now on no supervisor will start the job; the one that comes cleans up and records the
 * exit. */
static void recover_run(struct sw_agent *agent, struct sw_run_id id)
{
	char name[SW_FOLDER_NAME_MAX];
	int folder = -1;
	if (sw_folder_open(agent->runs, sw_folder_name(id, name), &folder, NULL) == 0) {
		int fd = openat(folder, "lost", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		if (fd >= 0)
			close(fd);
		close(folder);
	}
	sw_agent_say(agent, "the supervisor of job %" PRIu64 " is lost", id.job);
	sw_agent_spawn(agent, id);
}

static void delete_run(struct sw_agent *agent, struct sw_run_id id)
{
	char name[SW_FOLDER_NAME_MAX];
	int folder = -1;
	sw_agent_unlink(agent, id);
	if (sw_folder_open(agent->runs, sw_folder_name(id, name), &folder, NULL) == 0) {
		sw_kept_logs_keep(&agent->kept_logs, folder, id);
		close(folder);
	}
	struct sw_err err = {0};
	if (sw_epochs_add(&agent->epochs, id) < 0)
		sw_agent_say(agent, "cannot note that job %" PRIu64 " was here: %s", id.job, strerror(errno));
	if (sw_gone_add(&agent->gone, id, &err) < 0)
		sw_agent_say(agent, "%s: %s", err.fact, err.detail);
}

static void tell_terms(struct sw_agent *agent, struct sw_run_id id, const struct sw_agent_terms *terms)
{
	char names[SW_AGENT_NEIGHBOURS * (SW_FOLDER_NAME_MAX + 1) + 1] = "", name[SW_FOLDER_NAME_MAX];
	size_t used = 0;
	for (uint32_t i = 0; i < terms->neighbour_count; i++)
		used += (size_t)snprintf(names + used, sizeof names - used, " %s", sw_folder_name(terms->neighbours[i], name));
	sw_agent_tell(agent, id, "gpu %" PRIu64 " %" PRIu32 " %d%s\n", terms->limit_bytes, terms->share_milli, terms->watched, names);
}

/* Before the order that it is about. Supervisors of earlier versions do not know this
 * line, and leave it alone. */
static void tell_why(struct sw_agent *agent, const struct sw_agent_action *action)
{
	sw_agent_tell(agent, action->id, "why %s\n", action->why);
}

static void carry_out(struct sw_agent *agent, const struct sw_agent_action *action)
{
	switch (action->act) {
	case SW_ACT_START:
		start_run(agent, action);
		break;
	case SW_ACT_BEGIN:
		sw_agent_say(agent, "the supervisor of job %" PRIu64 " died before it began: another one begins", action->id.job);
		sw_agent_spawn(agent, action->id);
		break;
	case SW_ACT_STOP:
		tell_why(agent, action);
		sw_agent_tell(agent, action->id, "stop %" PRIu64 " %" PRIu32 " %" PRId64 "\n", action->order, action->signal,
			      action->grace_ms);
		break;
	case SW_ACT_SUSPEND:
		tell_why(agent, action);
		sw_agent_tell(agent, action->id, "suspend %" PRIu64 "%s\n", action->order, action->deep ? " deep" : "");
		break;
	case SW_ACT_RESUME:
		sw_agent_tell(agent, action->id, "resume %" PRIu64 "\n", action->order);
		break;
	case SW_ACT_MOVE:
		tell_why(agent, action);
		sw_agent_tell(agent, action->id, "move %" PRIu64 " %s\n", action->order, action->gpus);
		break;
	case SW_ACT_LEASE:
		sw_agent_tell(agent, action->id, "lease %" PRId64 "\n", action->lease_boot_ns);
		break;
	case SW_ACT_TERMS:
		tell_terms(agent, action->id, action->terms);
		break;
	case SW_ACT_RECOVER:
		recover_run(agent, action->id);
		break;
	case SW_ACT_DELETE:
		delete_run(agent, action->id);
		break;
	}
}

static void send_sync(struct sw_agent *agent, struct sw_sync *sync)
{
	sw_agent_gpus_tell(agent, sync);
	char *text = NULL;
	size_t size;
	struct sw_err err = {0};
	if (sw_sync_encode(sync, &text, &size, &err) < 0) {
		sw_agent_say(agent, "%s: %s", err.fact, err.detail);
		sw_agent_brain_failed(agent->brain, sw_now_boot_ns(), sync->number);
		return;
	}
	sw_poster_send(agent->poster, sync->number, text, size);
}

static void set_timer(struct sw_agent *agent)
{
	int64_t wake = sw_agent_brain_wake(agent->brain);
	struct itimerspec when = {.it_value = {.tv_nsec = 1}};
	if (wake > 0) {
		when.it_value.tv_sec = wake / SW_NS_PER_S;
		when.it_value.tv_nsec = wake % SW_NS_PER_S;
	}
	timerfd_settime(agent->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

void sw_agent_pump(struct sw_agent *agent)
{
	struct sw_agent_action actions[ACTIONS];
	for (size_t count; (count = sw_agent_brain_act(agent->brain, sw_now_boot_ns(), actions, ACTIONS)) > 0;)
		for (size_t i = 0; i < count; i++)
			carry_out(agent, &actions[i]);
	struct sw_sync sync;
	if (sw_agent_brain_sync(agent->brain, sw_now_boot_ns(), &sync))
		send_sync(agent, &sync);
	set_timer(agent);
}

/* ---- events */

/* Not at every try, but whenever there is something new to say: a connection that broke because a
 * token was taken back becomes a refusal. */
static void complain(struct sw_agent *agent, const char *problem)
{
	char words[sizeof agent->complaint];
	snprintf(words, sizeof words, "%.599s", problem[0] != '\0' ? problem : "no answer");
	for (char *at = words; *at != '\0'; at++)
		if ((unsigned char)*at < ' ')
			*at = ' ';
	if (strcmp(words, agent->complaint) == 0)
		return;
	memcpy(agent->complaint, words, sizeof words);
	sw_agent_say(agent, "no word from the controller: %s", words);
}

/* Orders that could not be read: their runs end or go on by themselves, and the operator should
 * know. Not at every answer. */
static void complain_of_orders(struct sw_agent *agent, const struct sw_answer_message *answer)
{
	char words[sizeof agent->unread] = "";
	if (answer->unread_count > 0)
		snprintf(words, sizeof words, "%zu, the first: %.180s", answer->unread_count, answer->unread[0].why);
	if (answer->unread_count > 0 && strcmp(words, agent->unread) != 0)
		sw_agent_say(agent, "orders of the controller cannot be read: %s", words);
	memcpy(agent->unread, words, sizeof words);
}

static void on_answer(void *context, uint64_t number, const char *text, size_t size, const struct sw_err *problem)
{
	struct sw_agent *agent = context;
	SW_CLEANUP(sw_answer_freep) struct sw_answer_message *answer = NULL;
	struct sw_err err = {0};
	char words[1300];
	int r = problem != NULL ? problem->code : sw_answer_decode(text, size, &answer, &err);
	if (r == 0) {
		assert(answer != NULL); /* a problem has a code */
		/* What was sampled has arrived. */
		agent->gpus.is_new = false;
		complain_of_orders(agent, answer);
		r = sw_agent_brain_answer(agent->brain, sw_now_boot_ns(), number, answer);
	}
	if (r < 0) {
		sw_agent_brain_failed(agent->brain, sw_now_boot_ns(), number);
		if (sw_poster_later_s(agent->poster) > 0)
			sw_agent_brain_put_off(agent->brain, sw_now_boot_ns(), sw_poster_later_s(agent->poster) * SW_NS_PER_S);
		sw_err_format(problem != NULL ? problem : &err, words, sizeof words);
		complain(agent, words);
	} else if (agent->complaint[0] != '\0') {
		sw_agent_say(agent, "the controller is back");
		agent->complaint[0] = '\0';
	}
	sw_agent_pump(agent);
}

static void on_timer(evutil_socket_t fd, short what, void *context)
{
	(void)what;
	uint64_t expirations;
	(void)!read(fd, &expirations, sizeof expirations);
	sw_agent_pump(context);
}

static void on_stop(evutil_socket_t fd, short what, void *context)
{
	(void)fd, (void)what;
	struct sw_agent *agent = context;
	event_base_loopbreak(agent->base);
}

/* ---- life */

static int fail(struct sw_err *err, const char *what, const char *name)
{
	sw_err_set(err, SW_EIO, "cannot start the agent: cannot %s '%s'", what, name);
	sw_err_detail(err, "%s", strerror(errno));
	return SW_EIO;
}

/* Children of an agent that was killed may hold its lock for a moment longer, until
 * they exec or close it. */
static int lock_state(struct sw_agent *agent)
{
	int r = sw_folder_lock(agent->state, "lock", &agent->lock, NULL);
	for (int waited_ms = 0; r < 0 && waited_ms < LOCK_PATIENCE_MS; waited_ms += LOCK_STEP_MS) {
		nanosleep(&(struct timespec){.tv_nsec = LOCK_STEP_MS * SW_NS_PER_MS}, NULL);
		r = sw_folder_lock(agent->state, "lock", &agent->lock, NULL);
	}
	return r;
}

static int open_state(struct sw_agent *agent, struct sw_err *err)
{
	const char *state = agent->options->state;
	if (mkdir(state, 0700) != 0 && errno != EEXIST)
		return fail(err, "make the folder", state);
	agent->state = open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (agent->state < 0)
		return fail(err, "open the folder", state);
	if (mkdirat(agent->state, "runs", 0700) != 0 && errno != EEXIST)
		return fail(err, "make the folder runs in", state);
	agent->runs = openat(agent->state, "runs", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char whole[PATH_MAX];
	if (agent->runs < 0 || realpath(state, whole) == NULL || asprintf(&agent->runs_path, "%s/runs", whole) < 0)
		return fail(err, "open the folder runs of", state);
	if (lock_state(agent) < 0) {
		sw_err_set(err, SW_EINPUT, "cannot start the agent: another one works in '%s'", state);
		sw_err_hint(err, "Give this one a folder of its own.");
		return SW_EINPUT;
	}
	int r = sw_kept_logs_open(&agent->kept_logs, agent->state, agent->options->keep_logs_bytes);
	return r < 0 ? fail(err, "keep logs in", state) : 0;
}

static void open_cgroup(struct sw_agent *agent)
{
	const char *wanted = agent->options->cgroup;
	if (wanted == NULL)
		return;
	if (strcmp(wanted, "auto") != 0) {
		snprintf(agent->cgroup, sizeof agent->cgroup, "%s", wanted);
		return;
	}
	char note[200], name[64];
	snprintf(name, sizeof name, "sharewell-%016" PRIx64, sw_hash_bytes(SW_HASH_START, agent->runs_path, strlen(agent->runs_path)));
	int error = sw_cgroup_prepare(name, agent->cgroup, sizeof agent->cgroup, note, sizeof note);
	if (error != 0) {
		agent->cgroup[0] = '\0';
		sw_agent_say(agent, "jobs have no control groups: %s", strerror(error));
	} else if (note[0] != '\0') {
		sw_agent_say(agent, "control groups: %s", note);
	}
}

/* What keeps jobs to their GPUs. Only root's agents run jobs of several users, and only they can
 * have the kernel refuse files. */
static void say_device_rules(struct sw_agent *agent)
{
	char why[200] = "";
	if (geteuid() != 0)
		return;
	if (agent->options->no_device_rules)
		snprintf(why, sizeof why, "--device-rules off");
	else if (agent->cgroup[0] == '\0')
		snprintf(why, sizeof why, "there are no control groups of version 2");
	else if (sw_device_try() < 0)
		snprintf(why, sizeof why, "the kernel takes no rule for device files");
	if (why[0] == '\0')
		sw_agent_say(agent, "device rules: the kernel keeps jobs to their GPUs");
	else
		sw_agent_say(agent, "device rules: none, jobs are kept to their GPUs by their environment alone (%s)", why);
}

/* GPUs that a file describes have no driver, and nothing to run under. */
static void find_gpu_library(struct sw_agent *agent)
{
	const char *gpus = agent->options->gpus;
	if (gpus != NULL && strcmp(gpus, "auto") != 0 && strcmp(gpus, "nvml") != 0)
		return;
	char found[PATH_MAX];
	struct sw_err err = {0};
	if (sw_share_find_library(found, sizeof found, &err) < 0)
		sw_agent_say(agent, "jobs run without the GPU runtime: %s", err.fact);
	else if (realpath(found, agent->gpu_library) == NULL)
		agent->gpu_library[0] = '\0';
	if (agent->gpu_library[0] != '\0' && !sw_share_node_limit(agent->options->host_bytes))
		sw_agent_say(agent, "no bound holds for the host memory of all jobs together: cannot use '%s'", sw_share_node_path());
}

static int on_seen(void *context, struct sw_run_id id)
{
	return sw_agent_brain_seen(context, id);
}

static int open_brain(struct sw_agent *agent, struct sw_err *err)
{
	uint64_t random[2] = {0};
	if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
		return fail(err, "read", "random numbers");
	/* Sorts behind those of earlier starts, for controllers of version 0.1. */
	char instance[40];
	snprintf(instance, sizeof instance, "%016" PRIx64 "-%08" PRIx32, (uint64_t)sw_now_real_ns(), (uint32_t)random[0]);
	agent->node = agent->options->node;
	if (agent->node == NULL) {
		if (gethostname(agent->node_name, sizeof agent->node_name - 1) != 0)
			return fail(err, "read", "the name of this machine");
		agent->node = agent->node_name;
	}
	char machine[SW_IDENTITY_MACHINE_SIZE];
	struct sw_identity identity;
	sw_identity_machine(machine);
	int r = sw_identity_open(agent->state, machine, &identity, err);
	if (r < 0)
		return r;
	struct sw_agent_brain_config config = {
		.node = agent->node, .home = identity.home, .start = identity.start, .instance = instance, .seed = random[1]};
	if (agent->options->throttle != NULL)
		config.throttle = sw_throttle_find(agent->options->throttle);
	r = sw_agent_brain_new(&config, &agent->brain, err);
	if (r < 0)
		return r;
	r = sw_epochs_open(&agent->epochs, agent->state, on_seen, agent->brain);
	return r < 0 ? fail(err, "read the epochs in", agent->options->state) : 0;
}

static int open_events(struct sw_agent *agent, struct sw_err *err)
{
	agent->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (agent->timer < 0)
		return fail(err, "make", "a timer");
	agent->timer_event = event_new(agent->base, agent->timer, EV_READ | EV_PERSIST, on_timer, agent);
	bool good = agent->timer_event != NULL && event_add(agent->timer_event, NULL) == 0;
	if (good && agent->options->stop_fd >= 0) {
		agent->stop_event = event_new(agent->base, agent->options->stop_fd, EV_READ, on_stop, agent);
		good = agent->stop_event != NULL && event_add(agent->stop_event, NULL) == 0;
	}
	if (good && agent->options->signals) {
		agent->term_event = evsignal_new(agent->base, SIGTERM, on_stop, agent);
		agent->int_event = evsignal_new(agent->base, SIGINT, on_stop, agent);
		good = agent->term_event != NULL && agent->int_event != NULL && event_add(agent->term_event, NULL) == 0 &&
		       event_add(agent->int_event, NULL) == 0;
	}
	return good ? 0 : sw_err_set(err, SW_ENOMEM, "cannot start the agent: out of memory");
}

/* One file for each run that lives, and some. */
static void take_files(struct sw_agent *agent)
{
	if (getrlimit(RLIMIT_NOFILE, &agent->open_files) != 0)
		return;
	struct rlimit more = {agent->open_files.rlim_max, agent->open_files.rlim_max};
	setrlimit(RLIMIT_NOFILE, &more);
}

static int set_up(struct sw_agent *agent, struct sw_err *err)
{
	take_files(agent);
	int r = open_state(agent, err);
	if (r < 0)
		return r;
	open_cgroup(agent);
	say_device_rules(agent);
	find_gpu_library(agent);
	r = open_brain(agent, err);
	if (r == 0)
		r = sw_agent_nursery_start(agent, err);
	agent->base = event_base_new();
	if (r == 0 && agent->base == NULL)
		r = sw_err_set(err, SW_ENOMEM, "cannot start the agent: out of memory");
	if (r == 0 && sw_gone_open(&agent->gone, agent->base, agent->runs) < 0)
		r = sw_err_set(err, SW_ENOMEM, "cannot start the agent: out of memory");
	/* Before the poster: it forks. */
	if (r == 0)
		r = sw_agent_samples_start(agent, err);
	struct sw_poster_options poster = {
		.controller = agent->options->controller,
		.path = "/v1/agents/sync",
		.token = agent->options->token,
		.ca = agent->options->ca_file,
		.answer_max = SW_ANSWER_BYTES_MAX,
		.done = on_answer,
		.context = agent,
	};
	if (r == 0)
		r = sw_poster_new(agent->base, &poster, &agent->poster, err);
	if (r == 0)
		r = open_events(agent, err);
	return r < 0 ? r : sw_agent_scan(agent, err);
}

static void free_event(struct event *event)
{
	if (event != NULL)
		event_free(event);
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

static void tear_down(struct sw_agent *agent)
{
	while (agent->links.count > 0)
		sw_agent_unlink(agent, agent->links.items[agent->links.count - 1].link->id);
	sw_vec_free(&agent->links);
	sw_poster_free(agent->poster);
	sw_agent_samples_stop(agent);
	sw_gone_close(&agent->gone);
	free_event(agent->timer_event);
	free_event(agent->stop_event);
	free_event(agent->term_event);
	free_event(agent->int_event);
	if (agent->base != NULL)
		event_base_free(agent->base);
	sw_agent_brain_free(agent->brain);
	sw_kept_logs_close(&agent->kept_logs);
	sw_epochs_close(&agent->epochs);
	free(agent->runs_path);
	/* Goes only when no run is left in it. */
	if (agent->cgroup[0] != '\0' && strcmp(agent->options->cgroup, "auto") == 0)
		rmdir(agent->cgroup);
	close_fd(agent->timer);
	close_fd(agent->nursery);
	close_fd(agent->runs);
	close_fd(agent->lock);
	close_fd(agent->state);
	if (agent->open_files.rlim_max != 0)
		setrlimit(RLIMIT_NOFILE, &agent->open_files);
}

int sw_agent_run(const struct sw_agent_options *options, struct sw_err *err)
{
	struct sw_agent agent = {.options = options,
				 .state = -1,
				 .runs = -1,
				 .lock = -1,
				 .timer = -1,
				 .nursery = -1,
				 .kept_logs = {.folder = -1},
				 .epochs = {.fd = -1}};
	signal(SIGPIPE, SIG_IGN);
	curl_global_init(CURL_GLOBAL_DEFAULT);
	int r = set_up(&agent, err);
	if (r == 0) {
		/* The inventory comes first: it is there already, or arrives with the sampler's
		 * next line, whose event asks for the first sync. */
		sw_agent_pump(&agent);
		event_base_dispatch(agent.base);
	}
	tear_down(&agent);
	curl_global_cleanup();
	return r;
}
