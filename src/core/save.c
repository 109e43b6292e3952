/* The engine as bytes, and back.
 *
 * Two parts. The *facts* are what any scheduler would have to know: the cluster, jobs, what they hold, what they got so far, quotas. The *conduct* is what
 * makes the next decision fall exactly as it would have: the order with its stamps, alarms, the generator, the policy's own bytes.
 * Another version of this program may keep other things for its conduct; it then reads the facts alone and lets the policy take over, as if it had
 * just been chosen.
 *
 * A new field goes into one walk below, which both writes and reads it. In the facts, raise FACTS_FORMAT and read the field only `if (pack->format >= n)`:
 * journals of earlier versions hold nothing else. In the conduct, or when a policy changes what it keeps, raise CONDUCT_FORMAT.
 *
 * Invariants:
 *  1. an engine that was loaded with its conduct has the same hashes for ever after as the one that was saved;
 *  2. bytes that are cut short or changed are an error: everything that is read is checked before it is used, and the whole engine at the end.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "core/state.h"

#define MAGIC UINT64_C(0x31656e69676e6573) /* "sengine1" */
#define FACTS_FORMAT 6u
#define CONDUCT_FORMAT 4u
#define JOB_BYTES_MIN 32u /* no job takes less */
#define SEQ_MAX (INT64_C(1) << 38)

/* ---- facts */

static void pack_shape(struct sw_pack *pack, struct sw_topology_node *shape)
{
	sw_pack_u32(pack, &shape->rack);
	sw_pack_u32(pack, &shape->gpus);
	sw_pack_u32(pack, &shape->link_group);
	sw_pack_u32(pack, &shape->cpus);
	sw_pack_u32(pack, &shape->gpu_type);
	sw_pack_u64(pack, &shape->memory_bytes);
	sw_pack_u64(pack, &shape->gpu_memory_bytes);
}

/* `before` is when the job before this one came. */
static void pack_seen(struct sw_pack *pack, struct sw_job *job, sw_ns before)
{
	sw_pack_u8(pack, &job->state);
	sw_pack_u32(pack, &job->gpus);
	sw_pack_u32(pack, &job->min_gpus);
	sw_pack_u32(pack, &job->max_gpus);
	sw_pack_u32(pack, &job->gpus_held);
	sw_pack_u32(pack, &job->tenant);
	sw_pack_u32(pack, &job->weight_milli);
	sw_pack_u32(pack, &job->compute_milli);
	sw_pack_u64(pack, &job->gpu_memory_bytes);
	sw_pack_u64(pack, &job->host_memory_bytes);
	sw_pack_u32(pack, &job->cpus);
	sw_pack_u32(pack, &job->model);
	sw_pack_u16(pack, &job->skew_milli);
	sw_pack_u8(pack, &job->job_class);
	sw_pack_u8(pack, &job->knowledge);
	sw_pack_u16(pack, &job->retries_left);
	sw_pack_near(pack, &job->submit_at, before);
	sw_pack_near(pack, &job->deadline_at, job->submit_at);
	sw_pack_near(pack, &job->first_start_at, job->submit_at);
	sw_pack_near(pack, &job->since, job->submit_at);
	sw_pack_u32(pack, &job->preemptions);
	sw_pack_u32(pack, &job->migrations);
	sw_pack_u32(pack, &job->restarts);
	sw_pack_u32(pack, &job->promotions);
	sw_pack_near(pack, &job->ran_ns, 0);
	sw_pack_near(pack, &job->gpu_time_ns, 0);
	sw_pack_near(pack, &job->work_left_ns, 0);
	sw_pack_near(pack, &job->work_left_as_of, 0);
	sw_pack_near(pack, &job->ends_at, 0);
}

/* Whether the bytes have the fields of this format; those that are written have all. */
static bool has(const struct sw_pack *pack, uint32_t format)
{
	return !pack->reads || pack->format >= format;
}

