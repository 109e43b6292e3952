#include "contention/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/number.h"
#include "base/vec.h"
#include "base/yaml.h"

#define LARGEST_MEMORY (INT64_C(16) << 40)
#define LONGEST_RUN (INT64_C(3650) * 86400 * SW_NS_PER_S)
#define MOST_CORES_MILLI 65536000
/* The part of the host that goes with one GPU, by which profiles count. */
#define HOST_CORES 10u
#define HOST_BYTES (UINT64_C(40) << 30)

struct entry {
	struct sw_store_entry seen;
	char name[SW_STORE_NAME + 1];
	char command[SW_STORE_COMMAND + 1];
};

struct sw_store {
	SW_VEC(struct entry *) entries;
};

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_alike(const char *a, const char *b)
{
	while (*a != '\0' && lower(*a) == lower(*b)) {
		a++;
		b++;
	}
	return lower(*a) == lower(*b);
}

/* ---- what a run can be */

#define AT(member) .offset = offsetof(struct sw_measured, member)
static const struct sw_yaml_field run_fields[] = {
	{"wall", SW_YAML_DURATION, true, AT(wall_ns), .min = 1, .max = LONGEST_RUN},
	{"cores", SW_YAML_MILLI, AT(cores_milli), .max = MOST_CORES_MILLI},
	{"host_memory", SW_YAML_BYTES, AT(host_bytes), .max = LARGEST_MEMORY},
	{"iteration_time", SW_YAML_DURATION, AT(iteration_ns), .min = 1, .max = 3600 * SW_NS_PER_S},
	{"busy", SW_YAML_MILLI, AT(busy_milli), .min = 1, .max = 1000},
	{"floor", SW_YAML_BYTES, AT(floor_bytes), .max = LARGEST_MEMORY},
	{"peak", SW_YAML_BYTES, AT(peak_bytes), .max = LARGEST_MEMORY},
	{"pcie", SW_YAML_MILLI, AT(pcie_milli), .max = 1000},
	{"sm", SW_YAML_MILLI, AT(sm_milli), .max = 1000},
	{"mem_pipe", SW_YAML_MILLI, AT(mem_pipe_milli), .max = 1000},
	{"l2", SW_YAML_MILLI, AT(l2_milli), .max = 1000},
	{"dram_read", SW_YAML_MILLI, AT(dram_read_milli), .max = 1000},
	{"dram_write", SW_YAML_MILLI, AT(dram_write_milli), .max = 1000},
};
#undef AT

/* What two of its figures say against each other; NULL: nothing. */
static const char *contradiction(const struct sw_measured *run)
{
	if (run->floor_bytes > run->peak_bytes)
		return "its GPU memory is said to be never below 'floor', which is above 'peak'";
	if (run->iteration_ns > run->wall_ns)
		return "one iteration is said to take longer than the run";
	bool has = run->sm_milli > 0;
	if ((run->mem_pipe_milli > 0) != has || (run->l2_milli > 0) != has || (run->dram_read_milli > 0) != has ||
	    (run->dram_write_milli > 0) != has)
		return "of 'sm', 'mem_pipe', 'l2', 'dram_read' and 'dram_write' all are measured, or none";
	return NULL;
}

/* Numbers of a run that was not read, by the same bounds. */
static int check_run(const char *name, const struct sw_measured *run, struct sw_err *err)
{
	const char *wrong = NULL;
	char text[120];
	for (size_t i = 0; i < SW_YAML_COUNT(run_fields) && wrong == NULL; i++) {
		const struct sw_yaml_field *field = &run_fields[i];
		int64_t value;
		memcpy(&value, (const char *)run + field->offset, sizeof value);
		if (value < 0 || value > field->max || (field->required && value == 0)) {
			snprintf(text, sizeof text, "'%s' %s", field->key,
				 value < 0    ? "is negative"
				 : value == 0 ? "is missing"
					      : "is larger than it can be");
			wrong = text;
		}
	}
	if (wrong == NULL)
		wrong = contradiction(run);
	if (wrong == NULL)
		return 0;
	sw_err_set(err, SW_EINPUT, "cannot store what was measured of '%.80s'", name);
	sw_err_detail(err, "%s", wrong);
	sw_err_hint(err, "Nothing was stored. Measure it again.");
	return SW_EINPUT;
}

