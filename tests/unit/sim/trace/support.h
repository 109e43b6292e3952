/* What the tests of traces share: compressed copies of a text, files that go away, and where
 * the public traces are. */
#ifndef SW_TESTS_UNIT_SIM_TRACE_SUPPORT_H
#define SW_TESTS_UNIT_SIM_TRACE_SUPPORT_H

#include <stddef.h>

#include "base/error.h"
#include "sim/trace/trace.h"

struct bytes {
	char *data;
	size_t size;
};

void bytes_free(struct bytes *bytes);

/* `text` compressed with "gzip", "xz" or "zstd", or unchanged for "none". */
struct bytes pack(const char *filter, const char *text, size_t size);

struct member {
	const char *name; /* a name that ends in '/' is a folder */
	const char *text;
};

/* A tar archive of these members up to one without name, compressed as above. */
struct bytes pack_tar(const char *filter, const struct member *members);

/* Writes a file into the temporary folder and returns its path, which stays valid until the next
 * call. It is removed at exit. */
const char *temporary_file(const char *name, const void *data, size_t size);

/* Path of a file under the shared traces ("philly/philly-jobs.csv.xz"); skips the running
 * test when it is not there. */
const char *shared_trace(const char *name);

/* Reads a text; the test fails with the error's words if that fails. */
struct sw_trace *must_parse(const char *text, const char *format);

/* The error as one line. Valid until the next call. */
const char *words(const struct sw_err *err);

/* Fails unless `needle` is in the error's words. */
void assert_says(const struct sw_err *err, const char *needle);

#endif
