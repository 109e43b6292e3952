/* What the sections of the HTML report share. Each section is one file; html.c puts them in order.
 * Private to this folder. */
#ifndef SW_SIM_REPORT_PAGE_H
#define SW_SIM_REPORT_PAGE_H

#include <stddef.h>
#include <stdio.h>

#include "sim/report/svg.h"
#include "sim/result.h"

struct sw_html {
	FILE *out;
	const struct sw_result *const *results;
	size_t count;
	char **names;	 /* of the results, each different */
	size_t winner;	 /* the result with the shortest average JCT; `count` when nothing finished */
	size_t baseline; /* the result that the others are held against; `count` when nothing finished */
	const char *command;
};

/* The width of every plot: at this size a pixel of the picture is about a
 * pixel of a laptop's screen. */
#define SW_HTML_PLOT_WIDTH 640

/* The classes that give result `index` its colour and dash, and by which the script finds
 * all that belongs to it. */
void sw_html_classes(const struct sw_html *page, size_t index);
/* A name with its colour in front. */
void sw_html_name(const struct sw_html *page, size_t index);
/* `<section>` with heading and a sentence that says how to read it (ours, may hold
 * markup; NULL for none). */
void sw_html_section(const struct sw_html *page, const char *id, const char *title, const char *explanation);
void sw_html_section_end(const struct sw_html *page);
/* Opens a path of result `index` as far as its data: `<path class=".." data-name=".."
 * d="`. Close it with `"/>`. */
void sw_html_path(const struct sw_html *page, size_t index, const char *style);

/* The time that all results cover together: from the first submit to the last end or sample. */
void sw_html_span(const struct sw_html *page, double *ret_from_s, double *ret_to_s);

/* The sections. Those that return int may run out of memory. */
void sw_html_headline(const struct sw_html *page);
void sw_html_scores(const struct sw_html *page);
void sw_html_jct(const struct sw_html *page);
void sw_html_slowdown(const struct sw_html *page);
int sw_html_queueing(const struct sw_html *page);
void sw_html_gpus(const struct sw_html *page);
void sw_html_waiting(const struct sw_html *page);
void sw_html_exchange(const struct sw_html *page);
void sw_html_deadlines(const struct sw_html *page);
void sw_html_longest(const struct sw_html *page);
void sw_html_facts(const struct sw_html *page);

#endif
