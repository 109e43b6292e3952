#include "cli/share_profile.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/number.h"
#include "cli/interrupt.h"
#include "cli/live.h"
#include "cli/share_places.h"
#include "share/profile.h"

#define WISH_NS INT64_C(60000000000)
enum { PROCESSES = 64, SHOWN = 15 };

static const char *const ways[SW_COPIED_WAYS] = {"to_gpu", "from_gpu", "within", "unknown"};

/* The last ones of a window have no time yet. */
static bool is_estimated(uint64_t timed, uint64_t launches)
{
	return timed < launches - launches / 50;
}

/* ---- as JSON */

static json_t *functions_of(const struct sw_share_profile *profile)
{
	json_t *list = json_array();
	for (size_t i = 0; i < profile->function_count; i++) {
		const struct sw_share_function *function = &profile->functions[i];
		json_array_append_new(list, json_pack("{s:s, s:I, s:I, s:b}", "name", function->name, "launches",
						      (json_int_t)function->launches, "time_ns", (json_int_t)sw_share_function_ns(function),
						      "estimated", is_estimated(function->timed, function->launches)));
	}
	return list;
}

static json_t *process_of(const struct sw_share_profile *profile)
{
	json_t *copied = json_object();
	for (size_t i = 0; i < SW_COPIED_WAYS; i++)
		json_object_set_new(copied, ways[i],
				    json_pack("{s:I, s:I}", "copies", (json_int_t)profile->copied[i].copies, "bytes",
					      (json_int_t)profile->copied[i].bytes));
	return json_pack("{s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:o, s:o}", "pid", (int)profile->pid, "window_ns",
			 (json_int_t)profile->window_ns, "iteration_ns", (json_int_t)profile->iteration_ns, "iteration_jitter_ns",
			 (json_int_t)profile->iteration_jitter_ns, "iteration_launches", (json_int_t)profile->iteration_launches,
			 "iteration_busy_ns", (json_int_t)sw_share_profile_per_iteration(profile, (uint64_t)profile->busy_ns), "peak_bytes",
			 (json_int_t)profile->peak_bytes, "floor_bytes", (json_int_t)profile->floor_bytes, "launches",
			 (json_int_t)profile->launches, "timed", (json_int_t)profile->timed, "busy_ns", (json_int_t)profile->busy_ns,
			 "estimated", is_estimated(profile->timed, profile->launches), "copied", copied, "functions",
			 functions_of(profile));
}

/* ---- in words */

static void print_functions(const struct sw_share_profile *profile)
{
	printf("  %-60s %10s %10s %6s\n", "FUNCTION", "LAUNCHES", "US_EACH", "TIME");
	for (size_t i = 0; i < profile->function_count && i < SHOWN; i++) {
		const struct sw_share_function *function = &profile->functions[i];
		double each = function->timed > 0 ? (double)function->ns / (double)function->timed / 1e3 : 0;
		double part = profile->busy_ns > 0 ? 100.0 * (double)sw_share_function_ns(function) / (double)profile->busy_ns : 0;
		printf("  %-60.60s %10" PRIu64 " %10.1f %5.1f%%\n", function->name, function->launches, each, part);
	}
	if (profile->function_count > SHOWN)
		printf("  and %zu more; --json has them\n", profile->function_count - SHOWN);
}

static void print_process(const struct sw_share_profile *profile)
{
	const char *about = is_estimated(profile->timed, profile->launches) ? "about " : "";
	char text[32], other[32];
	printf("process %d, %.1f s: %" PRIu64 " launches, the GPU busy for %s%.1f%% of the time\n", (int)profile->pid,
	       (double)profile->window_ns / 1e9, profile->launches, about,
	       profile->window_ns > 0 ? 100.0 * (double)profile->busy_ns / (double)profile->window_ns : 0);
	if (profile->iteration_ns > 0) {
		printf("  an iteration: %s", sw_format_duration(profile->iteration_ns, text));
		printf(" (busy %s%s), %" PRIu64 " launches\n", about,
		       sw_format_duration(sw_share_profile_per_iteration(profile, (uint64_t)profile->busy_ns), text),
		       profile->iteration_launches);
		printf("  its memory: at most %s", sw_format_bytes(profile->peak_bytes, text));
		printf(", at least %s\n", sw_format_bytes(profile->floor_bytes, other));
		for (size_t i = 0; i < SW_COPIED_WAYS; i++)
			if (profile->copied[i].bytes > 0)
				printf("  it copies %s, %s\n",
				       sw_format_bytes((uint64_t)sw_share_profile_per_iteration(profile, profile->copied[i].bytes), text),
				       ways[i]);
	} else {
		printf("  no iteration was found\n");
	}
	print_functions(profile);
}

/* ---- measuring */

static void wait_for(uint64_t seconds)
{
	for (uint64_t i = 0; i < seconds * 10 && sw_cli_interrupted() == 0; i++)
		nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
}

static int measure(const char *name, struct sw_share_page *page, uint64_t seconds, struct sw_err *err)
{
	/* An interrupt must not leave it measuring. */
	sw_cli_catch_interrupts();
	bool met = sw_share_page_wait(page, sw_share_profile_want(page, true), WISH_NS);
	if (met)
		wait_for(seconds);
	met = sw_share_page_wait(page, sw_share_profile_want(page, false), WISH_NS) && met;
	return met ? 0 : sw_err_set(err, SW_EIO, "%s did not answer within %d s", name, (int)(WISH_NS / 1000000000));
}

int sw_cli_share_profile(const char *name, uint64_t seconds, bool as_json, struct sw_err *err)
{
	SW_CLEANUP(sw_share_page_closep) struct sw_share_page *page = NULL;
	SW_CLEANUP(sw_freep) struct sw_share_profile *profiles = calloc(PROCESSES, sizeof *profiles);
	char path[PATH_MAX];
	if (profiles == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	int r = sw_cli_share_open(name, false, &page, err);
	r = r < 0 ? r : sw_cli_share_path(name, path, err);
	/* What one that was killed has left is of another time, and maybe of another program. */
	if (r == 0)
		(void)sw_share_profile_take(path, NULL, 0);
	r = r < 0 ? r : measure(name, page, seconds, err);
	if (r < 0)
		return r;
	size_t count = sw_share_profile_take(path, profiles, PROCESSES);
	if (count == 0) {
		sw_err_set(err, SW_EIO, "%s was not measured", name);
		sw_err_hint(err, "It has no process on a GPU, or is suspended.");
		return SW_EIO;
	}
	if (as_json) {
		SW_JSON *list = json_array();
		for (size_t i = 0; i < count; i++)
			json_array_append_new(list, process_of(&profiles[i]));
		return sw_cli_print_json(list, err);
	}
	for (size_t i = 0; i < count; i++)
		print_process(&profiles[i]);
	return 0;
}
