/* The life of a supervisor: it takes charge of the folder, then waits for what happens. */
#include "agent/supervisor/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "agent/folder.h"
#include "agent/supervisor/account.h"
#include "agent/supervisor/begin.h"
#include "agent/supervisor/gpu.h"
#include "agent/supervisor/move.h"
#include "agent/supervisor/nursery.h"
#include "agent/supervisor/recover.h"
#include "agent/supervisor/state.h"
#include "agent/supervisor/tree.h"
#include "agent/supervisor/words.h"
#include "base/cleanup.h"
#include "base/now.h"

/* ---- requests */

/* "stop ORDER SIGNAL GRACE_MS", "suspend ORDER [deep]", "resume ORDER", "move ORDER GPUS";
 * false: it is none of them. */
static bool obey(struct sw_supervisor *supervisor, const char *line)
{
	const struct sw_run_spec *spec = supervisor->spec;
	unsigned long long order;
	unsigned signal;
	long long grace_ms;
	int deep = 0, gpus = 0;
	if (sscanf(line, "stop %llu %u %lld", &order, &signal, &grace_ms) == 3 && signal < NSIG)
		sw_supervisor_stop(supervisor, SW_REASON_STOPPED, signal != 0 ? signal : spec->stop_signal,
				   grace_ms >= 0 ? grace_ms : spec->grace_ms);
	else if (sscanf(line, "suspend %llu deep%n", &order, &deep) >= 1)
		sw_supervisor_suspend(supervisor, deep > 0);
	else if (sscanf(line, "move %llu %n", &order, &gpus) == 1 && gpus > 0)
		sw_supervisor_move(supervisor, line + gpus);
	else if (sscanf(line, "resume %llu", &order) != 1)
		return false;
	else if (!supervisor->stopping)
		sw_supervisor_resume(supervisor);
	supervisor->account.order = order;
	return true;
}

/* The agent saw it on a GPU that it was not given. */
static void stop_trespasser(struct sw_supervisor *supervisor, const char *gpu)
{
	char detail[200];
	snprintf(detail, sizeof detail, "a process of it used GPU %.60s, which it was not given", gpu);
	sw_supervisor_blame(supervisor, SW_REASON_TRESPASS, detail);
	sw_supervisor_stop(supervisor, SW_REASON_TRESPASS, supervisor->spec->stop_signal, supervisor->spec->grace_ms);
}

static void on_request(void *context, int client, const char *line)
{
	static const char unknown[] = "{\"error\":\"unknown request\"}";
	struct sw_supervisor *supervisor = context;
	long long deadline;
	if (strcmp(line, "status") == 0 || obey(supervisor, line))
		sw_supervisor_say(supervisor, client);
	else if (strncmp(line, "why ", 4) == 0)
		sw_supervisor_hear_why(supervisor, line + 4);
	else if (strncmp(line, "gpu ", 4) == 0)
		sw_supervisor_gpu_terms(supervisor, line + 4);
	else if (strncmp(line, "trespass ", 9) == 0)
		stop_trespasser(supervisor, line + 9);
	else if (sscanf(line, "lease %lld", &deadline) == 1)
		supervisor->lease_ns = deadline > supervisor->lease_ns ? deadline : supervisor->lease_ns;
	else
		sw_control_say(&supervisor->control, client, unknown, sizeof unknown - 1);
}

/* ---- the loop */

static void on_signals(struct sw_supervisor *supervisor)
{
	struct signalfd_siginfo info;
	while (read(supervisor->signals, &info, sizeof info) == (ssize_t)sizeof info)
		if (info.ssi_signo == SIGTERM)
			sw_supervisor_stop(supervisor, SW_REASON_SHUTDOWN, supervisor->spec->stop_signal, supervisor->spec->grace_ms);
	sw_supervisor_reap(supervisor);
}

