/* The public traces, where they are present: every file is recognised and gives as many
 * jobs as its source says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "sim/trace/check.h"
#include "sim/trace/write.h"
#include "unit/sim/trace/support.h"

static const struct {
	const char *name;
	const char *format;
	size_t rows; /* jobs and rows that the format leaves out */
} files[] = {
	{"tiresias/60_job.csv", "tiresias", 60},
	{"philly/philly-oct3d-24n8g.csv", "tiresias", 1963},
	{"philly/philly-jobs.csv.xz", "philly", 82247},
	{"muri/cluster_trace.csv", "muri", 400},
	{"muri/trace1.csv.xz", "muri", 1494},
	{"muri/trace1_pr.csv.xz", "muri", 1494},
	{"muri/trace2.csv.xz", "muri", 5755},
	{"muri/trace2_pr.csv.xz", "muri", 5755},
	{"muri/trace3.csv.xz", "muri", 992},
	{"muri/trace3_pr.csv.xz", "muri", 992},
	{"muri/trace4.csv.xz", "muri", 2638},
	{"muri/trace4_pr.csv.xz", "muri", 2638},
	{"muri/job_type_1.csv.xz", "muri", 992},
	{"muri/job_type_2.csv.xz", "muri", 992},
	{"muri/job_type_3.csv.xz", "muri", 992},
	{"muri/job_type_4.csv.xz", "muri", 992},
	{"chronus/trace_job_Philly_SLO.csv.xz", "chronus", 30940},
	{"chronus/trace_job_Philly_MIX1.csv.xz", "chronus", 30940},
	{"chronus/trace_job_Philly_MIX2.csv.xz", "chronus", 30940},
	{"elasticflow/elasticVpollux_e.csv", "elasticflow", 195},
	{"elasticflow/philly_103959.csv", "elasticflow", 876},
	{"elasticflow/resnet_cifar_trace.csv", "elasticflow", 5},
	{"elasticflow-itp/elasticflow-traces.tar.xz:195job.csv", "elasticflow", 195},
	{"elasticflow-itp/elasticflow-traces.tar.xz:cluster06.csv", "elasticflow", 2396},
	{"gavel/physical_cluster/artifact_evaluation.trace", "gavel", 15},
	{"gavel/physical_cluster/debug.trace", "gavel", 14},
	{"gavel/physical_cluster/debug_v2.trace", "gavel", 14},
	{"gavel/physical_cluster/highmem_test.trace", "gavel", 8},
	{"gavel/physical_cluster/max_min_fairness.trace", "gavel", 96},
	{"gavel/physical_cluster/medium_test.trace", "gavel", 20},
	{"gavel/physical_cluster/minimize_makespan.trace", "gavel", 100},
	{"gavel/physical_cluster/small_test.trace", "gavel", 20},
	{"shockwave/120_0.2_5_100_40_25_0,0.5,0.5_0.6,0.3,0.09,0.01_multigpu_dynamic.trace", "shockwave", 120},
	{"shockwave/220_0.2_5_100_25_4_0,0.5,0.5_0.6,0.3,0.09,0.01_multigpu_dynamic.trace", "shockwave", 220},
	{"shockwave/460_0.2_5_100_10_1_0,0.5,0.5_0.6,0.3,0.09,0.01_multigpu_dynamic.trace", "shockwave", 460},
	{"shockwave/900_0.2_5_100_5_15_0,0.5,0.5_0.6,0.3,0.09,0.01_multigpu_dynamic.trace", "shockwave", 900},
	{"shockwave/900_0.2_5_1000_5_15_0,0.5,0.5_0.6,0.3,0.09,0.01_multigpu_dynamic.trace", "shockwave", 900},
};

static struct sw_trace *must_load(const char *name)
{
	struct sw_trace *trace = NULL;
	struct sw_err err = {0};
	if (sw_trace_load(shared_trace(name), NULL, &trace, &err) < 0)
		fail_msg("%s", words(&err));
	return trace;
}

