/* sharewell up: one parent that keeps a controller and an agent running.
 *
 *  1. One `up` per state folder: it holds a lock on the file up.pid there.
 *  2. A child that ends is started again; one that fails three times at once, or before the cluster
 *     ever was ready, ends it all.
 *  3. When the parent is told to end, both children are; jobs go on under their supervisors.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/supervisor/supervisor.h"
#include "base/cleanup.h"
#include "base/now.h"
#include "cli/catalogue.h"
#include "cli/connect.h"
#include "cli/daemon.h"
#include "cli/endpoint.h"
#include "cli/gpu_rules.h"
#include "cli/live.h"
#include "cli/lost.h"
#include "cli/message.h"
#include "cli/places.h"
#include "cli/plugin.h"
#include "cli/share_places.h"
#include "cli/up.h"
#include "gpu/gpu.h"
#include "server/server.h"

enum { CONTROLLER = 0, AGENT, CHILDREN };
#define AT_ONCE_MS 2000
#define FAILURES_MAX 3
#define STOP_MS 10000
#define NODE_MS 5000
#define ARGS_MAX 44

struct values {
	const char *gpus, *policy, *placement, *plugin, *world, *state, *node;
	struct sw_cli_gpu_rules rules;
	struct sw_cli_endpoint endpoint;
	struct sw_cli_lost lost;
	uint64_t validate_every;
	bool detach;
};

struct child {
	const char *name;
	char *argv[ARGS_MAX];
	pid_t pid; /* 0: does not run */
	int64_t started_ms;
	unsigned failures; /* in a row, each at once */
};

struct cluster {
	struct sw_cli_places places;
	char place[PATH_MAX + 8]; /* "unix:..." */
	char address[256];	  /* "http://..."; "-"; the certificate's fingerprint behind a blank */
	char gpus_about[256];
	uint32_t gpu_count;
	char validate_every[24];
	struct child children[CHILDREN];
	sigset_t before; /* signals as they were, for children */
	bool logs;	 /* in the background: what all its processes say goes to a log */
};

/* ---- children */

static void start(struct cluster *cluster, struct child *child, int ready_fd)
{
	pid_t parent = getpid();
	child->started_ms = sw_now_monotonic_ms();
	child->pid = fork();
	if (child->pid != 0) {
		child->pid = child->pid < 0 ? 0 : child->pid;
		return;
	}
	/* Should the parent be killed, this one would not be restarted: it ends, too, and the next
	 * `up` finds a clean place. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	/* Ctrl-C is for the parent, which stops them in order. */
	setpgid(0, 0);
	if (getppid() != parent)
		_exit(1);
	sigprocmask(SIG_SETMASK, &cluster->before, NULL);
	if (cluster->logs)
		setenv(SW_CLI_LOG_TIMES, "1", 1);
	if (ready_fd >= 0) {
		char number[16];
		snprintf(number, sizeof number, "%d", ready_fd);
		fcntl(ready_fd, F_SETFD, 0);
		setenv(SW_CLI_READY_FD, number, 1);
	}
	execv("/proc/self/exe", child->argv);
	sw_cli_print_note("cannot start the %s: %s", child->name, strerror(errno));
	_exit(1);
}

