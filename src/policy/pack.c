/* The contention-aware packer, on top of any order.
 *
 * The base policy keeps its order, and its order is served first, exactly as without us. Jobs that
 * it leaves waiting are then tried in that order. Each is packed beside running jobs on as many
 * GPUs where the SDK predicts the most together. That must be at least `worth`, none may get slower
 * than `slow`, and memory must be there. So the first in the order has the first choice. A matching
 * of all against all would do a little more work in total, for others. Jobs without a profile, or
 * which do not say how much memory they need, are packed with no other.
 *
 * When no job waits any more and GPUs are idle, guests that slow their host or are slowed by it
 * move to free GPUs. They do so where jobs keep their state when they move and the order can take
 * the GPUs back.
 *
 * What runs as a guest holds nothing by right: the order preempts guest and host each by its own
 * rank. A set is looked at twice after it was made. If both looks find it slower than predicted by
 * more than a fifth, it is taken apart. Jobs of these two models are not put together again.
 *
 * Hosts stand in lists by what they look like to a predictor. So a decision asks once for each kind
 * and not for each job. The base's bytes come first in every state, and its lists before ours, so
 * the base finds them where it always does.
 */
#include "policy/pack.h"

#include <stdio.h>
#include <string.h>

#include "policy/guests.h"

#define SECOND INT64_C(1000000000)
#define LOOK_NS (60 * SECOND) /* between looks at a new set */
#define LOOKS 2u	      /* after which a set that does well is left alone */
#define TOLERATED_MILLI 200u  /* slower than predicted */
#define KINDS_MAX 512u	      /* of hosts that are told apart; others are packed with none */
#define HOSTS_TRIED 16u	      /* of one kind, where the first has no room */
#define MISSES_MAX 64u
#define MEMORY 1024u /* answers */
#define NOTHING INT32_MIN
#define AGAIN_NS SECOND
#define SPREAD_MAX 16u	  /* guests that are looked at in one decision */
#define SPREAD_MILLI 900u /* of the speed alone: a guest or host that is slower is worth a move */

enum { WORTH, SLOW, SET, OWN_PARAMS };

static const struct sw_param own_params[OWN_PARAMS] = {
	[WORTH] = {"pack.worth", SW_PARAM_MILLI, "1.3",
		   "jobs are packed if together they do at least this many times the work of one alone", 1000, 8000},
	[SLOW] = {"pack.slow", SW_PARAM_MILLI, "1.5", "and no job takes more than this many times as long as alone", 1000, 100000},
	[SET] = {"pack.set", SW_PARAM_INTEGER, "2", "so many jobs on one GPU at most", 1, SW_GUESTS_MAX + 1},
};

/* Behind the lists of the base. */
enum { LOOKED_AT, GUESTS, HOSTS, LISTS = GUESTS }; /* guests, the next to be looked at first; all guests; a shelf for each kind */

/* Hosts that are alike. */
struct kind {
	uint64_t looks;
	uint32_t gpus;
	bool empty; /* as it was seen: it may be empty without */
};

struct desk {
	struct sw_guests guests;
	uint32_t kinds;
	struct kind kind[KINDS_MAX];
	bool changed; /* one that found no host may find one now */
};

struct seat {
	struct sw_guest guest;
	uint8_t looks;
	sw_ns look_at;
};

/* ---- whose bytes are where */

static const struct sw_policy *base_of(const struct sw_view *view)
{
	return sw_view_policy(view)->context;
}

static size_t aligned(size_t size)
{
	return (size + 15) & ~(size_t)15;
}

static struct desk *desk_of(struct sw_view *view)
{
	return (void *)((char *)sw_view_state(view) + aligned(base_of(view)->state_size));
}

static struct seat *seat_of(struct sw_view *view, const struct sw_job *job)
{
	return (void *)((char *)sw_job_state(view, job) + aligned(base_of(view)->job_state_size));
}

static uint32_t list_of(const struct sw_view *view, uint32_t list)
{
	return base_of(view)->list_count + list;
}

