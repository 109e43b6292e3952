/* What a job may expect of others on the same GPUs: the one enum for it, in policies, requests,
 * traces and on the GPUs themselves. */
#ifndef SHAREWELL_JOB_CLASS_H
#define SHAREWELL_JOB_CLASS_H

enum sw_job_class {
	SW_CLASS_GUARANTEED = 0, /* counts against its tenant's quota, is not disturbed by neighbours */
	SW_CLASS_OPPORTUNISTIC,	 /* takes what is left, pays no quota */
	/* Only asked for, never of a run: guaranteed while the tenant's quota allows, else
	 * opportunistic */
	SW_CLASS_AUTO,
};

#endif
