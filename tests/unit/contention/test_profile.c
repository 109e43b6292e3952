/* Job profiles: the data that ships, finding a model, and what follows from a profile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/number.h"
#include "contention/profile.h"
#include "unit/contention/models.h"

/* Every model that a public trace or paper names has a profile of its own under that spelling. */
static void test_known_names(void **state)
{
	(void)state;
	static const char *const names[] = {
		/* Tiresias */ "alexnet",
		"googlenet",
		"inception3",
		"inception4",
		"resnet101",
		"resnet152",
		"resnet50",
		"vgg11",
		"vgg16",
		"vgg19",
		/* Muri */ "a2c",
		"bert",
		"dqn",
		"gpt2",
		"resnet18",
		"shufflenet_v2_x1_0",
		/* Chronus */ "inception_v3",
		"mobilenet_v2",
		/* ElasticFlow, ITP, Pollux */ "deepspeech2",
		"cifar10",
		"imagenet",
		"ncf",
		"yolov3",
		"resnet50_cifar10",
		/* the profiling study */ "ResNet50",
		"Data2Vec",
		"DeepFM",
		"DLRM",
		"Transformer",
		"MobileNetV2",
		/* papers */ "ResNet-50",
		"Inception-V3",
		"BERT_base",
		"GNMT",
		"ESPnet",
		"LM",
		/* Gavel, Shockwave */ "A3C",
		"CycleGAN",
		"LM (batch size 5)",
		"LM (batch size 10)",
		"LM (batch size 20)",
		"LM (batch size 40)",
		"LM (batch size 80)",
		"Recommendation (batch size 512)",
		"Recommendation (batch size 1024)",
		"Recommendation (batch size 2048)",
		"Recommendation (batch size 4096)",
		"Recommendation (batch size 8192)",
		"ResNet-18 (batch size 16)",
		"ResNet-18 (batch size 32)",
		"ResNet-18 (batch size 64)",
		"ResNet-18 (batch size 128)",
		"ResNet-18 (batch size 256)",
		"ResNet-50 (batch size 16)",
		"ResNet-50 (batch size 32)",
		"ResNet-50 (batch size 64)",
		"ResNet-50 (batch size 128)",
		"Transformer (batch size 16)",
		"Transformer (batch size 32)",
		"Transformer (batch size 64)",
		"Transformer (batch size 128)",
		"Transformer (batch size 256)",
	};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		assert_non_null(model(names[i])->source);
}

/* Case and aliases lead to one profile; a name that only resembles one, or none at all, leads to
 * the default, which says so. */
static void test_find(void **state)
{
	(void)state;
	assert_ptr_equal(model("resnet50"), model("ResNet-50"));
	assert_ptr_equal(model("RESNET50"), model("resnet_50"));
	assert_ptr_equal(model("Inception_V3"), model("inception3"));
	static const char *const strangers[] = {"", "resnet5", "resnet500", "zzz", "!", "ResNet-18 (batch size 17)", "\xff\xfe"};
	for (size_t i = 0; i < sizeof strangers / sizeof strangers[0]; i++) {
		const struct sw_profile *found = sw_profiles_find(profiles, strangers[i]);
		assert_true(found->is_default);
		assert_string_equal(found->name, "default");
		assert_true(found->iteration_ns > 0);
	}
}

/* A batch size leads to the job type of that name where there is one, and is
 * of no account elsewhere. */
static void test_find_batch(void **state)
{
	(void)state;
	assert_ptr_equal(sw_profiles_find_batch(profiles, "ResNet-18", 64), model("ResNet-18 (batch size 64)"));
	assert_ptr_equal(sw_profiles_find_batch(profiles, "resnet-18", 65), model("resnet18"));
	assert_ptr_equal(sw_profiles_find_batch(profiles, "ResNet-18", 0), model("resnet18"));
	assert_ptr_equal(sw_profiles_find_batch(profiles, "resnet50", 64), model("resnet50"));
	assert_ptr_equal(sw_profiles_find_batch(profiles, "LM", 5), model("LM (batch size 5)"));
	assert_true(sw_profiles_find_batch(profiles, "zzz", 64)->is_default);
	char longest[300];
	memset(longest, 'x', sizeof longest - 1);
	longest[sizeof longest - 1] = '\0';
	assert_true(sw_profiles_find_batch(profiles, longest, 64)->is_default);
}

