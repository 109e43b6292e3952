/* How jobs do on their GPUs, as their agents saw it last. Volatile: figures for people, nothing that decides.
 *
 * A sync names every run that its agent knows, so a use goes with the first sync that does not name its run, or says that it has ended. A run that was moved to
 * other GPUs goes on: its use of one that it has left goes with the first newer samples of it among which that GPU is not.
 */
#include <string.h>

#include "controller/server_state.h"

#define USES_MAX 1024u /* of one machine */

static bool is_alive(const struct sw_sync *sync, struct sw_run_id run)
{
	for (size_t r = 0; r < sync->run_count; r++)
		if (sw_run_id_compare(sync->runs[r].id, run) == 0)
			return sync->runs[r].state != SW_RUN_EXITED;
	return false;
}

static bool has_left(const struct sw_sync *sync, const struct sw_use *use)
{
	bool newer = false;
	for (size_t s = 0; s < sync->sample_count; s++) {
		const struct sw_sync_sample *sample = &sync->samples[s];
		if (sample->gpu == NULL || !sample->has_run || sw_run_id_compare(sample->run, use->run) != 0)
			continue;
		if (strcmp(sample->gpu, use->gpu) == 0)
			return false;
		newer = newer || sample->at_ns > use->sampled_at_ns;
	}
	return newer;
}

static struct sw_use *find_or_add(struct sw_machine *machine, struct sw_run_id run, const char *gpu)
{
	for (size_t u = 0; u < machine->uses.count; u++)
		if (sw_run_id_compare(machine->uses.items[u].run, run) == 0 && strcmp(machine->uses.items[u].gpu, gpu) == 0)
			return &machine->uses.items[u];
	struct sw_use *use = machine->uses.count < USES_MAX ? sw_vec_push(&machine->uses) : NULL;
	if (use == NULL)
		return NULL;
	*use = (struct sw_use){.run = run};
	memcpy(use->gpu, gpu, strlen(gpu) + 1);
	return use;
}

void sw_uses_hear(struct sw_machine *machine, const struct sw_sync *sync)
{
	for (size_t u = machine->uses.count; u-- > 0;)
		if (!is_alive(sync, machine->uses.items[u].run) || has_left(sync, &machine->uses.items[u]))
			machine->uses.items[u] = machine->uses.items[--machine->uses.count];
	for (size_t s = 0; s < sync->sample_count; s++) {
		const struct sw_sync_sample *sample = &sync->samples[s];
		if (sample->gpu == NULL || !sample->has_run || strlen(sample->gpu) >= sizeof machine->uses.items->gpu ||
		    !is_alive(sync, sample->run))
			continue;
		struct sw_use *use = find_or_add(machine, sample->run, sample->gpu);
		if (use == NULL || use->sampled_at_ns > sample->at_ns)
			continue;
		use->sampled_at_ns = sample->at_ns;
		use->memory_bytes = sample->memory_bytes;
		use->host_bytes = sample->host_bytes;
		use->limit_bytes = sample->limit_bytes;
		use->iteration_ns = sample->iteration_ns;
		use->outside = sample->outside;
		use->has_share = sample->runtime;
		use->share_milli = sample->share_milli;
		use->yields = sample->yields;
		use->trespass = sample->trespass;
	}
}

bool sw_use_is_current(const struct sw_brain *brain, const struct sw_machine *machine, const struct sw_use *use)
{
	struct sw_part_view part;
	for (uint32_t p = 0; sw_brain_part(brain, use->run.job, p, &part); p++)
		if (part.epoch == use->run.epoch && strcmp(part.node, machine->name) == 0)
			return true;
	return false;
}

static void add(struct sw_use *sum, const struct sw_use *use, bool *limited)
{
	*limited = *limited && use->limit_bytes > 0;
	sum->memory_bytes += use->memory_bytes;
	sum->host_bytes += use->host_bytes;
	sum->limit_bytes += use->limit_bytes;
	sum->outside += use->outside;
	if (use->iteration_ns > sum->iteration_ns)
		sum->iteration_ns = use->iteration_ns;
	if (use->has_share && (!sum->has_share || use->share_milli < sum->share_milli))
		sum->share_milli = use->share_milli;
	sum->has_share = sum->has_share || use->has_share;
	sum->yields = sum->yields || use->yields;
	sum->trespass = sum->trespass || use->trespass;
	if (use->sampled_at_ns > sum->sampled_at_ns)
		sum->sampled_at_ns = use->sampled_at_ns;
}

bool sw_uses_sum(const sw_machines *machines, const struct sw_brain *brain, uint64_t job, struct sw_use *ret_sum)
{
	struct sw_use sum = {0};
	struct sw_part_view part;
	bool found = false, limited = true;
	for (uint32_t p = 0; sw_brain_part(brain, job, p, &part); p++) {
		const struct sw_machine *machine = sw_machines_find(machines, part.node);
		const struct sw_run_id run = {job, part.epoch};
		for (size_t u = 0; machine != NULL && u < machine->uses.count; u++)
			if (sw_run_id_compare(machine->uses.items[u].run, run) == 0) {
				add(&sum, &machine->uses.items[u], &limited);
				found = true;
			}
	}
	if (!limited)
		sum.limit_bytes = 0;
	if (found)
		*ret_sum = sum;
	return found;
}
