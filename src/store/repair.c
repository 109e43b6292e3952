/* Repairing a journal: what is good goes into a new file, which takes the place of the old one. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "store/care.h"
#include "store/offline.h"

/* Numbers after a loss go on at the next multiple of this above the mark: it may be behind after a
 * power cut. */
#define ROUND UINT64_C(1000)

static uint64_t above(uint64_t number)
{
	return (number / ROUND + 1) * ROUND;
}

void sw_offline_set_numbers(const struct sw_offline *offline, uint64_t floor)
{
	struct sw_journal_report *report = offline->report;
	const struct sw_mark *mark = &offline->journal.mark;
	report->floor = floor;
	if (offline->found != SW_MARK_FOUND)
		report->unsure = true;
	else if (mark->high > 0 && above(mark->high) > report->floor)
		report->floor = above(mark->high);
}

int sw_offline_write_numbers(sqlite3 *into, const struct sw_journal_report *report)
{
	char text[400];
	snprintf(text, sizeof text,
		 "INSERT OR REPLACE INTO meta VALUES ('floor', %" PRIu64 "); INSERT OR REPLACE INTO meta VALUES ('unsure', %d);"
		 "INSERT OR REPLACE INTO meta VALUES ('unmarked', 1);",
		 report->floor, report->unsure);
	return sw_offline_exec(into, text);
}

/* Tables of others than these files, row by row while they can be read. */
static int copy_other_tables(struct sw_offline *offline)
{
	sqlite3_stmt *tables = NULL;
	int rc = sqlite3_prepare_v2(offline->journal.db,
				    "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name NOT IN "
				    "('meta', 'records', 'snapshots', 'snapshot_parts')",
				    -1, &tables, NULL);
	while (rc == SQLITE_OK && sqlite3_step(tables) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(tables, 0), *make = (const char *)sqlite3_column_text(tables, 1);
		char select[200], insert[600], marks[400] = "";
		sw_offline_exec(offline->into, make); /* it may be there */
		snprintf(select, sizeof select, "SELECT * FROM \"%.100s\"", name);
		sqlite3_stmt *rows = NULL;
		if (sqlite3_prepare_v2(offline->journal.db, select, -1, &rows, NULL) != SQLITE_OK)
			continue;
		for (int c = 0; c < sqlite3_column_count(rows) && c < 60; c++)
			snprintf(marks + strlen(marks), sizeof marks - strlen(marks), "%s?%d", c > 0 ? ", " : "", c + 1);
		snprintf(insert, sizeof insert, "INSERT OR IGNORE INTO \"%.100s\" VALUES (%s)", name, marks);
		while (rc == SQLITE_OK && sqlite3_step(rows) == SQLITE_ROW)
			rc = sw_offline_put_row(offline->into, insert, rows, NULL);
		sqlite3_finalize(rows);
	}
	sqlite3_finalize(tables);
	return rc;
}

int sw_offline_sync_file(const char *path, struct sw_err *err)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0 || fsync(fd) != 0) {
		int r = sw_offline_fail_errno("cannot write", path, err);
		if (fd >= 0)
			close(fd);
		return r;
	}
	close(fd);
	return 0;
}

/* The old files stay under another name: as links, so that it costs no space and
 * cannot fail half of the way. */
static int keep_old(struct sw_offline *offline, const char *word, struct sw_err *err)
{
	static const char *const suffixes[] = {"", "-wal", ".mark"};
	struct sw_journal *journal = &offline->journal;
	char when[32] = "";
	time_t now = time(NULL);
	struct tm broken;
	if (access(journal->path, F_OK) != 0)
		return 0;
	strftime(when, sizeof when, "%Y%m%d-%H%M%S", gmtime_r(&now, &broken));
	char *kept = offline->report->kept;
	for (int n = 0; n < 100; n++) {
		int size =
			snprintf(kept, sizeof offline->report->kept, "%.400s.%s-%s%s%.0d", journal->path, word, when, n > 0 ? "-" : "", n);
		if (size > 0 && access(kept, F_OK) != 0)
			break;
	}
	for (size_t i = 0; i < 3; i++) {
		SW_CLEANUP(sw_freep) char *from = sw_journal_beside(journal, suffixes[i]), *to = NULL;
		if (from == NULL || asprintf(&to, "%s%s", kept, suffixes[i]) < 0)
			return sw_err_set(err, SW_ENOMEM, "out of memory");
		if (link(from, to) != 0 && !(errno == ENOENT && i > 0))
			return sw_offline_fail_errno("cannot keep the old file as", to, err);
	}
	return 0;
}

