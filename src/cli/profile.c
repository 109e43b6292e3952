/* sharewell profile: measures a program, and keeps what was measured. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "cli/live.h"
#include "cli/own_profiles.h"
#include "cli/places.h"
#include "cli/profile_counters.h"
#include "cli/profile_run.h"

struct values {
	struct sw_cli_texts words;
	const char *name, *show, *remove, *state;
	uint64_t seconds, patience;
	bool list, json, all_users, counters;
};

/* ---- in words and as JSON */

static const char *or_dash(bool known, const char *text)
{
	return known ? text : "-";
}

static json_t *figures_of(const struct sw_measured *run)
{
	const struct {
		const char *key;
		uint64_t value;
	} figures[] = {{"wall_ns", (uint64_t)run->wall_ns},
		       {"host_cores_milli", run->cores_milli},
		       {"host_memory_bytes", run->host_bytes},
		       {"iteration_ns", (uint64_t)run->iteration_ns},
		       {"busy_milli", run->busy_milli},
		       {"gpu_memory_floor_bytes", run->floor_bytes},
		       {"gpu_memory_peak_bytes", run->peak_bytes},
		       {"pcie_milli", run->pcie_milli},
		       {"sm_milli", run->sm_milli},
		       {"mem_pipe_milli", run->mem_pipe_milli},
		       {"l2_milli", run->l2_milli},
		       {"dram_read_milli", run->dram_read_milli},
		       {"dram_write_milli", run->dram_write_milli}};
	json_t *object = json_object();
	for (size_t i = 0; i < SW_CLI_COUNT_OF(figures); i++)
		json_object_set_new(object, figures[i].key,
				    figures[i].value > 0 ? json_integer((json_int_t)figures[i].value) : json_null());
	return object;
}

static json_t *entry_json(const struct sw_store_entry *entry)
{
	struct sw_measured median = sw_store_median(entry);
	json_t *runs = json_array();
	for (uint32_t i = 0; i < entry->run_count; i++)
		json_array_append_new(runs, figures_of(&entry->runs[i]));
	return json_pack("{s:s, s:s, s:i, s:o, s:o}", "name", entry->name, "command", entry->command, "samples", (int)entry->run_count,
			 "profile", figures_of(&median), "runs", runs);
}

static void print_figures(const struct sw_measured *run)
{
	char text[32];
	printf("  wall time           %s\n", sw_format_duration(run->wall_ns, text));
	printf("  host                %.2f cores, %s in its largest process\n", (double)run->cores_milli / 1e3,
	       sw_format_bytes(run->host_bytes, text));
	if (run->peak_bytes > 0)
		printf("  GPU memory          at most %s\n", sw_format_bytes(run->peak_bytes, text));
	if (run->floor_bytes > 0)
		printf("                      at least %s in every iteration\n", sw_format_bytes(run->floor_bytes, text));
	if (run->iteration_ns > 0)
		printf("  an iteration        %s\n", sw_format_duration(run->iteration_ns, text));
	if (run->busy_milli > 0)
		printf("  GPU busy            %.1f %% of the time; %.1f %% of the bus\n", (double)run->busy_milli / 10,
		       (double)run->pcie_milli / 10);
	if (run->sm_milli > 0)
		printf("  by its counters     SM %.1f %%, memory %.1f %%, L2 %.1f %%, DRAM %.1f %% read, %.1f %% written\n",
		       (double)run->sm_milli / 10, (double)run->mem_pipe_milli / 10, (double)run->l2_milli / 10,
		       (double)run->dram_read_milli / 10, (double)run->dram_write_milli / 10);
}

/* What was not measured, as one line. */
static void print_missing(const struct sw_measured *run, const char *why)
{
	const struct {
		const char *what;
		bool known;
	} figures[] = {{"SM, L2 and DRAM use (no counters)", run->sm_milli > 0},
		       {"GPU memory", run->peak_bytes > 0},
		       {"its floor", run->floor_bytes > 0},
		       {"iteration time", run->iteration_ns > 0},
		       {"busy time and copies", run->busy_milli > 0}};
	bool is_first = true;
	for (size_t i = 0; i < SW_CLI_COUNT_OF(figures); i++)
		if (!figures[i].known) {
			printf("%s%s", is_first ? "  not measured        " : ", ", figures[i].what);
			is_first = false;
		}
	if (!is_first)
		printf("%s%s\n", why[0] != '\0' ? ": " : "", why);
}

static void print_entry(const struct sw_store_entry *entry, const char *why)
{
	struct sw_measured median = sw_store_median(entry);
	printf("%s: %s of %u run%s\n", entry->name, entry->run_count > 1 ? "the medians" : "the figures", entry->run_count,
	       entry->run_count > 1 ? "s" : "");
	if (entry->command[0] != '\0')
		printf("  command             %s\n", entry->command);
	print_figures(&median);
	print_missing(&median, why);
}

