/* GPUs from a stand-in for NVIDIA's library, and what is said where library, driver,
 * function or GPU are missing. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "gpu/backend.h"
#include "gpu/nvml_abi.h"
#include "unit/gpu/fake/nvml.h"

static char folder[64];
enum { FULL, OLD, HALF, KINDS };
static char libraries[KINDS][96];

static void assert_has(const char *text, const char *part)
{
	if (strstr(text, part) == NULL)
		fail_msg("'%s' does not contain '%s'", text, part);
}

static int compile_fakes(void **state)
{
	(void)state;
	static const char *const flags[KINDS] = {"", "-DOLD", "-DHALF"};
	const char *compiler = getenv("CC") != NULL ? getenv("CC") : "cc";
	snprintf(folder, sizeof folder, "/tmp/sw-gpu-XXXXXX");
	if (mkdtemp(folder) == NULL)
		return -1;
	for (int i = 0; i < KINDS; i++) {
		char command[2000];
		snprintf(libraries[i], sizeof libraries[i], "%s/libfake%d.so", folder, i);
		snprintf(command, sizeof command,
			 "'%s' -std=gnu17 -shared -fPIC %s -I'%s/src' -I'%s/tests' -o '%s' '%s/tests/unit/gpu/fake/nvml.c'", compiler,
			 flags[i], SW_SOURCE_DIR, SW_SOURCE_DIR, libraries[i], SW_SOURCE_DIR);
		if (system(command) != 0)
			return -1;
	}
	return 0;
}

static int remove_fakes(void **state)
{
	(void)state;
	for (int i = 0; i < KINDS; i++)
		unlink(libraries[i]);
	return rmdir(folder);
}

/* The settings of a stand-in, which stays loaded: four equal GPUs without links. */
static struct fake *fake_of(int kind)
{
	static const char *const uuids[] = {
		"GPU-aaaaaaaa-0000-1111-2222-333333333333",
		"GPU-bbbbbbbb-0000-1111-2222-333333333333",
		"GPU-cccccccc-0000-1111-2222-333333333333",
		"GPU-dddddddd-0000-1111-2222-333333333333",
	};
	void *library = dlopen(libraries[kind], RTLD_NOW | RTLD_LOCAL);
	if (library == NULL)
		fail_msg("%s", dlerror());
	struct fake *fake = dlsym(library, "fake");
	assert_non_null(fake);
	memset(fake, 0, sizeof *fake);
	fake->count = 4;
	for (int i = 0; i < 4; i++)
		fake->gpus[i] = (struct fake_gpu){.uuid = uuids[i],
						  .name = "Fake H100",
						  .total = 80ULL << 30,
						  .free = 70ULL << 30,
						  .reserved = 1ULL << 30,
						  .bus = 0x3a + i};
	return fake;
}

static struct sw_gpu_source *must_open(int kind)
{
	struct sw_err err = {0};
	struct sw_gpu_source *gpus = NULL;
	if (sw_gpu_nvml_open(libraries[kind], &(struct sw_gpu_source_care){0}, &gpus, &err) < 0)
		fail_msg("%s: %s", err.fact, err.detail);
	return gpus;
}

static void absent(const char *library, const char *detail)
{
	struct sw_err err = {0};
	struct sw_gpu_source *gpus = NULL;
	assert_int_equal(sw_gpu_nvml_open(library, &(struct sw_gpu_source_care){0}, &gpus, &err), SW_ENOTFOUND);
	assert_null(gpus);
	assert_has(err.detail, detail);
}

/* What the driver says of a GPU arrives in its info, and the library is left in order. */
static void test_info(void **state)
{
	(void)state;
	struct fake *fake = fake_of(FULL);
	fake->gpus[2].mig = 1;
	struct sw_gpu_source *gpus = must_open(FULL);
	assert_int_equal(sw_gpu_source_count(gpus), 4);
	assert_string_equal(sw_gpu_source_about(gpus), "4 GPUs, NVIDIA driver 555.55");
	const struct sw_gpu_info *info = sw_gpu_source_info(gpus, 1);
	assert_string_equal(info->uuid, "GPU-bbbbbbbb-0000-1111-2222-333333333333");
	assert_string_equal(info->name, "Fake H100");
	assert_string_equal(info->bus_id, "fffe:3b:03.0");
	assert_int_equal(info->memory_bytes, 80ULL << 30);
	assert_int_equal(info->numa_node, -1);
	assert_false(info->partitioned);
	assert_true(sw_gpu_source_info(gpus, 2)->partitioned);
	assert_int_equal(fake->inits, 1);
	assert_int_equal(fake->shutdowns, 0);
	sw_gpu_source_close(gpus);
	assert_int_equal(fake->shutdowns, 1);
}

