/* GPUs as NVIDIA's management library shows them. The library is loaded at run time: the program
 * also runs where there is none. What a driver or a GPU does not know is not known here either.
 * Only a GPU that does not answer at all, or has reported an error of its own (Xid), is faulty. The
 * latter is so until the library is opened again. */
#include <assert.h>
#include <dlfcn.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "gpu/backend.h"
#include "gpu/nvml_abi.h"

enum { PROCESSES = 1024, EVENTS_AT_ONCE = 256 };

struct nvml {
	void *library;
	bool initialised;
	struct nvml_functions call;
	nvml_device devices[SW_GPUS_MAX]; /* in the order of the infos */
	bool watches;			  /* for errors, or that cannot be */
	nvml_event_set events;		  /* NULL: it cannot */
	uint64_t xids[SW_GPUS_MAX];	  /* that it has reported; 0: none */
	union {
		struct nvml_process now[PROCESSES];
		struct nvml_process_v1 old[PROCESSES];
	} processes;
};

static const char *words(const struct nvml *nvml, int code, char buffer[32])
{
	const char *text = nvml->call.error_string != NULL ? nvml->call.error_string(code) : NULL;
	if (text != NULL)
		return text;
	snprintf(buffer, 32, "NVML error %d", code);
	return buffer;
}

static void close_nvml(struct sw_gpu_source *gpus)
{
	struct nvml *nvml = gpus->state;
	if (nvml->events != NULL && nvml->call.free_events != NULL)
		nvml->call.free_events(nvml->events);
	if (nvml->initialised)
		nvml->call.shutdown();
	if (nvml->library != NULL)
		dlclose(nvml->library);
	free(nvml);
}

__attribute__((format(printf, 2, 3))) static int absent(struct sw_err *err, const char *fmt, ...)
{
	char detail[400];
	va_list args;
	va_start(args, fmt);
	vsnprintf(detail, sizeof detail, fmt, args);
	va_end(args);
	sw_err_set(err, SW_ENOTFOUND, "cannot find the NVIDIA GPUs");
	sw_err_detail(err, "%s", detail);
	sw_err_hint(err, "Install the NVIDIA driver; without a GPU, an emulated one is found with LD_LIBRARY_PATH=build/release/emu.");
	return SW_ENOTFOUND;
}

static int load_functions(struct nvml *nvml, const char *library, struct sw_err *err)
{
	static const struct {
		const char *symbol;
		size_t offset;
		bool required;
	} functions[] = {
#define X(member, symbol, required, arguments) {symbol, offsetof(struct nvml_functions, member), required},
		NVML_FUNCTIONS(X)
#undef X
			{"nvmlErrorString", offsetof(struct nvml_functions, error_string), false},
	};
	for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
		void *address = dlsym(nvml->library, functions[i].symbol);
		if (address == NULL && functions[i].required)
			return absent(err, "%s has no function %s; the driver is too old", library, functions[i].symbol);
		memcpy((char *)&nvml->call + functions[i].offset, &address, sizeof address);
	}
	return 0;
}

static int load(struct nvml *nvml, const char *library, struct sw_err *err)
{
	nvml->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	if (nvml->library == NULL) {
		const char *why = dlerror();
		return absent(err, "there is no NVIDIA driver (%.300s)", why != NULL ? why : library);
	}
	int r = load_functions(nvml, library, err);
	if (r < 0)
		return r;
	assert(nvml->call.init != NULL);
	int code = nvml->call.init();
	char buffer[32];
	if (code != NVML_OK)
		return absent(err, "the NVIDIA driver does not answer (%.200s)", words(nvml, code, buffer));
	nvml->initialised = true;
	return 0;
}

/* What there is. */

/* A GPU on its way into the list. */
struct found {
	nvml_device device;
	struct sw_gpu_info info;
	uint32_t group; /* the place of the group's first GPU */
};

static int32_t numa_node(const char *bus_id)
{
	char path[96], line[16] = "";
	snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/numa_node", bus_id);
	FILE *file = fopen(path, "re");
	if (file == NULL)
		return -1;
	int64_t node = -1;
	if (fgets(line, sizeof line, file) != NULL && sw_parse_i64(line, strcspn(line, "\n"), &node) < 0)
		node = -1;
	fclose(file);
	return node >= 0 && node <= INT32_MAX ? (int32_t)node : -1;
}

