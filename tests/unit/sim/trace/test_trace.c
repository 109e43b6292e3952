/* The trace itself: strings, order, duplicates, and what every reader owes to its invariants. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/rng.h"
#include "unit/sim/trace/support.h"

static void test_strings_are_kept_once(void **state)
{
	(void)state;
	SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = NULL;
	assert_int_equal(sw_trace_new("x", "test", &trace), 0);
	uint32_t index, again;
	assert_int_equal(sw_trace_intern(trace, "", 0, &index), 0);
	assert_int_equal(index, 0);
	assert_string_equal(sw_trace_string(trace, 0), "");
	/* Far more than the table begins with, with prefixes of each other among them. */
	for (unsigned i = 0; i < 5000; i++) {
		char text[32];
		int size = snprintf(text, sizeof text, "name%u", i);
		assert_int_equal(sw_trace_intern(trace, text, (size_t)size, &index), 0);
		assert_int_equal(index, i + 1);
	}
	for (unsigned i = 0; i < 5000; i++) {
		char text[32];
		int size = snprintf(text, sizeof text, "name%u", i);
		assert_int_equal(sw_trace_intern(trace, text, (size_t)size, &again), 0);
		assert_int_equal(again, i + 1);
		assert_string_equal(sw_trace_string(trace, again), text);
	}
	assert_int_equal(trace->strings.count, 5001);
}

static void test_new_jobs_are_ordinary(void **state)
{
	(void)state;
	SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = NULL;
	assert_int_equal(sw_trace_new("x", "test", &trace), 0);
	struct sw_trace_job *job = sw_trace_add(trace);
	assert_true(job->deadline_ns == SW_NEVER);
	assert_int_equal(job->weight_milli, 1000);
	assert_int_equal(job->submit_ns, 0);
}

/* Against insertion sort, with few distinct times so that ties are common, and with
 * times of all magnitudes. */
static void test_sort_is_stable(void **state)
{
	(void)state;
	struct sw_rng rng;
	sw_rng_seed(&rng, 7);
	for (int round = 0; round < 300; round++) {
		SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = NULL;
		assert_int_equal(sw_trace_new("x", "test", &trace), 0);
		int64_t times[60], ids[60];
		size_t count = sw_rng_below(&rng, 60);
		uint64_t bound = UINT64_C(1) << sw_rng_below(&rng, 62);
		for (size_t i = 0; i < count; i++) {
			struct sw_trace_job *job = sw_trace_add(trace);
			job->submit_ns = (int64_t)(round % 2 == 0 ? sw_rng_below(&rng, 5) * (bound / 5) : sw_rng_below(&rng, bound));
			job->id = (int64_t)i;
			size_t at = i;
			for (; at > 0 && times[at - 1] > job->submit_ns; at--) {
				times[at] = times[at - 1];
				ids[at] = ids[at - 1];
			}
			times[at] = job->submit_ns;
			ids[at] = job->id;
		}
		assert_int_equal(sw_trace_sort(trace), 0);
		assert_int_equal(trace->jobs.count, count);
		for (size_t i = 0; i < count; i++) {
			assert_int_equal(trace->jobs.items[i].submit_ns, times[i]);
			assert_int_equal(trace->jobs.items[i].id, ids[i]);
		}
	}
}

static void test_unsorted_file_is_sorted(void **state)
{
	(void)state;
	SW_CLEANUP(sw_trace_freep)
	struct sw_trace *trace = must_parse("submit_s,duration_s,gpus,id\n9,1,1,0\n3,1,1,1\n9,1,1,2\n0,1,1,3\n3,1,1,4\n", NULL);
	static const int64_t expected[] = {3, 1, 4, 0, 2};
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(trace->jobs.items[i].id, expected[i]);
	assert_null(trace->warning);
}

