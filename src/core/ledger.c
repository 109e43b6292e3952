#include "core/ledger.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static uint64_t all_gpus(const struct sw_topology_node *node)
{
	return node->gpus == 64 ? UINT64_MAX : (UINT64_C(1) << node->gpus) - 1;
}

/* Arrays for this many nodes and GPUs, and a bucket for each number of free GPUs up to `node_gpus`. */
static int make_room(struct sw_ledger *ledger, uint32_t nodes, uint32_t gpus, uint32_t node_gpus)
{
	if (nodes > ledger->node_capacity || ledger->nodes == NULL) {
		uint32_t wanted = nodes + nodes / 2 + 8;
		struct sw_ledger_node *more = realloc(ledger->nodes, wanted * sizeof *more);
		if (more == NULL)
			return SW_ENOMEM;
		ledger->nodes = more;
		ledger->node_capacity = wanted;
	}
	if (gpus > ledger->gpu_capacity || ledger->gpus == NULL) {
		uint32_t wanted = gpus + gpus / 4 + 64;
		struct sw_gpu *more = realloc(ledger->gpus, wanted * sizeof *more);
		if (more == NULL)
			return SW_ENOMEM;
		ledger->gpus = more;
		ledger->gpu_capacity = wanted;
	}
	if (node_gpus + 1 > ledger->bucket_count) {
		struct sw_bitmap *more_buckets = realloc(ledger->buckets, (node_gpus + 1) * sizeof *more_buckets);
		if (more_buckets == NULL)
			return SW_ENOMEM;
		ledger->buckets = more_buckets;
		for (; ledger->bucket_count < node_gpus + 1; ledger->bucket_count++)
			ledger->buckets[ledger->bucket_count] = (struct sw_bitmap){0};
	}
	int r = sw_bitmap_reserve(&ledger->yielding, nodes);
	r = r < 0 ? r : sw_bitmap_reserve(&ledger->homely, nodes);
	r = r < 0 ? r : sw_bitmap_reserve(&ledger->standing, nodes);
	for (uint32_t free = 0; r == 0 && free < ledger->bucket_count; free++)
		r = sw_bitmap_reserve(&ledger->buckets[free], nodes);
	for (uint32_t step = 0; r == 0 && step < SW_USE_STEPS; step++)
		r = sw_bitmap_reserve(&ledger->by_use[step], gpus);
	return r;
}

static void add_node(struct sw_ledger *ledger, uint32_t n, uint32_t first_gpu)
{
	const struct sw_topology_node *shape = &ledger->topology->nodes[n];
	ledger->nodes[n] = (struct sw_ledger_node){
		.memory_free_bytes = shape->memory_bytes,
		.cpus_free = shape->cpus,
		.first_gpu = first_gpu,
	};
	for (uint32_t g = 0; g < shape->gpus; g++)
		ledger->gpus[first_gpu + g] = (struct sw_gpu){.node = n};
	sw_ledger_set_up(ledger, n, true);
}

int sw_ledger_init(struct sw_ledger *ledger, const struct sw_topology *topology)
{
	*ledger = (struct sw_ledger){.topology = topology, .part_free = SW_NO_PART};
	int r = make_room(ledger, topology->node_count, topology->gpu_count, topology->node_gpus_max);
	if (r < 0)
		return r;
	uint32_t gpu = 0;
	for (uint32_t n = 0; n < topology->node_count; n++) {
		add_node(ledger, n, gpu);
		gpu += topology->nodes[n].gpus;
	}
	return 0;
}

int sw_ledger_reserve_node(struct sw_ledger *ledger, const struct sw_topology_node *shape)
{
	const struct sw_topology *topology = ledger->topology;
	uint32_t node_gpus = shape->gpus > topology->node_gpus_max ? shape->gpus : topology->node_gpus_max;
	return make_room(ledger, topology->node_count + 1, topology->gpu_count + shape->gpus, node_gpus);
}

void sw_ledger_add_node(struct sw_ledger *ledger)
{
	uint32_t n = ledger->topology->node_count - 1;
	add_node(ledger, n, ledger->topology->gpu_count - ledger->topology->nodes[n].gpus);
}

void sw_ledger_release(struct sw_ledger *ledger)
{
	for (uint32_t free = 0; free < ledger->bucket_count; free++)
		sw_bitmap_release(&ledger->buckets[free]);
	for (uint32_t step = 0; step < SW_USE_STEPS; step++)
		sw_bitmap_release(&ledger->by_use[step]);
	sw_bitmap_release(&ledger->yielding);
	sw_bitmap_release(&ledger->homely);
	sw_bitmap_release(&ledger->standing);
	free(ledger->nodes);
	free(ledger->gpus);
	free(ledger->buckets);
	free(ledger->parts);
	*ledger = (struct sw_ledger){0};
}

/* Into the bucket of its free GPUs and the total, or out of both. */
static void list(struct sw_ledger *ledger, uint32_t node, bool in)
{
	uint32_t free = (uint32_t)__builtin_popcountll(ledger->nodes[node].free);
	if (in)
		sw_bitmap_add(&ledger->buckets[free], node);
	else
		sw_bitmap_remove(&ledger->buckets[free], node);
	ledger->gpus_free += in ? free : -free;
}

void sw_ledger_set_up(struct sw_ledger *ledger, uint32_t node, bool up)
{
	struct sw_ledger_node *n = &ledger->nodes[node];
	const struct sw_topology_node *shape = &ledger->topology->nodes[node];
	if (n->up == up)
		return;
	if (up) {
		n->free = 0;
		for (uint32_t g = 0; g < shape->gpus; g++)
			if (ledger->gpus[n->first_gpu + g].residents == 0 && !ledger->gpus[n->first_gpu + g].shut)
				n->free |= UINT64_C(1) << g;
		ledger->gpus_up += shape->gpus;
	} else {
		ledger->gpus_up -= shape->gpus;
	}
	if (!n->closed)
		list(ledger, node, up);
	n->up = up;
}

