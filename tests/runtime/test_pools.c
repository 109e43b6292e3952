/* Memory in stream order moves like any other, and keeps the order: what a stream freed it may have at once, others when it is over.
 *
 * SW_SEED=n repeats one run of the random cases; the seed of a failure is printed.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/job.h"

static CUmemoryPool standard;
static CUstream a, b;

static void open_streams(void)
{
	open_driver();
	assert_cuda(cuDeviceGetDefaultMemPool(&standard, 0));
	assert_cuda(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
	assert_cuda(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
}

static uint64_t figure(CUmemoryPool pool, int attribute)
{
	uint64_t value = 0;
	assert_cuda(cuMemPoolGetAttribute(pool, attribute, &value));
	return value;
}

static void set_threshold(CUmemoryPool pool, uint64_t bytes)
{
	assert_cuda(cuMemPoolSetAttribute(pool, CU_MEMPOOL_RELEASE_THRESHOLD, &bytes));
}

static uint64_t charged(void)
{
	return look().gpus[0].charged_bytes - CONTEXT_BYTES;
}

static uint64_t fixed(void)
{
	return look().gpus[0].fixed_bytes - CONTEXT_BYTES;
}

static CUdeviceptr take(size_t bytes, CUstream stream)
{
	CUdeviceptr x = 0;
	assert_cuda(cuMemAllocAsync(&x, bytes, stream));
	return x;
}

/* Until it gets what is at x: that its last user is done with it is found out sooner or later. What it gets instead it keeps, and so asks ever less often. */
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

