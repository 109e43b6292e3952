/* The coordinator on a model of a GPU: guaranteed jobs are not slowed down by more than
 * 5 % and never run out of memory, opportunistic ones use what is left, and those that
 * do not fit take turns. */
#include "share/coordinate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "unit/share/gpu_model.h"

#define GIB (UINT64_C(1) << 30)
#define SECOND INT64_C(1000000000)

/* Slowdown of a guaranteed job of 80 ms of work and 20 ms of its own waiting, beside one that
 * always computes, by that rule; NULL: without any. */
static double slowdown_under(const char *rule, bool states_iterations, double *ret_harvest)
{
	struct model model = model_new(16 * GIB);
	struct model_job *job = model_add(&model, SW_CLASS_GUARANTEED, 80, 20, 4 * GIB);
	struct model_job *other = model_add(&model, rule == NULL ? SW_CLASS_GUARANTEED : SW_CLASS_OPPORTUNISTIC, 50, 0, 2 * GIB);
	job->states_iterations = states_iterations;
	other->seen.throttle = rule == NULL ? NULL : sw_throttle_find(rule);
	model_run(&model, 60000);
	uint32_t first = job->iterations;
	double worked = other->worked_ms;
	model_run(&model, 120000);
	*ret_harvest = (other->worked_ms - worked) / 120000;
	return model_mean(job, first) / 100;
}

static void check_rule(const char *rule, bool states_iterations, double harvest_least)
{
	double harvest, alone = slowdown_under(NULL, states_iterations, &harvest);
	assert_true(alone >= 1.3);
	double slowdown = slowdown_under(rule, states_iterations, &harvest);
	print_message("%s: slowdown %.3f (%.3f without), the other has %.3f of the GPU\n", rule, slowdown, alone, harvest);
	assert_true(slowdown <= 1.05);
	assert_true(harvest >= harvest_least);
}

/* Beside a neighbour that would slow it down by 80 %, a guaranteed job is slowed down by 5 % at
 * most, and the neighbour still gets something: by AntMan's rule. */
static void test_antman(void **state)
{
	(void)state;
	check_rule("antman", true, 0.01);
	check_rule("antman", false, 0);
}

static void test_tgs(void **state)
{
	(void)state;
	check_rule("tgs", true, 0.01);
}

/* One that yields also has most of the time in which the guaranteed job is idle. */
static void test_yield(void **state)
{
	(void)state;
	check_rule("yield", true, 0.14);
}

/* A guaranteed job that comes finds opportunistic ones standing still and kept to their stable
 * memory until it has been measured; then they are let grow. */
static void test_a_guaranteed_job_comes(void **state)
{
	(void)state;
	struct model model = model_new(16 * GIB);
	struct model_job *other = model_add(&model, SW_CLASS_OPPORTUNISTIC, 50, 0, 8 * GIB);
	other->seen.throttle = &sw_throttle_antman;
	other->seen.floor_bytes = 3 * GIB;
	model_run(&model, 2000);
	assert_int_equal(other->order.share_milli, SW_THROTTLE_ALL);
	assert_int_equal(other->seen.host_bytes, 0);
	struct model_job *job = model_add(&model, SW_CLASS_GUARANTEED, 40, 60, 2 * GIB);
	model_run(&model, 1000);
	assert_int_equal(other->order.share_milli, 0);
	assert_int_equal(other->order.limit_bytes, 3 * GIB);
	double worked = other->worked_ms;
	model_run(&model, 2000);
	assert_true(other->worked_ms - worked < 1);
	model_run(&model, 60000);
	assert_true(other->order.share_milli > 0);
	assert_true(other->worked_ms > worked);
	assert_int_equal(other->seen.host_bytes, 0);
	/* And when it goes, they have all. */
	job->present = false;
	model_run(&model, 200);
	assert_int_equal(other->order.share_milli, SW_THROTTLE_ALL);
	assert_false(other->order.yields);
}

static uint32_t count_slow(const struct model_job *job, uint32_t first, double bound_ms)
{
	uint32_t slow = 0;
	for (uint32_t i = first; i < job->iterations && i < MODEL_ITERATIONS; i++)
		slow += job->last_ms[i] > bound_ms;
	return slow;
}

/* A burst of half as much memory again in a guaranteed job finds room beside opportunistic jobs
 * that hold the rest of the GPU: no allocation fails, and at most one iteration is slow. */
