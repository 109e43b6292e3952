/* Memory against a naive model: random calls, with limits, budgets and suspensions at
 * random in between. What was written is always there, what is counted is what is held, and
 * nothing is left at the end.
 *
 * SW_SEED=n repeats one run; the seed of a failure is printed.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/job.h"

enum { PLACES = 96, SLAB_MOST = 1 << 20 };

struct allocation {
	CUdeviceptr address;
	size_t bytes;
	unsigned char *copy; /* what it holds */
};

struct world {
	uint64_t seed, random;
	bool alone; /* no other thread gets addresses that it freed */
	struct allocation places[PLACES];
	size_t total;
	unsigned char buffer[1 << 16], scratch[1 << 16];
};

static uint64_t draw(struct world *w)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return w->random * 0x2545f4914f6cdd1dULL >> 11;
}

static size_t below(struct world *w, size_t end)
{
	return (size_t)(draw(w) % end);
}

static struct allocation *some(struct world *w)
{
	struct allocation *a = &w->places[below(w, PLACES)];
	return a->address != 0 ? a : NULL;
}

/* A part of it: often at one of its ends or across a border of 64 MiB, where the pieces meet. */
static size_t pick_part(struct world *w, size_t bytes, size_t *ret_offset)
{
	const size_t border = 64 * MiB;
	size_t length = 1 + below(w, bytes < sizeof w->buffer ? bytes : sizeof w->buffer), last = bytes - length;
	switch (below(w, 4)) {
	case 0:
		*ret_offset = 0;
		break;
	case 1:
		*ret_offset = last;
		break;
	case 2:
		*ret_offset = bytes > border && border - length / 2 <= last ? border - length / 2 : last / 2;
		break;
	default:
		*ret_offset = below(w, last + 1);
	}
	return length;
}

static void read_back(struct world *w, const struct allocation *a, size_t offset, size_t length)
{
	assert_cuda(cuMemcpyDtoH_v2(w->scratch, a->address + offset, length));
	if (memcmp(w->scratch, a->copy + offset, length) != 0)
		fail_msg("%zu bytes at %zu of %zu are not what was written (SW_SEED=%" PRIu64 ")", length, offset, a->bytes, w->seed);
}

static void read_all(struct world *w, const struct allocation *a)
{
	for (size_t offset = 0; offset < a->bytes; offset += sizeof w->scratch) {
		size_t left = a->bytes - offset;
		read_back(w, a, offset, left < sizeof w->scratch ? left : sizeof w->scratch);
	}
}

static size_t pick_size(struct world *w)
{
	switch (below(w, 1024)) {
	case 0:
		return 60 * MiB + below(w, 20 * MiB);
	case 1 ... 30:
		return SLAB_MOST - 2 + below(w, 5);
	case 31 ... 60:
		return 1 + below(w, 5 * MiB);
	default:
		return 1 + below(w, 40000);
	}
}

/* What one more may take: the rest stays for the machine that runs this. */
static const size_t most = 160 * MiB;

static void allocate(struct world *w)
{
	struct allocation *a = &w->places[below(w, PLACES)];
	size_t bytes = pick_size(w), pitch = 0;
	if (a->address != 0 || w->total + bytes > most)
		return;
	CUresult result;
	if (below(w, 8) == 0) {
		size_t width = 1 + below(w, 3000), height = 1 + bytes / 8192;
		result = cuMemAllocPitch_v2(&a->address, &pitch, width, height, 4);
		if (result == CUDA_SUCCESS)
			assert_true(pitch >= width && pitch % 256 == 0);
		bytes = pitch * height;
	} else {
		result = cuMemAlloc_v2(&a->address, bytes);
	}
	if (result == CUDA_ERROR_OUT_OF_MEMORY) {
		a->address = 0;
		return;
	}
	assert_cuda(result);
	assert_int_equal(a->address % 256, 0);
	for (const struct allocation *b = w->places; b < w->places + PLACES; b++)
		if (b != a && b->address != 0)
			assert_true(a->address + bytes <= b->address || b->address + b->bytes <= a->address);
	unsigned char value = (unsigned char)draw(w);
	a->bytes = bytes;
	a->copy = malloc(bytes);
	assert_non_null(a->copy);
	memset(a->copy, value, bytes);
	assert_cuda(cuMemsetD8_v2(a->address, value, bytes));
	w->total += bytes;
}

static void release(struct world *w, struct allocation *a)
{
	CUdeviceptr address = a->address;
	size_t offset, length = pick_part(w, a->bytes, &offset);
	read_back(w, a, offset, length);
	/* Neither the middle of it nor twice. */
	if (a->bytes > 1)
		assert_int_not_equal(cuMemFree_v2(address + 1 + below(w, a->bytes - 1)), CUDA_SUCCESS);
	assert_cuda(cuMemFree_v2(address));
	if (w->alone)
		assert_int_not_equal(cuMemFree_v2(address), CUDA_SUCCESS);
	w->total -= a->bytes;
	free(a->copy);
	*a = (struct allocation){0};
}

