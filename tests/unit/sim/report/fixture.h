/* Results to report on, and reports as text. Helpers of the tests in this folder;
 * failures end the test. */
#ifndef TESTS_UNIT_SIM_REPORT_FIXTURE_H
#define TESTS_UNIT_SIM_REPORT_FIXTURE_H

#include <stddef.h>
#include <stdio.h>

#include "sim/result.h"

#define FIXTURE_MAX 24

/* A result with names and no jobs, not yet summarised. */
struct sw_result *fixture_empty(const char *policy);
/* A job that waited and then ran, all in seconds. */
struct sw_outcome *fixture_job(struct sw_result *result, int64_t submit_s, int64_t wait_s, int64_t run_s, uint32_t gpus);
/* `jobs` jobs of many sizes, each waiting `wait_factor` times some wait, with a history of
 * `samples` samples; summarised. */
struct sw_result *fixture_busy(const char *policy, size_t jobs, int64_t wait_factor, size_t samples);

/* Runs `write` on a stream in memory. The caller frees the text. */
char *fixture_text(int (*write)(FILE *out, const void *context), const void *context);

#endif
