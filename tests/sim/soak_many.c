/* Many soaks side by side, in processes: one that crashes or hangs takes only itself along, and is
 * named like any other failure. */
#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/number.h"
#include "policy/registry.h"
#include "soak.h"

#define WORKERS_MAX 64u
#define FAILURES_MAX 25u /* then it is time to look at them */
#define RUN_CPU_S 30	 /* of one run: far more than the slowest takes, also under sanitizers */

/* What a worker is doing, for its parent. */
struct desk {
	_Atomic uint64_t seed;
	_Atomic uint32_t policy;
	_Atomic bool storm;
	_Atomic uint64_t done; /* seeds */
	_Atomic uint32_t failures;
	pid_t pid;
};

static atomic_bool takes_too_long;

/* The first bell asks the run to stop; one that does not listen is stuck in a step. */
static void on_bell(int signal)
{
	(void)signal;
	if (atomic_exchange(&takes_too_long, true))
		abort();
}

static void set_bell(void)
{
	const struct itimerval bell = {.it_interval = {RUN_CPU_S, 0}, .it_value = {RUN_CPU_S, 0}};
	atomic_store(&takes_too_long, false);
	setitimer(ITIMER_PROF, &bell, NULL);
}

/* All policies, and behind them those that pack; NULL: there are no more. */
static const struct sw_policy *policy_at(uint32_t index)
{
	uint32_t p = 0;
	for (; sw_policies[p] != NULL; p++)
		if (p == index)
			return sw_policies[p];
	return sw_policies_packed(index - p);
}

/* Those that pack have most in common: each seed takes one of them, unless one is named. */
static bool takes(const struct sw_soak_plan *plan, uint64_t seed, uint32_t index)
{
	uint32_t packed = 0, plain = 0;
	if (plan->only != NULL)
		return plan->only == policy_at(index);
	while (sw_policies[plain] != NULL)
		plain++;
	while (sw_policies_packed(packed) != NULL)
		packed++;
	return index < plain || index - plain == seed % packed;
}

static void print_failure(uint64_t seed, uint32_t policy, bool storm, const char *why)
{
	printf("tools/soak %s--seed %llu --policy %s  # %s\n", storm ? "--storm " : "", (unsigned long long)seed, policy_at(policy)->name,
	       why);
	fflush(stdout);
}

static void run_one(struct desk *desk, bool storm)
{
	struct sw_err err = {0};
	uint32_t policy = desk->policy;
	atomic_store(&desk->storm, storm);
	set_bell();
	int r = storm ? sw_soak_storm(desk->seed, policy_at(policy), &err)
		      : sw_soak_simulate(desk->seed, policy_at(policy), &takes_too_long, &err);
	if (r == 0)
		return;
	print_failure(desk->seed, policy, storm, err.fact);
	desk->failures++;
}

/* Takes every `stride`-th seed. `policy` and `storm`: where in the first seed to
 * begin, behind a crash. */
static void work(const struct sw_soak_plan *plan, struct desk *desk, uint64_t first, uint32_t policy, bool skip_simulation, uint32_t stride)
{
	signal(SIGPROF, on_bell);
	for (uint64_t seed = first; seed < plan->end && desk->failures < FAILURES_MAX; seed += stride) {
		atomic_store(&desk->seed, seed);
		for (; policy_at(policy) != NULL; policy++) {
			atomic_store(&desk->policy, policy);
			if (!takes(plan, seed, policy))
				continue;
			if (plan->simulate && !skip_simulation)
				run_one(desk, false);
			skip_simulation = false;
			if (plan->storm)
				run_one(desk, true);
		}
		policy = 0;
		desk->done++;
	}
}

static void hire(const struct sw_soak_plan *plan, struct desk *desk, uint64_t first, uint32_t policy, bool skip_simulation, uint32_t stride)
{
	fflush(NULL);
	pid_t pid = fork();
	assert(pid >= 0);
	if (pid == 0) {
		work(plan, desk, first, policy, skip_simulation, stride);
		fflush(stdout);
		exit(0);
	}
	desk->pid = pid;
}

