/* Graphs and captures of the emulated driver. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "unit/emu/driver.h"

enum { N = 128 };

static CUstream stream, second;
static CUdeviceptr x;

static int open_driver(void **state)
{
	(void)state;
	driver_settings(SETTINGS);
	driver_open(false);
	assert_cuda(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	assert_cuda(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
	assert_cuda(cuMemAlloc_v2(&x, N * 4));
	return 0;
}

static int close_driver(void **state)
{
	(void)state;
	driver_clean_up();
	return 0;
}

static void clear(void)
{
	assert_cuda(cuMemsetD32Async(x, 0, N, stream));
	assert_cuda(cuStreamSynchronize(stream));
}

static void assert_stirred(int times)
{
	uint32_t wanted[N] = {0}, in[N];
	for (int i = 0; i < times; i++)
		stir_here(wanted, N);
	assert_cuda(cuStreamSynchronize(stream));
	assert_cuda(cuMemcpyDtoH_v2(in, x, sizeof in));
	assert_memory_equal(in, wanted, sizeof in);
}

static void launch_and_drop(CUgraph graph, int times)
{
	CUgraphExec exec = NULL;
	assert_cuda(cuGraphInstantiateWithFlags(&exec, graph, 0));
	assert_cuda(cuGraphDestroy(graph));
	for (int i = 0; i < times; i++)
		assert_cuda(cuGraphLaunch(exec, stream));
	assert_cuda(cuStreamSynchronize(stream));
	assert_cuda(cuGraphExecDestroy(exec));
}

/* Captured work does not run until the graph is launched, and then as often as it is. */
static void test_captured_work_runs_when_launched(void **state)
{
	(void)state;
	CUgraph graph = NULL;
	size_t count = 0;
	CUgraphNode nodes[8];
	int status = -1, type = -1;
	CUkernelNode params;
	clear();
	assert_cuda(cuStreamBeginCapture_v2(stream, CU_CAPTURE_MODE_GLOBAL));
	assert_cuda(cuStreamIsCapturing(stream, &status));
	assert_int_equal(status, CU_CAPTURE_ACTIVE);
	assert_cuda(driver_stir(stream, x, N));
	assert_cuda(driver_stir(stream, x, N));
	assert_cuda(cuMemcpyAsync(x, x, 4, stream));
	assert_cuda(cuStreamEndCapture(stream, &graph));
	assert_stirred(0);
	assert_cuda(cuGraphGetNodes(graph, NULL, &count));
	assert_int_equal(count, 3);
	count = 8;
	assert_cuda(cuGraphGetNodes(graph, nodes, &count));
	assert_int_equal(count, 3);
	assert_cuda(cuGraphNodeGetType(nodes[2], &type));
	assert_int_equal(type, CU_GRAPH_NODE_MEMCPY);
	assert_cuda(cuGraphKernelNodeGetParams_v2(nodes[0], &params));
	assert_ptr_equal(params.function, driver_kernel("stir"));
	assert_int_equal(*(CUdeviceptr *)params.params[0], x);
	assert_int_equal(*(uint64_t *)params.params[1], N);
	launch_and_drop(graph, 5);
	assert_stirred(10);
}

