/* What jobs wrote, from the folders that the agent on this machine keeps: a range, or as it comes.
 *
 * A run's output is <runs>/<job>.<epoch>/out.log while the agent keeps the run, and
 * <logs>/<job>.<epoch>.log afterwards. Files that a job asked for itself are not read here: their
 * paths are the user's, and the user can read them without us.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/number.h"
#include "server/answers.h"
#include "server/connection.h"
#include "server/logs.h"
#include "server/past.h"
#include "server/state.h"
#include "server/views.h"

#define PIECE ((size_t)64 << 10)
#define LOOK_MS 100

struct sw_reader {
	TAILQ_ENTRY(sw_reader) link;
	struct sw_server *server;
	struct sw_conn *conn;
	struct event *timer; /* NULL: does not follow */
	uint64_t job;
	uint32_t epoch; /* of the open file; 0: none yet */
	bool one_run;	/* never goes on to the next run */
	int fd;		/* -1: none */
	int64_t offset;
	uint64_t left; /* may still be sent */
};

static int open_regular(const char *path)
{
	struct stat info;
	/* Neither a link nor a pipe that a user put there leads elsewhere or holds us up. */
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0 && (fstat(fd, &info) < 0 || !S_ISREG(info.st_mode))) {
		close(fd);
		return -1;
	}
	return fd;
}

static int open_log(const struct sw_controller_options *options, uint64_t job, uint32_t epoch)
{
	SW_CLEANUP(sw_freep) char *running = NULL, *kept = NULL;
	int fd = -1;
	if (options->runs_folder != NULL && asprintf(&running, "%s/%" PRIu64 ".%u/out.log", options->runs_folder, job, epoch) > 0)
		fd = open_regular(running);
	if (fd < 0 && options->logs_folder != NULL && asprintf(&kept, "%s/%" PRIu64 ".%u.log", options->logs_folder, job, epoch) > 0)
		fd = open_regular(kept);
	return fd;
}

static void free_reader(void *attached)
{
	struct sw_reader *reader = attached;
	if (reader->timer != NULL) {
		event_free(reader->timer);
		TAILQ_REMOVE(&reader->server->followers, reader, link);
	}
	if (reader->fd >= 0)
		close(reader->fd);
	free(reader);
}

static void finish(struct sw_reader *reader)
{
	struct sw_conn *conn = reader->conn;
	sw_conn_detach(conn);
	free_reader(reader);
	sw_conn_end_stream(conn);
}

/* Sends what the open file has; true when it has been read to its end for now. */
static bool send_rest(struct sw_reader *reader)
{
	char piece[PIECE];
	while (reader->fd >= 0 && reader->left > 0) {
		if (!sw_conn_has_room(reader->conn))
			return false;
		size_t wanted = reader->left < PIECE ? (size_t)reader->left : PIECE;
		ssize_t got = pread(reader->fd, piece, wanted, reader->offset);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		sw_conn_write(reader->conn, piece, (size_t)got);
		reader->offset += got;
		if (reader->left != UINT64_MAX)
			reader->left -= (uint64_t)got;
	}
	return true;
}

/* Opens the log of the next run, if there is one. */
static bool go_on(struct sw_reader *reader, const struct sw_job_view *view)
{
	if (reader->one_run && reader->epoch != 0)
		return false;
	for (uint32_t epoch = reader->epoch + 1; epoch <= view->epoch; epoch++) {
		int fd = open_log(reader->server->options, reader->job, epoch);
		if (fd < 0)
			continue;
		if (reader->fd >= 0)
			close(reader->fd);
		reader->fd = fd;
		reader->epoch = epoch;
		reader->offset = 0;
		return true;
	}
	return false;
}

/* Sends what there is; the end comes when there is no more, and none will come. */
static void pump(void *attached)
{
	struct sw_reader *reader = attached;
	struct sw_job_view view;
	/* Before reading: what was written until the job ended is then there. */
	bool known = sw_brain_job(reader->server->brain, sw_server_now(reader->server), reader->job, &view);
	bool over = !known || view.ended_at != SW_TIME_NEVER || reader->timer == NULL;
	do {
		if (!send_rest(reader))
			return;
	} while (known && reader->timer != NULL && go_on(reader, &view));
	if (over || reader->left == 0 || (reader->one_run && reader->epoch < view.epoch))
		finish(reader);
}

static void on_timer(evutil_socket_t fd, short what, void *user)
{
	(void)fd;
	(void)what;
	struct sw_reader *reader = user;
	SW_HOLDS_LOOP(reader->server);
	pump(reader);
}

void sw_logs_wake(struct sw_server *server)
{
	struct sw_reader *reader = TAILQ_FIRST(&server->followers);
	while (reader != NULL) {
		struct sw_reader *next = TAILQ_NEXT(reader, link);
		struct sw_job_view view;
		if (sw_brain_job(server->brain, sw_server_now(server), reader->job, &view) && view.ended_at != SW_TIME_NEVER)
			pump(reader);
		reader = next;
	}
}

