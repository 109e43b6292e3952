#include "sim/trace/trace.h"

#include <assert.h>
#include <string.h>

#include "base/hash.h"
#include "sim/trace/read.h"
#include "sim/trace/stream.h"

/* An open hash table of the strings' indices; 0, the empty string, marks a free slot. */
struct intern {
	uint32_t *slots;
	uint32_t *hashes; /* of each string, so that most comparisons need not touch it; as long as `slots` */
	size_t width;	  /* a power of two, at least twice the number of strings */
};

static void intern_free(struct intern *intern)
{
	free(intern->slots);
	free(intern->hashes);
	free(intern);
}

static int intern_resize(struct sw_trace *trace, size_t width)
{
	struct intern *intern = trace->intern;
	uint32_t *slots = calloc(width, sizeof *slots);
	uint32_t *hashes = realloc(intern->hashes, width * sizeof *hashes);
	if (hashes != NULL)
		intern->hashes = hashes;
	if (slots == NULL || hashes == NULL) {
		free(slots);
		return SW_ENOMEM;
	}
	for (size_t i = 1; i < trace->strings.count; i++) {
		size_t at = hashes[i] & (width - 1);
		while (slots[at] != 0)
			at = (at + 1) & (width - 1);
		slots[at] = (uint32_t)i;
	}
	free(intern->slots);
	intern->slots = slots;
	intern->width = width;
	return 0;
}

int sw_trace_intern(struct sw_trace *trace, const char *text, size_t size, uint32_t *ret_index)
{
	struct intern *intern = trace->intern;
	if (size == 0) {
		*ret_index = 0;
		return 0;
	}
	if (trace->strings.count * 2 >= intern->width) {
		int r = trace->strings.count > UINT32_MAX / 4 ? SW_ENOMEM : intern_resize(trace, intern->width * 2);
		if (r < 0)
			return r;
	}
	uint64_t mixed = sw_hash_bytes(SW_HASH_START, text, size);
	uint32_t hash = (uint32_t)(mixed ^ (mixed >> 32));
	size_t at = hash & (intern->width - 1);
	for (; intern->slots[at] != 0; at = (at + 1) & (intern->width - 1)) {
		uint32_t index = intern->slots[at];
		const char *string = trace->strings.items[index];
		if (intern->hashes[index] == hash && strncmp(string, text, size) == 0 && string[size] == '\0') {
			*ret_index = index;
			return 0;
		}
	}
	char *copy = strndup(text, size);
	char **slot = copy == NULL ? NULL : sw_vec_push(&trace->strings);
	if (slot == NULL) {
		free(copy);
		return SW_ENOMEM;
	}
	*slot = copy;
	uint32_t index = (uint32_t)(trace->strings.count - 1);
	intern->slots[at] = index;
	intern->hashes[index] = hash;
	*ret_index = index;
	return 0;
}

int sw_trace_new(const char *origin, const char *format, struct sw_trace **ret_trace)
{
	SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = calloc(1, sizeof *trace);
	if (trace == NULL || (trace->origin = strdup(origin)) == NULL || (trace->intern = calloc(1, sizeof(struct intern))) == NULL)
		return SW_ENOMEM;
	trace->format = format;
	char **empty = sw_vec_push(&trace->strings);
	if (empty == NULL || (*empty = strdup("")) == NULL || intern_resize(trace, 64) < 0)
		return SW_ENOMEM;
	*ret_trace = SW_TAKE(trace);
	return 0;
}

void sw_trace_free(struct sw_trace *trace)
{
	if (trace == NULL)
		return;
	for (size_t i = 0; i < trace->strings.count; i++)
		free(trace->strings.items[i]);
	sw_vec_free(&trace->strings);
	sw_vec_free(&trace->jobs);
	sw_vec_free(&trace->fates);
	sw_vec_free(&trace->holds);
	sw_vec_free(&trace->told);
	sw_vec_free(&trace->events);
	sw_vec_free(&trace->wakes);
	if (trace->intern != NULL)
		intern_free(trace->intern);
	free(trace->origin);
	free(trace->warning);
	free(trace);
}

const char *sw_trace_string(const struct sw_trace *trace, uint32_t index)
{
	assert(index < trace->strings.count);
	return trace->strings.items[index];
}

struct sw_trace_job *sw_trace_add(struct sw_trace *trace)
{
	struct sw_trace_job *job = sw_vec_push(&trace->jobs);
	if (job != NULL) {
		job->deadline_ns = SW_NEVER;
		job->weight_milli = 1000;
	}
	return job;
}

