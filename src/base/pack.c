#include "base/pack.h"

#include <stdlib.h>
#include <string.h>

#define NUMBER_MAX 10 /* bytes of the longest */

struct sw_pack sw_pack_reader(const void *bytes, size_t size)
{
	return (struct sw_pack){.source = bytes, .size = size, .reads = true};
}

unsigned char *sw_pack_take(struct sw_pack *pack, size_t *ret_size)
{
	if (pack->failed != 0)
		return NULL;
	unsigned char *bytes = pack->bytes != NULL ? pack->bytes : malloc(1);
	if (bytes == NULL)
		return NULL;
	*ret_size = pack->size;
	*pack = (struct sw_pack){0};
	return bytes;
}

void sw_pack_release(struct sw_pack *pack)
{
	free(pack->bytes);
	*pack = (struct sw_pack){0};
}

void sw_pack_fail(struct sw_pack *pack)
{
	if (pack->failed == 0)
		pack->failed = SW_EINPUT;
}

/* ---- bytes */

static bool grow(struct sw_pack *pack, size_t wanted)
{
	size_t capacity = pack->capacity + pack->capacity / 2 + wanted + 4096;
	unsigned char *grown = capacity > pack->size ? realloc(pack->bytes, capacity) : NULL;
	if (grown == NULL) {
		pack->failed = SW_ENOMEM;
		return false;
	}
	pack->bytes = grown;
	pack->capacity = capacity;
	return true;
}

static inline bool make_room(struct sw_pack *pack, size_t wanted)
{
	return pack->failed == 0 && (pack->capacity - pack->size >= wanted || grow(pack, wanted));
}

void sw_pack_reserve(struct sw_pack *pack, size_t size)
{
	if (size > pack->capacity)
		make_room(pack, size - pack->size);
}

static void put_number(struct sw_pack *pack, uint64_t number)
{
	if (!make_room(pack, NUMBER_MAX))
		return;
	unsigned char *at = pack->bytes + pack->size;
	for (; number >= 0x80; number >>= 7)
		*at++ = (unsigned char)(number | 0x80);
	*at++ = (unsigned char)number;
	pack->size = (size_t)(at - pack->bytes);
}

static uint64_t get_number(struct sw_pack *pack, uint64_t most)
{
	uint64_t number = 0;
	for (unsigned shift = 0; pack->failed == 0; shift += 7) {
		if (pack->at == pack->size || shift > 63)
			break;
		unsigned char byte = pack->source[pack->at++];
		uint64_t group = byte & 0x7f;
		if (shift == 63 && group > 1)
			break;
		number |= group << shift;
		if (byte < 0x80) {
			if (number > most || (byte == 0 && shift > 0)) /* one way to write each number */
				break;
			return number;
		}
	}
	sw_pack_fail(pack);
	return 0;
}

void sw_pack_raw(struct sw_pack *pack, void *bytes, size_t size)
{
	if (!pack->reads) {
		if (size > 0 && make_room(pack, size)) {
			memcpy(pack->bytes + pack->size, bytes, size);
			pack->size += size;
		}
		return;
	}
	if (pack->failed != 0 || size > sw_pack_left(pack)) {
		sw_pack_fail(pack);
		if (size > 0)
			memset(bytes, 0, size);
		return;
	}
	if (size > 0)
		memcpy(bytes, pack->source + pack->at, size);
	pack->at += size;
}

/* ---- numbers */

void sw_pack_u64(struct sw_pack *pack, uint64_t *value)
{
	if (pack->reads)
		*value = get_number(pack, UINT64_MAX);
	else
		put_number(pack, *value);
}

void sw_pack_u32(struct sw_pack *pack, uint32_t *value)
{
	if (pack->reads)
		*value = (uint32_t)get_number(pack, UINT32_MAX);
	else
		put_number(pack, *value);
}

void sw_pack_u16(struct sw_pack *pack, uint16_t *value)
{
	if (pack->reads)
		*value = (uint16_t)get_number(pack, UINT16_MAX);
	else
		put_number(pack, *value);
}

void sw_pack_u8(struct sw_pack *pack, uint8_t *value)
{
	if (pack->reads)
		*value = (uint8_t)get_number(pack, UINT8_MAX);
	else
		put_number(pack, *value);
}

void sw_pack_bool(struct sw_pack *pack, bool *value)
{
	if (pack->reads)
		*value = get_number(pack, 1) != 0;
	else
		put_number(pack, *value);
}

/* 0, -1, 1, -2, 2 ... as 0, 1, 2, 3, 4 ... */
static uint64_t fold(int64_t number)
{
	return ((uint64_t)number << 1) ^ (number < 0 ? UINT64_MAX : 0);
}

static int64_t unfold(uint64_t folded)
{
	return (int64_t)((folded >> 1) ^ ((folded & 1) != 0 ? UINT64_MAX : 0));
}

void sw_pack_i64(struct sw_pack *pack, int64_t *value)
{
	if (pack->reads)
		*value = unfold(get_number(pack, UINT64_MAX));
	else
		put_number(pack, fold(*value));
}

void sw_pack_int(struct sw_pack *pack, int *value)
{
	int64_t wide = *value;
	sw_pack_i64(pack, &wide);
	if (wide < INT32_MIN || wide > INT32_MAX) {
		sw_pack_fail(pack);
		wide = 0;
	}
	*value = (int)wide;
}

void sw_pack_near(struct sw_pack *pack, int64_t *value, int64_t base)
{
	if (!pack->reads) {
		put_number(pack, *value == INT64_MAX ? 0 : fold((int64_t)((uint64_t)*value - (uint64_t)base)) + 1);
		return;
	}
	uint64_t number = get_number(pack, UINT64_MAX);
	*value = number == 0 ? INT64_MAX : (int64_t)((uint64_t)base + (uint64_t)unfold(number - 1));
}

void sw_pack_word(struct sw_pack *pack, uint64_t *value)
{
	unsigned char bytes[8];
	for (unsigned i = 0; i < 8; i++)
		bytes[i] = (unsigned char)(*value >> (8 * i));
	sw_pack_raw(pack, bytes, sizeof bytes);
	if (!pack->reads)
		return;
	*value = 0;
	for (unsigned i = 0; i < 8; i++)
		*value |= (uint64_t)bytes[i] << (8 * i);
}

/* ---- texts */

void sw_pack_chars(struct sw_pack *pack, char *text, size_t size)
{
	uint64_t length = pack->reads ? 0 : strlen(text);
	sw_pack_u64(pack, &length);
	if (pack->reads && length >= size) {
		sw_pack_fail(pack);
		length = 0;
	}
	sw_pack_raw(pack, text, length);
	if (!pack->reads)
		return;
	text[length] = '\0';
	if (strlen(text) != length)
		sw_pack_fail(pack);
}

void sw_pack_text(struct sw_pack *pack, char **text)
{
	size_t length = pack->reads ? 0 : strlen(*text);
	sw_pack_count(pack, &length);
	if (!pack->reads) {
		sw_pack_raw(pack, *text, length);
		return;
	}
	*text = pack->failed == 0 ? malloc(length + 1) : NULL;
	if (*text == NULL) {
		if (pack->failed == 0)
			pack->failed = SW_ENOMEM;
		return;
	}
	sw_pack_raw(pack, *text, length);
	(*text)[length] = '\0';
	if (strlen(*text) != length)
		sw_pack_fail(pack);
}

void sw_pack_count(struct sw_pack *pack, size_t *count)
{
	if (pack->reads)
		*count = get_number(pack, sw_pack_left(pack));
	else
		put_number(pack, *count);
}
