/* The ledger against a naive model, and by hand where a property says too little. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "core/ledger.h"

#define GIB (UINT64_C(1) << 30)
#define HOLDINGS 24
#define NODES_MAX 6
#define STEPS 600

/* ---- a naive model: every holding is a list of (node, GPU), everything is added
 * up anew each time ---- */

struct holding {
	bool taken;
	uint32_t parts;
	struct sw_share share;
	struct {
		uint32_t node, gpu;
	} gpus[64];
	uint32_t gpu_count;
	uint32_t cpus[NODES_MAX];
	uint64_t memory[NODES_MAX];
};

struct model {
	const struct sw_topology *topology;
	struct holding holdings[HOLDINGS];
	bool up[NODES_MAX];
};

struct gpu_sum {
	uint64_t bytes;
	uint32_t compute, residents, use, guaranteed;
	bool whole;
};

static struct gpu_sum sum_gpu(const struct model *model, uint32_t node, uint32_t gpu)
{
	struct gpu_sum sum = {0};
	for (int h = 0; h < HOLDINGS; h++) {
		const struct holding *holding = &model->holdings[h];
		for (uint32_t g = 0; holding->taken && g < holding->gpu_count; g++) {
			if (holding->gpus[g].node != node || holding->gpus[g].gpu != gpu)
				continue;
			bool whole = holding->share.gpu_memory_bytes == 0;
			sum.bytes += whole ? model->topology->nodes[node].gpu_memory_bytes : holding->share.gpu_memory_bytes;
			sum.compute += holding->share.guaranteed ? holding->share.compute_milli : 0;
			sum.use += holding->share.use_milli;
			sum.guaranteed += holding->share.guaranteed;
			sum.residents++;
			sum.whole |= whole;
		}
	}
	return sum;
}

static uint32_t free_of(const struct model *model, uint32_t node)
{
	uint32_t free = 0;
	for (uint32_t g = 0; g < model->topology->nodes[node].gpus; g++)
		free += sum_gpu(model, node, g).residents == 0;
	return model->up[node] ? free : 0;
}

/* As if opportunistic holdings were not there. */
static void expect_seen_through(const struct model *model, struct sw_ledger *ledger)
{
	uint32_t all = 0;
	sw_ledger_see_through(ledger, (struct sw_share){.gpu_memory_bytes = 1}, true);
	for (uint32_t n = 0; n < model->topology->node_count; n++) {
		uint32_t free = 0, cpus = model->topology->nodes[n].cpus;
		uint64_t memory = model->topology->nodes[n].memory_bytes;
		for (int h = 0; h < HOLDINGS; h++) {
			bool counts = model->holdings[h].taken && model->holdings[h].share.guaranteed;
			cpus -= counts ? model->holdings[h].cpus[n] : 0;
			memory -= counts ? model->holdings[h].memory[n] : 0;
		}
		for (uint32_t g = 0; g < model->topology->nodes[n].gpus; g++)
			free += sum_gpu(model, n, g).guaranteed == 0;
		for (uint32_t b = 0; b <= model->topology->node_gpus_max; b++)
			assert_int_equal(sw_bitmap_has(&ledger->buckets[b], n), model->up[n] && b == free);
		/* A job that shares all its GPUs with guaranteed ones holds no CPUs there. */
		if (ledger->nodes[n].yielding != 0) {
			assert_int_equal(ledger->nodes[n].cpus_free, cpus);
			assert_int_equal(ledger->nodes[n].memory_free_bytes, memory);
		}
		all += model->up[n] ? free : 0;
	}
	assert_int_equal(ledger->gpus_free, all);
	sw_ledger_see_through(ledger, (struct sw_share){0}, false);
}