void sw_ledger_set_closed(struct sw_ledger *ledger, uint32_t node, bool closed)
{
	struct sw_ledger_node *n = &ledger->nodes[node];
	if (n->closed == closed)
		return;
	if (n->up)
		list(ledger, node, !closed);
	n->closed = closed;
	ledger->nodes_closed += closed ? 1 : -1u;
}

bool sw_ledger_touches_closed(const struct sw_ledger *ledger, uint32_t parts)
{
	if (ledger->nodes_closed == 0 && ledger->gpus_shut == 0)
		return false;
	for (uint32_t p = parts; p != SW_NO_PART; p = ledger->parts[p].next) {
		const struct sw_ledger_node *n = &ledger->nodes[ledger->parts[p].node];
		if (n->closed || (n->shut & ledger->parts[p].mask) != 0)
			return true;
	}
	return false;
}

/* ---- parts */

int sw_ledger_reserve_parts(struct sw_ledger *ledger, uint32_t wanted)
{
	if (wanted <= ledger->part_capacity)
		return 0;
	struct sw_part *grown = realloc(ledger->parts, wanted * sizeof *grown);
	if (grown == NULL)
		return SW_ENOMEM;
	ledger->parts = grown;
	for (uint32_t p = wanted; p-- > ledger->part_capacity;) {
		grown[p].next = ledger->part_free;
		ledger->part_free = p;
	}
	ledger->part_capacity = wanted;
	return 0;
}

static uint32_t new_part(struct sw_ledger *ledger)
{
	if (ledger->part_free == SW_NO_PART && sw_ledger_reserve_parts(ledger, ledger->part_capacity + ledger->part_capacity / 2 + 256) < 0)
		return SW_NO_PART;
	uint32_t part = ledger->part_free;
	ledger->part_free = ledger->parts[part].next;
	ledger->parts[part].next = SW_NO_PART;
	return part;
}

void sw_ledger_drop_parts(struct sw_ledger *ledger, uint32_t parts)
{
	while (parts != SW_NO_PART) {
		uint32_t next = ledger->parts[parts].next;
		ledger->parts[parts].next = ledger->part_free;
		ledger->part_free = parts;
		parts = next;
	}
}

uint32_t sw_ledger_copy_parts(struct sw_ledger *ledger, uint32_t parts)
{
	uint32_t head = SW_NO_PART, tail = SW_NO_PART;
	for (uint32_t p = parts; p != SW_NO_PART; p = ledger->parts[p].next) {
		uint32_t copy = new_part(ledger);
		if (copy == SW_NO_PART) {
			sw_ledger_drop_parts(ledger, head);
			return SW_NO_PART;
		}
		ledger->parts[copy] = (struct sw_part){.mask = ledger->parts[p].mask, .node = ledger->parts[p].node, .next = SW_NO_PART};
		if (tail == SW_NO_PART)
			head = copy;
		else
			ledger->parts[tail].next = copy;
		tail = copy;
	}
	return head;
}

bool sw_ledger_same_parts(const struct sw_ledger *ledger, uint32_t a, uint32_t b)
{
	while (a != SW_NO_PART && b != SW_NO_PART) {
		const struct sw_part *x = &ledger->parts[a], *y = &ledger->parts[b];
		if (x->node != y->node || x->mask != y->mask || x->cpus != y->cpus || x->memory_bytes != y->memory_bytes ||
		    x->split_bytes != y->split_bytes)
			return false;
		a = x->next;
		b = y->next;
	}
	return a == b;
}

bool sw_ledger_same_gpus(const struct sw_ledger *ledger, uint32_t a, uint32_t b)
{
	while (a != SW_NO_PART && b != SW_NO_PART) {
		const struct sw_part *x = &ledger->parts[a], *y = &ledger->parts[b];
		if (x->node != y->node || x->mask != y->mask)
			return false;
		a = x->next;
		b = y->next;
	}
	return a == b;
}

uint32_t sw_ledger_count_gpus(const struct sw_ledger *ledger, uint32_t parts)
{
	uint32_t gpus = 0;
	for (uint32_t p = parts; p != SW_NO_PART; p = ledger->parts[p].next)
		gpus += (uint32_t)__builtin_popcountll(ledger->parts[p].mask);
	return gpus;
}

bool sw_ledger_is_free(const struct sw_ledger *ledger, uint32_t parts)
{
	for (uint32_t p = parts; p != SW_NO_PART; p = ledger->parts[p].next) {
		const struct sw_ledger_node *n = &ledger->nodes[ledger->parts[p].node];
		/* One that is shut may have no resident either. */
		for (uint64_t rest = ledger->parts[p].mask & ~n->free; rest != 0; rest &= rest - 1) {
			const struct sw_gpu *gpu = &ledger->gpus[n->first_gpu + (uint32_t)__builtin_ctzll(rest)];
			if (!gpu->shut || gpu->residents > 0)
				return false;
		}
	}
	return true;
}

bool sw_ledger_is_alone(const struct sw_ledger *ledger, uint32_t parts)
{
	for (uint32_t p = parts; p != SW_NO_PART; p = ledger->parts[p].next)
		for (uint64_t rest = ledger->parts[p].mask; rest != 0; rest &= rest - 1)
			if (ledger->gpus[ledger->nodes[ledger->parts[p].node].first_gpu + (uint32_t)__builtin_ctzll(rest)].residents != 1)
				return false;
	return true;
}

void sw_ledger_mark_home(struct sw_ledger *ledger, uint32_t parts, bool is_home)
{
	for (uint32_t p = parts; p != SW_NO_PART; p = ledger->parts[p].next) {
		struct sw_ledger_node *n = &ledger->nodes[ledger->parts[p].node];
		for (uint64_t rest = ledger->parts[p].mask; rest != 0; rest &= rest - 1) {
			uint32_t g = (uint32_t)__builtin_ctzll(rest);
			uint32_t homes = ledger->gpus[n->first_gpu + g].homes += is_home ? 1 : UINT32_MAX;
			n->homes = homes > 0 ? n->homes | UINT64_C(1) << g : n->homes & ~(UINT64_C(1) << g);
		}
		(n->homes != 0 ? sw_bitmap_add : sw_bitmap_remove)(&ledger->homely, ledger->parts[p].node);
	}
}

