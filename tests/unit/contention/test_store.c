/* Measured profiles: what is stored, what follows from several runs, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/number.h"
#include "contention/store.h"

#define MIB (UINT64_C(1) << 20)

static const struct sw_measured good = {
	.wall_ns = 60 * SW_NS_PER_S,
	.cores_milli = 1500,
	.host_bytes = 4096 * MIB,
	.iteration_ns = 50 * SW_NS_PER_MS,
	.busy_milli = 300,
	.floor_bytes = 500 * MIB,
	.peak_bytes = 2000 * MIB,
	.pcie_milli = 20,
};

static void count(struct sw_measured *run)
{
	run->sm_milli = 110;
	run->mem_pipe_milli = 290;
	run->l2_milli = 130;
	run->dram_read_milli = 140;
	run->dram_write_milli = 1;
}

static struct sw_store *empty(void)
{
	struct sw_store *store = NULL;
	assert_int_equal(sw_store_parse("s.yaml", "profiles: []\n", 13, &store, NULL), 0);
	return store;
}

static struct sw_profiles *built_in(void)
{
	struct sw_profiles *profiles = NULL;
	assert_int_equal(sw_profiles_load_default(&profiles, NULL), 0);
	return profiles;
}

/* Aim: what is written is read again, figure by figure, also where a command is full of quotes. */
static void test_round_trip(void **state)
{
	(void)state;
	SW_CLEANUP(sw_store_freep) struct sw_store *store = empty();
	SW_CLEANUP(sw_store_freep) struct sw_store *again = NULL;
	char path[64];
	snprintf(path, sizeof path, "store-%d.yaml", (int)getpid());
	struct sw_measured host_only = {.wall_ns = 5, .cores_milli = 999};
	struct sw_measured counted = good;
	count(&counted);
	assert_int_equal(sw_store_add(store, "train", "python \"a b\" \\n: #x", &good, NULL), 0);
	assert_int_equal(sw_store_add(store, "TRAIN", "python \"a b\" \\n: #x", &host_only, NULL), 0);
	assert_int_equal(sw_store_add(store, "- {other: [", "", &counted, NULL), 0);
	assert_int_equal(sw_store_save(store, path, NULL), 0);
	assert_int_equal(sw_store_load(path, &again, NULL), 0);
	unlink(path);
	const struct sw_store_entry *entry = sw_store_find(again, "Train", NULL);
	assert_non_null(entry);
	assert_string_equal(entry->name, "train");
	assert_string_equal(entry->command, "python \"a b\" \\n: #x");
	assert_int_equal(entry->run_count, 2);
	assert_memory_equal(&entry->runs[0], &good, sizeof good);
	assert_memory_equal(&entry->runs[1], &host_only, sizeof good);
	assert_non_null(sw_store_find(again, "- {other: [", NULL));
	assert_memory_equal(&sw_store_find(again, "- {other: [", NULL)->runs[0], &counted, sizeof counted);
	assert_null(sw_store_at(again, 2));
}

/* Aim: no file is an empty store; an empty store can be written and read. */
static void test_no_file(void **state)
{
	(void)state;
	SW_CLEANUP(sw_store_freep) struct sw_store *store = NULL;
	SW_CLEANUP(sw_store_freep) struct sw_store *again = NULL;
	char path[64];
	snprintf(path, sizeof path, "empty-%d.yaml", (int)getpid());
	assert_int_equal(sw_store_load("there-is-no-such-file.yaml", &store, NULL), 0);
	assert_null(sw_store_at(store, 0));
	assert_int_equal(sw_store_save(store, path, NULL), 0);
	assert_int_equal(sw_store_load(path, &again, NULL), 0);
	unlink(path);
	assert_null(sw_store_at(again, 0));
}

/* Aim: a figure is the median of the runs that have it, so that one odd run changes little;
 * the latest runs are kept. */
