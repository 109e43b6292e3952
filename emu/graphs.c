/* Graphs and their nodes. */
#include "graphs.h"

#include <stdlib.h>
#include <string.h>

#include "context.h"
#include "copies.h"
#include "events.h"
#include "launch.h"
#include "modules.h"

pthread_mutex_t emu_graphs_lock = PTHREAD_MUTEX_INITIALIZER;

static void destroy_node(struct emu_object *object)
{
	struct emu_node *node = (struct emu_node *)object;
	if (node->work != NULL)
		emu_work_free(node->work);
	if (node->child != NULL)
		emu_retire(node->child, EMU_GRAPH);
	free(node->needs);
	free(node);
}

static void destroy_graph(struct emu_object *object)
{
	struct emu_graph *graph = (struct emu_graph *)object;
	for (unsigned i = 0; i < graph->count; i++)
		emu_retire(graph->nodes[i], EMU_NODE);
	free(graph->nodes);
	free(graph);
}

struct emu_graph *emu_graph_new(void)
{
	struct emu_graph *graph = calloc(1, sizeof *graph);
	if (graph != NULL)
		emu_publish(&graph->object, EMU_GRAPH, destroy_graph);
	return graph;
}

/* Handles of graphs are used below the lock only, where no thread can destroy them: the
 * reference is not kept. */
struct emu_graph *emu_graph_of(CUgraph handle)
{
	struct emu_graph *graph = emu_get(handle, EMU_GRAPH);
	if (graph != NULL)
		emu_put(&graph->object);
	return graph;
}

struct emu_node *emu_node_of(CUgraphNode handle)
{
	struct emu_node *node = emu_get(handle, EMU_NODE);
	if (node != NULL)
		emu_put(&node->object);
	return node;
}

CUresult emu_node_need(struct emu_node *node, struct emu_node *needed)
{
	for (unsigned i = 0; i < node->need_count; i++)
		if (node->needs[i] == needed)
			return CUDA_SUCCESS;
	if (node->need_count == node->need_size) {
		unsigned size = node->need_size != 0 ? node->need_size * 2 : 4;
		struct emu_node **grown = realloc(node->needs, size * sizeof(struct emu_node *));
		if (grown == NULL)
			return CUDA_ERROR_OUT_OF_MEMORY;
		node->needs = grown;
		node->need_size = size;
	}
	node->needs[node->need_count++] = needed;
	return CUDA_SUCCESS;
}

/* The pointers that a question for a kernel node's parameters is answered with. */
static void point_at_arguments(struct emu_node *node)
{
	const struct emu_kernel *kernel = &node->work->kernel.function->kernel;
	for (unsigned i = 0; i < kernel->parameter_count; i++)
		node->parameters[i] = node->work->kernel.arguments + kernel->parameters[i].offset;
}

static void set_work(struct emu_node *node, struct emu_work *work)
{
	if (node->work != NULL)
		emu_work_free(node->work);
	node->work = work;
	if (node->type == CU_GRAPH_NODE_KERNEL)
		point_at_arguments(node);
}

CUresult emu_graph_add(struct emu_graph *graph, int type, struct emu_work *work, struct emu_node *const *needs, unsigned need_count,
		       struct emu_node **ret_node)
{
	struct emu_node *node = calloc(1, sizeof *node);
	CUresult result = node != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	if (result == CUDA_SUCCESS && graph->count == graph->size) {
		unsigned size = graph->size != 0 ? graph->size * 2 : 16;
		struct emu_node **grown = realloc(graph->nodes, size * sizeof(struct emu_node *));
		if (grown == NULL)
			result = CUDA_ERROR_OUT_OF_MEMORY;
		else
			graph->nodes = grown;
		graph->size = grown != NULL ? size : graph->size;
	}
	for (unsigned i = 0; i < need_count && result == CUDA_SUCCESS; i++)
		result = needs[i]->graph == graph ? emu_node_need(node, needs[i]) : CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS) {
		if (work != NULL)
			emu_work_free(work);
		if (node != NULL)
			free(node->needs);
		free(node);
		return result;
	}
	node->graph = graph;
	node->type = type;
	node->enabled = true;
	set_work(node, work);
	emu_publish(&node->object, EMU_NODE, destroy_node);
	graph->nodes[graph->count++] = node;
	if (ret_node != NULL)
		*ret_node = node;
	return CUDA_SUCCESS;
}

