#include "agent/supervisor/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/close_range.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "share/page.h"
#include "share/preload.h"

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

void sw_launch_mark(const char *token, char *buffer, size_t size)
{
	snprintf(buffer, size, "SHAREWELL_RUN_TOKEN=%s", token);
}

int sw_become_user(uid_t uid, gid_t gid)
{
	if (uid == geteuid() && gid == getegid())
		return 0;
	if (geteuid() != 0)
		return EPERM;
	char buffer[16384];
	struct passwd entry, *found = NULL;
	if (getpwuid_r(uid, &entry, buffer, sizeof buffer, &found) == 0 && found != NULL) {
		if (initgroups(found->pw_name, gid) != 0)
			return errno;
	} else if (setgroups(1, &gid) != 0) {
		return errno;
	}
	if (setresgid(gid, gid, gid) != 0 || setresuid(uid, uid, uid) != 0)
		return errno;
	return 0;
}

__attribute__((format(printf, 3, 4))) static _Noreturn void give_up(const struct sw_launch *launch, int code, const char *fmt, ...)
{
	struct sw_launch_failure failure = {.code = code};
	va_list args;
	va_start(args, fmt);
	vsnprintf(failure.detail, sizeof failure.detail, fmt, args);
	va_end(args);
	(void)!write(launch->report, &failure, sizeof failure);
	_exit(code);
}

/* ---- environment */

static void set(const char *name, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void set(const char *name, const char *fmt, ...)
{
	char value[4096];
	va_list args;
	va_start(args, fmt);
	vsnprintf(value, sizeof value, fmt, args);
	va_end(args);
	setenv(name, value, 1);
}

/* GPUs by UUID, joined with commas. */
static void set_gpus(const struct sw_texts *gpus)
{
	size_t size = 1;
	for (size_t i = 0; i < gpus->count; i++)
		size += strlen(gpus->items[i]) + 1;
	char *list = calloc(1, size);
	if (list == NULL)
		return;
	size_t used = 0;
	for (size_t i = 0; i < gpus->count; i++)
		used += (size_t)snprintf(list + used, size - used, "%s%s", i > 0 ? "," : "", gpus->items[i]);
	setenv("CUDA_VISIBLE_DEVICES", list, 1);
	free(list);
}

/* The user, where the environment does not say so already: asking may take long. */
static void set_user(uid_t uid)
{
	if (getenv("HOME") != NULL && getenv("USER") != NULL && getenv("LOGNAME") != NULL && getenv("SHELL") != NULL)
		return;
	char buffer[16384];
	struct passwd entry, *found = NULL;
	if (getpwuid_r(uid, &entry, buffer, sizeof buffer, &found) != 0 || found == NULL)
		return;
	setenv("HOME", found->pw_dir, 0);
	setenv("USER", found->pw_name, 0);
	setenv("LOGNAME", found->pw_name, 0);
	setenv("SHELL", found->pw_shell, 0);
}

static void set_slurm(const struct sw_run_order *order)
{
	const struct sw_want *want = &order->want;
	const struct sw_run_spec *spec = want->spec;
	set("SLURM_JOB_ID", "%" PRIu64, want->id.job);
	set("SLURM_JOBID", "%" PRIu64, want->id.job);
	set("SLURM_JOB_NAME", "%s", spec->name != NULL ? spec->name : spec->argv.items[0]);
	set("SLURM_JOB_NODELIST", "%s", order->node);
	set("SLURM_NODELIST", "%s", order->node);
	set("SLURMD_NODENAME", "%s", order->node);
	set("SLURM_JOB_NUM_NODES", "1");
	set("SLURM_NNODES", "1");
	set("SLURM_NTASKS", "1");
	set("SLURM_PROCID", "0");
	set("SLURM_LOCALID", "0");
	set("SLURM_NODEID", "0");
	set("SLURM_GPUS_ON_NODE", "%zu", want->gpus.count);
	set("SLURM_RESTART_COUNT", "%" PRIu32, want->id.epoch > 0 ? want->id.epoch - 1 : 0);
	set("SLURM_SUBMIT_DIR", "%s", spec->workdir);
	if (spec->cpus > 0)
		set("SLURM_CPUS_ON_NODE", "%" PRIu32, spec->cpus);
}

/* The GPU runtime is there when all that it needs is within the user's reach; without it the
 * job is none the worse. */
static void set_gpu_runtime(const struct sw_launch *launch)
{
	struct sw_launch_failure note = {0};
	struct sw_err err = {0};
	char preload[16384];
	unsetenv(SW_PAGE_ENV);
	unsetenv(SW_PAGE_PLACES_ENV);
	const char *named = getenv("LD_PRELOAD"), *visible = getenv("CUDA_VISIBLE_DEVICES");
	char *others = named != NULL ? strdup(named) : NULL;
	if (others != NULL) {
		sw_share_preload_strip(others);
		if (others[0] != '\0')
			setenv("LD_PRELOAD", others, 1);
		else
			unsetenv("LD_PRELOAD");
	}
	if (launch->gpu_page == NULL || (named != NULL && others == NULL)) {
		free(others);
		return;
	}
	const char *missing = access(launch->gpu_library, R_OK) != 0	   ? launch->gpu_library
			      : access(launch->gpu_page, R_OK | W_OK) != 0 ? launch->gpu_page
									   : NULL;
	if (missing != NULL)
		snprintf(note.detail, sizeof note.detail, "it runs without the GPU runtime: its user cannot use '%.300s': %s", missing,
			 strerror(errno));
	else if (sw_share_preload_value(launch->gpu_library, others, preload, sizeof preload, &err) < 0)
		snprintf(note.detail, sizeof note.detail, "it runs without the GPU runtime: %s", err.fact);
	if (note.detail[0] != '\0') {
		(void)!write(launch->report, &note, sizeof note);
	} else {
		setenv("LD_PRELOAD", preload, 1);
		setenv(SW_PAGE_ENV, launch->gpu_page, 1);
		setenv(SW_PAGE_PLACES_ENV, visible != NULL ? visible : "", 1);
	}
	free(others);
}

/* Ours win over the user's, so that a job submitted from within a job is not taken for it. */
static void set_environment(const struct sw_launch *launch)
{
	const struct sw_want *want = &launch->order->want;
	const struct sw_run_spec *spec = want->spec;
	clearenv();
	setenv("PATH", DEFAULT_PATH, 1);
	for (size_t i = 0; i < spec->env.count; i++) {
		const char *equals = strchr(spec->env.items[i], '=');
		char *name = strndup(spec->env.items[i], (size_t)(equals - spec->env.items[i]));
		if (name != NULL)
			setenv(name, equals + 1, 1);
		free(name);
	}
	set_user(spec->uid);
	set_gpus(&want->gpus);
	set("SHAREWELL_JOB_ID", "%" PRIu64, want->id.job);
	set("SHAREWELL_EPOCH", "%" PRIu32, want->id.epoch);
	set("SHAREWELL_JOB_NAME", "%s", spec->name != NULL ? spec->name : spec->argv.items[0]);
	set("SHAREWELL_NODE", "%s", launch->order->node);
	set("SHAREWELL_GPUS", "%zu", want->gpus.count);
	set("SHAREWELL_RUN_TOKEN", "%s", launch->token);
	if (spec->cpus > 0)
		set("SHAREWELL_CPUS", "%" PRIu32, spec->cpus);
	if (spec->slurm_env)
		set_slurm(launch->order);
	set_gpu_runtime(launch);
}

/* ---- the way to exec */

static void reset_signals(void)
{
	sigset_t none;
	sigemptyset(&none);
	for (int i = 1; i < NSIG; i++)
		signal(i, SIG_DFL);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static void set_limits(const struct sw_launch *launch)
{
	const struct sw_run_spec *spec = launch->order->want.spec;
	struct rlimit limit;
	if (getrlimit(RLIMIT_CORE, &limit) == 0) {
		limit.rlim_cur = spec->core_bytes < limit.rlim_max ? spec->core_bytes : limit.rlim_max;
		setrlimit(RLIMIT_CORE, &limit);
	}
	if (spec->open_files == 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = spec->open_files;
	if (limit.rlim_max < limit.rlim_cur && geteuid() == 0)
		limit.rlim_max = limit.rlim_cur;
	if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
		give_up(launch, 125, "cannot allow it %" PRIu64 " open files: %s", spec->open_files, strerror(errno));
}

static void set_streams(const struct sw_launch *launch)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (null < 0 || dup2(null, 0) < 0 || dup2(launch->out, 1) < 0 || dup2(launch->err, 2) < 0)
		give_up(launch, 125, "cannot set its standard streams: %s", strerror(errno));
}

/* A supervisor that dies takes the job along. The kernel forgets this when the identity
 * changes, so it comes after. */
static void tie_to_supervisor(const struct sw_launch *launch)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != launch->supervisor)
		_exit(125);
}

