/* Pacing: how much of the GPU's time this process takes.
 *
 * A process with a share is given credit as time goes by and pays for what its work took, by the
 * GPU's own clock. Without credit its next launch waits. A process that yields starts work only
 * while none of its guaranteed neighbours has any on the GPU. Both keep little work in flight, so
 * that what they say is soon true.
 *
 * The launch path asks one flag; everything else happens only for paced processes, outside the
 * gate and holding nothing.
 */
#ifndef SW_RUNTIME_PACE_H
#define SW_RUNTIME_PACE_H

#include <stdatomic.h>
#include <stdint.h>

#include "cuda/driver.h"
#include "runtime/gate.h"

/* 0: neither paced nor watched. */
extern _Atomic uint32_t sw_pace_mode;
enum { SW_PACE_SHARE = 1, SW_PACE_YIELD = 2, SW_PACE_WATCHED = 4 };

/* Before a launch, outside the gate: waits for its turn. */
void sw_pace_before(CUstream stream);
/* Just before and just after the call itself, inside the gate. */
void sw_pace_begin(CUstream stream);
void sw_pace_end(CUstream stream);
/* Into the gate and out of it for a call that asks for memory. A process that asks for it is about
 * to use it. Its neighbours must not take the time that it takes for an idle one. */
struct sw_gate_thread *sw_pace_enter_request(void);
void sw_pace_leave_request(struct sw_gate_thread *self);
/* The program waits for the GPU: what it gave is all for now. */
void sw_pace_pause(void);
/* By the attendant, every SW_PACE_LOOK_NS while the process is paced and the gate open. A program
 * that launched nothing for so long has paused, whether it says so or not. */
#define SW_PACE_LOOK_NS INT64_C(5000000)
void sw_pace_look(void);
/* The gate is closed, maybe for hours: that is no time on the GPU. */
void sw_pace_stand_still(void);
/* Memory of the program goes to the host: how long launches took before says nothing. By any
 * thread, whatever it holds. */
void sw_pace_forget_lengths(void);
/* The program destroys it. */
void sw_pace_forget_stream(CUstream stream);
void sw_pace_forget_context(CUcontext context);
/* After fork(): the child has no work on the GPU. */
void sw_pace_forget(void);
/* By the attendant, when a wish was heard and at its every look. */
void sw_pace_configure(void);

#endif