static struct emu_node *copy_of(const struct emu_graph *copy, const struct emu_node *original)
{
	for (unsigned i = 0; i < copy->count; i++)
		if (copy->nodes[i]->original == original)
			return copy->nodes[i];
	return NULL;
}

struct emu_graph *emu_graph_copy(const struct emu_graph *graph)
{
	struct emu_graph *copy = emu_graph_new();
	for (unsigned i = 0; copy != NULL && i < graph->count; i++) {
		const struct emu_node *from = graph->nodes[i];
		struct emu_work *work = from->work != NULL ? emu_work_copy(from->work) : NULL;
		struct emu_node *node = NULL;
		CUresult result = from->work != NULL && work == NULL ? CUDA_ERROR_OUT_OF_MEMORY
								     : emu_graph_add(copy, from->type, work, NULL, 0, &node);
		if (result == CUDA_SUCCESS) {
			node->original = graph->nodes[i];
			node->enabled = from->enabled;
			node->copy = from->copy;
			node->set = from->set;
			node->alloc = from->alloc;
			node->child = from->child != NULL ? emu_graph_copy(from->child) : NULL;
			if (from->child != NULL && node->child == NULL)
				result = CUDA_ERROR_OUT_OF_MEMORY;
		}
		if (result != CUDA_SUCCESS) {
			emu_retire(copy, EMU_GRAPH);
			return NULL;
		}
	}
	for (unsigned i = 0; copy != NULL && i < graph->count; i++)
		for (unsigned j = 0; j < graph->nodes[i]->need_count; j++)
			emu_node_need(copy->nodes[i], copy_of(copy, graph->nodes[i]->needs[j]));
	return copy;
}

/* Every entry point below goes through here: `lock_*` enters and locks, and the
 * caller unlocks with `leave`. */
static CUresult lock_all(const char *entry)
{
	CUresult result = emu_enter(entry, EMU_NO_CONTEXT, NULL);
	if (result == CUDA_SUCCESS)
		pthread_mutex_lock(&emu_graphs_lock);
	return result;
}

static CUresult leave(CUresult result)
{
	pthread_mutex_unlock(&emu_graphs_lock);
	return result;
}

static CUresult lock_node(const char *entry, CUgraphNode handle, int type, struct emu_node **ret_node)
{
	CUresult result = lock_all(entry);
	if (result != CUDA_SUCCESS)
		return result;
	*ret_node = emu_node_of(handle);
	return *ret_node != NULL && (type < 0 || (*ret_node)->type == type) ? CUDA_SUCCESS : leave(CUDA_ERROR_INVALID_VALUE);
}

ENTRY(cuGraphCreate, CUgraph *ret_graph, unsigned flags)
{
	CUresult result = lock_all(__func__);
	if (result != CUDA_SUCCESS)
		return result;
	if (ret_graph == NULL || flags != 0)
		return leave(CUDA_ERROR_INVALID_VALUE);
	struct emu_graph *graph = emu_graph_new();
	if (graph == NULL)
		return leave(CUDA_ERROR_OUT_OF_MEMORY);
	*ret_graph = (CUgraph)graph;
	return leave(CUDA_SUCCESS);
}

