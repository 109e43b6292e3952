/* The hooked calls about contexts and captures: memory goes with its context, peers get access, and nothing moves while a stream is captured. */
#include <stdatomic.h>

#include "runtime/driver.h"
#include "runtime/gate.h"
#include "runtime/hooks.h"
#include "runtime/memory.h"
#include "runtime/move.h"
#include "runtime/start.h"

#define REAL(symbol, ...) ((CUresult(*)(__VA_ARGS__))sw_real[SW_ENTRY_##symbol])
#define MISSING(symbol) (!sw_driver_ready() || sw_real[SW_ENTRY_##symbol] == NULL)

_Atomic int sw_captures;

CUresult hook_cuCtxDestroy_v2(P context)
{
	if (MISSING(cuCtxDestroy_v2))
		return CUDA_ERROR_NOT_INITIALIZED;
	struct sw_gate_thread *self = sw_gate_enter();
	if (sw_moves && context != NULL) {
		/* All work with it must be over before its memory goes. */
		CUcontext popped;
		if (sw_driver.context_push(context) == CUDA_SUCCESS) {
			sw_driver.context_synchronize();
			sw_memory_drop_context(context);
			sw_move_forget_context(context);
			sw_driver.context_pop(&popped);
		}
	}
	CUresult result = sw_driver.context_destroy(context);
	sw_gate_leave(self);
	return result;
}

/* The primary context of the device, if this call is the one that ends it. */
static void drop_primary(CUdevice device)
{
	unsigned flags;
	int active = 0;
	if (sw_driver.primary_state == NULL || sw_driver.primary_state(device, &flags, &active) != CUDA_SUCCESS || active)
		return;
	CUcontext gone = NULL;
	do {
		gone = sw_memory_context_of(device);
		if (gone != NULL) {
			sw_memory_drop_context(gone);
			sw_move_forget_context(gone);
		}
	} while (gone != NULL);
}

CUresult hook_cuDevicePrimaryCtxReset_v2(U device)
{
	if (MISSING(cuDevicePrimaryCtxReset_v2))
		return CUDA_ERROR_NOT_INITIALIZED;
	struct sw_gate_thread *self = sw_gate_enter();
	CUresult result = sw_driver.primary_reset((CUdevice)device);
	if (result == CUDA_SUCCESS && sw_moves)
		drop_primary((CUdevice)device);
	sw_gate_leave(self);
	return result;
}

CUresult hook_cuDevicePrimaryCtxRelease_v2(U device)
{
	if (MISSING(cuDevicePrimaryCtxRelease_v2))
		return CUDA_ERROR_NOT_INITIALIZED;
	struct sw_gate_thread *self = sw_gate_enter();
	CUresult result = sw_driver.primary_release((CUdevice)device);
	if (result == CUDA_SUCCESS && sw_moves)
		drop_primary((CUdevice)device);
	sw_gate_leave(self);
	return result;
}

CUresult hook_cuCtxEnablePeerAccess(P peer, U flags)
{
	if (MISSING(cuCtxEnablePeerAccess))
		return CUDA_ERROR_NOT_INITIALIZED;
	struct sw_gate_thread *self = sw_gate_enter();
	CUresult result = sw_driver.enable_peer(peer, flags);
	CUdevice own, other;
	CUcontext popped;
	if (result == CUDA_SUCCESS && sw_moves && sw_driver.context_device(&own) == CUDA_SUCCESS &&
	    sw_driver.context_push(peer) == CUDA_SUCCESS) {
		if (sw_driver.context_device(&other) == CUDA_SUCCESS)
			sw_memory_let(other, own);
		sw_driver.context_pop(&popped);
	}
	sw_gate_leave(self);
	return result;
}

/* ---- captures */

#define BEGINS(symbol, ...)                                                         \
	CUresult hook_##symbol(SW_PARAMS(__VA_ARGS__))                              \
	{                                                                           \
		if (MISSING(symbol))                                                \
			return CUDA_ERROR_NOT_INITIALIZED;                          \
		struct sw_gate_thread *self = sw_gate_enter();                      \
		CUresult result = REAL(symbol, __VA_ARGS__)(SW_NAMES(__VA_ARGS__)); \
		if (result == CUDA_SUCCESS)                                         \
			atomic_fetch_add(&sw_captures, 1);                          \
		sw_gate_leave(self);                                                \
		return result;                                                      \
	}
BEGINS(cuStreamBeginCapture_v2, P, U)
BEGINS(cuStreamBeginCapture_v2_ptsz, P, U)
BEGINS(cuStreamBeginCaptureToGraph, P, P, P, P, Z, U)
BEGINS(cuStreamBeginCaptureToGraph_ptsz, P, P, P, P, Z, U)

/* A capture that went wrong has ended as well. Only a stream that was not captured leaves the count as it is. */
#define ENDS(symbol)                                                                                        \
	CUresult hook_##symbol(P stream, P ret_graph)                                                       \
	{                                                                                                   \
		if (MISSING(symbol))                                                                        \
			return CUDA_ERROR_NOT_INITIALIZED;                                                  \
		struct sw_gate_thread *self = sw_gate_enter();                                              \
		CUresult result = REAL(symbol, P, P)(stream, ret_graph);                                    \
		if (result == CUDA_SUCCESS || result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED) {            \
			int count = atomic_load(&sw_captures);                                              \
			while (count > 0 && !atomic_compare_exchange_weak(&sw_captures, &count, count - 1)) \
				;                                                                           \
		}                                                                                           \
		sw_gate_leave(self);                                                                        \
		return result;                                                                              \
	}
ENDS(cuStreamEndCapture)
ENDS(cuStreamEndCapture_ptsz)
