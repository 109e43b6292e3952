/* Memory in stream order: what a pool reserves and uses, which stream may have freed memory again,
 * and when it goes back. */
#include <stdlib.h>
#include <string.h>

#include "unit/emu/driver.h"

static CUmemoryPool pool;
static CUstream stream, other;

static int open_driver(void **state)
{
	(void)state;
	driver_settings(SETTINGS);
	driver_open(false);
	assert_cuda(cuDeviceGetDefaultMemPool(&pool, 0));
	assert_cuda(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	assert_cuda(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	return 0;
}

static int close_driver(void **state)
{
	(void)state;
	driver_clean_up();
	return 0;
}

static uint64_t figure(CUmemoryPool of, int attribute)
{
	uint64_t value = 0;
	assert_cuda(cuMemPoolGetAttribute(of, attribute, &value));
	return value;
}

static CUdeviceptr take(size_t bytes, CUstream from)
{
	CUdeviceptr x = 0;
	assert_cuda(cuMemAllocAsync(&x, bytes, from));
	return x;
}

/* What is reserved counts against the GPU, and with the threshold at 0 it goes
 * back where the host waits. */
static void test_reserved_and_used(void **state)
{
	(void)state;
	size_t before = driver_free_bytes();
	CUdeviceptr x = take(1000, stream), y = take(40 * MiB, stream);
	assert_int_equal(figure(pool, CU_MEMPOOL_USED_CURRENT), 1024 + 40 * MiB);
	assert_int_equal(figure(pool, CU_MEMPOOL_RESERVED_CURRENT), before - driver_free_bytes());
	assert_true(figure(pool, CU_MEMPOOL_RESERVED_CURRENT) >= 40 * MiB + 1024);
	assert_cuda(cuMemFreeAsync(y, stream));
	assert_int_equal(figure(pool, CU_MEMPOOL_USED_CURRENT), 1024);
	assert_cuda(cuStreamSynchronize(stream));
	assert_true(figure(pool, CU_MEMPOOL_RESERVED_CURRENT) < 40 * MiB);
	assert_true(figure(pool, CU_MEMPOOL_RESERVED_HIGH) >= 40 * MiB);
	assert_cuda(cuMemFreeAsync(x, stream));
	assert_cuda(cuStreamSynchronize(stream));
	assert_int_equal(figure(pool, CU_MEMPOOL_RESERVED_CURRENT), 0);
	assert_int_equal(driver_free_bytes(), before);
	assert_int_equal(cuMemFreeAsync(x, stream), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemAllocAsync(&x, 0, stream), CUDA_ERROR_INVALID_VALUE);
}

/* Below the threshold a pool keeps what it has; a trim takes it. */
static void test_threshold_and_trim(void **state)
{
	(void)state;
	size_t before = driver_free_bytes();
	uint64_t threshold = UINT64_MAX;
	assert_cuda(cuMemPoolSetAttribute(pool, CU_MEMPOOL_RELEASE_THRESHOLD, &threshold));
	CUdeviceptr x = take(50 * MiB, stream);
	assert_cuda(cuMemFreeAsync(x, stream));
	assert_cuda(cuStreamSynchronize(stream));
	assert_int_equal(before - driver_free_bytes(), 50 * MiB);
	assert_cuda(cuMemPoolTrimTo(pool, 0));
	assert_int_equal(driver_free_bytes(), before);
	threshold = 0;
	assert_cuda(cuMemPoolSetAttribute(pool, CU_MEMPOOL_RELEASE_THRESHOLD, &threshold));
}

/* A stream has its own freed memory again at once; another stream only when
 * the first has got there. */
static void test_who_may_reuse(void **state)
{
	(void)state;
	CUdeviceptr x = take(MiB, stream);
	assert_cuda(driver_spin(stream, 100000000));
	assert_cuda(cuMemFreeAsync(x, stream));
	CUdeviceptr theirs = take(MiB, other), ours = take(MiB, stream);
	assert_int_equal(ours, x);
	assert_int_not_equal(theirs, x);
	assert_cuda(cuMemFreeAsync(ours, stream));
	assert_cuda(cuMemFreeAsync(theirs, other));
	assert_cuda(cuCtxSynchronize());
}

/* Kernels work in pool memory; plain calls free it, and stream-ordered ones free plain memory. */
static void test_mixed_ways(void **state)
{
	(void)state;
	size_t before = driver_free_bytes();
	CUdeviceptr x = take(4096, stream), y = 0;
	uint32_t wanted[64] = {0}, in[64];
	assert_cuda(cuMemsetD32Async(x, 0, 64, stream));
	assert_cuda(driver_stir(stream, x, 64));
	assert_cuda(cuStreamSynchronize(stream));
	stir_here(wanted, 64);
	assert_cuda(cuMemcpyDtoH_v2(in, x, sizeof in));
	assert_memory_equal(in, wanted, sizeof in);
	assert_cuda(cuMemFree_v2(x));
	assert_cuda(cuMemAlloc_v2(&y, 10 * MiB));
	assert_cuda(cuMemFreeAsync(y, stream));
	assert_cuda(cuStreamSynchronize(stream));
	assert_int_equal(driver_free_bytes(), before);
}

/* A pool of one's own, with a limit; destroyed while memory from it lives. */
static void test_own_pool(void **state)
{
	(void)state;
	size_t before = driver_free_bytes();
	CUmemoryPool own = NULL;
	CUdeviceptr x = 0, y = 0;
	CUmemPoolProps properties = {.type = CU_MEM_ALLOCATION_PINNED, .location = {CU_MEM_LOCATION_DEVICE, 0}, .max_size = 64 * MiB};
	assert_cuda(cuMemPoolCreate(&own, &properties));
	assert_cuda(cuMemAllocFromPoolAsync(&x, 40 * MiB, own, stream));
	assert_int_equal(cuMemAllocFromPoolAsync(&y, 40 * MiB, own, stream), CUDA_ERROR_OUT_OF_MEMORY);
	assert_cuda(cuMemPoolDestroy(own));
	assert_int_equal(cuMemAllocFromPoolAsync(&y, 100, own, stream), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuMemsetD8Async(x, 1, 40 * MiB, stream));
	assert_cuda(cuMemFreeAsync(x, stream));
	assert_cuda(cuStreamSynchronize(stream));
	assert_int_equal(driver_free_bytes(), before);
	assert_int_equal(cuMemPoolDestroy(pool), CUDA_ERROR_INVALID_VALUE);
}

/* Random allocations and frees over two streams: blocks never overlap, and all comes back. */
static void test_random_use(void **state)
{
	(void)state;
	enum { LIVE = 64, ROUNDS = 5000 };
	struct {
		CUdeviceptr x;
		size_t bytes;
		CUstream stream;
	} live[LIVE] = {0};
	unsigned seed = 99;
	size_t before = driver_free_bytes();
	for (int round = 0; round < ROUNDS; round++) {
		unsigned i = rand_r(&seed) % LIVE;
		if (live[i].x != 0) {
			assert_cuda(cuMemFreeAsync(live[i].x, live[i].stream));
			live[i].x = 0;
			continue;
		}
		live[i].bytes = rand_r(&seed) % (rand_r(&seed) % 8 == 0 ? 3 * MiB : 5000) + 1;
		live[i].stream = rand_r(&seed) % 2 == 0 ? stream : other;
		live[i].x = take(live[i].bytes, live[i].stream);
		for (unsigned j = 0; j < LIVE; j++)
			if (j != i && live[j].x != 0)
				assert_true(live[i].x + live[i].bytes <= live[j].x || live[j].x + live[j].bytes <= live[i].x);
		if (round % 500 == 0)
			assert_cuda(cuCtxSynchronize());
	}
	for (unsigned i = 0; i < LIVE; i++)
		if (live[i].x != 0)
			assert_cuda(cuMemFreeAsync(live[i].x, live[i].stream));
	assert_cuda(cuCtxSynchronize());
	assert_int_equal(figure(pool, CU_MEMPOOL_USED_CURRENT), 0);
	assert_int_equal(driver_free_bytes(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reserved_and_used), cmocka_unit_test(test_threshold_and_trim), cmocka_unit_test(test_who_may_reuse),
		cmocka_unit_test(test_mixed_ways),	  cmocka_unit_test(test_own_pool),	     cmocka_unit_test(test_random_use),
	};
	return cmocka_run_group_tests(tests, open_driver, close_driver);
}
