/* Agents: what they say becomes records, what the engine wants of their nodes becomes answers.
 * And time: what is due. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/bounds.h"
#include "api/run_spec.h"
#include "base/number.h"
#include "brain/agents.h"
#include "brain/arrays.h"
#include "brain/asked.h"
#include "brain/bulk.h"
#include "brain/check.h"
#include "brain/dependents.h"
#include "brain/forget.h"
#include "brain/gpu_types.h"
#include "brain/limits.h"
#include "brain/moves.h"
#include "brain/record.h"
#include "brain/report.h"
#include "brain/shut.h"
#include "brain/silence.h"
#include "brain/slowdowns.h"
#include "brain/speakers.h"
#include "brain/speeds.h"
#include "brain/state.h"
#include "brain/stops.h"

#define UNFIT_SIZE 640
/* Records that are made of a sync at one go, and how often; more than an agent can have runs. */
#define HEAR_RECORDS 64u
#define HEAR_SLICES (4 * SW_SYNC_RUNS_MAX / HEAR_RECORDS)

/* ---- hearing */

static uint64_t smallest_of(const struct sw_sync_inventory *inventory)
{
	uint64_t smallest = 0;
	for (size_t g = 0; g < inventory->gpu_count; g++)
		if (g == 0 || inventory->gpus[g].memory_bytes < smallest)
			smallest = inventory->gpus[g].memory_bytes;
	return smallest;
}

/* Whether the agent has other GPUs than we know of, or numbers them otherwise. What is beside them
 * may differ a little after every boot: that is taken over with the next change. One that sees none
 * while jobs run on them has lost sight of them. Its driver does not answer, and they go on all the
 * same. */
static bool has_other_gpus(const struct sw_brain_node *node, const struct sw_sync_inventory *inventory)
{
	if (inventory == NULL || (inventory->gpu_count == 0 && node->jobs.count > 0))
		return false;
	if (inventory->gpu_count != node->shape.gpus || smallest_of(inventory) != node->shape.gpu_memory_bytes)
		return true;
	for (uint32_t g = 0; g < node->shape.gpus; g++)
		if (strncmp(inventory->gpus[g].uuid, node->gpus[g].uuid, sizeof node->gpus[g].uuid - 1) != 0)
			return true;
	return false;
}

static int record_node(const struct sw_brain *brain, const struct sw_sync *sync, bool changed, sw_records *records, struct sw_err *err)
{
	const struct sw_sync_inventory *inventory = sync->inventory;
	if (inventory == NULL)
		return sw_record_push(records, SW_RECORD_NODE,
				      json_pack("{s:s, s:i, s:i, s:i, s:[], s:b}", "name", sync->node, "cpus", 0, "memory_bytes", 0,
						"gpu_memory_bytes", 0, "gpus", "leases", (int)sync->leases),
				      err);
	bool is_new = sw_brain_find_node(brain, sync->node) == NULL;
	int r = is_new || changed ? sw_brain_check_node(brain, sync->node, inventory->gpu_count, is_new, err) : 0;
	if (r < 0)
		return r;
	json_t *gpus = json_array();
	for (size_t g = 0; g < inventory->gpu_count; g++)
		json_array_append_new(gpus, json_string(inventory->gpus[g].uuid));
	return sw_record_push(records, SW_RECORD_NODE,
			      json_pack("{s:s, s:I, s:I, s:I, s:o, s:o*, s:o*, s:o*, s:b}", "name", sync->node, "cpus",
					(json_int_t)inventory->cpus, "memory_bytes", (json_int_t)inventory->memory_bytes,
					"gpu_memory_bytes", (json_int_t)smallest_of(inventory), "gpus", gpus, "changed",
					changed ? json_true() : NULL, "gpu", sw_brain_gpu_name(inventory), "shut",
					sw_brain_list_shut(sync, changed), "leases", (int)sync->leases),
			      err);
}

static int record_new_node(const struct sw_brain *brain, const struct sw_sync *sync, sw_records *records, struct sw_err *err)
{
	int r = record_node(brain, sync, false, records, err);
	bool says = sync->home != NULL || sync->token[0] != '\0';
	return r == 0 && says ? sw_speaker_record(sync, records, err) : r;
}

static int record_report(const char *node, struct sw_run_id id, enum sw_report_state state, const char *reason, sw_records *records,
			 struct sw_err *err)
{
	const struct sw_report report = {.node = node, .job = id.job, .epoch = id.epoch, .state = state, .reason = reason};
	return sw_report_record(&report, records, err);
}

