/* Least attained service in two dimensions (Tiresias): GPU time used so far decides.
 *
 * Discretised: queues with thresholds on attained GPU time. A job enters the first queue and moves
 * down when it has used a queue's threshold. Strict priority rules between queues. Within a queue,
 * running jobs go by the time they started, then waiting ones. So two jobs of one queue do not take
 * turns for ever. Without thresholds: plain least attained service, compared anew every `tick`.
 *
 * Promotion: count from when a job last entered the first queue. A job below that queue may have
 * waited `promote` times as long as it has run. It then goes back to the first one, with both
 * counts at zero. 0: never. */
#include <sharewell/policy.h>

#include <stdio.h>

#define SECOND INT64_C(1000000000)

enum { THRESHOLDS, PROMOTE, COUNT_GPUS, TICK };

static const struct sw_param params[] = {
	[THRESHOLDS] = {"thresholds", SW_PARAM_NUMBERS, "3250,7200",
			"GPU-seconds at which a job leaves each queue; empty: no queues, plain least attained service", 1, 1000000000},
	[PROMOTE] = {"promote", SW_PARAM_MILLI, "0", "back to the first queue after waiting this many times the run time; 0: never", 0,
		     1000000000},
	[COUNT_GPUS] = {"count-gpus", SW_PARAM_FLAG, "on", "service is time x GPUs; off: time alone", 0, 1},
	[TICK] = {"tick", SW_PARAM_DURATION, "60s", "without thresholds: how often running jobs are compared again", 1000000,
		  86400 * SECOND},
};

/* Of one job; the counts begin anew at a promotion. */
struct card {
	uint32_t level;
	sw_ns ran_before;  /* what the core counted before that */
	sw_ns used_before; /* the same in GPU time */
	sw_ns waited;	   /* in all waits that are over, not counting the one before its first run */
	sw_ns waits_since; /* while it waits and has run */
	bool waits;
};

static const struct sw_order queues = {
	.preemptive = true,
	.placement_is_wish = true,
	.ties = SW_TIES_RUNNING_FIRST,
};

static const struct sw_order plain = {
	.preemptive = true,
	.placement_is_wish = true,
	.ties = SW_TIES_BY_ARRIVAL,
};

static const struct sw_value *thresholds(struct sw_view *view)
{
	return sw_view_param(view, THRESHOLDS);
}

static const char *start(struct sw_view *view)
{
	const struct sw_value *limits = thresholds(view);
	for (size_t i = 1; i < limits->count; i++)
		if (limits->list[i] <= limits->list[i - 1])
			return "las.thresholds must grow from queue to queue";
	sw_order_use(view, limits->count > 0 ? &queues : &plain);
	return NULL;
}

static sw_ns service(struct sw_view *view, const struct sw_job *job)
{
	const struct card *card = sw_job_state(view, job);
	if (sw_view_param(view, COUNT_GPUS)->number)
		return sw_job_gpu_time(view, job) - card->used_before;
	return sw_job_ran(view, job) - card->ran_before;
}

static int64_t key(struct sw_view *view, const struct sw_job *job)
{
	const struct card *card = sw_job_state(view, job);
	return thresholds(view)->count > 0 ? card->level : service(view, job);
}

/* The alarm of a running job: when it has used up its queue. Slack up to the next whole second of
 * its run time saves steps; a step that comes anyway in between is used. */
static void watch_running(struct sw_view *view, const struct sw_job *job)
{
	const struct card *card = sw_job_state(view, job);
	const struct sw_value *limits = thresholds(view);
	if (limits->count == 0) {
		sw_alarm_set(view, job, sw_view_now(view) + sw_view_param(view, TICK)->number, 0);
		return;
	}
	if (card->level >= limits->count)
		return;
	sw_ns speed = sw_view_param(view, COUNT_GPUS)->number ? (sw_ns)job->gpus_held : 1;
	sw_ns left = limits->list[card->level] * SECOND - service(view, job);
	sw_ns due = left <= 0 ? 1 : (left + speed - 1) / speed;
	sw_ns ran_then = sw_job_ran(view, job) - card->ran_before + due;
	sw_ns slack = (SECOND - ran_then % SECOND) % SECOND;
	sw_alarm_set(view, job, sw_view_now(view) + due, slack);
}

/* The alarm of a waiting job: when it has waited long enough to be promoted. */
static void watch_waiting(struct sw_view *view, const struct sw_job *job)
{
	const struct card *card = sw_job_state(view, job);
	int64_t knob_milli = sw_view_param(view, PROMOTE)->number;
	sw_ns ran = sw_job_ran(view, job) - card->ran_before;
	if (knob_milli == 0 || card->level == 0 || ran == 0)
		return;
	__extension__ typedef __int128 wide;
	wide patience = (wide)ran * knob_milli / 1000; /* in whole seconds */
	patience -= patience % SECOND + card->waited;
	if (patience < SW_TIME_NEVER - sw_view_now(view))
		sw_alarm_set(view, job, sw_view_now(view) + (patience > 0 ? (sw_ns)patience : 1), 0);
}

static void promote(struct sw_view *view, const struct sw_job *job)
{
	struct card *card = sw_job_state(view, job);
	card->level = 0;
	card->waited = 0;
	card->waits = false;
	card->ran_before = sw_job_ran(view, job);
	card->used_before = sw_job_gpu_time(view, job);
	sw_count_promotion(view, job);
	sw_order_rekey(view, job);
}

static void alarm(struct sw_view *view, const struct sw_job *job)
{
	struct card *card = sw_job_state(view, job);
	if (sw_job_is_waiting(job)) {
		promote(view, job);
		return;
	}
	if (thresholds(view)->count > 0)
		card->level++;
	sw_order_rekey(view, job);
	watch_running(view, job);
}

static void started(struct sw_view *view, const struct sw_job *job)
{
	struct card *card = sw_job_state(view, job);
	if (card->waits)
		card->waited += sw_view_now(view) - card->waits_since;
	card->waits = false;
	watch_running(view, job);
}

static void stopped(struct sw_view *view, const struct sw_job *job)
{
	struct card *card = sw_job_state(view, job);
	card->waits = true;
	card->waits_since = sw_view_now(view);
	watch_waiting(view, job);
}

static void explain(struct sw_view *view, const struct sw_job *job, char *text, size_t size)
{
	const struct card *card = sw_job_state(view, job);
	long long used_s = (long long)(service(view, job) / SECOND);
	size_t queues_count = thresholds(view)->count + 1;
	if (queues_count == 1)
		snprintf(text, size, "it has used %lld GPU-seconds, and jobs that used less go first; it needs %u GPU%s and %u %s free",
			 used_s, SW_COUNTED(job->gpus), SW_COUNTED_ARE(sw_view_gpus_free(view)));
	else
		snprintf(text, size,
			 "it is in queue %u of %zu (%lld GPU-seconds used), and jobs ahead of it hold the GPUs; it needs %u and %u %s free",
			 card->level + 1, queues_count, used_s, job->gpus, SW_COUNTED_ARE(sw_view_gpus_free(view)));
}

const struct sw_policy sw_policy_las = {
	.abi = SW_POLICY_ABI,
	.name = "las",
	.about = "least attained GPU time first, in queues (Tiresias 2D-LAS); needs no durations",
	.params = params,
	.param_count = sizeof params / sizeof params[0],
	.job_state_size = sizeof(struct card),
	.order = &queues,
	.key = key,
	.start = start,
	.started = started,
	.stopped = stopped,
	.alarm = alarm,
	.explain = explain,
};
