/* The hooked calls on pools and in stream order. What moves is ours (pools.h). What the driver
 * keeps, graphs' memory and pools of other kinds, is counted as it comes and goes. What such a pool
 * holds counts, not what the program has of it. Each call is inside the gate while it works. */
#include <stdint.h>

#include "runtime/account.h"
#include "runtime/charges.h"
#include "runtime/driver.h"
#include "runtime/freers.h"
#include "runtime/gate.h"
#include "runtime/hooks.h"
#include "runtime/iterations.h"
#include "runtime/memory.h"
#include "runtime/move.h"
#include "runtime/pace.h"
#include "runtime/pools.h"
#include "runtime/start.h"
#include "runtime/waited.h"

/* What the stream allocates and frees is part of a graph then. There is no memory to count yet
 * (charges.c counts that of graphs), and the driver is asked nothing that it may refuse meanwhile.
 * Where it does not say, it is its to answer. */
static bool is_captured(CUstream stream)
{
	int status = CU_CAPTURE_NONE;
	return atomic_load(&sw_captures) > 0 && (sw_driver.stream_capturing == NULL ||
						 sw_driver.stream_capturing(stream, &status) != CUDA_SUCCESS || status != CU_CAPTURE_NONE);
}

/* ---- allocations */

struct request {
	CUdeviceptr *ret;
	size_t bytes;
	bool current; /* from the current pool of the stream's device; else from this one */
	CUmemoryPool pool;
	CUstream stream;
};

/* Under the lock. False: the driver must serve it. */
static bool try(const struct request *request, CUresult *ret_result, CUcontext *ret_idle)
{
	CUmemoryPool handle = request->pool;
	CUcontext popped;
	struct sw_freer *freer = sw_freer_of(request->stream);
	if (freer == NULL) {
		sw_pools_loosen();
		freer = sw_freer_of(request->stream);
	}
	if (freer != NULL && request->current && sw_driver.current_pool(&handle, freer->device) != CUDA_SUCCESS)
		return false;
	struct sw_pool *pool = freer == NULL ? NULL : sw_pool_of(handle, freer->device);
	if (pool == NULL || sw_driver.context_push(freer->context) != CUDA_SUCCESS)
		return false;
	*ret_result = sw_memory_get_pooled(pool, freer, request->bytes, request->ret);
	sw_driver.context_pop(&popped);
	*ret_idle = *ret_result == CUDA_ERROR_OUT_OF_MEMORY && sw_pool_has_idle(pool) ? freer->context : NULL;
	return true;
}

/* Others may be captured meanwhile: what is asked of the driver here is not to end that. */
static bool try_locked(const struct request *request, CUresult *ret_result, CUcontext *ret_idle)
{
	bool relaxed = atomic_load(&sw_captures) > 0;
	int mode = relaxed ? sw_capture_relax() : 0;
	pthread_mutex_lock(&sw_memory_lock);
	bool ours = try(request, ret_result, ret_idle);
	pthread_mutex_unlock(&sw_memory_lock);
	if (relaxed)
		sw_capture_restore(mode);
	return ours;
}

/* Where memory is short it waits for the GPU, outside the gate, as programs do. What streams are
 * about to free may be what is missing, and no thread that closes the gate has to wait for them. */
static bool get(const struct request *request, struct sw_gate_thread *self, CUresult *ret_result)
{
	CUcontext idle = NULL, popped;
	if (!sw_moves || sw_stays || request->ret == NULL || request->bytes == 0 || sw_driver.current_pool == NULL)
		return false;
	bool ours = try_locked(request, ret_result, &idle);
	if (ours && *ret_result == CUDA_ERROR_OUT_OF_MEMORY && sw_memory_await_leaving())
		ours = try_locked(request, ret_result, &idle);
	if (idle == NULL || atomic_load(&sw_captures) > 0 || sw_driver.context_push(idle) != CUDA_SUCCESS)
		return ours;
	sw_gate_leave(self);
	CUresult waited = sw_freers_wait();
	sw_gate_enter();
	sw_driver.context_pop(&popped);
	return waited == CUDA_SUCCESS ? try_locked(request, ret_result, &idle) : ours;
}

