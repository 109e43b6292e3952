/* Orders that the core keeps: which job is ahead, which overtakes which, which is preempted, and
 * what happens among equals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/rng.h"
#include "rig.h"

/* ---- a policy whose keys the test sets ---- */

static int64_t keys[16];

static int64_t key_of(struct sw_view *view, const struct sw_job *job)
{
	(void)view;
	return keys[job->id.v];
}

static struct sw_order order;
static struct sw_policy keyed = {.abi = SW_POLICY_ABI, .name = "keyed", .about = "keys of the test", .order = &order, .key = key_of};

static const struct sw_topology_node two_gpus[] = {RIG_NODE(0, 2)};
static const struct sw_topology_node four_gpus[] = {RIG_NODE(0, 2), RIG_NODE(0, 2)};

static void open_keyed(struct rig *rig, const struct sw_topology_node *nodes, uint32_t count, struct sw_order rule,
		       const struct sw_placement *placement)
{
	order = rule;
	for (size_t k = 0; k < RIG_COUNT(keys); k++)
		keys[k] = 0;
	rig_open(rig, nodes, count, (struct sw_engine_config){.policy = &keyed, .placement = placement}, NULL);
}

/* The running jobs as bits. */
static uint32_t running(const struct rig *rig)
{
	uint32_t bits = 0;
	for (uint32_t id = 0; id < sw_engine_job_count(rig->engine); id++)
		bits |= (uint32_t)rig_runs(rig, id) << id;
	return bits;
}

#define BIT(id) (1u << (id))

/* ---- overtaking and preempting ---- */

/* Aim: where the head blocks none overtakes it; where it does not, each job that fits runs. */
static void test_head_of_line(void **state)
{
	(void)state;
	for (int blocks = 0; blocks < 2; blocks++) {
		struct rig rig;
		open_keyed(&rig, two_gpus, 1, (struct sw_order){.head_blocks = blocks}, NULL);
		rig_submit_plain(&rig, 0, 1, 10);
		rig_submit_plain(&rig, 0, 2, 10); /* does not fit beside the first */
		rig_submit_plain(&rig, 0, 1, 10);
		assert_int_equal(running(&rig), blocks ? BIT(0) : BIT(0) | BIT(2));
		rig_close(&rig);
	}
}

/* Aim: a preemptive order lets run, in order, what fits into what those ahead leave, and no
 * other. */
static void test_greedy(void **state)
{
	(void)state;
	static const struct sw_placement *const rules[] = {&sw_placement_count, &sw_placement_yarn, &sw_placement_pack};
	for (size_t r = 0; r < RIG_COUNT(rules); r++) {
		struct rig rig;
		open_keyed(&rig, four_gpus, 2, (struct sw_order){.preemptive = true}, rules[r]);
		keys[0] = 50, keys[1] = 40, keys[2] = 30, keys[3] = 20, keys[4] = 10;
		rig_submit_plain(&rig, 0, 2, 10);
		rig_submit_plain(&rig, 0, 2, 10);
		assert_int_equal(running(&rig), BIT(0) | BIT(1));
		rig_submit_plain(&rig, 1, 1, 10); /* ahead of both: the last one goes, and one GPU stays free */
		assert_int_equal(running(&rig), BIT(1) | BIT(2));
		rig_submit_plain(&rig, 2, 1, 10); /* fits beside */
		assert_int_equal(running(&rig), BIT(1) | BIT(2) | BIT(3));
		rig_submit_plain(&rig, 3, 2, 10); /* first of all: with 3 and 2 the cluster is full */
		assert_int_equal(running(&rig), BIT(4) | BIT(2) | BIT(3));
		assert_int_equal(rig_job(&rig, 1)->preemptions, 1);
		rig_finish(&rig, 4, 4);
		assert_int_equal(running(&rig), BIT(1) | BIT(2) | BIT(3));
		rig_close(&rig);
	}
}

