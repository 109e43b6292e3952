/* Rows about jobs that have left, and texts by digest: see past.h. */
#include "store/past.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "store/internal.h"

#define SWEEP_STEP 64
/* Of these, so many are removed at one go: one may have a megabyte, and its
 * pages are all touched. */
#define REMOVE_STEP 8
#define SINCE_MOST 20000

static int fail(struct sw_journal *journal, int rc, struct sw_err *err)
{
	return sw_journal_fail(journal, rc, err, "cannot read the past in the journal '%s'", journal->path);
}

/* ---- rows */

static int64_t sum_of(const struct sw_past_row *row)
{
	uint64_t hash = sw_hash_u64(SW_HASH_START, row->job);
	hash = sw_hash_u64(hash, (uint64_t)row->uid << 32 | row->epoch);
	hash = sw_hash_u64(hash, row->state);
	hash = sw_hash_u64(sw_hash_u64(hash, (uint64_t)row->submitted_at_ns), (uint64_t)row->ended_at_ns);
	hash = sw_hash_bytes(hash, row->name, strlen(row->name) + 1);
	hash = sw_hash_bytes(hash, row->node, strlen(row->node) + 1);
	for (size_t t = 0; t < SW_PAST_TEXTS; t++)
		hash = sw_hash_bytes(hash, row->texts[t], strlen(row->texts[t]) + 1);
	return (int64_t)hash;
}

static int count_state(struct sw_journal *journal, uint32_t state, int64_t by)
{
	sqlite3_stmt *count = journal->sql[SW_SQL_PAST_COUNT];
	sqlite3_bind_int64(count, 1, state);
	sqlite3_bind_int64(count, 2, by);
	return sw_sql_run(journal, SW_SQL_PAST_COUNT);
}

static int insert(struct sw_journal *journal, const struct sw_past_row *row)
{
	sqlite3_stmt *put = journal->sql[SW_SQL_PAST_PUT];
	sqlite3_bind_int64(put, 1, (int64_t)row->job);
	sqlite3_bind_int64(put, 2, row->uid);
	sqlite3_bind_int64(put, 3, row->epoch);
	sqlite3_bind_int64(put, 4, row->state);
	sqlite3_bind_int64(put, 5, row->submitted_at_ns);
	sqlite3_bind_int64(put, 6, row->ended_at_ns);
	sqlite3_bind_int64(put, 7, sum_of(row));
	int rc = sqlite3_bind_text(put, 8, row->name, -1, SQLITE_STATIC);
	if (rc == SQLITE_OK)
		rc = sqlite3_bind_text(put, 9, row->node, -1, SQLITE_STATIC);
	for (int t = 0; t < (int)SW_PAST_TEXTS && rc == SQLITE_OK; t++)
		rc = sqlite3_bind_text(put, 10 + t, row->texts[t], -1, SQLITE_STATIC);
	return rc != SQLITE_OK ? rc : sw_sql_run(journal, SW_SQL_PAST_PUT);
}

int sw_past_put(struct sw_journal *journal, const struct sw_past_row *row)
{
	assert(journal->in_batch && row->state < SW_PAST_STATES);
	if (journal->doom.code != 0)
		return journal->doom.code;
	int rc = insert(journal, row);
	if (rc == SQLITE_DONE && sqlite3_changes(journal->db) > 0)
		rc = count_state(journal, row->state, 1);
	return rc == SQLITE_DONE ? 0 : sw_journal_doom(journal, rc);
}

void sw_past_spoil(struct sw_journal *journal)
{
	if (sw_journal_open_batch(journal) == 0)
		sw_journal_doom(journal, SQLITE_NOMEM);
}

static const char *text_at(sqlite3_stmt *rows, int column)
{
	const unsigned char *text = sqlite3_column_text(rows, column);
	return text != NULL ? (const char *)text : "";
}

