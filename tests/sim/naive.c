/* See naive.h for the rules of the world; the numbers in brackets below refer to them.
 *
 * Invariants, between events:
 *  1. `runnable` holds every job that has arrived and not ended: in the order of the last decision
 *     under SJF, SRTF and SRSF, in arrival order under the others.
 *  2. Under LAS each of these jobs is also in exactly one queue, the one that its state names.
 *  3. Every job was accounted for up to now_ns. A running job ends at its end_ns, which is now_ns +
 *     left_ns but for merge_ppb, if nothing else happens before.
 */
#include "naive.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/number.h"

struct list {
	size_t *items; /* indices of jobs; room for all of them */
	size_t count;
};

/* What is free. Memory is in tenths of a GB, of which all demands are multiples. */
struct node {
	uint32_t gpus;
	uint32_t cpus;
	uint32_t mem_tenths;
};

struct state {
	bool running;
	int64_t left_ns;    /* work still to do */
	int64_t end_ns;	    /* of a running job */
	int64_t served_ns;  /* time on GPUs since the last promotion; overhead counts as service */
	int64_t starved_ns; /* time off GPUs since the last promotion, once it was served at all */
	size_t queue;	    /* of LAS */
};

struct model {
	const struct sw_naive_job *jobs;
	size_t count;
	const struct sw_naive_cluster *cluster;
	const struct sw_naive_rules *rules;
	struct sw_naive_fate *fates;
	struct state *states;
	struct node *nodes; /* rack by rack */
	size_t node_count;
	uint32_t *held;	    /* held[job * node_count + node]: GPUs of a running job under YARN */
	uint64_t free_gpus; /* all that COUNT and LAS know of the cluster */
	struct list runnable;
	struct list queues[SW_NAIVE_MAX_LIMITS + 1];
	size_t arrived; /* jobs [0, arrived) have */
	int64_t now_ns;
	int64_t look_ns; /* when LAS wants an event */
};

static void list_append(struct list *list, size_t job)
{
	list->items[list->count++] = job;
}

static void list_remove(struct list *list, size_t job)
{
	size_t at = 0;
	while (list->items[at] != job)
		at++;
	memmove(&list->items[at], &list->items[at + 1], (list->count - at - 1) * sizeof list->items[0]);
	list->count--;
}

/* ---- placement ---- */

static uint32_t cpus_wanted(uint32_t job_gpus, uint32_t gpus_here)
{
	return job_gpus == 1 ? 2 : 6 * gpus_here;
}

/* A job on one node takes 5 GB; one that spans nodes takes 5 GB for the worker, 6 GB and 0.1 GB per
 * worker for the server of each GPU. */
static uint32_t mem_tenths_wanted(const struct model *m, uint32_t job_gpus, uint32_t gpus_here)
{
	return job_gpus <= m->cluster->gpus_per_node ? 50 : (50 + 60 + job_gpus) * gpus_here;
}

static bool has_room(const struct model *m, size_t node, uint32_t job_gpus, uint32_t gpus_here)
{
	const struct node *n = &m->nodes[node];
	return n->gpus >= gpus_here && n->cpus >= cpus_wanted(job_gpus, gpus_here) &&
	       n->mem_tenths >= mem_tenths_wanted(m, job_gpus, gpus_here);
}

static void hold(struct model *m, size_t job, size_t node, uint32_t gpus_here)
{
	uint32_t job_gpus = m->jobs[job].gpus;
	m->nodes[node].gpus -= gpus_here;
	m->nodes[node].cpus -= cpus_wanted(job_gpus, gpus_here);
	m->nodes[node].mem_tenths -= mem_tenths_wanted(m, job_gpus, gpus_here);
	m->held[job * m->node_count + node] = gpus_here;
}

static bool place_on_one_node(struct model *m, size_t job, size_t first, size_t end)
{
	uint32_t gpus = m->jobs[job].gpus;
	for (size_t node = first; node < end; node++)
		if (has_room(m, node, gpus, gpus)) {
			hold(m, job, node, gpus);
			return true;
		}
	return false;
}

/* Whole idle nodes, and the first of the others that has room for what is left over; all or
 * nothing. */
static bool place_across(struct model *m, size_t job, size_t first, size_t end)
{
	uint32_t gpus = m->jobs[job].gpus, per_node = m->cluster->gpus_per_node;
	uint32_t whole = gpus / per_node, rest = gpus % per_node;
	uint32_t *plan = &m->held[job * m->node_count];

	for (size_t node = first; node < end && whole > 0; node++)
		if (has_room(m, node, gpus, per_node)) {
			plan[node] = per_node;
			whole--;
		}
	for (size_t node = first; node < end && rest > 0; node++)
		if (plan[node] == 0 && has_room(m, node, gpus, rest)) {
			plan[node] = rest;
			rest = 0;
		}
	bool fits = whole == 0 && rest == 0;
	for (size_t node = first; node < end; node++) {
		if (fits && plan[node] > 0)
			hold(m, job, node, plan[node]);
		else if (!fits)
			plan[node] = 0;
	}
	return fits;
}

