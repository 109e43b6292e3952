/* Opening a journal: folders, the lock, the file, its tables, the check after a shutdown that was
 * not orderly, and whether the mark agrees.
 *
 * SQLite removes its write-ahead log when the file is closed in order, so a log that is still there
 * tells that it was not. The mark (mark.h) tells it where the log itself is gone. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/internal.h"
#include "store/lock.h"

/* The log is copied into the file when it has this many pages of 4 KiB. More makes the
 * pauses rarer and longer. */
#define LOG_PAGES "1000"

/* Exclusive before the first access: then SQLite keeps the index of its log in plain memory
 * instead of a shared file. */
static const char settings[] = "PRAGMA locking_mode=EXCLUSIVE; PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON;";
static const char durability[] = "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=" LOG_PAGES ";";

static const char schema[] =
	"CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;"
	"CREATE TABLE records (seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, kind INTEGER NOT NULL, sum INTEGER NOT NULL,"
	" body BLOB NOT NULL);"
	"CREATE TABLE snapshots (id INTEGER PRIMARY KEY, seq INTEGER NOT NULL, size INTEGER NOT NULL,"
	" written_at INTEGER NOT NULL);"
	"CREATE TABLE snapshot_parts (snapshot INTEGER NOT NULL, part INTEGER NOT NULL, sum INTEGER NOT NULL,"
	" body BLOB NOT NULL, UNIQUE (snapshot, part));"
	"INSERT INTO meta VALUES ('created', CAST(strftime('%s', 'now') AS INTEGER));"
	"INSERT INTO meta VALUES ('format', 1);";
/* What format 2 has beside that. */
static const char schema_2[] =
	"CREATE TABLE aside (seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, kind INTEGER NOT NULL, body BLOB, reason TEXT NOT NULL,"
	" set_at INTEGER NOT NULL);";
/* Of format 2 too: files that were made between may be without. */
static const char schema_past[] =
	"CREATE TABLE IF NOT EXISTS past (job INTEGER PRIMARY KEY, uid INTEGER NOT NULL, epoch INTEGER NOT NULL, state INTEGER NOT NULL,"
	" submitted_at INTEGER NOT NULL, ended_at INTEGER NOT NULL, sum INTEGER NOT NULL, name TEXT NOT NULL, node TEXT NOT NULL,"
	" t0 TEXT NOT NULL, t1 TEXT NOT NULL, t2 TEXT NOT NULL, t3 TEXT NOT NULL, t4 TEXT NOT NULL);"
	"CREATE INDEX IF NOT EXISTS past_user ON past (uid, job);"
	"CREATE INDEX IF NOT EXISTS past_end ON past (ended_at, job);"
	"CREATE TABLE IF NOT EXISTS past_counts (state INTEGER PRIMARY KEY, count INTEGER NOT NULL);"
	"CREATE TABLE IF NOT EXISTS blobs (id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, sum INTEGER NOT NULL, body BLOB NOT NULL);";

static int fail_errno(const struct sw_journal *journal, int error, const char *what, struct sw_err *err)
{
	int code = error == ENOMEM ? SW_ENOMEM : SW_EIO;
	sw_err_set(err, code, "cannot open the journal '%s'", journal->path);
	sw_err_detail(err, "'%s': %s", what, strerror(error));
	return code;
}

static int fail_sql(const struct sw_journal *journal, int rc, struct sw_err *err)
{
	if ((rc & 0xff) == SQLITE_CORRUPT)
		return sw_journal_damaged(journal, err, "%s", sqlite3_errmsg(journal->db));
	return sw_journal_fail(journal, rc, err, "cannot open the journal '%s'", journal->path);
}

/* Makes the name of a folder durable; best effort, since some file systems do not
 * let folders be synced. */
static void sync_folder(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	fsync(fd);
	close(fd);
}

/* Makes the folders above the file that are missing. */
static int make_folders(const struct sw_journal *journal, struct sw_err *err)
{
	SW_CLEANUP(sw_freep) char *path = strdup(journal->path);
	if (path == NULL)
		return fail_errno(journal, ENOMEM, journal->path, err);
	for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(path, 0700) == 0) {
			char *above = strrchr(path, '/');
			if (above == NULL || above == path) {
				sync_folder(above == NULL ? "." : "/");
			} else {
				*above = '\0';
				sync_folder(path);
				*above = '/';
			}
		} else if (errno != EEXIST) {
			return fail_errno(journal, errno, path, err);
		}
		*slash = '/';
	}
	return 0;
}