/* At its ends, and in the middle. */
static void expect(CUdeviceptr x, size_t bytes, unsigned char value)
{
	static unsigned char found[1 << 16];
	size_t length = bytes < sizeof found ? bytes : sizeof found;
	const size_t offsets[] = {0, (bytes - length) / 2, bytes - length};
	for (unsigned i = 0; i < 3; i++) {
		assert_cuda(cuMemcpyDtoH_v2(found, x + offsets[i], length));
		for (size_t j = 0; j < length; j++)
			if (found[j] != value)
				fail_msg("byte %zu is %d, not %d", offsets[i] + j, found[j], value);
	}
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

/* ---- it moves */

static void move_about(int socket)
{
	const size_t sizes[] = {40 * MiB, 3 * MiB, 1000, 70 * MiB};
	CUdeviceptr x[4];
	uint64_t used = 0;
	(void)socket;
	open_streams();
	for (unsigned i = 0; i < 4; i++) {
		x[i] = take(sizes[i], a);
		used += (sizes[i] + 511) / 512 * 512;
		assert_cuda(cuMemsetD8Async(x[i], (unsigned char)(i + 1), sizes[i], a));
	}
	assert_int_equal(figure(standard, CU_MEMPOOL_USED_CURRENT), used);
	assert_int_equal(figure(standard, CU_MEMPOOL_RESERVED_CURRENT), charged());
	assert_int_equal(charged(), gpu_used() - CONTEXT_BYTES);
	assert_int_equal(fixed(), 0);
	suspend();
	assert_int_equal(gpu_used(), CONTEXT_BYTES);
	assert_true(look().gpus[0].host_bytes >= used);
	resume();
	for (unsigned i = 0; i < 4; i++)
		expect(x[i], sizes[i], (unsigned char)(i + 1));
	limit(CONTEXT_BYTES + 20 * MiB);
	assert_true(gpu_used() <= CONTEXT_BYTES + 20 * MiB);
	for (unsigned i = 0; i < 4; i++)
		expect(x[i], sizes[i], (unsigned char)(i + 1));
	/* A burst beyond the limit is spilled. */
	CUdeviceptr y = take(30 * MiB, b);
	assert_cuda(cuMemsetD8Async(y, 9, 30 * MiB, b));
	limit(SW_PAGE_NO_LIMIT);
	eventually(look().gpus[0].host_bytes == 0);
	assert_cuda(cuStreamSynchronize(b));
	expect(y, 30 * MiB, 9);
	for (unsigned i = 0; i < 4; i++)
		assert_cuda(cuMemFreeAsync(x[i], i % 2 == 0 ? a : b));
	assert_cuda(cuMemFreeAsync(y, a));
	assert_cuda(cuCtxSynchronize());
	assert_int_equal(charged(), 0);
	assert_int_equal(gpu_used(), CONTEXT_BYTES);
	assert_int_equal(figure(standard, CU_MEMPOOL_USED_CURRENT), 0);
	assert_int_equal(figure(standard, CU_MEMPOOL_RESERVED_CURRENT), 0);
	assert_true(figure(standard, CU_MEMPOOL_USED_HIGH) >= used && figure(standard, CU_MEMPOOL_RESERVED_HIGH) >= used);
	assert_cuda(cuMemPoolSetAttribute(standard, CU_MEMPOOL_USED_HIGH, &(uint64_t){0}));
	assert_int_equal(figure(standard, CU_MEMPOOL_USED_HIGH), 0);
}

/* Memory of a device's own pool is suspended, squeezed and spilled like any other, at the same addresses, and the pool's figures tell what it holds. */
static void test_memory_of_pools_moves(void **state)
{
	(void)state;
	run_job(move_about);
}

static void keep_idle(int socket)
{
	(void)socket;
	open_streams();
	set_threshold(standard, UINT64_MAX);
	CUdeviceptr x = take(100 * MiB, a), y = take(1000, a);
	assert_cuda(cuMemsetD8Async(y, 5, 1000, a));
	assert_cuda(cuMemFreeAsync(x, a));
	assert_cuda(cuStreamSynchronize(a));
	assert_true(charged() >= 100 * MiB);
	/* What the program has freed is not carried about. */
	suspend();
	assert_true(look().gpus[0].host_bytes < 100 * MiB);
	resume();
	expect(y, 1000, 5);
	assert_true(charged() < 100 * MiB);
	/* Nor does it keep others from room, or make them spill. */
	x = take(200 * MiB, a);
	assert_cuda(cuMemFreeAsync(x, a));
	assert_cuda(cuStreamSynchronize(a));
	limit(CONTEXT_BYTES + 250 * MiB);
	assert_cuda(cuMemAlloc_v2(&x, 150 * MiB));
	assert_int_equal(look().gpus[0].host_bytes, 0);
	CUdeviceptr z = take(60 * MiB, b);
	assert_cuda(cuMemFreeAsync(z, b));
	assert_cuda(cuStreamSynchronize(b));
	limit(CONTEXT_BYTES + 170 * MiB);
	assert_int_equal(look().gpus[0].host_bytes, 0);
	/* Nor from what cannot be spilled. */
	z = take(10 * MiB, b);
	assert_cuda(cuMemFreeAsync(z, b));
	assert_cuda(cuStreamSynchronize(b));
	assert_true(charged() >= 160 * MiB);
	assert_cuda(cuMemAllocManaged(&z, 12 * MiB, 1));
}

/* What a pool keeps and nobody uses is given up before anything is moved for its sake. */
static void test_idle_memory_is_not_moved(void **state)
{
	(void)state;
	run_job(keep_idle);
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
	/* The stream itself has it again at once, and nobody waited. */
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
	/* Now anybody may have it. */
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
	/* Nobody waits for the stream itself. */
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
		CUdeviceptr y = take(bytes, streams[i]);
		assert_false(overlap(x, y, bytes));
		assert_cuda(cuMemFreeAsync(y, streams[i]));
	}
	atomic_store(&barrier.open, true);
	take_at(x, bytes, b);
	for (unsigned i = 0; i < 40; i++)
		assert_cuda(cuStreamDestroy_v2(streams[i]));
	assert_int_not_equal(cuMemAllocAsync(&x, bytes, streams[3]), CUDA_SUCCESS);
	assert_cuda(cuCtxSynchronize());
}

/* What a stream freed is safe when the stream is gone before its work, whoever has its handle then. */
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

/* ---- kinds of pools */

