/* The profile of a process, for as long as its page asks for one. It has which functions it
 * launches, how often and for how long, and how much it copies which way.
 *
 * While it is not asked for nothing is here. When it is, the real functions behind the hooks are
 * replaced by ones that measure, and put back later, both while the gate is closed. What was found
 * goes into a file beside the page, "." NAME ".profile." PID, whole at any moment; the form of it
 * is in profile.c and src/share/profile.c.
 *
 * Times are those between two events around each launch: the work itself and a few microseconds,
 * more where the stream was idle. A launch that found no pair of events free, or was part of
 * another one's capture, is counted and not timed.
 */
#ifndef SW_RUNTIME_PROFILE_H
#define SW_RUNTIME_PROFILE_H

#include "cuda/driver.h"

/* By the attendant, at its every look, while the process is not suspended. */
void sw_profile_look(void);
void sw_profile_forget_context(CUcontext context);
/* After fork(): the child is not measured. */
void sw_profile_forget(void);

#endif
