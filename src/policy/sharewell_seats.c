#include "policy/sharewell.h"

#define SECOND INT64_C(1000000000)
#define LOOKS 4u /* hosts looked at on one shelf: they may differ in memory */
#define MOVES_MAX 16u
#define REVIEW_NS (60 * SECOND)
#define SETTLES_NS (120 * SECOND)
#define TOLERATED_MILLI 200u /* of the time that a piece of work takes alone */
#define STRIKES 2u
#define FILLED 2u	   /* the shelf after those of the two classes */
#define UNFELT_MILLI 1050u /* time that a host takes beside a filler */

static const struct sw_job *job_of(struct sw_view *view, uint32_t number)
{
	return number == 0 ? NULL : sw_view_job(view, (struct sw_job_id){number - 1});
}

static uint32_t number_of(const struct sw_job *job)
{
	return job->id.v + 1;
}

/* ---- lists */

static uint32_t size_of(const struct sw_job *job)
{
	uint32_t size = 31u - (uint32_t)__builtin_clz(job->gpus | 1);
	return size < SW_SEATS_SIZES ? size : SW_SEATS_SIZES - 1;
}

static uint32_t *first_of(struct sw_seats *seats, const struct sw_seat *seat, const struct sw_job *job)
{
	uint32_t shelf = seat->list == SW_SEATS_FILLED ? FILLED : job->asked_class;
	return seat->list == SW_SEATS_GUESTS	? &seats->guests
	       : seat->list == SW_SEATS_FILLERS ? &seats->fillers
						: &seats->shelves[shelf][size_of(job)][job->model % SW_SEATS_MODELS];
}

static void take_out(struct sw_view *view, struct sw_seats *seats, sw_seat_of_fn *seat_of, const struct sw_job *job)
{
	struct sw_seat *seat = seat_of(view, job);
	if (seat->list == SW_SEATS_NONE)
		return;
	*(seat->before == 0 ? first_of(seats, seat, job) : &seat_of(view, job_of(view, seat->before))->after) = seat->after;
	if (seat->after != 0)
		seat_of(view, job_of(view, seat->after))->before = seat->before;
	seat->list = SW_SEATS_NONE;
}

static void put_in(struct sw_view *view, struct sw_seats *seats, sw_seat_of_fn *seat_of, const struct sw_job *job, enum sw_seats_list list)
{
	struct sw_seat *seat = seat_of(view, job);
	take_out(view, seats, seat_of, job);
	/* A run in another class than it asked for is no host: it may change on the way. */
	if (job->model == 0 || (list == SW_SEATS_ALONE && job->job_class != job->asked_class))
		return;
	seat->list = (uint8_t)list;
	uint32_t *first = first_of(seats, seat, job);
	seat->before = 0;
	seat->after = *first;
	if (*first != 0)
		seat_of(view, job_of(view, *first))->before = number_of(job);
	*first = number_of(job);
}

/* The pair is none any more; the one that is left is a host. */
static void part(struct sw_view *view, struct sw_seats *seats, sw_seat_of_fn *seat_of, const struct sw_job *job)
{
	struct sw_seat *seat = seat_of(view, job);
	const struct sw_job *other = job_of(view, seat->partner);
	take_out(view, seats, seat_of, job);
	seat->partner = seat->promised_milli = 0;
	if (other == NULL)
		return;
	seat_of(view, other)->partner = seat_of(view, other)->promised_milli = 0;
	take_out(view, seats, seat_of, other);
	if (other->state == SW_JOB_RUNNING)
		put_in(view, seats, seat_of, other, SW_SEATS_ALONE);
}

void sw_seats_started(struct sw_view *view, struct sw_seats *seats, sw_seat_of_fn *seat_of, const struct sw_job *job)
{
	struct sw_seat *seat = seat_of(view, job);
	if (seat->partner != 0 && !sw_jobs_meet(view, job, job_of(view, seat->partner)))
		part(view, seats, seat_of, job);
	if (seat->partner == 0)
		put_in(view, seats, seat_of, job, SW_SEATS_ALONE);
}

void sw_seats_left(struct sw_view *view, struct sw_seats *seats, sw_seat_of_fn *seat_of, const struct sw_job *job)
{
	part(view, seats, seat_of, job);
}

/* ---- taking a seat */

static bool is_bad(const struct sw_seats *seats, const struct sw_job *a, const struct sw_job *b)
{
	return (seats->bad[a->model % SW_SEATS_MODELS] >> (b->model % SW_SEATS_MODELS) & 1) != 0;
}

