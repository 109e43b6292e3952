#include "runtime/lanes.h"

#include "runtime/driver.h"
#include "runtime/memory.h"
#include "runtime/move.h"

enum { LANES = 256 };
/* A mark costs about as much as a launch. */
enum { FREES_A_MARK = 32 };
#define BYTES_A_MARK ((uint64_t)64 << 20)
#define RECORDING UINT64_MAX

_Atomic bool sw_lanes_used;
static struct sw_lane lanes[LANES];
static unsigned lane_count; /* places that were ever used */
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
	return stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD || stream == SW_LANE_OF_CONTEXT;
}

static bool is_of(const struct sw_lane *lane, CUstream stream, CUcontext context, uint64_t thread)
{
	return lane->stream == stream && lane->thread == thread && (!is_default(stream) || lane->context == context);
}

static struct sw_lane *find(CUstream stream, CUcontext context)
{
	uint64_t thread = stream == CU_STREAM_PER_THREAD ? own_number() : 0;
	for (unsigned i = 0; i < lane_count; i++)
		if (is_of(&lanes[i], stream, context, thread))
			return &lanes[i];
	return NULL;
}

/* What it knows of its stream nobody needs. */
static bool can_go(const struct sw_lane *lane)
{
	return lane->uses == 0 && !lane->marking;
}

static struct sw_lane *empty_place(void)
{
	for (unsigned i = 0; i < lane_count; i++)
		if (lanes[i].stream == NULL && can_go(&lanes[i]))
			return &lanes[i];
	if (lane_count < LANES)
		return &lanes[lane_count++];
	for (unsigned i = 0; i < lane_count; i++)
		if (can_go(&lanes[i]))
			return &lanes[i];
	return NULL;
}

static struct sw_lane *make(CUstream stream, CUcontext context)
{
	CUdevice device;
	if (!is_default(stream) && (sw_driver.stream_context == NULL || sw_driver.stream_context(stream, &context) != CUDA_SUCCESS))
		return NULL;
	if (context == NULL || sw_driver.context_push(context) != CUDA_SUCCESS)
		return NULL;
	CUresult result = sw_driver.context_device(&device);
	sw_driver.context_pop(&context);
	struct sw_lane *lane = result == CUDA_SUCCESS ? empty_place() : NULL;
	if (lane == NULL)
		return NULL;
	/* Events are of a context. */
	bool same = lane->context == context;
	struct sw_mark marks[2] = {{same ? lane->marks[0].event : NULL, 0}, {same ? lane->marks[1].event : NULL, 0}};
	for (unsigned i = 0; i < 2 && !same; i++)
		if (lane->marks[i].event != NULL && sw_driver.event_destroy != NULL)
			sw_driver.event_destroy(lane->marks[i].event);
	*lane = (struct sw_lane){.stream = stream,
				 .context = context,
				 .device = device,
				 .thread = stream == CU_STREAM_PER_THREAD ? own_number() : 0,
				 .marks = {marks[0], marks[1]}};
	atomic_store_explicit(&sw_lanes_used, true, memory_order_relaxed);
	return lane;
}

struct sw_lane *sw_lane_of(CUstream stream)
{
	CUcontext context = NULL;
	if (is_default(stream) && sw_driver.context_current(&context) != CUDA_SUCCESS)
		return NULL;
	struct sw_lane *lane = find(stream, context);
	return lane != NULL ? lane : make(stream, context);
}

uint64_t sw_lane_free(struct sw_lane *lane, size_t bytes)
{
	lane->frees++;
	lane->freed_bytes += bytes;
	return lane->last = moment;
}

bool sw_lane_is_over(const struct sw_lane *lane, uint64_t freed_at)
{
	return freed_at <= lane->over;
}

/* ---- events */

static void is_over(struct sw_lane *lane, uint64_t cut)
{
	lane->over = cut > lane->over ? cut : lane->over;
}

static void poll(struct sw_lane *lane)
{
	CUcontext popped;
	if (lane->marks[0].moment == 0 && lane->marks[1].moment == 0)
		return;
	if (sw_driver.context_push(lane->context) != CUDA_SUCCESS)
		return;
	for (struct sw_mark *mark = lane->marks; mark < lane->marks + 2; mark++)
		if (mark->moment != 0 && mark->moment != RECORDING && sw_driver.event_query(mark->event) == CUDA_SUCCESS) {
			is_over(lane, mark->moment);
			mark->moment = 0;
		}
	sw_driver.context_pop(&popped);
}

void sw_lanes_poll(void)
{
	int mode = sw_capture_relax();
	for (unsigned i = 0; i < lane_count; i++)
		if (lanes[i].uses > 0)
			poll(&lanes[i]);
	sw_capture_restore(mode);
}

/* An empty one, or the later one, which is recorded anew: what it would have
 * said, it says later then. */
