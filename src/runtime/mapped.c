#include "runtime/mapped.h"

#include <stdlib.h>

#include "runtime/account.h"
#include "runtime/driver.h"
#include "runtime/gate.h"
#include "runtime/hooks.h"
#include "runtime/iterations.h"
#include "runtime/memory.h"
#include "runtime/pace.h"
#include "runtime/spare.h"
#include "runtime/start.h"
#include "runtime/store.h"

enum { DEVICES = 64, MULTICASTS = 8 };
#define BUCKETS 1024u
#define MADE_UP UINT64_C(0x5357000000000000)

/* By the handle that the program has of it. */
struct memory {
	struct memory *next;
	CUmemHandle name; /* as the program knows it */
	CUmemHandle real; /* as the driver does, while there is no range */
	size_t bytes;	  /* 0: only the name is ours */
	CUmemAllocationProp prop;
	int gpu;
	unsigned handles, mappings;
	unsigned calls; /* of the driver that are under way with it: it stays, and where it is */
	bool known;	/* to others */
	bool spilled;	/* in host memory, while there is no range */
	struct sw_range *range;
};

struct sw_mapping {
	struct sw_mapping *next;
	CUdeviceptr address;
	size_t bytes;
	struct memory *memory;
	CUcontext context;
	uint64_t readable, writable; /* by device */
	bool whole;
};

static struct memory *buckets[BUCKETS];
static struct sw_mapping *mappings;

static struct memory **find(CUmemHandle name)
{
	struct memory **link = &buckets[(name >> 5 ^ name >> 16 ^ name) % BUCKETS];
	while (*link != NULL && (*link)->name != name)
		link = &(*link)->next;
	return link;
}

static CUmemHandle real_of(const struct memory *memory)
{
	return memory->range != NULL ? memory->range->chunks[0].handle : memory->real;
}

/* The driver's handle for the program's. */
static CUmemHandle translate(CUmemHandle name)
{
	const struct memory *memory = *find(name);
	return memory != NULL ? real_of(memory) : name;
}

/* ---- what moves */

CUresult sw_mapped_create(const struct sw_mapping *mapping, CUmemHandle *ret_handle)
{
	return sw_driver.create(ret_handle, mapping->memory->bytes, &mapping->memory->prop, 0);
}

CUresult sw_mapped_open(const struct sw_mapping *mapping)
{
	CUmemAccessDesc access[DEVICES];
	size_t count = 0;
	for (int device = 0; device < DEVICES; device++) {
		int flags = (mapping->writable >> device & 1) != 0   ? CU_MEM_ACCESS_READWRITE
			    : (mapping->readable >> device & 1) != 0 ? CU_MEM_ACCESS_READ
								     : CU_MEM_ACCESS_NONE;
		if (flags != CU_MEM_ACCESS_NONE)
			access[count++] = (CUmemAccessDesc){{CU_MEM_LOCATION_DEVICE, device}, flags};
	}
	return sw_driver.set_access(mapping->address, mapping->bytes, access, count);
}

static void set_fixed(const struct memory *memory, bool spilled, bool fixed)
{
	if (memory->gpu < 0 || spilled)
		return;
	_Atomic uint64_t *figure = &sw_slot->gpus[memory->gpu].fixed_bytes;
	if (fixed)
		atomic_fetch_add(figure, memory->bytes);
	else
		atomic_fetch_sub(figure, memory->bytes);
}

/* Whether memory of this kind can move at all. */
static bool is_plain(const CUmemAllocationProp *prop, size_t bytes)
{
	return sw_moves && !sw_stays && prop->type == CU_MEM_ALLOCATION_PINNED && prop->compression == 0 && prop->usage == 0 &&
	       prop->location.id >= 0 && prop->location.id < DEVICES && bytes > 0 && bytes % SW_UNIT_BYTES == 0 &&
	       bytes <= SW_STORE_PIECE_MOST;
}

