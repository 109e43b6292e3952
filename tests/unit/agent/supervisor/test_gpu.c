/* A supervisor and the GPU page of its run, with the test as the process that uses the GPU: made,
 * wished on, waited for, and gone without. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/supervisor/state.h"
#include "base/number.h"
#include "share/page.h"
#include "unit/agent/harness.h"

/* Something that all users can read and the loader bears. */
#define LIBRARY "libc.so.6"
static char library[256];

/* The C library that this program has. */
static void find_library(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	assert_non_null(maps);
	while (fgets(line, sizeof line, maps) != NULL) {
		const char *path = strchr(line, '/');
		if (path != NULL && strstr(path, LIBRARY) != NULL)
			snprintf(library, sizeof library, "%.*s", (int)strcspn(path, "\n"), path);
	}
	fclose(maps);
	assert_true(library[0] == '/');
}

static int set_up(void **state)
{
	int r = harness_set_up(state);
	if (r == 0)
		((struct harness *)*state)->gpu_library = library;
	return r;
}

/* ---- the test as a process on the GPU */

struct guest {
	int fd;
	struct sw_page *page;
	struct sw_page_slot *slot;
};

static struct guest enter_page(const char *path)
{
	struct guest guest;
	guest.fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(guest.fd >= 0);
	guest.page = mmap(NULL, sizeof *guest.page, PROT_READ | PROT_WRITE, MAP_SHARED, guest.fd, 0);
	assert_true(guest.page != MAP_FAILED);
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 1 + 5, .l_len = 1};
	assert_int_equal(fcntl(guest.fd, F_OFD_SETLK, &lock), 0);
	guest.slot = &guest.page->slots[5];
	atomic_store(&guest.slot->done_serial, atomic_load(&guest.page->serial));
	atomic_store(&guest.slot->state, SW_PAGE_RUNNING);
	atomic_store(&guest.slot->pid, getpid());
	return guest;
}

static struct guest enter(const struct run *run)
{
	char path[160];
	snprintf(path, sizeof path, "%s/gpu", run->path);
	return enter_page(path);
}

static void await_want(const struct guest *guest, uint32_t want)
{
	while (atomic_load(&guest->page->want) != want)
		harness_sleep_ms(1);
}

static void obey(const struct guest *guest, enum sw_page_state state)
{
	atomic_store(&guest->slot->state, state);
	atomic_store(&guest->slot->trouble, SW_PAGE_FINE);
	atomic_store(&guest->slot->moved_bytes, UINT64_C(3) << 30);
	atomic_store(&guest->slot->move_ns, 250 * SW_NS_PER_MS);
	atomic_store(&guest->slot->done_serial, atomic_load(&guest->page->serial));
}

static void leave(struct guest *guest)
{
	munmap(guest->page, sizeof *guest->page);
	close(guest->fd);
}

static void free_wait(struct run *run, enum sw_run_state state)
{
	struct sw_run_account *account = harness_wait(run, state);
	sw_run_account_free(account);
}

/* Where the page is, behind the link in the folder if there is one. */
static const char *page_of(const struct run *run)
{
	static char whole[PATH_MAX];
	char path[160];
	snprintf(path, sizeof path, "%s/gpu", run->path);
	assert_non_null(realpath(path, whole));
	return whole;
}

static const char *told_of(const struct run *run)
{
	static char told[PATH_MAX];
	assert_true(sw_share_page_told(page_of(run), told));
	return told;
}

static mode_t mode_of(const char *path)
{
	struct stat info;
	assert_int_equal(stat(path, &info), 0);
	return info.st_mode & 0777;
}

/* ---- */

/* The page names the GPUs and the limit; the job has it in its environment, before what its user
 * preloads; it is gone with the run. */
