/* What Nsight Compute prints becomes what a program uses of a GPU; what it
 * could not measure is said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "contention/counters.h"

#define OF_PEAK ".pct_of_peak_sustained_elapsed"
#define HEADER                                                                                                               \
	"\"ID\",\"Process ID\",\"Process Name\",\"Host Name\",\"Kernel Name\",\"Context\",\"Stream\",\"Block Size\",\"Grid " \
	"Size\",\"Device\","                                                                                                 \
	"\"CC\",\"Section Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n"

static char text[1 << 16];
static size_t used;

static void put(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void put(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	used += (size_t)vsnprintf(text + used, sizeof text - used, format, arguments);
	va_end(arguments);
	assert_true(used < sizeof text);
}

static void begin(void)
{
	used = 0;
	put("==PROF== Connected to process 4711 (/usr/bin/python3.11)\n==PROF== Profiling \"gemm\" - 0: 0%%....50%%....100%% - 9 "
	    "passes\n" HEADER);
}

static void figure(int id, const char *metric, const char *unit, const char *value)
{
	put("\"%d\",\"4711\",\"python3.11\",\"127.0.0.1\",\"void f<\"\"a,b\"\">(int, float)\",\"1\",\"7\",\"(128, 1, 1)\",\"(64, 1, "
	    "1)\",\"0\",\"9.0\",\"Command "
	    "line profiler metrics\",\"%s\",\"%s\",\"%s\"\n",
	    id, metric, unit, value);
}

/* A kernel that uses so much of everything. */
static void kernel(int id, const char *unit, const char *duration, const char *percent)
{
	figure(id, "dram__bytes_read.sum" OF_PEAK, "%", percent);
	figure(id, "dram__bytes_write.sum" OF_PEAK, "%", percent);
	figure(id, "gpu__compute_memory_throughput.avg" OF_PEAK, "%", percent);
	figure(id, "gpu__time_duration.sum", unit, duration);
	figure(id, "lts__throughput.avg" OF_PEAK, "%", percent);
	figure(id, "sm__throughput.avg" OF_PEAK, "%", percent);
}

static int read_text(struct sw_counters *ret_counters, struct sw_err *err)
{
	return sw_counters_read(text, used, ret_counters, err);
}

/* Aim: kernels weigh by their time, whatever unit it is in, and lines of others are passed over. */
static void test_weighed(void **state)
{
	(void)state;
	struct sw_counters counters;
	begin();
	kernel(0, "usecond", "30.00", "10.00");
	kernel(1, "nsecond", "10,000", "50.00");
	figure(1, "launch__grid_size", "", "1,024");
	put("==PROF== Disconnected from process 4711\n");
	assert_int_equal(read_text(&counters, NULL), 0);
	assert_int_equal(counters.kernels, 2);
	assert_int_equal(counters.time_ns, 40000);
	for (int part = SW_USE_SM; part <= SW_USE_DRAM_WRITE; part++)
		assert_int_equal(counters.use_milli[part], 200);
	/* The same in other words. */
	begin();
	kernel(0, "us", "30", "10");
	kernel(1, "ms", "0.01", "50");
	assert_int_equal(read_text(&counters, NULL), 0);
	assert_int_equal(counters.time_ns, 40000);
	assert_int_equal(counters.use_milli[SW_USE_L2], 200);
}

/* Aim: each metric becomes the part that it is of, and none is 0, which would say
 * that it was not measured. */
static void test_parts(void **state)
{
	(void)state;
	struct sw_counters counters;
	begin();
	figure(0, "sm__throughput.avg" OF_PEAK, "%", "71.04");
	figure(0, "gpu__compute_memory_throughput.avg" OF_PEAK, "%", "42.06");
	figure(0, "lts__throughput.avg" OF_PEAK, "%", "20.00");
	figure(0, "dram__bytes_read.sum" OF_PEAK, "%", "103.20");
	figure(0, "dram__bytes_write.sum" OF_PEAK, "%", "0");
	figure(0, "gpu__time_duration.sum", "msecond", "1.50");
	assert_int_equal(read_text(&counters, NULL), 0);
	const uint16_t wanted[] = {710, 421, 200, 1000, 1};
	assert_memory_equal(counters.use_milli, wanted, sizeof wanted);
	assert_int_equal(counters.time_ns, 1500000);
}

/* Aim: a kernel without a figure of a part counts for the others; without a time it
 * does not count at all. */
static void test_missing_figures(void **state)
{
	(void)state;
	struct sw_counters counters;
	begin();
	kernel(0, "usecond", "10", "10");
	figure(1, "gpu__time_duration.sum", "usecond", "10");
	figure(1, "sm__throughput.avg" OF_PEAK, "%", "30");
	figure(1, "lts__throughput.avg" OF_PEAK, "%", "n/a");
	kernel(2, "usecond", "n/a", "90");
	assert_int_equal(read_text(&counters, NULL), 0);
	assert_int_equal(counters.kernels, 2);
	assert_int_equal(counters.use_milli[SW_USE_SM], 200);
	assert_int_equal(counters.use_milli[SW_USE_L2], 100);
}

