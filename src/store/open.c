/* Opening a journal: folders, the lock, the file, its tables, and the check after a shutdown that was not orderly.
 *
 * SQLite removes its write-ahead log when the file is closed in order, so a log that is still there tells that it was not. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/internal.h"
#include "store/lock.h"

/* "SWJL": tells our files from other SQLite databases. */
#define APPLICATION_ID 0x53574a4c
/* The log is copied into the file when it has this many pages of 4 KiB. More makes the pauses rarer and longer. */
#define LOG_PAGES "1000"

/* Exclusive before the first access: then SQLite keeps the index of its log in plain memory instead of a shared file. */
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
	"INSERT INTO meta VALUES ('created', CAST(strftime('%s', 'now') AS INTEGER));";

static int fail_errno(const struct sw_journal *journal, int error, const char *what, struct sw_err *err)
{
	int code = error == ENOMEM ? SW_ENOMEM : SW_EIO;
	sw_err_set(err, code, "cannot open the journal '%s'", journal->path);
	sw_err_detail(err, "'%s': %s", what, strerror(error));
	return code;
}

static int fail_sql(const struct sw_journal *journal, int rc, struct sw_err *err)
{
	return sw_journal_fail(journal, rc, err, "cannot open the journal '%s'", journal->path);
}

/* Makes the name of a folder durable; best effort, since some file systems do not let folders be synced. */
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
	SW_CLEANUP(sw_freep) char *path = NULL;
	if (asprintf(&path, "%s.lock", journal->path) < 0) {
		path = NULL;
		return fail_errno(journal, ENOMEM, journal->path, err);
	}
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
	SW_CLEANUP(sw_freep) char *path = NULL;
	if (asprintf(&path, "%s-wal", journal->path) < 0) {
		path = NULL;
		return fail_errno(journal, ENOMEM, journal->path, err);
	}
	struct stat info;
	*ret_orderly = stat(path, &info) != 0 || info.st_size == 0;
	return 0;
}

/* The one number or text that a statement gives; SQLITE_ROW or SQLite's code. `text` holds 200 bytes and may be NULL. */
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

static int run_all(struct sw_journal *journal, const char *statements)
{
	return sqlite3_exec(journal->db, statements, NULL, NULL, NULL);
}

/* All in one transaction: a crash leaves an empty file, which the next open takes for new. */
static int make_tables(struct sw_journal *journal, struct sw_err *err)
{
	char marks[160];
	snprintf(marks, sizeof marks, "INSERT INTO meta VALUES ('format', %d); PRAGMA application_id = %d;", SW_JOURNAL_FORMAT,
		 APPLICATION_ID);
	int rc = run_all(journal, durability);
	if (rc == SQLITE_OK)
		rc = run_all(journal, "BEGIN IMMEDIATE");
	if (rc == SQLITE_OK)
		rc = run_all(journal, schema);
	if (rc == SQLITE_OK)
		rc = run_all(journal, marks);
	if (rc == SQLITE_OK)
		rc = run_all(journal, "COMMIT");
	return rc == SQLITE_OK ? 0 : fail_sql(journal, rc, err);
}

static int check_format(struct sw_journal *journal, struct sw_err *err)
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
	return 0;
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
		return make_tables(journal, err);
	if (application != APPLICATION_ID) {
		sw_err_set(err, SW_EINPUT, "cannot open the journal '%s'", journal->path);
		sw_err_detail(err, "it is a database of another program");
		return SW_EINPUT;
	}
	int r = check_format(journal, err);
	if (r < 0)
		return r;
	rc = run_all(journal, durability);
	return rc == SQLITE_OK ? 0 : fail_sql(journal, rc, err);
}

static int check_all(struct sw_journal *journal, struct sw_err *err)
{
	int64_t number = 0;
	char text[200];
	int rc = ask(journal, "PRAGMA quick_check(1)", &number, text);
	if (rc != SQLITE_ROW)
		return fail_sql(journal, rc, err);
	return strcmp(text, "ok") == 0 ? 0 : sw_journal_damaged(journal, err, "%s", text);
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
	int64_t part_of = sqlite3_column_int64(bounds, 2);
	sqlite3_reset(bounds);
	if (empty) {
		first = (int64_t)journal->snapshot_seq + 1;
		last = (int64_t)journal->snapshot_seq;
	}
	if (first < 1 || (uint64_t)first > journal->snapshot_seq + 1)
		return sw_journal_damaged(journal, err, "record %" PRIu64 " is missing", journal->snapshot_seq + 1);
	if ((uint64_t)last < journal->snapshot_seq)
		return sw_journal_damaged(journal, err, "record %" PRIu64 ", up to which the snapshot goes, is missing",
					  journal->snapshot_seq);
	journal->first_seq = (uint64_t)first;
	journal->last_seq = (uint64_t)last;
	journal->last_snapshot_id = part_of > journal->snapshot_id ? part_of : journal->snapshot_id;
	return 0;
}

static int open_database(struct sw_journal *journal, struct sw_err *err)
{
	bool orderly;
	int r = was_orderly(journal, &orderly, err);
	if (r < 0)
		return r;
	int rc = sqlite3_open_v2(journal->path, &journal->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL);
	if (rc == SQLITE_OK)
		rc = run_all(journal, settings);
	if (rc != SQLITE_OK)
		return fail_sql(journal, rc, err);
	r = identify(journal, err);
	if (r == 0 && !orderly)
		r = check_all(journal, err);
	if (r < 0)
		return r;
	rc = sw_sql_prepare(journal);
	return rc == SQLITE_OK ? find_bounds(journal, err) : fail_sql(journal, rc, err);
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
	/* "./" keeps names that mean something to SQLite, such as ":memory:", names of files. */
	if (asprintf(&journal->path, "%s%s", path[0] == '/' ? "" : "./", path) < 0) {
		journal->path = NULL;
		return sw_err_set(err, SW_ENOMEM, "no memory for the journal '%s'", path);
	}
	int r = make_folders(journal, err);
	if (r == 0)
		r = take_lock(journal, err);
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
	/* Last: the next owner must find the file closed. */
	if (journal->lock_fd >= 0)
		close(journal->lock_fd);
	free(journal->path);
	free(journal);
}
