#include "runtime/neighbours.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/account.h"
#include "runtime/driver.h"
#include "runtime/gap.h"
#include "runtime/gate.h"
#include "runtime/memory.h"
#include "runtime/move.h"
#include "runtime/tools.h"
#include "runtime/visits.h"

#define LOOK_NS INT64_C(50000)	/* how often the watcher looks */
#define QUIET_NS INT64_C(50000) /* no call for so long: perhaps that was the last one for now */
enum { STREAMS = 1024 };	/* a process that has more at once than that says that it works, whether it does or not */

/* ---- of a watched process */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
#define NOBODY ((CUstream)-1)
static struct used {
	_Atomic(CUcontext) context; /* NULL: gone, and the event with it */
	_Atomic(CUstream) stream;
	CUevent event;
	_Atomic bool since; /* work was given to it since the last mark */
} used[STREAMS];
static unsigned used_count;
static _Atomic bool crowded; /* work was given to a stream without a place: its end is not known */
static _Atomic int64_t last_call_ns;
static _Atomic int64_t gap_since_ns; /* when the idle time began; 0: it does not count */
static _Atomic unsigned calling;     /* threads between the note and the end of the call: a mark may come before their work */

static void remember_gap(int64_t now)
{
	int64_t since = atomic_exchange(&gap_since_ns, 0), gap = now - since;
	if (since != 0 && gap >= SW_GAP_LEAST_NS)
		atomic_store(&sw_told->gap_ns[atomic_fetch_add(&sw_told->gaps, 1) % SW_PAGE_GAPS], gap);
}

/* Under the lock. */
static struct used *find_used(CUcontext context, CUstream stream)
{
	struct used *place = NULL;
	for (unsigned i = 0; i < used_count; i++) {
		if (used[i].context == context && used[i].stream == stream)
			return &used[i];
		/* One whose stream is gone serves again, with its event if
		 * that is of this context. */
		if (used[i].stream == NOBODY && (used[i].context == context || used[i].context == NULL))
			place = &used[i];
	}
	if (place == NULL && used_count < STREAMS) {
		place = &used[used_count];
		place->stream = NOBODY;
	}
	if (place == NULL) {
		crowded = true;
		return NULL;
	}
	if (place->context == NULL && sw_driver.event_create(&place->event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
		return NULL;
	used_count += place == &used[used_count];
	place->context = context;
	place->stream = stream;
	return place;
}

void sw_neighbours_note_request(void)
{
	int64_t now = sw_monotonic_ns();
	atomic_fetch_add(&calling, 1);
	/* In this order, which is the opposite of say_idle()'s: one of the two sees the other. */
	atomic_store(&last_call_ns, now);
	if (atomic_load(&sw_told->busy) == 0) {
		atomic_store(&sw_told->busy, 1);
		remember_gap(now);
	}
}

void sw_neighbours_note_launch(CUstream stream)
{
	sw_neighbours_note_request();
	/* Default streams go by the same name in every context. */
	CUcontext context = NULL;
	sw_driver.context_current(&context);
	static __thread struct used *last_used __attribute__((tls_model("initial-exec")));
	if (last_used != NULL && last_used->stream == stream && last_used->context == context) {
		last_used->since = true;
		return;
	}
	pthread_mutex_lock(&lock);
	struct used *entry = find_used(context, stream);
	if (entry != NULL)
		entry->since = true;
	pthread_mutex_unlock(&lock);
	last_used = entry;
}

void sw_neighbours_note_over(void)
{
	atomic_fetch_sub(&calling, 1);
}

void sw_neighbours_forget_gap(void)
{
	atomic_store(&gap_since_ns, 0);
}

void sw_neighbours_forget_stream(CUstream stream)
{
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < used_count; i++)
		if (used[i].stream == stream) {
			used[i].stream = NOBODY; /* its place stays, for pointers to it */
			used[i].since = false;
			crowded = false; /* there is a place again: one that has none yet says so with its next launch */
		}
	pthread_mutex_unlock(&lock);
}

void sw_neighbours_forget_context(CUcontext context)
{
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < used_count; i++)
		if (used[i].context == context) {
			used[i].stream = NOBODY;
			used[i].context = NULL;
			used[i].since = false;
		}
	crowded = false;
	pthread_mutex_unlock(&lock);
}

