/* The shared file, the places in it, and the count of memory. */
#include "shared.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Part of the layout's number, to be raised when a field changes its meaning. */
#define LAYOUT (0x5357454d55000001ULL + ((uint64_t)sizeof(struct emu_state) << 8))

/* With more processes than this, the dead are looked for now and then only, unless room is
 * short. */
enum { MANY = 64 };
#define LOOK_AGAIN_NS 20000000

static struct emu_state *state;
static int slot = -1;
static _Atomic uint8_t moved[EMU_GPUS_MAX]; /* 1 + the place; 0: never */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

/* The start time of a process in clock ticks since boot; 0 when it is gone or a zombie. */
static uint64_t start_of(int32_t pid)
{
	char path[64], text[1024];
	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	int file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return 0;
	ssize_t length = read(file, text, sizeof text - 1);
	close(file);
	if (length <= 0)
		return 0;
	text[length] = '\0';
	/* The name is in brackets and may hold anything; the state and then 18 numbers before the
	 * start follow the last one. */
	char *at = strrchr(text, ')');
	if (at == NULL || at[1] != ' ' || at[2] == 'Z' || at[2] == 'X')
		return 0;
	at += 2;
	for (int i = 0; i < 19 && at != NULL; i++) {
		at = strchr(at, ' ');
		if (at != NULL)
			at++;
	}
	return at != NULL ? strtoull(at, NULL, 10) : 0;
}

bool emu_slot_alive(const struct emu_slot *process)
{
	return process->pid != 0 && start_of(process->pid) == process->started;
}

bool emu_lock_robust(pthread_mutex_t *mutex)
{
	int r;
	for (unsigned tries = 0; (r = pthread_mutex_trylock(mutex)) == EBUSY; tries++) {
		if (tries < 100)
			sched_yield();
		else
			nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
	}
	if (r == EOWNERDEAD) {
		pthread_mutex_consistent(mutex);
		return true;
	}
	assert(r == 0);
	return false;
}

static void init_mutex(pthread_mutex_t *mutex)
{
	pthread_mutexattr_t attributes;
	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(mutex, &attributes);
	pthread_mutexattr_destroy(&attributes);
}

