/* What LD_PRELOAD becomes with our library and without it. */
#include "share/preload.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

/* Ours comes first, what was there stays behind it; paths that the loader would cut in two are
 * refused, and values that have no room. */
static void test_value(void **state)
{
	(void)state;
	char value[32];
	assert_int_equal(sw_share_preload_value("/a/b.so", NULL, value, sizeof value, NULL), 0);
	assert_string_equal(value, "/a/b.so");
	assert_int_equal(sw_share_preload_value("/a/b.so", "", value, sizeof value, NULL), 0);
	assert_string_equal(value, "/a/b.so");
	assert_int_equal(sw_share_preload_value("/a/b.so", "c.so d.so", value, sizeof value, NULL), 0);
	assert_string_equal(value, "/a/b.so:c.so d.so");
	assert_int_equal(sw_share_preload_value("/a b.so", NULL, value, sizeof value, NULL), SW_EINPUT);
	assert_int_equal(sw_share_preload_value("/a:b.so", NULL, value, sizeof value, NULL), SW_EINPUT);
	assert_int_equal(sw_share_preload_value("/a.so", "a-name-that-has-far-too-many-letters.so", value, sizeof value, NULL), SW_ELIMIT);
}

/* Ours is taken out wherever it stands, and nothing else. */
static void test_strip(void **state)
{
	(void)state;
	static const char *const cases[][2] = {
		{"", ""},
		{"a.so", "a.so"},
		{"libsharewell-gpu.so", ""},
		{"/x/libsharewell-gpu.so:a.so", "a.so"},
		{"a.so /x/libsharewell-gpu.so b.so", "a.so:b.so"},
		{"a.so::/x/libsharewell-gpu.so", "a.so"},
		{"/x/libsharewell-gpu.so:/y/libsharewell-gpu.so", ""},
		{"/x/mylibsharewell-gpu.so:/libsharewell-gpu.so.1", "/x/mylibsharewell-gpu.so:/libsharewell-gpu.so.1"},
		{" : a.so : ", "a.so"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char value[100];
		snprintf(value, sizeof value, "%s", cases[i][0]);
		sw_share_preload_strip(value);
		assert_string_equal(value, cases[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_value), cmocka_unit_test(test_strip)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
