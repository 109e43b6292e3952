/* Processes that share the emulated GPUs: one memory, one engine, and neighbours that are killed.
 * The test itself never initialises the driver. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/emu/driver.h"

static int set_up(void **state)
{
	(void)state;
	driver_settings(SETTINGS);
	return 0;
}

static int clean_up(void **state)
{
	(void)state;
	driver_clean_up();
	return 0;
}

/* A child with a pair of sockets to it. Its assertions end it with status 1. */
struct child {
	pid_t pid;
	int socket;
};

static void child_failed(int signal)
{
	(void)signal;
	_exit(1);
}

static struct child start(void (*run)(int socket))
{
	int sockets[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		close(sockets[0]);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* A failed assertion longjmps into the parent's test, or aborts:
		 * neither may go on here. */
		signal(SIGABRT, child_failed);
		setenv("CMOCKA_TEST_ABORT", "1", 1);
		run(sockets[1]);
		_exit(0);
	}
	close(sockets[1]);
	return (struct child){pid, sockets[0]};
}

static void tell(int socket, char word)
{
	assert_int_equal(write(socket, &word, 1), 1);
}

static void hear(int socket, char wanted)
{
	char word = 0;
	assert_int_equal(read(socket, &word, 1), 1);
	assert_int_equal(word, wanted);
}

static void end(struct child *child)
{
	int status = -1;
	close(child->socket);
	assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
	assert_int_equal(status, 0);
}

static void kill_child(struct child *child)
{
	int status = -1;
	kill(child->pid, SIGKILL);
	close(child->socket);
	waitpid(child->pid, &status, 0);
}

/* Takes 600 MiB, says so, waits to be told to go. */
static void hold_memory(int socket)
{
	CUdeviceptr x = 0;
	driver_open(false);
	assert_cuda(cuMemAlloc_v2(&x, 600 * MiB));
	tell(socket, 'h');
	hear(socket, 'g');
}

/* Says whether 600 MiB are to be had: y or n. */
static void ask_for_memory(int socket)
{
	CUdeviceptr x = 0;
	driver_open(false);
	CUresult result = cuMemAlloc_v2(&x, 600 * MiB);
	assert_true(result == CUDA_SUCCESS || result == CUDA_ERROR_OUT_OF_MEMORY);
	tell(socket, result == CUDA_SUCCESS ? 'y' : 'n');
}

/* What one process has, another cannot have; a process that ends or is killed gives it back. */
static void test_memory_is_shared(void **state)
{
	(void)state;
	for (int killed = 0; killed < 2; killed++) {
		struct child holder = start(hold_memory);
		hear(holder.socket, 'h');
		struct child asker = start(ask_for_memory);
		hear(asker.socket, 'n');
		end(&asker);
		if (killed) {
			kill_child(&holder);
		} else {
			tell(holder.socket, 'g');
			end(&holder);
		}
		asker = start(ask_for_memory);
		hear(asker.socket, 'y');
		end(&asker);
	}
}

static void race_for_memory(int socket)
{
	CUdeviceptr x = 0;
	driver_open(false);
	tell(socket, 'r');
	hear(socket, 'g');
	tell(socket, cuMemAlloc_v2(&x, 600 * MiB) == CUDA_SUCCESS ? 'y' : 'n');
	hear(socket, 'e');
}

/* Of many that want more than half at the same moment, one gets it. */
static void test_only_one_wins(void **state)
{
	(void)state;
	enum { RACERS = 6 };
	for (int round = 0; round < 3; round++) {
		struct child racers[RACERS];
		int winners = 0;
		for (int i = 0; i < RACERS; i++)
			racers[i] = start(race_for_memory);
		for (int i = 0; i < RACERS; i++)
			hear(racers[i].socket, 'r');
		for (int i = 0; i < RACERS; i++)
			tell(racers[i].socket, 'g');
		for (int i = 0; i < RACERS; i++) {
			char word = 0;
			assert_int_equal(read(racers[i].socket, &word, 1), 1);
			winners += word == 'y';
		}
		assert_int_equal(winners, 1);
		for (int i = 0; i < RACERS; i++) {
			tell(racers[i].socket, 'e');
			end(&racers[i]);
		}
	}
}

