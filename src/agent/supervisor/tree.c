/* What happens to the processes of the job: stop, suspend, resume, time, and the end. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/supervisor/account.h"
#include "agent/supervisor/begin.h"
#include "agent/supervisor/deep.h"
#include "agent/supervisor/gpu.h"
#include "agent/supervisor/move.h"
#include "agent/supervisor/state.h"
#include "agent/supervisor/tree.h"
#include "agent/supervisor/words.h"
#include "base/now.h"

#define FIRST_LOOK_NS (2 * SW_NS_PER_MS)
#define LONGEST_LOOK_NS (200 * SW_NS_PER_MS)
enum { ROUNDS = 5 };

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Chooses all processes of the job; how many live. Where /proc cannot be read there is always one
 * more, so that nothing counts as done. */
static size_t look(struct sw_supervisor *supervisor)
{
	if (sw_processes_read(&supervisor->processes) < 0) {
		supervisor->processes.list.count = 0;
		return SIZE_MAX;
	}
	pid_t others[] = {supervisor->logger, supervisor->deep.helper, sw_supervisor_deep_worker(supervisor)}, except[4] = {0};
	size_t count = 0;
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
		if (others[i] > 0)
			except[count++] = others[i];
	return sw_processes_choose_tree(&supervisor->processes, getpid(), except);
}

static void signal_tree(struct sw_supervisor *supervisor, int signal)
{
	if (look(supervisor) > 0)
		sw_processes_signal(&supervisor->processes, signal);
}

/* Orphans become children of this process, so a tree without children is empty. A look meets
 * processes by their numbers. When these start over, it can miss one that forks and ends
 * meanwhile; but not twice in a row. */
static bool is_empty(struct sw_supervisor *supervisor)
{
	return !sw_process_has_children(supervisor->logger) || (look(supervisor) == 0 && look(supervisor) == 0);
}

static void look_again(struct sw_supervisor *supervisor, int64_t now_ns)
{
	supervisor->look_at_ns = now_ns + supervisor->look_step_ns;
	supervisor->look_step_ns = earlier(supervisor->look_step_ns * 2, LONGEST_LOOK_NS);
}

/* ---- killing */

static void kill_pass(struct sw_supervisor *supervisor, int64_t now_ns)
{
	sw_cgroup_kill(&supervisor->cgroup);
	size_t living = 0, refused = 0;
	/* A process that forks as fast as it is killed is met again at once. */
	for (int round = 0; round < ROUNDS; round++) {
		living = look(supervisor);
		if (living == 0)
			break;
		refused = sw_processes_signal(&supervisor->processes, SIGKILL);
	}
	look_again(supervisor, now_ns);
	if (supervisor->stage == SW_STAGE_ENDING && living > 0 && living == refused && now_ns >= supervisor->give_up_at_ns) {
		sw_supervisor_add_note(supervisor, "processes of other users are left that could not be killed");
		sw_supervisor_drain(supervisor);
	}
}

static void begin_killing(struct sw_supervisor *supervisor, int64_t now_ns)
{
	supervisor->killing = true;
	supervisor->kill_at_ns = SW_NEVER;
	supervisor->look_step_ns = FIRST_LOOK_NS;
	supervisor->give_up_at_ns = now_ns + SW_UNREACHABLE_NS;
	kill_pass(supervisor, now_ns);
}

/* A run that has no process yet ends here. */
static bool ends_early(struct sw_supervisor *supervisor)
{
	if (supervisor->stage != SW_STAGE_PREPARING)
		return false;
	snprintf(supervisor->detail, sizeof supervisor->detail, "its command had not been started");
	supervisor->account.run.detail = supervisor->detail;
	sw_supervisor_drain(supervisor);
	return true;
}