static void check(const struct sw_profile *profile)
{
	assert_true(profile->iteration_ns > 0);
	assert_true(profile->mem_persistent_bytes > 0);
	assert_in_range(profile->largest_tensor_bytes, 1, profile->model_bytes);
	for (int i = 0; i < SW_USE_COUNT; i++)
		assert_in_range(profile->use_milli[i], 0, 1000);
	for (int i = 1; i < SW_SPREAD_COUNT; i++)
		assert_true(profile->placement_milli[i] >= profile->placement_milli[i - 1]);
	assert_int_equal(profile->placement_milli[SW_SPREAD_GROUP], 1000);
	/* None needs more than an 80 GB GPU has, or the default cluster could not run it. */
	assert_true(profile->mem_persistent_bytes + profile->mem_ephemeral_bytes < UINT64_C(80) << 30);
}

/* Every profile that ships keeps the invariants, and is found under its own name. */
static void test_shipped(void **state)
{
	(void)state;
	size_t count = 0;
	for (const struct sw_profile *profile; (profile = sw_profiles_at(profiles, count)) != NULL; count++) {
		check(profile);
		assert_ptr_equal(model(profile->name), profile);
	}
	assert_true(count >= 50);
	check(sw_profiles_find(profiles, ""));
}

/* The six profiled models carry the study's figures, unestimated. */
static void test_study(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		uint16_t use[SW_USE_COUNT]; /* SM, memory pipeline, L2, reads, writes, PCIe, host CPU, host memory */
	} rows[] = {
		{"resnet50", {540, 460, 270, 270, 180, 0, 90, 260}},   {"data2vec", {290, 280, 200, 150, 120, 0, 100, 100}},
		{"deepfm", {50, 850, 270, 470, 380, 0, 90, 600}},      {"dlrm", {100, 40, 40, 40, 0, 0, 100, 920}},
		{"transformer", {360, 690, 370, 480, 200, 0, 80, 90}}, {"mobilenet_v2", {360, 630, 260, 320, 310, 0, 110, 420}},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		assert_memory_equal(model(rows[i].name)->use_milli, rows[i].use, sizeof rows[i].use);
		assert_false(model(rows[i].name)->estimated);
	}
	assert_true(model("vgg16")->estimated);
}

/* Skew: the values that Tiresias's tensor lists give, and a limit of 0.3 parts its
 * nine models as it did. */
static void test_skew(void **state)
{
	(void)state;
	assert_in_range(sw_profile_skew_milli(model("vgg16")), 740, 749);
	assert_in_range(sw_profile_skew_milli(model("alexnet")), 605, 614);
	assert_in_range(sw_profile_skew_milli(model("inception3")), 135, 144);
	assert_in_range(sw_profile_skew_milli(model("resnet50")), 105, 114);
	static const char *const together[] = {"vgg11", "vgg16", "vgg19", "alexnet"};
	static const char *const anywhere[] = {"resnet50", "resnet101", "resnet152", "inception3", "inception4"};
	for (size_t i = 0; i < 4; i++)
		assert_true(sw_profile_skew_milli(model(together[i])) > 300);
	for (size_t i = 0; i < 5; i++)
		assert_true(sw_profile_skew_milli(model(anywhere[i])) < 300);
}

/* VGG and AlexNet mind several nodes, ResNet-101 and Inception hardly; ResNet-50 as Philly measured
 * it, 114.8 against 98.0 images a second. */