/* A child of a process that uses the driver cannot; one of a process that does not yet can, and
 * so can what it executes. */
static void fork_after_use(int socket)
{
	CUdeviceptr x = 0;
	driver_open(false);
	assert_cuda(driver_spin(NULL, 1000000));
	pid_t pid = fork();
	if (pid == 0) {
		int count = 0;
		CUcontext context = NULL;
		bool good = cuInit(0) == CUDA_ERROR_NOT_INITIALIZED && cuMemAlloc_v2(&x, 100) == CUDA_ERROR_NOT_INITIALIZED &&
			    cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED &&
			    cuCtxGetCurrent(&context) == CUDA_ERROR_NOT_INITIALIZED && cuCtxSynchronize() == CUDA_ERROR_NOT_INITIALIZED;
		_exit(good ? 0 : 1);
	}
	int status = -1;
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	/* The parent is not disturbed. */
	assert_cuda(cuCtxSynchronize());
	assert_cuda(cuMemAlloc_v2(&x, 100));
	tell(socket, 'd');
}

static void test_fork(void **state)
{
	(void)state;
	struct child child = start(fork_after_use);
	hear(child.socket, 'd');
	end(&child);
}

/* Runs kernels of 1 ms until it hears something. */
static void use_engine(int socket)
{
	driver_open(false);
	fcntl(socket, F_SETFL, O_NONBLOCK);
	tell(socket, 's');
	char word = 0;
	for (int i = 0; read(socket, &word, 1) < 0; i++) {
		for (int k = 0; k < 3; k++)
			assert_cuda(driver_spin(NULL, 1000000));
		assert_cuda(cuCtxSynchronize());
		if (i == 3)
			tell(socket, 'w');
	}
}

/* Neighbours that are killed or stopped in the middle of their work, waiting or running, do
 * not hold up the others. */
static void test_killed_neighbours_do_not_stop_the_engine(void **state)
{
	(void)state;
	enum { OTHERS = 4 };
	for (int round = 0; round < 4; round++) {
		struct child others[OTHERS], late;
		for (int i = 0; i < OTHERS; i++)
			others[i] = start(use_engine);
		for (int i = 0; i < OTHERS; i++) {
			hear(others[i].socket, 's');
			hear(others[i].socket, 'w');
		}
		kill(others[0].pid, round % 2 == 0 ? SIGSTOP : SIGKILL);
		kill(others[1].pid, SIGKILL);
		late = start(use_engine);
		hear(late.socket, 's');
		hear(late.socket, 'w');
		tell(late.socket, 'e');
		end(&late);
		kill_child(&others[0]);
		kill_child(&others[1]);
		for (int i = 2; i < OTHERS; i++) {
			tell(others[i].socket, 'e');
			end(&others[i]);
		}
	}
}

static void ask_on_and_on(int socket)
{
	size_t bytes = 0, total = 0;
	driver_open(false);
	tell(socket, 's');
	for (;;)
		assert_cuda(cuMemGetInfo_v2(&bytes, &total));
}

/* Whenever it is asked to: uses the driver for everything that has to do with others. */
static void use_memory(int socket)
{
	size_t bytes = 0, total = 0;
	CUdeviceptr x = 0;
	char word = 0;
	driver_open(false);
	while (read(socket, &word, 1) == 1) {
		assert_cuda(cuMemGetInfo_v2(&bytes, &total));
		assert_cuda(cuMemAlloc_v2(&x, MiB));
		assert_cuda(cuMemFree_v2(x));
		tell(socket, 'd');
	}
}

