/* Philly: gangs ask for GPUs near to each other, again and again, and for ever less nearness.
 * Tenants lend each other what they do not use.
 *
 * The request loop of a job that waits. It tries for `acquire` to get all of its GPUs at its level
 * of locality (philly_levels.c), gives up, backs off for `backoff`, and tries again. After every
 * `relax_after` tries in vain it goes on at the next level. Levels at which the job would have no
 * place on an idle cluster are left out, and while nothing runs it takes any place. A try holds
 * nothing: a job gets all of its GPUs in one decision or none, and what it waits for others may
 * take meanwhile. So younger jobs overtake.
 *
 * Tenants are virtual clusters. A tenant has a share, its quota. A job beyond it runs on idle GPUs,
 * as an opportunistic run, for which the core asks for no quota. GPUs are short when at least
 * `occupancy` of them are in use, and too few free ones suit a job within its tenant's share. Then
 * jobs of the tenants that are furthest beyond their share are preempted until it can start, those
 * that started last first. It starts at any level, for it has waited enough. This happens once in a
 * try. A job whose GPU memory would stay where the other then had no room is left alone.
 *
 * Where more than a few wait, the end of a back-off is noticed up to a minute late, together with
 * others. It is never so late that a try is missed.
 *
 * What a job waits for is accounted for between looks at it: its tenant's share, if the job would
 * exceed it, else a place.
 *
 * Invariants:
 *  1. Where a job stands in its loop follows from the time since it began to wait,
 *     and from nothing else.
 *  2. Jobs stand in the order by their level, the highest first, then those that back off. Where
 *     one finds no place, neither do those behind it that are alike.
 */
#include "policy/philly.h"

#include <stdio.h>

#define SECOND INT64_C(1000000000)
#define DAY (86400 * SECOND)
#define FEW 2u		       /* jobs that are woken on time */
#define SLACK_NS (60 * SECOND) /* more than these together: in some worlds every event costs all running jobs */
#define RETRY_NS SECOND	       /* after a preemption: one that was stopped looks for another place */

enum { ACQUIRE, BACKOFF, RELAX_AFTER, RELAX, OCCUPANCY };

static const struct sw_param params[] = {
	[ACQUIRE] = {"acquire", SW_PARAM_DURATION, "150s", "how long one try to get all GPUs lasts", SECOND / 1000, 30 * DAY},
	[BACKOFF] = {"backoff", SW_PARAM_DURATION, "2m", "how long a job waits between two tries", 0, 30 * DAY},
	[RELAX_AFTER] = {"relax-after", SW_PARAM_INTEGER, "2", "tries in vain after which a job takes GPUs that are further apart", 1,
			 1000000},
	[RELAX] = {"relax", SW_PARAM_FLAG, "on", "off: a job waits for the best locality there is, however long", 0, 1},
	[OCCUPANCY] = {"occupancy", SW_PARAM_MILLI, "0.9",
		       "part of the GPUs in use from which on jobs beyond their tenant's share are preempted", 0, 1000},
};

static const struct sw_order order = {.by_class = true, .ties = SW_TIES_BY_ARRIVAL};

struct desk {
	bool changed;	    /* a job that found no place may find one now */
	uint32_t overtakes; /* starts while an older job waited */
};

struct card {
	sw_ns as_of; /* what follows is true up to here */
	sw_ns share_ns, place_ns;
	bool for_share; /* what it waited for then */
	uint8_t first_level;
	uint32_t first_level_gpus; /* of the cluster that this is true of */
	sw_ns armed;		   /* for when its alarm is set */
	sw_ns spared_at;	   /* it was protected from preemption then, or its stop would have been of no use */
	uint32_t pressed;	   /* the try in which others were preempted for it, from 1 */
};

/* ---- the request loop */

struct stand {
	uint32_t tries; /* in vain so far */
	uint32_t level;
	bool acquires;
	sw_ns until;
};