_Noreturn void sw_launch_exec(const struct sw_launch *launch)
{
	const struct sw_run_spec *spec = launch->order->want.spec;
	tie_to_supervisor(launch);
	reset_signals();
	setsid();
	if (launch->cgroup_procs >= 0 && write(launch->cgroup_procs, "0", 1) != 1)
		give_up(launch, 125, "cannot enter its control group: %s", strerror(errno));
	set_streams(launch);
	close_range(3, UINT_MAX, CLOSE_RANGE_CLOEXEC);
	set_limits(launch);
	int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (score >= 0) {
		(void)!write(score, "0", 1);
		close(score);
	}
	int error = sw_become_user(spec->uid, spec->gid);
	if (error != 0)
		give_up(launch, 125, "cannot become user %" PRIu32 " of group %" PRIu32 ": %s", spec->uid, spec->gid, strerror(error));
	tie_to_supervisor(launch);
	umask(spec->umask);
	if (chdir(spec->workdir) != 0)
		give_up(launch, 125, "cannot change to folder '%.300s': %s", spec->workdir, strerror(errno));
	set_environment(launch);
	setenv("PWD", spec->workdir, 1);
	char **argv = calloc(spec->argv.count + 1, sizeof *argv);
	for (size_t i = 0; argv != NULL && i < spec->argv.count; i++)
		argv[i] = strdup(spec->argv.items[i]);
	if (argv == NULL || argv[0] == NULL)
		give_up(launch, 125, "out of memory");
	execvp(argv[0], argv);
	give_up(launch, errno == ENOENT ? 127 : 126, "cannot run '%.300s': %s", argv[0], strerror(errno));
}
