#include "share/checkpoint.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <sharewell/runtime.h>

#include "cuda/driver.h"

/* Gigabytes that cannot be moved otherwise go at one or two a second. */
#define ANSWER_MS 180000
#define LOCK_MS 10000
#define LOOK_MS 2
#define END_MS 2000
#define UNDO_MS 30000

enum step { LOAD, FIND, BEGIN, LOCK, CHECKPOINT, RESTORE, UNLOCK, DONE };

/* What the child shares with its parent. */
struct board {
	enum step step; /* the last one that it began */
	int code;	/* of the driver; 0: fine */
	pid_t pid;	/* which process it was about */
	char words[200];
	size_t count;
	struct sw_checkpoint_process processes[SW_CHECKPOINT_PROCESSES];
	bool locked[SW_CHECKPOINT_PROCESSES];
};

static _Atomic pid_t *shown;

void sw_checkpoint_show(_Atomic pid_t *place)
{
	shown = place;
}

static void show(pid_t child)
{
	if (shown != NULL)
		atomic_store(shown, child);
}

/* ---- in the child */

static struct {
	CUresult (*init)(unsigned);
	CUresult (*lock)(int, CUcheckpointLockArgs *);
	CUresult (*checkpoint)(int, void *);
	CUresult (*restore)(int, CUcheckpointRestoreArgs *);
	CUresult (*unlock)(int, void *);
} driver;

static CUresult load(struct board *board)
{
	const struct {
		const char *name;
		void *place;
	} functions[] = {{"cuInit", &driver.init},
			 {"cuCheckpointProcessLock", &driver.lock},
			 {"cuCheckpointProcessCheckpoint", &driver.checkpoint},
			 {"cuCheckpointProcessRestore", &driver.restore},
			 {"cuCheckpointProcessUnlock", &driver.unlock}};
	board->step = LOAD;
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	const char *why = library == NULL ? dlerror() : NULL;
	snprintf(board->words, sizeof board->words, "%s", why != NULL ? why : "");
	if (library == NULL)
		return CUDA_ERROR_NOT_FOUND;
	board->step = FIND;
	for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
		void *address = dlsym(library, functions[i].name);
		snprintf(board->words, sizeof board->words, "%s", functions[i].name);
		if (address == NULL)
			return CUDA_ERROR_NOT_FOUND;
		memcpy(functions[i].place, &address, sizeof address);
	}
	board->step = BEGIN;
	return driver.init(0);
}

static bool is_gone(pid_t pid)
{
	return kill(pid, 0) != 0 && errno == ESRCH;
}

static CUresult take(struct board *board, enum step step, size_t i, CUcheckpointRestoreArgs *args)
{
	pid_t pid = board->processes[i].pid;
	board->step = step;
	board->pid = pid;
	CUresult result = step == LOCK	       ? driver.lock(pid, &(CUcheckpointLockArgs){.timeout_ms = LOCK_MS})
			  : step == CHECKPOINT ? driver.checkpoint(pid, NULL)
			  : step == RESTORE    ? driver.restore(pid, args)
					       : driver.unlock(pid, NULL);
	if (result == CUDA_SUCCESS && step <= CHECKPOINT)
		board->locked[i] = true;
	if (result == CUDA_SUCCESS && (step == CHECKPOINT || step == RESTORE))
		board->processes[i].off = step == CHECKPOINT;
	if (result == CUDA_SUCCESS && step == UNLOCK)
		board->locked[i] = false;
	return result != CUDA_SUCCESS && is_gone(pid) ? CUDA_SUCCESS : result;
}

/* What was wrong is said of the first call that failed. */
static void undo(struct board *board, enum step step)
{
	const enum step failed = board->step;
	const pid_t pid = board->pid;
	for (size_t i = 0; i < board->count; i++) {
		if (step == RESTORE && board->processes[i].off)
			take(board, RESTORE, i, NULL);
		if (step == RESTORE && board->locked[i] && !board->processes[i].off)
			take(board, UNLOCK, i, NULL);
		if (step == CHECKPOINT && board->locked[i] && !board->processes[i].off)
			take(board, CHECKPOINT, i, NULL);
	}
	board->step = failed;
	board->pid = pid;
}

