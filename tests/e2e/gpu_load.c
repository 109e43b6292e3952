/* A program for the scripts around `sharewell share`: keeps the emulated GPU busy, holds memory,
 * and says what it computed.
 *
 *   gpu_load [--rounds 10] [--kernels 4] [--kernel-us 5000] [--period-us 0] [--memory 64M] [--grow
 *   64M] [--grow-at 3] [--start FILE] [--end FILE] [--log FILE]
 *
 * A round is that many kernels, all given to the GPU at once, and one that changes all of its
 * memory; then it waits for their end. --grow takes more memory before a round. --start waits
 * for a file before the first round, with the memory taken; --end goes on with rounds that leave
 * memory as it is until there is a file. --log writes a line after each round: its number and
 * the clock. --period-us lets a round begin only when its input is there: one comes every so
 * often, whatever the rounds before took, and each ends with a kernel of another kind, so that
 * rounds can be told apart. At its end it prints a hash of its memory, which depends on the
 * rounds and the sizes alone.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cuda/driver.h"

static const char kernels[] = "sharewell-emu 1\n"
			      "kernel hash op=hash\n"
			      "kernel touch op=stir type=u32\n"
			      "kernel spin op=spin\n";

#define FUNCTIONS(X)                                                       \
	X(cuInit, (unsigned))                                              \
	X(cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice))               \
	X(cuCtxSetCurrent, (CUcontext))                                    \
	X(cuModuleLoadData, (CUmodule *, const void *))                    \
	X(cuModuleGetFunction, (CUfunction *, CUmodule, const char *))     \
	X(cuMemAlloc_v2, (CUdeviceptr *, size_t))                          \
	X(cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t))                  \
	X(cuMemsetD8Async, (CUdeviceptr, unsigned char, size_t, CUstream)) \
	X(cuStreamCreate, (CUstream *, unsigned))                          \
	X(cuStreamSynchronize, (CUstream))                                 \
	X(cuLaunchKernel, (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **, void **))

#define X(name, arguments) static CUresult(*name) arguments;
FUNCTIONS(X)
#undef X

static CUmodule module;
static CUstream stream;

static void check(CUresult result, const char *what)
{
	if (result == CUDA_SUCCESS)
		return;
	fprintf(stderr, "gpu_load: %s: error %d\n", what, result);
	exit(1);
}

static void open_driver(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	CUcontext context = NULL;
#define X(name, arguments)                                                           \
	{                                                                            \
		void *address = library == NULL ? NULL : dlsym(library, #name);      \
		memcpy(&name, &address, sizeof address);                             \
		check(address == NULL ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS, #name); \
	}
	FUNCTIONS(X)
#undef X
	check(cuInit(0), "cuInit");
	check(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
	check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
	check(cuModuleLoadData(&module, kernels), "cuModuleLoadData");
	check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
}

static void launch(const char *name, void **arguments)
{
	CUfunction function = NULL;
	check(cuModuleGetFunction(&function, module, name), name);
	check(cuLaunchKernel(function, 1, 1, 1, 128, 1, 1, 0, stream, arguments, NULL), name);
}

struct buffer {
	CUdeviceptr address;
	uint64_t words;
};

static struct buffer get(uint64_t bytes)
{
	struct buffer buffer = {.words = bytes / 4};
	if (bytes == 0)
		return buffer;
	check(cuMemAlloc_v2(&buffer.address, bytes), "cuMemAlloc");
	check(cuMemsetD8Async(buffer.address, 1, bytes, stream), "cuMemset");
	return buffer;
}

static void touch(const struct buffer *buffer)
{
	CUdeviceptr address = buffer->address;
	uint64_t words = buffer->words;
	if (words > 0)
		launch("touch", (void *[]){&address, &words});
}

static uint64_t hash_of(const struct buffer *buffer)
{
	CUdeviceptr place = 0, address = buffer->address;
	uint64_t hash = 0, words = buffer->words;
	if (words == 0)
		return 0;
	check(cuMemAlloc_v2(&place, 8), "cuMemAlloc");
	launch("hash", (void *[]){&place, &address, &words});
	check(cuStreamSynchronize(stream), "cuStreamSynchronize");
	check(cuMemcpyDtoH_v2(&hash, place, sizeof hash), "cuMemcpyDtoH");
	return hash;
}

static struct {
	uint64_t rounds, kernels, kernel_us, period_us, memory, grow, grow_at;
	const char *start, *end, *log;
} settings = {.rounds = 10, .kernels = 4};

static uint64_t number(const char *text)
{
	char *end = NULL;
	uint64_t value = strtoull(text, &end, 10);
	const char *units = "KMG", *unit = *end != '\0' ? strchr(units, *end) : NULL;
	return unit != NULL ? value << (10 * (unit - units + 1)) : value;
}

static void read_settings(int argc, char **argv)
{
	const struct {
		const char *name;
		uint64_t *value;
		const char **text;
	} known[] = {{"--rounds", &settings.rounds, NULL},   {"--period-us", &settings.period_us, NULL},
		     {"--kernels", &settings.kernels, NULL}, {"--kernel-us", &settings.kernel_us, NULL},
		     {"--memory", &settings.memory, NULL},   {"--grow", &settings.grow, NULL},
		     {"--grow-at", &settings.grow_at, NULL}, {"--start", NULL, &settings.start},
		     {"--end", NULL, &settings.end},	     {"--log", NULL, &settings.log}};
	for (int i = 1; i < argc; i += 2) {
		size_t k = 0;
		while (k < sizeof known / sizeof known[0] && strcmp(known[k].name, argv[i]) != 0)
			k++;
		if (k == sizeof known / sizeof known[0] || i + 1 == argc) {
			fprintf(stderr, "gpu_load: what is '%s'?\n", argv[i]);
			exit(2);
		}
		if (known[k].value != NULL)
			*known[k].value = number(argv[i + 1]);
		else
			*known[k].text = argv[i + 1];
	}
}

static uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Input that comes too fast waits, but not more than one of it. */
static void await_input(void)
{
	static uint64_t next_ns;
	uint64_t period_ns = settings.period_us * 1000, now = now_ns();
	if (next_ns + period_ns < now)
		next_ns = now;
	struct timespec at = {.tv_sec = (time_t)(next_ns / 1000000000), .tv_nsec = (long)(next_ns % 1000000000)};
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) != 0)
		continue;
	next_ns += period_ns;
}

