/* The classifier: the corpus of logs, other evidence, bad tables, hostile logs. Each file of
 * corpus/ is the end of a log, named after its class. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "failure/failure.h"

#define CORPUS SW_SOURCE_DIR "/tests/unit/failure/corpus"

static int load(void **state)
{
	return sw_failure_load(NULL, (struct sw_failure_table **)state, NULL);
}

static int unload(void **state)
{
	sw_failure_free(*state);
	return 0;
}

static size_t read_sample(const char *name, char *text, size_t size)
{
	char path[600];
	snprintf(path, sizeof path, "%s/%s", CORPUS, name);
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	size_t length = fread(text, 1, size, file);
	fclose(file);
	return length;
}

/* At least 95 of 100 logs of the corpus are classified as a person would. */
static void test_corpus(void **state)
{
	static char text[SW_FAILURE_TAIL];
	unsigned samples = 0, wrong = 0;
	DIR *folder = opendir(CORPUS);
	assert_non_null(folder);
	for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
		const char *dot = strchr(entry->d_name, '.');
		if (dot == NULL || dot == entry->d_name)
			continue;
		struct sw_failure_evidence evidence = {.log = text, .log_size = read_sample(entry->d_name, text, sizeof text), .code = 1};
		struct sw_failure_found found;
		sw_failure_classify(*state, &evidence, &found);
		samples++;
		size_t length = (size_t)(dot - entry->d_name);
		if (strlen(found.failure->name) == length && strncmp(found.failure->name, entry->d_name, length) == 0)
			continue;
		wrong++;
		print_message("%s was taken for %s: %s\n", entry->d_name, found.failure->name, found.line);
	}
	closedir(folder);
	assert_true(samples >= 40);
	assert_true(wrong * 20 <= samples);
}

/* The built-in table has the classes and signatures that the system promises,
 * and says what each means. */
static void test_table(void **state)
{
	uint32_t signatures = 0;
	for (uint32_t i = 0; i < sw_failure_count(*state); i++) {
		const struct sw_failure_class *failure = sw_failure_at(*state, i);
		signatures += failure->signatures;
		assert_true(strlen(failure->says) > 5);
		assert_int_equal(failure->rank, i);
		/* What only the user can change is not tried again as it is. */
		assert_true(failure->layer != SW_LAYER_USER || failure->action == SW_ACTION_NONE || failure->action == SW_ACTION_MEMORY);
	}
	assert_true(sw_failure_count(*state) >= 25);
	assert_true(signatures > 200);
	assert_null(sw_failure_find(*state, "no-such-class"));
}

struct exit_case {
	const char *reason, *detail;
	int code, signal;
	const char *expected;
};

/* Without a telling log, the supervisor's reason, the signal and the exit code
 * decide, in this order. */
