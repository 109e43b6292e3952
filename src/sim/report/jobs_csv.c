#include "sim/report/jobs_csv.h"

#include <inttypes.h>
#include <string.h>

#include "base/number.h"
#include "base/text.h"

static const char *state_name(uint8_t state)
{
	switch (state) {
	case SW_OUTCOME_FINISHED:
		return "finished";
	case SW_OUTCOME_FAILED:
		return "failed";
	case SW_OUTCOME_REFUSED:
		return "refused";
	default:
		return "unfinished";
	}
}

/* A name as one CSV cell: quoted where it must be. */
static void write_name(FILE *out, const char *name)
{
	if (strpbrk(name, ",\"\r\n") == NULL) {
		fputs(name, out);
		return;
	}
	fputc('"', out);
	for (; *name != '\0'; name++) {
		if (*name == '"')
			fputc('"', out);
		fputc(*name, out);
	}
	fputc('"', out);
}

static char *time_cell(int64_t ns, char *buffer)
{
	if (ns != SW_NEVER)
		return sw_text_seconds(ns, buffer);
	buffer[0] = '\0';
	return buffer;
}

static void write_job(FILE *out, const struct sw_outcome *job)
{
	char submit[SW_TEXT_SIZE], start[SW_TEXT_SIZE], end[SW_TEXT_SIZE], run[SW_TEXT_SIZE], jct[SW_TEXT_SIZE], work[SW_TEXT_SIZE],
		wait[SW_TEXT_SIZE];
	int64_t jct_ns = job->end_ns == SW_NEVER ? SW_NEVER : job->end_ns - job->submit_ns;
	fprintf(out, "%" PRId64 ",%" PRIu32 ",%s,%s,%s,%s,%s,%s,%s,", job->id, job->gpus, time_cell(job->submit_ns, submit),
		time_cell(job->start_ns, start), time_cell(job->end_ns, end), time_cell(job->run_ns, run), time_cell(jct_ns, jct),
		time_cell(job->work_ns, work), time_cell(job->wait_ns, wait));
	fprintf(out, "%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%s\n", job->preemptions, job->migrations, job->restarts,
		job->promotions, state_name(job->state));
}

static void write_policy(FILE *out, const struct sw_result *result)
{
	write_name(out, result->policy != NULL ? result->policy : "");
	fputc(',', out);
}

int sw_results_jobs_csv(FILE *out, const struct sw_result *const *results, size_t count, struct sw_err *err)
{
	fprintf(out,
		"%sjob_id,num_gpu,submit_time,start_time,end_time,executed_time,JCT,duration,pending_time,preempt,migrate,restart,promote,"
		"state\n",
		count > 1 ? "policy," : "");
	for (size_t r = 0; r < count; r++) {
		for (size_t i = 0; i < results[r]->outcomes.count; i++) {
			if (count > 1)
				write_policy(out, results[r]);
			write_job(out, &results[r]->outcomes.items[i]);
		}
		if (ferror(out))
			break;
	}
	return ferror(out) ? sw_err_set(err, SW_EIO, "cannot write the table of jobs") : 0;
}

static const char *event_name(uint8_t kind)
{
	switch (kind) {
	case SW_JOB_STARTED:
		return "start";
	case SW_JOB_RESUMED:
		return "resume";
	case SW_JOB_STOPPED:
		return "stop";
	case SW_JOB_MOVED:
		return "move";
	case SW_JOB_ENDED:
		return "end";
	case SW_JOB_BROKE:
		return "fail";
	default:
		return "refuse";
	}
}

int sw_results_events_csv(FILE *out, const struct sw_result *const *results, size_t count, struct sw_err *err)
{
	fprintf(out, "%stime,job_id,event\n", count > 1 ? "policy," : "");
	for (size_t r = 0; r < count && !ferror(out); r++)
		for (size_t i = 0; i < results[r]->job_events.count; i++) {
			const struct sw_job_event *event = &results[r]->job_events.items[i];
			char at[SW_TEXT_SIZE];
			if (count > 1)
				write_policy(out, results[r]);
			fprintf(out, "%s,%" PRId64 ",%s\n", sw_text_seconds(event->at_ns, at), event->job, event_name(event->kind));
		}
	return ferror(out) ? sw_err_set(err, SW_EIO, "cannot write the events of the jobs") : 0;
}
