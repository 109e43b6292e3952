#include "policy/sharewell.h"

#define SECOND INT64_C(1000000000)
#define LOOKS 4u /* hosts looked at on one shelf: they may differ in memory */
#define MOVES_MAX 16u
#define REVIEW_NS (60 * SECOND)
#define SETTLES_NS (120 * SECOND)
#define TOLERATED_MILLI 200u /* of the time that a piece of work takes alone */
#define STRIKES 2u

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
	return seat->is_guest ? &seats->guests : &seats->shelves[job->asked_class][size_of(job)][job->model % SW_SEATS_MODELS];
}

static void take_out(struct sw_view *view, struct sw_seats *seats, sw_seat_of_fn *seat_of, const struct sw_job *job)
{
	struct sw_seat *seat = seat_of(view, job);
	if (!seat->lists)
		return;
	*(seat->before == 0 ? first_of(seats, seat, job) : &seat_of(view, job_of(view, seat->before))->after) = seat->after;
	if (seat->after != 0)
		seat_of(view, job_of(view, seat->after))->before = seat->before;
	seat->lists = seat->is_guest = false;
}

static void put_in(struct sw_view *view, struct sw_seats *seats, sw_seat_of_fn *seat_of, const struct sw_job *job, bool is_guest)
{
	struct sw_seat *seat = seat_of(view, job);
	take_out(view, seats, seat_of, job);
	/* A run in another class than it asked for is no host: it may change on the way. */
	if (job->model == 0 || (!is_guest && job->job_class != job->asked_class))
		return;
	seat->is_guest = is_guest;
	uint32_t *first = first_of(seats, seat, job);
	seat->before = 0;
	seat->after = *first;
	if (*first != 0)
		seat_of(view, job_of(view, *first))->before = number_of(job);
	*first = number_of(job);
	seat->lists = true;
}

/* The pair is none any more; who is left is a host. */
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
		put_in(view, seats, seat_of, other, false);
}

void sw_seats_started(struct sw_view *view, struct sw_seats *seats, sw_seat_of_fn *seat_of, const struct sw_job *job)
{
	struct sw_seat *seat = seat_of(view, job);
	if (seat->partner != 0 && !sw_jobs_meet(view, job, job_of(view, seat->partner)))
		part(view, seats, seat_of, job);
	if (seat->partner == 0)
		put_in(view, seats, seat_of, job, false);
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
	uint32_t slowest = 1000000 / rule->slow_milli;
	return beside->known && beside->fits && beside->speed_milli >= slowest && beside->worst_milli >= slowest &&
	       beside->worth_milli >= rule->worth_milli;
}

/* The first on this shelf who bears the job; NULL: none. */
static const struct sw_job *look_for_host(struct sw_view *view, const struct sw_seats *seats, sw_seat_of_fn *seat_of,
					  const struct sw_seats_rule *rule, const struct sw_job *job, uint32_t number,
					  struct sw_beside *ret_beside)
{
	for (uint32_t look = 0; look < LOOKS && number != 0; look++) {
		const struct sw_job *host = job_of(view, number);
		if (host->state == SW_JOB_RUNNING && host->gpus_held == job->gpus && !is_bad(seats, job, host) &&
		    sw_predict_beside(view, job, job->asked_class, host, ret_beside) && bears(rule, ret_beside))
			return host;
		number = seat_of(view, host)->after;
	}
	return NULL;
}

/* What it should measure at the least: of a host, what it did before; of a guest on several GPUs nobody knows what the place does to it. */
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

bool sw_seats_take(struct sw_plan *plan, struct sw_seats *seats, sw_seat_of_fn *seat_of, const struct sw_seats_rule *rule,
		   const struct sw_job *job)
{
	struct sw_view *view = sw_plan_view(plan);
	const uint32_t *shelves = seats->shelves[job->asked_class][size_of(job)];
	const struct sw_job *best = NULL;
	struct sw_beside with_best = {.worth_milli = 0};
	for (uint32_t model = 0; model < SW_SEATS_MODELS && job->model != 0; model++) {
		struct sw_beside beside;
		const struct sw_job *host = look_for_host(view, seats, seat_of, rule, job, shelves[model], &beside);
		if (host != NULL && beside.worth_milli > with_best.worth_milli) {
			best = host;
			with_best = beside;
		}
	}
	if (best == NULL || sw_plan_pack(plan, job, best) != SW_YES)
		return false;
	take_out(view, seats, seat_of, best);
	put_in(view, seats, seat_of, job, true);
	promise(view, seat_of, job, best, &with_best);
	return true;
}

/* ---- leaving it */

void sw_seats_spread(struct sw_plan *plan, const struct sw_seats *seats, sw_seat_of_fn *seat_of, const struct sw_placement *rule)
{
	struct sw_view *view = sw_plan_view(plan);
	uint32_t number = seats->guests;
	for (uint32_t tries = 0; tries < MOVES_MAX && number != 0 && sw_view_gpus_free(view) > 0;) {
		const struct sw_job *job = job_of(view, number);
		number = seat_of(view, job)->after;
		if (job->state != SW_JOB_RUNNING || job->gpus_held > sw_view_gpus_free(view) ||
		    sw_job_keeps(view, job) != SW_KEEPS_ANYWHERE)
			continue;
		(void)sw_plan_migrate_by(plan, job, rule);
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

void sw_seats_review(struct sw_plan *plan, struct sw_seats *seats, sw_seat_of_fn *seat_of)
{
	struct sw_view *view = sw_plan_view(plan);
	if (sw_view_now(view) - seats->reviewed_at < REVIEW_NS)
		return;
	seats->reviewed_at = sw_view_now(view);
	for (uint32_t number = seats->guests; number != 0;) {
		const struct sw_job *guest = job_of(view, number), *host = job_of(view, seat_of(view, guest)->partner);
		struct sw_seat *seat = seat_of(view, guest);
		number = seat->after;
		if (guest->state != SW_JOB_RUNNING || host == NULL || host->state != SW_JOB_RUNNING)
			continue;
		bool slower = is_slower(view, seat_of, guest) || is_slower(view, seat_of, host);
		seat->strikes = slower ? (uint8_t)(seat->strikes + 1) : 0;
		if (seat->strikes < STRIKES || sw_plan_preempt(plan, guest) != SW_YES)
			continue;
		seats->bad[guest->model % SW_SEATS_MODELS] |= UINT64_C(1) << host->model % SW_SEATS_MODELS;
		seats->bad[host->model % SW_SEATS_MODELS] |= UINT64_C(1) << guest->model % SW_SEATS_MODELS;
	}
}
