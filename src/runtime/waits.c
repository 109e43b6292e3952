/* The hooks of calls in which the program waits for the GPU. They pass no gate: what they wait for
 * has passed it. A program that waits gives the GPU no work, and its share does not pay for that
 * time. Memory that was freed before the wait may be given back after it. */
#include "runtime/driver.h"
#include "runtime/freers.h"
#include "runtime/hooks.h"
#include "runtime/pace.h"
#include "runtime/waited.h"

#define WAITS(symbol, all_of, stream, ...)                                                                                  \
	CUresult hook_##symbol(SW_PARAMS(__VA_ARGS__))                                                                      \
	{                                                                                                                   \
		if (__builtin_expect(!sw_driver_ready() || sw_real[SW_ENTRY_##symbol] == NULL, 0))                          \
			return CUDA_ERROR_NOT_FOUND;                                                                        \
		if (__builtin_expect(atomic_load_explicit(&sw_pace_mode, memory_order_relaxed) != 0, 0))                    \
			sw_pace_pause();                                                                                    \
		uint64_t begun = sw_wait_begins();                                                                          \
		CUresult result = ((CUresult(*)(SW_PARAMS(__VA_ARGS__)))sw_real[SW_ENTRY_##symbol])(SW_NAMES(__VA_ARGS__)); \
		if (__builtin_expect(begun != 0, 0) && result == CUDA_SUCCESS)                                              \
			sw_wait_ends(begun, all_of, stream);                                                                \
		return result;                                                                                              \
	}

static CUcontext current(void)
{
	CUcontext context = NULL;
	return sw_driver.context_current(&context) == CUDA_SUCCESS ? context : NULL;
}

WAITS(cuCtxSynchronize, current(), NULL)
WAITS(cuCtxSynchronize_v2, a1, NULL, P)
WAITS(cuEventSynchronize, NULL, NULL, P)
WAITS(cuStreamSynchronize, current(), sw_freer_stream(a1, false), P)
WAITS(cuStreamSynchronize_ptsz, current(), sw_freer_stream(a1, true), P)
