/* SQLite as the journal uses it: the statements, and its result codes in words. */
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "store/internal.h"

#define PAST_ROWS "SELECT job, uid, epoch, state, submitted_at, ended_at, sum, name, node, t0, t1, t2, t3, t4 FROM past"

static const char *const statements[SW_SQL_COUNT] = {
	[SW_SQL_BEGIN] = "BEGIN IMMEDIATE",
	[SW_SQL_COMMIT] = "COMMIT",
	[SW_SQL_ROLLBACK] = "ROLLBACK",
	[SW_SQL_APPEND] = "INSERT INTO records (seq, at, kind, sum, body) VALUES (?1, ?2, ?3, ?4, ?5)",
	[SW_SQL_REPLAY] = "SELECT seq, at, kind, sum, body FROM records WHERE seq >= ?1 ORDER BY seq",
	[SW_SQL_WHEN] = "SELECT at FROM records WHERE seq >= ?1 ORDER BY seq LIMIT 1",
	[SW_SQL_PRUNE] = "DELETE FROM records WHERE seq < ?1",
	[SW_SQL_BOUNDS] =
		"SELECT (SELECT min(seq) FROM records), (SELECT max(seq) FROM records), (SELECT max(snapshot) FROM snapshot_parts),"
		" (SELECT max(seq) FROM aside), (SELECT count(*) FROM aside)",
	[SW_SQL_SNAPSHOT_PART] = "INSERT INTO snapshot_parts (snapshot, part, sum, body) VALUES (?1, ?2, ?3, ?4)",
	[SW_SQL_SNAPSHOT_SWITCH] =
		"INSERT INTO snapshots (id, seq, size, written_at) VALUES (?1, ?2, ?3, CAST(strftime('%s', 'now') AS INTEGER))",
	[SW_SQL_SNAPSHOT_DROP] = "DELETE FROM snapshots WHERE id NOT IN (?1, ?2)",
	[SW_SQL_SNAPSHOT_STALE] =
		"DELETE FROM snapshot_parts WHERE rowid = (SELECT rowid FROM snapshot_parts WHERE snapshot NOT IN (?1, ?2, ?3) LIMIT 1)",
	[SW_SQL_SNAPSHOT_HEAD] = "SELECT id, seq, size FROM snapshots ORDER BY id DESC LIMIT 2",
	[SW_SQL_SNAPSHOT_BODY] = "SELECT part, sum, body FROM snapshot_parts WHERE snapshot = ?1 ORDER BY part",
	[SW_SQL_SNAPSHOT_FALL_BACK] = "DELETE FROM snapshots WHERE id = ?1",
	[SW_SQL_ASIDE_PUT] = "INSERT INTO aside (seq, at, kind, body, reason, set_at)"
			     " SELECT seq, at, kind, body, ?2, CAST(strftime('%s', 'now') AS INTEGER) FROM records WHERE seq = ?1",
	[SW_SQL_ASIDE_TAKE_OUT] = "DELETE FROM records WHERE seq = ?1",
	[SW_SQL_ASIDE_COUNT] = "SELECT count(*) FROM aside WHERE seq BETWEEN ?1 AND ?2",
	[SW_SQL_ASIDE_LIST] = "SELECT seq, at, kind, body, reason, set_at FROM aside ORDER BY seq DESC LIMIT ?1",
	[SW_SQL_ASIDE_FORGET] = "DELETE FROM aside WHERE seq < ?1 AND seq IN (SELECT seq FROM aside ORDER BY seq DESC LIMIT -1 OFFSET ?2)",
	[SW_SQL_PAST_PUT] = "INSERT INTO past (job, uid, epoch, state, submitted_at, ended_at, sum, name, node, t0, t1, t2, t3, t4)"
			    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14) ON CONFLICT (job) DO NOTHING",
	[SW_SQL_PAST_COUNT] = "INSERT INTO past_counts (state, count) VALUES (?1, ?2) ON CONFLICT (state) DO UPDATE SET count = count + ?2",
	[SW_SQL_PAST_COUNTS] = "SELECT state, count FROM past_counts",
	[SW_SQL_PAST_FIND] = PAST_ROWS " WHERE job = ?1",
	[SW_SQL_PAST_UP] = PAST_ROWS " WHERE job >= ?1 ORDER BY job",
	[SW_SQL_PAST_DOWN] = PAST_ROWS " WHERE job <= ?1 ORDER BY job DESC",
	[SW_SQL_PAST_UP_USER] = PAST_ROWS " INDEXED BY past_user WHERE uid = ?2 AND job >= ?1 ORDER BY job",
	[SW_SQL_PAST_DOWN_USER] = PAST_ROWS " INDEXED BY past_user WHERE uid = ?2 AND job <= ?1 ORDER BY job DESC",
	[SW_SQL_PAST_SINCE] = "SELECT min(job), count(*) FROM (SELECT job FROM past WHERE ended_at >= ?1 LIMIT ?2)",
	[SW_SQL_PAST_OLDEST] =
		"SELECT state, count(*) FROM (SELECT state FROM past WHERE ended_at < ?1 ORDER BY ended_at, job LIMIT ?2) GROUP BY state",
	[SW_SQL_PAST_REMOVE] = "DELETE FROM past WHERE job IN (SELECT job FROM past WHERE ended_at < ?1 ORDER BY ended_at, job LIMIT ?2)",
	[SW_SQL_BLOB_PUT] = "INSERT INTO blobs (digest, sum, body) VALUES (?1, ?2, ?3) ON CONFLICT (digest) DO NOTHING",
	[SW_SQL_BLOB_GET] = "SELECT sum, body FROM blobs WHERE digest = ?1",
	[SW_SQL_BLOB_LIST] = "SELECT id, digest FROM blobs WHERE id > ?1 ORDER BY id LIMIT ?2",
	[SW_SQL_BLOB_REMOVE] = "DELETE FROM blobs WHERE id = ?1",
	[SW_SQL_META_SET] = "INSERT OR REPLACE INTO meta (name, value) VALUES (?1, ?2)",
};

