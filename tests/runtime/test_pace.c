/* How much of the GPU's time a process takes, by the GPU's own clock, and what it tells of
 * itself. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/pace_job.h"

/* Thousandths of the GPU's time that were used while `seconds` went by. */
static uint64_t used_milli(int64_t for_ns)
{
	int64_t begun = now_ns();
	uint64_t busy = gpu_busy_ns();
	while (now_ns() - begun < for_ns)
		doze();
	return (gpu_busy_ns() - busy) * 1000 / (uint64_t)(now_ns() - begun);
}

/* A process with a quarter of the GPU's time takes no more than that, however much it asks for; it
 * gets some. Alone on a busy machine it may get less. */
static void test_a_share_is_kept(void **state)
{
	(void)state;
	struct sw_page *shared = raw_page(page_path());
	atomic_store(&shared->share_milli, 250);
	struct job job = start(spin);
	hear(job.socket, 'r');
	hear_again();
	uint64_t got = used_milli(3 * SECOND);
	print_message("250 of 1000 wanted, %llu taken\n", (unsigned long long)got);
	assert_true(got <= 320);
	uint64_t before = gpu_busy_ns();
	eventually(gpu_busy_ns() > before);
	/* Without a share it takes more: what held it was the share. */
	atomic_store(&shared->share_milli, 0);
	hear_again();
	eventually(used_milli(SECOND) > got);
	tell(job.socket, 'e');
	end(&job);
}

/* A process that may take nothing stands still, can be suspended meanwhile, and goes on when it
 * may, or when the coordinator that stopped it is gone. */
static void test_standing_still(void **state)
{
	(void)state;
	struct sw_page *shared = raw_page(page_path());
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
	struct job job = start(spin);
	hear(job.socket, 'r');
	int keeper = open(page_path(), O_RDWR | O_CLOEXEC);
	assert_true(keeper >= 0 && fcntl(keeper, F_OFD_SETLK, &lock) == 0);
	for (unsigned round = 0; round < 2; round++) {
		atomic_store(&shared->share_milli, SW_PAGE_NO_SHARE);
		hear_again();
		uint64_t before = wait_for_silence();
		suspend();
		resume();
		for (unsigned i = 0; i < 100; i++)
			doze();
		assert_int_equal(gpu_busy_ns(), before);
		if (round == 0) {
			atomic_store(&shared->share_milli, 0);
			hear_again();
		} else {
			close(keeper);
		}
		eventually(gpu_busy_ns() > before + 5000000);
	}
	tell(job.socket, 'e');
	end(&job);
}

/* Stops after two launches, of which the second may be counted together with the next one,
 * and says nothing of it. */
static void launch_around(int socket)
{
	open_driver();
	tell(socket, 'r');
	hear(socket, 'g');
	assert_cuda(launch_spin(NULL, 20000000));
	assert_cuda(launch_spin(NULL, 10000));
	tell(socket, 'l');
	hear(socket, 'g');
	for (unsigned i = 0; i < 4; i++) {
		assert_cuda(launch_spin(NULL, 10000));
		assert_cuda(cuCtxSynchronize());
	}
	tell(socket, 'd');
}

/* Waits for the GPU by a copy alone, and thinks for two seconds. */
static void copy_and_think(int socket)
{
	CUdeviceptr x = 0;
	char byte = 0;
	open_driver();
	assert_cuda(cuMemAlloc_v2(&x, UNIT));
	tell(socket, 'r');
	hear(socket, 'g');
	assert_cuda(launch_spin(NULL, 20000000));
	assert_cuda(launch_spin(NULL, 10000));
	assert_cuda(cuMemcpyDtoH_v2(&byte, x, 1));
	tell(socket, 'l');
	hear(socket, 'g');
	for (unsigned i = 0; i < 4; i++) {
		assert_cuda(launch_spin(NULL, 10000));
		assert_cuda(cuCtxSynchronize());
	}
	tell(socket, 'd');
}

/* A process with a share does not pay for the time in which it was suspended, or had no
 * share, or did nothing, whether it waited before or not: a fiftieth of it, for two seconds,
 * would be more than a minute. */
static void test_only_work_is_paid_for(void **state)
{
	(void)state;
	struct sw_page *shared = raw_page(page_path());
	for (unsigned round = 0; round < 4; round++) {
		atomic_store(&shared->share_milli, 20);
		struct job job = start(round == 2 ? copy_and_think : launch_around);
		hear(job.socket, 'r');
		hear_again();
		tell(job.socket, 'g');
		hear(job.socket, 'l');
		if (round == 0) {
			suspend();
		} else if (round == 1) {
			atomic_store(&shared->share_milli, 0);
			hear_again();
		}
		rest(2 * SECOND);
		atomic_store(&shared->share_milli, 20);
		resume();
		tell(job.socket, 'g');
		eventually(heard(job.socket));
		hear(job.socket, 'd');
		end(&job);
	}
}