static int add_row(struct sw_cli_rows *rows, const struct sw_store_entry *entry)
{
	struct sw_measured median = sw_store_median(entry);
	char text[32];
	int r = sw_cli_rows_add(rows, entry->name);
	r = r < 0 ? r : sw_cli_rows_addf(rows, "%u", entry->run_count);
	sw_format_duration(median.iteration_ns, text);
	r = r < 0 ? r : sw_cli_rows_add(rows, or_dash(median.iteration_ns > 0, text));
	snprintf(text, sizeof text, "%.1f %%", (double)median.busy_milli / 10);
	r = r < 0 ? r : sw_cli_rows_add(rows, or_dash(median.busy_milli > 0, text));
	r = r < 0 ? r : sw_cli_rows_add(rows, or_dash(median.peak_bytes > 0, sw_format_bytes(median.peak_bytes, text)));
	r = r < 0 ? r : sw_cli_rows_addf(rows, "%.2f", (double)median.cores_milli / 1e3);
	r = r < 0 ? r : sw_cli_rows_add(rows, or_dash(median.host_bytes > 0, sw_format_bytes(median.host_bytes, text)));
	return r < 0 ? r : sw_cli_rows_add(rows, entry->command);
}

/* ---- what is there */

static int list(const char *path, bool as_json, struct sw_err *err)
{
	static const struct sw_cli_column columns[] = {{.name = "NAME"},
						       {.name = "RUNS", .right = true},
						       {.name = "ITERATION", .right = true},
						       {.name = "BUSY", .right = true},
						       {.name = "GPU MEMORY", .right = true},
						       {.name = "CORES", .right = true},
						       {.name = "HOST MEMORY", .right = true},
						       {.name = "COMMAND"}};
	SW_CLEANUP(sw_store_freep) struct sw_store *store = NULL;
	struct sw_cli_rows rows = {.columns = columns, .column_count = SW_CLI_COUNT_OF(columns)};
	SW_JSON *all = json_array();
	int r = sw_store_load(path, &store, err);
	if (r < 0)
		return r;
	for (size_t i = 0; sw_store_at(store, i) != NULL && r == 0; i++) {
		r = add_row(&rows, sw_store_at(store, i));
		json_array_append_new(all, entry_json(sw_store_at(store, i)));
	}
	if (r < 0)
		r = sw_err_set(err, r, "out of memory");
	else if (as_json)
		r = sw_cli_print_json(all, err);
	else
		sw_cli_rows_print(&rows, stdout, true);
	sw_cli_rows_release(&rows);
	if (r == 0 && !as_json)
		printf("They are in %s\n", path);
	return r;
}

static int show(const char *path, const char *name, bool as_json, struct sw_err *err)
{
	SW_CLEANUP(sw_store_freep) struct sw_store *store = NULL;
	int r = sw_store_load(path, &store, err);
	if (r < 0)
		return r;
	const struct sw_store_entry *entry = sw_store_find(store, name, name);
	if (entry == NULL) {
		sw_err_set(err, SW_ENOTFOUND, "there is no measured profile '%.80s'", name);
		sw_err_hint(err, "'sharewell profile --list' shows those there are.");
		return SW_ENOTFOUND;
	}
	if (!as_json) {
		print_entry(entry, "");
		return 0;
	}
	SW_JSON *object = entry_json(entry);
	return sw_cli_print_json(object, err);
}

static int drop(void *user, struct sw_store *store, struct sw_err *err)
{
	return sw_store_remove(store, user, err);
}

static int forget(const char *path, const char *name, struct sw_err *err)
{
	SW_CLEANUP(sw_store_freep) struct sw_store *store = NULL;
	/* First to see whether it is there: where there is nothing, there may be no
	 * folder for the lock either. */
	int r = sw_store_load(path, &store, err);
	r = r < 0 ? r : sw_store_remove(store, name, err);
	return r < 0 ? r : sw_cli_own_profiles_change(path, drop, (void *)(uintptr_t)name, err);
}

/* ---- measuring */

struct addition {
	const struct values *values;
	const struct sw_cli_profile_run *run;
	char name[SW_STORE_NAME + 1];
};

