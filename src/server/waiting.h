/* What each user has in the queue. */
#ifndef SW_SERVER_WAITING_H
#define SW_SERVER_WAITING_H

#include <stdbool.h>
#include <stdint.h>

#include "api/request.h"
#include "base/error.h"
#include "base/vec.h"
#include "brain/brain.h"

struct sw_server;
struct event;

struct sw_user_jobs {
	uint32_t uid;
	uint64_t jobs, bytes;		/* at most: those that ended since the last count are in it */
	uint64_t next_jobs, next_bytes; /* of the count that goes on */
};
struct sw_waiting {
	SW_VEC(struct sw_user_jobs) users; /* by uid */
	struct event *step;
	bool counting, begun;
	uint64_t next, last;				    /* jobs that the count has yet to look at */
	const char *request;				    /* of the job looked at last: members of an array share one */
	int64_t counted_ns;				    /* uptime: when the last count ended */
	uint64_t jobs, bytes;				    /* of all */
	uint64_t states[SW_STATES], next_states[SW_STATES]; /* jobs by state, at the last count and in the one that goes on */
};
/* Jobs in each state, at the last count; asks for another. */
void sw_waiting_states(struct sw_server *server, uint64_t counts[SW_STATES]);
int sw_waiting_start(struct sw_server *server, struct sw_err *err);
void sw_waiting_stop(struct sw_server *server);
/* Room for this much more of a user: 0, 429 or 503. Counts them where there is. */
int sw_waiting_admit(struct sw_server *server, const struct sw_user *user, uint64_t jobs, uint64_t bytes, struct sw_err *err);

#endif
