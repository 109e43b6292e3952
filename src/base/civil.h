/* Dates of the proleptic Gregorian calendar and seconds since 1970, by arithmetic: no time zone, no
 * locale, no library. */
#ifndef SW_BASE_CIVIL_H
#define SW_BASE_CIVIL_H

#include <stddef.h>
#include <stdint.h>

/* "2017-10-09 07:01:55" (or with a T between); a fraction of a second is cut off. From 1970
 * to 2199. 0 or SW_EINPUT. */
int sw_civil_parse(const char *text, size_t size, int64_t *ret_seconds);

/* Writes "2017-10-09 07:01:55" for a second from 1970 to 9999. Returns `buffer`. */
char *sw_civil_format(int64_t seconds, char buffer[20]);

#endif
