/* How runs end, and what follows when they end badly: retries, jobs that are spared, nodes and
 * inputs that are remembered.
 *
 * Part of the fold. What kind of failure it was, and what may be done about it, stands in the
 * record. A table that changes with the next version does not change what was decided. Records
 * without it are those of earlier versions, and mean what they meant: a retry while there are some.
 *
 * Invariants:
 *  1. a class is tried again at most as often as the record's budget says, a job at
 *     most as often as it may;
 *  2. nodes are closed here only while others stay open, and never more than a quarter of them
 *     (but always one may be);
 *  3. every list has a bound; the oldest entry goes.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/number.h"
#include "brain/dependents.h"
#include "brain/fold.h"
#include "brain/prerun.h"
#include "brain/runs.h"
#include "brain/state.h"
#include "brain/trouble.h"
#include "failure/decide.h"

#define DAY_NS (24 * 3600 * SW_NS_PER_S)
#define FAULTS_TO_CLOSE 3u
#define INPUTS_MAX 256u
#define SPENT_MAX 1024u
#define FREE_AT_ONCE 3u
#define FREE_DOUBLINGS 5u

/* ---- what the record says */

static struct sw_trouble *trouble_of(struct sw_live *live)
{
	if (live->trouble == NULL)
		live->trouble = calloc(1, sizeof *live->trouble);
	return live->trouble;
}

/* The lists that are kept by a number: the slot of this one, the first unused, or the last. */
static size_t slot_of(const uint64_t *keys, const uint32_t *counts, size_t size, uint64_t key)
{
	for (size_t i = 0; i < size; i++)
		if (counts[i] > 0 && keys[i] == key)
			return i;
	for (size_t i = 0; i < size; i++)
		if (counts[i] == 0)
			return i;
	return size - 1;
}

static void remember_input(struct sw_brain *brain, uint32_t job, const char *path)
{
	struct sw_bad_input *oldest = NULL;
	for (size_t i = 0; i < brain->inputs.count; i++) {
		struct sw_bad_input *input = &brain->inputs.items[i];
		if (strcmp(input->path, path) == 0) {
			if (brain->now - input->at > DAY_NS)
				input->jobs = 0;
			input->jobs += input->last_job != job || input->jobs == 0;
			input->last_job = job;
			input->at = brain->now;
			return;
		}
		if (oldest == NULL || input->at < oldest->at)
			oldest = input;
	}
	if (brain->inputs.count < INPUTS_MAX)
		oldest = sw_vec_push(&brain->inputs);
	if (oldest == NULL)
		return; /* a warning less */
	*oldest = (struct sw_bad_input){.at = brain->now, .last_job = job, .jobs = 1};
	snprintf(oldest->path, sizeof oldest->path, "%s", path);
}

int sw_brain_note_failure(struct sw_brain *brain, uint32_t id, uint32_t node, json_t *failure, struct sw_err *err)
{
	struct sw_live *live = &brain->jobs.items[id];
	const char *name, *layer, *action, *line = "", *path = "";
	int budget, rank, free_retry = 0;
	struct sw_cause cause = {.node = node};
	if (json_unpack(failure, "{s:s, s:s, s:s, s:i, s:i, s?b, s?s, s?s}", "class", &name, "layer", &layer, "action", &action, "budget",
			&budget, "rank", &rank, "free", &free_retry, "line", &line, "path", &path) != 0 ||
	    !sw_failure_layer_find(layer, &cause.layer) || !sw_failure_action_find(action, &cause.action))
		return sw_err_set(err, SW_EBUG, "a report record has a failure that cannot be read");
	snprintf(cause.name, sizeof cause.name, "%s", name);
	cause.budget = (uint32_t)budget;
	cause.rank = (uint32_t)rank;
	cause.free = free_retry != 0;
	if (path[0] == '/')
		remember_input(brain, id, path);
	struct sw_trouble *trouble = trouble_of(live);
	char *copy = strdup(line);
	if (trouble == NULL || copy == NULL) {
		free(copy);
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	}
	/* Of a gang, the first in the table's order is the cause, and the
	 * others are what followed. */
	if (trouble->pending && trouble->cause.rank <= cause.rank) {
		free(copy);
		return 0;
	}
	free(trouble->cause.line);
	trouble->cause = cause;
	trouble->cause.line = copy;
	trouble->pending = true;
	return 0;
}

/* ---- jobs alike: the same user with the same command */

static uint64_t owner_of(const struct sw_live *live)
{
	return sw_hash_u64(live->command_hash, live->uid);
}

static uint64_t hash_name(const char *name)
{
	return sw_hash_bytes(SW_HASH_START, name, strlen(name));
}

