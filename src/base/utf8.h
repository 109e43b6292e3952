/* UTF-8: no overlong forms, no surrogates, nothing beyond U+10FFFF. */
#ifndef SW_BASE_UTF8_H
#define SW_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* The bytes of the character at `at`, of which `left` are there (at least one); 0: there is
 * none. */
size_t sw_utf8_length(const char *at, size_t left);
bool sw_utf8_is_valid(const char *text, size_t size);
/* How long the start of the text is that has whole characters alone and at most so many bytes. */
size_t sw_utf8_start(const char *text, size_t most);

#endif
