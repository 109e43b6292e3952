#include "policy/guests.h"

#define STRIKES 2u    /* in a row, after which the two are taken apart */
#define MOVES_MAX 16u /* that are tried in one decision */

void sw_guests_join(struct sw_view *view, const struct sw_guests *guests, sw_guests_shelve_fn *shelve, const struct sw_job *job,
		    const struct sw_job *host)
{
	struct sw_guest *with = sw_guest_of(view, guests, host);
	uint32_t free = 0;
	while (free < SW_GUESTS_MAX - 1 && with->guests[free] != 0)
		free++;
	with->guests[free] = job->id.v + 1;
	sw_guest_of(view, guests, job)->host = host->id.v + 1;
	shelve(view, job);
	shelve(view, host);
}

void sw_guests_part(struct sw_view *view, const struct sw_guests *guests, sw_guests_shelve_fn *shelve, const struct sw_job *job)
{
	const struct sw_guest own = *sw_guest_of(view, guests, job);
	const struct sw_job *host = sw_guests_job(view, own.host), *heir = NULL;
	*sw_guest_of(view, guests, job) = (struct sw_guest){0};
	sw_list_remove(view, sw_list_shelf(view, job), job);
	if (host != NULL) {
		struct sw_guest *with = sw_guest_of(view, guests, host);
		for (uint32_t g = 0; g < SW_GUESTS_MAX; g++)
			with->guests[g] = with->guests[g] == job->id.v + 1 ? 0 : with->guests[g];
		shelve(view, host);
	}
	for (uint32_t g = 0; g < SW_GUESTS_MAX; g++) {
		const struct sw_job *guest = sw_guests_job(view, own.guests[g]);
		if (guest == NULL)
			continue;
		sw_guest_of(view, guests, guest)->host = 0;
		sw_guest_of(view, guests, guest)->fills = false;
		if (heir != NULL && guest->state == SW_JOB_RUNNING) {
			sw_guests_join(view, guests, shelve, guest, heir);
			continue;
		}
		shelve(view, guest);
		heir = guest->state == SW_JOB_RUNNING ? guest : heir;
	}
}

void sw_guests_started(struct sw_view *view, const struct sw_guests *guests, sw_guests_shelve_fn *shelve, const struct sw_job *job)
{
	const struct sw_guest *own = sw_guest_of(view, guests, job);
	if (own->host != 0 && !sw_jobs_meet(view, job, sw_guests_job(view, own->host)))
		sw_guests_part(view, guests, shelve, job);
	if (own->host == 0)
		shelve(view, job);
}

static bool is_slower(const struct sw_view *view, const struct sw_job *job, uint32_t least_milli, sw_ns settles)
{
	uint32_t speed = sw_job_speed_milli(view, job);
	return speed != 0 && speed < least_milli && sw_view_now(view) - job->since >= settles;
}

bool sw_guests_strike(struct sw_view *view, const struct sw_guests *guests, const struct sw_job *job, sw_ns settles)
{
	struct sw_guest *own = sw_guest_of(view, guests, job);
	bool slower = is_slower(view, job, own->least_milli, settles) ||
		      is_slower(view, sw_guests_job(view, own->host), own->host_least_milli, settles);
	own->strikes = (uint8_t)(slower ? own->strikes + 1 : 0);
	return own->strikes >= STRIKES;
}

bool sw_guests_are_bad(const struct sw_guests *guests, uint32_t a, uint32_t b)
{
	for (uint32_t i = 0; i < SW_GUESTS_BAD && i < guests->bad_count; i++)
		if ((guests->bad[i].a == a && guests->bad[i].b == b) || (guests->bad[i].a == b && guests->bad[i].b == a))
			return true;
	return false;
}

void sw_guests_remember_bad(struct sw_guests *guests, uint32_t a, uint32_t b)
{
	if (sw_guests_are_bad(guests, a, b))
		return;
	guests->bad[guests->bad_count % SW_GUESTS_BAD].a = a;
	guests->bad[guests->bad_count % SW_GUESTS_BAD].b = b;
	guests->bad_count++;
}

void sw_guests_spread(struct sw_plan *plan, const struct sw_guests *guests, uint32_t list, const struct sw_guests_move *move)
{
	struct sw_view *view = sw_plan_view(plan);
	const struct sw_job *job = NULL;
	uint32_t looks = 0, tries = 0;
	while (tries < MOVES_MAX && looks++ < move->looks && sw_view_gpus_free(view) > 0 && (job = sw_list_next(view, list, job)) != NULL) {
		const struct sw_guest *own = sw_guest_of(view, guests, job);
		if (job->state != SW_JOB_RUNNING || job->gpus_held > sw_view_gpus_free(view) ||
		    (own->least_milli >= move->below_milli && own->host_least_milli >= move->below_milli) ||
		    sw_job_keeps(view, job) != SW_KEEPS_ANYWHERE)
			continue;
		(void)sw_plan_run(plan, job, SW_WISH(.where = sw_by(move->rule)));
		tries++;
	}
}