const char *const sw_trace_end_names[SW_TRACE_ENDS] = {"", "completed", "failed", "cancelled", "timeout", "unfinished"};

struct sw_trace_fate *sw_trace_fate_of(struct sw_trace *trace, struct sw_trace_job *job)
{
	if (job->fate != 0)
		return &trace->fates.items[job->fate - 1];
	struct sw_trace_fate *fate = sw_vec_push(&trace->fates);
	if (fate == NULL)
		return NULL;
	*fate = (struct sw_trace_fate){.started_ns = SW_NEVER, .ended_ns = SW_NEVER};
	job->fate = (uint32_t)trace->fates.count;
	return fate;
}

int sw_trace_add_hold(struct sw_trace *trace, struct sw_trace_job *job, int64_t from_ns, int64_t to_ns, bool leaves)
{
	struct sw_trace_hold *hold = sw_vec_push(&trace->holds);
	if (hold == NULL)
		return SW_ENOMEM;
	*hold = (struct sw_trace_hold){.from_ns = from_ns, .to_ns = to_ns, .next = job->hold, .leaves = leaves};
	job->hold = (uint32_t)trace->holds.count;
	return 0;
}

struct order {
	uint64_t key;
	uint32_t index;
};

/* One pass of a radix sort over 11 bits. Stable, so equal keys stay as they were. */
static void order_by_digit(const struct order *from, struct order *to, size_t count, unsigned shift)
{
	size_t starts[2048] = {0};
	for (size_t i = 0; i < count; i++)
		starts[(from[i].key >> shift) & 2047]++;
	size_t sum = 0;
	for (size_t i = 0; i < 2048; i++) {
		size_t here = starts[i];
		starts[i] = sum;
		sum += here;
	}
	for (size_t i = 0; i < count; i++)
		to[starts[(from[i].key >> shift) & 2047]++] = from[i];
}

static bool in_order(const struct sw_trace *trace)
{
	for (size_t i = 1; i < trace->jobs.count; i++)
		if (trace->jobs.items[i - 1].submit_ns > trace->jobs.items[i].submit_ns)
			return false;
	return true;
}

/* Brings the jobs into the given order without a second copy of them: along each cycle, every job
 * moves to where it belongs. */
static void permute(struct sw_trace_job *jobs, struct order *order, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct sw_trace_job kept = jobs[i];
		size_t to = i;
		while (order[to].index != i) {
			size_t from = order[to].index;
			jobs[to] = jobs[from];
			order[to].index = (uint32_t)to;
			to = from;
		}
		jobs[to] = kept;
		order[to].index = (uint32_t)to;
	}
}

int sw_trace_sort(struct sw_trace *trace)
{
	size_t count = trace->jobs.count;
	if (in_order(trace))
		return 0;
	SW_CLEANUP(sw_freep) struct order *a = malloc(count * sizeof *a);
	SW_CLEANUP(sw_freep) struct order *b = malloc(count * sizeof *b);
	if (a == NULL || b == NULL)
		return SW_ENOMEM;
	uint64_t bits = 0;
	for (size_t i = 0; i < count; i++) {
		a[i] = (struct order){(uint64_t)trace->jobs.items[i].submit_ns, (uint32_t)i};
		bits |= a[i].key;
	}
	/* Only over the bits that some time has: whole seconds are multiples of 512 ns. Something
	 * is out of order, so there are such bits. */
	struct order *from = a, *to = b;
	for (unsigned shift = (unsigned)__builtin_ctzll(bits); shift < 64 && bits >> shift != 0; shift += 11) {
		order_by_digit(from, to, count, shift);
		struct order *turned = from;
		from = to;
		to = turned;
	}
	permute(trace->jobs.items, from, count);
	return 0;
}

int sw_trace_load(const char *path, const char *format, struct sw_trace **ret_trace, struct sw_err *err)
{
	SW_CLEANUP(sw_stream_closep) struct sw_stream *stream = NULL;
	int r = sw_stream_open(path, &stream, err);
	if (r < 0)
		return r;
	return sw_trace_read(stream, format, NULL, ret_trace, err);
}

int sw_trace_parse(const char *name, const void *bytes, size_t size, const char *format, struct sw_trace **ret_trace, struct sw_err *err)
{
	SW_CLEANUP(sw_stream_closep) struct sw_stream *stream = NULL;
	int r = sw_stream_open_memory(name, bytes, size, &stream, err);
	if (r < 0)
		return r;
	return sw_trace_read(stream, format, NULL, ret_trace, err);
}
