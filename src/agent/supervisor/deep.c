/* A run that is taken off its GPUs whole while it is suspended, and brought
 * back (src/share/deep.h).
 *
 * The driver takes its time, so a helper asks it. It is a process with the job's identity, which
 * therefore can reach no process that the job's user could not.
 *
 * Invariants:
 *  1. there is one helper at a time. a child of it calls the driver, and outlives a helper that is
 *     killed. Nothing else is begun, and no process is stopped, before both are gone;
 *  2. what may be off is brought back by the driver before the runtime is asked to bring memory
 *     back. That is tried until it is done;
 *  3. a run that cannot be taken off is suspended as usual, and `detail` says why.
 */
#include <errno.h>
#include <limits.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/supervisor/account.h"
#include "agent/supervisor/deep.h"
#include "agent/supervisor/gpu.h"
#include "agent/supervisor/launch.h"
#include "agent/supervisor/move.h"
#include "agent/supervisor/state.h"
#include "base/now.h"
#include "gpu/gpu.h"
#include "share/checkpoint.h"
#include "share/deep.h"
#include "share/outside.h"

#define RETRY_NS SW_NS_PER_S
#define LOOK_NS (100 * SW_NS_PER_MS)

/* What the helper shares with the supervisor. */
struct sw_deep_board {
	_Atomic pid_t worker; /* the child that has the driver loaded; 0: none */
	bool done;
	bool moved; /* with SW_DEEP_MOVE: it is where it should go */
	int code;
	char why[200];
};

/* ---- in the helper */

/* Those that the page does not know would stay on their GPUs. Where the driver's lists cannot be
 * had, no process is suspected. */
static int check_outside(struct sw_share_page *page, pid_t supervisor, const char *path, struct sw_err *err)
{
	static struct sw_gpu_sample sample; /* too large for the stack */
	SW_CLEANUP(sw_gpu_source_closep) struct sw_gpu_source *gpus = NULL;
	if (sw_gpu_source_open("nvml", &gpus, NULL) < 0)
		return 0;
	for (uint32_t i = 0; i < sw_gpu_source_count(gpus); i++) {
		struct sw_outside outside = {0};
		int gpu = sw_share_page_gpu(page, sw_gpu_source_info(gpus, i)->uuid);
		if (gpu < 0 || sw_gpu_source_sample(gpus, i, &sample, NULL) < 0)
			continue;
		for (uint32_t p = 0; p < sample.process_count; p++)
			if (sw_outside_is_of((pid_t)sample.processes[p].pid, supervisor, path))
				sw_outside_add(page, (uint32_t)gpu, (pid_t)sample.processes[p].pid, sample.processes[p].memory_bytes,
					       &outside);
		if (outside.processes > 0)
			return sw_err_set(err, SW_EINPUT, "process %d uses a GPU outside the runtime", (int)outside.pid);
	}
	return 0;
}

static int take_off(struct sw_share_page *page, pid_t supervisor, const char *path, struct sw_err *err)
{
	struct sw_share_figures figures;
	int r = check_outside(page, supervisor, path, err);
	r = r < 0 ? r : sw_deep_out(page, err);
	sw_share_page_look(page, &figures);
	if (r == 0 && figures.off < figures.processes)
		return sw_err_set(err, SW_EIO, "not all its processes have left their GPUs");
	return r;
}

