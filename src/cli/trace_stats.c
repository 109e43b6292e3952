/* sharewell trace stats FILE */
#include <stdio.h>

#include "cli/command.h"
#include "cli/message.h"
#include "cli/trace_options.h"
#include "sim/trace/stats.h"
#include "sim/trace/trace.h"

struct values {
	const char *file, *format;
	uint64_t gpus, rows;
	bool json;
};

static int run(const struct sw_cli_call *call, struct sw_err *err)
{
	const struct values *values = call->values;
	SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = NULL;
	int r = sw_trace_load(values->file, values->format, &trace, err);
	if (r < 0)
		return r;
	if (trace->warning != NULL)
		sw_cli_print_note("%s", trace->warning);
	struct sw_trace_stats stats;
	r = sw_trace_stats(trace, values->gpus, &stats, err);
	if (r < 0)
		return r;
	if (values->json)
		r = sw_trace_stats_json(stdout, &stats);
	else
		sw_trace_stats_print(stdout, &stats, (unsigned)values->rows);
	sw_trace_stats_release(&stats);
	/* A failed write is told when standard output is finished. */
	return r == SW_ENOMEM ? sw_err_set(err, r, "cannot print what is in '%s': out of memory", values->file) : 0;
}

static const struct sw_cli_option options[] = {
	SW_CLI_FORMAT_OPTION(struct values, format),
	{"gpus", 'g', .kind = SW_CLI_COUNT, "N", "0", "state the load that the trace offers to a cluster of N GPUs", .most = 1000000,
	 .offset = offsetof(struct values, gpus)},
	{"rows", 'n', .kind = SW_CLI_COUNT, "N", "10", "at most N lines for each of sizes, tenants and models; 0 for all", .most = 1000000,
	 .offset = offsetof(struct values, rows)},
	{"json", .about = "print one JSON object instead", .offset = offsetof(struct values, json)},
};

static const struct sw_cli_option operands[] = {SW_CLI_TRACE_OPERAND(struct values, file)};

static const struct sw_cli_example examples[] = {
	{"sharewell trace stats jobs.csv.xz --gpus 64", "see what is in a trace, and how much of 64 GPUs it would take"},
	{"sharewell trace stats raw-traces.tar.xz:cluster04.csv --json", "read one file of an archive, for a script"},
};

const struct sw_cli_command sw_cli_trace_stats = {
	.name = "trace stats",
	.about = "tell what is in a trace: jobs, sizes, durations, tenants, models, load",
	SW_CLI_OPTIONS(options),
	SW_CLI_OPERANDS(operands),
	SW_CLI_EXAMPLES(examples),
	.values_size = sizeof(struct values),
	.run = run,
};
