/* Streams: queues of work, each with a thread of its own from its first work on.
 *
 * 1. The work of a stream runs in the order it was put in. Work of the legacy default stream
 *    waits for all earlier work of the context's other streams, except non-blocking ones,
 *    and theirs waits for it.
 * 2. `clock_ns` is the modelled time at which the last finished work ended.
 * 3. Not more than EMU_QUEUE pieces wait in a stream: the next call waits for room,
 *    as with a real driver.
 */
#ifndef EMU_STREAMS_H
#define EMU_STREAMS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "context.h"
#include "work.h"

enum { EMU_QUEUE = 1024, EMU_PRIORITY_GREATEST = -5 };
enum emu_stream_kind { EMU_STREAM_LEGACY, EMU_STREAM_PER_THREAD, EMU_STREAM_CREATED };

struct emu_stream {
	struct emu_object object;
	struct emu_context *context;
	enum emu_stream_kind kind;
	unsigned flags;
	int priority;
	uint64_t id;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct emu_work *first, *last;
	unsigned queued;
	uint64_t put, done; /* numbers of the last work put in and of the last one finished */
	uint64_t clock_ns;
	bool has_thread, ended;
	struct emu_stream *next;	    /* of the context */
	struct emu_stream_capture *capture; /* of capture.c; NULL when not capturing */
};

/* A stream of the context; it lives until it is ended and its work is done. */
struct emu_stream *emu_stream_new(struct emu_context *context, enum emu_stream_kind kind, unsigned flags, int priority);

/* Of a context that ends. */
void emu_streams_end(struct emu_context *context);

/* The stream that a handle means for the current context, with a reference: 0 is the default
 * stream of the flavour. */
CUresult emu_stream_of(CUstream handle, enum emu_flavour flavour, struct emu_stream **ret_stream);

/* Puts work in, which becomes the stream's, also when it fails. `ret_number` may be NULL. */
CUresult emu_stream_put(struct emu_stream *stream, struct emu_work *work, uint64_t *ret_number);

uint64_t emu_stream_last(struct emu_stream *stream);
bool emu_stream_is_done(struct emu_stream *stream, uint64_t number);
/* Returns the stream's clock then. */
uint64_t emu_stream_wait(struct emu_stream *stream, uint64_t number);

#endif
