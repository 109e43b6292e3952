/* The brain as bytes, and back: what the records so far have made of the cluster, so that a restart need not apply them again.
 *
 * Each struct has one walk below, which both writes and reads it; a new field of the state goes there, and nowhere else. Once journals of this format are out in the
 * world, raise FORMAT with it and read the field only `if (pack->format >= n)`. Format 2 has limits of jobs, format 3 how they get on and the names of their profiles, format 4 who is off
 * its GPUs whole, format 5 what is known of models and learned of their slowdowns, format 6 who is on its way to other GPUs, format 7 for how long one that could not go is not tried again, format 8 (version 0.2) at what jobs wait, the first of an array, which GPUs take no jobs, which numbers are no longer known, nodes that do not answer, leases, which agent speaks for a node, format 9 the last stop of a job, format 10 what suspended runs leave on their GPUs. Format 11 has no memory that jobs asked for: their requests say it. Format 12 has the world. What is marked volatile in brain_state.h is left out; so is what follows
 * from the rest (how many ghosts a job has, the indexes): it is made anew.
 *
 * Invariant: a brain that was loaded, and one that has applied all the records, are the same to every record, sync and question that comes after.
 */
#include <stdlib.h>
#include <string.h>

#include "brain/state.h"

#define MAGIC UINT64_C(0x316e696172627773) /* "swbrain1" */
#define FORMAT 12u
#define NUMBERS_MAX (UINT32_C(1) << 30)

/* Makes `count` zeroed elements of an array that is read; false when the pack has failed. */
static bool make(struct sw_pack *pack, void *ret_items, size_t count, size_t size)
{
	void *items = pack->failed == 0 ? calloc(count + 1, size) : NULL;
	if (items == NULL) {
		if (pack->failed == 0)
			pack->failed = SW_ENOMEM;
		return false;
	}
	memcpy(ret_items, &items, sizeof items);
	return true;
}

/* ---- walks */

static void pack_run(struct sw_pack *pack, struct sw_run *run)
{
	sw_pack_u32(pack, &run->node);
	sw_pack_u64(pack, &run->mask);
	sw_pack_u8(pack, &run->heard);
	sw_pack_int(pack, &run->code);
	sw_pack_int(pack, &run->signal);
}

static void pack_depend(struct sw_pack *pack, struct sw_depend *depend)
{
	uint8_t kind = (uint8_t)depend->kind;
	sw_pack_u8(pack, &kind);
	depend->kind = (enum sw_depend_kind)kind;
	sw_pack_u64(pack, &depend->job);
}

static void pack_runs(struct sw_pack *pack, struct sw_live *live)
{
	size_t count = live->run_count;
	sw_pack_count(pack, &count);
	if (pack->reads && (count == 0 || !make(pack, &live->runs, count, sizeof *live->runs)))
		return;
	live->run_count = (uint32_t)count;
	for (size_t r = 0; r < count; r++)
		pack_run(pack, &live->runs[r]);
}

static void pack_depends(struct sw_pack *pack, struct sw_live *live)
{
	size_t count = live->depend_count;
	sw_pack_count(pack, &count);
	if (pack->reads && (count == 0 || !make(pack, &live->depends, count, sizeof *live->depends)))
		return;
	live->depend_count = (uint32_t)count;
	for (size_t d = 0; d < count; d++)
		pack_depend(pack, &live->depends[d]);
}

static void pack_cause(struct sw_pack *pack, struct sw_cause *cause)
{
	uint8_t layer = (uint8_t)cause->layer, action = (uint8_t)cause->action;
	sw_pack_chars(pack, cause->name, sizeof cause->name);
	sw_pack_text(pack, &cause->line);
	sw_pack_u8(pack, &layer);
	sw_pack_u8(pack, &action);
	sw_pack_u32(pack, &cause->budget);
	sw_pack_u32(pack, &cause->rank);
	sw_pack_u32(pack, &cause->node);
	sw_pack_bool(pack, &cause->free);
	if (layer > SW_LAYER_UNKNOWN || action > SW_ACTION_MEMORY)
		sw_pack_fail(pack);
	if (!pack->reads)
		return;
	cause->layer = pack->failed == 0 ? (enum sw_failure_layer)layer : SW_LAYER_UNKNOWN;
	cause->action = pack->failed == 0 ? (enum sw_failure_action)action : SW_ACTION_NONE;
}

