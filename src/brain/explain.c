/* Why a job waits, where it runs, how and when it ended: in one sentence, or two. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "api/when.h"
#include "base/number.h"
#include "brain/look.h"
#include "brain/runs.h"
#include "brain/shut.h"
#include "brain/state.h"
#include "brain/stops.h"

#define NODES_NAMED 3u
#define NEIGHBOURS_NAMED 3u

/* "2026-10-04T15:00:00Z": less than a second makes no difference here. */
static const char *moment(sw_ns at, char text[SW_WHEN_SIZE])
{
	return sw_when_format(at > 0 && at <= SW_WHEN_MAX_NS ? at / SW_NS_PER_S * SW_NS_PER_S : 0, text);
}

/* Adds to a text that has an end. */
__attribute__((format(printf, 3, 4))) static void add(char *text, size_t size, const char *fmt, ...)
{
	size_t used = strlen(text);
	va_list args;
	va_start(args, fmt);
	vsnprintf(text + used, size - used, fmt, args);
	va_end(args);
}

/* ---- those that have ended, or failed */

static void add_failure(const struct sw_job_view *view, char *text, size_t size)
{
	bool has_line = view->failure_line[0] != '\0';
	add(text, size, "%s%s%s%s (%s); %s%s%s", view->failure_says, has_line ? ": '" : "", view->failure_line, has_line ? "'" : "",
	    view->failure, view->failure_done, view->failure_hint[0] != '\0' ? ". " : "", view->failure_hint);
}

static void add_exit(const struct sw_job_view *view, char *text, size_t size)
{
	const char *name = view->signal > 0 ? sw_job_signal_name((uint32_t)view->signal) : NULL;
	if (name != NULL)
		add(text, size, " by signal SIG%s", name);
	else if (view->signal > 0)
		add(text, size, " by signal %d", view->signal);
	else if (view->code != 0)
		add(text, size, " with exit code %d", view->code);
}

static void explain_end(const struct sw_brain *brain, const struct sw_job_view *view, char *text, size_t size)
{
	char at[SW_WHEN_SIZE], ran[48] = ", before it ran", span[32], by[100] = "", name[72];
	struct sw_stop_view stop;
	bool cancelled = strcmp(view->state, "CA") == 0, refused = view->epoch == 0 && strcmp(view->state, "F") == 0;
	moment(view->ended_at, at);
	if (cancelled && sw_brain_stop(brain, view->id, &stop) && strcmp(stop.kind, "cancelled") == 0)
		snprintf(by, sizeof by, " by %s %s", stop.by, sw_stop_user(brain, stop.uid, name, sizeof name));
	if (view->epoch > 0)
		snprintf(ran, sizeof ran, ", after running for %s", sw_format_duration(view->ran_ns, span));
	if (strcmp(view->state, "CD") == 0)
		snprintf(text, size, "it ended well at %s%s", at, ran);
	else if (strcmp(view->state, "TO") == 0)
		snprintf(text, size, "it was ended at %s%s: that is its time limit", at, ran);
	else if (strcmp(view->state, "NF") == 0)
		snprintf(text, size, "it was given up at %s: its node %s did not answer, and an operator removed it", at, view->node);
	else if (cancelled && strcmp(view->reason, "cancelled") == 0)
		snprintf(text, size, "it was cancelled at %s%s%s", at, by, ran);
	else if (cancelled)
		snprintf(text, size, "it was cancelled at %s%s: %s", at, ran, view->reason);
	else if (refused && view->failure[0] == '\0')
		snprintf(text, size, "it was refused at %s: %s", at, view->reason);
	else {
		snprintf(text, size, "it failed");
		add_exit(view, text, size);
		add(text, size, " at %s%s", at, ran);
		if (view->failure[0] != '\0') {
			add(text, size, ": ");
			add_failure(view, text, size);
		} else if (view->reason[0] != '\0') {
			add(text, size, ": %s", view->reason);
		}
	}
}

/* ---- those that wait for nodes which take no jobs */

struct room {
	uint32_t gpus, free; /* of the nodes that it could run on */
};

static struct room room_on(const struct sw_brain *brain, const struct sw_job *job, const struct sw_brain_node *node)
{
	uint64_t taken = 0;
	if (!node->up || node->silent || node->shape.gpu_memory_bytes < job->gpu_memory_bytes)
		return (struct room){0};
	for (size_t j = 0; j < node->jobs.count; j++) {
		const struct sw_live *live = &brain->jobs.items[node->jobs.items[j]];
		if (!sw_brain_is_suspended(brain, live))
			taken |= sw_brain_run_on(live, (uint32_t)(node - brain->nodes.items))->mask;
	}
	uint64_t shut = sw_brain_shut_mask(node->gpus, node->shape.gpus);
	return (struct room){node->shape.gpus - (uint32_t)__builtin_popcountll(shut),
			     node->shape.gpus - (uint32_t)__builtin_popcountll(taken | shut)};
}

