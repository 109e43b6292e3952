/* The policy SDK: everything that a scheduling policy or a placement rule may know and do.
 *
 * A policy is one constant `struct sw_policy`; only `name`, `about` and one of `decide` or `order`
 * are mandatory. The core owns all memory, the clock and the ledger. A policy reads a view and
 * writes wishes into a plan; the plan answers each wish at once. It keeps no globals, allocates
 * nothing, reads no clock, does no I/O and starts no threads; randomness comes from
 * sw_view_random() alone. Then the same file runs live, in the simulator and over the journal, and
 * the same seed gives the same decisions.
 *
 * The shortest useful policy is an order (see src/policy/srtf.c). It says which job is ahead. The
 * core keeps the order, finds in time that does not grow with the queue which jobs may run, and
 * preempts the others. A policy with other ideas writes `decide` (see src/policy/chaos.c for every
 * verb). docs/write-a-policy.md builds one outside this tree.
 *
 * Units: time in nanoseconds, memory in bytes, compute in thousandths of a GPU. All orders are
 * total: the job id breaks the last tie.
 */
#ifndef SHAREWELL_POLICY_H
#define SHAREWELL_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sharewell/job_class.h>
#include <sharewell/solve.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised when a struct below changes its layout; a shared object built for
 * another number is refused. */
#define SW_POLICY_ABI 13

typedef int64_t sw_ns;
#define SW_TIME_NEVER INT64_MAX

struct sw_job_id {
	uint32_t v;
};
struct sw_node_id {
	uint32_t v;
};
#define SW_NO_NODE ((struct sw_node_id){UINT32_MAX})

struct sw_view; /* what is: the cluster and its jobs at one instant */
struct sw_plan; /* what shall be: wishes, checked one by one */
struct sw_spot; /* a place for one job, as a placement rule builds it */
struct sw_wish; /* how a job shall run */

/* ---- jobs */

enum sw_job_state {
	SW_JOB_WAITING = 0, /* has not run, or must start anew */
	SW_JOB_SUSPENDED,   /* waits too; its state is kept and can be resumed */
	SW_JOB_HELD,	    /* does not compete: a user holds it back, or what it depends on has not ended */
	SW_JOB_RUNNING,
	SW_JOB_FINISHED,
	SW_JOB_FAILED, /* used up its retries */
	SW_JOB_CANCELLED,
	SW_JOB_REFUSED, /* could never run here */
};

/* How the remaining work of a job is known. */
enum sw_knowledge {
	SW_UNKNOWN = 0,
	SW_PREDICTED, /* from history or a profile */
	SW_KNOWN,     /* from a trace */
};

/* What its owner allows to be done to a job that runs. The plan holds to it,
 * whatever a policy wishes. */
enum sw_stop_rule {
	SW_STOP_AS_WORLD = 0, /* nothing is said: what a stop keeps is the world's affair */
	SW_STOP_SUSPEND,      /* only so that it goes on where it was: see sw_job_may_stop() */
	SW_STOP_RESTART,      /* it may be stopped and start anew */
	SW_STOP_NEVER,	      /* it runs until it ends, and so never opportunistically */
	/* as SW_STOP_SUSPEND once it is known that a stop leaves its GPUs to
	 * others; else as SW_STOP_NEVER */
	SW_STOP_IF_FREE,
};

/* Read-only to policies. */
struct sw_job {
	struct sw_job_id id; /* in submit order: a smaller id was submitted earlier */
	uint32_t gpus;	     /* asked for */
	uint32_t min_gpus;   /* an elastic job runs on any number from min to max */
	uint32_t max_gpus;
	uint32_t gpus_held; /* 0 unless running */
	uint32_t tenant;
	uint32_t weight_milli;	    /* 1000 is the ordinary job */
	uint32_t compute_milli;	    /* of each of its GPUs; 1000 unless it agreed to share; 0: see SW_REST */
	uint64_t gpu_memory_bytes;  /* on each of its GPUs; 0: unknown, so it takes the whole GPU */
	uint64_t gpu_floor_bytes;   /* of these, what it keeps between iterations; 0: unknown. Read it through sw_job_floor() */
	uint64_t host_memory_bytes; /* per GPU; 0: the placement rule's default */
	uint32_t cpus;		    /* per GPU; 0: the placement rule's default */
	uint32_t model;		    /* number of its model's profile; 0: none */
	uint16_t skew_milli;	    /* largest tensor over model size, thousandths; 0: unknown */
	uint8_t state;		    /* enum sw_job_state */
	uint8_t job_class;	    /* enum sw_job_class */
	uint8_t knowledge;	    /* enum sw_knowledge, of the remaining work */
	uint8_t fresh;		    /* in an order: it arrived, or was put last, since the last decision */
	uint16_t retries_left;
	/* what it uses of each GPU's compute when alone, by its profile; 0: unknown, taken
	 * as half of compute_milli */
	uint16_t use_milli;
	uint8_t asked_class; /* enum sw_job_class; job_class may be another for one run */
	bool is_auto;	     /* a guaranteed job that would rather run as an opportunistic one than wait */
	bool paused;	     /* runs, and stands still: see SW_PAUSE */
	bool cannot_pause;   /* nothing would hold it */
	uint8_t stop_rule;   /* enum sw_stop_rule */
	bool no_restart;     /* once a run of it is over, so is the job */
	bool frees_gpus;     /* while it is suspended where it ran, its GPU memory is elsewhere */
	sw_ns submit_at;
	sw_ns deadline_at;    /* SW_TIME_NEVER: none */
	sw_ns first_start_at; /* SW_TIME_NEVER: has not run yet */
	sw_ns since;	      /* when the present state began */
	sw_ns until;	      /* when the lease of its run ends, or ended; SW_TIME_NEVER: it has none */
	uint32_t preemptions;
	uint32_t migrations;
	uint32_t restarts;   /* after failures */
	uint32_t promotions; /* counted by policies through sw_count_promotion() */
};