/* Why a run failed, for its record; NULL: it did not. What the agent found in the log counts where
 * we know such a class; else we make of the exit what we can. */
static json_t *describe_failure(const struct sw_brain *brain, const struct sw_sync_run *said)
{
	if (said->code == 0 && said->signal == 0 && said->reason[0] == '\0')
		return NULL;
	const char *line = said->failure_line != NULL ? said->failure_line : "";
	const char *path = said->failure_path != NULL ? said->failure_path : "";
	struct sw_failure_found found = {.failure = said->failure != NULL ? sw_failure_find(brain->failures, said->failure) : NULL};
	if (found.failure == NULL) {
		struct sw_failure_evidence evidence = {
			.log = line,
			.log_size = strlen(line),
			.detail = said->detail,
			.reason = said->reason,
			.code = (int)said->code,
			.signal = (int)said->signal,
		};
		sw_failure_classify(brain->failures, &evidence, &found);
	} else { /* agents may send anything */
		sw_failure_clean(line, strlen(line), found.line, sizeof found.line);
		sw_failure_clean(path, strlen(path), found.path, sizeof found.path);
	}
	return json_pack("{s:s, s:s, s:s, s:I, s:I, s:b, s:s, s:s}", "class", found.failure->name, "layer",
			 sw_failure_layer_name(found.failure->layer), "action", sw_failure_action_name(found.failure->action), "budget",
			 (json_int_t)found.failure->budget, "rank", (json_int_t)found.failure->rank, "free", (int)found.failure->free,
			 "line", found.line, "path", found.path);
}

/* The end of a run. */
static int record_exit(const struct sw_brain *brain, const char *node, const struct sw_sync_run *said, sw_records *records,
		       struct sw_err *err)
{
	json_t *failure = describe_failure(brain, said);
	struct sw_report report = {
		.node = node,
		.job = said->id.job,
		.epoch = said->id.epoch,
		.state = SW_REPORT_EXITED,
		.code = (int32_t)said->code,
		.signal = (int32_t)said->signal,
		.reason = said->reason,
		.failure = failure,
	};
	sw_report_note_job(&report, brain, said->id.job);
	int r = sw_report_record(&report, records, err);
	json_decref(failure);
	return r;
}

int sw_brain_record_loss(const struct sw_brain *brain, const char *node, struct sw_run_id id, const char *reason, sw_records *records,
			 struct sw_err *err)
{
	const struct sw_sync_run lost = {.id = id, .state = SW_RUN_EXITED, .signal = 9, .reason = reason};
	return record_exit(brain, node, &lost, records, err);
}

int sw_brain_record_gone(const char *node, struct sw_run_id id, sw_records *records, struct sw_err *err)
{
	return record_report(node, id, SW_REPORT_GONE, "", records, err);
}

/* The run that an agent speaks of, if it is one that we wish for there. */
static struct sw_run *wished(const struct sw_brain *brain, const struct sw_brain_node *node, const struct sw_sync_run *said)
{
	struct sw_live *live = sw_brain_live(brain, said->id.job);
	if (live == NULL || live->epoch != said->id.epoch)
		return NULL;
	return sw_brain_run_on(live, (uint32_t)(node - brain->nodes.items));
}

/* Whether it is off its GPUs whole, where that was wished. */
static int hear_depth(const struct sw_brain *brain, const struct sw_brain_node *node, const struct sw_live *live, const struct sw_run *run,
		      const struct sw_sync_run *said, sw_records *records, struct sw_err *err)
{
	char why[SW_FAILURE_LINE_MAX + 1];
	const char *detail = said->detail != NULL ? said->detail : "it cannot leave its GPUs whole";
	if (said->state != SW_RUN_SUSPENDED || !sw_brain_is_suspended(brain, live) || !live->deep)
		return 0;
	if (said->depth == SW_DEPTH_OFF && !run->off)
		return record_report(node->name, said->id, SW_REPORT_OFF, "", records, err);
	/* Also of one that was off: what it said last may have been of the
	 * time before it went on. */
	if (said->depth != SW_DEPTH_REFUSED)
		return 0;
	sw_failure_clean(detail, strlen(detail), why, sizeof why); /* agents may send anything */
	return record_report(node->name, said->id, SW_REPORT_REFUSED, why, records, err);
}

