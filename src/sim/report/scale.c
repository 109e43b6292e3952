#include "sim/report/scale.h"

#include <math.h>
#include <stdio.h>

#define MINUTE 60.0
#define HOUR 3600.0
#define DAY 86400.0
#define DECADES_MAX 1e7
#define SHORTEST_S 1e-3

struct sw_scale sw_scale_linear(enum sw_unit unit, double low, double high)
{
	if (!isfinite(low))
		low = 0;
	if (!isfinite(high) || high <= low)
		high = low + fmax(1, fabs(low) * 1e-3);
	return (struct sw_scale){.unit = unit, .low = low, .high = high};
}

struct sw_scale sw_scale_log(enum sw_unit unit, double low, double high)
{
	if (!isfinite(high) || high <= 0)
		high = 10;
	if (!isfinite(low) || low > high)
		low = high;
	if (low < high / DECADES_MAX)
		low = high / DECADES_MAX;
	if (unit == SW_UNIT_DURATION && low < SHORTEST_S)
		low = SHORTEST_S;
	if (high < low * 10) {
		double middle = sqrt(low) * sqrt(high);
		low = middle / sqrt(10);
		high = middle * sqrt(10);
	}
	return (struct sw_scale){.unit = unit, .logarithmic = true, .low = low, .high = high};
}

double sw_scale_at(const struct sw_scale *scale, double value)
{
	double share, floor = 0;
	if (scale->logarithmic) {
		if (!(value >= scale->low))
			return scale->from;
		share = log(value / scale->low) / log(scale->high / scale->low);
		floor = scale->to < scale->from ? -scale->floor : scale->floor;
	} else {
		share = (value - scale->low) / (scale->high - scale->low);
	}
	share = share < 0 ? 0 : share > 1 ? 1 : share;
	return scale->from + floor + share * (scale->to - scale->from - floor);
}

/* Candidates for logarithmic ticks, from dense to sparse. */
static const double dense[] = {1e-3,	    2e-3,     5e-3,	 1e-2,	    2e-2,      5e-2,	  0.1,	      0.2,	  0.5,
			       1,	    2,	      5,	 10,	    20,	       MINUTE,	  2 * MINUTE, 5 * MINUTE, 10 * MINUTE,
			       30 * MINUTE, HOUR,     2 * HOUR,	 4 * HOUR,  12 * HOUR, DAY,	  2 * DAY,    5 * DAY,	  10 * DAY,
			       20 * DAY,    50 * DAY, 100 * DAY, 200 * DAY, 500 * DAY, 1e3 * DAY, 1e4 * DAY,  1e5 * DAY};
static const double medium[] = {1e-3,	  1e-2, 0.1,	  1,	     10,	MINUTE,	   10 * MINUTE, HOUR,
				6 * HOUR, DAY,	10 * DAY, 100 * DAY, 1e3 * DAY, 1e4 * DAY, 1e5 * DAY};
static const double sparse[] = {1e-3, 1, MINUTE, HOUR, DAY, 30 * DAY, 1e3 * DAY, 3e4 * DAY};

double sw_scale_round_down(double seconds)
{
	double found = dense[0];
	for (size_t i = 0; i < sizeof dense / sizeof *dense; i++)
		if (dense[i] <= seconds)
			found = dense[i];
	return found;
}

/* Takes those of `candidates` that lie on the scale; false as soon as two are too near
 * or there are too many. */
static bool take(const struct sw_scale *scale, double distance, const double *candidates, size_t count, double *ticks, size_t *ret_count)
{
	size_t n = 0;
	for (size_t i = 0; i < count; i++) {
		double value = candidates[i];
		if (value < scale->low || value > scale->high)
			continue;
		if (n == SW_TICKS_MAX || (n > 0 && fabs(sw_scale_at(scale, value) - sw_scale_at(scale, ticks[n - 1])) < distance))
			return false;
		ticks[n++] = value;
	}
	*ret_count = n;
	return true;
}

/* Powers of ten, `stride` decades apart, each with its multiples. */
static bool take_powers(const struct sw_scale *scale, double distance, int stride, bool multiples, double *ticks, size_t *ret_count)
{
	double candidates[64];
	size_t n = 0;
	int first = (int)floor(log10(scale->low)) / stride * stride - stride;
	for (int power = first; n + 3 <= 64 && pow(10, power) <= scale->high; power += stride) {
		candidates[n++] = pow(10, power);
		if (multiples) {
			candidates[n++] = 2 * pow(10, power);
			candidates[n++] = 5 * pow(10, power);
		}
	}
	return take(scale, distance, candidates, n, ticks, ret_count);
}

