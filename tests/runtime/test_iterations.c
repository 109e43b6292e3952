/* Iterations of programs that repeat themselves are found without their help, with what they launch
 * and hold in each; of others nothing is said. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/job.h"

#define STEP_NS 100000

/* The slot of the one process that there is; NULL: not yet. */
static const struct sw_page_slot *slot(void)
{
	static const struct sw_page *mapped;
	static char of[160];
	if (strcmp(of, page_path()) != 0) {
		strcpy(of, page_path());
		mapped = raw_page(of);
	}
	for (unsigned i = 0; i < SW_PAGE_SLOTS; i++)
		if (atomic_load(&mapped->slots[i].pid) != 0)
			return &mapped->slots[i];
	return NULL;
}

static uint64_t launches_found(void)
{
	const struct sw_page_slot *own = slot();
	return own == NULL ? 0 : atomic_load(&own->iteration_launches);
}

static int64_t time_found(void)
{
	const struct sw_page_slot *own = slot();
	return own == NULL ? 0 : atomic_load(&own->iteration_ns);
}

/* ---- programs: each runs until its parent says that it has seen enough */

static _Atomic bool over;

static void *hear_the_end(void *socket)
{
	hear(*(int *)socket, 'e');
	atomic_store(&over, true);
	return NULL;
}

static void await_end(int *socket)
{
	pthread_t thread;
	open_driver();
	assert_int_equal(pthread_create(&thread, NULL, hear_the_end, socket), 0);
	pthread_detach(thread);
}

static void launch_some(unsigned first, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		assert_cuda(launch_spin_on(NULL, STEP_NS, first + i));
}

static void end_of_step(void)
{
	static uint32_t words[64];
	static CUdeviceptr x;
	if (x == 0)
		assert_cuda(cuMemAlloc_v2(&x, 4 * MiB));
	assert_cuda(cuMemcpyHtoD_v2(x, words, sizeof words));
	assert_cuda(cuCtxSynchronize());
}

static unsigned draw(unsigned end)
{
	static uint64_t state = 88172645463325252ULL;
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned)((state * 0x2545f4914f6cdd1dULL >> 33) % end);
}

static void loop(int socket)
{
	await_end(&socket);
	launch_some(500, 40);
	while (!atomic_load(&over)) {
		launch_some(1, 7);
		end_of_step();
	}
}

static void accumulate(int socket)
{
	await_end(&socket);
	while (!atomic_load(&over)) {
		for (unsigned i = 0; i < 4; i++) {
			launch_some(1, 5);
			end_of_step();
		}
		launch_some(100, 3);
	}
}

