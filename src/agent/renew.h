/* Lets the runs of a node go on without agent and controller, before version 0.1 is stopped. Its
 * supervisors kill their jobs some 25 s after the last word. */
#ifndef SW_AGENT_RENEW_H
#define SW_AGENT_RENEW_H

#include <stdint.h>

#include "base/error.h"

struct sw_renewed {
	uint32_t told;		 /* supervisors that may go on for ever now, and have answered */
	uint32_t leased;	 /* whose jobs chose a lease: it stays */
	uint32_t deaf;		 /* that did not answer */
	uint32_t unreadable;	 /* whose orders cannot be read, and may ask for a lease: not told */
	uint64_t unreadable_job; /* the first of these */
};

/* Tells all supervisors of the folder of an agent, whether that lives or not. SW_ENOTFOUND:
 * there is no such folder. */
int sw_agent_renew(const char *state, struct sw_renewed *ret_renewed, struct sw_err *err);

#endif