/* NVML's code; `memory` is filled when it is OK. */
static int ask_memory(const struct nvml *nvml, nvml_device device, struct nvml_memory_v2 *memory)
{
	*memory = (struct nvml_memory_v2){.version = NVML_MEMORY_V2};
	if (nvml->call.memory_v2 != NULL && nvml->call.memory_v2(device, memory) == NVML_OK)
		return NVML_OK;
	struct nvml_memory old = {0};
	int code = nvml->call.memory(device, &old);
	*memory = (struct nvml_memory_v2){.total = old.total, .free = old.free, .used = old.used};
	return code;
}

static int describe(const struct nvml *nvml, unsigned index, struct found *found)
{
	struct sw_gpu_info *info = &found->info;
	info->number = index;
	char uuid[NVML_NAME_SIZE] = "", name[NVML_NAME_SIZE] = "";
	int code = nvml->call.device(index, &found->device);
	if (code == NVML_OK)
		code = nvml->call.uuid(found->device, uuid, sizeof uuid);
	if (code == NVML_OK)
		code = nvml->call.name(found->device, name, sizeof name);
	/* Half a UUID could be another GPU's. */
	if (code == NVML_OK && (uuid[0] == '\0' || memchr(uuid, '\0', sizeof info->uuid) == NULL))
		code = NVML_INSUFFICIENT_SIZE;
	if (code != NVML_OK)
		return code;
	struct nvml_memory_v2 memory;
	code = ask_memory(nvml, found->device, &memory);
	if (code != NVML_OK && code != NVML_NOT_SUPPORTED)
		return code;
	info->memory_bytes = code == NVML_OK ? memory.total : 0;
	snprintf(info->uuid, sizeof info->uuid, "%.47s", uuid);
	snprintf(info->name, sizeof info->name, "%.95s", name);
	struct nvml_pci pci = {.domain = 0};
	info->numa_node = -1;
	if (nvml->call.pci != NULL && nvml->call.pci(found->device, &pci) == NVML_OK) {
		snprintf(info->bus_id, sizeof info->bus_id, "%04x:%02x:%02x.0", pci.domain, pci.bus & 0xff, pci.device & 0xff);
		info->numa_node = numa_node(info->bus_id);
	}
	unsigned now = 0, next = 0;
	info->partitioned = nvml->call.mig_mode != NULL && nvml->call.mig_mode(found->device, &now, &next) == NVML_OK && now == 1;
	return NVML_OK;
}

static bool by_nvlink(const struct nvml *nvml, nvml_device a, nvml_device b)
{
	int status = -1;
	return nvml->call.p2p(a, b, NVML_P2P_OVER_NVLINK, &status) == NVML_OK && status == NVML_P2P_WORKS;
}

static bool on_same_node(const struct nvml *nvml, nvml_device a, nvml_device b)
{
	int level = NVML_TOPOLOGY_SAME_NODE + 1;
	return nvml->call.ancestor(a, b, &level) == NVML_OK && level <= NVML_TOPOLOGY_SAME_NODE;
}

/* Makes one group of all GPUs between which there is a chain of near ones; returns
 * whether there were any. */
static bool join(const struct nvml *nvml, struct found *found, uint32_t count, bool (*near)(const struct nvml *, nvml_device, nvml_device))
{
	bool any = false;
	for (uint32_t a = 0; a < count; a++) {
		for (uint32_t b = a + 1; b < count; b++) {
			if (!near(nvml, found[a].device, found[b].device))
				continue;
			any = true;
			uint32_t low = found[a].group < found[b].group ? found[a].group : found[b].group;
			uint32_t high = found[a].group ^ found[b].group ^ low;
			for (uint32_t i = 0; i < count; i++)
				if (found[i].group == high)
					found[i].group = low;
		}
	}
	return any;
}

/* Where some GPUs have NVLink between them, that makes the groups; otherwise those that reach each
 * other without the way between two processors. Where neither is known, all are one group. */
static void find_groups(const struct nvml *nvml, struct found *found, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		found[i].group = i;
	if (nvml->call.p2p != NULL && join(nvml, found, count, by_nvlink))
		return;
	if (nvml->call.ancestor != NULL) {
		join(nvml, found, count, on_same_node);
		return;
	}
	for (uint32_t i = 0; i < count; i++)
		found[i].group = 0;
}

