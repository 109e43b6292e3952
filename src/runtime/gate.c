#include "runtime/gate.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/tools.h"

__thread struct sw_gate_thread *sw_gate_self __attribute__((tls_model("initial-exec")));
_Atomic uint32_t sw_gate_closed;

static _Atomic(struct sw_gate_thread *) threads;
static _Atomic uint32_t departures; /* a futex: counts threads that left a closed gate */
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
/* Where the kernel has no membarrier() or memory is gone: all threads that share it pass one by one
 * in the eyes of the closer. */
static struct sw_gate_thread spare;

static void give_back(void *slot)
{
	struct sw_gate_thread *thread = slot;
	sw_gate_self = NULL;
	atomic_store_explicit(&thread->taken, 0, memory_order_release);
}

static void prepare(void)
{
	pthread_key_create(&key, give_back);
	syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
}

static struct sw_gate_thread *take_slot(void)
{
	for (struct sw_gate_thread *thread = atomic_load(&threads); thread != NULL; thread = thread->next) {
		uint32_t no = 0;
		if (atomic_compare_exchange_strong(&thread->taken, &no, 1))
			return thread;
	}
	/* Not malloc(): the program may have replaced it, and this may be called from within. */
	struct sw_gate_thread *made = mmap(NULL, sizeof *made, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (made == MAP_FAILED)
		return &spare;
	atomic_store(&made->taken, 1);
	made->next = atomic_load(&threads);
	while (!atomic_compare_exchange_weak(&threads, &made->next, made))
		;
	return made;
}

struct sw_gate_thread *sw_gate_register(void)
{
	pthread_once(&once, prepare);
	struct sw_gate_thread *self = take_slot();
	sw_gate_self = self;
	pthread_setspecific(key, self);
	return self;
}

void sw_gate_wait(struct sw_gate_thread *self)
{
	sw_gate_count(&self->waits);
	for (;;) {
		atomic_store(&self->inside, 0);
		sw_gate_left();
		uint32_t closed;
		while ((closed = atomic_load(&sw_gate_closed)) != 0)
			sw_futex_wait(&sw_gate_closed, closed, -1);
		atomic_store(&self->inside, 1);
		if (atomic_load(&sw_gate_closed) == 0)
			return;
	}
}

void sw_gate_left(void)
{
	atomic_fetch_add(&departures, 1);
	sw_futex_wake(&departures);
}

static bool somebody_inside(void)
{
	for (struct sw_gate_thread *thread = atomic_load(&threads); thread != NULL; thread = thread->next)
		if (atomic_load(&thread->inside) != 0)
			return true;
	return atomic_load(&spare.inside) != 0;
}

bool sw_gate_close(int64_t timeout_ns)
{
	int64_t until = sw_monotonic_ns() + timeout_ns;
	pthread_once(&once, prepare);
	atomic_store(&sw_gate_closed, 1);
	syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
	for (;;) {
		uint32_t seen = atomic_load(&departures);
		if (!somebody_inside())
			return true;
		int64_t left = until - sw_monotonic_ns();
		if (left <= 0)
			break;
		sw_futex_wait(&departures, seen, left);
	}
	sw_gate_open();
	return false;
}

void sw_gate_open(void)
{
	atomic_store(&sw_gate_closed, 0);
	sw_futex_wake(&sw_gate_closed);
}

void sw_gate_figures(uint64_t *ret_launches, uint64_t *ret_copies, uint64_t *ret_waits)
{
	*ret_launches = *ret_copies = *ret_waits = 0;
	for (struct sw_gate_thread *thread = atomic_load(&threads); thread != NULL; thread = thread->next) {
		*ret_launches += atomic_load_explicit(&thread->launches, memory_order_relaxed);
		*ret_copies += atomic_load_explicit(&thread->copies, memory_order_relaxed);
		*ret_waits += atomic_load_explicit(&thread->waits, memory_order_relaxed);
	}
}

void sw_gate_forget(void)
{
	for (struct sw_gate_thread *thread = atomic_load(&threads); thread != NULL; thread = thread->next)
		if (thread != sw_gate_self) {
			atomic_store(&thread->inside, 0);
			thread->depth = 0;
			atomic_store(&thread->taken, 0);
		}
	atomic_store(&sw_gate_closed, 0);
}
