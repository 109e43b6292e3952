/* The engines. Inside of a process the streams queue for its turn; between processes the turn goes
 * round in the shared file. */
#include "engine.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "shared.h"

/* After the end of a slice, how long its owner may take to say so. */
#define GRACE_NS 10000000ULL

/* A stream that waits for its turn inside of this process. */
struct waiter {
	struct waiter *next;
	int priority;
};

/* This process's side of a GPU's engine. */
static struct local {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct waiter *first;
	bool busy;
	bool owned; /* as far as this process knows */
} locals[EMU_GPUS_MAX];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void init_locals(void)
{
	for (unsigned i = 0; i < EMU_GPUS_MAX; i++) {
		pthread_mutex_init(&locals[i].lock, NULL);
		pthread_cond_init(&locals[i].changed, NULL);
	}
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void count_busy(struct emu_engine *engine, uint64_t start, uint64_t length)
{
	while (length > 0) {
		uint64_t number = start / EMU_BUCKET_NS;
		uint64_t part = (number + 1) * EMU_BUCKET_NS - start;
		if (part > length)
			part = length;
		unsigned i = (unsigned)(number % EMU_BUCKETS);
		if (engine->buckets[i].number != number) {
			engine->buckets[i].number = number;
			engine->buckets[i].busy_ns = 0;
		}
		engine->buckets[i].busy_ns += part;
		start += part;
		length -= part;
	}
}

/* A killed owner of the lock may have left anything half done here; none of it needs mending but
 * which process is next. */
static void lock_engine(struct emu_engine *engine)
{
	emu_lock_robust(&engine->lock);
}

static void sleep_for_turn(atomic_uint *word, unsigned seen, uint64_t ns)
{
	struct timespec time = {.tv_sec = (time_t)(ns / 1000000000ULL), .tv_nsec = (long)(ns % 1000000000ULL)};
	syscall(SYS_futex, word, FUTEX_WAIT, seen, &time, NULL, 0);
}

/* Below the lock: gives the turn to the next process that waits; false when there is none. */
static bool pass_turn(unsigned gpu, struct emu_engine *engine, uint32_t after)
{
	struct emu_state *state = emu_state();
	uint32_t high = state->slots_high <= EMU_SLOTS ? state->slots_high : EMU_SLOTS;
	for (uint32_t i = 1; i <= high; i++) {
		uint32_t at = (after + i) % high;
		struct emu_slot *next = &state->slots[at];
		if (at == after || next->pid == 0 || !next->waits[gpu])
			continue;
		engine->owner = at + 1;
		engine->lease_end = emu_now() + emu_config()->gpus[gpu].slice_ns;
		atomic_fetch_add(&next->go[gpu], 1);
		syscall(SYS_futex, &next->go[gpu], FUTEX_WAKE, 1, NULL, NULL, 0);
		return true;
	}
	return false;
}

/* Below the lock: the owner did not give up its turn in time. Dead or stopped, it is not offered
 * another until it asks again. */
static void take_turn_from(unsigned gpu, struct emu_engine *engine)
{
	emu_state()->slots[engine->owner - 1].waits[gpu] = 0;
	engine->owner = 0;
}

/* Returns with the lock held and the turn ours. */
static void acquire(unsigned gpu, struct emu_engine *engine)
{
	uint32_t mine = (uint32_t)emu_slot();
	struct emu_slot *slot = &emu_state()->slots[mine];
	lock_engine(engine);
	while (engine->owner != mine + 1) {
		uint64_t now = emu_now();
		if (engine->owner != 0 && now > engine->lease_end + GRACE_NS)
			take_turn_from(gpu, engine);
		if (engine->owner == 0) {
			engine->owner = mine + 1;
			break;
		}
		slot->waits[gpu] = 1;
		unsigned seen = atomic_load(&slot->go[gpu]);
		uint64_t wait = engine->lease_end + GRACE_NS - now + 1000;
		pthread_mutex_unlock(&engine->lock);
		sleep_for_turn(&slot->go[gpu], seen, wait);
		lock_engine(engine);
	}
	slot->waits[gpu] = 0;
	engine->lease_end = later(engine->free_ns, emu_now()) + emu_config()->gpus[gpu].slice_ns;
}

/* One piece of work inside of our turn; returns how much was done and when it ends. */
static uint64_t run_piece(unsigned gpu, struct emu_engine *engine, uint64_t ready, uint64_t left, uint64_t *ret_end)
{
	uint64_t now = emu_now();
	uint64_t start = later(later(ready, engine->free_ns), now > EMU_LAG_NS ? now - EMU_LAG_NS : 0);
	if (start >= engine->lease_end)
		engine->lease_end = start + emu_config()->gpus[gpu].slice_ns;
	uint64_t piece = engine->lease_end - start;
	if (piece > left)
		piece = left;
	engine->free_ns = start + piece;
	count_busy(engine, start, piece);
	engine->busy_total_ns += piece;
	emu_state()->slots[emu_slot()].busy_ns[gpu] += piece;
	*ret_end = start + piece;
	return piece;
}

/* Does all of the work; this process's turn inside is ours. */
static uint64_t work(unsigned gpu, struct local *local, uint64_t ready, uint64_t left)
{
	struct emu_engine *engine = &emu_state()->engines[gpu];
	uint32_t mine = (uint32_t)emu_slot();
	uint64_t end = ready;
	do {
		if (local->owned)
			lock_engine(engine);
		if (!local->owned || engine->owner != mine + 1) {
			if (local->owned)
				pthread_mutex_unlock(&engine->lock);
			acquire(gpu, engine);
		}
		local->owned = true;
		if (later(engine->free_ns, emu_now()) >= engine->lease_end && pass_turn(gpu, engine, mine)) {
			local->owned = false;
			pthread_mutex_unlock(&engine->lock);
			continue;
		}
		left -= run_piece(gpu, engine, ready, left, &end);
		pthread_mutex_unlock(&engine->lock);
		emu_sleep_until(end);
	} while (left > 0);
	return end;
}

static void give_up(unsigned gpu, struct local *local)
{
	struct emu_engine *engine = &emu_state()->engines[gpu];
	uint32_t mine = (uint32_t)emu_slot();
	lock_engine(engine);
	if (engine->owner == mine + 1 && !pass_turn(gpu, engine, mine))
		engine->owner = 0;
	pthread_mutex_unlock(&engine->lock);
	local->owned = false;
}

uint64_t emu_engine_run(unsigned gpu, int priority, uint64_t ready_ns, uint64_t work_ns, bool more)
{
	pthread_once(&once, init_locals);
	gpu = emu_place(gpu);
	struct local *local = &locals[gpu];
	struct waiter me = {.priority = priority};
	pthread_mutex_lock(&local->lock);
	struct waiter **link = &local->first;
	while (*link != NULL && (*link)->priority <= priority)
		link = &(*link)->next;
	me.next = *link;
	*link = &me;
	while (local->busy || local->first != &me)
		pthread_cond_wait(&local->changed, &local->lock);
	local->first = me.next;
	local->busy = true;
	pthread_mutex_unlock(&local->lock);

	uint64_t end = work(gpu, local, ready_ns, work_ns);

	pthread_mutex_lock(&local->lock);
	if (!more && local->first == NULL)
		give_up(gpu, local);
	local->busy = false;
	pthread_cond_broadcast(&local->changed);
	pthread_mutex_unlock(&local->lock);
	return end;
}

uint64_t emu_engine_copy(unsigned gpu, unsigned engine, uint64_t ready_ns, uint64_t bytes, uint64_t latency_ns)
{
	gpu = emu_place(gpu);
	const struct emu_gpu_config *config = &emu_config()->gpus[gpu];
	uint64_t rate = engine == EMU_H2D ? config->h2d_bps : engine == EMU_D2H ? config->d2h_bps : config->d2d_bps;
	uint64_t length = latency_ns + (uint64_t)((double)bytes * 1e9 / (double)rate);
	_Atomic uint64_t *free_ns = &emu_state()->engines[gpu].copy_free_ns[engine];
	uint64_t now = emu_now();
	uint64_t before = atomic_load(free_ns), start = 0;
	do
		start = later(later(ready_ns, before), now > EMU_LAG_NS ? now - EMU_LAG_NS : 0);
	while (!atomic_compare_exchange_weak(free_ns, &before, start + length));
	return start + length;
}

uint64_t emu_engine_busy_total_ns(unsigned gpu)
{
	struct emu_engine *engine = &emu_state()->engines[gpu];
	lock_engine(engine);
	uint64_t total = engine->busy_total_ns;
	pthread_mutex_unlock(&engine->lock);
	return total;
}

unsigned emu_engine_busy_milli(unsigned gpu)
{
	struct emu_state *state = emu_state();
	if (state == NULL)
		return 0;
	struct emu_engine *engine = &state->engines[gpu];
	uint64_t last = emu_now() / EMU_BUCKET_NS, sum = 0, span = 1000000000ULL / EMU_BUCKET_NS;
	lock_engine(engine);
	/* Whole buckets only: the present one has just begun. */
	for (unsigned i = 0; i < EMU_BUCKETS; i++)
		if (engine->buckets[i].number < last && engine->buckets[i].number + span >= last)
			sum += engine->buckets[i].busy_ns;
	pthread_mutex_unlock(&engine->lock);
	unsigned milli = (unsigned)(sum / 1000000ULL);
	return milli < 1000 ? milli : 1000;
}