/* Time on GPUs so far, without that in which it was paused. The second is the same times the GPUs
 * held, in GPU-nanoseconds. It stops at INT64_MAX, which is 292 GPU-years. */
sw_ns sw_job_ran(const struct sw_view *view, const struct sw_job *job);
sw_ns sw_job_gpu_time(const struct sw_view *view, const struct sw_job *job);
/* Work left: the time it would still run alone on the GPUs that it asked for, in a good place.
 * SW_TIME_NEVER where it is not known. */
sw_ns sw_job_remaining(const struct sw_view *view, const struct sw_job *job);
/* How fast a running job gets on where it is now, in thousandths of what sw_job_remaining() counts
 * by. Its world measures it, and a start or a copy that is under way counts too. Live it is the
 * time of its iterations alone against that now, by the GPU runtime. 0: it is not measured, or not
 * yet since others came to its GPUs or left. */
uint32_t sw_job_speed_milli(const struct sw_view *view, const struct sw_job *job);

/* What a stop leaves of a job's run. */
enum sw_keeping {
	SW_KEEPS_NOTHING = 0, /* it starts anew, or from a checkpoint of its own */
	SW_KEEPS_IN_PLACE,    /* it goes on if it gets exactly the GPUs back that it had; elsewhere it starts anew */
	SW_KEEPS_ANYWHERE,
};
enum sw_keeping sw_job_keeps(const struct sw_view *view, const struct sw_job *job);
/* Whether a plan may stop this running job. False where its owner allows no restart and the job
 * would not go on where it was, or that is not known yet. Its quantum is another matter. */
bool sw_job_may_stop(const struct sw_view *view, const struct sw_job *job);
/* The same, and the other job would have room on the GPUs of this one then. That is room beside its
 * memory, where that stays there while it is suspended. A job whose run is suspended fits only on
 * the GPUs of that run. */
bool sw_job_makes_room(const struct sw_view *view, const struct sw_job *job, const struct sw_job *other);
/* The nodes of a running job, and of a waiting one that stands where it ran those nodes. It gives
 * the `index`-th, with its GPUs there (ret_gpus may be NULL). SW_NO_NODE: there are no more. */
struct sw_node_id sw_job_node(const struct sw_view *view, const struct sw_job *job, uint32_t index, uint32_t *ret_gpus);
/* Whether two jobs have a GPU in common, each where it runs or stands. */
bool sw_jobs_meet(const struct sw_view *view, const struct sw_job *a, const struct sw_job *b);
/* The policy's own bytes for this job (job_state_size of them, zeroed at submit and once the
 * job has ended), or NULL. Plain values only, no pointers: a controller that starts anew goes
 * on with a copy of them. */
void *sw_job_state(struct sw_view *view, const struct sw_job *job);

/* What it keeps on each of its GPUs between iterations: all of its memory where no more is
 * known; 0: the whole GPU. */
static inline uint64_t sw_job_floor(const struct sw_job *job)
{
	return job->gpu_floor_bytes == 0 || job->gpu_floor_bytes > job->gpu_memory_bytes ? job->gpu_memory_bytes : job->gpu_floor_bytes;
}

static inline bool sw_job_is_waiting(const struct sw_job *job)
{
	return job->state == SW_JOB_WAITING || job->state == SW_JOB_SUSPENDED;
}

/* ---- the view */

sw_ns sw_view_now(const struct sw_view *view);
/* A running job may not be preempted before it ran this long; 0: at any moment. Where preemption
 * costs something, one that was preempted often is protected longer. */
sw_ns sw_view_quantum(const struct sw_view *view);
uint32_t sw_view_gpus(const struct sw_view *view); /* on nodes that are up */
/* Held by no job, and not kept for one by now: see sw_plan_hold(). */
uint32_t sw_view_gpus_free(const struct sw_view *view);
/* Those that are free for this job without a lease: on which it fits beside runs that are suspended
 * there. Those that are kept for it count, and those that will be kept for others do not. Of a job
 * whose own run is suspended, those on which it is. */
uint32_t sw_view_gpus_free_for(const struct sw_view *view, const struct sw_job *job);

/* What has happened since the last decision, while one is made: a set of these. What a decision
 * itself does counts for the next one. */
enum sw_view_change {
	SW_CHANGE_ARRIVALS = 1,	    /* jobs came, or are not held back any more */
	SW_CHANGE_STOPS = 2,	    /* runs stopped, whose jobs wait again */
	SW_CHANGE_RELEASES = 4,	    /* jobs ended, are held back, or hold less where they are suspended */
	SW_CHANGE_CAPACITY = 8,	    /* there are not as many GPUs, or free ones, as the last decision left */
	SW_CHANGE_QUOTAS = 16,	    /* a tenant's quota was set */
	SW_CHANGE_SPEEDS = 32,	    /* progress or a speed was measured */
	SW_CHANGE_ALARMS = 64,	    /* alarms rang */
	SW_CHANGE_PROTECTION = 128, /* the last decision was answered SW_TOO_SOON: that may be over */
	SW_CHANGE_LEASES = 512,	    /* leases ended */
	SW_CHANGE_HOLDS = 1024,	    /* holds came into force, or ended without a start */
	SW_CHANGE_LOSSES = 256,	    /* and some of those stopped by a failure, or by the loss of GPUs */
	SW_CHANGE_ANSWERS = 2048,   /* solvers answered */
	SW_CHANGE_ALL = 4095,	    /* after a change of policy, or of the world */
	/* A job that found no place may find one now. */
	SW_CHANGE_ROOM = SW_CHANGE_RELEASES | SW_CHANGE_CAPACITY,
};
uint32_t sw_view_changes(const struct sw_view *view);

