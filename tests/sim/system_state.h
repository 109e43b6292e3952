/* What the parts of a simulated Sharewell share: system.c has the network, misfortune and the
 * life of all, system_controller.c the controller's driver, system_nodes.c agents and
 * processes. See system.h. */
#ifndef SW_TESTS_SIM_SYSTEM_STATE_H
#define SW_TESTS_SIM_SYSTEM_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/brain/brain.h"
#include "base/number.h"
#include "base/rng.h"
#include "brain/brain.h"
#include "system.h"

#define NODES_MAX 4u
#define GPUS 4u
#define ALL_GPUS ((UINT64_C(1) << GPUS) - 1)
#define RUNS_MAX 4096u
#define MESSAGES_MAX 4096u
#define JOBS_MAX 512u
#define GPU_BYTES (UINT64_C(80) << 30)

/* The folder of a run with its supervisor and its process: what outlives the agent. */
struct process {
	struct sw_run_id id;
	bool folder, alive, exited;
	uint64_t memory_bytes;	      /* of its spec */
	int64_t ends_at_ns, lease_ns; /* on the node's clock; INT64_MAX: it has no lease */
	bool stands;		      /* still: suspended */
	bool runtime;		      /* the GPU runtime is in it: then its memory leaves the GPUs, */
	bool held;		      /* or could not */
	int64_t halts_at_ns;	      /* when it will, after the order to; 0: no such order */
	/* whether it is off its GPUs whole, then; SW_DEPTH_LEAVING: it is to be,
	 * which comes to pass or not */
	enum sw_run_depth depth;
	int64_t left_ns;    /* of its life, while it stands still */
	int64_t grace_ns;   /* of its spec */
	int64_t dies_at_ns; /* end of its last words after a stop, or after its lease; 0: no such order */
	bool lease_is_over;
	uint32_t code, signal;
	char reason[32];
	uint64_t gpu_mask;
	uint64_t going_mask;	 /* where it moves to; 0: it does not */
	int64_t arrives_at_ns;	 /* there, or not */
	bool was_moved, refused; /* since it started; when it was to be moved last */
	char gpus[64], moving[64];
	uint64_t order; /* the last one that it carried out */
};

struct message {
	int64_t at_ns;
	uint64_t order;
	bool to_controller;
	uint32_t node;
	uint64_t number; /* of the sync it answers */
	char instance[24];
	char *text;
	size_t size;
};

struct machine {
	char name[16];
	struct sw_agent_brain *brain; /* NULL: the agent is down */
	uint32_t starts;
	uint64_t present; /* GPUs that are there */
	char instance[24];
	int64_t clock_ahead_ns; /* nodes' clocks do not agree */
	int64_t cut_off_until_ns, back_at_ns;
	struct process processes[RUNS_MAX];
	size_t process_count;
	struct parked { /* a long poll that the controller has not answered */
		bool waits;
		struct sw_sync *sync;
		int64_t until_ns;
		char instance[24];
	} parked;
};

struct system {
	const struct sw_system_plan *plan;
	struct sw_rng rng;
	int64_t now_ns, storm_ends_ns;
	uint64_t order;
	struct message messages[MESSAGES_MAX];
	size_t message_count;
	struct machine machines[NODES_MAX];
	struct sw_brain *brain; /* NULL: the controller is down */
	int64_t controller_back_at_ns;
	SW_VEC(struct line {
		int64_t at_ns;
		struct sw_record record;
	})
	journal;
	/* The last snapshot of the controller, and how many records it covers. */
	unsigned char *snapshot;
	size_t snapshot_size, snapshot_records;
	struct sw_rng when_to_snapshot, which_gpus, fates; /* of jobs whose node is lost */
	uint32_t submitted;
	/* By job: */
	uint32_t codes[JOBS_MAX];    /* what its process will end with */
	uint64_t memory[JOBS_MAX];   /* that it says it needs on each GPU; 0: it does not say */
	int64_t leases_ms[JOBS_MAX]; /* 0: it has none */
	bool cancelled[JOBS_MAX];
	bool ended[JOBS_MAX]; /* one of its processes came so far */
	bool is_calm;	      /* what was set up for the storm is undone */
	struct sw_system_score score;
	struct sw_err *err;
	int broken;
};

static inline bool chance(struct system *s, uint32_t milli)
{
	return sw_rng_below(&s->rng, 1000) < milli;
}

static inline bool storms(const struct system *s)
{
	return s->now_ns < s->storm_ends_ns;
}

static inline int64_t node_clock(const struct system *s, const struct machine *machine)
{
	return s->now_ns + machine->clock_ahead_ns;
}

/* Some outages are short and some long: what is drawn in seconds is of this length. */
static inline int64_t outage_second(struct system *s)
{
	return sw_rng_below(&s->fates, 4) == 0 ? s->plan->outage_max_ns / 90 : SW_NS_PER_S;
}

/* ---- system.c */
/* The first thing that is broken is kept. */
void sw_system_broke(struct system *s, const char *what, uint64_t job);
void sw_system_check(struct system *s, int r, const char *what);
void sw_system_post(struct system *s, struct message message, const char *text, size_t size);

/* ---- system_controller.c */
void sw_system_commit(struct system *s, sw_records *records, uint64_t *ret_job);
void sw_system_controller_hears(struct system *s, const struct message *message);
void sw_system_controller_turn(struct system *s);
void sw_system_controller_snapshots(struct system *s);
void sw_system_controller_starts(struct system *s);
void sw_system_controller_dies(struct system *s);

/* ---- system_nodes.c */
void sw_system_agent_turn(struct system *s, uint32_t n);
void sw_system_agent_hears(struct system *s, const struct message *message);
void sw_system_agent_starts(struct system *s, uint32_t n);
void sw_system_processes_turn(struct system *s, struct machine *machine);

#endif
