#include "agent/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/number.h"

#define FILE_MAX SW_SYNC_BYTES_MAX

static int fail(struct sw_err *err, const char *verb, const char *name, int error)
{
	int code = error == ENOENT ? SW_ENOTFOUND : error == ENOMEM ? SW_ENOMEM : SW_EIO;
	sw_err_set(err, code, "cannot %s '%s' of a run", verb, name);
	sw_err_detail(err, "%s", strerror(error));
	return code;
}

char *sw_folder_name(struct sw_run_id id, char name[SW_FOLDER_NAME_MAX])
{
	snprintf(name, SW_FOLDER_NAME_MAX, "%" PRIu64 ".%" PRIu32, id.job, id.epoch);
	return name;
}

bool sw_folder_parse(const char *name, struct sw_run_id *ret_id)
{
	const char *dot = strchr(name, '.');
	uint64_t job, epoch;
	if (dot == NULL || sw_parse_u64(name, (size_t)(dot - name), &job) < 0 || sw_parse_u64(dot + 1, strlen(dot + 1), &epoch) < 0 ||
	    job > SW_SYNC_JOB_MAX || epoch > UINT32_MAX)
		return false;
	struct sw_run_id id = {job, (uint32_t)epoch};
	char again[SW_FOLDER_NAME_MAX];
	if (strcmp(sw_folder_name(id, again), name) != 0)
		return false;
	*ret_id = id;
	return true;
}

