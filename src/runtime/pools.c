#include "runtime/pools.h"

#include <stdlib.h>

#include "runtime/account.h"
#include "runtime/driver.h"
#include "runtime/freers.h"
#include "runtime/memory.h"
#include "runtime/tools.h"

#define PIECE ((size_t)512) /* sizes are multiples of it */
/* Small requests have ranges of their own: what lives long is often small, and would keep large
 * ranges from being whole again. */
#define SMALL_MOST ((size_t)1 << 20)
#define SMALL_RANGE ((size_t)8 << 20) /* what is got at least, where there is room */
#define LARGE_RANGE ((size_t)32 << 20)
/* Bins: eight for each doubling of the size. */
enum { POOLS = 64, STEPS = 8, BINS = 36 * STEPS, WORD = 64, GLANCES = 16 };

struct sw_pool_piece {
	struct heap *heap;
	struct sw_range *range;
	CUdeviceptr address;
	size_t bytes;
	struct sw_pool_piece *before, *after;  /* neighbours in the range */
	struct sw_pool_piece *next, *previous; /* in its bin, while it is idle */
	struct sw_freer *freer;		       /* that had it last, while it is idle; NULL: it is over */
	uint64_t freed_at;
	bool idle;
};

struct heap {
	struct sw_pool *pool;
	struct sw_pool_piece *bins[BINS];
	uint64_t filled[BINS / WORD + 1]; /* a bit for each bin that is not empty */
};

struct sw_pool {
	CUmemoryPool handle; /* NULL: the program destroyed it */
	CUdevice device;
	size_t most_bytes; /* 0: no limit of its own */
	uint64_t threshold;
	struct sw_pool_figures figures;
	struct heap heaps[2]; /* for large and for small requests */
};

static struct sw_pool *pools[POOLS];
static unsigned pool_count;

/* ---- bins */

/* Where pieces of this size are, with others that differ by an eighth at most. */
static unsigned bin_of(size_t bytes)
{
	size_t pieces = bytes / PIECE;
	if (pieces < STEPS)
		return (unsigned)pieces;
	unsigned power = 63 - (unsigned)__builtin_clzll(pieces), step = (unsigned)(pieces >> (power - 3)) - STEPS;
	unsigned bin = (power - 2) * STEPS + step;
	return bin < BINS ? bin : BINS - 1;
}

static void shelve(struct sw_pool_piece *piece)
{
	unsigned bin = bin_of(piece->bytes);
	struct heap *heap = piece->heap;
	piece->previous = NULL;
	piece->next = heap->bins[bin];
	if (piece->next != NULL)
		piece->next->previous = piece;
	heap->bins[bin] = piece;
	heap->filled[bin / WORD] |= UINT64_C(1) << bin % WORD;
}

static void unshelve(struct sw_pool_piece *piece)
{
	unsigned bin = bin_of(piece->bytes);
	struct heap *heap = piece->heap;
	if (piece->next != NULL)
		piece->next->previous = piece->previous;
	if (piece->previous != NULL)
		piece->previous->next = piece->next;
	else
		heap->bins[bin] = piece->next;
	if (heap->bins[bin] == NULL)
		heap->filled[bin / WORD] &= ~(UINT64_C(1) << bin % WORD);
}

/* BINS: none. */
static unsigned next_filled(const struct heap *heap, unsigned bin)
{
	while (bin < BINS) {
		uint64_t left = heap->filled[bin / WORD] >> bin % WORD;
		if (left != 0)
			return bin + (unsigned)__builtin_ctzll(left);
		bin = (bin / WORD + 1) * WORD;
	}
	return BINS;
}

/* ---- pieces */

static bool is_over(const struct sw_pool_piece *piece)
{
	return piece->freer == NULL || sw_freer_is_over(piece->freer, piece->freed_at);
}

static void refer(struct sw_pool_piece *piece, struct sw_freer *freer, uint64_t freed_at)
{
	if (piece->freer != NULL)
		piece->freer->uses--;
	if (freer != NULL)
		freer->uses++;
	piece->freer = freer;
	piece->freed_at = freed_at;
}

/* The smallest that fits, nearly: some of its own bin may, all of the larger ones do. `most` bounds
 * how many of a bin are looked at. */
