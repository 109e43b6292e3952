/* A job as the core keeps it: what policies see, and what they do not. Private to src/core. */
#ifndef SW_CORE_JOB_H
#define SW_CORE_JOB_H

#include "core/engine.h"

#define SW_NO_SLOT UINT32_MAX

enum sw_order_set {
	SW_ORDER_NOWHERE = 0,
	SW_ORDER_WAITING,
	SW_ORDER_RUNNING,
};

/* Whether a run would go on where it was after a stop: a job of the rule SW_STOP_SUSPEND is not
 * stopped before that is known. */
enum sw_keeps {
	SW_KEEPS_UNKNOWN = 0,
	SW_KEEPS_YES,
	SW_KEEPS_NOT,
};

struct sw_core_job {
	struct sw_job seen; /* first: a policy's pointer to it is a pointer to this */
	struct sw_job_clock clock;
	uint64_t asked_memory_bytes; /* as submitted: limits hold for one run */
	uint32_t asked_compute_milli;
	uint32_t asked_cpus; /* this and the next as submitted: a configuration holds for one run */
	uint64_t asked_host_bytes;
	sw_ns asked_work_ns;	 /* where a run begins of which nothing was kept */
	struct sw_config config; /* of the run that it is, or that stands; else zero */
	uint32_t epoch;		 /* counts runs; one that is suspended and goes on is the same */
	uint32_t parts;		 /* what it holds; SW_NO_PART */
	uint32_t plan_slot;	 /* its place in the plan of this decision; SW_NO_SLOT */
	uint32_t lane;		 /* of the order */
	uint32_t avoid;		 /* the node it keeps off; UINT32_MAX: none */
	uint32_t split_milli;	 /* step time of its split run, alone; 0: not split */
	uint8_t order_set;	 /* enum sw_order_set: which of the lane's sets it is in */
	bool ranks_as_running;	 /* as of the last decision: frozen while one is made */
	bool can_resume;	 /* its state was kept at the last stop */
	bool prefers_home;
	bool held_next;	 /* it is held once its run is over */
	uint8_t keeps;	 /* enum sw_keeps, of the run `epoch` */
	bool begun;	 /* a process of the run `epoch` has */
	uint32_t home;	 /* parts: where it was when it was stopped; SW_NO_PART. Others may have the GPUs. */
	uint32_t stands; /* parts: where the ledger counts its run as suspended; SW_NO_PART */
	sw_ns stood_at;	 /* when it was stopped there */
	/* when its run came to the GPUs that it holds; 0: before any run that now stands or leaves
	 * GPUs there */
	sw_ns came_at;
	uint64_t leaves; /* GPUs of its one node that the run still has, on its way to others; 0: it is there */
	sw_ns move_at;	 /* since when it leaves them; where it leaves none: before then no policy moves it in one run */
	/* since when its driver is to carry that out: later than it began, if it went on since;
	 * 0: it leaves none */
	sw_ns told_at;
	sw_ns alarm_slack;
	uint32_t speed_milli; /* as it was measured in the run `speed_epoch`; 0: it was not */
	uint32_t speed_epoch;
};

#endif
