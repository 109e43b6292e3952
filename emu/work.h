/* What a stream or a graph does: one piece of work. */
#ifndef EMU_WORK_H
#define EMU_WORK_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda/driver.h"
#include "objects.h"

struct emu_stream;
struct emu_event;
struct emu_plan;
struct emu_pool;
struct emu_function;

enum emu_work_kind {
	EMU_WORK_NOTHING, /* only waits */
	EMU_WORK_KERNEL,
	EMU_WORK_COPY,
	EMU_WORK_SET,
	EMU_WORK_HOST,
	EMU_WORK_RECORD,
	EMU_WORK_FREE,
	EMU_WORK_GRAPH,
	EMU_WORK_ALLOC,
};

enum { EMU_ARGUMENT_BYTES = 64 };

/* One side of a copy: rows of a block of memory. */
struct emu_side {
	uint64_t address;
	uint64_t pitch, slice; /* from row to row, from slice to slice */
};

/* Work waits for the work of that number, or less, of another stream. */
struct emu_wait {
	struct emu_wait *next;
	struct emu_stream *stream;
	uint64_t number;
};

struct emu_work {
	struct emu_work *next;
	enum emu_work_kind kind;
	uint64_t number, ready_ns;
	struct emu_wait *waits;
	union {
		struct {
			struct emu_function *function;
			unsigned grid[3], block[3], shared_bytes;
			_Alignas(16) unsigned char arguments[EMU_ARGUMENT_BYTES];
		} kernel;
		struct {
			struct emu_side from, to;
			uint64_t width, height, depth;
			void *staged; /* a copy of pageable memory, taken when the call was made */
		} copy;
		struct {
			uint64_t address, pitch, width, height;
			uint32_t value;
			unsigned element;
		} set;
		struct {
			CUhostFn function;
			CUstreamCallback callback; /* instead */
			CUstream stream;
			void *data;
		} host;
		struct {
			struct emu_event *event;
			uint64_t version;
		} record;
		struct {
			uint64_t address, bytes;
			struct emu_pool *pool; /* held until it is done; NULL: a graph's memory, or plain */
			uint64_t ticket;       /* of the pool */
		} memory;
		struct emu_plan *plan; /* of a graph */
	};
};

struct emu_work *emu_work_new(enum emu_work_kind kind);
void emu_work_free(struct emu_work *work);
/* A copy of its own, without what it waits for. */
struct emu_work *emu_work_copy(const struct emu_work *work);

/* Does it, not before `ready_ns` of modelled time; returns when it ends. Errors end the context.
 * `more`: another kernel follows at once. */
uint64_t emu_work_do(struct emu_work *work, struct emu_stream *stream, uint64_t ready_ns, bool more);

#endif