static int64_t param(const struct sw_view *view, size_t index)
{
	return sw_view_param(view, base_of(view)->param_count + index)->number;
}

/* ---- hosts */

/* What a job looks like to a predictor and to the memory of a GPU; looks add up. */
static uint64_t look_of(const struct sw_job *job)
{
	uint64_t look = ((uint64_t)job->model << 1 | (job->job_class == SW_CLASS_GUARANTEED)) * UINT64_C(0x9E3779B97F4A7C15);
	look = (look ^ look >> 29 ^ job->gpu_memory_bytes) * UINT64_C(0xBF58476D1CE4E5B9);
	return look ^ look >> 32;
}

static bool has_hosts(const struct sw_view *view, uint32_t kind)
{
	return sw_list_length(view, list_of(view, HOSTS + kind)) > 0;
}

/* The number of this kind; KINDS_MAX: there is no room for it. */
static uint32_t find_kind(struct sw_view *view, uint32_t gpus, uint64_t looks)
{
	struct desk *desk = desk_of(view);
	uint32_t k = 0;
	while (k < desk->kinds && (desk->kind[k].gpus != gpus || desk->kind[k].looks != looks))
		k++;
	if (k == desk->kinds && k < KINDS_MAX)
		desk->kinds++;
	else if (k == KINDS_MAX)
		for (k = 0; k < KINDS_MAX && has_hosts(view, k);)
			k++;
	if (k < KINDS_MAX)
		desk->kind[k] = (struct kind){.looks = looks, .gpus = gpus};
	return k;
}

/* As a guest, or among hosts of its kind, if it can have one guest more. */
static void shelve(struct sw_view *view, const struct sw_job *job)
{
	const struct sw_guest *seat = &seat_of(view, job)->guest;
	uint64_t looks = look_of(job);
	int64_t set = 2;
	if (seat->host != 0) {
		sw_list_append(view, list_of(view, GUESTS), job);
		return;
	}
	sw_list_remove(view, sw_list_shelf(view, job), job);
	for (uint32_t g = 0; g < SW_GUESTS_MAX; g++) {
		looks += seat->guests[g] != 0 ? look_of(sw_guests_job(view, seat->guests[g])) : 0;
		set += seat->guests[g] != 0;
	}
	if (job->state != SW_JOB_RUNNING || job->model == 0 || job->gpu_memory_bytes == 0 || set > param(view, SET))
		return;
	uint32_t kind = find_kind(view, job->gpus_held, looks);
	if (kind == KINDS_MAX)
		return;
	sw_list_append(view, list_of(view, HOSTS + kind), job);
	desk_of(view)->changed = true;
}

/* It does not run any more. */
static void leave(struct sw_view *view, const struct sw_job *job)
{
	sw_list_remove(view, list_of(view, LOOKED_AT), job);
	sw_guests_part(view, &desk_of(view)->guests, shelve, job);
}

/* ---- looking whether it went as predicted */

static void look_later(struct sw_view *view, const struct sw_job *job)
{
	sw_list_remove(view, list_of(view, LOOKED_AT), job);
	sw_list_append(view, list_of(view, LOOKED_AT), job);
	/* On whole minutes, so that one decision looks at many. */
	seat_of(view, job)->look_at = (sw_view_now(view) / LOOK_NS + 2) * LOOK_NS;
}

/* When it is time for the next look. */
static sw_ns next_look(struct sw_view *view)
{
	const struct sw_job *job = sw_list_next(view, list_of(view, LOOKED_AT), NULL);
	return job == NULL ? SW_TIME_NEVER : seat_of(view, job)->look_at;
}

