/* The agent without its surroundings: which runs there are, what the controller wishes, and
 * what follows from both.
 *
 * No I/O, no clock, no environment: `now` (CLOCK_BOOTTIME of the node) comes in with every call.
 * The driver (agent.c) and the simulation of the whole system feed it alike:
 *
 *	inputs (found, answer, failed, link, said, lost, inventory, look, nudge)
 *	-> act() until it gives nothing -> sync() -> wait until wake()
 *
 * A restart is a new brain that is told what the folders on disk say
 * (sw_agent_brain_found()). Messages from the controller may be lost, late or repeated: only
 * the answer to the latest sync counts, once.
 *
 * Invariants:
 *  1. START is given at most once for a run (job, epoch), and never for an epoch below one that was
 *     seen for that job. Across restarts this holds because the driver makes the run's folder
 *     before anything else, and remembers those that it deletes.
 *  2. START and RESUME are given only while the GPUs of the run are free and the last answer is
 *     fresh. A START also needs the run's lease, if it has one, and no other run of the same job
 *     that is alive. A GPU is not free while another run uses it that is neither suspended nor
 *     exited. Nor is it while a suspended run that is to stop wants it once more. Nor is it while a
 *     run is still to leave it whole or is taken to be elsewhere. But runs share a GPU if all of
 *     them are wished to run and their specs say how much memory they need.
 *  3. an exit that left a folder is told in every sync until the controller wants it forgotten;
 *     DELETE is given for exited runs only.
 *  4. before the first answer nothing that was found is stopped; after it,
 *     what is not wished for is.
 *  5. a stop is never taken back.
 *  6. runs are handled in ascending (job, epoch); same inputs, same outputs;
 *  7. what is seen of runs changes their terms only: which runs start, stand still and stop is
 *     the controller's affair.
 */
#ifndef SW_AGENT_BRAIN_H
#define SW_AGENT_BRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/sync.h"
#include "base/cleanup.h"
#include "base/error.h"

/* Guaranteed runs that one run gives way to, at most. */
#define SW_AGENT_NEIGHBOURS 8u
/* No share at all of a GPU's time: it stands still, and keeps its memory. */
#define SW_AGENT_NO_SHARE UINT32_MAX

struct sw_agent_brain;
struct sw_throttle;

struct sw_agent_brain_config {
	const char *node;
	const char *home; /* and `start`: as in a sync; NULL and 0: it says neither */
	uint64_t start;
	const char *instance;		    /* of this start; sorts behind those of earlier starts (strcmp) */
	uint64_t seed;			    /* of the jitter */
	const struct sw_throttle *throttle; /* how opportunistic runs keep out of the way of guaranteed ones; NULL: the default */
};

int sw_agent_brain_new(const struct sw_agent_brain_config *config, struct sw_agent_brain **ret_brain, struct sw_err *err);
void sw_agent_brain_free(struct sw_agent_brain *brain);
SW_DEFINE_FREEP(struct sw_agent_brain, sw_agent_brain_free)

/* ---- inputs */

/* What the node has; copied. Told to the controller until it has answered. There is no sync
 * before the first call. */
int sw_agent_brain_inventory(struct sw_agent_brain *brain, const struct sw_sync_inventory *inventory);
/* A run whose folder was there when the agent started: what its folder says last. SW_ELIMIT: there
 * are too many; SW_EINPUT: it is known. */
int sw_agent_brain_found(struct sw_agent_brain *brain, const struct sw_sync_run *run, const struct sw_texts *gpus);
/* What the folder of a run that was found says it was started with. */
void sw_agent_brain_spec(struct sw_agent_brain *brain, struct sw_run_id id, const struct sw_run_spec *spec);
/* A run that was here once; its folder is gone. 0 or SW_ENOMEM. */
int sw_agent_brain_seen(struct sw_agent_brain *brain, struct sw_run_id id);
/* The answer to sync `number`. Late and repeated ones are ignored. SW_ENOMEM:
 * nothing was taken over. */
int sw_agent_brain_answer(struct sw_agent_brain *brain, int64_t now_ns, uint64_t number, const struct sw_answer_message *answer);
/* Sync `number` came to nothing. */
void sw_agent_brain_failed(struct sw_agent_brain *brain, int64_t now_ns, uint64_t number);
/* The controller has no room, and said when to come back: no sync before, but for more than a
 * minute it is not obeyed. */
void sw_agent_brain_put_off(struct sw_agent_brain *brain, int64_t now_ns, int64_t wait_ns);
/* Whether the run's supervisor can be told something. What was told to it before must have reached
 * it, or be lost, before it says the next word. */
