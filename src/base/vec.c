#include "base/vec.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* In all of these `items` points to a pointer of the user's type; copying it bytewise keeps clear
 * of the aliasing rules. */
int sw_vec_enlarge(void *items, size_t *capacity, size_t size, size_t wanted)
{
	void *array;
	memcpy(&array, items, sizeof array);
	size_t room = *capacity < 8 ? 8 : *capacity + *capacity / 2;
	if (room < wanted)
		room = wanted;
	if (room > SIZE_MAX / size)
		return SW_ENOMEM;
	array = realloc(array, room * size);
	if (array == NULL)
		return SW_ENOMEM;
	memcpy(items, &array, sizeof array);
	*capacity = room;
	return 0;
}

void *sw_vec_grow(void *items, size_t *count, size_t *capacity, size_t size, size_t extra)
{
	assert(size > 0);
	void *array;
	if (*capacity == 0 || extra > *capacity - *count) {
		const size_t most = SIZE_MAX / size;
		if (*count > most || extra > most - *count || sw_vec_enlarge(items, capacity, size, *count + extra) < 0)
			return NULL;
	}
	memcpy(&array, items, sizeof array);
	char *first = (char *)array + *count * size;
	memset(first, 0, extra * size);
	*count += extra;
	return first;
}

void sw_vec_release(void *items, size_t *count, size_t *capacity)
{
	void *array;
	memcpy(&array, items, sizeof array);
	free(array);
	array = NULL;
	memcpy(items, &array, sizeof array);
	*count = 0;
	*capacity = 0;
}
