#include "runtime/iterations.h"

#include <string.h>
#include <sys/mman.h>

#include "runtime/tools.h"

#define LOOK_NS INT64_C(50000000) /* between looks for a rhythm that is not known, twice as long after each, up to */
#define LOOK_MOST_NS INT64_C(3200000000)
#define CHECK_NS INT64_C(1000000000) /* between looks at one that is known, */
#define DOUBT_NS INT64_C(200000000)  /* and where it did not look like it the last time */
#define CLOCK_NS INT64_C(2000000)    /* how often a thread looks at the clock: shorter iterations are measured several at a time */
#define GONE_NS INT64_C(2000000000)  /* how much longer than its iterations a thread is silent until others are asked */
#define AWAIT_NS INT64_C(250000000)  /* the longest that a wish waits for a good moment */
#define GLANCE_NS INT64_C(10000000)
enum { NEARLY = 16 }; /* this part more than the least is as good */
enum { TRACKS = 16, GROUP_MOST = 1024, GROUP_NOTES = 64, MISSES = 3, ENOUGH = 24, DIFFER = 16, AHEAD = 64 };

struct sw_track_figures {
	/* Of its thread. */
	struct sw_rhythm_clock clock;
	uint32_t begun;	  /* the number of the rhythm that the clock is of */
	uint32_t periods; /* in the beat that goes on */
	uint64_t launches_then, launches_last;
	uint32_t differed; /* how often in a row the launches were not those of the beat before */
	/* From the attendant to the thread. */
	_Atomic uint32_t number; /* counts its rhythms */
	_Atomic uint32_t times, group;
	/* From the thread to the attendant. */
	_Atomic uint32_t of; /* the number that these are of */
	_Atomic uint64_t beats, launches;
	_Atomic int64_t last_ns, mean_ns, jitter_ns;
	/* Of the attendant. */
	struct sw_rhythm rhythm, doubt;
	bool known;
	uint32_t misses, looked_at;
	uint64_t beats_then;
	int64_t next_look_ns, pause_ns;
};

static _Atomic(struct sw_track *) tracks[TRACKS];
static _Atomic uint32_t track_count;
static _Atomic(struct sw_track *) leader; /* whose iterations are those of the process */

/* Since the leader's last beat. */
static _Atomic uint64_t floor_bytes, peak_bytes;
static _Atomic bool bytes_are_whole; /* there was a beat, so that they are of one iteration */

/* The coordinator waits until the process holds no more than this. */
static _Atomic uint64_t awaited_bytes;
static _Atomic uint32_t arrivals; /* a futex: counts how often that was so */

/* ---- of the threads */

void sw_track_open(struct sw_gate_thread *self)
{
	uint32_t number = atomic_load(&track_count);
	/* The slot that threads share when memory is gone has no ring either. */
	if (atomic_load(&self->taken) == 0)
		return;
	do {
		if (number >= TRACKS)
			return;
	} while (!atomic_compare_exchange_weak(&track_count, &number, number + 1));
	size_t bytes = sizeof(struct sw_track) + sizeof(struct sw_track_figures);
	struct sw_track *track = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (track == MAP_FAILED)
		return;
	track->figures = (struct sw_track_figures *)(track + 1);
	atomic_store(&track->mask, SW_NOTE_ALL);
	self->track = track;
	atomic_store(&tracks[number], track);
}

static uint64_t held_bytes(void)
{
	uint64_t sum = 0;
	for (unsigned i = 0; i < SW_PAGE_GPUS; i++)
		sum += atomic_load_explicit(&sw_slot->gpus[i].charged_bytes, memory_order_relaxed) +
		       atomic_load_explicit(&sw_slot->gpus[i].host_bytes, memory_order_relaxed);
	return sum;
}

