/* That a process which yields works only while its neighbour does not, and only on what is
 * over before that goes on. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "runtime/clock_job.h"
#include "runtime/pace_job.h"

#define MS INT64_C(1000000)

/* A process that yields starts nothing while its neighbour says that it works, and goes on when
 * that is idle, suspended or gone. */
static void test_one_that_yields(void **state)
{
	(void)state;
	struct sw_share_page *other = NULL;
	struct sw_page_slot *slot = make_neighbour("neighbour", &other);
	struct job job = start(spin);
	hear(job.socket, 'r');
	for (unsigned round = 0; round < 6; round++) {
		atomic_store(&slot->busy, 1);
		hear_again();
		uint64_t before = wait_for_silence();
		for (unsigned i = 0; i < 100; i++)
			doze();
		assert_int_equal(gpu_busy_ns(), before);
		if (round == 1)
			atomic_store(&slot->state, SW_PAGE_SUSPENDED);
		else if (round == 2)
			atomic_store(&slot->pid, 0);
		else
			atomic_store(&slot->busy, 0);
		eventually(gpu_busy_ns() > before + 5000000);
		atomic_store(&slot->pid, getpid());
		atomic_store(&slot->state, SW_PAGE_RUNNING);
	}
	/* It can be suspended while it waits. */
	atomic_store(&slot->busy, 1);
	suspend();
	resume();
	atomic_store(&slot->busy, 0);
	tell(job.socket, 'e');
	end(&job);
	sw_share_page_close(other);
}

/* Between two steps of a program that is never idle there is a moment without work: no
 * thread begins anything then. */
static void test_a_moment_is_no_idle_time(void **state)
{
	(void)state;
	struct sw_share_page *other = NULL;
	struct sw_page_slot *slot = make_neighbour("moments", &other);
	atomic_store(&slot->busy, 1);
	struct job job = start(spin);
	hear(job.socket, 'r');
	hear_again();
	uint64_t before = wait_for_silence();
	/* However long a thread is kept from the processor, this idle time has only just begun. */
	atomic_store(&slot->idle_since_ns, now_ns() + 3600 * SECOND);
	atomic_store(&slot->busy, 0);
	for (unsigned i = 0; i < 100; i++)
		doze();
	assert_int_equal(gpu_busy_ns(), before);
	atomic_store(&slot->idle_since_ns, now_ns() - SECOND);
	eventually(gpu_busy_ns() > before + 5000000);
	tell(job.socket, 'e');
	end(&job);
	sw_share_page_close(other);
}

/* A neighbour that died at work, whose page was removed, shortened or is named no more, or whose
 * name another has now, holds up none and kills none. */
static void test_a_neighbour_that_is_gone(void **state)
{
	(void)state;
	const char *const uuids[] = {"GPU-5ba7e001-0000-4000-8000-000000000001"};
	char path[SW_PAGE_PATH];
	strcpy(path, beside("neighbour")); /* NOLINT(clang-analyzer-security.insecureAPI.strcpy): both are of this test */
	struct sw_page *shared = raw_page(page_path());
	memcpy(shared->neighbours[0], path, sizeof path);
	atomic_store(&shared->yields, 1);
	struct job job = start(spin);
	hear(job.socket, 'r');
	for (unsigned round = 0; round < 4; round++) {
		struct sw_share_page *other = NULL, *another = NULL;
		assert_int_equal(sw_share_page_new(path, uuids, 1, &other, NULL), 0);
		struct sw_page *neighbour = raw_page(path);
		atomic_store(&neighbour->slots[3].state, SW_PAGE_RUNNING);
		atomic_store(&neighbour->slots[3].busy, 1);
		atomic_store(&neighbour->slots[3].pid, getpid());
		memcpy(shared->neighbours[0], path, sizeof path);
		hear_again();
		uint64_t before = wait_for_silence();
		if (round == 0)
			memset(shared->neighbours[0], 0, sizeof path);
		else if (round == 3)
			assert_int_equal(truncate(path, 0), 0);
		else
			unlink(path);
		if (round == 2)
			assert_int_equal(sw_share_page_new(path, uuids, 1, &another, NULL), 0);
		eventually(gpu_busy_ns() > before + 5000000);
		unlink(path);
		sw_share_page_close(other);
		sw_share_page_close(another);
	}
	tell(job.socket, 'e');
	end(&job);
}