static void test_median(void **state)
{
	(void)state;
	SW_CLEANUP(sw_store_freep) struct sw_store *store = empty();
	struct sw_measured run = good, host_only = {.wall_ns = SW_NS_PER_S, .cores_milli = 1700};
	assert_int_equal(sw_store_add(store, "a", "a", &run, NULL), 0);
	run.busy_milli = 1000;
	assert_int_equal(sw_store_add(store, "a", "a", &run, NULL), 0);
	run.busy_milli = 320;
	assert_int_equal(sw_store_add(store, "a", "a", &run, NULL), 0);
	assert_int_equal(sw_store_add(store, "a", "a", &host_only, NULL), 0);
	struct sw_measured median = sw_store_median(sw_store_at(store, 0));
	assert_int_equal(median.busy_milli, 320);
	assert_int_equal(median.cores_milli, 1500);
	assert_int_equal(median.peak_bytes, good.peak_bytes);
	for (uint32_t i = 0; i < SW_STORE_RUNS; i++) {
		host_only.wall_ns = (i + 1) * SW_NS_PER_S;
		assert_int_equal(sw_store_add(store, "a", "a", &host_only, NULL), 0);
	}
	const struct sw_store_entry *entry = sw_store_at(store, 0);
	assert_int_equal(entry->run_count, SW_STORE_RUNS);
	assert_int_equal(entry->runs[0].wall_ns, SW_NS_PER_S);
	assert_int_equal(sw_store_median(entry).busy_milli, 0);
}

/* Aim: figures that cannot be are refused one by one, with what is wrong and what to do, and the
 * store stays as it was. */
static void test_refused_runs(void **state)
{
	(void)state;
	SW_CLEANUP(sw_store_freep) struct sw_store *store = empty();
	struct sw_measured missing = good, negative = good, busy = good, floor = good, pcie = good, iteration = good, huge = good,
			   half = good, more = good;
	half.l2_milli = 100;
	count(&more);
	more.dram_read_milli = 1001;
	missing.wall_ns = 0;
	negative.iteration_ns = -1;
	busy.busy_milli = 1001;
	floor.floor_bytes = floor.peak_bytes + 1;
	pcie.pcie_milli = 1001;
	iteration.iteration_ns = iteration.wall_ns + 1;
	huge.peak_bytes = UINT64_C(1) << 60;
	const struct {
		const struct sw_measured *run;
		const char *detail;
	} cases[] = {{&missing, "'wall' is missing"},
		     {&negative, "'iteration_time' is negative"},
		     {&busy, "'busy' is larger than it can be"},
		     {&floor, "its GPU memory is said to be never below 'floor', which is above 'peak'"},
		     {&pcie, "'pcie' is larger than it can be"},
		     {&iteration, "one iteration is said to take longer than the run"},
		     {&huge, "'peak' is larger than it can be"},
		     {&half, "of 'sm', 'mem_pipe', 'l2', 'dram_read' and 'dram_write' all are measured, or none"},
		     {&more, "'dram_read' is larger than it can be"}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct sw_err err = {0};
		assert_int_equal(sw_store_add(store, "a", "a", cases[i].run, &err), SW_EINPUT);
		assert_string_equal(err.fact, "cannot store what was measured of 'a'");
		assert_string_equal(err.detail, cases[i].detail);
		assert_string_not_equal(err.hint, "");
	}
	assert_null(sw_store_at(store, 0));
	struct sw_err err = {0};
	char longest[SW_STORE_NAME + 2];
	memset(longest, 'x', sizeof longest - 1);
	longest[sizeof longest - 1] = '\0';
	assert_int_equal(sw_store_add(store, "", "a", &good, &err), SW_EINPUT);
	assert_int_equal(sw_store_add(store, "a\nb", "a", &good, NULL), SW_EINPUT);
	assert_int_equal(sw_store_add(store, longest, "a", &good, NULL), SW_EINPUT);
	assert_string_not_equal(err.hint, "");
	assert_null(sw_store_at(store, 0));
}

/* Aim: a file that cannot be is refused with its line and what is wrong there, and says
 * that nothing was changed. */
