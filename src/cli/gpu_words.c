/* How a job does on its GPUs, and how GPUs do, in words. */
#include <inttypes.h>
#include <string.h>

#include "base/number.h"
#include "cli/live.h"

char *sw_cli_limit(const json_t *job, char *text, size_t size)
{
	const json_t *limit = json_object_get(job, "limit");
	int64_t bytes = sw_cli_number(limit, "gpu_memory", 0), percent = sw_cli_number(limit, "compute", 0);
	char memory[32];
	if (bytes > 0 && percent > 0)
		snprintf(text, size, "%s of each GPU and %" PRId64 " %% of its time", sw_format_bytes((uint64_t)bytes, memory), percent);
	else if (bytes > 0)
		snprintf(text, size, "%s of each GPU", sw_format_bytes((uint64_t)bytes, memory));
	else if (percent > 0)
		snprintf(text, size, "%" PRId64 " %% of each GPU's time", percent);
	else
		snprintf(text, size, "all that it got of its GPUs");
	return text;
}

char *sw_cli_gpu_memory(const json_t *job, char *text, size_t size)
{
	const json_t *gpu = json_object_get(job, "gpu");
	int64_t limit = sw_cli_number(gpu, "limit_bytes", 0), host = sw_cli_number(gpu, "host_bytes", 0);
	char held[32], may[32], moved[32], of[48] = "", more[64] = "";
	text[0] = '\0';
	if (!json_is_object(gpu))
		return text;
	if (limit > 0)
		snprintf(of, sizeof of, " of %s", sw_format_bytes((uint64_t)limit, may));
	if (host > 0)
		snprintf(more, sizeof more, ", %s more in host memory", sw_format_bytes((uint64_t)host, moved));
	snprintf(text, size, "%s%s%s", sw_format_bytes((uint64_t)sw_cli_number(gpu, "memory_bytes", 0), held), of, more);
	return text;
}

char *sw_cli_outside(const json_t *job, char *text, size_t size)
{
	int64_t processes = sw_cli_number(json_object_get(job, "gpu"), "outside_processes", 0);
	text[0] = '\0';
	if (processes > 0)
		snprintf(text, size,
			 "%" PRId64 " process%s outside the runtime, where no limit holds and nothing is suspended; see docs/gpu.md",
			 processes, processes == 1 ? "" : "es");
	return text;
}

char *sw_cli_trespass(const json_t *job, char *text, size_t size)
{
	bool trespass = json_is_true(json_object_get(json_object_get(job, "gpu"), "trespass"));
	snprintf(text, size, "%s", trespass ? "a process of it uses a GPU that it was not given; see docs/gpu.md" : "");
	return text;
}

char *sw_cli_gpu_time(const json_t *job, char *text, size_t size)
{
	const json_t *gpu = json_object_get(job, "gpu");
	double percent = sw_cli_real(gpu, "compute", 100);
	text[0] = '\0';
	if (percent <= 0)
		snprintf(text, size, "none for now: it stands still beside guaranteed jobs");
	else if (json_is_true(json_object_get(gpu, "yields")))
		snprintf(text, size, "while guaranteed jobs on its GPUs do not work");
	if (percent > 0 && percent < 100)
		snprintf(text + strlen(text), size - strlen(text), "%s%.3g %%", text[0] != '\0' ? ", at most " : "", percent);
	return text;
}

char *sw_cli_iteration(const json_t *job, char *text, size_t size)
{
	double s = sw_cli_real(json_object_get(job, "gpu"), "iteration_s", 0);
	char span[32];
	text[0] = '\0';
	if (s > 0 && s < 1e6)
		snprintf(text, size, "%s/it", sw_format_duration((int64_t)(s * 1e9), span));
	return text;
}

char *sw_cli_slowdown(const json_t *job, char *text, size_t size)
{
	const json_t *speed = json_object_get(job, "speed");
	double alone_s = sw_cli_real(speed, "alone_s", 0), slowdown = sw_cli_real(speed, "slowdown", 0);
	char span[32];
	text[0] = '\0';
	if (alone_s > 0 && alone_s < 1e6 && slowdown > 0)
		snprintf(text, size, "%.2fx of the %s/it that it takes alone", slowdown,
			 sw_format_duration((int64_t)(alone_s * 1e9), span));
	return text;
}

/* ---- GPUs */

static char *say(bool known, double figure, const char *unit, char *text, size_t size)
{
	snprintf(text, size, "-");
	if (known)
		snprintf(text, size, "%.0f%s", figure, unit);
	return text;
}

static bool is_sampled(const json_t *gpu)
{
	return json_is_string(json_object_get(gpu, "sampled_at"));
}

char *sw_cli_device_busy(const json_t *gpu, char *text, size_t size)
{
	return say(is_sampled(gpu), 100 * sw_cli_real(gpu, "busy", 0), "%", text, size);
}

char *sw_cli_device_filled(const json_t *gpu, char *text, size_t size)
{
	double all = sw_cli_real(gpu, "memory_bytes", 0);
	return say(is_sampled(gpu) && all > 0, 100 * sw_cli_real(gpu, "memory_used_bytes", 0) / (all > 0 ? all : 1), "%", text, size);
}

char *sw_cli_device_power(const json_t *gpu, char *text, size_t size)
{
	double watts = sw_cli_real(gpu, "power_w", 0);
	return say(watts > 0, watts, "W", text, size);
}

char *sw_cli_device_shut(const json_t *gpu, char *text, size_t size)
{
	const char *why = sw_cli_text(gpu, "shut", ""), *by = sw_cli_text(gpu, "shut_by", "");
	size_t strangers = json_array_size(json_object_get(gpu, "strangers"));
	text[0] = '\0';
	if (why[0] != '\0')
		snprintf(text, size, "%s%s%s", why, by[0] != '\0' ? ": " : "", by);
	else if (strangers > 0)
		snprintf(text, size, "shared with %zu outside the queue", strangers);
	return text;
}

char *sw_cli_device_heat(const json_t *gpu, char *text, size_t size)
{
	int64_t celsius = sw_cli_number(gpu, "temperature_c", 0);
	return say(celsius != 0, (double)celsius, "C", text, size);
}
