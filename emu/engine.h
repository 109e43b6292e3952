/* Modelled time of a GPU: one compute engine that processes share in slices, and three copy engines
 * (to the GPU, from it, within it).
 *
 * 1. A process keeps the compute engine while it has work, for a slice at most when others wait;
 *    then the next waiting process has it.
 * 2. No process waits for ever for one that was killed or stopped: a turn that is not
 *    given up in time is taken.
 * 3. The times that come out are modelled ones and may be a little earlier than the wall clock,
 *    never by more than EMU_LAG_NS.
 */
#ifndef EMU_ENGINE_H
#define EMU_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

/* How far modelled time may lie behind the wall clock. */
#define EMU_LAG_NS 2000000ULL

/* Uses the compute engine for `work_ns`, not before `ready_ns`; `more`: the caller comes
 * back at once. Returns when the work ends. A smaller priority goes first among the
 * streams of this process. */
uint64_t emu_engine_run(unsigned gpu, int priority, uint64_t ready_ns, uint64_t work_ns, bool more);

/* Reserves a copy engine for `bytes` (a part of a copy) after `ready_ns`; returns the end, for
 * which the caller waits itself. */
uint64_t emu_engine_copy(unsigned gpu, unsigned engine, uint64_t ready_ns, uint64_t bytes, uint64_t latency_ns);

/* Since the shared file was made. */
uint64_t emu_engine_busy_total_ns(unsigned gpu);

/* Of the last second, in thousandths. */
unsigned emu_engine_busy_milli(unsigned gpu);

#endif