static void replay(int socket)
{
	CUstream stream = NULL;
	CUgraph made = NULL;
	CUgraphExec graph = NULL;
	await_end(&socket);
	assert_cuda(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	assert_cuda(cuStreamBeginCapture_v2(stream, CU_CAPTURE_MODE_THREAD_LOCAL));
	for (unsigned i = 0; i < 5; i++)
		assert_cuda(launch_spin_on(stream, STEP_NS, 1 + i));
	assert_cuda(cuStreamEndCapture(stream, &made));
	assert_cuda(cuGraphInstantiateWithFlags(&graph, made, 0));
	while (!atomic_load(&over)) {
		end_of_step();
		assert_cuda(cuGraphLaunch(graph, stream));
		assert_cuda(cuStreamSynchronize(stream));
	}
}

static void live_in_epochs(int socket)
{
	await_end(&socket);
	for (unsigned step = 0; !atomic_load(&over); step++) {
		if (step % 25 == 0)
			for (unsigned i = 0, count = 1 + draw(9); i < count; i++)
				launch_some(1000 + draw(500), 1);
		launch_some(1, 6);
		end_of_step();
	}
}

static void wander(int socket)
{
	await_end(&socket);
	while (!atomic_load(&over)) {
		launch_some(1 + draw(4), 1 + draw(6));
		end_of_step();
	}
}

static void change(int socket)
{
	open_driver();
	for (unsigned i = 0; i < 2; i++) {
		hear(socket, 'g');
		/* Until the parent has seen it, or for ever. */
		while (launches_found() != 5 + i * 4) {
			launch_some(1 + i * 100, 5 + i * 4);
			end_of_step();
		}
		tell(socket, 'd');
	}
}

static void allocate_in_turns(int socket)
{
	CUdeviceptr x = 0;
	await_end(&socket);
	while (!atomic_load(&over)) {
		launch_some(1, 4);
		assert_cuda(cuMemAlloc_v2(&x, 24 * MiB));
		launch_some(50, 4);
		end_of_step();
		assert_cuda(cuMemFree_v2(x));
	}
}

/* Holds most of its memory for most of the time. */
static void breathe(int socket)
{
	CUdeviceptr x = 0;
	await_end(&socket);
	end_of_step();
	while (!atomic_load(&over)) {
		assert_cuda(cuMemAlloc_v2(&x, 24 * MiB));
		for (unsigned i = 0; i < 6; i++)
			assert_cuda(launch_spin_on(NULL, 8000000, 1 + i));
		assert_cuda(cuCtxSynchronize());
		assert_cuda(cuMemFree_v2(x));
		assert_cuda(launch_spin_on(NULL, 12000000, 20));
		assert_cuda(cuCtxSynchronize());
	}
}

/* Threads that take turns, as those that compute gradients and those that use them do. */
static _Atomic unsigned turn;

static void *compute_gradients(void *unused)
{
	(void)unused;
	assert_cuda(cuCtxSetCurrent(primary()));
	while (!atomic_load(&over)) {
		if (atomic_load(&turn) % 2 == 0)
			continue;
		launch_some(1, 4);
		end_of_step();
		atomic_fetch_add(&turn, 1);
	}
	return NULL;
}

static void train_in_threads(int socket)
{
	pthread_t thread;
	await_end(&socket);
	assert_int_equal(pthread_create(&thread, NULL, compute_gradients, NULL), 0);
	while (!atomic_load(&over)) {
		for (unsigned i = 0; i < 3 && !atomic_load(&over); i++) {
			launch_some(100, 2);
			atomic_fetch_add(&turn, 1);
			while (atomic_load(&turn) % 2 == 1 && !atomic_load(&over))
				sched_yield();
		}
		launch_some(200, 5);
	}
	pthread_join(thread, NULL);
}

/* ---- what is found of them */

static void expect(void (*run)(int socket), uint64_t launches, int64_t least_ns)
{
	struct job job = start(run);
	eventually(launches_found() == launches);
	eventually(time_found() >= least_ns);
	uint64_t before = look().iterations;
	eventually(look().iterations > before + 10);
	eventually(launches_found() == launches);
	tell(job.socket, 'e');
	end(&job);
}

/* A plain loop. */
static void test_loop(void **state)
{
	(void)state;
	expect(loop, 7, 7 * STEP_NS);
}

/* Gradients that are accumulated over several turns before they are used: the
 * whole is one iteration. */
static void test_accumulation(void **state)
{
	(void)state;
	expect(accumulate, 4 * 5 + 3, (4 * 5 + 3) * STEP_NS);
}

/* One graph for each iteration. */
static void test_graph(void **state)
{
	(void)state;
	expect(replay, 1, 5 * STEP_NS);
}

/* A program that does something else, and not always the same, after each epoch. */
static void test_epochs(void **state)
{
	(void)state;
	expect(live_in_epochs, 6, 6 * STEP_NS);
}

/* Two threads: the iteration is that of the one which takes part in it least often. */
static void test_threads(void **state)
{
	(void)state;
	expect(train_in_threads, 3 * (2 + 4) + 5, (3 * 6 + 5) * STEP_NS);
}

/* A program that does not repeat itself has none, however often it is looked at. */
static void test_none(void **state)
{
	(void)state;
	struct job job = start(wander);
	uint64_t before = 0;
	for (unsigned i = 0; i < 8; i++) {
		eventually(look().launches > before + 100);
		before = look().launches;
		host_budget(1024 * MiB);
		assert_int_equal(look().iterations, 0);
		assert_int_equal(time_found(), 0);
	}
	tell(job.socket, 'e');
	end(&job);
}

/* When the program goes on to another loop, that one is found. */
static void test_another_loop(void **state)
{
	(void)state;
	struct job job = start(change);
	for (unsigned i = 0; i < 2; i++) {
		tell(job.socket, 'g');
		hear(job.socket, 'd');
	}
	end(&job);
}

/* What the program holds at most and at least within an iteration. */
static void test_memory(void **state)
{
	(void)state;
	struct job job = start(allocate_in_turns);
	eventually(launches_found() == 8);
	const struct sw_page_slot *own = slot();
	assert_non_null(own);
	eventually(atomic_load(&own->iteration_peak_bytes) == atomic_load(&own->iteration_floor_bytes) + 24 * MiB);
	assert_true(atomic_load(&own->iteration_floor_bytes) >= 4 * MiB);
	tell(job.socket, 'e');
	end(&job);
}

/* A suspension that is not urgent comes when the program holds least: at any moment it would nearly
 * always find it with much. */
static void test_suspended_when_it_holds_least(void **state)
{
	enum { ROUNDS = 8 };
	(void)state;
	struct job job = start(breathe);
	eventually(launches_found() == 7);
	const struct sw_page_slot *own = slot();
	assert_non_null(own);
	eventually(atomic_load(&own->iteration_peak_bytes) == atomic_load(&own->iteration_floor_bytes) + 24 * MiB);
	unsigned least = 0;
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t before = look().iterations;
		eventually(look().iterations > before);
		suspend();
		least += look().gpus[0].host_bytes < 24 * MiB;
		resume();
	}
	assert_true(least >= ROUNDS / 2);
	tell(job.socket, 'e');
	end(&job);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, machine_up, machine_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_loop),	 CASE(test_accumulation), CASE(test_graph),
		CASE(test_epochs),	 CASE(test_threads),	  CASE(test_none),
		CASE(test_another_loop), CASE(test_memory),	  CASE(test_suspended_when_it_holds_least),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
