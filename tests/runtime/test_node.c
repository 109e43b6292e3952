/* One bound for the host memory that contents of GPUs take on a machine, over programs that know
 * nothing of each other. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/clock_job.h"
#include "runtime/job.h"

enum { PIECE_WORDS = 1 << 20, PIECES = 25 };
#define PIECE_BYTES (PIECE_WORDS * sizeof(uint32_t))
#define HELD_BYTES (PIECES * PIECE_BYTES) /* 100 MiB */

static struct sw_share_page *second;

static int up(void **state)
{
	const char *const uuids[] = {"GPU-5ba7e001-0000-4000-8000-000000000001"};
	machine_up(state);
	assert_int_equal(sw_share_page_new(beside("second"), uuids, 1, &second, NULL), 0);
	sw_share_page_host_budget(second, 1024 * MiB);
	snprintf(sw_share_page_shared(second)->host_ledger, SW_PAGE_PATH, "%s", beside("ledger"));
	return 0;
}

static int down(void **state)
{
	clock_go_on();
	sw_share_page_close(second);
	return machine_down(state);
}

static struct job start_second(void (*run)(int socket))
{
	setenv(SW_PAGE_ENV, beside("second"), 1);
	struct job job = start(run);
	setenv(SW_PAGE_ENV, page_path(), 1);
	return job;
}

static struct sw_share_figures look_second(void)
{
	struct sw_share_figures figures;
	sw_share_page_look(second, &figures);
	return figures;
}

static uint32_t words[PIECE_WORDS], back[PIECE_WORDS];

/* What lies in a piece of a process. */
static void fill_words(unsigned piece, uint32_t process)
{
	for (uint32_t i = 0; i < PIECE_WORDS; i++)
		words[i] = (process + piece * PIECE_WORDS + i) * 2654435761U;
}

/* Fills its memory, and finds it as it was whenever it is asked. */
static void hold(int socket)
{
	CUdeviceptr x[PIECES];
	uint32_t self = (uint32_t)getpid();
	char word = 0;
	open_driver();
	for (unsigned i = 0; i < PIECES; i++) {
		assert_cuda(cuMemAlloc_v2(&x[i], PIECE_BYTES));
		fill_words(i, self);
		assert_cuda(cuMemcpyHtoD_v2(x[i], words, sizeof words));
	}
	tell(socket, 'r');
	while (read(socket, &word, 1) == 1 && word == 'c') {
		for (unsigned i = 0; i < PIECES; i++) {
			assert_cuda(cuMemcpyDtoH_v2(back, x[i], sizeof back));
			fill_words(i, self);
			assert_memory_equal(back, words, sizeof back);
		}
		tell(socket, 'd');
	}
}

static void check(const struct job *job)
{
	tell(job->socket, 'c');
	hear(job->socket, 'd');
}

static void finish(struct job *job)
{
	check(job);
	tell(job->socket, 'e');
	end(job);
}

/* The second of two that do not fit is not suspended, says why, goes on with its contents whole,
 * and is suspended when the first is gone, however that came. */
static void test_second_is_refused(void **state)
{
	(void)state;
	machine_host_memory(150 * MiB, 0);
	struct job job = start(hold), other = start_second(hold);
	hear(job.socket, 'r');
	hear(other.socket, 'r');
	suspend();
	uint32_t wish = sw_share_page_want(second, SW_PAGE_SUSPEND);
	eventually(look_second().trouble == SW_PAGE_NO_HOST_MEMORY);
	assert_true(host_used() <= 150 * MiB);
	check(&other);
	assert_int_equal(look_second().gpus[0].charged_bytes, CONTEXT_BYTES + HELD_BYTES);
	kill_job(&job);
	assert_true(sw_share_page_wait(second, wish, PATIENCE));
	assert_int_equal(look_second().suspended, 1);
	assert_true(host_used() <= 150 * MiB);
	sw_share_page_want(second, SW_PAGE_RUN);
	finish(&other);
	assert_int_equal(host_used(), 0);
}

/* Memory that one has made ahead and does not use goes to another that needs it. */
static void test_made_ahead_gives_way(void **state)
{
	(void)state;
	machine_host_memory(150 * MiB, 0);
	struct job job = start(hold);
	hear(job.socket, 'r');
	eventually(host_used() >= HELD_BYTES);
	struct job other = start_second(hold);
	hear(other.socket, 'r');
	assert_true(sw_share_page_wait(second, sw_share_page_want(second, SW_PAGE_SUSPEND), PATIENCE));
	assert_true(host_used() <= 150 * MiB);
	check(&job);
	/* And back again. */
	assert_true(sw_share_page_wait(second, sw_share_page_want(second, SW_PAGE_RUN), PATIENCE));
	suspend();
	assert_true(host_used() <= 150 * MiB);
	resume();
	finish(&other);
	finish(&job);
	assert_int_equal(host_used(), 0);
}

