/* Ownership that the compiler keeps: a variable marked SW_CLEANUP(fn) is handed to
 * `fn` when it leaves scope. */
#ifndef SW_BASE_CLEANUP_H
#define SW_BASE_CLEANUP_H

#include <stdio.h>
#include <stdlib.h>

#define SW_CLEANUP(fn) __attribute__((cleanup(fn)))

/* Moves a pointer out of an owning variable, leaving NULL behind. */
#define SW_TAKE(pointer)                                \
	({                                              \
		__typeof__(pointer) taken_ = (pointer); \
		(pointer) = NULL;                       \
		taken_;                                 \
	})

/* Defines `name##p`, the form that SW_CLEANUP wants, from a plain `void name(type *)`. */
#define SW_DEFINE_FREEP(type, name)              \
	static inline void name##p(type **owner) \
	{                                        \
		if (*owner != NULL)              \
			name(*owner);            \
	}

static inline void sw_freep(void *owner)
{
	free(*(void **)owner);
}

static inline void sw_fclosep(FILE **owner)
{
	if (*owner != NULL)
		fclose(*owner);
}

#endif