/* What it leaves on its GPUs while it is suspended. */
static int hear_memory(const struct sw_brain *brain, const struct sw_brain_node *node, const struct sw_live *live, const struct sw_run *run,
		       const struct sw_sync_run *said, sw_records *records, struct sw_err *err)
{
	/* What was taken off whole has left its GPUs, whatever it would do otherwise. */
	if (said->frees != run->frees && !run->off)
		return record_report(node->name, said->id, said->frees ? SW_REPORT_FREES : SW_REPORT_STAYS, "", records, err);
	if (said->held && !run->held && said->state == SW_RUN_SUSPENDED && sw_brain_is_suspended(brain, live))
		return record_report(node->name, said->id, SW_REPORT_HELD, "", records, err);
	return 0;
}

/* What has become of a move. */
static int hear_move(const struct sw_brain *brain, const struct sw_live *live, const struct sw_brain_node *node,
		     const struct sw_sync_run *said, bool up_to_date, sw_records *records, struct sw_err *err)
{
	char clean[SW_FAILURE_LINE_MAX + 1] = "";
	const char *why = "";
	enum sw_moved moved = sw_brain_hear_move(brain, live, node, said, up_to_date, &why);
	if (moved == SW_MOVED_NOT)
		return 0;
	if (moved == SW_MOVED_REFUSED)
		sw_failure_clean(why, strlen(why), clean, sizeof clean); /* agents may send anything */
	return record_report(node->name, said->id, moved == SW_MOVED ? SW_REPORT_MOVED : SW_REPORT_UNMOVED, clean, records, err);
}

static int hear_run(struct sw_brain *brain, const struct sw_brain_node *node, const struct sw_sync_run *said, bool up_to_date,
		    sw_records *records, struct sw_err *err)
{
	const struct sw_run *run = wished(brain, node, said);
	if (run == NULL || run->heard == SW_HEARD_EXITED)
		return 0;
	switch (said->state) {
	case SW_RUN_EXITED:
		return record_exit(brain, node->name, said, records, err);
	case SW_RUN_STARTING:
		if (run->heard >= SW_HEARD_STARTING)
			return 0;
		return record_report(node->name, said->id, SW_REPORT_STARTING, "", records, err);
	default:
		if (run->heard >= SW_HEARD_RUNNING) {
			const struct sw_live *live = sw_brain_live(brain, said->id.job);
			int r = hear_move(brain, live, node, said, up_to_date, records, err);
			r = r < 0 ? r : hear_memory(brain, node, live, run, said, records, err);
			return r < 0 ? r : hear_depth(brain, node, live, run, said, records, err);
		}
		return record_report(node->name, said->id, SW_REPORT_RUNNING, said->frees ? SW_BRAIN_FREES : "", records, err);
	}
}

/* What was said of some run cannot be read, not even which: nothing follows from the
 * silence about any run. */
static bool is_garbled(const struct sw_sync *sync)
{
	for (size_t u = 0; u < sync->unread_count; u++)
		if (!sync->unread[u].has_id)
			return true;
	return false;
}

/* Runs that the agent once knew and knows no more: its disk was wiped. They are lost. One that was
 * not heard to run waited in an agent that is gone. A run has a folder before it has a process: so
 * it never began, and is ordered again. */
