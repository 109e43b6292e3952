/* One result as one JSON object on one line. The keys are a promise to
 * scripts: add, never rename. */
#ifndef SW_SIM_REPORT_JSON_H
#define SW_SIM_REPORT_JSON_H

#include <stdio.h>

#include "base/error.h"
#include "sim/result.h"

/* Reals are rounded to six decimals; `log_hash` is a string of 16 hex digits; `assumptions` is an
 * array of lines. A `seed` beyond 2^63 - 1, which JSON readers would mangle, is a string. The
 * caller owns `out`, and finds late write errors when closing it. */
int sw_results_json(FILE *out, const struct sw_result *result, struct sw_err *err);

#endif
