/* Moves: a run that goes on on other GPUs of its node, in the same processes.
 *
 * The engine has the job on its new GPUs at once, so nobody else comes there. The agent lets nobody onto the old ones before the run has left them. Where the run cannot go (the agent
 * says why), it gets its old GPUs back: who was given them meanwhile has not begun there, and waits again. Only if that is not enough does the job start anew where it was to go.
 * One that was suspended on its way stands still on its old GPUs from then on.
 *
 * Invariants:
 *  1. a run that moves is the only part of its job, was seen running, and goes to as many other GPUs of its node (`from` is where it was);
 *  2. there is no move of a run that moves, and none to GPUs that a run is about to leave.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
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

/* A run that could not be moved is not tried again for so long where only a policy wishes it: it stands still for each try. What kept it may be over then. */
#define REFUSED_NS (600 * SW_NS_PER_S)

/* ---- whether */

/* GPUs of the node that runs which move still have. Nobody follows one there before it is gone: should it have to stay, it would have to wait for somebody who waits for it. */
static uint64_t being_left(const struct sw_brain *brain, uint32_t number)
{
	const struct sw_brain_node *node = &brain->nodes.items[number];
	uint64_t mask = 0;
	for (size_t j = 0; j < node->jobs.count; j++)
		mask |= sw_brain_run_on(&brain->jobs.items[node->jobs.items[j]], number)->from;
	return mask;
}

/* Why the job's run cannot go to these GPUs of this node, as far as is known before it is tried; NULL: it may. */
static const char *find_obstacle(const struct sw_brain *brain, const struct sw_live *live, uint32_t node, uint64_t mask)
{
	if (live->run_count == 0 || live->runs == NULL || live->parked)
		return "it does not run";
	if (live->run_count > 1)
		return "it runs on several nodes";
	const struct sw_run *run = &live->runs[0];
	if (run->heard != SW_HEARD_RUNNING)
		return "it has not started yet";
	if (run->from != 0)
		return "it is on its way to other GPUs already";
	if (run->node != node || __builtin_popcountll(run->mask) != __builtin_popcountll(mask))
		return "it can only go to as many other GPUs of its node";
	if ((being_left(brain, node) & mask) != 0)
		return "another job is still on its way off one of these GPUs";
	return run->mask == mask ? "it is there" : NULL;
}

static bool has_runtime(const struct sw_live *live)
{
	SW_CLEANUP(sw_job_request_freep) struct sw_job_request *request = NULL;
	return sw_asked_decode(live, &request, NULL) == 0 && !request->bare_gpu;
}

bool sw_brain_can_move(const struct sw_brain *brain, uint32_t id, uint32_t parts)
{
	const struct sw_ledger *ledger = sw_engine_ledger(brain->engine);
	const struct sw_live *live = &brain->jobs.items[id];
	if (parts == SW_NO_PART || ledger->parts[parts].next != SW_NO_PART || brain->now < live->unmoved_until)
		return false;
	return find_obstacle(brain, live, ledger->parts[parts].node, ledger->parts[parts].mask) == NULL && has_runtime(live);
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

/* GPUs of its node that nobody has, as many as it has; those that it has do not count. Those on which somebody stands still come last. 0: there are not so many. */
static uint64_t choose_gpus(const struct sw_brain *brain, uint32_t id, const struct sw_run *run)
{
	const struct sw_ledger_node *node = &sw_engine_ledger(brain->engine)->nodes[run->node];
	uint64_t free = with_room(brain, id, run, node->free & ~being_left(brain, run->node)), mask = 0;
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
	const char *obstacle = chosen && mask == 0 && live->run_count == 1 ? "too few other GPUs of its node are free"
									   : find_obstacle(brain, live, run != NULL ? run->node : 0, mask);
	if (obstacle != NULL)
		return refuse(job, obstacle, NULL, err);
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
					(json_int_t)live->run_epoch, "mask", (json_int_t)mask),
			      err);
}

int sw_brain_check_move(const struct sw_brain *brain, uint64_t job, uint64_t mask, struct sw_err *err)
{
	const struct sw_live *live = sw_brain_live(brain, job);
	if (live == NULL)
		return refuse(job, "it has ended", NULL, err);
	const struct sw_run *run = live->run_count == 1 ? &live->runs[0] : NULL;
	if (run != NULL && (mask != 0 ? run->mask == mask : run->from != 0))
		return 0;
	const char *obstacle = find_obstacle(brain, live, run != NULL ? run->node : 0, mask);
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
	/* In the meantime: sw_brain_check_move() says so to whoever asked. */
	if (live->run_epoch != epoch || live->run_count == 0 || find_obstacle(brain, live, live->runs[0].node, (uint64_t)mask) != NULL)
		return 0;
	free(live->unmoved);
	live->unmoved = NULL;
	live->unmoved_until = 0;
	const struct sw_event event = {.kind = SW_EV_MOVE, .job = {(uint32_t)(job - 1)}, .epoch = live->epoch, .mask = (uint64_t)mask};
	sw_stop_begin(brain, body);
	int r = sw_brain_step(brain, &event, 1, err);
	brain->acts_on = 0;
	bool stays = r == 0 && live->run_epoch == epoch && live->run_count == 1 && live->runs[0].mask != (uint64_t)mask && !live->parked;
	if (stays)
		live->unmoved = strdup("others got these GPUs first");
	return stays && live->unmoved == NULL ? sw_err_set(err, SW_ENOMEM, "out of memory") : r;
}

