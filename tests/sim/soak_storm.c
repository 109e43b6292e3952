/* The storm: the engine alone, fed with everything that could ever arrive, sensible or not. */
#include <assert.h>
#include <string.h>

#include "base/hash.h"
#include "base/number.h"
#include "placement/registry.h"
#include "policy/registry.h"
#include "soak.h"
#include "soak_books.h"
#include "solve/solve.h"
#include "split/cut.h"

#define STEPS 250
#define EVENTS_MAX 8
#define DRAIN_STEPS 20000
#define MODELS 8u
#define GIB (UINT64_C(1) << 30)

struct storm {
	struct sw_rng rng;
	struct sw_engine_config config;
	struct sw_engine *engine;
	struct sw_soak_books books;
	struct sw_event events[96];
	struct sw_job_spec specs[64];
	struct sw_topology_node shapes[64];
	struct sw_topology_change changes[64];
	uint32_t most[SW_SOAK_NODES_MAX]; /* GPUs that each node ever had, of those that were changed */
	size_t count;
	sw_ns wake_at;
	const struct sw_policy *policy; /* that was put in charge last */
	const struct sw_params *params;
	struct sw_reply replies[SW_QUESTIONS_MAX];
	struct sw_pack found[SW_QUESTIONS_MAX]; /* their bytes */
	bool reloads;				/* the engine is replaced by what its own bytes load to, now and then */
	struct sw_rng when_to_reload;
};

static uint64_t below(struct storm *storm, uint64_t bound)
{
	return sw_rng_below(&storm->rng, bound);
}

static bool chance(struct storm *storm, uint32_t percent)
{
	return sw_soak_chance(&storm->rng, percent);
}

/* ---- events ---- */

static struct sw_job_spec draw_spec(struct storm *storm)
{
	uint32_t cluster = sw_view_gpus(sw_engine_view(storm->engine));
	struct sw_job_spec spec = {
		.gpus = 1 + (uint32_t)below(storm, chance(storm, 70) ? 4 : cluster + 2),
		.tenant = (uint32_t)below(storm, SW_SOAK_TENANTS_MAX),
		.weight_milli = (uint32_t)below(storm, 3000),
		.compute_milli = (uint32_t)(chance(storm, 50) ? 0 : below(storm, 1001)),
		.gpu_memory_bytes = chance(storm, 50) ? 0 : below(storm, 90) * GIB,
		.host_memory_bytes = chance(storm, 80) ? 0 : below(storm, 64) * GIB,
		.cpus = (uint32_t)(chance(storm, 80) ? 0 : below(storm, 16)),
		.skew_milli = (uint16_t)(chance(storm, 50) ? 0 : below(storm, 1001)),
		.retries = (uint16_t)below(storm, 4),
		.job_class = (uint8_t)below(storm, 2),
		.knowledge = (uint8_t)below(storm, 3),
		.held = chance(storm, 5),
		.prefers_home = chance(storm, 30),
		.work_ns = (sw_ns)below(storm, 1000) * SW_NS_PER_S,
		.deadline_at = SW_TIME_NEVER,
	};
	spec.model = (uint32_t)(chance(storm, 30) ? 0 : 1 + below(storm, MODELS));
	spec.is_auto = spec.job_class == SW_CLASS_GUARANTEED && chance(storm, 20);
	spec.cannot_pause = chance(storm, 10);
	spec.gpu_floor_bytes = chance(storm, 50) ? 0 : below(storm, 40) * GIB;
	spec.stop_rule = (uint8_t)(chance(storm, 40) ? SW_STOP_AS_WORLD : below(storm, SW_STOP_IF_FREE + 1));
	spec.prefers_home |= spec.stop_rule == SW_STOP_SUSPEND;
	spec.no_restart = chance(storm, 10);
	spec.min_gpus = spec.max_gpus = spec.gpus;
	if (chance(storm, 30)) {
		spec.min_gpus = 1 + (uint32_t)below(storm, spec.gpus);
		spec.max_gpus = spec.gpus + (uint32_t)below(storm, 4);
	}
	if (chance(storm, 10))
		spec.work_ns = chance(storm, 50) ? SW_TIME_NEVER - (sw_ns)below(storm, 3) : 0;
	return spec;
}

