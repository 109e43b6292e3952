/* A backup of the journal for an operator, while the controller goes on. First comes a copy beside
 * the journal, in steps, then its bytes to the client.
 *
 * The copy has no name any more as soon as it is open: whatever happens, its space comes back.
 * One at a time. A client that gets a part only finds out by itself: the copy is a database
 * that says how large it is.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/answers.h"
#include "server/backup.h"
#include "server/connection.h"
#include "server/state.h"

#define PAUSE_US 1000 /* between two steps, for requests that wait */
#define PIECE ((size_t)64 << 10)

struct sw_backup {
	struct sw_server *server;
	struct sw_conn *conn;
	struct event *step;
	struct sw_journal_backup *copy; /* NULL: it is complete */
	char path[4200];		/* "": it has no name any more */
	int fd;
	off_t offset;
};

static void end(void *attached)
{
	struct sw_backup *backup = attached;
	backup->server->backup = NULL;
	if (backup->copy != NULL)
		sw_journal_backup_free(backup->copy);
	if (backup->path[0] != '\0')
		unlink(backup->path);
	if (backup->step != NULL)
		event_free(backup->step);
	if (backup->fd >= 0)
		close(backup->fd);
	free(backup);
}

/* The client leaves, or there is nothing more for it. */
static void finish(struct sw_backup *backup)
{
	struct sw_conn *conn = backup->conn;
	sw_conn_detach(conn);
	end(backup);
	sw_conn_end_stream(conn);
}

static void pump(void *attached)
{
	struct sw_backup *backup = attached;
	char piece[PIECE];
	while (backup->copy == NULL && sw_conn_has_room(backup->conn)) {
		ssize_t size = pread(backup->fd, piece, sizeof piece, backup->offset);
		if (size <= 0) {
			finish(backup);
			return;
		}
		backup->offset += size;
		sw_conn_write(backup->conn, piece, (size_t)size);
	}
}

static void schedule(struct sw_backup *backup)
{
	const struct timeval pause = {.tv_usec = PAUSE_US};
	evtimer_add(backup->step, &pause);
}

static void on_step(evutil_socket_t fd, short what, void *user)
{
	(void)fd;
	(void)what;
	struct sw_backup *backup = user;
	struct sw_server *server = backup->server;
	SW_HOLDS_LOOP(server);
	struct sw_err err = {0};
	bool more = true;
	/* The journal has one transaction at a time. */
	if (TAILQ_EMPTY(&server->batch.storing) && sw_journal_backup_step(backup->copy, &more, &err) < 0) {
		sw_server_note(server, "%s: %s", err.fact, err.detail);
		finish(backup);
		return;
	}
	if (more) {
		schedule(backup);
		return;
	}
	sw_journal_backup_free(backup->copy);
	backup->copy = NULL;
	unlink(backup->path);
	backup->path[0] = '\0';
	pump(backup);
}

static int begin(struct sw_backup *backup, struct sw_err *err)
{
	struct sw_server *server = backup->server;
	int size = snprintf(backup->path, sizeof backup->path, "%s.backup-XXXXXX", server->options->journal_path);
	backup->fd = size > 0 && (size_t)size < sizeof backup->path ? mkostemp(backup->path, O_CLOEXEC) : -1;
	if (backup->fd < 0) {
		int error = errno;
		backup->path[0] = '\0';
		sw_err_set(err, SW_EIO, "cannot make a copy beside the journal '%.200s'", server->options->journal_path);
		sw_err_detail(err, "%s", strerror(error));
		return SW_EIO;
	}
	backup->step = evtimer_new(server->base, on_step, backup);
	if (backup->step == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	/* What is on its way into the journal is with it a moment later. */
	return sw_journal_backup_begin(server->journal, backup->path, &backup->copy, err);
}

void sw_handle_backup(struct sw_server *server, struct sw_conn *conn)
{
	struct sw_err err = {0};
	if (server->backup != NULL || !TAILQ_EMPTY(&server->batch.storing)) {
		sw_err_set(&err, SW_ELIMIT, "a backup is being made already, or the journal is being written");
		sw_err_hint(&err, "Ask again in a moment.");
		sw_conn_reply_error(conn, 503, &err);
		return;
	}
	struct sw_backup *backup = calloc(1, sizeof *backup);
	if (backup == NULL) {
		sw_err_set(&err, SW_ENOMEM, "out of memory");
		sw_conn_reply_error(conn, 503, &err);
		return;
	}
	*backup = (struct sw_backup){.server = server, .conn = conn, .fd = -1};
	int r = begin(backup, &err);
	if (r < 0) {
		end(backup);
		sw_conn_reply_error(conn, sw_status_of(r), &err);
		return;
	}
	server->backup = backup;
	sw_conn_stream(conn, "application/vnd.sqlite3", NULL, pump);
	schedule(backup);
	/* Last: a client that has gone already takes the backup with it. */
	sw_conn_attach(conn, backup, end, false);
}
