/* What the agent remembers of its GPUs, so that one that does not answer is told of
 * as that and not as gone.
 *
 * The sampler lists the GPUs that answer. Those that were there before are kept in the file
 * gpus.json. While the driver says that some do not answer, or does not answer itself, they stay in
 * the inventory and take no jobs. When it answers and has fewer, they are gone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_gpus.h"
#include "agent/agent_state.h"
#include "agent/folder.h"
#include "base/cleanup.h"
#include "base/now.h"

#define FILE_NAME "gpus.json"

static bool has(const struct sw_sync_gpu *list, size_t count, const char *uuid)
{
	for (size_t g = 0; g < count; g++)
		if (strcmp(list[g].uuid, uuid) == 0)
			return true;
	return false;
}

bool sw_agent_gpus_known(const struct sw_agent *agent)
{
	return agent->gpus.known != NULL && agent->gpus.known->inventory->gpu_count > 0;
}

void sw_agent_gpus_open(struct sw_agent *agent)
{
	SW_CLEANUP(sw_freep) char *text = NULL;
	SW_CLEANUP(sw_sync_freep) struct sw_sync *known = NULL;
	size_t size;
	if (sw_folder_read(agent->state, FILE_NAME, &text, &size, NULL) == 0 && sw_sync_decode(text, size, &known, NULL) == 0 &&
	    known->inventory != NULL)
		agent->gpus.known = SW_TAKE(known);
}

void sw_agent_gpus_release(struct sw_agent *agent)
{
	sw_sync_free(agent->gpus.known);
	sw_sync_free(agent->gpus.seen);
	sw_vec_free(&agent->gpus.all);
	sw_vec_free(&agent->gpus.shut);
}

/* The whole of it becomes what is remembered. */
static void remember(struct sw_agent *agent, const struct sw_sync_inventory *inventory)
{
	const struct sw_sync sync = {.node = "-", .instance = "-", .number = 1, .inventory = inventory};
	SW_CLEANUP(sw_freep) char *text = NULL;
	SW_CLEANUP(sw_sync_freep) struct sw_sync *known = NULL;
	size_t size;
	if (sw_sync_encode(&sync, &text, &size, NULL) < 0 || sw_sync_decode(text, size, &known, NULL) < 0)
		return;
	sw_sync_free(agent->gpus.known);
	agent->gpus.known = SW_TAKE(known);
	struct sw_err err = {0};
	if (sw_folder_write(agent->state, FILE_NAME, text, size, false, &err) < 0)
		sw_agent_say(agent, "cannot note which GPUs there are: %s", err.fact);
}

static bool push(struct sw_agent_gpus *gpus, const struct sw_sync_gpu *gpu)
{
	struct sw_sync_gpu *slot = gpus->all.count < SW_SYNC_GPUS_MAX ? sw_vec_push(&gpus->all) : NULL;
	if (slot != NULL)
		*slot = *gpu;
	return slot != NULL;
}

/* Those that answer, and those that do not and were there before; in the order of before where none
 * is new, so that nothing moves. */
static bool put_together(struct sw_agent_gpus *gpus, const struct sw_sync *seen, const struct sw_sync_inventory *before)
{
	const struct sw_sync_inventory *now = seen->inventory;
	uint32_t missing = seen->silent ? UINT32_MAX : seen->missing;
	size_t old = 0;
	bool good = true;
	for (size_t g = 0; g < before->gpu_count; g++)
		old += has(now->gpus, now->gpu_count, before->gpus[g].uuid);
	bool in_order = missing > 0 && old == now->gpu_count;
	gpus->all.count = gpus->absent_count = 0;
	for (size_t g = 0; !in_order && g < now->gpu_count; g++)
		good &= push(gpus, &now->gpus[g]);
	for (size_t g = 0; g < before->gpu_count; g++) {
		bool answers = has(now->gpus, now->gpu_count, before->gpus[g].uuid);
		if (answers ? !in_order : missing == 0)
			continue;
		good &= push(gpus, &before->gpus[g]);
		if (answers || gpus->absent_count == SW_SYNC_GPUS_MAX)
			continue;
		missing--;
		snprintf(gpus->absent[gpus->absent_count++].uuid, sizeof gpus->absent[0].uuid, "%s", before->gpus[g].uuid);
	}
	return good;
}

