/* Private to the policy gandiva: which job is where, and what its files do for each other. What the
 * policy is about stands in gandiva.c. */
#ifndef SW_POLICY_GANDIVA_H
#define SW_POLICY_GANDIVA_H

#include <sharewell/policy.h>

#define SECOND INT64_C(1000000000)
#define BAD_MAX 6u	   /* pairs that a job remembers; then it is left alone */
#define PAIRS_PER_LOOK 64u /* of one node */
#define IN_PLACE_MAX 8u	   /* jobs that stand on one GPU */

enum { QUANTUM, INTROSPECT, HEIGHT, PACK, BUSY, IDLE };

enum place {
	NOWHERE = 0,
	FRESH,	  /* came since the last decision */
	QUEUED,	  /* has no node */
	RESIDENT, /* of a node */
	GUEST,	  /* packed with a resident, its partner, and comes and goes with it */
	SPREAD,	  /* runs on several nodes */
	PLACES,
};

/* Each place but that of guests is a shelf of the core. Residents are on those of their node, in
 * the order in which they started or stopped. */
enum { RUNS, WAITS, NODE_SHELVES };

struct member {
	uint8_t place;
	bool waits;    /* and is counted so */
	bool on_trial; /* of a pair, both */
	bool by_us;    /* it stops because this policy says so */
	uint32_t node;
	uint32_t partner;     /* id plus one; 0: none */
	uint32_t shuns;	      /* the node that did not take it although it had room, plus one */
	sw_ns shuns_until;    /* none is stopped there for it before; SW_NO_NODE: anywhere, for one that needs several nodes */
	uint32_t held;	      /* GPUs of its node, as a resident */
	uint32_t alone_milli; /* its speed when it last ran alone; 0: unknown */
	uint32_t bad[BAD_MAX], bads;
	sw_ns trial_ends;
};

struct room {
	uint32_t load;	/* GPUs that residents ask for */
	uint32_t fixed; /* of these, of residents that do not take turns */
	uint32_t held;
	uint32_t affinity; /* 0: none */
	uint32_t next_due; /* node plus one */
	bool due;
	sw_ns changed_at;
};

struct mind {
	uint32_t due;		     /* nodes to look at */
	uint32_t crowded;	     /* nodes where residents wait */
	uint32_t waiting;	     /* members that wait */
	uint32_t small, grown;	     /* residents that could have more GPUs, that have more than they asked for */
	uint32_t gpus_up, gpus_free; /* after the last decision */
	bool touched;		     /* GPUs may have become free */
	bool press;		     /* one of the queue has waited long enough to have others stopped */
	bool spread_over;	     /* the turn of one that is spread */
	bool too_soon;		     /* a stop was refused: all is looked at again */
	sw_ns look_at;		     /* 0: there is nothing to think over */
};

static inline struct member *of(struct sw_view *view, const struct sw_job *job)
{
	return sw_job_state(view, job);
}

static inline struct mind *mind_of(struct sw_view *view)
{
	return sw_view_state(view);
}

static inline struct room *room_of(struct sw_view *view, uint32_t node)
{
	return sw_node_state(view, (struct sw_node_id){node});
}

static inline const struct sw_job *linked(struct sw_view *view, uint32_t link)
{
	return link == 0 ? NULL : sw_view_job(view, (struct sw_job_id){link - 1});
}

static inline uint32_t runs_of(uint32_t node)
{
	return PLACES + NODE_SHELVES * node + RUNS;
}

static inline uint32_t waits_of(uint32_t node)
{
	return PLACES + NODE_SHELVES * node + WAITS;
}

static inline struct sw_node node_of(struct sw_view *view, uint32_t node)
{
	struct sw_node seen;
	sw_view_node(view, (struct sw_node_id){node}, &seen);
	return seen;
}

static inline sw_ns quantum(struct sw_view *view)
{
	return sw_view_param(view, QUANTUM)->number;
}

/* ---- lists, counts, starting and stopping (gandiva_rooms.c) */