/* A spec that makes no sense. */
static void spoil(struct storm *storm, struct sw_job_spec *spec)
{
	switch (below(storm, 6)) {
	case 0:
		spec->gpus = 0;
		break;
	case 1:
		spec->min_gpus = spec->gpus + 1;
		break;
	case 2:
		spec->max_gpus = spec->gpus - 1;
		break;
	case 3:
		spec->compute_milli = 1001 + (uint32_t)below(storm, UINT32_MAX - 1001);
		break;
	case 4:
		spec->work_ns = -1 - (sw_ns)below(storm, INT64_MAX);
		break;
	default:
		spec->gpus = spec->min_gpus = spec->max_gpus = UINT32_MAX - (uint32_t)below(storm, 3);
		break;
	}
}

static struct sw_event draw_submit(struct storm *storm)
{
	struct sw_job_spec *spec = &storm->specs[storm->count];
	*spec = draw_spec(storm);
	if (chance(storm, 5))
		spoil(storm, spec);
	return (struct sw_event){.kind = SW_EV_SUBMIT, .spec = spec};
}

/* Mostly about a run that is on, sometimes about one that was or never will be. */
static struct sw_event draw_answer(struct storm *storm, enum sw_event_kind kind)
{
	uint32_t jobs = storm->books.count, id = (uint32_t)below(storm, jobs + 2);
	for (uint32_t tries = 0; tries < 6 && (id >= jobs || !storm->books.jobs[id].runs); tries++)
		id = (uint32_t)below(storm, jobs + 2);
	struct sw_event event = {
		.kind = kind,
		.job = {chance(storm, 98) ? id : (uint32_t)below(storm, UINT32_MAX)},
		.epoch = id < jobs ? storm->books.jobs[id].epoch : 1,
		.left_ns = (sw_ns)below(storm, 1000) * SW_NS_PER_S,
		.as_of = storm->books.now - (sw_ns)below(storm, 3) * SW_NS_PER_S,
		.ends_at = storm->books.now + (sw_ns)below(storm, 1000) * SW_NS_PER_S,
	};
	if (chance(storm, 20))
		event.epoch = chance(storm, 50) ? event.epoch - 1 : (uint32_t)below(storm, UINT32_MAX);
	if (chance(storm, 10))
		event.left_ns = chance(storm, 50) ? -(sw_ns)below(storm, INT64_MAX) : SW_TIME_NEVER - (sw_ns)below(storm, 2);
	if (chance(storm, 5))
		event.as_of = chance(storm, 50) ? -(sw_ns)below(storm, INT64_MAX) : SW_TIME_NEVER - (sw_ns)below(storm, 2);
	if (chance(storm, 10))
		event.ends_at = chance(storm, 50) ? -(sw_ns)below(storm, INT64_MAX) : SW_TIME_NEVER - (sw_ns)below(storm, 2);
	return event;
}

static struct sw_event draw_node_event(struct storm *storm, enum sw_event_kind kind)
{
	return (struct sw_event){.kind = kind, .node = {(uint32_t)below(storm, chance(storm, 95) ? storm->books.nodes : UINT32_MAX)}};
}

/* One more node, in the last rack or in a new one; false where the books have no room for it. */
static bool draw_new_node(struct storm *storm, struct sw_event *ret_event)
{
	for (size_t e = 0; e < storm->count; e++)
		if (storm->events[e].kind == SW_EV_NODE_ADD)
			return false;
	if (storm->books.nodes == SW_SOAK_NODES_MAX)
		return false;
	const struct sw_topology *topology = sw_engine_ledger(storm->engine)->topology;
	struct sw_topology_node *shape = &storm->shapes[storm->count];
	*shape = topology->nodes[below(storm, topology->node_count)];
	shape->gpus = 1 + (uint32_t)below(storm, 8);
	shape->rack = topology->nodes[topology->node_count - 1].rack + chance(storm, 30);
	*ret_event = (struct sw_event){.kind = SW_EV_NODE_ADD, .shape = shape};
	return true;
}

/* Whether the books know what an event of this kind would do: not where both are in one step, since
 * a move may be refused. */
static bool is_free_of(const struct storm *storm, enum sw_event_kind kind)
{
	for (size_t e = 0; e < storm->count; e++)
		if (storm->events[e].kind == kind)
			return false;
	return true;
}

