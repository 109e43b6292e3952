/* Trace readers on any bytes: no crash; what is accepted keeps a trace's invariants and survives
 * being written and read again.
 *
 * The first byte chooses the format: '0' lets it be recognised, '1' and on are the formats in the
 * order of the list. The rest is the file.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "sim/trace/formats.h"
#include "sim/trace/read.h"
#include "sim/trace/trace.h"
#include "sim/trace/write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *choose_format(uint8_t byte)
{
	size_t count = 0;
	while (sw_trace_formats(count) != NULL)
		count++;
	size_t index = (uint8_t)(byte - '0') % (count + 1);
	return index == 0 ? NULL : sw_trace_formats(index - 1)->name;
}

static void check_invariants(const struct sw_trace *trace)
{
	int64_t before = 0;
	assert(trace->jobs.count > 0);
	for (size_t i = 0; i < trace->jobs.count; i++) {
		const struct sw_trace_job *job = &trace->jobs.items[i];
		assert(job->submit_ns >= before && job->submit_ns <= SW_TRACE_MAX_NS);
		before = job->submit_ns;
		assert(job->duration_ns >= 0 && job->duration_ns <= SW_TRACE_MAX_NS);
		assert(1 <= job->min_gpus && job->min_gpus <= job->gpus && job->gpus <= job->max_gpus &&
		       job->max_gpus <= SW_TRACE_MAX_GPUS);
		assert(job->id >= 0 && job->iterations >= 0 && job->iteration_ns >= 0 && job->weight_milli >= 1);
		assert((job->deadline_ns == SW_NEVER) == (job->deadline_kind == SW_TRACE_NO_DEADLINE));
		assert(job->deadline_ns >= 0);
		assert(job->name < trace->strings.count && job->model < trace->strings.count && job->tenant < trace->strings.count);
	}
}

static void check_round_trip(const struct sw_trace *trace)
{
	SW_CLEANUP(sw_freep) char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	if (out == NULL)
		return;
	int written = sw_trace_write(trace, "sharewell", out, NULL, NULL);
	fclose(out);
	SW_CLEANUP(sw_trace_freep) struct sw_trace *back = NULL;
	assert(written == 0 && sw_trace_parse("back", text, size, "sharewell", &back, NULL) == 0);
	assert(back->jobs.count == trace->jobs.count);
	for (size_t i = 0; i < trace->jobs.count; i++) {
		const struct sw_trace_job *a = &trace->jobs.items[i], *b = &back->jobs.items[i];
		assert(a->id == b->id && a->submit_ns == b->submit_ns && a->duration_ns == b->duration_ns &&
		       a->deadline_ns == b->deadline_ns);
		assert(a->iterations == b->iterations && a->iteration_ns == b->iteration_ns && a->weight_milli == b->weight_milli);
		assert(strcmp(sw_trace_string(trace, a->name), sw_trace_string(back, b->name)) == 0);
		assert(strcmp(sw_trace_string(trace, a->tenant), sw_trace_string(back, b->tenant)) == 0);
	}
}

static void count_problem(void *user, const struct sw_trace_problem *problem)
{
	assert(problem->text[0] != '\0');
	*(size_t *)user += problem->severity == SW_TRACE_ERROR;
}

static void count_nothing(void *user, const struct sw_trace *trace, const struct sw_trace_job *job, uint64_t line)
{
	(void)user;
	assert(job == &trace->jobs.items[trace->jobs.count - 1] && line > 0);
}

/* Going on after errors finds one exactly where stopping at the first did, as far
 * as rows are concerned. */
static void check_listening(const uint8_t *data, size_t size, const char *format, int stopped)
{
	SW_CLEANUP(sw_stream_closep) struct sw_stream *stream = NULL;
	SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = NULL;
	size_t errors = 0;
	struct sw_trace_listener listener = {count_problem, count_nothing, &errors};
	if (sw_stream_open_memory("fuzz", data, size, &stream, NULL) < 0)
		return;
	if (sw_trace_read(stream, format, &listener, &trace, NULL) == 0)
		assert((errors == 0 && trace->jobs.count > 0) == (stopped == 0));
	else
		assert(stopped < 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	struct sw_trace *trace = NULL;
	struct sw_err err = {0};
	const char *format = choose_format(data[0]);
	int r = sw_trace_parse("fuzz", data + 1, size - 1, format, &trace, &err);
	assert(r == err.code && (r == 0) == (trace != NULL));
	check_listening(data + 1, size - 1, format, r);
	if (r == 0) {
		check_invariants(trace);
		if (size < 1 << 16)
			check_round_trip(trace);
	}
	sw_trace_free(trace);
	return 0;
}
