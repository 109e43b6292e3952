/* Memory that a program creates and maps by hand: it leaves the GPU and comes back like any other
 * where it can, and stays where it cannot; the program's handles stay good. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/job.h"

#define PIECE (6 * MiB)
enum { PIECES = 4, WORDS = 6 << 18 };

static const CUmemAllocationProp plain = {.type = CU_MEM_ALLOCATION_PINNED, .location = {CU_MEM_LOCATION_DEVICE, 0}};
static const CUmemAllocationProp exportable = {
	.type = CU_MEM_ALLOCATION_PINNED, .requested_handle_types = CU_MEM_HANDLE_FILE_DESCRIPTOR, .location = {CU_MEM_LOCATION_DEVICE, 0}};

static uint64_t charged(void)
{
	return look().gpus[0].charged_bytes - CONTEXT_BYTES;
}

static uint64_t fixed(void)
{
	return look().gpus[0].fixed_bytes - CONTEXT_BYTES;
}

static void *pointer(CUdeviceptr address)
{
	return (void *)(uintptr_t)address; /* NOLINT(performance-no-int-to-ptr): the driver's own type */
}

static void open_to(CUdeviceptr x, size_t bytes, int flags)
{
	CUmemAccessDesc access = {.location = {CU_MEM_LOCATION_DEVICE, 0}, .flags = flags};
	assert_cuda(cuMemSetAccess(x, bytes, &access, 1));
}

static CUmemHandle map_new(CUdeviceptr x, const CUmemAllocationProp *prop)
{
	CUmemHandle handle = 0;
	assert_cuda(cuMemCreate(&handle, PIECE, prop, 0));
	assert_cuda(cuMemMap(x, PIECE, 0, handle, 0));
	open_to(x, PIECE, CU_MEM_ACCESS_READWRITE);
	return handle;
}

static void set(CUdeviceptr x, unsigned char value)
{
	assert_cuda(cuMemsetD8_v2(x, value, PIECE));
}

static void check(CUdeviceptr x, unsigned char value)
{
	unsigned char first = 0, last = 0;
	assert_cuda(cuMemcpyDtoH_v2(&first, x, 1));
	assert_cuda(cuMemcpyDtoH_v2(&last, x + PIECE - 1, 1));
	assert_int_equal(first, value);
	assert_int_equal(last, value);
}

static void cycle(uint64_t stays)
{
	suspend();
	assert_int_equal(charged(), stays);
	assert_int_equal(gpu_used(), CONTEXT_BYTES + stays);
	resume();
}

/* ---- as PyTorch's expandable segments have it */

static void use_segment(int socket)
{
	CUdeviceptr x = 0;
	CUmemHandle handles[PIECES];
	(void)socket;
	open_driver();
	assert_cuda(cuMemAddressReserve(&x, 16 * PIECE, 0, 0, 0));
	for (unsigned i = 0; i < PIECES; i++)
		handles[i] = map_new(x + i * PIECE, &exportable);
	assert_int_equal(charged(), PIECES * PIECE);
	assert_int_equal(fixed(), 0);
	/* One kernel over several of them. */
	uint32_t *here = calloc(PIECES * WORDS, sizeof *here), *there = malloc(PIECES * PIECE);
	assert_cuda(cuMemsetD8_v2(x, 0, PIECES * PIECE));
	for (unsigned i = 0; i < 3; i++) {
		assert_cuda(launch_stir(NULL, x, PIECES * WORDS));
		stir_here(here, PIECES * WORDS);
		cycle(0);
		assert_int_equal(charged(), PIECES * PIECE);
	}
	assert_cuda(cuMemcpyDtoH_v2(there, x, PIECES * PIECE));
	assert_memory_equal(here, there, PIECES * PIECE);
	/* It shrinks, moves and grows again. */
	assert_cuda(cuMemUnmap(x + 2 * PIECE, 2 * PIECE));
	assert_cuda(cuMemRelease(handles[2]));
	assert_cuda(cuMemRelease(handles[3]));
	assert_int_equal(charged(), 2 * PIECE);
	cycle(0);
	handles[2] = map_new(x + 2 * PIECE, &exportable);
	assert_cuda(cuMemcpyDtoH_v2(there, x, 2 * PIECE));
	assert_memory_equal(here, there, 2 * PIECE);
	assert_cuda(cuMemUnmap(x, 3 * PIECE));
	for (unsigned i = 0; i < 3; i++)
		assert_cuda(cuMemRelease(handles[i]));
	assert_int_equal(charged() + fixed(), 0);
	assert_int_equal(gpu_used(), CONTEXT_BYTES);
	assert_cuda(cuMemAddressFree(x, 16 * PIECE));
	free(here);
	free(there);
}

