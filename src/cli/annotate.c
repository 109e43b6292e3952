/* What became of jobs that did not finish, in words, and which settings were in force. It is added
 * to a result so that table, JSON and page all tell it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/sim.h"

/* Jobs that share a fate, and the first of them as an example. */
struct fate {
	uint64_t jobs;
	size_t first;
};

struct fates {
	struct fate too_large, no_place, failed, unfinished;
};

static void count(struct fate *fate, size_t job)
{
	if (fate->jobs++ == 0)
		fate->first = job;
}

static struct fates count_fates(const struct sw_result *result)
{
	struct fates fates = {0};
	for (size_t i = 0; i < result->outcomes.count; i++) {
		const struct sw_outcome *outcome = &result->outcomes.items[i];
		if (outcome->state == SW_OUTCOME_REFUSED)
			count(outcome->gpus > result->gpus ? &fates.too_large : &fates.no_place, i);
		else if (outcome->state == SW_OUTCOME_FAILED)
			count(&fates.failed, i);
		else if (outcome->state == SW_OUTCOME_UNFINISHED)
			count(&fates.unfinished, i);
	}
	return fates;
}

/* "3 jobs were refused (the first is job 17 with 128 GPUs)" */
static void put_fate(FILE *out, const struct sw_trace *trace, const struct fate *fate, const char *one, const char *many)
{
	const struct sw_trace_job *job = &trace->jobs.items[fate->first];
	char number[SW_TEXT_SIZE], gpus[SW_TEXT_SIZE];
	fprintf(out, "%s %s (%s job ", sw_text_plural(fate->jobs, "job", "jobs", number), fate->jobs == 1 ? one : many,
		fate->jobs == 1 ? "it is" : "the first is");
	if (trace->named)
		fprintf(out, "'%.100s'", sw_trace_string(trace, job->name));
	else
		fprintf(out, "%" PRId64, job->id);
	fprintf(out, ", with %s)", sw_text_plural(job->gpus, "GPU", "GPUs", gpus));
}

static void put_fates(FILE *out, const struct sw_cli_study *study, const struct sw_result *result)
{
	struct fates fates = count_fates(result);
	char number[SW_TEXT_SIZE];
	if (fates.too_large.jobs > 0) {
		put_fate(out, study->trace, &fates.too_large, "was refused", "were refused");
		fprintf(out, ": more GPUs than the cluster's %s.\n", sw_text_count(result->gpus, number));
	}
	if (fates.no_place.jobs > 0) {
		put_fate(out, study->trace, &fates.no_place, "was refused", "were refused");
		fprintf(out, ": the placement rule '%s' finds no place even on the empty cluster.\n", study->placement->name);
	}
	if (fates.failed.jobs > 0) {
		put_fate(out, study->trace, &fates.failed, "failed for good", "failed for good");
		fprintf(out, ": retries (%" PRId64 ") were used up.\n", study->world->retries);
	}
	if (fates.unfinished.jobs > 0) {
		put_fate(out, study->trace, &fates.unfinished, "never finished", "never finished");
		fputs(": nothing was left to happen that would let them run.\n", out);
	}
}

/* What `put` prints behind `before`, in one new text that replaces it. */
static int extend(char **text, const char *more)
{
	bool gap = (*text)[0] != '\0' && (*text)[strlen(*text) - 1] != '\n' && more[0] != '\0';
	char *joined = NULL;
	if (asprintf(&joined, "%s%s%s", *text, gap ? "\n" : "", more) < 0)
		return SW_ENOMEM;
	free(*text);
	*text = joined;
	return 0;
}

int sw_cli_annotate(const struct sw_cli_study *study, const struct sw_cli_contender *contender, struct sw_result *result,
		    struct sw_err *err)
{
	SW_CLEANUP(sw_freep) char *fates = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&fates, &size);
	if (out != NULL)
		put_fates(out, study, result);
	if (out == NULL || fclose(out) != 0 || extend(&result->notes, fates) < 0 || extend(&result->assumptions, contender->settings) < 0)
		return sw_err_set(err, SW_ENOMEM, "out of memory for the results");
	return 0;
}