uint32_t sw_view_waiting(const struct sw_view *view); /* how many jobs wait */
uint32_t sw_view_running(const struct sw_view *view);
const struct sw_job *sw_view_job(const struct sw_view *view, struct sw_job_id id);
/* Jobs in submit order; NULL ends the walk. Walking costs what it looks at: prefer an order where
 * the queue may be long. */
const struct sw_job *sw_view_next_waiting(const struct sw_view *view, const struct sw_job *after);
const struct sw_job *sw_view_next_running(const struct sw_view *view, const struct sw_job *after);
/* Tenants have numbers from 0 up to this. */
uint32_t sw_view_tenants(const struct sw_view *view);
/* GPUs that a tenant's guaranteed runs hold, those that its opportunistic runs hold, and its quota,
 * of the former (UINT32_MAX: none). */
uint32_t sw_view_tenant_held(const struct sw_view *view, uint32_t tenant);
uint32_t sw_view_tenant_borrowed(const struct sw_view *view, uint32_t tenant);
uint32_t sw_view_tenant_quota(const struct sw_view *view, uint32_t tenant);
/* Uniform in [0, bound), from the engine's seeded generator. */
uint64_t sw_view_random(struct sw_view *view, uint64_t bound);
/* The policy's own bytes (state_size of them, zeroed before `start`); plain values
 * only, like those of a job. */
void *sw_view_state(struct sw_view *view);
/* The policy in charge: for callbacks that serve several. */
struct sw_policy;
const struct sw_policy *sw_view_policy(const struct sw_view *view);
/* Value of the policy's parameter by its place in `params`. */
const struct sw_value *sw_view_param(const struct sw_view *view, size_t index);

/* ---- nodes */

enum sw_power {
	SW_POWER_ON = 0,  /* also of a node that is down by a failure */
	SW_POWER_OFF,	  /* by sw_plan_node() */
	SW_POWER_BOOTING, /* it was switched on, and is not up yet */
};

struct sw_node {
	struct sw_node_id id;
	uint32_t rack;
	uint32_t gpus;
	uint32_t gpus_free; /* held by no job, and kept for none */
	uint32_t cpus;
	uint32_t cpus_free;
	uint64_t memory_bytes;
	uint64_t memory_free_bytes;
	uint64_t gpu_memory_bytes; /* of each GPU */
	uint32_t gpu_type;
	uint8_t power; /* enum sw_power */
	bool up;
	bool open; /* up, and takes jobs */
};

uint32_t sw_view_nodes(const struct sw_view *view);
void sw_view_node(const struct sw_view *view, struct sw_node_id id, struct sw_node *ret_node);
/* The policy's own bytes for this node (node_state_size of them, zeroed when it joins), or NULL;
 * plain values only, like those of a job. */
void *sw_node_state(struct sw_view *view, struct sw_node_id node);
/* Racks are runs of nodes: rack r holds nodes [first, end). */
uint32_t sw_view_racks(const struct sw_view *view);
void sw_view_rack(const struct sw_view *view, uint32_t rack, struct sw_node_id *ret_first, struct sw_node_id *ret_end);
uint32_t sw_view_node_gpus_max(const struct sw_view *view);			/* GPUs of the largest node */
uint32_t sw_view_node_gpus_min(const struct sw_view *view);			/* of the smallest that has any; 0: none has */
uint32_t sw_view_rack_node_gpus_max(const struct sw_view *view, uint32_t rack); /* of the largest of one rack */
/* The first node in [from, end) that is up and has at least `free` GPUs held by no job, in index
 * order; SW_NO_NODE: none. */
struct sw_node_id sw_nodes_first(const struct sw_view *view, uint32_t free, struct sw_node_id from, struct sw_node_id end);
/* The same, but the tightest fit: fewest free GPUs that are enough; index order breaks ties. */
struct sw_node_id sw_nodes_tightest(const struct sw_view *view, uint32_t free, struct sw_node_id from, struct sw_node_id end);

/* Some GPUs of one node, as a mask. */
struct sw_gpus {
	struct sw_node_id node;
	uint64_t mask;
};

/* What a GPU of a node has left for one more: its memory that is free. Also 0 where the node is not
 * open, the GPU is kept for a job by now, or a resident holds all of it. */
uint64_t sw_gpu_memory_free(const struct sw_view *view, struct sw_node_id node, uint32_t gpu);
/* Which jobs run on it, in id order: the `index`-th. NULL: there are no more. */
const struct sw_job *sw_gpu_resident(const struct sw_view *view, struct sw_node_id node, uint32_t gpu, uint32_t index);

/* GPUs for an opportunistic run of this job beside the jobs there. Idle GPUs come first, in index
 * order. Then come the least used, by what is known of their residents, in steps of a 32nd and by
 * index within a step. Left out are GPUs of which `below_milli` or more is used, or that have no
 * room for its memory. Of a job whose run stands where it was, the GPUs that it had, if they are
 * used so little. Returns how many nodes it filled in; 0: there are not enough, or they are on more
 * than `max` nodes. */
size_t sw_gpus_least_used(const struct sw_view *view, const struct sw_job *job, uint32_t below_milli, struct sw_gpus *ret_where,
			  size_t max);

/* ---- types of GPUs */

struct sw_gpu_type {
	const char *name;
	/* of the reference type, on which jobs run for as long as sw_job_remaining() says; for
	 * models of which no more is known. Where nothing is known of a type it is 1000 */
	uint32_t speed_milli;
	uint32_t idle_watts, busy_watts; /* of each GPU; this and the next 0: unknown */
	uint32_t node_watts;		 /* of a node, without its GPUs */
};

/* How many types are known, by number from 0: those of struct sw_node. */
uint32_t sw_view_gpu_types(const struct sw_view *view);
/* False: it is not known, and has no name. */
bool sw_view_gpu_type(const struct sw_view *view, uint32_t gpu_type, struct sw_gpu_type *ret_type);
/* How fast GPUs of this type are for the job, in thousandths of the reference type. */
uint32_t sw_job_type_speed_milli(const struct sw_view *view, const struct sw_job *job, uint32_t gpu_type);

