/* How a guaranteed job fares: the time of its iterations, and its rate of launches, against those
 * without a disturbance. Pure. */
#ifndef SW_SHARE_FARE_H
#define SW_SHARE_FARE_H

#include "share/coordinate.h"

/* `undisturbed`: since the last call no opportunistic job was allowed to disturb it. */
void sw_fare_look(struct sw_fare *fare, const struct sw_coordinate_job *job, bool undisturbed, int64_t now_ns);

/* Thousandths of the rate alone; 0: not known, or it does not work. */
uint32_t sw_fare_rate_milli(const struct sw_fare *fare);

#endif
