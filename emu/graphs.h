/* Graphs: nodes of work and what they wait for; plans made of them; and the
 * memory that graphs allocate.
 *
 * 1. All graphs of the process are below one lock, `emu_graphs_lock`.
 * 2. A plan never changes. An executable graph that is updated gets a new one; launches that are
 *    under way keep theirs.
 */
#ifndef EMU_GRAPHS_H
#define EMU_GRAPHS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "kernels.h"
#include "objects.h"
#include "work.h"

struct emu_graph;

struct emu_node {
	struct emu_object object;
	struct emu_graph *graph;
	int type;
	struct emu_work *work;	 /* NULL for empty ones and graphs */
	struct emu_graph *child; /* of a graph in a graph */
	struct emu_node **needs;
	unsigned need_count, need_size;
	bool enabled, mark;
	struct emu_node *original; /* of a copy; only compared */
	/* As the program gave it, to be asked back. */
	void *parameters[EMU_PARAMETERS_MAX];
	CUcopy3d copy;
	CUmemsetNode set;
	CUallocNode alloc;
};

struct emu_graph {
	struct emu_object object;
	struct emu_node **nodes;
	unsigned count, size;
};

extern pthread_mutex_t emu_graphs_lock;

/* The rest is below the lock, except where it says otherwise. */
struct emu_graph *emu_graph_new(void);
/* A node that waits for `needs`; the work becomes the node's, also on failure. */
CUresult emu_graph_add(struct emu_graph *graph, int type, struct emu_work *work, struct emu_node *const *needs, unsigned need_count,
		       struct emu_node **ret_node);
CUresult emu_node_need(struct emu_node *node, struct emu_node *needed);
struct emu_graph *emu_graph_copy(const struct emu_graph *graph);

/* For checks that a handle is a live node of a live graph: NULL when not. */
struct emu_node *emu_node_of(CUgraphNode handle);
struct emu_graph *emu_graph_of(CUgraph handle);

/* A kernel node's parameters out of the structure a program gave: the older one, or the second. */
CUkernelNode emu_kernel_params(const CUkernelNode *params, bool second);

/* Of work in a stream, without the lock. */
uint64_t emu_plan_do(struct emu_plan *plan, struct emu_stream *stream, uint64_t ready_ns, bool more);

/* Memory of graphs; these have a lock of their own. */
/* Each piece of work that allocates it holds the addresses: the first by reserving them. */
CUresult emu_graph_reserve(int gpu, uint64_t bytes, uint64_t *ret_address);
void emu_graph_hold(uint64_t address);
void emu_graph_unreserve(uint64_t address);
bool emu_graph_owns(uint64_t address);
/* For a launch. One that `leaves` it, for the program to free, cannot be launched while it is left
 * from the last one. With `again` it can: then that is to be freed first, which `*ret_was_left`
 * says. */
CUresult emu_graph_map(uint64_t address, bool leaves, bool again, bool *ret_was_left);
void emu_graph_unmap(uint64_t address);
/* A thread is about to free what a launch left; false: none has, or another does. */
bool emu_graph_let(uint64_t address);
CUresult emu_graph_capture_alloc(struct emu_stream *stream, uint64_t bytes, CUdeviceptr *ret_address);
CUresult emu_graph_free_in(struct emu_stream *stream, uint64_t address);
CUresult emu_graph_free_async(struct emu_stream *stream, uint64_t address);

#endif
