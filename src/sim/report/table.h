/* Several results as one table for the terminal, one row each. */
#ifndef SW_SIM_REPORT_TABLE_H
#define SW_SIM_REPORT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/error.h"
#include "sim/result.h"

struct sw_table_style {
	unsigned width; /* columns of the terminal; 0 means 120 */
	bool colour;	/* the best value of a column in bold green; without it, an asterisk behind it */
	bool plain;	/* ASCII only, instead of box-drawing characters */
	bool human;	/* "2 h 11 min" instead of seconds */
};

/* Columns that do not fit are left out, the least important first, and the line below the table
 * says which. The best value of a column is marked where one row is better than another. A policy
 * that finished fewer jobs than another is never best: its averages are about other jobs. `style`
 * may be NULL. */
int sw_results_table(FILE *out, const struct sw_result *const *results, size_t count, const struct sw_table_style *style,
		     struct sw_err *err);

#endif
