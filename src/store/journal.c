/* The records of a journal: appending in batches, committing, replaying, pruning. The
 * invariants are in journal.h. */
#include "store/journal.h"

#include <assert.h>
#include <inttypes.h>

#include "base/hash.h"
#include "store/internal.h"

uint64_t sw_journal_first_seq(const struct sw_journal *journal)
{
	return journal->first_seq;
}

uint64_t sw_journal_last_seq(const struct sw_journal *journal)
{
	return journal->last_seq;
}

uint64_t sw_journal_floor(const struct sw_journal *journal)
{
	return journal->floor > journal->mark.high ? journal->floor : journal->mark.high;
}

bool sw_journal_is_unsure(const struct sw_journal *journal)
{
	return journal->unsure;
}

void sw_journal_gave_out(struct sw_journal *journal, uint64_t number)
{
	if (number <= journal->mark.high)
		return;
	journal->mark.high = number;
	sw_mark_write(&journal->mark);
}

int sw_journal_set_numbers(struct sw_journal *journal, uint64_t floor, bool unsure, struct sw_err *err)
{
	const struct {
		const char *name;
		int64_t value;
	} rows[] = {{"floor", (int64_t)floor}, {"unsure", unsure}};
	int rc = sw_sql_run(journal, SW_SQL_BEGIN);
	for (int i = 0; rc == SQLITE_DONE && i < 2; i++) {
		sqlite3_bind_text(journal->sql[SW_SQL_META_SET], 1, rows[i].name, -1, SQLITE_STATIC);
		sqlite3_bind_int64(journal->sql[SW_SQL_META_SET], 2, rows[i].value);
		rc = sw_sql_run(journal, SW_SQL_META_SET);
	}
	rc = rc == SQLITE_DONE ? sw_sql_run(journal, SW_SQL_COMMIT) : rc;
	if (rc != SQLITE_DONE) {
		int r = sw_journal_fail(journal, rc, err, "cannot write the journal '%s'", journal->path);
		sw_sql_roll_back(journal, rc);
		return r;
	}
	journal->floor = floor;
	journal->unsure = unsure;
	return 0;
}

const char *sw_journal_news(const struct sw_journal *journal)
{
	return journal->news;
}

int sw_journal_mark_error(const struct sw_journal *journal)
{
	return journal->mark.error;
}

/* Over everything, the number too: a record in another one's place is as bad as other bytes. */
static int64_t checksum(uint64_t seq, int64_t at_ns, uint32_t kind, const void *bytes, size_t size)
{
	uint64_t hash = sw_hash_u64(SW_HASH_START, seq);
	hash = sw_hash_u64(hash, (uint64_t)at_ns);
	hash = sw_hash_u64(hash, kind);
	return (int64_t)sw_hash_bytes(hash, bytes, size);
}

int sw_journal_doom(struct sw_journal *journal, int rc)
{
	int code = sw_journal_fail(journal, rc, &journal->doom, "cannot append to the journal '%s'", journal->path);
	/* No commit was tried, so none can come back. */
	sw_sql_roll_back(journal, rc);
	return code;
}

int sw_journal_open_batch(struct sw_journal *journal)
{
	bool first = !journal->in_batch;
	journal->in_batch = true;
	if (journal->doom.code != 0)
		return journal->doom.code;
	int rc = first ? sw_sql_run(journal, SW_SQL_BEGIN) : SQLITE_DONE;
	return rc == SQLITE_DONE ? 0 : sw_journal_doom(journal, rc);
}

static int insert(struct sw_journal *journal, uint64_t seq, int64_t at_ns, uint32_t kind, const void *bytes, size_t size)
{
	sqlite3_stmt *append = journal->sql[SW_SQL_APPEND];
	sqlite3_bind_int64(append, 1, (int64_t)seq);
	sqlite3_bind_int64(append, 2, at_ns);
	sqlite3_bind_int64(append, 3, kind);
	sqlite3_bind_int64(append, 4, checksum(seq, at_ns, kind, bytes, size));
	/* An empty record is an empty blob, not NULL. */
	int rc = sqlite3_bind_blob64(append, 5, size > 0 ? bytes : "", size, SQLITE_STATIC);
	return rc != SQLITE_OK ? rc : sw_sql_run(journal, SW_SQL_APPEND);
}