static bool may_move(const struct sw_mapping *mapping)
{
	const struct memory *memory = mapping->memory;
	return is_plain(&memory->prop, memory->bytes) && !memory->known && memory->calls == 0 && memory->mappings == 1 && mapping->whole &&
	       mapping->context != NULL && (mapping->writable >> memory->prop.location.id & 1) != 0;
}

static void join(struct sw_mapping *mapping)
{
	struct memory *memory = mapping->memory;
	struct sw_range *range = calloc(1, sizeof *range + sizeof range->chunks[0]);
	if (range == NULL)
		return;
	*range = (struct sw_range){.address = mapping->address,
				   .bytes = memory->bytes,
				   .context = mapping->context,
				   .device = memory->prop.location.id,
				   .gpu = memory->gpu,
				   .mapping = mapping,
				   .chunk_count = 1};
	range->chunks[0] = (struct sw_chunk){
		.handle = memory->real, .bytes = (uint32_t)memory->bytes, .place = memory->spilled ? SW_SPILLED : SW_ON_GPU};
	memory->range = range;
	set_fixed(memory, memory->spilled, false);
	sw_range_link(range);
}

static void part(struct memory *memory)
{
	struct sw_range *range = memory->range;
	memory->real = range->chunks[0].handle;
	memory->spilled = range->chunks[0].place == SW_SPILLED;
	memory->range = NULL;
	/* It could not be brought back, ever (attendant.c): no mapping is left. */
	if (range->chunks[0].place == SW_STORED) {
		sw_account_give_host(range->gpu, memory->bytes);
		memory->gpu = -1;
	}
	set_fixed(memory, memory->spilled, true);
	sw_range_unlink(range);
	free(range);
}

/* After anything about it has changed. */
static void consider(struct sw_mapping *mapping)
{
	bool moves = mapping->memory->range != NULL, may = may_move(mapping);
	if (may && !moves)
		join(mapping);
	else if (!may && moves)
		part(mapping->memory);
}

static void make_known(struct memory *memory)
{
	memory->known = true;
	if (memory->range != NULL)
		part(memory);
}

void sw_mapped_pin(CUdeviceptr address, size_t bytes)
{
	for (struct sw_mapping *mapping = mappings; mapping != NULL; mapping = mapping->next)
		if (mapping->address < address + bytes && address < mapping->address + mapping->bytes)
			make_known(mapping->memory);
}

void sw_mapped_forget_context(CUcontext context)
{
	for (struct sw_mapping *mapping = mappings; mapping != NULL; mapping = mapping->next)
		if (mapping->context == context) {
			mapping->context = NULL;
			consider(mapping);
		}
}

/* ---- handles */

/* Its own value, or one that no handle has. */
static CUmemHandle free_name(CUmemHandle handle)
{
	static uint64_t last;
	while (*find(handle) != NULL)
		handle = MADE_UP + ++last;
	return handle;
}

static void add(struct memory *memory)
{
	memory->name = free_name(memory->real);
	memory->handles = 1;
	struct memory **link = find(memory->name);
	memory->next = *link;
	*link = memory;
}

static void give_back(int gpu, size_t bytes, bool spilled)
{
	if (spilled)
		sw_account_give_host(gpu, bytes);
	else
		sw_account_give(gpu, bytes, true);
}

/* Where the program neither holds it nor sees it, it goes. */
static CUresult drop_unused(struct memory *memory)
{
	if (memory->handles > 0 || memory->mappings > 0 || memory->calls > 0)
		return CUDA_SUCCESS;
	struct memory **link = find(memory->name);
	*link = memory->next;
	CUresult result = memory->spilled ? sw_spare_release(memory->bytes, memory->real) : sw_driver.release(memory->real);
	give_back(memory->gpu, memory->bytes, memory->spilled);
	free(memory);
	return result;
}

/* Some calls of the driver take as long as others like: a group of GPUs is waited for until all
 * have joined it. Those are made outside the gate and holding nothing; the memory neither goes nor
 * moves meanwhile. The program's handle becomes the driver's. NULL: it is none of ours. */
