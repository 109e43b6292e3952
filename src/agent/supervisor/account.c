/* What is known of the run, and how it becomes known to others. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/folder.h"
#include "agent/supervisor/account.h"
#include "agent/supervisor/begin.h"
#include "agent/supervisor/gpu.h"
#include "agent/supervisor/state.h"
#include "agent/supervisor/supervisor.h"
#include "base/cleanup.h"
#include "base/now.h"

void sw_supervisor_blame(struct sw_supervisor *supervisor, const char *reason, const char *detail)
{
	if (supervisor->account.run.reason[0] != '\0')
		return;
	supervisor->account.run.reason = reason;
	if (detail != NULL) {
		snprintf(supervisor->detail, sizeof supervisor->detail, "%s", detail);
		supervisor->account.run.detail = supervisor->detail;
	}
}

void sw_supervisor_add_note(struct sw_supervisor *supervisor, const char *text)
{
	size_t used = strlen(supervisor->note);
	if (strstr(supervisor->note, text) != NULL)
		return;
	snprintf(supervisor->note + used, sizeof supervisor->note - used, "%s%s", used > 0 ? "; " : "", text);
	supervisor->account.note = supervisor->note;
}

/* The account as text; NULL: out of memory. The caller frees. */
static char *describe(struct sw_supervisor *supervisor, size_t *ret_size)
{
	char *text = NULL;
	supervisor->account.run.log_bytes = atomic_load_explicit(&supervisor->tail->bytes, memory_order_relaxed);
	return sw_run_account_encode(&supervisor->account, &text, ret_size, NULL) == 0 ? text : NULL;
}

void sw_supervisor_say(struct sw_supervisor *supervisor, int client)
{
	size_t size;
	SW_CLEANUP(sw_freep) char *text = describe(supervisor, &size);
	if (text != NULL)
		sw_control_say(&supervisor->control, client, text, size);
}

void sw_supervisor_enter(struct sw_supervisor *supervisor, enum sw_run_state state)
{
	supervisor->account.run.state = state;
	size_t size;
	SW_CLEANUP(sw_freep) char *text = describe(supervisor, &size);
	if (text == NULL)
		return;
	/* Nothing depends on this file: it is for people, and for an agent that
	 * starts before it can ask. */
	if (supervisor->settle_at_ns == SW_NEVER)
		(void)sw_folder_write(supervisor->folder, "status.json", text, size, false, NULL);
	sw_control_say(&supervisor->control, -1, text, size);
}

void sw_supervisor_settle(struct sw_supervisor *supervisor, int64_t now_ns)
{
	if (supervisor->control.listener < 0 && sw_control_listen(&supervisor->control) != 0) {
		supervisor->settle_at_ns = now_ns + SW_NS_PER_S;
		return;
	}
	supervisor->settle_at_ns = SW_NEVER;
	size_t size;
	SW_CLEANUP(sw_freep) char *text = supervisor->account.run.state != SW_RUN_STARTING ? describe(supervisor, &size) : NULL;
	if (text != NULL)
		(void)sw_folder_write(supervisor->folder, "status.json", text, size, false, NULL);
}

void sw_supervisor_drain(struct sw_supervisor *supervisor)
{
	supervisor->stage = SW_STAGE_DRAINING;
	if (supervisor->account.run.ended_at_ns == 0)
		supervisor->account.run.ended_at_ns = sw_now_real_ns();
	for (int i = 0; i < 2; i++)
		if (supervisor->streams[i] >= 0) {
			close(supervisor->streams[i]);
			supervisor->streams[i] = -1;
		}
	supervisor->look_at_ns = SW_NEVER;
	supervisor->give_up_at_ns = sw_now_boot_ns() + SW_DRAIN_NS;
	if (sw_supervisor_unread(supervisor) >= 0)
		sw_supervisor_on_output(supervisor);
	if (supervisor->logger == 0 && sw_supervisor_unread(supervisor) < 0)
		sw_supervisor_record(supervisor);
}

/* Why it failed, as far as its log tells. A table that cannot be read is no reason to lose the
 * exit: then the controller makes of it what it can. */
static void classify(struct sw_supervisor *supervisor)
{
	struct sw_sync_run *run = &supervisor->account.run;
	if (run->failure != NULL || (run->code == 0 && run->signal == 0 && run->reason[0] == '\0') ||
	    strcmp(run->reason, SW_REASON_STOPPED) == 0)
		return;
	SW_CLEANUP(sw_failure_freep) struct sw_failure_table *table = NULL;
	SW_CLEANUP(sw_freep) char *log = malloc(SW_FAILURE_TAIL);
	const char *own = getenv(SW_FAILURES_VARIABLE);
	if (log == NULL || (sw_failure_load(own, &table, NULL) < 0 && (own == NULL || sw_failure_load(NULL, &table, NULL) < 0)))
		return;
	struct sw_failure_evidence evidence = {
		.log = log,
		.log_size = sw_log_tail_copy(supervisor->tail, log),
		.detail = run->detail,
		.reason = run->reason,
		.code = (int)run->code,
		.signal = (int)run->signal,
	};
	sw_failure_classify(table, &evidence, &supervisor->failure);
	snprintf(supervisor->failure_name, sizeof supervisor->failure_name, "%s", supervisor->failure.failure->name);
	run->failure = supervisor->failure_name;
	run->failure_line = supervisor->failure.line[0] != '\0' ? supervisor->failure.line : NULL;
	run->failure_path = supervisor->failure.path[0] != '\0' ? supervisor->failure.path : NULL;
}

void sw_supervisor_record(struct sw_supervisor *supervisor)
{
	if (sw_cgroup_ran_out(&supervisor->cgroup) && supervisor->account.run.signal == SIGKILL)
		sw_supervisor_blame(supervisor, SW_REASON_MEMORY_LIMIT, "the kernel killed it: it used more memory than its limit");
	sw_cgroup_close(&supervisor->cgroup);
	sw_supervisor_gpu_close(supervisor);
	supervisor->stage = SW_STAGE_RECORDING;
	supervisor->give_up_at_ns = SW_NEVER;
	supervisor->account.run.state = SW_RUN_EXITED;
	if (supervisor->account.run.detail == supervisor->gpu.detail)
		supervisor->account.run.detail = NULL;
	classify(supervisor);
	size_t size;
	SW_CLEANUP(sw_freep) char *text = describe(supervisor, &size);
	/* A folder that is gone was forgotten: no client waits for the exit any more. */
	int r = text != NULL ? sw_folder_write(supervisor->folder, "exit.json", text, size, true, NULL) : SW_ENOMEM;
	if (r < 0 && r != SW_ENOTFOUND) {
		supervisor->record_at_ns = sw_now_boot_ns() + SW_NS_PER_S;
		return;
	}
	if (text != NULL)
		sw_control_say(&supervisor->control, -1, text, size);
	supervisor->stage = SW_STAGE_DONE;
}
