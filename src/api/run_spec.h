/* From what a job asks for to how one run of it is run: the order that travels to an agent. Pure.
 *
 * What a request may say is bounded so that an order can carry it (bounds.h). What only arises when
 * patterns in paths are filled in is looked at by sw_run_spec_check(), before the user hears yes.
 */
#ifndef SW_API_RUN_SPEC_H
#define SW_API_RUN_SPEC_H

#include <sharewell/policy.h>

#include "api/bounds.h"
#include "api/job.h"
#include "api/sync.h"

/* What is known of a run beside what its job asked for. */
struct sw_run_facts {
	uint64_t job, array_first; /* as people count; the first job of its array, or itself */
	const char *name, *node;   /* of the job: its pre-run has another than the request */
	uint32_t uid, gid;
	uint32_t array_index;
	bool is_member; /* of an array */
	bool is_prerun;
	bool is_again;		   /* there were runs before: it goes on with their files */
	uint32_t gpus;		   /* that it has on the node; 0 counts as 1 */
	uint64_t gpu_memory_bytes; /* of each, as it was given; 0: the job did not say */
	bool is_opportunistic;
	struct sw_config config; /* how it is set up; zero: as the job asked */
};

struct sw_made_spec {
	struct sw_run_spec spec; /* points to request and facts, too: they must live as long */
	const char **env;
	char *texts[2 + SW_SPEC_ENV_ADDED]; /* paths; variables */
};

/* SW_ENOMEM, or SW_EINPUT: there is no such order, and why. */
int sw_run_spec_make(const struct sw_job_request *request, const struct sw_run_facts *facts, struct sw_made_spec **ret_made,
		     struct sw_err *err);
void sw_made_spec_free(struct sw_made_spec *made);
SW_DEFINE_FREEP(struct sw_made_spec, sw_made_spec_free)

/* Whether every run of the request would have an order, on whatever node. `what` as for
 * sw_job_request_check(). */
int sw_run_spec_check(const char *what, const struct sw_job_request *request, struct sw_err *err);

#endif
