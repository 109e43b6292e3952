/* Generated traces: the same everywhere, true to their recipe, and like Philly where
 * Philly can be looked at. */
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "sim/trace/generate.h"
#include "sim/trace/stats.h"
#include "unit/sim/trace/support.h"

static struct sw_trace *generated(const struct sw_trace_recipe *recipe)
{
	struct sw_trace *trace = NULL;
	struct sw_err err = {0};
	if (sw_trace_generate(recipe, &trace, &err) < 0)
		fail_msg("%s", words(&err));
	return trace;
}

static uint64_t fingerprint(const struct sw_trace *trace)
{
	uint64_t hash = SW_HASH_START;
	for (size_t i = 0; i < trace->jobs.count; i++) {
		const struct sw_trace_job *job = &trace->jobs.items[i];
		const uint64_t values[] = {(uint64_t)job->id,
					   (uint64_t)job->submit_ns,
					   (uint64_t)job->duration_ns,
					   (uint64_t)job->iterations,
					   (uint64_t)job->deadline_ns,
					   job->gpus,
					   job->min_gpus,
					   job->max_gpus,
					   job->model,
					   job->tenant,
					   job->job_class,
					   job->deadline_kind};
		for (size_t v = 0; v < sizeof values / sizeof *values; v++)
			hash = sw_hash_u64(hash, values[v]);
	}
	for (size_t i = 0; i < trace->strings.count; i++)
		hash = sw_hash_bytes(hash, trace->strings.items[i], strlen(trace->strings.items[i]));
	return hash;
}

static struct sw_trace_recipe full_recipe(void)
{
	struct sw_trace_recipe recipe = sw_trace_recipe_default();
	recipe.opportunistic_milli = 300;
	recipe.deadline_milli = 200;
	recipe.elastic_milli = 100;
	return recipe;
}

/* The figure was written down once; every compiler and optimisation must find it again. */
static void test_same_recipe_same_trace(void **state)
{
	(void)state;
	struct sw_trace_recipe recipe = full_recipe();
	recipe.seed = 42;
	SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = generated(&recipe);
	uint64_t found = fingerprint(trace), expected = UINT64_C(0x72074750f1cbfd90);
	if (found != expected)
		fail_msg("fingerprint 0x%016" PRIx64 ", expected 0x%016" PRIx64, found, expected);
	recipe.seed = 43;
	SW_CLEANUP(sw_trace_freep) struct sw_trace *other = generated(&recipe);
	assert_true(fingerprint(other) != found);
}

static void test_invariants(void **state)
{
	(void)state;
	static const uint64_t sizes[] = {1, 2, 3, 10, 60, 1000, 20000};
	static const uint64_t gpus[] = {1, 7, 64, 100000};
	for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
		for (size_t g = 0; g < sizeof gpus / sizeof *gpus; g++) {
			struct sw_trace_recipe recipe = full_recipe();
			recipe.jobs = sizes[s];
			recipe.gpus = gpus[g];
			recipe.seed = s * 10 + g;
			SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = generated(&recipe);
			assert_int_equal(trace->jobs.count, sizes[s]);
			int64_t before = 0;
			for (size_t i = 0; i < trace->jobs.count; i++) {
				const struct sw_trace_job *job = &trace->jobs.items[i];
				assert_int_equal(job->id, i);
				assert_true(job->submit_ns >= before);
				before = job->submit_ns;
				assert_true(job->duration_ns >= SW_NS_PER_S && job->duration_ns % SW_NS_PER_S == 0);
				assert_true(1 <= job->min_gpus && job->min_gpus <= job->gpus && job->gpus <= job->max_gpus);
				assert_true(job->max_gpus <= gpus[g]);
				assert_true((job->deadline_ns == SW_NEVER) == (job->deadline_kind == SW_TRACE_NO_DEADLINE));
				assert_true(job->deadline_ns >= job->submit_ns + job->duration_ns);
				assert_true(sw_trace_string(trace, job->model)[0] != '\0');
				assert_true(sw_trace_string(trace, job->tenant)[0] != '\0');
				assert_true(job->iterations >= 1);
			}
			assert_int_equal(trace->jobs.items[0].submit_ns, 0);
		}
}

