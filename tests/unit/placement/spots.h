/* A cluster on which a test occupies GPUs by hand and asks a placement rule for a
 * spot. Include after cmocka. */
#ifndef SW_TESTS_UNIT_PLACEMENT_SPOTS_H
#define SW_TESTS_UNIT_PLACEMENT_SPOTS_H

#include "base/rng.h"
#include "unit/core/rig.h"

/* fifo is only there because an engine needs a policy; nothing is ever submitted. */
static inline void spots_open(struct rig *rig, const struct sw_topology_node *nodes, uint32_t count)
{
	rig_open(rig, nodes, count, (struct sw_engine_config){.policy = &sw_policy_fifo}, NULL);
}

static inline struct sw_ledger *spots_ledger(const struct rig *rig)
{
	return (struct sw_ledger *)(uintptr_t)sw_engine_ledger(rig->engine);
}

/* A job holds so many GPUs of a node, with CPUs and memory. */
static inline void spots_occupy_with(const struct rig *rig, uint32_t node, uint32_t gpus, uint32_t cpus, uint64_t memory_bytes)
{
	const struct sw_share whole = {.compute_milli = 1000, .guaranteed = true};
	struct sw_spot spot;
	sw_spot_begin(&spot, spots_ledger(rig), whole);
	assert_true(sw_spot_add(&spot, (struct sw_node_id){node}, gpus, cpus, memory_bytes));
	sw_ledger_take(spots_ledger(rig), spot.head, whole);
}

static inline void spots_occupy(const struct rig *rig, uint32_t node, uint32_t gpus)
{
	spots_occupy_with(rig, node, gpus, 0, 0);
}

/* Where the rule puts a job: "node:gpus node:gpus" in the order it took them; "nowhere". */
static inline const char *spots_place(const struct rig *rig, const struct sw_placement *rule, struct sw_job job)
{
	static char text[256];
	struct sw_ledger *ledger = spots_ledger(rig);
	struct sw_spot spot;
	size_t used = 0;
	uint32_t free = ledger->gpus_free;
	sw_spot_begin(&spot, ledger,
		      (struct sw_share){.gpu_memory_bytes = job.gpu_memory_bytes, .compute_milli = 1000, .guaranteed = true});
	if (!rule->place(sw_engine_view(rig->engine), &job, job.gpus, &spot) || spot.gpus != job.gpus) {
		sw_spot_discard(&spot);
		return "nowhere";
	}
	assert_true(sw_ledger_fits(ledger, spot.head, spot.share));
	for (uint32_t p = spot.head; p != SW_NO_PART; p = ledger->parts[p].next)
		used += (size_t)snprintf(text + used, sizeof text - used, "%s%u:%d", used > 0 ? " " : "", ledger->parts[p].node,
					 __builtin_popcountll(ledger->parts[p].mask));
	sw_spot_discard(&spot);
	assert_int_equal(ledger->gpus_free, free); /* looking takes nothing */
	return text;
}

static inline const char *spots_place_plain(const struct rig *rig, const struct sw_placement *rule, uint32_t gpus)
{
	return spots_place(rig, rule, (struct sw_job){.gpus = gpus, .min_gpus = gpus, .max_gpus = gpus});
}

/* A rule keeps its promises on any cluster: a spot of the right size on GPUs that are free
 * and large enough; and, if it promises that a count is enough, a spot whenever so many
 * GPUs that suit are free. */
static inline void spots_try_all(const struct sw_placement *rule)
{
	struct sw_rng rng;
	sw_rng_seed(&rng, 11);
	for (int round = 0; round < 400; round++) {
		struct sw_topology_node nodes[8];
		uint32_t count = 1 + (uint32_t)sw_rng_below(&rng, 8), rack = 0;
		for (uint32_t n = 0; n < count; n++) {
			const struct sw_topology_node shape =
				RIG_NODE(rack += n > 0 && sw_rng_below(&rng, 3) == 0, 1 + (uint32_t)sw_rng_below(&rng, 8));
			nodes[n] = shape;
			nodes[n].link_group = (uint32_t)sw_rng_below(&rng, 5);
			nodes[n].gpu_memory_bytes = sw_rng_below(&rng, 3) == 0 ? 16 * RIG_GIB : 80 * RIG_GIB;
		}
		struct rig rig;
		spots_open(&rig, nodes, count);
		for (uint32_t n = 0; n < count; n++) {
			uint32_t busy = (uint32_t)sw_rng_below(&rng, nodes[n].gpus + 1);
			if (busy > 0)
				spots_occupy(&rig, n, busy);
			if (sw_rng_below(&rng, 8) == 0 && busy == 0)
				sw_ledger_set_up(spots_ledger(&rig), n, false);
		}
		for (uint32_t gpus = 1; gpus <= rig.topology->gpu_count; gpus++) {
			struct sw_job job = {
				.gpus = gpus, .min_gpus = gpus, .max_gpus = gpus, .skew_milli = (uint16_t)sw_rng_below(&rng, 1000)};
			job.gpu_memory_bytes = sw_rng_below(&rng, 2) == 0 ? 0 : 40 * RIG_GIB;
			uint32_t suit = 0;
			for (uint32_t n = 0; n < count; n++) {
				struct sw_node seen;
				sw_view_node(sw_engine_view(rig.engine), (struct sw_node_id){n}, &seen);
				suit += seen.gpu_memory_bytes >= job.gpu_memory_bytes ? seen.gpus_free : 0;
			}
			bool found = strcmp(spots_place(&rig, rule, job), "nowhere") != 0;
			if (found ? suit < gpus : rule->counts_only && suit >= gpus)
				fail_msg("%s, round %d: %u GPUs of %u that suit: %s", rule->name, round, gpus, suit,
					 found ? "found" : "not found");
		}
		rig_close(&rig);
	}
}

#endif