static int take_lock(struct sw_journal *journal, struct sw_err *err)
{
	SW_CLEANUP(sw_freep) char *path = sw_journal_beside(journal, ".lock");
	if (path == NULL)
		return fail_errno(journal, ENOMEM, journal->path, err);
	struct sw_err words = {0};
	int r = sw_lock_take(path, &journal->lock_fd, &words);
	if (r < 0) {
		sw_err_set(err, r, "cannot open the journal '%s'", journal->path);
		sw_err_detail(err, "%s", words.detail);
		sw_err_hint(err, "%s", words.hint);
	}
	return r;
}

/* Makes the file with the mode that we want; SQLite gives its log the same. */
static int make_file(const struct sw_journal *journal, struct sw_err *err)
{
	int fd = open(journal->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600);
	if (fd < 0)
		return fail_errno(journal, errno, journal->path, err);
	struct stat info;
	int error = fstat(fd, &info) != 0 ? errno : S_ISREG(info.st_mode) ? 0 : EINVAL;
	close(fd);
	return error == 0 ? 0 : fail_errno(journal, error, journal->path, err);
}

static int was_orderly(const struct sw_journal *journal, bool *ret_orderly, struct sw_err *err)
{
	SW_CLEANUP(sw_freep) char *path = sw_journal_beside(journal, "-wal");
	if (path == NULL)
		return fail_errno(journal, ENOMEM, journal->path, err);
	struct stat info;
	*ret_orderly = stat(path, &info) != 0 || info.st_size == 0;
	return 0;
}

/* The one number or text that a statement gives; SQLITE_ROW or SQLite's code. `text` holds 200
 * bytes and may be NULL. */
