/* The machine's host memory for contents of GPUs. It has one bound for all programs of a user
 * there, kept in a file that they share (struct sw_host_ledger).
 *
 * The memory itself is each process's own. What counts is what the machine gives, from before it is
 * made until after it is gone, whatever lies in it.
 *
 * Invariants:
 *  1. what is taken here, over all processes of the user, is never more than the bound less what
 *     others are said to hold. Nor is it more than the machine has available less a reserve;
 *  2. what a process had is free again when it is gone, however that came; a child
 *     of fork() has nothing;
 *  3. without a ledger only the second half of 1 holds: the runtime is never the
 *     reason why a job fails.
 */
#ifndef SW_RUNTIME_NODE_H
#define SW_RUNTIME_NODE_H

#include <stdbool.h>
#include <stddef.h>

/* Opens the ledger at this path and takes a slot, if there is one to be had. */
void sw_node_open(const char *path);
/* After fork(): it is the parent's. */
void sw_node_forget(void);

/* Takes the bytes if the bound allows it. `ahead`: they are not needed yet, so some room
 * must stay for those that need it now. A process that is refused makes others give back
 * what they made ahead, soon. */
bool sw_node_take(size_t bytes, bool ahead);
void sw_node_give(size_t bytes);
/* Whether so much could be taken now; counts as refused if not. */
bool sw_node_has_room(size_t bytes);
/* While the driver makes pinned memory, other programs wait in theirs. So one that makes some says
 * so, and one that needs none yet leaves it for later. Never for long: the other may have been
 * stopped. */
void sw_node_begin_making(void);
void sw_node_end_making(void);
bool sw_node_others_make(void);
/* Whether what is made ahead should be given back: others need it. */
bool sw_node_is_short(void);

#endif