/* Without NVLink GPUs of one node of the machine are a group; groups stand
 * together and count from 0. */
static void test_groups_by_node(void **state)
{
	(void)state;
	struct fake *fake = fake_of(FULL);
	static const int nodes[] = {1, 0, 1, 0};
	for (int i = 0; i < 4; i++)
		fake->gpus[i].node = nodes[i];
	SW_CLEANUP(sw_gpu_source_closep) struct sw_gpu_source *gpus = must_open(FULL);
	static const char order[] = "acbd";
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(sw_gpu_source_info(gpus, i)->uuid[4], order[i]);
		assert_int_equal(sw_gpu_source_info(gpus, i)->link_group, i / 2);
	}
}

/* Where there is NVLink it alone makes the groups; GPUs without are alone. Samples follow
 * the order of the list. */
static void test_groups_by_nvlink(void **state)
{
	(void)state;
	struct fake *fake = fake_of(FULL);
	static const int links[] = {0, 5, 0, 5};
	for (int i = 0; i < 4; i++)
		fake->gpus[i].nvlink = links[i];
	fake->gpus[3].free = 1; /* to tell it from the others */
	SW_CLEANUP(sw_gpu_source_closep) struct sw_gpu_source *gpus = must_open(FULL);
	static const char order[] = "abdc";
	static const uint32_t groups[] = {0, 1, 1, 2};
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(sw_gpu_source_info(gpus, i)->uuid[4], order[i]);
		assert_int_equal(sw_gpu_source_info(gpus, i)->link_group, groups[i]);
		struct sw_gpu_sample sample;
		assert_int_equal(sw_gpu_source_sample(gpus, i, &sample, NULL), 0);
		assert_int_equal(sample.memory_used_bytes, order[i] == 'd' ? (79ULL << 30) - 1 : 9ULL << 30);
	}
}

/* A chain of links makes one group, also when its ends are not linked. */
static void test_groups_by_chain(void **state)
{
	(void)state;
	struct fake *fake = fake_of(FULL);
	static const int links[] = {0, 1, 2, 3};
	for (int i = 0; i < 4; i++)
		fake->gpus[i].nvlink = links[i];
	SW_CLEANUP(sw_gpu_source_closep) struct sw_gpu_source *gpus = must_open(FULL);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(sw_gpu_source_info(gpus, i)->uuid[4], "abcd"[i]);
		assert_int_equal(sw_gpu_source_info(gpus, i)->link_group, i > 0);
	}
}

/* Every figure of a sample is the driver's, in our units. */
static void test_sample(void **state)
{
	(void)state;
	struct fake *fake = fake_of(FULL);
	fake->gpus[0].processes = 4;
	SW_CLEANUP(sw_gpu_source_closep) struct sw_gpu_source *gpus = must_open(FULL);
	struct sw_gpu_sample sample;
	assert_int_equal(sw_gpu_source_sample(gpus, 0, &sample, NULL), 0);
	assert_int_equal(sample.known, (1 << 9) - 1);
	assert_int_equal(sample.utilisation_milli, 870);
	assert_int_equal(sample.memory_utilisation_milli, 430);
	assert_int_equal(sample.memory_total_bytes, 80ULL << 30);
	assert_int_equal(sample.memory_used_bytes, 9ULL << 30);
	assert_int_equal(sample.memory_reserved_bytes, 1ULL << 30);
	assert_int_equal(sample.power_mw, 312345);
	assert_int_equal(sample.energy_mj, 5000000000ULL);
	assert_int_equal(sample.temperature_c, 64);
	assert_int_equal(sample.sm_clock_mhz, 1410);
	assert_int_equal(sample.memory_clock_mhz, 1593);
	assert_int_equal(sample.ecc_corrected, 12);
	assert_int_equal(sample.ecc_uncorrected, 3);
	assert_int_equal(sample.process_total, 4);
	assert_int_equal(sample.process_count, 4);
	static const uint64_t memory[] = {1, 8, 0, 22};
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(sample.processes[i].pid, 1000 + i);
		assert_int_equal(sample.processes[i].memory_bytes, memory[i]);
	}
}

/* Of more processes than a sample holds the first are listed, of very many none;
 * the total is always true. */
static void test_many_processes(void **state)
{
	(void)state;
	struct fake *fake = fake_of(FULL);
	static const unsigned totals[] = {SW_GPU_PROCESSES_MAX, SW_GPU_PROCESSES_MAX + 1, 1024, 1025, 100000};
	static const unsigned listed[] = {SW_GPU_PROCESSES_MAX, SW_GPU_PROCESSES_MAX, SW_GPU_PROCESSES_MAX, 0, 0};
	SW_CLEANUP(sw_gpu_source_closep) struct sw_gpu_source *gpus = must_open(FULL);
	for (size_t i = 0; i < 5; i++) {
		struct sw_gpu_sample sample;
		fake->gpus[0].processes = totals[i];
		assert_int_equal(sw_gpu_source_sample(gpus, 0, &sample, NULL), 0);
		assert_true((sample.known & SW_GPU_KNOWS_PROCESSES) != 0);
		assert_int_equal(sample.process_total, totals[i]);
		assert_int_equal(sample.process_count, listed[i]);
	}
}

