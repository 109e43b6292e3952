/* The hooks that only pass the gate. They are written by the list. */
#include <stdbool.h>
#include <string.h>

#include "runtime/driver.h"
#include "runtime/gate.h"
#include "runtime/hooks.h"
#include "runtime/iterations.h"
#include "runtime/pace.h"

/* Copies that return when they are done: the program waits for the GPU, as in waits.c. Known when this is compiled. */
static inline bool waits(const char *symbol)
{
	return strncmp(symbol, "cuMemcpy", strlen("cuMemcpy")) == 0 && strstr(symbol, "Async") == NULL;
}

#define SW_WORK(symbol, ...)                                                                                                \
	CUresult hook_##symbol(SW_PARAMS(__VA_ARGS__))                                                                      \
	{                                                                                                                   \
		if (__builtin_expect(!sw_driver_ready() || sw_real[SW_ENTRY_##symbol] == NULL, 0))                          \
			return CUDA_ERROR_NOT_FOUND;                                                                        \
		if (waits(#symbol) && __builtin_expect(atomic_load_explicit(&sw_pace_mode, memory_order_relaxed) != 0, 0))  \
			sw_pace_pause();                                                                                    \
		struct sw_gate_thread *self = sw_gate_enter();                                                              \
		sw_gate_count(&self->copies);                                                                               \
		sw_iterations_note(self, sw_note_copy(SW_ENTRY_##symbol));                                                  \
		CUresult result = ((CUresult(*)(SW_PARAMS(__VA_ARGS__)))sw_real[SW_ENTRY_##symbol])(SW_NAMES(__VA_ARGS__)); \
		sw_gate_leave(self);                                                                                        \
		return result;                                                                                              \
	}
#define SW_OTHER(symbol, ...)
SW_ENTRY_POINTS(SW_OTHER, SW_WORK, SW_OTHER)