static struct memory *begin_call(Z *handle)
{
	struct sw_gate_thread *self = sw_gate_enter();
	pthread_mutex_lock(&sw_memory_lock);
	struct memory *memory = *find(*handle);
	if (memory != NULL) {
		memory->calls++;
		if (memory->range != NULL)
			part(memory);
		*handle = memory->real;
	}
	pthread_mutex_unlock(&sw_memory_lock);
	sw_gate_leave(self);
	return memory;
}

/* Under the lock, inside the gate. What has become of it by a call that worked cannot move: it is
 * mapped once more, or known. */
static void end_call(struct memory *memory, CUresult result)
{
	memory->calls--;
	for (struct sw_mapping *mapping = mappings; mapping != NULL && result != CUDA_SUCCESS; mapping = mapping->next)
		if (mapping->memory == memory)
			consider(mapping);
	drop_unused(memory);
}

CUmemHandle sw_mapped_name(CUmemHandle handle)
{
	if (sw_page == NULL)
		return handle;
	pthread_mutex_lock(&sw_memory_lock);
	bool taken = *find(handle) != NULL;
	struct memory *alias = taken ? calloc(1, sizeof *alias) : NULL;
	if (alias != NULL) {
		*alias = (struct memory){.real = handle, .gpu = -1, .known = true};
		add(alias);
		handle = alias->name;
	}
	pthread_mutex_unlock(&sw_memory_lock);
	return handle;
}

static CUresult get_on_gpu(size_t bytes, const CUmemAllocationProp *prop, uint64_t flags, int gpu, CUmemHandle *ret)
{
	if (!sw_account_take(gpu, bytes, true))
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = sw_driver.create(ret, bytes, prop, flags);
	if (result != CUDA_SUCCESS)
		sw_account_give(gpu, bytes, true);
	return result;
}

/* On the GPU if the job's share and the GPU have room, else in host memory if the budget
 * has, as with cuMemAlloc(). */
static CUresult get(size_t bytes, const CUmemAllocationProp *prop, uint64_t flags, int gpu, CUmemHandle *ret, bool *ret_spilled)
{
	*ret_spilled = false;
	CUresult result = get_on_gpu(bytes, prop, flags, gpu, ret);
	if (result == CUDA_ERROR_OUT_OF_MEMORY && sw_memory_reclaim(gpu))
		result = get_on_gpu(bytes, prop, flags, gpu, ret);
	if (result == CUDA_ERROR_OUT_OF_MEMORY && sw_memory_await_leaving())
		result = get_on_gpu(bytes, prop, flags, gpu, ret);
	if (result != CUDA_ERROR_OUT_OF_MEMORY || flags != 0 || !is_plain(prop, bytes) || !sw_account_take_host(gpu, bytes))
		return result;
	*ret_spilled = sw_spare_get(prop->location.id, bytes, ret) == CUDA_SUCCESS;
	if (!*ret_spilled)
		sw_account_give_host(gpu, bytes);
	return *ret_spilled ? CUDA_SUCCESS : result;
}

static CUresult create(CUmemHandle *ret, size_t bytes, const CUmemAllocationProp *prop, uint64_t flags)
{
	int gpu = sw_account_gpu(prop->location.id);
	bool spilled = false;
	if (ret == NULL)
		return sw_driver.create(ret, bytes, prop, flags);
	CUresult result = get(bytes, prop, flags, gpu, ret, &spilled);
	if (result != CUDA_SUCCESS)
		return result;
	struct memory *memory = malloc(sizeof *memory);
	/* What there is no memory to note is not counted. */
	if (memory == NULL) {
		give_back(gpu, bytes, spilled);
		return result;
	}
	*memory = (struct memory){.real = *ret, .bytes = bytes, .prop = *prop, .gpu = gpu, .spilled = spilled};
	pthread_mutex_lock(&sw_memory_lock);
	add(memory);
	*ret = memory->name;
	pthread_mutex_unlock(&sw_memory_lock);
	return result;
}

