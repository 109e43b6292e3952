/* Executable graphs: a plan, which is the work of the graph's nodes in an order that
 * respects what they wait for. */
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "context.h"
#include "copies.h"
#include "events.h"
#include "graphs.h"
#include "launch.h"
#include "streams.h"

struct step {
	struct emu_node *node; /* only compared */
	struct emu_work *work; /* NULL: nothing to do */
	bool enabled;
};

struct emu_plan {
	struct emu_object object;
	unsigned count;
	struct step steps[];
};

struct emu_exec {
	struct emu_object object;
	struct emu_plan *plan;
	uint64_t flags;
};

static void destroy_plan(struct emu_object *object)
{
	struct emu_plan *plan = (struct emu_plan *)object;
	for (unsigned i = 0; i < plan->count; i++)
		if (plan->steps[i].work != NULL)
			emu_work_free(plan->steps[i].work);
	free(plan);
}

static void destroy_exec(struct emu_object *object)
{
	struct emu_exec *exec = (struct emu_exec *)object;
	emu_put(&exec->plan->object);
	free(exec);
}

uint64_t emu_plan_do(struct emu_plan *plan, struct emu_stream *stream, uint64_t ready_ns, bool more)
{
	uint64_t now = ready_ns;
	for (unsigned i = 0; i < plan->count; i++) {
		struct emu_work *work = plan->steps[i].work;
		if (work == NULL || !plan->steps[i].enabled)
			continue;
		bool next =
			i + 1 < plan->count ? plan->steps[i + 1].work != NULL && plan->steps[i + 1].work->kind == EMU_WORK_KERNEL : more;
		if (work->kind == EMU_WORK_RECORD) {
			struct emu_event *event = work->record.event;
			pthread_mutex_lock(&event->lock);
			uint64_t version = ++event->version;
			pthread_mutex_unlock(&event->lock);
			emu_event_reach(event, version, now);
			continue;
		}
		now = emu_work_do(work, stream, now, next);
	}
	return now;
}

static unsigned count_steps(const struct emu_graph *graph)
{
	unsigned count = 0;
	for (unsigned i = 0; i < graph->count; i++)
		count += graph->nodes[i]->child != NULL ? count_steps(graph->nodes[i]->child) + 1 : 1;
	return count;
}

static bool ready(const struct emu_node *node)
{
	for (unsigned i = 0; i < node->need_count; i++)
		if (!node->needs[i]->mark)
			return false;
	return true;
}

/* Adds the graph's nodes to the plan: again and again the first one whose needs are met. Nodes
 * mostly stand in order already. */
static CUresult add_graph(struct emu_plan *plan, const struct emu_graph *graph)
{
	for (unsigned i = 0; i < graph->count; i++)
		graph->nodes[i]->mark = false;
	for (unsigned done = 0; done < graph->count;) {
		unsigned before = done;
		for (unsigned i = 0; i < graph->count; i++) {
			struct emu_node *node = graph->nodes[i];
			if (node->mark || !ready(node))
				continue;
			struct emu_work *work = node->work != NULL ? emu_work_copy(node->work) : NULL;
			if (node->work != NULL && work == NULL)
				return CUDA_ERROR_OUT_OF_MEMORY;
			plan->steps[plan->count++] = (struct step){node, work, node->enabled};
			CUresult result = node->child != NULL ? add_graph(plan, node->child) : CUDA_SUCCESS;
			if (result != CUDA_SUCCESS)
				return result;
			node->mark = true;
			done++;
		}
		if (done == before)
			return CUDA_ERROR_INVALID_VALUE; /* a circle */
	}
	return CUDA_SUCCESS;
}

static struct emu_plan *new_plan(unsigned count)
{
	struct emu_plan *plan = calloc(1, sizeof *plan + count * sizeof plan->steps[0]);
	if (plan != NULL)
		emu_prepare(&plan->object, EMU_PLAN, destroy_plan);
	return plan;
}