/* ---- what would become of jobs */

/* The speeds of up to SW_RESIDENTS_MAX jobs on one GPU, wherever they are now, each in its present
 * class. It is for jobs that are not together yet, which sw_predict_run() cannot ask about. False:
 * not all are known, and each of n is taken to run at 1/n; with more than SW_RESIDENTS_MAX, too. */
#define SW_RESIDENTS_MAX 8u
bool sw_predict_together(const struct sw_view *view, const struct sw_job *const *jobs, size_t count, uint32_t *ret_speed_milli);

/* What would become of a job by a wish, and of those beside it. Speeds of jobs that share a GPU are
 * in thousandths of what each does alone there; of several GPUs the worst counts. */
struct sw_run_forecast {
	/* The job's own, in thousandths of what sw_job_remaining() counts by. It goes by the type
	 * of its GPUs (of several types the slowest), their number, how far apart they are, its
	 * CPUs and its neighbours. A start or a copy comes on top. */
	uint32_t speed_milli;
	uint32_t share_milli;  /* of that, what its neighbours leave it */
	uint32_t worst_milli;  /* the slowest of these; 1000: it is alone */
	uint32_t worth_milli;  /* what all of them do together: above 1000, more than one after the other */
	uint32_t before_milli; /* the same without the job: 1000 where one is there, 0 where none is */
	uint32_t gpus;
	uint32_t power_watts;	   /* of its GPUs when they are busy; 0: unknown */
	uint64_t gpu_memory_bytes; /* on each of its GPUs; of a split job the largest part. 0: all of it */
	/* There is room for it now, but for quotas. Else the rest is true where it was asked to go.
	 * Where those are no certain GPUs, it is in the best place of the node or the cluster. */
	bool fits;
	/* All of them have profiles, and what drives the core predicts. Else each of n is taken to
	 * run at 1/n: no gain; and the job as if its place did not matter. */
	bool known;
};

/* The one prediction: of a job that waits or runs. It looks for a place as sw_plan_run() would, but
 * preempts no job and asks for no quota and no leave to stop. A running job is asked about as if it
 * had left its GPUs; beside others, as if it stayed on them too. The zero wish is about where it
 * is. False, and nothing is written: there is no such wish, it goes beside a job that does not run,
 * or a placement rule asks.
 *
 * Jobs of one model (sw_job.model) and class are alike, so a decision need ask only once for each
 * combination. Beside a job and on exact GPUs an answer costs tens of nanoseconds; elsewhere as
 * much as a wish. A live cluster learns: a later decision may be told otherwise. */
bool sw_predict_run(const struct sw_view *view, const struct sw_job *job, const struct sw_wish *wish, struct sw_run_forecast *ret_forecast);

/* ---- splitting: one job of one GPU over the parts of several that others leave */

#define SW_SPLIT_PARTS_MAX 8u

/* A GPU as a splitter sees it. */
struct sw_split_device {
	struct sw_node_id node;
	uint32_t gpu;
	uint32_t speed_milli;  /* at which the job would get on there beside the residents; 1000: as if alone */
	uint64_t memory_bytes; /* that a part may take */
};

struct sw_split_part {
	struct sw_node_id node;
	uint32_t gpu;
	uint64_t memory_bytes;
};

/* A way to split a job; step times in thousandths of that of the job whole and alone. */
struct sw_split {
	struct sw_split_part parts[SW_SPLIT_PARTS_MAX];
	uint32_t count;	      /* of parts: two at least, on different GPUs */
	uint32_t step_milli;  /* at the speeds of the devices */
	uint32_t alone_milli; /* if no others were there */
};

/* How this job could be split over some of these GPUs, as the splitter of this cluster says. False:
 * it cannot, or nothing is split here. */
bool sw_view_split(const struct sw_view *view, const struct sw_job *job, const struct sw_split_device *devices, size_t count,
		   struct sw_split *ret_split);
/* The alone_milli of a job that runs split; 0: it does not. */
uint32_t sw_job_split_milli(const struct sw_view *view, const struct sw_job *job);

/* Builds a spot: `gpus` whole free GPUs of `node` (neighbours on one link group first), with CPUs
 * and host memory beside them. False when they are not there or the node is in the spot already:
 * the rule then gives up or adds another node. */
bool sw_spot_add(struct sw_spot *spot, struct sw_node_id node, uint32_t gpus, uint32_t cpus, uint64_t memory_bytes);
uint32_t sw_spot_gpus(const struct sw_spot *spot); /* gathered so far */
void sw_spot_clear(struct sw_spot *spot);	   /* starts over */
/* Adds any free GPUs until the spot holds `gpus`: the tightest node that has enough,
 * else nodes in index order. Takes no CPUs and no host memory. False when the cluster
 * has not that many that suit. */
bool sw_spot_fill(const struct sw_view *view, struct sw_spot *spot, uint32_t gpus);

/* Where a job goes once it is chosen. `place` adds nodes to the spot until it holds `gpus` and
 * returns true, or returns false. One shared constant struct per rule; rules have no state. */
struct sw_placement {
	uint32_t abi; /* SW_POLICY_ABI */
	/* True: a job fits whenever enough GPUs are free anywhere; the core then need
	 * not ask while it chooses. */
	bool counts_only;
	const char *name;
	const char *about; /* one line for --help */
	/* Jobs that ask for the same and are of one kind are alike to this rule: where one finds no
	 * place, neither does the other. NULL: all are. */
	uint32_t (*kind)(const struct sw_view *view, const struct sw_job *job);
	bool (*place)(const struct sw_view *view, const struct sw_job *job, uint32_t gpus, struct sw_spot *spot);
};

/* ---- the plan */

