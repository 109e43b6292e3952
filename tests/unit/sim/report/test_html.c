/* The HTML report: well-formed, self-contained, escaped, bounded, and without a number that is
 * none, whatever the results are. */
#include <ctype.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/number.h"
#include "sim/report/html.h"
#include "unit/sim/report/fixture.h"

#define COMMAND "sharewell sim --policy 'a<b>' --seed 7"

struct set {
	const struct sw_result *results[FIXTURE_MAX];
	size_t count;
};

static int write_html(FILE *out, const void *context)
{
	const struct set *set = context;
	struct sw_err err = {0};
	return sw_results_html(out, set->results, set->count, COMMAND, &err);
}

static const char *const entities[] = {"&lt;", "&gt;", "&amp;", "&quot;", "&#39;"};

static void check_entity(const char *at)
{
	for (size_t i = 0; i < sizeof entities / sizeof *entities; i++)
		if (strncmp(at, entities[i], strlen(entities[i])) == 0)
			return;
	fail_msg("a bare ampersand: %.40s", at);
}

/* The end of the tag that starts at `tag`: attributes must be quoted, and
 * quotes must hold no markup. */
static const char *end_of_tag(const char *tag)
{
	bool quoted = false;
	for (const char *at = tag + 1; *at != '\0'; at++) {
		if (*at == '"')
			quoted = !quoted;
		if (*at == '<')
			fail_msg("markup inside a tag: %.60s", tag);
		if (*at == '&')
			check_entity(at);
		if (*at == '=' && !quoted && at[1] != '"')
			fail_msg("an attribute without quotes: %.60s", tag);
		if (*at == '>' && !quoted)
			return at;
		if (*at == '>' && quoted)
			fail_msg("markup inside an attribute: %.60s", tag);
	}
	fail_msg("a tag without end: %.60s", tag);
	return NULL;
}

/* "NAN", "inf" and the like, standing alone. */
static void check_numbers(const char *from, const char *to)
{
	for (const char *at = from; at + 3 <= to; at++) {
		bool alone = (at == from || !isalpha((unsigned char)at[-1])) && (at + 3 == to || !isalpha((unsigned char)at[3]));
		if (alone && (strncasecmp(at, "nan", 3) == 0 || strncasecmp(at, "inf", 3) == 0))
			fail_msg("a number that is none: %.60s", at > from + 20 ? at - 20 : from);
	}
}

struct stack {
	char names[64][16];
	size_t depth;
};

static void push(struct stack *stack, const char *name, size_t length)
{
	assert_true(stack->depth < 64 && length < sizeof stack->names[0]);
	memcpy(stack->names[stack->depth], name, length);
	stack->names[stack->depth++][length] = '\0';
}

static void pop(struct stack *stack, const char *name, size_t length)
{
	if (stack->depth == 0 || strlen(stack->names[stack->depth - 1]) != length ||
	    strncmp(stack->names[stack->depth - 1], name, length) != 0)
		fail_msg("'</%.*s>' closes '<%s>'", (int)length, name, stack->depth > 0 ? stack->names[stack->depth - 1] : "nothing");
	stack->depth--;
}

/* Reads one tag and returns what follows it; the content of style and script is skipped. */
static const char *read_tag(struct stack *stack, const char *tag)
{
	const char *end = end_of_tag(tag);
	bool closes = tag[1] == '/';
	const char *name = tag + 1 + closes;
	size_t length = strcspn(name, " />\n");
	check_numbers(tag, end);
	if (closes)
		pop(stack, name, length);
	else if (end[-1] != '/')
		push(stack, name, length);
	if (strncmp(tag, "<style>", 7) == 0)
		return strstr(end, "</style>");
	if (strncmp(tag, "<script>", 8) == 0)
		return strstr(end, "</script>");
	return end + 1;
}

/* Every tag is closed in its order, every attribute is quoted, every special
 * character in texts is escaped. */
static void check_page(const char *page)
{
	struct stack stack = {.depth = 0};
	const char *at = page + strlen("<!doctype html>");
	assert_memory_equal(page, "<!doctype html>", strlen("<!doctype html>"));
	while (*at != '\0') {
		const char *text = at;
		for (; *at != '<' && *at != '\0'; at++) {
			if (*at == '&')
				check_entity(at);
			if (*at == '>')
				fail_msg("a bare '>': %.40s", at);
		}
		check_numbers(text, at);
		if (*at == '<')
			at = read_tag(&stack, at);
		assert_non_null(at);
	}
	assert_int_equal(stack.depth, 0);
	/* Nothing is fetched from anywhere. */
	static const char *const outside[] = {"://", "src=\"", "@import", "url(", "fetch(", "XMLHttpRequest", "<img", "<iframe"};
	for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
		assert_null(strstr(page, outside[i]));
}

