/* Queueing delay by job size: for each class of GPU counts and each result, the median (dot) and
 * the 95th percentile (cap). */
#include "sim/report/page.h"

#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/number.h"
#include "sim/quantile.h"

/* 1, 2, 3-4, 5-8, 9-16, 17-32, 33-64, more. */
#define CLASSES 8

struct class
{
	uint32_t least, most; /* GPU counts that occur */
	size_t jobs;	      /* finished, in the result that finished most of them */
};

struct delay {
	double median_s, p95_s;
	size_t jobs;
};

struct delays {
	struct class classes[CLASSES];
	struct delay *of; /* results x CLASSES */
	size_t used;	  /* classes with jobs */
};

static size_t class_of(uint32_t gpus)
{
	size_t class = 0;
	while (class < CLASSES - 1 && gpus > (UINT32_C(1) << class))
		class ++;
	return class;
}

static bool item(const void *context, size_t index, int64_t *ret_value)
{
	*ret_value = ((const int64_t *)context)[index];
	return true;
}

/* Sorts the waits of one result into its classes and finds the quantiles of each. `waits`
 * has room for all of them. */
static void measure_result(const struct sw_result *result, struct delays *delays, struct delay *of, int64_t *waits)
{
	size_t starts[CLASSES + 1] = {0}, filled[CLASSES] = {0};
	for (size_t i = 0; i < result->outcomes.count; i++) {
		const struct sw_outcome *outcome = &result->outcomes.items[i];
		if (outcome->state != SW_OUTCOME_FINISHED)
			continue;
		size_t c = class_of(outcome->gpus);
		struct class *class = &delays->classes[c];
		of[c].jobs++;
		if (class->least == 0 || outcome->gpus < class->least)
			class->least = outcome->gpus;
		if (outcome->gpus > class->most)
			class->most = outcome->gpus;
	}
	for (size_t c = 0; c < CLASSES; c++) {
		starts[c + 1] = starts[c] + of[c].jobs;
		if (of[c].jobs > delays->classes[c].jobs)
			delays->classes[c].jobs = of[c].jobs;
	}
	for (size_t i = 0; i < result->outcomes.count; i++) {
		const struct sw_outcome *outcome = &result->outcomes.items[i];
		size_t c = class_of(outcome->gpus);
		if (outcome->state == SW_OUTCOME_FINISHED)
			waits[starts[c] + filled[c]++] = outcome->wait_ns;
	}
	for (size_t c = 0; c < CLASSES; c++) {
		double found[2];
		sw_quantiles(item, waits + starts[c], of[c].jobs, (const unsigned[]){500, 950}, 2, found);
		of[c].median_s = found[0] / SW_NS_PER_S;
		of[c].p95_s = found[1] / SW_NS_PER_S;
	}
}

static int measure(const struct sw_html *page, struct delays *delays)
{
	size_t most = 0;
	for (size_t r = 0; r < page->count; r++)
		if (page->results[r]->outcomes.count > most)
			most = page->results[r]->outcomes.count;
	SW_CLEANUP(sw_freep) int64_t *waits = calloc(most + 1, sizeof *waits);
	delays->of = calloc(page->count * CLASSES + 1, sizeof *delays->of);
	if (waits == NULL || delays->of == NULL)
		return SW_ENOMEM;
	for (size_t r = 0; r < page->count; r++)
		measure_result(page->results[r], delays, &delays->of[r * CLASSES], waits);
	for (size_t c = 0; c < CLASSES; c++)
		delays->used += delays->classes[c].jobs > 0;
	return 0;
}

/* One second is the least that is worth an axis; a shorter wait is as good as none
 * and lies on the floor. */
static struct sw_scale delay_scale(const struct sw_html *page, const struct delays *delays)
{
	double low = INFINITY, high = 10;
	bool floor = false;
	for (size_t i = 0; i < page->count * CLASSES; i++) {
		if (delays->of[i].jobs == 0)
			continue;
		high = fmax(high, delays->of[i].p95_s);
		/* The 95th percentile is never below the median. */
		if (delays->of[i].median_s >= 1)
			low = fmin(low, delays->of[i].median_s);
		else
			floor = true;
		if (delays->of[i].p95_s >= 1)
			low = fmin(low, delays->of[i].p95_s);
	}
	struct sw_scale scale = sw_scale_log(SW_UNIT_DURATION, fmin(low, high), high * 1.1);
	scale.low = sw_scale_round_down(fmax(scale.low, 1));
	scale.floor = floor ? 28 : 0;
	return scale;
}

