/* The inside of the agent's brain; private to this folder. The functions here are those of brain.c;
 * each other file says its own in a header of its name. */
#ifndef SW_AGENT_BRAIN_STATE_H
#define SW_AGENT_BRAIN_STATE_H

#include "agent/brain/brain.h"
#include "agent/brain/speed.h"
#include "base/number.h"
#include "base/rng.h"
#include "base/vec.h"
#include "failure/failure.h"
#include "share/coordinate.h"

/* Of the jobs whose runs are gone, so many epochs are remembered; the oldest are dropped first. */
#define SW_AGENT_SEEN_MAX 16384u
/* Syncs follow each other at this distance at least; twice that each time one is overtaken by news
 * before it was answered. */
#define SW_AGENT_SPACING_NS (2 * SW_NS_PER_MS)
#define SW_AGENT_SPACING_MOST_NS (512 * SW_NS_PER_MS)
/* A sync that has waited so long is being kept until there is news. */
#define SW_AGENT_KEPT_NS (1500 * SW_NS_PER_MS)
/* After failures: the first wait, and the longest. */
#define SW_AGENT_BACKOFF_NS (50 * SW_NS_PER_MS)
#define SW_AGENT_BACKOFF_MOST_NS (2 * SW_NS_PER_S)
#define SW_AGENT_PUT_OFF_MOST_NS (60 * SW_NS_PER_S)
/* An answer that does not come is given up after this share of the shortest lease (thousandths), so
 * that there is time for another try. */
#define SW_AGENT_PATIENCE_MILLI 430
#define SW_AGENT_PATIENCE_NS (13 * SW_NS_PER_S)
/* An answer that came sooner than this and brought nothing new did not wait for news: do
 * not ask again at once. */
#define SW_AGENT_HASTY_NS (100 * SW_NS_PER_MS)
/* A new lease is passed on when it gains at least this share of its length; each supervisor would
 * wake for every answer otherwise. */
#define SW_AGENT_LEASE_STEP_MILLI 100
/* Runs are started, resumed and moved only while the last answer is not older than this: what the
 * controller wished before may hold no more. */
#define SW_AGENT_FRESH_NS (30 * SW_NS_PER_S)
/* For supervisors of version 0.1, which stop their job at the end of a lease, whatever it is:
 * longer than any machine stays up. */
#define SW_AGENT_LEASE_FOR_EVER_NS (INT64_C(100) * 365 * 86400 * SW_NS_PER_S)

/* The exit code of a run that could not be started, as env(1) and nohup(1) have it. */
#define SW_AGENT_NOT_STARTED_CODE 125u

enum sw_agent_phase {
	SW_PHASE_WAITING, /* asked for, not started: nothing of it is on disk */
	SW_PHASE_ALIVE,	  /* START was given, or its folder was found, and it has not exited */
	SW_PHASE_OVER,
};

/* What the controller wishes of a run; the first five are ordered as in enum sw_want_kind. */
enum sw_agent_wish {
	SW_WISH_RUN = SW_WANT_RUN,
	SW_WISH_SUSPEND = SW_WANT_SUSPEND,
	SW_WISH_STOP = SW_WANT_STOP,
	SW_WISH_FORGET = SW_WANT_FORGET,
	SW_WISH_UNKNOWN, /* no answer yet: leave it alone */
};

/* What the supervisor was told last, since it was linked to. */
enum sw_agent_told {
	SW_TOLD_NOTHING,
	SW_TOLD_SUSPEND,
	SW_TOLD_RESUME,
	SW_TOLD_STOP,
	SW_TOLD_MOVE, /* and has not said how it ended */
};

struct sw_agent_run {
	struct sw_run_id id;
	enum sw_agent_phase phase;
	enum sw_agent_wish wish;
	enum sw_agent_told told;
	bool listed;	/* in the answer that is being read */
	bool traceless; /* over without ever having had a folder */
	bool linked;
	bool fresh;	 /* `said` is from this link */
	bool lost;	 /* RECOVER is to be given, or BEGIN */
	bool began;	 /* of one that is lost: its command may have been started */
	uint8_t begins;	 /* how often BEGIN was given */
	uint32_t signal; /* of the wished stop */
	int64_t grace_ms;
	uint64_t told_order; /* the number of that order */
	uint64_t done_order; /* the last that the supervisor has carried out */
	uint32_t told_signal;
	int64_t told_grace_ms;
	bool lease_is_known;	 /* its spec was read */
	int64_t lease_length_ns; /* as its spec says; 0: it may go on for ever, if that is known */
	int64_t lease_ns;	 /* so long it may go on, as the last answer has it; INT64_MIN: it was in none */
	int64_t told_lease_ns;
	/* Of the GPUs that it shares: */
	bool hears_terms;	  /* it has GPUs, and may have the GPU runtime */
	bool shares;		  /* its spec says how much memory it needs */
	bool asked_opportunistic; /* its spec says so */
	bool opportunistic;	  /* so it is, unless it was upgraded */
	bool ordered;		  /* `order` is one */
	bool paused;		  /* as wished: it stands still */
	bool deep;		  /* as wished: suspended, it is off its GPUs whole */
	bool told_deep;		  /* it was told so with the suspend that it was told last */
	bool held_is_known;	  /* the controller knows that its GPU memory could not leave */
	bool outside;		  /* at the last look, processes of it used GPUs outside the GPU runtime */
	bool was_outside;	  /* at the look before */
	bool trespassed;	  /* it was seen on a GPU that it was not given */
	bool raised;		  /* its limit is above what it asked for: guaranteed, and in need */
	bool terms_told;	  /* these, since it was started or linked to: */
	struct sw_agent_terms terms;
	uint64_t limit_bytes; /* as wished */
	uint32_t share_milli;
	uint64_t memory_bytes;		  /* that its spec says it needs; 0: it does not say */
	struct sw_coordinate_job *seen;	  /* owned: on each of its GPUs at the last look; its id is 0 where it was not seen */
	uint64_t demand_bytes;		  /* what it had at most on one of them and in the host for it, when it did not move */
	struct sw_coordinate_order order; /* at the last look: the strictest of its GPUs', if it was ordered anything */
	struct sw_agent_speed speed;
	/* since when there is room for it among those that share a GPU; 0: there is
	 * none, or it needs none */
	int64_t seated_ns;
	struct sw_want *want; /* owned; NULL of a run that was found */
	uint32_t *gpus;	      /* owned: places in brain->gpus */
	uint32_t *wished;     /* owned: where the controller wishes it to be, if wishes_gpus */
	uint32_t *going;      /* owned: where it goes while it moves */
	size_t gpu_count;
	bool wishes_gpus;
	bool stays; /* it cannot go there, and why */
	char why_stays[256];
	char why[SW_SYNC_WHY_MAX + 1]; /* of the last wish, in one line; "": it does not say */
	struct sw_sync_run said;       /* its texts are these: */
	char reason[65], detail[256], failure[SW_FAILURE_NAME_MAX + 1], failure_line[SW_FAILURE_LINE_MAX + 1],
		failure_path[SW_FAILURE_PATH_MAX + 1], unmoved[256];
	char gpus_text[SW_SYNC_PLACES_MAX], moving_text[SW_SYNC_PLACES_MAX], going_text[SW_SYNC_PLACES_MAX];
};

