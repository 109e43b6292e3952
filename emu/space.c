/* The address space: ranges in order, their mappings, and pins. */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "config.h"
#include "memory.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct emu_range **ranges;
static size_t range_count, range_size;
static uint32_t peers[EMU_GPUS_MAX]; /* by owner: the GPUs that may use its plain memory */

/* The place of the first range that ends beyond `address`. */
static size_t find(uint64_t address)
{
	size_t low = 0, high = range_count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (ranges[middle]->base + ranges[middle]->bytes <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct emu_range *holding(uint64_t address)
{
	size_t at = find(address);
	return at < range_count && ranges[at]->base <= address ? ranges[at] : NULL;
}

static bool insert(struct emu_range *range)
{
	pthread_mutex_lock(&lock);
	bool good = true;
	if (range_count == range_size) {
		size_t size = range_size != 0 ? range_size * 2 : 64;
		struct emu_range **grown = realloc(ranges, size * sizeof(struct emu_range *));
		good = grown != NULL;
		if (good) {
			ranges = grown;
			range_size = size;
		}
	}
	size_t at = find(range->base);
	/* Two registrations of one piece of host memory. */
	if (at < range_count && ranges[at]->base < range->base + range->bytes)
		good = false;
	if (good) {
		memmove(&ranges[at + 1], &ranges[at], (range_count - at) * sizeof(struct emu_range *));
		ranges[at] = range;
		range_count++;
	}
	pthread_mutex_unlock(&lock);
	return good;
}

static void *reserve(uint64_t bytes, uint64_t alignment, uint64_t hint)
{
	uint64_t whole = bytes + alignment;
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	if (hint != 0 && hint % alignment == 0) {
		void *there = mmap((void *)(uintptr_t)hint, bytes, PROT_NONE, flags | MAP_FIXED_NOREPLACE, -1, 0);
		if (there != MAP_FAILED)
			return there;
	}
	if (whole < bytes)
		return NULL;
	char *address = mmap(NULL, whole, PROT_NONE, flags, -1, 0);
	if (address == MAP_FAILED)
		return NULL;
	char *start = (char *)(((uintptr_t)address + alignment - 1) / alignment * alignment);
	if (start > address)
		munmap(address, (size_t)(start - address));
	if (address + whole > start + bytes)
		munmap(start + bytes, (size_t)(address + whole - (start + bytes)));
	return start;
}

CUresult emu_range_reserve(enum emu_range_kind kind, uint64_t bytes, uint64_t alignment, uint64_t hint, struct emu_range **ret_range)
{
	struct emu_range *range = calloc(1, sizeof *range);
	if (range == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	void *address = reserve(bytes, alignment > EMU_GRANULARITY ? alignment : EMU_GRANULARITY, hint);
	void *view = address != NULL ? reserve(bytes, EMU_GRANULARITY, 0) : NULL;
	*range = (struct emu_range){.base = (uint64_t)(uintptr_t)address, .bytes = bytes, .view = view, .kind = kind, .gpu = EMU_HOST};
	range->id = emu_next_id();
	if (view == NULL || !insert(range)) {
		if (view != NULL)
			munmap(view, bytes);
		if (address != NULL)
			munmap(address, bytes);
		free(range);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret_range = range;
	return CUDA_SUCCESS;
}

CUresult emu_range_host(enum emu_range_kind kind, void *address, uint64_t bytes, struct emu_range **ret_range)
{
	struct emu_range *range = calloc(1, sizeof *range);
	void *memory = address;
	if (range != NULL && address == NULL) {
		memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (memory == MAP_FAILED)
			memory = NULL;
	}
	if (range == NULL || memory == NULL) {
		free(range);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*range = (struct emu_range){.base = (uint64_t)(uintptr_t)memory, .bytes = bytes, .view = memory, .kind = kind, .gpu = EMU_HOST};
	range->id = emu_next_id();
	if (!insert(range)) {
		if (address == NULL)
			munmap(memory, bytes);
		free(range);
		return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	}
	*ret_range = range;
	return CUDA_SUCCESS;
}

/* The addresses themselves, when no work uses them any more. */
static void dispose(struct emu_range *range)
{
	if (range->kind != EMU_RANGE_REGISTERED)
		munmap((void *)(uintptr_t)range->base, range->bytes);
	if ((uint64_t)(uintptr_t)range->view != range->base)
		munmap(range->view, range->bytes);
	free(range->mappings);
	free(range);
}

void emu_range_free(struct emu_range *range)
{
	pthread_mutex_lock(&lock);
	size_t at = find(range->base);
	assert(at < range_count && ranges[at] == range);
	memmove(&ranges[at], &ranges[at + 1], (range_count - at - 1) * sizeof(struct emu_range *));
	range_count--;
	struct emu_mapping *mappings = range->mappings;
	unsigned count = range->count;
	range->mappings = NULL;
	range->count = 0;
	range->gone = true;
	bool last = range->pins == 0;
	pthread_mutex_unlock(&lock);
	for (unsigned i = 0; i < count; i++)
		emu_put(&mappings[i].memory->object);
	free(mappings);
	if (last)
		dispose(range);
}

struct emu_range *emu_range_holding(uint64_t address)
{
	pthread_mutex_lock(&lock);
	struct emu_range *range = holding(address);
	pthread_mutex_unlock(&lock);
	return range;
}

struct emu_range *emu_range_at(uint64_t address)
{
	struct emu_range *range = emu_range_holding(address);
	return range != NULL && range->base == address ? range : NULL;
}

/* The first mapping of a range that ends beyond `address`. */
static unsigned find_mapping(const struct emu_range *range, uint64_t address)
{
	unsigned low = 0, high = range->count;
	while (low < high) {
		unsigned middle = (low + high) / 2;
		if (range->mappings[middle].base + range->mappings[middle].bytes <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static CUresult map_here(struct emu_range *range, uint64_t address, uint64_t bytes, struct emu_memory *memory)
{
	unsigned at = find_mapping(range, address);
	if (at < range->count && range->mappings[at].base < address + bytes)
		return CUDA_ERROR_INVALID_VALUE;
	if (range->count == range->size) {
		unsigned size = range->size != 0 ? range->size * 2 : 4;
		struct emu_mapping *grown = realloc(range->mappings, size * sizeof *grown);
		if (grown == NULL)
			return CUDA_ERROR_OUT_OF_MEMORY;
		range->mappings = grown;
		range->size = size;
	}
	void *view = range->view + (address - range->base);
	if (mmap(view, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory->file, memory->offset) == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	madvise(view, bytes, MADV_DONTFORK);
	memmove(&range->mappings[at + 1], &range->mappings[at], (range->count - at) * sizeof range->mappings[0]);
	range->mappings[at] = (struct emu_mapping){.base = address, .bytes = bytes, .id = emu_next_id(), .memory = memory};
	range->count++;
	emu_hold(&memory->object);
	return CUDA_SUCCESS;
}

CUresult emu_map(uint64_t address, uint64_t bytes, struct emu_memory *memory)
{
	CUresult result = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	struct emu_range *range = holding(address);
	if (range != NULL && range->kind == EMU_RANGE_RESERVED && bytes <= range->base + range->bytes - address)
		result = map_here(range, address, bytes, memory);
	pthread_mutex_unlock(&lock);
	return result;
}

/* Makes the program's own view of a mapping touchable by the host, or not. */
static bool show_to_host(struct emu_mapping *mapping, bool shown)
{
	void *address = (void *)(uintptr_t)mapping->base;
	void *result = NULL;
	if (shown == mapping->host)
		return true;
	if (shown)
		result = mmap(address, mapping->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, mapping->memory->file,
			      mapping->memory->offset);
	else
		result = mmap(address, mapping->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	if (result == MAP_FAILED)
		return false;
	mapping->host = shown;
	return true;
}

/* The mappings that make up exactly [address, address + bytes), as [first, end); false when
 * there are holes or halves. */
static bool whole_mappings(const struct emu_range *range, uint64_t address, uint64_t bytes, unsigned *ret_first, unsigned *ret_end)
{
	unsigned at = find_mapping(range, address);
	*ret_first = at;
	uint64_t next = address;
	while (at < range->count && range->mappings[at].base == next && next < address + bytes)
		next += range->mappings[at++].bytes;
	*ret_end = at;
	return bytes > 0 && next == address + bytes;
}

CUresult emu_unmap(uint64_t address, uint64_t bytes)
{
	CUresult result = CUDA_ERROR_INVALID_VALUE;
	struct emu_memory **dropped = NULL;
	unsigned first = 0, end = 0;
	pthread_mutex_lock(&lock);
	struct emu_range *range = holding(address);
	if (range != NULL && range->kind == EMU_RANGE_RESERVED && whole_mappings(range, address, bytes, &first, &end)) {
		dropped = calloc(end - first, sizeof(struct emu_memory *));
		result = dropped != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (result == CUDA_SUCCESS) {
		for (unsigned i = first; i < end; i++) {
			show_to_host(&range->mappings[i], false);
			dropped[i - first] = range->mappings[i].memory;
		}
		memmove(&range->mappings[first], &range->mappings[end], (range->count - end) * sizeof range->mappings[0]);
		range->count -= end - first;
	}
	pthread_mutex_unlock(&lock);
	for (unsigned i = first; result == CUDA_SUCCESS && i < end; i++)
		emu_put(&dropped[i - first]->object);
	free(dropped);
	return result;
}

static CUresult set_one(struct emu_mapping *mapping, const CUmemAccessDesc *description)
{
	int type = description->location.type;
	if (type != CU_MEM_LOCATION_DEVICE) {
		if (mapping->memory->gpu != EMU_HOST)
			return CUDA_ERROR_INVALID_VALUE;
		return show_to_host(mapping, description->flags != CU_MEM_ACCESS_NONE) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	}
	uint32_t bit = 1U << description->location.id;
	mapping->readable = (mapping->readable & ~bit) | (description->flags & CU_MEM_ACCESS_READ ? bit : 0);
	mapping->writable = (mapping->writable & ~bit) | (description->flags == CU_MEM_ACCESS_READWRITE ? bit : 0);
	return CUDA_SUCCESS;
}

CUresult emu_set_access(uint64_t address, uint64_t bytes, const CUmemAccessDesc *descriptions, size_t count)
{
	unsigned first = 0, end = 0;
	CUresult result = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	struct emu_range *range = holding(address);
	if (range != NULL && range->kind == EMU_RANGE_RESERVED && whole_mappings(range, address, bytes, &first, &end))
		result = CUDA_SUCCESS;
	for (unsigned i = first; result == CUDA_SUCCESS && i < end; i++)
		for (size_t j = 0; result == CUDA_SUCCESS && j < count; j++)
			result = set_one(&range->mappings[i], &descriptions[j]);
	pthread_mutex_unlock(&lock);
	return result;
}

bool emu_mapping_at(uint64_t address, struct emu_mapping *ret_mapping)
{
	pthread_mutex_lock(&lock);
	const struct emu_range *range = holding(address);
	unsigned at = range != NULL ? find_mapping(range, address) : 0;
	bool found = range != NULL && at < range->count && range->mappings[at].base <= address;
	if (found)
		*ret_mapping = range->mappings[at];
	pthread_mutex_unlock(&lock);
	return found;
}

void emu_drop_handle(struct emu_memory *memory)
{
	pthread_mutex_lock(&lock);
	if (atomic_fetch_sub(&memory->handles, 1) == 1)
		emu_retire(memory, EMU_MEMORY);
	pthread_mutex_unlock(&lock);
}

struct emu_memory *emu_retain_mapped(uint64_t address)
{
	struct emu_memory *memory = NULL;
	pthread_mutex_lock(&lock);
	const struct emu_range *range = holding(address);
	unsigned at = range != NULL && range->kind == EMU_RANGE_RESERVED ? find_mapping(range, address) : 0;
	if (range != NULL && range->kind == EMU_RANGE_RESERVED && at < range->count && range->mappings[at].base <= address) {
		memory = range->mappings[at].memory;
		if (atomic_fetch_add(&memory->handles, 1) == 0)
			emu_revive(&memory->object);
	}
	pthread_mutex_unlock(&lock);
	return memory;
}

CUresult emu_range_of(struct emu_memory *memory, struct emu_range **ret_range)
{
	struct emu_range *range = NULL;
	CUresult result = emu_range_reserve(EMU_RANGE_DEVICE, memory->bytes, EMU_GRANULARITY, 0, &range);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&lock);
	result = map_here(range, range->base, range->bytes, memory);
	range->gpu = memory->gpu;
	pthread_mutex_unlock(&lock);
	if (result == CUDA_SUCCESS)
		*ret_range = range;
	else
		emu_range_free(range);
	return result;
}

CUresult emu_range_allocate(int gpu, uint64_t bytes, struct emu_range **ret_range)
{
	struct emu_memory *memory = NULL;
	uint64_t whole = (bytes + EMU_GRANULARITY - 1) / EMU_GRANULARITY * EMU_GRANULARITY;
	CUresult result = whole >= bytes ? emu_memory_create(gpu, whole, NULL, &memory) : CUDA_ERROR_OUT_OF_MEMORY;
	if (result != CUDA_SUCCESS)
		return result;
	result = emu_range_of(memory, ret_range);
	emu_retire(memory, EMU_MEMORY);
	return result;
}

void emu_peer_set(int gpu, int owner, bool allowed)
{
	pthread_mutex_lock(&lock);
	peers[owner] = allowed ? peers[owner] | 1U << gpu : peers[owner] & ~(1U << gpu);
	pthread_mutex_unlock(&lock);
}

bool emu_peer_get(int gpu, int owner)
{
	pthread_mutex_lock(&lock);
	bool allowed = (peers[owner] >> gpu & 1) != 0;
	pthread_mutex_unlock(&lock);
	return allowed;
}

static bool may(const struct emu_range *range, const struct emu_mapping *mapping, int gpu, enum emu_access access)
{
	if (gpu == EMU_HOST)
		return range->kind != EMU_RANGE_RESERVED || mapping->readable != 0 || mapping->host;
	if (range->kind != EMU_RANGE_RESERVED)
		return range->gpu == gpu || (peers[range->gpu] >> gpu & 1) != 0;
	return ((access == EMU_WRITE ? mapping->writable : mapping->readable) >> gpu & 1) != 0;
}

/* Are all of [address, address + bytes) mapped, and allowed to `gpu`? */
static bool covered(const struct emu_range *range, uint64_t address, uint64_t bytes, int gpu, enum emu_access access)
{
	if (range->kind >= EMU_RANGE_MANAGED)
		return bytes <= range->base + range->bytes - address;
	uint64_t next = address;
	for (unsigned at = find_mapping(range, address); next < address + bytes; at++) {
		if (at == range->count || range->mappings[at].base > next || !may(range, &range->mappings[at], gpu, access))
			return false;
		next = range->mappings[at].base + range->mappings[at].bytes;
	}
	return true;
}

/* A number that changes when one of the mappings below [address, address +
 * bytes) is replaced or goes. */
static uint64_t sum_of(const struct emu_range *range, uint64_t address, uint64_t bytes)
{
	uint64_t sum = range->id;
	for (unsigned at = find_mapping(range, address); at < range->count && range->mappings[at].base < address + bytes; at++)
		sum += range->mappings[at].id * 0x9e3779b97f4a7c15ULL;
	return sum;
}

/* Whose memory the first byte is. */
static int gpu_at(const struct emu_range *range, uint64_t address)
{
	unsigned at = find_mapping(range, address);
	return at < range->count && range->mappings[at].base <= address ? range->mappings[at].memory->gpu : EMU_HOST;
}

CUresult emu_pin(uint64_t address, uint64_t bytes, int gpu, enum emu_access access, struct emu_pin *ret_pin)
{
	struct emu_pin pin = {.address = address, .bytes = bytes, .gpu = EMU_HOST, .data = (char *)(uintptr_t)address};
	CUresult result = CUDA_SUCCESS;
	pthread_mutex_lock(&lock);
	struct emu_range *range = bytes > 0 ? holding(address) : NULL;
	if (range != NULL) {
		if (address + bytes < address || !covered(range, address, bytes, gpu, access)) {
			result = CUDA_ERROR_ILLEGAL_ADDRESS;
		} else {
			pin.range = range;
			pin.data = range->view + (address - range->base);
			pin.sum = sum_of(range, address, bytes);
			pin.gpu = gpu_at(range, address);
			range->pins++;
		}
	} else if (bytes > 0 && gpu != EMU_HOST) {
		result = CUDA_ERROR_ILLEGAL_ADDRESS;
	}
	pthread_mutex_unlock(&lock);
	if (result == CUDA_SUCCESS)
		*ret_pin = pin;
	return result;
}

CUresult emu_unpin(struct emu_pin *pin)
{
	struct emu_range *range = pin->range;
	if (range == NULL)
		return CUDA_SUCCESS;
	pthread_mutex_lock(&lock);
	bool same = !range->gone && sum_of(range, pin->address, pin->bytes) == pin->sum;
	range->pins--;
	bool last = range->gone && range->pins == 0;
	pthread_mutex_unlock(&lock);
	if (last)
		dispose(range);
	pin->range = NULL;
	return same ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_ADDRESS;
}

bool emu_whose(uint64_t address, int *ret_gpu)
{
	pthread_mutex_lock(&lock);
	const struct emu_range *range = holding(address);
	*ret_gpu = range != NULL ? gpu_at(range, address) : EMU_HOST;
	pthread_mutex_unlock(&lock);
	return range != NULL;
}