/* A worker is gone. True if another took its place. */
static bool replace(const struct sw_soak_plan *plan, struct desk *desk, int status, uint32_t stride)
{
	char why[96];
	desk->pid = 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return false;
	if (WIFSIGNALED(status))
		snprintf(why, sizeof why, "died of signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		snprintf(why, sizeof why, "ended with status %d; see above", WEXITSTATUS(status));
	print_failure(desk->seed, desk->policy, desk->storm, why);
	if (++desk->failures >= FAILURES_MAX)
		return false;
	/* On with what comes after the crash; a leak is only noticed when all is done. */
	uint64_t seed = desk->seed;
	if (!WIFSIGNALED(status) && seed + stride >= plan->end && desk->done * stride + stride > plan->end - plan->first)
		return false;
	hire(plan, desk, seed, desk->storm ? desk->policy + 1 : desk->policy, !desk->storm, stride);
	return true;
}

static void show_progress(const struct sw_soak_plan *plan, const struct desk *desks, uint32_t workers)
{
	static time_t last;
	uint64_t done = 0, all = plan->end - plan->first;
	uint32_t failures = 0;
	for (uint32_t w = 0; w < workers; w++) {
		done += desks[w].done;
		failures += desks[w].failures;
	}
	bool terminal = isatty(STDERR_FILENO);
	if (!plan->progress || (!terminal && time(NULL) < last + 20))
		return;
	last = time(NULL);
	fprintf(stderr, "%s%llu of %llu seeds, %u failures%s", terminal ? "\r" : "", (unsigned long long)done, (unsigned long long)all,
		failures, terminal ? "" : "\n");
}

unsigned sw_soak_many(const struct sw_soak_plan *plan)
{
	uint32_t workers = plan->workers == 0 ? 1 : plan->workers > WORKERS_MAX ? WORKERS_MAX : plan->workers, alive = 0;
	struct desk *desks = mmap(NULL, WORKERS_MAX * sizeof *desks, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert(desks != MAP_FAILED);
	for (uint32_t w = 0; w < workers && plan->first + w < plan->end; w++, alive++)
		hire(plan, &desks[w], plan->first + w, 0, false, workers);
	while (alive > 0) {
		const struct timespec nap = {0, 100 * SW_NS_PER_MS};
		for (uint32_t w = 0; w < workers; w++) {
			int status;
			if (desks[w].pid > 0 && waitpid(desks[w].pid, &status, WNOHANG) == desks[w].pid &&
			    !replace(plan, &desks[w], status, workers))
				alive--;
		}
		show_progress(plan, desks, workers);
		if (alive > 0)
			nanosleep(&nap, NULL);
	}
	unsigned failures = 0;
	for (uint32_t w = 0; w < workers; w++)
		failures += desks[w].failures;
	munmap(desks, WORKERS_MAX * sizeof *desks);
	return failures;
}

/* ---- the program ---- */

static int usage(void)
{
	fprintf(stderr, "usage: tools/soak [--seed N | --seeds FIRST..END] [--policy NAME] [--storm | --simulation] [--jobs N]\n"
			"Random clusters, jobs and faults under every policy, checked after every step; 10,000 seeds by default.\n");
	return 2;
}

static bool parse_seeds(const char *text, struct sw_soak_plan *plan)
{
	const char *dots = strstr(text, "..");
	return dots != NULL && sw_parse_u64(text, (size_t)(dots - text), &plan->first) == 0 &&
	       sw_parse_u64(dots + 2, strlen(dots + 2), &plan->end) == 0 && plan->first < plan->end;
}

/* One option with its value; false: not understood. */
static bool parse_option(const char *name, const char *value, struct sw_soak_plan *plan)
{
	uint64_t number;
	if (strcmp(name, "--seed") == 0 && sw_parse_u64(value, strlen(value), &plan->first) == 0) {
		plan->end = plan->first + 1;
		return true;
	}
	if (strcmp(name, "--seeds") == 0)
		return parse_seeds(value, plan);
	if (strcmp(name, "--policy") == 0)
		return (plan->only = sw_policy_find(value)) != NULL;
	if (strcmp(name, "--jobs") == 0 && sw_parse_u64(value, strlen(value), &number) == 0 && number > 0 && number <= WORKERS_MAX) {
		plan->workers = (unsigned)number;
		return true;
	}
	return false;
}

int sw_soak_main(int count, char **words)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	struct sw_soak_plan plan = {
		.first = 0, .end = 10000, .simulate = true, .storm = true, .workers = cores > 0 ? (unsigned)cores : 1, .progress = true};
	for (int w = 1; w < count; w++) {
		if (strcmp(words[w], "--storm") == 0)
			plan.simulate = false;
		else if (strcmp(words[w], "--simulation") == 0)
			plan.storm = false;
		else if (w + 1 == count || !parse_option(words[w], words[w + 1], &plan))
			return usage();
		else
			w++;
	}
	if (!plan.simulate && !plan.storm)
		return usage();
	if (plan.simulate && plan.only != NULL && plan.end == plan.first + 1)
		sw_soak_describe(plan.first, plan.only, stdout);
	unsigned failures = sw_soak_many(&plan);
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\n");
	printf("soak: %llu seeds, %u failures\n", (unsigned long long)(plan.end - plan.first), failures);
	return failures == 0 ? 0 : 1;
}