static struct stand stand_of(const struct sw_view *view, const struct sw_job *job)
{
	sw_ns acquire = sw_view_param(view, ACQUIRE)->number, cycle = acquire + sw_view_param(view, BACKOFF)->number;
	sw_ns waited = sw_view_now(view) - job->since, begun = waited - waited % cycle;
	bool acquires = waited - begun < acquire;
	int64_t tries = waited / cycle + !acquires, level = tries / sw_view_param(view, RELAX_AFTER)->number;
	if (!sw_view_param(view, RELAX)->number)
		level = 0;
	return (struct stand){
		.tries = tries < UINT32_MAX ? (uint32_t)tries : UINT32_MAX,
		.level = level < SW_PHILLY_LEVELS ? (uint32_t)level : SW_PHILLY_LEVELS - 1,
		.acquires = acquires,
		.until = job->since + begun + (acquires ? acquire : cycle),
	};
}

static int64_t key(struct sw_view *view, const struct sw_job *job)
{
	struct stand stand = stand_of(view, job);
	return stand.acquires ? SW_PHILLY_LEVELS - 1 - stand.level : SW_PHILLY_LEVELS;
}

static void arm(struct sw_view *view, const struct sw_job *job, sw_ns until)
{
	struct card *card = sw_job_state(view, job);
	sw_ns half = sw_view_param(view, ACQUIRE)->number / 2; /* one that is woken later than this might miss a try */
	sw_ns slack = half < SLACK_NS ? half : SLACK_NS;
	sw_alarm_set(view, job, until, sw_view_waiting(view) > FEW ? slack : 0);
	card->armed = until;
}

/* The level at which it looks for a place now. */
static uint32_t level_of(struct sw_view *view, const struct sw_job *job, const struct stand *stand)
{
	struct card *card = sw_job_state(view, job);
	if (sw_view_running(view) == 0)
		return SW_PHILLY_LEVELS - 1;
	if (card->first_level_gpus != sw_view_gpus(view)) {
		card->first_level = (uint8_t)sw_philly_first_level(view, job);
		card->first_level_gpus = sw_view_gpus(view);
	}
	return stand->level > card->first_level ? stand->level : card->first_level;
}

/* ---- shares of tenants */

/* GPUs that the tenant has beyond its share. */
static uint32_t excess(const struct sw_view *view, uint32_t tenant)
{
	uint64_t used = (uint64_t)sw_view_tenant_held(view, tenant) + sw_view_tenant_borrowed(view, tenant);
	uint32_t quota = sw_view_tenant_quota(view, tenant);
	return used > quota ? (uint32_t)(used - quota) : 0;
}

static bool is_within_share(const struct sw_view *view, const struct sw_job *job)
{
	uint64_t used = (uint64_t)sw_view_tenant_held(view, job->tenant) + sw_view_tenant_borrowed(view, job->tenant);
	return used + job->gpus <= sw_view_tenant_quota(view, job->tenant);
}

/* How long it has waited for what it waited for at the last look. */
static sw_ns since_last_look(const struct sw_view *view, const struct sw_job *job, const struct card *card)
{
	return sw_view_now(view) - (card->as_of > job->since ? card->as_of : job->since);
}

static void count_time(struct sw_view *view, const struct sw_job *job)
{
	struct card *card = sw_job_state(view, job);
	*(card->for_share ? &card->share_ns : &card->place_ns) += since_last_look(view, job, card);
	card->as_of = sw_view_now(view);
	card->for_share = !is_within_share(view, job);
}

/* ---- what happens */

/* The job waits, from now on or since then. */
static void enter(struct sw_view *view, const struct sw_job *job)
{
	struct card *card = sw_job_state(view, job);
	if (!sw_job_is_waiting(job))
		return;
	card->as_of = sw_view_now(view);
	card->pressed = 0;
	count_time(view, job);
	arm(view, job, stand_of(view, job).until);
}

