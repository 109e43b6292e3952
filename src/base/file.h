/* Whole files: read with a bound, written so that a reader never sees half of one. */
#ifndef SW_BASE_FILE_H
#define SW_BASE_FILE_H

#include <stddef.h>
#include <stdio.h>

#include "base/error.h"

/* Reads all of `path` ("-" is standard input), at most `limit` bytes; the text is NUL-terminated.
 * The caller frees *ret_text. */
int sw_file_read(const char *path, size_t limit, char **ret_text, size_t *ret_size, struct sw_err *err);

/* An output that appears under its name only when it is complete: written beside the target under a
 * temporary name, then renamed. "-" writes to standard output, /dev/... is written in place. */
struct sw_output;
int sw_output_open(const char *path, struct sw_output **ret_output, struct sw_err *err);
FILE *sw_output_stream(struct sw_output *output);
/* Flushes, checks every earlier write, renames into place and frees; on failure nothing is left
 * behind under the target's name. */
int sw_output_commit(struct sw_output *output, struct sw_err *err);
/* Frees and removes the temporary file. */
void sw_output_discard(struct sw_output *output);

static inline void sw_output_discardp(struct sw_output **owner)
{
	if (*owner != NULL)
		sw_output_discard(*owner);
}

#endif