static bool place(struct model *m, size_t job)
{
	uint32_t gpus = m->jobs[job].gpus;
	if (m->rules->placement == SW_NAIVE_COUNT) {
		bool fits = m->free_gpus >= gpus;
		if (fits)
			m->free_gpus -= gpus;
		return fits;
	}
	memset(&m->held[job * m->node_count], 0, m->node_count * sizeof m->held[0]);
	bool spans = gpus > m->cluster->gpus_per_node;
	for (uint32_t rack = 0; rack < m->cluster->racks; rack++) {
		size_t first = (size_t)rack * m->cluster->nodes_per_rack, end = first + m->cluster->nodes_per_rack;
		if (spans ? place_across(m, job, first, end) : place_on_one_node(m, job, first, end))
			return true;
	}
	return false;
}

static void release(struct model *m, size_t job)
{
	uint32_t gpus = m->jobs[job].gpus;
	if (m->rules->placement == SW_NAIVE_COUNT || m->rules->policy == SW_NAIVE_LAS) {
		m->free_gpus += gpus;
		return;
	}
	for (size_t node = 0; node < m->node_count; node++) {
		uint32_t here = m->held[job * m->node_count + node];
		if (here == 0)
			continue;
		m->nodes[node].gpus += here;
		m->nodes[node].cpus += cpus_wanted(gpus, here);
		m->nodes[node].mem_tenths += mem_tenths_wanted(m, gpus, here);
	}
}

static void empty_cluster(struct model *m)
{
	m->free_gpus = (uint64_t)m->node_count * m->cluster->gpus_per_node;
	for (size_t node = 0; node < m->node_count; node++)
		m->nodes[node] = (struct node){
			.gpus = m->cluster->gpus_per_node,
			.cpus = m->cluster->cpus_per_node,
			.mem_tenths = m->cluster->mem_gb_per_node * 10,
		};
}

/* ---- what a decision does to a job ---- */

static void set_running(struct model *m, size_t job, bool run)
{
	struct state *state = &m->states[job];
	if (run && m->fates[job].start_ns == SW_NAIVE_NEVER)
		m->fates[job].start_ns = m->now_ns;
	if (!run && state->running)
		m->fates[job].preemptions++;
	state->running = run;
}

/* ---- fifo, fjf ---- */

static void decide_in_arrival_order(struct model *m)
{
	for (size_t i = 0; i < m->runnable.count; i++) {
		size_t job = m->runnable.items[i];
		if (m->states[job].running)
			continue;
		if (place(m, job))
			set_running(m, job, true);
		else if (m->rules->policy == SW_NAIVE_FIFO)
			return;
	}
}

/* ---- sjf, srtf, srsf ---- */

static __int128 rank_of(const struct model *m, size_t job)
{
	if (m->rules->policy == SW_NAIVE_SJF)
		return m->jobs[job].gpus;
	if (m->rules->policy == SW_NAIVE_SRTF)
		return m->states[job].left_ns;
	return (__int128)m->states[job].left_ns * m->jobs[job].gpus;
}

static void decide_by_rank(struct model *m)
{
	struct list *list = &m->runnable;
	for (size_t i = 1; i < list->count; i++) {
		size_t job = list->items[i], to = i;
		__int128 rank = rank_of(m, job);
		while (to > 0 && rank_of(m, list->items[to - 1]) > rank) {
			list->items[to] = list->items[to - 1];
			to--;
		}
		list->items[to] = job;
	}
	empty_cluster(m);
	for (size_t i = 0; i < list->count; i++)
		set_running(m, list->items[i], place(m, list->items[i]));
}

/* ---- las ---- */

/* The run time at which a job's GPU time reaches the limit of the queue it is in. */
static int64_t queue_limit_ns(const struct model *m, size_t job)
{
	int64_t gpus = m->jobs[job].gpus, limit_ns = m->rules->limit_ns[m->states[job].queue];
	return limit_ns / gpus + (limit_ns % gpus != 0);
}

/* The waiting time after which a job goes back to the first queue. */
static int64_t patience_ns(const struct model *m, size_t job)
{
	__int128 patience_ns = (__int128)m->states[job].served_ns * m->rules->promote_milli / 1000;
	return (int64_t)(patience_ns - patience_ns % m->rules->grain_ns);
}

static void change_queue(struct model *m, size_t job, size_t queue)
{
	list_remove(&m->queues[m->states[job].queue], job);
	list_append(&m->queues[queue], job);
	m->states[job].queue = queue;
}

