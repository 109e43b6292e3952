/* A whole Sharewell in one thread: the controller's brain and agents' brains, the very code of the
 * live system, under a simulated network, clock, disk and processes. Everything that goes wrong
 * goes wrong by the seed. */
#ifndef SW_TESTS_SIM_SYSTEM_H
#define SW_TESTS_SIM_SYSTEM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum sw_system_policy {
	SW_SYSTEM_LAS = 0, /* with queues so short that every job falls through them */
	SW_SYSTEM_SRTF,
	SW_SYSTEM_CHAOS,   /* resizes and moves too */
	SW_SYSTEM_GANDIVA, /* turns of seconds */
	SW_SYSTEM_FIFO,	   /* stops none */
};

struct sw_system_plan {
	uint64_t seed;
	uint32_t nodes;
	uint32_t jobs;
	int64_t storm_ns;		   /* how long things go wrong; then they are left in peace until all jobs have ended */
	uint32_t lose_milli, repeat_milli; /* of messages */
	int64_t delay_max_ns;
	bool crash_controller, crash_agents, kill_supervisors, partitions;
	bool meddling;		/* users suspend, resume, requeue and cancel */
	bool refits;		/* agents come back with other GPUs than they had */
	bool removes;		/* operators give up nodes that do not answer */
	uint32_t restart_milli; /* of the jobs: they hold a lease, and start anew elsewhere when it is over */
	int64_t outage_max_ns;	/* of a partition, the longest */
	enum sw_system_policy policy;
	bool verbose;
};

struct sw_system_score {
	uint64_t messages, crashes, jobs_acknowledged, runs, retries;
	uint64_t suspensions, resumes;
	uint64_t off;	    /* of the suspensions: off their GPUs whole */
	uint64_t moves;	    /* to other GPUs, in the same run */
	uint64_t snapshots; /* from which a controller started */
	uint64_t refits;    /* of nodes, with other GPUs */
	uint64_t leases;    /* that ended a run */
	uint64_t cut_short; /* processes that did not come to their own end */
	uint64_t removals;  /* of nodes */
	uint64_t lost;	    /* jobs that ended with them */
	int64_t ended_after_ns;
};

/* A plan drawn from the seed alone. */
struct sw_system_plan sw_system_draw(uint64_t seed);
/* 0, or SW_EBUG and what was broken: a job lost, run twice at a time or ended wrongly, a GPU
 * or its memory given twice, a gang torn, a lease not honoured, a run without a lease ended
 * for want of an answer. */
int sw_system_live(const struct sw_system_plan *plan, struct sw_system_score *ret_score, struct sw_err *err);

#endif