/* GPUs by use: all that have residents and room for one more, once, in steps. */
static void expect_found_by_use(const struct model *model, const struct sw_ledger *ledger, struct sw_rng *rng)
{
	uint32_t below = (uint32_t)sw_rng_below(rng, 1200), expected = 0, found = 0, last_step = 0;
	for (uint32_t n = 0; n < model->topology->node_count; n++) {
		for (uint32_t g = 0; g < model->topology->nodes[n].gpus; g++) {
			struct gpu_sum sum = sum_gpu(model, n, g);
			expected += sum.residents > 0 && sum.residents < SW_GPU_RESIDENTS_MAX && !sum.whole && sum.use < below;
		}
	}
	for (uint32_t step = 0, gpu = 0; sw_ledger_next_used(ledger, below, &step, &gpu); gpu++, found++) {
		assert_true(step >= last_step && ledger->gpus[gpu].use_milli < below);
		last_step = step;
	}
	assert_int_equal(found, expected);
}

static uint32_t cpus_free_of(const struct model *model, uint32_t node)
{
	uint32_t free = model->topology->nodes[node].cpus;
	for (int h = 0; h < HOLDINGS; h++)
		free -= model->holdings[h].taken ? model->holdings[h].cpus[node] : 0;
	return free;
}

static uint64_t memory_free_of(const struct model *model, uint32_t node)
{
	uint64_t free = model->topology->nodes[node].memory_bytes;
	for (int h = 0; h < HOLDINGS; h++)
		free -= model->holdings[h].taken ? model->holdings[h].memory[node] : 0;
	return free;
}

/* Whether this share could be taken beside what is there. */
static bool could_take(const struct model *model, const struct holding *holding, struct sw_share share)
{
	for (uint32_t g = 0; g < holding->gpu_count; g++) {
		const struct sw_topology_node *node = &model->topology->nodes[holding->gpus[g].node];
		struct gpu_sum sum = sum_gpu(model, holding->gpus[g].node, holding->gpus[g].gpu);
		bool whole = share.gpu_memory_bytes == 0;
		if (!model->up[holding->gpus[g].node] || sum.whole || (whole && sum.residents > 0) || sum.residents >= SW_GPU_RESIDENTS_MAX)
			return false;
		if (share.guaranteed && sum.compute + share.compute_milli > SW_COMPUTE_WHOLE)
			return false;
		if (sum.bytes + (whole ? node->gpu_memory_bytes : share.gpu_memory_bytes) > node->gpu_memory_bytes)
			return false;
	}
	for (uint32_t n = 0; n < model->topology->node_count; n++)
		if (cpus_free_of(model, n) < holding->cpus[n] || memory_free_of(model, n) < holding->memory[n])
			return false;
	return true;
}

static void expect_equal(const struct model *model, const struct sw_ledger *ledger)
{
	uint32_t up = 0, free = 0;
	for (uint32_t n = 0; n < model->topology->node_count; n++) {
		const struct sw_ledger_node *node = &ledger->nodes[n];
		assert_int_equal(node->up, model->up[n]);
		assert_int_equal(node->cpus_free, cpus_free_of(model, n));
		assert_int_equal(node->memory_free_bytes, memory_free_of(model, n));
		for (uint32_t g = 0; g < model->topology->nodes[n].gpus; g++) {
			struct gpu_sum sum = sum_gpu(model, n, g);
			const struct sw_gpu *gpu = &ledger->gpus[node->first_gpu + g];
			assert_int_equal(gpu->memory_held_bytes, sum.bytes);
			assert_int_equal(gpu->compute_held_milli, sum.compute);
			assert_int_equal(gpu->residents, sum.residents);
			assert_int_equal(gpu->use_milli, sum.use);
			for (uint32_t r = 0; r < gpu->residents; r++)
				assert_true(model->holdings[gpu->who[r]].taken && (r == 0 || gpu->who[r] > gpu->who[r - 1]));
			if (model->up[n])
				assert_int_equal(node->free >> g & 1, sum.residents == 0);
		}
		for (uint32_t b = 0; b <= model->topology->node_gpus_max; b++)
			assert_int_equal(sw_bitmap_has(&ledger->buckets[b], n), model->up[n] && b == free_of(model, n));
		up += model->up[n] ? model->topology->nodes[n].gpus : 0;
		free += free_of(model, n);
	}
	assert_int_equal(ledger->gpus_up, up);
	assert_int_equal(ledger->gpus_free, free);
}