static void update_queue(struct model *m, size_t job, int64_t elapsed_ns)
{
	struct state *state = &m->states[job];
	if (state->running) {
		state->served_ns += elapsed_ns;
		if (state->queue < m->rules->limits && state->served_ns >= queue_limit_ns(m, job))
			change_queue(m, job, state->queue + 1);
		return;
	}
	if (state->served_ns > 0)
		state->starved_ns += elapsed_ns;
	if (m->rules->promote_milli > 0 && state->queue > 0 && state->starved_ns >= patience_ns(m, job)) {
		change_queue(m, job, 0);
		state->served_ns = 0;
		state->starved_ns = 0;
		m->fates[job].promotions++;
	}
}

/* Running jobs stand before waiting ones, otherwise in the same order. */
static void put_running_first(struct model *m, struct list *queue)
{
	size_t moved = 0;
	for (size_t i = 0; i < queue->count; i++) {
		size_t job = queue->items[i];
		if (!m->states[job].running)
			continue;
		memmove(&queue->items[moved + 1], &queue->items[moved], (i - moved) * sizeof queue->items[0]);
		queue->items[moved++] = job;
	}
}

/* When this job changes its queue if nothing else happens. */
static int64_t next_look_ns(const struct model *m, size_t job)
{
	const struct state *state = &m->states[job];
	if (state->running && state->queue < m->rules->limits) {
		int64_t grain_ns = m->rules->grain_ns, limit_ns = queue_limit_ns(m, job);
		limit_ns = (limit_ns + grain_ns - 1) / grain_ns * grain_ns;
		return m->now_ns + limit_ns - state->served_ns;
	}
	if (!state->running && m->rules->promote_milli > 0 && state->queue > 0 && patience_ns(m, job) > state->starved_ns)
		return m->now_ns + patience_ns(m, job) - state->starved_ns;
	return SW_NAIVE_NEVER;
}

static void decide_by_queue(struct model *m)
{
	empty_cluster(m);
	for (size_t q = 0; q <= m->rules->limits; q++) {
		for (size_t i = 0; i < m->queues[q].count; i++) {
			size_t job = m->queues[q].items[i];
			bool fits = m->free_gpus >= m->jobs[job].gpus;
			if (fits)
				m->free_gpus -= m->jobs[job].gpus;
			set_running(m, job, fits);
		}
		put_running_first(m, &m->queues[q]);
	}
	m->look_ns = SW_NAIVE_NEVER;
	for (size_t i = 0; i < m->runnable.count; i++) {
		int64_t look_ns = next_look_ns(m, m->runnable.items[i]);
		if (look_ns < m->look_ns)
			m->look_ns = look_ns;
	}
}

/* ---- events ---- */

static bool is_close(const struct model *m, int64_t a_ns, int64_t b_ns)
{
	int64_t low_ns = a_ns < b_ns ? a_ns : b_ns, high_ns = a_ns < b_ns ? b_ns : a_ns;
	return (__int128)(high_ns - low_ns) * 1000000000 <= (__int128)high_ns * m->rules->merge_ppb;
}

static void plan_ends(struct model *m)
{
	bool merges = m->rules->merge_ppb > 0 && m->rules->policy != SW_NAIVE_LAS;
	for (size_t i = 0; i < m->runnable.count; i++) {
		struct state *state = &m->states[m->runnable.items[i]];
		if (!state->running)
			continue;
		/* A job that waited for a neighbour's later end may have nothing left to do. */
		state->end_ns = m->now_ns + (state->left_ns > 0 ? state->left_ns : 0);
		for (size_t k = 0; merges && k < i; k++) {
			const struct state *earlier = &m->states[m->runnable.items[k]];
			if (!earlier->running || !is_close(m, earlier->end_ns, state->end_ns))
				continue;
			state->end_ns = earlier->end_ns;
			break;
		}
	}
}

/* The next end or arrival, or an earlier look of LAS [2]; false when nothing
 * will ever happen again. */
static bool next_event(const struct model *m, int64_t *ret_at_ns)
{
	int64_t at_ns = m->arrived < m->count ? m->jobs[m->arrived].submit_ns : SW_NAIVE_NEVER;
	for (size_t i = 0; i < m->runnable.count; i++) {
		const struct state *state = &m->states[m->runnable.items[i]];
		if (state->running && state->end_ns < at_ns)
			at_ns = state->end_ns;
	}
	if (at_ns == SW_NAIVE_NEVER)
		return false;
	*ret_at_ns = m->look_ns < at_ns ? m->look_ns : at_ns;
	return true;
}

