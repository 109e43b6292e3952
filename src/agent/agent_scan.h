/* The runs of an agent before this one. */
#ifndef SW_AGENT_AGENT_SCAN_H
#define SW_AGENT_AGENT_SCAN_H

#include "base/error.h"

struct sw_agent;

/* Takes in what the folders say. */
int sw_agent_scan(struct sw_agent *agent, struct sw_err *err);

#endif
