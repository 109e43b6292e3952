/* The inside of a supervisor; private to this folder. Each file says its functions in a header of
 * its own. */
#ifndef SW_AGENT_SUPERVISOR_STATE_H
#define SW_AGENT_SUPERVISOR_STATE_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/cgroup.h"
#include "agent/control.h"
#include "agent/device_group.h"
#include "agent/processes.h"
#include "agent/supervisor/deep.h"
#include "agent/supervisor/gpu.h"
#include "agent/supervisor/logger.h"
#include "agent/supervisor/move.h"
#include "api/sync.h"
#include "base/number.h"
#include "gpu/gpu.h"
#include "share/checkpoint.h"
#include "share/page.h"

/* Processes that a job leaves behind get so long to end by themselves. */
#define SW_LEFTOVER_GRACE_MS 5000
/* What remains unreachable (of other users) or does not die is given up after this. */
#define SW_UNREACHABLE_NS (10 * SW_NS_PER_S)
/* The log writer may finish for so long after the job. */
#define SW_DRAIN_NS (5 * SW_NS_PER_S)

/* A run that lives so long gets what only long ones need: a socket for an agent that comes later,
 * and its status on disk. */
#define SW_SETTLE_NS (100 * SW_NS_PER_MS)

enum sw_stage {
	SW_STAGE_PREPARING, /* the log writer opens the user's files */
	SW_STAGE_LAUNCHING, /* the job is on its way to exec */
	SW_STAGE_RUNNING,
	SW_STAGE_ENDING,    /* its first process has ended; the rest must go */
	SW_STAGE_DRAINING,  /* the log writer finishes */
	SW_STAGE_RECORDING, /* exit.json is being written */
	SW_STAGE_DONE,
};

enum sw_pause {
	SW_PAUSE_NONE,
	SW_PAUSE_COMING, /* not all processes stand still yet */
	SW_PAUSE_HERE,
};

struct sw_supervisor {
	int folder, lock;
	struct sw_run_order *order;
	const struct sw_run_spec *spec; /* of the order */
	char token[33];
	struct sw_control control;
	struct sw_cgroup cgroup;
	int device_program;	       /* that keeps the group to its GPUs; -1: none */
	int notes;		       /* to the log writer, for lines of our own; -1: none */
	struct sw_processes processes; /* scratch */
	struct sw_log_tail *tail;      /* shared with the log writer */
	int signals, timer;
	int ready;	      /* of the log writer; -1: not waited for */
	int report;	      /* of the launch; -1: over */
	int streams[2];	      /* the ends of the pipes for the job; -1 once it has them */
	pid_t job, logger;    /* 0: none, or reaped */
	struct sw_logger log; /* what the log writer gets; it is born when there is something to write */
	struct sw_supervisor_gpu gpu;
	struct sw_supervisor_deep deep;
	struct sw_supervisor_move move;

	enum sw_stage stage;
	enum sw_pause pause;
	struct sw_run_account account;
	char detail[600], note[300];
	char failure_name[SW_FAILURE_NAME_MAX + 1];
	struct sw_failure_found failure; /* its texts are those of the account */
	bool stopping, killing, warned, lease_is_over;
	bool suspends_first, deep_first; /* it was told to suspend, deep or not, before the job ran */
	uint32_t stop_signal;		 /* that was sent */
	char why[SW_SYNC_WHY_MAX + 1];	 /* of the order that was given last; "": not said */

	/* CLOCK_BOOTTIME; SW_NEVER: off */
	int64_t lease_ns;      /* SW_NEVER: it may go on for ever */
	int64_t kill_at_ns;    /* end of the grace */
	int64_t look_at_ns;    /* next look at the tree, while something shall happen to it */
	int64_t look_step_ns;  /* grows */
	int64_t give_up_at_ns; /* on processes that cannot be killed, or on the log writer */
	int64_t record_at_ns;
	int64_t settle_at_ns;	  /* SW_NEVER: it has settled */
	int64_t running_since_ns; /* for the time limit; SW_NEVER: it stands still */
	int64_t ran_ns;		  /* before that */
	int64_t stands_since_ns;  /* 0: it does not */
};

#endif
