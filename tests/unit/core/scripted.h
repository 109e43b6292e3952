/* A policy that does what the test says, once. Include after cmocka. */
#ifndef SW_TESTS_UNIT_CORE_SCRIPTED_H
#define SW_TESTS_UNIT_CORE_SCRIPTED_H

#include "rig.h"

/* What the policy does in the next decision; taken off before it is done. */
static void (*script)(struct sw_plan *plan);

static sw_ns scripted_decide(struct sw_plan *plan)
{
	void (*once)(struct sw_plan *) = script;
	script = NULL;
	if (once != NULL)
		once(plan);
	return SW_TIME_NEVER;
}

static const struct sw_policy scripted = {
	.abi = SW_POLICY_ABI, .name = "scripted", .about = "does what the test says", .decide = scripted_decide};

/* A job that was not submitted. */
static const struct sw_job made_up = {.gpus = 1, .min_gpus = 1, .max_gpus = 1};

static const struct sw_topology_node two_by_two[] = {RIG_NODE(0, 2), RIG_NODE(0, 2)};

static inline const struct sw_job *job_of(struct sw_plan *plan, uint32_t id)
{
	return sw_view_job(sw_plan_view(plan), (struct sw_job_id){id});
}

static inline void open_scripted(struct rig *rig, const struct sw_topology_node *nodes, uint32_t count, struct sw_engine_config config)
{
	config.policy = &scripted;
	script = NULL;
	rig_open(rig, nodes, count, config, NULL);
}

static inline void run_script(struct rig *rig, int64_t at_s, void (*what)(struct sw_plan *plan))
{
	script = what;
	rig_tick(rig, at_s);
	assert_null(script);
}

/* ---- common scripts */

static inline void start_first(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), NULL), SW_YES);
}

static inline void start_all(struct sw_plan *plan)
{
	struct sw_view *view = sw_plan_view(plan);
	const struct sw_job *next;
	for (const struct sw_job *job = sw_view_next_waiting(view, NULL); job != NULL; job = next) {
		next = sw_view_next_waiting(view, job);
		(void)sw_plan_run(plan, job, NULL);
	}
}

#endif