static void started(struct sw_view *view, const struct sw_job *job)
{
	struct desk *desk = sw_view_state(view);
	const struct sw_job *oldest = sw_view_next_waiting(view, NULL);
	desk->overtakes += oldest != NULL && oldest->id.v < job->id.v && job->since == sw_view_now(view);
}

static void alarm(struct sw_view *view, const struct sw_job *job)
{
	struct desk *desk = sw_view_state(view);
	if (!sw_job_is_waiting(job))
		return;
	struct stand stand = stand_of(view, job);
	count_time(view, job);
	sw_order_rekey(view, job);
	arm(view, job, stand.until);
	desk->changed |= stand.acquires;
}

/* ---- the decision */

struct pass {
	struct sw_plan *plan;
	struct sw_view *view;
	bool preempted;
	bool too_soon;
};

static bool start(struct pass *pass, const struct sw_job *job, uint32_t level)
{
	const struct sw_placement *rule = &sw_philly_levels[level];
	if (sw_view_gpus_free(pass->view) < job->gpus)
		return false;
	enum sw_answer answer = sw_plan_run(pass->plan, job, SW_WISH(.where = sw_by(rule)));
	if (answer == SW_OVER_QUOTA)
		answer = sw_plan_run(pass->plan, job, SW_WISH(.as = SW_AS_OPPORTUNISTIC, .where = sw_by(rule)));
	return answer == SW_YES;
}

/* With so many GPUs free. */
static bool is_short_of_gpus(const struct sw_view *view, uint64_t free)
{
	uint64_t gpus = sw_view_gpus(view), used = gpus - free;
	return used * 1000 >= gpus * (uint64_t)sw_view_param(view, OCCUPANCY)->number;
}

/* GPUs of tenants beyond their share that are of use to the job once the jobs that
 * have them are stopped. */
static uint64_t useful_gpus(struct sw_view *view, const struct sw_job *job)
{
	uint64_t gpus = 0;
	for (const struct sw_job *other = NULL; (other = sw_view_next_running(view, other)) != NULL;) {
		const struct card *card = sw_job_state(view, other);
		if (excess(view, other->tenant) > 0 && card->spared_at != sw_view_now(view) && sw_job_makes_room(view, other, job))
			gpus += other->gpus_held;
	}
	return gpus;
}

/* Of the tenant furthest beyond its share, the job that started last; NULL: all that are left are
 * spared, or none is beyond its share. */
static const struct sw_job *choose_victim(struct sw_view *view)
{
	uint32_t worst = 0;
	for (uint32_t t = 1; t < sw_view_tenants(view); t++)
		worst = excess(view, t) > excess(view, worst) ? t : worst;
	const struct sw_job *last = NULL, *job = NULL;
	if (excess(view, worst) == 0)
		return NULL;
	while ((job = sw_view_next_running(view, job)) != NULL) {
		const struct card *card = sw_job_state(view, job);
		if (job->tenant == worst && card->spared_at != sw_view_now(view) && (last == NULL || job->since >= last->since))
			last = job;
	}
	return last;
}

/* Has others preempted for a job that is within its tenant's share; true if it starts. */
static bool press(struct pass *pass, const struct sw_job *job, const struct stand *stand, uint32_t level)
{
	struct sw_view *view = pass->view;
	struct card *card = sw_job_state(view, job);
	uint64_t reach = sw_view_gpus_free_for(view, job);
	if (job->asked_class != SW_CLASS_GUARANTEED || sw_view_tenant_quota(view, job->tenant) == UINT32_MAX || reach >= job->gpus ||
	    card->pressed > stand->tries || !is_within_share(view, job) || !is_short_of_gpus(view, reach))
		return false;
	uint64_t beyond = 0;
	for (uint32_t t = 0; t < sw_view_tenants(view); t++)
		beyond += excess(view, t);
	if (reach + beyond < job->gpus)
		return false;
	if (reach + useful_gpus(view, job) < job->gpus) {
		pass->too_soon = true; /* that may change without a word to us */
		return false;
	}
	const struct sw_job *victim;
	while ((victim = choose_victim(view)) != NULL) {
		struct card *other = sw_job_state(view, victim);
		if (!sw_job_makes_room(view, victim, job) || sw_plan_stop(pass->plan, victim, SW_PREEMPT) != SW_YES) {
			other->spared_at = sw_view_now(view);
			pass->too_soon = true;
			continue;
		}
		pass->preempted = true;
		card->pressed = stand->tries + 1;
		if (start(pass, job, sw_view_param(view, RELAX)->number ? SW_PHILLY_LEVELS - 1 : level))
			return true;
	}
	return false;
}

