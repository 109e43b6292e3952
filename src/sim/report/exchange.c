/* Which jobs gain and which lose by a policy: job by job against the baseline. An average hides
 * this. Also the deadlines, which are drawn alike. */
#include "sim/report/page.h"

#include "base/number.h"

/* A second makes no difference. */
#define SAME_NS SW_NS_PER_S

struct part {
	const char *style, *word;
	uint64_t jobs;
};

/* One bar, divided; the parts' numbers stand beside it in words. */
static void write_row(const struct sw_html *page, size_t index, const struct part *parts, size_t count)
{
	char number[SW_TEXT_SIZE], share[SW_TEXT_SIZE];
	uint64_t all = 0;
	for (size_t i = 0; i < count; i++)
		all += parts[i].jobs;
	fputs("<tr class=\"row ", page->out);
	sw_html_classes(page, index);
	fputs("\"><th scope=\"row\">", page->out);
	sw_html_name(page, index);
	fputs("</th><td class=\"parts\"><span class=\"split\" aria-hidden=\"true\">", page->out);
	for (size_t i = 0; i < count; i++)
		if (parts[i].jobs > 0)
			fprintf(page->out, "<i class=\"%s\" style=\"width:%s%%\"></i>", parts[i].style,
				sw_text_short(100 * (double)parts[i].jobs / (double)all, 2, share));
	fputs("</span></td>", page->out);
	for (size_t i = 0; i < count; i++)
		fprintf(page->out, "<td class=\"part\" title=\"%s\">%s</td>", sw_text_plural(parts[i].jobs, "job", "jobs", number),
			all == 0 ? "\xE2\x80\x93" : sw_text_percent((double)parts[i].jobs / (double)all, share));
	fputs("</tr>\n", page->out);
}

static void write_head(const struct sw_html *page, const struct part *parts, size_t count)
{
	fputs("<table class=\"exchange\">\n<thead><tr><th scope=\"col\">policy</th><th aria-hidden=\"true\"></th>", page->out);
	for (size_t i = 0; i < count; i++)
		fprintf(page->out, "<th scope=\"col\"><i class=\"swatch %s\"></i>%s</th>", parts[i].style, parts[i].word);
	fputs("</tr></thead>\n<tbody>\n", page->out);
}

/* False when the two are not about the same jobs. */
static bool compare(const struct sw_result *result, const struct sw_result *baseline, struct part parts[3])
{
	if (result->outcomes.count != baseline->outcomes.count)
		return false;
	for (size_t i = 0; i < result->outcomes.count; i++) {
		const struct sw_outcome *own = &result->outcomes.items[i], *other = &baseline->outcomes.items[i];
		if (own->id != other->id)
			return false;
		if (own->state != SW_OUTCOME_FINISHED || other->state != SW_OUTCOME_FINISHED)
			continue;
		int64_t gain_ns = other->end_ns - own->end_ns;
		parts[gain_ns > SAME_NS ? 0 : gain_ns >= -SAME_NS ? 1 : 2].jobs++;
	}
	return true;
}

void sw_html_exchange(const struct sw_html *page)
{
	const struct part fresh[3] = {{"good", "sooner", 0}, {"same", "same", 0}, {"bad", "later", 0}};
	if (page->count < 2 || page->baseline == page->count)
		return;
	fputs("<section id=\"exchange\">\n<h2>Which jobs gain, which lose against ", page->out);
	sw_text_html(page->out, page->names[page->baseline]);
	fputs("</h2>\n<p class=\"how\">Each job that finished under both is compared with itself; within a second counts as the "
	      "same.</p>\n",
	      page->out);
	write_head(page, fresh, 3);
	for (size_t r = 0; r < page->count; r++) {
		struct part parts[3] = {fresh[0], fresh[1], fresh[2]};
		if (r != page->baseline && compare(page->results[r], page->results[page->baseline], parts))
			write_row(page, r, parts, 3);
	}
	fputs("</tbody></table>\n", page->out);
	sw_html_section_end(page);
}

void sw_html_deadlines(const struct sw_html *page)
{
	const struct part fresh[2] = {{"good", "met", 0}, {"bad", "missed", 0}};
	uint64_t most = 0;
	char number[SW_TEXT_SIZE];
	for (size_t r = 0; r < page->count; r++)
		if (page->results[r]->summary.deadlines > most)
			most = page->results[r]->summary.deadlines;
	if (most == 0)
		return;
	sw_html_section(page, "deadlines", "Deadlines", NULL);
	fprintf(page->out, "<p class=\"how\">%s a deadline. A job that did not finish missed it.</p>\n",
		sw_text_plural(most, "job had", "jobs had", number));
	write_head(page, fresh, 2);
	for (size_t r = 0; r < page->count; r++) {
		const struct sw_summary *summary = &page->results[r]->summary;
		struct part parts[2] = {fresh[0], fresh[1]};
		parts[0].jobs = summary->deadlines - summary->deadlines_missed;
		parts[1].jobs = summary->deadlines_missed;
		write_row(page, r, parts, 2);
	}
	fputs("</tbody></table>\n", page->out);
	sw_html_section_end(page);
}
