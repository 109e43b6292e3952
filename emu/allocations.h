/* What the program allocated by the plain calls and from pools: which address belongs to what.
 * Memory mapped by hand is not here. */
#ifndef EMU_ALLOCATIONS_H
#define EMU_ALLOCATIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda/driver.h"

struct emu_context;
struct emu_range;
struct emu_pool;

enum emu_allocation_kind {
	EMU_ALLOCATED_DEVICE,
	EMU_ALLOCATED_MANAGED,
	EMU_ALLOCATED_HOST,
	EMU_ALLOCATED_REGISTERED,
	EMU_ALLOCATED_POOL,
	EMU_ALLOCATED_IPC
};

struct emu_allocation {
	uint64_t base, bytes, id;
	enum emu_allocation_kind kind;
	int gpu; /* EMU_HOST for the host's */
	struct emu_context *context;
	struct emu_range *range; /* its own; NULL: a piece of an arena */
	struct emu_pool *pool;	 /* of EMU_ALLOCATED_POOL */
	uint64_t counted;	 /* of managed memory: what counts against the GPU */
	unsigned flags;		 /* of the host's */
};

/* Writes it down; `id` is given here. */
CUresult emu_allocation_add(struct emu_allocation allocation);
/* Takes it out of the list. */
bool emu_allocation_remove(uint64_t base, struct emu_allocation *ret_allocation);
/* The one that holds the address. */
bool emu_allocation_at(uint64_t address, struct emu_allocation *ret_allocation);

/* Frees all of a context that ends. */
void emu_allocations_end(struct emu_context *context);

/* Device memory that shares no chunk with other memory when `alone`. */
CUresult emu_allocate(struct emu_context *context, uint64_t bytes, uint64_t *ret_address);
/* Frees what emu_allocate gave; CUDA_ERROR_INVALID_VALUE for anything else. */
CUresult emu_deallocate(uint64_t address);

#endif
