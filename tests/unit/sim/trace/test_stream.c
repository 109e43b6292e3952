/* Lines out of plain, compressed, archived, cut off and damaged files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "sim/trace/stream.h"
#include "unit/sim/trace/support.h"

/* Several lines that compress to a few hundred bytes, with all letters that
 * could go wrong unnoticed. */
static const char sample[] = "job_id,num_gpu,submit_time,duration\n0,1,0,164\n1,8,30,147\n2,2,53,127\n3,4,79,1221\n4,1,98,311\n"
			     "5,2,131,908\n6,16,177,1512\n7,1,178,33\n8,1,181,77\n9,2,190,654\n";

static const char *const filters[] = {"none", "gzip", "xz", "zstd"};

/* Reads all lines into one text with newlines. Returns the stream's code; the text is
 * what came before an error. */
static int read_all(struct sw_stream *stream, char *text, size_t size, struct sw_err *err)
{
	size_t at = 0;
	for (;;) {
		const char *line;
		size_t length;
		int r = sw_stream_next(stream, &line, &length, err);
		if (r < 0 || line == NULL)
			return r;
		assert_true(at + length + 2 <= size);
		memcpy(text + at, line, length);
		text[at + length] = '\n';
		text[at + length + 1] = '\0';
		at += length + 1;
	}
}

static int read_memory(const void *bytes, size_t size, char *text, size_t text_size, struct sw_err *err)
{
	SW_CLEANUP(sw_stream_closep) struct sw_stream *stream = NULL;
	text[0] = '\0';
	int r = sw_stream_open_memory("memory", bytes, size, &stream, err);
	return r < 0 ? r : read_all(stream, text, text_size, err);
}

static int read_file(const char *path, char *text, size_t text_size, struct sw_err *err)
{
	SW_CLEANUP(sw_stream_closep) struct sw_stream *stream = NULL;
	text[0] = '\0';
	int r = sw_stream_open(path, &stream, err);
	return r < 0 ? r : read_all(stream, text, text_size, err);
}

static void expect(const char *input, size_t size, const char *expected)
{
	char text[4096];
	struct sw_err err = {0};
	if (read_memory(input, size, text, sizeof text, &err) < 0)
		fail_msg("%s", words(&err));
	assert_string_equal(text, expected);
}

static void test_line_ends(void **state)
{
	(void)state;
	expect("a\nb\n", 4, "a\nb\n");
	expect("a\nb", 3, "a\nb\n");
	expect("a\r\nb\r\n", 6, "a\nb\n");
	expect("a\r\nb", 4, "a\nb\n");
	expect("a\n\n\nb\n", 6, "a\n\n\nb\n");
	expect("\n", 1, "\n");
	expect("\xef\xbb\xbf"
	       "a\nb\n",
	       7, "a\nb\n");
	expect("\xef\xbb\xbf", 3, "\n");
	expect("a\tb\xc3\xa4\n", 6, "a\tb\xc3\xa4\n");
}

static void test_line_numbers(void **state)
{
	(void)state;
	SW_CLEANUP(sw_stream_closep) struct sw_stream *stream = NULL;
	struct sw_err err = {0};
	const char *line;
	size_t size;
	assert_int_equal(sw_stream_open_memory("memory", "a\n\nc", 4, &stream, &err), 0);
	assert_string_equal(sw_stream_name(stream), "memory");
	for (uint64_t number = 1; number <= 3; number++) {
		assert_int_equal(sw_stream_next(stream, &line, &size, &err), 0);
		assert_int_equal(sw_stream_line(stream), number);
	}
	for (int i = 0; i < 3; i++) {
		assert_int_equal(sw_stream_next(stream, &line, &size, &err), 0);
		assert_null(line);
	}
}

static void test_every_filter_gives_the_same_lines(void **state)
{
	(void)state;
	for (size_t i = 0; i < 4; i++) {
		SW_CLEANUP(bytes_free) struct bytes packed = pack(filters[i], sample, sizeof sample - 1);
		expect(packed.data, packed.size, sample);
		const struct member members[] = {{"folder/", NULL}, {"folder/a.csv", sample}, {NULL, NULL}};
		SW_CLEANUP(bytes_free) struct bytes archive = pack_tar(filters[i], members);
		expect(archive.data, archive.size, sample);
	}
}

static void test_concatenated_files(void **state)
{
	(void)state;
	for (size_t i = 1; i < 4; i++) {
		SW_CLEANUP(bytes_free) struct bytes a = pack(filters[i], "one\ntw", 6);
		SW_CLEANUP(bytes_free) struct bytes b = pack(filters[i], "o\nthree\n", 8);
		char both[1024];
		memcpy(both, a.data, a.size);
		memcpy(both + a.size, b.data, b.size);
		expect(both, a.size + b.size, "one\ntwo\nthree\n");
	}
}