/* Or one that is on its way may have to stay. */
static bool is_home(const struct sw_soak_books *books, uint32_t node)
{
	for (uint32_t j = 0; j < books->count; j++)
		for (uint32_t s = 0; (books->jobs[j].at_home || books->jobs[j].leaves != 0) && s < books->jobs[j].seat_count; s++)
			if (books->jobs[j].seats[s].node == node)
				return true;
	return false;
}

/* Each GPU goes to a place that is free, or away; none does where a job may come back to it. */
static struct sw_event draw_node_change(struct storm *storm)
{
	const struct sw_topology *topology = sw_engine_ledger(storm->engine)->topology;
	struct sw_event event = draw_node_event(storm, SW_EV_NODE_CHANGE);
	struct sw_topology_change *change = &storm->changes[storm->count];
	const struct sw_topology_node *before = &topology->nodes[event.node.v < topology->node_count ? event.node.v : 0];
	bool keeps = is_home(&storm->books, event.node.v) || !is_free_of(storm, SW_EV_HOLD);
	*change = (struct sw_topology_change){.shape = *before};
	memset(change->to, SW_GPU_GONE, sizeof change->to);
	change->shape.gpus = (keeps ? before->gpus : 0) + (uint32_t)below(storm, before->gpus < 32 ? 5 : 1);
	uint64_t left = (UINT64_C(1) << change->shape.gpus) - 1;
	for (uint32_t g = 0; g < before->gpus; g++) {
		uint8_t to = (uint8_t)below(storm, change->shape.gpus + 1);
		while (keeps && (left >> to & 1) == 0)
			to = (uint8_t)((to + 1) % change->shape.gpus);
		if ((left >> to & 1) == 0)
			continue;
		change->to[g] = to;
		left &= ~(UINT64_C(1) << to);
	}
	event.change = change;
	uint32_t more = before->gpus > change->shape.gpus ? before->gpus : change->shape.gpus;
	if (event.node.v < storm->books.nodes && more > storm->most[event.node.v])
		storm->most[event.node.v] = more;
	return event;
}

/* It has as many as it ever had, so that there is room again for the jobs that had some once. */
static void draw_whole_node(struct storm *storm, uint32_t node)
{
	const struct sw_topology_node *before = &sw_engine_ledger(storm->engine)->topology->nodes[node];
	struct sw_topology_change *change = &storm->changes[storm->count];
	if (before->gpus >= storm->most[node])
		return;
	*change = (struct sw_topology_change){.shape = *before};
	change->shape.gpus = storm->most[node];
	for (uint32_t g = 0; g < SW_NODE_GPUS_MAX; g++)
		change->to[g] = g < before->gpus ? (uint8_t)g : SW_GPU_GONE;
	storm->events[storm->count++] = (struct sw_event){.kind = SW_EV_NODE_CHANGE, .node = {node}, .change = change};
}

/* Another figure of GPU memory, another node to keep off; sometimes such as are not there. */
static struct sw_event draw_change(struct storm *storm)
{
	struct sw_event event = draw_answer(storm, SW_EV_CHANGE);
	event.gpu_memory_bytes = chance(storm, 30) ? 0 : below(storm, chance(storm, 90) ? 100 : 10000) * GIB;
	event.avoid = chance(storm, 20) ? UINT32_MAX : (uint32_t)below(storm, (uint64_t)storm->books.nodes + 1);
	return event;
}

/* To GPUs of which some may be taken, or not there. */
static struct sw_event draw_move(struct storm *storm)
{
	struct sw_event event = draw_answer(storm, SW_EV_MOVE);
	const struct sw_soak_entry *entry = event.job.v < storm->books.count ? &storm->books.jobs[event.job.v] : NULL;
	uint32_t wanted = entry != NULL && entry->gpus < 8 ? entry->gpus : 1;
	while ((uint32_t)__builtin_popcountll(event.mask) < wanted)
		event.mask |= UINT64_C(1) << below(storm, 8);
	return event;
}

/* Mostly about one that was stopped and has a home. */
static struct sw_event draw_stay(struct storm *storm)
{
	uint32_t id = (uint32_t)below(storm, storm->books.count);
	for (uint32_t tries = 0; tries < 30 && !storm->books.jobs[id].at_home; tries++)
		id = (uint32_t)below(storm, storm->books.count);
	const struct sw_soak_entry *entry = &storm->books.jobs[id];
	return (struct sw_event){.kind = SW_EV_STAY,
				 .job = {id},
				 .epoch = entry->epoch,
				 .where = entry->seats[below(storm, entry->seat_count + 1) % SW_SOAK_NODES_MAX].node};
}

