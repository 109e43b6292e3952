/* Dividing memory: each gets what it wants if there is enough, else an equal part, and what one
 * does not want goes to the others. Pure. */
#ifndef SW_SHARE_DIVIDE_H
#define SW_SHARE_DIVIDE_H

#include <stddef.h>
#include <stdint.h>

struct sw_divide_part {
	uint64_t least_bytes; /* what it has in any case: it cannot be moved away */
	uint64_t want_bytes;
	uint64_t most_bytes;
	uint64_t got_bytes; /* the answer */
};

/* What is left over is divided equally too, up to what each may have at most. The sum of the
 * answers is at most `bytes`, unless the least ones alone are more. What cannot be divided
 * evenly goes to the first. */
void sw_divide(struct sw_divide_part *parts, size_t count, uint64_t bytes);

#endif
