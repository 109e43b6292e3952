#include "sim/report/page.h"

#include "base/number.h"

#define COLOURS 8
#define DASHES 3

void sw_html_classes(const struct sw_html *page, size_t index)
{
	fprintf(page->out, "s%zu k%zu d%zu", index, index % COLOURS, index / COLOURS % DASHES);
}

void sw_html_name(const struct sw_html *page, size_t index)
{
	fputs("<span class=\"name ", page->out);
	sw_html_classes(page, index);
	fputs("\"><svg class=\"key\" viewBox=\"0 0 22 10\" aria-hidden=\"true\"><path class=\"line\" d=\"M0 5H22\"/></svg>", page->out);
	sw_text_html(page->out, page->names[index]);
	fputs("</span>", page->out);
}

void sw_html_section(const struct sw_html *page, const char *id, const char *title, const char *explanation)
{
	fprintf(page->out, "<section id=\"%s\">\n<h2>%s</h2>\n", id, title);
	if (explanation != NULL)
		fprintf(page->out, "<p class=\"how\">%s</p>\n", explanation);
}

void sw_html_section_end(const struct sw_html *page)
{
	fputs("</section>\n", page->out);
}

void sw_html_path(const struct sw_html *page, size_t index, const char *style)
{
	fprintf(page->out, "<path class=\"%s ", style);
	sw_html_classes(page, index);
	fputs("\" data-name=\"", page->out);
	sw_text_html(page->out, page->names[index]);
	fputs("\" d=\"", page->out);
}

void sw_html_span(const struct sw_html *page, double *ret_from_s, double *ret_to_s)
{
	int64_t from = SW_NEVER, to = 0;
	for (size_t r = 0; r < page->count; r++) {
		const struct sw_result *result = page->results[r];
		/* Both are in order of time. */
		if (result->outcomes.count > 0 && result->outcomes.items[0].submit_ns < from)
			from = result->outcomes.items[0].submit_ns;
		if (result->usage.count > 0 && result->usage.items[result->usage.count - 1].at_ns > to)
			to = result->usage.items[result->usage.count - 1].at_ns;
		int64_t end = (int64_t)(result->summary.makespan_s * SW_NS_PER_S);
		if (end > to)
			to = end;
	}
	if (from > to)
		from = to;
	*ret_from_s = (double)from / SW_NS_PER_S;
	*ret_to_s = (double)to / SW_NS_PER_S;
}
