/* A process that becomes supervisors by forking; see sw_supervise(). */
#ifndef SW_AGENT_NURSERY_H
#define SW_AGENT_NURSERY_H

#include "base/error.h"

/* Serves the socket until its end, and ends the process then. */
int sw_nursery(int socket, struct sw_err *err);
/* The other side: asks for a supervisor of the folder `path`, whose link is `link`. 0 or
 * an errno; never waits. */
int sw_nursery_ask(int socket, const char *path, int link);

/* Becomes the supervisor of a folder; `link` (-1: none) is closed with it. */
int sw_supervise_folder(const char *path, int link, struct sw_err *err);

#endif