static void test_placement(void **state)
{
	(void)state;
	assert_int_equal(sw_profile_placement_milli(model("resnet50"), SW_SPREAD_RACK, SW_SPREAD_GROUP), 1171);
	assert_true(model("vgg16")->placement_milli[SW_SPREAD_RACK] > 1500);
	assert_true(model("alexnet")->placement_milli[SW_SPREAD_RACK] > 1500);
	assert_true(model("inception3")->placement_milli[SW_SPREAD_RACK] < 1100);
	assert_true(model("resnet101")->placement_milli[SW_SPREAD_RACK] < 1100);

	/* What the cluster forces on a job of this size costs nothing on top; what goes
	 * beyond costs the ratio. */
	static const struct sw_profile made = {.placement_milli = {1000, 1100, 1320, 2000}};
	assert_int_equal(sw_profile_placement_milli(&made, SW_SPREAD_RACK, SW_SPREAD_RACK), 1000);
	assert_int_equal(sw_profile_placement_milli(&made, SW_SPREAD_NODE, SW_SPREAD_RACK), 1000);
	assert_int_equal(sw_profile_placement_milli(&made, SW_SPREAD_RACK, SW_SPREAD_NODE), 1200);
	assert_int_equal(sw_profile_placement_milli(&made, SW_SPREAD_CLUSTER, SW_SPREAD_GROUP), 2000);
}

/* Speed runs straight between the known numbers of GPUs and stays flat beyond the last. */
static void test_speed(void **state)
{
	(void)state;
	static const struct sw_profile made = {.scaling = {{2, 1800}, {4, 3000}}, .scaling_count = 2};
	assert_int_equal(sw_profile_speed_milli(&made, 0), 1000);
	assert_int_equal(sw_profile_speed_milli(&made, 1), 1000);
	assert_int_equal(sw_profile_speed_milli(&made, 2), 1800);
	assert_int_equal(sw_profile_speed_milli(&made, 3), 2400);
	assert_int_equal(sw_profile_speed_milli(&made, 4), 3000);
	assert_int_equal(sw_profile_speed_milli(&made, 4000000000), 3000);
	assert_int_equal(sw_profile_speed_milli(model("yolov3"), 8), 1395); /* may fall, where it was measured to fall */
}

/* Steps become time at the measured speed: Gavel's figures for one V100 and for four of them. */
static void test_duration_from_steps(void **state)
{
	(void)state;
	int64_t ns = 0;
	assert_int_equal(sw_profile_duration(model("ResNet-18 (batch size 16)"), 32353384, 0, 1, &ns), 0);
	assert_in_range(ns / SW_NS_PER_S, 999990, 1000010); /* 32.353384 steps a second */
	assert_int_equal(sw_profile_duration(model("ResNet-18 (batch size 128)"), 925982, 0, 4, &ns), 0);
	assert_in_range(ns / SW_NS_PER_S, 13230, 13245); /* 69.9505 steps a second */
}

/* Pollux's applications bring a total by batch; GPUs shorten it by their scaling;
 * other models know none. */
static void test_duration_from_totals(void **state)
{
	(void)state;
	static const struct sw_profile made = {.iteration_ns = 1,
					       .totals = {{100, 1000000}, {200, 3000000}},
					       .totals_count = 2,
					       .scaling = {{2, 2000}},
					       .scaling_count = 1};
	static const struct {
		uint32_t batch, gpus;
		int64_t ns;
	} cases[] = {{0, 1, 1000000},	{50, 1, 1000000},  {100, 1, 1000000}, {150, 1, 2000000},
		     {200, 1, 3000000}, {900, 1, 3000000}, {150, 2, 1000000}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		int64_t ns = 0;
		assert_int_equal(sw_profile_duration(&made, 0, cases[i].batch, cases[i].gpus, &ns), 0);
		assert_int_equal(ns, cases[i].ns);
	}
	int64_t ns = -7;
	assert_int_equal(sw_profile_duration(model("cifar10"), 0, 2048, 1, &ns), 0);
	assert_int_equal(ns, 4461 * SW_NS_PER_S);
	ns = -7;
	assert_int_equal(sw_profile_duration(model("vgg16"), 0, 32, 1, &ns), SW_ENOTFOUND);
	assert_int_equal(sw_profile_duration(model("vgg16"), INT64_MAX, 32, 1, &ns), SW_ELIMIT);
	assert_int_equal(ns, -7);
}

