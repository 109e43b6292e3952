/* Which processes live, and which of them stand still. */
#include "agent/processes.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static int said[2], heard[2];

static void *go_on(void *unused)
{
	char byte;
	(void)unused;
	/* Until its parent closes its end. */
	(void)!read(heard[0], &byte, 1);
	_exit(0);
}

/* A child whose first thread ends while another one goes on. */
static pid_t start(void)
{
	assert_int_equal(pipe(said), 0);
	assert_int_equal(pipe(heard), 0);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		pthread_t thread;
		close(heard[1]);
		if (pthread_create(&thread, NULL, go_on, NULL) != 0 || write(said[1], "r", 1) != 1)
			_exit(1);
		pthread_exit(NULL);
	}
	char byte;
	close(heard[0]);
	assert_int_equal(read(said[0], &byte, 1), 1);
	return child;
}

static char state_of(pid_t pid)
{
	struct sw_process process;
	return sw_process_read(pid, &process) ? process.state : '-';
}

static void doze(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static size_t living(struct sw_processes *processes)
{
	assert_int_equal(sw_processes_read(processes), 0);
	return sw_processes_choose_tree(processes, getpid(), NULL);
}

/* A process whose first thread has ended lives for as long as others run: it is found, stops when
 * it is told to, and only then is dead. */
static void test_first_thread_ends_first(void **state)
{
	(void)state;
	struct sw_processes processes = {0};
	pid_t child = start();
	while (state_of(child) != 'Z')
		doze();
	assert_int_equal(living(&processes), 1);
	assert_false(sw_processes_are_stopped(&processes));
	assert_int_equal(sw_processes_signal(&processes, SIGSTOP), 0);
	do {
		doze();
		assert_int_equal(living(&processes), 1);
	} while (!sw_processes_are_stopped(&processes));
	assert_int_equal(sw_processes_signal(&processes, SIGCONT), 0);
	close(heard[1]);
	while (living(&processes) > 0)
		doze();
	assert_true(sw_processes_are_stopped(&processes));
	assert_int_equal(waitpid(child, NULL, 0), child);
	sw_processes_release(&processes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_first_thread_ends_first)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
