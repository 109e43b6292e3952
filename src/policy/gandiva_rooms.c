/* Of the policy gandiva: shelves and counts of which job is where, and starts and
 * stops that keep them true. */
#include "policy/gandiva.h"

/* ---- lists and counts */

/* Waiting residents make their node crowded. */
static uint32_t shelf_of(const struct member *member)
{
	bool has_shelf = member->place != NOWHERE && member->place != GUEST;
	uint32_t residents = member->waits ? waits_of(member->node) : runs_of(member->node);
	return member->place == RESIDENT ? residents : has_shelf ? member->place : SW_NO_LIST;
}

static void link_last(struct sw_view *view, const struct sw_job *job)
{
	const struct member *member = of(view, job);
	sw_list_append(view, shelf_of(member), job);
	if (member->place == RESIDENT && member->waits && sw_list_length(view, shelf_of(member)) == 1)
		mind_of(view)->crowded++;
}

static void unlink_it(struct sw_view *view, const struct sw_job *job)
{
	const struct member *member = of(view, job);
	sw_list_remove(view, shelf_of(member), job);
	if (member->place == RESIDENT && member->waits && sw_list_length(view, shelf_of(member)) == 0)
		mind_of(view)->crowded--;
}

void sw_gandiva_mark(struct sw_view *view, uint32_t node)
{
	struct room *room = room_of(view, node);
	if (room->due)
		return;
	room->due = true;
	room->next_due = mind_of(view)->due;
	mind_of(view)->due = node + 1;
}

void sw_gandiva_mark_all(struct sw_view *view)
{
	for (uint32_t node = sw_view_nodes(view); node-- > 0;)
		sw_gandiva_mark(view, node);
	mind_of(view)->touched = true;
}

void sw_gandiva_set_waits(struct sw_view *view, const struct sw_job *job, bool waits)
{
	struct member *member = of(view, job);
	member->by_us &= waits;
	if (member->waits == waits)
		return;
	unlink_it(view, job);
	member->waits = waits;
	mind_of(view)->waiting += waits ? 1 : -1u;
	link_last(view, job);
}

static bool could_grow(const struct sw_job *job, uint32_t held)
{
	return held > 0 && held < job->max_gpus;
}

/* How many GPUs of its node a resident has now. */
void sw_gandiva_set_held(struct sw_view *view, const struct sw_job *job, uint32_t gpus)
{
	struct member *member = of(view, job);
	if (member->place != RESIDENT || member->held == gpus)
		return;
	struct room *room = room_of(view, member->node);
	struct mind *mind = mind_of(view);
	mind->small += (uint32_t)could_grow(job, gpus) - (uint32_t)could_grow(job, member->held);
	mind->grown += (uint32_t)(gpus > job->gpus) - (uint32_t)(member->held > job->gpus);
	room->held += gpus - member->held;
	room->changed_at = sw_view_now(view);
	member->held = gpus;
}

bool sw_gandiva_takes_turns(const struct sw_view *view, const struct sw_job *job)
{
	enum sw_keeping keeps = sw_job_keeps(view, job);
	/* In place, beside others: only with a share of the memory that is known. */
	return keeps == SW_KEEPS_ANYWHERE || (keeps == SW_KEEPS_IN_PLACE && job->gpu_memory_bytes > 0);
}

/* Out of its place. A resident leaves with its own counts; its pair is not asked. */
void sw_gandiva_leave(struct sw_view *view, const struct sw_job *job)
{
	struct member *member = of(view, job);
	unlink_it(view, job);
	if (member->place == RESIDENT) {
		struct room *room = room_of(view, member->node);
		sw_gandiva_set_held(view, job, 0);
		room->load -= job->gpus;
		room->fixed -= sw_gandiva_takes_turns(view, job) ? 0 : job->gpus;
		if (sw_list_length(view, runs_of(member->node)) + sw_list_length(view, waits_of(member->node)) == 0)
			room->affinity = 0;
		sw_gandiva_mark(view, member->node);
	} else if (member->place == SPREAD) {
		sw_gandiva_mark_all(view); /* where it was is not known any more */
	}
	member->place = NOWHERE;
}

uint32_t sw_gandiva_size_class(uint32_t gpus)
{
	uint32_t size = 1;
	while (size < gpus && size < UINT32_C(1) << 31)
		size *= 2;
	return size;
}

