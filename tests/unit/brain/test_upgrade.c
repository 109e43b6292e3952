/* Journals and states that an earlier version wrote: what they make of the cluster is what that
 * version made of it.
 *
 * tests/unit/brain/journals holds, for each case: NAME.journal (policy, placement and GPUs of the
 * one node, then a line for each record: moment, kind, body), NAME.views (what that version said of
 * the jobs at the end), and states that it saved on the way, NAME.state.N after N records. Where a
 * count of restarts is another since, NAME.recounted has it; a state after that restart still has
 * the earlier one.
 * SW_JOURNALS names another folder.
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/number.h"
#include "brain/brain.h"

#define RECORDS_MAX 400u

struct record {
	sw_ns at;
	int kind;
	const char *body;
};

struct journal {
	char *text;
	struct sw_brain_config config;
	char policy[40], placement[40];
	struct record records[RECORDS_MAX];
	size_t count;
};

static const char *folder(void)
{
	return getenv("SW_JOURNALS") != NULL ? getenv("SW_JOURNALS") : SW_SOURCE_DIR "/tests/unit/brain/journals";
}

static char *read_whole(const char *name, const char *suffix, size_t *ret_size)
{
	char path[400], *bytes = NULL;
	snprintf(path, sizeof path, "%s/%s%s", folder(), name, suffix);
	return sw_file_read(path, 1 << 22, &bytes, ret_size, NULL) == 0 ? bytes : NULL;
}

static void read_journal(struct journal *journal, const char *name)
{
	size_t size;
	char *rest = NULL;
	*journal = (struct journal){.text = read_whole(name, ".journal", &size)};
	assert_non_null(journal->text);
	char *line = strtok_r(journal->text, "\n", &rest);
	assert_int_equal(sscanf(line, "%39s %39s", journal->policy, journal->placement), 2);
	journal->config = (struct sw_brain_config){.policy = journal->policy,
						   .placement = journal->placement,
						   .silence_ns = 30 * SW_NS_PER_S,
						   .silence_margin_ns = 5 * SW_NS_PER_S,
						   .retry_backoff_ns = 10 * SW_NS_PER_S};
	while ((line = strtok_r(NULL, "\n", &rest)) != NULL) {
		struct record *record = &journal->records[journal->count++];
		char *end;
		assert_true(journal->count <= RECORDS_MAX);
		record->at = strtoll(line, &end, 10);
		record->kind = (int)strtol(end, &end, 10);
		record->body = end + 1;
	}
}

static void apply(struct sw_brain *brain, const struct journal *journal, size_t from)
{
	struct sw_err err = {0};
	for (size_t r = from; r < journal->count; r++) {
		const struct record *record = &journal->records[r];
		if (sw_brain_apply(brain, record->at, (enum sw_record_kind)record->kind, record->body, strlen(record->body), NULL, &err) <
			    0 ||
		    sw_brain_validate(brain, &err) < 0)
			fail_msg("record %zu: %s: %s", r, err.fact, err.detail);
	}
}

/* State, run, GPUs, and how often it was stopped: one line for each job. */
static void describe(const struct sw_brain *brain, sw_ns now, char *text, size_t size)
{
	size_t used = 0;
	text[0] = '\0';
	for (uint64_t job = sw_brain_next_job(brain, 1); job != 0; job = sw_brain_next_job(brain, job + 1)) {
		struct sw_job_view view;
		assert_true(sw_brain_job(brain, now, job, &view));
		used += (size_t)snprintf(text + used, size - used, "%llu|%s|%s|%u|%llu|%u|%u|%d|%d|%s|%lld\n", (unsigned long long)job,
					 view.state, view.reason, view.epoch, (unsigned long long)view.gpu_mask, view.preemptions,
					 view.restarts, view.is_moving, view.held, view.unmoved, (long long)view.ran_ns);
		assert_true(used < size);
	}
}

static void check(const struct sw_brain *brain, const struct journal *journal, const char *name, const char *views, const char *from)
{
	static char text[1 << 16];
	size_t size;
	SW_CLEANUP(sw_freep) char *recounted = read_whole(name, ".recounted", &size);
	describe(brain, journal->records[journal->count - 1].at, text, sizeof text);
	if (strcmp(text, views) != 0 && (recounted == NULL || strcmp(text, recounted) != 0))
		fail_msg("%s, from %s: that version said\n%sand this one says\n%s", name, from, views, text);
}

static void check_case(const char *name)
{
	static struct journal journal;
	struct sw_brain *brain = NULL;
	size_t size;
	read_journal(&journal, name);
	SW_CLEANUP(sw_freep) char *views = read_whole(name, ".views", &size);
	assert_non_null(views);
	assert_int_equal(sw_brain_new(&journal.config, &brain, NULL), 0);
	apply(brain, &journal, 0);
	check(brain, &journal, name, views, "its journal");
	sw_brain_free(brain);
	for (size_t r = 1; r <= journal.count; r++) {
		char suffix[40];
		bool adopted;
		struct sw_err err = {0};
		snprintf(suffix, sizeof suffix, ".state.%zu", r);
		SW_CLEANUP(sw_freep) char *bytes = read_whole(name, suffix, &size);
		if (bytes == NULL)
			continue;
		if (sw_brain_load(&journal.config, bytes, size, &brain, &adopted, &err) < 0)
			fail_msg("%s%s: %s: %s", name, suffix, err.fact, err.detail);
		apply(brain, &journal, r);
		check(brain, &journal, name, views, suffix);
		sw_brain_free(brain);
	}
	free(journal.text);
}

/* Aim: journals of the version before this one, and the states that it saved on the way, make of
 * the jobs what they made of them then. */
static void test_journals(void **state)
{
	(void)state;
	DIR *dir = opendir(folder());
	assert_non_null(dir);
	size_t cases = 0;
	for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
		char name[256];
		char *suffix = strstr(entry->d_name, ".journal");
		if (suffix == NULL)
			continue;
		snprintf(name, sizeof name, "%.*s", (int)(suffix - entry->d_name), entry->d_name);
		check_case(name);
		cases++;
	}
	closedir(dir);
	assert_true(cases > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_journals)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
