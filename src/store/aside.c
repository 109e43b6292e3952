/* Records that were set aside: those that the owner could not apply, and those that a repair could
 * not read. No replay sees them; they stay, with the reason, for people. */
#include <inttypes.h>

#include "store/internal.h"

/* Rows that are kept of records that were pruned around them. */
#define KEPT 1000

static uint64_t count_asides(struct sw_journal *journal, uint64_t from_seq, uint64_t to_seq)
{
	sqlite3_stmt *query = journal->sql[SW_SQL_ASIDE_COUNT];
	sqlite3_bind_int64(query, 1, (int64_t)from_seq);
	sqlite3_bind_int64(query, 2, (int64_t)to_seq);
	uint64_t count = sqlite3_step(query) == SQLITE_ROW ? (uint64_t)sqlite3_column_int64(query, 0) : 0;
	sqlite3_reset(query);
	return count;
}

bool sw_aside_covers(struct sw_journal *journal, uint64_t from_seq, uint64_t to_seq)
{
	return from_seq > to_seq || count_asides(journal, from_seq, to_seq) == to_seq - from_seq + 1;
}

/* SQLITE_DONE or SQLite's code, like the next. */
static int move_row(struct sw_journal *journal, const struct sw_journal_bad *bad)
{
	sqlite3_bind_int64(journal->sql[SW_SQL_ASIDE_PUT], 1, (int64_t)bad->seq);
	sqlite3_bind_text(journal->sql[SW_SQL_ASIDE_PUT], 2, bad->reason, -1, SQLITE_STATIC);
	int rc = sw_sql_run(journal, SW_SQL_ASIDE_PUT);
	if (rc != SQLITE_DONE)
		return rc;
	sqlite3_bind_int64(journal->sql[SW_SQL_ASIDE_TAKE_OUT], 1, (int64_t)bad->seq);
	return sw_sql_run(journal, SW_SQL_ASIDE_TAKE_OUT);
}

static int move_rows(struct sw_journal *journal, const struct sw_journal_bad *bad, size_t count)
{
	int rc = sw_sql_run(journal, SW_SQL_BEGIN);
	for (size_t i = 0; rc == SQLITE_DONE && i < count; i++)
		rc = move_row(journal, &bad[i]);
	if (rc == SQLITE_DONE) {
		sqlite3_bind_int64(journal->sql[SW_SQL_ASIDE_FORGET], 1, (int64_t)journal->first_seq);
		sqlite3_bind_int64(journal->sql[SW_SQL_ASIDE_FORGET], 2, KEPT);
		rc = sw_sql_run(journal, SW_SQL_ASIDE_FORGET);
	}
	return rc == SQLITE_DONE ? sw_sql_run(journal, SW_SQL_COMMIT) : rc;
}

int sw_journal_set_aside(struct sw_journal *journal, const struct sw_journal_bad *bad, size_t count, struct sw_err *err)
{
	int r = sw_journal_must_rest(journal, "set aside a record of", err);
	for (size_t i = 0; r == 0 && i < count; i++)
		if (bad[i].seq < journal->first_seq || bad[i].seq > journal->last_seq)
			r = sw_err_set(err, SW_ENOTFOUND, "the journal '%s' has no record %" PRIu64, journal->path, bad[i].seq);
	if (r < 0 || count == 0)
		return r;
	int rc = move_rows(journal, bad, count);
	if (rc != SQLITE_DONE) {
		r = sw_journal_fail(journal, rc, err, "cannot set aside %zu record%s of the journal '%s'", count, count == 1 ? "" : "s",
				    journal->path);
		sw_sql_roll_back(journal, rc);
		return r;
	}
	journal->asides = count_asides(journal, 0, INT64_MAX);
	return 0;
}

uint64_t sw_journal_aside_count(const struct sw_journal *journal)
{
	return journal->asides;
}

int sw_journal_asides(struct sw_journal *journal, uint32_t most, sw_journal_aside_fn *fn, void *user, struct sw_err *err)
{
	sqlite3_stmt *rows = journal->sql[SW_SQL_ASIDE_LIST];
	int r = sw_journal_must_rest(journal, "list what was set aside of", err), rc = SQLITE_DONE;
	if (r < 0)
		return r;
	sqlite3_bind_int64(rows, 1, most);
	while (r == 0 && (rc = sqlite3_step(rows)) == SQLITE_ROW) {
		const unsigned char *reason = sqlite3_column_text(rows, 4);
		const struct sw_journal_aside row = {
			.seq = (uint64_t)sqlite3_column_int64(rows, 0),
			.at_ns = sqlite3_column_int64(rows, 1),
			.kind = (uint32_t)sqlite3_column_int64(rows, 2),
			.bytes = sqlite3_column_blob(rows, 3),
			.size = (size_t)sqlite3_column_bytes(rows, 3),
			.reason = reason != NULL ? (const char *)reason : "",
			.set_at_s = sqlite3_column_int64(rows, 5),
		};
		r = fn(user, &row);
	}
	sqlite3_reset(rows);
	if (r == 0 && rc != SQLITE_DONE)
		r = sw_journal_fail(journal, rc, err, "cannot read the journal '%s'", journal->path);
	return r;
}
