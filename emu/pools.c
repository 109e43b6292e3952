/* Pools and the calls in stream order. Memory is given out at the call; what a stream frees it may
 * have back at once, others when the stream has got there. A pool keeps what it reserved until the
 * host waits somewhere, and then gives back what is over its threshold. */
#include "pools.h"

#include <pthread.h>
#include <stdlib.h>

#include "allocations.h"
#include "arena.h"
#include "capture.h"
#include "config.h"
#include "context.h"
#include "graphs.h"
#include "memory.h"
#include "streams.h"

#define CHUNK_BYTES (32ULL << 20)

struct emu_pool {
	struct emu_object object;
	struct emu_arena arena;
	int device;
	bool is_default;
	_Atomic uint64_t threshold;
	_Atomic uint64_t reuse[4]; /* settings that change nothing here */
	struct emu_pool *next;	   /* of all */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct emu_pool *all;
static struct emu_pool *defaults[EMU_GPUS_MAX]; /* by device */
static struct emu_pool *current[EMU_GPUS_MAX];

static void destroy(struct emu_object *object)
{
	struct emu_pool *pool = (struct emu_pool *)object;
	pthread_mutex_lock(&lock);
	for (struct emu_pool **link = &all; *link != NULL; link = &(*link)->next) {
		if (*link == pool) {
			*link = pool->next;
			break;
		}
	}
	pthread_mutex_unlock(&lock);
	emu_arena_release(&pool->arena);
	free(pool);
}

/* Below the lock. */
static struct emu_pool *new_pool(int device, uint64_t limit)
{
	struct emu_pool *pool = calloc(1, sizeof *pool);
	if (pool == NULL)
		return NULL;
	emu_arena_init(&pool->arena, emu_device_gpu(device), CHUNK_BYTES);
	pool->arena.limit_bytes = limit;
	pool->device = device;
	for (int i = 1; i < 4; i++)
		atomic_init(&pool->reuse[i], 1);
	pool->next = all;
	all = pool;
	emu_publish(&pool->object, EMU_POOL, destroy);
	return pool;
}

static struct emu_pool *default_of(int device)
{
	pthread_mutex_lock(&lock);
	if (defaults[device] == NULL) {
		defaults[device] = new_pool(device, 0);
		if (defaults[device] != NULL)
			defaults[device]->is_default = true;
	}
	struct emu_pool *pool = defaults[device];
	pthread_mutex_unlock(&lock);
	return pool;
}

static struct emu_pool *current_of(int device)
{
	struct emu_pool *pool = default_of(device);
	pthread_mutex_lock(&lock);
	if (current[device] != NULL)
		pool = current[device];
	pthread_mutex_unlock(&lock);
	return pool;
}

void emu_pools_trim(void)
{
	pthread_mutex_lock(&lock);
	for (struct emu_pool *pool = all; pool != NULL; pool = pool->next)
		emu_arena_trim(&pool->arena, atomic_load(&pool->threshold));
	pthread_mutex_unlock(&lock);
}

void emu_pool_freed(struct emu_pool *pool, uint64_t address, uint64_t ticket)
{
	emu_arena_freed(&pool->arena, address, ticket);
}

void emu_pool_free_now(struct emu_pool *pool, uint64_t address)
{
	emu_arena_give(&pool->arena, address);
	emu_arena_trim(&pool->arena, atomic_load(&pool->threshold));
	emu_put(&pool->object);
}

static CUresult allocate_from(struct emu_pool *pool, struct emu_stream *stream, uint64_t bytes, CUdeviceptr *ret_address)
{
	struct emu_allocation allocation = {
		.bytes = bytes, .kind = EMU_ALLOCATED_POOL, .gpu = pool->arena.gpu, .context = stream->context, .pool = pool};
	CUresult result = emu_arena_take(&pool->arena, bytes, stream->id, &allocation.base);
	if (result == CUDA_ERROR_OUT_OF_MEMORY) {
		/* What streams are about to free may be what is missing. */
		emu_context_wait(stream->context);
		result = emu_arena_take(&pool->arena, bytes, stream->id, &allocation.base);
	}
	if (result != CUDA_SUCCESS)
		return result;
	emu_hold(&pool->object);
	result = emu_allocation_add(allocation);
	if (result == CUDA_SUCCESS)
		*ret_address = allocation.base;
	else
		emu_pool_free_now(pool, allocation.base);
	return result;
}

static CUresult allocate(const char *entry, CUdeviceptr *ret_address, size_t bytes, CUmemoryPool handle, bool given, CUstream stream_handle,
			 enum emu_flavour flavour)
{
	CUresult result = emu_enter(entry, EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_stream *stream = NULL;
	if (ret_address == NULL || bytes == 0)
		return CUDA_ERROR_INVALID_VALUE;
	result = emu_stream_of(stream_handle, flavour, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_pool *pool = given ? emu_get(handle, EMU_POOL) : NULL;
	if (!given) {
		pool = current_of(stream->context->device);
		if (pool != NULL)
			emu_hold(&pool->object);
	}
	if (pool == NULL)
		result = CUDA_ERROR_INVALID_VALUE;
	else if (emu_capturing(stream))
		result = emu_graph_capture_alloc(stream, bytes, ret_address);
	else
		result = allocate_from(pool, stream, bytes, ret_address);
	emu_put(pool != NULL ? &pool->object : NULL);
	emu_put(&stream->object);
	return result;
}

TWINS(cuMemAllocAsync, _ptsz, allocate(__func__, ret_address, bytes, NULL, false, stream, flavour), CUdeviceptr *ret_address, size_t bytes,
      CUstream stream)
TWINS(cuMemAllocFromPoolAsync, _ptsz, allocate(__func__, ret_address, bytes, pool, true, stream, flavour), CUdeviceptr *ret_address,
      size_t bytes, CUmemoryPool pool, CUstream stream)

/* A piece of a pool can be had again by this stream from now on; plain memory goes when
 * the stream gets there. */
static CUresult free_allocation(struct emu_stream *stream, uint64_t address)
{
	struct emu_allocation allocation;
	if (!emu_allocation_at(address, &allocation) || allocation.base != address)
		return CUDA_ERROR_INVALID_VALUE;
	if (allocation.kind != EMU_ALLOCATED_POOL && allocation.kind != EMU_ALLOCATED_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	struct emu_work *work = emu_work_new(EMU_WORK_FREE);
	if (work == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	work->memory.address = address;
	if (allocation.kind == EMU_ALLOCATED_POOL && emu_allocation_remove(address, &allocation)) {
		work->memory.ticket = emu_arena_begin_give(&allocation.pool->arena, address, stream->id);
		work->memory.pool = allocation.pool; /* with the allocation's reference */
	}
	return emu_submit(stream, work, NULL);
}

static CUresult free_async(const char *entry, CUdeviceptr address, CUstream handle, enum emu_flavour flavour)
{
	CUresult result = emu_enter(entry, EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_stream *stream = NULL;
	if (address == 0)
		return CUDA_ERROR_INVALID_VALUE;
	result = emu_stream_of(handle, flavour, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	if (emu_graph_owns(address))
		result = emu_graph_free_async(stream, address);
	else if (emu_capturing(stream))
		result = emu_capture_refuse(stream);
	else
		result = free_allocation(stream, address);
	emu_put(&stream->object);
	return result;
}

TWINS(cuMemFreeAsync, _ptsz, free_async(__func__, address, stream, flavour), CUdeviceptr address, CUstream stream)

/* Pools themselves. */

ENTRY(cuMemPoolCreate, CUmemoryPool *ret_pool, const CUmemPoolProps *properties)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	if (ret_pool == NULL || properties == NULL || properties->type != CU_MEM_ALLOCATION_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	/* One that other processes may open behaves like any other; no process can open it. */
	if (properties->location.type != CU_MEM_LOCATION_DEVICE || (properties->handle_types & ~CU_MEM_HANDLE_FILE_DESCRIPTOR) != 0)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (emu_device_gpu(properties->location.id) < 0)
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&lock);
	struct emu_pool *pool = new_pool(properties->location.id, properties->max_size);
	pthread_mutex_unlock(&lock);
	if (pool == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*ret_pool = (CUmemoryPool)pool;
	return CUDA_SUCCESS;
}

/* What was allocated from it stays good, and keeps it. */
ENTRY(cuMemPoolDestroy, CUmemoryPool handle)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT | EMU_ANYWAY, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_pool *pool = emu_get(handle, EMU_POOL);
	if (pool == NULL || pool->is_default) {
		emu_put(pool != NULL ? &pool->object : NULL);
		return CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_lock(&lock);
	for (int i = 0; i < EMU_GPUS_MAX; i++)
		if (current[i] == pool)
			current[i] = NULL;
	pthread_mutex_unlock(&lock);
	emu_retire(pool, EMU_POOL);
	emu_put(&pool->object);
	return CUDA_SUCCESS;
}

/* Whether a driver answers this, and the next one, while something is captured is written nowhere:
 * no caller is to count on it. */
ENTRY(cuMemPoolTrimTo, CUmemoryPool handle, size_t keep)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT | EMU_UNSAFE, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_pool *pool = emu_get(handle, EMU_POOL);
	if (pool == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	emu_arena_trim(&pool->arena, keep);
	emu_put(&pool->object);
	return CUDA_SUCCESS;
}

static CUresult get_attribute(struct emu_pool *pool, int attribute, void *ret_value)
{
	if (attribute >= 1 && attribute <= 3) {
		*(int *)ret_value = (int)atomic_load(&pool->reuse[attribute]);
		return CUDA_SUCCESS;
	}
	uint64_t *value = ret_value;
	pthread_mutex_lock(&pool->arena.lock);
	CUresult result = CUDA_SUCCESS;
	switch (attribute) {
	case CU_MEMPOOL_RELEASE_THRESHOLD:
		*value = atomic_load(&pool->threshold);
		break;
	case CU_MEMPOOL_RESERVED_CURRENT:
		*value = pool->arena.reserved;
		break;
	case CU_MEMPOOL_RESERVED_HIGH:
		*value = pool->arena.reserved_high;
		break;
	case CU_MEMPOOL_USED_CURRENT:
		*value = pool->arena.used;
		break;
	case CU_MEMPOOL_USED_HIGH:
		*value = pool->arena.used_high;
		break;
	default:
		result = CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_unlock(&pool->arena.lock);
	return result;
}

ENTRY(cuMemPoolGetAttribute, CUmemoryPool handle, int attribute, void *ret_value)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT | EMU_UNSAFE, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_pool *pool = ret_value != NULL ? emu_get(handle, EMU_POOL) : NULL;
	if (pool == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	result = get_attribute(pool, attribute, ret_value);
	emu_put(&pool->object);
	return result;
}

/* The high-water marks can be set to 0 only, which makes them what is now. */
static CUresult set_attribute(struct emu_pool *pool, int attribute, const void *value)
{
	if (attribute >= 1 && attribute <= 3) {
		atomic_store(&pool->reuse[attribute], (uint64_t) * (const int *)value);
		return CUDA_SUCCESS;
	}
	uint64_t number = *(const uint64_t *)value;
	if (attribute == CU_MEMPOOL_RELEASE_THRESHOLD) {
		atomic_store(&pool->threshold, number);
		return CUDA_SUCCESS;
	}
	if ((attribute != CU_MEMPOOL_RESERVED_HIGH && attribute != CU_MEMPOOL_USED_HIGH) || number != 0)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&pool->arena.lock);
	if (attribute == CU_MEMPOOL_RESERVED_HIGH)
		pool->arena.reserved_high = pool->arena.reserved;
	else
		pool->arena.used_high = pool->arena.used;
	pthread_mutex_unlock(&pool->arena.lock);
	return CUDA_SUCCESS;
}

ENTRY(cuMemPoolSetAttribute, CUmemoryPool handle, int attribute, void *value)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_pool *pool = value != NULL ? emu_get(handle, EMU_POOL) : NULL;
	if (pool == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	result = set_attribute(pool, attribute, value);
	emu_put(&pool->object);
	return result;
}

ENTRY(cuMemPoolSetAccess, CUmemoryPool handle, const CUmemAccessDesc *descriptions, size_t count)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_pool *pool = descriptions != NULL ? emu_get(handle, EMU_POOL) : NULL;
	if (pool == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
		int gpu = emu_device_gpu(descriptions[i].location.id);
		if (descriptions[i].location.type != CU_MEM_LOCATION_DEVICE || gpu < 0)
			result = CUDA_ERROR_INVALID_VALUE;
		else if (gpu != pool->arena.gpu)
			emu_peer_set(gpu, pool->arena.gpu, descriptions[i].flags != CU_MEM_ACCESS_NONE);
	}
	emu_put(&pool->object);
	return result;
}

ENTRY(cuMemPoolGetAccess, int *ret_flags, CUmemoryPool handle, const CUmemLocation *location)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_pool *pool = ret_flags != NULL && location != NULL ? emu_get(handle, EMU_POOL) : NULL;
	int gpu = location != NULL ? emu_device_gpu(location->id) : -1;
	if (pool == NULL || gpu < 0) {
		emu_put(pool != NULL ? &pool->object : NULL);
		return CUDA_ERROR_INVALID_VALUE;
	}
	*ret_flags = gpu == pool->arena.gpu || emu_peer_get(gpu, pool->arena.gpu) ? CU_MEM_ACCESS_READWRITE : CU_MEM_ACCESS_NONE;
	emu_put(&pool->object);
	return CUDA_SUCCESS;
}

static CUresult get_pool(const char *entry, CUmemoryPool *ret_pool, CUdevice device, bool standard)
{
	CUresult result = emu_enter(entry, EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	if (ret_pool == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (emu_device_gpu(device) < 0)
		return CUDA_ERROR_INVALID_DEVICE;
	struct emu_pool *pool = standard ? default_of(device) : current_of(device);
	if (pool == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*ret_pool = (CUmemoryPool)pool;
	return CUDA_SUCCESS;
}

ENTRY(cuDeviceGetDefaultMemPool, CUmemoryPool *ret_pool, CUdevice device)
{
	return get_pool(__func__, ret_pool, device, true);
}

ENTRY(cuDeviceGetMemPool, CUmemoryPool *ret_pool, CUdevice device)
{
	return get_pool(__func__, ret_pool, device, false);
}

ENTRY(cuDeviceSetMemPool, CUdevice device, CUmemoryPool handle)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	if (emu_device_gpu(device) < 0)
		return CUDA_ERROR_INVALID_DEVICE;
	struct emu_pool *pool = emu_get(handle, EMU_POOL);
	if (pool == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (pool->device != device)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS) {
		pthread_mutex_lock(&lock);
		current[device] = pool->is_default ? NULL : pool;
		pthread_mutex_unlock(&lock);
	}
	emu_put(&pool->object);
	return result;
}
