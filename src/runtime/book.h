/* The program's allocations by address. Under sw_memory_lock. */
#ifndef SW_RUNTIME_BOOK_H
#define SW_RUNTIME_BOOK_H

#include "runtime/memory.h"

struct sw_allocation {
	CUdeviceptr address;
	size_t bytes; /* as asked for */
	struct sw_range *range;
	struct sw_pool_piece *piece; /* of a pool; NULL: of none */
};

/* Room for one more, so that sw_book_add() cannot fail. */
bool sw_book_reserve(void);
void sw_book_add(const struct sw_allocation *entry);
/* The allocation in which the address lies. */
bool sw_book_find(CUdeviceptr address, struct sw_allocation *ret_entry);
bool sw_book_remove(CUdeviceptr address, struct sw_allocation *ret_entry);
void sw_book_remove_range(const struct sw_range *range);

#endif
