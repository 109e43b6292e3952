/* Where the processes of a run are found after its supervisor was killed. */
#ifndef SW_AGENT_SUPERVISOR_RECOVER_H
#define SW_AGENT_SUPERVISOR_RECOVER_H

#include "base/error.h"

struct sw_supervisor;

/* Writes down where the job's processes can be found should the supervisor die. */
void sw_supervisor_note_session(const struct sw_supervisor *supervisor);
/* For a folder whose job was, or may have been, started by a supervisor that is dead. `name`
 * is that of the folder. */
int sw_supervisor_recover(int folder, const char *name, struct sw_err *err);

#endif
