/* An engine on a bench: made of a few nodes, stepped by hand, looked over after every step. For the
 * unit tests of core, policy and placement. Times are in seconds. Include after cmocka. */
#ifndef SW_TESTS_UNIT_CORE_RIG_H
#define SW_TESTS_UNIT_CORE_RIG_H

#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "core/engine.h"
#include "placement/registry.h"
#include "policy/registry.h"

#define RIG_GIB (UINT64_C(1) << 30)
#define RIG_NODE(rack_, gpus_)                                                                                                 \
	{                                                                                                                      \
		.rack = (rack_), .gpus = (gpus_), .cpus = 128, .memory_bytes = 512 * RIG_GIB, .gpu_memory_bytes = 80 * RIG_GIB \
	}
#define RIG_COUNT(array) ((uint32_t)(sizeof(array) / sizeof(array)[0]))

struct rig {
	struct sw_topology *topology;
	struct sw_params *params;
	struct sw_engine *engine;
	struct sw_step step;
	sw_ns now;
};

static inline void rig_must(int result, const struct sw_err *err)
{
	if (result < 0)
		fail_msg("error %d: %s: %s", result, err->fact, err->detail);
}

/* `config` without topology and params; parameters as "name=value" words, NULL ends. */
static inline void rig_open(struct rig *rig, const struct sw_topology_node *nodes, uint32_t count, struct sw_engine_config config,
			    const char *const *words)
{
	struct sw_err err = {0};
	*rig = (struct rig){0};
	rig_must(sw_topology_new(nodes, count, &rig->topology, &err), &err);
	rig_must(sw_params_new(config.policy, &rig->params, &err), &err);
	for (; words != NULL && *words != NULL; words++) {
		char name[64];
		size_t length = strcspn(*words, "=");
		assert_true(length < sizeof name);
		memcpy(name, *words, length);
		name[length] = '\0';
		const struct sw_param *param = sw_params_find(config.policy, name, &err);
		assert_non_null(param);
		rig_must(sw_params_set(rig->params, param, *words + length + 1, strlen(*words + length + 1), &err), &err);
	}
	config.topology = rig->topology;
	config.params = rig->params;
	if (config.placement == NULL)
		config.placement = &sw_placement_count;
	rig_must(sw_engine_new(&config, &rig->engine, &err), &err);
}

static inline void rig_close(struct rig *rig)
{
	sw_engine_free(rig->engine);
	sw_topology_free(rig->topology);
	sw_params_free(rig->params);
}

/* One step at `at_s`, after which every invariant must hold. */
static inline void rig_step_ns(struct rig *rig, sw_ns at, const struct sw_event *events, size_t count)
{
	struct sw_err err = {0};
	rig->now = at > rig->now ? at : rig->now;
	rig_must(sw_engine_step(rig->engine, at, events, count, &rig->step, &err), &err);
	rig_must(sw_engine_validate(rig->engine, &err), &err);
}

static inline void rig_step(struct rig *rig, int64_t at_s, const struct sw_event *events, size_t count)
{
	rig_step_ns(rig, at_s * SW_NS_PER_S, events, count);
}

static inline void rig_tick(struct rig *rig, int64_t at_s)
{
	rig_step(rig, at_s, NULL, 0);
}

static inline void rig_event(struct rig *rig, int64_t at_s, struct sw_event event)
{
	rig_step(rig, at_s, &event, 1);
}

/* ---- jobs */

static inline struct sw_job_spec rig_spec(uint32_t gpus, int64_t work_s)
{
	return (struct sw_job_spec){
		.gpus = gpus,
		.min_gpus = gpus,
		.max_gpus = gpus,
		.knowledge = SW_KNOWN,
		.work_ns = work_s * SW_NS_PER_S,
		.deadline_at = SW_TIME_NEVER,
	};
}

/* Submits one job and returns its number. */
static inline uint32_t rig_submit(struct rig *rig, int64_t at_s, const struct sw_job_spec *spec)
{
	uint32_t id = sw_engine_job_count(rig->engine);
	rig_event(rig, at_s, (struct sw_event){.kind = SW_EV_SUBMIT, .spec = spec});
	assert_int_equal(sw_engine_job_count(rig->engine), id + 1);
	return id;
}

static inline uint32_t rig_submit_plain(struct rig *rig, int64_t at_s, uint32_t gpus, int64_t work_s)
{
	struct sw_job_spec spec = rig_spec(gpus, work_s);
	return rig_submit(rig, at_s, &spec);
}

static inline const struct sw_job *rig_job(const struct rig *rig, uint32_t id)
{
	const struct sw_job *job = sw_engine_job(rig->engine, (struct sw_job_id){id});
	assert_non_null(job);
	return job;
}

static inline uint8_t rig_state(const struct rig *rig, uint32_t id)
{
	return rig_job(rig, id)->state;
}

static inline bool rig_runs(const struct rig *rig, uint32_t id)
{
	return rig_state(rig, id) == SW_JOB_RUNNING;
}

/* An answer about the run that is on. */
static inline struct sw_event rig_answer(const struct rig *rig, enum sw_event_kind kind, uint32_t id)
{
	return (struct sw_event){.kind = kind, .job = {id}, .epoch = sw_engine_epoch(rig->engine, (struct sw_job_id){id})};
}

static inline void rig_finish(struct rig *rig, int64_t at_s, uint32_t id)
{
	rig_event(rig, at_s, rig_answer(rig, SW_EV_FINISH, id));
	assert_int_equal(rig_state(rig, id), SW_JOB_FINISHED);
}

static inline struct sw_event rig_node_event(enum sw_event_kind kind, uint32_t node)
{
	return (struct sw_event){.kind = kind, .node = {node}};
}

/* ---- commands of the last step */

static inline const struct sw_command *rig_command(const struct rig *rig, enum sw_command_kind kind, uint32_t job)
{
	for (size_t c = 0; c < rig->step.command_count; c++)
		if (rig->step.commands[c].kind == kind && rig->step.commands[c].job == job)
			return &rig->step.commands[c];
	return NULL;
}

static inline size_t rig_commands(const struct rig *rig)
{
	return rig->step.command_count;
}

/* Where a job is, as "node:mask node:mask" with masks in hexadecimal; "" if nowhere. */
static inline const char *rig_place(const struct rig *rig, uint32_t id)
{
	static char text[256];
	const struct sw_ledger *ledger = sw_engine_ledger(rig->engine);
	size_t used = 0;
	text[0] = '\0';
	for (uint32_t p = sw_engine_parts(rig->engine, (struct sw_job_id){id}); p != SW_NO_PART; p = ledger->parts[p].next)
		used += (size_t)snprintf(text + used, sizeof text - used, "%s%u:%llx", used > 0 ? " " : "", ledger->parts[p].node,
					 (unsigned long long)ledger->parts[p].mask);
	return text;
}

#endif
