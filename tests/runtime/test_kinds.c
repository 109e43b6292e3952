/* Every kind of device memory counts against the job's limit, is refused as the driver refuses
 * it, and is given back. */
#include "runtime/job.h"

/* Beside the context, which always counts. */
static uint64_t charged(void)
{
	return look().gpus[0].charged_bytes - CONTEXT_BYTES;
}

static uint64_t fixed(void)
{
	return look().gpus[0].fixed_bytes - CONTEXT_BYTES;
}

/* ---- the kinds */

static void use_managed(int socket)
{
	CUdeviceptr x = 0;
	(void)socket;
	open_driver();
	assert_cuda(cuMemAllocManaged(&x, 30 * MiB, 1));
	assert_int_equal(charged(), 30 * MiB);
	assert_int_equal(fixed(), 30 * MiB);
	((volatile char *)(uintptr_t)x)[5 * MiB] = 1; /* NOLINT(performance-no-int-to-ptr): that is what managed memory is for */
	CUdeviceptr y = 0;
	assert_int_equal(cuMemAllocManaged(&y, 80 * MiB, 1), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuMemAllocManaged(NULL, 10, 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemAllocManaged(&y, 10, 77), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(charged(), 30 * MiB);
	assert_cuda(cuMemFree_v2(x));
	assert_int_equal(charged() + fixed(), 0);
}

static void use_pools(int socket)
{
	CUdeviceptr x = 0, y = 0;
	CUstream stream = NULL;
	CUmemoryPool pool = NULL;
	(void)socket;
	open_driver();
	assert_cuda(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	assert_cuda(cuMemAllocAsync(&x, 30 * MiB, stream));
	assert_true(charged() >= 30 * MiB && charged() < 70 * MiB);
	host_budget(0);
	assert_int_equal(cuMemAllocAsync(&y, 90 * MiB, stream), CUDA_ERROR_OUT_OF_MEMORY);
	host_budget(1024 * MiB);
	assert_cuda(cuMemFreeAsync(x, stream));
	assert_cuda(cuStreamSynchronize(stream));
	CUmemPoolProps props = {.type = CU_MEM_ALLOCATION_PINNED, .location = {CU_MEM_LOCATION_DEVICE, 0}};
	assert_cuda(cuMemPoolCreate(&pool, &props));
	assert_cuda(cuMemPoolSetAttribute(pool, CU_MEMPOOL_RELEASE_THRESHOLD, &(uint64_t){UINT64_MAX}));
	assert_cuda(cuMemAllocFromPoolAsync(&x, 40 * MiB, pool, stream));
	uint64_t kept = charged();
	assert_true(kept >= 40 * MiB);
	/* A pool that keeps what was freed goes on holding it, and serves from it. */
	assert_cuda(cuMemFreeAsync(x, stream));
	assert_cuda(cuStreamSynchronize(stream));
	assert_cuda(cuMemAllocFromPoolAsync(&x, 40 * MiB, pool, stream));
	assert_cuda(cuMemFree_v2(x));
	assert_true(charged() >= 40 * MiB && charged() <= kept);
	assert_cuda(cuMemPoolTrimTo(pool, 0));
	assert_int_equal(charged() + fixed(), 0);
	assert_cuda(cuMemAllocFromPoolAsync(&x, 40 * MiB, pool, stream));
	assert_cuda(cuMemFreeAsync(x, stream));
	assert_cuda(cuStreamSynchronize(stream));
	assert_cuda(cuMemPoolDestroy(pool));
	assert_int_equal(charged() + fixed(), 0);
}

static void use_own_mappings(int socket)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_PINNED, .location = {CU_MEM_LOCATION_DEVICE, 0}};
	CUmemAccessDesc access = {.location = {CU_MEM_LOCATION_DEVICE, 0}, .flags = CU_MEM_ACCESS_READWRITE};
	CUmemHandle handle = 0, other = 0, again = 0;
	CUdeviceptr x = 0;
	char byte = 7, found = 0;
	(void)socket;
	open_driver();
	assert_cuda(cuMemCreate(&handle, 20 * MiB, &prop, 0));
	assert_int_equal(charged(), 20 * MiB);
	host_budget(0);
	assert_int_equal(cuMemCreate(&other, 90 * MiB, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
	host_budget(1024 * MiB);
	assert_int_equal(cuMemCreate(&other, 90 * MiB, NULL, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemCreate(NULL, 2 * MiB, &prop, 0), CUDA_ERROR_INVALID_VALUE);
	prop.location = (CUmemLocation){CU_MEM_LOCATION_HOST_NUMA, 0};
	assert_cuda(cuMemCreate(&other, 90 * MiB, &prop, 0));
	assert_cuda(cuMemRelease(other));
	assert_cuda(cuMemAddressReserve(&x, 20 * MiB, 0, 0, 0));
	assert_cuda(cuMemMap(x, 20 * MiB, 0, handle, 0));
	assert_cuda(cuMemSetAccess(x, 20 * MiB, &access, 1));
	assert_cuda(
		cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)x)); /* NOLINT(performance-no-int-to-ptr): the driver's own type */
	assert_cuda(cuMemcpyHtoD_v2(x, &byte, 1));
	/* It stays for as long as anything holds it, and moves. */
	assert_cuda(cuMemRelease(handle));
	suspend();
	assert_int_equal(charged(), 0);
	resume();
	assert_cuda(cuMemcpyDtoH_v2(&found, x, 1));
	assert_int_equal(found, 7);
	assert_cuda(cuMemRelease(again));
	assert_int_equal(charged(), 20 * MiB);
	assert_cuda(cuMemUnmap(x, 20 * MiB));
	assert_int_equal(charged() + fixed(), 0);
	assert_cuda(cuMemAddressFree(x, 20 * MiB));
}

static void use_arrays(int socket)
{
	CUarrayShape flat = {1024, 1024, 0x20, 4};
	CUarray3dShape deep = {256, 256, 16, 0x01, 1, 0};
	CUarray a = NULL, b = NULL;
	CUmipmappedArray m = NULL;
	(void)socket;
	open_driver();
	assert_cuda(cuArrayCreate_v2(&a, &flat));
	assert_int_equal(charged(), 16 * MiB);
	assert_cuda(cuArray3DCreate_v2(&b, &deep));
	assert_int_equal(charged(), 17 * MiB);
	assert_cuda(cuMipmappedArrayCreate(&m, &deep, 4));
	assert_true(charged() > 18 * MiB && charged() <= 19 * MiB);
	flat.height = 20000;
	CUarray c = NULL;
	assert_int_equal(cuArrayCreate_v2(&c, &flat), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_not_equal(cuArrayCreate_v2(&c, NULL), CUDA_SUCCESS);
	assert_int_not_equal(cuArrayCreate_v2(NULL, &(CUarrayShape){1, 1, 0x20, 1}), CUDA_SUCCESS);
	assert_cuda(cuMipmappedArrayDestroy(m));
	assert_cuda(cuArrayDestroy(b));
	assert_int_equal(charged(), 16 * MiB);
	assert_cuda(cuArrayDestroy(a));
	assert_int_equal(charged() + fixed(), 0);
}

static void use_graphs(int socket)
{
	CUdeviceptr x = 0;
	CUstream stream = NULL;
	CUgraph made = NULL;
	CUgraphExec graph = NULL;
	static uint32_t words[64], found[64];
	(void)socket;
	open_driver();
	assert_cuda(cuMemAlloc_v2(&x, 4 * MiB));
	assert_cuda(cuMemcpyHtoD_v2(x, words, sizeof words));
	assert_cuda(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	assert_cuda(cuStreamBeginCapture_v2(stream, CU_CAPTURE_MODE_THREAD_LOCAL));
	/* Memory of one's own during a capture is no part of it. */
	CUdeviceptr y = 0;
	assert_cuda(launch_stir(stream, x, 64));
	CUresult during = cuMemAlloc_v2(&y, 4 * MiB);
	assert_cuda(cuStreamEndCapture(stream, &made));
	assert_cuda(during);
	assert_cuda(cuGraphInstantiateWithFlags(&graph, made, 0));
	for (unsigned i = 0; i < 4; i++) {
		assert_cuda(cuGraphLaunch(graph, stream));
		stir_here(words, 64);
		/* A graph knows addresses: they are the same after every suspension. */
		suspend();
		resume();
	}
	assert_cuda(cuStreamSynchronize(stream));
	assert_cuda(cuMemcpyDtoH_v2(found, x, sizeof found));
	assert_memory_equal(found, words, sizeof found);
	assert_cuda(cuGraphExecDestroy(graph));
	assert_cuda(cuGraphDestroy(made));
	assert_cuda(cuMemFree_v2(x));
	assert_cuda(cuMemFree_v2(y));
	assert_int_equal(charged() + fixed(), 0);
}

static void free_during_a_capture(int socket)
{
	CUdeviceptr x = 0, y = 0;
	CUstream stream = NULL, other = NULL;
	CUgraph made = NULL;
	(void)socket;
	open_driver();
	assert_cuda(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	assert_cuda(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	assert_cuda(cuMemAlloc_v2(&x, 4 * MiB));
	uint64_t least = charged();
	assert_cuda(cuMemAlloc_v2(&y, 8 * MiB));
	assert_cuda(cuStreamBeginCapture_v2(stream, CU_CAPTURE_MODE_RELAXED));
	assert_cuda(launch_stir(stream, x, 64));
	assert_cuda(launch_spin(other, 5000000));
	assert_cuda(cuMemFree_v2(y));
	assert_int_equal(charged(), least + 8 * MiB);
	assert_int_not_equal(cuMemFree_v2(y), CUDA_SUCCESS);
	assert_cuda(cuStreamEndCapture(stream, &made));
	assert_cuda(cuGraphDestroy(made));
	assert_cuda(cuCtxSynchronize());
	assert_int_equal(charged(), least);
}

static CUresult get_by(unsigned door, CUdeviceptr *ret_address)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_PINNED, .location = {CU_MEM_LOCATION_DEVICE, 0}};
	size_t pitch;
	switch (door) {
	case 0:
		return cuMemAlloc_v2(ret_address, 8 * MiB);
	case 1:
		return cuMemAllocPitch_v2(ret_address, &pitch, 8192, 1024, 4);
	case 2:
		return cuMemAllocManaged(ret_address, 8 * MiB, 1);
	case 3:
		return cuMemAllocAsync(ret_address, 8 * MiB, NULL);
	default:
		return cuMemCreate((CUmemHandle *)ret_address, 8 * MiB, &prop, 0);
	}
}

static void need_what_was_freed(int socket)
{
	CUdeviceptr x = 0, y = 0;
	CUstream stream = NULL, other = NULL;
	CUgraph made = NULL;
	(void)socket;
	open_driver();
	assert_cuda(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	assert_cuda(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	host_budget(0);
	limit(CONTEXT_BYTES + 8 * MiB);
	for (unsigned door = 0; door < 5; door++) {
		assert_cuda(cuMemAlloc_v2(&x, 8 * MiB));
		assert_cuda(cuStreamBeginCapture_v2(stream, CU_CAPTURE_MODE_RELAXED));
		assert_cuda(launch_spin(other, 100000000));
		assert_cuda(cuMemFree_v2(x));
		/* It cannot be waited for yet. */
		assert_int_equal(cuMemAlloc_v2(&y, 8 * MiB), CUDA_ERROR_OUT_OF_MEMORY);
		assert_cuda(cuStreamEndCapture(stream, &made));
		assert_cuda(cuGraphDestroy(made));
		assert_cuda(get_by(door, &y));
		assert_int_equal(charged(), 8 * MiB);
		assert_cuda(door < 4 ? cuMemFree_v2(y) : cuMemRelease(y));
	}
}

/* A call that needs the memory that was freed during a capture, by whatever way, waits for it
 * when the capture is over. */
static void test_what_a_capture_left_serves(void **state)
{
	(void)state;
	run_job(need_what_was_freed);
}

/* What is freed while a stream is captured, which cannot be waited for then, is no part of the
 * capture, and is back once the program has waited for its context. */
static void test_a_free_during_a_capture(void **state)
{
	(void)state;
	run_job(free_during_a_capture);
}

/* Memory that a graph allocates when it runs, and that the program frees later. */
static void use_memory_of_graphs(int socket)
{
	CUdeviceptr x = 0;
	CUstream stream = NULL;
	CUgraph made = NULL;
	CUgraphExec graph = NULL;
	(void)socket;
	open_driver();
	assert_cuda(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	assert_cuda(cuStreamBeginCapture_v2(stream, CU_CAPTURE_MODE_THREAD_LOCAL));
	assert_cuda(cuMemAllocAsync(&x, 8 * MiB, stream));
	assert_cuda(launch_stir(stream, x, 64));
	assert_cuda(cuStreamEndCapture(stream, &made));
	assert_cuda(cuGraphInstantiateWithFlags(&graph, made, 0));
	uint64_t before = charged();
	assert_cuda(cuGraphLaunch(graph, stream));
	assert_cuda(cuStreamSynchronize(stream));
	eventually(charged() == before + 8 * MiB);
	assert_cuda(cuMemFreeAsync(x, stream));
	assert_cuda(cuStreamSynchronize(stream));
	eventually(charged() == before);
	assert_cuda(cuGraphExecDestroy(graph));
	/* One that frees by itself holds what one launch leaves, however often it is launched, and
	 * keeps it while the process is suspended; the last is the program's to free. */
	assert_cuda(cuGraphInstantiateWithFlags(&graph, made, CU_GRAPH_AUTO_FREE_ON_LAUNCH));
	for (unsigned i = 0; i < 3; i++) {
		assert_cuda(cuGraphLaunch(graph, stream));
		assert_cuda(cuGraphLaunch(graph, stream));
		assert_cuda(cuStreamSynchronize(stream));
		eventually(charged() == before + 8 * MiB);
		assert_int_equal(fixed(), 8 * MiB);
		suspend();
		assert_int_equal(charged(), before + 8 * MiB);
		resume();
	}
	assert_cuda(cuMemFree_v2(x));
	eventually(charged() == before);
	assert_cuda(cuGraphExecDestroy(graph));
	assert_cuda(cuGraphDestroy(made));
}

/* Managed memory, pools, one's own mappings, arrays and graphs: each counts, is refused beyond the
 * limit unless it is a graph's, and is given back. */
static void test_every_kind_counts(void **state)
{
	(void)state;
	void (*const kinds[])(int) = {use_managed, use_pools, use_own_mappings, use_arrays, use_graphs, use_memory_of_graphs};
	sw_share_page_limit(page(), 0, 100 * MiB + CONTEXT_BYTES);
	for (unsigned i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		run_job(kinds[i]);
}

/* A graph that holds `bytes` from its launch on, until the address is freed. */
static CUdeviceptr launch_holder(CUstream stream, size_t bytes)
{
	CUdeviceptr x = 0;
	CUgraph made = NULL;
	CUgraphExec graph = NULL;
	assert_cuda(cuStreamBeginCapture_v2(stream, CU_CAPTURE_MODE_THREAD_LOCAL));
	assert_cuda(cuMemAllocAsync(&x, bytes, stream));
	assert_cuda(launch_stir(stream, x, 64));
	assert_cuda(cuStreamEndCapture(stream, &made));
	assert_cuda(cuGraphInstantiateWithFlags(&graph, made, 0));
	assert_cuda(cuGraphLaunch(graph, stream));
	assert_cuda(cuStreamSynchronize(stream));
	return x;
}

static void crowd_with_graphs(int socket)
{
	CUdeviceptr x = 0, y = 0;
	CUstream stream = NULL;
	(void)socket;
	open_driver();
	assert_cuda(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	assert_cuda(cuMemAlloc_v2(&x, 60 * MiB));
	assert_int_equal(look().gpus[0].host_bytes, 0);
	y = launch_holder(stream, 80 * MiB);
	eventually(charged() == 80 * MiB && look().gpus[0].host_bytes == 60 * MiB);
	/* More of it than the limit allows at all is not refused either; what comes after it is. */
	CUdeviceptr z = launch_holder(stream, 40 * MiB);
	eventually(charged() == 120 * MiB);
	assert_int_not_equal(cuMemAllocManaged(&x, 8 * MiB, 1), CUDA_SUCCESS);
	assert_cuda(cuMemFreeAsync(z, stream));
	assert_cuda(cuMemFreeAsync(y, stream));
	assert_cuda(cuStreamSynchronize(stream));
	eventually(charged() == 60 * MiB && look().gpus[0].host_bytes == 0);
}

/* Memory that a graph takes beyond the limit counts, and what moves makes room for it. */
static void test_graphs_crowd_out(void **state)
{
	(void)state;
	sw_share_page_limit(page(), 0, 100 * MiB + CONTEXT_BYTES);
	run_job(crowd_with_graphs);
}

/* ---- what others know */

static void share_memory(int socket)
{
	CUdeviceptr x = 0, y = 0;
	CUmemHandle handle = 0;
	(void)socket;
	open_driver();
	assert_cuda(cuMemAlloc_v2(&x, 20 * MiB));
	assert_cuda(cuMemAlloc_v2(&y, 20 * MiB));
	assert_cuda(
		cuMemRetainAllocationHandle(&handle, (void *)(uintptr_t)x)); /* NOLINT(performance-no-int-to-ptr): the driver's own type */
	assert_int_equal(fixed(), 20 * MiB);
	/* Only the other one leaves. */
	suspend();
	assert_int_equal(charged(), 20 * MiB);
	resume();
	assert_int_equal(charged(), 40 * MiB);
	assert_cuda(cuMemRelease(handle));
	assert_cuda(cuMemFree_v2(x));
	assert_int_equal(fixed(), 0);
	assert_cuda(cuMemFree_v2(y));
	/* What was in host memory when it was given away stays there. */
	limit(0);
	assert_cuda(cuMemAlloc_v2(&x, 20 * MiB));
	assert_int_equal(look().gpus[0].host_bytes, 20 * MiB);
	assert_cuda(
		cuMemRetainAllocationHandle(&handle, (void *)(uintptr_t)x)); /* NOLINT(performance-no-int-to-ptr): the driver's own type */
	limit(SW_PAGE_NO_LIMIT);
	suspend();
	resume();
	assert_int_equal(look().gpus[0].host_bytes, 20 * MiB);
	assert_cuda(cuMemRelease(handle));
	assert_cuda(cuMemFree_v2(x));
	assert_int_equal(charged() + fixed() + look().gpus[0].host_bytes, 0);
}

/* Memory that another process knows by its handle does not move. */
static void test_shared_memory_stays(void **state)
{
	(void)state;
	run_job(share_memory);
}

static void share_in_vain(int socket)
{
	CUdeviceptr x = 0;
	CUmemHandle handle = 0;
	unsigned on = 1;
	(void)socket;
	open_driver();
	assert_cuda(cuMemAlloc_v2(&x, 20 * MiB));
	assert_int_equal(cuPointerSetAttribute(&on, CU_POINTER_SYNC_MEMOPS, x), CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(
		cuMemRetainAllocationHandle(&handle, (void *)(uintptr_t)x), /* NOLINT(performance-no-int-to-ptr): the driver's own type */
		CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(fixed(), 0);
	suspend();
	assert_int_equal(charged(), 0);
	resume();
	assert_cuda(cuPointerSetAttribute(&on, CU_POINTER_SYNC_MEMOPS, x));
	assert_int_equal(fixed(), 20 * MiB);
}

/* What was to be given to another process, and the driver refused, still moves. */
static void test_refused_sharing_pins_nothing(void **state)
{
	(void)state;
	machine_setting("fault=cuPointerSetAttribute:error=801");
	machine_setting("fault=cuMemRetainAllocationHandle:error=801");
	run_job(share_in_vain);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, machine_up, machine_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_a_free_during_a_capture), CASE(test_what_a_capture_left_serves), CASE(test_every_kind_counts),
		CASE(test_graphs_crowd_out),	    CASE(test_shared_memory_stays),	   CASE(test_refused_sharing_pins_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
