#include "agent/processes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/number.h"

enum { DEPTH_MAX = 10000, ENVIRONMENT_MAX = 4 << 20 };

/* Reads a small file of /proc; the number of bytes, or -1. */
static ssize_t read_small(const char *path, char *buffer, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	size_t used = 0;
	while (used + 1 < size) {
		ssize_t n = read(fd, buffer + used, size - 1 - used);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		used += (size_t)n;
	}
	close(fd);
	buffer[used] = '\0';
	return (ssize_t)used;
}

bool sw_process_read(pid_t pid, struct sw_process *ret_process)
{
	char path[40], text[1024];
	snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
	if (read_small(path, text, sizeof text) <= 0)
		return false;
	/* The name in parentheses may hold anything; what follows its last
	 * parenthesis is regular. */
	const char *rest = strrchr(text, ')');
	struct sw_process process = {.pid = pid};
	long parent, session, threads;
	unsigned long long user, system, started, rss;
	if (rest == NULL || sscanf(rest + 1, " %c %ld %*d %ld %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %ld %*d %llu %*u %llu",
				   &process.state, &parent, &session, &user, &system, &threads, &started, &rss) != 8)
		return false;
	process.parent = (pid_t)parent;
	process.session = (pid_t)session;
	process.threads = threads;
	process.cpu_ticks = user + system;
	process.started = started;
	process.rss_pages = rss;
	*ret_process = process;
	return true;
}

static int compare_pids(const void *a, const void *b)
{
	pid_t left = ((const struct sw_process *)a)->pid, right = ((const struct sw_process *)b)->pid;
	return left < right ? -1 : left > right;
}

int sw_processes_read(struct sw_processes *processes)
{
	processes->list.count = 0;
	DIR *stream = opendir("/proc");
	if (stream == NULL)
		return SW_EIO;
	int r = 0;
	for (const struct dirent *entry; r == 0 && (entry = readdir(stream)) != NULL;) {
		uint64_t pid;
		struct sw_process process;
		if (sw_parse_u64(entry->d_name, strlen(entry->d_name), &pid) < 0 || pid > INT32_MAX ||
		    !sw_process_read((pid_t)pid, &process))
			continue;
		struct sw_process *slot = sw_vec_push(&processes->list);
		if (slot == NULL)
			r = SW_ENOMEM;
		else
			*slot = process;
	}
	closedir(stream);
	if (processes->list.count > 1)
		qsort(processes->list.items, processes->list.count, sizeof *processes->list.items, compare_pids);
	return r;
}

void sw_processes_release(struct sw_processes *processes)
{
	sw_vec_free(&processes->list);
}

static struct sw_process *find(const struct sw_processes *processes, pid_t pid)
{
	if (processes->list.count == 0)
		return NULL;
	const struct sw_process key = {.pid = pid};
	return bsearch(&key, processes->list.items, processes->list.count, sizeof key, compare_pids);
}

/* Its first thread may have ended before others. */
static bool is_alive(const struct sw_process *process)
{
	return (process->state != 'Z' && process->state != 'X' && process->state != 'x') || process->threads > 1;
}

static bool is_in(pid_t pid, const pid_t *list)
{
	while (list != NULL && *list != 0)
		if (*list++ == pid)
			return true;
	return false;
}

/* Follows the parents until the answer is known. */
static bool descends(const struct sw_processes *processes, const struct sw_process *process, pid_t root, const pid_t *except)
{
	for (int depth = 0; process != NULL && depth < DEPTH_MAX; depth++) {
		if (is_in(process->pid, except))
			return false;
		if (process->visited)
			return process->chosen;
		if (process->parent == root)
			return true;
		process = process->parent > 0 ? find(processes, process->parent) : NULL;
	}
	return false;
}

size_t sw_processes_choose_tree(struct sw_processes *processes, pid_t root, const pid_t *except)
{
	size_t living = 0;
	for (size_t i = 0; i < processes->list.count; i++)
		processes->list.items[i].visited = false;
	for (size_t i = 0; i < processes->list.count; i++) {
		struct sw_process *process = &processes->list.items[i];
		process->chosen = process->pid != root && descends(processes, process, root, except);
		process->visited = process->pid != root && !is_in(process->pid, except);
		living += process->chosen && is_alive(process);
	}
	return living;
}

static bool has_variable(pid_t pid, const char *variable, char *buffer)
{
	char path[40];
	snprintf(path, sizeof path, "/proc/%ld/environ", (long)pid);
	ssize_t size = read_small(path, buffer, ENVIRONMENT_MAX);
	for (ssize_t at = 0; at < size; at += (ssize_t)strlen(buffer + at) + 1)
		if (strcmp(buffer + at, variable) == 0)
			return true;
	return false;
}

