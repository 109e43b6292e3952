/* Columns of lists of jobs: by name, as `ps -o` and --sort take them, and what stands in
 * them. Names are Slurm's where Slurm has them, and the letters of squeue's own formats
 * ("%.18i %j") are understood. */
#ifndef SW_CLI_COLUMNS_H
#define SW_CLI_COLUMNS_H

#include <jansson.h>

#include "cli/live.h"

#define SW_CLI_COLUMNS_MAX 24u

struct sw_cli_field; /* one of those there are */

struct sw_cli_columns {
	const struct sw_cli_field *fields[SW_CLI_COLUMNS_MAX];
	bool descending[SW_CLI_COLUMNS_MAX]; /* in a sort order */
	size_t count;
	struct sw_cli_column shown[SW_CLI_COLUMNS_MAX]; /* for struct sw_cli_rows */
	bool needs_asked;				/* one of them shows what was asked for */
	bool needs_start;				/* one of them shows estimated starts */
};

/* The names for help and completion. */
extern const struct sw_cli_words sw_cli_column_words;

/* "jobid,name,time", or "%.18i %j %M". */
int sw_cli_columns_parse(const char *text, struct sw_cli_columns *ret_columns, struct sw_err *err);
/* "-time,jobid": descending by the first, equal ones ascending by the second. */
int sw_cli_columns_order(const char *text, struct sw_cli_columns *ret_order, struct sw_err *err);
/* Adds the job's cells. 0 or SW_ENOMEM. */
int sw_cli_columns_add(const struct sw_cli_columns *columns, struct sw_cli_rows *rows, const json_t *job);
/* Sorts an array of jobs; equal ones stay as they are. 0 or SW_ENOMEM. */
int sw_cli_columns_sort(const struct sw_cli_columns *order, json_t *jobs);

#endif
