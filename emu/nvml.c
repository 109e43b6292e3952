/* The emulated libnvidia-ml.so.1: what the agent and common tools ask of the management library,
 * answered from the settings and the shared file. It does not look at CUDA_VISIBLE_DEVICES, as
 * the real one does not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "clock.h"
#include "config.h"
#include "engine.h"
#include "faults.h"
#include "gpu/nvml_abi.h"
#include "shared.h"

#define API __attribute__((visibility("default")))
#define ENTRY(name, ...)           \
	API int name(__VA_ARGS__); \
	int name(__VA_ARGS__)

/* Codes that only the library itself needs. */
enum { UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_FOUND = 6, UNKNOWN = 999 };

enum { VERSION = 13000, IDLE_MW = 60000, BUSY_MW = 500000, IDLE_C = 30, BUSY_C = 40 };

struct nvml_device {
	char unused;
};
static struct nvml_device devices[EMU_GPUS_MAX];
static atomic_int users; /* of nvmlInit */

/* Faults of the library as a whole ("nvml"), of what is asked of one GPU ("nvml.2"),
 * and a GPU that is lost. */
static int look_at(unsigned gpu)
{
	char entry[16];
	snprintf(entry, sizeof entry, "nvml.%u", gpu);
	int code = emu_fault_at("nvml");
	if (code == NVML_OK)
		code = emu_fault_at(entry);
	return code == NVML_OK && atomic_load(&emu_state()->engines[gpu].lost) ? NVML_GPU_IS_LOST : code;
}

/* The GPU of a handle, or why it cannot be asked. */
static int enter(nvml_device device, unsigned *ret_gpu)
{
	if (atomic_load(&users) == 0)
		return UNINITIALIZED;
	if (device < devices || device >= devices + emu_config()->gpu_count)
		return INVALID_ARGUMENT;
	*ret_gpu = (unsigned)(device - devices);
	return look_at(*ret_gpu);
}

static int write_text(char *place, unsigned size, const char *text)
{
	if (place == NULL)
		return INVALID_ARGUMENT;
	return (size_t)snprintf(place, size, "%s", text) < size ? NVML_OK : NVML_INSUFFICIENT_SIZE;
}

static int start(void)
{
	if (emu_config()->problem[0] != '\0' || emu_state() == NULL)
		return NVML_DRIVER_NOT_LOADED;
	int code = emu_fault_at("nvml");
	if (code == NVML_OK)
		atomic_fetch_add(&users, 1);
	return code;
}

ENTRY(nvmlInit_v2, void)
{
	return start();
}

ENTRY(nvmlInit, void)
{
	return start();
}

ENTRY(nvmlInitWithFlags, unsigned flags)
{
	(void)flags;
	return start();
}

ENTRY(nvmlShutdown, void)
{
	int before = atomic_load(&users);
	while (before > 0)
		if (atomic_compare_exchange_weak(&users, &before, before - 1))
			return NVML_OK;
	return UNINITIALIZED;
}

API const char *nvmlErrorString(int code);
const char *nvmlErrorString(int code)
{
	switch (code) {
	case NVML_OK:
		return "success";
	case UNINITIALIZED:
		return "the library is not initialised";
	case INVALID_ARGUMENT:
		return "bad argument";
	case NVML_NOT_SUPPORTED:
		return "not available on this GPU";
	case NOT_FOUND:
		return "no such thing";
	case NVML_INSUFFICIENT_SIZE:
		return "too little room";
	case NVML_DRIVER_NOT_LOADED:
		return "no driver";
	case NVML_GPU_IS_LOST:
		return "the GPU is lost";
	default:
		return "unknown error";
	}
}

ENTRY(nvmlSystemGetDriverVersion, char *text, unsigned size)
{
	return atomic_load(&users) > 0 ? write_text(text, size, "580.0 (emulated)") : UNINITIALIZED;
}

ENTRY(nvmlSystemGetNVMLVersion, char *text, unsigned size)
{
	return atomic_load(&users) > 0 ? write_text(text, size, "13.580.0") : UNINITIALIZED;
}

