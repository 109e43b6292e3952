/* From a record to the events of the engine. See fold.c. */
#ifndef SW_BRAIN_FOLD_H
#define SW_BRAIN_FOLD_H

#include "brain/state.h"

/* The engine hears what has happened, and decides nothing by it. */
int sw_brain_tell(struct sw_brain *brain, struct sw_event fact, struct sw_err *err);
int sw_brain_read_settings(const struct sw_policy *policy, json_t *settings, struct sw_params **ret_params, struct sw_err *err);
/* The suspended run is over, and what it had kept is gone: the job starts anew, or has ended where
 * it may not. The caller says why. */
int sw_brain_lose_suspended(struct sw_brain *brain, uint32_t id, struct sw_err *err);
/* A job as the engine is asked for it. `waits`: for other jobs. */
struct sw_job_spec sw_brain_spec(const struct sw_brain *brain, const struct sw_job_request *request, uint32_t tenant, bool waits);
/* The tenant that it counts for: its user's own where it names none. */
#define SW_BRAIN_OWN_TENANT 24
const char *sw_brain_tenant_of(const struct sw_job_request *request, uint32_t uid, char own[SW_BRAIN_OWN_TENANT]);
int sw_brain_step(struct sw_brain *brain, const struct sw_event *events, size_t count, struct sw_err *err);

#endif
