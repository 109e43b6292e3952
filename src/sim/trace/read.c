#include "sim/trace/read.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "sim/trace/row.h"
#include "sim/trace/seen.h"

struct reader {
	struct sw_stream *stream;
	const struct sw_trace_listener *listener; /* NULL: the first error ends the reading */
	const struct sw_trace_format *format;	  /* NULL until the first line */
	const struct sw_layout *layout;
	struct sw_columns_at at;
	size_t width; /* fields that each row has */
	struct sw_row header;
	char *header_line; /* what the header's fields point into */
	struct sw_row row;
	struct sw_trace *trace;
	int64_t earliest, latest; /* of what was read, where times are dates */
	struct sw_err *err;
};

static int out_of_memory(struct reader *reader)
{
	sw_err_set(reader->err, SW_ENOMEM, "cannot read trace '%s': out of memory", sw_stream_name(reader->stream));
	return SW_ENOMEM;
}

/* The name of the column as the file spells it. */
static const char *column_name(const struct reader *reader, const struct sw_column *column, char buffer[48])
{
	if (column == NULL)
		return NULL;
	if (!reader->format->header)
		return column->name;
	return sw_field_show(&reader->header.fields[reader->at.field[column - reader->layout->columns]], buffer);
}

/* The caller listens: they hear of it and the reading goes on. Otherwise an error ends it, and
 * anything less is passed over. */
static int report(struct reader *reader, enum sw_trace_severity severity, const struct sw_column *column, const char *text)
{
	char buffer[48];
	const char *name = column_name(reader, column, buffer);
	uint64_t line = sw_stream_line(reader->stream);
	if (reader->listener != NULL) {
		struct sw_trace_problem problem = {severity, line, name, text};
		reader->listener->problem(reader->listener->user, &problem);
		return 0;
	}
	if (severity != SW_TRACE_ERROR)
		return 0;
	int r = sw_err_set(reader->err, SW_EINPUT, "cannot read trace '%s'", sw_stream_name(reader->stream));
	sw_err_detail(reader->err, "line %llu%s%s: %s", (unsigned long long)line, name != NULL ? ", column " : "", name != NULL ? name : "",
		      text);
	sw_err_hint(reader->err, "`sharewell trace check` lists everything that is wrong with a file.");
	return r;
}

/* The first line that is neither empty nor a comment settles what the file is. It is a row itself
 * where there is no header. */
static int begin(struct reader *reader, const char *line, size_t size, const char *format, bool *ret_is_row)
{
	const char *name = sw_stream_name(reader->stream);
	uint64_t number = sw_stream_line(reader->stream);
	const struct sw_trace_format *found = reader->format;
	int r = format == NULL || strcmp(format, "auto") == 0 ? sw_trace_format_detect(name, line, size, number, &found, reader->err)
							      : sw_trace_format_find(format, &found, reader->err);
	if (r < 0)
		return r;
	assert(found != NULL);
	reader->header_line = strndup(line, size);
	if (reader->header_line == NULL || sw_trace_new(name, found->info.name, &reader->trace) < 0)
		return out_of_memory(reader);
	reader->row.trace = reader->trace;
	reader->format = found;
	r = sw_row_split(&reader->header, found->separator, reader->header_line, size);
	if (r == SW_ENOMEM)
		return out_of_memory(reader);
	if (r < 0) {
		r = sw_err_set(reader->err, SW_EINPUT, "cannot read trace '%s' as %s", name, found->info.name);
		sw_err_detail(reader->err, "line %llu: %s", (unsigned long long)number, reader->header.wrong);
		return r;
	}
	reader->width = reader->header.count;
	*ret_is_row = !found->header;
	return sw_trace_format_fit(found, &reader->header, name, number, &reader->layout, &reader->at, reader->err);
}

/* What every format owes to the invariants of a trace. */
static int settle(struct reader *reader, struct sw_trace_job *job)
{
	struct sw_row *row = &reader->row;
	if (job->min_gpus == 0)
		job->min_gpus = job->gpus;
	if (job->max_gpus == 0)
		job->max_gpus = job->gpus;
	if (job->min_gpus > job->gpus || job->gpus > job->max_gpus)
		return sw_row_wrong(row, NULL, "GPUs %u, at least %u, at most %u contradict each other", job->gpus, job->min_gpus,
				    job->max_gpus);
	if (job->deadline_ns == SW_NEVER)
		job->deadline_kind = SW_TRACE_NO_DEADLINE;
	else if (job->deadline_kind == SW_TRACE_NO_DEADLINE)
		job->deadline_kind = SW_TRACE_STRICT;
	if (job->deadline_ns != SW_NEVER && job->deadline_ns > SW_TRACE_MAX_NS)
		return sw_row_wrong(row, NULL, "its deadline is more than 100 years away");
	if (!reader->format->from_first)
		return 0;
	/* Dates may be far from 1970, but not from each other. */
	int64_t earliest = job->submit_ns < reader->earliest ? job->submit_ns : reader->earliest;
	int64_t latest = job->submit_ns > reader->latest ? job->submit_ns : reader->latest;
	if (latest > earliest && latest - earliest > SW_TRACE_MAX_NS)
		return sw_row_wrong(row, NULL, "its date is more than 100 years away from another job's");
	reader->earliest = earliest;
	reader->latest = latest;
	return 0;
}

