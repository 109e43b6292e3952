/* Numbers as text: strict, bounded, independent of the locale, and without binary fractions.
 *
 * All parsers take the whole of the `size` bytes at `text` (no terminator needed, no surrounding
 * space allowed). They return 0 or SW_EINPUT, and write only on success. Time is int64 nanoseconds
 * everywhere: +-292 years.
 */
#ifndef SW_BASE_NUMBER_H
#define SW_BASE_NUMBER_H

#include <stddef.h>
#include <stdint.h>

#define SW_NS_PER_US INT64_C(1000)
#define SW_NS_PER_MS INT64_C(1000000)
#define SW_NS_PER_S INT64_C(1000000000)
#define SW_NEVER INT64_MAX

/* A decimal integer: [+-]digits, and also "17.0" or "17.000" (spreadsheets write
 * those); "17.5" is refused. */
int sw_parse_i64(const char *text, size_t size, int64_t *ret_value);
int sw_parse_u64(const char *text, size_t size, uint64_t *ret_value);

/* A decimal number times `scale` (a power of ten, at most 10^9), rounded half away from zero: "1.5"
 * with scale 1000 is 1500. Exponents ("1e-3") are understood. Refused: nan, inf, hex, anything that
 * overflows after scaling. */
int sw_parse_decimal(const char *text, size_t size, int64_t scale, int64_t *ret_value);

/* A duration people write: "90", "90s", "15m", "2h", "1d", "1.5h", "250ms", "10us", "5ns"; a bare
 * number is seconds. Also D-HH:MM:SS, HH:MM:SS. Negative ones are refused. One space may stand
 * before the unit, here and in sizes. */
int sw_parse_duration(const char *text, size_t size, int64_t *ret_ns);

/* A size in bytes: "512", "4K", "20G", "1.5GiB", "80GB"; K, M, G, T, P are powers of
 * 1024, as memory is counted. */
int sw_parse_bytes(const char *text, size_t size, uint64_t *ret_bytes);

/* "1d 02:03:04", "2:03:04", "0:15:00", "59.2 s", "350 ms", "never" (SW_NEVER): at most 32 bytes
 * with the terminator. Returns `buffer`. */
char *sw_format_duration(int64_t ns, char buffer[32]);
/* "16.0 GiB". */
char *sw_format_bytes(uint64_t bytes, char buffer[32]);

#endif
