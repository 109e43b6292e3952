/* Pollux workloads: seconds; jobs have names and neither duration nor iterations, which follow from
 * the application's profile. */
#include "sim/trace/format.h"

static const struct sw_column columns[] = {
	{.name = "name", .kind = SW_COLUMN_ID, .mandatory = true},
	{.name = "time", .kind = SW_COLUMN_TIME, .mandatory = true, SW_INTO(submit_ns), .unit = SW_NS_PER_S},
	{.name = "application", .kind = SW_COLUMN_TEXT, .mandatory = true, SW_INTO(model)},
	{.name = "num_replicas", .kind = SW_COLUMN_COUNT32, .mandatory = true, SW_INTO(gpus), .least = 1, .most = SW_TRACE_MAX_GPUS},
	{.name = "batch_size", .kind = SW_COLUMN_COUNT32, SW_INTO(batch_size), .least = 0, .most = SW_TRACE_MAX_BATCH},
	{.name = "duration", .kind = SW_COLUMN_TIME, SW_INTO(duration_ns), .unit = SW_NS_PER_S},
};

static const struct sw_layout layout = {columns, sizeof columns / sizeof *columns};

const struct sw_trace_format sw_trace_format_pollux = {
	.info = {"pollux", "Pollux workloads, CSV in seconds (name,time,application,num_replicas,batch_size): no durations"},
	.separator = ',',
	.header = true,
	.layouts = &layout,
	.layout_count = 1,
};
