/* The summary of a result. Sums are exact integers until the last division, so an average does not
 * depend on the order of the jobs. */
#include "sim/result.h"

#include <stdlib.h>

#include "base/number.h"
#include "sim/fairness.h"
#include "sim/quantile.h"

/* 128 bits: 2^32 jobs of 292 years on 2^32 GPUs each cannot overflow it. */
typedef __int128 wide;

void sw_result_free(struct sw_result *result)
{
	if (result == NULL)
		return;
	free(result->policy);
	free(result->placement);
	free(result->world);
	free(result->trace);
	free(result->cluster);
	free(result->assumptions);
	free(result->notes);
	sw_vec_free(&result->outcomes);
	sw_vec_free(&result->usage);
	sw_vec_free(&result->job_events);
	free(result);
}

static bool has_ended(const struct sw_outcome *outcome)
{
	return outcome->end_ns != SW_NEVER && (outcome->state == SW_OUTCOME_FINISHED || outcome->state == SW_OUTCOME_FAILED);
}

static bool jct_of(const void *context, size_t index, int64_t *ret_value)
{
	const struct sw_outcome *outcome = &((const struct sw_outcome *)context)[index];
	*ret_value = outcome->end_ns - outcome->submit_ns;
	return outcome->state == SW_OUTCOME_FINISHED;
}

static bool wait_of(const void *context, size_t index, int64_t *ret_value)
{
	const struct sw_outcome *outcome = &((const struct sw_outcome *)context)[index];
	*ret_value = outcome->wait_ns;
	return outcome->state == SW_OUTCOME_FINISHED;
}

static double average_s(wide sum_ns, uint64_t count)
{
	return count == 0 ? 0 : (double)sum_ns / ((double)count * SW_NS_PER_S);
}

static bool misses_deadline(const struct sw_outcome *outcome)
{
	return outcome->state != SW_OUTCOME_FINISHED || outcome->end_ns > outcome->deadline_ns;
}

/* Counts and averages. Returns the span from the first submit to the last end. */
static void count_outcomes(const struct sw_result *result, struct sw_summary *summary, int64_t *ret_first_ns, int64_t *ret_last_ns)
{
	wide jct_sum = 0, wait_sum = 0, share_sum = 0;
	int64_t jct_max = 0, first = SW_NEVER, last = 0;
	for (size_t i = 0; i < result->outcomes.count; i++) {
		const struct sw_outcome *outcome = &result->outcomes.items[i];
		summary->jobs++;
		summary->preemptions += outcome->preemptions;
		summary->migrations += outcome->migrations;
		summary->restarts += outcome->restarts;
		summary->failed += outcome->state == SW_OUTCOME_FAILED;
		summary->refused += outcome->state == SW_OUTCOME_REFUSED;
		if (outcome->deadline_ns != SW_NEVER) {
			summary->deadlines++;
			summary->deadlines_missed += misses_deadline(outcome);
		}
		if (outcome->submit_ns < first)
			first = outcome->submit_ns;
		if (has_ended(outcome) && outcome->end_ns > last)
			last = outcome->end_ns;
		if (outcome->state != SW_OUTCOME_FINISHED)
			continue;
		int64_t jct = outcome->end_ns - outcome->submit_ns;
		summary->finished++;
		jct_sum += jct;
		wait_sum += outcome->wait_ns;
		share_sum += outcome->share_wait_ns;
		if (jct > jct_max)
			jct_max = jct;
	}
	summary->jct_avg_s = average_s(jct_sum, summary->finished);
	summary->jct_max_s = (double)jct_max / SW_NS_PER_S;
	summary->queue_avg_s = average_s(wait_sum, summary->finished);
	summary->share_delay_avg_s = average_s(share_sum, summary->finished);
	summary->makespan_s = (double)last / SW_NS_PER_S;
	*ret_first_ns = first;
	*ret_last_ns = last;
}

static double utilization_of_outcomes(const struct sw_result *result, int64_t first_ns, int64_t last_ns)
{
	wide used = 0;
	for (size_t i = 0; i < result->outcomes.count; i++)
		used += (wide)result->outcomes.items[i].run_ns * result->outcomes.items[i].gpus;
	wide up = (wide)(last_ns - first_ns) * result->gpus;
	return up <= 0 ? 0 : (double)used / (double)up;
}

static double utilization(const struct sw_result *result, int64_t first_ns, int64_t last_ns)
{
	if (last_ns <= first_ns)
		return 0;
	/* The cluster's own account knows shared GPUs, resized jobs and lost nodes. */
	double share = result->gpu_up_s > 0 ? result->gpu_used_s / result->gpu_up_s : utilization_of_outcomes(result, first_ns, last_ns);
	return share < 0 ? 0 : share > 1 ? 1 : share;
}

void sw_result_summarise(struct sw_result *result)
{
	struct sw_summary summary = {0};
	int64_t first_ns, last_ns;
	count_outcomes(result, &summary, &first_ns, &last_ns);
	summary.gpu_utilization = utilization(result, first_ns, last_ns);

	double found[3];
	sw_quantiles(jct_of, result->outcomes.items, result->outcomes.count, (const unsigned[]){500, 950, 990}, 3, found);
	summary.jct_median_s = found[0] / SW_NS_PER_S;
	summary.jct_p95_s = found[1] / SW_NS_PER_S;
	summary.jct_p99_s = found[2] / SW_NS_PER_S;
	sw_quantiles(wait_of, result->outcomes.items, result->outcomes.count, (const unsigned[]){950}, 1, found);
	summary.queue_p95_s = found[0] / SW_NS_PER_S;
	(void)sw_fairness_summarise(result, &summary);
	result->summary = summary;
}