static size_t log_ticks(const struct sw_scale *scale, double distance, double *ticks)
{
	size_t n = 0;
	if (scale->unit == SW_UNIT_DURATION) {
		if (take(scale, distance, dense, sizeof dense / sizeof *dense, ticks, &n) ||
		    take(scale, distance, medium, sizeof medium / sizeof *medium, ticks, &n) ||
		    take(scale, distance, sparse, sizeof sparse / sizeof *sparse, ticks, &n))
			return n;
	} else if (take_powers(scale, distance, 1, true, ticks, &n)) {
		return n;
	}
	for (int stride = 1; stride <= 4; stride++)
		if (take_powers(scale, distance, stride, false, ticks, &n))
			return n;
	return 0;
}

/* The smallest round step that is not below `least`. */
static double round_step(enum sw_unit unit, double least)
{
	static const double steps[] = {1,	   2,	       5,	    10,		 15,	      30,     MINUTE,
				       2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR,   2 * HOUR,
				       3 * HOUR,   6 * HOUR,   12 * HOUR,   DAY,	 2 * DAY,     5 * DAY};
	if (unit == SW_UNIT_DURATION && least > 0.5)
		for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
			if (steps[i] >= least)
				return steps[i];
	if (unit == SW_UNIT_SHARE)
		return least <= 0.05 ? 0.05 : least <= 0.25 ? 0.25 : 0.5;
	double base = unit == SW_UNIT_DURATION && least > 0.5 ? DAY : 1;
	double power = pow(10, floor(log10(least / base))) * base;
	double step = least <= power ? power : least <= 2 * power ? 2 * power : least <= 5 * power ? 5 * power : 10 * power;
	return unit == SW_UNIT_COUNT && step < 1 ? 1 : step;
}

static size_t linear_ticks(const struct sw_scale *scale, double distance, double *ticks)
{
	double pixels = fabs(scale->to - scale->from), span = scale->high - scale->low;
	if (pixels <= 0)
		return 0;
	double least = span * distance / pixels;
	if (least < span / (SW_TICKS_MAX - 2))
		least = span / (SW_TICKS_MAX - 2);
	double step = round_step(scale->unit, least);
	size_t n = 0;
	for (double i = ceil(scale->low / step - 1e-9); i * step <= scale->high + step * 1e-9 && n < SW_TICKS_MAX; i++)
		ticks[n++] = i * step;
	return n;
}

static size_t half_ticks(const struct sw_scale *scale, double *ticks)
{
	double middle = (scale->low + scale->high) / 2;
	size_t n = 0;
	ticks[n++] = scale->low;
	if (middle == floor(middle))
		ticks[n++] = middle;
	ticks[n++] = scale->high;
	return n;
}

size_t sw_scale_ticks(const struct sw_scale *scale, double distance, double ret_ticks[SW_TICKS_MAX])
{
	if (scale->halves)
		return half_ticks(scale, ret_ticks);
	return scale->logarithmic ? log_ticks(scale, distance, ret_ticks) : linear_ticks(scale, distance, ret_ticks);
}

char *sw_scale_label(enum sw_unit unit, double value, char buffer[SW_TEXT_SIZE])
{
	char number[SW_TEXT_SIZE];
	if (value == 0 && unit != SW_UNIT_SHARE)
		return sw_text_short(0, 0, buffer);
	switch (unit) {
	case SW_UNIT_DURATION:
		return sw_text_duration(value, buffer);
	case SW_UNIT_SHARE:
		snprintf(buffer, SW_TEXT_SIZE, "%.32s %%", sw_text_short(value * 100, 0, number));
		return buffer;
	case SW_UNIT_FACTOR:
		snprintf(buffer, SW_TEXT_SIZE, "%.32s\xC3\x97",
			 value < 1 ? sw_text_short(value, 3, number) : sw_text_factor(value, number));
		return buffer;
	case SW_UNIT_COUNT:
		if (value >= 1 && value < 1e18)
			return sw_text_count((uint64_t)llround(value), buffer);
		break;
	}
	return sw_text_short(value, 3, buffer);
}
