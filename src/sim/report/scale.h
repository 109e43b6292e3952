/* From values to pixels, and where an axis has its ticks. */
#ifndef SW_SIM_REPORT_SCALE_H
#define SW_SIM_REPORT_SCALE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

#define SW_TICKS_MAX 16

enum sw_unit {
	SW_UNIT_DURATION, /* seconds */
	SW_UNIT_COUNT,
	SW_UNIT_SHARE,	/* 0..1, printed as percent */
	SW_UNIT_FACTOR, /* printed as 3x */
};

/* low < high always; both above 0 when logarithmic. */
struct sw_scale {
	enum sw_unit unit;
	bool logarithmic;
	/* linear only: ticks at the ends, and in the middle where that is a whole number;
	 * the ends mean something */
	bool halves;
	double low, high; /* values at the ends */
	double from, to;  /* their pixels; to < from on an axis that points up */
	/* pixels (not negative) between `from` and the place of `low`: where all values below `low`
	 * are drawn; logarithmic only */
	double floor;
};

/* Scales that hold low..high; numbers that make no axis (equal, zero, not finite) are
 * widened until they do. A logarithmic scale spans one decade at least and seven at most.
 * Pixels are the caller's to set. */
struct sw_scale sw_scale_linear(enum sw_unit unit, double low, double high);
struct sw_scale sw_scale_log(enum sw_unit unit, double low, double high);

/* The longest round duration that is not longer: "3 h 29 min" gives two hours. */
double sw_scale_round_down(double seconds);

/* The pixel of a value; values beyond the ends are drawn at the ends. */
double sw_scale_at(const struct sw_scale *scale, double value);

/* Round values between low and high, at least `distance` pixels apart. Returns how many. */
size_t sw_scale_ticks(const struct sw_scale *scale, double distance, double ret_ticks[SW_TICKS_MAX]);
char *sw_scale_label(enum sw_unit unit, double value, char buffer[SW_TEXT_SIZE]);

#endif
