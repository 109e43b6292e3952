/* Text tables: every cell is made first, then the columns that fit are chosen, then lines are
 * drawn. */
#include "sim/report/table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "sim/report/compare.h"

#define DEFAULT_WIDTH 120
#define NAME_COLUMNS_MAX 24

/* `rank`: what goes first when the terminal is narrow (the highest number); 0 always stays. */
static const struct column {
	const char *title;
	enum sw_metric metric;
	unsigned rank;
} columns[] = {
	{"avg JCT", SW_METRIC_JCT_AVG, 0},     {"median", SW_METRIC_JCT_MEDIAN, 5},   {"p95", SW_METRIC_JCT_P95, 6},
	{"p99", SW_METRIC_JCT_P99, 2},	       {"avg queue", SW_METRIC_QUEUE_AVG, 1}, {"makespan", SW_METRIC_MAKESPAN, 7},
	{"preempt", SW_METRIC_PREEMPTIONS, 8}, {"migrate", SW_METRIC_MIGRATIONS, 10}, {"util", SW_METRIC_UTILIZATION, 4},
	{"finished", SW_METRIC_FINISHED, 3},   {"cpu s", SW_METRIC_CPU, 9},
};

#define COLUMNS (sizeof columns / sizeof columns[0])

struct cell {
	char text[SW_TEXT_SIZE];
	bool best;
};

struct table {
	FILE *out;
	const struct sw_result *const *results;
	size_t rows;
	struct sw_table_style style;
	struct cell *cells;	/* rows x COLUMNS */
	size_t widths[COLUMNS]; /* with the place of the asterisk */
	bool shown[COLUMNS];
	bool starred[COLUMNS]; /* has a place for an asterisk behind each number, so that digits stand under digits */
	size_t name_width;
};

/* Fewer decimals for long numbers, but the same for a whole column. */
static unsigned decimals_of(const struct table *table, enum sw_metric metric)
{
	double longest = 0;
	for (size_t r = 0; r < table->rows; r++)
		if (sw_metric_value(table->results[r], metric) > longest)
			longest = sw_metric_value(table->results[r], metric);
	return longest < 1e5 ? 2 : longest < 1e6 ? 1 : 0;
}

static void format_cell(const struct table *table, const struct sw_result *result, enum sw_metric metric, char *text)
{
	char number[SW_TEXT_SIZE];
	double value = sw_metric_value(result, metric);
	switch (metric) {
	case SW_METRIC_UTILIZATION:
		snprintf(text, SW_TEXT_SIZE, "%.40s %%", sw_text_decimal(value * 100, 1, number));
		break;
	case SW_METRIC_PREEMPTIONS:
	case SW_METRIC_MIGRATIONS:
		sw_text_decimal(value, 0, text);
		break;
	case SW_METRIC_FINISHED:
		snprintf(text, SW_TEXT_SIZE, "%" PRIu64 "/%" PRIu64, result->summary.finished, result->summary.jobs);
		break;
	case SW_METRIC_CPU:
		if (result->recorded)
			snprintf(text, SW_TEXT_SIZE, "-");
		else
			sw_text_decimal(value, 2, text);
		break;
	default:
		if (result->summary.finished == 0 && metric != SW_METRIC_MAKESPAN)
			snprintf(text, SW_TEXT_SIZE, "-");
		else if (table->style.human)
			sw_text_duration(value, text);
		else
			sw_text_decimal(value, decimals_of(table, metric), text);
	}
}

static void fill_cells(struct table *table)
{
	for (size_t c = 0; c < COLUMNS; c++) {
		table->shown[c] = true;
		table->widths[c] = strlen(columns[c].title);
		for (size_t r = 0; r < table->rows; r++) {
			struct cell *cell = &table->cells[r * COLUMNS + c];
			format_cell(table, table->results[r], columns[c].metric, cell->text);
			cell->best = sw_compare_best(table->results, table->rows, columns[c].metric, r);
			table->starred[c] = table->starred[c] || (cell->best && !table->style.colour);
			if (sw_text_columns(cell->text) > table->widths[c])
				table->widths[c] = sw_text_columns(cell->text);
		}
		table->widths[c] += table->starred[c];
	}
}

/* Two columns of air before each cell; the place of an asterisk is one of them. */
static size_t air_before(const struct table *table, size_t column)
{
	while (column > 0)
		if (table->shown[--column])
			return table->starred[column] ? 1 : 2;
	return 2;
}

/* With one column of air at either side, and the two bars of the frame. */
static size_t total_width(const struct table *table)
{
	size_t width = table->name_width + 4;
	for (size_t c = 0; c < COLUMNS; c++)
		if (table->shown[c])
			width += table->widths[c] + air_before(table, c);
	return width;
}

static void drop_columns(struct table *table)
{
	while (total_width(table) > table->style.width) {
		size_t last = COLUMNS;
		for (size_t c = 0; c < COLUMNS; c++)
			if (table->shown[c] && columns[c].rank > 0 && (last == COLUMNS || columns[c].rank > columns[last].rank))
				last = c;
		if (last == COLUMNS)
			return;
		table->shown[last] = false;
	}
}

