/* What runs hold while they are suspended where they ran: which jobs may come beside them,
 * and that they come back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "scripted.h"

#define GIB(n) (UINT64_C(n) << 30)

static const struct sw_engine_config live = {.terms.moves = SW_MOVES_RESTART};

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

/* Aim: runs whose memory has left a GPU do not lock it, however many stand there, and
 * each of them comes back. */
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

/* ---- host memory */

static const struct sw_topology_node two_gpus[] = {{.gpus = 2, .cpus = 8, .memory_bytes = GIB(64), .gpu_memory_bytes = GIB(16)}};
static const struct sw_topology_node two_nodes[] = {
	{.gpus = 1, .cpus = 8, .memory_bytes = GIB(64), .gpu_memory_bytes = GIB(16)},
	{.gpus = 1, .cpus = 8, .memory_bytes = GIB(64), .gpu_memory_bytes = GIB(16)},
};

/* Aim: under every placement rule a job starts on no node whose host memory a suspended run holds,
 * but does on another or once that run has ended, and the run goes on. */
static void test_host_memory(void **state)
{
	(void)state;
	for (size_t r = 0; sw_placements[r] != NULL; r++) {
		struct rig rig;
		open_live(&rig, &sw_policy_fjf, sw_placements[r], two_nodes, 2);
		struct sw_job_spec spec = asking(10, 40, SW_STOP_SUSPEND), small = asking(10, 24, SW_STOP_SUSPEND);
		uint32_t first = rig_submit(&rig, 0, &spec);
		const uint32_t other = rig_place(&rig, first)[0] == '0' ? 1 : 0;
		say_keeps(&rig, 1, first, true);
		hold(&rig, 2, first);
		uint32_t second = rig_submit(&rig, 3, &spec), third = rig_submit(&rig, 3, &spec);
		assert_int_equal(rig_place(&rig, second)[0] - '0', other);
		assert_false(rig_runs(&rig, third));
		uint32_t fits = rig_submit(&rig, 4, &small);
		assert_true(rig_runs(&rig, fits));
		rig_event(&rig, 5, (struct sw_event){.kind = SW_EV_CANCEL, .job = {fits}});
		release(&rig, 6, first);
		assert_true(rig_runs(&rig, first) && !rig_runs(&rig, third));
		say_keeps(&rig, 7, first, true);
		hold(&rig, 7, first);
		assert_false(rig_runs(&rig, third));
		rig_event(&rig, 8, (struct sw_event){.kind = SW_EV_CANCEL, .job = {first}});
		assert_true(rig_runs(&rig, third));
		rig_close(&rig);
	}
}

/* Aim: where nothing is suspended, what jobs ask for of the host decides nothing that it did not
 * decide before; and where it is not known how much a node has, nothing at all. */
static void test_host_memory_of_those_that_run(void **state)
{
	(void)state;
	static const struct sw_topology_node unknown[] = {{.gpus = 2, .cpus = 8, .gpu_memory_bytes = GIB(16)}};
	struct rig rig;
	struct sw_job_spec spec = asking(10, 40, SW_STOP_SUSPEND);
	open_live(&rig, &sw_policy_fjf, &sw_placement_pack, two_gpus, 1);
	uint32_t first = rig_submit(&rig, 0, &spec), second = rig_submit(&rig, 0, &spec);
	assert_true(rig_runs(&rig, first) && rig_runs(&rig, second));
	/* What runs beside one that stands stays, and that one comes back. */
	say_keeps(&rig, 1, first, true);
	hold(&rig, 2, first);
	assert_true(rig_runs(&rig, second));
	release(&rig, 3, first);
	assert_true(rig_runs(&rig, first) && rig_runs(&rig, second));
	rig_close(&rig);
	open_live(&rig, &sw_policy_fjf, &sw_placement_pack, unknown, 1);
	first = rig_submit(&rig, 0, &spec);
	say_keeps(&rig, 1, first, true);
	hold(&rig, 2, first);
	assert_true(rig_runs(&rig, rig_submit(&rig, 3, &spec)));
	rig_close(&rig);
}

static enum sw_answer answers;

