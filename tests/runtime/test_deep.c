/* Jobs that the driver takes off their GPUs after the runtime has moved their memory out, and that
 * come back: what is free meanwhile, and what happens in between. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/job.h"
#include "share/deep.h"

enum { WORDS = 4 << 20 };

/* Changes its memory once before and once after, and knows what must come out. */
static void hold_contents(int socket)
{
	CUdeviceptr x = 0;
	uint32_t *here = calloc(WORDS, sizeof *here), *there = calloc(WORDS, sizeof *there);
	open_driver();
	assert_cuda(cuMemAlloc_v2(&x, WORDS * sizeof *here));
	assert_cuda(cuMemsetD8_v2(x, 0, WORDS * sizeof *here));
	assert_cuda(launch_stir(NULL, x, WORDS));
	tell(socket, 'r');
	hear(socket, 'g');
	assert_cuda(launch_stir(NULL, x, WORDS));
	assert_cuda(cuMemcpyDtoH_v2(there, x, WORDS * sizeof *there));
	stir_here(here, WORDS);
	stir_here(here, WORDS);
	assert_memory_equal(here, there, WORDS * sizeof *here);
	tell(socket, 'd');
	hear(socket, 'e');
	free(here);
	free(there);
}

static void must(int result, const struct sw_err *err)
{
	char text[1400];
	sw_err_format(err, text, sizeof text);
	if (result < 0)
		fail_msg("%s", text);
}

static void take_off(void)
{
	struct sw_err err = {0};
	suspend();
	must(sw_deep_out(page(), &err), &err);
}

static void bring_back(void)
{
	struct sw_err err = {0};
	must(sw_deep_back(page(), NULL, 0, &err), &err);
}

static void finish(struct job *job)
{
	tell(job->socket, 'g');
	hear(job->socket, 'd');
	tell(job->socket, 'e');
	end(job);
}

/* Nothing of a job is left on its GPU, time and again, and its contents come back. */
static void test_nothing_is_left(void **state)
{
	(void)state;
	struct job job = start(hold_contents);
	hear(job.socket, 'r');
	for (int i = 0; i < 3; i++) {
		take_off();
		assert_int_equal(gpu_used(), 0);
		assert_int_equal(look().off, 1);
		assert_int_equal(look().suspended, 1);
		assert_int_equal(look().gpus[0].charged_bytes, 0);
		bring_back();
		assert_int_equal(look().off, 0);
		assert_int_equal(gpu_used(), CONTEXT_BYTES);
		assert_int_equal(look().gpus[0].charged_bytes, CONTEXT_BYTES);
		resume();
	}
	finish(&job);
}

/* A process that is off hears other wishes, and one to run when it is back. */
static void test_wishes_meanwhile(void **state)
{
	(void)state;
	struct job job = start(hold_contents);
	hear(job.socket, 'r');
	take_off();
	/* Another one may bring it back than took it off, and must be let trace it too. */
	struct sw_page *raw = raw_page(page_path());
	assert_int_equal(atomic_exchange(&raw->checkpointer, 1), getpid());
	limit(400 * MiB);
	uint32_t wish = sw_share_page_want(page(), SW_PAGE_RUN);
	assert_false(sw_share_page_wait(page(), wish, SECOND));
	assert_int_equal(gpu_used(), 0);
	bring_back();
	assert_int_equal(atomic_load(&raw->checkpointer), getpid());
	assert_true(sw_share_page_wait(page(), wish, PATIENCE));
	finish(&job);
}

/* Has used up its share, and waits for the next launch. */
static void wait_for_time(int socket)
{
	open_driver();
	tell(socket, 'r');
	hear(socket, 'g');
	assert_cuda(launch_spin(NULL, 20000000));
	assert_cuda(cuCtxSynchronize());
	tell(socket, 'l');
	assert_cuda(launch_spin(NULL, 1000));
	tell(socket, 'd');
}

/* One that waits for its share of the time asks the driver nothing while it is off, and so keeps no
 * other from hearing wishes. */
static void test_paced(void **state)
{
	(void)state;
	struct job job = start(wait_for_time);
	hear(job.socket, 'r');
	assert_true(sw_share_page_wait(page(), sw_share_page_share(page(), 1), PATIENCE));
	tell(job.socket, 'g');
	hear(job.socket, 'l');
	take_off();
	limit(400 * MiB);
	bring_back();
	sw_share_page_share(page(), 0);
	resume();
	hear(job.socket, 'd');
	end(&job);
}

static pid_t target;

static void lock_target(int socket)
{
	CUcheckpointLockArgs args = {.timeout_ms = 60000};
	CUresult cuCheckpointProcessLock(int, CUcheckpointLockArgs *);
	unsetenv(SW_PAGE_ENV);
	assert_cuda(cuInit(0));
	assert_cuda(cuCheckpointProcessLock(target, &args));
	tell(socket, 'l');
	hear(socket, 'e');
}

/* A coordinator that was killed on its way leaves a job that the next one brings back: marked, and
 * not taken off; or only locked. */
static void test_half_done(void **state)
{
	(void)state;
	struct job job = start(hold_contents);
	hear(job.socket, 'r');
	struct sw_page *raw = raw_page(page_path());
	struct sw_page_slot *slot = raw->slots;
	while (atomic_load(&slot->pid) != job.pid)
		slot++;
	suspend();
	atomic_store(&slot->state, SW_PAGE_CHECKPOINTED);
	bring_back();
	assert_int_equal(look().off, 0);
	atomic_store(&slot->state, SW_PAGE_CHECKPOINTED);
	target = job.pid;
	struct job other = start(lock_target);
	hear(other.socket, 'l');
	kill_job(&other);
	bring_back();
	resume();
	finish(&job);
}

