#include "policy/sharewell.h"

#define SECOND INT64_C(1000000000)
#define LOOKS 4u /* hosts looked at on one shelf: they may differ in memory */
#define REVIEW_NS (60 * SECOND)
#define SETTLES_NS (120 * SECOND) /* a start that counts in is no sign of a bad neighbour */
#define TOLERATED_MILLI 200u	  /* of the time that a piece of work takes alone */
#define FILLED 2u		  /* the kind of hosts after those of the two classes */
#define UNFELT_MILLI 1050u	  /* time that a host takes beside a filler */

static struct sw_guest *seat_of(struct sw_view *view, const struct sw_job *job)
{
	return sw_job_state(view, job);
}

/* ---- shelves */

static uint32_t size_of(const struct sw_job *job)
{
	uint32_t size = 31u - (uint32_t)__builtin_clz(job->gpus | 1);
	return size < SW_SEATS_SIZES ? size : SW_SEATS_SIZES - 1;
}

static uint32_t model_of(const struct sw_job *job)
{
	return job->model % SW_SEATS_MODELS;
}

/* Those of this kind for hosts of its size; the number of the first model's. */
static uint32_t shelves_of(const struct sw_job *job, uint32_t kind)
{
	return SW_SEATS_HOSTS + (kind * SW_SEATS_SIZES + size_of(job)) * SW_SEATS_MODELS;
}

static void shelve(struct sw_view *view, const struct sw_job *job)
{
	struct sw_seats *seats = sw_view_state(view);
	const struct sw_guest *seat = seat_of(view, job);
	const struct sw_job *guest = sw_guests_job(view, seat->guests[0]);
	uint32_t kind = guest != NULL ? FILLED : job->asked_class;
	sw_list_remove(view, sw_list_shelf(view, job), job);
	if (seat->host != 0) {
		sw_list_put(view, seat->fills ? SW_SEATS_FILLERS : SW_SEATS_GUESTS, job, NULL);
		return;
	}
	/* A run in another class than it asked for is no host: it may change on the way. */
	if (guest != NULL ? !seat_of(view, guest)->fills
			  : job->state != SW_JOB_RUNNING || job->model == 0 || job->job_class != job->asked_class)
		return;
	seats->models[kind][size_of(job)] |= UINT64_C(1) << model_of(job);
	sw_list_put(view, shelves_of(job, kind) + model_of(job), job, NULL);
}

void sw_seats_left(struct sw_view *view, const struct sw_job *job)
{
	sw_guests_part(view, sw_view_state(view), shelve, job);
}

void sw_seats_started(struct sw_view *view, const struct sw_job *job)
{
	const struct sw_job *guest = sw_guests_job(view, seat_of(view, job)->guests[0]);
	if (guest != NULL && !sw_jobs_meet(view, job, guest))
		sw_seats_left(view, job);
	if (seat_of(view, job)->guests[0] == 0)
		sw_guests_started(view, sw_view_state(view), shelve, job);
}

/* ---- taking a seat */

static bool bears(const struct sw_seats_rule *rule, const struct sw_run_forecast *beside)
{
	return beside->known && beside->fits && beside->share_milli >= 1000000 / rule->own_slow_milli &&
	       beside->worst_milli >= 1000000 / rule->host_slow_milli && beside->worth_milli >= rule->worth_milli;
}

/* What would become of the two; a filler would make room. */
static bool predict(struct sw_view *view, const struct sw_job *job, const struct sw_job *host, struct sw_run_forecast *ret_beside)
{
	if (!sw_predict_run(view, job, SW_WISH(.promise = SW_REST, .where = sw_beside(host)), ret_beside))
		return false;
	uint32_t speed[2];
	if (seat_of(view, host)->guests[0] != 0 && sw_predict_together(view, (const struct sw_job *[]){job, host}, 2, speed)) {
		ret_beside->share_milli = speed[0];
		ret_beside->worst_milli = speed[1];
		ret_beside->worth_milli = speed[0] + speed[1];
	}
	return true;
}

/* The first on this shelf that bears the job; NULL: none. */
static const struct sw_job *look_for_host(struct sw_view *view, const struct sw_seats_rule *rule, const struct sw_job *job,
					  const struct sw_job *host, uint32_t shelf, struct sw_run_forecast *ret_beside)
{
	const struct sw_seats *seats = sw_view_state(view);
	for (uint32_t look = 0; look < LOOKS && host != NULL; look++) {
		if (host->state == SW_JOB_RUNNING && host->gpus_held == job->gpus &&
		    !sw_guests_are_bad(&seats->guests, model_of(job), model_of(host)) && predict(view, job, host, ret_beside) &&
		    bears(rule, ret_beside))
			return host;
		host = sw_list_next(view, shelf, host);
	}
	return NULL;
}

