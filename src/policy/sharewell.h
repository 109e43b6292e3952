/* What the files of the policy `sharewell` share. sharewell.c decides. sharewell_seats.c knows
 * which jobs would bear a neighbour. sharewell_near.c is its rule for places. */
#ifndef SW_POLICY_SHAREWELL_H
#define SW_POLICY_SHAREWELL_H

#include "policy/guests.h"

#define SW_SEATS_SIZES 8u   /* shelves for 1, 2-3, 4-7, ... GPUs; the last for all that are larger */
#define SW_SEATS_MODELS 64u /* and by model: models that are so many numbers apart share a shelf */
#define SW_SEATS_KINDS 3u   /* alone, by class; and guaranteed with a filler, in whose place a guest may come */

/* Shelves of running jobs with a profile, the latest first. Hosts with a guest are on none. */
enum {
	SW_SEATS_GUESTS = 0, /* on the GPUs of a host of their class */
	SW_SEATS_FILLERS,    /* opportunistic, in the time that a guaranteed host leaves idle: their seats say `fills` */
	SW_SEATS_HOSTS,	     /* by kind, size and model */
	SW_SEATS_SHELVES = SW_SEATS_HOSTS + SW_SEATS_KINDS * SW_SEATS_SIZES * SW_SEATS_MODELS,
};

/* First in the bytes of the policy; a struct sw_guest is first in those of a job. */
struct sw_seats {
	struct sw_guests guests;
	uint64_t models[SW_SEATS_KINDS][SW_SEATS_SIZES]; /* bits of shelves that may hold a host */
	sw_ns reviewed_at;
};

/* What a pair must promise. */
struct sw_seats_rule {
	uint32_t worth_milli;	  /* together, of what one does alone */
	uint32_t host_slow_milli; /* time of the host at the most, against alone */
	uint32_t own_slow_milli;  /* and of the guest */
};

/* Places the waiting job beside the host of its class with which it does most; false: none bears
 * it. */
bool sw_seats_take(struct sw_plan *plan, const struct sw_seats_rule *rule, const struct sw_job *job);
/* Places the waiting opportunistic job beside a guaranteed one that leaves its GPUs idle
 * enough and hardly notices. */
bool sw_seats_fill(struct sw_plan *plan, const struct sw_seats_rule *rule, const struct sw_job *job);
/* A job runs, or runs elsewhere. */
void sw_seats_started(struct sw_view *view, const struct sw_job *job);
/* A job does not run any more. */
void sw_seats_left(struct sw_view *view, const struct sw_job *job);
/* Moves those of this shelf to free GPUs that are near to each other. */
void sw_seats_spread(struct sw_plan *plan, uint32_t shelf);
/* Once a minute: pairs that were slower than promised twice are parted, and their models are
 * kept apart from then on. */
void sw_seats_review(struct sw_plan *plan);

/* On as few nodes as can hold the job, in one rack if there is room. */
extern const struct sw_placement sw_sharewell_near;

#endif
