/* Snapshots of a journal.
 *
 * A snapshot lies in parts in `snapshot_parts`, and counts once it has its row in `snapshots`. That
 * row comes in the same transaction as its last part. The row before stays, and with it the records
 * since then. Where the last snapshot turns out to be damaged, the one before takes its place.
 * Parts without a row are of a snapshot that was given up or replaced; steps remove them, one at a
 * time.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "store/internal.h"

static int64_t checksum(int64_t part, const void *bytes, size_t size)
{
	return (int64_t)sw_hash_bytes(sw_hash_u64(SW_HASH_START, (uint64_t)part), bytes, size);
}

void sw_snapshot_give_up(struct sw_journal *journal)
{
	free(journal->writer.bytes);
	journal->writer = (struct sw_snapshot_writer){0};
}

int sw_journal_snapshot_begin(struct sw_journal *journal, uint64_t seq, void *bytes, size_t size, struct sw_err *err)
{
	SW_CLEANUP(sw_freep) void *owned = bytes;
	if (size > SW_JOURNAL_SNAPSHOT_MAX) {
		sw_err_set(err, SW_ELIMIT, "cannot store a snapshot in the journal '%s'", journal->path);
		sw_err_detail(err, "it has %zu bytes, at most %zu are possible", size, SW_JOURNAL_SNAPSHOT_MAX);
		return SW_ELIMIT;
	}
	if (seq == 0 || seq < journal->snapshot_seq || seq > journal->last_seq) {
		sw_err_set(err, SW_EBUG, "cannot store a snapshot in the journal '%s'", journal->path);
		sw_err_detail(err, "it ends with record %" PRIu64 "; the snapshot before ends with %" PRIu64 ", the journal with %" PRIu64,
			      seq, journal->snapshot_seq, journal->last_seq);
		return SW_EBUG;
	}
	sw_snapshot_give_up(journal);
	journal->writer = (struct sw_snapshot_writer){
		.bytes = SW_TAKE(owned),
		.size = size,
		.seq = seq,
		.id = ++journal->last_snapshot_id,
		.active = true,
	};
	return 0;
}

/* SQLITE_DONE or SQLite's code, like the next two. */
static int store_part(struct sw_journal *journal, size_t size)
{
	const struct sw_snapshot_writer *writer = &journal->writer;
	const unsigned char *bytes = writer->bytes + writer->done;
	sqlite3_stmt *insert = journal->sql[SW_SQL_SNAPSHOT_PART];
	sqlite3_bind_int64(insert, 1, writer->id);
	sqlite3_bind_int64(insert, 2, writer->part);
	sqlite3_bind_int64(insert, 3, checksum(writer->part, bytes, size));
	int rc = sqlite3_bind_blob64(insert, 4, bytes, size, SQLITE_STATIC);
	return rc != SQLITE_OK ? rc : sw_sql_run(journal, SW_SQL_SNAPSHOT_PART);
}

static int switch_over(struct sw_journal *journal)
{
	sqlite3_stmt *insert = journal->sql[SW_SQL_SNAPSHOT_SWITCH];
	sqlite3_bind_int64(insert, 1, journal->writer.id);
	sqlite3_bind_int64(insert, 2, (int64_t)journal->writer.seq);
	sqlite3_bind_int64(insert, 3, (int64_t)journal->writer.size);
	int rc = sw_sql_run(journal, SW_SQL_SNAPSHOT_SWITCH);
	if (rc != SQLITE_DONE)
		return rc;
	sqlite3_bind_int64(journal->sql[SW_SQL_SNAPSHOT_DROP], 1, journal->writer.id);
	sqlite3_bind_int64(journal->sql[SW_SQL_SNAPSHOT_DROP], 2, journal->snapshot_id);
	return sw_sql_run(journal, SW_SQL_SNAPSHOT_DROP);
}

static int remove_stale_part(struct sw_journal *journal, bool *ret_removed)
{
	sqlite3_stmt *stale = journal->sql[SW_SQL_SNAPSHOT_STALE];
	sqlite3_bind_int64(stale, 1, journal->snapshot_id);
	sqlite3_bind_int64(stale, 2, journal->writer.id);
	sqlite3_bind_int64(stale, 3, journal->older_id);
	int rc = sw_sql_run(journal, SW_SQL_SNAPSHOT_STALE);
	if (rc == SQLITE_DONE)
		*ret_removed = sqlite3_changes(journal->db) > 0;
	return rc;
}

/* One transaction: a stale part goes, the next `size` bytes of the new one come, with its row
 * if these are the last. */
static int step(struct sw_journal *journal, size_t size, bool last, bool *ret_removed)
{
	int rc = sw_sql_run(journal, SW_SQL_BEGIN);
	if (rc == SQLITE_DONE)
		rc = remove_stale_part(journal, ret_removed);
	if (rc == SQLITE_DONE && size > 0)
		rc = store_part(journal, size);
	if (rc == SQLITE_DONE && last)
		rc = switch_over(journal);
	return rc == SQLITE_DONE ? sw_sql_run(journal, SW_SQL_COMMIT) : rc;
}

int sw_journal_snapshot_step(struct sw_journal *journal, bool *ret_more, struct sw_err *err)
{
	int r = sw_journal_must_rest(journal, "store a snapshot in", err);
	if (r < 0)
		return r;
	struct sw_snapshot_writer *writer = &journal->writer;
	size_t left = writer->size - writer->done;
	size_t size = left < SW_JOURNAL_SNAPSHOT_STEP ? left : SW_JOURNAL_SNAPSHOT_STEP;
	bool last = writer->active && size == left, removed = false;
	int rc = step(journal, size, last, &removed);
	if (rc != SQLITE_DONE) {
		r = sw_journal_fail(journal, rc, err, "cannot store a snapshot in the journal '%s'", journal->path);
		sw_sql_roll_back(journal, rc);
		sw_snapshot_give_up(journal);
		return r;
	}
	writer->done += size;
	writer->part++;
	if (last) {
		/* The parts of the one before the one before have just become stale. */
		removed |= journal->older_id != 0;
		journal->older_id = journal->snapshot_id;
		journal->older_seq = journal->snapshot_seq;
		journal->snapshot_id = writer->id;
		journal->snapshot_seq = writer->seq;
		sw_snapshot_give_up(journal);
		sw_mark_sync(&journal->mark);
	}
	*ret_more = writer->active || removed;
	return 0;
}

