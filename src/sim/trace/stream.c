#include "sim/trace/stream.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/suggest.h"
#include "base/vec.h"
#include "sim/trace/source.h"

/* Of the names of an archive's members, when they are listed for a person or searched. */
enum { MEMBERS_MAX = 100000, MEMBERS_SHOWN = 12 };

struct sw_stream {
	char *name;
	char *member; /* NULL when none was named */
	struct sw_source *source;
	struct archive *archive;
	struct sw_err source_err; /* what the source said while libarchive was asking it */

	const char *block; /* libarchive's, valid until the next one */
	size_t block_size, block_at;
	int64_t member_offset;
	SW_VEC(char) carry; /* a line that began in an earlier block */
	uint64_t line;
	bool end;
};

typedef SW_VEC(char *) member_names;

static void free_names(member_names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->items[i]);
	sw_vec_free(names);
}

static la_ssize_t give_bytes(struct archive *archive, void *client, const void **ret_bytes)
{
	struct sw_stream *stream = client;
	size_t size = 0;
	if (sw_source_next(stream->source, ret_bytes, &size, &stream->source_err) < 0) {
		archive_set_error(archive, EIO, "%s", stream->source_err.detail);
		return -1;
	}
	return (la_ssize_t)size;
}

static bool is_tar(struct sw_stream *stream)
{
	return (archive_format(stream->archive) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_TAR;
}

/* Turns what libarchive or the source found into one error. */
static int read_failed(struct sw_stream *stream, struct sw_err *err)
{
	stream->end = true;
	if (stream->source_err.code != 0) {
		if (err != NULL && err->code == 0)
			*err = stream->source_err;
		return stream->source_err.code;
	}
	bool compressed = archive_filter_count(stream->archive) > 1;
	const char *why = archive_error_string(stream->archive);
	sw_err_set(err, SW_EINPUT, "cannot read trace '%s'", stream->name);
	sw_err_detail(err, "the %s is damaged or cut off behind line %llu (%s)",
		      compressed ? archive_filter_name(stream->archive, 0) : "archive", (unsigned long long)stream->line,
		      why != NULL ? why : "no reason given");
	sw_err_hint(err, "Fetch or compress the file again.");
	return SW_EINPUT;
}

static int out_of_memory(struct sw_stream *stream, struct sw_err *err)
{
	stream->end = true;
	sw_err_set(err, SW_ENOMEM, "cannot read trace '%s': out of memory", stream->name);
	return SW_ENOMEM;
}

static int open_archive(struct sw_stream *stream, struct sw_err *err)
{
	if (stream->archive != NULL)
		archive_read_free(stream->archive);
	struct archive *archive = stream->archive = archive_read_new();
	if (archive == NULL)
		return out_of_memory(stream, err);
	archive_read_support_filter_xz(archive);
	archive_read_support_filter_zstd(archive);
	archive_read_support_format_tar(archive);
	archive_read_support_format_raw(archive);
	archive_read_support_format_empty(archive);
	if (archive_read_open(archive, stream, NULL, give_bytes, NULL) != ARCHIVE_OK)
		return read_failed(stream, err);
	return 0;
}

/* Moves to the next regular file; *ret_entry is NULL behind the last. */
static int next_file(struct sw_stream *stream, struct archive_entry **ret_entry, struct sw_err *err)
{
	for (;;) {
		struct archive_entry *entry;
		int status = archive_read_next_header(stream->archive, &entry);
		if (status == ARCHIVE_EOF) {
			*ret_entry = NULL;
			return 0;
		}
		if (status < ARCHIVE_WARN)
			return read_failed(stream, err);
		if (!is_tar(stream) || archive_entry_filetype(entry) == AE_IFREG) {
			*ret_entry = entry;
			return 0;
		}
	}
}

static const char *member_name(struct archive_entry *entry)
{
	const char *name = archive_entry_pathname(entry);
	if (name == NULL)
		return "?";
	return strncmp(name, "./", 2) == 0 ? name + 2 : name;
}

/* Walks over the files from `first` on and keeps their names, up to the one that is wanted.
 * *ret_found tells whether the stream now stands at it. */
static int walk_members(struct sw_stream *stream, struct archive_entry *first, member_names *names, bool *ret_found, struct sw_err *err)
{
	for (struct archive_entry *entry = first; entry != NULL;) {
		if (names->count == MEMBERS_MAX)
			return sw_err_set(err, SW_ELIMIT, "cannot read trace '%s': the archive has more than %d files", stream->name,
					  MEMBERS_MAX);
		char **slot = sw_vec_push(names);
		if (slot == NULL || (*slot = strdup(member_name(entry))) == NULL)
			return out_of_memory(stream, err);
		if (stream->member != NULL && strcmp(*slot, stream->member) == 0) {
			*ret_found = true;
			return 0;
		}
		int r = next_file(stream, &entry, err);
		if (r < 0)
			return r;
	}
	*ret_found = false;
	return 0;
}

/* "the archive holds 3 files: a.csv, b.csv, c.csv" */
static void describe_members(struct sw_stream *stream, const member_names *names, struct sw_err *err)
{
	char text[480];
	size_t at = 0, shown = 0;
	for (; shown < names->count && shown < MEMBERS_SHOWN && at + 60 < sizeof text; shown++)
		at += (size_t)snprintf(text + at, sizeof text - at, "%s%.48s", shown > 0 ? ", " : "", names->items[shown]);
	bool more = shown < names->count;
	if (stream->member == NULL)
		sw_err_detail(err, "the archive holds %zu files: %s%s", names->count, text, more ? ", ..." : "");
	else
		sw_err_detail(err, "the archive holds no '%s' but %s%s", stream->member, text, more ? ", ..." : "");
}

static int no_such_member(struct sw_stream *stream, const member_names *names, struct sw_err *err)
{
	int r = sw_err_set(err, stream->member == NULL ? SW_EINPUT : SW_ENOTFOUND, "cannot read trace '%s'", stream->name);
	describe_members(stream, names, err);
	const char *near = stream->member == NULL ? NULL : sw_suggest(stream->member, names->items, names->count, sizeof *names->items);
	if (near != NULL)
		sw_err_hint(err, "Did you mean '%s'?", near);
	else if (stream->member == NULL)
		sw_err_hint(err, "Name one behind a colon: '%s:%s'.", stream->name, names->items[0]);
	return r;
}

/* Without a member's name the archive is read to its end, to be sure that it holds one file only.
 * Then it is read again from the start. */
static int enter_tar(struct sw_stream *stream, struct archive_entry *first, struct sw_err *err)
{
	SW_CLEANUP(free_names) member_names names = {0};
	bool found = false;
	int r = walk_members(stream, first, &names, &found, err);
	if (r < 0 || found)
		return r;
	if (stream->member != NULL || names.count != 1)
		return no_such_member(stream, &names, err);
	if (sw_source_rewind(stream->source) < 0) {
		r = sw_err_set(err, SW_EINPUT, "cannot read trace '%s'", stream->name);
		sw_err_detail(err, "it is a tar archive, and those can only be read from a file");
		sw_err_hint(err, "Give the archive's path, or unpack the trace first.");
		return r;
	}
	struct archive_entry *entry = NULL;
	r = open_archive(stream, err);
	if (r == 0)
		r = next_file(stream, &entry, err);
	if (r == 0 && entry == NULL)
		r = sw_err_set(err, SW_EIO, "cannot read trace '%s': it changed while it was read", stream->name);
	return r;
}

static int enter(struct sw_stream *stream, struct sw_err *err)
{
	struct archive_entry *entry = NULL;
	int r = open_archive(stream, err);
	if (r == 0)
		r = next_file(stream, &entry, err);
	if (r < 0)
		return r;
	if (entry == NULL) {
		stream->end = true;
		return 0;
	}
	if (is_tar(stream))
		return enter_tar(stream, entry, err);
	if (stream->member != NULL) {
		r = sw_err_set(err, SW_EINPUT, "cannot read trace '%s'", stream->name);
		sw_err_detail(err, "the file before the colon is not a tar archive, so it has no '%s' in it", stream->member);
		return r;
	}
	return 0;
}

static int stream_new(const char *name, struct sw_stream **ret_stream, struct sw_err *err)
{
	SW_CLEANUP(sw_stream_closep) struct sw_stream *stream = calloc(1, sizeof *stream);
	if (stream == NULL || (stream->name = strdup(name)) == NULL) {
		sw_err_set(err, SW_ENOMEM, "cannot read trace '%s': out of memory", name);
		return SW_ENOMEM;
	}
	*ret_stream = SW_TAKE(stream);
	return 0;
}

/* Opens the longest part of `path` before a colon that is a file; what follows
 * the colon is the member. */
static int open_source(struct sw_stream *stream, const char *path, struct sw_err *err)
{
	struct sw_err first = {0};
	int r = sw_source_open(path, &stream->source, &first);
	SW_CLEANUP(sw_freep) char *prefix = strdup(path);
	if (prefix == NULL)
		return out_of_memory(stream, err);
	char *colon = prefix;
	while (r == SW_ENOTFOUND && (colon = strrchr(prefix, ':')) != NULL) {
		*colon = '\0';
		struct sw_err ignored = {0};
		r = prefix[0] == '\0' ? SW_ENOTFOUND : sw_source_open(prefix, &stream->source, &ignored);
		if (r == 0 && (stream->member = strdup(path + (colon - prefix) + 1)) == NULL)
			return out_of_memory(stream, err);
		if (r < 0 && r != SW_ENOTFOUND)
			first = ignored;
	}
	if (r < 0 && err != NULL && err->code == 0)
		*err = first;
	return r;
}

int sw_stream_open(const char *path, struct sw_stream **ret_stream, struct sw_err *err)
{
	SW_CLEANUP(sw_stream_closep) struct sw_stream *stream = NULL;
	int r = stream_new(path, &stream, err);
	if (r == 0)
		r = open_source(stream, path, err);
	if (r == 0)
		r = enter(stream, err);
	if (r < 0)
		return r;
	*ret_stream = SW_TAKE(stream);
	return 0;
}

int sw_stream_open_memory(const char *name, const void *bytes, size_t size, struct sw_stream **ret_stream, struct sw_err *err)
{
	SW_CLEANUP(sw_stream_closep) struct sw_stream *stream = NULL;
	int r = stream_new(name, &stream, err);
	if (r == 0)
		r = sw_source_open_memory(name, bytes, size, &stream->source, err);
	if (r == 0)
		r = enter(stream, err);
	if (r < 0)
		return r;
	*ret_stream = SW_TAKE(stream);
	return 0;
}

void sw_stream_close(struct sw_stream *stream)
{
	if (stream->archive != NULL)
		archive_read_free(stream->archive);
	if (stream->source != NULL)
		sw_source_close(stream->source);
	sw_vec_free(&stream->carry);
	free(stream->member);
	free(stream->name);
	free(stream);
}

/* Fetches the next block that is not empty; `end` is set behind the last. */
static int next_block(struct sw_stream *stream, struct sw_err *err)
{
	do {
		const void *block;
		size_t size;
		la_int64_t offset;
		int status = archive_read_data_block(stream->archive, &block, &size, &offset);
		if (status == ARCHIVE_EOF) {
			stream->end = true;
			stream->block_size = stream->block_at = 0;
			return 0;
		}
		if (status < ARCHIVE_WARN)
			return read_failed(stream, err);
		if (offset != stream->member_offset) {
			stream->end = true;
			int r = sw_err_set(err, SW_EINPUT, "cannot read trace '%s'", stream->name);
			sw_err_detail(err, "the archive holds it as a sparse file, with a hole behind line %llu",
				      (unsigned long long)stream->line);
			return r;
		}
		stream->member_offset += (int64_t)size;
		stream->block = block;
		stream->block_size = size;
		stream->block_at = 0;
	} while (stream->block_size == 0);
	return 0;
}

static int line_failed(struct sw_stream *stream, struct sw_err *err, const char *what)
{
	stream->end = true;
	stream->block_at = stream->block_size;
	int r = sw_err_set(err, SW_EINPUT, "cannot read trace '%s'", stream->name);
	sw_err_detail(err, "line %llu %s", (unsigned long long)stream->line, what);
	return r;
}

static int append(struct sw_stream *stream, const char *bytes, size_t size, struct sw_err *err)
{
	if (stream->carry.count + size > SW_STREAM_LINE_MAX) {
		int r = line_failed(stream, err, "is longer than 1 MiB");
		sw_err_hint(err, "Is this a text file with one job per line?");
		return r;
	}
	char *room = sw_vec_push_n(&stream->carry, size);
	if (room == NULL)
		return out_of_memory(stream, err);
	memcpy(room, bytes, size);
	return 0;
}

static bool is_text_byte(char c)
{
	return (unsigned char)c >= 0x20 || c == '\t';
}

/* How many bytes at the start are text, which has no control characters but tabs. Eight at a
 * time, since this looks at every byte of the file: a byte below 0x20 sets its top bit in
 * (word - 0x20..) & ~word. */
static size_t text_size(const char *line, size_t size)
{
	size_t at = 0;
	for (; at + 8 <= size; at += 8) {
		uint64_t word;
		memcpy(&word, line + at, sizeof word);
		if (((word - UINT64_C(0x2020202020202020)) & ~word & UINT64_C(0x8080808080808080)) == 0)
			continue;
		for (size_t i = at; i < at + 8; i++)
			if (!is_text_byte(line[i]))
				return i;
	}
	while (at < size && is_text_byte(line[at]))
		at++;
	return at;
}

/* Takes away what is not the line's own, and refuses what is not text. */
static int finish_line(struct sw_stream *stream, const char *line, size_t size, const char **ret_line, size_t *ret_size, struct sw_err *err)
{
	if (stream->line == 1 && size >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0) {
		line += 3;
		size -= 3;
	}
	if (stream->line == 1 && size >= 2 && (memcmp(line, "\xff\xfe", 2) == 0 || memcmp(line, "\xfe\xff", 2) == 0)) {
		int r = line_failed(stream, err, "begins like UTF-16, not like plain text");
		sw_err_hint(err, "Save the file as UTF-8 (iconv -f UTF-16 -t UTF-8).");
		return r;
	}
	if (size > 0 && line[size - 1] == '\r')
		size--;
	if (size > SW_STREAM_LINE_MAX)
		return line_failed(stream, err, "is longer than 1 MiB");
	size_t at = text_size(line, size);
	if (at < size) {
		char what[64];
		snprintf(what, sizeof what, "is not text: byte %zu is 0x%02x", at + 1, (unsigned)(unsigned char)line[at]);
		int r = line_failed(stream, err, what);
		sw_err_hint(err, "Traces are text, plain or compressed with gzip, xz or zstd, in a tar archive or not.");
		return r;
	}
	*ret_line = line;
	*ret_size = size;
	return 0;
}

/* Behind the last newline: a line that lacks one, or the end. */
static int last_line(struct sw_stream *stream, const char **ret_line, size_t *ret_size, struct sw_err *err)
{
	if (stream->carry.count > 0)
		return finish_line(stream, stream->carry.items, stream->carry.count, ret_line, ret_size, err);
	if (stream->line == 0) {
		int r = sw_err_set(err, SW_EINPUT, "cannot read trace '%s'", stream->name);
		sw_err_detail(err, "the file is empty");
		return r;
	}
	*ret_line = NULL;
	*ret_size = 0;
	return 0;
}

int sw_stream_next(struct sw_stream *stream, const char **ret_line, size_t *ret_size, struct sw_err *err)
{
	stream->carry.count = 0;
	for (;;) {
		if (stream->block_at == stream->block_size && !stream->end) {
			int r = next_block(stream, err);
			if (r < 0)
				return r;
		}
		if (stream->block_at == stream->block_size)
			return last_line(stream, ret_line, ret_size, err);
		/* An empty carry means that a line begins here: a line that runs on into the next
		 * block leaves at least one byte in it. */
		stream->line += stream->carry.count == 0;
		const char *from = stream->block + stream->block_at;
		size_t left = stream->block_size - stream->block_at;
		const char *newline = memchr(from, '\n', left);
		size_t size = newline != NULL ? (size_t)(newline - from) : left;
		stream->block_at += size + (newline != NULL);
		if (newline != NULL && stream->carry.count == 0)
			return finish_line(stream, from, size, ret_line, ret_size, err);
		int r = append(stream, from, size, err);
		if (r < 0)
			return r;
		if (newline != NULL)
			return finish_line(stream, stream->carry.items, stream->carry.count, ret_line, ret_size, err);
	}
}

uint64_t sw_stream_line(const struct sw_stream *stream)
{
	return stream->line;
}

const char *sw_stream_name(const struct sw_stream *stream)
{
	return stream->name;
}