/* Whether it competes: nothing but the want of GPUs keeps it. */
static bool competes(const struct sw_brain *brain, const struct sw_live *live, const struct sw_job *job)
{
	const struct sw_view *view = sw_engine_view(brain->engine);
	uint32_t quota = sw_view_tenant_quota(view, job->tenant);
	if (!sw_job_is_waiting(job) || sw_brain_is_suspended(brain, live) || live->user_held || live->depend_count > 0)
		return false;
	return job->job_class != SW_CLASS_GUARANTEED || quota == UINT32_MAX ||
	       (uint64_t)sw_view_tenant_held(view, job->tenant) + job->min_gpus <= quota;
}

bool sw_brain_drained(const struct sw_brain *brain, uint64_t id, char *text, size_t size)
{
	const struct sw_live *live = sw_brain_live(brain, id);
	const struct sw_job *job = live != NULL ? sw_engine_job(brain->engine, (struct sw_job_id){(uint32_t)(id - 1)}) : NULL;
	struct room open = {0}, closed = {0};
	uint32_t named = 0;
	if (brain->closed_nodes == 0 || job == NULL || size == 0 || !competes(brain, live, job))
		return false;
	for (size_t n = 0; n < brain->nodes.count; n++) {
		const struct sw_brain_node *node = &brain->nodes.items[n];
		struct room room = room_on(brain, job, node), *sum = node->closed == SW_OPEN ? &open : &closed;
		sum->gpus += room.gpus;
		sum->free += room.free;
	}
	bool for_good = open.gpus < job->min_gpus && open.gpus + closed.gpus >= job->min_gpus;
	bool for_now = open.free < job->min_gpus && open.free + closed.free >= job->min_gpus;
	if (!for_good && !for_now)
		return false;
	snprintf(text, size, "Drained: ");
	for (size_t n = 0; n < brain->nodes.count; n++) {
		const struct sw_brain_node *node = &brain->nodes.items[n];
		if (node->closed == SW_OPEN || room_on(brain, job, node).gpus == 0)
			continue;
		if (named++ < NODES_NAMED)
			add(text, size, "%s%s (%s)", named > 1 ? ", " : "", node->name,
			    node->closed_why[0] != '\0' ? node->closed_why : "no reason given");
	}
	if (named > NODES_NAMED)
		add(text, size, " and %u more", named - NODES_NAMED);
	return true;
}

/* Whether GPUs that are shut could have it, where those that are open and free are too few. */
static bool is_shut_out(const struct sw_brain *brain, uint64_t id)
{
	const struct sw_live *live = sw_brain_live(brain, id);
	const struct sw_job *job = live != NULL ? sw_engine_job(brain->engine, (struct sw_job_id){(uint32_t)(id - 1)}) : NULL;
	uint32_t shut = 0, room = 0;
	if (job == NULL || !competes(brain, live, job))
		return false;
	for (size_t n = 0; n < brain->nodes.count; n++) {
		const struct sw_brain_node *node = &brain->nodes.items[n];
		if (!node->up || node->closed != SW_OPEN || node->shape.gpu_memory_bytes < job->gpu_memory_bytes)
			continue;
		shut += (uint32_t)__builtin_popcountll(sw_brain_shut_mask(node->gpus, node->shape.gpus));
		room += room_on(brain, job, node).free;
	}
	return shut > 0 && room < job->min_gpus;
}

bool sw_brain_shut_out(const struct sw_brain *brain, uint64_t id, char *text, size_t size)
{
	if (size == 0 || !is_shut_out(brain, id))
		return false;
	sw_brain_describe_shut(brain, text, size);
	return text[0] != '\0';
}

/* ---- the others */

