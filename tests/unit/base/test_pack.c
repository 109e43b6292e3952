/* State as bytes and back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/pack.h"

struct all {
	uint64_t u64, word;
	uint32_t u32;
	uint16_t u16;
	uint8_t u8;
	bool yes;
	int64_t i64, near, never;
	int number;
	char chars[8];
	char *text;
	char raw[3];
	size_t count;
};

static void walk(struct sw_pack *pack, struct all *all)
{
	sw_pack_u64(pack, &all->u64);
	sw_pack_word(pack, &all->word);
	sw_pack_u32(pack, &all->u32);
	sw_pack_u16(pack, &all->u16);
	sw_pack_u8(pack, &all->u8);
	sw_pack_bool(pack, &all->yes);
	sw_pack_i64(pack, &all->i64);
	sw_pack_near(pack, &all->near, 1000);
	sw_pack_near(pack, &all->never, -5);
	sw_pack_int(pack, &all->number);
	sw_pack_chars(pack, all->chars, sizeof all->chars);
	sw_pack_text(pack, &all->text);
	sw_pack_count(pack, &all->count);
	sw_pack_raw(pack, all->raw, sizeof all->raw);
}

static struct all sample(void)
{
	return (struct all){
		.u64 = UINT64_MAX,
		.word = UINT64_C(0x0102030405060708),
		.u32 = UINT32_MAX,
		.u16 = UINT16_MAX,
		.u8 = 200,
		.yes = true,
		.i64 = INT64_MIN,
		.near = 990,
		.never = INT64_MAX,
		.number = -77,
		.chars = "seven..",
		.text = (char *)(uintptr_t) "a text",
		.raw = {1, 0, 2},
		.count = 3,
	};
}

static void same(const struct all *a, const struct all *b)
{
	assert_true(a->u64 == b->u64 && a->word == b->word && a->u32 == b->u32 && a->u16 == b->u16 && a->u8 == b->u8 && a->yes == b->yes);
	assert_true(a->i64 == b->i64 && a->near == b->near && a->never == b->never && a->number == b->number && a->count == b->count);
	assert_string_equal(a->chars, b->chars);
	assert_string_equal(a->text, b->text);
	assert_memory_equal(a->raw, b->raw, sizeof a->raw);
}

/* Aim: one walk writes every kind of field and reads it again. */
static void test_there_and_back(void **state)
{
	(void)state;
	struct all before = sample(), after;
	struct sw_pack out = {0};
	walk(&out, &before);
	size_t size = 0;
	unsigned char *bytes = sw_pack_take(&out, &size);
	assert_non_null(bytes);
	memset(&after, 0xff, sizeof after);
	struct sw_pack in = sw_pack_reader(bytes, size);
	walk(&in, &after);
	assert_int_equal(in.failed, 0);
	assert_int_equal(sw_pack_left(&in), 0);
	same(&before, &after);
	free(after.text);
	free(bytes);
}

/* Aim: bytes that end too early are noticed wherever they end, and what is read then is empty. */
static void test_cut_short(void **state)
{
	(void)state;
	struct all before = sample();
	struct sw_pack out = {0};
	walk(&out, &before);
	for (size_t size = 0; size < out.size; size++) {
		struct all after;
		unsigned char *exact = malloc(size + 1);
		memcpy(exact, out.bytes, size);
		memset(&after, 0xff, sizeof after);
		struct sw_pack in = sw_pack_reader(exact, size);
		walk(&in, &after);
		assert_int_equal(in.failed, SW_EINPUT);
		assert_int_equal(after.raw[0], 0);
		free(after.text);
		free(exact);
	}
	sw_pack_release(&out);
}

static int read_u8(const char *bytes, size_t size, uint8_t *ret)
{
	struct sw_pack in = sw_pack_reader(bytes, size);
	sw_pack_u8(&in, ret);
	return in.failed;
}

/* Aim: numbers too large for their field, and numbers written longer than needed, are refused:
 * each state has one form. */
static void test_wrong_numbers(void **state)
{
	(void)state;
	uint8_t value = 9;
	assert_int_equal(read_u8("\xff\x01", 2, &value), 0);
	assert_int_equal(value, 255);
	assert_int_equal(read_u8("\x80\x02", 2, &value), SW_EINPUT);
	assert_int_equal(value, 0);
	assert_int_equal(read_u8("\x81\x00", 2, &value), SW_EINPUT);
	struct sw_pack in = sw_pack_reader("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10);
	uint64_t large;
	sw_pack_u64(&in, &large);
	assert_int_equal(in.failed, SW_EINPUT);
}

/* Aim: a count that the bytes behind it cannot hold, and a text with an end inside, are refused
 * before memory is asked for. */
static void test_wrong_texts(void **state)
{
	(void)state;
	size_t count = 1;
	struct sw_pack in = sw_pack_reader("\xff\xff\xff\x7f...", 7);
	sw_pack_count(&in, &count);
	assert_int_equal(in.failed, SW_EINPUT);
	assert_int_equal(count, 0);
	char *text = NULL;
	in = sw_pack_reader("\x03"
			    "a\0b",
			    4);
	sw_pack_text(&in, &text);
	assert_int_equal(in.failed, SW_EINPUT);
	free(text);
	char chars[4];
	in = sw_pack_reader("\x04"
			    "four",
			    5);
	sw_pack_chars(&in, chars, sizeof chars);
	assert_int_equal(in.failed, SW_EINPUT);
	assert_string_equal(chars, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_there_and_back),
		cmocka_unit_test(test_cut_short),
		cmocka_unit_test(test_wrong_numbers),
		cmocka_unit_test(test_wrong_texts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
