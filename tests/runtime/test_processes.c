/* The processes of a job: what they share, and what happens when they fork, die, close what is not
 * theirs, or have no page. */
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/words_job.h"

/* ---- several processes */

/* Takes what it can get, and says how many units that were. */
static void grab(int socket)
{
	CUdeviceptr x[64];
	unsigned count = 0;
	open_driver();
	tell(socket, 'r');
	hear(socket, 'g');
	while (count < 64 && cuMemAlloc_v2(&x[count], 4 * MiB) == CUDA_SUCCESS)
		count++;
	tell(socket, (char)count);
	hear(socket, 'e');
}

/* However many processes of a job take at the same moment: together they stay within
 * its limit, and use it. */
static void test_processes_share_one_limit(void **state)
{
	(void)state;
	enum { TAKERS = 4 };
	sw_share_page_host_budget(page(), 0);
	sw_share_page_limit(page(), 0, TAKERS * CONTEXT_BYTES + 100 * MiB);
	for (unsigned round = 0; round < 3; round++) {
		struct job jobs[TAKERS];
		uint64_t sum = 0;
		for (unsigned i = 0; i < TAKERS; i++)
			jobs[i] = start(grab);
		for (unsigned i = 0; i < TAKERS; i++)
			hear(jobs[i].socket, 'r');
		for (unsigned i = 0; i < TAKERS; i++)
			tell(jobs[i].socket, 'g');
		for (unsigned i = 0; i < TAKERS; i++) {
			char count = 0;
			assert_int_equal(read(jobs[i].socket, &count, 1), 1);
			sum += (uint64_t)count * 4 * MiB;
			assert_true(gpu_used() <= TAKERS * CONTEXT_BYTES + 100 * MiB);
		}
		assert_int_equal(look().gpus[0].charged_bytes, TAKERS * CONTEXT_BYTES + sum);
		assert_int_equal(sum, 100 * MiB);
		/* Killed or ended, they give it back. */
		for (unsigned i = 0; i < TAKERS; i++) {
			if (round == 1) {
				kill_job(&jobs[i]);
			} else {
				tell(jobs[i].socket, 'e');
				end(&jobs[i]);
			}
		}
	}
	assert_int_equal(look().processes, 0);
}

/* What a killed process held can be had by another of its job at once, on the GPU and in host
 * memory, with no coordinator looking. */
static void test_a_killed_process_gives_back(void **state)
{
	(void)state;
	sw_share_page_host_budget(page(), 40 * MiB);
	sw_share_page_limit(page(), 0, 2 * CONTEXT_BYTES + 60 * MiB);
	struct job first = start(grab), second = start(grab);
	char count = 0;
	hear(first.socket, 'r');
	hear(second.socket, 'r');
	tell(first.socket, 'g');
	assert_int_equal(read(first.socket, &count, 1), 1);
	assert_int_equal(count, 25);
	kill_job(&first);
	tell(second.socket, 'g');
	assert_int_equal(read(second.socket, &count, 1), 1);
	/* Its context as well. */
	assert_int_equal(count, 25 + CONTEXT_BYTES / (4 * MiB));
	tell(second.socket, 'e');
	end(&second);
}

/* All processes of a job are suspended, and those that come meanwhile too. */
static void test_a_gang_is_suspended(void **state)
{
	(void)state;
	struct job jobs[3];
	for (unsigned i = 0; i < 2; i++) {
		jobs[i] = start(live_on_words);
		hear(jobs[i].socket, 'r');
	}
	suspend();
	assert_int_equal(look().suspended, 2);
	assert_int_equal(gpu_used(), 2 * CONTEXT_BYTES);
	jobs[2] = start(grab);
	eventually(look().suspended == 3);
	/* Where one of them dies, the others come back. */
	kill_job(&jobs[0]);
	resume();
	hear(jobs[2].socket, 'r');
	assert_int_equal(look().processes, 2);
	kill_job(&jobs[2]);
	tell(jobs[1].socket, 'g');
	hear(jobs[1].socket, 'd');
	tell(jobs[1].socket, 'e');
	end(&jobs[1]);
}