/* Into the list, group by group; inside of a group as NVML has them. */
static void take_in_order(struct sw_gpu_source *gpus, const struct found *found, uint32_t count)
{
	struct nvml *nvml = gpus->state;
	uint32_t groups = 0;
	for (uint32_t group = 0; group < count; group++) {
		uint32_t before = gpus->count;
		for (uint32_t i = 0; i < count; i++) {
			if (found[i].group != group)
				continue;
			gpus->infos[gpus->count] = found[i].info;
			gpus->infos[gpus->count].link_group = groups;
			nvml->devices[gpus->count++] = found[i].device;
		}
		groups += gpus->count > before;
	}
}

static void write_about(struct sw_gpu_source *gpus, unsigned there_are, unsigned first_lost, int code)
{
	const struct nvml *nvml = gpus->state;
	char version[NVML_NAME_SIZE] = "", buffer[32];
	if (nvml->call.driver_version == NULL || nvml->call.driver_version(version, sizeof version) != NVML_OK)
		snprintf(version, sizeof version, "of unknown version");
	int used = 0;
	if (gpus->count == 0)
		used = snprintf(gpus->about, sizeof gpus->about, "no GPUs: the NVIDIA driver %.95s has none", version);
	else
		used = snprintf(gpus->about, sizeof gpus->about, "%u GPU%s, NVIDIA driver %.95s", gpus->count, gpus->count == 1 ? "" : "s",
				version);
	if (gpus->count == there_are)
		return;
	if (code == NVML_OK)
		snprintf(gpus->about + used, sizeof gpus->about - (size_t)used, "; %u more are left out", there_are - gpus->count);
	else
		snprintf(gpus->about + used, sizeof gpus->about - (size_t)used, "; %u left out, the first is number %u (%.100s)",
			 there_are - gpus->count, first_lost, words(nvml, code, buffer));
}

/* Says which GPU the driver is asked about: 1 + its number; 0: none. */
static void ask_about(const struct sw_gpu_source *gpus, int which)
{
	if (gpus->care.asking != NULL)
		atomic_store(gpus->care.asking, which);
}

static int find_all(struct sw_gpu_source *gpus, struct sw_err *err)
{
	struct nvml *nvml = gpus->state;
	struct found found[SW_GPUS_MAX] = {0};
	unsigned there_are = 0, first_lost = 0;
	uint32_t count = 0;
	char buffer[32];
	assert(nvml->call.count != NULL);
	int lost_code = NVML_OK, code = nvml->call.count(&there_are);
	if (code != NVML_OK)
		return absent(err, "the NVIDIA driver does not say how many GPUs there are (%.200s)", words(nvml, code, buffer));
	for (unsigned i = 0; i < there_are && count < SW_GPUS_MAX; i++) {
		bool skipped = i < 64 && (gpus->care.skip >> i & 1) != 0;
		ask_about(gpus, (int)i + 1);
		code = skipped ? NVML_GPU_IS_LOST : describe(nvml, i, &found[count]);
		ask_about(gpus, 0);
		gpus->missing += code != NVML_OK;
		if (code == NVML_OK) {
			count++;
			continue;
		}
		found[count] = (struct found){0};
		if (lost_code == NVML_OK) {
			lost_code = code;
			first_lost = i;
		}
	}
	find_groups(nvml, found, count);
	take_in_order(gpus, found, count);
	write_about(gpus, there_are, first_lost, lost_code);
	return 0;
}

/* What they do. */

/* One list of processes, by the newest call that the library has. NVML's code. */
struct process_call {
	int (*now)(nvml_device device, unsigned *count, struct nvml_process *list);
	int (*before)(nvml_device device, unsigned *count, struct nvml_process *list);
	int (*old)(nvml_device device, unsigned *count, struct nvml_process_v1 *list);
};

static void add_process(struct sw_gpu_sample *sample, unsigned pid, unsigned long long memory, bool draws)
{
	uint64_t bytes = memory == NVML_UNKNOWN_BYTES ? 0 : memory;
	uint32_t at = 0;
	/* One that is on several lists has the same figure on each. Several of number 0 are those
	 * that the driver does not name here. */
	while (at < sample->process_count && (sample->processes[at].pid != pid || pid == 0))
		at++;
	if (at == SW_GPU_PROCESSES_MAX)
		return;
	if (at == sample->process_count)
		sample->processes[sample->process_count++] = (struct sw_gpu_process){.pid = pid};
	struct sw_gpu_process *process = &sample->processes[at];
	process->memory_bytes = bytes > process->memory_bytes ? bytes : process->memory_bytes;
	process->draws |= draws;
}

