/* Requests for jobs from any bytes: no crash, an error that says something, and what is accepted is
 * the same after being written and read again. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "api/job.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sw_err err = {0};
	struct sw_job_request *request = NULL, *back = NULL;
	if (sw_job_request_decode("request", (const char *)data, size, &request, &err) < 0) {
		assert(request == NULL && err.fact[0] != '\0' && err.detail[0] != '\0');
		return 0;
	}
	assert(request->argc >= 1 && request->argv[request->argc] == NULL);
	assert(1 <= request->min_gpus && request->min_gpus <= request->gpus && request->gpus <= request->max_gpus);
	assert(request->grace_ns > 0 && request->time_limit_ns >= 0 && request->expected_ns >= 0 && request->weight_milli > 0);
	assert(sw_job_request_count(request) >= 1 && sw_job_request_count(request) <= SW_JOB_ARRAY_MAX);
	char *text = sw_job_request_encode(request);
	assert(text != NULL && strlen(text) <= SW_JOB_TEXT_MAX);
	int r = sw_job_request_decode("request", text, strlen(text), &back, NULL);
	assert(r == 0);
	char *again = sw_job_request_encode(back);
	assert(again != NULL && strcmp(text, again) == 0);
	free(text);
	free(again);
	sw_job_request_free(request);
	sw_job_request_free(back);
	return 0;
}
