/* One line of a trace: split into fields, and the fields decoded into a job as a layout says.
 * Private to this folder.
 *
 * Everything here that fails has called sw_row_wrong(); the caller knows file and line and
 * makes a sentence of it.
 */
#ifndef SW_SIM_TRACE_ROW_H
#define SW_SIM_TRACE_ROW_H

#include "sim/trace/format.h"

void sw_row_release(struct sw_row *row);

/* Takes a line apart; the fields point into it (or into the row) and are as long
 * valid. Spaces around fields are dropped; with ',' a field may stand in double
 * quotes, where two of them mean one. */
int sw_row_split(struct sw_row *row, char separator, const char *line, size_t size);

/* Fills `job` from all columns of the layout. A row must have as many fields
 * as the header (`width`). */
int sw_row_decode(struct sw_row *row, const struct sw_layout *layout, const struct sw_columns_at *at, size_t width,
		  struct sw_trace_job *job);

/* A decimal number of `unit` nanoseconds from 0 to 100 years. */
int sw_row_time(struct sw_row *row, const struct sw_column *column, const struct sw_row_field *field, int64_t unit, int64_t *ret_ns);
/* A name: at most SW_TRACE_MAX_NAME bytes of UTF-8. */
int sw_row_text(struct sw_row *row, const struct sw_column *column, const struct sw_row_field *field, uint32_t *ret_index);

/* Says what is wrong; `column` is NULL for the row as a whole. Returns SW_EINPUT. */
int sw_row_wrong(struct sw_row *row, const struct sw_column *column, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* The same for a value: "'x' is not <what>". */
int sw_row_wrong_value(struct sw_row *row, const struct sw_column *column, const struct sw_row_field *field, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Whether a field is exactly this word. */
bool sw_field_is(const struct sw_row_field *field, const char *word);
/* Whether a field is one of the words in "a|b|c", case ignored. */
bool sw_field_is_any(const struct sw_row_field *field, const char *words);
/* A copy fit for messages: at most 40 bytes, anything unprintable as '?'. Returns `buffer`. */
char *sw_field_show(const struct sw_row_field *field, char buffer[48]);

#endif