static int ask_list(struct nvml *nvml, nvml_device device, struct process_call call, bool draws, struct sw_gpu_sample *sample,
		    unsigned *ret_count)
{
	unsigned count = PROCESSES;
	int code = NVML_NOT_SUPPORTED;
	bool is_old = call.now == NULL && call.before == NULL;
	if (call.now != NULL)
		code = call.now(device, &count, nvml->processes.now);
	else if (call.before != NULL)
		code = call.before(device, &count, nvml->processes.now);
	else if (call.old != NULL)
		code = call.old(device, &count, nvml->processes.old);
	if (code != NVML_OK && code != NVML_INSUFFICIENT_SIZE)
		return code;
	*ret_count = count;
	for (unsigned i = 0; code == NVML_OK && count <= PROCESSES && i < count; i++) {
		if (is_old)
			add_process(sample, nvml->processes.old[i].pid, nvml->processes.old[i].memory, draws);
		else
			add_process(sample, nvml->processes.now[i].pid, nvml->processes.now[i].memory, draws);
	}
	return NVML_OK;
}

static void ask_processes(struct nvml *nvml, nvml_device device, struct sw_gpu_sample *sample)
{
	const struct nvml_functions *call = &nvml->call;
	unsigned count = 0, ignored = 0;
	if (ask_list(nvml, device, (struct process_call){call->processes, call->processes_v2, call->processes_v1}, false, sample, &count) !=
	    NVML_OK)
		return;
	sample->known |= SW_GPU_KNOWS_PROCESSES;
	sample->process_total = count;
	(void)ask_list(nvml, device, (struct process_call){call->mps, call->mps_v2, call->mps_v1}, false, sample, &ignored);
	(void)ask_list(nvml, device, (struct process_call){call->drawing, call->drawing_v2, call->drawing_v1}, true, sample, &ignored);
}

static void ask_load(const struct nvml *nvml, nvml_device device, struct sw_gpu_sample *sample)
{
	struct nvml_utilisation rate = {0};
	if (nvml->call.utilisation != NULL && nvml->call.utilisation(device, &rate) == NVML_OK) {
		sample->utilisation_milli = rate.gpu > 100 ? 1000 : rate.gpu * 10;
		sample->memory_utilisation_milli = rate.memory > 100 ? 1000 : rate.memory * 10;
		sample->known |= SW_GPU_KNOWS_UTILISATION;
	}
	unsigned mhz = 0;
	if (nvml->call.clock != NULL && nvml->call.clock(device, NVML_CLOCK_SM, &mhz) == NVML_OK) {
		sample->sm_clock_mhz = mhz;
		sample->known |= SW_GPU_KNOWS_SM_CLOCK;
	}
	if (nvml->call.clock != NULL && nvml->call.clock(device, NVML_CLOCK_MEMORY, &mhz) == NVML_OK) {
		sample->memory_clock_mhz = mhz;
		sample->known |= SW_GPU_KNOWS_MEMORY_CLOCK;
	}
}

static void ask_health(const struct nvml *nvml, nvml_device device, struct sw_gpu_sample *sample)
{
	unsigned power = 0, celsius = 0;
	unsigned long long energy = 0, corrected = 0, uncorrected = 0;
	if (nvml->call.power != NULL && nvml->call.power(device, &power) == NVML_OK) {
		sample->power_mw = power;
		sample->known |= SW_GPU_KNOWS_POWER;
	}
	if (nvml->call.energy != NULL && nvml->call.energy(device, &energy) == NVML_OK) {
		sample->energy_mj = energy;
		sample->known |= SW_GPU_KNOWS_ENERGY;
	}
	if (nvml->call.temperature != NULL && nvml->call.temperature(device, NVML_SENSOR_GPU, &celsius) == NVML_OK) {
		sample->temperature_c = (int32_t)celsius;
		sample->known |= SW_GPU_KNOWS_TEMPERATURE;
	}
	if (nvml->call.ecc != NULL && nvml->call.ecc(device, NVML_ECC_CORRECTED, NVML_ECC_SINCE_LOADED, &corrected) == NVML_OK &&
	    nvml->call.ecc(device, NVML_ECC_UNCORRECTED, NVML_ECC_SINCE_LOADED, &uncorrected) == NVML_OK) {
		sample->ecc_corrected = corrected;
		sample->ecc_uncorrected = uncorrected;
		sample->known |= SW_GPU_KNOWS_ECC;
	}
}

/* ---- errors that GPUs report */