static void try_each_verb(struct sw_plan *plan)
{
	const struct sw_job *job = job_of(plan, 2), *host = job_of(plan, 1);
	const struct sw_gpus free_one = {{0}, 1}, taken = {{0}, 2};
	assert_int_equal(sw_plan_run(plan, job, NULL), answers);
	assert_int_equal(sw_plan_run(plan, job, SW_WISH(.gpus = 1, .where = sw_on((struct sw_node_id){0}))), answers);
	assert_int_equal(sw_plan_run(plan, job, SW_WISH(.as = SW_AS_GUARANTEED, .where = sw_at(&free_one, 1))), answers);
	assert_int_equal(sw_plan_run(plan, job, SW_WISH(.promise = SW_REST, .where = sw_at(&taken, 1))), answers);
	assert_int_equal(sw_plan_run(plan, job, SW_WISH(.where = sw_beside(host))), answers);
	assert_int_equal(sw_plan_run(plan, job, SW_WISH(.promise = SW_REST, .where = sw_beside(host))), answers);
	assert_int_equal(sw_plan_run(plan, job, SW_WISH(.evict = SW_EVICT_OPPORTUNISTIC)), answers);
}

/* Aim: by no verb does a job come to a node whose host memory a suspended run holds. */
static void test_host_memory_and_verbs(void **state)
{
	(void)state;
	struct rig rig;
	struct sw_engine_config config = live;
	config.placement = &sw_placement_pack;
	open_scripted(&rig, two_gpus, 1, config);
	struct sw_job_spec spec = asking(4, 40, SW_STOP_SUSPEND), small = asking(4, 10, SW_STOP_NEVER);
	uint32_t first = rig_submit(&rig, 0, &spec), host = rig_submit(&rig, 0, &small);
	run_script(&rig, 0, start_all);
	say_keeps(&rig, 1, first, true);
	hold(&rig, 2, first);
	small.host_memory_bytes = GIB(20);
	small.compute_milli = 100;
	uint32_t guest = rig_submit(&rig, 3, &small);
	answers = SW_NO_ROOM;
	run_script(&rig, 3, try_each_verb);
	assert_false(rig_runs(&rig, guest));
	assert_true(rig_runs(&rig, host));
	rig_close(&rig);
}

/* Aim: nothing is stopped for a job that would have no host memory beside what is suspended
 * then. */
static void test_host_memory_stops_none_in_vain(void **state)
{
	(void)state;
	static const struct sw_policy *const policies[] = {&sw_policy_srtf, &sw_policy_antman, &sw_policy_philly, &sw_policy_sharewell};
	for (size_t p = 0; p < sizeof policies / sizeof policies[0]; p++) {
		for (int fits = 0; fits < 2; fits++) {
			struct rig rig;
			open_live(&rig, policies[p], &sw_placement_pack, one_gpu, 1);
			struct sw_job_spec victim = asking(0, 40, SW_STOP_SUSPEND), mine = asking(0, fits ? 20 : 40, SW_STOP_NEVER);
			victim.job_class = policies[p] == &sw_policy_philly ? SW_CLASS_GUARANTEED : SW_CLASS_OPPORTUNISTIC;
			mine.work_ns = SW_NS_PER_S;
			mine.tenant = 1;
			rig_event(&rig, 0, (struct sw_event){.kind = SW_EV_QUOTA, .tenant = 0, .gpus = 0});
			rig_event(&rig, 0, (struct sw_event){.kind = SW_EV_QUOTA, .tenant = 1, .gpus = 1});
			uint32_t running = rig_submit(&rig, 0, &victim);
			assert_true(rig_runs(&rig, running));
			say_keeps(&rig, 1, running, true);
			uint32_t job = rig_submit(&rig, 2, &mine);
			for (int t = 3; t < 100; t++)
				rig_tick(&rig, t);
			assert_int_equal(rig_runs(&rig, job), fits);
			assert_int_equal(rig_runs(&rig, running), !fits);
			assert_int_equal(rig_job(&rig, running)->preemptions, fits);
			rig_close(&rig);
		}
	}
}

/* Aim: a job that was lifted for one that needs its host memory beside a suspended run does not
 * stay, and does where the other finds no place after all. */
