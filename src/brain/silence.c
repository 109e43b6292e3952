/* Nodes that do not answer: what is said of their jobs and how long these are waited for. Also how
 * a node is given up for good.
 *
 * A node from which nothing was heard for a while is silent. Its runs may go on, so the jobs keep
 * their GPUs there and start nowhere else. The engine only learns that the node takes no more jobs.
 * Three things end this: the agent is back, a lease is over, or an operator removes the node. A run
 * with a lease is stopped by its supervisor, which needs nothing but a clock for that. So the run
 * is over once the lease, the grace and a margin have passed since the last answer. The controller
 * then reports that in the agent's place.
 *
 * Invariants:
 *  1. a job has no second run while one that went before may be alive. On a silent node that is
 *     every one without a lease, and every other until its lease is over;
 *  2. a job that cannot start for that reason does not compete for GPUs (it is stranded). Its run
 *     stands still there, or has not been heard to end.
 */
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "brain/agents.h"
#include "brain/dependents.h"
#include "brain/fold.h"
#include "brain/record.h"
#include "brain/runs.h"
#include "brain/silence.h"
#include "brain/state.h"

#define DAY_NS (24 * 3600 * SW_NS_PER_S)

/* ---- which runs are out of reach */

/* Whether runs may be alive there that cannot be stopped now. */
static bool is_out_of_reach(const struct sw_brain_node *node)
{
	return node->silent || node->removed;
}

static bool has_ghost(const struct sw_brain_node *node, uint32_t job)
{
	for (size_t g = 0; g < node->ghosts.count; g++)
		if (node->ghosts.items[g].job == job)
			return true;
	return false;
}

const struct sw_brain_node *sw_brain_out_of_reach(const struct sw_brain *brain, uint32_t id)
{
	const struct sw_live *live = &brain->jobs.items[id];
	if (brain->far_nodes == 0)
		return NULL;
	for (uint32_t r = 0; r < live->run_count; r++)
		if (live->runs[r].heard != SW_HEARD_EXITED && is_out_of_reach(&brain->nodes.items[live->runs[r].node]))
			return &brain->nodes.items[live->runs[r].node];
	for (size_t n = 0; live->ghosts > 0 && n < brain->nodes.count; n++)
		if (is_out_of_reach(&brain->nodes.items[n]) && has_ghost(&brain->nodes.items[n], id))
			return &brain->nodes.items[n];
	return NULL;
}

void sw_brain_count_far(struct sw_brain *brain)
{
	brain->far_nodes = 0;
	for (size_t n = 0; n < brain->nodes.count; n++)
		brain->far_nodes += is_out_of_reach(&brain->nodes.items[n]);
}

/* ---- the engine */

static int tell(struct sw_brain *brain, enum sw_event_kind kind, uint32_t node, struct sw_err *err)
{
	const struct sw_event event = {.kind = kind, .node = {node}};
	return sw_brain_step(brain, &event, 1, err);
}

static int tell_job(struct sw_brain *brain, enum sw_event_kind kind, uint32_t id, struct sw_err *err)
{
	const struct sw_event event = {.kind = kind, .job = {id}};
	return sw_brain_step(brain, &event, 1, err);
}

int sw_brain_list_stranded(struct sw_brain *brain, uint32_t id)
{
	if (sw_vec_push(&brain->stranded) == NULL)
		return SW_ENOMEM;
	size_t place = brain->stranded.count - 1;
	for (; place > 0 && brain->stranded.items[place - 1] > id; place--)
		brain->stranded.items[place] = brain->stranded.items[place - 1];
	brain->stranded.items[place] = id;
	return 0;
}

/* Job `id` cannot start before something out of reach has ended. */
static int strand(struct sw_brain *brain, uint32_t id, struct sw_err *err)
{
	struct sw_live *live = &brain->jobs.items[id];
	live->stranded_now = true;
	if (live->stranded || sw_engine_job(brain->engine, (struct sw_job_id){id})->state > SW_JOB_RUNNING)
		return 0;
	if (sw_brain_list_stranded(brain, id) < 0)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	live->stranded = true;
	return tell_job(brain, SW_EV_HOLD, id, err);
}

