/* Which jobs run where not all fit at once: equal time, none passed over, never more
 * than there is room for. */
#include "share/turns.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#define SECOND INT64_C(1000000000)
#define QUANTUM (60 * SECOND)
#define TICK (SECOND / 10)

struct world {
	struct sw_turns turns;
	struct sw_turns_member members[16];
	size_t count;
	uint64_t room;
	int64_t now, had[16];
};

static struct world make(size_t count, uint64_t size, uint64_t room)
{
	struct world world = {.count = count, .room = room, .now = 1000 * SECOND};
	for (size_t i = 0; i < count; i++)
		world.members[i] = (struct sw_turns_member){.id = 100 + i, .arrival = i, .size = size};
	return world;
}

static void pass(struct world *world, int64_t for_ns)
{
	bool runs[16];
	for (int64_t end = world->now + for_ns; world->now < end; world->now += TICK) {
		sw_turns(&world->turns, world->members, world->count, world->room, QUANTUM, world->now, runs);
		uint64_t used = 0, running = 0;
		for (size_t i = 0; i < world->count; i++) {
			world->had[i] += runs[i] ? TICK : 0;
			used += runs[i] ? world->members[i].size : 0;
			running += runs[i];
		}
		assert_true(used <= world->room || running == 1);
	}
}

static void assert_equal_times(const struct world *world, int64_t percent)
{
	int64_t sum = 0;
	for (size_t i = 0; i < world->count; i++)
		sum += world->had[i];
	int64_t mean = sum / (int64_t)world->count;
	for (size_t i = 0; i < world->count; i++)
		if (llabs(world->had[i] - mean) * 100 > mean * percent)
			fail_msg("member %zu had %lld s, the mean is %lld s", i, (long long)(world->had[i] / SECOND),
				 (long long)(mean / SECOND));
}

/* Six jobs of one GPU each on four GPUs have equal GPU time within 5 % over ten quanta,
 * and no GPU is ever idle. */
static void test_six_jobs_on_four_gpus(void **state)
{
	(void)state;
	struct world world = make(6, 1, 4);
	pass(&world, 10 * QUANTUM);
	assert_equal_times(&world, 5);
	int64_t sum = 0;
	for (size_t i = 0; i < 6; i++)
		sum += world.had[i];
	assert_true(sum == 4 * 10 * QUANTUM);
}

/* Two that do not fit together have a quantum each, in the order in which they came. */
static void test_two_that_do_not_fit(void **state)
{
	(void)state;
	struct world world = make(2, 6, 10);
	world.members[0].arrival = 7;
	pass(&world, QUANTUM);
	assert_true(world.had[0] == 0 && world.had[1] == QUANTUM);
	pass(&world, QUANTUM);
	assert_true(world.had[0] == QUANTUM && world.had[1] == QUANTUM);
	pass(&world, 8 * QUANTUM);
	assert_equal_times(&world, 0);
}

/* Where all fit, all run, all the time; so does one alone that is larger than the room. */
static void test_where_all_fit(void **state)
{
	(void)state;
	struct world world = make(5, 2, 10), one = make(1, 11, 10);
	pass(&world, 3 * QUANTUM);
	for (size_t i = 0; i < 5; i++)
		assert_true(world.had[i] == 3 * QUANTUM);
	pass(&one, QUANTUM);
	assert_true(one.had[0] == QUANTUM);
}

/* Members of different sizes, one of them as large as the room, have equal time in the long run:
 * the large one is not passed over. */
static void test_different_sizes(void **state)
{
	(void)state;
	struct world world = make(4, 3, 10);
	world.members[1].size = 10;
	world.members[2].size = 6;
	pass(&world, 60 * QUANTUM);
	assert_equal_times(&world, 5);
}

/* A job that comes late has as much as the others from then on, not all until it has caught up; one
 * that goes makes room at once. */
