/* The coordinator's end of a job's page: made, opened and refused; wishes that are heard, missed or
 * outlived; figures that the job cannot spoil. */
#include "share/page.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "share/terms.h"

#define SECOND INT64_C(1000000000)
#define UUID "GPU-00112233-4455-6677-8899-aabbccddeeff"

static char folder[64], path[96];

static int set_up(void **state)
{
	(void)state;
	snprintf(folder, sizeof folder, "/tmp/sw-page-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/page", folder);
	return 0;
}

static int clean_up(void **state)
{
	char command[128];
	(void)state;
	snprintf(command, sizeof command, "rm -rf '%s'", folder);
	return system(command);
}

static struct sw_share_page *make(void)
{
	const char *const uuids[] = {UUID, "ffeeddccbbaa99887766554433221100"};
	struct sw_share_page *page = NULL;
	assert_int_equal(sw_share_page_new(path, uuids, 2, &page, NULL), 0);
	return page;
}

/* As a process of the job has it. */
static struct sw_page *map_raw(void)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	struct sw_page *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(shared != MAP_FAILED);
	close(fd);
	return shared;
}

/* A new page is the owner's alone, names the GPUs and limits nothing; opened again it is the
 * same. */
static void test_a_page_is_made_and_opened(void **state)
{
	(void)state;
	SW_CLEANUP(sw_share_page_closep) struct sw_share_page *page = make();
	struct stat about;
	assert_int_equal(stat(path, &about), 0);
	assert_int_equal(about.st_mode & 0777, 0600);
	const struct sw_page *shared = map_raw();
	const uint8_t first[16] = {0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff};
	assert_memory_equal(shared->gpus[0].uuid, first, sizeof first);
	assert_int_equal(shared->gpus[1].uuid[0], 0xff);
	struct sw_share_figures figures;
	sw_share_page_look(page, &figures);
	assert_int_equal(figures.gpu_count, 2);
	assert_int_equal(figures.processes, 0);
	assert_false(figures.wants_suspend);
	assert_true(figures.gpus[0].limit_bytes == SW_PAGE_NO_LIMIT && figures.gpus[1].limit_bytes == SW_PAGE_NO_LIMIT);

	/* What one coordinator wished the next one finds. */
	sw_share_page_limit(page, 1, 12345678);
	sw_share_page_want(page, SW_PAGE_SUSPEND);
	SW_CLEANUP(sw_share_page_closep) struct sw_share_page *again = NULL;
	assert_int_equal(sw_share_page_open(path, &again, NULL), 0);
	sw_share_page_look(again, &figures);
	assert_true(figures.wants_suspend);
	assert_true(figures.gpus[0].limit_bytes == SW_PAGE_NO_LIMIT && figures.gpus[1].limit_bytes == 12345678);
}

static void assert_refused(int code, const char *const *uuids, size_t count, const char *words)
{
	struct sw_err err = {0};
	struct sw_share_page *page = NULL;
	char text[2048];
	assert_int_equal(sw_share_page_new(path, uuids, count, &page, &err), code);
	assert_null(page);
	sw_err_format(&err, text, sizeof text);
	if (strstr(text, words) == NULL)
		fail_msg("'%s' does not say '%s'", text, words);
}

/* A page is not made over another file, for something that is no UUID, or for too many GPUs;
 * nothing is left behind. */
static void test_pages_that_are_not_made(void **state)
{
	(void)state;
	static const char *const wrong[] = {"",
					    "GPU-",
					    "GPU-00112233-4455-6677-8899-aabbccddeef",
					    UUID "0",
					    "GPU-00112233-4455-6677-8899-aabbccddeefg",
					    "MIG-00112233-4455-6677-8899-aabbccddeeff"};
	const char *many[SW_PAGE_GPUS + 1];
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		assert_refused(SW_EINPUT, &wrong[i], 1, "is not the UUID of a GPU");
		assert_int_not_equal(access(path, F_OK), 0);
	}
	for (size_t i = 0; i < SW_PAGE_GPUS + 1; i++)
		many[i] = UUID;
	assert_refused(SW_ELIMIT, many, SW_PAGE_GPUS + 1, "17 GPUs");
	assert_int_not_equal(access(path, F_OK), 0);
	SW_CLEANUP(sw_share_page_closep) struct sw_share_page *page = make();
	assert_refused(SW_EIO, many, 1, "File exists");
	assert_int_equal(access(path, F_OK), 0);
	snprintf(path, sizeof path, "%s/none/page", folder);
	assert_refused(SW_ENOTFOUND, many, 1, "No such file");
}

