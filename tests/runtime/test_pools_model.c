/* Memory in stream order against a model: random calls over several streams, in one thread and in
 * several, while a coordinator suspends and limits.
 *
 * SW_SEED=n repeats one run; the seed of a failure is printed.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "runtime/pool_job.h"

/* ---- at random, against a model */

enum { PLACES = 64, STREAMS = 3 };

struct allocation {
	CUdeviceptr address;
	size_t bytes;
	unsigned char value; /* of all its bytes */
	CUstream stream;     /* in whose order it is filled */
	bool plain;
};

struct world {
	uint64_t seed, random;
	CUstream streams[STREAMS];
	CUevent event;
	struct allocation places[PLACES];
	size_t total, plain_total, used;
	unsigned char scratch[1 << 16];
};

static size_t below(struct world *w, size_t end)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return (size_t)((w->random * 0x2545f4914f6cdd1dULL >> 11) % end);
}

static struct world *new_world(uint64_t seed)
{
	struct world *w = calloc(1, sizeof *w);
	assert_non_null(w);
	w->seed = seed;
	w->random = seed * 0x9e3779b97f4a7c15ULL + 88172645463325252ULL;
	for (unsigned i = 0; i < STREAMS; i++)
		assert_cuda(cuStreamCreate(&w->streams[i], CU_STREAM_NON_BLOCKING));
	assert_cuda(cuEventCreate(&w->event, CU_EVENT_DISABLE_TIMING));
	return w;
}

/* Often behind others, so that what is freed is not over. */
static void fill(struct world *w, struct allocation *x, unsigned char value)
{
	if (below(w, 4) == 0)
		assert_cuda(launch_spin(x->stream, 1000 + below(w, 300000)));
	assert_cuda(cuMemsetD8Async(x->address, value, x->bytes, x->stream));
	x->value = value;
}

static size_t pick_size(struct world *w)
{
	switch (below(w, 64)) {
	case 0:
		return 20 * MiB + below(w, 60 * MiB);
	case 1 ... 8:
		return 1 + below(w, 5 * MiB);
	default:
		return 1 + below(w, 40000);
	}
}

static void allocate(struct world *w, struct allocation *x)
{
	bool plain = below(w, 16) == 0;
	size_t bytes = plain ? (1 + below(w, 4)) * UNIT : pick_size(w);
	if (x->address != 0 || w->total + bytes > 120 * MiB)
		return;
	*x = (struct allocation){.bytes = bytes, .stream = w->streams[below(w, STREAMS)], .plain = plain};
	CUresult result = plain ? cuMemAlloc_v2(&x->address, bytes) : cuMemAllocAsync(&x->address, bytes, x->stream);
	if (result == CUDA_ERROR_OUT_OF_MEMORY) {
		x->address = 0;
		return;
	}
	assert_cuda(result);
	assert_int_equal(x->address % 256, 0);
	for (const struct allocation *y = w->places; y < w->places + PLACES; y++)
		if (y != x && y->address != 0)
			assert_true(x->address + x->bytes <= y->address || y->address + y->bytes <= x->address);
	w->total += bytes;
	w->plain_total += plain ? bytes : 0;
	w->used += plain ? 0 : (bytes + 511) / 512 * 512;
	fill(w, x, (unsigned char)below(w, 256));
}

static void check(struct world *w, const struct allocation *x)
{
	size_t length = 1 + below(w, x->bytes < sizeof w->scratch ? x->bytes : sizeof w->scratch), offset = below(w, x->bytes - length + 1);
	assert_cuda(cuStreamSynchronize(x->stream));
	assert_cuda(cuMemcpyDtoH_v2(w->scratch, x->address + offset, length));
	for (size_t i = 0; i < length; i++)
		if (w->scratch[i] != x->value)
			fail_msg("byte %zu of %zu is %d, not %d (SW_SEED=%" PRIu64 ")", offset + i, x->bytes, w->scratch[i], x->value,
				 w->seed);
}

/* What is still on its way into it when it is freed must not come to any other. */
static void release(struct world *w, struct allocation *x)
{
	check(w, x);
	fill(w, x, 0xEE);
	if (below(w, 20) == 0)
		assert_cuda(cuMemFree_v2(x->address));
	else
		assert_cuda(cuMemFreeAsync(x->address, x->stream));
	w->total -= x->bytes;
	w->plain_total -= x->plain ? x->bytes : 0;
	w->used -= x->plain ? 0 : (x->bytes + 511) / 512 * 512;
	*x = (struct allocation){0};
}

/* Another stream has it from now on. */
static void hand_over(struct world *w, struct allocation *x)
{
	CUstream next = w->streams[below(w, STREAMS)];
	assert_cuda(cuEventRecord(w->event, x->stream));
	assert_cuda(cuStreamWaitEvent(next, w->event, 0));
	x->stream = next;
}

static void step(struct world *w)
{
	struct allocation *x = &w->places[below(w, PLACES)];
	size_t what = below(w, 1000);
	if (what < 3)
		assert_cuda(cuCtxSynchronize());
	else if (what < 6)
		assert_cuda(cuMemPoolTrimTo(standard, below(w, 100 * MiB)));
	else if (what < 9)
		set_threshold(standard, below(w, 2) == 0 ? 0 : UINT64_MAX);
	else if (x->address == 0)
		allocate(w, x);
	else if (what < 400)
		release(w, x);
	else if (what < 600)
		fill(w, x, (unsigned char)below(w, 256));
	else if (what < 800)
		hand_over(w, x);
	else
		check(w, x);
}

