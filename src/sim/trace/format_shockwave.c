/* Shockwave: Gavel's layout with the mode of batch-size adaptation and the duration (seconds)
 * added. Modes are not kept. */
#include "sim/trace/format.h"
#include "sim/trace/row.h"

/* A multiple of the duration, or negative for none. The column stands before the duration's:
 * finish_row() makes it a moment. */
static int decode_slo(struct sw_row *row, const struct sw_column *column, const struct sw_row_field *field, struct sw_trace_job *job)
{
	int64_t slo_milli;
	if (sw_parse_decimal(field->text, field->size, 1000, &slo_milli) < 0 || slo_milli > 1000 * 1000)
		return sw_row_wrong_value(row, column, field, "a multiple of the duration up to 1000, or negative for none");
	job->deadline_ns = slo_milli < 0 ? SW_NEVER : slo_milli;
	return 0;
}

static int finish_row(struct sw_row *row, struct sw_trace_job *job)
{
	if (job->deadline_ns == SW_NEVER)
		return SW_ROW_KEEP;
	__int128 deadline = (__int128)job->duration_ns * job->deadline_ns / 1000 + job->submit_ns;
	if (deadline > SW_TRACE_MAX_NS)
		return sw_row_wrong(row, NULL, "the deadline (SLO times duration) is more than 100 years away");
	job->deadline_ns = (int64_t)deadline;
	return SW_ROW_KEEP;
}

static const struct sw_column columns[] = {
	{.name = "job_type", .kind = SW_COLUMN_CUSTOM, .mandatory = true, .decode = sw_column_gavel_job_type},
	{.name = "command"},
	{.name = "working_directory"},
	{.name = "num_steps_arg"},
	{.name = "needs_data_dir"},
	{.name = "total_steps",
	 .kind = SW_COLUMN_COUNT,
	 .mandatory = true,
	 SW_INTO(iterations),
	 .least = 1,
	 .most = SW_TRACE_MAX_ITERATIONS},
	{.name = "scale_factor", .kind = SW_COLUMN_COUNT32, .mandatory = true, SW_INTO(gpus), .least = 1, .most = SW_TRACE_MAX_GPUS},
	{.name = "mode"},
	{.name = "priority_weight", .kind = SW_COLUMN_DECIMAL32, SW_INTO(weight_milli), .unit = 1000, .least = 1, .most = 1000000000},
	{.name = "SLO", .kind = SW_COLUMN_CUSTOM, .decode = decode_slo},
	{.name = "duration", .kind = SW_COLUMN_TIME, .mandatory = true, SW_INTO(duration_ns), .unit = SW_NS_PER_S},
	{.name = "arrival_time", .kind = SW_COLUMN_TIME, .mandatory = true, SW_INTO(submit_ns), .unit = SW_NS_PER_S},
};

static const struct sw_layout layout = {columns, sizeof columns / sizeof *columns};

const struct sw_trace_format sw_trace_format_shockwave = {
	.info = {"shockwave", "Shockwave, tab-separated without a header, 12 columns: Gavel's with mode and duration"},
	.separator = '\t',
	.layouts = &layout,
	.layout_count = 1,
	.finish_row = finish_row,
};
