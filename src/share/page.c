#include "share/page.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/now.h"

struct sw_share_page {
	struct sw_page *shared; /* the file itself, or a copy of it */
	int fd;
	int told; /* the file of what the job tells jobs of other users; -1: there is none */
	/* the beginning of the file where `shared` is a copy: for futexes, never to be
	 * touched; NULL: it is not */
	char *head;
};

#define HEAD_BYTES 4096u
_Static_assert(offsetof(struct sw_page, changes) < HEAD_BYTES, "the futexes lie in the head");
/* The job's user owns these files, and could fill with them the file system that all pages lie
 * in. A page of no version is larger than this. */
#define MOST_FILE_BYTES ((off_t)4 * (off_t)sizeof(struct sw_page))

/* ---- life */

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* "GPU-" and 32 hexadecimal digits with dashes anywhere between them. */
bool sw_share_uuid(const char *text, uint8_t ret_bytes[16])
{
	unsigned digits = 0;
	if (strncmp(text, "GPU-", 4) == 0)
		text += 4;
	for (; *text != '\0'; text++) {
		int value = hex_value(*text);
		if (*text == '-')
			continue;
		if (value < 0 || digits == 32)
			return false;
		ret_bytes[digits / 2] = (uint8_t)(digits % 2 == 0 ? value << 4 : ret_bytes[digits / 2] | value);
		digits++;
	}
	return digits == 32;
}

static int cannot(struct sw_err *err, const char *verb, const char *path)
{
	int error = errno;
	sw_err_set(err, error == ENOENT ? SW_ENOTFOUND : SW_EIO, "cannot %s the GPU page '%s'", verb, path);
	sw_err_detail(err, "%s", strerror(error));
	return error == ENOENT ? SW_ENOTFOUND : SW_EIO;
}

static int map(int fd, const char *path, struct sw_share_page **ret_page, struct sw_err *err)
{
	struct sw_share_page *page = calloc(1, sizeof *page);
	if (page == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	page->shared = mmap(NULL, sizeof *page->shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page->shared == MAP_FAILED) {
		free(page);
		return cannot(err, "map", path);
	}
	page->fd = fd;
	page->told = -1;
	*ret_page = page;
	return 0;
}

/* A file of a page's size, which no other process can open yet; -1: `errno` says why. All of it
 * now: a process that found the disk full while it writes into its page would die. */
static int make_file(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int error = fd < 0 ? errno : posix_fallocate(fd, 0, sizeof(struct sw_page));
	if (fd >= 0 && error != 0) {
		close(fd);
		unlink(path);
	}
	errno = error;
	return error == 0 ? fd : -1;
}

int sw_share_page_new(const char *path, const char *const *uuids, size_t count, struct sw_share_page **ret_page, struct sw_err *err)
{
	uint8_t bytes[SW_PAGE_GPUS][16];
	if (count > SW_PAGE_GPUS) {
		sw_err_set(err, SW_ELIMIT, "%zu GPUs for one job's GPU page", count);
		sw_err_detail(err, "at most %u are supported", SW_PAGE_GPUS);
		return SW_ELIMIT;
	}
	for (size_t i = 0; i < count; i++)
		if (!sw_share_uuid(uuids[i], bytes[i]))
			return sw_err_set(err, SW_EINPUT, "'%.60s' is not the UUID of a GPU", uuids[i]);
	int fd = make_file(path);
	if (fd < 0)
		return cannot(err, "make", path);
	int r = map(fd, path, ret_page, err);
	if (r < 0) {
		close(fd);
		unlink(path);
		return r;
	}
	struct sw_page *shared = (*ret_page)->shared;
	shared->format = SW_PAGE_FORMAT;
	shared->gpu_count = (uint32_t)count;
	for (size_t i = 0; i < count; i++) {
		memcpy(shared->gpus[i].uuid, bytes[i], sizeof bytes[i]);
		atomic_store(&shared->gpus[i].limit_bytes, SW_PAGE_NO_LIMIT);
	}
	/* Last: before it is there, this is not taken for a page. */
	shared->magic = SW_PAGE_MAGIC;
	return 0;
}

int sw_share_page_new_told(const char *path, uid_t uid, gid_t gid, struct sw_err *err)
{
	const struct {
		uint64_t magic;
		uint32_t format, gpu_count;
	} head = {SW_PAGE_MAGIC, SW_PAGE_FORMAT, 0};
	char told[PATH_MAX];
	if (!sw_share_page_told(path, told))
		return sw_err_set(err, SW_ELIMIT, "the path of the GPU page is too long");
	int fd = make_file(told);
	if (fd < 0)
		return cannot(err, "make", told);
	bool made = pwrite(fd, &head, sizeof head, 0) == (ssize_t)sizeof head && (uid == geteuid() || fchown(fd, uid, gid) == 0);
	int r = made ? 0 : cannot(err, "make", told);
	if (!made)
		unlink(told);
	close(fd);
	return r;
}

bool sw_share_page_told(const char *path, char told[PATH_MAX])
{
	return snprintf(told, PATH_MAX, "%s" SW_PAGE_TOLD, path) < PATH_MAX;
}

static int not_known(const char *path, struct sw_err *err)
{
	sw_err_set(err, SW_EINPUT, "'%s' is not a GPU page that this program knows", path);
	sw_err_hint(err, "It may have been made by another version of Sharewell.");
	return SW_EINPUT;
}

/* -1: it is no file, or none that can be had. The job's user may have put anything there, also
 * what makes a program wait that opens it. */
static int open_file(const char *path)
{
	struct stat status;
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)))
		return fd;
	close(fd);
	errno = EINVAL;
	return -1;
}

