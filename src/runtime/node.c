#include "runtime/node.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sharewell/runtime.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/tools.h"

/* So long after a refusal nothing is made ahead: a process that was refused
 * has tried again by then. */
#define REFUSED_NS INT64_C(4000000000)
/* So long in a row others are believed to make some. */
#define MAKING_NS INT64_C(3000000000)
/* So long what an agent said of other users is believed: it may be gone. */
#define OTHERS_NS INT64_C(60000000000)
enum { TRIES = 16, AHEAD_LEAVES = 8 /* one part of the bound in so many is not for what is made ahead */ };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int ledger = -1;
static char ledger_path[SW_PAGE_PATH];
static dev_t ledger_device;
static ino_t ledger_inode;
static unsigned own_slot;
static uint64_t own_bytes;
static unsigned makers; /* threads of ours that make memory */

/* System calls by number: threads can be cancelled in the library's functions, and locks are
 * held. */

static bool read_at(void *ret, size_t size, size_t place)
{
	return syscall(SYS_pread64, ledger, ret, size, (off_t)place) == (long)size;
}

static bool write_at(const void *bytes, size_t size, size_t place)
{
	return syscall(SYS_pwrite64, ledger, bytes, size, (off_t)place) == (long)size;
}

static size_t place_of(unsigned slot)
{
	return offsetof(struct sw_host_ledger, slots) + slot * sizeof(uint64_t);
}

static struct flock byte_of(unsigned slot, short type)
{
	return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)slot, .l_len = 1};
}

static bool lock_slot(unsigned slot, short type)
{
	struct flock byte = byte_of(slot, type);
	return fcntl(ledger, F_OFD_SETLK, &byte) == 0;
}

/* A program may close what it did not open, and what gets the number then is its own. */
static bool is_open(void)
{
	struct stat status;
	return ledger >= 0 && fstat(ledger, &status) == 0 && status.st_dev == ledger_device && status.st_ino == ledger_inode;
}

/* False: it is none, or none any more. */
static bool read_head(struct sw_host_ledger_head *ret_head)
{
	if (is_open() && read_at(ret_head, sizeof *ret_head, 0) && ret_head->magic == SW_HOST_LEDGER_MAGIC &&
	    ret_head->format == SW_HOST_LEDGER_FORMAT)
		return true;
	*ret_head = (struct sw_host_ledger_head){0};
	return false;
}

static void set_own(uint64_t bytes)
{
	own_bytes = bytes;
	write_at(&own_bytes, sizeof own_bytes, place_of(own_slot));
	/* Before the others are looked at, also for processors that would let the look go first. */
	atomic_thread_fence(memory_order_seq_cst);
}

/* ---- life */

static bool take_slot(void)
{
	for (unsigned i = 0; i < SW_HOST_LEDGER_SLOTS; i++) {
		own_slot = ((unsigned)getpid() + i) % SW_HOST_LEDGER_SLOTS;
		if (lock_slot(own_slot, F_WRLCK))
			return write_at(&(uint64_t){0}, sizeof(uint64_t), place_of(own_slot));
	}
	return false;
}

/* Not one that makes a process that opens it wait, and not under a number to which a program writes
 * that has closed its output. */
