/* The conduct of a saved engine: the order with its stamps, alarms, the generator, the policy's own
 * bytes. See save.c.
 *
 * Invariant: it is used only where this program would have written the same kind of bytes for the
 * same policy and terms. Elsewhere the policy takes over.
 */
#include <string.h>

#include "base/hash.h"
#include "core/save.h"

#define CONDUCT_FORMAT 7u
#define SEQ_MAX (INT64_C(1) << 38)

/* ---- walks */

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
	sw_pack_u32(pack, &engine->changes_next);
	sw_pack_u32(pack, &engine->gpus_up_left);
	sw_pack_u32(pack, &engine->gpus_free_left);
}

static void pack_hold(struct sw_pack *pack, struct sw_hold_row *row, sw_ns now)
{
	sw_pack_u32(pack, &row->job);
	sw_pack_near(pack, &row->from, now);
	sw_pack_near(pack, &row->to, now);
}

/* Whose conduct it is. Where this is not what the reader would write itself,
 * it cannot go on with it. */
struct character {
	uint32_t format;
	uint32_t byte_order;
	uint64_t state_size, job_state_size;
	char policy[64];
	uint64_t config; /* fingerprint of what else decides */
};

static uint64_t fingerprint(const struct sw_policy *policy, const struct sw_engine_config *config)
{
	uint64_t hash = sw_hash_bytes(SW_HASH_START, config->placement->name, strlen(config->placement->name));
	for (size_t r = 0; r < sw_term_count; r++)
		hash = sw_hash_u64(hash, (uint64_t)sw_term_get(&config->terms, &sw_term_rows[r]));
	hash = sw_hash_u64(hash, config->misuse_limit);
	hash = sw_hash_u64(sw_hash_u64(hash, policy->node_state_size), policy->question_size);
	return sw_hash_u64(hash, (uint64_t)(config->predictor.speeds != NULL) | (uint64_t)(config->splitter != NULL) << 1);
}

static struct character character_of(const struct sw_policy *policy, const struct sw_engine_config *config)
{
	size_t per_node = sw_list_node_state_size(policy);
	struct character character = {
		.format = CONDUCT_FORMAT,
		.byte_order = 1, /* written as it lies in memory, like the policy's bytes */
		.state_size = sw_list_state_size(policy),
		.job_state_size = sw_list_job_state_size(policy),
		.config = per_node == 0 ? fingerprint(policy, config) : sw_hash_u64(fingerprint(policy, config), per_node),
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

/* Bytes that only the policy understands: what they say cannot be checked, so a sum at the end
 * tells whether they are as they were. */
static void pack_own(struct sw_pack *pack, void *bytes, size_t size, uint64_t *sum)
{
	sw_pack_raw(pack, bytes, size);
	*sum = sw_hash_bytes(*sum, bytes, size);
}

/* ---- saving */

static bool is_zero(const char *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (bytes[i] != 0)
			return false;
	return true;
}

void sw_engine_save_conduct(struct sw_pack *pack, struct sw_engine *engine)
{
	size_t per_job = engine->job_states_each, nodes_size = engine->node_states_each * engine->topology->node_count;
	uint64_t sum = SW_HASH_START;
	struct character character = character_of(engine->policy, &engine->config);
	pack_character(pack, &character);
	pack_rest(pack, engine);
	sw_ask_pack(pack, engine);
	pack_own(pack, engine->policy_state, sw_list_state_size(engine->policy), &sum);
	if (nodes_size > 0)
		pack_own(pack, engine->node_states, nodes_size, &sum);
	sw_pack_count(pack, &engine->holds.count);
	for (size_t h = 0; h < engine->holds.count; h++) {
		pack_hold(pack, &engine->holds.items[h], engine->now);
		sw_engine_save_parts(pack, &engine->ledger, engine->holds.items[h].parts);
	}
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

/* ---- loading */

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

/* One of a job that waits, behind those of the jobs before it; the engine's validation looks at the
 * rest. */
static int load_hold(struct sw_pack *pack, struct sw_engine *engine)
{
	struct sw_hold_row row = {.from = 0};
	struct sw_spot spot;
	pack_hold(pack, &row, engine->now);
	sw_spot_begin(&spot, &engine->ledger, (struct sw_share){0});
	sw_engine_load_parts(pack, engine, &spot);
	bool waits = pack->failed == 0 && sw_engine_knows(engine, row.job) && sw_job_is_waiting(&engine->jobs.items[row.job].seen);
	if (waits && engine->holds.count > 0)
		waits = engine->holds.items[engine->holds.count - 1].job < row.job;
	if (!waits || spot.head == SW_NO_PART || row.from < 0 || row.to <= row.from) {
		sw_pack_fail(pack);
		sw_spot_discard(&spot);
		return pack->failed;
	}
	row.parts = spot.head;
	if (sw_hold_put(engine, row) != NULL)
		return 0;
	sw_spot_discard(&spot);
	return SW_ENOMEM;
}

static int load_holds(struct sw_pack *pack, struct sw_engine *engine)
{
	size_t count = 0;
	int r = 0;
	sw_pack_count(pack, &count);
	for (size_t h = 0; h < count && r == 0 && pack->failed == 0; h++)
		r = load_hold(pack, engine);
	return r < 0 ? r : pack->failed;
}

static bool fits_its_state(const struct sw_engine *engine, const struct sw_core_job *job)
{
	const struct sw_order *rule = engine->order.rule;
	uint32_t lone = sw_order_lone(engine, job);
	uint32_t gpus = sw_plan_is_homebound(engine, job) ? sw_ledger_count_gpus(&engine->ledger, job->home) : job->seen.gpus;
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

static int load_mind(struct sw_pack *pack, struct sw_engine *engine)
{
	size_t per_job = engine->job_states_each, nodes_size = engine->node_states_each * engine->topology->node_count;
	uint64_t sum = SW_HASH_START, saved = 0;
	pack_rest(pack, engine);
	sw_ask_pack(pack, engine);
	if (engine->order.seq < 1 || engine->order.seq > SEQ_MAX || engine->order.fresh_index < 0 || engine->order.fresh_index > SEQ_MAX ||
	    engine->changes_next > SW_CHANGE_ALL)
		sw_pack_fail(pack);
	pack_own(pack, engine->policy_state, sw_list_state_size(engine->policy), &sum);
	if (nodes_size > 0)
		pack_own(pack, engine->node_states, nodes_size, &sum);
	int r = load_holds(pack, engine);
	r = r < 0 ? r : load_lanes(pack, &engine->order);
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
	if (saved != sum || sw_pack_left(pack) > 0 || (r == 0 && !sw_lists_are_sound(engine)))
		sw_pack_fail(pack);
	return r < 0 ? r : pack->failed;
}

static bool same_character(const struct character *a, const struct character *b)
{
	return a->format == b->format && a->byte_order == b->byte_order && a->state_size == b->state_size &&
	       a->job_state_size == b->job_state_size && a->config == b->config && strcmp(a->policy, b->policy) == 0;
}

int sw_engine_load_conduct(struct sw_pack *pack, struct sw_engine *engine, bool *ret_adopted, struct sw_err *err)
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
	return r < 0 ? r : load_mind(pack, engine);
}