/* The clock of leases goes on while the machine sleeps, so the timer's must too. */
static void set_timer(const struct sw_supervisor *supervisor)
{
	int64_t next = sw_supervisor_next(supervisor);
	struct itimerspec when = {0};
	if (next != SW_NEVER) {
		if (next < 1)
			next = 1;
		when.it_value.tv_sec = next / SW_NS_PER_S;
		when.it_value.tv_nsec = next % SW_NS_PER_S;
	}
	timerfd_settime(supervisor->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

static void run_loop(struct sw_supervisor *supervisor)
{
	enum { SIGNALS, TIMER, READY, REPORT, OUTPUT, CONTROL, COUNT = CONTROL + SW_CONTROL_POLLS };
	while (supervisor->stage != SW_STAGE_DONE) {
		set_timer(supervisor);
		struct pollfd polls[COUNT] = {
			[SIGNALS] = {.fd = supervisor->signals, .events = POLLIN},
			[TIMER] = {.fd = supervisor->timer, .events = POLLIN},
			[READY] = {.fd = supervisor->ready, .events = POLLIN},
			[REPORT] = {.fd = supervisor->report, .events = POLLIN},
			[OUTPUT] = {.fd = sw_supervisor_unread(supervisor), .events = POLLIN},
		};
		sw_control_polls(&supervisor->control, &polls[CONTROL]);
		if (poll(polls, COUNT, -1) < 0)
			continue;
		uint64_t expirations;
		if (polls[TIMER].revents != 0)
			(void)!read(supervisor->timer, &expirations, sizeof expirations);
		if (polls[READY].revents != 0)
			sw_supervisor_on_ready(supervisor);
		if (polls[REPORT].revents != 0)
			sw_supervisor_on_report(supervisor);
		if (polls[OUTPUT].revents != 0)
			sw_supervisor_on_output(supervisor);
		if (polls[SIGNALS].revents != 0)
			on_signals(supervisor);
		sw_control_handle(&supervisor->control, &polls[CONTROL], on_request, supervisor);
		sw_supervisor_tick(supervisor, sw_now_boot_ns());
	}
}

/* ---- taking charge */

static int fail(struct sw_err *err, const char *what)
{
	int error = errno;
	sw_err_set(err, SW_EIO, "cannot supervise a run: %s", what);
	sw_err_detail(err, "%s", strerror(error));
	return SW_EIO;
}

/* What every supervisor does to itself first. */
static void settle_in(void)
{
	setsid();
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	umask(077);
	/* If memory runs out, the kernel should take a job. Only root may ask for that. */
	int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (score >= 0) {
		(void)!write(score, "-500", 4);
		close(score);
	}
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)!open("/dev/null", O_RDWR);
}

static int open_loop(struct sw_supervisor *supervisor, struct sw_err *err)
{
	static const int ignored[] = {SIGHUP, SIGINT, SIGPIPE, SIGUSR1, SIGUSR2, SIGXFSZ};
	for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++)
		signal(ignored[i], SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_SETMASK, &set, NULL);
	supervisor->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	supervisor->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (supervisor->signals < 0 || supervisor->timer < 0)
		return fail(err, "no timer or signals");
	void *page = mmap(NULL, sizeof *supervisor->tail, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return fail(err, "no memory");
	supervisor->tail = page;
	return 0;
}

/* The intent, on disk for good: from here on no other process will ever start this run. Flushing a
 * folder that is new carries its own name above it, on the file systems that matter. */
static int record_intent(struct sw_supervisor *supervisor, struct sw_err *err)
{
	unsigned char random[16];
	if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
		return fail(err, "no random numbers");
	for (size_t i = 0; i < sizeof random; i++)
		snprintf(supervisor->token + 2 * i, 3, "%02x", random[i]);
	struct sw_process self = {0};
	(void)sw_process_read(getpid(), &self);
	char text[128];
	int size = snprintf(text, sizeof text, "%ld %" PRIu64 " %s\n", (long)getpid(), self.started, supervisor->token);
	int r = sw_folder_write(supervisor->folder, "pid", text, (size_t)size, false, err);
	if (r < 0)
		return r;
	return fsync(supervisor->folder) != 0 ? fail(err, "its folder cannot be made durable") : 0;
}

static void open_cgroup(struct sw_supervisor *supervisor, const char *name)
{
	const struct sw_run_spec *spec = supervisor->spec;
	bool limited = spec->cpus > 0 || spec->memory_bytes > 0;
	supervisor->cgroup.folder = -1;
	if (supervisor->order->cgroup == NULL) {
		if (limited)
			sw_supervisor_add_note(supervisor, "its memory and processor time are not limited: there is no control group");
		return;
	}
	char note[200] = "";
	/* Contents of its GPUs that have to leave them are there at our wish, not at its own. */
	uint64_t memory_bytes = spec->memory_bytes > 0 ? spec->memory_bytes + supervisor->gpu.host_bytes : 0;
	int error = sw_cgroup_open(&supervisor->cgroup, supervisor->order->cgroup, name, spec->cpus, memory_bytes, note, sizeof note);
	if (error != 0)
		snprintf(note, sizeof note, "it has no control group: %s", strerror(error));
	if (note[0] != '\0')
		sw_supervisor_add_note(supervisor, note);
	sw_supervisor_keep_gpus(supervisor);
}

static void release(struct sw_supervisor *supervisor)
{
	sw_processes_release(&supervisor->processes);
	sw_supervisor_gpu_close(supervisor);
	if (supervisor->notes >= 0)
		close(supervisor->notes);
	if (supervisor->device_program >= 0)
		close(supervisor->device_program);
	sw_cgroup_close(&supervisor->cgroup);
	close(supervisor->signals);
	close(supervisor->timer);
	if (supervisor->tail != NULL)
		munmap(supervisor->tail, sizeof *supervisor->tail);
}

/* Runs the job of a folder that is ours. */
static int supervise_new(int folder, const char *name, int link, struct sw_err *err)
{
	SW_CLEANUP(sw_run_order_freep) struct sw_run_order *order = NULL;
	int r = sw_folder_order(folder, &order, err);
	if (r < 0)
		return r;
	struct sw_supervisor supervisor = {
		.folder = folder,
		.order = order,
		.spec = order->want.spec,
		.signals = -1,
		.timer = -1,
		.ready = -1,
		.report = -1,
		.streams = {-1, -1},
		.notes = -1,
		.account = {.run = {.id = order->want.id, .reason = ""}, .supervisor = (uint32_t)getpid()},
		.lease_ns = order->lease_boot_ns != 0 ? order->lease_boot_ns : SW_NEVER,
		.kill_at_ns = SW_NEVER,
		.look_at_ns = SW_NEVER,
		.give_up_at_ns = SW_NEVER,
		.record_at_ns = SW_NEVER,
		.settle_at_ns = sw_now_boot_ns() + SW_SETTLE_NS,
		.running_since_ns = SW_NEVER,
		.deep = {.look_at_ns = SW_NEVER},
		.move = {.look_at_ns = SW_NEVER},
		.cgroup = {.folder = -1},
		.device_program = -1,
	};
	r = open_loop(&supervisor, err);
	sw_control_open(&supervisor.control, link);
	if (r == 0)
		r = record_intent(&supervisor, err);
	if (r == 0) {
		sw_supervisor_gpu_open(&supervisor);
		open_cgroup(&supervisor, name);
		if (sw_now_boot_ns() < supervisor.lease_ns)
			sw_supervisor_begin(&supervisor);
		sw_supervisor_tick(&supervisor, sw_now_boot_ns());
		run_loop(&supervisor);
	}
	sw_control_close(&supervisor.control);
	release(&supervisor);
	return r;
}

/* Goes into the folder, so that its own names are short; *ret_name is its last one. */
static int enter_folder(const char *path, int *ret_folder, char ret_name[SW_FOLDER_NAME_MAX])
{
	char whole[PATH_MAX];
	if (chdir(path) != 0 || getcwd(whole, sizeof whole) == NULL)
		return errno;
	int folder = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0)
		return errno;
	const char *name = strrchr(whole, '/') + 1;
	snprintf(ret_name, SW_FOLDER_NAME_MAX, "%.*s", SW_FOLDER_NAME_MAX - 1, name);
	*ret_folder = folder;
	return 0;
}