/* Segments that are made of many small mappings leave the GPU whole and come back bit for bit. */
static void test_segments_move(void **state)
{
	(void)state;
	run_job(use_segment);
}

/* ---- handles */

static void keep_handles(int socket)
{
	CUdeviceptr x = 0;
	CUmemHandle handles[8], again = 0;
	CUmemAllocationProp prop;
	CUmemLocation own = {CU_MEM_LOCATION_DEVICE, 0};
	unsigned long long access = 0;
	(void)socket;
	open_driver();
	assert_cuda(cuMemAddressReserve(&x, 16 * PIECE, 0, 0, 0));
	handles[0] = map_new(x, &exportable);
	set(x, 10);
	cycle(0);
	/* What it was is said of it, it can be mapped elsewhere, and no other
	 * handle is taken for it. */
	assert_cuda(cuMemGetAllocationPropertiesFromHandle(&prop, handles[0]));
	assert_memory_equal(&prop, &exportable, sizeof prop);
	assert_cuda(cuMemGetAccess(&access, &own, x));
	assert_int_equal(access, CU_MEM_ACCESS_READWRITE);
	for (unsigned i = 1; i < 8; i++) {
		handles[i] = map_new(x + i * PIECE, &plain);
		set(x + i * PIECE, (unsigned char)(10 + i));
		cycle(0);
		for (unsigned j = 0; j < i; j++)
			assert_true(handles[j] != handles[i]);
	}
	assert_cuda(cuMemUnmap(x, 8 * PIECE));
	for (unsigned i = 0; i < 8; i++) {
		assert_cuda(cuMemMap(x + (15 - i) * PIECE, PIECE, 0, handles[i], 0));
		open_to(x + (15 - i) * PIECE, PIECE, CU_MEM_ACCESS_READWRITE);
	}
	cycle(0);
	for (unsigned i = 0; i < 8; i++)
		check(x + (15 - i) * PIECE, (unsigned char)(10 + i));
	/* A handle that was released is given out again; the memory lives
	 * until the last is gone. */
	assert_cuda(cuMemRelease(handles[0]));
	cycle(0);
	assert_int_not_equal(cuMemRelease(handles[0]), CUDA_SUCCESS);
	assert_cuda(cuMemRetainAllocationHandle(&again, pointer(x + 15 * PIECE + 100)));
	assert_cuda(cuMemUnmap(x + 15 * PIECE, PIECE));
	assert_cuda(cuMemMap(x, PIECE, 0, again, 0));
	open_to(x, PIECE, CU_MEM_ACCESS_READWRITE);
	cycle(0);
	check(x, 10);
	assert_cuda(cuMemRelease(again));
	assert_cuda(cuMemUnmap(x, PIECE));
	assert_int_equal(charged(), 7 * PIECE);
}

/* The program's handles mean the same memory before and after it has moved, however often. */
static void test_handles_stay_good(void **state)
{
	(void)state;
	run_job(keep_handles);
}

/* ---- questions */

static CUdeviceptr asked_of;
static _Atomic int answered = -1; /* what the driver said */

static void *ask_range(void *unused)
{
	CUdeviceptr base = 0;
	size_t bytes = 0;
	(void)unused;
	assert_cuda(cuCtxSetCurrent(primary()));
	CUresult result = cuMemGetAddressRange_v2(&base, &bytes, asked_of + 1);
	if (result == CUDA_SUCCESS) {
		assert_int_equal(base, asked_of);
		assert_int_equal(bytes, PIECE);
	}
	answered = result;
	return NULL;
}

static void ask_while_away(int socket)
{
	pthread_t thread;
	(void)socket;
	open_driver();
	assert_cuda(cuMemAddressReserve(&asked_of, PIECE, 0, 0, 0));
	map_new(asked_of, &plain);
	suspend();
	uint64_t waits = look().waits;
	assert_int_equal(pthread_create(&thread, NULL, ask_range, NULL), 0);
	eventually(look().waits > waits || answered != -1);
	assert_int_equal(answered, -1);
	resume();
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_cuda(answered);
}

/* A thread that asks what lies at an address while the process is suspended waits, and hears what
 * the program mapped there. */
static void test_questions_wait(void **state)
{
	(void)state;
	run_job(ask_while_away);
}

/* ---- what stays */