static void write_label(const struct sw_html *page, const struct class *class, double x, double y)
{
	char number[SW_TEXT_SIZE];
	fputs("<text class=\"tick mid strong\" x=\"", page->out);
	sw_svg_number(page->out, x);
	fprintf(page->out, "\" y=\"%d\">%u", (int)y + 17, class->least);
	if (class->most > class->least)
		fprintf(page->out, "\xE2\x80\x93%u", class->most);
	fprintf(page->out, " %s</text><text class=\"tick mid\" x=\"", class->most == 1 ? "GPU" : "GPUs");
	sw_svg_number(page->out, x);
	fprintf(page->out, "\" y=\"%d\">%s</text>\n", (int)y + 33, sw_text_plural(class->jobs, "job", "jobs", number));
}

static void write_mark(const struct sw_html *page, size_t index, const struct sw_plot *plot, const struct delay *delay, double x)
{
	char median[SW_TEXT_SIZE], p95[SW_TEXT_SIZE], jobs[SW_TEXT_SIZE];
	double y_median = sw_scale_at(&plot->y, delay->median_s), y_p95 = sw_scale_at(&plot->y, delay->p95_s);
	fputs("<g class=\"mark ", page->out);
	sw_html_classes(page, index);
	fputs("\"><title>", page->out);
	sw_text_html(page->out, page->names[index]);
	fprintf(page->out, ": median %s, p95 %s (%s)</title><path class=\"line\" d=\"M", sw_text_duration(delay->median_s, median),
		sw_text_duration(delay->p95_s, p95), sw_text_plural(delay->jobs, "job", "jobs", jobs));
	sw_svg_number(page->out, x);
	fputc(' ', page->out);
	sw_svg_number(page->out, y_median);
	fputc('V', page->out);
	sw_svg_number(page->out, y_p95);
	fputs("m-3 0h6\"/><circle class=\"dot\" r=\"3.6\" cx=\"", page->out);
	sw_svg_number(page->out, x);
	fputs("\" cy=\"", page->out);
	sw_svg_number(page->out, y_median);
	fputs("\"/></g>", page->out);
}

static void write_plot(const struct sw_html *page, const struct delays *delays)
{
	char floor_label[SW_TEXT_SIZE], least[SW_TEXT_SIZE];
	struct sw_plot plot = {.out = page->out,
			       .width = SW_HTML_PLOT_WIDTH,
			       .height = 340,
			       .left = 66,
			       .right = 6,
			       .top = 26,
			       .bottom = 40,
			       .label = "Queueing delay by number of GPUs, median and 95th percentile per policy",
			       .x = sw_scale_linear(SW_UNIT_COUNT, 0, (double)delays->used),
			       .y = delay_scale(page, delays),
			       .y_title = "time waited (log scale)",
			       .no_x_axis = true};
	snprintf(floor_label, sizeof floor_label, "< %.40s", sw_text_duration(plot.y.low, least));
	plot.y_floor_label = plot.y.floor > 0 ? floor_label : NULL;
	sw_plot_begin(&plot);
	size_t slot = 0;
	for (size_t c = 0; c < CLASSES; c++) {
		if (delays->classes[c].jobs == 0)
			continue;
		double from = sw_scale_at(&plot.x, (double)slot), to = sw_scale_at(&plot.x, (double)slot + 1), margin = (to - from) / 8;
		if (slot++ % 2 == 1) {
			fputs("<rect class=\"band\" x=\"", page->out);
			sw_svg_number(page->out, from);
			fprintf(page->out, "\" y=\"%d\" width=\"", (int)plot.top);
			sw_svg_number(page->out, to - from);
			fprintf(page->out, "\" height=\"%d\"/>", (int)(plot.height - plot.top - plot.bottom));
		}
		write_label(page, &delays->classes[c], (from + to) / 2, plot.y.from);
		double step = (to - from - 2 * margin) / (double)page->count;
		/* Few policies stand together, they are not spread over the whole class. */
		if (step > 16)
			step = 16;
		double first = (from + to) / 2 - step * (double)(page->count - 1) / 2;
		for (size_t r = 0; r < page->count; r++)
			if (delays->of[r * CLASSES + c].jobs > 0)
				write_mark(page, r, &plot, &delays->of[r * CLASSES + c], first + step * (double)r);
	}
	sw_plot_end(&plot);
}

int sw_html_queueing(const struct sw_html *page)
{
	struct delays delays = {0};
	int r = measure(page, &delays);
	if (r == 0) {
		sw_html_section(page, "queueing", "Queueing delay by job size",
				"Time not on GPUs between submit and end. Dot: median. Cap: 95th percentile. Lower is better.");
		if (delays.used > 0)
			write_plot(page, &delays);
		else
			fputs("<p class=\"none\">No job finished.</p>\n", page->out);
		sw_html_section_end(page);
	}
	free(delays.of);
	return r;
}
