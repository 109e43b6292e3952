/* The shares of a folder, coordinated by one of their keepers: terms become orders, a second keeper
 * waits for its turn to decide, pages without a keeper are left alone. */
#include "share/folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "share/terms.h"

#define MIB (UINT64_C(1) << 20)
#define SECOND INT64_C(1000000000)

static char folder[64];
static int64_t now;

static int set_up(void **state)
{
	(void)state;
	snprintf(folder, sizeof folder, "/tmp/sw-folder-XXXXXX");
	assert_non_null(mkdtemp(folder));
	now = 100 * SECOND;
	return 0;
}

static int clean_up(void **state)
{
	char command[128];
	(void)state;
	snprintf(command, sizeof command, "rm -rf '%s'", folder);
	return system(command);
}

/* A share with one process, as its keeper and the process have it. */
struct share {
	char path[96];
	struct sw_share_page *page;
	struct sw_page *shared;
	struct sw_page_slot *slot;
	int keeper, process;
};

static int lock_byte(const char *path, off_t byte)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
	int fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0 && fcntl(fd, F_OFD_SETLK, &lock) == 0);
	return fd;
}

static struct share make(const char *name, enum sw_job_class class, uint64_t bytes)
{
	const char *const uuids[] = {"GPU-00112233-4455-6677-8899-aabbccddeeff", "ffeeddccbbaa99887766554433221100"};
	struct share share = {0};
	struct sw_share_terms terms = {
		.class = class, .throttle = &sw_throttle_yield, .asked_bytes = SW_PAGE_NO_LIMIT, .arrived_ns = ++now};
	snprintf(share.path, sizeof share.path, "%s/%s", folder, name);
	assert_int_equal(sw_share_page_new(share.path, uuids, 2, &share.page, NULL), 0);
	sw_share_terms_set(share.page, &terms);
	share.shared = sw_share_page_shared(share.page);
	share.slot = &share.shared->slots[5];
	share.keeper = lock_byte(share.path, 0);
	share.process = lock_byte(share.path, 1 + 5);
	atomic_store(&share.slot->state, SW_PAGE_RUNNING);
	atomic_store(&share.slot->gpus[0].charged_bytes, bytes);
	atomic_store(&share.slot->gpus[0].peak_bytes, bytes);
	atomic_store(&share.slot->pid, getpid());
	return share;
}

static void end(struct share *share)
{
	close(share->keeper);
	close(share->process);
	sw_share_page_close(share->page);
	unlink(share->path);
}

static const struct sw_share_memory memories[] = {
	{.uuid = {0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff},
	 .capacity_bytes = 1024 * MIB},
	{.uuid = {0xff, 0xee, 0xdd, 0xcc, 0xbb, 0xaa, 0x99, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0x00},
	 .capacity_bytes = 1024 * MIB},
};

static void ticks(struct sw_share_folder *keeper, unsigned count)
{
	for (unsigned i = 0; i < count; i++, now += SW_SHARE_TICK_NS)
		sw_share_folder_tick(keeper, memories, 2, now);
}

static struct sw_share_folder *keep(void)
{
	struct sw_share_folder *keeper = NULL;
	assert_int_equal(sw_share_folder_new(folder, &keeper, NULL), 0);
	return keeper;
}

/* An opportunistic share yields to the guaranteed one on its GPU and leaves it room; the guaranteed
 * one is watched and not limited. */
static void test_orders_reach_the_pages(void **state)
{
	(void)state;
	struct share high = make("high", SW_CLASS_GUARANTEED, 300 * MIB), low = make("low", SW_CLASS_OPPORTUNISTIC, 200 * MIB);
	struct sw_share_folder *keeper = keep();
	uint32_t before = atomic_load(&low.shared->serial);
	ticks(keeper, 1);
	assert_int_equal(atomic_load(&low.shared->yields), 1);
	assert_string_equal(low.shared->neighbours[0], high.path);
	assert_int_equal(atomic_load(&low.shared->share_milli), SW_PAGE_NO_SHARE);
	assert_int_equal(atomic_load(&high.shared->watched), 1);
	assert_true(atomic_load(&high.shared->gpus[0].limit_bytes) == SW_PAGE_NO_LIMIT);
	assert_int_equal(atomic_load(&low.shared->gpus[0].limit_bytes), (1024 - 300 - 64) * MIB);
	assert_true(atomic_load(&low.shared->serial) != before);
	/* Once the other had time to hear that it is watched. */
	ticks(keeper, 5);
	assert_int_equal(atomic_load(&low.shared->share_milli), 0);
	/* Nothing changes, nothing is told. */
	before = atomic_load(&low.shared->serial);
	ticks(keeper, 5);
	assert_int_equal(atomic_load(&low.shared->serial), before);
	/* A process that was killed holds nothing any more. */
	close(high.process);
	high.process = -1;
	ticks(keeper, 1);
	assert_int_equal(atomic_load(&high.slot->pid), 0);
	assert_int_equal(atomic_load(&low.shared->yields), 0);
	sw_share_folder_free(keeper);
	end(&high);
	end(&low);
}