static int hear_silence(struct sw_brain *brain, const struct sw_brain_node *node, const struct sw_told *told, size_t most,
			sw_records *records, struct sw_err *err)
{
	for (size_t j = 0; j < node->jobs.count && records->count < most; j++) {
		const struct sw_live *live = &brain->jobs.items[node->jobs.items[j]];
		const struct sw_run *run = sw_brain_run_on(live, (uint32_t)(node - brain->nodes.items));
		const struct sw_run_id id = {node->jobs.items[j] + UINT64_C(1), live->epoch};
		if (run->heard != SW_HEARD_RUNNING || sw_told_find(told, id) != NULL)
			continue;
		int r = sw_brain_record_loss(brain, node->name, id, "lost", records, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Ghosts that have exited, or that the agent does not know. It heeds only the answer to its latest
 * sync, so it will not start them either. */
static int hear_ghosts(const struct sw_brain_node *node, const struct sw_told *told, size_t most, sw_records *records, struct sw_err *err)
{
	for (size_t g = 0; g < node->ghosts.count && records->count < most; g++) {
		const struct sw_ghost *ghost = &node->ghosts.items[g];
		const struct sw_told_run *said = sw_told_find(told, (struct sw_run_id){ghost->job + UINT64_C(1), ghost->epoch});
		if (said != NULL && (said->run == NULL || said->run->state != SW_RUN_EXITED))
			continue;
		int r = record_report(node->name, (struct sw_run_id){ghost->job + UINT64_C(1), ghost->epoch}, SW_REPORT_GONE, "", records,
				      err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* What follows from all of what was said. Applying the records of one call makes the next
 * one begin behind them. */
static int hear_rest(struct sw_brain *brain, sw_ns now, struct sw_brain_node *node, const struct sw_sync *sync, size_t most,
		     struct sw_hearing *hearing, sw_records *records, struct sw_err *err)
{
	struct sw_told told;
	bool garbled = is_garbled(sync);
	if (sw_told_make(sync, &told) < 0)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	int r = garbled ? 0 : hear_ghosts(node, &told, most, records, err);
	if (r == 0)
		r = sw_brain_hear_speeds(brain, now, sync, (uint32_t)(node - brain->nodes.items), records, err);
	if (r == 0 && !garbled)
		r = hear_silence(brain, node, &told, most, records, err);
	sw_told_release(&told);
	if (r < 0)
		return r;
	if (records->count >= most) {
		hearing->more = hearing->slices < HEAR_SLICES;
		return 0;
	}
	/* Last: a run that has ended well needs no GPU. GPUs that no cluster can have are not taken
	 * in: its runs are heard all the same. */
	bool changed = has_other_gpus(node, sync->inventory) &&
		       sw_brain_check_node(brain, sync->node, sync->inventory->gpu_count, false, NULL) == 0;
	return changed ? record_node(brain, sync, true, records, err) : sw_brain_hear_shut(node, sync, records, err);
}

/* Up to `most` records and a few. */
static int hear(struct sw_brain *brain, sw_ns now, const struct sw_sync *sync, size_t most, struct sw_hearing *hearing, sw_records *records,
		struct sw_err *err)
{
	struct sw_brain_node *node = sw_brain_find_node(brain, sync->node);
	bool begins = !hearing->begun;
	hearing->begun = true;
	hearing->more = false;
	hearing->slices++;
	if (node == NULL)
		return begins && sync->inventory != NULL ? record_new_node(brain, sync, records, err) : 0;
	int r = sw_speaker_admit(node, now, sync, err);
	if (r < 0 || (begins ? !sw_speaker_is_news(node, sync) : !sw_speaker_is_last(node, sync)))
		return r;
	if (begins) {
		sw_speaker_remember(node, sync);
		node->heard_at = now;
		if (sw_speaker_is_new(node, sync))
			r = sw_speaker_record(sync, records, err);
	}
	/* A node that was removed holds no runs of ours any more: whatever it still has is stopped
	 * by the answer. What a silent one has to say of its runs it says again. */
	if (r == 0 && (!node->up || node->silent || node->leases != sync->leases)) {
		bool changed = has_other_gpus(node, sync->inventory) &&
			       sw_brain_check_node(brain, sync->node, sync->inventory->gpu_count, false, NULL) == 0;
		return begins ? record_node(brain, sync, changed, records, err) : 0;
	}
	assert(hearing->at <= sync->run_count);
	for (; r == 0 && hearing->at < sync->run_count && records->count < most; hearing->at++)
		r = hear_run(brain, node, &sync->runs[hearing->at], sync->have == node->version, records, err);
	if (r < 0)
		return r;
	if (records->count >= most) {
		hearing->more = true;
		return 0;
	}
	return hear_rest(brain, now, node, sync, most, hearing, records, err);
}

int sw_brain_hear_some(struct sw_brain *brain, sw_ns now, const struct sw_sync *sync, struct sw_hearing *hearing, sw_records *records,
		       struct sw_err *err)
{
	return hear(brain, now, sync, records->count + HEAR_RECORDS, hearing, records, err);
}

int sw_brain_hear(struct sw_brain *brain, sw_ns now, const struct sw_sync *sync, sw_records *records, struct sw_err *err)
{
	return hear(brain, now, sync, SIZE_MAX, &(struct sw_hearing){0}, records, err);
}

/* ---- answering */

struct request {
	struct sw_job_request *request;
	const struct sw_asked *asked; /* what it was decoded from */
};

/* An answer with all that it points to. */
struct answer {
	struct sw_answer_message message; /* first: the caller's pointer is a pointer to this */
	SW_VEC(void *) owned;		  /* plain blocks */
	SW_VEC(struct request) requests;
	SW_VEC(struct sw_made_spec *) orders;
	size_t order_bytes; /* at most, as text */
};

void sw_brain_answer_free(struct sw_answer_message *message)
{
	struct answer *answer = (struct answer *)message;
	for (size_t i = 0; i < answer->owned.count; i++)
		free(answer->owned.items[i]);
	for (size_t i = 0; i < answer->orders.count; i++)
		sw_made_spec_free(answer->orders.items[i]);
	for (size_t i = 0; i < answer->requests.count; i++)
		sw_job_request_free(answer->requests.items[i].request);
	sw_vec_free(&answer->owned);
	sw_vec_free(&answer->requests);
	sw_vec_free(&answer->orders);
	free(answer->message.wants);
	free(answer);
}

static void *own(struct answer *answer, size_t count, size_t size)
{
	void *block = calloc(count, size);
	void **slot = block != NULL ? sw_vec_push(&answer->owned) : NULL;
	if (slot == NULL) {
		free(block);
		return NULL;
	}
	*slot = block;
	return block;
}

static bool name_gpus(struct answer *answer, const struct sw_brain_node *node, uint64_t mask, struct sw_texts *ret_texts)
{
	const char **items = own(answer, (size_t)__builtin_popcountll(mask) + 1, sizeof(char *));
	if (items == NULL)
		return false;
	size_t count = 0;
	for (; mask != 0; mask &= mask - 1)
		items[count++] = node->gpus[__builtin_ctzll(mask)].uuid;
	*ret_texts = (struct sw_texts){items, count};
	return true;
}

/* What the job asked for, decoded; members of one array are often neighbours. 0, SW_ENOMEM, or
 * why it cannot be read. */
static int recall(const struct sw_brain *brain, struct answer *answer, const struct sw_live *live,
		  const struct sw_job_request **ret_request, struct sw_err *err)
{
	size_t count = answer->requests.count;
	if (count == 0 || answer->requests.items[count - 1].asked != live->asked) {
		struct sw_job_request *request = NULL;
		int r = sw_asked_recall(brain, live, &request, err);
		r = r < 0 ? r : sw_bulk_fill(brain, live->asked, request, err);
		struct request *slot = r == 0 ? sw_vec_push(&answer->requests) : NULL;
		if (slot == NULL) {
			sw_job_request_free(request);
			return r < 0 ? r : SW_ENOMEM;
		}
		*slot = (struct request){request, live->asked};
		count++;
	}
	*ret_request = answer->requests.items[count - 1].request;
	return 0;
}

_Static_assert(SW_NODE_GPUS_MAX <= SW_SPEC_GPUS_MAX, "an order can carry what a job asks for all GPUs of a node");

/* How to run it; NULL when there is no such order, and want->unfit says why. 0 or SW_ENOMEM. */
static int make_order(const struct sw_brain *brain, struct answer *answer, uint64_t job, const struct sw_run *run, const char *node,
		      struct sw_want *want)
{
	const struct sw_live *live = &brain->jobs.items[job - 1];
	const struct sw_job *engine_job = sw_engine_job(brain->engine, (struct sw_job_id){(uint32_t)(job - 1)});
	assert(engine_job != NULL);
	const struct sw_run_facts facts = {
		.job = job,
		.array_first = sw_array_first(brain, job),
		.name = live->name,
		.node = node,
		.uid = live->uid,
		.gid = live->gid,
		.array_index = live->array_index,
		.is_member = live->is_member,
		.is_prerun = live->is_prerun,
		.is_again = live->epoch > 1,
		.gpus = (uint32_t)__builtin_popcountll(run->mask),
		.gpu_memory_bytes = engine_job->gpu_memory_bytes,
		.is_opportunistic = engine_job->job_class == SW_CLASS_OPPORTUNISTIC,
		.config = sw_engine_job_config(brain->engine, engine_job->id),
	};
	const struct sw_job_request *request = NULL;
	struct sw_made_spec *made = NULL, **slot = NULL;
	struct sw_err err = {0};
	int r = recall(brain, answer, live, &request, &err);
	if (r == 0)
		r = sw_run_spec_make(request, &facts, &made, &err);
	if (r == SW_ENOMEM)
		return r;
	if (r < 0) {
		char *why = own(answer, 1, UNFIT_SIZE);
		if (why == NULL)
			return SW_ENOMEM;
		snprintf(why, UNFIT_SIZE, "%s", err.detail[0] != '\0' ? err.detail : err.fact);
		want->unfit = why;
		return 0;
	}
	/* NOLINTNEXTLINE(bugprone-sizeof-expression): pointers are what is kept */
	slot = sw_vec_push(&answer->orders);
	if (slot == NULL) {
		sw_made_spec_free(made);
		return SW_ENOMEM;
	}
	*slot = made;
	want->spec = &made->spec;
	return 0;
}

/* Where its stop comes from and why, for its log; false: out of memory. */
static bool say_why(const struct sw_brain *brain, struct answer *answer, struct sw_want *want)
{
	char text[SW_SYNC_WHY_MAX + 1];
	if (sw_stop_order_words(brain, want->id, text) == NULL)
		return true;
	size_t size = strlen(text) + 1;
	char *copy = own(answer, size, 1);
	want->why = copy != NULL ? memcpy(copy, text, size) : NULL;
	return copy != NULL;
}

/* Adds a wish for the run of a job. Runs that the agent does not know yet get their orders as long
 * as there is room in the answer. It asks again for the rest. */
static int want_run(const struct sw_brain *brain, struct answer *answer, const struct sw_brain_node *node, uint32_t id,
		    const struct sw_run *run, bool is_known)
{
	const struct sw_live *live = &brain->jobs.items[id];
	assert(answer->message.want_count < node->jobs.count); /* one for each of them */
	struct sw_want *want = &answer->message.wants[answer->message.want_count++];
	bool suspended = sw_brain_is_suspended(brain, live);
	*want = (struct sw_want){.id = {id + 1, live->epoch}, .want = suspended ? SW_WANT_SUSPEND : SW_WANT_RUN, .grace_ms = -1};
	want->deep = suspended && live->deep;
	want->held = suspended && run->held;
	if ((suspended || sw_brain_leaves(brain, live) != 0) && !say_why(brain, answer, want))
		return SW_ENOMEM;
	sw_brain_limit(brain, id, want);
	if (!name_gpus(answer, node, run->mask, &want->gpus))
		return SW_ENOMEM;
	if (suspended || is_known || answer->order_bytes >= SW_ANSWER_ORDERS_BYTES || answer->orders.count >= SW_ANSWER_ORDERS_MAX)
		return 0;
	int r = make_order(brain, answer, id + UINT64_C(1), run, node->name, want);
	if (r == 0 && want->spec != NULL)
		answer->order_bytes += sw_run_spec_size(want->spec);
	return r;
}

static int want_runs(const struct sw_brain *brain, struct answer *answer, const struct sw_brain_node *node, const struct sw_sync *sync,
		     const struct sw_told *told)
{
	/* The agent keeps no more runs than a sync can tell of. Those that it knows come first, and
	 * new ones as long as there is room. */
	size_t known = sync->run_count + sync->unread_count;
	size_t room = known < SW_SYNC_RUNS_MAX ? SW_SYNC_RUNS_MAX - known : 0;
	int r = 0;
	for (size_t j = 0; r == 0 && j < node->jobs.count; j++) {
		uint32_t id = node->jobs.items[j];
		const struct sw_live *live = &brain->jobs.items[id];
		const struct sw_run *run = sw_brain_run_on(live, (uint32_t)(node - brain->nodes.items));
		assert(run != NULL);
		if (live->ghosts > 0)
			continue; /* the run before this one may still be alive */
		if (run->heard == SW_HEARD_EXITED)
			continue; /* it waits for the others of its gang; the words about it are below */
		bool is_known = sw_told_find(told, (struct sw_run_id){id + UINT64_C(1), live->epoch}) != NULL;
		if (!is_known && room == 0)
			continue;
		room -= !is_known;
		r = want_run(brain, answer, node, id, run, is_known);
	}
	return r;
}

static int want_the_rest_gone(const struct sw_brain *brain, struct answer *answer, const struct sw_brain_node *node,
			      const struct sw_sync *sync)
{
	for (size_t s = 0; s < sync->run_count; s++) {
		const struct sw_run *run = wished(brain, node, &sync->runs[s]);
		if (run != NULL && run->heard != SW_HEARD_EXITED)
			continue;
		struct sw_want *want = &answer->message.wants[answer->message.want_count++];
		*want = (struct sw_want){
			.id = sync->runs[s].id,
			.want = sync->runs[s].state == SW_RUN_EXITED ? SW_WANT_FORGET : SW_WANT_STOP,
			.grace_ms = -1,
		};
		if (want->want == SW_WANT_STOP && !say_why(brain, answer, want))
			return SW_ENOMEM;
	}
	return 0;
}

bool sw_brain_has_word(const struct sw_brain *brain, const struct sw_sync *sync)
{
	const struct sw_brain_node *node = sw_brain_find_node(brain, sync->node);
	if (node == NULL || node->version != sync->have)
		return true;
	/* It is answered in time, however often the agent replaces a sync that waits. */
	if (node->heard_at - node->answered_at > sw_brain_keeps_poll_for(brain, node))
		return true;
	for (size_t s = 0; s < sync->run_count; s++) {
		if (sync->runs[s].state != SW_RUN_EXITED)
			continue;
		const struct sw_run *run = wished(brain, node, &sync->runs[s]);
		if (run == NULL || run->heard == SW_HEARD_EXITED)
			return true;
	}
	return false;
}

sw_ns sw_brain_patience(const struct sw_brain *brain, const struct sw_sync *sync)
{
	const struct sw_brain_node *node = sw_brain_find_node(brain, sync->node);
	return node != NULL ? sw_brain_keeps_poll_for(brain, node) : 0;
}

int sw_brain_answer(struct sw_brain *brain, sw_ns now, const struct sw_sync *sync, struct sw_answer_message **ret_answer,
		    struct sw_err *err)
{
	struct sw_brain_node *node = sw_brain_find_node(brain, sync->node);
	if (node == NULL) {
		int r = sw_err_set(err, SW_ENOTFOUND, "node '%.60s' is not known here", sync->node);
		sw_err_hint(err, "Its next sync must hold its inventory.");
		return r;
	}
	int r = sw_speaker_admit(node, now, sync, err);
	if (r < 0)
		return r;
	/* The first word of a node was heard before there was a node to remember it by. A copy that
	 * comes late must not count as news: the agent may have started what this answer wants. */
	if (sw_speaker_is_news(node, sync))
		sw_speaker_remember(node, sync);
	SW_CLEANUP(sw_told_release) struct sw_told told = {0};
	struct answer *answer = sw_told_make(sync, &told) == 0 ? calloc(1, sizeof *answer) : NULL;
	if (answer == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	answer->message.version = node->version;
	answer->message.lease_ms = SW_LEASE_OF_OLD_MS;
	answer->message.retry_ms = 200;
	answer->message.wants = calloc(node->jobs.count + sync->run_count + 1, sizeof *answer->message.wants);
	if (answer->message.wants == NULL || want_runs(brain, answer, node, sync, &told) < 0 ||
	    want_the_rest_gone(brain, answer, node, sync) < 0) {
		sw_brain_answer_free(&answer->message);
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	}
	if (now > node->answered_at)
		node->answered_at = now;
	*ret_answer = &answer->message;
	return 0;
}

/* ---- time */

sw_ns sw_brain_next(const struct sw_brain *brain)
{
	sw_ns next = brain->wake_at < sw_heap_top_key(&brain->retries) ? brain->wake_at : sw_heap_top_key(&brain->retries);
	sw_ns silence = sw_brain_next_silence(brain);
	next = silence < next ? silence : next;
	if (!sw_brain_is_settled(brain) && brain->now < next)
		next = brain->now;
	next = sw_brain_forgets_at(brain) < next ? sw_brain_forgets_at(brain) : next;
	return sw_brain_learns_at(brain) < next ? sw_brain_learns_at(brain) : next;
}

int sw_brain_tick(struct sw_brain *brain, sw_ns now, sw_records *records, struct sw_err *err)
{
	int r = sw_brain_tick_silence(brain, now, records, err);
	/* One a tick: applying it takes it off the heap. */
	if (r == 0 && sw_heap_top_key(&brain->retries) <= now)
		r = sw_record_push(records, SW_RECORD_RELEASE,
				   json_pack("{s:I, s:i}", "job", (json_int_t)brain->retries.entries[0].id + 1, "by", -1), err);
	if (r == 0 && (brain->wake_at <= now || sw_brain_learns_at(brain) <= now || !sw_brain_is_settled(brain)))
		r = sw_record_push(records, SW_RECORD_WAKE, json_object(), err);
	return r < 0 ? r : sw_brain_propose_forget(brain, now, records, err);
}