/* True if it starts. */
static bool serve(struct pass *pass, const struct sw_job *job)
{
	const struct card *card = sw_job_state(pass->view, job);
	struct stand stand = stand_of(pass->view, job);
	count_time(pass->view, job);
	/* A job that was held and let go has no alarm. */
	if (card->armed != stand.until)
		arm(pass->view, job, stand.until);
	if (!stand.acquires)
		return false;
	uint32_t level = level_of(pass->view, job, &stand);
	return start(pass, job, level) || press(pass, job, &stand, level);
}

static sw_ns decide(struct sw_plan *plan)
{
	struct sw_view *view = sw_plan_view(plan);
	struct desk *desk = sw_view_state(view);
	struct pass pass = {.plan = plan, .view = view};
	const uint32_t changes = SW_CHANGE_ROOM | SW_CHANGE_ARRIVALS | SW_CHANGE_STOPS;
	if (desk->changed || (sw_view_changes(view) & changes) != 0) {
		const struct sw_job *job = sw_order_next(plan, false);
		while (job != NULL)
			job = sw_order_next(plan, !serve(&pass, job));
	}
	desk->changed = pass.preempted || pass.too_soon;
	return pass.preempted ? sw_view_now(view) + RETRY_NS : SW_TIME_NEVER;
}

static void explain(struct sw_view *view, const struct sw_job *job, char *text, size_t size)
{
	static const char *const wishes[] = {"on the fewest nodes of one rack", "on at most twice the fewest nodes of one rack",
					     "in one rack", "anywhere"};
	struct stand stand = stand_of(view, job);
	const struct card *card = sw_job_state(view, job);
	const struct desk *desk = sw_view_state(view);
	sw_ns more = since_last_look(view, job, card);
	long long share_s = (long long)((card->share_ns + (card->for_share ? more : 0)) / SECOND);
	long long place_s = (long long)((card->place_ns + (card->for_share ? 0 : more)) / SECOND);
	long long left_s = (long long)((stand.until - sw_view_now(view) + SECOND - 1) / SECOND);
	int used = stand.acquires ? snprintf(text, size, "it wants %u GPU%s %s and %u %s free; this is try %u, for %lld s more",
					     SW_COUNTED(job->gpus), wishes[level_of(view, job, &stand)],
					     SW_COUNTED_ARE(sw_view_gpus_free(view)), stand.tries + 1, left_s)
				  : snprintf(text, size, "it backs off for %lld s more after try %u for %u GPU%s", left_s, stand.tries,
					     SW_COUNTED(job->gpus));
	if (used > 0 && (size_t)used < size)
		snprintf(text + used, size - (size_t)used,
			 "; it has waited %lld s for its tenant's share and %lld s for a place, and %u job%s overtaken older ones", share_s,
			 place_s, desk->overtakes, desk->overtakes == 1 ? " has" : "s have");
}

const struct sw_policy sw_policy_philly = {
	.abi = SW_POLICY_ABI,
	.name = "philly",
	.about = "tries for locality, backs off and relaxes; tenants lend idle GPUs and get their quota back (Philly)",
	.params = params,
	.param_count = sizeof params / sizeof params[0],
	.state_size = sizeof(struct desk),
	.job_state_size = sizeof(struct card),
	.order = &order,
	.key = key,
	.submit = enter,
	.started = started,
	.stopped = enter,
	.alarm = alarm,
	.decide = decide,
	.explain = explain,
};