static void pack_trouble(struct sw_pack *pack, struct sw_trouble *trouble)
{
	pack_cause(pack, &trouble->cause);
	sw_pack_bool(pack, &trouble->pending);
	sw_pack_bool(pack, &trouble->again);
	sw_pack_bool(pack, &trouble->elsewhere);
	sw_pack_bool(pack, &trouble->memory_raised);
	sw_pack_u64(pack, &trouble->memory_bytes);
	sw_pack_u32(pack, &trouble->tried);
	sw_pack_u32(pack, &trouble->may);
	sw_pack_chars(pack, trouble->why, sizeof trouble->why);
	for (size_t i = 0; i < SW_TROUBLES_KEPT; i++) {
		sw_pack_word(pack, &trouble->classes[i]);
		sw_pack_word(pack, &trouble->seen[i]);
		sw_pack_u32(pack, &trouble->class_tries[i]);
		sw_pack_u32(pack, &trouble->seen_count[i]);
		sw_pack_u32(pack, &trouble->seen_node[i]);
	}
}

/* What failures have to do with the job. */
static void pack_failures(struct sw_pack *pack, struct sw_live *live)
{
	bool has_trouble = live->trouble != NULL, has_warning = live->warning != NULL;
	sw_pack_u32(pack, &live->failures);
	sw_pack_word(pack, &live->command_hash);
	sw_pack_bool(pack, &live->asked_retries);
	sw_pack_bool(pack, &live->is_prerun);
	sw_pack_bool(pack, &live->spoiled);
	sw_pack_bool(pack, &has_warning);
	if (has_warning)
		sw_pack_text(pack, &live->warning);
	sw_pack_bool(pack, &has_trouble);
	if (has_trouble && (!pack->reads || make(pack, &live->trouble, 1, sizeof *live->trouble)))
		pack_trouble(pack, live->trouble);
}

static void pack_pace(struct sw_pack *pack, struct sw_live *live)
{
	bool has_pace = live->pace != NULL;
	sw_pack_bool(pack, &has_pace);
	if (!has_pace || (pack->reads && !make(pack, &live->pace, 1, sizeof *live->pace)))
		return;
	struct sw_pace *pace = live->pace;
	if (pace == NULL)
		return;
	sw_pack_u32(pack, &pace->epoch);
	sw_pack_near(pack, &pace->at, live->submitted_at);
	sw_pack_i64(pack, &pace->iteration_ns);
	sw_pack_i64(pack, &pace->alone_ns);
	sw_pack_u64(pack, &pace->iterations);
	sw_pack_u32(pack, &pace->beside.count);
	if (pace->beside.count > SW_SYNC_JOBS_LISTED || pace->iteration_ns < 0 || pace->alone_ns < 0)
		sw_pack_fail(pack);
	for (uint32_t i = 0; i < pace->beside.count && pack->failed == 0; i++)
		sw_pack_u64(pack, &pace->beside.items[i]);
}

static void pack_model(struct sw_pack *pack, struct sw_live *live)
{
	bool has_model = live->model != NULL;
	sw_pack_bool(pack, &has_model);
	if (has_model)
		sw_pack_text(pack, &live->model);
}

static void pack_fates(struct sw_pack *pack, struct sw_asked *asked)
{
	size_t count = asked->fate_count;
	sw_pack_count(pack, &count);
	if (pack->reads && (count == 0 || !make(pack, &asked->fates, count, sizeof *asked->fates)))
		return;
	asked->fate_count = (uint32_t)count;
	for (size_t f = 0; f < count; f++) {
		sw_pack_u64(pack, &asked->fates[f].job);
		sw_pack_bool(pack, &asked->fates[f].ok);
	}
}

static void pack_bulk(struct sw_pack *pack, struct sw_brain *brain, struct sw_asked *asked)
{
	bool warns = asked->warning != NULL;
	pack_fates(pack, asked);
	for (int b = 0; b < SW_BULKS && pack->failed == 0; b++) {
		struct sw_bulk bulk = asked->bulk[b];
		sw_pack_u32(pack, &bulk.size);
		if (bulk.size > 0)
			sw_pack_raw(pack, bulk.digest, sizeof bulk.digest);
		if (pack->reads && pack->failed == 0 && bulk.size > 0 && sw_asked_add_bulk(brain, asked, b, &bulk) < 0)
			pack->failed = SW_ENOMEM;
	}
	sw_pack_bool(pack, &warns);
	if (warns)
		sw_pack_text(pack, &asked->warning);
}

