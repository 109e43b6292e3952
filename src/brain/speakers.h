/* Which agent speaks for a node. See speakers.c. */
#ifndef SW_BRAIN_SPEAKERS_H
#define SW_BRAIN_SPEAKERS_H

#include "brain/state.h"

/* 0, or SW_EDENIED: another agent does, and why this one is not heard. */
int sw_speaker_admit(const struct sw_brain_node *node, sw_ns now, const struct sw_sync *sync, struct sw_err *err);
/* False for words that are late or repeated; of one that is admitted. */
bool sw_speaker_is_news(const struct sw_brain_node *node, const struct sw_sync *sync);
/* Nothing newer was heard of its agent. */
bool sw_speaker_is_last(const struct sw_brain_node *node, const struct sw_sync *sync);
void sw_speaker_remember(struct sw_brain_node *node, const struct sw_sync *sync);
/* It is not the one that the records name, or came with another token: a record says so. */
bool sw_speaker_is_new(const struct sw_brain_node *node, const struct sw_sync *sync);
int sw_speaker_record(const struct sw_sync *sync, sw_records *records, struct sw_err *err);
int sw_speaker_check(const struct sw_brain *brain, json_t *body, struct sw_err *err);
int sw_speaker_apply(struct sw_brain *brain, json_t *body, struct sw_err *err);

#endif
