/* Files that commands write: complete or not there at all, compressed where the name says so, and
 * given up when the user interrupts. */
#ifndef SW_CLI_OUTPUT_H
#define SW_CLI_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"

/* Whether `path` could be written, found out before long work and without leaving a
 * trace of it. `what` names it in messages ("report"). `inputs` (NULL ends) are files
 * that must not be overwritten. */
int sw_cli_output_check(const char *what, const char *path, const char *const *inputs, struct sw_err *err);

/* Writes `path` with `write`; a name that ends in .gz, .xz or .zst is compressed. After an
 * interruption, SW_ESTOPPED. */
typedef int sw_cli_write_fn(FILE *stream, const void *what, struct sw_err *err);
int sw_cli_output_write(const char *path, sw_cli_write_fn *write, const void *what, struct sw_err *err);

/* Pushes out standard output; a failed write anywhere before is found here. */
int sw_cli_finish_stdout(struct sw_err *err);
/* Whether writing failed because the reader has gone ("| head"): no news. */
bool sw_cli_reader_is_gone(void);

#endif