static struct sw_pool_piece *find(const struct heap *heap, const struct sw_freer *freer, size_t bytes, unsigned most)
{
	for (unsigned bin = next_filled(heap, bin_of(bytes)); bin < BINS; bin = next_filled(heap, bin + 1)) {
		unsigned looked = 0;
		for (struct sw_pool_piece *piece = heap->bins[bin]; piece != NULL && looked < most; piece = piece->next, looked++)
			if (piece->bytes >= bytes && piece->range->context == freer->context && (piece->freer == freer || is_over(piece)))
				return piece;
	}
	return NULL;
}

/* Takes the second, which follows, into the first; neither is in a bin. */
static void unite(struct sw_pool_piece *first, struct sw_pool_piece *second)
{
	first->bytes += second->bytes;
	first->freed_at = second->freed_at > first->freed_at ? second->freed_at : first->freed_at;
	first->after = second->after;
	if (second->after != NULL)
		second->after->before = first;
	refer(second, NULL, 0);
	free(second);
}

/* The rest of an idle piece becomes one of its own. Without memory for that, the whole serves. */
static void split(struct sw_pool_piece *piece, size_t bytes)
{
	struct sw_pool_piece *rest = piece->bytes > bytes ? calloc(1, sizeof *rest) : NULL;
	if (rest == NULL)
		return;
	*rest = (struct sw_pool_piece){.heap = piece->heap,
				       .range = piece->range,
				       .address = piece->address + bytes,
				       .bytes = piece->bytes - bytes,
				       .before = piece,
				       .after = piece->after,
				       .idle = true};
	if (rest->after != NULL)
		rest->after->before = rest;
	piece->after = rest;
	piece->bytes = bytes;
	refer(rest, piece->freer, piece->freed_at);
	shelve(rest);
}

/* Idle neighbours all over the pool that may be one piece now, since they are over or of one
 * freer. */
static void unite_all(const struct sw_pool *pool)
{
	for (struct sw_range *range = sw_ranges; range != NULL; range = range->next)
		for (struct sw_pool_piece *piece = range->pieces; piece != NULL && piece->heap->pool == pool; piece = piece->after)
			while (piece->idle && piece->after != NULL && piece->after->idle &&
			       (piece->freer == piece->after->freer || (is_over(piece) && is_over(piece->after)))) {
				bool over = is_over(piece) && is_over(piece->after);
				unshelve(piece);
				unshelve(piece->after);
				unite(piece, piece->after);
				piece->freed_at = over ? 0 : piece->freed_at;
				shelve(piece);
			}
}

/* ---- ranges */

/* What to get for a request: more than it needs, where the limit, the GPU and the pool have
 * room. */
static size_t growth(const struct sw_pool *pool, size_t bytes, size_t usual)
{
	size_t free = 0, total = 0, least = sw_round_up(bytes, SW_UNIT_BYTES);
	bool room = usual <= sw_account_room(sw_account_gpu(pool->device)) && sw_driver.memory_info(&free, &total) == CUDA_SUCCESS &&
		    usual <= free;
	return least < usual && room && (pool->most_bytes == 0 || pool->figures.reserved + usual <= pool->most_bytes) ? usual : least;
}

