/* Events: moments in a stream, with modelled times. */
#ifndef EMU_EVENTS_H
#define EMU_EVENTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "objects.h"

struct emu_stream;
struct emu_event_capture;

struct emu_event {
	struct emu_object object;
	unsigned flags;
	int gpu;
	pthread_mutex_t lock;
	uint64_t version;	   /* counts the records */
	uint64_t done_version;	   /* the last one that was reached */
	uint64_t time_ns;	   /* of the last one that was reached */
	struct emu_stream *stream; /* of the last record, with the number of its work */
	uint64_t number;
	struct emu_event_capture *capture; /* of capture.c */
};

/* The work of version `version` was reached. */
void emu_event_reach(struct emu_event *event, uint64_t version, uint64_t time_ns);

#endif