static void test_refused_files(void **state)
{
	(void)state;
	static const struct {
		const char *text, *detail;
	} cases[] = {
		{"profiles: [{name: a, runs: [{wall: nan}]}]\n", "line 1"},
		{"profiles:\n  - name: a\n    runs:\n      - {wall: 1s, busy: nan}\n", "line 4"},
		{"profiles:\n  - name: a\n    runs:\n      - {wall: 1s, peak: -1}\n", "line 4"},
		{"profiles:\n  - name: a\n    runs:\n      - {busy: 0.5}\n", "wall"},
		{"profiles:\n  - name: a\n    runs:\n      - {wall: 1s, busy: 1.001}\n", "busy"},
		{"profiles:\n  - name: a\n    runs:\n      - {wall: 1s, floor: 2G, peak: 1G}\n", "'floor', which is above 'peak'"},
		{"profiles:\n  - name: a\n    runs:\n      - {wall: 1s, iteration_time: 2s}\n", "longer than the run"},
		{"profiles:\n  - name: a\n    runs:\n      - {wall: 1s, sm: 0.5}\n", "all are measured, or none"},
		{"profiles:\n  - name: a\n    runs: []\n", "runs"},
		{"profiles:\n  - name: a\n", "runs"},
		{"profiles:\n  - runs: [{wall: 1s}]\n", "name"},
		{"profiles:\n  - {name: a, runs: [{wall: 1s}]}\n  - {name: A, runs: [{wall: 1s}]}\n", "taken already"},
		{"profiles:\n  - {name: a, rums: [{wall: 1s}]}\n", "rums"},
		{"profiles: {", "line"},
		{"", ""},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct sw_store *store = NULL;
		struct sw_err err = {0};
		assert_int_equal(sw_store_parse("s.yaml", cases[i].text, strlen(cases[i].text), &store, &err), SW_EINPUT);
		assert_null(store);
		if (strstr(err.fact, "s.yaml") == NULL || strstr(err.detail, cases[i].detail) == NULL)
			fail_msg("%s%s: %s", cases[i].text, err.fact, err.detail);
		assert_string_not_equal(err.hint, "");
	}
}

/* Aim: what counters said of any run is what the profile uses of the GPU, and it is no estimate any
 * more; without, it is the built-in one's and is one. */
static void test_counters(void **state)
{
	(void)state;
	SW_CLEANUP(sw_store_freep) struct sw_store *store = empty();
	SW_CLEANUP(sw_profiles_freep) struct sw_profiles *profiles = built_in();
	struct sw_measured counted = good;
	count(&counted);
	assert_int_equal(sw_store_add(store, "resnet50", "a", &counted, NULL), 0);
	assert_int_equal(sw_store_add(store, "resnet50", "a", &good, NULL), 0);
	assert_int_equal(sw_store_add(store, "transformer", "b", &good, NULL), 0);
	assert_int_equal(sw_store_apply(store, profiles, NULL), 0);
	const struct sw_profile *own = sw_profiles_find(profiles, "resnet50"), *other = sw_profiles_find(profiles, "transformer");
	const uint16_t wanted[] = {110, 290, 130, 140, 1};
	assert_memory_equal(own->use_milli, wanted, sizeof wanted);
	assert_false(own->estimated);
	assert_non_null(strstr(own->source, "by counters"));
	assert_true(other->estimated);
	assert_null(strstr(other->source, "by counters"));
}

/* Aim: a stored profile is found by its name and by its command, over a built-in one of that name;
 * what was not measured is the built-in one's. */
