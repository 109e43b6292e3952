/* Checkpoints of other processes. Every process has a thread that waits for wishes in its place in
 * the shared file and does them. A wish is to stop at the next call and finish what was put in
 * (lock), or to give the GPU memory back (checkpoint). Others are to take it again, maybe on other
 * GPUs (restore), and to go on (unlock). The contents stay where they are, in the machine's memory;
 * that they went there is a matter of time only.
 *
 * 1. One wish at a time: its writer takes the place with a compare-and-exchange,
 *    the thread empties it.
 * 2. A caller that is killed leaves nothing behind: the wish is done, the answer is dropped.
 */
#include "checkpoint.h"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "context.h"
#include "shared.h"

enum wish { NONE, LOCK, CHECKPOINT, RESTORE, UNLOCK, BEING_WRITTEN };

#define ANSWER_NS 600000000000ULL

static atomic_bool locked;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t unlocked = PTHREAD_COND_INITIALIZER;
static uint64_t away[EMU_GPUS_MAX]; /* what this process had on each GPU, by its own numbers */

void emu_checkpoint_gate(void)
{
	if (!atomic_load_explicit(&locked, memory_order_acquire))
		return;
	pthread_mutex_lock(&lock);
	while (atomic_load(&locked))
		pthread_cond_wait(&unlocked, &lock);
	pthread_mutex_unlock(&lock);
}

static void set_locked(bool now)
{
	pthread_mutex_lock(&lock);
	atomic_store(&locked, now);
	pthread_cond_broadcast(&unlocked);
	pthread_mutex_unlock(&lock);
}

static void take_time(unsigned gpu, uint64_t bytes)
{
	emu_sleep_until(emu_now() + (uint64_t)((double)bytes * 1e9 / (double)emu_config()->gpus[gpu].checkpoint_bps));
}

static CUresult leave_gpus(void)
{
	for (unsigned gpu = 0; gpu < emu_config()->gpu_count; gpu++) {
		uint64_t bytes = emu_memory_held(gpu);
		take_time(gpu, bytes);
		emu_memory_give(gpu, bytes);
		away[gpu] = bytes;
	}
	return CUDA_SUCCESS;
}

/* All of it or nothing. */
static CUresult take_again(void)
{
	for (unsigned gpu = 0; gpu < emu_config()->gpu_count; gpu++) {
		if (emu_memory_take(gpu, away[gpu]))
			continue;
		while (gpu-- > 0)
			emu_memory_give(gpu, away[gpu]);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	for (unsigned gpu = 0; gpu < emu_config()->gpu_count; gpu++)
		take_time(gpu, away[gpu]);
	return CUDA_SUCCESS;
}

static CUresult return_to_gpus(const struct emu_slot *slot)
{
	uint8_t back[EMU_GPUS_MAX];
	for (unsigned gpu = 0; gpu < EMU_GPUS_MAX; gpu++)
		back[slot->moves[gpu]] = (uint8_t)gpu;
	emu_move(slot->moves);
	CUresult result = take_again();
	if (result != CUDA_SUCCESS)
		emu_move(back);
	return result;
}

static CUresult fulfil(struct emu_slot *slot, enum wish wish)
{
	static const int from[] = {[LOCK] = CU_PROCESS_RUNNING,
				   [CHECKPOINT] = CU_PROCESS_LOCKED,
				   [RESTORE] = CU_PROCESS_CHECKPOINTED,
				   [UNLOCK] = CU_PROCESS_LOCKED};
	static const int to[] = {[LOCK] = CU_PROCESS_LOCKED,
				 [CHECKPOINT] = CU_PROCESS_CHECKPOINTED,
				 [RESTORE] = CU_PROCESS_LOCKED,
				 [UNLOCK] = CU_PROCESS_RUNNING};
	if (atomic_load(&slot->process_state) != from[wish])
		return CUDA_ERROR_ILLEGAL_STATE;
	CUresult result = CUDA_SUCCESS;
	if (wish == LOCK) {
		set_locked(true);
		emu_contexts_wait();
	} else if (wish == CHECKPOINT) {
		result = leave_gpus();
	} else if (wish == RESTORE) {
		result = return_to_gpus(slot);
	}
	if (result == CUDA_SUCCESS)
		atomic_store(&slot->process_state, to[wish]);
	if (wish == UNLOCK)
		set_locked(false);
	return result;
}

static void sleep_on(atomic_uint *word, unsigned seen, uint64_t ns)
{
	struct timespec time = {.tv_sec = (time_t)(ns / 1000000000ULL), .tv_nsec = (long)(ns % 1000000000ULL)};
	syscall(SYS_futex, word, FUTEX_WAIT, seen, ns > 0 ? &time : NULL, NULL, 0);
}

static void wake(atomic_uint *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, 64, NULL, NULL, 0);
}

static void *serve(void *argument)
{
	struct emu_slot *slot = argument;
	atomic_store(&slot->thread, (int)syscall(SYS_gettid));
	for (;;) {
		unsigned wish = atomic_load(&slot->wish);
		if (wish == NONE || wish > UNLOCK) {
			sleep_on(&slot->wish, wish, 0);
			continue;
		}
		atomic_store(&slot->answer, (unsigned)fulfil(slot, (enum wish)wish));
		atomic_fetch_add(&slot->answers, 1);
		atomic_store(&slot->wish, NONE);
		wake(&slot->answers);
	}
	return NULL;
}

