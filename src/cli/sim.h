/* What the files of the command `sim` share: its values, the study that they describe, its runs,
 * and how they are shown. */
#ifndef SW_CLI_SIM_H
#define SW_CLI_SIM_H

#include <stdio.h>

#include "base/vec.h"
#include "cli/command.h"
#include "contention/profile.h"
#include "core/params.h"
#include "sim/cluster.h"
#include "sim/result.h"
#include "sim/simulator.h"
#include "sim/trace/trace.h"
#include "world/world.h"

struct sw_cli_sim_values {
	const char *trace, *format, *cluster, *placement, *world, *jobs_out, *events_out, *report, *progress, *profiles;
	const char *history, *controller; /* with `journal` only */
	struct sw_cli_texts policies, settings, quotas;
	uint64_t seed, threads;
	bool journal, list, json, human, quiet, verbose, validate, stats;
};

/* ---- the study: everything that was named, found and checked (study.c) */

struct sw_cli_contender {
	const struct sw_policy *policy;
	struct sw_params *params;
	char *settings; /* "  setting: las.tick=10s\n"..., lines as in sw_world_describe(); may be empty */
};

struct sw_cli_study {
	SW_VEC(struct sw_cli_contender) contenders; /* in the order given */
	const struct sw_placement *placement;
	const char *placement_reason; /* why it was chosen; NULL: the user chose it */
	struct sw_world *world;
	struct sw_cluster_spec *cluster;
	struct sw_topology *topology;
	struct sw_profiles *profiles;
	struct sw_trace *trace;
	SW_VEC(struct sw_sim_quota) quotas;
	char cluster_text[96];
	struct sw_result *record; /* what really happened; NULL: not asked for, or not known */
	char *basis;		  /* how the history was taken, in one line; NULL where there is none */
};

/* All but the trace: what can be wrong is found before anything long begins. What stands in *study
 * already (a cluster, a trace; zeroes otherwise) is taken as it is, and released on failure. */
int sw_cli_study_prepare(const struct sw_cli_sim_values *values, struct sw_cli_study *study, struct sw_err *err);
int sw_cli_study_load_trace(const struct sw_cli_sim_values *values, struct sw_cli_study *study, struct sw_err *err);
/* Once there is a trace: its tenants. */
int sw_cli_study_quotas(const struct sw_cli_texts *quotas, struct sw_cli_study *study, struct sw_err *err);
void sw_cli_study_release(struct sw_cli_study *study);

/* ---- the cluster's own history as the trace (journal.c) */

/* What was not said is what the running cluster has: its jobs, shape, placement rule, and the
 * settings of its policy. */
int sw_cli_journal_prepare(const struct sw_cli_sim_values *values, struct sw_cli_study *ret_study, struct sw_err *err);

/* ---- the runs, side by side (runs.c) */

/* Simulates every contender in threads of its own, at most `threads` at a time (0: one per
 * core), with one progress bar if `progress`. The results are in the order of the contenders and
 * the caller's to free, also those there are after a failure. The first failure or an
 * interruption stops all. */
int sw_cli_run_study(const struct sw_cli_study *study, const struct sw_cli_sim_values *values, bool progress, struct sw_result **results,
		     struct sw_err *err);

/* Adds to a result what its simulation cannot know: settings, and in words what became of
 * jobs that did not finish. */
int sw_cli_annotate(const struct sw_cli_study *study, const struct sw_cli_contender *contender, struct sw_result *result,
		    struct sw_err *err);

/* ---- what people see (study_text.c) */

int sw_cli_show_study(FILE *out, const struct sw_cli_study *study, const struct sw_cli_sim_values *values,
		      const struct sw_result *const *results, struct sw_err *err);

#endif