ENTRY(nvmlSystemGetCudaDriverVersion_v2, int *ret_version)
{
	if (ret_version == NULL)
		return INVALID_ARGUMENT;
	*ret_version = VERSION;
	return NVML_OK;
}

ENTRY(nvmlSystemGetCudaDriverVersion, int *ret_version)
{
	return nvmlSystemGetCudaDriverVersion_v2(ret_version);
}

ENTRY(nvmlDeviceGetCount_v2, unsigned *ret_count)
{
	if (atomic_load(&users) == 0)
		return UNINITIALIZED;
	if (ret_count == NULL)
		return INVALID_ARGUMENT;
	*ret_count = emu_config()->gpu_count;
	return NVML_OK;
}

ENTRY(nvmlDeviceGetCount, unsigned *ret_count)
{
	return nvmlDeviceGetCount_v2(ret_count);
}

ENTRY(nvmlDeviceGetHandleByIndex_v2, unsigned index, nvml_device *ret_device)
{
	if (atomic_load(&users) == 0)
		return UNINITIALIZED;
	if (ret_device == NULL || index >= emu_config()->gpu_count)
		return INVALID_ARGUMENT;
	*ret_device = &devices[index];
	return look_at(index);
}

ENTRY(nvmlDeviceGetHandleByIndex, unsigned index, nvml_device *ret_device)
{
	return nvmlDeviceGetHandleByIndex_v2(index, ret_device);
}

ENTRY(nvmlDeviceGetHandleByUUID, const char *uuid, nvml_device *ret_device)
{
	if (atomic_load(&users) == 0)
		return UNINITIALIZED;
	for (unsigned i = 0; uuid != NULL && ret_device != NULL && i < emu_config()->gpu_count; i++)
		if (strcmp(emu_config()->gpus[i].uuid, uuid) == 0)
			return nvmlDeviceGetHandleByIndex_v2(i, ret_device);
	return uuid != NULL && ret_device != NULL ? NOT_FOUND : INVALID_ARGUMENT;
}

static void bus_id(unsigned gpu, char *text, size_t size)
{
	snprintf(text, size, "00000000:%02X:00.0", gpu + 1);
}

ENTRY(nvmlDeviceGetHandleByPciBusId_v2, const char *id, nvml_device *ret_device)
{
	if (atomic_load(&users) == 0)
		return UNINITIALIZED;
	for (unsigned i = 0; id != NULL && ret_device != NULL && i < emu_config()->gpu_count; i++) {
		char own[32];
		bus_id(i, own, sizeof own);
		/* With eight digits of domain or with four. */
		if (strcasecmp(own, id) == 0 || strcasecmp(own + 4, id) == 0)
			return nvmlDeviceGetHandleByIndex_v2(i, ret_device);
	}
	return id != NULL && ret_device != NULL ? NOT_FOUND : INVALID_ARGUMENT;
}

ENTRY(nvmlDeviceGetIndex, nvml_device device, unsigned *ret_index)
{
	unsigned gpu = 0;
	int code = enter(device, &gpu);
	if (code == NVML_OK && ret_index == NULL)
		code = INVALID_ARGUMENT;
	if (code == NVML_OK)
		*ret_index = gpu;
	return code;
}

ENTRY(nvmlDeviceGetMinorNumber, nvml_device device, unsigned *ret_number)
{
	return nvmlDeviceGetIndex(device, ret_number);
}

ENTRY(nvmlDeviceGetName, nvml_device device, char *text, unsigned size)
{
	unsigned gpu = 0;
	int code = enter(device, &gpu);
	return code == NVML_OK ? write_text(text, size, emu_config()->gpus[gpu].name) : code;
}

ENTRY(nvmlDeviceGetUUID, nvml_device device, char *text, unsigned size)
{
	unsigned gpu = 0;
	int code = enter(device, &gpu);
	return code == NVML_OK ? write_text(text, size, emu_config()->gpus[gpu].uuid) : code;
}

