/* Faults on demand, and settings that are wrong. Each case runs in a process of its own, which
 * initialises the driver anew. */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "unit/emu/driver.h"

static char control[64];

static int set_up(void **state)
{
	(void)state;
	driver_settings(SETTINGS);
	snprintf(control, sizeof control, "/tmp/sw-emu-control-%d", (int)getpid());
	return 0;
}

static int clean_up(void **state)
{
	(void)state;
	unlink(control);
	driver_clean_up();
	return 0;
}

static void failed(int signal)
{
	(void)signal;
	_exit(1);
}

static void in_process(const char *settings, const char *faults, void (*run)(void))
{
	pid_t pid = fork();
	if (pid == 0) {
		signal(SIGABRT, failed);
		setenv("CMOCKA_TEST_ABORT", "1", 1);
		setenv("SHAREWELL_EMU", settings, 1);
		setenv("SHAREWELL_EMU_FAULTS", faults, 1);
		run();
		_exit(0);
	}
	int status = -1;
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
}

static void third_allocation_fails(void)
{
	CUdeviceptr x = 0;
	driver_open(false);
	assert_cuda(cuMemAlloc_v2(&x, 3 * MiB));
	assert_cuda(cuMemAlloc_v2(&x, 3 * MiB));
	assert_int_equal(cuMemAlloc_v2(&x, 3 * MiB), CUDA_ERROR_OUT_OF_MEMORY);
	assert_cuda(cuMemAlloc_v2(&x, 3 * MiB));
}

static void host_memory_fails(void)
{
	CUmemHandle handle = 0;
	CUmemAllocationProp properties = driver_memory_of(CU_MEM_LOCATION_HOST_NUMA, 0);
	void *pinned = NULL;
	driver_open(false);
	assert_int_equal(cuMemCreate(&handle, PAGE, &properties, 0), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuMemHostAlloc(&pinned, 4096, 0), CUDA_ERROR_OUT_OF_MEMORY);
}

static void test_nth_calls_fail(void **state)
{
	(void)state;
	in_process(SETTINGS, "alloc:first=3:error=2", third_allocation_fails);
	in_process(SETTINGS, "cuMemCreate:error=2:count=9 cuMemHostAlloc:error=2", host_memory_fails);
}

static void launch_takes_long(void)
{
	struct timespec before, after;
	driver_open(false);
	clock_gettime(CLOCK_MONOTONIC, &before);
	assert_cuda(driver_spin(NULL, 0));
	clock_gettime(CLOCK_MONOTONIC, &after);
	assert_true((after.tv_sec - before.tv_sec) * 1000000000LL + after.tv_nsec - before.tv_nsec >= 30000000);
}

/* A delay is at least as long as asked for. */
static void test_delays(void **state)
{
	(void)state;
	in_process(SETTINGS, "cuLaunchKernel:delay_us=30000", launch_takes_long);
}

static char held[64];

static void init_is_held(void)
{
	driver_open(false);
	assert_int_not_equal(access(held, F_OK), 0);
}

/* A call that is held makes a file, and goes on when it was removed. */
static void test_held(void **state)
{
	(void)state;
	char fault[96];
	snprintf(held, sizeof held, "/tmp/sw-emu-held-%d", (int)getpid());
	snprintf(fault, sizeof fault, "cuInit:hold=%s", held);
	pid_t remover = fork();
	if (remover == 0) {
		int tries = 60000;
		while (unlink(held) != 0 && tries-- > 0)
			usleep(1000);
		_exit(tries <= 0);
	}
	in_process(SETTINGS, fault, init_is_held);
	int status = -1;
	waitpid(remover, &status, 0);
	assert_int_equal(status, 0);
}

static void device_gets_lost(void)
{
	CUdeviceptr x = 0;
	CUcontext context = NULL;
	driver_open(false);
	assert_cuda(driver_spin(NULL, 1000));
	assert_int_equal(driver_spin(NULL, 1000), CUDA_ERROR_UNKNOWN);
	assert_int_equal(cuMemAlloc_v2(&x, 100), CUDA_ERROR_UNKNOWN);
	assert_int_equal(cuCtxSynchronize(), CUDA_ERROR_UNKNOWN);
	assert_int_equal(cuDevicePrimaryCtxRetain(&context, 1), CUDA_ERROR_DEVICE_UNAVAILABLE);
}

