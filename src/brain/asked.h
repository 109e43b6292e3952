/* What jobs asked for. NULL: out of memory. See asked.c. */
#ifndef SW_BRAIN_ASKED_H
#define SW_BRAIN_ASKED_H

#include "brain/state.h"

struct sw_asked *sw_asked_new(const struct sw_job_request *request);
struct sw_asked *sw_asked_copy(const char *text);
/* What became of a job that had ended when this was asked for; NULL: not known, or it had not. */
const struct sw_fate *sw_asked_fate(const struct sw_asked *asked, uint64_t job);
struct sw_asked *sw_asked_share(struct sw_asked *asked);
void sw_asked_drop(struct sw_asked *asked);
SW_DEFINE_FREEP(struct sw_asked, sw_asked_drop)
/* The request of the job; that of the last submit need not be read again. */
int sw_asked_recall(const struct sw_brain *brain, const struct sw_live *live, struct sw_job_request **ret_request, struct sw_err *err);
int sw_asked_decode(const struct sw_live *live, struct sw_job_request **ret_request, struct sw_err *err);
int sw_asked_add_bulk(struct sw_brain *brain, struct sw_asked *asked, int which, const struct sw_bulk *bulk);

#endif
