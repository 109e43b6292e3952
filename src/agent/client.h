/* The way to the controller: one request at a time over HTTP, inside the event loop. */
#ifndef SW_AGENT_CLIENT_H
#define SW_AGENT_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"

struct event_base;
struct sw_client;

/* How a request ended: `text` is the body of a 200, or NULL and `problem` says
 * what went wrong, in words. */
typedef void sw_client_done(void *context, uint64_t number, const char *text, size_t size, const char *problem);

struct sw_client_options {
	const char *controller; /* "http://host:port", "https://host:port", or "unix:/path/of/socket" */
	const char *path;	/* "/v1/agents/sync" */
	const char *token;	/* bearer token; NULL: none */
	const char *ca_file;	/* who is believed to be it, as in trust.h; NULL: whom the system believes */
	sw_client_done *done;
	void *context;
};

int sw_client_new(struct event_base *base, const struct sw_client_options *options, struct sw_client **ret_client, struct sw_err *err);
/* Posts the JSON `body`, which it takes over (free()); a request that has not ended is abandoned,
 * without a call of `done`. */
void sw_client_post(struct sw_client *client, uint64_t number, char *body, size_t size);
/* Of the request that ended last: the controller had no room for it, and wants to be asked again
 * after so many seconds; 0: it said no such thing. */
int64_t sw_client_later_s(const struct sw_client *client);
void sw_client_free(struct sw_client *client);
SW_DEFINE_FREEP(struct sw_client, sw_client_free)

#endif