static void test_host_memory_of_one_in_the_way(void **state)
{
	(void)state;
	static const struct sw_topology_node three_gpus[] = {{.gpus = 3, .cpus = 8, .memory_bytes = GIB(64), .gpu_memory_bytes = GIB(16)}};
	for (int fits = 0; fits < 2; fits++) {
		struct rig rig;
		open_live(&rig, &sw_policy_srtf, &sw_placement_pack, three_gpus, 1);
		struct sw_job_spec stands = asking(0, 20, SW_STOP_SUSPEND), longer = asking(0, 40, SW_STOP_RESTART);
		struct sw_job_spec shorter = asking(0, fits ? 30 : 50, SW_STOP_NEVER);
		shorter.work_ns = SW_NS_PER_S;
		uint32_t first = rig_submit(&rig, 0, &stands), between = rig_submit_plain(&rig, 0, 1, 10);
		uint32_t victim = rig_submit(&rig, 0, &longer);
		rig_finish(&rig, 1, between);
		assert_string_equal(rig_place(&rig, victim), "0:4"); /* its GPU is not the first to be taken */
		say_keeps(&rig, 1, first, true);
		hold(&rig, 2, first);
		uint32_t job = rig_submit(&rig, 3, &shorter);
		assert_int_equal(rig_runs(&rig, job), fits);
		assert_int_equal(rig_runs(&rig, victim), !fits);
		rig_close(&rig);
	}
}

static uint32_t crowded;

static void start_on_crowded(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.gpus = 1, .where = sw_on((struct sw_node_id){crowded}))), SW_YES);
}

/* Aim: a job that fits on one node is not spread over two because the tightest node has
 * no host memory for it. */
static void test_host_memory_of_the_tightest_node(void **state)
{
	(void)state;
	static const struct sw_topology_node nodes[] = {
		{.gpus = 6, .cpus = 8, .memory_bytes = GIB(64), .gpu_memory_bytes = GIB(16)},
		{.gpus = 5, .cpus = 8, .memory_bytes = GIB(64), .gpu_memory_bytes = GIB(16)},
		{.gpus = 6, .cpus = 8, .memory_bytes = GIB(64), .gpu_memory_bytes = GIB(16)},
	};
	for (crowded = 0; crowded < 2; crowded++) {
		struct rig rig;
		struct sw_engine_config config = live;
		config.placement = &sw_placement_count;
		open_scripted(&rig, &nodes[1 - crowded], 2, config);
		struct sw_job_spec stands = asking(12, 20, SW_STOP_SUSPEND), wide = asking(12, 15, SW_STOP_RESTART);
		wide.gpus = wide.min_gpus = wide.max_gpus = 4;
		uint32_t held = rig_submit(&rig, 0, &stands), job = rig_submit(&rig, 0, &wide);
		run_script(&rig, 0, start_on_crowded);
		say_keeps(&rig, 1, held, true);
		hold(&rig, 2, held);
		run_script(&rig, 3, start_all);
		assert_true(rig_runs(&rig, job));
		assert_string_equal(rig_place(&rig, job), crowded == 0 ? "1:f" : "0:f");
		rig_close(&rig);
	}
}

static bool makes_room;

static void stop_for_newcomer(struct sw_plan *plan)
{
	assert_int_equal(sw_job_makes_room(sw_plan_view(plan), job_of(plan, 1), job_of(plan, 3)), makes_room);
	assert_int_equal(sw_plan_stop(plan, job_of(plan, 1), SW_PREEMPT), SW_YES);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 3), NULL), makes_room ? SW_YES : SW_NO_ROOM);
}

/* Aim: on a node whose jobs ask for more host memory than it has, a stop makes as much room
 * as it is said to make. */
