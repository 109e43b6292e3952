#include "runtime/profile.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/account.h"
#include "runtime/driver.h"
#include "runtime/gate.h"
#include "runtime/kernels.h"
#include "runtime/move.h"
#include "runtime/start.h"
#include "runtime/tools.h"
#include "runtime/visits.h"

#define CLOSE_NS INT64_C(2000000000)
#define WRITE_NS INT64_C(1000000000)
enum { FUNCTIONS = 1024, METERS = 8, PAIRS = 512, WRITTEN = 64, NAME = 128, TEXT = 32 << 10 };
_Static_assert((WRITTEN + 1) * (NAME + 80) + 1024 < TEXT, "all of it fits");

/* What is launched. The first one stands for all that found no place. */
static struct function {
	void *handle;
	uint64_t launches, timed;
	int64_t ns;
	char name[NAME];
} functions[FUNCTIONS];

/* Launches on their way, of one context. */
static struct meter {
	CUcontext context;
	unsigned first, count, made; /* a ring; and how many pairs of events there are */
	struct pair {
		CUevent begin, end;
		struct function *function;
		bool closed;
	} pairs[PAIRS];
} meters[METERS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

enum direction { TO_GPU, FROM_GPU, WITHIN, UNKNOWN, DIRECTIONS };
static _Atomic uint64_t copied[DIRECTIONS], copies[DIRECTIONS];

static sw_function kept[SW_ENTRY_COUNT]; /* the real ones */
static bool measures;
static int64_t begun_ns, ended_ns, written_ns;

/* ---- under the lock */

static void name(struct function *function, bool graph)
{
	const char *found = NULL;
	if (graph)
		found = "(graph)";
	else if (sw_kernels_have(function->handle)
			 ? sw_driver.kernel_name == NULL || sw_driver.kernel_name(&found, function->handle) != CUDA_SUCCESS
			 : sw_driver.function_name == NULL || sw_driver.function_name(&found, function->handle) != CUDA_SUCCESS)
		found = NULL;
	snprintf(function->name, sizeof function->name, "%s", found != NULL ? found : "(unnamed)");
	/* One line each. */
	for (char *at = function->name; *at != '\0'; at++)
		if ((unsigned char)*at < ' ')
			*at = '?';
}

static struct function *find(void *handle, bool graph)
{
	unsigned place = (unsigned)(((uint64_t)(uintptr_t)handle >> 4) * 0x9e3779b97f4a7c15u >> 54);
	for (unsigned i = 0; i < FUNCTIONS; i++) {
		struct function *function = &functions[1 + (place + i) % (FUNCTIONS - 1)];
		if (function->handle == handle)
			return function;
		if (function->handle != NULL)
			continue;
		function->handle = handle;
		name(function, graph);
		return function;
	}
	snprintf(functions[0].name, sizeof functions[0].name, "(others)");
	return &functions[0];
}

static struct meter *meter_of_current(void)
{
	CUcontext context = NULL;
	if (sw_driver.context_current(&context) != CUDA_SUCCESS || context == NULL)
		return NULL;
	struct meter *unused = NULL;
	for (unsigned i = METERS; i-- > 0;) {
		if (meters[i].context == context)
			return &meters[i];
		unused = meters[i].context == NULL ? &meters[i] : unused;
	}
	if (unused != NULL)
		unused->context = context;
	return unused;
}

static void settle(struct meter *meter)
{
	while (meter->count > 0) {
		struct pair *pair = &meter->pairs[meter->first];
		float ms = 0;
		if (!pair->closed || sw_driver.event_query(pair->end) == CUDA_ERROR_NOT_READY)
			return;
		if (sw_driver.event_elapsed(&ms, pair->begin, pair->end) == CUDA_SUCCESS) {
			pair->function->timed++;
			pair->function->ns += (int64_t)((double)ms * 1e6);
		}
		meter->first = (meter->first + 1) % PAIRS;
		meter->count--;
	}
}

/* NULL: none is free. */
static struct pair *open_pair(struct meter *meter, struct function *function, CUstream stream)
{
	unsigned place = (meter->first + meter->count) % PAIRS;
	struct pair *pair = &meter->pairs[place];
	if (meter->count == PAIRS)
		return NULL;
	if (place >= meter->made) {
		if (sw_driver.event_create(&pair->begin, CU_EVENT_DEFAULT) != CUDA_SUCCESS ||
		    sw_driver.event_create(&pair->end, CU_EVENT_DEFAULT) != CUDA_SUCCESS)
			return NULL;
		meter->made = place + 1;
	}
	if (sw_driver.event_record(pair->begin, stream) != CUDA_SUCCESS)
		return NULL;
	pair->function = function;
	pair->closed = false;
	meter->count++;
	return pair;
}

/* ---- of the program's threads, inside the gate */

/* What is captured is no work yet, and asking the driver would spoil the capture. */
static struct pair *begin(void *handle, bool graph, CUstream stream)
{
	if (atomic_load(&sw_captures) > 0)
		return NULL;
	pthread_mutex_lock(&lock);
	struct function *function = find(handle, graph);
	struct meter *meter = meter_of_current();
	struct pair *pair = NULL;
	function->launches++;
	if (meter != NULL) {
		settle(meter);
		pair = open_pair(meter, function, stream);
	}
	pthread_mutex_unlock(&lock);
	return pair;
}

static void end(struct pair *pair, CUstream stream)
{
	if (pair == NULL)
		return;
	pthread_mutex_lock(&lock);
	sw_driver.event_record(pair->end, stream);
	pair->closed = true;
	pthread_mutex_unlock(&lock);
}

static void count_copy(enum direction direction, uint64_t bytes)
{
	if (atomic_load(&sw_captures) > 0)
		return;
	atomic_fetch_add(&copied[direction], bytes);
	atomic_fetch_add(&copies[direction], 1);
}

static CUstream own(CUstream stream)
{
	return stream == NULL ? CU_STREAM_PER_THREAD : stream;
}

static CUstream of_config(const void *config)
{
	return config == NULL ? NULL : ((const CUlaunchConfig *)config)->stream;
}

/* symbol, its stream, what it launches, whether that is a graph, types; parameters are
 * numbered from the last one. */
#define LAUNCHES(X)                                                                          \
	X(cuLaunchKernel, a3, a11, false, P, U, U, U, U, U, U, U, P, P, P)                   \
	X(cuLaunchKernel_ptsz, own(a3), a11, false, P, U, U, U, U, U, U, U, P, P, P)         \
	X(cuLaunchKernelEx, of_config(a4), a3, false, P, P, P, P)                            \
	X(cuLaunchKernelEx_ptsz, own(of_config(a4)), a3, false, P, P, P, P)                  \
	X(cuLaunchCooperativeKernel, a2, a10, false, P, U, U, U, U, U, U, U, P, P)           \
	X(cuLaunchCooperativeKernel_ptsz, own(a2), a10, false, P, U, U, U, U, U, U, U, P, P) \
	X(cuGraphLaunch, a1, a2, true, P, P)                                                 \
	X(cuGraphLaunch_ptsz, own(a1), a2, true, P, P)

/* symbol, which way, how much, types. */
#define COPIES(X)                                              \
	X(cuMemcpyHtoD_v2, TO_GPU, a1, Z, P, Z)                \
	X(cuMemcpyHtoD_v2_ptds, TO_GPU, a1, Z, P, Z)           \
	X(cuMemcpyHtoDAsync_v2, TO_GPU, a2, Z, P, Z, P)        \
	X(cuMemcpyHtoDAsync_v2_ptsz, TO_GPU, a2, Z, P, Z, P)   \
	X(cuMemcpyDtoH_v2, FROM_GPU, a1, P, Z, Z)              \
	X(cuMemcpyDtoH_v2_ptds, FROM_GPU, a1, P, Z, Z)         \
	X(cuMemcpyDtoHAsync_v2, FROM_GPU, a2, P, Z, Z, P)      \
	X(cuMemcpyDtoHAsync_v2_ptsz, FROM_GPU, a2, P, Z, Z, P) \
	X(cuMemcpyDtoD_v2, WITHIN, a1, Z, Z, Z)                \
	X(cuMemcpyDtoD_v2_ptds, WITHIN, a1, Z, Z, Z)           \
	X(cuMemcpyDtoDAsync_v2, WITHIN, a2, Z, Z, Z, P)        \
	X(cuMemcpyDtoDAsync_v2_ptsz, WITHIN, a2, Z, Z, Z, P)   \
	X(cuMemcpy, UNKNOWN, a1, Z, Z, Z)                      \
	X(cuMemcpy_ptds, UNKNOWN, a1, Z, Z, Z)                 \
	X(cuMemcpyAsync, UNKNOWN, a2, Z, Z, Z, P)              \
	X(cuMemcpyAsync_ptsz, UNKNOWN, a2, Z, Z, Z, P)

#define KEPT(symbol, ...) ((CUresult(*)(SW_PARAMS(__VA_ARGS__)))kept[SW_ENTRY_##symbol])(SW_NAMES(__VA_ARGS__))

#define TIMED(symbol, work_stream, what, graph, ...)                                                      \
	static CUresult measured_##symbol(SW_PARAMS(__VA_ARGS__)) /* NOLINT(readability-function-size) */ \
	{                                                                                                 \
		CUstream stream = work_stream;                                                            \
		struct pair *pair = begin(what, graph, stream);                                           \
		CUresult result = KEPT(symbol, __VA_ARGS__);                                              \
		end(pair, stream);                                                                        \
		return result;                                                                            \
	}
LAUNCHES(TIMED)

#define COUNTED(symbol, direction, bytes, ...)                    \
	static CUresult measured_##symbol(SW_PARAMS(__VA_ARGS__)) \
	{                                                         \
		count_copy(direction, bytes);                     \
		return KEPT(symbol, __VA_ARGS__);                 \
	}
COPIES(COUNTED)

static const struct {
	unsigned entry;
	sw_function measured;
} replaced[] = {
#define ROW(symbol, ...) {SW_ENTRY_##symbol, (sw_function)measured_##symbol},
	LAUNCHES(ROW) COPIES(ROW)
#undef ROW
};

/* ---- of the attendant */

static bool switch_to(bool on)
{
	if (!sw_gate_close(CLOSE_NS))
		return false;
	for (unsigned i = 0; i < sizeof replaced / sizeof replaced[0]; i++) {
		unsigned entry = replaced[i].entry;
		if (kept[entry] == NULL)
			kept[entry] = sw_real[entry];
		if (kept[entry] != NULL)
			sw_real[entry] = on ? replaced[i].measured : kept[entry];
	}
	if (on) {
		/* No thread is in between: a pair of the last time that is open still is one
		 * that was never closed. Under the lock all the same: threads that take it after
		 * this see what was done. */
		pthread_mutex_lock(&lock);
		for (unsigned i = 0; i < METERS; i++)
			meters[i].first = meters[i].count = 0;
		memset(functions, 0, sizeof functions);
		pthread_mutex_unlock(&lock);
		for (unsigned i = 0; i < DIRECTIONS; i++) {
			atomic_store(&copied[i], 0);
			atomic_store(&copies[i], 0);
		}
		begun_ns = sw_monotonic_ns();
	} else {
		ended_ns = sw_monotonic_ns();
	}
	sw_gate_open();
	return true;
}

static void settle_all(void)
{
	if (!sw_visit_begin())
		return;
	for (unsigned i = 0; i < METERS; i++) {
		CUcontext popped;
		if (meters[i].context == NULL || sw_driver.context_push(meters[i].context) != CUDA_SUCCESS)
			continue;
		settle(&meters[i]);
		sw_driver.context_pop(&popped);
	}
	sw_visit_end();
}

/* The one that took longest after those that are written. */
static const struct function *next_after(const bool *written)
{
	const struct function *best = NULL;
	for (unsigned i = 0; i < FUNCTIONS; i++)
		if (functions[i].launches > 0 && !written[i] &&
		    (best == NULL || functions[i].ns > best->ns || (functions[i].ns == best->ns && functions[i].launches > best->launches)))
			best = &functions[i];
	return best;
}

static void write_functions(FILE *file)
{
	static bool written[FUNCTIONS];
	static struct function rest;
	memset(written, 0, sizeof written);
	rest = (struct function){.name = "(others)"};
	unsigned count = 0;
	for (const struct function *next; (next = next_after(written)) != NULL; count++) {
		written[next - functions] = true;
		if (count < WRITTEN) {
			fprintf(file, "function %llu %llu %lld %s\n", (unsigned long long)next->launches, (unsigned long long)next->timed,
				(long long)next->ns, next->name);
			continue;
		}
		rest.launches += next->launches;
		rest.timed += next->timed;
		rest.ns += next->ns;
	}
	if (rest.launches > 0)
		fprintf(file, "function %llu %llu %lld %s\n", (unsigned long long)rest.launches, (unsigned long long)rest.timed,
			(long long)rest.ns, rest.name);
}

static void write_all(FILE *file, int64_t now)
{
	static const char *const words[DIRECTIONS] = {"to_gpu", "from_gpu", "within", "unknown"};
	fprintf(file, "sharewell-profile 1\nwindow_ns %lld\n", (long long)(now - begun_ns));
	fprintf(file, "iterations %llu\niteration_ns %lld\niteration_jitter_ns %lld\niteration_launches %llu\n",
		(unsigned long long)atomic_load(&sw_slot->iterations), (long long)atomic_load(&sw_slot->iteration_ns),
		(long long)atomic_load(&sw_slot->iteration_jitter_ns), (unsigned long long)atomic_load(&sw_slot->iteration_launches));
	fprintf(file, "peak_bytes %llu\nfloor_bytes %llu\n", (unsigned long long)atomic_load(&sw_slot->iteration_peak_bytes),
		(unsigned long long)atomic_load(&sw_slot->iteration_floor_bytes));
	for (unsigned i = 0; i < DIRECTIONS; i++)
		fprintf(file, "copied_%s %llu %llu\n", words[i], (unsigned long long)atomic_load(&copies[i]),
			(unsigned long long)atomic_load(&copied[i]));
	pthread_mutex_lock(&lock);
	settle_all();
	write_functions(file);
	pthread_mutex_unlock(&lock);
}

/* Under another name first. */
static void write_file(int64_t now)
{
	char page[PATH_MAX - 64], path[PATH_MAX], fresh[PATH_MAX + 2];
	if (!sw_account_path(page, sizeof page))
		return;
	char *base = strrchr(page, '/');
	if (base == NULL)
		return;
	*base = '\0';
	snprintf(path, sizeof path, "%s/.%s.profile.%d", page, base + 1, (int)getpid());
	snprintf(fresh, sizeof fresh, "%s~", path);
	int fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (file == NULL) {
		if (fd >= 0)
			close(fd);
		return;
	}
	/* Functions are written under the lock, which launches take: nothing goes to the disk
	 * before it is free again. */
	static char buffer[TEXT];
	(void)setvbuf(file, buffer, _IOFBF, sizeof buffer);
	write_all(file, now);
	bool whole = fflush(file) == 0;
	fclose(file);
	if (whole)
		(void)!rename(fresh, path);
	else
		unlink(fresh);
}

void sw_profile_look(void)
{
	bool wanted = atomic_load(&sw_page->profiled) != 0;
	bool can = sw_driver.event_create != NULL && sw_driver.event_record != NULL && sw_driver.event_query != NULL &&
		   sw_driver.event_elapsed != NULL;
	int64_t now = sw_monotonic_ns();
	if (!can || (!wanted && !measures))
		return;
	if (wanted != measures && switch_to(wanted)) {
		measures = wanted;
		written_ns = 0;
	}
	if (now - written_ns < WRITE_NS)
		return;
	write_file(measures ? now : ended_ns);
	written_ns = now;
}

void sw_profile_forget_context(CUcontext context)
{
	pthread_mutex_lock(&lock);
	/* Its events went with it. */
	for (unsigned i = 0; i < METERS; i++)
		if (meters[i].context == context) {
			meters[i].context = NULL;
			meters[i].first = meters[i].count = meters[i].made = 0;
		}
	pthread_mutex_unlock(&lock);
}

void sw_profile_forget(void)
{
	for (unsigned i = 0; measures && i < sizeof replaced / sizeof replaced[0]; i++)
		if (kept[replaced[i].entry] != NULL)
			sw_real[replaced[i].entry] = kept[replaced[i].entry];
	measures = false;
}
