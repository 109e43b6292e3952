#include "sim/report/compare.h"

#include <math.h>
#include <string.h>

double sw_metric_value(const struct sw_result *result, enum sw_metric metric)
{
	const struct sw_summary *summary = &result->summary;
	switch (metric) {
	case SW_METRIC_JCT_AVG:
		return summary->jct_avg_s;
	case SW_METRIC_JCT_MEDIAN:
		return summary->jct_median_s;
	case SW_METRIC_JCT_P95:
		return summary->jct_p95_s;
	case SW_METRIC_JCT_P99:
		return summary->jct_p99_s;
	case SW_METRIC_QUEUE_AVG:
		return summary->queue_avg_s;
	case SW_METRIC_MAKESPAN:
		return summary->makespan_s;
	case SW_METRIC_UTILIZATION:
		return summary->gpu_utilization;
	case SW_METRIC_PREEMPTIONS:
		return (double)summary->preemptions;
	case SW_METRIC_MIGRATIONS:
		return (double)summary->migrations;
	case SW_METRIC_FINISHED:
		return (double)summary->finished;
	case SW_METRIC_CPU:
		return result->cpu_s;
	}
	return 0;
}

bool sw_compare_fair(const struct sw_result *const *results, size_t count, size_t index)
{
	uint64_t finished = results[index]->summary.finished;
	for (size_t i = 0; i < count; i++)
		if (results[i]->summary.finished > finished)
			return false;
	return finished > 0;
}

/* How good a value is: more is better. NAN where better means nothing. */
static double merit(const struct sw_result *result, enum sw_metric metric)
{
	switch (metric) {
	case SW_METRIC_PREEMPTIONS:
	case SW_METRIC_MIGRATIONS:
	case SW_METRIC_FINISHED:
	case SW_METRIC_CPU:
		return NAN;
	case SW_METRIC_UTILIZATION:
		return sw_metric_value(result, metric);
	default:
		return -sw_metric_value(result, metric);
	}
}

bool sw_compare_best(const struct sw_result *const *results, size_t count, enum sw_metric metric, size_t index)
{
	double own = merit(results[index], metric);
	if (isnan(own) || !sw_compare_fair(results, count, index))
		return false;
	bool beats_some = false;
	for (size_t i = 0; i < count; i++) {
		bool fair = sw_compare_fair(results, count, i);
		double other = merit(results[i], metric);
		if (fair && other > own)
			return false;
		if (!fair || other < own)
			beats_some = true;
	}
	return beats_some;
}

size_t sw_compare_winner(const struct sw_result *const *results, size_t count)
{
	size_t winner = count;
	for (size_t i = 0; i < count; i++)
		if (sw_compare_fair(results, count, i) &&
		    (winner == count || results[i]->summary.jct_avg_s < results[winner]->summary.jct_avg_s))
			winner = i;
	return winner;
}

size_t sw_compare_baseline(const struct sw_result *const *results, size_t count)
{
	size_t slowest = count;
	for (size_t i = 0; i < count; i++) {
		if (!sw_compare_fair(results, count, i))
			continue;
		if (results[i]->policy != NULL && strcmp(results[i]->policy, "fifo") == 0)
			return i;
		if (slowest == count || results[i]->summary.jct_avg_s > results[slowest]->summary.jct_avg_s)
			slowest = i;
	}
	return slowest;
}