static void pack_core_job(struct sw_pack *pack, struct sw_core_job *job, sw_ns before)
{
	pack_seen(pack, &job->seen, before);
	sw_pack_u64(pack, &job->asked_memory_bytes);
	sw_pack_u32(pack, &job->asked_compute_milli);
	sw_pack_u32(pack, &job->epoch);
	sw_pack_bool(pack, &job->can_resume);
	sw_pack_bool(pack, &job->prefers_home);
	uint32_t avoid = job->avoid + 1; /* 0: none */
	if (has(pack, 2))
		sw_pack_u32(pack, &avoid);
	job->avoid = avoid - 1;
	if (has(pack, 3)) {
		sw_pack_u16(pack, &job->seen.use_milli);
		sw_pack_u8(pack, &job->seen.asked_class);
		sw_pack_bool(pack, &job->seen.is_auto);
	} else {
		job->seen.asked_class = job->seen.job_class;
	}
	if (has(pack, 4)) {
		sw_pack_u32(pack, &job->speed_milli);
		sw_pack_u32(pack, &job->speed_epoch);
		sw_pack_u32(pack, &job->split_milli);
		sw_pack_u64(pack, &job->seen.gpu_floor_bytes);
		sw_pack_bool(pack, &job->seen.paused);
		sw_pack_bool(pack, &job->seen.cannot_pause);
	}
	if (job->seen.state > SW_JOB_RUNNING) /* nobody asks any more */
		return;
	if (has(pack, 5)) {
		sw_pack_u8(pack, &job->seen.stop_rule);
		sw_pack_bool(pack, &job->seen.no_restart);
		sw_pack_bool(pack, &job->held_next);
		sw_pack_u8(pack, &job->keeps);
	} else if (job->prefers_home) { /* what ran then was known to go on where it was */
		job->seen.stop_rule = SW_STOP_SUSPEND;
		job->keeps = SW_KEEPS_YES;
	}
	if (has(pack, 6)) {
		sw_pack_bool(pack, &job->seen.frees_gpus);
		sw_pack_near(pack, &job->stood_at, 0);
	}
}

static void pack_part(struct sw_pack *pack, struct sw_part *part)
{
	if (has(pack, 4))
		sw_pack_u64(pack, &part->split_bytes);
	sw_pack_u32(pack, &part->node);
	sw_pack_u64(pack, &part->mask);
	sw_pack_u32(pack, &part->cpus);
	sw_pack_u64(pack, &part->memory_bytes);
}

/* What is said once, about all of it. */
static void pack_whole(struct sw_pack *pack, struct sw_engine *engine)
{
	sw_pack_i64(pack, &engine->now);
	sw_pack_word(pack, &engine->log_hash);
	sw_pack_word(pack, &engine->command_hash);
	sw_pack_bool(pack, &engine->quotas);
	sw_pack_bool(pack, &engine->fell_back);
	sw_pack_bool(pack, &engine->recheck);
	sw_pack_chars(pack, engine->notes, sizeof engine->notes);
}

/* ---- conduct */

static void pack_lane(struct sw_pack *pack, struct sw_lane *lane)
{
	sw_pack_u32(pack, &lane->gpus);
	sw_pack_u32(pack, &lane->kind);
	sw_pack_u32(pack, &lane->cpus);
	sw_pack_u32(pack, &lane->tenant);
	sw_pack_u64(pack, &lane->host_memory_bytes);
	sw_pack_u64(pack, &lane->gpu_memory_bytes);
	sw_pack_bool(pack, &lane->guaranteed);
	sw_pack_bool(pack, &lane->is_auto);
	sw_pack_bool(pack, &lane->possible);
	uint32_t avoid = lane->avoid + 1;
	sw_pack_u32(pack, &avoid);
	lane->avoid = avoid - 1;
	sw_pack_u32(pack, &lane->lone);
}

/* The place of a living job in the order, and its alarm. */
static void pack_place(struct sw_pack *pack, struct sw_core_job *job, struct sw_oset_link *link, sw_ns *alarm_at, sw_ns now)
{
	sw_pack_u32(pack, &job->lane);
	sw_pack_u8(pack, &job->order_set);
	sw_pack_bool(pack, &job->ranks_as_running);
	sw_pack_i64(pack, &link->key);
	sw_pack_i64(pack, &link->stamp);
	sw_pack_near(pack, alarm_at, now);
	if (*alarm_at != SW_TIME_NEVER)
		sw_pack_i64(pack, &job->alarm_slack);
}

static void pack_rest(struct sw_pack *pack, struct sw_engine *engine)
{
	for (size_t i = 0; i < 4; i++)
		sw_pack_word(pack, &engine->rng.state[i]);
	sw_pack_i64(pack, &engine->order.seq);
	sw_pack_i64(pack, &engine->order.fresh_index);
	sw_pack_bool(pack, &engine->order.uneven);
	sw_pack_u32(pack, &engine->plan.misuses);
	sw_pack_u32(pack, &engine->idle_decisions);
	sw_pack_u32(pack, &engine->empty_decisions);
	sw_pack_u32(pack, &engine->misuses);
}

/* Whose conduct it is. Where this is not what the reader would write itself, it cannot go on with it. */
struct character {
	uint32_t format;
	uint32_t byte_order;
	uint64_t state_size, job_state_size;
	char policy[64];
	uint64_t config; /* fingerprint of what else decides */
};

