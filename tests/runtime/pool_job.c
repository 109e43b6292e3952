#include "runtime/pool_job.h"

#include <stdlib.h>

CUmemoryPool standard;
CUstream a, b;

void open_streams(void)
{
	open_driver();
	assert_cuda(cuDeviceGetDefaultMemPool(&standard, 0));
	assert_cuda(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
	assert_cuda(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
}

uint64_t figure(CUmemoryPool pool, int attribute)
{
	uint64_t value = 0;
	assert_cuda(cuMemPoolGetAttribute(pool, attribute, &value));
	return value;
}

void set_threshold(CUmemoryPool pool, uint64_t bytes)
{
	assert_cuda(cuMemPoolSetAttribute(pool, CU_MEMPOOL_RELEASE_THRESHOLD, &bytes));
}

uint64_t charged(void)
{
	return look().gpus[0].charged_bytes - CONTEXT_BYTES;
}

uint64_t fixed(void)
{
	return look().gpus[0].fixed_bytes - CONTEXT_BYTES;
}

CUdeviceptr take(size_t bytes, CUstream stream)
{
	CUdeviceptr x = 0;
	assert_cuda(cuMemAllocAsync(&x, bytes, stream));
	return x;
}

void expect(CUdeviceptr x, size_t bytes, unsigned char value)
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

int pools_up(void **state)
{
	unsetenv(SW_PAGE_MOVES_ENV);
	return machine_up(state);
}