enum sw_answer {
	SW_YES = 0,
	SW_NO_ROOM,    /* not enough free, or not where the placement rule wants it */
	SW_TOO_SOON,   /* the job is still protected: see sw_view_quantum() */
	SW_OVER_QUOTA, /* the tenant's guaranteed jobs hold all they may */
	/* its owner allows no stop, or not this one: it runs on. Or it may not be stopped, and so
	 * does not run opportunistically. Or nodes are not switched off and on here */
	SW_KEPT,
	/* makes no sense (starting a running job, too many GPUs); counted, and past a limit the
	 * policy is replaced by fifo */
	SW_MISUSE,
};

/* Where a job goes. The zero value: where the cluster's placement rule says, and where the order
 * says that this is a wish only, anywhere. The functions below make the others. */
enum sw_where_kind {
	SW_WHERE_CLUSTER = 0,
	SW_WHERE_RULE,
	SW_WHERE_NODE,
	SW_WHERE_GPUS,
	SW_WHERE_BESIDE,
	SW_WHERE_PARTS,
};

struct sw_where {
	uint32_t kind; /* enum sw_where_kind */
	struct sw_node_id node;
	size_t count; /* of `gpus` */
	union {
		const struct sw_placement *rule;
		const struct sw_gpus *gpus;
		const struct sw_job *beside;
		const struct sw_split *parts;
	};
};

/* In what class it runs, for this run. */
enum sw_as {
	SW_AS_ASKED = 0,
	SW_AS_GUARANTEED,
	SW_AS_OPPORTUNISTIC, /* waits neither for its quota nor for a place that is all its own */
};

/* What it is promised of the compute of its GPUs. */
enum sw_promise {
	/* What it asked for; guaranteed jobs' compute adds up to at most a whole GPU. */
	SW_SHARE = 0,
	/* What others leave it: its compute counts as 0 until this run ends or is limited. It must
	 * say how much memory it needs. */
	SW_REST,
};

/* Which jobs are preempted for it where there is no room otherwise. */
enum sw_evict {
	SW_EVICT_NONE = 0,
	/* Opportunistic ones, for a job that asked to be guaranteed. It is placed as if
	 * they held nothing: those stay beside it that can, and the youngest of those
	 * that cannot are preempted. */
	SW_EVICT_OPPORTUNISTIC,
	/* Those behind it in the policy's preemptive order, the last first, until there is
	 * room; those that were not in the way stay. An opportunistic job preempts
	 * opportunistic ones only. */
	SW_EVICT_BEHIND,
	/* The same, but guaranteed jobs that would keep nothing of their run are not preempted. */
	SW_EVICT_SPARING,
};

/* How a run is set up. Zero everywhere: as its job asked. */
struct sw_config {
	/* For the job itself, which is told them in its environment (docs/write-a-policy.md): what
	 * they do to its speed no world knows. */
	uint32_t batch; /* of each worker */
	uint32_t accumulation;
	uint32_t workers, servers;
	/* Per GPU; they count instead of what the job asked for. */
	uint32_t cpus;
	uint64_t host_memory_bytes;
};
#define SW_CONFIG_MOST (1u << 20) /* of accumulation, workers, servers */
#define SW_CONFIG_BATCH_MOST (1u << 30)
#define SW_CONFIG_CPUS_MOST (1u << 16)
#define SW_CONFIG_MEMORY_MOST (UINT64_C(1) << 43)

/* That of its run; of a job that waits, of the run that is suspended where it was, else zero. */
const struct sw_config *sw_job_config(const struct sw_view *view, const struct sw_job *job);

/* How a job shall run. The zero value is the ordinary start: on the GPUs and in the class
 * that it asked for, where the cluster's rule says. No job is disturbed by it. */
struct sw_wish {
	/* In min..max of an elastic job; 0: as asked, or as it has. Exact GPUs, `beside` and
	 * `parts` say it themselves. */
	uint32_t gpus;
	uint8_t as;	 /* enum sw_as */
	uint8_t promise; /* enum sw_promise */
	uint8_t evict;	 /* enum sw_evict */
	struct sw_where where;
	/* A lease: at this moment, which is to come, the policy hears `expired` and decides. From
	 * then on the run is protected by the quantum alone, however often it was preempted. It
	 * goes on until it is stopped. 0: none; of a running job: as it was. */
	sw_ns until;
	/* A member that is zero: as the job asked, or of a running job as it is. It holds for one
	 * run. CPUs and host memory count where the placement rule counts them. */
	struct sw_config config;
};

/* A wish in one expression: sw_plan_run(plan, job, SW_WISH(.gpus = 4)). It lasts as long as its
 * block. */
#define SW_WISH(...) (&(const struct sw_wish){__VA_ARGS__})

/* Where this rule says, one of the policy's own; NULL: the cluster's rule. */
static inline struct sw_where sw_by(const struct sw_placement *rule)
{
	struct sw_where where = {0};
	where.kind = SW_WHERE_RULE;
	where.rule = rule;
	return where;
}

/* On free GPUs of this node, whatever the placement rule says. Takes no CPUs and no host memory. */
static inline struct sw_where sw_on(struct sw_node_id node)
{
	struct sw_where where = {0};
	where.kind = SW_WHERE_NODE;
	where.node = node;
	return where;
}

/* On exactly these GPUs, of different nodes, beside the jobs that are there; without CPUs and
 * host memory. */
static inline struct sw_where sw_at(const struct sw_gpus *gpus, size_t count)
{
	struct sw_where where = {0};
	where.kind = SW_WHERE_GPUS;
	where.count = count;
	where.gpus = gpus;
	return where;
}

/* On the GPUs of a running job, beside it. Both must say how much memory they need. */
static inline struct sw_where sw_beside(const struct sw_job *job)
{
	struct sw_where where = {0};
	where.kind = SW_WHERE_BESIDE;
	where.beside = job;
	return where;
}