/* Whether the driver lists a process of the run on a GPU that it was to go to. */
static bool is_there(const struct sw_supervisor *supervisor)
{
	static struct sw_gpu_sample sample; /* too large for the stack */
	const struct sw_supervisor_move *move = &supervisor->move;
	SW_CLEANUP(sw_gpu_source_closep) struct sw_gpu_source *gpus = NULL;
	if (sw_gpu_source_open("nvml", &gpus, NULL) < 0)
		return false;
	for (uint32_t i = 0; i < sw_gpu_source_count(gpus); i++) {
		bool is_new = false;
		for (uint32_t g = 0; g < move->count; g++)
			is_new |= strcmp(move->to[g], move->from[g]) != 0 && strcmp(move->to[g], sw_gpu_source_info(gpus, i)->uuid) == 0;
		if (!is_new || sw_gpu_source_sample(gpus, i, &sample, NULL) < 0)
			continue;
		for (uint32_t p = 0; p < sample.process_count; p++)
			if (sw_outside_is_of((pid_t)sample.processes[p].pid, (pid_t)supervisor->account.supervisor, supervisor->gpu.path))
				return true;
	}
	return false;
}

/* The process that moved it may have been killed before it wrote this, or behind. */
static void note_places(struct sw_share_page *page, const struct sw_supervisor_move *move, bool moved)
{
	struct sw_page *shared = sw_share_page_shared(page);
	uint8_t uuid[sizeof shared->gpus[0].uuid];
	for (uint32_t g = 0; g < move->count; g++)
		if (sw_share_uuid(moved ? move->to[g] : move->from[g], uuid))
			memcpy(shared->gpus[g].uuid, uuid, sizeof uuid);
}

/* Where it was; or, where a process was killed that moved it, where that one got it to. */
static int bring_back(struct sw_share_page *page, const struct sw_supervisor *supervisor, bool *ret_moved, struct sw_err *err)
{
	int r = sw_deep_back(page, NULL, 0, err);
	if (r == 0 && supervisor->account.run.moving != NULL) {
		*ret_moved = is_there(supervisor);
		note_places(page, &supervisor->move, *ret_moved);
	}
	return r;
}

/* Whatever the outcome, it is tried that it is somewhere. */
static int carry(struct sw_share_page *page, const struct sw_supervisor *supervisor, bool *ret_moved, struct sw_err *err)
{
	struct sw_checkpoint_pair pairs[SW_CHECKPOINT_PAIRS];
	size_t count = 0;
	int r = sw_supervisor_move_pairs(supervisor, pairs, &count, err);
	r = r < 0 ? r : sw_deep_may_move(page, err);
	r = r < 0 ? r : take_off(page, (pid_t)supervisor->account.supervisor, supervisor->gpu.path, err);
	if (r < 0)
		return r;
	r = sw_deep_back(page, pairs, count, err);
	*ret_moved = r == 0;
	return r < 0 && bring_back(page, supervisor, ret_moved, NULL) == 0 && *ret_moved ? 0 : r;
}

static _Noreturn void help(const struct sw_supervisor *supervisor, enum sw_deep_task task)
{
	const struct sw_run_spec *spec = supervisor->spec;
	struct sw_deep_board *board = supervisor->deep.board;
	const char *path = supervisor->gpu.path;
	struct sw_share_page *page = NULL;
	struct sw_err err = {0};
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setsid();
	/* The lock of the run's folder is the supervisor's alone. */
	close_range(3, UINT_MAX, 0);
	sw_checkpoint_show(&board->worker);
	int r = sw_become_user(spec->uid, spec->gid);
	r = r != 0 ? sw_err_set(&err, SW_EDENIED, "cannot become user %u: %s", spec->uid, strerror(r))
		   : sw_share_page_open_mapped(path, &page, &err);
	if (r == 0)
		r = task == SW_DEEP_OUT	   ? take_off(page, (pid_t)supervisor->account.supervisor, path, &err)
		    : task == SW_DEEP_BACK ? bring_back(page, supervisor, &board->moved, &err)
					   : carry(page, supervisor, &board->moved, &err);
	board->code = r;
	snprintf(board->why, sizeof board->why, "%.100s%s%.95s", err.fact, err.detail[0] != '\0' ? ": " : "", err.detail);
	board->done = true;
	_exit(0);
}

/* ---- in the supervisor */

static bool is_busy(const struct sw_supervisor_deep *deep)
{
	return deep->helper > 0 || deep->helped;
}

