#include "api/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

static bool make_room(struct sw_json *json, size_t extra)
{
	if (json->failed)
		return false;
	if (json->capacity - json->size > extra)
		return true;
	size_t wanted = json->size + extra + 1;
	size_t capacity = json->capacity < 128 ? 256 : json->capacity * 2;
	if (capacity < wanted)
		capacity = wanted;
	char *grown = wanted < extra ? NULL : realloc(json->text, capacity);
	if (grown == NULL) {
		json->failed = true;
		return false;
	}
	json->text = grown;
	json->capacity = capacity;
	return true;
}

void sw_json_bytes(struct sw_json *json, const char *bytes, size_t size)
{
	if (!make_room(json, size))
		return;
	if (size > 0)
		memcpy(json->text + json->size, bytes, size);
	json->size += size;
	json->text[json->size] = '\0';
}

void sw_json_release(struct sw_json *json)
{
	free(json->text);
	*json = (struct sw_json){0};
}

char *sw_json_take(struct sw_json *json, size_t *ret_size)
{
	if (json->failed) {
		sw_json_release(json);
		return NULL;
	}
	char *text = json->text;
	if (ret_size != NULL)
		*ret_size = json->size;
	*json = (struct sw_json){0};
	return text;
}

/* Every value starts here. */
static void start_value(struct sw_json *json)
{
	if (json->wants_comma)
		sw_json_bytes(json, ",", 1);
	json->wants_comma = true;
}

void sw_json_object(struct sw_json *json)
{
	start_value(json);
	sw_json_bytes(json, "{", 1);
	json->wants_comma = false;
}

void sw_json_end_object(struct sw_json *json)
{
	sw_json_bytes(json, "}", 1);
	json->wants_comma = true;
}

void sw_json_array(struct sw_json *json)
{
	start_value(json);
	sw_json_bytes(json, "[", 1);
	json->wants_comma = false;
}

void sw_json_end_array(struct sw_json *json)
{
	sw_json_bytes(json, "]", 1);
	json->wants_comma = true;
}

/* The short escape of a byte, 'u' where it needs the long one, 0 where it needs none. */
static char escape(unsigned char byte)
{
	switch (byte) {
	case '"':
		return '"';
	case '\\':
		return '\\';
	case '\b':
		return 'b';
	case '\f':
		return 'f';
	case '\n':
		return 'n';
	case '\r':
		return 'r';
	case '\t':
		return 't';
	default:
		return byte < 0x20 ? 'u' : 0;
	}
}

static void write_escape(struct sw_json *json, unsigned char byte, char how)
{
	char text[8];
	int size = how == 'u' ? snprintf(text, sizeof text, "\\u%04X", byte) : snprintf(text, sizeof text, "\\%c", how);
	sw_json_bytes(json, text, (size_t)size);
}

static void write_string(struct sw_json *json, const char *text, size_t size)
{
	const unsigned char *bytes = (const unsigned char *)text;
	sw_json_bytes(json, "\"", 1);
	size_t plain = 0; /* where the bytes start that are written as they are */
	for (size_t at = 0; at < size;) {
		char how = escape(bytes[at]);
		size_t length = sw_utf8_length((const char *)bytes + at, size - at);
		if (how == 0 && length > 0) {
			at += length;
			continue;
		}
		sw_json_bytes(json, text + plain, at - plain);
		if (how != 0)
			write_escape(json, bytes[at], how);
		else
			sw_json_bytes(json, "\xEF\xBF\xBD", 3);
		plain = ++at;
	}
	sw_json_bytes(json, text + plain, size - plain);
	sw_json_bytes(json, "\"", 1);
}

void sw_json_string_n(struct sw_json *json, const char *text, size_t size)
{
	start_value(json);
	write_string(json, text, size);
}

void sw_json_string(struct sw_json *json, const char *text)
{
	sw_json_string_n(json, text, strlen(text));
}

void sw_json_key(struct sw_json *json, const char *key)
{
	sw_json_string(json, key);
	sw_json_bytes(json, ":", 1);
	json->wants_comma = false;
}

void sw_json_i64(struct sw_json *json, int64_t value)
{
	char text[32];
	start_value(json);
	sw_json_bytes(json, text, (size_t)snprintf(text, sizeof text, "%" PRId64, value));
}

void sw_json_u64(struct sw_json *json, uint64_t value)
{
	char text[32];
	start_value(json);
	sw_json_bytes(json, text, (size_t)snprintf(text, sizeof text, "%" PRIu64, value));
}

void sw_json_decimal(struct sw_json *json, int64_t value, int64_t scale)
{
	char text[64];
	uint64_t magnitude = value < 0 ? -(uint64_t)value : (uint64_t)value;
	uint64_t whole = magnitude / (uint64_t)scale, rest = magnitude % (uint64_t)scale;
	int size = snprintf(text, sizeof text, "%s%" PRIu64, value < 0 ? "-" : "", whole);
	if (rest > 0)
		text[size++] = '.';
	for (int64_t digit = scale / 10; rest > 0; digit /= 10) {
		text[size++] = (char)('0' + rest / (uint64_t)digit);
		rest %= (uint64_t)digit;
	}
	start_value(json);
	sw_json_bytes(json, text, (size_t)size);
}

void sw_json_bool(struct sw_json *json, bool value)
{
	start_value(json);
	sw_json_bytes(json, value ? "true" : "false", value ? 4 : 5);
}

void sw_json_null(struct sw_json *json)
{
	start_value(json);
	sw_json_bytes(json, "null", 4);
}

void sw_json_raw(struct sw_json *json, const char *text, size_t size)
{
	start_value(json);
	sw_json_bytes(json, text, size);
}

void sw_json_key_string(struct sw_json *json, const char *key, const char *text)
{
	sw_json_key(json, key);
	sw_json_string(json, text);
}

void sw_json_key_i64(struct sw_json *json, const char *key, int64_t value)
{
	sw_json_key(json, key);
	sw_json_i64(json, value);
}

void sw_json_key_u64(struct sw_json *json, const char *key, uint64_t value)
{
	sw_json_key(json, key);
	sw_json_u64(json, value);
}

void sw_json_key_bool(struct sw_json *json, const char *key, bool value)
{
	sw_json_key(json, key);
	sw_json_bool(json, value);
}

size_t sw_json_string_size(const char *text)
{
	size_t size = 2;
	for (; *text != '\0'; text++) {
		char how = escape((unsigned char)*text);
		size += how == 0 ? 1 : how == 'u' ? 6 : 2;
	}
	return size;
}
