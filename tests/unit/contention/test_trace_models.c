/* Profiles against the public traces, where they are at hand: every model is known, and every job
 * without a duration gets one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "contention/profile.h"
#include "sim/trace/trace.h"

static struct sw_profiles *profiles;
static char folder[512];

static int load(void **state)
{
	(void)state;
	const char *shared = getenv("SHAREWELL_SHARED");
	snprintf(folder, sizeof folder, "%s/traces", shared != NULL ? shared : SW_SOURCE_DIR "/../shared");
	struct sw_err err = {0};
	return sw_profiles_load_default(&profiles, &err);
}

static int unload(void **state)
{
	(void)state;
	sw_profiles_free(profiles);
	return 0;
}

static struct sw_trace *trace_of(const char *path)
{
	struct stat info;
	if (stat(folder, &info) != 0) {
		print_message("skipped: there are no traces at %s\n", folder);
		skip();
	}
	char full[700];
	snprintf(full, sizeof full, "%s/%s", folder, path);
	struct sw_err err = {0};
	struct sw_trace *trace = NULL;
	if (sw_trace_load(full, NULL, &trace, &err) < 0)
		fail_msg("%s: %s", err.fact, err.detail);
	return trace;
}

/* No job of a trace that names models falls back to the default profile. */
static void test_models_are_known(void **state)
{
	(void)state;
	static const char *const paths[] = {"tiresias/60_job.csv",
					    "muri/trace3.csv.xz",
					    "chronus/trace_job_Philly_SLO.csv.xz",
					    "elasticflow/elasticVpollux_e.csv",
					    "elasticflow/philly_103959.csv",
					    "elasticflow/resnet_cifar_trace.csv",
					    "elasticflow-itp/elasticflow-traces.tar.xz:cluster01.csv",
					    "gavel/physical_cluster/max_min_fairness.trace",
					    "pollux/workloads.tar.xz:workloads/workload-1.csv"};
	for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
		SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = trace_of(paths[i]);
		assert_true(trace->jobs.count > 0);
		for (size_t j = 0; j < trace->jobs.count; j++) {
			const struct sw_trace_job *job = &trace->jobs.items[j];
			const char *model = sw_trace_string(trace, job->model);
			if (sw_profiles_find_batch(profiles, model, job->batch_size)->is_default)
				fail_msg("%s: no profile for '%s'", paths[i], model);
		}
	}
}

/* Steps of a known job of Gavel at the measured speed of its type: 925,982 at 69.95
 * a second on four GPUs. */
static void test_gavel_speed(void **state)
{
	(void)state;
	SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = trace_of("gavel/physical_cluster/max_min_fairness.trace");
	const struct sw_trace_job *job = &trace->jobs.items[0];
	assert_int_equal(job->iterations, 925982);
	int64_t ns = 0;
	const struct sw_profile *profile = sw_profiles_find_batch(profiles, sw_trace_string(trace, job->model), job->batch_size);
	assert_int_equal(sw_profile_duration(profile, job->iterations, job->batch_size, job->gpus, &ns), 0);
	assert_in_range(ns / SW_NS_PER_S, 13230, 13245);
}

/* Jobs of Gavel and Pollux get durations that a person would expect: seconds to weeks,
 * not zero and not years. */
static void test_durations(void **state)
{
	(void)state;
	static const char *const paths[] = {
		"gavel/physical_cluster/max_min_fairness.trace", "gavel/physical_cluster/minimize_makespan.trace",
		"pollux/workloads.tar.xz:workloads/workload-1.csv", "pollux/workloads.tar.xz:workloads-realistic/workload-6.csv"};
	for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
		SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = trace_of(paths[i]);
		for (size_t j = 0; j < trace->jobs.count; j++) {
			const struct sw_trace_job *job = &trace->jobs.items[j];
			const char *model = sw_trace_string(trace, job->model);
			const struct sw_profile *profile = sw_profiles_find_batch(profiles, model, job->batch_size);
			int64_t ns = 0;
			assert_int_equal(sw_profile_duration(profile, job->iterations, job->batch_size, job->gpus, &ns), 0);
			assert_in_range(ns, 10 * SW_NS_PER_S, 30 * 86400 * SW_NS_PER_S);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_models_are_known),
		cmocka_unit_test(test_gavel_speed),
		cmocka_unit_test(test_durations),
	};
	return cmocka_run_group_tests(tests, load, unload);
}
