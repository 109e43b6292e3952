/* Memory that one process exports by CUDA's IPC handles and another opens, though
 * what it lies in can move. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/job.h"

enum { BIG = 66 << 20, SMALL = 4096, WORDS = BIG / 4 };

/* Over a job's socket. */
static void put(int socket, const void *bytes, size_t size)
{
	assert_int_equal(write(socket, bytes, size), size);
}

static void get(int socket, void *bytes, size_t size)
{
	assert_int_equal(recv(socket, bytes, size, MSG_WAITALL), size);
}

static uint64_t fixed(const struct job *jobs)
{
	return look().gpus[0].fixed_bytes - (uint64_t)(jobs != NULL ? 2 : 1) * CONTEXT_BYTES;
}

static void export(int socket, CUdeviceptr x)
{
	CUipcHandle handle;
	assert_cuda(cuIpcGetMemHandle(&handle, x));
	put(socket, &handle, sizeof handle);
}

/* ---- the one that has the memory */

/* Its words are stirred here once, and once by the process that opens it. */
static void check_words(CUdeviceptr x, unsigned times)
{
	uint32_t *here = calloc(WORDS, sizeof *here), *there = malloc(BIG);
	for (unsigned i = 0; i < times; i++)
		stir_here(here, WORDS);
	assert_cuda(cuMemcpyDtoH_v2(there, x, BIG));
	assert_memory_equal(here, there, BIG);
	free(here);
	free(there);
}

static void give(int socket)
{
	CUdeviceptr big = 0, small = 0, other = 0;
	char byte = 0;
	open_driver();
	assert_cuda(cuMemAlloc_v2(&other, SMALL));
	assert_cuda(cuMemAlloc_v2(&small, SMALL));
	assert_cuda(cuMemsetD8_v2(small, 77, SMALL));
	assert_cuda(cuMemAlloc_v2(&big, BIG));
	assert_cuda(cuMemsetD8_v2(big, 0, BIG));
	assert_cuda(launch_stir(NULL, big, WORDS));
	export(socket, big);
	/* What lies in the middle of an allocation exports all of it. */
	export(socket, small + 100);
	check_words(big, 1);
	tell(socket, 'r');
	hear(socket, 'w');
	check_words(big, 2);
	assert_cuda(cuMemcpyDtoH_v2(&byte, small, 1));
	assert_int_equal(byte, 78);
	tell(socket, 'k');
	hear(socket, 'f');
	assert_cuda(cuMemFree_v2(big));
	tell(socket, 'k');
	hear(socket, 'e');
}

/* ---- the one that opens it */

static void take(int socket)
{
	CUipcHandle handle, little;
	CUdeviceptr x = 0, again = 0, y = 0;
	char byte = 0;
	get(socket, &handle, sizeof handle);
	get(socket, &little, sizeof little);
	open_driver();
	assert_cuda(cuIpcOpenMemHandle_v2(&x, handle, 1));
	assert_cuda(cuIpcOpenMemHandle_v2(&again, handle, 1));
	assert_int_equal(x, again);
	assert_cuda(cuIpcCloseMemHandle(again));
	assert_cuda(cuIpcOpenMemHandle_v2(&y, little, 1));
	assert_cuda(cuMemcpyDtoH_v2(&byte, y, 1));
	assert_int_equal(byte, 77);
	tell(socket, 'o');
	hear(socket, 'g');
	assert_cuda(launch_stir(NULL, x, WORDS));
	assert_cuda(cuMemsetD8_v2(y, 78, 1));
	assert_cuda(cuCtxSynchronize());
	tell(socket, 'w');
	assert_cuda(cuIpcCloseMemHandle(x));
	assert_cuda(cuIpcCloseMemHandle(y));
	assert_int_not_equal(cuIpcCloseMemHandle(x), CUDA_SUCCESS);
	hear(socket, 'a');
	/* What was freed, and what never was. */
	assert_int_not_equal(cuIpcOpenMemHandle_v2(&x, handle, 1), CUDA_SUCCESS);
	assert_int_not_equal(cuIpcOpenMemHandle_v2(&x, (CUipcHandle){{1}}, 1), CUDA_SUCCESS);
	tell(socket, 'k');
	hear(socket, 'd');
	/* Its process is gone. */
	assert_int_not_equal(cuIpcOpenMemHandle_v2(&y, little, 1), CUDA_SUCCESS);
}

/* Another process sees and changes what the first one has, across a suspension of both, and nothing
 * is left of it in the end. */
