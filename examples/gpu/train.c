/* A small training job in C that uses nothing but the CUDA driver interface: a network of two
 * layers learns a function that it can learn. It always computes the same, so the hash of the
 * weights at its end tells whether other jobs disturbed it.
 *
 *   cc -O2 -I src -o train examples/gpu/train.c -ldl
 *   LD_LIBRARY_PATH=build/release/emu ./train --steps 200 --memory 64M --step-us 2000
 *
 * Its kernels are in the text format of the emulated driver (emu/README.md); on a real one it says
 * so and ends with status 77.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda/driver.h"

static const char kernels[] = "sharewell-emu 1\n"
			      "kernel random op=random\n"
			      "kernel forward op=matmul each=2ps\n"
			      "kernel backward_input op=matmul transpose=b each=2ps\n"
			      "kernel backward_weights op=matmul transpose=a each=2ps\n"
			      "kernel relu op=relu\n"
			      "kernel relu_grad op=relu_grad\n"
			      "kernel sub op=sub\n"
			      "kernel mul op=mul\n"
			      "kernel step op=axpy\n"
			      "kernel sum op=reduce\n"
			      "kernel hash op=hash\n"
			      "kernel touch op=stir type=u32 each=1ps\n"
			      "kernel spin op=spin\n";

enum { INPUTS = 16, HIDDEN = 64, OUTPUTS = 4, BATCH = 64 };

#define FUNCTIONS(X)                                                                                                                      \
	X(cuInit, (unsigned))                                                                                                             \
	X(cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice))                                                                              \
	X(cuCtxSetCurrent, (CUcontext))                                                                                                   \
	X(cuModuleLoadData, (CUmodule *, const void *))                                                                                   \
	X(cuModuleGetFunction, (CUfunction *, CUmodule, const char *))                                                                    \
	X(cuMemAlloc_v2, (CUdeviceptr *, size_t))                                                                                         \
	X(cuMemFree_v2, (CUdeviceptr))                                                                                                    \
	X(cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t))                                                                                 \
	X(cuMemsetD8Async, (CUdeviceptr, unsigned char, size_t, CUstream))                                                                \
	X(cuStreamCreate, (CUstream *, unsigned))                                                                                         \
	X(cuStreamSynchronize, (CUstream))                                                                                                \
	X(cuLaunchKernel, (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **, void **)) \
	X(cuGetErrorName, (CUresult, const char **))

#define X(name, arguments) static CUresult(*name) arguments;
FUNCTIONS(X)
#undef X

static CUmodule module;
static CUstream stream;

static void check(CUresult result, const char *what)
{
	const char *name = NULL;
	if (result == CUDA_SUCCESS)
		return;
	if (cuGetErrorName != NULL)
		cuGetErrorName(result, &name);
	fprintf(stderr, "train: %s: %s (%d)\n", what, name != NULL ? name : "error", result);
	exit(1);
}

static void load_driver(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	if (library == NULL) {
		fprintf(stderr, "train: no CUDA driver (%s)\n", dlerror());
		exit(77);
	}
#define X(name, arguments)                                                       \
	{                                                                        \
		void *address = dlsym(library, #name);                           \
		if (address == NULL) {                                           \
			fprintf(stderr, "train: the driver has no " #name "\n"); \
			exit(77);                                                \
		}                                                                \
		memcpy(&name, &address, sizeof address);                         \
	}
	FUNCTIONS(X)
#undef X
}

static void start(void)
{
	CUcontext context = NULL;
	check(cuInit(0), "cuInit");
	check(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
	check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
	CUresult result = cuModuleLoadData(&module, kernels);
	if (result == CUDA_ERROR_INVALID_IMAGE || result == CUDA_ERROR_INVALID_PTX || result == CUDA_ERROR_NO_BINARY_FOR_GPU) {
		fprintf(stderr, "train: this is a real driver; the kernels of this program are for the emulated one (emu/README.md)\n");
		exit(77);
	}
	check(result, "cuModuleLoadData");
	check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
}

static void launch(const char *name, void **arguments)
{
	CUfunction function = NULL;
	check(cuModuleGetFunction(&function, module, name), name);
	check(cuLaunchKernel(function, 1, 1, 1, 128, 1, 1, 0, stream, arguments, NULL), name);
}

static CUdeviceptr allocate(size_t floats)
{
	CUdeviceptr address = 0;
	check(cuMemAlloc_v2(&address, floats * 4), "cuMemAlloc");
	return address;
}

static void fill_random(CUdeviceptr x, uint64_t seed, uint64_t count)
{
	launch("random", (void *[]){&x, &seed, &count});
}

static void multiply(const char *kernel, CUdeviceptr c, CUdeviceptr a, CUdeviceptr b, uint32_t m, uint32_t n, uint32_t k)
{
	launch(kernel, (void *[]){&c, &a, &b, &m, &n, &k});
}

static void each(const char *kernel, CUdeviceptr z, CUdeviceptr x, CUdeviceptr y, uint64_t count)
{
	launch(kernel, (void *[]){&z, &x, &y, &count});
}

static void descend(CUdeviceptr weights, CUdeviceptr gradient, float rate, uint64_t count)
{
	launch("step", (void *[]){&weights, &gradient, &rate, &count});
}

struct network {
	CUdeviceptr teacher, x, y, w1, w2, h, r, out, diff, g1, g2, dh, square, loss;
};

static void build(struct network *n)
{
	n->teacher = allocate(INPUTS * OUTPUTS);
	n->x = allocate(BATCH * INPUTS);
	n->y = allocate(BATCH * OUTPUTS);
	n->w1 = allocate(INPUTS * HIDDEN);
	n->w2 = allocate(HIDDEN * OUTPUTS);
	n->h = allocate(BATCH * HIDDEN);
	n->r = allocate(BATCH * HIDDEN);
	n->out = allocate(BATCH * OUTPUTS);
	n->diff = allocate(BATCH * OUTPUTS);
	n->g1 = allocate(INPUTS * HIDDEN);
	n->g2 = allocate(HIDDEN * OUTPUTS);
	n->dh = allocate(BATCH * HIDDEN);
	n->square = allocate(BATCH * OUTPUTS);
	n->loss = allocate(1);
	fill_random(n->teacher, 1, INPUTS * OUTPUTS);
	fill_random(n->w1, 2, INPUTS * HIDDEN);
	fill_random(n->w2, 3, HIDDEN * OUTPUTS);
}

/* One step: a new batch, forward, backward, descend. */
static void train(struct network *n, uint64_t number)
{
	const float rate = -0.0002F;
	fill_random(n->x, 1000 + number, BATCH * INPUTS);
	multiply("forward", n->y, n->x, n->teacher, BATCH, OUTPUTS, INPUTS);
	multiply("forward", n->h, n->x, n->w1, BATCH, HIDDEN, INPUTS);
	launch("relu", (void *[]){&n->r, &n->h, &(uint64_t){BATCH * HIDDEN}});
	multiply("forward", n->out, n->r, n->w2, BATCH, OUTPUTS, HIDDEN);
	each("sub", n->diff, n->out, n->y, BATCH * OUTPUTS);
	multiply("backward_weights", n->g2, n->r, n->diff, HIDDEN, OUTPUTS, BATCH);
	multiply("backward_input", n->dh, n->diff, n->w2, BATCH, HIDDEN, OUTPUTS);
	each("relu_grad", n->dh, n->h, n->dh, BATCH * HIDDEN);
	multiply("backward_weights", n->g1, n->x, n->dh, INPUTS, HIDDEN, BATCH);
	descend(n->w1, n->g1, rate, INPUTS * HIDDEN);
	descend(n->w2, n->g2, rate, HIDDEN * OUTPUTS);
	each("mul", n->square, n->diff, n->diff, BATCH * OUTPUTS);
	launch("sum", (void *[]){&n->loss, &n->square, &(uint64_t){BATCH * OUTPUTS}});
}

