/* What follows when a sampler hangs in its driver, ends or speaks. It says when the next one
 * starts, which GPUs it leaves out, and whether the driver as a whole counts as silent. Pure: the
 * time comes in.
 *
 *  1. A GPU in whose call a sampler hung is left out, and asked again after growing pauses. While
 *     samplers hang on, it is asked again only while one more sampler may be started afterwards.
 *     Where there is room for some of several GPUs, they take turns, a minute apart.
 *  2. Where it is not one GPU that hangs, the next sampler waits for growing pauses.
 *  3. Where samplers end, the driver counts as silent from the second one on.
 */
#ifndef SW_AGENT_PATIENCE_H
#define SW_AGENT_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

/* Samplers that were killed and are still there: no other is started beside so many. */
#define SW_PATIENCE_HUNG_MAX 4u

struct sw_patience {
	uint64_t skip;	       /* GPUs, as the driver counts, that the next sampler leaves out */
	int64_t skip_until_ns; /* when some of them are asked again */
	uint32_t turn;	       /* the GPU that is asked again first, if it is left out; else the next one */
	int64_t skip_ms;       /* how long they were left alone last */
	int64_t retry_ms;      /* before the next sampler, where none works; grows */
	uint32_t failures;     /* samplers that ended, since one that looked twice */
};

struct sw_patience_step {
	int64_t after_ms;   /* then the next sampler starts */
	const char *silent; /* why the driver as a whole counts as silent from now on; NULL: it does not for this */
};

/* Nothing came from a sampler for too long; `asking` as in struct sw_gpu_source_care. */
struct sw_patience_step sw_patience_hangs(struct sw_patience *patience, int64_t now_ns, int asking);
/* A sampler has ended, or could not be started. */
struct sw_patience_step sw_patience_fails(struct sw_patience *patience);
/* As many hang as there may be, so that there is no room for the next one. */
struct sw_patience_step sw_patience_is_full(struct sw_patience *patience);
/* The sampler looks at processes only, since its driver is silent. */
struct sw_patience_step sw_patience_is_blind(struct sw_patience *patience);
/* A look at the GPUs has come; `first`: of this sampler; `hung`: samplers that were killed and are
 * still there. True: another one, which leaves out fewer GPUs, takes over now. */
bool sw_patience_looks(struct sw_patience *patience, int64_t now_ns, bool first, uint32_t hung);

#endif