/* A neighbour that is stopped while it asks what is free does not hold up the others. */
static void test_stopped_neighbours_do_not_keep_the_memory(void **state)
{
	(void)state;
	struct child stopped = start(ask_on_and_on), other = start(use_memory);
	const struct timeval patience = {.tv_sec = 60};
	assert_int_equal(setsockopt(other.socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
	hear(stopped.socket, 's');
	for (int round = 0; round < 20; round++) {
		usleep(1000 + 777 * (unsigned)round);
		kill(stopped.pid, SIGSTOP);
		tell(other.socket, 'g');
		hear(other.socket, 'd');
		kill(stopped.pid, SIGCONT);
	}
	kill_child(&stopped);
	end(&other);
}

/* Kill at any moment, over and over: what is left is as if no process had been there. */
static void churn(int socket)
{
	(void)socket;
	driver_open(false);
	for (;;) {
		CUdeviceptr x[4];
		for (int i = 0; i < 4; i++)
			assert_cuda(cuMemAlloc_v2(&x[i], (size_t)(i + 1) * 3 * MiB));
		assert_cuda(driver_spin(NULL, 20000));
		for (int i = 0; i < 4; i++)
			assert_cuda(cuMemFree_v2(x[i]));
	}
}

static void report_free(int socket)
{
	driver_open(false);
	size_t bytes = driver_free_bytes();
	assert_int_equal(write(socket, &bytes, sizeof bytes), sizeof bytes);
}

static size_t free_now(void)
{
	size_t bytes = 0;
	struct child child = start(report_free);
	assert_int_equal(read(child.socket, &bytes, sizeof bytes), sizeof bytes);
	end(&child);
	return bytes;
}

static void test_nothing_leaks_by_kill(void **state)
{
	(void)state;
	size_t before = free_now();
	for (int round = 0; round < 15; round++) {
		struct child churners[3];
		for (int i = 0; i < 3; i++)
			churners[i] = start(churn);
		usleep((unsigned)(round * 7919 % 60000 + 20000));
		for (int i = 0; i < 3; i++)
			kill_child(&churners[i]);
	}
	assert_int_equal(free_now(), before);
}

static void exporter(int socket)
{
	CUmemHandle handle = 0;
	CUdeviceptr address = 0, plain = 0;
	CUipcHandle ipc;
	int file = -1;
	uint32_t word = 0;
	driver_open(false);
	CUmemAllocationProp properties = driver_memory_of(CU_MEM_LOCATION_DEVICE, 0);
	properties.requested_handle_types = CU_MEM_HANDLE_FILE_DESCRIPTOR;
	assert_cuda(cuMemCreate(&handle, PAGE, &properties, 0));
	assert_cuda(cuMemAddressReserve(&address, PAGE, 0, 0, 0));
	assert_cuda(cuMemMap(address, PAGE, 0, handle, 0));
	driver_allow(address, PAGE);
	assert_cuda(cuMemsetD32_v2(address, 11, 16));
	assert_cuda(cuMemExportToShareableHandle(&file, handle, CU_MEM_HANDLE_FILE_DESCRIPTOR, 0));
	assert_int_equal(cuIpcGetMemHandle(&ipc, address), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuMemAlloc_v2(&plain, 1000));
	assert_cuda(cuMemsetD32_v2(plain, 22, 16));
	assert_cuda(cuCtxSynchronize());
	assert_cuda(cuIpcGetMemHandle(&ipc, plain));
	assert_int_equal(cuIpcOpenMemHandle_v2(&plain, ipc, 1), CUDA_ERROR_INVALID_CONTEXT);
	/* The file goes along with the handle. */
	char control[CMSG_SPACE(sizeof file)] = {0};
	struct iovec part = {&ipc, sizeof ipc};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof file);
	memcpy(CMSG_DATA(header), &file, sizeof file);
	assert_int_equal(sendmsg(socket, &message, 0), sizeof ipc);
	hear(socket, 'c');
	assert_cuda(cuMemcpyDtoH_v2(&word, address, 4));
	assert_int_equal(word, 33);
	assert_cuda(cuMemcpyDtoH_v2(&word, plain, 4));
	assert_int_equal(word, 44);
}

static int relay = -1; /* of the exporter, for the importer */

static void importer(int socket)
{
	CUipcHandle ipc;
	CUmemHandle handle = 0;
	CUdeviceptr address = 0, plain = 0;
	uint32_t word = 0;
	int file = -1;
	char control[CMSG_SPACE(sizeof file)] = {0};
	struct iovec part = {&ipc, sizeof ipc};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
	driver_open(false);
	size_t before = driver_free_bytes();
	assert_int_equal(recvmsg(relay, &message, 0), sizeof ipc);
	memcpy(&file, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof file);
	before = driver_free_bytes();
	assert_cuda(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)file, CU_MEM_HANDLE_FILE_DESCRIPTOR));
	assert_int_equal(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)0, CU_MEM_HANDLE_FILE_DESCRIPTOR),
			 CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuMemAddressReserve(&address, PAGE, 0, 0, 0));
	assert_cuda(cuMemMap(address, PAGE, 0, handle, 0));
	driver_allow(address, PAGE);
	assert_cuda(cuIpcOpenMemHandle_v2(&plain, ipc, 1));
	/* Counted where it was created. */
	assert_int_equal(driver_free_bytes(), before);
	assert_cuda(cuMemcpyDtoH_v2(&word, address, 4));
	assert_int_equal(word, 11);
	assert_cuda(cuMemcpyDtoH_v2(&word, plain, 4));
	assert_int_equal(word, 22);
	assert_cuda(cuMemsetD32_v2(address, 33, 1));
	assert_cuda(cuMemsetD32_v2(plain, 44, 1));
	assert_cuda(cuCtxSynchronize());
	assert_cuda(cuIpcCloseMemHandle(plain));
	assert_int_equal(cuIpcCloseMemHandle(plain), CUDA_ERROR_INVALID_VALUE);
	tell(socket, 'd');
}

