/* Moving the contents of the process's memory: all of it away and back (suspend, resume), or as
 * much as the limit says (shrink, grow; limits.c).
 *
 * Called by the attendant only. Each leaves the gate as it says, and the memory whole: what
 * cannot be done is undone.
 */
#ifndef SW_RUNTIME_MOVE_H
#define SW_RUNTIME_MOVE_H

#include <sharewell/runtime.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda/driver.h"

/* The gate is closed afterwards if it worked, and open if not. */
enum sw_page_trouble sw_move_away(void);
/* The gate is open afterwards if it worked, and stays closed if not: try again. `tight`: a part for
 * which the GPU has no room may be spilled. */
enum sw_page_trouble sw_move_back(bool tight);
/* It could not be brought back: whether a context that has memory has failed, so that it never
 * can. */
bool sw_move_is_hopeless(void);
/* Brings what is on the GPUs under the limits, or spilled chunks back where there is room again.
 * Some at a time, so that the program stands still for a moment only. The gate is open before and
 * after. */
enum sw_page_trouble sw_move_to_limits(void);
/* Whether sw_move_to_limits() would have something to do. */
bool sw_move_is_due(void);
/* Bytes that a suspend would have to store now, and the largest piece of them
 * (NULL: not asked for). */
size_t sw_move_size(size_t *ret_largest);

/* ---- between move.c and limits.c */
struct sw_range;
struct sw_chunk;
void sw_move_enter(CUcontext context);
void sw_move_leave(void);
/* A stream of our own in the current context. */
CUstream sw_move_stream(CUcontext context);
/* Closes the gate at a moment when nothing is captured, and waits for the GPU. On
 * trouble the gate is open. */
enum sw_page_trouble sw_move_stand_still(void);
/* The GPU stands still: nothing that the program has freed needs to be moved. */
void sw_move_rest(void);
/* The gate is closed and nothing is under way: what is spilled comes back where there is room,
 * whatever trouble that meets. */
void sw_move_bring_spilled(void);
/* Whether the chunk is one that leaves the GPU when memory has to go. */
bool sw_move_leaves(const struct sw_range *range, const struct sw_chunk *chunk);

/* A context of the program: nothing moves before all work in it is over,
 * whatever memory that uses. */
void sw_move_note_context(CUcontext context);
/* The context goes: so does our stream in it. */
void sw_move_forget_context(CUcontext context);

/* How many captures go on (contexts.c). */
extern _Atomic int sw_captures;
/* The stream goes, and a capture that began there with it. */
void sw_capture_forget_stream(CUstream stream);

#endif
