/* A program that gets at the driver past a preloaded library, for share-outside.sh. It takes memory
 * of GPU 0, makes a file, and waits for another one.
 *
 *   escape deepbind LIBRARY BYTES READY END
 *       this file as a library (-DLIBRARY), bound to the driver that it is linked with
 *   escape namespace BYTES READY END
 *       a copy of the driver in a namespace of the linker of its own
 *   escape both BYTES READY END
 *       that copy, after a context in the usual way: the runtime knows the process, and little of
 *       its memory
 *   escape inside BYTES READY END
 *       the usual way only
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda/driver.h"

#ifdef LIBRARY

CUresult cuInit(unsigned);
CUresult cuDevicePrimaryCtxRetain(CUcontext *, CUdevice);
CUresult cuCtxSetCurrent(CUcontext);
CUresult cuMemAlloc_v2(CUdeviceptr *, size_t);

int hold(size_t bytes);
int hold(size_t bytes)
{
	CUcontext context = NULL;
	CUdeviceptr memory = 0;
	return cuInit(0) == CUDA_SUCCESS && cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS &&
			       cuCtxSetCurrent(context) == CUDA_SUCCESS && cuMemAlloc_v2(&memory, bytes) == CUDA_SUCCESS
		       ? 0
		       : 1;
}

#else

static void *find(void *library, const char *name)
{
	void *address = library != NULL ? dlsym(library, name) : NULL;
	if (address == NULL) {
		fprintf(stderr, "escape: there is no %s: %s\n", name, dlerror());
		exit(1);
	}
	return address;
}

static void hold_with(void *library, size_t bytes)
{
	CUresult (*init)(unsigned), (*retain)(CUcontext *, CUdevice), (*set)(CUcontext), (*alloc)(CUdeviceptr *, size_t);
	CUcontext context = NULL;
	CUdeviceptr memory = 0;
	*(void **)&init = find(library, "cuInit");
	*(void **)&retain = find(library, "cuDevicePrimaryCtxRetain");
	*(void **)&set = find(library, "cuCtxSetCurrent");
	*(void **)&alloc = find(library, "cuMemAlloc_v2");
	if (init(0) != CUDA_SUCCESS || retain(&context, 0) != CUDA_SUCCESS || set(context) != CUDA_SUCCESS ||
	    (bytes > 0 && alloc(&memory, bytes) != CUDA_SUCCESS)) {
		fprintf(stderr, "escape: the driver refuses\n");
		exit(1);
	}
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	char **rest = argv + (strcmp(how, "deepbind") == 0 ? 3 : 2);
	if (argv + argc - rest != 3)
		return 2;
	size_t bytes = strtoull(rest[0], NULL, 10);
	if (strcmp(how, "deepbind") == 0) {
		int (*hold)(size_t);
		*(void **)&hold = find(dlopen(argv[2], RTLD_NOW | RTLD_DEEPBIND), "hold");
		if (hold(bytes) != 0)
			return 1;
	}
	if (strcmp(how, "inside") == 0)
		hold_with(dlopen("libcuda.so.1", RTLD_NOW), bytes);
	if (strcmp(how, "both") == 0)
		hold_with(dlopen("libcuda.so.1", RTLD_NOW), 0);
	if (strcmp(how, "both") == 0 || strcmp(how, "namespace") == 0)
		hold_with(dlmopen(LM_ID_NEWLM, "libcuda.so.1", RTLD_NOW), bytes);
	fclose(fopen(rest[1], "w"));
	while (access(rest[2], F_OK) != 0)
		usleep(10000);
	return 0;
}

#endif
