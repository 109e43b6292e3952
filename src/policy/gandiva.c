/* Gandiva: every job runs soon, in turns, and what runs is looked at again and again.
 *
 * A job that comes is placed at once, where it may stay: it becomes a resident of one node. Nodes
 * have an affinity, the size of the jobs that they serve (1, 2, 4, 8... GPUs), so that large jobs
 * find whole nodes. The first of these that there is:
 *	the node on which it stands still, with room;
 *	one of its affinity with room, the least loaded;
 *	an empty node, which takes its affinity;
 *	any other node with room;
 *	free GPUs of several nodes;
 *	the least crowded node of its affinity, else of any: more GPUs are asked for there than it
 *	has, and its residents take turns.
 * A turn lasts `quantum`, for all GPUs of a job together. The job that waited longest comes next
 * and stops the one that ran longest. When a job ends and leaves GPUs free, one that waits for its
 * turn elsewhere moves there.
 *
 * Every `introspect`, where residents wait, one of them is packed with one that runs and asks for
 * as many GPUs. That is for a trial of one quantum. They stay together if they do more than taking
 * turns would, that is, if the sum of their speeds against those alone is above 1. If not, this
 * pair is not tried again. A job that is spread over nodes moves to one that can hold it. If there
 * is none, the fullest such node is cleared of a job that fits elsewhere. An elastic job grows onto
 * GPUs of its node that were idle for `idle`, and shrinks as soon as a job needs them.
 *
 * Only a job that keeps its state at a stop takes turns. One that keeps it in place alone comes
 * back to the very GPUs that it had. It shares these with as many as their memory holds. It is
 * never moved. One that keeps nothing runs until it ends. A job larger than a node, or spread over
 * several, is in a turn of its own. It waits for free GPUs. After a quantum others are stopped for
 * it, and after another quantum it goes last.
 *
 * A job that keeps its GPUs busier than `busy` when alone is not packed; where that is not known
 * the trial tells. Where speeds are not measured nothing is packed.
 *
 * Invariants: each living job is in one list, that of its place; a node's counts are the
 * sums over its residents.
 */
#include <sharewell/policy.h>

#include <stdio.h>

#include "policy/gandiva.h"

static const struct sw_param params[] = {
	[QUANTUM] = {"quantum", SW_PARAM_DURATION, "60s", "how long a turn lasts, and the trial of a pair", SECOND / 1000, 86400 * SECOND},
	[INTROSPECT] = {"introspect", SW_PARAM_DURATION, "60s", "how often pairs, places and sizes are thought over", SECOND / 1000,
			86400 * SECOND},
	[HEIGHT] = {"height", SW_PARAM_INTEGER, "8",
		    "how many times over a node's GPUs are given away at most; a job that comes then queues", 1, 1000},
	[PACK] = {"pack", SW_PARAM_FLAG, "on", "try pairs on the same GPUs where jobs wait for their turn", 0, 1},
	[BUSY] = {"busy", SW_PARAM_MILLI, "0.95", "a job that uses more than this of a GPU when alone is not packed", 1, 1000},
	[IDLE] = {"idle", SW_PARAM_DURATION, "10m", "an elastic job grows onto GPUs that were idle for so long", 0, 30 * 86400 * SECOND},
};

/* ---- what happens */

static void submit(struct sw_view *view, const struct sw_job *job)
{
	sw_gandiva_enter(view, job, FRESH, 0);
}

static void started(struct sw_view *view, const struct sw_job *job)
{
	struct member *member = of(view, job);
	struct sw_node_id node = sw_job_node(view, job, 0, NULL);
	enum place place = sw_job_node(view, job, 1, NULL).v == SW_NO_NODE.v ? RESIDENT : SPREAD;
	sw_gandiva_set_waits(view, job, false);
	if (member->place == GUEST) {
		if (member->on_trial)
			sw_alarm_set(view, job, member->trial_ends, 0);
		return;
	}
	if (member->place != place || (place == RESIDENT && member->node != node.v))
		sw_gandiva_enter(view, job, place, node.v);
	sw_gandiva_set_held(view, job, job->gpus_held);
	if (place == SPREAD ? mind_of(view)->waiting > 0 : sw_list_length(view, waits_of(node.v)) > 0)
		sw_gandiva_watch(view, job);
}

