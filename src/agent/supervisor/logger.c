#include "agent/supervisor/logger.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/supervisor/bounded_log.h"
#include "agent/supervisor/launch.h"

enum { STEP = 1 << 18 };

__attribute__((format(printf, 2, 3))) static _Noreturn void give_up(const struct sw_logger *logger, const char *fmt, ...)
{
	char text[500];
	va_list args;
	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	if (logger->ready >= 0)
		(void)!write(logger->ready, text, strlen(text) + 1);
	_exit(1);
}

/* Ends of pipes and files that belong to the supervisor would keep locks and streams alive. */
static void close_others(const struct sw_logger *logger)
{
	int kept[2 * SW_LOGGER_STREAMS + 2], count = 0;
	for (size_t i = 0; i < logger->count; i++) {
		kept[count++] = logger->streams[i].pipe;
		if (logger->streams[i].file >= 0)
			kept[count++] = logger->streams[i].file;
	}
	if (logger->ready >= 0)
		kept[count++] = logger->ready;
	if (logger->notes >= 0)
		kept[count++] = logger->notes;
	unsigned next = 0;
	while (next <= INT_MAX) {
		unsigned first = INT_MAX + 1u;
		for (int i = 0; i < count; i++)
			if ((unsigned)kept[i] >= next && (unsigned)kept[i] < first)
				first = (unsigned)kept[i];
		if (first > next)
			close_range(next, first - 1, 0);
		next = first + 1;
	}
}

/* A file, and what the job has written to it so far. */
struct output {
	struct sw_bounded_log log;
	bool is_mid_line;
	bool has_text, is_binary; /* of one that the user named for standard output */
};

static int open_file(const struct sw_logger *logger, const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (logger->spec->append ? 0 : O_TRUNC), 0666);
	if (fd < 0)
		give_up(logger, "cannot write its output to '%.300s': %s", path, strerror(errno));
	return fd;
}

static void open_files(const struct sw_logger *logger, struct output outputs[SW_LOGGER_STREAMS])
{
	const struct sw_run_spec *spec = logger->spec;
	int error = sw_become_user(spec->uid, spec->gid);
	if (error != 0)
		give_up(logger, "cannot become user %u of group %u: %s", spec->uid, spec->gid, strerror(error));
	umask(spec->umask);
	for (size_t i = 0; i < logger->count; i++) {
		int fd = logger->streams[i].file;
		const char *path = logger->streams[i].path;
		if (fd < 0) {
			if (path[0] != '/' && chdir(spec->workdir) != 0)
				give_up(logger, "cannot change to folder '%.300s': %s", spec->workdir, strerror(errno));
			fd = open_file(logger, path);
		}
		error = sw_bounded_log_init(&outputs[i].log, fd, spec->log_limit_bytes);
		if (error != 0)
			give_up(logger, "cannot write its output to '%.300s': %s", path != NULL ? path : "its folder",
				error == EINVAL ? "it is not a file" : strerror(error));
	}
}

static void add_to_tail(struct sw_log_tail *tail, const char *bytes, size_t size)
{
	uint64_t total = atomic_load_explicit(&tail->bytes, memory_order_relaxed);
	size_t kept = size < sizeof tail->ring ? size : sizeof tail->ring;
	uint64_t at = (total + size - kept) % sizeof tail->ring;
	size_t first = kept < sizeof tail->ring - at ? kept : (size_t)(sizeof tail->ring - at);
	memcpy(tail->ring + at, bytes + size - kept, first);
	memcpy(tail->ring, bytes + size - kept + first, kept - first);
	atomic_store_explicit(&tail->bytes, total + size, memory_order_release);
}

size_t sw_log_tail_copy(const struct sw_log_tail *tail, char ret_text[SW_FAILURE_TAIL])
{
	uint64_t total = atomic_load_explicit(&tail->bytes, memory_order_acquire);
	if (total <= sizeof tail->ring) {
		memcpy(ret_text, tail->ring, (size_t)total);
		return (size_t)total;
	}
	size_t begin = (size_t)(total % sizeof tail->ring);
	memcpy(ret_text, tail->ring + begin, sizeof tail->ring - begin);
	memcpy(ret_text + (sizeof tail->ring - begin), tail->ring, begin);
	return sizeof tail->ring;
}

static bool is_binary(const char *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		unsigned char c = (unsigned char)bytes[i];
		if (c < '\a' || (c > '\r' && c < ' ' && c != '\033'))
			return true;
	}
	return false;
}

/* True: there is more to come. */
static bool take(struct output *output, int pipe, char *buffer, struct sw_log_tail *tail, bool is_named)
{
	ssize_t n = read(pipe, buffer, STEP);
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return true;
	if (n <= 0)
		return false;
	sw_bounded_log_write(&output->log, buffer, (size_t)n);
	add_to_tail(tail, buffer, (size_t)n);
	output->is_mid_line = buffer[n - 1] != '\n';
	output->has_text = true;
	output->is_binary = output->is_binary || (is_named && is_binary(buffer, (size_t)n));
	return true;
}

/* Only standard output may be there for programs; a file for errors is for people. */
static bool is_for_output(const struct sw_logger *logger, size_t stream)
{
	return stream == 0 && logger->streams[0].path != NULL;
}

static void take_notes(const struct sw_logger *logger, struct output *outputs, char *buffer)
{
	struct output *output = &outputs[logger->count - 1];
	for (ssize_t n; logger->notes >= 0 && (n = read(logger->notes, buffer, STEP)) > 0;) {
		if (is_for_output(logger, logger->count - 1) && (!output->has_text || output->is_binary))
			continue;
		if (output->is_mid_line)
			sw_bounded_log_write(&output->log, "\n", 1);
		output->is_mid_line = false;
		sw_bounded_log_write(&output->log, buffer, (size_t)n);
	}
}

_Noreturn void sw_logger_run(const struct sw_logger *logger)
{
	static const int ignored[] = {SIGHUP, SIGINT, SIGTERM, SIGQUIT, SIGPIPE, SIGXFSZ, SIGUSR1, SIGUSR2};
	for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++)
		signal(ignored[i], SIG_IGN);
	close_others(logger);
	struct output outputs[SW_LOGGER_STREAMS] = {0};
	char *buffer = malloc(STEP);
	if (buffer == NULL)
		give_up(logger, "out of memory");
	open_files(logger, outputs);
	if (logger->ready >= 0) {
		(void)!write(logger->ready, "", 1);
		close(logger->ready);
	}
	struct pollfd polls[SW_LOGGER_STREAMS + 1];
	for (size_t i = 0; i < logger->count; i++)
		polls[i] = (struct pollfd){.fd = logger->streams[i].pipe, .events = POLLIN};
	polls[logger->count] = (struct pollfd){.fd = logger->notes, .events = POLLIN};
	for (size_t open_count = logger->count; open_count > 0;) {
		if (poll(polls, logger->count + 1, -1) < 0)
			continue;
		/* No process writes there any more: the supervisor is gone. */
		if ((polls[logger->count].revents & (POLLIN | POLLHUP)) == POLLHUP)
			polls[logger->count].fd = -1;
		/* First: what the job says to being stopped comes behind the line about it. */
		take_notes(logger, outputs, buffer);
		for (size_t i = 0; i < logger->count; i++)
			if (polls[i].fd >= 0 && polls[i].revents != 0 &&
			    !take(&outputs[i], polls[i].fd, buffer, logger->tail, is_for_output(logger, i))) {
				polls[i].fd = -1;
				open_count--;
			}
	}
	take_notes(logger, outputs, buffer);
	_exit(0);
}
