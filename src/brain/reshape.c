/* A node that has other GPUs than it had, after a repair or a failure of one of them.
 *
 * GPUs are the same where their UUIDs are. What runs or stands still on those that are still there
 * goes on, under the numbers that they have now. What was on others starts anew, there or
 * elsewhere. */
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
	}
}

int sw_brain_reshape(struct sw_brain *brain, struct sw_brain_node *node, const struct sw_topology_node *shape, struct sw_brain_gpu *gpus,
		     struct sw_err *err)
{
	uint32_t number = (uint32_t)(node - brain->nodes.items);
	const struct sw_topology_change change = compare(node, shape, gpus);
	renumber(brain, number, &change);
	bool any_shut = (sw_brain_shut_mask(node->gpus, node->shape.gpus) | sw_brain_shut_mask(gpus, shape->gpus)) != 0;
	free(node->gpus);
	node->gpus = gpus;
	node->shape = *shape;
	node->up = true;
	node->version++;
	struct sw_event events[] = {
		{.kind = SW_EV_NODE_CHANGE, .node = {number}, .change = &change},
		{.kind = SW_EV_GPUS_SHUT, .node = {number}, .mask = sw_brain_shut_mask(gpus, shape->gpus)},
	};
	return sw_brain_step(brain, events, any_shut ? 2 : 1, err);
}