void sw_iterations_memory(void)
{
	if (sw_page == NULL || sw_slot == NULL)
		return;
	sw_account_raise_peaks();
	uint64_t now = held_bytes(), least = atomic_load(&floor_bytes), most = atomic_load(&peak_bytes);
	while (now < least && !atomic_compare_exchange_weak(&floor_bytes, &least, now))
		;
	while (now > most && !atomic_compare_exchange_weak(&peak_bytes, &most, now))
		;
	if (__builtin_expect(now <= atomic_load(&awaited_bytes), 0)) {
		atomic_fetch_add(&arrivals, 1);
		sw_futex_wake(&arrivals);
	}
}

static void tell_memory(void)
{
	uint64_t now = held_bytes(), least = atomic_exchange(&floor_bytes, now), most = atomic_exchange(&peak_bytes, now);
	if (!atomic_exchange(&bytes_are_whole, true))
		return;
	atomic_store(&sw_slot->iteration_floor_bytes, least);
	atomic_store(&sw_slot->iteration_peak_bytes, most);
}

/* How many launches of all threads an iteration has. One that has a few more, after an epoch,
 * is not how many it has. */
static void count_launches(struct sw_track_figures *figures, uint32_t periods)
{
	uint64_t launches, copies, waits;
	sw_gate_figures(&launches, &copies, &waits);
	uint64_t now = (launches - figures->launches_then + periods / 2) / periods;
	figures->launches_then = launches;
	if (figures->clock.known == 0 || figures->clock.pauses > 0)
		return;
	figures->differed = now == figures->launches_last ? 0 : figures->differed + 1;
	figures->launches_last = now;
	if (figures->differed % DIFFER == 0)
		atomic_store(&figures->launches, now);
}

static void tell_beat(struct sw_track_figures *figures)
{
	const struct sw_rhythm_clock *clock = &figures->clock;
	atomic_store(&figures->beats, clock->beats);
	atomic_store(&figures->last_ns, clock->last_ns);
	atomic_store(&figures->mean_ns, clock->mean_ns);
	atomic_store(&figures->jitter_ns, clock->jitter_ns);
	atomic_store(&figures->of, figures->begun);
}

void sw_track_hit(struct sw_track *track)
{
	struct sw_track_figures *figures = track->figures;
	uint32_t number = atomic_load(&figures->number);
	if (sw_page == NULL || sw_slot == NULL)
		return;
	if (figures->begun != number) {
		figures->begun = number;
		figures->clock = (struct sw_rhythm_clock){0};
		figures->periods = 1;
		track->until = 1;
	}
	if (--track->until > 0)
		return;
	uint32_t periods = figures->periods;
	sw_rhythm_beat(&figures->clock, sw_monotonic_ns(), periods);
	figures->periods = atomic_load(&figures->group);
	track->until = figures->periods * atomic_load(&figures->times);
	count_launches(figures, periods);
	tell_beat(figures);
	if (atomic_load(&leader) == track)
		tell_memory();
}

/* ---- of the attendant */

static struct {
	struct sw_rhythm_room room;
	uint32_t notes[SW_RHYTHM_NOTES];
} * desk;

/* The notes of a track that are whole, oldest first. The thread goes on writing meanwhile. */
static size_t copy_notes(struct sw_track *track, uint32_t *ret_noted)
{
	uint32_t noted = atomic_load_explicit(&track->noted, memory_order_acquire),
		 count = noted < SW_RHYTHM_NOTES ? noted : SW_RHYTHM_NOTES;
	for (uint32_t i = 0; i < count; i++)
		desk->notes[i] = atomic_load_explicit(&track->ring[(noted - count + i) % SW_RHYTHM_NOTES], memory_order_relaxed);
	atomic_thread_fence(memory_order_acquire);
	/* One more than it says may be under way. */
	uint32_t since = atomic_load_explicit(&track->noted, memory_order_relaxed) + 1 - noted;
	uint32_t room = SW_RHYTHM_NOTES - count, lost = since > room ? since - room : 0;
	*ret_noted = noted;
	if (lost >= count)
		return 0;
	memmove(desk->notes, desk->notes + lost, (count - lost) * sizeof desk->notes[0]);
	return count - lost;
}