/* ---- fills and copies */

enum { COPIED = 1 << 20 };
static CUdeviceptr here, there;
static CUarray grid, other_grid;
static void *host;
static CUstream lane;

#define PLANE(from_type, from)                     \
	(&(CUcopy2d){.src_type = (from_type),      \
		     .src_device = (from),         \
		     .src_host = host,             \
		     .src_pitch = 1024,            \
		     .dst_type = CU_MEMORY_DEVICE, \
		     .dst_device = there,          \
		     .dst_pitch = 1024,            \
		     .width = 1024,                \
		     .height = 64})
#define BOX(from_type, from)                        \
	(&(CUcopy3d){.src_type = (from_type),       \
		     .src_device = (from),          \
		     .src_array = grid,             \
		     .dst_type = CU_MEMORY_UNIFIED, \
		     .dst_device = there,           \
		     .width = 1024,                 \
		     .height = 1,                   \
		     .depth = 1})

/* What is captured is no work. */
static CUresult capture_one(void)
{
	CUgraph graph = NULL;
	assert_cuda(cuStreamBeginCapture_v2(lane, CU_CAPTURE_MODE_RELAXED));
	CUresult result = cuMemcpyAsync(there, here, COPIED, lane);
	assert_cuda(cuStreamEndCapture(lane, &graph));
	assert_cuda(cuGraphDestroy(graph));
	return result;
}

/* name, whether it keeps the GPU from other work, the call */
#define KINDS(X)                                                                                                               \
	X(fill, true, cuMemsetD8Async(there, 1, COPIED, lane))                                                                 \
	X(device, true, cuMemcpyDtoD_v2(there, here, COPIED))                                                                  \
	X(unified, true, cuMemcpy(there, here, COPIED))                                                                        \
	X(unified_async, true, cuMemcpyAsync(there, here, COPIED, lane))                                                       \
	X(batch, true,                                                                                                         \
	  cuMemcpyBatchAsync_v2((CUdeviceptr[]){there, there}, (CUdeviceptr[]){(uintptr_t)host, here}, (size_t[]){64, 64}, 2,  \
				(uint64_t[4]){1}, (size_t[]){0}, 1, lane))                                                     \
	X(peer, true, cuMemcpyPeer(there, primary(), here, primary(), COPIED))                                                 \
	X(peer_async, true, cuMemcpyPeerAsync(there, primary(), here, primary(), COPIED, lane))                                \
	X(plane, true, cuMemcpy2D_v2(PLANE(CU_MEMORY_DEVICE, here)))                                                           \
	X(plane_unaligned, true, cuMemcpy2DUnaligned_v2(PLANE(CU_MEMORY_UNIFIED, here)))                                       \
	X(plane_async, true, cuMemcpy2DAsync_v2(PLANE(CU_MEMORY_DEVICE, here), lane))                                          \
	X(box, true, cuMemcpy3D_v2(BOX(CU_MEMORY_ARRAY, 0)))                                                                   \
	X(box_async, true, cuMemcpy3DAsync_v2(BOX(CU_MEMORY_DEVICE, here), lane))                                              \
	X(box_peer, true, cuMemcpy3DPeer(BOX(CU_MEMORY_UNIFIED, here)))                                                        \
	X(box_peer_async, true, cuMemcpy3DPeerAsync(BOX(CU_MEMORY_DEVICE, here), lane))                                        \
	X(into_array, true, cuMemcpyDtoA_v2(grid, 0, here, 1024))                                                              \
	X(out_of_array, true, cuMemcpyAtoD_v2(there, grid, 0, 1024))                                                           \
	X(arrays, true, cuMemcpyAtoA_v2(other_grid, 0, grid, 0, 1024))                                                         \
	X(from_host, false, cuMemcpyHtoDAsync_v2(there, host, 64, lane))                                                       \
	X(unified_from_host, false, cuMemcpy(there, (uintptr_t)host, 64))                                                      \
	X(unified_to_host, false, cuMemcpyAsync((uintptr_t)host, here, 64, lane))                                              \
	X(batch_from_host, false,                                                                                              \
	  cuMemcpyBatchAsync_v2((CUdeviceptr[]){there}, (CUdeviceptr[]){(uintptr_t)host}, (size_t[]){64}, 1, (uint64_t[4]){1}, \
				(size_t[]){0}, 1, lane))                                                                       \
	X(plane_from_host, false, cuMemcpy2D_v2(PLANE(CU_MEMORY_HOST, 0)))                                                     \
	X(box_from_host, false, cuMemcpy3DAsync_v2(BOX(CU_MEMORY_UNIFIED, (uintptr_t)host), lane))                             \
	X(captured, false, capture_one())

