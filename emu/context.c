/* Initialisation, and contexts: primary ones and others, current ones by thread. */
#include "context.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "allocations.h"
#include "capture.h"
#include "checkpoint.h"
#include "clock.h"
#include "config.h"
#include "faults.h"
#include "memory.h"
#include "pools.h"
#include "shared.h"
#include "streams.h"

enum { STACK = 64 };

enum { FRESH, READY, FORKED, OVER };
static atomic_int state; /* of the driver in this process */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int gpus[EMU_GPUS_MAX]; /* by device */
static int gpu_count;
static struct emu_context *primaries[EMU_GPUS_MAX]; /* by device */
static unsigned primary_flags[EMU_GPUS_MAX];
static struct emu_context *all;

static _Thread_local struct emu_context *stack[STACK];
static _Thread_local int depth;

/* The child of a process that uses the driver cannot use it: its threads and its
 * place are the parent's. */
static void mark_forked(void)
{
	int ready = READY;
	atomic_compare_exchange_strong(&state, &ready, FORKED);
}

/* The driver ends before what the program arranged to be called at its exit earlier than it
 * initialised the driver; that still calls. */
static void mark_over(void)
{
	int ready = READY;
	atomic_compare_exchange_strong(&state, &ready, OVER);
}

static int gpu_named(const char *word)
{
	const struct emu_config *config = emu_config();
	char *end = NULL;
	long index = strtol(word, &end, 10);
	if (end != word && *end == '\0')
		return index >= 0 && index < (long)config->gpu_count ? (int)index : -1;
	int found = -1;
	size_t length = strlen(word);
	for (unsigned i = 0; i < config->gpu_count && length > 4; i++) {
		if (strncmp(config->gpus[i].uuid, word, length) != 0)
			continue;
		if (found >= 0)
			return -1;
		found = (int)i;
	}
	return found;
}

/* CUDA_VISIBLE_DEVICES: numbers or the beginnings of UUIDs; the first bad one ends the list, a GPU
 * named twice makes it empty. */
static void find_devices(void)
{
	const struct emu_config *config = emu_config();
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");
	if (visible == NULL) {
		gpu_count = (int)config->gpu_count;
		for (int i = 0; i < gpu_count; i++)
			gpus[i] = i;
		return;
	}
	char copy[4096];
	size_t length = strlen(visible);
	if (length >= sizeof copy)
		return;
	memcpy(copy, visible, length + 1);
	char *rest = copy;
	for (char *word = strsep(&rest, ","); word != NULL && gpu_count < EMU_GPUS_MAX; word = strsep(&rest, ",")) {
		while (*word == ' ')
			word++;
		int gpu = gpu_named(word);
		if (gpu < 0)
			return;
		for (int i = 0; i < gpu_count; i++) {
			if (gpus[i] == gpu) {
				gpu_count = 0;
				return;
			}
		}
		gpus[gpu_count++] = gpu;
	}
}

