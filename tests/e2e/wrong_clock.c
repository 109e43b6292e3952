/* Preloaded by tests: the clock of the day is wrong by as many seconds as the file in $WRONG_CLOCK
 * says, from the moment that it says so. What counts since the boot is right. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static time_t wrong_by(void)
{
	char text[32] = "";
	const char *path = getenv("WRONG_CLOCK");
	int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0)
		return 0;
	ssize_t size = read(fd, text, sizeof text - 1);
	close(fd);
	return size > 0 ? (time_t)strtoll(text, NULL, 10) : 0;
}

int clock_gettime(clockid_t id, struct timespec *now)
{
	static int (*real)(clockid_t, struct timespec *);
	if (real == NULL)
		real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	int r = real(id, now);
	if (r == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
		now->tv_sec += wrong_by();
	return r;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
	struct timespec precise;
	(void)zone;
	if (clock_gettime(CLOCK_REALTIME, &precise) != 0)
		return -1;
	*now = (struct timeval){precise.tv_sec, precise.tv_nsec / 1000};
	return 0;
}

time_t time(time_t *ret_now)
{
	struct timespec now = {0};
	clock_gettime(CLOCK_REALTIME, &now);
	if (ret_now != NULL)
		*ret_now = now.tv_sec;
	return now.tv_sec;
}
