/* Philly as it is passed around in one CSV file: dates, seconds, no job ids. Not in submit order.
 *
 * A date is taken as it stands on the clock (no time zone, no summer time); the earliest is
 * the trace's time zero.
 */
#include "base/civil.h"
#include "sim/trace/format.h"
#include "sim/trace/row.h"

static int decode_timestamp(struct sw_row *row, const struct sw_column *column, const struct sw_row_field *field, struct sw_trace_job *job)
{
	int64_t second;
	if (sw_civil_parse(field->text, field->size, &second) < 0)
		return sw_row_wrong_value(row, column, field, "a date from 1970 to 2199 such as 2017-10-09 07:01:55");
	job->submit_ns = second * SW_NS_PER_S;
	return 0;
}

static const struct sw_column columns[] = {
	{.name = "timestamp", .kind = SW_COLUMN_CUSTOM, .mandatory = true, .decode = decode_timestamp},
	{.name = "duration", .kind = SW_COLUMN_TIME, .mandatory = true, SW_INTO(duration_ns), .unit = SW_NS_PER_S},
	{.name = "num_gpus|num_gpu", .kind = SW_COLUMN_COUNT32, .mandatory = true, SW_INTO(gpus), .least = 1, .most = SW_TRACE_MAX_GPUS},
	{.name = "gpu_time", .kind = SW_COLUMN_IGNORED},
	/* The virtual cluster. */
	{.name = "cluster", .kind = SW_COLUMN_TEXT, SW_INTO(tenant)},
};

static const struct sw_layout layout = {columns, sizeof columns / sizeof *columns};

const struct sw_trace_format sw_trace_format_philly = {
	.info = {"philly", "Philly in one CSV file (timestamp,duration,num_gpus,gpu_time,cluster): dates and seconds"},
	.separator = ',',
	.header = true,
	.from_first = true,
	.layouts = &layout,
	.layout_count = 1,
};
