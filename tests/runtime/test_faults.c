/* What goes wrong: requests that make no sense, processes that die at the worst moment, more
 * processes than are expected. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/job.h"

/* ---- requests that make no sense */

enum { ANSWERS_MAX = 32 };
static const char *answers_file;

/* Asks what no program should, and writes down what it hears. */
static void ask_oddly(int socket)
{
	(void)socket;
	int answers[ANSWERS_MAX];
	size_t count = 0, pitch = 0;
	CUdeviceptr x = 0, base = 0;
	uint32_t word = 7;
	open_driver();
#define ASK(call) answers[count++] = (int)(call)
	ASK(cuMemAlloc_v2(&x, 0));
	ASK(cuMemAlloc_v2(NULL, 100));
	ASK(cuMemAlloc_v2(&x, SIZE_MAX));
	ASK(cuMemAlloc_v2(&x, SIZE_MAX / 2));
	ASK(cuMemAlloc_v2(&x, 600 * MiB)); /* the GPU has 512 */
	ASK(cuMemAllocPitch_v2(&x, &pitch, 0, 10, 4));
	ASK(cuMemAllocPitch_v2(&x, &pitch, 100, 10, 3));
	ASK(cuMemAllocPitch_v2(&x, NULL, 100, 10, 4));
	ASK(cuMemAllocPitch_v2(&x, &pitch, SIZE_MAX / 2, 10, 4));
	ASK(cuMemAllocManaged(&x, 0, 1));
	ASK(cuMemAllocManaged(&x, 100, 77));
	ASK(cuMemAllocAsync(&x, 0, NULL));
	ASK(cuMemAllocAsync(&x, SIZE_MAX, NULL));
	ASK(cuMemFree_v2(0));
	ASK(cuMemFree_v2(0x1234));
	ASK(cuMemFree_v2((CUdeviceptr)(uintptr_t)&word));
	ASK(cuMemFreeAsync(0x1234, NULL));
	ASK(cuMemGetAddressRange_v2(&base, &pitch, 0x1234));
	assert_cuda(cuMemAlloc_v2(&x, 100));
	ASK(cuMemFree_v2(x + 4)); /* not its beginning */
	assert_cuda(cuMemcpyHtoD_v2(x, &word, sizeof word));
	word = 0;
	assert_cuda(cuMemcpyDtoH_v2(&word, x, sizeof word));
	assert_int_equal(word, 7);
	ASK(cuMemFree_v2(x));
	ASK(cuMemFree_v2(x));
	ASK(cuMemRelease(0x1234));
	ASK(cuMemUnmap(0x1234, UNIT));
	ASK(cuMemAddressFree(0x1234, UNIT));
	/* All of it, and then nothing more. */
	size_t available = 0, total = 0;
	assert_cuda(cuMemGetInfo_v2(&available, &total));
	ASK(cuMemAlloc_v2(&x, available / UNIT * UNIT));
	ASK(cuMemAlloc_v2(&base, 8 * UNIT));
	ASK(cuMemFree_v2(x));
#undef ASK
	FILE *file = fopen(answers_file, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(answers, sizeof answers[0], count, file), count);
	assert_int_equal(fclose(file), 0);
}

static size_t read_answers(int answers[ANSWERS_MAX])
{
	FILE *file = fopen(answers_file, "r");
	assert_non_null(file);
	size_t count = fread(answers, sizeof answers[0], ANSWERS_MAX, file);
	fclose(file);
	remove(answers_file);
	return count;
}

/* Whatever a program asks for, the runtime answers as the driver alone does: nothing, everything,
 * more than everything, what is not its own. */
static void test_odd_requests_are_answered_as_the_driver_does(void **state)
{
	(void)state;
	int bare[ANSWERS_MAX] = {0}, under[ANSWERS_MAX] = {0};
	char name[160];
	snprintf(name, sizeof name, "%s", beside("answers"));
	answers_file = name;
	unsetenv(SW_PAGE_ENV);
	run_job(ask_oddly);
	size_t count = read_answers(bare);
	setenv(SW_PAGE_ENV, page_path(), 1);
	host_budget(0); /* as the driver: what does not fit is refused, not put elsewhere */
	run_job(ask_oddly);
	assert_int_equal(read_answers(under), count);
	for (size_t i = 0; i < count; i++)
		if (bare[i] != under[i])
			fail_msg("question %zu: the driver says %d, the runtime %d", i, bare[i], under[i]);
	assert_int_equal(look().gpus[0].charged_bytes, 0);
}

/* ---- death in the middle of a move */

enum { PIECES = 24 };

/* Holds contents until it is killed, or asked whether they are still there. */
static void hold(int socket)
{
	static uint8_t bytes[4 * MiB], found[4 * MiB];
	CUdeviceptr x[PIECES];
	open_driver();
	for (unsigned i = 0; i < PIECES; i++) {
		memset(bytes, (int)i + 1, sizeof bytes);
		assert_cuda(cuMemAlloc_v2(&x[i], sizeof bytes));
		assert_cuda(cuMemcpyHtoD_v2(x[i], bytes, sizeof bytes));
	}
	tell(socket, 'r');
	hear(socket, 'c');
	for (unsigned i = 0; i < PIECES; i++) {
		memset(bytes, (int)i + 1, sizeof bytes);
		assert_cuda(cuMemcpyDtoH_v2(found, x[i], sizeof found));
		assert_memory_equal(found, bytes, sizeof found);
	}
	tell(socket, 'd');
}

static uint32_t state_of(const struct sw_page *shared, pid_t pid)
{
	for (unsigned i = 0; i < SW_PAGE_SLOTS; i++)
		if (atomic_load(&shared->slots[i].pid) == pid)
			return atomic_load(&shared->slots[i].state);
	return SW_PAGE_UNUSED;
}