/* The searches by looking at every node. */
static void expect_searches(const struct model *model, const struct sw_ledger *ledger, struct sw_rng *rng)
{
	uint32_t count = model->topology->node_count, from = (uint32_t)sw_rng_below(rng, count),
		 end = from + (uint32_t)sw_rng_below(rng, count - from + 1);
	uint32_t wanted = 1 + (uint32_t)sw_rng_below(rng, 9);
	uint32_t first = UINT32_MAX, tightest = UINT32_MAX;
	for (uint32_t n = from; n < end; n++) {
		uint32_t free = free_of(model, n);
		if (!model->up[n] || free < wanted)
			continue;
		if (first == UINT32_MAX)
			first = n;
		if (tightest == UINT32_MAX || free < free_of(model, tightest))
			tightest = n;
	}
	assert_int_equal(sw_ledger_first(ledger, wanted, from, end), first);
	assert_int_equal(sw_ledger_tightest(ledger, wanted, from, end), tightest);
}

/* ---- random operations ---- */

static struct sw_share draw_share(const struct model *model, const struct holding *holding, struct sw_rng *rng)
{
	return (struct sw_share){
		.use_milli = (uint16_t)sw_rng_below(rng, 1001),
		.job = (uint32_t)(holding - model->holdings),
		.gpu_memory_bytes = sw_rng_below(rng, 3) == 0 ? 0 : (1 + sw_rng_below(rng, 20)) * GIB,
		.compute_milli = 1 + (uint32_t)sw_rng_below(rng, 1000),
		.guaranteed = sw_rng_below(rng, 2),
	};
}

/* Notes what the parts say. */
static void write_down(struct holding *holding, const struct sw_ledger *ledger, uint32_t parts, struct sw_share share)
{
	*holding = (struct holding){.parts = parts, .share = share};
	for (uint32_t p = parts; p != SW_NO_PART; p = ledger->parts[p].next) {
		const struct sw_part *part = &ledger->parts[p];
		holding->cpus[part->node] = part->cpus;
		holding->memory[part->node] = part->memory_bytes;
		for (uint32_t g = 0; g < 64; g++) {
			if ((part->mask >> g & 1) == 0)
				continue;
			holding->gpus[holding->gpu_count].node = part->node;
			holding->gpus[holding->gpu_count++].gpu = g;
		}
	}
}

/* A spot on whole free GPUs of some nodes. */
static void take_spot(struct model *model, struct sw_ledger *ledger, struct holding *holding, struct sw_rng *rng)
{
	struct sw_share share = draw_share(model, holding, rng);
	struct sw_spot spot;
	uint32_t gathered = 0;
	sw_spot_begin(&spot, ledger, share);
	for (uint64_t tries = 1 + sw_rng_below(rng, 4); tries > 0; tries--) {
		uint32_t node = (uint32_t)sw_rng_below(rng, model->topology->node_count + 1), gpus = (uint32_t)sw_rng_below(rng, 5);
		uint32_t cpus = (uint32_t)sw_rng_below(rng, 10);
		uint64_t memory = sw_rng_below(rng, 10) * GIB;
		bool known = node < model->topology->node_count, used = known && sw_ledger_touches(ledger, spot.head, node);
		bool fits = known && !used && gpus > 0 && free_of(model, node) >= gpus && cpus_free_of(model, node) >= cpus &&
			    memory_free_of(model, node) >= memory &&
			    model->topology->nodes[node].gpu_memory_bytes >= share.gpu_memory_bytes;
		assert_int_equal(sw_spot_add(&spot, (struct sw_node_id){node}, gpus, cpus, memory), fits);
		gathered += fits ? gpus : 0;
		assert_int_equal(sw_spot_gpus(&spot), gathered);
		if (sw_rng_below(rng, 10) == 0) {
			sw_spot_clear(&spot);
			gathered = 0;
		}
	}
	if (gathered == 0) {
		sw_spot_discard(&spot);
		return;
	}
	write_down(holding, ledger, spot.head, share);
	assert_int_equal(sw_ledger_count_gpus(ledger, spot.head), gathered);
	assert_true(sw_ledger_fits(ledger, spot.head, share));
	assert_true(could_take(model, holding, share));
	sw_ledger_take(ledger, spot.head, share);
	holding->taken = true;
}

