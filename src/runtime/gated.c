/* The hooks of calls that pass the gate and no more: other work than kernels, graphs, fills and
 * copies, and what touches memory. They are written by the list. */
#include "runtime/driver.h"
#include "runtime/gate.h"
#include "runtime/hooks.h"
#include "runtime/iterations.h"

#define SW_WORK(symbol, ...)                                                                                                \
	CUresult hook_##symbol(SW_PARAMS(__VA_ARGS__))                                                                      \
	{                                                                                                                   \
		if (__builtin_expect(!sw_driver_ready() || sw_real[SW_ENTRY_##symbol] == NULL, 0))                          \
			return CUDA_ERROR_NOT_FOUND;                                                                        \
		struct sw_gate_thread *self = sw_gate_enter();                                                              \
		sw_gate_count(&self->copies);                                                                               \
		sw_iterations_note(self, sw_note_copy(SW_ENTRY_##symbol));                                                  \
		CUresult result = ((CUresult(*)(SW_PARAMS(__VA_ARGS__)))sw_real[SW_ENTRY_##symbol])(SW_NAMES(__VA_ARGS__)); \
		sw_gate_leave(self);                                                                                        \
		return result;                                                                                              \
	}
#define SW_OTHER(symbol, ...)
SW_ENTRY_POINTS(SW_OTHER, SW_OTHER, SW_WORK, SW_OTHER)
