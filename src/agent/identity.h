/* Which agent this is, for a controller: the id of its state folder, and how often an agent was
 * started there. No clock is asked.
 *
 * An agent that starts again in its folder is the same agent, and finds its runs there. Another
 * folder is another agent, whatever the node is called. So is a copy of the folder on another
 * machine. The machine is kept beside the id, and where it differs the id is made anew.
 */
#ifndef SW_AGENT_IDENTITY_H
#define SW_AGENT_IDENTITY_H

#include <stdint.h>

#include "api/sync.h"
#include "base/error.h"

#define SW_IDENTITY_MACHINE_SIZE 17u

struct sw_identity {
	char home[SW_SYNC_HOME_MAX + 1];
	uint64_t start; /* from 1 */
};

/* Counts a start in the folder `state`, durably; the caller has it locked. `machine` is
 * a word without spaces. */
int sw_identity_open(int state, const char *machine, struct sw_identity *ret_identity, struct sw_err *err);
/* What tells this machine from others: of its name and its machine-id. */
void sw_identity_machine(char ret_machine[SW_IDENTITY_MACHINE_SIZE]);

#endif