static void assert_invariants(const struct sw_trace *trace)
{
	int64_t before = 0;
	for (size_t i = 0; i < trace->jobs.count; i++) {
		const struct sw_trace_job *job = &trace->jobs.items[i];
		assert_true(job->submit_ns >= before && job->duration_ns >= 0);
		before = job->submit_ns;
		assert_true(1 <= job->min_gpus && job->min_gpus <= job->gpus && job->gpus <= job->max_gpus);
		assert_true(job->duration_ns > 0 || job->iterations > 0 || strcmp(trace->format, "pollux") == 0);
	}
}

static void test_every_file(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = must_load(files[i].name);
		if (strcmp(trace->format, files[i].format) != 0)
			fail_msg("%s was taken for %s", files[i].name, trace->format);
		size_t blank = strcmp(files[i].name, "philly/philly-jobs.csv.xz") == 0;
		if (trace->jobs.count + (size_t)trace->rows_skipped != files[i].rows + blank)
			fail_msg("%s: %zu jobs and %lld other rows, expected %zu", files[i].name, trace->jobs.count,
				 (long long)trace->rows_skipped, files[i].rows);
		if (strcmp(trace->format, "chronus") != 0)
			assert_int_equal(trace->jobs.count, files[i].rows);
		assert_null(trace->warning);
		assert_invariants(trace);
	}
}

/* 69,351 jobs and 1,632,720 GPU hours in ten clusters, as Microsoft counted them. */
static void test_itp_adds_up(void **state)
{
	(void)state;
	size_t jobs = 0;
	double gpu_s = 0;
	for (int cluster = 1; cluster <= 10; cluster++) {
		char name[80];
		snprintf(name, sizeof name, "elasticflow-itp/raw-traces.tar.xz:cluster%02d.csv", cluster);
		SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = must_load(name);
		assert_string_equal(trace->format, "elasticflow");
		assert_true(trace->named);
		jobs += trace->jobs.count;
		for (size_t i = 0; i < trace->jobs.count; i++)
			gpu_s += (double)trace->jobs.items[i].duration_ns / 1e9 * trace->jobs.items[i].gpus;
	}
	assert_int_equal(jobs, 69351);
	assert_in_range((int64_t)(gpu_s / 3600), 1632719, 1632720);
}

static void test_gavel_old_layout(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		size_t jobs;
	} members[] = {{"0e4a51", 1181}, {"103959", 986},  {"11cb48", 2000}, {"23dbec", 9},   {"2869ce", 533},
		       {"51b7ef", 18},	 {"6214e9", 2000}, {"6c71a0", 2000}, {"795a4c", 3},   {"7f04ca", 972},
		       {"925e2b", 4},	 {"b436b2", 2000}, {"e13805", 607},  {"ed69ec", 951}, {"ee9e8c", 2000}};
	for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
		char name[80];
		snprintf(name, sizeof name, "gavel/msr-seed0.tar.xz:seed=0/%s.trace", members[i].name);
		SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = must_load(name);
		assert_string_equal(trace->format, "gavel");
		assert_int_equal(trace->jobs.count, members[i].jobs);
		assert_invariants(trace);
	}
}

static void test_pollux_workloads(void **state)
{
	(void)state;
	static const struct {
		const char *folder;
		size_t jobs;
	} folders[] = {
		{"workloads", 160}, {"workloads-0.5", 80}, {"workloads-1.5", 240}, {"workloads-2.0", 320}, {"workloads-realistic", 160}};
	for (size_t f = 0; f < 5; f++)
		for (int n = 1; n <= 8; n++) {
			char name[80];
			snprintf(name, sizeof name, "pollux/workloads.tar.xz:%s/workload-%d.csv", folders[f].folder, n);
			SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = must_load(name);
			assert_string_equal(trace->format, "pollux");
			assert_int_equal(trace->jobs.count, folders[f].jobs);
			assert_invariants(trace);
		}
}

/* Some rows known from the files: units and places are right in the real thing, not only
 * in samples of our own. */
