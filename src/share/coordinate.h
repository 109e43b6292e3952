/* What the jobs on one GPU may do: AntMan's local coordinator and Gandiva's time
 * slices, as a function.
 *
 *	struct sw_coordination kept = {0};
 *	every now and then: sw_coordinate(&kept, &gpu, jobs, count, now_ns, orders);
 *
 * Pure: no clock but the caller's, no input but the figures, no output but the orders. The agent
 * and `sharewell share` read the figures from the jobs' pages and write the orders there.
 *
 * Invariants:
 *  1. a guaranteed job's limit is what its user allows, and what it needs is taken from
 *     opportunistic jobs, never the other way round;
 *  2. the limits of opportunistic jobs leave the guaranteed ones that run what they ever had and
 *     head-room. A burst within it finds room at once. A larger one goes to host memory until the
 *     opportunistic ones have made room, one call later. Head-room is made good once a burst is
 *     over, and at once where only a quarter is left;
 *  3. of jobs of one class that do not fit together some are suspended, and all get equal time.
 *     Guaranteed ones never where the policy has placed them;
 *  4. a job never gets more than its user asked for, and one that a person suspended stays so.
 */
#ifndef SW_SHARE_COORDINATE_H
#define SW_SHARE_COORDINATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sharewell/job_class.h>

#include "share/throttle.h"
#include "share/turns.h"

#define SW_COORDINATE_JOBS SW_TURNS_MEMBERS
#define SW_COORDINATE_NO_LIMIT UINT64_MAX

struct sw_coordinate_gpu {
	uint64_t capacity_bytes;
	uint64_t foreign_bytes; /* held by programs that are none of the jobs */
	int64_t quantum_ns;	/* of time slices; 0: SW_TURNS_QUANTUM_NS */
	bool placed;		/* the policy decides which jobs are here: guaranteed jobs take no turns */
};

/* What is known of a job on this GPU. */
struct sw_coordinate_job {
	uint64_t id; /* its own among the jobs, and stays */
	uint64_t arrival;
	enum sw_job_class class;
	const struct sw_throttle *throttle; /* of an opportunistic one; NULL: the default */
	/* What its user asked for. */
	uint64_t asked_bytes; /* SW_COORDINATE_NO_LIMIT */
	uint32_t asked_milli; /* of the GPU's time; 0: all */
	bool held;	      /* a person suspended it */
	/* Figures. */
	bool suspended; /* none of its processes works */
	bool moving;	/* on its way to or from the GPU: its memory may be counted twice */
	bool watched;	/* it says when it works, since before the last call: what was kept may be lost */
	uint64_t charged_bytes, fixed_bytes, host_bytes, peak_bytes;
	uint64_t floor_bytes; /* the least within an iteration; 0: not known */
	uint64_t iterations;  /* 0: none is found */
	int64_t iteration_ns;
	uint64_t launches;
};

struct sw_coordinate_order {
	uint64_t limit_bytes; /* SW_COORDINATE_NO_LIMIT */
	uint32_t share_milli; /* of the GPU's time: 0 none (stands still, and keeps its memory), 1000 all */
	bool yields;	      /* works only while the guaranteed jobs on this GPU do not */
	bool watched;	      /* must say when it works */
	bool suspend;
};

/* How a guaranteed job fares (fare.c). */
struct sw_fare {
	uint64_t id;
	enum { SW_FARE_NEW = 0, SW_FARE_MEASURED, SW_FARE_KNOWN } phase;
	bool by_launches; /* no iterations are found: time per launch stands in */
	uint32_t samples;
	uint64_t iterations, launches; /* as last seen */
	int64_t seen_ns, advanced_ns;  /* ... and when; when it last ended an iteration */
	uint64_t worked_launches;
	int64_t worked_ns;		  /* when it last launched something */
	int64_t began_ns;		  /* the measurement */
	int64_t smooth_ns, baseline_ns;	  /* of an iteration */
	uint32_t time_milli;		  /* against the baseline */
	int64_t window_ns;		  /* when the present window began */
	uint64_t window_launches;	  /* as it did */
	uint64_t rate_micro, alone_micro; /* launches a second, in millionths: of the last window, and undisturbed */
	uint32_t windows;
	bool undisturbed; /* in all of the present window */
};

/* Kept from one call to the next; starts as all zeroes. */
struct sw_coordination {
	struct sw_turns guaranteed, opportunistic;
	uint32_t count;
	struct sw_coordinated {
		uint64_t id;
		enum sw_job_class class;
		struct sw_fare fare;		  /* of a guaranteed one */
		struct sw_throttle_kept throttle; /* of an opportunistic one */
		const struct sw_throttle *rule;
		int64_t watched_ns;    /* since when; 0: is not */
		uint64_t demand_bytes; /* as it was when it did not move */
		/* Of a guaranteed one: the most that it ever had, or wants now. When that last
		 * rose; and as it was when it had not risen for a while, 0: never. */
		uint64_t need_bytes, quiet_bytes;
		int64_t rose_ns;
	} jobs[SW_COORDINATE_JOBS];
	bool sliced;	 /* opportunistic jobs take turns */
	bool standstill; /* as of the last call, no opportunistic job worked but those that yield */
};

/* One order for each job. Jobs beyond SW_COORDINATE_JOBS are told to wait.
 * Same figures, same orders. */
void sw_coordinate(struct sw_coordination *kept, const struct sw_coordinate_gpu *gpu, const struct sw_coordinate_job *jobs, size_t count,
		   int64_t now_ns, struct sw_coordinate_order *ret_orders);

#endif
