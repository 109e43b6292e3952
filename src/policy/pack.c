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
 * and not for each job. Numbers in lists are ids plus one. The base's bytes come first in every
 * state, so the base finds them where it always does.
 */
#include "policy/pack.h"

#include <stdio.h>
#include <string.h>

#define SECOND INT64_C(1000000000)
#define LOOK_NS (60 * SECOND) /* between looks at a new set */
#define LOOKS 2u	      /* after which a set that does well is left alone */
#define STRIKES 2u	      /* in a row, after which it is taken apart */
#define TOLERATED_MILLI 200u  /* slower than predicted */
#define KINDS_MAX 512u	      /* of hosts that are told apart; others are packed with none */
#define BAD_MAX 64u	      /* pairs of models that are remembered, the latest */
#define GUESTS_MAX 3u
#define HOSTS_TRIED 16u /* of one kind, where the first has no room */
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
	[SET] = {"pack.set", SW_PARAM_INTEGER, "2", "so many jobs on one GPU at most", 1, GUESTS_MAX + 1},
};

enum { HOSTS, GUESTS, LOOKED_AT, LISTS };

struct list {
	uint32_t first, last;
};

/* Hosts that are alike. */
struct kind {
	uint64_t looks;
	uint32_t gpus;
	struct list hosts;
};

struct desk {
	struct list guests;
	struct list looked_at; /* guests, the next to be looked at first */
	uint32_t kinds;
	struct kind kind[KINDS_MAX];
	uint32_t bad_count;
	struct {
		uint32_t a, b;
	} bad[BAD_MAX];
	bool changed; /* one that found no host may find one now */
};

