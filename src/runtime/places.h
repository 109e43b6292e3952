/* Which GPUs the driver is to show to this process: a job that was moved may start programs with the names of those that it had. */
#ifndef SW_RUNTIME_PLACES_H
#define SW_RUNTIME_PLACES_H

/* Before the driver is initialised. */
void sw_places_follow(void);

#endif
