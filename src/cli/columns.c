#include "cli/columns.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/number.h"
#include "base/suggest.h"

#define CELL_SIZE 512u

/* Where a value is in the object of a job, and how it is written. */
enum kind {
	TEXT,
	NUMBER,
	SECONDS, /* elapsed, or a limit */
	MOMENT,
	BYTES,
	PLACE,	   /* where it runs, or why not */
	NODES,	   /* how many */
	EXIT_CODE, /* code:signal */
};

struct sw_cli_field {
	const char *name;
	const char *alias; /* other names, '|' between them; NULL */
	char letter;	   /* of squeue's formats; 0: none */
	const char *title;
	const char *key; /* of the job, or behind a dot of something in it, such as what it asked for */
	enum kind kind;
	unsigned most;
};

static const struct sw_cli_field fields[] = {
	{"jobid", "id|jobarrayid", 'i', "JOBID", "id", NUMBER, 0},
	{"name", "jobname", 'j', "NAME", "name", TEXT, 32},
	{"user", "username", 'u', "USER", "user", TEXT, 16},
	{"uid", "userid", 'U', "UID", "uid", NUMBER, 0},
	{"tenant", "account", 'a', "TENANT", "tenant", TEXT, 16},
	{"st", "statecompact", 't', "ST", "state", TEXT, 0},
	{"state", "statelong", 'T', "STATE", "state_long", TEXT, 0},
	{"time", "timeused|elapsed", 'M', "TIME", "ran_s", SECONDS, 0},
	{"timelimit", NULL, 'l', "TIME_LIMIT", "asked.time_limit_s", SECONDS, 0},
	{"expected", NULL, 0, "EXPECTED", "asked.expected_s", SECONDS, 0},
	{"gpus", "tres-per-job|gres", 'b', "GPUS", "gpus", NUMBER, 0},
	{"mingpus", NULL, 0, "MIN_GPUS", "asked.min_gpus", NUMBER, 0},
	{"maxgpus", NULL, 0, "MAX_GPUS", "asked.max_gpus", NUMBER, 0},
	{"gpumemory", NULL, 0, "GPU_MEMORY", "asked.gpu_memory_bytes", BYTES, 0},
	{"cpus", "numcpus", 'C', "CPUS_PER_GPU", "asked.cpus", NUMBER, 0},
	{"memory", "minmemory", 'm', "MEM_PER_GPU", "asked.memory_bytes", BYTES, 0},
	{"class", "qos", 'q', "CLASS", "asked.class", TEXT, 0},
	{"weight", "priority", 'Q', "WEIGHT", "asked.weight", NUMBER, 0},
	{"deadline", NULL, 0, "DEADLINE", "asked.deadline", MOMENT, 0},
	{"nodes", "numnodes", 'D', "NODES", "node", NODES, 0},
	{"nodelist", "node", 'N', "NODELIST", "node", TEXT, 0},
	{"reason", NULL, 'r', "REASON", "reason", TEXT, 0},
	{"place", "reasonlist|nodelist(reason)", 'R', "NODE(REASON)", "", PLACE, 0},
	{"submit", "submittime", 'V', "SUBMIT_TIME", "submitted_at", MOMENT, 0},
	{"start", "starttime", 'S', "STARTED", "started_at", MOMENT, 0},
	{"end", "endtime", 'e', "END_TIME", "ended_at", MOMENT, 0},
	{"estimate", "estimatedstart", 0, "START_TIME", "estimated_start_at", MOMENT, 0},
	{"restarts", "restartcnt", 0, "RESTARTS", "restarts", NUMBER, 0},
	{"preemptions", NULL, 0, "PREEMPTIONS", "preemptions", NUMBER, 0},
	{"slowdown", NULL, 0, "SLOWDOWN", "speed.slowdown", NUMBER, 0},
	{"predicted", NULL, 0, "PREDICTED", "sharing.predicted", NUMBER, 0},
	{"exitcode", "exit_code", 0, "EXITCODE", "", EXIT_CODE, 0},
};

static const char *field_word(size_t index)
{
	return index < SW_CLI_COUNT_OF(fields) ? fields[index].name : NULL;
}

const struct sw_cli_words sw_cli_column_words = {.at = field_word, .list = true};

/* ---- from text */

static bool is_alias(const char *aliases, const char *name, size_t size)
{
	for (const char *at = aliases; at != NULL && *at != '\0'; at += strcspn(at, "|"), at += *at == '|')
		if (strcspn(at, "|") == size && strncasecmp(at, name, size) == 0)
			return true;
	return false;
}