/* The row at hand, checked. */
static int read_row(struct sw_journal *journal, sqlite3_stmt *rows, struct sw_past_row *ret_row, struct sw_err *err)
{
	*ret_row = (struct sw_past_row){
		.job = (uint64_t)sqlite3_column_int64(rows, 0),
		.uid = (uint32_t)sqlite3_column_int64(rows, 1),
		.epoch = (uint32_t)sqlite3_column_int64(rows, 2),
		.state = (uint32_t)sqlite3_column_int64(rows, 3),
		.submitted_at_ns = sqlite3_column_int64(rows, 4),
		.ended_at_ns = sqlite3_column_int64(rows, 5),
		.name = text_at(rows, 7),
		.node = text_at(rows, 8),
	};
	for (int t = 0; t < (int)SW_PAST_TEXTS; t++)
		ret_row->texts[t] = text_at(rows, 9 + t);
	if (sqlite3_errcode(journal->db) == SQLITE_NOMEM)
		return fail(journal, SQLITE_NOMEM, err);
	if (sum_of(ret_row) != sqlite3_column_int64(rows, 6) || ret_row->state >= SW_PAST_STATES)
		return sw_journal_damaged(journal, err, "the row of job %" PRIu64 " does not match its checksum", ret_row->job);
	return 0;
}

static int walk(struct sw_journal *journal, sqlite3_stmt *rows, sw_past_fn *fn, void *user, bool *ret_any, struct sw_err *err)
{
	struct sw_past_row row;
	int rc, r = 0;
	bool replaying = journal->replaying;
	journal->replaying = true; /* a look at rows changes nothing */
	while (r == 0 && (rc = sqlite3_step(rows)) == SQLITE_ROW) {
		r = read_row(journal, rows, &row, err);
		if (r == 0)
			r = fn(user, &row);
		*ret_any = true;
	}
	if (r == 0 && rc != SQLITE_DONE)
		r = fail(journal, rc, err);
	sqlite3_reset(rows);
	sqlite3_clear_bindings(rows);
	journal->replaying = replaying;
	return r;
}

int sw_past_each(struct sw_journal *journal, const struct sw_past_query *query, sw_past_fn *fn, void *user, struct sw_err *err)
{
	static const enum sw_sql which[2][2] = {{SW_SQL_PAST_UP, SW_SQL_PAST_DOWN}, {SW_SQL_PAST_UP_USER, SW_SQL_PAST_DOWN_USER}};
	sqlite3_stmt *rows = journal->sql[which[query->by_user][query->descending]];
	bool any = false;
	sqlite3_bind_int64(rows, 1, query->from > INT64_MAX ? INT64_MAX : (int64_t)query->from);
	if (query->by_user)
		sqlite3_bind_int64(rows, 2, query->uid);
	return walk(journal, rows, fn, user, &any, err);
}

int sw_past_first_since(struct sw_journal *journal, int64_t since_ns, uint64_t *ret_job, struct sw_err *err)
{
	sqlite3_stmt *first = journal->sql[SW_SQL_PAST_SINCE];
	sqlite3_bind_int64(first, 1, since_ns);
	sqlite3_bind_int64(first, 2, SINCE_MOST + 1);
	int rc = sqlite3_step(first);
	if (rc == SQLITE_ROW)
		*ret_job = sqlite3_column_int64(first, 1) > SINCE_MOST ? 0 : (uint64_t)sqlite3_column_int64(first, 0);
	sqlite3_reset(first);
	return rc == SQLITE_ROW ? 0 : fail(journal, rc, err);
}

int sw_past_find(struct sw_journal *journal, uint64_t job, sw_past_fn *fn, void *user, struct sw_err *err)
{
	sqlite3_stmt *rows = journal->sql[SW_SQL_PAST_FIND];
	bool any = false;
	sqlite3_bind_int64(rows, 1, job > INT64_MAX ? 0 : (int64_t)job);
	int r = walk(journal, rows, fn, user, &any, err);
	return r == 0 && !any ? sw_err_set(err, SW_ENOTFOUND, "there is no job %" PRIu64, job) : r;
}

int sw_past_count(struct sw_journal *journal, uint64_t counts[SW_PAST_STATES], struct sw_err *err)
{
	sqlite3_stmt *rows = journal->sql[SW_SQL_PAST_COUNTS];
	int rc;
	memset(counts, 0, SW_PAST_STATES * sizeof counts[0]);
	while ((rc = sqlite3_step(rows)) == SQLITE_ROW) {
		int64_t state = sqlite3_column_int64(rows, 0), count = sqlite3_column_int64(rows, 1);
		if (state >= 0 && state < (int64_t)SW_PAST_STATES && count > 0)
			counts[state] = (uint64_t)count;
	}
	sqlite3_reset(rows);
	return rc == SQLITE_DONE ? 0 : fail(journal, rc, err);
}

