/* Moves of a run to other GPUs of its node. See moves.c. */
#ifndef SW_BRAIN_MOVES_H
#define SW_BRAIN_MOVES_H

#include "brain/state.h"

enum sw_moved {
	SW_MOVED_NOT = 0, /* or not yet */
	SW_MOVED,
	SW_MOVED_REFUSED,
};
int sw_brain_apply_move(struct sw_brain *brain, json_t *body, struct sw_err *err);
/* What an agent says of a run that moves; `up_to_date`: it knows all wishes. Why it is refused, if
 * it is, is in *ret_why. */
enum sw_moved sw_brain_hear_move(const struct sw_brain *brain, const struct sw_live *live, const struct sw_brain_node *node,
				 const struct sw_sync_run *said, bool up_to_date, const char **ret_why);
/* It is there (NULL), or stays where it was and why. */
int sw_brain_end_move(struct sw_brain *brain, uint32_t id, const char *why, struct sw_err *err);

#endif
