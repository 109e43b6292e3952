#include "base/table.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"

/* Smaller ones lie on the heap: most engines of a test or a forecast never
 * need a page of their own. */
#define MAPPED_LEAST ((size_t)64 << 10)

/* In all of these `items` points to a pointer of the user's type; copying it bytewise keeps clear
 * of the aliasing rules. */
static char *get(const void *items)
{
	char *array;
	memcpy(&array, items, sizeof array);
	return array;
}

static bool is_mapped(size_t bytes)
{
	return bytes >= MAPPED_LEAST;
}

/* On the heap, or from there to pages of its own. */
static char *move(char *array, size_t old_bytes, size_t new_bytes)
{
	char *grown;
	if (is_mapped(new_bytes)) {
		grown = mmap(NULL, new_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		grown = grown == MAP_FAILED ? NULL : grown;
	} else {
		grown = calloc(1, new_bytes);
	}
	if (grown == NULL)
		return NULL;
	if (old_bytes > 0)
		memcpy(grown, array, old_bytes);
	free(array);
	return grown;
}

/* Holes stay holes. */
static char *stretch(char *array, size_t old_bytes, size_t new_bytes)
{
	char *grown = mremap(array, old_bytes, new_bytes, MREMAP_MAYMOVE);
	return grown == MAP_FAILED ? NULL : grown;
}

int sw_table_grow(void *items, size_t *room, size_t size, size_t wanted)
{
	assert(size > 0);
	size_t more = *room < 8 ? 8 : *room + *room / 2;
	if (more < wanted)
		more = wanted;
	if (more > SIZE_MAX / 2 / size)
		return SW_ENOMEM;
	size_t old_bytes = *room * size, new_bytes = more * size;
	char *array = get(items);
	array = is_mapped(old_bytes) ? stretch(array, old_bytes, new_bytes) : move(array, old_bytes, new_bytes);
	if (array == NULL)
		return SW_ENOMEM;
	memcpy(items, &array, sizeof array);
	*room = more;
	return 0;
}

/* Whole pages go back to the system. Large ones would come back by themselves, holes and all; a
 * table that is one mapping can still be stretched. */
static bool give_back(char *array, size_t bytes, char *from, char *to)
{
	(void)madvise(array, bytes, MADV_NOHUGEPAGE);
	return madvise(from, (size_t)(to - from), MADV_DONTNEED) == 0;
}

void sw_table_wipe(void *items, size_t room, size_t size, size_t from, size_t to)
{
	char *array = get(items);
	if (to > room)
		to = room;
	if (from >= to)
		return;
	char *start = array + from * size, *end = array + to * size;
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	char *first = array + (((uintptr_t)(start - array) + page - 1) & ~(page - 1)),
	     *last = array + ((uintptr_t)(end - array) & ~(page - 1));
	if (!is_mapped(room * size) || first >= last || !give_back(array, room * size, first, last)) {
		memset(start, 0, (size_t)(end - start));
		return;
	}
	memset(start, 0, (size_t)(first - start));
	memset(last, 0, (size_t)(end - last));
}

void sw_table_release(void *items, size_t *room, size_t size)
{
	char *array = get(items);
	if (is_mapped(*room * size))
		(void)munmap(array, *room * size);
	else
		free(array);
	array = NULL;
	memcpy(items, &array, sizeof array);
	*room = 0;
}
