#include "sim/trace/stats.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

/* A length of time given in seconds, as people read it. */
static const char *length(double s, char buffer[32])
{
	return sw_format_duration((int64_t)llround(s * 1e9), buffer);
}

static double percent(double part, double whole)
{
	return whole > 0 ? 100 * part / whole : 0;
}

static void print_shares(FILE *out, const struct sw_trace_stats *stats, const char *title, const sw_trace_shares *shares, unsigned rows)
{
	fprintf(out, "\n%-20s %10s %7s %14s %7s\n", title, "jobs", "", "GPU hours", "");
	for (size_t i = 0; i < shares->count; i++) {
		const struct sw_trace_share *share = &shares->items[i];
		char size[16];
		snprintf(size, sizeof size, "%u", share->gpus);
		if (rows > 0 && i == rows && shares->count > rows + 1) {
			fprintf(out, "... and %zu more\n", shares->count - rows);
			return;
		}
		const char *name = share->name == NULL ? size : share->name[0] == '\0' ? "(none)" : share->name;
		fprintf(out, "%-20s %10llu %6.1f%% %14.1f %6.1f%%\n", name, (unsigned long long)share->jobs,
			percent((double)share->jobs, (double)stats->jobs), share->gpu_s / 3600, percent(share->gpu_s, stats->gpu_s));
	}
}

static void print_kinds(FILE *out, const struct sw_trace_stats *stats)
{
	if (stats->opportunistic > 0)
		fprintf(out, "opportunistic        %llu\n", (unsigned long long)stats->opportunistic);
	if (stats->elastic > 0)
		fprintf(out, "elastic              %llu\n", (unsigned long long)stats->elastic);
	uint64_t deadlines = stats->strict_deadlines + stats->soft_deadlines;
	if (deadlines > 0)
		fprintf(out, "deadlines            %llu strict, %llu soft; %llu of them cannot be met on the GPUs asked for\n",
			(unsigned long long)stats->strict_deadlines, (unsigned long long)stats->soft_deadlines,
			(unsigned long long)stats->impossible_deadlines);
	if (stats->without_duration > 0)
		fprintf(out, "without duration     %llu: not in any figure of time\n", (unsigned long long)stats->without_duration);
}

static bool one_unnamed(const sw_trace_shares *shares)
{
	return shares->count == 1 && shares->items[0].name[0] == '\0';
}

void sw_trace_stats_print(FILE *out, const struct sw_trace_stats *stats, unsigned rows)
{
	char a[32], b[32], c[32], d[32], e[32], f[32];
	const struct sw_trace_spread *gpus = &stats->gpus, *duration = &stats->duration_s, *gap = &stats->gap_s;
	fprintf(out, "trace                %s (%s)\n", stats->origin, stats->format);
	fprintf(out, "jobs                 %llu", (unsigned long long)stats->jobs);
	if (stats->rows_skipped > 0)
		fprintf(out, "; %llu line%s without a job", (unsigned long long)stats->rows_skipped, stats->rows_skipped == 1 ? "" : "s");
	fprintf(out, "\nsubmitted over       %s, %.1f jobs per hour\n", length(stats->span_s, a), stats->jobs_per_hour);
	fprintf(out, "between submits      median %s, mean %s, 99 %% %s\n", length(gap->median, a), length(gap->mean, b),
		length(gap->p99, c));
	fprintf(out, "GPUs per job         min %.0f, median %g, mean %.2f, max %.0f\n", gpus->min, gpus->median, gpus->mean, gpus->max);
	fprintf(out, "duration             min %s, median %s, mean %s, 90 %% %s, 99 %% %s, max %s\n", length(duration->min, a),
		length(duration->median, b), length(duration->mean, c), length(duration->p90, d), length(duration->p99, e),
		length(duration->max, f));
	fprintf(out, "GPU hours            %.1f\n", stats->gpu_s / 3600);
	if (stats->cluster_gpus > 0)
		fprintf(out, "offered load         %.1f %% of %llu GPU%s\n", 100 * stats->load, (unsigned long long)stats->cluster_gpus,
			stats->cluster_gpus == 1 ? "" : "s");
	print_kinds(out, stats);
	print_shares(out, stats, "GPUs per job", &stats->sizes, rows);
	if (!one_unnamed(&stats->tenants))
		print_shares(out, stats, "tenant", &stats->tenants, rows);
	if (!one_unnamed(&stats->models))
		print_shares(out, stats, "model", &stats->models, rows);
}

