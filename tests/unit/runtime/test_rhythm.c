/* The rhythm of a sequence of calls: found for programs that repeat themselves, whatever comes in
 * between, and for no others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/rhythm.h"

enum { MOST = 3 * SW_RHYTHM_NOTES };

static uint32_t notes[MOST];
static size_t count;
static struct sw_rhythm_room room;
static uint64_t state = 1;

static uint32_t draw(uint32_t end)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state * 0x2545f4914f6cdd1dULL >> 33) % end;
}

static int begin(void **unused)
{
	(void)unused;
	count = 0;
	state = 88172645463325252ULL;
	return 0;
}

static void add(uint32_t note)
{
	assert_true(count < MOST);
	notes[count++] = note;
}

/* Kernels by number; functions of a program lie at addresses like these. */
static uint32_t kernel(unsigned number, unsigned grid)
{
	return sw_note_launch((const void *)(uintptr_t)(0x555500001000 + number * 0x140UL), grid, 1, 1);
}

static void part(unsigned first, unsigned length)
{
	for (unsigned i = 0; i < length; i++)
		add(kernel(first + i, 7));
}

static void noise(unsigned length)
{
	for (unsigned i = 0; i < length; i++)
		add(kernel(5000 + draw(900), draw(100)));
}

static struct sw_rhythm found(void)
{
	struct sw_rhythm rhythm = {0};
	assert_true(sw_rhythm_find(&room, notes, count, &rhythm));
	/* What it says of the marker is so: in the last periods it comes as often as it says. */
	uint32_t seen = 0, wanted = 0;
	for (size_t i = count - (count < 400 ? count : 400); i < count; i++)
		seen += (notes[i] & rhythm.mask) == rhythm.marker;
	wanted = rhythm.length > 0 ? 400 / rhythm.length : 0;
	assert_true(rhythm.times > 0 && (wanted == 0 || seen > 0));
	return rhythm;
}

static void assert_none(void)
{
	struct sw_rhythm rhythm = {.length = 77};
	if (sw_rhythm_find(&room, notes, count, &rhythm))
		fail_msg("a rhythm of %u was found in %zu notes", rhythm.length, count);
	assert_int_equal(rhythm.length, 77);
}

/* A loop that follows upon something else is found, with a note that comes once in each turn. */
static void test_loop(void **unused)
{
	(void)unused;
	noise(333);
	for (unsigned i = 0; i < 40; i++)
		part(0, 50);
	struct sw_rhythm rhythm = found();
	assert_int_equal(rhythm.length, 50);
	assert_int_equal(rhythm.launches, 50);
	assert_int_equal(rhythm.times, 1);
	assert_int_equal(rhythm.mask, SW_NOTE_ALL);
	/* Also when the loop has just begun, when there is more than can be looked at, and when
	 * there is hardly room for three turns. */
	count = 333 + 8 * 50;
	assert_int_equal(found().length, 50);
	count = 0;
	noise(20);
	while (count + 1000 < MOST)
		part(0, 1000);
	assert_int_equal(found().length, 1000);
	count = 0;
	noise(10000);
	for (unsigned i = 0; i < 40000; i++)
		add(notes[i]);
	assert_int_equal(found().length, 10000);
}

/* An inner part that is repeated, followed by another: the whole is the iteration, and the mark
 * is in what comes once. */
static void test_accumulation(void **unused)
{
	(void)unused;
	const unsigned times[] = {2, 4, 8, 16, 31};
	for (unsigned i = 0; i < sizeof times / sizeof times[0]; i++) {
		count = 0;
		noise(100);
		for (unsigned turn = 0; turn < 12; turn++) {
			for (unsigned inner = 0; inner < times[i]; inner++)
				part(0, 60);
			part(200, 9);
		}
		/* At any moment, also in the middle of an inner part. */
		for (unsigned cut = 0; cut < 5; cut++, count -= 37) {
			struct sw_rhythm rhythm = found();
			assert_int_equal(rhythm.length, times[i] * 60 + 9);
			assert_int_equal(rhythm.times, 1);
		}
	}
}

/* While a program begins to accumulate, nothing is said, and never that the inner
 * part is the iteration. */