static void test_a_burst(void **state)
{
	(void)state;
	for (unsigned offset = 0; offset < 400; offset += 37) {
		struct model model = model_new(16 * GIB);
		struct model_job *job = model_add(&model, SW_CLASS_GUARANTEED, 390, 10, 6 * GIB);
		model_run(&model, 1000);
		struct model_job *others[] = {model_add(&model, SW_CLASS_OPPORTUNISTIC, 50, 0, 4 * GIB),
					      model_add(&model, SW_CLASS_OPPORTUNISTIC, 50, 0, 4 * GIB)};
		model_run(&model, 20000 + offset);
		assert_int_equal(job->seen.host_bytes, 0);
		uint32_t first = job->iterations;
		model_get(&model, job, 3 * GIB);
		uint64_t spilled = job->seen.host_bytes;
		model_run(&model, 20000);
		assert_true(spilled > 0);
		assert_int_equal(job->seen.host_bytes, 0);
		assert_true(count_slow(job, first, 1.05 * 400) <= 1);
		assert_int_equal(job->ooms + others[0]->ooms + others[1]->ooms, 0);
		/* The others have equal parts of what is left, and get theirs back afterwards. */
		assert_true(others[0]->order.limit_bytes + others[1]->order.limit_bytes <= 16 * GIB - 9 * GIB - 1 * GIB);
		assert_true(others[1]->order.limit_bytes >= 2 * GIB);
		assert_false(others[0]->order.suspend || others[1]->order.suspend);
	}
}

/* While a guaranteed job uses three quarters of its head-room or less, none is driven out: only
 * when it has rested does it get the whole of it again. */
static void test_a_burst_within_head_room(void **state)
{
	(void)state;
	struct model model = model_new(16 * GIB);
	struct model_job *job = model_add(&model, SW_CLASS_GUARANTEED, 90, 10, 6 * GIB);
	struct model_job *other = model_add(&model, SW_CLASS_OPPORTUNISTIC, 50, 0, 10 * GIB);
	model_run(&model, 20000);
	assert_int_equal(other->order.limit_bytes, 9 * GIB);
	for (unsigned i = 0; i < 4; i++) {
		model_get(&model, job, GIB / 8);
		model_run(&model, 300);
		assert_int_equal(other->order.limit_bytes, 9 * GIB);
	}
	model_run(&model, 1000);
	assert_int_equal(other->order.limit_bytes, 8 * GIB + GIB / 2);
	/* More than that: at once. */
	model_get(&model, job, GIB * 7 / 8);
	model_run(&model, 300);
	assert_int_equal(other->order.limit_bytes, 8 * GIB + GIB * 3 / 8);
	model_run(&model, 1000);
	assert_int_equal(other->order.limit_bytes, 8 * GIB - GIB * 3 / 8);
	assert_int_equal(job->seen.host_bytes, 0);
}

/* Whatever opportunistic jobs ask for, the guaranteed one has its peak and head-room: random
 * demands never take it. */
static void test_opportunistic_never_in_the_way(void **state)
{
	(void)state;
	uint64_t seed = 99;
	struct model model = model_new(16 * GIB);
	struct model_job *job = model_add(&model, SW_CLASS_GUARANTEED, 90, 10, 5 * GIB);
	model_run(&model, 300);
	for (unsigned round = 0; round < 300; round++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		struct model_job *other = &model.jobs[1 + (seed >> 33) % 5];
		if (!other->present)
			model_add(&model, SW_CLASS_OPPORTUNISTIC, 20, 0, (seed >> 40) % (4 * GIB));
		else if ((seed >> 50) % 4 == 0)
			other->present = false;
		else
			model_get(&model, other, (seed >> 36) % (2 * GIB));
		model_run(&model, 300);
		assert_int_equal(job->seen.host_bytes, 0);
		assert_false(job->order.suspend);
		uint64_t sum = 0;
		for (unsigned i = 1; i < MODEL_JOBS; i++)
			sum += model.jobs[i].present && !model.jobs[i].order.suspend ? model.jobs[i].order.limit_bytes : 0;
		assert_true(sum <= 16 * GIB - 6 * GIB);
	}
	assert_int_equal(job->ooms, 0);
}

