/* Checking a journal: reads all there is, and gives a repair what is good. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "store/care.h"
#include "store/offline.h"

#define LOOK_EACH 1024u	    /* records between two words about how far it is */
#define BLIND_MAX 10000000u /* records in a row that cannot be read, before it is taken for the end */

/* ---- records */

static void note_bad(struct sw_journal_report *report, uint64_t seq, const char *reason)
{
	if (report->bad_count < SW_JOURNAL_SHOWN) {
		report->bad[report->bad_count].seq = seq;
		snprintf(report->bad[report->bad_count].reason, sizeof report->bad[0].reason, "%s", reason);
	}
	report->bad_count++;
}

static int64_t checksum(uint64_t seq, int64_t at_ns, uint32_t kind, const void *bytes, size_t size)
{
	uint64_t hash = sw_hash_u64(SW_HASH_START, seq);
	hash = sw_hash_u64(hash, (uint64_t)at_ns);
	hash = sw_hash_u64(hash, kind);
	return (int64_t)sw_hash_bytes(hash, bytes, size);
}

int sw_offline_put_row(sqlite3 *into, const char *insert, sqlite3_stmt *row, const char *last)
{
	sqlite3_stmt *statement = NULL;
	int rc = sqlite3_prepare_v2(into, insert, -1, &statement, NULL);
	int columns = row != NULL ? sqlite3_column_count(row) : 0;
	for (int c = 0; rc == SQLITE_OK && c < columns; c++)
		rc = sqlite3_bind_value(statement, c + 1, sqlite3_column_value(row, c));
	if (rc == SQLITE_OK && last != NULL)
		rc = sqlite3_bind_text(statement, columns + 1, last, -1, SQLITE_STATIC);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(statement);
	sqlite3_finalize(statement);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Numbers that have no record, and were not set aside. */
static void miss(struct sw_offline *offline, uint64_t from, uint64_t to)
{
	char text[200];
	for (uint64_t seq = from; seq <= to && offline->rc == SQLITE_OK; seq++) {
		snprintf(text, sizeof text, "SELECT count(*) FROM aside WHERE seq = %" PRIu64, seq);
		if (sw_offline_ask(offline->journal.db, text, 0) > 0)
			continue;
		note_bad(offline->report, seq, "it could not be read");
		snprintf(text, sizeof text,
			 "INSERT OR IGNORE INTO aside VALUES (%" PRIu64
			 ", 0, 0, NULL, 'it could not be read', CAST(strftime('%%s', 'now') AS INTEGER))",
			 seq);
		if (offline->into != NULL)
			offline->rc = sw_offline_exec(offline->into, text);
	}
}

static void take_record(struct sw_offline *offline, sqlite3_stmt *row)
{
	uint64_t seq = (uint64_t)sqlite3_column_int64(row, 0);
	int64_t at_ns = sqlite3_column_int64(row, 1), kind = sqlite3_column_int64(row, 2);
	const void *bytes = sqlite3_column_blob(row, 4);
	size_t size = (size_t)sqlite3_column_bytes(row, 4);
	struct sw_journal_report *report = offline->report;
	if (offline->expected > 0 && seq > offline->expected)
		miss(offline, offline->expected, seq - 1);
	if (report->first == 0)
		report->first = seq;
	report->last = seq;
	offline->expected = seq + 1;
	bool good = kind >= 0 && kind <= UINT32_MAX && checksum(seq, at_ns, (uint32_t)kind, bytes, size) == sqlite3_column_int64(row, 3);
	if (good)
		report->records++;
	else
		note_bad(report, seq, "it does not match its checksum");
	if (offline->into == NULL || offline->rc != SQLITE_OK)
		return;
	if (good)
		offline->rc = sw_offline_put_row(offline->into,
						 "INSERT INTO records (seq, at, kind, sum, body) VALUES (?1, ?2, ?3, ?4, ?5)", row, NULL);
	else
		offline->rc =
			sw_offline_put_row(offline->into,
					   "INSERT OR REPLACE INTO aside (seq, at, kind, body, reason, set_at) VALUES (?1, ?2, ?3, ?5, ?6,"
					   " CAST(strftime('%s', 'now') AS INTEGER))",
					   row, "it does not match its checksum");
}

/* Reads from `from` on, until the end or a page that cannot be read; where it came to. */
static int read_on(struct sw_offline *offline, uint64_t from, bool *ret_end)
{
	sqlite3_stmt *rows = NULL;
	int rc = sqlite3_prepare_v2(offline->journal.db, "SELECT seq, at, kind, sum, body FROM records WHERE seq >= ?1 ORDER BY seq", -1,
				    &rows, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_bind_int64(rows, 1, (int64_t)from);
	int r = 0;
	while (rc == SQLITE_OK && r == 0 && offline->rc == SQLITE_OK) {
		int step = sqlite3_step(rows);
		*ret_end = step == SQLITE_DONE;
		if (step != SQLITE_ROW)
			break;
		take_record(offline, rows);
		if (offline->report->records % LOOK_EACH == 0 && !sw_offline_goes_on(offline, offline->report->last))
			r = SW_ESTOPPED;
	}
	sqlite3_finalize(rows);
	return r;
}

/* All of them: behind a page that cannot be read, number by number until one can be. */
static int read_records(struct sw_offline *offline, struct sw_err *err)
{
	struct sw_journal_report *report = offline->report;
	bool end = false;
	int64_t most = sw_offline_ask(offline->journal.db, "SELECT max(seq) FROM records", -1);
	offline->highest = most > 0 ? (uint64_t)most : 0;
	if (offline->found == SW_MARK_FOUND && offline->journal.mark.seq > offline->highest)
		offline->highest = offline->journal.mark.seq;
	uint64_t from = 1;
	for (unsigned blind = 0; !end && blind < BLIND_MAX && offline->rc == SQLITE_OK; blind++) {
		uint64_t last = report->last;
		if (read_on(offline, from, &end) < 0)
			return sw_offline_stopped(err);
		blind = report->last > last ? 0 : blind;
		from = (report->last >= from ? report->last : from) + 1;
		if (from > offline->highest)
			break;
	}
	if (!end && report->damage[0] == '\0')
		snprintf(report->damage, sizeof report->damage, "some of its pages cannot be read");
	return 0;
}

/* ---- snapshots */

static bool is_whole(sqlite3 *db, int64_t id, int64_t size)
{
	sqlite3_stmt *parts = NULL;
	int64_t part = 0, done = 0;
	bool good = sqlite3_prepare_v2(db, "SELECT part, sum, body FROM snapshot_parts WHERE snapshot = ?1 ORDER BY part", -1, &parts,
				       NULL) == SQLITE_OK &&
		    sqlite3_bind_int64(parts, 1, id) == SQLITE_OK;
	int rc = SQLITE_DONE;
	while (good && (rc = sqlite3_step(parts)) == SQLITE_ROW) {
		const void *body = sqlite3_column_blob(parts, 2);
		size_t count = (size_t)sqlite3_column_bytes(parts, 2);
		uint64_t hash = sw_hash_bytes(sw_hash_u64(SW_HASH_START, (uint64_t)part), body, count);
		good = sqlite3_column_int64(parts, 0) == part && (int64_t)hash == sqlite3_column_int64(parts, 1);
		done += (int64_t)count;
		part++;
	}
	sqlite3_finalize(parts);
	return good && rc == SQLITE_DONE && done == size;
}

static int put_snapshot(struct sw_offline *offline, sqlite3_stmt *row)
{
	char select[160];
	snprintf(select, sizeof select, "SELECT snapshot, part, sum, body FROM snapshot_parts WHERE snapshot = %lld",
		 (long long)sqlite3_column_int64(row, 0));
	int rc = sw_offline_put_row(offline->into, "INSERT INTO snapshots (id, seq, size, written_at) VALUES (?1, ?2, ?3, ?4)", row, NULL);
	sqlite3_stmt *parts = NULL;
	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(offline->journal.db, select, -1, &parts, NULL);
	while (rc == SQLITE_OK && sqlite3_step(parts) == SQLITE_ROW)
		rc = sw_offline_put_row(offline->into, "INSERT INTO snapshot_parts (snapshot, part, sum, body) VALUES (?1, ?2, ?3, ?4)",
					parts, NULL);
	sqlite3_finalize(parts);
	return rc;
}

static void read_snapshots(struct sw_offline *offline)
{
	struct sw_journal_report *report = offline->report;
	sqlite3_stmt *rows = NULL;
	if (sqlite3_prepare_v2(offline->journal.db, "SELECT id, seq, size, written_at FROM snapshots ORDER BY id DESC LIMIT 2", -1, &rows,
			       NULL) != SQLITE_OK)
		report->snapshots_bad++;
	while (rows != NULL && offline->rc == SQLITE_OK && sqlite3_step(rows) == SQLITE_ROW) {
		int64_t seq = sqlite3_column_int64(rows, 1), size = sqlite3_column_int64(rows, 2);
		if (seq < 1 || size < 0 || !is_whole(offline->journal.db, sqlite3_column_int64(rows, 0), size)) {
			report->snapshots_bad++;
			continue;
		}
		report->snapshots++;
		report->snapshot = (uint64_t)seq > report->snapshot ? (uint64_t)seq : report->snapshot;
		if (offline->into != NULL)
			offline->rc = put_snapshot(offline, rows);
	}
	sqlite3_finalize(rows);
}

/* ---- the past, and texts that records name */

/* As many rows as can be read, from both ends: what is damaged lies between. A
 * file of before has none. */
static void copy_rows(struct sw_offline *offline, const char *select, const char *insert)
{
	static const char *const ways[] = {"", " DESC"};
	for (int w = 0; w < 2 && offline->rc == SQLITE_OK; w++) {
		char text[240];
		sqlite3_stmt *rows = NULL;
		int rc = SQLITE_DONE;
		snprintf(text, sizeof text, "%s%s", select, ways[w]);
		if (sqlite3_prepare_v2(offline->journal.db, text, -1, &rows, NULL) == SQLITE_OK)
			while (offline->rc == SQLITE_OK && (rc = sqlite3_step(rows)) == SQLITE_ROW)
				offline->rc = sw_offline_put_row(offline->into, insert, rows, NULL);
		sqlite3_finalize(rows);
		if (rc == SQLITE_DONE)
			return;
	}
}

static void copy_past(struct sw_offline *offline)
{
	if (offline->into == NULL)
		return;
	copy_rows(offline,
		  "SELECT job, uid, epoch, state, submitted_at, ended_at, sum, name, node, t0, t1, t2, t3, t4 FROM past ORDER BY job",
		  "INSERT OR IGNORE INTO past (job, uid, epoch, state, submitted_at, ended_at, sum, name, node, t0, t1, t2, t3, t4)"
		  " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)");
	copy_rows(offline, "SELECT id, digest, sum, body FROM blobs ORDER BY id",
		  "INSERT OR IGNORE INTO blobs (id, digest, sum, body) VALUES (?1, ?2, ?3, ?4)");
	if (offline->rc == SQLITE_OK)
		offline->rc =
			sqlite3_exec(offline->into, "INSERT OR REPLACE INTO past_counts SELECT state, count(*) FROM past GROUP BY state",
				     NULL, NULL, NULL);
}

/* ---- the whole */

static void judge_mark(struct sw_offline *offline)
{
	struct sw_journal_report *report = offline->report;
	const struct sw_mark *mark = &offline->journal.mark;
	sqlite3 *db = offline->journal.db;
	uint64_t id = (uint64_t)sw_offline_ask(db, "SELECT value FROM meta WHERE name = 'id'", 0);
	bool unmarked = id == 0 || sw_offline_ask(db, "SELECT value FROM meta WHERE name = 'unmarked'", 0) != 0;
	if (offline->found == SW_MARK_FOUND && mark->id == id && mark->seq > report->last)
		report->lost = mark->seq - report->last;
	else if (offline->found == SW_MARK_FOUND && mark->id != id && mark->seq > 0)
		snprintf(report->mark, sizeof report->mark, "it is of another journal, with %" PRIu64 " records", mark->seq);
	else if (offline->found != SW_MARK_FOUND && !unmarked)
		snprintf(report->mark, sizeof report->mark, "it is %s: whether records are missing cannot be told",
			 offline->found == SW_MARK_MISSING ? "missing" : "damaged");
}

int sw_offline_examine(struct sw_offline *offline, struct sw_err *err)
{
	struct sw_journal_report *report = offline->report;
	sqlite3 *db = offline->journal.db;
	sqlite3_stmt *check = NULL;
	if (sqlite3_prepare_v2(db, "PRAGMA quick_check(1)", -1, &check, NULL) != SQLITE_OK || sqlite3_step(check) != SQLITE_ROW ||
	    strcmp((const char *)sqlite3_column_text(check, 0), "ok") != 0)
		snprintf(report->damage, sizeof report->damage, "some of its pages are damaged");
	sqlite3_finalize(check);
	read_snapshots(offline);
	int r = read_records(offline, err);
	if (r < 0)
		return r;
	copy_past(offline);
	report->aside = (uint64_t)sw_offline_ask(db, "SELECT count(*) FROM aside", 0);
	int64_t last_aside = sw_offline_ask(db, "SELECT max(seq) FROM aside", 0);
	uint64_t end = report->snapshot > (uint64_t)last_aside ? report->snapshot : (uint64_t)last_aside;
	/* Between the snapshot and the first record, and at the end. */
	if (report->snapshot > 0 && report->first > report->snapshot + 1)
		miss(offline, report->snapshot + 1, report->first - 1);
	if (end > report->last) {
		if (report->last > report->snapshot)
			miss(offline, report->last + 1, end);
		report->last = end;
	}
	judge_mark(offline);
	/* Without a snapshot everything from record 1 on is needed. */
	report->usable = report->snapshot > 0 || report->first <= 1 || report->last == 0;
	report->sound = report->bad_count == 0 && report->lost == 0 && report->snapshots_bad == 0 && report->damage[0] == '\0' &&
			report->mark[0] == '\0';
	return 0;
}

void sw_offline_begin(struct sw_offline *offline, const struct sw_journal_care *care, struct sw_journal_report *report)
{
	*report = (struct sw_journal_report){0};
	*offline = (struct sw_offline){.report = report, .care = care, .journal = {.lock_fd = -1, .mark = {.fd = -1}}};
}

int sw_journal_check(const char *path, const struct sw_journal_care *care, struct sw_journal_report *ret_report, struct sw_err *err)
{
	struct sw_offline offline;
	sw_offline_begin(&offline, care, ret_report);
	int r = access(path, F_OK) == 0 ? sw_offline_take(path, &offline, err)
					: sw_err_set(err, SW_ENOTFOUND, "there is no journal '%s'", path);
	r = r < 0 ? r : sw_offline_look_into(&offline, err);
	r = r < 0 ? r : sw_offline_examine(&offline, err);
	sw_offline_leave(&offline);
	return r;
}