static void test_behind_gzip_only_zeros(void **state)
{
	(void)state;
	SW_CLEANUP(bytes_free) struct bytes packed = pack("gzip", "one\n", 4);
	char padded[200] = {0}, text[100];
	memcpy(padded, packed.data, packed.size);
	expect(padded, packed.size + 100, "one\n");
	padded[packed.size + 50] = 'x';
	struct sw_err err = {0};
	assert_int_equal(read_memory(padded, packed.size + 100, text, sizeof text, &err), SW_EINPUT);
	assert_says(&err, "followed by something else");
}

/* As a trace, since a piece of a magic number may be a line of text as far as a stream can tell. */
static void expect_refused(const char *what, const struct bytes *packed, size_t size)
{
	struct sw_err err = {0};
	struct sw_trace *trace = NULL;
	int r = sw_trace_parse("memory", packed->data, size, NULL, &trace, &err);
	if (r >= 0)
		fail_msg("%s cut off at byte %zu of %zu was read as %zu jobs", what, size, packed->size, trace->jobs.count);
	assert_int_equal(r, err.code);
	assert_says(&err, "cannot read trace 'memory'");
	assert_true(err.detail[0] != '\0');
}

static void test_truncation_at_every_byte_is_an_error(void **state)
{
	(void)state;
	for (size_t i = 1; i < 4; i++) {
		SW_CLEANUP(bytes_free) struct bytes packed = pack(filters[i], sample, sizeof sample - 1);
		SW_CLEANUP(sw_trace_freep) struct sw_trace *whole = NULL;
		assert_int_equal(sw_trace_parse("memory", packed.data, packed.size, NULL, &whole, NULL), 0);
		assert_int_equal(whole->jobs.count, 10);
		for (size_t size = 0; size < packed.size; size++)
			expect_refused(filters[i], &packed, size);
	}
}

/* An uncompressed archive may lack its end marker, so only a cut inside the file is noticed. */
static void test_truncated_tar(void **state)
{
	(void)state;
	const struct member members[] = {{"a.csv", sample}, {NULL, NULL}};
	SW_CLEANUP(bytes_free) struct bytes archive = pack_tar("none", members);
	for (size_t size = 0; size < 512 + sizeof sample - 1; size++)
		expect_refused("tar", &archive, size);
}

static void test_a_damaged_byte_is_never_read_as_other_lines(void **state)
{
	(void)state;
	/* zstd files may lack a check sum, and libarchive writes them so. */
	for (size_t i = 1; i < 3; i++) {
		SW_CLEANUP(bytes_free) struct bytes packed = pack(filters[i], sample, sizeof sample - 1);
		size_t noticed = 0;
		for (size_t at = 0; at < packed.size; at++)
			for (int bit = 0; bit < 8; bit++) {
				struct sw_err err = {0};
				char text[4096];
				packed.data[at] = (char)(packed.data[at] ^ (1 << bit));
				int r = read_memory(packed.data, packed.size, text, sizeof text, &err);
				if (r >= 0 && strcmp(text, sample) != 0)
					fail_msg("%s with bit %d of byte %zu flipped was read as '%s'", filters[i], bit, at, text);
				noticed += r < 0;
				packed.data[at] = (char)(packed.data[at] ^ (1 << bit));
			}
		assert_true(noticed > packed.size * 6);
	}
}

static void test_damage_names_the_line(void **state)
{
	(void)state;
	/* Enough lines that many come out before the cut. */
	SW_CLEANUP(sw_freep) char *text = malloc(1 << 20);
	SW_CLEANUP(sw_freep) char *out = malloc(1 << 20);
	size_t size = 0;
	for (unsigned i = 0; i < 40000; i++)
		size += (size_t)sprintf(text + size, "%u,%u\n", i, i * 2654435761u);
	SW_CLEANUP(bytes_free) struct bytes packed = pack("xz", text, size);
	struct sw_err err = {0};
	assert_int_equal(read_memory(packed.data, packed.size - 40000, out, 1 << 20, &err), SW_EINPUT);
	assert_says(&err, "the xz is damaged or cut off behind line ");
	unsigned long long line = 0;
	assert_int_equal(sscanf(strstr(err.detail, "behind line "), "behind line %llu", &line), 1);
	size_t lines = 0;
	for (const char *c = out; *c != '\0'; c++)
		lines += *c == '\n';
	assert_in_range(line, lines, lines + 1);
	assert_true(lines > 10000);
	assert_memory_equal(out, text, strlen(out));
}

