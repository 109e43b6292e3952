#include "runtime/job.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "share/node.h"
#include "shared.h"

#define UUID "GPU-5ba7e001-0000-4000-8000-000000000001"

static char folder[64], path[96], settings[512];
static struct sw_share_page *own;

static const char kernels[] = "sharewell-emu 1\n"
			      "kernel stir op=stir type=u32\n"
			      "kernel spin op=spin\n";
static CUcontext context;
static CUfunction stir, spin;

/* ---- the machine */

int machine_up(void **state)
{
	char file[96];
	const char *const uuids[] = {UUID};
	(void)state;
	snprintf(folder, sizeof folder, "/tmp/sw-runtime-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(settings, sizeof settings,
		 "gpus=1;memory=512M;context=16M;h2d=500;d2h=500;d2d=2000;copy_latency_us=0;launch_us=0;gpu.0.uuid=%s", UUID);
	setenv("SHAREWELL_EMU", settings, 1);
	snprintf(file, sizeof file, "%s/state", folder);
	setenv("SHAREWELL_EMU_STATE", file, 1);
	unsetenv("CUDA_VISIBLE_DEVICES");
	snprintf(path, sizeof path, "%s/page", folder);
	setenv(SW_PAGE_ENV, path, 1);
	assert_int_equal(sw_share_page_new(path, uuids, 1, &own, NULL), 0);
	sw_share_page_host_budget(own, 1024 * MiB);
	setenv(SW_SHARE_NODE_ENV, beside("ledger"), 1);
	sw_share_node_join(own, geteuid(), getegid());
	machine_host_memory(UINT64_C(1) << 40, 0);
	return 0;
}

int machine_down(void **state)
{
	char command[128];
	(void)state;
	sw_share_page_close(own);
	own = NULL;
	snprintf(command, sizeof command, "rm -rf '%s'", folder);
	return system(command);
}

void machine_setting(const char *setting)
{
	size_t length = strlen(settings);
	assert_true((size_t)snprintf(settings + length, sizeof settings - length, ";%s", setting) < sizeof settings - length);
	setenv("SHAREWELL_EMU", settings, 1);
}

void machine_faults(const char *faults)
{
	char control[160], setting[200];
	snprintf(control, sizeof control, "%s", beside("control"));
	snprintf(setting, sizeof setting, "control=%s", control);
	if (strstr(settings, setting) == NULL)
		machine_setting(setting);
	/* At once: no process reads half of them. */
	FILE *file = fopen(beside("next"), "w");
	assert_non_null(file);
	fputs(faults, file);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(rename(beside("next"), control), 0);
}

void machine_host_memory(uint64_t most_bytes, uint64_t reserve_bytes)
{
	int fd = open(beside("ledger"), O_RDWR | O_CLOEXEC);
	assert_true(sw_share_node_limit(most_bytes));
	assert_int_equal(pwrite(fd, &reserve_bytes, sizeof reserve_bytes, offsetof(struct sw_host_ledger, head.reserve_bytes)),
			 sizeof reserve_bytes);
	close(fd);
}

uint64_t host_used(void)
{
	uint64_t used = 0, most;
	assert_true(sw_share_node_look(&used, &most));
	return used;
}

struct sw_share_page *page(void)
{
	return own;
}

const char *page_path(void)
{
	return path;
}

const char *beside(const char *name)
{
	static char text[160];
	snprintf(text, sizeof text, "%s/%s", folder, name);
	return text;
}

struct sw_share_figures look(void)
{
	struct sw_share_figures figures;
	sw_share_page_look(own, &figures);
	return figures;
}

static void await(uint32_t wish, const char *what)
{
	if (!sw_share_page_wait(own, wish, PATIENCE))
		fail_msg("%s: %s", what, sw_share_trouble(look().trouble));
}

void suspend(void)
{
	await(sw_share_page_want(own, SW_PAGE_SUSPEND), "suspend");
}

void resume(void)
{
	await(sw_share_page_want(own, SW_PAGE_RUN), "resume");
}

void limit(uint64_t bytes)
{
	await(sw_share_page_limit(own, 0, bytes), "limit");
}

void host_budget(uint64_t bytes)
{
	await(sw_share_page_host_budget(own, bytes), "host budget");
}