/* Two processes see one memory, by a file descriptor and by a handle. */
static void test_memory_of_another_process(void **state)
{
	(void)state;
	struct child from = start(exporter);
	relay = from.socket;
	struct child to = start(importer);
	hear(to.socket, 'd');
	end(&to);
	tell(from.socket, 'c');
	end(&from);
}

/* Counts its steps aloud; each one stirs memory, and at the end the memory must be
 * as stirred that often. */
static void count_steps(int socket)
{
	enum { N = 64 };
	CUdeviceptr x = 0;
	uint32_t wanted[N] = {0}, in[N];
	driver_open(false);
	assert_cuda(cuMemAlloc_v2(&x, 500 * MiB));
	assert_cuda(cuMemsetD32_v2(x, 0, N));
	char word = 0;
	do {
		assert_cuda(driver_stir(NULL, x, N));
		assert_cuda(cuCtxSynchronize());
		stir_here(wanted, N);
		tell(socket, '.');
	} while (recv(socket, &word, 1, MSG_DONTWAIT) < 0);
	assert_cuda(cuMemcpyDtoH_v2(in, x, sizeof in));
	assert_memory_equal(in, wanted, sizeof in);
}

static pid_t target;

/* Is there still something to be heard after it was quiet for a moment? */
static bool makes_steps(int socket)
{
	char words[4096];
	usleep(50000);
	while (recv(socket, words, sizeof words, MSG_DONTWAIT) > 0)
		continue;
	usleep(100000);
	return recv(socket, words, sizeof words, MSG_DONTWAIT) > 0;
}

/* On a busy machine what was under way takes its time to come to rest. */
static bool stands_still(int socket)
{
	for (int i = 0; i < 50; i++)
		if (!makes_steps(socket))
			return true;
	return false;
}

static int steps = -1; /* the socket on which the target counts */

