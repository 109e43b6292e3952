/* Tokens: which user a TCP client is. A file of lines "role secret [uid[:gid] [name [option...]]]",
 * readable by its owner only.
 *
 *	# what each may do
 *	operator sha256:5f2c...
 *	agent    sha256:88d0...
 *	user     sha256:01ab... 1000:1000 laptop expires=1795000000
 *
 * The secret is the hash of a token, so that a reader of the file can use none of them. A token
 * itself, written by hand, is taken as well. A user's token names the user whose jobs it may see in
 * full and change. Operators and agents act as the controller's own user unless one is named. A
 * name "-" is none. Options are "key=value". `expires`, in seconds since 1970, ends a token.
 * `nodes` binds one of an agent to names of nodes, with commas between them, in which * and ? stand
 * for any. */
#ifndef SW_SERVER_TOKENS_H
#define SW_SERVER_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"

#define SW_TOKENS_MAX 4096u
#define SW_TOKEN_DIGEST 32u
#define SW_TOKEN_NAME_MAX 63u
#define SW_TOKEN_ID_SIZE 13u
#define SW_TOKEN_NODES_MAX 255u /* characters of the names of nodes */
/* So many nodes a token can bring, without and with names that it is bound to. */
#define SW_TOKEN_NODES_FREE 64u
#define SW_TOKEN_NODES_BOUND 4096u
#define SW_TOKEN_SIZE 65u /* of one that is made here, with its end */

struct sw_tokens;

struct sw_token_owner {
	unsigned role; /* enum sw_role: one of them */
	uint32_t uid, gid;
	int64_t expires_at_s;		    /* since 1970; 0: never */
	char nodes[SW_TOKEN_NODES_MAX + 1]; /* of an agent: the nodes that it may speak for; "": those that it was the first to speak for */
};

/* What can be told of a token. */
struct sw_token_view {
	struct sw_token_owner owner;
	char id[SW_TOKEN_ID_SIZE];
	const char *role, *name;
};

/* Refused: a file that others can read, or that belongs to another user; lines that are not of
 * the form; tokens that are too short. */
int sw_tokens_read(const char *path, struct sw_tokens **ret_tokens, struct sw_err *err);
void sw_tokens_free(struct sw_tokens *tokens);
SW_DEFINE_FREEP(struct sw_tokens, sw_tokens_free)

void sw_token_digest(const char *token, unsigned char ret_digest[SW_TOKEN_DIGEST]);
/* The token of this hash, if it has not ended at `now_s`. Looks at all of them, whichever it is. */
bool sw_tokens_find(const struct sw_tokens *tokens, const unsigned char digest[SW_TOKEN_DIGEST], int64_t now_s,
		    struct sw_token_owner *ret_owner);
/* The beginning of its hash, as people see it. */
void sw_token_id(const unsigned char digest[SW_TOKEN_DIGEST], char ret_id[SW_TOKEN_ID_SIZE]);
/* Whether there is a token of that id that has not ended. */
bool sw_tokens_has(const struct sw_tokens *tokens, const char *id, int64_t now_s);
/* Whether the names of nodes are of the form, and whether they have this one. */
bool sw_token_nodes_are_good(const char *nodes);
bool sw_token_nodes_match(const char *nodes, const char *name);
/* Whether a token ended after `from_s` and not after `to_s`. */
bool sw_tokens_ended(const struct sw_tokens *tokens, int64_t from_s, int64_t to_s);

size_t sw_tokens_count(const struct sw_tokens *tokens);
void sw_tokens_view(const struct sw_tokens *tokens, size_t index, struct sw_token_view *ret_view);

/* ---- changing the file (tokens_change.c): whole or not at all, one at a time */
/* Makes the file with a fresh operator's, agent's and user's token (of the caller) where there is
 * none. Beside it "<path>.own" has these tokens themselves, for programs of the same user. */
int sw_tokens_make(const char *path, struct sw_err *err);
/* One more; `name` may be "". The token is told here and never again. */
int sw_tokens_add(const char *path, const struct sw_token_owner *owner, const char *name, char ret_token[SW_TOKEN_SIZE],
		  struct sw_err *err);
/* Takes away the one with this id or name; SW_ENOTFOUND, or SW_EINPUT where several have it. */
int sw_tokens_remove(const char *path, const char *which, struct sw_err *err);

#endif