static int strand_all(struct sw_brain *brain, struct sw_err *err)
{
	for (size_t n = 0; n < brain->nodes.count; n++) {
		/* Both lists may change with every step. A job that was looked at is marked, and
		 * nothing leaves the lists of such a node by it. */
		for (size_t g = 0; is_out_of_reach(&brain->nodes.items[n]) && g < brain->nodes.items[n].ghosts.count; g++) {
			int r = strand(brain, brain->nodes.items[n].ghosts.items[g].job, err);
			if (r < 0)
				return r;
		}
		for (size_t j = 0; is_out_of_reach(&brain->nodes.items[n]) && j < brain->nodes.items[n].jobs.count; j++) {
			uint32_t id = brain->nodes.items[n].jobs.items[j];
			int r = sw_brain_is_suspended(brain, &brain->jobs.items[id]) ? strand(brain, id, err) : 0;
			if (r < 0)
				return r;
		}
	}
	return 0;
}

/* It may compete again, unless something else keeps it. */
static int let_go(struct sw_brain *brain, uint32_t id, struct sw_err *err)
{
	struct sw_live *live = &brain->jobs.items[id];
	live->stranded = false;
	bool is_kept = live->user_held || live->depend_count > 0 || sw_heap_has(&brain->retries, id);
	return is_kept ? 0 : tell_job(brain, SW_EV_RELEASE, id, err);
}

int sw_brain_strand(struct sw_brain *brain, struct sw_err *err)
{
	if (brain->far_nodes == 0 && brain->stranded.count == 0)
		return 0;
	for (size_t s = 0; s < brain->stranded.count; s++)
		brain->jobs.items[brain->stranded.items[s]].stranded_now = false;
	int r = strand_all(brain, err);
	for (size_t s = 0; r == 0 && s < brain->stranded.count;) {
		uint32_t id = brain->stranded.items[s];
		bool lives = sw_engine_job(brain->engine, (struct sw_job_id){id})->state <= SW_JOB_RUNNING;
		if (brain->jobs.items[id].stranded_now && lives) {
			s++;
			continue;
		}
		brain->stranded.count--;
		memmove(&brain->stranded.items[s], &brain->stranded.items[s + 1],
			(brain->stranded.count - s) * sizeof *brain->stranded.items);
		r = let_go(brain, id, err);
	}
	return r;
}

/* ---- records */

int sw_brain_apply_silence(struct sw_brain *brain, json_t *body, struct sw_err *err)
{
	const char *name;
	json_int_t since;
	struct sw_brain_node *node =
		json_unpack(body, "{s:s, s:I}", "name", &name, "since", &since) == 0 ? sw_brain_find_node(brain, name) : NULL;
	if (node == NULL)
		return sw_err_set(err, SW_EBUG, "a record names a node that is not there");
	if (!node->up || node->silent)
		return 0;
	node->silent = true;
	node->silent_since = (sw_ns)since;
	brain->far_nodes++;
	return node->closed != SW_OPEN ? 0 : tell(brain, SW_EV_NODE_CLOSE, (uint32_t)(node - brain->nodes.items), err);
}

int sw_brain_end_silence(struct sw_brain *brain, struct sw_brain_node *node, struct sw_err *err)
{
	bool was_far = is_out_of_reach(node);
	node->silent = node->removed = false;
	sw_brain_count_far(brain);
	return was_far && node->closed == SW_OPEN ? tell(brain, SW_EV_NODE_OPEN, (uint32_t)(node - brain->nodes.items), err) : 0;
}

int sw_brain_propose_remove(struct sw_brain *brain, const struct sw_user *user, const char *name, const char *why, sw_records *records,
			    struct sw_err *err)
{
	if (!user->is_operator)
		return sw_err_set(err, SW_EDENIED, "only operators remove nodes");
	const struct sw_brain_node *node = sw_brain_find_node(brain, name);
	if (node == NULL || node->removed) {
		sw_err_set(err, SW_ENOTFOUND, "there is no node '%.60s'", name);
		sw_err_hint(err, "'sharewell nodes' lists those there are.");
		return SW_ENOTFOUND;
	}
	if (node->up && !node->silent) {
		sw_err_set(err, SW_EINPUT, "cannot remove node '%.60s'", name);
		sw_err_detail(err, "it answers");
		sw_err_hint(err,
			    "'sharewell drain %.60s' keeps jobs off it. When they have ended, stop its agent; a node that does not answer "
			    "can be removed.",
			    name);
		return SW_EINPUT;
	}
	char clean[sizeof node->closed_why];
	sw_failure_clean(why, strlen(why), clean, sizeof clean);
	return sw_record_push(records, SW_RECORD_NODE_REMOVE,
			      json_pack("{s:s, s:i, s:s}", "name", node->name, "by", (int)user->uid, "why", clean), err);
}