/* Work forks to another stream by an event and must come back by one. */
static void test_forks_and_joins(void **state)
{
	(void)state;
	CUgraph graph = NULL;
	CUevent fork = NULL, join = NULL;
	size_t edges = 0;
	clear();
	assert_cuda(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
	assert_cuda(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
	for (int joined = 0; joined < 2; joined++) {
		assert_cuda(cuStreamBeginCapture_v2(stream, CU_CAPTURE_MODE_GLOBAL));
		assert_cuda(driver_stir(stream, x, N));
		assert_cuda(cuEventRecord(fork, stream));
		assert_cuda(cuStreamWaitEvent(second, fork, 0));
		assert_cuda(driver_stir(second, x, N));
		assert_cuda(cuEventRecord(join, second));
		if (joined) {
			assert_cuda(cuStreamWaitEvent(stream, join, 0));
			assert_cuda(driver_stir(stream, x, N));
			assert_cuda(cuStreamEndCapture(stream, &graph));
		} else {
			assert_int_equal(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
			assert_null(graph);
		}
	}
	assert_cuda(cuGraphGetEdges(graph, NULL, NULL, &edges));
	assert_int_equal(edges, 3);
	assert_int_equal(cuEventQuery(fork), CUDA_ERROR_CAPTURED_EVENT);
	launch_and_drop(graph, 2);
	assert_stirred(6);
	assert_cuda(cuEventDestroy_v2(fork));
	assert_cuda(cuEventDestroy_v2(join));
}

static CUresult forbid_alloc(void)
{
	CUdeviceptr y = 0;
	return cuMemAlloc_v2(&y, 100);
}

static CUresult forbid_free(void)
{
	return cuMemFree_v2(x);
}

static CUresult forbid_sync(void)
{
	return cuStreamSynchronize(stream);
}

static CUresult forbid_all(void)
{
	return cuCtxSynchronize();
}

static CUresult forbid_copy(void)
{
	uint32_t word = 0;
	return cuMemcpyDtoH_v2(&word, x, 4);
}

/* A call that may not be made during a capture fails, spoils the capture, and
 * leaves the stream usable. */
static void test_forbidden_calls_spoil(void **state)
{
	(void)state;
	CUresult (*const calls[])(void) = {forbid_alloc, forbid_free, forbid_sync, forbid_all, forbid_copy};
	for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
		CUgraph graph = NULL;
		int status = -1;
		assert_cuda(cuStreamBeginCapture_v2(stream, CU_CAPTURE_MODE_GLOBAL));
		assert_int_equal(calls[i](), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
		assert_cuda(cuStreamIsCapturing(stream, &status));
		assert_int_equal(status, CU_CAPTURE_INVALIDATED);
		assert_int_equal(driver_stir(stream, x, N), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
		assert_int_equal(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
		assert_null(graph);
		assert_cuda(cuStreamSynchronize(stream));
	}
}

static void *allocate_in_thread(void *argument)
{
	CUdeviceptr y = 0;
	assert_cuda(cuCtxSetCurrent(driver_context()));
	*(CUresult *)argument = cuMemAlloc_v2(&y, 100);
	if (y != 0)
		cuMemFree_v2(y);
	return NULL;
}

/* Another thread's call spoils a global capture, not a thread-local or a relaxed one; a thread in
 * relaxed mode may do anything. */
static void test_capture_modes(void **state)
{
	(void)state;
	static const CUresult wanted[] = {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, CUDA_SUCCESS, CUDA_SUCCESS};
	for (int mode = CU_CAPTURE_MODE_GLOBAL; mode <= CU_CAPTURE_MODE_RELAXED; mode++) {
		pthread_t thread;
		CUresult result = -1;
		CUgraph graph = NULL;
		assert_cuda(cuStreamBeginCapture_v2(stream, mode));
		assert_int_equal(pthread_create(&thread, NULL, allocate_in_thread, &result), 0);
		pthread_join(thread, NULL);
		assert_int_equal(result, wanted[mode]);
		CUresult end = cuStreamEndCapture(stream, &graph);
		assert_int_equal(end, wanted[mode] == CUDA_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
		if (graph != NULL)
			assert_cuda(cuGraphDestroy(graph));
	}
	int mode = CU_CAPTURE_MODE_RELAXED;
	CUgraph graph = NULL;
	CUdeviceptr y = 0;
	assert_cuda(cuStreamBeginCapture_v2(stream, CU_CAPTURE_MODE_GLOBAL));
	assert_cuda(cuThreadExchangeStreamCaptureMode(&mode));
	assert_int_equal(mode, CU_CAPTURE_MODE_GLOBAL);
	assert_cuda(cuMemAlloc_v2(&y, 100));
	assert_cuda(cuThreadExchangeStreamCaptureMode(&mode));
	assert_int_equal(mode, CU_CAPTURE_MODE_RELAXED);
	assert_cuda(cuStreamEndCapture(stream, &graph));
	assert_cuda(cuGraphDestroy(graph));
	assert_cuda(cuMemFree_v2(y));
	/* But for the end of the whole context, of which the capture is a
	 * part, no thread can wait. */
	assert_cuda(cuStreamBeginCapture_v2(stream, CU_CAPTURE_MODE_RELAXED));
	assert_int_equal(cuCtxSynchronize(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	assert_int_equal(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	assert_cuda(cuCtxSynchronize());
}

/* The default stream cannot be captured, nor used while a stream that waits for it captures. */
static void test_default_stream_and_capture(void **state)
{
	(void)state;
	CUstream blocking = NULL;
	CUgraph graph = NULL;
	assert_int_equal(cuStreamBeginCapture_v2(NULL, CU_CAPTURE_MODE_GLOBAL), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	assert_int_equal(cuStreamEndCapture(stream, &graph), CUDA_ERROR_ILLEGAL_STATE);
	assert_cuda(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
	assert_cuda(cuStreamBeginCapture_v2(blocking, CU_CAPTURE_MODE_RELAXED));
	assert_int_equal(driver_stir(NULL, x, N), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	assert_int_equal(cuStreamEndCapture(blocking, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	assert_cuda(driver_stir(NULL, x, N));
	assert_cuda(cuStreamSynchronize(NULL));
	assert_cuda(cuStreamDestroy_v2(blocking));
}

/* A graph built by hand: order by edges, not by when nodes were added; parameters changed and nodes
 * switched off in the executable. */
static void test_graph_by_hand(void **state)
{
	(void)state;
	CUgraph graph = NULL;
	CUgraphNode stir = NULL, zero = NULL;
	CUgraphExec exec = NULL;
	uint64_t n = N, half = N / 2;
	uint32_t in[N], wanted[N] = {0};
	CUkernelNode kernel = {.function = driver_kernel("stir"), .grid = {1, 1, 1}, .block = {1, 1, 1}, .params = (void *[]){&x, &n}};
	CUmemsetNode set = {.destination = x, .element_bytes = 4, .width = N, .height = 1};
	assert_cuda(cuGraphCreate(&graph, 0));
	assert_cuda(cuGraphAddKernelNode_v2(&stir, graph, NULL, 0, &kernel));
	assert_cuda(cuGraphAddMemsetNode(&zero, graph, NULL, 0, &set, driver_context()));
	assert_cuda(cuGraphAddDependencies(graph, &zero, &stir, 1));
	assert_cuda(cuGraphInstantiateWithFlags(&exec, graph, 0));
	for (int i = 0; i < 3; i++)
		assert_cuda(cuGraphLaunch(exec, stream));
	assert_stirred(1);
	kernel.params = (void *[]){&x, &half};
	assert_cuda(cuGraphExecKernelNodeSetParams_v2(exec, stir, &kernel));
	assert_cuda(cuGraphLaunch(exec, stream));
	assert_cuda(cuStreamSynchronize(stream));
	stir_here(wanted, N / 2);
	assert_cuda(cuMemcpyDtoH_v2(in, x, sizeof in));
	assert_memory_equal(in, wanted, sizeof in);
	assert_cuda(cuGraphNodeSetEnabled(exec, zero, 0));
	assert_cuda(cuGraphLaunch(exec, stream));
	assert_cuda(cuStreamSynchronize(stream));
	stir_here(wanted, N / 2);
	assert_cuda(cuMemcpyDtoH_v2(in, x, sizeof in));
	assert_memory_equal(in, wanted, sizeof in);
	assert_cuda(cuGraphExecDestroy(exec));
	assert_cuda(cuGraphAddDependencies(graph, &stir, &zero, 1));
	assert_int_equal(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_ERROR_INVALID_VALUE); /* a circle */
	assert_cuda(cuGraphDestroy(graph));
	assert_int_equal(cuGraphDestroy(graph), CUDA_ERROR_INVALID_VALUE);
}

/* Memory that a graph allocates is there while it runs, counts, and cannot be more than there
 * is. */
static void test_graph_memory(void **state)
{
	(void)state;
	size_t before = driver_free_bytes();
	CUgraph graph = NULL;
	CUgraphExec exec = NULL;
	CUgraphNode alloc = NULL, set = NULL, release = NULL;
	CUallocNode params = {.pool = {.type = CU_MEM_ALLOCATION_PINNED, .location = {CU_MEM_LOCATION_DEVICE, 0}}, .bytes = 20 * MiB};
	for (int fits = 1; fits >= 0; fits--) {
		params.bytes = fits ? 20 * MiB : 2048 * MiB;
		assert_cuda(cuGraphCreate(&graph, 0));
		assert_cuda(cuGraphAddMemAllocNode(&alloc, graph, NULL, 0, &params));
		CUmemsetNode fill = {.destination = params.address, .element_bytes = 1, .value = 3, .width = 20 * MiB, .height = 1};
		assert_cuda(cuGraphAddMemsetNode(&set, graph, &alloc, 1, &fill, NULL));
		assert_cuda(cuGraphAddMemFreeNode(&release, graph, &set, 1, params.address));
		assert_cuda(cuGraphInstantiateWithFlags(&exec, graph, 0));
		for (int i = 0; i < 3; i++)
			assert_int_equal(cuGraphLaunch(exec, stream), fits ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
		assert_cuda(cuStreamSynchronize(stream));
		assert_int_equal(driver_free_bytes(), before);
		assert_cuda(cuGraphExecDestroy(exec));
		assert_cuda(cuGraphDestroy(graph));
	}
	/* By capture: allocated and freed in stream order. */
	CUdeviceptr y = 0;
	assert_cuda(cuStreamBeginCapture_v2(stream, CU_CAPTURE_MODE_GLOBAL));
	assert_cuda(cuMemAllocAsync(&y, 10 * MiB, stream));
	assert_cuda(cuMemsetD8Async(y, 1, 10 * MiB, stream));
	assert_cuda(cuMemFreeAsync(y, stream));
	assert_cuda(cuStreamEndCapture(stream, &graph));
	assert_int_equal(driver_free_bytes(), before);
	launch_and_drop(graph, 3);
	assert_int_equal(driver_free_bytes(), before);
	/* What a graph leaves can be freed after it was launched, not before. */
	assert_cuda(cuStreamBeginCapture_v2(stream, CU_CAPTURE_MODE_GLOBAL));
	assert_cuda(cuMemAllocAsync(&y, 10 * MiB, stream));
	assert_cuda(cuStreamEndCapture(stream, &graph));
	assert_cuda(cuGraphInstantiateWithFlags(&exec, graph, 0));
	assert_int_equal(cuMemFreeAsync(y, stream), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuGraphLaunch(exec, stream));
	assert_cuda(cuMemFreeAsync(y, stream));
	assert_cuda(cuStreamSynchronize(stream));
	assert_int_equal(driver_free_bytes(), before);
	assert_cuda(cuGraphExecDestroy(exec));
	assert_cuda(cuGraphDestroy(graph));
}

static CUgraphExec graph_that_leaves(CUdeviceptr *ret_left, unsigned long long flags, CUgraph *ret_graph)
{
	CUgraphExec exec = NULL;
	assert_cuda(cuStreamBeginCapture_v2(stream, CU_CAPTURE_MODE_GLOBAL));
	assert_cuda(cuMemAllocAsync(ret_left, 10 * MiB, stream));
	assert_cuda(cuMemsetD8Async(*ret_left, 7, 10 * MiB, stream));
	assert_cuda(cuStreamEndCapture(stream, ret_graph));
	assert_cuda(cuGraphInstantiateWithFlags(&exec, *ret_graph, flags));
	return exec;
}

static void expect_sevens(CUdeviceptr at)
{
	static unsigned char found[4096];
	assert_cuda(cuStreamSynchronize(stream));
	assert_cuda(cuMemcpyDtoH_v2(found, at, sizeof found));
	for (size_t i = 0; i < sizeof found; i++)
		assert_int_equal(found[i], 7);
}

/* What a launch leaves the program must free before the next one, in the order of streams, and
 * once. */
static void test_graphs_leave_memory(void **state)
{
	(void)state;
	size_t before = driver_free_bytes();
	CUdeviceptr y = 0;
	CUgraph graph = NULL;
	CUgraphExec exec = graph_that_leaves(&y, 0, &graph);
	for (unsigned i = 0; i < 3; i++) {
		assert_cuda(cuGraphLaunch(exec, stream));
		assert_int_equal(cuGraphLaunch(exec, stream), CUDA_ERROR_INVALID_VALUE);
		assert_cuda(cuMemFreeAsync(y, stream));
		assert_int_equal(cuMemFreeAsync(y, stream), CUDA_ERROR_INVALID_VALUE);
	}
	assert_cuda(cuGraphLaunch(exec, stream));
	expect_sevens(y);
	assert_cuda(cuMemFree_v2(y));
	assert_int_equal(cuMemFree_v2(y), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(driver_free_bytes(), before);
	assert_cuda(cuGraphExecDestroy(exec));
	assert_cuda(cuGraphDestroy(graph));
}

/* A graph that frees by itself frees at its next launch what the last one left, unless the program
 * has; what its last launch left outlives it, and is the program's to free. */
static void test_graphs_free_by_themselves(void **state)
{
	(void)state;
	size_t before = driver_free_bytes();
	CUdeviceptr y = 0;
	CUgraph graph = NULL;
	CUgraphExec exec = graph_that_leaves(&y, CU_GRAPH_AUTO_FREE_ON_LAUNCH, &graph), none = NULL;
	for (unsigned i = 0; i < 6; i++) {
		assert_cuda(cuGraphLaunch(exec, stream));
		if (i % 2 == 1)
			assert_cuda(cuGraphLaunch(exec, stream));
		expect_sevens(y);
		assert_int_equal(driver_free_bytes(), before - 10 * MiB);
		/* In the order of the stream: there is no wait before the next launch. */
		if (i % 3 == 2)
			assert_cuda(cuMemFreeAsync(y, stream));
	}
	assert_cuda(cuGraphLaunch(exec, stream));
	assert_cuda(cuGraphExecDestroy(exec));
	assert_cuda(cuGraphDestroy(graph));
	expect_sevens(y);
	assert_cuda(cuMemFreeAsync(y, stream));
	assert_cuda(cuStreamSynchronize(stream));
	assert_int_equal(driver_free_bytes(), before);
	/* Flags that cannot be together, or are none. */
	assert_cuda(cuGraphCreate(&graph, 0));
	assert_int_equal(cuGraphInstantiateWithFlags(&none, graph, CU_GRAPH_AUTO_FREE_ON_LAUNCH | CU_GRAPH_DEVICE_LAUNCH),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuGraphInstantiateWithFlags(&none, graph, 16), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuGraphDestroy(graph));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_captured_work_runs_when_launched),
		cmocka_unit_test(test_forks_and_joins),
		cmocka_unit_test(test_forbidden_calls_spoil),
		cmocka_unit_test(test_capture_modes),
		cmocka_unit_test(test_default_stream_and_capture),
		cmocka_unit_test(test_graph_by_hand),
		cmocka_unit_test(test_graph_memory),
		cmocka_unit_test(test_graphs_leave_memory),
		cmocka_unit_test(test_graphs_free_by_themselves),
	};
	return cmocka_run_group_tests(tests, open_driver, close_driver);
}
