/* A job of the storm: it takes its locks, says when it starts, does what its arguments say, and
 * says how it ends. Each millisecond of its work is counted in a file of its run.
 *
 *	S name job epoch node pid boot_ns gpus   it runs and holds all locks
 *	E name job epoch node pid code signal    it ends now
 *	V what name job epoch node text          it saw what must not be
 *
 * Every line is one write to a file that is opened for appending.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "cuda/driver.h"

enum { CHILDREN_AWAY = 1, CHILDREN_BARE = 2 }; /* as storm.h has them */

struct witness {
	const char *name;
	const char *folder;
	const char *node;
	uint64_t job, epoch;
	int file;
};

__attribute__((format(printf, 2, 3))) static void say(const struct witness *witness, const char *fmt, ...)
{
	char line[1000];
	va_list args;
	va_start(args, fmt);
	int size = vsnprintf(line, sizeof line, fmt, args);
	va_end(args);
	(void)!write(witness->file, line, (size_t)size);
}

__attribute__((format(printf, 3, 4))) static void accuse(const struct witness *witness, const char *what, const char *fmt, ...)
{
	char text[500];
	va_list args;
	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	say(witness, "V %s %s %" PRIu64 " %" PRIu64 " %s %s\n", what, witness->name, witness->job, witness->epoch, witness->node, text);
}

static int64_t boot_now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static uint64_t number_of(const char *name)
{
	const char *text = getenv(name);
	return text != NULL ? strtoull(text, NULL, 10) : 0;
}

/* Open in this process and its children for as long as they live; also in those that exec. */
static int open_lock(const struct witness *witness, int flags, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static int open_lock(const struct witness *witness, int flags, const char *fmt, ...)
{
	char path[PATH_MAX], name[200];
	va_list args;
	va_start(args, fmt);
	vsnprintf(name, sizeof name, fmt, args);
	va_end(args);
	snprintf(path, sizeof path, "%s/locks/%s", witness->folder, name);
	return open(path, O_RDWR | flags, 0666);
}

/* A run is started at most once, ever: its file is made, and stays. */
static void begin_run(const struct witness *witness)
{
	int fd = open_lock(witness, O_CREAT | O_EXCL | O_CLOEXEC, "run-%" PRIu64 ".%" PRIu64 ".%s", witness->job, witness->epoch,
			   witness->node);
	if (fd < 0)
		accuse(witness, "started-twice", "its run was there before");
	else
		close(fd);
}

/* Parts of a gang share the lock of their epoch; no process of another epoch of the job may live.
 * Others are asked about without being locked, so that two parts do not meet in the question. */
static void lock_epoch(const struct witness *witness)
{
	struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
	int own = open_lock(witness, O_CREAT, "epoch-%" PRIu64 ".%" PRIu64, witness->job, witness->epoch);
	if (own < 0 || fcntl(own, F_OFD_SETLK, &lock) != 0)
		accuse(witness, "job", "its own lock cannot be had");
	for (uint64_t epoch = 1; epoch <= witness->epoch + 2; epoch++) {
		int other = epoch != witness->epoch ? open_lock(witness, O_CLOEXEC, "epoch-%" PRIu64 ".%" PRIu64, witness->job, epoch) : -1;
		if (other < 0)
			continue;
		lock = (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET};
		if (fcntl(other, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK)
			accuse(witness, "job", "epoch %" PRIu64 " of it still lives", epoch);
		close(other);
	}
}

/* Killed, and not gone yet: it runs no more. */
static bool is_dying(long pid, unsigned flags)
{
	char path[40], line[100];
	unsigned long long pending = 0;
	snprintf(path, sizeof path, "/proc/%ld/status", pid);
	FILE *file = fopen(path, "re");
	while (file != NULL && fgets(line, sizeof line, file) != NULL)
		if (sscanf(line, "ShdPnd: %llx", &pending) == 1)
			break;
	if (file != NULL)
		fclose(file);
	return (flags & 4 /* it is on its way out */) != 0 || (pending >> (SIGKILL - 1) & 1) != 0;
}

/* A run that is suspended keeps its locks, and not its GPUs. */
static bool stands_still(const char *holder)
{
	long pid = 0;
	unsigned flags = 0;
	char path[40], state = '?';
	const char *at = strstr(holder, "process ");
	if (at == NULL || sscanf(at, "process %ld", &pid) != 1)
		return false;
	snprintf(path, sizeof path, "/proc/%ld/stat", pid);
	FILE *file = fopen(path, "re");
	if (file == NULL || fscanf(file, "%*d (%*[^)]) %c %*d %*d %*d %*d %*d %u", &state, &flags) != 2)
		state = '?';
	if (file != NULL)
		fclose(file);
	return state == 'T' || state == 't' || state == 'Z' || is_dying(pid, flags);
}

static void lock_gpus(const struct witness *witness)
{
	char list[1000];
	const char *gpus = getenv("CUDA_VISIBLE_DEVICES");
	snprintf(list, sizeof list, "%s", gpus != NULL ? gpus : "");
	char *rest = NULL;
	for (const char *gpu = strtok_r(list, ",", &rest); gpu != NULL; gpu = strtok_r(NULL, ",", &rest)) {
		char holder[100] = "";
		int fd = open_lock(witness, O_CREAT, "gpu-%s", gpu);
		if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) != 0) {
			if (fd >= 0)
				(void)!pread(fd, holder, sizeof holder - 1, 0);
			if (stands_still(holder))
				continue;
			accuse(witness, "gpu", "%s is used by run %s", gpu, holder);
			continue;
		}
		int size = snprintf(holder, sizeof holder, "%" PRIu64 ".%" PRIu64 " process %ld", witness->job, witness->epoch,
				    (long)getpid());
		(void)!ftruncate(fd, 0);
		(void)!pwrite(fd, holder, (size_t)size, 0);
	}
}