static int ask(struct sw_journal *journal, const char *statement, int64_t *ret_number, char *text)
{
	sqlite3_stmt *query = NULL;
	int rc = sqlite3_prepare_v2(journal->db, statement, -1, &query, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(query);
	if (rc == SQLITE_ROW) {
		*ret_number = sqlite3_column_int64(query, 0);
		const unsigned char *answer = sqlite3_column_text(query, 0);
		if (text != NULL)
			snprintf(text, 200, "%s", answer != NULL ? (const char *)answer : "");
	}
	sqlite3_finalize(query);
	return rc;
}

char *sw_journal_beside(const struct sw_journal *journal, const char *suffix)
{
	char *path = NULL;
	return asprintf(&path, "%s%s", journal->path, suffix) < 0 ? NULL : path;
}

static int run_all(struct sw_journal *journal, const char *statements)
{
	return sqlite3_exec(journal->db, statements, NULL, NULL, NULL);
}

int sw_journal_upgrade(sqlite3 *db, int64_t from_format)
{
	char rest[256];
	uint64_t id = 0;
	while (id == 0 && getrandom(&id, sizeof id, 0) == (ssize_t)sizeof id)
		id >>= 1;
	snprintf(rest, sizeof rest,
		 "INSERT OR REPLACE INTO meta VALUES ('unmarked', 1); INSERT OR REPLACE INTO meta VALUES ('id', %" PRIu64
		 "); INSERT OR REPLACE INTO meta VALUES ('format', %d);"
		 "PRAGMA application_id = %d;",
		 id, SW_JOURNAL_FORMAT, SW_JOURNAL_APPLICATION);
	int rc = from_format < 1 ? sqlite3_exec(db, schema, NULL, NULL, NULL) : SQLITE_OK;
	if (rc == SQLITE_OK && from_format < 2)
		rc = sqlite3_exec(db, schema_2, NULL, NULL, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(db, schema_past, NULL, NULL, NULL);
	return rc == SQLITE_OK ? sqlite3_exec(db, rest, NULL, NULL, NULL) : rc;
}

/* All in one transaction: a crash leaves an empty file, which the next open takes for new, or
 * one of the older format. */
static int make_tables(struct sw_journal *journal, int64_t from_format, struct sw_err *err)
{
	int rc = run_all(journal, durability);
	if (rc == SQLITE_OK)
		rc = run_all(journal, "BEGIN IMMEDIATE");
	if (rc == SQLITE_OK)
		rc = sw_journal_upgrade(journal->db, from_format);
	if (rc == SQLITE_OK)
		rc = run_all(journal, "COMMIT");
	return rc == SQLITE_OK ? 0 : fail_sql(journal, rc, err);
}

static int check_format(struct sw_journal *journal, int64_t *ret_format, struct sw_err *err)
{
	int64_t format = 0;
	int rc = ask(journal, "SELECT value FROM meta WHERE name = 'format'", &format, NULL);
	if (rc != SQLITE_ROW && rc != SQLITE_DONE && (rc & 0xff) != SQLITE_ERROR)
		return fail_sql(journal, rc, err);
	if (format < 1)
		return sw_journal_damaged(journal, err, "it does not say its format");
	if (format > SW_JOURNAL_FORMAT) {
		sw_err_set(err, SW_EINPUT, "cannot open the journal '%s'", journal->path);
		sw_err_detail(err, "it has format %" PRId64 "; this program knows formats up to %d", format, SW_JOURNAL_FORMAT);
		sw_err_hint(err, "Use the newer Sharewell that wrote it.");
		return SW_EINPUT;
	}
	*ret_format = format;
	return 0;
}

/* A new file where the mark knows of an old one. The journal is gone, and to go on as if nothing
 * had been would be to forget it silently. */
static int fail_gone(const struct sw_journal *journal, struct sw_err *err)
{
	sw_err_set(err, SW_EINPUT, "the journal '%s' is gone", journal->path);
	sw_err_detail(err, "the file is empty, and its mark '%s.mark' says that it had %" PRIu64 " records", journal->path,
		      journal->mark.seq);
	sw_err_hint(err, "Put it back, or a backup with 'sharewell journal restore'. To begin anew, remove the mark as well.");
	return SW_EINPUT;
}

/* Tells ours from other people's databases, and makes the tables of a new one. */
static int identify(struct sw_journal *journal, struct sw_err *err)
{
	int64_t application = 0, objects = 0;
	int rc = ask(journal, "PRAGMA application_id", &application, NULL);
	if (rc == SQLITE_ROW)
		rc = ask(journal, "SELECT count(*) FROM sqlite_schema", &objects, NULL);
	if (rc != SQLITE_ROW)
		return fail_sql(journal, rc, err);
	if (application == 0 && objects == 0)
		return journal->mark.seq > 0 ? fail_gone(journal, err) : make_tables(journal, 0, err);
	if (application != SW_JOURNAL_APPLICATION) {
		sw_err_set(err, SW_EINPUT, "cannot open the journal '%s'", journal->path);
		sw_err_detail(err, "it is a database of another program");
		return SW_EINPUT;
	}
	int64_t format = 0;
	int r = check_format(journal, &format, err);
	if (r < 0)
		return r;
	if (format < SW_JOURNAL_FORMAT)
		return make_tables(journal, format, err);
	rc = run_all(journal, durability);
	return rc == SQLITE_OK ? 0 : fail_sql(journal, rc, err);
}

/* All that a start stands on but the records. Not the past and the texts. There may be gigabytes of
 * them, and each row has a checksum that is looked at when it is read. */
static int check_tables(struct sw_journal *journal, struct sw_err *err)
{
	static const char *const tables[] = {"meta", "snapshots", "snapshot_parts", "aside"};
	for (size_t t = 0; t < sizeof tables / sizeof tables[0]; t++) {
		int64_t number = 0;
		char text[200], statement[64];
		snprintf(statement, sizeof statement, "PRAGMA quick_check(%s)", tables[t]);
		int rc = ask(journal, statement, &number, text);
		if (rc != SQLITE_ROW)
			return fail_sql(journal, rc, err);
		if (strcmp(text, "ok") != 0)
			return sw_journal_damaged(journal, err, "%s", text);
	}
	return 0;
}

/* Reads the records that a start may need: those since the older snapshot. As many earlier ones as
 * the operator wants are kept, and are checked when they are read. */
static int check_records(struct sw_journal *journal, struct sw_err *err)
{
	sqlite3_stmt *rows = journal->sql[SW_SQL_REPLAY];
	int64_t from = (int64_t)journal->older_seq + 1, before = from - 1;
	sqlite3_bind_int64(rows, 1, from);
	int rc;
	bool in_order = true;
	while (in_order && (rc = sqlite3_step(rows)) == SQLITE_ROW) {
		int64_t seq = sqlite3_column_int64(rows, 0);
		in_order = seq > before;
		before = seq;
	}
	sqlite3_reset(rows);
	if (!in_order)
		return sw_journal_damaged(journal, err, "the records from %" PRId64 " on cannot be read", before);
	return rc == SQLITE_DONE ? 0 : fail_sql(journal, rc, err);
}

/* Learns where the records begin and end, and holds them against the snapshot. */
static int find_bounds(struct sw_journal *journal, struct sw_err *err)
{
	size_t size;
	int r = sw_snapshot_find(journal, &size, err);
	if (r < 0)
		return r;
	sqlite3_stmt *bounds = journal->sql[SW_SQL_BOUNDS];
	int rc = sqlite3_step(bounds);
	if (rc != SQLITE_ROW) {
		sqlite3_reset(bounds);
		return fail_sql(journal, rc, err);
	}
	bool empty = sqlite3_column_type(bounds, 0) == SQLITE_NULL;
	int64_t first = sqlite3_column_int64(bounds, 0), last = sqlite3_column_int64(bounds, 1);
	int64_t part_of = sqlite3_column_int64(bounds, 2), last_aside = sqlite3_column_int64(bounds, 3);
	journal->asides = (uint64_t)sqlite3_column_int64(bounds, 4);
	sqlite3_reset(bounds);
	last = last_aside > last ? last_aside : last;
	if (empty) {
		last = last > (int64_t)journal->snapshot_seq ? last : (int64_t)journal->snapshot_seq;
		first = last + 1;
	}
	if (first < 1 ||
	    ((uint64_t)first > journal->snapshot_seq + 1 && !sw_aside_covers(journal, journal->snapshot_seq + 1, (uint64_t)first - 1)))
		return sw_journal_damaged(journal, err, "record %" PRIu64 " is missing", journal->snapshot_seq + 1);
	if ((uint64_t)last < journal->snapshot_seq)
		return sw_journal_damaged(journal, err, "record %" PRIu64 ", up to which the snapshot goes, is missing",
					  journal->snapshot_seq);
	journal->first_seq = (uint64_t)first;
	journal->last_seq = (uint64_t)last;
	journal->last_snapshot_id = part_of > journal->snapshot_id ? part_of : journal->snapshot_id;
	return 0;
}

/* What the file says of itself beside the records. */
static int read_numbers(struct sw_journal *journal, bool *ret_unmarked, struct sw_err *err)
{
	static const char *const names[] = {
		"SELECT (SELECT value FROM meta WHERE name = 'id')", "SELECT (SELECT value FROM meta WHERE name = 'floor')",
		"SELECT (SELECT value FROM meta WHERE name = 'unsure')", "SELECT (SELECT value FROM meta WHERE name = 'unmarked')"};
	int64_t values[4] = {0};
	for (int i = 0; i < 4; i++) {
		int rc = ask(journal, names[i], &values[i], NULL);
		if (rc != SQLITE_ROW)
			return fail_sql(journal, rc, err);
	}
	if (values[0] < 1 || values[1] < 0)
		return sw_journal_damaged(journal, err, "it does not say which journal it is");
	journal->id = (uint64_t)values[0];
	journal->floor = (uint64_t)values[1];
	journal->unsure = values[2] != 0;
	*ret_unmarked = values[3] != 0;
	return 0;
}

/* Records that were acknowledged are not there. */
static int fail_lost(const struct sw_journal *journal, struct sw_err *err)
{
	uint64_t lost = journal->mark.seq - journal->last_seq;
	sw_err_set(err, SW_EINPUT, "%" PRIu64 " record%s of the journal '%s' %s missing", lost, lost == 1 ? "" : "s", journal->path,
		   lost == 1 ? "is" : "are");
	sw_err_detail(err,
		      "its mark says that record %" PRIu64 " was stored, and the last one there is %" PRIu64
		      ". The log '%s-wal' was removed or damaged, or an older file was put in place",
		      journal->mark.seq, journal->last_seq, journal->path);
	sw_err_hint(err, "Put the log back beside the file if you have it. To go on without these records: 'sharewell journal repair'.");
	return SW_EINPUT;
}

static int hold_against_mark(struct sw_journal *journal, enum sw_mark_found found, bool unmarked, struct sw_err *err)
{
	if (found == SW_MARK_FOUND && journal->mark.id == journal->id)
		return journal->mark.seq > journal->last_seq ? fail_lost(journal, err) : 0;
	if (found == SW_MARK_FOUND && journal->mark.seq > 0) {
		sw_err_set(err, SW_EINPUT, "the journal '%s' is not the one that was here", journal->path);
		sw_err_detail(err, "the mark '%s.mark' is of another journal, with %" PRIu64 " records", journal->path, journal->mark.seq);
		sw_err_hint(err, "Put the right file back. To go on with this one: 'sharewell journal repair'.");
		return SW_EINPUT;
	}
	journal->mark.high = 0;
	if (unmarked)
		return 0;
	snprintf(journal->news, sizeof journal->news,
		 "the mark '%s.mark' is %s: whether records are missing cannot be told. Record %" PRIu64
		 " is the last there is; numbers go on with a gap, so that none is used twice",
		 journal->path, found == SW_MARK_MISSING ? "missing" : "damaged", journal->last_seq);
	return sw_journal_set_numbers(journal, journal->floor, true, err);
}

/* From now on the mark follows this file, which is told once that it has one. */
static int set_mark(struct sw_journal *journal, const char *path, bool unmarked, struct sw_err *err)
{
	sw_mark_open(path, &journal->mark);
	journal->mark.id = journal->id;
	journal->mark.seq = journal->last_seq;
	journal->mark.open = true;
	if (journal->mark.error == 0)
		sw_mark_write(&journal->mark);
	sw_mark_sync(&journal->mark);
	int rc = unmarked && journal->mark.error == 0 ? run_all(journal, "DELETE FROM meta WHERE name = 'unmarked'") : SQLITE_OK;
	return rc == SQLITE_OK ? 0 : fail_sql(journal, rc, err);
}

static int open_database(struct sw_journal *journal, struct sw_err *err)
{
	SW_CLEANUP(sw_freep) char *mark_path = sw_journal_beside(journal, ".mark");
	bool orderly, unmarked = false;
	int r = mark_path != NULL ? was_orderly(journal, &orderly, err) : fail_errno(journal, ENOMEM, journal->path, err);
	if (r < 0)
		return r;
	enum sw_mark_found found = sw_mark_read(mark_path, &journal->mark);
	int rc = sqlite3_open_v2(journal->path, &journal->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL);
	if (rc == SQLITE_OK)
		rc = run_all(journal, settings);
	if (rc != SQLITE_OK)
		return fail_sql(journal, rc, err);
	/* A journal that is refused stays as it is: its log may be all that a repair has. */
	sqlite3_db_config(journal->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	r = identify(journal, err);
	bool unsure = !orderly || journal->mark.open;
	if (r == 0 && unsure)
		r = check_tables(journal, err);
	if (r < 0)
		return r;
	rc = run_all(journal, schema_past);
	if (rc == SQLITE_OK)
		rc = sw_sql_prepare(journal);
	r = rc == SQLITE_OK ? find_bounds(journal, err) : fail_sql(journal, rc, err);
	if (r == 0 && unsure)
		r = check_records(journal, err);
	r = r < 0 ? r : read_numbers(journal, &unmarked, err);
	r = r < 0 ? r : hold_against_mark(journal, found, unmarked, err);
	r = r < 0 ? r : set_mark(journal, mark_path, unmarked, err);
	if (r == 0)
		sqlite3_db_config(journal->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
	return r;
}

int sw_journal_open(const char *path, struct sw_journal **ret_journal, struct sw_err *err)
{
	if (path[0] == '\0' || path[strlen(path) - 1] == '/') {
		sw_err_set(err, SW_EINPUT, "cannot open the journal '%s'", path);
		sw_err_detail(err, "that is not the name of a file");
		return SW_EINPUT;
	}
	SW_CLEANUP(sw_journal_closep) struct sw_journal *journal = calloc(1, sizeof *journal);
	if (journal == NULL)
		return sw_err_set(err, SW_ENOMEM, "no memory for the journal '%s'", path);
	journal->lock_fd = -1;
	journal->mark.fd = -1;
	/* "./" keeps names that mean something to SQLite, such as ":memory:", names of files. */
	if (asprintf(&journal->path, "%s%s", path[0] == '/' ? "" : "./", path) < 0) {
		journal->path = NULL;
		return sw_err_set(err, SW_ENOMEM, "no memory for the journal '%s'", path);
	}
	int r = make_folders(journal, err);
	if (r == 0)
		r = take_lock(journal, err);
	if (r == 0)
		r = sw_journal_finish_swap(journal, err);
	if (r == 0)
		r = make_file(journal, err);
	if (r == 0)
		r = open_database(journal, err);
	if (r < 0)
		return r;
	*ret_journal = SW_TAKE(journal);
	return 0;
}

void sw_journal_close(struct sw_journal *journal)
{
	assert(!journal->replaying);
	if (journal->in_batch)
		sw_sql_roll_back(journal, SQLITE_OK);
	sw_snapshot_give_up(journal);
	for (int i = 0; i < SW_SQL_COUNT; i++)
		sqlite3_finalize(journal->sql[i]);
	int rc = sqlite3_close(journal->db);
	assert(rc == SQLITE_OK);
	/* After the file: until then it is open. */
	journal->mark.open = false;
	sw_mark_write(&journal->mark);
	sw_mark_sync(&journal->mark);
	sw_mark_close(&journal->mark);
	/* Last: the next owner must find the file closed. */
	if (journal->lock_fd >= 0)
		close(journal->lock_fd);
	free(journal->path);
	free(journal);
}
