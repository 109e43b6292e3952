/* The JSON of a result: its keys, its numbers, and that it is always valid. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "sim/report/json.h"
#include "unit/sim/report/fixture.h"

static int write_json(FILE *out, const void *context)
{
	struct sw_err err = {0};
	return sw_results_json(out, context, &err);
}

/* The parsed object; the caller decrefs. */
static json_t *parse(const struct sw_result *result)
{
	char *text = fixture_text(write_json, result);
	char *end = strchr(text, '\n');
	assert_non_null(end);
	assert_string_equal(end, "\n");
	json_t *object = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(object);
	free(text);
	return object;
}

/* Every promised key is there, in order, with the promised type, and no other. */
static void test_keys(void **state)
{
	(void)state;
	static const struct {
		const char *key;
		json_type type;
	} expected[] = {
		{"policy", JSON_STRING},
		{"placement", JSON_STRING},
		{"world", JSON_STRING},
		{"trace", JSON_STRING},
		{"cluster", JSON_STRING},
		{"jobs", JSON_INTEGER},
		{"finished", JSON_INTEGER},
		{"failed", JSON_INTEGER},
		{"refused", JSON_INTEGER},
		{"jct_avg_s", JSON_REAL},
		{"jct_median_s", JSON_REAL},
		{"jct_p95_s", JSON_REAL},
		{"jct_p99_s", JSON_REAL},
		{"jct_max_s", JSON_REAL},
		{"queue_avg_s", JSON_REAL},
		{"queue_p95_s", JSON_REAL},
		{"makespan_s", JSON_REAL},
		{"preemptions", JSON_INTEGER},
		{"migrations", JSON_INTEGER},
		{"restarts", JSON_INTEGER},
		{"gpu_utilization", JSON_REAL},
		{"gpu_work", JSON_REAL},
		{"slowdown_worst", JSON_REAL},
		{"tenants", JSON_INTEGER},
		{"tenants_jain", JSON_REAL},
		{"tenants_worst", JSON_REAL},
		{"deadlines", JSON_INTEGER},
		{"deadlines_missed", JSON_INTEGER},
		{"log_hash", JSON_STRING},
		{"seed", JSON_INTEGER},
		{"events", JSON_INTEGER},
		{"decisions", JSON_INTEGER},
		{"decision_p99_ns", JSON_INTEGER},
		{"cpu_s", JSON_REAL},
		{"max_rss_bytes", JSON_INTEGER},
		{"notes", JSON_STRING},
		{"assumptions", JSON_ARRAY},
	};
	SW_CLEANUP(sw_result_freep) struct sw_result *result = fixture_busy("las", 50, 1, 10);
	json_t *object = parse(result);
	const char *key;
	json_t *value;
	size_t i = 0;
	json_object_foreach(object, key, value)
	{
		assert_true(i < sizeof expected / sizeof *expected);
		assert_string_equal(key, expected[i].key);
		assert_int_equal(json_typeof(value), expected[i].type);
		i++;
	}
	assert_int_equal(i, sizeof expected / sizeof *expected);
	assert_int_equal(json_integer_value(json_object_get(object, "jobs")), 50);
	assert_string_equal(json_string_value(json_object_get(object, "log_hash")), "0123456789abcdef");
	json_t *lines = json_object_get(object, "assumptions");
	assert_int_equal(json_array_size(lines), 2);
	assert_string_equal(json_string_value(json_array_get(lines, 1)), "nothing fails");
	json_decref(object);
}

/* Reals carry six decimals and none of the noise of binary fractions. */
static void test_digits(void **state)
{
	(void)state;
	SW_CLEANUP(sw_result_freep) struct sw_result *result = fixture_empty("srtf");
	result->summary.jct_avg_s = 193081.79634;
	result->summary.makespan_s = 8174135.28;
	result->summary.gpu_utilization = 2.0 / 3;
	result->summary.jct_median_s = 0.1 + 0.2;
	char *text = fixture_text(write_json, result);
	assert_non_null(strstr(text, "\"jct_avg_s\": 193081.79634,"));
	assert_non_null(strstr(text, "\"makespan_s\": 8174135.28,"));
	assert_non_null(strstr(text, "\"gpu_utilization\": 0.666667,"));
	assert_non_null(strstr(text, "\"jct_median_s\": 0.3,"));
	free(text);
}

/* Names that are no UTF-8, notes of several lines, large seeds and figures that are no numbers
 * still give valid JSON. */
static void test_hostile(void **state)
{
	(void)state;
	SW_CLEANUP(sw_result_freep) struct sw_result *result = fixture_empty("a\"b\\c\x01\xFF");
	free(result->notes);
	result->notes = strdup("first\nsecond");
	free(result->assumptions);
	result->assumptions = NULL;
	result->seed = UINT64_MAX;
	result->summary.jct_avg_s = NAN;
	result->summary.jct_p99_s = INFINITY;
	json_t *object = parse(result);
	assert_string_equal(json_string_value(json_object_get(object, "policy")), "a\"b\\c\xEF\xBF\xBD\xEF\xBF\xBD");
	assert_string_equal(json_string_value(json_object_get(object, "notes")), "first\nsecond");
	assert_string_equal(json_string_value(json_object_get(object, "seed")), "18446744073709551615");
	assert_int_equal(json_array_size(json_object_get(object, "assumptions")), 0);
	assert_true(json_real_value(json_object_get(object, "jct_avg_s")) == 0);
	assert_true(json_real_value(json_object_get(object, "jct_p99_s")) == 0);
	json_decref(object);
}

/* A device that is full is an error with words. */
static void test_full(void **state)
{
	(void)state;
	SW_CLEANUP(sw_result_freep) struct sw_result *result = fixture_empty("las");
	SW_CLEANUP(sw_fclosep) FILE *out = fopen("/dev/full", "w");
	struct sw_err err = {0};
	assert_non_null(out);
	setvbuf(out, NULL, _IONBF, 0);
	assert_int_equal(sw_results_json(out, result, &err), SW_EIO);
	assert_string_equal(err.fact, "cannot write the result of 'las' as JSON");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_digits),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_full),
	};
	return cmocka_run_group_tests_name("sim/report/json", tests, NULL, NULL);
}
