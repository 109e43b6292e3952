/* What the long-running commands share: where they find each other, and how they
 * say that they are ready. */
#ifndef SW_CLI_DAEMON_H
#define SW_CLI_DAEMON_H

#include <stddef.h>

#include "cli/command.h"

/* Bytes of logs that are kept of jobs that have ended. */
#define SW_CLI_KEEP_LOGS ((uint64_t)10 << 30)

/* The environment variable with the number of a file descriptor that hears
 * "ready" (and where) once. */
#define SW_CLI_READY_FD "SHAREWELL_READY_FD"
void sw_cli_say_ready(const char *where);

/* The environment variable that says that standard error is a log, into which no other program puts
 * times. It is heeded by the process that calls this, and not passed on. */
#define SW_CLI_LOG_TIMES "SHAREWELL_LOG_TIMES"
void sw_cli_daemon_begin(void);

/* One line of a daemon to standard error. */
void sw_cli_daemon_note(void *user, const char *line);

/* up.c runs its children through these words: "controller", "agent". */
extern const struct sw_cli_words sw_cli_policy_names;

#endif