bool sw_ledger_has_homes(const struct sw_ledger *ledger, uint32_t parts)
{
	for (uint32_t p = parts; p != SW_NO_PART; p = ledger->parts[p].next)
		if ((ledger->parts[p].mask & ledger->nodes[ledger->parts[p].node].homes) != 0)
			return true;
	return false;
}

bool sw_ledger_touches(const struct sw_ledger *ledger, uint32_t parts, uint32_t node)
{
	for (uint32_t p = parts; p != SW_NO_PART; p = ledger->parts[p].next)
		if (ledger->parts[p].node == node)
			return true;
	return false;
}

bool sw_ledger_is_split(const struct sw_ledger *ledger, uint32_t parts)
{
	return parts != SW_NO_PART && ledger->parts[parts].split_bytes != 0;
}

enum sw_distance sw_ledger_distance(const struct sw_ledger *ledger, uint32_t parts)
{
	if (parts == SW_NO_PART)
		return SW_WITHIN_GROUP;
	const struct sw_part *first = &ledger->parts[parts];
	const struct sw_topology_node *shape = &ledger->topology->nodes[first->node];
	uint64_t mask = first->mask;
	bool one_node = true;
	for (uint32_t p = first->next; p != SW_NO_PART; p = ledger->parts[p].next) {
		if (ledger->topology->nodes[ledger->parts[p].node].rack != shape->rack)
			return SW_ACROSS_RACKS;
		one_node &= ledger->parts[p].node == first->node;
		mask |= ledger->parts[p].mask;
	}
	if (!one_node)
		return SW_WITHIN_RACK;
	uint32_t group = shape->link_group == 0 ? shape->gpus : shape->link_group;
	uint32_t low = (uint32_t)__builtin_ctzll(mask);
	uint32_t high = 63u - (uint32_t)__builtin_clzll(mask);
	return low / group == high / group ? SW_WITHIN_GROUP : SW_WITHIN_NODE;
}

/* ---- spots */

void sw_spot_begin(struct sw_spot *spot, struct sw_ledger *ledger, struct sw_share share)
{
	*spot = (struct sw_spot){.ledger = ledger, .share = share, .serial = ++ledger->spot_serial, .head = SW_NO_PART, .tail = SW_NO_PART};
}

void sw_spot_discard(struct sw_spot *spot)
{
	sw_ledger_drop_parts(spot->ledger, spot->head);
	spot->head = spot->tail = SW_NO_PART;
	spot->gpus = 0;
}

void sw_spot_clear(struct sw_spot *spot)
{
	sw_spot_discard(spot);
	spot->serial = ++spot->ledger->spot_serial;
}

/* Picks `count` of the free GPUs: those that are nobody's home if they are enough; from the link group that fits tightest if one is enough, else the lowest ones. As few
 * homes as there must be. */
static uint64_t pick_gpus(const struct sw_topology_node *shape, uint64_t free, uint64_t homes, uint32_t count)
{
	uint32_t group = shape->link_group;
	if ((uint32_t)__builtin_popcountll(free & ~homes) >= count)
		free &= ~homes;
	if (group != 0 && group < shape->gpus && count <= group) {
		uint64_t best = 0;
		uint32_t best_free = UINT32_MAX;
		for (uint32_t first = 0; first < shape->gpus; first += group) {
			uint64_t members = free & (((UINT64_C(1) << group) - 1) << first);
			uint32_t available = (uint32_t)__builtin_popcountll(members);
			if (available >= count && available < best_free) {
				best = members;
				best_free = available;
			}
		}
		if (best != 0)
			free = best;
	}
	uint64_t picked = 0;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t first = (free & ~homes) != 0 ? free & ~homes : free, lowest = first & (~first + 1);
		picked |= lowest;
		free ^= lowest;
	}
	return picked;
}

/* Whether the spot has a part there: on the node, or where both are split on the very GPU. */
static bool is_in_spot(const struct sw_spot *spot, const struct sw_part *wanted)
{
	if (spot->ledger->nodes[wanted->node].in_spot != spot->serial)
		return false;
	for (uint32_t p = spot->head; p != SW_NO_PART; p = spot->ledger->parts[p].next) {
		const struct sw_part *part = &spot->ledger->parts[p];
		if (part->node == wanted->node && (part->split_bytes == 0 || wanted->split_bytes == 0 || (part->mask & wanted->mask) != 0))
			return true;
	}
	return false;
}

bool sw_spot_put(struct sw_spot *spot, const struct sw_part *wanted)
{
	struct sw_ledger *ledger = spot->ledger;
	struct sw_ledger_node *n = &ledger->nodes[wanted->node];
	if (is_in_spot(spot, wanted))
		return false;
	uint32_t part = new_part(ledger);
	if (part == SW_NO_PART) {
		spot->failed = true;
		return false;
	}
	ledger->parts[part] = *wanted;
	ledger->parts[part].next = SW_NO_PART;
	if (spot->tail == SW_NO_PART)
		spot->head = part;
	else
		ledger->parts[spot->tail].next = part;
	spot->tail = part;
	spot->gpus += (uint32_t)__builtin_popcountll(wanted->mask);
	n->in_spot = spot->serial;
	return true;
}

/* What a run on so many GPUs of a node takes of its host memory: what its placement rule says, or else what it asks for, at most what there is. */
static uint64_t host_bytes(const struct sw_topology_node *shape, uint64_t said_bytes, uint32_t gpus, struct sw_share share)
{
	uint64_t asked;
	if (said_bytes != 0 || share.host_memory_bytes == 0)
		return said_bytes;
	if (__builtin_mul_overflow(share.host_memory_bytes, gpus, &asked) || asked > shape->memory_bytes)
		return shape->memory_bytes;
	return asked;
}

