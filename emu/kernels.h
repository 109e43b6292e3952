/* The operations that kernels are made of. */
#ifndef EMU_KERNELS_H
#define EMU_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda/driver.h"
#include "memory.h"

enum { EMU_PARAMETERS_MAX = 8 };

struct emu_operation {
	const char *name;
	/* One letter a parameter: p pointer (8 bytes), n and t 64-bit number (t: nanoseconds), i
	 * 32-bit number, v a value of the kernel's type. */
	const char *parameters;
};

struct emu_parameter {
	unsigned offset, bytes;
};

/* What one kernel of a module is. */
struct emu_kernel {
	const struct emu_operation *operation;
	bool is_float;
	bool transpose_a, transpose_b;
	uint64_t fixed_ns;
	uint64_t each_ps; /* by element, or by multiplication for matmul, in picoseconds */
	unsigned parameter_count, argument_bytes;
	struct emu_parameter parameters[EMU_PARAMETERS_MAX];
};

const struct emu_operation *emu_operation_named(const char *name);

/* Fills in the parameters of an operation. */
void emu_kernel_lay_out(struct emu_kernel *kernel);

/* Where it stands between begin and end. */
struct emu_run {
	unsigned pin_count;
	struct emu_pin pins[4];
	uint64_t time_ns;
};

/* Does the operation on memory of `gpu` and says how long it takes there. The memory stays in use
 * until the end, which fails if it changed hands. */
CUresult emu_kernel_begin(const struct emu_kernel *kernel, const unsigned char *arguments, int gpu, struct emu_run *ret_run);
CUresult emu_kernel_end(struct emu_run *run);

#endif
