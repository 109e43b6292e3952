#include "runtime/freers.h"

#include "runtime/driver.h"
#include "runtime/memory.h"
#include "runtime/move.h"

enum { FREERS = 256 };
/* A mark costs about as much as a launch. */
enum { FREES_A_MARK = 32 };
#define BYTES_A_MARK ((uint64_t)64 << 20)
#define RECORDING UINT64_MAX

_Atomic bool sw_freers_used;
static struct sw_freer freers[FREERS];
static unsigned freer_count; /* places that were ever used */
static uint64_t moment = 1;

/* Not an address or a number of the system's, which a later thread may have again. */
static uint64_t own_number(void)
{
	static _Atomic uint64_t last;
	static __thread uint64_t number __attribute__((tls_model("initial-exec")));
	if (number == 0)
		number = atomic_fetch_add(&last, 1) + 1;
	return number;
}

/* It has its name in every context. */
static bool is_default(CUstream stream)
{
	return stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD || stream == SW_FREER_OF_CONTEXT;
}

static bool is_of(const struct sw_freer *freer, CUstream stream, CUcontext context, uint64_t thread)
{
	return freer->stream == stream && freer->thread == thread && (!is_default(stream) || freer->context == context);
}

static struct sw_freer *find(CUstream stream, CUcontext context)
{
	uint64_t thread = stream == CU_STREAM_PER_THREAD ? own_number() : 0;
	for (unsigned i = 0; i < freer_count; i++)
		if (is_of(&freers[i], stream, context, thread))
			return &freers[i];
	return NULL;
}

/* What it knows of its stream is not needed. */
static bool can_go(const struct sw_freer *freer)
{
	return freer->uses == 0 && !freer->marking;
}

static struct sw_freer *empty_place(void)
{
	for (unsigned i = 0; i < freer_count; i++)
		if (freers[i].stream == NULL && can_go(&freers[i]))
			return &freers[i];
	if (freer_count < FREERS)
		return &freers[freer_count++];
	for (unsigned i = 0; i < freer_count; i++)
		if (can_go(&freers[i]))
			return &freers[i];
	return NULL;
}

static struct sw_freer *make(CUstream stream, CUcontext context)
{
	CUdevice device;
	if (!is_default(stream) && (sw_driver.stream_context == NULL || sw_driver.stream_context(stream, &context) != CUDA_SUCCESS))
		return NULL;
	if (context == NULL || sw_driver.context_push(context) != CUDA_SUCCESS)
		return NULL;
	CUresult result = sw_driver.context_device(&device);
	sw_driver.context_pop(&context);
	struct sw_freer *freer = result == CUDA_SUCCESS ? empty_place() : NULL;
	if (freer == NULL)
		return NULL;
	/* Events are of a context. */
	bool same = freer->context == context;
	struct sw_freer_mark marks[2] = {{same ? freer->marks[0].event : NULL, 0}, {same ? freer->marks[1].event : NULL, 0}};
	for (unsigned i = 0; i < 2 && !same; i++)
		if (freer->marks[i].event != NULL && sw_driver.event_destroy != NULL)
			sw_driver.event_destroy(freer->marks[i].event);
	*freer = (struct sw_freer){.stream = stream,
				   .context = context,
				   .device = device,
				   .thread = stream == CU_STREAM_PER_THREAD ? own_number() : 0,
				   .marks = {marks[0], marks[1]}};
	atomic_store_explicit(&sw_freers_used, true, memory_order_relaxed);
	return freer;
}

struct sw_freer *sw_freer_of(CUstream stream)
{
	CUcontext context = NULL;
	if (is_default(stream) && sw_driver.context_current(&context) != CUDA_SUCCESS)
		return NULL;
	struct sw_freer *freer = find(stream, context);
	return freer != NULL ? freer : make(stream, context);
}

uint64_t sw_freer_free(struct sw_freer *freer, size_t bytes)
{
	freer->frees++;
	freer->freed_bytes += bytes;
	return freer->last = moment;
}

bool sw_freer_is_over(const struct sw_freer *freer, uint64_t freed_at)
{
	return freed_at <= freer->over;
}

/* ---- events */

static void is_over(struct sw_freer *freer, uint64_t cut)
{
	freer->over = cut > freer->over ? cut : freer->over;
}

static void poll(struct sw_freer *freer)
{
	CUcontext popped;
	if (freer->marks[0].moment == 0 && freer->marks[1].moment == 0)
		return;
	if (sw_driver.context_push(freer->context) != CUDA_SUCCESS)
		return;
	for (struct sw_freer_mark *mark = freer->marks; mark < freer->marks + 2; mark++)
		if (mark->moment != 0 && mark->moment != RECORDING && sw_driver.event_query(mark->event) == CUDA_SUCCESS) {
			is_over(freer, mark->moment);
			mark->moment = 0;
		}
	sw_driver.context_pop(&popped);
}

void sw_freers_poll(void)
{
	int mode = sw_capture_relax();
	for (unsigned i = 0; i < freer_count; i++)
		if (freers[i].uses > 0)
			poll(&freers[i]);
	sw_capture_restore(mode);
}