/* One that is on its way, if any, stays where it was; sometimes a run begins anew where it is. */
static struct sw_event draw_turn_back(struct storm *storm)
{
	struct sw_event event = draw_answer(storm, chance(storm, 80) ? SW_EV_UNMOVED : SW_EV_ANEW);
	for (uint32_t j = 0; j < storm->books.count; j++)
		if (storm->books.jobs[j].leaves != 0 && event.kind == SW_EV_UNMOVED) {
			event.job.v = j;
			event.epoch = storm->books.jobs[j].epoch;
			event.mask = chance(storm, 20) ? storm->books.jobs[j].leaves : 0; /* dead */
		}
	return event;
}

static struct sw_event draw_event(struct storm *storm)
{
	struct sw_event event;
	uint64_t kind = below(storm, 100);
	if (kind < 40 && storm->books.count + EVENTS_MAX < SW_SOAK_JOBS_MAX)
		return draw_submit(storm);
	if (kind < 50)
		return draw_answer(storm, SW_EV_FINISH);
	if (kind < 57) {
		event = draw_answer(storm, chance(storm, 50) ? SW_EV_BEGUN : chance(storm, 80) ? SW_EV_KEEPS : SW_EV_HOLD_NEXT);
		event.gpus = chance(storm, 80);
		event.frees = chance(storm, 60);
		return event;
	}
	if (kind < 64) {
		event = draw_answer(storm, SW_EV_FAIL);
		event.verdict = chance(storm, 60) ? SW_FAIL_BY_RETRIES : chance(storm, 70) ? SW_FAIL_FREE : SW_FAIL_FINAL;
		return event;
	}
	if (kind < 69 && is_free_of(storm, SW_EV_NODE_CHANGE))
		return chance(storm, 70) ? draw_move(storm) : draw_answer(storm, SW_EV_MOVED);
	if (kind < 75)
		return draw_answer(storm, SW_EV_PROGRESS);
	if (kind < 77) {
		event = draw_answer(storm, SW_EV_SPEED);
		event.speed_milli = (uint32_t)below(storm, chance(storm, 90) ? 1200 : UINT32_MAX);
		return event;
	}
	if (kind < 78) {
		static struct sw_sample sample;
		event = draw_answer(storm, SW_EV_SAMPLE);
		sample = (struct sw_sample){(uint32_t)below(storm, UINT32_MAX), (uint32_t)below(storm, 1200), INT64_MIN, -5};
		event.sample = &sample;
		return event;
	}
	if (kind < 81)
		return draw_answer(storm, chance(storm, 80) ? SW_EV_CANCEL : SW_EV_REQUEUE);
	if (kind < 87)
		return draw_answer(storm, chance(storm, 40) ? SW_EV_HOLD : SW_EV_RELEASE);
	if (kind < 88 && draw_new_node(storm, &event))
		return event;
	if (kind < 89 && is_free_of(storm, SW_EV_MOVE) && is_free_of(storm, SW_EV_NODE_CHANGE))
		return draw_node_change(storm);
	if (kind < 90)
		return draw_node_event(storm, SW_EV_NODE_DOWN);
	if (kind < 94)
		return draw_node_event(storm, SW_EV_NODE_UP);
	if (kind < 95)
		return draw_node_event(storm, chance(storm, 30) ? SW_EV_NODE_CLOSE : SW_EV_NODE_OPEN);
	if (kind < 96) {
		event = draw_node_event(storm, SW_EV_GPUS_SHUT);
		event.mask = chance(storm, 40) ? 0 : UINT64_C(1) << below(storm, 8) | UINT64_C(1) << below(storm, 64);
		return event;
	}
	if (kind < 98)
		return draw_change(storm);
	return (struct sw_event){
		.kind = SW_EV_QUOTA,
		.tenant = (uint32_t)below(storm, chance(storm, 98) ? SW_SOAK_TENANTS_MAX : UINT32_MAX),
		.gpus = chance(storm, 40) ? UINT32_MAX : (uint32_t)below(storm, sw_view_gpus(sw_engine_view(storm->engine)) + 2),
	};
}

/* Answers to what is open: some come now, and some of those are to no question, or make no
 * sense. `all`: each comes, and is right. */