/* A process that is killed while its memory moves out, or back, gives everything back; the others
 * of its job are suspended and resumed with their contents. */
static void test_killed_in_the_middle_of_a_move(void **state)
{
	(void)state;
	/* Slow copies: 96 MiB take about a third of a second, and a kill finds them under way. */
	machine_setting("h2d=0.3");
	machine_setting("d2h=0.3");
	struct sw_page *shared = raw_page(page_path());
	struct job survivor = start(hold);
	hear(survivor.socket, 'r');
	for (int outward = 0; outward < 2; outward++) {
		struct job victim = start(hold);
		hear(victim.socket, 'r');
		if (outward == 0)
			suspend();
		uint32_t wish = sw_share_page_want(page(), outward == 1 ? SW_PAGE_SUSPEND : SW_PAGE_RUN);
		uint32_t moving = outward == 1 ? SW_PAGE_SUSPENDING : SW_PAGE_RESUMING;
		eventually(state_of(shared, victim.pid) == moving);
		kill_job(&victim);
		assert_true(sw_share_page_wait(page(), wish, PATIENCE));
		if (outward == 1) {
			assert_int_equal(look().suspended, 1);
			assert_int_equal(gpu_used(), CONTEXT_BYTES);
			resume();
		}
		assert_int_equal(look().processes, 1);
		assert_int_equal(look().gpus[0].charged_bytes, CONTEXT_BYTES + PIECES * 4 * MiB);
		assert_int_equal(look().gpus[0].host_bytes, 0);
		assert_int_equal(gpu_used(), CONTEXT_BYTES + PIECES * 4 * MiB);
	}
	tell(survivor.socket, 'c');
	hear(survivor.socket, 'd');
	end(&survivor);
}

/* A program that is suspended when its coordinator is killed comes back by itself: there is no
 * other that could do it. */
static void test_the_coordinator_dies(void **state)
{
	(void)state;
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
	struct job job = start(hold);
	hear(job.socket, 'r');
	int keeper = open(page_path(), O_RDWR | O_CLOEXEC);
	assert_true(keeper >= 0 && fcntl(keeper, F_OFD_SETLK, &lock) == 0);
	suspend();
	assert_int_equal(gpu_used(), CONTEXT_BYTES);
	close(keeper);
	eventually(look().running == 1);
	tell(job.socket, 'c');
	hear(job.socket, 'd');
	end(&job);
}

/* ---- the end of a program */

static CUdeviceptr last_piece;

/* After the driver: it shut down at the exit of the process, where this was to be called before
 * that was even initialised. */
static void free_late(void)
{
	_exit(cuMemFree_v2(last_piece) == CUDA_ERROR_DEINITIALIZED ? 0 : 2);
}

static void leave_while_suspended(int socket)
{
	assert_int_equal(atexit(free_late), 0);
	open_driver();
	assert_cuda(cuMemAlloc_v2(&last_piece, 4 * MiB));
	tell(socket, 'r');
	hear(socket, 'c');
	exit(3);
}

/* A program that ends while it is suspended, and calls the driver after that has shut down,
 * ends. */
static void test_the_driver_shuts_down_while_suspended(void **state)
{
	(void)state;
	struct job job = start(leave_while_suspended);
	hear(job.socket, 'r');
	suspend();
	tell(job.socket, 'c');
	end(&job);
	assert_int_equal(look().processes, 0);
}

/* ---- a crowd */

static void take_a_little(int socket)
{
	uint32_t word = (uint32_t)getpid(), found = 0;
	CUdeviceptr x = 0;
	open_driver();
	assert_cuda(cuMemAlloc_v2(&x, 100));
	assert_cuda(cuMemcpyHtoD_v2(x, &word, sizeof word));
	tell(socket, 'r');
	hear(socket, 'c');
	assert_cuda(cuMemcpyDtoH_v2(&found, x, sizeof found));
	assert_int_equal(found, word);
}

/* A thousand processes of one job on one GPU: each counts, all are suspended and resumed, and
 * nothing is left of them. */
static void test_a_thousand_processes(void **state)
{
	(void)state;
	enum { CROWD = 1000 };
	static struct job jobs[CROWD];
	struct rlimit files;
	machine_setting("memory=64G");
	sw_share_page_host_budget(page(), 4096 * MiB);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	if (files.rlim_cur < CROWD + 100)
		skip(); /* one socket for each */
	for (unsigned i = 0; i < CROWD; i++)
		jobs[i] = start(take_a_little);
	for (unsigned i = 0; i < CROWD; i++)
		hear(jobs[i].socket, 'r');
	assert_int_equal(look().processes, CROWD);
	assert_int_equal(look().gpus[0].charged_bytes, CROWD * (CONTEXT_BYTES + UNIT));
	suspend();
	assert_int_equal(look().suspended, CROWD);
	assert_int_equal(gpu_used(), CROWD * CONTEXT_BYTES);
	resume();
	for (unsigned i = 0; i < CROWD; i++)
		tell(jobs[i].socket, 'c');
	for (unsigned i = 0; i < CROWD; i++)
		end(&jobs[i]);
	assert_int_equal(look().processes, 0);
	assert_int_equal(look().gpus[0].charged_bytes, 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, machine_up, machine_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_odd_requests_are_answered_as_the_driver_does),
		CASE(test_killed_in_the_middle_of_a_move),
		CASE(test_the_coordinator_dies),
		CASE(test_the_driver_shuts_down_while_suspended),
		CASE(test_a_thousand_processes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
