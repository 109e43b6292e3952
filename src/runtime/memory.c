#include "runtime/memory.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/account.h"
#include "runtime/book.h"
#include "runtime/driver.h"
#include "runtime/freers.h"
#include "runtime/gate.h"
#include "runtime/mapped.h"
#include "runtime/move.h"
#include "runtime/pools.h"
#include "runtime/slabs.h"
#include "runtime/spare.h"
#include "runtime/tools.h"

pthread_mutex_t sw_memory_lock = PTHREAD_MUTEX_INITIALIZER;
struct sw_range *sw_ranges;
_Atomic bool sw_exportable;

enum { DEVICES = 64, CONTEXTS = 8 /* that are waited for where memory is short */ };
static uint64_t peers_of[DEVICES]; /* devices that may use what this one holds */

int sw_capture_relax(void)
{
	int mode = CU_CAPTURE_MODE_RELAXED;
	if (sw_driver.capture_mode != NULL)
		sw_driver.capture_mode(&mode);
	return mode;
}

void sw_capture_restore(int mode)
{
	if (sw_driver.capture_mode != NULL)
		sw_driver.capture_mode(&mode);
}

/* ---- chunks */

CUresult sw_chunk_on_gpu(const struct sw_range *range, size_t bytes, CUmemHandle *ret_handle)
{
	if (range->mapping != NULL)
		return sw_mapped_create(range->mapping, ret_handle);
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_PINNED, .location = {CU_MEM_LOCATION_DEVICE, range->device}};
	if (sw_exportable) {
		prop.requested_handle_types = CU_MEM_HANDLE_FILE_DESCRIPTOR;
		CUresult result = sw_driver.create(ret_handle, bytes, &prop, 0);
		/* Where that kind cannot be had, the other one is better than none. */
		if (result == CUDA_SUCCESS || result == CUDA_ERROR_OUT_OF_MEMORY)
			return result;
		prop.requested_handle_types = CU_MEM_HANDLE_NONE;
	}
	return sw_driver.create(ret_handle, bytes, &prop, 0);
}

CUdeviceptr sw_chunk_address(const struct sw_range *range, uint32_t index)
{
	return range->address + (CUdeviceptr)index * SW_CHUNK_BYTES;
}

CUresult sw_range_open(const struct sw_range *range, CUdeviceptr address, size_t bytes)
{
	CUmemAccessDesc access[DEVICES];
	size_t count = 0;
	/* Others than its own addresses are a window of ours. */
	if (range->mapping != NULL && address == range->address)
		return sw_mapped_open(range->mapping);
	for (int device = 0; device < DEVICES; device++)
		if (device == range->device || (peers_of[range->device] >> device & 1) != 0)
			access[count++] = (CUmemAccessDesc){{CU_MEM_LOCATION_DEVICE, device}, CU_MEM_ACCESS_READWRITE};
	return sw_driver.set_access(address, bytes, access, count);
}

static CUresult fill_on_gpu(const struct sw_range *range, struct sw_chunk *chunk)
{
	if (!sw_account_take(range->gpu, chunk->bytes, false))
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = sw_chunk_on_gpu(range, chunk->bytes, &chunk->handle);
	if (result == CUDA_SUCCESS)
		chunk->place = SW_ON_GPU;
	else
		sw_account_give(range->gpu, chunk->bytes, false);
	return result;
}

/* On the GPU if the job's share and the GPU have room, also what pools hold and do not use.
 * Otherwise it is in host memory if the budget has room. */