/* Beside a job on the same GPUs. */
static void take_beside(struct model *model, struct sw_ledger *ledger, struct holding *holding, struct sw_rng *rng)
{
	const struct holding *host = &model->holdings[sw_rng_below(rng, HOLDINGS)];
	if (!host->taken)
		return;
	struct sw_share share = draw_share(model, holding, rng);
	uint32_t parts = sw_ledger_copy_parts(ledger, host->parts);
	assert_int_not_equal(parts, SW_NO_PART);
	write_down(holding, ledger, parts, share);
	bool fits = could_take(model, holding, share);
	assert_int_equal(sw_ledger_fits(ledger, parts, share), fits);
	if (fits)
		sw_ledger_take(ledger, parts, share);
	else
		sw_ledger_drop_parts(ledger, parts);
	holding->taken = fits;
}

static void give_back(struct sw_ledger *ledger, struct holding *holding)
{
	sw_ledger_give(ledger, holding->parts, holding->share);
	sw_ledger_drop_parts(ledger, holding->parts);
	holding->taken = false;
}

/* A node goes down once no job holds anything there, as the engine does it; and comes back. */
static void turn(struct model *model, struct sw_ledger *ledger, struct sw_rng *rng)
{
	uint32_t node = (uint32_t)sw_rng_below(rng, model->topology->node_count);
	for (int h = 0; model->up[node] && h < HOLDINGS; h++)
		if (model->holdings[h].taken && sw_ledger_touches(ledger, model->holdings[h].parts, node))
			give_back(ledger, &model->holdings[h]);
	model->up[node] = !model->up[node];
	sw_ledger_set_up(ledger, node, model->up[node]);
}

static struct sw_topology *draw_topology(struct sw_rng *rng)
{
	struct sw_topology_node nodes[NODES_MAX];
	uint32_t count = 1 + (uint32_t)sw_rng_below(rng, NODES_MAX);
	for (uint32_t n = 0; n < count; n++)
		nodes[n] = (struct sw_topology_node){
			.gpus = (const uint32_t[]){1, 2, 4, 8}[sw_rng_below(rng, 4)],
			.link_group = (const uint32_t[]){0, 1, 2, 4}[sw_rng_below(rng, 4)],
			.cpus = 8 + (uint32_t)sw_rng_below(rng, 32),
			.memory_bytes = (16 + sw_rng_below(rng, 32)) * GIB,
			.gpu_memory_bytes = (8 + sw_rng_below(rng, 24)) * GIB,
		};
	struct sw_topology *topology = NULL;
	assert_int_equal(sw_topology_new(nodes, count, &topology, NULL), 0);
	return topology;
}

/* A second ledger into which everything is taken anew says the same. */
static void expect_derivable(const struct model *model, struct sw_ledger *ledger)
{
	struct sw_ledger derived;
	struct sw_err err = {0};
	assert_int_equal(sw_ledger_init(&derived, model->topology), 0);
	struct sw_part *own = derived.parts;
	derived.parts = ledger->parts;
	for (uint32_t n = 0; n < model->topology->node_count; n++)
		sw_ledger_set_up(&derived, n, model->up[n]);
	for (int h = 0; h < HOLDINGS; h++)
		if (model->holdings[h].taken)
			sw_ledger_take(&derived, model->holdings[h].parts, model->holdings[h].share);
	if (sw_ledger_matches(ledger, &derived, &err) < 0)
		fail_msg("%s", err.fact);
	derived.parts = own;
	sw_ledger_release(&derived);
}

