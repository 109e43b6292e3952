/* Ours: the opportunistic job starts work only while no guaranteed one has any on the GPU. It
 * starts only what will be over when that goes on (src/runtime/neighbours.c). That is decided at
 * every launch, where the gaps are known; here nothing is left to do. */
#include "share/throttle.h"

static void look(struct sw_throttle_kept *kept, const struct sw_throttle_view *view)
{
	(void)view;
	kept->share_milli = SW_THROTTLE_ALL;
}

const struct sw_throttle sw_throttle_yield = {
	.name = "yield",
	.about = "works only in the idle times of the guaranteed programs",
	.yields = true,
	.start_milli = SW_THROTTLE_ALL,
	.look = look,
};