static uint64_t fingerprint(const struct sw_engine_config *config)
{
	uint64_t hash = sw_hash_bytes(SW_HASH_START, config->placement->name, strlen(config->placement->name));
	for (size_t r = 0; r < sw_term_count; r++)
		hash = sw_hash_u64(hash, (uint64_t)sw_term_get(&config->terms, &sw_term_rows[r]));
	hash = sw_hash_u64(hash, config->misuse_limit);
	return sw_hash_u64(hash, (uint64_t)(config->predictor.speeds != NULL) | (uint64_t)(config->splitter != NULL) << 1);
}

static struct character character_of(const struct sw_policy *policy, const struct sw_engine_config *config)
{
	struct character character = {
		.format = CONDUCT_FORMAT,
		.byte_order = 1, /* written as it lies in memory, like the policy's bytes */
		.state_size = policy->state_size,
		.job_state_size = policy->job_state_size,
		.config = policy->node_state_size == 0 ? fingerprint(config) : sw_hash_u64(fingerprint(config), policy->node_state_size),
	};
	size_t length = strnlen(policy->name, sizeof character.policy - 1);
	memcpy(character.policy, policy->name, length);
	return character;
}

static void pack_character(struct sw_pack *pack, struct character *character)
{
	sw_pack_u32(pack, &character->format);
	sw_pack_raw(pack, &character->byte_order, sizeof character->byte_order);
	sw_pack_u64(pack, &character->state_size);
	sw_pack_u64(pack, &character->job_state_size);
	sw_pack_chars(pack, character->policy, sizeof character->policy);
	sw_pack_word(pack, &character->config);
}

/* Bytes that only the policy understands: nobody can check what they say, so a sum at the end tells whether they are as they were. */
static void pack_own(struct sw_pack *pack, void *bytes, size_t size, uint64_t *sum)
{
	sw_pack_raw(pack, bytes, size);
	*sum = sw_hash_bytes(*sum, bytes, size);
}

/* ---- saving */

static void save_parts(struct sw_pack *pack, struct sw_ledger *ledger, uint32_t parts)
{
	size_t count = 0;
	for (uint32_t p = parts; p != SW_NO_PART; p = ledger->parts[p].next)
		count++;
	sw_pack_count(pack, &count);
	for (uint32_t p = parts; p != SW_NO_PART; p = ledger->parts[p].next)
		pack_part(pack, &ledger->parts[p]);
}

static void save_jobs(struct sw_pack *pack, struct sw_engine *engine)
{
	sw_ns before = 0;
	size_t known = engine->known.count;
	uint32_t numbers = (uint32_t)engine->jobs.count, end = 0;
	sw_pack_count(pack, &known);
	sw_pack_u32(pack, &numbers);
	for (uint32_t id = sw_engine_next(engine, 0); id != SW_BITMAP_NONE; id = sw_engine_next(engine, id + 1)) {
		struct sw_core_job *job = &engine->jobs.items[id];
		if (id >= end) {
			uint32_t gap = id - end, row = sw_bitmap_row(&engine->known, id);
			sw_pack_u32(pack, &gap);
			sw_pack_u32(pack, &row);
			end = id + row;
		}
		pack_core_job(pack, job, before);
		before = job->seen.submit_at;
		if (job->seen.state <= SW_JOB_RUNNING && (job->prefers_home || job->seen.state == SW_JOB_RUNNING))
			save_parts(pack, &engine->ledger, job->seen.state == SW_JOB_RUNNING ? job->parts : job->home);
	}
}

static void save_facts(struct sw_pack *pack, struct sw_engine *engine)
{
	pack_whole(pack, engine);
	size_t nodes = engine->topology->node_count;
	sw_pack_count(pack, &nodes);
	for (size_t n = 0; n < nodes; n++) {
		pack_shape(pack, &engine->topology->nodes[n]);
		sw_pack_bool(pack, &engine->ledger.nodes[n].up);
		sw_pack_bool(pack, &engine->ledger.nodes[n].closed);
		sw_pack_u64(pack, &engine->ledger.nodes[n].shut);
	}
	sw_pack_count(pack, &engine->tenants.count);
	for (size_t t = 0; t < engine->tenants.count; t++)
		sw_pack_u32(pack, &engine->tenants.items[t].quota);
	save_jobs(pack, engine);
}

static bool is_zero(const char *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (bytes[i] != 0)
			return false;
	return true;
}

