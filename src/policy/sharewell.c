/* Sharewell's own: the job that is likely to be done soonest goes first, GPUs are shared where that
 * gains, and none starves.
 *
 * Order. Jobs stand in queues by the GPU time that they likely need still: what history predicts,
 * or else what they have used so far. Run times have long tails, so a job that ran for long will
 * run for long. Each queue is `ratio` times as long as the one before. Strict priority rules
 * between queues; within one, a running job stays. Opportunistic jobs have queues of their own,
 * behind those of all others. A job that has waited for `patience` and as long as it has run goes
 * ahead of all queues. When it runs, it begins in the first queue anew. So no job starves but
 * opportunistic ones where others always hold all GPUs.
 *
 * Place. A waiting job takes the first of these that there is:
 *  1. free GPUs near to each other;
 *  2. a seat: the GPUs of a running job of its class that is alone on them, and asks for as many.
 *     That job must be predicted to bear it (sharewell_seats.c);
 *  3. free GPUs anywhere; if it minds distance, once it has waited for `locality`;
 *  4. GPUs of jobs behind it in the order, the last first, but only of jobs that keep their state,
 *     unless it has lost its patience. An opportunistic job takes them from others of its kind
 *     alone;
 *  5. for an opportunistic job, the time that a guaranteed one on as many GPUs leaves idle. That
 *     one must hardly notice, and both together must do `worth`. Such a filler makes room for a
 *     guest of its host and goes when its host goes. It stands just behind its host in the order,
 *     so that none is stopped for GPUs that a filler would still hold. A job of class auto whose
 *     tenant has used up its quota runs as an opportunistic one on free GPUs.
 *
 * Room. Where GPUs are free and no job waits, those that took a seat move to them, if they keep
 * their state when they move. Fillers do so where no waiting job can use them. Pairs that are
 * slower than predicted are parted.
 */
#include <sharewell/policy.h>

#include <stdio.h>

#include "policy/sharewell.h"

#define SECOND INT64_C(1000000000)
#define YEAR (INT64_C(365) * 86400 * SECOND)
#define QUEUES_MAX 24u
#define MISSES_MAX 8u /* jobs tried in vain before those alike are passed over: they may be of models that others bear */
#define SKEW_LIMIT_MILLI 300
#define SLACK_NS (60 * SECOND)
#define RETRY_NS SECOND /* after a stop: one that was stopped looks for another place */

enum { FIRST, RATIO, PATIENCE, LOCALITY, WORTH, SLOW };

static const struct sw_param params[] = {
	[FIRST] = {"first", SW_PARAM_DURATION, "10m", "GPU time likely needed still, up to which a job is in the first queue", SECOND,
		   YEAR},
	[RATIO] = {"ratio", SW_PARAM_MILLI, "6", "each queue is so many times as long as the one before", 1100, 1000000},
	[PATIENCE] = {"patience", SW_PARAM_DURATION, "6h",
		      "a job that has waited this long, and as long as it has run, goes ahead of all queues", SECOND, YEAR},
	[LOCALITY] = {"locality", SW_PARAM_DURATION, "1m", "a job that minds distance waits this long for GPUs that are near to each other",
		      0, YEAR},
	[WORTH] = {"worth", SW_PARAM_MILLI, "1.3", "two jobs share GPUs if together they do this much of what one does alone", 1000, 8000},
	[SLOW] = {"slow", SW_PARAM_MILLI, "1.5", "and if neither is predicted to take so many times longer; 1: no job shares", 1000, 8000},
};

static const struct sw_order order = {.preemptive = true, .by_class = true, .ties = SW_TIES_RUNNING_FIRST};

struct desk {
	struct sw_seats seats;
	bool changed; /* a quota or a protection stood in the way, which may be another next time */
};

struct card {
	struct sw_guest seat;
	uint32_t queue;
	bool starved;	   /* ahead of all queues */
	sw_ns used_before; /* GPU time that does not count any more */
};

/* ---- queues */