static int open_told(const char *path)
{
	char told[PATH_MAX];
	return sw_share_page_told(path, told) ? open_file(told) : -1;
}

int sw_share_page_open_mapped(const char *path, struct sw_share_page **ret_page, struct sw_err *err)
{
	struct stat status;
	int fd = open_file(path);
	if (fd < 0)
		return cannot(err, "open", path);
	struct sw_share_page *page = NULL;
	bool large = fstat(fd, &status) == 0 && status.st_size >= (off_t)sizeof(struct sw_page);
	int r = large ? map(fd, path, &page, err) : not_known(path, err);
	if (r < 0 || page == NULL) {
		close(fd);
		return r;
	}
	if (!sw_share_page_refresh(page)) {
		sw_share_page_close(page);
		return not_known(path, err);
	}
	page->told = open_told(path);
	*ret_page = page;
	return 0;
}

int sw_share_page_open(const char *path, struct sw_share_page **ret_page, struct sw_err *err)
{
	SW_CLEANUP(sw_share_page_closep) struct sw_share_page *page = calloc(1, sizeof *page);
	if (page == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	page->shared = MAP_FAILED;
	page->told = -1;
	page->fd = open_file(path);
	if (page->fd < 0)
		return cannot(err, "open", path);
	page->shared = mmap(NULL, sizeof *page->shared, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *head = mmap(NULL, HEAD_BYTES, PROT_READ, MAP_SHARED, page->fd, 0);
	page->head = head != MAP_FAILED ? head : NULL;
	if (page->shared == MAP_FAILED || head == MAP_FAILED)
		return cannot(err, "map", path);
	if (!sw_share_page_refresh(page))
		return not_known(path, err);
	page->told = open_told(path);
	*ret_page = SW_TAKE(page);
	return 0;
}

/* A file that its owner has made so large that there may be no room for others. */
static void cut(int fd)
{
	struct stat status;
	if (fd >= 0 && fstat(fd, &status) == 0 && status.st_size > MOST_FILE_BYTES)
		(void)!ftruncate(fd, MOST_FILE_BYTES);
}

static bool read_all(int fd, char *bytes, size_t size)
{
	for (size_t used = 0; used < size;) {
		ssize_t n = pread(fd, bytes + used, size - used, (off_t)used);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		used += (size_t)n;
	}
	return true;
}

bool sw_share_page_refresh(struct sw_share_page *page)
{
	struct sw_page *shared = page->shared;
	if (page->head != NULL) {
		cut(page->fd);
		cut(page->told);
	}
	bool good = page->head == NULL || read_all(page->fd, (char *)shared, sizeof *shared);
	good = good && shared->magic == SW_PAGE_MAGIC && shared->format == SW_PAGE_FORMAT && shared->gpu_count <= SW_PAGE_GPUS;
	if (!good && page->head != NULL)
		memset((void *)shared, 0, sizeof *shared);
	return good;
}

void sw_share_page_close(struct sw_share_page *page)
{
	if (page == NULL)
		return;
	if (page->shared != MAP_FAILED)
		munmap(page->shared, sizeof *page->shared);
	if (page->head != NULL)
		munmap(page->head, HEAD_BYTES);
	if (page->fd >= 0)
		close(page->fd);
	if (page->told >= 0)
		close(page->told);
	free(page);
}

int sw_share_page_gpu(struct sw_share_page *page, const char *uuid)
{
	uint8_t bytes[16];
	for (uint32_t i = 0; sw_share_uuid(uuid, bytes) && i < page->shared->gpu_count && i < SW_PAGE_GPUS; i++)
		if (memcmp(page->shared->gpus[i].uuid, bytes, sizeof bytes) == 0)
			return (int)i;
	return -1;
}

/* ---- wishes */

static long futex(_Atomic uint32_t *word, int operation, uint32_t value, const struct timespec *timeout)
{
	return syscall(SYS_futex, word, operation, value, timeout, NULL, 0);
}

static off_t place_of(const struct sw_share_page *page, const void *field)
{
	off_t place = (const char *)field - (const char *)page->shared;
	assert(place >= 0 && place < (off_t)sizeof *page->shared);
	return place;
}

/* Where the processes wait for this word. */
static _Atomic uint32_t *futex_of(const struct sw_share_page *page, _Atomic uint32_t *word)
{
	assert(place_of(page, word) < (off_t)HEAD_BYTES);
	return page->head == NULL ? word : (_Atomic uint32_t *)(void *)(page->head + place_of(page, word));
}

/* What was stored into a field reaches the file, if that is another place. The kernel writes an
 * aligned word in one piece. */
static void carry(const struct sw_share_page *page, const void *field, size_t size)
{
	assert(size <= sizeof *page->shared - (size_t)place_of(page, field));
	if (page->head != NULL)
		(void)!pwrite(page->fd, field, size, place_of(page, field));
}

void sw_share_page_put(struct sw_share_page *page, const void *field, size_t size)
{
	carry(page, field, size);
}

static void store_u32(struct sw_share_page *page, _Atomic uint32_t *field, uint32_t value)
{
	atomic_store(field, value);
	carry(page, field, sizeof *field);
}

static void store_u64(struct sw_share_page *page, _Atomic uint64_t *field, uint64_t value)
{
	atomic_store(field, value);
	carry(page, field, sizeof *field);
}

static uint32_t wish(struct sw_share_page *page)
{
	_Atomic uint32_t *serial = &page->shared->serial;
	uint32_t number;
	if (page->head == NULL) {
		number = atomic_fetch_add(serial, 1) + 1;
	} else {
		/* No other process counts: one coordinator, and the processes only read. */
		uint32_t before = atomic_load(serial);
		(void)!pread(page->fd, &before, sizeof before, place_of(page, serial));
		number = before + 1;
		store_u32(page, serial, number);
	}
	futex(futex_of(page, serial), FUTEX_WAKE, INT_MAX, NULL);
	return number;
}

uint32_t sw_share_page_limit(struct sw_share_page *page, uint32_t gpu, uint64_t bytes)
{
	if (gpu < SW_PAGE_GPUS)
		store_u64(page, &page->shared->gpus[gpu].limit_bytes, bytes);
	return wish(page);
}

uint32_t sw_share_page_host_budget(struct sw_share_page *page, uint64_t bytes)
{
	store_u64(page, &page->shared->host_budget_bytes, bytes);
	return wish(page);
}

uint32_t sw_share_page_want(struct sw_share_page *page, enum sw_page_want want)
{
	store_u32(page, &page->shared->want, want);
	return wish(page);
}

void sw_share_page_hurry(struct sw_share_page *page, bool urgent)
{
	atomic_store(&page->shared->urgent, urgent);
	carry(page, &page->shared->urgent, sizeof page->shared->urgent);
}

uint32_t sw_share_page_share(struct sw_share_page *page, uint32_t milli)
{
	store_u32(page, &page->shared->share_milli, milli);
	return wish(page);
}

uint32_t sw_share_page_watch(struct sw_share_page *page, bool watched)
{
	store_u32(page, &page->shared->watched, watched);
	return wish(page);
}

uint32_t sw_share_page_yield(struct sw_share_page *page, const char *const *paths, size_t count)
{
	size_t used = 0;
	for (size_t i = 0; i < count && used < SW_PAGE_NEIGHBOURS; i++)
		if (strlen(paths[i]) < SW_PAGE_PATH) {
			char *place = page->shared->neighbours[used++];
			memset(place, 0, SW_PAGE_PATH);
			memcpy(place, paths[i], strlen(paths[i]));
		}
	memset(page->shared->neighbours + used, 0, (SW_PAGE_NEIGHBOURS - used) * SW_PAGE_PATH);
	carry(page, page->shared->neighbours, sizeof page->shared->neighbours);
	store_u32(page, &page->shared->yields, used > 0);
	return wish(page);
}

uint32_t sw_share_page_tell(struct sw_share_page *page)
{
	return wish(page);
}

int sw_share_page_fd(const struct sw_share_page *page)
{
	return page->fd;
}

struct sw_page *sw_share_page_shared(struct sw_share_page *page)
{
	return page->shared;
}

bool sw_share_page_is_kept(const struct sw_share_page *page)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
	return fcntl(page->fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

bool sw_share_page_keep(struct sw_share_page *page)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
	return fcntl(page->fd, F_OFD_SETLK, &lock) == 0;
}

/* Whether the process of this slot is gone: its lock is free. Then the slot is cleared. */
static bool strike_out(struct sw_share_page *page, uint32_t number)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 1 + (off_t)number, .l_len = 1};
	assert(number < SW_PAGE_SLOTS);
	if (fcntl(page->fd, F_OFD_SETLK, &lock) != 0)
		return false;
	struct sw_page_slot *slot = &page->shared->slots[number];
	for (unsigned i = 0; i < SW_PAGE_GPUS; i++) {
		atomic_store(&slot->gpus[i].charged_bytes, 0);
		atomic_store(&slot->gpus[i].fixed_bytes, 0);
		atomic_store(&slot->gpus[i].host_bytes, 0);
	}
	carry(page, slot->gpus, sizeof slot->gpus);
	store_u32(page, &slot->state, SW_PAGE_UNUSED);
	atomic_store(&slot->pid, 0);
	carry(page, &slot->pid, sizeof slot->pid);
	/* Its last word may have been that it works. */
	if (page->told >= 0)
		(void)!pwrite(page->told, &slot->pid, sizeof slot->pid, place_of(page, &slot->pid));
	lock.l_type = F_UNLCK;
	fcntl(page->fd, F_OFD_SETLK, &lock);
	return true;
}

