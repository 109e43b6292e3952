#include "sim/trace/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { PIECE = 64 * 1024 };

struct sw_source {
	char *name;
	int fd;			    /* -1 for memory */
	const unsigned char *bytes; /* of memory */
	size_t size, offset;

	unsigned char *raw; /* as read: PIECE bytes */
	size_t raw_size, raw_at;
	bool raw_end;

	bool started; /* the first bytes were looked at */
	bool gzip;
	bool member_open; /* in the middle of a gzip member */
	bool inflate_ready;
	z_stream inflater;
	unsigned char *plain; /* gunzipped: PIECE bytes */
};

static int source_new(const char *name, struct sw_source **ret_source, struct sw_err *err)
{
	struct sw_source *source = calloc(1, sizeof *source);
	if (source != NULL) {
		source->fd = -1;
		source->name = strdup(name);
		source->raw = malloc(PIECE);
		source->plain = malloc(PIECE);
	}
	if (source == NULL || source->name == NULL || source->raw == NULL || source->plain == NULL) {
		if (source != NULL)
			sw_source_close(source);
		sw_err_set(err, SW_ENOMEM, "cannot read trace '%s': out of memory", name);
		return SW_ENOMEM;
	}
	*ret_source = source;
	return 0;
}

int sw_source_open(const char *path, struct sw_source **ret_source, struct sw_err *err)
{
	SW_CLEANUP(sw_source_closep) struct sw_source *source = NULL;
	int r = source_new(path, &source, err);
	if (r < 0)
		return r;
	/* A copy of standard input, so that closing the source leaves the caller's open. */
	source->fd = strcmp(path, "-") == 0 ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (source->fd < 0) {
		r = sw_err_set(err, errno == ENOENT || errno == ENOTDIR ? SW_ENOTFOUND : SW_EIO, "cannot read trace '%s'", path);
		sw_err_detail(err, "%s", strerror(errno));
		return r;
	}
	struct stat status;
	if (fstat(source->fd, &status) == 0 && S_ISDIR(status.st_mode)) {
		r = sw_err_set(err, SW_EINPUT, "cannot read trace '%s'", path);
		sw_err_detail(err, "it is a folder");
		sw_err_hint(err, "Name one of the files in it.");
		return r;
	}
	*ret_source = SW_TAKE(source);
	return 0;
}

int sw_source_open_memory(const char *name, const void *bytes, size_t size, struct sw_source **ret_source, struct sw_err *err)
{
	struct sw_source *source;
	int r = source_new(name, &source, err);
	if (r < 0)
		return r;
	source->bytes = bytes;
	source->size = size;
	*ret_source = source;
	return 0;
}

void sw_source_close(struct sw_source *source)
{
	if (source->inflate_ready)
		inflateEnd(&source->inflater);
	if (source->fd >= 0)
		close(source->fd);
	free(source->name);
	free(source->raw);
	free(source->plain);
	free(source);
}

/* Refills `raw`; behind the end it stays empty. Keeps what is left in it, so that a
 * look-ahead can ask for more. */
static int read_raw(struct sw_source *source, struct sw_err *err)
{
	memmove(source->raw, source->raw + source->raw_at, source->raw_size - source->raw_at);
	source->raw_size -= source->raw_at;
	source->raw_at = 0;
	if (source->fd < 0) {
		size_t left = source->size - source->offset;
		size_t taken = left < PIECE - source->raw_size ? left : PIECE - source->raw_size;
		if (taken > 0)
			memcpy(source->raw + source->raw_size, source->bytes + source->offset, taken);
		source->raw_end = taken == left;
		source->offset += taken;
		source->raw_size += taken;
		return 0;
	}
	while (!source->raw_end && source->raw_size < PIECE) {
		ssize_t got = read(source->fd, source->raw + source->raw_size, PIECE - source->raw_size);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			int r = sw_err_set(err, SW_EIO, "cannot read trace '%s'", source->name);
			sw_err_detail(err, "%s", strerror(errno));
			return r;
		}
		source->raw_end = got == 0;
		source->raw_size += (size_t)got;
	}
	return 0;
}