/* ---- priorities */

static int priority_of_new(int wanted)
{
	CUstream stream = NULL;
	int priority = 77;
	assert_cuda(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, wanted));
	assert_cuda(cuStreamGetPriority(stream, &priority));
	assert_cuda(cuStreamDestroy_v2(stream));
	return priority;
}

static void make_streams(int socket)
{
	int least = 77, greatest = 77;
	(void)socket;
	struct sw_page *shared = raw_page(page_path());
	open_driver();
	assert_cuda(cuCtxGetStreamPriorityRange(&least, &greatest));
	assert_true(greatest < least);
	assert_int_equal(priority_of_new(greatest), greatest);
	atomic_store(&shared->job_class, SW_CLASS_OPPORTUNISTIC);
	assert_int_equal(priority_of_new(greatest), least);
	assert_int_equal(priority_of_new(least), least);
	assert_int_equal(priority_of_new(least + 5), least);
	assert_int_not_equal(cuStreamCreateWithPriority(NULL, 0, 0), CUDA_SUCCESS);
	atomic_store(&shared->job_class, SW_CLASS_GUARANTEED);
	assert_int_equal(priority_of_new(greatest), greatest);
}

/* Streams of an opportunistic job have the lowest priority, those of a guaranteed one the
 * priority that it asks for. */
static void test_priorities(void **state)
{
	(void)state;
	run_job(make_streams);
}

