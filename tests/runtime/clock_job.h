/* The clock by which the GPU runtime goes in jobs, for tests of what must not happen yet: it can be
 * stopped, and says how often it was read. The clocks of the test, of the emulated driver and of
 * the jobs' own code go on. */
#ifndef TEST_RUNTIME_CLOCK_JOB_H
#define TEST_RUNTIME_CLOCK_JOB_H

#include <stdint.h>

/* Before any job starts; it goes then. */
void clock_up(void);
/* Stands still in all jobs from now on, also in those that start later. Returns the
 * moment at which it stands. */
int64_t clock_stop(void);
void clock_go_on(void);
/* Waits until the first threads of the jobs have read it so often again. A thread that waits for
 * its turn reads it each time that it looks. */
void clock_await_reads(unsigned times);
/* The same for the other threads: the runtime's own. */
void clock_await_looks(unsigned times);

#endif