struct sw_agent_slot {
	struct sw_agent_run *run;
};

struct sw_agent_seen {
	uint64_t job;
	uint32_t epoch; /* the highest */
	bool used;	/* that epoch was started, or never will be */
	uint64_t stamp; /* grows */
};

/* A GPU by its UUID. Those of runs that were found, and those that supervisors name, are here even
 * if the node does not have them, or not yet. */
struct sw_agent_gpu {
	char *uuid;
	bool present;
	/* Scratch of act(): */
	uint32_t users;	  /* runs that use it now */
	uint32_t staying; /* of these, the ones that are wished to go on */
	/* suspended runs that others wait for: they need it once more, to end in peace,
	 * or should not be there */
	uint32_t leaving;
	uint32_t closed;	/* of the users, the ones that let no other in: they do not share, or are to go */
	uint32_t opportunistic; /* of the users */
	/* Of coordinate.c: */
	uint64_t capacity_bytes;      /* 0: not known */
	uint64_t used_bytes;	      /* by any process, at the last look; UINT64_MAX: not known */
	uint64_t foreign_bytes[2];    /* held by others than the runs, at the last two looks */
	struct sw_coordination *kept; /* owned; NULL: it is not shared */
	bool tight;		      /* a run there has less than it asked for */
};

struct sw_agent_brain {
	char *node, *instance;
	char *home; /* NULL: none */
	uint64_t start;
	const struct sw_throttle *throttle;
	struct sw_rng rng;
	SW_VEC(struct sw_agent_slot) runs; /* ascending */
	SW_VEC(struct sw_agent_seen) seen; /* ascending by job */
	uint64_t stamp;
	uint64_t order; /* the last number that was given; no other instance gives the same ones */
	SW_VEC(struct sw_agent_gpu) gpus;
	struct sw_sync_inventory *inventory; /* owned, in one block */
	bool inventory_known;		     /* to the controller */
	bool inventory_sent;		     /* in the sync that waits */
	SW_VEC(struct sw_sync_run) reports;  /* scratch; has room for all runs */

	uint64_t have;
	uint64_t number; /* of the last sync */
	bool waiting;	 /* for its answer */
	bool dirty;	 /* there is news */
	int64_t sent_ns; /* the last sync */
	int64_t due_ns;	 /* the next one, when there is no news */
	int64_t spacing_ns;
	int64_t patience_ns;
	uint32_t failures;	/* in a row */
	int64_t retry_ns;	/* after a failure */
	int64_t fresh_until_ns; /* the last answer is news; INT64_MIN: there was none */
	bool old_controller;	/* it would run the jobs of a silent node anew although they run on here */
	int64_t answered_ns;	/* the first answer came; 0: none yet */
	int64_t looked_ns;	/* at the GPUs; 0: not yet */
};

struct sw_agent_run *sw_agent_find(const struct sw_agent_brain *brain, struct sw_run_id id);
/* A new run in its place, wished for nothing; its GPUs are interned. 0, SW_ENOMEM, SW_ELIMIT. */
int sw_agent_add(struct sw_agent_brain *brain, struct sw_run_id id, const struct sw_texts *gpus, struct sw_agent_run **ret_run);
/* The number of a GPU; the number of GPUs: it is not known. */
uint32_t sw_agent_find_gpu(const struct sw_agent_brain *brain, const char *uuid, size_t size);
/* The number of a GPU, known or new; 0 or SW_ENOMEM. */
int sw_agent_intern_gpu(struct sw_agent_brain *brain, const char *uuid, size_t size, uint32_t *ret_gpu);
void sw_agent_remove(struct sw_agent_brain *brain, struct sw_agent_run *run);
/* The exit of a run that has no folder. */
void sw_agent_end(struct sw_agent_brain *brain, struct sw_agent_run *run, const char *reason, const char *detail);
/* Uses its GPUs, or may do so at any moment. */
bool sw_agent_is_active(const struct sw_agent_run *run);

#endif
