/* Forecasts: how long jobs are taken to run, and when those that wait start. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/number.h"
#include "placement/registry.h"
#include "policy/registry.h"
#include "sim/forecast.h"

#define S SW_NS_PER_S

/* ---- how long */

static void expect_left(const struct sw_forecast_history *history, uint64_t kind, sw_ns expected_s, sw_ns limit_s, sw_ns ran_s,
			sw_ns left_s, enum sw_basis basis)
{
	enum sw_basis found = SW_BASES;
	sw_ns left = sw_forecast_left(history, kind, expected_s * S, limit_s * S, ran_s * S, &found);
	assert_int_equal(left, left_s == SW_TIME_NEVER ? SW_TIME_NEVER : left_s * S);
	assert_int_equal(found, basis);
}

/* What the owner said comes before the limit, that before medians of its kind, these
 * before the median of all. */
static void test_basis(void **state)
{
	(void)state;
	struct sw_forecast_history history = {0};
	expect_left(&history, 1, 0, 0, 0, SW_TIME_NEVER, SW_BASES);
	expect_left(&history, 1, 0, 0, 50, SW_TIME_NEVER, SW_BASES);
	expect_left(&history, 1, 0, 100, 30, 70, SW_BASIS_LIMIT);
	const sw_ns times[] = {50, 10, 30, 20, 40};
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(sw_forecast_note(&history, 7, times[i] * S), 0);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(sw_forecast_note(&history, 9, 1000 * S), 0);
	sw_forecast_sort(&history);
	expect_left(&history, 7, 60, 100, 0, 60, SW_BASIS_EXPECTED);
	expect_left(&history, 7, 60, 100, 60, 40, SW_BASIS_LIMIT);
	expect_left(&history, 7, 0, 100, 100, 0, SW_BASIS_LIMIT);
	expect_left(&history, 7, 0, 0, 0, 30, SW_BASIS_ALIKE);
	expect_left(&history, 9, 0, 0, 0, 1000, SW_BASIS_ALIKE);
	expect_left(&history, 8, 0, 0, 0, 50, SW_BASIS_ALL);
	sw_forecast_forget(&history);
}

/* A job that runs already is compared with those that ran longer, and beyond all of them
 * taken to run as long again. */
static void test_already_running(void **state)
{
	(void)state;
	struct sw_forecast_history history = {0};
	const sw_ns times[] = {10, 20, 100};
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(sw_forecast_note(&history, 7, times[i] * S), 0);
	assert_int_equal(sw_forecast_note(&history, 8, 5000 * S), 0);
	sw_forecast_sort(&history);
	expect_left(&history, 7, 0, 0, 20, 80, SW_BASIS_ALIKE);
	expect_left(&history, 7, 0, 0, 100, 100, SW_BASIS_AGAIN);
	expect_left(&history, 6, 0, 0, 200, 4800, SW_BASIS_ALL);
	expect_left(&history, 6, 0, 0, 6000, 6000, SW_BASIS_AGAIN);
	sw_forecast_forget(&history);
}

/* ---- who when */

struct fixture {
	struct sw_forecast_job jobs[16];
	uint32_t count;
	struct sw_topology *topology;
	struct sw_forecast_config config;
	struct sw_forecast_start starts[16];
};

static void make(struct fixture *fixture, const struct sw_policy *policy, uint32_t nodes, uint32_t gpus)
{
	struct sw_topology_node shapes[8] = {{0}};
	*fixture = (struct fixture){.count = 0};
	for (uint32_t n = 0; n < nodes; n++)
		shapes[n] = (struct sw_topology_node){
			.gpus = gpus, .cpus = 64, .memory_bytes = UINT64_C(1) << 40, .gpu_memory_bytes = UINT64_C(80) << 30};
	assert_int_equal(sw_topology_new(shapes, nodes, &fixture->topology, NULL), 0);
	fixture->config = (struct sw_forecast_config){.topology = fixture->topology,
						      .policy = policy,
						      .placement = &sw_placement_pack,
						      .jobs = fixture->jobs,
						      .target = UINT32_MAX};
}

static struct sw_forecast_job *add(struct fixture *fixture, enum sw_forecast_state state, uint32_t gpus, sw_ns ran_s, sw_ns left_s)
{
	struct sw_forecast_job *job = &fixture->jobs[fixture->count++];
	*job = (struct sw_forecast_job){
		.spec = {.gpus = gpus, .min_gpus = gpus, .max_gpus = gpus, .weight_milli = 1000, .deadline_at = SW_TIME_NEVER},
		.state = (uint8_t)state,
		.basis = SW_BASIS_LIMIT,
		.ran_ns = ran_s * S,
		.left_ns = left_s == SW_TIME_NEVER ? SW_TIME_NEVER : left_s * S,
	};
	fixture->config.count = fixture->count;
	return job;
}

