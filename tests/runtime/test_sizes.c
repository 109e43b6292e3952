/* What a program hears of its memory: sizes that agree with its limit, from the driver and from the
 * management library, and refusals that take nothing. */
#include <dlfcn.h>

#include "runtime/job.h"

/* Beside the context, which always counts. */
static uint64_t charged(void)
{
	return look().gpus[0].charged_bytes - CONTEXT_BYTES;
}

/* ---- limits as the program sees them */

static void ask_for_sizes(int socket)
{
	size_t free = 0, total = 0, memory = 0;
	CUdeviceptr x = 0;
	(void)socket;
	open_driver();
	assert_cuda(cuMemGetInfo_v2(&free, &total));
	assert_true(total == 100 * MiB + CONTEXT_BYTES && free == 100 * MiB);
	assert_cuda(cuDeviceTotalMem_v2(&memory, 0));
	assert_int_equal(memory, 100 * MiB + CONTEXT_BYTES);
	assert_cuda(cuMemAlloc_v2(&x, 30 * MiB));
	assert_cuda(cuMemGetInfo_v2(&free, NULL));
	assert_int_equal(free, 70 * MiB);
	assert_int_equal(cuMemAlloc_v2(&x, 71 * MiB), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuMemAlloc_v2(&x, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuMemAlloc_v2(&x, SIZE_MAX - MiB), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(charged(), 30 * MiB);
	assert_int_equal(cuMemAlloc_v2(&x, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemAlloc_v2(NULL, 100), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemAllocPitch_v2(&x, NULL, 100, 100, 4), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemAllocPitch_v2(&x, &free, 100, 100, 3), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemAllocPitch_v2(&x, &free, SIZE_MAX / 2, 3, 4), CUDA_ERROR_OUT_OF_MEMORY);
	assert_cuda(cuMemAlloc_v2(&x, 70 * MiB));
	assert_cuda(cuMemGetInfo_v2(&free, NULL));
	assert_int_equal(free, 0);
	limit(SW_PAGE_NO_LIMIT);
	assert_cuda(cuMemGetInfo_v2(&free, &total));
	assert_true(total == 512 * MiB && free == 512 * MiB - CONTEXT_BYTES - 100 * MiB);
	assert_int_equal(cuMemAlloc_v2(&x, 512 * MiB), CUDA_ERROR_OUT_OF_MEMORY);
	/* NULL is nothing to free, and no error. */
	assert_cuda(cuMemFree_v2(0));
}

/* What the program is told of the GPU's memory agrees with the limit, and what is over it is
 * refused as out of memory. */
static void test_sizes_agree_with_the_limit(void **state)
{
	(void)state;
	sw_share_page_host_budget(page(), 0);
	sw_share_page_limit(page(), 0, 100 * MiB + CONTEXT_BYTES);
	run_job(ask_for_sizes);
}

/* ---- requests that fail */

static void ask_for_too_much(int socket)
{
	CUdeviceptr x = 0;
	(void)socket;
	open_driver();
	assert_int_equal(cuMemAlloc_v2(&x, 4096 * MiB), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuMemAlloc_v2(&x, 512 * MiB + 1024 * MiB + 1), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuMemAllocAsync(&x, 4096 * MiB, NULL), CUDA_ERROR_OUT_OF_MEMORY);
	limit(100 * MiB);
	assert_int_equal(cuMemAlloc_v2(&x, 100 * MiB + 1024 * MiB + 1), CUDA_ERROR_OUT_OF_MEMORY);
	/* What could fit is asked of the driver. */
	assert_int_equal(cuMemAlloc_v2(&x, 100 * MiB), CUDA_ERROR_UNKNOWN);
}

/* What is more than the job could ever have, on the GPU and in host memory, is refused
 * before any of it is taken. */
static void test_what_never_fits_takes_nothing(void **state)
{
	(void)state;
	machine_setting("fault=cuMemCreate:count=1000:error=999");
	run_job(ask_for_too_much);
}

static uint64_t peak(void)
{
	return look().gpus[0].peak_bytes - CONTEXT_BYTES;
}

static void fail_at_the_end(int socket)
{
	const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_PINNED, .location = {CU_MEM_LOCATION_DEVICE, 0}};
	CUdeviceptr x = 0, y = 0;
	CUmemHandle handle = 0;
	(void)socket;
	open_driver();
	assert_cuda(cuMemAlloc_v2(&x, 100 * MiB));
	assert_int_equal(peak(), 100 * MiB);
	/* In pieces, of which there is room for some. */
	assert_int_equal(cuMemAlloc_v2(&y, 450 * MiB), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuMemAllocAsync(&y, 450 * MiB, NULL), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuMemCreate(&handle, 450 * MiB, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_not_equal(cuMemAllocManaged(&y, 32 * MiB, 77), CUDA_SUCCESS);
	assert_int_equal(peak(), 100 * MiB);
	/* What was got in host memory counts when it comes to the GPU. */
	host_budget(1024 * MiB);
	limit(CONTEXT_BYTES + 100 * MiB);
	assert_cuda(cuMemAlloc_v2(&y, 40 * MiB));
	assert_int_equal(peak(), 100 * MiB);
	limit(SW_PAGE_NO_LIMIT);
	eventually(peak() == 140 * MiB);
	assert_cuda(cuMemFree_v2(y));
	assert_cuda(cuMemFree_v2(x));
	assert_int_equal(peak(), 140 * MiB);
}

/* The most that a process had is what it had: a request that was refused in the
 * end raises it by nothing. */
static void test_refusals_raise_no_peak(void **state)
{
	(void)state;
	sw_share_page_host_budget(page(), 0);
	run_job(fail_at_the_end);
}

/* ---- the same of the management library */

struct nvml_memory {
	unsigned long long total, free, used;
};
struct nvml_memory_v2 {
	unsigned version;
	unsigned long long total, reserved, free, used;
};

static void *nvml(const char *name)
{
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	assert_non_null(library);
	void *found = dlsym(library, name);
	assert_non_null(found);
	return found;
}

/* As a program sees it that looks its functions up. */
static struct nvml_memory ask_nvml(void)
{
	int (*init)(void), (*device)(unsigned, void **), (*memory)(void *, struct nvml_memory *),
		(*memory_v2)(void *, struct nvml_memory_v2 *);
	void *handle = NULL;
	struct nvml_memory found;
	struct nvml_memory_v2 also = {.version = (unsigned)sizeof also | 2U << 24};
	*(void **)&init = nvml("nvmlInit_v2");
	*(void **)&device = nvml("nvmlDeviceGetHandleByIndex_v2");
	*(void **)&memory = nvml("nvmlDeviceGetMemoryInfo");
	*(void **)&memory_v2 = nvml("nvmlDeviceGetMemoryInfo_v2");
	assert_int_equal(init(), 0);
	assert_int_equal(device(0, &handle), 0);
	assert_int_equal(memory(handle, &found), 0);
	assert_int_equal(memory_v2(handle, &also), 0);
	assert_true(found.total == also.total && found.free == also.free && found.used == also.used);
	assert_int_not_equal(memory(NULL, &found), 0);
	assert_int_not_equal(memory(handle, NULL), 0);
	also.version = 0;
	assert_int_not_equal(memory_v2(handle, &also), 0);
	return found;
}

static void ask_both(int socket)
{
	size_t free = 0, total = 0;
	CUdeviceptr x = 0;
	(void)socket;
	/* Before it has anything to do with the driver, and after. */
	struct nvml_memory memory = ask_nvml();
	assert_true(memory.total == 100 * MiB && memory.free == 100 * MiB && memory.used == 0);
	open_driver();
	assert_cuda(cuMemAlloc_v2(&x, 30 * MiB));
	assert_cuda(cuMemGetInfo_v2(&free, &total));
	memory = ask_nvml();
	assert_true(memory.total == total && memory.free == free && memory.used == total - free);
	assert_int_equal(memory.used, CONTEXT_BYTES + 30 * MiB);
	/* More than it may have. */
	limit(20 * MiB);
	memory = ask_nvml();
	assert_true(memory.total == 20 * MiB && memory.free <= 4 * MiB && memory.used + memory.free <= memory.total);
	limit(SW_PAGE_NO_LIMIT);
	eventually(look().gpus[0].host_bytes == 0);
	memory = ask_nvml();
	assert_true(memory.total == 512 * MiB && memory.used == CONTEXT_BYTES + 30 * MiB);
}

/* The management library tells a program with a limit what the driver tells it, and
 * the truth to one without. */
static void test_the_management_library_agrees(void **state)
{
	(void)state;
	sw_share_page_limit(page(), 0, 100 * MiB);
	run_job(ask_both);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, machine_up, machine_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_sizes_agree_with_the_limit),
		CASE(test_the_management_library_agrees),
		CASE(test_what_never_fits_takes_nothing),
		CASE(test_refusals_raise_no_peak),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