void sw_supervisor_stop(struct sw_supervisor *supervisor, const char *reason, uint32_t signal, int64_t grace_ms)
{
	if (supervisor->stage >= SW_STAGE_ENDING || supervisor->killing)
		return;
	int64_t now_ns = sw_now_boot_ns();
	sw_supervisor_blame(supervisor, reason, NULL);
	if (ends_early(supervisor))
		return;
	/* The same wish may be told again; its signal is sent once. */
	bool news = !supervisor->stopping || supervisor->stop_signal != signal;
	sw_supervisor_move_cancel(supervisor, "it is to end");
	if (!supervisor->stopping)
		sw_supervisor_log_stop(supervisor, reason);
	supervisor->stopping = true;
	supervisor->stop_signal = signal;
	if (grace_ms <= 0) {
		begin_killing(supervisor, now_ns);
		return;
	}
	supervisor->kill_at_ns = earlier(supervisor->kill_at_ns, now_ns + grace_ms * SW_NS_PER_MS);
	if (news)
		signal_tree(supervisor, (int)signal);
	/* It waits for a process that stands still until that one runs. */
	if (supervisor->pause != SW_PAUSE_NONE)
		sw_supervisor_resume(supervisor);
	else if (news)
		signal_tree(supervisor, SIGCONT);
}

/* ---- suspending */

static void suspend_pass(struct sw_supervisor *supervisor, int64_t now_ns)
{
	int still = 0;
	if (!sw_supervisor_gpu_has_left(supervisor, now_ns) || !sw_supervisor_deep_is_settled(supervisor, now_ns)) {
		look_again(supervisor, now_ns);
		return;
	}
	for (int round = 0; round < ROUNDS && still < 2; round++) {
		size_t living = look(supervisor);
		/* One look may miss a child that was born behind it; it cannot miss it twice once
		 * its parent stands still. */
		if (living > 0 && living != SIZE_MAX && sw_processes_are_stopped(&supervisor->processes)) {
			still++;
			continue;
		}
		still = 0;
		sw_processes_signal(&supervisor->processes, SIGSTOP);
	}
	if (still < 2) {
		look_again(supervisor, now_ns);
		return;
	}
	supervisor->pause = SW_PAUSE_HERE;
	supervisor->look_at_ns = SW_NEVER;
	if (supervisor->running_since_ns != SW_NEVER)
		supervisor->ran_ns += now_ns - supervisor->running_since_ns;
	supervisor->running_since_ns = SW_NEVER;
	sw_supervisor_log_suspend(supervisor, now_ns);
	sw_supervisor_enter(supervisor, SW_RUN_SUSPENDED);
}

/* One that stands still already has to be awake for this: the driver asks the processes
 * themselves. */
static void deepen(struct sw_supervisor *supervisor)
{
	if (supervisor->account.run.depth == SW_DEPTH_OFF)
		return;
	sw_supervisor_deep_wish(supervisor, true);
	if (supervisor->pause == SW_PAUSE_COMING)
		return;
	supervisor->pause = SW_PAUSE_COMING;
	supervisor->look_step_ns = FIRST_LOOK_NS;
	sw_supervisor_gpu_leave(supervisor, sw_now_boot_ns());
	signal_tree(supervisor, SIGCONT);
	suspend_pass(supervisor, sw_now_boot_ns());
}

void sw_supervisor_suspend(struct sw_supervisor *supervisor, bool deep)
{
	/* The job may run already and have said so, and its supervisor not have heard:
	 * the order is told once. */
	if (supervisor->stage < SW_STAGE_RUNNING) {
		supervisor->suspends_first = true;
		supervisor->deep_first = deep;
		return;
	}
	if (supervisor->stage != SW_STAGE_RUNNING || supervisor->stopping || supervisor->killing)
		return;
	if (supervisor->pause != SW_PAUSE_NONE) {
		if (deep)
			deepen(supervisor);
		return;
	}
	if (supervisor->spec->suspend == SW_SUSPEND_NONE) {
		if (supervisor->note[0] == '\0')
			sw_supervisor_add_note(supervisor, "it was to be suspended, but its spec does not allow that");
		return;
	}
	sw_supervisor_move_cancel(supervisor, "it was suspended before it could go");
	supervisor->pause = SW_PAUSE_COMING;
	supervisor->look_step_ns = FIRST_LOOK_NS;
	sw_supervisor_deep_wish(supervisor, deep);
	sw_supervisor_gpu_leave(supervisor, sw_now_boot_ns());
	suspend_pass(supervisor, sw_now_boot_ns());
}

