/* Memory in stream order keeps that order: what a stream freed it may have at once,
 * others when it is over. */
#include <pthread.h>
#include <stdatomic.h>

#include "runtime/pool_job.h"

/* Until it gets what is at x: that its last user is done with it is found out sooner or later. What
 * it gets instead it keeps, and so asks ever less often. */
static void take_at(CUdeviceptr x, size_t bytes, CUstream stream)
{
	for (unsigned tries = 0; take(bytes, stream) != x; tries++) {
		if (tries == 50)
			fail_msg("never");
		for (unsigned i = 0; i < 1U << tries / 3; i++)
			doze();
	}
}

static bool overlap(CUdeviceptr x, CUdeviceptr y, size_t bytes)
{
	return x < y + bytes && y < x + bytes;
}

/* A stream that stands until it is let go. */
struct barrier {
	_Atomic bool open;
};

static void stand(void *barrier)
{
	while (!atomic_load(&((struct barrier *)barrier)->open))
		doze();
}

/* ---- the order of streams */

static void reuse(int socket)
{
	const size_t bytes = 20 * MiB;
	struct barrier barrier = {false};
	(void)socket;
	open_streams();
	set_threshold(standard, UINT64_MAX);
	CUdeviceptr x = take(bytes, a);
	assert_cuda(cuLaunchHostFunc(a, stand, &barrier));
	assert_cuda(cuMemsetD8Async(x, 1, bytes, a));
	assert_cuda(cuMemFreeAsync(x, a));
	/* The stream itself has it again at once, and no thread waited. */
	CUdeviceptr again = take(bytes, a);
	assert_true(again == x);
	assert_cuda(cuMemsetD8Async(again, 2, bytes, a));
	assert_cuda(cuMemFreeAsync(again, a));
	CUdeviceptr other = take(bytes, b);
	assert_false(overlap(other, x, bytes));
	assert_cuda(cuMemsetD8Async(other, 3, bytes, b));
	assert_cuda(cuStreamSynchronize(b));
	assert_int_equal(cuStreamQuery(a), CUDA_ERROR_NOT_READY);
	/* Neither a trim nor others' waits take it away from work that still has to come. */
	assert_cuda(cuMemPoolTrimTo(standard, 0));
	atomic_store(&barrier.open, true);
	assert_cuda(cuStreamSynchronize(a));
	expect(other, bytes, 3);
	/* Now any stream may have it. */
	assert_true(take(bytes, b) == x);
	assert_cuda(cuCtxSynchronize());
}

/* A stream has at once what it freed, and another one only when the first has got there. */
static void test_freed_memory_waits_for_its_stream(void **state)
{
	(void)state;
	run_job(reuse);
}

