/* The HTTP client of a program with an event loop: posts to one path of the controller, one at a
 * time. For programs that wait for their answers there is client.h.
 *
 *  1. `done` is called once for each post that was not abandoned, and never from within a call of
 *     these functions.
 *  2. It tries once; when to try again is the caller's affair.
 */
#ifndef SW_CLIENT_POSTER_H
#define SW_CLIENT_POSTER_H

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"

struct event_base;
struct sw_poster;

/* How a post ended: `text` is the body of a 200, or NULL and `problem` says what went wrong. */
typedef void sw_poster_done(void *context, uint64_t number, const char *text, size_t size, const struct sw_err *problem);

struct sw_poster_options {
	const char *controller; /* as in address.h */
	const char *path;	/* "/v1/agents/sync" */
	const char *token;	/* NULL: none */
	const char *ca;		/* as in trust.h; NULL: the system's authorities are believed */
	size_t answer_max;	/* bytes */
	sw_poster_done *done;
	void *context;
};

int sw_poster_new(struct event_base *base, const struct sw_poster_options *options, struct sw_poster **ret_poster, struct sw_err *err);
/* Posts the JSON `body`, which it takes over (free()); a post that has not ended is abandoned. */
void sw_poster_send(struct sw_poster *poster, uint64_t number, char *body, size_t size);
/* Of the post that ended last: the controller had no room for it, and wants to be asked again after
 * so many seconds. 0: it said no such thing. */
int64_t sw_poster_later_s(const struct sw_poster *poster);
void sw_poster_free(struct sw_poster *poster);
SW_DEFINE_FREEP(struct sw_poster, sw_poster_free)

#endif