static int64_t key(struct sw_view *view, const struct sw_job *job)
{
	const struct card *card = sw_job_state(view, job);
	if (card->seat.fills)
		return key(view, sw_guests_job(view, card->seat.host));
	return card->starved ? 0 : 1 + card->queue + (job->asked_class == SW_CLASS_OPPORTUNISTIC ? QUEUES_MAX : 0);
}

static sw_ns used(struct sw_view *view, const struct sw_job *job)
{
	const struct card *card = sw_job_state(view, job);
	return sw_job_gpu_time(view, job) - card->used_before;
}

/* GPU time that it likely needs still. */
static sw_ns outlook(struct sw_view *view, const struct sw_job *job)
{
	sw_ns left = job->knowledge == SW_PREDICTED ? sw_job_remaining(view, job) : SW_TIME_NEVER;
	if (left == SW_TIME_NEVER)
		return used(view, job);
	return left > SW_TIME_NEVER / job->gpus ? SW_TIME_NEVER : left * job->gpus;
}

/* Where a queue ends, in GPU time. */
static sw_ns end_of(const struct sw_view *view, uint32_t queue)
{
	__extension__ typedef __int128 wide;
	wide end = sw_view_param(view, FIRST)->number;
	for (; queue > 0 && end < SW_TIME_NEVER; queue--)
		end = end * sw_view_param(view, RATIO)->number / 1000;
	return end < SW_TIME_NEVER ? (sw_ns)end : SW_TIME_NEVER;
}

static uint32_t queue_of(struct sw_view *view, sw_ns gpu_time)
{
	uint32_t queue = 0;
	while (queue < QUEUES_MAX - 1 && gpu_time >= end_of(view, queue))
		queue++;
	return queue;
}

/* The alarm of a running job: when it has used up its queue. A job that is predicted to need ever
 * less stays where it is. */
static void watch_running(struct sw_view *view, const struct sw_job *job)
{
	const struct card *card = sw_job_state(view, job);
	sw_ns end = end_of(view, card->queue);
	if (job->knowledge == SW_PREDICTED || end == SW_TIME_NEVER || card->queue == QUEUES_MAX - 1)
		return;
	sw_ns left = end - used(view, job), due = left <= 0 ? 1 : (left + job->gpus_held - 1) / job->gpus_held;
	if (due < SW_TIME_NEVER - sw_view_now(view))
		sw_alarm_set(view, job, sw_view_now(view) + due, SECOND);
}

/* The network is slow for jobs whose largest tensor is much of the model. Where that is not known,
 * waiting is the smaller mistake (see the placement rule `skew`). */
static bool minds_distance(const struct sw_job *job)
{
	return job->gpus > 1 && (job->skew_milli == 0 || job->skew_milli > SKEW_LIMIT_MILLI);
}

/* How long it waits for near GPUs, and then until it goes ahead of all: the longer it has
 * run already, the longer. */
static sw_ns locality(struct sw_view *view)
{
	return sw_view_param(view, LOCALITY)->number;
}

static sw_ns patience(struct sw_view *view, const struct sw_job *job)
{
	sw_ns ran = sw_job_ran(view, job), first = sw_view_param(view, PATIENCE)->number;
	return ran < SW_TIME_NEVER - first ? first + ran : SW_TIME_NEVER;
}

static bool has_waited(struct sw_view *view, const struct sw_job *job, sw_ns time)
{
	return sw_view_now(view) - job->since >= time;
}

/* The alarm of a waiting job: when it takes GPUs anywhere, and then when it goes ahead of all. */
static void watch_waiting(struct sw_view *view, const struct sw_job *job)
{
	const struct card *card = sw_job_state(view, job);
	if (card->starved)
		return;
	sw_ns wait = minds_distance(job) && !has_waited(view, job, locality(view)) ? locality(view) : patience(view, job);
	if (wait < SW_TIME_NEVER - job->since)
		sw_alarm_set(view, job, job->since + wait, SLACK_NS);
}

