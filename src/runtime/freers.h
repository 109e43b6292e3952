/* Stream order: what a stream frees it may have again at once, others when the stream has got
 * there.
 *
 * Frees happen at moments, which are counted. A freer is a stream that freed something; it knows up
 * to which moment all that it freed is really over. It learns that where the program waits for the
 * GPU anyway, and from events that are recorded behind some of its frees. A thread that has just
 * used that stream records these: no other thread knows whether the program destroys or captures it
 * meanwhile.
 *
 * Invariants:
 *  1. a moment that is over for a freer was counted before everything was recorded, or
 *     waited for, that says so;
 *  2. a freer is not used for another stream while anything refers to it (`uses`);
 *  3. under sw_memory_lock, except where it says "takes the lock"; no thread
 *     records or waits under it.
 */
#ifndef SW_RUNTIME_FREERS_H
#define SW_RUNTIME_FREERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda/driver.h"

struct sw_freer_mark {
	CUevent event;	 /* NULL: not made yet */
	uint64_t moment; /* all up to it is over when the event is; 0: nothing recorded */
};

struct sw_freer {
	CUstream stream; /* NULL: destroyed. One that each thread has for itself, or the default one, by its special name */
	CUcontext context;
	uint64_t thread;      /* of a stream that each thread has for itself; else 0 */
	uint64_t over;	      /* what it freed up to this moment */
	uint64_t last;	      /* moment of its last free */
	uint64_t marked;      /* up to here an event was recorded */
	uint64_t freed_bytes; /* since the last mark */
	struct sw_freer_mark marks[2];
	CUdevice device;
	uint32_t uses;
	uint32_t frees; /* since the last mark */
	bool marking;
};

/* Stands for all streams of the context at once. What is freed there is over when the program has
 * waited for the whole context, or the GPU stands still. Nothing is recorded in it. */
#define SW_FREER_OF_CONTEXT ((CUstream)-1)

extern _Atomic bool sw_freers_used; /* there is at least one */

/* The stream as a freer names it: `own` where no stream means the thread's. */
static inline CUstream sw_freer_stream(CUstream stream, bool own)
{
	return stream != NULL ? stream : own ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
}

/* Of this stream, for the calling thread and its current context; made if it is new. NULL: the
 * driver does not know it, or there are too many. */
struct sw_freer *sw_freer_of(CUstream stream);
/* The moment of a free there. */
uint64_t sw_freer_free(struct sw_freer *freer, size_t bytes);
bool sw_freer_is_over(const struct sw_freer *freer, uint64_t moment);
/* Asks the events. */
void sw_freers_poll(void);
/* Everything is over: the GPU stands still. */
void sw_freers_rest(void);
void sw_freers_drop_context(CUcontext context);

/* After fork(): no thread waits here any more. */
void sw_freers_forget(void);

/* Take the lock. */
/* By a thread that has just freed in this stream, its freer: records an event if that is
 * worth it, or `anyway`. */
void sw_freer_mark(struct sw_freer *freer, CUstream stream, bool anyway);
/* Around a wait: a moment before, and what it says after. The stream is NULL
 * for all of the context. */
uint64_t sw_freers_cut(void);
void sw_freers_waited(uint64_t cut, CUcontext context, CUstream stream);
/* Waits for all work of the current context. */
CUresult sw_freers_wait(void);
/* Before the stream is destroyed. */
void sw_freer_forget_stream(CUstream stream);

#endif
