/* Invariants of an output:
 *  1. until commit the target is untouched; after a failed commit it is as it was before open.
 *  2. the temporary file lies in the target's folder, so that the rename cannot cross file systems.
 *  3. what cannot be renamed into place (a terminal, a pipe, /dev/...) is written in place and
 *     has no temporary file.
 */
#include "base/file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { READ_STEP = 64 * 1024, TEMPORARY_NAMES = 100 };

/* Stands for the errno of a write that failed unseen inside stdio. */
enum { UNKNOWN = -1 };

static int fail(struct sw_err *err, const char *verb, const char *path, int error)
{
	int code = error == ENOENT ? SW_ENOTFOUND : error == ENOMEM ? SW_ENOMEM : SW_EIO;
	sw_err_set(err, code, "cannot %s '%s'", verb, path);
	sw_err_detail(err, "%s", error == UNKNOWN ? "a write failed; the disk may be full" : strerror(error));
	return code;
}

/* Reads to the end or to one byte beyond `limit`; 0 or an errno. */
static int read_all(FILE *stream, size_t limit, char **ret_text, size_t *ret_size)
{
	SW_CLEANUP(sw_freep) char *text = NULL;
	size_t size = 0, capacity = 0;
	/* One byte past the limit tells "too long"; one more is for the terminator. */
	const size_t most = limit < SIZE_MAX - 2 ? limit + 1 : SIZE_MAX - 1;
	for (;;) {
		if (size == capacity) {
			if (capacity == 0)
				capacity = most < READ_STEP ? most : READ_STEP;
			else
				capacity = capacity > most / 2 ? most : capacity * 2;
			char *grown = realloc(text, capacity + 1);
			if (grown == NULL)
				return ENOMEM;
			text = grown;
		}
		errno = 0;
		size += fread(text + size, 1, capacity - size, stream);
		if (ferror(stream))
			return errno != 0 ? errno : EIO;
		if (feof(stream) || size > limit)
			break;
	}
	text[size] = '\0';
	*ret_text = SW_TAKE(text);
	*ret_size = size;
	return 0;
}

static int read_stream(FILE *stream, const char *name, size_t limit, char **ret_text, size_t *ret_size, struct sw_err *err)
{
	SW_CLEANUP(sw_freep) char *text = NULL;
	size_t size = 0;
	int error = read_all(stream, limit, &text, &size);
	if (error != 0)
		return fail(err, "read", name, error);
	if (size > limit) {
		sw_err_set(err, SW_ELIMIT, "cannot read '%s'", name);
		sw_err_detail(err, "it is longer than %zu bytes", limit);
		return SW_ELIMIT;
	}
	*ret_text = SW_TAKE(text);
	*ret_size = size;
	return 0;
}

int sw_file_read(const char *path, size_t limit, char **ret_text, size_t *ret_size, struct sw_err *err)
{
	if (strcmp(path, "-") == 0)
		return read_stream(stdin, "standard input", limit, ret_text, ret_size, err);
	FILE *stream = fopen(path, "re");
	if (stream == NULL)
		return fail(err, "read", path, errno);
	int r = read_stream(stream, path, limit, ret_text, ret_size, err);
	fclose(stream);
	return r;
}

struct sw_output {
	FILE *stream;
	char *target;	 /* where it goes; a symbolic link is followed, so that the link stays */
	char *temporary; /* NULL when written in place */
	char *shown;	 /* the name as the caller gave it, for messages */
};

static void release(struct sw_output *output)
{
	if (output->stream != NULL && output->stream != stdout)
		fclose(output->stream);
	if (output->temporary != NULL)
		unlink(output->temporary);
	free(output->target);
	free(output->temporary);
	free(output->shown);
	free(output);
}

static void releasep(struct sw_output **owner)
{
	if (*owner != NULL)
		release(*owner);
}

/* Creates a file beside the target under a name that is free; 0 or an errno. */
static int open_temporary(struct sw_output *output, mode_t mode)
{
	const char *slash = strrchr(output->target, '/');
	int folder = slash == NULL ? 0 : (int)(slash + 1 - output->target);
	for (int i = 0; i < TEMPORARY_NAMES; i++) {
		char *name = NULL;
		if (asprintf(&name, "%.*s.%s.%ld-%d.tmp", folder, output->target, output->target + folder, (long)getpid(), i) < 0)
			return ENOMEM;
		int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
		if (fd < 0) {
			int error = errno;
			free(name);
			if (error == EEXIST)
				continue;
			return error;
		}
		output->temporary = name;
		output->stream = fdopen(fd, "w");
		if (output->stream == NULL) {
			close(fd);
			return ENOMEM;
		}
		return 0;
	}
	return EEXIST;
}

/* 0 or an errno. */
static int open_named(struct sw_output *output)
{
	struct stat info;
	bool exists = stat(output->shown, &info) == 0;
	bool in_place = strncmp(output->shown, "/dev/", 5) == 0 || (exists && !S_ISREG(info.st_mode));
	if (in_place) {
		output->stream = fopen(output->shown, "we");
		return output->stream == NULL ? errno : 0;
	}
	/* A rename would replace even a file that may not be written. */
	if (exists && faccessat(AT_FDCWD, output->shown, W_OK, AT_EACCESS) != 0)
		return errno;
	output->target = exists ? realpath(output->shown, NULL) : strdup(output->shown);
	if (output->target == NULL)
		return errno;
	int error = open_temporary(output, exists ? info.st_mode & 0777 : 0666);
	if (error == 0 && exists)
		(void)!fchmod(fileno(output->stream), info.st_mode & 0777);
	return error;
}

int sw_output_open(const char *path, struct sw_output **ret_output, struct sw_err *err)
{
	bool standard = strcmp(path, "-") == 0;
	SW_CLEANUP(releasep) struct sw_output *output = calloc(1, sizeof *output);
	if (output == NULL)
		return fail(err, "write", path, ENOMEM);
	output->shown = strdup(standard ? "standard output" : path);
	if (output->shown == NULL)
		return fail(err, "write", path, ENOMEM);
	if (standard) {
		output->stream = stdout;
	} else {
		int error = path[0] == '\0' ? ENOENT : open_named(output);
		if (error != 0) {
			int r = fail(err, "write", path, error);
			if (error == ENOENT)
				sw_err_hint(err, "The folder must exist.");
			return r;
		}
	}
	*ret_output = SW_TAKE(output);
	return 0;
}

FILE *sw_output_stream(struct sw_output *output)
{
	return output->stream;
}

/* Pushes everything out; 0 or an errno. */
static int finish_stream(struct sw_output *output)
{
	bool failed_before = ferror(output->stream) != 0;
	if (fflush(output->stream) != 0)
		return errno;
	if (failed_before)
		return UNKNOWN;
	if (output->temporary != NULL && fsync(fileno(output->stream)) != 0)
		return errno;
	if (output->stream == stdout)
		return 0;
	FILE *stream = SW_TAKE(output->stream);
	return fclose(stream) != 0 ? errno : 0;
}

int sw_output_commit(struct sw_output *output, struct sw_err *err)
{
	assert(output != NULL);
	SW_CLEANUP(releasep) struct sw_output *owner = output;
	int error = finish_stream(output);
	if (error == 0 && output->temporary != NULL) {
		if (rename(output->temporary, output->target) != 0)
			error = errno;
		else
			free(SW_TAKE(output->temporary));
	}
	return error == 0 ? 0 : fail(err, "write", owner->shown, error);
}

void sw_output_discard(struct sw_output *output)
{
	release(output);
}
