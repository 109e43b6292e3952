/* When jobs that wait will probably start: what the controller knows, put into a forecast
 * (sim/forecast.h), and its answer in words. */
#ifndef SW_CLI_OUTLOOK_H
#define SW_CLI_OUTLOOK_H

#include <jansson.h>

#include "client/client.h"
#include "sim/forecast.h"

/* A job of which nobody can tell when it starts, and why, as half a sentence. */
struct sw_cli_riddle {
	uint64_t id;
	const char *why;
};

struct sw_cli_outlook {
	SW_VEC(uint64_t) ids; /* of the living jobs, ascending */
	struct sw_forecast_start *starts;
	SW_VEC(struct sw_cli_riddle) riddles;
	uint32_t shut;	/* GPUs that take no jobs now */
	int64_t now_ns; /* of the controller */
	char none[200]; /* why there is no forecast, as half a sentence; "" when there is one */
};

/* `target`: the one job that matters; 0: all of them. A cluster that cannot be forecast is no
 * error: `none` says why. */
int sw_cli_outlook_make(struct sw_client *client, uint64_t target, struct sw_cli_outlook *ret_outlook, struct sw_err *err);
void sw_cli_outlook_release(struct sw_cli_outlook *outlook);

/* When the job starts, since 1970; -1: nobody can tell. */
int64_t sw_cli_outlook_at(const struct sw_cli_outlook *outlook, uint64_t id);
/* "expected to start in about 12 min (17:42), if the 3 jobs that end before run as long as their
 * limits say", or why nobody can tell. Returns `text`. */
char *sw_cli_outlook_say(const struct sw_cli_outlook *outlook, uint64_t id, char *text, size_t size);
/* Adds estimated_start_at and basis to a job's object. 0 or SW_ENOMEM. */
int sw_cli_outlook_put(const struct sw_cli_outlook *outlook, uint64_t id, json_t *job);

#endif
