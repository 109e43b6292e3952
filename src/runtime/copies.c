/* The hooks of fills and copies, written by the list. They pass the gate; those that stay within
 * one GPU are paced besides, since they keep it from other work as kernels do. Copies from and to
 * the host, or between GPUs, do not: they leave it to compute.
 *
 * Where a copy goes its name says, or its addresses do. Those are looked up only while the process
 * is paced or watched, and never during a capture. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "runtime/driver.h"
#include "runtime/gate.h"
#include "runtime/hooks.h"
#include "runtime/iterations.h"
#include "runtime/move.h"
#include "runtime/pace.h"

/* Names are asked while this is compiled, not at each call; with so many functions the compiler
 * does not see that by itself. */
#define INLINE inline __attribute__((always_inline))

/* ---- where copies go */

/* A device, or: */
enum { NO_GPU = -1, OF_THE_CONTEXT = -2 };

/* The driver is asked, not our books: it knows memory of every kind, and what of ours
 * is in host memory now. */
static int gpu_at(CUdeviceptr address)
{
	int type = 0, device = NO_GPU;
	int attributes[] = {CU_POINTER_MEMORY_TYPE, CU_POINTER_DEVICE_ORDINAL};
	if (sw_driver.pointer_attributes == NULL || atomic_load(&sw_captures) > 0)
		return NO_GPU;
	/* Inside the gate: while the process is suspended, the driver knows nothing
	 * of memory that is away. */
	struct sw_gate_thread *self = sw_gate_enter();
	CUresult result = sw_driver.pointer_attributes(2, attributes, (void *[]){&type, &device}, address);
	sw_gate_leave(self);
	return result == CUDA_SUCCESS && type == CU_MEMORY_DEVICE ? device : NO_GPU;
}

static int gpu_of_end(int type, CUdeviceptr address)
{
	switch (type) {
	case CU_MEMORY_ARRAY:
		return OF_THE_CONTEXT;
	case CU_MEMORY_DEVICE:
	case CU_MEMORY_UNIFIED:
		return gpu_at(address);
	default:
		return NO_GPU;
	}
}

/* The end that is the host's, if one is, ends the question. */
static bool one_gpu(int from_type, CUdeviceptr from, int to_type, CUdeviceptr to)
{
	int source = gpu_of_end(from_type, from);
	int target = source == NO_GPU ? NO_GPU : gpu_of_end(to_type, to);
	return target != NO_GPU && (source == target || source == OF_THE_CONTEXT || target == OF_THE_CONTEXT);
}

static bool line_within(CUdeviceptr to, CUdeviceptr from)
{
	return one_gpu(CU_MEMORY_UNIFIED, from, CU_MEMORY_UNIFIED, to);
}

static bool plane_within(const CUcopy2d *copy)
{
	return copy != NULL && one_gpu(copy->src_type, copy->src_device, copy->dst_type, copy->dst_device);
}

static bool box_within(const CUcopy3d *copy)
{
	return copy != NULL && one_gpu(copy->src_type, copy->src_device, copy->dst_type, copy->dst_device);
}

static bool lines_within(const CUdeviceptr *to, const CUdeviceptr *from, size_t count)
{
	bool within = false;
	for (size_t i = 0; i < count && !within && to != NULL && from != NULL; i++)
		within = line_within(to[i], from[i]);
	return within;
}

static int type_of(const CUcopyEnd *end)
{
	return end->type == CU_COPY_END_ARRAY ? CU_MEMORY_ARRAY : CU_MEMORY_UNIFIED;
}

static bool parts_within(size_t count, const CUcopyBox *boxes)
{
	bool within = false;
	for (size_t i = 0; i < count && !within && boxes != NULL; i++)
		within = one_gpu(type_of(&boxes[i].from), boxes[i].from.address, type_of(&boxes[i].to), boxes[i].to.address);
	return within;
}

/* One for each word of the list, with the call's parameters. */
#define WITHIN_GPU(...) true
#define WITHIN_HOST(...) false
#define WITHIN_LINE(to, from, ...) line_within(to, from)
#define WITHIN_PEER(to, to_context, from, ...) line_within(to, from)
#define WITHIN_PLANE(copy, ...) plane_within(copy)
#define WITHIN_BOX(copy, ...) box_within(copy)
#define WITHIN_LINES(to, from, bytes, count, ...) lines_within(to, from, count)
#define WITHIN_PART(box, ...) parts_within(1, box)
#define WITHIN_PARTS(count, boxes, ...) parts_within(count, boxes)
#define WITHIN(where, ...) WITHIN_##where(__VA_ARGS__)

/* ---- the hooks */

/* Copies from and to the host that return when they are done: the program waits for
 * the GPU, as in waits.c. */
static INLINE bool waits(const char *symbol)
{
	return strncmp(symbol, "cuMemcpy", strlen("cuMemcpy")) == 0 && strstr(symbol, "Async") == NULL;
}

/* The stream of such a call: its last parameter, if it is one that has a stream. */
static INLINE CUstream stream_of(const char *symbol, uintptr_t last)
{
	CUstream stream = strstr(symbol, "Async") != NULL ? (CUstream)last : NULL; /* NOLINT(performance-no-int-to-ptr) */
	return stream == NULL && strstr(symbol, "_pt") != NULL ? CU_STREAM_PER_THREAD : stream;
}

/* Paced or watched processes have functions of their own: the others pay for the question alone. */
#define SW_COPY(symbol, where, ...)                                                                                         \
	static INLINE CUresult pass_##symbol(bool pace, SW_PARAMS(__VA_ARGS__))                                             \
	{                                                                                                                   \
		if (pace)                                                                                                   \
			sw_pace_before(stream_of(#symbol, (uintptr_t)a1));                                                  \
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
		bool within = WITHIN(where, SW_NAMES(__VA_ARGS__));                                                         \
		if (!within && waits(#symbol))                                                                              \
			sw_pace_pause();                                                                                    \
		return pass_##symbol(within, SW_NAMES(__VA_ARGS__));                                                        \
	}                                                                                                                   \
	CUresult hook_##symbol(SW_PARAMS(__VA_ARGS__))                                                                      \
	{                                                                                                                   \
		if (__builtin_expect(!sw_driver_ready() || sw_real[SW_ENTRY_##symbol] == NULL, 0))                          \
			return CUDA_ERROR_NOT_FOUND;                                                                        \
		if ((strcmp(#where, "HOST") != 0 || waits(#symbol)) &&                                                      \
		    __builtin_expect(atomic_load_explicit(&sw_pace_mode, memory_order_relaxed) != 0, 0))                    \
			return pace_##symbol(SW_NAMES(__VA_ARGS__));                                                        \
		return pass_##symbol(false, SW_NAMES(__VA_ARGS__));                                                         \
	}
#define SW_OTHER(symbol, ...)
SW_ENTRY_POINTS(SW_OTHER, SW_COPY, SW_OTHER, SW_OTHER) /* NOLINT(readability-function-size): as many parameters as the driver has */
