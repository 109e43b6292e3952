/* The HTTP client of a program that waits for its answers: one controller, over its UNIX socket or
 * by URL and token. For those with an event loop there is poster.h.
 *
 *  1. Every failure says where the controller was looked for, or what the controller itself said.
 *  2. A read ends within seconds where nothing answers, a change within a minute, with a note
 *     meanwhile. A stream that has begun ends when the server ends it, when its reader says so, or
 *     when the caller stops (SW_ESTOPPED).
 *  3. What was refused for want of room is asked again, for a minute at most.
 */
#ifndef SW_CLIENT_CLIENT_H
#define SW_CLIENT_CLIENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"

struct sw_client;

/* How a caller waits. */
struct sw_client_manner {
	void (*note)(const char *text); /* what a person should hear meanwhile; NULL: nothing is said */
	bool (*stops)(void);		/* asked about once a second: the call ends; NULL: never */
};

/* `controller` as in address.h; `token` NULL: none; `ca` as in trust.h; `manner` may be NULL.
 * Does not connect yet. */
int sw_client_open(const char *controller, const char *token, const char *ca, const struct sw_client_manner *manner,
		   struct sw_client **ret_client, struct sw_err *err);
void sw_client_free(struct sw_client *client);
SW_DEFINE_FREEP(struct sw_client, sw_client_free)
/* For messages. */
const char *sw_client_place(const struct sw_client *client);

/* GET; the caller owns *ret_answer (json_decref). */
int sw_client_get(struct sw_client *client, const char *path, json_t **ret_answer, struct sw_err *err);
/* POST; `body` may be NULL. */
int sw_client_post(struct sw_client *client, const char *path, const json_t *body, json_t **ret_answer, struct sw_err *err);

/* Submits jobs, once: after a connection that broke it asks again with the same key, for a minute
 * and with a word to the user. */
int sw_client_submit(struct sw_client *client, const json_t *jobs, json_t **ret_answer, struct sw_err *err);

/* Reads an answer as it comes. `take` returns false when it has enough. 0 when the server
 * ended it or `take` did. */
typedef bool sw_client_take_fn(void *user, const char *bytes, size_t size);
int sw_client_stream(struct sw_client *client, const char *path, sw_client_take_fn *take, void *user, struct sw_err *err);

/* From now on `look` is called about once a second, or more often, while a call or a stream of this
 * client lasts. It may use other clients. */
typedef void sw_client_look_fn(void *user);
void sw_client_meanwhile(struct sw_client *client, sw_client_look_fn *look, void *user);

/* Whether this failure means that nothing answered, so that asking again may help. */
bool sw_client_is_away(const struct sw_client *client);
/* Whether what was asked for may have been done, though no answer came. */
bool sw_client_is_unsure(const struct sw_client *client);

#endif
