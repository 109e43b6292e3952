#include "runtime/nvml.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/account.h"
#include "runtime/driver.h"

/* Our own declarations of its interface, as far as it is needed here. */
enum { OK = 0, NOT_FOUND = 12, PROCESSES = 4096 };
struct memory {
	unsigned long long total, free, used;
};
struct memory_v2 {
	unsigned version;
	unsigned long long total, reserved, free, used;
};
struct process {
	unsigned pid;
	unsigned long long bytes;
	unsigned gpu_instance, compute_instance;
};

static struct {
	int (*init)(void);
	int (*by_uuid)(const char *uuid, void **ret_device);
	int (*uuid)(void *device, char *text, unsigned size);
	int (*memory)(void *device, struct memory *ret);
	int (*memory_v2)(void *device, struct memory_v2 *ret);
	int (*processes)(void *device, unsigned *count, struct process *ret);
} real;
static bool loaded, usable;

int hook_memory(void *device, struct memory *ret) __asm__("nvmlDeviceGetMemoryInfo");
int hook_memory_v2(void *device, struct memory_v2 *ret) __asm__("nvmlDeviceGetMemoryInfo_v2");

static void find(void *library, const char *name, void *ret_function)
{
	void *found = sw_real_dlsym(library, name);
	memcpy(ret_function, &found, sizeof found);
}

static void load(void)
{
	if (sw_real_dlsym == NULL)
		sw_find_dlsym();
	/* Where the program has it already, this is the same one. */
	void *library = sw_real_dlsym == NULL ? NULL : dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	if (library == NULL)
		return;
	find(library, "nvmlInit_v2", &real.init);
	find(library, "nvmlDeviceGetHandleByUUID", &real.by_uuid);
	find(library, "nvmlDeviceGetUUID", &real.uuid);
	find(library, "nvmlDeviceGetMemoryInfo", &real.memory);
	find(library, "nvmlDeviceGetMemoryInfo_v2", &real.memory_v2);
	/* The second and the third version differ in nothing that is asked here. */
	find(library, "nvmlDeviceGetComputeRunningProcesses_v3", &real.processes);
	if (real.processes == NULL)
		find(library, "nvmlDeviceGetComputeRunningProcesses_v2", &real.processes);
	loaded = true;
}

static bool is_loaded(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, load);
	return loaded;
}

/* ---- for ourselves */

static void start(void)
{
	usable = is_loaded() && real.init != NULL && real.by_uuid != NULL && real.memory != NULL && real.init() == OK;
}

void sw_nvml_write_uuid(const uint8_t uuid[16], char text[SW_NVML_UUID_SIZE])
{
	size_t length = (size_t)snprintf(text, SW_NVML_UUID_SIZE, "GPU-");
	for (unsigned i = 0; i < 16; i++)
		length += (size_t)snprintf(text + length, SW_NVML_UUID_SIZE - length, "%s%02x",
					   i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
}

static void ask_for_own(void *device, struct sw_nvml_use *use)
{
	unsigned count = PROCESSES;
	struct process *processes = real.processes == NULL ? NULL : malloc(count * sizeof *processes);
	use->own_known = processes != NULL && real.processes(device, &count, processes) == OK;
	for (unsigned i = 0; use->own_known && i < count && i < PROCESSES; i++)
		if (processes[i].pid == (unsigned)getpid() && processes[i].bytes != ~0ULL)
			use->own += processes[i].bytes;
	free(processes);
}

bool sw_nvml_use(const uint8_t uuid[16], struct sw_nvml_use *ret_use)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	char text[SW_NVML_UUID_SIZE];
	void *device = NULL;
	struct memory memory;
	pthread_once(&once, start);
	sw_nvml_write_uuid(uuid, text);
	if (!usable || real.by_uuid(text, &device) != OK || real.memory(device, &memory) != OK)
		return false;
	*ret_use = (struct sw_nvml_use){.all = memory.used};
	ask_for_own(device, ret_use);
	return true;
}

/* ---- for the program */

/* Where a limit stands in the way, the program sees that as the GPU's size, and what
 * its job holds as used. */
static void apply_limit(void *device, unsigned long long *total, unsigned long long *free, unsigned long long *used)
{
	const struct sw_page *page = sw_account_peek();
	char text[SW_NVML_UUID_SIZE], own[SW_NVML_UUID_SIZE];
	if (page == NULL || real.uuid == NULL || real.uuid(device, text, sizeof text) != OK)
		return;
	text[sizeof text - 1] = '\0';
	for (uint32_t gpu = 0; gpu < page->gpu_count && gpu < SW_PAGE_GPUS; gpu++) {
		uint64_t limit = atomic_load(&page->gpus[gpu].limit_bytes);
		sw_nvml_write_uuid(page->gpus[gpu].uuid, own);
		if (strcmp(own, text) != 0 || limit == SW_PAGE_NO_LIMIT)
			continue;
		uint64_t held = sw_account_held(page, gpu), size = limit < *total ? limit : *total;
		*used = held < size ? held : size;
		*free = size - *used < *free ? size - *used : *free;
		*total = size;
	}
}

int hook_memory(void *device, struct memory *ret)
{
	if (!is_loaded() || real.memory == NULL)
		return NOT_FOUND;
	int code = real.memory(device, ret);
	if (code == OK)
		apply_limit(device, &ret->total, &ret->free, &ret->used);
	return code;
}

int hook_memory_v2(void *device, struct memory_v2 *ret)
{
	if (!is_loaded() || real.memory_v2 == NULL)
		return NOT_FOUND;
	int code = real.memory_v2(device, ret);
	unsigned long long total = code == OK ? ret->total : 0;
	if (code != OK)
		return code;
	apply_limit(device, &ret->total, &ret->free, &ret->used);
	/* What the driver keeps for itself is no part of a share. */
	if (ret->total != total)
		ret->reserved = 0;
	return code;
}

void *sw_nvml_pick(void *handle, const char *name)
{
	bool second = strcmp(name, "nvmlDeviceGetMemoryInfo_v2") == 0;
	if ((!second && strcmp(name, "nvmlDeviceGetMemoryInfo") != 0) || !is_loaded())
		return NULL;
	void *found = sw_real_dlsym(handle, name), *known = NULL, *picked = NULL;
	int (*hook)(void *, struct memory *) = hook_memory;
	int (*hook_v2)(void *, struct memory_v2 *) = hook_memory_v2;
	memcpy(&known, second ? (void *)&real.memory_v2 : (void *)&real.memory, sizeof known);
	memcpy(&picked, second ? (void *)&hook_v2 : (void *)&hook, sizeof picked);
	return found != NULL && found == known ? picked : NULL;
}