static bool bears(const struct sw_seats_rule *rule, const struct sw_beside *beside)
{
	return beside->known && beside->fits && beside->speed_milli >= 1000000 / rule->own_slow_milli &&
	       beside->worst_milli >= 1000000 / rule->host_slow_milli && beside->worth_milli >= rule->worth_milli;
}

/* What would become of the two; a filler would make room. */
static bool predict(struct sw_view *view, sw_seat_of_fn *seat_of, const struct sw_job *job, const struct sw_job *host,
		    struct sw_beside *ret_beside)
{
	if (!sw_predict_beside(view, job, job->asked_class, host, ret_beside))
		return false;
	uint32_t speed[2];
	if (seat_of(view, host)->list == SW_SEATS_FILLED && sw_predict_together(view, (const struct sw_job *[]){job, host}, 2, speed)) {
		ret_beside->speed_milli = speed[0];
		ret_beside->worst_milli = speed[1];
		ret_beside->worth_milli = speed[0] + speed[1];
	}
	return true;
}

/* The first on this shelf that bears the job; NULL: none. */
static const struct sw_job *look_for_host(struct sw_view *view, const struct sw_seats *seats, sw_seat_of_fn *seat_of,
					  const struct sw_seats_rule *rule, const struct sw_job *job, uint32_t number,
					  struct sw_beside *ret_beside)
{
	for (uint32_t look = 0; look < LOOKS && number != 0; look++) {
		const struct sw_job *host = job_of(view, number);
		if (host->state == SW_JOB_RUNNING && host->gpus_held == job->gpus && !is_bad(seats, job, host) &&
		    predict(view, seat_of, job, host, ret_beside) && bears(rule, ret_beside))
			return host;
		number = seat_of(view, host)->after;
	}
	return NULL;
}

/* What it should measure at the least. Of a host it is what it did before; what the place does to a
 * guest on several GPUs is not known. */
static void promise(struct sw_view *view, sw_seat_of_fn *seat_of, const struct sw_job *guest, const struct sw_job *host,
		    const struct sw_beside *beside)
{
	struct sw_seat *own = seat_of(view, guest), *other = seat_of(view, host);
	own->partner = number_of(host);
	other->partner = number_of(guest);
	own->strikes = 0;
	own->promised_milli = guest->gpus == 1 ? beside->speed_milli : 0;
	/* What is measured comes from outside, and may be anything. */
	uint32_t before = sw_job_speed_milli(view, host);
	other->promised_milli = (before < 1000 ? before : 1000) * beside->worst_milli / 1000;
}

/* The host on these shelves with which the job does most; NULL: none bears it. */
static const struct sw_job *best_host(struct sw_view *view, const struct sw_seats *seats, sw_seat_of_fn *seat_of,
				      const struct sw_seats_rule *rule, const struct sw_job *job, uint32_t shelf,
				      struct sw_beside *ret_beside)
{
	const struct sw_job *best = NULL;
	for (uint32_t model = 0; model < SW_SEATS_MODELS && job->model != 0; model++) {
		struct sw_beside beside;
		const struct sw_job *host =
			look_for_host(view, seats, seat_of, rule, job, seats->shelves[shelf][size_of(job)][model], &beside);
		if (host != NULL && (best == NULL || beside.worth_milli > ret_beside->worth_milli)) {
			best = host;
			*ret_beside = beside;
		}
	}
	return best;
}

bool sw_seats_take(struct sw_plan *plan, struct sw_seats *seats, sw_seat_of_fn *seat_of, const struct sw_seats_rule *rule,
		   const struct sw_job *job)
{
	struct sw_view *view = sw_plan_view(plan);
	struct sw_beside beside;
	const struct sw_job *host = best_host(view, seats, seat_of, rule, job, job->asked_class, &beside), *filler = NULL;
	if (host == NULL && job->asked_class == SW_CLASS_GUARANTEED) {
		host = best_host(view, seats, seat_of, rule, job, FILLED, &beside);
		filler = host != NULL ? job_of(view, seat_of(view, host)->partner) : NULL;
	}
	if (host == NULL || (filler != NULL && sw_plan_stop(plan, filler, SW_PREEMPT) != SW_YES) ||
	    sw_plan_run(plan, job, SW_WISH(.promise = SW_REST, .where = sw_beside(host))) != SW_YES)
		return false;
	if (filler != NULL) {
		take_out(view, seats, seat_of, filler);
		seat_of(view, filler)->partner = 0;
	}
	take_out(view, seats, seat_of, host);
	put_in(view, seats, seat_of, job, SW_SEATS_GUESTS);
	promise(view, seat_of, job, host, &beside);
	return true;
}

