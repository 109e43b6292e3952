/* Finding the class of a failure. */
#include <string.h>

#include "base/utf8.h"
#include "failure/rules.h"

/* So much of a line around the plain text is given to the expression: lines may
 * be as long as the log. */
enum { BEFORE = 400, AFTER = 1000 };
/* Lines that hold the plain text of one pattern and do not match, before it is given up. */
enum { MISSES_MAX = 200 };

/* ---- clean text */

/* The end of a terminal's escape sequence that begins at `at`. */
static size_t skip_escape(const char *at, size_t left)
{
	size_t i = 1;
	if (left > 1 && at[1] == '[')
		for (i = 2; i < left && (at[i] < '@' || at[i] > '~'); i++)
			;
	return i < left ? i + 1 : left;
}

void sw_failure_clean(const char *text, size_t length, char *ret_text, size_t size)
{
	size_t used = 0;
	for (size_t i = 0; i < length;) {
		if (text[i] == '\033') {
			i += skip_escape(text + i, length - i);
			continue;
		}
		size_t step = sw_utf8_length(text + i, length - i);
		bool control = step <= 1 && ((unsigned char)text[i] < 0x20 || text[i] == 0x7f);
		/* C1 controls are two bytes long. */
		control = control || (step == 2 && (unsigned char)text[i] == 0xc2 && (unsigned char)text[i + 1] < 0xa0);
		char shown = step == 0 ? '?' : ' ';
		size_t wanted = control || step == 0 ? 1 : step;
		if (used + wanted >= size)
			break;
		if (wanted > 1 || (!control && step == 1))
			memcpy(ret_text + used, text + i, wanted);
		else
			ret_text[used] = shown;
		if (used > 0 || ret_text[0] != ' ') /* none at the beginning */
			used += wanted;
		i += step > 0 ? step : 1;
	}
	while (used > 0 && ret_text[used - 1] == ' ')
		used--;
	ret_text[used] = '\0';
}

/* ---- searching a log */

/* One line, or the part of it around what was found, as a string of its own. */
struct window {
	char text[BEFORE + AFTER + 1];
	const char *line; /* where it begins in the log */
	size_t length;
};

static void cut_window(const char *log, size_t size, size_t hit, struct window *window)
{
	size_t begin = hit, end = hit;
	while (begin > 0 && log[begin - 1] != '\n' && hit - begin < BEFORE)
		begin--;
	while (end < size && log[end] != '\n' && end - hit < AFTER)
		end++;
	window->line = log + begin;
	window->length = end - begin;
	memcpy(window->text, log + begin, window->length);
	window->text[window->length] = '\0';
	for (size_t i = 0; i < window->length; i++)
		if (window->text[i] == '\0' || window->text[i] == '\r')
			window->text[i] = ' ';
}

static void keep_match(const struct window *window, const regmatch_t matches[2], struct sw_failure_found *found)
{
	/* Where the line is longer than what is kept, the part that matched is what counts. */
	size_t from = window->length > SW_FAILURE_LINE_MAX ? (size_t)matches[0].rm_so : 0;
	sw_failure_clean(window->text + from, window->length - from, found->line, sizeof found->line);
	if (matches[1].rm_so >= 0)
		sw_failure_clean(window->text + matches[1].rm_so, (size_t)(matches[1].rm_eo - matches[1].rm_so), found->path,
				 sizeof found->path);
}

/* Looks from the front: of several lines the first is nearer to the cause. */
static bool search(const struct sw_failure_pattern *pattern, const char *log, size_t size, struct sw_failure_found *found)
{
	size_t at = 0;
	for (int misses = 0; misses < MISSES_MAX; misses++) {
		const char *hit = at < size ? memmem(log + at, size - at, pattern->plain, pattern->plain_size) : NULL;
		if (hit == NULL)
			return false;
		struct window window;
		regmatch_t matches[2];
		cut_window(log, size, (size_t)(hit - log), &window);
		if (regexec(&pattern->regex, window.text, 2, matches, 0) == 0) {
			keep_match(&window, matches, found);
			return true;
		}
		size_t next = (size_t)(window.line - log) + window.length;
		at = next > (size_t)(hit - log) ? next : (size_t)(hit - log) + 1;
	}
	return false;
}

static bool by_log(const struct sw_failure_table *table, const char *log, size_t size, bool symptoms, struct sw_failure_found *found)
{
	for (size_t p = 0; p < table->patterns.count; p++) {
		const struct sw_failure_pattern *pattern = &table->patterns.items[p];
		const struct sw_failure_rule *rule = &table->rules.items[pattern->rule];
		if (rule->failure.symptom == symptoms && search(pattern, log, size, found)) {
			found->failure = &rule->failure;
			return true;
		}
	}
	return false;
}

static bool by_whole_log(const struct sw_failure_table *table, const char *log, size_t size, struct sw_failure_found *found)
{
	if (log == NULL || size == 0)
		return false;
	if (size > SW_FAILURE_TAIL) {
		log += size - SW_FAILURE_TAIL;
		size = SW_FAILURE_TAIL;
	}
	size_t near = size > SW_FAILURE_NEAR ? SW_FAILURE_NEAR : size;
	return by_log(table, log + size - near, near, false, found) || (near < size && by_log(table, log, size, false, found)) ||
	       by_log(table, log, size, true, found);
}

/* ---- other evidence */

static bool by_reason(const struct sw_failure_table *table, const struct sw_failure_evidence *evidence, struct sw_failure_found *found)
{
	if (evidence->reason == NULL || evidence->reason[0] == '\0')
		return false;
	for (size_t i = 0; i < table->rules.count; i++) {
		const struct sw_failure_rule *rule = &table->rules.items[i];
		for (const struct sw_yaml_node *word = rule->reasons != NULL ? rule->reasons->first : NULL; word != NULL;
		     word = word->next) {
			if (strcmp(word->text, evidence->reason) != 0)
				continue;
			found->failure = &rule->failure;
			if (evidence->detail != NULL)
				sw_failure_clean(evidence->detail, strlen(evidence->detail), found->line, sizeof found->line);
			return true;
		}
	}
	return false;
}

static bool has_bit(const uint64_t *bits, int number, int most)
{
	return number > 0 && number <= most && (bits[number / 64] >> number % 64 & 1) != 0;
}

static bool by_exit(const struct sw_failure_table *table, const struct sw_failure_evidence *evidence, struct sw_failure_found *found)
{
	int signal = evidence->signal == 0 && evidence->code > 128 && evidence->code <= 192 ? evidence->code - 128 : evidence->signal;
	for (size_t i = 0; i < table->rules.count; i++) {
		const struct sw_failure_rule *rule = &table->rules.items[i];
		if (has_bit(rule->signals, signal, 127) || has_bit(rule->codes, evidence->code, 255)) {
			found->failure = &rule->failure;
			return true;
		}
	}
	return false;
}

void sw_failure_classify(const struct sw_failure_table *table, const struct sw_failure_evidence *evidence,
			 struct sw_failure_found *ret_found)
{
	struct sw_failure_found found = {.failure = &table->rules.items[table->unknown].failure};
	bool launch = evidence->reason != NULL && strcmp(evidence->reason, "launch") == 0 && evidence->detail != NULL;
	bool done = (launch && by_whole_log(table, evidence->detail, strlen(evidence->detail), &found)) ||
		    by_reason(table, evidence, &found) || by_whole_log(table, evidence->log, evidence->log_size, &found) ||
		    by_exit(table, evidence, &found);
	(void)done;
	*ret_found = found;
}