static uint64_t hash_of(CUdeviceptr x, uint64_t count)
{
	CUdeviceptr place = allocate(2);
	uint64_t hash = 0;
	launch("hash", (void *[]){&place, &x, &count});
	check(cuStreamSynchronize(stream), "cuStreamSynchronize");
	check(cuMemcpyDtoH_v2(&hash, place, sizeof hash), "cuMemcpyDtoH");
	check(cuMemFree_v2(place), "cuMemFree");
	return hash;
}

static double seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* "200", "64M". What is neither ends the program: it would train with less than was asked for. */
static uint64_t number(const char *option, const char *text)
{
	char *end = NULL;
	errno = 0;
	uint64_t value = strtoull(text, &end, 10);
	const char *units = "KMG", *unit = *end != '\0' ? strchr(units, *end) : NULL;
	int shift = unit != NULL ? 10 * (int)(unit - units + 1) : 0;
	end += unit != NULL;
	if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || value > UINT64_MAX >> shift) {
		fprintf(stderr, "train: %s cannot be '%s': it takes a number such as 200, 64M or 1G\n", option, text);
		exit(2);
	}
	return value << shift;
}

int main(int argc, char **argv)
{
	uint64_t steps = 200, memory = 0, step_us = 0;
	for (int i = 1; i + 1 < argc; i += 2) {
		if (strcmp(argv[i], "--steps") == 0)
			steps = number(argv[i], argv[i + 1]);
		else if (strcmp(argv[i], "--memory") == 0)
			memory = number(argv[i], argv[i + 1]);
		else if (strcmp(argv[i], "--step-us") == 0)
			step_us = number(argv[i], argv[i + 1]);
		else
			argc = 0;
	}
	if (argc % 2 == 0) {
		fprintf(stderr, "usage: train [--steps 200] [--memory 64M] [--step-us 2000]\n");
		return 2;
	}
	struct network network;
	CUdeviceptr extra = 0;
	float loss = 0;
	load_driver();
	start();
	build(&network);
	uint64_t words = memory / 4;
	if (memory > 0) {
		extra = allocate(words);
		check(cuMemsetD8Async(extra, 0, words * 4, stream), "cuMemset");
	}
	double begin = seconds();
	for (uint64_t i = 0; i < steps; i++) {
		train(&network, i);
		/* Memory that every step changes, and time that every step takes. */
		if (memory > 0)
			launch("touch", (void *[]){&extra, &words});
		if (step_us > 0)
			launch("spin", (void *[]){&(uint64_t){step_us * 1000}});
		check(cuStreamSynchronize(stream), "cuStreamSynchronize");
	}
	double took = seconds() - begin;
	check(cuMemcpyDtoH_v2(&loss, network.loss, sizeof loss), "cuMemcpyDtoH");
	uint64_t hash = hash_of(network.w1, INPUTS * HIDDEN) * 31 + hash_of(network.w2, HIDDEN * OUTPUTS);
	if (memory > 0)
		hash = hash * 31 + hash_of(extra, words);
	printf("steps %llu loss %.6f ms/step %.3f hash %016llx\n", (unsigned long long)steps, (double)loss / (BATCH * OUTPUTS),
	       steps > 0 ? took * 1000 / (double)steps : 0, (unsigned long long)hash);
	return 0;
}