static bool was_spent(const struct sw_brain *brain, const struct sw_live *live, const char *name)
{
	for (size_t i = 0; i < brain->spent.count; i++) {
		const struct sw_spent *spent = &brain->spent.items[i];
		if (spent->owner == owner_of(live) && spent->failure == hash_name(name) && brain->now - spent->at <= DAY_NS)
			return true;
	}
	return false;
}

static void spend(struct sw_brain *brain, const struct sw_live *live, const char *name)
{
	struct sw_spent *slot = NULL;
	for (size_t i = 0; i < brain->spent.count; i++) {
		struct sw_spent *spent = &brain->spent.items[i];
		if (spent->owner == owner_of(live) && spent->failure == hash_name(name)) {
			spent->at = brain->now;
			return;
		}
		if (slot == NULL || spent->at < slot->at)
			slot = spent;
	}
	if (brain->spent.count < SPENT_MAX)
		slot = sw_vec_push(&brain->spent);
	if (slot != NULL) /* otherwise others like it are tried again, as if this had not been */
		*slot = (struct sw_spent){owner_of(live), hash_name(name), brain->now};
}

/* It works: what was held against it is forgotten. */
static void forgive(struct sw_brain *brain, const struct sw_live *live)
{
	for (size_t i = brain->spent.count; i-- > 0;)
		if (brain->spent.items[i].owner == owner_of(live))
			brain->spent.items[i] = brain->spent.items[--brain->spent.count];
}

/* ---- nodes */

static bool may_close(const struct sw_brain *brain)
{
	uint32_t closed = 0, open = 0;
	for (size_t n = 0; n < brain->nodes.count; n++) {
		closed += brain->nodes.items[n].closed == SW_CLOSED_BY_FAILURES;
		open += brain->nodes.items[n].up && !brain->nodes.items[n].silent && brain->nodes.items[n].closed == SW_OPEN;
	}
	return open > 1 && (closed == 0 || (closed + 1) * 4 <= brain->nodes.count);
}

/* Counts a failure against the node; true: that was one too many, and it is to be closed. */
static bool blame_node(struct sw_brain *brain, uint32_t job, const struct sw_cause *cause)
{
	assert(cause->node < brain->nodes.count);
	struct sw_brain_node *node = &brain->nodes.items[cause->node];
	if (cause->layer != SW_LAYER_INFRASTRUCTURE || cause->action != SW_ACTION_ELSEWHERE || cause->free)
		return false;
	memmove(&node->faults[1], &node->faults[0], sizeof node->faults - sizeof node->faults[0]);
	node->faults[0] = (struct sw_fault){brain->now, job + 1};
	uint32_t recent = 0;
	bool several = false;
	for (size_t f = 0; f < SW_FAULTS_KEPT; f++) {
		if (node->faults[f].job == 0 || brain->now - node->faults[f].at > DAY_NS)
			continue;
		recent++;
		several |= node->faults[f].job != job + 1;
	}
	if (node->closed != SW_OPEN || recent < FAULTS_TO_CLOSE || !several || !may_close(brain))
		return false;
	node->closed = SW_CLOSED_BY_FAILURES;
	brain->closed_nodes++;
	snprintf(node->closed_why, sizeof node->closed_why, "%u failures of the node within a day, the last: %s", recent, cause->name);
	return true;
}

/* ---- decisions */

static uint64_t largest_gpu(const struct sw_brain *brain)
{
	uint64_t largest = 0;
	for (size_t n = 0; n < brain->nodes.count; n++)
		if (brain->nodes.items[n].shape.gpu_memory_bytes > largest)
			largest = brain->nodes.items[n].shape.gpu_memory_bytes;
	return largest;
}

/* Half as much again; a whole GPU where that is more than there is. */
static uint64_t more_memory(const struct sw_brain *brain, uint64_t bytes)
{
	uint64_t wanted = bytes + bytes / 2;
	return wanted > largest_gpu(brain) ? 0 : wanted;
}

static bool seen_elsewhere(struct sw_trouble *trouble)
{
	uint64_t signature = sw_failure_signature(trouble->cause.name, trouble->cause.line);
	bool elsewhere = false;
	for (size_t i = 0; i < SW_TROUBLES_KEPT; i++)
		elsewhere |= trouble->seen_count[i] > 0 && trouble->seen[i] == signature && trouble->seen_node[i] != trouble->cause.node;
	size_t slot = slot_of(trouble->seen, trouble->seen_count, SW_TROUBLES_KEPT, signature);
	if (trouble->seen[slot] != signature || trouble->seen_count[slot] == 0) {
		trouble->seen[slot] = signature;
		trouble->seen_node[slot] = trouble->cause.node;
	}
	trouble->seen_count[slot]++;
	return elsewhere;
}

