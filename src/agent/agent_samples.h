/* The sampler, a child process: started, heard, replaced. */
#ifndef SW_AGENT_AGENT_SAMPLES_H
#define SW_AGENT_AGENT_SAMPLES_H

#include "base/error.h"

struct sw_agent;

int sw_agent_samples_start(struct sw_agent *agent, struct sw_err *err);
void sw_agent_samples_stop(struct sw_agent *agent);

#endif