/* Aim: a job that is preempted makes room that those behind it may use, if
 * they fit and it does not. */
static void test_backfill_after_preemption(void **state)
{
	(void)state;
	struct rig rig;
	open_keyed(&rig, four_gpus, 2, (struct sw_order){.preemptive = true}, NULL);
	keys[0] = 10, keys[1] = 30, keys[2] = 5;
	rig_submit_plain(&rig, 0, 3, 10);
	rig_submit_plain(&rig, 0, 2, 10);
	assert_int_equal(running(&rig), BIT(0));
	rig_submit_plain(&rig, 1, 2, 10); /* 0 no longer fits, 1 does */
	assert_int_equal(running(&rig), BIT(1) | BIT(2));
	rig_close(&rig);
}

/* Aim: none is preempted for a job that would not fit anyway. */
static void test_no_vain_preemption(void **state)
{
	(void)state;
	struct rig rig;
	open_keyed(&rig, four_gpus, 2, (struct sw_order){.preemptive = true}, NULL);
	keys[0] = 1, keys[1] = 30, keys[2] = 5;
	rig_submit_plain(&rig, 0, 2, 10);
	rig_submit_plain(&rig, 0, 1, 10);
	rig_submit_plain(&rig, 1, 3, 10); /* with 0 ahead there are only 2 GPUs for it */
	assert_int_equal(rig_commands(&rig), 0);
	assert_int_equal(running(&rig), BIT(0) | BIT(1));
	rig_close(&rig);
}

/* Aim: a job that made room is not let back onto a GPU that another took, even if both would fit
 * there together: sharing is the policy's wish alone. */
static void test_making_room_does_not_share(void **state)
{
	(void)state;
	static const struct sw_placement *const rules[] = {&sw_placement_count, &sw_placement_yarn, &sw_placement_skew};
	for (size_t r = 0; r < RIG_COUNT(rules); r++) {
		struct rig rig;
		const struct sw_topology_node one[] = {RIG_NODE(0, 1)};
		struct sw_job_spec small = rig_spec(1, 10);
		small.gpu_memory_bytes = RIG_GIB;
		small.job_class = SW_CLASS_OPPORTUNISTIC;
		open_keyed(&rig, one, 1, (struct sw_order){.preemptive = true}, rules[r]);
		keys[0] = 2, keys[1] = 1;
		rig_submit(&rig, 0, &small);
		rig_submit(&rig, 1, &small);
		assert_int_equal(running(&rig), BIT(1));
		rig_close(&rig);
	}
}

/* Aim: a job that was lifted in the search for a place, and was not in the way after all,
 * is put back untouched. */
static void test_lifted_in_vain(void **state)
{
	(void)state;
	struct rig rig;
	open_keyed(&rig, four_gpus, 2, (struct sw_order){.preemptive = true}, &sw_placement_yarn);
	keys[0] = 5, keys[1] = 6, keys[2] = 7, keys[3] = 1;
	rig_submit_plain(&rig, 0, 1, 10);
	rig_submit_plain(&rig, 0, 2, 10);
	rig_submit_plain(&rig, 0, 1, 10);
	assert_string_equal(rig_place(&rig, 1), "1:3");
	assert_string_equal(rig_place(&rig, 2), "0:2");
	/* Two GPUs of one node: the last job is lifted first and does not help;
	 * the one before it does. */
	rig_submit_plain(&rig, 1, 2, 10);
	assert_int_equal(running(&rig), BIT(0) | BIT(2) | BIT(3));
	assert_int_equal(rig_commands(&rig), 2);
	assert_string_equal(rig_place(&rig, 2), "0:2");
	assert_int_equal(rig_job(&rig, 2)->since, 0);
	rig_close(&rig);
}

/* Aim: a job that was lifted in vain is not taken for one that has just started when the
 * next job looks for room. */
