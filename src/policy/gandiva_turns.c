/* Of the policy gandiva: turns on a node, and of those that fit on none. */
#include "policy/gandiva.h"

/* ---- turns */

/* Whether the memory of those that stand on the GPUs of `with` and that of one more fits. A job
 * that is stopped in place keeps it. */
static bool fits_beside(struct sw_view *view, const struct sw_node *node, const struct sw_job *job, const struct sw_job *with)
{
	uint64_t gpu = job->gpu_memory_bytes, host = job->host_memory_bytes * job->gpus;
	uint32_t count = 1;
	const uint32_t shelves[] = {runs_of(node->id.v), waits_of(node->id.v)};
	for (int l = 0; l < 2; l++)
		for (const struct sw_job *other = NULL; (other = sw_list_next(view, shelves[l], other)) != NULL;) {
			if (other == job || sw_job_node(view, other, 0, NULL).v == SW_NO_NODE.v)
				continue;
			host += other->host_memory_bytes * other->gpus;
			if (!sw_jobs_meet(view, other, with))
				continue;
			gpu += other->gpu_memory_bytes;
			count++;
		}
	return job->gpu_memory_bytes > 0 && gpu <= node->gpu_memory_bytes && count <= IN_PLACE_MAX &&
	       (node->memory_bytes == 0 || host <= node->memory_bytes);
}

/* Whether this one may be stopped for that one. */
static bool gives_way(struct sw_view *view, const struct sw_node *node, const struct sw_job *job, const struct sw_job *to)
{
	if (!sw_gandiva_may_rest(view, job))
		return false;
	return sw_job_keeps(view, job) == SW_KEEPS_ANYWHERE || fits_beside(view, node, to, job);
}

/* To the GPUs where it stands: the job that is there stops. */
static bool bring_home(struct sw_plan *plan, const struct sw_node *node, const struct sw_job *job)
{
	struct sw_view *view = sw_plan_view(plan);
	for (const struct sw_job *other = NULL; (other = sw_list_next(view, SPREAD, other)) != NULL;)
		if (sw_jobs_meet(view, job, other))
			return false;
	for (const struct sw_job *other = NULL; (other = sw_list_next(view, runs_of(node->id.v), other)) != NULL;)
		if (sw_jobs_meet(view, job, other) && !sw_gandiva_may_rest(view, other))
			return false;
	const struct sw_job *next;
	for (const struct sw_job *other = sw_list_next(view, runs_of(node->id.v), NULL); other != NULL; other = next) {
		next = sw_list_next(view, runs_of(node->id.v), other);
		if (sw_jobs_meet(view, job, other) && !sw_gandiva_rest(plan, other))
			return false;
	}
	return sw_gandiva_begin(plan, job);
}

/* Stops those that ran longest until so many GPUs are free for the job, if that can be done. */
static bool clear(struct sw_plan *plan, const struct sw_node *node, const struct sw_job *job)
{
	struct sw_view *view = sw_plan_view(plan);
	uint32_t free = node_of(view, node->id.v).gpus_free, gpus = free;
	for (const struct sw_job *other = NULL; (other = sw_list_next(view, runs_of(node->id.v), other)) != NULL && gpus < job->gpus;)
		gpus += gives_way(view, node, other, job) ? of(view, other)->held : 0;
	if (gpus < job->gpus)
		return false;
	const struct sw_job *next;
	for (const struct sw_job *other = sw_list_next(view, runs_of(node->id.v), NULL); other != NULL && free < job->gpus; other = next) {
		next = sw_list_next(view, runs_of(node->id.v), other);
		if (!gives_way(view, node, other, job))
			continue;
		if (!sw_gandiva_rest(plan, other))
			return false;
		free = node_of(view, node->id.v).gpus_free;
	}
	return free >= job->gpus;
}

/* Of one that is stopped in this very decision its GPUs are not known yet. */
bool sw_gandiva_stands_here(struct sw_view *view, const struct sw_job *job)
{
	return (of(view, job)->by_us && sw_job_keeps(view, job) == SW_KEEPS_IN_PLACE) ||
	       sw_gandiva_stands_on(view, job, of(view, job)->node);
}

