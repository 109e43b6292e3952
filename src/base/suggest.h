/* "Did you mean ...?": the nearest of a list of names. */
#ifndef SW_BASE_SUGGEST_H
#define SW_BASE_SUGGEST_H

#include <stddef.h>

/* The name nearest to `word` (edit distance with transpositions, case ignored), or NULL when none
 * is near enough to be a slip. `names[i]` is read through `stride` bytes, so that arrays of structs
 * starting with a `const char *` work too. */
const char *sw_suggest(const char *word, const void *names, size_t count, size_t stride);

#endif
