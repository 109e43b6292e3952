/* The keeper of a share: the process that started the program and stays beside it. */
#include "cli/share_run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/now.h"
#include "cli/message.h"
#include "cli/share_places.h"
#include "gpu/gpu.h"
#include "share/folder.h"
#include "share/host.h"
#include "share/node.h"
#include "share/outside.h"
#include "share/preload.h"
#include "share/profile.h"

#define SECOND INT64_C(1000000000)
#define OUTSIDE_NS (2 * SECOND)

struct keeper {
	struct sw_gpu_source *gpus;
	struct sw_share_page *page;
	struct sw_share_folder *folder;
	struct sw_share_memory memories[SW_PAGE_GPUS];
	uint32_t gpu_count;
	int64_t sampled_ns;
	struct sw_outside outside[SW_PAGE_GPUS]; /* as of the last look */
	int64_t looked_ns;
	bool warned;
	char path[PATH_MAX];
	int alive;
};

/* ---- its page */

/* Held for as long as this process lives: it tells that the share does. */
static int hold(const char *path)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
	int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0)
		fcntl(fd, F_OFD_SETLK, &lock);
	return fd;
}

static void state_terms(const struct keeper *keeper, const struct sw_share_terms *terms, uint64_t host_bytes)
{
	struct sw_share_terms own = *terms;
	struct sw_share_orders orders;
	own.arrived_ns = sw_now_monotonic_ns();
	sw_share_terms_set(keeper->page, &own);
	sw_share_orders_alone(&own, &orders);
	sw_share_node_join(keeper->page, geteuid(), getegid());
	sw_share_page_host_budget(keeper->page, host_bytes > 0 ? host_bytes : sw_share_host_budget());
	sw_share_orders_give(keeper->page, &orders);
}

static int claim_name(struct keeper *keeper, const char *name, const struct sw_share_terms *terms, uint64_t host_bytes, struct sw_err *err)
{
	char folder[PATH_MAX];
	const char *uuids[SW_PAGE_GPUS];
	int r = sw_cli_share_folder(folder, err);
	r = r < 0 ? r : sw_share_folder_new(folder, &keeper->folder, err);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < keeper->gpu_count; i++)
		uuids[i] = sw_gpu_source_info(keeper->gpus, i)->uuid;
	int lock = sw_share_folder_lock(folder, true);
	if (sw_cli_share_is_alive(keeper->path)) {
		r = sw_err_set(err, SW_EINPUT, "there is a share '%s' already", name);
		sw_err_hint(err, "Give this one another --name.");
	} else {
		unlink(keeper->path);
		r = sw_share_page_new(keeper->path, uuids, keeper->gpu_count, &keeper->page, err);
	}
	if (r == 0) {
		state_terms(keeper, terms, host_bytes);
		keeper->alive = hold(keeper->path);
		/* From here on the program can write it, and shorten it. */
		sw_share_page_close(keeper->page);
		keeper->page = NULL;
		r = sw_share_page_open(keeper->path, &keeper->page, err);
	}
	sw_share_folder_unlock(lock);
	return r;
}

static int open_keeper(struct keeper *keeper, const char *name, const struct sw_share_terms *terms, uint64_t host_bytes, struct sw_err *err)
{
	int r = sw_cli_share_path(name, keeper->path, err);
	r = r < 0 ? r : sw_gpu_source_open("nvml", &keeper->gpus, err);
	if (r < 0)
		return r;
	keeper->gpu_count = sw_gpu_source_count(keeper->gpus) < SW_PAGE_GPUS ? sw_gpu_source_count(keeper->gpus) : SW_PAGE_GPUS;
	for (uint32_t i = 0; i < keeper->gpu_count; i++) {
		keeper->memories[i].capacity_bytes = sw_gpu_source_info(keeper->gpus, i)->memory_bytes;
		(void)sw_share_uuid(sw_gpu_source_info(keeper->gpus, i)->uuid, keeper->memories[i].uuid);
	}
	return claim_name(keeper, name, terms, host_bytes, err);
}

