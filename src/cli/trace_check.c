/* sharewell trace check FILE */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/message.h"
#include "cli/trace_options.h"
#include "sim/trace/check.h"

struct values {
	const char *file, *format;
	uint64_t limit;
	bool json;
};

struct listener {
	const char *file;
	json_t *problems; /* NULL: they are printed as they come */
	bool out_of_memory;
};

/* Foreign text, on one line and without control characters. */
static void put_clean(const char *text)
{
	SW_CLEANUP(sw_freep) char *clean = sw_text_clean(text);
	for (const char *c = clean; c != NULL && *c != '\0'; c++)
		putchar(*c == '\n' || *c == '\t' ? ' ' : *c);
}

static void print_problem(const struct listener *listener, const struct sw_trace_problem *problem)
{
	put_clean(listener->file);
	if (problem->line > 0)
		printf(":%" PRIu64, problem->line);
	printf(": %s: ", sw_trace_severity_name(problem->severity));
	if (problem->column != NULL) {
		put_clean(problem->column);
		fputs(": ", stdout);
	}
	put_clean(problem->text);
	putchar('\n');
}

static void hear(void *user, const struct sw_trace_problem *problem)
{
	struct listener *listener = user;
	if (listener->problems == NULL) {
		print_problem(listener, problem);
		return;
	}
	SW_CLEANUP(sw_freep) char *text = sw_text_clean(problem->text);
	SW_CLEANUP(sw_freep) char *column = sw_text_clean(problem->column);
	json_t *object = json_pack("{s:s, s:I, s:s, s:s}", "severity", sw_trace_severity_name(problem->severity), "line",
				   (json_int_t)problem->line, "column", column != NULL ? column : "", "text", text != NULL ? text : "");
	if (json_array_append_new(listener->problems, object) < 0)
		listener->out_of_memory = true;
}

static void print_verdict(const struct values *values, const struct sw_trace_verdict *verdict)
{
	char jobs[SW_TEXT_SIZE], errors[SW_TEXT_SIZE], warnings[SW_TEXT_SIZE], notes[SW_TEXT_SIZE];
	for (int s = 0; s < SW_TRACE_SEVERITIES; s++)
		if (verdict->unsaid[s] > 0)
			printf("... and %" PRIu64 " more of severity '%s' (--limit)\n", verdict->unsaid[s],
			       sw_trace_severity_name((enum sw_trace_severity)s));
	put_clean(values->file);
	printf(": %s read as '%s': %s, %s, %s\n", sw_text_plural(verdict->jobs, "job", "jobs", jobs), verdict->format,
	       sw_text_plural(verdict->found[SW_TRACE_ERROR], "error", "errors", errors),
	       sw_text_plural(verdict->found[SW_TRACE_WARNING], "warning", "warnings", warnings),
	       sw_text_plural(verdict->found[SW_TRACE_NOTE], "note", "notes", notes));
}

static int print_json(const struct values *values, const struct sw_trace_verdict *verdict, json_t *problems, struct sw_err *err)
{
	SW_CLEANUP(sw_freep) char *file = sw_text_clean(values->file);
	SW_CLEANUP(json_decrefp)
	json_t *object = json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:O}", "file", file != NULL ? file : "", "format", verdict->format,
				   "jobs", (json_int_t)verdict->jobs, "rows_without_job", (json_int_t)verdict->left_out, "errors",
				   (json_int_t)verdict->found[SW_TRACE_ERROR], "warnings", (json_int_t)verdict->found[SW_TRACE_WARNING],
				   "notes", (json_int_t)verdict->found[SW_TRACE_NOTE], "problems", problems);
	if (object == NULL)
		return sw_err_set(err, SW_ENOMEM, "cannot print what is wrong with '%s': out of memory", values->file);
	json_dumpf(object, stdout, 0);
	putchar('\n');
	return 0;
}

static int run(const struct sw_cli_call *call, struct sw_err *err)
{
	const struct values *values = call->values;
	SW_CLEANUP(json_decrefp) json_t *problems = values->json ? json_array() : NULL;
	struct listener listener = {.file = values->file, .problems = problems};
	struct sw_trace_verdict verdict;
	int r = sw_trace_check(values->file, values->format, values->limit, hear, &listener, &verdict, err);
	if (r == 0 && (listener.out_of_memory || (values->json && problems == NULL)))
		r = sw_err_set(err, SW_ENOMEM, "cannot check '%s': out of memory", values->file);
	if (r == 0 && values->json)
		r = print_json(values, &verdict, problems, err);
	else if (r == 0)
		print_verdict(values, &verdict);
	if (r < 0)
		return r;
	return verdict.found[SW_TRACE_ERROR] > 0 ? SW_CLI_BAD_INPUT : 0;
}

static const struct sw_cli_option options[] = {
	SW_CLI_FORMAT_OPTION(struct values, format),
	{"limit", 'n', .kind = SW_CLI_COUNT, "N", "100", "report at most N problems of each severity", .least = 1, .most = 1000000,
	 .offset = offsetof(struct values, limit)},
	{"json", .about = "print one JSON object instead", .offset = offsetof(struct values, json)},
};

static const struct sw_cli_option operands[] = {SW_CLI_TRACE_OPERAND(struct values, file)};

static const struct sw_cli_example examples[] = {
	{"sharewell trace check jobs.csv", "list what is wrong with a trace, line by line"},
	{"sharewell trace check jobs.csv --format tiresias --limit 5", "insist on a format, and see the first five of each kind"},
};

const struct sw_cli_command sw_cli_trace_check = {
	.name = "trace check",
	.about = "tell what is wrong with a trace, line by line",
	.text = "Prints FILE:LINE: SEVERITY: what is wrong. The exit status is 2 when there are errors.",
	SW_CLI_OPTIONS(options),
	SW_CLI_OPERANDS(operands),
	SW_CLI_EXAMPLES(examples),
	.values_size = sizeof(struct values),
	.run = run,
};
