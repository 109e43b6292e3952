/* Captures of graphs: nothing moves while one goes on, and none is spoiled. */
#include "runtime/job.h"

static void capture(int socket)
{
	CUdeviceptr x = 0;
	CUstream stream = NULL;
	CUgraph made = NULL;
	open_driver();
	assert_cuda(cuMemAlloc_v2(&x, 4 * MiB));
	assert_cuda(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	assert_cuda(cuStreamBeginCapture_v2(stream, CU_CAPTURE_MODE_GLOBAL));
	assert_cuda(launch_stir(stream, x, 64));
	tell(socket, 'c');
	hear(socket, 'g');
	/* The capture was not spoiled. */
	assert_cuda(launch_stir(stream, x, 64));
	assert_cuda(cuStreamEndCapture(stream, &made));
	tell(socket, 'd');
	hear(socket, 'e');
}

/* Nothing moves during a capture, which is not spoiled; the wish is met after it. */
static void test_suspend_waits_for_a_capture(void **state)
{
	(void)state;
	struct job job = start(capture);
	hear(job.socket, 'c');
	uint32_t wish = sw_share_page_want(page(), SW_PAGE_SUSPEND);
	eventually(look().trouble == SW_PAGE_CAPTURING);
	assert_int_equal(look().suspended, 0);
	tell(job.socket, 'g');
	hear(job.socket, 'd');
	assert_true(sw_share_page_wait(page(), wish, PATIENCE));
	assert_int_equal(look().suspended, 1);
	resume();
	tell(job.socket, 'e');
	end(&job);
}

enum { CAPTURES = 70 };

static void capture_much(int socket)
{
	CUstream streams[CAPTURES];
	CUgraph made = NULL;
	open_driver();
	for (unsigned i = 0; i < CAPTURES; i++) {
		assert_cuda(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
		assert_cuda(cuStreamBeginCapture_v2(streams[i], CU_CAPTURE_MODE_RELAXED));
	}
	for (unsigned i = 0; i < CAPTURES - 1; i++)
		assert_cuda(cuStreamEndCapture(streams[i], &made));
	tell(socket, 'c');
	hear(socket, 'g');
	assert_cuda(launch_spin(streams[CAPTURES - 1], 1000));
	assert_cuda(cuStreamEndCapture(streams[CAPTURES - 1], &made));
}

/* However many captures go on at once: the last of them is waited for as well. */
static void test_suspend_waits_for_many_captures(void **state)
{
	(void)state;
	struct job job = start(capture_much);
	hear(job.socket, 'c');
	sw_share_page_want(page(), SW_PAGE_SUSPEND);
	eventually(look().trouble == SW_PAGE_CAPTURING || look().suspended > 0);
	assert_int_equal(look().suspended, 0);
	sw_share_page_want(page(), SW_PAGE_RUN);
	tell(job.socket, 'g');
	end(&job);
}

static void capture_while_memory_is_prepared(int socket)
{
	CUstream stream = NULL;
	CUdeviceptr x = 0;
	CUgraph found = NULL;
	open_driver();
	assert_cuda(cuStreamCreate(&stream, 0));
	assert_cuda(cuStreamBeginCapture_v2(stream, 0));
	/* Gives the attendant something to prepare for. */
	assert_cuda(cuMemAlloc_v2(&x, 64 * MiB));
	tell(socket, 'c');
	hear(socket, 'e');
	assert_cuda(launch_stir(stream, x, 100));
	assert_cuda(cuStreamEndCapture(stream, &found));
}

/* Host memory for a suspension is made ahead by a thread of the runtime, and that spoils no
 * capture of the program's. */
static void test_preparing_spoils_no_capture(void **state)
{
	(void)state;
	struct job job = start(capture_while_memory_is_prepared);
	hear(job.socket, 'c');
	/* The attendant has dealt with a wish, and with what it does after one, twice. */
	for (int i = 0; i < 2; i++)
		limit(SW_PAGE_NO_LIMIT);
	tell(job.socket, 'e');
	end(&job);
}

static void spoil_captures(int socket)
{
	CUstream a = NULL, b = NULL;
	CUevent event = NULL;
	CUgraph made = NULL;
	CUdeviceptr x = 0;
	open_driver();
	assert_cuda(cuMemAlloc_v2(&x, 4 * MiB));
	assert_cuda(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	assert_cuda(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
	assert_cuda(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
	/* One that does not join what it forked. */
	assert_cuda(cuStreamBeginCapture_v2(a, CU_CAPTURE_MODE_RELAXED));
	assert_cuda(launch_stir(a, x, 64));
	assert_cuda(cuEventRecord(event, a));
	assert_cuda(cuStreamWaitEvent(b, event, 0));
	assert_cuda(launch_stir(b, x, 64));
	assert_int_equal(cuStreamEndCapture(a, &made), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
	/* One whose stream goes. */
	assert_cuda(cuStreamBeginCapture_v2(b, CU_CAPTURE_MODE_RELAXED));
	assert_cuda(cuStreamDestroy_v2(b));
	/* One that never was. */
	assert_int_not_equal(cuStreamEndCapture(a, &made), CUDA_SUCCESS);
	tell(socket, 'd');
	hear(socket, 'e');
}

/* Captures that end badly have ended: the process can be suspended. */
static void test_spoiled_captures_end(void **state)
{
	(void)state;
	struct job job = start(spoil_captures);
	hear(job.socket, 'd');
	suspend();
	resume();
	tell(job.socket, 'e');
	end(&job);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, machine_up, machine_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_suspend_waits_for_a_capture),
		CASE(test_suspend_waits_for_many_captures),
		CASE(test_spoiled_captures_end),
		CASE(test_preparing_spoils_no_capture),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