int sw_journal_append(struct sw_journal *journal, int64_t at_ns, uint32_t kind, const void *bytes, size_t size, uint64_t *ret_seq)
{
	assert(!journal->replaying);
	if (size > SW_JOURNAL_RECORD_MAX)
		return SW_ELIMIT;
	journal->pending++;
	int r = sw_journal_open_batch(journal);
	if (r < 0)
		return r;
	uint64_t seq = journal->last_seq + journal->pending;
	int rc = insert(journal, seq, at_ns, kind, bytes, size);
	if (rc != SQLITE_DONE)
		return sw_journal_doom(journal, rc);
	*ret_seq = seq;
	return 0;
}

static int commit_failed(struct sw_journal *journal, uint64_t lost, int rc, struct sw_err *err)
{
	struct sw_err words = {0};
	int code = sw_journal_fail(journal, rc, &words, "cannot store %" PRIu64 " record%s in the journal '%s'", lost, lost == 1 ? "" : "s",
				   journal->path);
	if (!sw_sql_roll_back(journal, rc))
		sw_err_hint(&words, "The disk fails in a way that may bring them back after a restart.");
	if (err != NULL && err->code == 0)
		*err = words;
	return code;
}

int sw_journal_commit(struct sw_journal *journal, struct sw_err *err)
{
	if (!journal->in_batch)
		return 0;
	uint64_t records = journal->pending;
	struct sw_err doomed = journal->doom;
	journal->pending = 0;
	journal->in_batch = false;
	sw_err_clear(&journal->doom);
	if (doomed.code != 0) {
		sw_err_set(err, doomed.code, "cannot store %" PRIu64 " record%s in the journal '%s'", records, records == 1 ? "" : "s",
			   journal->path);
		sw_err_detail(err, "%s", doomed.detail);
		sw_err_hint(err, "%s", doomed.hint);
		return doomed.code;
	}
	int rc = sw_sql_run(journal, SW_SQL_COMMIT);
	if (rc != SQLITE_DONE)
		return commit_failed(journal, records, rc, err);
	journal->last_seq += records;
	journal->mark.seq = journal->last_seq;
	sw_mark_write(&journal->mark);
	return 0;
}

/* When the first record from this number on was stored; INT64_MAX: there is none. */
static int when(struct sw_journal *journal, uint64_t seq, int64_t *ret_at_ns, struct sw_err *err)
{
	sqlite3_stmt *row = journal->sql[SW_SQL_WHEN];
	sqlite3_bind_int64(row, 1, (int64_t)seq);
	int rc = sqlite3_step(row);
	*ret_at_ns = rc == SQLITE_ROW ? sqlite3_column_int64(row, 0) : INT64_MAX;
	sqlite3_reset(row);
	if (rc != SQLITE_ROW && rc != SQLITE_DONE)
		return sw_journal_fail(journal, rc, err, "cannot read the journal '%s'", journal->path);
	return 0;
}

int sw_journal_first_since(struct sw_journal *journal, int64_t at_ns, uint64_t *ret_seq, struct sw_err *err)
{
	uint64_t low = journal->first_seq, high = journal->last_seq + 1;
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		int64_t found_ns = 0;
		int r = when(journal, middle, &found_ns, err);
		if (r < 0)
			return r;
		if (found_ns < at_ns)
			low = middle + 1;
		else
			high = middle;
	}
	*ret_seq = low;
	return 0;
}

/* Checks the row at hand and gives it to `fn`. Records between it and the one before
 * must have been set aside. */