int sw_sql_prepare(struct sw_journal *journal)
{
	for (int i = 0; i < SW_SQL_COUNT; i++) {
		int rc = sqlite3_prepare_v3(journal->db, statements[i], -1, SQLITE_PREPARE_PERSISTENT, &journal->sql[i], NULL);
		if (rc != SQLITE_OK)
			return rc;
	}
	return SQLITE_OK;
}

int sw_sql_run(struct sw_journal *journal, enum sw_sql which)
{
	sqlite3_stmt *statement = journal->sql[which];
	int rc = sqlite3_step(statement);
	assert(rc != SQLITE_ROW);
	sqlite3_reset(statement);
	/* Bytes of the caller's must not stay bound. */
	sqlite3_clear_bindings(statement);
	return rc;
}

bool sw_sql_roll_back(struct sw_journal *journal, int rc)
{
	/* After some errors SQLite has done it by itself. */
	if (!sqlite3_get_autocommit(journal->db))
		sw_sql_run(journal, SW_SQL_ROLLBACK);
	/* When the last fsync of a commit fails, the commit itself may already be in the
	 * write-ahead log. A crash now would bring it back. Emptying the log removes it. A disk
	 * that was full cannot have got that far. */
	if ((rc & 0xff) != SQLITE_IOERR)
		return true;
	return sqlite3_wal_checkpoint_v2(journal->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL) == SQLITE_OK;
}

static int code_of(int rc)
{
	switch (rc & 0xff) {
	case SQLITE_NOMEM:
		return SW_ENOMEM;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return SW_EINPUT;
	case SQLITE_TOOBIG:
		return SW_ELIMIT;
	case SQLITE_FULL:
	case SQLITE_IOERR:
	case SQLITE_BUSY:
	case SQLITE_CANTOPEN:
	case SQLITE_PERM:
	case SQLITE_READONLY:
	case SQLITE_AUTH:
		return SW_EIO;
	default:
		return SW_EBUG;
	}
}

static void hint_damaged(struct sw_err *err)
{
	sw_err_hint(err,
		    "'sharewell journal check' says what is left of it. 'sharewell journal repair' saves that, 'sharewell journal restore' "
		    "puts a backup in its place.");
}

/* Why the last read, write or sync failed; 0 when SQLite does not know. sqlite3_system_errno()
 * alone is not told of failing commits. */
static int last_errno(sqlite3 *db)
{
	int error = 0;
	sqlite3_file *log = NULL;
	if (db == NULL)
		return 0;
	if (sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log) == SQLITE_OK && log != NULL && log->pMethods != NULL)
		log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &error);
	if (error == 0)
		sqlite3_file_control(db, "main", SQLITE_FCNTL_LAST_ERRNO, &error);
	return error != 0 ? error : sqlite3_system_errno(db);
}

static void explain(const struct sw_journal *journal, int rc, struct sw_err *err)
{
	int error = last_errno(journal->db);
	switch (rc & 0xff) {
	case SQLITE_FULL:
		sw_err_detail(err, "the disk is full");
		sw_err_hint(err, "Free some space; nothing that was stored before is lost.");
		break;
	case SQLITE_CORRUPT:
		sw_err_detail(err, "the file is damaged");
		hint_damaged(err);
		break;
	case SQLITE_NOTADB:
		sw_err_detail(err, "it is not a journal, or its first page is damaged");
		break;
	case SQLITE_BUSY:
		sw_err_detail(err, "another program has the file open");
		break;
	default:
		if (code_of(rc) == SW_EIO && error != 0)
			sw_err_detail(err, "%s", strerror(error));
		else
			sw_err_detail(err, "%s (SQLite error %d)", sqlite3_errstr(rc), rc);
	}
}

int sw_journal_fail(const struct sw_journal *journal, int rc, struct sw_err *err, const char *fact_fmt, ...)
{
	struct sw_err words = {0};
	char fact[sizeof words.fact];
	va_list args;
	va_start(args, fact_fmt);
	vsnprintf(fact, sizeof fact, fact_fmt, args);
	va_end(args);
	/* In a place of its own first: `err` may hold an earlier error, which
	 * must keep its own detail. */
	sw_err_set(&words, code_of(rc), "%s", fact);
	explain(journal, rc, &words);
	if (err != NULL && err->code == 0)
		*err = words;
	return words.code;
}

int sw_journal_damaged(const struct sw_journal *journal, struct sw_err *err, const char *fmt, ...)
{
	struct sw_err words = {0};
	char detail[sizeof words.detail];
	va_list args;
	va_start(args, fmt);
	vsnprintf(detail, sizeof detail, fmt, args);
	va_end(args);
	sw_err_set(&words, SW_EINPUT, "the journal '%s' is damaged", journal->path);
	sw_err_detail(&words, "%s", detail);
	hint_damaged(&words);
	if (err != NULL && err->code == 0)
		*err = words;
	return words.code;
}

int sw_journal_must_rest(const struct sw_journal *journal, const char *verb, struct sw_err *err)
{
	if (!journal->in_batch && !journal->replaying)
		return 0;
	sw_err_set(err, SW_EBUG, "cannot %s the journal '%s' now", verb, journal->path);
	sw_err_detail(err, journal->in_batch ? "a batch of records is open" : "a replay is under way");
	return SW_EBUG;
}