/* A job of one GPU in parts, beside the jobs that are there, with so much memory on each GPU;
 * only with SW_REST. It counts as holding all these GPUs, and stays there until it stops: it is
 * not moved, resized, limited or shared with. SW_NO_ROOM too where nothing is split. */
static inline struct sw_where sw_in_parts(const struct sw_split *split)
{
	struct sw_where where = {0};
	where.kind = SW_WHERE_PARTS;
	where.parts = split;
	return where;
}

/* Makes it so, at once and wholly, or not at all; NULL is the zero wish.
 *
 * A waiting job starts or resumes. One of another class than it asked for is what it asked to be
 * again when it stops. SW_TOO_SOON: some of the jobs that would have to be preempted are still
 * protected; there is a decision when the first is not.
 *
 * A paused job goes on with what it had; SW_NO_ROOM: others have taken it. The zero wish alone;
 * until it goes on, nothing else about it changes.
 *
 * A wish gives a running job another lease (`until`, also beside what follows). Or it moves the job
 * to where a rule (sw_by) or a node (sw_on) has another place for it now. Or it resizes it (`gpus`;
 * it may move), or sets it up anew (`config`; where it is, unless it moves too). It may do several
 * of these at once. SW_NO_ROOM: the job stays as it is. Live, one that keeps its node, its number
 * of GPUs and its configuration goes on where that can be (docs/gpu.md); others are stopped and
 * started. SW_KEPT: the owner of the job allows no such stop. An opportunistic one becomes a
 * guaranteed one for the rest of its run (SW_AS_GUARANTEED and nothing else but `evict`). It does
 * so in place where no guaranteed job holds the compute, else it moves to where it would start.
 *
 * A run that is suspended where it was goes on as it was set up: SW_KEPT, if the wish has another
 * configuration.
 *
 * SW_MISUSE: fields that contradict one another, or a wish for which there is nothing to do. The
 * first is, say, evicting for a job that is promised nothing, or from exact GPUs. */
enum sw_answer sw_plan_run(struct sw_plan *plan, const struct sw_job *job, const struct sw_wish *wish);

enum sw_how {
	/* It waits again. Whether its state is kept is the job's and the world's affair. SW_KEPT:
	 * its owner does not allow it. */
	SW_PREEMPT = 0,
	/* It stands still where it is, at the end of an iteration. It keeps its floor of the memory
	 * (sw_job_floor()). Other jobs get the rest, and all of the compute. Nothing is copied, so
	 * this costs the same whatever the job's size. Only for policies that say so (`pauses`),
	 * and not with a preemptive order. SW_NO_ROOM: it `cannot_pause`. */
	SW_PAUSE,
};

/* Stops a running job. */
enum sw_answer sw_plan_stop(struct sw_plan *plan, const struct sw_job *job, enum sw_how how);
/* Sets memory and compute of a job on each of its GPUs. Raising is refused
 * where others hold the rest. */
enum sw_answer sw_plan_limit(struct sw_plan *plan, const struct sw_job *job, uint64_t gpu_memory_bytes, uint32_t compute_milli);

/* GPUs that are kept for a job that waits. */
struct sw_hold {
	sw_ns from, to;
	uint32_t gpus;
};

/* Keeps whole GPUs free for a waiting job, until `to`: from now on, or from a moment to come. The
 * wish says which, by its `where` (a rule, a node, exact GPUs) and its `gpus`. These are at most
 * `max_gpus`, and may be fewer than `min_gpus`, for a gang that is not complete yet. NULL is the
 * zero wish; its other fields are zero. SW_TIME_NEVER: until the job starts.
 *
 * From now on (`from` is now or earlier): they are free now, and no other job starts there. From a
 * moment to come: until then others may start there with a lease that ends by then. It must be
 * certain that they may be stopped at its end, whatever becomes known of them. SW_NO_ROOM: there
 * are not so many such GPUs. For a moment to come, those of runs whose leases end by then count as
 * free, and finding them costs a pass over all runs.
 *
 * A job that starts on as many GPUs as are held for it by now, where the cluster's rule says,
 * starts on those. Runs whose leases are over make way for it. Else the held GPUs are among the
 * free ones for it alone. Its start ends the hold; so do a release, `to`, another hold of the job,
 * and the loss or closing of a node or GPU. Where the job waits on, `expired` tells of an end that
 * the policy did not bring about. A hold is none of its tenant's quota. It is gone when the job is
 * held back or changed by its user, or another policy takes over.
 *
 * `to` is 0: what is held for it is released. In one decision there are at most SW_HOLDS_AT_ONCE
 * new holds, on as many nodes together as the cluster has GPUs; SW_NO_ROOM for those beyond. */
#define SW_HOLDS_AT_ONCE 256u
enum sw_answer sw_plan_hold(struct sw_plan *plan, const struct sw_job *job, const struct sw_wish *wish, sw_ns from, sw_ns to);
/* What is held for a job; false: nothing is. */
bool sw_job_hold(const struct sw_view *view, const struct sw_job *job, struct sw_hold *ret_hold);

/* Switches a node off, or on again. Off: it takes no jobs at once. SW_NO_ROOM: it is not up and
 * open, or holds something. That is a run, one that is suspended there or was stopped by this
 * decision, or GPUs for a job. On: it is up a while later, which is SW_CHANGE_CAPACITY. Jobs that
 * need a node that is off wait for it. If another policy takes over, all nodes are switched on.
 * SW_KEPT: the world does not let nodes be switched, as no live cluster does yet. SW_MISUSE: it is
 * off, or not off, already. */
enum sw_answer sw_plan_node(struct sw_plan *plan, struct sw_node_id node, bool on);

/* Runs the greedy decision over the policy's order: in order, a job that fits runs. For preemptive
 * orders, a job that is behind and in the way is preempted. It is what a policy without `decide`
 * gets. */
