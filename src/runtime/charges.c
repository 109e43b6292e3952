#include "runtime/charges.h"

#include <pthread.h>
#include <stdlib.h>

#include "runtime/account.h"
#include "runtime/driver.h"

struct charge {
	struct charge *next;
	CUcontext context; /* NULL: of none */
	uint64_t key;
	size_t bytes;
	int gpu;
	enum sw_charge_kind kind;
};

#define BUCKETS 4096u
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct charge *buckets[BUCKETS];

static struct charge **find(enum sw_charge_kind kind, uint64_t key)
{
	struct charge **link = &buckets[(key >> 9 ^ key ^ (uint64_t)kind) % BUCKETS];
	while (*link != NULL && ((*link)->kind != kind || (*link)->key != key))
		link = &(*link)->next;
	return link;
}

void sw_charge_add(enum sw_charge_kind kind, uint64_t key, int gpu, size_t bytes)
{
	struct charge *charge = malloc(sizeof *charge);
	if (charge == NULL) {
		sw_account_give(gpu, bytes, true);
		return;
	}
	CUcontext context = NULL;
	sw_driver.context_current(&context);
	pthread_mutex_lock(&lock);
	struct charge **link = find(kind, key);
	*charge = (struct charge){.next = *link, .context = context, .key = key, .bytes = bytes, .gpu = gpu, .kind = kind};
	*link = charge;
	pthread_mutex_unlock(&lock);
}

void sw_charge_context(CUcontext context, int gpu, size_t bytes)
{
	uint64_t key = (uint64_t)(uintptr_t)context;
	struct charge *charge = malloc(sizeof *charge);
	if (charge == NULL)
		return;
	pthread_mutex_lock(&lock);
	struct charge **link = find(SW_CHARGE_CONTEXT, key);
	bool is_new = *link == NULL;
	if (is_new) {
		*charge = (struct charge){.context = context, .key = key, .bytes = bytes, .gpu = gpu, .kind = SW_CHARGE_CONTEXT};
		*link = charge;
		sw_account_note(gpu, bytes, true);
	}
	pthread_mutex_unlock(&lock);
	if (!is_new)
		free(charge);
}

/* Under the lock. */
static void let_go(struct charge **link)
{
	struct charge *charge = *link;
	if (charge == NULL)
		return;
	*link = charge->next;
	sw_account_give(charge->gpu, charge->bytes, true);
	free(charge);
}

void sw_charge_remove(enum sw_charge_kind kind, uint64_t key)
{
	pthread_mutex_lock(&lock);
	let_go(find(kind, key));
	pthread_mutex_unlock(&lock);
}

bool sw_charge_has(enum sw_charge_kind kind, uint64_t key)
{
	pthread_mutex_lock(&lock);
	bool has = *find(kind, key) != NULL;
	pthread_mutex_unlock(&lock);
	return has;
}

void sw_charge_drop_context(CUcontext context)
{
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < BUCKETS && context != NULL; i++)
		for (struct charge **link = &buckets[i]; *link != NULL;) {
			if ((*link)->context == context)
				let_go(link);
			else
				link = &(*link)->next;
		}
	pthread_mutex_unlock(&lock);
}

/* ---- pools */

enum { POOLS = 64 };
static struct seen_pool {
	CUmemoryPool pool;
	int gpu;
	uint64_t charged;
} pools[POOLS];
static unsigned pool_count;

/* Under the lock; NULL: too many. */
static struct seen_pool *seen(CUmemoryPool pool, CUdevice device)
{
	for (unsigned i = 0; i < pool_count; i++)
		if (pools[i].pool == pool)
			return &pools[i];
	if (pool_count == POOLS)
		return NULL;
	pools[pool_count] = (struct seen_pool){.pool = pool, .gpu = sw_account_gpu(device)};
	return &pools[pool_count++];
}

static void settle(struct seen_pool *entry)
{
	uint64_t reserved = 0;
	if (sw_driver.pool_attribute(entry->pool, CU_MEMPOOL_RESERVED_CURRENT, &reserved) != CUDA_SUCCESS)
		return;
	if (reserved > entry->charged)
		sw_account_note(entry->gpu, reserved - entry->charged, true);
	else
		sw_account_give(entry->gpu, entry->charged - reserved, true);
	entry->charged = reserved;
}

void sw_charge_pool(CUmemoryPool pool, CUdevice device)
{
	pthread_mutex_lock(&lock);
	if (pool == NULL) {
		for (unsigned i = 0; i < pool_count; i++)
			settle(&pools[i]);
	} else {
		struct seen_pool *entry = seen(pool, device);
		if (entry != NULL)
			settle(entry);
	}
	pthread_mutex_unlock(&lock);
}

void sw_charge_forget_pool(CUmemoryPool pool)
{
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < pool_count; i++)
		if (pools[i].pool == pool) {
			sw_account_give(pools[i].gpu, pools[i].charged, true);
			pools[i] = pools[--pool_count];
			break;
		}
	pthread_mutex_unlock(&lock);
}

bool sw_charge_pool_may(CUmemoryPool pool, CUdevice device, size_t bytes)
{
	uint64_t reserved = 0, used = 0;
	if (sw_driver.pool_attribute == NULL || sw_driver.pool_attribute(pool, CU_MEMPOOL_RESERVED_CURRENT, &reserved) != CUDA_SUCCESS ||
	    sw_driver.pool_attribute(pool, CU_MEMPOOL_USED_CURRENT, &used) != CUDA_SUCCESS)
		return true;
	uint64_t spare = reserved > used ? reserved - used : 0;
	return bytes <= spare || bytes - spare <= sw_account_room(sw_account_gpu(device));
}

/* ---- graphs */

enum { DEVICES = 64 };
static uint64_t graph_bytes[DEVICES];

void sw_charge_graphs(void)
{
	int count = 0;
	if (sw_driver.graph_memory == NULL || sw_driver.primary_state == NULL || sw_driver.device_count(&count) != CUDA_SUCCESS)
		return;
	pthread_mutex_lock(&lock);
	for (int device = 0; device < count && device < DEVICES; device++) {
		uint64_t held = 0;
		unsigned flags;
		int gpu = sw_account_gpu(device), active = 0;
		if (gpu < 0 || sw_driver.primary_state(device, &flags, &active) != CUDA_SUCCESS ||
		    (active != 0 && sw_driver.graph_memory(device, CU_GRAPH_MEM_RESERVED_CURRENT, &held) != CUDA_SUCCESS))
			continue;
		if (held > graph_bytes[device])
			sw_account_note(gpu, held - graph_bytes[device], true);
		else
			sw_account_give(gpu, graph_bytes[device] - held, true);
		graph_bytes[device] = held;
	}
	pthread_mutex_unlock(&lock);
}
