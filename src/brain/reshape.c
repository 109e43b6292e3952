/* A node that has other GPUs than it had, after a repair or a failure of one of them.
 *
 * GPUs are the same where their UUIDs are. What runs or stands still on those that are still there goes on, under the numbers that they have now; what was on others starts anew, there or elsewhere. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "brain/fold.h"
#include "brain/reshape.h"
#include "brain/runs.h"
#include "brain/shut.h"
#include "brain/state.h"

static struct sw_topology_change compare(const struct sw_brain_node *node, const struct sw_topology_node *shape,
					 const struct sw_brain_gpu *gpus)
{
	struct sw_topology_change change = {.shape = *shape};
	memset(change.to, SW_GPU_GONE, sizeof change.to);
	if (sw_topology_has_less(&node->shape, shape))
		return change;
	for (uint32_t g = 0; g < shape->gpus; g++) {
		uint32_t before = 0;
		/* Agents may send anything, one UUID twice too: no two GPUs become one. */
		while (before < node->shape.gpus &&
		       (change.to[before] != SW_GPU_GONE || strcmp(node->gpus[before].uuid, gpus[g].uuid) != 0))
			before++;
		if (before < node->shape.gpus)
			change.to[before] = (uint8_t)g;
	}
	return change;
}

/* The same GPUs under their new numbers; 0: not all of them are left. */
static uint64_t renumber_all(const struct sw_topology_change *change, uint64_t mask)
{
	uint64_t now = sw_topology_renumber(change, mask);
	return __builtin_popcountll(now) == __builtin_popcountll(mask) ? now : 0;
}

/* Whether it still is on GPUs that are gone, on its way to others: it cannot stay, and may never get there. */
static bool is_stranded(const struct sw_run *run, const struct sw_topology_change *change)
{
	return run->from != 0 && renumber_all(change, run->from) == 0;
}

/* The engine hears of each before the change, since the GPUs that it has one on may all be left. Of runs that do not stand it takes care itself. */
static int lose_parked(struct sw_brain *brain, const struct sw_brain_node *node, const struct sw_topology_change *change,
		       struct sw_err *err)
{
	int r = 0;
	for (size_t j = node->jobs.count; r == 0 && j-- > 0;) {
		uint32_t id = node->jobs.items[j];
		struct sw_live *live = &brain->jobs.items[id];
		const struct sw_run *run = sw_brain_run_on(live, (uint32_t)(node - brain->nodes.items));
		if (!live->parked || (renumber_all(change, run->mask) != 0 && !is_stranded(run, change)))
			continue;
		snprintf(live->reason, sizeof live->reason, "%s", SW_BRAIN_GPUS_GONE);
		r = sw_brain_lose_parked(brain, id, err);
		j = node->jobs.count; /* they have changed places */
	}
	return r;
}

/* The engine has them where they go, and knows nothing of where they are: they start anew there. */
static int restart_stranded(struct sw_brain *brain, uint32_t node, const struct sw_topology_change *change, struct sw_err *err)
{
	int r = 0;
	for (uint32_t id = sw_brain_next_known(brain, 0); r == 0 && id != SW_BITMAP_NONE; id = sw_brain_next_known(brain, id + 1)) {
		struct sw_live *live = &brain->jobs.items[id];
		const struct sw_run *run = sw_brain_run_on(live, node);
		if (run == NULL || live->parked || !is_stranded(run, change) || renumber_all(change, run->mask) == 0)
			continue;
		r = sw_brain_begin_anew(brain, id, err);
		snprintf(live->reason, sizeof live->reason, "%s", SW_BRAIN_GPUS_GONE);
	}
	return r;
}

static void renumber(struct sw_brain *brain, uint32_t node, const struct sw_topology_change *change)
{
	for (uint32_t id = sw_brain_next_known(brain, 0); id != SW_BITMAP_NONE; id = sw_brain_next_known(brain, id + 1)) {
		struct sw_live *live = &brain->jobs.items[id];
		struct sw_run *run = sw_brain_run_on(live, node);
		if (live->last_node == node)
			live->last_mask = sw_topology_renumber(change, live->last_mask);
		if (run == NULL)
			continue;
		run->mask = sw_topology_renumber(change, run->mask);
		run->from = renumber_all(change, run->from);
	}
}

int sw_brain_reshape(struct sw_brain *brain, struct sw_brain_node *node, const struct sw_topology_node *shape, struct sw_brain_gpu *gpus,
		     struct sw_err *err)
{
	uint32_t number = (uint32_t)(node - brain->nodes.items);
	const struct sw_topology_change change = compare(node, shape, gpus);
	bool gathers = brain->gathers;
	brain->gathers = true; /* the engine decides when it knows the GPUs */
	int r = lose_parked(brain, node, &change, err);
	r = r < 0 ? r : restart_stranded(brain, number, &change, err);
	brain->gathers = gathers;
	renumber(brain, number, &change);
	bool any_shut = (sw_brain_shut_mask(node->gpus, node->shape.gpus) | sw_brain_shut_mask(gpus, shape->gpus)) != 0;
	free(node->gpus);
	node->gpus = gpus;
	node->shape = *shape;
	node->up = true;
	node->version++;
	if (r < 0)
		return r;
	struct sw_event events[] = {
		{.kind = SW_EV_NODE_CHANGE, .node = {number}, .change = &change},
		{.kind = SW_EV_GPUS_SHUT, .node = {number}, .mask = sw_brain_shut_mask(gpus, shape->gpus)},
	};
	return sw_brain_step(brain, events, any_shut ? 2 : 1, err);
}