/* Numbers go round: "met" is at or behind. */
bool sw_share_page_is_met(struct sw_share_page *page, uint32_t number)
{
	if (page->head != NULL && !sw_share_page_refresh(page))
		return false;
	for (uint32_t i = 0; i < SW_PAGE_SLOTS; i++) {
		const struct sw_page_slot *slot = &page->shared->slots[i];
		if (atomic_load(&slot->pid) != 0 && (int32_t)(atomic_load(&slot->done_serial) - number) < 0 && !strike_out(page, i))
			return false;
	}
	return true;
}

bool sw_share_page_wait(struct sw_share_page *page, uint32_t number, int64_t timeout_ns)
{
	int64_t until = sw_now_monotonic_ns() + timeout_ns;
	for (;;) {
		uint32_t changes = atomic_load(&page->shared->changes);
		if (sw_share_page_is_met(page, number))
			return true;
		int64_t left = until - sw_now_monotonic_ns();
		if (left <= 0)
			return false;
		/* A process that dies wakes no other. */
		left = left < 50000000 ? left : 50000000;
		struct timespec most = {.tv_nsec = left};
		if (futex(futex_of(page, &page->shared->changes), FUTEX_WAIT, changes, &most) != 0 && errno == EFAULT)
			nanosleep(&most, NULL); /* the job has cut it off */
	}
}