static uint32_t group_of(const struct sw_track_figures *figures)
{
	int64_t mean = atomic_load(&figures->of) == atomic_load(&figures->number) ? atomic_load(&figures->mean_ns) : 0;
	int64_t group = mean > 0 ? CLOCK_NS / mean : GROUP_NOTES / (int64_t)figures->rhythm.length;
	return group < 1 ? 1 : group < GROUP_MOST ? (uint32_t)group : GROUP_MOST;
}

static void set_rhythm(struct sw_track *track, const struct sw_rhythm *rhythm)
{
	struct sw_track_figures *figures = track->figures;
	figures->known = rhythm != NULL;
	figures->rhythm = rhythm != NULL ? *rhythm : (struct sw_rhythm){0};
	figures->misses = 0;
	figures->beats_then = 0;
	/* No marker while the rest changes; a thread that saw the old one
	 * starts its clock once more. */
	atomic_store(&track->marker, 0);
	atomic_fetch_add(&figures->number, 1);
	if (rhythm == NULL)
		return;
	atomic_store(&figures->times, rhythm->times);
	atomic_store(&figures->group, group_of(figures));
	atomic_store(&track->mask, rhythm->mask);
	atomic_store(&track->marker, rhythm->marker);
}

/* Whether it is what is known already. The marker may be another: the one that is in use
 * serves, as long as it comes. */
static bool is_same(const struct sw_rhythm *a, const struct sw_rhythm *b)
{
	return a->length == b->length && a->launches == b->launches && a->mask == b->mask;
}

static void consider(struct sw_track *track, bool found, const struct sw_rhythm *rhythm, uint32_t fresh)
{
	struct sw_track_figures *figures = track->figures;
	uint64_t beats = atomic_load(&figures->beats);
	bool silent = figures->known && beats == figures->beats_then && fresh > 4 * figures->rhythm.length * atomic_load(&figures->group);
	if (figures->known && found && !silent && is_same(&figures->rhythm, rhythm)) {
		figures->misses = 0;
		atomic_store(&figures->group, group_of(figures));
	} else if (!figures->known ? found : found && figures->misses > 0 && is_same(&figures->doubt, rhythm)) {
		set_rhythm(track, rhythm);
	} else if (figures->known && ++figures->misses >= MISSES && !found) {
		set_rhythm(track, NULL);
	}
	figures->doubt = found ? *rhythm : (struct sw_rhythm){0};
	figures->beats_then = atomic_load(&figures->beats);
}

static void look_at(struct sw_track *track, int64_t now)
{
	struct sw_track_figures *figures = track->figures;
	uint32_t fresh = atomic_load(&track->noted) - figures->looked_at, noted;
	if (fresh < ENOUGH || now < figures->next_look_ns)
		return;
	struct sw_rhythm rhythm = {0};
	size_t count = copy_notes(track, &noted);
	bool found = sw_rhythm_find(&desk->room, desk->notes, count, &rhythm);
	figures->looked_at = noted;
	consider(track, found, &rhythm, fresh);
	if (figures->known)
		figures->pause_ns = figures->misses > 0 ? DOUBT_NS : CHECK_NS;
	else
		figures->pause_ns = figures->pause_ns < LOOK_NS || figures->pause_ns == CHECK_NS ? LOOK_NS : figures->pause_ns * 2;
	figures->pause_ns = figures->pause_ns < LOOK_MOST_NS ? figures->pause_ns : LOOK_MOST_NS;
	figures->next_look_ns = now + figures->pause_ns;
}

/* Whether it has measured an iteration of the rhythm that is known. */
static bool has_measured(const struct sw_track_figures *figures)
{
	return figures->known && atomic_load(&figures->of) == atomic_load(&figures->number) && atomic_load(&figures->mean_ns) > 0;
}

