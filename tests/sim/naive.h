/* A naive model of a cluster: the yardstick that the engine, the policies and the
 * simulator are held against.
 *
 * It does what the published simulators describe in the most obvious way: at every event empty
 * the cluster, walk the whole list, place greedily, and look at every job for the next event.
 * Everything is linear or worse in the number of jobs; nothing is clever; it shares no code with
 * what it judges. It is not a simulator for people: no faults, no placement slowdown, no costs
 * but the overhead below.
 *
 * The rules of the world:
 *  1. Time is int64 nanoseconds. Events are: a job's end, a job's arrival, and (LAS only) the
 *     moment when a job changes its queue.
 *  2. All ends and arrivals of one moment are one event; ends come first. A change of queue
 *     is an event of its own only if it comes strictly before the next end or arrival: at
 *     those, queues change anyway.
 *  3. At every event each running job has advanced by max(elapsed since the last event -
 *     overhead_ns, 0), whether it was moved or not. A job that reaches its end without a further
 *     event pays nothing for the last stretch.
 *  4. Preemption is free, and re-placing a running job is not a preemption.
 *  5. Orders are stable and kept between events: one that ties stays where it was,
 *     newcomers join at the tail.
 */
#ifndef SW_TESTS_SIM_NAIVE_H
#define SW_TESTS_SIM_NAIVE_H

#include <stddef.h>
#include <stdint.h>

#define SW_NAIVE_NEVER INT64_MAX
#define SW_NAIVE_MAX_LIMITS 7

enum sw_naive_policy {
	SW_NAIVE_FIFO, /* arrival order, stops at the first that does not fit; never preempts */
	SW_NAIVE_FJF,  /* arrival order, skips what does not fit; never preempts */
	SW_NAIVE_SJF,  /* fewest GPUs first; preempts, and so do all below */
	SW_NAIVE_SRTF, /* least remaining time first */
	SW_NAIVE_SRSF, /* least remaining time x GPUs first */
	SW_NAIVE_LAS,  /* queues by attained time x GPUs; takes GPUs by number, whatever the placement says */
};

enum sw_naive_placement {
	SW_NAIVE_COUNT, /* enough GPUs anywhere */
	/* consolidated under one rack: first node that has room, or whole idle nodes and a
	 * first node for the rest */
	SW_NAIVE_YARN,
};

struct sw_naive_job {
	int64_t submit_ns;
	int64_t work_ns;     /* run time alone */
	int64_t overhead_ns; /* lost at every event while running (rule 3); 0 in the ideal world */
	uint32_t gpus;
};

struct sw_naive_cluster {
	uint32_t racks;
	uint32_t nodes_per_rack;
	uint32_t gpus_per_node;
	uint32_t cpus_per_node;
	uint32_t mem_gb_per_node;
};

struct sw_naive_rules {
	enum sw_naive_policy policy;
	enum sw_naive_placement placement;
	/* SJF, SRTF and SRSF only: ends that are no further apart than this many billionths of
	 * their time are one event, at the end of that job which stands first in the order. 0: only
	 * equal ends. The published muri simulator compares its floating-point times with 1. */
	int64_t merge_ppb;
	/* LAS only. */
	size_t limits;			       /* one queue more than limits */
	int64_t limit_ns[SW_NAIVE_MAX_LIMITS]; /* GPU time at which a job leaves queue i for the next; ascending */
	int64_t promote_milli;		       /* back to the first queue after waiting this many thousandths of its service; 0: never */
	int64_t grain_ns;		       /* changes of queue are looked for at run times that are multiples of it: 1 s as published */
};

struct sw_naive_fate {
	int64_t start_ns; /* first start; SW_NAIVE_NEVER if none */
	int64_t end_ns;	  /* SW_NAIVE_NEVER if it can never run */
	uint32_t preemptions;
	uint32_t promotions;
};

/* The two published thresholds (3250 and 7200 GPU seconds), no promotion,
 * looked for at whole seconds. */
struct sw_naive_rules sw_naive_rules(enum sw_naive_policy policy, enum sw_naive_placement placement);

/* Lives through all of `jobs`, which are in submit order; `ret_fates` has room for `count`. Returns
 * 0, or SW_ENOMEM having written nothing. */
int sw_naive_run(const struct sw_naive_job *jobs, size_t count, const struct sw_naive_cluster *cluster, const struct sw_naive_rules *rules,
		 struct sw_naive_fate *ret_fates);

#endif
