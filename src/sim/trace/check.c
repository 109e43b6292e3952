#include "sim/trace/check.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "sim/trace/read.h"
#include "sim/trace/seen.h"

/* Something that is only worth saying once, with how often it was met. */
struct tally {
	uint64_t count;
	uint64_t first_line;
};

struct checker {
	sw_trace_problem_fn *report;
	void *user;
	uint64_t limit;
	struct sw_trace_verdict verdict;
	struct sw_seen seen;
	int64_t last_submit_ns;
	struct tally unsorted;	 /* submitted before an earlier line's job */
	struct tally impossible; /* cannot meet their deadline even when they start at once */
	struct tally workless;	 /* neither duration nor iterations */
	struct tally instant;	 /* duration zero, although the file gives durations */
	bool out_of_memory;
};

const char *sw_trace_severity_name(enum sw_trace_severity severity)
{
	return severity == SW_TRACE_ERROR ? "error" : severity == SW_TRACE_WARNING ? "warning" : "note";
}

static void pass_on(void *user, const struct sw_trace_problem *problem)
{
	struct checker *checker = user;
	checker->verdict.found[problem->severity]++;
	if (checker->verdict.found[problem->severity] > checker->limit)
		checker->verdict.unsaid[problem->severity]++;
	else
		checker->report(checker->user, problem);
}

static void __attribute__((format(printf, 5, 6)))
say(struct checker *checker, enum sw_trace_severity severity, uint64_t line, const char *column, const char *fmt, ...)
{
	char text[256];
	va_list args;
	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	pass_on(checker, &(struct sw_trace_problem){severity, line, column, text});
}

static void count(struct tally *tally, uint64_t line)
{
	if (tally->count++ == 0)
		tally->first_line = line;
}

static void check_id(struct checker *checker, const struct sw_trace *trace, const struct sw_trace_job *job, uint64_t line)
{
	uint64_t earlier;
	if (sw_seen_add(&checker->seen, trace->named ? (int64_t)job->name : job->id, line, &earlier) < 0) {
		checker->out_of_memory = true;
		return;
	}
	if (earlier == 0)
		return;
	if (trace->named)
		say(checker, SW_TRACE_ERROR, line, NULL, "the job '%.60s' is on line %llu too", sw_trace_string(trace, job->name),
		    (unsigned long long)earlier);
	else
		say(checker, SW_TRACE_ERROR, line, NULL, "job %lld is on line %llu too", (long long)job->id, (unsigned long long)earlier);
}

/* Whether two lengths of time differ by more than a tenth, and by more than one iteration,
 * which rounding explains. */
static bool differ(__int128 a, __int128 b, __int128 slack)
{
	__int128 apart = a > b ? a - b : b - a;
	return apart * 10 > (a > b ? a : b) && apart > slack;
}

static void check_work(struct checker *checker, const struct sw_trace_job *job, uint64_t line)
{
	if (job->duration_ns == 0 && job->iterations == 0)
		count(&checker->workless, line);
	if (job->duration_ns == 0 && job->iterations > 0 && job->iteration_ns > 0)
		count(&checker->instant, line);
	if (job->duration_ns == 0 || job->iterations == 0 || job->iteration_ns == 0)
		return;
	__int128 work = (__int128)job->iterations * job->iteration_ns;
	if (differ(work, job->duration_ns, job->iteration_ns + SW_NS_PER_S))
		say(checker, SW_TRACE_NOTE, line, NULL, "%lld iterations of %.3f ms are %.0f s, but the duration is %.0f s",
		    (long long)job->iterations, (double)job->iteration_ns / 1e6, (double)work / 1e9, (double)job->duration_ns / 1e9);
}

static void check_deadline(struct checker *checker, const struct sw_trace_job *job, uint64_t line)
{
	if (job->deadline_ns == SW_NEVER)
		return;
	if (job->deadline_ns < job->submit_ns)
		say(checker, SW_TRACE_WARNING, line, NULL, "the deadline lies %.0f s before the submit time",
		    (double)(job->submit_ns - job->deadline_ns) / 1e9);
	else if (job->deadline_ns - job->submit_ns < job->duration_ns)
		count(&checker->impossible, line);
}

static void check_job(void *user, const struct sw_trace *trace, const struct sw_trace_job *job, uint64_t line)
{
	struct checker *checker = user;
	check_id(checker, trace, job, line);
	check_work(checker, job, line);
	check_deadline(checker, job, line);
	if (job->submit_ns < checker->last_submit_ns)
		count(&checker->unsorted, line);
	checker->last_submit_ns = job->submit_ns;
}

static void say_tally(struct checker *checker, const struct tally *tally, enum sw_trace_severity severity, const char *what)
{
	if (tally->count > 0)
		say(checker, severity, 0, NULL, "%llu job%s %s (first on line %llu)", (unsigned long long)tally->count,
		    tally->count == 1 ? "" : "s", what, (unsigned long long)tally->first_line);
}

static void conclude(struct checker *checker, const struct sw_trace *trace)
{
	checker->verdict.format = trace->format;
	checker->verdict.jobs = trace->jobs.count;
	checker->verdict.left_out = (uint64_t)trace->rows_skipped;
	if (trace->jobs.count == 0)
		say(checker, SW_TRACE_ERROR, 0, NULL, "no job could be read");
	say_tally(checker, &checker->instant, SW_TRACE_WARNING, "with iterations but a duration of 0");
	say_tally(checker, &checker->workless, SW_TRACE_NOTE,
		  "without duration or iterations: their work must come from a profile of the model");
	say_tally(checker, &checker->impossible, SW_TRACE_NOTE, "with a deadline that cannot be met on the given number of GPUs");
	say_tally(checker, &checker->unsorted, SW_TRACE_NOTE, "submitted before the line above: sorted when read");
}

int sw_trace_check(const char *path, const char *format, uint64_t limit, sw_trace_problem_fn *report, void *user,
		   struct sw_trace_verdict *ret_verdict, struct sw_err *err)
{
	struct checker checker = {.report = report, .user = user, .limit = limit, .last_submit_ns = INT64_MIN};
	struct sw_trace_listener listener = {pass_on, check_job, &checker};
	SW_CLEANUP(sw_stream_closep) struct sw_stream *stream = NULL;
	SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = NULL;
	int r = sw_stream_open(path, &stream, err);
	if (r == 0)
		r = sw_trace_read(stream, format, &listener, &trace, err);
	sw_seen_release(&checker.seen);
	if (r == 0 && checker.out_of_memory)
		r = sw_err_set(err, SW_ENOMEM, "cannot check trace '%s': out of memory", path);
	if (r < 0)
		return r;
	assert(trace != NULL);
	conclude(&checker, trace);
	*ret_verdict = checker.verdict;
	return 0;
}
