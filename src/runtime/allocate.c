/* The hooked calls that get and free memory. Each is inside the gate while it works. */
#include <stdint.h>

#include "runtime/account.h"
#include "runtime/charges.h"
#include "runtime/driver.h"
#include "runtime/freers.h"
#include "runtime/gate.h"
#include "runtime/hooks.h"
#include "runtime/iterations.h"
#include "runtime/memory.h"
#include "runtime/move.h"
#include "runtime/pace.h"
#include "runtime/start.h"
#include "runtime/tools.h"

#define PITCH ((size_t)512)

/* The GPU of the current context; -1: no context, and the driver will say so. */
static int current_gpu(void)
{
	CUdevice device;
	return sw_driver.context_device(&device) == CUDA_SUCCESS ? sw_account_gpu(device) : -1;
}

/* Whether there may be more than before: what pools do not use, or what was
 * freed and is not back yet. */
static bool make_room(int gpu)
{
	bool reclaimed = sw_memory_reclaim(gpu);
	return sw_memory_await_leaving() || reclaimed;
}

/* Runs `call` with the bytes taken from the account, and gives them back if it fails. */
#define COUNTED(gpu, bytes, kind, key, call)                                                                           \
	do {                                                                                                           \
		if (sw_page == NULL)                                                                                   \
			return (call);                                                                                 \
		int gpu_ = (gpu);                                                                                      \
		size_t bytes_ = (bytes);                                                                               \
		struct sw_gate_thread *self_ = sw_pace_enter_request();                                                \
		CUresult result_ = CUDA_ERROR_OUT_OF_MEMORY;                                                           \
		if (sw_account_take(gpu_, bytes_, true) || (make_room(gpu_) && sw_account_take(gpu_, bytes_, true))) { \
			result_ = (call);                                                                              \
			if (result_ == CUDA_SUCCESS)                                                                   \
				sw_charge_add(kind, (key), gpu_, bytes_);                                              \
			else                                                                                           \
				sw_account_give(gpu_, bytes_, true);                                                   \
		}                                                                                                      \
		sw_iterations_memory();                                                                                \
		sw_pace_leave_request(self_);                                                                          \
		return result_;                                                                                        \
	} while (0)

static CUresult get(size_t bytes, CUdeviceptr *ret_address)
{
	CUresult result = sw_memory_get(bytes, ret_address);
	return result == CUDA_ERROR_OUT_OF_MEMORY && sw_memory_await_leaving() ? sw_memory_get(bytes, ret_address) : result;
}

CUresult hook_cuMemAlloc_v2(P ret, Z bytes)
{
	if (SW_MISSING(cuMemAlloc_v2))
		return CUDA_ERROR_NOT_INITIALIZED;
	/* What makes no sense, and what may not be moved, is the driver's to answer. */
	if (!sw_moves || ret == NULL || bytes == 0)
		return sw_driver.alloc(ret, bytes);
	if (sw_stays)
		COUNTED(current_gpu(), bytes, SW_CHARGE_ADDRESS, *(CUdeviceptr *)ret, sw_driver.alloc(ret, bytes));
	struct sw_gate_thread *self = sw_pace_enter_request();
	CUresult result = get(bytes, ret);
	sw_iterations_memory();
	sw_pace_leave_request(self);
	return result;
}