ENTRY(cuInit, unsigned flags)
{
	if (flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = emu_fault_at("cuInit");
	if (result != CUDA_SUCCESS)
		return result;
	int now = atomic_load(&state);
	if (now != FRESH)
		return now == READY ? CUDA_SUCCESS : now == OVER ? CUDA_ERROR_DEINITIALIZED : CUDA_ERROR_NOT_INITIALIZED;
	pthread_mutex_lock(&lock);
	if (atomic_load(&state) == FRESH) {
		gpu_count = 0;
		if (emu_config()->problem[0] != '\0')
			result = CUDA_ERROR_SYSTEM_NOT_READY;
		else
			find_devices();
		if (result == CUDA_SUCCESS && gpu_count == 0)
			result = CUDA_ERROR_NO_DEVICE;
		else if (result == CUDA_SUCCESS && emu_slot_take() < 0)
			result = CUDA_ERROR_OPERATING_SYSTEM;
		if (result == CUDA_SUCCESS) {
			pthread_atfork(NULL, NULL, mark_forked);
			atexit(mark_over);
			emu_checkpoint_start();
			atomic_store(&state, READY);
		}
	}
	pthread_mutex_unlock(&lock);
	return result;
}

int emu_device_count(void)
{
	return gpu_count;
}

int emu_device_gpu(CUdevice device)
{
	return device >= 0 && device < gpu_count ? gpus[device] : -1;
}

int emu_gpu_device(int gpu)
{
	for (int i = 0; i < gpu_count; i++)
		if (gpus[i] == gpu)
			return i;
	return -1;
}

struct emu_context *emu_current(void)
{
	return depth > 0 ? stack[depth - 1] : NULL;
}

void emu_context_fail(struct emu_context *context, CUresult error)
{
	int none = CUDA_SUCCESS;
	atomic_compare_exchange_strong(&context->error, &none, error);
}

CUresult emu_context_state(const struct emu_context *context)
{
	if (!atomic_load(&context->alive))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	if (atomic_load_explicit(&emu_state()->engines[emu_place((unsigned)context->gpu)].lost, memory_order_relaxed))
		return CUDA_ERROR_UNKNOWN;
	return atomic_load(&context->error);
}

CUresult emu_enter(const char *entry, unsigned flags, struct emu_context **ret_context)
{
	int now = atomic_load_explicit(&state, memory_order_acquire);
	if (now != READY)
		return now == OVER ? CUDA_ERROR_DEINITIALIZED : CUDA_ERROR_NOT_INITIALIZED;
	if ((flags & EMU_UNGATED) == 0)
		emu_checkpoint_gate();
	CUresult result = emu_fault_at(entry);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_context *context = emu_current();
	if (context == NULL && (flags & EMU_NO_CONTEXT) == 0)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (context != NULL && (flags & EMU_ANYWAY) == 0) {
		result = emu_context_state(context);
		if (result != CUDA_SUCCESS)
			return result;
	}
	if (flags & EMU_UNSAFE) {
		result = emu_capture_check_unsafe();
		if (result != CUDA_SUCCESS)
			return result;
	}
	if (ret_context != NULL)
		*ret_context = context;
	return CUDA_SUCCESS;
}

static void keep(struct emu_object *object)
{
	(void)object;
}

static CUresult create(CUdevice device, unsigned flags, bool primary, struct emu_context **ret_context)
{
	int gpu = emu_device_gpu(device);
	if (gpu < 0)
		return CUDA_ERROR_INVALID_DEVICE;
	if (atomic_load(&emu_state()->engines[emu_place((unsigned)gpu)].lost))
		return CUDA_ERROR_DEVICE_UNAVAILABLE;
	struct emu_context *context = calloc(1, sizeof *context);
	if (context == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!emu_memory_take((unsigned)gpu, emu_config()->gpus[gpu].context_bytes)) {
		free(context);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	context->device = device;
	context->gpu = gpu;
	context->flags = flags;
	context->primary = primary;
	context->id = emu_next_id();
	atomic_store(&context->alive, true);
	pthread_mutex_init(&context->order, NULL);
	context->legacy = emu_stream_new(context, EMU_STREAM_LEGACY, 0, 0);
	context->next = all;
	all = context;
	emu_publish(&context->object, EMU_CONTEXT, keep);
	*ret_context = context;
	return CUDA_SUCCESS;
}

/* Its memory stays the program's to free, except what the context itself took; that of a
 * failed one is of no use. */
static void end(struct emu_context *context)
{
	emu_context_wait(context);
	atomic_store(&context->alive, false);
	emu_retire(context, EMU_CONTEXT);
	emu_streams_end(context);
	emu_allocations_end(context);
	emu_memory_give((unsigned)context->gpu, emu_config()->gpus[context->gpu].context_bytes);
}

struct emu_context *emu_context_of(CUcontext handle)
{
	struct emu_context *context = emu_get(handle, EMU_CONTEXT);
	if (context != NULL)
		emu_put(&context->object);
	return context;
}

struct emu_context *emu_context_primary(CUdevice device)
{
	pthread_mutex_lock(&lock);
	struct emu_context *context = device >= 0 && device < gpu_count ? primaries[device] : NULL;
	pthread_mutex_unlock(&lock);
	return context;
}

void emu_context_wait(struct emu_context *context)
{
	/* A stream that appears meanwhile is not waited for. */
	enum { TOGETHER = 256 };
	struct emu_stream *streams[TOGETHER];
	uint64_t seen = UINT64_MAX;
	unsigned count;
	do {
		count = 0;
		pthread_mutex_lock(&context->order);
		/* The newest first, so that their numbers fall. */
		for (struct emu_stream *stream = context->streams; stream != NULL && count < TOGETHER; stream = stream->next)
			if (stream->id < seen) {
				emu_hold(&stream->object);
				streams[count++] = stream;
			}
		pthread_mutex_unlock(&context->order);
		for (unsigned i = 0; i < count; i++) {
			seen = streams[i]->id;
			emu_stream_wait(streams[i], emu_stream_last(streams[i]));
			emu_put(&streams[i]->object);
		}
	} while (count == TOGETHER);
}

void emu_contexts_wait(void)
{
	pthread_mutex_lock(&lock);
	struct emu_context *first = all;
	pthread_mutex_unlock(&lock);
	/* Contexts are never freed, and new ones are put in front. */
	for (struct emu_context *context = first; context != NULL; context = context->next)
		emu_context_wait(context);
}

ENTRY(cuDevicePrimaryCtxRetain, CUcontext *ret_context, CUdevice device)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT | EMU_ANYWAY, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	if (ret_context == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (emu_device_gpu(device) < 0)
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&lock);
	if (primaries[device] == NULL)
		result = create(device, primary_flags[device], true, &primaries[device]);
	if (result == CUDA_SUCCESS) {
		primaries[device]->retained++;
		*ret_context = (CUcontext)primaries[device];
	}
	pthread_mutex_unlock(&lock);
	return result;
}

static CUresult release(const char *entry, CUdevice device, bool reset)
{
	CUresult result = emu_enter(entry, EMU_NO_CONTEXT | EMU_ANYWAY, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	if (emu_device_gpu(device) < 0)
		return CUDA_ERROR_INVALID_DEVICE;
	struct emu_context *ended = NULL;
	pthread_mutex_lock(&lock);
	struct emu_context *context = primaries[device];
	if (context == NULL) {
		result = reset ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
	} else if (reset || --context->retained == 0) {
		ended = context;
		primaries[device] = NULL;
	}
	pthread_mutex_unlock(&lock);
	if (ended != NULL)
		end(ended);
	return result;
}

ENTRY(cuDevicePrimaryCtxRelease_v2, CUdevice device)
{
	return release(__func__, device, false);
}

ENTRY(cuDevicePrimaryCtxRelease, CUdevice device)
{
	return release(__func__, device, false);
}

ENTRY(cuDevicePrimaryCtxReset_v2, CUdevice device)
{
	return release(__func__, device, true);
}

ENTRY(cuDevicePrimaryCtxReset, CUdevice device)
{
	return release(__func__, device, true);
}

static CUresult set_primary_flags(const char *entry, CUdevice device, unsigned flags)
{
	CUresult result = emu_enter(entry, EMU_NO_CONTEXT | EMU_ANYWAY, NULL);
	if (result == CUDA_SUCCESS && emu_device_gpu(device) < 0)
		result = CUDA_ERROR_INVALID_DEVICE;
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&lock);
	primary_flags[device] = flags;
	if (primaries[device] != NULL)
		primaries[device]->flags = flags;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

ENTRY(cuDevicePrimaryCtxSetFlags_v2, CUdevice device, unsigned flags)
{
	return set_primary_flags(__func__, device, flags);
}

ENTRY(cuDevicePrimaryCtxSetFlags, CUdevice device, unsigned flags)
{
	return set_primary_flags(__func__, device, flags);
}

ENTRY(cuDevicePrimaryCtxGetState, CUdevice device, unsigned *ret_flags, int *ret_active)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT | EMU_ANYWAY, NULL);
	if (result == CUDA_SUCCESS && emu_device_gpu(device) < 0)
		result = CUDA_ERROR_INVALID_DEVICE;
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&lock);
	if (ret_flags != NULL)
		*ret_flags = primary_flags[device];
	if (ret_active != NULL)
		*ret_active = primaries[device] != NULL;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