/* A share that waits for room for its context, where another of its class fills
 * the GPU, gets its turn. */
static void test_a_context_without_room(void **state)
{
	(void)state;
	struct share full = make("full", SW_CLASS_GUARANTEED, 1000 * MIB), late = make("late", SW_CLASS_GUARANTEED, 0);
	struct sw_share_folder *keeper = keep();
	ticks(keeper, 2);
	assert_int_equal(atomic_load(&full.shared->want) + atomic_load(&late.shared->want), SW_PAGE_RUN);
	atomic_store(&late.slot->wanted_gpu, 0);
	atomic_store(&late.slot->wanted_bytes, 100 * MIB);
	ticks(keeper, 2);
	assert_int_equal(atomic_load(&full.shared->want), SW_PAGE_RUN);
	assert_int_equal(atomic_load(&late.shared->want), SW_PAGE_SUSPEND);
	atomic_store(&late.slot->state, SW_PAGE_SUSPENDED);
	ticks(keeper, (unsigned)(SW_TURNS_QUANTUM_NS / SW_SHARE_TICK_NS) + 1);
	assert_int_equal(atomic_load(&full.shared->want), SW_PAGE_SUSPEND);
	atomic_store(&full.slot->state, SW_PAGE_SUSPENDED);
	atomic_store(&full.slot->gpus[0].charged_bytes, 0);
	atomic_store(&full.slot->gpus[0].host_bytes, 1000 * MIB);
	ticks(keeper, 2);
	assert_int_equal(atomic_load(&late.shared->want), SW_PAGE_RUN);
	sw_share_folder_free(keeper);
	end(&full);
	end(&late);
}

/* One decides; another takes over when it stands back or is gone. */
static void test_one_decides(void **state)
{
	(void)state;
	struct share share = make("share", SW_CLASS_GUARANTEED, 10 * MIB);
	struct sw_share_folder *first = keep(), *second = keep();
	assert_true(sw_share_folder_leads(first));
	assert_false(sw_share_folder_leads(second));
	sw_share_folder_stand_back(first);
	assert_true(sw_share_folder_leads(second));
	assert_false(sw_share_folder_leads(first));
	sw_share_folder_free(second);
	assert_true(sw_share_folder_leads(first));
	sw_share_folder_free(first);
	end(&share);
}

/* While a process makes or changes shares nothing is decided; a page without a keeper, or no
 * page at all, does no harm. */
static void test_what_is_left_alone(void **state)
{
	(void)state;
	struct share high = make("high", SW_CLASS_GUARANTEED, 300 * MIB), low = make("low", SW_CLASS_OPPORTUNISTIC, 200 * MIB);
	struct sw_share_folder *keeper = keep();
	char path[128];
	snprintf(path, sizeof path, "%s/broken", folder);
	close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	int lock = sw_share_folder_lock(folder, true);
	ticks(keeper, 3);
	assert_int_equal(atomic_load(&low.shared->yields), 0);
	assert_int_equal(sw_share_folder_lock(folder, false), -1);
	sw_share_folder_unlock(lock);
	ticks(keeper, 1);
	assert_int_equal(atomic_load(&low.shared->yields), 1);
	close(low.keeper);
	low.keeper = -1;
	atomic_store(&low.shared->yields, 7);
	ticks(keeper, 3);
	assert_int_equal(atomic_load(&low.shared->yields), 7);
	sw_share_folder_free(keeper);
	end(&high);
	end(&low);
}

/* Another page under a name that was there before is another share. */
static void test_a_name_used_again(void **state)
{
	(void)state;
	struct share low = make("low", SW_CLASS_OPPORTUNISTIC, 100 * MIB), high = make("high", SW_CLASS_GUARANTEED, 300 * MIB);
	struct sw_share_folder *keeper = keep();
	ticks(keeper, 1);
	assert_int_equal(atomic_load(&high.shared->watched), 1);
	end(&high);
	ticks(keeper, 1);
	assert_int_equal(atomic_load(&low.shared->yields), 0);
	high = make("high", SW_CLASS_GUARANTEED, 300 * MIB);
	ticks(keeper, 1);
	assert_int_equal(atomic_load(&high.shared->watched), 1);
	assert_int_equal(atomic_load(&low.shared->yields), 1);
	sw_share_folder_free(keeper);
	end(&high);
	end(&low);
}

/* A share that uses another GPU is neither disturbed nor disturbing. */
static void test_another_gpu(void **state)
{
	(void)state;
	struct share low = make("low", SW_CLASS_OPPORTUNISTIC, 100 * MIB), high = make("high", SW_CLASS_GUARANTEED, 0);
	struct sw_share_folder *keeper = keep();
	atomic_store(&high.slot->gpus[1].charged_bytes, 500 * MIB);
	ticks(keeper, 3);
	assert_int_equal(atomic_load(&low.shared->yields), 0);
	assert_int_equal(atomic_load(&low.shared->share_milli), 0);
	/* But what it could take there soon is bounded even now. */
	assert_int_equal(atomic_load(&low.shared->gpus[1].limit_bytes), (1024 - 500 - 64) * MIB);
	assert_int_equal(atomic_load(&low.shared->gpus[0].limit_bytes), 1024 * MIB);
	sw_share_folder_free(keeper);
	end(&high);
	end(&low);
}

