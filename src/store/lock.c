/* Open-file-description locks. Unlike the older ones of fcntl they also refuse a second holder in
 * the same process. They do not vanish when any code closes another descriptor of the file. A
 * forked child keeps them until it execs. */
#include "store/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/number.h"

enum { TRIES = 100, PAUSE_MS = 10 };

/* The process that wrote its number into the lock file; 0 when it cannot be told. */
static pid_t holder(int fd)
{
	char text[24];
	ssize_t size = pread(fd, text, sizeof text, 0);
	int64_t pid = 0;
	if (size < 2 || text[size - 1] != '\n' || sw_parse_i64(text, (size_t)size - 1, &pid) < 0 || pid < 1 || pid > INT32_MAX)
		return 0;
	return (pid_t)pid;
}

static bool is_dead(pid_t pid)
{
	return kill(pid, 0) < 0 && errno == ESRCH;
}

/* 0 or an errno; EAGAIN when another one has the lock. */
static int try_lock(int fd)
{
	struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	if (fcntl(fd, F_OFD_SETLK, &whole) == 0)
		return 0;
	return errno == EACCES ? EAGAIN : errno;
}

static int lock(int fd)
{
	int error = try_lock(fd);
	for (int i = 0; i < TRIES && error == EAGAIN; i++) {
		pid_t pid = holder(fd);
		if (pid == 0 || !is_dead(pid))
			break;
		nanosleep(&(struct timespec){.tv_nsec = PAUSE_MS * SW_NS_PER_MS}, NULL);
		error = try_lock(fd);
	}
	return error;
}

static int fail(const char *path, int fd, int error, struct sw_err *err)
{
	sw_err_set(err, SW_EIO, "cannot lock '%s'", path);
	pid_t pid = error == EAGAIN && fd >= 0 ? holder(fd) : 0;
	if (error != EAGAIN)
		sw_err_detail(err, "'%s': %s", path, strerror(error));
	else if (pid == 0)
		sw_err_detail(err, "another process holds it");
	else if (is_dead(pid))
		sw_err_detail(err, "process %ld held it and has ended, but a child of it still runs, or it lives on another machine",
			      (long)pid);
	else
		sw_err_detail(err, "process %ld holds it", (long)pid);
	if (error == EAGAIN)
		sw_err_hint(err, "Only one controller can use it; stop the other one first.");
	if (fd >= 0)
		close(fd);
	return SW_EIO;
}

int sw_lock_take(const char *path, int *ret_fd, struct sw_err *err)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	int error = fd < 0 ? errno : lock(fd);
	if (error != 0)
		return fail(path, fd, error, err);
	/* For the message that the next one reads; without it the lock is as good. */
	char text[24];
	int size = snprintf(text, sizeof text, "%ld\n", (long)getpid());
	if (ftruncate(fd, 0) == 0)
		(void)!pwrite(fd, text, (size_t)size, 0);
	*ret_fd = fd;
	return 0;
}