/* One of two that ends while they are off is no trouble for the other one. */
static void test_one_ends(void **state)
{
	(void)state;
	struct job one = start(hold_contents), two = start(hold_contents);
	hear(one.socket, 'r');
	hear(two.socket, 'r');
	take_off();
	assert_int_equal(look().off, 2);
	assert_int_equal(gpu_used(), 0);
	kill_job(&one);
	eventually(look().processes == 1);
	bring_back();
	resume();
	finish(&two);
}

/* Where one of two cannot be taken off, neither is, and both go on. */
static void test_all_or_none(void **state)
{
	(void)state;
	struct job one = start(hold_contents), two = start(hold_contents);
	struct sw_err err = {0};
	hear(one.socket, 'r');
	hear(two.socket, 'r');
	suspend();
	setenv("SHAREWELL_EMU_FAULTS", "cuCheckpointProcessCheckpoint:first=2:error=801", 1);
	assert_true(sw_deep_out(page(), &err) < 0);
	unsetenv("SHAREWELL_EMU_FAULTS");
	assert_non_null(strstr(err.detail, "cannot be taken off"));
	assert_int_equal(look().off, 0);
	assert_int_equal(look().suspended, 2);
	assert_int_equal(gpu_used(), 2 * CONTEXT_BYTES);
	resume();
	finish(&one);
	finish(&two);
}

/* A child of the test that is neither the job nor this one; 0: there is none. */
static pid_t find_third(void)
{
	char path[64];
	int pid = 0, third = 0;
	snprintf(path, sizeof path, "/proc/%d/task/%d/children", getppid(), getppid());
	FILE *file = fopen(path, "r");
	while (file != NULL && fscanf(file, "%d", &pid) == 1)
		third = pid != target && pid != getpid() ? pid : third;
	if (file != NULL)
		fclose(file);
	return third;
}

/* Kills the one that asks the driver, after it had some time for it. */
static void kill_third(int socket)
{
	tell(socket, 'r');
	eventually(find_third() > 0);
	for (int64_t until = now_ns() + SECOND; now_ns() < until;)
		doze();
	kill(find_third(), SIGKILL);
}

/* When the one that asks the driver is killed in the middle of it, the job is not left locked. */
static void test_killed_in_the_middle(void **state)
{
	(void)state;
	struct job job = start(hold_contents);
	struct sw_err err = {0};
	hear(job.socket, 'r');
	suspend();
	target = job.pid;
	struct job killer = start(kill_third);
	hear(killer.socket, 'r');
	setenv("SHAREWELL_EMU_FAULTS", "cuCheckpointProcessCheckpoint:delay_us=100000000", 1);
	assert_true(sw_deep_out(page(), &err) < 0);
	unsetenv("SHAREWELL_EMU_FAULTS");
	end(&killer);
	assert_non_null(strstr(err.detail, "was killed"));
	assert_int_equal(look().off, 0);
	resume();
	finish(&job);
}

/* The supervisor that moves a job waits for one of its processes that is about to use a GPU; one
 * that comes later waits for the mover, and begins then. */
static void test_the_door(void **state)
{
	(void)state;
	char held[256], fault[300];
	snprintf(held, sizeof held, "%s", beside("held"));
	snprintf(fault, sizeof fault, "cuInit:hold=%s", held);
	setenv("SHAREWELL_EMU_FAULTS", fault, 1);
	struct job first = start(hold_contents);
	unsetenv("SHAREWELL_EMU_FAULTS");
	eventually(access(held, F_OK) == 0);
	assert_false(sw_share_page_shut(page(), SECOND / 10));
	assert_int_equal(unlink(held), 0);
	assert_true(sw_share_page_shut(page(), PATIENCE));
	assert_int_equal(look().processes, 1);
	hear(first.socket, 'r');
	struct job second = start(hold_contents);
	for (int64_t until = now_ns() + SECOND / 2; now_ns() < until;)
		doze();
	assert_int_equal(look().processes, 1);
	sw_share_page_admit(page());
	hear(second.socket, 'r');
	assert_int_equal(look().processes, 2);
	finish(&first);
	finish(&second);
}

/* A process that came after the others were taken off keeps them from going
 * elsewhere, since it cannot. */
static void test_one_comes(void **state)
{
	(void)state;
	struct job one = start(hold_contents);
	struct sw_checkpoint_pair pair;
	struct sw_err err = {0};
	hear(one.socket, 'r');
	take_off();
	struct job two = start(hold_contents);
	eventually(look().processes == 2);
	memcpy(pair.from, raw_page(page_path())->gpus[0].uuid, sizeof pair.from);
	memcpy(pair.to, pair.from, sizeof pair.to);
	assert_true(sw_deep_back(page(), &pair, 1, &err) < 0);
	assert_string_equal(err.fact, "a program of 2 processes cannot go to another GPU");
	assert_int_equal(look().off, 1);
	bring_back();
	resume();
	hear(two.socket, 'r');
	finish(&one);
	finish(&two);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, machine_up, machine_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_nothing_is_left), CASE(test_wishes_meanwhile),     CASE(test_paced),	  CASE(test_half_done), CASE(test_one_ends),
		CASE(test_all_or_none),	    CASE(test_killed_in_the_middle), CASE(test_the_door), CASE(test_one_comes)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