static CUresult push(struct emu_context *context)
{
	if (depth == STACK)
		return CUDA_ERROR_OUT_OF_MEMORY;
	stack[depth++] = context;
	return CUDA_SUCCESS;
}

static CUresult create_current(const char *entry, CUcontext *ret_context, unsigned flags, CUdevice device)
{
	struct emu_context *context = NULL;
	CUresult result = emu_enter(entry, EMU_NO_CONTEXT | EMU_ANYWAY, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	if (ret_context == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	result = create(device, flags, false, &context);
	pthread_mutex_unlock(&lock);
	if (result == CUDA_SUCCESS) {
		push(context);
		*ret_context = (CUcontext)context;
	}
	return result;
}

ENTRY(cuCtxCreate_v2, CUcontext *ret_context, unsigned flags, CUdevice device)
{
	return create_current(__func__, ret_context, flags, device);
}

ENTRY(cuCtxCreate_v3, CUcontext *ret_context, void *affinity, int count, unsigned flags, CUdevice device)
{
	(void)affinity;
	return count == 0 ? create_current(__func__, ret_context, flags, device) : CUDA_ERROR_NOT_SUPPORTED;
}

ENTRY(cuCtxCreate_v4, CUcontext *ret_context, void *params, unsigned flags, CUdevice device)
{
	return params == NULL ? create_current(__func__, ret_context, flags, device) : CUDA_ERROR_NOT_SUPPORTED;
}

ENTRY(cuCtxDestroy_v2, CUcontext handle)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT | EMU_ANYWAY, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_context *context = emu_context_of(handle);
	if (context == NULL || context->primary)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (emu_current() == context)
		depth--;
	end(context);
	return CUDA_SUCCESS;
}

ENTRY(cuCtxPushCurrent_v2, CUcontext handle)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT | EMU_ANYWAY, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_context *context = emu_context_of(handle);
	return context != NULL ? push(context) : CUDA_ERROR_INVALID_CONTEXT;
}

