/* The comparison: one row per result, a bar under each number, the best of each column marked. */
#include "sim/report/page.h"

#include <inttypes.h>

#include "sim/report/compare.h"

static const struct {
	const char *title, *meaning;
	enum sw_metric metric;
} columns[] = {
	{"average JCT", "job completion time: from submit to end, of finished jobs", SW_METRIC_JCT_AVG},
	{"median", "half of the finished jobs took less", SW_METRIC_JCT_MEDIAN},
	{"p95", "95 in 100 finished jobs took less", SW_METRIC_JCT_P95},
	{"p99", "99 in 100 finished jobs took less", SW_METRIC_JCT_P99},
	{"average wait", "time from submit to end that a job was not on GPUs", SW_METRIC_QUEUE_AVG},
	{"makespan", "end of the last job, counted from the trace's time zero", SW_METRIC_MAKESPAN},
	{"GPUs used", "GPU time used of the GPU time available, first submit to last end", SW_METRIC_UTILIZATION},
	{"preemptions", "times a running job was stopped to make room", SW_METRIC_PREEMPTIONS},
	{"migrations", "times a job went on elsewhere", SW_METRIC_MIGRATIONS},
	{"finished", "jobs that ran to their end, of all jobs", SW_METRIC_FINISHED},
};

#define COLUMNS (sizeof columns / sizeof columns[0])

static void write_value(const struct sw_html *page, const struct sw_result *result, enum sw_metric metric)
{
	char a[SW_TEXT_SIZE], b[SW_TEXT_SIZE];
	double value = sw_metric_value(result, metric);
	switch (metric) {
	case SW_METRIC_UTILIZATION:
		fputs(sw_text_percent(value, a), page->out);
		break;
	case SW_METRIC_PREEMPTIONS:
		fputs(sw_text_count(result->summary.preemptions, a), page->out);
		break;
	case SW_METRIC_MIGRATIONS:
		fputs(sw_text_count(result->summary.migrations, a), page->out);
		break;
	case SW_METRIC_FINISHED:
		if (result->summary.finished == result->summary.jobs)
			fputs(sw_text_count(result->summary.jobs, a), page->out);
		else
			fprintf(page->out, "%s of %s", sw_text_count(result->summary.finished, a), sw_text_count(result->summary.jobs, b));
		break;
	default:
		if (result->summary.finished == 0 && metric != SW_METRIC_MAKESPAN)
			fputs("\xE2\x80\x93", page->out);
		else
			fprintf(page->out, "<span title=\"%s s\">%s</span>", sw_text_decimal(value, 2, b), sw_text_duration(value, a));
	}
}

/* The bar's length, in percent of the longest of its column. */
static double bar_length(const struct sw_html *page, size_t row, enum sw_metric metric)
{
	double longest = metric == SW_METRIC_UTILIZATION ? 1 : 0;
	for (size_t i = 0; i < page->count; i++) {
		double value =
			metric == SW_METRIC_FINISHED ? (double)page->results[i]->summary.jobs : sw_metric_value(page->results[i], metric);
		if (value > longest)
			longest = value;
	}
	return longest > 0 ? 100 * sw_metric_value(page->results[row], metric) / longest : 0;
}

static void write_cell(const struct sw_html *page, size_t row, enum sw_metric metric)
{
	char length[SW_TEXT_SIZE];
	bool best = sw_compare_best(page->results, page->count, metric, row);
	fprintf(page->out, "<td%s>", best ? " class=\"best\"" : "");
	if (best)
		fputs("<span class=\"crown\" role=\"img\" aria-label=\"best\">\xE2\x98\x85</span> ", page->out);
	write_value(page, page->results[row], metric);
	fprintf(page->out, "<span class=\"bar\"><i style=\"width:%s%%\"></i></span></td>",
		sw_text_short(bar_length(page, row, metric), 1, length));
}

void sw_html_scores(const struct sw_html *page)
{
	sw_html_section(page, "scores", page->count > 1 ? "Comparison" : "Summary",
			page->count < 2 ? NULL
					: "Under each number, a bar relative to the largest in its column. <span "
					  "class=\"crown\">\xE2\x98\x85</span> marks the best.");
	fputs("<div class=\"wide\"><table class=\"scores\">\n<thead><tr><th scope=\"col\">policy</th>", page->out);
	for (size_t c = 0; c < COLUMNS; c++)
		fprintf(page->out, "<th scope=\"col\"><abbr title=\"%s\">%s</abbr></th>", columns[c].meaning, columns[c].title);
	fputs("</tr></thead>\n<tbody>\n", page->out);
	for (size_t r = 0; r < page->count; r++) {
		fputs("<tr class=\"row ", page->out);
		sw_html_classes(page, r);
		fputs("\"><th scope=\"row\">", page->out);
		sw_html_name(page, r);
		fputs("</th>", page->out);
		for (size_t c = 0; c < COLUMNS; c++)
			write_cell(page, r, columns[c].metric);
		fputs("</tr>\n", page->out);
	}
	fputs("</tbody></table></div>\n", page->out);
	sw_html_section_end(page);
}
