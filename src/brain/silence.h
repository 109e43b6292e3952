/* Nodes that do not answer. See silence.c. */
#ifndef SW_BRAIN_SILENCE_H
#define SW_BRAIN_SILENCE_H

#include "brain/state.h"

/* A node on which a run of the job may be alive that cannot be stopped now; NULL: there is none. */
const struct sw_brain_node *sw_brain_out_of_reach(const struct sw_brain *brain, uint32_t id);
int sw_brain_apply_silence(struct sw_brain *brain, json_t *body, struct sw_err *err);
int sw_brain_apply_remove(struct sw_brain *brain, json_t *body, struct sw_err *err);
/* The node is back. */
int sw_brain_end_silence(struct sw_brain *brain, struct sw_brain_node *node, struct sw_err *err);
/* Keeps those from competing that must not start, and lets them go; at the end of every record. */
int sw_brain_strand(struct sw_brain *brain, struct sw_err *err);
/* Notes the job as stranded; ascending. 0 or SW_ENOMEM. */
int sw_brain_list_stranded(struct sw_brain *brain, uint32_t id);
/* Makes anew how many nodes are out of reach. */
void sw_brain_count_far(struct sw_brain *brain);
/* How long an answer to the node may be kept back. */
sw_ns sw_brain_keeps_poll_for(const struct sw_brain *brain, const struct sw_brain_node *node);
/* When sw_brain_tick_silence() has something to say; SW_TIME_NEVER. */
sw_ns sw_brain_next_silence(const struct sw_brain *brain);
int sw_brain_tick_silence(struct sw_brain *brain, sw_ns now, sw_records *records, struct sw_err *err);

#endif
