/* What `up` and `down` share. */
#ifndef SW_CLI_UP_H
#define SW_CLI_UP_H

#include <sys/types.h>

#include "base/error.h"

/* Locks up.pid for the life of this process: its file descriptor. SW_EDENIED: the process
 * *ret_holder has it; no message. */
int sw_cli_up_lock(const char *path, pid_t *ret_holder, struct sw_err *err);

#endif
