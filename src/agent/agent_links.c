/* Supervisors: how they are started, found again, spoken to, and how their end is noticed. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>

#include "agent/agent_links.h"
#include "agent/agent_state.h"
#include "agent/control.h"
#include "agent/folder.h"
#include "agent/supervisor/nursery.h"
#include "base/cleanup.h"

enum { FIRST_WAIT_MS = 10, LONGEST_WAIT_MS = 1000, LINE_MAX_BYTES = 1 << 20 };

/* ---- the nursery */

/* Between fork and exec. The nursery has its own session; what it says (only when it breaks) goes
 * to a file, so that it keeps no terminal. */
static _Noreturn void become_nursery(const struct sw_agent *agent, int socket)
{
	int words = openat(agent->state, "supervisors.err", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (words < 0)
		words = null;
	setsid();
	/* Twice: so no process has it as a child or must wait for it. */
	pid_t pid = fork();
	if (pid != 0)
		_exit(pid > 0 ? 0 : 1);
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setrlimit(RLIMIT_NOFILE, &agent->open_files);
	dup2(socket, 0);
	dup2(null, 1);
	dup2(words, 2);
	const char *program = agent->options->supervisor != NULL ? agent->options->supervisor : "/proc/self/exe";
	execl(program, "sharewell", "supervise", "-", (char *)NULL);
	dprintf(2, "cannot run '%s': %s\n", program, strerror(errno));
	_exit(127);
}

int sw_agent_nursery_start(struct sw_agent *agent, struct sw_err *err)
{
	int ends[2];
	if (agent->nursery >= 0)
		close(agent->nursery);
	agent->nursery = -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return sw_err_set(err, SW_EIO, "cannot start supervisors: %s", strerror(errno));
	pid_t pid = fork();
	if (pid == 0)
		become_nursery(agent, ends[1]);
	close(ends[1]);
	int status = 1;
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) {
		close(ends[0]);
		return sw_err_set(err, SW_EIO, "cannot start supervisors: %s", pid < 0 ? strerror(errno) : "fork failed");
	}
	agent->nursery = ends[0];
	return 0;
}

/* ---- links */