static void expect_starts(struct fixture *fixture, const sw_ns *starts_s)
{
	struct sw_err err = {0};
	if (sw_forecast(&fixture->config, fixture->starts, &err) < 0)
		fail_msg("%s: %s", err.fact, err.detail);
	for (uint32_t j = 0; j < fixture->count; j++) {
		sw_ns wanted = starts_s[j] < 0 ? SW_TIME_NEVER : starts_s[j] * S;
		if (fixture->starts[j].in_ns != wanted)
			fail_msg("job %u starts in %lld ns instead of %lld", j, (long long)fixture->starts[j].in_ns, (long long)wanted);
	}
	sw_topology_free(fixture->topology);
}

/* First in, first out on four GPUs: each starts when enough of those before it have ended, and the
 * estimate says how many these are. */
static void test_fifo(void **state)
{
	(void)state;
	struct fixture fixture;
	make(&fixture, &sw_policy_fifo, 1, 4);
	add(&fixture, SW_FORECAST_RUNS, 2, 100, 50);
	add(&fixture, SW_FORECAST_RUNS, 2, 10, 20);
	add(&fixture, SW_FORECAST_WAITS, 4, 0, 30); /* when both are done */
	add(&fixture, SW_FORECAST_WAITS, 1, 0, 10);
	add(&fixture, SW_FORECAST_HELD, 1, 0, 10);
	fixture.jobs[1].basis = SW_BASIS_ALIKE;
	expect_starts(&fixture, (const sw_ns[]){-1, -1, 50, 80, -1});
	assert_int_equal(fixture.starts[2].ended[SW_BASIS_LIMIT], 1);
	assert_int_equal(fixture.starts[2].ended[SW_BASIS_ALIKE], 1);
	assert_int_equal(fixture.starts[3].ended[SW_BASIS_LIMIT], 2);
}

/* Where nobody knows when a job ends, nobody knows when those behind it start; the others are
 * told. */
static void test_unknown(void **state)
{
	(void)state;
	struct fixture fixture;
	make(&fixture, &sw_policy_fjf, 1, 4);
	add(&fixture, SW_FORECAST_RUNS, 3, 5, SW_TIME_NEVER);
	add(&fixture, SW_FORECAST_RUNS, 1, 5, 7);
	add(&fixture, SW_FORECAST_WAITS, 4, 0, 30);
	add(&fixture, SW_FORECAST_WAITS, 1, 0, 30);
	add(&fixture, SW_FORECAST_WAITS, 9, 0, 30); /* more than there is */
	expect_starts(&fixture, (const sw_ns[]){-1, -1, -1, 7, -1});
}

/* Least attained service: the one that has used its queue up is preempted at once for one that has
 * not, and goes on behind it. */
static void test_attained_service(void **state)
{
	(void)state;
	struct fixture fixture;
	make(&fixture, &sw_policy_las, 1, 4);
	add(&fixture, SW_FORECAST_RUNS, 4, 5000, 100);	/* 20,000 GPU-seconds: the last queue */
	add(&fixture, SW_FORECAST_WAITS, 4, 5000, 100); /* the same, and stopped before */
	add(&fixture, SW_FORECAST_WAITS, 4, 0, 60);	/* the first queue */
	expect_starts(&fixture, (const sw_ns[]){-1, 160, 0});
}

/* A queue that a running job leaves after some more time: then the one that waits gets its GPUs. */
static void test_attained_service_later(void **state)
{
	(void)state;
	struct fixture fixture;
	make(&fixture, &sw_policy_las, 1, 4);
	add(&fixture, SW_FORECAST_RUNS, 4, 800, 10000); /* leaves the first queue at 3250 GPU-seconds: 812.5 s */
	add(&fixture, SW_FORECAST_WAITS, 4, 0, 60);
	expect_starts(&fixture, (const sw_ns[]){-1, 13});
}

/* A job that depends on others competes when the last of them has ended. */
static void test_dependencies(void **state)
{
	(void)state;
	static const uint32_t both[] = {0, 1}, one[] = {2};
	struct fixture fixture;
	make(&fixture, &sw_policy_fifo, 1, 4);
	add(&fixture, SW_FORECAST_RUNS, 1, 0, 10);
	add(&fixture, SW_FORECAST_RUNS, 1, 0, 25);
	struct sw_forecast_job *job = add(&fixture, SW_FORECAST_WAITS, 1, 0, 5);
	job->depends = both;
	job->depend_count = 2;
	job = add(&fixture, SW_FORECAST_WAITS, 1, 0, 5);
	job->depends = one;
	job->depend_count = 1;
	expect_starts(&fixture, (const sw_ns[]){-1, -1, 25, 30});
}

