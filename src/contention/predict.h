/* How much jobs slow each other down when they share a GPU, told from their profiles alone.
 * Three ways of sharing:
 *
 * SW_WAY_MPS, at the same time: a bottleneck model. For job i among residents J, U_r is the sum of
 * what all of them use of resource r.
 *	rates of the GPU (SM, memory pipeline, L2, reads, writes, PCIe):
 *	    s_r = 1 + (u_ir / max_r' u_ir') * max(0, U_r - 1)
 *	cores of the host that go with the GPU:
 *	    s   = max(1, U_cpu)
 *	memory of the host that goes with the GPU (too little: paging):
 *	    s   = 1 + kappa * u_i * max(0, U_mem - 1)
 * The slowdown is the largest of these: one bottleneck at a time. A job whose own bottleneck
 * is elsewhere feels a crowded resource less, hence the factor. Each job is taken to run as if
 * the others never paused.
 *
 * SW_WAY_SLICES, in turns (what the driver does without more ado). A job that alone keeps the GPU
 * busy for the part b of the time has the GPU to itself while no other has work. While k jobs have
 * work it has 1/k of it, less what switching costs. Let p_j be the part of the time in which job j
 * has work waiting or running, and c the cost of switching. With the jobs taken as independent:
 *	r_i = P(no other has work) + sum over k >= 1 of P(k others have work) / ((1 + k) * (1 + c))
 *	s_i = (1 - b_i) + b_i / r_i        p_i = (b_i / r_i) / s_i
 * solved by repetition. Cores and memory of the host count as above; what the GPU's parts
 * are used for does not.
 *
 * SW_WAY_GATE: the first job is guaranteed, and the others give way to it (the runtime's gate). It
 * pays a fixed cost. The others take turns, as above, in a part of what it leaves idle. Beside one
 * that is never idle they stand still. For several guaranteed jobs: sw_predict_gated().
 *
 * Not modelled, under MPS: long kernels that hold the whole GPU (5 to 14 times slower was
 * measured). Nor are caches that lose more than their share. Nor are clocks that fall when the card
 * reaches its limit of power. Device memory is not a rate: jobs that do not fit together cannot
 * share (sw_predict_fits).
 *
 * Integer thousandths, rounded to the nearest: the same on every machine, and independent of the
 * order of the jobs (but for the first under SW_WAY_GATE).
 */
#ifndef SW_CONTENTION_PREDICT_H
#define SW_CONTENTION_PREDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "contention/profile.h"

enum sw_predict_way {
	SW_WAY_SLICES,
	SW_WAY_MPS,
	SW_WAY_GATE,
	SW_WAY_COUNT,
};

/* Slowdowns beyond this say only "never do that", or "stands still"; the cap keeps products
 * small. */
#define SW_PREDICT_SLOWEST_MILLI 1000000u
/* So many jobs take turns at most; of more, each is answered with the slowest. */
#define SW_PREDICT_TURNS_MAX 16u

struct sw_predict_model {
	uint32_t host_mem_kappa_milli; /* how hard a host short of memory pages */
	uint32_t sharing_cost_milli;   /* added to every slowdown under MPS as soon as there is a neighbour */
	uint32_t switch_cost_milli;    /* more time that work takes while several take turns */
	uint32_t gate_cost_milli;      /* added to the guaranteed job's as soon as there is a neighbour */
	uint32_t gate_use_milli;       /* of the time that the guaranteed job leaves idle, what the others make use of */
};

/* kappa 5 and no fixed cost; switching 7 %, the gate 2 %, and 80 % of the idle
 * time: as seen on an H200. */
extern const struct sw_predict_model sw_predict_default;

/* What a job waits for most: one of enum sw_profile_use, or one of these. */
enum sw_predict_bound {
	SW_BOUND_NOTHING = SW_USE_COUNT,
	SW_BOUND_TURNS, /* the GPU as a whole, while others have it */
};

struct sw_prediction {
	uint32_t slow_milli; /* run time relative to that alone, >= 1000 */
	int bound;	     /* enum sw_profile_use or enum sw_predict_bound */
};

/* "slices", "mps", "gate"; NULL behind the last. */
const char *sw_predict_way_name(size_t way);
/* "SM", "host memory", "nothing", ... */
const char *sw_predict_bound_name(int bound);

/* All of the `count` jobs on one GPU: one answer each, in their order. */
void sw_predict_set(const struct sw_predict_model *model, enum sw_predict_way way, const struct sw_profile *const *jobs, size_t count,
		    struct sw_prediction *ret_predictions);

/* SW_WAY_GATE for any number of guaranteed jobs, which come first. They share the GPU with each
 * other as `among` says (SW_WAY_MPS or SW_WAY_SLICES), each paying the gate's cost beside an
 * opportunistic one. Those have the time in which all guaranteed ones are idle, that is the product
 * of their idle parts. Without jobs of either class there is no gate, and all share as `among`
 * says. */
void sw_predict_gated(const struct sw_predict_model *model, enum sw_predict_way among, const struct sw_profile *const *jobs,
		      size_t guaranteed, size_t count, struct sw_prediction *ret_predictions);

#endif
