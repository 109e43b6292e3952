/* The profile of a process: exact counts, times of the GPU's own clock, and nothing
 * of it before and after. */
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/job.h"
#include "share/profile.h"

enum { SPINS = 7, STIRS = 3, SPIN_NS = 3000000, LEAST_NS = 2990000 /* times come as fractions */ };

static const struct sw_share_function *find(const struct sw_share_profile *profile, const char *name)
{
	for (size_t i = 0; i < profile->function_count; i++)
		if (strcmp(profile->functions[i].name, name) == 0)
			return &profile->functions[i];
	return NULL;
}

static void want(bool on)
{
	assert_true(sw_share_page_wait(page(), sw_share_profile_want(page(), on), PATIENCE));
}

/* Does the same each time that it is told to. */
static void work(int socket)
{
	static char host[3 * MiB];
	CUdeviceptr x = 0;
	open_driver();
	assert_cuda(cuMemAlloc_v2(&x, 4 * MiB));
	tell(socket, 'r');
	for (;;) {
		hear(socket, 'g');
		for (int i = 0; i < SPINS; i++)
			assert_cuda(launch_spin(NULL, SPIN_NS));
		for (int i = 0; i < STIRS; i++)
			assert_cuda(launch_stir(NULL, x, 1000));
		assert_cuda(cuMemcpyHtoD_v2(x, host, 3 * MiB));
		assert_cuda(cuMemcpyDtoH_v2(host, x, 2 * MiB));
		assert_cuda(cuMemcpyDtoH_v2(host, x, 1));
		assert_cuda(cuMemcpyDtoD_v2(x, x + 2 * MiB, MiB));
		assert_cuda(cuCtxSynchronize());
		tell(socket, 'd');
	}
}

static void once(const struct job *job)
{
	tell(job->socket, 'g');
	hear(job->socket, 'd');
}

/* What was done while it measured is counted to the last launch and byte, and takes at least as
 * long as the GPU works; what was before and after is not. */
static void test_counts(void **state)
{
	(void)state;
	static struct sw_share_profile profiles[4];
	struct job job = start(work);
	hear(job.socket, 'r');
	once(&job);
	assert_int_equal(sw_share_profile_take(page_path(), profiles, 4), 0);
	for (int rounds = 1; rounds <= 2; rounds++) {
		want(true);
		for (int i = 0; i < rounds; i++)
			once(&job);
		want(false);
		once(&job);
		assert_int_equal(sw_share_profile_take(page_path(), profiles, 4), 1);
		const struct sw_share_profile *profile = &profiles[0];
		const struct sw_share_function *spin = find(profile, "spin"), *stir = find(profile, "stir");
		assert_non_null(spin);
		assert_non_null(stir);
		assert_int_equal(profile->pid, job.pid);
		assert_int_equal(profile->launches, (SPINS + STIRS) * rounds);
		assert_int_equal(profile->timed, profile->launches);
		assert_int_equal(spin->launches, SPINS * rounds);
		assert_int_equal(stir->launches, STIRS * rounds);
		assert_true(spin->ns >= (int64_t)SPINS * rounds * LEAST_NS);
		assert_true(profile->busy_ns >= spin->ns && profile->window_ns >= spin->ns);
		/* By time; on a busy machine either may have taken longer. */
		assert_true(spin < stir ? spin->ns >= stir->ns : stir->ns >= spin->ns);
		assert_int_equal(profile->copied[SW_COPIED_TO_GPU].bytes, 3 * MiB * rounds);
		assert_int_equal(profile->copied[SW_COPIED_FROM_GPU].bytes, (2 * MiB + 1) * rounds);
		assert_int_equal(profile->copied[SW_COPIED_FROM_GPU].copies, 2 * rounds);
		assert_int_equal(profile->copied[SW_COPIED_WITHIN].bytes, MiB * rounds);
		assert_int_equal(profile->copied[SW_COPIED_UNKNOWN].bytes, 0);
		/* Once read they are gone. */
		assert_int_equal(sw_share_profile_take(page_path(), profiles, 4), 0);
	}
	kill_job(&job);
}

/* What asks for the driver's functions while it measures still gets ours. (With the thread
 * sanitizer nothing is preloaded.) */
static void find_functions(void)
{
#ifndef __SANITIZE_THREAD__
	void *library = dlopen("libcuda.so.1", RTLD_NOW), *found = dlsym(library, "cuLaunchKernel"), *by_name = NULL;
	CUresult (*own)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **, void **) =
		cuLaunchKernel;
	assert_memory_equal(&found, &own, sizeof found);
	assert_cuda(cuGetProcAddress("cuLaunchKernel", &by_name, 12000, 0));
	assert_ptr_equal(by_name, found);