static void test_room_on_a_node_asked_for_too_much(void **state)
{
	(void)state;
	static const struct sw_topology_node node[] = {{.gpus = 3, .cpus = 8, .memory_bytes = GIB(100), .gpu_memory_bytes = GIB(16)}};
	for (int fits = 0; fits < 2; fits++) {
		struct rig rig;
		struct sw_engine_config config = live;
		config.placement = &sw_placement_pack;
		open_scripted(&rig, node, 1, config);
		struct sw_job_spec stands = asking(0, 20, SW_STOP_SUSPEND), runs = asking(0, 60, SW_STOP_RESTART);
		struct sw_job_spec newcomer = asking(0, fits ? 20 : 21, SW_STOP_RESTART);
		uint32_t held = rig_submit(&rig, 0, &stands);
		(void)rig_submit(&rig, 0, &runs);
		(void)rig_submit(&rig, 0, &runs);
		run_script(&rig, 0, start_all);
		say_keeps(&rig, 1, held, true);
		hold(&rig, 2, held);
		(void)rig_submit(&rig, 3, &newcomer);
		makes_room = fits;
		run_script(&rig, 4, stop_for_newcomer);
		rig_close(&rig);
	}
}

static const struct sw_gpus gang_gpus[] = {{{0}, 2}, {{1}, 1}};

static void start_gang(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.as = SW_AS_GUARANTEED, .where = sw_at(&gang_gpus[0], 1))), SW_YES);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.as = SW_AS_OPPORTUNISTIC, .where = sw_at(gang_gpus, 2))), SW_YES);
}

static void start_over_gang(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 2), SW_WISH(.evict = SW_EVICT_OPPORTUNISTIC)), answers);
}

/* Aim: a gang is not stopped for a job on one of its nodes if its run would take the job's
 * host memory on another. */
static void test_host_memory_of_a_gang(void **state)
{
	(void)state;
	static const struct sw_topology_node uneven[] = {
		{.gpus = 2, .cpus = 8, .memory_bytes = GIB(64), .gpu_memory_bytes = GIB(16)},
		{.gpus = 1, .cpus = 8, .memory_bytes = GIB(256), .gpu_memory_bytes = GIB(16)},
	};
	for (int fits = 0; fits < 2; fits++) {
		struct rig rig;
		struct sw_engine_config config = live;
		config.placement = &sw_placement_count;
		open_scripted(&rig, uneven, 2, config);
		struct sw_job_spec beside = asking(4, 0, SW_STOP_NEVER), gang = asking(4, 10, SW_STOP_SUSPEND);
		struct sw_job_spec job = asking(14, fits ? 54 : 60, SW_STOP_NEVER);
		beside.compute_milli = gang.compute_milli = 100;
		gang.job_class = SW_CLASS_OPPORTUNISTIC;
		gang.gpus = gang.min_gpus = gang.max_gpus = job.gpus = job.min_gpus = job.max_gpus = 2;
		(void)rig_submit(&rig, 0, &beside);
		uint32_t victim = rig_submit(&rig, 0, &gang);
		run_script(&rig, 0, start_gang);
		say_keeps(&rig, 1, victim, true);
		uint32_t over = rig_submit(&rig, 2, &job);
		answers = fits ? SW_YES : SW_NO_ROOM;
		run_script(&rig, 3, start_over_gang);
		assert_int_equal(rig_runs(&rig, over), fits);
		assert_int_equal(rig_runs(&rig, victim), !fits);
		assert_int_equal(rig_job(&rig, victim)->preemptions, fits);
		rig_close(&rig);
	}
}

static void start_victims(struct sw_plan *plan)
{
	const struct sw_gpus at[] = {{{0}, 1}, {{0}, 2}};
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(sw_plan_run(plan, job_of(plan, i), SW_WISH(.as = SW_AS_OPPORTUNISTIC, .where = sw_at(&at[i], 1))), SW_YES);
}

static void start_protected(struct sw_plan *plan)
{
	const struct sw_gpus at = {{1}, 1};
	assert_int_equal(sw_plan_run(plan, job_of(plan, 2), SW_WISH(.as = SW_AS_OPPORTUNISTIC, .where = sw_at(&at, 1))), SW_YES);
}

static void start_over_after_newcomer(struct sw_plan *plan)
{
	const struct sw_gpus at = {{0}, 4};
	assert_int_equal(sw_plan_run(plan, job_of(plan, 3), SW_WISH(.as = SW_AS_GUARANTEED, .where = sw_at(&at, 1))), SW_YES);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 4), SW_WISH(.evict = SW_EVICT_OPPORTUNISTIC)), SW_TOO_SOON);
}

