/* Suspension and limits of whole processes: which threads are held, what is free meanwhile, and
 * what happens when the driver refuses. */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/words_job.h"

/* ---- threads at the gate */

static _Atomic bool over;
static CUgraphExec graph;

enum { KINDS = 5 };
static struct thread {
	pthread_t thread;
	int kind;
	CUdeviceptr x;
	CUstream stream;
	_Atomic uint64_t calls;
} threads[KINDS];

static void call_once(struct thread *t)
{
	static __thread uint32_t words[64];
	unsigned kind = 0;
	switch (t->kind) {
	case 0:
		assert_cuda(launch_stir(t->stream, t->x, 64));
		break;
	case 1:
		assert_cuda(cuMemcpyHtoD_v2(t->x, words, sizeof words));
		break;
	case 2:
		assert_cuda(cuMemsetD8Async(t->x, 1, 64, t->stream));
		break;
	case 3:
		/* The driver knows nothing of memory that is away: nor must it be asked. */
		assert_cuda(cuPointerGetAttribute(&kind, CU_POINTER_MEMORY_TYPE, t->x));
		assert_int_equal(kind, CU_MEMORY_DEVICE);
		break;
	default:
		assert_cuda(cuGraphLaunch(graph, t->stream));
	}
}

static void *call_for_ever(void *argument)
{
	struct thread *t = argument;
	assert_cuda(cuCtxSetCurrent(primary()));
	while (!atomic_load(&over)) {
		call_once(t);
		assert_cuda(cuStreamSynchronize(t->stream));
		atomic_fetch_add(&t->calls, 1);
	}
	return NULL;
}

