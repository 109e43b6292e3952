#include "runtime/pace.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "runtime/account.h"
#include "runtime/credit.h"
#include "runtime/driver.h"
#include "runtime/gap.h"
#include "runtime/gate.h"
#include "runtime/move.h"
#include "runtime/neighbours.h"
#include "runtime/tools.h"

#define BATCH_LONG_NS 1000000
#define BATCH_SHORT_NS 250000
#define POLL_NS INT64_C(20000)
#define WAIT_MOST_NS INT64_C(2000000)
enum { PACED = SW_PACE_SHARE | SW_PACE_YIELD };
enum { QUEUES = 16, BATCHES = 16, SHARE_IN_FLIGHT = 10, LAUNCHES_MOST = 64 };
/* One that yields gives the GPU no more than two small batches at once, and of long ones no more
 * than one. What comes may take far longer than what was. */
enum { YIELD_IN_FLIGHT = 2, YIELD_LAUNCHES = 4 };
#define YIELD_LONG_NS INT64_C(4000000)

_Atomic uint32_t sw_pace_mode;

/* Work between two events on one stream. */
struct batch {
	CUevent begin, end;
	unsigned launches;
};

/* Of one context. */
struct queue {
	CUcontext context;
	struct batch batches[BATCHES]; /* a ring */
	unsigned first, count;	       /* closed ones, in flight */
	CUstream stream;	       /* of the open one */
	pthread_t thread;	       /* whose stream that is, where each has its own of that name */
	int64_t progress_ns;	       /* when one was last over, or the first was given */
	int64_t needed_ns;	       /* for the next one, as far as the last ones tell */
	unsigned launches_most;	       /* after which it is closed: adapts to how long launches take */
	bool open;		       /* batches[first + count] has begun */
	bool ends;		       /* its end was noted after its last launch */
	bool quiet;		       /* nothing was launched since the last look */
	bool waited;		       /* for neighbours, since the last look */
	bool tangled;		       /* some of its work does not end before more is given */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct queue queues[QUEUES];
static unsigned queue_count;
static struct sw_credit credit;
static bool still;	     /* it may take nothing at all */
static _Atomic bool spilled; /* since lengths were last measured */

/* Calls of this thread that its neighbours were told of and that are not over; the mode
 * may change in between. */
static __thread unsigned noted __attribute__((tls_model("initial-exec")));

/* ---- under the lock */

/* NULL: there is none, or a stream is captured, which asking the driver would spoil. A thread that
 * begins a capture says so and then takes the lock: it must be asked here again. */
static struct queue *queue_of_current(void)
{
	CUcontext context = NULL;
	if (atomic_load(&sw_captures) > 0 || sw_driver.context_current(&context) != CUDA_SUCCESS || context == NULL)
		return NULL;
	for (unsigned i = 0; i < queue_count; i++)
		if (queues[i].context == context)
			return &queues[i];
	if (queue_count == QUEUES)
		return NULL;
	struct queue *queue = &queues[queue_count];
	*queue = (struct queue){.context = context, .launches_most = 1, .needed_ns = SW_GAP_UNKNOWN_NS};
	for (unsigned i = 0; i < BATCHES; i++)
		if (sw_driver.event_create(&queue->batches[i].begin, CU_EVENT_DEFAULT) != CUDA_SUCCESS ||
		    sw_driver.event_create(&queue->batches[i].end, CU_EVENT_DEFAULT) != CUDA_SUCCESS)
			return NULL;
	queue_count++;
	return queue;
}

static struct batch *open_batch(struct queue *queue)
{
	return &queue->batches[(queue->first + queue->count) % BATCHES];
}

/* Takes in what is over; how long it took decides how much goes into a batch. */
static void settle(struct queue *queue)
{
	/* What has failed is over too: no thread may wait for it. */
	while (queue->count > 0 && sw_driver.event_query(queue->batches[queue->first].end) != CUDA_ERROR_NOT_READY) {
		float ms = 0;
		struct batch *batch = &queue->batches[queue->first];
		if (sw_driver.event_elapsed(&ms, batch->begin, batch->end) == CUDA_SUCCESS) {
			int64_t took = (int64_t)((double)ms * 1e6);
			sw_credit_take(&credit, took);
			queue->needed_ns = sw_gap_needed(queue->needed_ns, took);
			if (took > BATCH_LONG_NS && queue->launches_most > 1)
				queue->launches_most /= 2;
			else if (took < BATCH_SHORT_NS && batch->launches == queue->launches_most && queue->launches_most < LAUNCHES_MOST)
				queue->launches_most *= 2;
		}
		queue->first = (queue->first + 1) % BATCHES;
		queue->count--;
		queue->progress_ns = sw_monotonic_ns();
	}
}

static void forget_lengths(void)
{
	for (struct queue *queue = queues; queue < queues + queue_count; queue++) {
		queue->launches_most = 1;
		queue->needed_ns = queue->needed_ns > SW_GAP_UNKNOWN_NS ? queue->needed_ns : SW_GAP_UNKNOWN_NS;
	}
}

/* A thread's own stream goes by the same name in others. */
static bool is_of(const struct queue *queue, CUstream stream)
{
	return queue->stream == stream && (stream != CU_STREAM_PER_THREAD || pthread_equal(queue->thread, pthread_self()));
}

static void close_batch(struct queue *queue)
{
	struct batch *batch = open_batch(queue);
	queue->open = false;
	if (queue->count == 0)
		queue->progress_ns = sw_monotonic_ns();
	/* If another thread had to tell, how long it took is not known. */
	if (queue->ends || (is_of(queue, queue->stream) && sw_driver.event_record(batch->end, queue->stream) == CUDA_SUCCESS))
		queue->count++;
}

/* What was given is over while the program thinks: what comes next is another batch. */
static void close_ended(struct queue *queue)
{
	if (!queue->open || !queue->ends || sw_driver.event_query(open_batch(queue)->end) == CUDA_ERROR_NOT_READY)
		return;
	close_batch(queue);
	settle(queue);
}

/* More than is good may go on then, up to what can be measured; beyond that, one launch at a
 * time. */
static bool is_stuck(struct queue *queue, int64_t now)
{
	bool stuck = queue->count > 0 && now - queue->progress_ns > sw_gap_stuck(queue->needed_ns);
	queue->tangled = queue->tangled || stuck;
	if (stuck && queue->count == BATCHES)
		queue->progress_ns = now;
	return stuck;
}

/* After how many launches the open batch is closed. While little is in flight the GPU may idle
 * between two launches. That is not the program's to pay for, and between batches it does not. What
 * is open when the program stops is closed at the second look after that. An event after every
 * launch would tell sooner, and cost every launch. One that yields is not paid by batches, and must
 * know soon: its launches have such an event. So have those that no other thread could close. */
static unsigned launches_most(const struct queue *queue, uint32_t mode)
{
	unsigned ahead = mode & SW_PACE_YIELD ? YIELD_LAUNCHES : queue->count > 5 ? LAUNCHES_MOST : 1U << queue->count;
	return ahead < queue->launches_most ? ahead : queue->launches_most;
}

/* What was begun last is not paid for, since what has gone by meanwhile was no work. */
static void drop_batches(void)
{
	for (unsigned i = 0; i < queue_count; i++)
		queues[i].open = false;
}

/* ---- the three calls */

/* Whether neighbours need the GPU before what is given and what would come are over. */
static bool must_yield(struct queue *queue, uint32_t mode, int64_t now)
{
	bool yields = (mode & SW_PACE_YIELD) != 0 && sw_neighbours_are_busy(now, queue->needed_ns * (queue->count + 1));
	queue->waited = queue->waited || yields;
	return yields;
}

static unsigned most_in_flight(const struct queue *queue, uint32_t mode)
{
	if ((mode & SW_PACE_YIELD) == 0)
		return SHARE_IN_FLIGHT;
	return queue->needed_ns > YIELD_LONG_NS && !queue->tangled ? 1 : YIELD_IN_FLIGHT;
}

/* How long to wait before asking again; 0: go on. */
static int64_t must_wait(struct queue *queue, CUstream stream, uint32_t mode)
{
	int64_t now = sw_monotonic_ns();
	settle(queue);
	close_ended(queue);
	if (atomic_exchange(&spilled, false))
		forget_lengths();
	bool resting = sw_credit_give(&credit, now) || still;
	bool waits = must_yield(queue, mode, now) || ((mode & SW_PACE_SHARE) != 0 && resting);
	/* A thread that waits wants to know when what it gave is over. */
	if (queue->open && (waits || ((mode & SW_PACE_YIELD) != 0 && !is_of(queue, stream))))
		close_batch(queue);
	/* Not in the middle of a batch: what it waits would count as work. */
	bool full = !queue->open && queue->count >= most_in_flight(queue, mode);
	if (full && (waits || !is_stuck(queue, now)))
		return POLL_NS;
	if (!waits)
		return 0;
	int64_t rest = still ? WAIT_MOST_NS : sw_credit_rest_ns(&credit);
	rest = rest > POLL_NS ? rest : POLL_NS;
	return rest < WAIT_MOST_NS ? rest : WAIT_MOST_NS;
}

void sw_pace_before(CUstream stream)
{
	for (;;) {
		/* Not while the gate is closed. The process may be off its GPU. It must be in no
		 * call of the driver then, nor hold the lock in one. */
		if (atomic_load(&sw_gate_closed) != 0)
			sw_gate_leave(sw_gate_enter());
		uint32_t mode = atomic_load(&sw_pace_mode);
		/* What is captured is no work yet, and asking the driver would spoil the
		 * capture. */
		if ((mode & PACED) == 0 || atomic_load(&sw_captures) > 0)
			return;
		pthread_mutex_lock(&lock);
		struct queue *queue = queue_of_current();
		int64_t wait = queue == NULL ? 0 : must_wait(queue, stream, mode);
		pthread_mutex_unlock(&lock);
		if (wait == 0)
			return;
		nanosleep(&(struct timespec){.tv_nsec = wait}, NULL);
	}
}

static void note_over(void)
{
	if (noted == 0)
		return;
	sw_neighbours_note_over();
	noted--;
}

void sw_pace_begin(CUstream stream)
{
	uint32_t mode = atomic_load(&sw_pace_mode);
	if ((mode & SW_PACE_WATCHED) != 0) {
		sw_neighbours_note_launch(stream);
		noted++;
	}
	if ((mode & PACED) == 0 || atomic_load(&sw_captures) > 0)
		return;
	pthread_mutex_lock(&lock);
	struct queue *queue = queue_of_current();
	if (queue != NULL && queue->open && !is_of(queue, stream))
		close_batch(queue);
	if (queue != NULL && !queue->open && queue->count < BATCHES) {
		struct batch *batch = open_batch(queue);
		queue->open = sw_driver.event_record(batch->begin, stream) == CUDA_SUCCESS;
		queue->stream = stream;
		queue->thread = pthread_self();
		queue->ends = false;
		batch->launches = 0;
	}
	if (queue != NULL)
		queue->quiet = false;
	pthread_mutex_unlock(&lock);
}

void sw_pace_end(CUstream stream)
{
	note_over();
	uint32_t mode = atomic_load(&sw_pace_mode);
	if ((mode & PACED) == 0 || atomic_load(&sw_captures) > 0)
		return;
	pthread_mutex_lock(&lock);
	struct queue *queue = queue_of_current();
	if (queue != NULL && queue->open && is_of(queue, stream)) {
		struct batch *batch = open_batch(queue);
		bool tells = (mode & SW_PACE_YIELD) != 0 || stream == CU_STREAM_PER_THREAD;
		queue->ends = tells && sw_driver.event_record(batch->end, stream) == CUDA_SUCCESS;
		if (++batch->launches >= launches_most(queue, mode))
			close_batch(queue);
	}
	pthread_mutex_unlock(&lock);
}

struct sw_gate_thread *sw_pace_enter_request(void)
{
	struct sw_gate_thread *self = sw_gate_enter();
	if ((atomic_load(&sw_pace_mode) & SW_PACE_WATCHED) != 0) {
		sw_neighbours_note_request();
		noted++;
	}
	return self;
}

void sw_pace_leave_request(struct sw_gate_thread *self)
{
	note_over();
	sw_gate_leave(self);
}

void sw_pace_pause(void)
{
	bool paced = (atomic_load(&sw_pace_mode) & PACED) != 0;
	if (!paced || atomic_load(&sw_captures) > 0 || atomic_load(&sw_gate_closed) != 0)
		return;
	pthread_mutex_lock(&lock);
	struct queue *queue = queue_of_current();
	if (queue != NULL && queue->open)
		close_batch(queue);
	pthread_mutex_unlock(&lock);
}

void sw_pace_look(void)
{
	CUcontext popped;
	if ((atomic_load(&sw_pace_mode) & PACED) == 0)
		return;
	pthread_mutex_lock(&lock);
	/* Asked under the lock, which a thread that begins a capture takes after it has said so. */
	for (struct queue *queue = queues; queue < queues + queue_count && atomic_load(&sw_captures) == 0; queue++) {
		if (queue->quiet && queue->open && (queue->ends || queue->stream != CU_STREAM_PER_THREAD) &&
		    sw_driver.context_push(queue->context) == CUDA_SUCCESS) {
			close_batch(queue);
			sw_driver.context_pop(&popped);
		}
		/* A program that has nothing to do has not tried. */
		if (queue->quiet && queue->waited)
			queue->needed_ns = sw_gap_forget(queue->needed_ns, SW_PACE_LOOK_NS);
		queue->quiet = true;
		queue->waited = false;
	}
	pthread_mutex_unlock(&lock);
}

void sw_pace_stand_still(void)
{
	pthread_mutex_lock(&lock);
	drop_batches();
	pthread_mutex_unlock(&lock);
	sw_neighbours_forget_gap();
}

void sw_pace_forget_lengths(void)
{
	atomic_store(&spilled, true);
}

void sw_pace_forget_stream(CUstream stream)
{
	/* Also while it is neither paced nor watched: it may have been, and may be again. But a
	 * child after fork() may find the locks taken for ever. */
	if (sw_slot == NULL)
		return;
	sw_neighbours_forget_stream(stream);
	bool paced = (atomic_load(&sw_pace_mode) & PACED) != 0;
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < queue_count && paced; i++)
		if (queues[i].open && queues[i].stream == stream)
			close_batch(&queues[i]);
	pthread_mutex_unlock(&lock);
}