static struct emu_state *map(int file)
{
	void *address = mmap(NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	return address != MAP_FAILED ? address : NULL;
}

/* A new file is made whole under another name and then linked to its own, so that no
 * process sees half of it. */
static void create(const char *path)
{
	char temporary[600];
	snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
	int file = mkostemp(temporary, O_CLOEXEC);
	if (file < 0)
		return;
	struct emu_state *fresh = ftruncate(file, sizeof *fresh) == 0 ? map(file) : NULL;
	if (fresh != NULL) {
		fresh->layout = LAYOUT;
		init_mutex(&fresh->lock);
		for (unsigned i = 0; i < EMU_GPUS_MAX; i++)
			init_mutex(&fresh->engines[i].lock);
		munmap(fresh, sizeof *fresh);
		if (link(temporary, path) != 0) {
			/* Another process was faster, or the next open says what is wrong. */
		}
	}
	unlink(temporary);
	close(file);
}

static void open_state(void)
{
	char path[560];
	snprintf(path, sizeof path, "%s.%llx", emu_config()->state_path, (unsigned long long)LAYOUT);
	for (int tries = 0; tries < 2 && state == NULL; tries++) {
		int file = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
		if (file < 0) {
			create(path);
			continue;
		}
		struct stat about;
		if (fstat(file, &about) == 0 && about.st_size == (off_t)sizeof *state)
			state = map(file);
		close(file);
	}
	if (state != NULL && state->layout != LAYOUT)
		state = NULL;
	/* Programs only hear that there is no GPU. */
	if (state == NULL)
		fprintf(stderr, "emulated GPU driver: cannot use '%s'; SHAREWELL_EMU_STATE names another file\n", path);
}

struct emu_state *emu_state(void)
{
	pthread_once(&once, open_state);
	return state;
}

/* Below the lock: the figures anew from the places. */
static void add_up(void)
{
	uint64_t used[EMU_GPUS_MAX] = {0};
	uint32_t high = 0;
	for (uint32_t i = 0; i < state->slots_high; i++) {
		const struct emu_slot *process = &state->slots[i];
		if (process->pid == 0)
			continue;
		high = i + 1;
		for (unsigned gpu = 0; gpu < EMU_GPUS_MAX; gpu++)
			used[gpu] += process->used[gpu];
	}
	state->slots_high = high;
	for (unsigned gpu = 0; gpu < EMU_GPUS_MAX; gpu++)
		state->used[gpu] = used[gpu];
}

static void lock_state(void)
{
	if (emu_lock_robust(&state->lock))
		add_up();
}

static void unlock_state(void)
{
	pthread_mutex_unlock(&state->lock);
}

/* Without the lock: gives back what the dead had. */
static void reap(void)
{
	for (uint32_t i = 0; i < state->slots_high; i++) {
		struct emu_slot *process = &state->slots[i];
		int32_t pid = process->pid;
		uint64_t started = process->started;
		if (pid == 0 || start_of(pid) == started)
			continue;
		lock_state();
		/* Another process may have its place by now. */
		if (process->pid == pid && process->started == started) {
			process->pid = 0;
			add_up();
		}
		unlock_state();
	}
}

static void reap_sometimes(void)
{
	static _Atomic uint64_t last_ns;
	uint64_t now = now_ns();
	if (state->slots_high > MANY && now - last_ns < LOOK_AGAIN_NS)
		return;
	reap();
	last_ns = now;
}

static int32_t free_slot(void)
{
	for (uint32_t i = 0; i < state->slots_high; i++)
		if (state->slots[i].pid == 0)
			return (int32_t)i;
	return state->slots_high < EMU_SLOTS ? (int32_t)state->slots_high : -1;
}

/* Below the lock: a free one becomes ours. */
static void move_in(int32_t found, uint64_t started)
{
	struct emu_slot *mine = &state->slots[found];
	mine->started = started;
	atomic_store(&mine->process_state, 0);
	atomic_store(&mine->thread, 0);
	atomic_store(&mine->wish, 0);
	for (unsigned gpu = 0; gpu < EMU_GPUS_MAX; gpu++)
		mine->used[gpu] = 0;
	memset(mine->busy_ns, 0, sizeof mine->busy_ns);
	memset(mine->waits, 0, sizeof mine->waits);
	mine->pid = getpid();
	if ((uint32_t)found >= state->slots_high)
		state->slots_high = (uint32_t)found + 1;
	slot = found;
}

int emu_slot_take(void)
{
	if (emu_state() == NULL)
		return -1;
	uint64_t started = start_of(getpid());
	int mine = -1;
	for (int tries = 0; tries < 2 && mine < 0; tries++) {
		if (tries > 0)
			reap();
		lock_state();
		int32_t found = slot < 0 ? free_slot() : -1;
		if (found >= 0)
			move_in(found, started);
		mine = slot;
		unlock_state();
	}
	return mine;
}

int emu_slot(void)
{
	return slot;
}

unsigned emu_place(unsigned gpu)
{
	uint8_t place = atomic_load_explicit(&moved[gpu], memory_order_relaxed);
	return place > 0 ? place - 1u : gpu;
}

void emu_move(const uint8_t moves[EMU_GPUS_MAX])
{
	for (unsigned gpu = 0; gpu < EMU_GPUS_MAX; gpu++)
		atomic_store(&moved[gpu], (uint8_t)(moves[emu_place(gpu)] + 1));
}

static bool take(unsigned gpu, uint64_t bytes, uint64_t total)
{
	lock_state();
	bool fits = bytes <= total && state->used[gpu] <= total - bytes;
	if (fits) {
		state->slots[slot].used[gpu] += bytes;
		state->used[gpu] += bytes;
	}
	unlock_state();
	return fits;
}

bool emu_memory_take(unsigned gpu, uint64_t bytes)
{
	gpu = emu_place(gpu);
	uint64_t total = emu_config()->gpus[gpu].memory_bytes;
	if (take(gpu, bytes, total))
		return true;
	reap();
	return take(gpu, bytes, total);
}

void emu_memory_give(unsigned gpu, uint64_t bytes)
{
	gpu = emu_place(gpu);
	lock_state();
	assert(state->slots[slot].used[gpu] >= bytes && state->used[gpu] >= bytes);
	state->slots[slot].used[gpu] -= bytes;
	state->used[gpu] -= bytes;
	unlock_state();
}

uint64_t emu_memory_held(unsigned gpu)
{
	return state->slots[slot].used[emu_place(gpu)];
}

uint64_t emu_memory_used(unsigned gpu)
{
	if (emu_state() == NULL)
		return 0;
	reap_sometimes();
	return state->used[emu_place(gpu)];
}

unsigned emu_processes(unsigned gpu, struct emu_process *processes, unsigned size)
{
	unsigned count = 0;
	if (emu_state() == NULL)
		return 0;
	reap_sometimes();
	for (uint32_t i = 0; i < state->slots_high; i++) {
		const struct emu_slot *process = &state->slots[i];
		int32_t pid = process->pid;
		uint64_t bytes = process->used[gpu];
		if (pid == 0 || bytes == 0)
			continue;
		/* A process that has loaded the driver twice is one. */
		unsigned at = 0;
		while (at < count && at < size && processes[at].pid != pid)
			at++;
		if (at < count && at < size) {
			processes[at].bytes += bytes;
			processes[at].busy_ns += process->busy_ns[gpu];
			continue;
		}
		if (count < size)
			processes[count] = (struct emu_process){pid, bytes, process->busy_ns[gpu]};
		count++;
	}
	return count;
}
