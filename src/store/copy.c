/* Copying a journal, and putting a copy back. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "store/care.h"
#include "store/offline.h"

#define COPY_PAGES 1024

/* Page by page, with the log taken in. */
static int copy_pages(struct sw_offline *offline, sqlite3 *into, struct sw_err *err)
{
	sqlite3_backup *backup = sqlite3_backup_init(into, "main", offline->journal.db, "main");
	int rc = backup != NULL ? SQLITE_OK : sqlite3_errcode(into);
	while (rc == SQLITE_OK) {
		rc = sqlite3_backup_step(backup, COPY_PAGES);
		offline->highest = (uint64_t)sqlite3_backup_pagecount(backup);
		if (!sw_offline_goes_on(offline, offline->highest - (uint64_t)sqlite3_backup_remaining(backup))) {
			sqlite3_backup_finish(backup);
			return sw_offline_stopped(err);
		}
	}
	int end = backup != NULL ? sqlite3_backup_finish(backup) : rc;
	rc = rc == SQLITE_DONE ? end : rc;
	return rc == SQLITE_OK ? 0 : sw_journal_fail(&offline->journal, rc, err, "cannot copy the journal '%s'", offline->journal.path);
}

/* A copy under the name `made`, durable. */
static int copy_to(struct sw_offline *offline, const char *made, bool restores, struct sw_err *err)
{
	sqlite3 *into = NULL;
	int r = sw_offline_open_new(made, &into, err);
	r = r < 0 ? r : copy_pages(offline, into, err);
	int rc = r == 0 && restores ? sw_offline_write_numbers(into, offline->report) : SQLITE_OK;
	int end = sqlite3_close_v2(into);
	rc = rc == SQLITE_OK ? end : rc;
	if (r == 0 && rc != SQLITE_OK)
		r = sw_offline_fail_new(offline, rc, err);
	r = r < 0 ? r : sw_offline_sync_file(made, err);
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
	struct sw_offline offline;
	SW_CLEANUP(sw_freep) char *made = NULL;
	sw_offline_begin(&offline, care, &report);
	if (access(to, F_OK) == 0) {
		sw_err_set(err, SW_EINPUT, "'%.200s' exists already", to);
		sw_err_hint(err, "Give the backup another name.");
		return SW_EINPUT;
	}
	if (asprintf(&made, "%s.partial", to) < 0) {
		made = NULL;
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	}
	int r = access(path, F_OK) == 0 ? sw_offline_take(path, &offline, err)
					: sw_err_set(err, SW_ENOTFOUND, "there is no journal '%s'", path);
	r = r < 0 ? r : sw_offline_look_into(&offline, err);
	r = r < 0 ? r : sw_offline_examine(&offline, err);
	r = r < 0 ? r : refuse_damaged(&report, path, err);
	r = r < 0 ? r : copy_to(&offline, made, false, err);
	if (r == 0 && rename(made, to) != 0)
		r = sw_offline_fail_errno("cannot make", to, err);
	sw_offline_leave(&offline);
	return r;
}

/* Copies from `from`, which was examined, to the place of `into`. */
static int restore(struct sw_offline *from, struct sw_offline *into, bool force, struct sw_err *err)
{
	SW_CLEANUP(sw_freep) char *made = sw_journal_beside(&into->journal, ".restore");
	if (made == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	if (sw_offline_size_of(into->journal.path) > 0 && !force) {
		sw_err_set(err, SW_EINPUT, "there is a journal '%s' already", into->journal.path);
		sw_err_hint(err, "With --force the backup takes its place, and it is kept under another name.");
		return SW_EINPUT;
	}
	int64_t floor = sw_offline_ask(from->journal.db, "SELECT value FROM meta WHERE name = 'floor'", 0);
	sw_offline_set_numbers(into, floor > 0 ? (uint64_t)floor : 0);
	from->report->floor = into->report->floor;
	from->report->unsure = into->report->unsure;
	int r = copy_to(from, made, true, err);
	r = r < 0 ? r : sw_offline_put_in_place(into, made, "replaced", err);
	if (r < 0)
		unlink(made);
	return r;
}

int sw_journal_restore(const char *copy, const char *path, bool force, const struct sw_journal_care *care,
		       struct sw_journal_report *ret_report, struct sw_err *err)
{
	struct sw_journal_report old;
	struct sw_offline from, into;
	sw_offline_begin(&from, care, ret_report);
	sw_offline_begin(&into, NULL, &old);
	int r = access(copy, F_OK) == 0 ? sw_offline_take(copy, &from, err)
					: sw_err_set(err, SW_ENOTFOUND, "there is no backup '%s'", copy);
	r = r < 0 ? r : sw_offline_look_into(&from, err);
	r = r < 0 ? r : sw_offline_examine(&from, err);
	r = r < 0 ? r : refuse_damaged(ret_report, copy, err);
	r = r < 0 ? r : sw_offline_take(path, &into, err);
	r = r < 0 ? r : restore(&from, &into, force, err);
	if (r == 0)
		memcpy(ret_report->kept, old.kept, sizeof old.kept);
	sw_offline_leave(&from);
	sw_offline_leave(&into);
	return r;
}
