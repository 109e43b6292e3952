/* Small pieces out of larger chunks of device memory: for small plain
 * allocations, and for pools. */
#ifndef EMU_ARENA_H
#define EMU_ARENA_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "cuda/driver.h"

struct emu_chunk;

struct emu_arena {
	pthread_mutex_t lock;
	int gpu;
	uint64_t chunk_bytes; /* the least that is taken from the GPU at a time, if there is room */
	uint64_t limit_bytes; /* 0: none */
	uint64_t reserved, reserved_high, used, used_high;
	struct emu_chunk *chunks;
};

void emu_arena_init(struct emu_arena *arena, int gpu, uint64_t chunk_bytes);

/* `stream`: the id of a stream that may also have what it freed itself and what is not yet
 * free for all; 0 for none. */
CUresult emu_arena_take(struct emu_arena *arena, uint64_t bytes, uint64_t stream, uint64_t *ret_address);

/* Free at once. */
void emu_arena_give(struct emu_arena *arena, uint64_t address);

/* Free for the stream now and for all when `emu_arena_freed` comes with the ticket; the ticket is 0
 * when there is no such piece. */
uint64_t emu_arena_begin_give(struct emu_arena *arena, uint64_t address, uint64_t stream);
void emu_arena_freed(struct emu_arena *arena, uint64_t address, uint64_t ticket);

/* Gives whole free chunks back while more than `keep_bytes` are reserved. */
void emu_arena_trim(struct emu_arena *arena, uint64_t keep_bytes);

/* Everything back, used or not. */
void emu_arena_release(struct emu_arena *arena);

#endif