static bool bring(struct sw_plan *plan, const struct sw_node *node, const struct sw_job *job)
{
	struct sw_view *view = sw_plan_view(plan);
	if (sw_gandiva_over_quota(view, job)) { /* what others of its tenant have elsewhere is given back without a word to this node */
		sw_alarm_set(view, job, sw_view_now(view) + quantum(view), quantum(view));
		return false;
	}
	sw_gandiva_shrink(plan, node->id.v, job->gpus);
	if (sw_gandiva_stands_here(view, job))
		return !of(view, job)->by_us && bring_home(plan, node, job);
	if (!clear(plan, node, job))
		return false;
	if (!sw_gandiva_begin(plan, job)) { /* there is room, but not for this one */
		of(view, job)->shuns = node->id.v + 1;
		sw_gandiva_part(view, job);
		sw_gandiva_enter(view, job, QUEUED, 0);
		mind_of(view)->touched = true;
	}
	return true;
}

static void remember_bad(struct sw_view *view, const struct sw_job *job, const struct sw_job *other)
{
	struct member *member = of(view, job);
	if (member->bads < BAD_MAX)
		member->bad[member->bads++] = other->id.v + 1;
}

/* Speed against that alone, in thousandths. */
static uint64_t rate(struct sw_view *view, const struct sw_job *job)
{
	uint32_t alone = of(view, job)->alone_milli;
	return alone == 0 ? 0 : (uint64_t)sw_job_speed_milli(view, job) * 1000 / alone;
}

/* The trial of a pair is over: taking turns they would do 1000 thousandths together. */
static void judge(struct sw_plan *plan, const struct sw_job *job)
{
	struct sw_view *view = sw_plan_view(plan);
	const struct sw_job *guest = linked(view, of(view, job)->partner);
	if (rate(view, job) + rate(view, guest) > 1000) {
		of(view, job)->on_trial = of(view, guest)->on_trial = false;
		return;
	}
	if (sw_plan_stop(plan, guest, SW_PREEMPT) != SW_YES) {
		mind_of(view)->too_soon = true;
		return;
	}
	sw_gandiva_note_stop(view, guest);
	sw_gandiva_part(view, job);
	remember_bad(view, job, guest);
	remember_bad(view, guest, job);
}

/* No job waits here and GPUs are free: a guest takes some for itself. */
static void unpack(struct sw_plan *plan, uint32_t node)
{
	struct sw_view *view = sw_plan_view(plan);
	for (const struct sw_job *job = NULL; (job = sw_list_next(view, runs_of(node), job)) != NULL;) {
		const struct sw_job *guest = linked(view, of(view, job)->partner);
		if (guest == NULL || sw_job_keeps(view, guest) != SW_KEEPS_ANYWHERE ||
		    sw_plan_run(plan, guest, SW_WISH(.where = sw_on((struct sw_node_id){node}))) != SW_YES)
			continue;
		(void)sw_plan_limit(plan, guest, guest->gpu_memory_bytes, 1000);
		sw_gandiva_part(view, job);
	}
}

/* Wakes us a quantum after the job started or stopped: at a multiple of the quantum, so that turns
 * end together on all nodes. */
void sw_gandiva_watch(struct sw_view *view, const struct sw_job *job)
{
	sw_ns slice = quantum(view), ends = job->since + slice;
	if (ends > sw_view_now(view))
		sw_alarm_set(view, job, ends, (slice - ends % slice) % slice);
}

static void turn(struct sw_plan *plan, uint32_t n)
{
	struct sw_view *view = sw_plan_view(plan);
	struct sw_node node = node_of(view, n);
	const struct sw_job *next;
	for (const struct sw_job *job = sw_list_next(view, runs_of(n), NULL); job != NULL; job = next) {
		next = sw_list_next(view, runs_of(n), job);
		if (of(view, job)->on_trial && sw_view_now(view) >= of(view, job)->trial_ends)
			judge(plan, job);
	}
	next = sw_list_next(view, waits_of(n), NULL);
	for (uint32_t left = sw_list_length(view, waits_of(n)); left > 0 && next != NULL; left--) {
		const struct sw_job *job = next;
		next = sw_list_next(view, waits_of(n), job);
		if (!node.open || node.gpus < job->gpus) { /* closed, or with fewer GPUs than it had */
			sw_gandiva_part(view, job);
			sw_gandiva_enter(view, job, QUEUED, 0);
			mind_of(view)->touched = true;
		} else if (!bring(plan, &node, job) && sw_job_keeps(view, job) == SW_KEEPS_ANYWHERE && !sw_gandiva_over_quota(view, job)) {
			break; /* those behind it shall not keep it from its turn */
		}
	}
	if (sw_list_length(view, waits_of(n)) > 0)
		for (const struct sw_job *job = NULL; (job = sw_list_next(view, runs_of(n), job)) != NULL;)
			sw_gandiva_watch(view, job);
	else if (node_of(view, n).gpus_free > 0 && mind_of(view)->crowded == 0)
		unpack(plan, n);
}

