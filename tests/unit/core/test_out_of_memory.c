/* Every allocation of an engine's life fails once: the first, the second, ... until nothing fails
 * any more. Each time the failure must be an error code that leaves the state as it was, and the
 * same step must succeed when it is tried again.
 *
 * This program's own malloc() and friends stand before those of the C library (or of the
 * sanitizer) and fail on request. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "rig.h"

/* ---- allocations that fail ---- */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__interceptor_malloc(size_t size) __attribute__((weak));
void *__interceptor_calloc(size_t count, size_t size) __attribute__((weak));
void *__interceptor_realloc(void *old, size_t size) __attribute__((weak));

static long countdown = -1; /* the allocation that fails; negative: none */
static bool failed;

static bool fails(void)
{
	if (countdown < 0 || countdown-- > 0)
		return false;
	failed = true;
	return true;
}

void *malloc(size_t size)
{
	if (fails())
		return NULL;
	return __interceptor_malloc != NULL ? __interceptor_malloc(size) : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	if (fails())
		return NULL;
	return __interceptor_calloc != NULL ? __interceptor_calloc(count, size) : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
	if (fails())
		return NULL;
	return __interceptor_realloc != NULL ? __interceptor_realloc(old, size) : __libc_realloc(old, size);
}

/* Arms the n-th allocation from now on. */
static void arm(long n)
{
	countdown = n;
	failed = false;
}

static void disarm(void)
{
	countdown = -1;
}

/* ---- what happens in the life of the engine under test ---- */

static const struct sw_topology_node shapes[] = {RIG_NODE(0, 2), RIG_NODE(0, 4), RIG_NODE(1, 8)};
static const struct sw_topology_node joins = RIG_NODE(1, 16);
static const struct sw_topology_change grows = {.shape = RIG_NODE(0, 20), .to = {0, [1 ... SW_NODE_GPUS_MAX - 1] = SW_GPU_GONE}};

#define LIFE 14

struct life {
	struct sw_job_spec specs[LIFE][4];
	struct sw_event events[LIFE][8];
	size_t counts[LIFE];
};

static void add(struct life *life, int step, struct sw_event event)
{
	life->events[step][life->counts[step]++] = event;
}

static void add_job(struct life *life, int step, uint32_t gpus, uint32_t tenant)
{
	struct sw_job_spec *spec = &life->specs[step][life->counts[step]];
	*spec = rig_spec(gpus, 100);
	spec->tenant = tenant;
	spec->max_gpus = gpus + 1;
	spec->retries = 1;
	spec->gpu_memory_bytes = gpus % 2 == 0 ? 0 : (1 + step) * RIG_GIB; /* new lanes now and then */
	add(life, step, (struct sw_event){.kind = SW_EV_SUBMIT, .spec = spec});
}

/* Submissions in batches that grow the tables, ends, failures, quotas, a node lost, one that joins
 * and one that has other GPUs. */
static void write_life(struct life *life)
{
	*life = (struct life){0};
	for (int step = 0; step < LIFE; step++)
		for (uint32_t j = 0; j < 3; j++)
			add_job(life, step, 1 + (uint32_t)(step + 2 * (int)j) % 9, j * 3);
	add(life, 3, (struct sw_event){.kind = SW_EV_FINISH, .job = {0}, .epoch = 1});
	add(life, 4, (struct sw_event){.kind = SW_EV_FAIL, .job = {1}, .epoch = 1, .left_ns = 7});
	add(life, 5, (struct sw_event){.kind = SW_EV_NODE_DOWN, .node = {1}});
	add(life, 6, (struct sw_event){.kind = SW_EV_QUOTA, .tenant = 40, .gpus = 2});
	add(life, 7, (struct sw_event){.kind = SW_EV_NODE_UP, .node = {1}});
	add(life, 8, (struct sw_event){.kind = SW_EV_CANCEL, .job = {2}});
	add(life, 9, (struct sw_event){.kind = SW_EV_NODE_ADD, .shape = &joins});
	add(life, 10, (struct sw_event){.kind = SW_EV_QUOTA, .tenant = 3, .gpus = 1});
	add(life, 11, (struct sw_event){.kind = SW_EV_HOLD, .job = {5}});
	add(life, 12, (struct sw_event){.kind = SW_EV_RELEASE, .job = {5}});
	add(life, 13, (struct sw_event){.kind = SW_EV_NODE_CHANGE, .node = {0}, .change = &grows});
}

/* One step; a failed one must have changed nothing that can be seen. */
static int step_once(struct sw_engine *engine, const struct life *life, int step)
{
	struct sw_step outcome;
	struct sw_err err = {0};
	uint32_t jobs = sw_engine_job_count(engine), nodes = sw_view_nodes(sw_engine_view(engine));
	uint64_t hash = sw_engine_log_hash(engine);
	sw_ns now = sw_view_now(sw_engine_view(engine));
	int r = sw_engine_step(engine, step * 10 * SW_NS_PER_S, life->events[step], life->counts[step], &outcome, &err);
	disarm();
	if (r < 0) {
		assert_int_equal(r, SW_ENOMEM);
		assert_string_not_equal(err.fact, "");
		assert_int_equal(sw_engine_job_count(engine), jobs);
		assert_int_equal(sw_view_nodes(sw_engine_view(engine)), nodes);
		assert_int_equal(sw_engine_log_hash(engine), hash);
		assert_int_equal(sw_view_now(sw_engine_view(engine)), now);
	}
	sw_err_clear(&err);
	if (sw_engine_validate(engine, &err) < 0)
		fail_msg("step %d: %s", step, err.fact);
	return r;
}

/* Lives it all with the n-th allocation of one step failing; false when that step
 * has no n-th allocation. */
