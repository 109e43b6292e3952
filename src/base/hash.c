#include "base/hash.h"

/* Words are put together byte by byte, low byte first, so that the fingerprint does not depend on
 * the machine's byte order. */
uint64_t sw_hash_bytes(uint64_t hash, const void *bytes, size_t size)
{
	const unsigned char *at = bytes;
	for (size_t done = 0; done < size; done += 8) {
		size_t chunk = size - done < 8 ? size - done : 8;
		uint64_t word = 0;
		for (size_t i = 0; i < chunk; i++)
			word |= (uint64_t)at[done + i] << (8 * i);
		hash = sw_hash_u64(hash, word);
	}
	/* The length tells "a" from "a\0", and one call over two pieces from two calls. */
	return sw_hash_u64(hash, size);
}