bool sw_seats_fill(struct sw_plan *plan, struct sw_seats *seats, sw_seat_of_fn *seat_of, const struct sw_seats_rule *rule,
		   const struct sw_job *job)
{
	struct sw_view *view = sw_plan_view(plan);
	struct sw_beside beside;
	const struct sw_seats_rule unfelt = {rule->worth_milli,
					     .host_slow_milli = rule->host_slow_milli < UNFELT_MILLI ? rule->host_slow_milli : UNFELT_MILLI,
					     .own_slow_milli = UINT32_MAX};
	const struct sw_job *host = best_host(view, seats, seat_of, &unfelt, job, SW_CLASS_GUARANTEED, &beside);
	if (host == NULL || sw_plan_run(plan, job, SW_WISH(.promise = SW_REST, .where = sw_beside(host))) != SW_YES)
		return false;
	put_in(view, seats, seat_of, host, SW_SEATS_FILLED);
	put_in(view, seats, seat_of, job, SW_SEATS_FILLERS);
	promise(view, seat_of, job, host, &beside);
	seat_of(view, job)->promised_milli = 0; /* the gaps may be too short for it: that is its own affair */
	return true;
}

/* ---- leaving it */

void sw_seats_spread(struct sw_plan *plan, uint32_t list, sw_seat_of_fn *seat_of, const struct sw_placement *rule)
{
	struct sw_view *view = sw_plan_view(plan);
	uint32_t number = list;
	for (uint32_t tries = 0; tries < MOVES_MAX && number != 0 && sw_view_gpus_free(view) > 0;) {
		const struct sw_job *job = job_of(view, number);
		number = seat_of(view, job)->after;
		if (job->state != SW_JOB_RUNNING || job->gpus_held > sw_view_gpus_free(view) ||
		    sw_job_keeps(view, job) != SW_KEEPS_ANYWHERE)
			continue;
		(void)sw_plan_run(plan, job, SW_WISH(.where = sw_by(rule)));
		tries++;
	}
}

static bool is_slower(struct sw_view *view, sw_seat_of_fn *seat_of, const struct sw_job *job)
{
	uint32_t promised = seat_of(view, job)->promised_milli, measured = sw_job_speed_milli(view, job);
	/* A start that counts in is no sign of a bad neighbour. */
	bool settled = sw_view_now(view) - job->since >= SETTLES_NS;
	return settled && promised > 0 && measured > 0 && 1000000 / measured > 1000000 / promised + TOLERATED_MILLI;
}

static void review(struct sw_plan *plan, struct sw_seats *seats, sw_seat_of_fn *seat_of, uint32_t list)
{
	struct sw_view *view = sw_plan_view(plan);
	for (uint32_t number = list; number != 0;) {
		const struct sw_job *guest = job_of(view, number), *host = job_of(view, seat_of(view, guest)->partner);
		struct sw_seat *seat = seat_of(view, guest);
		number = seat->after;
		if (guest->state != SW_JOB_RUNNING || host == NULL || host->state != SW_JOB_RUNNING)
			continue;
		bool slower = is_slower(view, seat_of, guest) || is_slower(view, seat_of, host);
		seat->strikes = slower ? (uint8_t)(seat->strikes + 1) : 0;
		if (seat->strikes < STRIKES || sw_plan_stop(plan, guest, SW_PREEMPT) != SW_YES)
			continue;
		seats->bad[guest->model % SW_SEATS_MODELS] |= UINT64_C(1) << host->model % SW_SEATS_MODELS;
		seats->bad[host->model % SW_SEATS_MODELS] |= UINT64_C(1) << guest->model % SW_SEATS_MODELS;
	}
}

void sw_seats_review(struct sw_plan *plan, struct sw_seats *seats, sw_seat_of_fn *seat_of)
{
	sw_ns now = sw_view_now(sw_plan_view(plan));
	if (now - seats->reviewed_at < REVIEW_NS)
		return;
	seats->reviewed_at = now;
	review(plan, seats, seat_of, seats->guests);
	review(plan, seats, seat_of, seats->fillers);
}
