/* What happens to a cluster. The engine is a fold over these; time enters only as the moment of the
 * step that carries them. */
#ifndef SW_CORE_EVENT_H
#define SW_CORE_EVENT_H

#include <sharewell/policy.h>

#include "core/topology.h"

/* A job as it is asked for. */
struct sw_job_spec {
	uint32_t gpus, min_gpus, max_gpus;
	uint32_t tenant;
	uint32_t weight_milli;
	uint32_t compute_milli;	    /* 0 means a whole GPU */
	uint64_t gpu_memory_bytes;  /* per GPU; 0: unknown */
	uint64_t gpu_floor_bytes;   /* of these, what it keeps between iterations; 0: unknown */
	uint64_t host_memory_bytes; /* per GPU; 0: the placement rule's default */
	uint32_t cpus;		    /* per GPU; 0: the placement rule's default */
	uint32_t model;
	uint16_t skew_milli;
	uint16_t use_milli; /* of the compute of each GPU, alone; at most 1000; 0: unknown */
	uint16_t retries;
	uint8_t job_class; /* enum sw_job_class */
	uint8_t knowledge; /* enum sw_knowledge */
	bool is_auto;	   /* guaranteed, but rather opportunistic than waiting */
	bool held;	   /* from the start */
	bool cannot_pause; /* nothing would hold it */
	/* Its processes may stand still where it ran. When it starts again it takes exactly those
	 * GPUs if they are free. A run that was told to stop may still finish or fail. */
	bool prefers_home;
	uint8_t stop_rule; /* enum sw_stop_rule */
	/* once a run of it is over, so is the job; what would lose its run is not done to it */
	bool no_restart;
	sw_ns work_ns;	   /* run time alone on `gpus`; only where knowledge says so */
	sw_ns deadline_at; /* SW_TIME_NEVER: none */
};

enum sw_event_kind {
	SW_EV_SUBMIT = 1, /* spec; the job gets the next id */
	/* job, epoch: the run ended well; of a job that prefers its home, maybe
	 * after it was told to stop */
	SW_EV_FINISH,
	/* job, epoch: the run ended badly; what follows is the verdict's. left_ns: work
	 * left after what was lost */
	SW_EV_FAIL,
	SW_EV_CANCEL, /* job */
	/* job: it stops if it runs, and does not compete until it is released. One that may not
	 * start anew, and whose run is lost by it, has failed */
	SW_EV_HOLD,
	SW_EV_RELEASE,	  /* job */
	SW_EV_NODE_DOWN,  /* node: its jobs stop and wait again, at no cost to their retries */
	SW_EV_NODE_ADD,	  /* shape: one more node, up; it gets the next id. Its rack is the last one or the next */
	SW_EV_NODE_UP,	  /* node: its power is on, whatever was commanded */
	SW_EV_PROGRESS,	  /* job, epoch: left_ns of work at as_of, and ends_at if it goes on like this */
	SW_EV_QUOTA,	  /* tenant, gpus: UINT32_MAX lifts it */
	SW_EV_NODE_CLOSE, /* node: it takes no jobs any more; those that run on it stay and are not preempted */
	SW_EV_NODE_OPEN,  /* node */
	/* job that neither runs nor has a home: gpu_memory_bytes from now on, and the node it keeps
	 * off. What would leave it without a place is not done */
	SW_EV_CHANGE,
	/* job, epoch: speed_milli is how fast the run was measured to be, against alone in a good
	 * place; 0: not known any more */
	SW_EV_SPEED,
	/* job, epoch, mask: it goes on there, on as many other GPUs of the one node that it
	 * has, in the same run. Where sw_engine_move_obstacle() says no, or others hold
	 * them, nothing is done. */
	SW_EV_MOVE,
	/* node, change: it has other GPUs than it had, and is up. Jobs on those that are gone stop
	 * and wait again, as where a node goes down. The others go on. With less of anything beside
	 * its GPUs than before, all of them stop */
	SW_EV_NODE_CHANGE,
	/* node, mask: these GPUs of it, and no others, take no jobs; those that run on them
	 * stay and are not preempted */
	SW_EV_GPUS_SHUT,
	SW_EV_HOLD_NEXT, /* job: as SW_EV_HOLD, but a run goes on; the job is held once that is over */
	/* job, epoch, gpus: 1, after a stop the run would go on where it was; 0: it would not.
	 * `frees`: its GPU memory leaves the GPUs meanwhile. */
	SW_EV_KEEPS,
	/* job, epoch, where: it was suspended, and its GPU memory is on its GPUs still. Jobs that
	 * came to them on that node since then, and do not fit beside it, wait again. But where one
	 * of them has begun that may not be stopped, they all stay. Unless it is held, it goes on
	 * where its GPUs are free. One of SW_STOP_IF_FREE is not stopped again. */
	SW_EV_STAY,
	SW_EV_BEGUN, /* job, epoch: a process of the run has begun */
	SW_EV_MOVED, /* job, epoch: it is on the GPUs to which it was sent, and has left the others */
	/* job, epoch, mask: it could not leave the GPUs that it had. It has them again, also those
	 * that are shut since; jobs that were given them in the meantime wait again. If it cannot,
	 * or one of them is dead, it begins anew on those to which it was sent. mask: those of its
	 * node that are dead. A job that may not start anew has failed. */
	SW_EV_UNMOVED,
	SW_EV_ANEW,   /* job, epoch: its run is over, and the next one begins on the same GPUs */
	SW_EV_SAMPLE, /* job, epoch, sample: what was measured of the run */
	/* reply: to a question of the policy. One that is not open, or not this one, is dropped;
	 * so is a reply that makes no sense */
	SW_EV_ANSWER,
	/* job: the run that it has, running or suspended, is over and nothing of it is kept. It
	 * waits again, or is held as it was; one that may not start anew has failed */
	SW_EV_REQUEUE,
};

