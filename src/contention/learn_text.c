/* What was measured as text: JSON, which is also YAML, so that it is read by the one strict reader.
 *
 *	{"format": 1, "observations": [
 *	{"way": "mps", "jobs": ["dlrm", "deepfm"], "which": 0, "slowdowns": [3.390, 3.100],
 *	 "samples": [60, 75]}
 *	]}
 *
 * "jobs" and "which" are those of struct sw_learn_case; of the measurements that are kept, the
 * oldest is first. Observations stand in the order in which they were last made, so that reading
 * them in again also tells which is the oldest.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/yaml.h"
#include "contention/learn_state.h"

static int compare_last(const void *left, const void *right)
{
	const struct sw_learn_observation *a = *(const struct sw_learn_observation *const *)left;
	const struct sw_learn_observation *b = *(const struct sw_learn_observation *const *)right;
	return (a->last > b->last) - (a->last < b->last);
}

static void write_observation(FILE *out, const struct sw_learn_observation *seen)
{
	const char *names[SW_LEARN_JOBS_MAX];
	size_t which = sw_learn_order(&seen->set, names);
	uint32_t oldest = seen->kept < SW_LEARN_REPEATS_MAX ? 0 : seen->times % SW_LEARN_REPEATS_MAX;
	fprintf(out, "{\"way\": \"%s\", \"jobs\": [", sw_predict_way_name(sw_learn_way(seen->set.kind)));
	for (uint32_t i = 0; i < seen->set.count; i++)
		fprintf(out, "%s\"%s\"", i > 0 ? ", " : "", names[i]);
	fprintf(out, "], \"which\": %zu, \"slowdowns\": [", which);
	for (uint32_t i = 0; i < seen->kept; i++) {
		uint32_t slow = seen->slow_milli[(oldest + i) % SW_LEARN_REPEATS_MAX];
		fprintf(out, "%s%" PRIu32 ".%03" PRIu32, i > 0 ? ", " : "", slow / 1000, slow % 1000);
	}
	fputs("], \"samples\": [", out);
	for (uint32_t i = 0; i < seen->kept; i++)
		fprintf(out, "%s%" PRIu32, i > 0 ? ", " : "", seen->samples[(oldest + i) % SW_LEARN_REPEATS_MAX]);
	fputs("]}", out);
}

int sw_learn_write(const struct sw_learn *learn, char **ret_text, struct sw_err *err)
{
	const struct sw_learn_observation *order[SW_LEARN_SETS_MAX];
	for (uint32_t i = 0; i < learn->count; i++)
		order[i] = &learn->seen[i];
	qsort(order, learn->count, sizeof(void *), compare_last);
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	if (out == NULL)
		return sw_err_set(err, SW_ENOMEM, "cannot write what was measured: out of memory");
	fputs("{\"format\": 1", out);
	for (uint32_t i = 0; i < learn->count; i++) {
		fputs(i == 0 ? ", \"observations\": [\n" : ",\n", out);
		write_observation(out, order[i]);
	}
	fputs(learn->count > 0 ? "\n]}\n" : "}\n", out);
	bool failed = ferror(out) != 0;
	if (fclose(out) != 0 || failed) {
		free(text);
		return sw_err_set(err, SW_ENOMEM, "cannot write what was measured: out of memory");
	}
	*ret_text = text;
	return 0;
}

/* Reading */

struct entry {
	int way;
	const struct sw_yaml_node *jobs, *slowdowns, *samples;
	int64_t which;
};

