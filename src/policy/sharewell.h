/* What the files of the policy `sharewell` share. sharewell.c decides; sharewell_seats.c knows who shares GPUs with whom and who would bear a neighbour;
 * sharewell_near.c is its rule for places. */
#ifndef SW_POLICY_SHAREWELL_H
#define SW_POLICY_SHAREWELL_H

#include <sharewell/policy.h>

#define SW_SEATS_SIZES 8u   /* shelves for 1, 2-3, 4-7, ... GPUs; the last for all that are larger */
#define SW_SEATS_MODELS 64u /* and by model: models that are so many numbers apart share a shelf */

/* Every running job with a profile stands in one of three places: on a shelf of hosts (alone on its GPUs), in the list of guests (came to the GPUs of a
 * host), or in none (a host that has its guest). Lists go through the jobs' bytes; numbers in them are ids plus one. */
struct sw_seats {
	uint32_t shelves[2][SW_SEATS_SIZES][SW_SEATS_MODELS]; /* by class: the first host of each */
	uint32_t guests;
	sw_ns reviewed_at;
	uint64_t bad[SW_SEATS_MODELS]; /* pairs of models that did not bear each other as predicted */
};

/* Of one job. */
struct sw_seat {
	uint32_t before, after;	 /* in its list */
	uint32_t partner;	 /* who shares its GPUs */
	uint32_t promised_milli; /* how fast it should be at the least beside its partner; 0: nobody can tell */
	uint8_t strikes;	 /* of a guest: reviews in a row in which one of the two was slower */
	bool lists;
	bool is_guest;
};

/* What a pair must promise. */
struct sw_seats_rule {
	uint32_t worth_milli; /* together, of what one does alone */
	uint32_t slow_milli;  /* time of each at the most, against alone */
};

typedef struct sw_seat *sw_seat_of_fn(struct sw_view *view, const struct sw_job *job);

/* Places the waiting job beside the host with whom it does most; false: nobody bears it. */
bool sw_seats_take(struct sw_plan *plan, struct sw_seats *seats, sw_seat_of_fn *seat_of, const struct sw_seats_rule *rule,
		   const struct sw_job *job);
/* A job runs, or runs elsewhere. */
void sw_seats_started(struct sw_view *view, struct sw_seats *seats, sw_seat_of_fn *seat_of, const struct sw_job *job);
/* A job does not run any more. */
void sw_seats_left(struct sw_view *view, struct sw_seats *seats, sw_seat_of_fn *seat_of, const struct sw_job *job);
/* Moves guests to free GPUs where this rule finds some. */
void sw_seats_spread(struct sw_plan *plan, const struct sw_seats *seats, sw_seat_of_fn *seat_of, const struct sw_placement *rule);
/* Once a minute: pairs that were slower than promised twice are parted, and their models are kept apart from then on. */
void sw_seats_review(struct sw_plan *plan, struct sw_seats *seats, sw_seat_of_fn *seat_of);

/* On as few nodes as can hold the job, in one rack if there is room. */
extern const struct sw_placement sw_sharewell_near;

#endif
