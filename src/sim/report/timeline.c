/* The cluster over time: GPUs in use, a small picture per result, and waiting
 * jobs, all results in one.
 *
 * A history with more samples than the picture has room for is averaged over equal spans of time.
 * So the area under the curve stays true.
 */
#include "sim/report/page.h"

#include <math.h>

#include "base/number.h"

#define LEFT 52
#define RIGHT 12

enum { BINS = (SW_HTML_PLOT_WIDTH - LEFT - RIGHT) / 2 };

enum field {
	GPUS_USED,
	GPUS_UP,
	JOBS_WAITING,
};

struct step {
	double at_s;
	double value;
};

struct history {
	struct step steps[BINS];
	size_t count;
	double bin_s; /* 0 when the steps are exact */
};

static double field_of(const struct sw_usage *sample, enum field field)
{
	switch (field) {
	case GPUS_USED:
		return sample->gpus_used;
	case GPUS_UP:
		return sample->gpus_up;
	case JOBS_WAITING:
		return sample->jobs_waiting;
	}
	return 0;
}

static double at_s(const struct sw_result *result, size_t index)
{
	return (double)result->usage.items[index].at_ns / SW_NS_PER_S;
}

/* Adds what holds from `from` to `to` to the bins it covers. */
static void spread(struct history *history, double origin, double from, double to, double value)
{
	double width = history->bin_s;
	double first = floor((from - origin) / width);
	for (size_t bin = first < 0 ? 0 : (size_t)first; bin < BINS; bin++) {
		double low = fmax(from, origin + (double)bin * width), high = fmin(to, origin + (double)(bin + 1) * width);
		if (high > low)
			history->steps[bin].value += value * (high - low) / width;
		if (origin + (double)(bin + 1) * width >= to)
			break;
	}
}

static void take_history(const struct sw_result *result, enum field field, double from_s, double to_s, struct history *ret_history)
{
	*ret_history = (struct history){0};
	size_t count = result->usage.count;
	if (count <= BINS) {
		for (size_t i = 0; i < count; i++)
			ret_history->steps[ret_history->count++] = (struct step){at_s(result, i), field_of(&result->usage.items[i], field)};
		return;
	}
	if (!(to_s > from_s))
		return;
	ret_history->count = BINS;
	ret_history->bin_s = (to_s - from_s) / BINS;
	for (size_t bin = 0; bin < BINS; bin++)
		ret_history->steps[bin].at_s = from_s + (double)bin * ret_history->bin_s;
	for (size_t i = 0; i < count; i++)
		spread(ret_history, from_s, at_s(result, i), i + 1 < count ? at_s(result, i + 1) : to_s,
		       field_of(&result->usage.items[i], field));
}

/* The path's data. An area is closed along the axis. */
static void write_steps(FILE *out, const struct sw_plot *plot, const struct history *history, bool area)
{
	struct sw_stairs stairs;
	bool from_axis = area || history->count == 0;
	sw_stairs_begin(&stairs, out, plot->x.from, from_axis ? plot->y.from : sw_scale_at(&plot->y, history->steps[0].value));
	for (size_t i = 0; i < history->count; i++)
		sw_stairs_to(&stairs, sw_scale_at(&plot->x, history->steps[i].at_s), sw_scale_at(&plot->y, history->steps[i].value));
	sw_stairs_end(&stairs, plot->x.to);
	if (area) {
		sw_stairs_to(&stairs, plot->x.to, plot->y.from);
		fputc('Z', out);
	}
}

static bool has_usage(const struct sw_html *page)
{
	for (size_t r = 0; r < page->count; r++)
		if (page->results[r]->usage.count > 0)
			return true;
	return false;
}

static double most(const struct sw_html *page, enum field field)
{
	double high = 0;
	for (size_t r = 0; r < page->count; r++)
		for (size_t i = 0; i < page->results[r]->usage.count; i++)
			high = fmax(high, field_of(&page->results[r]->usage.items[i], field));
	return high;
}

static void write_averaging(const struct sw_html *page, double bin_s)
{
	char text[SW_TEXT_SIZE];
	if (bin_s > 0)
		fprintf(page->out, "<p class=\"note\">Averaged over spans of %s.</p>\n", sw_text_duration(bin_s, text));
}