static void sleep_ms(uint64_t ms)
{
	struct timespec left = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
	while (nanosleep(&left, &left) != 0 && errno == EINTR)
		;
}

/* They live on after their parent, as long again, and keep all its locks, but not its streams:
 * their end is not heard. */
static void beget(uint64_t count, uint64_t kind, uint64_t duration_ms)
{
	for (uint64_t i = 0; i < count; i++) {
		if (fork() != 0)
			continue;
		close_range(0, 2, 0);
		if (kind == CHILDREN_AWAY)
			setsid();
		if (kind == CHILDREN_BARE) {
			char seconds[32];
			snprintf(seconds, sizeof seconds, "%.3f", (double)(2 * duration_ms + 100) / 1000);
			char name[] = "sleep";
			char *const argv[] = {name, seconds, NULL}, *const environment[] = {NULL};
			execve("/bin/sleep", argv, environment);
		}
		sleep_ms(2 * duration_ms + 100);
		_exit(0);
	}
}

/* ---- work */

/* Counts each millisecond in a file of the run, so that what is lost with it is known. */
static void work(const struct witness *witness, uint64_t duration_ms)
{
	char path[PATH_MAX];
	snprintf(path, sizeof path, "%s/work/%" PRIu64 ".%" PRIu64 ".%s", witness->folder, witness->job, witness->epoch, witness->node);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	for (uint64_t done = 0; done < duration_ms;) {
		sleep_ms(1);
		done++;
		if (fd >= 0)
			(void)!pwrite(fd, &done, sizeof done, 0);
	}
	if (fd >= 0)
		close(fd);
}

/* ---- GPU memory */

static struct {
	CUresult (*init)(unsigned);
	CUresult (*retain)(CUcontext *, CUdevice);
	CUresult (*set)(CUcontext);
	CUresult (*alloc)(CUdeviceptr *, size_t);
	CUresult (*to_device)(CUdeviceptr, const void *, size_t);
	CUresult (*to_host)(void *, CUdeviceptr, size_t);
} driver;

static bool find(void *library, const char *name, void *ret_function)
{
	void *address = library != NULL ? dlsym(library, name) : NULL;
	memcpy(ret_function, &address, sizeof address);
	return address != NULL;
}

/* The node's own emulated GPUs: as tests/storm/cluster.c describes them to its agent. */
static bool open_driver(const struct witness *witness)
{
	char folder[PATH_MAX], settings[1000];
	snprintf(folder, sizeof folder, "%s/emu-%s", witness->folder, witness->node);
	int used = snprintf(settings, sizeof settings, "gpus=4;memory=1G;context=1M;launch_us=0;copy_latency_us=0");
	for (int gpu = 0; gpu < 4; gpu++)
		used += snprintf(settings + used, sizeof settings - (size_t)used, ";gpu.%d.uuid=GPU-e300000%s-0000-0000-0000-00000000000%d",
				 gpu, witness->node, gpu);
	setenv("SHAREWELL_EMU", settings, 1);
	setenv("SHAREWELL_EMU_STATE", folder, 1);
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	CUcontext context = NULL;
	return find(library, "cuInit", &driver.init) && find(library, "cuDevicePrimaryCtxRetain", &driver.retain) &&
	       find(library, "cuCtxSetCurrent", &driver.set) && find(library, "cuMemAlloc_v2", &driver.alloc) &&
	       find(library, "cuMemcpyHtoD_v2", &driver.to_device) && find(library, "cuMemcpyDtoH_v2", &driver.to_host) &&
	       driver.init(0) == CUDA_SUCCESS && driver.retain(&context, 0) == CUDA_SUCCESS && driver.set(context) == CUDA_SUCCESS;
}

