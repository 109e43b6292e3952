#include "cli/live.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include "api/job.h"
#include "api/request.h"
#include "api/when.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/interrupt.h"
#include "cli/message.h"

/* ---- members */

const char *sw_cli_text(const json_t *object, const char *key, const char *fallback)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text != NULL ? text : fallback;
}

int64_t sw_cli_number(const json_t *object, const char *key, int64_t fallback)
{
	const json_t *value = json_object_get(object, key);
	return json_is_integer(value) ? json_integer_value(value) : fallback;
}

double sw_cli_real(const json_t *object, const char *key, double fallback)
{
	const json_t *value = json_object_get(object, key);
	return json_is_number(value) ? json_number_value(value) : fallback;
}

/* ---- jobs */

int sw_cli_job_id(const char *word, uint64_t *ret_id, struct sw_err *err)
{
	uint64_t id;
	if (sw_parse_u64(word, strlen(word), &id) == 0 && id >= 1 && id <= SW_JOB_ID_MAX) {
		*ret_id = id;
		return 0;
	}
	sw_err_set(err, SW_EINPUT, "'%.60s' is not the number of a job", word);
	sw_err_hint(err, "'sharewell ps' lists jobs with their numbers.");
	return SW_EINPUT;
}

static int add_range(const char *word, sw_cli_ids *ids, struct sw_err *err)
{
	char first_word[32] = "";
	const char *dash = strchr(word, '-');
	bool is_range = dash != NULL && dash != word && (size_t)(dash - word) < sizeof first_word;
	uint64_t first = 0, last;
	if (is_range)
		memcpy(first_word, word, (size_t)(dash - word));
	int r = sw_cli_job_id(is_range ? first_word : word, &first, err);
	last = first;
	if (r == 0 && is_range)
		r = sw_cli_job_id(dash + 1, &last, err);
	if (r < 0)
		return r;
	if (last < first)
		return sw_err_set(err, SW_EINPUT, "'%.60s' is not a range of jobs", word);
	if (last - first >= SW_CLI_JOBS_MAX - ids->count) {
		sw_err_set(err, SW_ELIMIT, "'%.60s' makes it more than %u jobs", word, SW_CLI_JOBS_MAX);
		sw_err_hint(err, "Name fewer at a time.");
		return SW_ELIMIT;
	}
	for (uint64_t id = first; id <= last; id++) {
		uint64_t *slot = sw_vec_push(ids);
		if (slot == NULL)
			return sw_err_set(err, SW_ENOMEM, "out of memory");
		*slot = id;
	}
	return 0;
}

int sw_cli_job_ids(const struct sw_cli_texts *words, sw_cli_ids *ids, struct sw_err *err)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < words->count; i++)
		r = add_range(words->items[i], ids, err);
	if (r < 0)
		sw_vec_free(ids);
	return r;
}

int sw_cli_each_job(struct sw_client *client, const struct sw_cli_texts *words, sw_cli_job_fn *take, void *user, struct sw_err *err)
{
	sw_cli_ids ids = {0};
	int highest = 0, r = sw_cli_job_ids(words, &ids, err);
	for (size_t i = 0; r >= 0 && i < ids.count; i++) {
		r = take(user, client, ids.items[i], err);
		highest = r > highest ? r : highest;
	}
	sw_vec_free(&ids);
	return r < 0 ? r : highest;
}

int sw_cli_try_jobs(struct sw_client *client, const sw_cli_ids *ids, sw_cli_job_fn *take, void *user, struct sw_err *err)
{
	int first = 0;
	for (size_t i = 0; i < ids->count && (first == 0 || !sw_client_is_away(client)) && sw_cli_interrupted() == 0; i++) {
		struct sw_err problem = {0};
		int r = take(user, client, ids->items[i], &problem);
		if (r < 0 && first < 0)
			sw_cli_print_error(&problem);
		if (r < 0 && first == 0) {
			first = r;
			*err = problem;
		}
	}
	return first;
}

int sw_cli_get_job(struct sw_client *client, uint64_t id, json_t **ret_job, struct sw_err *err)
{
	char path[64];
	snprintf(path, sizeof path, "/v1/jobs/%" PRIu64, id);
	return sw_client_get(client, path, ret_job, err);
}