void sw_gandiva_take_turns(struct sw_plan *plan)
{
	struct sw_view *view = sw_plan_view(plan);
	struct mind *mind = mind_of(view);
	/* A node is looked at twice at most: its guests and its residents that found no
	 * room may mark it again. */
	for (uint32_t left = 2 * sw_view_nodes(view); mind->due != 0 && left > 0; left--) {
		uint32_t node = mind->due - 1;
		struct room *room = room_of(view, node);
		mind->due = room->next_due;
		room->due = false;
		turn(plan, node);
	}
}

/* ---- those that take turns with none: larger than a node, or not to be stopped */

bool sw_gandiva_is_hard(struct sw_view *view, const struct sw_job *job)
{
	return job->gpus > sw_view_node_gpus_max(view) || !sw_gandiva_takes_turns(view, job);
}

/* Others were stopped for it there, or (SW_NO_NODE) on several nodes, and it could not start. The
 * longer it waits, the longer they are left alone then. */
static void shun(struct sw_view *view, const struct sw_job *job, struct sw_node_id node)
{
	of(view, job)->shuns = node.v + 1;
	of(view, job)->shuns_until = 2 * sw_view_now(view) - job->since;
}

static bool shuns(struct sw_view *view, const struct sw_job *job, struct sw_node_id node)
{
	return of(view, job)->shuns == node.v + 1 && sw_view_now(view) < of(view, job)->shuns_until;
}

/* Stops others for the first of the queue that waited for a quantum. */
void sw_gandiva_press(struct sw_plan *plan)
{
	struct sw_view *view = sw_plan_view(plan);
	const struct sw_job *job = sw_list_next(view, QUEUED, NULL);
	while (job != NULL &&
	       (!sw_gandiva_is_hard(view, job) || sw_gandiva_over_quota(view, job) || sw_view_now(view) - job->since < quantum(view)))
		job = sw_list_next(view, QUEUED, job);
	if (job == NULL)
		return;
	bool one_node = job->gpus <= sw_view_node_gpus_max(view);
	uint32_t all = sw_view_gpus_free(view);
	for (uint32_t n = 0; n < sw_view_nodes(view); n++) {
		struct sw_node node = node_of(view, n);
		if (one_node && !shuns(view, job, node.id) && sw_gandiva_suits(&node, job) && clear(plan, &node, job)) {
			if (!sw_gandiva_house(plan, job, n)) {
				shun(view, job, node.id);
				sw_gandiva_enter(view, job, QUEUED, 0);
			}
			return;
		}
		for (const struct sw_job *other = NULL; (other = sw_list_next(view, runs_of(n), other)) != NULL && node.open;)
			all += sw_gandiva_may_rest(view, other) ? of(view, other)->held : 0;
	}
	if (one_node || shuns(view, job, SW_NO_NODE) || all < job->gpus)
		return;
	for (uint32_t n = 0; n < sw_view_nodes(view) && sw_view_gpus_free(view) < job->gpus; n++) {
		const struct sw_job *next;
		for (const struct sw_job *other = sw_list_next(view, runs_of(n), NULL); other != NULL; other = next) {
			next = sw_list_next(view, runs_of(n), other);
			if (sw_view_gpus_free(view) < job->gpus && sw_gandiva_may_rest(view, other))
				(void)sw_gandiva_rest(plan, other);
		}
	}
	if (sw_gandiva_start_spread(plan, job))
		return;
	if (!mind_of(view)->too_soon)
		shun(view, job, SW_NO_NODE);
	sw_gandiva_mark_all(view); /* those that stopped for it go on */
}

/* The turn of those that are spread ends where others wait for their GPUs. */
void sw_gandiva_end_spread(struct sw_plan *plan)
{
	struct sw_view *view = sw_plan_view(plan);
	const struct sw_job *next;
	for (const struct sw_job *job = sw_list_next(view, SPREAD, NULL); job != NULL; job = next) {
		next = sw_list_next(view, SPREAD, job);
		if (sw_job_keeps(view, job) != SW_KEEPS_ANYWHERE || !sw_gandiva_may_rest(view, job))
			continue;
		bool wanted = sw_list_length(view, QUEUED) > 0;
		struct sw_node_id node;
		for (uint32_t i = 0; (node = sw_job_node(view, job, i, NULL)).v != SW_NO_NODE.v; i++) {
			wanted |= sw_list_length(view, waits_of(node.v)) > 0;
			sw_gandiva_mark(view, node.v);
		}
		if (wanted && sw_gandiva_rest(plan, job)) {
			sw_gandiva_enter(view, job, QUEUED, 0);
			mind_of(view)->touched = true;
		}
	}
}
