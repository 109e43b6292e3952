/* Modules: a text that lists kernels. README.md describes it. */
#ifndef EMU_MODULES_H
#define EMU_MODULES_H

#include "kernels.h"
#include "objects.h"

enum { EMU_SYMBOL_BYTES = 64 };

struct emu_function {
	struct emu_object object;
	char name[EMU_SYMBOL_BYTES];
	struct emu_kernel kernel;
	struct emu_module *module;
};

/* The function behind a handle of a function or of a library's kernel, with a reference;
 * NULL when there is none. */
struct emu_function *emu_function_of(const void *handle);

#endif
