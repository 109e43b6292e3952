/* Big Brain: scheduling is placing a model over what is left of the GPUs; a whole GPU is the
 * special case of one device.
 *
 * Jobs stand in line by submit time. The first one goes whole to a GPU that runs fewer than `k`
 * whole jobs and has memory for one more process. Of these it takes the one with the fewest
 * residents, then the most room. Where there is none the splitter is asked for parts over what is
 * left, at most `slots` parts of split jobs on a GPU. The alternative is to wait for the end of a
 * whole job (split or wait). The job starts split if it is predicted to be done earlier so. A split
 * job becomes whole as soon as that saves more than the restart costs. No job is promised compute:
 * jobs that share a GPU take turns.
 *
 * Jobs that ask for several GPUs take free ones by the placement rule, else GPUs of one node as
 * above. Jobs that do not say how much memory they need take free GPUs only. Neither is split.
 *
 * Invariants: of jobs that this policy put there a GPU runs at most `k` whole ones and at most
 * `slots` parts. A whole job of several GPUs counts on each.
 */
#include <sharewell/policy.h>

#include <stdio.h>

#include "policy/bigbrain.h"

#define SECOND INT64_C(1000000000)
#define GIB (UINT64_C(1) << 30)
#define SPLITS_MAX 64u /* split jobs at once */
#define MISSES_MAX 64u /* jobs without a place that are looked at in one decision, where others may overtake */

static const struct sw_param params[] = {
	[SW_BIGBRAIN_K] = {"k", SW_PARAM_INTEGER, "2", "concurrency factor: whole jobs on one GPU", 1, 8},
	[SW_BIGBRAIN_CONTEXT] = {"context", SW_PARAM_MILLI, "1.2", "memory that each process takes besides what its job says, in GiB", 0,
				 1000000},
	[SW_BIGBRAIN_RESERVE] = {"reserve", SW_PARAM_MILLI, "0.05", "part of a shared GPU's memory that stays free", 0, 999},
	[SW_BIGBRAIN_SKIP] = {"skip", SW_PARAM_FLAG, "off", "jobs overtake one that finds no place", 0, 1},
	[SW_BIGBRAIN_SLOTS] = {"slots", SW_PARAM_INTEGER, "1", "split jobs for each pair of GPUs; 0: nothing is split", 0, 8},
	[SW_BIGBRAIN_RESTART] = {"restart", SW_PARAM_DURATION, "1m", "a split job becomes whole where that saves more than this", 0,
				 INT64_C(3650) * 86400 * SECOND},
	[SW_BIGBRAIN_GAIN] = {"gain", SW_PARAM_MILLI, "0",
			      "one more job goes to a GPU only if what gets done there grows by this part, such as 0.05; 0: always", 0,
			      8000},
};

static const struct sw_order order = {.ties = SW_TIES_BY_ARRIVAL};

struct desk {
	uint32_t splits[SPLITS_MAX]; /* ids of jobs that run split */
	uint32_t split_count;
	bool over_quota; /* a job was refused for its quota, which may change unseen */
};

static int64_t key(struct sw_view *view, const struct sw_job *job)
{
	(void)view;
	(void)job;
	return 0;
}

/* ---- which jobs are split */

static void forget(struct desk *desk, uint32_t id)
{
	for (uint32_t s = 0; s < desk->split_count; s++)
		if (desk->splits[s] == id)
			desk->splits[s--] = desk->splits[--desk->split_count];
}

static void started(struct sw_view *view, const struct sw_job *job)
{
	struct desk *desk = sw_view_state(view);
	forget(desk, job->id.v);
	if (sw_job_split_milli(view, job) != 0 && desk->split_count < SPLITS_MAX)
		desk->splits[desk->split_count++] = job->id.v;
}

static void ended(struct sw_view *view, const struct sw_job *job)
{
	forget(sw_view_state(view), job->id.v);
}

/* ---- the decision */

/* Whether it is done earlier split now than whole later. */
static bool splits(const struct sw_view *view, const struct sw_job *job, const struct sw_split *split)
{
	sw_ns wait = 0;
	return sw_bigbrain_takes(sw_bigbrain_left(view, job), split->step_milli) < sw_bigbrain_if_it_waits(view, job, &wait);
}

static enum sw_answer start_whole(struct sw_plan *plan, const struct sw_job *job)
{
	struct sw_bigbrain_place place;
	enum sw_answer answer = SW_NO_ROOM;
	/* Several GPUs by the placement rule, as long as free ones are there. */
	if (job->gpus > 1 || job->gpu_memory_bytes == 0)
		answer = sw_plan_run(plan, job, NULL);
	if (answer != SW_NO_ROOM || job->gpu_memory_bytes == 0 || !sw_bigbrain_find_whole(sw_plan_view(plan), job, &place))
		return answer;
	answer = sw_plan_run(plan, job, SW_WISH(.promise = SW_REST, .where = sw_at(&place.where, 1)));
	/* It may keep off that node: only the placement rule knows. */
	return answer == SW_NO_ROOM && job->gpus == 1 ? sw_plan_run(plan, job, NULL) : answer;
}

static enum sw_answer start(struct sw_plan *plan, const struct sw_job *job)
{
	struct sw_view *view = sw_plan_view(plan);
	const struct desk *desk = sw_view_state(view);
	struct sw_split split;
	enum sw_answer answer = start_whole(plan, job);
	if (answer != SW_NO_ROOM || desk->split_count >= SPLITS_MAX || !sw_bigbrain_find_split(view, job, &split) ||
	    !splits(view, job, &split))
		return answer;
	/* It would be in its quota whole: then it waits for that. */
	return sw_plan_run(plan, job, SW_WISH(.promise = SW_REST, .where = sw_in_parts(&split))) == SW_YES ? SW_YES : SW_NO_ROOM;
}

