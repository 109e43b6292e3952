/* Threads of the runtime in contexts of the program, at moments of their own: a context goes
 * when no thread visits it.
 *
 * A thread that ends one says so first and waits until all are out; a visitor never waits for
 * that, but comes back later.
 */
#ifndef SW_RUNTIME_VISITS_H
#define SW_RUNTIME_VISITS_H

#include <stdbool.h>

/* Around the end of a context. */
void sw_visits_keep_out(void);
void sw_visits_let_in(void);
/* Around one short step in contexts of the program, never around a wait for the gate. False: one of
 * them goes, and the step is for later. */
bool sw_visit_begin(void);
void sw_visit_end(void);
/* Whether one goes just now. */
bool sw_visits_are_over(void);

#endif