#endif
}

static void capture(int socket)
{
	CUstream stream = NULL;
	CUgraph graph = NULL;
	CUgraphExec exec = NULL;
	open_driver();
	assert_cuda(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	tell(socket, 'r');
	hear(socket, 'g');
	find_functions();
	assert_cuda(cuStreamBeginCapture_v2(stream, 0));
	assert_cuda(launch_spin(stream, SPIN_NS));
	assert_cuda(launch_spin(stream, SPIN_NS));
	assert_cuda(cuStreamEndCapture(stream, &graph));
	assert_cuda(cuGraphInstantiateWithFlags(&exec, graph, 0));
	assert_cuda(cuGraphLaunch(exec, stream));
	assert_cuda(cuGraphLaunch(exec, stream));
	assert_cuda(cuStreamSynchronize(stream));
	tell(socket, 'd');
	hear(socket, 'e');
}

/* A capture is not disturbed by being measured, and is no work; its graph is. */
static void test_captures(void **state)
{
	(void)state;
	static struct sw_share_profile profiles[4];
	struct job job = start(capture);
	hear(job.socket, 'r');
	want(true);
	once(&job);
	want(false);
	assert_int_equal(sw_share_profile_take(page_path(), profiles, 4), 1);
	assert_null(find(&profiles[0], "spin"));
	const struct sw_share_function *graph = find(&profiles[0], "(graph)");
	assert_non_null(graph);
	assert_int_equal(graph->launches, 2);
	assert_true(graph->ns >= 4 * (int64_t)LEAST_NS);
	tell(job.socket, 'e');
	end(&job);
}

/* It is suspended, resumed and ends while it is measured. */
static void test_suspended(void **state)
{
	(void)state;
	static struct sw_share_profile profiles[4];
	struct job job = start(work);
	hear(job.socket, 'r');
	want(true);
	once(&job);
	suspend();
	resume();
	once(&job);
	want(false);
	assert_int_equal(sw_share_profile_take(page_path(), profiles, 4), 1);
	assert_int_equal(profiles[0].launches, 2 * (SPINS + STIRS));
	want(true);
	once(&job);
	kill_job(&job);
	want(false);
}

static void launch_kernel(int socket)
{
	CUlibrary library = NULL;
	CUkernel kernel = NULL;
	open_driver();
	assert_cuda(cuLibraryLoadData(&library, "sharewell-emu 1\nkernel turn op=spin\n", NULL, NULL, 0, NULL, NULL, 0));
	assert_cuda(cuLibraryGetKernel(&kernel, library, "turn"));
	tell(socket, 'r');
	hear(socket, 'g');
	uint64_t ns = 1000;
	assert_cuda(cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 32, 1, 1, 0, NULL, (void *[]){&ns}, NULL));
	assert_cuda(cuCtxSynchronize());
	tell(socket, 'd');
	hear(socket, 'e');
}

/* A kernel of a library is asked for its name by the call for kernels: one that asks as of a
 * function loses its GPU here. */
static void test_kernels_of_libraries(void **state)
{
	(void)state;
	static struct sw_share_profile profiles[4];
	machine_setting("fault=cuFuncGetName:lose");
	struct job job = start(launch_kernel);
	hear(job.socket, 'r');
	want(true);
	once(&job);
	want(false);
	assert_int_equal(sw_share_profile_take(page_path(), profiles, 4), 1);
	assert_non_null(find(&profiles[0], "turn"));
	tell(job.socket, 'e');
	end(&job);
}

/* ---- a free that waits */

static int hold[2]; /* the GPU works until this is written */
static CUdeviceptr freed;
static _Atomic long freer;

static void work_until_told(void *unused)
{
	char word;
	(void)unused;
	(void)!read(hold[0], &word, 1);
}

static void *free_it(void *result)
{
	assert_cuda(cuCtxSetCurrent(primary()));
	atomic_store(&freer, syscall(SYS_gettid));
	*(CUresult *)result = cuMemFree_v2(freed);
	return NULL;
}

/* For a while, whenever one looks: it waits for something that does not come by itself. */
static bool sleeps(long thread)
{
	char path[64], state = 'S';
	snprintf(path, sizeof path, "/proc/self/task/%ld/stat", thread);
	for (unsigned i = 0; i < 20 && state == 'S'; i++) {
		FILE *file = fopen(path, "re");
		assert_non_null(file);
		assert_int_equal(fscanf(file, "%*d %*s %c", &state), 1);
		fclose(file);
		doze();
	}
	return state == 'S';
}

