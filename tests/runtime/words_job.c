#include "runtime/words_job.h"

void check_words(CUdeviceptr x, const uint32_t *wanted)
{
	static uint32_t found[WORDS];
	assert_cuda(cuMemcpyDtoH_v2(found, x, sizeof found));
	assert_memory_equal(found, wanted, sizeof found);
}

void live_on_words(int socket)
{
	static uint32_t words[WORDS];
	CUdeviceptr x = 0;
	open_driver();
	assert_cuda(cuMemAlloc_v2(&x, 200 * MiB));
	assert_cuda(cuMemcpyHtoD_v2(x, words, sizeof words));
	tell(socket, 'r');
	hear(socket, 'g');
	assert_cuda(launch_stir(NULL, x, WORDS));
	stir_here(words, WORDS);
	check_words(x, words);
	tell(socket, 'd');
	hear(socket, 'e');
	check_words(x, words);
}
