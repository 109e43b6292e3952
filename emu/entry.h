/* How the driver's entry points are written.
 *
 * ENTRY(name, parameters...) begins one that has no per-thread twin. TWINS(name, suffix, call,
 * parameters...) makes an entry point and its twin for the per-thread default stream out of one
 * call, in which `flavour` tells them apart.
 */
#ifndef EMU_ENTRY_H
#define EMU_ENTRY_H

#include "cuda/driver.h"

#define EMU_API __attribute__((visibility("default")))

#define ENTRY(name, ...)                    \
	EMU_API CUresult name(__VA_ARGS__); \
	CUresult name(__VA_ARGS__)

enum emu_flavour { EMU_LEGACY = 1, EMU_PER_THREAD = 2 };

#define TWINS(name, suffix, call, ...)                           \
	ENTRY(name, __VA_ARGS__)                                 \
	{                                                        \
		const enum emu_flavour flavour = EMU_LEGACY;     \
		(void)flavour;                                   \
		return call;                                     \
	}                                                        \
	ENTRY(name##suffix, __VA_ARGS__)                         \
	{                                                        \
		const enum emu_flavour flavour = EMU_PER_THREAD; \
		(void)flavour;                                   \
		return call;                                     \
	}

struct emu_context;

enum {
	EMU_NO_CONTEXT = 1, /* works without a current context */
	EMU_UNSAFE = 2,	    /* may not be called while a stream captures */
	EMU_ANYWAY = 4,	    /* works in a context that an error has ended */
	EMU_UNGATED = 8,    /* works while the process is locked for a checkpoint */
};

/* What every entry point does first: faults on demand, is the driver initialised, is there a
 * context, has it failed, is the call allowed now. `ret_context` may be NULL. */
CUresult emu_enter(const char *entry, unsigned flags, struct emu_context **ret_context);

#endif