/* What a GPU does not support is not known; the rest of the sample is. */
static void test_unsupported(void **state)
{
	(void)state;
	struct fake *fake = fake_of(FULL);
	fake->gpus[0].other_code = NVML_NOT_SUPPORTED;
	fake->gpus[1].memory_code = NVML_NOT_SUPPORTED;
	fake->gpus[1].processes = 1;
	SW_CLEANUP(sw_gpu_source_closep) struct sw_gpu_source *gpus = must_open(FULL);
	assert_int_equal(sw_gpu_source_count(gpus), 4);
	assert_int_equal(sw_gpu_source_info(gpus, 1)->memory_bytes, 0);
	struct sw_gpu_sample sample;
	assert_int_equal(sw_gpu_source_sample(gpus, 0, &sample, NULL), 0);
	assert_int_equal(sample.known, SW_GPU_KNOWS_MEMORY);
	assert_int_equal(sample.utilisation_milli + sample.power_mw + sample.energy_mj + sample.ecc_corrected + sample.process_total, 0);
	assert_int_equal(sw_gpu_source_sample(gpus, 1, &sample, NULL), 0);
	assert_int_equal(sample.known, ((1 << 9) - 1) & ~SW_GPU_KNOWS_MEMORY);
	assert_int_equal(sample.memory_total_bytes + sample.memory_used_bytes, 0);
}

/* A GPU that falls off the bus fails its own samples, with the driver's words; the others go on. */
static void test_lost_later(void **state)
{
	(void)state;
	struct fake *fake = fake_of(FULL);
	SW_CLEANUP(sw_gpu_source_closep) struct sw_gpu_source *gpus = must_open(FULL);
	fake->gpus[1].memory_code = NVML_GPU_IS_LOST;
	struct sw_err err = {0};
	struct sw_gpu_sample sample = {.known = 77};
	assert_int_equal(sw_gpu_source_sample(gpus, 1, &sample, &err), SW_EIO);
	assert_int_equal(sample.known, 77);
	assert_has(err.fact, "GPU-bbbbbbbb");
	assert_string_equal(err.detail, "GPU is lost");
	assert_int_equal(sw_gpu_source_sample(gpus, 2, &sample, NULL), 0);
}

/* A GPU that reports an error of its own fails its samples from then on; an error that a program
 * brought about changes nothing, nor does one of a GPU that is not there. */
static void test_reports_an_error(void **state)
{
	(void)state;
	struct fake *fake = fake_of(FULL);
	SW_CLEANUP(sw_gpu_source_closep) struct sw_gpu_source *gpus = must_open(FULL);
	struct sw_err err = {0};
	struct sw_gpu_sample sample;
	assert_int_equal(sw_gpu_source_sample(gpus, 0, &sample, NULL), 0);
	static const unsigned long long harmless[] = {13, 31, 43, 45, 63, 94};
	for (size_t i = 0; i < sizeof harmless / sizeof harmless[0]; i++) {
		fake->xid = harmless[i];
		fake->xid_gpu = 1;
		for (uint32_t g = 0; g < 4; g++)
			assert_int_equal(sw_gpu_source_sample(gpus, g, &sample, NULL), 0);
		assert_int_equal(fake->xid, 0);
	}
	fake->xid = 79;
	assert_int_equal(sw_gpu_source_sample(gpus, 0, &sample, NULL), 0);
	for (int round = 0; round < 2; round++) {
		assert_int_equal(sw_gpu_source_sample(gpus, 1, &sample, &err), SW_EIO);
		assert_has(err.fact, "GPU-bbbbbbbb");
		assert_string_equal(err.detail, "it has reported error Xid 79");
	}
	assert_int_equal(sw_gpu_source_sample(gpus, 2, &sample, NULL), 0);
	/* Opened again, as after a reset and a new start, it is as good as new. */
	SW_CLEANUP(sw_gpu_source_closep) struct sw_gpu_source *again = must_open(FULL);
	assert_int_equal(sw_gpu_source_sample(again, 1, &sample, NULL), 0);
}

/* GPUs that cannot be used from the start are left out, and the line for
 * people says which and why. */
