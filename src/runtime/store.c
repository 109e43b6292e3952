#include "runtime/store.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "runtime/driver.h"
#include "runtime/memory.h"
#include "runtime/node.h"
#include "runtime/tools.h"

#define UNITS (SW_STORE_PIECE_MOST / SW_UNIT_BYTES)
/* While a slice is pinned the program's own launches wait: ahead of need, small
 * ones, but then it has many. */
#define SMALL_BYTES SW_CHUNK_BYTES
enum { SMALL_SLICES = 1024 };
/* For others that make some just now. */
#define AWAIT_NS 20000000
#define LOOK_NS 2000000
enum { SLICES = 4096, PORTABLE = 1, PAGE = 4096 };
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static struct slice {
	char *bytes;
	size_t size;
	unsigned used; /* units of it */
	unsigned char taken[UNITS];
} slices[SLICES];
static unsigned count;
static size_t all_bytes, used_bytes;

/* As large as what is missing, so that small programs take little. It is not much smaller than what
 * there is, so that slices stay few. It is of whole pieces, since what is left over is of no use to
 * them. */
static size_t slice_size(size_t missing, size_t piece, size_t most)
{
	size_t size = missing > all_bytes / 8 ? missing : all_bytes / 8;
	size = size < most ? sw_round_up(size, SW_UNIT_BYTES) : most;
	return size - (size > piece ? size % piece : 0);
}

/* Before the driver pins them: it would touch page by page with its locks held, and the program
 * could not launch anything meanwhile. */
static bool touch(char *start, size_t size)
{
	/* Some at a time: while memory is made here, no other thread can get any. */
	for (size_t at = 0; at < size; at += SW_UNIT_BYTES)
		if (madvise(start + at, SW_UNIT_BYTES, MADV_POPULATE_WRITE) != 0) {
			if (errno != EINVAL)
				return false;
			/* Linux before 5.14. */
			for (size_t i = at; i < at + SW_UNIT_BYTES; i += PAGE)
				((volatile char *)start)[i] = 0;
		}
	return true;
}

/* Whether no other thread makes any, soon. */
static bool is_quiet(void)
{
	for (int64_t left = AWAIT_NS; sw_node_others_make(); left -= LOOK_NS) {
		if (left <= 0)
			return false;
		nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
	}
	return true;
}

static bool pin(char *start, size_t size)
{
	sw_node_begin_making();
	bool pinned = sw_driver.host_register(start, size, PORTABLE) == CUDA_SUCCESS;
	sw_node_end_making();
	return pinned;
}

static enum sw_store_more add_slice(size_t size, bool ahead)
{
	char *bytes = mmap(NULL, size + SW_UNIT_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (bytes == MAP_FAILED)
		return SW_STORE_CANNOT;
	/* On whole units, so that large pages can be used: fewer to touch and to pin. */
	size_t skip = (SW_UNIT_BYTES - (size_t)bytes % SW_UNIT_BYTES) % SW_UNIT_BYTES;
	char *start = bytes + skip;
	if (skip > 0)
		munmap(bytes, skip);
	if (skip < SW_UNIT_BYTES)
		munmap(start + size, SW_UNIT_BYTES - skip);
	madvise(start, size, MADV_HUGEPAGE);
	madvise(start, size, MADV_DONTFORK);
	bool touched = touch(start, size), later = touched && ahead && !is_quiet();
	if (!touched || later || !pin(start, size)) {
		munmap(start, size);
		return later ? SW_STORE_NO_ROOM : SW_STORE_CANNOT;
	}
	slices[count++] = (struct slice){.bytes = start, .size = size};
	all_bytes += size;
	return SW_STORE_MADE;
}

static enum sw_store_more grow(size_t missing, size_t piece, size_t most, bool ahead)
{
	size_t size = slice_size(missing, piece, most);
	if (count == SLICES)
		return SW_STORE_CANNOT;
	if ((ahead && !is_quiet()) || !sw_node_take(size, ahead))
		return SW_STORE_NO_ROOM;
	enum sw_store_more more = add_slice(size, ahead);
	if (more != SW_STORE_MADE)
		sw_node_give(size);
	return more;
}

static void *take(struct slice *slice, size_t units)
{
	size_t free = 0;
	for (size_t i = 0; i < slice->size / SW_UNIT_BYTES && (slice->used + units) * SW_UNIT_BYTES <= slice->size; i++) {
		free = slice->taken[i] ? 0 : free + 1;
		if (free == units) {
			memset(&slice->taken[i + 1 - units], 1, units);
			slice->used += (unsigned)units;
			used_bytes += units * SW_UNIT_BYTES;
			return slice->bytes + (i + 1 - units) * SW_UNIT_BYTES;
		}
	}
	return NULL;
}

void *sw_store_get(size_t bytes)
{
	size_t units = bytes / SW_UNIT_BYTES;
	for (unsigned i = 0; i < count; i++) {
		void *piece = take(&slices[i], units);
		if (piece != NULL)
			return piece;
	}
	return grow(bytes, bytes, SW_STORE_PIECE_MOST, false) == SW_STORE_MADE ? take(&slices[count - 1], units) : NULL;
}

void sw_store_put(void *piece, size_t bytes)
{
	for (unsigned i = 0; i < count; i++) {
		size_t offset = (size_t)((char *)piece - slices[i].bytes);
		if ((char *)piece < slices[i].bytes || offset >= slices[i].size)
			continue;
		memset(&slices[i].taken[offset / SW_UNIT_BYTES], 0, bytes / SW_UNIT_BYTES);
		slices[i].used -= (unsigned)(bytes / SW_UNIT_BYTES);
		used_bytes -= bytes;
		return;
	}
}

enum sw_store_more sw_store_prepare(size_t bytes, size_t piece)
{
	bool small = piece <= SMALL_BYTES && count < SMALL_SLICES;
	return all_bytes >= bytes ? SW_STORE_ENOUGH
				  : grow(bytes - all_bytes, SW_UNIT_BYTES, small ? SMALL_BYTES : SW_STORE_PIECE_MOST, true);
}

size_t sw_store_unused(void)
{
	return all_bytes - used_bytes;
}

/* Whether it is pinned no more: it went with a context, or goes now. */
static bool unpin(const struct slice *slice)
{
	CUresult result = sw_driver.host_unregister != NULL ? sw_driver.host_unregister(slice->bytes) : CUDA_ERROR_NOT_SUPPORTED;
	return result == CUDA_SUCCESS || result == CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

bool sw_store_trim(void)
{
	for (unsigned i = count; i-- > 0;) {
		struct slice *slice = &slices[i];
		if (slice->used > 0 || !unpin(slice))
			continue;
		munmap(slice->bytes, slice->size);
		sw_node_give(slice->size);
		all_bytes -= slice->size;
		*slice = slices[--count];
		return true;
	}
	return false;
}