static char *page_of(const struct set *set)
{
	char *page = fixture_text(write_html, set);
	check_page(page);
	return page;
}

static size_t count_of(const char *text, const char *word)
{
	size_t count = 0;
	for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word))
		count++;
	return count;
}

static const char *const sections[] = {"scores", "jct", "slowdown", "queueing", "waiting", "gpus", "longest", "assumptions", "run"};

/* Two policies: all sections, both names in each plot, the headline in words, the command. */
static void test_two(void **state)
{
	(void)state;
	SW_CLEANUP(sw_result_freep) struct sw_result *fifo = fixture_busy("fifo", 500, 100, 50);
	SW_CLEANUP(sw_result_freep) struct sw_result *las = fixture_busy("las", 500, 1, 50);
	const struct set set = {{fifo, las}, 2};
	char *page = page_of(&set);
	for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
		char id[32];
		snprintf(id, sizeof id, "<section id=\"%s\">", sections[i]);
		assert_int_equal(count_of(page, id), 1);
	}
	assert_int_equal(count_of(page, "<section id=\"exchange\">"), 1);
	assert_int_equal(count_of(page, "<section id=\"deadlines\">"), 0);
	/* Two distributions, waiting jobs, GPUs. */
	assert_int_equal(count_of(page, "data-name=\"fifo\""), 4);
	assert_int_equal(count_of(page, "data-name=\"las\""), 4);
	assert_non_null(strstr(page, "<p class=\"headline\"><strong>las</strong> finishes jobs "));
	assert_non_null(strstr(page, " sooner on average than <strong>fifo</strong>"));
	assert_non_null(strstr(page, "<code>sharewell sim --policy &#39;a&lt;b&gt;&#39; --seed 7</code>"));
	assert_non_null(strstr(page, "<li>preemption is free</li>\n<li>nothing fails</li>"));
	assert_non_null(strstr(page, "<code>0123456789abcdef</code>"));
	free(page);
}

/* The factor of the headline is the ratio of the averages. */
static void test_headline(void **state)
{
	(void)state;
	SW_CLEANUP(sw_result_freep) struct sw_result *fifo = fixture_empty("fifo");
	SW_CLEANUP(sw_result_freep) struct sw_result *las = fixture_empty("las");
	for (int i = 0; i < 4; i++) {
		fixture_job(fifo, 0, 23100, 9900, 1);
		fixture_job(las, 0, 100, 9900, 1)->preemptions = 1;
	}
	sw_result_summarise(fifo);
	sw_result_summarise(las);
	const struct set both = {{fifo, las}, 2}, same = {{fifo, fifo}, 2}, alone = {{las}, 1};
	char *page = page_of(&both);
	assert_non_null(strstr(page, "<strong>las</strong> finishes jobs 3.3\xC3\x97 sooner on average than <strong>fifo</strong>: after "
				     "<span class=\"whole\">2 h 47 min</span> instead of <span class=\"whole\">9 h 10 min</span>."));
	assert_non_null(strstr(page, "with 4 preemptions and 0 migrations."));
	free(page);
	page = page_of(&same);
	assert_non_null(strstr(page, "Both policies take the same time on average"));
	free(page);
	page = page_of(&alone);
	assert_non_null(strstr(page, "With <strong>las</strong> a job takes <span class=\"whole\">2 h 47 min</span> on average"));
	free(page);
}

/* A policy that finished fewer jobs does not win, and the page says why; so it does for
 * what the engine notes. */
static void test_warnings(void **state)
{
	(void)state;
	SW_CLEANUP(sw_result_freep) struct sw_result *fifo = fixture_busy("fifo", 100, 10, 5);
	SW_CLEANUP(sw_result_freep) struct sw_result *chaos = fixture_busy("chaos", 100, 0, 5);
	chaos->outcomes.items[3].state = SW_OUTCOME_FAILED;
	sw_result_summarise(chaos);
	free(chaos->notes);
	chaos->notes = strdup("thrown out after 3 misuses of the plan; <fifo> took over");
	const struct set set = {{fifo, chaos}, 2};
	char *page = page_of(&set);
	assert_null(strstr(page, "<strong>chaos</strong> finishes"));
	assert_non_null(strstr(page, "finished only 99 of 100 jobs"));
	assert_non_null(strstr(page, "thrown out after 3 misuses of the plan; &lt;fifo&gt; took over"));
	free(page);
}

