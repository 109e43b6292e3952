/* The ledger: which job holds what on which GPU. The only place where resources are counted.
 *
 * A holding is a list of parts, one per node, each a mask of GPUs with the CPUs and host memory
 * beside them. Memory and compute are per GPU and the same on all GPUs of a holding. But for a job
 * that is split: then each part is one GPU and says how much memory it holds there.
 *
 * A run that is suspended where it ran stands there. It is no resident and holds no CPUs. It keeps
 * its host memory, and its GPU memory unless that has left the GPU.
 *
 * Invariants (re-derived from the holdings by sw_ledger_matches()):
 *  1. on every GPU, memory held by residents is at most the GPU's memory. Residents are taken in
 *     only where they fit beside what stands there. Of a run that stands it may turn out later that
 *     it holds more;
 *  2. on every GPU, compute held by guaranteed residents is at most 1000 thousandths, and there are
 *     at most SW_GPU_RESIDENTS_MAX residents;
 *  3. CPUs and host memory held on a node are at most what the node has, those of runs that
 *     stand there included. Host memory that a job asked for limits newcomers only on nodes
 *     where a run is suspended;
 *  4. a GPU is free exactly when it has no resident and is neither shut nor kept. A node is in
 *     exactly one bucket, that of its free GPUs, while it is up and open, and in none otherwise.
 *     Free GPUs of a closed node are in no total;
 *  5. no part names a GPU that the node does not have;
 *  6. the residents of a GPU are listed on it. It is found by their use exactly while it has some,
 *     could take one more and is neither shut nor kept.
 */
#ifndef SW_CORE_LEDGER_H
#define SW_CORE_LEDGER_H

#include <sharewell/policy.h>

#include "base/bitmap.h"
#include "core/topology.h"

#define SW_GPU_RESIDENTS_MAX SW_RESIDENTS_MAX
#define SW_USE_STEPS 32u /* GPUs are told apart by their use in steps of a 32nd */
#define SW_COMPUTE_WHOLE 1000u
#define SW_NO_PART UINT32_MAX

struct sw_part {
	uint64_t mask;
	uint64_t memory_bytes;
	uint64_t split_bytes; /* of each GPU, whatever the share says; 0: not split */
	uint32_t cpus;
	uint32_t node;
	uint32_t next;
};

/* What a job holds, or would hold, on each of its GPUs. */
struct sw_share {
	uint64_t gpu_memory_bytes;  /* 0: the whole GPU */
	uint64_t host_memory_bytes; /* per GPU, as asked for; parts may say otherwise */
	uint32_t compute_milli;
	bool guaranteed;
	uint16_t use_milli; /* of the compute, as far as is known */
	uint32_t job;	    /* which job */
	bool stands;	    /* stopped, it would stand where it is, or does */
	bool frees;	    /* and its GPU memory would leave the GPUs */
};

struct sw_gpu {
	uint64_t memory_held_bytes;
	uint64_t standing_bytes;	    /* held by runs that stand there */
	uint64_t rest_bytes;		    /* of what residents hold, what would stand there if all of them were stopped */
	uint32_t who[SW_GPU_RESIDENTS_MAX]; /* its residents, ascending */
	uint32_t homes;			    /* of jobs that are away */
	uint32_t standing;		    /* of those, whose runs stand there */
	uint32_t standing_held;		    /* of those, whose memory is there too */
	uint32_t node;
	uint32_t kept;		     /* how many holds keep it for a job */
	uint16_t compute_held_milli; /* of guaranteed residents */
	uint16_t use_milli;	     /* of all residents */
	uint8_t residents;
	uint8_t guaranteed; /* how many of them are */
	uint8_t rest_held;  /* how many of them would stand there with their memory */
	bool whole;	    /* a resident holds all of it */
	bool shut;	    /* it takes no job */
};

struct sw_ledger_node {
	uint64_t free;	   /* mask of GPUs with no resident that are neither shut nor kept */
	uint64_t shut;	   /* mask of GPUs that take no job */
	uint64_t kept;	   /* mask of GPUs that are kept for a job, and take no other */
	uint64_t yielding; /* mask of GPUs with residents, none of them guaranteed */
	uint64_t homes;	   /* mask of GPUs that jobs would like to come back to */
	uint64_t hidden;   /* of these, the free ones, while homes are hidden */
	uint64_t standing; /* mask of GPUs on which runs stand */
	uint64_t crowded;  /* of these, the free ones that are too crowded, while those are hidden */
	uint64_t memory_free_bytes;
	uint64_t memory_yielding_bytes; /* held by opportunistic jobs that would not stand there */
	uint64_t asked_bytes;		/* host memory that residents and runs that stand asked for and their parts do not say */
	uint64_t asked_yielding_bytes;	/* of these, by opportunistic jobs that would not stand there */
	uint32_t cpus_free;
	uint32_t cpus_yielding;
	uint32_t first_gpu;
	uint32_t in_spot; /* number of the last spot that took from it */
	bool up;
	bool closed;   /* it takes no job in */
	uint8_t power; /* enum sw_power: of the engine, which counts nothing here for it */
};

