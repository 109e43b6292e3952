/* The hooks of calls that pass the gate, and of fills and copies, which are paced besides. They are written by the list. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "runtime/driver.h"
#include "runtime/gate.h"
#include "runtime/hooks.h"
#include "runtime/iterations.h"
#include "runtime/pace.h"

/* Names are asked while this is compiled, not at each call; with so many functions the compiler does not see that by itself. */
#define INLINE inline __attribute__((always_inline))

/* Copies that return when they are done: the program waits for the GPU, as in waits.c. Known when this is compiled. */
static INLINE bool waits(const char *symbol)
{
	return strncmp(symbol, "cuMemcpy", strlen("cuMemcpy")) == 0 && strstr(symbol, "Async") == NULL;
}

/* Fills and copies within the GPU keep it from other work as kernels do. Copies from and to the host do not: they leave it to compute. */
static INLINE bool paced(const char *symbol)
{
	return strncmp(symbol, "cuMemset", strlen("cuMemset")) == 0 || strstr(symbol, "DtoD") != NULL;
}

/* The stream of such a call: its last parameter, if it is one that has a stream. */
static INLINE CUstream stream_of(const char *symbol, uintptr_t last)
{
	CUstream stream = strstr(symbol, "Async") != NULL ? (CUstream)last : NULL; /* NOLINT(performance-no-int-to-ptr) */
	return stream == NULL && strstr(symbol, "_pt") != NULL ? CU_STREAM_PER_THREAD : stream;
}

/* What is paced has a function of its own: the others pay for the question alone. */
#define SW_WORK(symbol, ...)                                                                                                \
	static INLINE CUresult pass_##symbol(bool pace, SW_PARAMS(__VA_ARGS__))                                             \
	{                                                                                                                   \
		if (pace)                                                                                                   \
			sw_pace_before();                                                                                   \
		struct sw_gate_thread *self = sw_gate_enter();                                                              \
		sw_gate_count(&self->copies);                                                                               \
		sw_iterations_note(self, sw_note_copy(SW_ENTRY_##symbol));                                                  \
		if (pace)                                                                                                   \
			sw_pace_begin(stream_of(#symbol, (uintptr_t)a1));                                                   \
		CUresult result = ((CUresult(*)(SW_PARAMS(__VA_ARGS__)))sw_real[SW_ENTRY_##symbol])(SW_NAMES(__VA_ARGS__)); \
		if (pace)                                                                                                   \
			sw_pace_end(stream_of(#symbol, (uintptr_t)a1));                                                     \
		sw_gate_leave(self);                                                                                        \
		return result;                                                                                              \
	}                                                                                                                   \
	static __attribute__((noinline, cold, unused)) CUresult pace_##symbol(SW_PARAMS(__VA_ARGS__))                       \
	{                                                                                                                   \
		if (waits(#symbol))                                                                                         \
			sw_pace_pause();                                                                                    \
		return pass_##symbol(paced(#symbol), SW_NAMES(__VA_ARGS__));                                                \
	}                                                                                                                   \
	CUresult hook_##symbol(SW_PARAMS(__VA_ARGS__))                                                                      \
	{                                                                                                                   \
		if (__builtin_expect(!sw_driver_ready() || sw_real[SW_ENTRY_##symbol] == NULL, 0))                          \
			return CUDA_ERROR_NOT_FOUND;                                                                        \
		if ((waits(#symbol) || paced(#symbol)) &&                                                                   \
		    __builtin_expect(atomic_load_explicit(&sw_pace_mode, memory_order_relaxed) != 0, 0))                    \
			return pace_##symbol(SW_NAMES(__VA_ARGS__));                                                        \
		return pass_##symbol(false, SW_NAMES(__VA_ARGS__));                                                         \
	}
#define SW_OTHER(symbol, ...)
SW_ENTRY_POINTS(SW_OTHER, SW_WORK, SW_OTHER)