static struct sw_failure_decision decide(struct sw_brain *brain, uint32_t id)
{
	struct sw_live *live = &brain->jobs.items[id];
	struct sw_trouble *trouble = live->trouble;
	const struct sw_job *job = sw_engine_job(brain->engine, (struct sw_job_id){id});
	assert(trouble != NULL && job != NULL);
	uint64_t name = hash_name(trouble->cause.name);
	size_t slot = slot_of(trouble->classes, trouble->class_tries, SW_TROUBLES_KEPT, name);
	uint32_t tried = trouble->class_tries[slot] > 0 && trouble->classes[slot] == name ? trouble->class_tries[slot] : 0;
	struct sw_failure_case failure = {
		.layer = trouble->cause.layer,
		.action = trouble->cause.action,
		.budget = trouble->cause.budget,
		.free = trouble->cause.free,
		.tried = tried,
		.retries_left = job->retries_left,
		.asked = live->asked_retries,
		.same_elsewhere = seen_elsewhere(trouble),
		.ended_others = was_spent(brain, live, trouble->cause.name),
		.can_have_more_memory = job->gpu_memory_bytes > 0,
	};
	struct sw_failure_decision decision = sw_failure_decide(&failure);
	if (job->no_restart) {
		decision.verdict = SW_VERDICT_STOP;
		decision.why = "it was submitted with --no-requeue";
	}
	trouble->again = decision.verdict != SW_VERDICT_STOP;
	trouble->elsewhere = decision.elsewhere;
	snprintf(trouble->why, sizeof trouble->why, "%s", decision.why);
	if (trouble->again) {
		trouble->classes[slot] = name;
		trouble->class_tries[slot] = tried + 1;
	}
	uint32_t left = decision.verdict == SW_VERDICT_RETRY_FREE ? trouble->cause.budget : job->retries_left + tried;
	trouble->tried = tried + trouble->again;
	trouble->may = left < trouble->cause.budget ? left : trouble->cause.budget;
	return decision;
}

/* Before the next try. What was not the job's fault does not make it wait, unless that
 * happens again and again. */
static sw_ns wait_for(const struct sw_brain *brain, struct sw_live *live, bool is_free)
{
	uint32_t tried = live->trouble->tried;
	if (!is_free)
		return sw_failure_backoff_ns(brain->config.retry_backoff_ns, live->failures++);
	if (tried <= FREE_AT_ONCE)
		return 0;
	return sw_failure_backoff_ns(brain->config.retry_backoff_ns,
				     tried - FREE_AT_ONCE < FREE_DOUBLINGS ? tried - FREE_AT_ONCE : FREE_DOUBLINGS);
}

/* The job failed; what the decision says becomes the engine's events. */
static int follow(struct sw_brain *brain, uint32_t id, uint32_t epoch, const struct sw_failure_decision *decision, struct sw_err *err)
{
	struct sw_live *live = &brain->jobs.items[id];
	struct sw_trouble *trouble = live->trouble;
	struct sw_event events[5] = {
		{.kind = SW_EV_FAIL, .job = {id}, .epoch = epoch, .left_ns = -1, .verdict = SW_FAIL_FINAL},
	};
	size_t count = 1;
	bool is_free = decision->verdict == SW_VERDICT_RETRY_FREE;
	if (decision->verdict != SW_VERDICT_STOP) {
		uint64_t memory = sw_engine_job(brain->engine, (struct sw_job_id){id})->gpu_memory_bytes;
		if (decision->more_memory) {
			memory = more_memory(brain, memory);
			trouble->memory_raised = true;
			trouble->memory_bytes = memory;
		}
		events[0].verdict = is_free ? SW_FAIL_FREE : SW_FAIL_BY_RETRIES;
		/* It must not start again before its time, nor as it was. */
		events[count++] = (struct sw_event){.kind = SW_EV_HOLD, .job = {id}};
		events[count++] = (struct sw_event){.kind = SW_EV_CHANGE,
						    .job = {id},
						    .gpu_memory_bytes = memory,
						    .avoid = decision->elsewhere ? trouble->cause.node : UINT32_MAX};
		sw_ns wait_ns = wait_for(brain, live, is_free);
		if (live->user_held)
			; /* it was to be suspended just then: its user lets it go again */
		else if (wait_ns == 0)
			events[count++] = (struct sw_event){.kind = SW_EV_RELEASE, .job = {id}};
		else
			sw_heap_set(&brain->retries, id, brain->now + wait_ns);
	} else {
		spend(brain, live, trouble->cause.name);
	}
	if (blame_node(brain, id, &trouble->cause))
		events[count++] = (struct sw_event){.kind = SW_EV_NODE_CLOSE, .node = {trouble->cause.node}};
	assert(count <= sizeof events / sizeof events[0]);
	return sw_brain_step(brain, events, count, err);
}