static void test_come_and_go(void **state)
{
	(void)state;
	struct world world = make(2, 6, 10);
	pass(&world, 20 * QUANTUM);
	world.members[2] = (struct sw_turns_member){.id = 5, .arrival = 9, .size = 6};
	world.count = 3;
	int64_t before = world.had[0] + world.had[1];
	pass(&world, 9 * QUANTUM);
	assert_true(world.had[2] >= 2 * QUANTUM && world.had[2] <= 4 * QUANTUM);
	assert_true(world.had[0] + world.had[1] - before >= 5 * QUANTUM);
	world.members[0] = world.members[2];
	world.count = 1;
	int64_t had = world.had[0];
	pass(&world, QUANTUM / 4);
	assert_true(world.had[0] - had == QUANTUM / 4);
}

/* One that wants no turn is passed over; when it is back it has as much as the others from then
 * on. */
static void test_absent(void **state)
{
	(void)state;
	struct world world = make(3, 6, 10);
	world.members[1].absent = true;
	pass(&world, 10 * QUANTUM);
	assert_true(world.had[1] == 0 && world.had[0] == 5 * QUANTUM);
	world.members[1].absent = false;
	int64_t had = world.had[0];
	pass(&world, 12 * QUANTUM);
	assert_true(world.had[1] >= 3 * QUANTUM && world.had[1] <= 5 * QUANTUM && world.had[0] - had >= 3 * QUANTUM);
}

/* A turn begins when its member is back, however long that takes; one that never comes back does
 * not hold up the others for ever. */
static void test_away(void **state)
{
	(void)state;
	struct world world = make(2, 6, 10);
	pass(&world, QUANTUM);
	world.members[1].away = true;
	pass(&world, QUANTUM / 3);
	world.members[1].away = false;
	world.had[1] = 0;
	pass(&world, QUANTUM);
	assert_true(world.had[1] >= QUANTUM - TICK);
	int64_t had = world.had[1];
	pass(&world, QUANTUM - TICK);
	assert_true(world.had[1] <= had + TICK);
	world.members[1].away = true;
	int64_t first = world.had[0];
	pass(&world, 12 * QUANTUM);
	assert_true(world.had[0] - first >= 2 * QUANTUM);
}

/* So many turns of three of which one fits, seen at uneven times: none takes longer than its
 * quantum and until the next look. */
static void take_uneven_turns(unsigned random, size_t turns)
{
	enum { TICKS = 16 };
	struct world world = make(3, 6, 10);
	size_t last = SIZE_MAX;
	for (int64_t since = world.now; turns > 0;) {
		bool runs[16];
		size_t one = 0;
		sw_turns(&world.turns, world.members, world.count, world.room, QUANTUM, world.now, runs);
		while (!runs[one])
			one++;
		if (one != last) {
			since = world.now;
			turns--;
		}
		last = one;
		if (world.now - since > QUANTUM + TICKS * TICK)
			fail_msg("%zu turns before the end member %zu has had %lld s", turns, one,
				 (long long)((world.now - since) / SECOND));
		random = random * 1103515245 + 12345;
		world.now += TICK * (1 + (random >> 16) % TICKS);
	}
}

/* Turns are never quite as long as a quantum. The small differences add up, and give none two
 * turns one after the other. */
static void test_uneven_turns(void **state)
{
	(void)state;
	for (unsigned seed = 0; seed < 50; seed++)
		take_uneven_turns(seed, 500);
}

/* More members than can be kept: the rest waits, and nothing is written beyond. */
static void test_too_many(void **state)
{
	(void)state;
	enum { MANY = SW_TURNS_MEMBERS + 10 };
	struct sw_turns turns = {0};
	struct sw_turns_member members[MANY];
	bool runs[MANY];
	size_t running = 0;
	for (size_t i = 0; i < MANY; i++)
		members[i] = (struct sw_turns_member){.id = i, .arrival = i, .size = 1};
	sw_turns(&turns, members, MANY, UINT64_MAX, QUANTUM, SECOND, runs);
	for (size_t i = 0; i < MANY; i++)
		running += runs[i];
	assert_int_equal(running, SW_TURNS_MEMBERS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_six_jobs_on_four_gpus),
		cmocka_unit_test(test_two_that_do_not_fit),
		cmocka_unit_test(test_where_all_fit),
		cmocka_unit_test(test_different_sizes),
		cmocka_unit_test(test_come_and_go),
		cmocka_unit_test(test_absent),
		cmocka_unit_test(test_away),
		cmocka_unit_test(test_uneven_turns),
		cmocka_unit_test(test_too_many),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