/* A small file that is right; the cases below break one thing each. */
#define DEFAULT_PART                                                                                                         \
	"default:\n  iteration_time: 1s\n  memory: {persistent: 1G, ephemeral: 1G}\n  tensors: {model: 100M, largest: 9M}\n" \
	"  use: {sm: 0.4, mem_pipe: 0.5, l2: 0.2, dram_read: 0.3, dram_write: 0.2, host_cpu: 0.1, host_mem: 0.2}\n"          \
	"  placement: {group: 1, node: 1, rack: 1.1, cluster: 1.2}\n  scaling: {2: 1.9}\n  source: x\nprofiles:\n"
#define ENTRY(name)                                                                                                        \
	"  - name: " name                                                                                                  \
	"\n    iteration_time: 1s\n    memory: {persistent: 1G, ephemeral: 1G}\n    tensors: {model: 100M, largest: 9M}\n" \
	"    use: {sm: 0.4, mem_pipe: 0.5, l2: 0.2, dram_read: 0.3, dram_write: 0.2, host_cpu: 0.1, host_mem: 0.2}\n"      \
	"    placement: {group: 1, node: 1, rack: 1.1, cluster: 1.2}\n    scaling: {2: 1.9}\n    source: y\n"

/* An entry that is like another takes over what it does not give itself, but not its totals. */
static void test_like(void **state)
{
	(void)state;
	static const char text[] =
		DEFAULT_PART ENTRY("a") "    totals: {8: 10s}\n"
					"  - {name: b, like: a, source: z, iteration_time: 2s, use: {sm: 1, mem_pipe: 0, l2: 0, "
					"dram_read: 0, dram_write: 0, host_cpu: 0, host_mem: 0, pcie: 0.7}}\n";
	SW_CLEANUP(sw_profiles_freep) struct sw_profiles *made = NULL;
	struct sw_err err = {0};
	assert_int_equal(sw_profiles_parse("p.yaml", text, strlen(text), &made, &err), 0);
	const struct sw_profile *b = sw_profiles_find(made, "B");
	assert_string_equal(b->source, "z");
	assert_int_equal(b->iteration_ns, 2 * SW_NS_PER_S);
	assert_int_equal(b->model_bytes, 100 << 20);
	assert_int_equal(b->use_milli[SW_USE_SM], 1000);
	assert_int_equal(b->use_milli[SW_USE_PCIE], 700);
	assert_int_equal(b->use_milli[SW_USE_L2], 0);
	assert_int_equal(b->busy_milli, 1000);
	assert_false(b->busy_known);
	assert_int_equal(b->totals_count, 0);
	assert_int_equal(sw_profiles_find(made, "a")->totals_count, 1);
}

/* How busy a job keeps the GPU comes from its own entry, else from the one that it is
 * like; where neither says it, it is the most used part of the GPU, and at least what
 * GPUs are busy on average. */
static void test_busy(void **state)
{
	(void)state;
	static const char text[] = DEFAULT_PART ENTRY("a") "    busy: 0.25\n"
							   "  - {name: b, like: a, source: z}\n"
							   "  - {name: c, like: b, source: z, busy: 0.5}\n";
	SW_CLEANUP(sw_profiles_freep) struct sw_profiles *made = NULL;
	struct sw_err err = {0};
	assert_int_equal(sw_profiles_parse("p.yaml", text, strlen(text), &made, &err), 0);
	assert_int_equal(sw_profiles_find(made, "a")->busy_milli, 250);
	assert_int_equal(sw_profiles_find(made, "b")->busy_milli, 250);
	assert_true(sw_profiles_find(made, "b")->busy_known);
	assert_int_equal(sw_profiles_find(made, "c")->busy_milli, 500);
	assert_int_equal(sw_profiles_find(made, "zzz")->busy_milli, SW_PROFILE_BUSY_MILLI);
	assert_false(sw_profiles_find(made, "zzz")->busy_known);
	SW_CLEANUP(sw_profiles_freep) struct sw_profiles *shipped = NULL;
	assert_int_equal(sw_profiles_load_default(&shipped, &err), 0);
	assert_true(sw_profiles_find(shipped, "dlrm")->busy_known && sw_profiles_find(shipped, "dlrm")->busy_milli == 800);
	assert_int_equal(sw_profiles_find(shipped, "CycleGAN")->busy_milli, 800); /* its SMs */
	assert_int_equal(sw_profiles_find(shipped, "A3C")->busy_milli, SW_PROFILE_BUSY_MILLI);
}