static int exit_of(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* The controller, and what it says when clients can connect. Its exit status
 * where it ended instead. */
static int start_controller(struct cluster *cluster, struct sw_err *err)
{
	struct child *child = &cluster->children[CONTROLLER];
	int ends[2], status = 0;
	if (pipe2(ends, O_CLOEXEC) != 0)
		return sw_err_set(err, SW_EIO, "cannot make a pipe: %s", strerror(errno));
	start(cluster, child, ends[1]);
	close(ends[1]);
	ssize_t size;
	do
		size = read(ends[0], cluster->address, sizeof cluster->address - 1);
	while (size < 0 && errno == EINTR);
	close(ends[0]);
	cluster->address[size > 0 ? size - (cluster->address[size - 1] == '\n') : 0] = '\0';
	if (size > 0)
		return 0;
	/* It has said why. */
	if (child->pid > 0)
		waitpid(child->pid, &status, 0);
	child->pid = 0;
	int code = exit_of(status);
	return code != 0 ? code : SW_CLI_FAILED;
}

/* A new cluster knows no GPUs before its agent was heard. What comes right behind `up` in a script
 * would be told that there are none. Not for ever: that an agent fails is told by others, and so is
 * a signal. */
static void await_node(const struct cluster *cluster)
{
	SW_CLEANUP(sw_client_freep) struct sw_client *client = NULL;
	int64_t until = sw_now_monotonic_ms() + NODE_MS;
	sigset_t pending;
	if (sw_cli_connect(cluster->place, &client, NULL) < 0)
		return;
	while (sw_now_monotonic_ms() < until && sigpending(&pending) == 0 && sigisemptyset(&pending)) {
		SW_JSON *answer = NULL;
		if (sw_client_get(client, "/v1/nodes", &answer, NULL) == 0 && json_array_size(json_object_get(answer, "nodes")) > 0)
			return;
		poll(NULL, 0, 10);
	}
}

/* A child has ended. False: all is over. */
static bool revive(struct cluster *cluster, struct child *child, int status)
{
	bool at_once = sw_now_monotonic_ms() - child->started_ms < AT_ONCE_MS;
	child->pid = 0;
	child->failures = at_once ? child->failures + 1 : 1;
	if (WIFSIGNALED(status))
		sw_cli_print_note("the %s was ended by signal %d", child->name, WTERMSIG(status));
	else
		sw_cli_print_note("the %s ended with status %d", child->name, WEXITSTATUS(status));
	if (child->failures >= FAILURES_MAX) {
		sw_cli_print_note("the %s failed %d times at once: giving up", child->name, FAILURES_MAX);
		return false;
	}
	start(cluster, child, -1);
	return true;
}

/* The agent first: a controller that goes away under it would be news to it. */
static void stop_children(struct cluster *cluster)
{
	for (int i = CHILDREN - 1; i >= 0; i--) {
		struct child *child = &cluster->children[i];
		int64_t until = sw_now_monotonic_ms() + STOP_MS;
		if (child->pid > 0)
			kill(child->pid, SIGTERM);
		while (child->pid > 0 && waitpid(child->pid, NULL, WNOHANG) == 0) {
			if (sw_now_monotonic_ms() > until)
				kill(child->pid, SIGKILL);
			poll(NULL, 0, 5);
		}
		child->pid = 0;
	}
}

/* Until a signal says stop (0) or a child cannot be kept alive (1). */
static int watch(struct cluster *cluster, const sigset_t *signals)
{
	for (;;) {
		siginfo_t info;
		if (sigwaitinfo(signals, &info) < 0)
			continue;
		if (info.si_signo == SIGHUP) {
			kill(cluster->children[CONTROLLER].pid, SIGHUP);
			continue;
		}
		if (info.si_signo != SIGCHLD)
			return 0;
		for (int i = 0, status; i < CHILDREN; i++) {
			struct child *child = &cluster->children[i];
			if (child->pid > 0 && waitpid(child->pid, &status, WNOHANG) == child->pid && !revive(cluster, child, status))
				return SW_CLI_FAILED;
		}
	}
}

/* ---- the lock */

int sw_cli_up_lock(const char *path, pid_t *ret_holder, struct sw_err *err)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0) {
		sw_err_set(err, SW_EIO, "cannot open '%s'", path);
		sw_err_detail(err, "%s", strerror(errno));
		return SW_EIO;
	}
	if (fcntl(fd, F_SETLK, &lock) == 0)
		return fd;
	*ret_holder = fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK ? lock.l_pid : 0;
	close(fd);
	return SW_EDENIED;
}

static int take_lock(const struct cluster *cluster, struct sw_err *err)
{
	char path[PATH_MAX + 8];
	pid_t holder = 0;
	snprintf(path, sizeof path, "%s/up.pid", cluster->places.state);
	int fd = sw_cli_up_lock(path, &holder, err);
	if (fd == SW_EDENIED) {
		sw_err_set(err, SW_EINPUT, "Sharewell is up already in '%s'", cluster->places.state);
		sw_err_detail(err, "process %d", (int)holder);
		sw_err_hint(err, "'sharewell down' stops it; --state gives another cluster another place.");
		return SW_EINPUT;
	}
	if (fd >= 0 && ftruncate(fd, 0) == 0)
		dprintf(fd, "%d\n", (int)getpid());
	return fd;
}

