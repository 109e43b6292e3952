#include "runtime/rhythm.h"

#include <stdlib.h>
#include <string.h>

enum {
	LEAST = 24,	   /* fewer notes say nothing */
	LEAST_PART = 64,   /* ... and where they follow upon something else, */
	TINY_PART = 1024,  /* with a tiny period */
	REPEATS = 8,	   /* how often a period must be seen, */
	LEAST_REPEATS = 3, /* and one for which there is no room to be seen so often */
	MOST_INNER = 32,
	/* periods of fewer notes happen by themselves where one kernel is launched over and
	 * over: nearly no breaks */
	TINY = 4,
	TINY_INNER = 256,
	SEEN = 16384,
	PICKED = 32,
	POSITIONS = 9,
	CANDIDATES = 1024,
	SMOOTH = 8,
	PAUSE = 4, /* times the mean is no period but a pause */
	PAUSES = 8,
};

/* ---- notes and how often they come */

static struct sw_rhythm_seen *find_seen(struct sw_rhythm_room *room, uint32_t note)
{
	uint32_t slot = note * 0x9e3779b1u >> 18;
	while (room->seen[slot].count != 0 && room->seen[slot].note != note)
		slot = (slot + 1) % SEEN;
	return &room->seen[slot];
}

/* How many different ones there are; 0: too many. */
static uint32_t count_notes(struct sw_rhythm_room *room, const uint32_t *notes, size_t count)
{
	uint32_t different = 0;
	memset(room->seen, 0, sizeof room->seen);
	for (size_t i = 0; i < count; i++) {
		struct sw_rhythm_seen *seen = find_seen(room, notes[i]);
		if (seen->count == 0) {
			if (++different > SEEN / 2)
				return 0;
			*seen = (struct sw_rhythm_seen){.note = notes[i], .picked = -1};
		}
		seen->count++;
	}
	return different;
}

/* ---- periods that it might have */

struct picked {
	struct sw_rhythm_seen *seen[PICKED];
	uint32_t positions[PICKED][POSITIONS]; /* the last ones, last first */
	uint32_t found[PICKED];
	uint32_t count;
};

static void pick(struct picked *picked, struct sw_rhythm_seen *seen)
{
	if (picked->count == PICKED || seen->picked >= 0 || seen->count < LEAST_REPEATS)
		return;
	seen->picked = (int32_t)picked->count;
	picked->seen[picked->count++] = seen;
}

/* Notes whose distances may be periods. They are those of the last calls, and the rarest, which
 * tell the whole from a part that is repeated in it. */
static void pick_notes(struct sw_rhythm_room *room, const uint32_t *notes, size_t count, struct picked *picked)
{
	struct sw_rhythm_seen *rarest[PICKED / 2];
	uint32_t kept = 0;
	for (size_t i = 0; i < count && i < PICKED / 2; i++)
		pick(picked, find_seen(room, notes[count - 1 - i]));
	for (struct sw_rhythm_seen *seen = room->seen; seen < room->seen + SEEN; seen++) {
		if (seen->count < LEAST_REPEATS || (kept == PICKED / 2 && seen->count >= rarest[kept - 1]->count))
			continue;
		uint32_t place = kept < PICKED / 2 ? kept++ : kept - 1;
		for (; place > 0 && rarest[place - 1]->count > seen->count; place--)
			rarest[place] = rarest[place - 1];
		rarest[place] = seen;
	}
	for (uint32_t i = 0; i < kept; i++)
		pick(picked, rarest[i]);
}

