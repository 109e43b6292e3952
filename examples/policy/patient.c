/* An example of a policy outside the tree: docs/write-a-policy.md builds it step by step.
 *
 * Fewest GPUs first, preemptive. A job that has waited for `patience` goes ahead of all others.
 * While no job waits, elastic jobs take the GPUs that are idle, and give them back when one does.
 */
#include <stdio.h>

#include <sharewell/policy.h>

#define HOUR INT64_C(3600000000000)

enum { PATIENCE };

static const struct sw_param params[] = {
	[PATIENCE] = {"patience", SW_PARAM_DURATION, "1d", "a job that has waited this long goes ahead", HOUR / 60, 1000 * HOUR},
};

/* What we keep about each job. */
struct note {
	bool hurries;
};

static const struct sw_order order = {.preemptive = true};

static int64_t key(struct sw_view *view, const struct sw_job *job)
{
	const struct note *note = sw_job_state(view, job);
	return note->hurries ? 0 : job->gpus;
}

/* It waits from now on. */
static void waits(struct sw_view *view, const struct sw_job *job)
{
	sw_alarm_set(view, job, sw_view_now(view) + sw_view_param(view, PATIENCE)->number, 0);
}

/* It still waits: a job that starts or ends loses its alarm. */
static void alarm(struct sw_view *view, const struct sw_job *job)
{
	struct note *note = sw_job_state(view, job);
	note->hurries = true;
	sw_count_promotion(view, job);
	sw_order_rekey(view, job);
}

static void shrink(struct sw_plan *plan)
{
	struct sw_view *view = sw_plan_view(plan);
	const struct sw_job *job = NULL;
	while ((job = sw_view_next_running(view, job)) != NULL)
		if (job->gpus_held > job->gpus)
			(void)sw_plan_run(plan, job, SW_WISH(.gpus = job->gpus));
}

static void grow(struct sw_plan *plan)
{
	struct sw_view *view = sw_plan_view(plan);
	const struct sw_job *job = NULL;
	while ((job = sw_view_next_running(view, job)) != NULL) {
		uint32_t more = job->max_gpus - job->gpus_held, free = sw_view_gpus_free(view);
		if (more > 0 && free > 0)
			(void)sw_plan_run(plan, job, SW_WISH(.gpus = job->gpus_held + (more < free ? more : free)));
	}
}

static sw_ns decide(struct sw_plan *plan)
{
	struct sw_view *view = sw_plan_view(plan);
	if (sw_view_waiting(view) > 0)
		shrink(plan);
	sw_plan_by_order(plan);
	if (sw_view_waiting(view) == 0)
		grow(plan);
	return SW_TIME_NEVER;
}

static void explain(struct sw_view *view, const struct sw_job *job, char *text, size_t size)
{
	const struct note *note = sw_job_state(view, job);
	sw_ns left = job->since + sw_view_param(view, PATIENCE)->number - sw_view_now(view);
	if (note->hurries)
		snprintf(text, size, "it goes next, and needs %u GPU%s", SW_COUNTED(job->gpus));
	else
		snprintf(text, size, "jobs with fewer than %u GPUs go first; in %lld h it goes ahead of them", job->gpus,
			 (long long)(left / HOUR));
}

static const struct sw_policy patient = {
	.abi = SW_POLICY_ABI,
	.name = "patient",
	.about = "fewest GPUs first, but no job waits for ever; elastic jobs take what is idle",
	.params = params,
	.param_count = sizeof params / sizeof params[0],
	.job_state_size = sizeof(struct note),
	.order = &order,
	.key = key,
	.submit = waits,
	.stopped = waits,
	.alarm = alarm,
	.decide = decide,
	.explain = explain,
};
SW_EXPORT_POLICY(patient);