static void test_lifted_in_vain_has_run(void **state)
{
	(void)state;
	struct rig rig;
	order = (struct sw_order){.preemptive = true};
	keys[0] = keys[2] = 0, keys[1] = 8, keys[3] = 9, keys[4] = 1, keys[5] = 2;
	rig_open(&rig, four_gpus, 2,
		 (struct sw_engine_config){.policy = &keyed, .placement = &sw_placement_yarn, .terms.quantum_ns = 60 * SW_NS_PER_S}, NULL);
	for (int job = 0; job < 4; job++)
		rig_submit_plain(&rig, 0, 1, 1000);
	assert_string_equal(rig_place(&rig, 1), "0:2");
	assert_string_equal(rig_place(&rig, 3), "1:2");
	/* Jobs 1 and 3 are behind both that come, but leave the first no node of its own. */
	struct sw_job_spec wide = rig_spec(2, 10), narrow = rig_spec(1, 10);
	rig_step(&rig, 100, (struct sw_event[]){{.kind = SW_EV_SUBMIT, .spec = &wide}, {.kind = SW_EV_SUBMIT, .spec = &narrow}}, 2);
	assert_int_equal(running(&rig), BIT(0) | BIT(1) | BIT(2) | BIT(5));
	rig_close(&rig);
}

/* Aim: within its quantum a job keeps its GPUs whichever job comes; when it is over it must go, and
 * the engine wakes for that. */
static void test_quantum(void **state)
{
	(void)state;
	static const struct sw_placement *const rules[] = {&sw_placement_count, &sw_placement_yarn};
	for (int variant = 0; variant < 4; variant++) {
		struct rig rig;
		order = (struct sw_order){.preemptive = true};
		keys[0] = 9, keys[1] = 1;
		rig_open(&rig, two_gpus, 1,
			 (struct sw_engine_config){.policy = &keyed,
						   .placement = rules[variant & 1],
						   .terms.quantum_ns = 60 * SW_NS_PER_S,
						   .terms.replace_is_free = variant & 2},
			 NULL);
		rig_submit_plain(&rig, 5, 2, 100);
		assert_int_equal(rig.step.wake_at, SW_TIME_NEVER); /* none waits for it */
		rig_submit_plain(&rig, 20, 1, 100);
		assert_int_equal(running(&rig), BIT(0));
		assert_int_equal(rig.step.wake_at, 65 * SW_NS_PER_S);
		rig_tick(&rig, 65);
		assert_int_equal(running(&rig), BIT(1));
		rig_close(&rig);
	}
}

/* Aim: jobs over their tenant's quota hold up no other, however many of them there are. */
static void test_quota_does_not_block_others(void **state)
{
	(void)state;
	static const struct sw_placement *const rules[] = {&sw_placement_count, &sw_placement_yarn};
	for (int variant = 0; variant < 4; variant++) {
		struct rig rig;
		struct sw_job_spec spec = rig_spec(1, 10);
		open_keyed(&rig, two_gpus, 1, (struct sw_order){.preemptive = variant & 1}, rules[variant >> 1]);
		rig_event(&rig, 0, (struct sw_event){.kind = SW_EV_QUOTA, .tenant = 1, .gpus = 1});
		struct sw_job_spec limited = spec;
		limited.tenant = 1;
		const struct sw_event all[] = {{.kind = SW_EV_SUBMIT, .spec = &limited},
					       {.kind = SW_EV_SUBMIT, .spec = &limited},
					       {.kind = SW_EV_SUBMIT, .spec = &limited},
					       {.kind = SW_EV_SUBMIT, .spec = &spec}};
		rig_step(&rig, 0, all, 4);
		if (running(&rig) != (BIT(0) | BIT(3)))
			fail_msg("%s, %s: jobs %x run", variant & 1 ? "preemptive" : "not preemptive", rules[variant >> 1]->name,
				 running(&rig));
		rig_close(&rig);
	}
}