static void checkpoint_target(int socket)
{
	int state = -1;
	CUcheckpointLockArgs args = {.timeout_ms = 60000};
	driver_open(false);
	size_t before = driver_free_bytes();
	assert_int_equal(cuCheckpointProcessLock(1, &args), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuCheckpointProcessCheckpoint(target, NULL), CUDA_ERROR_ILLEGAL_STATE);
	assert_cuda(cuCheckpointProcessLock(target, &args));
	assert_true(stands_still(steps));
	assert_cuda(cuCheckpointProcessCheckpoint(target, NULL));
	assert_cuda(cuCheckpointProcessGetState(target, &state));
	assert_int_equal(state, CU_PROCESS_CHECKPOINTED);
	assert_int_equal(driver_free_bytes() - before, 516 * MiB);
	/* While its place is taken it cannot come back. */
	CUdeviceptr x = 0;
	assert_cuda(cuMemAlloc_v2(&x, 700 * MiB));
	assert_int_equal(cuCheckpointProcessRestore(target, NULL), CUDA_ERROR_OUT_OF_MEMORY);
	assert_cuda(cuMemFree_v2(x));
	assert_cuda(cuCheckpointProcessRestore(target, NULL));
	assert_int_equal(driver_free_bytes(), before);
	assert_true(stands_still(steps));
	assert_cuda(cuCheckpointProcessUnlock(target, NULL));
	assert_cuda(cuCheckpointProcessGetState(target, &state));
	assert_int_equal(state, CU_PROCESS_RUNNING);
	for (int tries = 0; tries < 100 && !makes_steps(steps); tries++)
		continue;
	assert_true(makes_steps(steps));
	tell(socket, 'd');
}

/* Another process stops one, takes its memory off the GPU, and lets it go on
 * as if nothing had been. */
static void test_checkpoint(void **state)
{
	(void)state;
	struct child worker = start(count_steps);
	hear(worker.socket, '.');
	target = worker.pid;
	steps = worker.socket;
	struct child caller = start(checkpoint_target);
	hear(caller.socket, 'd');
	end(&caller);
	tell(worker.socket, 'e');
	int status = -1;
	char words[4096];
	while (read(worker.socket, words, sizeof words) > 0)
		continue;
	close(worker.socket);
	waitpid(worker.pid, &status, 0);
	assert_int_equal(status, 0);
}

/* Holds memory of the first device, is moved, and knows where it is then. */
static void be_moved(int socket)
{
	CUdeviceptr x = 0;
	CUuuid before, after;
	driver_open(true);
	assert_cuda(cuMemAlloc_v2(&x, 100 * MiB));
	assert_cuda(cuMemsetD32_v2(x, 7, 1));
	assert_cuda(cuDeviceGetUuid_v2(&before, 0));
	tell(socket, 'h');
	hear(socket, 'm');
	uint32_t word = 0;
	assert_cuda(cuMemcpyDtoH_v2(&word, x, sizeof word));
	assert_int_equal(word, 7);
	assert_cuda(cuDeviceGetUuid_v2(&after, 1));
	assert_memory_equal(&before, &after, sizeof before);
	assert_cuda(cuMemFree_v2(x));
	tell(socket, 'f');
	hear(socket, 'e');
}

static size_t free_on(CUdevice device)
{
	CUcontext context = NULL;
	size_t free = 0, total = 0;
	assert_cuda(cuDevicePrimaryCtxRetain(&context, device));
	assert_cuda(cuCtxSetCurrent(context));
	assert_cuda(cuMemGetInfo_v2(&free, &total));
	return free;
}

