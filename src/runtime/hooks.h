/* The hooks, one for each line of the list. */
#ifndef SW_RUNTIME_HOOKS_H
#define SW_RUNTIME_HOOKS_H

#include "runtime/entry_points.h"

/* Each is exported under the driver's own name: that is the door for programs that are
 * linked with the driver. */
#define SW_DECLARE(symbol, ...) CUresult hook_##symbol(SW_PARAMS(__VA_ARGS__)) __asm__(#symbol);
#define SW_DECLARE_COPY(symbol, where, ...) SW_DECLARE(symbol, __VA_ARGS__)
SW_ENTRY_POINTS(SW_DECLARE, SW_DECLARE_COPY, SW_DECLARE, SW_DECLARE)
#undef SW_DECLARE_COPY
#undef SW_DECLARE

#endif