static const struct sw_cli_field *find_name(const char *name, size_t size, struct sw_err *err)
{
	for (size_t i = 0; i < SW_CLI_COUNT_OF(fields); i++)
		if ((strlen(fields[i].name) == size && strncasecmp(fields[i].name, name, size) == 0) ||
		    is_alias(fields[i].alias, name, size))
			return &fields[i];
	SW_CLEANUP(sw_freep) char *copy = strndup(name, size);
	const char *near = copy != NULL ? sw_suggest(copy, fields, SW_CLI_COUNT_OF(fields), sizeof fields[0]) : NULL;
	sw_err_set(err, SW_EINPUT, "there is no column '%.*s'", (int)(size < 60 ? size : 60), name);
	if (near != NULL)
		sw_err_hint(err, "Did you mean '%s'?", near);
	else
		sw_err_hint(err, "'sharewell ps --help' lists them.");
	return NULL;
}

static const struct sw_cli_field *find_letter(char letter, struct sw_err *err)
{
	for (size_t i = 0; i < SW_CLI_COUNT_OF(fields); i++)
		if (fields[i].letter != 0 && fields[i].letter == letter)
			return &fields[i];
	sw_err_set(err, SW_EINPUT, "there is no column '%%%c'", letter >= ' ' && letter < 127 ? letter : '?');
	sw_err_hint(err, "'sharewell ps --help' lists columns by their names.");
	return NULL;
}

static int add_field(struct sw_cli_columns *columns, const struct sw_cli_field *field, bool descending, struct sw_err *err)
{
	if (field == NULL)
		return SW_EINPUT;
	if (columns->count == SW_CLI_COLUMNS_MAX)
		return sw_err_set(err, SW_ELIMIT, "there are more than %u columns", SW_CLI_COLUMNS_MAX);
	columns->fields[columns->count] = field;
	columns->descending[columns->count] = descending;
	columns->shown[columns->count++] = (struct sw_cli_column){
		.name = field->title,
		.right = field->kind == NUMBER || field->kind == SECONDS || field->kind == BYTES || field->kind == NODES,
		.most = field->most,
	};
	columns->needs_asked = columns->needs_asked || strncmp(field->key, "asked.", 6) == 0;
	columns->needs_start = columns->needs_start || strcmp(field->key, "estimated_start_at") == 0;
	return 0;
}

/* "%.18i %9j": widths are the program's own affair. */
static int parse_letters(const char *text, struct sw_cli_columns *columns, struct sw_err *err)
{
	int r = 0;
	for (const char *at = text; r == 0 && (at = strchr(at, '%')) != NULL;) {
		at += 1 + strspn(at + 1, ".-0123456789");
		r = add_field(columns, find_letter(*at, err), false, err);
		at += *at != '\0';
	}
	return r;
}

static int parse_names(const char *text, bool signs, struct sw_cli_columns *columns, struct sw_err *err)
{
	for (const char *at = text;; at++) {
		at += strspn(at, " ");
		bool descending = signs && *at == '-';
		at += signs && (*at == '-' || *at == '+');
		size_t size = strcspn(at, ", ");
		/* Widths, as in squeue -O name:20, change nothing. */
		size_t name = strcspn(at, ":, ");
		int r = add_field(columns, find_name(at, name < size ? name : size, err), descending, err);
		if (r < 0)
			return r;
		at += size;
		at += strspn(at, " ");
		if (*at == '\0')
			return 0;
		at -= *at != ',';
	}
}

int sw_cli_columns_parse(const char *text, struct sw_cli_columns *ret_columns, struct sw_err *err)
{
	struct sw_cli_columns columns = {.count = 0};
	int r = strchr(text, '%') != NULL ? parse_letters(text, &columns, err) : parse_names(text, false, &columns, err);
	if (r == 0)
		*ret_columns = columns;
	return r;
}

int sw_cli_columns_order(const char *text, struct sw_cli_columns *ret_order, struct sw_err *err)
{
	struct sw_cli_columns order = {.count = 0};
	int r = parse_names(text, true, &order, err);
	if (r == 0)
		*ret_order = order;
	return r;
}

/* ---- cells */

static const json_t *value_of(const struct sw_cli_field *field, const json_t *job)
{
	const char *dot = strchr(field->key, '.');
	if (dot == NULL)
		return json_object_get(job, field->key);
	char outer[32];
	snprintf(outer, sizeof outer, "%.*s", (int)(dot - field->key), field->key);
	return json_object_get(json_object_get(job, outer), dot + 1);
}

