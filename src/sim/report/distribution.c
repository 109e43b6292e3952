/* Cumulative distributions: of job completion times, and of slowdowns. Jobs are counted into pixel
 * columns. So a million of them need no sorting, and the path has no more points than the picture
 * has columns. */
#include "sim/report/page.h"

#include <math.h>

#include "base/number.h"

#define LEFT 52
#define RIGHT 12
#define PIXELS (SW_HTML_PLOT_WIDTH - LEFT - RIGHT)

/* Measures of one job: NAN when the question does not apply to it, INFINITY
 * when it did not finish. */
static double jct_s(const struct sw_outcome *outcome)
{
	return outcome->state == SW_OUTCOME_FINISHED ? (double)(outcome->end_ns - outcome->submit_ns) / SW_NS_PER_S : INFINITY;
}

static double slowdown(const struct sw_outcome *outcome)
{
	if (outcome->work_ns <= 0)
		return NAN;
	return outcome->state == SW_OUTCOME_FINISHED ? (double)(outcome->end_ns - outcome->submit_ns) / (double)outcome->work_ns : INFINITY;
}

/* The smallest positive and the largest finite value of all results; false when there is none. */
static bool find_range(const struct sw_html *page, double (*value_of)(const struct sw_outcome *outcome), double *ret_low, double *ret_high)
{
	double low = INFINITY, high = -1;
	for (size_t r = 0; r < page->count; r++) {
		for (size_t i = 0; i < page->results[r]->outcomes.count; i++) {
			double value = value_of(&page->results[r]->outcomes.items[i]);
			if (!isfinite(value))
				continue;
			if (value > high)
				high = value;
			if (value > 0 && value < low)
				low = value;
		}
	}
	if (high < 0)
		return false;
	*ret_low = low;
	*ret_high = high;
	return true;
}

static void write_curve(const struct sw_html *page, size_t index, const struct sw_plot *plot,
			double (*value_of)(const struct sw_outcome *outcome))
{
	size_t columns[PIXELS + 1] = {0};
	size_t all = 0, below = 0;
	for (size_t i = 0; i < page->results[index]->outcomes.count; i++) {
		double value = value_of(&page->results[index]->outcomes.items[i]);
		if (isnan(value))
			continue;
		all++;
		if (isfinite(value))
			columns[(size_t)ceil(sw_scale_at(&plot->x, value) - plot->x.from)]++;
	}
	if (all == 0)
		return;
	struct sw_stairs stairs;
	sw_html_path(page, index, "series line");
	sw_stairs_begin(&stairs, page->out, plot->x.from, sw_scale_at(&plot->y, (double)columns[0] / (double)all));
	for (size_t column = 0; column <= PIXELS; column++) {
		below += columns[column];
		sw_stairs_to(&stairs, plot->x.from + (double)column, sw_scale_at(&plot->y, (double)below / (double)all));
	}
	sw_stairs_end(&stairs, plot->x.to);
	fputs("\"/>\n", page->out);
}

static void write_distribution(const struct sw_html *page, double (*value_of)(const struct sw_outcome *outcome), struct sw_plot *plot)
{
	double low, high;
	if (!find_range(page, value_of, &low, &high)) {
		fputs("<p class=\"none\">No job finished.</p>\n", page->out);
		return;
	}
	plot->out = page->out;
	plot->width = SW_HTML_PLOT_WIDTH;
	plot->height = 330;
	plot->left = LEFT;
	plot->right = RIGHT;
	plot->top = 26;
	plot->bottom = 42;
	low *= 0.9;
	high *= 1.05;
	/* No job is faster than alone: a short axis is made longer to the right. */
	plot->x = sw_scale_log(plot->x.unit, low, plot->x.unit == SW_UNIT_FACTOR ? fmax(high, low * 10) : high);
	plot->y = sw_scale_linear(SW_UNIT_SHARE, 0, 1);
	plot->readout = true;
	sw_plot_begin(plot);
	for (size_t r = 0; r < page->count; r++)
		write_curve(page, r, plot, value_of);
	sw_plot_end(plot);
}

void sw_html_jct(const struct sw_html *page)
{
	sw_html_section(page, "jct", "How soon jobs finish",
			"Share of all jobs that ended within a time after submit. Higher and further left is better.");
	struct sw_plot plot = {.label = "Cumulative distribution of job completion times, one curve per policy",
			       .x = {.unit = SW_UNIT_DURATION},
			       .x_title = "job completion time (log scale)",
			       .y_title = "share of jobs finished"};
	write_distribution(page, jct_s, &plot);
	sw_html_section_end(page);
}

void sw_html_slowdown(const struct sw_html *page)
{
	sw_html_section(page, "slowdown", "How much longer than alone",
			"Completion time over the time the job needs when it runs at once and alone: 1\xC3\x97 never waited.");
	struct sw_plot plot = {.label = "Cumulative distribution of slowdowns, one curve per policy",
			       .x = {.unit = SW_UNIT_FACTOR},
			       .x_title = "slowdown (log scale)",
			       .y_title = "share of jobs finished"};
	write_distribution(page, slowdown, &plot);
	sw_html_section_end(page);
}
