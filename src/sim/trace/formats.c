#include "sim/trace/formats.h"

#include <stdio.h>
#include <string.h>

#include "base/suggest.h"
#include "sim/trace/row.h"

/* The order matters for detection: a format whose columns include another's comes first. */
static const struct sw_trace_format *const formats[] = {
	&sw_trace_format_sharewell,   &sw_trace_format_muri,	  &sw_trace_format_chronus,
	&sw_trace_format_elasticflow, &sw_trace_format_philly,	  &sw_trace_format_pollux,
	&sw_trace_format_tiresias,    &sw_trace_format_shockwave, &sw_trace_format_gavel,
};

enum { FORMATS = sizeof formats / sizeof formats[0] };

const struct sw_trace_format_info *sw_trace_formats(size_t index)
{
	return index < FORMATS ? &formats[index]->info : NULL;
}

int sw_trace_format_find(const char *name, const struct sw_trace_format **ret_format, struct sw_err *err)
{
	const char *names[FORMATS + 1];
	char list[200];
	size_t at = 0;
	for (size_t i = 0; i < FORMATS; i++) {
		names[i] = formats[i]->info.name;
		at += (size_t)snprintf(list + at, sizeof list - at, "%s, ", names[i]);
		if (strcmp(name, names[i]) == 0) {
			*ret_format = formats[i];
			return 0;
		}
	}
	names[FORMATS] = "auto";
	int r = sw_err_set(err, SW_ENOTFOUND, "unknown trace format '%.60s'", name);
	const char *near = sw_suggest(name, names, FORMATS + 1, sizeof *names);
	if (near != NULL)
		sw_err_hint(err, "Did you mean '%s'?", near);
	else
		sw_err_hint(err, "Known formats: %sor auto.", list);
	return r;
}

/* "a, b, c": the header's columns as a person sees them. */
static void list_fields(const struct sw_row *row, char *text, size_t size)
{
	size_t at = 0;
	text[0] = '\0';
	for (size_t i = 0; i < row->count; i++) {
		char shown[48];
		if (at + 60 > size) {
			snprintf(text + at, size - at, ", ...");
			return;
		}
		at += (size_t)snprintf(text + at, size - at, "%s%s", i > 0 ? ", " : "", sw_field_show(&row->fields[i], shown));
	}
}

static int find_column(const struct sw_row *row, const struct sw_column *column)
{
	for (size_t i = 0; i < row->count; i++)
		if (sw_field_is_any(&row->fields[i], column->name))
			return (int)i;
	return -1;
}

static bool has_mark(const struct sw_trace_format *format, const struct sw_row *row)
{
	if (format->mark == NULL)
		return true;
	for (size_t i = 0; i < row->count; i++)
		if (sw_field_is_any(&row->fields[i], format->mark))
			return true;
	return false;
}

/* Mandatory columns of the format that the header lacks; *ret_first is one of them. */
static size_t missing_columns(const struct sw_trace_format *format, const struct sw_row *row, const struct sw_column **ret_first)
{
	size_t missing = 0;
	for (size_t i = format->layouts->count; i-- > 0;) {
		const struct sw_column *column = &format->layouts->columns[i];
		if (column->mandatory && find_column(row, column) < 0) {
			missing++;
			*ret_first = column;
		}
	}
	return missing;
}

static bool fits_shape(const struct sw_trace_format *format, const struct sw_row *row)
{
	for (size_t i = 0; i < format->layout_count; i++)
		if (row->count == format->layouts[i].count)
			return true;
	return false;
}

/* "submit_time or submission_time" */
static char *spell(const struct sw_column *column, char buffer[100])
{
	size_t at = 0;
	for (const char *c = column->name; *c != '\0' && at < 90; c++)
		at += (size_t)snprintf(buffer + at, 100 - at, *c == '|' ? " or " : "%c", *c);
	return buffer;
}