/* ---- the request */

/* Whether there is something to read for this peer; if not, it is told why. */
static bool admit(struct sw_server *server, struct sw_conn *conn, struct sw_found_job *seen)
{
	uint64_t id = sw_conn_request(conn)->job;
	struct sw_err err = {0};
	int status = 0;
	const struct sw_job_view *view = &seen->view;
	struct sw_job_request *job = NULL;
	if (!sw_find_job(server, id, seen)) {
		status = 404;
		sw_err_set(&err, SW_ENOTFOUND, "there is no job %" PRIu64, id);
	} else if (!sw_may_see(sw_conn_peer(conn), view)) {
		status = 403;
		sw_err_set(&err, SW_EDENIED, "job %" PRIu64 " belongs to another user", id);
	} else if ((status = sw_conn_admit_stream(conn, &err)) != 0) {
		;
	} else if (sw_job_request_decode(sw_job_stored, view->request, strlen(view->request), &job, &err) == 0 &&
		   job->stdout_path != NULL) {
		status = 409;
		sw_err_set(&err, SW_EINPUT, "the output of job %" PRIu64 " is not kept here", id);
		if (job->stdout_path[0] == '/' || job->workdir == NULL)
			sw_err_detail(&err, "it goes to '%.500s'", job->stdout_path);
		else
			sw_err_detail(&err, "it goes to '%.250s' in '%.250s'", job->stdout_path, job->workdir);
	}
	sw_job_request_free(job);
	if (status != 0)
		sw_conn_reply_error(conn, status, &err);
	return status == 0;
}

static void not_there(struct sw_conn *conn, const struct sw_job_view *view, uint32_t run)
{
	struct sw_err err = {0};
	sw_err_set(&err, SW_ENOTFOUND, "there is no output of job %" PRIu64 " here", view->id);
	if (view->epoch == 0)
		sw_err_detail(&err, "it has not run yet");
	else if (run > view->epoch)
		sw_err_detail(&err, "it has no run %u; its last is %u", run, view->epoch);
	else
		sw_err_detail(&err, "it ran on node '%s'; its output was removed, or is kept there", view->node);
	sw_conn_reply_error(conn, 404, &err);
}

/* A negative offset counts from the end; one beyond the end is the end. */
static int64_t place_in(int fd, int64_t offset, int64_t *ret_size)
{
	struct stat info = {0};
	if (fd < 0 || fstat(fd, &info) < 0)
		info.st_size = 0;
	*ret_size = info.st_size;
	if (offset < 0)
		offset = offset < -info.st_size ? 0 : info.st_size + offset;
	return offset > info.st_size ? info.st_size : offset;
}

static bool follow(struct sw_server *server, struct sw_reader *reader)
{
	struct timeval each = {.tv_usec = LOOK_MS * 1000};
	reader->timer = event_new(server->base, -1, EV_PERSIST, on_timer, reader);
	if (reader->timer == NULL)
		return false;
	TAILQ_INSERT_TAIL(&server->followers, reader, link);
	return event_add(reader->timer, &each) == 0;
}

void sw_logs_read(struct sw_server *server, struct sw_conn *conn)
{
	const struct sw_request *request = sw_conn_request(conn);
	SW_CLEANUP(sw_found_release) struct sw_found_job seen;
	struct sw_err err = {0};
	if (!admit(server, conn, &seen))
		return;
	const struct sw_job_view view = seen.view;
	uint32_t epoch = request->logs.run != 0 ? request->logs.run : view.epoch;
	int fd = epoch != 0 ? open_log(server->options, view.id, epoch) : -1;
	if (fd < 0 && !(request->logs.follow && view.ended_at == SW_TIME_NEVER)) {
		not_there(conn, &view, epoch);
		return;
	}
	struct sw_reader *reader = calloc(1, sizeof *reader);
	int64_t size, offset = place_in(fd, request->logs.offset, &size);
	if (reader != NULL)
		*reader = (struct sw_reader){.server = server,
					     .conn = conn,
					     .job = view.id,
					     .epoch = fd >= 0	  ? epoch
						      : epoch > 0 ? epoch - 1
								  : 0,
					     .one_run = request->logs.run != 0,
					     .fd = fd,
					     .offset = offset,
					     .left = request->logs.limit};
	if (reader == NULL || (request->logs.follow && !follow(server, reader))) {
		if (reader != NULL)
			free_reader(reader);
		else if (fd >= 0)
			close(fd);
		sw_err_set(&err, SW_ENOMEM, "out of memory");
		sw_conn_reply_error(conn, 503, &err);
		return;
	}
	char headers[128];
	snprintf(headers, sizeof headers, "Sharewell-Log-Size: %" PRId64 "\r\nSharewell-Log-Offset: %" PRId64 "\r\n", size, offset);
	sw_conn_stream(conn, "text/plain; charset=utf-8", headers, pump);
	sw_conn_attach(conn, reader, free_reader, false);
	pump(reader);
}
