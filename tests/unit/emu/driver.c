#include "unit/emu/driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define X(name, arguments) CUresult(*name) arguments;
DRIVER(X)
#undef X

static char folder[64];
static CUcontext context;
static CUmodule module;

static const char kernels[] = "sharewell-emu 1\n"
			      "# one of each\n"
			      "kernel fill op=fill type=u32\n"
			      "kernel scale op=scale type=u32\n"
			      "kernel axpy op=axpy\n"
			      "kernel axpy_whole op=axpy type=u32\n"
			      "kernel add op=add type=u32\n"
			      "kernel copy op=copy type=u32\n"
			      "kernel relu op=relu\n"
			      "kernel matmul op=matmul\n"
			      "kernel matmul_a op=matmul transpose=a\n"
			      "kernel matmul_b op=matmul transpose=b\n"
			      "kernel reduce op=reduce\n"
			      "kernel sum_rows op=sum_rows\n"
			      "kernel add_row op=add_row\n"
			      "kernel random op=random\n"
			      "kernel stir op=stir type=u32\n"
			      "kernel stir_slowly op=stir type=u32 time=600ms\n"
			      "kernel hash op=hash\n"
			      "kernel slow op=spin\n"
			      "global table 4K\n";

void driver_settings(const char *settings)
{
	char state[96];
	snprintf(folder, sizeof folder, "/tmp/sw-emu-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(state, sizeof state, "%s/state", folder);
	setenv("SHAREWELL_EMU", settings, 1);
	setenv("SHAREWELL_EMU_STATE", state, 1);
	unsetenv("CUDA_VISIBLE_DEVICES");
}

void driver_clean_up(void)
{
	char command[128];
	snprintf(command, sizeof command, "rm -rf '%s'", folder);
	if (system(command) != 0)
		perror(folder);
}

const char *driver_library(bool plain)
{
	static char path[1024];
	const char *build = getenv("SW_BUILD_DIR");
	assert_non_null(build);
	snprintf(path, sizeof path, "%s/%s/libcuda.so.1", build, plain ? "emu" : "emu-checked");
	return path;
}

static void load(bool plain)
{
	void *library = dlopen(driver_library(plain), RTLD_NOW | RTLD_LOCAL);
	if (library == NULL)
		fail_msg("%s", dlerror());
#define X(name, arguments)                                    \
	{                                                     \
		void *address = dlsym(library, #name);        \
		if (address == NULL)                          \
			fail_msg("the driver has no " #name); \
		memcpy(&name, &address, sizeof address);      \
	}
	DRIVER(X)
#undef X
}

void driver_open(bool plain)
{
	load(plain);
	assert_cuda(cuInit(0));
	assert_cuda(cuDevicePrimaryCtxRetain(&context, 0));
	assert_cuda(cuCtxSetCurrent(context));
	assert_cuda(cuModuleLoadData(&module, kernels));
}

CUcontext driver_context(void)
{
	return context;
}

CUfunction driver_kernel(const char *name)
{
	CUfunction function = NULL;
	assert_cuda(cuModuleGetFunction(&function, module, name));
	return function;
}

CUresult driver_launch(const char *name, CUstream stream, void **arguments)
{
	return cuLaunchKernel(driver_kernel(name), 1, 1, 1, 32, 1, 1, 0, stream, arguments, NULL);
}

CUresult driver_spin(CUstream stream, uint64_t ns)
{
	return driver_launch("slow", stream, (void *[]){&ns});
}

CUresult driver_stir(CUstream stream, CUdeviceptr x, uint64_t n)
{
	return driver_launch("stir", stream, (void *[]){&x, &n});
}

void stir_here(uint32_t *x, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		x[i] = x[i] * 1664525U + 1013904223U + (uint32_t)i;
}

size_t driver_free_bytes(void)
{
	size_t bytes = 0;
	assert_cuda(cuMemGetInfo_v2(&bytes, NULL));
	return bytes;
}

CUmemAllocationProp driver_memory_of(int type, int id)
{
	return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_PINNED, .location = {type, id}};
}

void driver_allow(CUdeviceptr address, size_t bytes)
{
	CUmemAccessDesc access = {.location = {CU_MEM_LOCATION_DEVICE, 0}, .flags = CU_MEM_ACCESS_READWRITE};
	assert_cuda(cuMemSetAccess(address, bytes, &access, 1));
}
