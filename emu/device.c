/* What devices say of themselves. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "context.h"
#include "memory.h"
#include "names.h"
#include "shared.h"

static const struct emu_gpu_config *config_of(CUdevice device)
{
	int gpu = emu_device_gpu(device);
	return gpu >= 0 ? &emu_config()->gpus[emu_place((unsigned)gpu)] : NULL;
}

ENTRY(cuDriverGetVersion, int *ret_version)
{
	if (ret_version == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_version = EMU_VERSION;
	return CUDA_SUCCESS;
}

ENTRY(cuDeviceGetCount, int *ret_count)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT | EMU_ANYWAY, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	if (ret_count == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_count = emu_device_count();
	return CUDA_SUCCESS;
}

ENTRY(cuDeviceGet, CUdevice *ret_device, int ordinal)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT | EMU_ANYWAY, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	if (ret_device == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (config_of(ordinal) == NULL)
		return CUDA_ERROR_INVALID_DEVICE;
	*ret_device = ordinal;
	return CUDA_SUCCESS;
}

ENTRY(cuDeviceGetName, char *ret_name, int size, CUdevice device)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT | EMU_ANYWAY, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	const struct emu_gpu_config *config = config_of(device);
	if (config == NULL)
		return CUDA_ERROR_INVALID_DEVICE;
	if (ret_name == NULL || size <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	snprintf(ret_name, (size_t)size, "%s", config->name);
	return CUDA_SUCCESS;
}

void emu_uuid(unsigned gpu, CUuuid *ret_uuid)
{
	const char *text = emu_config()->gpus[gpu].uuid;
	unsigned digits = 0;
	memset(ret_uuid, 0, sizeof *ret_uuid);
	for (const char *at = text + strcspn(text, "-"); *at != '\0' && digits < 32; at++) {
		const char *found = *at != '-' ? strchr("0123456789abcdef", *at) : NULL;
		if (found == NULL)
			continue;
		unsigned value = (unsigned)(found - "0123456789abcdef");
		ret_uuid->bytes[digits / 2] |= (unsigned char)(digits % 2 == 0 ? value << 4 : value);
		digits++;
	}
}

static CUresult get_uuid(const char *entry, CUuuid *ret_uuid, CUdevice device)
{
	CUresult result = emu_enter(entry, EMU_NO_CONTEXT | EMU_ANYWAY, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	if (config_of(device) == NULL)
		return CUDA_ERROR_INVALID_DEVICE;
	if (ret_uuid == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	emu_uuid(emu_place((unsigned)emu_device_gpu(device)), ret_uuid);
	return CUDA_SUCCESS;
}

ENTRY(cuDeviceGetUuid, CUuuid *ret_uuid, CUdevice device)
{
	return get_uuid(__func__, ret_uuid, device);
}

ENTRY(cuDeviceGetUuid_v2, CUuuid *ret_uuid, CUdevice device)
{
	return get_uuid(__func__, ret_uuid, device);
}

ENTRY(cuDeviceTotalMem_v2, size_t *ret_bytes, CUdevice device)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT | EMU_ANYWAY, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	const struct emu_gpu_config *config = config_of(device);
	if (config == NULL)
		return CUDA_ERROR_INVALID_DEVICE;
	if (ret_bytes == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_bytes = config->memory_bytes;
	return CUDA_SUCCESS;
}

/* What is not listed is 0: not supported, or none. */
static const struct {
	int attribute, value;
} fixed[] = {
	{1, 1024}, /* threads of a block */
	{2, 1024}, /* its extents */
	{3, 1024},
	{4, 64},
	{5, 2147483647}, /* those of a grid */
	{6, 65535},
	{7, 65535},
	{8, 49152},	  /* shared memory of a block */
	{9, 65536},	  /* constant memory */
	{10, 32},	  /* threads of a warp */
	{11, 2147483647}, /* pitch */
	{12, 65536},	  /* registers of a block */
	{13, 1980000},	  /* kHz */
	{14, 512},	  /* alignment of textures */
	{15, 1},	  /* copies and kernels at once */
	{19, 1},	  /* maps host memory */
	{31, 1},	  /* kernels at once */
	{34, 0},
	{36, 2619000},	/* kHz of the memory */
	{37, 5120},	/* bits of its bus */
	{38, 52428800}, /* L2 cache */
	{39, 2048},	/* threads of a multiprocessor */
	{40, 3},	/* copy engines */
	{CU_DEVICE_UNIFIED_ADDRESSING, 1},
	{50, 0},
	{51, 32},
	{CU_DEVICE_CAPABILITY_MAJOR, 9},
	{CU_DEVICE_CAPABILITY_MINOR, 0},
	{78, 1},      /* priorities of streams */
	{81, 233472}, /* shared memory of a multiprocessor */
	{82, 65536},
	{83, 1}, /* managed memory */
	{89, 1},
	{90, 1}, /* preemption */
	{91, 1}, /* registered memory at the same address */
	{95, 1}, /* cooperative launch */
	{97, 232448},
	{99, 1}, /* registers host memory */
	{CU_DEVICE_VMM_SUPPORTED, 1},
	{103, 1},  /* memory exported as file descriptors */
	{106, 32}, /* blocks of a multiprocessor */
	{CU_DEVICE_POOLS_SUPPORTED, 1},
	{129, 1},
	{141, 1}, /* host memory mapped by hand, of a NUMA node or any */
	{145, 1},
};