static void hold_and_free(int socket)
{
	CUdeviceptr x;
	open_driver();
	assert_cuda(cuMemAlloc_v2(&x, HELD_BYTES));
	eventually(host_used() >= HELD_BYTES);
	assert_cuda(cuMemFree_v2(x));
	tell(socket, 'r');
	hear(socket, 'e');
}

/* So does what a program has made ahead for memory that it has freed since, though none is left. */
static void test_left_over_gives_way(void **state)
{
	(void)state;
	machine_host_memory(150 * MiB, 0);
	struct job job = start(hold_and_free);
	hear(job.socket, 'r');
	struct job other = start_second(hold);
	hear(other.socket, 'r');
	assert_true(sw_share_page_wait(second, sw_share_page_want(second, SW_PAGE_SUSPEND), PATIENCE));
	assert_int_equal(look_second().suspended, 1);
	assert_true(host_used() <= 150 * MiB);
	sw_share_page_want(second, SW_PAGE_RUN);
	finish(&other);
	tell(job.socket, 'e');
	end(&job);
}

static void end_context(int socket)
{
	CUcontext context = NULL;
	CUdeviceptr x;
	(void)socket;
	open_driver();
	assert_cuda(cuCtxCreate_v2(&context, 0, 0));
	assert_cuda(cuMemAlloc_v2(&x, 20 * MiB));
	eventually(host_used() > 0);
	assert_cuda(cuCtxDestroy_v2(context));
	assert_cuda(cuCtxSetCurrent(primary()));
	assert_cuda(cuMemAlloc_v2(&x, HELD_BYTES));
	eventually(host_used() >= HELD_BYTES);
}

/* A context that goes while memory is made ahead in it goes after that, and
 * more is made in others. */
static void test_context_goes_meanwhile(void **state)
{
	(void)state;
	machine_setting("fault=cuMemHostRegister_v2:delay_us=500000");
	run_job(end_context);
	assert_int_equal(host_used(), 0);
}

static bool gives(void)
{
	return look().giving > 0;
}

/* A suspend is done when the GPU is free: what a shrink has left of host memory is given back after
 * that, and counts until then. One that is called back at once does not finish that first. */
static void test_given_back_after(void **state)
{
	(void)state;
	char faults[160];
	machine_faults("");
	struct job job = start(hold);
	hear(job.socket, 'r');
	limit(CONTEXT_BYTES + 20 * MiB);
	limit(SW_PAGE_NO_LIMIT);
	/* What is made ahead for a suspend may be a little more than that needs. */
	eventually(host_used() >= HELD_BYTES + 20 * PIECE_BYTES);
	/* Its own memory on the GPU goes as fast as ever, and then each piece of the
	 * host's takes a second. */
	snprintf(faults, sizeof faults, "cuMemRelease:first=%d:count=1000:delay_us=1000000\n", PIECES + 1);
	machine_faults(faults);
	suspend();
	assert_int_equal(look().gpus[0].charged_bytes, CONTEXT_BYTES);
	assert_true(gives());
	assert_true(host_used() > HELD_BYTES + 10 * PIECE_BYTES);
	resume();
	assert_false(gives());
	assert_true(host_used() > HELD_BYTES + 10 * PIECE_BYTES);
	check(&job);
	machine_faults("");
	suspend();
	eventually(!gives());
	assert_in_range(host_used(), HELD_BYTES, HELD_BYTES + 10 * PIECE_BYTES);
	resume();
	finish(&job);
	assert_int_equal(host_used(), 0);
}

/* Whether a process of the job was ever stopped to have its memory moved. */
static bool stood_still(void)
{
	const struct sw_page *shared = raw_page(page_path());
	for (unsigned i = 0; i < SW_PAGE_SLOTS; i++)
		if (atomic_load(&shared->slots[i].pid) != 0 && atomic_load(&shared->slots[i].drain_ns) != 0)
			return true;
	return false;
}

/* A machine that has no host memory to spare refuses likewise, and gives it when it has. The
 * program goes on meanwhile: it is not stopped for nothing. */
