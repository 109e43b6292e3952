/* Guests and hosts: jobs that run on GPUs which other jobs had first. What the packer (pack.c) and
 * sharewell (sharewell_seats.c) both need of them: which job shares with which, and which were
 * slower than predicted. Which jobs shall share is the affair of these two.
 *
 * Numbers of jobs are ids plus one; 0: none. A guest has no guests.
 */
#ifndef SW_POLICY_GUESTS_H
#define SW_POLICY_GUESTS_H

#include <sharewell/policy.h>

#define SW_GUESTS_MAX 3u /* of one host */
#define SW_GUESTS_BAD 64u

/* Of one job. */
struct sw_guest {
	uint32_t host; /* whose GPUs it is on */
	uint32_t guests[SW_GUESTS_MAX];
	/* Of a guest: slower than this, it or its host does worse than predicted; 0: not known. */
	uint32_t least_milli, host_least_milli;
	uint8_t strikes; /* of a guest: looks in a row in which one of the two did */
	bool fills;	 /* of a guest: see sharewell_seats.c */
};

/* Of the policy. */
struct sw_guests {
	uint32_t at; /* where a struct sw_guest begins in the bytes of a job */
	uint32_t bad_count;
	struct {
		uint32_t a, b;
	} bad[SW_GUESTS_BAD]; /* pairs of models that did worse than predicted, the latest */
};

/* Puts the job on the shelf where it belongs now, as host or guest. */
typedef void sw_guests_shelve_fn(struct sw_view *view, const struct sw_job *job);

static inline struct sw_guest *sw_guest_of(struct sw_view *view, const struct sw_guests *guests, const struct sw_job *job)
{
	return (void *)((char *)sw_job_state(view, job) + guests->at);
}

/* NULL: none. */
static inline const struct sw_job *sw_guests_job(struct sw_view *view, uint32_t number)
{
	return number == 0 ? NULL : sw_view_job(view, (struct sw_job_id){number - 1});
}

/* The job shares the GPUs of this host, which has room for one guest more. */
void sw_guests_join(struct sw_view *view, const struct sw_guests *guests, sw_guests_shelve_fn *shelve, const struct sw_job *job,
		    const struct sw_job *host);
/* It shares with none any more, and is on no shelf. Of its own guests the first is their host. */
void sw_guests_part(struct sw_view *view, const struct sw_guests *guests, sw_guests_shelve_fn *shelve, const struct sw_job *job);
/* It runs, or runs elsewhere: it parts from jobs that it does not meet any more. */
void sw_guests_started(struct sw_view *view, const struct sw_guests *guests, sw_guests_shelve_fn *shelve, const struct sw_job *job);

/* A look at a guest: whether it or its host was too slow, now and when it was last looked at. The
 * speed of one that has not run for `settles` does not count. */
bool sw_guests_strike(struct sw_view *view, const struct sw_guests *guests, const struct sw_job *job, sw_ns settles);
/* Pairs of models that shall not share GPUs again. */
void sw_guests_remember_bad(struct sw_guests *guests, uint32_t a, uint32_t b);
bool sw_guests_are_bad(const struct sw_guests *guests, uint32_t a, uint32_t b);

/* Which guests move. */
struct sw_guests_move {
	const struct sw_placement *rule; /* where to */
	uint32_t below_milli;		 /* only where one of the two may be slower than this */
	uint32_t looks;			 /* so many are looked at, at the most */
};
/* Moves guests on this list to GPUs of their own, if they keep their state. */
void sw_guests_spread(struct sw_plan *plan, const struct sw_guests *guests, uint32_t list, const struct sw_guests_move *move);

#endif