static void refuse(struct sw_supervisor *supervisor, const char *why)
{
	char detail[sizeof supervisor->gpu.detail];
	supervisor->account.run.depth = SW_DEPTH_USUAL;
	snprintf(detail, sizeof detail, "it stands still, but is not off its GPUs: %s", why);
	sw_supervisor_gpu_say(supervisor, detail);
}

/* How a move ended that left it off is known when it is back. */
static void settle_move(struct sw_supervisor *supervisor, bool good, const char *why)
{
	const struct sw_supervisor_deep *deep = &supervisor->deep;
	struct sw_supervisor_move *move = &supervisor->move;
	char kept[sizeof move->why];
	if (supervisor->account.run.moving == NULL || move->leaving)
		return;
	if (deep->task == SW_DEEP_MOVE)
		snprintf(move->why, sizeof move->why, "%s", why);
	snprintf(kept, sizeof kept, "%s", move->why);
	if (deep->task == SW_DEEP_MOVE ? !deep->off : good)
		sw_supervisor_move_end(supervisor, deep->board->moved ? NULL : kept);
}

/* The driver is not asked any more. */
static void conclude(struct sw_supervisor *supervisor, int64_t now_ns)
{
	struct sw_supervisor_deep *deep = &supervisor->deep;
	struct sw_share_figures figures;
	char detail[sizeof supervisor->gpu.detail];
	bool good = deep->board->done && deep->board->code == 0;
	const char *why = deep->board->done ? deep->board->why : "the process that asked the driver for it was killed";
	sw_share_page_look(supervisor->gpu.page, &figures);
	bool outward = deep->task == SW_DEEP_OUT;
	/* Where the process that moved it was killed, the next one that looks finds out where it
	 * is. */
	deep->off = outward ? good || figures.off > 0 : deep->task == SW_DEEP_MOVE ? !deep->board->done || figures.off > 0 : !good;
	settle_move(supervisor, good, why);
	if (outward && !good)
		refuse(supervisor, why);
	else if (deep->task != SW_DEEP_MOVE)
		supervisor->account.run.depth = deep->off ? SW_DEPTH_OFF : SW_DEPTH_USUAL;
	if (deep->task == SW_DEEP_BACK && !good) {
		snprintf(detail, sizeof detail, "it is not back on its GPUs yet: %s", why);
		sw_supervisor_gpu_say(supervisor, detail);
	}
	if (supervisor->pause == SW_PAUSE_COMING)
		supervisor->look_at_ns = now_ns;
	else if (supervisor->pause == SW_PAUSE_NONE && deep->off)
		deep->look_at_ns = now_ns + (deep->task == SW_DEEP_BACK ? RETRY_NS : 0);
	else if (supervisor->pause == SW_PAUSE_NONE)
		sw_supervisor_gpu_return(supervisor, now_ns);
	sw_supervisor_enter(supervisor, supervisor->account.run.state);
}

/* The helper is gone; so must be its child. */
static void wind_up(struct sw_supervisor *supervisor, int64_t now_ns)
{
	struct sw_supervisor_deep *deep = &supervisor->deep;
	pid_t worker = atomic_load(&deep->board->worker);
	deep->helped = worker > 0 && (kill(worker, 0) == 0 || errno != ESRCH);
	if (deep->helped)
		deep->look_at_ns = now_ns + LOOK_NS;
	else
		conclude(supervisor, now_ns);
}