/* What it asked for; the members of an array share that with the one before. */
static void pack_asked(struct sw_pack *pack, struct sw_brain *brain, struct sw_live *live, const struct sw_live *before)
{
	bool same = !pack->reads && before != NULL && live->asked == before->asked;
	sw_pack_bool(pack, &same);
	if (!same) {
		char *text = pack->reads ? NULL : live->asked->text;
		sw_pack_text(pack, &text);
		if (pack->reads && pack->failed == 0 && (live->asked = sw_asked_copy(text)) == NULL)
			pack->failed = SW_ENOMEM;
		if (pack->reads)
			free(text);
		if (pack->failed == 0 && (!pack->reads || pack->format >= 8))
			pack_bulk(pack, brain, live->asked);
	} else if (pack->reads && before != NULL && before->asked != NULL) {
		live->asked = sw_asked_share(before->asked);
	} else if (pack->reads) {
		sw_pack_fail(pack);
	}
	sw_pack_bool(pack, &live->is_member);
	sw_pack_u32(pack, &live->array_index);
}

static void pack_depth(struct sw_pack *pack, struct sw_live *live)
{
	bool refused = live->not_deep != NULL;
	sw_pack_bool(pack, &live->deep);
	for (uint32_t r = 0; r < live->run_count && live->deep; r++)
		sw_pack_bool(pack, &live->runs[r].off);
	sw_pack_bool(pack, &refused);
	if (refused)
		sw_pack_text(pack, &live->not_deep);
}

static void pack_move(struct sw_pack *pack, struct sw_live *live)
{
	bool unmoved = live->unmoved != NULL;
	for (uint32_t r = 0; r < live->run_count; r++) {
		sw_pack_u64(pack, &live->runs[r].from);
		if (live->runs[r].from != 0)
			sw_pack_near(pack, &live->runs[r].moved_at, 0);
	}
	sw_pack_bool(pack, &unmoved);
	if (unmoved)
		sw_pack_text(pack, &live->unmoved);
	if (unmoved && (!pack->reads || pack->format >= 7))
		sw_pack_near(pack, &live->unmoved_until, 0);
}

static void pack_lease(struct sw_pack *pack, struct sw_live *live)
{
	sw_pack_i64(pack, &live->lease_ns);
	sw_pack_i64(pack, &live->grace_ns);
	sw_pack_bool(pack, &live->stranded);
	sw_pack_bool(pack, &live->node_lost);
	for (uint32_t r = 0; r < live->run_count; r++)
		sw_pack_bool(pack, &live->runs[r].leased);
	if (live->lease_ns < 0 || live->lease_ns > SW_JOB_LEASE_MAX_NS || live->grace_ns < 0 || live->grace_ns > SW_JOB_DURATION_MAX_NS)
		sw_pack_fail(pack);
}

