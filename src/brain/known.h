/* What is known of models. See known.c. */
#ifndef SW_BRAIN_KNOWN_H
#define SW_BRAIN_KNOWN_H

#include "brain/state.h"

#define SW_BRAIN_PROFILES 1000u /* that are not built in */
int sw_brain_make_known(struct sw_brain *brain, struct sw_err *err);
void sw_brain_free_known(struct sw_brain *brain);
int sw_brain_apply_profile(struct sw_brain *brain, json_t *body, struct sw_err *err);
/* The number of the profile of the model that the job is named after; 0: of none. */
uint32_t sw_brain_model(const struct sw_brain *brain, const struct sw_job_request *request);
/* Notes for the user that there is no profile of the model that the request names, unless
 * something else is noted. */
void sw_brain_warn_model(const struct sw_brain *brain, struct sw_live *live, const struct sw_job_request *request);
/* What records have put over what is built in, written or read. */
void sw_brain_pack_known(struct sw_pack *pack, struct sw_brain *brain);

#endif