static void draw_replies(struct storm *storm, bool all)
{
	struct sw_engine_question question = {0};
	for (uint32_t q = 0; sw_engine_next_question(storm->engine, question.number, &question); q++) {
		struct sw_reply *reply = &storm->replies[q];
		struct sw_solve_outcome outcome;
		if (!all && chance(storm, 60))
			continue;
		sw_pack_release(&storm->found[q]);
		storm->found[q] = (struct sw_pack){0};
		int r = sw_solve(&question.asked, &storm->found[q], &outcome);
		assert(r == 0);
		*reply = (struct sw_reply){question.number, question.print, outcome.status, storm->found[q].bytes, storm->found[q].size};
		if (!all && chance(storm, 20))
			*reply = (struct sw_reply){.number = question.number, .print = question.print, .status = SW_SOLVE_FAILED};
		uint64_t wrong = all ? 6 : below(storm, 20);
		reply->number += wrong == 0;
		reply->print += wrong == 1;
		reply->status = wrong == 2 ? (uint8_t)(SW_SOLVE_FAILED + 1 + below(storm, 200)) : reply->status;
		reply->size = wrong == 3 ? SW_SOLUTION_BYTES_MAX + (size_t)1 : reply->size;
		reply->bytes = wrong == 3 ? NULL : reply->bytes;
		storm->events[storm->count++] = (struct sw_event){.kind = SW_EV_ANSWER, .reply = reply};
		if (wrong > 3)
			storm->books.answered[storm->books.answered_count++] = question.number;
		if (wrong == 4) /* and once more */
			storm->events[storm->count++] = (struct sw_event){.kind = SW_EV_ANSWER, .reply = reply};
	}
}

/* ---- steps ---- */

static int step(struct storm *storm, sw_ns at, struct sw_err *err)
{
	struct sw_step outcome;
	sw_soak_books_foresee(&storm->books, at, storm->events, storm->count);
	int r = sw_engine_step(storm->engine, at, storm->events, storm->count, &outcome, err);
	if (r == 0)
		r = sw_soak_books_check(&storm->books, storm->engine, &outcome, err);
	if (r == 0)
		r = sw_engine_validate(storm->engine, err);
	storm->count = 0;
	storm->wake_at = r == 0 ? outcome.wake_at : SW_TIME_NEVER;
	return r;
}

/* A new engine from the bytes of this one; none of them may notice. */
static int reload(struct storm *storm, struct sw_err *err)
{
	struct sw_engine *loaded = NULL;
	struct sw_pack pack = {0};
	struct sw_engine_config config = storm->config;
	bool adopted = false;
	config.policy = storm->policy;
	config.params = storm->params;
	config.topology = NULL;
	config.seed = 0;
	sw_engine_save(storm->engine, &pack);
	int r = pack.failed != 0 ? sw_err_set(err, pack.failed, "an engine cannot be saved")
				 : sw_engine_load(&config, pack.bytes, pack.size, &loaded, &adopted, err);
	sw_pack_release(&pack);
	if (r < 0)
		return r;
	sw_engine_free(storm->engine);
	storm->engine = loaded;
	return adopted ? sw_err_set(err, SW_EBUG, "an engine did not recognise its own bytes") : 0;
}

/* Another policy takes over whatever is there, now and then. */
static int change_policy(struct storm *storm, struct sw_err *err)
{
	size_t policies = 0;
	while (sw_policies[policies] != NULL)
		policies++;
	storm->policy = sw_policies[below(storm, policies)];
	storm->params = NULL;
	return sw_engine_set_policy(storm->engine, storm->policy, NULL, err);
}

