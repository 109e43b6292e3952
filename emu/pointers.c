/* What the driver knows of an address. */
#include <string.h>

#include "allocations.h"
#include "context.h"
#include "memory.h"

/* What is asked for, gathered from the allocations and the mappings. */
struct about {
	bool known, by_hand, mapped, of_host, managed;
	int gpu;
	struct emu_context *context;
	uint64_t base, bytes, id;
	struct emu_pool *pool;
	unsigned readable, writable;
};

static struct about look_up(uint64_t address)
{
	struct about about = {.gpu = EMU_HOST};
	struct emu_allocation allocation;
	struct emu_mapping mapping;
	struct emu_range *range = emu_range_holding(address);
	if (emu_allocation_at(address, &allocation)) {
		about.known = about.mapped = true;
		about.of_host = allocation.kind == EMU_ALLOCATED_HOST || allocation.kind == EMU_ALLOCATED_REGISTERED;
		about.managed = allocation.kind == EMU_ALLOCATED_MANAGED;
		about.gpu = allocation.gpu;
		about.context = allocation.context;
		about.base = allocation.base;
		about.bytes = allocation.bytes;
		about.id = allocation.id;
		about.pool = allocation.pool;
	} else if (range != NULL && range->kind == EMU_RANGE_RESERVED) {
		about.known = about.by_hand = true;
		about.base = range->base;
		about.bytes = range->bytes;
		about.id = range->id;
		if (emu_mapping_at(address, &mapping)) {
			about.mapped = true;
			about.gpu = mapping.memory->gpu;
			about.of_host = mapping.memory->gpu == EMU_HOST;
			about.id = mapping.id;
		}
	}
	return about;
}

/* Sizes are those of the attributes' types. */
static CUresult answer(const struct about *about, int attribute, uint64_t address, void *ret_value)
{
	int device = about->gpu != EMU_HOST ? emu_gpu_device(about->gpu) : about->context != NULL ? about->context->device : 0;
	switch (attribute) {
	case CU_POINTER_CONTEXT:
		if (about->by_hand)
			*(CUcontext *)ret_value = NULL;
		else
			*(CUcontext *)ret_value = (CUcontext)about->context;
		return about->known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	case CU_POINTER_MEMORY_TYPE:
		*(unsigned *)ret_value = about->of_host ? CU_MEMORY_HOST : CU_MEMORY_DEVICE;
		return about->mapped ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	case CU_POINTER_DEVICE_POINTER:
		*(CUdeviceptr *)ret_value = address;
		return about->mapped ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	case CU_POINTER_HOST_POINTER:
		*(uint64_t *)ret_value = about->of_host || about->managed ? address : 0;
		return about->of_host || about->managed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	case CU_POINTER_SYNC_MEMOPS:
		*(int *)ret_value = 0;
		return about->mapped ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	case CU_POINTER_BUFFER_ID:
		*(unsigned long long *)ret_value = about->id;
		return about->mapped ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	case CU_POINTER_IS_MANAGED:
		*(int *)ret_value = about->managed;
		return about->known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	case CU_POINTER_DEVICE_ORDINAL:
		*(int *)ret_value = about->mapped ? device : -2;
		return about->known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	case CU_POINTER_IS_LEGACY_IPC_CAPABLE:
		*(int *)ret_value = about->mapped && !about->by_hand && !about->of_host && !about->managed && about->pool == NULL;
		return CUDA_SUCCESS;
	case CU_POINTER_RANGE_START:
		*(CUdeviceptr *)ret_value = about->base;
		return about->known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	case CU_POINTER_RANGE_SIZE:
		*(size_t *)ret_value = about->bytes;
		return about->known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	case CU_POINTER_MAPPED:
		*(int *)ret_value = about->mapped;
		return CUDA_SUCCESS;
	case 14: /* the kinds of handles it can be exported as */
		*(uint64_t *)ret_value = 0;
		return CUDA_SUCCESS;
	case CU_POINTER_POOL:
		*(CUmemoryPool *)ret_value = (CUmemoryPool)about->pool;
		return about->known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

ENTRY(cuPointerGetAttribute, void *ret_value, int attribute, CUdeviceptr address)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	if (ret_value == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	uint64_t value = 0;
	struct about about = look_up(address);
	result = answer(&about, attribute, address, &value);
	if (result == CUDA_SUCCESS)
		result = answer(&about, attribute, address, ret_value);
	return result;
}

/* Of all at once, what does not apply to the address is 0. */
ENTRY(cuPointerGetAttributes, unsigned count, int *attributes, void **ret_values, CUdeviceptr address)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	if (attributes == NULL || ret_values == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	struct about about = look_up(address);
	for (unsigned i = 0; i < count; i++) {
		static const struct about nothing = {.gpu = EMU_HOST};
		if (ret_values[i] == NULL || attributes[i] < 1 || attributes[i] > 21)
			return CUDA_ERROR_INVALID_VALUE;
		if (about.known)
			answer(&about, attributes[i], address, ret_values[i]);
		else if (attributes[i] == CU_POINTER_DEVICE_ORDINAL)
			*(int *)ret_values[i] = -2;
		else if (attributes[i] == CU_POINTER_MEMORY_TYPE)
			*(unsigned *)ret_values[i] = 0;
		else if (attributes[i] == CU_POINTER_DEVICE_POINTER)
			*(CUdeviceptr *)ret_values[i] = 0;
		else
			answer(&nothing, attributes[i], 0, ret_values[i]);
	}
	return CUDA_SUCCESS;
}

ENTRY(cuPointerSetAttribute, const void *value, int attribute, CUdeviceptr address)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	struct about about = look_up(address);
	return value != NULL && attribute == CU_POINTER_SYNC_MEMOPS && about.mapped ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