/* Marks the end of what was given so far, in every stream that got something; false: not now. */
static bool mark_ends(void)
{
	bool marked = true;
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < used_count && marked; i++) {
		CUcontext popped;
		/* Asked under the lock, which a thread that begins a capture takes after it has
		 * said so. */
		marked = atomic_load(&sw_captures) == 0;
		if (!marked || !used[i].since || sw_driver.context_push(used[i].context) != CUDA_SUCCESS)
			continue;
		/* By that name every thread has its own, and this is another thread; but the
		 * context's own stream comes after all of them. */
		CUstream stream = used[i].stream == CU_STREAM_PER_THREAD ? CU_STREAM_LEGACY : used[i].stream;
		marked = sw_driver.event_record(used[i].event, stream) == CUDA_SUCCESS;
		sw_driver.context_pop(&popped);
	}
	pthread_mutex_unlock(&lock);
	return marked;
}

static bool all_ended(void)
{
	bool ended = true;
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < used_count; i++)
		if (used[i].since)
			ended = sw_driver.event_query(used[i].event) != CUDA_ERROR_NOT_READY && ended;
	pthread_mutex_unlock(&lock);
	return ended;
}

/* Both while no context goes: not even its handle says anything of it then. */

static bool mark(void)
{
	struct sw_gate_thread *self = sw_gate_enter();
	bool visits = sw_visit_begin(), marked = visits && mark_ends();
	if (visits)
		sw_visit_end();
	sw_gate_leave(self);
	return marked;
}

static bool is_over(void)
{
	bool visits = sw_visit_begin(), over = visits && all_ended();
	if (visits)
		sw_visit_end();
	return over;
}

static void say_idle(int64_t call)
{
	bool worked = false;
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < used_count; i++)
		worked = atomic_exchange(&used[i].since, false) || worked;
	pthread_mutex_unlock(&lock);
	int64_t now = sw_monotonic_ns();
	atomic_store(&sw_told->idle_since_ns, now);
	/* From one request for memory to the next is none between two steps. */
	atomic_store(&gap_since_ns, worked ? now : 0);
	atomic_store(&sw_told->busy, 0);
	/* A thread that called in between said so before that: it is said again. */
	if (atomic_load(&last_call_ns) != call) {
		atomic_store(&sw_told->busy, 1);
		pthread_mutex_lock(&lock);
		for (unsigned i = 0; i < used_count; i++)
			used[i].since = used[i].stream != NOBODY;
		pthread_mutex_unlock(&lock);
	}
}

static void *watch(void *unused)
{
	(void)unused;
	prctl(PR_SET_NAME, "sharewell-watch");
	prctl(PR_SET_TIMERSLACK, 1);
	sw_capture_relax();
	int64_t marked_for = -1;
	for (;;) {
		nanosleep(&(struct timespec){.tv_nsec = atomic_load(&sw_page->watched) ? LOOK_NS : 100 * LOOK_NS}, NULL);
		if (atomic_load(&sw_told->busy) == 0)
			continue;
		int64_t call = atomic_load(&last_call_ns);
		if (sw_monotonic_ns() - call < QUIET_NS)
			continue;
		if (marked_for != call)
			marked_for = atomic_load(&calling) == 0 && mark() && atomic_load(&last_call_ns) == call ? call : -1;
		if (marked_for == call && !crowded && is_over())
			say_idle(call);
	}
	return NULL;
}

static _Atomic bool watching;

static void start_watcher(void)
{
	sigset_t all, before;
	pthread_t thread;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	watching = pthread_create(&thread, NULL, watch, NULL) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (watching)
		pthread_detach(thread);
}

void sw_neighbours_stand_still(void)
{
	/* A child after fork() may find the lock taken for ever. */
	if (!watching || sw_slot == NULL)
		return;
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
}

bool sw_neighbours_prepare(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, start_watcher);
	return watching;
}

/* ---- of one that yields */

/* Nothing of theirs is mapped. The owner of the file may be another user, and can shorten it. That
 * would kill by SIGBUS a process that looks at a mapping of it. */
enum { PROCESSES = 64, AT_ONCE = 16 }; /* of a neighbour's processes more than that are not looked at: each look reads each */
_Static_assert(SW_PAGE_SLOTS % AT_ONCE == 0, "slots are read in groups");

static pthread_mutex_t neighbours_lock = PTHREAD_MUTEX_INITIALIZER; /* held for a look, never while files are opened */
static struct neighbour {
	bool open;   /* false: none */
	bool unseen; /* but there is one: no file can be opened now */
	int fd;
	dev_t device;
	ino_t inode;
	unsigned count; /* its processes, as the attendant saw them last */
	uint16_t slots[PROCESSES];
} neighbours[SW_PAGE_NEIGHBOURS];

