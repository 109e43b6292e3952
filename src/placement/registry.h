/* All placement rules of this program. */
#ifndef SW_PLACEMENT_REGISTRY_H
#define SW_PLACEMENT_REGISTRY_H

#include <sharewell/policy.h>

extern const struct sw_placement sw_placement_count, sw_placement_yarn, sw_placement_pack, sw_placement_spread, sw_placement_skew;

/* NULL ends. */
extern const struct sw_placement *const sw_placements[];

#endif
