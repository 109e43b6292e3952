/* How long the loop is held at one go. That is from the first event of a round to the end of the
 * last, while nothing else can be heard.
 *
 * libevent tells when a round began by the time that it keeps for all of a round's events. A
 * round that is still going on counts for the longest already, and for the histogram once
 * the next one has begun.
 */
#include <string.h>

#include "base/now.h"
#include "base/number.h"
#include "server/loop.h"
#include "server/state.h"

#define LONG_NS (10 * SW_NS_PER_MS)
#define PUT_OFF_MAX 50

const int64_t sw_loop_bounds_ns[SW_LOOP_BOUNDS] = {1000000, 5000000, 10000000, 25000000, 50000000, 100000000, 250000000, 1000000000};

static void begin(struct sw_loop *loop)
{
	int64_t took_ns = loop->left_ns - loop->entered_ns;
	if (loop->entered_ns != 0) {
		size_t bound = 0;
		while (bound < SW_LOOP_BOUNDS && took_ns > sw_loop_bounds_ns[bound])
			bound++;
		loop->rounds[bound]++;
		loop->total_ns += took_ns;
	}
	loop->entered_ns = sw_now_boot_ns();
	loop->entered_cpu_ns = sw_now_thread_ns();
}

struct sw_server *sw_loop_enter(struct sw_server *server)
{
	struct timeval round = {0};
	event_base_gettimeofday_cached(server->base, &round);
	if (memcmp(&round, &server->loop.round, sizeof round) != 0) {
		server->loop.round = round;
		begin(&server->loop);
	}
	return server;
}

void sw_loop_leave(struct sw_server **server)
{
	struct sw_loop *loop = &(*server)->loop;
	loop->left_ns = sw_now_boot_ns();
	if (loop->left_ns - loop->entered_ns > loop->longest_ns)
		loop->longest_ns = loop->left_ns - loop->entered_ns;
	/* It is never more than the time that passed. */
	if (loop->left_ns - loop->entered_ns > loop->longest_cpu_ns) {
		int64_t took_ns = sw_now_thread_ns() - loop->entered_cpu_ns;
		if (took_ns > loop->longest_cpu_ns)
			loop->longest_cpu_ns = took_ns;
	}
}

bool sw_loop_puts_off(const struct sw_server *server, unsigned *times)
{
	if (sw_now_boot_ns() - server->loop.entered_ns > LONG_NS && ++*times < PUT_OFF_MAX)
		return true;
	*times = 0;
	return false;
}