/* Aim: none is preempted for a job that its tenant's quota keeps out. */
static void test_no_preemption_over_quota(void **state)
{
	(void)state;
	struct rig rig;
	struct sw_job_spec limited = rig_spec(1, 10);
	limited.tenant = 1;
	open_keyed(&rig, two_gpus, 1, (struct sw_order){.preemptive = true}, NULL);
	keys[0] = 9, keys[1] = 9, keys[2] = 1, keys[3] = 1;
	rig_event(&rig, 0, (struct sw_event){.kind = SW_EV_QUOTA, .tenant = 1, .gpus = 1});
	rig_submit_plain(&rig, 0, 1, 10);
	rig_submit_plain(&rig, 0, 1, 10);
	const struct sw_event both[] = {{.kind = SW_EV_SUBMIT, .spec = &limited}, {.kind = SW_EV_SUBMIT, .spec = &limited}};
	rig_step(&rig, 1, both, 2);
	assert_int_equal(running(&rig), BIT(0) | BIT(2));
	rig_close(&rig);
}

static uint32_t held_by_tenant(const struct rig *rig, uint32_t tenant)
{
	uint32_t held = 0;
	for (uint32_t id = 0; id < sw_engine_job_count(rig->engine); id++)
		held += rig_job(rig, id)->tenant == tenant ? rig_job(rig, id)->gpus_held : 0;
	return held;
}

/* Aim: whichever job is lifted, dropped and taken back in a decision, no tenant ends up
 * with more than its quota. */
static void test_quota_holds_in_any_order(void **state)
{
	(void)state;
	static const struct sw_placement *const rules[] = {&sw_placement_yarn, &sw_placement_count, &sw_placement_skew};
	const struct sw_topology_node nodes[] = {RIG_NODE(0, 2), RIG_NODE(0, 4), RIG_NODE(0, 4), RIG_NODE(0, 2)};
	for (uint64_t seed = 0; seed < 3000; seed++) {
		struct sw_rng rng;
		struct rig rig;
		sw_rng_seed(&rng, seed);
		open_keyed(&rig, nodes, 4, (struct sw_order){.preemptive = true, .ties = SW_TIES_RUNNING_FIRST}, rules[seed % 3]);
		const uint32_t quota = 2 + (uint32_t)sw_rng_below(&rng, 5);
		rig_event(&rig, 0, (struct sw_event){.kind = SW_EV_QUOTA, .tenant = 1, .gpus = quota});
		for (uint32_t j = 0; j < RIG_COUNT(keys); j += 4) {
			struct sw_job_spec specs[4];
			struct sw_event arrivals[4];
			for (uint32_t k = 0; k < 4; k++) {
				specs[k] = rig_spec(1 + (uint32_t)sw_rng_below(&rng, 5), 10);
				specs[k].tenant = (uint32_t)sw_rng_below(&rng, 2);
				keys[j + k] = (int64_t)sw_rng_below(&rng, 100);
				arrivals[k] = (struct sw_event){.kind = SW_EV_SUBMIT, .spec = &specs[k]};
			}
			rig_step(&rig, j, arrivals, 4);
			if (held_by_tenant(&rig, 1) > quota)
				fail_msg("seed %llu, %s: %u GPUs of a quota of %u", (unsigned long long)seed, rules[seed % 3]->name,
					 held_by_tenant(&rig, 1), quota);
		}
		rig_close(&rig);
	}
}

/* Aim: a GPU that is too small for a job is not room for it: a job that fits there runs on it, and
 * none is preempted in vain. */
