/* Looking up entry points of the emulated driver by name, version and kind of default stream. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit/emu/driver.h"

static void *library;

static int open_driver(void **state)
{
	(void)state;
	driver_settings(SETTINGS);
	driver_open(false);
	library = dlopen(driver_library(false), RTLD_NOW | RTLD_LOCAL);
	return library != NULL ? 0 : -1;
}

static int close_driver(void **state)
{
	(void)state;
	driver_clean_up();
	return 0;
}

/* The address is that of the exported symbol. */
static void test_names_become_symbols(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		int version;
		uint64_t flags;
		const char *symbol;
	} cases[] = {
		{"cuMemAlloc", 3020, 0, "cuMemAlloc_v2"},
		{"cuMemAlloc", 12000, 2, "cuMemAlloc_v2"},
		{"cuLaunchKernel", 4000, 0, "cuLaunchKernel"},
		{"cuLaunchKernel", 4000, 2, "cuLaunchKernel"}, /* the twin came later */
		{"cuLaunchKernel", 7000, 2, "cuLaunchKernel_ptsz"},
		{"cuLaunchKernel", 13000, 1, "cuLaunchKernel"},
		{"cuMemcpyHtoD", 7000, 2, "cuMemcpyHtoD_v2_ptds"},
		{"cuMemcpyHtoD", 7000, 0, "cuMemcpyHtoD_v2"},
		{"cuGetProcAddress", 11030, 0, "cuGetProcAddress"},
		{"cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2"},
		{"cuStreamBeginCapture", 10000, 0, "cuStreamBeginCapture"},
		{"cuStreamBeginCapture", 12000, 0, "cuStreamBeginCapture_v2"},
		{"cuCtxSynchronize", 12000, 0, "cuCtxSynchronize"},
		{"cuCtxSynchronize", 13000, 0, "cuCtxSynchronize_v2"},
		{"cuGraphInstantiate", 11000, 0, "cuGraphInstantiate_v2"},
		{"cuGraphInstantiate", 12000, 0, "cuGraphInstantiateWithFlags"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		void *address = NULL, *old = NULL;
		int status = -1;
		assert_cuda(cuGetProcAddress_v2(cases[i].name, &address, cases[i].version, cases[i].flags, &status));
		assert_int_equal(status, CU_GETPROC_FOUND);
		assert_cuda(cuGetProcAddress(cases[i].name, &old, cases[i].version, cases[i].flags));
		assert_ptr_equal(address, dlsym(library, cases[i].symbol));
		assert_ptr_equal(old, address);
		assert_non_null(address);
	}
}

/* What is not found is said by the status, and by the older call as an error. */
static void test_names_that_are_not_found(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		int version, status;
	} cases[] = {
		{"cuNothing", 12000, CU_GETPROC_NOT_FOUND},
		{"", 0, CU_GETPROC_NOT_FOUND},
		{"cuMemAlloc_v2", 12000, CU_GETPROC_NOT_FOUND},
		{"cuMemCreate", 10000, CU_GETPROC_VERSION_TOO_LOW},
	};
	void *address = NULL;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		int status = -1;
		address = &address;
		assert_cuda(cuGetProcAddress_v2(cases[i].name, &address, cases[i].version, 0, &status));
		assert_int_equal(status, cases[i].status);
		assert_null(address);
		assert_cuda(cuGetProcAddress_v2(cases[i].name, &address, cases[i].version, 0, NULL));
		assert_int_equal(cuGetProcAddress(cases[i].name, &address, cases[i].version, 0), CUDA_ERROR_NOT_FOUND);
	}
	assert_int_equal(cuGetProcAddress_v2("cuInit", &address, 99000, 0, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuGetProcAddress_v2("cuInit", NULL, 12000, 0, NULL), CUDA_ERROR_INVALID_VALUE);
}

/* Cuts a symbol down to the name that programs ask for. */
static void to_name(char *symbol)
{
	size_t length = strlen(symbol);
	if (length > 5 && (strcmp(symbol + length - 5, "_ptsz") == 0 || strcmp(symbol + length - 5, "_ptds") == 0))
		symbol[length - 5] = '\0';
	length = strlen(symbol);
	if (length > 3 && symbol[length - 3] == '_' && symbol[length - 2] == 'v')
		symbol[length - 3] = '\0';
}

/* Only names of the driver are exported, and each of them can be looked up in
 * some version and flavour. */
static void test_exports_and_names_agree(void **state)
{
	(void)state;
	static const int versions[] = {2000, 3020, 4000, 7000, 10000, 10010, 11000, 11030, 11040, 12000, 12030, 12050, 12080, 13000};
	char command[1200], symbol[256];
	unsigned count = 0;
	snprintf(command, sizeof command, "nm -D --defined-only '%s' | awk '$2 == \"T\" {print $3}'", driver_library(true));
	FILE *list = popen(command, "re");
	assert_non_null(list);
	while (fscanf(list, "%255s", symbol) == 1) {
		bool found = false;
		void *wanted = dlsym(library, symbol);
		char name[256];
		if (strncmp(symbol, "cu", 2) != 0)
			fail_msg("%s is exported", symbol);
		assert_non_null(wanted);
		snprintf(name, sizeof name, "%s", symbol);
		to_name(name);
		for (size_t i = 0; i < sizeof versions / sizeof versions[0] && !found; i++) {
			for (uint64_t flags = 0; flags <= 2 && !found; flags += 2) {
				void *address = NULL;
				found = cuGetProcAddress(name, &address, versions[i], flags) == CUDA_SUCCESS && address == wanted;
			}
		}
		if (!found)
			fail_msg("%s cannot be looked up as %s", symbol, name);
		count++;
	}
	assert_int_equal(pclose(list), 0);
	assert_true(count > 300);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_become_symbols),
		cmocka_unit_test(test_names_that_are_not_found),
		cmocka_unit_test(test_exports_and_names_agree),
	};
	return cmocka_run_group_tests(tests, open_driver, close_driver);
}