/* `before` is the job before this one; NULL: this is the first. Not here: ghosts. */
static void pack_live(struct sw_pack *pack, struct sw_brain *brain, struct sw_live *live, const struct sw_live *before)
{
	pack_asked(pack, brain, live, before);
	sw_pack_text(pack, &live->name);
	pack_depends(pack, live);
	sw_pack_u32(pack, &live->uid);
	sw_pack_u32(pack, &live->gid);
	sw_pack_u32(pack, &live->tenant);
	sw_pack_u32(pack, &live->epoch);
	sw_pack_u32(pack, &live->run_epoch);
	pack_runs(pack, live);
	sw_pack_bool(pack, &live->parks);
	sw_pack_bool(pack, &live->parked);
	if (live->parked)
		sw_pack_near(pack, &live->parked_at, 0);
	sw_pack_u32(pack, &live->held_by);
	uint64_t unused = 0;
	for (int i = 0; i < 2 && pack->reads && pack->format < 11; i++)
		sw_pack_u64(pack, &unused);
	sw_pack_u32(pack, &live->last_node);
	sw_pack_u64(pack, &live->last_mask);
	sw_pack_int(pack, &live->code);
	sw_pack_int(pack, &live->signal);
	sw_pack_chars(pack, live->reason, sizeof live->reason);
	sw_pack_near(pack, &live->submitted_at, before != NULL ? before->submitted_at : 0);
	sw_pack_near(pack, &live->started_at, live->submitted_at);
	sw_pack_near(pack, &live->ended_at, live->submitted_at);
	pack_failures(pack, live);
	sw_pack_bool(pack, &live->user_held);
	sw_pack_bool(pack, &live->timed_out);
	if (pack->reads && pack->format < 2)
		return;
	sw_pack_u64(pack, &live->limit_bytes);
	sw_pack_u32(pack, &live->limit_milli);
	if (live->limit_bytes > SW_JOB_BYTES_MAX || live->limit_milli >= 1000)
		sw_pack_fail(pack);
	if (pack->reads && pack->format < 3)
		return;
	pack_pace(pack, live);
	pack_model(pack, live);
	if (pack->reads && pack->format < 4)
		return;
	pack_depth(pack, live);
	if (pack->reads && pack->format < 6)
		return;
	pack_move(pack, live);
	if (pack->reads && pack->format < 8)
		return;
	sw_pack_u32(pack, &live->array_first);
	pack_lease(pack, live);
	if (pack->reads && pack->format < 9)
		return;
	sw_stop_pack(pack, live);
	if (pack->reads && pack->format < 10)
		return;
	for (uint32_t r = 0; r < live->run_count; r++) {
		sw_pack_bool(pack, &live->runs[r].frees);
		sw_pack_bool(pack, &live->runs[r].held);
	}
}

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

/* Not here: what is volatile. The version is of the wish list, which agents compare with what they have: it must not begin anew. */
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
	if (pack->reads && !make(pack, &node->gpus, node->shape.gpus, sizeof *node->gpus))
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

static void pack_input(struct sw_pack *pack, struct sw_bad_input *input, sw_ns now)
{
	sw_pack_chars(pack, input->path, sizeof input->path);
	sw_pack_near(pack, &input->at, now);
	sw_pack_u32(pack, &input->last_job);
	sw_pack_u32(pack, &input->jobs);
}

static void pack_spent(struct sw_pack *pack, struct sw_spent *spent, sw_ns now)
{
	sw_pack_word(pack, &spent->owner);
	sw_pack_word(pack, &spent->failure);
	sw_pack_near(pack, &spent->at, now);
}

/* Not here: the chains, which are made anew. */
static void pack_key(struct sw_pack *pack, struct sw_key *key, sw_ns now)
{
	sw_pack_text(pack, &key->text);
	sw_pack_word(pack, &key->digest);
	sw_pack_u64(pack, &key->first);
	sw_pack_near(pack, &key->at, now);
	sw_pack_u32(pack, &key->uid);
	sw_pack_u32(pack, &key->count);
}

/* Who is in charge: the policy that was chosen with its settings, or that of the configuration. */
struct choice {
	bool chosen;
	char *policy, *settings;
};

static void pack_choice(struct sw_pack *pack, struct choice *choice)
{
	sw_pack_bool(pack, &choice->chosen);
	sw_pack_text(pack, &choice->policy);
	sw_pack_text(pack, &choice->settings);
}

static void pack_world(struct sw_pack *pack, struct sw_brain *brain)
{
	bool said = brain->world != NULL;
	if (pack->reads && pack->format < 12)
		return;
	sw_pack_bool(pack, &said);
	if (said)
		sw_pack_text(pack, &brain->world);
}

static void pack_time(struct sw_pack *pack, struct sw_brain *brain)
{
	sw_pack_i64(pack, &brain->now);
	sw_pack_near(pack, &brain->wake_at, brain->now);
}

/* ---- saving */

