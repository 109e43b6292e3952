/* What the numbers rest on: the assumptions in force, what each run cost, and the command
 * that makes them again. */
#include "sim/report/page.h"

#include <inttypes.h>
#include <string.h>

#include "base/number.h"

static const char *or_empty(const char *text)
{
	return text != NULL ? text : "";
}

/* Each line that says something becomes an item. */
static void write_lines(FILE *out, const char *text)
{
	fputs("<ul>\n", out);
	while (*text != '\0') {
		text += strspn(text, " \t\r\n");
		size_t length = strcspn(text, "\r\n");
		if (length > 0) {
			fputs("<li>", out);
			sw_text_html_n(out, text, length);
			fputs("</li>\n", out);
		}
		text += length;
	}
	fputs("</ul>\n", out);
}

/* Whether result `index` is the first with its assumptions. */
static bool is_first(const struct sw_html *page, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (strcmp(or_empty(page->results[i]->assumptions), or_empty(page->results[index]->assumptions)) == 0)
			return false;
	return true;
}

static void write_assumptions(const struct sw_html *page)
{
	size_t kinds = 0;
	for (size_t i = 0; i < page->count; i++)
		kinds += is_first(page, i);
	for (size_t i = 0; i < page->count; i++) {
		const char *text = or_empty(page->results[i]->assumptions);
		if (!is_first(page, i))
			continue;
		if (kinds > 1) {
			fputs("<h3>", page->out);
			for (size_t k = i; k < page->count; k++)
				if (strcmp(or_empty(page->results[k]->assumptions), text) == 0)
					sw_html_name(page, k);
			fputs("</h3>\n", page->out);
		}
		if (text[strspn(text, " \t\r\n")] != '\0')
			write_lines(page->out, text);
		else
			fputs("<p class=\"none\">None were stated.</p>\n", page->out);
	}
}

static void write_run(const struct sw_html *page, size_t index)
{
	const struct sw_result *result = page->results[index];
	char text[SW_TEXT_SIZE];
	fputs("<tr><th scope=\"row\">", page->out);
	sw_html_name(page, index);
	fprintf(page->out, "</th><td><code>%016" PRIx64 "</code></td><td>%" PRIu64 "</td>", result->log_hash, result->seed);
	fprintf(page->out, "<td>%s</td>", sw_text_count(result->events, text));
	fprintf(page->out, "<td>%s</td>", sw_text_count(result->decisions, text));
	fprintf(page->out, "<td>%s</td>", sw_text_duration((double)result->decision_p99_ns / SW_NS_PER_S, text));
	fprintf(page->out, "<td>%s</td>", sw_text_duration(result->cpu_s, text));
	fprintf(page->out, "<td>%s MiB</td></tr>\n", sw_text_count((result->max_rss_bytes + (UINT64_C(1) << 19)) >> 20, text));
}

void sw_html_facts(const struct sw_html *page)
{
	sw_html_section(page, "assumptions", "Assumptions in force", "What the simulated world charged for, and what it left out.");
	write_assumptions(page);
	sw_html_section_end(page);
	sw_html_section(page, "run", "How this was made", NULL);
	if (page->command != NULL && page->command[0] != '\0') {
		fputs("<pre class=\"command\"><code>", page->out);
		sw_text_html(page->out, page->command);
		fputs("</code></pre>\n", page->out);
	}
	fputs("<p class=\"how\">The same seed gives the same log hash on every machine; processor time and decision time are measured and "
	      "do not repeat.</p>\n"
	      "<div class=\"wide\"><table class=\"plain\">\n<thead><tr><th scope=\"col\">policy</th><th scope=\"col\">log hash</th><th "
	      "scope=\"col\">seed</th>"
	      "<th scope=\"col\">events</th><th scope=\"col\">decisions</th><th scope=\"col\">decision p99</th><th scope=\"col\">CPU "
	      "time</th>"
	      "<th scope=\"col\">memory</th></tr></thead>\n<tbody>\n",
	      page->out);
	for (size_t r = 0; r < page->count; r++)
		write_run(page, r);
	fputs("</tbody></table></div>\n", page->out);
	sw_html_section_end(page);
}