/* Of that, what the part does not say: mostly nothing. */
static uint64_t asked_bytes(const struct sw_topology_node *shape, const struct sw_part *part, struct sw_share share)
{
	if (part->memory_bytes != 0 || share.host_memory_bytes == 0)
		return 0;
	return host_bytes(shape, 0, (uint32_t)__builtin_popcountll(part->mask), share);
}

static uint64_t unasked_bytes(const struct sw_ledger_node *node)
{
	return node->memory_free_bytes > node->asked_bytes ? node->memory_free_bytes - node->asked_bytes : 0;
}

bool sw_ledger_has_asked(const struct sw_ledger *ledger, const struct sw_part *part, struct sw_share share)
{
	const struct sw_ledger_node *n = &ledger->nodes[part->node];
	uint32_t gpus = (uint32_t)__builtin_popcountll(part->mask);
	return n->standing == 0 || host_bytes(&ledger->topology->nodes[part->node], part->memory_bytes, gpus, share) <= unasked_bytes(n);
}

bool sw_spot_add(struct sw_spot *spot, struct sw_node_id node, uint32_t gpus, uint32_t cpus, uint64_t memory_bytes)
{
	struct sw_ledger *ledger = spot->ledger;
	if (node.v >= ledger->topology->node_count || gpus == 0)
		return false;
	const struct sw_ledger_node *n = &ledger->nodes[node.v];
	const struct sw_topology_node *shape = &ledger->topology->nodes[node.v];
	if (!n->up || n->closed || n->in_spot == spot->serial || (uint32_t)__builtin_popcountll(n->free) < gpus)
		return false;
	if (n->cpus_free < cpus || n->memory_free_bytes < memory_bytes || shape->gpu_memory_bytes < spot->share.gpu_memory_bytes)
		return false;
	if (n->standing != 0 && host_bytes(shape, memory_bytes, gpus, spot->share) > unasked_bytes(n))
		return false;
	return sw_spot_put(spot, &(struct sw_part){
					 .mask = pick_gpus(shape, n->free, n->homes, gpus),
					 .memory_bytes = memory_bytes,
					 .cpus = cpus,
					 .node = node.v,
				 });
}

uint32_t sw_spot_gpus(const struct sw_spot *spot)
{
	return spot->gpus;
}

/* ---- taking and giving */

/* What the share is on this part. */
static struct sw_share on_part(const struct sw_part *part, struct sw_share share)
{
	if (part->split_bytes != 0)
		share.gpu_memory_bytes = part->split_bytes;
	return share;
}

static uint64_t held_bytes(const struct sw_topology_node *shape, struct sw_share share)
{
	return share.gpu_memory_bytes == 0 ? shape->gpu_memory_bytes : share.gpu_memory_bytes;
}

/* What a run that stands holds of each GPU. */
static uint64_t standing_bytes(const struct sw_topology_node *shape, struct sw_share share)
{
	uint64_t bytes = held_bytes(shape, share);
	return share.frees ? 0 : bytes < shape->gpu_memory_bytes ? bytes : shape->gpu_memory_bytes;
}

static uint64_t free_bytes(const struct sw_gpu *gpu, const struct sw_topology_node *shape)
{
	uint64_t rest = shape->gpu_memory_bytes - gpu->memory_held_bytes;
	return rest > gpu->standing_bytes ? rest - gpu->standing_bytes : 0;
}

/* Beside those who are there, if any. */
static bool gpu_fits(const struct sw_gpu *gpu, const struct sw_topology_node *shape, struct sw_share share)
{
	if (gpu->residents == 0 && gpu->standing_held == 0)
		return held_bytes(shape, share) <= shape->gpu_memory_bytes;
	if (share.gpu_memory_bytes == 0 || gpu->residents >= SW_GPU_RESIDENTS_MAX)
		return false;
	if (gpu->whole || (share.guaranteed && gpu->compute_held_milli + share.compute_milli > SW_COMPUTE_WHOLE))
		return false;
	return share.gpu_memory_bytes <= free_bytes(gpu, shape);
}

/* The same once all residents have been stopped. */
static bool gpu_would_fit(const struct sw_gpu *gpu, const struct sw_topology_node *shape, struct sw_share share)
{
	uint64_t left = gpu->standing_bytes + gpu->rest_bytes;
	if (share.gpu_memory_bytes == 0 || gpu->standing_held + gpu->rest_held == 0)
		return gpu->standing_held + gpu->rest_held == 0;
	return left <= shape->gpu_memory_bytes && share.gpu_memory_bytes <= shape->gpu_memory_bytes - left;
}

bool sw_ledger_gpu_is_overdrawn(const struct sw_ledger *ledger, uint32_t gpu)
{
	const struct sw_gpu *at = &ledger->gpus[gpu];
	return at->residents > 0 && at->standing_held > 0 &&
	       (at->whole || at->standing_bytes > ledger->topology->nodes[at->node].gpu_memory_bytes - at->memory_held_bytes);
}

uint64_t sw_ledger_gpu_memory_free(const struct sw_ledger *ledger, uint32_t gpu)
{
	return free_bytes(&ledger->gpus[gpu], &ledger->topology->nodes[ledger->gpus[gpu].node]);
}

bool sw_ledger_gpu_fits(const struct sw_ledger *ledger, uint32_t gpu, struct sw_share share)
{
	return gpu_fits(&ledger->gpus[gpu], &ledger->topology->nodes[ledger->gpus[gpu].node], share);
}