void sw_pace_forget_context(CUcontext context)
{
	if (sw_slot == NULL)
		return;
	sw_neighbours_forget_context(context);
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < queue_count; i++)
		if (queues[i].context == context)
			queues[i--] = queues[--queue_count];
	pthread_mutex_unlock(&lock);
}

void sw_pace_forget(void)
{
	atomic_store(&sw_pace_mode, 0);
}

void sw_pace_configure(void)
{
	/* Without a coordinator nothing will ever let it go on: it does so by itself. */
	bool alone = sw_account_is_deserted();
	uint32_t share = atomic_load(&sw_page->share_milli), mode = 0;
	bool none = share == SW_PAGE_NO_SHARE && !alone;
	bool can = sw_driver.event_create != NULL && sw_driver.event_record != NULL && sw_driver.event_query != NULL &&
		   sw_driver.event_elapsed != NULL;
	share = share < 1000 ? share : 0;
	if (can && (share > 0 || none))
		mode |= SW_PACE_SHARE;
	if (can && atomic_load(&sw_page->yields) != 0 && sw_neighbours_open() && !alone)
		mode |= SW_PACE_YIELD;
	if (atomic_load(&sw_page->watched) != 0 && sw_neighbours_prepare())
		mode |= SW_PACE_WATCHED;
	bool begins = (mode & PACED) != 0 && (atomic_load(&sw_pace_mode) & PACED) == 0;
	if ((mode & SW_PACE_WATCHED) != 0 && (atomic_load(&sw_pace_mode) & SW_PACE_WATCHED) == 0)
		sw_neighbours_forget_gap();
	pthread_mutex_lock(&lock);
	still = none;
	if (begins)
		drop_batches();
	if (share != credit.share_milli)
		sw_credit_start(&credit, share, sw_monotonic_ns());
	pthread_mutex_unlock(&lock);
	atomic_store(&sw_pace_mode, mode);
}
