/* When jobs will probably start: the controller's forecast, and its estimates in words. */
#ifndef SW_CLI_STARTS_H
#define SW_CLI_STARTS_H

#include <jansson.h>

#include "client/client.h"

/* Estimates of one job, or of all that wait (`only` 0), by the job's number as text. Each also has
 * `at`, the moment of the state that it was made of. Where the controller gives none, or does not
 * answer, there are none, and *ret_failed says why; it stays as it is otherwise. The caller drops
 * *ret_starts and frees *ret_failed. */
int sw_cli_starts_get(struct sw_client *client, uint64_t only, json_t **ret_starts, char **ret_failed, struct sw_err *err);
/* Whether a call for /v1/forecast failed because the controller is of a time before forecasts. */
bool sw_cli_starts_are_unknown(const struct sw_err *err);
/* NULL: there is no estimate of this job. */
const json_t *sw_cli_starts_find(const json_t *starts, uint64_t id);
/* Adds at, estimated_start_at, basis and no_estimate to a job's object. `failed`: why there are no
 * estimates; NULL. 0 or SW_ENOMEM. */
int sw_cli_starts_put(const json_t *starts, uint64_t id, const char *failed, json_t *job);
/* The sentence "expected to start in about 12 min (17:42), if each of the 3 jobs that end before
 * runs as long as its limit". Where there is no estimate, why. `estimate` is as the controller gave
 * it; spans count from `now_ns`. Returns `text`. */
char *sw_cli_starts_say(const json_t *estimate, int64_t now_ns, char *text, size_t size);

#endif