static int one_gust(struct storm *storm, struct sw_err *err)
{
	sw_ns at = storm->books.now + (sw_ns)below(storm, chance(storm, 30) ? 2 : 100) * SW_NS_PER_S;
	if (chance(storm, 20))
		at -= (sw_ns)below(storm, 50) * SW_NS_PER_S; /* a clock that was set back, or an event from the past */
	if (chance(storm, 40) && storm->wake_at < storm->books.now + 1000000 * SW_NS_PER_S)
		at = storm->wake_at;
	if (storm->books.count > 0 && chance(storm, 5))
		storm->events[storm->count++] = chance(storm, 50) ? draw_stay(storm) : draw_turn_back(storm);
	for (uint64_t wanted = storm->count > 0 ? 0 : below(storm, EVENTS_MAX); wanted > 0; wanted--) {
		storm->events[storm->count] = draw_event(storm);
		storm->count++;
	}
	draw_replies(storm, false);
	int r = step(storm, at, err);
	if (r == 0 && chance(storm, 1))
		r = change_policy(storm, err);
	if (r == 0 && storm->reloads && sw_soak_chance(&storm->when_to_reload, 20))
		r = reload(storm, err);
	if (r == 0 && storm->books.count > 0) {
		char text[512];
		sw_engine_explain(storm->engine, (struct sw_job_id){(uint32_t)below(storm, storm->books.count + 1)}, text, sizeof text);
		if (text[0] == '\0' || strlen(text) >= sizeof text - 1)
			r = sw_err_set(err, SW_EBUG, "a job was not told in one sentence why it waits");
	}
	return r;
}

/* Names the first of them, and what it would take. */
static int report_stall(struct storm *storm, uint32_t alive, struct sw_err *err)
{
	char why[400] = "";
	const struct sw_job *job = sw_view_next_waiting(sw_engine_view(storm->engine), NULL);
	if (job == NULL)
		return sw_err_set(err, SW_EBUG, "%u jobs neither wait nor run", alive);
	sw_engine_explain(storm->engine, job->id, why, sizeof why);
	return sw_err_set(err, SW_EBUG, "%u jobs wait, nothing runs, nothing will wake the engine (%s, %s); job %u, %llu GiB: %s", alive,
			  sw_engine_policy(storm->engine), storm->config.placement->name, job->id.v,
			  (unsigned long long)(job->gpu_memory_bytes / GIB), why);
}

/* ---- the calm after it: everything is up and allowed, and every job must end ---- */

static int calm_down(struct storm *storm, struct sw_err *err)
{
	for (uint32_t n = 0; n < storm->books.nodes; n++)
		draw_whole_node(storm, n);
	for (uint32_t n = 0; n < storm->books.nodes; n++)
		storm->events[storm->count++] = (struct sw_event){.kind = SW_EV_NODE_UP, .node = {n}};
	for (uint32_t n = 0; n < storm->books.nodes; n++)
		storm->events[storm->count++] = (struct sw_event){.kind = SW_EV_NODE_OPEN, .node = {n}};
	for (uint32_t n = 0; n < storm->books.nodes; n++)
		storm->events[storm->count++] = (struct sw_event){.kind = SW_EV_GPUS_SHUT, .node = {n}};
	for (uint32_t t = 0; t < SW_SOAK_TENANTS_MAX; t++)
		storm->events[storm->count++] = (struct sw_event){.kind = SW_EV_QUOTA, .tenant = t, .gpus = UINT32_MAX};
	int r = step(storm, storm->books.now, err);
	for (uint32_t j = 0; r == 0 && j < storm->books.count; j++) {
		storm->events[storm->count++] = (struct sw_event){.kind = SW_EV_RELEASE, .job = {j}};
		r = step(storm, storm->books.now, err);
	}
	return r;
}

static int drain(struct storm *storm, struct sw_err *err)
{
	int r = calm_down(storm, err);
	for (uint32_t s = 0; r == 0 && s < DRAIN_STEPS; s++) {
		uint32_t alive = 0;
		for (uint32_t j = 0; j < storm->books.count; j++) {
			const struct sw_soak_entry *entry = &storm->books.jobs[j];
			alive += !entry->ended;
			if (entry->runs && storm->count < 32)
				storm->events[storm->count++] = (struct sw_event){.kind = SW_EV_FINISH, .job = {j}, .epoch = entry->epoch};
		}
		if (alive == 0)
			return 0;
		draw_replies(storm, true);
		for (uint32_t n = 0; n < storm->books.nodes; n++)
			if (storm->books.boots[n] && storm->count < 64)
				storm->events[storm->count++] = (struct sw_event){.kind = SW_EV_NODE_UP, .node = {n}};
		bool happens = storm->count > 0;
		if (!happens && storm->wake_at == SW_TIME_NEVER)
			return report_stall(storm, alive, err);
		r = step(storm, happens ? storm->books.now + SW_NS_PER_S : storm->wake_at, err);
	}
	return r < 0 ? r : sw_err_set(err, SW_EBUG, "jobs are left after %u steps in which whatever ran ended", DRAIN_STEPS);
}

/* ---- one storm ---- */