static void test_found_over_built_in(void **state)
{
	(void)state;
	SW_CLEANUP(sw_store_freep) struct sw_store *store = empty();
	SW_CLEANUP(sw_profiles_freep) struct sw_profiles *profiles = built_in(), *plain = built_in();
	struct sw_measured host_only = {.wall_ns = SW_NS_PER_S, .cores_milli = 5000, .host_bytes = 10240 * MIB};
	assert_int_equal(sw_store_add(store, "ResNet50", "python train.py", &good, NULL), 0);
	assert_int_equal(sw_store_add(store, "mine", "./mine --fast", &host_only, NULL), 0);
	assert_int_equal(sw_store_apply(store, profiles, NULL), 0);
	const struct sw_profile *own = sw_profiles_find(profiles, "resnet50"), *before = sw_profiles_find(plain, "resnet50");
	assert_ptr_equal(own, sw_profiles_find(profiles, "PYTHON train.py"));
	assert_int_equal(own->iteration_ns, good.iteration_ns);
	assert_int_equal(own->mem_persistent_bytes, good.floor_bytes);
	assert_int_equal(own->mem_persistent_bytes + own->mem_ephemeral_bytes, good.peak_bytes);
	assert_int_equal(own->use_milli[SW_USE_HOST_CPU], 150);
	assert_int_equal(own->use_milli[SW_USE_HOST_MEM], 100);
	assert_int_equal(own->use_milli[SW_USE_PCIE], 20);
	assert_true(own->busy_known && own->busy_milli == 300);
	assert_int_equal(own->use_milli[SW_USE_SM], 300); /* 0.54 built in, but it is busy for 0.3 of the time only */
	assert_int_equal(own->use_milli[SW_USE_L2], before->use_milli[SW_USE_L2]);
	assert_int_equal(own->model_bytes, before->model_bytes);
	/* Another spelling of the built-in one, and its number, mean the same model: that one. */
	assert_ptr_equal(sw_profiles_find(profiles, "resnet_50"), own);
	assert_ptr_equal(sw_profiles_by_number(profiles, before->number), own);
	const struct sw_profile *mine = sw_profiles_find(profiles, "./mine --fast"), *nobody = sw_profiles_find(plain, "zzz");
	assert_false(mine->is_default);
	assert_true(mine->estimated && !mine->busy_known);
	assert_int_equal(mine->use_milli[SW_USE_HOST_CPU], 500);
	assert_int_equal(mine->use_milli[SW_USE_SM], nobody->use_milli[SW_USE_SM]);
	assert_int_equal(mine->iteration_ns, nobody->iteration_ns);
	assert_true(sw_profiles_find(profiles, "zzz")->is_default);
}

/* Aim: every built-in name is still found behind a full store, and the store says that it is
 * full. */
static void test_full(void **state)
{
	(void)state;
	SW_CLEANUP(sw_store_freep) struct sw_store *store = empty();
	SW_CLEANUP(sw_profiles_freep) struct sw_profiles *profiles = built_in();
	struct sw_err err = {0};
	char name[32];
	for (uint32_t i = 0; i < SW_STORE_ENTRIES; i++) {
		snprintf(name, sizeof name, "job-%u", i * 7919 % SW_STORE_ENTRIES);
		assert_int_equal(sw_store_add(store, name, name, &good, NULL), 0);
	}
	assert_int_equal(sw_store_add(store, "one more", "x", &good, &err), SW_ELIMIT);
	assert_string_not_equal(err.hint, "");
	assert_int_equal(sw_store_apply(store, profiles, NULL), 0);
	for (size_t i = 0; sw_profiles_at(profiles, i) != NULL; i++)
		assert_ptr_equal(sw_profiles_find(profiles, sw_profiles_at(profiles, i)->name), sw_profiles_at(profiles, i));
}

/* Aim: one entry is removed and the others stay; one that is not there is said to be missing. */
static void test_remove(void **state)
{
	(void)state;
	SW_CLEANUP(sw_store_freep) struct sw_store *store = empty();
	struct sw_err err = {0};
	assert_int_equal(sw_store_add(store, "a", "x", &good, NULL), 0);
	assert_int_equal(sw_store_add(store, "b", "x", &good, NULL), 0);
	assert_string_equal(sw_store_find(store, "z", "x")->name, "b");
	assert_int_equal(sw_store_remove(store, "B", NULL), 0);
	assert_string_equal(sw_store_find(store, "z", "x")->name, "a");
	assert_int_equal(sw_store_remove(store, "b", &err), SW_ENOTFOUND);
	assert_string_not_equal(err.hint, "");
	assert_null(sw_store_at(store, 1));
}

/* Aim: command lines are kept as one line of plain text, of bounded length. */
static void test_command(void **state)
{
	(void)state;
	char text[SW_STORE_COMMAND + 1], longest[1000];
	const char *const words[] = {"python", "a\nb", "\xff"};
	assert_string_equal(sw_store_command(words, 3, text), "python a?b ?");
	memset(longest, 'x', sizeof longest - 1);
	longest[sizeof longest - 1] = '\0';
	assert_int_equal(strlen(sw_store_command(&(const char *){longest}, 1, text)), SW_STORE_COMMAND);
	assert_string_equal(sw_store_command(NULL, 0, text), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_no_file),
		cmocka_unit_test(test_median),
		cmocka_unit_test(test_refused_runs),
		cmocka_unit_test(test_refused_files),
		cmocka_unit_test(test_counters),
		cmocka_unit_test(test_found_over_built_in),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_remove),
		cmocka_unit_test(test_command),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