/* Reports of an earlier version, which told no cause. */
static int follow_plainly(struct sw_brain *brain, uint32_t id, uint32_t epoch, bool interrupted, struct sw_err *err)
{
	struct sw_live *live = &brain->jobs.items[id];
	const struct sw_event events[] = {
		{.kind = SW_EV_FAIL,
		 .job = {id},
		 .epoch = epoch,
		 .left_ns = -1,
		 .verdict = interrupted		  ? SW_FAIL_FREE
			    : live->asked_retries ? SW_FAIL_BY_RETRIES
						  : SW_FAIL_FINAL},
		{.kind = SW_EV_HOLD, .job = {id}},
	};
	int r = sw_brain_step(brain, events, 2, err);
	if (r == 0 && !live->user_held && sw_engine_job(brain->engine, (struct sw_job_id){id})->state <= SW_JOB_RUNNING)
		sw_heap_set(&brain->retries, id, brain->now + sw_failure_backoff_ns(brain->config.retry_backoff_ns, live->failures++));
	return r;
}

/* The worst of its parts. */
static bool add_up(struct sw_live *live)
{
	int code = 0, signal = 0;
	for (uint32_t r = 0; r < live->run_count; r++) {
		code = live->runs[r].code > code ? live->runs[r].code : code;
		signal = live->runs[r].signal > signal ? live->runs[r].signal : signal;
	}
	live->code = code;
	live->signal = signal;
	/* A pre-run that comes so far has shown what it should. */
	if (live->timed_out && live->is_prerun) {
		sw_prerun_pass(live);
		return true;
	}
	bool failed = live->trouble != NULL && live->trouble->pending;
	if (failed)
		live->trouble->pending = false;
	return code == 0 && signal == 0 && !live->timed_out && !failed;
}

int sw_brain_end_run(struct sw_brain *brain, uint32_t id, bool interrupted, struct sw_err *err)
{
	struct sw_live *live = &brain->jobs.items[id];
	bool had_cause = live->trouble != NULL && live->trouble->pending;
	bool ok = add_up(live) && !interrupted;
	uint32_t epoch = live->epoch;
	int r = sw_brain_drop_runs(brain, id);
	if (r < 0)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	assert(live->run_count == 0 && (live->trouble == NULL || !live->trouble->pending));
	if (ok) {
		forgive(brain, live);
		const struct sw_event event = {.kind = SW_EV_FINISH, .job = {id}, .epoch = epoch, .left_ns = -1};
		r = sw_brain_step(brain, &event, 1, err);
	} else if (live->timed_out) { /* trying again would only use up the same time again */
		live->ended_at = brain->now;
		if (live->trouble != NULL) {
			live->trouble->again = false;
			snprintf(live->trouble->why, sizeof live->trouble->why, "trying again would take as long");
		}
		const struct sw_event event = {.kind = SW_EV_CANCEL, .job = {id}};
		r = sw_brain_step(brain, &event, 1, err);
	} else if (had_cause) {
		struct sw_failure_decision decision = decide(brain, id);
		snprintf(live->reason, sizeof live->reason, "%s", live->trouble->cause.name);
		r = follow(brain, id, epoch, &decision, err);
	} else {
		r = follow_plainly(brain, id, epoch, interrupted, err);
	}
	if (r < 0 || sw_engine_job(brain->engine, (struct sw_job_id){id})->state <= SW_JOB_RUNNING)
		return r;
	sw_heap_remove(&brain->retries, id);
	brain->jobs.items[id].ended_at = brain->now;
	return sw_brain_settle(brain, err);
}

/* ---- inputs at submit */

void sw_brain_warn(const struct sw_brain *brain, struct sw_live *live, const struct sw_job_request *request)
{
	for (size_t i = 0; i < brain->inputs.count; i++) {
		const struct sw_bad_input *input = &brain->inputs.items[i];
		if (input->jobs < 2 || brain->now - input->at > DAY_NS)
			continue;
		bool named = false;
		for (size_t a = 0; a < request->argc && !named; a++)
			named = strstr(request->argv[a], input->path) != NULL;
		for (size_t e = 0; e < request->env_count && !named; e++)
			named = strstr(request->env[e], input->path) != NULL;
		if (!named || asprintf(&live->warning, "'%s' was missing or damaged for %u jobs lately", input->path, input->jobs) < 0)
			live->warning = NULL;
		if (live->warning != NULL)
			return;
	}
}

uint64_t sw_brain_command_key(const struct sw_job_request *request)
{
	uint64_t hash = SW_HASH_START;
	for (size_t a = 0; a < request->argc; a++)
		hash = sw_hash_bytes(hash, request->argv[a], strlen(request->argv[a]));
	return request->workdir != NULL ? sw_hash_bytes(hash, request->workdir, strlen(request->workdir)) : hash;
}
