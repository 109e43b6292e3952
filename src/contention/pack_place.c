/* Sets on nodes: bin packing, the largest set first. */
#include <stdlib.h>
#include <string.h>

#include "contention/pack.h"

struct item {
	struct sw_pack_need need;
	uint32_t set;
};

struct sw_pack_need sw_pack_need_of(const struct sw_profile *const *jobs, size_t count, uint64_t cores_milli, uint64_t mem_bytes)
{
	struct sw_pack_need need = {0};
	uint64_t cpu = 0, mem = 0;
	for (size_t i = 0; i < count; i++) {
		cpu += jobs[i]->use_milli[SW_USE_HOST_CPU];
		mem += jobs[i]->use_milli[SW_USE_HOST_MEM];
	}
	need.cores_milli = (cores_milli * cpu + 500) / 1000;
	need.mem_bytes = mem_bytes / 1000 * mem + (mem_bytes % 1000 * mem + 999) / 1000;
	return need;
}

/* Memory first: it is what may not be exceeded. */
static int compare_items(const void *left, const void *right)
{
	const struct item *a = left, *b = right;
	if (a->need.mem_bytes != b->need.mem_bytes)
		return a->need.mem_bytes < b->need.mem_bytes ? 1 : -1;
	if (a->need.cores_milli != b->need.cores_milli)
		return a->need.cores_milli < b->need.cores_milli ? 1 : -1;
	return (a->set > b->set) - (a->set < b->set);
}

/* In millionths. */
static uint64_t part(uint64_t used, uint64_t total)
{
	/* Products must fit: nothing is lost by dropping digits that make no millionth. */
	while (used > UINT64_MAX / 1000000) {
		used >>= 1;
		total >>= 1;
	}
	return used * 1000000 / (total > 0 ? total : 1);
}

static uint64_t excess(uint64_t part_ppm)
{
	return part_ppm > 1000000 ? part_ppm - 1000000 : 0;
}

/* What the node would be like with the set on it; less is better. */
struct score {
	uint64_t more_excess, fullness;
};

static struct score score_of(const struct sw_pack_node *node, const struct sw_pack_need *need)
{
	uint64_t cores_before = part(node->cores_used_milli, node->cores_milli);
	uint64_t cores = part(node->cores_used_milli + need->cores_milli, node->cores_milli);
	uint64_t mem = part(node->mem_used_bytes + need->mem_bytes, node->mem_bytes);
	return (struct score){excess(cores) - excess(cores_before), cores > mem ? cores : mem};
}

static bool has_room(const struct sw_pack_node *node, const struct sw_pack_need *need)
{
	return node->free_gpus > 0 && node->mem_used_bytes <= node->mem_bytes && need->mem_bytes <= node->mem_bytes - node->mem_used_bytes;
}

static uint32_t best_node(const struct sw_pack_node *nodes, size_t count, const struct sw_pack_need *need)
{
	uint32_t best = SW_PACK_NOWHERE;
	struct score least = {0};
	for (uint32_t n = 0; n < count; n++) {
		if (!has_room(&nodes[n], need))
			continue;
		struct score score = score_of(&nodes[n], need);
		if (best == SW_PACK_NOWHERE || score.more_excess < least.more_excess ||
		    (score.more_excess == least.more_excess && score.fullness < least.fullness)) {
			best = n;
			least = score;
		}
	}
	return best;
}

int sw_pack_place(const struct sw_pack_need *needs, size_t count, const struct sw_pack_node *nodes, size_t node_count, uint32_t *ret_nodes)
{
	SW_CLEANUP(sw_freep) struct item *items = calloc(count + 1, sizeof *items);
	SW_CLEANUP(sw_freep) struct sw_pack_node *filled = calloc(node_count + 1, sizeof *filled);
	if (items == NULL || filled == NULL)
		return SW_ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		items[i] = (struct item){needs[i], i};
	for (size_t n = 0; n < node_count; n++)
		filled[n] = nodes[n];
	qsort(items, count, sizeof *items, compare_items);
	for (size_t i = 0; i < count; i++) {
		uint32_t node = best_node(filled, node_count, &items[i].need);
		ret_nodes[items[i].set] = node;
		if (node == SW_PACK_NOWHERE)
			continue;
		filled[node].free_gpus--;
		filled[node].cores_used_milli += items[i].need.cores_milli;
		filled[node].mem_used_bytes += items[i].need.mem_bytes;
	}
	return 0;
}