static void assert_not_opened(int code)
{
	struct sw_err err = {0};
	struct sw_share_page *page = NULL;
	assert_int_equal(sw_share_page_open(path, &page, &err), code);
	assert_null(page);
	assert_int_not_equal(err.fact[0], 0);
}

/* What is no page, or one of another make, is not opened. */
static void test_files_that_are_no_pages(void **state)
{
	(void)state;
	assert_not_opened(SW_ENOTFOUND);
	sw_share_page_close(make());
	struct sw_page *shared = map_raw();
	shared->format++;
	assert_not_opened(SW_EINPUT);
	shared->format--;
	shared->gpu_count = SW_PAGE_GPUS + 1;
	assert_not_opened(SW_EINPUT);
	shared->gpu_count = 2;
	shared->magic ^= 1;
	assert_not_opened(SW_EINPUT);
	shared->magic ^= 1;
	SW_CLEANUP(sw_share_page_closep) struct sw_share_page *good = NULL;
	assert_int_equal(sw_share_page_open(path, &good, NULL), 0);
	assert_int_equal(truncate(path, sizeof(struct sw_page) - 1), 0);
	assert_not_opened(SW_EINPUT);
	assert_int_equal(truncate(path, 0), 0);
	assert_not_opened(SW_EINPUT);
	/* Nor a link to one, nor a folder. */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("/etc/hostname", path), 0);
	assert_not_opened(SW_EIO);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_not_opened(SW_EIO);
}

/* Wishes are numbered and stand in the page; a GPU that the page does not have is of no process. */
static void test_wishes(void **state)
{
	(void)state;
	SW_CLEANUP(sw_share_page_closep) struct sw_share_page *page = make();
	struct sw_page *shared = map_raw();
	uint32_t first = sw_share_page_limit(page, 0, 1000), second = sw_share_page_host_budget(page, 77);
	assert_int_equal(second, first + 1);
	assert_int_equal(atomic_load(&shared->serial), second);
	assert_int_equal(atomic_load(&shared->gpus[0].limit_bytes), 1000);
	assert_int_equal(atomic_load(&shared->host_budget_bytes), 77);
	sw_share_page_limit(page, SW_PAGE_GPUS, 5);
	sw_share_page_limit(page, UINT32_MAX, 5);
	sw_share_page_want(page, SW_PAGE_SUSPEND);
	assert_int_equal(atomic_load(&shared->want), SW_PAGE_SUSPEND);
	assert_int_equal(sw_share_page_want(page, SW_PAGE_RUN), second + 4);
	/* No process is there: all is met. */
	assert_true(sw_share_page_wait(page, second + 4, 0));
}

