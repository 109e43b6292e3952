#include "cli/starts.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "api/request.h"
#include "api/when.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/live.h"
#include "cli/message.h"

#define BASES 5u

static int no_memory(struct sw_err *err)
{
	return sw_err_set(err, SW_ENOMEM, "out of memory");
}

/* ---- from the controller */

static int take_page(json_t *starts, const json_t *page, struct sw_err *err)
{
	char key[24];
	size_t i;
	json_t *estimate;
	json_array_foreach(json_object_get(page, "jobs"), i, estimate)
	{
		snprintf(key, sizeof key, "%" PRId64, sw_cli_number(estimate, "id", 0));
		if (json_object_set(estimate, "at", json_object_get(page, "at")) != 0 || json_object_set(starts, key, estimate) != 0)
			return no_memory(err);
	}
	return 0;
}

static int get(struct sw_client *client, uint64_t only, json_t **ret_starts, struct sw_err *err)
{
	SW_JSON *starts = json_object();
	int64_t cursor = 0;
	int r = starts != NULL ? 0 : no_memory(err);
	while (r == 0 && cursor >= 0) {
		SW_JSON *page = NULL;
		char path[96];
		if (only > 0)
			snprintf(path, sizeof path, "/v1/forecast?job=%" PRIu64, only);
		else
			snprintf(path, sizeof path, "/v1/forecast?limit=%u&cursor=%" PRId64, SW_LIST_MAX, cursor);
		r = sw_client_get(client, path, &page, err);
		const char *failed = sw_cli_text(page, "failed", NULL);
		if (failed != NULL && only == 0)
			sw_cli_print_note("no start can be estimated: %s", failed);
		r = r < 0 ? r : take_page(starts, page, err);
		cursor = sw_cli_number(page, "next", -1);
	}
	if (r == 0)
		*ret_starts = SW_TAKE(starts);
	return r;
}

bool sw_cli_starts_are_unknown(const struct sw_err *err)
{
	return err->code == SW_ENOTFOUND && strstr(err->fact, "'/v1/forecast") != NULL;
}

int sw_cli_starts_get(struct sw_client *client, uint64_t only, json_t **ret_starts, char **ret_failed, struct sw_err *err)
{
	struct sw_err own = {0};
	int r = get(client, only, ret_starts, &own);
	if (r == 0 || r == SW_ESTOPPED || r == SW_ENOMEM) {
		if (r < 0 && err != NULL)
			*err = own;
		return r;
	}
	const char *why = sw_cli_starts_are_unknown(&own) ? "the controller is older than this command and makes no forecasts" : own.fact;
	*ret_starts = json_object();
	*ret_failed = sw_text_clean(why);
	return *ret_starts != NULL && *ret_failed != NULL ? 0 : no_memory(err);
}

const json_t *sw_cli_starts_find(const json_t *starts, uint64_t id)
{
	char key[24];
	snprintf(key, sizeof key, "%" PRIu64, id);
	return json_object_get(starts, key);
}

int sw_cli_starts_put(const json_t *starts, uint64_t id, const char *failed, json_t *job)
{
	static const char *const keys[] = {"at", "estimated_start_at", "basis", "no_estimate"};
	const json_t *estimate = sw_cli_starts_find(starts, id);
	for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++) {
		json_t *value = json_object_get(estimate, keys[k]);
		if (json_object_set_new(job, keys[k], value != NULL ? json_incref(value) : json_null()) != 0)
			return SW_ENOMEM;
	}
	if (estimate == NULL && failed != NULL)
		return json_object_set_new(job, "no_estimate", json_string(failed)) == 0 ? 0 : SW_ENOMEM;
	return 0;
}

/* ---- in words */

static void say_span(int64_t s, char *text, size_t size)
{
	if (s < 120)
		snprintf(text, size, "%" PRId64 " s", s);
	else if (s < 7200)
		snprintf(text, size, "%" PRId64 " min", (s + 30) / 60);
	else if (s < 2 * 86400)
		snprintf(text, size, "%" PRId64 " h", (s + 1800) / 3600);
	else
		snprintf(text, size, "%" PRId64 " days", (s + 43200) / 86400);
}

/* "17:42", or with the date where it is another day. */
static void say_moment(int64_t at_ns, int64_t now_ns, char *text, size_t size)
{
	time_t at = (time_t)(at_ns / SW_NS_PER_S), now = (time_t)(now_ns / SW_NS_PER_S);
	struct tm then = {0}, today = {0};
	text[0] = '\0';
	if (localtime_r(&at, &then) == NULL || localtime_r(&now, &today) == NULL)
		return;
	bool same_day = then.tm_yday == today.tm_yday && then.tm_year == today.tm_year;
	strftime(text, size, same_day ? "%H:%M" : "%Y-%m-%d %H:%M", &then);
}

/* "runs as long as ..." */
static const struct {
	const char *key, *words;
} bases[BASES] = {
	{"expected", "its owner expects"},	  {"limits", "its limit allows"},	{"alike", "earlier jobs of its name (median)"},
	{"all", "jobs here usually do (median)"}, {"again", "it has until now, again"},
};

/* What the estimate rests on, from the jobs that end before. */
static void say_basis(const json_t *basis, char *text, size_t size)
{
	int64_t jobs = 0;
	unsigned count = 0, said = 0;
	int used = 0;
	text[0] = '\0';
	for (size_t b = 0; b < BASES; b++) {
		int64_t ended = sw_cli_number(basis, bases[b].key, 0);
		jobs += ended;
		count += ended > 0;
	}
	if (jobs == 1)
		used = snprintf(text, size, ", if the job that ends before runs as long as ");
	else if (jobs > 1)
		used = snprintf(text, size, ", if each of the %" PRId64 " jobs that end before runs as long as ", jobs);
	for (size_t b = 0; b < BASES && used >= 0 && (size_t)used < size; b++) {
		if (sw_cli_number(basis, bases[b].key, 0) <= 0)
			continue;
		const char *between = said == 0 ? "" : said + 1 == count ? " or " : ", ";
		used += snprintf(text + used, size - (size_t)used, "%s%s", between, bases[b].words);
		said++;
	}
}

static int64_t moment(const char *text)
{
	int64_t ns;
	return text != NULL && sw_when_parse(text, strlen(text), &ns) == 0 ? ns : -1;
}

char *sw_cli_starts_say(const json_t *estimate, int64_t now_ns, char *text, size_t size)
{
	int64_t start_ns = moment(sw_cli_text(estimate, "estimated_start_at", NULL));
	char span[32], clock[32], basis[256];
	if (start_ns < 0) {
		snprintf(text, size, "no estimate of its start: %s", sw_cli_text(estimate, "no_estimate", "the controller gives none"));
	} else if (start_ns - now_ns < SW_NS_PER_S) {
		snprintf(text, size, "expected to start at any moment");
	} else {
		say_span((start_ns - now_ns + SW_NS_PER_S / 2) / SW_NS_PER_S, span, sizeof span);
		say_moment(start_ns, now_ns, clock, sizeof clock);
		say_basis(json_object_get(estimate, "basis"), basis, sizeof basis);
		snprintf(text, size, "expected to start in about %s (%s)%s", span, clock, basis);
	}
	return text;
}