static CUresult plan_of(const struct emu_graph *graph, struct emu_plan **ret_plan)
{
	struct emu_plan *plan = new_plan(count_steps(graph));
	if (plan == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = add_graph(plan, graph);
	if (result == CUDA_SUCCESS)
		*ret_plan = plan;
	else
		emu_put(&plan->object);
	return result;
}

static CUresult instantiate(const char *entry, CUgraphExec *ret_exec, CUgraph handle, uint64_t flags)
{
	CUresult result = emu_enter(entry, EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	const uint64_t not_together = CU_GRAPH_AUTO_FREE_ON_LAUNCH | CU_GRAPH_DEVICE_LAUNCH;
	if (ret_exec == NULL || flags > CU_GRAPH_FLAGS_ALL || (flags & not_together) == not_together)
		return CUDA_ERROR_INVALID_VALUE;
	struct emu_exec *exec = calloc(1, sizeof *exec);
	if (exec == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	exec->flags = flags;
	pthread_mutex_lock(&emu_graphs_lock);
	const struct emu_graph *graph = emu_graph_of(handle);
	result = graph != NULL ? plan_of(graph, &exec->plan) : CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&emu_graphs_lock);
	if (result != CUDA_SUCCESS) {
		free(exec);
		return result;
	}
	emu_publish(&exec->object, EMU_EXEC, destroy_exec);
	*ret_exec = (CUgraphExec)exec;
	return CUDA_SUCCESS;
}

static CUresult instantiate_with_log(const char *entry, CUgraphExec *ret_exec, CUgraph graph, CUgraphNode *ret_node, char *log,
				     size_t bytes)
{
	if (ret_node != NULL)
		*ret_node = NULL;
	if (log != NULL && bytes > 0)
		log[0] = '\0';
	return instantiate(entry, ret_exec, graph, 0);
}

ENTRY(cuGraphInstantiate, CUgraphExec *ret_exec, CUgraph graph, CUgraphNode *ret_node, char *log, size_t bytes)
{
	return instantiate_with_log(__func__, ret_exec, graph, ret_node, log, bytes);
}

ENTRY(cuGraphInstantiate_v2, CUgraphExec *ret_exec, CUgraph graph, CUgraphNode *ret_node, char *log, size_t bytes)
{
	return instantiate_with_log(__func__, ret_exec, graph, ret_node, log, bytes);
}

ENTRY(cuGraphInstantiateWithFlags, CUgraphExec *ret_exec, CUgraph graph, unsigned long long flags)
{
	return instantiate(__func__, ret_exec, graph, flags);
}

static CUresult instantiate_with_params(const char *entry, CUgraphExec *ret_exec, CUgraph graph, CUinstantiateParams *params)
{
	if (params == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = instantiate(entry, ret_exec, graph, params->flags);
	params->error_node = NULL;
	params->result = result != CUDA_SUCCESS;
	return result;
}

TWINS(cuGraphInstantiateWithParams, _ptsz, instantiate_with_params(__func__, ret_exec, graph, params), CUgraphExec *ret_exec, CUgraph graph,
      CUinstantiateParams *params)

ENTRY(cuGraphExecDestroy, CUgraphExec exec)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT | EMU_ANYWAY, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	return emu_retire(exec, EMU_EXEC) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

ENTRY(cuGraphExecGetFlags, CUgraphExec handle, uint64_t *ret_flags)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_exec *exec = ret_flags != NULL ? emu_get(handle, EMU_EXEC) : NULL;
	if (exec == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_flags = exec->flags;
	emu_put(&exec->object);
	return CUDA_SUCCESS;
}

/* The plan of an executable graph, with a reference. */
static struct emu_plan *take_plan(struct emu_exec *exec)
{
	pthread_mutex_lock(&emu_graphs_lock);
	struct emu_plan *plan = exec->plan;
	emu_hold(&plan->object);
	pthread_mutex_unlock(&emu_graphs_lock);
	return plan;
}

static bool has(const struct emu_plan *plan, enum emu_work_kind kind, uint64_t address)
{
	for (unsigned i = 0; i < plan->count; i++)
		if (plan->steps[i].work != NULL && plan->steps[i].work->kind == kind && plan->steps[i].work->memory.address == address)
			return true;
	return false;
}

/* One step's memory is there from now on. What the last launch left of it is freed first where the
 * graph does that by itself. Since it is mapped twice then, it stays where it is. */
static CUresult map_one(const struct emu_plan *plan, uint64_t address, bool again, struct emu_stream *stream)
{
	bool left = false;
	CUresult result = emu_graph_map(address, !has(plan, EMU_WORK_FREE, address), again, &left);
	if (left) {
		result = emu_graph_free_in(stream, address);
		if (result != CUDA_SUCCESS)
			emu_graph_unmap(address);
	}
	return result;
}

static void unmap_one(const struct emu_plan *plan, uint64_t address)
{
	if (!has(plan, EMU_WORK_FREE, address))
		emu_graph_let(address);
	emu_graph_unmap(address);
}

/* The memory that the plan allocates; all of it or none. */
static CUresult map_memory(const struct emu_plan *plan, bool again, struct emu_stream *stream)
{
	for (unsigned i = 0; i < plan->count; i++) {
		const struct emu_work *work = plan->steps[i].work;
		if (work == NULL || work->kind != EMU_WORK_ALLOC)
			continue;
		CUresult result = map_one(plan, work->memory.address, again, stream);
		if (result == CUDA_SUCCESS)
			continue;
		while (i-- > 0)
			if (plan->steps[i].work != NULL && plan->steps[i].work->kind == EMU_WORK_ALLOC)
				unmap_one(plan, plan->steps[i].work->memory.address);
		return result;
	}
	return CUDA_SUCCESS;
}

/* What it frees that another graph left, no other may free. */
static void let_memory(const struct emu_plan *plan)
{
	for (unsigned i = 0; i < plan->count; i++) {
		const struct emu_work *work = plan->steps[i].work;
		if (work != NULL && work->kind == EMU_WORK_FREE && !has(plan, EMU_WORK_ALLOC, work->memory.address))
			emu_graph_let(work->memory.address);
	}
}

static CUresult launch_plan(struct emu_plan *plan, struct emu_stream *stream, bool again)
{
	struct emu_work *work = emu_work_new(EMU_WORK_GRAPH);
	if (work == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = map_memory(plan, again, stream);
	if (result != CUDA_SUCCESS) {
		free(work);
		return result;
	}
	let_memory(plan);
	emu_hold(&plan->object);
	work->plan = plan;
	return emu_submit(stream, work, NULL);
}

static CUresult launch(const char *entry, CUgraphExec handle, CUstream stream_handle, enum emu_flavour flavour, bool upload)
{
	CUresult result = emu_enter(entry, EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_exec *exec = emu_get(handle, EMU_EXEC);
	struct emu_stream *stream = NULL;
	if (exec == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	result = emu_stream_of(stream_handle, flavour, &stream);
	if (result == CUDA_SUCCESS)
		result = emu_context_state(stream->context);
	if (result == CUDA_SUCCESS && !upload)
		result = emu_capture_refuse(stream);
	if (result == CUDA_SUCCESS && !upload) {
		struct emu_plan *plan = take_plan(exec);
		result = launch_plan(plan, stream, (exec->flags & CU_GRAPH_AUTO_FREE_ON_LAUNCH) != 0);
		emu_put(&plan->object);
	}
	emu_put(stream != NULL ? &stream->object : NULL);
	emu_put(&exec->object);
	return result;
}

TWINS(cuGraphLaunch, _ptsz, launch(__func__, exec, stream, flavour, false), CUgraphExec exec, CUstream stream)
TWINS(cuGraphUpload, _ptsz, launch(__func__, exec, stream, flavour, true), CUgraphExec exec, CUstream stream)

/* Changes of an executable graph: a copy of the plan with one step replaced. */

static struct emu_plan *copy_plan(const struct emu_plan *plan)
{
	struct emu_plan *copy = new_plan(plan->count);
	for (unsigned i = 0; copy != NULL && i < plan->count; i++) {
		copy->steps[i] = plan->steps[i];
		copy->steps[i].work = plan->steps[i].work != NULL ? emu_work_copy(plan->steps[i].work) : NULL;
		copy->count = i + 1;
		if (plan->steps[i].work != NULL && copy->steps[i].work == NULL) {
			emu_put(&copy->object);
			return NULL;
		}
	}
	return copy;
}

/* `work` NULL: sets `enabled` instead. The work becomes the plan's. */
static CUresult replace(CUgraphExec handle, CUgraphNode node, enum emu_work_kind kind, struct emu_work *work, bool enabled)
{
	struct emu_exec *exec = emu_get(handle, EMU_EXEC);
	CUresult result = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&emu_graphs_lock);
	for (unsigned i = 0; exec != NULL && i < exec->plan->count; i++) {
		const struct step *step = &exec->plan->steps[i];
		if ((CUgraphNode)step->node != node || step->work == NULL || (work != NULL && step->work->kind != kind))
			continue;
		struct emu_plan *copy = copy_plan(exec->plan);
		result = copy != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
		if (copy == NULL)
			break;
		if (work != NULL) {
			emu_work_free(copy->steps[i].work);
			copy->steps[i].work = work;
			work = NULL;
		} else {
			copy->steps[i].enabled = enabled;
		}
		emu_put(&exec->plan->object);
		exec->plan = copy;
		break;
	}
	pthread_mutex_unlock(&emu_graphs_lock);
	if (work != NULL)
		emu_work_free(work);
	emu_put(exec != NULL ? &exec->object : NULL);
	return result;
}

static CUresult set_kernel(const char *entry, CUgraphExec exec, CUgraphNode node, const CUkernelNode *params, bool second)
{
	CUresult result = emu_enter(entry, EMU_NO_CONTEXT, NULL);
	struct emu_work *work = NULL;
	if (result != CUDA_SUCCESS)
		return result;
	if (params == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUkernelNode whole = emu_kernel_params(params, second);
	result = emu_launch_work(&whole, &work);
	return result == CUDA_SUCCESS ? replace(exec, node, EMU_WORK_KERNEL, work, true) : result;
}

ENTRY(cuGraphExecKernelNodeSetParams, CUgraphExec exec, CUgraphNode node, const CUkernelNode *params)
{
	return set_kernel(__func__, exec, node, params, false);
}

ENTRY(cuGraphExecKernelNodeSetParams_v2, CUgraphExec exec, CUgraphNode node, const CUkernelNode *params)
{
	return set_kernel(__func__, exec, node, params, true);
}

ENTRY(cuGraphExecMemcpyNodeSetParams, CUgraphExec exec, CUgraphNode node, const CUcopy3d *copy, CUcontext context)
{
	(void)context;
	struct emu_work *work = NULL;
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT, NULL);
	if (result == CUDA_SUCCESS)
		result = copy != NULL ? emu_copy_work(copy, &work) : CUDA_ERROR_INVALID_VALUE;
	return result == CUDA_SUCCESS ? replace(exec, node, EMU_WORK_COPY, work, true) : result;
}

ENTRY(cuGraphExecMemsetNodeSetParams, CUgraphExec exec, CUgraphNode node, const CUmemsetNode *set, CUcontext context)
{
	(void)context;
	struct emu_work *work = NULL;
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT, NULL);
	if (result == CUDA_SUCCESS)
		result = set != NULL ? emu_set_work(set, &work) : CUDA_ERROR_INVALID_VALUE;
	return result == CUDA_SUCCESS ? replace(exec, node, EMU_WORK_SET, work, true) : result;
}

ENTRY(cuGraphNodeSetEnabled, CUgraphExec exec, CUgraphNode node, unsigned enabled)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT, NULL);
	return result == CUDA_SUCCESS ? replace(exec, node, EMU_WORK_NOTHING, NULL, enabled != 0) : result;
}

ENTRY(cuGraphNodeGetEnabled, CUgraphExec handle, CUgraphNode node, unsigned *ret_enabled)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_exec *exec = ret_enabled != NULL ? emu_get(handle, EMU_EXEC) : NULL;
	result = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&emu_graphs_lock);
	for (unsigned i = 0; exec != NULL && i < exec->plan->count; i++) {
		if ((CUgraphNode)exec->plan->steps[i].node == node) {
			*ret_enabled = exec->plan->steps[i].enabled;
			result = CUDA_SUCCESS;
		}
	}
	pthread_mutex_unlock(&emu_graphs_lock);
	emu_put(exec != NULL ? &exec->object : NULL);
	return result;
}

