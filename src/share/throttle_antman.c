/* AntMan's rule: additive increase, multiplicative decrease, by the time that an iteration of the
 * guaranteed job takes against the time that it took alone. */
#include "share/throttle.h"

#define PERIOD_NS INT64_C(1000000000)
/* Slower than the first: half of the share; not slower than the second, five times
 * in a row: a little more. */
enum { SLOW_MILLI = 1050, WELL_MILLI = 1025, LOOKS = 5, MORE_MILLI = 50, LEAST_MILLI = 10 };

static void look(struct sw_throttle_kept *kept, const struct sw_throttle_view *view)
{
	if (view->now_ns < kept->next_ns)
		return;
	kept->next_ns = view->now_ns + PERIOD_NS;
	if (view->time_milli > SLOW_MILLI) {
		kept->share_milli /= 2;
		if (kept->share_milli < LEAST_MILLI)
			kept->share_milli = 0;
		kept->good = 0;
		return;
	}
	kept->good = view->time_milli <= WELL_MILLI ? kept->good + 1 : 0;
	if (kept->good < LOOKS)
		return;
	kept->good = 0;
	kept->share_milli += MORE_MILLI;
	if (kept->share_milli > SW_THROTTLE_ALL)
		kept->share_milli = SW_THROTTLE_ALL;
}

const struct sw_throttle sw_throttle_antman = {
	.name = "antman",
	.about = "takes more while iterations of the guaranteed programs take as long as alone, half as much when they take longer",
	.look = look,
};
