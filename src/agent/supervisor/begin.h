/* From the order to a running job. */
#ifndef SW_AGENT_SUPERVISOR_BEGIN_H
#define SW_AGENT_SUPERVISOR_BEGIN_H

struct sw_supervisor;

/* Starts the job, but where the user named files for its output only when a log writer has opened
 * them. A failure becomes the run's exit. */
void sw_supervisor_begin(struct sw_supervisor *supervisor);
/* The pipe of a log that is not written yet; -1: there is none. */
int sw_supervisor_unread(const struct sw_supervisor *supervisor);
/* Something came through it, or its end: a log writer takes it over. */
void sw_supervisor_on_output(struct sw_supervisor *supervisor);
void sw_supervisor_on_ready(struct sw_supervisor *supervisor);
void sw_supervisor_on_report(struct sw_supervisor *supervisor);

#endif