/* Aim: whatever is taken, shared, given back, or goes down, the ledger counts as a sum by hand. */
static void test_against_a_naive_model(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 30; seed++) {
		struct sw_rng rng;
		struct sw_ledger ledger;
		struct model model = {0};
		sw_rng_seed(&rng, seed);
		SW_CLEANUP(sw_topology_freep) struct sw_topology *topology = draw_topology(&rng);
		model.topology = topology;
		for (uint32_t n = 0; n < NODES_MAX; n++)
			model.up[n] = true;
		assert_int_equal(sw_ledger_init(&ledger, topology), 0);
		for (int step = 0; step < STEPS; step++) {
			struct holding *holding = &model.holdings[sw_rng_below(&rng, HOLDINGS)];
			if (holding->taken)
				give_back(&ledger, holding);
			else if (sw_rng_below(&rng, 12) == 0)
				turn(&model, &ledger, &rng);
			else if (sw_rng_below(&rng, 3) == 0)
				take_beside(&model, &ledger, holding, &rng);
			else
				take_spot(&model, &ledger, holding, &rng);
			expect_equal(&model, &ledger);
			expect_seen_through(&model, &ledger);
			expect_equal(&model, &ledger);
			expect_found_by_use(&model, &ledger, &rng);
			expect_searches(&model, &ledger, &rng);
			if (step % 50 == 0)
				expect_derivable(&model, &ledger);
		}
		sw_ledger_release(&ledger);
	}
}

/* ---- by hand ---- */

static const struct sw_share whole = {.compute_milli = 1000, .guaranteed = true};

/* A holding on these masks of nodes; 0 leaves a node out. */
static uint32_t hold(struct sw_ledger *ledger, const uint64_t *masks, uint32_t count)
{
	uint32_t head = SW_NO_PART;
	struct sw_spot spot;
	for (uint32_t n = count; n-- > 0;) {
		if (masks[n] == 0)
			continue;
		sw_spot_begin(&spot, ledger, whole);
		assert_true(sw_spot_add(&spot, (struct sw_node_id){n}, 1, 0, 0));
		ledger->parts[spot.head].mask = masks[n];
		ledger->parts[spot.head].next = head;
		head = spot.head;
	}
	return head;
}

/* Aim: how far apart the GPUs of a holding are follows link groups, nodes and racks. */
static void test_distances(void **state)
{
	(void)state;
	const struct sw_topology_node nodes[] = {
		{.rack = 0, .gpus = 8, .link_group = 4},
		{.rack = 0, .gpus = 8},
		{.rack = 1, .gpus = 2, .link_group = 1},
	};
	static const struct {
		uint64_t masks[3];
		enum sw_distance distance;
	} cases[] = {
		{{0x01, 0, 0}, SW_WITHIN_GROUP},  {{0x0f, 0, 0}, SW_WITHIN_GROUP}, {{0xf0, 0, 0}, SW_WITHIN_GROUP},
		{{0x18, 0, 0}, SW_WITHIN_NODE},	  {{0xff, 0, 0}, SW_WITHIN_NODE},  {{0, 0xff, 0}, SW_WITHIN_GROUP},
		{{0, 0, 0x3}, SW_WITHIN_NODE},	  {{0, 0, 0x2}, SW_WITHIN_GROUP},  {{0x1, 0x1, 0}, SW_WITHIN_RACK},
		{{0, 0x1, 0x1}, SW_ACROSS_RACKS}, {{1, 1, 1}, SW_ACROSS_RACKS},
	};
	SW_CLEANUP(sw_topology_freep) struct sw_topology *topology = NULL;
	struct sw_ledger ledger;
	assert_int_equal(sw_topology_new(nodes, 3, &topology, NULL), 0);
	assert_int_equal(sw_ledger_init(&ledger, topology), 0);
	for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
		uint32_t parts = hold(&ledger, cases[c].masks, 3);
		assert_int_equal(sw_ledger_distance(&ledger, parts), cases[c].distance);
		sw_ledger_drop_parts(&ledger, parts);
	}
	assert_int_equal(sw_ledger_distance(&ledger, SW_NO_PART), SW_WITHIN_GROUP);
	sw_ledger_release(&ledger);
}

/* Aim: GPUs are picked from the link group that fits tightest; a job larger than a group
 * takes the lowest free ones. */