static void test_others_open_what_can_move(void **state)
{
	(void)state;
	CUipcHandle handle, little;
	struct job giver = start(give), taker = start(take);
	get(giver.socket, &handle, sizeof handle);
	get(giver.socket, &little, sizeof little);
	put(taker.socket, &handle, sizeof handle);
	put(taker.socket, &little, sizeof little);
	hear(taker.socket, 'o');
	hear(giver.socket, 'r');
	assert_true(fixed(&giver) >= BIG && fixed(&giver) <= BIG + 2 * UNIT);
	assert_int_equal(look().gpus[0].charged_bytes, look().gpus[0].fixed_bytes);
	suspend();
	resume();
	tell(taker.socket, 'g');
	hear(taker.socket, 'w');
	tell(giver.socket, 'w');
	hear(giver.socket, 'k');
	tell(giver.socket, 'f');
	hear(giver.socket, 'k');
	assert_true(fixed(&giver) <= 2 * UNIT);
	tell(taker.socket, 'a');
	hear(taker.socket, 'k');
	tell(giver.socket, 'e');
	end(&giver);
	tell(taker.socket, 'd');
	end(&taker);
	eventually(gpu_used() == 0);
}

/* ---- closing */

static void give_only(int socket)
{
	CUdeviceptr x = 0;
	open_driver();
	assert_cuda(cuMemAlloc_v2(&x, BIG));
	assert_cuda(cuMemsetD8_v2(x, 0, BIG));
	export(socket, x);
	hear(socket, 'e');
}

