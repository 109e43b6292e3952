/* Every way to a function of the driver leads to the same place, and what the runtime does not
 * know is the driver's own. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/job.h"

static void *bound(CUresult (*function)(CUdeviceptr *, size_t))
{
	void *address;
	memcpy(&address, &function, sizeof address);
	return address;
}

static const char *library_of(const void *address)
{
	Dl_info info;
	assert_int_not_equal(dladdr(address, &info), 0);
	const char *slash = strrchr(info.dli_fname, '/');
	return slash != NULL ? slash + 1 : info.dli_fname;
}

#define RUNTIME "libsharewell-gpu.so"
#define REAL "libcuda.so.1"

/* Names that the linker bound and names that dlsym() finds are the runtime's for what it hooks, and
 * the driver's for the rest. */
static void test_linker_and_dlsym(void **state)
{
	(void)state;
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	assert_non_null(library);
	assert_string_equal(library_of(bound(cuMemAlloc_v2)), RUNTIME);
	assert_ptr_equal(dlsym(library, "cuMemAlloc_v2"), bound(cuMemAlloc_v2));
	assert_ptr_equal(dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"), bound(cuMemAlloc_v2));
	assert_ptr_equal(dlsym(RTLD_NEXT, "cuMemAlloc_v2"), bound(cuMemAlloc_v2));
	assert_string_equal(library_of(dlsym(library, "cuEventQuery")), REAL);
	assert_null(dlsym(library, "cuThereIsNoSuchThing"));
	assert_non_null(dlerror());
	assert_null(dlsym(library, "cu"));
	assert_null(dlsym(library, "c"));
	assert_null(dlsym(library, ""));
}

/* dlsym() of everything else is as it was: it looks at its caller. */
static void test_other_names_are_untouched(void **state)
{
	(void)state;
	void *mathematics = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);
	assert_non_null(mathematics);
	assert_string_equal(library_of(dlsym(mathematics, "cosh")), "libm.so.6");
	assert_string_equal(library_of(dlsym(RTLD_DEFAULT, "malloc")), "libc.so.6");
	assert_string_equal(library_of(dlsym(RTLD_NEXT, "open")), "libc.so.6");
	assert_null(dlsym(mathematics, "curl_easy_init"));
	/* Another library that stands before another's name finds the next one from where it
	 * stands. */
	void *helper = dlopen(SW_NEXT_LIBRARY, RTLD_NOW | RTLD_LOCAL);
	assert_non_null(helper);
	void *(*find)(const char *);
	*(void **)&find = dlsym(helper, "find_next");
	assert_non_null(find);
	assert_ptr_not_equal(find("find_next"), dlsym(helper, "find_next"));
	assert_string_equal(library_of(find("getenv")), "libc.so.6");
}

static void *by_v1(const char *name, int version, uint64_t flags)
{
	void *found = NULL;
	CUresult result = cuGetProcAddress(name, &found, version, flags);
	return result == CUDA_SUCCESS ? found : NULL;
}

static void *by_v2(const char *name, int version, uint64_t flags, int *ret_found)
{
	void *found = NULL;
	CUresult result = cuGetProcAddress_v2(name, &found, version, flags, ret_found);
	return result == CUDA_SUCCESS ? found : NULL;
}

static void ask_the_driver(int socket)
{
	int found = -1;
	void *here = NULL;
	(void)socket;
	open_driver();
	assert_ptr_equal(by_v1("cuMemAlloc", 12000, 0), bound(cuMemAlloc_v2));
	assert_ptr_equal(by_v2("cuMemAlloc", 12000, 0, &found), bound(cuMemAlloc_v2));
	assert_int_equal(found, CU_GETPROC_FOUND);
	assert_ptr_equal(by_v2("cuMemAlloc", 12000, 0, NULL), bound(cuMemAlloc_v2));
	/* Each flag gives the form of the function that it asks for. */
	void *legacy = by_v2("cuLaunchKernel", 12000, CU_GETPROC_LEGACY_STREAM, &found);
	void *own = by_v2("cuLaunchKernel", 12000, CU_GETPROC_PER_THREAD_STREAM, &found);
	assert_ptr_equal(by_v2("cuLaunchKernel", 12000, 0, &found), legacy);
	assert_ptr_equal(legacy, dlsym(RTLD_DEFAULT, "cuLaunchKernel"));
	assert_ptr_equal(own, dlsym(RTLD_DEFAULT, "cuLaunchKernel_ptsz"));
	assert_ptr_not_equal(own, legacy);
	assert_string_equal(library_of(own), RUNTIME);
	assert_ptr_equal(by_v1("cuMemcpyHtoD", 12000, 2), dlsym(RTLD_DEFAULT, "cuMemcpyHtoD_v2_ptds"));
	/* An older version of a function is another function. */
	assert_ptr_equal(by_v1("cuStreamBeginCapture", 10000, 0), dlsym(RTLD_DEFAULT, "cuStreamBeginCapture"));
	assert_ptr_equal(by_v1("cuStreamBeginCapture", 10010, 0), dlsym(RTLD_DEFAULT, "cuStreamBeginCapture_v2"));
	/* The door itself. */
	assert_string_equal(library_of(by_v2("cuGetProcAddress", 12000, 0, &found)), RUNTIME);
	/* What is not hooked, what is not there, and what makes no sense. */
	assert_string_equal(library_of(by_v2("cuEventQuery", 12000, 0, &found)), REAL);
	assert_null(by_v2("cuThereIsNoSuchThing", 12000, 0, &found));
	assert_int_equal(found, CU_GETPROC_NOT_FOUND);
	assert_null(by_v2("cuMemAllocAsync", 3000, 0, &found));
	assert_int_equal(found, CU_GETPROC_VERSION_TOO_LOW);
	assert_int_not_equal(cuGetProcAddress_v2(NULL, &here, 12000, 0, &found), CUDA_SUCCESS);
	assert_int_not_equal(cuGetProcAddress_v2("cuMemAlloc", NULL, 12000, 0, &found), CUDA_SUCCESS);
	assert_int_not_equal(cuGetProcAddress("cuMemAlloc", NULL, 12000, 0), CUDA_SUCCESS);
	/* What came through a door works like the rest: its memory is the job's. */
	CUresult (*get)(CUdeviceptr *, size_t);
	*(void **)&get = by_v1("cuMemAlloc", 12000, 0);
	CUdeviceptr x = 0;
	assert_cuda(get(&x, 4 * MiB));
	assert_int_equal(look().gpus[0].charged_bytes, CONTEXT_BYTES + 4 * MiB);
}

/* The driver's own door, both versions and all flags, gives the runtime's
 * functions for what it hooks. */
static void test_get_proc_address(void **state)
{
	(void)state;
	run_job(ask_the_driver);
}

static void call_too_early(int socket)
{
	CUdeviceptr x = 0;
	(void)socket;
	assert_int_equal(cuMemAlloc_v2(&x, 100), CUDA_ERROR_NOT_INITIALIZED);
	assert_int_equal(cuMemFree_v2(5), CUDA_ERROR_NOT_INITIALIZED);
	assert_int_not_equal(cuMemGetInfo_v2(NULL, NULL), CUDA_SUCCESS);
	assert_int_not_equal(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_SUCCESS);
}

/* Calls before cuInit() are answered as the driver answers them. */
static void test_before_init(void **state)
{
	(void)state;
	run_job(call_too_early);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, machine_up, machine_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_linker_and_dlsym),
		CASE(test_other_names_are_untouched),
		CASE(test_get_proc_address),
		CASE(test_before_init),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