/* Aim: a job that was lifted in vain goes back beside a newcomer that takes no host memory, also
 * where jobs ask for too much of it. */
static void test_put_back_beside_one_without_host_memory(void **state)
{
	(void)state;
	static const struct sw_topology_node nodes[] = {
		{.gpus = 3, .cpus = 8, .memory_bytes = GIB(64), .gpu_memory_bytes = GIB(16)},
		{.gpus = 1, .cpus = 8, .memory_bytes = GIB(64), .gpu_memory_bytes = GIB(16)},
	};
	struct rig rig;
	struct sw_engine_config config = live;
	config.placement = &sw_placement_count;
	config.terms.quantum_ns = 100 * SW_NS_PER_S;
	open_scripted(&rig, nodes, 2, config);
	struct sw_job_spec stands = asking(4, 40, SW_STOP_SUSPEND), lent = asking(4, 30, SW_STOP_SUSPEND),
			   late = asking(4, 0, SW_STOP_RESTART);
	struct sw_job_spec newcomer = asking(4, 0, SW_STOP_NEVER), wide = asking(14, 0, SW_STOP_NEVER);
	stands.job_class = lent.job_class = late.job_class = SW_CLASS_OPPORTUNISTIC;
	wide.gpus = wide.min_gpus = wide.max_gpus = 3;
	uint32_t held = rig_submit(&rig, 0, &stands), victim = rig_submit(&rig, 0, &lent), other = rig_submit(&rig, 0, &late);
	run_script(&rig, 0, start_victims);
	say_keeps(&rig, 1, held, true);
	say_keeps(&rig, 1, victim, true);
	hold(&rig, 2, held);
	run_script(&rig, 200, start_protected);
	(void)rig_submit(&rig, 200, &newcomer);
	(void)rig_submit(&rig, 200, &wide);
	run_script(&rig, 201, start_over_after_newcomer);
	assert_true(rig_runs(&rig, victim) && rig_runs(&rig, other));
	rig_close(&rig);
}

static const struct sw_gpus on_first[] = {{{0}, 1}}, on_second[] = {{{1}, 1}};

static void start_limited(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.as = SW_AS_OPPORTUNISTIC, .where = sw_at(on_first, 1))), SW_YES);
	assert_int_equal(sw_plan_limit(plan, job_of(plan, 0), GIB(6), 100), SW_YES);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 1), SW_WISH(.as = SW_AS_GUARANTEED, .where = sw_at(on_first, 1))), SW_YES);
	assert_int_equal(sw_plan_run(plan, job_of(plan, 2), SW_WISH(.as = SW_AS_OPPORTUNISTIC, .where = sw_at(on_second, 1))), SW_YES);
}

static void upgrade_first(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.as = SW_AS_GUARANTEED, .evict = SW_EVICT_OPPORTUNISTIC)), SW_NO_ROOM);
	assert_int_equal(job_of(plan, 0)->state, SW_JOB_RUNNING);
	assert_int_equal(job_of(plan, 2)->state, SW_JOB_RUNNING);
}

/* Aim: a job that could not come back after a stop elsewhere is not upgraded there, and runs on; so
 * does the one in its way. */
static void test_no_upgrade_without_a_way_back(void **state)
{
	(void)state;
	static const struct sw_topology_node large_and_small[] = {
		{.gpus = 1, .cpus = 8, .memory_bytes = GIB(64), .gpu_memory_bytes = GIB(32)},
		{.gpus = 1, .cpus = 8, .memory_bytes = GIB(64), .gpu_memory_bytes = GIB(8)},
	};
	struct rig rig;
	open_scripted(&rig, large_and_small, 2, (struct sw_engine_config){.placement = &sw_placement_count});
	struct sw_job_spec limited = asking(12, 0, SW_STOP_SUSPEND), host = asking(12, 0, SW_STOP_NEVER);
	struct sw_job_spec lent = asking(4, 0, SW_STOP_RESTART);
	limited.compute_milli = 500;
	host.compute_milli = 1000;
	lent.job_class = SW_CLASS_OPPORTUNISTIC;
	uint32_t job = rig_submit(&rig, 0, &limited);
	(void)rig_submit(&rig, 0, &host);
	uint32_t other = rig_submit(&rig, 0, &lent);
	run_script(&rig, 0, start_limited);
	say_keeps(&rig, 1, job, true);
	run_script(&rig, 2, upgrade_first);
	assert_true(rig_runs(&rig, job) && rig_runs(&rig, other));
	assert_string_equal(rig_place(&rig, job), "0:1");
	assert_int_equal(rig_job(&rig, job)->job_class, SW_CLASS_OPPORTUNISTIC);
	assert_int_equal(rig_job(&rig, job)->preemptions + rig_job(&rig, other)->preemptions, 0);
	rig_close(&rig);
}

