/* The lines of a text file that may be compressed or lie in an archive, one at a time.
 *
 * What a file is, its content says and not its name: gzip (see source.h), xz, zstd, tar inside any
 * of these, or plain text. Nothing is held but one piece of the file and one line. A byte-order
 * mark and carriage returns at line ends are taken away; anything that is not text is an error.
 */
#ifndef SW_SIM_TRACE_STREAM_H
#define SW_SIM_TRACE_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"

/* A longer line is an error. */
#define SW_STREAM_LINE_MAX ((size_t)1 << 20)

struct sw_stream;

/* `path` is a file, "-" for standard input, or "archive:member". A tar archive of several files
 * needs the member's name. */
int sw_stream_open(const char *path, struct sw_stream **ret_stream, struct sw_err *err);
/* The bytes stay the caller's and must outlive the stream; `name` is used in messages. */
int sw_stream_open_memory(const char *name, const void *bytes, size_t size, struct sw_stream **ret_stream, struct sw_err *err);
void sw_stream_close(struct sw_stream *stream);
SW_DEFINE_FREEP(struct sw_stream, sw_stream_close)

/* The next line without its end, not terminated, valid until the next call; *ret_line is
 * NULL behind the last line. After an error the stream has ended. A file without a
 * single byte is an error. */
int sw_stream_next(struct sw_stream *stream, const char **ret_line, size_t *ret_size, struct sw_err *err);

/* Number of the line last returned, or of the one where reading failed; from 1. */
uint64_t sw_stream_line(const struct sw_stream *stream);
/* The path as it was given. */
const char *sw_stream_name(const struct sw_stream *stream);

#endif
