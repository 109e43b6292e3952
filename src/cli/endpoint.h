/* Where a controller can be reached, and how: options that 'up' and 'controller' share. */
#ifndef SW_CLI_ENDPOINT_H
#define SW_CLI_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/vec.h"
#include "cli/command.h"
#include "cli/places.h"

struct sw_cli_endpoint {
	const char *port, *listen, *tls_cert, *tls_key, *socket, *operators, *bounds;
	const char *keep_jobs, *keep_for, *keep_history, *keep_events;
	bool self_signed, all_users;
};

/* Options, for a struct with a member `endpoint`. */
#define SW_CLI_ENDPOINT_OPTIONS(type)                                                                                                   \
	{"port", .kind = SW_CLI_TEXT, .argument = "N",                                                                                  \
	 .about = "listen on 127.0.0.1, too: 7411, say, or 0 for any that is free; by default on the socket alone",                     \
	 .offset = offsetof(type, endpoint.port)},                                                                                      \
		{"listen", .kind = SW_CLI_TEXT, .argument = "ADDRESS:PORT",                                                             \
		 .about = "where other machines can connect, such as 0.0.0.0:8443; beyond 127.0.0.1 it needs a certificate",            \
		 .offset = offsetof(type, endpoint.listen)},                                                                            \
		{"tls-cert",                                                                                                            \
		 .kind = SW_CLI_TEXT,                                                                                                   \
		 .is_path = true,                                                                                                       \
		 .argument = "FILE",                                                                                                    \
		 .about = "the certificate for TLS, with those that signed it behind it (PEM)",                                         \
		 .offset = offsetof(type, endpoint.tls_cert)},                                                                          \
		{"tls-key",                                                                                                             \
		 .kind = SW_CLI_TEXT,                                                                                                   \
		 .is_path = true,                                                                                                       \
		 .argument = "FILE",                                                                                                    \
		 .about = "the certificate's key (PEM)",                                                                                \
		 .offset = offsetof(type, endpoint.tls_key)},                                                                           \
		{"tls-self-signed",                                                                                                     \
		 .about = "make a certificate where there is none yet, and print the fingerprint by which clients know it",             \
		 .offset = offsetof(type, endpoint.self_signed)},                                                                       \
		{"socket",                                                                                                              \
		 .kind = SW_CLI_TEXT,                                                                                                   \
		 .is_path = true,                                                                                                       \
		 .argument = "PATH",                                                                                                    \
		 .about = "of the UNIX socket, for clients on this machine",                                                            \
		 .offset = offsetof(type, endpoint.socket)},                                                                            \
		{"all-users",                                                                                                           \
		 .about = "serve every user of this machine, at " SW_CLI_SOCKET_FOR_ALL " unless --socket says otherwise; for root",    \
		 .offset = offsetof(type, endpoint.all_users)},                                                                         \
		{"bounds", .kind = SW_CLI_TEXT, .argument = "NAME=N,...",                                                               \
		 .about = "what one user may take: connections=256, heads=32, streams=128, requests=1000 (a second), bodies=64M, "      \
			  "jobs=200000, held=512M",                                                                                     \
		 .offset = offsetof(type, endpoint.bounds)},                                                                            \
		{"keep-jobs", .kind = SW_CLI_TEXT, .argument = "N",                                                                     \
		 .about = "jobs that have ended stay in memory, the last N of them: 10000; then rows on disk answer for them",          \
		 .offset = offsetof(type, endpoint.keep_jobs)},                                                                         \
		{"keep-for", .kind = SW_CLI_TEXT, .argument = "TIME", .about = "and for so long at most: 1d",                           \
		 .offset = offsetof(type, endpoint.keep_for)},                                                                          \
		{"keep-history", .kind = SW_CLI_TEXT, .argument = "N|TIME",                                                             \
		 .about = "rows of jobs that have ended are kept, the last N of them, or for so long: 1000000, or 90d",                 \
		 .offset = offsetof(type, endpoint.keep_history)},                                                                      \
		{"keep-events", .kind = SW_CLI_TEXT, .argument = "N|TIME",                                                              \
		 .about = "what happened is kept in the journal for 'sim --journal', the last N events, or for so long: 200000, or 7d", \
		 .offset = offsetof(type, endpoint.keep_events)},                                                                       \
	{                                                                                                                               \
		"operators", .kind = SW_CLI_TEXT, .argument = "USERS",                                                                  \
			     .about = "users, with commas between, that may do on the socket what root may",                            \
			     .offset = offsetof(type, endpoint.operators)                                                               \
	}

/* As sw_cli_places(), with the socket where the options want it. Refuses options
 * that do not go together. */
int sw_cli_endpoint_places(const struct sw_cli_endpoint *endpoint, const char *state, struct sw_cli_places *ret_places, struct sw_err *err);

/* The users of --operators, by number. Release with sw_vec_free(). */
typedef SW_VEC(uint32_t) sw_cli_users;
int sw_cli_endpoint_operators(const struct sw_cli_endpoint *endpoint, sw_cli_users *users, struct sw_err *err);
/* A user by name or number: the number and the group; SW_EINPUT. */
int sw_cli_user(const char *word, uint32_t *ret_uid, uint32_t *ret_gid, struct sw_err *err);

/* Where to listen on TCP: "127.0.0.1:7411", in `buffer` or an option's own text; NULL: nowhere, as
 * where neither --port nor --listen is given. */
int sw_cli_endpoint_address(const struct sw_cli_endpoint *endpoint, char buffer[32], const char **ret_address, struct sw_err *err);
/* Whether a controller could be started so, before anything is made for it. `failures`: its file
 * of classes; NULL: none. */
int sw_cli_endpoint_check(const struct sw_cli_endpoint *endpoint, const char *failures, struct sw_err *err);

/* How long jobs that have ended are kept, into the options of a controller. */
struct sw_controller_options;
int sw_cli_endpoint_keep(const struct sw_cli_endpoint *endpoint, struct sw_controller_options *options, struct sw_err *err);

/* What people on other machines need, with lines to copy. `address`: "https://0.0.0.0:8443"; `pin`:
 * "" where an authority signed. */
void sw_cli_endpoint_print(const char *address, const char *pin, FILE *out);

#endif