/* In rows: how many numbers are not known, and how many are then. */
static void save_jobs(struct sw_pack *out, struct sw_brain *brain)
{
	size_t known = brain->known.count;
	uint32_t numbers = (uint32_t)brain->jobs.count, end = 0;
	const struct sw_live *before = NULL;
	sw_pack_count(out, &known);
	sw_pack_u32(out, &numbers);
	for (uint32_t id = sw_brain_next_known(brain, 0); id != SW_BITMAP_NONE; id = sw_brain_next_known(brain, id + 1)) {
		if (id >= end) {
			uint32_t gap = id - end, row = sw_bitmap_row(&brain->known, id);
			sw_pack_u32(out, &gap);
			sw_pack_u32(out, &row);
			end = id + row;
		}
		pack_live(out, brain, &brain->jobs.items[id], before);
		before = &brain->jobs.items[id];
	}
}

void sw_brain_save(const struct sw_brain *saved, struct sw_pack *out)
{
	/* The walks take what they read or write by the same pointers; a writer changes nothing. */
	struct sw_brain *brain = (struct sw_brain *)(uintptr_t)saved;
	static char no_settings[] = "{}";
	uint64_t magic = MAGIC;
	uint32_t format = FORMAT;
	sw_pack_word(out, &magic);
	sw_pack_u32(out, &format);
	struct choice choice = {
		.chosen = brain->policy != NULL,
		.policy = brain->policy != NULL ? brain->policy : (char *)(uintptr_t)brain->config.policy,
		.settings = brain->settings != NULL ? brain->settings : no_settings,
	};
	pack_choice(out, &choice);
	pack_world(out, brain);
	pack_time(out, brain);
	sw_pack_count(out, &brain->tenants.count);
	for (size_t t = 0; t < brain->tenants.count; t++)
		sw_pack_text(out, &brain->tenants.items[t]);
	sw_pack_count(out, &brain->nodes.count);
	for (size_t n = 0; n < brain->nodes.count; n++)
		pack_node(out, &brain->nodes.items[n]);
	save_jobs(out, brain);
	sw_depends_save(brain, out);
	size_t retries = brain->retries.count;
	sw_pack_count(out, &retries);
	for (uint32_t id = sw_brain_next_known(brain, 0); id != SW_BITMAP_NONE && retries > 0; id = sw_brain_next_known(brain, id + 1)) {
		if (!sw_heap_has(&brain->retries, id))
			continue;
		sw_ns at = sw_heap_key(&brain->retries, id);
		sw_pack_u32(out, &id);
		sw_pack_near(out, &at, brain->now);
	}
	size_t keys = brain->keys.items.count - brain->keys.start;
	sw_pack_count(out, &keys);
	for (size_t k = brain->keys.start; k < brain->keys.items.count; k++)
		pack_key(out, &brain->keys.items.items[k], brain->now);
	sw_pack_count(out, &brain->inputs.count);
	for (size_t i = 0; i < brain->inputs.count; i++)
		pack_input(out, &brain->inputs.items[i], brain->now);
	sw_pack_count(out, &brain->spent.count);
	for (size_t i = 0; i < brain->spent.count; i++)
		pack_spent(out, &brain->spent.items[i], brain->now);
	sw_brain_pack_known(out, brain);
	sw_brain_pack_learned(out, brain);
	sw_engine_save(brain->engine, out); /* last: it reads to the end */
}

/* ---- loading */

static int load_tenants(struct sw_pack *pack, struct sw_brain *brain)
{
	size_t count = 0;
	sw_pack_count(pack, &count);
	if (sw_vec_reserve(&brain->tenants, count) < 0)
		return SW_ENOMEM;
	for (uint32_t t = 0; t < count && pack->failed == 0; t++) {
		char **name = sw_vec_push(&brain->tenants);
		sw_pack_text(pack, name);
		if (pack->failed == 0 && sw_names_find(&brain->tenant_index, *name) != SW_NAMES_NONE)
			sw_pack_fail(pack);
		else if (pack->failed == 0 && sw_names_add(&brain->tenant_index, *name, t) < 0)
			return SW_ENOMEM;
	}
	return pack->failed;
}

static int load_nodes(struct sw_pack *pack, struct sw_brain *brain)
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

