/* Arrays: jobs that were asked for together. Their numbers follow each other, and they
 * share what they asked for.
 *
 * Where only some may be under way at a time, the first of them that have not ended are. A member
 * goes when fewer than that many before it are left. So they go in their order, and none waits for
 * longer than it must. `last` is the last member that may be under way; it only moves on, so an
 * array costs as much as it has members.
 */
#include <stdlib.h>

#include "brain/arrays.h"
#include "brain/state.h"

struct sw_array {
	uint32_t users; /* members that know of it */
	uint64_t limit;
	uint64_t under_way; /* members up to `last` that have not ended */
	uint64_t last, end; /* the last that may be under way; the last that there is */
};

uint64_t sw_array_first(const struct sw_brain *brain, uint64_t job)
{
	const struct sw_live *live = sw_brain_live(brain, job);
	return live->is_member ? live->array_first : job;
}

/* One more member may be under way, if there is one that has not ended. It, or 0. */
static uint64_t move_on(struct sw_brain *brain, struct sw_array *array)
{
	while (array->under_way < array->limit && array->last < array->end) {
		const struct sw_live *live = sw_brain_live(brain, ++array->last);
		if (live == NULL || live->array != array || live->is_over)
			continue;
		array->under_way++;
		return array->last;
	}
	return 0;
}

int sw_array_join(struct sw_brain *brain, uint64_t job, uint64_t first, uint64_t limit)
{
	struct sw_array *array = NULL;
	uint64_t known = job;
	for (; known >= first && array == NULL; known--) {
		const struct sw_live *live = sw_brain_live(brain, known);
		array = live != NULL && live->is_member && live->array_first == first ? live->array : NULL;
	}
	if (array == NULL) {
		array = calloc(1, sizeof *array);
		if (array == NULL)
			return SW_ENOMEM;
		array->limit = limit;
		array->last = first - 1;
	}
	for (uint64_t member = known + 1; member <= job; member++) {
		struct sw_live *live = sw_brain_live(brain, member);
		if (live != NULL && live->is_member && live->array_first == first && live->array == NULL) {
			live->array = array;
			array->users++;
		}
	}
	array->end = job;
	while (move_on(brain, array) != 0)
		;
	return 0;
}

void sw_array_leave(struct sw_live *live)
{
	if (live->array != NULL && --live->array->users == 0)
		free(live->array);
	live->array = NULL;
}

bool sw_array_admits(const struct sw_live *live, uint64_t job)
{
	return live->array == NULL || job <= live->array->last;
}

uint64_t sw_array_end(struct sw_brain *brain, uint64_t job)
{
	struct sw_array *array = sw_brain_live(brain, job)->array;
	if (array == NULL || job > array->last)
		return 0;
	array->under_way--;
	return move_on(brain, array);
}
