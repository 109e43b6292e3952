/* How fast jobs run without neighbours, and what a world says of types of GPUs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "world/alone.h"

static const char *const names[] = {"gpu", "NVIDIA A100-SXM4-80GB", "Tesla V100", "NVIDIA A100X"};

static const char types_text[] = "base: measured\nname: mine\ngpu_types:\n"
				 "  a100: {speed: 2, power: 400 W, idle: 50, node: 1.2 kW}\n"
				 "  a100x: {speed: 1.5}\n"
				 "  v100: {speed: 0.5, power: 300W, models: {resnet50: 0.8, no-such-model: 4}}\n";

struct bench {
	struct sw_profiles *profiles;
	struct sw_alone *alone;
	struct sw_world *world;
};

static void open_bench(struct bench *bench, const char *text)
{
	struct sw_err err = {0};
	*bench = (struct bench){0};
	if (sw_world_parse("mine", text, strlen(text), &bench->world, &err) < 0)
		fail_msg("%s: %s", err.fact, err.detail);
	assert_int_equal(sw_profiles_load_default(&bench->profiles, NULL), 0);
	assert_int_equal(sw_alone_new(bench->profiles, &bench->alone, NULL), 0);
	sw_alone_set_placement(bench->alone, bench->world->placement_slowdown);
	assert_int_equal(sw_alone_set_types(bench->alone, &bench->world->gpu_types, names, 4), 0);
}

static void close_bench(struct bench *bench)
{
	sw_alone_free(bench->alone);
	sw_profiles_free(bench->profiles);
	sw_world_free(bench->world);
}

static uint32_t slow_on(const struct bench *bench, const char *model, uint64_t types)
{
	const struct sw_profile *profile = sw_profiles_find(bench->profiles, model);
	const struct sw_run_shape shape = {.model = profile->number, .gpus_asked = 4, .gpus = 4, .gpu_types = types};
	struct sw_scaler scaler = sw_alone_scaler(bench->alone);
	uint32_t slow = 0;
	assert_true(scaler.slow(scaler.context, &shape, &slow));
	assert_int_equal(slow, sw_alone_slow_milli(bench->alone, profile, &shape));
	return slow;
}

/* Aim: a type is what the world says of the longest name that is in its own, in any case, and a
 * gang runs at the speed of its slowest GPU, which may be another for its model. */
static void test_types(void **state)
{
	(void)state;
	struct bench bench;
	open_bench(&bench, types_text);
	const struct sw_gpu_types *types = sw_alone_types(bench.alone);
	assert_int_equal(types->count, 4);
	assert_string_equal(types->items[1].name, names[1]);
	assert_int_equal(types->items[0].speed_milli, 1000);
	assert_int_equal(types->items[0].busy_watts, 0);
	assert_int_equal(types->items[1].speed_milli, 2000);
	assert_int_equal(types->items[1].busy_watts, 400);
	assert_int_equal(types->items[1].idle_watts, 50);
	assert_int_equal(types->items[1].node_watts, 1200);
	assert_int_equal(types->items[2].busy_watts, 300);
	assert_int_equal(types->items[3].speed_milli, 1500);
	assert_true(sw_alone_has_speeds(bench.alone));
	assert_int_equal(slow_on(&bench, "bert", 0x1), 1000);
	assert_int_equal(slow_on(&bench, "bert", 0x2), 500);
	assert_int_equal(slow_on(&bench, "bert", 0x4), 2000);
	assert_int_equal(slow_on(&bench, "bert", 0x6), 2000);
	assert_int_equal(slow_on(&bench, "resnet50", 0x4), 1250);
	assert_int_equal(slow_on(&bench, "resnet50", UINT64_C(1) << 40), 1000); /* of no type that is known */
	close_bench(&bench);
}

/* Aim: without types and in a good place a job is as fast as its trace says; a poor place slows it
 * by its profile, and another number of GPUs by its scaling, or in proportion where places do not
 * matter. */
static void test_place_and_number(void **state)
{
	(void)state;
	for (int places = 0; places < 2; places++) {
		struct bench bench;
		uint32_t slow = 0;
		open_bench(&bench, places ? "base: measured\nname: mine\n" : "base: ideal\nname: mine\n");
		struct sw_scaler scaler = sw_alone_scaler(bench.alone);
		const struct sw_profile *profile = sw_profiles_find(bench.profiles, "vgg16");
		struct sw_run_shape shape = {.model = profile->number, .gpus_asked = 4, .gpus = 4};
		assert_false(sw_alone_has_speeds(bench.alone));
		assert_true(scaler.slow(scaler.context, &shape, &slow));
		assert_int_equal(slow, 1000);
		shape.distance = SW_ACROSS_RACKS;
		assert_true(scaler.slow(scaler.context, &shape, &slow));
		assert_int_equal(slow, places ? sw_profile_placement_milli(profile, SW_SPREAD_CLUSTER, SW_SPREAD_GROUP) : 1000);
		shape.distance = 0;
		shape.gpus = 2;
		assert_true(scaler.slow(scaler.context, &shape, &slow));
		assert_int_equal(slow, places ? 1000 * sw_profile_speed_milli(profile, 4) / sw_profile_speed_milli(profile, 2) : 2000);
		/* A guess, where its model has no profile and that matters. */
		shape.model = 0;
		assert_true(scaler.slow(scaler.context, &shape, &slow) == !places);
		shape.split_milli = 1100;
		(void)scaler.slow(scaler.context, &shape, &slow);
		assert_int_equal(slow, 1100);
		close_bench(&bench);
	}
}

/* Aim: a world whose types make no sense is refused with its line, and one that does is told to
 * people. */
static void test_refused_and_told(void **state)
{
	(void)state;
	static const struct {
		const char *types, *part;
	} cases[] = {
		{"{v100: {speed: 0}}", "'speed'"},
		{"{v100: {speed: 2000000}}", "'speed'"},
		{"{v100: {power: 10, idle: 20}}", "'idle'"},
		{"{v100: {power: -5}}", "'power'"},
		{"{v100: {power: 5 horses}}", "a power such"},
		{"{v100: 3}", "a type of GPUs"},
		{"{v100: {models: {resnet50: x}}}", "resnet50"},
		{"{v100: {sped: 1}}", "sped"},
	};
	for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
		struct sw_world *world = NULL;
		struct sw_err err = {0};
		char text[200], *said = NULL;
		int length = snprintf(text, sizeof text, "base: measured\nname: mine\ngpu_types: %s\n", cases[c].types);
		assert_int_equal(sw_world_parse("mine", text, (size_t)length, &world, &err), SW_EINPUT);
		assert_true(asprintf(&said, "%s %s", err.fact, err.detail) > 0);
		if (strstr(said, cases[c].part) == NULL || strstr(said, "line 3") == NULL)
			fail_msg("'%s' does not name '%s' in line 3", said, cases[c].part);
		free(said);
	}
	struct bench bench;
	open_bench(&bench, types_text);
	char *told = sw_world_describe(bench.world);
	assert_non_null(strstr(told, "GPU type v100: 0.500 times the speed of the reference, another for 2 models, busy 300 W"));
	assert_non_null(strstr(told, "busy 400 W, idle 50 W, a node without its GPUs 1200 W"));
	free(told);
	close_bench(&bench);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_place_and_number),
		cmocka_unit_test(test_refused_and_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