ENTRY(cuGraphDestroy, CUgraph handle)
{
	CUresult result = lock_all(__func__);
	return result != CUDA_SUCCESS ? result : leave(emu_retire(handle, EMU_GRAPH) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

ENTRY(cuGraphClone, CUgraph *ret_copy, CUgraph handle)
{
	CUresult result = lock_all(__func__);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_graph *graph = emu_graph_of(handle);
	if (ret_copy == NULL || graph == NULL)
		return leave(CUDA_ERROR_INVALID_VALUE);
	struct emu_graph *copy = emu_graph_copy(graph);
	if (copy == NULL)
		return leave(CUDA_ERROR_OUT_OF_MEMORY);
	*ret_copy = (CUgraph)copy;
	return leave(CUDA_SUCCESS);
}

/* Adds a node for a program; the lock is held. */
static CUresult add(CUgraphNode *ret_node, CUgraph graph_handle, const CUgraphNode *needs, size_t count, int type, struct emu_work *work,
		    struct emu_node **ret_added)
{
	struct emu_graph *graph = emu_graph_of(graph_handle);
	CUresult result = ret_node != NULL && graph != NULL && (needs != NULL || count == 0) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++)
		if (emu_node_of(needs[i]) == NULL)
			result = CUDA_ERROR_INVALID_VALUE;
	struct emu_node *node = NULL;
	if (result == CUDA_SUCCESS)
		result = emu_graph_add(graph, type, work, (struct emu_node *const *)needs, (unsigned)count, &node);
	else if (work != NULL)
		emu_work_free(work);
	if (result != CUDA_SUCCESS)
		return result;
	*ret_node = (CUgraphNode)node;
	if (ret_added != NULL)
		*ret_added = node;
	return CUDA_SUCCESS;
}

/* The newer structure may name a library's kernel instead of a function; the
 * older one ends before it. */
CUkernelNode emu_kernel_params(const CUkernelNode *params, bool second)
{
	CUkernelNode whole = {0};
	memcpy(&whole, params, second ? sizeof whole : offsetof(CUkernelNode, kernel));
	if (whole.function == NULL)
		whole.function = (CUfunction)whole.kernel;
	return whole;
}

static CUresult kernel_work(const CUkernelNode *params, bool second, struct emu_work **ret_work)
{
	if (params == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUkernelNode whole = emu_kernel_params(params, second);
	return emu_launch_work(&whole, ret_work);
}

static CUresult add_kernel(const char *entry, CUgraphNode *ret_node, CUgraph graph, const CUgraphNode *needs, size_t count,
			   const CUkernelNode *params, bool second)
{
	struct emu_work *work = NULL;
	CUresult result = lock_all(entry);
	if (result != CUDA_SUCCESS)
		return result;
	result = kernel_work(params, second, &work);
	return leave(result == CUDA_SUCCESS ? add(ret_node, graph, needs, count, CU_GRAPH_NODE_KERNEL, work, NULL) : result);
}

ENTRY(cuGraphAddKernelNode, CUgraphNode *ret_node, CUgraph graph, const CUgraphNode *needs, size_t count, const CUkernelNode *params)
{
	return add_kernel(__func__, ret_node, graph, needs, count, params, false);
}

ENTRY(cuGraphAddKernelNode_v2, CUgraphNode *ret_node, CUgraph graph, const CUgraphNode *needs, size_t count, const CUkernelNode *params)
{
	return add_kernel(__func__, ret_node, graph, needs, count, params, true);
}

ENTRY(cuGraphAddMemcpyNode, CUgraphNode *ret_node, CUgraph graph, const CUgraphNode *needs, size_t count, const CUcopy3d *copy,
      CUcontext context)
{
	(void)context;
	struct emu_work *work = NULL;
	struct emu_node *node = NULL;
	CUresult result = lock_all(__func__);
	if (result != CUDA_SUCCESS)
		return result;
	result = copy != NULL ? emu_copy_work(copy, &work) : CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		result = add(ret_node, graph, needs, count, CU_GRAPH_NODE_MEMCPY, work, &node);
	if (result == CUDA_SUCCESS)
		node->copy = *copy;
	return leave(result);
}

ENTRY(cuGraphAddMemsetNode, CUgraphNode *ret_node, CUgraph graph, const CUgraphNode *needs, size_t count, const CUmemsetNode *set,
      CUcontext context)
{
	(void)context;
	struct emu_work *work = NULL;
	struct emu_node *node = NULL;
	CUresult result = lock_all(__func__);
	if (result != CUDA_SUCCESS)
		return result;
	result = set != NULL ? emu_set_work(set, &work) : CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		result = add(ret_node, graph, needs, count, CU_GRAPH_NODE_MEMSET, work, &node);
	if (result == CUDA_SUCCESS)
		node->set = *set;
	return leave(result);
}

static struct emu_work *host_work(const CUhostNode *host)
{
	struct emu_work *work = host != NULL && host->function != NULL ? emu_work_new(EMU_WORK_HOST) : NULL;
	if (work != NULL) {
		work->host.function = host->function;
		work->host.data = host->data;
	}
	return work;
}

ENTRY(cuGraphAddHostNode, CUgraphNode *ret_node, CUgraph graph, const CUgraphNode *needs, size_t count, const CUhostNode *host)
{
	CUresult result = lock_all(__func__);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_work *work = host_work(host);
	return leave(work != NULL ? add(ret_node, graph, needs, count, CU_GRAPH_NODE_HOST, work, NULL) : CUDA_ERROR_INVALID_VALUE);
}

ENTRY(cuGraphAddEmptyNode, CUgraphNode *ret_node, CUgraph graph, const CUgraphNode *needs, size_t count)
{
	CUresult result = lock_all(__func__);
	return result != CUDA_SUCCESS ? result : leave(add(ret_node, graph, needs, count, CU_GRAPH_NODE_EMPTY, NULL, NULL));
}

ENTRY(cuGraphAddChildGraphNode, CUgraphNode *ret_node, CUgraph graph, const CUgraphNode *needs, size_t count, CUgraph child_handle)
{
	struct emu_node *node = NULL;
	CUresult result = lock_all(__func__);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_graph *child = emu_graph_of(child_handle);
	struct emu_graph *copy = child != NULL && child_handle != graph ? emu_graph_copy(child) : NULL;
	if (copy == NULL)
		return leave(CUDA_ERROR_INVALID_VALUE);
	result = add(ret_node, graph, needs, count, CU_GRAPH_NODE_GRAPH, NULL, &node);
	if (result == CUDA_SUCCESS)
		node->child = copy;
	else
		emu_retire(copy, EMU_GRAPH);
	return leave(result);
}

ENTRY(cuGraphChildGraphNodeGetGraph, CUgraphNode handle, CUgraph *ret_graph)
{
	struct emu_node *node = NULL;
	CUresult result = lock_node(__func__, handle, CU_GRAPH_NODE_GRAPH, &node);
	if (result != CUDA_SUCCESS)
		return result;
	if (ret_graph == NULL)
		return leave(CUDA_ERROR_INVALID_VALUE);
	*ret_graph = (CUgraph)node->child;
	return leave(CUDA_SUCCESS);
}

ENTRY(cuGraphAddEventRecordNode, CUgraphNode *ret_node, CUgraph graph, const CUgraphNode *needs, size_t count, CUevent event_handle)
{
	CUresult result = lock_all(__func__);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_event *event = emu_get(event_handle, EMU_EVENT);
	struct emu_work *work = event != NULL ? emu_work_new(EMU_WORK_RECORD) : NULL;
	if (work == NULL) {
		emu_put(event != NULL ? &event->object : NULL);
		return leave(event != NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_HANDLE);
	}
	work->record.event = event;
	return leave(add(ret_node, graph, needs, count, CU_GRAPH_NODE_RECORD_EVENT, work, NULL));
}

ENTRY(cuGraphAddMemAllocNode, CUgraphNode *ret_node, CUgraph graph, const CUgraphNode *needs, size_t count, CUallocNode *alloc)
{
	CUresult result = lock_all(__func__);
	if (result != CUDA_SUCCESS)
		return result;
	int gpu = alloc != NULL && alloc->pool.location.type == CU_MEM_LOCATION_DEVICE ? emu_device_gpu(alloc->pool.location.id) : -1;
	if (gpu < 0 || alloc->bytes == 0)
		return leave(CUDA_ERROR_INVALID_VALUE);
	uint64_t address = 0;
	struct emu_node *node = NULL;
	struct emu_work *work = emu_work_new(EMU_WORK_ALLOC);
	result = work != NULL ? emu_graph_reserve(gpu, alloc->bytes, &address) : CUDA_ERROR_OUT_OF_MEMORY;
	if (result != CUDA_SUCCESS) {
		free(work);
		return leave(result);
	}
	work->memory.address = address;
	work->memory.bytes = alloc->bytes;
	result = add(ret_node, graph, needs, count, CU_GRAPH_NODE_MEM_ALLOC, work, &node);
	if (result != CUDA_SUCCESS)
		return leave(result);
	alloc->address = address;
	node->alloc = *alloc;
	node->alloc.access = NULL;
	node->alloc.access_count = 0;
	return leave(CUDA_SUCCESS);
}

ENTRY(cuGraphAddMemFreeNode, CUgraphNode *ret_node, CUgraph graph, const CUgraphNode *needs, size_t count, CUdeviceptr address)
{
	CUresult result = lock_all(__func__);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_work *work = emu_graph_owns(address) ? emu_work_new(EMU_WORK_FREE) : NULL;
	if (work == NULL)
		return leave(CUDA_ERROR_INVALID_VALUE);
	work->memory.address = address;
	return leave(add(ret_node, graph, needs, count, CU_GRAPH_NODE_MEM_FREE, work, NULL));
}

/* What a node was given. */

static CUresult get_kernel(const char *entry, CUgraphNode handle, CUkernelNode *ret_params, bool second)
{
	struct emu_node *node = NULL;
	CUresult result = lock_node(entry, handle, CU_GRAPH_NODE_KERNEL, &node);
	if (result != CUDA_SUCCESS)
		return result;
	if (ret_params == NULL)
		return leave(CUDA_ERROR_INVALID_VALUE);
	const struct emu_work *work = node->work;
	CUkernelNode params = {
		.function = (CUfunction)work->kernel.function,
		.shared_bytes = work->kernel.shared_bytes,
		.params = node->parameters,
	};
	memcpy(params.grid, work->kernel.grid, sizeof params.grid);
	memcpy(params.block, work->kernel.block, sizeof params.block);
	/* The older structure ends before the kernel. */
	memcpy(ret_params, &params, second ? sizeof params : offsetof(CUkernelNode, kernel));
	return leave(CUDA_SUCCESS);
}

ENTRY(cuGraphKernelNodeGetParams, CUgraphNode node, CUkernelNode *ret_params)
{
	return get_kernel(__func__, node, ret_params, false);
}

ENTRY(cuGraphKernelNodeGetParams_v2, CUgraphNode node, CUkernelNode *ret_params)
{
	return get_kernel(__func__, node, ret_params, true);
}

static CUresult set_kernel(const char *entry, CUgraphNode handle, const CUkernelNode *params, bool second)
{
	struct emu_node *node = NULL;
	struct emu_work *work = NULL;
	CUresult result = lock_node(entry, handle, CU_GRAPH_NODE_KERNEL, &node);
	if (result != CUDA_SUCCESS)
		return result;
	result = kernel_work(params, second, &work);
	if (result == CUDA_SUCCESS)
		set_work(node, work);
	return leave(result);
}

ENTRY(cuGraphKernelNodeSetParams, CUgraphNode node, const CUkernelNode *params)
{
	return set_kernel(__func__, node, params, false);
}

ENTRY(cuGraphKernelNodeSetParams_v2, CUgraphNode node, const CUkernelNode *params)
{
	return set_kernel(__func__, node, params, true);
}

ENTRY(cuGraphMemcpyNodeGetParams, CUgraphNode handle, CUcopy3d *ret_copy)
{
	struct emu_node *node = NULL;
	CUresult result = lock_node(__func__, handle, CU_GRAPH_NODE_MEMCPY, &node);
	if (result != CUDA_SUCCESS)
		return result;
	if (ret_copy == NULL)
		return leave(CUDA_ERROR_INVALID_VALUE);
	*ret_copy = node->copy;
	return leave(CUDA_SUCCESS);
}

ENTRY(cuGraphMemcpyNodeSetParams, CUgraphNode handle, const CUcopy3d *copy)
{
	struct emu_node *node = NULL;
	struct emu_work *work = NULL;
	CUresult result = lock_node(__func__, handle, CU_GRAPH_NODE_MEMCPY, &node);
	if (result != CUDA_SUCCESS)
		return result;
	result = copy != NULL ? emu_copy_work(copy, &work) : CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS) {
		node->copy = *copy;
		set_work(node, work);
	}
	return leave(result);
}

ENTRY(cuGraphMemsetNodeGetParams, CUgraphNode handle, CUmemsetNode *ret_set)
{
	struct emu_node *node = NULL;
	CUresult result = lock_node(__func__, handle, CU_GRAPH_NODE_MEMSET, &node);
	if (result != CUDA_SUCCESS)
		return result;
	if (ret_set == NULL)
		return leave(CUDA_ERROR_INVALID_VALUE);
	*ret_set = node->set;
	return leave(CUDA_SUCCESS);
}

ENTRY(cuGraphMemsetNodeSetParams, CUgraphNode handle, const CUmemsetNode *set)
{
	struct emu_node *node = NULL;
	struct emu_work *work = NULL;
	CUresult result = lock_node(__func__, handle, CU_GRAPH_NODE_MEMSET, &node);
	if (result != CUDA_SUCCESS)
		return result;
	result = set != NULL ? emu_set_work(set, &work) : CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS) {
		node->set = *set;
		set_work(node, work);
	}
	return leave(result);
}

