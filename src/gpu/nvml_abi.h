/* The part of NVIDIA's management library that we call, in our own words: its binary interface,
 * which NVIDIA keeps stable. Nothing of theirs is needed to build. Of nvml.c, the emulated library
 * (emu) and the tests' stand-in for it only.
 */
#ifndef SW_GPU_NVML_ABI_H
#define SW_GPU_NVML_ABI_H

enum {
	NVML_OK = 0,
	NVML_NOT_SUPPORTED = 3,
	NVML_NO_PERMISSION = 4,
	NVML_INSUFFICIENT_SIZE = 7,
	NVML_DRIVER_NOT_LOADED = 9,
	NVML_TIMEOUT = 10,
	NVML_GPU_IS_LOST = 15,
};

enum {
	NVML_SENSOR_GPU = 0,
	NVML_CLOCK_SM = 1,
	NVML_CLOCK_MEMORY = 2,
	NVML_ECC_CORRECTED = 0,
	NVML_ECC_UNCORRECTED = 1,
	NVML_ECC_SINCE_LOADED = 0,
	NVML_P2P_OVER_NVLINK = 2,
	NVML_P2P_WORKS = 0,
	NVML_TOPOLOGY_SAME_NODE = 40, /* and all that is nearer is less */
	NVML_NAME_SIZE = 96,
};

/* In place of an amount that is not known. */
#define NVML_UNKNOWN_BYTES (~0ULL)

typedef struct nvml_device *nvml_device;

struct nvml_pci {
	char short_id[16];
	unsigned domain, bus, device, ids, subsystem_ids;
	char id[32];
};

struct nvml_utilisation {
	unsigned gpu, memory; /* percent */
};

struct nvml_memory {
	unsigned long long total, free, used; /* used with reserved */
};

struct nvml_memory_v2 {
	unsigned version;
	unsigned long long total, reserved, free, used; /* used without reserved */
};
#define NVML_MEMORY_V2 ((unsigned)sizeof(struct nvml_memory_v2) | 2u << 24)

/* Of the oldest call for processes, and of its successors. */
struct nvml_process_v1 {
	unsigned pid;
	unsigned long long memory;
};
struct nvml_process {
	unsigned pid;
	unsigned long long memory;
	unsigned gpu_instance, compute_instance;
};

/* What happened to a GPU: here only its errors by number (Xid). */
#define NVML_EVENT_XID 8ULL
typedef struct nvml_event_set *nvml_event_set;
struct nvml_event {
	nvml_device device;
	unsigned long long type, data; /* the number of the error */
	unsigned gpu_instance, compute_instance;
};

/* X(member, symbol, whether we cannot do without it, arguments). Every function returns
 * one of the codes above. */
#define NVML_FUNCTIONS(X)                                                                                                                  \
	X(init, "nvmlInit_v2", true, (void))                                                                                               \
	X(shutdown, "nvmlShutdown", true, (void))                                                                                          \
	X(driver_version, "nvmlSystemGetDriverVersion", false, (char *text, unsigned size))                                                \
	X(count, "nvmlDeviceGetCount_v2", true, (unsigned *count))                                                                         \
	X(device, "nvmlDeviceGetHandleByIndex_v2", true, (unsigned index, nvml_device *device))                                            \
	X(uuid, "nvmlDeviceGetUUID", true, (nvml_device device, char *text, unsigned size))                                                \
	X(name, "nvmlDeviceGetName", true, (nvml_device device, char *text, unsigned size))                                                \
	X(pci, "nvmlDeviceGetPciInfo_v3", false, (nvml_device device, struct nvml_pci * pci))                                              \
	X(mig_mode, "nvmlDeviceGetMigMode", false, (nvml_device device, unsigned *now, unsigned *next))                                    \
	X(p2p, "nvmlDeviceGetP2PStatus", false, (nvml_device a, nvml_device b, int index, int *status))                                    \
	X(ancestor, "nvmlDeviceGetTopologyCommonAncestor", false, (nvml_device a, nvml_device b, int *level))                              \
	X(memory, "nvmlDeviceGetMemoryInfo", true, (nvml_device device, struct nvml_memory * memory))                                      \
	X(memory_v2, "nvmlDeviceGetMemoryInfo_v2", false, (nvml_device device, struct nvml_memory_v2 * memory))                            \
	X(utilisation, "nvmlDeviceGetUtilizationRates", false, (nvml_device device, struct nvml_utilisation * rate))                       \
	X(power, "nvmlDeviceGetPowerUsage", false, (nvml_device device, unsigned *mw))                                                     \
	X(energy, "nvmlDeviceGetTotalEnergyConsumption", false, (nvml_device device, unsigned long long *mj))                              \
	X(temperature, "nvmlDeviceGetTemperature", false, (nvml_device device, int sensor, unsigned *celsius))                             \
	X(clock, "nvmlDeviceGetClockInfo", false, (nvml_device device, int clock, unsigned *mhz))                                          \
	X(ecc, "nvmlDeviceGetTotalEccErrors", false, (nvml_device device, int type, int since, unsigned long long *count))                 \
	X(processes, "nvmlDeviceGetComputeRunningProcesses_v3", false, (nvml_device device, unsigned *count, struct nvml_process *list))   \
	X(processes_v2, "nvmlDeviceGetComputeRunningProcesses_v2", false,                                                                  \
	  (nvml_device device, unsigned *count, struct nvml_process *list))                                                                \
	X(processes_v1, "nvmlDeviceGetComputeRunningProcesses", false,                                                                     \
	  (nvml_device device, unsigned *count, struct nvml_process_v1 *list))                                                             \
	X(drawing, "nvmlDeviceGetGraphicsRunningProcesses_v3", false, (nvml_device device, unsigned *count, struct nvml_process *list))    \
	X(drawing_v2, "nvmlDeviceGetGraphicsRunningProcesses_v2", false, (nvml_device device, unsigned *count, struct nvml_process *list)) \
	X(drawing_v1, "nvmlDeviceGetGraphicsRunningProcesses", false, (nvml_device device, unsigned *count, struct nvml_process_v1 *list)) \
	X(mps, "nvmlDeviceGetMPSComputeRunningProcesses_v3", false, (nvml_device device, unsigned *count, struct nvml_process *list))      \
	X(mps_v2, "nvmlDeviceGetMPSComputeRunningProcesses_v2", false, (nvml_device device, unsigned *count, struct nvml_process *list))   \
	X(mps_v1, "nvmlDeviceGetMPSComputeRunningProcesses", false, (nvml_device device, unsigned *count, struct nvml_process_v1 *list))   \
	X(events, "nvmlEventSetCreate", false, (nvml_event_set * set))                                                                     \
	X(register_events, "nvmlDeviceRegisterEvents", false, (nvml_device device, unsigned long long types, nvml_event_set set))          \
	X(wait_event, "nvmlEventSetWait_v2", false, (nvml_event_set set, struct nvml_event * event, unsigned ms))                          \
	X(free_events, "nvmlEventSetFree", false, (nvml_event_set set))

struct nvml_functions {
#define X(member, symbol, required, arguments) int(*member) arguments;
	NVML_FUNCTIONS(X)
#undef X
	const char *(*error_string)(int code); /* "nvmlErrorString"; may be NULL */
};

#endif
