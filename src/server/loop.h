/* How long the loop is held at one go, and what runs first. */
#ifndef SW_SERVER_LOOP_H
#define SW_SERVER_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/time.h>

#include "base/cleanup.h"

struct sw_server;

/* What runs first when several can. libevent gives everything the one in the middle. Only the end
 * of a batch waits until nothing else is ready, up to its deadline. */
enum { SW_FIRST = 0, SW_USUAL, SW_LAST, SW_PRIORITIES };

#define SW_LOOP_BOUNDS 8
extern const int64_t sw_loop_bounds_ns[SW_LOOP_BOUNDS];
struct sw_loop {
	struct timeval round; /* the one that goes on, as libevent knows it */
	int64_t entered_ns, left_ns;
	int64_t longest_ns, total_ns;
	int64_t entered_cpu_ns,
		/* the same in time of the processor: what others on a busy machine take is not in
		 * it, nor what the disk takes */
		longest_cpu_ns;
	uint64_t rounds[SW_LOOP_BOUNDS + 1]; /* by how long they took */
};
struct sw_server *sw_loop_enter(struct sw_server *server);
/* Whether a step of work that can wait does so for the next round, because this one is long.
 * `times`: so often in a row; however long rounds are, it has an end. */
bool sw_loop_puts_off(const struct sw_server *server, unsigned *times);
void sw_loop_leave(struct sw_server **server);
/* First in each function that the loop calls: until its end the loop is held. */
#define SW_HOLDS_LOOP(server) SW_CLEANUP(sw_loop_leave) struct sw_server *held __attribute__((unused)) = sw_loop_enter(server)

#endif