/* Parameters are numbered from the end: (ret, bytes, stream) and (ret, bytes, pool, stream). */
#define FROM_POOL(symbol, ret, wanted, is_current, given, own, ...)                                              \
	CUresult hook_##symbol(SW_PARAMS(__VA_ARGS__))                                                           \
	{                                                                                                        \
		if (SW_MISSING(symbol))                                                                          \
			return CUDA_ERROR_NOT_INITIALIZED;                                                       \
		struct sw_gate_thread *self = sw_pace_enter_request();                                           \
		CUresult result = CUDA_ERROR_OUT_OF_MEMORY;                                                      \
		const struct request request = {ret, wanted, is_current, given, sw_freer_stream(a1, own)};       \
		if (is_captured(request.stream)) {                                                               \
			result = SW_REAL(symbol, __VA_ARGS__)(SW_NAMES(__VA_ARGS__));                            \
		} else if (!get(&request, self, &result)) {                                                      \
			CUmemoryPool pool = given;                                                               \
			CUdevice device = -1;                                                                    \
			bool counted = sw_page != NULL && sw_driver.context_device(&device) == CUDA_SUCCESS &&   \
				       (!(is_current) || sw_driver.current_pool(&pool, device) == CUDA_SUCCESS); \
			result = CUDA_ERROR_OUT_OF_MEMORY;                                                       \
			if (!counted || sw_charge_pool_may(pool, device, wanted))                                \
				result = SW_REAL(symbol, __VA_ARGS__)(SW_NAMES(__VA_ARGS__));                    \
			if (counted)                                                                             \
				sw_charge_pool(pool, device);                                                    \
		}                                                                                                \
		sw_iterations_memory();                                                                          \
		sw_pace_leave_request(self);                                                                     \
		return result;                                                                                   \
	}
FROM_POOL(cuMemAllocAsync, a3, a2, true, NULL, false, P, Z, P)
FROM_POOL(cuMemAllocAsync_ptsz, a3, a2, true, NULL, true, P, Z, P)
FROM_POOL(cuMemAllocFromPoolAsync, a4, a3, false, a2, false, P, Z, P, P)
FROM_POOL(cuMemAllocFromPoolAsync_ptsz, a4, a3, false, a2, true, P, Z, P, P)

/* The driver frees plain memory in the order of a stream as well. */
static void count_freed(CUdeviceptr address, CUresult result)
{
	if (result == CUDA_SUCCESS)
		sw_charge_remove(SW_CHARGE_ADDRESS, address);
	sw_charge_pool(NULL, 0);
}

#define FREES(symbol, own)                                                                 \
	CUresult hook_##symbol(Z address, P stream)                                        \
	{                                                                                  \
		if (SW_MISSING(symbol))                                                    \
			return CUDA_ERROR_NOT_INITIALIZED;                                 \
		struct sw_gate_thread *self = sw_gate_enter();                             \
		CUstream in = sw_freer_stream(stream, own);                                \
		CUresult result = CUDA_SUCCESS;                                            \
		bool captured = is_captured(in);                                           \
		if (!sw_moves || captured || !sw_memory_put_later(address, in, &result)) { \
			result = SW_REAL(symbol, Z, P)(address, stream);                   \
			if (sw_page != NULL && !captured)                                  \
				count_freed(address, result);                              \
		}                                                                          \
		if (sw_moves && !captured && sw_memory_leaving > 0)                        \
			sw_memory_settle();                                                \
		sw_iterations_memory();                                                    \
		sw_gate_leave(self);                                                       \
		return result;                                                             \
	}
FREES(cuMemFreeAsync, false)
FREES(cuMemFreeAsync_ptsz, true)