static bool at_gzip_magic(const struct sw_source *source)
{
	const unsigned char *at = source->raw + source->raw_at;
	return source->raw_size - source->raw_at >= 2 && at[0] == 0x1f && at[1] == 0x8b;
}

static int gzip_failed(struct sw_source *source, const char *why, struct sw_err *err)
{
	int r = sw_err_set(err, SW_EINPUT, "cannot read trace '%s'", source->name);
	sw_err_detail(err, "the gzip data is %s", why);
	sw_err_hint(err, "Fetch or compress the file again.");
	return r;
}

/* At the start of a member, or behind the last one, where only zeros may pad the file. */
static int start_member(struct sw_source *source, struct sw_err *err)
{
	if (at_gzip_magic(source)) {
		int z = source->inflate_ready ? inflateReset(&source->inflater) : inflateInit2(&source->inflater, 15 + 16);
		if (z != Z_OK)
			return sw_err_set(err, SW_ENOMEM, "cannot read trace '%s': out of memory", source->name);
		source->inflate_ready = true;
		source->member_open = true;
		return 0;
	}
	for (; source->raw_at < source->raw_size; source->raw_at++)
		if (source->raw[source->raw_at] != 0)
			return gzip_failed(source, "followed by something else", err);
	return 0;
}

static int next_gunzipped(struct sw_source *source, const void **ret_bytes, size_t *ret_size, struct sw_err *err)
{
	z_stream *inflater = &source->inflater;
	size_t out = 0;
	while (out == 0) {
		if (source->raw_size - source->raw_at < 2 && !source->raw_end) {
			int r = read_raw(source, err);
			if (r < 0)
				return r;
		}
		if (!source->member_open) {
			int r = start_member(source, err);
			if (r < 0)
				return r;
			if (!source->member_open && source->raw_end)
				break;
			continue;
		}
		inflater->next_in = source->raw + source->raw_at;
		inflater->avail_in = (uInt)(source->raw_size - source->raw_at);
		inflater->next_out = source->plain;
		inflater->avail_out = PIECE;
		uInt before = inflater->avail_in;
		int z = inflate(inflater, Z_NO_FLUSH);
		source->raw_at += before - inflater->avail_in;
		out = PIECE - inflater->avail_out;
		if (z == Z_MEM_ERROR)
			return sw_err_set(err, SW_ENOMEM, "cannot read trace '%s': out of memory", source->name);
		if (z == Z_STREAM_END)
			source->member_open = false;
		else if (z != Z_OK && z != Z_BUF_ERROR)
			return gzip_failed(source, "damaged", err);
		else if (out == 0 && source->raw_at == source->raw_size && source->raw_end)
			return gzip_failed(source, "cut off", err);
	}
	*ret_bytes = source->plain;
	*ret_size = out;
	return 0;
}

int sw_source_next(struct sw_source *source, const void **ret_bytes, size_t *ret_size, struct sw_err *err)
{
	if (!source->started) {
		int r = read_raw(source, err);
		if (r < 0)
			return r;
		source->started = true;
		source->gzip = at_gzip_magic(source);
	}
	if (source->gzip)
		return next_gunzipped(source, ret_bytes, ret_size, err);
	if (source->raw_at == source->raw_size && !source->raw_end) {
		int r = read_raw(source, err);
		if (r < 0)
			return r;
	}
	*ret_bytes = source->raw + source->raw_at;
	*ret_size = source->raw_size - source->raw_at;
	source->raw_at = source->raw_size;
	return 0;
}

int sw_source_rewind(struct sw_source *source)
{
	if (source->fd >= 0 && lseek(source->fd, 0, SEEK_SET) != 0)
		return SW_EIO;
	source->offset = 0;
	source->raw_size = source->raw_at = 0;
	source->raw_end = source->started = source->gzip = source->member_open = false;
	return 0;
}