/* What a user changes is ordered at once as far as it is less, and what a
 * person suspended stays so. */
static void test_terms_change(void **state)
{
	(void)state;
	struct share share = make("share", SW_CLASS_GUARANTEED, 10 * MIB);
	struct sw_share_folder *keeper = keep();
	struct sw_share_terms terms, read;
	struct sw_share_orders orders;
	ticks(keeper, 1);
	sw_share_terms_get(share.page, &terms);
	terms.asked_bytes = 5 * MIB;
	terms.asked_milli = 250;
	terms.held = true;
	terms.slice_s = 9;
	sw_share_terms_change(share.page, &terms);
	sw_share_terms_get(share.page, &read);
	assert_true(read.class == terms.class && read.throttle == terms.throttle && read.asked_bytes == 5 * MIB && read.asked_milli == 250);
	assert_true(read.held && read.slice_s == 9 && read.arrived_ns == terms.arrived_ns);
	for (unsigned i = 0; i < 2; i++) {
		sw_share_orders_get(share.page, &orders);
		assert_int_equal(orders.limit_bytes[0], 5 * MIB);
		assert_int_equal(orders.share_milli, 250);
		assert_true(orders.suspend);
		ticks(keeper, 2);
	}
	terms.held = false;
	sw_share_terms_change(share.page, &terms);
	sw_share_orders_get(share.page, &orders);
	assert_false(orders.suspend);
	/* Of an opportunistic one only less is sure; more is for the coordinator to say. */
	terms.class = SW_CLASS_OPPORTUNISTIC;
	terms.asked_bytes = SW_PAGE_NO_LIMIT;
	terms.asked_milli = 0;
	sw_share_terms_change(share.page, &terms);
	sw_share_orders_get(share.page, &orders);
	assert_int_equal(orders.limit_bytes[0], 5 * MIB);
	assert_int_equal(orders.share_milli, 250);
	ticks(keeper, 1);
	sw_share_orders_get(share.page, &orders);
	assert_int_equal(orders.limit_bytes[0], 1024 * MIB);
	assert_int_equal(orders.share_milli, 1000);
	sw_share_folder_free(keeper);
	end(&share);
}

/* Whatever a job writes into its page, its terms are such. */
static void test_terms_are_not_trusted(void **state)
{
	(void)state;
	struct share share = make("share", SW_CLASS_GUARANTEED, 10 * MIB);
	struct sw_share_terms terms;
	struct sw_share_orders orders;
	atomic_store(&share.shared->job_class, 200);
	atomic_store(&share.shared->throttle, 255);
	atomic_store(&share.shared->asked_milli, 5000);
	atomic_store(&share.shared->share_milli, 4000);
	atomic_store(&share.shared->yields, 1);
	memset(share.shared->neighbours, 'x', sizeof share.shared->neighbours);
	sw_share_terms_get(share.page, &terms);
	sw_share_orders_get(share.page, &orders);
	assert_int_equal(terms.class, SW_CLASS_GUARANTEED);
	assert_non_null(terms.throttle);
	assert_int_equal(terms.asked_milli, 0);
	assert_int_equal(orders.share_milli, 1000);
	assert_int_equal(orders.neighbour_count, SW_PAGE_NEIGHBOURS);
	end(&share);
}

/* A program that shortens its page, fills it with anything or puts something else in its place
 * is left out, also where its keeper decides: the others are coordinated. */
static void test_spoilt_pages(void **state)
{
	(void)state;
	struct share bad = make("bad", SW_CLASS_GUARANTEED, 10 * MIB), high = make("high", SW_CLASS_GUARANTEED, 300 * MIB);
	struct share low = make("low", SW_CLASS_OPPORTUNISTIC, 200 * MIB);
	struct sw_share_folder *keeper = keep();
	ticks(keeper, 1);
	for (unsigned i = 0; i < 3; i++) {
		if (i == 0)
			assert_int_equal(truncate(bad.path, 0), 0);
		else if (i == 1)
			assert_int_equal(unlink(bad.path) + mkfifo(bad.path, 0600), 0);
		else
			assert_int_equal(unlink(bad.path) + symlink("/dev/zero", bad.path), 0);
		atomic_store(&low.shared->yields, 0);
		memset(low.shared->neighbours, 0, sizeof low.shared->neighbours);
		ticks(keeper, 2);
		assert_int_equal(atomic_load(&low.shared->yields), 1);
		assert_string_equal(low.shared->neighbours[0], high.path);
		assert_string_equal(low.shared->neighbours[1], "");
	}
	sw_share_folder_free(keeper);
	end(&bad);
	end(&high);
	end(&low);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, clean_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_orders_reach_the_pages), CASE(test_a_context_without_room), CASE(test_one_decides),
		CASE(test_what_is_left_alone),	   CASE(test_a_name_used_again),      CASE(test_another_gpu),
		CASE(test_terms_change),	   CASE(test_terms_are_not_trusted),  CASE(test_spoilt_pages),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
