/* What one simulation found: filled by the simulator, read by tables, JSON, CSV and the HTML
 * report. Plain values, no behaviour. */
#ifndef SW_SIM_RESULT_H
#define SW_SIM_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/vec.h"

/* How a job's life ended. */
enum sw_outcome_state {
	SW_OUTCOME_FINISHED = 0,
	SW_OUTCOME_FAILED = 1,	   /* used up its retries */
	SW_OUTCOME_REFUSED = 2,	   /* can never run on this cluster */
	SW_OUTCOME_UNFINISHED = 3, /* the simulation was stopped first */
};

struct sw_outcome {
	int64_t id; /* the trace's own number */
	int64_t submit_ns;
	int64_t start_ns;      /* first start; SW_NEVER if it never ran */
	int64_t end_ns;	       /* SW_NEVER if it did not end */
	int64_t run_ns;	       /* time on GPUs, all runs together */
	int64_t wait_ns;       /* time from submit to end not on GPUs */
	int64_t share_wait_ns; /* of that, for its tenant's share (delays.h) */
	int64_t work_ns;       /* what it needed, running alone: the trace's duration */
	int64_t deadline_ns;
	uint32_t gpus;
	uint32_t preemptions;
	uint32_t migrations;
	uint32_t restarts; /* after failures */
	uint32_t promotions;
	uint32_t tenant;
	uint8_t state; /* enum sw_outcome_state */
};

/* A step of the cluster's history: the figures hold from at_ns to the next sample. Thinned to a
 * bounded number of samples. */
struct sw_usage {
	int64_t at_ns;
	uint32_t gpus_used;
	uint32_t gpus_up;
	uint32_t jobs_running;
	uint32_t jobs_waiting;
};

enum sw_job_event_kind {
	SW_JOB_STARTED,
	SW_JOB_RESUMED, /* it goes on with what it had done */
	SW_JOB_STOPPED,
	SW_JOB_MOVED,
	SW_JOB_ENDED,
	SW_JOB_BROKE, /* its run failed */
	SW_JOB_WAS_REFUSED,
};

struct sw_job_event {
	int64_t at_ns;
	int64_t job;  /* the trace's own number */
	uint8_t kind; /* enum sw_job_event_kind */
};

struct sw_summary {
	uint64_t jobs;
	uint64_t finished;
	uint64_t failed;
	uint64_t refused;
	double jct_avg_s; /* of finished jobs; so are all percentiles (linear interpolation) */
	double jct_median_s;
	double jct_p95_s;
	double jct_p99_s;
	double jct_max_s;
	double queue_avg_s;
	double queue_p95_s;
	/* of queue_avg_s, what was waited for the tenants' shares; the rest was for a
	 * place. 0 without quotas */
	double share_delay_avg_s;
	double makespan_s;	/* the end of the last job, counted from the trace's time zero */
	double gpu_utilization; /* GPU time used over GPU time available between first submit and last end, 0..1 */
	uint64_t preemptions;
	uint64_t migrations;
	uint64_t restarts;
	/* GPU time of work done, as each job needs it alone, over GPU time available: above what
	 * was used where sharing gains */
	double gpu_work;
	double slowdown_worst; /* of any finished job (see fairness.h) */
	double tenants_jain;   /* 1: all tenants were slowed down alike; 1/n: one of n bore it all */
	double tenants_worst;  /* slowdown of the tenant that was served worst, over that of all jobs */
	uint64_t tenants;      /* with finished jobs; 0: not counted */
	uint64_t deadlines;    /* jobs that had one */
	uint64_t deadlines_missed;
};

struct sw_result {
	char *policy; /* as asked for, with its parameters where set: "las" */
	char *placement;
	char *world;
	char *trace;	   /* path or "generated" */
	char *cluster;	   /* "8 nodes x 8 GPUs" */
	char *assumptions; /* several lines of text: what this world charged and what it left out */
	char *notes;	   /* what the engine had to say (a policy thrown out, for example); may be empty */
	uint64_t seed;
	uint64_t log_hash;
	uint64_t command_hash; /* of the decisions alone, however the events were told */
	uint64_t events;
	uint64_t decisions;
	uint64_t gpus; /* in the cluster */
	bool has_quotas;
	bool recorded; /* what really happened (recorded.h); nothing was simulated */
	double cpu_s;
	uint64_t max_rss_bytes;
	uint64_t decision_p99_ns; /* wall time of one decision; measured, so not part of any comparison */
	double gpu_used_s;	  /* GPU time held by jobs, and GPU time on nodes that were up; both 0 where not counted */
	double gpu_up_s;
	struct sw_summary summary;
	SW_VEC(struct sw_outcome) outcomes; /* in trace order */
	SW_VEC(struct sw_usage) usage;
	SW_VEC(struct sw_job_event) job_events; /* in their order, where they were asked for */
};

void sw_result_free(struct sw_result *result);
SW_DEFINE_FREEP(struct sw_result, sw_result_free)

/* Fills `summary` from `outcomes`, gpus and the GPU times. */
void sw_result_summarise(struct sw_result *result);

#endif
