/* The facts of a saved engine: the cluster, quotas, jobs, what they hold and what they got so far.
 * See save.c.
 *
 * Invariant: what was read is checked before it is used; a job's holding is
 * taken only where it fits.
 */
#include <string.h>

#include "core/save.h"

#define JOB_BYTES_MIN 32u /* no job takes less */

/* ---- walks */

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
}

static void pack_config(struct sw_pack *pack, struct sw_config *config)
{
	sw_pack_u32(pack, &config->batch);
	sw_pack_u32(pack, &config->accumulation);
	sw_pack_u32(pack, &config->workers);
	sw_pack_u32(pack, &config->servers);
	sw_pack_u32(pack, &config->cpus);
	sw_pack_u64(pack, &config->host_memory_bytes);
}

/* Whether the bytes have the fields of this format; those that are written have all. */
static bool has(const struct sw_pack *pack, uint32_t format)
{
	return !pack->reads || pack->format >= format;
}

static void pack_core_job(struct sw_pack *pack, struct sw_core_job *job, sw_ns before)
{
	pack_seen(pack, &job->seen, before);
	sw_pack_near(pack, &job->clock.ran_ns, 0);
	sw_pack_near(pack, &job->clock.gpu_time_ns, 0);
	sw_pack_near(pack, &job->clock.work_left_ns, 0);
	sw_pack_near(pack, &job->clock.work_left_as_of, 0);
	sw_pack_near(pack, &job->clock.ends_at, 0);
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
	if (job->seen.state > SW_JOB_RUNNING) /* not asked for any more */
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
	if (has(pack, 7)) {
		sw_pack_bool(pack, &job->begun);
		sw_pack_u64(pack, &job->leaves);
		sw_pack_near(pack, &job->move_at, 0);
	}
	if (has(pack, 8))
		sw_pack_near(pack, &job->seen.until, job->seen.since);
	if (has(pack, 9))
		sw_pack_near(pack, &job->came_at, job->seen.since);
	else
		job->came_at = job->seen.since;
	if (has(pack, 10))
		sw_pack_near(pack, &job->told_at, job->move_at);
	else
		job->told_at = job->leaves != 0 ? job->move_at : 0;
	bool set_up = !sw_config_is_zero(&job->config);
	if (has(pack, 11))
		sw_pack_bool(pack, &set_up);
	job->asked_cpus = set_up ? job->asked_cpus : job->seen.cpus;
	job->asked_host_bytes = set_up ? job->asked_host_bytes : job->seen.host_memory_bytes;
	if (set_up) {
		pack_config(pack, &job->config);
		sw_pack_u32(pack, &job->asked_cpus);
		sw_pack_u64(pack, &job->asked_host_bytes);
	}
	if (has(pack, 11))
		sw_pack_near(pack, &job->asked_work_ns, job->clock.work_left_ns);
	else
		job->asked_work_ns = job->clock.work_left_ns;
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
	if (has(pack, 11))
		sw_pack_bool(pack, &engine->restores_power);
}

/* ---- saving */

void sw_engine_save_parts(struct sw_pack *pack, struct sw_ledger *ledger, uint32_t parts)
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
			sw_engine_save_parts(pack, &engine->ledger, job->seen.state == SW_JOB_RUNNING ? job->parts : job->home);
	}
}

void sw_engine_save_facts(struct sw_pack *pack, struct sw_engine *engine)
{
	pack_whole(pack, engine);
	size_t nodes = engine->topology->node_count;
	sw_pack_count(pack, &nodes);
	for (size_t n = 0; n < nodes; n++) {
		pack_shape(pack, &engine->topology->nodes[n]);
		sw_pack_bool(pack, &engine->ledger.nodes[n].up);
		sw_pack_bool(pack, &engine->ledger.nodes[n].closed);
		sw_pack_u64(pack, &engine->ledger.nodes[n].shut);
		sw_pack_u8(pack, &engine->ledger.nodes[n].power);
	}
	sw_pack_count(pack, &engine->tenants.count);
	for (size_t t = 0; t < engine->tenants.count; t++)
		sw_pack_u32(pack, &engine->tenants.items[t].quota);
	save_jobs(pack, engine);
}