static void test_link_groups_first(void **state)
{
	(void)state;
	const struct sw_topology_node node = {.gpus = 8, .link_group = 4, .gpu_memory_bytes = GIB};
	static const struct {
		uint64_t busy;
		uint32_t wanted;
		uint64_t picked;
	} cases[] = {
		{0x00, 1, 0x01}, {0x00, 4, 0x0f}, {0x01, 4, 0xf0}, {0x0c, 2, 0x03}, {0x30, 2, 0xc0}, {0x13, 2, 0x0c},
		{0x01, 3, 0x0e}, {0x11, 3, 0x0e}, {0x03, 3, 0x70}, {0x33, 3, 0x4c}, {0x00, 5, 0x1f}, {0x81, 6, 0x7e},
	};
	SW_CLEANUP(sw_topology_freep) struct sw_topology *topology = NULL;
	assert_int_equal(sw_topology_new(&node, 1, &topology, NULL), 0);
	for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
		struct sw_ledger ledger;
		struct sw_spot spot;
		assert_int_equal(sw_ledger_init(&ledger, topology), 0);
		if (cases[c].busy != 0)
			sw_ledger_take(&ledger, hold(&ledger, &cases[c].busy, 1), whole);
		sw_spot_begin(&spot, &ledger, whole);
		assert_true(sw_spot_add(&spot, (struct sw_node_id){0}, cases[c].wanted, 0, 0));
		if (ledger.parts[spot.head].mask != cases[c].picked)
			fail_msg("case %zu: picked %llx, not %llx", c, (unsigned long long)ledger.parts[spot.head].mask,
				 (unsigned long long)cases[c].picked);
		sw_ledger_release(&ledger);
	}
}

/* Aim: a node of 64 GPUs, the widest there is, can be taken whole and given back. */
static void test_widest_node(void **state)
{
	(void)state;
	const struct sw_topology_node node = {.gpus = 64, .link_group = 8, .gpu_memory_bytes = GIB};
	SW_CLEANUP(sw_topology_freep) struct sw_topology *topology = NULL;
	struct sw_ledger ledger;
	struct sw_spot spot;
	assert_int_equal(sw_topology_new(&node, 1, &topology, NULL), 0);
	assert_int_equal(sw_ledger_init(&ledger, topology), 0);
	sw_spot_begin(&spot, &ledger, whole);
	assert_true(sw_spot_add(&spot, (struct sw_node_id){0}, 64, 0, 0));
	assert_int_equal(ledger.parts[spot.head].mask, UINT64_MAX);
	sw_ledger_take(&ledger, spot.head, whole);
	assert_int_equal(ledger.gpus_free, 0);
	assert_int_equal(sw_ledger_first(&ledger, 1, 0, 1), UINT32_MAX);
	sw_ledger_give(&ledger, spot.head, whole);
	assert_int_equal(ledger.gpus_free, 64);
	assert_int_equal(sw_ledger_first(&ledger, 64, 0, 1), 0);
	sw_ledger_release(&ledger);
}

/* Aim: a copy for a neighbour names the same GPUs and asks for no CPUs or memory; equal lists are
 * recognised, others not. */
static void test_copies(void **state)
{
	(void)state;
	const struct sw_topology_node nodes[] = {{.gpus = 2, .cpus = 8, .memory_bytes = GIB}, {.gpus = 2, .cpus = 8, .memory_bytes = GIB}};
	SW_CLEANUP(sw_topology_freep) struct sw_topology *topology = NULL;
	struct sw_ledger ledger;
	struct sw_spot spot;
	assert_int_equal(sw_topology_new(nodes, 2, &topology, NULL), 0);
	assert_int_equal(sw_ledger_init(&ledger, topology), 0);
	sw_spot_begin(&spot, &ledger, whole);
	assert_true(sw_spot_add(&spot, (struct sw_node_id){0}, 1, 4, GIB / 2));
	assert_true(sw_spot_add(&spot, (struct sw_node_id){1}, 2, 0, 0));
	assert_false(sw_spot_add(&spot, (struct sw_node_id){1}, 1, 0, 0));
	uint32_t copy = sw_ledger_copy_parts(&ledger, spot.head);
	assert_int_equal(sw_ledger_count_gpus(&ledger, copy), 3);
	assert_int_equal(ledger.parts[copy].cpus, 0);
	assert_int_equal(ledger.parts[copy].memory_bytes, 0);
	assert_int_equal(ledger.parts[copy].mask, ledger.parts[spot.head].mask);
	assert_false(sw_ledger_same_parts(&ledger, copy, spot.head));
	assert_true(sw_ledger_same_parts(&ledger, copy, copy));
	assert_false(sw_ledger_same_parts(&ledger, copy, SW_NO_PART));
	uint32_t twin = sw_ledger_copy_parts(&ledger, copy);
	assert_true(sw_ledger_same_parts(&ledger, copy, twin));
	ledger.parts[twin].mask = 2;
	assert_false(sw_ledger_same_parts(&ledger, copy, twin));
	assert_true(sw_ledger_touches(&ledger, copy, 1));
	assert_false(sw_ledger_touches(&ledger, copy, 2));
	sw_ledger_release(&ledger);
}