/* A profile is found again by its number; 0 and numbers of no profile are the default. */
static void test_numbers(void **state)
{
	(void)state;
	SW_CLEANUP(sw_profiles_freep) struct sw_profiles *shipped = NULL;
	assert_int_equal(sw_profiles_load_default(&shipped, NULL), 0);
	uint32_t count = 0;
	for (const struct sw_profile *profile; (profile = sw_profiles_at(shipped, count)) != NULL; count++) {
		assert_in_range(profile->number, 1, INT32_MAX);
		assert_ptr_equal(sw_profiles_by_number(shipped, profile->number), profile);
	}
	const struct sw_profile *unknown = sw_profiles_find(shipped, "zzz");
	assert_int_equal(unknown->number, 0);
	assert_ptr_equal(sw_profiles_by_number(shipped, 0), unknown);
	assert_ptr_equal(sw_profiles_by_number(shipped, INT32_MAX), unknown);
	assert_int_equal(sw_profiles_find(shipped, "resnet50")->number, 0x2b5c6a62); /* of the name, for ever: snapshots hold it */
}

/* Contradictions and slips are refused with file, line and reason. */
static void test_refused(void **state)
{
	(void)state;
	static const struct {
		const char *text, *detail;
	} cases[] = {
		{"profiles: []\n", "line 1: 'profiles' is empty"},
		{DEFAULT_PART "  - {name: a}\n", "line 10: a profile needs 'source'"},
		{DEFAULT_PART "  - {source: a}\n", "a profile needs 'name'"},
		{DEFAULT_PART "  - {name: a, source: b}\n", "line 10: a profile needs 'iteration_time'"},
		{DEFAULT_PART "  - {name: a, source: b, iteration_time: 1s}\n", "a profile needs 'memory'"},
		{DEFAULT_PART "  - {name: a, source: b, like: c}\n", "'like' names 'c', which is not the name of a profile above"},
		{DEFAULT_PART "  - {name: a, source: b, itertion_time: 1s}\n", "did you mean 'iteration_time'?"},
		{DEFAULT_PART ENTRY("a") ENTRY("A"), "line 18: the name 'a' is taken already in line 10"},
		{DEFAULT_PART ENTRY("a") "    aliases: [x, X]\n", "the name 'x' is taken already"},
		{DEFAULT_PART ENTRY("a") "  - {name: b, like: a, source: z, tensors: {model: 1M, largest: 2M}}\n",
		 "the largest tensor is larger than the model"},
		{DEFAULT_PART ENTRY("a") "  - {name: b, like: a, source: z, placement: {group: 1, node: 1.2, rack: 1.1, cluster: 2}}\n",
		 "cannot run faster when its GPUs are further apart ('rack' is below 'node')"},
		{DEFAULT_PART ENTRY("a") "  - {name: b, like: a, source: z, placement: {group: 0.9, node: 1, rack: 1, cluster: 1}}\n",
		 "'group' is 0.9, expected 1.000 to 100.000"},
		{DEFAULT_PART ENTRY("a") "  - {name: b, like: a, source: z, scaling: {4: 2, 2: 1}}\n",
		 "'2' must come before the larger number"},
		{DEFAULT_PART ENTRY("a") "  - {name: b, like: a, source: z, scaling: {1: 1}}\n",
		 "the key '1' must be a whole number from 2"},
		{DEFAULT_PART ENTRY("a") "  - {name: b, like: a, source: z, scaling: {two: 1}}\n", "the key 'two' must be a whole number"},
		{DEFAULT_PART ENTRY("a") "  - {name: b, like: a, source: z, use: {sm: 1.1, mem_pipe: 0}}\n",
		 "'sm' is 1.1, expected 0.000 to 1.000"},
		{DEFAULT_PART ENTRY("a") "  - {name: b, like: a, source: z, busy: 0}\n", "'busy' is 0, expected 0.001 to 1.000"},
		{DEFAULT_PART ENTRY("a") "  - {name: b, like: a, source: z, use: {sm: .nan}}\n",
		 "'sm' is '.nan', expected a decimal number"},
		{DEFAULT_PART ENTRY("a") "  - {name: b, like: a, source: z, totals: {8: 0s}}\n", "'8' is 0s, expected"},
		{DEFAULT_PART ENTRY("a") "  - just a word\n", "expected a profile, that is, a map"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct sw_profiles *made = NULL;
		struct sw_err err = {0};
		int r = sw_profiles_parse("p.yaml", cases[i].text, strlen(cases[i].text), &made, &err);
		if (r == 0)
			fail_msg("accepted: %s", cases[i].detail);
		assert_null(made);
		assert_string_equal(err.fact, "cannot read profiles 'p.yaml'");
		if (strstr(err.detail, cases[i].detail) == NULL)
			fail_msg("'%s' does not contain '%s'", err.detail, cases[i].detail);
	}
}

static bool is_not_a(void *user, const struct sw_profile *profile)
{
	(void)user;
	return strcmp(profile->name, "a") != 0;
}

/* Aim: profiles that are put over a copy are found by name and number, replace each other, leave
 * the original alone, and can be taken back one by one. */
static void test_copies(void **state)
{
	(void)state;
	SW_CLEANUP(sw_profiles_freep) struct sw_profiles *copy = NULL;
	assert_int_equal(sw_profiles_copy(profiles, &copy, NULL), 0);
	struct sw_profile own = *sw_profiles_find(profiles, "not known");
	own.is_default = false;
	own.is_own = true;
	own.source = "a test";
	static const char *const names[] = {"a", "b", "resnet50", "A"};
	for (uint16_t i = 0; i < 4; i++) {
		own.name = names[i];
		own.busy_milli = (uint16_t)(101 + i);
		assert_int_equal(sw_profiles_put(copy, &own, NULL, NULL), 0);
	}
	const struct sw_profile *a = sw_profiles_find(copy, "a"), *b = sw_profiles_find(copy, "b"),
				*built = sw_profiles_find(copy, "ResNet50");
	assert_true(a->busy_milli == 104 && b->busy_milli == 102 && built->busy_milli == 103);
	assert_ptr_equal(sw_profiles_by_number(copy, a->number), a);
	assert_ptr_equal(sw_profiles_by_number(copy, built->number), built);
	assert_true(a->number != b->number && a->number != 0 && built->number == sw_profiles_find(profiles, "resnet50")->number);
	assert_true(sw_profiles_find(profiles, "a")->is_default && !sw_profiles_find(profiles, "resnet50")->is_own);
	uint32_t number = a->number;
	assert_int_equal(sw_profiles_restore(copy, profiles, is_not_a, NULL, NULL), 0);
	assert_true(sw_profiles_find(copy, "a")->is_default && sw_profiles_by_number(copy, number)->is_default);
	assert_true(sw_profiles_find(copy, "b")->busy_milli == 102 && sw_profiles_find(copy, "resnet50")->busy_milli == 103);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_names),
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_find_batch),
		cmocka_unit_test(test_shipped),
		cmocka_unit_test(test_study),
		cmocka_unit_test(test_skew),
		cmocka_unit_test(test_placement),
		cmocka_unit_test(test_speed),
		cmocka_unit_test(test_duration_from_steps),
		cmocka_unit_test(test_duration_from_totals),
		cmocka_unit_test(test_like),
		cmocka_unit_test(test_busy),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_copies),
	};
	return cmocka_run_group_tests(tests, load_profiles, unload_profiles);
}