/* What must happen for a suspended run to go on. */
static void explain_suspended(struct sw_brain *brain, uint64_t id, const struct sw_job_view *view, char *text, size_t size)
{
	const struct sw_live *live = &brain->jobs.items[id - 1];
	const char *node = brain->nodes.items[live->runs[0].node].name;
	struct sw_stop_view stop;
	bool has_stop = sw_brain_stop(brain, id, &stop);
	char at[SW_WHEN_SIZE];
	const char *depth = view->depth == SW_DEPTH_OFF	      ? ", off its GPUs whole,"
			    : view->depth == SW_DEPTH_LEAVING ? ", on its way off its GPUs whole,"
							      : "";
	uint64_t occupant = sw_brain_occupant(brain, (uint32_t)(id - 1));
	/* Moments come first: behind a quote clients leave them as they are. */
	add(text, size, "it was suspended at %s%s%s, ",
	    moment(sw_engine_stands_since(brain->engine, (struct sw_job_id){(uint32_t)(id - 1)}), at), has_stop ? " " : "",
	    has_stop ? stop.why : "");
	if (live->user_held)
		add(text, size, "stands still on node %s%s until 'sharewell resume %llu'", node, depth, (unsigned long long)id);
	else if (occupant != 0)
		add(text, size, "stands still on node %s%s and goes on when job %llu, which is ahead of it there, ends or makes way", node,
		    depth, (unsigned long long)occupant);
	else
		add(text, size, "stands still on node %s%s and goes on when the policy chooses it again", node, depth);
	if (view->depth == SW_DEPTH_REFUSED)
		add(text, size, "; %s", view->not_deep);
	size_t used = strlen(text);
	if (!live->user_held && used + 2 < size) {
		snprintf(text + used, size - used, "; ");
		sw_engine_explain(brain->engine, (struct sw_job_id){(uint32_t)(id - 1)}, text + used + 2, size - used - 2);
	}
}

/* What keeps a job from running that has its GPUs already. */
static void explain_start(const struct sw_brain *brain, uint64_t id, char *text, size_t size)
{
	const struct sw_live *live = &brain->jobs.items[id - 1];
	const char *node = brain->nodes.items[live->runs[0].node].name;
	uint64_t leaver = sw_brain_leaver(brain, (uint32_t)(id - 1)), parting = sw_brain_parting(brain, (uint32_t)(id - 1));
	if (leaver == id)
		snprintf(text, size, "it has GPUs on node %s and starts when its run before this one has stopped", node);
	else if (leaver != 0)
		snprintf(text, size, "its GPUs on node %s are being freed: job %llu is still stopping there", node,
			 (unsigned long long)leaver);
	else if (parting != 0)
		snprintf(text, size, "its GPUs on node %s are being freed: job %llu is on its way off them", node,
			 (unsigned long long)parting);
	else
		snprintf(text, size, "it is about to start on node %s", node);
}

/* Which other jobs are on its GPUs. */
static void add_neighbours(const struct sw_brain *brain, uint64_t id, char *text, size_t size)
{
	struct sw_neighbour_view neighbours[NEIGHBOURS_NAMED];
	size_t count = sw_brain_neighbours(brain, id, neighbours, NEIGHBOURS_NAMED);
	uint64_t mask = 0;
	if (count == 0)
		return;
	for (size_t i = 0; i < count && i < NEIGHBOURS_NAMED; i++)
		mask |= neighbours[i].mask;
	add(text, size, ", and shares");
	if (brain->jobs.items[id - 1].run_count > 1)
		add(text, size, " GPUs");
	else
		for (const char *comma = " "; mask != 0; mask &= mask - 1, comma = ", ")
			add(text, size, "%sgpu%d", comma, __builtin_ctzll(mask));
	for (size_t i = 0; i < count && i < NEIGHBOURS_NAMED; i++)
		add(text, size, "%s job %llu", i == 0 ? " with" : ",", (unsigned long long)neighbours[i].job);
	if (count > NEIGHBOURS_NAMED)
		add(text, size, " and others");
}

static void explain_run(const struct sw_brain *brain, uint64_t id, const struct sw_job_view *view, char *text, size_t size)
{
	const struct sw_live *live = &brain->jobs.items[id - 1];
	const struct sw_job *job = sw_engine_job(brain->engine, (struct sw_job_id){(uint32_t)(id - 1)});
	char at[SW_WHEN_SIZE];
	if (strcmp(view->state, "CF") == 0)
		explain_start(brain, id, text, size);
	else {
		snprintf(text, size,
			 job->paused ? "it is paused on node %s, where another job has the GPUs now, since %s"
				     : "it runs on node %s, since %s",
			 brain->nodes.items[live->runs[0].node].name, moment(job->since, at));
		if (live->user_held)
			add(text, size, "; it is held once this run is over");
		else if (!sw_job_may_stop(sw_engine_view(brain->engine), job))
			add(text, size, "; it is not stopped for others");
		add_neighbours(brain, id, text, size);
	}
	sw_brain_add_company(brain, id, text, size);
}

/* Over, but not gone. */
static void explain_completing(const struct sw_brain *brain, const struct sw_live *live, const struct sw_job_view *view, char *text,
			       size_t size)
{
	bool named = live->last_node < brain->nodes.count;
	char at[SW_WHEN_SIZE];
	if (view->unreachable[0] != '\0') {
		snprintf(
			text, size,
			"it is over (%s), but node %s has not answered since %s: what is left of it there is stopped when the node is back",
			live->reason[0] != '\0' ? live->reason : "ended", view->unreachable, moment(view->unreachable_since, at));
		return;
	}
	snprintf(text, size, "it is over (%s), but processes of it are still stopping%s%s",
		 live->reason[0] != '\0' ? live->reason : "ended", named ? " on node " : "",
		 named ? brain->nodes.items[live->last_node].name : "");
}