static void test_full_host_memory(void **state)
{
	(void)state;
	machine_host_memory(UINT64_C(1) << 40, UINT64_MAX);
	struct job job = start(hold);
	hear(job.socket, 'r');
	uint32_t wish = sw_share_page_want(page(), SW_PAGE_SUSPEND);
	eventually(look().trouble == SW_PAGE_NO_HOST_MEMORY);
	assert_int_equal(host_used(), 0);
	check(&job);
	assert_false(stood_still());
	machine_host_memory(UINT64_C(1) << 40, 0);
	assert_true(sw_share_page_wait(page(), wish, PATIENCE));
	assert_true(stood_still());
	resume();
	finish(&job);
}

/* A job that gets less does so as far as the machine has host memory, and the
 * rest when that has more. */
static void test_shrink_waits(void **state)
{
	(void)state;
	machine_host_memory(40 * MiB, 0);
	struct job job = start(hold);
	hear(job.socket, 'r');
	uint32_t wish = sw_share_page_limit(page(), 0, CONTEXT_BYTES + 20 * MiB);
	eventually(look().trouble == SW_PAGE_NO_HOST_MEMORY);
	assert_true(host_used() <= 40 * MiB);
	check(&job);
	machine_host_memory(200 * MiB, 0);
	assert_true(sw_share_page_wait(page(), wish, PATIENCE));
	assert_true(look().gpus[0].charged_bytes <= CONTEXT_BYTES + 20 * MiB);
	limit(SW_PAGE_NO_LIMIT);
	eventually(look().gpus[0].host_bytes == 0);
	finish(&job);
}

/* One that is to come back under a lower limit needs host memory beside what it is stored in: where
 * that lacks it stays suspended, says so, and comes when there is some. */
static void test_return_waits(void **state)
{
	(void)state;
	machine_host_memory(120 * MiB, 0);
	struct job job = start(hold);
	hear(job.socket, 'r');
	suspend();
	sw_share_page_limit(page(), 0, CONTEXT_BYTES + 20 * MiB);
	uint32_t wish = sw_share_page_want(page(), SW_PAGE_RUN);
	eventually(look().trouble == SW_PAGE_NO_HOST_MEMORY);
	/* It tries again and again; a try that fails gives back what it took. */
	eventually(look().gpus[0].charged_bytes == CONTEXT_BYTES);
	assert_true(host_used() <= 120 * MiB);
	machine_host_memory(300 * MiB, 0);
	assert_true(sw_share_page_wait(page(), wish, PATIENCE));
	finish(&job);
}

static void spill(int socket)
{
	CUdeviceptr x[PIECES];
	CUresult said = CUDA_SUCCESS;
	unsigned count = 0;
	open_driver();
	while (count < PIECES && (said = cuMemAlloc_v2(&x[count], PIECE_BYTES)) == CUDA_SUCCESS)
		count++;
	/* Not asked twice: what is made ahead for what is on the GPU may have given way by then,
	 * and the second request would be met. */
	assert_int_equal(said, CUDA_ERROR_OUT_OF_MEMORY);
	tell(socket, (char)count);
	hear(socket, 'f');
	assert_cuda(cuMemFree_v2(x[--count]));
	/* What is made ahead for what is on the GPU may hold it for a moment. */
	eventually(cuMemAlloc_v2(&x[count], PIECE_BYTES) == CUDA_SUCCESS);
	for (count++; count > 0; count--)
		assert_cuda(cuMemFree_v2(x[count - 1]));
	tell(socket, 'd');
	hear(socket, 'e');
}

/* What fits neither on the GPU nor into the machine's host memory is refused as the driver refuses
 * it, and what is freed can be had again. */
static void test_spill_is_refused(void **state)
{
	(void)state;
	machine_host_memory(40 * MiB, 0);
	sw_share_page_limit(page(), 0, CONTEXT_BYTES + 20 * MiB);
	struct job job = start(spill);
	char count = 0;
	assert_int_equal(read(job.socket, &count, 1), 1);
	/* Five on the GPU, ten in host memory, less what is made ahead for the five. */
	assert_in_range(count, 8, 15);
	assert_true(host_used() <= 40 * MiB);
	tell(job.socket, 'f');
	hear(job.socket, 'd');
	assert_true(host_used() <= 24 * MiB);
	tell(job.socket, 'e');
	end(&job);
	assert_int_equal(host_used(), 0);
}

static void hold_and_fork(int socket)
{
	CUdeviceptr x;
	open_driver();
	assert_cuda(cuMemAlloc_v2(&x, HELD_BYTES));
	eventually(host_used() >= HELD_BYTES);
	if (fork() == 0) {
		tell(socket, 'r');
		hear(socket, 'e');
		_exit(0);
	}
	pause();
}