static int not_recognised(const char *file, uint64_t number, const struct sw_row *row, struct sw_err *err)
{
	int r = sw_err_set(err, SW_EINPUT, "cannot read trace '%s'", file);
	char columns[400];
	list_fields(row, columns, sizeof columns);
	sw_err_detail(err, "line %llu is no known format's first line; columns found: %s", (unsigned long long)number, columns);
	/* A header that has most of what a format needs was probably meant to be that format's. */
	const struct sw_trace_format *nearest = NULL;
	const struct sw_column *lacks = NULL;
	size_t fewest = 2;
	char spelled[100];
	for (size_t i = 0; i < FORMATS; i++) {
		const struct sw_column *first = NULL;
		size_t missing = formats[i]->header && has_mark(formats[i], row) ? missing_columns(formats[i], row, &first) : SIZE_MAX;
		if (missing < fewest) {
			fewest = missing;
			nearest = formats[i];
			lacks = first;
		}
	}
	if (nearest != NULL)
		sw_err_hint(err, "The format '%s' is near, and also needs a column %s.", nearest->info.name, spell(lacks, spelled));
	else
		sw_err_hint(err, "Name the format with --format.");
	return r;
}

int sw_trace_format_detect(const char *file, const char *line, size_t size, uint64_t number, const struct sw_trace_format **ret_format,
			   struct sw_err *err)
{
	struct sw_row row = {0};
	int r = SW_EINPUT;
	for (size_t i = 0; i < FORMATS && r < 0; i++) {
		const struct sw_trace_format *format = formats[i];
		const struct sw_column *lacks;
		if (sw_row_split(&row, format->separator, line, size) < 0)
			continue;
		if (format->header ? has_mark(format, &row) && missing_columns(format, &row, &lacks) == 0 : fits_shape(format, &row)) {
			*ret_format = format;
			r = 0;
		}
	}
	if (r < 0 && sw_row_split(&row, memchr(line, '\t', size) != NULL ? '\t' : ',', line, size) < 0)
		row.count = 0;
	if (r < 0)
		r = not_recognised(file, number, &row, err);
	sw_row_release(&row);
	return r;
}

static int misfit(const struct sw_trace_format *format, const struct sw_row *row, const char *file, uint64_t number, const char *what,
		  struct sw_err *err)
{
	char columns[400];
	list_fields(row, columns, sizeof columns);
	int r = sw_err_set(err, SW_EINPUT, "cannot read trace '%s' as %s", file, format->info.name);
	sw_err_detail(err, "line %llu has %s; columns found: %s", (unsigned long long)number, what, columns);
	sw_err_hint(err, "Is it another format? --format auto finds out.");
	return r;
}

static int fit_header(const struct sw_trace_format *format, const struct sw_row *row, const char *file, uint64_t number,
		      const struct sw_layout **ret_layout, struct sw_columns_at *ret_at, struct sw_err *err)
{
	const struct sw_layout *layout = format->layouts;
	struct sw_columns_at at;
	const struct sw_column *lacks;
	char spelled[100], what[140];
	if (missing_columns(format, row, &lacks) > 0) {
		snprintf(what, sizeof what, "no column %s", spell(lacks, spelled));
		return misfit(format, row, file, number, what, err);
	}
	for (size_t i = 0; i < layout->count; i++) {
		int first = find_column(row, &layout->columns[i]);
		at.field[i] = (int16_t)first;
		for (size_t j = (size_t)first + 1; first >= 0 && j < row->count; j++)
			if (sw_field_is_any(&row->fields[j], layout->columns[i].name)) {
				snprintf(what, sizeof what, "two columns %s", spell(&layout->columns[i], spelled));
				return misfit(format, row, file, number, what, err);
			}
	}
	*ret_layout = layout;
	*ret_at = at;
	return 0;
}

int sw_trace_format_fit(const struct sw_trace_format *format, const struct sw_row *row, const char *file, uint64_t number,
			const struct sw_layout **ret_layout, struct sw_columns_at *ret_at, struct sw_err *err)
{
	if (format->header)
		return fit_header(format, row, file, number, ret_layout, ret_at, err);
	for (size_t i = 0; i < format->layout_count; i++)
		if (row->count == format->layouts[i].count) {
			*ret_layout = &format->layouts[i];
			for (size_t j = 0; j < row->count; j++)
				ret_at->field[j] = (int16_t)j;
			return 0;
		}
	char what[80];
	snprintf(what, sizeof what, "%zu columns separated by tabs, expected %zu", row->count, format->layouts[0].count);
	return misfit(format, row, file, number, what, err);
}