static bool fills(struct sw_view *view, const struct sw_job *job)
{
	const struct card *card = sw_job_state(view, job);
	return card->seat.fills;
}

/* The filler on the job's GPUs, which may be the job itself; NULL: there is none. */
static const struct sw_job *filler_at(struct sw_view *view, const struct sw_job *job)
{
	const struct card *card = sw_job_state(view, job);
	const struct sw_job *guest = sw_guests_job(view, card->seat.guests[0]);
	return fills(view, job) ? job : guest != NULL && fills(view, guest) ? guest : NULL;
}

static void alarm(struct sw_view *view, const struct sw_job *job)
{
	struct card *card = sw_job_state(view, job);
	const struct sw_job *filler = filler_at(view, job);
	if (job->state == SW_JOB_HELD) {
		/* It is not told when it is released: look again. */
		sw_alarm_set(view, job, sw_view_now(view) + sw_view_param(view, PATIENCE)->number, SLACK_NS);
	} else if (job->state == SW_JOB_RUNNING) {
		card->queue = queue_of(view, outlook(view, job));
		sw_order_rekey(view, job);
		if (filler != NULL && filler != job) /* it stands just behind its host, whose place in the order has changed */
			sw_order_rekey(view, filler);
		watch_running(view, job);
	} else if (has_waited(view, job, patience(view, job))) {
		card->starved = true;
		sw_count_promotion(view, job);
		sw_order_rekey(view, job);
	} else {
		watch_waiting(view, job);
	}
}

/* ---- comings and goings */

/* Once the two are parted, one that was a filler has a place of its own in the order again. Ranks
 * of jobs in the present plan are frozen, so its alarm sees to that, too. */
static void rekey_parted(struct sw_view *view, const struct sw_job *filler)
{
	if (filler == NULL || filler->state != SW_JOB_RUNNING || fills(view, filler))
		return;
	sw_order_rekey(view, filler);
	sw_alarm_set(view, filler, sw_view_now(view), 0);
}

static void submit(struct sw_view *view, const struct sw_job *job)
{
	struct card *card = sw_job_state(view, job);
	card->queue = queue_of(view, outlook(view, job));
	watch_waiting(view, job);
}

static void started(struct sw_view *view, const struct sw_job *job)
{
	struct card *card = sw_job_state(view, job);
	const struct sw_job *filler = filler_at(view, job);
	if (card->starved) {
		card->starved = false;
		card->used_before = sw_job_gpu_time(view, job);
		card->queue = queue_of(view, outlook(view, job));
	}
	sw_seats_started(view, job);
	watch_running(view, job);
	rekey_parted(view, filler);
}

static void ended(struct sw_view *view, const struct sw_job *job)
{
	const struct sw_job *filler = filler_at(view, job);
	sw_seats_left(view, job);
	rekey_parted(view, filler);
}

static void stopped(struct sw_view *view, const struct sw_job *job)
{
	ended(view, job);
	sw_alarm_set(view, job, sw_view_now(view) + RETRY_NS, 0);
}

/* ---- the decision */

static bool start_job(struct sw_plan *plan, struct desk *desk, const struct sw_job *job)
{
	struct sw_view *view = sw_plan_view(plan);
	const struct card *card = sw_job_state(view, job);
	const uint32_t slow = (uint32_t)sw_view_param(view, SLOW)->number;
	const struct sw_seats_rule rule = {(uint32_t)sw_view_param(view, WORTH)->number, .host_slow_milli = slow, .own_slow_milli = slow};
	/* Where nothing runs, nothing nearer will become free. */
	bool anywhere = !minds_distance(job) || has_waited(view, job, locality(view)) || sw_view_running(view) == 0, shares = slow > 1000;
	const struct sw_where near = sw_by(&sw_sharewell_near);
	enum sw_answer answer = sw_plan_run(plan, job, SW_WISH(.where = near));
	desk->changed |= answer == SW_OVER_QUOTA;
	if (answer == SW_OVER_QUOTA)
		return job->is_auto && sw_plan_run(plan, job, SW_WISH(.as = SW_AS_OPPORTUNISTIC)) == SW_YES;
	if (answer == SW_YES || (shares && sw_seats_take(plan, &rule, job)) || (anywhere && sw_plan_run(plan, job, NULL) == SW_YES))
		return true;
	const uint8_t evict = card->starved ? SW_EVICT_BEHIND : SW_EVICT_SPARING;
	answer = sw_plan_run(plan, job, SW_WISH(.evict = evict, .where = anywhere ? sw_by(NULL) : near));
	desk->changed |= answer == SW_TOO_SOON; /* the core wakes us for it */
	return answer == SW_YES || (shares && job->asked_class == SW_CLASS_OPPORTUNISTIC && sw_seats_fill(plan, &rule, job));
}

