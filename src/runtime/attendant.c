/* The thread that hears the coordinator's wishes and carries them out. The only
 * one that closes the gate. */
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>

#include "runtime/account.h"
#include "runtime/charges.h"
#include "runtime/driver.h"
#include "runtime/gate.h"
#include "runtime/iterations.h"
#include "runtime/memory.h"
#include "runtime/move.h"
#include "runtime/node.h"
#include "runtime/pace.h"
#include "runtime/profile.h"
#include "runtime/spare.h"
#include "runtime/start.h"
#include "runtime/store.h"
#include "runtime/tools.h"
#include "runtime/visits.h"

#define IDLE_NS INT64_C(100000000) /* how often figures are brought up to date */
#define RETRY_NS INT64_C(20000000) /* after trouble; twice as long each time, up to */
#define RETRY_MOST_NS INT64_C(320000000)
#define TIGHT_NS INT64_C(1000000000)	  /* a process that finds no room on the GPU for so long comes back without a part of it */
#define RETRY_HOST_NS INT64_C(2560000000) /* for want of host memory: to try may mean to stop the program */
enum { RESUMES_MOST = 32 };		  /* so often in a row the driver may refuse one: some ten seconds */

static void tell(void)
{
	atomic_fetch_add(&sw_page->changes, 1);
	sw_futex_wake(&sw_page->changes);
}

static void set_state(enum sw_page_state state)
{
	atomic_store(&sw_slot->state, state);
	atomic_store(&sw_told->state, state);
	tell();
}

static bool is_off(void)
{
	return atomic_load(&sw_slot->state) == SW_PAGE_CHECKPOINTED;
}

static bool is_away(void)
{
	return atomic_load(&sw_slot->state) == SW_PAGE_SUSPENDED || is_off();
}

/* Some systems let only its parents trace a process, and the driver's
 * checkpoints ask for that right. */
static void admit_tracer(void)
{
	static int32_t admitted;
	int32_t wanted = atomic_load(&sw_page->checkpointer);
	if (wanted != admitted && wanted >= 0)
		prctl(PR_SET_PTRACER, (unsigned long)wanted, 0, 0, 0);
	admitted = wanted;
}

static _Atomic(CUcontext) last_context; /* that had memory */

void sw_attendant_forget_context(CUcontext context)
{
	atomic_compare_exchange_strong(&last_context, &context, NULL);
}

/* A context that has memory, or had some last, is current then; false: there is
 * none, or one of them goes. */
static bool enter_any_context(void)
{
	if (!sw_visit_begin())
		return false;
	pthread_mutex_lock(&sw_memory_lock);
	if (sw_ranges != NULL)
		atomic_store(&last_context, sw_ranges->context);
	pthread_mutex_unlock(&sw_memory_lock);
	CUcontext context = atomic_load(&last_context);
	if (context != NULL && sw_driver.context_push(context) == CUDA_SUCCESS)
		return true;
	sw_visit_end();
	return false;
}

static void leave_context(void)
{
	CUcontext popped;
	sw_driver.context_pop(&popped);
	sw_visit_end();
}

/* Gives back one slice of the store in which nothing lies; false: there is none. The driver may
 * wait for the GPU then, which would spoil a capture; and there may be much to give. */
static bool give_slice(void)
{
	if (sw_store_unused() == 0 || atomic_load(&sw_captures) > 0 || !enter_any_context())
		return false;
	bool given = sw_store_trim();
	leave_context();
	return given;
}

/* Host memory that was made ahead, where others need it. */
static void give_spare(void)
{
	sw_spare_trim();
	while (sw_store_unused() > 0 && sw_node_is_short() && give_slice())
		;
}

/* It is suspended: all of it, after the GPU is known to be free. One that is called back does not
 * finish that first, and what is left serves it. */
static void give_all(uint32_t serial)
{
	if (atomic_load(&sw_slot->giving) == 0 || atomic_load(&sw_slot->state) != SW_PAGE_SUSPENDED)
		return;
	bool more = true;
	while (more && atomic_load(&sw_slot->state) == SW_PAGE_SUSPENDED &&
	       (atomic_load(&sw_page->serial) == serial || atomic_load(&sw_page->want) == SW_PAGE_SUSPEND))
		more = sw_spare_drop() || give_slice();
	if (more)
		return;
	atomic_store(&sw_slot->giving, 0);
	tell();
}