static void test_left_out(void **state)
{
	(void)state;
	struct fake *fake = fake_of(FULL);
	fake->gpus[1].uuid = NULL;
	fake->gpus[3].uuid = "GPU-this-is-longer-than-any-uuid-of-a-gpu-that-we-could-hold";
	struct sw_gpu_source *gpus = must_open(FULL);
	assert_int_equal(sw_gpu_source_count(gpus), 2);
	assert_int_equal(sw_gpu_source_info(gpus, 1)->uuid[4], 'c');
	assert_string_equal(sw_gpu_source_about(gpus), "2 GPUs, NVIDIA driver 555.55; 2 left out, the first is number 1 (GPU is lost)");
	sw_gpu_source_close(gpus);
	fake = fake_of(FULL);
	fake->count = FAKE_GPUS_MAX;
	for (int i = 4; i < FAKE_GPUS_MAX; i++)
		fake->gpus[i] = fake->gpus[0];
	gpus = must_open(FULL);
	assert_int_equal(sw_gpu_source_count(gpus), SW_GPUS_MAX);
	assert_has(sw_gpu_source_about(gpus), "6 more are left out");
	sw_gpu_source_close(gpus);
}

/* A machine with a driver and no GPU has none, and says so. */
static void test_no_gpu(void **state)
{
	(void)state;
	fake_of(FULL)->count = 0;
	SW_CLEANUP(sw_gpu_source_closep) struct sw_gpu_source *gpus = must_open(FULL);
	assert_int_equal(sw_gpu_source_count(gpus), 0);
	assert_string_equal(sw_gpu_source_about(gpus), "no GPUs: the NVIDIA driver 555.55 has none");
}

/* A very old library gives what it can. */
static void test_old(void **state)
{
	(void)state;
	struct fake *fake = fake_of(OLD);
	fake->gpus[0].processes = 5;
	SW_CLEANUP(sw_gpu_source_closep) struct sw_gpu_source *gpus = must_open(OLD);
	assert_int_equal(sw_gpu_source_count(gpus), 4);
	assert_has(sw_gpu_source_about(gpus), "unknown version");
	assert_int_equal(sw_gpu_source_info(gpus, 3)->link_group, 0);
	assert_string_equal(sw_gpu_source_info(gpus, 3)->bus_id, "");
	struct sw_gpu_sample sample;
	assert_int_equal(sw_gpu_source_sample(gpus, 0, &sample, NULL), 0);
	assert_int_equal(sample.known, SW_GPU_KNOWS_MEMORY | SW_GPU_KNOWS_PROCESSES);
	assert_int_equal(sample.memory_used_bytes, 10ULL << 30);
	assert_int_equal(sample.memory_reserved_bytes, 0);
	assert_int_equal(sample.process_count, 5);
	assert_int_equal(sample.processes[4].pid, 1004);
	assert_int_equal(sample.processes[4].memory_bytes, 29);
	fake->gpus[0].memory_code = NVML_GPU_IS_LOST;
	struct sw_err err = {0};
	assert_int_equal(sw_gpu_source_sample(gpus, 0, &sample, &err), SW_EIO);
	assert_string_equal(err.detail, "NVML error 15");
}

/* No library, no driver, or a library without what we need: no GPUs, with the reason;
 * what was begun is ended. */
static void test_absent(void **state)
{
	(void)state;
	absent("libnvidia-ml.so.no-such-version", "there is no NVIDIA driver (libnvidia-ml.so.no-such-version: cannot open");
	absent(libraries[HALF], "has no function nvmlDeviceGetUUID");
	struct fake *fake = fake_of(FULL);
	fake->init_code = NVML_DRIVER_NOT_LOADED;
	absent(libraries[FULL], "does not answer (Driver Not Loaded)");
	assert_int_equal(fake->shutdowns, 0);
	fake = fake_of(FULL);
	fake->count_code = 999;
	absent(libraries[FULL], "does not say how many GPUs there are (Something Else)");
	assert_int_equal(fake->shutdowns, 1);
	fake = fake_of(OLD);
	fake->init_code = 18;
	absent(libraries[OLD], "does not answer (NVML error 18)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_info),
		cmocka_unit_test(test_groups_by_node),
		cmocka_unit_test(test_groups_by_nvlink),
		cmocka_unit_test(test_groups_by_chain),
		cmocka_unit_test(test_sample),
		cmocka_unit_test(test_many_processes),
		cmocka_unit_test(test_unsupported),
		cmocka_unit_test(test_lost_later),
		cmocka_unit_test(test_reports_an_error),
		cmocka_unit_test(test_left_out),
		cmocka_unit_test(test_no_gpu),
		cmocka_unit_test(test_old),
		cmocka_unit_test(test_absent),
	};
	return cmocka_run_group_tests(tests, compile_fakes, remove_fakes);
}