/* Whether a newcomer would have host memory for up to so many of the part's GPUs once the leaver, whose part it is, has left them. */
static bool host_would_fit(const struct sw_ledger *ledger, const struct sw_part *part, struct sw_share leaver, struct sw_share share,
			   uint32_t gpus)
{
	const struct sw_ledger_node *n = &ledger->nodes[part->node];
	const struct sw_topology_node *shape = &ledger->topology->nodes[part->node];
	uint32_t of_part = (uint32_t)__builtin_popcountll(part->mask);
	uint64_t left = leaver.stands ? 0 : host_bytes(shape, part->memory_bytes, of_part, leaver);
	/* Jobs may ask for more than there is: what the leaver gives back counts before that is cut off. */
	uint64_t there = n->memory_free_bytes + left;
	uint64_t unasked = there > n->asked_bytes ? there - n->asked_bytes : 0;
	return (n->standing == 0 && !leaver.stands) || host_bytes(shape, 0, gpus < of_part ? gpus : of_part, share) <= unasked;
}

bool sw_ledger_would_fit(const struct sw_ledger *ledger, uint32_t parts, struct sw_share leaver, struct sw_share share, uint32_t gpus)
{
	for (uint32_t p = parts; p != SW_NO_PART; p = ledger->parts[p].next) {
		const struct sw_ledger_node *n = &ledger->nodes[ledger->parts[p].node];
		if (!host_would_fit(ledger, &ledger->parts[p], leaver, share, gpus))
			return false;
		for (uint64_t rest = ledger->parts[p].mask; rest != 0; rest &= rest - 1)
			if (!gpu_would_fit(&ledger->gpus[n->first_gpu + (uint32_t)__builtin_ctzll(rest)],
					   &ledger->topology->nodes[ledger->parts[p].node], share))
				return false;
	}
	return true;
}

bool sw_ledger_could_guarantee(const struct sw_ledger *ledger, uint32_t parts, uint32_t compute_milli)
{
	for (uint32_t p = parts; p != SW_NO_PART; p = ledger->parts[p].next)
		for (uint64_t rest = ledger->parts[p].mask; rest != 0; rest &= rest - 1)
			if (ledger->gpus[ledger->nodes[ledger->parts[p].node].first_gpu + (uint32_t)__builtin_ctzll(rest)]
					    .compute_held_milli +
				    compute_milli >
			    SW_COMPUTE_WHOLE)
				return false;
	return true;
}

static bool host_fits(const struct sw_ledger_node *node, const struct sw_part *part)
{
	return node->up && node->cpus_free >= part->cpus && node->memory_free_bytes >= part->memory_bytes;
}

bool sw_ledger_host_fits(const struct sw_ledger *ledger, uint32_t parts)
{
	for (uint32_t p = parts; p != SW_NO_PART; p = ledger->parts[p].next)
		if (!host_fits(&ledger->nodes[ledger->parts[p].node], &ledger->parts[p]))
			return false;
	return true;
}

bool sw_ledger_fits(const struct sw_ledger *ledger, uint32_t parts, struct sw_share of_job)
{
	for (uint32_t p = parts; p != SW_NO_PART; p = ledger->parts[p].next) {
		const struct sw_part *part = &ledger->parts[p];
		struct sw_share share = on_part(part, of_job);
		const struct sw_ledger_node *n = &ledger->nodes[part->node];
		const struct sw_topology_node *shape = &ledger->topology->nodes[part->node];
		if (!host_fits(n, part))
			return false;
		if ((part->mask & (~n->free | n->standing)) == 0 && held_bytes(shape, share) <= shape->gpu_memory_bytes)
			continue;
		for (uint64_t rest = part->mask; rest != 0; rest &= rest - 1) {
			const struct sw_gpu *gpu = &ledger->gpus[n->first_gpu + (uint32_t)__builtin_ctzll(rest)];
			/* One that is free and has residents is seen through. */
			bool through = gpu->residents > 0 && (n->free & rest & (~rest + 1)) != 0;
			if (!(through ? gpu_would_fit : gpu_fits)(gpu, shape, share))
				return false;
		}
	}
	return true;
}

static void move_bucket(struct sw_ledger *ledger, uint32_t node, uint64_t free_before)
{
	struct sw_ledger_node *n = &ledger->nodes[node];
	uint32_t before = (uint32_t)__builtin_popcountll(free_before), after = (uint32_t)__builtin_popcountll(n->free);
	if (!n->up || n->closed || before == after)
		return;
	sw_bitmap_remove(&ledger->buckets[before], node);
	sw_bitmap_add(&ledger->buckets[after], node);
	ledger->gpus_free += after - before;
}

static uint32_t use_step(const struct sw_gpu *gpu)
{
	uint32_t step = (uint32_t)gpu->use_milli * SW_USE_STEPS / SW_COMPUTE_WHOLE;
	return step < SW_USE_STEPS ? step : SW_USE_STEPS - 1;
}

static bool takes_more(const struct sw_gpu *gpu)
{
	return gpu->residents > 0 && gpu->residents < SW_GPU_RESIDENTS_MAX && !gpu->whole && !gpu->shut;
}

/* One more resident on a GPU, or one less. */
static void seat(struct sw_ledger *ledger, uint32_t g, struct sw_share share, uint64_t bytes, bool in)
{
	struct sw_gpu *gpu = &ledger->gpus[g];
	uint32_t at = 0;
	if (takes_more(gpu))
		sw_bitmap_remove(&ledger->by_use[use_step(gpu)], g);
	assert(in || (gpu->residents > 0 && gpu->memory_held_bytes >= bytes));
	while (at < gpu->residents && gpu->who[at] < share.job)
		at++;
	if (in) {
		assert(gpu->residents < SW_GPU_RESIDENTS_MAX);
		memmove(&gpu->who[at + 1], &gpu->who[at], (gpu->residents - at) * sizeof gpu->who[0]);
		gpu->who[at] = share.job;
		ledger->gpus_shared += ++gpu->residents == 2;
	} else {
		assert(gpu->who[at] == share.job);
		ledger->gpus_shared -= gpu->residents-- == 2;
		memmove(&gpu->who[at], &gpu->who[at + 1], (gpu->residents - at) * sizeof gpu->who[0]);
	}
	gpu->memory_held_bytes += in ? bytes : -bytes;
	if (share.stands && !share.frees) {
		gpu->rest_bytes += in ? bytes : -bytes;
		gpu->rest_held = (uint8_t)(in ? gpu->rest_held + 1 : gpu->rest_held - 1);
	}
	gpu->use_milli = (uint16_t)(in ? gpu->use_milli + share.use_milli : gpu->use_milli - share.use_milli);
	gpu->whole = in && share.gpu_memory_bytes == 0;
	if (share.guaranteed) {
		gpu->compute_held_milli =
			(uint16_t)(in ? gpu->compute_held_milli + share.compute_milli : gpu->compute_held_milli - share.compute_milli);
		gpu->guaranteed = (uint8_t)(in ? gpu->guaranteed + 1 : gpu->guaranteed - 1);
	}
	if (takes_more(gpu))
		sw_bitmap_add(&ledger->by_use[use_step(gpu)], g);
}

