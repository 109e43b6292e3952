/* A copy of a journal while its owner goes on: in steps, each short. Pages that change meanwhile
 * are copied again by SQLite, since both are done through one connection. The copy is the journal
 * as it is when the last step ends, log and all. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "store/internal.h"

#define STEP_PAGES 64 /* of 4 KiB */

struct sw_journal_backup {
	struct sw_journal *journal;
	sqlite3 *into;
	sqlite3_backup *copy;
};

static int fail(const struct sw_journal *journal, int rc, struct sw_err *err)
{
	return sw_journal_fail(journal, rc, err, "cannot copy the journal '%s'", journal->path);
}

void sw_journal_backup_free(struct sw_journal_backup *backup)
{
	if (backup->copy != NULL)
		sqlite3_backup_finish(backup->copy);
	sqlite3_close_v2(backup->into);
	free(backup);
}

int sw_journal_backup_begin(struct sw_journal *journal, const char *to, struct sw_journal_backup **ret_backup, struct sw_err *err)
{
	int r = sw_journal_must_rest(journal, "copy", err);
	if (r < 0)
		return r;
	SW_CLEANUP(sw_journal_backup_freep) struct sw_journal_backup *backup = calloc(1, sizeof *backup);
	if (backup == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	backup->journal = journal;
	int rc = sqlite3_open_v2(to, &backup->into, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL);
	/* The caller makes the copy durable. */
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(backup->into, "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;", NULL,
				  NULL, NULL);
	if (rc == SQLITE_OK && (backup->copy = sqlite3_backup_init(backup->into, "main", journal->db, "main")) == NULL)
		rc = sqlite3_extended_errcode(backup->into);
	if (rc != SQLITE_OK)
		return fail(journal, rc, err);
	*ret_backup = SW_TAKE(backup);
	return 0;
}

int sw_journal_backup_step(struct sw_journal_backup *backup, bool *ret_more, struct sw_err *err)
{
	int r = sw_journal_must_rest(backup->journal, "copy", err);
	if (r < 0)
		return r;
	int rc = sqlite3_backup_step(backup->copy, STEP_PAGES);
	if (rc == SQLITE_OK) {
		*ret_more = true;
		return 0;
	}
	int end = sqlite3_backup_finish(backup->copy);
	backup->copy = NULL;
	rc = rc == SQLITE_DONE ? end : rc;
	if (rc == SQLITE_OK)
		rc = sqlite3_close(backup->into);
	if (rc != SQLITE_OK)
		return fail(backup->journal, rc, err);
	backup->into = NULL;
	*ret_more = false;
	return 0;
}
