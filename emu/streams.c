/* Streams and their threads. */
#include "streams.h"

#include <assert.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "capture.h"
#include "clock.h"
#include "memory.h"

enum { STACK_BYTES = 512 * 1024 };

static void destroy(struct emu_object *object)
{
	struct emu_stream *stream = (struct emu_stream *)object;
	pthread_mutex_destroy(&stream->lock);
	pthread_cond_destroy(&stream->changed);
	free(stream);
}

struct emu_stream *emu_stream_new(struct emu_context *context, enum emu_stream_kind kind, unsigned flags, int priority)
{
	struct emu_stream *stream = calloc(1, sizeof *stream);
	if (stream == NULL)
		return NULL;
	stream->context = context;
	stream->kind = kind;
	stream->flags = flags;
	stream->priority = priority;
	pthread_mutex_init(&stream->lock, NULL);
	pthread_cond_init(&stream->changed, NULL);
	emu_publish(&stream->object, EMU_STREAM, destroy);
	pthread_mutex_lock(&context->order);
	stream->id = emu_next_id(); /* numbers fall along the list */
	stream->next = context->streams;
	context->streams = stream;
	emu_hold(&stream->object); /* the context's list */
	pthread_mutex_unlock(&context->order);
	return stream;
}

static void leave_context(struct emu_stream *stream)
{
	struct emu_context *context = stream->context;
	bool listed = false;
	pthread_mutex_lock(&context->order);
	for (struct emu_stream **link = &context->streams; *link != NULL; link = &(*link)->next) {
		if (*link == stream) {
			*link = stream->next;
			listed = true;
			break;
		}
	}
	pthread_mutex_unlock(&context->order);
	if (listed)
		emu_put(&stream->object);
}

/* Out of the table. Its thread ends with its last work; until then it is in the context's list, so
 * that others wait for that work. */
static void end_stream(struct emu_stream *stream)
{
	pthread_mutex_lock(&stream->lock);
	stream->ended = true;
	bool has_thread = stream->has_thread;
	pthread_cond_broadcast(&stream->changed);
	pthread_mutex_unlock(&stream->lock);
	if (!has_thread)
		leave_context(stream);
	emu_retire(stream, EMU_STREAM);
}

static bool has_ended(struct emu_stream *stream)
{
	pthread_mutex_lock(&stream->lock);
	bool ended = stream->ended;
	pthread_mutex_unlock(&stream->lock);
	return ended;
}

void emu_streams_end(struct emu_context *context)
{
	for (;;) {
		pthread_mutex_lock(&context->order);
		struct emu_stream *stream = context->streams;
		while (stream != NULL && has_ended(stream))
			stream = stream->next;
		if (stream != NULL)
			emu_hold(&stream->object);
		pthread_mutex_unlock(&context->order);
		if (stream == NULL)
			return;
		end_stream(stream);
		emu_put(&stream->object);
	}
}

static uint64_t wait_for_others(struct emu_work *work, uint64_t ready)
{
	for (struct emu_wait *wait = work->waits; wait != NULL; wait = wait->next) {
		uint64_t at = emu_stream_wait(wait->stream, wait->number);
		if (at > ready)
			ready = at;
	}
	return ready;
}

static void *serve(void *argument)
{
	struct emu_stream *stream = argument;
	prctl(PR_SET_TIMERSLACK, 1000UL, 0, 0, 0);
	pthread_mutex_lock(&stream->lock);
	for (;;) {
		while (stream->first == NULL && !stream->ended)
			pthread_cond_wait(&stream->changed, &stream->lock);
		struct emu_work *work = stream->first;
		if (work == NULL)
			break;
		stream->first = work->next;
		if (stream->first == NULL)
			stream->last = NULL;
		bool more = stream->first != NULL && stream->first->kind == EMU_WORK_KERNEL && stream->first->waits == NULL;
		uint64_t ready = work->ready_ns > stream->clock_ns ? work->ready_ns : stream->clock_ns;
		pthread_mutex_unlock(&stream->lock);

		ready = wait_for_others(work, ready);
		uint64_t end = emu_work_do(work, stream, ready, more);
		uint64_t number = work->number;
		emu_work_free(work);

		pthread_mutex_lock(&stream->lock);
		stream->queued--;
		stream->done = number;
		stream->clock_ns = end;
		pthread_cond_broadcast(&stream->changed);
	}
	pthread_mutex_unlock(&stream->lock);
	leave_context(stream);
	emu_put(&stream->object);
	return NULL;
}

