/* Where GPUs come from, and description files as people write them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "gpu/backend.h"

static void assert_has(const char *text, const char *part)
{
	if (strstr(text, part) == NULL)
		fail_msg("'%s' does not contain '%s'", text, part);
}

static struct sw_gpu_source *parse(const char *text)
{
	struct sw_err err = {0};
	struct sw_gpu_source *gpus = NULL;
	if (sw_gpu_description_parse("g", text, strlen(text), &gpus, &err) < 0)
		fail_msg("%s: %s", err.fact, err.detail);
	return gpus;
}

/* "none" has no GPUs and says that it was asked for. */
static void test_none(void **state)
{
	(void)state;
	struct sw_err err = {0};
	SW_CLEANUP(sw_gpu_source_closep) struct sw_gpu_source *gpus = NULL;
	assert_int_equal(sw_gpu_source_open("none", &gpus, &err), 0);
	assert_int_equal(sw_gpu_source_count(gpus), 0);
	assert_string_equal(sw_gpu_source_about(gpus), "no GPUs: none were asked for");
}

/* "auto" never fails for want of a driver; "nvml" then fails with the reason that "auto" gives. */
static void test_auto(void **state)
{
	(void)state;
	struct sw_err err = {0};
	SW_CLEANUP(sw_gpu_source_closep) struct sw_gpu_source *found = NULL;
	SW_CLEANUP(sw_gpu_source_closep) struct sw_gpu_source *nvml = NULL;
	assert_int_equal(sw_gpu_source_open("auto", &found, &err), 0);
	int r = sw_gpu_source_open("nvml", &nvml, &err);
	if (r == 0) {
		assert_int_equal(sw_gpu_source_count(nvml), sw_gpu_source_count(found));
		assert_string_equal(sw_gpu_source_about(nvml), sw_gpu_source_about(found));
		return;
	}
	assert_int_equal(r, SW_ENOTFOUND);
	assert_null(nvml);
	assert_int_equal(sw_gpu_source_count(found), 0);
	assert_has(sw_gpu_source_about(found), err.detail);
	assert_true(err.hint[0] != '\0');
}

/* The example in the tree says what its comments say. */
static void test_example(void **state)
{
	(void)state;
	struct sw_err err = {0};
	SW_CLEANUP(sw_gpu_source_closep) struct sw_gpu_source *gpus = NULL;
	assert_int_equal(sw_gpu_source_open(SW_SOURCE_DIR "/examples/gpus.yaml", &gpus, &err), 0);
	assert_int_equal(sw_gpu_source_count(gpus), 4);
	assert_has(sw_gpu_source_about(gpus), "4 emulated GPUs from ");
	for (uint32_t i = 0; i < 4; i++) {
		const struct sw_gpu_info *info = sw_gpu_source_info(gpus, i);
		char uuid[48];
		snprintf(uuid, sizeof uuid, "GPU-e3000000-0000-0000-0000-00000000000%u", i);
		assert_string_equal(info->uuid, uuid);
		assert_string_equal(info->name, "Emulated A100");
		assert_int_equal(info->memory_bytes, 80ULL << 30);
		assert_int_equal(info->link_group, i / 2);
		assert_int_equal(info->numa_node, 0);
		struct sw_gpu_sample sample;
		assert_int_equal(sw_gpu_source_sample(gpus, i, &sample, &err), 0);
		assert_int_equal(sample.memory_total_bytes, 80ULL << 30);
		assert_int_equal(sample.memory_used_bytes, 0);
		assert_int_equal(sample.known, SW_GPU_KNOWS_MEMORY | SW_GPU_KNOWS_PROCESSES);
		assert_int_equal(sample.process_total, 0);
	}
}

/* Kinds follow one another: UUIDs count through, link groups never span two kinds, and defaults are
 * those of the comments. */
