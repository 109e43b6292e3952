/* Iterations, found in what the process gives the GPU: where a mini-batch ends, how long it takes,
 * and when the process holds least memory.
 *
 * Every thread that launches or copies writes down which call it was, in a ring of its own
 * (rhythm.h). That is all that the launch path does, and it shares nothing. The attendant looks at
 * the rings now and then. Where it finds a rhythm it names a note that comes in each period: when
 * that note comes again, its thread looks at the clock. The iteration of the process is the longest
 * one of its threads. Where one thread computes gradients and another updates weights every fourth
 * time, the latter's is the whole.
 */
#ifndef SW_RUNTIME_ITERATIONS_H
#define SW_RUNTIME_ITERATIONS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/account.h"
#include "runtime/gate.h"
#include "runtime/rhythm.h"

/* Of one thread. The ring is written by it and read by the attendant. */
struct sw_track {
	_Atomic uint32_t noted;	       /* how many notes there were */
	_Atomic uint32_t marker, mask; /* 0: none */
	uint32_t until;		       /* markers to come before the clock is looked at */
	struct sw_track_figures *figures;
	_Atomic uint32_t ring[SW_RHYTHM_NOTES] __attribute__((aligned(64)));
};

/* The first note of a thread. */
void sw_track_open(struct sw_gate_thread *self);
/* The marker came. */
void sw_track_hit(struct sw_track *track);

/* By the thread itself, inside the gate. */
static inline void sw_iterations_note(struct sw_gate_thread *self, uint32_t note)
{
	struct sw_track *track = self->track;
	if (__builtin_expect(track == NULL, 0)) {
		if (sw_page != NULL)
			sw_track_open(self);
		return;
	}
	uint32_t place = atomic_load_explicit(&track->noted, memory_order_relaxed);
	atomic_store_explicit(&track->ring[place % SW_RHYTHM_NOTES], note, memory_order_relaxed);
	atomic_store_explicit(&track->noted, place + 1, memory_order_release);
	if (__builtin_expect((note & atomic_load_explicit(&track->mask, memory_order_relaxed)) ==
				     atomic_load_explicit(&track->marker, memory_order_relaxed),
			     0))
		sw_track_hit(track);
}

/* The process has got or freed memory. Inside the gate: nothing is on its way then. */
void sw_iterations_memory(void);
/* By the attendant, before it moves memory out. Waits until the process holds about as little as it
 * does at the best moment of an iteration. It waits for one iteration at most, and not long. It
 * does not wait where nothing is known, where memory stays the same, or where it is urgent. */
void sw_iterations_await_floor(void);
/* By the attendant, at its every look: brings the slot's figures up to date. */
void sw_iterations_look(void);

#endif