CUresult hook_cuMemAllocPitch_v2(P ret, P ret_pitch, Z width, Z height, U element)
{
	if (SW_MISSING(cuMemAllocPitch_v2))
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!sw_moves || ret == NULL || ret_pitch == NULL || width == 0 || height == 0 || (element != 4 && element != 8 && element != 16))
		return sw_driver.alloc_pitch(ret, ret_pitch, width, height, element);
	size_t pitch = sw_round_up(width, PITCH), bytes;
	if (pitch < width || __builtin_mul_overflow(pitch, height, &bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (sw_stays)
		COUNTED(current_gpu(), bytes, SW_CHARGE_ADDRESS, *(CUdeviceptr *)ret,
			sw_driver.alloc_pitch(ret, ret_pitch, width, height, element));
	struct sw_gate_thread *self = sw_pace_enter_request();
	CUresult result = get(bytes, ret);
	if (result == CUDA_SUCCESS)
		*(size_t *)ret_pitch = pitch;
	sw_iterations_memory();
	sw_pace_leave_request(self);
	return result;
}

/* In the current context, and in the memory's own if that is another. */
static CUresult await_work(CUcontext own)
{
	CUcontext current = NULL, popped;
	CUresult result = sw_freers_wait();
	if (result != CUDA_SUCCESS || (sw_driver.context_current(&current) == CUDA_SUCCESS && current == own))
		return result;
	result = sw_driver.context_push(own);
	if (result != CUDA_SUCCESS)
		return result;
	result = sw_freers_wait();
	sw_driver.context_pop(&popped);
	return result;
}

/* A caller that frees may count on all work with it being over, as with the driver. That may take
 * long, so it is waited for before the gate. No thread that closes it, and none that it stops, has
 * to wait for a free. While something is captured no thread may wait for a context: then the memory
 * goes when the program has waited for it, or stands still. */
static CUresult free_ours(CUdeviceptr address, CUcontext own, bool captured)
{
	CUcontext popped;
	CUresult result = captured ? CUDA_SUCCESS : await_work(own);
	/* One may have begun meanwhile. */
	captured = captured || (result != CUDA_SUCCESS && atomic_load(&sw_captures) > 0);
	if (result != CUDA_SUCCESS && !captured)
		return result; /* the driver would not have freed anything either */
	struct sw_gate_thread *self = sw_gate_enter();
	bool pushed = captured && sw_driver.context_push(own) == CUDA_SUCCESS;
	/* Two threads that free the same: the second finds nothing. */
	if (captured ? !sw_memory_put_later(address, SW_FREER_OF_CONTEXT, &result) : !sw_memory_put(address))
		result = CUDA_ERROR_INVALID_VALUE;
	if (pushed)
		sw_driver.context_pop(&popped);
	if (!captured && sw_memory_leaving > 0)
		sw_memory_settle();
	sw_iterations_memory();
	sw_gate_leave(self);
	return result;
}

CUresult hook_cuMemFree_v2(Z address)
{
	if (SW_MISSING(cuMemFree_v2))
		return CUDA_ERROR_NOT_INITIALIZED;
	bool captured = atomic_load(&sw_captures) > 0;
	CUdeviceptr base = 0;
	CUcontext own = NULL;
	size_t bytes;
	if (sw_moves && sw_memory_find(address, &base, &bytes, &own) && base == address)
		return free_ours(address, own, captured);
	/* So does the driver with what it gave plainly, and not with memory of pools. Whatever
	 * this says, it will say. */
	if (sw_page != NULL && !captured && sw_charge_has(SW_CHARGE_ADDRESS, address))
		sw_driver.context_synchronize();
	struct sw_gate_thread *self = sw_gate_enter();
	CUresult result = sw_driver.free(address);
	if (result == CUDA_SUCCESS && sw_page != NULL) {
		sw_charge_remove(SW_CHARGE_ADDRESS, address);
		sw_charge_pool(NULL, 0);
	}
	sw_iterations_memory();
	sw_gate_leave(self);
	return result;
}

/* ---- what is only counted */

CUresult hook_cuMemAllocManaged(P ret, Z bytes, U flags)
{
	if (SW_MISSING(cuMemAllocManaged))
		return CUDA_ERROR_NOT_INITIALIZED;
	COUNTED(current_gpu(), bytes, SW_CHARGE_ADDRESS, *(CUdeviceptr *)ret, sw_driver.alloc_managed(ret, bytes, flags));
}

/* ---- arrays */

static size_t bytes_of_format(int format)
{
	switch (format) {
	case 0x01: /* unsigned and signed bytes */
	case 0x08:
		return 1;
	case 0x02: /* 16 bits */
	case 0x09:
	case 0x10:
		return 2;
	default: /* 32 bits; the rare others are counted as such */
		return 4;
	}
}

static size_t array_bytes(size_t width, size_t height, size_t depth, int format, unsigned channels)
{
	size_t bytes = width;
	const size_t factors[] = {height == 0 ? 1 : height, depth == 0 ? 1 : depth, bytes_of_format(format), channels == 0 ? 1 : channels};
	for (unsigned i = 0; i < 4; i++)
		if (__builtin_mul_overflow(bytes, factors[i], &bytes))
			return SIZE_MAX / 2;
	return bytes;
}

CUresult hook_cuArrayCreate_v2(P ret, P shape)
{
	if (SW_MISSING(cuArrayCreate_v2))
		return CUDA_ERROR_NOT_INITIALIZED;
	const CUarrayShape *asked = shape;
	size_t bytes = asked == NULL ? 0 : array_bytes(asked->width, asked->height, 1, asked->format, asked->channels);
	COUNTED(current_gpu(), bytes, SW_CHARGE_ARRAY, (uint64_t)(uintptr_t) * (CUarray *)ret, SW_REAL(cuArrayCreate_v2, P, P)(ret, shape));
}

CUresult hook_cuArray3DCreate_v2(P ret, P shape)
{
	if (SW_MISSING(cuArray3DCreate_v2))
		return CUDA_ERROR_NOT_INITIALIZED;
	const CUarray3dShape *asked = shape;
	size_t bytes = asked == NULL ? 0 : array_bytes(asked->width, asked->height, asked->depth, asked->format, asked->channels);
	COUNTED(current_gpu(), bytes, SW_CHARGE_ARRAY, (uint64_t)(uintptr_t) * (CUarray *)ret,
		SW_REAL(cuArray3DCreate_v2, P, P)(ret, shape));
}

CUresult hook_cuMipmappedArrayCreate(P ret, P shape, U levels)
{
	if (SW_MISSING(cuMipmappedArrayCreate))
		return CUDA_ERROR_NOT_INITIALIZED;
	const CUarray3dShape *asked = shape;
	/* All smaller levels together are at most as large as the first. */
	size_t bytes = asked == NULL ? 0 : array_bytes(asked->width, asked->height, asked->depth, asked->format, asked->channels);
	bytes = levels > 1 ? bytes * 2 : bytes;
	COUNTED(current_gpu(), bytes, SW_CHARGE_ARRAY, (uint64_t)(uintptr_t) * (CUmipmappedArray *)ret,
		SW_REAL(cuMipmappedArrayCreate, P, P, U)(ret, shape, levels));
}

#define FORGET_ARRAY(symbol)                                                           \
	CUresult hook_##symbol(P array)                                                \
	{                                                                              \
		if (SW_MISSING(symbol))                                                \
			return CUDA_ERROR_NOT_INITIALIZED;                             \
		struct sw_gate_thread *self = sw_gate_enter();                         \
		CUresult result = SW_REAL(symbol, P)(array);                           \
		if (result == CUDA_SUCCESS && sw_page != NULL)                         \
			sw_charge_remove(SW_CHARGE_ARRAY, (uint64_t)(uintptr_t)array); \
		sw_iterations_memory();                                                \
		sw_gate_leave(self);                                                   \
		return result;                                                         \
	}
FORGET_ARRAY(cuArrayDestroy)
FORGET_ARRAY(cuMipmappedArrayDestroy)
