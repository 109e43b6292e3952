#include "unit/agent/harness.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/agent.h"
#include "agent/folder.h"
#include "agent/supervisor/nursery.h"
#include "agent/supervisor/supervisor.h"
#include "base/number.h"

enum { PATIENCE_MS = 60000 };

static void say(void *context, const char *line)
{
	(void)context;
	fprintf(stderr, "agent: %s\n", line);
}

void harness_main(int argc, char **argv)
{
	struct sw_err err = {0};
	int r;
	if (argc == 3 && strcmp(argv[1], "supervise") == 0) {
		r = sw_supervise(argv[2], &err);
	} else if ((argc == 5 || argc == 6) && strcmp(argv[1], "agent") == 0) {
		struct sw_agent_options options;
		sw_agent_options_defaults(&options);
		options.node = "here";
		options.state = argv[2];
		options.controller = argv[3];
		options.gpus = argv[4];
		options.exclude_gpus = argv[5];
		options.sample_ms = 200;
		options.signals = true;
		options.say = say;
		r = sw_agent_run(&options, &err);
	} else {
		return;
	}
	if (r < 0)
		fprintf(stderr, "%s: %s\n", err.fact, err.detail);
	exit(r < 0 ? 1 : 0);
}

/* ---- the folder and the nursery */

static int start_nursery(void)
{
	int ends[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	pid_t pid = fork();
	if (pid == 0) {
		dup2(ends[1], 0);
		execl("/proc/self/exe", "sharewell", "supervise", "-", (char *)NULL);
		_exit(127);
	}
	assert_true(pid > 0);
	close(ends[1]);
	return ends[0];
}

/* ---- what a case has started */

static void kill_children(pid_t of)
{
	char path[64], text[4096];
	snprintf(path, sizeof path, "/proc/%d/task/%d/children", of, of);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	for (char *at = text, *end; *at != '\0'; at = end) {
		long pid = strtol(at, &end, 10);
		if (pid <= 0)
			return;
		kill((pid_t)pid, SIGKILL);
	}
}

/* A case that failed leaves its supervisors, which outlive all else by design, and they their
 * jobs. Whatever loses its parent becomes our child: so they die one generation after the other. */
static void kill_descendants(void)
{
	for (pid_t pid = 0; pid >= 0;) {
		kill_children(getpid());
		pid = waitpid(-1, NULL, 0);
	}
}

int harness_set_up(void **state)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	struct harness *harness = calloc(1, sizeof *harness);
	strcpy(harness->state, "/tmp/sharewell-agent-XXXXXX");
	if (mkdtemp(harness->state) == NULL)
		return -1;
	/* Jobs of other users write here. */
	chmod(harness->state, 0777);
	char runs[128];
	snprintf(runs, sizeof runs, "%s/runs", harness->state);
	mkdir(runs, 0700);
	harness->runs = open(runs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	harness->nursery = start_nursery();
	harness->next_job = 1;
	*state = harness;
	return 0;
}

int harness_tear_down(void **state)
{
	struct harness *harness = *state;
	close(harness->nursery);
	close(harness->runs);
	kill_descendants();
	char command[128];
	snprintf(command, sizeof command, "rm -rf '%s'", harness->state);
	int status = system(command);
	free(harness);
	return status;
}

/* ---- runs */

int64_t harness_now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * SW_NS_PER_S + now.tv_nsec;
}

struct sw_run_spec *harness_spec(struct harness *harness, const char *script)
{
	static struct sw_run_spec spec;
	static const char *argv[4];
	argv[0] = "sh";
	argv[1] = "-c";
	argv[2] = script;
	sw_run_spec_defaults(&spec);
	spec.argv = (struct sw_texts){argv, 3};
	spec.workdir = harness->state;
	spec.uid = geteuid();
	spec.gid = getegid();
	return &spec;
}

void harness_create(struct harness *harness, const struct sw_run_spec *spec, int64_t lease_ms, struct run *ret_run)
{
	static const char *gpus[] = {"GPU-0", "GPU-1", NULL};
	static const char *real_gpus[] = {"GPU-00112233-4455-6677-8899-aabbccddeeff", "GPU-10112233-4455-6677-8899-aabbccddeeff", NULL};
	*ret_run = (struct run){.harness = harness, .id = {harness->next_job++, 3}, .link = -1};
	struct sw_run_order order = {.node = "here",
				     .lease_boot_ns = lease_ms != HARNESS_NO_LEASE ? harness_now_ns() + lease_ms * SW_NS_PER_MS : 0};
	order.want = (struct sw_want){
		.id = ret_run->id, .gpus = {harness->gpu_library != NULL ? real_gpus : gpus, 2}, .spec = spec, .grace_ms = -1};
	order.gpu_library = harness->gpu_library;
	struct sw_err err = {0};
	if (sw_folder_create(harness->runs, &order, &err) < 0)
		fail_msg("%s: %s", err.fact, err.detail);
	char name[SW_FOLDER_NAME_MAX];
	snprintf(ret_run->path, sizeof ret_run->path, "%s/runs/%s", harness->state, sw_folder_name(ret_run->id, name));
}