#define FUNCTION(name, within, call)    \
	static CUresult do_##name(void) \
	{                               \
		return call;            \
	}
KINDS(FUNCTION)
static const struct kind {
	const char *name;
	bool within;
	CUresult (*copy)(void);
} kinds[] = {
#define ROW(name, within, call) {#name, within, do_##name},
	KINDS(ROW)
#undef ROW
};
static const struct kind *kind; /* of the job that is started next */

/* Copies of one kind, until it hears something. */
static void copy(int socket)
{
	const CUarrayShape shape = {.width = 1024, .height = 1, .format = 1, .channels = 1};
	open_driver();
	assert_cuda(cuStreamCreate(&lane, CU_STREAM_NON_BLOCKING));
	assert_cuda(cuMemAlloc_v2(&here, COPIED));
	assert_cuda(cuMemAlloc_v2(&there, COPIED));
	assert_cuda(cuArrayCreate_v2(&grid, &shape));
	assert_cuda(cuArrayCreate_v2(&other_grid, &shape));
	host = calloc(1, COPIED);
	assert_non_null(host);
	tell(socket, 'r');
	while (!heard(socket)) {
		assert_cuda(kind->copy());
		assert_cuda(cuStreamSynchronize(lane));
	}
}

/* Fills and copies that a process has given to the GPU. It says so when it is asked for
 * something. */
static uint64_t copies_of(const struct sw_page_slot *slot)
{
	hear_again();
	return atomic_load(&slot->copies);
}

/* Copies nothing for a while. */
static bool stands(const struct sw_page_slot *slot, uint64_t *ret_copies)
{
	*ret_copies = copies_of(slot);
	for (unsigned i = 0; i < 60; i++)
		doze();
	return copies_of(slot) == *ret_copies;
}

/* It stands while the neighbour works, and goes on when that is idle. */
static void check_that_it_yields(const struct sw_page_slot *slot, struct sw_page_slot *neighbour)
{
	uint64_t before = 0, after = 0;
	atomic_store(&neighbour->busy, 1);
	eventually(stands(slot, &before));
	/* One may have asked long ago, and been kept from the processor since. */
	stands(slot, &after);
	assert_true(after <= before + 1);
	atomic_store(&neighbour->busy, 0);
	eventually(copies_of(slot) > before + 4);
}

/* A process that yields fills nothing and copies nothing within the GPU while its neighbour says
 * that it works, by whatever call; from and to the host it copies, and captures, all the same. */
static void test_copies_yield_too(void **state)
{
	(void)state;
	struct sw_share_page *other = NULL;
	struct sw_page *shared = raw_page(page_path());
	struct sw_page_slot *neighbour = make_neighbour("busy", &other);
	for (kind = kinds; kind < kinds + sizeof kinds / sizeof kinds[0]; kind++) {
		struct job job = start(copy);
		hear(job.socket, 'r');
		const struct sw_page_slot *slot = slot_of(shared, &job);
		print_message("%s\n", kind->name);
		if (kind->within) {
			check_that_it_yields(slot, neighbour);
		} else {
			atomic_store(&neighbour->busy, 1);
			uint64_t before = copies_of(slot);
			eventually(copies_of(slot) > before + 4);
			atomic_store(&neighbour->busy, 0);
		}
		tell(job.socket, 'e');
		end(&job);
	}
	sw_share_page_close(other);
}

/* ---- how much it gives the GPU at once */

/* Work that runs after the neighbour said that it works. */
static int64_t late_work(struct sw_page_slot *neighbour)
{
	atomic_store(&neighbour->busy, 1);
	rest(2 * MS);
	uint64_t begun = gpu_busy_ns();
	return (int64_t)(wait_for_silence() - begun);
}