static void test_kinds(void **state)
{
	(void)state;
	SW_CLEANUP(sw_gpu_source_closep)
	struct sw_gpu_source *gpus =
		parse("uuid_prefix: GPU-00c0ffee\ngpus:\n  - {memory: 16G}\n  - {count: 5, memory: 32G, link_group: 2, "
		      "name: Big}\n  - {memory: 1M}\n");
	static const uint32_t groups[] = {0, 1, 1, 2, 2, 3, 4};
	assert_int_equal(sw_gpu_source_count(gpus), 7);
	for (uint32_t i = 0; i < 7; i++)
		assert_int_equal(sw_gpu_source_info(gpus, i)->link_group, groups[i]);
	assert_string_equal(sw_gpu_source_info(gpus, 0)->name, "Emulated GPU");
	assert_int_equal(sw_gpu_source_info(gpus, 0)->numa_node, -1);
	assert_string_equal(sw_gpu_source_info(gpus, 5)->name, "Big");
	assert_string_equal(sw_gpu_source_info(gpus, 6)->uuid, "GPU-00c0ffee-0000-0000-0000-000000000006");
	assert_int_equal(sw_gpu_source_info(gpus, 6)->memory_bytes, 1 << 20);
	SW_CLEANUP(sw_gpu_source_closep) struct sw_gpu_source *most = parse("gpus: [{count: 64, memory: 1G}]");
	assert_int_equal(sw_gpu_source_count(most), 64);
	assert_string_equal(sw_gpu_source_info(most, 63)->uuid, "GPU-e3000000-0000-0000-0000-00000000003f");
	assert_int_equal(sw_gpu_source_info(most, 63)->link_group, 0);
}

/* Broken descriptions are refused with their line. */
static void test_refused(void **state)
{
	(void)state;
	static const char *const cases[][2] = {
		{"", "line 1"},
		{"hello\n", "expected a description of GPUs, that is, a map"},
		{"gpus: []\n", "line 1: 'gpus' is empty"},
		{"gpus: 4\n", "line 1: 'gpus' is '4', expected a list"},
		{"uuid_prefix: GPU-00000000\n", "'gpus'"},
		{"gpus: [{count: 4}]\n", "'memory'"},
		{"gpus:\n  - memory: 80\n", "line 2: 'memory' is 80, expected 1.0 MiB to"},
		{"gpus:\n  - {memory: 1G, count: 0}\n", "line 2: 'count' is 0, expected 1 to 64"},
		{"gpus:\n  - {memory: 1G, count: 65}\n", "line 2: 'count' is 65, expected 1 to 64"},
		{"gpus:\n  - {memory: 1G, count: 60}\n  - {memory: 1G, count: 5}\n", "line 3: with these there are more than 64 GPUs"},
		{"gpus:\n  - {memory: 1G, count: 2, link_group: 3}\n", "line 2: 'link_group' is 3, but there are 2 GPUs"},
		{"gpus: [{memory: 1G, name: ''}]\n", "'name' has 0 bytes"},
		{"gpus: [{memory: 1G, numa_node: -1}]\n", "'numa_node' is -1"},
		{"gpus: [{memroy: 1G}]\n", "'memroy' is not a key of a kind of GPU; did you mean 'memory'?"},
		{"uuid_prefix: MIG-00000000\ngpus: [{memory: 1G}]\n", "'uuid_prefix' is 'MIG-00000000', expected 'GPU-' and eight digits"},
		{"uuid_prefix: GPU-0000000\ngpus: [{memory: 1G}]\n", "expected 'GPU-' and eight digits"},
		{"uuid_prefix: GPU-000000000\ngpus: [{memory: 1G}]\n", "expected 'GPU-' and eight digits"},
		{"uuid_prefix: GPU-0000000G\ngpus: [{memory: 1G}]\n", "expected 'GPU-' and eight digits"},
		{"uuid_prefix: GPU-ABCDEF00\ngpus: [{memory: 1G}]\n", "expected 'GPU-' and eight digits"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct sw_gpu_source *gpus = NULL;
		struct sw_err err = {0};
		if (sw_gpu_description_parse("g", cases[i][0], strlen(cases[i][0]), &gpus, &err) != SW_EINPUT)
			fail_msg("accepted: %s", cases[i][0]);
		assert_null(gpus);
		assert_string_equal(err.fact, "cannot read GPU description 'g'");
		assert_has(err.detail, cases[i][1]);
	}
}

/* Something that is neither a source nor a file says what a source may be. */
static void test_no_such_file(void **state)
{
	(void)state;
	struct sw_gpu_source *gpus = NULL;
	struct sw_err err = {0};
	assert_int_equal(sw_gpu_source_open("nvlm", &gpus, &err), SW_ENOTFOUND);
	assert_null(gpus);
	assert_has(err.fact, "nvlm");
	assert_has(err.hint, "'nvml'");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_none),  cmocka_unit_test(test_auto),    cmocka_unit_test(test_example),
		cmocka_unit_test(test_kinds), cmocka_unit_test(test_refused), cmocka_unit_test(test_no_such_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