/* Takes or gives back one part. */
static void hold_part(struct sw_ledger *ledger, const struct sw_part *part, struct sw_share of_job, bool in)
{
	struct sw_share share = on_part(part, of_job);
	struct sw_ledger_node *n = &ledger->nodes[part->node];
	const struct sw_topology_node *shape = &ledger->topology->nodes[part->node];
	uint64_t bytes = held_bytes(shape, share), asked = asked_bytes(shape, part, share), before = n->free, yielded = n->yielding;
	for (uint64_t rest = part->mask; rest != 0; rest &= rest - 1) {
		uint32_t g = (uint32_t)__builtin_ctzll(rest);
		const struct sw_gpu *gpu = &ledger->gpus[n->first_gpu + g];
		uint64_t bit = UINT64_C(1) << g;
		seat(ledger, n->first_gpu + g, share, bytes, in);
		n->free = gpu->residents == 0 && !gpu->shut ? n->free | bit : n->free & ~bit;
		n->yielding = gpu->residents > 0 && gpu->guaranteed == 0 ? n->yielding | bit : n->yielding & ~bit;
	}
	ledger->gpus_yielding += (uint32_t)__builtin_popcountll(n->yielding) - (uint32_t)__builtin_popcountll(yielded);
	n->cpus_free += in ? -part->cpus : part->cpus;
	n->memory_free_bytes += in ? -part->memory_bytes : part->memory_bytes;
	n->asked_bytes += in ? asked : -asked;
	if (!share.guaranteed) {
		n->cpus_yielding += in ? part->cpus : -part->cpus;
		if (!share.stands) {
			n->memory_yielding_bytes += in ? part->memory_bytes : -part->memory_bytes;
			n->asked_yielding_bytes += in ? asked : -asked;
		}
	}
	if ((yielded != 0) != (n->yielding != 0))
		(n->yielding != 0 ? sw_bitmap_add : sw_bitmap_remove)(&ledger->yielding, part->node);
	move_bucket(ledger, part->node, before);
}

void sw_ledger_take(struct sw_ledger *ledger, uint32_t parts, struct sw_share share)
{
	for (uint32_t p = parts; p != SW_NO_PART; p = ledger->parts[p].next)
		hold_part(ledger, &ledger->parts[p], share, true);
}

void sw_ledger_give(struct sw_ledger *ledger, uint32_t parts, struct sw_share share)
{
	for (uint32_t p = parts; p != SW_NO_PART; p = ledger->parts[p].next)
		hold_part(ledger, &ledger->parts[p], share, false);
}

/* Of the GPUs that opportunistic jobs have, those that the share could have instead. */
static uint64_t could_have(const struct sw_ledger *ledger, uint32_t node, struct sw_share share)
{
	const struct sw_ledger_node *n = &ledger->nodes[node];
	uint64_t mask = 0;
	for (uint64_t rest = n->yielding & ~n->shut; rest != 0; rest &= rest - 1)
		if (gpu_would_fit(&ledger->gpus[n->first_gpu + (uint32_t)__builtin_ctzll(rest)], &ledger->topology->nodes[node], share))
			mask |= rest & (~rest + 1);
	return mask;
}

void sw_ledger_see_through(struct sw_ledger *ledger, struct sw_share share, bool on)
{
	for (uint32_t node = sw_bitmap_next(&ledger->yielding, 0); node != SW_BITMAP_NONE;
	     node = sw_bitmap_next(&ledger->yielding, node + 1)) {
		struct sw_ledger_node *n = &ledger->nodes[node];
		uint64_t before = n->free;
		n->free = on ? n->free | could_have(ledger, node, share) : n->free & ~n->yielding;
		n->cpus_free += on ? n->cpus_yielding : -n->cpus_yielding;
		n->memory_free_bytes += on ? n->memory_yielding_bytes : -n->memory_yielding_bytes;
		n->asked_bytes -= on ? n->asked_yielding_bytes : -n->asked_yielding_bytes;
		move_bucket(ledger, node, before);
	}
}

void sw_ledger_hide_homes(struct sw_ledger *ledger, bool on)
{
	for (uint32_t node = sw_bitmap_next(&ledger->homely, 0); node != SW_BITMAP_NONE; node = sw_bitmap_next(&ledger->homely, node + 1)) {
		struct sw_ledger_node *n = &ledger->nodes[node];
		uint64_t before = n->free;
		n->free = on ? n->free & ~n->homes : n->free | n->hidden;
		n->hidden = on ? before & n->homes : 0;
		move_bucket(ledger, node, before);
	}
}

void sw_ledger_hide_crowded(struct sw_ledger *ledger, struct sw_share share, bool on)
{
	for (uint32_t node = sw_bitmap_next(&ledger->standing, 0); node != SW_BITMAP_NONE;
	     node = sw_bitmap_next(&ledger->standing, node + 1)) {
		struct sw_ledger_node *n = &ledger->nodes[node];
		uint64_t before = n->free, crowded = 0;
		for (uint64_t rest = on ? n->free & n->standing : 0; rest != 0; rest &= rest - 1) {
			const struct sw_gpu *gpu = &ledger->gpus[n->first_gpu + (uint32_t)__builtin_ctzll(rest)];
			/* With residents it is seen through, and was looked at then. */
			if (gpu->residents == 0 && !gpu_fits(gpu, &ledger->topology->nodes[node], share))
				crowded |= rest & (~rest + 1);
		}
		n->free = on ? n->free & ~crowded : n->free | n->crowded;
		n->crowded = crowded;
		move_bucket(ledger, node, before);
	}
}

