/* Which GPUs are a run's own, by its folder: the order, and where its supervisor has moved it. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/folder.h"
#include "agent/own_gpus.h"
#include "unit/agent/harness.h"

enum { GPUS = 64 };

static struct sw_gpu_source *describe(const struct harness *harness)
{
	char path[128];
	struct sw_gpu_source *gpus = NULL;
	snprintf(path, sizeof path, "%s/gpus.yaml", harness->state);
	FILE *file = fopen(path, "w");
	fprintf(file, "uuid_prefix: GPU-00000000\ngpus:\n  - name: Test\n    count: %d\n    memory: 16G\n", GPUS);
	fclose(file);
	assert_int_equal(sw_gpu_source_open(path, &gpus, NULL), 0);
	assert_int_equal(sw_gpu_source_count(gpus), GPUS);
	return gpus;
}

/* The folder of a run that is ordered for the first `count` GPUs, and for one that
 * the node does not have. */
static int make_folder(struct harness *harness, const struct sw_gpu_source *gpus, size_t count)
{
	const char *uuids[GPUS + 1];
	char name[SW_FOLDER_NAME_MAX];
	int folder = -1;
	for (size_t i = 0; i < count; i++)
		uuids[i] = sw_gpu_source_info(gpus, (uint32_t)i)->uuid;
	uuids[count] = "GPU-gone";
	struct sw_run_order order = {.node = "here",
				     .want = {.id = {harness->next_job++, 1},
					      .want = SW_WANT_RUN,
					      .gpus = {uuids, count + 1},
					      .spec = harness_spec(harness, "true"),
					      .grace_ms = -1}};
	assert_int_equal(sw_folder_create(harness->runs, &order, NULL), 0);
	assert_int_equal(sw_folder_open(harness->runs, sw_folder_name(order.want.id, name), &folder, NULL), 0);
	return folder;
}

/* All GPUs of the order are the run's own, however many a node has: a process that uses one of
 * them is no trespasser. */
static void test_many(void **state)
{
	struct harness *harness = *state;
	SW_CLEANUP(sw_gpu_source_closep) struct sw_gpu_source *gpus = describe(harness);
	struct sw_own_gpus own;
	int folder = make_folder(harness, gpus, GPUS - 1);
	sw_own_gpus_read(gpus, folder, &own);
	assert_int_equal(own.count, GPUS);
	for (uint32_t g = 0; g < GPUS - 1; g++)
		assert_true(sw_own_gpus_has(&own, g));
	assert_false(sw_own_gpus_has(&own, GPUS - 1));
	close(folder);
}

int main(int argc, char **argv)
{
	harness_main(argc, argv);
	const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_many, harness_set_up, harness_tear_down)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
