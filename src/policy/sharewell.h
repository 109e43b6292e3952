/* What the files of the policy `sharewell` share. sharewell.c decides. sharewell_seats.c knows
 * which jobs share GPUs and which would bear a neighbour. sharewell_near.c is its rule for
 * places. */
#ifndef SW_POLICY_SHAREWELL_H
#define SW_POLICY_SHAREWELL_H

#include <sharewell/policy.h>

#define SW_SEATS_SIZES 8u   /* shelves for 1, 2-3, 4-7, ... GPUs; the last for all that are larger */
#define SW_SEATS_MODELS 64u /* and by model: models that are so many numbers apart share a shelf */

/* Where a running job with a profile stands. Lists go through the jobs' bytes; numbers in
 * them are ids plus one. */
enum sw_seats_list {
	SW_SEATS_NONE = 0, /* a host that has its guest */
	SW_SEATS_ALONE,	   /* on a shelf of hosts that are alone on their GPUs */
	SW_SEATS_FILLED,   /* on a shelf of guaranteed hosts with a filler: room for a guest, which takes its place */
	SW_SEATS_GUESTS,   /* on the GPUs of a host of their class */
	SW_SEATS_FILLERS,  /* opportunistic, in the time that a guaranteed host leaves idle */
};

struct sw_seats {
	uint32_t shelves[3][SW_SEATS_SIZES][SW_SEATS_MODELS]; /* the first host of each: alone, by class; filled */
	uint32_t guests, fillers;
	sw_ns reviewed_at;
	uint64_t bad[SW_SEATS_MODELS]; /* pairs of models that did not bear each other as predicted */
};

/* Of one job. */
struct sw_seat {
	uint32_t before, after;	 /* in its list */
	uint32_t partner;	 /* the job that shares its GPUs */
	uint32_t promised_milli; /* how fast it should be at the least beside its partner; 0: not known */
	uint8_t strikes;	 /* of a guest: reviews in a row in which one of the two was slower */
	uint8_t list;		 /* enum sw_seats_list */
};

/* What a pair must promise. */
struct sw_seats_rule {
	uint32_t worth_milli;	  /* together, of what one does alone */
	uint32_t host_slow_milli; /* time of the host at the most, against alone */
	uint32_t own_slow_milli;  /* and of the guest */
};

typedef struct sw_seat *sw_seat_of_fn(struct sw_view *view, const struct sw_job *job);

/* Places the waiting job beside the host of its class with which it does most; false: none bears
 * it. */
bool sw_seats_take(struct sw_plan *plan, struct sw_seats *seats, sw_seat_of_fn *seat_of, const struct sw_seats_rule *rule,
		   const struct sw_job *job);
/* Places the waiting opportunistic job beside a guaranteed one that leaves its GPUs idle
 * enough and hardly notices. */
bool sw_seats_fill(struct sw_plan *plan, struct sw_seats *seats, sw_seat_of_fn *seat_of, const struct sw_seats_rule *rule,
		   const struct sw_job *job);
/* A job runs, or runs elsewhere. */
void sw_seats_started(struct sw_view *view, struct sw_seats *seats, sw_seat_of_fn *seat_of, const struct sw_job *job);
/* A job does not run any more. */
void sw_seats_left(struct sw_view *view, struct sw_seats *seats, sw_seat_of_fn *seat_of, const struct sw_job *job);
/* Moves those of this list (the number of the first) to free GPUs where this rule finds some. */
void sw_seats_spread(struct sw_plan *plan, uint32_t list, sw_seat_of_fn *seat_of, const struct sw_placement *rule);
/* Once a minute: pairs that were slower than promised twice are parted, and their models are
 * kept apart from then on. */
void sw_seats_review(struct sw_plan *plan, struct sw_seats *seats, sw_seat_of_fn *seat_of);

/* On as few nodes as can hold the job, in one rack if there is room. */
extern const struct sw_placement sw_sharewell_near;

#endif
