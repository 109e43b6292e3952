/* Gavel: tab-separated, no header, seconds. Ten columns today, seven in older files. Durations are
 * not given: they follow from steps and throughput.
 *
 * An SLO is a multiple of the duration; without a duration it cannot become a
 * deadline and is passed over.
 */
#include "sim/trace/format.h"
#include "sim/trace/row.h"

#include <string.h>

int sw_column_gavel_job_type(struct sw_row *row, const struct sw_column *column, const struct sw_row_field *field, struct sw_trace_job *job)
{
	static const char opening[] = " (batch size ";
	struct sw_row_field model = *field;
	const char *at = memmem(field->text, field->size, opening, sizeof opening - 1);
	if (at != NULL && field->text[field->size - 1] == ')') {
		const char *number = at + sizeof opening - 1;
		int64_t batch;
		size_t size = (size_t)(field->text + field->size - 1 - number);
		if (sw_parse_i64(number, size, &batch) < 0 || batch < 1 || batch > SW_TRACE_MAX_BATCH)
			return sw_row_wrong_value(row, column, field, "a model with a batch size");
		job->batch_size = (uint32_t)batch;
		model.size = (size_t)(at - field->text);
	}
	return sw_row_text(row, column, &model, &job->model);
}

/* A multiple of the duration, or negative for none. */
static int decode_slo(struct sw_row *row, const struct sw_column *column, const struct sw_row_field *field, struct sw_trace_job *job)
{
	(void)job;
	int64_t slo;
	if (sw_parse_decimal(field->text, field->size, 1000, &slo) < 0)
		return sw_row_wrong_value(row, column, field, "a number");
	return 0;
}

#define GPUS                                                                                                                               \
	{                                                                                                                                  \
		.name = "scale_factor", .kind = SW_COLUMN_COUNT32, .mandatory = true, SW_INTO(gpus), .least = 1, .most = SW_TRACE_MAX_GPUS \
	}
#define STEPS                                                                                                       \
	{                                                                                                           \
		.name = "total_steps", .kind = SW_COLUMN_COUNT, .mandatory = true, SW_INTO(iterations), .least = 1, \
		.most = SW_TRACE_MAX_ITERATIONS                                                                     \
	}
#define ARRIVAL                                                                                                            \
	{                                                                                                                  \
		.name = "arrival_time", .kind = SW_COLUMN_TIME, .mandatory = true, SW_INTO(submit_ns), .unit = SW_NS_PER_S \
	}
#define JOB_TYPE                                                                                                    \
	{                                                                                                           \
		.name = "job_type", .kind = SW_COLUMN_CUSTOM, .mandatory = true, .decode = sw_column_gavel_job_type \
	}

static const struct sw_column columns[] = {
	JOB_TYPE,
	{.name = "command"},
	{.name = "working_directory"},
	{.name = "num_steps_arg"},
	{.name = "needs_data_dir"},
	STEPS,
	GPUS,
	{.name = "priority_weight", .kind = SW_COLUMN_DECIMAL32, SW_INTO(weight_milli), .unit = 1000, .least = 1, .most = 1000000000},
	{.name = "SLO", .kind = SW_COLUMN_CUSTOM, .decode = decode_slo},
	ARRIVAL,
};

static const struct sw_column old_columns[] = {
	JOB_TYPE, {.name = "command"}, {.name = "num_steps_arg"}, {.name = "needs_data_dir"}, STEPS, ARRIVAL, GPUS,
};

static const struct sw_layout layouts[] = {
	{columns, sizeof columns / sizeof *columns},
	{old_columns, sizeof old_columns / sizeof *old_columns},
};

const struct sw_trace_format sw_trace_format_gavel = {
	.info = {"gavel", "Gavel, tab-separated without a header, 10 columns or (old) 7: steps, not durations"},
	.separator = '\t',
	.layouts = layouts,
	.layout_count = 2,
};