/* A job without a lease ends with the node. What may be left of it there is not waited for; its
 * other parts are stopped. */
static int end_as_lost(struct sw_brain *brain, uint32_t id, const struct sw_brain_node *node, struct sw_err *err)
{
	struct sw_live *live = &brain->jobs.items[id];
	struct sw_run *run = sw_brain_run_on(live, (uint32_t)(node - brain->nodes.items));
	if (sw_engine_job(brain->engine, (struct sw_job_id){id})->state > SW_JOB_RUNNING)
		return 0; /* only its last run was there still */
	if (run != NULL)
		run->heard = SW_HEARD_EXITED;
	live->node_lost = true;
	live->ended_at = brain->now;
	int r = tell_job(brain, SW_EV_CANCEL, id, err);
	snprintf(live->reason, sizeof live->reason, "node removed");
	sw_heap_remove(&brain->retries, id);
	return r;
}

/* A job with a lease starts anew. What is left of it there is waited for until its lease is over,
 * if that is still to come. */
static int start_anew(struct sw_brain *brain, uint32_t id, struct sw_err *err)
{
	struct sw_live *live = &brain->jobs.items[id];
	bool suspended = sw_brain_is_suspended(brain, live);
	if (sw_brain_drop_runs(brain, id) < 0)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	/* Where it must wait it is stranded in a moment. */
	bool waits = live->user_held || sw_brain_out_of_reach(brain, id) != NULL;
	const struct sw_event events[] = {{.kind = SW_EV_REQUEUE, .job = {id}}, {.kind = SW_EV_HOLD, .job = {id}}};
	/* Of one that is suspended the engine hears with its node. */
	int r = suspended ? 0 : sw_brain_step(brain, events, waits ? 2 : 1, err);
	snprintf(live->reason, sizeof live->reason, "node removed");
	return r;
}

int sw_brain_apply_remove(struct sw_brain *brain, json_t *body, struct sw_err *err)
{
	const char *name;
	struct sw_brain_node *node = json_unpack(body, "{s:s}", "name", &name) == 0 ? sw_brain_find_node(brain, name) : NULL;
	if (node == NULL)
		return sw_err_set(err, SW_EBUG, "a record names a node that is not there");
	if (node->removed || (node->up && !node->silent))
		return 0; /* it came back in the meantime */
	uint32_t number = (uint32_t)(node - brain->nodes.items);
	int r = 0;
	for (size_t j = node->jobs.count; r == 0 && j-- > 0; j = node->jobs.count) /* each leaves the list, and maybe others with it */
		r = brain->jobs.items[node->jobs.items[j]].lease_ns > 0 ? start_anew(brain, node->jobs.items[j], err)
									: end_as_lost(brain, node->jobs.items[j], node, err);
	for (size_t g = node->ghosts.count; r == 0 && g-- > 0;) {
		uint32_t id = node->ghosts.items[g].job;
		if (brain->jobs.items[id].lease_ns > 0)
			continue;
		sw_brain_lay_ghost(brain, node, g);
		r = end_as_lost(brain, id, node, err);
	}
	node->up = node->silent = false;
	node->removed = true;
	sw_brain_count_far(brain);
	r = r < 0 ? r : tell(brain, SW_EV_NODE_DOWN, number, err);
	return r < 0 ? r : sw_brain_settle(brain, err);
}

/* ---- time */

sw_ns sw_brain_keeps_poll_for(const struct sw_brain *brain, const struct sw_brain_node *node)
{
	sw_ns keep = brain->config.silence_ns / 4;
	for (size_t j = 0; j < node->jobs.count; j++) {
		sw_ns lease_ns = brain->jobs.items[node->jobs.items[j]].lease_ns;
		if (lease_ns > 0 && lease_ns / 4 < keep)
			keep = lease_ns / 4;
	}
	return keep;
}

/* When nothing is left of a run of this job there that was not heard to end; SW_TIME_NEVER: not
 * known. Clocks do not run at quite the same speed. Agents of version 0.1 give every run the lease
 * that their answers say, whatever its own. */
