/* The result in words: which is fastest, by how much, at what price; and what must be
 * known before believing it. */
#include "sim/report/page.h"

#include <stdbool.h>
#include <string.h>

#include "sim/report/compare.h"

/* Differences below this are no news. */
#define NOTABLE 1.005

static void write_strong(const struct sw_html *page, size_t index)
{
	fputs("<strong>", page->out);
	sw_text_html(page->out, page->names[index]);
	fputs("</strong>", page->out);
}

/* A duration that is not broken over two lines. */
static void write_time(const struct sw_html *page, const char *before, double seconds, const char *after)
{
	char text[SW_TEXT_SIZE];
	fprintf(page->out, "%s<span class=\"whole\">%s</span>%s", before, sw_text_duration(seconds, text), after);
}

static double average_s(const struct sw_html *page, size_t index)
{
	return page->results[index]->summary.jct_avg_s;
}

static void write_alone(const struct sw_html *page)
{
	fputs("With ", page->out);
	write_strong(page, page->winner);
	write_time(page, " a job takes ", average_s(page, page->winner), " on average, ");
	write_time(page, "", page->results[page->winner]->summary.queue_avg_s, " of it waiting.");
}

static void write_equal(const struct sw_html *page)
{
	fputs(page->count == 2 ? "Both policies" : "All policies", page->out);
	write_time(page, " take the same time on average: a job ends ", average_s(page, page->winner), " after it was submitted.");
}

static void write_duel(const struct sw_html *page, size_t best, size_t other)
{
	double best_s = average_s(page, best), other_s = average_s(page, other);
	char factor[SW_TEXT_SIZE];
	write_strong(page, best);
	if (other_s >= 1.1 * best_s && best_s > 0)
		fprintf(page->out, " finishes jobs %s\xC3\x97 sooner", sw_text_factor(other_s / best_s, factor));
	else
		fprintf(page->out, " finishes jobs %s sooner", sw_text_percent((other_s - best_s) / other_s, factor));
	fputs(" on average than ", page->out);
	write_strong(page, other);
	write_time(page, ": after ", best_s, " instead of ");
	write_time(page, "", other_s, ".");
}

static bool is_slower(const struct sw_html *page, size_t index)
{
	return average_s(page, index) > average_s(page, page->winner) * NOTABLE;
}

/* The result that the winner is compared with: the baseline, or where that is as good as
 * the winner, the slowest. */
static size_t rival_of(const struct sw_html *page)
{
	size_t rival = page->baseline;
	if (is_slower(page, rival))
		return rival;
	for (size_t i = 0; i < page->count; i++)
		if (sw_compare_fair(page->results, page->count, i) && average_s(page, i) > average_s(page, rival))
			rival = i;
	return rival;
}

static void write_price(const struct sw_html *page, size_t rival)
{
	const struct sw_summary *best = &page->results[page->winner]->summary, *other = &page->results[rival]->summary;
	bool duel = rival != page->winner;
	char a[SW_TEXT_SIZE], b[SW_TEXT_SIZE];
	write_time(page, "Half of its jobs are done within ", best->jct_median_s, duel ? " (" : "");
	if (duel) {
		write_time(page, "", other->jct_median_s, " with ");
		sw_text_html(page->out, page->names[rival]);
	}
	write_time(page, duel ? "); the slowest hundredth takes longer than " : "; the slowest hundredth takes longer than ",
		   best->jct_p99_s, "");
	if (duel)
		write_time(page, " (", other->jct_p99_s, ")");
	fprintf(page->out, ". It keeps %s of the GPUs busy", sw_text_percent(best->gpu_utilization, a));
	if (duel)
		fprintf(page->out, " (%s)", sw_text_percent(other->gpu_utilization, a));
	if (best->preemptions == 0 && best->migrations == 0)
		fputs(" without stopping or moving a job.", page->out);
	else
		fprintf(page->out, ", with %s and %s.", sw_text_plural(best->preemptions, "preemption", "preemptions", a),
			sw_text_plural(best->migrations, "migration", "migrations", b));
	if (duel && best->jct_p99_s > other->jct_p99_s * 1.05 && other->jct_p99_s > 0)
		fprintf(page->out, " The slowest jobs pay for it: the 99th percentile is %s\xC3\x97 as long.",
			sw_text_factor(best->jct_p99_s / other->jct_p99_s, a));
}

static void write_sentence(const struct sw_html *page, size_t rival)
{
	if (page->count == 0)
		fputs("Nothing was simulated.", page->out);
	else if (page->winner == page->count)
		fputs("No job finished.", page->out);
	else if (page->count == 1)
		write_alone(page);
	else if (!is_slower(page, rival))
		write_equal(page);
	else
		write_duel(page, page->winner, rival);
}

static void begin_warning(const struct sw_html *page, size_t index)
{
	fputs("<p class=\"warning\"><span class=\"mark\" aria-hidden=\"true\">!</span> <strong>", page->out);
	sw_text_html(page->out, page->names[index]);
	fputs("</strong>: ", page->out);
}

/* What the engine had to say, and whose averages are about other jobs. */
static void write_warnings(const struct sw_html *page)
{
	for (size_t i = 0; i < page->count; i++) {
		const struct sw_result *result = page->results[i];
		char a[SW_TEXT_SIZE], b[SW_TEXT_SIZE];
		if (result->notes != NULL && result->notes[strspn(result->notes, " \t\r\n")] != '\0') {
			begin_warning(page, i);
			sw_text_html(page->out, result->notes);
			fputs("</p>\n", page->out);
		}
		if (page->winner != page->count && !sw_compare_fair(page->results, page->count, i)) {
			begin_warning(page, i);
			fprintf(page->out, "finished only %s of %s; its averages are about other jobs than those of the rest.</p>\n",
				sw_text_count(result->summary.finished, a), sw_text_plural(result->summary.jobs, "job", "jobs", b));
		}
	}
}

void sw_html_headline(const struct sw_html *page)
{
	size_t rival = page->winner == page->count ? page->count : rival_of(page);
	fputs("<p class=\"headline\">", page->out);
	write_sentence(page, rival);
	fputs("</p>\n", page->out);
	if (page->winner != page->count && page->results[page->winner]->summary.finished > 1) {
		fputs("<p class=\"lede\">", page->out);
		write_price(page, rival);
		fputs("</p>\n", page->out);
	}
	write_warnings(page);
}