static void look(struct sw_plan *plan)
{
	struct sw_view *view = sw_plan_view(plan);
	struct sw_guests *guests = &desk_of(view)->guests;
	while (next_look(view) <= sw_view_now(view)) {
		const struct sw_job *job = sw_list_next(view, list_of(view, LOOKED_AT), NULL);
		struct seat *seat = seat_of(view, job);
		sw_list_remove(view, list_of(view, LOOKED_AT), job);
		if (seat->guest.host == 0 || job->state != SW_JOB_RUNNING)
			continue;
		bool apart = sw_guests_strike(view, guests, job, 0), bad = seat->guest.strikes > 0;
		seat->looks++;
		if (apart)
			sw_guests_remember_bad(guests, job->model, sw_guests_job(view, seat->guest.host)->model);
		if ((apart && sw_plan_stop(plan, job, SW_PREEMPT) != SW_YES) || (!apart && (bad || seat->looks < LOOKS)))
			look_later(view, job);
	}
}

/* ---- packing */

static bool is_welcome(const struct sw_view *view, const struct sw_run_forecast *beside)
{
	int64_t slow = param(view, SLOW);
	return beside->known && beside->fits && beside->worth_milli >= param(view, WORTH) && beside->share_milli * slow >= 1000000 &&
	       beside->worst_milli * slow >= 1000000;
}

/* What was asked in one decision: many that wait are alike, and so are many that run. */
struct pass {
	struct sw_plan *plan;
	struct sw_view *view;
	bool asked; /* or the memory is not zeroed yet */
	struct answer {
		uint64_t question; /* 0: none */
		int32_t gain;
	} memory[MEMORY];
};

/* How much more all do together with the job there; NOTHING: it is not welcome. */
static int32_t gain_beside(const struct pass *pass, const struct sw_job *job, const struct sw_job *host, struct sw_run_forecast *ret_beside)
{
	if (sw_guests_are_bad(&desk_of(pass->view)->guests, job->model, host->model) ||
	    !sw_predict_run(pass->view, job, SW_WISH(.promise = SW_REST, .where = sw_beside(host)), ret_beside) ||
	    !is_welcome(pass->view, ret_beside))
		return NOTHING;
	return (int32_t)ret_beside->worth_milli - (int32_t)ret_beside->before_milli;
}

/* The first of the kind to which the job can go. They are alike, but one may be on a GPU with less
 * memory, or on a node that takes no jobs. NULL: it is welcome nowhere. */
static const struct sw_job *first_host(const struct pass *pass, const struct sw_job *job, uint32_t kind, int32_t *ret_gain,
				       struct sw_run_forecast *ret_beside)
{
	const uint32_t list = list_of(pass->view, HOSTS + kind);
	const struct sw_job *host = sw_list_next(pass->view, list, NULL);
	for (uint32_t tries = 0; host != NULL && tries < HOSTS_TRIED; tries++) {
		*ret_beside = (struct sw_run_forecast){.fits = true};
		*ret_gain = gain_beside(pass, job, host, ret_beside);
		if (*ret_gain != NOTHING)
			return host;
		if (ret_beside->fits)
			return NULL;
		host = sw_list_next(pass->view, list, host);
	}
	return NULL;
}

/* The same for any host of the kind. */
static int32_t gain_by(struct pass *pass, const struct sw_job *job, uint64_t look, uint32_t number)
{
	struct kind *kind = &desk_of(pass->view)->kind[number];
	uint64_t question = (look ^ (kind->looks + kind->gpus) * UINT64_C(0x9E3779B97F4A7C15)) | 1;
	struct answer *answer = &pass->memory[(question >> 32) % MEMORY];
	if (!pass->asked)
		memset(pass->memory, 0, sizeof pass->memory);
	pass->asked = true;
	if (answer->question != question) {
		struct sw_run_forecast beside;
		kind->empty = !has_hosts(pass->view, number);
		if (kind->empty)
			return NOTHING;
		answer->question = question;
		if (first_host(pass, job, number, &answer->gain, &beside) == NULL)
			answer->gain = NOTHING;
	}
	return answer->gain;
}

