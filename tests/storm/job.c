/* Inside a job of the storm: it takes its locks, says when it starts, does what its arguments say, and says how it ends.
 *
 *	S name job epoch node pid boot_ns gpus   it runs and holds all locks
 *	E name job epoch node pid code signal    it ends now
 *	V what name job epoch node text          it saw what must not be
 *
 * Every line is one write to a file that is opened for appending.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "storm.h"

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

/* Parts of a gang share the lock of their epoch; nobody of another epoch of the job may live. Others are asked about without being locked, so that two
 * parts do not meet in the question. */
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

/* They live on after their parent, as long again, and keep all its locks, but not its streams: nobody hears them end. */
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

int run_job(int argc, char **argv)
{
	if (argc != 10)
		_exit(99);
	uint64_t numbers[8] = {0};
	for (int i = 0; i < 8; i++)
		numbers[i] = strtoull(argv[2 + i], NULL, 10);
	uint64_t duration_ms = numbers[0], code = numbers[1], signal_number = numbers[2], fails = numbers[3], children = numbers[4],
		 child_kind = numbers[5], is_deaf = numbers[6];
	struct witness witness = {
		.name = argv[0],
		.folder = argv[1],
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
	sleep_ms(duration_ms);
	bool fails_now = witness.epoch <= fails;
	say(&witness, "E %s %" PRIu64 " %" PRIu64 " %s %ld %" PRIu64 " %" PRIu64 "\n", witness.name, witness.job, witness.epoch,
	    witness.node, (long)getpid(), fails_now && signal_number == 0 ? code : 0, fails_now ? signal_number : 0);
	if (fails_now && signal_number != 0) {
		signal((int)signal_number, SIG_DFL);
		raise((int)signal_number);
	}
	_exit(fails_now ? (int)code : 0);
}
