/* What is known of the run, and how others hear of it. */
#ifndef SW_AGENT_SUPERVISOR_ACCOUNT_H
#define SW_AGENT_SUPERVISOR_ACCOUNT_H

#include <stdint.h>

#include "api/sync.h"

struct sw_supervisor;

/* Notes how it ends, if that is not known yet. */
void sw_supervisor_blame(struct sw_supervisor *supervisor, const char *reason, const char *detail);
/* The state has changed: tells all its clients, and writes status.json once it has settled. */
void sw_supervisor_enter(struct sw_supervisor *supervisor, enum sw_run_state state);
/* It has lived for a while, or no client is linked to it. */
void sw_supervisor_settle(struct sw_supervisor *supervisor, int64_t now_ns);
void sw_supervisor_say(struct sw_supervisor *supervisor, int client);
/* The run is over without a process, or its last one is gone. */
void sw_supervisor_drain(struct sw_supervisor *supervisor);
void sw_supervisor_record(struct sw_supervisor *supervisor);
void sw_supervisor_add_note(struct sw_supervisor *supervisor, const char *text);

#endif
