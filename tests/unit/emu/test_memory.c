/* Device memory of the emulated driver: plain, mapped by hand, the host's; what counts, and what
 * misuse is answered with. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* A context that an error ended is replaced by a new one. */
static void renew_context(void)
{
	CUcontext context = NULL;
	assert_cuda(cuDevicePrimaryCtxReset_v2(0));
	assert_cuda(cuDevicePrimaryCtxRetain(&context, 0));
	assert_cuda(cuCtxSetCurrent(context));
}

static CUmemHandle create(size_t bytes)
{
	CUmemHandle handle = 0;
	CUmemAllocationProp properties = driver_memory_of(CU_MEM_LOCATION_DEVICE, 0);
	assert_cuda(cuMemCreate(&handle, bytes, &properties, 0));
	return handle;
}

static CUdeviceptr reserve(size_t bytes)
{
	CUdeviceptr address = 0;
	assert_cuda(cuMemAddressReserve(&address, bytes, 0, 0, 0));
	assert_true(address % PAGE == 0);
	return address;
}

/* Large allocations count in pages, small ones share a page, and all comes back. */
static void test_plain_memory_is_counted(void **state)
{
	(void)state;
	size_t before = driver_free_bytes();
	CUdeviceptr large = 0, small[3];
	assert_cuda(cuMemAlloc_v2(&large, 3 * MiB));
	assert_int_equal(before - driver_free_bytes(), 2 * PAGE);
	for (int i = 0; i < 3; i++)
		assert_cuda(cuMemAlloc_v2(&small[i], 1000));
	assert_int_equal(before - driver_free_bytes(), 3 * PAGE);
	assert_true(small[0] != small[1] && small[0] % 256 == 0);
	for (int i = 0; i < 3; i++)
		assert_cuda(cuMemFree_v2(small[i]));
	assert_int_equal(before - driver_free_bytes(), 2 * PAGE);
	assert_cuda(cuMemFree_v2(large));
	assert_int_equal(driver_free_bytes(), before);
}

