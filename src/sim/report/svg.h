/* The frame of a plot (axes, grid, titles) and the paths inside it, as inline SVG.
 *
 * Colours are never written here: elements carry classes, and style.css decides, so that one page
 * serves light, dark and paper. The scales are written into data attributes, from which script.js
 * finds the value under the pointer; no number is stored twice.
 */
#ifndef SW_SIM_REPORT_SVG_H
#define SW_SIM_REPORT_SVG_H

#include <stdbool.h>
#include <stdio.h>

#include "sim/report/scale.h"

struct sw_plot {
	FILE *out;
	double width, height;
	double left, right, top, bottom; /* margins */
	struct sw_scale x, y;		 /* sw_plot_begin sets their pixels */
	const char *label;		 /* for readers that cannot see it */
	const char *x_title;		 /* NULL for none */
	const char *y_title;		 /* stands above the axis */
	const char *y_floor_label;	 /* what lies on the floor of the y scale: "< 1 s"; NULL for none */
	bool no_x_axis;			 /* the x axis is not a scale: the caller labels it */
	bool readout;			 /* the script reads values out of the `series` paths */
};

/* All texts are ours, plain and without markup. */
void sw_plot_begin(struct sw_plot *plot);
void sw_plot_end(struct sw_plot *plot);

/* A coordinate or a length, with one decimal at most. */
void sw_svg_number(FILE *out, double pixels);

/* A staircase: M, then H and V only. Steps that change nothing are not written. */
struct sw_stairs {
	FILE *out;
	double x, y; /* as written so far, in tenths of a pixel */
};

void sw_stairs_begin(struct sw_stairs *stairs, FILE *out, double x, double y);
void sw_stairs_to(struct sw_stairs *stairs, double x, double y);
/* Draws the last tread as far as x. */
void sw_stairs_end(struct sw_stairs *stairs, double x);

#endif
