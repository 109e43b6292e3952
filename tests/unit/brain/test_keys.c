/* Keys of submits: what is found, for how long, and how many are kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "brain/keys.h"

#define S INT64_C(1000000000)

static void add(struct sw_keys *keys, uint32_t uid, const char *text, sw_ns at, uint64_t first)
{
	const struct sw_key key = {.uid = uid, .at = at, .first = first, .count = 1};
	assert_int_equal(sw_keys_add(keys, text, &key), 0);
}

/* A key is found by its user alone, and for a day. */
static void test_life(void **state)
{
	(void)state;
	struct sw_keys keys = {0};
	assert_null(sw_keys_find(&keys, 0, 1, "a"));
	add(&keys, 1, "a", 10 * S, 7);
	assert_int_equal(sw_keys_find(&keys, 10 * S, 1, "a")->first, 7);
	assert_null(sw_keys_find(&keys, 10 * S, 2, "a"));
	assert_null(sw_keys_find(&keys, 10 * S, 1, "b"));
	assert_non_null(sw_keys_find(&keys, 10 * S + SW_KEY_LIFE_NS - 1, 1, "a"));
	assert_null(sw_keys_find(&keys, 10 * S + SW_KEY_LIFE_NS, 1, "a"));
	/* Used again after its day, it stands for the new jobs. */
	add(&keys, 1, "a", 10 * S + SW_KEY_LIFE_NS, 8);
	assert_int_equal(sw_keys_find(&keys, 10 * S + SW_KEY_LIFE_NS, 1, "a")->first, 8);
	assert_int_equal(keys.items.count - keys.start, 1);
	sw_keys_release(&keys);
}

/* Never more than the bound, and it is the oldest that go. */
static void test_bound(void **state)
{
	(void)state;
	struct sw_keys keys = {0};
	char text[32];
	uint64_t total = 3 * (uint64_t)SW_KEYS_MAX + 17;
	for (uint64_t i = 1; i <= total; i++) {
		snprintf(text, sizeof text, "key-%llu", (unsigned long long)i);
		add(&keys, (uint32_t)(i % 3), text, (sw_ns)i, i);
	}
	assert_int_equal(keys.items.count - keys.start, SW_KEYS_MAX);
	assert_true(keys.items.count <= 2 * SW_KEYS_MAX);
	for (uint64_t i = 1; i <= total; i++) {
		snprintf(text, sizeof text, "key-%llu", (unsigned long long)i);
		const struct sw_key *found = sw_keys_find(&keys, (sw_ns)total, (uint32_t)(i % 3), text);
		assert_true(i > total - SW_KEYS_MAX ? found != NULL && found->first == i : found == NULL);
	}
	sw_keys_release(&keys);
}

/* At random times, the same as a list that is searched from its end. */
static void test_like_a_list(void **state)
{
	(void)state;
	enum { STEPS = 4000 };
	static struct {
		uint32_t uid;
		unsigned text;
		sw_ns at;
	} list[STEPS];
	struct sw_keys keys = {0};
	struct sw_rng rng;
	sw_rng_seed(&rng, 5);
	sw_ns now = 0;
	for (size_t i = 0; i < STEPS; i++) {
		char text[16];
		now += (sw_ns)(sw_rng_next(&rng) % (uint64_t)(SW_KEY_LIFE_NS / 200));
		list[i].uid = (uint32_t)(sw_rng_next(&rng) % 3);
		list[i].text = (unsigned)(sw_rng_next(&rng) % 300);
		list[i].at = now;
		snprintf(text, sizeof text, "%u", list[i].text);
		add(&keys, list[i].uid, text, now, i);
		unsigned wanted = (unsigned)(sw_rng_next(&rng) % 300);
		snprintf(text, sizeof text, "%u", wanted);
		const struct sw_key *found = sw_keys_find(&keys, now, 1, text);
		size_t at = i + 1;
		while (at > 0 && (list[at - 1].uid != 1 || list[at - 1].text != wanted))
			at--;
		bool known = at > 0 && now - list[at - 1].at < SW_KEY_LIFE_NS;
		assert_true(known ? found != NULL && found->first == at - 1 : found == NULL);
	}
	sw_keys_release(&keys);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_life), cmocka_unit_test(test_bound), cmocka_unit_test(test_like_a_list)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
