/* The hooked calls about contexts and captures: memory goes with its context, peers get access, and
 * nothing moves while a stream is captured. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "runtime/account.h"
#include "runtime/charges.h"
#include "runtime/driver.h"
#include "runtime/freers.h"
#include "runtime/gate.h"
#include "runtime/hooks.h"
#include "runtime/iterations.h"
#include "runtime/memory.h"
#include "runtime/move.h"
#include "runtime/neighbours.h"
#include "runtime/overhead.h"
#include "runtime/pace.h"
#include "runtime/profile.h"
#include "runtime/start.h"
#include "runtime/visits.h"

_Atomic int sw_captures;

/* ---- captures that go on */

/* Where each began: only there it can end, other than with its stream or its context. Of more at
 * once than that, those beyond are known as long as one of these goes on. */
enum { CAPTURES = 1024 };
static struct {
	CUcontext context;
	CUstream stream;
} begun[CAPTURES];
static unsigned begun_count;
static pthread_mutex_t captures_lock = PTHREAD_MUTEX_INITIALIZER;

/* Before it does: then no code of ours, in whatever thread, gives the driver
 * work that would spoil it. */
static void capture_begins(CUstream stream)
{
	CUcontext context = NULL;
	sw_driver.context_current(&context);
	pthread_mutex_lock(&captures_lock);
	if (begun_count < CAPTURES) {
		begun[begun_count].context = context;
		begun[begun_count++].stream = stream;
	}
	atomic_store(&sw_captures, (int)begun_count);
	pthread_mutex_unlock(&captures_lock);
	if (atomic_load(&sw_pace_mode) != 0)
		sw_pace_stand_still();
	sw_neighbours_stand_still();
}

/* Those of a stream, or of a context with all its streams; the other is NULL. */
static void captures_end(CUstream stream, CUcontext context, bool all)
{
	bool more = true;
	pthread_mutex_lock(&captures_lock);
	for (unsigned i = 0; i < begun_count && more; i++)
		if (context != NULL ? begun[i].context == context : begun[i].stream == stream) {
			begun[i--] = begun[--begun_count];
			more = all;
		}
	atomic_store(&sw_captures, (int)begun_count);
	pthread_mutex_unlock(&captures_lock);
}

void sw_capture_forget_stream(CUstream stream)
{
	if (atomic_load(&sw_captures) > 0)
		captures_end(stream, NULL, true);
}

/* ---- contexts that come */

static bool primary_is_active(CUdevice device)
{
	unsigned flags;
	int active = 0;
	return sw_driver.primary_state != NULL && sw_driver.primary_state(device, &flags, &active) == CUDA_SUCCESS && active != 0;
}

/* `ret_context` and `device` are parameters; `is_new` says whether the call makes
 * a context if it works. */
#define CREATES(symbol, ret_context, device, is_new, ...)                                                         \
	CUresult hook_##symbol(SW_PARAMS(__VA_ARGS__))                                                            \
	{                                                                                                         \
		if (SW_MISSING(symbol))                                                                           \
			return CUDA_ERROR_NOT_INITIALIZED;                                                        \
		struct sw_overhead overhead;                                                                      \
		CUresult result;                                                                                  \
		int64_t waited_ns = 0;                                                                            \
		do {                                                                                              \
			struct sw_gate_thread *self = sw_gate_enter();                                            \
			overhead = (struct sw_overhead){.gpu = -1};                                               \
			if (sw_page != NULL && (is_new))                                                          \
				sw_overhead_before(&overhead, (CUdevice)(device));                                \
			result = SW_REAL(symbol, __VA_ARGS__)(SW_NAMES(__VA_ARGS__));                             \
			uint64_t bytes = sw_overhead_after(&overhead, result == CUDA_SUCCESS);                    \
			if (result == CUDA_SUCCESS && bytes > 0)                                                  \
				sw_charge_context(*(CUcontext *)(ret_context), overhead.gpu, bytes);              \
			if (result == CUDA_SUCCESS && sw_moves)                                                   \
				sw_move_note_context(*(CUcontext *)(ret_context));                                \
			sw_iterations_memory();                                                                   \
			sw_gate_leave(self);                                                                      \
		} while (result == CUDA_ERROR_OUT_OF_MEMORY && sw_overhead_may_try_again(&overhead, &waited_ns)); \
		sw_overhead_stop_trying(waited_ns);                                                               \
		return result;                                                                                    \
	}
