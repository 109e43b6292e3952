/* What is written goes through a cookie stream: to the compressor, if any, and on to the file. The
 * cookie is also where an interruption is noticed. */
#include "cli/output.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "cli/interrupt.h"

/* ---- before the work */

static bool same_file(const char *a, const char *b)
{
	struct stat x, y;
	return stat(a, &x) == 0 && stat(b, &y) == 0 && S_ISREG(x.st_mode) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

int sw_cli_output_check(const char *what, const char *path, const char *const *inputs, struct sw_err *err)
{
	for (; *inputs != NULL; inputs++) {
		if (!same_file(path, *inputs))
			continue;
		sw_err_set(err, SW_EINPUT, "cannot write the %s to '%s'", what, path);
		sw_err_detail(err, "that file is also read");
		sw_err_hint(err, "Choose another name.");
		return SW_EINPUT;
	}
	struct stat info;
	/* A pipe or device would notice being opened twice. */
	if (strcmp(path, "-") == 0 || (stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)))
		return 0;
	/* From here on an interruption leaves no file behind. */
	sw_cli_catch_interrupts();
	struct sw_output *probe = NULL;
	int r = sw_output_open(path, &probe, err);
	if (r == 0)
		sw_output_discard(probe);
	/* A folder that is not there is a failure to write, not a name that is unknown. */
	return r == SW_ENOTFOUND ? SW_EIO : r;
}

/* ---- compression */

struct sink {
	FILE *file;
	struct archive *compressor; /* NULL: none */
	bool stopped;
};

typedef int add_filter_fn(struct archive *archive);

static add_filter_fn *filter_for(const char *path)
{
	static const struct {
		const char *suffix;
		add_filter_fn *add;
	} filters[] = {
		{".gz", archive_write_add_filter_gzip}, {".xz", archive_write_add_filter_xz}, {".zst", archive_write_add_filter_zstd}};
	const char *dot = strrchr(path, '.');
	for (size_t i = 0; dot != NULL && i < sizeof filters / sizeof filters[0]; i++)
		if (strcmp(dot, filters[i].suffix) == 0)
			return filters[i].add;
	return NULL;
}

static la_ssize_t write_compressed(struct archive *archive, void *user, const void *bytes, size_t size)
{
	struct sink *sink = user;
	size_t written = fwrite(bytes, 1, size, sink->file);
	if (written == size)
		return (la_ssize_t)size;
	archive_set_error(archive, errno, "write failed");
	return -1;
}

static int open_compressor(struct sink *sink, add_filter_fn *add, struct sw_err *err)
{
	struct archive *archive = archive_write_new();
	struct archive_entry *entry = archive_entry_new();
	bool good = archive != NULL && entry != NULL && archive_write_set_format_raw(archive) == ARCHIVE_OK && add(archive) == ARCHIVE_OK;
	/* Unblocked: a raw file is not padded to the record size of tapes. */
	good = good && archive_write_set_bytes_in_last_block(archive, 1) == ARCHIVE_OK;
	good = good && archive_write_open(archive, sink, NULL, write_compressed, NULL) == ARCHIVE_OK;
	if (good) {
		archive_entry_set_filetype(entry, AE_IFREG);
		good = archive_write_header(archive, entry) == ARCHIVE_OK;
	}
	archive_entry_free(entry);
	if (good) {
		sink->compressor = archive;
		return 0;
	}
	const char *why = archive != NULL ? archive_error_string(archive) : NULL;
	sw_err_set(err, SW_EIO, "cannot compress");
	sw_err_detail(err, "%s", why != NULL ? why : "the library refused");
	archive_write_free(archive);
	return SW_EIO;
}

static int close_compressor(struct sink *sink)
{
	if (sink->compressor == NULL)
		return 0;
	int r = archive_write_close(sink->compressor);
	archive_write_free(SW_TAKE(sink->compressor));
	return r == ARCHIVE_OK ? 0 : SW_EIO;
}

/* ---- the cookie */

static ssize_t write_through(void *cookie, const char *bytes, size_t size)
{
	struct sink *sink = cookie;
	if (sw_cli_interrupted() != 0) {
		sink->stopped = true;
		errno = EINTR;
		return 0;
	}
	if (sink->compressor == NULL)
		return (ssize_t)fwrite(bytes, 1, size, sink->file);
	la_ssize_t written = archive_write_data(sink->compressor, bytes, size);
	return written == (la_ssize_t)size ? (ssize_t)size : 0;
}

static int stopped(struct sw_err *err)
{
	sw_err_clear(err);
	return sw_err_set(err, SW_ESTOPPED, "interrupted");
}

static int write_to(FILE *file, const char *path, sw_cli_write_fn *write, const void *what, struct sw_err *err)
{
	struct sink sink = {.file = file};
	add_filter_fn *filter = filter_for(path);
	int r = filter != NULL ? open_compressor(&sink, filter, err) : 0;
	FILE *stream = r == 0 ? fopencookie(&sink, "w", (cookie_io_functions_t){.write = write_through}) : NULL;
	if (r == 0 && stream == NULL)
		r = sw_err_set(err, SW_ENOMEM, "cannot write '%s': out of memory", path);
	if (stream != NULL) {
		r = write(stream, what, err);
		if (fclose(stream) != 0 && r == 0)
			r = SW_EIO;
	}
	if (close_compressor(&sink) < 0 && r == 0)
		r = SW_EIO;
	if (sink.stopped || sw_cli_interrupted() != 0)
		return stopped(err);
	return r;
}

int sw_cli_output_write(const char *path, sw_cli_write_fn *write, const void *what, struct sw_err *err)
{
	sw_cli_catch_interrupts();
	SW_CLEANUP(sw_output_discardp) struct sw_output *output = NULL;
	int r = sw_output_open(path, &output, err);
	if (r < 0)
		return r == SW_ENOTFOUND ? SW_EIO : r;
	struct sw_err why = {0};
	r = write_to(sw_output_stream(output), path, write, what, &why);
	/* A stream that failed fails its commit too, which knows the file and the system's own
	 * word. What has another cause is told by itself. */
	bool full = r == SW_EIO && ferror(sw_output_stream(output)) != 0;
	if (r < 0 && !full) {
		*err = why;
		return r;
	}
	return sw_output_commit(SW_TAKE(output), err);
}

int sw_cli_finish_stdout(struct sw_err *err)
{
	errno = 0;
	bool failed = ferror(stdout) != 0;
	if (fflush(stdout) == 0 && !failed)
		return 0;
	int error = errno;
	sw_err_set(err, SW_EIO, "cannot write standard output");
	sw_err_detail(err, "%s", error != 0 ? strerror(error) : "a write failed");
	return SW_EIO;
}

bool sw_cli_reader_is_gone(void)
{
	struct pollfd end = {.fd = STDOUT_FILENO};
	return ferror(stdout) != 0 && poll(&end, 1, 0) == 1 && (end.revents & POLLERR) != 0;
}