/* Where nothing has changed, only a new job can find a place. */
static const struct sw_job *next_job(struct sw_plan *plan, bool changed, bool skip_alike)
{
	return changed ? sw_order_next(plan, skip_alike) : sw_order_next_fresh(plan);
}

static sw_ns decide(struct sw_plan *plan)
{
	struct sw_view *view = sw_plan_view(plan);
	struct desk *desk = sw_view_state(view);
	bool changed = desk->changed || sw_view_running(view) == 0 || (sw_view_changes(view) & (SW_CHANGE_ROOM | SW_CHANGE_ALARMS)) != 0;
	uint32_t misses = 0;
	desk->changed = false;
	sw_seats_review(plan);
	for (const struct sw_job *job = next_job(plan, changed, false); job != NULL;) {
		bool starts = start_job(plan, desk, job);
		/* One that was released comes without a word, and has no alarm. */
		if (!starts && job->fresh)
			watch_waiting(view, job);
		misses += !starts;
		job = next_job(plan, changed, !starts && misses > MISSES_MAX);
	}
	/* What waiting jobs cannot use is good enough for one that shares. */
	sw_seats_spread(plan, SW_SEATS_FILLERS);
	if (sw_view_waiting(view) == 0)
		sw_seats_spread(plan, SW_SEATS_GUESTS);
	return SW_TIME_NEVER;
}

static void explain(struct sw_view *view, const struct sw_job *job, char *text, size_t size)
{
	const struct card *card = sw_job_state(view, job);
	const char *seat = job->model == 0 ? "it has no profile yet: it shares a GPU only after a first run"
					   : "no running job of its size would share its GPUs well with it";
	const char *line = job->asked_class == SW_CLASS_OPPORTUNISTIC ? "opportunistic queue" : "queue";
	if (card->starved)
		snprintf(text, size,
			 "it starves and goes ahead of all queues; it needs %u GPU%s, %u %s free, and running jobs are still within "
			 "their quantum",
			 SW_COUNTED(job->gpus), SW_COUNTED_ARE(sw_view_gpus_free(view)));
	else
		snprintf(text, size, "it is in %s %u, behind jobs that likely need less GPU time; it needs %u GPU%s, %u %s free%s, and %s",
			 line, card->queue + 1, SW_COUNTED(job->gpus), SW_COUNTED_ARE(sw_view_gpus_free(view)),
			 job->gpus > 1 && job->gpus <= sw_view_gpus_free(view) ? " but too far apart" : "", seat);
}

const struct sw_policy sw_policy_sharewell = {
	.abi = SW_POLICY_ABI,
	.name = "sharewell",
	.about = "least likely remaining GPU time first, sharing GPUs where that gains, no job starves; needs no durations",
	.params = params,
	.param_count = sizeof params / sizeof params[0],
	.state_size = sizeof(struct desk),
	.job_state_size = sizeof(struct card),
	.shelf_count = SW_SEATS_SHELVES,
	.order = &order,
	.key = key,
	.submit = submit,
	.started = started,
	.stopped = stopped,
	.ended = ended,
	.alarm = alarm,
	.decide = decide,
	.explain = explain,
};