/* The first host of the kind that gains most by it, or NULL. */
static const struct sw_job *find_host(struct pass *pass, const struct sw_job *job, struct sw_run_forecast *ret_beside)
{
	const struct desk *desk = desk_of(pass->view);
	uint64_t look = look_of(job);
	uint32_t best = KINDS_MAX;
	int32_t best_gain = NOTHING;
	for (uint32_t k = 0; k < desk->kinds; k++) {
		bool suits = desk->kind[k].gpus == job->gpus && !desk->kind[k].empty;
		int32_t gain = suits ? gain_by(pass, job, look, k) : NOTHING;
		if (gain > best_gain && has_hosts(pass->view, k)) {
			best = k;
			best_gain = gain;
		}
	}
	return best < KINDS_MAX ? first_host(pass, job, best, &best_gain, ret_beside) : NULL;
}

/* The speed at which it is slower than this prediction. */
static uint32_t least(uint32_t speed_milli)
{
	return speed_milli > TOLERATED_MILLI ? speed_milli - TOLERATED_MILLI : 0;
}

static bool pack(struct pass *pass, const struct sw_job *job)
{
	struct sw_view *view = pass->view;
	struct seat *seat = seat_of(view, job);
	struct sw_run_forecast beside;
	if (job->model == 0 || job->gpu_memory_bytes == 0)
		return false;
	const struct sw_job *host = find_host(pass, job, &beside);
	enum sw_answer answer =
		host != NULL ? sw_plan_run(pass->plan, job, SW_WISH(.promise = SW_REST, .where = sw_beside(host))) : SW_NO_ROOM;
	desk_of(view)->changed |= answer == SW_OVER_QUOTA; /* a quota may be another next time */
	if (answer != SW_YES)
		return false;
	/* A place that is far apart, or a share that is small, slows both. */
	uint32_t before = sw_job_speed_milli(view, host);
	before = before == 0 || before > 1000 ? 1000 : before;
	seat->guest.least_milli = least(beside.share_milli * before / 1000);
	seat->guest.host_least_milli = least(beside.worst_milli * before / 1000);
	seat->looks = seat->guest.strikes = 0;
	sw_guests_join(view, &desk_of(view)->guests, shelve, job, host);
	look_later(view, job);
	return true;
}

/* The jobs that wait still, in the order. Those tried in vain are many where the queue is long:
 * then others that ask for the same are passed over, whatever their model. */
static void pack_waiting(struct sw_plan *plan, bool changed)
{
	uint32_t misses = 0;
	struct pass pass;
	pass.plan = plan;
	pass.view = sw_plan_view(plan);
	pass.asked = false;
	const struct sw_job *job = sw_order_next(plan, false);
	while (job != NULL) {
		bool packed = (changed || job->fresh) && pack(&pass, job);
		misses += !packed;
		job = sw_order_next(plan, !packed && misses > MISSES_MAX);
	}
}

static sw_ns decide(struct sw_plan *plan)
{
	struct sw_view *view = sw_plan_view(plan);
	struct desk *desk = desk_of(view);
	uint32_t running = sw_view_running(view), free = sw_view_gpus_free(view);
	sw_plan_by_order(plan);
	look(plan);
	bool started = running != sw_view_running(view) || free != sw_view_gpus_free(view);
	bool changed = desk->changed;
	desk->changed = false;
	if (sw_view_waiting(view) > 0 && param(view, SET) > 1)
		pack_waiting(plan, changed);
	else if (base_of(view)->order->preemptive)
		sw_guests_spread(plan, &desk->guests, list_of(view, GUESTS),
				 &(struct sw_guests_move){NULL, least(SPREAD_MILLI), SPREAD_MAX});
	sw_ns wake_at = next_look(view);
	/* A job that the order has just started is a host once this decision is carried out. */
	sw_ns again = started && sw_view_waiting(view) > 0 ? sw_view_now(view) + AGAIN_NS : SW_TIME_NEVER;
	return again < wake_at ? again : wake_at;
}

/* ---- what happens, for the base and for us */