static void test_load_is_what_was_asked_for(void **state)
{
	(void)state;
	static const uint32_t loads[] = {100, 900, 1500};
	for (size_t i = 0; i < 3; i++) {
		struct sw_trace_recipe recipe = sw_trace_recipe_default();
		recipe.load_milli = loads[i];
		recipe.gpus = 500;
		SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = generated(&recipe);
		SW_CLEANUP(sw_trace_stats_release) struct sw_trace_stats stats = {0};
		assert_int_equal(sw_trace_stats(trace, 500, &stats, NULL), 0);
		assert_true(fabs(stats.load * 1000 / loads[i] - 1) < 0.001);
	}
}

static void test_shares(void **state)
{
	(void)state;
	static const struct sw_trace_mix mix[] = {{"alpha", 3}, {"beta", 1}, {"none", 0}};
	struct sw_trace_recipe recipe = full_recipe();
	recipe.jobs = 50000;
	recipe.tenants = 40;
	recipe.mix = mix;
	recipe.mix_count = 3;
	recipe.max_job_gpus = 6;
	SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = generated(&recipe);
	SW_CLEANUP(sw_trace_stats_release) struct sw_trace_stats stats = {0};
	assert_int_equal(sw_trace_stats(trace, 0, &stats, NULL), 0);
	assert_in_range(stats.opportunistic, 14500, 15500);
	assert_in_range(stats.strict_deadlines + stats.soft_deadlines, 9500, 10500);
	assert_in_range(stats.soft_deadlines, 2600, 3400);
	assert_in_range(stats.elastic, 4000, 5500);
	assert_int_equal(stats.models.count, 2);
	assert_string_equal(stats.models.items[0].name, "alpha");
	assert_in_range(stats.models.items[0].jobs, 32000, 43000);
	/* A few tenants submit most, as Philly's do, and all numbers have as many digits. */
	assert_in_range(stats.tenants.count, 25, 40);
	assert_string_equal(stats.tenants.items[0].name + strlen("tenant") + 2, "");
	assert_true((double)stats.gpus.max <= 4);
}

/* A switch changes what it says and nothing else. */
static void test_switches_are_independent(void **state)
{
	(void)state;
	struct sw_trace_recipe recipe = sw_trace_recipe_default();
	recipe.deadline_milli = 500;
	SW_CLEANUP(sw_trace_freep) struct sw_trace *a = generated(&recipe);
	recipe.opportunistic_milli = 400;
	recipe.elastic_milli = 400;
	SW_CLEANUP(sw_trace_freep) struct sw_trace *b = generated(&recipe);
	for (size_t i = 0; i < a->jobs.count; i++) {
		assert_int_equal(a->jobs.items[i].submit_ns, b->jobs.items[i].submit_ns);
		assert_int_equal(a->jobs.items[i].duration_ns, b->jobs.items[i].duration_ns);
		assert_int_equal(a->jobs.items[i].deadline_ns, b->jobs.items[i].deadline_ns);
		assert_int_equal(a->jobs.items[i].gpus, b->jobs.items[i].gpus);
	}
}

static void test_recipes_that_make_no_sense(void **state)
{
	(void)state;
	static const struct sw_trace_mix nothing[] = {{"a", 0}}, unnamed[] = {{"", 1}};
	struct sw_trace_recipe recipes[11];
	for (size_t i = 0; i < 11; i++)
		recipes[i] = sw_trace_recipe_default();
	recipes[0].jobs = 0;
	recipes[1].jobs = SW_TRACE_MAX_JOBS + 1;
	recipes[2].gpus = 0;
	recipes[3].load_milli = 0;
	recipes[4].load_milli = 100001;
	recipes[5].tenants = 0;
	recipes[6].deadline_milli = 1001;
	recipes[7].mix = nothing;
	recipes[7].mix_count = 1;
	recipes[8].mix = unnamed;
	recipes[8].mix_count = 1;
	recipes[9].gpus = 1;
	recipes[9].load_milli = 1; /* would take centuries */
	recipes[9].jobs = 100000;
	recipes[10].elastic_milli = 5000;
	for (size_t i = 0; i < 11; i++) {
		struct sw_trace *trace = NULL;
		struct sw_err err = {0};
		assert_int_equal(sw_trace_generate(&recipes[i], &trace, &err), SW_EINPUT);
		assert_null(trace);
		assert_says(&err, "cannot generate a trace");
		assert_true(err.detail[0] != '\0');
	}
}

