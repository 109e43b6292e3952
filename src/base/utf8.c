#include "base/utf8.h"

size_t sw_utf8_length(const char *at, size_t left)
{
	const unsigned char *byte = (const unsigned char *)at;
	unsigned char first = byte[0];
	if (first < 0x80)
		return 1;
	size_t length = first >= 0xC2 && first <= 0xDF ? 2 : first >= 0xE0 && first <= 0xEF ? 3 : first >= 0xF0 && first <= 0xF4 ? 4 : 0;
	if (length == 0 || length > left)
		return 0;
	for (size_t i = 1; i < length; i++)
		if ((byte[i] & 0xC0) != 0x80)
			return 0;
	/* Overlong forms, surrogates, and what lies beyond U+10FFFF show in the second byte. */
	if ((first == 0xE0 && byte[1] < 0xA0) || (first == 0xED && byte[1] > 0x9F) || (first == 0xF0 && byte[1] < 0x90) ||
	    (first == 0xF4 && byte[1] > 0x8F))
		return 0;
	return length;
}

bool sw_utf8_is_valid(const char *text, size_t size)
{
	for (size_t at = 0; at < size;) {
		size_t length = sw_utf8_length(text + at, size - at);
		if (length == 0)
			return false;
		at += length;
	}
	return true;
}

size_t sw_utf8_start(const char *text, size_t most)
{
	size_t at = 0, length = 1;
	while (length > 0 && at < most && text[at] != '\0') {
		length = sw_utf8_length(text + at, most - at);
		at += length;
	}
	return at;
}