/* A child of fork() counts with nothing, also when it outlives its parent. */
static void test_fork_counts_once(void **state)
{
	(void)state;
	struct job job = start(hold_and_fork);
	hear(job.socket, 'r');
	assert_int_equal(host_used(), HELD_BYTES);
	int status;
	kill(job.pid, SIGKILL);
	assert_int_equal(waitpid(job.pid, &status, 0), job.pid);
	assert_int_equal(host_used(), 0);
	tell(job.socket, 'e');
	close(job.socket);
}

static bool lock_making(int ledger, short type)
{
	struct flock byte = {.l_type = type, .l_whence = SEEK_SET, .l_start = SW_HOST_LEDGER_SLOTS, .l_len = 1};
	return fcntl(ledger, F_OFD_SETLK, &byte) == 0;
}

/* As a process that makes some would. */
static int begin_making(void)
{
	int ledger = open(beside("ledger"), O_RDWR | O_CLOEXEC);
	assert_true(ledger >= 0);
	eventually(lock_making(ledger, F_WRLCK));
	return ledger;
}

static void end_making(int ledger)
{
	assert_true(lock_making(ledger, F_UNLCK));
	close(ledger);
}

/* What that process has. */
static uint64_t host_used_by(const struct job *job)
{
	/* Slots are taken from that number on, and no process of this test has another one's. */
	const off_t place = (off_t)(offsetof(struct sw_host_ledger, slots) + (size_t)job->pid % SW_HOST_LEDGER_SLOTS * sizeof(uint64_t));
	uint64_t bytes = 0;
	int ledger = open(beside("ledger"), O_RDONLY | O_CLOEXEC);
	assert_int_equal(pread(ledger, &bytes, sizeof bytes, place), sizeof bytes);
	close(ledger);
	return bytes;
}

/* While another makes pinned memory no other makes some ahead: its own calls of the driver would
 * wait too. Not for ever, and what is needed now is made. */
static void test_one_makes_some_ahead(void **state)
{
	(void)state;
	/* No process waits for others for longer than some seconds; these do not go by. */
	clock_up();
	clock_stop();
	int ledger = begin_making();
	struct job job = start(hold);
	hear(job.socket, 'r');
	clock_await_looks(100);
	assert_int_equal(host_used_by(&job), 0);
	end_making(ledger);
	eventually(host_used_by(&job) >= HELD_BYTES);

	ledger = begin_making();
	struct job other = start_second(hold);
	hear(other.socket, 'r');
	clock_await_looks(100);
	assert_int_equal(host_used_by(&other), 0);
	uint32_t wish = sw_share_page_want(second, SW_PAGE_SUSPEND);
	assert_true(sw_share_page_wait(second, wish, PATIENCE));
	assert_true(host_used_by(&other) >= HELD_BYTES);
	sw_share_page_want(second, SW_PAGE_RUN);
	finish(&other);

	/* Some is made ahead at last, though the other goes on. */
	clock_go_on();
	other = start_second(hold);
	hear(other.socket, 'r');
	eventually(host_used_by(&other) >= HELD_BYTES);
	end_making(ledger);
	finish(&other);
	finish(&job);
}

static void hold_segments(int socket)
{
	CUdeviceptr x = 0;
	open_driver();
	for (unsigned i = 0; i < 20; i++)
		assert_cuda(cuMemAlloc_v2(&x, 10 * MiB));
	tell(socket, 'r');
	hear(socket, 'e');
}

/* What is made for pieces of a size has no rest that none of them fits into: what there is
 * room for can be suspended. */
static void test_pieces_fill_what_is_made(void **state)
{
	(void)state;
	machine_host_memory(220 * MiB, 0);
	struct job job = start(hold_segments);
	hear(job.socket, 'r');
	/* Made in need, not ahead. */
	limit(CONTEXT_BYTES + 160 * MiB);
	limit(SW_PAGE_NO_LIMIT);
	eventually(look().gpus[0].host_bytes == 0);
	suspend();
	resume();
	tell(job.socket, 'e');
	end(&job);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_second_is_refused),	   TEST(test_made_ahead_gives_way), TEST(test_left_over_gives_way),
		TEST(test_full_host_memory),	   TEST(test_shrink_waits),	    TEST(test_return_waits),
		TEST(test_spill_is_refused),	   TEST(test_fork_counts_once),	    TEST(test_given_back_after),
		TEST(test_context_goes_meanwhile), TEST(test_one_makes_some_ahead), TEST(test_pieces_fill_what_is_made),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
