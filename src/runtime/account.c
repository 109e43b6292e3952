#include "runtime/account.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/driver.h"
#include "runtime/node.h"

struct sw_page *sw_page;
struct sw_page_slot *sw_slot;
struct sw_page_slot *sw_told;

static struct sw_page *told_page; /* NULL: what we tell others stands in our page */
static int page_fd = -1;
static dev_t page_device;
static ino_t page_inode;
enum { DEVICES = 64, TRIES = 16 };
static signed char gpu_of_device[DEVICES];

/* A program may close what it did not open, and what gets the number then is its own. */
static bool is_open(void)
{
	struct stat status;
	return page_fd >= 0 && fstat(page_fd, &status) == 0 && status.st_dev == page_device && status.st_ino == page_inode;
}

static struct flock byte(unsigned slot)
{
	return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 1 + (off_t)slot, .l_len = 1};
}

static void clear(struct sw_page_slot *slot)
{
	for (unsigned i = 0; i < SW_PAGE_GPUS; i++) {
		atomic_store(&slot->gpus[i].charged_bytes, 0);
		atomic_store(&slot->gpus[i].fixed_bytes, 0);
		atomic_store(&slot->gpus[i].host_bytes, 0);
		atomic_store(&slot->gpus[i].peak_bytes, 0);
	}
	atomic_store(&slot->state, SW_PAGE_UNUSED);
	atomic_store(&slot->pid, 0);
	if (told_page != NULL)
		atomic_store(&told_page->slots[slot - sw_page->slots].pid, 0);
}

/* Takes back what processes that are gone had. */
static void reap(void)
{
	if (!is_open())
		return;
	for (unsigned i = 0; i < SW_PAGE_SLOTS; i++) {
		struct sw_page_slot *slot = &sw_page->slots[i];
		struct flock lock = byte(i);
		if (slot == sw_slot || atomic_load(&slot->pid) == 0)
			continue;
		/* The lock is held while it is cleared: no other process takes the slot
		 * meanwhile. */
		if (fcntl(page_fd, F_OFD_SETLK, &lock) != 0)
			continue;
		clear(slot);
		lock.l_type = F_UNLCK;
		fcntl(page_fd, F_OFD_SETLK, &lock);
	}
}

/* From here on it is seen by others. */
static void tell_at(unsigned number)
{
	sw_told = sw_slot;
	if (told_page == NULL)
		return;
	sw_told = &told_page->slots[number];
	memset(sw_told, 0, sizeof *sw_told);
	atomic_store(&sw_told->state, SW_PAGE_RUNNING);
	atomic_store(&sw_told->pid, getpid());
}

static bool take_slot(void)
{
	unsigned first = (unsigned)getpid() % SW_PAGE_SLOTS;
	for (unsigned i = 0; i < SW_PAGE_SLOTS; i++) {
		unsigned number = (first + i) % SW_PAGE_SLOTS;
		struct flock lock = byte(number);
		if (fcntl(page_fd, F_OFD_SETLK, &lock) != 0)
			continue;
		struct sw_page_slot *slot = &sw_page->slots[number];
		memset(slot, 0, sizeof *slot);
		atomic_store(&slot->state, SW_PAGE_RUNNING);
		atomic_store(&slot->pid, getpid());
		sw_slot = slot;
		tell_at(number);
		return true;
	}
	return false;
}

