/* Supervisors with real processes: what they report is what happened, and nothing of a job outlives
 * its run. What befalls supervisors themselves is in test_supervisor_trouble.c. */
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/agent.h"
#include "base/number.h"
#include "unit/agent/harness.h"

/* ---- exits */

/* Every exit code is reported as it was. */
static void test_exit_codes(void **state)
{
	enum { AT_ONCE = 8 };
	static struct run runs[AT_ONCE];
	for (unsigned first = 0; first < 256; first += AT_ONCE) {
		for (unsigned i = 0; i < AT_ONCE; i++) {
			char script[32];
			snprintf(script, sizeof script, "exit %u", first + i);
			harness_start(*state, harness_spec(*state, script), &runs[i]);
		}
		for (unsigned i = 0; i < AT_ONCE; i++)
			harness_expect(&runs[i], first + i, 0, "");
	}
}

/* So is every signal that ends a process. */
static void test_signals(void **state)
{
	const int signals[] = {SIGHUP,	SIGINT,	 SIGQUIT, SIGILL,  SIGTRAP, SIGABRT, SIGBUS,  SIGFPE,	   SIGKILL,
			       SIGUSR1, SIGSEGV, SIGUSR2, SIGPIPE, SIGALRM, SIGTERM, SIGXCPU, SIGRTMIN + 3};
	for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
		char script[64];
		struct run run;
		snprintf(script, sizeof script, "kill -%d $$", signals[i]);
		harness_start(*state, harness_spec(*state, script), &run);
		harness_expect(&run, 0, (unsigned)signals[i], "");
	}
}

