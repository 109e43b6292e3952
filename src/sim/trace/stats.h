/* What is in a trace, as figures. Computed by sw_trace_stats(); the rest only shows them. */
#ifndef SW_SIM_TRACE_STATS_H
#define SW_SIM_TRACE_STATS_H

#include <stdint.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/vec.h"
#include "sim/trace/trace.h"

/* Five figures of a distribution, percentiles interpolated linearly. */
struct sw_trace_spread {
	double min, p5, p25, median, p75, p90, p95, p99, max, mean;
};

/* Jobs that share a size, a tenant or a model. */
struct sw_trace_share {
	char *name;    /* of the tenant or model, "" where the file names none; NULL for sizes */
	uint32_t gpus; /* for sizes */
	uint64_t jobs;
	double gpu_s; /* GPU time: GPUs x duration */
};

typedef SW_VEC(struct sw_trace_share) sw_trace_shares;

struct sw_trace_stats {
	char *origin;
	char *format;
	uint64_t jobs;
	uint64_t rows_skipped;
	double first_submit_s;
	double span_s;		   /* first submit to last submit */
	double jobs_per_hour;	   /* over the span; 0 when it is 0 */
	double gpu_s;		   /* GPU time of all jobs together */
	uint64_t without_duration; /* their GPU time is unknown and not in any figure */
	uint64_t opportunistic, elastic, strict_deadlines, soft_deadlines, impossible_deadlines;
	struct sw_trace_spread gpus;
	struct sw_trace_spread duration_s; /* of jobs that have one */
	struct sw_trace_spread gap_s;	   /* between one submit and the next */
	sw_trace_shares sizes;		   /* by GPUs, ascending */
	sw_trace_shares tenants;	   /* most jobs first */
	sw_trace_shares models;		   /* most jobs first */
	uint64_t hourly[24];		   /* submits by hour of the day, counted from the trace's time zero */
	uint64_t cluster_gpus;		   /* as asked for; 0: no load */
	double load;			   /* GPU time over what the cluster has in the span; 0 when unknown */
};

/* `cluster_gpus` is the cluster to state the offered load for, 0 for none. */
int sw_trace_stats(const struct sw_trace *trace, uint64_t cluster_gpus, struct sw_trace_stats *ret_stats, struct sw_err *err);
void sw_trace_stats_release(struct sw_trace_stats *stats);

/* Readable text; at most `rows` lines for each of sizes, tenants and models (0: all). */
void sw_trace_stats_print(FILE *out, const struct sw_trace_stats *stats, unsigned rows);
/* One JSON object and a newline. 0, SW_ENOMEM or SW_EIO. */
int sw_trace_stats_json(FILE *out, const struct sw_trace_stats *stats);

#endif
