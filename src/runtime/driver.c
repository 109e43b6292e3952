/* Finding the real driver. The table of addresses by which hooks are found is filled
 * once and then only read. */
#include "runtime/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/hooks.h"

struct sw_driver sw_driver;
_Atomic(sw_function) sw_real[SW_ENTRY_COUNT];
_Atomic int sw_driver_loaded;
void *(*sw_real_dlsym)(void *handle, const char *name);

static const struct {
	const char *symbol;
	sw_function hook;
} hooks[SW_ENTRY_COUNT] = {
#define SW_ROW(name, ...) [SW_ENTRY_##name] = {#name, (sw_function)hook_##name},
	SW_ENTRY_POINTS(SW_ROW, SW_ROW, SW_ROW, SW_ROW)
#undef SW_ROW
};

/* By the address of the real function: open addressing, at most half full. */
#define SLOTS 1024u
static struct {
	const void *real;
	sw_function hook;
} by_address[SLOTS];
_Static_assert(SW_ENTRY_COUNT * 2 < SLOTS, "the table of addresses is too small");

static unsigned slot_of(const void *address)
{
	uint64_t bits = (uint64_t)(uintptr_t)address;
	return (unsigned)((bits >> 4) * 0x9e3779b97f4a7c15u >> 54);
}

static void remember(const void *real, sw_function hook)
{
	unsigned slot = slot_of(real);
	while (by_address[slot].real != NULL && by_address[slot].real != real)
		slot = (slot + 1) % SLOTS;
	by_address[slot].real = real;
	by_address[slot].hook = hook;
}

sw_function sw_hook_of(const void *real)
{
	for (unsigned slot = slot_of(real); by_address[slot].real != NULL; slot = (slot + 1) % SLOTS)
		if (by_address[slot].real == real)
			return by_address[slot].hook;
	return NULL;
}

void sw_find_dlsym(void)
{
	/* dlsym() moved from one library to another in glibc 2.34; the older name is that of x86-64
	 * and the last that of arm64. */
	static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"};
	for (unsigned i = 0; i < 3 && sw_real_dlsym == NULL; i++) {
		void *found = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
		memcpy(&sw_real_dlsym, &found, sizeof found);
	}
}

static sw_function find(void *library, const char *symbol)
{
	void *found = sw_real_dlsym(library, symbol);
	sw_function function;
	memcpy(&function, &found, sizeof found);
	return function;
}

static void load(void)
{
	sw_find_dlsym();
	/* The name that every program asks for: where it has the driver
	 * already, this is the same one. */
	void *library = sw_real_dlsym == NULL ? NULL : dlopen("libcuda.so.1", RTLD_NOW);
	if (library == NULL) {
		atomic_store(&sw_driver_loaded, -1);
		return;
	}
	for (unsigned i = 0; i < SW_ENTRY_COUNT; i++) {
		sw_function real = find(library, hooks[i].symbol);
		sw_real[i] = real;
		if (real != NULL)
			remember((const void *)real, hooks[i].hook);
	}
#define SW_FIND(field, symbol, params) sw_driver.field = (CUresult(*) params)find(library, #symbol);
	SW_DRIVER_CALLS(SW_FIND)
#undef SW_FIND
	if (sw_driver.event_elapsed_v2 != NULL)
		sw_driver.event_elapsed = sw_driver.event_elapsed_v2;
	atomic_store(&sw_driver_loaded, 1);
}

bool sw_driver_load(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, load);
	return atomic_load(&sw_driver_loaded) == 1;
}

bool sw_driver_can_move(void)
{
	const struct sw_driver *d = &sw_driver;
	bool known = d->granularity != NULL && d->reserve != NULL && d->unreserve != NULL && d->create != NULL && d->release != NULL &&
		     d->map != NULL && d->unmap != NULL && d->set_access != NULL && d->host_register != NULL && d->context_push != NULL &&
		     d->copy_to_host != NULL && d->copy_to_device != NULL;
	int count = 0;
	if (!known || d->device_count(&count) != CUDA_SUCCESS)
		return false;
	for (int device = 0; device < count; device++) {
		int supported = 0;
		if (d->device_attribute(&supported, CU_DEVICE_VMM_SUPPORTED, device) != CUDA_SUCCESS || supported == 0)
			return false;
	}
	return count > 0;
}
