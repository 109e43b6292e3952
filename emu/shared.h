/* What the processes on the emulated GPUs share: one mapped file that says which process uses how
 * much memory, and which one's turn it is.
 *
 * 1. Locks are robust mutexes: the kernel marks one whose owner was killed, and the next
 *    owner mends what it guards.
 * 2. A process is its pid and its start time; a process that needs room, a place or the figures
 *    removes the dead first. Nothing waits for a dead one.
 * 3. `used` of a GPU is the sum of what its processes use.
 * 4. A process can be stopped anywhere, and one that is stopped below a lock holds up all others.
 *    So the system is asked about processes before the lock of the slots is taken, and figures are
 *    read without it. No process sleeps in its queue: a sleeper that is stopped would get the call
 *    that was for the next one.
 */
#ifndef EMU_SHARED_H
#define EMU_SHARED_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "config.h"

enum { EMU_SLOTS = 2048, EMU_BUCKETS = 64, EMU_COPY_ENGINES = 3 };
enum { EMU_H2D, EMU_D2H, EMU_D2D };
#define EMU_BUCKET_NS 50000000ULL

struct emu_slot {
	_Atomic int32_t pid; /* 0: free; written last */
	_Atomic uint64_t started;
	/* Of checkpoint.c: CU_PROCESS_..., and how others ask it for another state. */
	atomic_int process_state, thread;
	atomic_uint wish, answer, answers;
	uint8_t moves[EMU_GPUS_MAX]; /* with a wish to restore: the GPU that takes the place of each */
	_Atomic uint64_t used[EMU_GPUS_MAX];
	/* Below the lock of each GPU's engine. */
	uint64_t busy_ns[EMU_GPUS_MAX];
	uint32_t waits[EMU_GPUS_MAX];
	atomic_uint go[EMU_GPUS_MAX]; /* counts the turns given; the process sleeps on it */
};

struct emu_engine {
	pthread_mutex_t lock;
	uint32_t owner;	    /* slot + 1; 0: none */
	uint64_t lease_end; /* of the owner */
	uint64_t free_ns;   /* all modelled work so far ends here */
	struct {
		uint64_t number, busy_ns;
	} buckets[EMU_BUCKETS];
	uint64_t busy_total_ns;
	_Atomic uint64_t copy_free_ns[EMU_COPY_ENGINES];
	atomic_bool lost;
};

struct emu_state {
	uint64_t layout;
	pthread_mutex_t lock;	     /* for writers of the slots and of the memory */
	_Atomic uint32_t slots_high; /* all beyond are free */
	_Atomic uint64_t used[EMU_GPUS_MAX];
	struct emu_engine engines[EMU_GPUS_MAX];
	struct emu_slot slots[EMU_SLOTS];
};

/* The state, mapped at the first call; NULL when it cannot be. */
struct emu_state *emu_state(void);

/* Takes a place for this process; -1 when there is none. Once. */
int emu_slot_take(void);

/* The place, or -1. */
int emu_slot(void);

/* Which GPU stands behind a number that this process uses: its own, until the process
 * was restored onto another one. Whatever takes numbers of GPUs here and in engine.h
 * takes those of the process. */
unsigned emu_place(unsigned gpu);
void emu_move(const uint8_t moves[EMU_GPUS_MAX]);

/* Counts memory against a GPU: false when that much is not free. */
bool emu_memory_take(unsigned gpu, uint64_t bytes);
void emu_memory_give(unsigned gpu, uint64_t bytes);
/* By this process; by all. */
uint64_t emu_memory_held(unsigned gpu);
uint64_t emu_memory_used(unsigned gpu);

/* The live processes on a GPU, at most `size`; returns how many there are. */
struct emu_process {
	int32_t pid;
	uint64_t bytes, busy_ns;
};
unsigned emu_processes(unsigned gpu, struct emu_process *processes, unsigned size);

bool emu_slot_alive(const struct emu_slot *slot);

/* Locks a robust mutex; true when its last owner died with it. */
bool emu_lock_robust(pthread_mutex_t *mutex);

#endif
