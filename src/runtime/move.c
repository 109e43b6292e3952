#include "runtime/move.h"

#include <pthread.h>
#include <stdlib.h>

#include "runtime/account.h"
#include "runtime/driver.h"
#include "runtime/freers.h"
#include "runtime/gate.h"
#include "runtime/memory.h"
#include "runtime/node.h"
#include "runtime/pace.h"
#include "runtime/pools.h"
#include "runtime/spare.h"
#include "runtime/store.h"
#include "runtime/tools.h"

#define CLOSE_NS INT64_C(2000000000)
#define DRAIN_NS INT64_C(10000000000)
#define CAPTURE_NS INT64_C(5000000000)
#define PAUSE_NS INT64_C(1000000)
enum { STREAMS = 64, CONTEXTS = 256 };

/* A stream of our own in each context that has memory. */
static struct stream {
	CUcontext context;
	CUstream stream;
} streams[STREAMS];
static unsigned stream_count;

/* Contexts of the program, with memory of their own or without: work in any of them may
 * use memory of any other. */
static CUcontext known[CONTEXTS];
static unsigned known_count;
static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER;

void sw_move_enter(CUcontext context)
{
	sw_driver.context_push(context);
}

void sw_move_leave(void)
{
	CUcontext popped;
	sw_driver.context_pop(&popped);
}

