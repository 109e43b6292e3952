/* Which runs a sync speaks of, sorted by their ids. */
#include <stdlib.h>

#include "api/sync.h"

static int compare(const void *left, const void *right)
{
	const struct sw_told_run *a = left, *b = right;
	int order = sw_run_id_compare(a->id, b->id);
	/* One that can be read comes before its unreadable twin. */
	return order != 0 ? order : (a->run == NULL) - (b->run == NULL);
}

int sw_told_make(const struct sw_sync *sync, struct sw_told *ret_told)
{
	struct sw_told told = {.items = calloc(sync->run_count + sync->unread_count + 1, sizeof *told.items)};
	if (told.items == NULL)
		return SW_ENOMEM;
	for (size_t r = 0; r < sync->run_count; r++)
		told.items[told.count++] = (struct sw_told_run){sync->runs[r].id, &sync->runs[r]};
	for (size_t u = 0; u < sync->unread_count; u++)
		if (sync->unread[u].has_id)
			told.items[told.count++] = (struct sw_told_run){sync->unread[u].id, NULL};
	qsort(told.items, told.count, sizeof *told.items, compare);
	*ret_told = told;
	return 0;
}

const struct sw_told_run *sw_told_find(const struct sw_told *told, struct sw_run_id id)
{
	size_t low = 0, high = told->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (sw_run_id_compare(told->items[middle].id, id) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < told->count && sw_run_id_compare(told->items[low].id, id) == 0 ? &told->items[low] : NULL;
}

void sw_told_release(struct sw_told *told)
{
	free(told->items);
	*told = (struct sw_told){0};
}
