/* Streams and events of the emulated driver: order, waiting, the default
 * streams, modelled times. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unit/emu/driver.h"

enum { N = 256 };
#define MS 1000000ULL

static int open_driver(void **state)
{
	(void)state;
	driver_settings(SETTINGS);
	driver_open(false);
	return 0;
}

static int close_driver(void **state)
{
	(void)state;
	driver_clean_up();
	return 0;
}

static CUstream stream_of(unsigned flags)
{
	CUstream stream = NULL;
	assert_cuda(cuStreamCreate(&stream, flags));
	return stream;
}

static CUdeviceptr words(void)
{
	CUdeviceptr x = 0;
	assert_cuda(cuMemAlloc_v2(&x, N * 4));
	assert_cuda(cuMemsetD32_v2(x, 0, N));
	assert_cuda(cuCtxSynchronize());
	return x;
}

static void assert_stirred(CUdeviceptr x, int times)
{
	uint32_t wanted[N] = {0}, in[N];
	for (int i = 0; i < times; i++)
		stir_here(wanted, N);
	assert_cuda(cuMemcpyDtoH_v2(in, x, sizeof in));
	assert_memory_equal(in, wanted, sizeof in);
}

/* Work of a stream runs in order and the call returns before it is done. */
static void test_work_runs_in_order(void **state)
{
	(void)state;
	CUstream stream = stream_of(CU_STREAM_NON_BLOCKING);
	CUdeviceptr x = words();
	assert_cuda(driver_spin(stream, 50 * MS));
	for (int i = 0; i < 100; i++)
		assert_cuda(driver_stir(stream, x, N));
	assert_int_equal(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
	assert_cuda(cuStreamSynchronize(stream));
	assert_cuda(cuStreamQuery(stream));
	assert_stirred(x, 100);
	assert_cuda(cuStreamDestroy_v2(stream));
	assert_int_equal(cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
	assert_cuda(cuMemFree_v2(x));
}

/* A stream that is destroyed still does its work, and a thread that waits for the
 * context waits for that too. */
static void test_destroyed_stream_finishes(void **state)
{
	(void)state;
	CUstream stream = stream_of(CU_STREAM_NON_BLOCKING);
	CUevent event = NULL;
	CUdeviceptr x = words();
	assert_cuda(cuEventCreate(&event, 0));
	assert_cuda(driver_spin(stream, 20 * MS));
	assert_cuda(driver_stir(stream, x, N));
	assert_cuda(cuEventRecord(event, stream));
	assert_cuda(cuStreamDestroy_v2(stream));
	assert_cuda(cuEventSynchronize(event));
	assert_stirred(x, 1);
	stream = stream_of(CU_STREAM_NON_BLOCKING);
	assert_cuda(driver_spin(stream, 20 * MS));
	assert_cuda(driver_stir(stream, x, N));
	assert_cuda(cuStreamDestroy_v2(stream));
	assert_cuda(cuCtxSynchronize());
	assert_stirred(x, 2);
	assert_cuda(cuEventDestroy_v2(event));
	assert_cuda(cuMemFree_v2(x));
}

/* The default stream waits for blocking streams and they for it; non-blocking ones do not care. */
static void test_default_stream_orders_blocking_ones(void **state)
{
	(void)state;
	CUstream blocking = stream_of(CU_STREAM_DEFAULT), free_one = stream_of(CU_STREAM_NON_BLOCKING);
	CUdeviceptr x = words();
	assert_cuda(driver_spin(blocking, 30 * MS));
	assert_cuda(driver_stir(blocking, x, N));
	assert_cuda(driver_stir(NULL, x, N));
	assert_cuda(driver_stir(blocking, x, N));
	assert_cuda(cuStreamQuery(free_one));
	assert_int_equal(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	assert_cuda(cuStreamSynchronize(blocking));
	assert_stirred(x, 3);
	assert_cuda(driver_spin(NULL, 30 * MS));
	assert_cuda(cuMemsetD32Async(x, 0, N, NULL));
	assert_cuda(driver_stir(blocking, x, N));
	assert_cuda(cuStreamSynchronize(blocking));
	assert_stirred(x, 1);
	assert_cuda(cuStreamDestroy_v2(blocking));
	assert_cuda(cuStreamDestroy_v2(free_one));
	assert_cuda(cuMemFree_v2(x));
}

static void *use_own_default_stream(void *argument)
{
	CUdeviceptr x = *(CUdeviceptr *)argument;
	uint64_t n = N;
	assert_cuda(cuCtxSetCurrent(driver_context()));
	for (int i = 0; i < 50; i++)
		assert_cuda(cuLaunchKernel_ptsz(driver_kernel("stir"), 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&x, &n}, NULL));
	assert_cuda(cuStreamSynchronize_ptsz(NULL));
	return NULL;
}

/* Each thread has a default stream of its own by the per-thread entry points. */
static void test_per_thread_default_streams(void **state)
{
	(void)state;
	enum { THREADS = 4 };
	pthread_t threads[THREADS];
	CUdeviceptr x[THREADS];
	for (int i = 0; i < THREADS; i++) {
		x[i] = words();
		assert_int_equal(pthread_create(&threads[i], NULL, use_own_default_stream, &x[i]), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_stirred(x[i], 50);
		assert_cuda(cuMemFree_v2(x[i]));
	}
}

/* One stream waits for an event of another. */
static void test_streams_wait_for_events(void **state)
{
	(void)state;
	CUstream first = stream_of(CU_STREAM_NON_BLOCKING), second = stream_of(CU_STREAM_NON_BLOCKING);
	CUdeviceptr x = words();
	CUevent event = NULL;
	assert_cuda(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	for (int i = 0; i < 20; i++) {
		assert_cuda(driver_spin(first, MS));
		assert_cuda(driver_stir(first, x, N));
		assert_cuda(cuEventRecord(event, first));
		assert_cuda(cuStreamWaitEvent(second, event, 0));
		assert_cuda(driver_stir(second, x, N));
		assert_cuda(cuEventRecord(event, second));
		assert_cuda(cuStreamWaitEvent(first, event, 0));
	}
	assert_cuda(cuStreamSynchronize(second));
	assert_stirred(x, 40);
	assert_cuda(cuEventDestroy_v2(event));
	assert_cuda(cuStreamDestroy_v2(first));
	assert_cuda(cuStreamDestroy_v2(second));
	assert_cuda(cuMemFree_v2(x));
}

/* The time between two events is the modelled one, and at least that much passes outside. */
static void test_events_measure(void **state)
{
	(void)state;
	CUstream stream = stream_of(CU_STREAM_NON_BLOCKING);
	CUevent start = NULL, end = NULL, silent = NULL;
	float ms = 0;
	assert_cuda(cuEventCreate(&start, 0));
	assert_cuda(cuEventCreate(&end, 0));
	assert_cuda(cuEventCreate(&silent, CU_EVENT_DISABLE_TIMING));
	assert_int_equal(cuEventElapsedTime(&ms, start, end), CUDA_ERROR_INVALID_HANDLE);
	assert_cuda(cuEventQuery(start));
	assert_cuda(driver_spin(stream, MS));
	assert_cuda(cuEventRecord(start, stream));
	assert_cuda(driver_spin(stream, 40 * MS));
	assert_cuda(cuEventRecord(end, stream));
	assert_cuda(cuEventRecord(silent, stream));
	assert_int_equal(cuEventElapsedTime(&ms, start, end), CUDA_ERROR_NOT_READY);
	assert_cuda(cuEventSynchronize(end));
	assert_cuda(cuStreamSynchronize(stream));
	assert_cuda(cuEventElapsedTime(&ms, start, end));
	assert_true(ms >= 40.0F);
	assert_int_equal(cuEventElapsedTime(&ms, start, silent), CUDA_ERROR_INVALID_HANDLE);
	assert_cuda(cuEventDestroy_v2(start));
	assert_int_equal(cuEventQuery(start), CUDA_ERROR_INVALID_HANDLE);
	assert_cuda(cuEventDestroy_v2(end));
	assert_cuda(cuEventDestroy_v2(silent));
	assert_cuda(cuStreamDestroy_v2(stream));
}

static void count_call(void *data)
{
	atomic_fetch_add((atomic_int *)data, 1);
}

static void test_host_functions_run_in_order(void **state)
{
	(void)state;
	static atomic_int calls;
	CUstream stream = stream_of(CU_STREAM_NON_BLOCKING);
	atomic_store(&calls, 0);
	assert_cuda(driver_spin(stream, 20 * MS));
	for (int i = 0; i < 10; i++)
		assert_cuda(cuLaunchHostFunc(stream, count_call, &calls));
	assert_cuda(cuStreamSynchronize(stream));
	assert_int_equal(atomic_load(&calls), 10);
	assert_int_equal(cuLaunchHostFunc(stream, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuStreamDestroy_v2(stream));
}

/* What the host gave in its own memory is read before the call returns. */
static void test_pageable_memory_may_change_after_the_call(void **state)
{
	(void)state;
	CUstream stream = stream_of(CU_STREAM_NON_BLOCKING);
	CUdeviceptr x = words();
	uint32_t source[N], in[N];
	memset(source, 5, sizeof source);
	assert_cuda(driver_spin(stream, 20 * MS));
	assert_cuda(cuMemcpyHtoDAsync_v2(x, source, sizeof source, stream));
	memset(source, 6, sizeof source);
	assert_cuda(cuMemcpyDtoHAsync_v2(in, x, sizeof in, stream));
	assert_int_equal(in[0], 0x05050505);
	assert_cuda(cuStreamDestroy_v2(stream));
	assert_cuda(cuMemFree_v2(x));
}

static void *hammer(void *argument)
{
	CUdeviceptr x = *(CUdeviceptr *)argument;
	CUstream stream = NULL;
	CUevent event = NULL;
	assert_cuda(cuCtxSetCurrent(driver_context()));
	assert_cuda(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	assert_cuda(cuEventCreate(&event, 0));
	for (int i = 0; i < 200; i++) {
		CUdeviceptr other = 0;
		assert_cuda(driver_stir(stream, x, N));
		assert_cuda(cuEventRecord(event, stream));
		if (i % 10 == 0) {
			assert_cuda(cuMemAlloc_v2(&other, (size_t)i * 3000 + 1));
			assert_cuda(cuEventSynchronize(event));
			assert_cuda(cuMemFree_v2(other));
		}
	}
	assert_cuda(cuStreamSynchronize(stream));
	assert_cuda(cuEventDestroy_v2(event));
	assert_cuda(cuStreamDestroy_v2(stream));
	return NULL;
}

/* Many threads at once: nothing is lost, nothing is mixed up. */
static void test_threads(void **state)
{
	(void)state;
	enum { THREADS = 8 };
	pthread_t threads[THREADS];
	CUdeviceptr x[THREADS];
	for (int i = 0; i < THREADS; i++) {
		x[i] = words();
		assert_int_equal(pthread_create(&threads[i], NULL, hammer, &x[i]), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_stirred(x[i], 200);
		assert_cuda(cuMemFree_v2(x[i]));
	}
}

/* A second context has its own streams; destroying it gives back what it took. */
static void test_contexts(void **state)
{
	(void)state;
	CUcontext context = NULL, current = NULL, popped = NULL;
	CUdeviceptr x = 0;
	size_t before = driver_free_bytes();
	assert_cuda(cuCtxCreate_v2(&context, 0, 0));
	assert_cuda(cuCtxGetCurrent(&current));
	assert_ptr_equal(current, context);
	assert_int_equal(before - driver_free_bytes(), 16 * MiB);
	assert_cuda(cuMemAlloc_v2(&x, 10 * MiB));
	assert_cuda(cuCtxPopCurrent_v2(&popped));
	assert_ptr_equal(popped, context);
	assert_cuda(cuCtxDestroy_v2(context));
	assert_int_equal(driver_free_bytes(), before);
	assert_int_equal(cuCtxDestroy_v2(context), CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(cuCtxSetCurrent(context), CUDA_ERROR_INVALID_CONTEXT);
	assert_cuda(cuCtxSetCurrent(NULL));
	assert_int_equal(cuMemAlloc_v2(&x, 100), CUDA_ERROR_INVALID_CONTEXT);
	assert_cuda(cuCtxSetCurrent(driver_context()));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_work_runs_in_order),
		cmocka_unit_test(test_destroyed_stream_finishes),
		cmocka_unit_test(test_default_stream_orders_blocking_ones),
		cmocka_unit_test(test_per_thread_default_streams),
		cmocka_unit_test(test_streams_wait_for_events),
		cmocka_unit_test(test_events_measure),
		cmocka_unit_test(test_host_functions_run_in_order),
		cmocka_unit_test(test_pageable_memory_may_change_after_the_call),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_contexts),
	};
	return cmocka_run_group_tests(tests, open_driver, close_driver);
}