CUresult hook_cuMemCreate(P ret, Z bytes, P prop, Z flags)
{
	if (SW_MISSING(cuMemCreate))
		return CUDA_ERROR_NOT_INITIALIZED;
	const CUmemAllocationProp *asked = prop;
	if (sw_page == NULL)
		return sw_driver.create(ret, bytes, prop, flags);
	struct sw_gate_thread *self = sw_pace_enter_request();
	CUresult result;
	if (asked != NULL && asked->location.type == CU_MEM_LOCATION_DEVICE) {
		result = create(ret, bytes, prop, flags);
		sw_iterations_memory();
	} else {
		result = sw_driver.create(ret, bytes, prop, flags);
		if (result == CUDA_SUCCESS && ret != NULL)
			*(CUmemHandle *)ret = sw_mapped_name(*(CUmemHandle *)ret);
	}
	sw_pace_leave_request(self);
	return result;
}

CUresult hook_cuMemRelease(Z handle)
{
	if (SW_MISSING(cuMemRelease))
		return CUDA_ERROR_NOT_INITIALIZED;
	if (sw_page == NULL)
		return sw_driver.release(handle);
	struct sw_gate_thread *self = sw_gate_enter();
	pthread_mutex_lock(&sw_memory_lock);
	struct memory *memory = *find(handle);
	CUresult result;
	if (memory == NULL) {
		result = sw_driver.release(handle);
	} else if (memory->handles == 0) {
		result = CUDA_ERROR_INVALID_VALUE;
	} else {
		memory->handles--;
		result = drop_unused(memory);
	}
	pthread_mutex_unlock(&sw_memory_lock);
	sw_iterations_memory();
	sw_gate_leave(self);
	return result;
}

/* ---- mappings */

/* It is mapped; what there is no memory to note never moves. */
static void note_mapping(struct memory *memory, CUdeviceptr address, size_t bytes, size_t offset)
{
	struct sw_mapping *mapping = malloc(sizeof *mapping);
	CUcontext context = NULL;
	CUdevice device = -1;
	memory->mappings++;
	if (memory->range != NULL)
		part(memory);
	if (mapping == NULL)
		return;
	/* Copies are made by its own GPU. */
	if (sw_driver.context_current(&context) != CUDA_SUCCESS || context == NULL || sw_driver.context_device(&device) != CUDA_SUCCESS ||
	    device != memory->prop.location.id)
		context = NULL;
	*mapping = (struct sw_mapping){.next = mappings,
				       .address = address,
				       .bytes = bytes,
				       .memory = memory,
				       .context = context,
				       .whole = offset == 0 && bytes == memory->bytes};
	mappings = mapping;
}

CUresult hook_cuMemMap(Z address, Z bytes, Z offset, Z handle, Z flags)
{
	if (SW_MISSING(cuMemMap))
		return CUDA_ERROR_NOT_INITIALIZED;
	if (sw_page == NULL)
		return sw_driver.map(address, bytes, offset, handle, flags);
	struct memory *memory = begin_call(&handle);
	CUresult result = sw_driver.map(address, bytes, offset, handle, flags);
	if (memory == NULL)
		return result;
	struct sw_gate_thread *self = sw_gate_enter();
	pthread_mutex_lock(&sw_memory_lock);
	if (result == CUDA_SUCCESS)
		note_mapping(memory, address, bytes, offset);
	end_call(memory, result);
	pthread_mutex_unlock(&sw_memory_lock);
	sw_gate_leave(self);
	return result;
}

/* They are gone. */
static void forget_mappings(CUdeviceptr address, size_t bytes)
{
	pthread_mutex_lock(&sw_memory_lock);
	for (struct sw_mapping **link = &mappings; *link != NULL;) {
		struct sw_mapping *mapping = *link;
		if (mapping->address < address || mapping->address - address >= bytes) {
			link = &mapping->next;
			continue;
		}
		*link = mapping->next;
		if (mapping->memory->range != NULL)
			part(mapping->memory);
		mapping->memory->mappings--;
		drop_unused(mapping->memory);
		free(mapping);
	}
	pthread_mutex_unlock(&sw_memory_lock);
}

