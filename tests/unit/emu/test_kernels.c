/* Modules and kernels of the emulated driver: what they compute, how their arguments get
 * there, and what is refused. */
#include <stdlib.h>
#include <string.h>

#include "unit/emu/driver.h"

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

static CUdeviceptr floats(const float *values, size_t count)
{
	CUdeviceptr x = 0;
	assert_cuda(cuMemAlloc_v2(&x, count * 4));
	assert_cuda(cuMemcpyHtoD_v2(x, values, count * 4));
	return x;
}

static void assert_floats(CUdeviceptr x, const float *wanted, size_t count)
{
	float in[16];
	assert_cuda(cuMemcpyDtoH_v2(in, x, count * 4));
	assert_memory_equal(in, wanted, count * 4);
}

/* Small cases that can be checked by hand. */
static void test_what_kernels_compute(void **state)
{
	(void)state;
	CUdeviceptr a = floats((const float[]){1, 2, 3, 4, 5, 6}, 6); /* 2 x 3, or 3 x 2 */
	CUdeviceptr b = floats((const float[]){1, 0, 2, 1, 0, 3}, 6);
	CUdeviceptr c = floats((const float[]){9, 9, 9, 9, 9, 9, 9, 9, 9}, 9);
	uint32_t two = 2, three = 3;
	uint64_t n = 6;
	float v = 0.5F;
	assert_cuda(driver_launch("matmul", NULL, (void *[]){&c, &a, &b, &two, &two, &three}));
	assert_floats(c, (const float[]){5, 11, 14, 23}, 4);
	assert_cuda(driver_launch("matmul_b", NULL, (void *[]){&c, &a, &b, &two, &two, &three}));
	assert_floats(c, (const float[]){7, 10, 16, 22}, 4);
	assert_cuda(driver_launch("matmul_a", NULL, (void *[]){&c, &a, &b, &three, &three, &two}));
	assert_floats(c, (const float[]){5, 0, 14, 7, 0, 19, 9, 0, 24}, 9);
	assert_cuda(driver_launch("axpy", NULL, (void *[]){&b, &a, &v, &n}));
	assert_floats(b, (const float[]){1.5F, 1, 3.5F, 3, 2.5F, 6}, 6);
	assert_cuda(driver_launch("reduce", NULL, (void *[]){&c, &a, &n}));
	assert_floats(c, (const float[]){21}, 1);
	assert_cuda(driver_launch("sum_rows", NULL, (void *[]){&c, &a, &two, &three}));
	assert_floats(c, (const float[]){5, 7, 9}, 3);
	assert_cuda(driver_launch("add_row", NULL, (void *[]){&a, &c, &two, &three}));
	assert_floats(a, (const float[]){6, 9, 12, 9, 12, 15}, 6);
	for (CUdeviceptr *x = (CUdeviceptr[]){a, b, c, 0}; *x != 0; x++)
		assert_cuda(cuMemFree_v2(*x));
}

/* The same seed gives the same numbers, and the hash tells contents apart. */
static void test_random_and_hash(void **state)
{
	(void)state;
	CUdeviceptr a = 0, b = 0, place = 0;
	uint64_t n = 1000, seeds[] = {7, 7, 8}, hashes[3];
	assert_cuda(cuMemAlloc_v2(&a, n * 4));
	assert_cuda(cuMemAlloc_v2(&b, n * 4));
	assert_cuda(cuMemAlloc_v2(&place, 8));
	for (int i = 0; i < 3; i++) {
		CUdeviceptr *x = i % 2 == 0 ? &a : &b;
		assert_cuda(driver_launch("random", NULL, (void *[]){x, &seeds[i], &n}));
		assert_cuda(driver_launch("hash", NULL, (void *[]){&place, x, &n}));
		assert_cuda(cuMemcpyDtoH_v2(&hashes[i], place, 8));
	}
	assert_int_equal(hashes[0], hashes[1]);
	assert_int_not_equal(hashes[0], hashes[2]);
	assert_cuda(cuMemFree_v2(a));
	assert_cuda(cuMemFree_v2(b));
	assert_cuda(cuMemFree_v2(place));
}

