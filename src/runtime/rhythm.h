/* The rhythm in a sequence of calls: how long the part is that a program repeats, and how regularly
 * it does so. Knows nothing of drivers, threads or clocks.
 *
 * Every launch and copy is one note, a number that is made from which call it is. A
 * training program repeats thousands of them, with breaks: a validation after an epoch, a
 * copy when it logs something.
 *
 * Invariants:
 *  1. a rhythm is only stated where nearly all of the notes are the ones a period before them; a
 *     sequence without one has none;
 *  2. the period is the shortest that explains the breaks. A part may be repeated up to MOST_INNER
 *     times and then be followed by something else, always the same. Then the period is the whole
 *     (gradient accumulation). Of one that is repeated more often it is the part (a step, with a
 *     validation now and then);
 *  3. copies are no part of it, except where the launches alone say too little: all are of
 *     one and the same kernel.
 */
#ifndef SW_RUNTIME_RHYTHM_H
#define SW_RUNTIME_RHYTHM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SW_RHYTHM_NOTES 32768u /* that are looked at, at most */

/* Notes are never 0. */
#define SW_NOTE_LAUNCH 0x80000000u
#define SW_NOTE_GRAPH 0x40000000u
#define SW_NOTE_ALL 0xffffffffu
#define SW_NOTE_WITHOUT_GRID 0xffff0000u /* which kernel it is, however large its grid */

static inline uint32_t sw_note_launch(const void *function, unsigned x, unsigned y, unsigned z)
{
	uint32_t which = (uint32_t)((uint64_t)(uintptr_t)function * 0x9e3779b97f4a7c15u >> 50);
	uint32_t grid = (x + y * 0x9e3779b1u + z * 0x85ebca77u) * 0xc2b2ae35u >> 16;
	return SW_NOTE_LAUNCH | which << 16 | grid;
}

static inline uint32_t sw_note_graph(const void *graph)
{
	return SW_NOTE_GRAPH | sw_note_launch(graph, 0, 0, 0);
}

/* `which` call it is: less than 0x3fff. */
static inline uint32_t sw_note_copy(uint32_t which)
{
	return (which + 1) << 16;
}

struct sw_rhythm {
	uint32_t length;       /* notes in a period */
	uint32_t launches;     /* of them */
	uint32_t marker, mask; /* a note that comes `times` times in each, compared under the mask */
	uint32_t times;
};

/* Working memory of sw_rhythm_find(): about 600 KiB, the caller's. */
struct sw_rhythm_room {
	uint32_t notes[SW_RHYTHM_NOTES], launches[SW_RHYTHM_NOTES];
	struct sw_rhythm_seen {
		uint32_t note, count;
		int32_t picked;
	} seen[16384];
	uint32_t candidates[1024];
};

/* The rhythm of the `count` last notes, oldest first; false: there is none. */
bool sw_rhythm_find(struct sw_rhythm_room *room, const uint32_t *notes, size_t count, struct sw_rhythm *ret_rhythm);

/* How long periods take. */
struct sw_rhythm_clock {
	uint64_t beats; /* periods that ended */
	int64_t last_ns;
	int64_t mean_ns, jitter_ns; /* smoothed; 0: not known yet */
	uint32_t known;		    /* periods that they are made from, up to a bound */
	uint32_t pauses;	    /* in a row */
};

/* `periods` have ended since the last beat. Pauses (validation, suspension) count as periods,
 * and not into the times. */
void sw_rhythm_beat(struct sw_rhythm_clock *clock, int64_t now_ns, uint32_t periods);

#endif
