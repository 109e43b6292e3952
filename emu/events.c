/* Events. */
#include "events.h"

#include <stdlib.h>

#include "capture.h"
#include "context.h"
#include "pools.h"
#include "streams.h"

static void destroy(struct emu_object *object)
{
	struct emu_event *event = (struct emu_event *)object;
	emu_capture_forget_event(event);
	emu_put(event->stream != NULL ? &event->stream->object : NULL);
	pthread_mutex_destroy(&event->lock);
	free(event);
}

void emu_event_reach(struct emu_event *event, uint64_t version, uint64_t time_ns)
{
	pthread_mutex_lock(&event->lock);
	if (version > event->done_version) {
		event->done_version = version;
		event->time_ns = time_ns;
	}
	pthread_mutex_unlock(&event->lock);
}

ENTRY(cuEventCreate, CUevent *ret_event, unsigned flags)
{
	struct emu_context *context = NULL;
	CUresult result = emu_enter(__func__, 0, &context);
	if (result != CUDA_SUCCESS)
		return result;
	if (ret_event == NULL || flags > 7)
		return CUDA_ERROR_INVALID_VALUE;
	struct emu_event *event = calloc(1, sizeof *event);
	if (event == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	event->flags = flags;
	event->gpu = context->gpu;
	pthread_mutex_init(&event->lock, NULL);
	emu_publish(&event->object, EMU_EVENT, destroy);
	*ret_event = (CUevent)event;
	return CUDA_SUCCESS;
}

ENTRY(cuEventDestroy_v2, CUevent handle)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT | EMU_ANYWAY, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	return emu_retire(handle, EMU_EVENT) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult record_in(struct emu_stream *stream, struct emu_event *event)
{
	bool captured = false;
	CUresult result = emu_capture_record(stream, event, &captured);
	if (result != CUDA_SUCCESS || captured)
		return result;
	struct emu_work *work = emu_work_new(EMU_WORK_RECORD);
	if (work == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	emu_hold(&event->object);
	work->record.event = event;
	pthread_mutex_lock(&event->lock);
	work->record.version = ++event->version;
	pthread_mutex_unlock(&event->lock);
	uint64_t number = 0;
	result = emu_submit(stream, work, &number);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&event->lock);
	struct emu_stream *before = event->stream;
	emu_hold(&stream->object);
	event->stream = stream;
	event->number = number;
	pthread_mutex_unlock(&event->lock);
	emu_put(before != NULL ? &before->object : NULL);
	return CUDA_SUCCESS;
}

static CUresult record(const char *entry, CUevent handle, CUstream stream_handle, enum emu_flavour flavour)
{
	CUresult result = emu_enter(entry, EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_stream *stream = NULL;
	struct emu_event *event = emu_get(handle, EMU_EVENT);
	if (event == NULL)
		return CUDA_ERROR_INVALID_HANDLE;
	result = emu_stream_of(stream_handle, flavour, &stream);
	if (result == CUDA_SUCCESS && stream->context->gpu != event->gpu)
		result = CUDA_ERROR_INVALID_HANDLE;
	if (result == CUDA_SUCCESS)
		result = record_in(stream, event);
	emu_put(stream != NULL ? &stream->object : NULL);
	emu_put(&event->object);
	return result;
}

TWINS(cuEventRecord, _ptsz, record(__func__, event, stream, flavour), CUevent event, CUstream stream)
TWINS(cuEventRecordWithFlags, _ptsz, flags <= 1 ? record(__func__, event, stream, flavour) : CUDA_ERROR_INVALID_VALUE, CUevent event,
      CUstream stream, unsigned flags)

/* The stream and number to wait for, with a reference; NULL when it was never recorded. */
static struct emu_stream *last_record(struct emu_event *event, uint64_t *ret_number)
{
	pthread_mutex_lock(&event->lock);
	struct emu_stream *stream = event->stream;
	*ret_number = event->number;
	if (stream != NULL)
		emu_hold(&stream->object);
	pthread_mutex_unlock(&event->lock);
	return stream;
}

static CUresult ask(const char *entry, CUevent handle, bool wait)
{
	CUresult result = emu_enter(entry, EMU_NO_CONTEXT | EMU_UNSAFE, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_event *event = emu_get(handle, EMU_EVENT);
	if (event == NULL)
		return CUDA_ERROR_INVALID_HANDLE;
	uint64_t number = 0;
	struct emu_stream *stream = NULL;
	if (emu_capture_has_event(event))
		result = CUDA_ERROR_CAPTURED_EVENT;
	else
		stream = last_record(event, &number);
	if (stream != NULL) {
		if (wait)
			emu_stream_wait(stream, number);
		else if (!emu_stream_is_done(stream, number))
			result = CUDA_ERROR_NOT_READY;
		CUresult state = emu_context_state(stream->context);
		if (state != CUDA_SUCCESS && state != CUDA_ERROR_CONTEXT_IS_DESTROYED)
			result = state;
		emu_put(&stream->object);
	}
	emu_put(&event->object);
	if (wait)
		emu_pools_trim();
	return result;
}

ENTRY(cuEventQuery, CUevent event)
{
	return ask(__func__, event, false);
}

ENTRY(cuEventSynchronize, CUevent event)
{
	return ask(__func__, event, true);
}

static CUresult elapsed(const char *entry, float *ret_ms, CUevent start_handle, CUevent end_handle)
{
	CUresult result = emu_enter(entry, EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	if (ret_ms == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	struct emu_event *events[2] = {emu_get(start_handle, EMU_EVENT), emu_get(end_handle, EMU_EVENT)};
	uint64_t times[2] = {0, 0};
	for (int i = 0; i < 2; i++) {
		if (events[i] == NULL) {
			result = CUDA_ERROR_INVALID_HANDLE;
			continue;
		}
		pthread_mutex_lock(&events[i]->lock);
		if (events[i]->version == 0 || (events[i]->flags & CU_EVENT_DISABLE_TIMING))
			result = CUDA_ERROR_INVALID_HANDLE;
		else if (events[i]->done_version != events[i]->version && result == CUDA_SUCCESS)
			result = CUDA_ERROR_NOT_READY;
		times[i] = events[i]->time_ns;
		pthread_mutex_unlock(&events[i]->lock);
	}
	if (result == CUDA_SUCCESS)
		*ret_ms = (float)((double)(int64_t)(times[1] - times[0]) / 1e6);
	for (int i = 0; i < 2; i++)
		emu_put(events[i] != NULL ? &events[i]->object : NULL);
	return result;
}

ENTRY(cuEventElapsedTime, float *ret_ms, CUevent start, CUevent end)
{
	return elapsed(__func__, ret_ms, start, end);
}

ENTRY(cuEventElapsedTime_v2, float *ret_ms, CUevent start, CUevent end)
{
	return elapsed(__func__, ret_ms, start, end);
}

static CUresult wait_in(struct emu_stream *stream, struct emu_event *event)
{
	bool captured = false;
	CUresult result = emu_capture_wait(stream, event, &captured);
	if (result != CUDA_SUCCESS || captured)
		return result;
	uint64_t number = 0;
	struct emu_stream *other = last_record(event, &number);
	if (other == NULL)
		return CUDA_SUCCESS;
	struct emu_work *work = emu_work_new(EMU_WORK_NOTHING);
	struct emu_wait *wait = calloc(1, sizeof *wait);
	if (work == NULL || wait == NULL) {
		emu_put(&other->object);
		free(wait);
		if (work != NULL)
			emu_work_free(work);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*wait = (struct emu_wait){.stream = other, .number = number};
	work->waits = wait;
	return emu_submit(stream, work, NULL);
}

static CUresult wait_event(const char *entry, CUstream stream_handle, CUevent handle, enum emu_flavour flavour)
{
	CUresult result = emu_enter(entry, EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_event *event = emu_get(handle, EMU_EVENT);
	struct emu_stream *stream = NULL;
	if (event == NULL)
		return CUDA_ERROR_INVALID_HANDLE;
	result = emu_stream_of(stream_handle, flavour, &stream);
	if (result == CUDA_SUCCESS)
		result = wait_in(stream, event);
	emu_put(stream != NULL ? &stream->object : NULL);
	emu_put(&event->object);
	return result;
}

TWINS(cuStreamWaitEvent, _ptsz, flags <= 1 ? wait_event(__func__, stream, event, flavour) : CUDA_ERROR_INVALID_VALUE, CUstream stream,
      CUevent event, unsigned flags)