static void take_and_close(int socket)
{
	CUipcHandle handle;
	CUdeviceptr x = 0, again = 0;
	CUcontext other = NULL;
	CUstream stream = NULL;
	CUgraph made = NULL;
	get(socket, &handle, sizeof handle);
	open_driver();
	assert_cuda(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	assert_cuda(cuIpcOpenMemHandle_v2(&x, handle, 1));
	/* Work of the context that opened it is waited for in another one, too. */
	assert_cuda(launch_spin(stream, 200000000));
	assert_cuda(launch_stir(stream, x, WORDS));
	assert_cuda(cuCtxCreate_v2(&other, 0, 0));
	assert_cuda(cuIpcCloseMemHandle(x));
	assert_cuda(cuCtxSetCurrent(primary()));
	assert_cuda(cuStreamQuery(stream));
	/* A capture is not disturbed, and what was closed meanwhile may be opened again. */
	assert_cuda(cuIpcOpenMemHandle_v2(&x, handle, 1));
	assert_cuda(cuStreamBeginCapture_v2(stream, CU_CAPTURE_MODE_RELAXED));
	assert_cuda(launch_stir(stream, x, 64));
	assert_cuda(cuIpcCloseMemHandle(x));
	assert_int_not_equal(cuIpcCloseMemHandle(x), CUDA_SUCCESS);
	assert_cuda(cuStreamEndCapture(stream, &made));
	assert_cuda(cuGraphDestroy(made));
	assert_cuda(cuIpcOpenMemHandle_v2(&again, handle, 1));
	assert_cuda(cuMemsetD8_v2(again, 1, 64));
	/* A context that opened it is gone when it is closed. */
	assert_cuda(cuCtxSetCurrent(other));
	assert_cuda(cuIpcOpenMemHandle_v2(&x, handle, 1));
	assert_cuda(cuCtxDestroy_v2(other));
	assert_cuda(cuCtxSetCurrent(primary()));
	assert_cuda(cuIpcCloseMemHandle(x));
	assert_cuda(cuIpcCloseMemHandle(again));
	assert_int_not_equal(cuMemsetD8_v2(again, 1, 64), CUDA_SUCCESS);
}

/* What was opened goes when the work of all that opened it is over, and not during a capture. */
static void test_closing(void **state)
{
	(void)state;
	CUipcHandle handle;
	struct job giver = start(give_only), taker = start(take_and_close);
	get(giver.socket, &handle, sizeof handle);
	put(taker.socket, &handle, sizeof handle);
	end(&taker);
	tell(giver.socket, 'e');
	end(&giver);
}

/* ---- faults */

static void fail_to_give(int socket)
{
	CUdeviceptr x = 0;
	CUipcHandle handle;
	(void)socket;
	open_driver();
	assert_cuda(cuMemAlloc_v2(&x, BIG));
	assert_cuda(cuMemsetD8_v2(x, 5, BIG));
	assert_int_not_equal(cuIpcGetMemHandle(&handle, x), CUDA_SUCCESS);
	assert_int_not_equal(cuIpcGetMemHandle(&handle, 77), CUDA_SUCCESS);
	assert_int_not_equal(cuIpcGetMemHandle(NULL, x), CUDA_SUCCESS);
	char byte = 0;
	assert_cuda(cuMemcpyDtoH_v2(&byte, x + BIG - 1, 1));
	assert_int_equal(byte, 5);
	assert_int_equal(fixed(NULL), 0);
	/* No process opens its own. */
	host_budget(1024 * MiB);
	assert_cuda(cuIpcGetMemHandle(&handle, x));
	assert_int_equal(cuIpcOpenMemHandle_v2(&x, handle, 1), CUDA_ERROR_INVALID_CONTEXT);
}

/* Where there is no host memory to get it anew, the program is told so, and goes
 * on; with some it works. */
static void test_without_host_memory(void **state)
{
	(void)state;
	sw_share_page_host_budget(page(), 16 * MiB);
	run_job(fail_to_give);
}

/* Whether this process has the socket at which tickets are shown. */
static bool listens(void)
{
	static const char name[] = "sharewell-gpu-";
	bool found = false;
	for (int fd = 0; fd < 1024 && !found; fd++) {
		struct sockaddr_un at = {0};
		socklen_t size = sizeof at;
		found = getsockname(fd, (struct sockaddr *)&at, &size) == 0 && at.sun_family == AF_UNIX &&
			memcmp(at.sun_path + 1, name, sizeof name - 1) == 0;
	}
	return found;
}

static void give_and_fork(int socket)
{
	CUdeviceptr x = 0;
	CUipcHandle handle;
	int status = -1;
	(void)socket;
	open_driver();
	assert_cuda(cuMemAlloc_v2(&x, BIG));
	assert_cuda(cuIpcGetMemHandle(&handle, x));
	assert_true(listens());
	pid_t child = fork();
	if (child == 0)
		_exit(listens());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(listens());
}

/* A child that was forked later does not seem to serve: when its parent is gone, no process
 * waits for answers of it. */
static void test_after_a_fork(void **state)
{
	(void)state;
	run_job(give_and_fork);
}

static void be_refused_the_kind(int socket)
{
	CUdeviceptr x = 0;
	CUipcHandle handle;
	(void)socket;
	open_driver();
	assert_cuda(cuMemAlloc_v2(&x, BIG));
	assert_cuda(cuMemsetD8_v2(x, 0, BIG));
	assert_cuda(launch_stir(NULL, x, WORDS));
	machine_faults("cuMemCreate:count=1:error=801\n");
	assert_int_not_equal(cuIpcGetMemHandle(&handle, x), CUDA_SUCCESS);
	check_words(x, 1);
	assert_int_equal(fixed(NULL), 0);
}

/* A driver that has no memory that can be exported says so, and the program has
 * its memory all the same. */
static void test_without_that_kind(void **state)
{
	(void)state;
	machine_faults("");
	run_job(be_refused_the_kind);
}

/* ---- plain memory */

static void stay(int socket)
{
	CUdeviceptr x = 0, y = 0;
	size_t pitch = 0;
	open_driver();
	assert_cuda(cuMemAlloc_v2(&x, 30 * MiB));
	assert_int_equal(fixed(NULL), 30 * MiB);
	assert_cuda(cuMemAllocPitch_v2(&y, &pitch, 1000, 1000, 4));
	assert_true(fixed(NULL) >= 31 * MiB - 100000);
	assert_cuda(cuMemFree_v2(y));
	assert_int_equal(cuMemAlloc_v2(&y, 80 * MiB), CUDA_ERROR_OUT_OF_MEMORY);
	assert_cuda(cuMemsetD8_v2(x, 6, 30 * MiB));
	assert_cuda(cuCtxSynchronize());
	export(socket, x);
	hear(socket, 'e');
	assert_cuda(cuMemFree_v2(x));
	assert_int_equal(fixed(NULL), 0);
}

static void open_plain(int socket)
{
	CUipcHandle handle;
	CUdeviceptr x = 0;
	char byte = 0;
	get(socket, &handle, sizeof handle);
	open_driver();
	assert_cuda(cuIpcOpenMemHandle_v2(&x, handle, 1));
	assert_cuda(cuMemcpyDtoH_v2(&byte, x, 1));
	assert_int_equal(byte, 6);
	assert_cuda(cuIpcCloseMemHandle(x));
}

/* A program that wants so has the driver's own memory, which counts and does not move. */
static void test_memory_that_stays(void **state)
{
	(void)state;
	CUipcHandle handle;
	setenv(SW_PAGE_MOVES_ENV, "no", 1);
	sw_share_page_limit(page(), 0, 100 * MiB + CONTEXT_BYTES);
	struct job giver = start(stay);
	get(giver.socket, &handle, sizeof handle);
	suspend();
	assert_int_equal(fixed(NULL), 30 * MiB);
	resume();
	limit(SW_PAGE_NO_LIMIT);
	struct job taker = start(open_plain);
	put(taker.socket, &handle, sizeof handle);
	end(&taker);
	tell(giver.socket, 'e');
	end(&giver);
	unsetenv(SW_PAGE_MOVES_ENV);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, machine_up, machine_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_others_open_what_can_move), CASE(test_closing),	    CASE(test_without_host_memory), CASE(test_after_a_fork),
		CASE(test_without_that_kind),	      CASE(test_memory_that_stays),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