void sw_plan_by_order(struct sw_plan *plan);
/* Asks a solver (<sharewell/solve.h> has the problems). It works beside the cluster and costs no
 * time of a decision. The answer comes later: `answered` is called once for each question that got
 * a number, in the order in which answers come. There is a decision then. The bytes are copied.
 * Questions stay open when the controller starts anew; another policy in charge ends them.
 *
 * SW_NO_ROOM: SW_QUESTIONS_MAX are open. SW_MISUSE: a kind that is not known, a limit of 0, more
 * bytes than the policy's `question_size`, or a policy without `answered`. */
#define SW_QUESTIONS_MAX 8u
enum sw_answer sw_plan_ask(struct sw_plan *plan, const struct sw_question *question, uint64_t *ret_number);
/* Asks for another decision once this one is carried out, at the next nanosecond. */
void sw_plan_again(struct sw_plan *plan);
/* The policy's memory for one decision (scratch_size bytes, zeroed before it), or NULL. */
void *sw_plan_scratch(struct sw_plan *plan);
struct sw_view *sw_plan_view(struct sw_plan *plan);

/* ---- orders and alarms */

/* Among jobs with equal keys, which is ahead. */
enum sw_ties {
	SW_TIES_BY_ARRIVAL = 0, /* the job id, always */
	/* as a stable sort of one list by a key that falls while a job runs: one that ran was
	 * behind, and stays behind */
	SW_TIES_WAITING_FIRST,
	SW_TIES_RUNNING_FIRST, /* running jobs by the time they started, then waiting ones, then new ones: least churn */
};

/* How the core orders jobs for the policy: ascending by the policy's `key`. */
struct sw_order {
	bool preemptive;	/* running jobs compete again at every decision */
	bool head_blocks;	/* no job overtakes the first one that does not fit; orders without preemption only */
	bool key_counts_down;	/* the key of a running job falls by one each nanosecond (remaining time does) */
	bool key_times_gpus;	/* keys compare after multiplication by the job's GPUs */
	bool placement_is_wish; /* choose by count of free GPUs; take the placement rule's spot if there is one, else any */
	bool by_class;		/* jobs of different classes are never alike */
	enum sw_ties ties;
};

/* Another order than the policy's own, for policies whose parameters decide it; only in `start`. */
void sw_order_use(struct sw_view *view, const struct sw_order *order);
/* Asks `key` again for this job; it goes last among equals. Not for jobs that the present plan has
 * touched. The core itself asks at submit, start, stop and when the world reports progress. */
void sw_order_rekey(struct sw_view *view, const struct sw_job *job);

/* Walks the waiting jobs in the policy's order. The first call in a decision gives the first, each
 * other call the one after it. NULL ends the walk. With `skip_alike`, jobs that ask for the same as
 * the one given last are not given any more. What found no place for one finds none for them. The
 * same are GPUs, kind, CPUs, class if the order is by_class, and tenant where there are quotas. A
 * job for which an earlier decision held GPUs is like no other. Costs what it gives, not the length
 * of the queue. After sw_plan_by_order(): those that it left waiting; not before it. */
const struct sw_job *sw_order_next(struct sw_plan *plan, bool skip_alike);
/* The same walk over those alone that are `fresh`, for decisions in which no other can find a
 * place. A job that is not fresh costs nothing. In one decision, one walk or the other. */
const struct sw_job *sw_order_next_fresh(struct sw_plan *plan);

/* One alarm per job. `alarm` is called for it in the first decision at or after `due`, and there is
 * one at `due + slack` at the latest. Alarms due in the same decision ring in id order. A new alarm
 * replaces the old; a job that starts, stops or ends loses its alarm. */
void sw_alarm_set(struct sw_view *view, const struct sw_job *job, sw_ns due, sw_ns slack);
void sw_alarm_clear(struct sw_view *view, const struct sw_job *job);

/* Lists of jobs. The core keeps the links, saves them and takes a job that has ended off all of
 * them. What is not so (a number too large, a job that is not known) does nothing.
 *
 * Lists have numbers from 0. The first `list_count` of them each cost 8 bytes in every job. Then
 * come `shelf_count` shelves, and `node_shelf_count` of each node, node by node. A job is on one
 * shelf at most and leaves it for another; so all shelves together cost it 16 bytes. */
/* At the end; in submit order, which is searched from the end; or behind another job of the list
 * (NULL: first). A job that is in already stays where it is. */
void sw_list_append(struct sw_view *view, uint32_t list, const struct sw_job *job);
void sw_list_insert(struct sw_view *view, uint32_t list, const struct sw_job *job);
void sw_list_put(struct sw_view *view, uint32_t list, const struct sw_job *job, const struct sw_job *behind);
void sw_list_remove(struct sw_view *view, uint32_t list, const struct sw_job *job);
bool sw_list_has(const struct sw_view *view, uint32_t list, const struct sw_job *job);
/* The one after it; NULL gives the first, and at the end NULL is given. */
const struct sw_job *sw_list_next(const struct sw_view *view, uint32_t list, const struct sw_job *after);
uint32_t sw_list_length(const struct sw_view *view, uint32_t list);
/* The number of the shelf that the job is on, or SW_NO_LIST. */
#define SW_NO_LIST UINT32_MAX
uint32_t sw_list_shelf(const struct sw_view *view, const struct sw_job *job);

void sw_count_promotion(struct sw_view *view, const struct sw_job *job);

/* ---- parameters */

enum sw_param_kind {
	SW_PARAM_INTEGER,  /* value.number */
	SW_PARAM_MILLI,	   /* a decimal; value.number in thousandths */
	SW_PARAM_DURATION, /* value.number in ns */
	SW_PARAM_NUMBERS,  /* a list of whole numbers: value.list */
	SW_PARAM_FLAG,	   /* value.number 0 or 1 */
	/* a path; the core reads the numbers (one per line, a header line allowed)
	 * into value.list, sorted */
	SW_PARAM_FILE_OF_NUMBERS,
	SW_PARAM_CHOICE, /* one of several words, which `preset` names; value.number is the place among them, from 0 */
};