/* ---- the way back */

static uint32_t guest_of;

static void start_as_guest(struct sw_plan *plan)
{
	struct sw_gpus where[4];
	const struct sw_job *job = job_of(plan, guest_of);
	size_t count = sw_gpus_least_used(sw_plan_view(plan), job, 1001, where, 4);
	assert_int_equal(count, 1);
	assert_int_equal(sw_plan_run(plan, job, SW_WISH(.as = SW_AS_OPPORTUNISTIC, .where = sw_at(where, count))), SW_YES);
}

static void start_host(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), NULL), SW_YES);
}

static void pack_guest(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, guest_of), SW_WISH(.promise = SW_REST, .where = sw_beside(job_of(plan, 0)))),
			 SW_YES);
}

/* Aim: a guest that was suspended comes back beside its host, as the run that it was. */
static void test_guest_comes_back(void **state)
{
	(void)state;
	for (uint32_t gpus = 1; gpus <= 2; gpus++) {
		for (int how = 0; how < 2; how++) {
			struct rig rig;
			struct sw_engine_config config = live;
			config.placement = &sw_placement_yarn;
			open_scripted(&rig, two_gpus, 1, config);
			struct sw_job_spec host = asking(4, 8, SW_STOP_NEVER), lent = asking(4, 8, SW_STOP_SUSPEND);
			lent.job_class = SW_CLASS_OPPORTUNISTIC;
			host.cpus = lent.cpus = 1;
			host.gpus = host.min_gpus = host.max_gpus = lent.gpus = lent.min_gpus = lent.max_gpus = gpus;
			uint32_t first = rig_submit(&rig, 0, &host);
			guest_of = rig_submit(&rig, 0, &lent);
			run_script(&rig, 0, start_host);
			run_script(&rig, 1, pack_guest);
			char place[256];
			snprintf(place, sizeof place, "%s", rig_place(&rig, guest_of));
			assert_string_equal(place, rig_place(&rig, first));
			say_keeps(&rig, 2, guest_of, how);
			hold(&rig, 3, guest_of);
			release(&rig, 4, guest_of);
			run_script(&rig, 4, how ? start_as_guest : pack_guest);
			assert_true(rig_runs(&rig, guest_of));
			assert_string_equal(rig_place(&rig, guest_of), place);
			/* The run that it was: what was known of it still is. */
			assert_true(sw_job_may_stop(sw_engine_view(rig.engine), rig_job(&rig, guest_of)));
			assert_int_equal(rig_job(&rig, guest_of)->frees_gpus, how);
			rig_close(&rig);
		}
	}
}

/* Aim: antman has one that it lent GPUs to go on beside the job that came to them
 * meanwhile, not on others. */
static void test_antman_brings_back(void **state)
{
	(void)state;
	struct rig rig;
	open_live(&rig, &sw_policy_antman, &sw_placement_yarn, two_gpus, 1);
	struct sw_job_spec own = asking(4, 8, SW_STOP_NEVER), lent = asking(4, 8, SW_STOP_SUSPEND);
	own.use_milli = 300;
	lent.job_class = SW_CLASS_OPPORTUNISTIC;
	uint32_t first = rig_submit(&rig, 0, &lent);
	assert_string_equal(rig_place(&rig, first), "0:1");
	say_keeps(&rig, 1, first, true);
	hold(&rig, 2, first);
	uint32_t a = rig_submit(&rig, 3, &own), b = rig_submit(&rig, 4, &own);
	assert_true(rig_runs(&rig, a) && rig_runs(&rig, b));
	release(&rig, 5, first);
	assert_string_equal(rig_place(&rig, first), "0:1");
	rig_finish(&rig, 6, a);
	rig_finish(&rig, 7, b);
	assert_true(rig_runs(&rig, first));
	rig_close(&rig);
}