static bool live(const struct sw_engine_config *config, const struct life *life, int fragile, long n, uint64_t *ret_hash)
{
	struct sw_engine *engine = NULL;
	bool hit = false;
	assert_int_equal(sw_engine_new(config, &engine, NULL), 0);
	for (int step = 0; step < LIFE; step++) {
		if (step == fragile)
			arm(n);
		int r = step_once(engine, life, step);
		disarm();
		if (step == fragile)
			hit = failed;
		if (r < 0) {
			assert_true(hit && step == fragile);
			assert_int_equal(step_once(engine, life, step), 0); /* now there is memory again */
		}
	}
	*ret_hash = sw_engine_log_hash(engine);
	sw_engine_free(engine);
	return hit;
}

static const struct sw_policy *const policies[] = {&sw_policy_fifo, &sw_policy_srtf, &sw_policy_las, &sw_policy_gittins, &sw_policy_chaos};

/* Aim: an engine is made, or it is not and says that memory is short; nothing is left behind. */
static void test_making_an_engine(void **state)
{
	(void)state;
	SW_CLEANUP(sw_topology_freep) struct sw_topology *topology = NULL;
	assert_int_equal(sw_topology_new(shapes, 3, &topology, NULL), 0);
	for (size_t p = 0; p < RIG_COUNT(policies); p++) {
		const struct sw_engine_config config = {.topology = topology, .policy = policies[p], .placement = &sw_placement_yarn};
		for (long n = 0;; n++) {
			struct sw_engine *engine = NULL;
			struct sw_err err = {0};
			arm(n);
			int r = sw_engine_new(&config, &engine, &err);
			disarm();
			assert_int_equal(r, failed ? SW_ENOMEM : 0);
			assert_int_equal(engine == NULL, failed);
			if (r == 0) {
				sw_engine_free(engine);
				break;
			}
			assert_string_not_equal(err.fact, "");
			assert_true(n < 10000);
		}
	}
}

/* Aim: whichever allocation of whichever step fails, the step is refused as a whole or succeeds
 * without it, and life goes on. */
static void test_every_step(void **state)
{
	(void)state;
	SW_CLEANUP(sw_topology_freep) struct sw_topology *topology = NULL;
	struct life life;
	write_life(&life);
	assert_int_equal(sw_topology_new(shapes, 3, &topology, NULL), 0);
	for (size_t p = 0; p < RIG_COUNT(policies); p++) {
		const struct sw_engine_config config = {.topology = topology,
							.policy = policies[p],
							.fallback = &sw_policy_fifo,
							.placement = p % 2 == 0 ? &sw_placement_yarn : &sw_placement_count,
							.terms.quantum_ns = (sw_ns)(p % 3) * 5 * SW_NS_PER_S};
		for (int step = 0; step < LIFE; step++) {
			uint64_t hash;
			for (long n = 0; live(&config, &life, step, n, &hash); n++)
				assert_true(n < 10000);
		}
	}
}

/* Aim: a policy that cannot be installed for lack of memory leaves the old one in charge. */
static void test_changing_policy(void **state)
{
	(void)state;
	SW_CLEANUP(sw_topology_freep) struct sw_topology *topology = NULL;
	struct life life;
	write_life(&life);
	assert_int_equal(sw_topology_new(shapes, 3, &topology, NULL), 0);
	const struct sw_engine_config config = {.topology = topology, .policy = &sw_policy_srtf, .placement = &sw_placement_yarn};
	bool hit = true;
	for (long n = 0; hit; n++) {
		struct sw_engine *engine = NULL;
		assert_int_equal(sw_engine_new(&config, &engine, NULL), 0);
		for (int step = 0; step < 3; step++)
			assert_int_equal(step_once(engine, &life, step), 0);
		arm(n);
		int r = sw_engine_set_policy(engine, &sw_policy_las, NULL, NULL);
		disarm();
		hit = failed;
		assert_int_equal(r, hit ? SW_ENOMEM : 0);
		assert_string_equal(sw_engine_policy(engine), hit ? "srtf" : "las");
		for (int step = 3; step < 6; step++)
			assert_int_equal(step_once(engine, &life, step), 0);
		sw_engine_free(engine);
		assert_true(n < 10000);
	}
}

/* Aim: a policy that misbehaves while memory is short is thrown out later, not half. */
static void test_throwing_out(void **state)
{
	(void)state;
	static const char *const words[] = {"manners=0", "sloth=0", NULL};
	struct life life;
	write_life(&life);
	bool hit = true;
	for (long n = 0; hit; n++) {
		struct rig rig;
		rig_open(&rig, shapes, 3,
			 (struct sw_engine_config){.policy = &sw_policy_chaos, .fallback = &sw_policy_fifo, .misuse_limit = 5}, words);
		assert_int_equal(step_once(rig.engine, &life, 0), 0);
		hit = false;
		for (int64_t at_s = 1; at_s < 60; at_s++) {
			struct sw_step outcome;
			arm(n);
			(void)sw_engine_step(rig.engine, at_s * SW_NS_PER_S, NULL, 0, &outcome, NULL);
			disarm();
			hit |= failed;
			struct sw_err err = {0};
			rig_must(sw_engine_validate(rig.engine, &err), &err);
		}
		for (int64_t at_s = 60; at_s < 120; at_s++)
			rig_tick(&rig, at_s);
		assert_string_equal(sw_engine_policy(rig.engine), "fifo");
		rig_close(&rig);
		assert_true(n < 10000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_making_an_engine),
		cmocka_unit_test(test_every_step),
		cmocka_unit_test(test_changing_policy),
		cmocka_unit_test(test_throwing_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