static int read_measures(struct sw_learn *learn, const struct sw_yaml_node *node, const struct entry *entry,
			 const struct sw_learn_case *about, struct sw_err *err)
{
	static const struct sw_yaml_field slowdown = {NULL, SW_YAML_MILLI, .min = 500, .max = SW_PREDICT_SLOWEST_MILLI};
	static const struct sw_yaml_field steps = {NULL, SW_YAML_INTEGER, .min = 1, .max = UINT32_MAX};
	if (entry->slowdowns->count != entry->samples->count)
		return sw_yaml_fail(node, err, "there are %u slowdowns and %u samples", entry->slowdowns->count, entry->samples->count);
	const struct sw_yaml_node *sample = entry->samples->first;
	for (const struct sw_yaml_node *value = entry->slowdowns->first; value != NULL; value = value->next, sample = sample->next) {
		int64_t slow_milli = 0, samples = 0;
		int r = sw_yaml_value(value, &slowdown, &slow_milli, err);
		if (r == 0)
			r = sw_yaml_value(sample, &steps, &samples, err);
		if (r == 0)
			r = sw_learn_add(learn, about, slow_milli, (uint32_t)samples, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_observation(struct sw_learn *learn, const struct sw_yaml_node *node, struct sw_err *err)
{
	static const char *const ways[] = {"slices", "mps", "gate", NULL};
	static const struct sw_yaml_field name_field = {NULL, SW_YAML_STRING, .max = SW_LEARN_NAME_MAX};
	static const struct sw_yaml_field fields[] = {
		{"way", SW_YAML_CHOICE, true, offsetof(struct entry, way), .choices = ways},
		{"jobs", SW_YAML_LIST, true, offsetof(struct entry, jobs), .min = 2, .max = SW_LEARN_JOBS_MAX},
		{"which", SW_YAML_INTEGER, true, offsetof(struct entry, which), .max = SW_LEARN_JOBS_MAX - 1},
		{"slowdowns", SW_YAML_LIST, true, offsetof(struct entry, slowdowns), .max = SW_LEARN_REPEATS_MAX},
		{"samples", SW_YAML_LIST, true, offsetof(struct entry, samples), .max = SW_LEARN_REPEATS_MAX},
	};
	struct entry entry = {0};
	const char *names[SW_LEARN_JOBS_MAX];
	int r = sw_yaml_decode(node, "an observation", fields, SW_YAML_COUNT(fields), &entry, err);
	if (r < 0)
		return r;
	struct sw_learn_case about = {.way = (enum sw_predict_way)entry.way, .models = names, .which = (size_t)entry.which};
	for (const struct sw_yaml_node *job = entry.jobs->first; job != NULL && r == 0; job = job->next)
		r = sw_yaml_value(job, &name_field, &names[about.count++], err);
	if (r < 0)
		return r;
	if (about.which >= about.count)
		return sw_yaml_fail(node, err, "'which' is %zu of %zu jobs", about.which, about.count);
	uint32_t before = learn->count;
	r = read_measures(learn, node, &entry, &about, err);
	if (r == 0 && learn->count == before)
		return sw_yaml_fail(node, err, "this set is there already");
	return r;
}

int sw_learn_read(struct sw_learn *learn, const char *name, const char *text, size_t size, struct sw_err *err)
{
	struct top {
		int64_t format;
		const struct sw_yaml_node *observations;
	} top = {0};
	static const struct sw_yaml_field fields[] = {
		{"format", SW_YAML_INTEGER, true, offsetof(struct top, format), .min = 1, .max = 1},
		{"observations", SW_YAML_LIST, .offset = offsetof(struct top, observations), .max = SW_LEARN_SETS_MAX},
	};
	SW_CLEANUP(sw_yaml_freep) struct sw_yaml *doc = NULL;
	SW_CLEANUP(sw_learn_freep) struct sw_learn *fresh = NULL;
	int r = sw_learn_new(learn->profiles, &learn->model, &fresh, err);
	if (r == 0)
		r = sw_yaml_parse("measured slowdowns", name, text, size, &doc, err);
	if (r == 0)
		r = sw_yaml_decode(sw_yaml_root(doc), "a file of measured slowdowns", fields, SW_YAML_COUNT(fields), &top, err);
	const struct sw_yaml_node *node = r == 0 && top.observations != NULL ? top.observations->first : NULL;
	for (; node != NULL && r == 0; node = node->next)
		r = read_observation(fresh, node, err);
	if (r == 0)
		*learn = *fresh;
	return r;
}