static void free_and_launch(int socket)
{
	CUstream busy = NULL, other = NULL;
	CUdeviceptr x = 0;
	CUresult result = -1;
	pthread_t thread;
	open_driver();
	assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
	assert_cuda(cuStreamCreate(&busy, CU_STREAM_NON_BLOCKING));
	assert_cuda(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	assert_cuda(cuMemAlloc_v2(&x, 4 * MiB));
	assert_cuda(cuMemAlloc_v2(&freed, 4 * MiB));
	assert_cuda(cuLaunchHostFunc(busy, work_until_told, NULL));
	assert_int_equal(pthread_create(&thread, NULL, free_it, &result), 0);
	eventually(atomic_load(&freer) != 0);
	eventually(sleeps(atomic_load(&freer)));
	tell(socket, 'r');
	for (struct pollfd told = {.fd = socket, .events = POLLIN}; poll(&told, 1, 0) == 0; doze())
		assert_cuda(launch_stir(other, x, 64));
	hear(socket, 'g');
	assert_int_equal(result, -1);
	assert_int_equal(write(hold[1], "x", 1), 1);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_cuda(result);
	tell(socket, 'd');
}

/* The memory's context is busy, and the one that is current when it is freed is another. */
static void free_of_another_context(int socket)
{
	CUstream busy = NULL;
	CUcontext own = NULL;
	CUresult result = -1;
	pthread_t thread;
	(void)socket;
	open_driver();
	assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
	assert_cuda(cuCtxCreate_v2(&own, 0, 0));
	assert_cuda(cuStreamCreate(&busy, CU_STREAM_NON_BLOCKING));
	assert_cuda(cuMemAlloc_v2(&freed, 4 * MiB));
	assert_cuda(cuLaunchHostFunc(busy, work_until_told, NULL));
	assert_int_equal(pthread_create(&thread, NULL, free_it, &result), 0);
	eventually(atomic_load(&freer) != 0);
	eventually(sleeps(atomic_load(&freer)));
	assert_int_equal(result, -1);
	assert_int_equal(write(hold[1], "x", 1), 1);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_cuda(result);
	assert_cuda(cuStreamSynchronize(busy));
}

/* What is freed is waited for where it is, and not only where the thread is. */
static void test_a_free_waits_for_its_context(void **state)
{
	(void)state;
	run_job(free_of_another_context);
}

static bool is_measured(void)
{
	static struct sw_share_profile profiles[4];
	return sw_share_profile_take(page_path(), profiles, 4) == 1 && profiles[0].launches > 0;
}

/* A thread that frees, and waits for the GPU, does not keep the gate from closing: what needs that
 * is done meanwhile, and other threads go on. */
static void test_a_free_waits_outside(void **state)
{
	(void)state;
	struct job job = start(free_and_launch);
	hear(job.socket, 'r');
	want(true);
	eventually(is_measured());
	once(&job);
	want(false);
	end(&job);
}

/* Whatever stands in such a file, what comes out can be shown. */
static void test_any_figures(void **state)
{
	(void)state;
	static struct sw_share_profile profiles[1];
	FILE *file = fopen(beside(".page.profile.7"), "w");
	assert_non_null(file);
	fputs("sharewell-profile 1\nwindow_ns 1\niteration_ns 99999999999999999999999999\ncopied_within 1 18446744073709551615\n", file);
	for (int i = 0; i < 100; i++)
		fputs("function 99999999999999999999 1 18446744073709551615 x\n", file);
	fputs("function\nfunction 1 9 -1\n\n \nfunction x y z\n", file);
	fclose(file);
	assert_int_equal(sw_share_profile_take(page_path(), profiles, 1), 1);
	const struct sw_share_profile *profile = &profiles[0];
	assert_int_equal(profile->function_count, SW_PROFILE_FUNCTIONS);
	assert_true(profile->busy_ns > 0 && profile->window_ns == 1);
	assert_true(sw_share_function_ns(&profile->functions[0]) > 0);
	assert_true(sw_share_profile_per_iteration(profile, (uint64_t)profile->busy_ns) > 0);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, machine_up, machine_down)

int main(void)
{
	const struct CMUnitTest tests[] = {CASE(test_counts),
					   CASE(test_captures),
					   CASE(test_suspended),
					   CASE(test_kernels_of_libraries),
					   CASE(test_a_free_waits_outside),
					   CASE(test_a_free_waits_for_its_context),
					   CASE(test_any_figures)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
