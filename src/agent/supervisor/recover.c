/* What is left of a run whose supervisor died. Its processes are found by the mark in their
 * environment, by their session and by their control group, and killed. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/folder.h"
#include "agent/supervisor/gpu.h"
#include "agent/supervisor/launch.h"
#include "agent/supervisor/recover.h"
#include "agent/supervisor/state.h"
#include "base/cleanup.h"
#include "base/now.h"

enum { PATIENCE_MS = 10000, STEP_MS = 20 };

/* ---- the session */

/* The number of a session means something until the next boot only; each boot has a name. */
static void read_boot(char boot[40])
{
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
	if (file == NULL || fscanf(file, "%39s", boot) != 1)
		snprintf(boot, 40, "-");
	if (file != NULL)
		fclose(file);
}

void sw_supervisor_note_session(const struct sw_supervisor *supervisor)
{
	char boot[40], text[128];
	struct sw_process job;
	if (!sw_process_read(supervisor->job, &job))
		return;
	read_boot(boot);
	int size = snprintf(text, sizeof text, "%s %ld %" PRIu64 "\n", boot, (long)job.pid, job.started);
	(void)sw_folder_write(supervisor->folder, "session", text, (size_t)size, false, NULL);
}

static bool read_session(int folder, struct sw_session *ret_session)
{
	SW_CLEANUP(sw_freep) char *text = NULL;
	size_t size;
	char boot[40], then[40];
	long id;
	uint64_t started;
	if (sw_folder_read(folder, "session", &text, &size, NULL) < 0 || sscanf(text, "%39s %ld %" SCNu64, then, &id, &started) != 3)
		return false;
	read_boot(boot);
	*ret_session = (struct sw_session){(pid_t)id, started};
	return strcmp(boot, "-") != 0 && strcmp(boot, then) == 0 && id > 1;
}

/* ---- cleaning up */

/* The token of the dead supervisor; false: it had not come so far as to start the job. */
static bool read_token(int folder, char token[33])
{
	SW_CLEANUP(sw_freep) char *text = NULL;
	size_t size;
	return sw_folder_read(folder, "pid", &text, &size, NULL) == 0 && sscanf(text, "%*d %*u %32s", token) == 1;
}

/* Kills what belongs to the run until nothing is left; false: some do not go. */
static bool sweep(int folder, const char *token, const struct sw_cgroup *group)
{
	struct sw_session session;
	bool has_session = read_session(folder, &session);
	char mark[80];
	sw_launch_mark(token, mark, sizeof mark);
	struct sw_processes processes = {0};
	bool clean = false;
	for (int waited = 0; !clean && waited < PATIENCE_MS; waited += STEP_MS) {
		sw_cgroup_kill(group);
		clean = sw_processes_read(&processes) == 0 &&
			sw_processes_choose_run(&processes, mark, has_session ? &session : NULL, getpid()) == 0;
		if (clean)
			break;
		sw_processes_signal(&processes, SIGKILL);
		nanosleep(&(struct timespec){.tv_nsec = STEP_MS * SW_NS_PER_MS}, NULL);
	}
	sw_processes_release(&processes);
	return clean;
}

int sw_supervisor_recover(int folder, const char *name, struct sw_err *err)
{
	struct sw_run_account exit_account = {.supervisor = (uint32_t)getpid()};
	struct sw_sync_run *run = &exit_account.run;
	if (!sw_folder_parse(name, &run->id))
		return sw_err_set(err, SW_EINPUT, "'%s' is not the folder of a run", name);
	SW_CLEANUP(sw_run_order_freep) struct sw_run_order *order = NULL;
	SW_CLEANUP(sw_run_account_freep) struct sw_run_account *status = NULL;
	struct sw_cgroup group = {.folder = -1};
	(void)sw_folder_order(folder, &order, NULL);
	(void)sw_folder_account(folder, "status.json", &status, NULL);
	char note[100] = "", token[33];
	if (order != NULL && order->cgroup != NULL)
		(void)sw_cgroup_open(&group, order->cgroup, name, 0, 0, note, sizeof note);
	bool started = read_token(folder, token);
	if (started && !sweep(folder, token, &group))
		exit_account.note = "some of its processes could not be killed";
	sw_cgroup_close(&group);
	sw_supervisor_gpu_remove(folder);

	run->state = SW_RUN_EXITED;
	run->reason = SW_REASON_SUPERVISOR_LOST;
	run->detail = started ? "its supervisor died, and with it the job; the exit code is not known"
			      : "its supervisor was lost before it started the command";
	run->started_at_ns = status != NULL ? status->run.started_at_ns : 0;
	run->ended_at_ns = sw_now_real_ns();
	SW_CLEANUP(sw_freep) char *text = NULL;
	size_t size;
	int r = sw_run_account_encode(&exit_account, &text, &size, err);
	return r < 0 ? r : sw_folder_write(folder, "exit.json", text, size, true, err);
}
