#include "unit/sim/trace/support.h"

#include <archive.h>
#include <archive_entry.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { PACKED_MAX = 8 << 20 };

void bytes_free(struct bytes *bytes)
{
	free(bytes->data);
}

static struct archive *start(const char *filter, struct bytes *out)
{
	out->data = malloc(PACKED_MAX);
	assert_non_null(out->data);
	struct archive *archive = archive_write_new();
	if (strcmp(filter, "gzip") == 0)
		archive_write_add_filter_gzip(archive);
	else if (strcmp(filter, "xz") == 0)
		archive_write_add_filter_xz(archive);
	else if (strcmp(filter, "zstd") == 0)
		archive_write_add_filter_zstd(archive);
	archive_write_set_bytes_in_last_block(archive, 1);
	return archive;
}

static void add(struct archive *archive, const char *name, const char *text, size_t size)
{
	struct archive_entry *entry = archive_entry_new();
	archive_entry_set_pathname(entry, name);
	archive_entry_set_filetype(entry, name[strlen(name) - 1] == '/' ? AE_IFDIR : AE_IFREG);
	archive_entry_set_perm(entry, 0644);
	archive_entry_set_size(entry, (int64_t)size);
	assert_int_equal(archive_write_header(archive, entry), ARCHIVE_OK);
	if (size > 0)
		assert_int_equal(archive_write_data(archive, text, size), (int64_t)size);
	archive_entry_free(entry);
}

static void finish(struct archive *archive)
{
	assert_int_equal(archive_write_close(archive), ARCHIVE_OK);
	archive_write_free(archive);
}

struct bytes pack(const char *filter, const char *text, size_t size)
{
	struct bytes out = {0};
	struct archive *archive = start(filter, &out);
	archive_write_set_format_raw(archive);
	assert_int_equal(archive_write_open_memory(archive, out.data, PACKED_MAX, &out.size), ARCHIVE_OK);
	add(archive, "data", text, size);
	finish(archive);
	return out;
}

struct bytes pack_tar(const char *filter, const struct member *members)
{
	struct bytes out = {0};
	struct archive *archive = start(filter, &out);
	archive_write_set_format_ustar(archive);
	assert_int_equal(archive_write_open_memory(archive, out.data, PACKED_MAX, &out.size), ARCHIVE_OK);
	for (; members->name != NULL; members++)
		add(archive, members->name, members->text, members->text == NULL ? 0 : strlen(members->text));
	finish(archive);
	return out;
}

static char folder[256];
static char paths[32][320];
static size_t path_count;

static void remove_files(void)
{
	for (size_t i = 0; i < path_count; i++)
		unlink(paths[i]);
	rmdir(folder);
}

const char *temporary_file(const char *name, const void *data, size_t size)
{
	if (folder[0] == '\0') {
		const char *root = getenv("TMPDIR");
		snprintf(folder, sizeof folder, "%.200s/sharewell-test-XXXXXX", root != NULL ? root : "/tmp");
		assert_non_null(mkdtemp(folder));
		atexit(remove_files);
	}
	assert_true(path_count < 32);
	char *path = paths[path_count++];
	snprintf(path, sizeof paths[0], "%s/%.60s", folder, name);
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
	return path;
}

const char *shared_trace(const char *name)
{
	static char path[1024];
	const char *root = getenv("SHAREWELL_SHARED");
	if (root != NULL && root[0] != '\0')
		snprintf(path, sizeof path, "%s/traces/%s", root, name);
	else
		snprintf(path, sizeof path, "%s/../shared/traces/%s", SW_SOURCE_DIR, name);
	/* What stands behind the file in "archive:member" is not part of the path. */
	char file[1024];
	snprintf(file, sizeof file, "%s", path);
	char *colon = strrchr(file, ':');
	if (colon != NULL)
		*colon = '\0';
	if (access(file, R_OK) != 0) {
		print_message("SKIPPED: the public traces are not here (%s); set SHAREWELL_SHARED to the folder that holds traces/\n",
			      file);
		skip();
	}
	return path;
}

struct sw_trace *must_parse(const char *text, const char *format)
{
	struct sw_trace *trace = NULL;
	struct sw_err err = {0};
	if (sw_trace_parse("test.csv", text, strlen(text), format, &trace, &err) < 0)
		fail_msg("%s", words(&err));
	return trace;
}

const char *words(const struct sw_err *err)
{
	static char text[1400];
	sw_err_format(err, text, sizeof text);
	return text;
}

void assert_says(const struct sw_err *err, const char *needle)
{
	if (strstr(words(err), needle) == NULL)
		fail_msg("expected '%s' in: %s", needle, words(err));
}