static void make_graph(CUdeviceptr x)
{
	CUstream stream = NULL;
	CUgraph made = NULL;
	assert_cuda(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	assert_cuda(cuStreamBeginCapture_v2(stream, CU_CAPTURE_MODE_THREAD_LOCAL));
	assert_cuda(launch_stir(stream, x, 64));
	assert_cuda(cuStreamEndCapture(stream, &made));
	assert_cuda(cuGraphInstantiateWithFlags(&graph, made, 0));
}

static uint64_t calls_of(unsigned i)
{
	return atomic_load(&threads[i].calls);
}

static void work_in_threads(int socket)
{
	(void)socket;
	open_driver();
	for (int i = 0; i < KINDS; i++) {
		threads[i].kind = i;
		assert_cuda(cuMemAlloc_v2(&threads[i].x, 4 * MiB));
		assert_cuda(cuStreamCreate(&threads[i].stream, CU_STREAM_NON_BLOCKING));
	}
	make_graph(threads[KINDS - 1].x);
	for (int i = 0; i < KINDS; i++)
		assert_int_equal(pthread_create(&threads[i].thread, NULL, call_for_ever, &threads[i]), 0);
	for (unsigned round = 0; round < 10; round++) {
		uint64_t before[KINDS];
		for (unsigned i = 0; i < KINDS; i++) {
			before[i] = calls_of(i);
			eventually(calls_of(i) > before[i]);
		}
		suspend();
		assert_int_equal(gpu_used(), CONTEXT_BYTES);
		/* One that was past the gate already may count once more. */
		for (unsigned i = 0; i < KINDS; i++)
			before[i] = calls_of(i);
		for (unsigned i = 0; i < 20; i++)
			doze();
		for (unsigned i = 0; i < KINDS; i++)
			assert_true(calls_of(i) <= before[i] + 1);
		assert_int_equal(gpu_used(), CONTEXT_BYTES);
		resume();
	}
	assert_true(look().waits > 0);
	atomic_store(&over, true);
	for (int i = 0; i < KINDS; i++)
		pthread_join(threads[i].thread, NULL);
}

/* Launches, copies, fills, graph launches and questions about memory of several threads stop at the
 * gate while the process is suspended, and go on after it. */
static void test_the_gate_holds_every_kind_of_work(void **state)
{
	(void)state;
	run_job(work_in_threads);
}

/* ---- contents */

static void hold_contents(int socket)
{
	static uint32_t words[WORDS];
	CUdeviceptr x = 0;
	CUstream stream = NULL;
	open_driver();
	assert_cuda(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	assert_cuda(cuMemAlloc_v2(&x, 200 * MiB));
	assert_cuda(cuMemcpyHtoD_v2(x + 100 * MiB, words, sizeof words));
	/* Work that is on its way when the wish comes is over before anything moves. */
	assert_cuda(launch_spin(stream, 200000000));
	assert_cuda(launch_stir(stream, x + 100 * MiB, WORDS));
	stir_here(words, WORDS);
	tell(socket, 'r');
	hear(socket, 'g');
	/* Where the wish was not met, no other has waited for it. */
	assert_cuda(cuStreamSynchronize(stream));
	check_words(x + 100 * MiB, words);
	tell(socket, 'd');
	hear(socket, 'e');
	check_words(x + 100 * MiB, words);
}

static void launch_slow_stir(CUdeviceptr x)
{
	static const char slow[] = "sharewell-emu 1\nkernel stir op=stir type=u32 time=300ms\n";
	CUmodule module = NULL;
	CUfunction stir = NULL;
	CUstream stream = NULL;
	uint64_t count = WORDS;
	assert_cuda(cuModuleLoadData(&module, slow));
	assert_cuda(cuModuleGetFunction(&stir, module, "stir"));
	assert_cuda(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	assert_cuda(cuLaunchKernel(stir, 1, 1, 1, 32, 1, 1, 0, stream, (void *[]){&x, &count}, NULL));
}

/* In a context that has no memory. */
static void work_from_elsewhere(CUdeviceptr x, CUcontext other, void (*move)(void))
{
	static uint32_t words[WORDS];
	for (unsigned i = 0; i < WORDS; i++)
		words[i] = i;
	assert_cuda(cuMemcpyHtoD_v2(x, words, sizeof words));
	assert_cuda(cuCtxSetCurrent(other));
	launch_slow_stir(x);
	move();
	assert_cuda(cuCtxSynchronize());
	stir_here(words, WORDS);
	assert_cuda(cuCtxSetCurrent(primary()));
	check_words(x, words);
}

static void suspend_and_resume(void)
{
	suspend();
	resume();
}

static void squeeze(void)
{
	limit(2 * CONTEXT_BYTES);
	limit(SW_PAGE_NO_LIMIT);
}

static void work_in_other_contexts(int socket)
{
	CUdeviceptr x = 0, y = 0;
	CUcontext peer = NULL, second = NULL;
	(void)socket;
	open_driver();
	assert_cuda(cuMemAlloc_v2(&x, 4 * MiB));
	assert_cuda(cuMemAllocAsync(&y, 4 * MiB, NULL));
	assert_cuda(cuCtxCreate_v2(&peer, 0, 1));
	assert_cuda(cuCtxEnablePeerAccess(primary(), 0));
	assert_cuda(cuCtxCreate_v2(&second, 0, 0));
	assert_cuda(cuCtxSetCurrent(primary()));
	work_from_elsewhere(x, peer, suspend_and_resume);
	work_from_elsewhere(x, peer, squeeze);
	work_from_elsewhere(y, second, suspend_and_resume);
	/* Contexts that are gone keep nothing from moving. */
	assert_cuda(cuCtxDestroy_v2(peer));
	assert_cuda(cuCtxDestroy_v2(second));
	suspend();
	resume();
}

/* Nothing moves before all work is over, also in contexts that have no memory and use that of
 * others: of another GPU, or of a pool. */
static void test_work_in_other_contexts_is_over_before_a_move(void **state)
{
	(void)state;
	machine_setting("gpus=2");
	run_job(work_in_other_contexts);
}

/* A suspended process leaves the GPU to others, and finds its contents at their addresses, with the
 * work done that was on its way. */
static void test_suspended_memory_is_free_for_others(void **state)
{
	(void)state;
	struct job job = start(hold_contents);
	hear(job.socket, 'r');
	assert_true(gpu_used() >= 200 * MiB);
	suspend();
	assert_int_equal(look().suspended, 1);
	assert_int_equal(gpu_used(), CONTEXT_BYTES);
	resume();
	assert_true(gpu_used() >= 200 * MiB);
	tell(job.socket, 'g');
	hear(job.socket, 'd');
	tell(job.socket, 'e');
	end(&job);
}

static void fill_with(int socket, size_t bytes)
{
	CUdeviceptr x = 0;
	unsetenv(SW_PAGE_ENV);
	open_driver();
	assert_cuda(cuMemAlloc_v2(&x, bytes));
	tell(socket, 'f');
	hear(socket, 'e');
}

/* Takes all but a little of the GPU, without a page. */
static void fill_gpu(int socket)
{
	fill_with(socket, 400 * MiB);
}

static void leave_most(int socket)
{
	fill_with(socket, 300 * MiB);
}

/* While others hold the GPU a process stays suspended whole, and holds nothing of it; it comes
 * back when they are gone. */
static void test_resume_waits_for_room(void **state)
{
	(void)state;
	struct job job = start(hold_contents);
	hear(job.socket, 'r');
	suspend();
	struct job other = start(fill_gpu);
	hear(other.socket, 'f');
	uint64_t others = gpu_used();
	uint32_t wish = sw_share_page_want(page(), SW_PAGE_RUN);
	eventually(look().trouble == SW_PAGE_NO_GPU_MEMORY);
	assert_false(sw_share_page_wait(page(), wish, SECOND / 10));
	/* What it could not finish it undoes: two that wait for each other would wait for ever. */
	suspend();
	assert_int_equal(gpu_used(), others);
	assert_int_equal(look().gpus[0].charged_bytes, CONTEXT_BYTES);
	wish = sw_share_page_want(page(), SW_PAGE_RUN);
	kill_job(&other);
	assert_true(sw_share_page_wait(page(), wish, PATIENCE));
	assert_int_equal(look().trouble, SW_PAGE_FINE);
	tell(job.socket, 'g');
	hear(job.socket, 'd');
	tell(job.socket, 'e');
	end(&job);
}

/* Where all but a little of it fits and no other leaves, it comes back all the same: two that wait
 * for each other would wait for ever. The rest follows when there is room. */
static void test_resume_without_a_part(void **state)
{
	(void)state;
	struct job job = start(hold_contents);
	hear(job.socket, 'r');
	suspend();
	struct job other = start(leave_most);
	hear(other.socket, 'f');
	resume();
	assert_in_range(look().gpus[0].host_bytes, 1, 100 * MiB);
	tell(job.socket, 'g');
	hear(job.socket, 'd');
	kill_job(&other);
	eventually(look().gpus[0].host_bytes == 0);
	tell(job.socket, 'e');
	end(&job);
}

/* Works all the time. */
static void spill_and_spin(int socket)
{
	CUdeviceptr x = 0;
	char word;
	open_driver();
	assert_cuda(cuMemAlloc_v2(&x, 200 * MiB));
	tell(socket, 'r');
	while (recv(socket, &word, 1, MSG_DONTWAIT) != 1) {
		assert_cuda(launch_spin(NULL, 300000000));
		assert_cuda(cuCtxSynchronize());
	}
}

/* What was spilled before it was suspended comes back together with the rest, if there is room by
 * then: it does not have to stand still for it again. */
static void test_resume_brings_what_was_spilled(void **state)
{
	(void)state;
	struct job job = start(spill_and_spin);
	hear(job.socket, 'r');
	limit(66 * MiB);
	assert_true(look().gpus[0].host_bytes > 0);
	suspend();
	limit(SW_PAGE_NO_LIMIT);
	resume();
	assert_int_equal(look().gpus[0].host_bytes, 0);
	assert_int_equal(look().gpus[0].charged_bytes, CONTEXT_BYTES + 200 * MiB);
	tell(job.socket, 'e');
	end(&job);
}

/* A limit that rises beyond what the GPU has free is met; what has no room yet comes back when
 * others leave, without being asked for again. */
static void test_grow_waits_for_room_without_holding_up_anybody(void **state)
{
	(void)state;
	struct job job = start(live_on_words);
	hear(job.socket, 'r');
	limit(66 * MiB);
	assert_true(look().gpus[0].charged_bytes <= 66 * MiB);
	struct job other = start(fill_gpu);
	hear(other.socket, 'f');
	limit(SW_PAGE_NO_LIMIT);
	tell(job.socket, 'g');
	hear(job.socket, 'd');
	kill_job(&other);
	eventually(look().gpus[0].host_bytes == 0);
	assert_int_equal(look().gpus[0].charged_bytes, CONTEXT_BYTES + 200 * MiB);
	tell(job.socket, 'e');
	end(&job);
}

/* Without a place for its contents a process is not suspended, says why, and goes on; with one it
 * is, without being asked again. */
static void test_no_host_memory(void **state)
{
	(void)state;
	struct job job = start(hold_contents);
	hear(job.socket, 'r');
	host_budget(100 * MiB);
	uint32_t wish = sw_share_page_want(page(), SW_PAGE_SUSPEND);
	eventually(look().trouble == SW_PAGE_NO_HOST_MEMORY);
	assert_int_equal(look().gpus[0].charged_bytes, CONTEXT_BYTES + 200 * MiB);
	tell(job.socket, 'g');
	hear(job.socket, 'd');
	sw_share_page_host_budget(page(), 300 * MiB);
	assert_true(sw_share_page_wait(page(), wish + 1, PATIENCE));
	assert_int_equal(look().suspended, 1);
	resume();
	tell(job.socket, 'e');
	end(&job);
}

/* ---- a driver that refuses */

enum { PIECES = 3 };

static void live_with_refusals(int socket)
{
	static uint32_t words[PIECES][WORDS];
	CUdeviceptr x[PIECES];
	open_driver();
	for (unsigned i = 0; i < PIECES; i++) {
		/* It may be this that is refused. */
		if (cuMemAlloc_v2(&x[i], 4 * MiB) != CUDA_SUCCESS)
			assert_cuda(cuMemAlloc_v2(&x[i], 4 * MiB));
		for (unsigned j = 0; j < WORDS; j++)
			words[i][j] = i * WORDS + j;
		assert_cuda(cuMemcpyHtoD_v2(x[i], words[i], sizeof words[i]));
	}
	tell(socket, 'r');
	hear(socket, 'g');
	for (unsigned i = 0; i < PIECES; i++) {
		check_words(x[i], words[i]);
		assert_cuda(cuMemFree_v2(x[i]));
	}
	eventually(look().gpus[0].charged_bytes == CONTEXT_BYTES && look().gpus[0].host_bytes == 0);
	eventually(gpu_used() == CONTEXT_BYTES);
}

/* A call that the driver refuses once, wherever in a move, costs nothing but time: contents and
 * books are as they were, and the wish is met. */
static void test_refusals_are_survived(void **state)
{
	(void)state;
	const char *const entries[] = {"cuMemMap", "cuMemSetAccess", "cuMemcpyDtoDAsync_v2", "cuMemCreate", "cuMemAddressReserve"};
	for (unsigned i = 0; i < sizeof entries / sizeof entries[0]; i++)
		for (unsigned first = PIECES; first < PIECES + 9; first += 2) {
			char fault[64];
			snprintf(fault, sizeof fault, "%s:first=%u:error=%d", entries[i], first - (i == 2 ? 2 : 0),
				 i == 3 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_UNKNOWN);
			setenv("SHAREWELL_EMU_FAULTS", fault, 1);
			struct job job = start(live_with_refusals);
			unsetenv("SHAREWELL_EMU_FAULTS");
			hear(job.socket, 'r');
			limit(CONTEXT_BYTES);
			assert_int_equal(look().gpus[0].charged_bytes, CONTEXT_BYTES);
			limit(SW_PAGE_NO_LIMIT);
			eventually(look().gpus[0].host_bytes == 0);
			tell(job.socket, 'g');
			end(&job);
		}
}

static void live_without_a_stream_of_ours(int socket)
{
	static uint32_t words[WORDS];
	CUdeviceptr x = 0;
	CUstream stream = NULL;
	open_driver();
	assert_cuda(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0));
	assert_cuda(cuMemAlloc_v2(&x, 64 * MiB));
	for (unsigned i = 0; i < WORDS; i++)
		words[i] = i;
	assert_cuda(cuMemcpyHtoD_v2(x, words, sizeof words));
	tell(socket, 'r');
	hear(socket, 's');
	/* At the gate until everything is back: what it does waits for no other stream. */
	assert_cuda(launch_stir(stream, x, WORDS));
	stir_here(words, WORDS);
	assert_cuda(cuStreamSynchronize(stream));
	check_words(x, words);
}

/* Where the driver makes no stream for them, copies of a move are waited for all
 * the same, away and back. */
static void test_a_move_on_the_default_stream(void **state)
{
	(void)state;
	machine_setting("d2h=1;h2d=1");
	machine_setting("fault=cuStreamCreate:count=1000:error=2");
	struct job job = start(live_without_a_stream_of_ours);
	hear(job.socket, 'r');
	suspend();
	tell(job.socket, 's');
	eventually(look().waits > 0);
	resume();
	end(&job);
}

/* Where the driver cannot copy the contents to the host, the process goes on with its work, and
 * says why. Once copies work again it is suspended, without being asked again. */
static void test_a_copy_that_fails(void **state)
{
	(void)state;
	machine_faults("");
	struct job job = start(hold_contents);
	hear(job.socket, 'r');
	machine_faults("cuMemcpyDtoHAsync_v2:count=100000:error=2\n");
	uint32_t wish = sw_share_page_want(page(), SW_PAGE_SUSPEND);
	eventually(look().trouble == SW_PAGE_DRIVER_ERROR);
	assert_int_equal(look().suspended, 0);
	assert_int_equal(look().gpus[0].charged_bytes, CONTEXT_BYTES + 200 * MiB);
	assert_int_equal(look().gpus[0].host_bytes, 0);
	tell(job.socket, 'g');
	hear(job.socket, 'd');
	machine_faults("");
	assert_true(sw_share_page_wait(page(), wish, PATIENCE));
	assert_int_equal(look().suspended, 1);
	resume();
	tell(job.socket, 'e');
	end(&job);
}

static void live_on_a_lost_gpu(int socket)
{
	CUdeviceptr x = 0, y = 0;
	uint32_t word = 0;
	open_driver();
	assert_cuda(cuMemAlloc_v2(&x, 4 * MiB));
	assert_cuda(cuMemAlloc_v2(&y, 100));
	tell(socket, 'r');
	hear(socket, 's');
	assert_int_not_equal(cuMemcpyHtoD_v2(x, &word, sizeof word), CUDA_SUCCESS);
	cuMemFree_v2(x);
	cuMemFree_v2(y);
	tell(socket, 'd');
	hear(socket, 'e');
}

static void lose_while_suspended(const char *faults)
{
	machine_faults("");
	struct job job = start(live_on_a_lost_gpu);
	hear(job.socket, 'r');
	suspend();
	tell(job.socket, 's');
	eventually(look().waits > 0);
	machine_faults(faults);
	/* The driver looks there now and then. */
	for (unsigned i = 0; i < 100; i++)
		doze();
	sw_share_page_want(page(), SW_PAGE_RUN);
	hear(job.socket, 'd');
	eventually(look().running == 1);
	assert_int_equal(look().trouble, SW_PAGE_DRIVER_ERROR);
	/* What has nothing that could move is not suspended, and says why. */
	uint32_t wish = sw_share_page_want(page(), SW_PAGE_SUSPEND);
	assert_false(sw_share_page_wait(page(), wish, SECOND));
	assert_int_equal(look().trouble, SW_PAGE_DRIVER_ERROR);
	tell(job.socket, 'e');
	end(&job);
}

/* A program whose GPU is lost while it is suspended does not wait for it for ever: it hears
 * of it from the driver. */
static void test_a_gpu_is_lost_while_suspended(void **state)
{
	(void)state;
	lose_while_suspended("cuMemCreate:lose\n");
}

/* Likewise where the driver goes on to refuse, and says nothing of the GPU. */
static void test_a_resume_that_never_works(void **state)
{
	(void)state;
	lose_while_suspended("cuMemcpyHtoDAsync_v2:count=100000:error=719\n");
}

/* ---- work that does not end */

static void work_long(int socket)
{
	CUdeviceptr x = 0;
	open_driver();
	assert_cuda(cuMemAlloc_v2(&x, 4 * MiB));
	tell(socket, 'r');
	hear(socket, 'g');
	assert_cuda(launch_spin(NULL, 60 * SECOND));
	tell(socket, 'w');
	hear(socket, 'e');
}

static unsigned threads_of(pid_t pid)
{
	char path[64];
	unsigned count = 0;
	snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	DIR *folder = opendir(path);
	assert_non_null(folder);
	for (const struct dirent *entry; (entry = readdir(folder)) != NULL;)
		count += entry->d_name[0] != '.';
	closedir(folder);
	return count;
}

/* One whose kernel does not end is not suspended, works between the tries, and has one thread that
 * waits for it, however often it is tried. */
static void test_work_that_does_not_end(void **state)
{
	(void)state;
	struct job job = start(work_long);
	hear(job.socket, 'r');
	tell(job.socket, 'g');
	hear(job.socket, 'w');
	unsigned before = threads_of(job.pid);
	sw_share_page_want(page(), SW_PAGE_SUSPEND);
	eventually(look().trouble == SW_PAGE_NOT_DRAINED);
	for (int64_t until = now_ns() + 2 * SECOND; now_ns() < until;)
		doze();
	assert_true(threads_of(job.pid) <= before + 1);
	kill_job(&job);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, machine_up, machine_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_the_gate_holds_every_kind_of_work),
		CASE(test_work_in_other_contexts_is_over_before_a_move),
		CASE(test_suspended_memory_is_free_for_others),
		CASE(test_resume_waits_for_room),
		CASE(test_resume_without_a_part),
		CASE(test_resume_brings_what_was_spilled),
		CASE(test_grow_waits_for_room_without_holding_up_anybody),
		CASE(test_no_host_memory),
		CASE(test_refusals_are_survived),
		CASE(test_a_move_on_the_default_stream),
		CASE(test_a_copy_that_fails),
		CASE(test_a_gpu_is_lost_while_suspended),
		CASE(test_a_resume_that_never_works),
		CASE(test_work_that_does_not_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