static bool are_sensible(const struct sw_brain *brain, const struct sw_live *live)
{
	for (uint32_t r = 0; r < live->run_count; r++) {
		const struct sw_run *run = &live->runs[r];
		const struct sw_brain_node *node = run->node < brain->nodes.count ? &brain->nodes.items[run->node] : NULL;
		if (node == NULL || run->heard > SW_HEARD_EXITED || run->mask == 0 ||
		    (node->shape.gpus < 64 && run->mask >> node->shape.gpus != 0) || sw_brain_run_on(live, run->node) != run)
			return false;
		if (run->from != 0 &&
		    (live->run_count > 1 || run->from == run->mask || (node->shape.gpus < 64 && run->from >> node->shape.gpus != 0)))
			return false;
	}
	/* A pre-run is made before its gang. */
	if (sw_prerun_of(live) > 0 && sw_brain_live(brain, sw_prerun_of(live)) == NULL)
		return false;
	return live->trouble == NULL || live->trouble->cause.node < brain->nodes.count;
}

static int load_jobs(struct sw_pack *pack, struct sw_brain *brain)
{
	size_t count = 0;
	sw_pack_count(pack, &count);
	/* Up to format 7 no number was left out. */
	uint32_t numbers = (uint32_t)count, last = SW_BITMAP_NONE;
	if (pack->format >= 8)
		sw_pack_u32(pack, &numbers);
	if (count > sw_pack_left(pack) || numbers < count || numbers > NUMBERS_MAX)
		return SW_EINPUT;
	uint32_t row = pack->format >= 8 ? 0 : (uint32_t)count;
	for (size_t i = 0; i < count && pack->failed == 0; i++, row--) {
		uint32_t gap = 0;
		if (row == 0) {
			sw_pack_u32(pack, &gap);
			sw_pack_u32(pack, &row);
		}
		if (gap > numbers - brain->jobs.count - (count - i) || row == 0 || row > count - i)
			return SW_EINPUT;
		brain->jobs.count += gap;
		struct sw_live *live = sw_brain_add(brain);
		if (live == NULL)
			return SW_ENOMEM;
		pack_live(pack, brain, live, last != SW_BITMAP_NONE ? &brain->jobs.items[last] : NULL);
		last = (uint32_t)brain->jobs.count - 1;
		if (pack->format < 8 && live->is_member)
			live->array_first =
				last > 0 && live[-1].is_member && live[-1].asked == live->asked ? live[-1].array_first : last + 1;
		if (live->is_member != (live->array_first != 0) || live->array_first > last + 1)
			sw_pack_fail(pack);
		if (pack->failed == 0 && (live->tenant >= brain->tenants.count || !are_sensible(brain, live)))
			sw_pack_fail(pack);
	}
	if (pack->failed == 0)
		brain->jobs.count = numbers;
	return pack->failed;
}

/* Whether the nodes list exactly the runs of the jobs. */
static int check_seats(struct sw_pack *pack, const struct sw_brain *brain)
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

static int load_keys(struct sw_pack *pack, struct sw_brain *brain)
{
	size_t count = 0;
	sw_ns before = 0;
	int r = 0;
	sw_pack_count(pack, &count);
	for (size_t k = 0; k < count && pack->failed == 0 && r == 0; k++) {
		struct sw_key key = {0};
		pack_key(pack, &key, brain->now);
		if (pack->failed == 0 && (key.at < before || key.at > brain->now))
			sw_pack_fail(pack);
		if (pack->failed == 0)
			r = sw_keys_add(&brain->keys, key.text, &key);
		free(key.text);
		before = key.at;
	}
	return r < 0 ? r : pack->failed;
}

static int load_memories(struct sw_pack *pack, struct sw_brain *brain)
{
	size_t inputs = 0, spent = 0;
	sw_pack_count(pack, &inputs);
	for (size_t i = 0; i < inputs && pack->failed == 0; i++) {
		struct sw_bad_input *input = sw_vec_push(&brain->inputs);
		if (input == NULL)
			return SW_ENOMEM;
		pack_input(pack, input, brain->now);
	}
	sw_pack_count(pack, &spent);
	for (size_t i = 0; i < spent && pack->failed == 0; i++) {
		struct sw_spent *one = sw_vec_push(&brain->spent);
		if (one == NULL)
			return SW_ENOMEM;
		pack_spent(pack, one, brain->now);
	}
	return pack->failed;
}

