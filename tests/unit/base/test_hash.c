/* The running hash: order, length and every byte count. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"

/* Words in another order give another fingerprint, and so does a zero more. */
static void test_words(void **state)
{
	(void)state;
	uint64_t ab = sw_hash_u64(sw_hash_u64(SW_HASH_START, 1), 2);
	uint64_t ba = sw_hash_u64(sw_hash_u64(SW_HASH_START, 2), 1);
	assert_true(ab != ba);
	assert_true(sw_hash_u64(ab, 0) != ab);
	assert_true(sw_hash_u64(SW_HASH_START, 0) != SW_HASH_START);
}

/* Bytes are read low byte first in words of eight, then the length: the definition, spelled out for
 * one full and one partial word. */
static void test_bytes_definition(void **state)
{
	(void)state;
	uint64_t expected = sw_hash_u64(SW_HASH_START, UINT64_C(0x6867666564636261));
	expected = sw_hash_u64(expected, 0x6a69);
	expected = sw_hash_u64(expected, 10);
	assert_true(sw_hash_bytes(SW_HASH_START, "abcdefghij", 10) == expected);
	assert_true(sw_hash_bytes(SW_HASH_START, NULL, 0) == sw_hash_u64(SW_HASH_START, 0));
}

/* Every bit of every position of a text changes the fingerprint, and trailing zeros are not
 * lost. */
static void test_bytes_all_count(void **state)
{
	(void)state;
	unsigned char text[21] = "the quick brown fox.";
	uint64_t plain = sw_hash_bytes(SW_HASH_START, text, sizeof text);
	for (size_t i = 0; i < sizeof text; i++) {
		for (int bit = 0; bit < 8; bit++) {
			text[i] ^= (unsigned char)(1 << bit);
			assert_true(sw_hash_bytes(SW_HASH_START, text, sizeof text) != plain);
			text[i] ^= (unsigned char)(1 << bit);
		}
	}
	for (size_t size = 0; size < 20; size++) {
		static const unsigned char zeros[21];
		assert_true(sw_hash_bytes(SW_HASH_START, zeros, size) != sw_hash_bytes(SW_HASH_START, zeros, size + 1));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_bytes_definition),
		cmocka_unit_test(test_bytes_all_count),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