/* The higher the number of a model, the more it slows its neighbours; of the
 * last nothing is known. */
static bool foretell(void *context, const uint32_t *models, const bool *guaranteed, size_t count, uint32_t *ret_speed_milli)
{
	uint32_t sum = 0;
	(void)context;
	for (size_t i = 0; i < count; i++) {
		if (models[i] == 0 || models[i] >= MODELS)
			return false;
		sum += models[i];
	}
	for (size_t i = 0; i < count; i++)
		ret_speed_milli[i] = 1000 * 10 / (10 + (guaranteed[i] ? 1 : 2) * (sum - models[i]));
	return true;
}

static void draw_config(struct storm *storm, const struct sw_policy *policy)
{
	static struct sw_cut cut;
	cut = sw_cut_make(1250);
	size_t rules = 0;
	while (sw_placements[rules] != NULL)
		rules++;
	storm->config = (struct sw_engine_config){
		.topology = sw_soak_topology(&storm->rng),
		.policy = policy,
		.fallback = chance(storm, 90) ? &sw_policy_fifo : NULL,
		.placement = sw_placements[below(storm, rules)],
		.params = sw_soak_params(&storm->rng, policy, false),
		.seed = below(storm, UINT64_MAX),
		.terms.quantum_ns = (sw_ns)(chance(storm, 50) ? 0 : below(storm, 120)) * SW_NS_PER_S,
		.terms.preemption_cost_ns = (sw_ns)(chance(storm, 50) ? 0 : below(storm, 60)) * SW_NS_PER_S,
		.terms.keeps_state = chance(storm, 50),
		.terms.replace_is_free = chance(storm, 40),
		.terms.may_grow = chance(storm, 10),
		.terms.exact_ties = chance(storm, 30),
		.misuse_limit = (uint32_t)below(storm, 50),
		.splitter = chance(storm, 50) ? &cut.splitter : NULL,
	};
	if (chance(storm, 70))
		storm->config.predictor.speeds = foretell;
	storm->config.terms.tells_speed = chance(storm, 50);
	storm->config.terms.nodes_switch = chance(storm, 50);
	if (!storm->config.terms.replace_is_free && chance(storm, 30))
		storm->config.terms.moves = chance(storm, 50) ? SW_MOVES_RESTART : SW_MOVES_NEVER;
}

static int blow(uint64_t seed, const struct sw_policy *policy, bool reloads, uint64_t *ret_hash, struct sw_err *err)
{
	static struct storm storm;
	memset(&storm, 0, sizeof storm);
	sw_rng_seed(&storm.rng, seed * 16 + 8);
	draw_config(&storm, policy);
	sw_soak_books_open(&storm.books, &storm.config);
	storm.wake_at = SW_TIME_NEVER;
	storm.policy = policy;
	storm.params = storm.config.params;
	storm.reloads = reloads;
	sw_rng_seed(&storm.when_to_reload, seed);
	int r = sw_engine_new(&storm.config, &storm.engine, err);
	for (int s = 0; r == 0 && s < STEPS; s++)
		r = one_gust(&storm, err);
	/* Where the cluster may grow jobs may wait for that; and chaos is not answered for where
	 * nothing can replace it. */
	if (r == 0 && !storm.config.terms.may_grow && storm.config.fallback != NULL)
		r = drain(&storm, err);
	if (r == 0)
		*ret_hash = sw_hash_u64(sw_engine_log_hash(storm.engine), sw_engine_command_hash(storm.engine));
	for (uint32_t q = 0; q < SW_QUESTIONS_MAX; q++)
		sw_pack_release(&storm.found[q]);
	sw_engine_free(storm.engine);
	sw_topology_free((struct sw_topology *)(uintptr_t)storm.config.topology);
	sw_params_free((struct sw_params *)(uintptr_t)storm.config.params);
	return r;
}

int sw_soak_storm(uint64_t seed, const struct sw_policy *policy, struct sw_err *err)
{
	uint64_t first = 0, again = 0;
	int r = blow(seed, policy, false, &first, err);
	if (r == 0)
		r = blow(seed, policy, true, &again, err);
	if (r == 0 && first != again)
		r = sw_err_set(err, SW_EBUG, "the same seed gave log %016llx, and %016llx with an engine that was saved and loaded",
			       (unsigned long long)first, (unsigned long long)again);
	return r;
}
