/* Opening a journal without changing it. */
#include "store/offline.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/lock.h"

int sw_offline_fail_errno(const char *fact, const char *path, struct sw_err *err)
{
	int error = errno;
	sw_err_set(err, SW_EIO, "%s '%.200s'", fact, path);
	sw_err_detail(err, "%s", strerror(error));
	return SW_EIO;
}

int sw_offline_exec(sqlite3 *db, const char *text)
{
	return sqlite3_exec(db, text, NULL, NULL, NULL);
}

int64_t sw_offline_ask(sqlite3 *db, const char *text, int64_t otherwise)
{
	sqlite3_stmt *query = NULL;
	int64_t answer = otherwise;
	if (sqlite3_prepare_v2(db, text, -1, &query, NULL) == SQLITE_OK && sqlite3_step(query) == SQLITE_ROW &&
	    sqlite3_column_type(query, 0) == SQLITE_INTEGER)
		answer = sqlite3_column_int64(query, 0);
	sqlite3_finalize(query);
	return answer;
}

bool sw_offline_goes_on(const struct sw_offline *offline, uint64_t done)
{
	const struct sw_journal_care *care = offline->care;
	return care == NULL || care->progress == NULL || care->progress(care->user, done, offline->highest);
}

int sw_offline_stopped(struct sw_err *err)
{
	return sw_err_set(err, SW_ESTOPPED, "stopped; nothing has changed");
}

uint64_t sw_offline_size_of(const char *path)
{
	struct stat info;
	return stat(path, &info) == 0 ? (uint64_t)info.st_size : 0;
}

void sw_offline_leave(struct sw_offline *offline)
{
	sqlite3_close_v2(offline->journal.db);
	if (offline->journal.lock_fd >= 0)
		close(offline->journal.lock_fd);
	free(offline->journal.path);
}

int sw_offline_take(const char *path, struct sw_offline *offline, struct sw_err *err)
{
	struct sw_journal *journal = &offline->journal;
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
	offline->found = sw_mark_read(mark, &journal->mark);
	return r;
}

int sw_offline_look_into(struct sw_offline *offline, struct sw_err *err)
{
	struct sw_journal *journal = &offline->journal;
	SW_CLEANUP(sw_freep) char *log = sw_journal_beside(journal, "-wal");
	if (log == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	if (access(journal->path, F_OK) != 0) {
		sw_err_set(err, SW_ENOTFOUND, "there is no journal '%s'", journal->path);
		if (offline->found == SW_MARK_FOUND)
			sw_err_detail(err, "its mark says that it had %" PRIu64 " records", journal->mark.seq);
		return SW_ENOTFOUND;
	}
	offline->report->bytes = sw_offline_size_of(journal->path) + sw_offline_size_of(log);
	int rc = sqlite3_open_v2(journal->path, &journal->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL);
	if (rc == SQLITE_OK)
		sqlite3_db_config(journal->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	if (rc == SQLITE_OK)
		rc = sw_offline_exec(journal->db, "PRAGMA locking_mode=EXCLUSIVE; PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON;"
						  "PRAGMA query_only=ON; PRAGMA wal_autocheckpoint=0;");
	if (rc != SQLITE_OK)
		return sw_journal_fail(journal, rc, err, "cannot read the journal '%s'", journal->path);
	int64_t format = sw_offline_ask(journal->db, "SELECT value FROM meta WHERE name = 'format'", 0);
	if (sw_offline_ask(journal->db, "PRAGMA application_id", 0) == SW_JOURNAL_APPLICATION && format >= 1 && format <= SW_JOURNAL_FORMAT)
		return 0;
	sw_err_set(err, SW_EINPUT, "'%s' cannot be read as a journal", journal->path);
	sw_err_detail(err, format > SW_JOURNAL_FORMAT ? "a newer version wrote it"
						      : "it is another file, it is empty, or its first pages are damaged");
	sw_err_hint(err, "Keep it, and put a backup in its place: 'sharewell journal restore'.");
	return SW_EINPUT;
}