/* The job is not in our hands any more. */
static void forget(struct sw_view *view, const struct sw_job *job)
{
	sw_gandiva_part(view, job);
	sw_gandiva_set_waits(view, job, false);
	sw_gandiva_leave(view, job);
	mind_of(view)->touched = true;
}

static void stopped(struct sw_view *view, const struct sw_job *job)
{
	struct member *member = of(view, job);
	if (member->by_us) {
		member->by_us = false;
		if (member->place == QUEUED)
			sw_alarm_set(view, job, sw_view_now(view) + quantum(view), 0);
		else if (member->place == RESIDENT && sw_job_keeps(view, job) == SW_KEEPS_IN_PLACE)
			sw_gandiva_watch(view, job); /* it could not go on in that decision, even if none came in its place */
		return;
	}
	if (job->state == SW_JOB_HELD) {
		forget(view, job);
		return;
	}
	sw_gandiva_part(view, job);
	sw_gandiva_set_held(view, job, 0);
	sw_gandiva_set_waits(view, job, true);
	if (member->place != RESIDENT)
		sw_gandiva_enter(view, job, QUEUED, 0);
	else
		sw_gandiva_mark(view, member->node);
	mind_of(view)->touched = true;
}

static void ended(struct sw_view *view, const struct sw_job *job)
{
	forget(view, job);
}

static void freed(struct sw_view *view, const struct sw_job *job)
{
	(void)job;
	sw_gandiva_mark_all(view);
}

static void alarm(struct sw_view *view, const struct sw_job *job)
{
	const struct member *member = of(view, job);
	if (member->place == RESIDENT || member->place == GUEST)
		sw_gandiva_mark(view, member->node);
	else if (member->place == SPREAD)
		mind_of(view)->spread_over = true;
	else if (member->place == QUEUED && sw_gandiva_is_hard(view, job)) {
		mind_of(view)->press = true;
		sw_alarm_set(view, job, sw_view_now(view) + quantum(view), 0);
	}
}

static void drop_gone(struct sw_view *view, uint32_t shelf)
{
	const struct sw_job *next;
	for (const struct sw_job *job = sw_list_next(view, shelf, NULL); job != NULL; job = next) {
		next = sw_list_next(view, shelf, job);
		const struct sw_job *guest = linked(view, of(view, job)->partner);
		if (guest != NULL && !sw_job_is_waiting(guest) && guest->state != SW_JOB_RUNNING)
			forget(view, guest);
		if (!sw_job_is_waiting(job) && job->state != SW_JOB_RUNNING)
			forget(view, job);
	}
}

/* Jobs that wait are held and released without a word: where the numbers
 * differ, all are looked at. */
static void recount(struct sw_view *view)
{
	struct mind *mind = mind_of(view);
	const struct sw_job *next;
	for (const struct sw_job *job = sw_list_next(view, FRESH, NULL); job != NULL; job = next) {
		next = sw_list_next(view, FRESH, job);
		if (sw_job_is_waiting(job))
			sw_gandiva_set_waits(view, job, true);
		else
			sw_gandiva_leave(view, job);
	}
	if (mind->waiting == sw_view_waiting(view))
		return;
	drop_gone(view, QUEUED);
	drop_gone(view, SPREAD);
	for (uint32_t n = 0; n < sw_view_nodes(view); n++)
		drop_gone(view, waits_of(n));
	for (const struct sw_job *job = sw_view_next_waiting(view, NULL); job != NULL; job = sw_view_next_waiting(view, job)) {
		if (of(view, job)->place != NOWHERE)
			continue;
		sw_gandiva_enter(view, job, QUEUED, 0);
		sw_gandiva_set_waits(view, job, true);
	}
	mind->touched = true;
}

/* ---- the decision */

/* What changed since the last decision, as far as no callback said. */
static void notice(struct sw_view *view)
{
	struct mind *mind = mind_of(view);
	recount(view);
	/* Nodes come, go, open and close. */
	if (mind->too_soon || sw_view_gpus(view) != mind->gpus_up || (!mind->touched && sw_view_gpus_free(view) != mind->gpus_free))
		sw_gandiva_mark_all(view);
	mind->too_soon = false;
}

