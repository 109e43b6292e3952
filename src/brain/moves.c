/* Moves: a run that goes on on other GPUs of its node, in the same processes. The engine says
 * whether, where to, and what becomes of a run that cannot go (core/move.c). Here are the wishes of
 * people, and what agents say of a run that moves.
 *
 * The agent lets no other run onto the GPUs that a run leaves before it has left them.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/text.h"
#include "brain/asked.h"
#include "brain/fold.h"
#include "brain/forget.h"
#include "brain/moves.h"
#include "brain/record.h"
#include "brain/runs.h"
#include "brain/state.h"
#include "brain/stops.h"

/* So long an agent may take, without a word, to begin with a move. */
#define PATIENCE_NS (600 * SW_NS_PER_S)

/* ---- whether */

static bool has_runtime(const struct sw_live *live)
{
	SW_CLEANUP(sw_job_request_freep) struct sw_job_request *request = NULL;
	return sw_asked_decode(live, &request, NULL) == 0 && !request->bare_gpu;
}

/* Why the job's run cannot go to these GPUs of its node, as far as is known before it
 * is tried; NULL: it may. */
static const char *find_obstacle(const struct sw_brain *brain, const struct sw_live *live, uint64_t mask)
{
	return sw_engine_move_obstacle(brain->engine, sw_brain_id_of(brain, live), (struct sw_gpus){SW_NO_NODE, mask});
}

static int refuse(uint64_t job, const char *detail, const char *hint, struct sw_err *err)
{
	sw_err_set(err, SW_EINPUT, "cannot move job %llu", (unsigned long long)job);
	sw_err_detail(err, "%s", detail);
	if (hint != NULL)
		sw_err_hint(err, "%s", hint);
	return SW_EINPUT;
}

/* Those of these GPUs of its node that have room for the job; GPUs that it has now are its own. */
static uint64_t with_room(const struct sw_brain *brain, uint32_t id, const struct sw_run *run, uint64_t mask)
{
	const struct sw_ledger *ledger = sw_engine_ledger(brain->engine);
	const struct sw_job *job = sw_engine_job(brain->engine, (struct sw_job_id){id});
	const struct sw_share share = {.gpu_memory_bytes = job->gpu_memory_bytes,
				       .compute_milli = job->compute_milli,
				       .guaranteed = job->job_class == SW_CLASS_GUARANTEED};
	uint64_t fitting = mask & run->mask;
	for (uint64_t rest = mask & ~run->mask; rest != 0; rest &= rest - 1)
		if (sw_ledger_gpu_fits(ledger, ledger->nodes[run->node].first_gpu + (uint32_t)__builtin_ctzll(rest), share))
			fitting |= rest & -rest;
	return fitting;
}

/* GPUs of its node that are free, as many as it has; those that it has do not count. Those on which
 * a run stands still come last. 0: there are not so many. */
static uint64_t choose_gpus(const struct sw_brain *brain, uint32_t id, const struct sw_run *run)
{
	const struct sw_ledger_node *node = &sw_engine_ledger(brain->engine)->nodes[run->node];
	uint64_t free = with_room(brain, id, run, node->free & ~sw_engine_leaving(brain->engine, (struct sw_node_id){run->node})), mask = 0;
	int wanted = __builtin_popcountll(run->mask);
	if (__builtin_popcountll(free & ~node->homes) >= wanted)
		free &= ~node->homes;
	for (; wanted > 0 && free != 0; wanted--, free &= free - 1)
		mask |= free & -free;
	return wanted == 0 ? mask : 0;
}

int sw_brain_propose_move(struct sw_brain *brain, const struct sw_user *user, uint64_t job, uint64_t mask, sw_records *records,
			  struct sw_err *err)
{
	const struct sw_live *live = sw_brain_live(brain, job);
	if (live == NULL)
		return sw_err_set(err, SW_ENOTFOUND, "there is no job %llu", (unsigned long long)job);
	if (!sw_brain_may_change(user, live))
		return sw_err_set(err, SW_EDENIED, "job %llu belongs to another user", (unsigned long long)job);
	if (live->ended_at != SW_TIME_NEVER)
		return refuse(job, "it has ended", NULL, err);
	const struct sw_run *run = live->run_count > 0 ? &live->runs[0] : NULL;
	bool chosen = mask == 0 && run != NULL;
	if (chosen && live->run_count == 1)
		mask = choose_gpus(brain, (uint32_t)(job - 1), run);
	const char *obstacle =
		chosen && mask == 0 && live->run_count == 1 ? "too few other GPUs of its node are free" : find_obstacle(brain, live, mask);
	if (obstacle != NULL)
		return refuse(job, obstacle, NULL, err);
	assert(run != NULL); /* without one there is an obstacle */
	if (!has_runtime(live))
		return refuse(job, "it was submitted with --gpu-runtime off, and only the runtime can move it",
			      "'sharewell requeue' starts it anew.", err);
	uint32_t gpus = brain->nodes.items[run->node].shape.gpus;
	if (gpus < 64 && mask >> gpus != 0) {
		char detail[80];
		snprintf(detail, sizeof detail, "its node has %u GPU%s, from 0 on", SW_COUNTED(gpus));
		return refuse(job, detail, NULL, err);
	}
	if (with_room(brain, (uint32_t)(job - 1), run, mask) != mask)
		return refuse(job, "others hold one of these GPUs", "'sharewell nodes' shows which are free.", err);
	return sw_record_push(records, SW_RECORD_MOVE,
			      json_pack("{s:I, s:i, s:I, s:I}", "job", (json_int_t)job, "by", (int)user->uid, "epoch",
					(json_int_t)live->epoch, "mask", (json_int_t)mask),
			      err);
}