ENTRY(nvmlDeviceGetPciInfo_v3, nvml_device device, struct nvml_pci *ret_pci)
{
	unsigned gpu = 0;
	int code = enter(device, &gpu);
	if (code == NVML_OK && ret_pci == NULL)
		code = INVALID_ARGUMENT;
	if (code != NVML_OK)
		return code;
	*ret_pci = (struct nvml_pci){.bus = gpu + 1};
	bus_id(gpu, ret_pci->id, sizeof ret_pci->id);
	snprintf(ret_pci->short_id, sizeof ret_pci->short_id, "%s", ret_pci->id + 4);
	return NVML_OK;
}

ENTRY(nvmlDeviceGetPciInfo, nvml_device device, struct nvml_pci *ret_pci)
{
	return nvmlDeviceGetPciInfo_v3(device, ret_pci);
}

ENTRY(nvmlDeviceGetPciInfo_v2, nvml_device device, struct nvml_pci *ret_pci)
{
	return nvmlDeviceGetPciInfo_v3(device, ret_pci);
}

ENTRY(nvmlDeviceGetMemoryInfo, nvml_device device, struct nvml_memory *ret_memory)
{
	unsigned gpu = 0;
	int code = enter(device, &gpu);
	if (code == NVML_OK && ret_memory == NULL)
		code = INVALID_ARGUMENT;
	if (code != NVML_OK)
		return code;
	uint64_t total = emu_config()->gpus[gpu].memory_bytes, used = emu_memory_used(gpu);
	*ret_memory = (struct nvml_memory){.total = total, .used = used, .free = used < total ? total - used : 0};
	return NVML_OK;
}

ENTRY(nvmlDeviceGetMemoryInfo_v2, nvml_device device, struct nvml_memory_v2 *ret_memory)
{
	struct nvml_memory memory;
	if (ret_memory == NULL || ret_memory->version != NVML_MEMORY_V2)
		return INVALID_ARGUMENT;
	int code = nvmlDeviceGetMemoryInfo(device, &memory);
	if (code == NVML_OK)
		*ret_memory = (struct nvml_memory_v2){
			.version = NVML_MEMORY_V2, .total = memory.total, .free = memory.free, .used = memory.used, .reserved = 0};
	return code;
}

ENTRY(nvmlDeviceGetUtilizationRates, nvml_device device, struct nvml_utilisation *ret_rates)
{
	unsigned gpu = 0;
	int code = enter(device, &gpu);
	if (code == NVML_OK && ret_rates == NULL)
		code = INVALID_ARGUMENT;
	if (code != NVML_OK)
		return code;
	unsigned percent = (emu_engine_busy_milli(gpu) + 5) / 10;
	*ret_rates = (struct nvml_utilisation){.gpu = percent, .memory = percent / 2};
	return NVML_OK;
}

/* Power and temperature follow the load: a line from idle to busy. */
static int by_load(nvml_device device, unsigned idle, unsigned busy, unsigned *ret_value)
{
	unsigned gpu = 0;
	int code = enter(device, &gpu);
	if (code == NVML_OK && ret_value == NULL)
		code = INVALID_ARGUMENT;
	if (code == NVML_OK)
		*ret_value = idle + (unsigned)((uint64_t)busy * emu_engine_busy_milli(gpu) / 1000);
	return code;
}

ENTRY(nvmlDeviceGetPowerUsage, nvml_device device, unsigned *ret_mw)
{
	return by_load(device, IDLE_MW, BUSY_MW, ret_mw);
}

ENTRY(nvmlDeviceGetTemperature, nvml_device device, int sensor, unsigned *ret_celsius)
{
	return sensor == NVML_SENSOR_GPU ? by_load(device, IDLE_C, BUSY_C, ret_celsius) : INVALID_ARGUMENT;
}