static json_t *spread_json(const struct sw_trace_spread *spread)
{
	return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "min", spread->min, "p5", spread->p5, "p25", spread->p25,
			 "median", spread->median, "p75", spread->p75, "p90", spread->p90, "p95", spread->p95, "p99", spread->p99, "max",
			 spread->max, "mean", spread->mean);
}

static json_t *shares_json(const sw_trace_shares *shares)
{
	json_t *list = json_array();
	for (size_t i = 0; i < shares->count; i++) {
		const struct sw_trace_share *share = &shares->items[i];
		json_t *item = json_pack("{s:I, s:f}", "jobs", (json_int_t)share->jobs, "gpu_s", share->gpu_s);
		json_t *key = share->name == NULL ? json_integer(share->gpus) : json_string(share->name);
		if (json_object_set_new(item, share->name == NULL ? "gpus" : "name", key) < 0 || json_array_append_new(list, item) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

static json_t *hourly_json(const struct sw_trace_stats *stats)
{
	json_t *list = json_array();
	for (size_t i = 0; i < 24; i++)
		if (json_array_append_new(list, json_integer((json_int_t)stats->hourly[i])) < 0) {
			json_decref(list);
			return NULL;
		}
	return list;
}

/* Paths need not be UTF-8, but JSON is. */
static json_t *path_json(const char *path)
{
	json_t *text = json_string(path);
	return text != NULL ? text : json_string("(a path that is not UTF-8)");
}

int sw_trace_stats_json(FILE *out, const struct sw_trace_stats *stats)
{
	/* A member that could not be made is NULL; json_pack then frees the
	 * others and fails as a whole. */
	json_t *object = json_pack(
		"{s:o, s:s, s:I, s:I, s:f, s:f, s:f, s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "trace",
		path_json(stats->origin), "format", stats->format, "jobs", (json_int_t)stats->jobs, "rows_skipped",
		(json_int_t)stats->rows_skipped, "first_submit_s", stats->first_submit_s, "span_s", stats->span_s, "jobs_per_hour",
		stats->jobs_per_hour, "gpu_s", stats->gpu_s, "without_duration", (json_int_t)stats->without_duration, "opportunistic",
		(json_int_t)stats->opportunistic, "elastic", (json_int_t)stats->elastic, "strict_deadlines",
		(json_int_t)stats->strict_deadlines, "soft_deadlines", (json_int_t)stats->soft_deadlines, "impossible_deadlines",
		(json_int_t)stats->impossible_deadlines, "gpus", spread_json(&stats->gpus), "duration_s", spread_json(&stats->duration_s),
		"gap_s", spread_json(&stats->gap_s), "sizes", shares_json(&stats->sizes), "tenants", shares_json(&stats->tenants), "models",
		shares_json(&stats->models), "hourly", hourly_json(stats));
	if (object != NULL && stats->cluster_gpus > 0 &&
	    (json_object_set_new(object, "cluster_gpus", json_integer((json_int_t)stats->cluster_gpus)) < 0 ||
	     json_object_set_new(object, "load", json_real(stats->load)) < 0)) {
		json_decref(object);
		object = NULL;
	}
	if (object == NULL)
		return SW_ENOMEM;
	int r = json_dumpf(object, out, JSON_INDENT(2) | JSON_REAL_PRECISION(12)) < 0 || fputc('\n', out) == EOF ? SW_EIO : 0;
	json_decref(object);
	return r;
}
