/* The page around the sections: names, head, legend, order. */
#include "sim/report/html.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/embed.h"
#include "sim/report/compare.h"
#include "sim/report/page.h"

static const char *or_empty(const char *text)
{
	return text != NULL ? text : "";
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(or_empty(path), '/');
	return slash != NULL ? slash + 1 : or_empty(path);
}

/* Whether another result has the same policy, or the same policy and placement. */
static bool is_repeated(const struct sw_html *page, size_t index, bool with_placement)
{
	const struct sw_result *own = page->results[index];
	for (size_t i = 0; i < page->count; i++) {
		const struct sw_result *other = page->results[i];
		if (i != index && strcmp(or_empty(own->policy), or_empty(other->policy)) == 0 &&
		    (!with_placement || strcmp(or_empty(own->placement), or_empty(other->placement)) == 0))
			return true;
	}
	return false;
}

/* "las", or "las on yarn" where placements are compared, or "las on yarn, run 3" where nothing
 * else tells them apart. */
static char *name_of(const struct sw_html *page, size_t index)
{
	const struct sw_result *result = page->results[index];
	SW_CLEANUP(sw_freep) char *raw = NULL;
	int r;
	if (!is_repeated(page, index, false))
		r = asprintf(&raw, "%s", or_empty(result->policy));
	else if (!is_repeated(page, index, true))
		r = asprintf(&raw, "%s on %s", or_empty(result->policy), or_empty(result->placement));
	else
		r = asprintf(&raw, "%s on %s, run %zu", or_empty(result->policy), or_empty(result->placement), index + 1);
	if (r < 0) {
		raw = NULL;
		return NULL;
	}
	return sw_text_clean(raw);
}

/* A chip of the head: what all results have in common, or that they differ. */
static void write_chip(const struct sw_html *page, const char *label, size_t field)
{
	const char *common = NULL;
	for (size_t i = 0; i < page->count; i++) {
		const char *value = or_empty(*(char *const *)((const char *)page->results[i] + field));
		if (common != NULL && strcmp(common, value) != 0)
			value = "several";
		common = value;
		if (strcmp(common, "several") == 0)
			break;
	}
	if (common == NULL || common[0] == '\0')
		return;
	fprintf(page->out, "<div><dt>%s</dt><dd>", label);
	sw_text_html(page->out, common);
	fputs("</dd></div>\n", page->out);
}

static void write_chips(const struct sw_html *page)
{
	char number[SW_TEXT_SIZE];
	fputs("<dl class=\"chips\">\n", page->out);
	write_chip(page, "trace", offsetof(struct sw_result, trace));
	write_chip(page, "cluster", offsetof(struct sw_result, cluster));
	write_chip(page, "world", offsetof(struct sw_result, world));
	write_chip(page, "placement", offsetof(struct sw_result, placement));
	if (page->count > 0)
		fprintf(page->out, "<div><dt>jobs</dt><dd>%s</dd></div>\n<div><dt>seed</dt><dd>%" PRIu64 "</dd></div>\n",
			sw_text_count(page->results[0]->summary.jobs, number), page->results[0]->seed);
	fputs("</dl>\n", page->out);
}

static void write_head(const struct sw_html *page)
{
	fputs("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
	      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src "
	      "'unsafe-inline'; img-src data:\"/>\n"
	      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<meta name=\"color-scheme\" content=\"light "
	      "dark\"/>\n"
	      "<meta name=\"generator\" content=\"sharewell\"/>\n<link rel=\"icon\" href=\"data:,\"/>\n<title>",
	      page->out);
	for (size_t i = 0; i < page->count; i++) {
		fputs(i > 0 ? ", " : "", page->out);
		sw_text_html(page->out, page->names[i]);
	}
	if (page->count > 0) {
		fputs(" on ", page->out);
		sw_text_html(page->out, base_name(page->results[0]->trace));
	}
	fprintf(page->out, " \xC2\xB7 Sharewell simulation</title>\n<style>\n%s</style>\n</head>\n<body>\n<main>\n",
		sw_embedded("sim/report/style.css", NULL));
}

static void write_legend(const struct sw_html *page)
{
	if (page->count < 2)
		return;
	fputs("<nav class=\"legend\" aria-label=\"policies\">\n", page->out);
	for (size_t i = 0; i < page->count; i++) {
		fprintf(page->out, "<span class=\"item\" data-series=\"s%zu\">", i);
		sw_html_name(page, i);
		fputs("</span>\n", page->out);
	}
	fputs("</nav>\n", page->out);
}

static int write_page(const struct sw_html *page)
{
	write_head(page);
	fputs("<header>\n<p class=\"brand\">Sharewell <span>simulation report</span></p>\n<h1>", page->out);
	if (page->count > 0) {
		sw_text_html(page->out, base_name(page->results[0]->trace));
		fputs(" on ", page->out);
		sw_text_html(page->out, page->results[0]->cluster);
	} else {
		fputs("Nothing to report", page->out);
	}
	fputs("</h1>\n", page->out);
	write_chips(page);
	sw_html_headline(page);
	fputs("</header>\n", page->out);
	if (page->count > 0) {
		sw_html_scores(page);
		write_legend(page);
		fputs("<div class=\"grid\">\n", page->out);
		sw_html_jct(page);
		sw_html_slowdown(page);
		if (sw_html_queueing(page) < 0)
			return SW_ENOMEM;
		sw_html_waiting(page);
		fputs("</div>\n", page->out);
		sw_html_gpus(page);
		sw_html_exchange(page);
		sw_html_deadlines(page);
		sw_html_longest(page);
	}
	sw_html_facts(page);
	fprintf(page->out, "</main>\n<script>\n%s</script>\n</body>\n</html>\n", sw_embedded("sim/report/script.js", NULL));
	return 0;
}

static int name_and_write(struct sw_html *page)
{
	for (size_t i = 0; i < page->count; i++) {
		page->names[i] = name_of(page, i);
		if (page->names[i] == NULL)
			return SW_ENOMEM;
	}
	return write_page(page);
}

int sw_results_html(FILE *out, const struct sw_result *const *results, size_t count, const char *command, struct sw_err *err)
{
	SW_CLEANUP(sw_freep) char **names = calloc(count + 1, sizeof *names);
	struct sw_html page = {.out = out, .results = results, .count = count, .names = names, .command = command};
	page.winner = sw_compare_winner(results, count);
	page.baseline = sw_compare_baseline(results, count);
	int r = names == NULL ? SW_ENOMEM : name_and_write(&page);
	for (size_t i = 0; names != NULL && i < count; i++)
		free(names[i]);
	if (r < 0)
		return sw_err_set(err, r, "cannot write the HTML report: out of memory");
	return ferror(out) ? sw_err_set(err, SW_EIO, "cannot write the HTML report") : 0;
}