/* ---- beside Philly itself ---- */

typedef SW_VEC(double) numbers;

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double durations_quantile(const struct sw_trace *trace, uint32_t least, uint32_t most, double q)
{
	numbers values = {0};
	for (size_t i = 0; i < trace->jobs.count; i++)
		if (trace->jobs.items[i].gpus >= least && trace->jobs.items[i].gpus <= most)
			*(double *)sw_vec_push(&values) = (double)trace->jobs.items[i].duration_ns / 1e9;
	assert_true(values.count > 0);
	qsort(values.items, values.count, sizeof *values.items, by_value);
	double found = values.items[(size_t)((double)(values.count - 1) * q)];
	sw_vec_free(&values);
	return found;
}

static double share_of_size(const struct sw_trace *trace, uint32_t gpus)
{
	size_t jobs = 0;
	for (size_t i = 0; i < trace->jobs.count; i++)
		jobs += trace->jobs.items[i].gpus == gpus;
	return (double)jobs / (double)trace->jobs.count;
}

static struct sw_trace *real_philly(void)
{
	struct sw_trace *trace = NULL;
	struct sw_err err = {0};
	if (sw_trace_load(shared_trace("philly/philly-jobs.csv.xz"), NULL, &trace, &err) < 0)
		fail_msg("%s", words(&err));
	return trace;
}

/* Philly's own rate of submits: as many jobs over as many days. */
static struct sw_trace *philly_like(uint64_t times)
{
	struct sw_trace_recipe recipe = sw_trace_recipe_default();
	recipe.jobs = 82247 * times;
	recipe.gpus = 2490;
	recipe.load_milli = 150;
	return generated(&recipe);
}

static void within(double found, double real, double tolerance, double slack, const char *what, double at)
{
	if (fabs(found - real) > tolerance * real + slack)
		fail_msg("%s at %g: generated %g, real %g", what, at, found, real);
}

/* Durations of each size within 15 % (the 99th percentile, and large jobs, of which there are few:
 * 30 %), shares of sizes within 10 %. */
static void test_durations_and_sizes_follow_philly(void **state)
{
	(void)state;
	SW_CLEANUP(sw_trace_freep) struct sw_trace *real = real_philly();
	SW_CLEANUP(sw_trace_freep) struct sw_trace *made = philly_like(12);
	static const struct {
		uint32_t least, most;
		double tolerance;
	} classes[] = {{1, 1, 0.15}, {2, 2, 0.15}, {4, 4, 0.15}, {8, 8, 0.15}, {12, 128, 0.3}};
	static const double points[] = {0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99};
	for (size_t c = 0; c < 5; c++)
		for (size_t p = 0; p < 7; p++)
			within(durations_quantile(made, classes[c].least, classes[c].most, points[p]),
			       durations_quantile(real, classes[c].least, classes[c].most, points[p]),
			       points[p] > 0.95 ? 0.3 : classes[c].tolerance, 3, "duration", points[p]);
	static const uint32_t sizes[] = {1, 2, 4, 8, 16};
	for (size_t i = 0; i < 5; i++)
		within(share_of_size(made, sizes[i]), share_of_size(real, sizes[i]), 0.1, 0, "share of size", sizes[i]);
}

static numbers gaps_of(const struct sw_trace *trace)
{
	numbers gaps = {0};
	for (size_t i = 1; i < trace->jobs.count; i++)
		*(double *)sw_vec_push(&gaps) = (double)(trace->jobs.items[i].submit_ns - trace->jobs.items[i - 1].submit_ns) / 1e9;
	qsort(gaps.items, gaps.count, sizeof *gaps.items, by_value);
	return gaps;
}