static off_t place_of(unsigned slot)
{
	return (off_t)(offsetof(struct sw_page, slots) + slot * sizeof(struct sw_page_slot));
}

/* Not pread(): threads can be cancelled in there, and locks are held. */
static bool read_slots(int fd, unsigned slot, void *ret, size_t bytes)
{
	return syscall(SYS_pread64, fd, ret, bytes, place_of(slot)) == (long)bytes;
}

static struct neighbour open_neighbour(const char *path)
{
	struct stat status;
	struct neighbour found = {0};
	/* Its owner could make processes wait that open it. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size >= (off_t)sizeof(struct sw_page))
		found = (struct neighbour){.open = true, .fd = fd, .device = status.st_dev, .inode = status.st_ino};
	else if (fd >= 0)
		close(fd);
	else
		found.unseen = (errno == EMFILE || errno == ENFILE || errno == ENOMEM) && stat(path, &status) == 0;
	return found;
}

/* The file of that name is still the one that is open: names are used again. */
static bool is_open(const struct neighbour *neighbour, const char *path)
{
	struct stat status;
	return neighbour->open && stat(path, &status) == 0 && status.st_ino == neighbour->inode && status.st_dev == neighbour->device;
}

static void find_processes(struct neighbour *neighbour)
{
	static struct sw_page_slot group[AT_ONCE]; /* the attendant's, too large for its stack */
	neighbour->count = 0;
	for (unsigned first = 0; first < SW_PAGE_SLOTS; first += AT_ONCE) {
		if (!read_slots(neighbour->fd, first, group, sizeof group))
			return;
		for (unsigned i = 0; i < AT_ONCE && neighbour->count < PROCESSES; i++)
			if (atomic_load_explicit(&group[i].pid, memory_order_relaxed) != 0)
				neighbour->slots[neighbour->count++] = (uint16_t)(first + i);
	}
}

/* Called by the attendant alone. A neighbour that is named no more, or whose page is gone, is none:
 * its last word may have been that it works. */
bool sw_neighbours_open(void)
{
	bool any = false;
	for (unsigned i = 0; i < SW_PAGE_NEIGHBOURS; i++) {
		char path[SW_PAGE_PATH];
		memcpy(path, sw_page->neighbours[i], sizeof path);
		path[sizeof path - 1] = '\0';
		struct neighbour before = neighbours[i], now = {0};
		if (path[0] != '\0')
			now = is_open(&before, path) ? before : open_neighbour(path);
		if (now.open)
			find_processes(&now);
		pthread_mutex_lock(&neighbours_lock);
		neighbours[i] = now;
		pthread_mutex_unlock(&neighbours_lock);
		if (before.open && !(now.open && now.fd == before.fd))
			close(before.fd);
		any = any || now.open || now.unseen;
	}
	return any;
}

static bool is_in_the_way(const struct sw_page_slot *slot, int64_t now, int64_t needed_ns)
{
	uint32_t state = atomic_load_explicit(&slot->state, memory_order_relaxed);
	if (state != SW_PAGE_RUNNING)
		return false;
	if (atomic_load_explicit(&slot->busy, memory_order_acquire) != 0)
		return true;
	return sw_gap_is_short(slot->gap_ns, now - atomic_load_explicit(&slot->idle_since_ns, memory_order_relaxed), needed_ns);
}

static bool has_work(const struct neighbour *neighbour, int64_t now, int64_t needed_ns)
{
	for (unsigned i = 0; i < neighbour->count; i++) {
		struct sw_page_slot slot;
		if (read_slots(neighbour->fd, neighbour->slots[i], &slot, offsetof(struct sw_page_slot, gpus)) &&
		    atomic_load_explicit(&slot.pid, memory_order_relaxed) != 0 && is_in_the_way(&slot, now, needed_ns))
			return true;
	}
	return false;
}

bool sw_neighbours_are_busy(int64_t now, int64_t needed_ns)
{
	bool busy = false;
	pthread_mutex_lock(&neighbours_lock);
	for (unsigned i = 0; i < SW_PAGE_NEIGHBOURS && !busy; i++)
		busy = neighbours[i].unseen || (neighbours[i].open && has_work(&neighbours[i], now, needed_ns));
	pthread_mutex_unlock(&neighbours_lock);
	return busy;
}