/* Opportunistic jobs alone have equal memory as far as they want it, and all of the time. */
static void test_opportunistic_alone(void **state)
{
	(void)state;
	struct model model = model_new(12 * GIB);
	struct model_job *a = model_add(&model, SW_CLASS_OPPORTUNISTIC, 50, 0, 8 * GIB);
	model_run(&model, 500);
	assert_int_equal(a->order.limit_bytes, 12 * GIB);
	struct model_job *b = model_add(&model, SW_CLASS_OPPORTUNISTIC, 50, 0, 6 * GIB);
	struct model_job *c = model_add(&model, SW_CLASS_OPPORTUNISTIC, 50, 0, 1 * GIB);
	model_run(&model, 1000);
	assert_int_equal(c->seen.host_bytes, 0);
	assert_int_equal(a->order.limit_bytes, b->order.limit_bytes);
	assert_int_equal(a->order.limit_bytes, (12 * GIB - GIB) / 2);
	assert_int_equal(b->order.share_milli, SW_THROTTLE_ALL);
	b->present = false;
	model_run(&model, 1000);
	assert_int_equal(a->seen.host_bytes, 0);
}

/* An opportunistic job that becomes guaranteed has its memory and its time at the next look, and is
 * measured like a new one. */
static void test_upgrade(void **state)
{
	(void)state;
	struct model model = model_new(16 * GIB);
	struct model_job *a = model_add(&model, SW_CLASS_OPPORTUNISTIC, 50, 0, 10 * GIB);
	struct model_job *b = model_add(&model, SW_CLASS_OPPORTUNISTIC, 50, 0, 9 * GIB);
	b->seen.throttle = &sw_throttle_antman;
	model_run(&model, 3000);
	assert_true(a->seen.host_bytes > 0);
	a->seen.class = SW_CLASS_GUARANTEED;
	model_run(&model, 100);
	assert_int_equal(a->order.limit_bytes, SW_COORDINATE_NO_LIMIT);
	assert_true(b->order.limit_bytes <= 5 * GIB);
	model_run(&model, 900);
	assert_int_equal(a->seen.host_bytes, 0);
	assert_int_equal(b->order.share_milli, 0);
}

/* Two guaranteed jobs that do not fit together take turns of a quantum; both have all of their
 * memory while they run. */
static void test_turns(void **state)
{
	(void)state;
	struct model model = model_new(16 * GIB);
	model.gpu.quantum_ns = 2 * SECOND;
	struct model_job *a = model_add(&model, SW_CLASS_GUARANTEED, 40, 10, 10 * GIB),
			 *b = model_add(&model, SW_CLASS_GUARANTEED, 40, 10, 9 * GIB);
	model_run(&model, 1000);
	assert_true(a->order.suspend != b->order.suspend);
	model_run(&model, 40000);
	double sum = a->worked_ms + b->worked_ms;
	assert_true(a->worked_ms > 0.45 * sum && a->worked_ms < 0.55 * sum);
	struct model_job *running = a->order.suspend ? b : a;
	assert_int_equal(running->seen.host_bytes, 0);
	/* When one of them goes, the other runs on without a break. */
	a->present = false;
	model_run(&model, 300);
	assert_false(b->seen.suspended);
}

/* Opportunistic jobs that are far too large for what is left take turns; one that a
 * person suspended takes none. */
static void test_turns_of_opportunistic(void **state)
{
	(void)state;
	struct model model = model_new(16 * GIB);
	model.gpu.quantum_ns = 2 * SECOND;
	struct model_job *job = model_add(&model, SW_CLASS_GUARANTEED, 40, 60, 5 * GIB), *others[3];
	for (unsigned i = 0; i < 3; i++)
		others[i] = model_add(&model, SW_CLASS_OPPORTUNISTIC, 30, 0, 7 * GIB);
	model_run(&model, 60000);
	double sum = others[0]->worked_ms + others[1]->worked_ms + others[2]->worked_ms;
	for (unsigned i = 0; i < 3; i++)
		assert_true(others[i]->worked_ms > 0.3 * sum && others[i]->worked_ms < 0.37 * sum);
	assert_int_equal(job->seen.host_bytes, 0);
	others[1]->seen.held = true;
	model_run(&model, 1000);
	double worked = others[1]->worked_ms;
	model_run(&model, 20000);
	assert_true(others[1]->worked_ms - worked < 1);
	assert_true(others[1]->order.suspend);
}

/* What a user asked for is the most that a job gets, whatever is free; what cannot
 * be moved counts as gone. */