/* ---- what people see */

static void print_places(const struct values *values, const struct cluster *cluster, FILE *out)
{
	bool named = values->state != NULL && !values->endpoint.all_users;
	char address[256];
	snprintf(address, sizeof address, "%s", cluster->address);
	char *pin = strchr(address, ' ');
	if (pin != NULL)
		*pin++ = '\0';
	fprintf(out, "Sharewell is up: %s\n", cluster->gpus_about);
	fprintf(out, "Listening on %s%s%s\n", cluster->places.socket, address[0] == 'h' ? " and " : "", address[0] == 'h' ? address : "");
	if (cluster->gpu_count == 0)
		fputs("There are no GPUs here, and jobs wait for some. '--gpus examples/gpus.yaml' makes believe there are four.\n", out);
	if (named)
		fprintf(out, "Other terminals find it after:\n  export SHAREWELL_STATE=%s\n", cluster->places.state);
	sw_cli_endpoint_print(address, pin != NULL ? pin : "", out);
	fputs("Submit a job:\n  sharewell submit -- sh -c 'echo hello from $SHAREWELL_NODE'\n", out);
	fflush(out);
}

/* ---- the beginning */

/* Pairs of an option and its value; a pair without a value was not given. */
static void add_words(struct child *child, const char *const (*pairs)[2], size_t pair_count)
{
	size_t count = 0;
	for (size_t i = 0; i < pair_count && count + 2 < ARGS_MAX; i++) {
		if (pairs[i][1] == NULL)
			continue;
		if (pairs[i][0] != NULL)
			child->argv[count++] = strdup(pairs[i][0]);
		child->argv[count++] = strdup(pairs[i][1]);
	}
	child->argv[count] = NULL;
}

/* Places are named to both: they would look for their own elsewhere. */
static void plan_children(const struct values *values, struct cluster *cluster)
{
	const struct sw_cli_endpoint *endpoint = &values->endpoint;
	snprintf(cluster->validate_every, sizeof cluster->validate_every, "%llu", (unsigned long long)values->validate_every);
	const char *const for_controller[][2] = {
		{NULL, "sharewell"},
		{NULL, "controller"},
		{"--state", cluster->places.state},
		{"--socket", cluster->places.socket},
		{"--policy", values->policy},
		{"--placement", values->placement},
		{"--plugin", values->plugin},
		{"--world", values->world},
		{"--on-lost-restart", values->lost.classes},
		{"--unreachable-after", values->lost.after},
		{"--validate-every", cluster->validate_every},
		{"--port", endpoint->port},
		{"--listen", endpoint->listen},
		{"--tls-cert", endpoint->tls_cert},
		{"--tls-key", endpoint->tls_key},
		{"--operators", endpoint->operators},
		{"--bounds", endpoint->bounds},
		{"--keep-jobs", endpoint->keep_jobs},
		{"--keep-for", endpoint->keep_for},
		{"--keep-history", endpoint->keep_history},
		{"--keep-events", endpoint->keep_events},
		{NULL, endpoint->self_signed ? "--tls-self-signed" : NULL},
		{NULL, endpoint->all_users ? "--all-users" : NULL},
	};
	const char *const for_agent[][2] = {
		{NULL, "sharewell"},
		{NULL, "agent"},
		{"--controller", cluster->place},
		{"--state", cluster->places.state},
		{"--gpus", values->gpus},
		{"--node", values->node},
		{"--throttle", values->rules.throttle},
		{"--host-memory", values->rules.host_memory},
		{"--strangers", values->rules.strangers},
		{"--stranger-memory", values->rules.stranger_memory},
		{"--exclude-gpus", values->rules.exclude_gpus},
		{"--trespass", values->rules.trespass},
		{"--device-rules", values->rules.device_rules},
		{"--driver-patience", values->rules.driver_patience},
	};
	cluster->children[CONTROLLER].name = "controller";
	cluster->children[AGENT].name = "agent";
	add_words(&cluster->children[CONTROLLER], for_controller, SW_CLI_COUNT_OF(for_controller));
	add_words(&cluster->children[AGENT], for_agent, SW_CLI_COUNT_OF(for_agent));
}

