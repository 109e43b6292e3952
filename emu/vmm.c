/* Memory that the program maps by hand. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config.h"
#include "context.h"
#include "memory.h"

static bool aligned(uint64_t value)
{
	return value % EMU_GRANULARITY == 0;
}

/* Which memory a location means: a GPU's or the host's. */
static CUresult find_location(const CUmemLocation *location, int *ret_gpu)
{
	switch (location->type) {
	case CU_MEM_LOCATION_DEVICE:
		*ret_gpu = emu_device_gpu(location->id);
		return *ret_gpu >= 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
	case CU_MEM_LOCATION_HOST:
		*ret_gpu = EMU_HOST;
		return CUDA_SUCCESS;
	case CU_MEM_LOCATION_HOST_NUMA:
		*ret_gpu = EMU_HOST;
		return location->id >= 0 && location->id < 64 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

ENTRY(cuMemAddressReserve, CUdeviceptr *ret_address, size_t bytes, size_t alignment, CUdeviceptr hint, unsigned long long flags)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	if (ret_address == NULL || bytes == 0 || flags != 0 || !aligned(bytes) || (alignment & (alignment - 1)) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	struct emu_range *range = NULL;
	result = emu_range_reserve(EMU_RANGE_RESERVED, bytes, alignment, hint, &range);
	if (result == CUDA_SUCCESS)
		*ret_address = range->base;
	return result;
}

ENTRY(cuMemAddressFree, CUdeviceptr address, size_t bytes)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_range *range = emu_range_at(address);
	if (range == NULL || range->kind != EMU_RANGE_RESERVED || range->bytes != bytes || range->count > 0)
		return CUDA_ERROR_INVALID_VALUE;
	emu_range_free(range);
	return CUDA_SUCCESS;
}

ENTRY(cuMemCreate, CUmemHandle *ret_handle, size_t bytes, const CUmemAllocationProp *properties, unsigned long long flags)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	int gpu = EMU_HOST;
	if (ret_handle == NULL || properties == NULL || flags != 0 || bytes == 0 || !aligned(bytes) ||
	    properties->type != CU_MEM_ALLOCATION_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	result = find_location(&properties->location, &gpu);
	if (result != CUDA_SUCCESS)
		return result;
	if (properties->requested_handle_types & CU_MEM_HANDLE_FABRIC)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (properties->location.type == CU_MEM_LOCATION_HOST && properties->requested_handle_types != 0)
		return CUDA_ERROR_INVALID_VALUE;
	struct emu_memory *memory = NULL;
	result = emu_memory_create(gpu, bytes, properties, &memory);
	if (result == CUDA_SUCCESS)
		*ret_handle = (CUmemHandle)(uintptr_t)memory;
	return result;
}

static struct emu_memory *memory_of(CUmemHandle handle)
{
	return emu_get((const void *)(uintptr_t)handle, EMU_MEMORY);
}

ENTRY(cuMemRelease, CUmemHandle handle)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT | EMU_ANYWAY, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_memory *memory = memory_of(handle);
	if (memory == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	emu_drop_handle(memory);
	emu_put(&memory->object);
	return CUDA_SUCCESS;
}

ENTRY(cuMemMap, CUdeviceptr address, size_t bytes, size_t offset, CUmemHandle handle, unsigned long long flags)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	if (bytes == 0 || offset != 0 || flags != 0 || !aligned(address) || !aligned(bytes))
		return CUDA_ERROR_INVALID_VALUE;
	struct emu_memory *memory = memory_of(handle);
	if (memory == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	result = bytes <= memory->bytes ? emu_map(address, bytes, memory) : CUDA_ERROR_INVALID_VALUE;
	emu_put(&memory->object);
	return result;
}

ENTRY(cuMemUnmap, CUdeviceptr address, size_t bytes)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT, NULL);
	return result != CUDA_SUCCESS ? result : emu_unmap(address, bytes);
}

ENTRY(cuMemSetAccess, CUdeviceptr address, size_t bytes, const CUmemAccessDesc *descriptions, size_t count)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	if (descriptions == NULL || count == 0 || count > 64)
		return CUDA_ERROR_INVALID_VALUE;
	CUmemAccessDesc found[64];
	for (size_t i = 0; i < count; i++) {
		int gpu = EMU_HOST, flags = descriptions[i].flags;
		if (flags != CU_MEM_ACCESS_NONE && flags != CU_MEM_ACCESS_READ && flags != CU_MEM_ACCESS_READWRITE)
			return CUDA_ERROR_INVALID_VALUE;
		result = find_location(&descriptions[i].location, &gpu);
		if (result != CUDA_SUCCESS)
			return result;
		found[i] = descriptions[i];
		found[i].location.id = gpu;
	}
	return emu_set_access(address, bytes, found, count);
}

