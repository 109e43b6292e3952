/* The hooks of calls in which the program waits for the GPU. They pass no gate: what they wait for has passed it. A program that waits gives the GPU no work, and its share does not pay
 * for that time. */
#include "runtime/driver.h"
#include "runtime/hooks.h"
#include "runtime/pace.h"

#define WAITS(symbol, ...)                                                                                       \
	CUresult hook_##symbol(SW_PARAMS(__VA_ARGS__))                                                           \
	{                                                                                                        \
		if (__builtin_expect(!sw_driver_ready() || sw_real[SW_ENTRY_##symbol] == NULL, 0))               \
			return CUDA_ERROR_NOT_FOUND;                                                             \
		if (__builtin_expect(atomic_load_explicit(&sw_pace_mode, memory_order_relaxed) != 0, 0))         \
			sw_pace_pause();                                                                         \
		return ((CUresult(*)(SW_PARAMS(__VA_ARGS__)))sw_real[SW_ENTRY_##symbol])(SW_NAMES(__VA_ARGS__)); \
	}

WAITS(cuCtxSynchronize)
WAITS(cuCtxSynchronize_v2, P)
WAITS(cuEventSynchronize, P)
WAITS(cuStreamSynchronize, P)
WAITS(cuStreamSynchronize_ptsz, P)