static void make_pools(int socket)
{
	CUmemPoolProps props = {.type = CU_MEM_ALLOCATION_PINNED, .location = {CU_MEM_LOCATION_DEVICE, 0}, .max_size = 64 * MiB};
	CUmemoryPool pool = NULL, found = NULL;
	CUdeviceptr x = 0, y = 0;
	(void)socket;
	open_streams();
	assert_cuda(cuMemPoolCreate(&pool, &props));
	set_threshold(pool, UINT64_MAX);
	assert_cuda(cuMemAllocFromPoolAsync(&x, 40 * MiB, pool, a));
	assert_int_equal(cuMemAllocFromPoolAsync(&y, 40 * MiB, pool, a), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_not_equal(cuMemAllocFromPoolAsync(&y, MiB, NULL, a), CUDA_SUCCESS);
	assert_int_not_equal(cuMemAllocFromPoolAsync(NULL, MiB, pool, a), CUDA_SUCCESS);
	assert_int_not_equal(cuMemAllocFromPoolAsync(&y, 0, pool, a), CUDA_SUCCESS);
	assert_int_equal(cuMemAllocFromPoolAsync(&y, SIZE_MAX, pool, a), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuMemAllocAsync(&y, SIZE_MAX - 1024, a), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_not_equal(cuMemPoolGetAttribute(pool, CU_MEMPOOL_USED_CURRENT, NULL), CUDA_SUCCESS);
	assert_int_not_equal(cuMemPoolSetAttribute(pool, CU_MEMPOOL_RELEASE_THRESHOLD, NULL), CUDA_SUCCESS);
	assert_cuda(cuPointerGetAttribute(&found, CU_POINTER_POOL, x + 100));
	assert_ptr_equal(found, pool);
	assert_int_equal(fixed(), 0);
	assert_cuda(cuMemsetD8Async(x, 7, 40 * MiB, a));
	/* The current pool serves those who name none. */
	assert_cuda(cuDeviceSetMemPool(0, pool));
	y = take(10 * MiB, a);
	assert_int_equal(figure(pool, CU_MEMPOOL_USED_CURRENT), 50 * MiB);
	assert_cuda(cuMemFreeAsync(y, a));
	/* One that is destroyed lasts as long as what it gave. */
	assert_cuda(cuMemPoolDestroy(pool));
	suspend();
	assert_int_equal(gpu_used(), CONTEXT_BYTES);
	resume();
	expect(x, 40 * MiB, 7);
	assert_cuda(cuMemFreeAsync(x, a));
	assert_cuda(cuStreamSynchronize(a));
	assert_int_equal(charged(), 0);
	/* What others could open stays where it is, and counts as such. */
	props.handle_types = CU_MEM_HANDLE_FILE_DESCRIPTOR;
	assert_cuda(cuMemPoolCreate(&pool, &props));
	assert_cuda(cuMemAllocFromPoolAsync(&x, 40 * MiB, pool, a));
	assert_true(fixed() >= 40 * MiB);
	suspend();
	assert_true(gpu_used() >= CONTEXT_BYTES + 40 * MiB);
	resume();
	assert_cuda(cuMemFreeAsync(x, a));
	assert_cuda(cuStreamSynchronize(a));
	assert_cuda(cuMemPoolDestroy(pool));
	assert_int_equal(charged() + fixed(), 0);
}

/* Pools that the program makes move where nobody else can open them, keep to their size, and go when their last memory does. */
static void test_pools_of_the_program(void **state)
{
	(void)state;
	run_job(make_pools);
}

static void keep_to_thresholds(int socket)
{
	(void)socket;
	open_streams();
	set_threshold(standard, 40 * MiB);
	CUdeviceptr x = take(40 * MiB, a), y = take(50 * MiB, a);
	assert_cuda(cuMemFreeAsync(x, a));
	assert_cuda(cuMemFreeAsync(y, a));
	assert_true(charged() >= 90 * MiB);
	assert_cuda(cuStreamSynchronize(a));
	assert_int_equal(charged(), 40 * MiB);
	assert_int_equal(figure(standard, CU_MEMPOOL_RESERVED_CURRENT), 40 * MiB);
	assert_cuda(cuMemPoolTrimTo(standard, 40 * MiB));
	assert_int_equal(charged(), 40 * MiB);
	assert_cuda(cuMemPoolTrimTo(standard, 40 * MiB - 1));
	assert_int_equal(charged(), 0);
}

/* Waiting for the GPU gives back what is over the pool's threshold, and no more. */
static void test_thresholds_are_kept(void **state)
{
	(void)state;
	run_job(keep_to_thresholds);
}

/* ---- captures */

static void capture(int socket)
{
	CUdeviceptr inside = 0, outside = 0, more = 0;
	CUgraph made = NULL;
	CUgraphExec graph = NULL;
	(void)socket;
	open_streams();
	outside = take(4 * MiB, b);
	assert_cuda(cuStreamBeginCapture_v2(a, CU_CAPTURE_MODE_GLOBAL));
	assert_cuda(cuMemAllocAsync(&inside, 8 * MiB, a));
	assert_cuda(cuMemsetD8Async(inside, 4, 8 * MiB, a));
	/* Streams beside it go on, with many frees and with growth, and the capture knows nothing of them. */
	for (unsigned i = 0; i < 100; i++) {
		assert_cuda(cuMemFreeAsync(outside, b));
		outside = take((1 + i) * 100000, b);
		more = take(100, NULL);
		assert_cuda(cuMemFreeAsync(more, NULL));
	}
	/* What is freed in no stream's order goes when the whole context was waited for. */
	more = take(64 * MiB, b);
	assert_cuda(cuMemFree_v2(more));
	assert_true(charged() >= 64 * MiB);
	assert_cuda(cuMemsetD8Async(outside, 6, 1000, b));
	assert_cuda(cuMemFreeAsync(inside, a));
	assert_cuda(cuStreamEndCapture(a, &made));
	assert_cuda(cuGraphInstantiateWithFlags(&graph, made, 0));
	assert_cuda(cuGraphLaunch(graph, a));
	assert_cuda(cuStreamSynchronize(a));
	suspend();
	resume();
	assert_cuda(cuGraphLaunch(graph, a));
	assert_cuda(cuStreamSynchronize(a));
	assert_cuda(cuStreamSynchronize(b));
	expect(outside, 1000, 6);
	assert_cuda(cuGraphExecDestroy(graph));
	assert_cuda(cuGraphDestroy(made));
	assert_cuda(cuMemFreeAsync(outside, b));
	assert_cuda(cuCtxSynchronize());
	assert_int_equal(figure(standard, CU_MEMPOOL_RESERVED_CURRENT), 0);
}

/* What a captured stream allocates is the graph's, and what others do meanwhile does not disturb the capture. */
static void test_captures(void **state)
{
	(void)state;
	run_job(capture);
}

/* ---- contexts */

static void lose_context(int socket)
{
	CUcontext own = NULL;
	CUstream stream = NULL;
	(void)socket;
	open_streams();
	CUdeviceptr x = take(20 * MiB, a), y = 0;
	assert_cuda(cuMemsetD8Async(x, 3, 20 * MiB, a));
	assert_cuda(cuStreamSynchronize(a));
	assert_cuda(cuCtxCreate_v2(&own, 0, 0));
	assert_cuda(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	y = take(20 * MiB, stream);
	assert_cuda(cuMemsetD8Async(y, 4, 20 * MiB, stream));
	assert_cuda(cuStreamSynchronize(stream));
	/* Memory of one context, freed in a stream of another that goes. */
	assert_cuda(cuMemFreeAsync(x, stream));
	assert_cuda(cuCtxDestroy_v2(own));
	assert_cuda(cuCtxSetCurrent(primary()));
	suspend();
	assert_int_equal(gpu_used(), CONTEXT_BYTES);
	assert_int_equal(look().gpus[0].host_bytes, 0);
	resume();
	x = take(20 * MiB, a);
	assert_cuda(cuMemsetD8Async(x, 3, 20 * MiB, a));
	assert_cuda(cuStreamSynchronize(a));
	expect(x, 20 * MiB, 3);
	assert_cuda(cuDevicePrimaryCtxReset_v2(0));
	assert_int_equal(look().gpus[0].charged_bytes, 0);
}

/* What a context allocated in stream order goes with it, and only that. */
static void test_memory_goes_with_its_context(void **state)
{
	(void)state;
	run_job(lose_context);
}

/* ---- at random, against a model */

enum { PLACES = 64, STREAMS = 3 };

struct allocation {
	CUdeviceptr address;
	size_t bytes;
	unsigned char value; /* of all its bytes */
	CUstream stream;     /* in whose order it is filled */
	bool plain;
};

struct world {
	uint64_t seed, random;
	CUstream streams[STREAMS];
	CUevent event;
	struct allocation places[PLACES];
	size_t total, plain_total, used;
	unsigned char scratch[1 << 16];
};

static size_t below(struct world *w, size_t end)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return (size_t)((w->random * 0x2545f4914f6cdd1dULL >> 11) % end);
}

static struct world *new_world(uint64_t seed)
{
	struct world *w = calloc(1, sizeof *w);
	assert_non_null(w);
	w->seed = seed;
	w->random = seed * 0x9e3779b97f4a7c15ULL + 88172645463325252ULL;
	for (unsigned i = 0; i < STREAMS; i++)
		assert_cuda(cuStreamCreate(&w->streams[i], CU_STREAM_NON_BLOCKING));
	assert_cuda(cuEventCreate(&w->event, CU_EVENT_DISABLE_TIMING));
	return w;
}

/* Often behind others, so that what is freed is not over. */
static void fill(struct world *w, struct allocation *x, unsigned char value)
{
	if (below(w, 4) == 0)
		assert_cuda(launch_spin(x->stream, 1000 + below(w, 300000)));
	assert_cuda(cuMemsetD8Async(x->address, value, x->bytes, x->stream));
	x->value = value;
}

static size_t pick_size(struct world *w)
{
	switch (below(w, 64)) {
	case 0:
		return 20 * MiB + below(w, 60 * MiB);
	case 1 ... 8:
		return 1 + below(w, 5 * MiB);
	default:
		return 1 + below(w, 40000);
	}
}

static void allocate(struct world *w, struct allocation *x)
{
	bool plain = below(w, 16) == 0;
	size_t bytes = plain ? (1 + below(w, 4)) * UNIT : pick_size(w);
	if (x->address != 0 || w->total + bytes > 120 * MiB)
		return;
	*x = (struct allocation){.bytes = bytes, .stream = w->streams[below(w, STREAMS)], .plain = plain};
	CUresult result = plain ? cuMemAlloc_v2(&x->address, bytes) : cuMemAllocAsync(&x->address, bytes, x->stream);
	if (result == CUDA_ERROR_OUT_OF_MEMORY) {
		x->address = 0;
		return;
	}
	assert_cuda(result);
	assert_int_equal(x->address % 256, 0);
	for (const struct allocation *y = w->places; y < w->places + PLACES; y++)
		if (y != x && y->address != 0)
			assert_true(x->address + x->bytes <= y->address || y->address + y->bytes <= x->address);
	w->total += bytes;
	w->plain_total += plain ? bytes : 0;
	w->used += plain ? 0 : (bytes + 511) / 512 * 512;
	fill(w, x, (unsigned char)below(w, 256));
}

static void check(struct world *w, const struct allocation *x)
{
	size_t length = 1 + below(w, x->bytes < sizeof w->scratch ? x->bytes : sizeof w->scratch), offset = below(w, x->bytes - length + 1);
	assert_cuda(cuStreamSynchronize(x->stream));
	assert_cuda(cuMemcpyDtoH_v2(w->scratch, x->address + offset, length));
	for (size_t i = 0; i < length; i++)
		if (w->scratch[i] != x->value)
			fail_msg("byte %zu of %zu is %d, not %d (SW_SEED=%" PRIu64 ")", offset + i, x->bytes, w->scratch[i], x->value,
				 w->seed);
}

/* What is still on its way into it when it is freed must not come to anybody else. */
static void release(struct world *w, struct allocation *x)
{
	check(w, x);
	fill(w, x, 0xEE);
	if (below(w, 20) == 0)
		assert_cuda(cuMemFree_v2(x->address));
	else
		assert_cuda(cuMemFreeAsync(x->address, x->stream));
	w->total -= x->bytes;
	w->plain_total -= x->plain ? x->bytes : 0;
	w->used -= x->plain ? 0 : (x->bytes + 511) / 512 * 512;
	*x = (struct allocation){0};
}

/* Another stream has it from now on. */
static void hand_over(struct world *w, struct allocation *x)
{
	CUstream next = w->streams[below(w, STREAMS)];
	assert_cuda(cuEventRecord(w->event, x->stream));
	assert_cuda(cuStreamWaitEvent(next, w->event, 0));
	x->stream = next;
}

static void step(struct world *w)
{
	struct allocation *x = &w->places[below(w, PLACES)];
	size_t what = below(w, 1000);
	if (what < 3)
		assert_cuda(cuCtxSynchronize());
	else if (what < 6)
		assert_cuda(cuMemPoolTrimTo(standard, below(w, 100 * MiB)));
	else if (what < 9)
		set_threshold(standard, below(w, 2) == 0 ? 0 : UINT64_MAX);
	else if (x->address == 0)
		allocate(w, x);
	else if (what < 400)
		release(w, x);
	else if (what < 600)
		fill(w, x, (unsigned char)below(w, 256));
	else if (what < 800)
		hand_over(w, x);
	else
		check(w, x);
}

static void release_all(struct world *w)
{
	for (struct allocation *x = w->places; x < w->places + PLACES; x++)
		if (x->address != 0)
			release(w, x);
	for (unsigned i = 0; i < STREAMS; i++)
		assert_cuda(cuStreamDestroy_v2(w->streams[i]));
	assert_cuda(cuEventDestroy_v2(w->event));
}

static void check_books(const struct world *w)
{
	struct sw_share_gpu gpu;
	assert_int_equal(figure(standard, CU_MEMPOOL_USED_CURRENT), w->used);
	eventually((gpu = look().gpus[0],
		    gpu.charged_bytes + gpu.host_bytes == CONTEXT_BYTES + w->plain_total + figure(standard, CU_MEMPOOL_RESERVED_CURRENT) &&
			    gpu.fixed_bytes == CONTEXT_BYTES));
	eventually(gpu_used() == look().gpus[0].charged_bytes);
}

static void disturb(struct world *w)
{
	switch (below(w, 4)) {
	case 0:
		suspend();
		assert_int_equal(gpu_used(), CONTEXT_BYTES);
		resume();
		break;
	case 1:
		limit(CONTEXT_BYTES + below(w, 40) * UNIT);
		break;
	case 2:
		limit(SW_PAGE_NO_LIMIT);
		eventually(look().gpus[0].host_bytes == 0);
		break;
	default:
		sw_share_page_host_budget(page(), look().gpus[0].host_bytes);
		limit(look().gpus[0].charged_bytes + look().gpus[0].host_bytes);
		for (unsigned i = 0; i < 50; i++)
			step(w);
		host_budget(1024 * MiB);
	}
	check_books(w);
}

static uint64_t first_seed(void)
{
	const char *text = getenv("SW_SEED");
	return text != NULL ? strtoull(text, NULL, 10) : 1;
}

/* Each waits for a stream more often than not: fewer than in other tests do. */
static unsigned operations(void)
{
	const char *text = getenv("SW_OPERATIONS");
	return (text != NULL ? (unsigned)strtoul(text, NULL, 10) : 32000) / 8;
}

static void live_with_model(int socket)
{
	(void)socket;
	open_streams();
	struct world *w = new_world(first_seed());
	print_message("seed %" PRIu64 "\n", w->seed);
	for (unsigned i = 0, count = operations(); i < count; i++) {
		step(w);
		if (below(w, 200) == 0)
			disturb(w);
	}
	limit(SW_PAGE_NO_LIMIT);
	release_all(w);
	set_threshold(standard, 0);
	assert_cuda(cuCtxSynchronize());
	check_books(w);
	assert_int_equal(look().gpus[0].charged_bytes, CONTEXT_BYTES);
	free(w);
}

/* Random calls over several streams, with a coordinator between them, leave contents and books as the model has them. */
static void test_one_thread_against_the_model(void **state)
{
	(void)state;
	run_job(live_with_model);
}

/* ---- several threads, and a coordinator that asks nobody */

static _Atomic bool over;
static _Atomic unsigned steps;

static void *coordinate(void *unused)
{
	for (unsigned turn = 0; !atomic_load(&over); turn++) {
		if (turn % 3 == 0) {
			suspend();
			resume();
		} else {
			limit(turn % 3 == 1 ? CONTEXT_BYTES + (turn * 7 % 40) * UNIT : SW_PAGE_NO_LIMIT);
		}
		for (unsigned begun = atomic_load(&steps); atomic_load(&steps) - begun < 200 && !atomic_load(&over);)
			doze();
	}
	limit(SW_PAGE_NO_LIMIT);
	return unused;
}

static void *work(void *world)
{
	assert_cuda(cuCtxSetCurrent(primary()));
	for (unsigned i = 0; i < operations() / 2; i++) {
		step(world);
		atomic_fetch_add(&steps, 1);
	}
	release_all(world);
	return world;
}

static void live_in_threads(int socket)
{
	struct world *worlds[2];
	pthread_t workers[2], coordinator;
	(void)socket;
	open_streams();
	print_message("seed %" PRIu64 "\n", first_seed());
	for (unsigned i = 0; i < 2; i++) {
		worlds[i] = new_world(first_seed() + 10 + i);
		assert_int_equal(pthread_create(&workers[i], NULL, work, worlds[i]), 0);
	}
	assert_int_equal(pthread_create(&coordinator, NULL, coordinate, NULL), 0);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(workers[i], NULL);
	atomic_store(&over, true);
	pthread_join(coordinator, NULL);
	set_threshold(standard, 0);
	assert_cuda(cuCtxSynchronize());
	check_books(worlds[0]);
	assert_int_equal(look().gpus[0].charged_bytes, CONTEXT_BYTES);
	for (unsigned i = 0; i < 2; i++)
		free(worlds[i]);
}

/* Several threads with streams of their own and one pool, whom a coordinator suspends and limits at any moment, find what they wrote. */
static void test_threads_against_the_model(void **state)
{
	(void)state;
	run_job(live_in_threads);
}

static void hold_what_stays(int socket)
{
	open_streams();
	CUdeviceptr x = take(8 * MiB, a);
	assert_cuda(cuMemsetD8Async(x, 7, 8 * MiB, a));
	assert_cuda(cuStreamSynchronize(a));
	tell(socket, 'r');
	hear(socket, 'e');
	expect(x, 8 * MiB, 7);
}

/* Memory of pools that is not to move is the driver's: it is counted, and stays while the rest is suspended. */
static void test_pools_may_stay(void **state)
{
	(void)state;
	setenv(SW_PAGE_MOVES_ENV, "no", 1);
	struct job job = start(hold_what_stays);
	hear(job.socket, 'r');
	assert_true(fixed() >= 8 * MiB);
	suspend();
	assert_true(gpu_used() >= CONTEXT_BYTES + 8 * MiB);
	resume();
	tell(job.socket, 'e');
	end(&job);
}

static int pools_up(void **state)
{
	unsetenv(SW_PAGE_MOVES_ENV);
	return machine_up(state);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, pools_up, machine_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_memory_of_pools_moves),
		CASE(test_idle_memory_is_not_moved),
		CASE(test_freed_memory_waits_for_its_stream),
		CASE(test_what_is_over_is_found_out),
		CASE(test_streams_that_are_destroyed),
		CASE(test_streams_of_threads),
		CASE(test_many_streams),
		CASE(test_frees_of_either_kind),
		CASE(test_short_memory_waits_for_frees),
		CASE(test_pools_of_the_program),
		CASE(test_thresholds_are_kept),
		CASE(test_captures),
		CASE(test_memory_goes_with_its_context),
		CASE(test_one_thread_against_the_model),
		CASE(test_threads_against_the_model),
		CASE(test_pools_may_stay),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
