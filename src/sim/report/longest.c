/* The jobs that waited longest: where to look when a user complains. */
#include "sim/report/page.h"

#include <inttypes.h>

#include "base/number.h"

#define LONGEST_MAX 5

/* The result's longest waits, longest first, earlier jobs first among equals. Returns how many. */
static size_t find_longest(const struct sw_result *result, size_t wanted, const struct sw_outcome *longest[LONGEST_MAX])
{
	size_t count = 0;
	for (size_t i = 0; i < result->outcomes.count; i++) {
		const struct sw_outcome *outcome = &result->outcomes.items[i];
		if (outcome->state == SW_OUTCOME_REFUSED || outcome->wait_ns <= 0)
			continue;
		size_t place = count;
		while (place > 0 && longest[place - 1]->wait_ns < outcome->wait_ns)
			place--;
		if (place == wanted)
			continue;
		if (count < wanted)
			count++;
		for (size_t k = count - 1; k > place; k--)
			longest[k] = longest[k - 1];
		longest[place] = outcome;
	}
	return count;
}

static void write_job(const struct sw_html *page, const struct sw_outcome *job)
{
	char text[SW_TEXT_SIZE];
	fprintf(page->out, "<td>%" PRId64 "</td><td>%" PRIu32 "</td>", job->id, job->gpus);
	fprintf(page->out, "<td>%s</td>", sw_text_duration((double)job->submit_ns / SW_NS_PER_S, text));
	fprintf(page->out, "<td class=\"strong\">%s</td>", sw_text_duration((double)job->wait_ns / SW_NS_PER_S, text));
	fprintf(page->out, "<td>%s</td>", sw_text_duration((double)job->run_ns / SW_NS_PER_S, text));
	if (job->state != SW_OUTCOME_FINISHED)
		fprintf(page->out, "<td>%s</td>", job->state == SW_OUTCOME_FAILED ? "failed" : "not finished");
	else if (job->work_ns > 0)
		fprintf(page->out, "<td>%s\xC3\x97</td>",
			sw_text_factor((double)(job->end_ns - job->submit_ns) / (double)job->work_ns, text));
	else
		fputs("<td>\xE2\x80\x93</td>", page->out);
	fprintf(page->out, "<td>%s</td></tr>\n", sw_text_count(job->preemptions, text));
}

void sw_html_longest(const struct sw_html *page)
{
	size_t wanted = page->count <= 3 ? LONGEST_MAX : page->count <= 8 ? 3 : 1;
	sw_html_section(page, "longest", "The longest waits", NULL);
	fputs("<div class=\"wide\"><table class=\"plain\">\n<thead><tr><th scope=\"col\">policy</th><th scope=\"col\">job</th><th "
	      "scope=\"col\">GPUs</th>"
	      "<th scope=\"col\">submitted at</th><th scope=\"col\">waited</th><th scope=\"col\">ran</th>"
	      "<th scope=\"col\"><abbr title=\"completion time over the time it needs alone\">slowdown</abbr></th>"
	      "<th scope=\"col\">preempted</th></tr></thead>\n",
	      page->out);
	for (size_t r = 0; r < page->count; r++) {
		const struct sw_outcome *longest[LONGEST_MAX];
		size_t found = find_longest(page->results[r], wanted, longest);
		fputs("<tbody>\n", page->out);
		for (size_t i = 0; i < found; i++) {
			fputs("<tr>", page->out);
			if (i == 0) {
				fprintf(page->out, "<th scope=\"rowgroup\" rowspan=\"%zu\">", found);
				sw_html_name(page, r);
				fputs("</th>", page->out);
			}
			write_job(page, longest[i]);
		}
		if (found == 0) {
			fputs("<tr><th scope=\"row\">", page->out);
			sw_html_name(page, r);
			fputs("</th><td colspan=\"7\" class=\"none\">no job waited</td></tr>\n", page->out);
		}
		fputs("</tbody>\n", page->out);
	}
	fputs("</table></div>\n", page->out);
	sw_html_section_end(page);
}
