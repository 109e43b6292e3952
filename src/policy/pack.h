/* Packing on top of an order. "las+pack" is las, but a job that finds no place runs beside a
 * running job if both are predicted to do well. */
#ifndef SW_POLICY_PACK_H
#define SW_POLICY_PACK_H

#include <sharewell/policy.h>

#define SW_PACKED_SUFFIX "+pack"
#define SW_PACKED_PARAMS_MAX 24u

/* A policy made of another. */
struct sw_packed {
	struct sw_policy policy;
	char name[64];
	char about[160];
	struct sw_param params[SW_PACKED_PARAMS_MAX]; /* the base's, then ours */
};

/* Makes it; `ret_packed` must stay where it is. False: the base decides by itself which job runs
 * where, so it is no order to pack by. The same if it keeps shelves, or has too many parameters. */
bool sw_packed_onto(const struct sw_policy *base, struct sw_packed *ret_packed);

#endif