int sw_offline_put_in_place(struct sw_offline *offline, const char *made, const char *word, struct sw_err *err)
{
	struct sw_journal *journal = &offline->journal;
	SW_CLEANUP(sw_freep) char *next = sw_journal_beside(journal, ".next");
	if (next == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	int r = sw_offline_sync_file(made, err);
	r = r < 0 ? r : keep_old(offline, word, err);
	if (r < 0)
		return r;
	sqlite3_close_v2(journal->db);
	journal->db = NULL;
	if (rename(made, next) != 0)
		return sw_offline_fail_errno("cannot make", next, err);
	return sw_journal_finish_swap(journal, err);
}

int sw_offline_open_new(const char *path, sqlite3 **ret_db, struct sw_err *err)
{
	unlink(path);
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return sw_offline_fail_errno("cannot make", path, err);
	close(fd);
	int rc = sqlite3_open_v2(path, ret_db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL);
	if (rc == SQLITE_OK)
		rc = sw_offline_exec(*ret_db, "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;");
	return rc == SQLITE_OK ? 0 : sw_err_set(err, SW_EIO, "cannot make '%.200s'", path);
}

int sw_offline_fail_new(const struct sw_offline *offline, int rc, struct sw_err *err)
{
	return sw_journal_fail(&offline->journal, rc, err, "cannot write a new file beside the journal '%s'; it is as it was",
			       offline->journal.path);
}

/* Fills the new file with all that can be read. */
static int fill(struct sw_offline *offline, struct sw_err *err)
{
	sqlite3 *db = offline->journal.db;
	int64_t id = sw_offline_ask(db, "SELECT value FROM meta WHERE name = 'id'", 0);
	int64_t created = sw_offline_ask(db, "SELECT value FROM meta WHERE name = 'created'", 0),
		floor = sw_offline_ask(db, "SELECT value FROM meta WHERE name = 'floor'", 0);
	int rc = sw_offline_exec(offline->into, "BEGIN");
	rc = rc == SQLITE_OK ? sw_journal_upgrade(offline->into, 0) : rc;
	rc = rc == SQLITE_OK ? copy_other_tables(offline) : rc;
	if (rc != SQLITE_OK)
		return sw_offline_fail_new(offline, rc, err);
	struct sw_journal_report *report = offline->report;
	*report = (struct sw_journal_report){.bytes = report->bytes};
	offline->expected = 0;
	int r = sw_offline_examine(offline, err);
	if (r < 0)
		return r;
	sw_offline_set_numbers(offline, floor > 0 ? (uint64_t)floor : 0);
	char text[200];
	snprintf(text, sizeof text, "INSERT OR REPLACE INTO meta VALUES ('created', %lld);", (long long)created);
	rc = offline->rc;
	if (rc == SQLITE_OK && id > 0) {
		rc = sw_offline_exec(offline->into, text);
		snprintf(text, sizeof text, "INSERT OR REPLACE INTO meta VALUES ('id', %lld);", (long long)id);
		rc = rc == SQLITE_OK ? sw_offline_exec(offline->into, text) : rc;
	}
	rc = rc == SQLITE_OK ? sw_offline_write_numbers(offline->into, report) : rc;
	rc = rc == SQLITE_OK ? sw_offline_exec(offline->into, "COMMIT") : rc;
	return rc == SQLITE_OK ? 0 : sw_offline_fail_new(offline, rc, err);
}

static int repair(struct sw_offline *offline, struct sw_err *err)
{
	SW_CLEANUP(sw_freep) char *made = sw_journal_beside(&offline->journal, ".repair");
	if (made == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	int r = sw_offline_open_new(made, &offline->into, err);
	r = r < 0 ? r : fill(offline, err);
	int rc = sqlite3_close_v2(offline->into);
	if (r == 0 && rc != SQLITE_OK)
		r = sw_offline_fail_new(offline, rc, err);
	if (r == 0 && !offline->report->usable) {
		sw_err_set(err, SW_EINPUT, "the journal '%s' cannot be repaired", offline->journal.path);
		sw_err_detail(err, "no snapshot can be read, and the records before %" PRIu64 " are gone", offline->report->first);
		sw_err_hint(err, "It is as it was. Put a backup in its place: 'sharewell journal restore'.");
		r = SW_EINPUT;
	}
	r = r < 0 ? r : sw_offline_put_in_place(offline, made, "damaged", err);
	if (r < 0)
		unlink(made);
	return r;
}

int sw_journal_repair(const char *path, const struct sw_journal_care *care, struct sw_journal_report *ret_report, struct sw_err *err)
{
	struct sw_offline offline;
	sw_offline_begin(&offline, care, ret_report);
	int r = access(path, F_OK) == 0 ? sw_offline_take(path, &offline, err)
					: sw_err_set(err, SW_ENOTFOUND, "there is no journal '%s'", path);
	r = r < 0 ? r : sw_offline_look_into(&offline, err);
	r = r < 0 ? r : sw_offline_examine(&offline, err);
	if (r == 0 && !ret_report->sound)
		r = repair(&offline, err);
	sw_offline_leave(&offline);
	return r;
}
