/* A stage: an engine and a world, stepped together. Include after cmocka. */
#ifndef SW_TESTS_UNIT_SIM_STAGE_H
#define SW_TESTS_UNIT_SIM_STAGE_H

#include "sim/model.h"
#include "split/cut.h"
#include "unit/core/scripted.h"

struct stage {
	struct sw_topology *topology;
	struct sw_trace *trace;
	struct sw_world *world;
	struct sw_profiles *profiles;
	struct sw_engine *engine;
	struct sw_world_model *model;
	sw_events events;
	sw_ns now;
	sw_ns wake_at;
	uint32_t arrived;
	uint32_t steps;
};

/* The world starts as `name` and is changed by the test before the curtain rises. */
static inline void stage_begin(struct stage *stage, const char *name)
{
	*stage = (struct stage){.wake_at = SW_TIME_NEVER};
	assert_int_equal(sw_world_load(name, &stage->world, NULL), 0);
	assert_int_equal(sw_profiles_load_default(&stage->profiles, NULL), 0);
	assert_int_equal(sw_trace_new("stage", "test", &stage->trace), 0);
}

static inline struct sw_trace_job *stage_job(struct stage *stage, uint32_t gpus, int64_t work_s, const char *model)
{
	struct sw_trace_job *job = sw_trace_add(stage->trace);
	assert_non_null(job);
	job->gpus = job->min_gpus = job->max_gpus = gpus;
	job->duration_ns = work_s * SW_NS_PER_S;
	assert_int_equal(sw_trace_intern(stage->trace, model, strlen(model), &job->model), 0);
	return job;
}

static inline void stage_rise(struct stage *stage, const struct sw_topology_node *nodes, uint32_t count, const struct sw_policy *policy,
			      const struct sw_placement *placement)
{
	struct sw_err err = {0};
	static struct sw_cut cut;
	cut = sw_cut_make(1000);
	rig_must(sw_topology_new(nodes, count, &stage->topology, &err), &err);
	const struct sw_engine_config config = {
		.splitter = &cut.splitter,
		.topology = stage->topology,
		.policy = policy,
		.placement = placement,
		.terms.quantum_ns = stage->world->quantum_ns,
		.terms.preemption_cost_ns = stage->world->restart_ns,
		.terms.keeps_state = sw_world_terms(stage->world).keeps_state,
		.terms.replace_is_free = stage->world->replace_is_free,
		.terms.nodes_switch = stage->world->nodes_switch,
	};
	script = NULL;
	rig_must(sw_engine_new(&config, &stage->engine, &err), &err);
	rig_must(sw_world_model_new(stage->world, stage->profiles, stage->trace, stage->topology, 7, &stage->model, &err), &err);
}

static inline void stage_end(struct stage *stage)
{
	sw_world_model_free(stage->model);
	sw_engine_free(stage->engine);
	sw_trace_free(stage->trace);
	sw_profiles_free(stage->profiles);
	sw_world_free(stage->world);
	sw_topology_free(stage->topology);
	sw_vec_free(&stage->events);
}

/* One instant: what the world says, which jobs arrive, what is decided. */
static inline void stage_step(struct stage *stage, sw_ns at)
{
	struct sw_job_spec specs[8];
	struct sw_step step;
	struct sw_err err = {0};
	stage->now = at;
	stage->events.count = 0;
	assert_int_equal(sw_world_model_collect(stage->model, stage->engine, at, &stage->events), 0);
	for (; stage->arrived < stage->trace->jobs.count && stage->trace->jobs.items[stage->arrived].submit_ns <= at; stage->arrived++) {
		struct sw_event *event = sw_vec_push(&stage->events);
		assert_non_null(event);
		assert_true(stage->arrived < 8);
		sw_world_model_spec(stage->model, stage->arrived, &specs[stage->arrived]);
		*event = (struct sw_event){.kind = SW_EV_SUBMIT, .spec = &specs[stage->arrived]};
	}
	rig_must(sw_engine_step(stage->engine, at, stage->events.items, stage->events.count, &step, &err), &err);
	rig_must(sw_engine_validate(stage->engine, &err), &err);
	sw_world_model_obey(stage->model, stage->engine, at, &step);
	stage->wake_at = step.wake_at;
	stage->steps++;
}

static inline sw_ns stage_next(const struct stage *stage)
{
	sw_ns next = sw_world_model_next(stage->model);
	if (stage->arrived < stage->trace->jobs.count && stage->trace->jobs.items[stage->arrived].submit_ns < next)
		next = stage->trace->jobs.items[stage->arrived].submit_ns;
	return stage->wake_at < next ? stage->wake_at : next;
}

/* Plays what happens by itself before `at_s`, and then does `what` at that moment. */
static inline void stage_at(struct stage *stage, int64_t at_s, void (*what)(struct sw_plan *plan))
{
	while (stage_next(stage) < at_s * SW_NS_PER_S)
		stage_step(stage, stage_next(stage));
	script = what;
	stage_step(stage, at_s * SW_NS_PER_S);
	assert_null(script);
}

/* Plays to the end of all jobs; false if that takes more than `steps`. */
static inline bool stage_play_out(struct stage *stage, uint32_t steps)
{
	for (uint32_t s = 0; s < steps && stage_next(stage) != SW_TIME_NEVER; s++)
		stage_step(stage, stage_next(stage));
	for (uint32_t j = 0; j < stage->trace->jobs.count; j++)
		if (sw_engine_job(stage->engine, (struct sw_job_id){j}) == NULL ||
		    sw_engine_job(stage->engine, (struct sw_job_id){j})->state <= SW_JOB_RUNNING)
			return false;
	return true;
}

static inline const struct sw_job *stage_look(const struct stage *stage, uint32_t id)
{
	return sw_engine_job(stage->engine, (struct sw_job_id){id});
}

/* The job ends at this moment, and the engine knew it a second before. */
static inline void expect_end(struct stage *stage, uint32_t id, sw_ns at)
{
	assert_true(stage_play_out(stage, 100));
	const struct sw_job *job = stage_look(stage, id);
	assert_int_equal(job->state, SW_JOB_FINISHED);
	if (job->since != at)
		fail_msg("job %u ended at %lld ns, not at %lld", id, (long long)job->since, (long long)at);
}

static const struct sw_topology_node one_gpu[] = {RIG_NODE(0, 1)};
static const struct sw_topology_node two_nodes[] = {RIG_NODE(0, 2), RIG_NODE(0, 2)};

static inline const struct sw_profile *profile_of(const struct stage *stage, const char *model)
{
	return sw_profiles_find(stage->profiles, model);
}

#endif