CUresult hook_cuMemUnmap(Z address, Z bytes)
{
	if (SW_MISSING(cuMemUnmap))
		return CUDA_ERROR_NOT_INITIALIZED;
	if (sw_page == NULL)
		return sw_driver.unmap(address, bytes);
	struct sw_gate_thread *self = sw_gate_enter();
	/* Not under the lock: it may take long. No thread maps there before
	 * this call has returned. */
	CUresult result = sw_driver.unmap(address, bytes);
	if (result == CUDA_SUCCESS)
		forget_mappings(address, bytes);
	sw_iterations_memory();
	sw_gate_leave(self);
	return result;
}

static void note_access(struct sw_mapping *mapping, const CUmemAccessDesc *access, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int device = access[i].location.id;
		if (access[i].location.type != CU_MEM_LOCATION_DEVICE || device < 0 || device >= DEVICES) {
			mapping->memory->known = true;
			continue;
		}
		uint64_t bit = UINT64_C(1) << device;
		mapping->readable = access[i].flags != CU_MEM_ACCESS_NONE ? mapping->readable | bit : mapping->readable & ~bit;
		mapping->writable = access[i].flags == CU_MEM_ACCESS_READWRITE ? mapping->writable | bit : mapping->writable & ~bit;
	}
	consider(mapping);
}

CUresult hook_cuMemSetAccess(Z address, Z bytes, P access, Z count)
{
	if (SW_MISSING(cuMemSetAccess))
		return CUDA_ERROR_NOT_INITIALIZED;
	if (sw_page == NULL)
		return sw_driver.set_access(address, bytes, access, count);
	struct sw_gate_thread *self = sw_pace_enter_request();
	CUresult result = sw_driver.set_access(address, bytes, access, count);
	pthread_mutex_lock(&sw_memory_lock);
	for (struct sw_mapping *mapping = mappings; mapping != NULL && result == CUDA_SUCCESS; mapping = mapping->next)
		if (mapping->address >= address && mapping->address - address < bytes)
			note_access(mapping, access, count);
	pthread_mutex_unlock(&sw_memory_lock);
	sw_pace_leave_request(self);
	return result;
}

CUresult hook_cuMemGetAccess(P ret, P location, Z address)
{
	if (SW_MISSING(cuMemGetAccess))
		return CUDA_ERROR_NOT_INITIALIZED;
	/* While the process is suspended there is nothing. */
	struct sw_gate_thread *self = sw_gate_enter();
	CUresult result = SW_REAL(cuMemGetAccess, P, P, Z)(ret, location, address);
	sw_gate_leave(self);
	return result;
}

/* ---- handles that are shown to the driver, or asked of it */

/* The handle of what is mapped there, once more; false: none of the program's own. */
static bool retain(CUdeviceptr address, CUmemHandle *ret)
{
	bool found = false;
	pthread_mutex_lock(&sw_memory_lock);
	for (struct sw_mapping *mapping = mappings; mapping != NULL && !found; mapping = mapping->next) {
		found = address >= mapping->address && address - mapping->address < mapping->bytes;
		if (found) {
			mapping->memory->handles++;
			*ret = mapping->memory->name;
		}
	}
	pthread_mutex_unlock(&sw_memory_lock);
	return found;
}

CUresult hook_cuMemRetainAllocationHandle(P ret, P address)
{
	if (SW_MISSING(cuMemRetainAllocationHandle))
		return CUDA_ERROR_NOT_INITIALIZED;
	CUdeviceptr at = (CUdeviceptr)(uintptr_t)address;
	struct sw_gate_thread *self = sw_gate_enter();
	CUresult result = CUDA_SUCCESS;
	if (sw_page == NULL || ret == NULL || !retain(at, ret)) {
		result = SW_REAL(cuMemRetainAllocationHandle, P, P)(ret, address);
		if (result == CUDA_SUCCESS && sw_moves)
			sw_memory_pin(at, 1);
		if (result == CUDA_SUCCESS && ret != NULL)
			*(CUmemHandle *)ret = sw_mapped_name(*(CUmemHandle *)ret);
	}
	sw_gate_leave(self);
	return result;
}

