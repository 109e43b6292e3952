/* How much jobs slow each other down when they share a GPU: a bottleneck model over their profiles.
 *
 * For job i among residents J, U_r is the sum of what all of them use of resource r.
 *	rates of the GPU (SM, memory pipeline, L2, reads, writes, PCIe):  s_r = 1 + (u_ir / max_r' u_ir') * max(0, U_r - 1)
 *	cores of the host that go with the GPU:                           s   = max(1, U_cpu)
 *	memory of the host that goes with the GPU (too little: paging):   s   = 1 + kappa * u_i * max(0, U_mem - 1)
 * The slowdown is the largest of these: one bottleneck at a time. A job whose own bottleneck is elsewhere feels a crowded resource less,
 * hence the factor.
 *
 * Assumed: residents run at the same time (MPS), each as if the others never paused. Not modelled: time slicing without MPS, long kernels
 * that hold the whole GPU, caches that lose more than their share. Device memory is not a rate: jobs that do not fit together cannot share
 * (sw_predict_fits).
 *
 * Integer thousandths, rounded to the nearest: the same on every machine, and independent of the order of the others.
 */
#ifndef SW_CONTENTION_PREDICT_H
#define SW_CONTENTION_PREDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "contention/profile.h"

struct sw_predict_model {
	uint32_t host_mem_kappa_milli; /* how hard a host short of memory pages */
	uint32_t sharing_cost_milli;   /* added to every slowdown as soon as there is a neighbour */
};

/* kappa 5, no fixed cost. */
extern const struct sw_predict_model sw_predict_default;

/* Run time of `job` relative to its run time alone, in thousandths (>= 1000), beside the `count` jobs of `others`, which do not include
 * it. */
uint32_t sw_predict_slowdown_milli(const struct sw_predict_model *model, const struct sw_profile *job,
				   const struct sw_profile *const *others, size_t count);

/* The same under the runtime's gate, which keeps the GPU for guaranteed jobs and lets opportunistic ones into the gaps.
 *	a guaranteed job:    what its guaranteed neighbours do to it, and the host that all of them share; times gate_milli beside an opportunistic one
 *	an opportunistic one: of each rate there is what guaranteed jobs leave, at least 0.05; with O_r what opportunistic residents use of it,
 *	                      s_r = 1 + (u_ir / max_r' u_ir') * max(0, O_r / rest_r - 1); the host as above
 * Without guaranteed neighbours this is the model above. */
struct sw_predict_neighbours {
	const struct sw_profile *const *guaranteed;
	size_t guaranteed_count;
	const struct sw_profile *const *opportunistic;
	size_t opportunistic_count;
};
uint32_t sw_predict_gated_milli(const struct sw_predict_model *model, uint32_t gate_milli, const struct sw_profile *job, bool is_guaranteed,
				const struct sw_predict_neighbours *others);

/* Work done by two jobs on one GPU, in thousandths of what one job alone does: 1/s_a + 1/s_b. Above 1000, sharing beats taking turns. */
uint32_t sw_predict_pair_milli(const struct sw_predict_model *model, const struct sw_profile *a, const struct sw_profile *b);

/* Whether the device memory of all jobs together, persistent and of an iteration, is there. */
bool sw_predict_fits(const struct sw_profile *const *jobs, size_t count, uint64_t gpu_mem_bytes);

#endif