static void keep_there(int socket)
{
	CUdeviceptr x = 0;
	CUmemHandle handle = 0, other = 0;
	CUcontext mine = NULL;
	int fd = -1;
	(void)socket;
	open_driver();
	assert_cuda(cuMemAddressReserve(&x, 16 * PIECE, 0, 0, 0));
	/* Not mapped. */
	assert_cuda(cuMemCreate(&handle, PIECE, &exportable, 0));
	assert_int_equal(fixed(), PIECE);
	cycle(PIECE);
	/* It must not be written. */
	assert_cuda(cuMemMap(x, PIECE, 0, handle, 0));
	cycle(PIECE);
	open_to(x, PIECE, CU_MEM_ACCESS_READ);
	cycle(PIECE);
	open_to(x, PIECE, CU_MEM_ACCESS_READWRITE);
	set(x, 20);
	assert_int_equal(fixed(), 0);
	cycle(0);
	/* Mapped twice. */
	assert_cuda(cuMemMap(x + PIECE, PIECE, 0, handle, 0));
	open_to(x + PIECE, PIECE, CU_MEM_ACCESS_READWRITE);
	set(x + PIECE, 21);
	cycle(PIECE);
	check(x, 21);
	assert_cuda(cuMemUnmap(x + PIECE, PIECE));
	/* In part. */
	assert_cuda(cuMemCreate(&other, PIECE, &plain, 0));
	assert_cuda(cuMemMap(x + PIECE, UNIT, 0, other, 0));
	open_to(x + PIECE, UNIT, CU_MEM_ACCESS_READWRITE);
	open_to(x, PIECE, CU_MEM_ACCESS_READWRITE);
	cycle(PIECE);
	check(x, 21);
	assert_cuda(cuMemUnmap(x + PIECE, UNIT));
	assert_cuda(cuMemRelease(other));
	/* Known to others, after it has moved. */
	assert_cuda(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_FILE_DESCRIPTOR, 0));
	assert_cuda(cuMemImportFromShareableHandle(&other, (void *)(intptr_t)fd, CU_MEM_HANDLE_FILE_DESCRIPTOR));
	close(fd);
	assert_cuda(cuMemMap(x + PIECE, PIECE, 0, other, 0));
	open_to(x + PIECE, PIECE, CU_MEM_ACCESS_READWRITE);
	check(x + PIECE, 21);
	set(x, 22);
	cycle(PIECE);
	check(x + PIECE, 22);
	assert_cuda(cuMemUnmap(x, 2 * PIECE));
	assert_cuda(cuMemRelease(other));
	assert_cuda(cuMemRelease(handle));
	/* Its context is gone. */
	assert_cuda(cuCtxCreate_v2(&mine, 0, 0));
	handle = map_new(x, &plain);
	assert_int_equal(fixed(), CONTEXT_BYTES);
	set(x, 23);
	assert_cuda(cuCtxDestroy_v2(mine));
	assert_cuda(cuCtxSetCurrent(primary()));
	assert_int_equal(fixed(), PIECE);
	cycle(PIECE);
	check(x, 23);
	assert_cuda(cuMemUnmap(x, PIECE));
	assert_cuda(cuMemRelease(handle));
	assert_int_equal(charged() + fixed(), 0);
	/* Larger than a piece of the store. */
	assert_cuda(cuMemAddressReserve(&x, 260 * MiB, 0, 0, 0));
	assert_cuda(cuMemCreate(&handle, 260 * MiB, &plain, 0));
	assert_cuda(cuMemMap(x, 260 * MiB, 0, handle, 0));
	open_to(x, 260 * MiB, CU_MEM_ACCESS_READWRITE);
	cycle(260 * MiB);
}

/* What others know, what is mapped twice, in part, or not at all, and what could not be copied
 * stays on the GPU, and the rest of the program moves. */
static void test_what_cannot_move_stays(void **state)
{
	(void)state;
	run_job(keep_there);
}

/* ---- a driver that takes its time */

static char held[160]; /* is there while the driver maps memory */
static CUdeviceptr mapped_at;
static CUmemHandle to_map;
static _Atomic bool has_allocated;

static void *map_slowly(void *unused)
{
	(void)unused;
	assert_cuda(cuCtxSetCurrent(primary()));
	assert_cuda(cuMemMap(mapped_at, PIECE, 0, to_map, 0));
	return NULL;
}

static void *allocate(void *ret)
{
	assert_cuda(cuCtxSetCurrent(primary()));
	assert_cuda(cuMemAlloc_v2(ret, PIECE));
	has_allocated = true;
	return NULL;
}

