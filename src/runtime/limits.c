/* Shrink and grow. Chunks leave the GPU for host memory, at the same addresses, until the job is
 * under its limit. They come back where there is room again.
 *
 * Some of them at a time. Host memory for them is made while the program still runs, since that
 * takes longest. Then the gate is closed, the contents are copied all at once through a window
 * beside, and neighbours change places together.
 */
#include <pthread.h>
#include <stdlib.h>

#include "runtime/account.h"
#include "runtime/driver.h"
#include "runtime/gate.h"
#include "runtime/iterations.h"
#include "runtime/memory.h"
#include "runtime/move.h"
#include "runtime/spare.h"
#include "runtime/start.h"
#include "runtime/tools.h"
#include "runtime/visits.h"

/* How much moves while the program stands still: some ten milliseconds. */
#define BATCH_BYTES ((size_t)1 << 30)
enum { STEPS = 128 };

struct step {
	struct sw_range *range;
	uint32_t index;
	CUmemHandle fresh;
};

/* What moves next: all of one context, and in one direction. */
struct batch {
	struct step steps[STEPS];
	unsigned count;
	bool to_host;
	size_t bytes;
};

static struct sw_chunk *chunk_of(const struct step *step)
{
	return &step->range->chunks[step->index];
}

static CUdeviceptr address_of(const struct step *step)
{
	return sw_chunk_address(step->range, step->index);
}

/* ---- what is to be done */

/* Bytes of this process that must leave the GPU, or may come back (negative). Its fair part of what
 * the job is over: all, since each process sees the sum. */
static int64_t excess(int gpu)
{
	uint64_t limit = sw_account_limit(gpu);
	if (gpu < 0 || limit == SW_PAGE_NO_LIMIT)
		return INT64_MIN;
	return (int64_t)(sw_account_held(sw_page, (uint32_t)gpu) - limit);
}

/* What the GPU itself has: others may hold what the limit allows. Stopping the program to find out
 * would cost it more than the question. */
static size_t free_bytes(CUcontext context)
{
	size_t free = 0, total = 0;
	if (!sw_visit_begin())
		return 0;
	sw_move_enter(context);
	CUresult result = sw_driver.memory_info(&free, &total);
	sw_move_leave();
	sw_visit_end();
	return result == CUDA_SUCCESS ? free : 0;
}

/* False: the batch is full. */
static bool add(struct batch *batch, struct sw_range *range, uint32_t index)
{
	if (batch->count == STEPS || (batch->count > 0 && batch->bytes + range->chunks[index].bytes > BATCH_BYTES))
		return false;
	batch->steps[batch->count++] = (struct step){.range = range, .index = index};
	batch->bytes += range->chunks[index].bytes;
	return true;
}

/* Chunks leave from the ends of the newest ranges: those are most likely the program's scratch. */
static void plan_out(struct batch *batch, int64_t over[])
{
	batch->to_host = true;
	for (struct sw_range *range = sw_ranges; range != NULL; range = range->next)
		for (uint32_t i = range->chunk_count; i-- > 0 && over[range->gpu + 1] > 0;) {
			bool other = batch->count > 0 && batch->steps[0].range->context != range->context;
			if (other || !sw_move_leaves(range, &range->chunks[i]))
				continue;
			if (!add(batch, range, i))
				return;
			over[range->gpu + 1] -= range->chunks[i].bytes;
		}
}

static void plan_in(struct batch *batch, int64_t over[])
{
	size_t free = 0;
	CUcontext asked = NULL;
	batch->to_host = false;
	for (struct sw_range *range = sw_ranges; range != NULL; range = range->next)
		for (uint32_t i = range->chunk_count; i-- > 0 && !range->pinned;) {
			size_t bytes = range->chunks[i].bytes;
			int64_t *room = &over[range->gpu + 1];
			bool other = batch->count > 0 && batch->steps[0].range->context != range->context;
			if (other || range->chunks[i].place != SW_SPILLED || (*room != INT64_MIN && *room > -(int64_t)bytes))
				continue;
			if (asked != range->context)
				free = free_bytes(range->context);
			asked = range->context;
			if (bytes > free)
				continue;
			if (!add(batch, range, i))
				return;
			free -= bytes;
			*room += *room == INT64_MIN ? 0 : (int64_t)bytes;
		}
}

/* With the gate closed, or under the lock. */
static void plan(struct batch *batch)
{
	/* Summed up once for each GPU, not for each of thousands of ranges. */
	int64_t over[SW_PAGE_GPUS + 1];
	over[0] = excess(-1);
	for (uint32_t gpu = 0; gpu < SW_PAGE_GPUS; gpu++)
		over[gpu + 1] = gpu < sw_page->gpu_count ? excess((int)gpu) : 0;
	batch->count = 0;
	batch->bytes = 0;
	plan_out(batch, over);
	if (batch->count == 0)
		plan_in(batch, over);
}