/* Works when told, on a stream that it makes for it: many, over time. */
static void work_when_told(int socket)
{
	char word = 0;
	open_driver();
	tell(socket, 'r');
	while (read(socket, &word, 1) == 1 && word == 'w') {
		CUstream stream = NULL;
		assert_cuda(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
		assert_cuda(launch_spin(stream, 30000000));
		tell(socket, 'l');
		assert_cuda(cuStreamSynchronize(stream));
		assert_cuda(cuStreamDestroy_v2(stream));
		tell(socket, 'd');
	}
}

/* The same, in turns on more streams than most have, all of which live. */
static void work_in_many_streams(int socket)
{
	CUstream streams[20];
	char word = 0;
	open_driver();
	for (unsigned i = 0; i < 20; i++)
		assert_cuda(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
	tell(socket, 'r');
	for (unsigned i = 0; read(socket, &word, 1) == 1 && word == 'w'; i++) {
		assert_cuda(launch_spin(streams[i % 20], 30000000));
		tell(socket, 'l');
		assert_cuda(cuCtxSynchronize());
		tell(socket, 'd');
	}
}

/* The same, on the default streams of two contexts. */
static void work_in_two_contexts(int socket)
{
	CUcontext other = NULL;
	CUmodule module = NULL;
	CUfunction function = NULL;
	uint64_t ns = 30000000;
	char word = 0;
	open_driver();
	assert_cuda(cuCtxCreate_v2(&other, 0, 0));
	assert_cuda(cuModuleLoadData(&module, "sharewell-emu 1\nkernel spin op=spin\n"));
	assert_cuda(cuModuleGetFunction(&function, module, "spin"));
	tell(socket, 'r');
	for (unsigned i = 0; read(socket, &word, 1) == 1 && word == 'w'; i++) {
		assert_cuda(cuCtxSetCurrent(i % 2 == 0 ? primary() : other));
		if (i % 2 == 0)
			assert_cuda(launch_spin(NULL, ns));
		else
			assert_cuda(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, (void *[]){&ns}, NULL));
		tell(socket, 'l');
		assert_cuda(cuCtxSynchronize());
		tell(socket, 'd');
	}
}

/* In that page, which may be another than its own. */
static void check_that_it_tells_in(struct sw_page *tells, void (*run)(int socket))
{
	atomic_store(&raw_page(page_path())->watched, 1);
	struct job job = start(run);
	hear(job.socket, 'r');
	hear_again();
	const struct sw_page_slot *slot = slot_of(tells, &job);
	for (unsigned i = 0; i < 24; i++) {
		eventually(atomic_load(&slot->busy) == 0);
		uint64_t begun = gpu_busy_ns();
		tell(job.socket, 'w');
		hear(job.socket, 'l');
		/* Idle is said when the work is over, not before. */
		eventually(atomic_load(&slot->busy) == 0);
		if (gpu_busy_ns() - begun < 30000000)
			fail_msg("idle was said after %llu ns of work, in round %u", (unsigned long long)(gpu_busy_ns() - begun), i);
		hear(job.socket, 'd');
	}
	assert_true(atomic_load(&slot->gaps) > 0);
	/* The time before its first launch is none of them. */
	for (unsigned i = 0; i < SW_PAGE_GAPS; i++)
		assert_true(atomic_load(&slot->gap_ns[i]) < PATIENCE);
	tell(job.socket, 'e');
	end(&job);
}

static void check_that_it_tells(void (*run)(int socket))
{
	check_that_it_tells_in(raw_page(page_path()), run);
}

/* A watched process says that it works from its first launch to the end of its work on the
 * GPU, on whatever stream. */
static void test_a_watched_process_tells(void **state)
{
	(void)state;
	check_that_it_tells(work_when_told);
}

/* So does one that has many streams at once. */
static void test_many_streams_tell(void **state)
{
	(void)state;
	check_that_it_tells(work_in_many_streams);
}

/* So does one whose contexts have streams of one name. */
static void test_two_contexts_tell(void **state)
{
	(void)state;
	check_that_it_tells(work_in_two_contexts);
}

/* Where there is a file for jobs of other users it tells there, whatever locks they hold on
 * that; in its page it has the slot of that number, and tells nothing of its work. */
static void test_it_tells_others(void **state)
{
	(void)state;
	struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
	char told[160];
	assert_int_equal(sw_share_page_new_told(page_path(), geteuid(), getegid(), NULL), 0);
	snprintf(told, sizeof told, "%s", beside("page" SW_PAGE_TOLD));
	int stranger = open(told, O_RDONLY | O_CLOEXEC);
	assert_int_equal(fcntl(stranger, F_OFD_SETLK, &lock), 0);
	struct sw_page *tells = raw_page(told), *shared = raw_page(page_path());
	check_that_it_tells_in(tells, work_when_told);

	struct job job = start(work_when_told);
	hear(job.socket, 'r');
	hear_again();
	const struct sw_page_slot *slot = slot_of(tells, &job);
	assert_int_equal(atomic_load(&shared->slots[slot - tells->slots].pid), job.pid);
	suspend();
	assert_int_equal(atomic_load(&slot->state), SW_PAGE_SUSPENDED);
	resume();
	assert_int_equal(atomic_load(&slot->state), SW_PAGE_RUNNING);
	tell(job.socket, 'w');
	hear(job.socket, 'l');
	assert_int_equal(atomic_load(&shared->slots[slot - tells->slots].busy), 0);
	hear(job.socket, 'd');
	tell(job.socket, 'e');
	end(&job);
	close(stranger);
}

static CUdeviceptr ask_plainly(void)
{
	CUdeviceptr address = 0;
	assert_cuda(cuMemAlloc_v2(&address, 4 * MiB));
	return address;
}

static CUdeviceptr ask_in_order(void)
{
	CUdeviceptr address = 0;
	assert_cuda(cuMemAllocAsync(&address, 4 * MiB, NULL));
	return address;
}

static CUdeviceptr ask_for_managed(void)
{
	CUdeviceptr address = 0;
	assert_cuda(cuMemAllocManaged(&address, 4 * MiB, 1));
	return address;
}

static void ask_for_memory(int socket)
{
	CUdeviceptr (*const ways[])(void) = {ask_plainly, ask_in_order, ask_for_managed};
	open_driver();
	tell(socket, 'r');
	for (unsigned i = 0; i < 3; i++) {
		hear(socket, 'm');
		CUdeviceptr address = ways[i]();
		tell(socket, 'd');
		hear(socket, 'f');
		assert_cuda(cuMemFree_v2(address));
	}
}

/* A thread that asks for memory is about to use it: that is no idle time, however
 * long the driver takes. */
static void test_asking_for_memory_tells(void **state)
{
	(void)state;
	char fault[200], file[160];
	snprintf(file, sizeof file, "%s", beside("asked"));
	machine_faults("");
	struct sw_page *shared = raw_page(page_path());
	atomic_store(&shared->watched, 1);
	struct job job = start(ask_for_memory);
	hear(job.socket, 'r');
	hear_again();
	const struct sw_page_slot *slot = slot_of(shared, &job);
	for (unsigned i = 0; i < 3; i++) {
		eventually(atomic_load(&slot->busy) == 0);
		snprintf(fault, sizeof fault, "%s:hold=%s", i == 2 ? "cuMemAllocManaged" : "cuMemCreate", file);
		machine_faults(fault);
		for (unsigned j = 0; j < 60; j++)
			doze();
		tell(job.socket, 'm');
		eventually(access(file, F_OK) == 0);
		for (unsigned j = 0; j < 60; j++) {
			doze();
			assert_int_equal(atomic_load(&slot->busy), 1);
		}
		machine_faults("");
		unlink(file);
		hear(job.socket, 'd');
		eventually(atomic_load(&slot->busy) == 0);
		tell(job.socket, 'f');
	}
	/* Between them it was idle, but that says nothing of its steps. */
	assert_int_equal(atomic_load(&slot->gaps), 0);
	end(&job);
}

static char held[160]; /* is there while the driver is in a call of the watcher */
static CUstream captured;
static _Atomic bool captures, may_go_on;

static void *capture(void *unused)
{
	CUgraph graph = NULL;
	(void)unused;
	assert_cuda(cuCtxSetCurrent(primary()));
	assert_cuda(cuStreamBeginCapture_v2(captured, CU_CAPTURE_MODE_GLOBAL));
	captures = true;
	eventually(may_go_on);
	assert_cuda(launch_spin(captured, 1000));
	assert_cuda(cuStreamEndCapture(captured, &graph));
	return NULL;
}

static void capture_while_marked(int socket)
{
	char fault[200];
	pthread_t thread;
	(void)socket;
	snprintf(fault, sizeof fault, "cuEventRecord:hold=%s", held);
	open_driver();
	hear_again();
	assert_cuda(cuStreamCreate(&captured, 0));
	machine_faults(fault);
	for (unsigned i = 0; i < 100; i++)
		doze();
	assert_cuda(launch_spin(NULL, 1000));
	eventually(access(held, F_OK) == 0);
	assert_int_equal(pthread_create(&thread, NULL, capture, NULL), 0);
	/* It waits until the mark is made; if it did not, that would be in the middle of it. */
	for (unsigned i = 0; i < 200 && !captures; i++)
		doze();
	assert_int_equal(unlink(held), 0);
	for (unsigned i = 0; i < 100; i++)
		doze();
	may_go_on = true;
	assert_int_equal(pthread_join(thread, NULL), 0);
}

/* A thread that watches the process marks nothing in the middle of a capture, also of one that
 * begins at that moment. */
static void test_watching_spoils_no_capture(void **state)
{
	(void)state;
	snprintf(held, sizeof held, "%s", beside("held"));
	machine_faults("");
	atomic_store(&raw_page(page_path())->watched, 1);
	run_job(capture_while_marked);
}

static void *release(void *unused)
{
	assert_cuda(cuDevicePrimaryCtxRelease_v2(0));
	return unused;
}

static void release_while_watched(int socket)
{
	char fault[200];
	pthread_t thread;
	unsigned flags = 0;
	int active = 0;
	(void)socket;
	snprintf(fault, sizeof fault, "cuEventQuery:hold=%s", held);
	open_driver();
	hear_again();
	machine_faults(fault);
	for (unsigned i = 0; i < 100; i++)
		doze();
	assert_cuda(launch_spin(NULL, 1000));
	eventually(access(held, F_OK) == 0);
	int64_t begun = now_ns();
	assert_int_equal(pthread_create(&thread, NULL, release, NULL), 0);
	for (unsigned i = 0; i < 600; i++)
		doze();
	assert_cuda(cuDevicePrimaryCtxGetState(0, &flags, &active));
	/* The program is not held up for ever: on a busy machine that time may be over. */
	bool in_time = now_ns() - begun < SECOND;
	machine_faults("");
	assert_int_equal(unlink(held), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(active || !in_time);
	assert_cuda(cuDevicePrimaryCtxGetState(0, &flags, &active));
	assert_false(active);
}

/* A context that may go goes when its events are not asked for any more. */
static void test_watching_outlives_no_context(void **state)
{
	(void)state;
	snprintf(held, sizeof held, "%s", beside("held"));
	machine_faults("");
	atomic_store(&raw_page(page_path())->watched, 1);
	run_job(release_while_watched);
}

static void reset_while_paced(int socket)
{
	(void)socket;
	open_driver();
	for (unsigned i = 0; i < 5; i++) {
		for (unsigned j = 0; j < 40; j++)
			assert_cuda(launch_spin(NULL, 100000));
		assert_cuda(cuDevicePrimaryCtxReset_v2(0));
		open_driver();
	}
	assert_cuda(cuCtxSynchronize());
}

/* A paced process that loses its context, and what it measures with, goes on in the next one. */
static void test_pacing_survives_a_reset(void **state)
{
	(void)state;
	struct sw_page *shared = raw_page(page_path());
	atomic_store(&shared->share_milli, 900);
	atomic_store(&shared->watched, 1);
	run_job(reset_while_paced);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, machine_up, machine_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_a_share_is_kept),
		CASE(test_standing_still),
		CASE(test_only_work_is_paid_for),
		CASE(test_a_watched_process_tells),
		CASE(test_it_tells_others),
		CASE(test_pacing_survives_a_reset),
		CASE(test_priorities),
		CASE(test_watching_spoils_no_capture),
		CASE(test_watching_outlives_no_context),
		CASE(test_many_streams_tell),
		CASE(test_two_contexts_tell),
		CASE(test_asking_for_memory_tells),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