static int replay_row(struct sw_journal *journal, uint64_t *expected, sw_journal_replay_fn *fn, void *user, struct sw_err *err)
{
	sqlite3_stmt *row = journal->sql[SW_SQL_REPLAY];
	uint64_t seq = (uint64_t)sqlite3_column_int64(row, 0);
	int64_t at_ns = sqlite3_column_int64(row, 1);
	int64_t kind = sqlite3_column_int64(row, 2);
	const void *bytes = sqlite3_column_blob(row, 4);
	int size = sqlite3_column_bytes(row, 4);
	if (bytes == NULL && sqlite3_errcode(journal->db) == SQLITE_NOMEM)
		return sw_journal_fail(journal, SQLITE_NOMEM, err, "cannot read the journal '%s'", journal->path);
	if (seq != *expected && !sw_aside_covers(journal, *expected, seq - 1))
		return sw_journal_damaged(journal, err, "record %" PRIu64 " is missing", *expected);
	*expected = seq + 1;
	if (kind < 0 || kind > UINT32_MAX || checksum(seq, at_ns, (uint32_t)kind, bytes, (size_t)size) != sqlite3_column_int64(row, 3))
		return sw_journal_damaged(journal, err, "record %" PRIu64 " does not match its checksum", seq);
	return fn(user, seq, at_ns, (uint32_t)kind, bytes, (size_t)size);
}

int sw_journal_replay(struct sw_journal *journal, uint64_t from_seq, sw_journal_replay_fn *fn, void *user, struct sw_err *err)
{
	int r = sw_journal_must_rest(journal, "replay", err);
	if (r < 0)
		return r;
	uint64_t expected = from_seq > journal->first_seq ? from_seq : journal->first_seq;
	if (expected > journal->last_seq)
		return 0;
	sqlite3_stmt *rows = journal->sql[SW_SQL_REPLAY];
	sqlite3_bind_int64(rows, 1, (int64_t)expected);
	journal->replaying = true;
	int rc;
	while (r == 0 && (rc = sqlite3_step(rows)) == SQLITE_ROW)
		r = replay_row(journal, &expected, fn, user, err);
	sqlite3_reset(rows);
	journal->replaying = false;
	if (r != 0)
		return r;
	if (rc != SQLITE_DONE)
		return sw_journal_fail(journal, rc, err, "cannot read the journal '%s'", journal->path);
	if (expected != journal->last_seq + 1 && !sw_aside_covers(journal, expected, journal->last_seq))
		return sw_journal_damaged(journal, err, "record %" PRIu64 " is missing", expected);
	return 0;
}

int sw_journal_prune(struct sw_journal *journal, uint64_t before_seq, bool *ret_more, struct sw_err *err)
{
	int r = sw_journal_must_rest(journal, "prune", err);
	if (r < 0)
		return r;
	if (before_seq > journal->older_seq + 1) {
		sw_err_set(err, SW_EINPUT, "cannot prune the journal '%s' below record %" PRIu64, journal->path, before_seq);
		if (journal->older_seq == 0)
			sw_err_detail(err, "it has no two snapshots");
		else
			sw_err_detail(err, "the snapshot before the last ends with record %" PRIu64, journal->older_seq);
		return SW_EINPUT;
	}
	uint64_t first = before_seq;
	if (before_seq > journal->first_seq + SW_JOURNAL_PRUNE_STEP)
		first = journal->first_seq + SW_JOURNAL_PRUNE_STEP;
	if (first > journal->first_seq) {
		sqlite3_bind_int64(journal->sql[SW_SQL_PRUNE], 1, (int64_t)first);
		int rc = sw_sql_run(journal, SW_SQL_PRUNE);
		if (rc != SQLITE_DONE) {
			r = sw_journal_fail(journal, rc, err, "cannot prune the journal '%s'", journal->path);
			sw_sql_roll_back(journal, rc);
			return r;
		}
		journal->first_seq = first;
	}
	*ret_more = first < before_seq;
	return 0;
}