static CUresult grow(struct heap *heap, struct sw_freer *freer, size_t bytes)
{
	struct sw_pool *pool = heap->pool;
	struct sw_pool_figures *figures = &pool->figures;
	struct sw_range *range = NULL;
	size_t wanted = growth(pool, bytes, heap == &pool->heaps[1] ? SMALL_RANGE : LARGE_RANGE);
	if (pool->most_bytes != 0 && figures->reserved + wanted > pool->most_bytes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	struct sw_pool_piece *piece = calloc(1, sizeof *piece);
	int mode = sw_capture_relax();
	CUresult result = piece == NULL ? CUDA_ERROR_OUT_OF_MEMORY : sw_range_new(wanted, &range);
	sw_capture_restore(mode);
	if (result != CUDA_SUCCESS) {
		free(piece);
		return result;
	}
	*piece = (struct sw_pool_piece){.heap = heap, .range = range, .address = range->address, .bytes = range->bytes, .idle = true};
	range->pieces = piece;
	refer(piece, freer, 0);
	shelve(piece);
	figures->reserved += range->bytes;
	if (figures->reserved > figures->reserved_high)
		figures->reserved_high = figures->reserved;
	return CUDA_SUCCESS;
}

/* Its pieces go. */
static void clear(struct sw_range *range)
{
	struct sw_pool *pool = range->pieces->heap->pool;
	for (struct sw_pool_piece *piece = range->pieces, *after; piece != NULL; piece = after) {
		after = piece->after;
		if (piece->idle)
			unshelve(piece);
		else
			pool->figures.used -= piece->bytes;
		refer(piece, NULL, 0);
		free(piece);
	}
	range->pieces = NULL;
	pool->figures.reserved -= range->bytes;
}

/* ---- allocations */

CUresult sw_pool_get(struct sw_pool *pool, struct sw_freer *freer, size_t bytes, struct sw_range **ret_range,
		     struct sw_pool_piece **ret_piece, CUdeviceptr *ret_address)
{
	struct heap *heap = &pool->heaps[bytes <= SMALL_MOST];
	size_t whole = sw_round_up(bytes, PIECE);
	CUresult result = whole < bytes || whole > SIZE_MAX / 2 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
	struct sw_pool_piece *piece = result == CUDA_SUCCESS ? find(heap, freer, whole, GLANCES) : NULL;
	if (piece == NULL && result == CUDA_SUCCESS && sw_pool_has_idle(pool)) {
		sw_freers_poll();
		unite_all(pool);
		piece = find(heap, freer, whole, UINT32_MAX);
	}
	if (piece == NULL && result == CUDA_SUCCESS) {
		result = grow(heap, freer, whole);
		piece = result == CUDA_SUCCESS ? find(heap, freer, whole, UINT32_MAX) : NULL;
	}
	if (piece == NULL)
		return result;
	unshelve(piece);
	split(piece, whole);
	refer(piece, NULL, 0);
	piece->idle = false;
	pool->figures.used += piece->bytes;
	if (pool->figures.used > pool->figures.used_high)
		pool->figures.used_high = pool->figures.used;
	*ret_range = piece->range;
	*ret_piece = piece;
	*ret_address = piece->address;
	return CUDA_SUCCESS;
}

/* Neighbours that the same freer freed are one with it; to others that may take long to be
 * over they are not tied. */
void sw_pool_put(struct sw_pool_piece *piece, struct sw_freer *freer)
{
	struct sw_pool *pool = piece->heap->pool;
	pool->figures.used -= piece->bytes;
	piece->idle = true;
	refer(piece, freer, freer == NULL ? 0 : sw_freer_free(freer, piece->bytes));
	if (piece->after != NULL && piece->after->idle && piece->after->freer == freer) {
		unshelve(piece->after);
		unite(piece, piece->after);
	}
	if (piece->before != NULL && piece->before->idle && piece->before->freer == freer) {
		struct sw_pool_piece *first = piece->before;
		unshelve(first);
		unite(first, piece);
		piece = first;
	}
	shelve(piece);
	/* What is left of a pool that was destroyed will not be asked for again. */
	if (freer == NULL || pool->handle == NULL)
		sw_pool_trim(pool, pool->threshold);
}

bool sw_pool_has_idle(const struct sw_pool *pool)
{
	return pool->figures.reserved > pool->figures.used;
}

/* ---- giving back */

/* One that was destroyed. */
static void forget_if_empty(struct sw_pool *pool)
{
	if (pool->handle != NULL || pool->figures.reserved > 0)
		return;
	for (unsigned i = 0; i < pool_count; i++)
		if (pools[i] == pool)
			pools[i--] = pools[--pool_count];
	free(pool);
}

void sw_pool_forget_range(struct sw_range *range)
{
	struct sw_pool *pool = range->pieces->heap->pool;
	clear(range);
	forget_if_empty(pool);
}

static void give_back(struct sw_range *range)
{
	CUcontext popped;
	int mode = sw_capture_relax();
	bool pushed = sw_driver.context_push(range->context) == CUDA_SUCCESS;
	clear(range);
	sw_range_free(range);
	if (pushed)
		sw_driver.context_pop(&popped);
	sw_capture_restore(mode);
}

void sw_pool_trim(struct sw_pool *pool, uint64_t keep)
{
	if (sw_pool_has_idle(pool) && pool->figures.reserved > keep) {
		sw_freers_poll();
		unite_all(pool);
	}
	for (struct sw_range *range = sw_ranges, *next; range != NULL && pool->figures.reserved > keep; range = next) {
		const struct sw_pool_piece *piece = range->pieces;
		next = range->next;
		if (piece != NULL && piece->heap->pool == pool && piece->after == NULL && piece->idle && is_over(piece))
			give_back(range);
	}
	forget_if_empty(pool);
}

bool sw_pools_exceed(void)
{
	for (unsigned i = 0; i < pool_count; i++)
		if (pools[i]->figures.reserved > pools[i]->threshold && sw_pool_has_idle(pools[i]))
			return true;
	return false;
}

/* From the last: a pool that is forgotten gives its place to one that was seen. */
void sw_pools_settle(void)
{
	for (unsigned i = pool_count; i-- > 0;)
		sw_pool_trim(pools[i], pools[i]->threshold);
}

size_t sw_pools_idle(void)
{
	size_t bytes = 0;
	for (unsigned i = 0; i < pool_count; i++)
		bytes += pools[i]->figures.reserved - pools[i]->figures.used;
	return bytes;
}

bool sw_pools_reclaim(int gpu)
{
	uint64_t before = 0, after = 0;
	for (unsigned i = pool_count; i-- > 0;)
		if (sw_account_gpu(pools[i]->device) == gpu) {
			before += pools[i]->figures.reserved;
			sw_pool_trim(pools[i], 0);
		}
	for (unsigned i = 0; i < pool_count; i++)
		after += sw_account_gpu(pools[i]->device) == gpu ? pools[i]->figures.reserved : 0;
	return after < before;
}

void sw_pools_loosen(void)
{
	sw_freers_poll();
	for (struct sw_range *range = sw_ranges; range != NULL; range = range->next)
		for (struct sw_pool_piece *piece = range->pieces; piece != NULL; piece = piece->after)
			if (piece->idle && is_over(piece))
				refer(piece, NULL, 0);
}

/* ---- pools */

struct sw_pool *sw_pool_known(CUmemoryPool handle)
{
	for (unsigned i = 0; i < pool_count && handle != NULL; i++)
		if (pools[i]->handle == handle)
			return pools[i];
	return NULL;
}

static struct sw_pool *add(CUmemoryPool handle, CUdevice device, size_t most_bytes)
{
	struct sw_pool *pool = pool_count < POOLS ? calloc(1, sizeof *pool) : NULL;
	if (pool == NULL)
		return NULL;
	pool->handle = handle;
	pool->device = device;
	pool->most_bytes = most_bytes;
	if (sw_driver.pool_attribute(handle, CU_MEMPOOL_RELEASE_THRESHOLD, &pool->threshold) != CUDA_SUCCESS)
		pool->threshold = 0;
	for (unsigned i = 0; i < 2; i++)
		pool->heaps[i].pool = pool;
	pools[pool_count++] = pool;
	return pool;
}

struct sw_pool *sw_pool_of(CUmemoryPool handle, CUdevice device)
{
	CUmemoryPool own = NULL;
	struct sw_pool *pool = sw_pool_known(handle);
	if (pool != NULL)
		return pool->device == device ? pool : NULL;
	bool is_own = handle != NULL && sw_driver.pool_attribute != NULL && sw_driver.default_pool != NULL &&
		      sw_driver.default_pool(&own, device) == CUDA_SUCCESS && own == handle;
	return is_own ? add(handle, device, 0) : NULL;
}

void sw_pool_made(CUmemoryPool handle, const CUmemPoolProps *props)
{
	/* What else may be asked of a pool (to decompress in hardware, say) our memory cannot
	 * do. */
	if (sw_driver.pool_attribute != NULL && props->type == CU_MEM_ALLOCATION_PINNED && props->handle_types == CU_MEM_HANDLE_NONE &&
	    props->location.type == CU_MEM_LOCATION_DEVICE && props->usage == 0)
		add(handle, props->location.id, props->max_size);
}

void sw_pool_destroyed(CUmemoryPool handle)
{
	struct sw_pool *pool = sw_pool_known(handle);
	if (pool == NULL)
		return;
	pool->handle = NULL;
	pool->threshold = 0;
	sw_pool_trim(pool, 0);
}

CUmemoryPool sw_pool_handle(const struct sw_pool_piece *piece)
{
	return piece->heap->pool->handle;
}

struct sw_pool_figures sw_pool_figures(const struct sw_pool *pool)
{
	return pool->figures;
}

void sw_pool_forget_high(struct sw_pool *pool, bool reserved, bool used)
{
	if (reserved)
		pool->figures.reserved_high = pool->figures.reserved;
	if (used)
		pool->figures.used_high = pool->figures.used;
}

void sw_pool_set_threshold(struct sw_pool *pool, uint64_t bytes)
{
	pool->threshold = bytes;
}

int sw_pool_device(const struct sw_pool *pool)
{
	return pool->device;
}