static void save_conduct(struct sw_pack *pack, struct sw_engine *engine)
{
	size_t per_job = engine->policy->job_state_size, nodes_size = engine->policy->node_state_size * engine->topology->node_count;
	uint64_t sum = SW_HASH_START;
	struct character character = character_of(engine->policy, &engine->config);
	pack_character(pack, &character);
	pack_rest(pack, engine);
	pack_own(pack, engine->policy_state, engine->policy->state_size, &sum);
	if (nodes_size > 0)
		pack_own(pack, engine->node_states, nodes_size, &sum);
	sw_pack_count(pack, &engine->order.lanes.count);
	for (size_t l = 0; l < engine->order.lanes.count; l++)
		pack_lane(pack, &engine->order.lanes.items[l]);
	for (uint32_t id = sw_engine_next(engine, 0); id != SW_BITMAP_NONE; id = sw_engine_next(engine, id + 1)) {
		struct sw_core_job *job = &engine->jobs.items[id];
		char *own = per_job > 0 ? engine->job_states + id * per_job : NULL;
		/* One byte for most of those that have ended. */
		bool lives = job->seen.state <= SW_JOB_RUNNING, keeps = !is_zero(own, per_job);
		uint8_t what = (uint8_t)((job->seen.fresh != 0) | keeps << 1);
		sw_pack_u8(pack, &what);
		sw_ns alarm_at = sw_heap_has(&engine->alarms, id) ? sw_heap_key(&engine->alarms, id) : SW_TIME_NEVER;
		if (lives)
			pack_place(pack, job, &engine->order.links.items[id], &alarm_at, engine->now);
		if (keeps)
			pack_own(pack, own, per_job, &sum);
	}
	sw_pack_word(pack, &sum);
}

void sw_engine_save(const struct sw_engine *engine, struct sw_pack *out)
{
	uint64_t magic = MAGIC;
	uint32_t format = FACTS_FORMAT;
	/* The walks take what they read or write by the same pointers; a writer changes nothing. */
	struct sw_engine *unchanged = (struct sw_engine *)(uintptr_t)engine;
	sw_pack_word(out, &magic);
	sw_pack_u32(out, &format);
	save_facts(out, unchanged);
	save_conduct(out, unchanged);
}

/* ---- loading facts */

static bool is_sensible(const struct sw_engine *engine, const struct sw_core_job *job)
{
	const struct sw_job *seen = &job->seen;
	if (seen->state > SW_JOB_REFUSED || seen->tenant >= engine->tenants.count || seen->job_class > SW_CLASS_OPPORTUNISTIC ||
	    seen->asked_class > SW_CLASS_OPPORTUNISTIC || seen->use_milli > SW_COMPUTE_WHOLE || seen->knowledge > SW_KNOWN ||
	    (seen->state != SW_JOB_RUNNING && (seen->gpus_held != 0 || seen->paused)))
		return false;
	if (seen->stop_rule > SW_STOP_IF_FREE || job->keeps > SW_KEEPS_NOT)
		return false;
	if (job->split_milli != 0 && (seen->state != SW_JOB_RUNNING || !sw_split_is_sensible(job->split_milli, seen->gpus_held)))
		return false;
	if (job->avoid != UINT32_MAX && job->avoid >= engine->topology->node_count)
		return false;
	if (seen->state > SW_JOB_RUNNING) /* a refused one may have asked for anything */
		return true;
	if (seen->gpus == 0 || seen->min_gpus == 0 || seen->min_gpus > seen->gpus || seen->max_gpus < seen->gpus ||
	    seen->compute_milli > SW_COMPUTE_WHOLE || job->asked_compute_milli > SW_COMPUTE_WHOLE)
		return false;
	return seen->submit_at >= 0 && seen->since >= seen->submit_at && seen->since <= engine->now && seen->ran_ns >= 0 &&
	       seen->ran_ns <= seen->since - seen->submit_at && seen->gpu_time_ns >= 0 && seen->work_left_ns >= 0 &&
	       seen->work_left_as_of >= 0 && seen->work_left_as_of <= engine->now && seen->ends_at >= 0;
}

static bool is_real(const struct sw_engine *engine, const struct sw_part *part)
{
	if (part->node >= engine->topology->node_count || part->mask == 0 ||
	    (part->split_bytes != 0 && (part->mask & (part->mask - 1)) != 0))
		return false;
	uint32_t gpus = engine->topology->nodes[part->node].gpus;
	return gpus == 64 || part->mask >> gpus == 0;
}

