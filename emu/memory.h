/* Device memory and the addresses it is seen at.
 *
 * 1. A range is a piece of address space: reserved by the program, or made for an allocation. The
 *    program's own view of device memory cannot be touched by the host (no access, as on a real
 *    GPU). The emulator sees it through a second view. Host memory that the GPU may use is seen in
 *    one place.
 * 2. What is accessible is what the table says, never what the pages say: an access without a
 *    mapping is an error code.
 * 3. Work pins the range it uses. A mapping that was changed before the work ended makes the work
 *    fail when it is unpinned.
 * 4. Memory is freed when neither a handle nor a mapping is left; its bytes count
 *    against its GPU until then.
 */
#ifndef EMU_MEMORY_H
#define EMU_MEMORY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cuda/driver.h"
#include "objects.h"

#define EMU_GRANULARITY (2ULL << 20)
enum { EMU_HOST = -1 };

/* The name of the file of memory that can be exported; the number of its GPU follows. */
#define EMU_SHARED_FILE "sharewell-emu-shared-"

/* Physical memory. */
struct emu_memory {
	struct emu_object object;
	int gpu; /* EMU_HOST: counts against none */
	uint64_t bytes;
	CUmemAllocationProp properties;
	int file; /* holds the bytes */
	off_t offset;
	bool own_file;		  /* one that can be exported */
	bool imported;		  /* counted where it was created */
	_Atomic unsigned handles; /* how often it was given out */
};

enum emu_range_kind {
	EMU_RANGE_RESERVED, /* by the program, with mappings */
	EMU_RANGE_DEVICE,
	EMU_RANGE_MANAGED,
	EMU_RANGE_HOST,
	EMU_RANGE_REGISTERED,
};

struct emu_mapping {
	uint64_t base, bytes, id;
	struct emu_memory *memory;
	uint32_t readable, writable; /* by GPU, a bit each */
	bool host;		     /* by the host */
};

struct emu_range {
	uint64_t base, bytes;
	char *view; /* where the emulator sees `base` */
	enum emu_range_kind kind;
	int gpu;
	unsigned host_flags;
	struct emu_mapping *mappings; /* in order */
	unsigned count, size;
	unsigned pins;
	bool gone;
	uint64_t id;
};

/* Memory of another process, behind a file whose descriptor becomes the memory's. */
CUresult emu_memory_import(int gpu, uint64_t bytes, int file, off_t offset, struct emu_memory **ret_memory);

/* Creates memory and counts it; CUDA_ERROR_OUT_OF_MEMORY when it does not fit. */
CUresult emu_memory_create(int gpu, uint64_t bytes, const CUmemAllocationProp *properties, struct emu_memory **ret_memory);

/* Address space of `bytes`, aligned; nothing is mapped. */
CUresult emu_range_reserve(enum emu_range_kind kind, uint64_t bytes, uint64_t alignment, uint64_t hint, struct emu_range **ret_range);
/* Host memory in use by GPUs; `address` NULL makes some. */
CUresult emu_range_host(enum emu_range_kind kind, void *address, uint64_t bytes, struct emu_range **ret_range);
/* Memory at an address of its own, readable and writable by its GPU and that one's peers. The
 * mapping keeps the memory. */
CUresult emu_range_of(struct emu_memory *memory, struct emu_range **ret_range);
/* Device memory and its address at once. */
CUresult emu_range_allocate(int gpu, uint64_t bytes, struct emu_range **ret_range);
/* Unmaps all and gives the addresses back. */
void emu_range_free(struct emu_range *range);

/* The range that starts at, or holds, `address`; NULL when there is none.
 * Valid until it is freed. */
struct emu_range *emu_range_at(uint64_t address);
struct emu_range *emu_range_holding(uint64_t address);

CUresult emu_map(uint64_t address, uint64_t bytes, struct emu_memory *memory);
CUresult emu_unmap(uint64_t address, uint64_t bytes);
CUresult emu_set_access(uint64_t address, uint64_t bytes, const CUmemAccessDesc *descriptions, size_t count);

/* The memory mapped at an address by hand, with one more handle to it; NULL when there is none. */
struct emu_memory *emu_retain_mapped(uint64_t address);
/* One handle less; the caller holds the memory. */
void emu_drop_handle(struct emu_memory *memory);

/* A copy of the mapping at an address. */
bool emu_mapping_at(uint64_t address, struct emu_mapping *ret_mapping);

/* Lets `gpu` use the plain allocations of `owner`, or no longer. */
void emu_peer_set(int gpu, int owner, bool allowed);
bool emu_peer_get(int gpu, int owner);

struct emu_pin {
	char *data;
	struct emu_range *range; /* NULL: memory of the host that the driver knows nothing of */
	uint64_t address, bytes, sum;
	int gpu; /* whose memory it is; EMU_HOST */
};

enum emu_access { EMU_READ, EMU_WRITE };

/* For work on `gpu` (EMU_HOST: for a copy that may also touch plain host memory).
 * CUDA_ERROR_ILLEGAL_ADDRESS when it may not touch all of it. */
CUresult emu_pin(uint64_t address, uint64_t bytes, int gpu, enum emu_access access, struct emu_pin *ret_pin);
CUresult emu_unpin(struct emu_pin *pin);

/* Is the address known, and whose memory is it: for choosing a copy engine. */
bool emu_whose(uint64_t address, int *ret_gpu);

uint64_t emu_next_id(void);

#endif
