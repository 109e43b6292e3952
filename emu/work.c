/* Doing work: in modelled time, and really. */
#include "work.h"

#include <stdlib.h>
#include <string.h>

#include "allocations.h"
#include "clock.h"
#include "config.h"
#include "engine.h"
#include "events.h"
#include "graphs.h"
#include "kernels.h"
#include "memory.h"
#include "modules.h"
#include "pools.h"
#include "shared.h"
#include "streams.h"

/* A copy is done in parts of this size, so that the copies of others come in between. */
#define PART_BYTES (4ULL << 20)

struct emu_work *emu_work_new(enum emu_work_kind kind)
{
	struct emu_work *work = calloc(1, sizeof *work);
	if (work != NULL)
		work->kind = kind;
	return work;
}

void emu_work_free(struct emu_work *work)
{
	for (struct emu_wait *wait = work->waits, *next = NULL; wait != NULL; wait = next) {
		next = wait->next;
		emu_put(&wait->stream->object);
		free(wait);
	}
	if (work->kind == EMU_WORK_KERNEL && work->kernel.function != NULL)
		emu_put(&work->kernel.function->object);
	else if (work->kind == EMU_WORK_COPY)
		free(work->copy.staged);
	else if (work->kind == EMU_WORK_RECORD)
		emu_put((struct emu_object *)work->record.event);
	else if (work->kind == EMU_WORK_GRAPH)
		emu_put((struct emu_object *)work->plan);
	else if (work->kind == EMU_WORK_FREE)
		emu_put((struct emu_object *)work->memory.pool);
	else if (work->kind == EMU_WORK_ALLOC)
		emu_graph_unreserve(work->memory.address);
	free(work);
}

struct emu_work *emu_work_copy(const struct emu_work *work)
{
	struct emu_work *copy = malloc(sizeof *copy);
	if (copy == NULL)
		return NULL;
	*copy = *work;
	copy->next = NULL;
	copy->waits = NULL;
	if (copy->kind == EMU_WORK_KERNEL)
		emu_hold(&copy->kernel.function->object);
	else if (copy->kind == EMU_WORK_COPY)
		copy->copy.staged = NULL;
	else if (copy->kind == EMU_WORK_RECORD)
		emu_hold((struct emu_object *)copy->record.event);
	else if (copy->kind == EMU_WORK_GRAPH)
		emu_hold((struct emu_object *)copy->plan);
	else if (copy->kind == EMU_WORK_FREE && copy->memory.pool != NULL)
		emu_hold((struct emu_object *)copy->memory.pool);
	else if (copy->kind == EMU_WORK_ALLOC)
		emu_graph_hold(copy->memory.address);
	return copy;
}

static uint64_t do_kernel(struct emu_work *work, struct emu_stream *stream, uint64_t ready, bool more)
{
	unsigned gpu = (unsigned)stream->context->gpu;
	struct emu_run run;
	CUresult result = emu_kernel_begin(&work->kernel.function->kernel, work->kernel.arguments, (int)gpu, &run);
	uint64_t end = ready;
	if (result == CUDA_SUCCESS) {
		end = emu_engine_run(gpu, stream->priority, ready, run.time_ns, more);
		result = emu_kernel_end(&run);
	}
	if (result != CUDA_SUCCESS)
		emu_context_fail(stream->context, result);
	return end;
}

/* Which engine copies, and of which GPU; false: the host alone. */
static bool choose_engine(int from, int to, unsigned *ret_gpu, unsigned *ret_engine)
{
	if (from == EMU_HOST && to == EMU_HOST)
		return false;
	*ret_gpu = (unsigned)(to != EMU_HOST ? to : from);
	*ret_engine = from == EMU_HOST ? EMU_H2D : to == EMU_HOST ? EMU_D2H : EMU_D2D;
	return true;
}

static uint64_t move_parts(struct emu_pin *from, struct emu_pin *to, uint64_t bytes, uint64_t ready, uint64_t latency)
{
	unsigned gpu = 0, engine = 0;
	bool timed = choose_engine(from->gpu, to->gpu, &gpu, &engine);
	uint64_t end = ready;
	for (uint64_t done = 0; done < bytes;) {
		uint64_t part = bytes - done < PART_BYTES ? bytes - done : PART_BYTES;
		if (timed)
			end = emu_engine_copy(gpu, engine, end, part, done == 0 ? latency : 0);
		memmove(to->data + done, from->data + done, part);
		done += part;
		emu_sleep_until(end);
	}
	return end;
}