static bool same_shape(const struct emu_plan *a, const struct emu_plan *b)
{
	bool same = a->count == b->count;
	for (unsigned i = 0; same && i < a->count; i++) {
		const struct emu_work *x = a->steps[i].work, *y = b->steps[i].work;
		same = (x == NULL) == (y == NULL) && (x == NULL || x->kind == y->kind);
	}
	return same;
}

/* Takes over all work of a graph of the same shape. The nodes by which steps are named stay
 * those it was made from. */
static CUresult update(const char *entry, CUgraphExec handle, CUgraph graph_handle)
{
	CUresult result = emu_enter(entry, EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_exec *exec = emu_get(handle, EMU_EXEC);
	struct emu_plan *plan = NULL;
	pthread_mutex_lock(&emu_graphs_lock);
	const struct emu_graph *graph = emu_graph_of(graph_handle);
	result = exec != NULL && graph != NULL ? plan_of(graph, &plan) : CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS && same_shape(exec->plan, plan)) {
		for (unsigned i = 0; i < plan->count; i++)
			plan->steps[i].node = exec->plan->steps[i].node;
		struct emu_plan *before = exec->plan;
		exec->plan = plan;
		plan = before;
	} else if (result == CUDA_SUCCESS) {
		result = CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
	}
	pthread_mutex_unlock(&emu_graphs_lock);
	emu_put(plan != NULL ? &plan->object : NULL);
	emu_put(exec != NULL ? &exec->object : NULL);
	return result;
}

ENTRY(cuGraphExecUpdate, CUgraphExec exec, CUgraph graph, CUgraphNode *ret_node, int *ret_result)
{
	CUresult result = update(__func__, exec, graph);
	if (ret_node != NULL)
		*ret_node = NULL;
	if (ret_result != NULL)
		*ret_result = result == CUDA_SUCCESS ? 0 : result == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE ? 2 : 1;
	return result;
}

ENTRY(cuGraphExecUpdate_v2, CUgraphExec exec, CUgraph graph, CUexecUpdateResult *ret_result)
{
	CUresult result = update(__func__, exec, graph);
	if (ret_result != NULL)
		*ret_result = (CUexecUpdateResult){.result = result == CUDA_SUCCESS			      ? 0
							     : result == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE ? 2
													      : 1};
	return result;
}
