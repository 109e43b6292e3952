/* The gate: every call that gives the GPU work, or touches memory that may move, is inside while it
 * runs. Closing the gate waits until none is.
 *
 * Passing costs a store, a load and a branch; no lock, no system call, no shared cache line that is
 * written. The closing thread pays for it with membarrier(2).
 *
 * Invariants:
 *  1. once sw_gate_close() returned true, no thread is inside and none comes in
 *     before sw_gate_open();
 *  2. a thread that is inside may come in again (the driver calls itself), whatever the gate;
 *  3. a thread waits at the gate holding nothing of ours.
 */
#ifndef SW_RUNTIME_GATE_H
#define SW_RUNTIME_GATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sw_track;

/* One per thread; they are linked for ever and used again after a thread ended. */
struct sw_gate_thread {
	_Atomic uint32_t inside;
	uint32_t depth; /* only its thread looks at it */
	_Atomic uint64_t launches, copies, waits;
	struct sw_gate_thread *next;
	_Atomic uint32_t taken;
	struct sw_track *track; /* what it did (iterations.h); NULL: nothing yet */
} __attribute__((aligned(64)));

extern __thread struct sw_gate_thread *sw_gate_self __attribute__((tls_model("initial-exec")));
extern _Atomic uint32_t sw_gate_closed; /* a futex */

struct sw_gate_thread *sw_gate_register(void);
void sw_gate_wait(struct sw_gate_thread *self);
void sw_gate_left(void);

static inline struct sw_gate_thread *sw_gate_enter(void)
{
	struct sw_gate_thread *self = sw_gate_self;
	if (__builtin_expect(self == NULL, 0))
		self = sw_gate_register();
	if (self->depth++ > 0)
		return self;
	atomic_store_explicit(&self->inside, 1, memory_order_relaxed);
	/* The closer's membarrier() makes this a full one when it matters. */
	atomic_signal_fence(memory_order_seq_cst);
	if (__builtin_expect(atomic_load_explicit(&sw_gate_closed, memory_order_relaxed) != 0, 0))
		sw_gate_wait(self);
	return self;
}

static inline void sw_gate_leave(struct sw_gate_thread *self)
{
	if (--self->depth > 0)
		return;
	atomic_store_explicit(&self->inside, 0, memory_order_release);
	atomic_signal_fence(memory_order_seq_cst);
	if (__builtin_expect(atomic_load_explicit(&sw_gate_closed, memory_order_relaxed) != 0, 0))
		sw_gate_left();
}

/* A figure that only its own thread raises and others may read. */
static inline void sw_gate_count(_Atomic uint64_t *figure)
{
	atomic_store_explicit(figure, atomic_load_explicit(figure, memory_order_relaxed) + 1, memory_order_relaxed);
}

/* False: a thread was still inside after `timeout_ns`; the gate is open again. Only the
 * attendant opens and closes. */
bool sw_gate_close(int64_t timeout_ns);
void sw_gate_open(void);
/* Sums over all threads that ever were. */
void sw_gate_figures(uint64_t *ret_launches, uint64_t *ret_copies, uint64_t *ret_waits);
/* After fork(): the child has one thread, and the gate is open. */
void sw_gate_forget(void);

#endif
