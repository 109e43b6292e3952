/* Physical memory: pieces of one sparse file per process, or a file each when others may import
 * them. Pages that were never touched cost nothing, and a piece's place is never used twice. So a
 * process that still looks at a freed piece sees zeros and nothing of its successor. */
#include "memory.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "context.h"
#include "faults.h"
#include "shared.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int file = -1;
static off_t next_offset;

uint64_t emu_next_id(void)
{
	static _Atomic uint64_t last;
	return atomic_fetch_add(&last, 1) + 1;
}

static void destroy(struct emu_object *object)
{
	struct emu_memory *memory = (struct emu_memory *)object;
	if (memory->own_file)
		close(memory->file);
	else
		fallocate(memory->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, memory->offset, (off_t)memory->bytes);
	if (memory->gpu != EMU_HOST && !memory->imported)
		emu_memory_give((unsigned)memory->gpu, memory->bytes);
	free(memory);
}

/* A place in the common file. */
static bool place(struct emu_memory *memory)
{
	pthread_mutex_lock(&lock);
	if (file < 0) {
		file = memfd_create("sharewell-emu", MFD_CLOEXEC);
		if (file >= 0 && ftruncate(file, (off_t)1 << 62) != 0) {
			close(file);
			file = -1;
		}
	}
	memory->file = file;
	memory->offset = next_offset;
	next_offset += (off_t)memory->bytes;
	pthread_mutex_unlock(&lock);
	return memory->file >= 0;
}

static bool place_alone(struct emu_memory *memory)
{
	char name[64];
	snprintf(name, sizeof name, EMU_SHARED_FILE "%d", memory->gpu);
	memory->file = memfd_create(name, MFD_CLOEXEC);
	memory->own_file = memory->file >= 0;
	return memory->own_file && ftruncate(memory->file, (off_t)memory->bytes) == 0;
}

CUresult emu_memory_create(int gpu, uint64_t bytes, const CUmemAllocationProp *properties, struct emu_memory **ret_memory)
{
	CUresult result = gpu != EMU_HOST ? emu_fault_at("alloc") : CUDA_SUCCESS;
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_memory *memory = calloc(1, sizeof *memory);
	if (memory == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (gpu != EMU_HOST && !emu_memory_take((unsigned)gpu, bytes)) {
		free(memory);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	memory->gpu = gpu;
	memory->bytes = bytes;
	memory->properties = properties != NULL
				     ? *properties
				     : (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_PINNED,
							     .location = {.type = CU_MEM_LOCATION_DEVICE, .id = emu_gpu_device(gpu)}};
	atomic_init(&memory->handles, 1);
	bool good = memory->properties.requested_handle_types != 0 ? place_alone(memory) : place(memory);
	if (!good) {
		if (memory->own_file)
			close(memory->file);
		if (gpu != EMU_HOST)
			emu_memory_give((unsigned)gpu, bytes);
		free(memory);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	emu_publish(&memory->object, EMU_MEMORY, destroy);
	*ret_memory = memory;
	return CUDA_SUCCESS;
}

CUresult emu_memory_import(int gpu, uint64_t bytes, int imported, off_t offset, struct emu_memory **ret_memory)
{
	struct emu_memory *memory = calloc(1, sizeof *memory);
	if (memory == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memory->gpu = gpu;
	memory->bytes = bytes;
	memory->properties = (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_PINNED,
						   .requested_handle_types = CU_MEM_HANDLE_FILE_DESCRIPTOR,
						   .location = {.type = CU_MEM_LOCATION_DEVICE, .id = emu_gpu_device(gpu)}};
	memory->file = imported;
	memory->offset = offset;
	memory->own_file = true;
	memory->imported = true;
	atomic_init(&memory->handles, 1);
	emu_publish(&memory->object, EMU_MEMORY, destroy);
	*ret_memory = memory;
	return CUDA_SUCCESS;
}