CREATES(cuCtxCreate, a3, a1, true, P, U, U)
CREATES(cuCtxCreate_v2, a3, a1, true, P, U, U)
CREATES(cuCtxCreate_v3, a5, a1, true, P, P, U, U, U)
CREATES(cuCtxCreate_v4, a4, a1, true, P, P, U, U)
CREATES(cuDevicePrimaryCtxRetain, a2, a1, !primary_is_active((CUdevice)a1), P, U)

/* ---- contexts that go */

/* Before the driver ends it: the threads that look at events of ours in it, at moments of their
 * own. Where it refuses, they have lost no more than what they knew of it. */
static void forget_events(CUcontext context)
{
	sw_pace_forget_context(context);
	sw_profile_forget_context(context);
}

/* The driver has ended it. */
static void lose_context(CUcontext context)
{
	sw_memory_drop_context(context);
	forget_events(context);
	sw_move_forget_context(context);
	sw_attendant_forget_context(context);
	sw_import_forget_context(context);
	captures_end(NULL, context, true);
	sw_charge_drop_context(context);
}

/* All work with it must be over before its memory goes. Most of that is waited for before the gate,
 * which could not be closed meanwhile. */
static void await_context(CUcontext context)
{
	CUcontext popped;
	if (!sw_moves || context == NULL || atomic_load(&sw_captures) > 0 || sw_driver.context_push(context) != CUDA_SUCCESS)
		return;
	sw_driver.context_synchronize();
	sw_driver.context_pop(&popped);
}

/* The attendant is kept out. Memory goes when the driver has agreed, and not before. */
static void empty_context(CUcontext context)
{
	CUcontext popped;
	if (!sw_moves || context == NULL || sw_driver.context_push(context) != CUDA_SUCCESS)
		return;
	CUresult result = sw_driver.context_synchronize();
	sw_driver.context_pop(&popped);
	/* Else others would go on asking events that go with it. */
	if (result == CUDA_SUCCESS) {
		pthread_mutex_lock(&sw_memory_lock);
		sw_freers_drop_context(context);
		pthread_mutex_unlock(&sw_memory_lock);
		/* Now what the program itself has freed goes, while the context is there. */
		sw_memory_settle();
	}
	forget_events(context);
}

#define DESTROYS(symbol)                                                          \
	CUresult hook_##symbol(P context)                                         \
	{                                                                         \
		if (SW_MISSING(symbol))                                           \
			return CUDA_ERROR_NOT_INITIALIZED;                        \
		await_context(context);                                           \
		struct sw_gate_thread *self = sw_gate_enter();                    \
		sw_visits_keep_out();                                             \
		empty_context(context);                                           \
		CUresult result = SW_REAL(symbol, P)(context);                    \
		if (result == CUDA_SUCCESS && sw_page != NULL && context != NULL) \
			lose_context(context);                                    \
		sw_visits_let_in();                                               \
		sw_gate_leave(self);                                              \
		return result;                                                    \
	}
DESTROYS(cuCtxDestroy)
DESTROYS(cuCtxDestroy_v2)

/* Whether the driver knows the handle. It may be gone: nothing may be done with it but ask. A
 * driver that cannot be asked keeps what it has. */
static bool is_context(CUcontext context)
{
	unsigned version;
	return sw_driver.context_version == NULL || sw_driver.context_version(context, &version) == CUDA_SUCCESS;
}

/* Ends the context if no other user is attached to it. */
CUresult hook_cuCtxDetach(P context)
{
	if (SW_MISSING(cuCtxDetach))
		return CUDA_ERROR_NOT_INITIALIZED;
	struct sw_gate_thread *self = sw_gate_enter();
	sw_visits_keep_out();
	CUresult result = SW_REAL(cuCtxDetach, P)(context);
	if (result == CUDA_SUCCESS && sw_page != NULL && context != NULL && !is_context(context))
		lose_context(context);
	sw_visits_let_in();
	sw_gate_leave(self);
	return result;
}

/* NULL: it is not there. */
static CUcontext primary_of(CUdevice device)
{
	CUcontext context = NULL;
	if (sw_page != NULL && sw_driver.primary_retain != NULL && primary_is_active(device) &&
	    sw_driver.primary_retain(&context, device) == CUDA_SUCCESS)
		sw_driver.primary_release(device);
	return context;
}

/* These calls may end the primary context of the device, and all that is in it;
 * or do so for `certain`. */
