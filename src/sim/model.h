/* The world model: what a cluster does with commands, under the assumptions of a world file. It
 * knows when jobs end, what stopping and moving costs them, how much a poor place or a neighbour
 * slows them, and what breaks.
 *
 * It is asked for the time of its next event, collects the events of that instant, and is told the
 * engine's commands. What it never does: decide.
 *
 * Invariants:
 *  1. a job has an end (or a failure) ahead exactly while it runs, but for one that is paused,
 *     which has no end ahead;
 *  2. work left falls only by time that the job ran at its speed, and rises
 *     only when work was lost;
 *  3. every event about a run carries the epoch of the command that started it.
 */
#ifndef SW_SIM_MODEL_H
#define SW_SIM_MODEL_H

#include "base/cleanup.h"
#include "base/vec.h"
#include "contention/profile.h"
#include "core/engine.h"
#include "sim/trace/trace.h"
#include "world/world.h"

typedef SW_VEC(struct sw_event) sw_events;

struct sw_world_model;

int sw_world_model_new(const struct sw_world *world, const struct sw_profiles *profiles, const struct sw_trace *trace,
		       const struct sw_topology *topology, uint64_t seed, struct sw_world_model **ret_model, struct sw_err *err);
void sw_world_model_free(struct sw_world_model *model);
SW_DEFINE_FREEP(struct sw_world_model, sw_world_model_free)

/* What the engine's clock shows at the trace's time zero. In a history it is what it really was:
 * policies may have turns that end at full seconds or minutes. */
sw_ns sw_world_model_zero(const struct sw_world_model *model);

/* The job with trace index `job` (which is its id in the engine) as the engine is asked for it. */
void sw_world_model_spec(const struct sw_world_model *model, uint32_t job, struct sw_job_spec *ret_spec);

/* What a scheduler in this world can know of how jobs on one GPU slow each other down. It is the
 * world's own rule, for the models that have profiles. It lives as long as the world. */
struct sw_predictor sw_world_model_predictor(const struct sw_world_model *model);
/* The same of how fast a job runs on its GPUs without neighbours, and of types of GPUs. */
struct sw_scaler sw_world_model_scaler(const struct sw_world_model *model);
const struct sw_gpu_types *sw_world_model_gpu_types(const struct sw_world_model *model);
/* The names of the types by their numbers in the topology, before anything happens; 0 or SW_ENOMEM.
 * Without names all are as fast as the reference. */
int sw_world_model_name_types(struct sw_world_model *model, const char *const *names, size_t count);

/* When the next thing happens by itself; SW_TIME_NEVER. */
sw_ns sw_world_model_next(const struct sw_world_model *model);
/* Appends what the world has to say at this instant: what it learned since the last step, then
 * what ends or breaks now. */
int sw_world_model_collect(struct sw_world_model *model, const struct sw_engine *engine, sw_ns now, sw_events *events);
/* Carries out what the engine decided at `now`. */
void sw_world_model_obey(struct sw_world_model *model, const struct sw_engine *engine, sw_ns now, const struct sw_step *step);
/* Tells that faults are no longer of interest: all jobs have ended. */

#endif
