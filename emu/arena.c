/* First fit in a list of chunks; neighbours that are free become one. */
#include "arena.h"

#include <stdlib.h>

#include "memory.h"

enum { ALIGNMENT = 512 };
enum piece_state { FREE, USED, FREEING };

struct piece {
	struct piece *next;
	uint64_t address, bytes;
	enum piece_state state;
	uint64_t stream, ticket; /* of one that is being freed */
};

struct emu_chunk {
	struct emu_chunk *next;
	struct emu_range *range;
	struct piece *pieces;
};

void emu_arena_init(struct emu_arena *arena, int gpu, uint64_t chunk_bytes)
{
	*arena = (struct emu_arena){.gpu = gpu, .chunk_bytes = chunk_bytes};
	pthread_mutex_init(&arena->lock, NULL);
}

static uint64_t round_up(uint64_t value, uint64_t unit)
{
	return (value + unit - 1) / unit * unit;
}

static bool usable(const struct piece *piece, uint64_t bytes, uint64_t stream)
{
	return piece->bytes >= bytes && (piece->state == FREE || (piece->state == FREEING && stream != 0 && piece->stream == stream));
}

/* The rest becomes a piece of its own, in the state of the whole. */
static bool split(struct piece *piece, uint64_t bytes)
{
	if (piece->bytes == bytes)
		return true;
	struct piece *rest = malloc(sizeof *rest);
	if (rest == NULL)
		return false;
	*rest = *piece;
	rest->address += bytes;
	rest->bytes -= bytes;
	piece->bytes = bytes;
	piece->next = rest;
	return true;
}

static CUresult add_chunk(struct emu_arena *arena, uint64_t bytes)
{
	struct emu_chunk *chunk = calloc(1, sizeof *chunk);
	struct piece *piece = calloc(1, sizeof *piece);
	uint64_t least = round_up(bytes, EMU_GRANULARITY);
	uint64_t wanted = least > arena->chunk_bytes ? least : arena->chunk_bytes;
	CUresult result = chunk != NULL && piece != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	if (arena->limit_bytes != 0 && arena->reserved + wanted > arena->limit_bytes)
		wanted = least;
	if (arena->limit_bytes != 0 && arena->reserved + wanted > arena->limit_bytes)
		result = CUDA_ERROR_OUT_OF_MEMORY;
	if (result == CUDA_SUCCESS)
		result = emu_range_allocate(arena->gpu, wanted, &chunk->range);
	if (result == CUDA_ERROR_OUT_OF_MEMORY && wanted > least && piece != NULL && chunk != NULL)
		result = emu_range_allocate(arena->gpu, least, &chunk->range);
	if (result != CUDA_SUCCESS) {
		free(chunk);
		free(piece);
		return result;
	}
	piece->address = chunk->range->base;
	piece->bytes = chunk->range->bytes;
	chunk->pieces = piece;
	chunk->next = arena->chunks;
	arena->chunks = chunk;
	arena->reserved += chunk->range->bytes;
	if (arena->reserved > arena->reserved_high)
		arena->reserved_high = arena->reserved;
	return CUDA_SUCCESS;
}

static struct piece *find_usable(struct emu_arena *arena, uint64_t bytes, uint64_t stream)
{
	for (struct emu_chunk *chunk = arena->chunks; chunk != NULL; chunk = chunk->next)
		for (struct piece *piece = chunk->pieces; piece != NULL; piece = piece->next)
			if (usable(piece, bytes, stream))
				return piece;
	return NULL;
}