/* Idle power since the machine started, and what the work of all processes so far took on top. */
ENTRY(nvmlDeviceGetTotalEnergyConsumption, nvml_device device, unsigned long long *ret_mj)
{
	unsigned gpu = 0;
	int code = enter(device, &gpu);
	if (code == NVML_OK && ret_mj == NULL)
		code = INVALID_ARGUMENT;
	if (code != NVML_OK)
		return code;
	*ret_mj = emu_now() / 1000000ULL * IDLE_MW / 1000 + emu_engine_busy_total_ns(gpu) / 1000000ULL * BUSY_MW / 1000;
	return NVML_OK;
}

ENTRY(nvmlDeviceGetEnforcedPowerLimit, nvml_device device, unsigned *ret_mw)
{
	unsigned gpu = 0;
	int code = enter(device, &gpu);
	if (code == NVML_OK && ret_mw != NULL)
		*ret_mw = 700000;
	return ret_mw != NULL ? code : INVALID_ARGUMENT;
}

ENTRY(nvmlDeviceGetClockInfo, nvml_device device, int clock, unsigned *ret_mhz)
{
	unsigned gpu = 0;
	int code = enter(device, &gpu);
	if (ret_mhz == NULL || clock < 0 || clock > 3)
		return INVALID_ARGUMENT;
	if (code == NVML_OK)
		*ret_mhz = clock == NVML_CLOCK_MEMORY ? 2619 : 1980;
	return code;
}

ENTRY(nvmlDeviceGetMaxClockInfo, nvml_device device, int clock, unsigned *ret_mhz)
{
	return nvmlDeviceGetClockInfo(device, clock, ret_mhz);
}

ENTRY(nvmlDeviceGetTotalEccErrors, nvml_device device, int type, int since, unsigned long long *ret_count)
{
	unsigned gpu = 0;
	int code = enter(device, &gpu);
	(void)since;
	if (ret_count == NULL || type < 0 || type > 1)
		return INVALID_ARGUMENT;
	if (code == NVML_OK)
		*ret_count = 0;
	return code;
}

/* Errors that GPUs report: each fault at "xid.2" is one of GPU 2, and its error the number. */
struct nvml_event_set {
	unsigned long long gpus;
};

ENTRY(nvmlEventSetCreate, nvml_event_set *ret_set)
{
	if (ret_set == NULL)
		return INVALID_ARGUMENT;
	*ret_set = calloc(1, sizeof **ret_set);
	return *ret_set != NULL ? NVML_OK : UNKNOWN;
}

ENTRY(nvmlEventSetFree, nvml_event_set set)
{
	free(set);
	return NVML_OK;
}

ENTRY(nvmlDeviceRegisterEvents, nvml_device device, unsigned long long types, nvml_event_set set)
{
	unsigned gpu = 0;
	int code = enter(device, &gpu);
	if (set == NULL)
		return INVALID_ARGUMENT;
	if (code == NVML_OK && (types & NVML_EVENT_XID) != 0)
		set->gpus |= 1ULL << gpu;
	return code;
}

ENTRY(nvmlEventSetWait_v2, nvml_event_set set, struct nvml_event *ret_event, unsigned ms)
{
	(void)ms;
	if (set == NULL || ret_event == NULL)
		return INVALID_ARGUMENT;
	for (unsigned gpu = 0; gpu < emu_config()->gpu_count; gpu++) {
		char entry[16];
		snprintf(entry, sizeof entry, "xid.%u", gpu);
		int xid = (set->gpus >> gpu & 1) != 0 ? emu_fault_at(entry) : 0;
		if (xid == 0)
			continue;
		*ret_event = (struct nvml_event){.device = &devices[gpu], .type = NVML_EVENT_XID, .data = (unsigned long long)xid};
		return NVML_OK;
	}
	return NVML_TIMEOUT;
}

ENTRY(nvmlDeviceGetMigMode, nvml_device device, unsigned *ret_now, unsigned *ret_next)
{
	unsigned gpu = 0;
	int code = enter(device, &gpu);
	(void)ret_now;
	(void)ret_next;
	return code == NVML_OK ? NVML_NOT_SUPPORTED : code;
}