static void release_all(struct world *w)
{
	for (struct allocation *x = w->places; x < w->places + PLACES; x++)
		if (x->address != 0)
			release(w, x);
	for (unsigned i = 0; i < STREAMS; i++)
		assert_cuda(cuStreamDestroy_v2(w->streams[i]));
	assert_cuda(cuEventDestroy_v2(w->event));
}

static void check_books(const struct world *w)
{
	struct sw_share_gpu gpu;
	assert_int_equal(figure(standard, CU_MEMPOOL_USED_CURRENT), w->used);
	eventually((gpu = look().gpus[0],
		    gpu.charged_bytes + gpu.host_bytes == CONTEXT_BYTES + w->plain_total + figure(standard, CU_MEMPOOL_RESERVED_CURRENT) &&
			    gpu.fixed_bytes == CONTEXT_BYTES));
	eventually(gpu_used() == look().gpus[0].charged_bytes);
}

static void disturb(struct world *w)
{
	switch (below(w, 4)) {
	case 0:
		suspend();
		assert_int_equal(gpu_used(), CONTEXT_BYTES);
		resume();
		break;
	case 1:
		limit(CONTEXT_BYTES + below(w, 40) * UNIT);
		break;
	case 2:
		limit(SW_PAGE_NO_LIMIT);
		eventually(look().gpus[0].host_bytes == 0);
		break;
	default:
		sw_share_page_host_budget(page(), look().gpus[0].host_bytes);
		limit(look().gpus[0].charged_bytes + look().gpus[0].host_bytes);
		for (unsigned i = 0; i < 50; i++)
			step(w);
		host_budget(1024 * MiB);
	}
	check_books(w);
}

static uint64_t first_seed(void)
{
	const char *text = getenv("SW_SEED");
	return text != NULL ? strtoull(text, NULL, 10) : 1;
}

/* Each waits for a stream more often than not: fewer than in other tests do. */
static unsigned operations(void)
{
	const char *text = getenv("SW_OPERATIONS");
	return (text != NULL ? (unsigned)strtoul(text, NULL, 10) : 32000) / 8;
}

static void live_with_model(int socket)
{
	(void)socket;
	open_streams();
	struct world *w = new_world(first_seed());
	print_message("seed %" PRIu64 "\n", w->seed);
	for (unsigned i = 0, count = operations(); i < count; i++) {
		step(w);
		if (below(w, 200) == 0)
			disturb(w);
	}
	limit(SW_PAGE_NO_LIMIT);
	release_all(w);
	set_threshold(standard, 0);
	assert_cuda(cuCtxSynchronize());
	check_books(w);
	assert_int_equal(look().gpus[0].charged_bytes, CONTEXT_BYTES);
	free(w);
}

/* Random calls over several streams, with a coordinator between them, leave contents and books
 * as the model has them. */
static void test_one_thread_against_the_model(void **state)
{
	(void)state;
	run_job(live_with_model);
}

/* ---- several threads, and a coordinator that asks none */

static _Atomic bool over;
static _Atomic unsigned steps;

static void *coordinate(void *unused)
{
	for (unsigned turn = 0; !atomic_load(&over); turn++) {
		if (turn % 3 == 0) {
			suspend();
			resume();
		} else {
			limit(turn % 3 == 1 ? CONTEXT_BYTES + (turn * 7 % 40) * UNIT : SW_PAGE_NO_LIMIT);
		}
		for (unsigned begun = atomic_load(&steps); atomic_load(&steps) - begun < 200 && !atomic_load(&over);)
			doze();
	}
	limit(SW_PAGE_NO_LIMIT);
	return unused;
}

static void *work(void *world)
{
	assert_cuda(cuCtxSetCurrent(primary()));
	for (unsigned i = 0; i < operations() / 2; i++) {
		step(world);
		atomic_fetch_add(&steps, 1);
	}
	release_all(world);
	return world;
}

static void live_in_threads(int socket)
{
	struct world *worlds[2];
	pthread_t workers[2], coordinator;
	(void)socket;
	open_streams();
	print_message("seed %" PRIu64 "\n", first_seed());
	for (unsigned i = 0; i < 2; i++) {
		worlds[i] = new_world(first_seed() + 10 + i);
		assert_int_equal(pthread_create(&workers[i], NULL, work, worlds[i]), 0);
	}
	assert_int_equal(pthread_create(&coordinator, NULL, coordinate, NULL), 0);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(workers[i], NULL);
	atomic_store(&over, true);
	pthread_join(coordinator, NULL);
	set_threshold(standard, 0);
	assert_cuda(cuCtxSynchronize());
	check_books(worlds[0]);
	assert_int_equal(look().gpus[0].charged_bytes, CONTEXT_BYTES);
	for (unsigned i = 0; i < 2; i++)
		free(worlds[i]);
}

/* Several threads with streams of their own and one pool, which a coordinator suspends and limits
 * at any moment, find what they wrote. */
static void test_threads_against_the_model(void **state)
{
	(void)state;
	run_job(live_in_threads);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		POOL_CASE(test_one_thread_against_the_model),
		POOL_CASE(test_threads_against_the_model),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