static void write_part(struct world *w, struct allocation *a)
{
	size_t offset, length = pick_part(w, a->bytes, &offset);
	for (size_t i = 0; i < length; i += 1 + length / 64)
		w->buffer[i] = (unsigned char)draw(w);
	assert_cuda(cuMemcpyHtoD_v2(a->address + offset, w->buffer, length));
	memcpy(a->copy + offset, w->buffer, length);
}

static void fill_part(struct world *w, struct allocation *a)
{
	size_t offset, length = pick_part(w, a->bytes, &offset);
	unsigned char value = (unsigned char)draw(w);
	assert_cuda(cuMemsetD8_v2(a->address + offset, value, length));
	memset(a->copy + offset, value, length);
}

static void copy_part(struct world *w, struct allocation *from, struct allocation *to)
{
	size_t offset, length = pick_part(w, from->bytes < to->bytes ? from->bytes : to->bytes, &offset);
	if (from == to)
		return;
	assert_cuda(cuMemcpyDtoD_v2(to->address + offset, from->address + offset, length));
	memcpy(to->copy + offset, from->copy + offset, length);
}

static void stir_part(struct allocation *a)
{
	uint64_t words = a->bytes / 4 < 4096 ? a->bytes / 4 : 4096;
	assert_cuda(launch_stir(NULL, a->address, words));
	stir_here((uint32_t *)(void *)a->copy, words);
}

static void ask(struct world *w, const struct allocation *a)
{
	CUdeviceptr inside = a->address + below(w, a->bytes), base = 0;
	size_t bytes = 0;
	CUcontext context = NULL;
	assert_cuda(cuMemGetAddressRange_v2(&base, &bytes, inside));
	assert_true(base == a->address && bytes == a->bytes);
	assert_cuda(cuPointerGetAttribute(&context, CU_POINTER_CONTEXT, inside));
	assert_ptr_equal(context, primary());
	base = 0;
	bytes = 0;
	assert_cuda(cuPointerGetAttributes(2, (int[]){CU_POINTER_RANGE_START, CU_POINTER_RANGE_SIZE}, (void *[]){&base, &bytes}, inside));
	assert_true(base == a->address && bytes == a->bytes);
}

static void step(struct world *w)
{
	struct allocation *a = some(w), *b = some(w);
	size_t what = below(w, 100);
	if (what < 30)
		allocate(w);
	else if (a == NULL)
		assert_int_not_equal(cuMemFree_v2(0x1000 + below(w, 1 << 20)), CUDA_SUCCESS);
	else if (what < 45)
		release(w, a);
	else if (what < 60)
		write_part(w, a);
	else if (what < 68)
		fill_part(w, a);
	else if (what < 75 && b != NULL)
		copy_part(w, a, b);
	else if (what < 80)
		stir_part(a);
	else if (what < 85)
		ask(w, a);
	else {
		size_t offset, length = pick_part(w, a->bytes, &offset);
		read_back(w, a, offset, length);
	}
}

static void release_all(struct world *w)
{
	for (struct allocation *a = w->places; a < w->places + PLACES; a++)
		if (a->address != 0) {
			read_all(w, a);
			release(w, a);
		}
}

/* ---- the books */

/* What must be held: large ones in whole units, and the units in which small ones lie. */
static uint64_t held(const struct world *w)
{
	uint64_t bytes = 0;
	for (const struct allocation *a = w->places; a < w->places + PLACES; a++) {
		bool counted = a->address != 0;
		if (counted && a->bytes > SLAB_MOST) {
			bytes += (a->bytes + UNIT - 1) / UNIT * UNIT;
			continue;
		}
		for (const struct allocation *b = w->places; counted && b < a; b++)
			counted = b->address == 0 || b->bytes > SLAB_MOST || b->address / UNIT != a->address / UNIT;
		bytes += counted ? UNIT : 0;
	}
	return bytes;
}

/* Contents on their way are counted on both sides for a moment. */
static void check_books(const struct world *w)
{
	uint64_t wanted = held(w);
	struct sw_share_gpu gpu;
	eventually(
		(gpu = look().gpus[0], gpu.charged_bytes + gpu.host_bytes == CONTEXT_BYTES + wanted && gpu.fixed_bytes == CONTEXT_BYTES));
	eventually(gpu_used() == look().gpus[0].charged_bytes);
}

static void suspend_and_resume(struct world *w)
{
	suspend();
	struct sw_share_gpu gpu = look().gpus[0];
	assert_int_equal(gpu.charged_bytes, CONTEXT_BYTES);
	assert_int_equal(gpu.host_bytes, held(w));
	assert_int_equal(gpu_used(), CONTEXT_BYTES);
	resume();
	const struct allocation *a = some(w);
	if (a != NULL && a->bytes < 8 * MiB)
		read_all(w, a);
}