void sw_ledger_stand(struct sw_ledger *ledger, uint32_t parts, struct sw_share share, bool in)
{
	for (uint32_t p = parts; p != SW_NO_PART; p = ledger->parts[p].next) {
		const struct sw_part *part = &ledger->parts[p];
		struct sw_ledger_node *n = &ledger->nodes[part->node];
		uint64_t bytes = standing_bytes(&ledger->topology->nodes[part->node], share);
		for (uint64_t rest = part->mask; rest != 0; rest &= rest - 1) {
			struct sw_gpu *gpu = &ledger->gpus[n->first_gpu + (uint32_t)__builtin_ctzll(rest)];
			assert(in || (gpu->standing > 0 && gpu->standing_bytes >= bytes));
			gpu->standing += in ? 1 : UINT32_MAX;
			gpu->standing_held += share.frees ? 0 : in ? 1 : UINT32_MAX;
			gpu->standing_bytes += in ? bytes : -bytes;
			n->standing = gpu->standing > 0 ? n->standing | (rest & (~rest + 1)) : n->standing & ~(rest & (~rest + 1));
		}
		(n->standing != 0 ? sw_bitmap_add : sw_bitmap_remove)(&ledger->standing, part->node);
		assert(!in || n->memory_free_bytes >= part->memory_bytes);
		n->memory_free_bytes += in ? -part->memory_bytes : part->memory_bytes;
		uint64_t asked = asked_bytes(&ledger->topology->nodes[part->node], part, share);
		n->asked_bytes += in ? asked : -asked;
	}
}

/* ---- nodes that change */

void sw_ledger_set_shut(struct sw_ledger *ledger, uint32_t node, uint64_t mask)
{
	struct sw_ledger_node *n = &ledger->nodes[node];
	uint64_t before = n->free, other = (mask & all_gpus(&ledger->topology->nodes[node])) ^ n->shut;
	for (uint64_t rest = other; rest != 0; rest &= rest - 1) {
		uint32_t g = n->first_gpu + (uint32_t)__builtin_ctzll(rest);
		struct sw_gpu *gpu = &ledger->gpus[g];
		uint64_t bit = rest & (~rest + 1);
		if (takes_more(gpu))
			sw_bitmap_remove(&ledger->by_use[use_step(gpu)], g);
		gpu->shut = !gpu->shut;
		if (takes_more(gpu))
			sw_bitmap_add(&ledger->by_use[use_step(gpu)], g);
		n->free = gpu->residents == 0 && !gpu->shut ? n->free | bit : n->free & ~bit;
		ledger->gpus_shut += gpu->shut ? 1 : -1u;
	}
	n->shut ^= other;
	move_bucket(ledger, node, before);
}

/* Puts all GPUs from this one on where their use lets them be found, or takes them out. */
static void list_by_use(struct sw_ledger *ledger, uint32_t from, uint32_t end, bool in)
{
	for (uint32_t g = from; g < end; g++)
		if (takes_more(&ledger->gpus[g]))
			(in ? sw_bitmap_add : sw_bitmap_remove)(&ledger->by_use[use_step(&ledger->gpus[g])], g);
}

void sw_ledger_change_node(struct sw_ledger *ledger, uint32_t node, uint32_t gpus_before)
{
	const struct sw_topology_node *shape = &ledger->topology->nodes[node];
	struct sw_ledger_node *n = &ledger->nodes[node];
	assert(!n->up && n->homes == 0 && n->standing == 0 && n->yielding == 0 && n->shut == 0);
	/* Those of the nodes behind it stay next to it. */
	uint32_t end = ledger->topology->gpu_count, before = n->first_gpu + gpus_before, after = n->first_gpu + shape->gpus;
	uint32_t end_before = end + gpus_before - shape->gpus;
	list_by_use(ledger, before, end_before, false);
	memmove(&ledger->gpus[after], &ledger->gpus[before], (end_before - before) * sizeof *ledger->gpus);
	list_by_use(ledger, after, end, true);
	for (uint32_t g = n->first_gpu; g < after; g++)
		ledger->gpus[g] = (struct sw_gpu){.node = node};
	for (uint32_t later = node + 1; later < ledger->topology->node_count; later++)
		ledger->nodes[later].first_gpu += shape->gpus - gpus_before;
	n->free = 0;
	n->memory_free_bytes = shape->memory_bytes;
	n->cpus_free = shape->cpus;
}

/* ---- searching */

uint32_t sw_ledger_first(const struct sw_ledger *ledger, uint32_t free, uint32_t from, uint32_t end)
{
	uint32_t best = end;
	for (uint32_t bucket = free; bucket <= ledger->topology->node_gpus_max; bucket++) {
		uint32_t node = sw_bitmap_next(&ledger->buckets[bucket], from);
		if (node < best)
			best = node;
	}
	return best < end ? best : UINT32_MAX;
}

uint32_t sw_ledger_tightest(const struct sw_ledger *ledger, uint32_t free, uint32_t from, uint32_t end)
{
	for (uint32_t bucket = free; bucket <= ledger->topology->node_gpus_max; bucket++) {
		uint32_t node = sw_bitmap_next(&ledger->buckets[bucket], from);
		if (node < end)
			return node;
	}
	return UINT32_MAX;
}

uint32_t sw_ledger_emptiest(const struct sw_ledger *ledger, uint32_t free, uint32_t from, uint32_t end)
{
	for (uint32_t bucket = ledger->topology->node_gpus_max + 1; bucket-- > free;) {
		uint32_t node = sw_bitmap_next(&ledger->buckets[bucket], from);
		if (node < end)
			return node;
	}
	return UINT32_MAX;
}

