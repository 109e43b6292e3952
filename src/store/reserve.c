#include "store/reserve.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct sw_reserve {
	int fd;
	size_t full, left;
};

int sw_reserve_open(const char *path, size_t full, struct sw_reserve **ret_reserve, struct sw_err *err)
{
	struct stat info;
	struct sw_reserve *reserve = calloc(1, sizeof *reserve);
	if (reserve == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	reserve->full = full;
	reserve->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	if (reserve->fd < 0 || fstat(reserve->fd, &info) < 0 || !S_ISREG(info.st_mode)) {
		sw_err_set(err, SW_EIO, "cannot open '%s'", path);
		sw_err_detail(err, "%s", strerror(errno));
		sw_reserve_close(reserve);
		return SW_EIO;
	}
	if ((size_t)info.st_size > full && ftruncate(reserve->fd, (off_t)full) == 0)
		info.st_size = (off_t)full;
	reserve->left = (size_t)info.st_size;
	sw_reserve_refill(reserve);
	*ret_reserve = reserve;
	return 0;
}

void sw_reserve_close(struct sw_reserve *reserve)
{
	if (reserve == NULL)
		return;
	if (reserve->fd >= 0)
		close(reserve->fd);
	free(reserve);
}

size_t sw_reserve_left(const struct sw_reserve *reserve)
{
	return reserve->left;
}

bool sw_reserve_give(struct sw_reserve *reserve, size_t bytes)
{
	size_t left = bytes < reserve->left ? reserve->left - bytes : 0;
	if (reserve->left == 0 || ftruncate(reserve->fd, (off_t)left) < 0)
		return false;
	reserve->left = left;
	/* Some file systems let go of space only with their next commit. */
	fsync(reserve->fd);
	return true;
}

bool sw_reserve_refill(struct sw_reserve *reserve)
{
	/* Also over what is there already: a file may have holes. */
	if (posix_fallocate(reserve->fd, 0, (off_t)reserve->full) == 0) {
		reserve->left = reserve->full;
		return true;
	}
	if (ftruncate(reserve->fd, (off_t)reserve->left) < 0)
		reserve->left = 0;
	return false;
}
