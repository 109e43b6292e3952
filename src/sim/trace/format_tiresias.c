/* Tiresias: whole seconds. Also the layout in which extracts of other traces are passed around. */
#include "sim/trace/format.h"

static const struct sw_column columns[] = {
	{.name = "job_id", .kind = SW_COLUMN_ID, .mandatory = true},
	{.name = "num_gpu", .kind = SW_COLUMN_COUNT32, .mandatory = true, SW_INTO(gpus), .least = 1, .most = SW_TRACE_MAX_GPUS},
	{.name = "submit_time", .kind = SW_COLUMN_TIME, .mandatory = true, SW_INTO(submit_ns), .unit = SW_NS_PER_S},
	{.name = "duration", .kind = SW_COLUMN_TIME, .mandatory = true, SW_INTO(duration_ns), .unit = SW_NS_PER_S},
	{.name = "iterations", .kind = SW_COLUMN_COUNT, SW_INTO(iterations), .least = 0, .most = SW_TRACE_MAX_ITERATIONS},
	{.name = "model_name", .kind = SW_COLUMN_TEXT, SW_INTO(model)},
	/* The interval is the time to the next job, which the submit times say already. */
	{.name = "interval", .kind = SW_COLUMN_IGNORED},
};

static const struct sw_layout layout = {columns, sizeof columns / sizeof *columns};

const struct sw_trace_format sw_trace_format_tiresias = {
	.info = {"tiresias", "Tiresias simulator, CSV in seconds (job_id,num_gpu,submit_time,iterations,model_name,duration,interval)"},
	.separator = ',',
	.header = true,
	.layouts = &layout,
	.layout_count = 1,
};
