/* Sharewell's own CSV: every field of a job under a name that says its unit, so that nothing is
 * lost between writing and reading.
 *
 * Only submit_s, duration_s and gpus are needed; a file written by hand may have no other column.
 */
#include <string.h>

#include "sim/trace/format.h"
#include "sim/trace/row.h"

static int decode_class(struct sw_row *row, const struct sw_column *column, const struct sw_row_field *field, struct sw_trace_job *job)
{
	if (sw_field_is(field, "guaranteed"))
		job->job_class = SW_CLASS_GUARANTEED;
	else if (sw_field_is(field, "opportunistic"))
		job->job_class = SW_CLASS_OPPORTUNISTIC;
	else
		return sw_row_wrong_value(row, column, field, "guaranteed or opportunistic");
	return 0;
}

static int decode_deadline_kind(struct sw_row *row, const struct sw_column *column, const struct sw_row_field *field,
				struct sw_trace_job *job)
{
	if (sw_field_is(field, "strict"))
		job->deadline_kind = SW_TRACE_STRICT;
	else if (sw_field_is(field, "soft"))
		job->deadline_kind = SW_TRACE_SOFT;
	else
		return sw_row_wrong_value(row, column, field, "strict or soft");
	return 0;
}

/* ---- what really happened, where the trace was recorded */

static int decode_moment(struct sw_row *row, const struct sw_column *column, const struct sw_row_field *field, struct sw_trace_job *job)
{
	struct sw_trace_fate *fate = sw_trace_fate_of(row->trace, job);
	bool is_start = strcmp(column->name, "started_s") == 0;
	return fate == NULL ? SW_ENOMEM : sw_row_time(row, column, field, SW_NS_PER_S, is_start ? &fate->started_ns : &fate->ended_ns);
}

static int decode_preemptions(struct sw_row *row, const struct sw_column *column, const struct sw_row_field *field,
			      struct sw_trace_job *job)
{
	struct sw_trace_fate *fate = sw_trace_fate_of(row->trace, job);
	uint64_t number;
	if (fate == NULL)
		return SW_ENOMEM;
	if (sw_parse_u64(field->text, field->size, &number) < 0 || number > UINT32_MAX)
		return sw_row_wrong_value(row, column, field, "a whole number from 0 to %u", UINT32_MAX);
	fate->preemptions = (uint32_t)number;
	return 0;
}

static int decode_end(struct sw_row *row, const struct sw_column *column, const struct sw_row_field *field, struct sw_trace_job *job)
{
	struct sw_trace_fate *fate = sw_trace_fate_of(row->trace, job);
	if (fate == NULL)
		return SW_ENOMEM;
	for (int end = SW_TRACE_COMPLETED; end < SW_TRACE_ENDS; end++) {
		if (sw_field_is(field, sw_trace_end_names[end])) {
			fate->end = (uint8_t)end;
			return 0;
		}
	}
	return sw_row_wrong_value(row, column, field, "completed, failed, cancelled, timeout or unfinished");
}

#define STAGE(header, index)                                                                                                     \
	{                                                                                                                        \
		.name = header, .kind = SW_COLUMN_DECIMAL32, SW_INTO(stage_us[index]), .unit = 1000, .most = INT64_C(3600000000) \
	}

static const struct sw_column columns[] = {
	{.name = "id", .kind = SW_COLUMN_COUNT, SW_INTO(id), .least = 0, .most = INT64_MAX},
	{.name = "name", .kind = SW_COLUMN_TEXT, SW_INTO(name)},
	{.name = "submit_s", .kind = SW_COLUMN_TIME, .mandatory = true, SW_INTO(submit_ns), .unit = SW_NS_PER_S},
	{.name = "duration_s", .kind = SW_COLUMN_TIME, .mandatory = true, SW_INTO(duration_ns), .unit = SW_NS_PER_S},
	{.name = "gpus", .kind = SW_COLUMN_COUNT32, .mandatory = true, SW_INTO(gpus), .least = 1, .most = SW_TRACE_MAX_GPUS},
	{.name = "min_gpus", .kind = SW_COLUMN_COUNT32, SW_INTO(min_gpus), .least = 1, .most = SW_TRACE_MAX_GPUS},
	{.name = "max_gpus", .kind = SW_COLUMN_COUNT32, SW_INTO(max_gpus), .least = 1, .most = SW_TRACE_MAX_GPUS},
	{.name = "class", .kind = SW_COLUMN_CUSTOM, .decode = decode_class},
	{.name = "deadline_s", .kind = SW_COLUMN_TIME, SW_INTO(deadline_ns), .unit = SW_NS_PER_S},
	{.name = "deadline_kind", .kind = SW_COLUMN_CUSTOM, .decode = decode_deadline_kind},
	{.name = "weight", .kind = SW_COLUMN_DECIMAL32, SW_INTO(weight_milli), .unit = 1000, .least = 1, .most = 1000000000},
	{.name = "tenant", .kind = SW_COLUMN_TEXT, SW_INTO(tenant)},
	{.name = "model", .kind = SW_COLUMN_TEXT, SW_INTO(model)},
	{.name = "batch_size", .kind = SW_COLUMN_COUNT32, SW_INTO(batch_size), .least = 0, .most = SW_TRACE_MAX_BATCH},
	{.name = "iterations", .kind = SW_COLUMN_COUNT, SW_INTO(iterations), .least = 0, .most = SW_TRACE_MAX_ITERATIONS},
	{.name = "iteration_ms", .kind = SW_COLUMN_TIME, SW_INTO(iteration_ns), .unit = SW_NS_PER_MS},
	STAGE("data_ms", 0),
	STAGE("gpu_ms", 1),
	STAGE("network_ms", 2),
	{.name = "user", .kind = SW_COLUMN_TEXT, SW_INTO(user)},
	{.name = "gpu_memory_mib", .kind = SW_COLUMN_COUNT32, SW_INTO(gpu_memory_mib), .least = 0, .most = UINT32_MAX},
	{.name = "started_s", .kind = SW_COLUMN_CUSTOM, .decode = decode_moment},
	{.name = "ended_s", .kind = SW_COLUMN_CUSTOM, .decode = decode_moment},
	{.name = "preemptions", .kind = SW_COLUMN_CUSTOM, .decode = decode_preemptions},
	{.name = "outcome", .kind = SW_COLUMN_CUSTOM, .decode = decode_end},
};

static const struct sw_layout layout = {columns, sizeof columns / sizeof *columns};

const struct sw_trace_format sw_trace_format_sharewell = {
	.info = {"sharewell", "Sharewell's own CSV, nothing lost (submit_s,duration_s,gpus and any of the other columns)"},
	.separator = ',',
	.header = true,
	.layouts = &layout,
	.layout_count = 1,
};
