/* Supervisors in trouble: killed, started twice, without their link, spoken to by strangers, on a
 * full disk. A job still runs once, and its exit is told once it is recorded. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/folder.h"
#include "agent/renew.h"
#include "unit/agent/harness.h"

/* A supervisor that is killed takes the job along; the next one finds what hid, kills it, and
 * records that the exit is not known, once. */
static void test_supervisor_killed(void **state)
{
	struct harness *harness = *state;
	struct run run;
	harness_start(
		harness,
		harness_spec(harness,
			     "(setsid sh -c 'trap \"\" TERM HUP; echo $$ >deep; sleep 100' &); echo $$ >main; while :; do sleep 1; done"),
		&run);
	struct sw_run_account *account = harness_wait(&run, SW_RUN_RUNNING);
	pid_t deep = atoi(harness_await(harness, "deep")), first = atoi(harness_await(harness, "main"));
	assert_int_equal(kill((pid_t)account->supervisor, SIGKILL), 0);
	sw_run_account_free(account);
	assert_false(harness_ends(&run));
	assert_true(harness_is_gone(first));
	assert_int_equal(kill(deep, 0), 0);
	assert_string_equal(harness_run_file(&run, "exit.json"), "");

	harness_spawn(&run);
	assert_false(harness_ends(&run));
	assert_true(harness_is_gone(deep));
	const char *record = harness_run_file(&run, "exit.json");
	assert_non_null(strstr(record, "\"reason\":\"supervisor-lost\""));
	/* What is over is over. */
	harness_spawn(&run);
	assert_false(harness_ends(&run));
	assert_string_equal(harness_run_file(&run, "exit.json"), record);
	harness_close(&run);
}

/* However many supervisors are started for one folder, the job runs once. */
static void test_started_once(void **state)
{
	struct harness *harness = *state;
	struct run run;
	harness_create(harness, harness_spec(harness, "echo x >>ran; sleep 0.3"), 3600000, &run);
	struct run copies[8];
	for (int i = 0; i < 8; i++) {
		copies[i] = run;
		harness_spawn(&copies[i]);
	}
	int told = 0;
	for (int i = 0; i < 8; i++) {
		told += harness_ends(&copies[i]);
		harness_close(&copies[i]);
	}
	assert_int_equal(told, 1);
	assert_string_equal(harness_read(harness, "ran"), "x\n");
	/* Nor does it when it is over, nor when an agent gave it up before it began. */
	harness_spawn(&run);
	assert_false(harness_ends(&run));
	harness_close(&run);
	harness_create(harness, harness_spec(harness, "echo x >>ran"), 3600000, &run);
	char path[160];
	snprintf(path, sizeof path, "%s/lost", run.path);
	close(open(path, O_WRONLY | O_CREAT, 0600));
	harness_spawn(&run);
	assert_false(harness_ends(&run));
	harness_close(&run);
	assert_non_null(strstr(harness_run_file(&run, "exit.json"), "before it started the command"));
	assert_string_equal(harness_read(harness, "ran"), "x\n");
}

/* Terminating the supervisor, as a machine that shuts down does, stops the job in peace. */
static void test_shutdown(void **state)
{
	struct harness *harness = *state;
	struct run run;
	harness_start(harness, harness_spec(harness, "trap 'exit 9' TERM; echo 1 >up; while :; do sleep 0.02; done"), &run);
	struct sw_run_account *account = harness_wait(&run, SW_RUN_RUNNING);
	harness_await(harness, "up");
	kill((pid_t)account->supervisor, SIGTERM);
	sw_run_account_free(account);
	harness_expect(&run, 9, 0, SW_REASON_SHUTDOWN);
}