/* Those that a program brings about, or that concern it alone, and repairs that have succeeded.
 * These are 63 (a row of memory was replaced), 92 (many errors were corrected), 94 (an error was
 * contained). */
static bool is_of_program(uint64_t xid)
{
	static const uint64_t harmless[] = {13, 31, 43, 45, 63, 68, 92, 94, 109};
	for (size_t i = 0; i < sizeof harmless / sizeof harmless[0]; i++)
		if (harmless[i] == xid)
			return true;
	return false;
}

/* Only a process that samples watches: what came before is not told. */
static void watch(struct sw_gpu_source *gpus)
{
	struct nvml *nvml = gpus->state;
	const struct nvml_functions *call = &nvml->call;
	if (nvml->watches)
		return;
	nvml->watches = true;
	if (call->events == NULL || call->register_events == NULL || call->wait_event == NULL || call->events(&nvml->events) != NVML_OK) {
		nvml->events = NULL;
		return;
	}
	/* One that does not know such events has none. */
	for (uint32_t i = 0; i < gpus->count; i++) {
		ask_about(gpus, (int)gpus->infos[i].number + 1);
		(void)call->register_events(nvml->devices[i], NVML_EVENT_XID, nvml->events);
	}
	ask_about(gpus, 0);
}

static void hear_events(struct sw_gpu_source *gpus)
{
	struct nvml *nvml = gpus->state;
	struct nvml_event event = {0};
	watch(gpus);
	for (int e = 0; nvml->events != NULL && e < EVENTS_AT_ONCE && nvml->call.wait_event(nvml->events, &event, 0) == NVML_OK; e++)
		for (uint32_t i = 0; i < gpus->count; i++)
			if (nvml->devices[i] == event.device && event.type == NVML_EVENT_XID && !is_of_program(event.data))
				nvml->xids[i] = event.data;
}

static int sample_it(struct sw_gpu_source *gpus, uint32_t index, struct sw_gpu_sample *sample, struct sw_err *err)
{
	struct nvml *nvml = gpus->state;
	nvml_device device = nvml->devices[index];
	struct nvml_memory_v2 memory;
	if (nvml->xids[index] != 0) {
		sw_err_set(err, SW_EIO, "the GPU %s is out of order", gpus->infos[index].uuid);
		sw_err_detail(err, "it has reported error Xid %" PRIu64, nvml->xids[index]);
		sw_err_hint(err, "Reset it, then start the agent again.");
		return SW_EIO;
	}
	int code = ask_memory(nvml, device, &memory);
	if (code == NVML_OK) {
		sample->memory_total_bytes = memory.total;
		sample->memory_used_bytes = memory.used;
		sample->memory_reserved_bytes = memory.reserved;
		sample->known |= SW_GPU_KNOWS_MEMORY;
	} else if (code != NVML_NOT_SUPPORTED) {
		char buffer[32];
		sw_err_set(err, SW_EIO, "the GPU %s does not answer", gpus->infos[index].uuid);
		sw_err_detail(err, "%s", words(nvml, code, buffer));
		return SW_EIO;
	}
	ask_load(nvml, device, sample);
	ask_health(nvml, device, sample);
	ask_processes(nvml, device, sample);
	return 0;
}

static int sample_nvml(struct sw_gpu_source *gpus, uint32_t index, struct sw_gpu_sample *sample, struct sw_err *err)
{
	hear_events(gpus);
	ask_about(gpus, (int)gpus->infos[index].number + 1);
	int r = sample_it(gpus, index, sample, err);
	ask_about(gpus, 0);
	return r;
}

int sw_gpu_nvml_open(const char *library, const struct sw_gpu_source_care *care, struct sw_gpu_source **ret_gpus, struct sw_err *err)
{
	static const struct sw_gpu_backend backend = {.sample = sample_nvml, .close = close_nvml};
	SW_CLEANUP(sw_gpu_source_closep) struct sw_gpu_source *gpus = calloc(1, sizeof *gpus);
	struct nvml *nvml = calloc(1, sizeof *nvml);
	if (gpus == NULL || nvml == NULL) {
		free(nvml);
		return sw_err_set(err, SW_ENOMEM, "no memory for the list of GPUs");
	}
	gpus->backend = &backend;
	gpus->state = nvml;
	gpus->care = *care;
	int r = load(nvml, library, err);
	if (r == 0)
		r = find_all(gpus, err);
	if (r < 0)
		return r;
	*ret_gpus = SW_TAKE(gpus);
	return 0;
}
