#include "share/page.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct sw_share_page {
	struct sw_page *shared;
	int fd;
};

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
static bool parse_uuid(const char *text, uint8_t ret_bytes[16])
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
	*ret_page = page;
	return 0;
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
		if (!parse_uuid(uuids[i], bytes[i]))
			return sw_err_set(err, SW_EINPUT, "'%.60s' is not the UUID of a GPU", uuids[i]);
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return cannot(err, "make", path);
	int r = ftruncate(fd, sizeof(struct sw_page)) != 0 ? cannot(err, "make", path) : map(fd, path, ret_page, err);
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
	/* Last: before it is there, nobody takes this for a page. */
	shared->magic = SW_PAGE_MAGIC;
	return 0;
}

int sw_share_page_open(const char *path, struct sw_share_page **ret_page, struct sw_err *err)
{
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	struct stat status;
	if (fd < 0)
		return cannot(err, "open", path);
	bool large = fstat(fd, &status) == 0 && status.st_size >= (off_t)sizeof(struct sw_page);
	struct sw_share_page *page = NULL;
	int r = large ? map(fd, path, &page, err) : sw_err_set(err, SW_EINPUT, "'%s' is not a GPU page", path);
	if (r < 0 || page == NULL) {
		close(fd);
		return r;
	}
	if (page->shared->magic != SW_PAGE_MAGIC || page->shared->format != SW_PAGE_FORMAT || page->shared->gpu_count > SW_PAGE_GPUS) {
		sw_share_page_close(page);
		sw_err_set(err, SW_EINPUT, "'%s' is not a GPU page that this program knows", path);
		sw_err_hint(err, "It may have been made by another version of Sharewell.");
		return SW_EINPUT;
	}
	*ret_page = page;
	return 0;
}

void sw_share_page_close(struct sw_share_page *page)
{
	if (page == NULL)
		return;
	munmap(page->shared, sizeof *page->shared);
	close(page->fd);
	free(page);
}

/* ---- wishes */

static long futex(_Atomic uint32_t *word, int operation, uint32_t value, const struct timespec *timeout)
{
	return syscall(SYS_futex, word, operation, value, timeout, NULL, 0);
}

static uint32_t wish(struct sw_share_page *page)
{
	uint32_t number = atomic_fetch_add(&page->shared->serial, 1) + 1;
	futex(&page->shared->serial, FUTEX_WAKE, INT_MAX, NULL);
	return number;
}

uint32_t sw_share_page_limit(struct sw_share_page *page, uint32_t gpu, uint64_t bytes)
{
	if (gpu < SW_PAGE_GPUS)
		atomic_store(&page->shared->gpus[gpu].limit_bytes, bytes);
	return wish(page);
}

uint32_t sw_share_page_host_budget(struct sw_share_page *page, uint64_t bytes)
{
	atomic_store(&page->shared->host_budget_bytes, bytes);
	return wish(page);
}

uint32_t sw_share_page_want(struct sw_share_page *page, enum sw_page_want want)
{
	atomic_store(&page->shared->want, want);
	return wish(page);
}

/* Whether the process of this slot is gone: its lock is free. Then the slot is cleared. */
static bool strike_out(struct sw_share_page *page, uint32_t number)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 1 + (off_t)number, .l_len = 1};
	if (fcntl(page->fd, F_OFD_SETLK, &lock) != 0)
		return false;
	struct sw_page_slot *slot = &page->shared->slots[number];
	for (unsigned i = 0; i < SW_PAGE_GPUS; i++) {
		atomic_store(&slot->gpus[i].charged_bytes, 0);
		atomic_store(&slot->gpus[i].fixed_bytes, 0);
		atomic_store(&slot->gpus[i].host_bytes, 0);
	}
	atomic_store(&slot->state, SW_PAGE_UNUSED);
	atomic_store(&slot->pid, 0);
	lock.l_type = F_UNLCK;
	fcntl(page->fd, F_OFD_SETLK, &lock);
	return true;
}

/* Numbers go round: "met" is at or behind. */
static bool is_met(struct sw_share_page *page, uint32_t number)
{
	for (uint32_t i = 0; i < SW_PAGE_SLOTS; i++) {
		const struct sw_page_slot *slot = &page->shared->slots[i];
		if (atomic_load(&slot->pid) != 0 && (int32_t)(atomic_load(&slot->done_serial) - number) < 0 && !strike_out(page, i))
			return false;
	}
	return true;
}

static int64_t monotonic_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

bool sw_share_page_wait(struct sw_share_page *page, uint32_t number, int64_t timeout_ns)
{
	int64_t until = monotonic_ns() + timeout_ns;
	for (;;) {
		uint32_t changes = atomic_load(&page->shared->changes);
		if (is_met(page, number))
			return true;
		int64_t left = until - monotonic_ns();
		if (left <= 0)
			return false;
		/* A process that dies wakes nobody. */
		left = left < 50000000 ? left : 50000000;
		futex(&page->shared->changes, FUTEX_WAIT, changes, &(struct timespec){.tv_nsec = left});
	}
}

/* ---- figures */

/* What a job can have at most of anything: so that whatever it writes, sums stay numbers that can be shown. */
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
	figures->suspended += state == SW_PAGE_SUSPENDED;
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
	for (uint32_t i = 0; i < figures->gpu_count; i++) {
		figures->gpus[i].charged_bytes += bounded(&slot->gpus[i].charged_bytes);
		figures->gpus[i].fixed_bytes += bounded(&slot->gpus[i].fixed_bytes);
		figures->gpus[i].host_bytes += bounded(&slot->gpus[i].host_bytes);
		figures->gpus[i].peak_bytes += bounded(&slot->gpus[i].peak_bytes);
	}
}

/* A limit that nobody can reach is none. */
static uint64_t limit_of(const struct sw_page_gpu *gpu)
{
	uint64_t bytes = atomic_load(&gpu->limit_bytes);
	return bytes < MOST ? bytes : SW_PAGE_NO_LIMIT;
}

void sw_share_page_look(struct sw_share_page *page, struct sw_share_figures *ret_figures)
{
	const struct sw_page *shared = page->shared;
	/* Checked again: the job can write it. */
	uint32_t gpus = shared->gpu_count <= SW_PAGE_GPUS ? shared->gpu_count : SW_PAGE_GPUS;
	*ret_figures = (struct sw_share_figures){.gpu_count = gpus, .wants_suspend = atomic_load(&shared->want) == SW_PAGE_SUSPEND};
	for (uint32_t i = 0; i < gpus; i++)
		ret_figures->gpus[i].limit_bytes = limit_of(&shared->gpus[i]);
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