static CUresult out(struct board *board)
{
	CUresult result = CUDA_SUCCESS;
	for (size_t i = 0; i < board->count && result == CUDA_SUCCESS; i++)
		result = take(board, LOCK, i, NULL);
	for (size_t i = 0; i < board->count && result == CUDA_SUCCESS; i++)
		if (board->locked[i])
			result = take(board, CHECKPOINT, i, NULL);
	if (result != CUDA_SUCCESS)
		undo(board, RESTORE);
	return result;
}

/* One that was never taken off, because a process was killed in the middle of it, is in another
 * state, and needs less. */
static CUresult back(struct board *board, CUcheckpointRestoreArgs *args)
{
	CUresult result = CUDA_SUCCESS;
	for (size_t i = 0; i < board->count && result == CUDA_SUCCESS; i++) {
		result = take(board, RESTORE, i, args);
		board->locked[i] = result == CUDA_SUCCESS;
		result = result == CUDA_ERROR_ILLEGAL_STATE ? CUDA_SUCCESS : result;
	}
	if (result != CUDA_SUCCESS) {
		undo(board, CHECKPOINT);
		return result;
	}
	for (size_t i = 0; i < board->count; i++) {
		CUresult unlocked = take(board, UNLOCK, i, NULL);
		board->processes[i].off = false;
		result = unlocked != CUDA_SUCCESS && unlocked != CUDA_ERROR_ILLEGAL_STATE ? unlocked : result;
	}
	return result;
}