void emu_checkpoint_start(void)
{
	struct emu_slot *slot = &emu_state()->slots[emu_slot()];
	pthread_attr_t attributes;
	pthread_t thread;
	sigset_t none, before;
	sigfillset(&none);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 256 * 1024);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_sigmask(SIG_SETMASK, &none, &before);
	/* Without it the process cannot be checkpointed, and works otherwise. */
	if (pthread_create(&thread, &attributes, serve, slot) != 0)
		atomic_store(&slot->process_state, CU_PROCESS_FAILED);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
}

/* The caller's side. */

static struct emu_slot *find(int pid)
{
	struct emu_state *state = emu_state();
	for (unsigned i = 0; i < EMU_SLOTS && pid > 0; i++)
		if (state->slots[i].pid == pid && emu_slot_alive(&state->slots[i]))
			return &state->slots[i];
	return NULL;
}

static CUresult ask(const char *entry, int pid, enum wish wish, uint64_t limit_ns, const uint8_t moves[EMU_GPUS_MAX])
{
	CUresult result = emu_enter(entry, EMU_NO_CONTEXT | EMU_ANYWAY | EMU_UNGATED, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_slot *slot = find(pid);
	if (slot == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	unsigned none = NONE, before = atomic_load(&slot->answers);
	uint64_t end = emu_now() + limit_ns;
	if (!atomic_compare_exchange_strong(&slot->wish, &none, BEING_WRITTEN))
		return CUDA_ERROR_NOT_READY;
	for (unsigned gpu = 0; gpu < EMU_GPUS_MAX; gpu++)
		slot->moves[gpu] = moves != NULL ? moves[gpu] : (uint8_t)gpu;
	atomic_store(&slot->wish, wish);
	wake(&slot->wish);
	while (atomic_load(&slot->answers) == before) {
		if (!emu_slot_alive(slot))
			return CUDA_ERROR_INVALID_VALUE;
		if (emu_now() > end)
			return CUDA_ERROR_TIMEOUT;
		sleep_on(&slot->answers, before, 20000000);
	}
	return (CUresult)atomic_load(&slot->answer);
}

ENTRY(cuCheckpointProcessLock, int pid, CUcheckpointLockArgs *args)
{
	uint64_t limit = args != NULL && args->timeout_ms > 0 ? args->timeout_ms * 1000000ULL : ANSWER_NS;
	return ask(__func__, pid, LOCK, limit, NULL);
}

ENTRY(cuCheckpointProcessCheckpoint, int pid, void *args)
{
	(void)args;
	return ask(__func__, pid, CHECKPOINT, ANSWER_NS, NULL);
}

static int find_gpu(const CUuuid *uuid)
{
	for (unsigned gpu = 0; gpu < emu_config()->gpu_count; gpu++) {
		CUuuid own;
		emu_uuid(gpu, &own);
		if (memcmp(&own, uuid, sizeof own) == 0)
			return (int)gpu;
	}
	return -1;
}

/* Every GPU is in a pair, goes to one of its kind, and no two go to the same. */
static bool read_moves(const CUcheckpointRestoreArgs *args, uint8_t moves[EMU_GPUS_MAX])
{
	const struct emu_gpu_config *gpus = emu_config()->gpus;
	bool left[EMU_GPUS_MAX] = {false}, taken[EMU_GPUS_MAX] = {false};
	for (unsigned i = 0; i < args->pair_count; i++) {
		int from = find_gpu(&args->pairs[i].from), to = find_gpu(&args->pairs[i].to);
		if (from < 0 || to < 0 || left[from] || taken[to] || gpus[from].memory_bytes != gpus[to].memory_bytes ||
		    strcmp(gpus[from].name, gpus[to].name) != 0)
			return false;
		left[from] = taken[to] = true;
		moves[from] = (uint8_t)to;
	}
	return args->pair_count == emu_config()->gpu_count;
}

ENTRY(cuCheckpointProcessRestore, int pid, CUcheckpointRestoreArgs *args)
{
	uint8_t moves[EMU_GPUS_MAX];
	for (unsigned gpu = 0; gpu < EMU_GPUS_MAX; gpu++)
		moves[gpu] = (uint8_t)gpu;
	if (args != NULL && args->pair_count > 0 && (args->pairs == NULL || !read_moves(args, moves)))
		return CUDA_ERROR_INVALID_VALUE;
	return ask(__func__, pid, RESTORE, ANSWER_NS, moves);
}

ENTRY(cuCheckpointProcessUnlock, int pid, void *args)
{
	(void)args;
	return ask(__func__, pid, UNLOCK, ANSWER_NS, NULL);
}

static CUresult look(const char *entry, int pid, int *ret_value, bool thread)
{
	CUresult result = emu_enter(entry, EMU_NO_CONTEXT | EMU_ANYWAY | EMU_UNGATED, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_slot *slot = find(pid);
	if (slot == NULL || ret_value == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_value = thread ? atomic_load(&slot->thread) : atomic_load(&slot->process_state);
	return CUDA_SUCCESS;
}

ENTRY(cuCheckpointProcessGetState, int pid, int *ret_state)
{
	return look(__func__, pid, ret_state, false);
}

ENTRY(cuCheckpointProcessGetRestoreThreadId, int pid, int *ret_thread)
{
	return look(__func__, pid, ret_thread, true);
}
