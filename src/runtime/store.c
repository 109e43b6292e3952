#include "runtime/store.h"

#include <string.h>
#include <sys/mman.h>

#include "runtime/driver.h"
#include "runtime/memory.h"

#define SLICE SW_STORE_PIECE_MOST
#define UNITS (SLICE / SW_UNIT_BYTES)
enum { SLICES = 4096, PORTABLE = 1 };

static struct slice {
	char *bytes;
	unsigned used;
	unsigned char taken[UNITS];
} slices[SLICES];
static unsigned count;

static bool add_slice(void)
{
	if (count == SLICES)
		return false;
	char *bytes = mmap(NULL, SLICE + SW_UNIT_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (bytes == MAP_FAILED)
		return false;
	/* On whole units, so that large pages can be used: fewer to touch and to pin. */
	size_t skip = (SW_UNIT_BYTES - (size_t)bytes % SW_UNIT_BYTES) % SW_UNIT_BYTES;
	char *start = bytes + skip;
	madvise(start, SLICE, MADV_HUGEPAGE);
	madvise(start, SLICE, MADV_DONTFORK);
	if (sw_driver.host_register(start, SLICE, PORTABLE) != CUDA_SUCCESS) {
		munmap(bytes, SLICE + SW_UNIT_BYTES);
		return false;
	}
	slices[count++] = (struct slice){.bytes = start};
	return true;
}

static void *take(struct slice *slice, size_t units)
{
	size_t free = 0;
	for (size_t i = 0; i < UNITS && slice->used + units <= UNITS; i++) {
		free = slice->taken[i] ? 0 : free + 1;
		if (free == units) {
			memset(&slice->taken[i + 1 - units], 1, units);
			slice->used += (unsigned)units;
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
	return add_slice() ? take(&slices[count - 1], units) : NULL;
}

void sw_store_put(void *piece, size_t bytes)
{
	for (unsigned i = 0; i < count; i++) {
		size_t offset = (size_t)((char *)piece - slices[i].bytes);
		if ((char *)piece < slices[i].bytes || offset >= SLICE)
			continue;
		memset(&slices[i].taken[offset / SW_UNIT_BYTES], 0, bytes / SW_UNIT_BYTES);
		slices[i].used -= (unsigned)(bytes / SW_UNIT_BYTES);
		return;
	}
}

bool sw_store_prepare(size_t bytes, bool *ret_enough)
{
	*ret_enough = sw_store_size() >= bytes;
	return !*ret_enough && add_slice();
}

size_t sw_store_size(void)
{
	return (size_t)count * SLICE;
}
