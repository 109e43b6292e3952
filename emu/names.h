/* The names that programs look up, each with the version of the interface it came with
 * and the symbol behind it. */
#ifndef EMU_NAMES_H
#define EMU_NAMES_H

#include <stddef.h>

enum { EMU_VERSION = 13000 };

enum emu_name_kind { EMU_NAME_ONLY, EMU_NAME_LEGACY, EMU_NAME_PER_THREAD };

struct emu_name {
	const char *name;
	int since;
	enum emu_name_kind kind;
	void (*address)(void);
};

extern const struct emu_name emu_names[];
extern const size_t emu_name_count;

#endif