ENTRY(cuGraphHostNodeGetParams, CUgraphNode handle, CUhostNode *ret_host)
{
	struct emu_node *node = NULL;
	CUresult result = lock_node(__func__, handle, CU_GRAPH_NODE_HOST, &node);
	if (result != CUDA_SUCCESS)
		return result;
	if (ret_host == NULL)
		return leave(CUDA_ERROR_INVALID_VALUE);
	*ret_host = (CUhostNode){node->work->host.function, node->work->host.data};
	return leave(CUDA_SUCCESS);
}

ENTRY(cuGraphHostNodeSetParams, CUgraphNode handle, const CUhostNode *host)
{
	struct emu_node *node = NULL;
	CUresult result = lock_node(__func__, handle, CU_GRAPH_NODE_HOST, &node);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_work *work = host_work(host);
	if (work == NULL)
		return leave(CUDA_ERROR_INVALID_VALUE);
	set_work(node, work);
	return leave(CUDA_SUCCESS);
}

ENTRY(cuGraphMemAllocNodeGetParams, CUgraphNode handle, CUallocNode *ret_alloc)
{
	struct emu_node *node = NULL;
	CUresult result = lock_node(__func__, handle, CU_GRAPH_NODE_MEM_ALLOC, &node);
	if (result != CUDA_SUCCESS)
		return result;
	if (ret_alloc == NULL)
		return leave(CUDA_ERROR_INVALID_VALUE);
	*ret_alloc = node->alloc;
	ret_alloc->bytes = node->work->memory.bytes;
	ret_alloc->address = node->work->memory.address;
	return leave(CUDA_SUCCESS);
}

ENTRY(cuGraphMemFreeNodeGetParams, CUgraphNode handle, CUdeviceptr *ret_address)
{
	struct emu_node *node = NULL;
	CUresult result = lock_node(__func__, handle, CU_GRAPH_NODE_MEM_FREE, &node);
	if (result != CUDA_SUCCESS)
		return result;
	if (ret_address == NULL)
		return leave(CUDA_ERROR_INVALID_VALUE);
	*ret_address = node->work->memory.address;
	return leave(CUDA_SUCCESS);
}
