/* Nothing that the child does can hold up or harm the controller. It has no file of it but its
 * standard error, where the text of a failed assertion goes, and ends at its limits.
 *
 * Limits: after LOOKS_NS it stops looking ahead and tells what it has found. The kernel ends it
 * after HARD_CPU_S of processor time, or ALARM_S of any time. It may take MORE_BYTES more than the
 * controller had when it began, and where the machine runs out of memory it goes first. It has a
 * low priority, so that it takes only what the controller and the jobs on this machine leave.
 */
#include "server/forecast_child.h"

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

#include "base/now.h"
#include "base/number.h"

#define LOOKS_NS (2 * SW_NS_PER_S)
#define HARD_CPU_S 3u
#define ALARM_S 60u
#define NICE 10
#define MORE_BYTES ((uint64_t)2 << 30) /* a copy of the largest engine is below 1 GiB */

struct head {
	uint64_t rows;
	uint32_t gpus_shut, zero;
};

/* ---- in the child */

static bool has_time(void *begun_ns)
{
	return sw_now_monotonic_ns() - *(const int64_t *)begun_ns < LOOKS_NS;
}

static bool write_all(const void *bytes, size_t size)
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

static bool write_table(const struct sw_forecast_row *rows, size_t count, uint32_t gpus_shut)
{
	const struct head head = {.rows = count, .gpus_shut = gpus_shut};
	return write_all(&head, sizeof head) && write_all(rows, count * sizeof *rows);
}

/* Makes the jobs of the items. `ret_jobs`: the first of each. */
static int make_jobs(const struct sw_forecast_task *task, uint64_t *ret_jobs)
{
	size_t next = 0;
	int r = 0;
	for (size_t i = 0; r == 0 && i < task->item_count; i++) {
		ret_jobs[i] = 0;
		for (size_t end = next + task->item_records[i]; r == 0 && next < end; next++) {
			const struct sw_record *record = &task->records->items[next];
			uint64_t job = 0;
			r = sw_brain_apply(task->brain, task->now, record->kind, record->body, record->size, &job, NULL);
			if (ret_jobs[i] == 0)
				ret_jobs[i] = job;
		}
	}
	return r;
}

static bool try_items(const struct sw_forecast_task *task)
{
	SW_CLEANUP(sw_freep) uint64_t *jobs = calloc(task->item_count, sizeof *jobs);
	SW_CLEANUP(sw_freep) struct sw_forecast_row *rows = calloc(task->item_count, sizeof *rows);
	int64_t begun_ns = sw_now_monotonic_ns();
	struct sw_forecast_config config = {.now = task->now, .goes_on = has_time, .user = &begun_ns};
	struct sw_forecast found = {0};
	if (jobs == NULL || rows == NULL || make_jobs(task, jobs) < 0)
		return false;
	for (size_t i = 0; i < task->item_count; i++) {
		if (config.first == 0)
			config.first = jobs[i];
		config.last = jobs[i] > 0 ? jobs[i] : config.last;
	}
	if (config.last == 0 || sw_brain_forecast(task->brain, &config, &found, NULL) < 0)
		return false;
	for (size_t i = 0, at = 0; i < task->item_count; i++) {
		rows[i] = (struct sw_forecast_row){.starts_at = SW_TIME_NEVER, .why = SW_FORECAST_REFUSED};
		while (at < found.rows.count && found.rows.items[at].job < jobs[i])
			at++;
		if (at < found.rows.count && found.rows.items[at].job == jobs[i])
			rows[i] = found.rows.items[at];
	}
	return write_table(rows, task->item_count, found.gpus_shut);
}

