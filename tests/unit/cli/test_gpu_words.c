/* How a job does on its GPUs, and how GPUs do, in words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/live.h"

static void expect(char *(*say)(const json_t *job, char *text, size_t size), const char *job_text, const char *words)
{
	json_t *job = json_loads(job_text, 0, NULL);
	char text[200];
	assert_non_null(job);
	assert_string_equal(say(job, text, sizeof text), words);
	json_decref(job);
}

/* A limit names what it limits, and nothing else. */
static void test_limits(void **state)
{
	(void)state;
	expect(sw_cli_limit, "{\"limit\": {\"gpu_memory\": 10737418240, \"compute\": 30}}", "10.0 GiB of each GPU and 30 % of its time");
	expect(sw_cli_limit, "{\"limit\": {\"gpu_memory\": 10737418240, \"compute\": null}}", "10.0 GiB of each GPU");
	expect(sw_cli_limit, "{\"limit\": {\"gpu_memory\": null, \"compute\": 30}}", "30 % of each GPU's time");
	expect(sw_cli_limit, "{\"limit\": null}", "all that it got of its GPUs");
	expect(sw_cli_limit, "{}", "all that it got of its GPUs");
}

/* Figures that are not known are left out. */
static void test_figures(void **state)
{
	(void)state;
	expect(sw_cli_gpu_memory, "{\"gpu\": {\"memory_bytes\": 1073741824, \"limit_bytes\": 2147483648, \"host_bytes\": 1048576}}",
	       "1.0 GiB of 2.0 GiB, 1.0 MiB more in host memory");
	expect(sw_cli_gpu_memory, "{\"gpu\": {\"memory_bytes\": 0, \"limit_bytes\": null, \"host_bytes\": 0}}", "0 B");
	expect(sw_cli_gpu_memory, "{\"gpu\": null}", "");
	expect(sw_cli_outside, "{\"gpu\": {\"outside_processes\": 2}}",
	       "2 processes outside the runtime, where no limit holds and nothing is suspended; see docs/gpu.md");
	expect(sw_cli_outside, "{\"gpu\": {\"outside_processes\": 0}}", "");
	expect(sw_cli_outside, "{\"gpu\": null}", "");
	expect(sw_cli_gpu_time, "{\"gpu\": {\"compute\": 100, \"yields\": false}}", "");
	expect(sw_cli_gpu_time, "{\"gpu\": {\"compute\": 12.5, \"yields\": false}}", "12.5 %");
	expect(sw_cli_gpu_time, "{\"gpu\": {\"compute\": 100, \"yields\": true}}", "while guaranteed jobs on its GPUs do not work");
	expect(sw_cli_gpu_time, "{\"gpu\": {\"compute\": 30, \"yields\": true}}",
	       "while guaranteed jobs on its GPUs do not work, at most 30 %");
	expect(sw_cli_gpu_time, "{\"gpu\": {\"compute\": 0, \"yields\": true}}", "none for now: it stands still beside guaranteed jobs");
	expect(sw_cli_gpu_time, "{\"gpu\": {\"compute\": null, \"yields\": false}}", "");
	expect(sw_cli_gpu_time, "{\"gpu\": null}", "");
	expect(sw_cli_iteration, "{\"gpu\": {\"iteration_s\": 0.312}}", "312 ms/it");
	expect(sw_cli_iteration, "{\"gpu\": {\"iteration_s\": 12.34}}", "12.3 s/it");
	expect(sw_cli_iteration, "{\"gpu\": {\"iteration_s\": null}}", "");
	expect(sw_cli_iteration, "{\"gpu\": null}", "");
	expect(sw_cli_iteration, "{\"gpu\": {\"iteration_s\": 1e300}}", "");
	expect(sw_cli_slowdown, "{\"speed\": {\"alone_s\": 0.012, \"slowdown\": 1.063}}", "1.06x of the 12 ms/it that it takes alone");
	expect(sw_cli_slowdown, "{\"speed\": {\"alone_s\": null, \"slowdown\": null}}", "");
	expect(sw_cli_slowdown, "{\"speed\": null}", "");
}

/* Nothing is said of a GPU before it is known, and no GPU is said to draw nothing. */
static void test_devices(void **state)
{
	(void)state;
	const char *seen =
		"{\"memory_bytes\": 1000, \"memory_used_bytes\": 250, \"busy\": 0.374, \"power_w\": 311.6, \"temperature_c\": 41, "
		"\"sampled_at\": \"2026-10-04T15:00:00Z\"}";
	const char *partly = "{\"memory_bytes\": 1000, \"memory_used_bytes\": 0, \"busy\": 0, \"power_w\": 0, \"temperature_c\": 0, "
			     "\"sampled_at\": \"2026-10-04T15:00:00Z\"}";
	const char *unseen = "{\"memory_bytes\": 1000}";
	expect(sw_cli_device_busy, seen, "37%");
	expect(sw_cli_device_filled, seen, "25%");
	expect(sw_cli_device_power, seen, "312W");
	expect(sw_cli_device_heat, seen, "41C");
	expect(sw_cli_device_busy, partly, "0%");
	expect(sw_cli_device_filled, partly, "0%");
	expect(sw_cli_device_power, partly, "-");
	expect(sw_cli_device_heat, partly, "-");
	expect(sw_cli_device_busy, unseen, "-");
	expect(sw_cli_device_filled, unseen, "-");
	expect(sw_cli_device_power, unseen, "-");
	expect(sw_cli_device_heat, unseen, "-");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_limits), cmocka_unit_test(test_figures), cmocka_unit_test(test_devices)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