static void go_on_meanwhile(int socket)
{
	char fault[200];
	pthread_t mapper, allocator;
	CUdeviceptr x = 0;
	(void)socket;
	snprintf(fault, sizeof fault, "cuMemMap:hold=%s", held);
	open_driver();
	assert_cuda(cuMemAddressReserve(&mapped_at, 2 * PIECE, 0, 0, 0));
	to_map = map_new(mapped_at + PIECE, &plain);
	set(mapped_at + PIECE, 50);
	assert_int_equal(fixed(), 0);
	machine_faults(fault);
	for (unsigned i = 0; i < 100; i++)
		doze();
	assert_int_equal(pthread_create(&mapper, NULL, map_slowly, NULL), 0);
	eventually(access(held, F_OK) == 0);
	assert_int_equal(pthread_create(&allocator, NULL, allocate, &x), 0);
	eventually(has_allocated);
	assert_int_equal(pthread_join(allocator, NULL), 0);
	set(x, 51);
	limit(CONTEXT_BYTES + PIECE);
	assert_int_equal(look().gpus[0].host_bytes, PIECE);
	/* What is about to be mapped stays. */
	cycle(PIECE);
	assert_int_equal(unlink(held), 0);
	assert_int_equal(pthread_join(mapper, NULL), 0);
	open_to(mapped_at, PIECE, CU_MEM_ACCESS_READWRITE);
	check(mapped_at, 50);
	check(x, 51);
	/* It moves when one mapping is left. */
	assert_cuda(cuMemUnmap(mapped_at + PIECE, PIECE));
	open_to(mapped_at, PIECE, CU_MEM_ACCESS_READWRITE);
	cycle(0);
	check(mapped_at, 50);
	/* And after a call that was refused. */
	assert_int_not_equal(cuMemMap(mapped_at, PIECE, 0, to_map, 0), CUDA_SUCCESS);
	assert_int_equal(fixed(), 0);
	cycle(0);
	check(mapped_at, 50);
}

/* While the driver is long about one mapping, other threads get memory, and the process is
 * limited and suspended. */
static void test_a_slow_call_holds_up_nobody(void **state)
{
	(void)state;
	snprintf(held, sizeof held, "%s", beside("held"));
	machine_faults("");
	run_job(go_on_meanwhile);
}

/* ---- less of the GPU */

static void be_squeezed(int socket)
{
	CUdeviceptr x = 0, y = 0;
	CUmemHandle handles[PIECES], other = 0;
	(void)socket;
	open_driver();
	assert_cuda(cuMemAlloc_v2(&y, PIECE));
	set(y, 9);
	assert_cuda(cuMemAddressReserve(&x, 16 * PIECE, 0, 0, 0));
	for (unsigned i = 0; i < PIECES; i++) {
		handles[i] = map_new(x + i * PIECE, &plain);
		set(x + i * PIECE, (unsigned char)(30 + i));
	}
	limit(CONTEXT_BYTES + 2 * PIECE);
	assert_int_equal(charged(), 2 * PIECE);
	assert_int_equal(look().gpus[0].host_bytes, 3 * PIECE);
	/* What there is no room for is in the host from the beginning, and
	 * beyond that there is none. */
	other = map_new(x + 12 * PIECE, &exportable);
	set(x + 12 * PIECE, 40);
	assert_int_equal(look().gpus[0].host_bytes, 4 * PIECE);
	host_budget(4 * PIECE);
	CUmemHandle none = 0;
	assert_int_equal(cuMemCreate(&none, PIECE, &plain, 0), CUDA_ERROR_OUT_OF_MEMORY);
	host_budget(1024 * MiB);
	for (unsigned i = 0; i < PIECES; i++)
		check(x + i * PIECE, (unsigned char)(30 + i));
	check(y, 9);
	/* What is in the host may go, or be mapped elsewhere. */
	assert_cuda(cuMemUnmap(x + 3 * PIECE, PIECE));
	assert_cuda(cuMemRelease(handles[3]));
	assert_cuda(cuMemUnmap(x + 2 * PIECE, PIECE));
	assert_cuda(cuMemMap(x + 8 * PIECE, PIECE, 0, handles[2], 0));
	open_to(x + 8 * PIECE, PIECE, CU_MEM_ACCESS_READWRITE);
	check(x + 8 * PIECE, 32);
	assert_int_equal(look().gpus[0].host_bytes, 3 * PIECE);
	suspend();
	assert_int_equal(charged(), 0);
	limit(SW_PAGE_NO_LIMIT);
	resume();
	eventually(look().gpus[0].host_bytes == 0);
	assert_int_equal(charged(), 5 * PIECE);
	assert_int_equal(fixed(), 0);
	check(x + 12 * PIECE, 40);
	assert_cuda(cuMemRelease(other));
	check(x, 30);
	check(x + PIECE, 31);
	check(x + 8 * PIECE, 32);
}

