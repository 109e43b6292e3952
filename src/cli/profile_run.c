/* While the program runs, windows of measurement follow each other, each twice as long as the one
 * before. A short program has a short one that ended, a long one has one from long after its start.
 * The last that ended counts.
 *
 * A child of ours keeps the program (share_run.c), or becomes it where there is no GPU. What the
 * host gave them is known when that child has ended. */
#include "cli/profile_run.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/now.h"
#include "base/number.h"
#include "cli/interrupt.h"
#include "cli/message.h"
#include "cli/share_places.h"
#include "cli/share_run.h"
#include "gpu/gpu.h"
#include "share/preload.h"
#include "share/profile.h"

#define LOOK_NS (50 * SW_NS_PER_MS)
#define FIRST_WINDOW_NS (500 * SW_NS_PER_MS)
#define LONGEST_WINDOW_NS (16 * SW_NS_PER_S)
enum { PROCESSES = 64 };

enum phase { IDLE, BEGINS, MEASURES, ENDS };

struct watch {
	char name[32], path[PATH_MAX];
	struct sw_share_page *page; /* NULL: not there yet, or there is no GPU */
	struct sw_share_profile *profiles;
	enum phase phase;
	uint32_t wish;
	int64_t begun_ns, window_ns;
	uint32_t gpus; /* that it used */
	struct sw_cli_profile_run *run;
	struct sw_measured *measured; /* the run's */
};

/* ---- on the GPU */

/* Whether there is something to measure by; else why not. */
static bool can_measure(char why[400])
{
	SW_CLEANUP(sw_gpu_source_closep) struct sw_gpu_source *gpus = NULL;
	char library[PATH_MAX];
	struct sw_err err = {0};
	int r = sw_gpu_source_open("nvml", &gpus, &err);
	if (r == 0 && sw_gpu_source_count(gpus) == 0)
		r = sw_err_set(&err, SW_ENOTFOUND, "this machine has no GPU");
	r = r < 0 ? r : sw_share_find_library(library, sizeof library, &err);
	if (r < 0)
		snprintf(why, 400, "%.180s%s%.200s", err.fact, err.detail[0] != '\0' ? ": " : "", err.detail);
	return r == 0;
}

static uint64_t milli_of(double part)
{
	return part <= 0 ? 0 : part >= 1 ? 1000 : (uint64_t)(part * 1000 + 0.5);
}

/* What a window found, of all its processes and for one of its GPUs. */
static void take_window(struct watch *watch)
{
	size_t count = sw_share_profile_take(watch->path, watch->profiles, PROCESSES);
	double busy = 0, copied = 0;
	uint64_t floor = 0;
	const struct sw_share_profile *busiest = NULL;
	for (size_t i = 0; i < count; i++) {
		const struct sw_share_profile *profile = &watch->profiles[i];
		if (profile->window_ns <= 0 || profile->launches == 0)
			continue;
		uint64_t bytes = profile->copied[SW_COPIED_TO_GPU].bytes + profile->copied[SW_COPIED_FROM_GPU].bytes;
		busy += (double)profile->busy_ns / (double)profile->window_ns;
		copied += (double)bytes / ((double)profile->window_ns / 1e9);
		floor += profile->floor_bytes;
		if (busiest == NULL || profile->busy_ns > busiest->busy_ns)
			busiest = profile;
	}
	uint32_t gpus = watch->gpus > 0 ? watch->gpus : 1;
	if (busiest == NULL || busy <= 0)
		return;
	watch->measured->busy_milli = milli_of(busy / gpus);
	watch->measured->busy_milli += watch->measured->busy_milli == 0;
	watch->measured->pcie_milli = milli_of(copied / gpus / (double)SW_STORE_PCIE_BYTES);
	watch->measured->floor_bytes = floor / gpus;
	watch->measured->iteration_ns = busiest->iteration_ns;
	watch->run->iteration_launches = busiest->iteration_launches;
}

static void look(struct watch *watch)
{
	struct sw_share_figures figures;
	uint32_t used = 0;
	sw_share_page_look(watch->page, &figures);
	for (uint32_t i = 0; i < figures.gpu_count; i++) {
		used += figures.gpus[i].peak_bytes > 0;
		if (figures.gpus[i].peak_bytes > watch->measured->peak_bytes)
			watch->measured->peak_bytes = figures.gpus[i].peak_bytes;
	}
	watch->gpus = used > watch->gpus ? used : watch->gpus;
	watch->run->launches = figures.launches > watch->run->launches ? figures.launches : watch->run->launches;
	if (watch->phase == IDLE && figures.launches > 0) {
		watch->wish = sw_share_profile_want(watch->page, true);
		watch->phase = BEGINS;
	}
}

