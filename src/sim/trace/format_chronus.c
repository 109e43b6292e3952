/* Chronus: minutes; jobs with one deadline (strict), several of falling value (soft)
 * or none (best effort).
 *
 * Deadlines count from the submit time. Of several, the first is kept: the artifact
 * schedules by it, and the later ones are worth less. Rows that ask for no GPU are left
 * out, as the artifact does.
 */
#include "sim/trace/format.h"
#include "sim/trace/row.h"

#include <string.h>

#define MINUTE (60 * SW_NS_PER_S)

/* "159-189-229-289" */
static int decode_deadlines(struct sw_row *row, const struct sw_column *column, const struct sw_row_field *field, struct sw_trace_job *job)
{
	const char *dash = memchr(field->text, '-', field->size);
	struct sw_row_field first = {field->text, dash != NULL ? (size_t)(dash - field->text) : field->size};
	if (sw_row_time(row, column, &first, MINUTE, &job->deadline_ns) < 0)
		return sw_row_wrong_value(row, column, field, "a list of minutes such as 159-189-229");
	return 0;
}

static int decode_job_type(struct sw_row *row, const struct sw_column *column, const struct sw_row_field *field, struct sw_trace_job *job)
{
	if (sw_field_is(field, "strict"))
		job->deadline_kind = SW_TRACE_STRICT;
	else if (sw_field_is(field, "soft"))
		job->deadline_kind = SW_TRACE_SOFT;
	else if (sw_field_is(field, "best"))
		job->job_class = SW_CLASS_OPPORTUNISTIC;
	else
		return sw_row_wrong_value(row, column, field, "strict, soft or best");
	return 0;
}

static int finish_row(struct sw_row *row, struct sw_trace_job *job)
{
	if (job->gpus == 0) {
		sw_row_wrong(row, NULL, "the job asks for no GPU and is left out");
		return SW_ROW_LEAVE_OUT;
	}
	/* Of best-effort jobs the column of deadlines says nothing. */
	if (job->job_class == SW_CLASS_OPPORTUNISTIC)
		job->deadline_ns = SW_NEVER;
	else
		job->deadline_ns += job->submit_ns;
	return SW_ROW_KEEP;
}

static const struct sw_column columns[] = {
	{.name = "job_id", .kind = SW_COLUMN_ID, .mandatory = true},
	{.name = "user", .kind = SW_COLUMN_TEXT, SW_INTO(tenant)},
	{.name = "num_gpu", .kind = SW_COLUMN_COUNT32, .mandatory = true, SW_INTO(gpus), .least = 0, .most = SW_TRACE_MAX_GPUS},
	{.name = "submit_time", .kind = SW_COLUMN_TIME, .mandatory = true, SW_INTO(submit_ns), .unit = MINUTE},
	{.name = "iterations", .kind = SW_COLUMN_COUNT, SW_INTO(iterations), .least = 0, .most = SW_TRACE_MAX_ITERATIONS},
	{.name = "model_name", .kind = SW_COLUMN_TEXT, SW_INTO(model)},
	{.name = "duration", .kind = SW_COLUMN_TIME, .mandatory = true, SW_INTO(duration_ns), .unit = MINUTE},
	{.name = "interval", .kind = SW_COLUMN_IGNORED},
	{.name = "expect_time_list", .kind = SW_COLUMN_CUSTOM, .mandatory = true, .decode = decode_deadlines},
	{.name = "expect_value_list", .kind = SW_COLUMN_IGNORED},
	{.name = "best_effort", .kind = SW_COLUMN_IGNORED},
	{.name = "job_type", .kind = SW_COLUMN_CUSTOM, .mandatory = true, .decode = decode_job_type},
};

static const struct sw_layout layout = {columns, sizeof columns / sizeof *columns};

const struct sw_trace_format sw_trace_format_chronus = {
	.info = {"chronus", "Chronus artifact, CSV in minutes, with strict, soft and no deadlines"},
	.separator = ',',
	.header = true,
	.layouts = &layout,
	.layout_count = 1,
	.finish_row = finish_row,
};
