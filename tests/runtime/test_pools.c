/* Memory of pools moves like any other: pools of every kind, captures, and contexts that end. Its
 * order: test_pools_order.c; at random: test_pools_model.c. */
#include <stdlib.h>

#include "runtime/pool_job.h"

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

/* Memory of a device's own pool is suspended, squeezed and spilled like any other, at the same
 * addresses, and the pool's figures tell what it holds. */
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
	/* What the program has freed is not carried about, and no host memory is asked for it. */
	host_budget(50 * MiB);
	suspend();
	assert_true(look().gpus[0].host_bytes < 100 * MiB);
	resume();
	host_budget(1024 * MiB);
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

/* What a pool keeps unused is given up before anything is moved for its sake. */
static void test_idle_memory_is_not_moved(void **state)
{
	(void)state;
	run_job(keep_idle);
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
	/* The current pool serves calls that name none. */
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

/* Pools that the program makes move where no other process can open them, keep to their size, and
 * go when their last memory does. */
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
	/* Streams beside it go on, with many frees and with growth, and the capture
	 * knows nothing of them. */
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

/* What a captured stream allocates is the graph's, and what others do meanwhile does
 * not disturb the capture. */
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

/* ---- where it was not asked for */

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

/* Memory of pools that is not to move is the driver's: it is counted, and stays while
 * the rest is suspended. */
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

static void free_plain_memory(int socket)
{
	CUdeviceptr x = 0;
	(void)socket;
	open_streams();
	assert_cuda(cuMemAlloc_v2(&x, 8 * MiB));
	assert_int_equal(charged(), 8 * MiB);
	assert_cuda(cuMemFreeAsync(x, a));
	assert_cuda(cuStreamSynchronize(a));
	assert_int_equal(charged(), 0);
	assert_int_equal(gpu_used(), CONTEXT_BYTES);
}

/* Memory of no pool may be freed in the order of a stream as well: it counts no longer then,
 * whether it moves or not. */
static void test_plain_memory_is_freed(void **state)
{
	(void)state;
	run_job(free_plain_memory);
	setenv(SW_PAGE_MOVES_ENV, "no", 1);
	run_job(free_plain_memory);
}

static void let_a_peer(int socket)
{
	CUmemoryPool pool = NULL;
	CUdeviceptr x = 0;
	unsigned long long flags = 0;
	const CUmemAccessDesc peer = {{CU_MEM_LOCATION_DEVICE, 1}, CU_MEM_ACCESS_READWRITE};
	(void)socket;
	open_driver();
	assert_cuda(cuDeviceGetDefaultMemPool(&pool, 0));
	assert_cuda(cuMemPoolSetAccess(pool, &peer, 1));
	assert_cuda(cuMemAllocAsync(&x, 4 * MiB, NULL));
	assert_cuda(cuMemGetAccess(&flags, &peer.location, x));
	assert_int_equal(flags, CU_MEM_ACCESS_READWRITE);
}

/* A process that may use a device's own pool may use what comes from it, also where that was
 * said before anything came. */
static void test_peers_before_the_first(void **state)
{
	(void)state;
	machine_setting("gpus=2");
	run_job(let_a_peer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		POOL_CASE(test_memory_of_pools_moves),
		POOL_CASE(test_idle_memory_is_not_moved),
		POOL_CASE(test_pools_of_the_program),
		POOL_CASE(test_thresholds_are_kept),
		POOL_CASE(test_captures),
		POOL_CASE(test_memory_goes_with_its_context),
		POOL_CASE(test_pools_may_stay),
		POOL_CASE(test_plain_memory_is_freed),
		POOL_CASE(test_peers_before_the_first),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
