/* The list of allocations, and the plain calls: device memory, pitched, managed, the host's. */
#include "allocations.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arena.h"
#include "config.h"
#include "context.h"
#include "graphs.h"
#include "memory.h"
#include "pools.h"
#include "shared.h"

/* Up to this size, allocations share chunks. */
#define SMALL_BYTES (1ULL << 20)
enum { PITCH = 512 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct emu_allocation *list; /* in order */
static size_t count, size;
static struct emu_arena arenas[EMU_GPUS_MAX]; /* of the small ones */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void init_arenas(void)
{
	for (int i = 0; i < EMU_GPUS_MAX; i++)
		emu_arena_init(&arenas[i], i, EMU_GRANULARITY);
}

/* The place of the first one that ends beyond `address`. */
static size_t find(uint64_t address)
{
	size_t low = 0, high = count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (list[middle].base + list[middle].bytes <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

CUresult emu_allocation_add(struct emu_allocation allocation)
{
	allocation.id = emu_next_id();
	CUresult result = CUDA_SUCCESS;
	pthread_mutex_lock(&lock);
	if (count == size) {
		size_t wanted = size != 0 ? size * 2 : 64;
		struct emu_allocation *grown = realloc(list, wanted * sizeof *grown);
		if (grown != NULL) {
			list = grown;
			size = wanted;
		} else {
			result = CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	if (result == CUDA_SUCCESS) {
		size_t at = find(allocation.base);
		memmove(&list[at + 1], &list[at], (count - at) * sizeof list[0]);
		list[at] = allocation;
		count++;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

static bool take_out(uint64_t base, unsigned kinds, struct emu_allocation *ret_allocation)
{
	pthread_mutex_lock(&lock);
	size_t at = find(base);
	bool found = at < count && list[at].base == base && (kinds >> list[at].kind & 1) != 0;
	if (found) {
		*ret_allocation = list[at];
		memmove(&list[at], &list[at + 1], (count - at - 1) * sizeof list[0]);
		count--;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

bool emu_allocation_remove(uint64_t base, struct emu_allocation *ret_allocation)
{
	return take_out(base, ~0U, ret_allocation);
}

bool emu_allocation_at(uint64_t address, struct emu_allocation *ret_allocation)
{
	pthread_mutex_lock(&lock);
	size_t at = find(address);
	bool found = at < count && list[at].base <= address;
	if (found)
		*ret_allocation = list[at];
	pthread_mutex_unlock(&lock);
	return found;
}

static void dispose(const struct emu_allocation *allocation)
{
	if (allocation->kind == EMU_ALLOCATED_POOL) {
		emu_pool_free_now(allocation->pool, allocation->base);
	} else if (allocation->range != NULL) {
		emu_range_free(allocation->range);
	} else {
		emu_arena_give(&arenas[allocation->gpu], allocation->base);
		emu_arena_trim(&arenas[allocation->gpu], 0);
	}
	if (allocation->counted > 0)
		emu_memory_give((unsigned)allocation->gpu, allocation->counted);
}

void emu_allocations_end(struct emu_context *context)
{
	for (;;) {
		struct emu_allocation allocation = {0};
		bool found = false;
		pthread_mutex_lock(&lock);
		for (size_t at = 0; at < count && !found; at++) {
			found = list[at].context == context && list[at].kind != EMU_ALLOCATED_POOL;
			if (found) {
				allocation = list[at];
				memmove(&list[at], &list[at + 1], (count - at - 1) * sizeof list[0]);
				count--;
			}
		}
		pthread_mutex_unlock(&lock);
		if (!found)
			return;
		dispose(&allocation);
	}
}

CUresult emu_allocate(struct emu_context *context, uint64_t bytes, uint64_t *ret_address)
{
	struct emu_allocation allocation = {
		.bytes = bytes,
		.kind = EMU_ALLOCATED_DEVICE,
		.gpu = context->gpu,
		.context = context,
	};
	pthread_once(&once, init_arenas);
	CUresult result = CUDA_SUCCESS;
	if (bytes <= SMALL_BYTES)
		result = emu_arena_take(&arenas[context->gpu], bytes, 0, &allocation.base);
	else
		result = emu_range_allocate(context->gpu, bytes, &allocation.range);
	if (result != CUDA_SUCCESS)
		return result;
	if (allocation.range != NULL)
		allocation.base = allocation.range->base;
	result = emu_allocation_add(allocation);
	if (result == CUDA_SUCCESS)
		*ret_address = allocation.base;
	else
		dispose(&allocation);
	return result;
}

CUresult emu_deallocate(uint64_t address)
{
	struct emu_allocation allocation;
	if (!take_out(address, 1U << EMU_ALLOCATED_DEVICE | 1U << EMU_ALLOCATED_MANAGED | 1U << EMU_ALLOCATED_POOL, &allocation))
		return CUDA_ERROR_INVALID_VALUE;
	dispose(&allocation);
	return CUDA_SUCCESS;
}

ENTRY(cuMemAlloc_v2, CUdeviceptr *ret_address, size_t bytes)
{
	struct emu_context *context = NULL;
	CUresult result = emu_enter(__func__, EMU_UNSAFE, &context);
	if (result != CUDA_SUCCESS)
		return result;
	if (ret_address == NULL || bytes == 0)
		return CUDA_ERROR_INVALID_VALUE;
	uint64_t address = 0;
	result = emu_allocate(context, bytes, &address);
	if (result == CUDA_SUCCESS)
		*ret_address = address;
	return result;
}

ENTRY(cuMemAllocPitch_v2, CUdeviceptr *ret_address, size_t *ret_pitch, size_t width, size_t height, unsigned element)
{
	struct emu_context *context = NULL;
	CUresult result = emu_enter(__func__, EMU_UNSAFE, &context);
	if (result != CUDA_SUCCESS)
		return result;
	if (ret_address == NULL || ret_pitch == NULL || width == 0 || height == 0 || (element != 4 && element != 8 && element != 16))
		return CUDA_ERROR_INVALID_VALUE;
	size_t pitch = (width + PITCH - 1) / PITCH * PITCH, bytes = 0;
	if (pitch < width || __builtin_mul_overflow(pitch, height, &bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	uint64_t address = 0;
	result = emu_allocate(context, bytes, &address);
	if (result == CUDA_SUCCESS) {
		*ret_address = address;
		*ret_pitch = pitch;
	}
	return result;
}

ENTRY(cuMemFree_v2, CUdeviceptr address)
{
	struct emu_context *context = NULL;
	CUresult result = emu_enter(__func__, EMU_UNSAFE, &context);
	if (result != CUDA_SUCCESS || address == 0)
		return result;
	/* Work that was put in before may still use it. */
	emu_context_wait(context);
	if (emu_graph_owns(address)) {
		if (!emu_graph_let(address))
			return CUDA_ERROR_INVALID_VALUE;
		emu_graph_unmap(address);
		return CUDA_SUCCESS;
	}
	return emu_deallocate(address);
}

/* Managed memory is the host's memory that the GPU may use. As much of it counts against the GPU as
 * there is room: the rest would live with the host. */
ENTRY(cuMemAllocManaged, CUdeviceptr *ret_address, size_t bytes, unsigned flags)
{
	struct emu_context *context = NULL;
	CUresult result = emu_enter(__func__, EMU_UNSAFE, &context);
	if (result != CUDA_SUCCESS)
		return result;
	if (ret_address == NULL || bytes == 0 || (flags != 1 && flags != 2))
		return CUDA_ERROR_INVALID_VALUE;
	struct emu_allocation allocation = {
		.bytes = bytes, .kind = EMU_ALLOCATED_MANAGED, .gpu = context->gpu, .context = context, .flags = flags};
	result = emu_range_host(EMU_RANGE_MANAGED, NULL, bytes, &allocation.range);
	if (result != CUDA_SUCCESS)
		return result;
	allocation.base = allocation.range->base;
	uint64_t whole = (bytes + EMU_GRANULARITY - 1) / EMU_GRANULARITY * EMU_GRANULARITY;
	if (emu_memory_take((unsigned)context->gpu, whole))
		allocation.counted = whole;
	result = emu_allocation_add(allocation);
	if (result == CUDA_SUCCESS)
		*ret_address = allocation.base;
	else
		dispose(&allocation);
	return result;
}

static CUresult allocate_host(const char *entry, void **ret_address, size_t bytes, unsigned flags)
{
	struct emu_context *context = NULL;
	CUresult result = emu_enter(entry, EMU_UNSAFE, &context);
	if (result != CUDA_SUCCESS)
		return result;
	if (ret_address == NULL || bytes == 0 || flags > 7)
		return CUDA_ERROR_INVALID_VALUE;
	struct emu_allocation allocation = {
		.bytes = bytes, .kind = EMU_ALLOCATED_HOST, .gpu = EMU_HOST, .context = context, .flags = flags};
	result = emu_range_host(EMU_RANGE_HOST, NULL, bytes, &allocation.range);
	if (result != CUDA_SUCCESS)
		return result;
	allocation.base = allocation.range->base;
	result = emu_allocation_add(allocation);
	if (result == CUDA_SUCCESS)
		*ret_address = (void *)(uintptr_t)allocation.base;
	else
		dispose(&allocation);
	return result;
}

ENTRY(cuMemHostAlloc, void **ret_address, size_t bytes, unsigned flags)
{
	return allocate_host(__func__, ret_address, bytes, flags);
}

ENTRY(cuMemAllocHost_v2, void **ret_address, size_t bytes)
{
	return allocate_host(__func__, ret_address, bytes, 0);
}

ENTRY(cuMemFreeHost, void *address)
{
	struct emu_context *context = NULL;
	CUresult result = emu_enter(__func__, EMU_UNSAFE, &context);
	if (result != CUDA_SUCCESS || address == NULL)
		return result;
	struct emu_allocation allocation;
	emu_context_wait(context);
	if (!take_out((uint64_t)(uintptr_t)address, 1U << EMU_ALLOCATED_HOST, &allocation))
		return CUDA_ERROR_INVALID_VALUE;
	dispose(&allocation);
	return CUDA_SUCCESS;
}

ENTRY(cuMemHostRegister_v2, void *address, size_t bytes, unsigned flags)
{
	struct emu_context *context = NULL;
	CUresult result = emu_enter(__func__, EMU_UNSAFE, &context);
	if (result != CUDA_SUCCESS)
		return result;
	if (address == NULL || bytes == 0 || flags > 15)
		return CUDA_ERROR_INVALID_VALUE;
	struct emu_allocation allocation = {
		.bytes = bytes, .kind = EMU_ALLOCATED_REGISTERED, .gpu = EMU_HOST, .context = context, .flags = flags};
	result = emu_range_host(EMU_RANGE_REGISTERED, address, bytes, &allocation.range);
	if (result != CUDA_SUCCESS)
		return result;
	allocation.base = allocation.range->base;
	result = emu_allocation_add(allocation);
	if (result != CUDA_SUCCESS)
		dispose(&allocation);
	return result;
}

ENTRY(cuMemHostUnregister, void *address)
{
	struct emu_context *context = NULL;
	CUresult result = emu_enter(__func__, EMU_UNSAFE, &context);
	if (result != CUDA_SUCCESS)
		return result;
	if (address == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	struct emu_allocation allocation;
	emu_context_wait(context);
	if (!take_out((uint64_t)(uintptr_t)address, 1U << EMU_ALLOCATED_REGISTERED, &allocation))
		return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
	dispose(&allocation);
	return CUDA_SUCCESS;
}

static bool is_hosts(uint64_t address, struct emu_allocation *ret_allocation)
{
	return emu_allocation_at(address, ret_allocation) &&
	       (ret_allocation->kind == EMU_ALLOCATED_HOST || ret_allocation->kind == EMU_ALLOCATED_REGISTERED);
}

ENTRY(cuMemHostGetDevicePointer_v2, CUdeviceptr *ret_address, void *address, unsigned flags)
{
	CUresult result = emu_enter(__func__, 0, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_allocation allocation;
	if (ret_address == NULL || flags != 0 || !is_hosts((uint64_t)(uintptr_t)address, &allocation))
		return CUDA_ERROR_INVALID_VALUE;
	*ret_address = (uint64_t)(uintptr_t)address;
	return CUDA_SUCCESS;
}

ENTRY(cuMemHostGetFlags, unsigned *ret_flags, void *address)
{
	CUresult result = emu_enter(__func__, 0, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_allocation allocation;
	if (ret_flags == NULL || !is_hosts((uint64_t)(uintptr_t)address, &allocation))
		return CUDA_ERROR_INVALID_VALUE;
	/* With unified addresses all of it is mapped. */
	*ret_flags = allocation.flags | CU_HOST_DEVICEMAP;
	return CUDA_SUCCESS;
}

ENTRY(cuMemGetInfo_v2, size_t *ret_free, size_t *ret_total)
{
	struct emu_context *context = NULL;
	CUresult result = emu_enter(__func__, 0, &context);
	if (result != CUDA_SUCCESS)
		return result;
	uint64_t total = emu_config()->gpus[context->gpu].memory_bytes, used = emu_memory_used((unsigned)context->gpu);
	if (ret_free != NULL)
		*ret_free = used < total ? total - used : 0;
	if (ret_total != NULL)
		*ret_total = total;
	return CUDA_SUCCESS;
}

ENTRY(cuMemGetAddressRange_v2, CUdeviceptr *ret_base, size_t *ret_bytes, CUdeviceptr address)
{
	CUresult result = emu_enter(__func__, 0, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_allocation allocation = {0};
	struct emu_mapping mapping;
	if (!emu_allocation_at(address, &allocation)) {
		if (!emu_mapping_at(address, &mapping))
			return CUDA_ERROR_NOT_FOUND;
		allocation.base = mapping.base;
		allocation.bytes = mapping.bytes;
	}
	if (ret_base != NULL)
		*ret_base = allocation.base;
	if (ret_bytes != NULL)
		*ret_bytes = allocation.bytes;
	return CUDA_SUCCESS;
}
