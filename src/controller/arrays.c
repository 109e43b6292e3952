/* Arrays: jobs that were asked for together. Their numbers follow each other, and they share what they asked for.
 *
 * Where only some may be under way at a time, the first of them that have not ended are: a member goes when fewer than that many before it are left. So they go in their order,
 * none waits for longer than it must, and nothing has to be counted along.
 */
#include "controller/brain_state.h"

uint64_t sw_array_first(const struct sw_brain *brain, uint64_t job)
{
	const struct sw_live *live = &brain->jobs.items[job - 1];
	while (live->is_member && job > 1 && brain->jobs.items[job - 2].asked == live->asked)
		job--;
	return job;
}

uint64_t sw_array_last_slot(const struct sw_brain *brain, uint64_t job, uint64_t slots)
{
	const struct sw_asked *asked = brain->jobs.items[job - 1].asked;
	uint64_t last = 0;
	for (uint64_t id = sw_array_first(brain, job); slots > 0 && id <= brain->jobs.count && brain->jobs.items[id - 1].asked == asked;
	     id++) {
		last = id;
		slots -= sw_engine_job(brain->engine, (struct sw_job_id){(uint32_t)(id - 1)})->state <= SW_JOB_RUNNING;
	}
	return last;
}

bool sw_array_has_slot(const struct sw_brain *brain, uint64_t job, uint64_t slots)
{
	const struct sw_asked *asked = brain->jobs.items[job - 1].asked;
	for (uint64_t id = job - 1; slots > 0 && id > 0 && brain->jobs.items[id - 1].asked == asked; id--)
		slots -= sw_engine_job(brain->engine, (struct sw_job_id){(uint32_t)(id - 1)})->state <= SW_JOB_RUNNING;
	return slots > 0;
}
