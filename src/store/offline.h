/* A journal that no controller has open: what check.c, repair.c and copy.c share. */
#ifndef SW_STORE_OFFLINE_H
#define SW_STORE_OFFLINE_H

#include <stdbool.h>
#include <stdint.h>

#include "store/care.h"
#include "store/internal.h"

/* A journal that is looked at and not changed. */
struct sw_offline {
	struct sw_journal journal; /* path, lock, db, mark; nothing is prepared */
	enum sw_mark_found found;
	struct sw_journal_report *report;
	const struct sw_journal_care *care;
	sqlite3 *into; /* the new file of a repair; NULL: it is only checked */
	uint64_t expected, highest;
	int rc; /* of writing to it */
};

/* offline.c */
int sw_offline_fail_errno(const char *fact, const char *path, struct sw_err *err);
int sw_offline_exec(sqlite3 *db, const char *text);
int64_t sw_offline_ask(sqlite3 *db, const char *text, int64_t otherwise);
bool sw_offline_goes_on(const struct sw_offline *offline, uint64_t done);
int sw_offline_stopped(struct sw_err *err);
uint64_t sw_offline_size_of(const char *path);
void sw_offline_leave(struct sw_offline *offline);
int sw_offline_take(const char *path, struct sw_offline *offline, struct sw_err *err);
/* Opens the file as it is. */
int sw_offline_look_into(struct sw_offline *offline, struct sw_err *err);

/* check.c */
/* One row with the same columns as `row`, into the new file. */
int sw_offline_put_row(sqlite3 *into, const char *insert, sqlite3_stmt *row, const char *last);
/* Reads all there is, and writes it into the new file where there is one. */
int sw_offline_examine(struct sw_offline *offline, struct sw_err *err);
void sw_offline_begin(struct sw_offline *offline, const struct sw_journal_care *care, struct sw_journal_report *report);

/* repair.c */
/* What the new file must know of numbers, by what is known of the old one. */
void sw_offline_set_numbers(const struct sw_offline *offline, uint64_t floor);
int sw_offline_write_numbers(sqlite3 *into, const struct sw_journal_report *report);
int sw_offline_sync_file(const char *path, struct sw_err *err);
/* The new file is whole: it takes the place of the old one. */
int sw_offline_put_in_place(struct sw_offline *offline, const char *made, const char *word, struct sw_err *err);
int sw_offline_open_new(const char *path, sqlite3 **ret_db, struct sw_err *err);
int sw_offline_fail_new(const struct sw_offline *offline, int rc, struct sw_err *err);

#endif