static void take_inventory(struct sw_agent *agent, const struct sw_sync *seen)
{
	static const struct sw_sync_inventory none;
	const struct sw_sync_inventory *now = seen->inventory;
	struct sw_agent_gpus *gpus = &agent->gpus;
	uint32_t absent = gpus->absent_count;
	bool good = put_together(gpus, seen, sw_agent_gpus_known(agent) ? gpus->known->inventory : &none);
	struct sw_sync_inventory whole = {gpus->all.items, gpus->all.count, now->cpus, now->memory_bytes};
	if (!good || sw_agent_brain_inventory(agent->brain, &whole) < 0)
		sw_agent_say(agent, "this node has too many GPUs, or too little memory to list them");
	gpus->all.count = 0; /* their texts may go now */
	if (seen->silent && sw_agent_gpus_known(agent)) {
		sw_agent_gpus_silence(agent, seen->about != NULL ? seen->about : "it is not there");
		return;
	}
	if (gpus->silent)
		sw_agent_say(agent, "the GPU driver answers again");
	gpus->silent = false;
	if (gpus->absent_count > 0 && absent == 0) {
		gpus->absent_since_ns = sw_now_real_ns();
		sw_agent_say(agent, "%u of the GPUs of this node %s not answer; jobs are given the others", gpus->absent_count,
			     gpus->absent_count == 1 ? "does" : "do");
	}
	if (!seen->silent && seen->missing == 0)
		remember(agent, now);
}

void sw_agent_gpus_hear(struct sw_agent *agent, struct sw_sync *seen)
{
	if (seen->inventory != NULL)
		take_inventory(agent, seen);
	sw_sync_free(agent->gpus.seen);
	agent->gpus.seen = seen;
	agent->gpus.is_new = true;
}

void sw_agent_gpus_silence(struct sw_agent *agent, const char *why)
{
	struct sw_agent_gpus *gpus = &agent->gpus;
	if (!gpus->silent) {
		gpus->silent_since_ns = sw_now_real_ns();
		sw_agent_say(agent, "the GPU driver does not answer: %s. Jobs go on; no new ones start here until it does", why);
	}
	gpus->silent = true;
	snprintf(gpus->silent_why, sizeof gpus->silent_why, "%.199s", why);
}

int sw_agent_gpus_join(struct sw_agent *agent)
{
	return sw_agent_brain_inventory(agent->brain, agent->gpus.known->inventory);
}

/* ---- telling */

static void shut(struct sw_agent_gpus *gpus, struct sw_sync_shut it)
{
	struct sw_sync_shut *slot = sw_vec_push(&gpus->shut);
	if (slot != NULL)
		*slot = it;
}

void sw_agent_gpus_tell(struct sw_agent *agent, struct sw_sync *sync)
{
	struct sw_agent_gpus *gpus = &agent->gpus;
	const struct sw_sync *seen = gpus->seen;
	bool silent = gpus->silent;
	gpus->shut.count = 0;
	if (seen != NULL && gpus->is_new) {
		sync->samples = seen->samples;
		sync->sample_count = seen->sample_count;
	}
	if (seen == NULL && !silent)
		return;
	for (size_t g = 0; silent && sw_agent_gpus_known(agent) && g < gpus->known->inventory->gpu_count; g++)
		shut(gpus,
		     (struct sw_sync_shut){gpus->known->inventory->gpus[g].uuid, SW_SHUT_SILENT, gpus->silent_since_ns, gpus->silent_why});
	for (uint32_t g = 0; !silent && g < gpus->absent_count; g++)
		shut(gpus, (struct sw_sync_shut){gpus->absent[g].uuid, SW_SHUT_DEAD, gpus->absent_since_ns, "no answer"});
	for (size_t s = 0; !silent && seen != NULL && s < seen->shut_count; s++)
		shut(gpus, seen->shut[s]);
	sync->looked = silent || seen->looked;
	sync->look_ns = seen != NULL ? seen->look_ns : 0;
	sync->shut = gpus->shut.items;
	sync->shut_count = gpus->shut.count;
	sync->strangers = seen != NULL ? seen->strangers : NULL;
	sync->stranger_count = seen != NULL ? seen->stranger_count : 0;
}
