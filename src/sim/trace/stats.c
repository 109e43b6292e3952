#include "sim/trace/stats.h"

#include <assert.h>
#include <string.h>

typedef SW_VEC(double) numbers;

static void free_numbers(numbers *values)
{
	sw_vec_free(values);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double quantile(const numbers *sorted, double q)
{
	double rank = (double)(sorted->count - 1) * q;
	size_t below = (size_t)rank;
	if (below + 1 >= sorted->count)
		return sorted->items[sorted->count - 1];
	return sorted->items[below] + (sorted->items[below + 1] - sorted->items[below]) * (rank - (double)below);
}

static struct sw_trace_spread spread(numbers *values)
{
	if (values->count == 0)
		return (struct sw_trace_spread){0};
	qsort(values->items, values->count, sizeof *values->items, by_value);
	double sum = 0;
	for (size_t i = 0; i < values->count; i++)
		sum += values->items[i];
	return (struct sw_trace_spread){
		.min = values->items[0],
		.p5 = quantile(values, 0.05),
		.p25 = quantile(values, 0.25),
		.median = quantile(values, 0.5),
		.p75 = quantile(values, 0.75),
		.p90 = quantile(values, 0.9),
		.p95 = quantile(values, 0.95),
		.p99 = quantile(values, 0.99),
		.max = values->items[values->count - 1],
		.mean = sum / (double)values->count,
	};
}

static double gpu_seconds(const struct sw_trace_job *job)
{
	return (double)job->duration_ns / 1e9 * job->gpus;
}

/* All three distributions share one array of numbers, filled three times. */
static int fill_spreads(const struct sw_trace *trace, struct sw_trace_stats *stats)
{
	SW_CLEANUP(free_numbers) numbers values = {0};
	size_t count = trace->jobs.count;
	if (count > 0 && sw_vec_push_n(&values, count) == NULL)
		return SW_ENOMEM;
	for (size_t i = 0; i < count; i++)
		values.items[i] = trace->jobs.items[i].gpus;
	stats->gpus = spread(&values);
	values.count = 0;
	for (size_t i = 0; i < count; i++)
		if (trace->jobs.items[i].duration_ns > 0)
			values.items[values.count++] = (double)trace->jobs.items[i].duration_ns / 1e9;
	stats->duration_s = spread(&values);
	values.count = 0;
	for (size_t i = 1; i < count; i++)
		values.items[values.count++] = (double)(trace->jobs.items[i].submit_ns - trace->jobs.items[i - 1].submit_ns) / 1e9;
	stats->gap_s = spread(&values);
	return 0;
}

static int by_jobs(const void *a, const void *b)
{
	const struct sw_trace_share *x = a, *y = b;
	if (x->jobs != y->jobs)
		return x->jobs < y->jobs ? 1 : -1;
	return strcmp(x->name, y->name);
}

static int by_gpus(const void *a, const void *b)
{
	const struct sw_trace_share *x = a, *y = b;
	return (x->gpus > y->gpus) - (x->gpus < y->gpus);
}

/* Sums up by one of the strings of a job (found at `offset`). The strings' indices are dense, so a
 * plain array of them finds each share. */
static int share_by_string(const struct sw_trace *trace, size_t offset, sw_trace_shares *shares)
{
	SW_CLEANUP(sw_freep) uint32_t *places = calloc(trace->strings.count, sizeof *places);
	if (places == NULL)
		return SW_ENOMEM;
	for (size_t i = 0; i < trace->jobs.count; i++) {
		const struct sw_trace_job *job = &trace->jobs.items[i];
		uint32_t string;
		memcpy(&string, (const char *)job + offset, sizeof string);
		if (places[string] == 0) {
			struct sw_trace_share *share = sw_vec_push(shares);
			if (share == NULL || (share->name = strdup(sw_trace_string(trace, string))) == NULL)
				return SW_ENOMEM;
			places[string] = (uint32_t)shares->count;
		}
		struct sw_trace_share *share = &shares->items[places[string] - 1];
		share->jobs++;
		share->gpu_s += gpu_seconds(job);
	}
	if (shares->count > 0)
		qsort(shares->items, shares->count, sizeof *shares->items, by_jobs);
	return 0;
}

static int share_by_size(const struct sw_trace *trace, sw_trace_shares *shares)
{
	SW_CLEANUP(sw_freep) uint32_t *places = calloc((size_t)SW_TRACE_MAX_GPUS + 1, sizeof *places);
	if (places == NULL)
		return SW_ENOMEM;
	for (size_t i = 0; i < trace->jobs.count; i++) {
		const struct sw_trace_job *job = &trace->jobs.items[i];
		assert(job->gpus <= SW_TRACE_MAX_GPUS);
		if (places[job->gpus] == 0) {
			struct sw_trace_share *share = sw_vec_push(shares);
			if (share == NULL)
				return SW_ENOMEM;
			share->gpus = job->gpus;
			places[job->gpus] = (uint32_t)shares->count;
		}
		struct sw_trace_share *share = &shares->items[places[job->gpus] - 1];
		share->jobs++;
		share->gpu_s += gpu_seconds(job);
	}
	if (shares->count > 0)
		qsort(shares->items, shares->count, sizeof *shares->items, by_gpus);
	return 0;
}

static void fill_counts(const struct sw_trace *trace, struct sw_trace_stats *stats)
{
	for (size_t i = 0; i < trace->jobs.count; i++) {
		const struct sw_trace_job *job = &trace->jobs.items[i];
		stats->gpu_s += gpu_seconds(job);
		stats->without_duration += job->duration_ns == 0;
		stats->opportunistic += job->job_class == SW_CLASS_OPPORTUNISTIC;
		stats->elastic += job->min_gpus != job->max_gpus;
		stats->strict_deadlines += job->deadline_kind == SW_TRACE_STRICT;
		stats->soft_deadlines += job->deadline_kind == SW_TRACE_SOFT;
		stats->impossible_deadlines += job->deadline_ns != SW_NEVER && job->deadline_ns < job->submit_ns + job->duration_ns;
		stats->hourly[job->submit_ns / (3600 * SW_NS_PER_S) % 24]++;
	}
}

int sw_trace_stats(const struct sw_trace *trace, uint64_t cluster_gpus, struct sw_trace_stats *ret_stats, struct sw_err *err)
{
	struct sw_trace_stats stats = {
		.jobs = trace->jobs.count, .rows_skipped = (uint64_t)trace->rows_skipped, .cluster_gpus = cluster_gpus};
	fill_counts(trace, &stats);
	stats.origin = strdup(trace->origin);
	stats.format = strdup(trace->format);
	int r = stats.origin == NULL || stats.format == NULL ? SW_ENOMEM : fill_spreads(trace, &stats);
	if (r == 0)
		r = share_by_size(trace, &stats.sizes);
	if (r == 0)
		r = share_by_string(trace, offsetof(struct sw_trace_job, tenant), &stats.tenants);
	if (r == 0)
		r = share_by_string(trace, offsetof(struct sw_trace_job, model), &stats.models);
	if (r < 0) {
		sw_trace_stats_release(&stats);
		return sw_err_set(err, r, "cannot count what is in trace '%s': out of memory", trace->origin);
	}
	if (trace->jobs.count > 0) {
		int64_t first = trace->jobs.items[0].submit_ns, last = trace->jobs.items[trace->jobs.count - 1].submit_ns;
		stats.first_submit_s = (double)first / 1e9;
		stats.span_s = (double)(last - first) / 1e9;
	}
	if (stats.span_s > 0) {
		stats.jobs_per_hour = (double)stats.jobs / stats.span_s * 3600;
		stats.load = cluster_gpus > 0 ? stats.gpu_s / ((double)cluster_gpus * stats.span_s) : 0;
	}
	*ret_stats = stats;
	return 0;
}

static void release_shares(sw_trace_shares *shares)
{
	for (size_t i = 0; i < shares->count; i++)
		free(shares->items[i].name);
	sw_vec_free(shares);
}

void sw_trace_stats_release(struct sw_trace_stats *stats)
{
	free(stats->origin);
	free(stats->format);
	release_shares(&stats->sizes);
	release_shares(&stats->tenants);
	release_shares(&stats->models);
	*stats = (struct sw_trace_stats){0};
}