/* Zero, too much, overflow, NULL and unknown pointers are error codes. */
static void test_bad_plain_calls(void **state)
{
	(void)state;
	CUdeviceptr address = 0;
	size_t before = driver_free_bytes();
	assert_int_equal(cuMemAlloc_v2(&address, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemAlloc_v2(NULL, 100), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemAlloc_v2(&address, 2048 * MiB), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuMemAlloc_v2(&address, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuMemAlloc_v2(&address, SIZE_MAX - 100), CUDA_ERROR_OUT_OF_MEMORY);
	assert_cuda(cuMemFree_v2(0));
	assert_int_equal(cuMemFree_v2(0x1000), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuMemAlloc_v2(&address, 100));
	assert_int_equal(cuMemFree_v2(address + 8), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuMemFree_v2(address));
	assert_int_equal(cuMemFree_v2(address), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuMemGetInfo_v2(NULL, NULL));
	assert_int_equal(driver_free_bytes(), before);
}

/* All of the memory can be had, and not a page more. */
static void test_everything_and_no_more(void **state)
{
	(void)state;
	size_t all = driver_free_bytes();
	CUdeviceptr address = 0, more = 0;
	assert_cuda(cuMemAlloc_v2(&address, all));
	assert_int_equal(driver_free_bytes(), 0);
	assert_int_equal(cuMemAlloc_v2(&more, 1), CUDA_ERROR_OUT_OF_MEMORY);
	assert_cuda(cuMemFree_v2(address));
	assert_int_equal(driver_free_bytes(), all);
}

static void test_copies_and_fills(void **state)
{
	(void)state;
	enum { N = 3 * 1024 * 1024 };
	unsigned char *out = malloc(N), *in = malloc(N);
	CUdeviceptr a = 0, b = 0;
	for (int i = 0; i < N; i++)
		out[i] = (unsigned char)(i * 7 + (i >> 12));
	assert_cuda(cuMemAlloc_v2(&a, N));
	assert_cuda(cuMemAlloc_v2(&b, N));
	assert_cuda(cuMemcpyHtoD_v2(a, out, N));
	assert_cuda(cuMemcpyDtoD_v2(b + 5, a + 9, N - 100));
	assert_cuda(cuMemcpyDtoH_v2(in, b + 5, N - 100));
	assert_memory_equal(in, out + 9, N - 100);
	assert_cuda(cuMemsetD32_v2(b, 0x01020304, N / 4));
	assert_cuda(cuMemcpyDtoH_v2(in, b, 8));
	assert_memory_equal(in, "\4\3\2\1\4\3\2\1", 8);
	assert_int_equal(cuMemcpyHtoD_v2(0x1000, out, 8), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemsetD32_v2(b + 1, 0, 1), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuMemcpyHtoD_v2(a, out, 0));
	assert_cuda(cuMemFree_v2(a));
	assert_cuda(cuMemFree_v2(b));
	free(out);
	free(in);
}

/* The copies of a batch are done in a stream, from and to wherever their addresses lie; the first
 * that is refused is named. */
static void test_batches_of_copies(void **state)
{
	(void)state;
	uint32_t words[4] = {1, 2, 3, 4}, back[4] = {0};
	CUdeviceptr a = 0;
	CUstream stream = NULL;
	size_t failed = 7, first = 0;
	uint64_t attributes[4] = {1};
	assert_cuda(cuMemAlloc_v2(&a, 64));
	assert_cuda(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CUdeviceptr to[] = {a, a + 32, (uintptr_t)back}, from[] = {(uintptr_t)words, a, a + 32};
	size_t bytes[] = {16, 16, 16};
	assert_cuda(cuMemcpyBatchAsync(to, from, bytes, 3, attributes, &first, 1, &failed, stream));
	assert_cuda(cuStreamSynchronize(stream));
	assert_memory_equal(back, words, sizeof words);
	assert_true(failed == SIZE_MAX);
	from[1] = 0;
	assert_int_equal(cuMemcpyBatchAsync(to, from, bytes, 3, attributes, &first, 1, &failed, stream), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(failed, 1);
	assert_int_equal(cuMemcpyBatchAsync(to, from, bytes, 1, attributes, &first, 1, &failed, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemcpyBatchAsync(to, from, bytes, 0, attributes, &first, 1, &failed, stream), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuStreamDestroy_v2(stream));
	assert_cuda(cuMemFree_v2(a));
}

/* Rows with gaps, from the host and back. */
static void test_pitched_copies(void **state)
{
	(void)state;
	unsigned char out[10][33], in[10][40];
	CUdeviceptr a = 0;
	size_t pitch = 0;
	memset(in, 0, sizeof in);
	for (int y = 0; y < 10; y++)
		for (int x = 0; x < 33; x++)
			out[y][x] = (unsigned char)(y * 50 + x);
	assert_cuda(cuMemAllocPitch_v2(&a, &pitch, 33, 10, 4));
	assert_true(pitch >= 33);
	CUcopy2d there = {.src_type = CU_MEMORY_HOST,
			  .src_host = out,
			  .src_pitch = 33,
			  .dst_type = CU_MEMORY_DEVICE,
			  .dst_device = a,
			  .dst_pitch = pitch,
			  .width = 33,
			  .height = 10};
	CUcopy2d back = {.src_type = CU_MEMORY_DEVICE,
			 .src_device = a,
			 .src_pitch = pitch,
			 .src_x = 3,
			 .src_y = 2,
			 .dst_type = CU_MEMORY_HOST,
			 .dst_host = in,
			 .dst_pitch = 40,
			 .dst_x = 1,
			 .width = 20,
			 .height = 5};
	assert_cuda(cuMemcpy2D_v2(&there));
	assert_cuda(cuMemcpy2D_v2(&back));
	for (int y = 0; y < 5; y++)
		assert_memory_equal(&in[y][1], &out[y + 2][3], 20);
	assert_int_equal(in[0][0] + in[0][21] + in[5][1], 0);
	assert_cuda(cuMemFree_v2(a));
}

/* Device memory is not the host's to touch: the kernel refuses to read it, as it would
 * on a machine with a GPU. */
static void test_host_cannot_touch_device_memory(void **state)
{
	(void)state;
	CUdeviceptr a = 0;
	int pipes[2];
	assert_cuda(cuMemAlloc_v2(&a, 100));
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(write(pipes[1], (const void *)(uintptr_t)a, 1), -1);
	close(pipes[0]);
	close(pipes[1]);
	assert_cuda(cuMemFree_v2(a));
}

static void test_bad_mappings(void **state)
{
	(void)state;
	size_t before = driver_free_bytes();
	CUdeviceptr address = reserve(8 * PAGE);
	CUmemHandle two = create(2 * PAGE), one = create(PAGE), none = 0;
	CUmemAllocationProp properties = driver_memory_of(CU_MEM_LOCATION_DEVICE, 0);
	CUmemAllocationProp nowhere = driver_memory_of(CU_MEM_LOCATION_DEVICE, 99);
	CUdeviceptr other = 0;
	assert_int_equal(cuMemCreate(&none, 0, &properties, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemCreate(&none, MiB, &properties, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemCreate(&none, PAGE, &nowhere, 0), CUDA_ERROR_INVALID_DEVICE);
	assert_int_equal(cuMemCreate(&none, 2048 * MiB, &properties, 0), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuMemAddressReserve(&other, 0, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemAddressReserve(&other, PAGE, 3, 0, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemMap(address, PAGE, PAGE, two, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemMap(address + 4096, PAGE, 0, two, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemMap(address, 4 * PAGE, 0, two, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemMap(address, PAGE, 0, 0x1234, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemMap(address + 7 * PAGE, 2 * PAGE, 0, two, 0), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuMemMap(address, 2 * PAGE, 0, two, 0));
	assert_int_equal(cuMemMap(address + PAGE, PAGE, 0, one, 0), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuMemMap(address + 2 * PAGE, PAGE, 0, one, 0));
	assert_int_equal(cuMemUnmap(address, PAGE), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemUnmap(address + 4 * PAGE, PAGE), CUDA_ERROR_INVALID_VALUE);
	CUmemAccessDesc access = {.location = {CU_MEM_LOCATION_DEVICE, 0}, .flags = CU_MEM_ACCESS_READWRITE};
	assert_int_equal(cuMemSetAccess(address + 4 * PAGE, PAGE, &access, 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemSetAccess(address, 4 * PAGE, &access, 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemAddressFree(address, 8 * PAGE), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemAddressFree(address, 4 * PAGE), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuMemUnmap(address, 3 * PAGE));
	assert_cuda(cuMemAddressFree(address, 8 * PAGE));
	assert_cuda(cuMemRelease(two));
	assert_int_equal(cuMemRelease(two), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuMemRelease(one));
	assert_int_equal(driver_free_bytes(), before);
}

/* Memory lives as long as a handle or a mapping does, and a retained handle is the same memory. */
static void test_memory_lives_by_handle_or_mapping(void **state)
{
	(void)state;
	size_t before = driver_free_bytes();
	CUdeviceptr address = reserve(2 * PAGE);
	CUmemHandle handle = create(PAGE), again = 0;
	uint32_t in = 0;
	assert_cuda(cuMemMap(address, PAGE, 0, handle, 0));
	driver_allow(address, PAGE);
	assert_cuda(cuMemsetD32_v2(address, 77, 16));
	assert_cuda(cuMemRelease(handle));
	assert_int_equal(before - driver_free_bytes(), PAGE);
	assert_cuda(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(address + 100)));
	assert_int_equal(again, handle);
	assert_cuda(cuCtxSynchronize());
	assert_cuda(cuMemUnmap(address, PAGE));
	assert_int_equal(before - driver_free_bytes(), PAGE);
	assert_cuda(cuMemMap(address + PAGE, PAGE, 0, again, 0));
	driver_allow(address + PAGE, PAGE);
	assert_cuda(cuMemcpyDtoH_v2(&in, address + PAGE, 4));
	assert_int_equal(in, 77);
	assert_cuda(cuMemUnmap(address + PAGE, PAGE));
	assert_cuda(cuMemRelease(again));
	assert_int_equal(driver_free_bytes(), before);
	assert_cuda(cuMemAddressFree(address, 2 * PAGE));
}

/* A range goes to the host and comes back at the same address; a kernel works on it in both places,
 * and the CPU reads it in one. */
static void test_memory_moves_below_an_address(void **state)
{
	(void)state;
	enum { N = 1000 };
	CUdeviceptr address = reserve(PAGE);
	CUmemHandle device = create(PAGE), host = 0;
	CUmemAllocationProp properties = driver_memory_of(CU_MEM_LOCATION_HOST_NUMA, 0);
	uint32_t words[N] = {0}, in[N];
	size_t before = driver_free_bytes();
	assert_cuda(cuMemCreate(&host, PAGE, &properties, 0));
	assert_int_equal(driver_free_bytes(), before);
	assert_cuda(cuMemMap(address, PAGE, 0, device, 0));
	driver_allow(address, PAGE);
	assert_cuda(driver_stir(NULL, address, N));
	stir_here(words, N);
	assert_cuda(cuMemcpyDtoH_v2(in, address, sizeof in));
	assert_memory_equal(in, words, sizeof in);

	assert_cuda(cuMemUnmap(address, PAGE));
	assert_cuda(cuMemMap(address, PAGE, 0, host, 0));
	CUmemAccessDesc access[2] = {{.location = {CU_MEM_LOCATION_DEVICE, 0}, .flags = CU_MEM_ACCESS_READWRITE},
				     {.location = {CU_MEM_LOCATION_HOST_NUMA, 0}, .flags = CU_MEM_ACCESS_READWRITE}};
	assert_cuda(cuMemSetAccess(address, PAGE, access, 2));
	memcpy((void *)(uintptr_t)address, in, sizeof in);
	assert_cuda(driver_stir(NULL, address, N));
	stir_here(words, N);
	assert_cuda(cuCtxSynchronize());
	assert_memory_equal((void *)(uintptr_t)address, words, sizeof words);
	assert_cuda(cuMemUnmap(address, PAGE));
	assert_cuda(cuMemRelease(device));
	assert_cuda(cuMemRelease(host));
	assert_cuda(cuMemAddressFree(address, PAGE));
}

/* A kernel on memory that is reserved but not mapped, or mapped without
 * access, ends the context. */
static void test_unmapped_memory_is_illegal(void **state)
{
	(void)state;
	CUdeviceptr address = reserve(2 * PAGE), plain = 0;
	CUmemHandle handle = create(PAGE);
	assert_cuda(driver_stir(NULL, address, 16));
	assert_int_equal(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	assert_int_equal(cuMemAlloc_v2(&plain, 100), CUDA_ERROR_ILLEGAL_ADDRESS);
	assert_int_equal(cuMemGetInfo_v2(NULL, NULL), CUDA_ERROR_ILLEGAL_ADDRESS);
	renew_context();
	assert_cuda(cuMemMap(address, PAGE, 0, handle, 0));
	assert_cuda(driver_stir(NULL, address, 16));
	assert_int_equal(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	renew_context();
	driver_allow(address, PAGE);
	assert_cuda(driver_stir(NULL, address + PAGE - 64, 17)); /* one word over the edge */
	assert_int_equal(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	renew_context();
	assert_cuda(cuMemUnmap(address, PAGE));
	assert_cuda(cuMemRelease(handle));
	assert_cuda(cuMemAddressFree(address, 2 * PAGE));
}

/* Memory that is taken away below a running kernel is found out, also when other
 * memory is put in its place. */
static void test_unmap_below_a_kernel_is_illegal(void **state)
{
	(void)state;
	CUdeviceptr address = reserve(PAGE);
	CUmemHandle handle = create(PAGE), other = create(PAGE);
	uint64_t n = 16;
	assert_cuda(cuMemMap(address, PAGE, 0, handle, 0));
	driver_allow(address, PAGE);
	CUevent before = NULL;
	assert_cuda(cuEventCreate(&before, 0));
	assert_cuda(cuEventRecord(before, NULL));
	assert_cuda(driver_launch("stir_slowly", NULL, (void *[]){&address, &n}));
	assert_cuda(cuEventSynchronize(before));
	usleep(200000); /* by then it has begun, and it takes three times as long */
	assert_cuda(cuEventDestroy_v2(before));
	assert_cuda(cuMemUnmap(address, PAGE));
	assert_cuda(cuMemMap(address, PAGE, 0, other, 0));
	driver_allow(address, PAGE);
	assert_int_equal(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	renew_context();
	assert_cuda(cuMemUnmap(address, PAGE));
	assert_cuda(cuMemRelease(handle));
	assert_cuda(cuMemRelease(other));
	assert_cuda(cuMemAddressFree(address, PAGE));
}

/* Tensors may lie over several pieces of memory. */
static void test_kernel_over_two_pieces(void **state)
{
	(void)state;
	enum { N = 64 };
	CUdeviceptr address = reserve(2 * PAGE), at = address + PAGE - 32 * 4;
	CUmemHandle a = create(PAGE), b = create(PAGE);
	uint32_t words[N] = {0}, in[N];
	assert_cuda(cuMemMap(address, PAGE, 0, b, 0));
	assert_cuda(cuMemMap(address + PAGE, PAGE, 0, a, 0));
	driver_allow(address, 2 * PAGE);
	assert_cuda(driver_stir(NULL, at, N));
	stir_here(words, N);
	assert_cuda(cuMemcpyDtoH_v2(in, at, sizeof in));
	assert_memory_equal(in, words, sizeof in);
	assert_cuda(cuMemUnmap(address, 2 * PAGE));
	assert_cuda(cuMemRelease(a));
	assert_cuda(cuMemRelease(b));
	assert_cuda(cuMemAddressFree(address, 2 * PAGE));
}

static void test_host_memory(void **state)
{
	(void)state;
	enum { N = 100 };
	static uint32_t own[N];
	uint32_t *pinned = NULL, words[N] = {0};
	CUdeviceptr device = 0, managed = 0;
	uint64_t n = N;
	assert_cuda(cuMemHostAlloc((void **)&pinned, sizeof words, 0));
	memset(pinned, 0, sizeof words);
	assert_cuda(cuMemHostGetDevicePointer_v2(&device, pinned, 0));
	assert_cuda(driver_stir(NULL, device, n));
	assert_cuda(cuCtxSynchronize());
	stir_here(words, N);
	assert_memory_equal(pinned, words, sizeof words);
	assert_int_equal(cuMemHostGetDevicePointer_v2(&device, own, 0), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuMemHostRegister_v2(own, sizeof own, 0));
	assert_int_equal(cuMemHostRegister_v2(own, sizeof own, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	assert_cuda(driver_stir(NULL, (CUdeviceptr)(uintptr_t)own, n));
	assert_cuda(cuCtxSynchronize());
	assert_memory_equal(own, words, sizeof words);
	assert_cuda(cuMemHostUnregister(own));
	assert_int_equal(cuMemHostUnregister(own), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	assert_int_equal(cuMemFreeHost(own), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuMemFreeHost(pinned));
	assert_cuda(cuMemAllocManaged(&managed, sizeof words, 1));
	memset((void *)(uintptr_t)managed, 0, sizeof words);
	assert_cuda(driver_stir(NULL, managed, n));
	assert_cuda(cuCtxSynchronize());
	assert_memory_equal((void *)(uintptr_t)managed, words, sizeof words);
	assert_cuda(cuMemFree_v2(managed));
}

static void test_what_an_address_is(void **state)
{
	(void)state;
	CUdeviceptr a = 0, base = 0, start = 0, by_hand = reserve(PAGE);
	size_t bytes = 0;
	unsigned type = 0;
	int device = -1, managed = -1, mapped = -1, ipc = -1;
	CUcontext context = NULL;
	assert_cuda(cuMemAlloc_v2(&a, 5000));
	assert_cuda(cuMemGetAddressRange_v2(&base, &bytes, a + 4999));
	assert_int_equal(base, a);
	assert_int_equal(bytes, 5000);
	assert_cuda(cuMemGetAddressRange_v2(NULL, NULL, a));
	assert_int_equal(cuMemGetAddressRange_v2(&base, &bytes, 0x1000), CUDA_ERROR_NOT_FOUND);
	assert_cuda(cuPointerGetAttribute(&type, CU_POINTER_MEMORY_TYPE, a));
	assert_int_equal(type, CU_MEMORY_DEVICE);
	assert_cuda(cuPointerGetAttribute(&context, CU_POINTER_CONTEXT, a));
	assert_ptr_not_equal(context, NULL);
	int wanted[] = {CU_POINTER_DEVICE_ORDINAL, CU_POINTER_IS_MANAGED, CU_POINTER_RANGE_START};
	void *places[] = {&device, &managed, &start};
	assert_cuda(cuPointerGetAttributes(3, wanted, places, a + 7));
	assert_int_equal(device, 0);
	assert_int_equal(managed, 0);
	assert_int_equal(start, a);
	assert_int_equal(cuPointerGetAttribute(&type, CU_POINTER_MEMORY_TYPE, 0x1000), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuPointerGetAttributes(1, wanted, places, 0x1000));
	assert_int_equal(device, -2);
	assert_cuda(cuPointerGetAttribute(&mapped, CU_POINTER_MAPPED, by_hand));
	assert_int_equal(mapped, 0);
	CUmemHandle handle = create(PAGE);
	assert_cuda(cuMemMap(by_hand, PAGE, 0, handle, 0));
	assert_cuda(cuPointerGetAttribute(&mapped, CU_POINTER_MAPPED, by_hand));
	assert_int_equal(mapped, 1);
	assert_cuda(cuPointerGetAttribute(&ipc, CU_POINTER_IS_LEGACY_IPC_CAPABLE, by_hand));
	assert_int_equal(ipc, 0);
	assert_cuda(cuMemUnmap(by_hand, PAGE));
	assert_cuda(cuMemRelease(handle));
	assert_cuda(cuMemAddressFree(by_hand, PAGE));
	assert_cuda(cuMemFree_v2(a));
}

/* Arrays take device memory and give it back. */
static void test_arrays_are_counted(void **state)
{
	(void)state;
	size_t before = driver_free_bytes();
	CUarray array = NULL;
	CUmipmappedArray mipmap = NULL;
	CUarrayShape shape = {.width = 1024, .height = 1024, .format = 0x20, .channels = 1};
	CUarray3dShape three = {.width = 1024, .height = 1024, .format = 0x20, .channels = 1};
	assert_cuda(cuArrayCreate_v2(&array, &shape));
	assert_int_equal(before - driver_free_bytes(), 4 * MiB);
	assert_cuda(cuMipmappedArrayCreate(&mipmap, &three, 3));
	assert_true(before - driver_free_bytes() > 8 * MiB);
	assert_cuda(cuMipmappedArrayDestroy(mipmap));
	assert_cuda(cuArrayDestroy(array));
	assert_int_equal(driver_free_bytes(), before);
	shape.channels = 3;
	assert_int_equal(cuArrayCreate_v2(&array, &shape), CUDA_ERROR_INVALID_VALUE);
}

/* Thousands of random maps, unmaps, moves and kernels against a plain copy of what must be
 * there. */
static void test_random_moves_keep_contents(void **state)
{
	(void)state;
	enum { RANGES = 12, N = 512, ROUNDS = 4000 };
	static uint32_t model[RANGES][N];
	CUdeviceptr address[RANGES];
	CUmemHandle handle[RANGES] = {0};
	bool mapped[RANGES] = {false};
	unsigned seed = 12345;
	size_t before = driver_free_bytes();
	memset(model, 0, sizeof model);
	for (int i = 0; i < RANGES; i++)
		address[i] = reserve(PAGE);
	for (int round = 0; round < ROUNDS; round++) {
		int i = (int)(rand_r(&seed) % RANGES), j = (int)(rand_r(&seed) % RANGES);
		uint32_t in[N];
		switch (rand_r(&seed) % 4) {
		case 0:
			if (mapped[i]) {
				/* Evict: the contents go to the host and the
				 * memory back to the GPU. */
				assert_cuda(cuMemcpyDtoH_v2(in, address[i], sizeof in));
				assert_memory_equal(in, model[i], sizeof in);
				assert_cuda(cuMemUnmap(address[i], PAGE));
				assert_cuda(cuMemRelease(handle[i]));
			} else {
				handle[i] = create(PAGE);
				assert_cuda(cuMemMap(address[i], PAGE, 0, handle[i], 0));
				driver_allow(address[i], PAGE);
				assert_cuda(cuMemcpyHtoD_v2(address[i], model[i], sizeof model[i]));
			}
			mapped[i] = !mapped[i];
			break;
		case 1:
			if (mapped[i]) {
				assert_cuda(driver_stir(NULL, address[i], N));
				stir_here(model[i], N);
			}
			break;
		case 2:
			if (mapped[i] && mapped[j] && i != j) {
				assert_cuda(cuMemcpyDtoD_v2(address[i], address[j], N * 4));
				memcpy(model[i], model[j], N * 4);
			}
			break;
		default:
			if (mapped[i]) {
				assert_cuda(cuMemcpyDtoH_v2(in, address[i], sizeof in));
				assert_memory_equal(in, model[i], sizeof in);
			}
		}
	}
	assert_cuda(cuCtxSynchronize());
	for (int i = 0; i < RANGES; i++) {
		if (mapped[i]) {
			assert_cuda(cuMemUnmap(address[i], PAGE));
			assert_cuda(cuMemRelease(handle[i]));
		}
		assert_cuda(cuMemAddressFree(address[i], PAGE));
	}
	assert_int_equal(driver_free_bytes(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain_memory_is_counted),
		cmocka_unit_test(test_bad_plain_calls),
		cmocka_unit_test(test_everything_and_no_more),
		cmocka_unit_test(test_copies_and_fills),
		cmocka_unit_test(test_batches_of_copies),
		cmocka_unit_test(test_pitched_copies),
		cmocka_unit_test(test_host_cannot_touch_device_memory),
		cmocka_unit_test(test_bad_mappings),
		cmocka_unit_test(test_memory_lives_by_handle_or_mapping),
		cmocka_unit_test(test_memory_moves_below_an_address),
		cmocka_unit_test(test_unmapped_memory_is_illegal),
		cmocka_unit_test(test_unmap_below_a_kernel_is_illegal),
		cmocka_unit_test(test_kernel_over_two_pieces),
		cmocka_unit_test(test_host_memory),
		cmocka_unit_test(test_what_an_address_is),
		cmocka_unit_test(test_arrays_are_counted),
		cmocka_unit_test(test_random_moves_keep_contents),
	};
	return cmocka_run_group_tests(tests, open_driver, close_driver);
}
