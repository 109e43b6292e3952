/* A stand-in for libnvidia-ml.so.1, which the test compiles. With OLD it is one of many years ago,
 * with HALF one that lacks what we need. */
#include <stdio.h>

#include "gpu/nvml_abi.h"
#include "unit/gpu/fake/nvml.h"

extern struct fake fake;
struct fake fake;

/* A device is the address of its description. */
static struct fake_gpu *gpu_of(nvml_device device)
{
	return (struct fake_gpu *)device;
}

#define DEFINE(name, ...)      \
	int name(__VA_ARGS__); \
	int name(__VA_ARGS__)
#define UNLESS_FAILING(device)                          \
	do {                                            \
		int code_ = gpu_of(device)->other_code; \
		if (code_ != NVML_OK)                   \
			return code_;                   \
	} while (0)

DEFINE(nvmlInit_v2, void)
{
	fake.inits++;
	return fake.init_code;
}

DEFINE(nvmlShutdown, void)
{
	fake.shutdowns++;
	return NVML_OK;
}

DEFINE(nvmlDeviceGetCount_v2, unsigned *count)
{
	*count = fake.count;
	return fake.count_code;
}

DEFINE(nvmlDeviceGetHandleByIndex_v2, unsigned index, nvml_device *device)
{
	*device = (nvml_device)&fake.gpus[index];
	return fake.gpus[index].uuid == NULL ? NVML_GPU_IS_LOST : NVML_OK;
}

#ifndef HALF
DEFINE(nvmlDeviceGetUUID, nvml_device device, char *text, unsigned size)
{
	snprintf(text, size, "%s", gpu_of(device)->uuid);
	return NVML_OK;
}
#endif

DEFINE(nvmlDeviceGetName, nvml_device device, char *text, unsigned size)
{
	snprintf(text, size, "%s", gpu_of(device)->name);
	return NVML_OK;
}

DEFINE(nvmlDeviceGetMemoryInfo, nvml_device device, struct nvml_memory *memory)
{
	memory->total = gpu_of(device)->total;
	memory->free = gpu_of(device)->free;
	memory->used = memory->total - memory->free;
	return gpu_of(device)->memory_code;
}

#ifdef OLD
DEFINE(nvmlDeviceGetComputeRunningProcesses, nvml_device device, unsigned *count, struct nvml_process_v1 *list)
#else
DEFINE(nvmlDeviceGetComputeRunningProcesses_v3, nvml_device device, unsigned *count, struct nvml_process *list)
#endif
{
	UNLESS_FAILING(device);
	unsigned room = *count;
	*count = gpu_of(device)->processes;
	if (*count > room)
		return NVML_INSUFFICIENT_SIZE;
	for (unsigned i = 0; i < *count; i++) {
		list[i].pid = 1000 + i;
		list[i].memory = i % 3 == 2 ? NVML_UNKNOWN_BYTES : i * 7ULL + 1;
	}
	return NVML_OK;
}

#ifndef OLD
const char *nvmlErrorString(int code);
const char *nvmlErrorString(int code)
{
	return code == NVML_GPU_IS_LOST ? "GPU is lost" : code == NVML_DRIVER_NOT_LOADED ? "Driver Not Loaded" : "Something Else";
}

DEFINE(nvmlSystemGetDriverVersion, char *text, unsigned size)
{
	snprintf(text, size, "555.55");
	return NVML_OK;
}

DEFINE(nvmlDeviceGetPciInfo_v3, nvml_device device, struct nvml_pci *pci)
{
	*pci = (struct nvml_pci){.domain = 0xfffe, .bus = (unsigned)gpu_of(device)->bus, .device = 3};
	return NVML_OK;
}

DEFINE(nvmlDeviceGetMigMode, nvml_device device, unsigned *now, unsigned *next)
{
	*now = *next = gpu_of(device)->mig;
	return gpu_of(device)->other_code;
}

DEFINE(nvmlDeviceGetP2PStatus, nvml_device a, nvml_device b, int index, int *status)
{
	int works = index == NVML_P2P_OVER_NVLINK && (gpu_of(a)->nvlink & gpu_of(b)->nvlink) != 0;
	*status = works ? NVML_P2P_WORKS : 1;
	return NVML_OK;
}

DEFINE(nvmlDeviceGetTopologyCommonAncestor, nvml_device a, nvml_device b, int *level)
{
	*level = gpu_of(a)->node == gpu_of(b)->node ? 40 : 50;
	return NVML_OK;
}

DEFINE(nvmlDeviceGetMemoryInfo_v2, nvml_device device, struct nvml_memory_v2 *memory)
{
	if (memory->version != NVML_MEMORY_V2)
		return 25;
	memory->total = gpu_of(device)->total;
	memory->free = gpu_of(device)->free;
	memory->reserved = gpu_of(device)->reserved;
	memory->used = memory->total - memory->free - memory->reserved;
	return gpu_of(device)->memory_code;
}

DEFINE(nvmlDeviceGetUtilizationRates, nvml_device device, struct nvml_utilisation *rate)
{
	*rate = (struct nvml_utilisation){.gpu = 87, .memory = 43};
	return gpu_of(device)->other_code;
}

DEFINE(nvmlDeviceGetPowerUsage, nvml_device device, unsigned *mw)
{
	*mw = 312345;
	return gpu_of(device)->other_code;
}

DEFINE(nvmlDeviceGetTotalEnergyConsumption, nvml_device device, unsigned long long *mj)
{
	*mj = 5000000000ULL;
	return gpu_of(device)->other_code;
}

DEFINE(nvmlDeviceGetTemperature, nvml_device device, int sensor, unsigned *celsius)
{
	*celsius = sensor == NVML_SENSOR_GPU ? 64 : 0;
	return gpu_of(device)->other_code;
}

DEFINE(nvmlDeviceGetClockInfo, nvml_device device, int clock, unsigned *mhz)
{
	*mhz = clock == NVML_CLOCK_SM ? 1410 : clock == NVML_CLOCK_MEMORY ? 1593 : 0;
	return gpu_of(device)->other_code;
}

DEFINE(nvmlEventSetCreate, nvml_event_set *set)
{
	*set = (nvml_event_set)&fake;
	return NVML_OK;
}

DEFINE(nvmlEventSetFree, nvml_event_set set)
{
	(void)set;
	return NVML_OK;
}

DEFINE(nvmlDeviceRegisterEvents, nvml_device device, unsigned long long types, nvml_event_set set)
{
	(void)set;
	gpu_of(device)->watched = types == NVML_EVENT_XID;
	return gpu_of(device)->other_code;
}

DEFINE(nvmlEventSetWait_v2, nvml_event_set set, struct nvml_event *event, unsigned ms)
{
	(void)set;
	if (fake.xid == 0 || !fake.gpus[fake.xid_gpu].watched || ms != 0)
		return NVML_TIMEOUT;
	nvml_device device = NULL;
	nvmlDeviceGetHandleByIndex_v2(fake.xid_gpu, &device);
	*event = (struct nvml_event){.device = device, .type = NVML_EVENT_XID, .data = fake.xid};
	fake.xid = 0;
	return NVML_OK;
}

DEFINE(nvmlDeviceGetTotalEccErrors, nvml_device device, int type, int since, unsigned long long *count)
{
	*count = since != NVML_ECC_SINCE_LOADED ? 99 : type == NVML_ECC_CORRECTED ? 12 : 3;
	return gpu_of(device)->other_code;
}
#endif