/* ---- forks */

static void fork_after(int socket)
{
	static uint32_t words[WORDS];
	CUdeviceptr x = 0;
	open_driver();
	assert_cuda(cuMemAlloc_v2(&x, 8 * MiB));
	assert_cuda(cuMemcpyHtoD_v2(x, words, sizeof words));
	pid_t pid = fork();
	if (pid == 0) {
		CUdeviceptr y = 0;
		bool good = cuMemAlloc_v2(&y, 100) != CUDA_SUCCESS && cuMemFree_v2(x) != CUDA_SUCCESS &&
			    launch_spin(NULL, 1) != CUDA_SUCCESS && cuMemAllocManaged(&y, 100, 1) != CUDA_SUCCESS;
		_exit(good ? 0 : 1);
	}
	int status = -1;
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	tell(socket, 'd');
	hear(socket, 'g');
	check_words(x, words);
}

/* A child of a process that uses the GPU has no part in it, nor harms it. */
static void test_fork_after_init(void **state)
{
	(void)state;
	for (int paced = 0; paced < 2; paced++) {
		struct sw_page *shared = raw_page(page_path());
		atomic_store(&shared->share_milli, paced ? 900 : 0);
		atomic_store(&shared->watched, paced ? 1 : 0);
		struct job job = start(fork_after);
		hear(job.socket, 'd');
		assert_int_equal(look().processes, 1);
		suspend();
		resume();
		tell(job.socket, 'g');
		end(&job);
		assert_int_equal(look().processes, 0);
	}
}

static void leave_a_child(int socket)
{
	CUdeviceptr x = 0;
	open_driver();
	assert_cuda(cuMemAlloc_v2(&x, 8 * MiB));
	/* Until the test is over: it holds its end of the socket. */
	if (fork() == 0) {
		char word;
		(void)!read(socket, &word, 1);
		_exit(0);
	}
	tell(socket, 'r');
	for (;;)
		pause();
}

/* A child that outlives its parent does not keep the parent's place, and what a coordinator
 * wants goes on to be done. */
static void test_a_child_outlives_its_parent(void **state)
{
	(void)state;
	struct job job = start(leave_a_child);
	int status;
	hear(job.socket, 'r');
	kill(job.pid, SIGKILL);
	assert_int_equal(waitpid(job.pid, &status, 0), job.pid);
	eventually(look().processes == 0);
	assert_int_equal(look().gpus[0].charged_bytes, 0);
	suspend();
	close(job.socket);
}

static void fork_before(int socket)
{
	pid_t pid = fork();
	CUdeviceptr x = 0;
	open_driver();
	assert_cuda(cuMemAlloc_v2(&x, 8 * MiB));
	if (pid == 0) {
		eventually(look().processes == 2);
		eventually(look().gpus[0].charged_bytes == 2 * CONTEXT_BYTES + 16 * MiB);
		_exit(0);
	}
	int status = -1;
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	tell(socket, 'd');
	hear(socket, 'e');
}

/* Processes that fork before they use the GPU are two processes of the job. */
static void test_fork_before_init(void **state)
{
	(void)state;
	struct job job = start(fork_before);
	hear(job.socket, 'd');
	assert_int_equal(look().processes, 1);
	assert_int_equal(look().gpus[0].charged_bytes, CONTEXT_BYTES + 8 * MiB);
	tell(job.socket, 'e');
	end(&job);
}

/* ---- the page's file */

/* The number under which the runtime has it open, which is not below the one given; -1: none. */
static int page_number(int from)
{
	for (int fd = from; fd < 1024; fd++) {
		char link[64], name[200];
		snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
		ssize_t length = readlink(link, name, sizeof name - 1);
		name[length > 0 ? length : 0] = '\0';
		if (strcmp(name, page_path()) == 0)
			return fd;
	}
	return -1;
}

