/* The history of the running cluster: its jobs as a trace that also tells what became of them, and
 * the cluster's shape. For `history --export` and `sim --journal`.
 *
 * What is taken how, so that a replay asks for what was really asked for:
 *  1. a job counts with the time that it spent on GPUs, however it ended. One that runs or was
 *     stopped counts with its time until now;
 *  2. one that never ran says nothing about the load and is left out;
 *  3. one that depended on others counts as submitted when the last of them had ended;
 *  4. with the journal's events (past_events.h) all of this is theirs, and so is what happened to
 *     the cluster. Rows are read of two kinds of jobs alone: those that came before the first
 *     event, and those whose end no event tells. The latter run still, went with their node, or
 *     ended under an earlier version. A hold that goes on is not counted as one.
 */
#ifndef SW_CLI_PAST_H
#define SW_CLI_PAST_H

#include "client/client.h"
#include "sim/cluster.h"
#include "sim/trace/trace.h"

struct sw_cli_past {
	struct sw_trace *trace; /* time zero is the first submit */
	uint64_t never_ran;	/* left out */
	uint64_t rows;		/* came before the first event that the journal has: known by their rows alone */
	uint64_t unheard;	/* came later, and their ends are known by their rows alone */
	uint64_t requeues;	/* that are in the trace */
	uint64_t holds;		/* times on hold that are in the trace */
	uint64_t first;		/* the lowest number there is; those before are no longer kept. 0: there is none */
	uint64_t hidden;	/* other people's: only their sizes and times are known */
};

struct sw_cli_events;
/* `query` as in sw_cli_each_page(): which jobs. `events`: the trace tells what these say, too;
 * NULL: rows alone. With a progress bar where there are many and standard error is a terminal. */
int sw_cli_past_fetch(struct sw_client *client, const char *query, const struct sw_cli_events *events, struct sw_cli_past *ret_past,
		      struct sw_err *err);
void sw_cli_past_release(struct sw_cli_past *past);

/* The cluster as it stands: the nodes that are up. */
int sw_cli_past_cluster(struct sw_client *client, struct sw_cluster_spec **ret_spec, struct sw_err *err);
/* The same of these nodes, up or not. */
int sw_cli_past_shape(const json_t *nodes, struct sw_cluster_spec **ret_spec, struct sw_err *err);

#endif