/* GPUs of nodes that were lost: drawn only when there were some. */
static void write_up(const struct sw_html *page, size_t index, const struct sw_plot *plot, double from_s, double to_s)
{
	const struct sw_result *result = page->results[index];
	bool lost = false;
	for (size_t i = 0; i < result->usage.count; i++)
		lost = lost || result->usage.items[i].gpus_up < result->gpus;
	if (!lost)
		return;
	struct history history;
	take_history(result, GPUS_UP, from_s, to_s, &history);
	fputs("<path class=\"up\" d=\"", page->out);
	write_steps(page->out, plot, &history, false);
	fputs("\"/>\n", page->out);
}

static double write_panel(const struct sw_html *page, size_t index, double from_s, double to_s, double gpus)
{
	char share[SW_TEXT_SIZE];
	struct sw_plot plot = {.out = page->out,
			       .width = SW_HTML_PLOT_WIDTH,
			       .height = 150,
			       .left = LEFT,
			       .right = RIGHT,
			       .top = 10,
			       .bottom = 24,
			       .label = "GPUs in use over time",
			       .x = sw_scale_linear(SW_UNIT_DURATION, from_s, to_s),
			       .y = sw_scale_linear(SW_UNIT_COUNT, 0, gpus),
			       .readout = true};
	plot.y.halves = true;
	fputs("<figure class=\"panel ", page->out);
	sw_html_classes(page, index);
	fputs("\"><figcaption>", page->out);
	sw_html_name(page, index);
	fprintf(page->out, "<span class=\"figure\">%s used</span></figcaption>\n",
		sw_text_percent(page->results[index]->summary.gpu_utilization, share));
	sw_plot_begin(&plot);
	struct history history;
	take_history(page->results[index], GPUS_USED, from_s, to_s, &history);
	sw_html_path(page, index, "series area");
	write_steps(page->out, &plot, &history, true);
	fputs("\"/>\n", page->out);
	write_up(page, index, &plot, from_s, to_s);
	sw_plot_end(&plot);
	fputs("</figure>\n", page->out);
	return history.bin_s;
}

void sw_html_gpus(const struct sw_html *page)
{
	if (!has_usage(page))
		return;
	double from_s, to_s, gpus = fmax(most(page, GPUS_UP), most(page, GPUS_USED)), bin_s = 0;
	sw_html_span(page, &from_s, &to_s);
	for (size_t r = 0; r < page->count; r++)
		gpus = fmax(gpus, (double)page->results[r]->gpus);
	sw_html_section(page, "gpus", "GPUs in use over time",
			"The top of each picture is the whole cluster; time is counted from the trace\xE2\x80\x99s zero. A dashed line "
			"shows GPUs that were up, where some were lost.");
	fputs("<div class=\"panels\">\n", page->out);
	for (size_t r = 0; r < page->count; r++)
		bin_s = fmax(bin_s, write_panel(page, r, from_s, to_s, gpus));
	fputs("</div>\n", page->out);
	write_averaging(page, bin_s);
	sw_html_section_end(page);
}

void sw_html_waiting(const struct sw_html *page)
{
	if (!has_usage(page))
		return;
	double from_s, to_s, bin_s = 0;
	sw_html_span(page, &from_s, &to_s);
	struct sw_plot plot = {.out = page->out,
			       .width = SW_HTML_PLOT_WIDTH,
			       .height = 340,
			       .left = LEFT,
			       .right = RIGHT,
			       .top = 26,
			       .bottom = 42,
			       .label = "Waiting jobs over time, one curve per policy",
			       .x = sw_scale_linear(SW_UNIT_DURATION, from_s, to_s),
			       .y = sw_scale_linear(SW_UNIT_COUNT, 0, fmax(most(page, JOBS_WAITING) * 1.05, 1)),
			       .x_title = "time since the trace began",
			       .y_title = "jobs waiting",
			       .readout = true};
	sw_html_section(page, "waiting", "Waiting jobs over time",
			"The queue: jobs that were submitted, or stopped to make room, and are not on GPUs.");
	sw_plot_begin(&plot);
	for (size_t r = 0; r < page->count; r++) {
		struct history history;
		take_history(page->results[r], JOBS_WAITING, from_s, to_s, &history);
		bin_s = fmax(bin_s, history.bin_s);
		sw_html_path(page, r, "series line");
		write_steps(page->out, &plot, &history, false);
		fputs("\"/>\n", page->out);
	}
	sw_plot_end(&plot);
	write_averaging(page, bin_s);
	sw_html_section_end(page);
}
