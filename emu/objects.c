/* The table of live objects. */
#include "objects.h"

#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

enum { BUCKETS = 4096 };

static struct emu_object *buckets[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct emu_object **bucket_of(const void *handle)
{
	return &buckets[((uintptr_t)handle >> 4) * 2654435761U % BUCKETS];
}

void emu_hold(struct emu_object *object)
{
	atomic_fetch_add(&object->references, 1);
}

static void insert(struct emu_object *object)
{
	pthread_mutex_lock(&lock);
	struct emu_object **bucket = bucket_of(object);
	object->next = *bucket;
	*bucket = object;
	pthread_mutex_unlock(&lock);
}

void emu_prepare(struct emu_object *object, enum emu_kind kind, void (*destroy)(struct emu_object *))
{
	object->kind = kind;
	object->destroy = destroy;
	atomic_init(&object->references, 1);
}

void emu_publish(struct emu_object *object, enum emu_kind kind, void (*destroy)(struct emu_object *))
{
	emu_prepare(object, kind, destroy);
	insert(object);
}

void emu_revive(struct emu_object *object)
{
	emu_hold(object);
	insert(object);
}

void emu_put(struct emu_object *object)
{
	if (object == NULL)
		return;
	unsigned before = atomic_fetch_sub(&object->references, 1);
	assert(before > 0);
	if (before == 1)
		object->destroy(object);
}

void *emu_get(const void *handle, enum emu_kind kind)
{
	pthread_mutex_lock(&lock);
	struct emu_object *object = *bucket_of(handle);
	while (object != NULL && object != handle)
		object = object->next;
	if (object != NULL && object->kind != kind)
		object = NULL;
	if (object != NULL)
		emu_hold(object);
	pthread_mutex_unlock(&lock);
	return object;
}

bool emu_retire(const void *handle, enum emu_kind kind)
{
	pthread_mutex_lock(&lock);
	struct emu_object **link = bucket_of(handle);
	while (*link != NULL && *link != handle)
		link = &(*link)->next;
	struct emu_object *object = *link;
	if (object != NULL && object->kind != kind)
		object = NULL;
	if (object != NULL)
		*link = object->next;
	pthread_mutex_unlock(&lock);
	emu_put(object);
	return object != NULL;
}
