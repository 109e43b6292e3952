#include "placement/registry.h"

#include <stddef.h>

const struct sw_placement *const sw_placements[] = {
	&sw_placement_count, &sw_placement_yarn, &sw_placement_pack, &sw_placement_spread, &sw_placement_skew, NULL,
};
