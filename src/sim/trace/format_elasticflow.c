/* ElasticFlow and the ITP traces behind it: seconds, deadlines as moments. Ids are numbers or
 * UUIDs. The raw ITP traces have only the mandatory columns.
 *
 * A best-effort job (in files that have the column) has no deadline, whatever stands in that
 * column. Where a file also gives `real_duration` and `real_iteration`, duration and iteration are
 * what its scheduler plans with, and are taken.
 */
#include "sim/trace/format.h"
#include "sim/trace/row.h"

static int decode_best_effort(struct sw_row *row, const struct sw_column *column, const struct sw_row_field *field,
			      struct sw_trace_job *job)
{
	if (!sw_field_is(field, "0") && !sw_field_is(field, "1"))
		return sw_row_wrong_value(row, column, field, "0 or 1");
	job->job_class = field->text[0] == '1' ? SW_CLASS_OPPORTUNISTIC : SW_CLASS_GUARANTEED;
	return 0;
}

static int finish_row(struct sw_row *row, struct sw_trace_job *job)
{
	(void)row;
	if (job->job_class == SW_CLASS_OPPORTUNISTIC)
		job->deadline_ns = SW_NEVER;
	return SW_ROW_KEEP;
}

static const struct sw_column columns[] = {
	{.name = "job_id", .kind = SW_COLUMN_ID, .mandatory = true},
	{.name = "submit_time|submission_time", .kind = SW_COLUMN_TIME, .mandatory = true, SW_INTO(submit_ns), .unit = SW_NS_PER_S},
	{.name = "duration", .kind = SW_COLUMN_TIME, .mandatory = true, SW_INTO(duration_ns), .unit = SW_NS_PER_S},
	{.name = "num_gpu", .kind = SW_COLUMN_COUNT32, .mandatory = true, SW_INTO(gpus), .least = 1, .most = SW_TRACE_MAX_GPUS},
	{.name = "iteration|num_iteration", .kind = SW_COLUMN_COUNT, SW_INTO(iterations), .least = 0, .most = SW_TRACE_MAX_ITERATIONS},
	{.name = "model_name", .kind = SW_COLUMN_TEXT, SW_INTO(model)},
	{.name = "ddl|deadline", .kind = SW_COLUMN_TIME, SW_INTO(deadline_ns), .unit = SW_NS_PER_S},
	{.name = "batch_size", .kind = SW_COLUMN_COUNT32, SW_INTO(batch_size), .least = 0, .most = SW_TRACE_MAX_BATCH},
	{.name = "best_effort", .kind = SW_COLUMN_CUSTOM, .decode = decode_best_effort},
	{.name = "real_duration", .kind = SW_COLUMN_IGNORED},
	{.name = "real_iteration", .kind = SW_COLUMN_IGNORED},
};

static const struct sw_layout layout = {columns, sizeof columns / sizeof *columns};

const struct sw_trace_format sw_trace_format_elasticflow = {
	.info = {"elasticflow", "ElasticFlow and Microsoft ITP, CSV in seconds, with deadlines or (raw ITP) without"},
	.separator = ',',
	.header = true,
	.mark = "submission_time|ddl|deadline",
	.layouts = &layout,
	.layout_count = 1,
	.finish_row = finish_row,
};