static void test_duplicate_ids_are_kept_with_a_warning(void **state)
{
	(void)state;
	SW_CLEANUP(sw_trace_freep)
	struct sw_trace *trace = must_parse("id,submit_s,duration_s,gpus\n4,0,1,1\n2,1,1,1\n4,2,1,1\n2,3,1,1\n4,4,1,1\n", NULL);
	assert_int_equal(trace->jobs.count, 5);
	assert_string_equal(trace->warning, "3 jobs have the id of an earlier job (first: '4'); all are kept");
	SW_CLEANUP(sw_trace_freep)
	struct sw_trace *named = must_parse("name,time,application,num_replicas,batch_size\na,0,m,1,1\nb,0,m,1,1\na,0,m,1,1\n", NULL);
	assert_int_equal(named->jobs.count, 3);
	assert_string_equal(named->warning, "1 job has the id of an earlier job (first: 'a'); all are kept");
	/* Falling ids are unusual, not wrong. */
	SW_CLEANUP(sw_trace_freep) struct sw_trace *falling = must_parse("id,submit_s,duration_s,gpus\n9,0,1,1\n8,1,1,1\n7,2,1,1\n", NULL);
	assert_null(falling->warning);
}

static void test_comments_and_empty_lines(void **state)
{
	(void)state;
	SW_CLEANUP(sw_trace_freep)
	struct sw_trace *trace = must_parse("# one\n\n  # two\nsubmit_s,duration_s,gpus\n\n1,1,1\n \t\n# three\n2,1,1", NULL);
	assert_int_equal(trace->jobs.count, 2);
	assert_int_equal(trace->rows_skipped, 6);
}

static void test_line_ends_and_marks(void **state)
{
	(void)state;
	static const char *const texts[] = {
		"submit_s,duration_s,gpus\n1,2,3\n4,5,6\n",
		"submit_s,duration_s,gpus\n1,2,3\n4,5,6",
		"submit_s,duration_s,gpus\r\n1,2,3\r\n4,5,6\r\n",
		"submit_s,duration_s,gpus\r\n1,2,3\n4,5,6\r\n\r\n",
		"\xef\xbb\xbfsubmit_s,duration_s,gpus\n1,2,3\n4,5,6\n",
		"\xef\xbb\xbf\"submit_s\",\"duration_s\",\"gpus\"\r\n\"1\",\"2\",\"3\"\r\n 4 ,\t5\t, \"6\" \r\n",
	};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = must_parse(texts[i], NULL);
		assert_int_equal(trace->jobs.count, 2);
		assert_int_equal(trace->jobs.items[0].submit_ns, SW_NS_PER_S);
		assert_int_equal(trace->jobs.items[1].gpus, 6);
	}
}

static void test_load_from_a_file(void **state)
{
	(void)state;
	SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = NULL;
	struct sw_err err = {0};
	static const char text[] = "submit_s,duration_s,gpus\n1,2,3\n";
	SW_CLEANUP(bytes_free) struct bytes packed = pack("zstd", text, sizeof text - 1);
	/* By content: the name says something else. */
	const char *path = temporary_file("trace.gz", packed.data, packed.size);
	assert_int_equal(sw_trace_load(path, NULL, &trace, &err), 0);
	assert_string_equal(trace->origin, path);
	assert_string_equal(trace->format, "sharewell");
	struct sw_trace *none = NULL;
	assert_int_equal(sw_trace_load("/nonexistent/x", NULL, &none, &err), SW_ENOTFOUND);
	assert_null(none);
	/* The caller need not listen. */
	assert_int_equal(sw_trace_load("/nonexistent/x", NULL, &none, NULL), SW_ENOTFOUND);
	assert_int_equal(sw_trace_parse("x", "a,b\n", 4, NULL, &none, NULL), SW_EINPUT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_strings_are_kept_once),
		cmocka_unit_test(test_new_jobs_are_ordinary),
		cmocka_unit_test(test_sort_is_stable),
		cmocka_unit_test(test_unsorted_file_is_sorted),
		cmocka_unit_test(test_duplicate_ids_are_kept_with_a_warning),
		cmocka_unit_test(test_comments_and_empty_lines),
		cmocka_unit_test(test_line_ends_and_marks),
		cmocka_unit_test(test_load_from_a_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
