/* The program runs without our runtime here: two that stand between it and the driver would measure
 * each other. Nsight Compute ends it when it has seen enough. Whether it has is told by what it
 * wrote, not by its exit status, since a program that is ended so has failed. */
#include "cli/profile_counters.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/now.h"
#include "base/number.h"
#include "cli/interrupt.h"
#include "contention/counters.h"

#define LARGEST_LOG ((size_t)64 << 20)
#define LOOK_NS (50 * SW_NS_PER_MS)
#define GRACE_NS (10 * SW_NS_PER_S) /* between asking it to end and ending it */
/* Kernels that are measured: of one iteration, each of them several times over, which
 * takes tens of milliseconds. */
enum { KERNELS = 200, KERNELS_MAX = 1000, WARM_ITERATIONS = 20, WARM_KERNELS = 2000 };

int sw_cli_find_ncu(char path[PATH_MAX], struct sw_err *err)
{
	const char *places = getenv("PATH");
	char all[2 * PATH_MAX];
	snprintf(all, sizeof all, "%s:/usr/local/cuda/bin", places != NULL ? places : "");
	for (char *rest = all, *place; (place = strsep(&rest, ":")) != NULL;) {
		int size = snprintf(path, PATH_MAX, "%s/ncu", place);
		if (place[0] != '\0' && size < PATH_MAX && access(path, X_OK) == 0)
			return 0;
	}
	sw_err_set(err, SW_ENOTFOUND, "cannot find Nsight Compute");
	sw_err_detail(err, "there is no 'ncu' in PATH, nor in /usr/local/cuda/bin");
	sw_err_hint(err, "Install it, or measure without --counters; SM, L2 and DRAM use are then those of a built-in profile.");
	return SW_ENOTFOUND;
}

/* ---- which kernels */

struct window {
	uint64_t skip, count;
};

/* Of one iteration, when the program is warm; and there, if it has launched as many before. */
static struct window choose(const struct sw_cli_profile_run *run)
{
	uint64_t each = run->iteration_launches;
	struct window window = {.skip = each > 0 ? each * WARM_ITERATIONS : WARM_KERNELS, .count = each > 0 ? each : KERNELS};
	if (window.skip > run->launches / 2)
		window.skip = run->launches / 2;
	if (window.count > KERNELS_MAX)
		window.count = KERNELS_MAX;
	return window;
}

/* ---- the run */

/* In the child. */
static void become(const struct sw_cli_profile_run *run, const char *ncu, const char *log)
{
	struct window window = choose(run);
	char skip[24], count[24];
	snprintf(skip, sizeof skip, "%" PRIu64, window.skip);
	snprintf(count, sizeof count, "%" PRIu64, window.count);
	const char *const options[] = {ncu,
				       "--csv",
				       "--log-file",
				       log,
				       "--target-processes",
				       "all",
				       "--replay-mode",
				       "kernel",
				       "--clock-control",
				       "none",
				       "--cache-control",
				       "none",
				       "--launch-skip",
				       skip,
				       "--launch-count",
				       count,
				       "--kill",
				       "yes",
				       "--metrics",
				       sw_counters_metrics};
	const size_t option_count = sizeof options / sizeof options[0];
	char **argv = calloc(option_count + run->words->count + 1, sizeof *argv);
	for (size_t i = 0; argv != NULL && i < option_count + run->words->count; i++)
		argv[i] = strdup(i < option_count ? options[i] : run->words->items[i - option_count]);
	int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (nothing >= 0)
		dup2(nothing, STDIN_FILENO);
	if (run->keeps_stdout)
		dup2(STDERR_FILENO, STDOUT_FILENO);
	/* It is ended with all that it started. */
	setpgid(0, 0);
	/* Figures are written with the point of the locale. */
	setenv("LC_NUMERIC", "C", 1);
	if (argv != NULL)
		execv(ncu, argv);
	_exit(127);
}

/* Until it ends, or its time is over. Returns the status of waitpid(). */
static int follow(pid_t child, int64_t patience_ns, bool *ret_was_late)
{
	int64_t begun = sw_now_monotonic_ns(), told = 0;
	int status = 0;
	while (waitpid(child, &status, WNOHANG) != child) {
		int64_t now = sw_now_monotonic_ns();
		if (told == 0 && (now - begun >= patience_ns || sw_cli_interrupted() != 0)) {
			*ret_was_late = sw_cli_interrupted() == 0;
			kill(-child, SIGTERM);
			told = now;
		} else if (told > 0 && now - told >= GRACE_NS) {
			kill(-child, SIGKILL);
		}
		nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
	}
	/* What it started may outlive it. */
	kill(-child, SIGKILL);
	return status;
}

static void take(const struct sw_counters *counters, struct sw_measured *measured)
{
	uint64_t *const parts[] = {&measured->sm_milli, &measured->mem_pipe_milli, &measured->l2_milli, &measured->dram_read_milli,
				   &measured->dram_write_milli};
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
		*parts[i] = (counters->use_milli[i] * measured->busy_milli + 500) / 1000;
		*parts[i] += *parts[i] == 0;
	}
}

static int read_log(struct sw_cli_profile_run *run, const char *log, int status, bool was_late, int64_t patience_ns, struct sw_err *err)
{
	SW_CLEANUP(sw_freep) char *text = NULL;
	size_t size = 0;
	struct sw_counters counters;
	struct sw_err why = {0};
	int r = sw_file_read(log, LARGEST_LOG, &text, &size, &why);
	if (r == SW_ENOTFOUND && !was_late) {
		sw_err_set(err, SW_EIO, "Nsight Compute could not measure the program");
		sw_err_detail(err, "it wrote nothing, and ended with status %d",
			      WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
		return SW_EIO;
	}
	r = r < 0 ? r : sw_counters_read(text, size, &counters, &why);
	if (r == 0)
		take(&counters, &run->measured);
	else if (was_late && r == SW_ENOTFOUND)
		return sw_err_set(err, SW_EIO, "Nsight Compute did not come to an end within %" PRId64 " s; --patience gives it longer",
				  patience_ns / SW_NS_PER_S);
	else if (err != NULL)
		*err = why;
	return r;
}

int sw_cli_profile_count(struct sw_cli_profile_run *run, const char *ncu, const char *folder, struct sw_err *err)
{
	char log[PATH_MAX];
	int64_t patience_ns = (int64_t)(run->patience_s > 0 ? run->patience_s : SW_CLI_COUNTERS_S) * SW_NS_PER_S;
	bool was_late = false;
	if (run->measured.busy_milli == 0) {
		sw_err_set(err, SW_ENOTFOUND, "counters tell nothing without how busy the GPU is, which was not measured");
		sw_err_detail(err, "%s", run->no_gpu[0] != '\0' ? run->no_gpu : "the program was over too soon, or launched nothing");
		return SW_ENOTFOUND;
	}
	if (snprintf(log, sizeof log, "%s/counters-%d.csv", folder, (int)getpid()) >= (int)sizeof log)
		return sw_err_set(err, SW_EINPUT, "the path of the state folder is too long");
	unlink(log);
	fflush(NULL);
	pid_t child = fork();
	if (child == 0)
		become(run, ncu, log);
	if (child < 0)
		return sw_err_set(err, SW_EIO, "cannot start another process: %s", strerror(errno));
	setpgid(child, child);
	sw_cli_catch_interrupts();
	int status = follow(child, patience_ns, &was_late);
	int r = sw_cli_interrupted() != 0 ? sw_err_set(err, SW_ESTOPPED, "interrupted; nothing was stored")
					  : read_log(run, log, status, was_late, patience_ns, err);
	unlink(log);
	return r;
}