static void test_known_rows(void **state)
{
	(void)state;
	SW_CLEANUP(sw_trace_freep) struct sw_trace *muri = must_load("muri/trace3.csv.xz");
	const struct sw_trace_job *job = &muri->jobs.items[1];
	assert_int_equal(job->submit_ns, INT64_C(1456) * SW_NS_PER_S);
	assert_int_equal(job->duration_ns, INT64_C(926133) * SW_NS_PER_S);
	assert_int_equal(job->iteration_ns, 921 * SW_NS_PER_MS);
	assert_int_equal(job->iterations, 1005573);
	assert_int_equal(job->job_class, SW_CLASS_OPPORTUNISTIC);
	SW_CLEANUP(sw_trace_freep) struct sw_trace *philly = must_load("philly/philly-jobs.csv.xz");
	assert_int_equal(philly->jobs.items[0].submit_ns, 0);
	/* 2017-09-04 10:30:41 to 2017-12-22 08:02:11 */
	assert_int_equal(philly->jobs.items[82246].submit_ns / SW_NS_PER_S,
			 INT64_C(108) * 86400 + 86400 - (10 * 3600 + 30 * 60 + 41) + 8 * 3600 + 2 * 60 + 11);
}

/* The extract of three days was made from the whole: same jobs, in the same order. */
static void test_extract_agrees_with_philly(void **state)
{
	(void)state;
	SW_CLEANUP(sw_trace_freep) struct sw_trace *extract = must_load("philly/philly-oct3d-24n8g.csv");
	SW_CLEANUP(sw_trace_freep) struct sw_trace *whole = must_load("philly/philly-jobs.csv.xz");
	const int64_t from = (INT64_C(27) * 86400 - (10 * 3600 + 30 * 60 + 41)) * SW_NS_PER_S;
	size_t first = 0;
	while (whole->jobs.items[first].submit_ns < from)
		first++;
	const int64_t zero = whole->jobs.items[first].submit_ns, day = 86400 * SW_NS_PER_S;
	for (size_t i = 0; i < extract->jobs.count; i++) {
		const struct sw_trace_job *a = &extract->jobs.items[i], *b = &whole->jobs.items[first + i];
		assert_int_equal(a->submit_ns, b->submit_ns - zero);
		assert_int_equal(a->gpus, b->gpus);
		assert_int_equal(a->duration_ns, b->duration_ns > day ? day : b->duration_ns);
	}
}

static void count_problem(void *user, const struct sw_trace_problem *problem)
{
	(void)problem;
	++*(size_t *)user;
}

static void test_no_errors_in_any_of_them(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		struct sw_trace_verdict verdict;
		struct sw_err err = {0};
		size_t reported = 0;
		if (sw_trace_check(shared_trace(files[i].name), NULL, 1000, count_problem, &reported, &verdict, &err) < 0)
			fail_msg("%s", words(&err));
		assert_int_equal(verdict.found[SW_TRACE_ERROR], 0);
		assert_int_equal(verdict.found[SW_TRACE_WARNING], 0);
		assert_int_equal(reported + verdict.unsaid[SW_TRACE_NOTE], verdict.found[SW_TRACE_NOTE]);
	}
}

static void test_archives_of_several_files_say_so(void **state)
{
	(void)state;
	struct sw_trace *trace = NULL;
	struct sw_err err = {0};
	assert_int_equal(sw_trace_load(shared_trace("elasticflow-itp/raw-traces.tar.xz"), NULL, &trace, &err), SW_EINPUT);
	assert_says(&err, "the archive holds 11 files: cluster10.csv, ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_file),
		cmocka_unit_test(test_itp_adds_up),
		cmocka_unit_test(test_gavel_old_layout),
		cmocka_unit_test(test_pollux_workloads),
		cmocka_unit_test(test_known_rows),
		cmocka_unit_test(test_extract_agrees_with_philly),
		cmocka_unit_test(test_no_errors_in_any_of_them),
		cmocka_unit_test(test_archives_of_several_files_say_so),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
