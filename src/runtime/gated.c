/* The hooks that only pass the gate. They are written by the list. */
#include "runtime/driver.h"
#include "runtime/gate.h"
#include "runtime/hooks.h"

#define SW_PASS(symbol, figure, ...)                                                                                        \
	CUresult hook_##symbol(SW_PARAMS(__VA_ARGS__))                                                                      \
	{                                                                                                                   \
		if (__builtin_expect(!sw_driver_ready() || sw_real[SW_ENTRY_##symbol] == NULL, 0))                          \
			return CUDA_ERROR_NOT_FOUND;                                                                        \
		struct sw_gate_thread *self = sw_gate_enter();                                                              \
		sw_gate_count(&self->figure);                                                                               \
		CUresult result = ((CUresult(*)(SW_PARAMS(__VA_ARGS__)))sw_real[SW_ENTRY_##symbol])(SW_NAMES(__VA_ARGS__)); \
		sw_gate_leave(self);                                                                                        \
		return result;                                                                                              \
	}
#define SW_LAUNCH(symbol, ...) SW_PASS(symbol, launches, __VA_ARGS__)
#define SW_WORK(symbol, ...) SW_PASS(symbol, copies, __VA_ARGS__)
#define SW_OWN(symbol, ...)
/* As many parameters as the driver has. */
SW_ENTRY_POINTS(SW_LAUNCH, SW_WORK, SW_OWN) /* NOLINT(readability-function-size) */
