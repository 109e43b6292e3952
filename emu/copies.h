/* Copies and fills as work; also for graphs. */
#ifndef EMU_COPIES_H
#define EMU_COPIES_H

#include "work.h"

/* The work of a copy between blocks of memory. */
CUresult emu_copy_work(const CUcopy3d *copy, struct emu_work **ret_work);

/* The work of a fill; `element` is 1, 2 or 4 bytes. */
CUresult emu_set_work(const CUmemsetNode *set, struct emu_work **ret_work);

#endif