static struct sw_mark *next_mark(struct sw_lane *lane)
{
	struct sw_mark *mark = lane->marks[0].moment == 0		       ? &lane->marks[0]
			       : lane->marks[1].moment == 0		       ? &lane->marks[1]
			       : lane->marks[0].moment > lane->marks[1].moment ? &lane->marks[0]
									       : &lane->marks[1];
	CUcontext popped;
	if (mark->event == NULL && sw_driver.context_push(lane->context) == CUDA_SUCCESS) {
		if (sw_driver.event_create(&mark->event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
			mark->event = NULL;
		sw_driver.context_pop(&popped);
	}
	return mark->event == NULL ? NULL : mark;
}

/* What the default stream does while others are captured would end their capture. */
static bool may_record(const struct sw_lane *lane)
{
	return lane->stream != SW_LANE_OF_CONTEXT && (lane->stream != CU_STREAM_LEGACY || atomic_load(&sw_captures) == 0);
}

/* An own stream of a thread may end with it, any time. */
static bool is_worth(const struct sw_lane *lane)
{
	return lane->thread != 0 || lane->frees >= FREES_A_MARK || lane->freed_bytes >= BYTES_A_MARK;
}

void sw_lane_mark(struct sw_lane *lane, CUstream stream, bool anyway)
{
	struct sw_mark *mark = NULL;
	uint64_t cut = 0;
	pthread_mutex_lock(&sw_memory_lock);
	bool due = lane->last > lane->marked && lane->last > lane->over && (anyway || is_worth(lane));
	if (lane->stream == stream && !lane->marking && due && may_record(lane))
		mark = next_mark(lane);
	if (mark != NULL) {
		lane->marking = true;
		lane->frees = 0;
		lane->freed_bytes = 0;
		mark->moment = RECORDING;
		cut = moment++;
	}
	pthread_mutex_unlock(&sw_memory_lock);
	if (mark == NULL)
		return;
	CUresult result = sw_driver.event_record(mark->event, stream);
	pthread_mutex_lock(&sw_memory_lock);
	lane->marking = false;
	mark->moment = result == CUDA_SUCCESS ? cut : 0;
	if (result == CUDA_SUCCESS)
		lane->marked = cut;
	pthread_mutex_unlock(&sw_memory_lock);
}

/* ---- waits */

uint64_t sw_lanes_cut(void)
{
	pthread_mutex_lock(&sw_memory_lock);
	uint64_t cut = moment++;
	pthread_mutex_unlock(&sw_memory_lock);
	return cut;
}

void sw_lanes_waited(uint64_t cut, CUcontext context, CUstream stream)
{
	uint64_t thread = stream == CU_STREAM_PER_THREAD ? own_number() : 0;
	pthread_mutex_lock(&sw_memory_lock);
	for (unsigned i = 0; i < lane_count; i++)
		if (stream == NULL ? lanes[i].context == context : is_of(&lanes[i], stream, context, thread))
			is_over(&lanes[i], cut);
	pthread_mutex_unlock(&sw_memory_lock);
}

CUresult sw_lanes_wait(void)
{
	CUcontext context = NULL;
	bool used = atomic_load_explicit(&sw_lanes_used, memory_order_relaxed);
	uint64_t cut = used ? sw_lanes_cut() : 0;
	CUresult result = sw_driver.context_synchronize();
	if (used && result == CUDA_SUCCESS && sw_driver.context_current(&context) == CUDA_SUCCESS)
		sw_lanes_waited(cut, context, NULL);
	return result;
}

void sw_lanes_rest(void)
{
	for (unsigned i = 0; i < lane_count; i++)
		is_over(&lanes[i], moment);
	moment++;
}

/* ---- what goes */

void sw_lane_forget_stream(CUstream stream)
{
	if (!atomic_load_explicit(&sw_lanes_used, memory_order_relaxed) || stream == NULL || is_default(stream))
		return;
	pthread_mutex_lock(&sw_memory_lock);
	struct sw_lane *lane = find(stream, NULL);
	pthread_mutex_unlock(&sw_memory_lock);
	if (lane == NULL)
		return;
	/* Else it is over when the program has waited for all of its context. */
	if (atomic_load(&sw_captures) == 0)
		sw_lane_mark(lane, stream, true);
	pthread_mutex_lock(&sw_memory_lock);
	/* Nothing refers to it, perhaps, and another stream has it now. */
	if (lane->stream == stream)
		lane->stream = NULL;
	pthread_mutex_unlock(&sw_memory_lock);
}

void sw_lanes_forget(void)
{
	atomic_store(&sw_lanes_used, false);
}

void sw_lanes_drop_context(CUcontext context)
{
	for (struct sw_lane *lane = lanes; lane < lanes + lane_count; lane++) {
		if (lane->context != context)
			continue;
		/* Memory of other contexts may still refer to it; its events are gone. */
		lane->stream = NULL;
		for (unsigned i = 0; i < 2; i++)
			lane->marks[i] = (struct sw_mark){0};
		is_over(lane, moment);
	}
	moment++;
}