/* Another child was killed in the middle of out(), maybe in a call that was met all the same. */
static void clear_up(struct board *board)
{
	const enum step failed = board->step;
	const pid_t pid = board->pid;
	bool loaded = load(board) == CUDA_SUCCESS;
	for (size_t i = 0; i < board->count && loaded && failed >= LOCK; i++) {
		if (board->processes[i].pid != pid)
			continue;
		board->locked[i] = true;
		board->processes[i].off = failed == CHECKPOINT && take(board, RESTORE, i, NULL) == CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (loaded)
		undo(board, RESTORE);
	board->step = failed;
	board->pid = pid;
}

/* It stands alone from here on. */
static void leave_caller(void)
{
	show(getpid());
	/* What interrupts the caller does not interrupt this: half of it is
	 * worse than none or all. */
	setsid();
	/* It is none of the job's processes, and sees all GPUs. */
	unsetenv(SW_PAGE_ENV);
	unsetenv("CUDA_VISIBLE_DEVICES");
}

static _Noreturn void work(struct board *board, bool outward, const struct sw_checkpoint_pair *pairs, size_t pair_count)
{
	CUcheckpointGpuPair list[SW_CHECKPOINT_PAIRS];
	CUcheckpointRestoreArgs args = {.pairs = list, .pair_count = (unsigned)pair_count};
	for (size_t i = 0; i < pair_count; i++) {
		memcpy(list[i].from.bytes, pairs[i].from, sizeof pairs[i].from);
		memcpy(list[i].to.bytes, pairs[i].to, sizeof pairs[i].to);
	}
	leave_caller();
	CUresult result = load(board);
	if (result == CUDA_SUCCESS)
		result = outward ? out(board) : back(board, pair_count > 0 ? &args : NULL);
	board->code = result;
	if (result == CUDA_SUCCESS)
		board->step = DONE;
	_exit(0);
}

/* ---- in the parent */

static void doze(int64_t ms)
{
	nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static bool has_ended(pid_t child, int64_t within_ms)
{
	for (int64_t ms = 0; ms <= within_ms; ms += LOOK_MS) {
		pid_t ended = waitpid(child, NULL, WNOHANG);
		if (ended == child || (ended < 0 && errno != EINTR)) {
			show(0);
			return true;
		}
		doze(LOOK_MS);
	}
	return false;
}

static bool wait_or_kill(pid_t child, int64_t within_ms)
{
	bool ended = has_ended(child, within_ms);
	if (!ended) {
		kill(child, SIGKILL);
		(void)has_ended(child, END_MS);
	}
	return ended;
}

static void clear_up_after(struct board *board)
{
	pid_t child = fork();
	if (child == 0) {
		leave_caller();
		clear_up(board);
		_exit(0);
	}
	if (child > 0)
		(void)wait_or_kill(child, UNDO_MS);
}

static const char *say(int code, char buffer[32])
{
	switch (code) {
	case CUDA_ERROR_INVALID_VALUE:
		return "the driver does not know it, or not these GPUs";
	case CUDA_ERROR_OUT_OF_MEMORY:
		return "others hold the GPU's memory";
	case CUDA_ERROR_NOT_PERMITTED:
		return "the driver does not permit it: it needs the right to trace the process";
	case CUDA_ERROR_NOT_SUPPORTED:
		return "it uses something that cannot be taken off a GPU, such as managed memory or memory of another process";
	case CUDA_ERROR_TIMEOUT:
		return "it did not come to rest in time";
	case CUDA_ERROR_NO_DEVICE:
		return "the driver finds no GPU";
	default:
		snprintf(buffer, 32, "the driver's error %d", code);
		return buffer;
	}
}

static int fail(const struct board *board, bool outward, bool ended, struct sw_err *err)
{
	char buffer[32];
	int code = board->step <= FIND ? SW_ENOTFOUND : board->code == CUDA_ERROR_NOT_PERMITTED ? SW_EDENIED : SW_EIO;
	if (board->step == LOAD)
		sw_err_set(err, code, "there is no NVIDIA driver");
	else if (board->step == FIND)
		sw_err_set(err, code, "the NVIDIA driver is too old to take programs off their GPUs");
	else if (board->step == BEGIN)
		sw_err_set(err, code, "cannot use the NVIDIA driver");
	else
		sw_err_set(err, code, "cannot %s process %d %s", outward ? "take" : "bring", (int)board->pid,
			   outward ? "off its GPUs" : "back to its GPUs");
	if (board->step == LOAD)
		sw_err_detail(err, "%s", board->words);
	else if (board->step == FIND)
		sw_err_detail(err, "it has no %s; those from 570 on have", board->words);
	else if (!ended)
		sw_err_detail(err, "the driver did not answer within %d s", ANSWER_MS / 1000);
	else if (board->code == CUDA_SUCCESS)
		sw_err_detail(err, "the process that asked the driver for it was killed");
	else
		sw_err_detail(err, "%s", say(board->code, buffer));
	return code;
}

static int run(struct sw_checkpoint_process *processes, size_t count, bool outward, const struct sw_checkpoint_pair *pairs,
	       size_t pair_count, struct sw_err *err)
{
	if (count > SW_CHECKPOINT_PROCESSES || pair_count > SW_CHECKPOINT_PAIRS)
		return sw_err_set(err, SW_ELIMIT, "%zu processes and %zu GPUs are too many for one checkpoint", count, pair_count);
	struct board *board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (board == MAP_FAILED)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	board->count = count;
	memcpy(board->processes, processes, count * sizeof *processes);
	fflush(NULL);
	pid_t child = fork();
	if (child == 0)
		work(board, outward, pairs, pair_count);
	bool ended = child > 0 && wait_or_kill(child, ANSWER_MS);
	if (child > 0 && outward && board->step != DONE && board->code == CUDA_SUCCESS)
		clear_up_after(board);
	memcpy(processes, board->processes, count * sizeof *processes);
	int r = 0;
	if (child < 0)
		r = sw_err_set(err, SW_EIO, "cannot start another process: %s", strerror(errno));
	else if (board->step != DONE)
		r = fail(board, outward, ended, err);
	munmap(board, sizeof *board);
	return r;
}

int sw_checkpoint_out(struct sw_checkpoint_process *processes, size_t count, struct sw_err *err)
{
	return run(processes, count, true, NULL, 0, err);
}

int sw_checkpoint_back(struct sw_checkpoint_process *processes, size_t count, const struct sw_checkpoint_pair *pairs, size_t pair_count,
		       struct sw_err *err)
{
	return run(processes, count, false, pairs, pair_count, err);
}