#define ENDS_PRIMARY(symbol, certain)                                                                  \
	CUresult hook_##symbol(U device)                                                               \
	{                                                                                              \
		if (SW_MISSING(symbol))                                                                \
			return CUDA_ERROR_NOT_INITIALIZED;                                             \
		struct sw_gate_thread *self = sw_gate_enter();                                         \
		CUcontext context = primary_of((CUdevice)device);                                      \
		sw_visits_keep_out();                                                                  \
		if ((certain) && context != NULL)                                                      \
			forget_events(context);                                                        \
		CUresult result = SW_REAL(symbol, U)(device);                                          \
		if (result == CUDA_SUCCESS && context != NULL && !primary_is_active((CUdevice)device)) \
			lose_context(context);                                                         \
		sw_visits_let_in();                                                                    \
		sw_gate_leave(self);                                                                   \
		return result;                                                                         \
	}
ENDS_PRIMARY(cuDevicePrimaryCtxReset, true)
ENDS_PRIMARY(cuDevicePrimaryCtxReset_v2, true)
ENDS_PRIMARY(cuDevicePrimaryCtxRelease, false)
ENDS_PRIMARY(cuDevicePrimaryCtxRelease_v2, false)

CUresult hook_cuCtxEnablePeerAccess(P peer, U flags)
{
	if (SW_MISSING(cuCtxEnablePeerAccess))
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

/* In the forms for per-thread streams, no stream means the thread's own. */
#define OWN_STREAM(stream) ((stream) == NULL ? CU_STREAM_PER_THREAD : (stream))

#define BEGINS(symbol, work_stream, ...)                                               \
	CUresult hook_##symbol(SW_PARAMS(__VA_ARGS__))                                 \
	{                                                                              \
		if (SW_MISSING(symbol))                                                \
			return CUDA_ERROR_NOT_INITIALIZED;                             \
		struct sw_gate_thread *self = sw_gate_enter();                         \
		capture_begins(work_stream);                                           \
		CUresult result = SW_REAL(symbol, __VA_ARGS__)(SW_NAMES(__VA_ARGS__)); \
		if (result != CUDA_SUCCESS)                                            \
			captures_end(work_stream, NULL, false);                        \
		sw_gate_leave(self);                                                   \
		return result;                                                         \
	}
BEGINS(cuStreamBeginCapture, a1, P)
BEGINS(cuStreamBeginCapture_ptsz, OWN_STREAM(a1), P)
BEGINS(cuStreamBeginCapture_v2, a2, P, U)
BEGINS(cuStreamBeginCapture_v2_ptsz, OWN_STREAM(a2), P, U)
BEGINS(cuStreamBeginCaptureToGraph, a6, P, P, P, P, Z, U)
BEGINS(cuStreamBeginCaptureToGraph_ptsz, OWN_STREAM(a6), P, P, P, P, Z, U)
BEGINS(cuStreamBeginRecaptureToGraph, a5, P, U, P, P, P)
BEGINS(cuStreamBeginRecaptureToGraph_ptsz, OWN_STREAM(a5), P, U, P, P, P)
BEGINS(cuStreamBeginCaptureToCig, a2, P, P)
BEGINS(cuStreamBeginCaptureToCig_ptsz, OWN_STREAM(a2), P, P)

/* A capture that went wrong has ended as well. */
static bool has_ended(CUresult result)
{
	return result == CUDA_SUCCESS || result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED || result == CUDA_ERROR_STREAM_CAPTURE_UNJOINED ||
	       result == CUDA_ERROR_GRAPH_RECAPTURE_FAILURE;
}

#define ENDS(symbol, work_stream, ...)                                                 \
	CUresult hook_##symbol(SW_PARAMS(__VA_ARGS__))                                 \
	{                                                                              \
		if (SW_MISSING(symbol))                                                \
			return CUDA_ERROR_NOT_INITIALIZED;                             \
		struct sw_gate_thread *self = sw_gate_enter();                         \
		CUresult result = SW_REAL(symbol, __VA_ARGS__)(SW_NAMES(__VA_ARGS__)); \
		if (has_ended(result))                                                 \
			captures_end(work_stream, NULL, false);                        \
		sw_gate_leave(self);                                                   \
		return result;                                                         \
	}
ENDS(cuStreamEndCapture, a2, P, P)
ENDS(cuStreamEndCapture_ptsz, OWN_STREAM(a2), P, P)
ENDS(cuStreamEndCaptureToCig, a1, P)
ENDS(cuStreamEndCaptureToCig_ptsz, OWN_STREAM(a1), P)