static void begin(struct sw_supervisor *supervisor, enum sw_deep_task task, int64_t now_ns)
{
	struct sw_supervisor_deep *deep = &supervisor->deep;
	if (deep->board == NULL) {
		void *board = mmap(NULL, sizeof *deep->board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (board == MAP_FAILED && task == SW_DEEP_MOVE) {
			sw_supervisor_move_end(supervisor, "out of memory");
			sw_supervisor_gpu_return(supervisor, now_ns);
			return;
		}
		if (board == MAP_FAILED) { /* it comes back only after it was off, and has one then */
			refuse(supervisor, "out of memory");
			return;
		}
		deep->board = board;
	}
	memset(deep->board, 0, sizeof *deep->board);
	deep->task = task;
	deep->look_at_ns = SW_NEVER;
	deep->helper = fork();
	if (deep->helper == 0)
		help(supervisor, task);
	if (deep->helper > 0)
		return;
	snprintf(deep->board->why, sizeof deep->board->why, "cannot start another process: %s", strerror(errno));
	deep->board->code = SW_EIO;
	deep->board->done = true;
	deep->helper = 0;
	conclude(supervisor, now_ns);
}

void sw_supervisor_deep_wish(struct sw_supervisor *supervisor, bool deep)
{
	supervisor->deep.wanted = deep;
	supervisor->deep.tried = false;
	if (deep)
		supervisor->account.run.depth = SW_DEPTH_LEAVING;
}

bool sw_supervisor_deep_is_settled(struct sw_supervisor *supervisor, int64_t now_ns)
{
	struct sw_supervisor_deep *deep = &supervisor->deep;
	if (is_busy(deep))
		return false;
	if (!deep->wanted || deep->tried)
		return true;
	deep->tried = true;
	if (supervisor->gpu.page == NULL)
		refuse(supervisor, "it runs without the GPU runtime");
	else if (supervisor->gpu.detail[0] != '\0')
		supervisor->account.run.depth = SW_DEPTH_USUAL; /* its memory did not even leave: that was said */
	else
		begin(supervisor, SW_DEEP_OUT, now_ns);
	return !is_busy(deep);
}

void sw_supervisor_deep_return(struct sw_supervisor *supervisor, int64_t now_ns)
{
	struct sw_supervisor_deep *deep = &supervisor->deep;
	deep->wanted = false;
	sw_supervisor_gpu_say(supervisor, "");
	if (is_busy(deep))
		return; /* then conclude() goes on */
	if (deep->off)
		begin(supervisor, SW_DEEP_BACK, now_ns);
	else
		sw_supervisor_gpu_return(supervisor, now_ns);
}

void sw_supervisor_deep_tick(struct sw_supervisor *supervisor, int64_t now_ns)
{
	struct sw_supervisor_deep *deep = &supervisor->deep;
	if (now_ns < deep->look_at_ns)
		return;
	deep->look_at_ns = SW_NEVER;
	if (deep->helped)
		wind_up(supervisor, now_ns);
	else if (supervisor->pause == SW_PAUSE_NONE && deep->off && deep->helper == 0)
		begin(supervisor, SW_DEEP_BACK, now_ns);
}

bool sw_supervisor_deep_reaped(struct sw_supervisor *supervisor, pid_t pid)
{
	struct sw_supervisor_deep *deep = &supervisor->deep;
	if (deep->helper > 0 && pid == deep->helper) {
		deep->helper = 0;
		deep->helped = true;
		deep->look_at_ns = sw_now_boot_ns();
		return true;
	}
	if (pid != sw_supervisor_deep_worker(supervisor))
		return false;
	/* Its number may be another process's now: one of the job's, which is not to be spared. */
	atomic_store(&deep->board->worker, 0);
	return true;
}

pid_t sw_supervisor_deep_worker(const struct sw_supervisor *supervisor)
{
	return supervisor->deep.board != NULL ? atomic_load(&supervisor->deep.board->worker) : 0;
}

bool sw_supervisor_deep_is_busy(const struct sw_supervisor *supervisor)
{
	return is_busy(&supervisor->deep) || supervisor->deep.off;
}

void sw_supervisor_deep_move(struct sw_supervisor *supervisor, int64_t now_ns)
{
	begin(supervisor, SW_DEEP_MOVE, now_ns);
}