static void test_other_evidence(void **state)
{
	static const struct exit_case cases[] = {
		{"lease", NULL, 0, 9, "node-lost"},
		{"supervisor-lost", NULL, 0, 0, "node-lost"},
		{"memory-limit", NULL, 0, 9, "cpu-oom"},
		{"time-limit", NULL, 0, 15, "time-limit"},
		{"stopped", NULL, 143, 0, "preempted"},
		{"launch", "cannot change to folder '/nowhere': No such file or directory", 125, 0, "incorrect-input"},
		{"launch", "GPU 'GPU-1234' is not in this node", 125, 0, "gpu-unavailable"},
		{"launch", "something else", 125, 0, "launch-failed"},
		{"", NULL, 0, 11, "core-dump"},
		{"", NULL, 139, 0, "core-dump"},
		{"", NULL, 0, 9, "killed"},
		{"", NULL, 137, 0, "killed"},
		{"", NULL, 127, 0, "command-not-found"},
		{"", NULL, 126, 0, "permission-error"},
		{"", NULL, 0, 15, "interrupted"},
		{"a-new-reason", NULL, 1, 0, "unknown"},
		{NULL, NULL, 1, 0, "unknown"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct sw_failure_evidence evidence = {.log = "nothing to see\n",
						       .log_size = 15,
						       .detail = cases[i].detail,
						       .reason = cases[i].reason,
						       .code = cases[i].code,
						       .signal = cases[i].signal};
		struct sw_failure_found found;
		sw_failure_classify(*state, &evidence, &found);
		assert_string_equal(found.failure->name, cases[i].expected);
	}
}

/* What comes last counts: an error that was overcome long before the end does not hide the
 * one that ended the run. */
static void test_near_the_end_first(void **state)
{
	static char log[SW_FAILURE_TAIL];
	int used = snprintf(log, sizeof log, "RuntimeError: CUDA out of memory. Halving the batch.\n");
	while (used < 20000)
		used += snprintf(log + used, sizeof log - (size_t)used, "step %d loss 0.5\n", used);
	used += snprintf(log + used, sizeof log - (size_t)used, "ModuleNotFoundError: No module named 'evaluate'\n");
	struct sw_failure_evidence evidence = {.log = log, .log_size = (size_t)used, .code = 1};
	struct sw_failure_found found;
	sw_failure_classify(*state, &evidence, &found);
	assert_string_equal(found.failure->name, "import-error");
	assert_string_equal(found.line, "ModuleNotFoundError: No module named 'evaluate'");
}

/* The path of a damaged input is taken from the line. */
static void test_path_of_input(void **state)
{
	static const char log[] = "FileNotFoundError: [Errno 2] No such file or directory: '/data/a b.json'\n";
	struct sw_failure_found found;
	sw_failure_classify(*state, &(struct sw_failure_evidence){.log = log, .log_size = sizeof log - 1, .code = 1}, &found);
	assert_string_equal(found.failure->name, "incorrect-input");
	assert_string_equal(found.path, "/data/a b.json");
}

/* Lines are kept as clean, bounded text, whatever bytes the log holds. */
static void test_clean_line(void **state)
{
	static const char log[] = "\033[31mValueError: b\xc3\xa4"
				  "d \xff\x01 value\x1b]0;x\x07\xc2\x9b\n";
	static const char expected[] = "ValueError: b\xc3\xa4"
				       "d ?  value";
	char line[64], small[8];
	sw_failure_clean(log, sizeof log - 1, line, sizeof line);
	assert_memory_equal(line, expected, sizeof expected - 1);
	for (const char *c = line; *c != '\0'; c++)
		assert_true((unsigned char)*c >= 0x20);
	sw_failure_clean("abcdef\xc3\xa4", 8, small, sizeof small);
	assert_string_equal(small, "abcdef"); /* no half a character */
	static char wide[5000];
	memset(wide, 'x', sizeof wide);
	memcpy(wide + 3000, "CUDA out of memory", 18);
	struct sw_failure_found found;
	sw_failure_classify(*state, &(struct sw_failure_evidence){.log = wide, .log_size = sizeof wide, .code = 1}, &found);
	assert_string_equal(found.failure->name, "gpu-oom");
	assert_true(strlen(found.line) <= SW_FAILURE_LINE_MAX && strncmp(found.line, "CUDA out of memory", 18) == 0);
}

/* Random bytes, with and without words of the table in them, never upset the classifier. */
static void test_random_logs(void **state)
{
	static char log[8192];
	uint64_t seed = 7;
	for (int round = 0; round < 300; round++) {
		size_t size = 0;
		while (size < sizeof log - 64) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			if (seed >> 60 == 0)
				size += (size_t)snprintf(log + size, 32, "Error: %s", seed >> 50 & 1 ? "CUDA" : "ncclSystem");
			else
				log[size++] = (char)(seed >> 40);
		}
		struct sw_failure_found found;
		sw_failure_classify(*state, &(struct sw_failure_evidence){.log = log, .log_size = size, .code = 1}, &found);
		assert_non_null(found.failure);
		assert_true(strlen(found.line) <= SW_FAILURE_LINE_MAX);
	}
}