/* "train" for "python src/train.py --fast": the script, else the program. */
static void name_of(const struct sw_cli_texts *words, char name[SW_STORE_NAME + 1])
{
	const char *word = words->items[0];
	for (size_t i = 1; i < words->count && words->items[i][0] != '-'; i++) {
		const char *dot = strrchr(words->items[i], '.');
		if (dot != NULL && (strcmp(dot, ".py") == 0 || strcmp(dot, ".sh") == 0)) {
			word = words->items[i];
			break;
		}
	}
	const char *slash = strrchr(word, '/');
	char plain[SW_STORE_COMMAND + 1];
	sw_store_command(&(const char *){slash != NULL && slash[1] != '\0' ? slash + 1 : word}, 1, plain);
	char *dot = strrchr(plain, '.');
	if (dot != NULL && dot != plain)
		*dot = '\0';
	/* Room for a number behind it. */
	snprintf(name, SW_STORE_NAME + 1, "%.*s", (int)SW_STORE_NAME - 8, plain[0] != '\0' ? plain : "program");
}

/* The name under which this command is known, else one that is free. */
static void choose_name(const struct sw_store *store, const char *command, struct addition *addition)
{
	const struct sw_store_entry *known = sw_store_find(store, NULL, command);
	char first[SW_STORE_NAME + 1];
	name_of(&addition->values->words, first);
	snprintf(addition->name, sizeof addition->name, "%s", known != NULL ? known->name : first);
	for (unsigned n = 2; known == NULL && sw_store_find(store, addition->name, NULL) != NULL && n < 100000; n++)
		snprintf(addition->name, sizeof addition->name, "%.*s-%u", (int)SW_STORE_NAME - 8, first, n);
}

static int add(void *user, struct sw_store *store, struct sw_err *err)
{
	struct addition *addition = user;
	const struct values *values = addition->values;
	char command[SW_STORE_COMMAND + 1];
	sw_store_command(values->words.items, values->words.count, command);
	if (values->name != NULL)
		snprintf(addition->name, sizeof addition->name, "%s", values->name);
	else
		choose_name(store, command, addition);
	return sw_store_add(store, addition->name, command, &addition->run->measured, err);
}

static int report(const char *path, const struct addition *addition, bool as_json, struct sw_err *err)
{
	SW_CLEANUP(sw_store_freep) struct sw_store *store = NULL;
	int r = sw_store_load(path, &store, err);
	const struct sw_store_entry *entry = r < 0 ? NULL : sw_store_find(store, addition->name, NULL);
	if (entry == NULL)
		return r < 0 ? r : sw_err_set(err, SW_EIO, "the profile '%s' was removed meanwhile", addition->name);
	const char *why = addition->run->no_gpu;
	if (!as_json) {
		print_entry(entry, why);
		printf("Stored in %s\n", path);
		return 0;
	}
	SW_JSON *object = entry_json(entry);
	json_object_set_new(object, "measured", figures_of(&addition->run->measured));
	json_object_set_new(object, "not_measured_because", why[0] != '\0' ? json_string(why) : json_null());
	return sw_cli_print_json(object, err);
}

/* What can be found wrong is found before the program runs. */
static int prepare(const char *path, const struct values *values, struct sw_cli_places *places, char ncu[PATH_MAX], struct sw_err *err)
{
	struct sw_measured any = {.wall_ns = 1};
	SW_CLEANUP(sw_store_freep) struct sw_store *store = NULL;
	int r = sw_store_load(path, &store, err);
	if (r == 0 && values->name != NULL)
		r = sw_store_add(store, values->name, NULL, &any, err);
	if (r == 0 && values->counters)
		r = sw_cli_find_ncu(ncu, err);
	r = r < 0 ? r : sw_cli_places(values->state, values->all_users, places, err);
	return r < 0 ? r : sw_cli_places_make(places, values->all_users, err);
}

static int measure(const char *path, const struct values *values, struct sw_err *err)
{
	struct sw_cli_profile_run run = {
		.words = &values->words, .seconds = values->seconds, .patience_s = values->patience, .keeps_stdout = values->json};
	struct addition addition = {.values = values, .run = &run};
	struct sw_cli_places places;
	struct sw_err uncounted = {0};
	char ncu[PATH_MAX];
	int r = prepare(path, values, &places, ncu, err);
	r = r < 0 ? r : sw_cli_profile_run(&run, err);
	if (r > 0 && !run.was_ended) {
		fprintf(stderr, "sharewell: the program ended with status %d: nothing was stored\n", r);
		return r;
	}
	int counted = r >= 0 && values->counters ? sw_cli_profile_count(&run, ncu, places.state, &uncounted) : 0;
	if (counted == SW_ESTOPPED) {
		*err = uncounted;
		return counted;
	}
	r = r < 0 ? r : sw_cli_own_profiles_change(path, add, &addition, err);
	r = r < 0 ? r : report(path, &addition, values->json, err);
	if (r < 0 || counted == 0)
		return r;
	/* The first run was not for nothing. */
	sw_err_hint(&uncounted, "All else was stored.");
	*err = uncounted;
	return counted;
}

