/* Consolidate only where it pays. A job whose largest tensor dominates its model suffers from the
 * network and must sit on as few nodes as can hold it. Any other goes wherever it fragments least.
 * Models of unknown skew count as sensitive: waiting for a good place is the smaller mistake for
 * them.
 *
 * The limit, 0.3, separates VGG and AlexNet (0.61 and more) from ResNet and
 * Inception (0.14 and less).
 */
#include <sharewell/policy.h>

#include "placement/idle_nodes.h"

#define SKEW_LIMIT_MILLI 300

static bool must_consolidate(const struct sw_job *job)
{
	return job->gpus > 1 && (job->skew_milli == 0 || job->skew_milli > SKEW_LIMIT_MILLI);
}

static uint32_t kind(const struct sw_view *view, const struct sw_job *job)
{
	(void)view;
	return must_consolidate(job);
}

/* As few nodes as can hold the job, in one rack. */
static bool consolidate(const struct sw_view *view, uint32_t gpus, uint32_t most, struct sw_spot *spot, struct sw_node_id first,
			struct sw_node_id end)
{
	if (most == 0)
		return false;
	if (gpus > most)
		sw_take_idle_nodes(view, spot, gpus, most, 0, 0, first, end);
	uint32_t rest = gpus - sw_spot_gpus(spot);
	struct sw_node_id node = rest == 0 ? SW_NO_NODE : sw_nodes_tightest(view, rest, first, end);
	if (node.v == SW_NO_NODE.v || sw_spot_add(spot, node, rest, 0, 0))
		return sw_spot_gpus(spot) == gpus;
	/* The tightest does not suit (its GPUs are too small, or it is in the spot):
	 * then the first that does. */
	node = sw_nodes_first(view, rest, first, end);
	while (node.v != SW_NO_NODE.v && !sw_spot_add(spot, node, rest, 0, 0))
		node = sw_nodes_first(view, rest, (struct sw_node_id){node.v + 1}, end);
	return sw_spot_gpus(spot) == gpus;
}

static bool place(const struct sw_view *view, const struct sw_job *job, uint32_t gpus, struct sw_spot *spot)
{
	if (!must_consolidate(job))
		return sw_spot_fill(view, spot, gpus);
	for (uint32_t rack = 0; rack < sw_view_racks(view); rack++) {
		struct sw_node_id first, end;
		sw_view_rack(view, rack, &first, &end);
		if (consolidate(view, gpus, sw_view_rack_node_gpus_max(view, rack), spot, first, end))
			return true;
		sw_spot_clear(spot);
	}
	return false;
}

const struct sw_placement sw_placement_skew = {
	.abi = SW_POLICY_ABI,
	.name = "skew",
	.about = "consolidate only models whose largest tensor dominates (Tiresias)",
	.kind = kind,
	.place = place,
};
