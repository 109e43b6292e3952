/* What the program got from the driver directly and we only count: managed memory, arrays, graphs,
 * pools that are not ours (pools.h). None of it moves. */
#ifndef SW_RUNTIME_CHARGES_H
#define SW_RUNTIME_CHARGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda/driver.h"

enum sw_charge_kind { SW_CHARGE_ADDRESS, SW_CHARGE_ARRAY, SW_CHARGE_CONTEXT };

/* Notes bytes that were taken from the account already. Where there is no memory for the note they
 * are given back: then they are not counted. */
void sw_charge_add(enum sw_charge_kind kind, uint64_t key, int gpu, size_t bytes);
/* What the context itself takes: charged in any case, since it is there. */
void sw_charge_context(CUcontext context, int gpu, size_t bytes);
/* Gives them back; does nothing for what it does not know. */
void sw_charge_remove(enum sw_charge_kind kind, uint64_t key);
bool sw_charge_has(enum sw_charge_kind kind, uint64_t key);
/* What the context had goes with it. */
void sw_charge_drop_context(CUcontext context);

/* Brings the account of a pool up to what the pool holds now; all pools that
 * were seen, if it is NULL. */
void sw_charge_pool(CUmemoryPool pool, CUdevice device);
/* The pool is gone, and what it held with it. */
void sw_charge_forget_pool(CUmemoryPool pool);
/* Brings the account up to what graphs hold for the memory that they allocate themselves. */
void sw_charge_graphs(void);
/* Whether the pool would have to grow beyond the limit to serve this. */
bool sw_charge_pool_may(CUmemoryPool pool, CUdevice device, size_t bytes);

#endif