/* Variance over mean of the submits per hour: 1 for jobs that arrive by chance alone. */
static double hourly_dispersion(const struct sw_trace *trace)
{
	const int64_t hour_ns = 3600 * SW_NS_PER_S;
	size_t hours = (size_t)(trace->jobs.items[trace->jobs.count - 1].submit_ns / hour_ns) + 1;
	double *counts = calloc(hours, sizeof *counts), mean = (double)trace->jobs.count / (double)hours, variance = 0;
	for (size_t i = 0; i < trace->jobs.count; i++)
		counts[trace->jobs.items[i].submit_ns / hour_ns]++;
	for (size_t i = 0; i < hours; i++)
		variance += (counts[i] - mean) * (counts[i] - mean) / (double)hours;
	free(counts);
	return variance / mean;
}

/* Gaps between submits up to the median within 3 s, up to 90 % within 40 %; dispersion
 * within a factor of two. */
static void test_bursts_follow_philly(void **state)
{
	(void)state;
	SW_CLEANUP(sw_trace_freep) struct sw_trace *real = real_philly();
	SW_CLEANUP(sw_trace_freep) struct sw_trace *made = philly_like(1);
	numbers real_gaps = gaps_of(real), made_gaps = gaps_of(made);
	static const double points[] = {0.1, 0.25, 0.5, 0.75, 0.9};
	for (size_t p = 0; p < 5; p++)
		within(made_gaps.items[(size_t)((double)made_gaps.count * points[p])],
		       real_gaps.items[(size_t)((double)real_gaps.count * points[p])], points[p] > 0.5 ? 0.4 : 0, 3, "gap", points[p]);
	sw_vec_free(&real_gaps);
	sw_vec_free(&made_gaps);
	double ratio = hourly_dispersion(made) / hourly_dispersion(real);
	if (ratio < 0.5 || ratio > 2)
		fail_msg("dispersion: generated %g, real %g", hourly_dispersion(made), hourly_dispersion(real));
}

/* Over a trace long enough for bursts to even out: shares of weekdays within 20 %, of hours within
 * 40 % (long bursts carry over into the next hour), of the largest tenants within 15 %. */
static void test_hours_and_tenants_follow_philly(void **state)
{
	(void)state;
	SW_CLEANUP(sw_trace_freep) struct sw_trace *real = real_philly();
	SW_CLEANUP(sw_trace_freep) struct sw_trace *made = philly_like(12);
	/* Philly's earliest job was submitted on a Monday at 10:30:41. */
	const int64_t real_start_s = 10 * 3600 + 30 * 60 + 41;
	double hours[2][24] = {{0}}, days[2][7] = {{0}};
	const struct sw_trace *traces[] = {real, made};
	for (size_t t = 0; t < 2; t++)
		for (size_t i = 0; i < traces[t]->jobs.count; i++) {
			int64_t s = traces[t]->jobs.items[i].submit_ns / SW_NS_PER_S + (t == 0 ? real_start_s : 0);
			hours[t][s / 3600 % 24] += 24.0 / (double)traces[t]->jobs.count;
			days[t][s / 86400 % 7] += 7.0 / (double)traces[t]->jobs.count;
		}
	for (size_t h = 0; h < 24; h++)
		within(hours[1][h], hours[0][h], 0.4, 0, "hour", (double)h);
	for (size_t d = 0; d < 7; d++)
		within(days[1][d], days[0][d], 0.2, 0, "weekday", (double)d);
	SW_CLEANUP(sw_trace_stats_release) struct sw_trace_stats real_stats = {0};
	SW_CLEANUP(sw_trace_stats_release) struct sw_trace_stats made_stats = {0};
	assert_int_equal(sw_trace_stats(real, 0, &real_stats, NULL), 0);
	assert_int_equal(sw_trace_stats(made, 0, &made_stats, NULL), 0);
	for (size_t i = 0; i < 4; i++)
		within((double)made_stats.tenants.items[i].jobs / (double)made->jobs.count,
		       (double)real_stats.tenants.items[i].jobs / (double)real->jobs.count, 0.15, 0, "tenant", (double)i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_recipe_same_trace),
		cmocka_unit_test(test_invariants),
		cmocka_unit_test(test_load_is_what_was_asked_for),
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_switches_are_independent),
		cmocka_unit_test(test_recipes_that_make_no_sense),
		cmocka_unit_test(test_durations_and_sizes_follow_philly),
		cmocka_unit_test(test_bursts_follow_philly),
		cmocka_unit_test(test_hours_and_tenants_follow_philly),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