#define DOOR_LOOK_NS 10000000

static bool lock_entry(const struct sw_share_page *page, short type)
{
	struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = SW_PAGE_DOOR, .l_len = 1};
	return fcntl(page->fd, F_OFD_SETLK, &lock) == 0;
}

bool sw_share_page_shut(struct sw_share_page *page, int64_t timeout_ns)
{
	int64_t until = sw_now_monotonic_ns() + timeout_ns;
	bool shut = lock_entry(page, F_WRLCK);
	while (!shut && sw_now_monotonic_ns() < until) {
		nanosleep(&(struct timespec){.tv_nsec = DOOR_LOOK_NS}, NULL);
		shut = lock_entry(page, F_WRLCK);
	}
	return shut;
}

void sw_share_page_admit(struct sw_share_page *page)
{
	(void)lock_entry(page, F_UNLCK);
}

/* ---- figures */

/* What a job can have at most of anything: so that whatever it writes, sums stay
 * numbers that can be shown. */
#define MOST (UINT64_C(1) << 50)

static uint64_t bounded(const _Atomic uint64_t *figure)
{
	uint64_t value = atomic_load(figure);
	return value < MOST ? value : MOST;
}

static int64_t bounded_ns(const _Atomic int64_t *figure)
{
	int64_t value = atomic_load(figure);
	return value < 0 ? 0 : value < (int64_t)MOST ? value : (int64_t)MOST;
}

