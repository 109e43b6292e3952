#include "sim/report/svg.h"

#include <math.h>

/* Labels of a linear axis may have two units: "1 d 12 h". */
#define TICK_DISTANCE_X_LOG 58
#define TICK_DISTANCE_X_LINEAR 76
#define TICK_DISTANCE_Y 26

void sw_svg_number(FILE *out, double pixels)
{
	char number[SW_TEXT_SIZE];
	fputs(sw_text_short(isfinite(pixels) ? pixels : 0, 1, number), out);
}

static void write_attribute(FILE *out, const char *name, double pixels)
{
	fprintf(out, " %s=\"", name);
	sw_svg_number(out, pixels);
	fputc('"', out);
}

static void write_line(FILE *out, const char *style, double x1, double y1, double x2, double y2)
{
	fprintf(out, "<line class=\"%s\"", style);
	write_attribute(out, "x1", x1);
	write_attribute(out, "y1", y1);
	write_attribute(out, "x2", x2);
	write_attribute(out, "y2", y2);
	fputs("/>", out);
}

static void write_text(FILE *out, const char *style, double x, double y, const char *text)
{
	fprintf(out, "<text class=\"%s\"", style);
	write_attribute(out, "x", x);
	write_attribute(out, "y", y);
	fputc('>', out);
	sw_text_html(out, text);
	fputs("</text>", out);
}

/* "log 60 864000 56 628 0 duration": all that is needed to go back from a pixel to a value. */
static void write_scale(FILE *out, const char *name, const struct sw_scale *scale)
{
	static const char *const units[] = {"duration", "count", "share", "factor"};
	char low[SW_TEXT_SIZE], high[SW_TEXT_SIZE];
	fprintf(out, " data-%s=\"%s %s %s ", name, scale->logarithmic ? "log" : "linear", sw_text_short(scale->low, 6, low),
		sw_text_short(scale->high, 6, high));
	sw_svg_number(out, scale->from);
	fputc(' ', out);
	sw_svg_number(out, scale->to);
	fputc(' ', out);
	sw_svg_number(out, scale->floor);
	fprintf(out, " %s\"", units[scale->unit]);
}

static void write_x_axis(const struct sw_plot *plot)
{
	double ticks[SW_TICKS_MAX], bottom = plot->height - plot->bottom;
	char label[SW_TEXT_SIZE];
	double distance = plot->x.logarithmic ? TICK_DISTANCE_X_LOG : TICK_DISTANCE_X_LINEAR;
	size_t count = plot->no_x_axis ? 0 : sw_scale_ticks(&plot->x, distance, ticks);
	for (size_t i = 0; i < count; i++) {
		double x = sw_scale_at(&plot->x, ticks[i]);
		write_line(plot->out, "grid", x, plot->top, x, bottom);
		/* A label that would stick out of the picture is pushed inside. */
		const char *style = x > plot->width - 24 ? "tick end" : "tick mid";
		write_text(plot->out, style, x > plot->width - 24 ? plot->width : x, bottom + 17,
			   sw_scale_label(plot->x.unit, ticks[i], label));
	}
	write_line(plot->out, "axis", plot->left, bottom, plot->width - plot->right, bottom);
	if (plot->x_title != NULL)
		write_text(plot->out, "title end", plot->width - plot->right, bottom + 35, plot->x_title);
}

static void write_y_axis(const struct sw_plot *plot)
{
	double ticks[SW_TICKS_MAX];
	char label[SW_TEXT_SIZE];
	size_t count = sw_scale_ticks(&plot->y, TICK_DISTANCE_Y, ticks);
	for (size_t i = 0; i < count; i++) {
		double y = sw_scale_at(&plot->y, ticks[i]);
		if (y < plot->height - plot->bottom - 0.5)
			write_line(plot->out, "grid", plot->left, y, plot->width - plot->right, y);
		write_text(plot->out, "tick end", plot->left - 7, y + 4, sw_scale_label(plot->y.unit, ticks[i], label));
	}
	if (plot->y_floor_label != NULL)
		write_text(plot->out, "tick end", plot->left - 7, plot->y.from + 4, plot->y_floor_label);
	if (plot->y_title != NULL)
		write_text(plot->out, "title", 0, 12, plot->y_title);
}

void sw_plot_begin(struct sw_plot *plot)
{
	plot->x.from = plot->left;
	plot->x.to = plot->width - plot->right;
	plot->y.from = plot->height - plot->bottom;
	plot->y.to = plot->top;
	fprintf(plot->out, "<svg class=\"plot%s\" role=\"img\" aria-label=\"", plot->readout ? " readout" : "");
	sw_text_html(plot->out, plot->label);
	fputs("\" viewBox=\"0 0 ", plot->out);
	sw_svg_number(plot->out, plot->width);
	fputc(' ', plot->out);
	sw_svg_number(plot->out, plot->height);
	fputc('"', plot->out);
	if (plot->readout) {
		write_scale(plot->out, "x", &plot->x);
		write_scale(plot->out, "y", &plot->y);
	}
	fputs(">\n", plot->out);
	write_x_axis(plot);
	write_y_axis(plot);
	fputc('\n', plot->out);
}

void sw_plot_end(struct sw_plot *plot)
{
	fputs("</svg>\n", plot->out);
}

static double tenths(double pixels)
{
	return round(pixels * 10);
}

void sw_stairs_begin(struct sw_stairs *stairs, FILE *out, double x, double y)
{
	*stairs = (struct sw_stairs){.out = out, .x = tenths(x), .y = tenths(y)};
	fputc('M', out);
	sw_svg_number(out, x);
	fputc(' ', out);
	sw_svg_number(out, y);
}

void sw_stairs_to(struct sw_stairs *stairs, double x, double y)
{
	if (tenths(y) == stairs->y)
		return;
	sw_stairs_end(stairs, x);
	fputc('V', stairs->out);
	sw_svg_number(stairs->out, y);
	stairs->y = tenths(y);
}

void sw_stairs_end(struct sw_stairs *stairs, double x)
{
	if (tenths(x) == stairs->x)
		return;
	fputc('H', stairs->out);
	sw_svg_number(stairs->out, x);
	stairs->x = tenths(x);
}