/* Below the stream's lock. */
static bool start_thread(struct emu_stream *stream)
{
	pthread_attr_t attributes;
	pthread_t thread;
	sigset_t none, before;
	sigfillset(&none);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	/* Signals are the program's. */
	pthread_sigmask(SIG_SETMASK, &none, &before);
	emu_hold(&stream->object);
	stream->has_thread = pthread_create(&thread, &attributes, serve, stream) == 0;
	if (!stream->has_thread)
		emu_put(&stream->object);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return stream->has_thread;
}

static bool add_wait(struct emu_work *work, struct emu_stream *stream)
{
	uint64_t number = emu_stream_last(stream);
	if (emu_stream_is_done(stream, number))
		return true;
	struct emu_wait *wait = calloc(1, sizeof *wait);
	if (wait == NULL)
		return false;
	emu_hold(&stream->object);
	*wait = (struct emu_wait){.next = work->waits, .stream = stream, .number = number};
	work->waits = wait;
	return true;
}

/* What the default stream's rule makes this work wait for. Below the context's order. */
static bool add_waits(struct emu_stream *stream, struct emu_work *work)
{
	struct emu_context *context = stream->context;
	if (stream->flags & CU_STREAM_NON_BLOCKING)
		return true;
	if (stream->kind != EMU_STREAM_LEGACY)
		return add_wait(work, context->legacy);
	bool good = true;
	for (struct emu_stream *other = context->streams; other != NULL && good; other = other->next)
		if (other != stream && (other->flags & CU_STREAM_NON_BLOCKING) == 0)
			good = add_wait(work, other);
	return good;
}

