/* Contexts: what they take, that they wait for room, and what goes with them. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/job.h"

/* Beside the context, which always counts. */
static uint64_t charged(void)
{
	return look().gpus[0].charged_bytes - CONTEXT_BYTES;
}

/* ---- room for them */

static void appear(int socket)
{
	open_driver();
	tell(socket, 'r');
}

static void make_context(int socket)
{
	(void)socket;
	open_driver();
	assert_int_equal(look().gpus[0].charged_bytes, 5 * MiB);
	assert_int_equal(look().gpus[0].fixed_bytes, 5 * MiB);
}

/* What a context takes is found out once for a job, and goes by what was found
 * for all of its processes. */
static void test_contexts_are_measured_once(void **state)
{
	(void)state;
	struct sw_page *shared = raw_page(page_path());
	struct job job = start(appear);
	hear(job.socket, 'r');
	assert_int_equal(atomic_load(&shared->gpus[0].context_bytes), CONTEXT_BYTES);
	end(&job);
	atomic_store(&shared->gpus[0].context_bytes, 5 * MiB);
	run_job(make_context);
}

static void fill_the_gpu(int socket)
{
	CUdeviceptr x = 0;
	open_driver();
	assert_cuda(cuMemAlloc_v2(&x, 490 * MiB));
	tell(socket, 'r');
	hear(socket, 'f');
	assert_cuda(cuMemFree_v2(x));
	hear(socket, 'e');
}

/* A stranger to the job. */
static struct job start_outside(void (*run)(int socket))
{
	unsetenv(SW_PAGE_ENV);
	struct job job = start(run);
	setenv(SW_PAGE_ENV, page_path(), 1);
	return job;
}

static void find_no_room(int socket)
{
	CUcontext context;
	(void)socket;
	assert_cuda(cuInit(0));
	assert_int_equal(cuDevicePrimaryCtxRetain(&context, 0), CUDA_ERROR_OUT_OF_MEMORY);
}

static void appear_and_stay(int socket)
{
	appear(socket);
	hear(socket, 'e');
}

/* A context for which the GPU has no room fails at once where there is no coordinator;
 * else its process says what it lacks and waits, can be suspended meanwhile, and goes
 * on when there is room. */
static void test_contexts_wait_for_room(void **state)
{
	(void)state;
	struct sw_share_figures figures;
	struct job full = start_outside(fill_the_gpu);
	hear(full.socket, 'r');
	run_job(find_no_room);
	assert_true(sw_share_page_keep(page()));
	atomic_store(&raw_page(page_path())->gpus[0].context_bytes, CONTEXT_BYTES);
	struct job late = start(appear_and_stay);
	eventually(look().gpus[0].wanted_bytes == CONTEXT_BYTES);
	suspend();
	figures = look();
	assert_true(figures.suspended == 1 && figures.gpus[0].wanted_bytes == CONTEXT_BYTES);
	resume();
	figures = look();
	assert_true(figures.gpus[0].charged_bytes == 0 && figures.gpus[0].wanted_bytes == CONTEXT_BYTES);
	tell(full.socket, 'f');
	hear(late.socket, 'r');
	figures = look();
	assert_true(figures.gpus[0].charged_bytes == CONTEXT_BYTES && figures.gpus[0].wanted_bytes == 0);
	tell(late.socket, 'e');
	end(&late);
	tell(full.socket, 'e');
	end(&full);
}
/* ---- their end */

static void lose_contexts(int socket)
{
	CUdeviceptr x = 0, y = 0, z = 0;
	CUcontext own = NULL;
	CUarray array = NULL;
	char byte = 9, found = 0;
	(void)socket;
	open_driver();
	assert_cuda(cuMemAlloc_v2(&x, 20 * MiB));
	assert_cuda(cuCtxCreate_v2(&own, 0, 0));
	assert_cuda(cuMemAlloc_v2(&y, 10 * MiB));
	assert_cuda(cuMemAlloc_v2(&z, 100));
	assert_cuda(cuMemcpyHtoD_v2(y, &byte, 1));
	assert_int_equal(charged(), CONTEXT_BYTES + 32 * MiB);
	/* The primary context goes; the other keeps what it has. */
	assert_cuda(cuDevicePrimaryCtxReset_v2(0));
	assert_int_equal(charged(), 12 * MiB);
	suspend();
	resume();
	assert_cuda(cuMemcpyDtoH_v2(&found, y, 1));
	assert_int_equal(found, 9);
	assert_cuda(cuMemAllocManaged(&x, 4 * MiB, 1));
	assert_cuda(cuArrayCreate_v2(&array, &(CUarrayShape){1024, 1024, 0x20, 1}));
	assert_int_equal(charged(), 20 * MiB);
	/* Without a context that lives nothing can be freed. */
	assert_cuda(cuCtxSetCurrent(NULL));
	assert_int_not_equal(cuMemFree_v2(y), CUDA_SUCCESS);
	assert_int_equal(charged(), 20 * MiB);
	assert_cuda(cuCtxSetCurrent(own));
	assert_cuda(cuCtxDestroy_v2(own));
	assert_int_equal(look().gpus[0].charged_bytes + look().gpus[0].fixed_bytes, 0);
	suspend();
	resume();
	/* One that comes back counts again, once. */
	CUcontext again = NULL;
	assert_cuda(cuDevicePrimaryCtxRetain(&again, 0));
	assert_cuda(cuDevicePrimaryCtxRetain(&again, 0));
	assert_int_equal(look().gpus[0].charged_bytes, CONTEXT_BYTES);
	assert_int_equal(look().gpus[0].fixed_bytes, CONTEXT_BYTES);
	assert_int_equal(gpu_used(), CONTEXT_BYTES);
}