ENTRY(nvmlDeviceGetCudaComputeCapability, nvml_device device, int *ret_major, int *ret_minor)
{
	unsigned gpu = 0;
	int code = enter(device, &gpu);
	if (ret_major == NULL || ret_minor == NULL)
		return INVALID_ARGUMENT;
	if (code == NVML_OK) {
		*ret_major = 9;
		*ret_minor = 0;
	}
	return code;
}

ENTRY(nvmlDeviceGetComputeMode, nvml_device device, int *ret_mode)
{
	unsigned gpu = 0;
	int code = enter(device, &gpu);
	if (code == NVML_OK && ret_mode != NULL)
		*ret_mode = 0;
	return ret_mode != NULL ? code : INVALID_ARGUMENT;
}

/* All GPUs reach each other by a fast link and stand on one board. */
ENTRY(nvmlDeviceGetP2PStatus, nvml_device a, nvml_device b, int index, int *ret_status)
{
	unsigned gpu = 0;
	int code = enter(a, &gpu);
	if (code == NVML_OK)
		code = enter(b, &gpu);
	(void)index;
	if (code == NVML_OK && ret_status != NULL)
		*ret_status = NVML_P2P_WORKS;
	return ret_status != NULL ? code : INVALID_ARGUMENT;
}

ENTRY(nvmlDeviceGetTopologyCommonAncestor, nvml_device a, nvml_device b, int *ret_level)
{
	unsigned gpu = 0;
	int code = enter(a, &gpu);
	if (code == NVML_OK)
		code = enter(b, &gpu);
	if (code == NVML_OK && ret_level != NULL)
		*ret_level = 10;
	return ret_level != NULL ? code : INVALID_ARGUMENT;
}

/* Processes: `*count` is the room, and then how many there are; too little room is an error that
 * says how much is needed. */
static int list_processes(nvml_device device, unsigned *count, void *place, bool old)
{
	unsigned gpu = 0;
	int code = enter(device, &gpu);
	if (code != NVML_OK)
		return code;
	if (count == NULL || (*count > 0 && place == NULL))
		return INVALID_ARGUMENT;
	static struct emu_process found[EMU_SLOTS];
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_mutex_lock(&lock);
	unsigned room = *count, there = emu_config()->pids != EMU_PIDS_NONE ? emu_processes(gpu, found, EMU_SLOTS) : 0;
	/* Beyond all that the kernel gives. */
	for (unsigned i = 0; i < there && emu_config()->pids == EMU_PIDS_FOREIGN; i++)
		found[i].pid += 1 << 24;
	*count = there;
	for (unsigned i = 0; i < there && there <= room; i++) {
		if (old)
			((struct nvml_process_v1 *)place)[i] = (struct nvml_process_v1){(unsigned)found[i].pid, found[i].bytes};
		else
			((struct nvml_process *)place)[i] = (struct nvml_process){(unsigned)found[i].pid, found[i].bytes, ~0U, ~0U};
	}
	pthread_mutex_unlock(&lock);
	return there <= room ? NVML_OK : NVML_INSUFFICIENT_SIZE;
}

ENTRY(nvmlDeviceGetComputeRunningProcesses_v3, nvml_device device, unsigned *count, struct nvml_process *place)
{
	return list_processes(device, count, place, false);
}

ENTRY(nvmlDeviceGetComputeRunningProcesses_v2, nvml_device device, unsigned *count, struct nvml_process *place)
{
	return list_processes(device, count, place, false);
}

ENTRY(nvmlDeviceGetComputeRunningProcesses, nvml_device device, unsigned *count, struct nvml_process_v1 *place)
{
	return list_processes(device, count, place, true);
}

ENTRY(nvmlDeviceGetGraphicsRunningProcesses_v3, nvml_device device, unsigned *count, struct nvml_process *place)
{
	unsigned gpu = 0;
	int code = enter(device, &gpu);
	(void)place;
	if (code == NVML_OK && count != NULL)
		*count = 0;
	return count != NULL ? code : INVALID_ARGUMENT;
}