void sw_agent_brain_link(struct sw_agent_brain *brain, struct sw_run_id id, bool up);
/* What the supervisor says of its run, or the driver of one that it could not start. `order` is the
 * number of the last order that the supervisor had carried out by then. The first exit stands. */
void sw_agent_brain_said(struct sw_agent_brain *brain, const struct sw_sync_run *run, uint64_t order);
/* The supervisor is dead and left no exit behind. `began`: the command may have been started. */
void sw_agent_brain_lost(struct sw_agent_brain *brain, struct sw_run_id id, bool began);
/* What was seen of GPUs and of runs on them, about once a second. Runs that share a GPU are
 * coordinated by it (src/share); without it they have what the plan says. */
void sw_agent_brain_look(struct sw_agent_brain *brain, int64_t now_ns, const struct sw_sync_sample *samples, size_t count);
enum sw_trespass {
	SW_TRESPASS_NONE,
	SW_TRESPASS_NEW,
	SW_TRESPASS_KNOWN, /* of this run it was asked before */
};
/* A run was seen on a GPU that it was not given, as the files of its folder tell, which may be
 * old. Says whether it is so by the word of its supervisor. */
enum sw_trespass sw_agent_brain_trespass(struct sw_agent_brain *brain, struct sw_run_id id, const char *gpu);
/* There is something that the next sync should carry soon. */
void sw_agent_brain_nudge(struct sw_agent_brain *brain);

/* ---- outputs */

enum sw_agent_act {
	SW_ACT_START, /* make the folder of `want`, durably, then start its supervisor with the lease, if it has one */
	/* start another supervisor: the one before died and had not begun. The folder lets one
	 * begin, whichever comes late */
	SW_ACT_BEGIN,
	SW_ACT_STOP,	/* tell the supervisor: order, signal, grace */
	SW_ACT_SUSPEND, /* tell the supervisor: order */
	SW_ACT_RESUME,	/* tell the supervisor: order */
	SW_ACT_LEASE,	/* tell the supervisor until when the run may go on without a word */
	SW_ACT_TERMS,	/* tell the supervisor what the run may have of its GPUs */
	SW_ACT_RECOVER, /* see that nothing of the run is left alive, and record its exit */
	SW_ACT_DELETE,	/* remove the folder */
	SW_ACT_MOVE,	/* tell the supervisor: order, gpus */
};

/* What a run may have of its GPUs, and whose work goes first there. */
struct sw_agent_terms {
	uint64_t limit_bytes; /* of each GPU's memory; 0: as the spec says */
	uint32_t share_milli; /* of each GPU's time; 0: all; or SW_AGENT_NO_SHARE */
	bool watched;	      /* other runs give way to it */
	uint32_t neighbour_count;
	struct sw_run_id neighbours[SW_AGENT_NEIGHBOURS]; /* the runs to which it gives way; ascending */
};

struct sw_agent_action {
	enum sw_agent_act act;
	uint32_t signal; /* STOP; 0: the spec's */
	struct sw_run_id id;
	uint64_t order;			    /* STOP, SUSPEND, RESUME, MOVE: its number */
	const char *gpus;		    /* MOVE: where to, UUIDs with commas; valid until the next input or act */
	const struct sw_want *want;	    /* START; valid until the next answer or act */
	int64_t lease_boot_ns;		    /* START, LEASE; 0: it has none */
	int64_t grace_ms;		    /* STOP; -1: the spec's */
	const struct sw_agent_terms *terms; /* TERMS; valid until the next input or act */
	bool deep;			    /* SUSPEND: off its GPUs whole */
	const char *why; /* STOP, SUSPEND, MOVE: for people, one line; "": not known. Valid until the next input or act */
};

/* Up to `capacity` actions, to be carried out in their order; call it until it gives 0. */
size_t sw_agent_brain_act(struct sw_agent_brain *brain, int64_t now_ns, struct sw_agent_action *actions, size_t capacity);
/* Whether it is time for a sync, and then what it says; a sync that is still waiting for its answer
 * is to be abandoned. The content is valid until the next input. */
bool sw_agent_brain_sync(struct sw_agent_brain *brain, int64_t now_ns, struct sw_sync *ret_sync);
/* When to call sw_agent_brain_sync() again, if nothing happens before. */
int64_t sw_agent_brain_wake(const struct sw_agent_brain *brain);

/* ---- looking */

/* All runs in ascending order, as the next sync would tell them. */
size_t sw_agent_brain_runs(struct sw_agent_brain *brain, const struct sw_sync_run **ret_runs);
/* Derives the invariants anew; SW_EBUG and which one is broken. */
int sw_agent_brain_validate(const struct sw_agent_brain *brain, struct sw_err *err);

#endif