static sw_ns over_at(const struct sw_brain *brain, const struct sw_brain_node *node, uint32_t id, bool leased)
{
	const struct sw_live *live = &brain->jobs.items[id];
	sw_ns lease_ns = leased || live->lease_ns > DAY_NS ? live->lease_ns : DAY_NS;
	if (live->lease_ns == 0)
		return SW_TIME_NEVER;
	sw_ns whole = lease_ns + live->grace_ns + brain->config.silence_margin_ns + (lease_ns + live->grace_ns) / 1000;
	return node->answered_at > SW_TIME_NEVER - whole ? SW_TIME_NEVER : node->answered_at + whole;
}

static bool is_leased(const struct sw_brain_node *node, const struct sw_run *run)
{
	return run->heard == SW_HEARD_NOTHING ? node->leases : run->leased;
}

/* Of a node that is out of reach: the first of its leases to be over. */
static sw_ns next_lease(const struct sw_brain *brain, const struct sw_brain_node *node)
{
	sw_ns next = SW_TIME_NEVER;
	for (size_t j = 0; j < node->jobs.count; j++) {
		const struct sw_run *run = sw_brain_run_on(&brain->jobs.items[node->jobs.items[j]], (uint32_t)(node - brain->nodes.items));
		sw_ns at = run->heard == SW_HEARD_EXITED ? SW_TIME_NEVER : over_at(brain, node, node->jobs.items[j], is_leased(node, run));
		next = at < next ? at : next;
	}
	for (size_t g = 0; g < node->ghosts.count; g++) {
		sw_ns at = over_at(brain, node, node->ghosts.items[g].job, node->ghosts.items[g].leased);
		next = at < next ? at : next;
	}
	return next;
}

/* When the node counts as silent unless it is heard before. What is answered does not count: the
 * words that it answers may be none that are listened to. */
static sw_ns silent_at(const struct sw_brain *brain, const struct sw_brain_node *node)
{
	sw_ns last = node->heard_at > brain->assumed_at ? node->heard_at : brain->assumed_at;
	return last + brain->config.silence_ns + brain->config.silence_margin_ns;
}

sw_ns sw_brain_next_silence(const struct sw_brain *brain)
{
	sw_ns next = SW_TIME_NEVER;
	for (size_t n = 0; n < brain->nodes.count; n++) {
		const struct sw_brain_node *node = &brain->nodes.items[n];
		sw_ns at = is_out_of_reach(node) ? next_lease(brain, node) : node->up ? silent_at(brain, node) : SW_TIME_NEVER;
		next = at < next ? at : next;
	}
	return next;
}

static int report_over(struct sw_brain *brain, const struct sw_brain_node *node, sw_ns now, sw_records *records, struct sw_err *err)
{
	uint32_t number = (uint32_t)(node - brain->nodes.items);
	for (size_t j = 0; j < node->jobs.count; j++) {
		uint32_t id = node->jobs.items[j];
		const struct sw_live *live = &brain->jobs.items[id];
		const struct sw_run *run = sw_brain_run_on(live, number);
		if (run->heard == SW_HEARD_EXITED || over_at(brain, node, id, is_leased(node, run)) > now)
			continue;
		int r = sw_brain_record_loss(brain, node->name, (struct sw_run_id){id + UINT64_C(1), live->epoch}, SW_REASON_LEASE, records,
					     err);
		if (r < 0)
			return r;
	}
	for (size_t g = 0; g < node->ghosts.count; g++) {
		const struct sw_ghost *ghost = &node->ghosts.items[g];
		int r = over_at(brain, node, ghost->job, ghost->leased) > now
				? 0
				: sw_brain_record_gone(node->name, (struct sw_run_id){ghost->job + UINT64_C(1), ghost->epoch}, records,
						       err);
		if (r < 0)
			return r;
	}
	return 0;
}

int sw_brain_tick_silence(struct sw_brain *brain, sw_ns now, sw_records *records, struct sw_err *err)
{
	int r = 0;
	for (size_t n = 0; r == 0 && n < brain->nodes.count; n++) {
		const struct sw_brain_node *node = &brain->nodes.items[n];
		if (is_out_of_reach(node))
			r = report_over(brain, node, now, records, err);
		else if (node->up && silent_at(brain, node) <= now)
			r = sw_record_push(records, SW_RECORD_NODE_SILENT,
					   json_pack("{s:s, s:I}", "name", node->name, "since", (json_int_t)node->heard_at), err);
	}
	return r;
}

void sw_brain_assume_answers(struct sw_brain *brain, sw_ns now)
{
	brain->assumed_at = now;
	for (size_t n = 0; n < brain->nodes.count; n++)
		brain->nodes.items[n].answered_at = now;
}
