#include "runtime/kernels.h"

#include <pthread.h>
#include <stdlib.h>

#include "runtime/account.h"
#include "runtime/driver.h"
#include "runtime/hooks.h"

/* Programs have thousands. One that is not noted has no name, and that is all. */
enum { BUCKETS = 4096, KERNELS_MOST = 1 << 20 };

struct kernel {
	struct kernel *next;
	const void *handle;
};
static struct kernel *buckets[BUCKETS];
static unsigned count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Under the lock. */
static struct kernel **find(const void *handle)
{
	struct kernel **link = &buckets[((uint64_t)(uintptr_t)handle >> 4) * 0x9e3779b97f4a7c15u >> 52];
	while (*link != NULL && (*link)->handle != handle)
		link = &(*link)->next;
	return link;
}

bool sw_kernels_have(const void *handle)
{
	pthread_mutex_lock(&lock);
	bool found = *find(handle) != NULL;
	pthread_mutex_unlock(&lock);
	return found;
}

/* A handle may be given again to the other kind, after its library was unloaded. */
static void note(const void *handle, bool kernel)
{
	pthread_mutex_lock(&lock);
	struct kernel **link = find(handle), *known = *link;
	if (!kernel && known != NULL) {
		*link = known->next;
		count--;
		free(known);
	} else if (kernel && known == NULL && count < KERNELS_MOST) {
		struct kernel *fresh = malloc(sizeof *fresh);
		if (fresh != NULL) {
			*fresh = (struct kernel){.next = NULL, .handle = handle};
			*link = fresh;
			count++;
		}
	}
	pthread_mutex_unlock(&lock);
}

/* `noted` are the handles that the call gave, if it worked. */
#define GIVES(symbol, noted, how_many, kernel, ...)                                                    \
	CUresult hook_##symbol(SW_PARAMS(__VA_ARGS__))                                                 \
	{                                                                                              \
		if (SW_MISSING(symbol))                                                                \
			return CUDA_ERROR_NOT_FOUND;                                                   \
		CUresult result = SW_REAL(symbol, __VA_ARGS__)(SW_NAMES(__VA_ARGS__));                 \
		for (unsigned i = 0; i < (how_many) && result == CUDA_SUCCESS && sw_page != NULL; i++) \
			note(((void **)(noted))[i], kernel);                                           \
		return result;                                                                         \
	}
/* Parameters are numbered from the last one. */
GIVES(cuLibraryGetKernel, a3, 1U, true, P, P, P)
GIVES(cuLibraryEnumerateKernels, a3, a2, true, P, U, P)
GIVES(cuModuleGetFunction, a3, 1U, false, P, P, P)
GIVES(cuKernelGetFunction, a2, 1U, false, P, P)
