/* From the order to a running job: pipes, the log writer, then the job itself. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/folder.h"
#include "agent/supervisor/account.h"
#include "agent/supervisor/begin.h"
#include "agent/supervisor/launch.h"
#include "agent/supervisor/logger.h"
#include "agent/supervisor/recover.h"
#include "agent/supervisor/state.h"
#include "agent/supervisor/tree.h"
#include "base/now.h"

enum { PIPE_SIZE = 1 << 20 };

static void fail(struct sw_supervisor *supervisor, int code, const char *detail)
{
	sw_supervisor_blame(supervisor, SW_REASON_LAUNCH, detail);
	supervisor->account.run.code = (uint32_t)code;
}

/* Ends a run whose job has no process. */
static void fail_early(struct sw_supervisor *supervisor, const char *what, int error)
{
	char detail[400];
	snprintf(detail, sizeof detail, "%s: %s", what, strerror(error));
	fail(supervisor, 125, detail);
	sw_supervisor_drain(supervisor);
}

static void close_if_open(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* A pipe whose reading end goes to the log writer; 0 or an errno. */
static int open_stream(struct sw_supervisor *supervisor, int stream, int *ret_read)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) != 0)
		return errno;
	/* More room lets the job run on while the disk is slow. */
	(void)fcntl(ends[0], F_SETPIPE_SZ, PIPE_SIZE);
	supervisor->streams[stream] = ends[1];
	*ret_read = ends[0];
	return 0;
}

/* Where a stream goes; the default file is in the run's folder and opened here, since the user may
 * not enter that. 0 or an errno. */
static int choose_file(struct sw_supervisor *supervisor, struct sw_logger *logger, const char *path, const char *preset)
{
	int file = -1;
	if (path == NULL) {
		file = openat(supervisor->folder, preset, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (file < 0)
			return errno;
	}
	logger->streams[logger->count].file = file;
	logger->streams[logger->count].path = path;
	return 0;
}

static bool is_split(const struct sw_run_spec *spec)
{
	return spec->stderr_path != NULL && (spec->stdout_path == NULL || strcmp(spec->stdout_path, spec->stderr_path) != 0);
}

/* The way for lines of our own; a run whose log has none of these is better than none. */
static void open_notes(struct sw_supervisor *supervisor, struct sw_logger *logger)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
		return;
	logger->notes = ends[0];
	supervisor->notes = ends[1];
}

/* Pipes and files of the log writer; 0 or an errno. */
static int set_up_streams(struct sw_supervisor *supervisor, struct sw_logger *logger)
{
	const struct sw_run_spec *spec = supervisor->spec;
	const char *paths[SW_LOGGER_STREAMS] = {spec->stdout_path, spec->stderr_path};
	size_t count = is_split(spec) ? 2 : 1;
	for (size_t i = 0; i < count; i++) {
		int error = choose_file(supervisor, logger, paths[i], "out.log");
		if (error == 0)
			error = open_stream(supervisor, (int)i, &logger->streams[i].pipe);
		if (error != 0) {
			close_if_open(&logger->streams[i].file);
			return error;
		}
		logger->count++;
	}
	open_notes(supervisor, logger);
	return 0;
}

static void close_logger_ends(struct sw_logger *logger)
{
	for (size_t i = 0; i < logger->count; i++) {
		close_if_open(&logger->streams[i].pipe);
		close_if_open(&logger->streams[i].file);
	}
	close_if_open(&logger->ready);
	close_if_open(&logger->notes);
}

static void start_job(struct sw_supervisor *supervisor)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
		fail_early(supervisor, "cannot make a pipe", errno);
		return;
	}
	struct sw_launch launch = {
		.order = supervisor->order,
		.token = supervisor->token,
		.supervisor = getpid(),
		.out = supervisor->streams[0],
		.err = supervisor->streams[1] >= 0 ? supervisor->streams[1] : supervisor->streams[0],
		.cgroup_procs = sw_cgroup_procs(&supervisor->cgroup),
		.report = ends[1],
		.gpu_page = supervisor->gpu.page != NULL ? supervisor->gpu.path : NULL,
		.gpu_library = supervisor->order->gpu_library,
	};
	supervisor->account.run.started_at_ns = sw_now_real_ns();
	pid_t pid = fork();
	if (pid == 0)
		sw_launch_exec(&launch);
	int error = errno;
	close(ends[1]);
	close_if_open(&launch.cgroup_procs);
	close_if_open(&supervisor->streams[0]);
	close_if_open(&supervisor->streams[1]);
	if (pid < 0) {
		close(ends[0]);
		fail_early(supervisor, "cannot fork", error);
		return;
	}
	supervisor->job = pid;
	supervisor->account.run.pid = (uint32_t)pid;
	supervisor->report = ends[0];
	supervisor->stage = SW_STAGE_LAUNCHING;
	sw_supervisor_note_session(supervisor);
}

