/* The HTTP client of the commands: one controller, over its UNIX socket or by URL and token.
 *
 *  1. Every failure says where the controller was looked for, or what the controller itself said.
 *  2. A read ends within seconds where nobody answers, a change within a minute, with a word to the
 *     user meanwhile; a stream that has begun ends when the server ends it, when its reader says
 *     so, or with Ctrl-C (SW_ESTOPPED).
 */
#ifndef SW_CLI_CLIENT_H
#define SW_CLI_CLIENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"

struct sw_cli_client;

/* `controller`: "https://host:port", "http://127.0.0.1:port", "unix:/path", or NULL:
 * $SHAREWELL_CONTROLLER, else the socket of the user's own controller, else that of the machine's.
 * The token of a URL is $SHAREWELL_TOKEN, else the user's in the state folder; $SHAREWELL_CA says
 * whom to believe (agent/trust.h). Does not connect yet. */
int sw_cli_client_open(const char *controller, struct sw_cli_client **ret_client, struct sw_err *err);
void sw_cli_client_free(struct sw_cli_client *client);
SW_DEFINE_FREEP(struct sw_cli_client, sw_cli_client_free)
/* For messages. */
const char *sw_cli_client_place(const struct sw_cli_client *client);

/* GET; the caller owns *ret_answer (json_decref). */
int sw_cli_client_get(struct sw_cli_client *client, const char *path, json_t **ret_answer, struct sw_err *err);
/* POST; `body` may be NULL. */
int sw_cli_client_post(struct sw_cli_client *client, const char *path, const json_t *body, json_t **ret_answer, struct sw_err *err);

/* Submits jobs, once: after a connection that broke it asks again with the same key, for a minute
 * and with a word to the user. */
int sw_cli_client_submit(struct sw_cli_client *client, const json_t *jobs, json_t **ret_answer, struct sw_err *err);

/* Reads an answer as it comes. `take` returns false when it has enough. 0 when the server
 * ended it or `take` did. */
typedef bool sw_cli_client_take_fn(void *user, const char *bytes, size_t size);
int sw_cli_client_stream(struct sw_cli_client *client, const char *path, sw_cli_client_take_fn *take, void *user, struct sw_err *err);

/* From now on `look` is called about once a second, or more often, while a call or a stream of this
 * client lasts. It may use other clients. */
typedef void sw_cli_client_look_fn(void *user);
void sw_cli_client_meanwhile(struct sw_cli_client *client, sw_cli_client_look_fn *look, void *user);

/* Whether this failure means that nobody answered, so that asking again may help. */
bool sw_cli_client_is_away(const struct sw_cli_client *client);
/* Whether what was asked for may have been done, though no answer came. */
bool sw_cli_client_is_unsure(const struct sw_cli_client *client);

#endif
