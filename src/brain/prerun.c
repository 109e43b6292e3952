/* Pre-runs: a job with many GPUs first runs on one, for a while. A wrong option or a missing module
 * then costs one GPU and not all of them.
 *
 * One record makes two jobs: the pre-run, then the gang, which waits for it. The gang ends with the
 * pre-run when that fails in a way that only the user can mend. Any other end, and the end of its
 * time, lets the gang start. Memory that runs out on one GPU says nothing about many, so it does
 * not count.
 *
 * The members of an array have one pre-run together, which runs as the first of them would. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "brain/prerun.h"
#include "brain/state.h"

struct sw_job_request *sw_prerun_request(const struct sw_job_request *request)
{
	SW_CLEANUP(sw_job_request_freep) struct sw_job_request *first = sw_job_request_copy(request);
	if (first == NULL)
		return NULL;
	static const char suffix[] = ".prerun";
	size_t length = sw_utf8_start(first->name, SW_JOB_NAME_MAX - (sizeof suffix - 1));
	char *name = NULL;
	if (asprintf(&name, "%.*s%s", (int)length, first->name, suffix) < 0)
		return NULL;
	free(first->name);
	first->name = name;
	first->gpus = first->min_gpus = first->max_gpus = 1;
	first->time_limit_ns = first->prerun_ns;
	first->prerun_ns = 0;
	first->retries = 0;
	first->retries_said = true;
	return SW_TAKE(first);
}

uint64_t sw_prerun_of(const struct sw_live *live)
{
	for (uint32_t d = 0; d < live->depend_count; d++)
		if (live->depends[d].kind == SW_AFTER_PRERUN)
			return live->depends[d].job;
	return 0;
}

int sw_prerun_spoil(struct sw_live *gang, const struct sw_live *prerun)
{
	const struct sw_trouble *trouble = prerun->trouble;
	if (trouble == NULL || trouble->cause.layer != SW_LAYER_USER || trouble->cause.action != SW_ACTION_NONE)
		return 0;
	gang->trouble = calloc(1, sizeof *gang->trouble);
	char *line = strdup(trouble->cause.line);
	if (gang->trouble == NULL || line == NULL) {
		free(line);
		return SW_ENOMEM;
	}
	gang->trouble->cause = trouble->cause;
	gang->trouble->cause.line = line;
	snprintf(gang->trouble->why, sizeof gang->trouble->why, "its pre-run on one GPU failed, so the job was not started");
	snprintf(gang->reason, sizeof gang->reason, "pre-run: %s", trouble->cause.name);
	gang->code = prerun->code;
	gang->signal = prerun->signal;
	gang->spoiled = true;
	return 0;
}

void sw_prerun_pass(struct sw_live *prerun)
{
	if (prerun->trouble != NULL)
		free(prerun->trouble->cause.line);
	free(prerun->trouble);
	prerun->trouble = NULL;
	prerun->timed_out = false;
	prerun->code = prerun->signal = 0;
	snprintf(prerun->reason, sizeof prerun->reason, "passed: it ran for as long as it should");
}