/* ---- where the program waits */

uint64_t sw_wait_begins(void)
{
	return atomic_load_explicit(&sw_freers_used, memory_order_relaxed) ? sw_freers_cut() : 0;
}

void sw_wait_ends(uint64_t cut, CUcontext context, CUstream stream)
{
	if (cut == 0)
		return;
	if (context != NULL)
		sw_freers_waited(cut, context, stream);
	pthread_mutex_lock(&sw_memory_lock);
	bool exceed = sw_pools_exceed();
	pthread_mutex_unlock(&sw_memory_lock);
	if (!exceed && sw_memory_leaving == 0)
		return;
	struct sw_gate_thread *self = sw_gate_enter();
	sw_memory_settle();
	pthread_mutex_lock(&sw_memory_lock);
	sw_pools_settle();
	pthread_mutex_unlock(&sw_memory_lock);
	sw_iterations_memory();
	sw_gate_leave(self);
}

/* ---- pools */

CUresult hook_cuMemPoolCreate(P ret, P props)
{
	if (SW_MISSING(cuMemPoolCreate))
		return CUDA_ERROR_NOT_INITIALIZED;
	CUresult result = SW_REAL(cuMemPoolCreate, P, P)(ret, props);
	if (result == CUDA_SUCCESS && sw_moves && !sw_stays) {
		pthread_mutex_lock(&sw_memory_lock);
		sw_pool_made(*(CUmemoryPool *)ret, props);
		pthread_mutex_unlock(&sw_memory_lock);
	}
	return result;
}

CUresult hook_cuMemPoolDestroy(P pool)
{
	if (SW_MISSING(cuMemPoolDestroy))
		return CUDA_ERROR_NOT_INITIALIZED;
	struct sw_gate_thread *self = sw_gate_enter();
	CUresult result = SW_REAL(cuMemPoolDestroy, P)(pool);
	if (result == CUDA_SUCCESS && sw_page != NULL) {
		sw_charge_forget_pool(pool);
		pthread_mutex_lock(&sw_memory_lock);
		sw_pool_destroyed(pool);
		pthread_mutex_unlock(&sw_memory_lock);
	}
	sw_iterations_memory();
	sw_gate_leave(self);
	return result;
}

/* The pool of this handle, locked; NULL: it is not ours, and nothing is locked. */
static struct sw_pool *lock_pool(CUmemoryPool handle)
{
	if (!sw_moves)
		return NULL;
	pthread_mutex_lock(&sw_memory_lock);
	struct sw_pool *pool = sw_pool_known(handle);
	if (pool == NULL)
		pthread_mutex_unlock(&sw_memory_lock);
	return pool;
}

CUresult hook_cuMemPoolTrimTo(P handle, Z keep)
{
	if (SW_MISSING(cuMemPoolTrimTo))
		return CUDA_ERROR_NOT_INITIALIZED;
	struct sw_gate_thread *self = sw_gate_enter();
	CUresult result = SW_REAL(cuMemPoolTrimTo, P, Z)(handle, keep);
	struct sw_pool *pool = result == CUDA_SUCCESS ? lock_pool(handle) : NULL;
	if (pool != NULL) {
		sw_pool_trim(pool, keep);
		pthread_mutex_unlock(&sw_memory_lock);
	}
	if (sw_page != NULL)
		sw_charge_pool(NULL, 0);
	sw_iterations_memory();
	sw_gate_leave(self);
	return result;
}