/* A command that cannot be started ends with the code of a shell, and a sentence that says why. */
static void test_launch_failures(void **state)
{
	struct harness *harness = *state;
	struct run run;
	static const struct {
		const char *argv, *workdir, *out;
		unsigned code;
		const char *words;
	} cases[] = {
		{"no-such-command-here", NULL, NULL, 127, "cannot run 'no-such-command-here': No such file or directory"},
		{"/etc/passwd", NULL, NULL, 126, "cannot run '/etc/passwd': Permission denied"},
		{"true", "/no/such/folder", NULL, 125, "cannot change to folder '/no/such/folder': No such file or directory"},
		{"true", NULL, "/no/such/folder/out", 125, "cannot write its output to '/no/such/folder/out': No such file or directory"},
		{"true", NULL, "/tmp", 125, "cannot write its output to '/tmp': Is a directory"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct sw_run_spec *spec = harness_spec(harness, "");
		const char *argv[] = {cases[i].argv, NULL};
		spec->argv = (struct sw_texts){argv, 1};
		if (cases[i].workdir != NULL)
			spec->workdir = cases[i].workdir;
		spec->stdout_path = cases[i].out;
		harness_start(harness, spec, &run);
		struct sw_run_account *account = harness_finish(&run);
		assert_int_equal(account->run.code, cases[i].code);
		assert_string_equal(account->run.reason, SW_REASON_LAUNCH);
		assert_string_equal(account->run.detail, cases[i].words);
		sw_run_account_free(account);
	}
}

/* A file of the run that comes in a while. */
static const char *await_run_file(const struct run *run, const char *name)
{
	const char *text = "";
	for (int waited = 0; waited < 20000 && text[0] == '\0'; waited += 5) {
		harness_sleep_ms(5);
		text = harness_run_file(run, name);
	}
	return text;
}

/* The account says when it ran, what it used and what it wrote. */
static void test_account(void **state)
{
	struct run run;
	harness_start(*state,
		      harness_spec(*state, "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; printf 12345; printf 678 >&2;"
					   " until [ -e go ]; do sleep 0.01; done"),
		      &run);
	struct sw_run_account *running = harness_wait(&run, SW_RUN_RUNNING);
	assert_true(running->run.pid > 0 && running->run.started_at_ns > 0 && running->supervisor > 0 && running->run.ended_at_ns == 0);
	assert_non_null(strstr(await_run_file(&run, "status.json"), "\"state\":\"running\""));
	char go[80];
	snprintf(go, sizeof go, "%s/go", run.harness->state);
	close(open(go, O_CREAT | O_WRONLY, 0600));
	struct sw_run_account *account = harness_finish(&run);
	assert_true(account->run.log_bytes == 8);
	assert_true(account->run.max_rss_bytes > 100000 && account->run.cpu_ns > 1000000);
	assert_true(account->run.started_at_ns == running->run.started_at_ns && account->run.ended_at_ns > running->run.started_at_ns);
	/* Both streams in one file, in the order of writing. */
	assert_string_equal(harness_run_file(&run, "out.log"), "12345678");
	sw_run_account_free(running);
	sw_run_account_free(account);
}

/* ---- the job's surroundings */

/* The job finds what it was promised, and nothing of ours: environment,
 * folder, streams, mask, files. */
static void test_surroundings(void **state)
{
	struct harness *harness = *state;
	struct run run;
	static const char *env[] = {"MINE=a b", "SHAREWELL_JOB_ID=77", NULL};
	struct sw_run_spec *spec = harness_spec(harness, "env; echo cwd=$(pwd); echo mask=$(umask); echo in=$(readlink /proc/self/fd/0);"
							 "echo files=$(ls /proc/self/fd | wc -l); echo files_limit=$(ulimit -n);"
							 "echo session=$(cut -d' ' -f6 /proc/$$/stat) me=$$");
	spec->env = (struct sw_texts){env, 2};
	spec->name = "a name";
	spec->umask = 027;
	spec->cpus = 3;
	spec->open_files = 256;
	harness_start(harness, spec, &run);
	harness_expect(&run, 0, 0, "");
	const char *text = harness_run_file(&run, "out.log");
	static const char *const wanted[] = {"\nCUDA_VISIBLE_DEVICES=GPU-0,GPU-1\n",
					     "\nSHAREWELL_JOB_ID=1\n",
					     "\nSHAREWELL_EPOCH=3\n",
					     "\nSHAREWELL_JOB_NAME=a name\n",
					     "\nSHAREWELL_NODE=here\n",
					     "\nSHAREWELL_GPUS=2\n",
					     "\nSHAREWELL_CPUS=3\n",
					     "\nMINE=a b\n",
					     "\nmask=0027\n",
					     "\nin=/dev/null\n",
					     "\nfiles=4\n",
					     "\nfiles_limit=256\n"};
	char whole[65536];
	snprintf(whole, sizeof whole, "\n%s", text);
	for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
		if (strstr(whole, wanted[i]) == NULL)
			fail_msg("no %s in %s", wanted[i], whole);
	char cwd[128];
	snprintf(cwd, sizeof cwd, "\ncwd=%s\n", harness->state);
	assert_non_null(strstr(whole, cwd));
	assert_null(strstr(whole, "SLURM_"));
	assert_null(strstr(whole, "LINK_FD"));
	int session = 0, me = 1;
	assert_int_equal(sscanf(strstr(whole, "session="), "session=%d me=%d", &session, &me), 2);
	assert_int_equal(session, me);

	spec = harness_spec(harness, "env | grep SLURM_ | sort");
	spec->slurm_env = true;
	harness_start(harness, spec, &run);
	harness_expect(&run, 0, 0, "");
	text = harness_run_file(&run, "out.log");
	assert_non_null(strstr(text, "SLURM_JOB_ID=2\n"));
	assert_non_null(strstr(text, "SLURM_RESTART_COUNT=2\n"));
	assert_non_null(strstr(text, "SLURM_GPUS_ON_NODE=2\n"));
}

/* Output goes to the user's files: begun anew or continued, and two of them when two are wanted. */
static void test_output_files(void **state)
{
	struct harness *harness = *state;
	struct run run;
	for (int round = 0; round < 3; round++) {
		struct sw_run_spec *spec = harness_spec(harness, "echo out; echo err >&2");
		char out[128];
		snprintf(out, sizeof out, "%s/o", harness->state);
		spec->stdout_path = out;
		spec->stderr_path = "e"; /* relative to its folder */
		spec->append = round == 2;
		harness_start(harness, spec, &run);
		harness_expect(&run, 0, 0, "");
	}
	assert_string_equal(harness_read(harness, "o"), "out\nout\n");
	assert_string_equal(harness_read(harness, "e"), "err\nerr\n");
	struct sw_run_spec *spec = harness_spec(harness, "echo out; echo err >&2");
	spec->stdout_path = spec->stderr_path = "both";
	harness_start(harness, spec, &run);
	harness_expect(&run, 0, 0, "");
	assert_string_equal(harness_read(harness, "both"), "out\nerr\n");
}

/* A root supervisor becomes the user before anything of the user's is touched. */
static void test_other_user(void **state)
{
	struct harness *harness = *state;
	if (geteuid() != 0) {
		print_message("only root can become another user\n");
		skip();
	}
	struct run run;
	struct sw_run_spec *spec = harness_spec(harness, "id -u; id -g; touch made; cat runs/*/spec.json || echo refused");
	spec->uid = 65534;
	spec->gid = 65534;
	spec->stdout_path = "theirs";
	harness_start(harness, spec, &run);
	harness_expect(&run, 0, 0, "");
	const char *text = harness_read(harness, "theirs");
	assert_ptr_equal(strstr(text, "65534\n65534\n"), text);
	assert_non_null(strstr(text, "refused"));
	char path[128];
	struct stat info;
	static const char *const made[] = {"made", "theirs"};
	for (size_t i = 0; i < 2; i++) {
		snprintf(path, sizeof path, "%s/%s", harness->state, made[i]);
		assert_int_equal(stat(path, &info), 0);
		assert_int_equal(info.st_uid, 65534);
	}
	/* Its output cannot go where only root may write. */
	spec = harness_spec(harness, "true");
	spec->uid = spec->gid = 65534;
	spec->stdout_path = "/root/sharewell-test";
	harness_start(harness, spec, &run);
	harness_expect(&run, 125, 0, SW_REASON_LAUNCH);
	assert_int_not_equal(access("/root/sharewell-test", F_OK), 0);
}

/* ---- stopping */

/* Stop reaches every process: first the signal, then, after the grace, SIGKILL; those that hide
 * (double fork, new session, deaf) included. */
static void test_stop_reaches_all(void **state)
{
	struct harness *harness = *state;
	struct run run;
	harness_start(harness,
		      harness_spec(harness,
				   "trap '' TERM; (setsid sh -c 'trap \"\" TERM HUP; echo $$ >deep; while :; do sleep 1; done' &) ; "
				   "(trap 'echo got >heard; exit 0' TERM; echo $$ >polite; while :; do sleep 0.02; done) & "
				   "echo $$ >main; while :; do sleep 1; done"),
		      &run);
	pid_t deep = atoi(harness_await(harness, "deep")), first = atoi(harness_await(harness, "main"));
	harness_await(harness, "polite");
	harness_tell(&run, "stop 1 0 300\n");
	struct sw_run_account *account = harness_finish(&run);
	assert_int_equal(account->run.signal, SIGKILL);
	assert_string_equal(account->run.reason, SW_REASON_STOPPED);
	sw_run_account_free(account);
	assert_string_equal(harness_read(harness, "heard"), "got\n");
	/* They were gone before the exit was told. */
	assert_true(harness_has_ended(deep));
	assert_true(harness_has_ended(first));
}

/* The stop's own signal is sent once, however often the same stop is told; a job that ends in its
 * grace ends with its own code. */
static void test_stop_signal(void **state)
{
	struct harness *harness = *state;
	struct run run;
	struct sw_run_spec *spec =
		harness_spec(harness, "trap 'n=$((n+1)); echo $n >count' USR1; trap 'sleep 0.2; exit 7' USR2; echo 1 >up; "
				      "while :; do sleep 0.02; done");
	spec->stop_signal = SIGUSR1;
	harness_start(harness, spec, &run);
	harness_await(harness, "up");
	for (int order = 1; order < 5; order++)
		harness_tell(&run, "stop %d 0 30000\n", order);
	harness_await(harness, "count");
	harness_sleep_ms(200);
	assert_string_equal(harness_read(harness, "count"), "1\n");
	harness_tell(&run, "stop 9 %d 30000\n", SIGUSR2);
	harness_expect(&run, 7, 0, SW_REASON_STOPPED);
}

/* What a job leaves running when it ends is ended, too, before the exit is told. */
static void test_leftovers(void **state)
{
	struct harness *harness = *state;
	struct run run;
	struct sw_run_spec *spec = harness_spec(harness, "(setsid sh -c 'trap \"\" TERM; echo $$ >left; while :; do sleep 1; done' &); "
							 "while [ ! -s left ]; do sleep 0.01; done; exit 5");
	spec->grace_ms = 100;
	harness_start(harness, spec, &run);
	harness_expect(&run, 5, 0, "");
	assert_true(harness_has_ended(atoi(harness_read(harness, "left"))));
}

/* Processes that fork faster than they are killed do not win. */
static void test_fork_race(void **state)
{
	struct harness *harness = *state;
	struct run run;
	harness_start(harness,
		      harness_spec(harness,
				   "f() { echo x >>alive; sleep 0.01; f & f2=; exit; }; f & f & f & echo 1 >up; while :; do sleep 1; done"),
		      &run);
	harness_await(harness, "up");
	harness_sleep_ms(100);
	harness_tell(&run, "stop 1 0 0\n");
	harness_expect(&run, 0, SIGKILL, SW_REASON_STOPPED);
	size_t size = strlen(harness_read(harness, "alive"));
	harness_sleep_ms(200);
	assert_int_equal(strlen(harness_read(harness, "alive")), size);
}

/* ---- suspending */

/* Suspended means that nothing moves; resumed, that it goes on. */
static void test_suspend(void **state)
{
	struct harness *harness = *state;
	struct run run;
	harness_start(
		harness,
		harness_spec(
			harness,
			"(setsid sh -c 'while :; do echo x >>deep; sleep 0.01; done' &); while :; do echo x >>count; sleep 0.01; done"),
		&run);
	harness_await(harness, "deep");
	for (int round = 0; round < 5; round++) {
		harness_tell(&run, "suspend %d\n", 2 * round + 1);
		struct sw_run_account *account = harness_wait(&run, SW_RUN_SUSPENDED);
		sw_run_account_free(account);
		size_t before = strlen(harness_read(harness, "count")), deep = strlen(harness_read(harness, "deep"));
		harness_sleep_ms(100);
		assert_int_equal(strlen(harness_read(harness, "count")), before);
		assert_int_equal(strlen(harness_read(harness, "deep")), deep);
		harness_tell(&run, "resume %d\n", 2 * round + 2);
		account = harness_wait(&run, SW_RUN_RUNNING);
		sw_run_account_free(account);
		while (strlen(harness_read(harness, "count")) == before)
			harness_sleep_ms(1);
	}
	/* Every account names the order that it follows. */
	harness_tell(&run, "status\n");
	struct sw_run_account *account;
	while ((account = harness_next(&run))->order != 10)
		sw_run_account_free(account);
	sw_run_account_free(account);
	harness_tell(&run, "suspend 11\n");
	account = harness_wait(&run, SW_RUN_SUSPENDED);
	sw_run_account_free(account);
	/* A suspended run can be stopped, and has its grace. */
	harness_tell(&run, "stop 12 0 10000\n");
	harness_expect(&run, 0, SIGTERM, SW_REASON_STOPPED);
}

/* A run without the GPU runtime cannot be taken off its GPUs whole: it is suspended as usual,
 * whether it stands already or not, and says why until it goes on. */
static void test_not_off_its_gpus(void **state)
{
	struct harness *harness = *state;
	struct run run;
	harness_start(harness, harness_spec(harness, "while :; do echo x >>count; sleep 0.01; done"), &run);
	harness_await(harness, "count");
	for (unsigned order = 1; order <= 2; order++) {
		struct sw_run_account *account;
		harness_tell(&run, "suspend %u deep\n", order);
		while ((account = harness_next(&run))->order != order || account->run.state != SW_RUN_SUSPENDED ||
		       account->run.depth != SW_DEPTH_USUAL)
			sw_run_account_free(account);
		assert_non_null(strstr(account->run.detail, "it runs without the GPU runtime"));
		sw_run_account_free(account);
	}
	harness_tell(&run, "resume 3\n");
	struct sw_run_account *account = harness_wait(&run, SW_RUN_RUNNING);
	assert_null(account->run.detail);
	sw_run_account_free(account);
	harness_tell(&run, "stop 4 0 -1\n");
	harness_expect(&run, 0, SIGTERM, SW_REASON_STOPPED);
}

/* A job that says so is not suspended; a wish to do so is noted and does no harm. */
static void test_no_suspend(void **state)
{
	struct harness *harness = *state;
	struct run run;
	struct sw_run_spec *spec = harness_spec(harness, "echo 1 >up; while :; do echo x >>count; sleep 0.01; done");
	spec->suspend = SW_SUSPEND_NONE;
	harness_start(harness, spec, &run);
	harness_await(harness, "up");
	harness_tell(&run, "suspend 1\n");
	struct sw_run_account *account;
	while ((account = harness_next(&run))->order != 1)
		sw_run_account_free(account);
	assert_true(account->run.state == SW_RUN_RUNNING && strstr(account->note, "suspended") != NULL);
	sw_run_account_free(account);
	harness_tell(&run, "stop 2 0 0\n");
	harness_expect(&run, 0, SIGKILL, SW_REASON_STOPPED);
}

/* ---- limits */

/* Past the lease the job gets its signal, and past its grace everything is killed; extending it in
 * time keeps the job alive. */
static void test_lease(void **state)
{
	struct harness *harness = *state;
	struct run run;
	struct sw_run_spec *spec = harness_spec(
		harness,
		"trap 'echo x >>signals' USR1; (setsid sh -c 'trap \"\" USR1; echo $$ >deep; sleep 100' &); while :; do sleep 0.1; done");
	spec->stop_signal = SIGUSR1;
	spec->grace_ms = 1000;
	harness_create(harness, spec, 1500, &run);
	harness_spawn(&run);
	pid_t deep = atoi(harness_await(harness, "deep"));
	int64_t deadline = harness_now_ns() + 3000 * SW_NS_PER_MS;
	harness_tell(&run, "lease %" PRId64 "\n", deadline);
	/* A lease never shrinks. */
	harness_tell(&run, "lease 1\n");
	struct sw_run_account *account = harness_finish(&run);
	assert_true(harness_now_ns() >= deadline + spec->grace_ms * SW_NS_PER_MS);
	assert_string_equal(account->run.reason, SW_REASON_LEASE);
	assert_int_equal(account->run.signal, SIGKILL);
	sw_run_account_free(account);
	assert_string_equal(harness_read(harness, "signals"), "x\n");
	assert_true(harness_has_ended(deep));
}

/* What it says after the signal is kept, but counts as an interruption. One that
 * stands still gets no grace. */
static void test_lease_obeyed(void **state)
{
	struct harness *harness = *state;
	struct run run;
	harness_create(harness, harness_spec(harness, "trap 'exit 9' TERM; echo 1 >up; while :; do sleep 0.02; done"), 1500, &run);
	harness_spawn(&run);
	harness_expect(&run, 9, 0, SW_REASON_LEASE);
	struct sw_run_spec *spec = harness_spec(harness, "trap 'echo 1 >woken' TERM; echo 1 >up2; while :; do sleep 0.02; done");
	spec->grace_ms = 60000;
	harness_create(harness, spec, 2500, &run);
	harness_spawn(&run);
	harness_await(harness, "up2");
	harness_tell(&run, "suspend 1\n");
	sw_run_account_free(harness_wait(&run, SW_RUN_SUSPENDED));
	harness_expect(&run, 0, SIGKILL, SW_REASON_LEASE);
	assert_string_equal(harness_read(harness, "woken"), "");
}

/* A run without a lease goes on alone: no client is linked to it, and no word comes. */
static void test_no_lease(void **state)
{
	struct harness *harness = *state;
	struct run run;
	harness_create(harness, harness_spec(harness, "echo 1 >up; while [ ! -e go ]; do sleep 0.02; done; exit 4"), HARNESS_NO_LEASE,
		       &run);
	harness_spawn(&run);
	harness_await(harness, "up");
	harness_sleep_ms(1500);
	harness_tell(&run, "lease 1\n");
	harness_tell(&run, "status\n");
	sw_run_account_free(harness_wait(&run, SW_RUN_RUNNING));
	char go[128];
	snprintf(go, sizeof go, "%s/go", harness->state);
	int fd = open(go, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	harness_expect(&run, 4, 0, "");
}

/* A run whose lease is over before it starts is not started. */
static void test_late_start(void **state)
{
	struct harness *harness = *state;
	struct run run;
	harness_create(harness, harness_spec(harness, "echo 1 >ran"), -1, &run);
	harness_spawn(&run);
	harness_expect(&run, 0, 0, SW_REASON_LEASE);
	assert_string_equal(harness_read(harness, "ran"), "");
}

/* The time limit warns first, then stops; time in suspension does not count. */
static void test_time_limit(void **state)
{
	struct harness *harness = *state;
	struct run run;
	struct sw_run_spec *spec =
		harness_spec(harness, "trap 'echo warned >warned' USR1; trap 'exit 3' TERM; echo 1 >up; while :; do sleep 0.02; done");
	spec->time_limit_ms = 1500;
	spec->warn_signal = SIGUSR1;
	spec->warn_ms = 700;
	harness_start(harness, spec, &run);
	harness_await(harness, "up");
	harness_tell(&run, "suspend 1\n");
	sw_run_account_free(harness_wait(&run, SW_RUN_SUSPENDED));
	harness_sleep_ms(1600);
	harness_tell(&run, "status\n");
	struct sw_run_account *account = harness_wait(&run, SW_RUN_SUSPENDED);
	sw_run_account_free(account);
	harness_tell(&run, "resume 2\n");
	account = harness_finish(&run);
	assert_int_equal(account->run.code, 3);
	assert_string_equal(account->run.reason, SW_REASON_TIME_LIMIT);
	assert_true(account->run.ended_at_ns - account->run.started_at_ns >= 3000 * SW_NS_PER_MS);
	assert_string_equal(harness_read(harness, "warned"), "warned\n");
	sw_run_account_free(account);
}

/* Gives an order, and waits until the run is in this state or has ended by its time limit. */
static void order_and_await(struct run *run, const char *word, unsigned order, enum sw_run_state wanted, bool *ended)
{
	char words[64];
	int size = snprintf(words, sizeof words, "%s %u\n", word, order);
	if (!*ended)
		(void)send(run->link, words, (size_t)size, MSG_NOSIGNAL);
	for (bool there = false; !*ended && !there;) {
		struct sw_run_account *account = harness_next(run);
		*ended = account == NULL || account->run.state == SW_RUN_EXITED;
		there = !*ended && account->run.state == wanted;
		if (*ended && account != NULL)
			assert_string_equal(account->run.reason, SW_REASON_TIME_LIMIT);
		sw_run_account_free(account);
	}
}

/* All the time that it runs counts towards the limit, however often it is suspended in between. */
static void test_time_limit_in_pieces(void **state)
{
	struct harness *harness = *state;
	struct run run;
	struct sw_run_spec *spec = harness_spec(harness, "while :; do sleep 0.02; done");
	spec->time_limit_ms = 1000;
	harness_start(harness, spec, &run);
	sw_run_account_free(harness_wait(&run, SW_RUN_RUNNING));
	bool ended = false;
	unsigned pieces = 0;
	/* 100 ms at least in each, from the report that it runs: ten of them are enough. */
	for (unsigned order = 1; !ended && pieces < 60; pieces++) {
		harness_sleep_ms(100);
		/* It may have ended meanwhile. */
		order_and_await(&run, "suspend", order++, SW_RUN_SUSPENDED, &ended);
		order_and_await(&run, "resume", order++, SW_RUN_RUNNING, &ended);
	}
	if (!ended)
		fail_msg("it ran %u times for 100 ms and more", pieces);
	harness_close(&run);
}

/* A gigabyte of output costs no more disk than the limit, neither kills nor blocks the job, and
 * leaves the beginning and the end. */
static void test_huge_output(void **state)
{
	struct harness *harness = *state;
	struct run run;
	struct sw_run_spec *spec =
		harness_spec(harness, "echo the beginning; head -c 1073741824 /dev/zero | tr '\\0' 'x'; echo; echo the end");
	spec->log_limit_bytes = 1 << 20;
	harness_start(harness, spec, &run);
	struct sw_run_account *account = harness_finish(&run);
	assert_int_equal(account->run.code, 0);
	assert_true(account->run.log_bytes == 1073741824 + 14 + 1 + 8);
	sw_run_account_free(account);
	char path[160];
	struct stat info;
	snprintf(path, sizeof path, "%s/out.log", run.path);
	assert_int_equal(stat(path, &info), 0);
	assert_true(info.st_size <= 1 << 20 && info.st_size >= 1 << 19);
	char *text = malloc((size_t)info.st_size + 1);
	int fd = open(path, O_RDONLY);
	assert_int_equal(read(fd, text, (size_t)info.st_size), info.st_size);
	close(fd);
	text[info.st_size] = '\0';
	assert_ptr_equal(strstr(text, "the beginning\n"), text);
	assert_string_equal(text + info.st_size - 9, "\nthe end\n");
	assert_non_null(strstr(text, "bytes were left out here]"));
	free(text);
}

/* A run that failed is classified by the end of its log, whichever file that goes to, and the exit
 * account on disk has it. */
static void test_failure_class(void **state)
{
	static const struct {
		const char *script, *failure, *line;
	} cases[] = {
		{"echo 'CUDA out of memory. Tried 2 GiB' >&2; exit 1", "gpu-oom", "CUDA out of memory. Tried 2 GiB"},
		{"seq 100000; echo \"ModuleNotFoundError: No module named 'x'\"; exit 1", "import-error",
		 "ModuleNotFoundError: No module named 'x'"},
		{"kill -9 $$", "killed", NULL},
		{"exit 3", "unknown", NULL},
		{"echo CUDA out of memory", NULL, NULL},
	};
	struct harness *harness = *state;
	for (size_t i = 0; i < 2 * sizeof cases / sizeof cases[0]; i++) {
		struct run run;
		struct sw_run_spec *spec = harness_spec(harness, cases[i / 2].script);
		char out[128], errors[128];
		if (i % 2 == 1) { /* in files of the user's own */
			snprintf(out, sizeof out, "%s/out", harness->state);
			snprintf(errors, sizeof errors, "%s/errors", harness->state);
			spec->stdout_path = out;
			spec->stderr_path = errors;
		}
		harness_start(harness, spec, &run);
		struct sw_run_account *account = harness_wait(&run, SW_RUN_EXITED);
		if (cases[i / 2].failure != NULL)
			assert_string_equal(account->run.failure, cases[i / 2].failure);
		else
			assert_null(account->run.failure);
		if (cases[i / 2].line != NULL)
			assert_string_equal(account->run.failure_line, cases[i / 2].line);
		sw_run_account_free(account);
		harness_close(&run);
		if (cases[i / 2].failure != NULL)
			assert_non_null(strstr(harness_run_file(&run, "exit.json"), cases[i / 2].failure));
	}
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, harness_set_up, harness_tear_down)

int main(int argc, char **argv)
{
	harness_main(argc, argv);
	const struct CMUnitTest tests[] = {
		TEST(test_exit_codes),	     TEST(test_signals),       TEST(test_launch_failures), TEST(test_account),
		TEST(test_surroundings),     TEST(test_output_files),  TEST(test_other_user),	   TEST(test_stop_reaches_all),
		TEST(test_stop_signal),	     TEST(test_leftovers),     TEST(test_fork_race),	   TEST(test_suspend),
		TEST(test_not_off_its_gpus), TEST(test_no_suspend),    TEST(test_lease),	   TEST(test_lease_obeyed),
		TEST(test_no_lease),	     TEST(test_late_start),    TEST(test_time_limit),	   TEST(test_time_limit_in_pieces),
		TEST(test_huge_output),	     TEST(test_failure_class),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