static void repeat(FILE *out, const char *text, size_t times)
{
	while (times-- > 0)
		fputs(text, out);
}

static void write_rule(const struct table *table, const char *left, const char *right)
{
	fputs(table->style.plain ? "+" : left, table->out);
	repeat(table->out, table->style.plain ? "-" : "\xE2\x94\x80", total_width(table) - 2);
	fputs(table->style.plain ? "+\n" : right, table->out);
	if (!table->style.plain)
		fputc('\n', table->out);
}

/* The name, shortened to its column and padded. */
static void write_name(const struct table *table, const char *name)
{
	size_t written = 0, length = sw_text_columns(name);
	size_t room = length > table->name_width ? table->name_width - 1 : length;
	for (; *name != '\0'; name++) {
		if (((unsigned char)*name & 0xC0) != 0x80 && written++ == room)
			break;
		fputc(*name == '\n' || *name == '\t' ? ' ' : *name, table->out);
	}
	if (length > table->name_width)
		fputs(table->style.plain ? "~" : "\xE2\x80\xA6", table->out);
	repeat(table->out, " ", table->name_width - (length > table->name_width ? table->name_width : length));
}

static void write_row(const struct table *table, const char *name, const struct cell *cells)
{
	const char *bar = table->style.plain ? "|" : "\xE2\x94\x82";
	fprintf(table->out, "%s ", bar);
	write_name(table, name);
	for (size_t c = 0; c < COLUMNS; c++) {
		if (!table->shown[c])
			continue;
		const char *text = cells == NULL ? columns[c].title : cells[c].text;
		bool best = cells != NULL && cells[c].best, green = best && table->style.colour;
		repeat(table->out, " ", air_before(table, c) + table->widths[c] - sw_text_columns(text) - table->starred[c]);
		fprintf(table->out, "%s%s%s", green ? "\033[1;32m" : "", text, green ? "\033[0m" : "");
		if (table->starred[c])
			fputc(best ? '*' : ' ', table->out);
	}
	fprintf(table->out, " %s\n", bar);
}

static void write_legend(const struct table *table)
{
	bool best = false, dropped = false;
	for (size_t i = 0; i < table->rows * COLUMNS; i++)
		best = best || (table->cells[i].best && table->shown[i % COLUMNS]);
	if (!table->style.human)
		fputs("Times in seconds. ", table->out);
	fputs("JCT: from submit to end, of finished jobs.", table->out);
	if (best)
		fputs(table->style.colour ? " Green: best." : " *: best.", table->out);
	for (size_t c = 0; c < COLUMNS; c++) {
		if (table->shown[c])
			continue;
		fprintf(table->out, "%s%s", dropped ? ", " : "\nLeft out for want of room: ", columns[c].title);
		dropped = true;
	}
	fputs(dropped ? ".\n" : "\n", table->out);
}

static int write_body(struct table *table, char **names)
{
	for (size_t r = 0; r < table->rows; r++) {
		names[r] = sw_text_clean(table->results[r]->policy);
		if (names[r] == NULL)
			return SW_ENOMEM;
		size_t width = sw_text_columns(names[r]);
		if (width > table->name_width)
			table->name_width = width > NAME_COLUMNS_MAX ? NAME_COLUMNS_MAX : width;
	}
	fill_cells(table);
	drop_columns(table);
	write_rule(table, "\xE2\x94\x8C", "\xE2\x94\x90");
	write_row(table, "policy", NULL);
	write_rule(table, "\xE2\x94\x9C", "\xE2\x94\xA4");
	for (size_t r = 0; r < table->rows; r++)
		write_row(table, names[r], &table->cells[r * COLUMNS]);
	write_rule(table, "\xE2\x94\x94", "\xE2\x94\x98");
	write_legend(table);
	return 0;
}

int sw_results_table(FILE *out, const struct sw_result *const *results, size_t count, const struct sw_table_style *style,
		     struct sw_err *err)
{
	struct table table = {.out = out, .results = results, .rows = count, .name_width = strlen("policy")};
	if (style != NULL)
		table.style = *style;
	if (table.style.width == 0)
		table.style.width = DEFAULT_WIDTH;
	SW_CLEANUP(sw_freep) struct cell *cells = calloc(count * COLUMNS + 1, sizeof *cells);
	SW_CLEANUP(sw_freep) char **names = calloc(count + 1, sizeof *names);
	table.cells = cells;
	int r = cells == NULL || names == NULL ? SW_ENOMEM : write_body(&table, names);
	for (size_t i = 0; names != NULL && i < count; i++)
		free(names[i]);
	if (r < 0)
		return sw_err_set(err, r, "cannot print the table of results: out of memory");
	return ferror(out) ? sw_err_set(err, SW_EIO, "cannot print the table of results") : 0;
}