/* Hostile names stay text everywhere, in elements and in attributes. */
static void test_hostile(void **state)
{
	(void)state;
	static const char evil[] = "<script>alert(1)</script>\" onload=\"x' & \xFF\x01";
	SW_CLEANUP(sw_result_freep) struct sw_result *fifo = fixture_busy("fifo", 50, 3, 5);
	SW_CLEANUP(sw_result_freep) struct sw_result *bad = fixture_busy(evil, 50, 1, 5);
	char **const fields[] = {&bad->placement, &bad->world, &bad->trace, &bad->cluster, &bad->assumptions, &bad->notes};
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
		free(*fields[i]);
		*fields[i] = strdup(evil);
	}
	const struct set first = {{bad, fifo}, 2}, second = {{fifo, bad}, 2};
	char *page = page_of(&first);
	assert_int_equal(count_of(page, "<script"), 1);
	assert_null(strstr(page, "alert(1)</script>\""));
	assert_true(count_of(page, "&lt;script&gt;alert(1)&lt;/script&gt;&quot; onload=&quot;x&#39; &amp; \xEF\xBF\xBD\xEF\xBF\xBD") > 10);
	free(page);
	free(page_of(&second));
}

/* Equal policies on several placements are told apart by them, and equal runs by their number. */
static void test_names(void **state)
{
	(void)state;
	SW_CLEANUP(sw_result_freep) struct sw_result *yarn = fixture_busy("las", 20, 1, 5);
	SW_CLEANUP(sw_result_freep) struct sw_result *pack = fixture_busy("las", 20, 2, 5);
	free(pack->placement);
	pack->placement = strdup("pack");
	const struct set placements = {{yarn, pack}, 2}, runs = {{yarn, yarn}, 2};
	char *page = page_of(&placements);
	assert_non_null(strstr(page, "data-name=\"las on yarn\""));
	assert_non_null(strstr(page, "data-name=\"las on pack\""));
	assert_non_null(strstr(page, "<dt>placement</dt><dd>several</dd>"));
	free(page);
	page = page_of(&runs);
	assert_non_null(strstr(page, "data-name=\"las on yarn, run 2\""));
	free(page);
}

/* Nothing at all, no jobs, one job, jobs of no length, none finished, no GPUs: a page all the
 * same. */
static void test_little(void **state)
{
	(void)state;
	SW_CLEANUP(sw_result_freep) struct sw_result *empty = fixture_empty("empty");
	SW_CLEANUP(sw_result_freep) struct sw_result *single = fixture_empty("single");
	SW_CLEANUP(sw_result_freep) struct sw_result *instant = fixture_empty("instant");
	SW_CLEANUP(sw_result_freep) struct sw_result *stuck = fixture_empty("stuck");
	SW_CLEANUP(sw_result_freep) struct sw_result *bare = calloc(1, sizeof *bare);
	fixture_job(single, 5, 0, 10, 1);
	fixture_job(instant, 0, 0, 0, 1);
	fixture_job(instant, 0, 0, 0, 3);
	*sw_vec_push(&instant->usage) = (struct sw_usage){.gpus_up = 16};
	struct sw_outcome *job = fixture_job(stuck, 9, 0, 0, 64);
	job->start_ns = job->end_ns = SW_NEVER;
	job->state = SW_OUTCOME_UNFINISHED;
	*sw_vec_push(&stuck->usage) = (struct sw_usage){.at_ns = 9 * SW_NS_PER_S, .jobs_waiting = 1};
	struct sw_result *all[] = {empty, single, instant, stuck, bare};
	for (size_t i = 0; i < 5; i++)
		sw_result_summarise(all[i]);
	for (unsigned subset = 0; subset < 32; subset++) {
		struct set set = {.count = 0};
		for (size_t i = 0; i < 5; i++)
			if (subset & (1u << i))
				set.results[set.count++] = all[i];
		free(page_of(&set));
	}
	const struct set none = {.count = 0}, nobody = {{stuck}, 1}, one = {{single}, 1};
	char *page = page_of(&none);
	assert_non_null(strstr(page, "Nothing was simulated."));
	free(page);
	page = page_of(&nobody);
	assert_non_null(strstr(page, "No job finished."));
	free(page);
	page = page_of(&one);
	assert_non_null(strstr(page, ">1 GPU</text>"));
	assert_non_null(strstr(page, ">1 job</text>"));
	free(page);
}

