/* Memory of another process by a handle: the other's file, opened through /proc. It counts against
 * the process that allocated it alone. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "allocations.h"
#include "config.h"
#include "context.h"
#include "memory.h"

#define MAGIC 0x31637069756d6573ULL

/* What the 64 bytes of a handle say. */
struct ticket {
	uint64_t magic;
	int32_t pid, file;
	int32_t gpu, reserved;
	uint64_t file_offset, bytes; /* of the whole piece of memory */
	uint64_t start;		     /* where the allocation begins in it */
};

ENTRY(cuIpcGetMemHandle, CUipcHandle *ret_handle, CUdeviceptr address)
{
	CUresult result = emu_enter(__func__, EMU_UNSAFE, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_allocation allocation;
	struct emu_mapping mapping;
	/* Memory that was mapped by hand or came from a pool has other ways. */
	if (ret_handle == NULL || !emu_allocation_at(address, &allocation) || allocation.kind != EMU_ALLOCATED_DEVICE ||
	    !emu_mapping_at(allocation.base, &mapping))
		return CUDA_ERROR_INVALID_VALUE;
	struct ticket ticket = {
		.magic = MAGIC,
		.pid = getpid(),
		.file = mapping.memory->file,
		.gpu = allocation.gpu,
		.file_offset = (uint64_t)mapping.memory->offset,
		.bytes = mapping.memory->bytes,
		.start = allocation.base - mapping.base,
	};
	_Static_assert(sizeof ticket <= sizeof *ret_handle, "a ticket fits into a handle");
	memset(ret_handle, 0, sizeof *ret_handle);
	memcpy(ret_handle, &ticket, sizeof ticket);
	return CUDA_SUCCESS;
}

static CUresult open_ticket(struct emu_context *context, const struct ticket *ticket, CUdeviceptr *ret_address)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/fd/%d", ticket->pid, ticket->file);
	int file = open(path, O_RDWR | O_CLOEXEC);
	if (file < 0)
		return CUDA_ERROR_INVALID_VALUE;
	struct emu_memory *memory = NULL;
	CUresult result = emu_memory_import(ticket->gpu, ticket->bytes, file, (off_t)ticket->file_offset, &memory);
	if (result != CUDA_SUCCESS) {
		close(file);
		return result;
	}
	struct emu_allocation allocation = {.kind = EMU_ALLOCATED_IPC, .gpu = ticket->gpu, .context = context};
	result = emu_range_of(memory, &allocation.range);
	emu_retire(memory, EMU_MEMORY);
	if (result != CUDA_SUCCESS)
		return result;
	allocation.base = allocation.range->base + ticket->start;
	allocation.bytes = ticket->bytes - ticket->start;
	result = emu_allocation_add(allocation);
	if (result == CUDA_SUCCESS)
		*ret_address = allocation.base;
	else
		emu_range_free(allocation.range);
	return result;
}

ENTRY(cuIpcOpenMemHandle_v2, CUdeviceptr *ret_address, CUipcHandle handle, unsigned flags)
{
	struct emu_context *context = NULL;
	CUresult result = emu_enter(__func__, EMU_UNSAFE, &context);
	if (result != CUDA_SUCCESS)
		return result;
	struct ticket ticket;
	memcpy(&ticket, &handle, sizeof ticket);
	if (ret_address == NULL || flags > 1 || ticket.magic != MAGIC || ticket.gpu < 0 || ticket.gpu >= (int)emu_config()->gpu_count ||
	    ticket.start >= ticket.bytes || ticket.bytes % EMU_GRANULARITY != 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (ticket.pid == getpid())
		return CUDA_ERROR_INVALID_CONTEXT;
	return open_ticket(context, &ticket, ret_address);
}

ENTRY(cuIpcCloseMemHandle, CUdeviceptr address)
{
	struct emu_context *context = NULL;
	CUresult result = emu_enter(__func__, EMU_UNSAFE, &context);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_allocation allocation;
	if (!emu_allocation_at(address, &allocation) || allocation.base != address || allocation.kind != EMU_ALLOCATED_IPC)
		return CUDA_ERROR_INVALID_VALUE;
	emu_context_wait(context);
	if (emu_allocation_remove(address, &allocation))
		emu_range_free(allocation.range);
	return CUDA_SUCCESS;
}