/* The driver holds for a pool of ours what is not: memory of the times before it was. */
CUresult hook_cuMemPoolGetAttribute(P handle, U attribute, P ret)
{
	if (SW_MISSING(cuMemPoolGetAttribute))
		return CUDA_ERROR_NOT_INITIALIZED;
	CUresult result = SW_REAL(cuMemPoolGetAttribute, P, U, P)(handle, attribute, ret);
	struct sw_pool *pool = result == CUDA_SUCCESS ? lock_pool(handle) : NULL;
	if (pool == NULL)
		return result;
	struct sw_pool_figures figures = sw_pool_figures(pool);
	pthread_mutex_unlock(&sw_memory_lock);
	switch (attribute) {
	case CU_MEMPOOL_RESERVED_CURRENT:
		*(uint64_t *)ret += figures.reserved;
		break;
	case CU_MEMPOOL_RESERVED_HIGH:
		*(uint64_t *)ret += figures.reserved_high;
		break;
	case CU_MEMPOOL_USED_CURRENT:
		*(uint64_t *)ret += figures.used;
		break;
	case CU_MEMPOOL_USED_HIGH:
		*(uint64_t *)ret += figures.used_high;
		break;
	default:
		break;
	}
	return result;
}

CUresult hook_cuMemPoolSetAttribute(P handle, U attribute, P value)
{
	if (SW_MISSING(cuMemPoolSetAttribute))
		return CUDA_ERROR_NOT_INITIALIZED;
	CUresult result = SW_REAL(cuMemPoolSetAttribute, P, U, P)(handle, attribute, value);
	struct sw_pool *pool = result == CUDA_SUCCESS ? lock_pool(handle) : NULL;
	if (pool == NULL)
		return result;
	if (attribute == CU_MEMPOOL_RELEASE_THRESHOLD)
		sw_pool_set_threshold(pool, *(const uint64_t *)value);
	sw_pool_forget_high(pool, attribute == CU_MEMPOOL_RESERVED_HIGH, attribute == CU_MEMPOOL_USED_HIGH);
	pthread_mutex_unlock(&sw_memory_lock);
	return result;
}

/* The same of one of which nothing was allocated yet: a device's own is ours from then on. */
static struct sw_pool *lock_pool_early(CUmemoryPool handle)
{
	int count = 0;
	struct sw_pool *pool = lock_pool(handle);
	if (pool != NULL || !sw_moves || sw_stays || sw_driver.device_count(&count) != CUDA_SUCCESS)
		return pool;
	pthread_mutex_lock(&sw_memory_lock);
	for (CUdevice device = 0; device < count && pool == NULL; device++)
		pool = sw_pool_of(handle, device);
	if (pool == NULL)
		pthread_mutex_unlock(&sw_memory_lock);
	return pool;
}

/* A process that may use one pool of a device may use all that it holds. What the program asked for
 * works, and more than that is not refused. */
CUresult hook_cuMemPoolSetAccess(P handle, P access, Z count)
{
	if (SW_MISSING(cuMemPoolSetAccess))
		return CUDA_ERROR_NOT_INITIALIZED;
	struct sw_gate_thread *self = sw_gate_enter();
	CUresult result = SW_REAL(cuMemPoolSetAccess, P, P, Z)(handle, access, count);
	struct sw_pool *pool = result == CUDA_SUCCESS ? lock_pool_early(handle) : NULL;
	if (pool != NULL) {
		CUdevice device = sw_pool_device(pool);
		const CUmemAccessDesc *who = access;
		pthread_mutex_unlock(&sw_memory_lock);
		for (size_t i = 0; i < count; i++)
			if (who[i].location.type == CU_MEM_LOCATION_DEVICE && who[i].location.id != device &&
			    who[i].flags != CU_MEM_ACCESS_NONE)
				sw_memory_let(device, who[i].location.id);
	}
	sw_gate_leave(self);
	return result;
}

CUresult hook_cuDeviceGraphMemTrim(U device)
{
	if (SW_MISSING(cuDeviceGraphMemTrim))
		return CUDA_ERROR_NOT_INITIALIZED;
	struct sw_gate_thread *self = sw_gate_enter();
	CUresult result = SW_REAL(cuDeviceGraphMemTrim, U)(device);
	if (result == CUDA_SUCCESS && sw_page != NULL)
		sw_charge_graphs();
	sw_iterations_memory();
	sw_gate_leave(self);
	return result;
}