void sw_supervisor_resume(struct sw_supervisor *supervisor)
{
	supervisor->suspends_first = false;
	if (supervisor->pause == SW_PAUSE_NONE)
		return;
	bool stood = supervisor->account.run.state == SW_RUN_SUSPENDED;
	supervisor->pause = SW_PAUSE_NONE;
	if (!supervisor->killing)
		supervisor->look_at_ns = SW_NEVER;
	/* First, so that no process that wakes up goes on with leaving. */
	sw_supervisor_deep_return(supervisor, sw_now_boot_ns());
	sw_supervisor_log_resume(supervisor, sw_now_boot_ns());
	signal_tree(supervisor, SIGCONT);
	if (!stood)
		return;
	supervisor->running_since_ns = sw_now_boot_ns();
	sw_supervisor_enter(supervisor, SW_RUN_RUNNING);
}

/* ---- the end */

static void job_ended(struct sw_supervisor *supervisor, int status)
{
	if (supervisor->report >= 0)
		sw_supervisor_on_report(supervisor);
	struct sw_sync_run *run = &supervisor->account.run;
	supervisor->job = 0;
	supervisor->stage = SW_STAGE_ENDING;
	run->code = WIFEXITED(status) ? (uint32_t)WEXITSTATUS(status) : 0;
	run->signal = WIFSIGNALED(status) ? (uint32_t)WTERMSIG(status) : 0;
	run->ended_at_ns = sw_now_real_ns();
}

/* What the job left behind gets a signal and a little time. */
static void begin_ending(struct sw_supervisor *supervisor)
{
	bool paused = supervisor->pause != SW_PAUSE_NONE;
	supervisor->pause = SW_PAUSE_NONE;
	if (paused)
		sw_supervisor_deep_return(supervisor, sw_now_boot_ns());
	if (supervisor->killing)
		return;
	int64_t grace_ms = earlier(supervisor->spec->grace_ms, SW_LEFTOVER_GRACE_MS);
	supervisor->kill_at_ns = earlier(supervisor->kill_at_ns, sw_now_boot_ns() + grace_ms * SW_NS_PER_MS);
	supervisor->look_at_ns = SW_NEVER;
	if (!supervisor->stopping)
		signal_tree(supervisor, (int)supervisor->spec->stop_signal);
	signal_tree(supervisor, SIGCONT);
}

static void add_usage(struct sw_supervisor *supervisor, const struct rusage *usage)
{
	struct sw_sync_run *run = &supervisor->account.run;
	uint64_t rss = (uint64_t)usage->ru_maxrss * 1024;
	if (rss > run->max_rss_bytes)
		run->max_rss_bytes = rss;
	run->cpu_ns += (uint64_t)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * SW_NS_PER_S +
		       (uint64_t)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) * SW_NS_PER_US;
}

void sw_supervisor_reap(struct sw_supervisor *supervisor)
{
	struct rusage usage;
	int status;
	bool was_ending = supervisor->stage >= SW_STAGE_ENDING;
	for (pid_t pid; (pid = wait4(-1, &status, WNOHANG, &usage)) > 0;) {
		if (pid == supervisor->logger) {
			supervisor->logger = 0;
			continue;
		}
		if (sw_supervisor_deep_reaped(supervisor, pid))
			continue;
		add_usage(supervisor, &usage);
		if (pid == supervisor->job)
			job_ended(supervisor, status);
	}
	if (supervisor->stage == SW_STAGE_ENDING) {
		if (is_empty(supervisor))
			sw_supervisor_drain(supervisor);
		else if (!was_ending)
			begin_ending(supervisor);
	}
}

/* ---- time */

/* When a duration of running time will have passed. */
static int64_t when_ran(const struct sw_supervisor *supervisor, int64_t duration_ms)
{
	if (supervisor->running_since_ns == SW_NEVER)
		return SW_NEVER;
	return supervisor->running_since_ns + duration_ms * SW_NS_PER_MS - supervisor->ran_ns;
}

static int64_t limit_at(const struct sw_supervisor *supervisor)
{
	bool counts = supervisor->stage == SW_STAGE_RUNNING && !supervisor->stopping && !supervisor->killing;
	return counts && supervisor->spec->time_limit_ms > 0 ? when_ran(supervisor, supervisor->spec->time_limit_ms) : SW_NEVER;
}

static int64_t warn_at(const struct sw_supervisor *supervisor)
{
	const struct sw_run_spec *spec = supervisor->spec;
	if (supervisor->warned || spec->warn_signal == 0 || limit_at(supervisor) == SW_NEVER)
		return SW_NEVER;
	return when_ran(supervisor, spec->time_limit_ms > spec->warn_ms ? spec->time_limit_ms - spec->warn_ms : 0);
}

