/* AntMan: guaranteed jobs by right, opportunistic ones in what they leave.
 *
 * Guaranteed jobs stand in one line by submit time. A job within its tenant's quota starts where
 * the placement rule says, on free GPUs. Where there are none, it starts as if opportunistic jobs
 * were not there; those stay beside it, or give way where memory is short. A job that finds no
 * place is overtaken, but not once it has waited for `patience`. Then it holds up the line, so that
 * large jobs do not starve. Nothing is lost meanwhile, since idle GPUs are lent to opportunistic
 * jobs.
 *
 * With `auto`, or if it is of class auto, a guaranteed job that must wait runs as an opportunistic
 * one until it can be promoted. It is promoted in place if no guaranteed job is on its GPUs, else
 * it moves. The oldest first, and older jobs of the line before younger ones.
 *
 * Opportunistic jobs go to idle GPUs, else beside others on the GPUs that are used least, below
 * `busy`; with the same patience among themselves.
 *
 * Jobs that run as opportunistic and may be promoted are kept in a list in submit order, chained
 * through their bytes. Numbers in it are ids plus one.
 */
#include <sharewell/policy.h>

#include <stdio.h>

#include "policy/published/antman.h"

#define SECOND INT64_C(1000000000)
#define PLACES_MAX 64u	       /* nodes that one opportunistic job is scattered over, at most */
#define MISSES_MAX 8u	       /* jobs tried in vain before those alike are passed over: they may need less memory */
#define PROMOTE_MISSES_MAX 64u /* moves tried in vain in one decision */
#define RETRY_NS SECOND	       /* after a stop: look for another place */

enum { AUTO, BUSY, PATIENCE, MURI };
enum { PROMOTABLE, LISTS }; /* guaranteed jobs that run as opportunistic ones, in submit order */

static const struct sw_param params[] = {
	[AUTO] = {"auto", SW_PARAM_FLAG, "on",
		  "every guaranteed job that must wait runs as an opportunistic one until it can be promoted; off: only jobs of class auto",
		  0, 1},
	[BUSY] = {"busy", SW_PARAM_MILLI, "0.8", "opportunistic jobs go to GPUs of which less than this is used", 1, 8000},
	[PATIENCE] = {"patience", SW_PARAM_DURATION, "6h", "a job that waited this long is not overtaken by others of its class", 0,
		      INT64_C(3650) * 86400 * SECOND},
	[MURI] = {"muri", SW_PARAM_FLAG, "off", "as in Muri's simulator: reservations, fixed loads, no promotion; for comparison", 0, 1},
};

static const struct sw_order order = {.by_class = true, .ties = SW_TIES_BY_ARRIVAL};

struct desk {
	bool blocked;	 /* a guaranteed job has lost its patience */
	bool over_quota; /* a job was refused for its quota since something changed */
	struct sw_antman_muri muri;
};

struct card {
	bool over_quota; /* when it was last tried */
	struct sw_antman_muri_job muri;
};

static struct sw_antman_muri_job *muri_card(struct sw_view *view, const struct sw_job *job)
{
	struct card *card = sw_job_state(view, job);
	return &card->muri;
}

static int64_t key(struct sw_view *view, const struct sw_job *job)
{
	(void)view;
	return job->asked_class;
}

static void delist(struct sw_view *view, const struct sw_job *job)
{
	sw_list_remove(view, PROMOTABLE, job);
}

static void started(struct sw_view *view, const struct sw_job *job)
{
	if (job->asked_class == SW_CLASS_GUARANTEED && job->job_class == SW_CLASS_OPPORTUNISTIC)
		sw_list_insert(view, PROMOTABLE, job);
	else
		delist(view, job);
}

static void stopped(struct sw_view *view, const struct sw_job *job)
{
	delist(view, job);
	/* It is there for the decision that it brings. */
	if (!sw_view_param(view, MURI)->number)
		sw_alarm_set(view, job, sw_view_now(view) + RETRY_NS, 0);
}

/* ---- the decision */

struct pass {
	struct sw_plan *plan;
	struct sw_view *view;
	struct desk *desk;
	bool changed;		   /* one that found no place may find one now */
	const struct sw_job *next; /* of those that may be promoted */
	uint32_t misses, promote_misses;
	bool lending; /* opportunistic jobs may start */
};

/* What became of a wish of this job for GPUs by right. */
static bool note(struct pass *pass, const struct sw_job *job, enum sw_answer answer)
{
	struct card *card = sw_job_state(pass->view, job);
	card->over_quota = answer == SW_OVER_QUOTA;
	pass->desk->over_quota |= card->over_quota;
	return answer == SW_YES;
}

static bool has_no_patience(const struct pass *pass, const struct sw_job *job)
{
	return sw_view_now(pass->view) - job->since >= sw_view_param(pass->view, PATIENCE)->number;
}

/* Promotes those that can be, of those submitted before `number`. */
static void promote(struct pass *pass, uint32_t number)
{
	/* Where nothing has changed, a quota may have. */
	if (pass->desk->blocked || !(pass->changed || pass->desk->over_quota))
		return;
	while (pass->next != NULL && pass->next->id.v < number && pass->promote_misses < PROMOTE_MISSES_MAX) {
		const struct sw_job *job = pass->next;
		const struct card *card = sw_job_state(pass->view, job);
		pass->next = sw_list_next(pass->view, PROMOTABLE, job);
		/* One of them may have made way in this decision. */
		if ((!pass->changed && !card->over_quota) || job->state != SW_JOB_RUNNING)
			continue;
		enum sw_answer answer = sw_plan_run(pass->plan, job, SW_WISH(.as = SW_AS_GUARANTEED, .evict = SW_EVICT_OPPORTUNISTIC));
		pass->promote_misses += answer != SW_YES && answer != SW_OVER_QUOTA;
		if (!note(pass, job, answer))
			continue;
		sw_count_promotion(pass->view, job);
		delist(pass->view, job);
	}
}