/* Parts as they were; the caller discards the spot, or keeps what it holds. */
static void load_parts(struct sw_pack *pack, struct sw_engine *engine, struct sw_spot *spot)
{
	size_t parts = 0;
	sw_pack_count(pack, &parts);
	for (size_t i = 0; i < parts && pack->failed == 0; i++) {
		struct sw_part part = {0};
		pack_part(pack, &part);
		if (!is_real(engine, &part) || !sw_spot_put(spot, &part))
			sw_pack_fail(pack);
	}
	if (spot->failed)
		pack->failed = SW_ENOMEM;
}

/* Whether all parts are those of a split job, or none. */
static bool all_split(const struct sw_ledger *ledger, uint32_t parts, bool split)
{
	for (uint32_t p = parts; p != SW_NO_PART; p = ledger->parts[p].next)
		if ((ledger->parts[p].split_bytes != 0) != split)
			return false;
	return true;
}

/* The holding of a running job, checked and taken. */
static void load_holding(struct sw_pack *pack, struct sw_engine *engine, struct sw_core_job *job)
{
	struct sw_ledger *ledger = &engine->ledger;
	const struct sw_job *seen = &job->seen;
	struct sw_spot spot;
	sw_spot_begin(&spot, ledger, sw_share_of(seen));
	load_parts(pack, engine, &spot);
	bool sized = job->split_milli != 0 || (seen->gpus_held >= seen->min_gpus && seen->gpus_held <= seen->max_gpus);
	if (pack->failed != 0 || spot.head == SW_NO_PART || spot.gpus != seen->gpus_held || !sized ||
	    !all_split(ledger, spot.head, job->split_milli != 0) || !sw_ledger_fits(ledger, spot.head, spot.share)) {
		sw_pack_fail(pack);
		sw_spot_discard(&spot);
		return;
	}
	sw_ledger_take(ledger, spot.head, spot.share);
	job->parts = spot.head;
	struct sw_tenant *tenant = &engine->tenants.items[seen->tenant];
	*(seen->job_class == SW_CLASS_GUARANTEED ? &tenant->held : &tenant->borrowed) += seen->gpus_held;
	engine->paused += seen->paused;
	sw_bitmap_add(&engine->running, seen->id.v);
}

/* Where a job that waits was. */
static void load_home(struct sw_pack *pack, struct sw_engine *engine, struct sw_core_job *job)
{
	struct sw_spot spot;
	sw_spot_begin(&spot, &engine->ledger, sw_share_of(&job->seen));
	load_parts(pack, engine, &spot);
	if (pack->failed != 0 || !all_split(&engine->ledger, spot.head, false)) {
		sw_pack_fail(pack);
		sw_spot_discard(&spot);
		return;
	}
	job->home = spot.head;
	sw_ledger_mark_home(&engine->ledger, job->home, true);
}

/* Runs that stand where they were, once all that runs has what it holds: of one that stands it may have turned out that it holds what others have. Host memory of
 * those counts since format 6; before that others may have it. */
static void load_standing(struct sw_pack *pack, struct sw_engine *engine)
{
	struct sw_ledger *ledger = &engine->ledger;
	for (uint32_t id = sw_engine_next(engine, 0); id != SW_BITMAP_NONE; id = sw_engine_next(engine, id + 1)) {
		struct sw_core_job *job = &engine->jobs.items[id];
		if (!sw_plan_is_homebound(engine, job))
			continue;
		for (uint32_t p = job->home; p != SW_NO_PART; p = ledger->parts[p].next) {
			if (ledger->parts[p].memory_bytes <= ledger->nodes[ledger->parts[p].node].memory_free_bytes)
				continue;
			if (has(pack, 6)) {
				sw_pack_fail(pack);
				return;
			}
			ledger->parts[p].memory_bytes = 0;
		}
		sw_engine_stand(engine, job, job->home);
	}
}

static void load_what_it_holds(struct sw_pack *pack, struct sw_engine *engine, struct sw_core_job *job)
{
	if (job->seen.state == SW_JOB_RUNNING)
		load_holding(pack, engine, job);
	else if (job->seen.state < SW_JOB_RUNNING && job->prefers_home)
		load_home(pack, engine, job);
	if (sw_job_is_waiting(&job->seen))
		sw_bitmap_add(&engine->waiting, job->seen.id.v);
}

/* Numbers that are not known, and how many are in a row behind them. `left` jobs are to come. */
static int load_gap(struct sw_pack *pack, struct sw_engine *engine, uint32_t numbers, size_t left, uint32_t *ret_row)
{
	uint32_t gap = 0;
	sw_pack_u32(pack, &gap);
	sw_pack_u32(pack, ret_row);
	if (gap > numbers - engine->jobs.count - left || *ret_row == 0 || *ret_row > left)
		sw_pack_fail(pack);
	if (pack->failed != 0 || gap == 0)
		return pack->failed;
	int r = sw_engine_skip(engine, (uint32_t)engine->jobs.count + gap);
	return r < 0 ? r : sw_engine_reserve(engine, left);
}