ENTRY(cuDeviceGetAttribute, int *ret_value, int attribute, CUdevice device)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT | EMU_ANYWAY, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	const struct emu_gpu_config *config = config_of(device);
	if (config == NULL)
		return CUDA_ERROR_INVALID_DEVICE;
	if (ret_value == NULL || attribute < 1 || attribute > 147)
		return CUDA_ERROR_INVALID_VALUE;
	int value = 0;
	for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
		if (fixed[i].attribute == attribute)
			value = fixed[i].value;
	if (attribute == CU_DEVICE_MULTIPROCESSORS)
		value = (int)config->multiprocessors;
	else if (attribute == CU_DEVICE_PCI_BUS)
		value = emu_device_gpu(device) + 1;
	*ret_value = value;
	return CUDA_SUCCESS;
}

ENTRY(cuDeviceComputeCapability, int *ret_major, int *ret_minor, CUdevice device)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT | EMU_ANYWAY, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	if (config_of(device) == NULL)
		return CUDA_ERROR_INVALID_DEVICE;
	if (ret_major == NULL || ret_minor == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_major = 9;
	*ret_minor = 0;
	return CUDA_SUCCESS;
}

ENTRY(cuDeviceGetPCIBusId, char *ret_id, int size, CUdevice device)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT | EMU_ANYWAY, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	if (config_of(device) == NULL)
		return CUDA_ERROR_INVALID_DEVICE;
	if (ret_id == NULL || size < 13)
		return CUDA_ERROR_INVALID_VALUE;
	snprintf(ret_id, (size_t)size, "0000:%02x:00.0", (unsigned)emu_device_gpu(device) + 1);
	return CUDA_SUCCESS;
}

ENTRY(cuDeviceGetByPCIBusId, CUdevice *ret_device, const char *id)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT | EMU_ANYWAY, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	if (ret_device == NULL || id == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	const char *bus = strchr(id, ':');
	int found = bus != NULL ? emu_gpu_device((int)strtol(bus + 1, NULL, 16) - 1) : -1;
	if (found < 0)
		return CUDA_ERROR_INVALID_DEVICE;
	*ret_device = found;
	return CUDA_SUCCESS;
}

/* Any two GPUs reach each other. */
ENTRY(cuDeviceCanAccessPeer, int *ret_can, CUdevice device, CUdevice peer)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT | EMU_ANYWAY, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	if (config_of(device) == NULL || config_of(peer) == NULL)
		return CUDA_ERROR_INVALID_DEVICE;
	if (ret_can == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_can = device != peer;
	return CUDA_SUCCESS;
}

static CUresult set_peer(const char *entry, CUcontext handle, bool allowed)
{
	struct emu_context *context = NULL;
	CUresult result = emu_enter(entry, 0, &context);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_context *peer = emu_context_of(handle);
	if (peer == NULL || peer == context)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (emu_peer_get(context->gpu, peer->gpu) == allowed)
		return allowed ? CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
	emu_peer_set(context->gpu, peer->gpu, allowed);
	return CUDA_SUCCESS;
}

ENTRY(cuCtxEnablePeerAccess, CUcontext peer, unsigned flags)
{
	return flags == 0 ? set_peer(__func__, peer, true) : CUDA_ERROR_INVALID_VALUE;
}

ENTRY(cuCtxDisablePeerAccess, CUcontext peer)
{
	return set_peer(__func__, peer, false);
}