static void test_accumulation_from_the_start(void **unused)
{
	(void)unused;
	static uint32_t all[3000];
	bool any = false;
	for (unsigned turn = 0; count + 6 * 40 + 7 < 3000; turn++) {
		for (unsigned inner = 0; inner < 6; inner++)
			part(0, 40);
		part(200, 7);
	}
	memcpy(all, notes, count * sizeof all[0]);
	for (size_t length = 1; length < count; length += 13) {
		struct sw_rhythm rhythm = {0};
		if (!sw_rhythm_find(&room, all, length, &rhythm))
			continue;
		assert_int_equal(rhythm.length, 247);
		any = true;
	}
	assert_true(any);
}

/* One graph in each iteration is one launch; copies beside it change nothing. */
static void test_graphs(void **unused)
{
	(void)unused;
	for (unsigned i = 0; i < 300; i++) {
		add(sw_note_copy(3));
		add(sw_note_graph(&state));
		for (uint32_t copies = draw(3); copies > 0; copies--)
			add(sw_note_copy(4));
	}
	struct sw_rhythm rhythm = found();
	assert_int_equal(rhythm.launches, 1);
	assert_int_equal(rhythm.length, 1);
	assert_int_equal(rhythm.marker, sw_note_graph(&state));
}

/* What comes once in an epoch, and is different each time, does not hide the steps. */
static void test_epochs(void **unused)
{
	(void)unused;
	const unsigned steps[] = {20, 50, 200};
	for (unsigned i = 0; i < sizeof steps / sizeof steps[0]; i++) {
		count = 0;
		for (unsigned epoch = 0; epoch < 4; epoch++) {
			noise(1 + draw(30));
			for (unsigned step = 0; step < steps[i]; step++)
				part(0, 40);
		}
		assert_int_equal(found().length, 40);
	}
	/* A long validation is a rhythm of its own, and the steps are found again after it. */
	for (unsigned i = 0; i < 100; i++)
		part(300, 15);
	assert_int_equal(found().length, 15);
	for (unsigned i = 0; i < 12; i++)
		part(0, 40);
	assert_int_equal(found().length, 40);
}

/* A copy every now and then is no part of the iteration. */
static void test_logging(void **unused)
{
	(void)unused;
	for (unsigned i = 0; i < 200; i++) {
		part(0, 30);
		if (i % 10 == 0)
			add(sw_note_copy(5));
	}
	assert_int_equal(found().length, 30);
}

/* Where all launches are of one kernel, the copies tell. */
static void test_copies_tell(void **unused)
{
	(void)unused;
	for (unsigned i = 0; i < 100; i++) {
		add(sw_note_copy(3));
		for (unsigned j = 0; j < 4; j++)
			add(kernel(1, 1));
		add(sw_note_copy(4));
	}
	struct sw_rhythm rhythm = found();
	assert_int_equal(rhythm.length, 6);
	assert_int_equal(rhythm.launches, 4);
	assert_int_equal(rhythm.times, 4);
	/* Without any, each launch is one; a program that only copies has a rhythm as well. */
	count = 0;
	for (unsigned i = 0; i < 100; i++)
		add(kernel(1, 1));
	assert_int_equal(found().length, 1);
	count = 0;
	for (unsigned i = 0; i < 100; i++)
		add(sw_note_copy(i % 3));
	rhythm = found();
	assert_int_equal(rhythm.length, 3);
	assert_int_equal(rhythm.launches, 0);
}

/* Kernels whose grids follow the data are told by their names. */
static void test_grids_that_vary(void **unused)
{
	(void)unused;
	for (unsigned i = 0; i < 100; i++)
		for (unsigned j = 0; j < 25; j++)
			add(kernel(j, 1 + draw(60)));
	struct sw_rhythm rhythm = found();
	assert_int_equal(rhythm.length, 25);
	assert_int_equal(rhythm.mask, SW_NOTE_WITHOUT_GRID);
}

/* Programs that do not repeat themselves have none, nor have those that did little. */
static void test_none(void **unused)
{
	(void)unused;
	assert_none();
	part(0, 23);
	assert_none();
	const unsigned kinds[] = {2, 3, 5, 10, 100, 900};
	for (unsigned i = 0; i < 200; i++) {
		count = 0;
		for (unsigned j = 0, length = 30 + draw(6000); j < length; j++)
			add(kernel(draw(kinds[i % 6]), 1));
		assert_none();
	}
	/* One kernel, for data of any size, with copies at any time. */
	for (count = 0; count < 3000;)
		add(draw(5) == 0 ? sw_note_copy(1) : kernel(1, 1 + draw(9)));
	assert_none();
	/* Repetitions of lengths that cannot be told. */
	for (unsigned i = 0; i < 40; i++) {
		count = 0;
		while (count < 4000) {
			for (uint32_t j = 0, times = 1 + draw(30); j < times; j++)
				add(kernel(1, 1));
			for (uint32_t j = 0, times = 1 + draw(30); j < times; j++)
				add(kernel(2, 1));
		}
		assert_none();
	}
	/* Nothing but different ones. */
	for (count = 0; count < SW_RHYTHM_NOTES;)
		add(SW_NOTE_LAUNCH | (uint32_t)count * 0x9e3779b1U >> 1);
	assert_none();
}