/* GPUs by right; true if it starts. */
static bool claim(struct pass *pass, const struct sw_job *job)
{
	const struct card *card = sw_job_state(pass->view, job);
	promote(pass, job->id.v + 1);
	if (pass->desk->blocked)
		return false;
	if ((pass->changed || job->fresh || card->over_quota) &&
	    note(pass, job, sw_plan_run(pass->plan, job, SW_WISH(.evict = SW_EVICT_OPPORTUNISTIC))))
		return true;
	pass->desk->blocked = !card->over_quota && has_no_patience(pass, job);
	return false;
}

static bool start_beside(struct pass *pass, const struct sw_job *job)
{
	struct sw_gpus where[PLACES_MAX];
	if (sw_plan_run(pass->plan, job, SW_WISH(.as = SW_AS_OPPORTUNISTIC)) == SW_YES)
		return true;
	size_t count = sw_gpus_least_used(pass->view, job, (uint32_t)sw_view_param(pass->view, BUSY)->number, where, PLACES_MAX);
	return count > 0 && sw_plan_run(pass->plan, job, SW_WISH(.as = SW_AS_OPPORTUNISTIC, .where = sw_at(where, count))) == SW_YES;
}

/* What others leave; true if it starts. */
static bool borrow(struct pass *pass, const struct sw_job *job)
{
	if (pass->lending && (pass->changed || job->fresh) && start_beside(pass, job))
		return true;
	pass->lending &= job->asked_class != SW_CLASS_OPPORTUNISTIC || !has_no_patience(pass, job);
	return false;
}

static void serve(struct pass *pass)
{
	bool lends_rights = sw_view_param(pass->view, AUTO)->number != 0;
	const struct sw_job *job = sw_order_next(pass->plan, false);
	while (job != NULL) {
		bool guaranteed = job->asked_class == SW_CLASS_GUARANTEED;
		bool starts = guaranteed && claim(pass, job);
		if (!starts && (!guaranteed || lends_rights || job->is_auto))
			starts = borrow(pass, job);
		pass->misses += !starts;
		job = sw_order_next(pass->plan, !starts && (!pass->changed || pass->misses > MISSES_MAX));
	}
	promote(pass, UINT32_MAX);
}

static sw_ns decide(struct sw_plan *plan)
{
	struct sw_view *view = sw_plan_view(plan);
	struct desk *desk = sw_view_state(view);
	if (sw_view_param(view, MURI)->number) {
		sw_antman_muri_decide(plan, &desk->muri, muri_card);
		return SW_TIME_NEVER;
	}
	struct pass pass = {.plan = plan, .view = view, .desk = desk, .next = sw_list_next(view, PROMOTABLE, NULL), .lending = true};
	pass.changed = (sw_view_changes(view) & (SW_CHANGE_ROOM | SW_CHANGE_STOPS | SW_CHANGE_ALARMS | SW_CHANGE_PROTECTION)) != 0;
	desk->blocked &= !pass.changed;
	desk->over_quota &= !pass.changed;
	serve(&pass);
	return SW_TIME_NEVER;
}

static void explain(struct sw_view *view, const struct sw_job *job, char *text, size_t size)
{
	const struct card *card = sw_job_state(view, job);
	const char *beside = job->gpu_memory_bytes == 0 ? "it does not say how much GPU memory it needs, so it cannot share one"
							: "no GPUs that are used little enough have room for it beside others";
	bool lends = job->asked_class == SW_CLASS_OPPORTUNISTIC || job->is_auto || sw_view_param(view, AUTO)->number != 0;
	if (sw_view_param(view, MURI)->number)
		snprintf(text, size, "it needs %u GPU%s and has reserved %u", SW_COUNTED(job->gpus), card->muri.held);
	else if (job->asked_class == SW_CLASS_OPPORTUNISTIC)
		snprintf(text, size, "it needs %u GPU%s, %u %s idle, and %s", SW_COUNTED(job->gpus),
			 SW_COUNTED_ARE(sw_view_gpus_free(view)), beside);
	else
		snprintf(text, size, "guaranteed jobs hold the GPUs or were submitted earlier; it needs %u and %u %s idle%s%s", job->gpus,
			 SW_COUNTED_ARE(sw_view_gpus_free(view)), lends ? "; " : "", lends ? beside : "");
}

const struct sw_policy sw_policy_antman = {
	.abi = SW_POLICY_ABI,
	.name = "antman",
	.about = "guaranteed jobs by quota, opportunistic ones beside them on the least used GPUs (AntMan)",
	.params = params,
	.param_count = sizeof params / sizeof params[0],
	.state_size = sizeof(struct desk),
	.job_state_size = sizeof(struct card),
	.list_count = LISTS,
	.order = &order,
	.key = key,
	.started = started,
	.stopped = stopped,
	.decide = decide,
	.explain = explain,
};
