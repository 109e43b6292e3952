/* The memory that graphs allocate: its address is fixed when the node is made, the memory is there
 * from the launch to the free. */
#include <stdlib.h>

#include "capture.h"
#include "config.h"
#include "context.h"
#include "graphs.h"
#include "memory.h"
#include "streams.h"

struct piece {
	struct piece *next;
	uint64_t address, bytes;
	int gpu;
	unsigned uses;	  /* launches whose frees were not reached */
	unsigned holders; /* pieces of work that allocate it */
	bool left;	  /* by a launch that does not free it, and which was not asked for since */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct piece *pieces;
static uint64_t used[EMU_GPUS_MAX], used_high[EMU_GPUS_MAX];

static struct piece **find(uint64_t address)
{
	struct piece **link = &pieces;
	while (*link != NULL && (*link)->address != address)
		link = &(*link)->next;
	return link;
}

CUresult emu_graph_reserve(int gpu, uint64_t bytes, uint64_t *ret_address)
{
	uint64_t whole = (bytes + EMU_GRANULARITY - 1) / EMU_GRANULARITY * EMU_GRANULARITY;
	struct emu_range *range = NULL;
	struct piece *piece = calloc(1, sizeof *piece);
	CUresult result =
		piece != NULL && whole >= bytes ? emu_range_reserve(EMU_RANGE_RESERVED, whole, 0, 0, &range) : CUDA_ERROR_OUT_OF_MEMORY;
	if (result != CUDA_SUCCESS) {
		free(piece);
		return result;
	}
	*piece = (struct piece){.address = range->base, .bytes = whole, .gpu = gpu, .holders = 1};
	pthread_mutex_lock(&lock);
	piece->next = pieces;
	pieces = piece;
	pthread_mutex_unlock(&lock);
	*ret_address = piece->address;
	return CUDA_SUCCESS;
}

/* Below the lock: one that is not used and cannot be launched goes. */
static void drop_if_done(struct piece **link)
{
	struct piece *piece = *link;
	if (piece->holders > 0 || piece->uses > 0)
		return;
	*link = piece->next;
	emu_range_free(emu_range_at(piece->address));
	free(piece);
}

void emu_graph_hold(uint64_t address)
{
	pthread_mutex_lock(&lock);
	(*find(address))->holders++;
	pthread_mutex_unlock(&lock);
}

void emu_graph_unreserve(uint64_t address)
{
	pthread_mutex_lock(&lock);
	struct piece **link = find(address);
	if (*link != NULL) {
		(*link)->holders--;
		drop_if_done(link);
	}
	pthread_mutex_unlock(&lock);
}

bool emu_graph_owns(uint64_t address)
{
	pthread_mutex_lock(&lock);
	bool owns = *find(address) != NULL;
	pthread_mutex_unlock(&lock);
	return owns;
}

static CUresult map(const struct piece *piece)
{
	struct emu_memory *memory = NULL;
	CUresult result = emu_memory_create(piece->gpu, piece->bytes, NULL, &memory);
	if (result != CUDA_SUCCESS)
		return result;
	CUmemAccessDesc access = {.location = {CU_MEM_LOCATION_DEVICE, piece->gpu}, .flags = CU_MEM_ACCESS_READWRITE};
	result = emu_map(piece->address, piece->bytes, memory);
	if (result == CUDA_SUCCESS)
		result = emu_set_access(piece->address, piece->bytes, &access, 1);
	emu_retire(memory, EMU_MEMORY);
	return result;
}

CUresult emu_graph_map(uint64_t address, bool leaves, bool again, bool *ret_was_left)
{
	CUresult result = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	struct piece *piece = *find(address);
	if (piece != NULL && (!leaves || again || !piece->left)) {
		result = piece->uses == 0 ? map(piece) : CUDA_SUCCESS;
		if (result == CUDA_SUCCESS && piece->uses++ == 0) {
			used[piece->gpu] += piece->bytes;
			if (used[piece->gpu] > used_high[piece->gpu])
				used_high[piece->gpu] = used[piece->gpu];
		}
	}
	*ret_was_left = result == CUDA_SUCCESS && leaves && piece->left;
	if (result == CUDA_SUCCESS && leaves)
		piece->left = true;
	pthread_mutex_unlock(&lock);
	return result;
}

/* The call that frees it asks once. */
bool emu_graph_let(uint64_t address)
{
	pthread_mutex_lock(&lock);
	struct piece *piece = *find(address);
	bool left = piece != NULL && piece->left;
	if (left)
		piece->left = false;
	pthread_mutex_unlock(&lock);
	return left;
}

void emu_graph_unmap(uint64_t address)
{
	pthread_mutex_lock(&lock);
	struct piece **link = find(address);
	struct piece *piece = *link;
	if (piece != NULL && piece->uses > 0 && --piece->uses == 0) {
		emu_unmap(piece->address, piece->bytes);
		used[piece->gpu] -= piece->bytes;
		drop_if_done(link);
	}
	pthread_mutex_unlock(&lock);
}

CUresult emu_graph_capture_alloc(struct emu_stream *stream, uint64_t bytes, CUdeviceptr *ret_address)
{
	uint64_t address = 0;
	struct emu_work *work = emu_work_new(EMU_WORK_ALLOC);
	CUresult result = work != NULL ? emu_graph_reserve(stream->context->gpu, bytes, &address) : CUDA_ERROR_OUT_OF_MEMORY;
	if (result != CUDA_SUCCESS) {
		free(work);
		return result;
	}
	work->memory.address = address;
	work->memory.bytes = bytes;
	result = emu_submit(stream, work, NULL);
	if (result == CUDA_SUCCESS)
		*ret_address = address;
	return result;
}

CUresult emu_graph_free_in(struct emu_stream *stream, uint64_t address)
{
	struct emu_work *work = emu_work_new(EMU_WORK_FREE);
	if (work == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	work->memory.address = address;
	return emu_submit(stream, work, NULL);
}

CUresult emu_graph_free_async(struct emu_stream *stream, uint64_t address)
{
	/* Outside of a graph there is something to free only after one was
	 * launched that allocates it. */
	if (!emu_capturing(stream) && !emu_graph_let(address))
		return CUDA_ERROR_INVALID_VALUE;
	return emu_graph_free_in(stream, address);
}

/* What is freed goes back at once: there is nothing to trim. */
ENTRY(cuDeviceGraphMemTrim, CUdevice device)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	return emu_device_gpu(device) >= 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

ENTRY(cuDeviceGetGraphMemAttribute, CUdevice device, int attribute, void *ret_value)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	int gpu = emu_device_gpu(device);
	if (gpu < 0)
		return CUDA_ERROR_INVALID_DEVICE;
	if (ret_value == NULL || attribute < 0 || attribute > 3)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	*(uint64_t *)ret_value = attribute % 2 == 0 ? used[gpu] : used_high[gpu];
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

ENTRY(cuDeviceSetGraphMemAttribute, CUdevice device, int attribute, void *value)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	int gpu = emu_device_gpu(device);
	if (gpu < 0)
		return CUDA_ERROR_INVALID_DEVICE;
	if (value == NULL || (attribute != 1 && attribute != 3) || *(const uint64_t *)value != 0)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	used_high[gpu] = used[gpu];
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}
