#include "sim/boots.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/heap.h"

struct node {
	bool off;
	bool broken;
};

struct sw_boots {
	int64_t boot_ns;
	struct node *nodes;
	struct sw_heap ups; /* by node: when it is up */
};

int sw_boots_new(uint32_t nodes, int64_t boot_ns, struct sw_boots **ret_boots)
{
	struct sw_boots *boots = calloc(1, sizeof *boots);
	if (boots == NULL)
		return SW_ENOMEM;
	boots->boot_ns = boot_ns;
	boots->nodes = calloc((size_t)nodes + 1, sizeof *boots->nodes);
	if (boots->nodes == NULL || sw_heap_reserve(&boots->ups, nodes) < 0) {
		sw_boots_free(boots);
		return SW_ENOMEM;
	}
	*ret_boots = boots;
	return 0;
}

void sw_boots_free(struct sw_boots *boots)
{
	sw_heap_release(&boots->ups);
	free(boots->nodes);
	free(boots);
}

void sw_boots_switch(struct sw_boots *boots, uint32_t node, bool on, int64_t now)
{
	boots->nodes[node].off = !on;
	/* One that is broken is up once it is repaired. */
	if (on && !boots->nodes[node].broken)
		sw_heap_set(&boots->ups, node, now > INT64_MAX - boots->boot_ns ? INT64_MAX - 1 : now + boots->boot_ns);
	else
		sw_heap_remove(&boots->ups, node);
}

bool sw_boots_passes_fault(struct sw_boots *boots, uint32_t node, bool up)
{
	boots->nodes[node].broken = !up;
	/* It breaks on its way up. */
	if (!up)
		sw_heap_remove(&boots->ups, node);
	return !boots->nodes[node].off;
}

int64_t sw_boots_next(const struct sw_boots *boots)
{
	return sw_heap_top_key(&boots->ups);
}

bool sw_boots_take(struct sw_boots *boots, int64_t now, uint32_t *ret_node)
{
	if (sw_heap_top_key(&boots->ups) > now)
		return false;
	*ret_node = boots->ups.entries[0].id;
	sw_heap_remove(&boots->ups, *ret_node);
	return true;
}
