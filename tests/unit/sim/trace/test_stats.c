/* Figures of a trace that can be checked by hand, as values, as text and as JSON. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/cleanup.h"
#include "sim/trace/stats.h"
#include "unit/sim/trace/support.h"

static const char sample[] = "submit_s,duration_s,gpus,min_gpus,max_gpus,class,deadline_s,deadline_kind,tenant,model\n"
			     "3600,100,1,,,,,,a,m1\n"
			     "3610,300,1,,,opportunistic,,,b,m1\n"
			     "3620,200,4,2,8,,3700,strict,a,m2\n"
			     "7200,1000,8,,,,9999,soft,a,\n"
			     "90000,0,2,,,,,,c,m1\n";

static void near(double value, double expected)
{
	if (fabs(value - expected) > 1e-9 * fmax(1, fabs(expected)))
		fail_msg("%.12g, expected %.12g", value, expected);
}

static struct sw_trace_stats stats_of(const char *text, uint64_t gpus)
{
	SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = must_parse(text, NULL);
	struct sw_trace_stats stats;
	struct sw_err err = {0};
	assert_int_equal(sw_trace_stats(trace, gpus, &stats, &err), 0);
	return stats;
}

static void test_values(void **state)
{
	(void)state;
	SW_CLEANUP(sw_trace_stats_release) struct sw_trace_stats stats = stats_of(sample, 10);
	assert_int_equal(stats.jobs, 5);
	near(stats.first_submit_s, 3600);
	near(stats.span_s, 86400);
	near(stats.jobs_per_hour, 5.0 / 24);
	near(stats.gpu_s, 100 + 300 + 800 + 8000);
	near(stats.load, 9200.0 / 864000);
	assert_int_equal(stats.without_duration, 1);
	assert_int_equal(stats.opportunistic, 1);
	assert_int_equal(stats.elastic, 1);
	assert_int_equal(stats.strict_deadlines, 1);
	assert_int_equal(stats.soft_deadlines, 1);
	assert_int_equal(stats.impossible_deadlines, 1);
	near(stats.gpus.min, 1);
	near(stats.gpus.median, 2);
	near(stats.gpus.mean, 16.0 / 5);
	near(stats.gpus.max, 8);
	/* Of 100, 200, 300, 1000: interpolated between ranks. */
	near(stats.duration_s.median, 250);
	near(stats.duration_s.p75, 475);
	near(stats.duration_s.p90, 790);
	near(stats.duration_s.p99, 979);
	near(stats.duration_s.mean, 400);
	near(stats.gap_s.min, 10);
	near(stats.gap_s.max, 82800);
	assert_int_equal(stats.hourly[1], 4);
	assert_int_equal(stats.hourly[2], 1);
}

static void test_shares(void **state)
{
	(void)state;
	SW_CLEANUP(sw_trace_stats_release) struct sw_trace_stats stats = stats_of(sample, 0);
	assert_int_equal(stats.sizes.count, 4);
	assert_int_equal(stats.sizes.items[0].gpus, 1);
	assert_int_equal(stats.sizes.items[0].jobs, 2);
	near(stats.sizes.items[0].gpu_s, 400);
	assert_int_equal(stats.sizes.items[3].gpus, 8);
	assert_int_equal(stats.tenants.count, 3);
	assert_string_equal(stats.tenants.items[0].name, "a");
	assert_int_equal(stats.tenants.items[0].jobs, 3);
	near(stats.tenants.items[0].gpu_s, 8900);
	/* Equal counts by name. */
	assert_string_equal(stats.tenants.items[1].name, "b");
	assert_string_equal(stats.models.items[0].name, "m1");
	assert_int_equal(stats.models.count, 3);
	near(stats.load, 0);
}

static char *printed(const struct sw_trace_stats *stats, unsigned rows, bool json)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	assert_non_null(out);
	if (json)
		assert_int_equal(sw_trace_stats_json(out, stats), 0);
	else
		sw_trace_stats_print(out, stats, rows);
	fclose(out);
	return text;
}

static void test_text(void **state)
{
	(void)state;
	SW_CLEANUP(sw_trace_stats_release) struct sw_trace_stats stats = stats_of(sample, 10);
	SW_CLEANUP(sw_freep) char *text = printed(&stats, 0, false);
	assert_non_null(strstr(text, "test.csv (sharewell)"));
	assert_non_null(strstr(text, "1.1 % of 10 GPUs"));
	assert_non_null(strstr(text, "\ntenant "));
	assert_non_null(strstr(text, "(none)"));
	SW_CLEANUP(sw_freep) char *cut = printed(&stats, 1, false);
	assert_non_null(strstr(cut, "... and 3 more"));
	/* No table of tenants where the file has none. */
	SW_CLEANUP(sw_trace_stats_release) struct sw_trace_stats plain = stats_of("submit_s,duration_s,gpus\n0,1,1\n", 0);
	SW_CLEANUP(sw_freep) char *short_text = printed(&plain, 0, false);
	assert_null(strstr(short_text, "tenant"));
}

static void test_json(void **state)
{
	(void)state;
	SW_CLEANUP(sw_trace_stats_release) struct sw_trace_stats stats = stats_of(sample, 10);
	SW_CLEANUP(sw_freep) char *text = printed(&stats, 0, true);
	json_error_t error;
	json_t *root = json_loads(text, 0, &error);
	assert_non_null(root);
	assert_int_equal(json_integer_value(json_object_get(root, "jobs")), 5);
	near(json_number_value(json_object_get(root, "gpu_s")), 9200);
	near(json_number_value(json_object_get(json_object_get(root, "duration_s"), "p99")), 979);
	json_t *tenant = json_array_get(json_object_get(root, "tenants"), 0);
	assert_string_equal(json_string_value(json_object_get(tenant, "name")), "a");
	assert_int_equal(json_integer_value(json_object_get(json_array_get(json_object_get(root, "sizes"), 3), "gpus")), 8);
	assert_int_equal(json_array_size(json_object_get(root, "hourly")), 24);
	near(json_number_value(json_object_get(root, "load")), 9200.0 / 864000);
	json_decref(root);
	FILE *full = fopen("/dev/full", "w");
	if (full != NULL) {
		setvbuf(full, NULL, _IONBF, 0);
		assert_int_equal(sw_trace_stats_json(full, &stats), SW_EIO);
		fclose(full);
	}
}

static void test_one_job_and_odd_path(void **state)
{
	(void)state;
	SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = NULL;
	static const char text[] = "submit_s,duration_s,gpus\n7,8,9\n";
	assert_int_equal(sw_trace_parse("\xff.csv", text, sizeof text - 1, NULL, &trace, NULL), 0);
	SW_CLEANUP(sw_trace_stats_release) struct sw_trace_stats stats = {0};
	assert_int_equal(sw_trace_stats(trace, 5, &stats, NULL), 0);
	near(stats.span_s, 0);
	near(stats.jobs_per_hour, 0);
	near(stats.load, 0);
	near(stats.gap_s.max, 0);
	SW_CLEANUP(sw_freep) char *json = printed(&stats, 0, true);
	assert_non_null(strstr(json, "not UTF-8"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_one_job_and_odd_path),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