static void test_page(void **state)
{
	struct harness *harness = *state;
	struct run run;
	const char *env[] = {"LD_PRELOAD=libm.so.6", NULL};
	struct sw_run_spec *spec = harness_spec(harness, "echo \"$SHAREWELL_GPU\"; echo \"$LD_PRELOAD\"; cat wait; exit 3");
	spec->env = (struct sw_texts){env, 1};
	spec->gpu_memory_bytes = 123456;
	spec->stdout_path = "out";
	char path[PATH_MAX], fifo[160], expected[3 * PATH_MAX];
	snprintf(fifo, sizeof fifo, "%s/wait", harness->state);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	harness_start(harness, spec, &run);
	free_wait(&run, SW_RUN_RUNNING);
	struct guest guest = enter(&run);
	assert_int_equal(guest.page->gpu_count, 2);
	assert_true(guest.page->gpus[0].uuid[1] == 0x11 && guest.page->gpus[1].uuid[0] == 0x10);
	assert_true(atomic_load(&guest.page->gpus[0].limit_bytes) == 123456 && atomic_load(&guest.page->gpus[1].limit_bytes) == 123456);
	uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	assert_in_range(atomic_load(&guest.page->host_budget_bytes), 1, memory / 2);
	leave(&guest);
	struct stat info;
	snprintf(path, sizeof path, "%s", page_of(&run));
	assert_int_equal(stat(path, &info), 0);
	assert_true((info.st_mode & 0777) == 0600 && info.st_uid == geteuid());
	int fd = open(fifo, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	close(fd);
	struct sw_run_account *account = harness_wait(&run, SW_RUN_EXITED);
	assert_true(account->run.code == 3 && account->note == NULL);
	sw_run_account_free(account);
	snprintf(expected, sizeof expected, "%s\n%s:libm.so.6\n", path, library);
	assert_string_equal(harness_read(harness, "out"), expected);
	assert_true(access(path, F_OK) != 0 && errno == ENOENT);
	harness_close(&run);
}

/* Without a library, or against the job's wish, nothing is set, and what the submitter's own
 * run had is taken away. */
static void test_without(void **state)
{
	struct harness *harness = *state;
	for (int i = 0; i < 2; i++) {
		struct run run;
		const char *env[] = {"SHAREWELL_GPU=/x", "LD_PRELOAD=/x/libsharewell-gpu.so", NULL};
		struct sw_run_spec *spec = harness_spec(harness, "echo \"$SHAREWELL_GPU,$LD_PRELOAD,\"");
		spec->env = (struct sw_texts){env, 2};
		spec->bare_gpu = i == 0;
		spec->stdout_path = "out";
		harness->gpu_library = i == 0 ? library : NULL;
		harness_start(harness, spec, &run);
		free_wait(&run, SW_RUN_EXITED);
		assert_string_equal(harness_read(harness, "out"), ",,\n");
		harness_close(&run);
	}
}

/* A page that cannot be made, or a library that cannot be read, is said and harms none. */
static void test_gone_without(void **state)
{
	struct harness *harness = *state;
	char path[160];
	struct run run;
	harness_create(harness, harness_spec(harness, "exit 4"), 3600000, &run);
	snprintf(path, sizeof path, "%s/gpu", run.path);
	assert_int_equal(mkdir(path, 0700), 0);
	harness_spawn(&run);
	struct sw_run_account *account = harness_wait(&run, SW_RUN_EXITED);
	assert_int_equal(account->run.code, 4);
	assert_non_null(strstr(account->note, "without the GPU runtime: cannot "));
	assert_non_null(strstr(account->note, "File exists"));
	sw_run_account_free(account);
	harness_close(&run);
	assert_int_equal(rmdir(path), 0);

	harness->gpu_library = "/no/such/library.so";
	harness_start(harness, harness_spec(harness, "exit 5"), &run);
	account = harness_wait(&run, SW_RUN_EXITED);
	assert_int_equal(account->run.code, 5);
	assert_non_null(strstr(account->note, "without the GPU runtime: its user cannot use '/no/such/library.so'"));
	sw_run_account_free(account);
	harness_close(&run);
}

/* Another user's job can use its page although it cannot enter the folder of its run; it is gone
 * afterwards, also after the death of its supervisor. */
static void test_other_user(void **state)
{
	struct harness *harness = *state;
	if (geteuid() != 0) {
		print_message("only root can become another user\n");
		skip();
	}
	for (int i = 0; i < 2; i++) {
		struct run run;
		struct sw_run_spec *spec =
			harness_spec(harness, i == 0 ? "stat -c '%a %u' \"$SHAREWELL_GPU\"; test -w \"$SHAREWELL_GPU\"; exit $?"
						     : "echo here; exec sleep 1000");
		spec->uid = spec->gid = 65534;
		spec->stdout_path = i == 0 ? "theirs" : "second";
		harness_start(harness, spec, &run);
		char path[160], page[256];
		struct sw_run_account *account = harness_wait(&run, SW_RUN_RUNNING);
		uint32_t supervisor = account->supervisor;
		sw_run_account_free(account);
		snprintf(path, sizeof path, "%s/gpu", run.path);
		ssize_t size = readlink(path, page, sizeof page - 1);
		if (i == 1) {
			assert_true(size > 0);
			page[size] = '\0';
			assert_int_equal(access(page, F_OK), 0);
			harness_await(harness, "second");
			kill((pid_t)supervisor, SIGKILL);
			(void)harness_ends(&run);
			harness_spawn(&run);
			(void)harness_ends(&run);
			assert_non_null(strstr(harness_run_file(&run, "exit.json"), SW_REASON_SUPERVISOR_LOST));
			assert_true(access(page, F_OK) != 0);
		} else {
			account = harness_wait(&run, SW_RUN_EXITED);
			assert_int_equal(account->run.code, 0);
			sw_run_account_free(account);
			assert_string_equal(harness_read(harness, "theirs"), "600 65534\n");
		}
		assert_true(lstat(path, &(struct stat){0}) != 0);
		harness_close(&run);
	}
}

/* ---- suspending */

static void start_counting(struct harness *harness, struct run *ret_run)
{
	harness_start(harness, harness_spec(harness, "while :; do echo x >>count; sleep 0.01; done"), ret_run);
	harness_await(harness, "count");
	free_wait(ret_run, SW_RUN_RUNNING);
}

/* A run is stopped when its processes have said that their memory is away, and not before; it comes
 * back with the wish to run. */
static void test_memory_leaves_first(void **state)
{
	struct harness *harness = *state;
	struct run run;
	start_counting(harness, &run);
	struct guest guest = enter(&run);
	for (int round = 0; round < 3; round++) {
		harness_tell(&run, "suspend %d\n", 2 * round + 1);
		await_want(&guest, SW_PAGE_SUSPEND);
		size_t before = strlen(harness_read(harness, "count"));
		while (strlen(harness_read(harness, "count")) == before)
			harness_sleep_ms(1);
		obey(&guest, SW_PAGE_SUSPENDED);
		struct sw_run_account *account = harness_wait(&run, SW_RUN_SUSPENDED);
		assert_string_equal(account->gpu, "3.00 GiB moved out of its GPUs in 250 ms");
		assert_null(account->run.detail);
		sw_run_account_free(account);
		harness_tell(&run, "resume %d\n", 2 * round + 2);
		await_want(&guest, SW_PAGE_RUN);
		free_wait(&run, SW_RUN_RUNNING);
		obey(&guest, SW_PAGE_RUNNING);
	}
	leave(&guest);
	/* A process that is gone is not waited for. */
	harness_tell(&run, "suspend 7\n");
	free_wait(&run, SW_RUN_SUSPENDED);
	harness_tell(&run, "stop 8 0 0\n");
	free_wait(&run, SW_RUN_EXITED);
	harness_close(&run);
}

/* Memory that cannot leave keeps no run from standing still; why it is there is told, and so is
 * memory that cannot come back yet. */
static void test_memory_stays(void **state)
{
	struct harness *harness = *state;
	struct run run;
	start_counting(harness, &run);
	struct guest guest = enter(&run);
	harness_tell(&run, "suspend 1\n");
	await_want(&guest, SW_PAGE_SUSPEND);
	atomic_store(&guest.slot->trouble, SW_PAGE_NO_HOST_MEMORY);
	struct sw_run_account *account = harness_wait(&run, SW_RUN_SUSPENDED);
	assert_string_equal(account->run.detail,
			    "it stands still, but its GPU memory is still held: there is no host memory for its contents");
	sw_run_account_free(account);
	atomic_store(&guest.slot->trouble, SW_PAGE_NO_GPU_MEMORY);
	harness_tell(&run, "resume 2\n");
	do
		account = harness_next(&run);
	while (account->run.detail == NULL || strstr(account->run.detail, "not back") == NULL ? (sw_run_account_free(account), true)
											      : false);
	assert_string_equal(account->run.detail, "its memory is not back on the GPU yet: others hold the GPU's memory");
	assert_int_equal(account->run.state, SW_RUN_RUNNING);
	sw_run_account_free(account);
	obey(&guest, SW_PAGE_RUNNING);
	account = harness_next(&run);
	assert_null(account->run.detail);
	assert_string_equal(account->gpu, "3.00 GiB moved back to its GPUs in 250 ms");
	sw_run_account_free(account);
	leave(&guest);
	harness_tell(&run, "stop 3 0 0\n");
	account = harness_wait(&run, SW_RUN_EXITED);
	assert_null(account->run.detail);
	sw_run_account_free(account);
	harness_close(&run);
}

/* While memory leaves, and when it is away, a run can be resumed, stopped and killed at once. */
static void test_ends_while_leaving(void **state)
{
	struct harness *harness = *state;
	for (int i = 0; i < 3; i++) {
		struct run run;
		start_counting(harness, &run);
		struct guest guest = enter(&run);
		harness_tell(&run, "suspend 1\n");
		await_want(&guest, SW_PAGE_SUSPEND);
		if (i == 0) {
			harness_tell(&run, "resume 2\n");
			await_want(&guest, SW_PAGE_RUN);
			size_t before = strlen(harness_read(harness, "count"));
			while (strlen(harness_read(harness, "count")) == before)
				harness_sleep_ms(1);
		}
		harness_tell(&run, "stop 3 0 %d\n", i == 1 ? 0 : 10000);
		struct sw_run_account *account = harness_wait(&run, SW_RUN_EXITED);
		assert_int_equal(account->run.signal, i == 1 ? SIGKILL : SIGTERM);
		assert_string_equal(account->run.reason, SW_REASON_STOPPED);
		sw_run_account_free(account);
		if (i != 1)
			assert_int_equal(atomic_load(&guest.page->want), SW_PAGE_RUN);
		leave(&guest);
		harness_close(&run);
	}
}

/* A job that shortens its page while its supervisor has it open cannot kill it: it hears orders,
 * says what the job did, and tells how it ended. */
static void test_shortened_page(void **state)
{
	struct harness *harness = *state;
	struct run run;
	start_counting(harness, &run);
	struct guest guest = enter(&run);
	assert_int_equal(ftruncate(guest.fd, 0), 0);
	harness_tell(&run, "gpu 1048576 250 1\n");
	harness_tell(&run, "suspend 1\n");
	struct sw_run_account *account = harness_wait(&run, SW_RUN_SUSPENDED);
	assert_string_equal(account->run.detail, "it stands still, but its GPU memory is still held: it has spoilt its GPU page");
	sw_run_account_free(account);
	harness_tell(&run, "resume 2\n");
	free_wait(&run, SW_RUN_RUNNING);
	leave(&guest);
	harness_tell(&run, "stop 3 0 0\n");
	account = harness_wait(&run, SW_RUN_EXITED);
	assert_string_equal(account->run.reason, SW_REASON_STOPPED);
	sw_run_account_free(account);
	harness_close(&run);
}

/* Whether it has left, or is not waited for any more, within so many seconds of being asked; if
 * not, it is asked back. */
static bool leaves_within(struct sw_supervisor *supervisor, int64_t *now_ns, int seconds)
{
	sw_supervisor_gpu_leave(supervisor, *now_ns);
	for (int i = 0; i < seconds * 10; i++, *now_ns += 100 * SW_NS_PER_MS)
		if (sw_supervisor_gpu_has_left(supervisor, *now_ns))
			return true;
	sw_supervisor_gpu_return(supervisor, *now_ns);
	*now_ns += SW_NS_PER_S;
	return false;
}

/* A process that does not answer is not waited for longer than one minute in all, also where each
 * turn is shorter; one that leaves has the whole minute the next time. */
static void test_short_turns(void **state)
{
	struct harness *harness = *state;
	static struct sw_supervisor supervisor;
	const char *uuids[] = {"GPU-11111111-1111-1111-1111-111111111111"};
	struct sw_share_page *page = NULL;
	char path[160];
	int64_t now_ns = 1000 * SW_NS_PER_S;
	int turns = 1;
	snprintf(path, sizeof path, "%s/page", harness->state);
	assert_int_equal(sw_share_page_new(path, uuids, 1, &page, NULL), 0);
	assert_int_equal(sw_share_page_open(path, &supervisor.gpu.page, NULL), 0);
	struct guest guest = enter_page(path);
	while (turns < 100 && !leaves_within(&supervisor, &now_ns, 2))
		turns++;
	assert_int_equal(turns, 31);
	assert_non_null(strstr(supervisor.gpu.detail, "did not answer"));
	assert_false(leaves_within(&supervisor, &now_ns, 50));
	sw_supervisor_gpu_leave(&supervisor, now_ns);
	obey(&guest, SW_PAGE_SUSPENDED);
	/* Nor is it stopped while it gives back what it does not need. */
	atomic_store(&guest.slot->giving, 1);
	assert_false(sw_supervisor_gpu_has_left(&supervisor, now_ns));
	atomic_store(&guest.slot->giving, 0);
	assert_true(sw_supervisor_gpu_has_left(&supervisor, now_ns));
	assert_string_equal(supervisor.gpu.detail, "");
	assert_false(leaves_within(&supervisor, &now_ns, 59));
	leave(&guest);
	sw_share_page_close(supervisor.gpu.page);
	sw_share_page_close(page);
}

/* Terms become what stands on the page: limits, a share, the runs it gives way to as paths of pages
 * that are there; and are taken back. */
static void test_terms(void **state)
{
	struct harness *harness = *state;
	struct run run, other;
	start_counting(harness, &other);
	start_counting(harness, &run);
	struct guest guest = enter(&run);
	harness_tell(&run, "gpu 1048576 250 1 %" PRIu64 ".3 4711.1 ../x\n", other.id.job);
	while (atomic_load(&guest.page->yields) == 0)
		harness_sleep_ms(1);
	assert_true(atomic_load(&guest.page->gpus[0].limit_bytes) == 1048576 && atomic_load(&guest.page->gpus[1].limit_bytes) == 1048576);
	assert_true(atomic_load(&guest.page->share_milli) == 250 && atomic_load(&guest.page->watched) == 1);
	/* An agent of root has jobs of many users; those that give way to this one can look at
	 * what it tells, and at its page never. */
	assert_string_equal(guest.page->neighbours[0], geteuid() == 0 ? told_of(&other) : page_of(&other));
	assert_int_equal(mode_of(page_of(&run)), 0600);
	if (geteuid() == 0)
		assert_int_equal(mode_of(told_of(&run)), 0644);
	assert_string_equal(guest.page->neighbours[1], "");
	/* Memory that is taken away is wanted at once. */
	assert_int_equal(atomic_load(&guest.page->urgent), 1);
	harness_tell(&run, "gpu 0 4294967295 0\n");
	while (atomic_load(&guest.page->yields) != 0)
		harness_sleep_ms(1);
	assert_int_equal(atomic_load(&guest.page->share_milli), SW_PAGE_NO_SHARE);
	assert_int_equal(atomic_load(&guest.page->urgent), 0);
	harness_tell(&run, "gpu 0 0 0\n");
	while (atomic_load(&guest.page->share_milli) != 0)
		harness_sleep_ms(1);
	assert_true(atomic_load(&guest.page->gpus[0].limit_bytes) == SW_PAGE_NO_LIMIT);
	assert_true(atomic_load(&guest.page->watched) == 0);
	assert_string_equal(guest.page->neighbours[0], "");
	if (geteuid() == 0)
		assert_int_equal(mode_of(told_of(&run)), 0600);
	/* A run of version 0.1 has no such file, and tells in its page. */
	(void)unlink(told_of(&other));
	harness_tell(&run, "gpu 0 0 0 %" PRIu64 ".3\n", other.id.job);
	while (atomic_load(&guest.page->yields) == 0)
		harness_sleep_ms(1);
	assert_string_equal(guest.page->neighbours[0], page_of(&other));
	leave(&guest);
	struct run *both[] = {&run, &other};
	for (int i = 0; i < 2; i++) {
		harness_tell(both[i], "stop 1 0 0\n");
		free_wait(both[i], SW_RUN_EXITED);
		harness_close(both[i]);
	}
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, harness_tear_down)

int main(int argc, char **argv)
{
	harness_main(argc, argv);
	find_library();
	const struct CMUnitTest tests[] = {
		TEST(test_page),
		TEST(test_without),
		TEST(test_gone_without),
		TEST(test_other_user),
		TEST(test_memory_leaves_first),
		TEST(test_memory_stays),
		TEST(test_ends_while_leaving),
		TEST(test_shortened_page),
		TEST(test_short_turns),
		TEST(test_terms),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