/* The node is looked at in this decision, or the next. */
void sw_gandiva_mark(struct sw_view *view, uint32_t node);
void sw_gandiva_mark_all(struct sw_view *view);
/* Whether the job waits now; keeps lists and counts true, and puts it last in its list. */
void sw_gandiva_set_waits(struct sw_view *view, const struct sw_job *job, bool waits);
/* How many GPUs of its node a resident has now. */
void sw_gandiva_set_held(struct sw_view *view, const struct sw_job *job, uint32_t gpus);
/* Whether it can be stopped without loss. */
bool sw_gandiva_takes_turns(const struct sw_view *view, const struct sw_job *job);
/* Out of its place; its pair is not asked. */
void sw_gandiva_leave(struct sw_view *view, const struct sw_job *job);
/* The affinity that suits a job: its GPUs, or the next power of two. */
uint32_t sw_gandiva_size_class(uint32_t gpus);
/* Out of its place into another; `node` for residents. */
void sw_gandiva_enter(struct sw_view *view, const struct sw_job *job, enum place place, uint32_t node);
/* Ends the pair that the job is of, if any: the guest is a resident like others. */
void sw_gandiva_part(struct sw_view *view, const struct sw_job *job);
bool sw_gandiva_over_quota(const struct sw_view *view, const struct sw_job *job);
/* The plan has stopped it. */
void sw_gandiva_note_stop(struct sw_view *view, const struct sw_job *job);
/* Stops a job, with its guest. False: it may not be stopped yet. */
bool sw_gandiva_rest(struct sw_plan *plan, const struct sw_job *job);
/* Starts a resident on its node, and its guest beside it. */
bool sw_gandiva_begin(struct sw_plan *plan, const struct sw_job *job);
/* Whether its turn is over. */
bool sw_gandiva_may_rest(struct sw_view *view, const struct sw_job *job);
/* Takes back what elastic jobs got on top, until so many GPUs of the node are free. */
void sw_gandiva_shrink(struct sw_plan *plan, uint32_t node, uint32_t gpus);

/* ---- where a job goes (gandiva_places.c) */

/* Whether its state is on GPUs of this node that it had, and only there. */
bool sw_gandiva_stands_on(const struct sw_view *view, const struct sw_job *job, uint32_t node);
/* Whether the job could run there, were it empty. */
bool sw_gandiva_suits(const struct sw_node *node, const struct sw_job *job);
/* Whether the first has less asked of it, for its size. */
bool sw_gandiva_is_lower(const struct room *a, uint32_t a_gpus, const struct room *b, uint32_t b_gpus);
/* Makes it a resident there; false: it cannot run at once. */
bool sw_gandiva_house(struct sw_plan *plan, const struct sw_job *job, uint32_t node);
/* Starts it on any free GPUs, by the placement rule. */
bool sw_gandiva_start_spread(struct sw_plan *plan, const struct sw_job *job);
/* Finds places for all of a shelf that have none, in order; a job that finds none queues. */
void sw_gandiva_settle_all(struct sw_plan *plan, uint32_t shelf);

/* ---- whose turn it is (gandiva_turns.c) */

/* Whether the state of a resident is on GPUs of its node that it had, and only there. */
bool sw_gandiva_stands_here(struct sw_view *view, const struct sw_job *job);
/* Wakes the policy a quantum after the job started, when its turn is over, or stopped, when
 * that of another may be. */
void sw_gandiva_watch(struct sw_view *view, const struct sw_job *job);
/* Looks at the nodes that are marked: which job comes next, which stops, whose trial is over. */
void sw_gandiva_take_turns(struct sw_plan *plan);
/* Larger than a node, or not to be stopped: it takes turns with none. */
bool sw_gandiva_is_hard(struct sw_view *view, const struct sw_job *job);
/* Stops others for the first such job of the queue that has waited for a quantum. */
void sw_gandiva_press(struct sw_plan *plan);
/* Ends the turn of jobs that are spread over nodes where others wait for their GPUs. */
void sw_gandiva_end_spread(struct sw_plan *plan);

/* ---- moves, pairs and sizes (gandiva_look.c) */

/* A job that waits for a turn takes GPUs that are free elsewhere. */
void sw_gandiva_relieve_all(struct sw_plan *plan);
/* Brings jobs that are spread over nodes together; `clears`: makes room for them, too. */
void sw_gandiva_gather_all(struct sw_plan *plan, bool clears);
/* Begins trials of pairs, one on each node where jobs wait. */
void sw_gandiva_pack_all(struct sw_plan *plan);
/* Gives idle GPUs to elastic jobs. */
void sw_gandiva_grow_all(struct sw_plan *plan);

#endif
