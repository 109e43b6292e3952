/* Tokens: who a TCP client is. A file of lines "role token [uid[:gid]]", readable by its owner only.
 *
 *	# who may ask what
 *	operator 5f2c...
 *	agent    88d0...
 *	user     01ab... 1000:1000
 *
 * A user's token names the user whose jobs it may see in full and change. Operators and agents act as the controller's own user.
 */
#ifndef SW_CONTROLLER_TOKENS_H
#define SW_CONTROLLER_TOKENS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"

#define SW_TOKENS_MAX 4096u
#define SW_TOKEN_LEAST 32u /* characters */

struct sw_tokens;

struct sw_token_owner {
	unsigned role; /* enum sw_role: one of them */
	uint32_t uid, gid;
};

/* Refused: a file that others can read, or that belongs to somebody else; lines that are not of the form; tokens that are too short. */
int sw_tokens_read(const char *path, struct sw_tokens **ret_tokens, struct sw_err *err);
void sw_tokens_free(struct sw_tokens *tokens);
SW_DEFINE_FREEP(struct sw_tokens, sw_tokens_free)

/* Takes the same time whether and where it is found. */
bool sw_tokens_find(const struct sw_tokens *tokens, const char *token, struct sw_token_owner *ret_owner);

/* Makes the file with a fresh operator's, agent's and user's token (of the caller) where there is none. */
int sw_tokens_make(const char *path, struct sw_err *err);
/* The first token of this role in the file, for programs that run beside the controller; SW_ENOTFOUND when there is none. The caller frees. */
int sw_tokens_first(const char *path, unsigned role, char **ret_token, struct sw_err *err);

#endif