/* The controller may start the job elsewhere soon. One that stands still gets no grace: it would
 * have to wake up on GPUs that others may have by now. */
static void end_lease(struct sw_supervisor *supervisor)
{
	supervisor->lease_is_over = true;
	if (supervisor->stage < SW_STAGE_ENDING)
		sw_supervisor_blame(supervisor, SW_REASON_LEASE, "the controller gave no sign of life for as long as its lease is");
	sw_supervisor_stop(supervisor, SW_REASON_LEASE, supervisor->spec->stop_signal,
			   supervisor->pause == SW_PAUSE_NONE ? supervisor->spec->grace_ms : 0);
}

static void keep_limits(struct sw_supervisor *supervisor, int64_t now_ns)
{
	const struct sw_run_spec *spec = supervisor->spec;
	if (now_ns >= warn_at(supervisor)) {
		supervisor->warned = true;
		signal_tree(supervisor, (int)spec->warn_signal);
	}
	if (now_ns >= limit_at(supervisor))
		sw_supervisor_stop(supervisor, SW_REASON_TIME_LIMIT, spec->stop_signal, spec->grace_ms);
	if (now_ns >= supervisor->lease_ns && !supervisor->lease_is_over)
		end_lease(supervisor);
	if (supervisor->stage <= SW_STAGE_ENDING && !supervisor->killing && now_ns >= supervisor->kill_at_ns)
		begin_killing(supervisor, now_ns);
}

static void stop_draining(struct sw_supervisor *supervisor)
{
	/* It may hang in a dead file system, deaf even to this. */
	if (supervisor->logger > 0)
		kill(supervisor->logger, SIGKILL);
	supervisor->logger = 0;
	sw_supervisor_add_note(supervisor, "the end of its output may be missing: it could not be written in time");
	sw_supervisor_record(supervisor);
}

void sw_supervisor_tick(struct sw_supervisor *supervisor, int64_t now_ns)
{
	keep_limits(supervisor, now_ns);
	bool alone = supervisor->control.listener < 0 && !sw_control_has_clients(&supervisor->control);
	if (supervisor->stage <= SW_STAGE_ENDING && (now_ns >= supervisor->settle_at_ns || (alone && supervisor->settle_at_ns != SW_NEVER)))
		sw_supervisor_settle(supervisor, now_ns);
	if (supervisor->stage <= SW_STAGE_ENDING && now_ns >= supervisor->look_at_ns) {
		if (supervisor->killing)
			kill_pass(supervisor, now_ns);
		else if (supervisor->pause == SW_PAUSE_COMING)
			suspend_pass(supervisor, now_ns);
		else
			supervisor->look_at_ns = SW_NEVER;
	}
	if (supervisor->stage <= SW_STAGE_ENDING) {
		sw_supervisor_deep_tick(supervisor, now_ns);
		sw_supervisor_move_tick(supervisor, now_ns);
		sw_supervisor_gpu_tick(supervisor, now_ns);
	}
	if (supervisor->stage == SW_STAGE_DRAINING && supervisor->logger == 0 && sw_supervisor_unread(supervisor) < 0)
		sw_supervisor_record(supervisor);
	else if (supervisor->stage == SW_STAGE_DRAINING && now_ns >= supervisor->give_up_at_ns)
		stop_draining(supervisor);
	else if (supervisor->stage == SW_STAGE_RECORDING && now_ns >= supervisor->record_at_ns)
		sw_supervisor_record(supervisor);
}

int64_t sw_supervisor_next(const struct sw_supervisor *supervisor)
{
	if (supervisor->stage == SW_STAGE_DRAINING)
		return supervisor->give_up_at_ns;
	if (supervisor->stage == SW_STAGE_RECORDING)
		return supervisor->record_at_ns;
	int64_t next = earlier(earlier(supervisor->look_at_ns, supervisor->kill_at_ns), supervisor->settle_at_ns);
	next = earlier(next, earlier(supervisor->gpu.look_at_ns, supervisor->deep.look_at_ns));
	next = earlier(next, supervisor->move.look_at_ns);
	if (!supervisor->lease_is_over)
		next = earlier(next, supervisor->lease_ns);
	return earlier(next, earlier(limit_at(supervisor), warn_at(supervisor)));
}