/* 0 or an errno; then the ends stay open. */
static int start_logger(struct sw_supervisor *supervisor)
{
	pid_t pid = fork();
	if (pid == 0)
		sw_logger_run(&supervisor->log);
	if (pid < 0)
		return errno;
	close_logger_ends(&supervisor->log);
	supervisor->logger = pid;
	return 0;
}

void sw_supervisor_begin(struct sw_supervisor *supervisor)
{
	struct sw_logger *logger = &supervisor->log;
	*logger = (struct sw_logger){.spec = supervisor->spec, .tail = supervisor->tail, .ready = -1, .notes = -1};
	for (int i = 0; i < SW_LOGGER_STREAMS; i++)
		logger->streams[i].pipe = logger->streams[i].file = -1;
	int error = set_up_streams(supervisor, logger);
	bool opens_files = supervisor->spec->stdout_path != NULL || supervisor->spec->stderr_path != NULL;
	int ends[2] = {-1, -1};
	if (error == 0 && opens_files && pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
		error = errno;
	logger->ready = ends[1];
	if (error == 0 && opens_files)
		error = start_logger(supervisor);
	if (error != 0) {
		close_if_open(&ends[0]);
		close_logger_ends(logger);
		fail_early(supervisor, "cannot set up its log", error);
		return;
	}
	supervisor->ready = ends[0];
	if (!opens_files)
		start_job(supervisor);
}

int sw_supervisor_unread(const struct sw_supervisor *supervisor)
{
	return supervisor->log.count > 0 ? supervisor->log.streams[0].pipe : -1;
}

void sw_supervisor_on_output(struct sw_supervisor *supervisor)
{
	struct pollfd pipe = {.fd = supervisor->log.streams[0].pipe, .events = POLLIN};
	/* All that could write are gone, and have not written. */
	if (poll(&pipe, 1, 0) == 1 && pipe.revents == POLLHUP)
		close_logger_ends(&supervisor->log);
	else if (start_logger(supervisor) != 0)
		nanosleep(&(struct timespec){.tv_nsec = 50 * SW_NS_PER_MS},
			  NULL); /* there is no room for a process now; the pipe keeps it */
}

void sw_supervisor_on_ready(struct sw_supervisor *supervisor)
{
	char text[512];
	ssize_t n = read(supervisor->ready, text, sizeof text - 1);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	close_if_open(&supervisor->ready);
	if (supervisor->stage != SW_STAGE_PREPARING)
		return;
	text[n > 0 ? n : 0] = '\0';
	if (n == 1) {
		start_job(supervisor);
		return;
	}
	fail(supervisor, 125, n > 0 ? text : "its log writer died");
	sw_supervisor_drain(supervisor);
}

void sw_supervisor_on_report(struct sw_supervisor *supervisor)
{
	struct sw_launch_failure failure;
	ssize_t n;
	while ((n = read(supervisor->report, &failure, sizeof failure)) == (ssize_t)sizeof failure && failure.code == 0)
		sw_supervisor_add_note(supervisor, failure.detail);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	close_if_open(&supervisor->report);
	if (n == (ssize_t)sizeof failure) {
		/* Its exit code is the same; the words are known here alone. */
		fail(supervisor, failure.code, failure.detail);
		return;
	}
	if (supervisor->stage != SW_STAGE_LAUNCHING)
		return;
	supervisor->stage = SW_STAGE_RUNNING;
	supervisor->running_since_ns = sw_now_boot_ns();
	sw_supervisor_enter(supervisor, SW_RUN_RUNNING);
	if (!supervisor->suspends_first)
		return;
	supervisor->suspends_first = false;
	sw_supervisor_suspend(supervisor, supervisor->deep_first);
}
