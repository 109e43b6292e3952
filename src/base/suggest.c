#include "base/suggest.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Longer words are not slips of the finger that a suggestion could mend. */
enum { LONGEST = 63 };

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b`;
 * both at most LONGEST long. */
static unsigned distance(const char *a, size_t a_size, const char *b, size_t b_size)
{
	unsigned rows[3][LONGEST + 1];
	unsigned *before = rows[0], *above = rows[1], *row = rows[2];
	for (unsigned j = 0; j <= b_size; j++)
		row[j] = j;
	for (unsigned i = 1; i <= a_size; i++) {
		unsigned *oldest = before;
		before = above;
		above = row;
		row = oldest;
		row[0] = i;
		for (unsigned j = 1; j <= b_size; j++) {
			char x = lower(a[i - 1]), y = lower(b[j - 1]);
			row[j] = least(least(above[j] + 1, row[j - 1] + 1), above[j - 1] + (x != y));
			bool swapped = i > 1 && j > 1 && x == lower(b[j - 2]) && y == lower(a[i - 2]);
			if (swapped)
				row[j] = least(row[j], before[j - 2] + 1);
		}
	}
	return row[b_size];
}

const char *sw_suggest(const char *word, const void *names, size_t count, size_t stride)
{
	size_t size = strlen(word);
	if (size == 0 || size > LONGEST)
		return NULL;
	/* One slip in a short word, one more for every four letters; a word with half of its
	 * letters wrong is another word. */
	unsigned nearest = least(1 + (unsigned)size / 4, size > 2 ? (unsigned)(size - 1) / 2 : (unsigned)size - 1) + 1;
	const char *best = NULL;
	for (size_t i = 0; i < count; i++) {
		const char *name;
		memcpy(&name, (const char *)names + i * stride, sizeof name);
		size_t name_size = name == NULL ? 0 : strlen(name);
		if (name_size == 0 || name_size > LONGEST)
			continue;
		unsigned slips = distance(word, size, name, name_size);
		if (slips < nearest) {
			nearest = slips;
			best = name;
		}
	}
	return best;
}