/* What a context has goes with it, and only that. */
static void test_memory_goes_with_its_context(void **state)
{
	(void)state;
	run_job(lose_contexts);
}

static void keep_context(int socket)
{
	CUdeviceptr x = 0, y = 0;
	uint32_t word = 77, found = 0;
	(void)socket;
	open_driver();
	assert_cuda(cuMemAlloc_v2(&x, 4 * MiB));
	assert_cuda(cuMemAllocAsync(&y, 4 * MiB, NULL));
	assert_cuda(cuMemcpyHtoD_v2(x, &word, sizeof word));
	assert_cuda(cuMemFreeAsync(y, NULL));
	assert_int_equal(cuCtxDestroy_v2(primary()), CUDA_ERROR_INVALID_CONTEXT);
	suspend();
	assert_int_equal(gpu_used(), CONTEXT_BYTES);
	resume();
	assert_cuda(cuMemcpyDtoH_v2(&found, x, sizeof found));
	assert_int_equal(found, 77);
	assert_cuda(cuMemFree_v2(x));
	assert_cuda(cuCtxSynchronize());
	assert_int_equal(charged(), 0);
}

/* A context that the driver does not end keeps what it has. */
static void test_a_refused_end_costs_nothing(void **state)
{
	(void)state;
	run_job(keep_context);
}

static _Atomic int reset_result = -1;

static void *reset(void *unused)
{
	atomic_store(&reset_result, (int)cuDevicePrimaryCtxReset_v2(0));
	return unused;
}

static void reset_meanwhile(int socket)
{
	char held[160], faults[200];
	CUstream stream = NULL;
	CUdeviceptr x = 0;
	pthread_t thread;
	unsigned flags = 0;
	int active = 0;
	(void)socket;
	snprintf(held, sizeof held, "%s", beside("held"));
	open_driver();
	assert_cuda(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	assert_cuda(cuMemAlloc_v2(&x, 4 * MiB));
	assert_cuda(launch_spin(stream, SECOND / 10));
	/* It leaves when the stream is there: that is asked of the driver, and takes long. */
	assert_cuda(cuMemFreeAsync(x, stream));
	snprintf(faults, sizeof faults, "cuEventQuery:hold=%s\n", held);
	machine_faults(faults);
	eventually(access(held, F_OK) == 0);
	int64_t begun = now_ns();
	assert_int_equal(pthread_create(&thread, NULL, reset, NULL), 0);
	for (unsigned i = 0; i < 600; i++)
		doze();
	assert_cuda(cuDevicePrimaryCtxGetState(0, &flags, &active));
	/* The program is not held up for ever: on a busy machine that time may be over. */
	bool in_time = now_ns() - begun < SECOND;
	unlink(held);
	pthread_join(thread, NULL);
	assert_cuda(atomic_load(&reset_result));
	assert_true(active || !in_time);
	assert_int_equal(look().gpus[0].charged_bytes, 0);
}

/* A primary context goes when the runtime's own thread is out of it, whatever that does there. */
static void test_a_context_goes_when_nobody_is_in_it(void **state)
{
	(void)state;
	machine_faults("");
	run_job(reset_meanwhile);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, machine_up, machine_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_contexts_are_measured_once),		CASE(test_contexts_wait_for_room),
		CASE(test_memory_goes_with_its_context),	CASE(test_a_refused_end_costs_nothing),
		CASE(test_a_context_goes_when_nobody_is_in_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