/* A process of the job: takes a place, writes what `fill` says, and lives until it is killed. */
static pid_t start_process(uint32_t number, void (*fill)(struct sw_page_slot *slot))
{
	int pipes[2];
	char word = 0;
	assert_int_equal(pipe(pipes), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		int fd = open(path, O_RDWR | O_CLOEXEC);
		struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 1 + (off_t)number, .l_len = 1};
		struct sw_page *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (fcntl(fd, F_OFD_SETLK, &lock) != 0 || shared == MAP_FAILED)
			_exit(1);
		fill(&shared->slots[number]);
		atomic_store(&shared->slots[number].pid, getpid());
		if (write(pipes[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(pipes[1]);
	assert_int_equal(read(pipes[0], &word, 1), 1);
	close(pipes[0]);
	return pid;
}

static void end_process(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void hold_some(struct sw_page_slot *slot)
{
	atomic_store(&slot->state, SW_PAGE_SUSPENDED);
	atomic_store(&slot->trouble, SW_PAGE_NO_GPU_MEMORY);
	atomic_store(&slot->launches, 5);
	atomic_store(&slot->moved_bytes, 6);
	atomic_store(&slot->move_ns, 7);
	atomic_store(&slot->gpus[0].charged_bytes, 100);
	atomic_store(&slot->gpus[1].host_bytes, 50);
}

/* A process that has not heard is waited for; one that died is not, and what it held is gone. */
static void test_waiting_for_processes(void **state)
{
	(void)state;
	SW_CLEANUP(sw_share_page_closep) struct sw_share_page *page = make();
	struct sw_page *shared = map_raw();
	struct sw_share_figures figures;
	pid_t one = start_process(3, hold_some), two = start_process(SW_PAGE_SLOTS - 1, hold_some);
	uint32_t wish = sw_share_page_want(page, SW_PAGE_SUSPEND);
	sw_share_page_look(page, &figures);
	assert_int_equal(figures.processes, 2);
	assert_int_equal(figures.suspended, 2);
	assert_int_equal(figures.trouble, SW_PAGE_NO_GPU_MEMORY);
	assert_int_equal(figures.launches, 10);
	assert_int_equal(figures.moved_bytes, 12);
	assert_int_equal(figures.move_ns, 7);
	assert_int_equal(figures.gpus[0].charged_bytes, 200);
	assert_int_equal(figures.gpus[1].host_bytes, 100);
	assert_false(sw_share_page_wait(page, wish, SECOND / 100));
	atomic_store(&shared->slots[3].done_serial, wish);
	assert_false(sw_share_page_wait(page, wish, SECOND / 100));
	end_process(two);
	assert_true(sw_share_page_wait(page, wish, 10 * SECOND));
	sw_share_page_look(page, &figures);
	assert_int_equal(figures.processes, 1);
	assert_int_equal(figures.gpus[0].charged_bytes, 100);
	assert_int_equal(atomic_load(&shared->slots[SW_PAGE_SLOTS - 1].pid), 0);
	assert_int_equal(atomic_load(&shared->slots[SW_PAGE_SLOTS - 1].gpus[0].charged_bytes), 0);
	end_process(one);
	sw_share_page_look(page, &figures);
	assert_int_equal(figures.processes, 0);
	assert_int_equal(figures.gpus[0].charged_bytes, 0);
}

/* Numbers of wishes go round without a process waiting for ever. */
static void test_wish_numbers_go_round(void **state)
{
	(void)state;
	SW_CLEANUP(sw_share_page_closep) struct sw_share_page *page = make();
	struct sw_page *shared = map_raw();
	pid_t pid = start_process(0, hold_some);
	atomic_store(&shared->serial, UINT32_MAX);
	atomic_store(&shared->slots[0].done_serial, UINT32_MAX);
	uint32_t wish = sw_share_page_want(page, SW_PAGE_RUN);
	assert_int_equal(wish, 0);
	assert_false(sw_share_page_wait(page, wish, SECOND / 100));
	atomic_store(&shared->slots[0].done_serial, 1);
	assert_true(sw_share_page_wait(page, wish, 0));
	end_process(pid);
}

static void write_nonsense(struct sw_page_slot *slot)
{
	memset(slot, 0xff, sizeof *slot);
	atomic_store(&slot->move_ns, INT64_MAX);
}

/* Whatever a job writes into its page, its figures stay numbers that can be added up and shown. */
static void test_nonsense_is_bounded(void **state)
{
	(void)state;
	enum { LIARS = 5 };
	SW_CLEANUP(sw_share_page_closep) struct sw_share_page *page = make();
	struct sw_page *shared = map_raw();
	struct sw_share_figures figures;
	pid_t pids[LIARS];
	for (uint32_t i = 0; i < LIARS; i++)
		pids[i] = start_process(i, write_nonsense);
	shared->gpu_count = UINT32_MAX;
	atomic_store(&shared->want, 0xffffffff);
	atomic_store(&shared->gpus[0].limit_bytes, UINT64_MAX - 1);
	sw_share_page_look(page, &figures);
	const uint64_t most = (uint64_t)INT64_MAX / SW_PAGE_SLOTS * LIARS;
	assert_int_equal(figures.processes, LIARS);
	assert_int_equal(figures.suspended, 0);
	assert_true(figures.gpu_count <= SW_PAGE_GPUS);
	assert_false(figures.wants_suspend);
	assert_true(figures.gpus[0].limit_bytes == SW_PAGE_NO_LIMIT);
	assert_string_not_equal(sw_share_trouble(figures.trouble), "unknown");
	assert_true(figures.launches <= most && figures.waits <= most && figures.moved_bytes <= most);
	assert_true(figures.move_ns >= 0 && figures.move_ns < INT64_MAX);
	for (uint32_t i = 0; i < figures.gpu_count; i++)
		assert_true(figures.gpus[i].charged_bytes <= most && figures.gpus[i].fixed_bytes <= most &&
			    figures.gpus[i].host_bytes <= most && figures.gpus[i].peak_bytes <= most);
	for (uint32_t i = 0; i < LIARS; i++)
		end_process(pids[i]);
	/* A place that a process claims without holding it is free. */
	atomic_store(&shared->slots[9].pid, 1);
	assert_true(sw_share_page_wait(page, sw_share_page_want(page, SW_PAGE_RUN), 0));
	sw_share_page_look(page, &figures);
	assert_int_equal(figures.processes, 0);
}

/* A copy states the same wishes and sees the same figures; a page that was cut off
 * does no harm to its owner. */
static void test_a_copy(void **state)
{
	(void)state;
	SW_CLEANUP(sw_share_page_closep) struct sw_share_page *made = make(), *page = NULL;
	struct sw_page *shared = map_raw();
	struct sw_share_figures figures;
	char longest[SW_PAGE_PATH + 1] = "/";
	memset(longest, 'x', SW_PAGE_PATH);
	const char *const paths[] = {"/a", longest, "/b"};
	assert_int_equal(sw_share_page_open(path, &page, NULL), 0);
	uint32_t before = atomic_load(&shared->serial);
	uint32_t number = sw_share_page_want(page, SW_PAGE_SUSPEND);
	assert_true(number == before + 1 && atomic_load(&shared->serial) == number && atomic_load(&shared->want) == SW_PAGE_SUSPEND);
	sw_share_page_limit(page, 1, 4096);
	sw_share_page_host_budget(page, 77);
	sw_share_page_share(page, 250);
	sw_share_page_watch(page, true);
	assert_int_equal(sw_share_page_yield(page, paths, 3), number + 5);
	assert_true(atomic_load(&shared->gpus[1].limit_bytes) == 4096 && atomic_load(&shared->host_budget_bytes) == 77);
	assert_true(atomic_load(&shared->share_milli) == 250 && atomic_load(&shared->watched) == 1 && atomic_load(&shared->yields) == 1);
	assert_string_equal(shared->neighbours[0], "/a");
	assert_string_equal(shared->neighbours[1], "/b");
	assert_string_equal(shared->neighbours[2], "");
	sw_share_page_yield(page, NULL, 0);
	assert_true(atomic_load(&shared->yields) == 0 && shared->neighbours[0][0] == '\0');
	/* A process that is gone is struck out for all. */
	atomic_store(&shared->slots[9].pid, 1);
	atomic_store(&shared->slots[9].gpus[0].charged_bytes, 5);
	atomic_store(&shared->slots[9].state, SW_PAGE_RUNNING);
	assert_true(sw_share_page_is_met(page, number));
	assert_true(atomic_load(&shared->slots[9].pid) == 0 && atomic_load(&shared->slots[9].gpus[0].charged_bytes) == 0);
	/* Cut off, and after that wished for. */
	assert_int_equal(truncate(path, 0), 0);
	assert_false(sw_share_page_refresh(page));
	sw_share_page_look(page, &figures);
	assert_true(figures.processes == 0 && figures.gpu_count == 0);
	number = sw_share_page_want(page, SW_PAGE_RUN);
	assert_false(sw_share_page_wait(page, number, SECOND / 100));
	SW_CLEANUP(sw_share_page_closep) struct sw_share_page *again = NULL;
	assert_int_equal(sw_share_page_open(path, &again, NULL), SW_EINPUT);
	assert_null(again);
	munmap(shared, sizeof *shared);
}

/* What a job's user puts in place of its page, or does to it, makes no program wait or fail that
 * opens it. */
static void test_what_stands_in_its_place(void **state)
{
	(void)state;
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_not_opened(SW_EIO);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("/dev/zero", path), 0);
	assert_not_opened(SW_EIO);
	assert_int_equal(unlink(path), 0);
	/* A lease of the owner's makes every program wait that opens the file, for the better
	 * part of a minute, unless it says that it does not. */
	sw_share_page_close(make());
	signal(SIGIO, SIG_IGN);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fcntl(fd, F_SETLEASE, F_WRLCK) == 0)
		assert_not_opened(SW_EIO);
	close(fd);
	/* Huge, it would leave no room for the pages of others. */
	struct stat status;
	SW_CLEANUP(sw_share_page_closep) struct sw_share_page *page = NULL;
	assert_int_equal(truncate(path, 1 << 30), 0);
	assert_int_equal(sw_share_page_open(path, &page, NULL), 0);
	assert_int_equal(stat(path, &status), 0);
	assert_in_range(status.st_size, sizeof(struct sw_page), 4 * sizeof(struct sw_page));
	/* It is whole for those that have it mapped. */
	struct sw_page *shared = map_raw();
	assert_int_equal(shared->slots[SW_PAGE_SLOTS - 1].pid, 0);
	munmap(shared, sizeof *shared);
}

/* Every byte of it may be anything: what is read are numbers within bounds, and no more
 * processes than there are slots. */
static void test_garbage(void **state)
{
	(void)state;
	struct sw_page *shared = NULL;
	for (unsigned round = 0; round < 20; round++) {
		SW_CLEANUP(sw_share_page_closep) struct sw_share_page *made = make(), *page = NULL;
		assert_int_equal(sw_share_page_open(path, &page, NULL), 0);
		shared = map_raw();
		uint32_t word = 2463534242u + round;
		unsigned char *bytes = (unsigned char *)shared;
		/* In every other round it still says that it is a page. */
		for (size_t i = round % 2 == 0 ? 0 : 16; i < sizeof *shared; i++) {
			word ^= word << 13, word ^= word >> 17, word ^= word << 5;
			bytes[i] = round < 2 ? 0xff : (unsigned char)word;
		}
		/* As if all of them lived. */
		struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 1, .l_len = SW_PAGE_SLOTS};
		int fd = open(path, O_RDWR | O_CLOEXEC);
		assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0);
		struct sw_share_figures figures;
		struct sw_share_terms terms;
		struct sw_share_orders orders;
		sw_share_page_look(page, &figures);
		sw_share_terms_get(page, &terms);
		sw_share_orders_get(page, &orders);
		assert_true(figures.processes <= SW_PAGE_SLOTS && figures.gpu_count <= SW_PAGE_GPUS);
		assert_true(figures.suspended + figures.running <= figures.processes && figures.move_ns >= 0 && figures.iteration_ns >= 0);
		for (uint32_t i = 0; i < figures.gpu_count; i++)
			assert_true(figures.gpus[i].charged_bytes <= (UINT64_C(1) << 60) &&
				    figures.gpus[i].host_bytes <= (UINT64_C(1) << 60));
		assert_true(terms.asked_milli < 1000 && orders.share_milli <= 1000 && orders.neighbour_count <= SW_PAGE_NEIGHBOURS);
		orders.neighbour_count = 0;
		(void)sw_share_orders_give(page, &orders);
		(void)sw_share_page_wait(page, sw_share_page_want(page, SW_PAGE_RUN), 0);
		close(fd);
		munmap(shared, sizeof *shared);
		assert_int_equal(unlink(path), 0);
	}
}