static void close_keeper(struct keeper *keeper)
{
	if (keeper->page != NULL) {
		unlink(keeper->path);
		(void)sw_share_profile_take(keeper->path, NULL, 0);
	}
	if (keeper->alive >= 0)
		close(keeper->alive);
	sw_share_folder_free(keeper->folder);
	sw_share_page_close(keeper->page);
	if (keeper->gpus != NULL)
		sw_gpu_source_close(keeper->gpus);
}

/* ---- coordination */

/* Asked once a second: it takes its time. */
static void sample_memories(struct keeper *keeper, int64_t now)
{
	bool due = now - keeper->sampled_ns >= SECOND;
	for (uint32_t i = 0; i < keeper->gpu_count; i++) {
		static struct sw_gpu_sample sample; /* too large for the stack */
		struct sw_share_memory *memory = &keeper->memories[i];
		memory->fresh =
			due && sw_gpu_source_sample(keeper->gpus, i, &sample, NULL) == 0 && (sample.known & SW_GPU_KNOWS_MEMORY) != 0;
		if (!memory->fresh)
			continue;
		memory->capacity_bytes = sample.memory_total_bytes;
		memory->used_bytes = sample.memory_used_bytes + sample.memory_reserved_bytes;
	}
	if (due)
		keeper->sampled_ns = now;
}

static void coordinate(struct keeper *keeper)
{
	int64_t now = sw_now_monotonic_ns();
	if (!sw_share_folder_leads(keeper->folder))
		return;
	sample_memories(keeper, now);
	sw_share_folder_tick(keeper->folder, keeper->memories, keeper->gpu_count, now);
}

/* ---- what goes around the runtime */

/* Once: its user may not know that part of it does. */
static void warn(struct keeper *keeper, uint32_t gpu, const struct sw_outside *outside)
{
	if (outside->processes == 0 || keeper->warned)
		return;
	keeper->warned = true;
	sw_cli_print_note("process %d uses GPU %u outside the runtime (%.2f GiB). Limits do not hold for it, and it is not suspended. "
			  "docs/gpu.md says how that comes about.",
			  (int)outside->pid, gpu, (double)outside->bytes / (1 << 30));
}

/* What was there at two looks counts: a process that ends is gone from its page first. */
static void look_outside(struct keeper *keeper, int64_t now)
{
	if (now - keeper->looked_ns < OUTSIDE_NS)
		return;
	keeper->looked_ns = now;
	if (!sw_share_page_refresh(keeper->page))
		return;
	for (uint32_t i = 0; i < keeper->gpu_count; i++) {
		static struct sw_gpu_sample sample; /* too large for the stack */
		struct sw_outside found = {0};
		int gpu = sw_share_page_gpu(keeper->page, sw_gpu_source_info(keeper->gpus, i)->uuid);
		if (gpu < 0 || sw_gpu_source_sample(keeper->gpus, i, &sample, NULL) < 0)
			continue;
		for (uint32_t p = 0; p < sample.process_count; p++) {
			pid_t pid = (pid_t)sample.processes[p].pid;
			if (sw_outside_is_of(pid, getpid(), keeper->path))
				sw_outside_add(keeper->page, (uint32_t)gpu, pid, sample.processes[p].memory_bytes, &found);
		}
		struct sw_outside lasting = keeper->outside[i].processes > 0 ? found : (struct sw_outside){0};
		sw_outside_note(keeper->page, (uint32_t)gpu, &lasting);
		warn(keeper, i, &lasting);
		keeper->outside[i] = found;
	}
}

/* ---- the program */

static int set_environment(const char *path, struct sw_err *err)
{
	char library[PATH_MAX], value[2 * PATH_MAX];
	int r = sw_share_find_library(library, sizeof library, err);
	r = r < 0 ? r : sw_share_preload_value(library, getenv("LD_PRELOAD"), value, sizeof value, err);
	if (r < 0)
		return r;
	if (setenv("LD_PRELOAD", value, 1) != 0 || setenv(SW_PAGE_ENV, path, 1) != 0)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	return 0;
}

static pid_t child;
static volatile sig_atomic_t stop_wanted, starting;