static void free_after_events(int socket)
{
	const size_t bytes = 100 * MiB;
	CUevent event = NULL;
	struct barrier barrier = {false};
	(void)socket;
	open_streams();
	set_threshold(standard, UINT64_MAX);
	CUdeviceptr x = take(bytes, a);
	assert_cuda(cuLaunchHostFunc(a, stand, &barrier));
	assert_cuda(cuMemsetD8Async(x, 1, bytes, a));
	assert_cuda(cuMemFreeAsync(x, a));
	assert_cuda(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	assert_cuda(cuEventRecord(event, a));
	CUdeviceptr y = take(bytes, b);
	assert_false(overlap(x, y, bytes));
	atomic_store(&barrier.open, true);
	/* The stream itself is not waited for. */
	assert_cuda(cuEventSynchronize(event));
	eventually(cuStreamQuery(a) == CUDA_SUCCESS);
	assert_true(take(bytes, b) == x);
	assert_cuda(cuEventDestroy_v2(event));
	assert_cuda(cuCtxSynchronize());
}

/* That a stream has got there is seen without waiting for it. */
static void test_what_is_over_is_found_out(void **state)
{
	(void)state;
	run_job(free_after_events);
}

static void destroy_streams(int socket)
{
	const size_t bytes = 8 * MiB;
	struct barrier barrier = {false};
	CUstream streams[40];
	CUdeviceptr y[40];
	(void)socket;
	open_streams();
	set_threshold(standard, UINT64_MAX);
	CUdeviceptr x = take(bytes, a);
	assert_cuda(cuLaunchHostFunc(a, stand, &barrier));
	assert_cuda(cuMemsetD8Async(x, 1, bytes, a));
	assert_cuda(cuMemFreeAsync(x, a));
	assert_cuda(cuStreamDestroy_v2(a));
	/* Any of these may have its handle; none has its order. */
	for (unsigned i = 0; i < 40; i++) {
		assert_cuda(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
		y[i] = take(bytes, streams[i]);
		assert_false(overlap(x, y[i], bytes));
	}
	atomic_store(&barrier.open, true);
	/* While nothing else of this size is free. */
	take_at(x, bytes, b);
	for (unsigned i = 0; i < 40; i++) {
		assert_cuda(cuMemFreeAsync(y[i], streams[i]));
		assert_cuda(cuStreamDestroy_v2(streams[i]));
	}
	assert_int_not_equal(cuMemAllocAsync(&x, bytes, streams[3]), CUDA_SUCCESS);
	assert_cuda(cuCtxSynchronize());
}

/* What a stream freed is safe when the stream is gone before its work, whatever has its handle
 * then. */
static void test_streams_that_are_destroyed(void **state)
{
	(void)state;
	run_job(destroy_streams);
}

static const size_t own_bytes = 8 * MiB;
static CUdeviceptr own_x, own_y;
static struct barrier own_barrier;

static void *free_in_own_stream(void *unused)
{
	assert_cuda(cuCtxSetCurrent(primary()));
	assert_cuda(cuMemAllocAsync_ptsz(&own_x, own_bytes, NULL));
	assert_cuda(cuLaunchHostFunc(CU_STREAM_PER_THREAD, stand, &own_barrier));
	assert_cuda(cuMemsetD8Async_ptsz(own_x, 1, own_bytes, NULL));
	assert_cuda(cuMemFreeAsync_ptsz(own_x, NULL));
	CUdeviceptr again = 0;
	assert_cuda(cuMemAllocAsync(&again, own_bytes, CU_STREAM_PER_THREAD));
	assert_true(again == own_x);
	assert_cuda(cuMemFreeAsync_ptsz(again, NULL));
	return unused;
}

static void *take_in_own_stream(void *unused)
{
	assert_cuda(cuCtxSetCurrent(primary()));
	assert_cuda(cuMemAllocAsync_ptsz(&own_y, own_bytes, NULL));
	assert_false(overlap(own_x, own_y, own_bytes));
	assert_cuda(cuMemFreeAsync_ptsz(own_y, NULL));
	return unused;
}

static void own_streams(int socket)
{
	pthread_t thread;
	(void)socket;
	open_streams();
	set_threshold(standard, UINT64_MAX);
	assert_int_equal(pthread_create(&thread, NULL, free_in_own_stream, NULL), 0);
	pthread_join(thread, NULL);
	assert_int_equal(pthread_create(&thread, NULL, take_in_own_stream, NULL), 0);
	pthread_join(thread, NULL);
	atomic_store(&own_barrier.open, true);
	take_at(own_x, own_bytes, NULL);
	assert_cuda(cuCtxSynchronize());
}

static void many_streams(int socket)
{
	enum { COUNT = 300 };
	CUstream streams[COUNT];
	CUdeviceptr x[COUNT];
	(void)socket;
	open_streams();
	set_threshold(standard, UINT64_MAX);
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < COUNT; i++) {
			assert_cuda(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
			x[i] = take(10000, streams[i]);
		}
		assert_int_equal(fixed(), 0);
		for (unsigned i = 0; i < COUNT; i++)
			assert_cuda(cuMemFreeAsync(x[i], streams[i]));
		assert_cuda(cuCtxSynchronize());
		assert_int_equal(figure(standard, CU_MEMPOOL_USED_CURRENT), 0);
		for (unsigned i = round; i < COUNT; i++)
			assert_cuda(cuStreamDestroy_v2(streams[i]));
	}
	assert_true(charged() < 32 * MiB);
}

/* More streams than are kept apart: their memory is ours all the same. */
static void test_many_streams(void **state)
{
	(void)state;
	run_job(many_streams);
}

/* Streams that each thread has for itself are as many streams, although all have one name. */
static void test_streams_of_threads(void **state)
{
	(void)state;
	run_job(own_streams);
}

/* ---- frees of either kind */

static void free_crosswise(int socket)
{
	const size_t bytes = 20 * MiB;
	struct barrier barrier = {false};
	CUdeviceptr plain = 0, small = 0;
	(void)socket;
	open_streams();
	CUdeviceptr x = take(bytes, a), y = take(1000, a);
	assert_cuda(cuMemAlloc_v2(&plain, bytes));
	assert_cuda(cuMemAlloc_v2(&small, 1000));
	assert_int_not_equal(cuMemFreeAsync(x + 512, a), CUDA_SUCCESS);
	assert_int_not_equal(cuMemFreeAsync(0x1000, a), CUDA_SUCCESS);
	assert_int_not_equal(cuMemFree_v2(x + 512), CUDA_SUCCESS);
	assert_cuda(cuLaunchHostFunc(a, stand, &barrier));
	assert_cuda(cuMemsetD8Async(plain, 1, bytes, a));
	assert_cuda(cuMemsetD8Async(small, 1, 1000, a));
	/* Plain memory goes when the stream gets there, and not before. */
	assert_cuda(cuMemFreeAsync(plain, a));
	assert_cuda(cuMemFreeAsync(small, a));
	assert_int_not_equal(cuMemFreeAsync(plain, a), CUDA_SUCCESS);
	uint64_t before = charged();
	assert_true(before >= 2 * bytes + UNIT);
	atomic_store(&barrier.open, true);
	eventually(charged() == before - bytes - UNIT);
	assert_cuda(cuStreamSynchronize(a));
	assert_int_not_equal(cuMemFree_v2(small), CUDA_SUCCESS);
	/* And memory of a pool at once, where it is freed without a stream. */
	assert_cuda(cuMemFree_v2(x));
	assert_cuda(cuMemFree_v2(y));
	assert_int_not_equal(cuMemFree_v2(x), CUDA_SUCCESS);
	assert_int_not_equal(cuMemFreeAsync(y, a), CUDA_SUCCESS);
	eventually(charged() == 0);
	assert_int_equal(gpu_used(), CONTEXT_BYTES);
}

/* Memory of pools may be freed without a stream, plain memory in one, and nothing twice. */
static void test_frees_of_either_kind(void **state)
{
	(void)state;
	run_job(free_crosswise);
}

static void run_short(int socket)
{
	const size_t bytes = 60 * MiB;
	(void)socket;
	open_streams();
	CUdeviceptr x = take(bytes, a), y = 0;
	assert_cuda(launch_spin(a, 20000000));
	assert_cuda(cuMemsetD8Async(x, 1, bytes, a));
	assert_cuda(cuMemFreeAsync(x, a));
	/* There is room for one of them. */
	assert_cuda(cuMemAllocAsync(&y, bytes, b));
	assert_cuda(cuMemsetD8Async(y, 2, bytes, b));
	assert_cuda(cuStreamSynchronize(b));
	expect(y, bytes, 2);
	assert_int_equal(cuMemAllocAsync(&x, bytes, a), CUDA_ERROR_OUT_OF_MEMORY);
}

/* Where memory is short, an allocation waits for what other streams are about to free. */
static void test_short_memory_waits_for_frees(void **state)
{
	(void)state;
	sw_share_page_host_budget(page(), 0);
	sw_share_page_limit(page(), 0, 100 * MiB + CONTEXT_BYTES);
	run_job(run_short);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		POOL_CASE(test_freed_memory_waits_for_its_stream),
		POOL_CASE(test_what_is_over_is_found_out),
		POOL_CASE(test_streams_that_are_destroyed),
		POOL_CASE(test_streams_of_threads),
		POOL_CASE(test_many_streams),
		POOL_CASE(test_frees_of_either_kind),
		POOL_CASE(test_short_memory_waits_for_frees),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