static void stay_away(void)
{
	/* Before it counts as suspended: a caller that then stops it asks this first. */
	atomic_store(&sw_slot->giving, 1);
	set_state(SW_PAGE_SUSPENDED);
}

static enum sw_page_trouble suspend(void)
{
	set_state(SW_PAGE_SUSPENDING);
	sw_iterations_await_floor();
	enum sw_page_trouble trouble = sw_move_away();
	if (trouble == SW_PAGE_FINE)
		atomic_fetch_add(&sw_slot->suspends, 1);
	atomic_store(&sw_slot->trouble, trouble);
	if (trouble == SW_PAGE_FINE)
		stay_away();
	else
		set_state(SW_PAGE_RUNNING);
	return trouble;
}

static int64_t refused_ns; /* since when there is no room for it; 0: there was, or it need not come back */
static unsigned failed;	   /* so often in a row the driver has refused to bring it back */
static bool lost;	   /* its memory never comes back */

/* A thread at the gate would wait for ever: the driver's own answers tell the program what has
 * happened. Nothing of it moves any more. */
static bool give_up(void)
{
	if (failed == 0 || (failed < RESUMES_MOST && !sw_move_is_hopeless()))
		return false;
	lost = true;
	sw_memory_publish();
	sw_gate_open();
	return true;
}

/* What it had on the GPU may not fit any more where only contexts of others have come. Two such
 * would wait for each other for ever. */
static enum sw_page_trouble resume(void)
{
	set_state(SW_PAGE_RESUMING);
	enum sw_page_trouble trouble = sw_move_back(refused_ns != 0 && sw_monotonic_ns() - refused_ns >= TIGHT_NS);
	if (trouble != SW_PAGE_NO_GPU_MEMORY)
		refused_ns = 0;
	else if (refused_ns == 0)
		refused_ns = sw_monotonic_ns(); /* the try itself may have taken long */
	if (trouble == SW_PAGE_FINE)
		atomic_fetch_add(&sw_slot->resumes, 1);
	atomic_store(&sw_slot->trouble, trouble);
	failed = trouble == SW_PAGE_DRIVER_ERROR ? failed + 1 : 0;
	if (trouble == SW_PAGE_FINE || give_up())
		set_state(SW_PAGE_RUNNING);
	else
		stay_away();
	return trouble;
}

/* The program is at its end and the driver has shut down: nothing can be moved any more, and
 * nothing is left to protect. A thread at the gate must not wait for ever. */
static bool is_over(void)
{
	CUcontext context;
	if (sw_driver.context_current(&context) != CUDA_ERROR_DEINITIALIZED)
		return false;
	sw_gate_open();
	return true;
}

/* One wish; false: it has to be tried again. */
static bool act(void)
{
	/* Without a coordinator nothing will ever bring it back: it comes by itself. */
	bool away = atomic_load(&sw_page->want) == SW_PAGE_SUSPEND && !sw_account_is_deserted();
	admit_tracer();
	if (is_off())
		return away;
	if (is_over())
		return true;
	if (lost)
		return !away;
	if (away != is_away())
		return (away ? suspend() : resume()) == SW_PAGE_FINE;
	if (away) {
		refused_ns = 0;
		failed = 0;
		return true;
	}
	enum sw_page_trouble trouble = sw_move_is_due() ? sw_move_to_limits() : SW_PAGE_FINE;
	if (trouble != atomic_exchange(&sw_slot->trouble, trouble))
		tell();
	/* What the GPU has no room for stays where it is: the limit is kept all the same. */
	return trouble == SW_PAGE_FINE || trouble == SW_PAGE_NO_GPU_MEMORY;
}

/* ---- memory that other processes can have */

enum { RENEW_NONE = 0, RENEW_WANTED };
static _Atomic uint32_t renewal; /* a futex */
static _Atomic bool renewed;

bool sw_attendant_renew(void)
{
	if (renewed)
		return true;
	atomic_store(&renewal, RENEW_WANTED);
	sw_futex_wake(&sw_page->serial);
	/* Each of the attendant's steps is bounded, except that a suspended process waits,
	 * as it would at the gate. */
	while (atomic_load(&renewal) == RENEW_WANTED)
		sw_futex_wait(&renewal, RENEW_WANTED, IDLE_NS);
	return renewed;
}

/* Away and back at once. Where it cannot come back, act() brings it as soon as that works, and the
 * thread that waits goes on then. */
