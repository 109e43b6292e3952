/* A world: the named set of assumptions under which a simulation runs. Data, not code:
 * data/worlds/NAME.yaml (also inside the program), or a file of the user's own.
 *
 * It says what things cost. It does not charge them: that is the world model's work, which
 * asks the functions below.
 *
 * Invariants of a loaded world:
 *  1. all durations are >= 0 and at most ten years; all rates are > 0 or the cost is fixed alone.
 *  2. without event_overhead, overhead_default_ns is 0 and the table is empty.
 *  3. node_repair_ns > 0 where node_mtbf_ns > 0.
 *  4. speeds of GPU types are 0.001 to 1000; an idle GPU draws no more than a busy one.
 */
#ifndef SW_WORLD_WORLD_H
#define SW_WORLD_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/vec.h"
#include "contention/crowd.h"
#include "core/terms.h"
#include "world/gpu_rules.h"

#define SW_WORLD_DEFAULT "measured"
#define SW_WORLD_LIVE "live" /* that of a controller, unless it is told another */
#define SW_WORLD_TEXT_MAX (64u << 10)

enum sw_preempt_mode {
	SW_PREEMPT_FREE = 0, /* stopping and going on cost nothing */
	SW_PREEMPT_SUSPEND,  /* state is copied out and in */
	SW_PREEMPT_RESTART,  /* state is lost but for a checkpoint: going on costs restart_ns */
	/* State is copied to the host and stands there: the run goes on where it was, or is lost.
	 * Jobs that their owner does not let be suspended start anew. */
	SW_PREEMPT_IN_PLACE,
};

struct sw_transfer_cost {
	int64_t fixed_ns;
	uint64_t bytes_per_s; /* 0: the copy itself costs nothing */
};

/* What one event costs a running job of this model on this many GPUs. */
struct sw_event_overhead {
	char *model; /* as the trace spells it; owned by the world */
	uint32_t gpus;
	int64_t ns;
};

struct sw_world {
	char *text; /* the file, as it was read */
	char *name;
	char *about;	    /* one line */
	char *not_modelled; /* one line each, ends with a newline; "" for none stated */

	int64_t quantum_ns;   /* a running job is not preempted before it ran this long */
	bool replace_is_free; /* every decision may lay out all running jobs anew */
	enum sw_preempt_mode preempt;
	bool nodes_switch;			 /* a policy may switch nodes off and on */
	int64_t boot_ns;			 /* after which a node that was switched on is up */
	bool nodes_join;			 /* a job that is too large for the cluster waits instead of being refused */
	bool tells_speed;			 /* the speed of a job is known at once; else it is measured, and told a little later */
	int moves;				 /* enum sw_moves */
	int guaranteed_stop, opportunistic_stop; /* enum sw_stop_rule of jobs whose owner said nothing */
	int64_t start_ns;			 /* before a job's first progress */
	int64_t restart_ns;			 /* the same when it starts from a checkpoint */
	struct sw_transfer_cost suspend, resume, migrate;
	/* before the first progress of a job that was paused in place and goes on: the same for
	 * all, since nothing is copied */
	int64_t switch_ns;

	/* what the answer to a question of the policy takes: this, and so much for each
	 * iteration of the solver */
	int64_t solve_start_ns, solve_iteration_ns;

	/* every event cuts the progress since the one before, of every running job,
	 * except on the way to its end */
	bool event_overhead;
	int64_t overhead_default_ns;
	/* ends that differ by this many billionths of the time are one event, at the first of
	 * them; 0: only equal ones */
	int64_t merge_ends_ppb;
	SW_VEC(struct sw_event_overhead) overheads;

	bool work_from_iterations;   /* work = iterations x iteration time of the trace x scale, whatever duration it states */
	int64_t iteration_scale_ppm; /* 1,000,000 unless work_from_iterations */

	/* Of a history: starts, slowdowns and failures are inside the run times, and are not
	 * charged again. What policies expect of places and neighbours is known all the same. */
	bool recorded;
	bool placement_slowdown;
	bool sharing_slowdown;
	enum sw_sharing sharing_by; /* never SW_SHARING_NONE: that is sharing_slowdown */
	/* slowdown of a guaranteed job beside opportunistic ones, which get the rest; 0: no gate,
	 * all neighbours are alike */
	int64_t gate_milli;

	/* a file of slowdowns that were measured (contention/learn.h), which correct those of the
	 * profiles; NULL or "": none */
	char *learned;

	int64_t split_milli; /* step time of a job that is cut in two over GPUs of a node, of that whole; 0: nothing is split */

	struct sw_gpu_rules gpu_types; /* what is known of GPUs by their names */

	int64_t host_cpus_per_gpu;	 /* 0: the placement rule's own demand */
	uint64_t host_mem_per_gpu_bytes; /* 0: the same */

	int64_t node_mtbf_ns; /* mean time between failures of one node, exponential; 0: nodes do not fail */
	int64_t node_repair_ns;
	int64_t checkpoint_ns;	 /* a run that is lost goes on from the last multiple of this; 0: from its beginning */
	int64_t job_failure_ppm; /* chance that a run of a job fails, at a moment uniform over it */
	int64_t retries;	 /* of a failed job */
};

/* A built-in name ("ideal"), or the path of a file: anything with a slash or that ends in
 * .yaml or .yml. A user's file may begin with `base: NAME`, a built-in world whose values hold
 * where the file is silent. */
/* SW_WORLD_TEXT_MAX bytes of text at most. */
int sw_world_load(const char *name_or_path, struct sw_world **ret_world, struct sw_err *err);
int sw_world_parse(const char *name, const char *text, size_t size, struct sw_world **ret_world, struct sw_err *err);
void sw_world_free(struct sw_world *world);
SW_DEFINE_FREEP(struct sw_world, sw_world_free)

/* "ideal, measured, muri" into `buffer`, for help and messages. */
void sw_world_names(char *buffer, size_t size);

/* "Assumptions in force": several lines for people, each ending with a newline. NULL when out of
 * memory; the caller frees it. */
char *sw_world_describe(const struct sw_world *world);

/* Makes it the world of a history that happened under it. SW_ENOMEM */
int sw_world_record(struct sw_world *world, struct sw_err *err);

/* What a driver tells its engine in this world. */
struct sw_terms sw_world_terms(const struct sw_world *world);

/* How jobs on one GPU slow each other down under these terms, for a predictor. */
struct sw_crowd_rule sw_terms_crowd_rule(const struct sw_terms *terms);

/* Fixed time plus the copy of `bytes`, rounded up to the nanosecond; stops at ten years. */
int64_t sw_transfer_ns(const struct sw_transfer_cost *cost, uint64_t bytes);

/* After how long an answer comes that took so many iterations: 1 at least; stops at ten years. */
int64_t sw_world_solve_ns(const struct sw_world *world, uint32_t iterations);

/* What an event costs a job of this model (as its trace spells it) on `gpus` GPUs. The default
 * where the table has no such row. A walk over the table: ask once for each job. */
int64_t sw_world_event_overhead_ns(const struct sw_world *world, const char *model, uint32_t gpus);

/* The work of a job with this many iterations, each iteration_ns long in the trace.
 * SW_ELIMIT when it does not fit. */
int sw_world_work_ns(const struct sw_world *world, int64_t iterations, int64_t iteration_ns, int64_t *ret_ns);

#endif