static int load_waits(struct sw_pack *pack, struct sw_brain *brain)
{
	size_t retries = 0;
	int r = sw_depends_load(brain, pack);
	if (r < 0)
		return r;
	sw_pack_count(pack, &retries);
	for (size_t i = 0; i < retries && pack->failed == 0; i++) {
		uint32_t id = 0;
		sw_ns at = 0;
		sw_pack_u32(pack, &id);
		sw_pack_near(pack, &at, brain->now);
		if (!sw_bitmap_has(&brain->known, id))
			sw_pack_fail(pack);
		else
			sw_heap_set(&brain->retries, id, at);
	}
	return pack->failed;
}

/* Ghosts know their jobs; the jobs count them. */
static int count_ghosts(struct sw_pack *pack, struct sw_brain *brain)
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

/* Which jobs are stranded, and how many nodes are out of reach. */
static int load_silence(struct sw_brain *brain)
{
	sw_brain_count_far(brain);
	for (uint32_t job = sw_brain_first(brain); job != 0; job = sw_brain_after(brain, job))
		if (brain->jobs.items[job - 1].stranded && sw_brain_list_stranded(brain, job - 1) < 0)
			return SW_ENOMEM;
	return 0;
}

static int read_settings(struct sw_brain *brain, const struct sw_policy *policy, const char *settings, struct sw_err *err)
{
	json_t *json = json_loads(settings, 0, NULL);
	int r = json_is_object(json) ? sw_brain_read_settings(policy, json, &brain->params, err) : SW_EINPUT;
	json_decref(json);
	return r;
}

/* The engine, under the policy that was in charge; then under that of the configuration, where that is another now and nobody chose one since. */
static int load_engine(struct sw_pack *pack, struct sw_brain *brain, struct choice *choice, bool *ret_adopted, struct sw_err *err)
{
	struct sw_engine_config config;
	int r = sw_brain_engine_config(brain, &config, err);
	if (r < 0)
		return r;
	const struct sw_policy *own = config.policy, *policy = sw_brain_find_policy(&brain->config, choice->policy);
	if (policy == NULL) {
		if (choice->chosen) {
			sw_err_set(err, SW_ENOTFOUND, "there is no policy '%.60s', which is in charge", choice->policy);
			sw_err_hint(err, "Start the controller with --plugin and the file that it came from.");
			return SW_ENOTFOUND;
		}
		policy = own;
	}
	if (choice->chosen) {
		r = read_settings(brain, policy, choice->settings, err);
		if (r < 0)
			return r;
		brain->policy = SW_TAKE(choice->policy);
		brain->settings = SW_TAKE(choice->settings);
	}
	config.policy = policy;
	config.params = brain->params;
	r = sw_engine_load(&config, pack->source + pack->at, sw_pack_left(pack), &brain->engine, ret_adopted, err);
	if (r == 0 && brain->policy == NULL && policy != own) {
		*ret_adopted = true;
		r = sw_engine_set_policy(brain->engine, own, NULL, err);
	}
	return r;
}

static bool know_the_same(const struct sw_brain *brain)
{
	if (sw_engine_job_count(brain->engine) != brain->jobs.count || sw_engine_known_count(brain->engine) != brain->known.count)
		return false;
	for (uint32_t id = sw_brain_next_known(brain, 0); id != SW_BITMAP_NONE; id = sw_brain_next_known(brain, id + 1))
		if (sw_engine_job(brain->engine, (struct sw_job_id){id}) == NULL)
			return false;
	return true;
}

/* Up to format 10 a home could be left behind when its run was dropped. */
static int lose_empty_homes(struct sw_brain *brain, struct sw_err *err)
{
	int r = 0;
	brain->gathers = true; /* nothing is decided here */
	for (uint32_t id = sw_brain_next_known(brain, 0); r == 0 && id != SW_BITMAP_NONE; id = sw_brain_next_known(brain, id + 1))
		if (!brain->jobs.items[id].parked && sw_engine_stands(brain->engine, (struct sw_job_id){id}) != SW_NO_PART)
			r = sw_brain_lose_parked(brain, id, err);
	brain->gathers = false;
	return r;
}

/* Earlier versions could end a job and leave its run suspended. */
static int drop_runs_of_ended(struct sw_brain *brain)
{
	int r = 0;
	for (uint32_t id = sw_brain_next_known(brain, 0); r == 0 && id != SW_BITMAP_NONE; id = sw_brain_next_known(brain, id + 1))
		if (brain->jobs.items[id].parked && brain->jobs.items[id].is_over)
			r = sw_brain_drop_runs(brain, id);
	return r;
}

