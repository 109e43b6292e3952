/* The emulated management library as the agent sees it. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu/backend.h"
#include "unit/emu/driver.h"

static int set_up(void **state)
{
	(void)state;
	driver_settings("gpus=2;memory=1G;context=16M;gpu.1.memory=2G;name=Emulated H200;launch_us=0");
	return 0;
}

static int clean_up(void **state)
{
	(void)state;
	driver_clean_up();
	return 0;
}

static struct sw_gpu_source *open_gpus(void)
{
	char path[1024];
	struct sw_gpu_source *gpus = NULL;
	struct sw_err err = {0};
	snprintf(path, sizeof path, "%s/emu/libnvidia-ml.so.1", getenv("SW_BUILD_DIR"));
	assert_int_equal(sw_gpu_nvml_open(path, &(struct sw_gpu_source_care){0}, &gpus, &err), 0);
	return gpus;
}

static struct sw_gpu_sample sample(struct sw_gpu_source *gpus, uint32_t index)
{
	struct sw_gpu_sample sample = {0};
	struct sw_err err = {0};
	assert_int_equal(sw_gpu_source_sample(gpus, index, &sample, &err), 0);
	return sample;
}

/* The GPUs of the settings, also with CUDA_VISIBLE_DEVICES set. */
static void test_gpus_are_found(void **state)
{
	(void)state;
	setenv("CUDA_VISIBLE_DEVICES", "1", 1);
	SW_CLEANUP(sw_gpu_source_closep) struct sw_gpu_source *gpus = open_gpus();
	unsetenv("CUDA_VISIBLE_DEVICES");
	assert_int_equal(sw_gpu_source_count(gpus), 2);
	assert_string_equal(sw_gpu_source_info(gpus, 0)->name, "Emulated H200");
	assert_int_equal(sw_gpu_source_info(gpus, 1)->memory_bytes, 2048 * MiB);
	assert_string_not_equal(sw_gpu_source_info(gpus, 0)->uuid, sw_gpu_source_info(gpus, 1)->uuid);
	assert_memory_equal(sw_gpu_source_info(gpus, 0)->uuid, "GPU-", 4);
	assert_false(sw_gpu_source_info(gpus, 0)->partitioned);
}

/* A child with 100 MiB on the first GPU, which it keeps busy. */
static pid_t start_busy_child(int *ret_pipe)
{
	int pipes[2];
	assert_int_equal(pipe(pipes), 0);
	pid_t pid = fork();
	if (pid == 0) {
		CUdeviceptr x = 0;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		driver_open(true);
		if (cuMemAlloc_v2(&x, 100 * MiB) != CUDA_SUCCESS || write(pipes[1], "g", 1) != 1)
			_exit(1);
		for (;;)
			if (driver_spin(NULL, 5000000) != CUDA_SUCCESS)
				_exit(1);
	}
	close(pipes[1]);
	*ret_pipe = pipes[0];
	return pid;
}

/* Memory, processes and load of a process that comes, works and is killed. */
static void test_what_a_process_uses(void **state)
{
	(void)state;
	SW_CLEANUP(sw_gpu_source_closep) struct sw_gpu_source *gpus = open_gpus();
	assert_int_equal(sample(gpus, 0).memory_used_bytes, 0);
	int go = -1;
	char word = 0;
	pid_t pid = start_busy_child(&go);
	assert_int_equal(read(go, &word, 1), 1);
	struct sw_gpu_sample now = sample(gpus, 0);
	assert_int_equal(now.memory_used_bytes, 116 * MiB);
	assert_int_equal(now.process_count, 1);
	assert_int_equal(now.processes[0].pid, pid);
	assert_int_equal(now.processes[0].memory_bytes, 116 * MiB);
	assert_int_equal(sample(gpus, 1).process_count, 0);
	for (int tries = 0; tries < 200 && sample(gpus, 0).utilisation_milli < 300; tries++)
		usleep(50000);
	now = sample(gpus, 0);
	assert_true(now.utilisation_milli >= 300);
	assert_true(now.power_mw > 60000);
	kill(pid, SIGKILL);
	int status = 0;
	waitpid(pid, &status, 0);
	assert_true(WIFSIGNALED(status));
	now = sample(gpus, 0);
	assert_int_equal(now.memory_used_bytes, 0);
	assert_int_equal(now.process_count, 0);
	for (int tries = 0; tries < 200 && sample(gpus, 0).utilisation_milli > 0; tries++)
		usleep(50000);
	assert_int_equal(sample(gpus, 0).utilisation_milli, 0);
	close(go);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gpus_are_found),
		cmocka_unit_test(test_what_a_process_uses),
	};
	return cmocka_run_group_tests(tests, set_up, clean_up);
}