/* Whether the number still means that session: its first process is gone, or still the same. */
static bool is_current(const struct sw_processes *processes, const struct sw_session *session)
{
	const struct sw_process *first = find(processes, session->id);
	return first == NULL || first->started == session->started;
}

size_t sw_processes_choose_run(struct sw_processes *processes, const char *mark, const struct sw_session *session, pid_t except)
{
	SW_CLEANUP(sw_freep) char *buffer = malloc(ENVIRONMENT_MAX);
	size_t living = 0;
	if (session != NULL && !is_current(processes, session))
		session = NULL;
	for (size_t i = 0; i < processes->list.count; i++) {
		struct sw_process *process = &processes->list.items[i];
		bool is_member = session != NULL && process->session == session->id && process->started >= session->started;
		process->chosen = process->pid != except && is_alive(process) &&
				  (is_member || (buffer != NULL && has_variable(process->pid, mark, buffer)));
		living += process->chosen;
	}
	return living;
}

/* Whether SIGSTOP waits to be delivered to the process. */
static bool has_pending_stop(pid_t pid)
{
	char path[40], text[8192];
	snprintf(path, sizeof path, "/proc/%ld/status", (long)pid);
	if (read_small(path, text, sizeof text) <= 0)
		return true; /* gone */
	const char *pending = strstr(text, "\nShdPnd:");
	return pending != NULL && (strtoull(pending + strlen("\nShdPnd:"), NULL, 16) >> (SIGSTOP - 1) & 1) != 0;
}

/* Whether some thread of the process is stopped and none can run. */
static bool has_stopped_thread(pid_t pid)
{
	char path[64], text[1024];
	snprintf(path, sizeof path, "/proc/%ld/task", (long)pid);
	DIR *stream = opendir(path);
	bool stopped = false, moves = false;
	for (const struct dirent *entry; stream != NULL && (entry = readdir(stream)) != NULL;) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof path, "/proc/%ld/task/%.20s/stat", (long)pid, entry->d_name);
		const char *rest = read_small(path, text, sizeof text) > 0 ? strrchr(text, ')') : NULL;
		if (rest == NULL)
			continue;
		stopped |= rest[2] == 'T' || rest[2] == 't';
		moves |= rest[2] == 'R' || rest[2] == 'S';
	}
	if (stream != NULL)
		closedir(stream);
	return stopped && !moves;
}

/* A process may wait in the kernel, for a disk or for a child made by vfork() that stands still
 * itself. It stops when it leaves the kernel, and runs no code of its own before. */
static bool is_stopped(const struct sw_process *process)
{
	if (process->state == 'T' || process->state == 't')
		return true;
	if (process->state == 'Z')
		return has_stopped_thread(process->pid);
	return process->state == 'D' && (has_pending_stop(process->pid) || has_stopped_thread(process->pid));
}

bool sw_processes_are_stopped(const struct sw_processes *processes)
{
	for (size_t i = 0; i < processes->list.count; i++) {
		const struct sw_process *process = &processes->list.items[i];
		if (process->chosen && is_alive(process) && !is_stopped(process))
			return false;
	}
	return true;
}

/* 0 or an errno; a process that is gone is fine. */
static int signal_one(const struct sw_process *process, int signal)
{
	int fd = (int)syscall(SYS_pidfd_open, process->pid, 0);
	if (fd < 0 && errno == ENOSYS) /* an old kernel */
		return kill(process->pid, signal) != 0 && errno != ESRCH ? errno : 0;
	if (fd < 0)
		return errno == ESRCH ? 0 : errno;
	struct sw_process now;
	int error = 0;
	if (sw_process_read(process->pid, &now) && now.started == process->started && is_alive(&now) &&
	    syscall(SYS_pidfd_send_signal, fd, signal, NULL, 0) != 0 && errno != ESRCH)
		error = errno;
	close(fd);
	return error;
}

size_t sw_processes_signal(const struct sw_processes *processes, int signal)
{
	size_t refused = 0;
	for (size_t i = 0; i < processes->list.count; i++)
		if (processes->list.items[i].chosen && is_alive(&processes->list.items[i]))
			refused += signal_one(&processes->list.items[i], signal) != 0;
	return refused;
}

bool sw_process_has_children(pid_t except)
{
	char path[64], text[256], own[16];
	snprintf(path, sizeof path, "/proc/self/task/%ld/children", (long)getpid());
	ssize_t size = read_small(path, text, sizeof text);
	if (size < 0)
		return true;
	snprintf(own, sizeof own, "%ld ", (long)except);
	return size > 0 && strcmp(text, own) != 0;
}
