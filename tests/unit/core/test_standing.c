/* What runs hold while they are suspended where they ran: who may come beside them, and that they come back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "scripted.h"

#define GIB(n) (UINT64_C(n) << 30)

static const struct sw_engine_config live = {.cannot_move = true, .moves_restart = true};

static const struct sw_topology_node one_gpu[] = {{.gpus = 1, .cpus = 8, .memory_bytes = GIB(64), .gpu_memory_bytes = GIB(16)}};

static struct sw_job_spec asking(uint64_t gpu_gib, uint64_t host_gib, enum sw_stop_rule rule)
{
	struct sw_job_spec spec = rig_spec(1, 1000000);
	spec.gpu_memory_bytes = gpu_gib << 30;
	spec.host_memory_bytes = host_gib << 30;
	spec.stop_rule = (uint8_t)rule;
	return spec;
}

/* That its run would go on after a stop, and whether its memory would leave the GPUs. */
static void say_keeps(struct rig *rig, int64_t at_s, uint32_t id, bool frees)
{
	struct sw_event event = rig_answer(rig, SW_EV_KEEPS, id);
	event.gpus = 1;
	event.frees = frees;
	rig_event(rig, at_s, event);
}

static void hold(struct rig *rig, int64_t at_s, uint32_t id)
{
	rig_event(rig, at_s, (struct sw_event){.kind = SW_EV_HOLD, .job = {id}});
}

static void release(struct rig *rig, int64_t at_s, uint32_t id)
{
	rig_event(rig, at_s, (struct sw_event){.kind = SW_EV_RELEASE, .job = {id}});
}

static void open_live(struct rig *rig, const struct sw_policy *policy, const struct sw_placement *placement,
		      const struct sw_topology_node *nodes, uint32_t count)
{
	struct sw_engine_config config = live;
	config.policy = policy;
	config.fallback = &sw_policy_fifo;
	config.placement = placement;
	rig_open(rig, nodes, count, config, NULL);
}

/* ---- how many stand */

/* Aim: runs whose memory has left a GPU do not lock it, however many stand there, and each of them comes back. */
static void test_many_stand_on_one_gpu(void **state)
{
	(void)state;
	struct rig rig;
	open_live(&rig, &sw_policy_srtf, &sw_placement_pack, one_gpu, 1);
	struct sw_job_spec spec = asking(10, 0, SW_STOP_SUSPEND);
	uint32_t jobs[3 * SW_GPU_RESIDENTS_MAX];
	for (uint32_t j = 0; j < RIG_COUNT(jobs); j++) {
		jobs[j] = rig_submit(&rig, 3 * j, &spec);
		assert_true(rig_runs(&rig, jobs[j]));
		say_keeps(&rig, 3 * j + 1, jobs[j], true);
		hold(&rig, 3 * j + 2, jobs[j]);
	}
	for (uint32_t j = 0; j < RIG_COUNT(jobs); j++) {
		release(&rig, 1000 + 2 * j, jobs[j]);
		assert_true(rig_runs(&rig, jobs[j]));
		hold(&rig, 1001 + 2 * j, jobs[j]);
	}
	assert_string_equal(sw_engine_notes(rig.engine), "");
	rig_close(&rig);
}

/* ---- who is to blame */

/* Aim: a policy is not thrown out for a job that waits for host memory of a run that is held. */
static void test_held_host_memory(void **state)
{
	(void)state;
	struct rig rig;
	open_live(&rig, &sw_policy_srtf, &sw_placement_yarn, one_gpu, 1);
	struct sw_job_spec spec = asking(10, 40, SW_STOP_SUSPEND);
	uint32_t first = rig_submit(&rig, 0, &spec);
	say_keeps(&rig, 1, first, true);
	hold(&rig, 2, first);
	uint32_t second = rig_submit(&rig, 3, &spec);
	for (int t = 4; t < 10; t++)
		rig_tick(&rig, t);
	assert_false(rig_runs(&rig, second));
	assert_string_equal(sw_engine_policy(rig.engine), "srtf");
	rig_event(&rig, 10, (struct sw_event){.kind = SW_EV_CANCEL, .job = {first}});
	assert_true(rig_runs(&rig, second));
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many_stand_on_one_gpu),
		cmocka_unit_test(test_held_host_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
