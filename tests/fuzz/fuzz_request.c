/* HTTP requests from any bytes, as the server reads them: head, then route and parameters, then
 * body. No crash, statuses that fit, and a head that is understood whole is understood the same
 * way when more follows. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "api/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_request(const struct sw_http_head *head, const char *body, size_t size)
{
	struct sw_err err = {0};
	struct sw_request *request = NULL;
	int status = 0;
	if (sw_request_open(head->method, head->target, &request, &status, &err) < 0) {
		assert(request == NULL && status >= 400 && status < 600 && err.fact[0] != '\0');
		return;
	}
	assert(request->route != NULL && request->list.limit >= 1 && request->list.limit <= SW_LIST_MAX && request->list.states != 0);
	/* The body is what follows, whatever length was announced: the more is tried the better. */
	if (sw_request_read(request, body, size, &status, &err) < 0) {
		assert(status >= 400 && status < 600 && err.fact[0] != '\0');
	} else if (request->route->id == SW_ROUTE_SUBMIT) {
		assert(request->jobs.count >= 1 && request->job_total >= request->jobs.count && request->job_total <= SW_REQUEST_JOBS_MAX);
	} else if (request->route->id == SW_ROUTE_CHANGE) {
		assert(request->change.jobs.count >= 1 && request->change.jobs.count <= SW_REQUEST_CHANGES_MAX);
		for (size_t i = 0; i < request->change.jobs.count; i++)
			assert(request->change.jobs.items[i] >= 1 && request->change.jobs.items[i] <= SW_JOB_ID_MAX);
		assert(!request->deep || request->change.verb == SW_ROUTE_SUSPEND);
	} else if (request->route->id == SW_ROUTE_SYNC) {
		assert(request->sync != NULL);
	} else if (request->route->id == SW_ROUTE_LIMIT) {
		const struct sw_job_limit *limit = &request->limit;
		assert((limit->sets_memory || limit->sets_share) && limit->share_milli < 1000 && limit->memory_bytes <= SW_JOB_BYTES_MAX);
		assert(limit->memory_bytes == 0 || limit->memory_bytes >= SW_LIMIT_LEAST_BYTES);
	}
	sw_request_free(request);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *bytes = (const char *)data;
	struct sw_http_head head, again;
	struct sw_err err = {0};
	int status = 0;
	int r = sw_http_parse_head(bytes, size, &head, &status, &err);
	if (r < 0) {
		assert(status >= 400 && status < 600 && err.detail[0] != '\0');
		return 0;
	}
	if (r == 0) {
		assert(size < SW_HTTP_HEAD_MAX);
		return 0;
	}
	assert(head.size <= size && head.target[0] == '/' && strlen(head.target) <= SW_HTTP_TARGET_MAX);
	r = sw_http_parse_head(bytes, head.size, &again, &status, NULL);
	assert(r == 1 && again.size == head.size && again.method == head.method && again.body_size == head.body_size);
	assert(strcmp(again.target, head.target) == 0 && strcmp(again.token, head.token) == 0 && strcmp(again.key, head.key) == 0);
	check_request(&head, bytes + head.size, size - head.size);
	return 0;
}