/* Wrong GPUs are found before anything is started. */
static int look_at_gpus(const char *source, struct cluster *cluster, struct sw_err *err)
{
	SW_CLEANUP(sw_gpu_source_closep) struct sw_gpu_source *gpus = NULL;
	int r = sw_gpu_source_open(source, &gpus, err);
	if (r < 0)
		return r;
	cluster->gpu_count = sw_gpu_source_count(gpus);
	snprintf(cluster->gpus_about, sizeof cluster->gpus_about, "%u %s (%.200s)", cluster->gpu_count,
		 cluster->gpu_count == 1 ? "GPU" : "GPUs", sw_gpu_source_about(gpus));
	return 0;
}

/* What the process in the background wrote before it failed. */
static void show_log(const char *path, off_t from)
{
	SW_CLEANUP(sw_freep) char *line = NULL;
	size_t room = 0;
	FILE *log = fopen(path, "re");
	if (log == NULL)
		return;
	if (fseeko(log, from, SEEK_SET) == 0)
		while (getline(&line, &room, log) > 0)
			fputs(sw_cli_unstamped(line), stderr);
	fclose(log);
}

/* Goes on in the background, where everything is written to a log. For the process that stays with
 * the user: 1 and the exit status, once the other one has said where it listens. */
static int detach(const struct values *values, struct cluster *cluster, int *ret_ready, struct sw_err *err)
{
	char path[PATH_MAX + 8];
	int ends[2], status = 0;
	snprintf(path, sizeof path, "%s/up.log", cluster->places.state);
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC), log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	off_t before = log >= 0 ? lseek(log, 0, SEEK_END) : 0;
	fflush(NULL);
	pid_t pid = null >= 0 && log >= 0 && pipe2(ends, O_CLOEXEC) == 0 ? fork() : -1;
	if (pid < 0)
		return sw_err_set(err, SW_EIO, "cannot go to the background: %s", strerror(errno));
	if (pid == 0) {
		setsid();
		dup2(null, STDIN_FILENO);
		dup2(log, STDOUT_FILENO);
		dup2(log, STDERR_FILENO);
		close(ends[0]);
		sw_cli_stamp_messages();
		*ret_ready = ends[1];
		return 0;
	}
	close(ends[1]);
	ssize_t size = read(ends[0], cluster->address, sizeof cluster->address - 1);
	if (size > 0) {
		cluster->address[size] = '\0';
		print_places(values, cluster, stdout);
		printf("It runs in the background and writes to %s; 'sharewell down' stops it.\n", path);
		return 1;
	}
	waitpid(pid, &status, 0);
	show_log(path, before);
	return 1 + exit_of(status);
}

static int keep_up(const struct values *values, struct cluster *cluster, int background, struct sw_err *err)
{
	sigset_t signals;
	int lock = take_lock(cluster, err);
	if (lock < 0)
		return lock;
	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, &cluster->before);
	int r = start_controller(cluster, err);
	if (r != 0)
		return r;
	start(cluster, &cluster->children[AGENT], -1);
	await_node(cluster);
	if (background >= 0) {
		(void)!write(background, cluster->address, strlen(cluster->address));
		close(background);
	} else {
		print_places(values, cluster, stdout);
		puts("Ctrl-C stops Sharewell; jobs that run go on, and are found again at the next 'sharewell up'.");
		fflush(stdout);
	}
	r = watch(cluster, &signals);
	stop_children(cluster);
	if (background < 0 && r == 0)
		sw_cli_print_note("stopped; jobs that run go on, and are found again at the next 'sharewell up'");
	return r;
}

