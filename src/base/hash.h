/* A 64-bit running hash (FNV-1a over 64-bit words with a final mix): fingerprints of
 * logs, not for security. */
#ifndef SW_BASE_HASH_H
#define SW_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define SW_HASH_START UINT64_C(0xcbf29ce484222325)

static inline uint64_t sw_hash_u64(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
	return hash ^ (hash >> 29);
}

uint64_t sw_hash_bytes(uint64_t hash, const void *bytes, size_t size);

#endif
