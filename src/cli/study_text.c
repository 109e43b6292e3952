/* A study as text: what was compared, the table, what must be known beside it. */
#include <inttypes.h>
#include <string.h>

#include "base/number.h"
#include "base/text.h"
#include "cli/sim.h"
#include "cli/terminal.h"
#include "sim/report/table.h"

/* Wide enough for all columns: a file has no margin. */
#define FILE_WIDTH 200u

/* Foreign text on one line. */
static void put_clean(FILE *out, const char *text)
{
	SW_CLEANUP(sw_freep) char *clean = sw_text_clean(text);
	for (const char *c = clean; c != NULL && *c != '\0'; c++)
		fputc(*c == '\n' || *c == '\t' ? ' ' : *c, out);
}

static void show_question(FILE *out, const struct sw_cli_study *study)
{
	char number[SW_TEXT_SIZE];
	fputs("Trace      ", out);
	put_clean(out, study->trace->origin);
	fprintf(out, ": %s (format %s)\n", sw_text_plural(study->trace->jobs.count, "job", "jobs", number), study->trace->format);
	if (study->trace->warning != NULL) {
		fputs("           ", out);
		put_clean(out, study->trace->warning);
		fputc('\n', out);
	}
	fprintf(out, "Cluster    %s", study->cluster_text);
	/* Where nodes differ, the description counts already. */
	if (strstr(study->cluster_text, " x ") != NULL)
		fprintf(out, " (%s)", sw_text_plural(study->topology->gpu_count, "GPU", "GPUs", number));
	fputs("\n", out);
	fputs("World      ", out);
	put_clean(out, study->world->name);
	fputs(": ", out);
	put_clean(out, study->world->about);
	fprintf(out, "\nPlacement  %s", study->placement->name);
	if (study->placement_reason != NULL)
		fprintf(out, ", chosen because %s", study->placement_reason);
	fputc('\n', out);
	for (size_t i = 0; i < study->contenders.count; i++) {
		const char *line = study->contenders.items[i].settings;
		for (size_t size; (size = strcspn(line, "\n")) > 0; line += size + 1) {
			const char *setting = memchr(line, ':', size);
			fprintf(out, "Setting    %.*s\n", (int)(line + size - setting - 2), setting + 2);
		}
	}
	fputc('\n', out);
}

/* Every line of the notes on its own, behind the policy's name unless all say the same. */
static void show_note(FILE *out, const char *policy, const char *notes)
{
	while (*notes != '\0') {
		size_t size = strcspn(notes, "\n");
		SW_CLEANUP(sw_freep) char *line = strndup(notes, size);
		if (size > 0)
			fprintf(out, "Note: %s%s%s\n", policy, policy[0] != '\0' ? ": " : "", line != NULL ? line : "");
		notes += size + (notes[size] == '\n');
	}
}

static void show_notes(FILE *out, const struct sw_result *const *results, size_t count)
{
	bool same = true;
	for (size_t i = 1; i < count; i++)
		same = same && strcmp(results[i]->notes, results[0]->notes) == 0;
	for (size_t i = 0; i < (same ? 1 : count); i++)
		show_note(out, same ? "" : results[i]->policy, results[i]->notes);
}

static void show_costs(FILE *out, const struct sw_result *const *results, size_t count)
{
	char events[SW_TEXT_SIZE], decisions[SW_TEXT_SIZE], p99[SW_TEXT_SIZE], rate[SW_TEXT_SIZE], memory[32];
	fputs("\nCost of the simulations\n", out);
	for (size_t i = 0; i < count; i++) {
		const struct sw_result *result = results[i];
		double per_s = result->cpu_s > 0 ? (double)result->summary.jobs / result->cpu_s : 0;
		fprintf(out, "  %-10s %s events, %s decisions, 99 %% of them within %s us; %s jobs per CPU second; log %016" PRIx64 "\n",
			result->policy, sw_text_count(result->events, events), sw_text_count(result->decisions, decisions),
			sw_text_decimal((double)result->decision_p99_ns / SW_NS_PER_US, 1, p99), sw_text_count((uint64_t)per_s, rate),
			result->log_hash);
	}
	fprintf(out, "  memory of the program at its largest: %s\n", sw_format_bytes(results[count - 1]->max_rss_bytes, memory));
}

static void show_assumptions(FILE *out, const struct sw_cli_study *study, bool all)
{
	fputc('\n', out);
	if (!all) {
		fprintf(out, "Assumptions: world '%s', placement '%s'. --verbose lists them all.\n", study->world->name,
			study->placement->name);
		return;
	}
	SW_CLEANUP(sw_freep) char *text = sw_world_describe(study->world);
	fprintf(out, "Assumptions in force: %s", text != NULL ? text : "\n");
}

/* What really happened stands first. */
static int show_table(FILE *out, const struct sw_cli_study *study, const struct sw_result *const *results,
		      const struct sw_table_style *style, struct sw_err *err)
{
	size_t count = study->contenders.count, more = study->record != NULL;
	SW_CLEANUP(sw_freep) const struct sw_result **rows = calloc(count + more + 1, sizeof(void *));
	if (rows == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	if (more > 0)
		rows[0] = study->record;
	memcpy(rows + more, results, count * sizeof(void *));
	return sw_results_table(out, rows, count + more, style, err);
}

int sw_cli_show_study(FILE *out, const struct sw_cli_study *study, const struct sw_cli_sim_values *values,
		      const struct sw_result *const *results, struct sw_err *err)
{
	size_t count = study->contenders.count;
	struct sw_cli_terminal terminal = sw_cli_terminal(out);
	struct sw_table_style style = {
		.width = terminal.is_terminal ? terminal.width : FILE_WIDTH,
		.colour = terminal.colour,
		.plain = !terminal.utf8,
		.human = values->human,
	};
	if (!values->quiet)
		show_question(out, study);
	int r = show_table(out, study, results, &style, err);
	if (r < 0)
		return r;
	if (study->basis != NULL)
		fprintf(out, "%s\n", study->basis);
	/* Loud even when quiet: figures mean little where jobs are missing from them. */
	show_notes(out, results, count);
	if (values->stats)
		show_costs(out, results, count);
	if (!values->quiet || values->verbose)
		show_assumptions(out, study, values->verbose);
	return 0;
}