struct sw_ledger {
	const struct sw_topology *topology;
	struct sw_ledger_node *nodes;
	struct sw_gpu *gpus;
	struct sw_bitmap *buckets;	       /* [number of free GPUs] -> nodes that are up and open */
	struct sw_bitmap yielding;	       /* nodes with such GPUs */
	struct sw_bitmap homely;	       /* nodes with homes */
	struct sw_bitmap standing;	       /* nodes on which runs stand */
	struct sw_bitmap by_use[SW_USE_STEPS]; /* GPUs with residents and room for more, by how much these use */
	struct sw_part *parts;		       /* pool; free ones are linked by next */
	uint32_t node_capacity, gpu_capacity;
	uint32_t part_capacity;
	uint32_t part_free;
	uint32_t gpus_up;
	uint32_t gpus_free;
	uint32_t gpus_yielding; /* on closed nodes too */
	uint32_t gpus_shared;	/* with several residents */
	uint32_t nodes_closed;
	uint32_t gpus_shut; /* on nodes that are down too */
	uint32_t gpus_kept; /* the same */
	uint32_t spot_serial;
	uint32_t bucket_count; /* one more than the GPUs of the largest node that was reserved for */
};

int sw_ledger_init(struct sw_ledger *ledger, const struct sw_topology *topology);
void sw_ledger_release(struct sw_ledger *ledger);
/* Makes room for one more node of this shape; 0 or SW_ENOMEM. */
int sw_ledger_reserve_node(struct sw_ledger *ledger, const struct sw_topology_node *shape);
/* Takes in the node that the topology got last, for which room was made; it is up and free. */
void sw_ledger_add_node(struct sw_ledger *ledger);

/* The node has the shape that the topology has for it since just now, where it had so many GPUs
 * before. Room was made as for one more. It is down, and no job holds or would like to come back to
 * any of its GPUs. */
void sw_ledger_change_node(struct sw_ledger *ledger, uint32_t node, uint32_t gpus_before);

/* Room for `wanted` parts in all; 0 or SW_ENOMEM. */
int sw_ledger_reserve_parts(struct sw_ledger *ledger, uint32_t wanted);

/* A spot under construction; nothing is taken before sw_ledger_take(). */
struct sw_spot {
	struct sw_ledger *ledger;
	struct sw_share share;
	uint32_t serial;
	uint32_t head, tail; /* parts */
	uint32_t gpus;
	bool failed; /* out of memory */
};

void sw_spot_begin(struct sw_spot *spot, struct sw_ledger *ledger, struct sw_share share);
void sw_spot_discard(struct sw_spot *spot);
/* Adds exactly this part, as it was held before. False when its node (of a split job: its GPU) is
 * in the spot already, or out of memory. Whether it is free is for sw_ledger_fits() to say. */
bool sw_spot_put(struct sw_spot *spot, const struct sw_part *part);

/* Whether the nodes of these parts are up and have the CPUs and host memory for them. */
bool sw_ledger_host_fits(const struct sw_ledger *ledger, uint32_t parts);
/* Whether a newcomer with this share has the host memory that it asks for on the node of this part.
 * True where no run stands there. */
bool sw_ledger_has_asked(const struct sw_ledger *ledger, const struct sw_part *part, struct sw_share share);
/* Whether the parts (which need not be held now) could be taken by this share. */
bool sw_ledger_fits(const struct sw_ledger *ledger, uint32_t parts, struct sw_share share);
/* Takes or gives back; the list of parts itself stays the caller's. */
void sw_ledger_take(struct sw_ledger *ledger, uint32_t parts, struct sw_share share);
void sw_ledger_give(struct sw_ledger *ledger, uint32_t parts, struct sw_share share);
/* A copy of the parts with the CPUs and memory left out: for a neighbour on the same GPUs.
 * SW_NO_PART: out of memory. */
uint32_t sw_ledger_copy_parts(struct sw_ledger *ledger, uint32_t parts);
void sw_ledger_drop_parts(struct sw_ledger *ledger, uint32_t parts);
bool sw_ledger_same_parts(const struct sw_ledger *ledger, uint32_t a, uint32_t b);
/* The same GPUs, whatever is held beside them. */
bool sw_ledger_same_gpus(const struct sw_ledger *ledger, uint32_t a, uint32_t b);
uint32_t sw_ledger_count_gpus(const struct sw_ledger *ledger, uint32_t parts);
enum sw_distance sw_ledger_distance(const struct sw_ledger *ledger, uint32_t parts);
/* Whether these GPUs have no resident at all; whether the holder of these parts
 * is the only one on them. */