/* ---- names */

static bool is_plain(const char *text)
{
	for (; *text != '\0'; text++)
		if (*text < ' ' || *text > '~')
			return false;
	return true;
}

static int check_name(const char *name, struct sw_err *err)
{
	size_t size = strlen(name);
	if (size >= 1 && size <= SW_STORE_NAME && is_plain(name))
		return 0;
	sw_err_set(err, SW_EINPUT, "a profile cannot be called '%.80s'", is_plain(name) ? name : "?");
	sw_err_detail(err, "a name has 1 to %u letters, digits and signs of ASCII", SW_STORE_NAME);
	sw_err_hint(err, "Give it another --name.");
	return SW_EINPUT;
}

const char *sw_store_command(const char *const *words, size_t count, char text[SW_STORE_COMMAND + 1])
{
	size_t used = 0;
	for (size_t i = 0; i < count && used < SW_STORE_COMMAND; i++) {
		if (i > 0)
			text[used++] = ' ';
		for (const char *c = words[i]; *c != '\0' && used < SW_STORE_COMMAND; c++)
			text[used++] = *c < ' ' || *c > '~' ? '?' : *c;
	}
	text[used] = '\0';
	return text;
}

/* ---- entries */

static struct entry *find(const struct sw_store *store, const char *name)
{
	for (size_t i = 0; i < store->entries.count; i++)
		if (is_alike(store->entries.items[i]->name, name))
			return store->entries.items[i];
	return NULL;
}

static int add_entry(struct sw_store *store, const char *name, struct entry **ret_entry, struct sw_err *err)
{
	if (store->entries.count >= SW_STORE_ENTRIES) {
		sw_err_set(err, SW_ELIMIT, "there are %u measured profiles already", SW_STORE_ENTRIES);
		sw_err_hint(err, "'sharewell profile --remove NAME' makes room.");
		return SW_ELIMIT;
	}
	struct entry *entry = calloc(1, sizeof *entry);
	/* NOLINTNEXTLINE(bugprone-sizeof-expression): pointers are what is kept */
	struct entry **slot = entry != NULL ? sw_vec_push(&store->entries) : NULL;
	if (slot == NULL) {
		free(entry);
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	}
	snprintf(entry->name, sizeof entry->name, "%s", name);
	entry->seen.name = entry->name;
	entry->seen.command = entry->command;
	*ret_entry = *slot = entry;
	return 0;
}

static void add_run(struct sw_store_entry *entry, const struct sw_measured *run)
{
	if (entry->run_count == SW_STORE_RUNS)
		memmove(&entry->runs[0], &entry->runs[1], (--entry->run_count) * sizeof entry->runs[0]);
	entry->runs[entry->run_count++] = *run;
}

int sw_store_add(struct sw_store *store, const char *name, const char *command, const struct sw_measured *run, struct sw_err *err)
{
	struct entry *entry = find(store, name);
	int r = check_name(name, err);
	r = r < 0 ? r : check_run(name, run, err);
	if (r == 0 && entry == NULL)
		r = add_entry(store, name, &entry, err);
	if (r < 0 || entry == NULL)
		return r;
	snprintf(entry->command, sizeof entry->command, "%s", command != NULL && is_plain(command) ? command : "");
	add_run(&entry->seen, run);
	return 0;
}