static struct batch ahead; /* the attendant's, too large for its stack */

bool sw_move_is_due(void)
{
	pthread_mutex_lock(&sw_memory_lock);
	plan(&ahead);
	pthread_mutex_unlock(&sw_memory_lock);
	return ahead.count > 0;
}

/* Host memory for what is about to leave, while the program runs. What is really due is
 * seen when it stands still. */
static void prepare(void)
{
	size_t sizes[STEPS], count = 0;
	CUdevice device = 0;
	pthread_mutex_lock(&sw_memory_lock);
	plan(&ahead);
	for (unsigned i = 0; i < ahead.count && ahead.to_host; i++) {
		sizes[count++] = chunk_of(&ahead.steps[i])->bytes;
		device = ahead.steps[i].range->device;
	}
	pthread_mutex_unlock(&sw_memory_lock);
	if (sw_account_host_room() >= ahead.bytes)
		sw_spare_prepare(device, sizes, count);
}

/* ---- and done; the gate is closed */

static void give_fresh(const struct batch *batch, const struct step *step)
{
	const struct sw_range *range = step->range;
	size_t bytes = chunk_of(step)->bytes;
	if (batch->to_host) {
		sw_spare_put(range->device, bytes, step->fresh);
		sw_account_give_host(range->gpu, bytes);
	} else {
		sw_driver.release(step->fresh);
		sw_account_give(range->gpu, bytes, false);
	}
}

/* Memory for each step, taken from the accounts. The batch ends where there is no more,
 * and the trouble says so. */
static enum sw_page_trouble get_fresh(struct batch *batch)
{
	for (unsigned i = 0; i < batch->count; i++) {
		struct step *step = &batch->steps[i];
		struct sw_range *range = step->range;
		size_t bytes = chunk_of(step)->bytes;
		bool taken = batch->to_host ? sw_account_take_host(range->gpu, bytes) : sw_account_take(range->gpu, bytes, false);
		CUresult result = !taken	   ? CUDA_ERROR_OUT_OF_MEMORY
				  : batch->to_host ? sw_spare_get(range->device, bytes, &step->fresh)
						   : sw_chunk_on_gpu(range, bytes, &step->fresh);
		if (result == CUDA_SUCCESS)
			continue;
		if (taken && batch->to_host)
			sw_account_give_host(range->gpu, bytes);
		else if (taken)
			sw_account_give(range->gpu, bytes, false);
		batch->count = i;
		return batch->to_host ? SW_PAGE_NO_HOST_MEMORY : SW_PAGE_NO_GPU_MEMORY;
	}
	return SW_PAGE_FINE;
}

/* Contents into the fresh memory, which is mapped beside for as long as that takes. */
static CUresult copy_all(const struct batch *batch)
{
	const struct sw_range *first = batch->steps[0].range;
	CUstream stream = sw_move_stream(first->context);
	CUdeviceptr window = 0;
	size_t bytes = 0, mapped = 0;
	for (unsigned i = 0; i < batch->count; i++)
		bytes += chunk_of(&batch->steps[i])->bytes;
	CUresult result = sw_driver.reserve(&window, bytes, 0, 0, 0);
	if (result != CUDA_SUCCESS)
		return result;
	for (unsigned i = 0; i < batch->count && result == CUDA_SUCCESS; i++) {
		size_t size = chunk_of(&batch->steps[i])->bytes;
		result = sw_driver.map(window + mapped, size, 0, batch->steps[i].fresh, 0);
		mapped += result == CUDA_SUCCESS ? size : 0;
	}
	if (result == CUDA_SUCCESS)
		result = sw_range_open(first, window, bytes);
	CUdeviceptr to = window;
	for (unsigned i = 0; i < batch->count && result == CUDA_SUCCESS; i++) {
		size_t size = chunk_of(&batch->steps[i])->bytes;
		result = sw_driver.copy_within(to, address_of(&batch->steps[i]), size, stream);
		to += size;
	}
	/* Also after an error: what has begun must be over. */
	CUresult ended = sw_driver.stream_synchronize(stream);
	if (mapped > 0)
		sw_driver.unmap(window, mapped);
	sw_driver.unreserve(window, bytes);
	return result != CUDA_SUCCESS ? result : ended;
}