static int open_at(const char *path)
{
	int low = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (low < 0 || low > STDERR_FILENO)
		return low;
	int fd = fcntl(low, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	syscall(SYS_close, low);
	return fd;
}

void sw_node_open(const char *path)
{
	struct stat status;
	struct sw_host_ledger_head head;
	ledger = path[0] == '\0' || strlen(path) >= sizeof ledger_path ? -1 : open_at(path);
	if (ledger < 0)
		return;
	memmove(ledger_path, path, strlen(path) + 1);
	bool found = fstat(ledger, &status) == 0 && S_ISREG(status.st_mode) && status.st_size >= (off_t)sizeof(struct sw_host_ledger);
	own_bytes = 0;
	ledger_device = found ? status.st_dev : 0;
	ledger_inode = found ? status.st_ino : 0;
	if (found && read_head(&head) && take_slot())
		return;
	syscall(SYS_close, ledger);
	ledger = -1;
}

void sw_node_forget(void)
{
	/* Another thread of the parent may have held the lock; here is none. */
	if (is_open())
		close(ledger);
	ledger = -1;
	makers = 0;
}

/* The owner of the file may remove it, and some systems do when the owner logs out. If there is
 * another by now, that counts. */
static void follow(void)
{
	struct stat status;
	if (!is_open() || fstat(ledger, &status) != 0 || status.st_nlink > 0)
		return;
	const int old = ledger;
	const unsigned old_slot = own_slot;
	const uint64_t bytes = own_bytes;
	sw_node_open(ledger_path);
	if (ledger >= 0) {
		syscall(SYS_close, old);
		set_own(bytes);
		if (makers > 0)
			lock_slot(SW_HOST_LEDGER_SLOTS, F_RDLCK);
		return;
	}
	ledger = old;
	ledger_device = status.st_dev;
	ledger_inode = status.st_ino;
	own_slot = old_slot;
	own_bytes = bytes;
}

/* ---- what there is */

static uint64_t read_line(const char *text, const char *name, uint64_t otherwise)
{
	const char *line = strstr(text, name);
	return line == NULL ? otherwise : (uint64_t)strtoull(line + strlen(name), NULL, 10) << 10;
}

/* Whether the machine has so much to spare right now, as far as it says. By default a
 * part of all must be left. */
static bool machine_has(size_t bytes, const struct sw_host_ledger_head *head)
{
	char text[512];
	int fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/meminfo", O_RDONLY | O_CLOEXEC);
	long size = fd < 0 ? -1 : syscall(SYS_read, fd, text, sizeof text - 1);
	if (fd >= 0)
		syscall(SYS_close, fd);
	text[size > 0 ? size : 0] = '\0';
	uint64_t available = read_line(text, "MemAvailable:", UINT64_MAX), all = read_line(text, "MemTotal:", 0);
	uint64_t reserve = head->magic == 0 ? all / SW_HOST_LEDGER_RESERVE : head->reserve_bytes;
	return available >= bytes && available - bytes >= reserve;
}

static uint64_t slots[SW_HOST_LEDGER_SLOTS]; /* as they were read last, under the lock */

/* What all hold; a file that cannot be read says nothing. */
static uint64_t held_by_all(void)
{
	uint64_t sum = 0;
	if (!read_at(slots, sizeof slots, place_of(0)))
		return 0;
	for (unsigned i = 0; i < SW_HOST_LEDGER_SLOTS; i++)
		sum = sum + slots[i] >= sum ? sum + slots[i] : UINT64_MAX;
	return sum;
}

/* Takes back what processes that are gone had. */
static void reap(void)
{
	for (unsigned i = 0; i < SW_HOST_LEDGER_SLOTS; i++) {
		if (i == own_slot || slots[i] == 0 || !lock_slot(i, F_WRLCK))
			continue;
		/* The lock is held while it is cleared: no other process takes the slot
		 * meanwhile. */
		write_at(&(uint64_t){0}, sizeof(uint64_t), place_of(i));
		lock_slot(i, F_UNLCK);
	}
}

/* ---- taking it; under the lock */

static bool was_refused(const struct sw_host_ledger_head *head)
{
	int64_t since = sw_monotonic_ns() - head->refused_ns;
	return head->refused_ns > 0 && since >= 0 && since < REFUSED_NS;
}

/* For what can never be had, no process need give back anything. */
static void note_refusal(size_t bytes, const struct sw_host_ledger_head *head)
{
	int64_t now = sw_monotonic_ns();
	if (bytes <= head->most_bytes)
		write_at(&now, sizeof now, offsetof(struct sw_host_ledger, head.refused_ns));
}

/* What programs of other users hold. */
static uint64_t held_by_others(const struct sw_host_ledger_head *head)
{
	int64_t since = sw_monotonic_ns() - head->others_ns;
	return head->others_ns > 0 && since >= 0 && since < OTHERS_NS ? head->others_bytes : 0;
}

/* What our user's programs may hold together. */
static uint64_t most_for(const struct sw_host_ledger_head *head, bool ahead)
{
	uint64_t most = ahead ? head->most_bytes - head->most_bytes / AHEAD_LEAVES : head->most_bytes;
	uint64_t others = held_by_others(head);
	return others < most ? most - others : 0;
}

/* Whether so much more would pass the bound, once only what processes have counts. */
static bool is_beyond(size_t bytes, uint64_t most)
{
	uint64_t held = held_by_all();
	if (held <= most && most - held >= bytes)
		return false;
	reap();
	held = held_by_all();
	return held > most || most - held < bytes;
}

/* Ours first, then the sum: two that take at once may both be refused, never both allowed. Then
 * they try again, at different moments. */
static bool raise_own(size_t bytes, uint64_t most)
{
	for (unsigned i = 0; i < TRIES && !is_beyond(bytes, most); i++) {
		set_own(own_bytes + bytes);
		if (held_by_all() <= most)
			return true;
		set_own(own_bytes - bytes);
		for (unsigned spins = (unsigned)getpid() % 8; spins > 0; spins--)
			sched_yield();
	}
	return false;
}

static bool take(size_t bytes, bool ahead)
{
	struct sw_host_ledger_head head;
	bool shared = read_head(&head);
	if (ahead && was_refused(&head))
		return false;
	bool allowed = machine_has(bytes, &head) && (!shared || raise_own(bytes, most_for(&head, ahead)));
	if (shared && !allowed && !ahead)
		note_refusal(bytes, &head);
	return allowed;
}

bool sw_node_take(size_t bytes, bool ahead)
{
	pthread_mutex_lock(&lock);
	follow();
	bool taken = take(bytes, ahead);
	pthread_mutex_unlock(&lock);
	return taken;
}

void sw_node_give(size_t bytes)
{
	pthread_mutex_lock(&lock);
	if (is_open())
		set_own(own_bytes > bytes ? own_bytes - bytes : 0);
	pthread_mutex_unlock(&lock);
}

bool sw_node_has_room(size_t bytes)
{
	struct sw_host_ledger_head head;
	pthread_mutex_lock(&lock);
	follow();
	bool shared = read_head(&head);
	bool room = machine_has(bytes, &head) && (!shared || !is_beyond(bytes, most_for(&head, false)));
	if (shared && !room)
		note_refusal(bytes, &head);
	pthread_mutex_unlock(&lock);
	return room;
}

bool sw_node_is_short(void)
{
	struct sw_host_ledger_head head;
	pthread_mutex_lock(&lock);
	follow();
	bool is_short = read_head(&head) && (was_refused(&head) || is_beyond(0, most_for(&head, true)));
	pthread_mutex_unlock(&lock);
	return is_short;
}

/* ---- making it */

void sw_node_begin_making(void)
{
	pthread_mutex_lock(&lock);
	if (makers++ == 0 && is_open())
		lock_slot(SW_HOST_LEDGER_SLOTS, F_RDLCK);
	pthread_mutex_unlock(&lock);
}

void sw_node_end_making(void)
{
	pthread_mutex_lock(&lock);
	if (--makers == 0 && is_open())
		lock_slot(SW_HOST_LEDGER_SLOTS, F_UNLCK);
	pthread_mutex_unlock(&lock);
}

bool sw_node_others_make(void)
{
	static int64_t since_ns, looked_ns;
	struct flock byte = byte_of(SW_HOST_LEDGER_SLOTS, F_WRLCK);
	pthread_mutex_lock(&lock);
	int64_t now = sw_monotonic_ns();
	bool busy = is_open() && fcntl(ledger, F_OFD_GETLK, &byte) == 0 && byte.l_type != F_UNLCK;
	/* What was between two looks that are far apart is not known. */
	if (!busy || now - looked_ns >= MAKING_NS)
		since_ns = now;
	looked_ns = now;
	busy = busy && now - since_ns < MAKING_NS;
	pthread_mutex_unlock(&lock);
	return busy;
}