int sw_store_remove(struct sw_store *store, const char *name, struct sw_err *err)
{
	struct entry *entry = find(store, name);
	if (entry == NULL) {
		sw_err_set(err, SW_ENOTFOUND, "there is no measured profile '%.80s'", name);
		sw_err_hint(err, "'sharewell profile --list' shows those there are.");
		return SW_ENOTFOUND;
	}
	size_t at = 0;
	while (store->entries.items[at] != entry)
		at++;
	store->entries.count--;
	/* NOLINTNEXTLINE(bugprone-sizeof-expression): pointers are what is moved */
	memmove(&store->entries.items[at], &store->entries.items[at + 1], (store->entries.count - at) * sizeof store->entries.items[0]);
	free(entry);
	return 0;
}

const struct sw_store_entry *sw_store_at(const struct sw_store *store, size_t index)
{
	return index < store->entries.count ? &store->entries.items[index]->seen : NULL;
}

const struct sw_store_entry *sw_store_find(const struct sw_store *store, const char *name, const char *command)
{
	const struct entry *entry = name != NULL ? find(store, name) : NULL;
	for (size_t i = store->entries.count; i > 0 && entry == NULL && command != NULL && command[0] != '\0'; i--)
		if (strcmp(store->entries.items[i - 1]->command, command) == 0)
			entry = store->entries.items[i - 1];
	return entry != NULL ? &entry->seen : NULL;
}

void sw_store_free(struct sw_store *store)
{
	if (store == NULL)
		return;
	for (size_t i = 0; i < store->entries.count; i++)
		free(store->entries.items[i]);
	sw_vec_free(&store->entries);
	free(store);
}

/* ---- reading */

static int read_entry(struct sw_store *store, const struct sw_yaml_node *node, struct sw_err *err)
{
	struct words {
		const char *name, *command;
		const struct sw_yaml_node *runs;
	} words = {.command = ""};
	static const struct sw_yaml_field fields[] = {
		{"name", SW_YAML_STRING, true, offsetof(struct words, name), .min = 1, .max = SW_STORE_NAME},
		{"command", SW_YAML_STRING, .offset = offsetof(struct words, command), .min = 0, .max = SW_STORE_COMMAND},
		{"runs", SW_YAML_LIST, true, offsetof(struct words, runs), .min = 1, .max = SW_STORE_RUNS},
	};
	struct entry *entry = NULL;
	int r = sw_yaml_decode(node, "a measured profile", fields, SW_YAML_COUNT(fields), &words, err);
	if (r == 0 && (!is_plain(words.name) || !is_plain(words.command)))
		return sw_yaml_fail(node, err, "names and commands are plain ASCII");
	if (r == 0 && find(store, words.name) != NULL)
		return sw_yaml_fail(node, err, "the name '%s' is taken already (case is ignored)", words.name);
	r = r < 0 ? r : add_entry(store, words.name, &entry, err);
	if (r < 0 || entry == NULL)
		return r;
	snprintf(entry->command, sizeof entry->command, "%s", words.command);
	for (const struct sw_yaml_node *member = words.runs->first; member != NULL; member = member->next) {
		struct sw_measured run = {0};
		r = sw_yaml_decode(member, "a run", run_fields, SW_YAML_COUNT(run_fields), &run, err);
		if (r == 0 && contradiction(&run) != NULL)
			r = sw_yaml_fail(member, err, "%s", contradiction(&run));
		if (r < 0)
			return r;
		add_run(&entry->seen, &run);
	}
	return 0;
}