static int load_jobs(struct sw_pack *pack, struct sw_engine *engine)
{
	size_t count = 0;
	sw_ns before = 0;
	sw_pack_count(pack, &count);
	if (count > sw_pack_left(pack) / JOB_BYTES_MIN)
		sw_pack_fail(pack);
	if (pack->failed != 0)
		return pack->failed;
	/* Up to format 4 no number was left out. */
	uint32_t numbers = (uint32_t)count;
	if (has(pack, 5))
		sw_pack_u32(pack, &numbers);
	if (numbers < count)
		sw_pack_fail(pack);
	int r = pack->failed == 0 ? sw_engine_reserve(engine, count) : pack->failed;
	if (r < 0)
		return r;
	uint32_t row = has(pack, 5) ? 0 : (uint32_t)count;
	for (size_t i = 0; i < count && pack->failed == 0; i++, row--) {
		r = row == 0 ? load_gap(pack, engine, numbers, count - i, &row) : 0;
		if (r < 0)
			return r;
		uint32_t id = (uint32_t)engine->jobs.count;
		struct sw_core_job *job = sw_engine_add(engine);
		job->avoid = UINT32_MAX;
		pack_core_job(pack, job, before);
		engine->avoiders += job->avoid != UINT32_MAX;
		before = job->seen.submit_at;
		job->seen.id.v = id;
		job->parts = job->home = job->stands = SW_NO_PART;
		job->plan_slot = SW_NO_SLOT;
		if (pack->failed == 0 && !is_sensible(engine, job))
			sw_pack_fail(pack);
		else
			load_what_it_holds(pack, engine, job);
		if (job->seen.state <= SW_JOB_RUNNING)
			sw_engine_count_rule(engine, &job->seen, true);
	}
	if (pack->failed == 0)
		load_standing(pack, engine);
	return pack->failed != 0 ? pack->failed : sw_engine_skip(engine, numbers);
}

/* What of the cluster takes no jobs, and the nodes that are down. */
struct doors {
	struct sw_bitmap down, closed;
	SW_VEC(uint64_t) shut; /* of each node */
};

static void doors_release(struct doors *doors)
{
	sw_bitmap_release(&doors->down);
	sw_bitmap_release(&doors->closed);
	sw_vec_free(&doors->shut);
}

static int load_cluster(struct sw_pack *pack, struct sw_topology **ret_topology, struct doors *doors)
{
	SW_CLEANUP(sw_topology_freep) struct sw_topology *topology = NULL;
	size_t count = 0;
	sw_pack_count(pack, &count);
	if (pack->failed != 0)
		return pack->failed;
	if (sw_topology_new_empty(&topology) < 0 ||
	    (count <= SW_CLUSTER_NODES_MAX &&
	     (sw_bitmap_reserve(&doors->down, (uint32_t)count) < 0 || sw_bitmap_reserve(&doors->closed, (uint32_t)count) < 0 ||
	      sw_vec_reserve(&doors->shut, count) < 0)))
		return SW_ENOMEM;
	for (uint32_t n = 0; n < count && pack->failed == 0; n++) {
		struct sw_topology_node shape = {0};
		bool up = true, is_closed = false;
		uint64_t shut = 0;
		pack_shape(pack, &shape);
		sw_pack_bool(pack, &up);
		if (has(pack, 2))
			sw_pack_bool(pack, &is_closed);
		if (has(pack, 5))
			sw_pack_u64(pack, &shut);
		int r = pack->failed == 0 ? sw_topology_reserve(topology, &shape) : pack->failed;
		if (r == SW_ENOMEM)
			return r;
		if (r < 0)
			sw_pack_fail(pack);
		else
			sw_topology_add(topology, &shape);
		if (r == 0 && !up)
			sw_bitmap_add(&doors->down, n);
		if (r == 0 && is_closed)
			sw_bitmap_add(&doors->closed, n);
		if (r == 0)
			*sw_vec_push(&doors->shut) = shut; /* there is room */
	}
	if (pack->failed != 0)
		return pack->failed;
	*ret_topology = SW_TAKE(topology);
	return 0;
}

static int load_tenants(struct sw_pack *pack, struct sw_engine *engine)
{
	size_t count = 0;
	sw_pack_count(pack, &count);
	if (pack->failed == 0 && count > 0 && !sw_engine_grow_tenants(engine, (uint32_t)count - 1))
		return SW_ENOMEM;
	for (size_t t = 0; t < count && pack->failed == 0; t++)
		sw_pack_u32(pack, &engine->tenants.items[t].quota);
	return pack->failed;
}