void sw_gandiva_enter(struct sw_view *view, const struct sw_job *job, enum place place, uint32_t node)
{
	struct member *member = of(view, job);
	sw_gandiva_leave(view, job);
	member->place = (uint8_t)place;
	member->node = node;
	link_last(view, job);
	if (place == QUEUED)
		sw_alarm_set(view, job, sw_view_now(view) + quantum(view), 0);
	if (place != RESIDENT)
		return;
	struct room *room = room_of(view, node);
	room->load += job->gpus;
	room->fixed += sw_gandiva_takes_turns(view, job) ? 0 : job->gpus;
	if (room->affinity == 0)
		room->affinity = sw_gandiva_size_class(job->gpus);
	sw_gandiva_set_held(view, job, job->gpus_held);
	sw_gandiva_mark(view, node);
}

/* Ends a pair: the guest is a resident like others. */
void sw_gandiva_part(struct sw_view *view, const struct sw_job *job)
{
	struct member *member = of(view, job);
	const struct sw_job *other = linked(view, member->partner);
	if (other == NULL)
		return;
	const struct sw_job *guest = member->place == GUEST ? job : other;
	of(view, other)->partner = member->partner = 0;
	of(view, other)->on_trial = member->on_trial = false;
	sw_gandiva_enter(view, guest, RESIDENT, of(view, guest)->node);
}

/* ---- starting and stopping */

bool sw_gandiva_over_quota(const struct sw_view *view, const struct sw_job *job)
{
	uint32_t quota = sw_view_tenant_quota(view, job->tenant);
	return job->job_class == SW_CLASS_GUARANTEED && quota != UINT32_MAX &&
	       (uint64_t)sw_view_tenant_held(view, job->tenant) + job->gpus > quota;
}

void sw_gandiva_note_stop(struct sw_view *view, const struct sw_job *job)
{
	of(view, job)->by_us = true;
	sw_gandiva_set_waits(view, job, true);
	sw_gandiva_set_held(view, job, 0);
}

/* Stops a job, with its guest. */
bool sw_gandiva_rest(struct sw_plan *plan, const struct sw_job *job)
{
	struct sw_view *view = sw_plan_view(plan);
	struct member *member = of(view, job);
	const struct sw_job *guest = member->place == RESIDENT ? linked(view, member->partner) : NULL;
	uint32_t speed = sw_job_speed_milli(view, job);
	if (guest != NULL && guest->state == SW_JOB_RUNNING) {
		if (sw_plan_stop(plan, guest, SW_PREEMPT) != SW_YES) {
			mind_of(view)->too_soon = true;
			return false;
		}
		sw_gandiva_note_stop(view, guest);
	} else if (speed > 0) {
		member->alone_milli = speed;
	}
	if (sw_plan_stop(plan, job, SW_PREEMPT) != SW_YES) {
		mind_of(view)->too_soon = true;
		sw_gandiva_part(view, job);
		return false;
	}
	sw_gandiva_note_stop(view, job);
	return true;
}

/* Starts a resident on its node, and its guest beside it. */
bool sw_gandiva_begin(struct sw_plan *plan, const struct sw_job *job)
{
	struct sw_view *view = sw_plan_view(plan);
	struct member *member = of(view, job);
	if (sw_plan_run(plan, job, SW_WISH(.where = sw_on((struct sw_node_id){member->node}))) != SW_YES)
		return false;
	sw_gandiva_set_waits(view, job, false);
	sw_gandiva_set_held(view, job, job->gpus_held);
	const struct sw_job *guest = linked(view, member->partner);
	if (guest != NULL && sw_plan_run(plan, guest, SW_WISH(.promise = SW_REST, .where = sw_beside(job))) == SW_YES)
		sw_gandiva_set_waits(view, guest, false);
	else
		sw_gandiva_part(view, job);
	return true;
}

bool sw_gandiva_may_rest(struct sw_view *view, const struct sw_job *job)
{
	return sw_gandiva_takes_turns(view, job) && !of(view, job)->on_trial && sw_view_now(view) - job->since >= quantum(view);
}

/* Takes back what elastic jobs got on top, until so many GPUs of the node are free. */
void sw_gandiva_shrink(struct sw_plan *plan, uint32_t node, uint32_t gpus)
{
	struct sw_view *view = sw_plan_view(plan);
	if (mind_of(view)->grown == 0)
		return;
	for (const struct sw_job *job = NULL; (job = sw_list_next(view, runs_of(node), job)) != NULL;) {
		if (node_of(view, node).gpus_free >= gpus)
			return;
		if (of(view, job)->held <= job->gpus)
			continue;
		enum sw_answer answer = sw_plan_run(plan, job, SW_WISH(.gpus = job->gpus, .where = sw_on((struct sw_node_id){node})));
		if (answer == SW_YES)
			sw_gandiva_set_held(view, job, job->gpus);
		mind_of(view)->too_soon |= answer == SW_TOO_SOON;
	}
}
