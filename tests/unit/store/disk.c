#include "unit/store/disk.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "base/vec.h"

enum { SECTOR = 512, FILES = 3 };
static const char *const suffixes[FILES] = {"", "-wal", "-journal"};

/* A write or truncation that is not synced. */
struct change {
	sqlite3_int64 offset; /* of a truncation: the new size */
	int size;
	unsigned char *bytes; /* NULL: a truncation */
};

/* What is known of the journal, its log, or the file that SQLite uses while there is no log yet; in
 * the order of `suffixes`. */
struct remembered {
	SW_VEC(unsigned char) synced;
	SW_VEC(struct change) changes;
};

struct file {
	sqlite3_file base;
	int which;
	bool watched;
	sqlite3_file *real;
};

static struct {
	sqlite3_vfs vfs;
	sqlite3_vfs *real;
	unsigned operations;
	bool broken, lasts, has_failed;
	enum disk_fault fault;
	unsigned fault_at;
	const char *watched; /* part of the path */
	disk_hook_fn *hook;
	struct remembered files[FILES];
} disk;

static struct file *file_of(sqlite3_file *base)
{
	return (struct file *)base;
}

/* Counts an operation and tells whether it is to fail. */
static bool fails(const struct file *file, bool is_sync)
{
	disk.operations++;
	if (file->watched)
		disk.hook(disk.operations);
	if (!disk.broken || disk.operations < disk.fault_at || (disk.has_failed && !disk.lasts))
		return false;
	/* Space is no matter of syncs. */
	if (is_sync ? disk.fault == DISK_FULL : disk.fault == DISK_NO_SYNC)
		return false;
	disk.has_failed = true;
	return true;
}

static void apply(struct remembered *file, sqlite3_int64 offset, const unsigned char *bytes, int size)
{
	size_t end = (size_t)offset + (size_t)size;
	if (end > file->synced.count)
		assert_non_null(sw_vec_push_n(&file->synced, end - file->synced.count));
	if (size > 0)
		memcpy(file->synced.items + offset, bytes, (size_t)size);
}

static void truncate_to(struct remembered *file, sqlite3_int64 size)
{
	if ((size_t)size < file->synced.count)
		file->synced.count = (size_t)size;
}

static void remember(const struct file *file, sqlite3_int64 offset, const void *bytes, int size)
{
	if (!file->watched)
		return;
	struct change *change = sw_vec_push(&disk.files[file->which].changes);
	assert_non_null(change);
	*change = (struct change){.offset = offset, .size = size};
	if (bytes != NULL) {
		change->bytes = malloc((size_t)size);
		assert_non_null(change->bytes);
		memcpy(change->bytes, bytes, (size_t)size);
	}
}

static void forget_changes(struct remembered *file)
{
	for (size_t i = 0; i < file->changes.count; i++)
		free(file->changes.items[i].bytes);
	sw_vec_free(&file->changes);
}

static int disk_close(sqlite3_file *base)
{
	return file_of(base)->real->pMethods->xClose(file_of(base)->real);
}

static int disk_read(sqlite3_file *base, void *buffer, int size, sqlite3_int64 offset)
{
	return file_of(base)->real->pMethods->xRead(file_of(base)->real, buffer, size, offset);
}

static int disk_write(sqlite3_file *base, const void *bytes, int size, sqlite3_int64 offset)
{
	sqlite3_file *real = file_of(base)->real;
	bool failed = fails(file_of(base), false);
	int arrives = failed ? size / 2 : size;
	int rc = real->pMethods->xWrite(real, bytes, arrives, offset);
	remember(file_of(base), offset, bytes, arrives);
	return !failed ? rc : disk.fault == DISK_FULL ? SQLITE_FULL : SQLITE_IOERR_WRITE;
}

static int disk_truncate(sqlite3_file *base, sqlite3_int64 size)
{
	sqlite3_file *real = file_of(base)->real;
	/* Giving space back always works on a full disk. */
	if (fails(file_of(base), false) && disk.fault != DISK_FULL)
		return SQLITE_IOERR_TRUNCATE;
	remember(file_of(base), size, NULL, 0);
	return real->pMethods->xTruncate(real, size);
}

static int disk_sync(sqlite3_file *base, int flags)
{
	(void)flags;
	if (fails(file_of(base), true))
		return SQLITE_IOERR_FSYNC;
	/* The real disk need not be bothered: its plug is not pulled here. */
	if (!file_of(base)->watched)
		return SQLITE_OK;
	struct remembered *file = &disk.files[file_of(base)->which];
	for (size_t i = 0; i < file->changes.count; i++) {
		const struct change *change = &file->changes.items[i];
		if (change->bytes == NULL)
			truncate_to(file, change->offset);
		else
			apply(file, change->offset, change->bytes, change->size);
	}
	forget_changes(file);
	return SQLITE_OK;
}

static int disk_size(sqlite3_file *base, sqlite3_int64 *ret_size)
{
	return file_of(base)->real->pMethods->xFileSize(file_of(base)->real, ret_size);
}

static int disk_lock(sqlite3_file *base, int level)
{
	return file_of(base)->real->pMethods->xLock(file_of(base)->real, level);
}

static int disk_unlock(sqlite3_file *base, int level)
{
	return file_of(base)->real->pMethods->xUnlock(file_of(base)->real, level);
}