/* A lower limit puts such memory into the host, where the program goes on with it, and it comes
 * back when there is room. */
static void test_limits_move_it(void **state)
{
	(void)state;
	run_job(be_squeezed);
}

/* ---- anything at any time */

enum { PLACES = 12 };

static void do_anything(int socket)
{
	CUdeviceptr x = 0;
	struct {
		CUmemHandle handle;
		unsigned place;
		bool lives, held, mapped;
		unsigned char value;
	} all[PLACES] = {0};
	bool used[PLACES] = {0};
	/* Fewer with sanitizers, which say so. */
	unsigned seed = 7, steps = getenv("SW_OPERATIONS") == NULL ? 600 : 150;
	open_driver();
	assert_cuda(cuMemAddressReserve(&x, PLACES * PIECE, 0, 0, 0));
	tell(socket, 'r');
	for (unsigned step = 0; step < steps; step++) {
		unsigned i = (unsigned)rand_r(&seed) % PLACES, place = (unsigned)rand_r(&seed) % PLACES;
		CUdeviceptr at = x + all[i].place * PIECE;
		if (!all[i].lives) {
			assert_cuda(cuMemCreate(&all[i].handle, PIECE, i % 2 ? &plain : &exportable, 0));
			all[i].lives = all[i].held = true;
			all[i].value = 0;
		} else if (!all[i].mapped && !used[place]) {
			at = x + place * PIECE;
			assert_cuda(cuMemMap(at, PIECE, 0, all[i].handle, 0));
			open_to(at, PIECE, CU_MEM_ACCESS_READWRITE);
			all[i].mapped = used[place] = true;
			all[i].place = place;
			if (all[i].value != 0)
				check(at, all[i].value);
		} else if (all[i].mapped && step % 3 != 0) {
			if (all[i].value != 0)
				check(at, all[i].value);
			all[i].value = (unsigned char)(1 + step % 250);
			assert_cuda(cuMemsetD8Async(at, all[i].value, PIECE, NULL));
		} else if (all[i].mapped && all[i].held && step % 2 != 0) {
			assert_cuda(cuMemRelease(all[i].handle));
			all[i].held = false;
		} else if (all[i].mapped && !all[i].held && step % 4 != 0) {
			assert_cuda(cuMemRetainAllocationHandle(&all[i].handle, pointer(at)));
			all[i].held = true;
		} else if (all[i].mapped) {
			assert_cuda(cuCtxSynchronize());
			assert_cuda(cuMemUnmap(at, PIECE));
			used[all[i].place] = all[i].mapped = false;
			all[i].lives = all[i].held;
		} else {
			assert_cuda(cuMemRelease(all[i].handle));
			all[i].lives = all[i].held = false;
		}
	}
	for (unsigned i = 0; i < PLACES; i++) {
		if (all[i].mapped && all[i].value != 0)
			check(x + all[i].place * PIECE, all[i].value);
		if (all[i].mapped)
			assert_cuda(cuMemUnmap(x + all[i].place * PIECE, PIECE));
		if (all[i].held)
			assert_cuda(cuMemRelease(all[i].handle));
	}
	tell(socket, 'd');
	hear(socket, 'e');
}

static bool is_done(const struct job *job)
{
	char word = 0;
	return recv(job->socket, &word, 1, MSG_DONTWAIT) == 1;
}

/* Created, mapped, written, released and unmapped in any order, while the process is suspended and
 * squeezed: contents stay, and in the end nothing is held. */
static void test_any_order(void **state)
{
	(void)state;
	struct job job = start(do_anything);
	hear(job.socket, 'r');
	for (unsigned i = 0; !is_done(&job); i++) {
		for (unsigned j = 0; j < 60; j++)
			doze();
		if (i % 3 == 2) {
			limit(CONTEXT_BYTES + i % 7 * PIECE);
			limit(SW_PAGE_NO_LIMIT);
		} else {
			suspend();
			resume();
		}
	}
	eventually(look().gpus[0].host_bytes == 0);
	assert_int_equal(charged() + fixed(), 0);
	assert_int_equal(gpu_used(), CONTEXT_BYTES);
	tell(job.socket, 'e');
	end(&job);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, machine_up, machine_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_segments_move), CASE(test_handles_stay_good), CASE(test_what_cannot_move_stays),	CASE(test_limits_move_it),
		CASE(test_any_order),	  CASE(test_questions_wait),	CASE(test_a_slow_call_holds_up_nobody),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
