/* A growing array, typed by its user: `SW_VEC(struct sw_job) jobs`.
 *
 *	SW_VEC(int) numbers = {0};
 *	int *slot = sw_vec_push(&numbers);      NULL when out of memory; the new element is zeroed
 *	numbers.items[i], numbers.count
 *	sw_vec_free(&numbers);
 *
 * Pointers into `items` are valid until the next push.
 */
#ifndef SW_BASE_VEC_H
#define SW_BASE_VEC_H

#include <stddef.h>
#include <string.h>

#define SW_VEC(type)             \
	struct {                 \
		type *items;     \
		size_t count;    \
		size_t capacity; \
	}

/* Makes room for `extra` more elements of `size` bytes and returns the first new one, zeroed. NULL
 * when out of memory or when the bytes cannot be counted. With `extra` 0 it returns where the next
 * element will be. `items` is the address of the typed pointer. */
void *sw_vec_grow(void *items, size_t *count, size_t *capacity, size_t size, size_t extra);
/* The same; mostly there is room, and zeroing a few bytes of a known size is no call. */
static inline void *sw_vec_extend(void *items, size_t *count, size_t *capacity, size_t size, size_t extra)
{
	if (*capacity == 0 || extra > *capacity - *count)
		return sw_vec_grow(items, count, capacity, size, extra);
	char *array;
	memcpy(&array, items, sizeof array);
	char *first = array + *count * size;
	*count += extra;
	return memset(first, 0, extra * size);
}
/* Makes room for `wanted` elements in all, without adding any; 0 or SW_ENOMEM. Mostly there is
 * room. */
int sw_vec_enlarge(void *items, size_t *capacity, size_t size, size_t wanted);
static inline int sw_vec_make_room(void *items, size_t *capacity, size_t size, size_t wanted)
{
	return *capacity > 0 && wanted <= *capacity ? 0 : sw_vec_enlarge(items, capacity, size, wanted);
}
void sw_vec_release(void *items, size_t *count, size_t *capacity);

#define sw_vec_push_n(vec, n) \
	((__typeof__((vec)->items))sw_vec_extend(&(vec)->items, &(vec)->count, &(vec)->capacity, sizeof *(vec)->items, (n)))
#define sw_vec_push(vec) sw_vec_push_n(vec, 1)
#define sw_vec_reserve(vec, wanted) sw_vec_make_room(&(vec)->items, &(vec)->capacity, sizeof *(vec)->items, (wanted))
#define sw_vec_free(vec) sw_vec_release(&(vec)->items, &(vec)->count, &(vec)->capacity)

#endif
