/* The last stop of a job. See stops.c. */
#ifndef SW_BRAIN_STOPS_H
#define SW_BRAIN_STOPS_H

#include "brain/state.h"

/* A record of a person about a job is about to be applied; acts_on = 0 ends it. */
void sw_stop_begin(struct sw_brain *brain, const json_t *body);
/* While a record of a person is applied to the job, that person is the cause, whatever
 * `cause` says. 0 or SW_ENOMEM. */
int sw_stop_note(struct sw_brain *brain, uint32_t id, enum sw_stop_kind kind, enum sw_stop_cause cause, uint64_t job);
/* A policy stopped it for this job, as is known now. */
void sw_stop_name(struct sw_live *live, uint64_t job);
/* It goes on, or starts anew. */
void sw_stop_end(const struct sw_brain *brain, struct sw_live *live);
void sw_stop_pack(struct sw_pack *pack, struct sw_live *live);
/* The name of a user, or the number. */
char *sw_stop_user(const struct sw_brain *brain, uint32_t uid, char *text, size_t size);
/* What the order to stop this run says for the job's log: `text`, or NULL. */
char *sw_stop_order_words(const struct sw_brain *brain, struct sw_run_id run, char text[SW_SYNC_WHY_MAX + 1]);

#endif
