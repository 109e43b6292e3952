/* A new file in place of a journal, at one stroke.
 *
 * The process that makes it (a repair, a restore) writes it whole and synced under another name and
 * renames it to `<journal>.next`. From then on it counts. Then the write-ahead log of the old file
 * goes, which must never meet the new one. The new file takes its place, and the mark follows. A
 * process that dies in between leaves `<journal>.next`, and the next one that opens the journal
 * goes on from there.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "store/internal.h"

static int fail(const struct sw_journal *journal, const char *path, struct sw_err *err)
{
	int error = errno;
	sw_err_set(err, error == ENOMEM ? SW_ENOMEM : SW_EIO, "cannot put a new file in place of the journal '%s'", journal->path);
	sw_err_detail(err, "'%s': %s", path, strerror(error));
	return error == ENOMEM ? SW_ENOMEM : SW_EIO;
}

static void sync_folder_of(const struct sw_journal *journal)
{
	SW_CLEANUP(sw_freep) char *path = strdup(journal->path);
	if (path == NULL)
		return;
	char *slash = strrchr(path, '/');
	slash[slash == path] = '\0';
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	fsync(fd);
	close(fd);
}

int sw_journal_finish_swap(const struct sw_journal *journal, struct sw_err *err)
{
	static const char *const old[] = {"-wal", "-shm", "-journal", ".mark"};
	SW_CLEANUP(sw_freep) char *next = sw_journal_beside(journal, ".next");
	if (next == NULL) {
		errno = ENOMEM;
		return fail(journal, journal->path, err);
	}
	if (access(next, F_OK) != 0)
		return 0;
	sync_folder_of(journal);
	for (size_t i = 0; i < sizeof old / sizeof old[0]; i++) {
		SW_CLEANUP(sw_freep) char *path = sw_journal_beside(journal, old[i]);
		if (path == NULL || (unlink(path) != 0 && errno != ENOENT))
			return fail(journal, path != NULL ? path : journal->path, err);
	}
	sync_folder_of(journal);
	if (rename(next, journal->path) != 0)
		return fail(journal, next, err);
	sync_folder_of(journal);
	return 0;
}