/* NULL: it is none. The file stays open. */
static struct sw_page *map_page(int fd, int protection)
{
	struct stat status;
	if (fd < 0 || fstat(fd, &status) != 0 || status.st_size < (off_t)sizeof(struct sw_page))
		return NULL;
	struct sw_page *page = mmap(NULL, sizeof *page, protection, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return NULL;
	if (page->magic == SW_PAGE_MAGIC && page->format == SW_PAGE_FORMAT && page->gpu_count <= SW_PAGE_GPUS)
		return page;
	munmap(page, sizeof *page);
	return NULL;
}

/* There is none where all jobs are of one user. */
static struct sw_page *map_told(const char *path)
{
	char told[PATH_MAX];
	int fd = (size_t)snprintf(told, sizeof told, "%s" SW_PAGE_TOLD, path) < sizeof told ? open(told, O_RDWR | O_CLOEXEC | O_NOFOLLOW)
											    : -1;
	struct sw_page *mapped = map_page(fd, PROT_READ | PROT_WRITE);
	if (fd >= 0)
		close(fd);
	return mapped;
}

static const char *page_path(void)
{
	const char *path = getenv(SW_PAGE_ENV);
	return path == NULL || path[0] == '\0' ? NULL : path;
}

static const struct sw_page *peeked;

static void peek(void)
{
	const char *path = page_path();
	int fd = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
	peeked = map_page(fd, PROT_READ);
	if (fd >= 0)
		close(fd);
}

const struct sw_page *sw_account_peek(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	if (sw_page != NULL)
		return sw_page;
	pthread_once(&once, peek);
	return peeked;
}

static void find_gpus(void)
{
	memset(gpu_of_device, -1, sizeof gpu_of_device);
	int count = 0;
	sw_driver.device_count(&count);
	for (int device = 0; device < count && device < DEVICES; device++) {
		CUuuid uuid;
		CUresult (*ask)(CUuuid *, CUdevice) = sw_driver.device_uuid != NULL ? sw_driver.device_uuid : sw_driver.device_uuid_v1;
		if (ask == NULL || ask(&uuid, device) != CUDA_SUCCESS)
			continue;
		for (uint32_t gpu = 0; gpu < sw_page->gpu_count; gpu++)
			if (memcmp(uuid.bytes, sw_page->gpus[gpu].uuid, sizeof uuid.bytes) == 0)
				gpu_of_device[device] = (signed char)gpu;
	}
}

/* Not under a number to which a program writes that has closed its output. */
static int open_page(const char *path)
{
	int low = open(path, O_RDWR | O_CLOEXEC);
	if (low < 0 || low > STDERR_FILENO)
		return low;
	int fd = fcntl(low, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	close(low);
	return fd;
}

static void unmap_told(void)
{
	if (told_page != NULL)
		munmap(told_page, sizeof *told_page);
	told_page = NULL;
	sw_told = NULL;
}

bool sw_account_open(void)
{
	const char *path = page_path();
	struct stat status;
	int fd = path == NULL ? -1 : open_page(path);
	struct sw_page *page = map_page(fd, PROT_READ | PROT_WRITE);
	if (page == NULL || fstat(fd, &status) != 0) {
		if (page != NULL)
			munmap(page, sizeof *page);
		if (fd >= 0)
			close(fd);
		return false;
	}
	sw_page = page;
	page_fd = fd;
	page_device = status.st_dev;
	page_inode = status.st_ino;
	told_page = map_told(path);
	find_gpus();
	if (take_slot()) {
		char ledger[SW_PAGE_PATH];
		memcpy(ledger, sw_page->host_ledger, sizeof ledger);
		ledger[sizeof ledger - 1] = '\0';
		sw_node_open(ledger);
		return true;
	}
	unmap_told();
	munmap(sw_page, sizeof *sw_page);
	close(page_fd);
	sw_page = NULL;
	page_fd = -1;
	return false;
}

void sw_account_forget(void)
{
	sw_node_forget();
	unmap_told();
	/* The mapping holds the file open as well, and with it the lock that says
	 * that the parent lives. */
	if (sw_page != NULL)
		munmap(sw_page, sizeof *sw_page);
	if (is_open())
		close(page_fd);
	page_fd = -1;
	sw_page = NULL;
	sw_slot = NULL;
}

/* The program may have changed its environment since. */
bool sw_account_path(char *path, size_t size)
{
	char link[32];
	snprintf(link, sizeof link, "/proc/self/fd/%d", page_fd);
	ssize_t length = is_open() ? readlink(link, path, size) : -1;
	if (length <= 0 || (size_t)length >= size)
		return false;
	path[length] = '\0';
	return true;
}

static pthread_mutex_t measuring = PTHREAD_MUTEX_INITIALIZER;

bool sw_account_lock(void)
{
	struct flock lock = byte(SW_PAGE_SLOTS);
	if (pthread_mutex_trylock(&measuring) != 0)
		return false;
	if (is_open() && fcntl(page_fd, F_OFD_SETLK, &lock) == 0)
		return true;
	pthread_mutex_unlock(&measuring);
	return false;
}

void sw_account_unlock(void)
{
	struct flock lock = byte(SW_PAGE_SLOTS);
	lock.l_type = F_UNLCK;
	if (is_open())
		fcntl(page_fd, F_OFD_SETLK, &lock);
	pthread_mutex_unlock(&measuring);
}

bool sw_account_is_coordinated(void)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
	return is_open() && fcntl(page_fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

bool sw_account_is_deserted(void)
{
	static _Atomic bool seen;
	bool there = sw_account_is_coordinated();
	if (there)
		seen = true;
	return seen && !there;
}

int sw_account_gpu(CUdevice device)
{
	return device >= 0 && device < DEVICES ? gpu_of_device[device] : -1;
}

/* ---- device memory */

uint64_t sw_account_held(const struct sw_page *page, uint32_t gpu)
{
	uint64_t sum = 0;
	for (unsigned i = 0; i < SW_PAGE_SLOTS; i++)
		sum += atomic_load(&page->slots[i].gpus[gpu].charged_bytes);
	return sum;
}

static uint64_t held_by_job(int gpu)
{
	return sw_account_held(sw_page, (uint32_t)gpu);
}

uint64_t sw_account_limit(int gpu)
{
	return gpu < 0 ? SW_PAGE_NO_LIMIT : atomic_load(&sw_page->gpus[gpu].limit_bytes);
}

uint64_t sw_account_room(int gpu)
{
	uint64_t limit = sw_account_limit(gpu);
	if (limit == SW_PAGE_NO_LIMIT)
		return limit;
	uint64_t held = held_by_job(gpu);
	return held < limit ? limit - held : 0;
}

static void raise_peak(struct sw_page_use *use)
{
	uint64_t now = atomic_load(&use->charged_bytes), peak = atomic_load(&use->peak_bytes);
	while (now > peak && !atomic_compare_exchange_weak(&use->peak_bytes, &peak, now))
		;
}

void sw_account_raise_peaks(void)
{
	for (unsigned gpu = 0; gpu < SW_PAGE_GPUS; gpu++)
		raise_peak(&sw_slot->gpus[gpu]);
}

bool sw_account_take(int gpu, size_t bytes, bool fixed)
{
	if (gpu < 0)
		return true;
	uint64_t limit = sw_account_limit(gpu);
	/* Ours first, then the sum: two that take at once may both be refused, never both allowed.
	 * Then they try again, at different moments. */
	for (unsigned i = 0; i < TRIES; i++) {
		atomic_fetch_add(&sw_slot->gpus[gpu].charged_bytes, bytes);
		bool allowed = limit == SW_PAGE_NO_LIMIT || held_by_job(gpu) <= limit;
		if (allowed) {
			if (fixed)
				atomic_fetch_add(&sw_slot->gpus[gpu].fixed_bytes, bytes);
			return true;
		}
		atomic_fetch_sub(&sw_slot->gpus[gpu].charged_bytes, bytes);
		if (i == 0)
			reap();
		for (unsigned spins = (unsigned)getpid() % 8; spins > 0; spins--)
			sched_yield();
	}
	return false;
}

void sw_account_note(int gpu, size_t bytes, bool fixed)
{
	if (gpu < 0)
		return;
	struct sw_page_use *use = &sw_slot->gpus[gpu];
	atomic_fetch_add(&use->charged_bytes, bytes);
	if (fixed)
		atomic_fetch_add(&use->fixed_bytes, bytes);
	raise_peak(use);
}

void sw_account_give(int gpu, size_t bytes, bool fixed)
{
	if (gpu < 0)
		return;
	atomic_fetch_sub(&sw_slot->gpus[gpu].charged_bytes, bytes);
	if (fixed)
		atomic_fetch_sub(&sw_slot->gpus[gpu].fixed_bytes, bytes);
}

/* ---- host memory */

static uint64_t held_on_host(void)
{
	uint64_t held = 0;
	for (unsigned i = 0; i < SW_PAGE_SLOTS; i++)
		for (unsigned j = 0; j < SW_PAGE_GPUS; j++)
			held += atomic_load(&sw_page->slots[i].gpus[j].host_bytes);
	return held;
}

uint64_t sw_account_host_room(void)
{
	uint64_t held = held_on_host(), budget = atomic_load(&sw_page->host_budget_bytes);
	return held < budget ? budget - held : 0;
}

bool sw_account_take_host(int gpu, size_t bytes)
{
	int own = gpu < 0 ? 0 : gpu;
	atomic_fetch_add(&sw_slot->gpus[own].host_bytes, bytes);
	if (held_on_host() <= atomic_load(&sw_page->host_budget_bytes))
		return true;
	atomic_fetch_sub(&sw_slot->gpus[own].host_bytes, bytes);
	return false;
}

void sw_account_give_host(int gpu, size_t bytes)
{
	atomic_fetch_sub(&sw_slot->gpus[gpu < 0 ? 0 : gpu].host_bytes, bytes);
}