CUresult emu_arena_take(struct emu_arena *arena, uint64_t bytes, uint64_t stream, uint64_t *ret_address)
{
	uint64_t whole = round_up(bytes, ALIGNMENT);
	if (whole < bytes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = CUDA_SUCCESS;
	pthread_mutex_lock(&arena->lock);
	struct piece *piece = find_usable(arena, whole, stream);
	if (piece == NULL) {
		result = add_chunk(arena, whole);
		piece = result == CUDA_SUCCESS ? find_usable(arena, whole, stream) : NULL;
	}
	if (piece != NULL && !split(piece, whole)) {
		piece = NULL;
		result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (piece != NULL) {
		piece->state = USED;
		piece->ticket = 0;
		arena->used += whole;
		if (arena->used > arena->used_high)
			arena->used_high = arena->used;
		*ret_address = piece->address;
	}
	pthread_mutex_unlock(&arena->lock);
	return result;
}

static void join(struct emu_chunk *chunk)
{
	for (struct piece *piece = chunk->pieces; piece != NULL && piece->next != NULL;) {
		struct piece *next = piece->next;
		if (piece->state != FREE || next->state != FREE) {
			piece = next;
			continue;
		}
		piece->bytes += next->bytes;
		piece->next = next->next;
		free(next);
	}
}

static struct piece *find(struct emu_arena *arena, uint64_t address, struct emu_chunk **ret_chunk)
{
	for (struct emu_chunk *chunk = arena->chunks; chunk != NULL; chunk = chunk->next) {
		if (address < chunk->range->base || address >= chunk->range->base + chunk->range->bytes)
			continue;
		*ret_chunk = chunk;
		for (struct piece *piece = chunk->pieces; piece != NULL; piece = piece->next)
			if (piece->address == address)
				return piece;
	}
	return NULL;
}

void emu_arena_give(struct emu_arena *arena, uint64_t address)
{
	struct emu_chunk *chunk = NULL;
	pthread_mutex_lock(&arena->lock);
	struct piece *piece = find(arena, address, &chunk);
	if (piece != NULL && piece->state == USED) {
		arena->used -= piece->bytes;
		piece->state = FREE;
		join(chunk);
	}
	pthread_mutex_unlock(&arena->lock);
}

uint64_t emu_arena_begin_give(struct emu_arena *arena, uint64_t address, uint64_t stream)
{
	struct emu_chunk *chunk = NULL;
	uint64_t ticket = 0;
	pthread_mutex_lock(&arena->lock);
	struct piece *piece = find(arena, address, &chunk);
	if (piece != NULL && piece->state == USED) {
		arena->used -= piece->bytes;
		piece->state = FREEING;
		piece->stream = stream;
		ticket = emu_next_id();
		piece->ticket = ticket;
	}
	pthread_mutex_unlock(&arena->lock);
	return ticket;
}

/* The piece may have been split since, by the stream itself: what is left of
 * it has the same ticket. */
void emu_arena_freed(struct emu_arena *arena, uint64_t address, uint64_t ticket)
{
	pthread_mutex_lock(&arena->lock);
	for (struct emu_chunk *chunk = arena->chunks; chunk != NULL; chunk = chunk->next) {
		if (address < chunk->range->base || address >= chunk->range->base + chunk->range->bytes)
			continue;
		for (struct piece *piece = chunk->pieces; piece != NULL; piece = piece->next)
			if (piece->state == FREEING && piece->ticket == ticket)
				piece->state = FREE;
		join(chunk);
	}
	pthread_mutex_unlock(&arena->lock);
}

static void free_chunk(struct emu_chunk *chunk)
{
	for (struct piece *piece = chunk->pieces, *next = NULL; piece != NULL; piece = next) {
		next = piece->next;
		free(piece);
	}
	emu_range_free(chunk->range);
	free(chunk);
}

void emu_arena_trim(struct emu_arena *arena, uint64_t keep_bytes)
{
	pthread_mutex_lock(&arena->lock);
	for (struct emu_chunk **link = &arena->chunks; *link != NULL && arena->reserved > keep_bytes;) {
		struct emu_chunk *chunk = *link;
		if (chunk->pieces->next != NULL || chunk->pieces->state != FREE) {
			link = &chunk->next;
			continue;
		}
		*link = chunk->next;
		arena->reserved -= chunk->range->bytes;
		free_chunk(chunk);
	}
	pthread_mutex_unlock(&arena->lock);
}

void emu_arena_release(struct emu_arena *arena)
{
	pthread_mutex_lock(&arena->lock);
	for (struct emu_chunk *chunk = arena->chunks, *next = NULL; chunk != NULL; chunk = next) {
		next = chunk->next;
		free_chunk(chunk);
	}
	arena->chunks = NULL;
	arena->reserved = arena->used = 0;
	pthread_mutex_unlock(&arena->lock);
}