static int read_document(const struct sw_yaml *doc, struct sw_store **ret_store, struct sw_err *err)
{
	SW_CLEANUP(sw_store_freep) struct sw_store *store = calloc(1, sizeof *store);
	struct top {
		const struct sw_yaml_node *list;
	} top = {0};
	static const struct sw_yaml_field fields[] = {
		{"profiles", SW_YAML_LIST, true, offsetof(struct top, list), .max = SW_STORE_ENTRIES},
	};
	const struct sw_yaml_node *root = sw_yaml_root(doc);
	if (store == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	/* The last one was removed. */
	bool is_empty = root->kind == SW_YAML_IS_MAP && root->count == 1 && root->first->kind == SW_YAML_IS_LIST &&
			root->first->count == 0 && strcmp(root->first->key, "profiles") == 0;
	int r = is_empty ? 0 : sw_yaml_decode(root, "a file of measured profiles", fields, SW_YAML_COUNT(fields), &top, err);
	for (const struct sw_yaml_node *node = top.list != NULL ? top.list->first : NULL; node != NULL && r == 0; node = node->next)
		r = read_entry(store, node, err);
	if (r == 0)
		*ret_store = SW_TAKE(store);
	return r;
}

int sw_store_parse(const char *name, const char *text, size_t size, struct sw_store **ret_store, struct sw_err *err)
{
	SW_CLEANUP(sw_yaml_freep) struct sw_yaml *doc = NULL;
	int r = sw_yaml_parse("measured profiles", name, text, size, &doc, err);
	r = r < 0 ? r : read_document(doc, ret_store, err);
	if (r == SW_EINPUT)
		sw_err_hint(err, "Correct that line, or move the file away; it was left as it is.");
	return r;
}

int sw_store_load(const char *path, struct sw_store **ret_store, struct sw_err *err)
{
	SW_CLEANUP(sw_freep) char *text = NULL;
	size_t size = 0;
	struct sw_err none = {0};
	int r = sw_file_read(path, SW_YAML_MAX_BYTES, &text, &size, &none);
	if (r == SW_ENOTFOUND) {
		*ret_store = calloc(1, sizeof **ret_store);
		return *ret_store != NULL ? 0 : sw_err_set(err, SW_ENOMEM, "out of memory");
	}
	if (r < 0) {
		if (err != NULL && err->code == 0)
			*err = none;
		return r;
	}
	return sw_store_parse(path, text, size, ret_store, err);
}

/* ---- writing */

static void write_text(FILE *out, const char *key, const char *text)
{
	fprintf(out, "%s\"", key);
	for (; *text != '\0'; text++)
		fprintf(out, "%s%c", *text == '"' || *text == '\\' ? "\\" : "", *text);
	fputs("\"\n", out);
}

static void write_run(FILE *out, const struct sw_measured *run)
{
	for (size_t i = 0; i < SW_YAML_COUNT(run_fields); i++) {
		const struct sw_yaml_field *field = &run_fields[i];
		int64_t value;
		memcpy(&value, (const char *)run + field->offset, sizeof value);
		if (value == 0)
			continue;
		fprintf(out, "%s%s: ", i == 0 ? "      - {" : ", ", field->key);
		if (field->type == SW_YAML_MILLI)
			fprintf(out, "%" PRId64 ".%03" PRId64, value / 1000, value % 1000);
		else
			fprintf(out, "%" PRId64 "%s", value, field->type == SW_YAML_DURATION ? "ns" : "");
	}
	fputs("}\n", out);
}

int sw_store_save(const struct sw_store *store, const char *path, struct sw_err *err)
{
	SW_CLEANUP(sw_output_discardp) struct sw_output *output = NULL;
	int r = sw_output_open(path, &output, err);
	if (r < 0)
		return r;
	FILE *out = sw_output_stream(output);
	fputs("# What 'sharewell profile' measured. A run without a figure was measured without it; the profile has the "
	      "medians.\nprofiles:",
	      out);
	fputs(store->entries.count == 0 ? " []\n" : "\n", out);
	for (size_t i = 0; i < store->entries.count; i++) {
		const struct sw_store_entry *entry = &store->entries.items[i]->seen;
		write_text(out, "  - name: ", entry->name);
		if (entry->command[0] != '\0')
			write_text(out, "    command: ", entry->command);
		fputs("    runs:\n", out);
		for (uint32_t n = 0; n < entry->run_count; n++)
			write_run(out, &entry->runs[n]);
	}
	return sw_output_commit(SW_TAKE(output), err);
}

/* ---- profiles */

static int compare(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

struct sw_measured sw_store_median(const struct sw_store_entry *entry)
{
	struct sw_measured median = {0};
	for (size_t i = 0; i < SW_YAML_COUNT(run_fields); i++) {
		int64_t values[SW_STORE_RUNS], value;
		size_t count = 0;
		for (uint32_t n = 0; n < entry->run_count; n++) {
			memcpy(&value, (const char *)&entry->runs[n] + run_fields[i].offset, sizeof value);
			if (value > 0)
				values[count++] = value;
		}
		qsort(values, count, sizeof values[0], compare);
		if (count > 0) {
			value = values[(count - 1) / 2] + (values[count / 2] - values[(count - 1) / 2]) / 2;
			memcpy((char *)&median + run_fields[i].offset, &value, sizeof value);
		}
	}
	/* Each of them is from other runs. */
	if (median.floor_bytes > median.peak_bytes)
		median.floor_bytes = median.peak_bytes;
	return median;
}

static uint16_t part_of(uint64_t amount, uint64_t whole)
{
	uint64_t milli = amount / (whole / 1000);
	return (uint16_t)(milli < 1000 ? milli : 1000);
}

static void lay_counters_over(const struct sw_measured *median, struct sw_profile *profile)
{
	profile->use_milli[SW_USE_SM] = (uint16_t)median->sm_milli;
	profile->use_milli[SW_USE_MEM_PIPE] = (uint16_t)median->mem_pipe_milli;
	profile->use_milli[SW_USE_L2] = (uint16_t)median->l2_milli;
	profile->use_milli[SW_USE_DRAM_READ] = (uint16_t)median->dram_read_milli;
	profile->use_milli[SW_USE_DRAM_WRITE] = (uint16_t)median->dram_write_milli;
}

/* What was measured, over a profile of which the rest is taken. */
static void lay_over(const struct sw_measured *median, struct sw_profile *profile)
{
	bool counted = median->sm_milli > 0;
	profile->source = counted ? "measured here, what it uses of the GPU by counters; what was not measured is of the built-in profiles"
				  : "measured here; what was not measured is of the built-in profiles";
	profile->estimated = !counted;
	if (counted)
		lay_counters_over(median, profile);
	profile->is_default = false;
	profile->is_own = true;
	if (median->iteration_ns > 0)
		profile->iteration_ns = median->iteration_ns;
	if (median->peak_bytes > 0) {
		profile->mem_persistent_bytes = median->floor_bytes;
		profile->mem_ephemeral_bytes = median->peak_bytes - median->floor_bytes;
	}
	if (median->cores_milli > 0)
		profile->use_milli[SW_USE_HOST_CPU] = part_of(median->cores_milli, HOST_CORES * 1000);
	if (median->host_bytes > 0)
		profile->use_milli[SW_USE_HOST_MEM] = part_of(median->host_bytes, HOST_BYTES);
	if (median->busy_milli == 0)
		return;
	profile->use_milli[SW_USE_PCIE] = (uint16_t)median->pcie_milli;
	profile->busy_milli = (uint16_t)median->busy_milli;
	profile->busy_known = true;
	/* No part of a GPU is in use while it has no work. */
	for (int i = SW_USE_SM; i <= SW_USE_DRAM_WRITE; i++)
		if (profile->use_milli[i] > profile->busy_milli)
			profile->use_milli[i] = profile->busy_milli;
}

int sw_store_apply(const struct sw_store *store, struct sw_profiles *profiles, struct sw_err *err)
{
	int r = 0;
	for (size_t i = 0; i < store->entries.count && r == 0; i++) {
		const struct sw_store_entry *entry = &store->entries.items[i]->seen;
		struct sw_profile profile = *sw_profiles_find(profiles, entry->name);
		struct sw_measured median = sw_store_median(entry);
		profile.name = entry->name;
		lay_over(&median, &profile);
		r = sw_profiles_put(profiles, &profile, entry->command[0] != '\0' ? entry->command : NULL, err);
	}
	return r;
}
