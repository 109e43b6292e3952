/* Arrays: blocks of device memory with a shape. */
#ifndef EMU_ARRAYS_H
#define EMU_ARRAYS_H

#include "work.h"

/* Where the rows of an array are; CUDA_ERROR_INVALID_HANDLE when it is none. */
CUresult emu_array_side(CUarray handle, struct emu_side *ret_side);

#endif