static void test_lines_across_blocks(void **state)
{
	(void)state;
	/* Lines of growing length, so that block borders fall everywhere in a line. */
	SW_CLEANUP(sw_freep) char *text = malloc(4 << 20);
	SW_CLEANUP(sw_freep) char *out = malloc(4 << 20);
	size_t size = 0;
	for (size_t length = 0; length < 1500; length++) {
		memset(text + size, 'a' + (int)(length % 26), length);
		size += length;
		text[size++] = '\n';
	}
	text[size] = '\0';
	for (size_t i = 0; i < 4; i++) {
		SW_CLEANUP(bytes_free) struct bytes packed = pack(filters[i], text, size);
		struct sw_err err = {0};
		assert_int_equal(read_memory(packed.data, packed.size, out, 4 << 20, &err), 0);
		assert_string_equal(out, text);
	}
}

static void test_longest_line(void **state)
{
	(void)state;
	SW_CLEANUP(sw_freep) char *text = malloc(SW_STREAM_LINE_MAX + 100);
	SW_CLEANUP(sw_freep) char *out = malloc(SW_STREAM_LINE_MAX + 100);
	memcpy(text, "ab\n", 3);
	memset(text + 3, 'x', SW_STREAM_LINE_MAX + 1);
	struct sw_err err = {0};
	assert_int_equal(read_memory(text, 3 + SW_STREAM_LINE_MAX, out, SW_STREAM_LINE_MAX + 100, &err), 0);
	assert_int_equal(strlen(out), 3 + SW_STREAM_LINE_MAX + 1);
	assert_int_equal(read_memory(text, 3 + SW_STREAM_LINE_MAX + 1, out, SW_STREAM_LINE_MAX + 100, &err), SW_EINPUT);
	assert_says(&err, "line 2 is longer than 1 MiB");
}

static void test_not_text(void **state)
{
	(void)state;
	char text[100];
	struct sw_err err = {0};
	assert_int_equal(read_memory("ab\nc\0d\n", 7, text, sizeof text, &err), SW_EINPUT);
	assert_says(&err, "line 2 is not text: byte 2 is 0x00");
	sw_err_clear(&err);
	assert_int_equal(read_memory("\x7f"
				     "ELF\x02\x01",
				     6, text, sizeof text, &err),
			 SW_EINPUT);
	assert_says(&err, "line 1 is not text: byte 5 is 0x02");
	sw_err_clear(&err);
	assert_int_equal(read_memory("0123456789abcdefghij\x1bklm\n", 25, text, sizeof text, &err), SW_EINPUT);
	assert_says(&err, "byte 21 is 0x1b");
	sw_err_clear(&err);
	assert_int_equal(read_memory("a\rb\n", 4, text, sizeof text, &err), SW_EINPUT);
	sw_err_clear(&err);
	assert_int_equal(read_memory("\xff\xfej\0o\0", 6, text, sizeof text, &err), SW_EINPUT);
	assert_says(&err, "UTF-16");
}

static void test_empty(void **state)
{
	(void)state;
	char text[100];
	const struct member no_text[] = {{"a.csv", ""}, {NULL, NULL}};
	for (size_t i = 0; i < 4; i++) {
		SW_CLEANUP(bytes_free) struct bytes packed = pack(filters[i], "", 0);
		SW_CLEANUP(bytes_free) struct bytes archive = pack_tar(filters[i], no_text);
		struct sw_err err = {0};
		assert_int_equal(read_memory(packed.data, packed.size, text, sizeof text, &err), SW_EINPUT);
		assert_says(&err, "the file is empty");
		sw_err_clear(&err);
		assert_int_equal(read_memory(archive.data, archive.size, text, sizeof text, &err), SW_EINPUT);
		assert_says(&err, "the file is empty");
	}
}

static void test_members(void **state)
{
	(void)state;
	const struct member members[] = {{"a/", NULL}, {"a/one.csv", "1\n"}, {"a/two.csv", "2\n"}, {"./three.csv", "3\n"}, {NULL, NULL}};
	SW_CLEANUP(bytes_free) struct bytes archive = pack_tar("xz", members);
	const char *path = temporary_file("members.tar.xz", archive.data, archive.size);
	char name[400], text[100];
	struct sw_err err = {0};
	snprintf(name, sizeof name, "%s:a/two.csv", path);
	assert_int_equal(read_file(name, text, sizeof text, &err), 0);
	assert_string_equal(text, "2\n");
	snprintf(name, sizeof name, "%s:three.csv", path);
	assert_int_equal(read_file(name, text, sizeof text, &err), 0);
	assert_string_equal(text, "3\n");

	assert_int_equal(read_file(path, text, sizeof text, &err), SW_EINPUT);
	assert_says(&err, "the archive holds 3 files: a/one.csv, a/two.csv, three.csv");
	assert_says(&err, "members.tar.xz:a/one.csv");
	sw_err_clear(&err);
	snprintf(name, sizeof name, "%s:a/tow.csv", path);
	assert_int_equal(read_file(name, text, sizeof text, &err), SW_ENOTFOUND);
	assert_says(&err, "holds no 'a/tow.csv'");
	assert_says(&err, "Did you mean 'a/two.csv'?");
}

