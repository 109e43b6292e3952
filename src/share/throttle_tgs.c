/* TGS's rule: the guaranteed job's own rate of launches, window by window, tells whether it is
 * disturbed. The opportunistic rate rises quickly until that falls for the first time, then moves
 * in small steps around what is bearable. A large fall cuts it to a tenth. It sees launches only:
 * how long the opportunistic job's kernels take, it does not know. */
#include "share/throttle.h"

enum { SLOW_START, STEADY };
enum { FELL_MILLI = 980, FELL_FAR_MILLI = 910, LEAST_MILLI = 10 };

static uint32_t part(uint32_t share, uint32_t milli)
{
	uint32_t changed = (uint32_t)((uint64_t)share * milli / 1000);
	return milli > 1000 && changed <= share ? share + 1 : changed;
}

static void look(struct sw_throttle_kept *kept, const struct sw_throttle_view *view)
{
	if (view->windows == kept->window)
		return;
	kept->window = view->windows;
	bool works = view->rate_milli > 0;
	if (works && view->rate_milli < FELL_FAR_MILLI) {
		kept->share_milli /= 10;
		kept->phase = STEADY;
	} else if (works && view->rate_milli < FELL_MILLI) {
		kept->share_milli = part(kept->share_milli, 920);
		kept->phase = STEADY;
	} else {
		kept->share_milli = part(kept->share_milli, kept->phase == SLOW_START ? 1500 : 1025);
	}
	if (kept->share_milli < LEAST_MILLI)
		kept->share_milli = LEAST_MILLI;
	if (kept->share_milli > SW_THROTTLE_ALL)
		kept->share_milli = SW_THROTTLE_ALL;
}

const struct sw_throttle sw_throttle_tgs = {
	.name = "tgs",
	.about = "takes as much as leaves the guaranteed programs their rate of launches",
	.start_milli = LEAST_MILLI,
	.look = look,
};
