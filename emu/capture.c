/* Captures. A capture begins in one stream and spreads to others by events. It ends in the stream
 * it began in, to which all others must have returned. */
#include "capture.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "context.h"
#include "events.h"
#include "graphs.h"
#include "memory.h"
#include "streams.h"

enum { TAILS_MAX = 64, STREAMS_MAX = 64 };

struct tails {
	struct emu_node *nodes[TAILS_MAX]; /* what the next work waits for */
	unsigned count;
};

struct capture {
	struct capture *next; /* of all that are under way */
	struct emu_graph *graph;
	bool graph_given; /* by the program: it stays its own */
	int mode;
	long thread;
	uint64_t id;
	bool spoiled;
	struct emu_stream *streams[STREAMS_MAX]; /* the first is where it began; with references */
	unsigned stream_count;
};

struct emu_stream_capture {
	struct capture *capture;
	struct tails tails;
};

struct emu_event_capture {
	uint64_t id; /* of the capture, which may be over */
	struct tails tails;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* before emu_graphs_lock */
static struct capture *all;
static atomic_uint active;
static _Thread_local int thread_mode = CU_CAPTURE_MODE_GLOBAL;

static long this_thread(void)
{
	return syscall(SYS_gettid);
}

static bool none(void)
{
	return atomic_load_explicit(&active, memory_order_acquire) == 0;
}

static bool add_tail(struct tails *tails, struct emu_node *node)
{
	for (unsigned i = 0; i < tails->count; i++)
		if (tails->nodes[i] == node)
			return true;
	if (tails->count == TAILS_MAX)
		return false;
	tails->nodes[tails->count++] = node;
	return true;
}

bool emu_capturing(struct emu_stream *stream)
{
	if (none())
		return false;
	pthread_mutex_lock(&lock);
	bool capturing = stream->capture != NULL;
	pthread_mutex_unlock(&lock);
	return capturing;
}

CUresult emu_capture_refuse(struct emu_stream *stream)
{
	if (none())
		return CUDA_SUCCESS;
	CUresult result = CUDA_SUCCESS;
	pthread_mutex_lock(&lock);
	if (stream->capture != NULL) {
		stream->capture->capture->spoiled = true;
		result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	} else if (stream->kind == EMU_STREAM_LEGACY) {
		/* The default stream would wait for the capturing ones. */
		for (struct capture *capture = all; capture != NULL; capture = capture->next) {
			if (capture->streams[0]->context == stream->context && (capture->streams[0]->flags & CU_STREAM_NON_BLOCKING) == 0) {
				capture->spoiled = true;
				result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
			}
		}
	}
	pthread_mutex_unlock(&lock);
	return result;
}

CUresult emu_capture_check_unsafe(void)
{
	if (none() || thread_mode == CU_CAPTURE_MODE_RELAXED)
		return CUDA_SUCCESS;
	CUresult result = CUDA_SUCCESS;
	long me = this_thread();
	pthread_mutex_lock(&lock);
	for (struct capture *capture = all; capture != NULL; capture = capture->next) {
		bool mine = capture->thread == me && capture->mode != CU_CAPTURE_MODE_RELAXED;
		bool everybodys = capture->mode == CU_CAPTURE_MODE_GLOBAL && thread_mode == CU_CAPTURE_MODE_GLOBAL;
		if (!mine && !everybodys)
			continue;
		capture->spoiled = true;
		result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

CUresult emu_capture_check_context(const struct emu_context *context)
{
	if (none())
		return CUDA_SUCCESS;
	CUresult result = CUDA_SUCCESS;
	pthread_mutex_lock(&lock);
	for (struct capture *capture = all; capture != NULL; capture = capture->next)
		for (unsigned i = 0; i < capture->stream_count; i++)
			if (capture->streams[i]->context == context) {
				capture->spoiled = true;
				result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
			}
	pthread_mutex_unlock(&lock);
	return result;
}

static int node_type(const struct emu_work *work)
{
	switch (work->kind) {
	case EMU_WORK_KERNEL:
		return CU_GRAPH_NODE_KERNEL;
	case EMU_WORK_COPY:
		return CU_GRAPH_NODE_MEMCPY;
	case EMU_WORK_SET:
		return CU_GRAPH_NODE_MEMSET;
	case EMU_WORK_HOST:
		return CU_GRAPH_NODE_HOST;
	case EMU_WORK_ALLOC:
		return CU_GRAPH_NODE_MEM_ALLOC;
	case EMU_WORK_FREE:
		return CU_GRAPH_NODE_MEM_FREE;
	case EMU_WORK_RECORD:
		return CU_GRAPH_NODE_RECORD_EVENT;
	default:
		return CU_GRAPH_NODE_EMPTY;
	}
}

/* The parameters that the work came from, for programs that ask captured nodes. */
static void describe(struct emu_node *node)
{
	const struct emu_work *work = node->work;
	if (work->kind == EMU_WORK_COPY) {
		node->copy = (CUcopy3d){
			.src_type = CU_MEMORY_UNIFIED,
			.src_device = work->copy.from.address,
			.src_pitch = work->copy.from.pitch,
			.dst_type = CU_MEMORY_UNIFIED,
			.dst_device = work->copy.to.address,
			.dst_pitch = work->copy.to.pitch,
			.width = work->copy.width,
			.height = work->copy.height,
			.depth = work->copy.depth,
		};
	} else if (work->kind == EMU_WORK_SET) {
		node->set = (CUmemsetNode){.destination = work->set.address,
					   .pitch = work->set.pitch,
					   .value = work->set.value,
					   .element_bytes = work->set.element,
					   .width = work->set.width,
					   .height = work->set.height};
	}
}

/* Below the lock. */
static CUresult add_work(struct emu_stream_capture *of, struct emu_work *work)
{
	struct emu_node *node = NULL;
	if (of->capture->spoiled) {
		emu_work_free(work);
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	}
	/* A graph launched into a capture, or a wait for another stream, has no
	 * place in a graph here. */
	if (work->kind == EMU_WORK_GRAPH || work->kind == EMU_WORK_NOTHING) {
		of->capture->spoiled = true;
		emu_work_free(work);
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	pthread_mutex_lock(&emu_graphs_lock);
	CUresult result = emu_graph_add(of->capture->graph, node_type(work), work, of->tails.nodes, of->tails.count, &node);
	if (result == CUDA_SUCCESS)
		describe(node);
	pthread_mutex_unlock(&emu_graphs_lock);
	if (result == CUDA_SUCCESS) {
		of->tails.nodes[0] = node;
		of->tails.count = 1;
	}
	return result;
}

CUresult emu_submit(struct emu_stream *stream, struct emu_work *work, uint64_t *ret_number)
{
	if (none())
		return emu_stream_put(stream, work, ret_number);
	pthread_mutex_lock(&lock);
	struct emu_stream_capture *of = stream->capture;
	CUresult result = of != NULL ? add_work(of, work) : CUDA_SUCCESS;
	pthread_mutex_unlock(&lock);
	if (of != NULL)
		return result;
	if (stream->kind == EMU_STREAM_LEGACY) {
		result = emu_capture_refuse(stream);
		if (result != CUDA_SUCCESS) {
			emu_work_free(work);
			return result;
		}
	}
	return emu_stream_put(stream, work, ret_number);
}

CUresult emu_capture_record(struct emu_stream *stream, struct emu_event *event, bool *ret_done)
{
	CUresult result = CUDA_SUCCESS;
	pthread_mutex_lock(&lock);
	if (stream->capture != NULL) {
		*ret_done = true;
		if (event->capture == NULL)
			event->capture = calloc(1, sizeof *event->capture);
		if (stream->capture->capture->spoiled)
			result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
		else if (event->capture == NULL)
			result = CUDA_ERROR_OUT_OF_MEMORY;
		else
			*event->capture = (struct emu_event_capture){stream->capture->capture->id, stream->capture->tails};
	} else {
		/* A plain record: the event is of no capture any more. */
		free(event->capture);
		event->capture = NULL;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

static struct capture *capture_with(uint64_t id)
{
	struct capture *capture = all;
	while (capture != NULL && capture->id != id)
		capture = capture->next;
	return capture;
}

bool emu_capture_has_event(struct emu_event *event)
{
	pthread_mutex_lock(&lock);
	bool captured = event->capture != NULL;
	pthread_mutex_unlock(&lock);
	return captured;
}

/* No other code knows the event any more. */
void emu_capture_forget_event(struct emu_event *event)
{
	free(event->capture);
	event->capture = NULL;
}

/* Below the lock: the stream is part of the capture from now on. */
static CUresult join(struct emu_stream *stream, struct capture *capture)
{
	if (stream->kind == EMU_STREAM_LEGACY)
		return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	struct emu_stream_capture *of = capture->stream_count < STREAMS_MAX ? calloc(1, sizeof *of) : NULL;
	if (of == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	of->capture = capture;
	stream->capture = of;
	emu_hold(&stream->object);
	capture->streams[capture->stream_count++] = stream;
	return CUDA_SUCCESS;
}

/* Below the lock. */
static CUresult wait_for(struct emu_stream *stream, const struct emu_event_capture *event)
{
	struct capture *theirs = event != NULL ? capture_with(event->id) : NULL;
	struct capture *ours = stream->capture != NULL ? stream->capture->capture : NULL;
	if (ours != NULL && ours->spoiled)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (theirs == NULL) {
		/* Work outside of the capture cannot be waited for inside. */
		assert(ours != NULL);
		ours->spoiled = true;
		return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
	}
	if (ours != NULL && ours != theirs) {
		ours->spoiled = theirs->spoiled = true;
		return CUDA_ERROR_STREAM_CAPTURE_MERGE;
	}
	CUresult result = ours == NULL ? join(stream, theirs) : CUDA_SUCCESS;
	for (unsigned i = 0; i < event->tails.count && result == CUDA_SUCCESS; i++)
		if (!add_tail(&stream->capture->tails, event->tails.nodes[i]))
			result = CUDA_ERROR_OUT_OF_MEMORY;
	return result;
}

CUresult emu_capture_wait(struct emu_stream *stream, struct emu_event *event, bool *ret_done)
{
	if (none() && !emu_capture_has_event(event))
		return CUDA_SUCCESS;
	CUresult result = CUDA_SUCCESS;
	pthread_mutex_lock(&lock);
	bool live = event->capture != NULL && capture_with(event->capture->id) != NULL;
	if (stream->capture != NULL || live) {
		*ret_done = true;
		result = wait_for(stream, event->capture);
	} else if (event->capture != NULL) {
		result = CUDA_ERROR_CAPTURED_EVENT;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

/* Below the lock: out of the list, its streams free again. The graph is the caller's. */
static void end(struct capture *capture)
{
	struct capture **link = &all;
	while (*link != capture)
		link = &(*link)->next;
	*link = capture->next;
	atomic_fetch_sub(&active, 1);
	for (unsigned i = 0; i < capture->stream_count; i++) {
		free(capture->streams[i]->capture);
		capture->streams[i]->capture = NULL;
		emu_put(&capture->streams[i]->object);
	}
	free(capture);
}

void emu_capture_abandon(struct emu_stream *stream)
{
	if (none())
		return;
	struct emu_graph *graph = NULL;
	pthread_mutex_lock(&lock);
	if (stream->capture != NULL) {
		struct capture *capture = stream->capture->capture;
		if (capture->streams[0] == stream) {
			graph = capture->graph_given ? NULL : capture->graph;
			end(capture);
		} else {
			capture->spoiled = true;
		}
	}
	pthread_mutex_unlock(&lock);
	if (graph != NULL)
		emu_retire(graph, EMU_GRAPH);
}

/* Entry points. */

static CUresult begin_in(struct emu_stream *stream, struct emu_graph *graph, int mode, const CUgraphNode *needs, size_t count)
{
	if (stream->kind == EMU_STREAM_LEGACY)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (stream->capture != NULL)
		return CUDA_ERROR_ILLEGAL_STATE;
	struct capture *capture = calloc(1, sizeof *capture);
	if (capture == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	capture->mode = mode;
	capture->thread = this_thread();
	capture->id = emu_next_id();
	capture->graph_given = graph != NULL;
	capture->graph = graph != NULL ? graph : emu_graph_new();
	CUresult result = capture->graph != NULL ? join(stream, capture) : CUDA_ERROR_OUT_OF_MEMORY;
	if (result != CUDA_SUCCESS) {
		free(capture);
		return result;
	}
	for (size_t i = 0; i < count && i < TAILS_MAX; i++)
		add_tail(&stream->capture->tails, emu_node_of(needs[i]));
	capture->next = all;
	all = capture;
	atomic_fetch_add(&active, 1);
	return CUDA_SUCCESS;
}

static CUresult begin(const char *entry, CUstream handle, enum emu_flavour flavour, CUgraph graph_handle, const CUgraphNode *needs,
		      size_t count, int mode)
{
	CUresult result = emu_enter(entry, EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_stream *stream = NULL;
	if (mode < CU_CAPTURE_MODE_GLOBAL || mode > CU_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	result = emu_stream_of(handle, flavour, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&lock);
	struct emu_graph *graph = graph_handle != NULL ? emu_graph_of(graph_handle) : NULL;
	for (size_t i = 0; i < count; i++)
		if (needs == NULL || emu_node_of(needs[i]) == NULL)
			result = CUDA_ERROR_INVALID_VALUE;
	if (graph_handle != NULL && graph == NULL)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		result = begin_in(stream, graph, mode, needs, count);
	pthread_mutex_unlock(&lock);
	emu_put(&stream->object);
	return result;
}

TWINS(cuStreamBeginCapture, _ptsz, begin(__func__, stream, flavour, NULL, NULL, 0, CU_CAPTURE_MODE_GLOBAL), CUstream stream)
TWINS(cuStreamBeginCapture_v2, _ptsz, begin(__func__, stream, flavour, NULL, NULL, 0, mode), CUstream stream, int mode)
TWINS(cuStreamBeginCaptureToGraph, _ptsz,
      graph != NULL ? ((void)data, begin(__func__, stream, flavour, graph, needs, count, mode)) : CUDA_ERROR_INVALID_VALUE, CUstream stream,
      CUgraph graph, const CUgraphNode *needs, const CUgraphEdgeData *data, size_t count, int mode)

static void mark_before(struct emu_node *node)
{
	if (node->mark)
		return;
	node->mark = true;
	for (unsigned i = 0; i < node->need_count; i++)
		mark_before(node->needs[i]);
}

/* Has everything that was forked off come back to where the capture began? */
static bool joined(const struct capture *capture)
{
	bool good = true;
	pthread_mutex_lock(&emu_graphs_lock);
	for (unsigned i = 0; i < capture->graph->count; i++)
		capture->graph->nodes[i]->mark = false;
	const struct tails *tails = &capture->streams[0]->capture->tails;
	for (unsigned i = 0; i < tails->count; i++)
		mark_before(tails->nodes[i]);
	for (unsigned s = 1; s < capture->stream_count; s++) {
		const struct tails *other = &capture->streams[s]->capture->tails;
		for (unsigned i = 0; i < other->count; i++)
			good = good && other->nodes[i]->mark;
	}
	pthread_mutex_unlock(&emu_graphs_lock);
	return good;
}

/* Below the lock; `*ret_spare`: a graph that the caller does not get. */
static CUresult finish(struct emu_stream *stream, CUgraph *ret_graph, struct emu_graph **ret_spare)
{
	if (stream->capture == NULL)
		return CUDA_ERROR_ILLEGAL_STATE;
	struct capture *capture = stream->capture->capture;
	if (capture->mode != CU_CAPTURE_MODE_RELAXED && capture->thread != this_thread())
		return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
	CUresult result = CUDA_SUCCESS;
	if (capture->streams[0] != stream) {
		capture->spoiled = true;
		return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
	}
	if (capture->spoiled)
		result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	else if (!joined(capture))
		result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
	if (result == CUDA_SUCCESS)
		*ret_graph = (CUgraph)capture->graph;
	else
		*ret_spare = capture->graph_given ? NULL : capture->graph;
	end(capture);
	return result;
}

static CUresult end_capture(const char *entry, CUstream handle, enum emu_flavour flavour, CUgraph *ret_graph)
{
	CUresult result = emu_enter(entry, EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_stream *stream = NULL;
	struct emu_graph *spare = NULL;
	if (ret_graph == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	result = emu_stream_of(handle, flavour, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	*ret_graph = NULL;
	pthread_mutex_lock(&lock);
	result = finish(stream, ret_graph, &spare);
	pthread_mutex_unlock(&lock);
	if (spare != NULL)
		emu_retire(spare, EMU_GRAPH);
	emu_put(&stream->object);
	return result;
}

TWINS(cuStreamEndCapture, _ptsz, end_capture(__func__, stream, flavour, ret_graph), CUstream stream, CUgraph *ret_graph)

/* Where the answers about a capture go; each may be NULL. */
struct info {
	int *status;
	uint64_t *id;
	CUgraph *graph;
	const CUgraphNode **needs;
	const CUgraphEdgeData **data;
	size_t *count;
};

static CUresult get_info(const char *entry, CUstream handle, enum emu_flavour flavour, struct info info)
{
	CUresult result = emu_enter(entry, EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_stream *stream = NULL;
	if (info.status == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	result = emu_stream_of(handle, flavour, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&lock);
	const struct emu_stream_capture *of = stream->capture;
	if (stream->kind == EMU_STREAM_LEGACY) {
		/* Whether the default stream captures cannot be asked while
		 * others do that wait for it. */
		for (struct capture *capture = all; capture != NULL; capture = capture->next)
			if (capture->streams[0]->context == stream->context && (capture->streams[0]->flags & CU_STREAM_NON_BLOCKING) == 0)
				result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	}
	if (result == CUDA_SUCCESS)
		*info.status = of == NULL ? CU_CAPTURE_NONE : of->capture->spoiled ? CU_CAPTURE_INVALIDATED : CU_CAPTURE_ACTIVE;
	if (result == CUDA_SUCCESS && of != NULL && !of->capture->spoiled) {
		if (info.id != NULL)
			*info.id = of->capture->id;
		if (info.graph != NULL)
			*info.graph = (CUgraph)of->capture->graph;
		if (info.needs != NULL)
			*info.needs = (const CUgraphNode *)of->tails.nodes;
		if (info.data != NULL)
			*info.data = NULL;
		if (info.count != NULL)
			*info.count = of->tails.count;
	}
	pthread_mutex_unlock(&lock);
	emu_put(&stream->object);
	return result;
}

TWINS(cuStreamIsCapturing, _ptsz, get_info(__func__, stream, flavour, (struct info){.status = ret_status}), CUstream stream,
      int *ret_status)
TWINS(cuStreamGetCaptureInfo, _ptsz, get_info(__func__, stream, flavour, (struct info){.status = ret_status, .id = ret_id}),
      CUstream stream, int *ret_status, uint64_t *ret_id)
TWINS(cuStreamGetCaptureInfo_v2, _ptsz,
      get_info(__func__, stream, flavour, (struct info){ret_status, ret_id, ret_graph, ret_needs, NULL, ret_count}), CUstream stream,
      int *ret_status, uint64_t *ret_id, CUgraph *ret_graph, const CUgraphNode **ret_needs, size_t *ret_count)
TWINS(cuStreamGetCaptureInfo_v3, _ptsz,
      get_info(__func__, stream, flavour, (struct info){ret_status, ret_id, ret_graph, ret_needs, ret_data, ret_count}), CUstream stream,
      int *ret_status, uint64_t *ret_id, CUgraph *ret_graph, const CUgraphNode **ret_needs, const CUgraphEdgeData **ret_data,
      size_t *ret_count)

static CUresult update(const char *entry, CUstream handle, enum emu_flavour flavour, CUgraphNode *needs, size_t count, unsigned flags)
{
	CUresult result = emu_enter(entry, EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_stream *stream = NULL;
	if (flags > 1 || (needs == NULL && count > 0) || count > TAILS_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	result = emu_stream_of(handle, flavour, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < count; i++)
		if (emu_node_of(needs[i]) == NULL)
			result = CUDA_ERROR_INVALID_VALUE;
	if (stream->capture == NULL)
		result = CUDA_ERROR_ILLEGAL_STATE;
	if (result == CUDA_SUCCESS && flags == 1)
		stream->capture->tails.count = 0;
	for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++)
		if (!add_tail(&stream->capture->tails, emu_node_of(needs[i])))
			result = CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_unlock(&lock);
	emu_put(&stream->object);
	return result;
}

TWINS(cuStreamUpdateCaptureDependencies, _ptsz, update(__func__, stream, flavour, needs, count, flags), CUstream stream, CUgraphNode *needs,
      size_t count, unsigned flags)
TWINS(cuStreamUpdateCaptureDependencies_v2, _ptsz, ((void)data, update(__func__, stream, flavour, needs, count, flags)), CUstream stream,
      CUgraphNode *needs, const CUgraphEdgeData *data, size_t count, unsigned flags)

ENTRY(cuThreadExchangeStreamCaptureMode, int *mode)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT | EMU_ANYWAY, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	if (mode == NULL || *mode < CU_CAPTURE_MODE_GLOBAL || *mode > CU_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	int before = thread_mode;
	thread_mode = *mode;
	*mode = before;
	return CUDA_SUCCESS;
}
