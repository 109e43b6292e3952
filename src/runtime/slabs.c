#include "runtime/slabs.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/driver.h"

/* The driver's own alignment; programs count on 256 at least. */
#define PIECE ((size_t)512)
#define PIECES (SW_UNIT_BYTES / PIECE)

struct sw_slab {
	struct sw_range *range;
	struct sw_slab *next;
	uint32_t used;	      /* pieces */
	uint16_t run[PIECES]; /* at the first piece of an allocation: how many it has; 0 elsewhere */
	uint8_t taken[PIECES];
};

static struct sw_slab *slabs;

/* The first run of free pieces that is long enough; PIECES: none. */
static size_t find_run(const struct sw_slab *slab, size_t wanted)
{
	size_t free = 0;
	if (PIECES - slab->used < wanted)
		return PIECES;
	for (size_t i = 0; i < PIECES; i++) {
		free = slab->taken[i] ? 0 : free + 1;
		if (free == wanted)
			return i + 1 - wanted;
	}
	return PIECES;
}

static CUresult new_slab(struct sw_slab **ret_slab)
{
	struct sw_slab *slab = calloc(1, sizeof *slab);
	if (slab == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = sw_range_new(SW_UNIT_BYTES, &slab->range);
	if (result != CUDA_SUCCESS) {
		free(slab);
		return result;
	}
	slab->range->slab = slab;
	slab->next = slabs;
	slabs = slab;
	*ret_slab = slab;
	return CUDA_SUCCESS;
}

CUresult sw_slab_get(size_t bytes, CUdeviceptr *ret_address, struct sw_range **ret_range)
{
	size_t wanted = (bytes + PIECE - 1) / PIECE, first = PIECES;
	CUcontext context = NULL;
	CUresult result = sw_driver.context_current(&context);
	if (result != CUDA_SUCCESS)
		return result;
	struct sw_slab *slab;
	for (slab = slabs; slab != NULL; slab = slab->next)
		if (slab->range->context == context && !slab->range->pinned && (first = find_run(slab, wanted)) < PIECES)
			break;
	if (slab == NULL) {
		result = new_slab(&slab);
		if (result != CUDA_SUCCESS)
			return result;
		first = 0;
	}
	memset(&slab->taken[first], 1, wanted);
	slab->run[first] = (uint16_t)wanted;
	slab->used += (uint32_t)wanted;
	*ret_address = slab->range->address + first * PIECE;
	*ret_range = slab->range;
	return CUDA_SUCCESS;
}

static void unlink_slab(struct sw_slab *slab)
{
	struct sw_slab **link = &slabs;
	while (*link != slab)
		link = &(*link)->next;
	*link = slab->next;
}

void sw_slab_put(struct sw_range *range, CUdeviceptr address)
{
	struct sw_slab *slab = range->slab;
	size_t first = (size_t)(address - range->address) / PIECE;
	uint16_t run = slab->run[first];
	memset(&slab->taken[first], 0, run);
	slab->run[first] = 0;
	slab->used -= run;
	if (slab->used > 0)
		return;
	unlink_slab(slab);
	free(slab);
	sw_range_free(range);
}

void sw_slab_forget(struct sw_range *range)
{
	if (range->slab == NULL)
		return;
	unlink_slab(range->slab);
	free(range->slab);
	range->slab = NULL;
}