/* One row, or all of it when rows follow each other without gaps. */
static CUresult copy_row(uint64_t from, uint64_t to, uint64_t bytes, char *staged, uint64_t latency, uint64_t *now)
{
	struct emu_pin source = {.data = staged, .gpu = EMU_HOST}, target;
	CUresult result = staged == NULL ? emu_pin(from, bytes, EMU_HOST, EMU_READ, &source) : CUDA_SUCCESS;
	if (result != CUDA_SUCCESS)
		return result;
	result = emu_pin(to, bytes, EMU_HOST, EMU_WRITE, &target);
	if (result == CUDA_SUCCESS) {
		*now = move_parts(&source, &target, bytes, *now, latency);
		result = emu_unpin(&target);
	}
	CUresult r = emu_unpin(&source);
	return result != CUDA_SUCCESS ? result : r;
}

static uint64_t do_copy(struct emu_work *work, struct emu_stream *stream, uint64_t ready)
{
	struct emu_side from = work->copy.from, to = work->copy.to;
	uint64_t width = work->copy.width, height = work->copy.height, depth = work->copy.depth, now = ready;
	uint64_t latency = emu_config()->gpus[stream->context->gpu].copy_latency_ns;
	if (from.pitch == width && to.pitch == width && (depth == 1 || (from.slice == width * height && to.slice == width * height))) {
		width *= height * depth;
		height = depth = 1;
	}
	CUresult result = CUDA_SUCCESS;
	for (uint64_t z = 0; z < depth && result == CUDA_SUCCESS; z++)
		for (uint64_t y = 0; y < height && result == CUDA_SUCCESS; y++)
			result = copy_row(from.address + z * from.slice + y * from.pitch, to.address + z * to.slice + y * to.pitch, width,
					  work->copy.staged, y + z == 0 ? latency : 0, &now);
	if (result != CUDA_SUCCESS)
		emu_context_fail(stream->context, result);
	return now;
}

static uint64_t do_set(struct emu_work *work, struct emu_stream *stream, uint64_t ready)
{
	uint64_t now = ready;
	unsigned gpu = (unsigned)stream->context->gpu, element = work->set.element;
	CUresult result = CUDA_SUCCESS;
	for (uint64_t y = 0; y < work->set.height && result == CUDA_SUCCESS; y++) {
		struct emu_pin pin;
		uint64_t bytes = work->set.width * element;
		result = emu_pin(work->set.address + y * work->set.pitch, bytes, (int)gpu, EMU_WRITE, &pin);
		if (result != CUDA_SUCCESS)
			break;
		if (element == 1)
			memset(pin.data, (int)(work->set.value & 0xff), bytes);
		for (uint64_t i = 0; element > 1 && i < work->set.width; i++)
			memcpy(pin.data + i * element, &work->set.value, element);
		now = emu_engine_copy(gpu, EMU_D2D, now, bytes, y == 0 ? emu_config()->gpus[gpu].launch_ns : 0);
		emu_sleep_until(now);
		result = emu_unpin(&pin);
	}
	if (result != CUDA_SUCCESS)
		emu_context_fail(stream->context, result);
	return now;
}

static uint64_t do_host(const struct emu_work *work, struct emu_stream *stream, uint64_t ready)
{
	if (work->host.callback != NULL)
		work->host.callback(work->host.stream, emu_context_state(stream->context), work->host.data);
	else
		work->host.function(work->host.data);
	uint64_t now = emu_now();
	return now > ready ? now : ready;
}

static void do_free(const struct emu_work *work)
{
	if (work->memory.pool != NULL)
		emu_pool_freed(work->memory.pool, work->memory.address, work->memory.ticket);
	else if (emu_graph_owns(work->memory.address))
		emu_graph_unmap(work->memory.address);
	else
		emu_deallocate(work->memory.address);
}

uint64_t emu_work_do(struct emu_work *work, struct emu_stream *stream, uint64_t ready_ns, bool more)
{
	bool failed = emu_context_state(stream->context) != CUDA_SUCCESS;
	switch (work->kind) {
	case EMU_WORK_KERNEL:
		return failed ? ready_ns : do_kernel(work, stream, ready_ns, more);
	case EMU_WORK_COPY:
		return failed ? ready_ns : do_copy(work, stream, ready_ns);
	case EMU_WORK_SET:
		return failed ? ready_ns : do_set(work, stream, ready_ns);
	case EMU_WORK_GRAPH:
		return failed ? ready_ns : emu_plan_do(work->plan, stream, ready_ns, more);
	case EMU_WORK_HOST:
		/* A host function is not called in a context that failed; a
		 * callback is, and hears of it. */
		return failed && work->host.callback == NULL ? ready_ns : do_host(work, stream, ready_ns);
	case EMU_WORK_RECORD:
		emu_event_reach(work->record.event, work->record.version, ready_ns);
		return ready_ns;
	case EMU_WORK_FREE:
		do_free(work);
		return ready_ns;
	case EMU_WORK_ALLOC: /* happened when the graph was launched */
	case EMU_WORK_NOTHING:
		break;
	}
	return ready_ns;
}