CUresult emu_stream_put(struct emu_stream *stream, struct emu_work *work, uint64_t *ret_number)
{
	work->ready_ns = emu_now();
	pthread_mutex_lock(&stream->lock);
	while (stream->queued >= EMU_QUEUE)
		pthread_cond_wait(&stream->changed, &stream->lock);
	pthread_mutex_unlock(&stream->lock);

	bool ordered = (stream->flags & CU_STREAM_NON_BLOCKING) == 0;
	if (ordered)
		pthread_mutex_lock(&stream->context->order);
	bool good = add_waits(stream, work);
	pthread_mutex_lock(&stream->lock);
	if (good && !stream->has_thread)
		good = start_thread(stream);
	if (good) {
		work->number = ++stream->put;
		if (ret_number != NULL)
			*ret_number = work->number;
		if (stream->last != NULL)
			stream->last->next = work;
		else
			stream->first = work;
		stream->last = work;
		stream->queued++;
		pthread_cond_broadcast(&stream->changed);
	}
	pthread_mutex_unlock(&stream->lock);
	if (ordered)
		pthread_mutex_unlock(&stream->context->order);
	if (!good)
		emu_work_free(work);
	return good ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

uint64_t emu_stream_last(struct emu_stream *stream)
{
	pthread_mutex_lock(&stream->lock);
	uint64_t number = stream->put;
	pthread_mutex_unlock(&stream->lock);
	return number;
}

bool emu_stream_is_done(struct emu_stream *stream, uint64_t number)
{
	pthread_mutex_lock(&stream->lock);
	bool done = stream->done >= number;
	pthread_mutex_unlock(&stream->lock);
	return done;
}

uint64_t emu_stream_wait(struct emu_stream *stream, uint64_t number)
{
	pthread_mutex_lock(&stream->lock);
	while (stream->done < number)
		pthread_cond_wait(&stream->changed, &stream->lock);
	uint64_t clock_ns = stream->clock_ns;
	pthread_mutex_unlock(&stream->lock);
	return clock_ns;
}

/* The default streams of this thread, one for each context it used. */
struct per_thread {
	struct per_thread *next;
	struct emu_context *context;
	struct emu_stream *stream;
};
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void end_thread(void *argument)
{
	for (struct per_thread *entry = argument, *next = NULL; entry != NULL; entry = next) {
		next = entry->next;
		end_stream(entry->stream);
		emu_put(&entry->stream->object);
		free(entry);
	}
}

static void make_key(void)
{
	pthread_key_create(&key, end_thread);
}

static struct emu_stream *stream_of_thread(struct emu_context *context)
{
	pthread_once(&once, make_key);
	struct per_thread *first = pthread_getspecific(key);
	for (struct per_thread *entry = first; entry != NULL; entry = entry->next)
		if (entry->context == context)
			return entry->stream;
	struct per_thread *entry = calloc(1, sizeof *entry);
	struct emu_stream *stream = entry != NULL ? emu_stream_new(context, EMU_STREAM_PER_THREAD, 0, 0) : NULL;
	if (stream == NULL) {
		free(entry);
		return NULL;
	}
	emu_hold(&stream->object);
	*entry = (struct per_thread){.next = first, .context = context, .stream = stream};
	pthread_setspecific(key, entry);
	return stream;
}

CUresult emu_stream_of(CUstream handle, enum emu_flavour flavour, struct emu_stream **ret_stream)
{
	struct emu_context *context = emu_current();
	struct emu_stream *stream = NULL;
	if (handle == CU_STREAM_PER_THREAD || (handle == NULL && flavour == EMU_PER_THREAD)) {
		stream = context != NULL ? stream_of_thread(context) : NULL;
	} else if (handle == NULL || handle == CU_STREAM_LEGACY) {
		stream = context != NULL ? context->legacy : NULL;
	} else {
		stream = emu_get(handle, EMU_STREAM);
		if (stream == NULL)
			return CUDA_ERROR_INVALID_HANDLE;
		*ret_stream = stream;
		return CUDA_SUCCESS;
	}
	if (stream == NULL)
		return CUDA_ERROR_INVALID_CONTEXT;
	emu_hold(&stream->object);
	*ret_stream = stream;
	return CUDA_SUCCESS;
}

/* The entry points that create and destroy. */

static CUresult create(const char *entry, CUstream *ret_stream, unsigned flags, int priority)
{
	struct emu_context *context = NULL;
	CUresult result = emu_enter(entry, 0, &context);
	if (result != CUDA_SUCCESS)
		return result;
	if (ret_stream == NULL || flags > CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	/* Out of range is the nearest in range. */
	priority = priority > 0 ? 0 : priority < EMU_PRIORITY_GREATEST ? EMU_PRIORITY_GREATEST : priority;
	struct emu_stream *stream = emu_stream_new(context, EMU_STREAM_CREATED, flags, priority);
	if (stream == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*ret_stream = (CUstream)stream;
	return CUDA_SUCCESS;
}

ENTRY(cuStreamCreate, CUstream *ret_stream, unsigned flags)
{
	return create(__func__, ret_stream, flags, 0);
}

ENTRY(cuStreamCreateWithPriority, CUstream *ret_stream, unsigned flags, int priority)
{
	return create(__func__, ret_stream, flags, priority);
}

ENTRY(cuStreamDestroy_v2, CUstream handle)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT | EMU_ANYWAY, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_stream *stream = emu_get(handle, EMU_STREAM);
	if (stream == NULL || stream->kind != EMU_STREAM_CREATED) {
		emu_put(stream != NULL ? &stream->object : NULL);
		return CUDA_ERROR_INVALID_HANDLE;
	}
	emu_capture_abandon(stream);
	end_stream(stream);
	emu_put(&stream->object);
	return CUDA_SUCCESS;
}