/* ---- what policies hear */

static void lose(struct rig *rig, int64_t at_s, uint32_t id)
{
	struct sw_event fails = rig_answer(rig, SW_EV_FAIL, id);
	fails.verdict = SW_FAIL_FREE;
	rig_event(rig, at_s, fails);
}

/* Aim: under every policy a job that waits for GPU memory of a held run starts once that memory has
 * left, or the run is lost. */
static void test_memory_leaves_later(void **state)
{
	(void)state;
	for (size_t p = 0; sw_policies[p] != NULL; p++) {
		for (int lost = 0; lost < 2 && sw_policies[p] != &sw_policy_chaos; lost++) {
			struct rig rig;
			open_live(&rig, sw_policies[p], &sw_placement_pack, two_gpus, 1);
			struct sw_job_spec stands = asking(10, 0, SW_STOP_SUSPEND), stays = asking(10, 0, SW_STOP_NEVER);
			uint32_t held = rig_submit(&rig, 0, &stands), other = rig_submit(&rig, 0, &stays);
			assert_true(rig_runs(&rig, held) && rig_runs(&rig, other));
			say_keeps(&rig, 1, held, false);
			hold(&rig, 2, held);
			uint32_t waits = rig_submit(&rig, 3, &stays);
			for (int t = 4; t < 10; t++)
				rig_tick(&rig, t);
			assert_false(rig_runs(&rig, waits));
			if (lost)
				lose(&rig, 10, held);
			else
				say_keeps(&rig, 10, held, true);
			if (!rig_runs(&rig, waits))
				fail_msg("under '%s' the job waits on", sw_policies[p]->name);
			rig_close(&rig);
		}
	}
}

/* Aim: a policy hears that what runs could leave its GPU after all, or may be stopped after all. */
static void test_victim_changes_its_mind(void **state)
{
	(void)state;
	for (int kept = 0; kept < 2; kept++) {
		struct rig rig;
		open_live(&rig, &sw_policy_antman, &sw_placement_pack, one_gpu, 1);
		struct sw_job_spec lent = asking(10, 0, SW_STOP_SUSPEND), own = asking(10, 0, SW_STOP_NEVER);
		lent.job_class = SW_CLASS_OPPORTUNISTIC;
		uint32_t victim = rig_submit(&rig, 0, &lent);
		struct sw_event event = rig_answer(&rig, SW_EV_KEEPS, victim);
		event.gpus = !kept;
		event.frees = kept;
		rig_event(&rig, 1, event);
		uint32_t waits = rig_submit(&rig, 2, &own);
		for (int t = 3; t < 10; t++)
			rig_tick(&rig, t);
		assert_false(rig_runs(&rig, waits));
		say_keeps(&rig, 10, victim, true);
		assert_true(rig_runs(&rig, waits) && !rig_runs(&rig, victim));
		rig_close(&rig);
	}
}

/* ---- blame for waiting jobs */

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
		cmocka_unit_test(test_host_memory),
		cmocka_unit_test(test_host_memory_of_those_that_run),
		cmocka_unit_test(test_host_memory_and_verbs),
		cmocka_unit_test(test_host_memory_stops_none_in_vain),
		cmocka_unit_test(test_host_memory_of_one_in_the_way),
		cmocka_unit_test(test_host_memory_of_the_tightest_node),
		cmocka_unit_test(test_room_on_a_node_asked_for_too_much),
		cmocka_unit_test(test_host_memory_of_a_gang),
		cmocka_unit_test(test_put_back_beside_one_without_host_memory),
		cmocka_unit_test(test_no_upgrade_without_a_way_back),
		cmocka_unit_test(test_guest_comes_back),
		cmocka_unit_test(test_antman_brings_back),
		cmocka_unit_test(test_memory_leaves_later),
		cmocka_unit_test(test_victim_changes_its_mind),
		cmocka_unit_test(test_held_host_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