static const char *start(struct sw_view *view)
{
	desk_of(view)->guests.at = (uint32_t)aligned(base_of(view)->job_state_size);
	return base_of(view)->start != NULL ? base_of(view)->start(view) : NULL;
}

static void submit(struct sw_view *view, const struct sw_job *job)
{
	if (base_of(view)->submit != NULL)
		base_of(view)->submit(view, job);
}

static void started(struct sw_view *view, const struct sw_job *job)
{
	const struct sw_guest *seat = &seat_of(view, job)->guest;
	const bool was_guest = seat->host != 0;
	if (base_of(view)->started != NULL)
		base_of(view)->started(view, job);
	sw_guests_started(view, &desk_of(view)->guests, shelve, job);
	if (was_guest && seat->host == 0)
		sw_list_remove(view, list_of(view, LOOKED_AT), job);
}

static void stopped(struct sw_view *view, const struct sw_job *job)
{
	leave(view, job);
	if (base_of(view)->stopped != NULL)
		base_of(view)->stopped(view, job);
}

static void ended(struct sw_view *view, const struct sw_job *job)
{
	leave(view, job);
	if (base_of(view)->ended != NULL)
		base_of(view)->ended(view, job);
}

static void freed(struct sw_view *view, const struct sw_job *job)
{
	desk_of(view)->changed = true;
	if (base_of(view)->freed != NULL)
		base_of(view)->freed(view, job);
}

static void alarm(struct sw_view *view, const struct sw_job *job)
{
	if (base_of(view)->alarm != NULL)
		base_of(view)->alarm(view, job);
}

static void explain(struct sw_view *view, const struct sw_job *job, char *text, size_t size)
{
	if (base_of(view)->explain != NULL)
		base_of(view)->explain(view, job, text, size);
	else
		snprintf(text, size, "it needs %u GPU%s, and those that are free do not suit it or others are ahead",
			 SW_COUNTED(job->gpus));
	size_t used = strlen(text);
	const char *why = job->model == 0	       ? "its model has no profile yet: it shares no GPU"
			  : job->gpu_memory_bytes == 0 ? "it does not say how much GPU memory it needs: it shares no GPU"
						       : "no running job on as many GPUs would share them well with it";
	snprintf(text + used, size - used, "; %s", why);
}

bool sw_packed_onto(const struct sw_policy *base, struct sw_packed *ret_packed)
{
	struct sw_packed *packed = ret_packed;
	if (base->order == NULL || base->decide != NULL || base->shelf_count + base->node_shelf_count > 0 ||
	    base->param_count + OWN_PARAMS > SW_PACKED_PARAMS_MAX || strlen(base->name) + sizeof SW_PACKED_SUFFIX > sizeof packed->name)
		return false;
	*packed = (struct sw_packed){0};
	snprintf(packed->name, sizeof packed->name, "%s" SW_PACKED_SUFFIX, base->name);
	snprintf(packed->about, sizeof packed->about, "%s; a job that finds no place runs beside one with which it does well", base->name);
	if (base->param_count > 0)
		memcpy(packed->params, base->params, base->param_count * sizeof *base->params);
	memcpy(packed->params + base->param_count, own_params, sizeof own_params);
	packed->policy = (struct sw_policy){
		.abi = base->abi,
		.name = packed->name,
		.about = packed->about,
		.params = packed->params,
		.param_count = base->param_count + OWN_PARAMS,
		.state_size = aligned(base->state_size) + sizeof(struct desk),
		.job_state_size = aligned(base->job_state_size) + sizeof(struct seat),
		.node_state_size = base->node_state_size,
		.list_count = base->list_count + LISTS,
		.shelf_count = HOSTS - LISTS + KINDS_MAX,
		.context = base,
		.order = base->order,
		.key = base->key,
		.start = start,
		.submit = submit,
		.started = started,
		.stopped = stopped,
		.ended = ended,
		.freed = freed,
		.alarm = alarm,
		.decide = decide,
		.explain = explain,
	};
	return true;
}