static int disk_check_lock(sqlite3_file *base, int *ret_locked)
{
	return file_of(base)->real->pMethods->xCheckReservedLock(file_of(base)->real, ret_locked);
}

static int disk_control(sqlite3_file *base, int operation, void *argument)
{
	return file_of(base)->real->pMethods->xFileControl(file_of(base)->real, operation, argument);
}

static int disk_sector(sqlite3_file *base)
{
	return file_of(base)->real->pMethods->xSectorSize(file_of(base)->real);
}

static int disk_character(sqlite3_file *base)
{
	return file_of(base)->real->pMethods->xDeviceCharacteristics(file_of(base)->real);
}

/* Version 1 has no shared memory: a journal that did not lock its file for itself
 * could not use a log here. */
static const sqlite3_io_methods methods = {
	.iVersion = 1,
	.xClose = disk_close,
	.xRead = disk_read,
	.xWrite = disk_write,
	.xTruncate = disk_truncate,
	.xSync = disk_sync,
	.xFileSize = disk_size,
	.xLock = disk_lock,
	.xUnlock = disk_unlock,
	.xCheckReservedLock = disk_check_lock,
	.xFileControl = disk_control,
	.xSectorSize = disk_sector,
	.xDeviceCharacteristics = disk_character,
};

static bool is_watched(const char *name)
{
	return disk.watched != NULL && name != NULL && strstr(name, disk.watched) != NULL;
}

static int disk_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *base, int flags, int *ret_flags)
{
	(void)vfs;
	struct file *file = file_of(base);
	file->real = (sqlite3_file *)(file + 1);
	file->which = (flags & SQLITE_OPEN_WAL) != 0 ? 1 : (flags & SQLITE_OPEN_MAIN_JOURNAL) != 0 ? 2 : 0;
	file->watched = is_watched(name);
	int rc = disk.real->xOpen(disk.real, name, file->real, flags, ret_flags);
	/* NULL tells SQLite that there is nothing to close. */
	base->pMethods = file->real->pMethods != NULL ? &methods : NULL;
	return rc;
}

static int disk_delete(sqlite3_vfs *vfs, const char *name, int sync_folder)
{
	(void)vfs;
	for (int i = 1; i < FILES && is_watched(name); i++) {
		if (strstr(name, suffixes[i]) != NULL) {
			forget_changes(&disk.files[i]);
			sw_vec_free(&disk.files[i].synced);
		}
	}
	return disk.real->xDelete(disk.real, name, sync_folder);
}

void disk_install(void)
{
	disk.real = sqlite3_vfs_find(NULL);
	assert_non_null(disk.real);
	disk.vfs = *disk.real;
	disk.vfs.zName = "failing disk";
	disk.vfs.szOsFile = (int)sizeof(struct file) + disk.real->szOsFile;
	disk.vfs.xOpen = disk_open;
	disk.vfs.xDelete = disk_delete;
	assert_int_equal(sqlite3_vfs_register(&disk.vfs, 1), SQLITE_OK);
}

void disk_reset(void)
{
	disk.operations = 0;
	disk.broken = disk.has_failed = false;
	disk.watched = NULL;
	for (int i = 0; i < FILES; i++) {
		forget_changes(&disk.files[i]);
		sw_vec_free(&disk.files[i].synced);
	}
}

void disk_break(enum disk_fault fault, unsigned at, bool lasts)
{
	disk.fault = fault;
	disk.fault_at = at;
	disk.lasts = lasts;
	disk.broken = true;
	disk.has_failed = false;
}

void disk_repair(void)
{
	disk.broken = false;
}

bool disk_has_failed(void)
{
	return disk.has_failed;
}

void disk_watch(const struct scratch *scratch, disk_hook_fn *hook)
{
	/* Without the folders above, which may be reached through links. */
	disk.watched = strrchr(scratch->folder, '/');
	disk.hook = hook;
}

/* Each sector of an unsynced write may have arrived, whatever happened to the others. */
static void survive(struct remembered *image, const struct change *change, struct sw_rng *rng)
{
	if (change->bytes == NULL) {
		if (sw_rng_below(rng, 2) == 0)
			truncate_to(image, change->offset);
		return;
	}
	for (int done = 0; done < change->size;) {
		int size = SECTOR - (int)((change->offset + done) % SECTOR);
		if (size > change->size - done)
			size = change->size - done;
		if (sw_rng_below(rng, 2) == 0)
			apply(image, change->offset + done, change->bytes + done, size);
		done += size;
	}
}

static void write_image(const struct remembered *image, const char *path)
{
	unlink(path);
	if (image->synced.count == 0)
		return;
	FILE *file = fopen(path, "we");
	assert_non_null(file);
	assert_int_equal(fwrite(image->synced.items, 1, image->synced.count, file), image->synced.count);
	assert_int_equal(fclose(file), 0);
}

void disk_cut_power(const struct scratch *to, struct sw_rng *rng)
{
	for (int i = 0; i < FILES; i++) {
		struct remembered image = {0};
		apply(&image, 0, disk.files[i].synced.items, (int)disk.files[i].synced.count);
		for (size_t c = 0; c < disk.files[i].changes.count; c++)
			survive(&image, &disk.files[i].changes.items[c], rng);
		char path[128];
		snprintf(path, sizeof path, "%s%s", to->path, suffixes[i]);
		write_image(&image, path);
		sw_vec_free(&image.synced);
	}
}