bool sw_ledger_next_used(const struct sw_ledger *ledger, uint32_t below_milli, uint32_t *step, uint32_t *gpu)
{
	for (; *step < SW_USE_STEPS && *step * SW_COMPUTE_WHOLE < below_milli * SW_USE_STEPS; ++*step, *gpu = 0) {
		uint32_t found = sw_bitmap_next(&ledger->by_use[*step], *gpu);
		/* The last step has GPUs on both sides of the line. */
		while (found != SW_BITMAP_NONE && ledger->gpus[found].use_milli >= below_milli)
			found = sw_bitmap_next(&ledger->by_use[*step], found + 1);
		if (found == SW_BITMAP_NONE)
			continue;
		*gpu = found;
		return true;
	}
	return false;
}

/* ---- checking */

/* By its use, and only there. */
static bool is_found(const struct sw_ledger *ledger, uint32_t g)
{
	const struct sw_gpu *gpu = &ledger->gpus[g];
	for (uint32_t step = 0; step < SW_USE_STEPS; step++)
		if (sw_bitmap_has(&ledger->by_use[step], g) != (takes_more(gpu) && step == use_step(gpu)))
			return false;
	return true;
}

static int compare_node(const struct sw_ledger *ledger, const struct sw_ledger *derived, uint32_t n, struct sw_err *err)
{
	const struct sw_ledger_node *a = &ledger->nodes[n], *b = &derived->nodes[n];
	const struct sw_topology_node *shape = &ledger->topology->nodes[n];
	if (a->free != b->free || a->cpus_free != b->cpus_free || a->memory_free_bytes != b->memory_free_bytes || a->up != b->up ||
	    a->closed != b->closed || a->shut != b->shut || a->yielding != b->yielding || a->cpus_yielding != b->cpus_yielding ||
	    a->memory_yielding_bytes != b->memory_yielding_bytes || a->asked_bytes != b->asked_bytes ||
	    a->asked_yielding_bytes != b->asked_yielding_bytes || sw_bitmap_has(&ledger->yielding, n) != (a->yielding != 0))
		return sw_err_set(err, SW_EBUG, "ledger invariant 4: node %u does not match its holdings", n);
	if (a->cpus_free > shape->cpus || a->memory_free_bytes > shape->memory_bytes)
		return sw_err_set(err, SW_EBUG, "ledger invariant 3: node %u gave away more CPUs or memory than it has", n);
	for (uint32_t bucket = 0; bucket <= ledger->topology->node_gpus_max; bucket++)
		if (sw_bitmap_has(&ledger->buckets[bucket], n) !=
		    (a->up && !a->closed && bucket == (uint32_t)__builtin_popcountll(a->free)))
			return sw_err_set(err, SW_EBUG, "ledger invariant 4: node %u is in the wrong bucket", n);
	if ((a->free & ~all_gpus(shape)) != 0)
		return sw_err_set(err, SW_EBUG, "ledger invariant 5: node %u counts GPUs it does not have", n);
	for (uint32_t g = 0; g < shape->gpus; g++) {
		const struct sw_gpu *x = &ledger->gpus[a->first_gpu + g], *y = &derived->gpus[b->first_gpu + g];
		if (x->memory_held_bytes != y->memory_held_bytes || x->compute_held_milli != y->compute_held_milli ||
		    x->residents != y->residents || x->standing_bytes != y->standing_bytes || x->rest_bytes != y->rest_bytes ||
		    x->standing != y->standing || x->standing_held != y->standing_held || x->rest_held != y->rest_held)
			return sw_err_set(err, SW_EBUG, "ledger: GPU %u of node %u does not match its holdings", g, n);
		if (x->use_milli != y->use_milli || x->guaranteed != y->guaranteed ||
		    memcmp(x->who, y->who, x->residents * sizeof x->who[0]) != 0 || !is_found(ledger, a->first_gpu + g))
			return sw_err_set(err, SW_EBUG, "ledger invariant 6: GPU %u of node %u has others on it than it lists", g, n);
		if (x->homes != y->homes || (a->homes >> g & 1) != (y->homes > 0) || sw_bitmap_has(&ledger->homely, n) != (a->homes != 0))
			return sw_err_set(err, SW_EBUG, "ledger: GPU %u of node %u is the home of others than is marked", g, n);
		if ((a->standing >> g & 1) != (y->standing > 0) || sw_bitmap_has(&ledger->standing, n) != (a->standing != 0))
			return sw_err_set(err, SW_EBUG, "ledger: runs that stand on GPU %u of node %u are not marked", g, n);
		if (x->memory_held_bytes > shape->gpu_memory_bytes)
			return sw_err_set(err, SW_EBUG, "ledger invariant 1: GPU %u of node %u is over-committed", g, n);
		if (x->compute_held_milli > SW_COMPUTE_WHOLE || x->residents > SW_GPU_RESIDENTS_MAX)
			return sw_err_set(err, SW_EBUG, "ledger invariant 2: GPU %u of node %u has too many residents", g, n);
	}
	return 0;
}

int sw_ledger_matches(const struct sw_ledger *ledger, const struct sw_ledger *derived, struct sw_err *err)
{
	for (uint32_t n = 0; n < ledger->topology->node_count; n++) {
		int r = compare_node(ledger, derived, n, err);
		if (r < 0)
			return r;
	}
	if (ledger->gpus_free != derived->gpus_free || ledger->gpus_up != derived->gpus_up ||
	    ledger->nodes_closed != derived->nodes_closed || ledger->gpus_shut != derived->gpus_shut ||
	    ledger->gpus_yielding != derived->gpus_yielding || ledger->gpus_shared != derived->gpus_shared)
		return sw_err_set(err, SW_EBUG, "ledger: totals do not match the nodes");
	return 0;
}