bool sw_ledger_is_free(const struct sw_ledger *ledger, uint32_t parts);
bool sw_ledger_is_alone(const struct sw_ledger *ledger, uint32_t parts);
/* A job would like to come back to these GPUs, or does not any more: others are
 * given to new jobs first. */
void sw_ledger_mark_home(struct sw_ledger *ledger, uint32_t parts, bool is_home);
/* Whether some of these GPUs are a home. */
bool sw_ledger_has_homes(const struct sw_ledger *ledger, uint32_t parts);
/* As if a job were on every GPU that is a home. None of them is counted or found as free, for as
 * long as a place is looked for. Nothing is taken, given or marked meanwhile. */
void sw_ledger_hide_homes(struct sw_ledger *ledger, bool on);
/* A run that holds nothing any more stands on these parts from now on, or does not. It takes its
 * host memory, which it had, and its GPU memory unless the share frees it. */
void sw_ledger_stand(struct sw_ledger *ledger, uint32_t parts, struct sw_share share, bool in);
/* As if a job were on every free GPU on which the share does not fit beside runs that
 * stand there, as with homes. */
void sw_ledger_hide_crowded(struct sw_ledger *ledger, struct sw_share share, bool on);
bool sw_ledger_touches(const struct sw_ledger *ledger, uint32_t parts, uint32_t node);
/* Whether these are the parts of a split job. */
bool sw_ledger_is_split(const struct sw_ledger *ledger, uint32_t parts);

/* Down: its GPUs are not counted and not found; holdings on it must be given
 * back by the caller first. */
void sw_ledger_set_up(struct sw_ledger *ledger, uint32_t node, bool up);

/* Closed: its free GPUs are neither counted nor found. Holdings on it stay, and may be
 * given back and taken again. */
void sw_ledger_set_closed(struct sw_ledger *ledger, uint32_t node, bool closed);
/* Shut: these GPUs of the node, and no others, are neither counted nor found. Holdings on them
 * stay, and may be given back and taken again. */
void sw_ledger_set_shut(struct sw_ledger *ledger, uint32_t node, uint64_t mask);
/* One hold more keeps these GPUs for a job, or one less. Those that are kept are neither counted
 * nor found, as if they were shut. */
void sw_ledger_keep(struct sw_ledger *ledger, uint32_t parts, bool in);
/* Whether some of these parts are on a closed node, or on GPUs that are shut; or that are kept. */
bool sw_ledger_touches_shut(const struct sw_ledger *ledger, uint32_t parts);
bool sw_ledger_touches_closed(const struct sw_ledger *ledger, uint32_t parts);

/* As if opportunistic jobs held nothing. Their GPUs, CPUs and host memory are counted and found as
 * free, for as long as a place is looked for this share. But not GPUs on which it would not fit
 * beside what they leave there. Nothing is taken or given meanwhile. */
void sw_ledger_see_through(struct sw_ledger *ledger, struct sw_share share, bool on);
/* The GPU's memory that neither residents nor runs that stand there hold. */
uint64_t sw_ledger_gpu_memory_free(const struct sw_ledger *ledger, uint32_t gpu);
/* Whether residents and runs that stand there hold more than it has: of one that stands that turned
 * out when others were there already. */
bool sw_ledger_gpu_is_overdrawn(const struct sw_ledger *ledger, uint32_t gpu);
/* Whether the share has room on this GPU beside the jobs that are there. */
bool sw_ledger_gpu_fits(const struct sw_ledger *ledger, uint32_t gpu, struct sw_share share);
/* Whether the share would have room on each GPU of these parts once all residents there were
 * stopped, beside what those leave. Also the host memory for up to so many GPUs, once `leaver` has
 * left the parts. */
bool sw_ledger_would_fit(const struct sw_ledger *ledger, uint32_t parts, struct sw_share leaver, struct sw_share share, uint32_t gpus);
/* Whether the holder of these parts, which is not guaranteed, could be. */
bool sw_ledger_could_guarantee(const struct sw_ledger *ledger, uint32_t parts, uint32_t compute_milli);
/* The next GPU (its number in `gpus`) that has residents and room for one more, in steps of use and
 * by number within a step. `step` and `gpu` hold the place, both 0 at first. False: there is none
 * that uses less than below_milli. */
bool sw_ledger_next_used(const struct sw_ledger *ledger, uint32_t below_milli, uint32_t *step, uint32_t *gpu);

/* Compares GPUs, nodes, buckets and totals with those of `derived`, a ledger into which all
 * holdings were taken anew. */
int sw_ledger_matches(const struct sw_ledger *ledger, const struct sw_ledger *derived, struct sw_err *err);

/* Node searches over [from, end): see policy.h. UINT32_MAX: none. */
uint32_t sw_ledger_first(const struct sw_ledger *ledger, uint32_t free, uint32_t from, uint32_t end);
uint32_t sw_ledger_tightest(const struct sw_ledger *ledger, uint32_t free, uint32_t from, uint32_t end);

#endif
