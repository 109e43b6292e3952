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
enum { LANES = 16, BATCHES = 16, SHARE_IN_FLIGHT = 10, LAUNCHES_MOST = 64 };
/* One that yields gives the GPU no more than two small batches at once, and of long ones no more
 * than one: what comes may take far longer than what was. */
enum { YIELD_IN_FLIGHT = 2, YIELD_LAUNCHES = 4 };
#define YIELD_LONG_NS INT64_C(4000000)

_Atomic uint32_t sw_pace_mode;

/* Work between two events on one stream. */
struct batch {
	CUevent begin, end;
	unsigned launches;
};

/* Of one context. */
struct lane {
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
static struct lane lanes[LANES];
static unsigned lane_count;
static struct sw_credit credit;
static bool still;	     /* it may take nothing at all */
static _Atomic bool spilled; /* since lengths were last measured */

/* Calls of this thread that its neighbours were told of and that are not over; the mode
 * may change in between. */
static __thread unsigned noted __attribute__((tls_model("initial-exec")));

/* ---- under the lock */

/* NULL: there is none, or a stream is captured, which asking the driver would spoil. Who begins a
 * capture says so and then takes the lock: it must be asked here again. */
static struct lane *lane_of_current(void)
{
	CUcontext context = NULL;
	if (atomic_load(&sw_captures) > 0 || sw_driver.context_current(&context) != CUDA_SUCCESS || context == NULL)
		return NULL;
	for (unsigned i = 0; i < lane_count; i++)
		if (lanes[i].context == context)
			return &lanes[i];
	if (lane_count == LANES)
		return NULL;
	struct lane *lane = &lanes[lane_count];
	*lane = (struct lane){.context = context, .launches_most = 1, .needed_ns = SW_GAP_UNKNOWN_NS};
	for (unsigned i = 0; i < BATCHES; i++)
		if (sw_driver.event_create(&lane->batches[i].begin, CU_EVENT_DEFAULT) != CUDA_SUCCESS ||
		    sw_driver.event_create(&lane->batches[i].end, CU_EVENT_DEFAULT) != CUDA_SUCCESS)
			return NULL;
	lane_count++;
	return lane;
}

static struct batch *open_batch(struct lane *lane)
{
	return &lane->batches[(lane->first + lane->count) % BATCHES];
}

/* Takes in what is over; how long it took decides how much goes into a batch. */
static void settle(struct lane *lane)
{
	/* What has failed is over too: nobody may wait for it. */
	while (lane->count > 0 && sw_driver.event_query(lane->batches[lane->first].end) != CUDA_ERROR_NOT_READY) {
		float ms = 0;
		struct batch *batch = &lane->batches[lane->first];
		if (sw_driver.event_elapsed(&ms, batch->begin, batch->end) == CUDA_SUCCESS) {
			int64_t took = (int64_t)((double)ms * 1e6);
			sw_credit_take(&credit, took);
			lane->needed_ns = sw_gap_needed(lane->needed_ns, took);
			if (took > BATCH_LONG_NS && lane->launches_most > 1)
				lane->launches_most /= 2;
			else if (took < BATCH_SHORT_NS && batch->launches == lane->launches_most && lane->launches_most < LAUNCHES_MOST)
				lane->launches_most *= 2;
		}
		lane->first = (lane->first + 1) % BATCHES;
		lane->count--;
		lane->progress_ns = sw_monotonic_ns();
	}
}

static void forget_lengths(void)
{
	for (struct lane *lane = lanes; lane < lanes + lane_count; lane++) {
		lane->launches_most = 1;
		lane->needed_ns = lane->needed_ns > SW_GAP_UNKNOWN_NS ? lane->needed_ns : SW_GAP_UNKNOWN_NS;
	}
}

/* A thread's own stream goes by the same name in others. */
static bool is_of(const struct lane *lane, CUstream stream)
{
	return lane->stream == stream && (stream != CU_STREAM_PER_THREAD || pthread_equal(lane->thread, pthread_self()));
}

static void close_batch(struct lane *lane)
{
	struct batch *batch = open_batch(lane);
	lane->open = false;
	if (lane->count == 0)
		lane->progress_ns = sw_monotonic_ns();
	/* Nobody will know how long it took if another thread had to tell. */
	if (lane->ends || (is_of(lane, lane->stream) && sw_driver.event_record(batch->end, lane->stream) == CUDA_SUCCESS))
		lane->count++;
}

/* What was given is over while the program thinks: what comes next is another batch. */
static void close_ended(struct lane *lane)
{
	if (!lane->open || !lane->ends || sw_driver.event_query(open_batch(lane)->end) == CUDA_ERROR_NOT_READY)
		return;
	close_batch(lane);
	settle(lane);
}

/* More than is good may go on then, up to what can be measured; beyond that, one launch at a
 * time. */
static bool is_stuck(struct lane *lane, int64_t now)
{
	bool stuck = lane->count > 0 && now - lane->progress_ns > sw_gap_stuck(lane->needed_ns);
	lane->tangled = lane->tangled || stuck;
	if (stuck && lane->count == BATCHES)
		lane->progress_ns = now;
	return stuck;
}

/* After how many launches the open batch is closed. While little is in flight the GPU may idle
 * between two launches: that is not the program's to pay for, and between batches it does not. What
 * is open when the program stops is closed at the second look after that: an event after every
 * launch would tell sooner, and cost every launch. One that yields is not paid by batches, and must
 * know soon: its launches have such an event; so have those that no other thread could close. */
static unsigned launches_most(const struct lane *lane, uint32_t mode)
{
	unsigned ahead = mode & SW_PACE_YIELD ? YIELD_LAUNCHES : lane->count > 5 ? LAUNCHES_MOST : 1U << lane->count;
	return ahead < lane->launches_most ? ahead : lane->launches_most;
}

/* What was begun last is not paid for, since what has gone by meanwhile was no work. */
static void drop_batches(void)
{
	for (unsigned i = 0; i < lane_count; i++)
		lanes[i].open = false;
}

/* ---- the three calls */

/* Whether neighbours need the GPU before what is given and what would come are over. */
static bool must_yield(struct lane *lane, uint32_t mode, int64_t now)
{
	bool yields = (mode & SW_PACE_YIELD) != 0 && sw_neighbours_are_busy(now, lane->needed_ns * (lane->count + 1));
	lane->waited = lane->waited || yields;
	return yields;
}

static unsigned most_in_flight(const struct lane *lane, uint32_t mode)
{
	if ((mode & SW_PACE_YIELD) == 0)
		return SHARE_IN_FLIGHT;
	return lane->needed_ns > YIELD_LONG_NS && !lane->tangled ? 1 : YIELD_IN_FLIGHT;
}

/* How long to wait before asking again; 0: go on. */
static int64_t must_wait(struct lane *lane, CUstream stream, uint32_t mode)
{
	int64_t now = sw_monotonic_ns();
	settle(lane);
	close_ended(lane);
	if (atomic_exchange(&spilled, false))
		forget_lengths();
	bool resting = sw_credit_give(&credit, now) || still;
	bool waits = must_yield(lane, mode, now) || ((mode & SW_PACE_SHARE) != 0 && resting);
	/* Who waits wants to know when what he gave is over. */
	if (lane->open && (waits || ((mode & SW_PACE_YIELD) != 0 && !is_of(lane, stream))))
		close_batch(lane);
	/* Not in the middle of a batch: what it waits would count as work. */
	bool full = !lane->open && lane->count >= most_in_flight(lane, mode);
	if (full && (waits || !is_stuck(lane, now)))
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
		/* Not while the gate is closed: the process may be off its GPU, and must be in no
		 * call of the driver then, nor hold the lock in one. */
		if (atomic_load(&sw_gate_closed) != 0)
			sw_gate_leave(sw_gate_enter());
		uint32_t mode = atomic_load(&sw_pace_mode);
		/* What is captured is no work yet, and asking the driver would spoil the
		 * capture. */
		if ((mode & PACED) == 0 || atomic_load(&sw_captures) > 0)
			return;
		pthread_mutex_lock(&lock);
		struct lane *lane = lane_of_current();
		int64_t wait = lane == NULL ? 0 : must_wait(lane, stream, mode);
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
	struct lane *lane = lane_of_current();
	if (lane != NULL && lane->open && !is_of(lane, stream))
		close_batch(lane);
	if (lane != NULL && !lane->open && lane->count < BATCHES) {
		struct batch *batch = open_batch(lane);
		lane->open = sw_driver.event_record(batch->begin, stream) == CUDA_SUCCESS;
		lane->stream = stream;
		lane->thread = pthread_self();
		lane->ends = false;
		batch->launches = 0;
	}
	if (lane != NULL)
		lane->quiet = false;
	pthread_mutex_unlock(&lock);
}

void sw_pace_end(CUstream stream)
{
	note_over();
	uint32_t mode = atomic_load(&sw_pace_mode);
	if ((mode & PACED) == 0 || atomic_load(&sw_captures) > 0)
		return;
	pthread_mutex_lock(&lock);
	struct lane *lane = lane_of_current();
	if (lane != NULL && lane->open && is_of(lane, stream)) {
		struct batch *batch = open_batch(lane);
		bool tells = (mode & SW_PACE_YIELD) != 0 || stream == CU_STREAM_PER_THREAD;
		lane->ends = tells && sw_driver.event_record(batch->end, stream) == CUDA_SUCCESS;
		if (++batch->launches >= launches_most(lane, mode))
			close_batch(lane);
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
	struct lane *lane = lane_of_current();
	if (lane != NULL && lane->open)
		close_batch(lane);
	pthread_mutex_unlock(&lock);
}

void sw_pace_look(void)
{
	CUcontext popped;
	if ((atomic_load(&sw_pace_mode) & PACED) == 0)
		return;
	pthread_mutex_lock(&lock);
	/* Asked under the lock, which whoever begins a capture takes after he has said so. */
	for (struct lane *lane = lanes; lane < lanes + lane_count && atomic_load(&sw_captures) == 0; lane++) {
		if (lane->quiet && lane->open && (lane->ends || lane->stream != CU_STREAM_PER_THREAD) &&
		    sw_driver.context_push(lane->context) == CUDA_SUCCESS) {
			close_batch(lane);
			sw_driver.context_pop(&popped);
		}
		/* A program that has nothing to do has not tried. */
		if (lane->quiet && lane->waited)
			lane->needed_ns = sw_gap_forget(lane->needed_ns, SW_PACE_LOOK_NS);
		lane->quiet = true;
		lane->waited = false;
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
	for (unsigned i = 0; i < lane_count && paced; i++)
		if (lanes[i].open && lanes[i].stream == stream)
			close_batch(&lanes[i]);
	pthread_mutex_unlock(&lock);
}

void sw_pace_forget_context(CUcontext context)
{
	if (sw_slot == NULL)
		return;
	sw_neighbours_forget_context(context);
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < lane_count; i++)
		if (lanes[i].context == context)
			lanes[i--] = lanes[--lane_count];
	pthread_mutex_unlock(&lock);
}

void sw_pace_forget(void)
{
	atomic_store(&sw_pace_mode, 0);
}

void sw_pace_configure(void)
{
	/* Without a coordinator nobody will ever let it go on: it does so by itself. */
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
