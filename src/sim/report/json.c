#include "sim/report/json.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

static json_t *text(const char *raw)
{
	SW_CLEANUP(sw_freep) char *clean = sw_text_clean(raw);
	return clean == NULL ? NULL : json_string(clean);
}

static json_t *real(double value)
{
	if (!isfinite(value))
		return json_real(0);
	/* Beyond 10^9 a double has no seventh decimal to hide, and 15 digits are printed. */
	return json_real(fabs(value) < 1e9 ? round(value * 1e6) / 1e6 : value);
}

static json_t *count(uint64_t value)
{
	return json_integer((json_int_t)value);
}

static json_t *seed(uint64_t value)
{
	return value <= INT64_MAX ? json_integer((json_int_t)value) : json_sprintf("%" PRIu64, value);
}

/* The lines that say something. */
static json_t *lines(const char *raw)
{
	SW_CLEANUP(sw_freep) char *copy = strdup(raw != NULL ? raw : "");
	SW_CLEANUP(json_decrefp) json_t *array = json_array();
	if (copy == NULL || array == NULL)
		return NULL;
	char *rest = NULL;
	for (char *line = strtok_r(copy, "\r\n", &rest); line != NULL; line = strtok_r(NULL, "\r\n", &rest))
		if (line[strspn(line, " \t")] != '\0' && json_array_append_new(array, text(line)) < 0)
			return NULL;
	return SW_TAKE(array);
}

/* A value that could not be made (out of memory) counts as a failure to put it. */
static bool put(json_t *object, const char *key, json_t *value)
{
	return json_object_set_new(object, key, value) == 0;
}

static bool put_identity(json_t *object, const struct sw_result *result)
{
	return put(object, "policy", text(result->policy)) && put(object, "placement", text(result->placement)) &&
	       put(object, "world", text(result->world)) && put(object, "trace", text(result->trace)) &&
	       put(object, "cluster", text(result->cluster));
}

static bool put_summary(json_t *object, const struct sw_summary *summary)
{
	return put(object, "jobs", count(summary->jobs)) && put(object, "finished", count(summary->finished)) &&
	       put(object, "failed", count(summary->failed)) && put(object, "refused", count(summary->refused)) &&
	       put(object, "jct_avg_s", real(summary->jct_avg_s)) && put(object, "jct_median_s", real(summary->jct_median_s)) &&
	       put(object, "jct_p95_s", real(summary->jct_p95_s)) && put(object, "jct_p99_s", real(summary->jct_p99_s)) &&
	       put(object, "jct_max_s", real(summary->jct_max_s)) && put(object, "queue_avg_s", real(summary->queue_avg_s)) &&
	       put(object, "queue_p95_s", real(summary->queue_p95_s)) && put(object, "makespan_s", real(summary->makespan_s)) &&
	       put(object, "preemptions", count(summary->preemptions)) && put(object, "migrations", count(summary->migrations)) &&
	       put(object, "restarts", count(summary->restarts)) && put(object, "gpu_utilization", real(summary->gpu_utilization)) &&
	       put(object, "gpu_work", real(summary->gpu_work)) && put(object, "slowdown_worst", real(summary->slowdown_worst)) &&
	       put(object, "tenants", count(summary->tenants)) && put(object, "tenants_jain", real(summary->tenants_jain)) &&
	       put(object, "tenants_worst", real(summary->tenants_worst)) && put(object, "deadlines", count(summary->deadlines)) &&
	       put(object, "deadlines_missed", count(summary->deadlines_missed));
}

static bool put_run(json_t *object, const struct sw_result *result)
{
	return put(object, "log_hash", json_sprintf("%016" PRIx64, result->log_hash)) && put(object, "seed", seed(result->seed)) &&
	       put(object, "events", count(result->events)) && put(object, "decisions", count(result->decisions)) &&
	       put(object, "decision_p99_ns", count(result->decision_p99_ns)) && put(object, "cpu_s", real(result->cpu_s)) &&
	       put(object, "max_rss_bytes", count(result->max_rss_bytes)) && put(object, "notes", text(result->notes)) &&
	       put(object, "assumptions", lines(result->assumptions));
}

int sw_results_json(FILE *out, const struct sw_result *result, struct sw_err *err)
{
	SW_CLEANUP(json_decrefp) json_t *object = json_object();
	bool marked = object != NULL && (!result->recorded || put(object, "recorded", json_true()));
	/* Where there are quotas it is also known what jobs waited for. */
	marked = marked && (!result->has_quotas ||
			    (put(object, "share_delay_avg_s", real(result->summary.share_delay_avg_s)) &&
			     put(object, "place_delay_avg_s", real(result->summary.queue_avg_s - result->summary.share_delay_avg_s))));
	if (!marked || !put_identity(object, result) || !put_summary(object, &result->summary) || !put_run(object, result))
		return sw_err_set(err, SW_ENOMEM, "cannot write the result of '%s' as JSON: out of memory", result->policy);
	if (json_dumpf(object, out, JSON_REAL_PRECISION(15)) < 0 || fputc('\n', out) == EOF || ferror(out))
		return sw_err_set(err, SW_EIO, "cannot write the result of '%s' as JSON", result->policy);
	return 0;
}