/* Goes on with what waits for nothing; called every LOOK_NS. */
static void go_on(struct watch *watch, int64_t now)
{
	if (watch->page == NULL && (access(watch->path, F_OK) != 0 || sw_share_page_open(watch->path, &watch->page, NULL) < 0))
		return;
	look(watch);
	bool is_met = (watch->phase == BEGINS || watch->phase == ENDS) && sw_share_page_wait(watch->page, watch->wish, 0);
	if (watch->phase == BEGINS && is_met) {
		watch->begun_ns = now;
		watch->phase = MEASURES;
	} else if (watch->phase == MEASURES && now - watch->begun_ns >= watch->window_ns) {
		watch->wish = sw_share_profile_want(watch->page, false);
		watch->phase = ENDS;
	} else if (watch->phase == ENDS && is_met) {
		take_window(watch);
		watch->window_ns = watch->window_ns * 2 < LONGEST_WINDOW_NS ? watch->window_ns * 2 : LONGEST_WINDOW_NS;
		watch->phase = IDLE;
	}
}

/* ---- the program */

/* In the child. */
static void become(const struct sw_cli_profile_run *run, const struct watch *watch)
{
	struct sw_share_terms terms = {.asked_bytes = SW_PAGE_NO_LIMIT, .throttle = sw_throttle_at(0)};
	struct sw_err err = {0};
	if (run->keeps_stdout)
		dup2(STDERR_FILENO, STDOUT_FILENO);
	if (run->no_gpu[0] == '\0') {
		int status = sw_cli_share_run(watch->name, run->words, &terms, 0, &err);
		if (status < 0)
			sw_cli_print_error(&err);
		_exit(status < 0 ? sw_cli_exit_status(status) : status);
	}
	char **argv = calloc(run->words->count + 1, sizeof *argv);
	for (size_t i = 0; argv != NULL && i < run->words->count; i++)
		argv[i] = strdup(run->words->items[i]);
	if (argv != NULL && argv[0] != NULL)
		execvp(argv[0], argv);
	fprintf(stderr, "sharewell: cannot run '%s': %s\n", run->words->items[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

static void count_time(const struct rusage *usage, int64_t wall_ns, struct sw_measured *measured)
{
	int64_t cpu_us =
		(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * INT64_C(1000000) + usage->ru_utime.tv_usec + usage->ru_stime.tv_usec;
	measured->wall_ns = wall_ns > 0 ? wall_ns : 1;
	measured->cores_milli = (uint64_t)((double)cpu_us * 1e6 / (double)measured->wall_ns);
	measured->host_bytes = (uint64_t)usage->ru_maxrss * 1024;
	/* From another look than the peak. */
	if (measured->floor_bytes > measured->peak_bytes)
		measured->floor_bytes = measured->peak_bytes;
}

static int follow(struct sw_cli_profile_run *run, struct watch *watch, pid_t child, struct sw_err *err)
{
	int64_t begun = sw_now_monotonic_ns();
	bool told = false;
	struct rusage usage = {0};
	int status = 0;
	for (pid_t ended = 0; ended != child;) {
		ended = wait4(child, &status, WNOHANG, &usage);
		if (ended < 0 && errno != EINTR)
			return sw_err_set(err, SW_EIO, "cannot wait for the program: %s", strerror(errno));
		int64_t now = sw_now_monotonic_ns();
		run->was_ended |= run->seconds > 0 && now - begun >= (int64_t)run->seconds * SW_NS_PER_S;
		if (ended == child)
			break;
		if (!told && (run->was_ended || sw_cli_interrupted() != 0)) {
			kill(child, SIGTERM);
			told = true;
		}
		if (run->no_gpu[0] == '\0')
			go_on(watch, now);
		nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
	}
	count_time(&usage, sw_now_monotonic_ns() - begun, &run->measured);
	if (sw_cli_interrupted() != 0)
		return sw_err_set(err, SW_ESTOPPED, "interrupted; nothing was stored");
	run->was_ended &= told;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int sw_cli_profile_run(struct sw_cli_profile_run *run, struct sw_err *err)
{
	SW_CLEANUP(sw_freep) struct sw_share_profile *profiles = calloc(PROCESSES, sizeof *profiles);
	struct watch watch = {.profiles = profiles, .window_ns = FIRST_WINDOW_NS, .run = run, .measured = &run->measured};
	if (profiles == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	int r = 0;
	snprintf(watch.name, sizeof watch.name, "profile-%d", (int)getpid());
	if (can_measure(run->no_gpu))
		r = sw_cli_share_path(watch.name, watch.path, err);
	if (r < 0)
		return r;
	fflush(NULL);
	pid_t child = fork();
	if (child == 0)
		become(run, &watch);
	if (child < 0)
		return sw_err_set(err, SW_EIO, "cannot start another process: %s", strerror(errno));
	sw_cli_catch_interrupts();
	r = follow(run, &watch, child, err);
	sw_share_page_close(watch.page);
	return r;
}