/* What a terminal sends, it sends to the program as well, if that was there. */
static void pass_on(int signal, siginfo_t *info, void *context)
{
	(void)context;
	if (child > 0 && (starting || info->si_code <= 0))
		kill(child, signal);
}

static void note_stop(int signal, siginfo_t *info, void *context)
{
	pass_on(signal, info, context);
	stop_wanted = 1;
}

static const int passed[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT, SIGTSTP};

static void take_signals(void)
{
	for (size_t i = 0; i < sizeof passed / sizeof passed[0]; i++)
		sigaction(passed[i],
			  &(struct sigaction){.sa_sigaction = passed[i] == SIGTSTP ? note_stop : pass_on,
					      .sa_flags = SA_RESTART | SA_SIGINFO},
			  NULL);
	signal(SIGCHLD, SIG_DFL);
}

/* Until there is a child that they can be passed on to, and in it until it is the program, they
 * wait. Returns what was blocked before. */
static sigset_t hold_signals(void)
{
	sigset_t held, before;
	sigemptyset(&held);
	sigaddset(&held, SIGCHLD);
	for (size_t i = 0; i < sizeof passed / sizeof passed[0]; i++)
		sigaddset(&held, passed[i]);
	sigprocmask(SIG_BLOCK, &held, &before);
	return before;
}

/* In the child. */
static void become(const struct sw_cli_texts *words, const sigset_t *mask)
{
	char **argv = calloc(words->count + 1, sizeof *argv);
	for (size_t i = 0; argv != NULL && i < words->count; i++)
		argv[i] = strdup(words->items[i]);
	for (size_t i = 0; i < sizeof passed / sizeof passed[0]; i++)
		signal(passed[i], SIG_DFL);
	sigprocmask(SIG_SETMASK, mask, NULL);
	if (argv != NULL)
		execvp(words->items[0], argv);
	fprintf(stderr, "sharewell: cannot run '%s': %s\n", words->items[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

/* Until the program ends, which wakes us, with a look at its neighbours now and then. */
static int stay_beside(struct keeper *keeper, const sigset_t *awaited)
{
	for (;;) {
		int status;
		pid_t ended = waitpid(child, &status, WNOHANG);
		if (ended == child)
			return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		if (ended < 0 && errno != EINTR)
			return 1;
		if (stop_wanted) {
			/* A stopped keeper cannot decide for others. */
			stop_wanted = 0;
			sw_share_folder_stand_back(keeper->folder);
			raise(SIGSTOP);
		}
		coordinate(keeper);
		look_outside(keeper, sw_now_monotonic_ns());
		sigtimedwait(awaited, NULL, &(struct timespec){.tv_nsec = SW_SHARE_TICK_NS});
	}
}

static int start(struct keeper *keeper, const struct sw_cli_texts *words, struct sw_err *err)
{
	sigset_t awaited, beside;
	int r = set_environment(keeper->path, err);
	if (r < 0)
		return r;
	sigemptyset(&awaited);
	sigaddset(&awaited, SIGCHLD);
	starting = 1;
	const sigset_t before = hold_signals();
	take_signals();
	/* Before its first work: what its neighbours do then depends on it. */
	coordinate(keeper);
	fflush(NULL);
	child = fork();
	if (child == 0)
		become(words, &before);
	/* All but its end, which is waited for. */
	beside = before;
	sigaddset(&beside, SIGCHLD);
	sigprocmask(SIG_SETMASK, &beside, NULL);
	starting = 0;
	r = child > 0 ? stay_beside(keeper, &awaited) : sw_err_set(err, SW_EIO, "cannot start another process: %s", strerror(errno));
	sigprocmask(SIG_SETMASK, &before, NULL);
	return r;
}

int sw_cli_share_run(const char *name, const struct sw_cli_texts *words, const struct sw_share_terms *terms, uint64_t host_bytes,
		     struct sw_err *err)
{
	struct keeper keeper = {.alive = -1};
	char own[32];
	snprintf(own, sizeof own, "%d", (int)getpid());
	int r = open_keeper(&keeper, name != NULL ? name : own, terms, host_bytes, err);
	r = r < 0 ? r : start(&keeper, words, err);
	close_keeper(&keeper);
	return r;
}