bool sw_cli_job_ended(const json_t *job)
{
	unsigned state = sw_state_find(sw_cli_text(job, "state", ""));
	return state < SW_STATES && sw_state_names[state].ended;
}

int sw_cli_job_exit(const json_t *job)
{
	int64_t signal = sw_cli_number(job, "signal", 0), code = sw_cli_number(job, "code", 0);
	if (strcmp(sw_cli_text(job, "state", ""), "CD") == 0)
		return 0;
	if (signal > 0 && signal < 128)
		return (int)(128 + signal);
	return code > 0 && code < 256 ? (int)code : 1;
}

int sw_cli_each_page(struct sw_client *client, const char *query, sw_cli_page_fn *take, void *user, struct sw_err *err)
{
	for (int64_t cursor = 0; cursor >= 0;) {
		SW_CLEANUP(sw_freep) char *path = NULL;
		SW_JSON *page = NULL;
		if (asprintf(&path, "/v1/jobs?%slimit=%u&cursor=%" PRId64, query, SW_LIST_MAX, cursor) < 0)
			return sw_err_set(err, SW_ENOMEM, "out of memory");
		int r = sw_client_get(client, path, &page, err);
		if (r == 0)
			r = take(user, json_object_get(page, "jobs"), err);
		if (r < 0)
			return r;
		int64_t next = sw_cli_number(page, "next", -1);
		/* Whatever the other side says, this ends. */
		cursor = next > cursor ? next : -1;
	}
	return 0;
}

/* ---- text */

char *sw_cli_elapsed(int64_t seconds, char buffer[32])
{
	int64_t days = seconds / 86400, hours = seconds / 3600 % 24, minutes = seconds / 60 % 60;
	if (days > 0)
		snprintf(buffer, 32, "%" PRId64 "-%02d:%02d:%02d", days, (int)hours, (int)minutes, (int)(seconds % 60));
	else if (hours > 0)
		snprintf(buffer, 32, "%d:%02d:%02d", (int)hours, (int)minutes, (int)(seconds % 60));
	else
		snprintf(buffer, 32, "%d:%02d", (int)minutes, (int)(seconds % 60));
	return buffer;
}

char *sw_cli_local_time(const char *rfc3339, char buffer[32])
{
	int64_t ns;
	struct tm parts;
	snprintf(buffer, 32, "-");
	if (rfc3339 == NULL || sw_when_parse(rfc3339, strlen(rfc3339), &ns) < 0)
		return buffer;
	time_t seconds = (time_t)(ns / SW_NS_PER_S);
	if (localtime_r(&seconds, &parts) != NULL)
		strftime(buffer, 32, "%Y-%m-%dT%H:%M:%S", &parts);
	return buffer;
}

/* "2026-10-04T15:00:00Z": as the controller writes moments into sentences. */
static bool is_moment(const char *text)
{
	static const char shape[] = "0000-00-00T00:00:00Z";
	size_t i = 0;
	while (shape[i] != '\0' && (shape[i] == '0' ? text[i] >= '0' && text[i] <= '9' : text[i] == shape[i]))
		i++;
	return shape[i] == '\0';
}

char *sw_cli_local_sentence(const char *text)
{
	/* Local time is shorter. */
	char *sentence = calloc(1, strlen(text) + 1), utc[32], local[32];
	bool quoted = false;
	for (char *at = sentence; at != NULL && *text != '\0';) {
		/* What stands in quotes are the job's own words. */
		quoted = quoted || *text == '\'';
		if (quoted || !is_moment(text)) {
			*at++ = *text++;
			continue;
		}
		snprintf(utc, sizeof utc, "%.20s", text);
		at = stpcpy(at, sw_cli_local_time(utc, local));
		text += 20;
	}
	return sentence;
}

int sw_cli_print_json(const json_t *value, struct sw_err *err)
{
	/* Escaped to ASCII: nothing reaches the terminal raw. */
	if (json_dumpf(value, stdout, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_ENCODE_ANY) < 0)
		return sw_err_set(err, SW_EIO, "cannot write standard output");
	fputc('\n', stdout);
	return 0;
}

