/* Writing JSON into one growing buffer: compact, keys in the order they are written, strings
 * escaped. Not a parser; jansson does that.
 *
 *	struct sw_json json = {0};
 *	sw_json_object(&json);
 *	sw_json_key_u64(&json, "id", 12);
 *	sw_json_end_object(&json);
 *	if (json.failed) ...            out of memory anywhere: checked once, at the end
 *	sw_json_release(&json);
 *
 * Strings must be UTF-8; bytes that are not become U+FFFD, so that what comes out can always be
 * read. The text is NUL-terminated.
 */
#ifndef SW_API_JSON_H
#define SW_API_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct sw_json {
	char *text;
	size_t size, capacity;
	bool failed;
	bool wants_comma; /* something stands before, on the same level */
};

void sw_json_release(struct sw_json *json);
/* Moves the text out (the caller frees it) and leaves the writer empty; NULL when something failed.
 * `ret_size` may be NULL. */
char *sw_json_take(struct sw_json *json, size_t *ret_size);

void sw_json_object(struct sw_json *json);
void sw_json_end_object(struct sw_json *json);
void sw_json_array(struct sw_json *json);
void sw_json_end_array(struct sw_json *json);
void sw_json_key(struct sw_json *json, const char *key);

void sw_json_string(struct sw_json *json, const char *text);
void sw_json_string_n(struct sw_json *json, const char *text, size_t size);
void sw_json_i64(struct sw_json *json, int64_t value);
void sw_json_u64(struct sw_json *json, uint64_t value);
/* value / scale as a decimal without trailing zeroes: (1500, 1000) is 1.5.
 * `scale` is a power of ten. */
void sw_json_decimal(struct sw_json *json, int64_t value, int64_t scale);
void sw_json_bool(struct sw_json *json, bool value);
void sw_json_null(struct sw_json *json);
/* A value that is JSON already. */
void sw_json_raw(struct sw_json *json, const char *text, size_t size);
/* Bytes that are not a value: no comma, no escapes. */
void sw_json_bytes(struct sw_json *json, const char *bytes, size_t size);

void sw_json_key_string(struct sw_json *json, const char *key, const char *text);
void sw_json_key_i64(struct sw_json *json, const char *key, int64_t value);
void sw_json_key_u64(struct sw_json *json, const char *key, uint64_t value);
void sw_json_key_bool(struct sw_json *json, const char *key, bool value);

/* How many bytes of JSON the string takes, its quotes included. */
size_t sw_json_string_size(const char *text);

static inline void sw_json_releasep(struct sw_json *json)
{
	sw_json_release(json);
}

#endif