/* The oldest rows: how many there are of each state among the first `most` that ended before the
 * moment. SQLITE_DONE or SQLite's code. */
static int count_oldest(struct sw_journal *journal, int64_t before_ns, int64_t most, int64_t counts[SW_PAST_STATES], int64_t *ret_total)
{
	sqlite3_stmt *rows = journal->sql[SW_SQL_PAST_OLDEST];
	int rc;
	sqlite3_bind_int64(rows, 1, before_ns);
	sqlite3_bind_int64(rows, 2, most);
	*ret_total = 0;
	while ((rc = sqlite3_step(rows)) == SQLITE_ROW) {
		int64_t state = sqlite3_column_int64(rows, 0);
		counts[state >= 0 && state < (int64_t)SW_PAST_STATES ? state : 0] += sqlite3_column_int64(rows, 1);
		*ret_total += sqlite3_column_int64(rows, 1);
	}
	sqlite3_reset(rows);
	sqlite3_clear_bindings(rows);
	return rc;
}

static int remove_oldest(struct sw_journal *journal, int64_t before_ns, int64_t most, int64_t *ret_total)
{
	int64_t counts[SW_PAST_STATES] = {0};
	int rc = sw_sql_run(journal, SW_SQL_BEGIN);
	if (rc == SQLITE_DONE)
		rc = count_oldest(journal, before_ns, most, counts, ret_total);
	for (uint32_t state = 0; state < SW_PAST_STATES && rc == SQLITE_DONE; state++)
		if (counts[state] > 0)
			rc = count_state(journal, state, -counts[state]);
	if (rc == SQLITE_DONE) {
		sqlite3_bind_int64(journal->sql[SW_SQL_PAST_REMOVE], 1, before_ns);
		sqlite3_bind_int64(journal->sql[SW_SQL_PAST_REMOVE], 2, most);
		rc = sw_sql_run(journal, SW_SQL_PAST_REMOVE);
	}
	return rc == SQLITE_DONE ? sw_sql_run(journal, SW_SQL_COMMIT) : rc;
}

int sw_past_trim(struct sw_journal *journal, uint64_t keep, int64_t before_ns, bool *ret_more, struct sw_err *err)
{
	uint64_t counts[SW_PAST_STATES], total = 0;
	int64_t removed = 0;
	int r = sw_journal_must_rest(journal, "remove rows from", err);
	r = r < 0 ? r : sw_past_count(journal, counts, err);
	if (r < 0)
		return r;
	for (uint32_t state = 0; state < SW_PAST_STATES; state++)
		total += counts[state];
	uint64_t excess = total > keep ? total - keep : 0;
	int64_t most = excess > 0 && excess < SW_PAST_TRIM_STEP ? (int64_t)excess : SW_PAST_TRIM_STEP;
	/* Too many: the oldest, however old they are. */
	int rc = remove_oldest(journal, excess > 0 ? INT64_MAX : before_ns, most, &removed);
	if (rc != SQLITE_DONE) {
		r = sw_journal_fail(journal, rc, err, "cannot remove rows from the journal '%s'", journal->path);
		sw_sql_roll_back(journal, rc);
		return r;
	}
	*ret_more = removed == SW_PAST_TRIM_STEP || (excess > 0 && removed > 0);
	return 0;
}

/* ---- texts by digest */

static int64_t sum_of_blob(const unsigned char *digest, const void *bytes, size_t size)
{
	return (int64_t)sw_hash_bytes(sw_hash_bytes(SW_HASH_START, digest, SW_BLOB_DIGEST), bytes, size);
}

int sw_blob_put(struct sw_journal *journal, const unsigned char digest[SW_BLOB_DIGEST], const void *bytes, size_t size)
{
	int r = sw_journal_open_batch(journal);
	if (r < 0)
		return r;
	sqlite3_stmt *put = journal->sql[SW_SQL_BLOB_PUT];
	sqlite3_bind_blob(put, 1, digest, SW_BLOB_DIGEST, SQLITE_STATIC);
	sqlite3_bind_int64(put, 2, sum_of_blob(digest, bytes, size));
	int rc = sqlite3_bind_blob64(put, 3, size > 0 ? bytes : "", size, SQLITE_STATIC);
	if (rc == SQLITE_OK)
		rc = sw_sql_run(journal, SW_SQL_BLOB_PUT);
	return rc == SQLITE_DONE ? 0 : sw_journal_doom(journal, rc);
}

