/* State as bytes and back, by one walk over the fields: the same function writes a struct and reads
 * it, so the two cannot differ.
 *
 *	static void pack_seat(struct sw_pack *pack, struct seat *seat)
 *	{
 *		sw_pack_u32(pack, &seat->row);
 *		sw_pack_text(pack, &seat->name);
 *	}
 *
 *	struct sw_pack out = {0};				writes; grows as needed
 *	struct sw_pack in = sw_pack_reader(bytes, size);	reads; never past the end
 *
 * Integers are stored in groups of seven bits, the lowest first, signed ones folded so that small
 * numbers of either sign are short. Nothing depends on the machine. Bytes that are not what was
 * written (too short, a number too large for its field) make the pack fail. From then on it reads
 * zeros and writes nothing. So a caller looks at the end of a walk, before it uses what was read.
 */
#ifndef SW_BASE_PACK_H
#define SW_BASE_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct sw_pack {
	unsigned char *bytes; /* writing: owned, see sw_pack_take() */
	const unsigned char *source;
	size_t size;	 /* written, or to be read */
	size_t capacity; /* of `bytes` */
	size_t at;	 /* read so far */
	uint32_t format; /* the walks' own: which fields the bytes have */
	bool reads;
	int failed; /* 0, SW_EINPUT or SW_ENOMEM */
};

/* Room for so many bytes at once, where the writer knows about how many there will be. */
void sw_pack_reserve(struct sw_pack *pack, size_t size);
struct sw_pack sw_pack_reader(const void *bytes, size_t size);
/* What was written; the caller frees it. NULL when it failed. */
unsigned char *sw_pack_take(struct sw_pack *pack, size_t *ret_size);
void sw_pack_release(struct sw_pack *pack);
static inline size_t sw_pack_left(const struct sw_pack *pack)
{
	return pack->size - pack->at;
}
/* The bytes are wrong for a reason that only the caller knows. */
void sw_pack_fail(struct sw_pack *pack);

void sw_pack_u64(struct sw_pack *pack, uint64_t *value);
void sw_pack_u32(struct sw_pack *pack, uint32_t *value);
void sw_pack_u16(struct sw_pack *pack, uint16_t *value);
void sw_pack_u8(struct sw_pack *pack, uint8_t *value);
void sw_pack_bool(struct sw_pack *pack, bool *value);
void sw_pack_i64(struct sw_pack *pack, int64_t *value);
void sw_pack_int(struct sw_pack *pack, int *value);
/* A number that is usually near `base`, or INT64_MAX ("never"). Any but `base` + INT64_MIN. */
void sw_pack_near(struct sw_pack *pack, int64_t *value, int64_t base);
/* Eight bytes, the lowest first: for numbers without a usual size. */
void sw_pack_word(struct sw_pack *pack, uint64_t *value);
void sw_pack_raw(struct sw_pack *pack, void *bytes, size_t size);
/* An array of `size` characters that holds a text with its end. */
void sw_pack_chars(struct sw_pack *pack, char *text, size_t size);
/* A text of its own; read ones are the caller's to free. Never NULL, except after a failure. */
void sw_pack_text(struct sw_pack *pack, char **text);
/* How many elements follow, each of at least one byte; so a wrong one cannot ask for more memory
 * than its bytes are worth. */
void sw_pack_count(struct sw_pack *pack, size_t *count);

#endif