int sw_supervise_folder(const char *path, int link, struct sw_err *err)
{
	settle_in();
	char name[SW_FOLDER_NAME_MAX], title[16];
	int folder = -1;
	int error = enter_folder(path, &folder, name);
	if (error != 0) {
		sw_err_set(err, error == ENOENT ? SW_ENOTFOUND : SW_EIO, "cannot supervise the run in '%s'", path);
		sw_err_detail(err, "%s", strerror(error));
		return error == ENOENT ? SW_ENOTFOUND : SW_EIO;
	}
	snprintf(title, sizeof title, "sw:%.12s", name);
	prctl(PR_SET_NAME, title);
	int lock = -1;
	int r = sw_folder_lock(folder, "spec.json", &lock, err);
	if (r == 0 && !sw_folder_has(folder, "exit.json")) {
		if (!sw_folder_has(folder, "pid") && !sw_folder_has(folder, "lost"))
			r = supervise_new(folder, name, link, err);
		else
			r = sw_supervisor_recover(folder, name, err);
	}
	if (lock >= 0)
		close(lock);
	close(folder);
	return r;
}

int sw_supervise(const char *folder, struct sw_err *err)
{
	if (strcmp(folder, "-") == 0)
		return sw_nursery(0, err);
	const char *link = getenv(SW_SUPERVISOR_LINK);
	int fd = link != NULL ? atoi(link) : -1;
	if (fd >= 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
		fd = -1;
	return sw_supervise_folder(folder, fd, err);
}