struct seat {
	struct {
		uint32_t before, after;
	} link[LISTS];
	uint32_t kind; /* plus one; 0: it stands in no list of hosts */
	uint32_t host; /* it is a guest of */
	uint32_t guest[GUESTS_MAX];
	uint32_t expected_milli, host_expected_milli;
	uint8_t looks, strikes;
	bool looked_at;
	uint64_t all_look; /* it and its guests */
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

static const struct sw_job *job_of(const struct sw_view *view, uint32_t number)
{
	return sw_view_job(view, (struct sw_job_id){number - 1});
}

static int64_t param(const struct sw_view *view, size_t index)
{
	return sw_view_param(view, base_of(view)->param_count + index)->number;
}

/* ---- lists */

static void append(struct sw_view *view, struct list *list, int which, const struct sw_job *job)
{
	struct seat *seat = seat_of(view, job);
	seat->link[which].before = list->last;
	seat->link[which].after = 0;
	*(list->last == 0 ? &list->first : &seat_of(view, job_of(view, list->last))->link[which].after) = job->id.v + 1;
	list->last = job->id.v + 1;
}

static void take_out(struct sw_view *view, struct list *list, int which, const struct sw_job *job)
{
	const struct seat *seat = seat_of(view, job);
	uint32_t before = seat->link[which].before, after = seat->link[which].after;
	*(before == 0 ? &list->first : &seat_of(view, job_of(view, before))->link[which].after) = after;
	*(after == 0 ? &list->last : &seat_of(view, job_of(view, after))->link[which].before) = before;
}

/* ---- hosts */

/* What a job looks like to a predictor and to the memory of a GPU; looks add up. */
static uint64_t look_of(const struct sw_job *job)
{
	uint64_t look = ((uint64_t)job->model << 1 | (job->job_class == SW_CLASS_GUARANTEED)) * UINT64_C(0x9E3779B97F4A7C15);
	look = (look ^ look >> 29 ^ job->gpu_memory_bytes) * UINT64_C(0xBF58476D1CE4E5B9);
	return look ^ look >> 32;
}

static struct kind *find_kind(struct desk *desk, uint32_t gpus, uint64_t looks)
{
	struct kind *empty = NULL;
	for (uint32_t k = 0; k < desk->kinds; k++) {
		if (desk->kind[k].gpus == gpus && desk->kind[k].looks == looks)
			return &desk->kind[k];
		if (desk->kind[k].hosts.first == 0 && empty == NULL)
			empty = &desk->kind[k];
	}
	if (desk->kinds < KINDS_MAX)
		empty = &desk->kind[desk->kinds++];
	if (empty != NULL)
		*empty = (struct kind){.looks = looks, .gpus = gpus};
	return empty;
}

static void withdraw(struct sw_view *view, const struct sw_job *job)
{
	struct seat *seat = seat_of(view, job);
	if (seat->kind != 0)
		take_out(view, &desk_of(view)->kind[seat->kind - 1].hosts, HOSTS, job);
	seat->kind = 0;
}

static uint32_t guests_of(const struct seat *seat)
{
	uint32_t count = 0;
	for (uint32_t g = 0; g < GUESTS_MAX; g++)
		count += seat->guest[g] != 0;
	return count;
}

/* Into the list of its kind, if it can have one guest more. */
static void offer(struct sw_view *view, const struct sw_job *job)
{
	struct desk *desk = desk_of(view);
	struct seat *seat = seat_of(view, job);
	withdraw(view, job);
	if (job->state != SW_JOB_RUNNING || seat->host != 0 || job->model == 0 || job->gpu_memory_bytes == 0 ||
	    guests_of(seat) + 1 >= param(view, SET))
		return;
	seat->all_look = look_of(job);
	for (uint32_t g = 0; g < GUESTS_MAX; g++)
		seat->all_look += seat->guest[g] != 0 ? look_of(job_of(view, seat->guest[g])) : 0;
	struct kind *kind = find_kind(desk, job->gpus_held, seat->all_look);
	if (kind == NULL)
		return;
	seat->kind = (uint32_t)(kind - desk->kind) + 1;
	append(view, &kind->hosts, HOSTS, job);
	desk->changed = true;
}

/* Whose guest it is; 0: no job's. */
static void set_host(struct sw_view *view, const struct sw_job *job, uint32_t host)
{
	struct seat *seat = seat_of(view, job);
	if (seat->host == 0 && host != 0)
		append(view, &desk_of(view)->guests, GUESTS, job);
	else if (seat->host != 0 && host == 0)
		take_out(view, &desk_of(view)->guests, GUESTS, job);
	seat->host = host;
}

static void join(struct sw_view *view, const struct sw_job *job, const struct sw_job *host)
{
	struct seat *with = seat_of(view, host);
	withdraw(view, job);
	set_host(view, job, host->id.v + 1);
	for (uint32_t g = 0; g < GUESTS_MAX; g++) {
		if (with->guest[g] == 0) {
			with->guest[g] = job->id.v + 1;
			break;
		}
	}
	offer(view, host);
}

/* It does not run any more, or runs elsewhere: its host has one guest less; of its own guests the
 * first is their host now. */
static void part(struct sw_view *view, const struct sw_job *job)
{
	struct desk *desk = desk_of(view);
	struct seat *seat = seat_of(view, job);
	uint32_t orphans[GUESTS_MAX];
	withdraw(view, job);
	if (seat->looked_at)
		take_out(view, &desk->looked_at, LOOKED_AT, job);
	seat->looked_at = false;
	if (seat->host != 0) {
		const struct sw_job *host = job_of(view, seat->host);
		struct seat *with = seat_of(view, host);
		for (uint32_t g = 0; g < GUESTS_MAX; g++)
			if (with->guest[g] == job->id.v + 1)
				with->guest[g] = 0;
		set_host(view, job, 0);
		offer(view, host);
	}
	memcpy(orphans, seat->guest, sizeof orphans);
	memset(seat->guest, 0, sizeof seat->guest);
	const struct sw_job *heir = NULL;
	for (uint32_t g = 0; g < GUESTS_MAX; g++) {
		const struct sw_job *guest = orphans[g] != 0 ? job_of(view, orphans[g]) : NULL;
		if (guest == NULL)
			continue;
		set_host(view, guest, 0);
		if (guest->state != SW_JOB_RUNNING)
			continue;
		if (heir != NULL)
			join(view, guest, heir);
		else
			offer(view, heir = guest);
	}
}

/* ---- bad pairs */

static bool is_bad(const struct desk *desk, uint32_t a, uint32_t b)
{
	for (uint32_t i = 0; i < BAD_MAX && i < desk->bad_count; i++)
		if ((desk->bad[i].a == a && desk->bad[i].b == b) || (desk->bad[i].a == b && desk->bad[i].b == a))
			return true;
	return false;
}

static void remember_bad(struct desk *desk, uint32_t a, uint32_t b)
{
	if (is_bad(desk, a, b))
		return;
	desk->bad[desk->bad_count % BAD_MAX].a = a;
	desk->bad[desk->bad_count % BAD_MAX].b = b;
	desk->bad_count++;
}

/* ---- looking whether it went as predicted */

static void look_later(struct sw_view *view, const struct sw_job *job)
{
	struct desk *desk = desk_of(view);
	struct seat *seat = seat_of(view, job);
	if (seat->looked_at)
		take_out(view, &desk->looked_at, LOOKED_AT, job);
	/* On whole minutes, so that one decision looks at many. */
	seat->look_at = (sw_view_now(view) / LOOK_NS + 2) * LOOK_NS;
	seat->looked_at = true;
	append(view, &desk->looked_at, LOOKED_AT, job);
}

static bool is_slower(uint32_t speed_milli, uint32_t expected_milli)
{
	return speed_milli != 0 && speed_milli + TOLERATED_MILLI < expected_milli;
}

static void look(struct sw_plan *plan)
{
	struct sw_view *view = sw_plan_view(plan);
	struct desk *desk = desk_of(view);
	while (desk->looked_at.first != 0) {
		const struct sw_job *job = job_of(view, desk->looked_at.first);
		struct seat *seat = seat_of(view, job);
		if (seat->look_at > sw_view_now(view))
			return;
		take_out(view, &desk->looked_at, LOOKED_AT, job);
		seat->looked_at = false;
		if (seat->host == 0 || job->state != SW_JOB_RUNNING)
			continue;
		const struct sw_job *host = job_of(view, seat->host);
		bool bad = is_slower(sw_job_speed_milli(view, job), seat->expected_milli) ||
			   is_slower(sw_job_speed_milli(view, host), seat->host_expected_milli);
		seat->strikes = (uint8_t)(bad ? seat->strikes + 1 : 0);
		seat->looks++;
		bool apart = seat->strikes >= STRIKES;
		if (apart)
			remember_bad(desk, job->model, host->model);
		if ((apart && sw_plan_stop(plan, job, SW_PREEMPT) != SW_YES) || (!apart && (bad || seat->looks < LOOKS)))
			look_later(view, job);
	}
}

/* ---- packing */

static bool is_welcome(const struct sw_view *view, const struct sw_beside *beside)
{
	int64_t slow = param(view, SLOW);
	return beside->known && beside->fits && beside->worth_milli >= param(view, WORTH) && beside->speed_milli * slow >= 1000000 &&
	       beside->worst_milli * slow >= 1000000;
}

/* What was asked in one decision: many that wait are alike, and so are many that run. */
struct pass {
	struct sw_plan *plan;
	struct sw_view *view;
	struct {
		uint64_t question; /* 0: none */
		int32_t gain;
	} memory[MEMORY];
};

/* How much more all do together with the job there; NOTHING: it is not welcome. */
static int32_t gain_beside(const struct pass *pass, const struct sw_job *job, const struct sw_job *host, struct sw_beside *ret_beside)
{
	if (is_bad(desk_of(pass->view), job->model, host->model) ||
	    !sw_predict_beside(pass->view, job, (enum sw_job_class)job->asked_class, host, ret_beside) ||
	    !is_welcome(pass->view, ret_beside))
		return NOTHING;
	return (int32_t)ret_beside->worth_milli - (int32_t)ret_beside->before_milli;
}

/* The first of the kind to which the job can go. They are alike, but one may be on a GPU with less
 * memory, or on a node that takes no jobs. NULL: it is welcome nowhere. */
static const struct sw_job *first_host(const struct pass *pass, const struct sw_job *job, const struct kind *kind, int32_t *ret_gain,
				       struct sw_beside *ret_beside)
{
	uint32_t number = kind->hosts.first;
	for (uint32_t tries = 0; number != 0 && tries < HOSTS_TRIED; tries++) {
		const struct sw_job *host = job_of(pass->view, number);
		*ret_beside = (struct sw_beside){.fits = true};
		*ret_gain = gain_beside(pass, job, host, ret_beside);
		if (*ret_gain != NOTHING)
			return host;
		if (ret_beside->fits)
			return NULL;
		number = seat_of(pass->view, host)->link[HOSTS].after;
	}
	return NULL;
}

/* The same for any host of the kind. */
static int32_t gain_by(struct pass *pass, const struct sw_job *job, uint64_t look, const struct kind *kind)
{
	uint64_t question = (look ^ (kind->looks + kind->gpus) * UINT64_C(0x9E3779B97F4A7C15)) | 1;
	size_t at = (question >> 32) % MEMORY;
	if (pass->memory[at].question != question) {
		struct sw_beside beside;
		pass->memory[at].question = question;
		if (first_host(pass, job, kind, &pass->memory[at].gain, &beside) == NULL)
			pass->memory[at].gain = NOTHING;
	}
	return pass->memory[at].gain;
}

/* The first host of the kind that gains most by it, or NULL. */
static const struct sw_job *find_host(struct pass *pass, const struct sw_job *job, struct sw_beside *ret_beside)
{
	const struct desk *desk = desk_of(pass->view);
	const struct kind *best = NULL;
	uint64_t look = look_of(job);
	int32_t best_gain = NOTHING;
	for (uint32_t k = 0; k < desk->kinds; k++) {
		const struct kind *kind = &desk->kind[k];
		int32_t gain = kind->gpus == job->gpus && kind->hosts.first != 0 ? gain_by(pass, job, look, kind) : NOTHING;
		if (gain > best_gain) {
			best = kind;
			best_gain = gain;
		}
	}
	return best != NULL ? first_host(pass, job, best, &best_gain, ret_beside) : NULL;
}

static bool pack(struct pass *pass, const struct sw_job *job)
{
	struct sw_view *view = pass->view;
	struct seat *seat = seat_of(view, job);
	struct sw_beside beside;
	if (job->model == 0 || job->gpu_memory_bytes == 0)
		return false;
	const struct sw_job *host = find_host(pass, job, &beside);
	enum sw_answer answer =
		host != NULL ? sw_plan_run(pass->plan, job, SW_WISH(.promise = SW_REST, .where = sw_beside(host))) : SW_NO_ROOM;
	desk_of(view)->changed |= answer == SW_OVER_QUOTA; /* a quota may be another next time */
	if (answer != SW_YES)
		return false;
	/* A place that is far apart, or a share that is small, slows both
	 * the jobs that are beside them. */
	uint32_t before = sw_job_speed_milli(view, host);
	before = before == 0 || before > 1000 ? 1000 : before;
	seat->expected_milli = beside.speed_milli * before / 1000;
	seat->host_expected_milli = beside.worst_milli * before / 1000;
	seat->looks = seat->strikes = 0;
	join(view, job, host);
	look_later(view, job);
	return true;
}

/* The jobs that wait still, in the order. Those tried in vain are many where the queue is long:
 * then others that ask for the same are passed over, whatever their model. */
static void pack_waiting(struct sw_plan *plan, bool changed)
{
	uint32_t misses = 0;
	struct pass pass = {.plan = plan, .view = sw_plan_view(plan)};
	const struct sw_job *job = sw_order_next(plan, false);
	while (job != NULL) {
		bool packed = (changed || job->fresh) && pack(&pass, job);
		misses += !packed;
		job = sw_order_next(plan, !packed && misses > MISSES_MAX);
	}
}

/* Guests to GPUs of their own, the oldest first. */
static void spread(struct sw_plan *plan)
{
	struct sw_view *view = sw_plan_view(plan);
	uint32_t number = desk_of(view)->guests.first;
	for (uint32_t seen = 0; number != 0 && seen < SPREAD_MAX && sw_view_gpus_free(view) > 0; seen++) {
		const struct sw_job *job = job_of(view, number);
		const struct seat *seat = seat_of(view, job);
		number = seat->link[GUESTS].after;
		if (job->gpus_held <= sw_view_gpus_free(view) && sw_job_keeps(view, job) == SW_KEEPS_ANYWHERE &&
		    (seat->expected_milli < SPREAD_MILLI || seat->host_expected_milli < SPREAD_MILLI))
			(void)sw_plan_run(plan, job, SW_WISH(.where = sw_by(NULL)));
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
	else if (desk->guests.first != 0 && base_of(view)->order->preemptive)
		spread(plan);
	sw_ns wake_at = desk->looked_at.first == 0 ? SW_TIME_NEVER : seat_of(view, job_of(view, desk->looked_at.first))->look_at;
	/* A job that the order has just started is a host once this decision is carried out. */
	sw_ns again = started && sw_view_waiting(view) > 0 ? sw_view_now(view) + AGAIN_NS : SW_TIME_NEVER;
	return again < wake_at ? again : wake_at;
}

/* ---- what happens, for the base and for us */

static const char *start(struct sw_view *view)
{
	return base_of(view)->start != NULL ? base_of(view)->start(view) : NULL;
}

static void submit(struct sw_view *view, const struct sw_job *job)
{
	if (base_of(view)->submit != NULL)
		base_of(view)->submit(view, job);
}

static void started(struct sw_view *view, const struct sw_job *job)
{
	const struct seat *seat = seat_of(view, job);
	if (base_of(view)->started != NULL)
		base_of(view)->started(view, job);
	if (seat->host != 0 && !sw_jobs_meet(view, job, job_of(view, seat->host)))
		part(view, job);
	if (seat->host == 0)
		offer(view, job);
}

static void stopped(struct sw_view *view, const struct sw_job *job)
{
	part(view, job);
	if (base_of(view)->stopped != NULL)
		base_of(view)->stopped(view, job);
}

static void ended(struct sw_view *view, const struct sw_job *job)
{
	part(view, job);
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
						       : "beside no running job on as many GPUs would both do well";
	snprintf(text + used, size - used, "; %s", why);
}

bool sw_packed_onto(const struct sw_policy *base, struct sw_packed *ret_packed)
{
	struct sw_packed *packed = ret_packed;
	if (base->order == NULL || base->decide != NULL || base->param_count + OWN_PARAMS > SW_PACKED_PARAMS_MAX ||
	    strlen(base->name) + sizeof SW_PACKED_SUFFIX > sizeof packed->name)
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
		.list_count = base->list_count,
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
