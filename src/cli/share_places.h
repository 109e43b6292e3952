/* Where the shares of this user are, and what they are called. Also the names of the rules by which
 * opportunistic ones keep out of the way. */
#ifndef SW_CLI_SHARE_PLACES_H
#define SW_CLI_SHARE_PLACES_H

#include <limits.h>
#include <stdbool.h>

#include "cli/command.h"
#include "share/page.h"

extern const struct sw_cli_words sw_cli_throttle_words;
extern const struct sw_cli_words sw_cli_strangers_words, sw_cli_trespass_words, sw_cli_device_rules_words;

/* For programs that start an agent. */
#define SW_CLI_HOST_MEMORY_ABOUT "host memory that contents of GPUs may take on this machine, all programs together (half of what it has)"

/* A size that an option takes. */
int sw_cli_share_size(const char *option, const char *text, uint64_t *ret_bytes, struct sw_err *err);

/* The folder of pages, made if it is not there. */
int sw_cli_share_folder(char folder[PATH_MAX], struct sw_err *err);
/* The page of the share of that name; there may be none yet. */
int sw_cli_share_path(const char *name, char path[PATH_MAX], struct sw_err *err);
int sw_cli_share_open(const char *name, bool mapped, struct sw_share_page **ret_page, struct sw_err *err);
/* Whether the keeper of this share is still there: it holds a lock on the first byte. Or a process
 * that is off its GPUs: without its page it could not be brought back. */
bool sw_cli_share_is_alive(const char *path);

#endif
