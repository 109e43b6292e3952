/* AntMan as Muri's simulator has it: see antman.c beside this. */
#ifndef SW_POLICY_PUBLISHED_ANTMAN_H
#define SW_POLICY_PUBLISHED_ANTMAN_H

#include <sharewell/policy.h>

#define SW_ANTMAN_MURI_GPUS 1024u /* more are not used */

/* What that simulator remembers of every GPU, in order of nodes. Jobs are their
 * ids plus one; 0: no job. */
struct sw_antman_muri {
	double load[SW_ANTMAN_MURI_GPUS];
	uint32_t owner[SW_ANTMAN_MURI_GPUS]; /* the guaranteed job that runs or has reserved it */
	uint32_t guest[SW_ANTMAN_MURI_GPUS]; /* the opportunistic job */
};

/* Of one job. */
struct sw_antman_muri_job {
	uint32_t held;	    /* GPUs reserved */
	uint32_t rest_node; /* where those are that fill no node; one more than its id */
};

/* The whole decision; `job_state` gives a job's bytes. */
void sw_antman_muri_decide(struct sw_plan *plan, struct sw_antman_muri *muri,
			   struct sw_antman_muri_job *(*job_state)(struct sw_view *view, const struct sw_job *job));

#endif