/* Aim: the same number of a kernel in another process is another kernel. */
static void test_processes(void **state)
{
	(void)state;
	struct sw_counters counters;
	used = 0;
	put("\"ID\",\"Process ID\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n");
	for (int process = 1; process <= 2; process++) {
		put("\"0\",\"%d\",\"gpu__time_duration.sum\",\"nsecond\",\"100\"\n", process);
		put("\"0\",\"%d\",\"sm__throughput.avg" OF_PEAK "\",\"%%\",\"%d\"\n", process, process * 20);
		put("\"0\",\"%d\",\"gpu__compute_memory_throughput.avg" OF_PEAK "\",\"%%\",\"1\"\n", process);
		put("\"0\",\"%d\",\"lts__throughput.avg" OF_PEAK "\",\"%%\",\"1\"\n", process);
		put("\"0\",\"%d\",\"dram__bytes_read.sum" OF_PEAK "\",\"%%\",\"1\"\n", process);
		put("\"0\",\"%d\",\"dram__bytes_write.sum" OF_PEAK "\",\"%%\",\"1\"\n", process);
	}
	assert_int_equal(read_text(&counters, NULL), 0);
	assert_int_equal(counters.kernels, 2);
	assert_int_equal(counters.use_milli[SW_USE_SM], 300);
}

/* Aim: what cannot be measured or read is told apart, with what was said about it,
 * and nothing is written. */
static void test_refused(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int code;
		const char *detail;
	} cases[] = {
		{"", SW_ENOTFOUND, "launched none"},
		{"==PROF== Connected\n==WARNING== No kernels were profiled.\n", SW_ENOTFOUND, "launched none"},
		{HEADER, SW_ENOTFOUND, "launched none"},
		{"==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n==WARNING== No kernels were profiled.\n", SW_EDENIED,
		 "ERR_NVGPUCTRPERM"},
		{"==ERROR== Failed to find metric sm__x\n==WARNING== No kernels were profiled.\n", SW_EIO,
		 "it says: Failed to find metric sm__x"},
		{"==ERROR== cut", SW_EIO, "it says: cut"},
	};
	struct sw_counters counters = {.kernels = 77};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct sw_err err = {0};
		assert_int_equal(sw_counters_read(cases[i].text, strlen(cases[i].text), &counters, &err), cases[i].code);
		if (strstr(err.detail, cases[i].detail) == NULL)
			fail_msg("%s: %s", cases[i].text, err.detail);
	}
	static const char *const odd[][2] = {{"%", "nan"}, {"%", "-1"}, {"Gbyte/second", "12"}, {"%", "12 34"}, {"%", "2000"}};
	for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
		struct sw_err err = {0};
		begin();
		figure(0, "sm__throughput.avg" OF_PEAK, odd[i][0], odd[i][1]);
		assert_int_equal(read_text(&counters, &err), SW_EINPUT);
		assert_non_null(strstr(err.detail, "line 4: 'sm__throughput"));
		assert_non_null(strstr(err.detail, odd[i][1]));
	}
	struct sw_err err = {0};
	begin();
	figure(0, "gpu__time_duration.sum", "cycle", "12");
	assert_int_equal(read_text(&counters, NULL), SW_EINPUT);
	begin();
	figure(0, "gpu__time_duration.sum", "usecond", "12");
	assert_int_equal(read_text(&counters, &err), SW_EINPUT);
	assert_non_null(strstr(err.detail, "of the SMs there is no figure"));
	assert_int_equal(counters.kernels, 77);
}

/* Aim: a report that is cut off anywhere, or has a byte changed, is read or refused, and nothing
 * else happens (sanitizers watch). */
static void test_damaged(void **state)
{
	(void)state;
	struct sw_counters counters;
	begin();
	kernel(0, "usecond", "30.00", "10.00");
	kernel(1, "nsecond", "10,000", "50.00");
	size_t whole = used;
	unsigned good = 0;
	for (size_t size = 0; size <= whole; size++) {
		char *copy = malloc(size + 1); /* so that a byte beyond it is seen */
		memcpy(copy, text, size);
		good += sw_counters_read(copy, size, &counters, NULL) == 0;
		if (size > 0) {
			copy[size - 1] = "\",\n9"[size % 4];
			(void)sw_counters_read(copy, size, &counters, NULL);
		}
		free(copy);
	}
	assert_true(good > 0 && good < whole);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_weighed),	  cmocka_unit_test(test_parts),	  cmocka_unit_test(test_missing_figures),
		cmocka_unit_test(test_processes), cmocka_unit_test(test_refused), cmocka_unit_test(test_damaged),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
