/* sharewell share --list. */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/live.h"
#include "cli/message.h"
#include "cli/share_places.h"
#include "cli/share_run.h"
#include "share/folder.h"
#include "share/node.h"

static const char *state_of(const struct sw_share_figures *figures, const struct sw_share_terms *terms,
			    const struct sw_share_orders *orders)
{
	if (figures->processes > 0 && figures->suspended == figures->processes)
		return figures->off > 0 ? "off" : terms->held ? "suspended" : "waits";
	if (figures->wants_suspend)
		return "suspending";
	return orders->share_milli == 0 ? "still" : "running";
}

static json_t *describe_gpu(const struct sw_share_gpu *gpu, const uint8_t uuid[16])
{
	char text[48] = "GPU-";
	for (unsigned i = 0, at = 4; i < 16; i++)
		at += (unsigned)snprintf(text + at, sizeof text - at, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
	return json_pack("{s:s, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "uuid", text, "limit_bytes",
			 gpu->limit_bytes == SW_PAGE_NO_LIMIT ? json_null() : json_integer((json_int_t)gpu->limit_bytes), "used_bytes",
			 (json_int_t)gpu->charged_bytes, "fixed_bytes", (json_int_t)gpu->fixed_bytes, "host_bytes",
			 (json_int_t)gpu->host_bytes, "peak_bytes", (json_int_t)gpu->peak_bytes, "outside_processes",
			 (json_int_t)gpu->outside_processes, "outside_bytes", (json_int_t)gpu->outside_bytes, "outside_pid",
			 (json_int_t)gpu->outside_pid);
}

static void add_to_list(json_t *list, const char *name, struct sw_share_page *page)
{
	struct sw_share_figures figures;
	struct sw_share_terms terms;
	struct sw_share_orders orders;
	sw_share_page_look(page, &figures);
	sw_share_terms_get(page, &terms);
	sw_share_orders_get(page, &orders);
	json_t *gpus = json_array();
	for (uint32_t i = 0; i < figures.gpu_count; i++)
		json_array_append_new(gpus, describe_gpu(&figures.gpus[i], sw_share_page_shared(page)->gpus[i].uuid));
	json_t *share = json_pack(
		"{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:b, s:I, s:I, s:I, s:s, s:o}", "name", name, "class",
		terms.class == SW_CLASS_OPPORTUNISTIC ? "opportunistic" : "guaranteed", "state", state_of(&figures, &terms, &orders),
		"processes", (json_int_t)figures.processes, "launches", (json_int_t)figures.launches, "compute_milli",
		(json_int_t)(terms.asked_milli > 0 ? terms.asked_milli : 1000), "share_milli", (json_int_t)orders.share_milli, "yields",
		orders.neighbour_count > 0, "iterations", (json_int_t)figures.iterations, "iteration_ns", (json_int_t)figures.iteration_ns,
		"iteration_jitter_ns", (json_int_t)figures.iteration_jitter_ns, "trouble", sw_share_trouble(figures.trouble), "gpus", gpus);
	if (share != NULL && terms.class == SW_CLASS_OPPORTUNISTIC)
		json_object_set_new(share, "throttle", json_string(terms.throttle->name));
	json_array_append_new(list, share);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int collect(json_t *list, struct sw_err *err)
{
	char folder[PATH_MAX], path[PATH_MAX + NAME_MAX + 2];
	struct dirent **names = NULL;
	int r = sw_cli_share_folder(folder, err);
	if (r < 0)
		return r;
	int lock = sw_share_folder_lock(folder, true), count = scandir(folder, &names, NULL, by_name);
	for (int i = 0; i < count; i++) {
		SW_CLEANUP(sw_share_page_closep) struct sw_share_page *page = NULL;
		snprintf(path, sizeof path, "%s/%s", folder, names[i]->d_name);
		if (names[i]->d_name[0] != '.' && !sw_cli_share_is_alive(path))
			unlink(path);
		else if (names[i]->d_name[0] != '.' && sw_share_page_open(path, &page, NULL) == 0)
			add_to_list(list, names[i]->d_name, page);
		free(names[i]);
	}
	free(names);
	sw_share_folder_unlock(lock);
	return 0;
}

static void print_share(const json_t *share)
{
	json_t *gpu, *gpus = json_object_get(share, "gpus");
	size_t i;
	double used = 0, host = 0, limit = 0;
	bool limited = json_array_size(gpus) > 0;
	json_array_foreach(gpus, i, gpu)
	{
		used += (double)sw_cli_number(gpu, "used_bytes", 0);
		host += (double)sw_cli_number(gpu, "host_bytes", 0);
		limit += (double)sw_cli_number(gpu, "limit_bytes", 0);
		limited = limited && json_is_integer(json_object_get(gpu, "limit_bytes"));
	}
	char limit_text[32] = "-", share_text[32], step_text[32] = "-";
	int64_t iteration_ns = sw_cli_number(share, "iteration_ns", 0);
	if (iteration_ns > 0)
		snprintf(step_text, sizeof step_text, "%.2f", (double)iteration_ns / 1e6);
	if (limited)
		snprintf(limit_text, sizeof limit_text, "%.2f", limit / (1 << 30));
	snprintf(share_text, sizeof share_text, "%g%%", (double)sw_cli_number(share, "share_milli", 0) / 10);
	printf("%-20s %-13s %-10s %5" PRId64 " %10.2f %10s %10.2f %10s  %s\n", sw_cli_text(share, "name", "?"),
	       sw_cli_text(share, "class", "?"), sw_cli_text(share, "state", "?"), sw_cli_number(share, "processes", 0), used / (1 << 30),
	       limit_text, host / (1 << 30), step_text, json_is_true(json_object_get(share, "yields")) ? "idle times" : share_text);
}

/* Processes that go around the runtime (share/outside.h). */
static void print_outside(const json_t *share)
{
	json_t *gpu;
	size_t i;
	json_array_foreach(json_object_get(share, "gpus"), i, gpu)
	{
		int64_t processes = sw_cli_number(gpu, "outside_processes", 0);
		if (processes > 0)
			sw_cli_print_note("%s: %" PRId64 " of its processes (one is %" PRId64
					  ") use%s %.2f GiB of GPU %zu outside the runtime, "
					  "where no limit holds and nothing is suspended; see docs/gpu.md",
					  sw_cli_text(share, "name", "?"), processes, sw_cli_number(gpu, "outside_pid", 0),
					  processes == 1 ? "s" : "", (double)sw_cli_number(gpu, "outside_bytes", 0) / (1 << 30), i);
	}
}

int sw_cli_share_list(bool as_json, struct sw_err *err)
{
	SW_JSON *list = json_array();
	int r = collect(list, err);
	if (r < 0)
		return r;
	if (as_json)
		return sw_cli_print_json(list, err);
	printf("%-20s %-13s %-10s %5s %10s %10s %10s %10s  %s\n", "NAME", "CLASS", "STATE", "PROCS", "GPU_GIB", "LIMIT_GIB", "HOST_GIB",
	       "STEP_MS", "SHARE");
	size_t index;
	json_t *share;
	json_array_foreach(list, index, share) print_share(share);
	uint64_t used, most;
	if (json_array_size(list) > 0 && sw_share_node_look(&used, &most))
		printf("Host memory of the contents of your GPUs: %.2f of %.2f GiB, with what is made ahead\n", (double)used / (1 << 30),
		       (double)most / (1 << 30));
	json_array_foreach(list, index, share) print_outside(share);
	return 0;
}
