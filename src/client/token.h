/* The token that a program on this machine comes with, from a file of tokens or of one token. */
#ifndef SW_CLIENT_TOKEN_H
#define SW_CLIENT_TOKEN_H

#include "base/error.h"

/* The first token of this role that can be read in "<path>.own" or in the file itself; a file
 * with one word has that. SW_ENOTFOUND when there is none; SW_EDENIED where others can read the
 * file. The caller frees. */
int sw_token_first(const char *path, unsigned role, char **ret_token, struct sw_err *err);

#endif