void harness_spawn(struct run *run)
{
	int ends[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(sw_nursery_ask(run->harness->nursery, run->path, ends[1]), 0);
	close(ends[1]);
	if (run->link >= 0)
		close(run->link);
	run->link = ends[0];
	run->size = 0;
}

void harness_start(struct harness *harness, const struct sw_run_spec *spec, struct run *ret_run)
{
	harness_create(harness, spec, 3600000, ret_run);
	harness_spawn(ret_run);
}

void harness_tell(struct run *run, const char *fmt, ...)
{
	char line[256];
	va_list args;
	va_start(args, fmt);
	int size = vsnprintf(line, sizeof line, fmt, args);
	va_end(args);
	assert_int_equal(send(run->link, line, (size_t)size, MSG_NOSIGNAL), size);
}

struct sw_run_account *harness_next(struct run *run)
{
	for (;;) {
		char *end = run->size > 0 ? memchr(run->text, '\n', run->size) : NULL;
		if (end != NULL) {
			struct sw_run_account *account = NULL;
			size_t length = (size_t)(end - run->text);
			int r = sw_run_account_decode(run->text, length, &account, NULL);
			run->size -= length + 1;
			memmove(run->text, end + 1, run->size);
			if (r < 0)
				continue;
			return account;
		}
		struct pollfd wait = {.fd = run->link, .events = POLLIN};
		if (poll(&wait, 1, PATIENCE_MS) != 1)
			fail_msg("the supervisor of %s says nothing", run->path);
		run->text = realloc(run->text, run->size + 65536);
		ssize_t n = recv(run->link, run->text + run->size, 65536, 0);
		if (n <= 0)
			return NULL;
		run->size += (size_t)n;
	}
}

struct sw_run_account *harness_wait(struct run *run, enum sw_run_state state)
{
	for (struct sw_run_account *account; (account = harness_next(run)) != NULL; sw_run_account_free(account))
		if (account->run.state == state)
			return account;
	fail_msg("the supervisor of %s ended before it said %s", run->path, sw_run_state_name(state));
	return NULL;
}

bool harness_ends(struct run *run)
{
	bool exited = false;
	for (struct sw_run_account *account; (account = harness_next(run)) != NULL; sw_run_account_free(account))
		exited |= account->run.state == SW_RUN_EXITED;
	return exited;
}

void harness_close(struct run *run)
{
	close(run->link);
	free(run->text);
	run->text = NULL;
	run->link = -1;
}

/* ---- looking */

static const char *read_path(const char *path)
{
	static char texts[4][65536];
	static int next;
	char *text = texts[next++ % 4];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof texts[0] - 1) : 0;
	text[n > 0 ? n : 0] = '\0';
	if (fd >= 0)
		close(fd);
	return text;
}

const char *harness_read(const struct harness *harness, const char *name)
{
	char path[256];
	snprintf(path, sizeof path, "%s/%s", harness->state, name);
	return read_path(path);
}

const char *harness_run_file(const struct run *run, const char *name)
{
	char path[256];
	snprintf(path, sizeof path, "%s/%s", run->path, name);
	return read_path(path);
}

const char *harness_await(const struct harness *harness, const char *name)
{
	for (int waited = 0; waited < PATIENCE_MS; waited += 5) {
		const char *text = harness_read(harness, name);
		if (strchr(text, '\n') != NULL)
			return text;
		harness_sleep_ms(5);
	}
	fail_msg("nothing came in '%s'", name);
	return "";
}

struct sw_run_account *harness_finish(struct run *run)
{
	struct sw_run_account *said = harness_wait(run, SW_RUN_EXITED), *written = NULL;
	const char *text = harness_run_file(run, "exit.json");
	assert_int_equal(sw_run_account_decode(text, strlen(text), &written, NULL), 0);
	assert_true(written->run.code == said->run.code && written->run.signal == said->run.signal);
	assert_string_equal(written->run.reason, said->run.reason);
	assert_true(written->run.ended_at_ns >= written->run.started_at_ns);
	sw_run_account_free(written);
	harness_close(run);
	return said;
}

void harness_expect(struct run *run, unsigned code, unsigned signal, const char *reason)
{
	struct sw_run_account *account = harness_finish(run);
	if (account->run.code != code || account->run.signal != signal || strcmp(account->run.reason, reason) != 0)
		fail_msg("%s ended with code %u, signal %u, reason '%s' (%s); expected %u, %u, '%s'", run->path, account->run.code,
			 account->run.signal, account->run.reason, account->run.detail != NULL ? account->run.detail : "", code, signal,
			 reason);
	sw_run_account_free(account);
}

bool harness_has_ended(pid_t pid)
{
	assert_true(pid > 0);
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	const char *stat = read_path(path), *rest = strrchr(stat, ')');
	return rest == NULL || rest[2] == 'Z' || rest[2] == 'X';
}

bool harness_is_gone(pid_t pid)
{
	for (int waited = 0; waited < PATIENCE_MS / 6; waited += 5) {
		if (harness_has_ended(pid))
			return true;
		harness_sleep_ms(5);
	}
	return false;
}

void harness_sleep_ms(int ms)
{
	struct timespec wait = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
	while (nanosleep(&wait, &wait) != 0 && errno == EINTR)
		;
}