/* What a failed run means for the job. */
enum sw_fail_verdict {
	SW_FAIL_BY_RETRIES = 0, /* it waits again while it has retries, and then has one less */
	SW_FAIL_FREE,		/* it waits again and keeps its retries */
	SW_FAIL_FINAL,		/* it has failed */
};

/* What a solver found. */
struct sw_reply {
	uint64_t number; /* of the question */
	uint64_t print;	 /* its fingerprint, as the engine gave it */
	uint8_t status;	 /* enum sw_solved */
	const void *bytes;
	size_t size;
};

struct sw_event {
	enum sw_event_kind kind;
	union {
		struct sw_job_id job;
		struct sw_node_id node;
		uint32_t tenant;
	};
	uint32_t epoch; /* of the run this is about: a late answer about an earlier run is dropped */
	uint32_t gpus;
	uint32_t avoid;	 /* the node it keeps off; UINT32_MAX: none */
	uint8_t verdict; /* enum sw_fail_verdict */
	bool frees;
	uint32_t where; /* of a stay: the node on which the memory could not leave */
	uint32_t speed_milli;
	uint64_t gpu_memory_bytes;
	uint64_t mask;
	sw_ns left_ns;
	sw_ns as_of;
	sw_ns ends_at;
	const struct sw_job_spec *spec;
	const struct sw_topology_node *shape;
	const struct sw_topology_change *change;
	const struct sw_sample *sample;
	const struct sw_reply *reply;
};

enum sw_command_kind {
	/* job, epoch, parts: run it there; `resume` tells whether state was kept, `goes_on`
	 * that its run stands there */
	SW_CMD_START = 1,
	SW_CMD_STOP, /* job, epoch: suspend it, or stop it if the world cannot */
	/* job, epoch, parts: the run that it is goes there. In a world of SW_MOVES_FREELY that may
	 * be anywhere, on another number of GPUs; else it is on its node, `mask`. SW_REASON_MOVED:
	 * an event said so; SW_REASON_BOUNCED: it never left these. */
	SW_CMD_MOVE,
	SW_CMD_LIMIT,  /* job, epoch: memory, compute or class of its share changed, or it was paused or goes on */
	SW_CMD_KILL,   /* job, epoch: end it for good */
	SW_CMD_REFUSE, /* job: it could never run; why */
	SW_CMD_ADMIT,  /* job, text: it was accepted on other terms than it asked for */
	SW_CMD_ASK,    /* no job: the policy asks; sw_engine_next_question() has what is open */
	/* node, no job: no job is there, and none comes before SW_EV_NODE_UP. Only in a world in
	 * which nodes are switched */
	SW_CMD_NODE_OFF,
	SW_CMD_NODE_ON, /* node, no job: SW_EV_NODE_UP follows once it is up */
};

/* Why a job stopped or was refused. */
enum sw_reason {
	SW_REASON_NONE = 0,
	SW_REASON_PREEMPTED,
	SW_REASON_NODE_LOST,
	SW_REASON_CANCELLED,
	SW_REASON_HELD,
	SW_REASON_TOO_LARGE,	 /* more GPUs than the cluster has */
	SW_REASON_NO_SUCH_PLACE, /* the placement rule finds no place even on the empty cluster */
	SW_REASON_BAD_SPEC,
	SW_REASON_MOVED,	/* of a stop: the start of its next run follows, elsewhere or with another size */
	SW_REASON_NOT_ADMITTED, /* the policy does not want it: text */
	SW_REASON_REQUEUED,	/* of a stop: nothing of the run is kept, since it was wished so */
	SW_REASON_BOUNCED,	/* of a stop: another job could not leave these GPUs; this one had not begun there */
};

struct sw_command {
	uint8_t kind;	/* enum sw_command_kind */
	uint8_t reason; /* enum sw_reason */
	bool resume;
	bool goes_on; /* of a start: the run that stands there, under its epoch */
	bool stands;  /* of a stop: the run keeps its host memory, stands where it is and goes on there */
	uint32_t job;
	uint32_t epoch;
	uint32_t gpus;
	uint32_t parts;		 /* in the engine's ledger, valid until the job moves or stops */
	uint32_t node;		 /* of a command for a node */
	uint64_t mask;		 /* of its one node */
	struct sw_config config; /* of a start or a move: that of the run from now on */
	const char *text;	 /* of the policy, valid until the next step; NULL: none */
};

#endif
