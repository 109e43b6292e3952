/* The simplest splitter: one cut, two parts on two GPUs of one node, in proportion to the
 * memory that these have left.
 *
 * What it takes for true: a part does as much of the work as it holds of the memory. The parts work
 * one after the other. So a step takes as long as whole and alone when no other job is beside them.
 * What crosses the cut and back is added to that. Of all pairs that have room it takes the one with
 * the shortest step, the first of equals.
 */
#ifndef SW_SPLIT_CUT_H
#define SW_SPLIT_CUT_H

#include "core/engine.h"

#define SW_CUT_DEVICES_MAX 64u /* those behind these are not looked at */

struct sw_cut {
	struct sw_splitter splitter; /* first */
	uint32_t price_milli;	     /* of a step in two parts, of one whole; at least 1000 */
};

struct sw_cut sw_cut_make(uint32_t price_milli);

#endif