static int take_row(struct reader *reader, const char *line, size_t size)
{
	struct sw_row *row = &reader->row;
	if (row->number == SW_TRACE_MAX_JOBS)
		return sw_err_set(reader->err, SW_ELIMIT, "cannot read trace '%s': it has more than %zu jobs",
				  sw_stream_name(reader->stream), SW_TRACE_MAX_JOBS);
	struct sw_trace_job *job = sw_trace_add(reader->trace);
	if (job == NULL)
		return out_of_memory(reader);
	job->id = (int64_t)row->number;
	int r = sw_row_split(row, reader->format->separator, line, size);
	if (r == 0)
		r = sw_row_decode(row, reader->layout, &reader->at, reader->width, job);
	if (r == 0 && reader->format->finish_row != NULL)
		r = reader->format->finish_row(row, job);
	if (r == SW_ROW_KEEP)
		r = settle(reader, job);
	if (r == SW_ENOMEM)
		return out_of_memory(reader);
	row->number++;
	if (r == 0) {
		if (reader->listener != NULL)
			reader->listener->job(reader->listener->user, reader->trace, job, sw_stream_line(reader->stream));
		return 0;
	}
	reader->trace->jobs.count--;
	reader->trace->rows_skipped += r == SW_ROW_LEAVE_OUT;
	return report(reader, r < 0 ? SW_TRACE_ERROR : SW_TRACE_NOTE, row->wrong_column, row->wrong);
}

static bool is_blank(const char *line, size_t size)
{
	size_t at = 0;
	while (at < size && (line[at] == ' ' || line[at] == '\t'))
		at++;
	return at == size || line[at] == '#';
}

/* The file ended in the middle, or a line was no text. A listener hears of it as of any other
 * problem, unless there was no first line. */
static int broken(struct reader *reader, int code, const struct sw_err *why)
{
	if (reader->listener != NULL && reader->format != NULL && code == SW_EINPUT)
		return report(reader, SW_TRACE_ERROR, NULL, why->detail);
	if (reader->err != NULL && reader->err->code == 0)
		*reader->err = *why;
	return code;
}

static int read_lines(struct reader *reader, const char *format)
{
	int64_t blank = 0;
	for (;;) {
		const char *line;
		size_t size;
		struct sw_err why = {0};
		int r = sw_stream_next(reader->stream, &line, &size, &why);
		if (r < 0) {
			r = broken(reader, r, &why);
			if (r < 0)
				return r;
			break;
		}
		if (line == NULL)
			break;
		if (is_blank(line, size)) {
			blank++;
			continue;
		}
		bool is_row = true;
		if (reader->format == NULL)
			r = begin(reader, line, size, format, &is_row);
		if (r == 0 && is_row)
			r = take_row(reader, line, size);
		if (r < 0)
			return r;
	}
	if (reader->trace != NULL)
		reader->trace->rows_skipped += blank;
	return 0;
}

/* Two jobs of one name: both are kept, and a person is told. */
static int warn_of_duplicates(struct reader *reader)
{
	struct sw_trace *trace = reader->trace;
	bool ascending = !trace->named;
	for (size_t i = 1; i < trace->jobs.count && ascending; i++)
		ascending = trace->jobs.items[i - 1].id < trace->jobs.items[i].id;
	if (ascending)
		return 0;
	SW_CLEANUP(sw_seen_release) struct sw_seen seen = {0};
	size_t again = 0;
	const struct sw_trace_job *first = NULL;
	for (size_t i = 0; i < trace->jobs.count; i++) {
		const struct sw_trace_job *job = &trace->jobs.items[i];
		uint64_t earlier;
		int r = sw_seen_add(&seen, trace->named ? (int64_t)job->name : job->id, i + 1, &earlier);
		if (r < 0)
			return out_of_memory(reader);
		if (earlier != 0 && again++ == 0)
			first = job;
	}
	if (again == 0)
		return 0;
	char number[24];
	snprintf(number, sizeof number, "%lld", (long long)first->id);
	if (asprintf(&trace->warning, "%zu job%s the id of an earlier job (first: '%.60s'); all are kept", again,
		     again == 1 ? " has" : "s have", trace->named ? sw_trace_string(trace, first->name) : number) < 0) {
		trace->warning = NULL;
		return out_of_memory(reader);
	}
	return 0;
}

static int finish(struct reader *reader)
{
	const char *name = sw_stream_name(reader->stream);
	struct sw_trace *trace = reader->trace;
	if (trace == NULL || (trace->jobs.count == 0 && reader->listener == NULL)) {
		int r = sw_err_set(reader->err, SW_EINPUT, "cannot read trace '%s'", name);
		sw_err_detail(reader->err,
			      trace == NULL ? "there is nothing in it but empty lines and comments" : "there are no jobs in it");
		return r;
	}
	for (size_t i = 0; reader->format->from_first && i < trace->jobs.count; i++)
		trace->jobs.items[i].submit_ns -= reader->earliest;
	int r = reader->listener == NULL ? warn_of_duplicates(reader) : 0;
	if (r == 0 && sw_trace_sort(trace) < 0)
		r = out_of_memory(reader);
	return r;
}

int sw_trace_read(struct sw_stream *stream, const char *format, const struct sw_trace_listener *listener, struct sw_trace **ret_trace,
		  struct sw_err *err)
{
	struct reader *reader = calloc(1, sizeof *reader);
	if (reader == NULL)
		return sw_err_set(err, SW_ENOMEM, "cannot read trace '%s': out of memory", sw_stream_name(stream));
	reader->stream = stream;
	reader->listener = listener;
	reader->earliest = INT64_MAX;
	reader->latest = INT64_MIN;
	reader->err = err;
	int r = read_lines(reader, format);
	if (r == 0)
		r = finish(reader);
	if (r == 0)
		*ret_trace = SW_TAKE(reader->trace);
	sw_trace_free(reader->trace);
	sw_row_release(&reader->header);
	sw_row_release(&reader->row);
	free(reader->header_line);
	free(reader);
	return r;
}