/* Copies the parts behind one another; SW_EINPUT when they are not what was written. */
static int read_parts(struct sw_journal *journal, unsigned char *bytes, size_t size, struct sw_err *err)
{
	sqlite3_stmt *parts = journal->sql[SW_SQL_SNAPSHOT_BODY];
	sqlite3_bind_int64(parts, 1, journal->snapshot_id);
	size_t done = 0;
	int rc, r = 0;
	for (int64_t part = 0; r == 0 && (rc = sqlite3_step(parts)) == SQLITE_ROW; part++) {
		const void *body = sqlite3_column_blob(parts, 2);
		size_t count = (size_t)sqlite3_column_bytes(parts, 2);
		if (sqlite3_column_int64(parts, 0) != part || body == NULL || count > size - done ||
		    checksum(part, body, count) != sqlite3_column_int64(parts, 1)) {
			r = sw_journal_damaged(journal, err, "part %" PRId64 " of its snapshot does not match its checksum", part);
		} else {
			memcpy(bytes + done, body, count);
			done += count;
		}
	}
	sqlite3_reset(parts);
	if (r == 0 && rc != SQLITE_DONE)
		r = sw_journal_fail(journal, rc, err, "cannot read the snapshot of the journal '%s'", journal->path);
	if (r == 0 && done != size)
		r = sw_journal_damaged(journal, err, "its snapshot has %zu bytes instead of %zu", done, size);
	return r;
}

int sw_snapshot_find(struct sw_journal *journal, size_t *ret_size, struct sw_err *err)
{
	sqlite3_stmt *head = journal->sql[SW_SQL_SNAPSHOT_HEAD];
	int64_t id[2] = {0}, seq[2] = {0}, size[2] = {0};
	int rc, count = 0;
	while ((rc = sqlite3_step(head)) == SQLITE_ROW && count < 2) {
		id[count] = sqlite3_column_int64(head, 0);
		seq[count] = sqlite3_column_int64(head, 1);
		size[count++] = sqlite3_column_int64(head, 2);
	}
	sqlite3_reset(head);
	if (rc != SQLITE_DONE)
		return sw_journal_fail(journal, rc, err, "cannot read the snapshot of the journal '%s'", journal->path);
	for (int i = 0; i < count; i++)
		if (id[i] < 1 || seq[i] < 1 || size[i] < 0 || (uint64_t)size[i] > SW_JOURNAL_SNAPSHOT_MAX || seq[i] < seq[1])
			return sw_journal_damaged(journal, err, "the row of its snapshot makes no sense");
	journal->snapshot_id = id[0];
	journal->snapshot_seq = (uint64_t)seq[0];
	journal->older_id = id[1];
	journal->older_seq = (uint64_t)seq[1];
	*ret_size = (size_t)size[0];
	return 0;
}

int sw_journal_snapshot_read(struct sw_journal *journal, uint64_t *ret_seq, void **ret_bytes, size_t *ret_size, struct sw_err *err)
{
	size_t size = 0;
	int r = sw_journal_must_rest(journal, "read the snapshot of", err);
	if (r == 0)
		r = sw_snapshot_find(journal, &size, err);
	if (r < 0)
		return r;
	SW_CLEANUP(sw_freep) unsigned char *bytes = NULL;
	if (journal->snapshot_id != 0) {
		bytes = malloc(size > 0 ? size : 1);
		if (bytes == NULL)
			return sw_err_set(err, SW_ENOMEM, "no memory for the snapshot of the journal '%s'", journal->path);
		r = read_parts(journal, bytes, size, err);
		if (r < 0)
			return r;
	}
	*ret_seq = journal->snapshot_seq;
	*ret_bytes = SW_TAKE(bytes);
	*ret_size = size;
	return 0;
}

uint64_t sw_journal_older_snapshot(const struct sw_journal *journal)
{
	return journal->older_seq;
}

int sw_journal_snapshot_fall_back(struct sw_journal *journal, struct sw_err *err)
{
	int r = sw_journal_must_rest(journal, "go back to an earlier snapshot of", err);
	if (r < 0)
		return r;
	assert(journal->snapshot_id != 0);
	uint64_t next = journal->older_seq + 1;
	if (journal->first_seq > next && !sw_aside_covers(journal, next, journal->first_seq - 1)) {
		sw_err_set(err, SW_ENOTFOUND, "the journal '%s' cannot do without its last snapshot", journal->path);
		sw_err_detail(err, "the records from %" PRIu64 " on, which the one before needs, are not there any more", next);
		return SW_ENOTFOUND;
	}
	sqlite3_bind_int64(journal->sql[SW_SQL_SNAPSHOT_FALL_BACK], 1, journal->snapshot_id);
	int rc = sw_sql_run(journal, SW_SQL_SNAPSHOT_FALL_BACK);
	if (rc != SQLITE_DONE) {
		r = sw_journal_fail(journal, rc, err, "cannot drop a snapshot of the journal '%s'", journal->path);
		sw_sql_roll_back(journal, rc);
		return r;
	}
	size_t size;
	return sw_snapshot_find(journal, &size, err);
}
