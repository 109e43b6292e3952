/* What a run hears about its orders, in its own log. */
#ifndef SW_AGENT_SUPERVISOR_WORDS_H
#define SW_AGENT_SUPERVISOR_WORDS_H

#include <stdint.h>

struct sw_supervisor;

/* Where the next order comes from, and why. */
void sw_supervisor_hear_why(struct sw_supervisor *supervisor, const char *why);
/* A line in the job's log: it stands still now, goes on, has other GPUs, is about to be stopped. */
void sw_supervisor_log_suspend(struct sw_supervisor *supervisor, int64_t now_ns);
void sw_supervisor_log_resume(struct sw_supervisor *supervisor, int64_t now_ns);
void sw_supervisor_log_move(struct sw_supervisor *supervisor);
void sw_supervisor_log_stop(struct sw_supervisor *supervisor, const char *reason);

#endif