static int run(const struct sw_cli_call *call, struct sw_err *err)
{
	const struct values *values = call->values;
	char path[PATH_MAX];
	int wishes = values->list + (values->show != NULL) + (values->remove != NULL) + (values->words.count > 0);
	if (wishes != 1) {
		sw_err_set(err, SW_EINPUT, wishes == 0 ? "there is nothing to measure" : "these do not go together");
		sw_err_detail(err, "it takes a command, or one of --list, --show and --remove");
		return SW_EINPUT;
	}
	if (values->words.count == 0 && (values->name != NULL || values->seconds > 0 || values->counters))
		return sw_err_set(err, SW_EINPUT, "--name, --seconds and --counters go with a command");
	if (values->patience > 0 && !values->counters)
		return sw_err_set(err, SW_EINPUT, "--patience goes with --counters");
	int r = sw_cli_own_profiles_path(values->state, values->all_users, path, err);
	if (r < 0)
		return r;
	if (values->list)
		return list(path, values->json, err);
	if (values->show != NULL)
		return show(path, values->show, values->json, err);
	if (values->remove != NULL)
		return forget(path, values->remove, err);
	return measure(path, values, err);
}

#define WORDS(number) #number
#define IN_WORDS(number) WORDS(number)
static const struct sw_cli_option options[] = {
	{"name", .kind = SW_CLI_TEXT, .argument = "NAME",
	 .about = "what it is called, and jobs that are to find it (the script or the program)", .offset = offsetof(struct values, name)},
	{"seconds", .kind = SW_CLI_COUNT, .argument = "SECONDS", .least = 1, .most = 86400,
	 .about = "tell the program to end after so long (it runs to its own end)", .offset = offsetof(struct values, seconds)},
	{"counters", .about = "run it a second time under Nsight Compute (ncu), for SM, L2 and DRAM use",
	 .offset = offsetof(struct values, counters)},
	{"patience", .kind = SW_CLI_COUNT, .argument = "SECONDS", .least = 1, .most = 86400,
	 .about = "end Nsight Compute if it takes longer (" IN_WORDS(SW_CLI_COUNTERS_S) ")", .offset = offsetof(struct values, patience)},
	{"list", 'l', .about = "show what was measured", .offset = offsetof(struct values, list)},
	{"show", .kind = SW_CLI_TEXT, .argument = "NAME", .about = "all that is known of one, by its name or its command",
	 .offset = offsetof(struct values, show)},
	{"remove", .kind = SW_CLI_TEXT, .argument = "NAME", .about = "forget one", .offset = offsetof(struct values, remove)},
	{"state", .kind = SW_CLI_TEXT, .is_path = true, .argument = "DIR", .about = "as it was given to the controller",
	 .offset = offsetof(struct values, state)},
	{"all-users", .about = "of the controller that serves every user of this machine", .offset = offsetof(struct values, all_users)},
	{"json", .about = "print JSON; what the program prints then goes to standard error", .offset = offsetof(struct values, json)},
};

static const struct sw_cli_option operands[] = {
	{"COMMAND", .kind = SW_CLI_TEXTS, .is_path = true, .about = "the program and its arguments",
	 .offset = offsetof(struct values, words)},
};

static const struct sw_cli_example examples[] = {
	{"sharewell profile -- python train.py --epochs 1", "measure it once; the next run makes the figures surer"},
	{"sharewell profile --name big --seconds 120 -- python train.py", "measure two minutes of a long training"},
	{"sharewell profile --counters -- python train.py --epochs 1", "also read the GPU's counters, where that is allowed"},
	{"sharewell profile --show big", "see what is known of it"},
};

const struct sw_cli_command sw_cli_profile = {
	.name = "profile",
	.about = "measure what a program needs and uses, and remember it",
	.text = "The program runs once, alone, under the GPU runtime. Measured are how long an iteration takes, how much of the time the "
		"GPU is busy, and the GPU memory at most and at least. So are what it copies, and what it takes of the host. Without a GPU "
		"only the last is measured, and what is missing is said.\n\nWith "
		"--counters it runs again, under NVIDIA's Nsight Compute, until the kernels of one iteration were measured; that may take "
		"minutes, whatever --seconds says. What they use of the SMs, the memory pipeline, the L2 and the DRAM is weighed by their "
		"time. Without, these figures are those of the built-in profile of that name, else of the default.\n\nWhat "
		"was measured is kept in the file profiles.yaml of the state folder; of several runs the medians count, of the latest "
		"nine. "
		"'sharewell contention' and jobs that are submitted find a profile by its name and by its command, before the built-in "
		"ones.",
	SW_CLI_OPTIONS(options),
	SW_CLI_OPERANDS(operands),
	SW_CLI_EXAMPLES(examples),
	.values_size = sizeof(struct values),
	.words_follow = true,
	.run = run,
};
