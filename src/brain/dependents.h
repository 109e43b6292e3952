/* Jobs that wait for others. See dependents.c. */
#ifndef SW_BRAIN_DEPENDENTS_H
#define SW_BRAIN_DEPENDENTS_H

#include "brain/state.h"

/* What a job waits for beside what it asked to. */
struct sw_awaited {
	uint64_t prerun; /* as people count; 0: none */
	uint64_t slots;	 /* so many of its array may be under way; 0: all */
};
/* The newest job waits for what the request and `awaited` name, if that is
 * anything. 0 or SW_ENOMEM. */
int sw_depends_begin(struct sw_brain *brain, uint32_t id, const struct sw_job_request *request, const struct sw_awaited *awaited);
/* The engine has the job now: if it waits for nothing that is still to come, it goes or ends. */
int sw_depends_judge(struct sw_brain *brain, uint32_t id, struct sw_err *err);
/* If the engine has ended the job, it waits no longer, and the jobs that wait for
 * it are to be looked at. */
int sw_depends_end(struct sw_brain *brain, uint32_t id);
/* Looks at some of those: lets jobs go whose wait is over, and ends those that wait in vain. */
int sw_brain_settle(struct sw_brain *brain, struct sw_err *err);
/* The same, and the engine decides. */
int sw_brain_settle_and_step(struct sw_brain *brain, struct sw_err *err);
static inline bool sw_brain_is_settled(const struct sw_brain *brain)
{
	return brain->over_first == 0;
}
/* What waits for what, written or read. */
void sw_depends_save(const struct sw_brain *brain, struct sw_pack *pack);
int sw_depends_load(struct sw_brain *brain, struct sw_pack *pack);
/* What follows from that and from the engine, once both are read. 0, SW_ENOMEM or SW_EINPUT. */
int sw_depends_derive(struct sw_brain *brain, uint32_t format);
int sw_depends_validate(const struct sw_brain *brain, struct sw_err *err);

#endif
