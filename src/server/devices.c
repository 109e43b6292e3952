/* What agents said of their GPUs, and how these did lately. Volatile: figures for
 * people, nothing that decides. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "failure/failure.h"
#include "server/devices.h"
#include "server/state.h"
#include "server/uses.h"

static void clear_devices(struct sw_machine *machine)
{
	for (size_t d = 0; d < machine->devices.count; d++) {
		free(machine->devices.items[d].uuid);
		free(machine->devices.items[d].name);
	}
	sw_vec_free(&machine->devices);
}

void sw_machines_clear(sw_machines *machines)
{
	for (size_t m = 0; m < machines->count; m++) {
		clear_devices(&machines->items[m]);
		sw_vec_free(&machines->items[m].uses);
		sw_vec_free(&machines->items[m].strangers);
		free(machines->items[m].name);
	}
	sw_vec_free(machines);
}

/* Where it is, or would be. */
static size_t place_of(const sw_machines *machines, const char *name)
{
	size_t low = 0, high = machines->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (strcmp(machines->items[middle].name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct sw_machine *sw_machines_find(const sw_machines *machines, const char *name)
{
	size_t place = place_of(machines, name);
	return place < machines->count && strcmp(machines->items[place].name, name) == 0 ? &machines->items[place] : NULL;
}

/* NULL: too many, or out of memory. Then there are no figures of it. */
static struct sw_machine *find_or_add(sw_machines *machines, const char *name)
{
	size_t place = place_of(machines, name);
	if (place < machines->count && strcmp(machines->items[place].name, name) == 0)
		return &machines->items[place];
	char *copy = machines->count < SW_NODES_MAX ? strdup(name) : NULL;
	if (copy == NULL || sw_vec_push(machines) == NULL) {
		free(copy);
		return NULL;
	}
	memmove(&machines->items[place + 1], &machines->items[place], (machines->count - 1 - place) * sizeof machines->items[0]);
	machines->items[place] = (struct sw_machine){.name = copy};
	return &machines->items[place];
}

static bool add_device(struct sw_machine *machine, const char *uuid, const char *name, uint64_t memory_bytes)
{
	struct sw_device device = {.uuid = strdup(uuid), .name = name != NULL ? strdup(name) : NULL, .memory_bytes = memory_bytes};
	struct sw_device *slot = device.uuid != NULL && (name == NULL || device.name != NULL) ? sw_vec_push(&machine->devices) : NULL;
	if (slot == NULL) {
		free(device.uuid);
		free(device.name);
		return false;
	}
	*slot = device;
	return true;
}

static int compare_devices(const void *left, const void *right)
{
	const struct sw_device *a = *(struct sw_device *const *)left, *b = *(struct sw_device *const *)right;
	int order = strcmp(a->uuid, b->uuid);
	return order != 0 ? order : (a > b) - (a < b);
}

/* Of all devices of that name, sorted by it. */
static void take_sample(struct sw_device **sorted, size_t count, const struct sw_sync_sample *sample)
{
	size_t low = 0, high = count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (strcmp(sorted[middle]->uuid, sample->gpu) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < count && strcmp(sorted[low]->uuid, sample->gpu) == 0; low++) {
		struct sw_device *device = sorted[low];
		if (device->sampled && device->sampled_at_ns > sample->at_ns)
			continue;
		device->sampled = true;
		device->sampled_at_ns = sample->at_ns;
		device->memory_used_bytes = sample->memory_bytes;
		device->busy_milli = sample->busy_milli;
		device->power_mw = sample->power_mw;
		device->temperature_c = sample->temperature_c;
	}
}

static void take_samples(struct sw_machine *machine, const struct sw_sync *sync)
{
	size_t count = machine->devices.count;
	SW_CLEANUP(sw_freep) struct sw_device **sorted = calloc(count + 1, sizeof(struct sw_device *));
	if (sorted == NULL)
		return;
	for (size_t d = 0; d < count; d++)
		sorted[d] = &machine->devices.items[d];
	if (count > 1)
		qsort(sorted, count, sizeof(struct sw_device *), compare_devices);
	for (size_t s = 0; s < sync->sample_count; s++)
		if (sync->samples[s].gpu != NULL && !sync->samples[s].has_run)
			take_sample(sorted, count, &sync->samples[s]);
		else if (sync->samples[s].gpu == NULL && !sync->samples[s].has_run) {
			machine->host_bytes = sync->samples[s].host_bytes;
			machine->host_limit_bytes = sync->samples[s].limit_bytes;
		}
}

/* Agents may send anything: names are cleaned, and what is too long for a UUID is none. */
static void take_strangers(struct sw_machine *machine, const struct sw_sync *sync)
{
	machine->strangers.count = 0;
	for (size_t s = 0; s < sync->stranger_count; s++) {
		const struct sw_sync_stranger *said = &sync->strangers[s];
		struct sw_stranger *stranger = strlen(said->gpu) < sizeof stranger->gpu ? sw_vec_push(&machine->strangers) : NULL;
		if (stranger == NULL)
			continue;
		snprintf(stranger->gpu, sizeof stranger->gpu, "%s", said->gpu);
		stranger->pid = said->pid;
		stranger->memory_bytes = said->memory_bytes;
		stranger->since_ns = said->since_ns;
		if (said->user != NULL)
			sw_failure_clean(said->user, strlen(said->user), stranger->user, sizeof stranger->user);
		if (said->program != NULL)
			sw_failure_clean(said->program, strlen(said->program), stranger->program, sizeof stranger->program);
	}
}

void sw_machines_hear(sw_machines *machines, const struct sw_sync *sync)
{
	bool is_known = sw_machines_find(machines, sync->node) != NULL;
	if (sync->inventory == NULL && sync->sample_count == 0 && !is_known)
		return;
	struct sw_machine *machine = find_or_add(machines, sync->node);
	if (machine == NULL)
		return;
	sw_uses_hear(machine, sync);
	if (sync->looked)
		take_strangers(machine, sync);
	if (sync->look_ns > 0)
		machine->look_ns = sync->look_ns;
	if (sync->inventory != NULL) {
		clear_devices(machine);
		for (size_t g = 0; g < sync->inventory->gpu_count; g++) {
			const struct sw_sync_gpu *gpu = &sync->inventory->gpus[g];
			if (!add_device(machine, gpu->uuid, gpu->name, gpu->memory_bytes))
				return;
		}
	}
	take_samples(machine, sync);
}

void sw_machines_recall_all(sw_machines *machines, const struct sw_brain *brain)
{
	struct sw_node_view view;
	for (uint32_t n = 0; sw_brain_node(brain, n, &view); n++) {
		struct sw_machine *machine = sw_machines_find(machines, view.name) == NULL ? find_or_add(machines, view.name) : NULL;
		for (uint32_t g = 0; machine != NULL && g < view.gpus; g++)
			if (!add_device(machine, sw_brain_gpu_uuid(brain, n, g), NULL, view.gpu_memory_bytes))
				break;
	}
}

void sw_machines_recall(sw_machines *machines, const char *body, size_t size)
{
	json_t *root = json_loadb(body, size, 0, NULL);
	const char *name = json_string_value(json_object_get(root, "name"));
	json_t *gpus = json_object_get(root, "gpus");
	/* What the agent itself said to this controller knows more. */
	if (name != NULL && json_array_size(gpus) > 0 && sw_machines_find(machines, name) == NULL) {
		struct sw_machine *machine = find_or_add(machines, name);
		json_int_t memory = json_integer_value(json_object_get(root, "gpu_memory_bytes"));
		for (size_t g = 0; machine != NULL && g < json_array_size(gpus); g++) {
			const char *uuid = json_string_value(json_array_get(gpus, g));
			if (uuid == NULL || !add_device(machine, uuid, NULL, memory > 0 ? (uint64_t)memory : 0))
				break;
		}
	}
	json_decref(root);
}