/* NULL where it cannot be made: the default stream serves as well while the gate is closed. */
CUstream sw_move_stream(CUcontext context)
{
	for (unsigned i = 0; i < stream_count; i++)
		if (streams[i].context == context)
			return streams[i].stream;
	CUstream stream = NULL;
	if (stream_count < STREAMS && sw_driver.stream_create(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS)
		streams[stream_count++] = (struct stream){context, stream};
	return stream;
}

static bool is_known(CUcontext context)
{
	for (unsigned i = 0; i < known_count; i++)
		if (known[i] == context)
			return true;
	return false;
}

/* Without a place it is waited for only while it has memory. No GPU has room for so many. */
void sw_move_note_context(CUcontext context)
{
	pthread_mutex_lock(&known_lock);
	if (known_count < CONTEXTS && !is_known(context))
		known[known_count++] = context;
	pthread_mutex_unlock(&known_lock);
}

void sw_move_forget_context(CUcontext context)
{
	pthread_mutex_lock(&known_lock);
	for (unsigned i = 0; i < stream_count; i++)
		if (streams[i].context == context)
			streams[i--] = streams[--stream_count];
	for (unsigned i = 0; i < known_count; i++)
		if (known[i] == context)
			known[i--] = known[--known_count];
	pthread_mutex_unlock(&known_lock);
}

/* ---- standstill */

struct drain {
	_Atomic uint32_t done; /* a futex; 2: no thread waits any more */
	CUresult result;
	unsigned with_memory; /* so many of them, the first */
	unsigned count;
	CUcontext contexts[CONTEXTS]; /* its own list: when no thread waits any more, the ranges are not its to look at */
};

/* Waits for all work in a context. One that is gone by a way that we do not know, or has failed,
 * has none any more. Without memory, it keeps nothing from moving. */
static CUresult drain_context(CUcontext context, bool has_memory)
{
	CUresult result = sw_driver.context_push(context);
	if (result == CUDA_SUCCESS) {
		result = sw_driver.context_synchronize();
		sw_move_leave();
	}
	bool captured = result >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && result <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
	return has_memory || captured ? result : CUDA_SUCCESS;
}

static _Atomic unsigned draining; /* threads, whether or not they are waited for */

/* A thread of its own, because the driver's wait knows no time-out. */
static void *drain_all(void *argument)
{
	struct drain *drain = argument;
	sw_capture_relax();
	for (unsigned i = 0; i < drain->count && drain->result == CUDA_SUCCESS && atomic_load(&drain->done) == 0; i++)
		drain->result = drain_context(drain->contexts[i], i < drain->with_memory);
	uint32_t waiting = 0;
	atomic_fetch_sub(&draining, 1);
	if (!atomic_compare_exchange_strong(&drain->done, &waiting, 1))
		free(drain);
	else
		sw_futex_wake(&drain->done);
	return NULL;
}

/* False: too many contexts. */
static bool list_context(struct drain *drain, CUcontext context)
{
	unsigned i = 0;
	while (i < drain->count && drain->contexts[i] != context)
		i++;
	if (i == CONTEXTS)
		return false;
	drain->contexts[i] = context;
	drain->count += i == drain->count;
	return true;
}

static bool list_contexts(struct drain *drain)
{
	bool listed = true;
	for (const struct sw_range *range = sw_ranges; range != NULL && listed; range = range->next)
		listed = list_context(drain, range->context);
	drain->with_memory = drain->count;
	pthread_mutex_lock(&known_lock);
	for (unsigned i = 0; i < known_count && listed; i++)
		listed = list_context(drain, known[i]);
	pthread_mutex_unlock(&known_lock);
	return listed;
}

static enum sw_page_trouble drain_work(void)
{
	struct drain *drain = calloc(1, sizeof *drain);
	pthread_t thread;
	atomic_fetch_add(&draining, 1);
	if (drain == NULL || !list_contexts(drain) || pthread_create(&thread, NULL, drain_all, drain) != 0) {
		atomic_fetch_sub(&draining, 1);
		free(drain);
		return SW_PAGE_NOT_DRAINED;
	}
	pthread_detach(thread);
	int64_t until = sw_monotonic_ns() + DRAIN_NS, left;
	while (atomic_load(&drain->done) == 0 && (left = until - sw_monotonic_ns()) > 0)
		sw_futex_wait(&drain->done, 0, left);
	uint32_t waiting = 0;
	if (atomic_compare_exchange_strong(&drain->done, &waiting, 2))
		return SW_PAGE_NOT_DRAINED;
	CUresult result = drain->result;
	free(drain);
	return result == CUDA_SUCCESS ? SW_PAGE_FINE : SW_PAGE_DRIVER_ERROR;
}

enum sw_page_trouble sw_move_stand_still(void)
{
	int64_t begun = sw_monotonic_ns();
	/* What did not end in time when it was last waited for has not ended yet: the program need
	 * not stand still to find out. */
	if (atomic_load(&draining) > 0)
		return SW_PAGE_NOT_DRAINED;
	for (;;) {
		if (!sw_gate_close(CLOSE_NS))
			return SW_PAGE_NOT_DRAINED;
		if (atomic_load(&sw_captures) == 0)
			break;
		sw_gate_open();
		if (sw_monotonic_ns() - begun > CAPTURE_NS)
			return SW_PAGE_CAPTURING;
		nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
	}
	sw_pace_stand_still();
	enum sw_page_trouble trouble = drain_work();
	if (trouble != SW_PAGE_FINE)
		sw_gate_open();
	atomic_store(&sw_slot->drain_ns, sw_monotonic_ns() - begun);
	return trouble;
}

void sw_move_rest(void)
{
	pthread_mutex_lock(&sw_memory_lock);
	sw_freers_rest();
	for (int gpu = -1; gpu < (int)sw_page->gpu_count; gpu++)
		sw_pools_reclaim(gpu);
	pthread_mutex_unlock(&sw_memory_lock);
	sw_memory_settle();
}

/* Where the current context has no stream of ours, no other thread waits for its copies. */
static CUresult finish_on_default(CUstream stream)
{
	return stream == NULL ? sw_driver.stream_synchronize(stream) : CUDA_SUCCESS;
}

/* Waits for the copies in all contexts. */
static CUresult finish_copies(void)
{
	CUresult worst = CUDA_SUCCESS;
	for (unsigned i = 0; i < stream_count; i++) {
		sw_move_enter(streams[i].context);
		CUresult result = sw_driver.stream_synchronize(streams[i].stream);
		worst = result != CUDA_SUCCESS ? result : worst;
		sw_move_leave();
	}
	return worst;
}

/* ---- away */

bool sw_move_leaves(const struct sw_range *range, const struct sw_chunk *chunk)
{
	return !range->pinned && chunk->place == SW_ON_GPU;
}

size_t sw_move_size(size_t *ret_largest)
{
	size_t bytes = 0, largest = 0;
	pthread_mutex_lock(&sw_memory_lock);
	for (const struct sw_range *range = sw_ranges; range != NULL; range = range->next)
		for (uint32_t i = 0; i < range->chunk_count; i++) {
			size_t size = sw_move_leaves(range, &range->chunks[i]) ? range->chunks[i].bytes : 0;
			bytes += size;
			largest = size > largest ? size : largest;
		}
	pthread_mutex_unlock(&sw_memory_lock);
	if (ret_largest != NULL)
		*ret_largest = largest;
	return bytes;
}

/* Of that: what is not needed once the GPU stands still, at most. */
static size_t idle_size(void)
{
	pthread_mutex_lock(&sw_memory_lock);
	size_t bytes = sw_pools_idle() + sw_memory_leaving_bytes();
	pthread_mutex_unlock(&sw_memory_lock);
	return bytes;
}

static bool has_host_room(size_t bytes)
{
	size_t unused = sw_store_unused();
	return sw_account_host_room() >= bytes && (unused >= bytes || sw_node_has_room(bytes - unused));
}

/* Starts copies into the store; what got no place has `stored` NULL, and the trouble says so. */
static enum sw_page_trouble copy_away(struct sw_range *range)
{
	enum sw_page_trouble trouble = SW_PAGE_FINE;
	sw_move_enter(range->context);
	CUstream stream = sw_move_stream(range->context);
	for (uint32_t i = 0; i < range->chunk_count && trouble == SW_PAGE_FINE; i++) {
		struct sw_chunk *chunk = &range->chunks[i];
		if (!sw_move_leaves(range, chunk))
			continue;
		if (!sw_account_take_host(range->gpu, chunk->bytes)) {
			trouble = SW_PAGE_NO_HOST_MEMORY;
			continue;
		}
		chunk->stored = sw_store_get(chunk->bytes);
		if (chunk->stored == NULL)
			trouble = SW_PAGE_NO_HOST_MEMORY;
		else if (sw_driver.copy_to_host(chunk->stored, sw_chunk_address(range, i), chunk->bytes, stream) != CUDA_SUCCESS)
			trouble = SW_PAGE_DRIVER_ERROR;
		if (chunk->stored == NULL)
			sw_account_give_host(range->gpu, chunk->bytes);
	}
	/* Also after trouble: what has begun must be over. */
	if (finish_on_default(stream) != CUDA_SUCCESS && trouble == SW_PAGE_FINE)
		trouble = SW_PAGE_DRIVER_ERROR;
	sw_move_leave();
	return trouble;
}

/* What is not away needs no place in the store: it stays, or is back. What came back spilled keeps
 * its charge of host memory. */
static void clear_store(void)
{
	for (struct sw_range *range = sw_ranges; range != NULL; range = range->next)
		for (uint32_t i = 0; i < range->chunk_count; i++) {
			struct sw_chunk *chunk = &range->chunks[i];
			if (chunk->stored == NULL || chunk->place == SW_STORED)
				continue;
			sw_store_put(chunk->stored, chunk->bytes);
			if (chunk->place == SW_ON_GPU)
				sw_account_give_host(range->gpu, chunk->bytes);
			chunk->stored = NULL;
		}
}

/* Gives the GPU's memory back; its contents are in the store. Neighbours are unmapped together:
 * each call costs the driver a round of the GPU's own tables. */
static size_t let_go(struct sw_range *range)
{
	size_t bytes = 0, run = 0;
	sw_move_enter(range->context);
	for (uint32_t i = 0; i <= range->chunk_count; i++) {
		bool goes = i < range->chunk_count && range->chunks[i].stored != NULL;
		if (!goes && run > 0)
			sw_driver.unmap(sw_chunk_address(range, i - 1) + range->chunks[i - 1].bytes - run, run);
		run = goes ? run + range->chunks[i].bytes : 0;
	}
	for (uint32_t i = 0; i < range->chunk_count; i++) {
		struct sw_chunk *chunk = &range->chunks[i];
		if (chunk->stored == NULL)
			continue;
		sw_driver.release(chunk->handle);
		chunk->handle = 0;
		chunk->place = SW_STORED;
		sw_account_give(range->gpu, chunk->bytes, false);
		bytes += chunk->bytes;
	}
	sw_move_leave();
	return bytes;
}

enum sw_page_trouble sw_move_away(void)
{
	/* Before the program stands still for nothing. */
	size_t all = sw_move_size(NULL), idle = idle_size();
	if (!has_host_room(all > idle ? all - idle : 0))
		return SW_PAGE_NO_HOST_MEMORY;
	enum sw_page_trouble trouble = sw_move_stand_still();
	if (trouble != SW_PAGE_FINE)
		return trouble;
	int64_t begun = sw_monotonic_ns();
	sw_move_rest();
	/* Before anything is copied, for nothing: only now it is known exactly. */
	if (!has_host_room(sw_move_size(NULL)))
		trouble = SW_PAGE_NO_HOST_MEMORY;
	for (struct sw_range *range = sw_ranges; range != NULL && trouble == SW_PAGE_FINE; range = range->next)
		trouble = copy_away(range);
	if (finish_copies() != CUDA_SUCCESS && trouble == SW_PAGE_FINE)
		trouble = SW_PAGE_DRIVER_ERROR;
	if (trouble != SW_PAGE_FINE) {
		clear_store();
		sw_gate_open();
		return trouble;
	}
	size_t bytes = 0;
	for (struct sw_range *range = sw_ranges; range != NULL; range = range->next)
		bytes += let_go(range);
	atomic_store(&sw_slot->moved_bytes, bytes);
	atomic_store(&sw_slot->move_ns, sw_monotonic_ns() - begun);
	return SW_PAGE_FINE;
}

/* ---- back */

/* This part of what comes back may be spilled for want of room on the GPU,
 * rounded up to whole chunks. */
enum { SPILLED_PART = 4 };

static bool lacks_host;	       /* that was why memory could not be found */
static size_t may_spill_bytes; /* where the GPU has no room, whatever the limit */

/* Memory under one stored chunk again, on the GPU or, where the limit is lower now, spilled. */
static CUresult find_memory(const struct sw_range *range, struct sw_chunk *chunk, bool *ret_on_gpu)
{
	CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
	*ret_on_gpu = sw_account_take(range->gpu, chunk->bytes, false);
	if (*ret_on_gpu) {
		result = sw_chunk_on_gpu(range, chunk->bytes, &chunk->handle);
		if (result == CUDA_SUCCESS)
			return result;
		sw_account_give(range->gpu, chunk->bytes, false);
		if (result != CUDA_ERROR_OUT_OF_MEMORY || may_spill_bytes == 0)
			return result;
		may_spill_bytes -= chunk->bytes < may_spill_bytes ? chunk->bytes : may_spill_bytes;
		*ret_on_gpu = false;
	}
	result = sw_spare_get(range->device, chunk->bytes, &chunk->handle);
	lacks_host = result == CUDA_ERROR_OUT_OF_MEMORY;
	return result;
}

static void release_chunk(const struct sw_range *range, const struct sw_chunk *chunk, bool on_gpu)
{
	if (!on_gpu) {
		sw_spare_release(chunk->bytes, chunk->handle);
		return;
	}
	sw_driver.release(chunk->handle);
	sw_account_give(range->gpu, chunk->bytes, false);
}

/* Its host bytes stay charged until the copy is over. */
static CUresult bring_chunk(struct sw_range *range, uint32_t index, CUstream stream)
{
	struct sw_chunk *chunk = &range->chunks[index];
	CUdeviceptr address = sw_chunk_address(range, index);
	bool on_gpu = false;
	CUresult result = find_memory(range, chunk, &on_gpu);
	if (result != CUDA_SUCCESS)
		return result;
	result = sw_driver.map(address, chunk->bytes, 0, chunk->handle, 0);
	if (result == CUDA_SUCCESS) {
		result = sw_range_open(range, address, chunk->bytes);
		if (result == CUDA_SUCCESS)
			result = sw_driver.copy_to_device(address, chunk->stored, chunk->bytes, stream);
		if (result == CUDA_SUCCESS) {
			chunk->place = on_gpu ? SW_ON_GPU : SW_SPILLED;
			return result;
		}
		sw_driver.unmap(address, chunk->bytes);
	}
	release_chunk(range, chunk, on_gpu);
	chunk->handle = 0;
	return result;
}

static CUresult bring_range(struct sw_range *range, size_t *bytes)
{
	CUresult result = CUDA_SUCCESS;
	sw_move_enter(range->context);
	CUstream stream = sw_move_stream(range->context);
	for (uint32_t i = 0; i < range->chunk_count && result == CUDA_SUCCESS; i++) {
		if (range->chunks[i].place != SW_STORED)
			continue;
		result = bring_chunk(range, i, stream);
		if (result == CUDA_SUCCESS)
			*bytes += range->chunks[i].bytes;
	}
	CUresult copied = finish_on_default(stream);
	sw_move_leave();
	return result != CUDA_SUCCESS ? result : copied;
}

/* Not all of it could be brought: what was goes again, so that others can have the room. Its
 * contents are still in the store. */
static void undo_back(void)
{
	for (struct sw_range *range = sw_ranges; range != NULL; range = range->next) {
		sw_move_enter(range->context);
		for (uint32_t i = 0; i < range->chunk_count; i++) {
			struct sw_chunk *chunk = &range->chunks[i];
			if (chunk->stored == NULL || chunk->place == SW_STORED)
				continue;
			sw_driver.unmap(sw_chunk_address(range, i), chunk->bytes);
			release_chunk(range, chunk, chunk->place == SW_ON_GPU);
			chunk->handle = 0;
			chunk->place = SW_STORED;
		}
		sw_move_leave();
	}
}

static size_t stored_bytes(void)
{
	size_t bytes = 0;
	for (const struct sw_range *range = sw_ranges; range != NULL; range = range->next)
		for (uint32_t i = 0; i < range->chunk_count; i++)
			bytes += range->chunks[i].place == SW_STORED ? range->chunks[i].bytes : 0;
	return bytes;
}

enum sw_page_trouble sw_move_back(bool tight)
{
	int64_t begun = sw_monotonic_ns();
	CUresult result = CUDA_SUCCESS;
	size_t bytes = 0;
	lacks_host = false;
	may_spill_bytes = tight ? stored_bytes() / SPILLED_PART : 0;
	for (struct sw_range *range = sw_ranges; range != NULL && result == CUDA_SUCCESS; range = range->next)
		result = bring_range(range, &bytes);
	CUresult copies = finish_copies();
	if (result != CUDA_SUCCESS || copies != CUDA_SUCCESS) {
		undo_back();
		return lacks_host			    ? SW_PAGE_NO_HOST_MEMORY
		       : result == CUDA_ERROR_OUT_OF_MEMORY ? SW_PAGE_NO_GPU_MEMORY
							    : SW_PAGE_DRIVER_ERROR;
	}
	clear_store();
	atomic_store(&sw_slot->moved_bytes, bytes);
	atomic_store(&sw_slot->move_ns, sw_monotonic_ns() - begun);
	/* Else the program would begin slowly, and have to stand still again. */
	sw_move_bring_spilled();
	sw_memory_publish();
	sw_gate_open();
	return SW_PAGE_FINE;
}

bool sw_move_is_hopeless(void)
{
	return drain_work() == SW_PAGE_DRIVER_ERROR;
}