static void end_step(void)
{
	static CUdeviceptr place;
	uint64_t words = 1;
	if (place == 0)
		check(cuMemAlloc_v2(&place, 16), "cuMemAlloc");
	CUdeviceptr result = place, input = place + 8;
	launch("hash", (void *[]){&result, &input, &words});
}

static void compute(void)
{
	if (settings.period_us > 0)
		await_input();
	uint64_t ns = settings.kernel_us * 1000;
	for (uint64_t i = 0; ns > 0 && i < settings.kernels; i++)
		launch("spin", (void *[]){&ns});
	if (settings.period_us > 0)
		end_step();
}

static void note(FILE *log, uint64_t round)
{
	if (log != NULL) {
		fprintf(log, "%llu %.6f\n", (unsigned long long)round, (double)now_ns() / 1e9);
		fflush(log);
	}
}

int main(int argc, char **argv)
{
	read_settings(argc, argv);
	open_driver();
	FILE *log = settings.log != NULL ? fopen(settings.log, "w") : NULL;
	struct buffer first = get(settings.memory), second = {0};
	check(cuStreamSynchronize(stream), "cuStreamSynchronize");
	while (settings.start != NULL && access(settings.start, F_OK) != 0)
		usleep(10000);
	uint64_t round = 0;
	for (; round < settings.rounds; round++) {
		if (settings.grow > 0 && round == settings.grow_at)
			second = get(settings.grow);
		compute();
		touch(&first);
		touch(&second);
		check(cuStreamSynchronize(stream), "cuStreamSynchronize");
		note(log, round);
	}
	for (; settings.end != NULL && access(settings.end, F_OK) != 0; round++) {
		compute();
		check(cuStreamSynchronize(stream), "cuStreamSynchronize");
		note(log, round);
		if (settings.kernel_us == 0)
			usleep(10000);
	}
	printf("hash %016llx\n", (unsigned long long)(hash_of(&first) * 31 + hash_of(&second)));
	return 0;
}