/* ---- loading */

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
	const struct sw_config *config = &job->config;
	if (!sw_config_is_sensible(config) || (config->cpus != 0 && seen->cpus != config->cpus) ||
	    (config->host_memory_bytes != 0 && seen->host_memory_bytes != config->host_memory_bytes) ||
	    (config->cpus == 0 && seen->cpus != job->asked_cpus) ||
	    (config->host_memory_bytes == 0 && seen->host_memory_bytes != job->asked_host_bytes))
		return false;
	if (seen->until <= seen->submit_at || (seen->state != SW_JOB_RUNNING && seen->until != SW_TIME_NEVER))
		return false;
	return seen->submit_at >= 0 && seen->since >= seen->submit_at && seen->since <= engine->now && job->clock.ran_ns >= 0 &&
	       job->clock.ran_ns <= seen->since - seen->submit_at && job->clock.gpu_time_ns >= 0 && job->clock.work_left_ns >= 0 &&
	       job->asked_work_ns >= 0 && job->clock.work_left_as_of >= 0 && job->clock.work_left_as_of <= engine->now &&
	       job->clock.ends_at >= 0;
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
void sw_engine_load_parts(struct sw_pack *pack, struct sw_engine *engine, struct sw_spot *spot)
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
	sw_engine_load_parts(pack, engine, &spot);
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
	sw_engine_load_parts(pack, engine, &spot);
	if (pack->failed != 0 || !all_split(&engine->ledger, spot.head, false)) {
		sw_pack_fail(pack);
		sw_spot_discard(&spot);
		return;
	}
	job->home = spot.head;
	sw_ledger_mark_home(&engine->ledger, job->home, true);
}

/* Runs that stand where they were, once all that runs has what it holds. Of one that stands it may
 * have turned out that it holds what others have. Host memory of those counts since format 6;
 * before that others may have it. */
static void load_standing(struct sw_pack *pack, struct sw_engine *engine)
{
	struct sw_ledger *ledger = &engine->ledger;
	for (uint32_t id = sw_engine_next(engine, 0); id != SW_BITMAP_NONE; id = sw_engine_next(engine, id + 1)) {
		struct sw_core_job *job = &engine->jobs.items[id];
		if (!sw_plan_is_homebound(engine, job)) {
			if (job->seen.state != SW_JOB_RUNNING && !sw_config_is_zero(&job->config))
				sw_pack_fail(pack);
			continue;
		}
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
		job->seen.until = SW_TIME_NEVER;
		pack_core_job(pack, job, before);
		engine->avoiders += job->avoid != UINT32_MAX;
		engine->leavers += job->leaves != 0;
		before = job->seen.submit_at;
		job->seen.id.v = id;
		job->parts = job->home = job->stands = SW_NO_PART;
		job->plan_slot = SW_NO_SLOT;
		if (pack->failed == 0 && !is_sensible(engine, job))
			sw_pack_fail(pack);
		else
			load_what_it_holds(pack, engine, job);
		sw_lease_settle(engine, job);
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
	SW_VEC(uint8_t) power;
};

static void doors_release(struct doors *doors)
{
	sw_bitmap_release(&doors->down);
	sw_bitmap_release(&doors->closed);
	sw_vec_free(&doors->shut);
	sw_vec_free(&doors->power);
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
	      sw_vec_reserve(&doors->shut, count) < 0 || sw_vec_reserve(&doors->power, count) < 0)))
		return SW_ENOMEM;
	for (uint32_t n = 0; n < count && pack->failed == 0; n++) {
		struct sw_topology_node shape = {0};
		bool up = true, is_closed = false;
		uint64_t shut = 0;
		uint8_t power = SW_POWER_ON;
		pack_shape(pack, &shape);
		sw_pack_bool(pack, &up);
		if (has(pack, 2))
			sw_pack_bool(pack, &is_closed);
		if (has(pack, 5))
			sw_pack_u64(pack, &shut);
		if (has(pack, 11))
			sw_pack_u8(pack, &power);
		if (power > SW_POWER_BOOTING || (power != SW_POWER_ON && up))
			sw_pack_fail(pack);
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
		if (r == 0)
			*sw_vec_push(&doors->power) = power;
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

int sw_engine_load_facts(struct sw_pack *pack, const struct sw_engine_config *config, struct sw_engine **ret_engine, struct sw_err *err)
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
		sw_power_load(engine, n, doors.power.items[n]);
	}
	engine->restores_power = whole.restores_power || (engine->nodes_off > 0 && !engine->config.terms.nodes_switch);
	r = load_tenants(pack, engine);
	if (r == 0)
		r = load_jobs(pack, engine);
	if (r < 0)
		return r;
	*ret_engine = SW_TAKE(engine);
	return 0;
}