enum { SHORT_ONES = 2000, LONG_NS = 20000000 };
static bool in_turns; /* the job that is started next */

static void short_then_long(int socket)
{
	CUstream streams[2];
	open_driver();
	for (unsigned i = 0; i < 2; i++)
		assert_cuda(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
	hear(socket, 'g');
	for (unsigned i = 0; i < SHORT_ONES; i++) {
		assert_cuda(launch_spin(streams[0], 100));
		if (i % 100 == 99)
			assert_cuda(cuStreamSynchronize(streams[0]));
	}
	tell(socket, 'r');
	for (unsigned i = 0; i < 300 && !heard(socket); i++)
		assert_cuda(launch_spin(streams[in_turns ? i % 2 : 0], LONG_NS));
	hear(socket, 'e');
}

/* Long kernels after thousands of short ones are in the way of a neighbour that begins to work by a
 * few of them, not by all that fit into the driver's queue; nor do more streams help. */
static void test_long_after_short(void **state)
{
	(void)state;
	struct sw_share_page *other = NULL;
	struct sw_page_slot *neighbour = make_neighbour("longer", &other);
	for (unsigned round = 0; round < 2; round++) {
		in_turns = round == 1;
		atomic_store(&neighbour->busy, 0);
		struct job job = start(short_then_long);
		hear_again();
		tell(job.socket, 'g');
		hear(job.socket, 'r');
		rest(10 * MS);
		int64_t late = late_work(neighbour);
		print_message("%.1f ms of work after the neighbour began\n", (double)late / 1e6);
		tell(job.socket, 'e');
		atomic_store(&neighbour->busy, 0);
		end(&job);
		assert_true(late <= INT64_C(12) * LONG_NS);
	}
	sw_share_page_close(other);
}

static void long_ones(int socket)
{
	CUstream stream;
	open_driver();
	assert_cuda(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	tell(socket, 'r');
	while (!heard(socket))
		assert_cuda(launch_spin(stream, LONG_NS));
	hear(socket, 'e');
}

/* Kernels that are known to be long go to the GPU one at a time. */
static void test_one_long_one_at_a_time(void **state)
{
	(void)state;
	struct sw_share_page *other = NULL;
	struct sw_page_slot *neighbour = make_neighbour("long", &other);
	struct job job = start(long_ones);
	hear(job.socket, 'r');
	hear_again();
	for (unsigned round = 0; round < 5; round++) {
		uint64_t before = gpu_busy_ns();
		atomic_store(&neighbour->busy, 0);
		eventually(gpu_busy_ns() > before + 3 * (uint64_t)LONG_NS);
		int64_t late = late_work(neighbour);
		if (late > LONG_NS * 3 / 2)
			fail_msg("%.1f ms of work after the neighbour began", (double)late / 1e6);
	}
	tell(job.socket, 'e');
	atomic_store(&neighbour->busy, 0);
	end(&job);
	sw_share_page_close(other);
}

/* An idle time of the neighbour that lasts for 1 ms by the runtime's clock, which stands, where all
 * before were 8 ms long. Returns the work that was begun in it. */
static int64_t work_in_idle_time(struct sw_page_slot *neighbour)
{
	uint64_t before = wait_for_silence();
	for (unsigned i = 0; i < SW_PAGE_GAPS; i++)
		atomic_store(&neighbour->gap_ns[i], 8 * MS);
	atomic_store(&neighbour->idle_since_ns, clock_stop() - MS);
	atomic_store(&neighbour->busy, 0);
	clock_await_reads(200);
	atomic_store(&neighbour->busy, 1);
	return (int64_t)(wait_for_silence() - before);
}

/* Works until it is known how long its work takes, and is suspended for a moment then. Returns what
 * it does in a short idle time after that. */
static int64_t work_once_known(struct sw_page_slot *neighbour)
{
	uint64_t before = gpu_busy_ns();
	clock_go_on();
	atomic_store(&neighbour->idle_since_ns, now_ns() - SECOND);
	atomic_store(&neighbour->busy, 0);
	eventually(gpu_busy_ns() > before + (uint64_t)SECOND / 3);
	atomic_store(&neighbour->busy, 1);
	clock_stop();
	suspend();
	resume();
	return work_in_idle_time(neighbour);
}

static void spin_with_memory(int socket)
{
	CUdeviceptr memory;
	open_driver();
	assert_cuda(cuMemAlloc_v2(&memory, 64 * MiB));
	spin(socket);
}

/* As long as nothing is known of its work, and again when its memory has gone to the host, nothing
 * begins in an idle time that may be too short; when it only was suspended, it goes on. */
static void test_unknown_work_waits(void **state)
{
	(void)state;
	struct sw_share_page *other = NULL;
	struct sw_page_slot *neighbour = make_neighbour("known", &other);
	clock_up();
	clock_stop();
	atomic_store(&neighbour->busy, 1);
	struct job job = start(spin_with_memory);
	hear(job.socket, 'r');
	hear_again();
	assert_int_equal(work_in_idle_time(neighbour), 0);
	/* Where the machine is busy, some of its work looks longer than it is. */
	eventually(work_once_known(neighbour) > 0);
	limit(CONTEXT_BYTES + 32 * MiB);
	assert_true(look().gpus[0].host_bytes > 0);
	assert_int_equal(work_in_idle_time(neighbour), 0);
	clock_go_on();
	tell(job.socket, 'e');
	atomic_store(&neighbour->busy, 0);
	end(&job);
	sw_share_page_close(other);
}

/* ---- work that the program itself lets go on */

static _Atomic bool may_go_on;
static void await_go(void *unused)
{
	(void)unused;
	while (!may_go_on)
		usleep(1000);
}

static void held_by_host(int socket)
{
	CUstream stream;
	open_driver();
	assert_cuda(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	tell(socket, 'r');
	hear(socket, 'g');
	assert_cuda(cuLaunchHostFunc(stream, await_go, NULL));
	for (unsigned i = 0; i < 20; i++)
		assert_cuda(launch_spin(stream, 10000));
	may_go_on = true;
	assert_cuda(cuStreamSynchronize(stream));
	tell(socket, 'd');
	hear(socket, 'e');
}

/* A program may give work behind something for which it waits itself: a paced process does not wait
 * for ever that it ends first. */
static void test_held_by_the_program(void **state)
{
	(void)state;
	struct sw_share_page *other = NULL;
	make_neighbour("held", &other);
	for (unsigned round = 0; round < 2; round++) {
		struct sw_page *shared = raw_page(page_path());
		atomic_store(&shared->yields, round == 0);
		atomic_store(&shared->share_milli, round == 0 ? 0 : 500);
		struct job job = start(held_by_host);
		hear(job.socket, 'r');
		hear_again();
		tell(job.socket, 'g');
		hear(job.socket, 'd');
		tell(job.socket, 'e');
		end(&job);
	}
	sw_share_page_close(other);
}

static _Atomic unsigned *launches; /* in memory that the job shares with the test */

static void share_launches(void)
{
	launches = mmap(NULL, sizeof *launches, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(launches, MAP_FAILED);
}

static void pairs(int socket)
{
	CUstream first, second;
	CUgraph graph;
	CUgraphExec waits;
	open_driver();
	assert_cuda(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
	assert_cuda(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
	assert_cuda(cuStreamBeginCapture_v2(first, CU_CAPTURE_MODE_RELAXED));
	assert_cuda(launch_spin(first, 10000));
	assert_cuda(cuLaunchHostFunc(first, await_go, NULL));
	assert_cuda(cuStreamEndCapture(first, &graph));
	assert_cuda(cuGraphInstantiateWithFlags(&waits, graph, 0));
	tell(socket, 'r');
	hear(socket, 'g');
	while (!heard(socket)) {
		may_go_on = false;
		assert_cuda(cuGraphLaunch(waits, first));
		assert_cuda(launch_spin(second, 10000));
		assert_cuda(cuStreamSynchronize(second));
		may_go_on = true;
		assert_cuda(cuStreamSynchronize(first));
		atomic_fetch_add(launches, 1);
	}
}

/* Work of one stream may wait for that of another which is given later. That this takes long the
 * first time makes it no long work of which one is given at a time. */
static void test_tangled_streams(void **state)
{
	(void)state;
	struct sw_share_page *other = NULL;
	make_neighbour("tangled", &other);
	share_launches();
	struct job job = start(pairs);
	hear(job.socket, 'r');
	hear_again();
	tell(job.socket, 'g');
	eventually(atomic_load(launches) >= 30);
	tell(job.socket, 'e');
	end(&job);
	sw_share_page_close(other);
}

static void launch_very_long(int socket)
{
	CUstream stream;
	open_driver();
	assert_cuda(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	tell(socket, 'r');
	hear(socket, 'g');
	for (unsigned i = 0; i < 400; i++) {
		assert_cuda(launch_spin(stream, 3 * SECOND / 2));
		atomic_fetch_add(launches, 1);
	}
	hear(socket, 'e');
}

/* Kernels that take longer than that are not held up by the program: not all of them pass. */
static void test_very_long_ones(void **state)
{
	(void)state;
	struct sw_share_page *other = NULL;
	make_neighbour("very long", &other);
	share_launches();
	for (unsigned round = 0; round < 2; round++) {
		struct sw_page *shared = raw_page(page_path());
		atomic_store(&shared->yields, round == 0);
		atomic_store(&shared->share_milli, round == 0 ? 0 : 250);
		*launches = 0;
		struct job job = start(launch_very_long);
		hear(job.socket, 'r');
		hear_again();
		tell(job.socket, 'g');
		rest(5 * SECOND / 2);
		print_message("%u launches of 1.5 s were given in 2.5 s\n", *launches);
		assert_true(*launches <= 40);
		kill_job(&job);
	}
	sw_share_page_close(other);
}

/* ---- captures of others */

static CUcontext common;
static _Atomic bool finished;

static void *launch_beside(void *unused)
{
	CUstream stream;
	assert_cuda(cuCtxSetCurrent(common));
	assert_cuda(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	while (!finished)
		assert_cuda(launch_spin(stream, 1000));
	return unused;
}

static void capture_much(int socket)
{
	enum { THREADS = 4, GLOBAL = 0 };
	CUstream stream;
	pthread_t threads[THREADS];
	open_driver();
	assert_cuda(cuCtxGetCurrent(&common));
	assert_cuda(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	tell(socket, 'r');
	hear(socket, 'g');
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, launch_beside, NULL), 0);
	for (int64_t until = now_ns() + 5 * SECOND; now_ns() < until;) {
		CUgraph graph = NULL;
		assert_cuda(cuStreamBeginCapture_v2(stream, GLOBAL));
		for (unsigned i = 0; i < 20; i++)
			assert_cuda(launch_spin(stream, 1000));
		usleep(50);
		assert_cuda(cuStreamEndCapture(stream, &graph));
		assert_cuda(cuGraphDestroy(graph));
		usleep(100);
	}
	finished = true;
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	tell(socket, 'd');
}

/* Threads that wait for their turn ask the driver nothing while another captures, also if that
 * begins at that moment. */
static void test_pacing_spoils_no_capture(void **state)
{
	(void)state;
	struct sw_share_page *other = NULL;
	make_neighbour("captures", &other);
	struct job job = start(capture_much);
	hear(job.socket, 'r');
	hear_again();
	tell(job.socket, 'g');
	hear(job.socket, 'd');
	end(&job);
	sw_share_page_close(other);
}

/* ---- what it takes its work to need */

static struct sw_page_slot *young; /* its idle time began a moment ago, always */
static _Atomic bool aging;

static void *stay_young(void *unused)
{
	while (!aging) {
		atomic_store(&young->idle_since_ns, now_ns() - 400000);
		usleep(20);
	}
	return unused;
}

static void set_gaps(struct sw_page_slot *slot, int64_t ns)
{
	for (unsigned i = 0; i < SW_PAGE_GAPS; i++)
		atomic_store(&slot->gap_ns[i], ns);
}

static void think_between(int socket)
{
	CUstream stream;
	open_driver();
	assert_cuda(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	tell(socket, 'r');
	while (!heard(socket)) {
		assert_cuda(launch_spin(stream, 20000));
		atomic_fetch_add(launches, 1);
		usleep(4000);
	}
}

/* What a program thinks between two launches is no work: short ones fit into short idle times. */
static void test_thinking_is_no_work(void **state)
{
	(void)state;
	pthread_t thread;
	struct sw_share_page *other = NULL;
	struct sw_page_slot *neighbour = make_neighbour("thinking", &other);
	share_launches();
	struct job job = start(think_between);
	hear(job.socket, 'r');
	hear_again();
	rest(SECOND);
	young = neighbour;
	aging = false;
	set_gaps(neighbour, 3 * MS);
	assert_int_equal(pthread_create(&thread, NULL, stay_young, NULL), 0);
	unsigned before = *launches;
	eventually(*launches > before + 100);
	aging = true;
	pthread_join(thread, NULL);
	tell(job.socket, 'e');
	atomic_store(&neighbour->idle_since_ns, 0);
	end(&job);
	sw_share_page_close(other);
}

static void long_then_pause(int socket)
{
	CUstream stream;
	open_driver();
	assert_cuda(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	hear(socket, 'g');
	assert_cuda(launch_spin(stream, 28 * SECOND / 10));
	assert_cuda(cuStreamSynchronize(stream));
	/* Now it is known how long that took. */
	assert_cuda(launch_spin(stream, 10000));
	assert_cuda(cuStreamSynchronize(stream));
	tell(socket, 'r');
	hear(socket, 'g');
	assert_cuda(launch_spin(stream, 28 * SECOND / 10));
	tell(socket, 'l');
	hear(socket, 'e');
}

/* While it has nothing to do it does not forget how long its work takes. */
static void test_pauses_forget_nothing(void **state)
{
	(void)state;
	pthread_t thread;
	struct sw_share_page *other = NULL;
	struct sw_page_slot *neighbour = make_neighbour("pauses", &other);
	struct job job = start(long_then_pause);
	hear_again();
	tell(job.socket, 'g');
	hear(job.socket, 'r');
	young = neighbour;
	aging = false;
	set_gaps(neighbour, 2 * SECOND);
	assert_int_equal(pthread_create(&thread, NULL, stay_young, NULL), 0);
	rest(5 * SECOND);
	tell(job.socket, 'g');
	rest(SECOND);
	assert_false(heard(job.socket));
	aging = true;
	pthread_join(thread, NULL);
	atomic_store(&neighbour->idle_since_ns, 0);
	hear(job.socket, 'l');
	tell(job.socket, 'e');
	end(&job);
	sw_share_page_close(other);
}

/* ---- neighbours that cannot be seen */

static void use_up_files(int socket)
{
	CUstream stream;
	open_driver();
	assert_cuda(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){256, 256});
	while (open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0)
		;
	tell(socket, 'r');
	while (!heard(socket)) {
		assert_cuda(launch_spin(stream, 1000000));
		assert_cuda(cuStreamSynchronize(stream));
	}
}

/* One that has no file left to open takes the neighbour that it cannot see to be at work. */
static void test_one_without_files(void **state)
{
	(void)state;
	struct sw_share_page *other = NULL;
	struct job job = start(use_up_files);
	hear(job.socket, 'r');
	struct sw_page_slot *neighbour = make_neighbour("unseen", &other);
	atomic_store(&neighbour->busy, 1);
	hear_again();
	uint64_t before = wait_for_silence();
	rest(SECOND / 2);
	assert_int_equal(gpu_busy_ns(), before);
	/* None is there to be seen. */
	assert_int_equal(unlink(beside("unseen")), 0);
	eventually(gpu_busy_ns() > before);
	tell(job.socket, 'e');
	end(&job);
	sw_share_page_close(other);
}

static int down(void **state)
{
	clock_go_on();
	return machine_down(state);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, machine_up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_one_that_yields),	  CASE(test_a_moment_is_no_idle_time), CASE(test_a_neighbour_that_is_gone),
		CASE(test_copies_yield_too),	  CASE(test_long_after_short),	       CASE(test_held_by_the_program),
		CASE(test_very_long_ones),	  CASE(test_pacing_spoils_no_capture), CASE(test_thinking_is_no_work),
		CASE(test_pauses_forget_nothing), CASE(test_one_without_files),	       CASE(test_one_long_one_at_a_time),
		CASE(test_unknown_work_waits),	  CASE(test_tangled_streams),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