static int run(const struct sw_cli_call *call, struct sw_err *err)
{
	const struct values *values = call->values;
	static struct cluster cluster;
	int ready = -1;
	int r = sw_cli_endpoint_places(&values->endpoint, values->state, &cluster.places, err);
	if (r == 0 && values->endpoint.all_users && geteuid() != 0) {
		sw_err_set(err, SW_EDENIED, "only root can start jobs of all users");
		sw_err_hint(err, "Without --all-users the cluster is yours alone.");
		return SW_EDENIED;
	}
	const struct sw_policy *plugin = NULL;
	SW_CLEANUP(sw_world_freep) struct sw_world *world = NULL;
	uint64_t host_bytes;
	if (r == 0 && values->rules.host_memory != NULL)
		r = sw_cli_share_size("host-memory", values->rules.host_memory, &host_bytes, err);
	r = r < 0 ? r : sw_controller_load_world(values->world, &world, err);
	r = r < 0 ? r : sw_cli_endpoint_check(&values->endpoint, getenv(SW_FAILURES_VARIABLE), err);
	if (r == 0 && values->plugin != NULL)
		r = sw_cli_load_live_policy(values->plugin, &plugin, err);
	r = r < 0 ? r : look_at_gpus(values->gpus, &cluster, err);
	r = r < 0 ? r : sw_cli_places_make(&cluster.places, values->endpoint.all_users, err);
	if (r < 0)
		return r;
	snprintf(cluster.place, sizeof cluster.place, "unix:%s", cluster.places.socket);
	plan_children(values, &cluster);
	cluster.logs = values->detach;
	if (values->detach) {
		r = detach(values, &cluster, &ready, err);
		if (r != 0)
			return r < 0 ? r : r - 1;
	}
	r = keep_up(values, &cluster, ready, err);
	for (int i = 0; i < CHILDREN; i++)
		for (char **word = cluster.children[i].argv; *word != NULL; word++)
			free(*word);
	return r;
}

static const struct sw_cli_option options[] = {
	{"gpus", 'g', .kind = SW_CLI_TEXT, .is_path = true, .argument = "SOURCE", .preset = "auto",
	 .about = "auto (what the driver has), none, or a file that describes GPUs", .offset = offsetof(struct values, gpus)},
	{"policy", 'p', .kind = SW_CLI_WORD, .argument = "NAME", .words = &sw_cli_policy_names,
	 .about = "the policy of a new cluster; one that was set later stays", .offset = offsetof(struct values, policy)},
	{"placement", 'P', .kind = SW_CLI_WORD, .argument = "NAME", .words = &sw_cli_placement_words, .about = "the placement rule",
	 .offset = offsetof(struct values, placement)},
	{"plugin", .kind = SW_CLI_TEXT, .is_path = true, .argument = "FILE",
	 .about = "a policy of your own, for 'sharewell policy NAME'; needed at every start while it is in charge",
	 .offset = offsetof(struct values, plugin)},
	{"world", 'w', .kind = SW_CLI_TEXT, .is_path = true, .argument = "WORLD",
	 .about = "the terms of the cluster: a name, or a YAML file of your own; one that was set later stays (" SW_WORLD_LIVE ")",
	 .offset = offsetof(struct values, world)},
	{"state", .kind = SW_CLI_TEXT, .is_path = true, .argument = "DIR",
	 .about = "where everything is kept; below $XDG_STATE_HOME by default", .offset = offsetof(struct values, state)},
	{"node", .kind = SW_CLI_TEXT, .argument = "NAME", .about = "what this node is called; the machine's name by default",
	 .offset = offsetof(struct values, node)},
	SW_CLI_GPU_RULES_OPTIONS(struct values),
	{"detach", 'd', .about = "go on in the background", .offset = offsetof(struct values, detach)},
	SW_CLI_LOST_OPTIONS(struct values),
	SW_CLI_VALIDATE_OPTION(struct values),
	SW_CLI_ENDPOINT_OPTIONS(struct values),
};

static const struct sw_cli_example examples[] = {
	{"sharewell up", "share the GPUs of this machine"},
	{"sharewell up --gpus examples/gpus.yaml", "try it without a GPU"},
	{"sharewell up --detach --policy gittins", "go on in the background, with another policy"},
};

const struct sw_cli_command sw_cli_up = {
	.name = "up",
	.about = "start a cluster on this machine: controller and agent",
	.text = "No root is needed. Ctrl-C stops both; jobs that run go on and are found again at the next start. What ends by accident is "
		"started again.",
	SW_CLI_OPTIONS(options),
	SW_CLI_EXAMPLES(examples),
	.values_size = sizeof(struct values),
	.run = run,
};
