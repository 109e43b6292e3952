/* Every way to a function of the driver leads through here. Binding by the linker finds our
 * exported names (hooks.h). dlsym() is hooked in dlsym.c and cuGetProcAddress() below, and what
 * cudaGetDriverEntryPoint() gives comes from the latter.
 *
 * The real answer is asked for first; only an address that is the real one of a hooked function is
 * replaced. So versions, per-thread streams and names that we never heard of need no thought here.
 */
#include <string.h>

#include "runtime/driver.h"
#include "runtime/hooks.h"

static void replace(CUresult result, void **found)
{
	if (result != CUDA_SUCCESS || found == NULL || *found == NULL)
		return;
	sw_function hook = sw_hook_of(*found);
	if (hook != NULL)
		memcpy(found, &hook, sizeof hook);
}

CUresult hook_cuGetProcAddress(P name, P ret, U version, Z flags)
{
	if (!sw_driver_ready() || sw_driver.get_proc_address == NULL)
		return CUDA_ERROR_NOT_FOUND;
	CUresult result = sw_driver.get_proc_address(name, ret, (int)version, flags);
	replace(result, ret);
	return result;
}

CUresult hook_cuGetProcAddress_v2(P name, P ret, U version, Z flags, P found)
{
	if (!sw_driver_ready() || sw_driver.get_proc_address_v2 == NULL)
		return CUDA_ERROR_NOT_FOUND;
	CUresult result = sw_driver.get_proc_address_v2(name, ret, (int)version, flags, found);
	replace(result, ret);
	return result;
}