static void test_colons_in_names(void **state)
{
	(void)state;
	char name[400], text[100];
	struct sw_err err = {0};
	const char *path = temporary_file("with:colon.csv", "1\n", 2);
	assert_int_equal(read_file(path, text, sizeof text, &err), 0);
	snprintf(name, sizeof name, "%s:member", path);
	assert_int_equal(read_file(name, text, sizeof text, &err), SW_EINPUT);
	assert_says(&err, "is not a tar archive");
	const struct member members[] = {{"a:b", "2\n"}, {"c", "3\n"}, {NULL, NULL}};
	SW_CLEANUP(bytes_free) struct bytes archive = pack_tar("gzip", members);
	snprintf(name, sizeof name, "%s:a:b", temporary_file("x.tar.gz", archive.data, archive.size));
	sw_err_clear(&err);
	assert_int_equal(read_file(name, text, sizeof text, &err), 0);
	assert_string_equal(text, "2\n");
}

static void test_missing_and_folder(void **state)
{
	(void)state;
	char text[100];
	struct sw_err err = {0};
	assert_int_equal(read_file("/nonexistent/x.csv", text, sizeof text, &err), SW_ENOTFOUND);
	assert_says(&err, "cannot read trace '/nonexistent/x.csv'");
	sw_err_clear(&err);
	assert_int_equal(read_file("/nonexistent/x.tar:y", text, sizeof text, &err), SW_ENOTFOUND);
	assert_says(&err, "cannot read trace '/nonexistent/x.tar:y'");
	sw_err_clear(&err);
	assert_int_equal(read_file("/", text, sizeof text, &err), SW_EINPUT);
	assert_says(&err, "it is a folder");
}

/* Runs `body` with the bytes on standard input, through a pipe. */
static int read_standard_input(const char *bytes, size_t size, char *text, size_t text_size, struct sw_err *err)
{
	int ends[2], saved = dup(STDIN_FILENO);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], bytes, size), (ssize_t)size);
	close(ends[1]);
	dup2(ends[0], STDIN_FILENO);
	close(ends[0]);
	int r = read_file("-", text, text_size, err);
	/* Still open: closing a stream leaves standard input to its owner. */
	assert_true(dup2(STDIN_FILENO, STDIN_FILENO) == STDIN_FILENO);
	dup2(saved, STDIN_FILENO);
	close(saved);
	return r;
}

static void test_standard_input(void **state)
{
	(void)state;
	char text[4096];
	struct sw_err err = {0};
	SW_CLEANUP(bytes_free) struct bytes packed = pack("gzip", sample, sizeof sample - 1);
	assert_int_equal(read_standard_input(packed.data, packed.size, text, sizeof text, &err), 0);
	assert_string_equal(text, sample);
	const struct member members[] = {{"a.csv", "1\n"}, {NULL, NULL}};
	SW_CLEANUP(bytes_free) struct bytes archive = pack_tar("none", members);
	assert_int_equal(read_standard_input(archive.data, archive.size, text, sizeof text, &err), SW_EINPUT);
	assert_says(&err, "can only be read from a file");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_line_ends),
		cmocka_unit_test(test_line_numbers),
		cmocka_unit_test(test_every_filter_gives_the_same_lines),
		cmocka_unit_test(test_concatenated_files),
		cmocka_unit_test(test_behind_gzip_only_zeros),
		cmocka_unit_test(test_truncation_at_every_byte_is_an_error),
		cmocka_unit_test(test_truncated_tar),
		cmocka_unit_test(test_a_damaged_byte_is_never_read_as_other_lines),
		cmocka_unit_test(test_damage_names_the_line),
		cmocka_unit_test(test_lines_across_blocks),
		cmocka_unit_test(test_longest_line),
		cmocka_unit_test(test_not_text),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_members),
		cmocka_unit_test(test_colons_in_names),
		cmocka_unit_test(test_missing_and_folder),
		cmocka_unit_test(test_standard_input),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