/* Makes a split job whole if that pays. */
static void merge(struct sw_plan *plan, const struct sw_job *job)
{
	struct sw_view *view = sw_plan_view(plan);
	sw_ns restart = sw_view_param(view, SW_BIGBRAIN_RESTART)->number, left = sw_bigbrain_left(view, job);
	uint32_t speed = sw_job_speed_milli(view, job);
	uint64_t step = speed > 0 ? UINT64_C(1000000) / speed : sw_job_split_milli(view, job);
	struct sw_bigbrain_place place;
	if (!sw_bigbrain_find_whole(view, job, &place))
		return;
	sw_ns now = sw_bigbrain_takes(left, step), whole = sw_bigbrain_takes(left, 1000 + place.use_milli);
	if (now <= whole || now - whole <= restart)
		return;
	if (sw_plan_stop(plan, job, SW_PREEMPT) == SW_YES)
		(void)sw_plan_run(plan, job, SW_WISH(.promise = SW_REST, .where = sw_at(&place.where, 1)));
}

static void merge_all(struct sw_plan *plan, const struct desk *desk)
{
	for (uint32_t s = 0; s < desk->split_count; s++) {
		const struct sw_job *job = sw_view_job(sw_plan_view(plan), (struct sw_job_id){desk->splits[s]});
		if (job != NULL && job->state == SW_JOB_RUNNING)
			merge(plan, job);
	}
}

static void serve(struct sw_plan *plan, struct desk *desk, bool changed)
{
	struct sw_view *view = sw_plan_view(plan);
	bool overtake = sw_view_param(view, SW_BIGBRAIN_SKIP)->number != 0, again = changed || desk->over_quota;
	uint32_t misses = 0;
	desk->over_quota = false;
	for (const struct sw_job *job = sw_order_next(plan, false); job != NULL;) {
		enum sw_answer answer = again || job->fresh ? start(plan, job) : SW_NO_ROOM;
		desk->over_quota |= answer == SW_OVER_QUOTA;
		/* A job over its quota does not hold up the others. */
		if (answer != SW_YES && ((answer != SW_OVER_QUOTA && !overtake) || ++misses > MISSES_MAX))
			return;
		job = sw_order_next(plan, answer == SW_OVER_QUOTA);
	}
}

static sw_ns decide(struct sw_plan *plan)
{
	struct sw_view *view = sw_plan_view(plan);
	struct desk *desk = sw_view_state(view);
	bool changed = (sw_view_changes(view) & (SW_CHANGE_ROOM | SW_CHANGE_STOPS | SW_CHANGE_PROTECTION)) != 0;
	if (changed)
		merge_all(plan, desk);
	serve(plan, desk, changed);
	return SW_TIME_NEVER;
}

/* ---- why */

static void explain_place(struct sw_view *view, const struct sw_job *job, char *text, size_t size)
{
	struct sw_split split;
	sw_ns wait = 0, whole = sw_bigbrain_if_it_waits(view, job, &wait);
	long long k = (long long)sw_view_param(view, SW_BIGBRAIN_K)->number;
	bool large = job->gpu_memory_bytes >= 10 * GIB;
	unsigned long long amount = (unsigned long long)(job->gpu_memory_bytes / (large ? GIB : GIB / 1024));
	const char *unit = large ? "GiB" : "MiB";
	if (job->gpus > 1)
		snprintf(text, size,
			 "it needs %u GPUs and %u %s free; no node has so many with room for its %llu %s and fewer than %lld whole jobs",
			 job->gpus, SW_COUNTED_ARE(sw_view_gpus_free(view)), amount, unit, k);
	else if (!sw_bigbrain_find_split(view, job, &split))
		snprintf(text, size,
			 "no GPU with room for its %llu %s runs fewer than %lld whole jobs, and it cannot be split over what is left",
			 amount, unit, k);
	else if (whole != SW_TIME_NEVER)
		snprintf(text, size,
			 "a GPU has a place for it in about %lld s; that is quicker than to run split now, %u.%02u times as slow",
			 (long long)(wait / SECOND), split.step_milli / 1000, split.step_milli % 1000 / 10);
	else
		snprintf(text, size, "no GPU with room for its %llu %s runs fewer than %lld whole jobs", amount, unit, k);
}

static void explain(struct sw_view *view, const struct sw_job *job, char *text, size_t size)
{
	const struct sw_job *first = sw_view_next_waiting(view, NULL);
	if (first != NULL && first != job && !sw_view_param(view, SW_BIGBRAIN_SKIP)->number)
		snprintf(text, size, "an earlier job is ahead of it in the line and has no place yet");
	else if (job->gpu_memory_bytes == 0)
		snprintf(text, size, "it needs %u GPU%s of its own, since it does not say how much memory it needs, and %u %s free",
			 SW_COUNTED(job->gpus), SW_COUNTED_ARE(sw_view_gpus_free(view)));
	else
		explain_place(view, job, text, size);
}

const struct sw_policy sw_policy_bigbrain = {
	.abi = SW_POLICY_ABI,
	.name = "bigbrain",
	.about = "k whole jobs on each GPU in submit order, and jobs split over what is left (Big Brain)",
	.params = params,
	.param_count = sizeof params / sizeof params[0],
	.state_size = sizeof(struct desk),
	.order = &order,
	.key = key,
	.started = started,
	.stopped = ended,
	.ended = ended,
	.decide = decide,
	.explain = explain,
};
