/* The past beside the journal: rows about jobs that have left the state, and large texts that
 * records only name by their digest. Both lie in the journal's file. So a row or a text and the
 * record that goes with it are stored together or not at all.
 *
 * What this is not: it does not know what the texts of a row mean.
 *
 * Invariants:
 *  1. a row, or a text, that was put into a batch is there once that is committed, and not before.
 *     Putting it again changes nothing that counts;
 *  2. rows are read by number, a page at a time: no call costs more than the rows that it
 *     gives, or passes over;
 *  3. every row and every text carries a checksum; one that does not match is an error, never data.
 */
#ifndef SW_STORE_PAST_H
#define SW_STORE_PAST_H

#include "store/journal.h"

#define SW_PAST_TEXTS 5u
#define SW_PAST_STATES 32u
#define SW_PAST_TRIM_STEP 500 /* rows */
#define SW_BLOB_DIGEST 32u

struct sw_past_row {
	uint64_t job;
	uint32_t uid, epoch;
	uint32_t state; /* below SW_PAST_STATES */
	int64_t submitted_at_ns, ended_at_ns;
	const char *name, *node;
	const char *texts[SW_PAST_TEXTS];
};

/* Adds the row to the batch, which must be open; one that is there already stays as it is. As with
 * sw_journal_append(), a failure dooms the batch. */
int sw_past_put(struct sw_journal *journal, const struct sw_past_row *row);

/* What belongs to the batch could not be made: nothing of it is to be stored. */
void sw_past_spoil(struct sw_journal *journal);

/* Called for each row; what it points to lives until it returns. It must not use the journal. Other
 * than 0 ends the walk and is its result. */
typedef int sw_past_fn(void *user, const struct sw_past_row *row);
struct sw_past_query {
	uint64_t from; /* the first number that is looked at */
	bool descending;
	bool by_user;
	uint32_t uid;
};
int sw_past_each(struct sw_journal *journal, const struct sw_past_query *query, sw_past_fn *fn, void *user, struct sw_err *err);
/* The lowest number among the rows that ended at this moment or later. 0: there is none, or there
 * are too many of them to look at. */
int sw_past_first_since(struct sw_journal *journal, int64_t since_ns, uint64_t *ret_job, struct sw_err *err);
/* The row of one job; SW_ENOTFOUND: there is none. */
int sw_past_find(struct sw_journal *journal, uint64_t job, sw_past_fn *fn, void *user, struct sw_err *err);
/* How many rows there are in each state. */
int sw_past_count(struct sw_journal *journal, uint64_t counts[SW_PAST_STATES], struct sw_err *err);
/* Removes rows of which there are more than `keep`, or that ended before this moment. Those that
 * ended first go first, SW_PAST_TRIM_STEP at most: call again while *ret_more. Not while a batch is
 * open. */
int sw_past_trim(struct sw_journal *journal, uint64_t keep, int64_t before_ns, bool *ret_more, struct sw_err *err);

/* ---- texts by digest */

/* Adds the text to the batch, and opens one if there is none; one that is there already stays. */
int sw_blob_put(struct sw_journal *journal, const unsigned char digest[SW_BLOB_DIGEST], const void *bytes, size_t size);
/* The caller frees *ret_bytes, which ends with a NUL that does not count.
 * SW_ENOTFOUND: it is not there. */
int sw_blob_get(struct sw_journal *journal, const unsigned char digest[SW_BLOB_DIGEST], char **ret_bytes, size_t *ret_size,
		struct sw_err *err);
/* Looks at some texts behind `*cursor` (0 at first) and removes those that `is_needed` does not
 * know. *cursor is 0 again when all were looked at. Not while a batch is open. */
typedef bool sw_blob_needed_fn(void *user, const unsigned char digest[SW_BLOB_DIGEST]);
int sw_blob_sweep(struct sw_journal *journal, int64_t *cursor, sw_blob_needed_fn *is_needed, void *user, struct sw_err *err);

#endif
