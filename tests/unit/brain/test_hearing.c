/* A sync that says much is heard in slices. */
#include <stdio.h>
#include <string.h>

#include "unit/brain/desk.h"

enum { GPUS = 64, MORE = 8 };

static char uuids[GPUS][16];
static struct sw_sync_gpu gpus[GPUS];
static struct sw_sync_run runs[GPUS + MORE];
static const struct sw_sync_inventory inventory = {gpus, GPUS, 64, UINT64_C(512) << 30};

static struct sw_sync make_sync(struct desk *desk, size_t run_count)
{
	return (struct sw_sync){.node = "n",
				.instance = "a1",
				.number = ++desk->number,
				.have = desk->have,
				.leases = true,
				.inventory = &inventory,
				.runs = runs,
				.run_count = run_count};
}

/* One slice; how many records it made. */
static size_t hear(struct desk *desk, const struct sw_sync *sync, struct sw_hearing *hearing)
{
	sw_records records = {0};
	assert_int_equal(sw_brain_hear_some(desk->brain, desk->now, sync, hearing, &records, NULL), 0);
	size_t count = records.count;
	desk_apply(desk, &records, NULL);
	return count;
}

static size_t hear_all(struct desk *desk, const struct sw_sync *sync, size_t *ret_slices)
{
	struct sw_hearing hearing = {0};
	size_t count = 0;
	*ret_slices = 0;
	do {
		count += hear(desk, sync, &hearing);
		(*ret_slices)++;
	} while (hearing.more);
	return count;
}

/* A job on each GPU, all of them running; and some that wait. */
static void begin(struct desk *desk)
{
	size_t slices;
	for (size_t g = 0; g < GPUS; g++) {
		snprintf(uuids[g], sizeof uuids[g], "GPU-%zu", g);
		gpus[g] = (struct sw_sync_gpu){.uuid = uuids[g], .name = "g", .memory_bytes = UINT64_C(80) << 30};
	}
	struct sw_sync sync = make_sync(desk, 0);
	hear_all(desk, &sync, &slices);
	sync = make_sync(desk, 0);
	hear_all(desk, &sync, &slices);
	for (size_t j = 0; j < GPUS + MORE; j++) {
		uint64_t job = desk_submit(desk, "{\"command\": [\"a\"]}");
		runs[j] = (struct sw_sync_run){.id = {job, 1}, .state = SW_RUN_RUNNING, .reason = ""};
	}
	sync = make_sync(desk, GPUS);
	hear_all(desk, &sync, &slices);
	for (size_t j = 0; j < GPUS; j++)
		assert_string_equal(desk_state(desk, runs[j].id.job), "R");
}

/* All ends of many runs are heard, and no slice makes more than some records. */
static void test_many_ends(void **state)
{
	struct desk *desk = *state;
	struct sw_hearing hearing = {0};
	begin(desk);
	for (size_t j = 0; j < GPUS; j++)
		runs[j].state = SW_RUN_EXITED;
	struct sw_sync sync = make_sync(desk, GPUS);
	assert_int_equal(hear(desk, &sync, &hearing), GPUS);
	assert_true(hearing.more);
	assert_int_equal(hear(desk, &sync, &hearing), 0);
	assert_false(hearing.more);
	for (size_t j = 0; j < GPUS; j++)
		assert_string_equal(desk_state(desk, runs[j].id.job), "CD");
}

/* An agent that has forgotten all of its runs: all are lost, slice by slice. */
static void test_many_losses(void **state)
{
	struct desk *desk = *state;
	size_t slices;
	begin(desk);
	struct sw_sync sync = make_sync(desk, 0);
	assert_int_equal(hear_all(desk, &sync, &slices), GPUS);
	assert_int_equal(slices, 2);
}

/* What is left of a sync is dropped when the agent has said something newer: its silence about a
 * run that it got since means nothing. */
static void test_newer_word(void **state)
{
	struct desk *desk = *state;
	struct sw_hearing hearing = {0};
	size_t slices;
	begin(desk);
	for (size_t j = 0; j < GPUS; j++)
		runs[j].state = SW_RUN_EXITED;
	struct sw_sync old = make_sync(desk, GPUS);
	hear(desk, &old, &hearing);
	assert_true(hearing.more);
	/* The next jobs have their GPUs, and the agent runs them. */
	struct sw_sync newer = make_sync(desk, GPUS + MORE);
	hear_all(desk, &newer, &slices);
	assert_string_equal(desk_state(desk, runs[GPUS].id.job), "R");
	assert_int_equal(hear(desk, &old, &hearing), 0);
	assert_false(hearing.more);
	assert_string_equal(desk_state(desk, runs[GPUS].id.job), "R");
}

/* Which runs a sync speaks of: each is found, readable or not, and no other. */
static void test_told(void **state)
{
	(void)state;
	struct sw_sync_run said[] = {{.id = {7, 2}}, {.id = {3, 1}}, {.id = {7, 1}}};
	struct sw_unread unread[] = {{.has_id = true, .id = {3, 1}}, {.has_id = true, .id = {9, 1}}, {.id = {0, 0}}};
	const struct sw_sync sync = {.runs = said, .run_count = 3, .unread = unread, .unread_count = 3};
	struct sw_told told;
	assert_int_equal(sw_told_make(&sync, &told), 0);
	assert_int_equal(told.count, 5);
	for (size_t i = 0; i < 3; i++)
		assert_ptr_equal(sw_told_find(&told, said[i].id)->run, &said[i]);
	assert_null(sw_told_find(&told, (struct sw_run_id){9, 1})->run);
	assert_null(sw_told_find(&told, (struct sw_run_id){0, 0}));
	assert_null(sw_told_find(&told, (struct sw_run_id){7, 3}));
	assert_null(sw_told_find(&told, (struct sw_run_id){10, 1}));
	sw_told_release(&told);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DESK_TEST(test_many_ends),
		DESK_TEST(test_many_losses),
		DESK_TEST(test_newer_word),
		cmocka_unit_test(test_told),
	};
	return cmocka_run_group_tests(tests, desk_load_profiles, desk_unload_profiles);
}