/* Where it runs, or in brackets why it does not. */
static void write_place(const json_t *job, char *cell)
{
	const char *state = sw_cli_text(job, "state", "?"), *node = sw_cli_text(job, "node", ""), *reason = sw_cli_text(job, "reason", "");
	char gpus[128] = "";
	size_t i, used = 0;
	json_t *index;
	json_array_foreach(json_object_get(job, "gpu_indexes"), i, index) if (used < sizeof gpus - 8) used +=
		(size_t)snprintf(gpus + used, sizeof gpus - used, "%s%" JSON_INTEGER_FORMAT, i > 0 ? "," : ":", json_integer_value(index));
	if (strcmp(state, "PD") == 0)
		snprintf(cell, CELL_SIZE, "(%s)", reason[0] != '\0' ? reason : "Resources");
	else if (strcmp(state, "R") != 0 && reason[0] != '\0')
		snprintf(cell, CELL_SIZE, "%s (%s)", node, reason);
	else
		snprintf(cell, CELL_SIZE, "%s%s", node, gpus);
}

static void write_number(const json_t *value, char *cell)
{
	if (json_is_integer(value))
		snprintf(cell, CELL_SIZE, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else if (json_is_real(value))
		snprintf(cell, CELL_SIZE, "%g", json_real_value(value));
}

static void write_cell(const struct sw_cli_field *field, const json_t *job, char *cell)
{
	const json_t *value = value_of(field, job);
	const char *text = json_string_value(value);
	char buffer[32];
	snprintf(cell, CELL_SIZE, "-");
	switch (field->kind) {
	case TEXT:
		if (text != NULL && text[0] != '\0')
			snprintf(cell, CELL_SIZE, "%s", text);
		break;
	case NUMBER:
		write_number(value, cell);
		break;
	case SECONDS:
		if (json_is_number(value))
			snprintf(cell, CELL_SIZE, "%s", sw_cli_elapsed((int64_t)json_number_value(value), buffer));
		break;
	case MOMENT:
		snprintf(cell, CELL_SIZE, "%s", text != NULL ? sw_cli_local_time(text, buffer) : "N/A");
		break;
	case BYTES:
		if (json_integer_value(value) > 0)
			snprintf(cell, CELL_SIZE, "%s", sw_format_bytes((uint64_t)json_integer_value(value), buffer));
		break;
	case PLACE:
		write_place(job, cell);
		break;
	case NODES:
		snprintf(cell, CELL_SIZE, "%d", text != NULL ? 1 : 0);
		break;
	case EXIT_CODE:
		if (sw_cli_job_ended(job) && json_is_integer(json_object_get(job, "code")))
			snprintf(cell, CELL_SIZE, "%" PRId64 ":%" PRId64, sw_cli_number(job, "code", 0), sw_cli_number(job, "signal", 0));
		break;
	}
}

int sw_cli_columns_add(const struct sw_cli_columns *columns, struct sw_cli_rows *rows, const json_t *job)
{
	char cell[CELL_SIZE];
	int r = 0;
	for (size_t i = 0; r == 0 && i < columns->count; i++) {
		write_cell(columns->fields[i], job, cell);
		r = sw_cli_rows_add(rows, cell);
	}
	return r;
}

/* ---- order */

struct item {
	const struct sw_cli_columns *order;
	json_t *job;
	size_t place; /* before */
};

static int compare_values(const struct sw_cli_field *field, const json_t *a, const json_t *b)
{
	const json_t *x = value_of(field, a), *y = value_of(field, b);
	if (field->key[0] == '\0' || json_is_string(x) || json_is_string(y)) {
		char one[CELL_SIZE], other[CELL_SIZE];
		write_cell(field, a, one);
		write_cell(field, b, other);
		return strcmp(one, other);
	}
	double p = json_number_value(x), q = json_number_value(y);
	return (p > q) - (p < q);
}

static int compare(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	for (size_t i = 0; i < x->order->count; i++) {
		int difference = compare_values(x->order->fields[i], x->job, y->job);
		if (difference != 0)
			return x->order->descending[i] ? -difference : difference;
	}
	return x->place < y->place ? -1 : 1;
}

int sw_cli_columns_sort(const struct sw_cli_columns *order, json_t *jobs)
{
	size_t count = json_array_size(jobs);
	SW_CLEANUP(sw_freep) struct item *items = calloc(count + 1, sizeof *items);
	if (items == NULL)
		return SW_ENOMEM;
	for (size_t i = 0; i < count; i++)
		items[i] = (struct item){order, json_incref(json_array_get(jobs, i)), i};
	qsort(items, count, sizeof *items, compare);
	json_array_clear(jobs);
	int r = 0;
	for (size_t i = 0; i < count; i++)
		r = json_array_append_new(jobs, items[i].job) == 0 ? r : SW_ENOMEM;
	return r;
}