void sw_brain_relocate(struct sw_brain *brain, struct sw_live *live, uint64_t mask)
{
	struct sw_run *run = &live->runs[0];
	if (mask == run->from) { /* it never left */
		run->from = 0;
	} else {
		run->from = run->mask;
		run->moved_at = brain->now;
		/* Words for people: without memory for them it moves all the same. */
		(void)sw_stop_note(brain, (uint32_t)(live - brain->jobs.items), SW_STOP_MOVED, SW_STOPPED_BY_POLICY, 0);
		free(live->unmoved);
		live->unmoved = NULL;
		live->unmoved_until = 0;
	}
	run->mask = live->last_mask = mask;
	sw_brain_touch(brain, live);
}

/* ---- how it ended */

#define NEWCOMERS_MAX 64u

/* Who was given its old GPUs since: none of them can have begun there. But beside a run that stands still they can, and then they stay. */
static size_t find_newcomers(const struct sw_brain *brain, const struct sw_live *live, uint32_t *ids)
{
	const struct sw_run *run = &live->runs[0];
	const struct sw_brain_node *node = &brain->nodes.items[run->node];
	size_t count = 0;
	for (size_t j = 0; j < node->jobs.count && count < NEWCOMERS_MAX; j++) {
		uint32_t id = node->jobs.items[j];
		const struct sw_live *other = &brain->jobs.items[id];
		const struct sw_job *job = sw_engine_job(brain->engine, (struct sw_job_id){id});
		const struct sw_run *theirs = sw_brain_run_on(other, run->node);
		if (other != live && !other->parked && (theirs->mask & run->from) != 0 && job->since >= run->moved_at &&
		    !(live->parked && theirs->heard >= SW_HEARD_RUNNING))
			ids[count++] = id;
	}
	return count;
}

/* One step: they give up the GPUs, the run has them again, they compete for others unless something holds them. */
static int turn_back(struct sw_brain *brain, uint32_t id, uint64_t mask, struct sw_err *err)
{
	struct sw_live *live = &brain->jobs.items[id];
	struct sw_event events[3 * NEWCOMERS_MAX + 1];
	uint32_t newcomers[NEWCOMERS_MAX];
	size_t count = find_newcomers(brain, live, newcomers), used = 0;
	for (size_t i = 0; i < count; i++) {
		const struct sw_live *other = &brain->jobs.items[newcomers[i]];
		events[used++] = (struct sw_event){.kind = SW_EV_HOLD, .job = {newcomers[i]}};
		/* Who has not begun has left nothing there to come back for. */
		if (sw_brain_run_on(other, live->runs[0].node)->heard < SW_HEARD_RUNNING)
			events[used++] = (struct sw_event){
				.kind = SW_EV_FAIL, .job = {newcomers[i]}, .epoch = other->epoch, .verdict = SW_FAIL_FREE, .left_ns = -1};
	}
	events[used++] = (struct sw_event){.kind = SW_EV_MOVE, .job = {id}, .epoch = live->epoch, .mask = mask};
	for (size_t i = 0; i < count; i++) {
		const struct sw_live *other = &brain->jobs.items[newcomers[i]];
		if (!other->user_held && !other->stranded)
			events[used++] = (struct sw_event){.kind = SW_EV_RELEASE, .job = {newcomers[i]}};
	}
	/* The engine takes a parked job for one that waits: it only hears where that would like to go on. */
	if (live->parked)
		sw_brain_relocate(brain, live, mask);
	return sw_brain_step(brain, events, used, err);
}

int sw_brain_end_move(struct sw_brain *brain, uint32_t id, const char *why, struct sw_err *err)
{
	struct sw_live *live = &brain->jobs.items[id];
	if (live->run_count != 1 || live->runs[0].from == 0)
		return 0;
	free(live->unmoved);
	live->unmoved = why != NULL ? strdup(why) : NULL;
	/* Of one that was suspended first it is not known. */
	live->unmoved_until = why != NULL && !live->parked ? brain->now + REFUSED_NS : 0;
	if (why != NULL && live->unmoved == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	if (why == NULL) {
		live->runs[0].from = 0;
		return 0;
	}
	uint32_t epoch = live->run_epoch;
	uint64_t mask = live->runs[0].from;
	int r = turn_back(brain, id, mask, err);
	if (r < 0 || live->run_epoch != epoch || live->run_count == 0 || live->runs[0].from == 0)
		return r;
	if (live->parked) {
		snprintf(live->reason, sizeof live->reason, "moved");
		return sw_brain_lose_parked(brain, id, err);
	}
	return sw_brain_begin_anew(brain, id, err);
}

/* ---- hearing */

static uint64_t read_places(const struct sw_brain_node *node, const char *text)
{
	uint64_t mask = 0;
	while (*text != '\0') {
		size_t size = strcspn(text, ",");
		for (uint32_t g = 0; g < node->shape.gpus; g++)
			if (strlen(node->gpus[g].uuid) == size && memcmp(node->gpus[g].uuid, text, size) == 0)
				mask |= UINT64_C(1) << g;
		text += size + (text[size] == ',');
	}
	return mask;
}

enum sw_moved sw_brain_hear_move(const struct sw_brain_node *node, const struct sw_run *run, const struct sw_sync_run *said,
				 bool up_to_date, sw_ns now, const char **ret_why)
{
	if (run->from == 0)
		return SW_MOVED_NOT;
	if (said->gpus != NULL && said->moving == NULL && read_places(node, said->gpus) == run->mask)
		return SW_MOVED;
	/* What it cannot do must be what it was told last. An agent that knows nothing of moves never says so. */
	bool silent = said->moving == NULL && now - run->moved_at > PATIENCE_NS;
	*ret_why = said->unmoved != NULL ? said->unmoved : "its node did not say in time that it is there";
	return up_to_date && (said->unmoved != NULL || silent) ? SW_MOVED_REFUSED : SW_MOVED_NOT;
}