/* Whether there is anything that a look could change: a decision costs something, too. */
static bool ponders(struct sw_view *view)
{
	const struct mind *mind = mind_of(view);
	if (mind->crowded > 0)
		return sw_view_param(view, PACK)->number != 0;
	if (sw_view_gpus_free(view) == 0)
		return false;
	for (const struct sw_job *job = NULL; (job = sw_list_next(view, SPREAD, job)) != NULL;)
		if (job->gpus <= sw_view_node_gpus_max(view))
			return true;
	return mind->small > 0 && sw_list_length(view, QUEUED) == 0;
}

static sw_ns decide(struct sw_plan *plan)
{
	struct sw_view *view = sw_plan_view(plan);
	struct mind *mind = mind_of(view);
	bool looks = mind->look_at != 0 && mind->look_at <= sw_view_now(view);
	sw_ns every = sw_view_param(view, INTROSPECT)->number;
	notice(view);
	if (looks) /* before those that have run alone for a turn stop */
		sw_gandiva_pack_all(plan);
	if (mind->spread_over)
		sw_gandiva_end_spread(plan);
	sw_gandiva_take_turns(plan);
	if (mind->touched)
		sw_gandiva_settle_all(plan, QUEUED);
	sw_gandiva_settle_all(plan, FRESH);
	sw_gandiva_take_turns(plan);
	if (mind->press)
		sw_gandiva_press(plan);
	if (mind->touched || looks) {
		sw_gandiva_relieve_all(plan);
		sw_gandiva_gather_all(plan, looks);
	}
	if (looks)
		sw_gandiva_grow_all(plan);
	sw_gandiva_take_turns(plan); /* where a job left */
	if (!ponders(view))
		mind->look_at = 0;
	else if (looks || mind->look_at == 0)
		mind->look_at = sw_view_now(view) + every - sw_view_now(view) % every;
	mind->touched = mind->press = mind->spread_over = false;
	mind->gpus_up = sw_view_gpus(view);
	mind->gpus_free = sw_view_gpus_free(view);
	if (mind->due != 0)
		return sw_view_now(view) + quantum(view);
	return mind->look_at == 0 ? SW_TIME_NEVER : mind->look_at;
}

static void explain(struct sw_view *view, const struct sw_job *job, char *text, size_t size)
{
	const struct member *member = of(view, job);
	long long slice_s = (long long)(quantum(view) / SECOND);
	if (member->place == RESIDENT) {
		const struct room *room = room_of(view, member->node);
		snprintf(text, size, "it takes turns of %lld s with others: the jobs of its node ask for %u GPU%s and it has %u", slice_s,
			 SW_COUNTED(room->load), node_of(view, member->node).gpus);
	} else if (member->place == GUEST) {
		snprintf(text, size, "it shares its GPUs with another job, and the turn of both comes when others have had %lld s",
			 slice_s);
	} else if (!sw_gandiva_takes_turns(view, job)) {
		snprintf(text, size,
			 "it needs %u GPU%s at once and %u %s free; it cannot take turns, because a stop would cost it its work",
			 SW_COUNTED(job->gpus), SW_COUNTED_ARE(sw_view_gpus_free(view)));
	} else if (sw_gandiva_is_hard(view, job)) {
		snprintf(text, size, "it needs %u GPUs, more than a node has, and %u %s free; others make way after their turn of %lld s",
			 job->gpus, SW_COUNTED_ARE(sw_view_gpus_free(view)), slice_s);
	} else {
		snprintf(text, size, "it needs %u GPU%s, and every node that could have it is given away %lld times over already",
			 SW_COUNTED(job->gpus), (long long)sw_view_param(view, HEIGHT)->number);
	}
}

const struct sw_policy sw_policy_gandiva = {
	.abi = SW_POLICY_ABI,
	.name = "gandiva",
	.about = "every job runs at once, in turns; packs, moves and grows jobs by what it sees (Gandiva); needs no durations",
	.params = params,
	.param_count = sizeof params / sizeof params[0],
	.state_size = sizeof(struct mind),
	.job_state_size = sizeof(struct member),
	.node_state_size = sizeof(struct room),
	.shelf_count = PLACES,
	.node_shelf_count = NODE_SHELVES,
	.submit = submit,
	.started = started,
	.stopped = stopped,
	.ended = ended,
	.freed = freed,
	.alarm = alarm,
	.decide = decide,
	.explain = explain,
};
