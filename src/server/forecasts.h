/* When jobs that wait will probably start, for all callers. See forecasts.c. */
#ifndef SW_SERVER_FORECASTS_H
#define SW_SERVER_FORECASTS_H

#include <stdint.h>

#include "base/error.h"

struct sw_conn;
struct sw_json;
struct sw_server;

int sw_forecasts_start(struct sw_server *server, struct sw_err *err);
void sw_forecasts_stop(struct sw_server *server);
/* GET and POST /v1/forecast. */
void sw_handle_forecast(struct sw_server *server, struct sw_conn *conn);
void sw_handle_trial(struct sw_server *server, struct sw_conn *conn);
/* Figures for /metrics. */
struct sw_forecast_figures {
	uint64_t runs, failed;
	int64_t longest_ns; /* that one took */
	int64_t held_ns;    /* the longest that beginning or ending one held the loop */
};
const struct sw_forecast_figures *sw_forecasts_figures(const struct sw_server *server);

#endif