static void test_small_gpus_are_no_room(void **state)
{
	(void)state;
	const struct sw_topology_node uneven[] = {{.gpus = 2, .gpu_memory_bytes = 16 * RIG_GIB},
						  {.gpus = 2, .gpu_memory_bytes = 80 * RIG_GIB}};
	static const struct sw_placement *const rules[] = {&sw_placement_count, &sw_placement_pack, &sw_placement_spread};
	for (int variant = 0; variant < 6; variant++) {
		struct rig rig;
		open_keyed(&rig, uneven, 2, (struct sw_order){.preemptive = variant & 1}, rules[variant >> 1]);
		struct sw_job_spec large = rig_spec(2, 10), small = rig_spec(2, 10);
		large.gpu_memory_bytes = 40 * RIG_GIB;
		small.gpu_memory_bytes = 8 * RIG_GIB;
		keys[0] = 1, keys[1] = 2, keys[2] = 3;
		rig_submit(&rig, 0, &large);
		rig_submit(&rig, 0, &large); /* by count there is room; by size there is not */
		rig_submit(&rig, 0, &small);
		if (running(&rig) != (BIT(0) | BIT(2)))
			fail_msg("%s, %s: jobs %x run", variant & 1 ? "preemptive" : "not preemptive", rules[variant >> 1]->name,
				 running(&rig));
		rig_close(&rig);
	}
}

/* ---- keys ---- */

/* Aim: a key that counts down falls while a job runs, and stays while it waits. */
static void test_keys_that_count_down(void **state)
{
	(void)state;
	struct rig rig;
	open_keyed(&rig, two_gpus, 1, (struct sw_order){.preemptive = true, .key_counts_down = true}, NULL);
	keys[0] = 10 * SW_NS_PER_S, keys[1] = 5 * SW_NS_PER_S + 1;
	rig_submit_plain(&rig, 0, 2, 100);
	rig_submit_plain(&rig, 5, 2, 100); /* by now the first has come down to 5 s */
	assert_int_equal(running(&rig), BIT(0));
	keys[2] = 4 * SW_NS_PER_S;
	rig_submit_plain(&rig, 5, 2, 100);
	assert_int_equal(running(&rig), BIT(2));
	rig_close(&rig);
}

/* Aim: keys can be weighed by GPUs, also where the product does not fit a 64-bit number. */
static void test_keys_times_gpus(void **state)
{
	(void)state;
	struct rig rig;
	open_keyed(&rig, four_gpus, 2, (struct sw_order){.preemptive = true, .key_times_gpus = true}, NULL);
	keys[0] = INT64_MAX / 2, keys[1] = INT64_MAX - 1, keys[2] = INT64_MAX / 4;
	rig_submit_plain(&rig, 0, 4, 100); /* 4 x a half */
	rig_submit_plain(&rig, 0, 1, 100); /* 1 x a whole */
	assert_int_equal(running(&rig), BIT(1));
	rig_submit_plain(&rig, 0, 4, 100); /* 4 x a quarter, a little less than a whole */
	assert_int_equal(running(&rig), BIT(2));
	rig_close(&rig);
}

/* ---- ties ---- */

/* Aim: by arrival, equals run in the order they were submitted, and a running newcomer yields
 * to none that came later. */
static void test_ties_by_arrival(void **state)
{
	(void)state;
	struct rig rig;
	open_keyed(&rig, two_gpus, 1, (struct sw_order){.preemptive = true, .ties = SW_TIES_BY_ARRIVAL}, NULL);
	for (int j = 0; j < 4; j++)
		rig_submit_plain(&rig, 0, 1, 10);
	assert_int_equal(running(&rig), BIT(0) | BIT(1));
	rig_finish(&rig, 1, 0);
	assert_int_equal(running(&rig), BIT(1) | BIT(2));
	rig_close(&rig);
}

/* Aim: with the running first, a job that got its GPUs keeps them among equals, also
 * when an older one waits. */
static void test_ties_running_first(void **state)
{
	(void)state;
	struct rig rig;
	open_keyed(&rig, two_gpus, 1, (struct sw_order){.preemptive = true, .ties = SW_TIES_RUNNING_FIRST}, NULL);
	rig_submit_plain(&rig, 0, 1, 10);
	rig_submit_plain(&rig, 0, 2, 10); /* older than 2, but it never fits */
	rig_submit_plain(&rig, 0, 1, 10);
	assert_int_equal(running(&rig), BIT(0) | BIT(2));
	rig_finish(&rig, 1, 0);
	assert_int_equal(running(&rig), BIT(2)); /* 2 is ahead of 1 now, and 1 does not fit behind it */
	rig_finish(&rig, 2, 2);
	assert_int_equal(running(&rig), BIT(1));
	rig_close(&rig);
}

