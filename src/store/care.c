/* Checking, repairing, copying and putting back a journal. The invariants are in care.h. */
#include "store/care.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"
#include "store/internal.h"
#include "store/lock.h"

#define LOOK_EACH 1024u	    /* records between two words about how far it is */
#define BLIND_MAX 10000000u /* records in a row that cannot be read, before it is taken for the end */
/* Numbers after a loss go on at the next multiple of this above the mark: it may be behind after a
 * power cut. */
#define ROUND UINT64_C(1000)
#define COPY_PAGES 1024

/* A journal that is looked at and not changed. */
struct patient {
	struct sw_journal journal; /* path, lock, db, mark; nothing is prepared */
	enum sw_mark_found found;
	struct sw_journal_report *report;
	const struct sw_journal_care *care;
	sqlite3 *into; /* the new file of a repair; NULL: it is only checked */
	uint64_t expected, highest;
	int rc; /* of writing to it */
};

static int fail_errno(const char *fact, const char *path, struct sw_err *err)
{
	int error = errno;
	sw_err_set(err, SW_EIO, "%s '%.200s'", fact, path);
	sw_err_detail(err, "%s", strerror(error));
	return SW_EIO;
}

static int exec(sqlite3 *db, const char *text)
{
	return sqlite3_exec(db, text, NULL, NULL, NULL);
}

static int64_t ask(sqlite3 *db, const char *text, int64_t otherwise)
{
	sqlite3_stmt *query = NULL;
	int64_t answer = otherwise;
	if (sqlite3_prepare_v2(db, text, -1, &query, NULL) == SQLITE_OK && sqlite3_step(query) == SQLITE_ROW &&
	    sqlite3_column_type(query, 0) == SQLITE_INTEGER)
		answer = sqlite3_column_int64(query, 0);
	sqlite3_finalize(query);
	return answer;
}

static bool goes_on(const struct patient *patient, uint64_t done)
{
	const struct sw_journal_care *care = patient->care;
	return care == NULL || care->progress == NULL || care->progress(care->user, done, patient->highest);
}

static int stopped(struct sw_err *err)
{
	return sw_err_set(err, SW_ESTOPPED, "stopped; nothing has changed");
}

/* ---- opening without changing */

static uint64_t size_of(const char *path)
{
	struct stat info;
	return stat(path, &info) == 0 ? (uint64_t)info.st_size : 0;
}

static void leave(struct patient *patient)
{
	sqlite3_close_v2(patient->journal.db);
	if (patient->journal.lock_fd >= 0)
		close(patient->journal.lock_fd);
	free(patient->journal.path);
}

