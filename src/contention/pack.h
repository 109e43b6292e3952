/* Which jobs to put together on a GPU, which sets together on a node, and when to
 * take them apart again.
 *
 * What a set of jobs is worth is the work that it does on one GPU, 1/s_1 + 1/s_2 + ..., in
 * thousandths of what a job alone does. Jobs may share iff that is at least `least_worth_milli`,
 * nobody is slowed down by more than `most_slow_milli`, and all of their device memory is there.
 *
 * Pairs of up to SW_PACK_EXACT_MAX jobs are the best there are (match.h). More jobs are paired
 * greedily, the best first, and improved by exchanging partners between two pairs as long as that
 * gains. Sets of more than two grow from those pairs, the best first, as long as each step adds at
 * least what a second job must add to the first.
 *
 * Jobs of one model are alike: a question about a set of models is asked once for pairs,
 * however many jobs there are.
 *
 * Everything is an integer, and ties go to the lower index: the same on every machine.
 */
#ifndef SW_CONTENTION_PACK_H
#define SW_CONTENTION_PACK_H

#include "contention/predict.h"

#define SW_PACK_SET_MAX 8u
#define SW_PACK_EXACT_MAX 200u
#define SW_PACK_JOBS_MAX 4096u

/* The slowdowns of these jobs together, in their order, in thousandths: from profiles, or
 * learned. */
typedef void sw_pack_ask_fn(void *context, const struct sw_profile *const *jobs, size_t count, uint32_t *ret_slow_milli);

struct sw_pack_rule {
	uint32_t least_worth_milli; /* 1300 */
	uint32_t most_slow_milli;   /* 1500 */
	uint32_t set_max;	    /* jobs on one GPU: 2 to SW_PACK_SET_MAX */
	uint64_t gpu_mem_bytes;
	sw_pack_ask_fn *ask; /* NULL: sw_predict_default under MPS */
	void *context;
};

/* 1.3, 1.5, pairs, and a GPU of this size. */
struct sw_pack_rule sw_pack_rule_of(uint64_t gpu_mem_bytes);

struct sw_pack_set {
	uint32_t jobs[SW_PACK_SET_MAX]; /* ascending */
	uint32_t count;			/* 1: it stays alone */
	uint32_t worth_milli;
};

/* What the set is worth, or 0 where it may not share. */
uint32_t sw_pack_worth(const struct sw_pack_rule *rule, const struct sw_profile *const *jobs, size_t count);

/* Divides all jobs into sets, ordered by their first jobs; `ret_sets` has room for `count`.
 * SW_ELIMIT above SW_PACK_JOBS_MAX. */
int sw_pack(const struct sw_pack_rule *rule, const struct sw_profile *const *jobs, size_t count, struct sw_pack_set *ret_sets,
	    size_t *ret_set_count);

/* Nodes for sets. */

struct sw_pack_node {
	uint32_t free_gpus;
	uint64_t cores_milli, cores_used_milli; /* thousandths of a core */
	uint64_t mem_bytes, mem_used_bytes;	/* of the host */
};

/* What a set needs of its host, all jobs together. */
struct sw_pack_need {
	uint64_t cores_milli;
	uint64_t mem_bytes;
};

/* The part of the host that goes with a GPU is `cores_milli` and `mem_bytes`: what the
 * profiles' use is a part of. */
struct sw_pack_need sw_pack_need_of(const struct sw_profile *const *jobs, size_t count, uint64_t cores_milli, uint64_t mem_bytes);

#define SW_PACK_NOWHERE UINT32_MAX

/* A node for each set: largest first, each where the cores are exceeded least, then where the
 * fuller of cores and memory is least full. Memory is never exceeded; a set that finds none is
 * SW_PACK_NOWHERE. The nodes are left as they are. SW_ENOMEM. */
int sw_pack_place(const struct sw_pack_need *needs, size_t count, const struct sw_pack_node *nodes, size_t node_count, uint32_t *ret_nodes);

/* Feedback: whether a set that was put together stays together. */

#define SW_PACK_TOLERATED_MILLI 200u
#define SW_PACK_STRIKES 2u

struct sw_pack_watch {
	uint32_t strikes;
};

/* One more measurement of a job of the set: true when it is to be taken apart, after two in a row
 * that were more than 0.2 above what was predicted. The caller also gives the measurement to its
 * learner, so that the next prediction knows. */
bool sw_pack_is_worse(struct sw_pack_watch *watch, uint32_t predicted_milli, uint32_t measured_milli);

#endif