/* A lost GPU is lost for all processes, until the shared file goes. */
static void test_lost_device(void **state)
{
	(void)state;
	char settings[256];
	snprintf(settings, sizeof settings, "%s;state=/tmp/unused", SETTINGS);
	const char *own = getenv("SHAREWELL_EMU_STATE");
	char other[256], command[600];
	snprintf(other, sizeof other, "%s-lost", own);
	char *keep = strdup(own);
	setenv("SHAREWELL_EMU_STATE", other, 1);
	in_process(settings, "cuLaunchKernel:first=2:lose", device_gets_lost);
	setenv("SHAREWELL_EMU_STATE", keep, 1);
	snprintf(command, sizeof command, "rm -f '%s'*", other);
	assert_int_equal(system(command), 0);
	free(keep);
}

static void write_control(const char *text)
{
	char temporary[80];
	snprintf(temporary, sizeof temporary, "%s.new", control);
	FILE *file = fopen(temporary, "we");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	assert_int_equal(rename(temporary, control), 0);
	usleep(20000); /* it is looked at now and then */
}

static void follow_control(void)
{
	CUdeviceptr x = 0;
	driver_open(false);
	assert_cuda(cuMemAlloc_v2(&x, 100));
	write_control("cuMemAlloc_v2:error=2:count=1000\n");
	assert_int_equal(cuMemAlloc_v2(&x, 100), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuMemAlloc_v2(&x, 100), CUDA_ERROR_OUT_OF_MEMORY);
	write_control("");
	assert_cuda(cuMemAlloc_v2(&x, 100));
}

/* Faults come and go while a program runs. */
static void test_control_file(void **state)
{
	(void)state;
	char settings[256];
	snprintf(settings, sizeof settings, "%s;control=%s", SETTINGS, control);
	in_process(settings, "", follow_control);
}

static CUresult result_of_init;

static void init_only(void)
{
	void *library = dlopen(driver_library(false), RTLD_NOW | RTLD_LOCAL);
	CUresult (*init)(unsigned) = NULL;
	void *address = dlsym(library, "cuInit");
	memcpy(&init, &address, sizeof address);
	fclose(stderr);
	assert_int_equal(init(1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(init(0), result_of_init);
}

/* Settings that are not understood stop the driver; so does a machine without GPUs. */
static void test_bad_settings(void **state)
{
	(void)state;
	static const char *const bad[] = {"gpus=99",	      "memory=much", "colour=red",	  "gpus", "/no/such/file", "slice_us=0",
					  "gpu.77.memory=1G", "h2d=0",	     "fault=cuInit:often"};
	result_of_init = CUDA_ERROR_SYSTEM_NOT_READY;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		in_process(bad[i], "", init_only);
	result_of_init = CUDA_ERROR_NO_DEVICE;
	in_process("gpus=0", "", init_only);
}

static int devices_seen;

static void count_devices(void)
{
	int count = 0;
	driver_open(false);
	assert_cuda(cuDeviceGetCount(&count));
	assert_int_equal(count, devices_seen);
}

static void second_is_first(void)
{
	int bus = 0;
	driver_open(false);
	assert_cuda(cuDeviceGetAttribute(&bus, CU_DEVICE_PCI_BUS, 0));
	assert_int_equal(bus, 2);
}

/* CUDA_VISIBLE_DEVICES picks and orders devices, by number or by UUID. */
static void test_visible_devices(void **state)
{
	(void)state;
	static const char four[] = "gpus=4;memory=1G;context=16M;gpu.1.uuid=GPU-12345678-0000-0000-0000-000000000001";
	static const struct {
		const char *visible;
		int count;
	} cases[] = {{"0,1,2,3", 4}, {"1", 1}, {"2,0,9,1", 2}, {"GPU-12345678,3", 2}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		setenv("CUDA_VISIBLE_DEVICES", cases[i].visible, 1);
		devices_seen = cases[i].count;
		in_process(four, "", count_devices);
	}
	setenv("CUDA_VISIBLE_DEVICES", "1,0", 1);
	in_process(four, "", second_is_first);
	result_of_init = CUDA_ERROR_NO_DEVICE;
	for (const char *const *none = (const char *const[]){"", "-1", "1,1", "7", NULL}; *none != NULL; none++) {
		setenv("CUDA_VISIBLE_DEVICES", *none, 1);
		in_process(four, "", init_only);
	}
	unsetenv("CUDA_VISIBLE_DEVICES");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nth_calls_fail),	cmocka_unit_test(test_delays),	     cmocka_unit_test(test_held),
		cmocka_unit_test(test_lost_device),	cmocka_unit_test(test_control_file), cmocka_unit_test(test_bad_settings),
		cmocka_unit_test(test_visible_devices),
	};
	return cmocka_run_group_tests(tests, set_up, clean_up);
}
