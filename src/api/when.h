/* Moments as text: RFC 3339, in nanoseconds since 1970, by arithmetic alone. From 1970 to 2199. */
#ifndef SW_API_WHEN_H
#define SW_API_WHEN_H

#include <stddef.h>
#include <stdint.h>

#define SW_WHEN_SIZE 32
#define SW_WHEN_MAX_NS INT64_C(7258118399999999999) /* the last nanosecond of 2199 */

/* "2026-10-04T15:00:00Z", "2026-10-04 17:00:00.25+02:00". The offset must be there: a moment
 * without one means something else everywhere. 0 or SW_EINPUT. */
int sw_when_parse(const char *text, size_t size, int64_t *ret_ns);

/* "2026-10-04T15:00:00.25Z": UTC, a fraction only where there is one and without its trailing
 * zeroes. Returns `buffer`. */
char *sw_when_format(int64_t ns, char buffer[SW_WHEN_SIZE]);
/* The same of seconds that others chose; those beyond its bounds as the nearest moment within. */
char *sw_when_format_seconds(int64_t seconds, char buffer[SW_WHEN_SIZE]);

#endif