/* A job that waits for its next try competes when that is due, and not before, though there is
 * room. */
static void test_pause(void **state)
{
	(void)state;
	static const uint32_t one[] = {0};
	struct fixture fixture;
	make(&fixture, &sw_policy_fifo, 1, 2);
	add(&fixture, SW_FORECAST_WAITS, 1, 0, 5)->not_before_ns = 30 * S;
	add(&fixture, SW_FORECAST_WAITS, 2, 0, 10);
	struct sw_forecast_job *job = add(&fixture, SW_FORECAST_WAITS, 1, 0, 5);
	job->depends = one;
	job->depend_count = 1;
	job->not_before_ns = 20 * S; /* over when the other ends */
	expect_starts(&fixture, (const sw_ns[]){30, 0, 35});
}

/* A job on a closed node keeps nobody from starting elsewhere, but those that wait for its end
 * do. */
static void test_away(void **state)
{
	(void)state;
	static const uint32_t one[] = {0};
	struct fixture fixture;
	make(&fixture, &sw_policy_fifo, 1, 2);
	add(&fixture, SW_FORECAST_AWAY, 2, 100, 40);
	add(&fixture, SW_FORECAST_WAITS, 2, 0, 10);
	struct sw_forecast_job *job = add(&fixture, SW_FORECAST_WAITS, 1, 0, 5);
	job->depends = one;
	job->depend_count = 1;
	expect_starts(&fixture, (const sw_ns[]){-1, 0, 40});
}

/* A tenant's quota holds in the forecast, too. */
static void test_quota(void **state)
{
	(void)state;
	static const struct sw_forecast_quota quota = {.tenant = 3, .gpus = 1};
	struct fixture fixture;
	make(&fixture, &sw_policy_fjf, 1, 4);
	fixture.config.quotas = &quota;
	fixture.config.quota_count = 1;
	add(&fixture, SW_FORECAST_RUNS, 1, 0, 40)->spec.tenant = 3;
	add(&fixture, SW_FORECAST_WAITS, 1, 0, 5)->spec.tenant = 3;
	add(&fixture, SW_FORECAST_WAITS, 1, 0, 5)->spec.tenant = 4;
	expect_starts(&fixture, (const sw_ns[]){-1, 40, 0});
}

/* With one job in view nothing is done beyond its start, and its answer is the same. */
static void test_target(void **state)
{
	(void)state;
	struct fixture fixture;
	make(&fixture, &sw_policy_fifo, 2, 2);
	add(&fixture, SW_FORECAST_RUNS, 4, 3, 10);
	add(&fixture, SW_FORECAST_WAITS, 4, 0, 10);
	add(&fixture, SW_FORECAST_WAITS, 4, 0, 10);
	fixture.config.target = 1;
	expect_starts(&fixture, (const sw_ns[]){-1, 10, -1});
}

/* More jobs than can be forecast are refused before any work. */
static void test_too_many(void **state)
{
	(void)state;
	struct sw_forecast_config config = {.count = SW_FORECAST_JOBS_MAX + 1};
	struct sw_err err = {0};
	assert_int_equal(sw_forecast(&config, NULL, &err), SW_ELIMIT);
}

/* Aim: GPUs that take no jobs do not count: who fits only with them starts at no time that anybody
 * could tell, and others wait for those that run elsewhere. */
static void test_shut_gpus(void **state)
{
	(void)state;
	static const uint64_t shut[] = {1, 0}; /* one GPU of the first node */
	struct fixture fixture;
	for (int round = 0; round < 2; round++) {
		make(&fixture, &sw_policy_fifo, 2, 2);
		fixture.config.shut = round > 0 ? shut : NULL;
		add(&fixture, SW_FORECAST_RUNS, 2, 10, 50);
		add(&fixture, SW_FORECAST_WAITS, 2, 0, 100);
		add(&fixture, SW_FORECAST_WAITS, 1, 0, 100);
		expect_starts(&fixture, (const sw_ns[]){-1, round > 0 ? 50 : 0, 50});
	}
	make(&fixture, &sw_policy_fifo, 1, 2);
	fixture.config.shut = shut;
	add(&fixture, SW_FORECAST_WAITS, 2, 0, 100);
	expect_starts(&fixture, (const sw_ns[]){-1});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_basis),
		cmocka_unit_test(test_already_running),
		cmocka_unit_test(test_fifo),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_attained_service),
		cmocka_unit_test(test_attained_service_later),
		cmocka_unit_test(test_dependencies),
		cmocka_unit_test(test_pause),
		cmocka_unit_test(test_away),
		cmocka_unit_test(test_quota),
		cmocka_unit_test(test_target),
		cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_shut_gpus),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