/* An empty one, or the later one, which is recorded anew: what it would have
 * said, it says later then. */
static struct sw_freer_mark *next_mark(struct sw_freer *freer)
{
	struct sw_freer_mark *mark = freer->marks[0].moment == 0		       ? &freer->marks[0]
				     : freer->marks[1].moment == 0		       ? &freer->marks[1]
				     : freer->marks[0].moment > freer->marks[1].moment ? &freer->marks[0]
										       : &freer->marks[1];
	CUcontext popped;
	if (mark->event == NULL && sw_driver.context_push(freer->context) == CUDA_SUCCESS) {
		if (sw_driver.event_create(&mark->event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
			mark->event = NULL;
		sw_driver.context_pop(&popped);
	}
	return mark->event == NULL ? NULL : mark;
}

/* What the default stream does while others are captured would end their capture. */
static bool may_record(const struct sw_freer *freer)
{
	return freer->stream != SW_FREER_OF_CONTEXT && (freer->stream != CU_STREAM_LEGACY || atomic_load(&sw_captures) == 0);
}

/* An own stream of a thread may end with it, any time. */
static bool is_worth(const struct sw_freer *freer)
{
	return freer->thread != 0 || freer->frees >= FREES_A_MARK || freer->freed_bytes >= BYTES_A_MARK;
}

void sw_freer_mark(struct sw_freer *freer, CUstream stream, bool anyway)
{
	struct sw_freer_mark *mark = NULL;
	uint64_t cut = 0;
	pthread_mutex_lock(&sw_memory_lock);
	bool due = freer->last > freer->marked && freer->last > freer->over && (anyway || is_worth(freer));
	if (freer->stream == stream && !freer->marking && due && may_record(freer))
		mark = next_mark(freer);
	if (mark != NULL) {
		freer->marking = true;
		freer->frees = 0;
		freer->freed_bytes = 0;
		mark->moment = RECORDING;
		cut = moment++;
	}
	pthread_mutex_unlock(&sw_memory_lock);
	if (mark == NULL)
		return;
	CUresult result = sw_driver.event_record(mark->event, stream);
	pthread_mutex_lock(&sw_memory_lock);
	freer->marking = false;
	mark->moment = result == CUDA_SUCCESS ? cut : 0;
	if (result == CUDA_SUCCESS)
		freer->marked = cut;
	pthread_mutex_unlock(&sw_memory_lock);
}

/* ---- waits */

uint64_t sw_freers_cut(void)
{
	pthread_mutex_lock(&sw_memory_lock);
	uint64_t cut = moment++;
	pthread_mutex_unlock(&sw_memory_lock);
	return cut;
}

void sw_freers_waited(uint64_t cut, CUcontext context, CUstream stream)
{
	uint64_t thread = stream == CU_STREAM_PER_THREAD ? own_number() : 0;
	pthread_mutex_lock(&sw_memory_lock);
	for (unsigned i = 0; i < freer_count; i++)
		if (stream == NULL ? freers[i].context == context : is_of(&freers[i], stream, context, thread))
			is_over(&freers[i], cut);
	pthread_mutex_unlock(&sw_memory_lock);
}

CUresult sw_freers_wait(void)
{
	CUcontext context = NULL;
	bool used = atomic_load_explicit(&sw_freers_used, memory_order_relaxed);
	uint64_t cut = used ? sw_freers_cut() : 0;
	CUresult result = sw_driver.context_synchronize();
	if (used && result == CUDA_SUCCESS && sw_driver.context_current(&context) == CUDA_SUCCESS)
		sw_freers_waited(cut, context, NULL);
	return result;
}

void sw_freers_rest(void)
{
	for (unsigned i = 0; i < freer_count; i++)
		is_over(&freers[i], moment);
	moment++;
}

/* ---- what goes */

void sw_freer_forget_stream(CUstream stream)
{
	if (!atomic_load_explicit(&sw_freers_used, memory_order_relaxed) || stream == NULL || is_default(stream))
		return;
	pthread_mutex_lock(&sw_memory_lock);
	struct sw_freer *freer = find(stream, NULL);
	pthread_mutex_unlock(&sw_memory_lock);
	if (freer == NULL)
		return;
	/* Else it is over when the program has waited for all of its context. */
	if (atomic_load(&sw_captures) == 0)
		sw_freer_mark(freer, stream, true);
	pthread_mutex_lock(&sw_memory_lock);
	/* Nothing refers to it, perhaps, and another stream has it now. */
	if (freer->stream == stream)
		freer->stream = NULL;
	pthread_mutex_unlock(&sw_memory_lock);
}

void sw_freers_forget(void)
{
	atomic_store(&sw_freers_used, false);
}

void sw_freers_drop_context(CUcontext context)
{
	for (struct sw_freer *freer = freers; freer < freers + freer_count; freer++) {
		if (freer->context != context)
			continue;
		/* Memory of other contexts may still refer to it; its events are gone. */
		freer->stream = NULL;
		for (unsigned i = 0; i < 2; i++)
			freer->marks[i] = (struct sw_freer_mark){0};
		is_over(freer, moment);
	}
	moment++;
}
