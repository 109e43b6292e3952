/* Private to the policy salus: rooms and lanes, and what its files do for each other. What the
 * policy is about stands in salus.c. */
#ifndef SW_POLICY_SALUS_H
#define SW_POLICY_SALUS_H

#include <sharewell/policy.h>

#define MEMBERS_MAX 8u /* of a room: as many as fit on a GPU */
#define SIZES_MAX 64u  /* rooms of more GPUs are in one list */
#define SECOND INT64_C(1000000000)

enum { ORDER, LANES, TURN, PATIENCE };
enum { FAIR, FIFO, SRTF, PACK };

/* Rooms in which something happened; and shelves of those that could take one more, by their GPUs.
 * It is their keepers that are listed. */
enum { DUE, LISTS, OPEN = LISTS };

/* Some GPUs, and the jobs that are on all of them. Kept in the bytes of one of these jobs, its
 * keeper. Rooms are named by the link to it: its id plus one, so that zeroed bytes name none. */
struct salus_room {
	uint32_t members[MEMBERS_MAX]; /* links, in submit order */
	uint8_t lane[MEMBERS_MAX];     /* of each */
	uint8_t count;
	uint8_t lanes;
	uint32_t gpus;
	uint64_t capacity; /* memory of each GPU */
	uint64_t used;	   /* of it, by what members keep and by the lanes */
};

struct card {
	uint32_t room;	       /* link to its keeper; 0: it is in none */
	struct salus_room own; /* if it is the keeper */
};

struct desk {
	uint32_t blocked; /* link to the job that none overtakes; 0: none */
	bool changed;	  /* one that found no place may find one now */
};

static inline struct card *card_of(struct sw_view *view, const struct sw_job *job)
{
	return sw_job_state(view, job);
}

static inline struct desk *desk_of(struct sw_view *view)
{
	return sw_view_state(view);
}

static inline const struct sw_job *linked(struct sw_view *view, uint32_t link)
{
	return link == 0 ? NULL : sw_view_job(view, (struct sw_job_id){link - 1});
}

static inline struct salus_room *room_of(struct sw_view *view, uint32_t link)
{
	return link == 0 ? NULL : &card_of(view, linked(view, link))->own;
}

static inline uint32_t link_of(const struct sw_job *job)
{
	return job == NULL ? 0 : job->id.v + 1;
}

/* Of rooms of so many GPUs. */
static inline uint32_t shelf_of(uint32_t gpus)
{
	return OPEN + (gpus < SIZES_MAX ? gpus : SIZES_MAX);
}

/* Whether it can be on GPUs with others. */
static inline bool shares(const struct sw_job *job)
{
	return job->gpu_memory_bytes > 0 && !job->cannot_pause;
}

/* What it needs of a GPU within an iteration, beside what it keeps. */
static inline uint64_t ephemeral(const struct sw_job *job)
{
	return job->gpu_memory_bytes - sw_job_floor(job);
}

/* ---- rooms (salus_rooms.c) */

/* A place for a job in a room. Rule 1 is a lane of its own, 2 a lane that is large enough, 3 one
 * that grows. */
struct seat {
	uint32_t room; /* link; 0: nowhere */
	uint8_t lane;
	uint8_t rule;
	uint64_t slack; /* by how much the lane is larger than it needs, or has to grow */
};

/* Something happened there: it is looked at in this decision, or the next. */
void sw_salus_mark(struct sw_view *view, uint32_t room);
/* The first room that is to be looked at, which is then no longer; 0: none. */
uint32_t sw_salus_next_due(struct sw_view *view);
/* A room of its own for a job that runs and is in none. */
void sw_salus_found(struct sw_view *view, const struct sw_job *job);
/* Puts a job that runs there into a lane of a room. */
void sw_salus_enter(struct sw_view *view, const struct sw_job *job, uint32_t room, uint8_t lane);
/* The job is not there any more. */
void sw_salus_leave(struct sw_view *view, const struct sw_job *job);
/* The best seat in this room, with at most so many lanes; its room is 0 where there is none. */
struct seat sw_salus_seat(struct sw_view *view, const struct sw_job *job, uint32_t room, uint32_t lanes);
/* The best in any room. */
struct seat sw_salus_seat_anywhere(struct sw_view *view, const struct sw_job *job, uint32_t lanes);
/* Gives members that stand still lanes of their own, as far as there is room for them. */
void sw_salus_spread(struct sw_view *view, uint32_t room, uint32_t lanes);
/* The room that a job which runs seems to be in with others; 0: none. */
uint32_t sw_salus_find(struct sw_view *view, const struct sw_job *job);

#endif