/* What a job tells those of other users stands in a file that others can be let to read; a
 * process that is gone says nothing there any more. */
static void test_told(void **state)
{
	(void)state;
	char told[PATH_MAX];
	struct stat status;
	sw_share_page_close(make());
	assert_int_equal(sw_share_page_new_told(path, geteuid(), getegid(), NULL), 0);
	assert_true(sw_share_page_told(path, told));
	assert_int_equal(stat(told, &status), 0);
	assert_true((status.st_mode & 0777) == 0600 && status.st_size == sizeof(struct sw_page));
	struct sw_err err = {0};
	assert_int_equal(sw_share_page_new_told(path, geteuid(), getegid(), &err), SW_EIO);
	SW_CLEANUP(sw_share_page_closep) struct sw_share_page *page = NULL;
	assert_int_equal(sw_share_page_open(path, &page, NULL), 0);
	int fd = open(told, O_RDWR | O_CLOEXEC);
	struct sw_page *shared = map_raw(), *tells = mmap(NULL, sizeof *tells, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(fd >= 0 && tells != MAP_FAILED);
	assert_true(tells->magic == SW_PAGE_MAGIC && tells->format == SW_PAGE_FORMAT && tells->gpu_count == 0);
	atomic_store(&shared->slots[9].pid, 1);
	atomic_store(&tells->slots[9].pid, 1);
	atomic_store(&tells->slots[9].busy, 1);
	struct sw_share_figures figures;
	sw_share_page_look(page, &figures);
	assert_int_equal(atomic_load(&tells->slots[9].pid), 0);
	munmap(shared, sizeof *shared);
	munmap(tells, sizeof *tells);
	close(fd);
	assert_int_equal(truncate(told, 1 << 30), 0);
	sw_share_page_look(page, &figures);
	assert_int_equal(stat(told, &status), 0);
	assert_true(status.st_size < 1 << 23);
}

/* Every trouble has words of its own. */
static void test_words_for_trouble(void **state)
{
	(void)state;
	for (uint32_t i = 0; i <= SW_PAGE_DRIVER_ERROR; i++)
		for (uint32_t j = 0; j <= i; j++)
			assert_int_equal(strcmp(sw_share_trouble(i), sw_share_trouble(j)) == 0, i == j);
	assert_string_equal(sw_share_trouble(SW_PAGE_DRIVER_ERROR + 1), "unknown");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, clean_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_a_page_is_made_and_opened),
		CASE(test_pages_that_are_not_made),
		CASE(test_files_that_are_no_pages),
		CASE(test_wishes),
		CASE(test_waiting_for_processes),
		CASE(test_wish_numbers_go_round),
		CASE(test_nonsense_is_bounded),
		CASE(test_words_for_trouble),
		CASE(test_a_copy),
		CASE(test_what_stands_in_its_place),
		CASE(test_garbage),
		CASE(test_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
