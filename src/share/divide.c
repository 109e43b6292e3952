#include "share/divide.h"

#include <stdbool.h>

static uint64_t target(const struct sw_divide_part *part, bool all)
{
	uint64_t wanted = all || part->most_bytes < part->want_bytes ? part->most_bytes : part->want_bytes;
	return wanted > part->least_bytes ? wanted : part->least_bytes;
}

/* Raises all to a common level, none over its target, until the bytes are
 * gone; returns what is left. */
static uint64_t pour(struct sw_divide_part *parts, size_t count, bool all, uint64_t left)
{
	for (;;) {
		size_t open = 0;
		uint64_t level = UINT64_MAX, step = UINT64_MAX;
		for (size_t i = 0; i < count; i++)
			if (parts[i].got_bytes < target(&parts[i], all))
				level = parts[i].got_bytes < level ? parts[i].got_bytes : level;
		/* Those at the lowest level rise together, to the next level or target. */
		for (size_t i = 0; i < count; i++) {
			uint64_t got = parts[i].got_bytes, end = target(&parts[i], all);
			if (got >= end)
				continue;
			uint64_t distance = got == level ? end - got : got - level;
			step = distance < step ? distance : step;
			open += got == level;
		}
		if (open == 0 || left == 0)
			return left;
		bool last = left / open < step;
		uint64_t each = last ? left / open : step, rest = last ? left % open : 0;
		for (size_t i = 0; i < count; i++)
			if (parts[i].got_bytes == level && level < target(&parts[i], all)) {
				parts[i].got_bytes += each + (rest > 0 ? 1 : 0);
				rest -= rest > 0;
			}
		left = last ? 0 : left - each * open;
	}
}

void sw_divide(struct sw_divide_part *parts, size_t count, uint64_t bytes)
{
	uint64_t left = bytes;
	for (size_t i = 0; i < count; i++) {
		parts[i].got_bytes = parts[i].least_bytes;
		left -= parts[i].least_bytes < left ? parts[i].least_bytes : left;
	}
	left = pour(parts, count, false, left);
	pour(parts, count, true, left);
}
