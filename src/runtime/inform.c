/* The hooked calls that describe memory: they agree with the limit, and know
 * allocations that the driver does not. Also those that hand memory to another process:
 * what others know does not move. */
#include "runtime/account.h"
#include "runtime/charges.h"
#include "runtime/driver.h"
#include "runtime/gate.h"
#include "runtime/hooks.h"
#include "runtime/mapped.h"
#include "runtime/memory.h"
#include "runtime/start.h"

CUresult hook_cuMemGetInfo_v2(P ret_free, P ret_total)
{
	if (SW_MISSING(cuMemGetInfo_v2))
		return CUDA_ERROR_NOT_INITIALIZED;
	size_t free = 0, total = 0;
	CUdevice device;
	CUresult result = sw_driver.memory_info(&free, &total);
	if (result != CUDA_SUCCESS)
		return result;
	if (sw_page != NULL && sw_driver.context_device(&device) == CUDA_SUCCESS) {
		int gpu = sw_account_gpu(device);
		uint64_t limit = sw_account_limit(gpu), room = sw_account_room(gpu);
		total = limit < total ? limit : total;
		free = room < free ? room : free;
		free = free < total ? free : total;
	}
	if (ret_free != NULL)
		*(size_t *)ret_free = free;
	if (ret_total != NULL)
		*(size_t *)ret_total = total;
	return result;
}

CUresult hook_cuDeviceTotalMem_v2(P ret, U device)
{
	if (SW_MISSING(cuDeviceTotalMem_v2))
		return CUDA_ERROR_NOT_INITIALIZED;
	CUresult result = sw_driver.device_memory(ret, (CUdevice)device);
	if (result == CUDA_SUCCESS && sw_page != NULL) {
		uint64_t limit = sw_account_limit(sw_account_gpu((CUdevice)device));
		if (limit < *(size_t *)ret)
			*(size_t *)ret = limit;
	}
	return result;
}

CUresult hook_cuMemGetAddressRange_v2(P ret_base, P ret_bytes, Z address)
{
	if (SW_MISSING(cuMemGetAddressRange_v2))
		return CUDA_ERROR_NOT_INITIALIZED;
	CUdeviceptr base;
	size_t bytes;
	CUcontext context;
	if (!sw_moves || !sw_memory_find(address, &base, &bytes, &context)) {
		/* While the process is suspended, the driver knows nothing of
		 * what was mapped by hand. */
		struct sw_gate_thread *self = sw_gate_enter();
		CUresult result = sw_driver.address_range(ret_base, ret_bytes, address);
		sw_gate_leave(self);
		return result;
	}
	if (ret_base != NULL)
		*(CUdeviceptr *)ret_base = base;
	if (ret_bytes != NULL)
		*(size_t *)ret_bytes = bytes;
	return CUDA_SUCCESS;
}

/* What the driver cannot know of our allocations; false: it can. */
static bool answer(int attribute, CUdeviceptr address, void *ret)
{
	CUdeviceptr base;
	size_t bytes;
	CUcontext context;
	CUmemoryPool pool = attribute == CU_POINTER_POOL && ret != NULL ? sw_memory_pool(address) : NULL;
	if (pool != NULL) {
		*(CUmemoryPool *)ret = pool;
		return true;
	}
	bool asked = attribute == CU_POINTER_CONTEXT || attribute == CU_POINTER_RANGE_START || attribute == CU_POINTER_RANGE_SIZE;
	if (!asked || ret == NULL || !sw_memory_find(address, &base, &bytes, &context))
		return false;
	if (attribute == CU_POINTER_CONTEXT)
		*(CUcontext *)ret = context;
	else if (attribute == CU_POINTER_RANGE_START)
		*(CUdeviceptr *)ret = base;
	else
		*(size_t *)ret = bytes;
	return true;
}