/* Arguments by pointers, by a buffer, by a configuration: all the same. */
static void test_ways_to_launch(void **state)
{
	(void)state;
	CUdeviceptr x = 0;
	uint32_t wanted[8] = {0}, in[8];
	uint64_t n = 8;
	size_t offset = 99, bytes = 0;
	CUfunction stir = driver_kernel("stir");
	assert_cuda(cuMemAlloc_v2(&x, 32));
	assert_cuda(cuMemsetD32_v2(x, 0, 8));
	struct {
		CUdeviceptr x;
		uint64_t n;
	} buffer = {x, n};
	size_t size = sizeof buffer;
	void *extra[] = {(void *)1, &buffer, (void *)2, &size, NULL};
	CUlaunchConfig config = {.grid = {1, 1, 1}, .block = {8, 1, 1}};
	assert_cuda(cuLaunchKernel(stir, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
	assert_cuda(cuLaunchKernelEx(&config, stir, (void *[]){&x, &n}, NULL));
	assert_cuda(driver_stir(NULL, x, n));
	for (int i = 0; i < 3; i++)
		stir_here(wanted, 8);
	assert_cuda(cuMemcpyDtoH_v2(in, x, sizeof in));
	assert_memory_equal(in, wanted, sizeof in);
	assert_cuda(cuFuncGetParamInfo(stir, 1, &offset, &bytes));
	assert_int_equal(offset, 8);
	assert_int_equal(bytes, 8);
	assert_int_equal(cuFuncGetParamInfo(stir, 2, &offset, &bytes), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuLaunchKernel(stir, 0, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&x, &n}, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuLaunchKernel(stir, 1, 1, 1, 2048, 1, 1, 0, NULL, (void *[]){&x, &n}, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuLaunchKernel(stir, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&x, &n}, NULL), CUDA_ERROR_INVALID_HANDLE);
	assert_cuda(cuMemFree_v2(x));
}

/* A text that is not a module, or has a mistake, is refused as a whole. */
static void test_bad_modules(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"",
		"hello",
		"sharewell-emu 1\nkernel a\n",
		"sharewell-emu 1\nkernel a op=nothing\n",
		"sharewell-emu 1\nkernel a op=fill type=f64\n",
		"sharewell-emu 1\nkernel a op=fill time=5\n",
		"sharewell-emu 1\nkernel a op=fill colour=red\n",
		"sharewell-emu 1\nsomething else\n",
		"sharewell-emu 1\nglobal a\n",
	};
	CUmodule module = NULL;
	CUfunction function = NULL;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_int_equal(cuModuleLoadData(&module, bad[i]), CUDA_ERROR_INVALID_IMAGE);
	assert_int_equal(cuModuleLoadData(&module, ".version 7.0\n.target sm_90\n"), CUDA_ERROR_NO_BINARY_FOR_GPU);
	assert_int_equal(cuModuleLoadData(&module, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuModuleLoadData(&module, "sharewell-emu 1\nkernel a op=fill time=1.5us each=20ps # filled\nglobal g 4K\n"));
	assert_cuda(cuModuleGetFunction(&function, module, "a"));
	assert_int_equal(cuModuleGetFunction(&function, module, "b"), CUDA_ERROR_NOT_FOUND);
	CUdeviceptr global = 0;
	size_t bytes = 0;
	assert_cuda(cuModuleGetGlobal_v2(&global, &bytes, module, "g"));
	assert_int_equal(bytes, 4096);
	assert_cuda(cuMemsetD8_v2(global, 1, bytes));
	assert_int_equal(cuModuleGetGlobal_v2(&global, &bytes, module, "h"), CUDA_ERROR_NOT_FOUND);
	assert_cuda(cuModuleUnload(module));
	assert_int_equal(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_HANDLE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_kernels_compute),
		cmocka_unit_test(test_random_and_hash),
		cmocka_unit_test(test_ways_to_launch),
		cmocka_unit_test(test_bad_modules),
	};
	return cmocka_run_group_tests(tests, open_driver, close_driver);
}