/* One thing that a coordinator does to it. */
static void disturb(struct world *w)
{
	uint64_t bytes = below(w, 40) * UNIT, need = held(w);
	switch (below(w, 5)) {
	case 0:
	case 1:
		suspend_and_resume(w);
		break;
	case 2: /* as much as has a place elsewhere */
		host_budget(need + 300 * MiB);
		limit(CONTEXT_BYTES + bytes);
		assert_true(look().gpus[0].charged_bytes <= CONTEXT_BYTES + bytes);
		break;
	case 3:
		limit(SW_PAGE_NO_LIMIT);
		eventually(look().gpus[0].host_bytes == 0);
		break;
	case 4: /* no more room than there is use for: allocations fail, and nothing is lost */
		sw_share_page_host_budget(page(), look().gpus[0].host_bytes);
		limit(CONTEXT_BYTES + need);
		for (unsigned i = 0; i < 50; i++)
			step(w);
		host_budget(1024 * MiB);
		break;
	}
	check_books(w);
}

static uint64_t first_seed(void)
{
	const char *text = getenv("SW_SEED");
	return text != NULL ? strtoull(text, NULL, 10) : 0;
}

static unsigned operations(void)
{
	const char *text = getenv("SW_OPERATIONS");
	return text != NULL ? (unsigned)strtoul(text, NULL, 10) : 50000;
}

static struct world *new_world(uint64_t seed)
{
	struct world *w = calloc(1, sizeof *w);
	assert_non_null(w);
	w->seed = seed;
	w->random = seed * 0x9e3779b97f4a7c15ULL + 88172645463325252ULL;
	return w;
}

static void live_with_model(int socket)
{
	struct world *w = new_world(first_seed() != 0 ? first_seed() : 1);
	(void)socket;
	w->alone = true;
	open_driver();
	print_message("seed %" PRIu64 "\n", w->seed);
	for (unsigned i = 0, count = operations(); i < count; i++) {
		step(w);
		if (below(w, 700) == 0)
			disturb(w);
	}
	limit(SW_PAGE_NO_LIMIT);
	release_all(w);
	check_books(w);
	assert_int_equal(look().gpus[0].charged_bytes, CONTEXT_BYTES);
	free(w);
}

/* Random calls in one thread, with a coordinator between them, leave contents and books
 * as the model has them. */
static void test_one_thread_against_the_model(void **state)
{
	(void)state;
	run_job(live_with_model);
}

/* ---- several threads, and a coordinator that asks none */

static _Atomic bool over;
static _Atomic unsigned steps;

/* Until the workers have done some more, so that they come to anything. */
static void let_them_work(void)
{
	for (unsigned begun = atomic_load(&steps); atomic_load(&steps) - begun < 500 && !atomic_load(&over);)
		doze();
}

static void *coordinate(void *seed)
{
	struct world *w = new_world((uint64_t)(uintptr_t)seed);
	while (!atomic_load(&over)) {
		switch (below(w, 4)) {
		case 0:
		case 1:
			suspend();
			resume();
			break;
		case 2:
			limit(CONTEXT_BYTES + below(w, 30) * UNIT);
			break;
		default:
			limit(SW_PAGE_NO_LIMIT);
		}
		let_them_work();
	}
	limit(SW_PAGE_NO_LIMIT);
	free(w);
	return NULL;
}

struct worker {
	pthread_t thread;
	struct world *world;
	unsigned count;
};

static void *work(void *argument)
{
	struct worker *worker = argument;
	assert_cuda(cuCtxSetCurrent(primary()));
	for (unsigned i = 0; i < worker->count; i++) {
		step(worker->world);
		atomic_fetch_add(&steps, 1);
	}
	release_all(worker->world);
	return NULL;
}

static void live_in_threads(int socket)
{
	enum { WORKERS = 2 };
	struct worker workers[WORKERS];
	pthread_t coordinator;
	(void)socket;
	open_driver();
	uint64_t seed = first_seed() != 0 ? first_seed() : 7;
	print_message("seed %" PRIu64 "\n", seed);
	for (unsigned i = 0; i < WORKERS; i++) {
		workers[i] = (struct worker){.world = new_world(seed + i), .count = operations() / WORKERS};
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
	assert_int_equal(pthread_create(&coordinator, NULL, coordinate, (void *)(uintptr_t)(seed + WORKERS)), 0);
	for (unsigned i = 0; i < WORKERS; i++)
		pthread_join(workers[i].thread, NULL);
	atomic_store(&over, true);
	pthread_join(coordinator, NULL);
	struct world *nothing = new_world(seed);
	check_books(nothing);
	for (unsigned i = 0; i < WORKERS; i++)
		free(workers[i].world);
	free(nothing);
}

/* Several threads that allocate, write and free while a coordinator suspends and limits them at any
 * moment find what they wrote. */
static void test_threads_against_the_model(void **state)
{
	(void)state;
	run_job(live_in_threads);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_one_thread_against_the_model, machine_up, machine_down),
		cmocka_unit_test_setup_teardown(test_threads_against_the_model, machine_up, machine_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
