#include "unit/sim/report/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/number.h"
#include "base/rng.h"

struct sw_result *fixture_empty(const char *policy)
{
	struct sw_result *result = calloc(1, sizeof *result);
	assert_non_null(result);
	result->policy = strdup(policy);
	result->placement = strdup("yarn");
	result->world = strdup("ideal");
	result->trace = strdup("folder/trace.csv");
	result->cluster = strdup("2 nodes x 8 GPUs");
	result->assumptions = strdup("preemption is free\n\nnothing fails\n");
	result->notes = strdup("");
	result->gpus = 16;
	result->seed = 7;
	result->log_hash = UINT64_C(0x0123456789abcdef);
	result->cpu_s = 0.25;
	result->max_rss_bytes = UINT64_C(3) << 20;
	return result;
}

struct sw_outcome *fixture_job(struct sw_result *result, int64_t submit_s, int64_t wait_s, int64_t run_s, uint32_t gpus)
{
	struct sw_outcome *job = sw_vec_push(&result->outcomes);
	assert_non_null(job);
	*job = (struct sw_outcome){.id = (int64_t)result->outcomes.count - 1,
				   .submit_ns = submit_s * SW_NS_PER_S,
				   .start_ns = (submit_s + wait_s) * SW_NS_PER_S,
				   .end_ns = (submit_s + wait_s + run_s) * SW_NS_PER_S,
				   .run_ns = run_s * SW_NS_PER_S,
				   .wait_ns = wait_s * SW_NS_PER_S,
				   .work_ns = run_s * SW_NS_PER_S,
				   .deadline_ns = SW_NEVER,
				   .gpus = gpus};
	return job;
}

struct sw_result *fixture_busy(const char *policy, size_t jobs, int64_t wait_factor, size_t samples)
{
	struct sw_result *result = fixture_empty(policy);
	struct sw_rng rng;
	sw_rng_seed(&rng, 5);
	for (size_t i = 0; i < jobs; i++) {
		int64_t run_s = (int64_t)sw_rng_below(&rng, UINT64_C(1) << sw_rng_below(&rng, 20));
		int64_t wait_s = (int64_t)sw_rng_below(&rng, 5000) * wait_factor;
		fixture_job(result, (int64_t)i * 10, wait_s, run_s, UINT32_C(1) << sw_rng_below(&rng, 5));
	}
	for (size_t i = 0; i < samples; i++) {
		struct sw_usage *sample = sw_vec_push(&result->usage);
		assert_non_null(sample);
		*sample = (struct sw_usage){.at_ns = (int64_t)i * 100 * SW_NS_PER_S,
					    .gpus_used = (uint32_t)sw_rng_below(&rng, 17),
					    .gpus_up = 16,
					    .jobs_waiting = (uint32_t)sw_rng_below(&rng, 900)};
	}
	sw_result_summarise(result);
	return result;
}

char *fixture_text(int (*write)(FILE *out, const void *context), const void *context)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	assert_non_null(out);
	int r = write(out, context);
	assert_int_equal(fclose(out), 0);
	assert_int_equal(r, 0);
	assert_int_equal(strlen(text), size);
	return text;
}