ENTRY(cuCtxPopCurrent_v2, CUcontext *ret_context)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT | EMU_ANYWAY, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	if (depth == 0)
		return CUDA_ERROR_INVALID_CONTEXT;
	depth--;
	if (ret_context != NULL)
		*ret_context = (CUcontext)stack[depth];
	return CUDA_SUCCESS;
}

ENTRY(cuCtxSetCurrent, CUcontext handle)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT | EMU_ANYWAY, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	if (handle == NULL) {
		depth = depth > 0 ? depth - 1 : 0;
		return CUDA_SUCCESS;
	}
	struct emu_context *context = emu_context_of(handle);
	if (context == NULL)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (depth == 0)
		return push(context);
	stack[depth - 1] = context;
	return CUDA_SUCCESS;
}

ENTRY(cuCtxGetCurrent, CUcontext *ret_context)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT | EMU_ANYWAY, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	if (ret_context == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_context = (CUcontext)emu_current();
	return CUDA_SUCCESS;
}

ENTRY(cuCtxGetDevice, CUdevice *ret_device)
{
	struct emu_context *context = NULL;
	CUresult result = emu_enter(__func__, EMU_ANYWAY, &context);
	if (result != CUDA_SUCCESS)
		return result;
	if (ret_device == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_device = context->device;
	return CUDA_SUCCESS;
}

ENTRY(cuCtxGetDevice_v2, CUdevice *ret_device, CUcontext handle)
{
	struct emu_context *context = NULL;
	CUresult result = emu_enter(__func__, handle != NULL ? EMU_NO_CONTEXT | EMU_ANYWAY : EMU_ANYWAY, &context);
	if (result != CUDA_SUCCESS)
		return result;
	if (handle != NULL)
		context = emu_context_of(handle);
	if (context == NULL)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (ret_device == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_device = context->device;
	return CUDA_SUCCESS;
}

static CUresult synchronize(const char *entry, CUcontext handle)
{
	struct emu_context *context = NULL;
	CUresult result = emu_enter(entry, (handle != NULL ? EMU_NO_CONTEXT : 0) | EMU_UNSAFE, &context);
	if (result != CUDA_SUCCESS)
		return result;
	if (handle != NULL)
		context = emu_context_of(handle);
	if (context == NULL)
		return CUDA_ERROR_INVALID_CONTEXT;
	result = emu_capture_check_context(context);
	if (result != CUDA_SUCCESS)
		return result;
	emu_context_wait(context);
	emu_pools_trim();
	return emu_context_state(context);
}

ENTRY(cuCtxSynchronize, void)
{
	return synchronize(__func__, NULL);
}

ENTRY(cuCtxSynchronize_v2, CUcontext handle)
{
	return synchronize(__func__, handle);
}

ENTRY(cuCtxGetFlags, unsigned *ret_flags)
{
	struct emu_context *context = NULL;
	CUresult result = emu_enter(__func__, EMU_ANYWAY, &context);
	if (result == CUDA_SUCCESS && ret_flags == NULL)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		*ret_flags = context->flags;
	return result;
}

ENTRY(cuCtxGetId, CUcontext handle, unsigned long long *ret_id)
{
	struct emu_context *context = NULL;
	CUresult result = emu_enter(__func__, (handle != NULL ? EMU_NO_CONTEXT : 0) | EMU_ANYWAY, &context);
	if (result != CUDA_SUCCESS)
		return result;
	if (handle != NULL)
		context = emu_context_of(handle);
	if (context == NULL)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (ret_id == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_id = context->id;
	return CUDA_SUCCESS;
}

ENTRY(cuCtxGetApiVersion, CUcontext handle, unsigned *ret_version)
{
	(void)handle;
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT | EMU_ANYWAY, NULL);
	if (result == CUDA_SUCCESS && ret_version == NULL)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		*ret_version = 3020;
	return result;
}

ENTRY(cuCtxGetStreamPriorityRange, int *ret_least, int *ret_greatest)
{
	CUresult result = emu_enter(__func__, 0, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	if (ret_least != NULL)
		*ret_least = 0;
	if (ret_greatest != NULL)
		*ret_greatest = EMU_PRIORITY_GREATEST;
	return CUDA_SUCCESS;
}

/* Limits are remembered for the process and have no effect. */
enum { LIMITS = 8 };
static _Atomic uint64_t limits[LIMITS] = {1024, 1 << 20, 8 << 20, 2, 2048, 128, 0, 0};

ENTRY(cuCtxGetLimit, size_t *ret_value, int limit)
{
	CUresult result = emu_enter(__func__, 0, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	if (ret_value == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (limit < 0 || limit >= LIMITS)
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	*ret_value = atomic_load(&limits[limit]);
	return CUDA_SUCCESS;
}

ENTRY(cuCtxSetLimit, int limit, size_t value)
{
	CUresult result = emu_enter(__func__, 0, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	if (limit < 0 || limit >= LIMITS)
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	atomic_store(&limits[limit], value);
	return CUDA_SUCCESS;
}
