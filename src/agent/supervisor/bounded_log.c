#include "agent/supervisor/bounded_log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The tail is moved in one go while the job may wait: this bounds how long. */
#define ZONE_MAX (UINT64_C(64) << 20)
/* So far is looked for the end of a line, to begin the tail with a whole one. */
enum { LINE_SEARCH = 4096, MARKER_SIZE = 72, STEP = 1 << 16 };

int sw_bounded_log_init(struct sw_bounded_log *log, int fd, uint64_t limit)
{
	struct stat info;
	if (fstat(fd, &info) != 0)
		return errno;
	if (!S_ISREG(info.st_mode) && !S_ISCHR(info.st_mode))
		return EINVAL;
	*log = (struct sw_bounded_log){.fd = fd, .plain = !S_ISREG(info.st_mode), .limit = limit < 4096 ? 4096 : limit};
	log->start = log->size = log->plain ? 0 : (uint64_t)info.st_size;
	return 0;
}

/* Writes at the end; how many bytes. */
static size_t append(struct sw_bounded_log *log, const char *bytes, size_t size)
{
	size_t done = 0;
	while (done < size) {
		ssize_t n = log->plain ? write(log->fd, bytes + done, size - done)
				       : pwrite(log->fd, bytes + done, size - done, (off_t)log->size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		done += (size_t)n;
		log->size += (uint64_t)n;
	}
	return done;
}

/* Copies `size` bytes of the file forward; how many. */
static uint64_t move(const struct sw_bounded_log *log, uint64_t from, uint64_t to, uint64_t size)
{
	char buffer[STEP];
	uint64_t done = 0;
	while (done < size) {
		size_t step = size - done < STEP ? (size_t)(size - done) : STEP;
		ssize_t n = pread(log->fd, buffer, step, (off_t)(from + done));
		if (n <= 0 || pwrite(log->fd, buffer, (size_t)n, (off_t)(to + done)) != n)
			break;
		done += (uint64_t)n;
	}
	return done;
}

/* The beginning of the first line at or after `from`; `from` itself when no line ends soon. */
static uint64_t line_after(const struct sw_bounded_log *log, uint64_t from)
{
	char buffer[LINE_SEARCH];
	ssize_t n = pread(log->fd, buffer, sizeof buffer, (off_t)from);
	const char *end = n > 0 ? memchr(buffer, '\n', (size_t)n) : NULL;
	return end != NULL ? from + (uint64_t)(end - buffer) + 1 : from;
}

/* Leaves out the middle. */
static void compact(struct sw_bounded_log *log)
{
	uint64_t zone = log->limit / 2 < ZONE_MAX ? log->limit / 2 : ZONE_MAX;
	uint64_t marker_at = log->start + log->limit - zone;
	uint64_t kept_from = line_after(log, log->size - (zone - MARKER_SIZE) / 2);
	uint64_t kept = move(log, kept_from, marker_at + MARKER_SIZE, log->size - kept_from);
	/* The first time the middle begins where the marker now stands; later it
	 * begins behind the marker. */
	log->dropped += kept_from - marker_at - (log->dropped > 0 ? MARKER_SIZE : 0);
	char marker[MARKER_SIZE + 1];
	snprintf(marker, sizeof marker, "\n[sharewell: %20" PRIu64 " bytes were left out here] ", log->dropped);
	memset(marker + strlen(marker), '-', MARKER_SIZE - strlen(marker));
	marker[MARKER_SIZE - 1] = '\n';
	(void)!pwrite(log->fd, marker, MARKER_SIZE, (off_t)marker_at);
	log->size = marker_at + MARKER_SIZE + kept;
	(void)!ftruncate(log->fd, (off_t)log->size);
}

void sw_bounded_log_write(struct sw_bounded_log *log, const char *bytes, size_t size)
{
	while (size > 0) {
		uint64_t room = log->start + log->limit - log->size;
		size_t step = log->plain || size < room ? size : (size_t)room;
		size_t done = append(log, bytes, step);
		if (done < step) {
			log->lost += size - done;
			return;
		}
		bytes += step;
		size -= step;
		if (!log->plain && log->size == log->start + log->limit)
			compact(log);
	}
}
