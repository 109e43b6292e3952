/* The hooks of calls that give the GPU work of unknown length: kernels and graphs. Beside passing
 * the gate they are paced. */
#include "runtime/driver.h"
#include "runtime/freers.h"
#include "runtime/gate.h"
#include "runtime/hooks.h"
#include "runtime/iterations.h"
#include "runtime/move.h"
#include "runtime/pace.h"

/* `work_stream` says which stream the call works on, and `note` what it is, from its parameters. */
#define LAUNCH_ON(symbol, work_stream, note, ...)                                                                           \
	CUresult hook_##symbol(SW_PARAMS(__VA_ARGS__)) /* NOLINT(readability-function-size): as many as the driver has */   \
	{                                                                                                                   \
		if (__builtin_expect(!sw_driver_ready() || sw_real[SW_ENTRY_##symbol] == NULL, 0))                          \
			return CUDA_ERROR_NOT_FOUND;                                                                        \
		bool paced = __builtin_expect(atomic_load_explicit(&sw_pace_mode, memory_order_relaxed) != 0, 0);           \
		if (paced)                                                                                                  \
			sw_pace_before(work_stream);                                                                        \
		struct sw_gate_thread *self = sw_gate_enter();                                                              \
		sw_gate_count(&self->launches);                                                                             \
		sw_iterations_note(self, note);                                                                             \
		if (paced)                                                                                                  \
			sw_pace_begin(work_stream);                                                                         \
		CUresult result = ((CUresult(*)(SW_PARAMS(__VA_ARGS__)))sw_real[SW_ENTRY_##symbol])(SW_NAMES(__VA_ARGS__)); \
		if (paced)                                                                                                  \
			sw_pace_end(work_stream);                                                                           \
		sw_gate_leave(self);                                                                                        \
		return result;                                                                                              \
	}

/* In the forms for per-thread streams, no stream means the thread's own. */
static CUstream own(CUstream stream)
{
	return stream == NULL ? CU_STREAM_PER_THREAD : stream;
}

static CUstream of_config(const void *config)
{
	return config == NULL ? NULL : ((const CUlaunchConfig *)config)->stream;
}

static uint32_t note_of_config(const void *config, const void *function)
{
	const unsigned *grid = config == NULL ? (const unsigned[3]){0} : ((const CUlaunchConfig *)config)->grid;
	return sw_note_launch(function, grid[0], grid[1], grid[2]);
}

/* Parameters are numbered from the last one. */
LAUNCH_ON(cuLaunchKernel, a3, sw_note_launch(a11, a10, a9, a8), P, U, U, U, U, U, U, U, P, P, P)
LAUNCH_ON(cuLaunchKernel_ptsz, own(a3), sw_note_launch(a11, a10, a9, a8), P, U, U, U, U, U, U, U, P, P, P)
LAUNCH_ON(cuLaunchKernelEx, of_config(a4), note_of_config(a4, a3), P, P, P, P)
LAUNCH_ON(cuLaunchKernelEx_ptsz, own(of_config(a4)), note_of_config(a4, a3), P, P, P, P)
LAUNCH_ON(cuLaunchCooperativeKernel, a2, sw_note_launch(a10, a9, a8, a7), P, U, U, U, U, U, U, U, P, P)
LAUNCH_ON(cuLaunchCooperativeKernel_ptsz, own(a2), sw_note_launch(a10, a9, a8, a7), P, U, U, U, U, U, U, U, P, P)
LAUNCH_ON(cuGraphLaunch, a1, sw_note_graph(a2), P, P)
LAUNCH_ON(cuGraphLaunch_ptsz, own(a1), sw_note_graph(a2), P, P)
LAUNCH_ON(cuLaunchCooperativeKernelMultiDevice, NULL, sw_note_launch(NULL, a2, 0, 0), P, U, U)
LAUNCH_ON(cuLaunch, NULL, sw_note_launch(a1, 0, 0, 0), P)
LAUNCH_ON(cuLaunchGrid, NULL, sw_note_launch(a3, a2, a1, 0), P, U, U)
LAUNCH_ON(cuLaunchGridAsync, a1, sw_note_launch(a4, a3, a2, 0), P, U, U, P)

#define DESTROYS(symbol)                                       \
	CUresult hook_##symbol(P stream)                       \
	{                                                      \
		if (SW_MISSING(symbol))                        \
			return CUDA_ERROR_NOT_FOUND;           \
		struct sw_gate_thread *self = sw_gate_enter(); \
		sw_pace_forget_stream(stream);                 \
		sw_freer_forget_stream(stream);                \
		CUresult result = SW_REAL(symbol, P)(stream);  \
		if (result == CUDA_SUCCESS)                    \
			sw_capture_forget_stream(stream);      \
		sw_gate_leave(self);                           \
		return result;                                 \
	}
DESTROYS(cuStreamDestroy)
DESTROYS(cuStreamDestroy_v2)
