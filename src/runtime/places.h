/* Which GPUs the driver is to show to this process. A job that was moved may start programs with
 * the names of those that it had. */
#ifndef SW_RUNTIME_PLACES_H
#define SW_RUNTIME_PLACES_H

/* Around the driver's initialisation and the taking of a slot: in between the job does not move,
 * and while it does this waits. */
int sw_places_enter(void);
void sw_places_leave(int door);

#endif