/* An engine that knows all the facts, with nobody in charge. */
static int load_facts(struct sw_pack *pack, const struct sw_engine_config *config, struct sw_engine **ret_engine, struct sw_err *err)
{
	SW_CLEANUP(sw_topology_freep) struct sw_topology *topology = NULL;
	SW_CLEANUP(sw_engine_freep) struct sw_engine *engine = NULL;
	SW_CLEANUP(doors_release) struct doors doors = {0};
	struct sw_engine whole;
	memset(&whole, 0, sizeof whole);
	pack_whole(pack, &whole);
	int r = load_cluster(pack, &topology, &doors);
	if (r != 0)
		return r;
	r = sw_engine_make(config, topology, &engine, err);
	if (r < 0)
		return r;
	engine->now = whole.now;
	engine->log_hash = whole.log_hash;
	engine->command_hash = whole.command_hash;
	engine->quotas = whole.quotas;
	engine->fell_back = whole.fell_back;
	engine->recheck = whole.recheck;
	memcpy(engine->notes, whole.notes, sizeof engine->notes);
	if (engine->now < 0 || engine->now > SW_ENGINE_TIME_MAX)
		return SW_EINPUT;
	for (uint32_t n = 0; n < topology->node_count; n++) {
		sw_ledger_set_up(&engine->ledger, n, !sw_bitmap_has(&doors.down, n));
		sw_ledger_set_closed(&engine->ledger, n, sw_bitmap_has(&doors.closed, n));
		sw_ledger_set_shut(&engine->ledger, n, doors.shut.items[n]);
	}
	r = load_tenants(pack, engine);
	if (r == 0)
		r = load_jobs(pack, engine);
	if (r < 0)
		return r;
	*ret_engine = SW_TAKE(engine);
	return 0;
}

/* ---- loading conduct */

static int load_lanes(struct sw_pack *pack, struct sw_order_book *book)
{
	size_t count = 0;
	sw_pack_count(pack, &count);
	if (pack->failed == 0 && sw_vec_reserve(&book->lanes, count) < 0)
		return SW_ENOMEM;
	for (size_t l = 0; l < count && pack->failed == 0; l++) {
		struct sw_lane *lane = sw_vec_push(&book->lanes);
		pack_lane(pack, lane);
		lane->running = lane->waiting = sw_oset_empty();
	}
	return pack->failed;
}

static bool fits_its_state(const struct sw_engine *engine, const struct sw_core_job *job)
{
	const struct sw_order *rule = engine->order.rule;
	uint32_t lone = sw_plan_is_homebound(engine, job) ? job->seen.id.v + 1 : 0;
	uint32_t gpus = lone != 0 ? sw_ledger_count_gpus(&engine->ledger, job->home) : job->seen.gpus;
	if (job->lane >= engine->order.lanes.count || engine->order.lanes.items[job->lane].gpus != gpus ||
	    engine->order.lanes.items[job->lane].lone != lone || engine->order.lanes.items[job->lane].avoid != job->avoid)
		return false;
	if (rule == NULL || job->seen.state == SW_JOB_HELD)
		return job->order_set == SW_ORDER_NOWHERE;
	if (job->seen.state == SW_JOB_RUNNING)
		return job->order_set == (rule->preemptive ? SW_ORDER_RUNNING : SW_ORDER_NOWHERE);
	return job->order_set == SW_ORDER_WAITING;
}

static void load_place(struct sw_pack *pack, struct sw_engine *engine, struct sw_core_job *job)
{
	uint32_t id = job->seen.id.v;
	struct sw_oset_link link = {0};
	sw_ns alarm_at = SW_TIME_NEVER;
	pack_place(pack, job, &link, &alarm_at, engine->now);
	if (pack->failed != 0 || !fits_its_state(engine, job) || alarm_at <= engine->now || job->alarm_slack < 0) {
		sw_pack_fail(pack);
		return;
	}
	struct sw_lane *lane = &engine->order.lanes.items[job->lane];
	lane->members++;
	engine->order.links.items[id].key = link.key;
	engine->order.links.items[id].stamp = link.stamp;
	if (job->order_set != SW_ORDER_NOWHERE)
		sw_order_list(engine, job, job->order_set, link.key, link.stamp);
	if (alarm_at != SW_TIME_NEVER)
		sw_alarm_put(engine, job, alarm_at, job->alarm_slack);
}