static void renew(void)
{
	if (atomic_load(&renewal) != RENEW_WANTED || is_away())
		return;
	if (!renewed && !lost) {
		sw_exportable = true;
		renewed = sw_move_away() == SW_PAGE_FINE;
		enum sw_page_trouble trouble = renewed ? sw_move_back(false) : SW_PAGE_FINE;
		if (trouble != SW_PAGE_FINE) {
			atomic_store(&sw_slot->trouble, trouble);
			stay_away();
			return;
		}
	}
	atomic_store(&renewal, RENEW_NONE);
	sw_futex_wake(&renewal);
}

static void bring_figures(void)
{
	uint64_t launches, copies, waits;
	sw_gate_figures(&launches, &copies, &waits);
	atomic_store(&sw_slot->launches, launches);
	atomic_store(&sw_slot->copies, copies);
	atomic_store(&sw_slot->waits, waits);
	/* Nothing is asked of the driver while a stream is captured, which would spoil the capture;
	 * nor of one that may be stopped. */
	if (atomic_load(&sw_captures) == 0 && !is_away() && sw_visit_begin()) {
		sw_charge_graphs();
		sw_visit_end();
	}
	sw_iterations_look();
}

/* A slice of the store ahead of need: true while there is more to do. */
static bool prepare_store(void)
{
	static bool hopeless;
	size_t piece, wanted = sw_move_size(&piece);
	uint64_t budget = atomic_load(&sw_page->host_budget_bytes);
	if (hopeless || wanted == 0 || !enter_any_context())
		return false;
	enum sw_store_more more = sw_store_prepare(wanted < budget ? wanted : budget, piece);
	leave_context();
	hopeless = more == SW_STORE_CANNOT && !sw_visits_are_over(); /* in a context that goes it says nothing */
	return more == SW_STORE_MADE;
}

/* Until there is a call, or the time is over. */
static void wait_for_wish(uint32_t serial, int64_t timeout_ns)
{
	for (int64_t now = sw_monotonic_ns(), until = now + timeout_ns; now < until && atomic_load(&sw_page->serial) == serial;) {
		bool paced = (atomic_load(&sw_pace_mode) & (SW_PACE_SHARE | SW_PACE_YIELD)) != 0 && !is_away();
		int64_t next = paced && until - now > SW_PACE_LOOK_NS ? now + SW_PACE_LOOK_NS : until;
		sw_futex_wait(&sw_page->serial, serial, next - now);
		now = sw_monotonic_ns();
		if (now < next)
			return;
		if (paced && sw_visit_begin()) {
			sw_pace_look();
			sw_visit_end();
		}
	}
}

/* What the program freed in the order of streams, as far as they are there by now. */
static void settle(void)
{
	if (sw_memory_leaving == 0 || is_away() || !sw_visit_begin())
		return;
	sw_memory_settle();
	sw_visit_end();
}

static void *attend(void *unused)
{
	(void)unused;
	prctl(PR_SET_NAME, "sharewell");
	/* Whatever this thread does at any moment is no part of a capture that another began. */
	sw_capture_relax();
	int64_t retry_ns = RETRY_NS;
	for (;;) {
		uint32_t serial = atomic_load(&sw_page->serial);
		sw_pace_configure();
		bool done = act();
		renew();
		if (!is_away())
			give_spare();
		settle();
		bring_figures();
		if (!is_away())
			sw_profile_look();
		if (done && atomic_load(&sw_slot->done_serial) != serial) {
			atomic_store(&sw_slot->done_serial, serial);
			tell();
		}
		give_all(serial);
		if (done && !is_away() && prepare_store())
			continue;
		wait_for_wish(serial, done ? IDLE_NS : retry_ns);
		bool again = !done && atomic_load(&sw_page->serial) == serial;
		int64_t most_ns = atomic_load(&sw_slot->trouble) == SW_PAGE_NO_HOST_MEMORY ? RETRY_HOST_NS : RETRY_MOST_NS;
		retry_ns = !again ? RETRY_NS : retry_ns < most_ns ? retry_ns * 2 : most_ns;
	}
	return NULL;
}

bool sw_attendant_start(void)
{
	sigset_t all, before;
	pthread_t thread;
	/* The program's signals are not for us. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	bool started = pthread_create(&thread, NULL, attend, NULL) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (started)
		pthread_detach(thread);
	return started;
}
