/* What a handle of the driver stands for. A handle is the address of an object. It is good as long
 * as the object is in the table of live ones. So a stale or invented handle is an error code and
 * never a crash.
 *
 * 1. An object is freed when its last reference goes. The table holds one reference.
 * 2. `emu_get` gives a reference, or NULL when there is no live object of that kind at that
 *    address.
 */
#ifndef EMU_OBJECTS_H
#define EMU_OBJECTS_H

#include <stdatomic.h>
#include <stdbool.h>

enum emu_kind {
	EMU_CONTEXT = 1,
	EMU_STREAM,
	EMU_EVENT,
	EMU_MODULE,
	EMU_FUNCTION,
	EMU_MEMORY,
	EMU_POOL,
	EMU_ARRAY,
	EMU_MIPMAP,
	EMU_GRAPH,
	EMU_NODE,
	EMU_EXEC,
	EMU_PLAN,
};

struct emu_object {
	enum emu_kind kind;
	atomic_uint references;
	void (*destroy)(struct emu_object *object); /* frees it */
	struct emu_object *next;		    /* of the table */
};

/* Begins its life with one reference, not known to any table. */
void emu_prepare(struct emu_object *object, enum emu_kind kind, void (*destroy)(struct emu_object *));

/* Makes the object known; the caller's reference becomes the table's. */
void emu_publish(struct emu_object *object, enum emu_kind kind, void (*destroy)(struct emu_object *));

void *emu_get(const void *handle, enum emu_kind kind);
void emu_hold(struct emu_object *object);
void emu_put(struct emu_object *object);

/* Puts an object that was retired, and that the caller holds, into the table again. */
void emu_revive(struct emu_object *object);

/* Takes the object out of the table and drops the table's reference; false
 * when it was not there. */
bool emu_retire(const void *handle, enum emu_kind kind);

#endif
