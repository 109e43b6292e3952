/* The JSON writer against jansson, which reads it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <jansson.h>

#include "api/json.h"
#include "base/rng.h"
#include "base/utf8.h"

/* Commas stand between values and nowhere else, at every depth. */
static void test_structure(void **state)
{
	(void)state;
	struct sw_json json = {0};
	sw_json_object(&json);
	sw_json_key(&json, "list");
	sw_json_array(&json);
	sw_json_i64(&json, -1);
	sw_json_array(&json);
	sw_json_end_array(&json);
	sw_json_null(&json);
	sw_json_end_array(&json);
	sw_json_key_bool(&json, "yes", true);
	sw_json_key(&json, "inner");
	sw_json_object(&json);
	sw_json_key_u64(&json, "big", UINT64_MAX);
	sw_json_key_string(&json, "text", "x");
	sw_json_end_object(&json);
	sw_json_key(&json, "raw");
	sw_json_raw(&json, "[1]", 3);
	sw_json_end_object(&json);
	assert_string_equal(json.text,
			    "{\"list\":[-1,[],null],\"yes\":true,\"inner\":{\"big\":18446744073709551615,\"text\":\"x\"},\"raw\":[1]}");
	sw_json_release(&json);
}

/* Decimals lose nothing and have no needless digits. */
static void test_decimal(void **state)
{
	(void)state;
	struct sw_json json = {0};
	sw_json_array(&json);
	sw_json_decimal(&json, 1500, 1000);
	sw_json_decimal(&json, -1, 1000);
	sw_json_decimal(&json, 2000, 1000);
	sw_json_decimal(&json, 0, 1000);
	sw_json_decimal(&json, INT64_MIN, 1000000000);
	sw_json_end_array(&json);
	assert_string_equal(json.text, "[1.5,-0.001,2,0,-9223372036.854775808]");
	sw_json_release(&json);
}

/* Any bytes come out as JSON; what was UTF-8 is read back as it was, and its size was foretold. */
static void test_any_bytes(void **state)
{
	(void)state;
	struct sw_rng rng;
	sw_rng_seed(&rng, 11);
	size_t valid = 0;
	for (int i = 0; i < 20000; i++) {
		char bytes[12];
		size_t size = sw_rng_below(&rng, sizeof bytes);
		/* Few high bytes, so that both kinds come often. */
		for (size_t b = 0; b < size; b++)
			bytes[b] = (char)(sw_rng_below(&rng, 8) > 0 ? 1 + sw_rng_below(&rng, 127) : 0x80 + sw_rng_below(&rng, 128));
		bytes[size] = '\0';
		struct sw_json json = {0};
		sw_json_string(&json, bytes);
		json_error_t error;
		json_t *back = json_loads(json.text, JSON_DECODE_ANY, &error);
		if (back == NULL)
			fail_msg("round %d: %s", i, error.text);
		bool is_utf8 = sw_utf8_is_valid(bytes, size);
		/* jansson is the second opinion on what UTF-8 is. */
		json_t *other = json_string(bytes);
		assert_int_equal(is_utf8, other != NULL);
		json_decref(other);
		if (is_utf8) {
			valid++;
			assert_string_equal(json_string_value(back), bytes);
			assert_int_equal(json.size, sw_json_string_size(bytes));
		} else {
			assert_non_null(strstr(json_string_value(back), "\xEF\xBF\xBD"));
		}
		json_decref(back);
		sw_json_release(&json);
	}
	assert_in_range(valid, 5000, 19000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_structure),
		cmocka_unit_test(test_decimal),
		cmocka_unit_test(test_any_bytes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