static void move_target(int socket)
{
	CUcheckpointGpuPair pairs[2];
	driver_open(false);
	for (int i = 0; i < 2; i++) {
		assert_cuda(cuDeviceGetUuid_v2(&pairs[i].from, i));
		assert_cuda(cuDeviceGetUuid_v2(&pairs[i].to, 1 - i));
	}
	CUcheckpointRestoreArgs some = {.pairs = pairs, .pair_count = 1}, all = {.pairs = pairs, .pair_count = 2};
	size_t first = free_on(0), second = free_on(1);
	assert_cuda(cuCheckpointProcessLock(target, NULL));
	assert_cuda(cuCheckpointProcessCheckpoint(target, NULL));
	assert_int_equal(cuCheckpointProcessRestore(target, &some), CUDA_ERROR_INVALID_VALUE);
	pairs[1].to = pairs[0].to;
	assert_int_equal(cuCheckpointProcessRestore(target, &all), CUDA_ERROR_INVALID_VALUE);
	pairs[1].to = pairs[0].from;
	assert_cuda(cuCheckpointProcessRestore(target, &all));
	assert_cuda(cuCheckpointProcessUnlock(target, NULL));
	assert_int_equal(free_on(0) - first, second - free_on(1));
	assert_true(free_on(0) - first >= 116 * MiB);
	tell(socket, 'd');
	/* What it frees is free where it is now. */
	hear(socket, 'f');
	assert_true(second - free_on(1) < 100 * MiB);
	tell(socket, 'e');
}

/* Restored onto another GPU of its kind a process has its memory there, at the same addresses;
 * every GPU must be named, and none twice. */
static void test_restore_elsewhere(void **state)
{
	(void)state;
	setenv("SHAREWELL_EMU", "gpus=2;memory=1G;context=16M;launch_us=0", 1);
	struct child worker = start(be_moved);
	hear(worker.socket, 'h');
	target = worker.pid;
	struct child caller = start(move_target);
	hear(caller.socket, 'd');
	tell(worker.socket, 'm');
	hear(worker.socket, 'f');
	tell(caller.socket, 'f');
	hear(caller.socket, 'e');
	end(&caller);
	tell(worker.socket, 'e');
	end(&worker);
	setenv("SHAREWELL_EMU", SETTINGS, 1);
}

/* Takes a context and runs a kernel. */
static void be_one_of_many(int socket)
{
	CUdeviceptr x = 0;
	driver_open(true);
	assert_cuda(cuMemAlloc_v2(&x, 1000));
	assert_cuda(cuMemsetD32_v2(x, 0, 16));
	assert_cuda(driver_stir(NULL, x, 16));
	assert_cuda(cuCtxSynchronize());
	tell(socket, 'k');
	hear(socket, 'g');
}

/* A thousand processes on one GPU, all there at once. */
static void test_a_thousand_processes(void **state)
{
	(void)state;
	enum { MANY = 1000, WAVE = 50 };
	static struct child children[MANY];
	setenv("SHAREWELL_EMU", "gpus=1;memory=64G;context=16M;launch_us=0", 1);
	for (int i = 0; i < MANY; i++) {
		children[i] = start(be_one_of_many);
		if (i % WAVE == WAVE - 1)
			for (int j = i - WAVE + 1; j <= i; j++)
				hear(children[j].socket, 'k');
	}
	for (int i = 0; i < MANY; i++)
		tell(children[i].socket, 'g');
	for (int i = 0; i < MANY; i++)
		end(&children[i]);
	setenv("SHAREWELL_EMU", SETTINGS, 1);
	assert_true(free_now() > 1000 * MiB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory_is_shared),
		cmocka_unit_test(test_only_one_wins),
		cmocka_unit_test(test_fork),
		cmocka_unit_test(test_killed_neighbours_do_not_stop_the_engine),
		cmocka_unit_test(test_stopped_neighbours_do_not_keep_the_memory),
		cmocka_unit_test(test_nothing_leaks_by_kill),
		cmocka_unit_test(test_memory_of_another_process),
		cmocka_unit_test(test_checkpoint),
		cmocka_unit_test(test_restore_elsewhere),
		cmocka_unit_test(test_a_thousand_processes),
	};
	return cmocka_run_group_tests(tests, set_up, clean_up);
}
