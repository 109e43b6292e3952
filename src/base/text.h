/* Numbers and foreign text as reports print them: escaped, valid UTF-8, and the
 * same under every locale.
 *
 * Formatters write into the caller's buffer of SW_TEXT_SIZE bytes and return it, so that
 * they can stand inside a printf call. What is not a finite number is printed as an en dash,
 * never as "nan" or "inf"; what is beyond all reason as +-9e18. None writes a character that
 * HTML would have to escape.
 */
#ifndef SW_BASE_TEXT_H
#define SW_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define SW_TEXT_SIZE 48

/* A fixed number of decimals (at most 6): "7889.74". */
char *sw_text_decimal(double value, unsigned decimals, char buffer[SW_TEXT_SIZE]);
/* At most that many decimals; trailing zeros are dropped: "7.5", "7". */
char *sw_text_short(double value, unsigned decimals, char buffer[SW_TEXT_SIZE]);
/* "82,247". */
char *sw_text_count(uint64_t value, char buffer[SW_TEXT_SIZE]);
/* A count and its noun: "1 job", "82,247 jobs". */
char *sw_text_plural(uint64_t value, const char *one, const char *many, char buffer[SW_TEXT_SIZE]);
/* Two units at most, as people say it: "350 ms", "59.2 s", "12 min 30 s", "2 h 11 min", "3 d 4 h".
 * Large ones have a comma: "1,200 d". */
char *sw_text_duration(double seconds, char buffer[SW_TEXT_SIZE]);
/* Of 0..1: "71 %"; one decimal below 10 % and above 99 %, never "100 %" for less than all nor "0
 * %" for more than none. */
char *sw_text_percent(double share, char buffer[SW_TEXT_SIZE]);
/* A factor: "1.04", "3.3", "12", "1,500". */
char *sw_text_factor(double factor, char buffer[SW_TEXT_SIZE]);
/* Exact seconds: "17", "0.5", "512600.85765"; up to nine decimals. */
char *sw_text_seconds(int64_t ns, char buffer[SW_TEXT_SIZE]);

/* Text for HTML, inside elements and inside double-quoted attributes. Control characters (but for
 * newline and tab) and broken UTF-8 become U+FFFD; NULL prints nothing. */
void sw_text_html(FILE *out, const char *text);
/* At most the first `size` bytes of it. */
void sw_text_html_n(FILE *out, const char *text, size_t size);
/* A copy cleaned in the same way, without escaping; NULL gives "". NULL only when out of memory. */
char *sw_text_clean(const char *text);
/* The next word of a list with commas, which moves on behind it; false: there is none. */
bool sw_text_next(const char **list, const char **ret_word, size_t *ret_size);
/* How many code points (about: terminal columns) a clean text has. */
size_t sw_text_columns(const char *text);

#endif
