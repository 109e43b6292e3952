/* What a process with a share of the GPU's time may still take. Credit comes as time goes by and is
 * paid for work, at what that took. Pure, and in a header of its own so that a test can run a
 * program against it that needs no GPU.
 *
 * Work comes in bursts. A program that may never run ahead of the GPU is held up by its own
 * launches, and would pay for that. So a process that has used up its credit rests until it is
 * whole.
 */
#ifndef SW_RUNTIME_CREDIT_H
#define SW_RUNTIME_CREDIT_H

#include <stdbool.h>
#include <stdint.h>

#define SW_CREDIT_BURST_NS INT64_C(15000000)
/* A little more can be kept: one that rests wakes late. */
#define SW_CREDIT_MOST_NS (SW_CREDIT_BURST_NS * 4 / 3)

struct sw_credit {
	uint32_t share_milli;
	int64_t left_ns, at_ns;
	bool resting;
};

static inline void sw_credit_start(struct sw_credit *credit, uint32_t share_milli, int64_t now_ns)
{
	*credit = (struct sw_credit){.share_milli = share_milli, .at_ns = now_ns};
}

/* Up to now; true: it must rest. */
static inline bool sw_credit_give(struct sw_credit *credit, int64_t now_ns)
{
	credit->left_ns += (now_ns - credit->at_ns) * credit->share_milli / 1000;
	credit->left_ns = credit->left_ns < SW_CREDIT_MOST_NS ? credit->left_ns : SW_CREDIT_MOST_NS;
	credit->at_ns = now_ns;
	credit->resting = credit->resting ? credit->left_ns < SW_CREDIT_BURST_NS : credit->left_ns < 0;
	return credit->resting;
}

static inline void sw_credit_take(struct sw_credit *credit, int64_t took_ns)
{
	credit->left_ns -= took_ns;
}

/* How long it must rest; 0: not at all. */
static inline int64_t sw_credit_rest_ns(const struct sw_credit *credit)
{
	if (!credit->resting || credit->share_milli == 0)
		return 0;
	return (SW_CREDIT_BURST_NS - credit->left_ns) * 1000 / credit->share_milli;
}

#endif