/* Deadlines have a section when there are some. */
static void test_deadlines(void **state)
{
	(void)state;
	SW_CLEANUP(sw_result_freep) struct sw_result *result = fixture_empty("edf");
	fixture_job(result, 0, 0, 10, 1)->deadline_ns = 10 * SW_NS_PER_S;
	for (int i = 0; i < 3; i++)
		fixture_job(result, 0, 0, 10, 1)->deadline_ns = 9 * SW_NS_PER_S;
	fixture_job(result, 0, 0, 10, 1);
	sw_result_summarise(result);
	const struct set set = {{result}, 1};
	char *page = page_of(&set);
	assert_non_null(strstr(page, "4 jobs had a deadline."));
	assert_non_null(strstr(page, "<td class=\"part\" title=\"1 job\">25 %</td><td class=\"part\" title=\"3 jobs\">75 %</td>"));
	free(page);
}

/* Job by job against the baseline: one sooner, one the same, two later. */
static void test_exchange(void **state)
{
	(void)state;
	SW_CLEANUP(sw_result_freep) struct sw_result *fifo = fixture_empty("fifo");
	SW_CLEANUP(sw_result_freep) struct sw_result *other = fixture_empty("other");
	static const int64_t waits[4][2] = {{100, 0}, {50, 51}, {0, 30}, {0, 40}};
	for (int i = 0; i < 4; i++) {
		fixture_job(fifo, 0, waits[i][0], 10, 1);
		fixture_job(other, 0, waits[i][1], 10, 1);
	}
	sw_result_summarise(fifo);
	sw_result_summarise(other);
	const struct set set = {{fifo, other}, 2};
	char *page = page_of(&set);
	assert_non_null(strstr(page, "Which jobs gain, which lose against fifo"));
	assert_non_null(strstr(
		page,
		"title=\"1 job\">25 %</td><td class=\"part\" title=\"1 job\">25 %</td><td class=\"part\" title=\"2 jobs\">50 %</td>"));
	free(page);
}

/* The longest waits are listed in order. */
static void test_longest(void **state)
{
	(void)state;
	SW_CLEANUP(sw_result_freep) struct sw_result *result = fixture_empty("fifo");
	for (int64_t i = 0; i < 40; i++)
		fixture_job(result, i, 100 + i * 7 % 40, 10, 1)->id = 1000 + i * 7 % 40;
	sw_result_summarise(result);
	const struct set set = {{result}, 1};
	char *page = page_of(&set);
	const char *at = strstr(page, "<section id=\"longest\">");
	for (int id = 1039; id > 1034; id--) {
		char cell[32];
		snprintf(cell, sizeof cell, "<td>%d</td>", id);
		at = strstr(at, cell);
		assert_non_null(at);
	}
	assert_null(strstr(page, "<td>1034</td>"));
	free(page);
}

/* The page grows with the number of policies, hardly with that of jobs and samples, and stays below
 * 2 MB with twenty of them. */
static void test_bounded(void **state)
{
	(void)state;
	struct set many = {.count = 20}, few = {.count = 20};
	struct sw_result *owned[40];
	for (size_t i = 0; i < 20; i++) {
		char name[32];
		snprintf(name, sizeof name, "policy-%zu", i);
		many.results[i] = owned[i] = fixture_busy(name, 20000, (int64_t)i + 1, 20000);
		few.results[i] = owned[20 + i] = fixture_busy(name, 5000, (int64_t)i + 1, 5000);
	}
	char *large = page_of(&many), *small = page_of(&few);
	assert_true(strlen(large) < 2000000);
	assert_true(strlen(large) < strlen(small) * 5 / 4);
	assert_int_equal(count_of(large, "<span class=\"item\""), 20);
	free(large);
	free(small);
	for (size_t i = 0; i < 40; i++)
		sw_result_free(owned[i]);
}

/* A device that is full is an error. */
static void test_full(void **state)
{
	(void)state;
	SW_CLEANUP(sw_result_freep) struct sw_result *result = fixture_busy("las", 10, 1, 5);
	SW_CLEANUP(sw_fclosep) FILE *out = fopen("/dev/full", "w");
	const struct sw_result *const results[] = {result};
	struct sw_err err = {0};
	assert_non_null(out);
	assert_int_equal(sw_results_html(out, results, 1, NULL, &err), SW_EIO);
	assert_string_equal(err.fact, "cannot write the HTML report");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two),	  cmocka_unit_test(test_headline), cmocka_unit_test(test_warnings),
		cmocka_unit_test(test_hostile),	  cmocka_unit_test(test_names),	   cmocka_unit_test(test_little),
		cmocka_unit_test(test_deadlines), cmocka_unit_test(test_exchange), cmocka_unit_test(test_longest),
		cmocka_unit_test(test_bounded),	  cmocka_unit_test(test_full),
	};
	return cmocka_run_group_tests_name("sim/report/html", tests, NULL, NULL);
}