int sw_blob_get(struct sw_journal *journal, const unsigned char digest[SW_BLOB_DIGEST], char **ret_bytes, size_t *ret_size,
		struct sw_err *err)
{
	sqlite3_stmt *get = journal->sql[SW_SQL_BLOB_GET];
	sqlite3_bind_blob(get, 1, digest, SW_BLOB_DIGEST, SQLITE_STATIC);
	int rc = sqlite3_step(get), r = 0;
	if (rc == SQLITE_ROW) {
		const void *bytes = sqlite3_column_blob(get, 1);
		size_t size = (size_t)sqlite3_column_bytes(get, 1);
		char *copy = malloc(size + 1);
		if (copy == NULL) {
			r = sw_err_set(err, SW_ENOMEM, "out of memory");
		} else if (sum_of_blob(digest, size > 0 ? bytes : "", size) != sqlite3_column_int64(get, 0)) {
			free(copy);
			r = sw_journal_damaged(journal, err, "a text does not match its checksum");
		} else {
			if (size > 0)
				memcpy(copy, bytes, size);
			copy[size] = '\0';
			*ret_bytes = copy;
			*ret_size = size;
		}
	}
	sqlite3_reset(get);
	sqlite3_clear_bindings(get);
	if (rc == SQLITE_DONE)
		return sw_err_set(err, SW_ENOTFOUND, "a text is not in the journal '%s'", journal->path);
	return rc == SQLITE_ROW ? r : fail(journal, rc, err);
}

/* The ids of those that are not needed; how many. SQLITE_DONE or SQLite's code. */
static int find_stale(struct sw_journal *journal, int64_t *cursor, sw_blob_needed_fn *is_needed, void *user, int64_t *ret_stale,
		      size_t *ret_count)
{
	sqlite3_stmt *rows = journal->sql[SW_SQL_BLOB_LIST];
	int rc = SQLITE_DONE, seen = 0;
	sqlite3_bind_int64(rows, 1, *cursor);
	sqlite3_bind_int64(rows, 2, SWEEP_STEP);
	*ret_count = 0;
	while (*ret_count < REMOVE_STEP && (rc = sqlite3_step(rows)) == SQLITE_ROW) {
		const unsigned char *digest = sqlite3_column_blob(rows, 1);
		*cursor = sqlite3_column_int64(rows, 0);
		seen++;
		if (sqlite3_column_bytes(rows, 1) != (int)SW_BLOB_DIGEST || !is_needed(user, digest))
			ret_stale[(*ret_count)++] = *cursor;
	}
	sqlite3_reset(rows);
	if (*ret_count == REMOVE_STEP)
		return SQLITE_DONE;
	if (seen < SWEEP_STEP)
		*cursor = 0;
	return rc;
}

int sw_blob_sweep(struct sw_journal *journal, int64_t *cursor, sw_blob_needed_fn *is_needed, void *user, struct sw_err *err)
{
	int64_t stale[REMOVE_STEP];
	size_t count = 0;
	int r = sw_journal_must_rest(journal, "remove texts from", err);
	if (r < 0)
		return r;
	int rc = find_stale(journal, cursor, is_needed, user, stale, &count);
	if (rc == SQLITE_DONE && count == 0)
		return 0;
	if (rc == SQLITE_DONE)
		rc = sw_sql_run(journal, SW_SQL_BEGIN);
	for (size_t i = 0; i < count && rc == SQLITE_DONE; i++) {
		sqlite3_bind_int64(journal->sql[SW_SQL_BLOB_REMOVE], 1, stale[i]);
		rc = sw_sql_run(journal, SW_SQL_BLOB_REMOVE);
	}
	if (rc == SQLITE_DONE)
		rc = sw_sql_run(journal, SW_SQL_COMMIT);
	if (rc == SQLITE_DONE)
		return 0;
	r = sw_journal_fail(journal, rc, err, "cannot remove texts from the journal '%s'", journal->path);
	sw_sql_roll_back(journal, rc);
	return r;
}