/* The shortest period, the slow way. */
static size_t naive(const uint32_t *turn, size_t length)
{
	for (size_t period = 1; period < length; period++) {
		size_t i = 0;
		while (i < length && turn[i] == turn[(i + period) % length])
			i++;
		if (i == length && length % period == 0)
			return period;
	}
	return length;
}

/* Random loops, also with a call or two too many in between: their own period is found, or
 * nothing. */
static void test_random_loops(void **unused)
{
	(void)unused;
	unsigned exact = 0;
	for (unsigned i = 0; i < 400; i++) {
		size_t length = 1 + draw(120), turns = 30 + draw(30), kinds = 1 + draw(40);
		uint32_t turn[120];
		for (size_t j = 0; j < length; j++)
			turn[j] = kernel(draw((uint32_t)kinds), 1);
		size_t wanted = naive(turn, length), disturbed = i % 2 == 0 ? turns : 10 + draw(10);
		count = 0;
		for (size_t j = 0; j < turns; j++) {
			for (size_t k = 0; k < length; k++)
				add(turn[k]);
			if (j == disturbed)
				noise(1 + draw(2));
		}
		struct sw_rhythm rhythm = {0};
		if (count < 24 || !sw_rhythm_find(&room, notes, count, &rhythm))
			continue;
		assert_int_equal(rhythm.length, wanted);
		exact++;
	}
	assert_true(exact > 300);
}

/* The time of a period is smoothed, its jitter is the mean distance from that, and pauses count as
 * periods but not into the time. */
static void test_clock(void **unused)
{
	(void)unused;
	struct sw_rhythm_clock clock = {0};
	int64_t now = 1000;
	sw_rhythm_beat(&clock, now, 1);
	assert_int_equal(clock.mean_ns, 0);
	for (unsigned i = 0; i < 50; i++)
		sw_rhythm_beat(&clock, now += 1000000, 1);
	assert_int_equal(clock.mean_ns, 1000000);
	assert_int_equal(clock.jitter_ns, 0);
	assert_int_equal(clock.beats, 50);
	/* A validation, a suspension. */
	sw_rhythm_beat(&clock, now += 900000000, 1);
	assert_int_equal(clock.mean_ns, 1000000);
	assert_int_equal(clock.beats, 51);
	for (unsigned i = 0; i < 100; i++)
		sw_rhythm_beat(&clock, now += i % 2 == 0 ? 1100000 : 900000, 1);
	assert_in_range(clock.mean_ns, 980000, 1020000);
	assert_in_range(clock.jitter_ns, 80000, 120000);
	/* Several at once. */
	sw_rhythm_beat(&clock, now += 10 * 1000000, 10);
	assert_int_equal(clock.beats, 161);
	/* It became slower for good. */
	for (unsigned i = 0; i < 60; i++)
		sw_rhythm_beat(&clock, now += 20000000, 1);
	assert_in_range(clock.mean_ns, 19900000, 20000000);
	for (unsigned i = 0; i < 100; i++)
		sw_rhythm_beat(&clock, now += 500000, 1);
	assert_in_range(clock.mean_ns, 499000, 600000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_loop, begin),
		cmocka_unit_test_setup(test_accumulation, begin),
		cmocka_unit_test_setup(test_accumulation_from_the_start, begin),
		cmocka_unit_test_setup(test_graphs, begin),
		cmocka_unit_test_setup(test_epochs, begin),
		cmocka_unit_test_setup(test_logging, begin),
		cmocka_unit_test_setup(test_copies_tell, begin),
		cmocka_unit_test_setup(test_grids_that_vary, begin),
		cmocka_unit_test_setup(test_none, begin),
		cmocka_unit_test_setup(test_random_loops, begin),
		cmocka_unit_test_setup(test_clock, begin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
