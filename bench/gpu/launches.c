/* Launches, fills and copies on the emulated driver, as many as are asked for: launches LAUNCHES
 * FILLS COPIES. What is counted while it runs is bench/gpu/instructions.py's. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void *library;

static int call(int result)
{
	if (result != 0) {
		fprintf(stderr, "CUDA error %d\n", result);
		exit(1);
	}
	return result;
}

static void *find(const char *name)
{
	void *found = dlsym(library, name);
	if (found == NULL) {
		fprintf(stderr, "no %s\n", name);
		exit(1);
	}
	return found;
}

#define GET(type, name) ((type)find(name))
typedef int (*launcher)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);

int main(int count, char **words)
{
	long launches = count > 1 ? atol(words[1]) : 0, fills = count > 2 ? atol(words[2]) : 0, copies = count > 3 ? atol(words[3]) : 0;
	void *context, *module, *kernel;
	unsigned long long memory, ns = 0;
	library = dlopen("libcuda.so.1", RTLD_NOW);
	if (library == NULL) {
		fprintf(stderr, "no libcuda.so.1\n");
		return 1;
	}
	call(GET(int (*)(unsigned), "cuInit")(0));
	call(GET(int (*)(void **, int), "cuDevicePrimaryCtxRetain")(&context, 0));
	call(GET(int (*)(void *), "cuCtxSetCurrent")(context));
	call(GET(int (*)(void **, const void *), "cuModuleLoadData")(&module, "sharewell-emu 1\nkernel spin op=spin\n"));
	call(GET(int (*)(void **, void *, const char *), "cuModuleGetFunction")(&kernel, module, "spin"));
	call(GET(int (*)(unsigned long long *, size_t), "cuMemAlloc_v2")(&memory, 1 << 20));
	launcher launch = GET(launcher, "cuLaunchKernel");
	int (*fill)(unsigned long long, unsigned char, size_t, void *) = find("cuMemsetD8Async");
	int (*copy)(unsigned long long, unsigned long long, size_t, void *) = find("cuMemcpyAsync");
	int (*wait)(void) = find("cuCtxSynchronize");
	for (long i = 0; i < launches; i++) {
		/* Grids that do not repeat: an iteration that is found has its own, small cost. */
		call(launch(kernel, 1 + (unsigned)(i * i % 8191), 1, 1, 1, 1, 1, 0, NULL, (void *[]){&ns}, NULL));
		if (i % 256 == 255)
			call(wait());
	}
	for (long i = 0; i < fills; i++) {
		call(fill(memory, 1, 64, NULL));
		if (i % 256 == 255)
			call(wait());
	}
	for (long i = 0; i < copies; i++) {
		call(copy(memory, memory + 64, 64, NULL));
		if (i % 256 == 255)
			call(wait());
	}
	return call(wait());
}
