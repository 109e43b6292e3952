/* Devices and contexts of this process. A device is a GPU that CUDA_VISIBLE_DEVICES shows; its
 * number here is not its number in the settings. */
#ifndef EMU_CONTEXT_H
#define EMU_CONTEXT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cuda/driver.h"
#include "entry.h"
#include "objects.h"

struct emu_stream;

struct emu_context {
	struct emu_object object; /* contexts are never freed: a thread may still have one current */
	int device;
	int gpu;
	uint64_t id;
	unsigned flags;
	bool primary;
	unsigned retained; /* of a primary one */
	atomic_bool alive;
	atomic_int error;      /* the error that ended it */
	pthread_mutex_t order; /* of the streams below, and of work put into them where they wait for each other */
	struct emu_stream *streams;
	struct emu_stream *legacy;
	struct emu_context *next; /* of all */
};

/* The number of devices, and the GPU of one; -1 when there is no such device. */
int emu_device_count(void);
int emu_device_gpu(CUdevice device);
/* The device of a GPU as this process sees it. */
int emu_gpu_device(int gpu);
/* By the number of the GPU itself (emu_place()). */
void emu_uuid(unsigned gpu, CUuuid *ret_uuid);

/* The current context of this thread, NULL when none. */
struct emu_context *emu_current(void);

/* Ends a context by an error; the first one counts. */
void emu_context_fail(struct emu_context *context, CUresult error);

/* CUDA_SUCCESS, or why nothing works in this context any more. */
CUresult emu_context_state(const struct emu_context *context);

/* The context behind a handle, which must be live; NULL otherwise. */
struct emu_context *emu_context_of(CUcontext handle);

/* The primary context of a device if it is in use. */
struct emu_context *emu_context_primary(CUdevice device);

/* Waits for all streams of all contexts. */
void emu_contexts_wait(void);

/* Waits for all streams. */
void emu_context_wait(struct emu_context *context);

#endif
