/* The bytes of a trace file: from a path, from standard input or from memory, gunzipped
 * where the content is gzip.
 *
 * gzip is undone here with zlib and not by libarchive, which does the rest (see stream.h). The
 * check sum of a gzip member is not compared by libarchive, so a damaged file would be read as
 * other numbers.
 */
#ifndef SW_SIM_TRACE_SOURCE_H
#define SW_SIM_TRACE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/error.h"

struct sw_source;

/* Opens `path`; "-" is standard input. A path that does not exist gives SW_ENOTFOUND. */
int sw_source_open(const char *path, struct sw_source **ret_source, struct sw_err *err);
/* The bytes stay the caller's and must outlive the source; `name` is used in messages. */
int sw_source_open_memory(const char *name, const void *bytes, size_t size, struct sw_source **ret_source, struct sw_err *err);
void sw_source_close(struct sw_source *source);
SW_DEFINE_FREEP(struct sw_source, sw_source_close)

/* The next piece, valid until the next call; *ret_size is 0 at the end. */
int sw_source_next(struct sw_source *source, const void **ret_bytes, size_t *ret_size, struct sw_err *err);

/* Starts over. SW_EIO where that is impossible (pipes, terminals); nothing has changed then. */
int sw_source_rewind(struct sw_source *source);

#endif
