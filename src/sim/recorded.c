#include "sim/recorded.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FAR_S 2.0
#define FAR_SHARE 0.25

static const struct sw_trace_fate *fate_of(const struct sw_trace *trace, const struct sw_trace_job *job)
{
	return job->fate != 0 ? &trace->fates.items[job->fate - 1] : NULL;
}

void sw_recorded_count(const struct sw_trace *trace, uint64_t *ends)
{
	memset(ends, 0, SW_TRACE_ENDS * sizeof *ends);
	for (size_t i = 0; i < trace->jobs.count; i++) {
		const struct sw_trace_fate *fate = fate_of(trace, &trace->jobs.items[i]);
		ends[fate != NULL ? fate->end : SW_TRACE_END_UNKNOWN]++;
	}
}

static struct sw_outcome outcome_of(const struct sw_trace *trace, const struct sw_trace_job *job)
{
	const struct sw_trace_fate *fate = fate_of(trace, job);
	struct sw_outcome outcome = {
		.id = job->id,
		.submit_ns = job->submit_ns,
		.start_ns = SW_NEVER,
		.end_ns = SW_NEVER,
		.work_ns = job->duration_ns,
		.deadline_ns = job->deadline_ns,
		.gpus = job->gpus,
		.tenant = job->tenant,
		.state = SW_OUTCOME_UNFINISHED,
	};
	if (fate == NULL || fate->ended_ns == SW_NEVER || fate->ended_ns < job->submit_ns)
		return outcome;
	int64_t jct_ns = fate->ended_ns - job->submit_ns;
	outcome.start_ns = fate->started_ns;
	outcome.end_ns = fate->ended_ns;
	outcome.run_ns = job->duration_ns < jct_ns ? job->duration_ns : jct_ns;
	outcome.wait_ns = jct_ns - outcome.run_ns;
	outcome.preemptions = fate->preemptions;
	outcome.state = SW_OUTCOME_FINISHED;
	return outcome;
}

static int describe(struct sw_result *result, const struct sw_trace *trace, const char *label, const char *cluster)
{
	result->policy = strdup(label);
	result->placement = strdup("");
	result->world = strdup("");
	result->trace = strdup(trace->origin);
	result->cluster = strdup(cluster);
	result->assumptions = strdup("");
	result->notes = strdup("");
	bool whole = result->policy != NULL && result->placement != NULL && result->world != NULL && result->trace != NULL &&
		     result->cluster != NULL && result->assumptions != NULL && result->notes != NULL;
	return whole ? 0 : SW_ENOMEM;
}

int sw_recorded_result(const struct sw_trace *trace, const char *label, const char *cluster, uint32_t gpus, struct sw_result **ret_result,
		       struct sw_err *err)
{
	SW_CLEANUP(sw_result_freep) struct sw_result *result = calloc(1, sizeof *result);
	struct sw_outcome *outcomes = result != NULL ? sw_vec_push_n(&result->outcomes, trace->jobs.count) : NULL;
	if (outcomes == NULL || describe(result, trace, label, cluster) < 0)
		return sw_err_set(err, SW_ENOMEM, "out of memory for the results");
	result->recorded = true;
	result->gpus = gpus;
	bool known = false;
	for (size_t i = 0; i < trace->jobs.count; i++) {
		outcomes[i] = outcome_of(trace, &trace->jobs.items[i]);
		known = known || outcomes[i].state == SW_OUTCOME_FINISHED;
	}
	if (!known) {
		sw_err_set(err, SW_EINPUT, "the trace '%.150s' does not tell what really happened", trace->origin);
		sw_err_detail(err, "no job has a time in the column ended_s");
		sw_err_hint(err, "'sharewell history --export' writes such traces; 'sharewell sim --trace' runs those without.");
		return SW_EINPUT;
	}
	sw_result_summarise(result);
	*ret_result = SW_TAKE(result);
	return 0;
}

bool sw_recorded_is_far(const struct sw_result *record, const struct sw_result *simulated)
{
	const char *name = strchr(record->policy, '(');
	size_t size = strlen(simulated->policy);
	if (name == NULL || strncmp(name + 1, simulated->policy, size) != 0 || name[1 + size] != ')')
		return false;
	double real = record->summary.jct_avg_s, far = fabs(simulated->summary.jct_avg_s - real);
	return far > FAR_S && far > FAR_SHARE * real;
}
