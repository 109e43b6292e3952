/* The shape of a graph: its nodes, roots and edges. */
#include <stdlib.h>
#include <string.h>

#include "context.h"
#include "graphs.h"

/* Lists are asked for twice: without a place for their length, then with one of that length. */
struct list {
	CUgraphNode *place;
	size_t room, count;
};

static void put(struct list *list, struct emu_node *node)
{
	if (list->place != NULL && list->count < list->room)
		list->place[list->count] = (CUgraphNode)node;
	list->count++;
}

static void finish(struct list *list, size_t *ret_count)
{
	for (size_t i = list->count; list->place != NULL && i < list->room; i++)
		list->place[i] = NULL;
	*ret_count = list->place != NULL && list->room < list->count ? list->room : list->count;
}

static CUresult get_nodes(const char *entry, CUgraph handle, CUgraphNode *place, size_t *count, bool roots)
{
	CUresult result = emu_enter(entry, EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	if (count == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&emu_graphs_lock);
	const struct emu_graph *graph = emu_graph_of(handle);
	struct list list = {place, *count, 0};
	for (unsigned i = 0; graph != NULL && i < graph->count; i++)
		if (!roots || graph->nodes[i]->need_count == 0)
			put(&list, graph->nodes[i]);
	if (graph != NULL)
		finish(&list, count);
	pthread_mutex_unlock(&emu_graphs_lock);
	return graph != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

ENTRY(cuGraphGetNodes, CUgraph graph, CUgraphNode *place, size_t *count)
{
	return get_nodes(__func__, graph, place, count, false);
}

ENTRY(cuGraphGetRootNodes, CUgraph graph, CUgraphNode *place, size_t *count)
{
	return get_nodes(__func__, graph, place, count, true);
}

static CUresult get_edges(const char *entry, CUgraph handle, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data, size_t *count)
{
	CUresult result = emu_enter(entry, EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	if (count == NULL || (from == NULL) != (to == NULL))
		return CUDA_ERROR_INVALID_VALUE;
	size_t room = *count;
	pthread_mutex_lock(&emu_graphs_lock);
	const struct emu_graph *graph = emu_graph_of(handle);
	struct list froms = {from, room, 0}, tos = {to, room, 0};
	for (unsigned i = 0; graph != NULL && i < graph->count; i++) {
		for (unsigned j = 0; j < graph->nodes[i]->need_count; j++) {
			put(&froms, graph->nodes[i]->needs[j]);
			put(&tos, graph->nodes[i]);
		}
	}
	if (graph != NULL) {
		finish(&froms, count);
		finish(&tos, count);
		if (data != NULL)
			memset(data, 0, room * sizeof *data);
	}
	pthread_mutex_unlock(&emu_graphs_lock);
	return graph != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

ENTRY(cuGraphGetEdges, CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count)
{
	return get_edges(__func__, graph, from, to, NULL, count);
}

ENTRY(cuGraphGetEdges_v2, CUgraph graph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data, size_t *count)
{
	return get_edges(__func__, graph, from, to, data, count);
}

static bool needs(const struct emu_node *node, const struct emu_node *other)
{
	for (unsigned i = 0; i < node->need_count; i++)
		if (node->needs[i] == other)
			return true;
	return false;
}

static CUresult get_neighbours(const char *entry, CUgraphNode handle, CUgraphNode *place, CUgraphEdgeData *data, size_t *count, bool before)
{
	CUresult result = emu_enter(entry, EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	if (count == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&emu_graphs_lock);
	const struct emu_node *node = emu_node_of(handle);
	struct list list = {place, *count, 0};
	for (unsigned i = 0; node != NULL && i < node->graph->count; i++) {
		struct emu_node *other = node->graph->nodes[i];
		if (before ? needs(node, other) : needs(other, node))
			put(&list, other);
	}
	if (node != NULL && data != NULL)
		memset(data, 0, *count * sizeof *data);
	if (node != NULL)
		finish(&list, count);
	pthread_mutex_unlock(&emu_graphs_lock);
	return node != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

ENTRY(cuGraphNodeGetDependencies, CUgraphNode node, CUgraphNode *place, size_t *count)
{
	return get_neighbours(__func__, node, place, NULL, count, true);
}

ENTRY(cuGraphNodeGetDependencies_v2, CUgraphNode node, CUgraphNode *place, CUgraphEdgeData *data, size_t *count)
{
	return get_neighbours(__func__, node, place, data, count, true);
}

ENTRY(cuGraphNodeGetDependentNodes, CUgraphNode node, CUgraphNode *place, size_t *count)
{
	return get_neighbours(__func__, node, place, NULL, count, false);
}

ENTRY(cuGraphNodeGetDependentNodes_v2, CUgraphNode node, CUgraphNode *place, CUgraphEdgeData *data, size_t *count)
{
	return get_neighbours(__func__, node, place, data, count, false);
}

static CUresult add_edges(const char *entry, CUgraph handle, const CUgraphNode *from, const CUgraphNode *to, size_t count)
{
	CUresult result = emu_enter(entry, EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	if (count > 0 && (from == NULL || to == NULL))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&emu_graphs_lock);
	const struct emu_graph *graph = emu_graph_of(handle);
	result = graph != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
		struct emu_node *first = emu_node_of(from[i]), *second = emu_node_of(to[i]);
		if (first == NULL || second == NULL || first == second || first->graph != graph || second->graph != graph ||
		    needs(second, first))
			result = CUDA_ERROR_INVALID_VALUE;
		else
			result = emu_node_need(second, first);
	}
	pthread_mutex_unlock(&emu_graphs_lock);
	return result;
}

ENTRY(cuGraphAddDependencies, CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count)
{
	return add_edges(__func__, graph, from, to, count);
}

ENTRY(cuGraphAddDependencies_v2, CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *data, size_t count)
{
	(void)data;
	return add_edges(__func__, graph, from, to, count);
}

ENTRY(cuGraphNodeGetType, CUgraphNode handle, int *ret_type)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&emu_graphs_lock);
	const struct emu_node *node = emu_node_of(handle);
	if (node != NULL && ret_type != NULL)
		*ret_type = node->type;
	pthread_mutex_unlock(&emu_graphs_lock);
	return node != NULL && ret_type != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

ENTRY(cuGraphNodeFindInClone, CUgraphNode *ret_node, CUgraphNode original, CUgraph handle)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	result = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&emu_graphs_lock);
	const struct emu_graph *copy = emu_graph_of(handle);
	for (unsigned i = 0; copy != NULL && ret_node != NULL && i < copy->count; i++) {
		if ((CUgraphNode)copy->nodes[i]->original == original) {
			*ret_node = (CUgraphNode)copy->nodes[i];
			result = CUDA_SUCCESS;
		}
	}
	pthread_mutex_unlock(&emu_graphs_lock);
	return result;
}

static void forget(struct emu_graph *graph, const struct emu_node *gone)
{
	unsigned kept = 0;
	for (unsigned i = 0; i < graph->count; i++) {
		struct emu_node *node = graph->nodes[i];
		if (node == gone)
			continue;
		graph->nodes[kept++] = node;
		unsigned left = 0;
		for (unsigned j = 0; j < node->need_count; j++)
			if (node->needs[j] != gone)
				node->needs[left++] = node->needs[j];
		node->need_count = left;
	}
	graph->count = kept;
}

ENTRY(cuGraphDestroyNode, CUgraphNode handle)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&emu_graphs_lock);
	struct emu_node *node = emu_node_of(handle);
	if (node != NULL) {
		forget(node->graph, node);
		emu_retire(node, EMU_NODE);
	}
	pthread_mutex_unlock(&emu_graphs_lock);
	return node != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
