/* The supervisor of one run. It is a process of its own that outlives the agent, starts the job,
 * watches over all its processes, and records how it ended.
 *
 * Invariants:
 *  1. it holds the lock of the run's folder for its life; of two supervisors of one
 *     folder the second gives up.
 *  2. the job is started at most once: never where `pid`, `lost` or exit.json exists, and only
 *     after `pid` was made and the folder is durable.
 *  3. past its lease, if the run has one, the job is stopped as by its own signal and grace. Past
 *     both the whole tree is killed, whatever else is going on. Without a lease it runs on,
 *     whatever becomes of agent and controller.
 *  4. exit.json is written when no process of the job is left, durably, before any client is told.
 *  5. the supervisor itself never waits for a file system of the user's, nor for
 *     a client on its socket.
 */
#ifndef SW_AGENT_SUPERVISOR_H
#define SW_AGENT_SUPERVISOR_H

#include "base/error.h"

/* Looks after the run of `folder` until it is over: 0. A folder whose run was started before, or
 * that is marked as lost, is cleaned up and its exit recorded instead.
 *
 * "-" is the nursery: standard input is a socket from an agent. For each folder that comes over it
 * a child becomes the supervisor of that folder. The file descriptor that came along is its link to
 * the agent. Ends at the end of input. This spares each run the loading of a program. */
int sw_supervise(const char *folder, struct sw_err *err);

/* The environment variable with the number of a file descriptor that is the link to the agent. */
#define SW_SUPERVISOR_LINK "SHAREWELL_LINK_FD"

/* In the environment of a supervisor: the file of the operator's own classes of failures. */
#define SW_FAILURES_VARIABLE "SHAREWELL_FAILURES"

#endif
