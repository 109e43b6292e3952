/* Nodes, as the brain keeps them, as bytes and back. See save.c. */
#include <stdlib.h>
#include <string.h>

#include "brain/save.h"
#include "brain/state.h"

/* ---- walks */

static void pack_jobs_of(struct sw_pack *pack, struct sw_brain_node *node)
{
	size_t count = node->jobs.count;
	sw_pack_count(pack, &count);
	for (size_t j = 0; j < count && pack->failed == 0; j++) {
		uint32_t *id = pack->reads ? sw_vec_push(&node->jobs) : &node->jobs.items[j];
		if (id == NULL) {
			pack->failed = SW_ENOMEM;
			return;
		}
		sw_pack_u32(pack, id);
	}
}

static void pack_ghosts(struct sw_pack *pack, struct sw_brain_node *node)
{
	size_t count = node->ghosts.count;
	sw_pack_count(pack, &count);
	for (size_t g = 0; g < count && pack->failed == 0; g++) {
		struct sw_ghost *ghost = pack->reads ? sw_vec_push(&node->ghosts) : &node->ghosts.items[g];
		if (ghost == NULL) {
			pack->failed = SW_ENOMEM;
			return;
		}
		sw_pack_u32(pack, &ghost->job);
		sw_pack_u32(pack, &ghost->epoch);
		if (!pack->reads || pack->format >= 8)
			sw_pack_bool(pack, &ghost->leased);
	}
}

/* Not here: what is volatile. The version is of the wish list, which agents compare with what they
 * have: it must not begin anew. */
static void pack_node(struct sw_pack *pack, struct sw_brain_node *node)
{
	sw_pack_text(pack, &node->name);
	sw_pack_u32(pack, &node->shape.rack);
	sw_pack_u32(pack, &node->shape.gpus);
	sw_pack_u32(pack, &node->shape.link_group);
	sw_pack_u32(pack, &node->shape.cpus);
	sw_pack_u32(pack, &node->shape.gpu_type);
	sw_pack_u64(pack, &node->shape.memory_bytes);
	sw_pack_u64(pack, &node->shape.gpu_memory_bytes);
	sw_pack_bool(pack, &node->up);
	uint8_t closed = (uint8_t)node->closed;
	sw_pack_u8(pack, &closed);
	if (closed > SW_CLOSED_BY_FAILURES)
		sw_pack_fail(pack);
	if (pack->reads)
		node->closed = pack->failed == 0 ? (enum sw_closed)closed : SW_OPEN;
	sw_pack_chars(pack, node->closed_why, sizeof node->closed_why);
	for (size_t f = 0; f < SW_FAULTS_KEPT; f++) {
		sw_pack_near(pack, &node->faults[f].at, 0);
		sw_pack_u32(pack, &node->faults[f].job);
	}
	if (!pack->reads || pack->format >= 8) {
		sw_pack_chars(pack, node->home, sizeof node->home);
		sw_pack_chars(pack, node->token, sizeof node->token);
	}
	sw_pack_u64(pack, &node->version);
	pack_jobs_of(pack, node);
	pack_ghosts(pack, node);
	if (node->shape.gpus > SW_NODE_GPUS_MAX)
		sw_pack_fail(pack);
	if (pack->reads && !sw_save_make(pack, &node->gpus, node->shape.gpus, sizeof *node->gpus))
		return;
	for (uint32_t g = 0; g < node->shape.gpus; g++) {
		struct sw_brain_gpu *gpu = &node->gpus[g];
		sw_pack_chars(pack, gpu->uuid, sizeof gpu->uuid);
		if (pack->reads && pack->format < 8)
			continue;
		sw_pack_u8(pack, &gpu->shut);
		if (gpu->shut != 0)
			sw_pack_near(pack, &gpu->shut_since, 0);
		if (gpu->shut > SW_SHUT_KINDS)
			sw_pack_fail(pack);
	}
	if (pack->reads && pack->format < 8)
		return;
	sw_pack_bool(pack, &node->silent);
	sw_pack_near(pack, &node->silent_since, 0);
	sw_pack_bool(pack, &node->removed);
	sw_pack_bool(pack, &node->leases);
}

/* ---- all of them */

void sw_save_nodes(struct sw_pack *out, struct sw_brain *brain)
{
	sw_pack_count(out, &brain->nodes.count);
	for (size_t n = 0; n < brain->nodes.count; n++)
		pack_node(out, &brain->nodes.items[n]);
}

int sw_save_load_nodes(struct sw_pack *pack, struct sw_brain *brain)
{
	size_t count = 0;
	sw_pack_count(pack, &count);
	for (uint32_t n = 0; n < count && pack->failed == 0; n++) {
		struct sw_brain_node *node = sw_vec_push(&brain->nodes);
		if (node == NULL)
			return SW_ENOMEM;
		pack_node(pack, node);
		brain->closed_nodes += node->closed != SW_OPEN;
		node->heard_at = node->silent ? node->silent_since : brain->now;
		node->answered_at = brain->now;
		if (pack->failed == 0 && sw_names_find(&brain->node_index, node->name) != SW_NAMES_NONE)
			sw_pack_fail(pack);
		else if (pack->failed == 0 && sw_names_add(&brain->node_index, node->name, n) < 0)
			return SW_ENOMEM;
	}
	return pack->failed;
}

int sw_save_check_seats(struct sw_pack *pack, const struct sw_brain *brain)
{
	uint64_t runs = 0, seats = 0;
	for (uint32_t id = sw_brain_next_known(brain, 0); id != SW_BITMAP_NONE; id = sw_brain_next_known(brain, id + 1))
		runs += brain->jobs.items[id].run_count;
	for (uint32_t n = 0; n < brain->nodes.count; n++) {
		const struct sw_brain_node *node = &brain->nodes.items[n];
		seats += node->jobs.count;
		for (size_t j = 0; j < node->jobs.count && seats <= runs && pack->failed == 0; j++) {
			uint32_t id = node->jobs.items[j];
			if (!sw_bitmap_has(&brain->known, id) || sw_brain_run_on(&brain->jobs.items[id], n) == NULL)
				sw_pack_fail(pack);
			for (size_t other = 0; other < j; other++)
				if (node->jobs.items[other] == id)
					sw_pack_fail(pack);
		}
	}
	if (seats != runs)
		sw_pack_fail(pack);
	return pack->failed;
}

int sw_save_count_ghosts(struct sw_pack *pack, struct sw_brain *brain)
{
	for (size_t n = 0; n < brain->nodes.count; n++) {
		for (size_t g = 0; g < brain->nodes.items[n].ghosts.count; g++) {
			uint32_t job = brain->nodes.items[n].ghosts.items[g].job;
			if (!sw_bitmap_has(&brain->known, job))
				sw_pack_fail(pack);
			else
				brain->jobs.items[job].ghosts++;
		}
	}
	return pack->failed;
}
