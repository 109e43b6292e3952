/* What a trace format is, as data: its columns, where each goes in struct sw_trace_job, and what
 * is left to do by hand.
 *
 * One file format_<name>.c defines each format; formats.c lists them. To add one, write such a file
 * and add its line to the list. Private to this folder.
 */
#ifndef SW_SIM_TRACE_FORMAT_H
#define SW_SIM_TRACE_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "sim/trace/formats.h"
#include "sim/trace/trace.h"

/* More fields in one line are an error. */
#define SW_ROW_FIELDS_MAX 256
/* No format has more columns that it reads. */
#define SW_LAYOUT_COLUMNS_MAX 32

struct sw_row_field {
	const char *text; /* not terminated */
	size_t size;
};

/* One line taken apart, and the state that decoding it needs. */
struct sw_row {
	struct sw_row_field fields[SW_ROW_FIELDS_MAX];
	size_t count;
	uint64_t number; /* of rows before this one */
	struct sw_trace *trace;
	char *unquoted; /* where quoted fields that contain quotes are rewritten */
	size_t unquoted_size;

	const struct sw_column *wrong_column; /* set by sw_row_wrong(); NULL when it is the row as a whole */
	char wrong[256];
};

struct sw_column;
typedef int sw_column_decode(struct sw_row *row, const struct sw_column *column, const struct sw_row_field *field,
			     struct sw_trace_job *job);

enum sw_column_kind {
	SW_COLUMN_IGNORED,   /* known, and of no use here */
	SW_COLUMN_ID,	     /* a number, or text where the whole file has text */
	SW_COLUMN_TEXT,	     /* into a uint32_t: an index of the trace's strings */
	SW_COLUMN_COUNT,     /* into an int64_t: a whole number from `least` to `most` */
	SW_COLUMN_COUNT32,   /* the same into a uint32_t */
	SW_COLUMN_DECIMAL32, /* into a uint32_t: a decimal number times `unit`; the product is from `least` to `most` */
	SW_COLUMN_TIME,	     /* into an int64_t of nanoseconds: a decimal number times `unit` */
	SW_COLUMN_CUSTOM,    /* whatever `decode` makes of it */
};

struct sw_column {
	const char *name; /* as in the header; other spellings follow behind '|' */
	enum sw_column_kind kind;
	bool mandatory; /* in the header and, by name, in every row */
	uint16_t offset;
	int64_t unit;
	int64_t least, most;
	sw_column_decode *decode;
};

#define SW_INTO(member) .offset = (uint16_t)offsetof(struct sw_trace_job, member)

struct sw_layout {
	const struct sw_column *columns;
	size_t count;
};

/* What finish_row says about a row that was decoded. */
enum { SW_ROW_KEEP = 0, SW_ROW_LEAVE_OUT = 1 };

struct sw_trace_format {
	struct sw_trace_format_info info;
	char separator;	 /* ',' with quoting, or '\t' without */
	bool header;	 /* the first line names the columns. Otherwise the number of columns tells the layout */
	bool from_first; /* times are dates: the earliest job's is the trace's time zero */
	/* a header with none of these names ('|' between them) is another format's; NULL:
	 * mandatory columns suffice */
	const char *mark;
	const struct sw_layout *layouts;
	size_t layout_count;
	/* Completes a job after its columns were decoded; may be NULL. Returns one of the above, or
	 * SW_EINPUT after sw_row_wrong(). */
	int (*finish_row)(struct sw_row *row, struct sw_trace_job *job);
};

extern const struct sw_trace_format sw_trace_format_chronus;
extern const struct sw_trace_format sw_trace_format_elasticflow;
extern const struct sw_trace_format sw_trace_format_gavel;
extern const struct sw_trace_format sw_trace_format_muri;
extern const struct sw_trace_format sw_trace_format_philly;
extern const struct sw_trace_format sw_trace_format_pollux;
extern const struct sw_trace_format sw_trace_format_sharewell;
extern const struct sw_trace_format sw_trace_format_shockwave;
extern const struct sw_trace_format sw_trace_format_tiresias;

/* Gavel and its descendants write "ResNet-18 (batch size 16)": the model and its batch size. */
int sw_column_gavel_job_type(struct sw_row *row, const struct sw_column *column, const struct sw_row_field *field,
			     struct sw_trace_job *job);

/* The format of that name, or an error that suggests one. */
int sw_trace_format_find(const char *name, const struct sw_trace_format **ret_format, struct sw_err *err);

/* Where a layout's columns stand in a line; -1 for a column that is not there. */
struct sw_columns_at {
	int16_t field[SW_LAYOUT_COLUMNS_MAX];
};

/* The format whose header (or shape) the line has. */
int sw_trace_format_detect(const char *file, const char *line, size_t size, uint64_t number, const struct sw_trace_format **ret_format,
			   struct sw_err *err);
/* Chooses a format's layout for a file that begins with `row`. */
int sw_trace_format_fit(const struct sw_trace_format *format, const struct sw_row *row, const char *file, uint64_t number,
			const struct sw_layout **ret_layout, struct sw_columns_at *ret_at, struct sw_err *err);

#endif