/* Aim: a rule that names a node by itself gets nothing there while the node is closed or down, and
 * all of it when it is open again. */
static void test_doors(void **state)
{
	(void)state;
	const struct sw_topology_node nodes[] = {{.gpus = 2, .cpus = 4}, {.gpus = 2, .cpus = 4}};
	SW_CLEANUP(sw_topology_freep) struct sw_topology *topology = NULL;
	struct sw_ledger ledger;
	struct sw_spot spot;
	assert_int_equal(sw_topology_new(nodes, 2, &topology, NULL), 0);
	assert_int_equal(sw_ledger_init(&ledger, topology), 0);
	for (int round = 0; round < 2; round++) {
		if (round == 0)
			sw_ledger_set_closed(&ledger, 1, true);
		else
			sw_ledger_set_up(&ledger, 1, false);
		assert_int_equal(ledger.gpus_free, 2);
		sw_spot_begin(&spot, &ledger, whole);
		assert_false(sw_spot_add(&spot, (struct sw_node_id){1}, 1, 0, 0));
		assert_true(sw_spot_add(&spot, (struct sw_node_id){0}, 1, 0, 0));
		assert_int_equal(sw_spot_gpus(&spot), 1);
		sw_ledger_drop_parts(&ledger, spot.head);
		if (round == 0)
			sw_ledger_set_closed(&ledger, 1, false);
		else
			sw_ledger_set_up(&ledger, 1, true);
		sw_spot_begin(&spot, &ledger, whole);
		assert_true(sw_spot_add(&spot, (struct sw_node_id){1}, 2, 0, 0));
		sw_ledger_drop_parts(&ledger, spot.head);
	}
	sw_ledger_release(&ledger);
}

/* Aim: a cluster that grows is the same as one that was large from the start, also when the
 * new node is the largest. */
static void test_growing(void **state)
{
	(void)state;
	const struct sw_topology_node nodes[] = {{.gpus = 2, .cpus = 3}, {.gpus = 2, .cpus = 4}, {.gpus = 8, .cpus = 5}};
	SW_CLEANUP(sw_topology_freep) struct sw_topology *topology = NULL;
	struct sw_ledger ledger, derived;
	struct sw_spot spot;
	struct sw_err err = {0};
	assert_int_equal(sw_topology_new(nodes, 1, &topology, NULL), 0);
	assert_int_equal(sw_ledger_init(&ledger, topology), 0);
	for (int n = 1; n < 3; n++) {
		assert_int_equal(sw_topology_reserve(topology, &nodes[n]), 0);
		assert_int_equal(sw_ledger_reserve_node(&ledger, &nodes[n]), 0);
		sw_topology_add(topology, &nodes[n]);
		sw_ledger_add_node(&ledger);
	}
	assert_int_equal(sw_ledger_init(&derived, topology), 0);
	if (sw_ledger_matches(&ledger, &derived, &err) < 0)
		fail_msg("%s", err.fact);
	sw_spot_begin(&spot, &ledger, whole);
	assert_true(sw_spot_add(&spot, (struct sw_node_id){2}, 8, 5, 0));
	sw_ledger_take(&ledger, spot.head, whole);
	assert_int_equal(ledger.gpus_free, 4);
	assert_int_equal(sw_ledger_matches(&ledger, &derived, NULL), SW_EBUG);
	sw_ledger_release(&ledger);
	sw_ledger_release(&derived);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_against_a_naive_model),
		cmocka_unit_test(test_distances),
		cmocka_unit_test(test_link_groups_first),
		cmocka_unit_test(test_widest_node),
		cmocka_unit_test(test_copies),
		cmocka_unit_test(test_growing),
		cmocka_unit_test(test_doors),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
