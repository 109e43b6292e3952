/* Several results as one self-contained HTML page: no network, no other file, readable without a
 * script, in the dark and on paper. */
#ifndef SW_SIM_REPORT_HTML_H
#define SW_SIM_REPORT_HTML_H

#include <stddef.h>
#include <stdio.h>

#include "base/error.h"
#include "sim/result.h"

/* The results are of one trace on one cluster; what differs (policy, placement, world) is told
 * apart. `command` is printed as the way to make the same report again; NULL leaves it out. The
 * size of the page is bounded by the number of results, not by the number of jobs. */
int sw_results_html(FILE *out, const struct sw_result *const *results, size_t count, const char *command, struct sw_err *err);

#endif