static struct sw_track *find_leader(void)
{
	struct sw_track *best = NULL;
	int64_t newest = 0;
	for (unsigned i = 0; i < TRACKS; i++) {
		struct sw_track *track = atomic_load(&tracks[i]);
		int64_t last = track != NULL && has_measured(track->figures) ? atomic_load(&track->figures->last_ns) : 0;
		newest = last > newest ? last : newest;
	}
	for (unsigned i = 0; i < TRACKS; i++) {
		struct sw_track *track = atomic_load(&tracks[i]);
		if (track == NULL || !has_measured(track->figures))
			continue;
		int64_t mean = atomic_load(&track->figures->mean_ns), last = atomic_load(&track->figures->last_ns);
		if (newest - last <= 8 * mean + GONE_NS && (best == NULL || mean > atomic_load(&best->figures->mean_ns)))
			best = track;
	}
	return best;
}

static void tell(const struct sw_track *track)
{
	static const struct sw_track *told;
	static uint32_t told_number;
	static uint64_t told_beats;
	if (track == NULL) {
		if (told == NULL)
			return;
		told = NULL;
		_Atomic uint64_t *const figures[] = {&sw_slot->iterations, &sw_slot->iteration_launches, &sw_slot->iteration_peak_bytes,
						     &sw_slot->iteration_floor_bytes};
		for (unsigned i = 0; i < 4; i++)
			atomic_store(figures[i], 0);
		atomic_store(&sw_slot->iteration_ns, 0);
		atomic_store(&sw_slot->iteration_jitter_ns, 0);
		return;
	}
	const struct sw_track_figures *figures = track->figures;
	uint64_t beats = atomic_load(&figures->beats);
	uint32_t number = atomic_load(&figures->of);
	bool goes_on = told == track && told_number == number && beats >= told_beats;
	atomic_fetch_add(&sw_slot->iterations, goes_on ? beats - told_beats : told == NULL ? beats : 0);
	told = track;
	told_number = number;
	told_beats = beats;
	atomic_store(&sw_slot->iteration_ns, atomic_load(&figures->mean_ns));
	atomic_store(&sw_slot->iteration_jitter_ns, atomic_load(&figures->jitter_ns));
	atomic_store(&sw_slot->iteration_launches, atomic_load(&figures->launches));
}

void sw_iterations_await_floor(void)
{
	int64_t patience = atomic_load(&sw_slot->iteration_ns) * 5 / 4,
		until = sw_monotonic_ns() + (patience < AWAIT_NS ? patience : AWAIT_NS);
	uint64_t least = atomic_load(&sw_slot->iteration_floor_bytes), wanted = least + least / NEARLY;
	uint32_t serial = atomic_load(&sw_page->serial), seen = atomic_load(&arrivals);
	if (patience <= 0 || least == 0)
		return;
	atomic_store(&awaited_bytes, wanted);
	while (held_bytes() > wanted && atomic_load(&sw_page->urgent) == 0 && atomic_load(&sw_page->serial) == serial &&
	       atomic_load(&arrivals) == seen) {
		int64_t left = until - sw_monotonic_ns();
		if (left <= 0)
			break;
		/* A new wish wakes no thread here. */
		sw_futex_wait(&arrivals, seen, left < GLANCE_NS ? left : GLANCE_NS);
	}
	atomic_store(&awaited_bytes, 0);
}

void sw_iterations_look(void)
{
	int64_t now = sw_monotonic_ns();
	if (desk == NULL) {
		void *made = mmap(NULL, sizeof *desk, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (made == MAP_FAILED)
			return;
		desk = made;
	}
	for (unsigned i = 0; i < TRACKS; i++) {
		struct sw_track *track = atomic_load(&tracks[i]);
		if (track != NULL)
			look_at(track, now);
	}
	struct sw_track *found = find_leader();
	if (found != atomic_exchange(&leader, found))
		atomic_store(&bytes_are_whole, false);
	tell(found);
}