/* Works with GPU memory full of a pattern; it must be there in the end, wherever
 * it has been meanwhile. */
static void work_on_gpu(const struct witness *witness, uint64_t duration_ms, size_t bytes)
{
	CUdeviceptr memory = 0;
	uint32_t *pattern = malloc(bytes), *back = malloc(bytes);
	size_t words = bytes / sizeof *pattern;
	for (size_t i = 0; pattern != NULL && i < words; i++)
		pattern[i] = (uint32_t)(i * 2654435761u + witness->job);
	bool good = pattern != NULL && back != NULL && open_driver(witness) && driver.alloc(&memory, bytes) == CUDA_SUCCESS &&
		    driver.to_device(memory, pattern, bytes) == CUDA_SUCCESS;
	if (!good)
		accuse(witness, "memory", "its GPU cannot be used");
	work(witness, duration_ms);
	if (good && (driver.to_host(back, memory, bytes) != CUDA_SUCCESS || memcmp(back, pattern, bytes) != 0))
		accuse(witness, "memory", "%zu bytes are not what was put there", bytes);
	free(pattern);
	free(back);
}

/* ---- all of it */

/* A process outside the queue: it has some GPU memory until it is killed. */
static _Noreturn void be_stranger(const char *folder, const char *node)
{
	const struct witness witness = {.folder = folder, .node = node};
	CUdeviceptr memory = 0;
	if (!open_driver(&witness) || driver.alloc(&memory, (size_t)64 << 20) != CUDA_SUCCESS)
		_exit(96);
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "--stranger") == 0)
		be_stranger(argv[2], argv[3]);
	if (argc != 11)
		_exit(99);
	uint64_t numbers[8] = {0};
	for (int i = 0; i < 8; i++)
		numbers[i] = strtoull(argv[3 + i], NULL, 10);
	uint64_t duration_ms = numbers[0], code = numbers[1], signal_number = numbers[2], fails = numbers[3], children = numbers[4],
		 child_kind = numbers[5], is_deaf = numbers[6], gpu_kib = numbers[7];
	struct witness witness = {
		.name = argv[1],
		.folder = argv[2],
		.node = getenv("SHAREWELL_NODE"),
		.job = number_of("SHAREWELL_JOB_ID"),
		.epoch = number_of("SHAREWELL_EPOCH"),
	};
	if (witness.node == NULL)
		_exit(98);
	char path[PATH_MAX];
	snprintf(path, sizeof path, "%s/witness", witness.folder);
	witness.file = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	if (witness.file < 0)
		_exit(97);
	if (is_deaf != 0)
		signal(SIGTERM, SIG_IGN);
	begin_run(&witness);
	lock_epoch(&witness);
	lock_gpus(&witness);
	say(&witness, "S %s %" PRIu64 " %" PRIu64 " %s %ld %" PRId64 " %s\n", witness.name, witness.job, witness.epoch, witness.node,
	    (long)getpid(), boot_now_ns(), getenv("CUDA_VISIBLE_DEVICES"));
	beget(children, child_kind, duration_ms);
	if (gpu_kib > 0)
		work_on_gpu(&witness, duration_ms, gpu_kib << 10);
	else
		work(&witness, duration_ms);
	bool fails_now = witness.epoch <= fails;
	say(&witness, "E %s %" PRIu64 " %" PRIu64 " %s %ld %" PRIu64 " %" PRIu64 "\n", witness.name, witness.job, witness.epoch,
	    witness.node, (long)getpid(), fails_now && signal_number == 0 ? code : 0, fails_now ? signal_number : 0);
	if (fails_now && signal_number != 0) {
		signal((int)signal_number, SIG_DFL);
		raise((int)signal_number);
	}
	_exit(fails_now ? (int)code : 0);
}