struct sw_page *raw_page(const char *name)
{
	int fd = open(name, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	struct sw_page *mapped = mmap(NULL, sizeof *mapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(mapped != MAP_FAILED);
	close(fd);
	return mapped;
}

/* The emulator's own books, which its processes share. They begin with the
 * first process that uses it. */
static const struct emu_state *books(void)
{
	static const struct emu_state *mapped;
	static char of[64];
	if (mapped != NULL && strcmp(of, folder) == 0)
		return mapped;
	/* Its name ends with a number of its own. */
	glob_t names;
	if (glob(beside("state.*"), 0, NULL, &names) != 0)
		return NULL;
	int fd = open(names.gl_pathv[0], O_RDONLY | O_CLOEXEC);
	globfree(&names);
	if (fd < 0)
		return NULL;
	void *found = mmap(NULL, sizeof *mapped, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (found == MAP_FAILED)
		return NULL;
	mapped = found;
	memcpy(of, folder, sizeof of);
	return mapped;
}

uint64_t gpu_used(void)
{
	const struct emu_state *state = books();
	uint64_t sum = 0;
	for (uint32_t i = 0; state != NULL && i < state->slots_high; i++) {
		const volatile struct emu_slot *slot = &state->slots[i];
		if (slot->pid != 0 && kill(slot->pid, 0) == 0)
			sum += slot->used[0];
	}
	return sum;
}

uint64_t gpu_busy_ns(void)
{
	const struct emu_state *state = books();
	return state == NULL ? 0 : *(const volatile uint64_t *)&state->engines[0].busy_total_ns;
}

int64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * SECOND + now.tv_nsec;
}

void doze(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
}

/* ---- jobs */

static void child_failed(int signal)
{
	(void)signal;
	_exit(1);
}

struct job start(void (*run)(int socket))
{
	int sockets[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
	fflush(NULL);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		close(sockets[0]);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* A failed assertion must not go on in the parent's test. */
		signal(SIGABRT, child_failed);
		setenv("CMOCKA_TEST_ABORT", "1", 1);
		run(sockets[1]);
		fflush(NULL);
		_exit(0);
	}
	close(sockets[1]);
	return (struct job){pid, sockets[0]};
}

void tell(int socket, char word)
{
	assert_int_equal(write(socket, &word, 1), 1);
}

void hear(int socket, char wanted)
{
	char word = 0;
	assert_int_equal(read(socket, &word, 1), 1);
	assert_int_equal(word, wanted);
}

void end(struct job *job)
{
	int status = -1;
	close(job->socket);
	assert_int_equal(waitpid(job->pid, &status, 0), job->pid);
	assert_int_equal(status, 0);
}

void kill_job(struct job *job)
{
	int status;
	kill(job->pid, SIGKILL);
	close(job->socket);
	waitpid(job->pid, &status, 0);
}

void run_job(void (*run)(int socket))
{
	struct job job = start(run);
	end(&job);
}

/* ---- in a job */

void open_driver(void)
{
	CUmodule module = NULL;
	assert_cuda(cuInit(0));
	assert_cuda(cuDevicePrimaryCtxRetain(&context, 0));
	assert_cuda(cuCtxSetCurrent(context));
	assert_cuda(cuModuleLoadData(&module, kernels));
	assert_cuda(cuModuleGetFunction(&stir, module, "stir"));
	assert_cuda(cuModuleGetFunction(&spin, module, "spin"));
}

CUcontext primary(void)
{
	return context;
}

CUresult launch_stir(CUstream stream, CUdeviceptr x, uint64_t words)
{
	return cuLaunchKernel(stir, 1, 1, 1, 32, 1, 1, 0, stream, (void *[]){&x, &words}, NULL);
}

CUresult launch_spin(CUstream stream, uint64_t ns)
{
	return launch_spin_on(stream, ns, 1);
}

CUresult launch_spin_on(CUstream stream, uint64_t ns, unsigned grid)
{
	return cuLaunchKernel(spin, grid, 1, 1, 32, 1, 1, 0, stream, (void *[]){&ns}, NULL);
}

void stir_here(uint32_t *x, uint64_t words)
{
	for (uint64_t i = 0; i < words; i++)
		x[i] = x[i] * 1664525U + 1013904223U + (uint32_t)i;
}
