#include "runtime/book.h"

#include <stdlib.h>
#include <string.h>

/* Ascending. Programs that allocate often do so through pools of their own: thousands of entries at
 * most, found a million times. */
static struct sw_allocation *entries;
static size_t count, capacity;

/* Of the first entry above the address. */
static size_t place_above(CUdeviceptr address)
{
	size_t low = 0, high = count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (entries[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool sw_book_reserve(void)
{
	if (count < capacity)
		return true;
	size_t wanted = capacity == 0 ? 256 : capacity * 2;
	struct sw_allocation *more = realloc(entries, wanted * sizeof *more);
	if (more == NULL)
		return false;
	entries = more;
	capacity = wanted;
	return true;
}

void sw_book_add(const struct sw_allocation *entry)
{
	size_t place = place_above(entry->address);
	memmove(&entries[place + 1], &entries[place], (count - place) * sizeof *entries);
	entries[place] = *entry;
	count++;
}

bool sw_book_find(CUdeviceptr address, struct sw_allocation *ret_entry)
{
	size_t place = place_above(address);
	if (place == 0 || address - entries[place - 1].address >= entries[place - 1].bytes)
		return false;
	*ret_entry = entries[place - 1];
	return true;
}

bool sw_book_remove(CUdeviceptr address, struct sw_allocation *ret_entry)
{
	size_t place = place_above(address);
	if (place == 0 || entries[place - 1].address != address)
		return false;
	*ret_entry = entries[place - 1];
	memmove(&entries[place - 1], &entries[place], (count - place) * sizeof *entries);
	count--;
	return true;
}

void sw_book_remove_range(const struct sw_range *range)
{
	size_t kept = 0;
	for (size_t i = 0; i < count; i++)
		if (entries[i].range != range)
			entries[kept++] = entries[i];
	count = kept;
}