static int ascending(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

/* Distances between places of the same note, also over several of them, shortest first. A break may
 * lie before the last place: they are taken from an earlier one too. */
static uint32_t list_candidates(struct sw_rhythm_room *room, const uint32_t *notes, size_t count)
{
	struct picked picked = {.count = 0};
	uint32_t listed = 0;
	pick_notes(room, notes, count, &picked);
	for (size_t i = count; i-- > 0;) {
		int32_t which = find_seen(room, notes[i])->picked;
		if (which >= 0 && picked.found[which] < POSITIONS)
			picked.positions[which][picked.found[which]++] = (uint32_t)i;
	}
	for (uint32_t i = 0; i < picked.count; i++)
		for (uint32_t from = 0; from < POSITIONS; from += 2)
			for (uint32_t to = from + 1; to < picked.found[i] && listed < CANDIDATES; to++)
				room->candidates[listed++] = picked.positions[i][from] - picked.positions[i][to];
	qsort(room->candidates, listed, sizeof room->candidates[0], ascending);
	return listed;
}

/* How many of the last notes the period explains. In that part, as long as it can be, at most every
 * MOST_INNER-th is not the one a period before it. */
static size_t explained(const uint32_t *notes, size_t count, uint32_t period)
{
	size_t inner = period < TINY ? TINY_INNER : MOST_INNER, broken = 0, most = 0, allowed = (count - period) / inner;
	for (size_t i = count; i-- > period;) {
		if (notes[i] != notes[i - period] && ++broken > allowed)
			break;
		if (broken * inner <= count - i)
			most = count - i;
	}
	return most > 0 ? most + period : 0;
}

/* What has been regular for a short time only may be the inner part of something longer. */
static bool is_enough(size_t part, size_t count, uint32_t period)
{
	size_t repeats = part == count && period > SW_RHYTHM_NOTES / REPEATS ? LEAST_REPEATS : REPEATS;
	size_t least = part == count ? LEAST : period < TINY ? TINY_PART : LEAST_PART;
	return part >= least && part >= repeats * period;
}

/* The period that explains most; of those that explain about as much, the shortest. 0: none. */
static uint32_t find_period(struct sw_rhythm_room *room, const uint32_t *notes, size_t count)
{
	if (count < LEAST || count_notes(room, notes, count) == 0)
		return 0;
	uint32_t listed = list_candidates(room, notes, count), best = 0;
	size_t best_part = 0;
	for (uint32_t i = 0; i < listed; i++) {
		uint32_t period = room->candidates[i];
		if ((size_t)period * LEAST_REPEATS > count)
			break;
		if (i > 0 && period == room->candidates[i - 1])
			continue;
		size_t part = explained(notes, count, period);
		if (is_enough(part, count, period) && part > best_part + best_part / MOST_INNER) {
			best = period;
			best_part = part;
		}
	}
	return best;
}

/* ---- what is known of the period */

/* Where the last undisturbed period begins; `count`: there is none. */
static size_t find_whole(const uint32_t *notes, size_t count, uint32_t period)
{
	uint32_t run = 0;
	for (size_t i = count; i-- > period;) {
		run = notes[i] == notes[i - period] ? run + 1 : 0;
		if (run == period)
			return i;
	}
	return count;
}

/* Two loops, one after the other, both have the least common multiple of their periods: the last
 * one's own is what is repeated within that. */
static uint32_t shortest_within(const uint32_t *notes, uint32_t length)
{
	for (uint32_t period = 1; period <= length / 2; period++)
		if (length % period == 0 && memcmp(notes, notes + period, (length - period) * sizeof *notes) == 0)
			return period;
	return length;
}

static bool find_in(struct sw_rhythm_room *room, const uint32_t *notes, size_t count, struct sw_rhythm *ret_rhythm)
{
	uint32_t period = find_period(room, notes, count);
	size_t begin = period == 0 ? count : find_whole(notes, count, period);
	if (begin == count)
		return false;
	struct sw_rhythm rhythm = {.length = shortest_within(notes + begin, period)};
	count_notes(room, notes + begin, rhythm.length);
	for (size_t i = begin; i < begin + rhythm.length; i++) {
		uint32_t times = find_seen(room, notes[i])->count, launch = notes[i] & SW_NOTE_LAUNCH;
		rhythm.launches += launch != 0;
		/* Launches mark it, unless there are none. */
		if (rhythm.times == 0 || launch > (rhythm.marker & SW_NOTE_LAUNCH) ||
		    (launch == (rhythm.marker & SW_NOTE_LAUNCH) && times < rhythm.times)) {
			rhythm.marker = notes[i];
			rhythm.times = times;
		}
	}
	*ret_rhythm = rhythm;
	return true;
}

static bool find_under(struct sw_rhythm_room *room, const uint32_t *notes, size_t count, uint32_t mask, struct sw_rhythm *ret_rhythm)
{
	size_t launches = 0;
	for (size_t i = 0; i < count; i++) {
		room->notes[i] = notes[i] & mask;
		if ((notes[i] & SW_NOTE_LAUNCH) != 0)
			room->launches[launches++] = notes[i] & mask;
	}
	struct sw_rhythm alone = {0}, with_copies = {0};
	bool found = find_in(room, room->launches, launches, &alone);
	bool says_little = found ? alone.length == 1 && (alone.marker & SW_NOTE_GRAPH) == 0 : launches == 0;
	if (says_little && launches < count && find_in(room, room->notes, count, &with_copies) && with_copies.length > 1) {
		found = true;
		alone = with_copies;
	}
	/* One kernel over whatever the data are says nothing. */
	if (!found || (alone.length == 1 && mask != SW_NOTE_ALL && (alone.marker & SW_NOTE_GRAPH) == 0))
		return false;
	alone.mask = mask;
	*ret_rhythm = alone;
	return true;
}

bool sw_rhythm_find(struct sw_rhythm_room *room, const uint32_t *notes, size_t count, struct sw_rhythm *ret_rhythm)
{
	if (count > SW_RHYTHM_NOTES) {
		notes += count - SW_RHYTHM_NOTES;
		count = SW_RHYTHM_NOTES;
	}
	return find_under(room, notes, count, SW_NOTE_ALL, ret_rhythm) || find_under(room, notes, count, SW_NOTE_WITHOUT_GRID, ret_rhythm);
}

/* ---- time */

static int64_t towards(int64_t from, int64_t to, uint32_t weight)
{
	return from + (to - from) / (int64_t)weight;
}

void sw_rhythm_beat(struct sw_rhythm_clock *clock, int64_t now_ns, uint32_t periods)
{
	int64_t took = (now_ns - clock->last_ns) / (periods > 0 ? (int64_t)periods : 1);
	bool first = clock->last_ns == 0;
	clock->last_ns = now_ns;
	if (first)
		return;
	clock->beats += periods;
	if (clock->known > 0 && took > PAUSE * clock->mean_ns && clock->pauses < PAUSES) {
		clock->pauses++;
		return;
	}
	/* Not a pause, this is how long it takes now. */
	if (clock->pauses == PAUSES)
		clock->known = 0;
	clock->pauses = 0;
	clock->known += clock->known < SMOOTH;
	if (clock->known == 1) {
		clock->mean_ns = took;
		clock->jitter_ns = 0;
		return;
	}
	int64_t distance = took > clock->mean_ns ? took - clock->mean_ns : clock->mean_ns - took;
	clock->jitter_ns = towards(clock->jitter_ns, distance, clock->known - 1);
	clock->mean_ns = towards(clock->mean_ns, took, clock->known);
}