CUresult hook_cuPointerGetAttribute(P ret, U attribute, Z address)
{
	if (SW_MISSING(cuPointerGetAttribute))
		return CUDA_ERROR_NOT_INITIALIZED;
	/* Inside the gate: while the process is suspended, the driver knows nothing
	 * of memory that is away. */
	struct sw_gate_thread *self = sw_gate_enter();
	CUresult result = CUDA_SUCCESS;
	if (!sw_moves || !answer((int)attribute, address, ret))
		result = sw_driver.pointer_attribute(ret, (int)attribute, address);
	sw_gate_leave(self);
	return result;
}

CUresult hook_cuPointerGetAttributes(U count, P attributes, P ret, Z address)
{
	if (SW_MISSING(cuPointerGetAttributes))
		return CUDA_ERROR_NOT_INITIALIZED;
	struct sw_gate_thread *self = sw_gate_enter();
	CUresult result = sw_driver.pointer_attributes(count, attributes, ret, address);
	sw_gate_leave(self);
	if (result == CUDA_SUCCESS && sw_moves)
		for (unsigned i = 0; i < count; i++)
			answer(((int *)attributes)[i], address, ((void **)ret)[i]);
	return result;
}

/* ---- what others get to know */

CUresult hook_cuMemImportFromShareableHandle(P ret, P handle, U type)
{
	if (SW_MISSING(cuMemImportFromShareableHandle))
		return CUDA_ERROR_NOT_INITIALIZED;
	/* The process that made it pays for it. */
	CUresult result = sw_driver.import_handle(ret, handle, (int)type);
	if (result == CUDA_SUCCESS)
		*(CUmemHandle *)ret = sw_mapped_name(*(CUmemHandle *)ret);
	return result;
}

CUresult hook_cuMemGetHandleForAddressRange(P ret, Z address, Z bytes, U type, Z flags)
{
	if (SW_MISSING(cuMemGetHandleForAddressRange))
		return CUDA_ERROR_NOT_INITIALIZED;
	/* Inside the gate nothing moves before it is pinned. */
	struct sw_gate_thread *self = sw_gate_enter();
	CUresult result = SW_REAL(cuMemGetHandleForAddressRange, P, Z, Z, U, Z)(ret, address, bytes, type, flags);
	if (result == CUDA_SUCCESS && sw_moves)
		sw_memory_pin(address, bytes);
	sw_gate_leave(self);
	return result;
}

/* The driver waits there until all GPUs have joined the group, as long as that takes. So it is
 * outside the gate. Before that the memory is pinned, also where the driver refuses in the end.
 * Parameters are numbered from the last one: the address is the third, and how many bytes the
 * second. */
#define BINDS_ADDRESS(symbol, ...)                                          \
	CUresult hook_##symbol(SW_PARAMS(__VA_ARGS__))                      \
	{                                                                   \
		if (SW_MISSING(symbol))                                     \
			return CUDA_ERROR_NOT_INITIALIZED;                  \
		struct sw_gate_thread *self = sw_gate_enter();              \
		if (sw_moves)                                               \
			sw_memory_pin((CUdeviceptr)(uintptr_t)a3, a2);      \
		sw_gate_leave(self);                                        \
		return SW_REAL(symbol, __VA_ARGS__)(SW_NAMES(__VA_ARGS__)); \
	}
BINDS_ADDRESS(cuMulticastBindAddr, Z, Z, Z, Z, Z)
BINDS_ADDRESS(cuMulticastBindAddr_v2, Z, U, Z, Z, Z, Z)
BINDS_ADDRESS(cuLogicalEndpointBindAddr, U, U, Z, P, Z, Z)

CUresult hook_cuPointerSetAttribute(P value, U attribute, Z address)
{
	if (SW_MISSING(cuPointerSetAttribute))
		return CUDA_ERROR_NOT_INITIALIZED;
	struct sw_gate_thread *self = sw_gate_enter();
	CUresult result = SW_REAL(cuPointerSetAttribute, P, U, Z)(value, attribute, address);
	/* Asked for by programs that give the memory to a network card. */
	if (result == CUDA_SUCCESS && sw_moves && attribute == CU_POINTER_SYNC_MEMOPS)
		sw_memory_pin(address, 1);
	sw_gate_leave(self);
	return result;
}
