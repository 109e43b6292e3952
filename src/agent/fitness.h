/* Which GPUs of the node are fit to be given out, by what the sampler sees on them. Pure: looks
 * come in with their time, words for the controller come out.
 *
 *  1. A GPU is shut while a process outside the queue is on it, and FREE_NS after the last one has
 *     left. With `share` the processes are told of, and the GPU stays open.
 *  2. Processes that draw, and services of the driver, count only from `small_bytes` on: a screen
 *     is no reason to keep a GPU back.
 *  3. A process that is ending, and memory that no process known here holds, count only once they
 *     have stayed. A run of ours may just have ended.
 *  4. Where the driver does not name its processes, as in containers, memory beyond what runs of
 *     ours hold is the evidence. Where those do not say how much they hold, there is none.
 *  5. A GPU that does not answer is shut, and opens FREE_NS after it answers again.
 */
#ifndef SW_AGENT_FITNESS_H
#define SW_AGENT_FITNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/sync.h"
#include "base/vec.h"
#include "gpu/gpu.h"

enum sw_strangers {
	SW_STRANGERS_AVOID = 0, /* their GPUs are not given out */
	SW_STRANGERS_SHARE,	/* they are told of, and their GPUs given out all the same */
	SW_STRANGERS_IGNORE,	/* they are not looked for */
};

#define SW_FITNESS_SMALL_BYTES (UINT64_C(512) << 20)

enum sw_lodging {
	SW_LODGER_OURS = 0, /* of a run */
	SW_LODGER_STRANGER,
	SW_LODGER_ENDING, /* it has no memory of its own any more */
	SW_LODGER_HIDDEN, /* its number means nothing here */
};

/* A process that the driver lists on a GPU. */
struct sw_lodger_view {
	uint32_t pid;
	enum sw_lodging kind;
	bool is_light;		    /* it draws, or belongs to the driver */
	uint64_t memory_bytes;	    /* 0: not known */
	char user[36], program[36]; /* "": not known */
};

/* One look at one GPU. */
struct sw_fitness_look {
	const char *silent; /* why it does not answer; NULL: it does */
	bool excluded;	    /* the operator keeps it back */
	bool knows_memory;
	uint64_t used_bytes, reserved_bytes; /* as in struct sw_gpu_sample */
	uint64_t unseen_bytes;		     /* held by runs of ours none of whose processes is listed as ours */
	bool has_unseen, unseen_unknown;     /* there are such; some of them do not say how much they hold */
	const struct sw_lodger_view *lodgers;
	size_t lodger_count;
};

#define SW_FITNESS_STRANGERS 16u /* kept of one GPU */

struct sw_fitness_stranger {
	struct sw_lodger_view is;
	int64_t first_ns, last_ns; /* on the clock of the looks */
	int64_t since_ns;	   /* for people */
	bool counts;
};

struct sw_fitness_gpu {
	struct sw_fitness_stranger strangers[SW_FITNESS_STRANGERS];
	uint32_t stranger_count;
	uint32_t looks, failures, hidden_looks;
	bool excluded, dead;
	int64_t dead_last_ns, dead_since_ns, excluded_since_ns;
	char why[200]; /* it is dead */
};

struct sw_fitness {
	enum sw_strangers rule;
	uint64_t small_bytes;
	struct sw_fitness_gpu gpus[SW_GPUS_MAX];
	/* What was told last. */
	SW_VEC(struct sw_sync_shut) shut;
	SW_VEC(struct sw_sync_stranger) told;
};

/* Whether a program of this name belongs to the driver. */
bool sw_fitness_is_service(const char *program);

/* `now_ns` never goes back; `at_ns` is the time of day. */
void sw_fitness_note(struct sw_fitness *fitness, uint32_t gpu, int64_t now_ns, int64_t at_ns, const struct sw_fitness_look *look);
/* Puts what takes no jobs, and what is on it, into the sync; it stays valid until the next note or
 * tell. */
void sw_fitness_tell(struct sw_fitness *fitness, const struct sw_gpu_source *gpus, struct sw_sync *sync);

#endif
