#include "runtime/spare.h"

#include <pthread.h>
#include <stdint.h>

#include "runtime/account.h"
#include "runtime/driver.h"
#include "runtime/memory.h"
#include "runtime/node.h"
#include "runtime/pace.h"

/* Kept when it was not asked for: for a program that shrinks and grows in turns. */
#define KEPT_MOST ((uint64_t)2 << 30)
enum { SPARES = 1024 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct spare {
	CUmemHandle handle;
	size_t bytes;
	int node;
} spares[SPARES];
static unsigned count;
static uint64_t kept_bytes;

static int node_of(CUdevice device)
{
	int node = 0;
	return sw_driver.device_attribute(&node, CU_DEVICE_HOST_NUMA_ID, device) == CUDA_SUCCESS && node >= 0 ? node : 0;
}

static CUresult make(int node, size_t bytes, CUmemHandle *ret_handle)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_PINNED, .location = {CU_MEM_LOCATION_HOST_NUMA, node}};
	if (!sw_node_take(bytes, false))
		return CUDA_ERROR_OUT_OF_MEMORY;
	sw_node_begin_making();
	CUresult result = sw_driver.create(ret_handle, bytes, &prop, 0);
	sw_node_end_making();
	if (result != CUDA_SUCCESS)
		sw_node_give(bytes);
	return result;
}

CUresult sw_spare_release(size_t bytes, CUmemHandle handle)
{
	CUresult result = sw_driver.release(handle);
	sw_node_give(bytes);
	return result;
}

/* False: there is no room for it. */
static bool keep(int node, size_t bytes, CUmemHandle handle, uint64_t most)
{
	pthread_mutex_lock(&lock);
	bool room = count < SPARES && kept_bytes + bytes <= most;
	if (room) {
		spares[count++] = (struct spare){handle, bytes, node};
		kept_bytes += bytes;
	}
	pthread_mutex_unlock(&lock);
	return room;
}

/* What is kept is host memory that is not charged: it is given back where it is more than the room
 * in the job's budget. False: it is not. */
static bool trim_one(uint64_t most)
{
	struct spare last = {0};
	pthread_mutex_lock(&lock);
	bool more = count > 0 && kept_bytes > most;
	if (more) {
		last = spares[--count];
		kept_bytes -= last.bytes;
	}
	pthread_mutex_unlock(&lock);
	if (more)
		sw_spare_release(last.bytes, last.handle);
	return more;
}

static bool trim(uint64_t most)
{
	bool any = false;
	while (trim_one(most))
		any = true;
	return any;
}

void sw_spare_trim(void)
{
	pthread_mutex_lock(&lock);
	bool any = count > 0;
	pthread_mutex_unlock(&lock);
	if (any)
		trim(sw_node_is_short() ? 0 : sw_account_host_room());
}

bool sw_spare_drop(void)
{
	return trim_one(0);
}

CUresult sw_spare_get(CUdevice device, size_t bytes, CUmemHandle *ret_handle)
{
	int node = node_of(device);
	bool found = false;
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < count && !found; i++) {
		if (spares[i].bytes != bytes || spares[i].node != node)
			continue;
		found = true;
		*ret_handle = spares[i].handle;
		spares[i] = spares[--count];
		kept_bytes -= bytes;
	}
	pthread_mutex_unlock(&lock);
	sw_pace_forget_lengths();
	if (found)
		return CUDA_SUCCESS;
	/* It is charged already. */
	sw_spare_trim();
	CUresult result = make(node, bytes, ret_handle);
	/* What is kept here may be what is missing. */
	return result != CUDA_SUCCESS && trim(0) ? make(node, bytes, ret_handle) : result;
}

void sw_spare_put(CUdevice device, size_t bytes, CUmemHandle handle)
{
	/* It is still charged, but not for long. */
	uint64_t room = sw_account_host_room() + bytes;
	if (!keep(node_of(device), bytes, handle, room < KEPT_MOST ? room : KEPT_MOST))
		sw_spare_release(bytes, handle);
}

static size_t count_kept(int node, size_t bytes)
{
	size_t found = 0;
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < count; i++)
		found += spares[i].bytes == bytes && spares[i].node == node;
	pthread_mutex_unlock(&lock);
	return found;
}

/* False: not all of it can be had. */
static bool make_all(int node, const size_t *sizes, size_t size_count)
{
	for (size_t i = 0; i < size_count; i++) {
		size_t wanted = 1;
		CUmemHandle handle;
		for (size_t j = 0; j < i; j++)
			wanted += sizes[j] == sizes[i];
		if (count_kept(node, sizes[i]) >= wanted)
			continue;
		if (make(node, sizes[i], &handle) != CUDA_SUCCESS)
			return false;
		if (!keep(node, sizes[i], handle, sw_account_host_room())) {
			sw_spare_release(sizes[i], handle);
			return false;
		}
	}
	return true;
}

bool sw_spare_prepare(CUdevice device, const size_t *sizes, size_t size_count)
{
	/* As one: else others would begin theirs between two of them. */
	sw_node_begin_making();
	bool all = make_all(node_of(device), sizes, size_count);
	sw_node_end_making();
	return all;
}
