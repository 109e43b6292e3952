/* What a program asks of a stream: is it done, wait for it, call me, which one is it. */
#include <stdlib.h>

#include "capture.h"
#include "pools.h"
#include "streams.h"

static CUresult query(const char *entry, CUstream handle, enum emu_flavour flavour, bool wait)
{
	CUresult result = emu_enter(entry, EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_stream *stream = NULL;
	result = emu_stream_of(handle, flavour, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	result = emu_capture_refuse(stream);
	if (result == CUDA_SUCCESS) {
		uint64_t number = emu_stream_last(stream);
		if (wait)
			emu_stream_wait(stream, number);
		else if (!emu_stream_is_done(stream, number))
			result = CUDA_ERROR_NOT_READY;
		CUresult state = emu_context_state(stream->context);
		if (state != CUDA_SUCCESS)
			result = state;
	}
	emu_put(&stream->object);
	if (wait)
		emu_pools_trim();
	return result;
}

TWINS(cuStreamQuery, _ptsz, query(__func__, stream, flavour, false), CUstream stream)
TWINS(cuStreamSynchronize, _ptsz, query(__func__, stream, flavour, true), CUstream stream)

static CUresult call_host(const char *entry, CUstream handle, enum emu_flavour flavour, CUhostFn function, CUstreamCallback callback,
			  void *data)
{
	CUresult result = emu_enter(entry, EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	if (function == NULL && callback == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	struct emu_stream *stream = NULL;
	result = emu_stream_of(handle, flavour, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	if (callback != NULL)
		result = emu_capture_refuse(stream);
	struct emu_work *work = result == CUDA_SUCCESS ? emu_work_new(EMU_WORK_HOST) : NULL;
	if (work != NULL) {
		work->host.function = function;
		work->host.callback = callback;
		work->host.stream = handle;
		work->host.data = data;
		result = emu_submit(stream, work, NULL);
	} else if (result == CUDA_SUCCESS) {
		result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	emu_put(&stream->object);
	return result;
}

TWINS(cuLaunchHostFunc, _ptsz, call_host(__func__, stream, flavour, function, NULL, data), CUstream stream, CUhostFn function, void *data)
TWINS(cuStreamAddCallback, _ptsz, flags == 0 ? call_host(__func__, stream, flavour, NULL, callback, data) : CUDA_ERROR_INVALID_VALUE,
      CUstream stream, CUstreamCallback callback, void *data, unsigned flags)

enum figure { FLAGS, PRIORITY, ID, CONTEXT, DEVICE };

static CUresult ask(const char *entry, CUstream handle, enum emu_flavour flavour, enum figure figure, void *ret_value)
{
	CUresult result = emu_enter(entry, EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	if (ret_value == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	struct emu_stream *stream = NULL;
	result = emu_stream_of(handle, flavour, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	switch (figure) {
	case FLAGS:
		*(unsigned *)ret_value = stream->flags;
		break;
	case PRIORITY:
		*(int *)ret_value = stream->priority;
		break;
	case ID:
		*(unsigned long long *)ret_value = stream->id;
		break;
	case CONTEXT:
		*(CUcontext *)ret_value = (CUcontext)stream->context;
		break;
	case DEVICE:
		*(CUdevice *)ret_value = stream->context->device;
		break;
	}
	emu_put(&stream->object);
	return CUDA_SUCCESS;
}

TWINS(cuStreamGetFlags, _ptsz, ask(__func__, stream, flavour, FLAGS, ret_flags), CUstream stream, unsigned *ret_flags)
TWINS(cuStreamGetPriority, _ptsz, ask(__func__, stream, flavour, PRIORITY, ret_priority), CUstream stream, int *ret_priority)
TWINS(cuStreamGetId, _ptsz, ask(__func__, stream, flavour, ID, ret_id), CUstream stream, unsigned long long *ret_id)
TWINS(cuStreamGetCtx, _ptsz, ask(__func__, stream, flavour, CONTEXT, ret_context), CUstream stream, CUcontext *ret_context)
TWINS(cuStreamGetDevice, _ptsz, ask(__func__, stream, flavour, DEVICE, ret_device), CUstream stream, CUdevice *ret_device)