/* The host of this kind with which the job does most; NULL: none bears it. */
static const struct sw_job *best_host(struct sw_view *view, const struct sw_seats_rule *rule, const struct sw_job *job, uint32_t kind,
				      struct sw_run_forecast *ret_beside)
{
	struct sw_seats *seats = sw_view_state(view);
	uint64_t *models = &seats->models[kind][size_of(job)];
	const struct sw_job *best = NULL;
	for (uint64_t left = job->model != 0 ? *models : 0; left != 0; left &= left - 1) {
		uint32_t shelf = shelves_of(job, kind) + (uint32_t)__builtin_ctzll(left);
		const struct sw_job *host = sw_list_next(view, shelf, NULL);
		struct sw_run_forecast beside;
		if (host == NULL)
			*models &= ~(left & -left);
		host = look_for_host(view, rule, job, host, shelf, &beside);
		if (host != NULL && (best == NULL || beside.worth_milli > ret_beside->worth_milli)) {
			best = host;
			*ret_beside = beside;
		}
	}
	return best;
}

/* Where the time that it takes is longer than predicted by what is tolerated. */
static uint32_t least(uint32_t promised_milli)
{
	return promised_milli == 0 ? 0 : 1000000 / (1000000 / promised_milli + TOLERATED_MILLI + 1) + 1;
}

/* A filler's gaps may be too short for it: that is its own affair. Of a host it is known what it
 * did before; what the place does to a guest on several GPUs is not. */
static void join(struct sw_view *view, const struct sw_job *job, const struct sw_job *host, const struct sw_run_forecast *beside,
		 bool fills)
{
	struct sw_guest *seat = seat_of(view, job);
	/* What is measured comes from outside, and may be anything. */
	uint32_t before = sw_job_speed_milli(view, host);
	seat->fills = fills;
	seat->strikes = 0;
	seat->least_milli = job->gpus == 1 && !fills ? least(beside->share_milli) : 0;
	seat->host_least_milli = least((before < 1000 ? before : 1000) * beside->worst_milli / 1000);
	sw_guests_join(view, sw_view_state(view), shelve, job, host);
}

bool sw_seats_take(struct sw_plan *plan, const struct sw_seats_rule *rule, const struct sw_job *job)
{
	struct sw_view *view = sw_plan_view(plan);
	struct sw_run_forecast beside;
	const struct sw_job *host = best_host(view, rule, job, job->asked_class, &beside), *filler = NULL;
	if (host == NULL && job->asked_class == SW_CLASS_GUARANTEED) {
		host = best_host(view, rule, job, FILLED, &beside);
		filler = host != NULL ? sw_guests_job(view, seat_of(view, host)->guests[0]) : NULL;
	}
	if (host == NULL || (filler != NULL && sw_plan_stop(plan, filler, SW_PREEMPT) != SW_YES) ||
	    sw_plan_run(plan, job, SW_WISH(.promise = SW_REST, .where = sw_beside(host))) != SW_YES)
		return false;
	if (filler != NULL)
		sw_seats_left(view, filler);
	join(view, job, host, &beside, false);
	return true;
}

bool sw_seats_fill(struct sw_plan *plan, const struct sw_seats_rule *rule, const struct sw_job *job)
{
	struct sw_view *view = sw_plan_view(plan);
	struct sw_run_forecast beside;
	const struct sw_seats_rule unfelt = {rule->worth_milli,
					     .host_slow_milli = rule->host_slow_milli < UNFELT_MILLI ? rule->host_slow_milli : UNFELT_MILLI,
					     .own_slow_milli = UINT32_MAX};
	const struct sw_job *host = best_host(view, &unfelt, job, SW_CLASS_GUARANTEED, &beside);
	if (host == NULL || sw_plan_run(plan, job, SW_WISH(.promise = SW_REST, .where = sw_beside(host))) != SW_YES)
		return false;
	join(view, job, host, &beside, true);
	return true;
}

/* ---- leaving it */

void sw_seats_spread(struct sw_plan *plan, uint32_t shelf)
{
	const struct sw_guests_move move = {&sw_sharewell_near, .below_milli = UINT32_MAX, .looks = UINT32_MAX};
	sw_guests_spread(plan, sw_view_state(sw_plan_view(plan)), shelf, &move);
}

static void review(struct sw_plan *plan, struct sw_guests *guests, uint32_t shelf)
{
	struct sw_view *view = sw_plan_view(plan);
	for (const struct sw_job *guest = NULL; (guest = sw_list_next(view, shelf, guest)) != NULL;) {
		const struct sw_job *host = sw_guests_job(view, seat_of(view, guest)->host);
		if (guest->state == SW_JOB_RUNNING && host->state == SW_JOB_RUNNING && sw_guests_strike(view, guests, guest, SETTLES_NS) &&
		    sw_plan_stop(plan, guest, SW_PREEMPT) == SW_YES)
			sw_guests_remember_bad(guests, model_of(guest), model_of(host));
	}
}

void sw_seats_review(struct sw_plan *plan)
{
	struct sw_seats *seats = sw_view_state(sw_plan_view(plan));
	sw_ns now = sw_view_now(sw_plan_view(plan));
	if (now - seats->reviewed_at < REVIEW_NS)
		return;
	seats->reviewed_at = now;
	review(plan, &seats->guests, SW_SEATS_GUESTS);
	review(plan, &seats->guests, SW_SEATS_FILLERS);
}