static bool look_ahead(const struct sw_forecast_task *task)
{
	int64_t begun_ns = sw_now_monotonic_ns();
	const struct sw_forecast_config config = {.now = task->now, .goes_on = has_time, .user = &begun_ns};
	struct sw_forecast found = {0};
	return sw_brain_forecast(task->brain, &config, &found, NULL) == 0 &&
	       write_table(found.rows.items, found.rows.count, found.gpus_shut);
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
static bool bound_memory(void)
{
	char text[64] = "";
	struct rlimit limit;
	int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	ssize_t got = file >= 0 ? read(file, text, sizeof text - 1) : -1;
	if (file >= 0)
		close(file);
	if (got <= 0 || getrlimit(RLIMIT_AS, &limit) < 0)
		return got <= 0;
	uint64_t bytes = strtoull(text, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE) + MORE_BYTES;
	limit.rlim_cur = bytes < limit.rlim_cur ? bytes : limit.rlim_cur; /* a lower one stays */
	return setrlimit(RLIMIT_AS, &limit) == 0;
}

/* Never comes back. It has no business with the journal, the clients or the signals of its
 * parent. */
static void be_child(const struct sw_forecast_task *task, int file, int end, pid_t parent)
{
	static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGALRM, SIGXCPU};
	const struct rlimit time = {HARD_CPU_S, HARD_CPU_S}, none = {0, 0};
	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
		signal(numbers[i], SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent || dup2(file, STDIN_FILENO) < 0 || dup2(end, STDOUT_FILENO) < 0)
		_exit(1);
	/* A connection that the controller closes must not stay open here. */
	closefrom(STDERR_FILENO + 1);
	write_score();
	setpriority(PRIO_PROCESS, 0, NICE);
	setrlimit(RLIMIT_CORE, &none);
	if (setrlimit(RLIMIT_CPU, &time) < 0 || !bound_memory())
		_exit(1);
	alarm(ALARM_S);
	_exit((task->item_count > 0 ? try_items(task) : look_ahead(task)) ? 0 : 1);
}

/* ---- in the controller */

int sw_forecast_child_start(const struct sw_forecast_task *task, struct sw_forecast_child *ret_child, struct sw_err *err)
{
	pid_t parent = getpid(), pid = -1;
	int ends[2] = {-1, -1}, file = memfd_create("sharewell-forecast", MFD_CLOEXEC);
	if (file >= 0 && pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0)
		pid = fork();
	if (pid == 0)
		be_child(task, file, ends[1], parent);
	int error = errno;
	if (ends[1] >= 0)
		close(ends[1]);
	if (pid > 0) {
		*ret_child = (struct sw_forecast_child){pid, file, ends[0]};
		return 0;
	}
	if (ends[0] >= 0)
		close(ends[0]);
	if (file >= 0)
		close(file);
	sw_err_set(err, SW_EIO, "no process for a forecast");
	sw_err_detail(err, "%s", strerror(error));
	return SW_EIO;
}

/* The table that is in the file, whole. */
static int map_table(int file, struct sw_forecast_table *ret_table)
{
	struct stat found;
	if (fstat(file, &found) < 0 || (size_t)found.st_size < sizeof(struct head))
		return SW_EIO;
	size_t size = (size_t)found.st_size;
	void *map = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
	if (map == MAP_FAILED)
		return SW_EIO;
	const struct head *head = map;
	if (head->rows != (size - sizeof *head) / sizeof(struct sw_forecast_row)) {
		munmap(map, size);
		return SW_EIO;
	}
	*ret_table = (struct sw_forecast_table){
		.rows = (const void *)(head + 1), .count = (size_t)head->rows, .gpus_shut = head->gpus_shut, .map = map, .size = size};
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
	return sw_err_set(err, r, "its process left no whole table");
}

int sw_forecast_child_end(struct sw_forecast_child *child, struct sw_forecast_table *ret_table, struct sw_err *err)
{
	int status = 1;
	if (child->pid == 0)
		return sw_err_set(err, SW_EIO, "there is no process");
	kill(child->pid, SIGKILL); /* of no effect where it has ended */
	while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
		;
	bool did_well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
	int r = did_well && ret_table != NULL ? map_table(child->file, ret_table) : SW_EIO;
	close(child->file);
	close(child->end);
	*child = (struct sw_forecast_child){0};
	return explain(status, r, err);
}

void sw_forecast_table_release(struct sw_forecast_table *table)
{
	if (table->map != NULL)
		munmap(table->map, table->size);
	*table = (struct sw_forecast_table){0};
}