static CUresult fill_chunk(const struct sw_range *range, struct sw_chunk *chunk)
{
	CUresult result = fill_on_gpu(range, chunk);
	if (result == CUDA_ERROR_OUT_OF_MEMORY && sw_pools_reclaim(range->gpu))
		result = fill_on_gpu(range, chunk);
	if (result != CUDA_ERROR_OUT_OF_MEMORY)
		return result;
	if (!sw_account_take_host(range->gpu, chunk->bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (sw_spare_get(range->device, chunk->bytes, &chunk->handle) != CUDA_SUCCESS) {
		sw_account_give_host(range->gpu, chunk->bytes);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	chunk->place = SW_SPILLED;
	return CUDA_SUCCESS;
}

/* What is under it goes; it is mapped nowhere. */
static void release_chunk(const struct sw_range *range, const struct sw_chunk *chunk)
{
	if (chunk->place == SW_ON_GPU) {
		sw_driver.release(chunk->handle);
		sw_account_give(range->gpu, chunk->bytes, range->pinned);
	} else {
		sw_spare_release(chunk->bytes, chunk->handle);
		sw_account_give_host(range->gpu, chunk->bytes);
	}
}

static void empty_chunk(struct sw_range *range, uint32_t index)
{
	struct sw_chunk *chunk = &range->chunks[index];
	/* It could not be brought back, ever: nothing is under it. */
	if (chunk->place == SW_STORED) {
		sw_account_give_host(range->gpu, chunk->bytes);
		return;
	}
	sw_driver.unmap(sw_chunk_address(range, index), chunk->bytes);
	release_chunk(range, chunk);
}

/* ---- ranges */

static void empty_first(struct sw_range *range, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		empty_chunk(range, i);
}

static CUresult fill(struct sw_range *range)
{
	for (uint32_t i = 0; i < range->chunk_count; i++) {
		struct sw_chunk *chunk = &range->chunks[i];
		size_t left = range->bytes - (size_t)i * SW_CHUNK_BYTES;
		chunk->bytes = (uint32_t)(left < SW_CHUNK_BYTES ? left : SW_CHUNK_BYTES);
		CUresult result = fill_chunk(range, chunk);
		if (result == CUDA_SUCCESS) {
			result = sw_driver.map(sw_chunk_address(range, i), chunk->bytes, 0, chunk->handle, 0);
			if (result == CUDA_SUCCESS)
				continue;
			release_chunk(range, chunk);
		}
		empty_first(range, i);
		return result;
	}
	CUresult result = sw_range_open(range, range->address, range->bytes);
	if (result != CUDA_SUCCESS)
		empty_first(range, range->chunk_count);
	return result;
}

void sw_range_link(struct sw_range *range)
{
	range->next = sw_ranges;
	if (sw_ranges != NULL)
		sw_ranges->previous = range;
	sw_ranges = range;
}

void sw_range_unlink(struct sw_range *range)
{
	if (range->next != NULL)
		range->next->previous = range->previous;
	if (range->previous != NULL)
		range->previous->next = range->next;
	else
		sw_ranges = range->next;
}

/* What is more than the job's share of the GPU and its whole budget of host memory is refused
 * before it takes anything. Otherwise it would take, piece by piece, what others could have
 * meanwhile. What is only short now is not: memory may be on its way back. */
static bool could_fit(CUdevice device, size_t bytes)
{
	size_t capacity = 0;
	uint64_t most = sw_account_limit(sw_account_gpu(device));
	if (sw_driver.device_memory(&capacity, device) == CUDA_SUCCESS && capacity < most)
		most = capacity;
	return bytes <= most || bytes - most <= atomic_load(&sw_page->host_budget_bytes);
}

CUresult sw_range_new(size_t bytes, struct sw_range **ret_range)
{
	CUcontext context = NULL;
	CUdevice device = 0;
	CUresult result = sw_driver.context_current(&context);
	if (result == CUDA_SUCCESS)
		result = context == NULL ? CUDA_ERROR_INVALID_CONTEXT : sw_driver.context_device(&device);
	if (result != CUDA_SUCCESS)
		return result;
	size_t whole = sw_round_up(bytes, SW_UNIT_BYTES);
	size_t chunks = (whole + SW_CHUNK_BYTES - 1) / SW_CHUNK_BYTES;
	if (whole < bytes || chunks > UINT32_MAX || device < 0 || device >= DEVICES || !could_fit(device, whole))
		return CUDA_ERROR_OUT_OF_MEMORY;
	struct sw_range *range = calloc(1, sizeof *range + chunks * sizeof range->chunks[0]);
	if (range == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*range = (struct sw_range){
		.bytes = whole, .context = context, .device = device, .gpu = sw_account_gpu(device), .chunk_count = (uint32_t)chunks};
	result = sw_driver.reserve(&range->address, whole, 0, 0, 0);
	if (result == CUDA_SUCCESS) {
		result = fill(range);
		if (result != CUDA_SUCCESS)
			sw_driver.unreserve(range->address, whole);
	}
	if (result != CUDA_SUCCESS) {
		free(range);
		return result;
	}
	sw_range_link(range);
	*ret_range = range;
	return CUDA_SUCCESS;
}

void sw_range_free(struct sw_range *range)
{
	empty_first(range, range->chunk_count);
	sw_driver.unreserve(range->address, range->bytes);
	sw_range_unlink(range);
	free(range);
}

/* ---- allocations */

static CUresult get(size_t bytes, CUdeviceptr *ret_address)
{
	struct sw_allocation entry = {.bytes = bytes};
	if (!sw_book_reserve())
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result;
	if (bytes <= SW_SLAB_MOST) {
		result = sw_slab_get(bytes, &entry.address, &entry.range);
	} else {
		result = sw_range_new(bytes, &entry.range);
		if (result == CUDA_SUCCESS)
			entry.address = entry.range->address;
	}
	if (result == CUDA_SUCCESS) {
		sw_book_add(&entry);
		*ret_address = entry.address;
	}
	return result;
}

CUresult sw_memory_get(size_t bytes, CUdeviceptr *ret_address)
{
	int mode = sw_capture_relax();
	pthread_mutex_lock(&sw_memory_lock);
	CUresult result = get(bytes, ret_address);
	pthread_mutex_unlock(&sw_memory_lock);
	sw_capture_restore(mode);
	return result;
}

CUresult sw_memory_get_pooled(struct sw_pool *pool, struct sw_freer *freer, size_t bytes, CUdeviceptr *ret_address)
{
	struct sw_allocation entry = {.bytes = bytes};
	if (!sw_book_reserve())
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = sw_pool_get(pool, freer, bytes, &entry.range, &entry.piece, &entry.address);
	if (result == CUDA_SUCCESS) {
		sw_book_add(&entry);
		*ret_address = entry.address;
	}
	return result;
}

static void put(const struct sw_allocation *entry)
{
	if (entry->piece != NULL)
		sw_pool_put(entry->piece, NULL);
	else if (entry->range->slab != NULL)
		sw_slab_put(entry->range, entry->address);
	else
		sw_range_free(entry->range);
}

bool sw_memory_put(CUdeviceptr address)
{
	struct sw_allocation entry;
	int mode = sw_capture_relax();
	pthread_mutex_lock(&sw_memory_lock);
	bool found = sw_book_remove(address, &entry);
	if (found)
		put(&entry);
	pthread_mutex_unlock(&sw_memory_lock);
	sw_capture_restore(mode);
	return found;
}

/* ---- what is put for later: memory of no pool, freed in the order of a stream */

struct leaving {
	struct leaving *next;
	struct sw_allocation entry;
	struct sw_freer *freer;
	uint64_t freed_at;
};
static struct leaving *leaving;
_Atomic unsigned sw_memory_leaving;

/* False: there is no memory to note it. */
static bool put_later(const struct sw_allocation *entry, struct sw_freer *freer)
{
	struct leaving *left = malloc(sizeof *left);
	if (left == NULL)
		return false;
	*left = (struct leaving){leaving, *entry, freer, sw_freer_free(freer, entry->bytes)};
	freer->uses++;
	leaving = left;
	sw_memory_leaving++;
	return true;
}

static void forget_leaving(struct leaving **link)
{
	struct leaving *left = *link;
	*link = left->next;
	left->freer->uses--;
	free(left);
	sw_memory_leaving--;
}

bool sw_memory_put_later(CUdeviceptr address, CUstream stream, CUresult *ret_result)
{
	struct sw_allocation entry;
	pthread_mutex_lock(&sw_memory_lock);
	bool found = sw_book_find(address, &entry) && entry.address == address;
	struct sw_freer *freer = found ? sw_freer_of(stream) : NULL;
	bool noted = freer != NULL && (entry.piece != NULL || put_later(&entry, freer));
	if (noted)
		sw_book_remove(address, &entry);
	if (noted && entry.piece != NULL)
		sw_pool_put(entry.piece, freer);
	pthread_mutex_unlock(&sw_memory_lock);
	*ret_result = CUDA_SUCCESS;
	if (noted)
		sw_freer_mark(freer, stream, entry.piece == NULL);
	else if (found && stream == SW_FREER_OF_CONTEXT)
		*ret_result = CUDA_ERROR_OUT_OF_MEMORY;
	else if (found && (*ret_result = sw_driver.stream_synchronize(stream)) == CUDA_SUCCESS && !sw_memory_put(address))
		*ret_result = CUDA_ERROR_INVALID_VALUE;
	return found;
}

void sw_memory_settle(void)
{
	CUcontext popped;
	int mode = sw_capture_relax();
	pthread_mutex_lock(&sw_memory_lock);
	if (leaving != NULL)
		sw_freers_poll();
	for (struct leaving **link = &leaving; *link != NULL;) {
		struct sw_allocation entry = (*link)->entry;
		if (!sw_freer_is_over((*link)->freer, (*link)->freed_at)) {
			link = &(*link)->next;
			continue;
		}
		forget_leaving(link);
		bool pushed = sw_driver.context_push(entry.range->context) == CUDA_SUCCESS;
		put(&entry);
		if (pushed)
			sw_driver.context_pop(&popped);
	}
	pthread_mutex_unlock(&sw_memory_lock);
	sw_capture_restore(mode);
}

/* The context in which the first of it was freed that is not over is current
 * then; false: there is none. */
static bool enter_leaving(void)
{
	pthread_mutex_lock(&sw_memory_lock);
	const struct leaving *left = leaving;
	while (left != NULL && sw_freer_is_over(left->freer, left->freed_at))
		left = left->next;
	/* Under the lock: one that goes is not among them any more. */
	bool entered = left != NULL && sw_driver.context_push(left->freer->context) == CUDA_SUCCESS;
	pthread_mutex_unlock(&sw_memory_lock);
	return entered;
}

bool sw_memory_await_leaving(void)
{
	CUcontext popped;
	CUresult waited = CUDA_SUCCESS;
	if (sw_memory_leaving == 0)
		return false;
	sw_memory_settle();
	for (unsigned i = 0; i < CONTEXTS && waited == CUDA_SUCCESS && atomic_load(&sw_captures) == 0 && enter_leaving(); i++) {
		sw_gate_leave(sw_gate_self);
		waited = sw_freers_wait();
		sw_gate_enter();
		sw_driver.context_pop(&popped);
		sw_memory_settle();
	}
	return true;
}

size_t sw_memory_leaving_bytes(void)
{
	size_t bytes = 0;
	for (const struct leaving *left = leaving; left != NULL; left = left->next)
		bytes += sw_round_up(left->entry.bytes, SW_UNIT_BYTES);
	return bytes;
}

bool sw_memory_reclaim(int gpu)
{
	pthread_mutex_lock(&sw_memory_lock);
	bool any = sw_pools_reclaim(gpu);
	pthread_mutex_unlock(&sw_memory_lock);
	return any;
}

/* ---- what is asked of them, and done to them */

bool sw_memory_find(CUdeviceptr address, CUdeviceptr *ret_base, size_t *ret_bytes, CUcontext *ret_context)
{
	struct sw_allocation entry;
	pthread_mutex_lock(&sw_memory_lock);
	bool found = sw_book_find(address, &entry);
	if (found) {
		*ret_base = entry.address;
		*ret_bytes = entry.bytes;
		*ret_context = entry.range->context;
	}
	pthread_mutex_unlock(&sw_memory_lock);
	return found;
}

CUmemoryPool sw_memory_pool(CUdeviceptr address)
{
	struct sw_allocation entry;
	pthread_mutex_lock(&sw_memory_lock);
	bool found = sw_book_find(address, &entry) && entry.piece != NULL;
	CUmemoryPool pool = found ? sw_pool_handle(entry.piece) : NULL;
	pthread_mutex_unlock(&sw_memory_lock);
	return pool;
}

void sw_range_pin(struct sw_range *range)
{
	if (range->pinned)
		return;
	range->pinned = true;
	for (uint32_t i = 0; i < range->chunk_count; i++)
		if (range->chunks[i].place == SW_ON_GPU && range->gpu >= 0)
			atomic_fetch_add(&sw_slot->gpus[range->gpu].fixed_bytes, range->chunks[i].bytes);
}

void sw_memory_pin(CUdeviceptr address, size_t bytes)
{
	struct sw_allocation entry;
	pthread_mutex_lock(&sw_memory_lock);
	bool found = sw_book_find(address, &entry);
	if (found)
		sw_range_pin(entry.range);
	else
		sw_mapped_pin(address, bytes);
	pthread_mutex_unlock(&sw_memory_lock);
}

void sw_memory_drop_context(CUcontext context)
{
	pthread_mutex_lock(&sw_memory_lock);
	sw_mapped_forget_context(context);
	for (struct leaving **link = &leaving; *link != NULL;)
		if ((*link)->entry.range->context == context)
			forget_leaving(link);
		else
			link = &(*link)->next;
	for (struct sw_range *range = sw_ranges, *next; range != NULL; range = next) {
		next = range->next;
		if (range->context != context)
			continue;
		sw_book_remove_range(range);
		sw_slab_forget(range);
		if (range->pieces != NULL)
			sw_pool_forget_range(range);
		sw_range_free(range);
	}
	sw_freers_drop_context(context);
	pthread_mutex_unlock(&sw_memory_lock);
}

void sw_memory_publish(void)
{
	sw_account_raise_peaks();
	pthread_mutex_lock(&sw_memory_lock);
	pthread_mutex_unlock(&sw_memory_lock);
}

void sw_memory_let(CUdevice device, CUdevice peer)
{
	if (device < 0 || device >= DEVICES || peer < 0 || peer >= DEVICES)
		return;
	pthread_mutex_lock(&sw_memory_lock);
	peers_of[device] |= UINT64_C(1) << peer;
	for (struct sw_range *range = sw_ranges; range != NULL; range = range->next)
		if (range->device == device && range->mapping == NULL)
			sw_range_open(range, range->address, range->bytes);
	pthread_mutex_unlock(&sw_memory_lock);
}