static void test_what_was_asked_for(void **state)
{
	(void)state;
	struct model model = model_new(16 * GIB);
	struct model_job *a = model_add(&model, SW_CLASS_GUARANTEED, 40, 10, 2 * GIB),
			 *b = model_add(&model, SW_CLASS_OPPORTUNISTIC, 40, 0, 2 * GIB);
	a->seen.asked_bytes = 3 * GIB;
	a->seen.asked_milli = 300;
	b->seen.asked_bytes = 1 * GIB;
	b->seen.asked_milli = 200;
	b->seen.fixed_bytes = 100 << 20;
	model_run(&model, 2000);
	assert_int_equal(a->order.limit_bytes, 3 * GIB);
	assert_int_equal(a->order.share_milli, 300);
	assert_int_equal(b->order.limit_bytes, 1 * GIB);
	assert_int_equal(b->order.share_milli, 200);
	assert_true(b->order.yields && a->order.watched);
	/* With nothing left it is suspended, and what it cannot move is not given to others. */
	model.gpu.foreign_bytes = 13 * GIB;
	model_run(&model, 2000);
	assert_true(b->order.suspend);
}

/* A guaranteed job that takes longer by itself from some moment on is measured anew, and does not
 * starve its neighbour for ever; one that is idle does not either. */
static void test_a_job_that_changes(void **state)
{
	(void)state;
	struct model model = model_new(16 * GIB);
	struct model_job *job = model_add(&model, SW_CLASS_GUARANTEED, 20, 80, GIB),
			 *other = model_add(&model, SW_CLASS_OPPORTUNISTIC, 30, 0, GIB);
	other->seen.throttle = &sw_throttle_antman;
	model_run(&model, 40000);
	job->idle_ms = 180;
	model_run(&model, 120000);
	double worked = other->worked_ms;
	model_run(&model, 60000);
	assert_true(other->worked_ms - worked > 600);
	/* Its iterations are not found any more: its launches tell. */
	job->states_iterations = false;
	job->seen.iterations = 0;
	job->seen.iteration_ns = 0;
	model_run(&model, 60000);
	worked = other->worked_ms;
	model_run(&model, 60000);
	assert_true(other->worked_ms - worked > 300);
	job->idle_ms = 1e9;
	model_run(&model, 300000);
	assert_true(other->order.share_milli > 300);
}

/* More jobs than are kept: the rest is told to wait, and nothing is written beyond. */
static void test_too_many(void **state)
{
	(void)state;
	enum { MANY = SW_COORDINATE_JOBS + 5 };
	static struct sw_coordination kept;
	static struct sw_coordinate_job jobs[MANY];
	static struct sw_coordinate_order orders[MANY];
	const struct sw_coordinate_gpu gpu = {.capacity_bytes = GIB};
	for (size_t i = 0; i < MANY; i++)
		jobs[i] = (struct sw_coordinate_job){.id = i, .arrival = i, .asked_bytes = SW_COORDINATE_NO_LIMIT, .charged_bytes = 1};
	sw_coordinate(&kept, &gpu, jobs, MANY, SECOND, orders);
	assert_false(orders[0].suspend);
	assert_true(orders[MANY - 1].suspend);
	sw_coordinate(&kept, &gpu, jobs, 0, 2 * SECOND, orders);
	assert_int_equal(kept.count, 0);
}

/* Rules are found by their names, and every number of a page means one. */
static void test_names(void **state)
{
	(void)state;
	assert_ptr_equal(sw_throttle_find("antman"), &sw_throttle_antman);
	assert_null(sw_throttle_find("nobody"));
	assert_string_equal(sw_throttle_at(0)->name, "yield");
	assert_ptr_equal(sw_throttle_at(1000), sw_throttle_at(0));
	for (size_t i = 0; i < sw_throttle_count(); i++)
		assert_ptr_equal(sw_throttle_find(sw_throttle_at(i)->name), sw_throttle_at(i));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_antman),
		cmocka_unit_test(test_tgs),
		cmocka_unit_test(test_yield),
		cmocka_unit_test(test_a_guaranteed_job_comes),
		cmocka_unit_test(test_a_burst),
		cmocka_unit_test(test_a_burst_within_head_room),
		cmocka_unit_test(test_opportunistic_never_in_the_way),
		cmocka_unit_test(test_opportunistic_alone),
		cmocka_unit_test(test_upgrade),
		cmocka_unit_test(test_turns),
		cmocka_unit_test(test_turns_of_opportunistic),
		cmocka_unit_test(test_what_was_asked_for),
		cmocka_unit_test(test_a_job_that_changes),
		cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