CUresult hook_cuMemExportToShareableHandle(P ret, Z handle, U type, Z flags)
{
	if (SW_MISSING(cuMemExportToShareableHandle))
		return CUDA_ERROR_NOT_INITIALIZED;
	if (sw_page == NULL)
		return sw_driver.export_handle(ret, handle, (int)type, flags);
	struct sw_gate_thread *self = sw_gate_enter();
	pthread_mutex_lock(&sw_memory_lock);
	struct memory *memory = *find(handle);
	CUresult result = sw_driver.export_handle(ret, translate(handle), (int)type, flags);
	if (result == CUDA_SUCCESS && memory != NULL)
		make_known(memory);
	pthread_mutex_unlock(&sw_memory_lock);
	sw_gate_leave(self);
	return result;
}

CUresult hook_cuMemGetAllocationPropertiesFromHandle(P ret, Z handle)
{
	if (SW_MISSING(cuMemGetAllocationPropertiesFromHandle))
		return CUDA_ERROR_NOT_INITIALIZED;
	if (sw_page == NULL)
		return sw_driver.handle_prop(ret, handle);
	struct sw_gate_thread *self = sw_gate_enter();
	pthread_mutex_lock(&sw_memory_lock);
	const struct memory *memory = *find(handle);
	CUresult result = CUDA_SUCCESS;
	/* As it was asked for, wherever it is now. */
	if (memory != NULL && memory->bytes > 0 && ret != NULL)
		*(CUmemAllocationProp *)ret = memory->prop;
	else
		result = sw_driver.handle_prop(ret, translate(handle));
	pthread_mutex_unlock(&sw_memory_lock);
	sw_gate_leave(self);
	return result;
}

static void end_bind(struct memory *memory, CUresult result)
{
	struct sw_gate_thread *self = sw_gate_enter();
	pthread_mutex_lock(&sw_memory_lock);
	if (result == CUDA_SUCCESS)
		make_known(memory);
	end_call(memory, result);
	pthread_mutex_unlock(&sw_memory_lock);
	sw_gate_leave(self);
}

/* Parameters are numbered from the last one: the handle of the memory is the fourth. */
#define BINDS_MEMORY(symbol, ...)                                                      \
	CUresult hook_##symbol(SW_PARAMS(__VA_ARGS__))                                 \
	{                                                                              \
		if (SW_MISSING(symbol))                                                \
			return CUDA_ERROR_NOT_INITIALIZED;                             \
		struct memory *memory = sw_page == NULL ? NULL : begin_call(&a4);      \
		CUresult result = SW_REAL(symbol, __VA_ARGS__)(SW_NAMES(__VA_ARGS__)); \
		if (memory != NULL)                                                    \
			end_bind(memory, result);                                      \
		return result;                                                         \
	}
BINDS_MEMORY(cuMulticastBindMem, Z, Z, Z, Z, Z, Z)
BINDS_MEMORY(cuMulticastBindMem_v2, Z, U, Z, Z, Z, Z, Z)
BINDS_MEMORY(cuLogicalEndpointBindMem, U, U, Z, Z, Z, Z, Z)

static bool is_taken(CUmemHandle handle)
{
	pthread_mutex_lock(&sw_memory_lock);
	bool taken = *find(handle) != NULL;
	pthread_mutex_unlock(&sw_memory_lock);
	return taken;
}

/* Many calls take the handle of a group, so those are not translated. One whose value the program
 * has already is put aside until there is another. */
CUresult hook_cuMulticastCreate(P ret, P prop)
{
	if (SW_MISSING(cuMulticastCreate))
		return CUDA_ERROR_NOT_INITIALIZED;
	CUmemHandle aside[MULTICASTS];
	unsigned count = 0;
	CUresult result = SW_REAL(cuMulticastCreate, P, P)(ret, prop);
	while (result == CUDA_SUCCESS && sw_page != NULL && count < MULTICASTS && is_taken(*(CUmemHandle *)ret)) {
		aside[count++] = *(CUmemHandle *)ret;
		result = SW_REAL(cuMulticastCreate, P, P)(ret, prop);
	}
	while (count > 0)
		sw_driver.release(aside[--count]);
	return result;
}