static int take(const char *path, struct patient *patient, struct sw_err *err)
{
	struct sw_journal *journal = &patient->journal;
	journal->lock_fd = journal->mark.fd = -1;
	if (asprintf(&journal->path, "%s%s", path[0] == '/' ? "" : "./", path) < 0) {
		journal->path = NULL;
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	}
	SW_CLEANUP(sw_freep) char *lock = sw_journal_beside(journal, ".lock"), *mark = sw_journal_beside(journal, ".mark");
	if (lock == NULL || mark == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	struct sw_err words = {0};
	int r = sw_lock_take(lock, &journal->lock_fd, &words);
	if (r < 0) {
		sw_err_set(err, r, "the journal '%s' is in use", journal->path);
		sw_err_detail(err, "%s", words.detail);
		sw_err_hint(err,
			    "Stop the controller first. A running one is copied with 'sharewell journal backup'; the copy can be checked.");
		return r;
	}
	r = sw_journal_finish_swap(journal, err);
	patient->found = sw_mark_read(mark, &journal->mark);
	return r;
}

/* Opens the file as it is. */
static int look_into(struct patient *patient, struct sw_err *err)
{
	struct sw_journal *journal = &patient->journal;
	SW_CLEANUP(sw_freep) char *log = sw_journal_beside(journal, "-wal");
	if (log == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	if (access(journal->path, F_OK) != 0) {
		sw_err_set(err, SW_ENOTFOUND, "there is no journal '%s'", journal->path);
		if (patient->found == SW_MARK_FOUND)
			sw_err_detail(err, "its mark says that it had %" PRIu64 " records", journal->mark.seq);
		return SW_ENOTFOUND;
	}
	patient->report->bytes = size_of(journal->path) + size_of(log);
	int rc = sqlite3_open_v2(journal->path, &journal->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL);
	if (rc == SQLITE_OK)
		sqlite3_db_config(journal->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	if (rc == SQLITE_OK)
		rc = exec(journal->db, "PRAGMA locking_mode=EXCLUSIVE; PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON;"
				       "PRAGMA query_only=ON; PRAGMA wal_autocheckpoint=0;");
	if (rc != SQLITE_OK)
		return sw_journal_fail(journal, rc, err, "cannot read the journal '%s'", journal->path);
	int64_t format = ask(journal->db, "SELECT value FROM meta WHERE name = 'format'", 0);
	if (ask(journal->db, "PRAGMA application_id", 0) == SW_JOURNAL_APPLICATION && format >= 1 && format <= SW_JOURNAL_FORMAT)
		return 0;
	sw_err_set(err, SW_EINPUT, "'%s' cannot be read as a journal", journal->path);
	sw_err_detail(err, format > SW_JOURNAL_FORMAT ? "a newer version wrote it"
						      : "it is another file, it is empty, or its first pages are damaged");
	sw_err_hint(err, "Keep it, and put a backup in its place: 'sharewell journal restore'.");
	return SW_EINPUT;
}

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

/* One row with the same columns as `row`, into the new file. */
static int put_row(sqlite3 *into, const char *insert, sqlite3_stmt *row, const char *last)
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
static void miss(struct patient *patient, uint64_t from, uint64_t to)
{
	char text[200];
	for (uint64_t seq = from; seq <= to && patient->rc == SQLITE_OK; seq++) {
		snprintf(text, sizeof text, "SELECT count(*) FROM aside WHERE seq = %" PRIu64, seq);
		if (ask(patient->journal.db, text, 0) > 0)
			continue;
		note_bad(patient->report, seq, "it could not be read");
		snprintf(text, sizeof text,
			 "INSERT OR IGNORE INTO aside VALUES (%" PRIu64
			 ", 0, 0, NULL, 'it could not be read', CAST(strftime('%%s', 'now') AS INTEGER))",
			 seq);
		if (patient->into != NULL)
			patient->rc = exec(patient->into, text);
	}
}

static void take_record(struct patient *patient, sqlite3_stmt *row)
{
	uint64_t seq = (uint64_t)sqlite3_column_int64(row, 0);
	int64_t at_ns = sqlite3_column_int64(row, 1), kind = sqlite3_column_int64(row, 2);
	const void *bytes = sqlite3_column_blob(row, 4);
	size_t size = (size_t)sqlite3_column_bytes(row, 4);
	struct sw_journal_report *report = patient->report;
	if (patient->expected > 0 && seq > patient->expected)
		miss(patient, patient->expected, seq - 1);
	if (report->first == 0)
		report->first = seq;
	report->last = seq;
	patient->expected = seq + 1;
	bool good = kind >= 0 && kind <= UINT32_MAX && checksum(seq, at_ns, (uint32_t)kind, bytes, size) == sqlite3_column_int64(row, 3);
	if (good)
		report->records++;
	else
		note_bad(report, seq, "it does not match its checksum");
	if (patient->into == NULL || patient->rc != SQLITE_OK)
		return;
	if (good)
		patient->rc =
			put_row(patient->into, "INSERT INTO records (seq, at, kind, sum, body) VALUES (?1, ?2, ?3, ?4, ?5)", row, NULL);
	else
		patient->rc = put_row(patient->into,
				      "INSERT OR REPLACE INTO aside (seq, at, kind, body, reason, set_at) VALUES (?1, ?2, ?3, ?5, ?6,"
				      " CAST(strftime('%s', 'now') AS INTEGER))",
				      row, "it does not match its checksum");
}

/* Reads from `from` on, until the end or a page that cannot be read; where it came to. */
static int read_on(struct patient *patient, uint64_t from, bool *ret_end)
{
	sqlite3_stmt *rows = NULL;
	int rc = sqlite3_prepare_v2(patient->journal.db, "SELECT seq, at, kind, sum, body FROM records WHERE seq >= ?1 ORDER BY seq", -1,
				    &rows, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_bind_int64(rows, 1, (int64_t)from);
	int r = 0;
	while (rc == SQLITE_OK && r == 0 && patient->rc == SQLITE_OK) {
		int step = sqlite3_step(rows);
		*ret_end = step == SQLITE_DONE;
		if (step != SQLITE_ROW)
			break;
		take_record(patient, rows);
		if (patient->report->records % LOOK_EACH == 0 && !goes_on(patient, patient->report->last))
			r = SW_ESTOPPED;
	}
	sqlite3_finalize(rows);
	return r;
}

/* All of them: behind a page that cannot be read, number by number until one can be. */
static int read_records(struct patient *patient, struct sw_err *err)
{
	struct sw_journal_report *report = patient->report;
	bool end = false;
	int64_t most = ask(patient->journal.db, "SELECT max(seq) FROM records", -1);
	patient->highest = most > 0 ? (uint64_t)most : 0;
	if (patient->found == SW_MARK_FOUND && patient->journal.mark.seq > patient->highest)
		patient->highest = patient->journal.mark.seq;
	uint64_t from = 1;
	for (unsigned blind = 0; !end && blind < BLIND_MAX && patient->rc == SQLITE_OK; blind++) {
		uint64_t last = report->last;
		if (read_on(patient, from, &end) < 0)
			return stopped(err);
		blind = report->last > last ? 0 : blind;
		from = (report->last >= from ? report->last : from) + 1;
		if (from > patient->highest)
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

static int put_snapshot(struct patient *patient, sqlite3_stmt *row)
{
	char select[160];
	snprintf(select, sizeof select, "SELECT snapshot, part, sum, body FROM snapshot_parts WHERE snapshot = %lld",
		 (long long)sqlite3_column_int64(row, 0));
	int rc = put_row(patient->into, "INSERT INTO snapshots (id, seq, size, written_at) VALUES (?1, ?2, ?3, ?4)", row, NULL);
	sqlite3_stmt *parts = NULL;
	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(patient->journal.db, select, -1, &parts, NULL);
	while (rc == SQLITE_OK && sqlite3_step(parts) == SQLITE_ROW)
		rc = put_row(patient->into, "INSERT INTO snapshot_parts (snapshot, part, sum, body) VALUES (?1, ?2, ?3, ?4)", parts, NULL);
	sqlite3_finalize(parts);
	return rc;
}

static void read_snapshots(struct patient *patient)
{
	struct sw_journal_report *report = patient->report;
	sqlite3_stmt *rows = NULL;
	if (sqlite3_prepare_v2(patient->journal.db, "SELECT id, seq, size, written_at FROM snapshots ORDER BY id DESC LIMIT 2", -1, &rows,
			       NULL) != SQLITE_OK)
		report->snapshots_bad++;
	while (rows != NULL && patient->rc == SQLITE_OK && sqlite3_step(rows) == SQLITE_ROW) {
		int64_t seq = sqlite3_column_int64(rows, 1), size = sqlite3_column_int64(rows, 2);
		if (seq < 1 || size < 0 || !is_whole(patient->journal.db, sqlite3_column_int64(rows, 0), size)) {
			report->snapshots_bad++;
			continue;
		}
		report->snapshots++;
		report->snapshot = (uint64_t)seq > report->snapshot ? (uint64_t)seq : report->snapshot;
		if (patient->into != NULL)
			patient->rc = put_snapshot(patient, rows);
	}
	sqlite3_finalize(rows);
}

/* ---- the past, and texts that records name */

/* As many rows as can be read, from both ends: what is damaged lies between. A
 * file of before has none. */
static void copy_rows(struct patient *patient, const char *select, const char *insert)
{
	static const char *const ways[] = {"", " DESC"};
	for (int w = 0; w < 2 && patient->rc == SQLITE_OK; w++) {
		char text[240];
		sqlite3_stmt *rows = NULL;
		int rc = SQLITE_DONE;
		snprintf(text, sizeof text, "%s%s", select, ways[w]);
		if (sqlite3_prepare_v2(patient->journal.db, text, -1, &rows, NULL) == SQLITE_OK)
			while (patient->rc == SQLITE_OK && (rc = sqlite3_step(rows)) == SQLITE_ROW)
				patient->rc = put_row(patient->into, insert, rows, NULL);
		sqlite3_finalize(rows);
		if (rc == SQLITE_DONE)
			return;
	}
}

static void copy_past(struct patient *patient)
{
	if (patient->into == NULL)
		return;
	copy_rows(patient,
		  "SELECT job, uid, epoch, state, submitted_at, ended_at, sum, name, node, t0, t1, t2, t3, t4 FROM past ORDER BY job",
		  "INSERT OR IGNORE INTO past (job, uid, epoch, state, submitted_at, ended_at, sum, name, node, t0, t1, t2, t3, t4)"
		  " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)");
	copy_rows(patient, "SELECT id, digest, sum, body FROM blobs ORDER BY id",
		  "INSERT OR IGNORE INTO blobs (id, digest, sum, body) VALUES (?1, ?2, ?3, ?4)");
	if (patient->rc == SQLITE_OK)
		patient->rc =
			sqlite3_exec(patient->into, "INSERT OR REPLACE INTO past_counts SELECT state, count(*) FROM past GROUP BY state",
				     NULL, NULL, NULL);
}

/* ---- the whole */

static void judge_mark(struct patient *patient)
{
	struct sw_journal_report *report = patient->report;
	const struct sw_mark *mark = &patient->journal.mark;
	sqlite3 *db = patient->journal.db;
	uint64_t id = (uint64_t)ask(db, "SELECT value FROM meta WHERE name = 'id'", 0);
	bool unmarked = id == 0 || ask(db, "SELECT value FROM meta WHERE name = 'unmarked'", 0) != 0;
	if (patient->found == SW_MARK_FOUND && mark->id == id && mark->seq > report->last)
		report->lost = mark->seq - report->last;
	else if (patient->found == SW_MARK_FOUND && mark->id != id && mark->seq > 0)
		snprintf(report->mark, sizeof report->mark, "it is of another journal, with %" PRIu64 " records", mark->seq);
	else if (patient->found != SW_MARK_FOUND && !unmarked)
		snprintf(report->mark, sizeof report->mark, "it is %s: whether records are missing cannot be told",
			 patient->found == SW_MARK_MISSING ? "missing" : "damaged");
}

/* Reads all there is, and writes it into the new file where there is one. */
static int examine(struct patient *patient, struct sw_err *err)
{
	struct sw_journal_report *report = patient->report;
	sqlite3 *db = patient->journal.db;
	sqlite3_stmt *check = NULL;
	if (sqlite3_prepare_v2(db, "PRAGMA quick_check(1)", -1, &check, NULL) != SQLITE_OK || sqlite3_step(check) != SQLITE_ROW ||
	    strcmp((const char *)sqlite3_column_text(check, 0), "ok") != 0)
		snprintf(report->damage, sizeof report->damage, "some of its pages are damaged");
	sqlite3_finalize(check);
	read_snapshots(patient);
	int r = read_records(patient, err);
	if (r < 0)
		return r;
	copy_past(patient);
	report->aside = (uint64_t)ask(db, "SELECT count(*) FROM aside", 0);
	int64_t last_aside = ask(db, "SELECT max(seq) FROM aside", 0);
	uint64_t end = report->snapshot > (uint64_t)last_aside ? report->snapshot : (uint64_t)last_aside;
	/* Between the snapshot and the first record, and at the end. */
	if (report->snapshot > 0 && report->first > report->snapshot + 1)
		miss(patient, report->snapshot + 1, report->first - 1);
	if (end > report->last) {
		if (report->last > report->snapshot)
			miss(patient, report->last + 1, end);
		report->last = end;
	}
	judge_mark(patient);
	/* Without a snapshot everything from record 1 on is needed. */
	report->usable = report->snapshot > 0 || report->first <= 1 || report->last == 0;
	report->sound = report->bad_count == 0 && report->lost == 0 && report->snapshots_bad == 0 && report->damage[0] == '\0' &&
			report->mark[0] == '\0';
	return 0;
}

static void begin(struct patient *patient, const struct sw_journal_care *care, struct sw_journal_report *report)
{
	*report = (struct sw_journal_report){0};
	*patient = (struct patient){.report = report, .care = care, .journal = {.lock_fd = -1, .mark = {.fd = -1}}};
}

int sw_journal_check(const char *path, const struct sw_journal_care *care, struct sw_journal_report *ret_report, struct sw_err *err)
{
	struct patient patient;
	begin(&patient, care, ret_report);
	int r = access(path, F_OK) == 0 ? take(path, &patient, err) : sw_err_set(err, SW_ENOTFOUND, "there is no journal '%s'", path);
	r = r < 0 ? r : look_into(&patient, err);
	r = r < 0 ? r : examine(&patient, err);
	leave(&patient);
	return r;
}

/* ---- the new file */

static uint64_t above(uint64_t number)
{
	return (number / ROUND + 1) * ROUND;
}

/* What the new file must know of numbers, by what is known of the old one. */
static void set_numbers(const struct patient *patient, uint64_t floor)
{
	struct sw_journal_report *report = patient->report;
	const struct sw_mark *mark = &patient->journal.mark;
	report->floor = floor;
	if (patient->found != SW_MARK_FOUND)
		report->unsure = true;
	else if (mark->high > 0 && above(mark->high) > report->floor)
		report->floor = above(mark->high);
}

static int write_numbers(sqlite3 *into, const struct sw_journal_report *report)
{
	char text[400];
	snprintf(text, sizeof text,
		 "INSERT OR REPLACE INTO meta VALUES ('floor', %" PRIu64 "); INSERT OR REPLACE INTO meta VALUES ('unsure', %d);"
		 "INSERT OR REPLACE INTO meta VALUES ('unmarked', 1);",
		 report->floor, report->unsure);
	return exec(into, text);
}

/* Tables of others than these files, row by row while they can be read. */
static int copy_other_tables(struct patient *patient)
{
	sqlite3_stmt *tables = NULL;
	int rc = sqlite3_prepare_v2(patient->journal.db,
				    "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name NOT IN "
				    "('meta', 'records', 'snapshots', 'snapshot_parts')",
				    -1, &tables, NULL);
	while (rc == SQLITE_OK && sqlite3_step(tables) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(tables, 0), *make = (const char *)sqlite3_column_text(tables, 1);
		char select[200], insert[600], marks[400] = "";
		exec(patient->into, make); /* it may be there */
		snprintf(select, sizeof select, "SELECT * FROM \"%.100s\"", name);
		sqlite3_stmt *rows = NULL;
		if (sqlite3_prepare_v2(patient->journal.db, select, -1, &rows, NULL) != SQLITE_OK)
			continue;
		for (int c = 0; c < sqlite3_column_count(rows) && c < 60; c++)
			snprintf(marks + strlen(marks), sizeof marks - strlen(marks), "%s?%d", c > 0 ? ", " : "", c + 1);
		snprintf(insert, sizeof insert, "INSERT OR IGNORE INTO \"%.100s\" VALUES (%s)", name, marks);
		while (rc == SQLITE_OK && sqlite3_step(rows) == SQLITE_ROW)
			rc = put_row(patient->into, insert, rows, NULL);
		sqlite3_finalize(rows);
	}
	sqlite3_finalize(tables);
	return rc;
}

static int sync_file(const char *path, struct sw_err *err)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0 || fsync(fd) != 0) {
		int r = fail_errno("cannot write", path, err);
		if (fd >= 0)
			close(fd);
		return r;
	}
	close(fd);
	return 0;
}

/* The old files stay under another name: as links, so that it costs no space and
 * cannot fail half of the way. */
static int keep_old(struct patient *patient, const char *word, struct sw_err *err)
{
	static const char *const suffixes[] = {"", "-wal", ".mark"};
	struct sw_journal *journal = &patient->journal;
	char when[32] = "";
	time_t now = time(NULL);
	struct tm broken;
	if (access(journal->path, F_OK) != 0)
		return 0;
	strftime(when, sizeof when, "%Y%m%d-%H%M%S", gmtime_r(&now, &broken));
	char *kept = patient->report->kept;
	for (int n = 0; n < 100; n++) {
		int size =
			snprintf(kept, sizeof patient->report->kept, "%.400s.%s-%s%s%.0d", journal->path, word, when, n > 0 ? "-" : "", n);
		if (size > 0 && access(kept, F_OK) != 0)
			break;
	}
	for (size_t i = 0; i < 3; i++) {
		SW_CLEANUP(sw_freep) char *from = sw_journal_beside(journal, suffixes[i]), *to = NULL;
		if (from == NULL || asprintf(&to, "%s%s", kept, suffixes[i]) < 0)
			return sw_err_set(err, SW_ENOMEM, "out of memory");
		if (link(from, to) != 0 && !(errno == ENOENT && i > 0))
			return fail_errno("cannot keep the old file as", to, err);
	}
	return 0;
}

/* The new file is whole: it takes the place of the old one. */
static int put_in_place(struct patient *patient, const char *made, const char *word, struct sw_err *err)
{
	struct sw_journal *journal = &patient->journal;
	SW_CLEANUP(sw_freep) char *next = sw_journal_beside(journal, ".next");
	if (next == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	int r = sync_file(made, err);
	r = r < 0 ? r : keep_old(patient, word, err);
	if (r < 0)
		return r;
	sqlite3_close_v2(journal->db);
	journal->db = NULL;
	if (rename(made, next) != 0)
		return fail_errno("cannot make", next, err);
	return sw_journal_finish_swap(journal, err);
}

static int open_new(const char *path, sqlite3 **ret_db, struct sw_err *err)
{
	unlink(path);
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return fail_errno("cannot make", path, err);
	close(fd);
	int rc = sqlite3_open_v2(path, ret_db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL);
	if (rc == SQLITE_OK)
		rc = exec(*ret_db, "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;");
	return rc == SQLITE_OK ? 0 : sw_err_set(err, SW_EIO, "cannot make '%.200s'", path);
}

static int fail_new(const struct patient *patient, int rc, struct sw_err *err)
{
	return sw_journal_fail(&patient->journal, rc, err, "cannot write a new file beside the journal '%s'; it is as it was",
			       patient->journal.path);
}

/* Fills the new file with all that can be read. */
static int fill(struct patient *patient, struct sw_err *err)
{
	sqlite3 *db = patient->journal.db;
	int64_t id = ask(db, "SELECT value FROM meta WHERE name = 'id'", 0);
	int64_t created = ask(db, "SELECT value FROM meta WHERE name = 'created'", 0),
		floor = ask(db, "SELECT value FROM meta WHERE name = 'floor'", 0);
	int rc = exec(patient->into, "BEGIN");
	rc = rc == SQLITE_OK ? sw_journal_upgrade(patient->into, 0) : rc;
	rc = rc == SQLITE_OK ? copy_other_tables(patient) : rc;
	if (rc != SQLITE_OK)
		return fail_new(patient, rc, err);
	struct sw_journal_report *report = patient->report;
	*report = (struct sw_journal_report){.bytes = report->bytes};
	patient->expected = 0;
	int r = examine(patient, err);
	if (r < 0)
		return r;
	set_numbers(patient, floor > 0 ? (uint64_t)floor : 0);
	char text[200];
	snprintf(text, sizeof text, "INSERT OR REPLACE INTO meta VALUES ('created', %lld);", (long long)created);
	rc = patient->rc;
	if (rc == SQLITE_OK && id > 0) {
		rc = exec(patient->into, text);
		snprintf(text, sizeof text, "INSERT OR REPLACE INTO meta VALUES ('id', %lld);", (long long)id);
		rc = rc == SQLITE_OK ? exec(patient->into, text) : rc;
	}
	rc = rc == SQLITE_OK ? write_numbers(patient->into, report) : rc;
	rc = rc == SQLITE_OK ? exec(patient->into, "COMMIT") : rc;
	return rc == SQLITE_OK ? 0 : fail_new(patient, rc, err);
}

static int repair(struct patient *patient, struct sw_err *err)
{
	SW_CLEANUP(sw_freep) char *made = sw_journal_beside(&patient->journal, ".repair");
	if (made == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	int r = open_new(made, &patient->into, err);
	r = r < 0 ? r : fill(patient, err);
	int rc = sqlite3_close_v2(patient->into);
	if (r == 0 && rc != SQLITE_OK)
		r = fail_new(patient, rc, err);
	if (r == 0 && !patient->report->usable) {
		sw_err_set(err, SW_EINPUT, "the journal '%s' cannot be repaired", patient->journal.path);
		sw_err_detail(err, "no snapshot can be read, and the records before %" PRIu64 " are gone", patient->report->first);
		sw_err_hint(err, "It is as it was. Put a backup in its place: 'sharewell journal restore'.");
		r = SW_EINPUT;
	}
	r = r < 0 ? r : put_in_place(patient, made, "damaged", err);
	if (r < 0)
		unlink(made);
	return r;
}

int sw_journal_repair(const char *path, const struct sw_journal_care *care, struct sw_journal_report *ret_report, struct sw_err *err)
{
	struct patient patient;
	begin(&patient, care, ret_report);
	int r = access(path, F_OK) == 0 ? take(path, &patient, err) : sw_err_set(err, SW_ENOTFOUND, "there is no journal '%s'", path);
	r = r < 0 ? r : look_into(&patient, err);
	r = r < 0 ? r : examine(&patient, err);
	if (r == 0 && !ret_report->sound)
		r = repair(&patient, err);
	leave(&patient);
	return r;
}

/* ---- copies */

/* Page by page, with the log taken in. */
static int copy_pages(struct patient *patient, sqlite3 *into, struct sw_err *err)
{
	sqlite3_backup *backup = sqlite3_backup_init(into, "main", patient->journal.db, "main");
	int rc = backup != NULL ? SQLITE_OK : sqlite3_errcode(into);
	while (rc == SQLITE_OK) {
		rc = sqlite3_backup_step(backup, COPY_PAGES);
		patient->highest = (uint64_t)sqlite3_backup_pagecount(backup);
		if (!goes_on(patient, patient->highest - (uint64_t)sqlite3_backup_remaining(backup))) {
			sqlite3_backup_finish(backup);
			return stopped(err);
		}
	}
	int end = backup != NULL ? sqlite3_backup_finish(backup) : rc;
	rc = rc == SQLITE_DONE ? end : rc;
	return rc == SQLITE_OK ? 0 : sw_journal_fail(&patient->journal, rc, err, "cannot copy the journal '%s'", patient->journal.path);
}

/* A copy under the name `made`, durable. */
static int copy_to(struct patient *patient, const char *made, bool restores, struct sw_err *err)
{
	sqlite3 *into = NULL;
	int r = open_new(made, &into, err);
	r = r < 0 ? r : copy_pages(patient, into, err);
	int rc = r == 0 && restores ? write_numbers(into, patient->report) : SQLITE_OK;
	int end = sqlite3_close_v2(into);
	rc = rc == SQLITE_OK ? end : rc;
	if (r == 0 && rc != SQLITE_OK)
		r = fail_new(patient, rc, err);
	r = r < 0 ? r : sync_file(made, err);
	if (r < 0)
		unlink(made);
	return r;
}

static int refuse_damaged(const struct sw_journal_report *report, const char *path, struct sw_err *err)
{
	bool damaged = report->damage[0] != '\0' || report->bad_count > 0 || report->lost > 0 || !report->usable;
	if (!damaged)
		return 0;
	sw_err_set(err, SW_EINPUT, "'%.200s' is damaged", path);
	if (report->damage[0] != '\0')
		sw_err_detail(err, "%s", report->damage);
	else
		sw_err_detail(err, "%" PRIu64 " records cannot be read, %" PRIu64 " are missing", report->bad_count, report->lost);
	sw_err_hint(err, "'sharewell journal check' says more; 'sharewell journal repair' saves what can be read.");
	return SW_EINPUT;
}

int sw_journal_copy(const char *path, const char *to, const struct sw_journal_care *care, struct sw_err *err)
{
	struct sw_journal_report report;
	struct patient patient;
	SW_CLEANUP(sw_freep) char *made = NULL;
	begin(&patient, care, &report);
	if (access(to, F_OK) == 0) {
		sw_err_set(err, SW_EINPUT, "'%.200s' exists already", to);
		sw_err_hint(err, "Give the backup another name.");
		return SW_EINPUT;
	}
	if (asprintf(&made, "%s.partial", to) < 0) {
		made = NULL;
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	}
	int r = access(path, F_OK) == 0 ? take(path, &patient, err) : sw_err_set(err, SW_ENOTFOUND, "there is no journal '%s'", path);
	r = r < 0 ? r : look_into(&patient, err);
	r = r < 0 ? r : examine(&patient, err);
	r = r < 0 ? r : refuse_damaged(&report, path, err);
	r = r < 0 ? r : copy_to(&patient, made, false, err);
	if (r == 0 && rename(made, to) != 0)
		r = fail_errno("cannot make", to, err);
	leave(&patient);
	return r;
}

/* Copies from `from`, which was examined, to the place of `into`. */
static int restore(struct patient *from, struct patient *into, bool force, struct sw_err *err)
{
	SW_CLEANUP(sw_freep) char *made = sw_journal_beside(&into->journal, ".restore");
	if (made == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	if (size_of(into->journal.path) > 0 && !force) {
		sw_err_set(err, SW_EINPUT, "there is a journal '%s' already", into->journal.path);
		sw_err_hint(err, "With --force the backup takes its place, and it is kept under another name.");
		return SW_EINPUT;
	}
	int64_t floor = ask(from->journal.db, "SELECT value FROM meta WHERE name = 'floor'", 0);
	set_numbers(into, floor > 0 ? (uint64_t)floor : 0);
	from->report->floor = into->report->floor;
	from->report->unsure = into->report->unsure;
	int r = copy_to(from, made, true, err);
	r = r < 0 ? r : put_in_place(into, made, "replaced", err);
	if (r < 0)
		unlink(made);
	return r;
}

int sw_journal_restore(const char *copy, const char *path, bool force, const struct sw_journal_care *care,
		       struct sw_journal_report *ret_report, struct sw_err *err)
{
	struct sw_journal_report old;
	struct patient from, into;
	begin(&from, care, ret_report);
	begin(&into, NULL, &old);
	int r = access(copy, F_OK) == 0 ? take(copy, &from, err) : sw_err_set(err, SW_ENOTFOUND, "there is no backup '%s'", copy);
	r = r < 0 ? r : look_into(&from, err);
	r = r < 0 ? r : examine(&from, err);
	r = r < 0 ? r : refuse_damaged(ret_report, copy, err);
	r = r < 0 ? r : take(path, &into, err);
	r = r < 0 ? r : restore(&from, &into, force, err);
	if (r == 0)
		memcpy(ret_report->kept, old.kept, sizeof old.kept);
	leave(&from);
	leave(&into);
	return r;
}