/* 0 or an errno. */
static int write_all(int fd, const char *text, size_t size)
{
	while (size > 0) {
		ssize_t n = write(fd, text, size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno;
		text += n;
		size -= (size_t)n;
	}
	return 0;
}

int sw_folder_write(int folder, const char *name, const char *text, size_t size, bool durable, struct sw_err *err)
{
	char temporary[64];
	snprintf(temporary, sizeof temporary, ".%s.tmp", name);
	int fd = openat(folder, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return fail(err, "write", name, errno);
	int error = write_all(fd, text, size);
	if (error == 0 && durable && fsync(fd) != 0)
		error = errno;
	if (close(fd) != 0 && error == 0)
		error = errno;
	if (error == 0 && renameat(folder, temporary, folder, name) != 0)
		error = errno;
	if (error == 0 && durable && fsync(folder) != 0)
		error = errno;
	if (error == 0)
		return 0;
	unlinkat(folder, temporary, 0);
	return fail(err, "write", name, error);
}

int sw_folder_read(int folder, const char *name, char **ret_text, size_t *ret_size, struct sw_err *err)
{
	int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return fail(err, "read", name, errno);
	struct stat info;
	int error = fstat(fd, &info) != 0 ? errno : 0;
	if (error == 0 && (!S_ISREG(info.st_mode) || info.st_size > (off_t)FILE_MAX))
		error = EFBIG;
	size_t size = error == 0 ? (size_t)info.st_size : 0, used = 0;
	char *text = error == 0 ? malloc(size + 1) : NULL;
	if (error == 0 && text == NULL)
		error = ENOMEM;
	while (error == 0 && used < size) {
		ssize_t n = read(fd, text + used, size - used);
		if (n == 0)
			break;
		if (n < 0 && errno != EINTR)
			error = errno;
		used += n > 0 ? (size_t)n : 0;
	}
	close(fd);
	if (error != 0) {
		free(text);
		return fail(err, "read", name, error);
	}
	text[used] = '\0';
	*ret_text = text;
	*ret_size = used;
	return 0;
}

bool sw_folder_has(int folder, const char *name)
{
	return faccessat(folder, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int sw_folder_order(int folder, struct sw_run_order **ret_order, struct sw_err *err)
{
	SW_CLEANUP(sw_freep) char *text = NULL;
	size_t size;
	int r = sw_folder_read(folder, "spec.json", &text, &size, err);
	return r < 0 ? r : sw_run_order_decode(text, size, ret_order, err);
}

int sw_folder_account(int folder, const char *name, struct sw_run_account **ret_account, struct sw_err *err)
{
	SW_CLEANUP(sw_freep) char *text = NULL;
	size_t size;
	int r = sw_folder_read(folder, name, &text, &size, err);
	return r < 0 ? r : sw_run_account_decode(text, size, ret_account, err);
}

/* ---- as a whole */

static int fill(int runs, const char *name, const char *spec, size_t size, struct sw_err *err)
{
	if (mkdirat(runs, name, 0700) != 0)
		return fail(err, "make the folder", name, errno);
	int folder = -1;
	int r = sw_folder_open(runs, name, &folder, err);
	if (r < 0)
		return r;
	r = sw_folder_write(folder, "spec.json", spec, size, false, err);
	close(folder);
	return r;
}

int sw_folder_create(int runs, const struct sw_run_order *order, struct sw_err *err)
{
	char name[SW_FOLDER_NAME_MAX], temporary[SW_FOLDER_NAME_MAX + 8];
	sw_folder_name(order->want.id, name);
	snprintf(temporary, sizeof temporary, ".new-%s", name);
	SW_CLEANUP(sw_freep) char *spec = NULL;
	size_t size;
	int r = sw_run_order_encode(order, &spec, &size, err);
	if (r == 0)
		r = sw_folder_delete(runs, temporary, err);
	if (r < 0)
		return r;
	r = fill(runs, temporary, spec, size, err);
	if (r == 0 && renameat2(runs, temporary, runs, name, 1 /* RENAME_NOREPLACE */) != 0) {
		r = errno == EEXIST ? SW_EINPUT : SW_EIO;
		sw_err_set(err, r, "cannot make the folder '%s' of a run", name);
		sw_err_detail(err, "%s", strerror(errno));
	}
	if (r < 0)
		sw_folder_delete(runs, temporary, NULL);
	return r;
}

int sw_folder_open(int runs, const char *name, int *ret_folder, struct sw_err *err)
{
	int folder = openat(runs, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (folder < 0)
		return fail(err, "open the folder", name, errno);
	*ret_folder = folder;
	return 0;
}

int sw_folder_delete(int runs, const char *name, struct sw_err *err)
{
	int folder = openat(runs, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (folder < 0)
		return errno == ENOENT ? 0 : fail(err, "delete the folder", name, errno);
	DIR *stream = fdopendir(folder);
	if (stream == NULL) {
		close(folder);
		return fail(err, "delete the folder", name, ENOMEM);
	}
	/* The exit goes last: a folder that is half gone is still that of a run that is over. */
	for (const struct dirent *entry; (entry = readdir(stream)) != NULL;)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 && strcmp(entry->d_name, "exit.json") != 0)
			unlinkat(folder, entry->d_name, 0);
	unlinkat(folder, "exit.json", 0);
	closedir(stream);
	if (unlinkat(runs, name, AT_REMOVEDIR) != 0 && errno != ENOENT)
		return fail(err, "delete the folder", name, errno);
	return 0;
}

/* ---- the lock */

/* Locks of open file descriptions: they end with the process, however it ends, and can be asked
 * about without being taken. */
static const struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

int sw_folder_lock(int folder, const char *name, int *ret_lock, struct sw_err *err)
{
	int fd = openat(folder, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return fail(err, "open", name, errno);
	struct flock lock = whole;
	if (fcntl(fd, F_OFD_SETLK, &lock) != 0) {
		int error = errno;
		close(fd);
		if (error != EAGAIN && error != EACCES)
			return fail(err, "lock", name, error);
		sw_err_set(err, SW_EINPUT, "another supervisor looks after this run");
		return SW_EINPUT;
	}
	*ret_lock = fd;
	return 0;
}

bool sw_folder_is_locked(int folder, const char *name)
{
	int fd = openat(folder, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return false;
	struct flock lock = whole;
	bool locked = fcntl(fd, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
	close(fd);
	return locked;
}
