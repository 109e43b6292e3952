/* What an agent finds when it starts: the runs of the one before it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent_links.h"
#include "agent/agent_scan.h"
#include "agent/agent_state.h"
#include "agent/folder.h"
#include "base/cleanup.h"

static bool is_remnant(int folder)
{
	/* Deleting takes exit.json last and making puts spec.json first: neither is there only
	 * between the two last steps of deleting. */
	return !sw_folder_has(folder, "spec.json") && !sw_folder_has(folder, "exit.json") && !sw_folder_has(folder, "pid");
}

/* What the folder says of the run; at worst that it was started. */
static void read_account(int folder, struct sw_run_id id, struct sw_run_account **ret_account, struct sw_sync_run *ret_run)
{
	*ret_run = (struct sw_sync_run){.id = id, .state = SW_RUN_STARTING, .reason = ""};
	for (int i = 0; i < 2 && *ret_account == NULL; i++)
		(void)sw_folder_account(folder, i == 0 ? "exit.json" : "status.json", ret_account, NULL);
	if (*ret_account != NULL && sw_run_id_compare((*ret_account)->run.id, id) == 0)
		*ret_run = (*ret_account)->run;
}

static int take_in(struct sw_agent *agent, const char *name, struct sw_run_id id, struct sw_err *err)
{
	int folder = -1;
	if (sw_folder_open(agent->runs, name, &folder, NULL) < 0)
		return 0;
	if (is_remnant(folder)) {
		close(folder);
		(void)sw_folder_delete(agent->runs, name, NULL);
		return 0;
	}
	SW_CLEANUP(sw_run_account_freep) struct sw_run_account *account = NULL;
	SW_CLEANUP(sw_run_order_freep) struct sw_run_order *order = NULL;
	struct sw_sync_run run;
	read_account(folder, id, &account, &run);
	if (sw_folder_order(folder, &order, NULL) < 0 && run.state != SW_RUN_EXITED)
		sw_agent_say(agent, "the order of the run '%s' cannot be read: its GPUs are not known, and its lease is not renewed", name);
	close(folder);
	struct sw_texts none = {0};
	int r = sw_agent_brain_found(agent->brain, &run, order != NULL ? &order->want.gpus : &none);
	if (r == SW_ELIMIT) {
		sw_agent_say(agent, "there are more than %u runs in '%s'; the rest is left alone", SW_SYNC_RUNS_MAX, agent->runs_path);
		return 0;
	}
	if (r == 0 && order != NULL && order->want.spec != NULL)
		sw_agent_brain_spec(agent->brain, id, order->want.spec);
	if (r < 0)
		return sw_err_set(err, r, "cannot take in the run '%s': out of memory", name);
	if (run.state != SW_RUN_EXITED)
		sw_agent_check(agent, id);
	return 0;
}

int sw_agent_scan(struct sw_agent *agent, struct sw_err *err)
{
	int again = openat(agent->runs, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = again >= 0 ? fdopendir(again) : NULL;
	if (stream == NULL)
		return sw_err_set(err, SW_EIO, "cannot read '%s': %s", agent->runs_path, strerror(errno));
	int r = 0;
	for (const struct dirent *entry; r == 0 && (entry = readdir(stream)) != NULL;) {
		struct sw_run_id id;
		/* One that was being made was never started; one that is gone
		 * is only not deleted yet. */
		if (strncmp(entry->d_name, ".new-", 5) == 0 || strncmp(entry->d_name, SW_GONE_PREFIX, strlen(SW_GONE_PREFIX)) == 0)
			(void)sw_folder_delete(agent->runs, entry->d_name, NULL);
		else if (sw_folder_parse(entry->d_name, &id))
			r = take_in(agent, entry->d_name, id, err);
	}
	closedir(stream);
	return r;
}