static int connect_as(const struct run *run, uid_t uid)
{
	int ends[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	pid_t pid = fork();
	if (pid == 0) {
		struct sockaddr_un address = {.sun_family = AF_UNIX};
		snprintf(address.sun_path, sizeof address.sun_path, "%.90s/supervisor.sock", run->path);
		int fd = socket(AF_UNIX, SOCK_STREAM, 0);
		char word[32] = "no";
		if (setresuid(uid, uid, uid) == 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
		    send(fd, "status\n", 7, MSG_NOSIGNAL) == 7 && recv(fd, word, 5, 0) == 5)
			_exit(memcmp(word, "{\"job", 5) == 0 ? 0 : 2);
		_exit(1);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(ends[0]);
	close(ends[1]);
	return WEXITSTATUS(status);
}

/* What connect_as() says once the socket listens: a moment after it is there. */
static int await_socket(const struct run *run)
{
	int answer = connect_as(run, geteuid());
	for (int tries = 0; tries < 4000 && answer == 1; tries++) {
		harness_sleep_ms(5);
		answer = connect_as(run, geteuid());
	}
	return answer;
}

/* A run that loses its link before it has settled opens its socket at once, and
 * obeys the agent that comes. */
static void test_settling(void **state)
{
	struct harness *harness = *state;
	struct run run;
	harness_start(harness, harness_spec(harness, "echo 1 >up; while :; do sleep 1; done"), &run);
	harness_await(harness, "up");
	close(run.link);
	assert_int_equal(await_socket(&run), 0);
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	snprintf(address.sun_path, sizeof address.sun_path, "%.90s/supervisor.sock", run.path);
	run.link = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(run.link, (struct sockaddr *)&address, sizeof address), 0);
	harness_tell(&run, "stop 1 9 0\n");
	harness_expect(&run, 0, SIGKILL, SW_REASON_STOPPED);
}

/* The socket answers its own user, also without a link from the beginning; strangers are not heard.
 * Nonsense is answered and does no harm. */
static void test_socket(void **state)
{
	struct harness *harness = *state;
	struct run run;
	harness_start(harness, harness_spec(harness, "echo 1 >up; while :; do sleep 1; done"), &run);
	harness_await(harness, "up");
	assert_int_equal(await_socket(&run), 0);
	if (geteuid() == 0) {
		/* Not even the modes of the folder are what keeps them out. */
		char path[160];
		snprintf(path, sizeof path, "%s/runs", harness->state);
		chmod(path, 0755);
		chmod(run.path, 0755);
		snprintf(path, sizeof path, "%s/supervisor.sock", run.path);
		chmod(path, 0777);
		assert_int_equal(connect_as(&run, 65534), 1);
		assert_int_equal(connect_as(&run, 0), 0);
	}
	harness_tell(&run, "dance\nstop\nstop x y z\nlease\nstop 1 99999 0\n\n");
	harness_tell(&run, "status\n");
	struct sw_run_account *account = harness_wait(&run, SW_RUN_RUNNING);
	assert_int_equal(account->order, 0);
	sw_run_account_free(account);
	harness_tell(&run, "stop 1 9 0\n");
	harness_expect(&run, 0, SIGKILL, SW_REASON_STOPPED);
}

/* With a control group the job is in it, and the group goes with the run. */
static void test_cgroup(void **state)
{
	struct harness *harness = *state;
	static const char *const mounts[] = {"/sys/fs/cgroup/unified", "/sys/fs/cgroup"};
	const char *mount = NULL;
	for (size_t i = 0; i < 2 && mount == NULL; i++) {
		char path[64];
		snprintf(path, sizeof path, "%s/cgroup.procs", mounts[i]);
		if (access(path, W_OK) == 0)
			mount = mounts[i];
	}
	char group[128];
	snprintf(group, sizeof group, "%s/sharewell-test-%ld", mount != NULL ? mount : "", (long)getpid());
	if (mount == NULL || mkdir(group, 0755) != 0) {
		print_message("no control groups of version 2 can be made here\n");
		skip();
	}
	struct sw_run_spec *spec =
		harness_spec(harness, "grep '^0:' /proc/self/cgroup; (setsid sleep 100 &); echo 1 >up; while :; do sleep 1; done");
	spec->memory_bytes = UINT64_C(1) << 30;
	spec->cpus = 1;
	static const char *gpus[] = {NULL};
	struct run run = {.harness = harness, .id = {900, 1}, .link = -1};
	struct sw_run_order order = {
		.node = "here", .lease_boot_ns = INT64_MAX, .cgroup = group, .want = {.id = run.id, .gpus = {gpus, 0}, .spec = spec}};
	assert_int_equal(sw_folder_create(harness->runs, &order, NULL), 0);
	snprintf(run.path, sizeof run.path, "%s/runs/900.1", harness->state);
	harness_spawn(&run);
	harness_await(harness, "up");
	harness_tell(&run, "stop 1 0 0\n");
	harness_expect(&run, 0, SIGKILL, SW_REASON_STOPPED);
	assert_non_null(strstr(harness_run_file(&run, "out.log"), "/900.1\n"));
	assert_int_equal(rmdir(group), 0);
}

/* A disk that is full when the job ends: the exit waits until there is room, the supervisor with
 * it, and it is told once it is recorded. */
static void test_full_disk(void **state)
{
	struct harness *harness = *state;
	char path[128], filler[160];
	snprintf(path, sizeof path, "%s/small", harness->state);
	mkdir(path, 0755);
	if (mount("none", path, "tmpfs", 0, "size=128k,mode=0755") != 0) {
		print_message("no small disk can be made here: %s\n", strerror(errno));
		skip();
	}
	int small = open(path, O_RDONLY | O_DIRECTORY);
	static const char *gpus[] = {NULL};
	struct run run = {.harness = harness, .id = {901, 1}, .link = -1};
	struct sw_run_spec *spec = harness_spec(harness, "echo 1 >up; while [ ! -e go ]; do sleep 0.02; done; seq 100000; exit 33");
	struct sw_run_order order = {.node = "here", .lease_boot_ns = INT64_MAX, .want = {.id = run.id, .gpus = {gpus, 0}, .spec = spec}};
	assert_int_equal(sw_folder_create(small, &order, NULL), 0);
	snprintf(run.path, sizeof run.path, "%s/small/901.1", harness->state);
	harness_spawn(&run);
	harness_await(harness, "up");
	snprintf(filler, sizeof filler, "%s/filler", path);
	int fd = open(filler, O_WRONLY | O_CREAT, 0600);
	static const char zeros[4096];
	while (write(fd, zeros, sizeof zeros) > 0)
		;
	close(fd);
	char go[160];
	snprintf(go, sizeof go, "%s/go", harness->state);
	close(open(go, O_WRONLY | O_CREAT, 0600));
	harness_sleep_ms(1500);
	assert_string_equal(harness_run_file(&run, "exit.json"), "");
	assert_true(strlen(harness_run_file(&run, "pid")) > 0);
	unlink(filler);
	harness_expect(&run, 33, 0, "");
	close(small);
	/* The supervisor stands in it until it is gone. */
	for (int i = 0; umount(path) != 0 && i < 1000; i++)
		harness_sleep_ms(10);
}

/* Before an upgrade supervisors are told to go on without a lease; not the one whose order cannot
 * be read, since it may have chosen one. */
static void test_renew(void **state)
{
	struct harness *harness = *state;
	struct run plain, spoilt;
	struct sw_renewed renewed;
	harness_start(harness, harness_spec(harness, "sleep 100"), &plain);
	harness_start(harness, harness_spec(harness, "sleep 100"), &spoilt);
	assert_int_equal(await_socket(&plain), 0);
	assert_int_equal(await_socket(&spoilt), 0);
	assert_int_equal(sw_agent_renew(harness->state, &renewed, NULL), 0);
	assert_int_equal(renewed.told, 2);
	assert_int_equal(renewed.deaf, 0);
	assert_int_equal(renewed.unreadable, 0);
	/* In place: its supervisor keeps the file locked. */
	char path[160];
	snprintf(path, sizeof path, "%s/spec.json", spoilt.path);
	assert_int_equal(truncate(path, 5), 0);
	assert_int_equal(sw_agent_renew(harness->state, &renewed, NULL), 0);
	assert_int_equal(renewed.told, 1);
	assert_int_equal(renewed.leased, 0);
	assert_int_equal(renewed.deaf, 0);
	assert_int_equal(renewed.unreadable, 1);
	assert_int_equal(renewed.unreadable_job, spoilt.id.job);
	harness_close(&plain);
	harness_close(&spoilt);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, harness_set_up, harness_tear_down)

int main(int argc, char **argv)
{
	harness_main(argc, argv);
	const struct CMUnitTest tests[] = {
		TEST(test_supervisor_killed), TEST(test_started_once), TEST(test_shutdown),
		TEST(test_settling),	      TEST(test_socket),       TEST(test_cgroup),
		TEST(test_full_disk),	      TEST(test_renew),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
