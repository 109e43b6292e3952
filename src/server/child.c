/* Nothing that a child does can hold up or harm the controller. It has no file of it but its
 * standard error, where the text of a failed assertion goes, and ends at its limits.
 *
 * The kernel ends it after its processor time, or its time of any kind. Its memory is bounded, and
 * where the machine runs out of it the child goes first. It has a low priority, so that it takes
 * only what the controller and the jobs on this machine leave. It ends with the controller.
 */
#include "server/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NICE 10

/* ---- in the child */

bool sw_child_write(const void *bytes, size_t size)
{
	const char *at = bytes;
	while (size > 0) {
		ssize_t got = write(STDIN_FILENO, at, size);
		if (got <= 0)
			return false;
		at += got;
		size -= (size_t)got;
	}
	return true;
}

static void write_score(void)
{
	int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (file < 0)
		return;
	/* Where it may not say so, it goes when others do. */
	while (write(file, "1000", 4) < 0 && errno == EINTR)
		;
	close(file);
}

/* Where there is no /proc, nothing is bound. */
static bool bound_memory(uint64_t more_bytes)
{
	char text[64] = "";
	struct rlimit limit;
	int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	ssize_t got = file >= 0 ? read(file, text, sizeof text - 1) : -1;
	if (file >= 0)
		close(file);
	if (got <= 0 || getrlimit(RLIMIT_AS, &limit) < 0)
		return got <= 0;
	uint64_t bytes = strtoull(text, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE) + more_bytes;
	limit.rlim_cur = bytes < limit.rlim_cur ? bytes : limit.rlim_cur; /* a lower one stays */
	return setrlimit(RLIMIT_AS, &limit) == 0;
}

/* Never comes back. It has no business with the journal, the clients or the signals of its
 * parent. */
static void be_child(const struct sw_child_task *task, int file, int end, pid_t parent)
{
	static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGALRM, SIGXCPU};
	const struct rlimit time = {task->cpu_s, task->cpu_s}, none = {0, 0};
	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
		signal(numbers[i], SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, task->name);
	if (getppid() != parent || dup2(file, STDIN_FILENO) < 0 || dup2(end, STDOUT_FILENO) < 0)
		_exit(1);
	/* A connection that the controller closes must not stay open here. */
	closefrom(STDERR_FILENO + 1);
	write_score();
	setpriority(PRIO_PROCESS, 0, NICE);
	setrlimit(RLIMIT_CORE, &none);
	if (setrlimit(RLIMIT_CPU, &time) < 0 || !bound_memory(task->more_bytes))
		_exit(1);
	alarm(task->alarm_s);
	_exit(task->run(task->work) ? 0 : 1);
}

/* ---- in the controller */

int sw_child_start(const struct sw_child_task *task, struct sw_child *ret_child, struct sw_err *err)
{
	pid_t parent = getpid(), pid = -1;
	int ends[2] = {-1, -1}, file = memfd_create(task->name, MFD_CLOEXEC);
	if (file >= 0 && pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0)
		pid = fork();
	if (pid == 0)
		be_child(task, file, ends[1], parent);
	int error = errno;
	if (ends[1] >= 0)
		close(ends[1]);
	if (pid > 0) {
		*ret_child = (struct sw_child){pid, file, ends[0]};
		return 0;
	}
	if (ends[0] >= 0)
		close(ends[0]);
	if (file >= 0)
		close(file);
	sw_err_set(err, SW_EIO, "no process for %s", task->purpose);
	sw_err_detail(err, "%s", strerror(error));
	return SW_EIO;
}

static int map_file(int file, struct sw_child_result *ret_result)
{
	struct stat found;
	if (fstat(file, &found) < 0 || found.st_size == 0)
		return SW_EIO;
	void *map = mmap(NULL, (size_t)found.st_size, PROT_READ, MAP_PRIVATE, file, 0);
	if (map == MAP_FAILED)
		return SW_EIO;
	*ret_result = (struct sw_child_result){map, (size_t)found.st_size};
	return 0;
}

static int explain(int status, int r, struct sw_err *err)
{
	if (r == 0)
		return 0;
	if (WIFSIGNALED(status))
		return sw_err_set(err, r, "its process was ended by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
	if (WEXITSTATUS(status) != 0)
		return sw_err_set(err, r, "its process ended with status %d", WEXITSTATUS(status));
	return sw_err_set(err, r, "its process left no result");
}

int sw_child_end(struct sw_child *child, struct sw_child_result *ret_result, struct sw_err *err)
{
	int status = 1;
	if (child->pid == 0)
		return sw_err_set(err, SW_EIO, "there is no process");
	kill(child->pid, SIGKILL); /* of no effect where it has ended */
	while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
		;
	bool did_well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
	int r = did_well && ret_result != NULL ? map_file(child->file, ret_result) : SW_EIO;
	close(child->file);
	close(child->end);
	*child = (struct sw_child){0};
	return explain(status, r, err);
}