static void expect_waiting_first(bool exact_ties)
{
	struct rig rig;
	order = (struct sw_order){.preemptive = true, .key_counts_down = true, .ties = SW_TIES_WAITING_FIRST};
	rig_open(&rig, two_gpus, 1, (struct sw_engine_config){.policy = &keyed, .terms.exact_ties = exact_ties}, NULL);
	keys[0] = 5 * SW_NS_PER_S, keys[1] = 10 * SW_NS_PER_S, keys[2] = 7 * SW_NS_PER_S;
	rig_submit_plain(&rig, 0, 2, 100);
	rig_submit_plain(&rig, 0, 2, 100);
	rig_submit_plain(&rig, 0, 2, 100);
	rig_finish(&rig, 5, 0);
	assert_int_equal(running(&rig), BIT(2));
	/* Three seconds on, 2 stands at 4: a newcomer of 4 joins at the end and stays behind. */
	keys[3] = 4 * SW_NS_PER_S;
	rig_submit_plain(&rig, 8, 2, 100);
	assert_int_equal(running(&rig), BIT(2));
	/* A second later 2 stands at 3 and leaves; 3 is next. */
	rig_finish(&rig, 9, 2);
	assert_int_equal(running(&rig), BIT(3));
	rig_close(&rig);
}

/* Aim: with the waiting first, a job whose key came down to that of a waiting one is behind it;
 * places kept exactly say the same. */
static void test_ties_waiting_first(void **state)
{
	(void)state;
	expect_waiting_first(false);
	expect_waiting_first(true);
}

/* ---- a policy that decides for itself and then lets the order do the rest ---- */

static sw_ns last_first(struct sw_plan *plan)
{
	struct sw_view *view = sw_plan_view(plan);
	const struct sw_job *last = NULL;
	for (const struct sw_job *job = sw_view_next_waiting(view, NULL); job != NULL; job = sw_view_next_waiting(view, job))
		last = job;
	if (last != NULL)
		(void)sw_plan_run(plan, last, NULL);
	sw_plan_by_order(plan);
	return SW_TIME_NEVER;
}

static const struct sw_policy mixed = {.abi = SW_POLICY_ABI,
				       .name = "mixed",
				       .about = "the last first, then by order",
				       .order = &order,
				       .key = key_of,
				       .decide = last_first};

static const struct sw_topology_node five_gpus[] = {RIG_NODE(0, 5)};

/* Aim: a job that is new, and so last among equals, is still last after a node has come. */
static void test_new_jobs_stay_last(void **state)
{
	(void)state;
	for (int exact = 0; exact < 2; exact++) {
		struct rig rig;
		static const struct sw_topology_node small = RIG_NODE(0, 1);
		order = (struct sw_order){.preemptive = true, .ties = SW_TIES_RUNNING_FIRST};
		rig_open(&rig, two_gpus, 1, (struct sw_engine_config){.policy = &keyed, .terms.exact_ties = exact == 1}, NULL);
		keys[0] = 1, keys[1] = 5, keys[2] = 5;
		for (int j = 0; j < 3; j++)
			rig_submit_plain(&rig, 0, 2, 100);
		rig_event(&rig, 1, (struct sw_event){.kind = SW_EV_HOLD, .job = {1}});
		rig_step(&rig, 2, (struct sw_event[]){{.kind = SW_EV_RELEASE, .job = {1}}, {.kind = SW_EV_NODE_ADD, .shape = &small}}, 2);
		rig_finish(&rig, 3, 0);
		assert_int_equal(running(&rig), BIT(2));
		rig_close(&rig);
	}
}

