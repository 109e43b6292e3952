/* sharewell trace convert FILE */
#include "cli/command.h"
#include "cli/message.h"
#include "cli/output.h"
#include "cli/trace_options.h"
#include "cli/trace_write.h"

struct values {
	const char *file, *format, *to, *output;
};

static int run(const struct sw_cli_call *call, struct sw_err *err)
{
	const struct values *values = call->values;
	int r = sw_cli_output_check("trace", values->output, (const char *const[]){values->file, NULL}, err);
	if (r < 0)
		return r;
	SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = NULL;
	r = sw_trace_load(values->file, values->format, &trace, err);
	if (r < 0)
		return r;
	if (trace->warning != NULL)
		sw_cli_print_note("%s", trace->warning);
	return sw_cli_write_trace(trace, values->to, values->output, err);
}

static const struct sw_cli_option options[] = {
	SW_CLI_FORMAT_OPTION(struct values, format),
	{"to", 't', .kind = SW_CLI_WORD, "FORMAT", "sharewell", "the format to write", &sw_cli_write_format_words,
	 .offset = offsetof(struct values, to)},
	{"output", 'o', .kind = SW_CLI_TEXT, "FILE", "-", "where to write; a name that ends in .gz, .xz or .zst is compressed",
	 .is_path = true, .offset = offsetof(struct values, output)},
};

static const struct sw_cli_option operands[] = {SW_CLI_TRACE_OPERAND(struct values, file)};

static const struct sw_cli_example examples[] = {
	{"sharewell trace convert trace3.csv.xz -o trace3.zst", "keep everything, in the format that loses nothing"},
	{"sharewell trace convert jobs.csv --to tiresias -o tiresias.csv", "feed another simulator"},
};

const struct sw_cli_command sw_cli_trace_convert = {
	.name = "trace convert",
	.about = "write a trace in another format",
	.text = "What the other format has no place for is left out and named on standard error; only 'sharewell' loses nothing.",
	SW_CLI_OPTIONS(options),
	SW_CLI_OPERANDS(operands),
	SW_CLI_EXAMPLES(examples),
	.values_size = sizeof(struct values),
	.run = run,
};
