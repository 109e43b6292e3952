/* Muri: milliseconds; iteration and stage times per iteration; priority 1 is an opportunistic
 * job. */
#include "sim/trace/format.h"
#include "sim/trace/row.h"

static int decode_priority(struct sw_row *row, const struct sw_column *column, const struct sw_row_field *field, struct sw_trace_job *job)
{
	if (!sw_field_is(field, "0") && !sw_field_is(field, "1"))
		return sw_row_wrong_value(row, column, field, "0 (guaranteed) or 1 (opportunistic)");
	job->job_class = field->text[0] == '1' ? SW_CLASS_OPPORTUNISTIC : SW_CLASS_GUARANTEED;
	return 0;
}

/* Stages are kept in microseconds; an hour is more than any iteration has. */
#define STAGE(header, index)                                                                                                     \
	{                                                                                                                        \
		.name = header, .kind = SW_COLUMN_DECIMAL32, SW_INTO(stage_us[index]), .unit = 1000, .most = INT64_C(3600000000) \
	}

static const struct sw_column columns[] = {
	{.name = "job_id", .kind = SW_COLUMN_ID, .mandatory = true},
	{.name = "num_gpu", .kind = SW_COLUMN_COUNT32, .mandatory = true, SW_INTO(gpus), .least = 1, .most = SW_TRACE_MAX_GPUS},
	{.name = "submit_time", .kind = SW_COLUMN_TIME, .mandatory = true, SW_INTO(submit_ns), .unit = SW_NS_PER_MS},
	{.name = "iterations",
	 .kind = SW_COLUMN_COUNT,
	 .mandatory = true,
	 SW_INTO(iterations),
	 .least = 1,
	 .most = SW_TRACE_MAX_ITERATIONS},
	{.name = "duration", .kind = SW_COLUMN_TIME, .mandatory = true, SW_INTO(duration_ns), .unit = SW_NS_PER_MS},
	{.name = "iteration_time", .kind = SW_COLUMN_TIME, .mandatory = true, SW_INTO(iteration_ns), .unit = SW_NS_PER_MS},
	{.name = "model_name", .kind = SW_COLUMN_TEXT, SW_INTO(model)},
	{.name = "batch_size", .kind = SW_COLUMN_COUNT32, SW_INTO(batch_size), .least = 0, .most = SW_TRACE_MAX_BATCH},
	{.name = "interval", .kind = SW_COLUMN_IGNORED},
	STAGE("resource_time_0", 0),
	STAGE("resource_time_1", 1),
	STAGE("resource_time_2", 2),
	{.name = "priority", .kind = SW_COLUMN_CUSTOM, .decode = decode_priority},
};

static const struct sw_layout layout = {columns, sizeof columns / sizeof *columns};

const struct sw_trace_format sw_trace_format_muri = {
	.info = {"muri", "Muri simulator, CSV in milliseconds, with iteration and stage times and priorities"},
	.separator = ',',
	.header = true,
	.layouts = &layout,
	.layout_count = 1,
};