#define HEAD "failures:\n  - {class: a, layer: user, action: none, says: it broke, log: ['"
#define TAIL "']}\n  - {class: unknown, layer: unknown, action: retry, budget: 1, says: not known}\n"

/* A bad table is refused with file, line and what is wrong. */
static void test_bad_tables(void **state)
{
	(void)state;
	static const struct {
		const char *text, *complaint;
	} cases[] = {
		{HEAD "abcd[" TAIL, "not an extended regular expression"},
		{HEAD "abcd(ef" TAIL, "line 2"},
		{HEAD "a.b.c" TAIL, "plain characters"},
		{HEAD "abcde|vwxyz" TAIL, "plain characters"},
		{"failures:\n  - {class: a, layer: user, action: none, says: hello}\n  - {class: b, layer: user, action: none, says: "
		 "hello}\n",
		 "only the last"},
		{"failures:\n  - {class: a, layer: user, action: none, says: hello, codes: [300]}\n", "300"},
		{"failures:\n  - {class: a, layer: none, action: none, says: hello}\n", "none"},
		{"failures:\n  - {class: a, layer: user, action: retry, says: hello}\n", "budget"},
		{"failures:\n  - {class: a, layer: user, action: none, budget: 2, says: hello}\n", "budget"},
		{"failures:\n  - {class: A b, layer: user, action: none, says: hello}\n", "small letters"},
		{"failures:\n  - {class: a, layer: user, action: none, says: hello, cods: [3]}\n", "codes"},
		{HEAD "abcdef"
		      "']}\n  - {class: a, layer: user, action: none, says: it broke, codes: [4]}\n",
		 "already"},
		{"failures: []\n", "failures"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct sw_failure_table *table = NULL;
		struct sw_err err = {0};
		char text[1500];
		char path[] = "/tmp/own.yaml-XXXXXX";
		FILE *file = fdopen(mkstemp(path), "w");
		assert_non_null(file);
		fputs(cases[i].text, file);
		fclose(file);
		assert_int_equal(sw_failure_load(path, &table, &err), SW_EINPUT);
		remove(path);
		assert_null(table);
		sw_err_format(&err, text, sizeof text);
		if (strstr(text, cases[i].complaint) == NULL || strstr(text, "own.yaml") == NULL)
			fail_msg("table %zu: '%s' does not tell '%s'", i, text, cases[i].complaint);
	}
}

/* An operator's rules go before those of the program. */
static void test_own_rules_first(void **state)
{
	(void)state;
	char path[] = "/tmp/sw-failures-XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	FILE *file = fdopen(fd, "w");
	fputs("failures:\n  - {class: our-licence, layer: infrastructure, action: retry, budget: 5, says: no licence was free, log: "
	      "['licence server is full']}\n",
	      file);
	fclose(file);
	struct sw_failure_table *table = NULL;
	assert_int_equal(sw_failure_load(path, &table, NULL), 0);
	remove(path);
	static const char log[] = "ValueError: the licence server is full\n";
	struct sw_failure_found found;
	sw_failure_classify(table, &(struct sw_failure_evidence){.log = log, .log_size = sizeof log - 1, .code = 1}, &found);
	assert_string_equal(found.failure->name, "our-licence");
	assert_non_null(sw_failure_find(table, "gpu-oom"));
	sw_failure_free(table);
	assert_int_equal(sw_failure_load("/nonexistent/own.yaml", &table, NULL), SW_ENOTFOUND);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_corpus, load, unload),
		cmocka_unit_test_setup_teardown(test_table, load, unload),
		cmocka_unit_test_setup_teardown(test_other_evidence, load, unload),
		cmocka_unit_test_setup_teardown(test_near_the_end_first, load, unload),
		cmocka_unit_test_setup_teardown(test_path_of_input, load, unload),
		cmocka_unit_test_setup_teardown(test_clean_line, load, unload),
		cmocka_unit_test_setup_teardown(test_random_logs, load, unload),
		cmocka_unit_test(test_bad_tables),
		cmocka_unit_test(test_own_rules_first),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
