/* The Gittins index in two dimensions (Tiresias 2D-Gittins): run first the job that is likeliest to
 * end soon for the GPU time invested. That is judged by the GPU time of jobs before: a file of
 * samples, or else those that ended on this cluster. Durations of living jobs need not be known.
 *
 * Queues as in las.c; within a queue the index decides, in the last queue arrival does. The index
 * of a running job is looked at again every `tick`, or when it has run for a quarter longer,
 * whichever is later. Without a file it is the same for all until HISTORY_MIN jobs have ended. */
#include <sharewell/policy.h>

#include <string.h>

#include "policy/gittins_index.h"
#include "policy/published/gittins.h"

#define SECOND INT64_C(1000000000)
#define HISTORY_MAX 2048
#define HISTORY_MIN 16

enum { SAMPLES, THRESHOLDS, DELTA, TICK, COMPAT };

static const struct sw_param params[] = {
	[SAMPLES] = {"samples", SW_PARAM_FILE_OF_NUMBERS, "",
		     "a file with GPU-seconds of earlier jobs, one per line; none: this cluster's own history", 0, 0},
	[THRESHOLDS] = {"thresholds", SW_PARAM_NUMBERS, "3250,7200",
			"GPU-seconds at which a job leaves each queue; empty: one queue, ruled by the index", 1, 1000000000},
	[DELTA] = {"delta", SW_PARAM_INTEGER, "0", "GPU-seconds of service that the index looks ahead; 0: the queue's threshold", 0,
		   1000000000},
	[TICK] = {"tick", SW_PARAM_DURATION, "60s", "how often at most a running job's index is looked at again", SECOND, 86400 * SECOND},
	[COMPAT] = {"compat", SW_PARAM_FLAG, "off",
		    "the index as in the published artifact, which adds whole sizes instead of what is left of them", 0, 1},
};

/* What jobs used, ascending, in seconds of GPU time; sums[i] adds up the first i. */
struct history {
	size_t count;
	int64_t samples[HISTORY_MAX];
	int64_t sums[HISTORY_MAX + 1];
};

struct card {
	uint32_t level;
	int64_t key; /* as it was last looked at */
};

static const struct sw_order queues = {.preemptive = true, .placement_is_wish = true, .ties = SW_TIES_RUNNING_FIRST};

static void add_up(struct history *history)
{
	for (size_t i = 0; i < history->count; i++)
		history->sums[i + 1] = history->sums[i] + history->samples[i];
}

static const char *start(struct sw_view *view)
{
	struct history *history = sw_view_state(view);
	const struct sw_value *file = sw_view_param(view, SAMPLES);
	const struct sw_value *limits = sw_view_param(view, THRESHOLDS);
	for (size_t i = 1; i < limits->count; i++)
		if (limits->list[i] <= limits->list[i - 1])
			return "gittins.thresholds must grow from queue to queue";
	if (limits->count == 0 && sw_view_param(view, DELTA)->number == 0)
		return "without gittins.thresholds, gittins.delta must say how far to look ahead";
	/* A long file is thinned evenly. */
	history->count = file->count < HISTORY_MAX ? file->count : HISTORY_MAX;
	for (size_t i = 0; i < history->count; i++)
		history->samples[i] = file->list[file->count == history->count ? i : i * file->count / history->count];
	add_up(history);
	return NULL;
}

/* How far the index looks ahead in this queue. 0 in the last queue: arrival rules there. */
static int64_t look_ahead(struct sw_view *view, uint32_t level)
{
	const struct sw_value *limits = sw_view_param(view, THRESHOLDS);
	int64_t delta = sw_view_param(view, DELTA)->number;
	if (limits->count == 0)
		return delta;
	if (level >= limits->count)
		return 0;
	return delta > 0 ? delta : limits->list[level];
}

static int64_t key(struct sw_view *view, const struct sw_job *job)
{
	const struct history *history = sw_view_state(view);
	const struct card *card = sw_job_state(view, job);
	int64_t index = 0;
	if (sw_view_param(view, SAMPLES)->count > 0 || history->count >= HISTORY_MIN)
		index = (sw_view_param(view, COMPAT)->number != 0 ? sw_gittins_published_index : sw_gittins_index)(
			history->samples, history->sums, history->count, sw_job_gpu_time(view, job) / SECOND,
			look_ahead(view, card->level));
	const int64_t top = INT64_C(1) << 46;
	return (int64_t)card->level * 2 * top + top - (index < top ? index : top);
}

static void watch(struct sw_view *view, const struct sw_job *job)
{
	const struct card *card = sw_job_state(view, job);
	const struct sw_value *limits = sw_view_param(view, THRESHOLDS);
	sw_ns tick = sw_view_param(view, TICK)->number, ran = sw_job_ran(view, job);
	sw_ns due = ran / 4 > tick ? ran / 4 : tick;
	sw_ns slack = (due - tick) / 2; /* the longer it ran, the less a moment matters */
	if (card->level < limits->count) {
		sw_ns left = limits->list[card->level] * SECOND - sw_job_gpu_time(view, job);
		sw_ns leaves = left <= 0 ? 1 : (left + job->gpus_held - 1) / job->gpus_held;
		slack = leaves < due ? 0 : slack;
		due = leaves < due ? leaves : due;
	} else if (limits->count > 0) {
		return; /* the last queue: nothing changes any more */
	}
	sw_alarm_set(view, job, sw_view_now(view) + due, slack);
}

static void alarm(struct sw_view *view, const struct sw_job *job)
{
	struct card *card = sw_job_state(view, job);
	const struct sw_value *limits = sw_view_param(view, THRESHOLDS);
	if (card->level < limits->count && sw_job_gpu_time(view, job) >= limits->list[card->level] * SECOND)
		card->level++;
	/* Only a change moves it: jobs that are alike must not take turns. */
	int64_t now = key(view, job);
	if (now != card->key)
		sw_order_rekey(view, job);
	card->key = now;
	watch(view, job);
}

static void started(struct sw_view *view, const struct sw_job *job)
{
	struct card *card = sw_job_state(view, job);
	card->key = key(view, job);
	watch(view, job);
}

/* The cluster's own history: HISTORY_MAX ends stand for all; a random old one makes room. */
static void ended(struct sw_view *view, const struct sw_job *job)
{
	struct history *history = sw_view_state(view);
	if (sw_view_param(view, SAMPLES)->count > 0 || job->state != SW_JOB_FINISHED)
		return;
	if (history->count == HISTORY_MAX) {
		size_t victim = (size_t)sw_view_random(view, HISTORY_MAX);
		memmove(&history->samples[victim], &history->samples[victim + 1], (HISTORY_MAX - victim - 1) * sizeof history->samples[0]);
		history->count--;
	}
	int64_t used = sw_job_gpu_time(view, job) / SECOND;
	size_t at = sw_gittins_above(history->samples, history->count, used);
	memmove(&history->samples[at + 1], &history->samples[at], (history->count - at) * sizeof history->samples[0]);
	history->samples[at] = used;
	history->count++;
	add_up(history);
}

const struct sw_policy sw_policy_gittins = {
	.abi = SW_POLICY_ABI,
	.name = "gittins",
	.about = "likeliest to end soon for the GPU time invested (Tiresias 2D-Gittins); learns from samples or history",
	.params = params,
	.param_count = sizeof params / sizeof params[0],
	.state_size = sizeof(struct history),
	.job_state_size = sizeof(struct card),
	.order = &queues,
	.key = key,
	.start = start,
	.started = started,
	.ended = ended,
	.alarm = alarm,
};