ENTRY(cuMemGetAccess, unsigned long long *ret_flags, const CUmemLocation *location, CUdeviceptr address)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_mapping mapping;
	int gpu = EMU_HOST;
	if (ret_flags == NULL || location == NULL || !emu_mapping_at(address, &mapping))
		return CUDA_ERROR_INVALID_VALUE;
	result = find_location(location, &gpu);
	if (result != CUDA_SUCCESS)
		return result;
	if (gpu == EMU_HOST)
		*ret_flags = mapping.host ? CU_MEM_ACCESS_READWRITE : CU_MEM_ACCESS_NONE;
	else if (mapping.writable >> gpu & 1)
		*ret_flags = CU_MEM_ACCESS_READWRITE;
	else
		*ret_flags = mapping.readable >> gpu & 1 ? CU_MEM_ACCESS_READ : CU_MEM_ACCESS_NONE;
	return CUDA_SUCCESS;
}

ENTRY(cuMemGetAllocationGranularity, size_t *ret_bytes, const CUmemAllocationProp *properties, int option)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT, NULL);
	int gpu = EMU_HOST;
	if (result != CUDA_SUCCESS)
		return result;
	if (ret_bytes == NULL || properties == NULL || option < CU_MEM_GRANULARITY_MINIMUM || option > CU_MEM_GRANULARITY_RECOMMENDED)
		return CUDA_ERROR_INVALID_VALUE;
	result = find_location(&properties->location, &gpu);
	if (result == CUDA_SUCCESS)
		*ret_bytes = EMU_GRANULARITY;
	return result;
}

ENTRY(cuMemGetAllocationPropertiesFromHandle, CUmemAllocationProp *ret_properties, CUmemHandle handle)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_memory *memory = memory_of(handle);
	if (memory == NULL || ret_properties == NULL) {
		emu_put(memory != NULL ? &memory->object : NULL);
		return CUDA_ERROR_INVALID_VALUE;
	}
	*ret_properties = memory->properties;
	emu_put(&memory->object);
	return CUDA_SUCCESS;
}

/* Gives out the handle once more. One that the program has released altogether is given out again
 * as long as it is mapped. */
ENTRY(cuMemRetainAllocationHandle, CUmemHandle *ret_handle, void *address)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_memory *memory = ret_handle != NULL ? emu_retain_mapped((uint64_t)(uintptr_t)address) : NULL;
	if (memory == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_handle = (CUmemHandle)(uintptr_t)memory;
	return CUDA_SUCCESS;
}

ENTRY(cuMemExportToShareableHandle, void *ret_shared, CUmemHandle handle, int type, unsigned long long flags)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	if (ret_shared == NULL || flags != 0 || type != CU_MEM_HANDLE_FILE_DESCRIPTOR)
		return CUDA_ERROR_INVALID_VALUE;
	struct emu_memory *memory = memory_of(handle);
	if (memory == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	int file = memory->own_file ? fcntl(memory->file, F_DUPFD_CLOEXEC, 0) : -1;
	emu_put(&memory->object);
	if (file < 0)
		return CUDA_ERROR_INVALID_VALUE;
	*(int *)ret_shared = file;
	return CUDA_SUCCESS;
}

/* The GPU of exported memory is in the name of its file. */
static bool gpu_of_file(int file, int *ret_gpu)
{
	char path[64], name[128];
	snprintf(path, sizeof path, "/proc/self/fd/%d", file);
	ssize_t length = readlink(path, name, sizeof name - 1);
	if (length < 0)
		return false;
	name[length] = '\0';
	const char *at = strstr(name, EMU_SHARED_FILE);
	if (at == NULL)
		return false;
	*ret_gpu = atoi(at + strlen(EMU_SHARED_FILE));
	return *ret_gpu >= EMU_HOST && *ret_gpu < (int)emu_config()->gpu_count;
}

ENTRY(cuMemImportFromShareableHandle, CUmemHandle *ret_handle, void *shared, int type)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	if (ret_handle == NULL || type != CU_MEM_HANDLE_FILE_DESCRIPTOR)
		return CUDA_ERROR_INVALID_VALUE;
	int given = (int)(intptr_t)shared, gpu = EMU_HOST;
	struct stat about;
	if (fstat(given, &about) != 0 || !gpu_of_file(given, &gpu))
		return CUDA_ERROR_INVALID_VALUE;
	int file = fcntl(given, F_DUPFD_CLOEXEC, 0);
	if (file < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	struct emu_memory *memory = NULL;
	result = emu_memory_import(gpu, (uint64_t)about.st_size, file, 0, &memory);
	if (result == CUDA_SUCCESS)
		*ret_handle = (CUmemHandle)(uintptr_t)memory;
	else
		close(file);
	return result;
}
