/* When jobs will probably start: the controller's forecast, and its estimates in words. */
#ifndef SW_CLI_STARTS_H
#define SW_CLI_STARTS_H

#include <jansson.h>

#include "client/client.h"

/* Estimates of one job, or of all that wait (`only` 0), by the job's number as text; each also has
 * the moment `at` that it counts from. The caller drops *ret_starts. */
int sw_cli_starts_get(struct sw_client *client, uint64_t only, json_t **ret_starts, struct sw_err *err);
/* NULL: there is no estimate of this job. */
const json_t *sw_cli_starts_find(const json_t *starts, uint64_t id);
/* Adds estimated_start_at, basis and no_estimate to a job's object. 0 or SW_ENOMEM. */
int sw_cli_starts_put(const json_t *starts, uint64_t id, json_t *job);
/* "expected to start in about 12 min (17:42), if each of the 3 jobs that end before runs as long as
 * its limit allows", or why there is no estimate. `estimate` is as the controller gave it, `at` the
 * moment of its state. Returns `text`. */
char *sw_cli_starts_say(const json_t *estimate, const char *at, char *text, size_t size);

#endif