struct sw_param {
	const char *name;
	enum sw_param_kind kind;
	/* text of the default, as a user would write it; of a choice all of its words, the
	 * default first: "a/b/c" */
	const char *preset;
	const char *about;
	int64_t min, max; /* of number, or of each number of a list; both 0: any that is not negative */
};

struct sw_value {
	int64_t number;
	const int64_t *list;
	size_t count;
};

/* ---- admission and news */

/* What the policy makes of a job before its user hears that it is accepted. */
enum sw_verdict {
	SW_ACCEPT = 0,
	/* it is an opportunistic job; not one of SW_STOP_NEVER. One of SW_STOP_IF_FREE is of
	 * SW_STOP_SUSPEND from now on */
	SW_DOWNGRADE,
	SW_QUOTE,  /* its deadline is `deadline_at`, which is later than the one that it asked for */
	SW_REFUSE, /* it will not run here */
};

#define SW_REASON_MAX 160u

struct sw_admission {
	uint8_t verdict; /* enum sw_verdict */
	sw_ns deadline_at;
	/* one sentence for the user, in UTF-8, with every verdict but SW_ACCEPT. `show` has it in
	 * full; 47 bytes of it are the reason of a job that is refused */
	char reason[SW_REASON_MAX];
};

/* What was measured of a run, as far as it is known. */
struct sw_sample {
	uint32_t progress_ppm; /* of its work that is done, in millionths; UINT32_MAX: not known */
	uint32_t speed_milli;  /* as sw_job_speed_milli() counts; 0: not known */
	int64_t loss_micro;    /* in millionths; INT64_MIN: not known */
	int64_t noise_micro;   /* gradient noise scale, in millionths; INT64_MIN: not known */
};

/* ---- the policy */

struct sw_policy {
	uint32_t abi;	   /* SW_POLICY_ABI */
	const char *name;  /* lower case, as in --policy */
	const char *about; /* one line for --help */

	const struct sw_param *params;
	size_t param_count;
	size_t state_size;	   /* bytes of sw_view_state() */
	size_t job_state_size;	   /* bytes of sw_job_state() */
	size_t node_state_size;	   /* bytes of sw_node_state() */
	uint32_t list_count;	   /* lists of jobs that the core keeps: sw_list_append() and its like */
	uint32_t shelf_count;	   /* more lists, of which a job is in one at most */
	uint32_t node_shelf_count; /* and as many more for each node */
	size_t scratch_size;	   /* bytes of sw_plan_scratch() */
	size_t question_size;	   /* bytes of its largest question; up to SW_QUESTION_BYTES_MAX */
	/* For callbacks that serve several policies: sw_view_policy(view)->context. */
	const void *context;
	/* It pauses jobs, and takes over those that it finds paused when it is put in charge. For
	 * others these go on as soon as they can, or are preempted. */
	bool pauses;

	/* The order that the core keeps, and the key that sorts it. */
	const struct sw_order *order;
	int64_t (*key)(struct sw_view *view, const struct sw_job *job);

	/* Once before everything else. Return NULL, or a sentence that says what is
	 * wrong with the parameters. */
	const char *(*start)(struct sw_view *view);
	/* Before `submit`, once for each job that comes; its bytes are there already. The verdict
	 * is SW_ACCEPT. */
	void (*admit)(struct sw_view *view, const struct sw_job *job, struct sw_admission *admission);
	void (*submit)(struct sw_view *view, const struct sw_job *job);
	void (*started)(struct sw_view *view, const struct sw_job *job); /* runs now: started, resumed, moved or resized */
	void (*stopped)(struct sw_view *view, const struct sw_job *job); /* waits again */
	void (*ended)(struct sw_view *view, const struct sw_job *job);	 /* is gone: finished, failed, cancelled */
	/* Its run holds less memory while suspended than before. Other jobs may fit now. */
	void (*freed)(struct sw_view *view, const struct sw_job *job);
	void (*alarm)(struct sw_view *view, const struct sw_job *job);
	void (*sampled)(struct sw_view *view, const struct sw_job *job, const struct sw_sample *sample); /* it runs */
	/* It runs: its lease has ended, and it runs on. It waits: what was held for it is not any
	 * more. */
	void (*expired)(struct sw_view *view, const struct sw_job *job);
	void (*answered)(struct sw_view *view, const struct sw_solution *solution);

	/* Makes the plan for this instant and returns when it wants to be called
	 * again even if nothing happens (SW_TIME_NEVER: no wish). Without it the core
	 * calls sw_plan_by_order(). */
	sw_ns (*decide)(struct sw_plan *plan);

	/* Why this waiting job waits, in one sentence, into `text`. */
	void (*explain)(struct sw_view *view, const struct sw_job *job, char *text, size_t size);
};

/* Numbers in such sentences, as two arguments each: "%u GPU%s", SW_COUNTED(1) says "1 GPU", and "%u
 * %s free", SW_COUNTED_ARE(1) "1 is free". */
#define SW_COUNTED(count) (count), (count) == 1 ? "" : "s"
#define SW_COUNTED_ARE(count) (count), (count) == 1 ? "is" : "are"

/* An out-of-tree policy exports one symbol of this name; so does an out-of-tree placement rule. */
#define SW_POLICY_SYMBOL "sharewell_policy"
#define SW_PLACEMENT_SYMBOL "sharewell_placement"
#define SW_EXPORT_POLICY(policy) __attribute__((visibility("default"))) const struct sw_policy *const sharewell_policy = &(policy)
#define SW_EXPORT_PLACEMENT(placement) \
	__attribute__((visibility("default"))) const struct sw_placement *const sharewell_placement = &(placement)

#ifdef __cplusplus
}
#endif

#endif
