/* What the program says besides its results: always on standard error, never with a control
 * character that came from outside. */
#ifndef SW_CLI_MESSAGE_H
#define SW_CLI_MESSAGE_H

#include <stdbool.h>

#include "base/error.h"

/* "sharewell: fact: detail", and the hint on a line of its own. */
void sw_cli_print_error(const struct sw_err *err);
/* "sharewell: note: ..." */
void sw_cli_print_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* "sharewell: ..." */
void sw_cli_print_news(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* For logs: from now on each line begins with the local time, "2026-10-04T15:00:00 ". */
void sw_cli_stamp_messages(void);
bool sw_cli_stamps_messages(void);
/* A line of such a log without it. */
const char *sw_cli_unstamped(const char *line);

/* The exit status that tells a script what kind of failure it was. */
enum { SW_CLI_FAILED = 1, SW_CLI_BAD_INPUT = 2 };
int sw_cli_exit_status(int code);

#endif