static void add_slot(const struct sw_page_slot *slot, struct sw_share_figures *figures)
{
	uint32_t state = atomic_load(&slot->state), trouble = atomic_load(&slot->trouble);
	int64_t move_ns = bounded_ns(&slot->move_ns), iteration_ns = bounded_ns(&slot->iteration_ns);
	trouble = trouble < SW_PAGE_DRIVER_ERROR ? trouble : SW_PAGE_DRIVER_ERROR;
	figures->processes++;
	bool off = state == SW_PAGE_CHECKPOINTED;
	figures->suspended += state == SW_PAGE_SUSPENDED || off;
	figures->giving += state == SW_PAGE_SUSPENDED && atomic_load(&slot->giving) != 0;
	figures->off += off;
	figures->running += state == SW_PAGE_RUNNING;
	figures->trouble = trouble > figures->trouble ? trouble : figures->trouble;
	figures->launches += bounded(&slot->launches);
	figures->waits += bounded(&slot->waits);
	figures->moved_bytes += bounded(&slot->moved_bytes);
	figures->move_ns = move_ns > figures->move_ns ? move_ns : figures->move_ns;
	if (iteration_ns > figures->iteration_ns) {
		figures->iterations = bounded(&slot->iterations);
		figures->iteration_ns = iteration_ns;
		figures->iteration_jitter_ns = bounded_ns(&slot->iteration_jitter_ns);
	}
	figures->floor_bytes += bounded(&slot->iteration_floor_bytes);
	for (uint32_t i = 0; i < figures->gpu_count; i++) {
		figures->gpus[i].charged_bytes += off ? 0 : bounded(&slot->gpus[i].charged_bytes);
		figures->gpus[i].fixed_bytes += off ? 0 : bounded(&slot->gpus[i].fixed_bytes);
		figures->gpus[i].host_bytes += bounded(&slot->gpus[i].host_bytes);
		figures->gpus[i].peak_bytes += bounded(&slot->gpus[i].peak_bytes);
		figures->gpus[i].wanted_bytes += atomic_load(&slot->wanted_gpu) == i ? bounded(&slot->wanted_bytes) : 0;
	}
}

/* A limit that cannot be reached is none. */
static uint64_t limit_of(const struct sw_page_gpu *gpu)
{
	uint64_t bytes = atomic_load(&gpu->limit_bytes);
	return bytes < MOST ? bytes : SW_PAGE_NO_LIMIT;
}

void sw_share_page_look(struct sw_share_page *page, struct sw_share_figures *ret_figures)
{
	const struct sw_page *shared = page->shared;
	(void)sw_share_page_refresh(page);
	/* Checked again: the job can write it. */
	uint32_t gpus = shared->gpu_count <= SW_PAGE_GPUS ? shared->gpu_count : SW_PAGE_GPUS;
	*ret_figures = (struct sw_share_figures){.gpu_count = gpus, .wants_suspend = atomic_load(&shared->want) == SW_PAGE_SUSPEND};
	for (uint32_t i = 0; i < gpus; i++)
		ret_figures->gpus[i] = (struct sw_share_gpu){
			.limit_bytes = limit_of(&shared->gpus[i]),
			.outside_processes = atomic_load(&shared->gpus[i].outside_processes),
			.outside_pid = atomic_load(&shared->gpus[i].outside_pid),
			.outside_bytes = bounded(&shared->gpus[i].outside_bytes),
		};
	for (uint32_t i = 0; i < SW_PAGE_SLOTS; i++)
		if (atomic_load(&shared->slots[i].pid) != 0 && !strike_out(page, i))
			add_slot(&shared->slots[i], ret_figures);
}

const char *sw_share_trouble(uint32_t trouble)
{
	switch ((enum sw_page_trouble)trouble) {
	case SW_PAGE_FINE:
		return "none";
	case SW_PAGE_NOT_DRAINED:
		return "its work on the GPU did not come to an end";
	case SW_PAGE_CAPTURING:
		return "it was capturing a CUDA graph all the time";
	case SW_PAGE_NO_HOST_MEMORY:
		return "there is no host memory for its contents";
	case SW_PAGE_NO_GPU_MEMORY:
		return "others hold the GPU's memory";
	case SW_PAGE_DRIVER_ERROR:
		return "the driver reported an error";
	}
	return "unknown";
}