/* Puts memory under neighbours that have none: the fresh one, or what was there before. */
static CUresult map_run(const struct step *run, unsigned count, bool fresh)
{
	CUresult result = CUDA_SUCCESS;
	size_t bytes = 0;
	for (unsigned i = 0; i < count && result == CUDA_SUCCESS; i++) {
		size_t size = chunk_of(&run[i])->bytes;
		result = sw_driver.map(address_of(&run[i]), size, 0, fresh ? run[i].fresh : chunk_of(&run[i])->handle, 0);
		bytes += result == CUDA_SUCCESS ? size : 0;
	}
	if (result == CUDA_SUCCESS)
		result = sw_range_open(run[0].range, address_of(&run[0]), bytes);
	if (result != CUDA_SUCCESS && bytes > 0)
		sw_driver.unmap(address_of(&run[0]), bytes);
	return result;
}

static CUresult exchange_run(const struct batch *batch, const struct step *run, unsigned count)
{
	size_t bytes = 0;
	for (unsigned i = 0; i < count; i++)
		bytes += chunk_of(&run[i])->bytes;
	CUresult result = sw_driver.unmap(address_of(&run[0]), bytes);
	if (result == CUDA_SUCCESS) {
		result = map_run(run, count, true);
		if (result != CUDA_SUCCESS)
			map_run(run, count, false);
	}
	for (unsigned i = 0; i < count; i++) {
		struct sw_chunk *chunk = chunk_of(&run[i]);
		const struct sw_range *range = run[i].range;
		if (result != CUDA_SUCCESS) {
			give_fresh(batch, &run[i]);
			continue;
		}
		if (batch->to_host) {
			sw_driver.release(chunk->handle);
			sw_account_give(range->gpu, chunk->bytes, false);
		} else {
			sw_spare_put(range->device, chunk->bytes, chunk->handle);
			sw_account_give_host(range->gpu, chunk->bytes);
		}
		chunk->handle = run[i].fresh;
		chunk->place = batch->to_host ? SW_SPILLED : SW_ON_GPU;
	}
	return result;
}

static int by_address(const void *a, const void *b)
{
	CUdeviceptr x = address_of(a), y = address_of(b);
	return (x > y) - (x < y);
}

/* How many of these neighbours lie in one range, each where the one before it ends. */
static unsigned run_length(const struct step *steps, unsigned count)
{
	unsigned length = 1;
	while (length < count && steps[length].range == steps[0].range && steps[length].index == steps[length - 1].index + 1)
		length++;
	return length;
}

static enum sw_page_trouble move_batch(struct batch *batch, size_t *bytes)
{
	sw_move_enter(batch->steps[0].range->context);
	enum sw_page_trouble trouble = get_fresh(batch);
	qsort(batch->steps, batch->count, sizeof batch->steps[0], by_address);
	CUresult result = batch->count == 0 ? CUDA_SUCCESS : copy_all(batch);
	if (result != CUDA_SUCCESS) {
		trouble = SW_PAGE_DRIVER_ERROR;
		for (unsigned i = 0; i < batch->count; i++)
			give_fresh(batch, &batch->steps[i]);
		batch->count = 0;
	}
	for (unsigned i = 0, length; i < batch->count; i += length) {
		length = run_length(&batch->steps[i], batch->count - i);
		if (exchange_run(batch, &batch->steps[i], length) != CUDA_SUCCESS) {
			trouble = SW_PAGE_DRIVER_ERROR;
			continue;
		}
		for (unsigned j = i; j < i + length; j++)
			*bytes += chunk_of(&batch->steps[j])->bytes;
	}
	sw_move_leave();
	return trouble;
}

enum sw_page_trouble sw_move_to_limits(void)
{
	enum sw_page_trouble trouble = SW_PAGE_FINE;
	size_t bytes = 0;
	int64_t took_ns = 0;
	bool more = true;
	if (ahead.count > 0 && ahead.to_host)
		sw_iterations_await_floor();
	while (more && trouble == SW_PAGE_FINE) {
		prepare();
		trouble = sw_move_stand_still();
		if (trouble != SW_PAGE_FINE)
			break;
		int64_t begun = sw_monotonic_ns();
		if (ahead.count > 0 && ahead.to_host)
			sw_move_rest();
		plan(&ahead);
		more = ahead.count > 0;
		if (more)
			trouble = move_batch(&ahead, &bytes);
		took_ns += sw_monotonic_ns() - begun;
		sw_memory_publish();
		sw_gate_open();
		more = more && sw_move_is_due();
	}
	atomic_store(&sw_slot->moved_bytes, bytes);
	atomic_store(&sw_slot->move_ns, took_ns);
	return trouble;
}

void sw_move_bring_spilled(void)
{
	size_t bytes = 0;
	do
		plan(&ahead);
	while (ahead.count > 0 && !ahead.to_host && move_batch(&ahead, &bytes) == SW_PAGE_FINE);
}