/* A run of it may be alive on a node that does not answer. */
static void explain_silence(const struct sw_brain *brain, const struct sw_live *live, const struct sw_job_view *view, char *text,
			    size_t size)
{
	char at[SW_WHEN_SIZE], span[32];
	snprintf(text, size, "node %s has not answered since %s", view->unreachable, moment(view->unreachable_since, at));
	if (live->lease_ns > 0)
		add(text, size, "; it may run there for its lease of %s, then it is stopped there and starts anew elsewhere",
		    sw_format_duration(live->lease_ns, span));
	else if (live->run_count > 0 && !sw_brain_is_suspended(brain, live))
		add(text, size, "; it goes on there, as far as is known, and is found again when the node is back");
	else
		add(text, size, "; its last run may still be there, so it waits until the node is back");
}

static void explain_dependency(const struct sw_depend *depend, char *text, size_t size)
{
	unsigned long long number = depend->job;
	if (depend->kind == SW_AFTER_PRERUN)
		snprintf(text, size, "it waits for its pre-run on one GPU, job %llu", number);
	else if (depend->kind == SW_AFTER_SLOT)
		snprintf(text, size, "it waits for others of its array to end: %llu of them may run at a time", number);
	else
		snprintf(text, size, "it waits for job %llu to end", number);
}

/* When, by which user and for which job its last run was stopped, where it waits for another. */
static void add_stop(const struct sw_brain *brain, uint64_t id, char *text, size_t size)
{
	const struct sw_live *live = sw_brain_live(brain, id);
	struct sw_stop_view stop;
	char at[SW_WHEN_SIZE];
	if (live->epoch > 0 && sw_brain_stop(brain, id, &stop) && stop.until == SW_TIME_NEVER)
		add(text, size, "%sits last run was %s at %s %s", text[0] != '\0' ? "; " : "", stop.kind, moment(stop.at, at), stop.why);
}

static void explain_wait(struct sw_brain *brain, uint64_t id, char *text, size_t size)
{
	char drained[400], shut[600];
	sw_engine_explain(brain->engine, (struct sw_job_id){(uint32_t)(id - 1)}, text, size);
	if (sw_brain_drained(brain, id, drained, sizeof drained))
		add(text, size, "; nodes that could have it take no jobs. %s", drained);
	if (sw_brain_shut_out(brain, id, shut, sizeof shut))
		add(text, size, "; %s", shut);
	add_stop(brain, id, text, size);
}

void sw_brain_explain(struct sw_brain *brain, sw_ns now, uint64_t id, char *text, size_t size)
{
	const struct sw_live *live = sw_brain_live(brain, id);
	struct sw_job_view view;
	if (size == 0)
		return;
	text[0] = '\0';
	if (live == NULL || !sw_brain_job(brain, now, id, &view))
		snprintf(text, size, "there is no job %llu", (unsigned long long)id);
	else if (strcmp(view.state, "CG") == 0)
		explain_completing(brain, live, &view, text, size);
	else if (strcmp(view.state, "UN") == 0)
		explain_silence(brain, live, &view, text, size);
	else if (live->ended_at != SW_TIME_NEVER)
		explain_end(brain, &view, text, size);
	else if (sw_heap_has(&brain->retries, (uint32_t)(id - 1)) && !live->user_held && view.failure[0] != '\0')
		add_failure(&view, text, size);
	else if (live->depend_count > 0)
		explain_dependency(sw_brain_awaits(live), text, size);
	else if (sw_brain_is_suspended(brain, live))
		explain_suspended(brain, id, &view, text, size);
	else if (live->user_held && live->run_count == 0) {
		add_stop(brain, id, text, size);
		add(text, size, "%sit is on hold; 'sharewell resume %llu' lets it go", text[0] != '\0' ? "; " : "", (unsigned long long)id);
	} else if (sw_heap_has(&brain->retries, (uint32_t)(id - 1)))
		snprintf(text, size, "its last run failed (%s); it is tried again %lld s from the last event", live->reason,
			 (long long)((sw_heap_key(&brain->retries, (uint32_t)(id - 1)) - brain->now) / 1000000000));
	else if (live->run_count > 0)
		explain_run(brain, id, &view, text, size);
	else if (brain->nodes.count == 0)
		snprintf(text, size, "no node has joined yet");
	else
		explain_wait(brain, id, text, size);
}