/* Aim: a policy may start jobs of its own choice and let the order fill the
 * rest in the same decision, also where there is room for all of them. */
static void test_own_choice_then_order(void **state)
{
	(void)state;
	static const struct sw_placement *const rules[] = {&sw_placement_count, &sw_placement_yarn};
	for (int variant = 0; variant < 16; variant++) {
		struct rig rig;
		bool has_room = variant & 8;
		order = (struct sw_order){.preemptive = variant & 1};
		keys[0] = keys[1] = keys[2] = 0;
		rig_open(&rig, has_room ? five_gpus : two_gpus, 1,
			 (struct sw_engine_config){
				 .policy = &mixed, .placement = rules[variant >> 1 & 1], .terms.replace_is_free = variant & 4},
			 NULL);
		struct sw_job_spec spec = rig_spec(1, 10);
		const struct sw_event all[] = {{.kind = SW_EV_SUBMIT, .spec = &spec},
					       {.kind = SW_EV_SUBMIT, .spec = &spec},
					       {.kind = SW_EV_SUBMIT, .spec = &spec}};
		rig_step(&rig, 0, all, 3);
		/* What the order makes of a job that was started behind its back is its affair; no
		 * job may run twice or on too few GPUs. */
		assert_int_equal(__builtin_popcount(running(&rig)), has_room ? 3 : 2);
		rig_tick(&rig, 1);
		rig_tick(&rig, 2);
		rig_close(&rig);
	}
}

static sw_ns stop_one(struct sw_plan *plan)
{
	const struct sw_job *job = sw_view_next_running(sw_plan_view(plan), NULL);
	if (job != NULL)
		assert_int_equal(sw_plan_stop(plan, job, SW_PREEMPT), SW_YES);
	sw_plan_by_order(plan);
	return SW_TIME_NEVER;
}

/* Aim: a policy may stop a job and let the order do the rest in the same decision, also where that
 * lays out all jobs anew. */
static void test_own_stop_then_order(void **state)
{
	(void)state;
	for (int variant = 0; variant < 4; variant++) {
		struct rig rig;
		struct sw_policy stopping = mixed;
		stopping.decide = stop_one;
		order = (struct sw_order){.preemptive = variant & 1};
		keys[0] = keys[1] = 0;
		rig_open(&rig, two_gpus, 1,
			 (struct sw_engine_config){.policy = &stopping,
						   .placement = &sw_placement_yarn,
						   .terms = {.replace_is_free = variant & 2, .keeps_state = true}},
			 NULL);
		rig_submit_plain(&rig, 0, 1, 100);
		rig_submit_plain(&rig, 0, 1, 100);
		rig_tick(&rig, 1);
		rig_tick(&rig, 2);
		assert_string_equal(sw_engine_notes(rig.engine), "");
		rig_close(&rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_head_of_line),
		cmocka_unit_test(test_greedy),
		cmocka_unit_test(test_backfill_after_preemption),
		cmocka_unit_test(test_no_vain_preemption),
		cmocka_unit_test(test_making_room_does_not_share),
		cmocka_unit_test(test_lifted_in_vain),
		cmocka_unit_test(test_lifted_in_vain_has_run),
		cmocka_unit_test(test_quantum),
		cmocka_unit_test(test_quota_does_not_block_others),
		cmocka_unit_test(test_no_preemption_over_quota),
		cmocka_unit_test(test_quota_holds_in_any_order),
		cmocka_unit_test(test_small_gpus_are_no_room),
		cmocka_unit_test(test_keys_that_count_down),
		cmocka_unit_test(test_keys_times_gpus),
		cmocka_unit_test(test_ties_by_arrival),
		cmocka_unit_test(test_ties_running_first),
		cmocka_unit_test(test_ties_waiting_first),
		cmocka_unit_test(test_new_jobs_stay_last),
		cmocka_unit_test(test_own_choice_then_order),
		cmocka_unit_test(test_own_stop_then_order),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
