/* Whether others work on the GPU: what a guaranteed process tells of itself, and what a process
 * that yields reads of others. */
#ifndef SW_RUNTIME_NEIGHBOURS_H
#define SW_RUNTIME_NEIGHBOURS_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda/driver.h"

/* ---- of a watched process */
/* Starts to tell; false: it cannot. */
bool sw_neighbours_prepare(void);
/* Before and after every launch and every request for memory, inside the gate. */
void sw_neighbours_note_launch(CUstream stream);
void sw_neighbours_note_request(void);
void sw_neighbours_note_over(void);
/* It was not idle of its own will, or was not watched: this idle time is none to learn from. */
void sw_neighbours_forget_gap(void);
/* A capture is about to begin, and it has been said (sw_captures): no thread marks a stream any
 * more when this returns. */
void sw_neighbours_stand_still(void);
void sw_neighbours_forget_stream(CUstream stream);
void sw_neighbours_forget_context(CUcontext context);

/* ---- of one that yields */
/* Opens the neighbours' pages and finds their processes; false: there are none. */
bool sw_neighbours_open(void);
/* Whether one of them has work now, or is about to: its idle times are rarely longer
 * than `needed_ns` more. */
bool sw_neighbours_are_busy(int64_t now, int64_t needed_ns);

#endif