int sw_brain_check_move(const struct sw_brain *brain, uint64_t job, uint64_t mask, struct sw_err *err)
{
	const struct sw_live *live = sw_brain_live(brain, job);
	if (live == NULL)
		return refuse(job, "it has ended", NULL, err);
	const struct sw_run *run = live->run_count == 1 ? &live->runs[0] : NULL;
	if (run != NULL && (mask != 0 ? run->mask == mask : sw_brain_leaves(brain, live) != 0))
		return 0;
	const char *obstacle = find_obstacle(brain, live, mask);
	obstacle = obstacle == NULL && mask != 0 ? live->unmoved : obstacle;
	return refuse(job, obstacle != NULL ? obstacle : "something else happened to it at the same moment",
		      "'sharewell show' says where it is.", err);
}

/* ---- on the way */

int sw_brain_apply_move(struct sw_brain *brain, json_t *body, struct sw_err *err)
{
	json_int_t job, epoch, mask;
	if (json_unpack(body, "{s:I, s:I, s:I}", "job", &job, "epoch", &epoch, "mask", &mask) != 0)
		return sw_err_set(err, SW_EBUG, "a move record lacks a field");
	struct sw_live *live = sw_brain_live(brain, (uint64_t)job);
	if (sw_brain_has_left(brain, job))
		return 0;
	if (live == NULL)
		return sw_err_set(err, SW_EBUG, "a move record names job %lld, which is not there", (long long)job);
	/* In the meantime: sw_brain_check_move() tells the user that. */
	if (live->epoch != epoch || live->run_count == 0 || find_obstacle(brain, live, (uint64_t)mask) != NULL)
		return 0;
	free(live->unmoved);
	live->unmoved = NULL;
	const struct sw_event event = {.kind = SW_EV_MOVE, .job = {(uint32_t)(job - 1)}, .epoch = live->epoch, .mask = (uint64_t)mask};
	sw_stop_begin(brain, body);
	int r = sw_brain_step(brain, &event, 1, err);
	brain->acts_on = 0;
	bool stays = r == 0 && live->epoch == epoch && live->run_count == 1 && live->runs[0].mask != (uint64_t)mask &&
		     !sw_brain_is_suspended(brain, live);
	if (stays)
		live->unmoved = strdup("others got these GPUs first");
	return stays && live->unmoved == NULL ? sw_err_set(err, SW_ENOMEM, "out of memory") : r;
}

/* ---- how it ended */

/* Of the GPUs of its node: what is dead cannot be had again. */
static uint64_t dead_beside(const struct sw_brain *brain, const struct sw_live *live)
{
	const struct sw_brain_node *node = live->run_count > 0 ? &brain->nodes.items[live->runs[0].node] : NULL;
	uint64_t mask = 0;
	for (uint32_t g = 0; node != NULL && g < node->shape.gpus; g++)
		if (node->gpus[g].shut == SW_SHUT_DEAD + 1)
			mask |= UINT64_C(1) << g;
	return mask;
}

int sw_brain_end_move(struct sw_brain *brain, uint32_t id, const char *why, struct sw_err *err)
{
	struct sw_live *live = &brain->jobs.items[id];
	struct sw_event event = {.kind = why == NULL ? SW_EV_MOVED : SW_EV_UNMOVED, .job = {id}, .epoch = live->epoch};
	if (sw_brain_leaves(brain, live) == 0)
		return 0;
	if (why == NULL)
		return sw_brain_tell(brain, event, err);
	event.mask = dead_beside(brain, live);
	SW_CLEANUP(sw_freep) char *copy = strdup(why);
	if (copy == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	int r = sw_brain_step(brain, &event, 1, err);
	/* It outlives the run, where that is over. */
	free(live->unmoved);
	live->unmoved = SW_TAKE(copy);
	return r;
}

/* ---- hearing */

static uint64_t read_places(const struct sw_brain_node *node, const char *text)
{
	uint64_t mask = 0;
	const char *uuid;
	size_t size;
	while (sw_text_next(&text, &uuid, &size))
		for (uint32_t g = 0; g < node->shape.gpus; g++)
			if (strlen(node->gpus[g].uuid) == size && memcmp(node->gpus[g].uuid, uuid, size) == 0)
				mask |= UINT64_C(1) << g;
	return mask;
}

enum sw_moved sw_brain_hear_move(const struct sw_brain *brain, const struct sw_live *live, const struct sw_brain_node *node,
				 const struct sw_sync_run *said, bool up_to_date, const char **ret_why)
{
	sw_ns since;
	uint64_t leaves = sw_engine_leaves(brain->engine, sw_brain_id_of(brain, live), &since);
	if (leaves == 0)
		return SW_MOVED_NOT;
	if (said->gpus != NULL && said->moving == NULL && read_places(node, said->gpus) == live->runs[0].mask)
		return SW_MOVED;
	/* What it cannot do must be what it was told last. An agent that knows nothing
	 * of moves never says so. */
	bool silent = said->moving == NULL && node->heard_at - since > PATIENCE_NS;
	*ret_why = said->unmoved != NULL ? said->unmoved : "its node did not say in time that it is there";
	return up_to_date && (said->unmoved != NULL || silent) ? SW_MOVED_REFUSED : SW_MOVED_NOT;
}