static void end_jobs(struct model *m, int64_t at_ns)
{
	for (size_t i = 0; i < m->runnable.count;) {
		size_t job = m->runnable.items[i];
		if (!m->states[job].running || m->states[job].end_ns != at_ns) {
			i++;
			continue;
		}
		m->fates[job].end_ns = at_ns;
		release(m, job);
		list_remove(&m->runnable, job);
		if (m->rules->policy == SW_NAIVE_LAS)
			list_remove(&m->queues[m->states[job].queue], job);
	}
}

/* Rule 3. */
static void account(struct model *m, int64_t elapsed_ns)
{
	for (size_t i = 0; i < m->runnable.count; i++) {
		size_t job = m->runnable.items[i];
		struct state *state = &m->states[job];
		if (state->running && elapsed_ns > m->jobs[job].overhead_ns)
			state->left_ns -= elapsed_ns - m->jobs[job].overhead_ns;
		if (m->rules->policy == SW_NAIVE_LAS)
			update_queue(m, job, elapsed_ns);
	}
}

static void step(struct model *m, int64_t at_ns)
{
	int64_t elapsed_ns = at_ns - m->now_ns;
	assert(elapsed_ns >= 0);
	end_jobs(m, at_ns);
	for (; m->arrived < m->count && m->jobs[m->arrived].submit_ns == at_ns; m->arrived++) {
		list_append(&m->runnable, m->arrived);
		if (m->rules->policy == SW_NAIVE_LAS)
			list_append(&m->queues[0], m->arrived);
	}
	account(m, elapsed_ns);
	m->now_ns = at_ns;

	if (m->rules->policy == SW_NAIVE_LAS)
		decide_by_queue(m);
	else if (m->rules->policy == SW_NAIVE_FIFO || m->rules->policy == SW_NAIVE_FJF)
		decide_in_arrival_order(m);
	else
		decide_by_rank(m);
	plan_ends(m);
}

/* ---- the whole life ---- */

struct sw_naive_rules sw_naive_rules(enum sw_naive_policy policy, enum sw_naive_placement placement)
{
	return (struct sw_naive_rules){
		.policy = policy,
		.placement = placement,
		.limits = 2,
		.limit_ns = {3250 * SW_NS_PER_S, 7200 * SW_NS_PER_S},
		.grain_ns = SW_NS_PER_S,
	};
}

static void model_release(struct model *m)
{
	free(m->states);
	free(m->nodes);
	free(m->held);
	free(m->fates);
	free(m->runnable.items);
	for (size_t q = 0; q <= m->rules->limits; q++)
		free(m->queues[q].items);
}

static int model_init(struct model *m)
{
	size_t jobs = m->count > 0 ? m->count : 1;
	m->states = calloc(jobs, sizeof m->states[0]);
	m->fates = calloc(jobs, sizeof m->fates[0]);
	m->nodes = calloc(m->node_count, sizeof m->nodes[0]);
	m->held = calloc(m->rules->placement == SW_NAIVE_YARN ? jobs * m->node_count : 1, sizeof m->held[0]);
	m->runnable.items = calloc(jobs, sizeof m->runnable.items[0]);
	bool failed = m->states == NULL || m->fates == NULL || m->nodes == NULL || m->held == NULL || m->runnable.items == NULL;
	for (size_t q = 0; q <= m->rules->limits; q++) {
		m->queues[q].items = calloc(jobs, sizeof m->queues[q].items[0]);
		failed = failed || m->queues[q].items == NULL;
	}
	if (failed)
		return SW_ENOMEM;

	for (size_t job = 0; job < m->count; job++) {
		assert(job == 0 || m->jobs[job].submit_ns >= m->jobs[job - 1].submit_ns);
		m->states[job].left_ns = m->jobs[job].work_ns;
		m->fates[job] = (struct sw_naive_fate){.start_ns = SW_NAIVE_NEVER, .end_ns = SW_NAIVE_NEVER};
	}
	empty_cluster(m);
	return 0;
}

int sw_naive_run(const struct sw_naive_job *jobs, size_t count, const struct sw_naive_cluster *cluster, const struct sw_naive_rules *rules,
		 struct sw_naive_fate *ret_fates)
{
	assert(rules->limits <= SW_NAIVE_MAX_LIMITS && rules->grain_ns > 0);
	assert(cluster->racks > 0 && cluster->nodes_per_rack > 0 && cluster->gpus_per_node > 0);
	SW_CLEANUP(model_release)
	struct model m = {
		.jobs = jobs,
		.count = count,
		.cluster = cluster,
		.rules = rules,
		.node_count = (size_t)cluster->racks * cluster->nodes_per_rack,
		.look_ns = SW_NAIVE_NEVER,
	};
	int r = model_init(&m);
	if (r < 0)
		return r;
	int64_t at_ns;
	while (next_event(&m, &at_ns))
		step(&m, at_ns);
	memcpy(ret_fates, m.fates, count * sizeof ret_fates[0]);
	return 0;
}