static int load_conduct(struct sw_pack *pack, struct sw_engine *engine)
{
	size_t per_job = engine->policy->job_state_size, nodes_size = engine->policy->node_state_size * engine->topology->node_count;
	uint64_t sum = SW_HASH_START, saved = 0;
	pack_rest(pack, engine);
	if (engine->order.seq < 1 || engine->order.seq > SEQ_MAX || engine->order.fresh_index < 0 || engine->order.fresh_index > SEQ_MAX)
		sw_pack_fail(pack);
	pack_own(pack, engine->policy_state, engine->policy->state_size, &sum);
	if (nodes_size > 0)
		pack_own(pack, engine->node_states, nodes_size, &sum);
	int r = load_lanes(pack, &engine->order);
	for (uint32_t id = sw_engine_next(engine, 0); r == 0 && id != SW_BITMAP_NONE && pack->failed == 0;
	     id = sw_engine_next(engine, id + 1)) {
		struct sw_core_job *job = &engine->jobs.items[id];
		uint8_t what = 0;
		sw_pack_u8(pack, &what);
		if (what > 3)
			sw_pack_fail(pack);
		job->seen.fresh = what & 1;
		if (job->seen.fresh != 0)
			*sw_vec_push(&engine->order.fresh) = id; /* reserved for every job */
		if (job->seen.state <= SW_JOB_RUNNING)
			load_place(pack, engine, job);
		if ((what & 2) != 0)
			pack_own(pack, per_job > 0 ? engine->job_states + id * per_job : NULL, per_job, &sum);
	}
	sw_pack_word(pack, &saved);
	if (saved != sum || sw_pack_left(pack) > 0)
		sw_pack_fail(pack);
	return r < 0 ? r : pack->failed;
}

static bool same_character(const struct character *a, const struct character *b)
{
	return a->format == b->format && a->byte_order == b->byte_order && a->state_size == b->state_size &&
	       a->job_state_size == b->job_state_size && a->config == b->config && strcmp(a->policy, b->policy) == 0;
}

/* Puts the policy in charge that was, with what it had in mind if that can be read, else as one that takes over. */
static int load_charge(struct sw_pack *pack, struct sw_engine *engine, bool *ret_adopted, struct sw_err *err)
{
	const struct sw_engine_config *config = &engine->config;
	const struct sw_policy *policy = config->policy;
	const struct sw_params *params = config->params;
	struct character then = {0};
	pack_character(pack, &then);
	if (pack->failed != 0)
		return pack->failed;
	if (strcmp(then.policy, policy->name) != 0 && config->fallback != NULL && strcmp(then.policy, config->fallback->name) == 0) {
		policy = config->fallback;
		params = NULL;
	}
	struct character now = character_of(policy, config);
	*ret_adopted = !same_character(&then, &now);
	if (*ret_adopted)
		return sw_charge_take_over(engine, policy, params, err);
	int r = sw_charge_begin(engine, policy, params, err);
	return r < 0 ? r : load_conduct(pack, engine);
}

int sw_engine_load(const struct sw_engine_config *config, const void *bytes, size_t size, struct sw_engine **ret_engine, bool *ret_adopted,
		   struct sw_err *err)
{
	SW_CLEANUP(sw_engine_freep) struct sw_engine *engine = NULL;
	struct sw_pack pack = sw_pack_reader(bytes, size);
	struct sw_err inner = {0};
	bool adopted = false;
	uint64_t magic = 0;
	sw_pack_word(&pack, &magic);
	sw_pack_u32(&pack, &pack.format);
	if (pack.failed == 0 && magic == MAGIC && pack.format > FACTS_FORMAT)
		return sw_err_set(err, SW_ELIMIT, "the scheduler's state was written by a newer version (format %u)", pack.format);
	int r = pack.failed == 0 && magic == MAGIC && pack.format > 0 ? 0 : SW_EINPUT;
	if (r == 0)
		r = load_facts(&pack, config, &engine, &inner);
	if (r == 0)
		r = load_charge(&pack, engine, &adopted, &inner);
	if (r == 0)
		r = sw_engine_validate(engine, &inner);
	if (r == SW_EBUG) /* what it breaks is our promise, but the bytes broke it */
		r = SW_EINPUT;
	if (r < 0) {
		sw_err_set(err, r, r == SW_ENOMEM ? "out of memory for the scheduler's state" : "the scheduler's state is damaged");
		sw_err_detail(err, "%s", inner.code != 0 ? inner.fact : "byte by byte it does not add up");
		return r;
	}
	*ret_engine = SW_TAKE(engine);
	*ret_adopted = adopted;
	return 0;
}