/* Whether brain and engine speak of the same jobs and nodes. */
static int check(struct sw_brain *brain, uint32_t format, struct sw_err *err)
{
	const struct sw_topology *topology = sw_engine_ledger(brain->engine)->topology;
	if (!know_the_same(brain) || topology->node_count != brain->nodes.count)
		return SW_EINPUT;
	for (size_t n = 0; n < brain->nodes.count; n++)
		if (topology->nodes[n].gpus != brain->nodes.items[n].shape.gpus)
			return SW_EINPUT;
	int r = sw_depends_derive(brain, format);
	r = r < 0 ? r : sw_brain_list_past(brain);
	r = r < 0 ? r : drop_runs_of_ended(brain);
	r = r < 0 || format >= 11 ? r : lose_empty_homes(brain, err);
	return r < 0 ? r : sw_brain_validate(brain, err);
}

static int load(struct sw_pack *pack, struct sw_brain *brain, bool *ret_adopted, struct sw_err *err)
{
	struct choice choice = {0};
	pack_choice(pack, &choice);
	pack_world(pack, brain);
	pack_time(pack, brain);
	int r = brain->now < 0 || brain->now > SW_ENGINE_TIME_MAX ? SW_EINPUT : pack->failed;
	r = r < 0 ? r : sw_brain_find_failures(brain, err);
	r = r < 0 ? r : load_tenants(pack, brain);
	r = r < 0 ? r : load_nodes(pack, brain);
	r = r < 0 ? r : load_jobs(pack, brain);
	r = r < 0 ? r : check_seats(pack, brain);
	r = r < 0 ? r : load_waits(pack, brain);
	r = r < 0 ? r : load_keys(pack, brain);
	r = r < 0 ? r : load_memories(pack, brain);
	r = r < 0 ? r : count_ghosts(pack, brain);
	r = r < 0 ? r : load_silence(brain);
	r = r < 0 ? r : sw_brain_load_world(brain, err);
	r = r < 0 ? r : sw_brain_make_known(brain, err);
	if (r == 0 && pack->format >= 5) {
		sw_brain_pack_known(pack, brain);
		sw_brain_pack_learned(pack, brain);
	}
	r = r < 0 ? r : pack->failed;
	r = r < 0 ? r : load_engine(pack, brain, &choice, ret_adopted, err);
	r = r < 0 ? r : check(brain, pack->format, err);
	free(choice.policy);
	free(choice.settings);
	return r;
}

int sw_brain_load(const struct sw_brain_config *config, const void *bytes, size_t size, struct sw_brain **ret_brain, bool *ret_adopted,
		  struct sw_err *err)
{
	struct sw_pack pack = sw_pack_reader(bytes, size);
	struct sw_err inner = {0};
	bool adopted = false;
	uint64_t magic = 0;
	SW_CLEANUP(sw_brain_freep) struct sw_brain *brain = calloc(1, sizeof *brain);
	if (brain == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	brain->config = *config;
	sw_pack_word(&pack, &magic);
	sw_pack_u32(&pack, &pack.format);
	if (pack.failed == 0 && magic == MAGIC && pack.format > FORMAT)
		return sw_err_set(err, SW_ELIMIT, "the state was written by a newer version (format %u)", pack.format);
	int r = pack.failed == 0 && magic == MAGIC && pack.format > 0 ? load(&pack, brain, &adopted, &inner) : SW_EINPUT;
	if (r < 0) {
		r = r == SW_EBUG ? SW_EINPUT : r; /* the promise was broken by the bytes */
		sw_err_set(err, r, r == SW_ENOMEM ? "out of memory for the state" : "the state cannot be read");
		if (inner.code != 0)
			sw_err_detail(err, "%s%s%s", inner.fact, inner.detail[0] != '\0' ? ": " : "", inner.detail);
		if (inner.hint[0] != '\0')
			sw_err_hint(err, "%s", inner.hint);
		return r;
	}
	*ret_brain = SW_TAKE(brain);
	*ret_adopted = adopted;
	return 0;
}