static size_t place_of(const struct sw_agent *agent, struct sw_run_id id)
{
	size_t low = 0, high = agent->links.count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (sw_run_id_compare(agent->links.items[middle].link->id, id) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct sw_link *find(const struct sw_agent *agent, struct sw_run_id id)
{
	size_t place = place_of(agent, id);
	bool found = place < agent->links.count && sw_run_id_compare(agent->links.items[place].link->id, id) == 0;
	return found ? agent->links.items[place].link : NULL;
}

static void on_timer(evutil_socket_t fd, short what, void *context)
{
	(void)fd, (void)what;
	struct sw_link *link = context;
	struct sw_agent *agent = link->agent;
	if (link->unborn)
		sw_agent_spawn(agent, link->id);
	else
		sw_agent_check(agent, link->id);
	sw_agent_pump(agent);
}

/* The link of a run, made if there is none; NULL: out of memory. */
static struct sw_link *get(struct sw_agent *agent, struct sw_run_id id)
{
	struct sw_link *link = find(agent, id);
	if (link != NULL)
		return link;
	link = calloc(1, sizeof *link);
	struct event *timer = link != NULL ? evtimer_new(agent->base, on_timer, link) : NULL;
	if (timer == NULL || sw_vec_push(&agent->links) == NULL) {
		if (timer != NULL)
			event_free(timer);
		free(link);
		return NULL;
	}
	*link = (struct sw_link){.agent = agent, .id = id, .timer = timer, .wait_ms = FIRST_WAIT_MS};
	agent->links.count--;
	size_t place = place_of(agent, id);
	memmove(&agent->links.items[place + 1], &agent->links.items[place], (agent->links.count - place) * sizeof *agent->links.items);
	agent->links.items[place].link = link;
	agent->links.count++;
	return link;
}

static void close_stream(struct sw_link *link)
{
	if (link->stream == NULL)
		return;
	bufferevent_free(link->stream);
	link->stream = NULL;
	sw_agent_brain_link(link->agent->brain, link->id, false);
}

void sw_agent_unlink(struct sw_agent *agent, struct sw_run_id id)
{
	struct sw_link *link = find(agent, id);
	if (link == NULL)
		return;
	close_stream(link);
	event_free(link->timer);
	size_t place = place_of(agent, id);
	agent->links.count--;
	memmove(&agent->links.items[place], &agent->links.items[place + 1], (agent->links.count - place) * sizeof *agent->links.items);
	free(link);
}

static void check_later(struct sw_link *link)
{
	struct timeval wait = {.tv_sec = link->wait_ms / 1000, .tv_usec = link->wait_ms % 1000 * 1000};
	evtimer_add(link->timer, &wait);
	link->wait_ms = link->wait_ms * 2 < LONGEST_WAIT_MS ? link->wait_ms * 2 : LONGEST_WAIT_MS;
}

/* ---- what supervisors say */

/* What its supervisor could not do for a run. Logged once per run, and not if the last
 * logged note is the same. */
static void hear_note(struct sw_link *link, const char *note)
{
	struct sw_agent *agent = link->agent;
	if (note == NULL || link->noted)
		return;
	link->noted = true;
	if (strncmp(note, agent->noted, sizeof agent->noted - 1) == 0)
		return;
	snprintf(agent->noted, sizeof agent->noted, "%.299s", note);
	sw_agent_say(agent, "job %" PRIu64 ": %s", link->id.job, agent->noted);
}

/* True: the run is over, and its link gone. */
static bool take_account(struct sw_agent *agent, const struct sw_run_account *account)
{
	sw_agent_brain_said(agent->brain, &account->run, account->order);
	if (account->run.state != SW_RUN_EXITED)
		return false;
	sw_agent_unlink(agent, account->run.id);
	return true;
}

static void on_words(struct bufferevent *stream, void *context)
{
	struct sw_link *link = context;
	struct sw_agent *agent = link->agent;
	bool over = false;
	while (!over) {
		size_t size;
		SW_CLEANUP(sw_freep) char *line = evbuffer_readln(bufferevent_get_input(stream), &size, EVBUFFER_EOL_LF);
		if (line == NULL)
			break;
		SW_CLEANUP(sw_run_account_freep) struct sw_run_account *account = NULL;
		if (sw_run_account_decode(line, size, &account, NULL) < 0 || sw_run_id_compare(account->run.id, link->id) != 0)
			continue;
		link->wait_ms = FIRST_WAIT_MS;
		hear_note(link, account->note);
		over = take_account(agent, account);
	}
	sw_agent_pump(agent);
}

static void on_end(struct bufferevent *stream, short what, void *context)
{
	(void)stream, (void)what;
	struct sw_link *link = context;
	struct sw_agent *agent = link->agent;
	close_stream(link);
	/* A supervisor that ends well says so first. What ends without a word may do so again
	 * at once: do not hurry. */
	check_later(link);
	sw_agent_pump(agent);
}

static void use_stream(struct sw_link *link, int fd)
{
	close_stream(link);
	link->stream = bufferevent_socket_new(link->agent->base, fd, BEV_OPT_CLOSE_ON_FREE);
	if (link->stream == NULL) {
		close(fd);
		check_later(link);
		return;
	}
	bufferevent_setcb(link->stream, on_words, NULL, on_end, link);
	bufferevent_setwatermark(link->stream, EV_READ, 0, LINE_MAX_BYTES);
	bufferevent_enable(link->stream, EV_READ | EV_WRITE);
	sw_agent_brain_link(link->agent->brain, link->id, true);
}

void sw_agent_tell(struct sw_agent *agent, struct sw_run_id id, const char *fmt, ...)
{
	struct sw_link *link = find(agent, id);
	if (link == NULL || link->stream == NULL)
		return;
	va_list args;
	va_start(args, fmt);
	evbuffer_add_vprintf(bufferevent_get_output(link->stream), fmt, args);
	va_end(args);
}

/* ---- starting and finding */

/* Asks the nursery; a nursery that died is replaced. 0 or an errno. */
static int ask(struct sw_agent *agent, struct sw_run_id id, int link)
{
	char name[SW_FOLDER_NAME_MAX];
	SW_CLEANUP(sw_freep) char *path = NULL;
	if (asprintf(&path, "%s/%s", agent->runs_path, sw_folder_name(id, name)) < 0)
		return ENOMEM;
	int error = agent->nursery >= 0 ? sw_nursery_ask(agent->nursery, path, link) : EPIPE;
	if ((error == EPIPE || error == ECONNRESET || error == ENOTCONN) && sw_agent_nursery_start(agent, NULL) == 0)
		error = sw_nursery_ask(agent->nursery, path, link);
	return error;
}

void sw_agent_spawn(struct sw_agent *agent, struct sw_run_id id)
{
	struct sw_link *link = get(agent, id);
	if (link == NULL)
		return;
	int ends[2];
	int error = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0 ? errno : 0;
	if (error == 0) {
		error = ask(agent, id, ends[1]);
		close(ends[1]);
		if (error != 0)
			close(ends[0]);
	}
	/* A nursery that has much to do is asked again: the folder sees to it that only one of
	 * several supervisors does anything. */
	link->unborn = error != 0;
	if (error == 0) {
		use_stream(link, ends[0]);
		return;
	}
	if (error != EAGAIN)
		sw_agent_say(agent, "cannot start the supervisor of job %llu yet: %s", (unsigned long long)id.job, strerror(error));
	check_later(link);
}

static void say_gone(struct sw_agent *agent, struct sw_run_id id, const char *detail)
{
	struct sw_sync_run run = {.id = id, .state = SW_RUN_EXITED, .reason = SW_REASON_SUPERVISOR_LOST, .detail = detail};
	sw_agent_brain_said(agent->brain, &run, 0);
	sw_agent_unlink(agent, id);
}

/* True: the exit is recorded, and taken. */
static bool take_exit(struct sw_agent *agent, struct sw_run_id id, int folder)
{
	SW_CLEANUP(sw_run_account_freep) struct sw_run_account *account = NULL;
	struct sw_err err = {0};
	int r = sw_folder_account(folder, "exit.json", &account, &err);
	if (r == SW_ENOTFOUND)
		return false;
	if (r == 0 && account->run.state == SW_RUN_EXITED && sw_run_id_compare(account->run.id, id) == 0)
		take_account(agent, account);
	else
		say_gone(agent, id, "how it ended was recorded, but cannot be read");
	return true;
}

void sw_agent_check(struct sw_agent *agent, struct sw_run_id id)
{
	struct sw_link *link = get(agent, id);
	if (link == NULL || link->stream != NULL)
		return;
	char name[SW_FOLDER_NAME_MAX];
	int folder = -1;
	int r = sw_folder_open(agent->runs, sw_folder_name(id, name), &folder, NULL);
	if (r == SW_ENOTFOUND) {
		say_gone(agent, id, "its folder is gone");
		return;
	}
	if (r < 0) {
		check_later(link);
		return;
	}
	int fd = -1;
	if (take_exit(agent, id, folder)) {
		/* nothing more to do */
	} else if (sw_folder_is_locked(folder, "spec.json")) {
		if (sw_control_connect(folder, &fd) == 0) {
			use_stream(link, fd);
			sw_agent_tell(agent, id, "status\n");
		} else {
			check_later(link);
		}
	} else if (!take_exit(agent, id, folder)) {
		/* The second look was for one that ended between the first and the question. */
		sw_agent_brain_lost(agent->brain, id, sw_folder_has(folder, "pid") || sw_folder_has(folder, "lost"));
	}
	close(folder);
}