/* Parameter values: escapes what cannot stand in a query. NULL: out of memory; the caller frees. */
static char *escape(const char *text)
{
	static const char hex[] = "0123456789ABCDEF";
	char *escaped = malloc(3 * strlen(text) + 1), *at = escaped;
	for (; at != NULL && *text != '\0'; text++) {
		unsigned char byte = (unsigned char)*text;
		bool plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
			     strchr("-._~,*", byte) != NULL;
		if (plain) {
			*at++ = (char)byte;
		} else {
			*at++ = '%';
			*at++ = hex[byte >> 4];
			*at++ = hex[byte & 15];
		}
	}
	if (at != NULL)
		*at = '\0';
	return escaped;
}

int sw_cli_query_add(char **query, const char *name, const char *value, struct sw_err *err)
{
	SW_CLEANUP(sw_freep) char *escaped = escape(value != NULL ? value : "");
	const char *before = *query != NULL ? *query : "";
	char *longer = NULL;
	if (escaped == NULL || (value != NULL ? asprintf(&longer, "%s%s=%s&", before, name, escaped) : asprintf(&longer, "%s", before)) < 0)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	free(*query);
	*query = longer;
	return 0;
}

/* ---- tables */

int sw_cli_rows_add(struct sw_cli_rows *rows, const char *cell)
{
	char *clean = sw_text_clean(cell);
	char **slot = clean != NULL ? sw_vec_push(&rows->cells) : NULL;
	if (slot == NULL) {
		free(clean);
		return SW_ENOMEM;
	}
	for (char *c = clean; *c != '\0'; c++)
		if (*c == '\n' || *c == '\t')
			*c = ' ';
	*slot = clean;
	return 0;
}

int sw_cli_rows_addf(struct sw_cli_rows *rows, const char *fmt, ...)
{
	char text[512];
	va_list args;
	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	return sw_cli_rows_add(rows, text);
}

/* At most `most` columns of it; the last column has no padding behind it. */
static void put_cell(FILE *out, const char *text, const struct sw_cli_column *column, unsigned width, bool last)
{
	size_t columns = sw_text_columns(text);
	unsigned padding = columns < width ? width - (unsigned)columns : 0;
	if (column->right)
		fprintf(out, "%*s", (int)padding, "");
	for (size_t shown = 0; *text != '\0'; text++) {
		/* A byte that begins a character, beyond the bound. */
		if (((unsigned char)*text & 0xC0) != 0x80 && shown++ == width)
			break;
		fputc(*text, out);
	}
	if (!column->right && !last)
		fprintf(out, "%*s", (int)padding, "");
	fputs(last ? "\n" : " ", out);
}

void sw_cli_rows_print(const struct sw_cli_rows *rows, FILE *out, bool headings)
{
	unsigned widths[24] = {0};
	size_t count = rows->column_count;
	assert(count > 0 && count <= sizeof widths / sizeof widths[0]);
	for (size_t i = 0; i < count && headings; i++)
		widths[i] = (unsigned)strlen(rows->columns[i].name);
	for (size_t i = 0; i < rows->cells.count; i++) {
		size_t columns = sw_text_columns(rows->cells.items[i]);
		if (columns > widths[i % count])
			widths[i % count] = (unsigned)columns;
	}
	for (size_t i = 0; i < count; i++)
		if (rows->columns[i].most > 0 && widths[i] > rows->columns[i].most)
			widths[i] = rows->columns[i].most;
	for (size_t i = 0; i < count && headings; i++)
		put_cell(out, rows->columns[i].name, &rows->columns[i], widths[i], i + 1 == count);
	for (size_t i = 0; i < rows->cells.count; i++)
		put_cell(out, rows->cells.items[i], &rows->columns[i % count], widths[i % count], i % count + 1 == count);
}

void sw_cli_rows_release(struct sw_cli_rows *rows)
{
	for (size_t i = 0; i < rows->cells.count; i++)
		free(rows->cells.items[i]);
	sw_vec_free(&rows->cells);
}