static void close_what_is_not_ours(int socket)
{
	CUdeviceptr x = 0;
	int status = -1, first = open("/dev/null", O_WRONLY | O_CLOEXEC);
	(void)socket;
	open_driver();
	int own = page_number(first);
	assert_true(own >= 0);
	assert_int_equal(dup2(first, own), own);
	pid_t pid = fork();
	if (pid == 0)
		_exit(fcntl(own, F_GETFD) < 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_cuda(cuMemAlloc_v2(&x, 4 * MiB));
	assert_int_equal(look().processes, 1);
	assert_int_equal(look().gpus[0].charged_bytes, CONTEXT_BYTES + 4 * MiB);
}

/* A program that closes files that it did not open keeps its own under their
 * numbers, and its place. */
static void test_the_page_is_closed_by_the_program(void **state)
{
	(void)state;
	run_job(close_what_is_not_ours);
}

static void have_no_output(int socket)
{
	(void)socket;
	close(STDOUT_FILENO);
	close(STDERR_FILENO);
	open_driver();
	assert_true(page_number(0) > STDERR_FILENO);
}

/* What a program writes that has closed its output does not go into the page. */
static void test_a_program_without_output(void **state)
{
	(void)state;
	run_job(have_no_output);
}

/* ---- no page */

static void use_plainly(int socket)
{
	static uint32_t words[WORDS];
	CUdeviceptr x = 0, base = 0;
	size_t bytes = 0;
	(void)socket;
	open_driver();
	assert_cuda(cuMemAlloc_v2(&x, 8 * MiB));
	assert_cuda(cuMemcpyHtoD_v2(x, words, sizeof words));
	check_words(x, words);
	assert_cuda(cuMemGetAddressRange_v2(&base, &bytes, x + 5));
	assert_true(base == x && bytes == 8 * MiB);
	assert_cuda(launch_spin(NULL, 1000));
	assert_cuda(cuCtxSynchronize());
	assert_cuda(cuMemFree_v2(x));
	assert_int_equal(look().processes, 0);
}

static void write_file(const char *path, const void *bytes, size_t length, size_t size)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, length), length);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	close(fd);
}

/* Without a page, or with something that is none, the program runs as if the
 * runtime were not there. */
static void test_no_page(void **state)
{
	(void)state;
	struct sw_page head = {.magic = SW_PAGE_MAGIC, .format = SW_PAGE_FORMAT, .gpu_count = SW_PAGE_GPUS + 1};
	unsetenv(SW_PAGE_ENV);
	run_job(use_plainly);
	setenv(SW_PAGE_ENV, "", 1);
	run_job(use_plainly);
	setenv(SW_PAGE_ENV, beside("none"), 1);
	run_job(use_plainly);
	setenv(SW_PAGE_ENV, "/tmp", 1);
	run_job(use_plainly);
	setenv(SW_PAGE_ENV, beside("short"), 1);
	write_file(beside("short"), &head, 64, 64);
	run_job(use_plainly);
	setenv(SW_PAGE_ENV, beside("gpus"), 1);
	write_file(beside("gpus"), &head, 64, sizeof head);
	run_job(use_plainly);
	head.gpu_count = 1;
	head.format++;
	write_file(beside("gpus"), &head, 64, sizeof head);
	run_job(use_plainly);
	memset(&head, 0x5a, 64);
	write_file(beside("gpus"), &head, 64, sizeof head);
	run_job(use_plainly);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, machine_up, machine_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_processes_share_one_limit),
		CASE(test_a_killed_process_gives_back),
		CASE(test_a_gang_is_suspended),
		CASE(test_fork_after_init),
		CASE(test_a_child_outlives_its_parent),
		CASE(test_fork_before_init),
		CASE(test_the_page_is_closed_by_the_program),
		CASE(test_a_program_without_output),
		CASE(test_no_page),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
