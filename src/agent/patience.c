#include "agent/patience.h"

#include <stddef.h>

#include "base/number.h"

#define RETRY_MS INT64_C(10000)
#define RETRY_MAX_MS INT64_C(600000)
#define SKIP_MS INT64_C(60000)
#define SKIP_MAX_MS INT64_C(3600000)
#define GPUS_MAX 64 /* bits of `skip` */

static int64_t grow(int64_t *pause_ms, int64_t least_ms, int64_t most_ms)
{
	int64_t ms = *pause_ms > 0 ? *pause_ms * 2 : least_ms;
	return *pause_ms = ms < most_ms ? ms : most_ms;
}

static struct sw_patience_step later(struct sw_patience *patience, const char *silent)
{
	return (struct sw_patience_step){grow(&patience->retry_ms, RETRY_MS, RETRY_MAX_MS), silent};
}

struct sw_patience_step sw_patience_hangs(struct sw_patience *patience, int64_t now_ns, int asking)
{
	if (asking <= 0 || asking > GPUS_MAX || (patience->skip >> (asking - 1) & 1) != 0)
		return later(patience, "it hangs");
	patience->skip |= UINT64_C(1) << (asking - 1);
	patience->skip_until_ns = now_ns + grow(&patience->skip_ms, SKIP_MS, SKIP_MAX_MS) * SW_NS_PER_MS;
	return (struct sw_patience_step){0};
}

struct sw_patience_step sw_patience_fails(struct sw_patience *patience)
{
	return later(patience, ++patience->failures > 1 ? "looking at the GPUs fails" : NULL);
}

struct sw_patience_step sw_patience_is_full(struct sw_patience *patience)
{
	return later(patience, "samplers hang in it, and no more are started");
}

struct sw_patience_step sw_patience_is_blind(struct sw_patience *patience)
{
	return later(patience, NULL);
}

/* Each GPU that is asked may keep one sampler more, and the GPUs that answer need one after
 * that. */
static bool ask_again(struct sw_patience *patience, uint32_t hung)
{
	uint64_t before = patience->skip;
	uint32_t room = hung + 1 < SW_PATIENCE_HUNG_MAX ? SW_PATIENCE_HUNG_MAX - 1 - hung : 0;
	for (int passed = 0; passed < GPUS_MAX && room > 0; passed++) {
		uint64_t gpu = UINT64_C(1) << patience->turn;
		room -= (patience->skip & gpu) != 0;
		patience->skip &= ~gpu;
		patience->turn = (patience->turn + 1) % GPUS_MAX;
	}
	return patience->skip != before;
}

bool sw_patience_looks(struct sw_patience *patience, int64_t now_ns, bool first, uint32_t hung)
{
	if (first)
		return false;
	patience->retry_ms = 0;
	patience->failures = 0;
	if (patience->skip == 0)
		patience->skip_ms = 0;
	if (now_ns < patience->skip_until_ns || !ask_again(patience, hung))
		return false;
	/* The others follow soon, unless one of these hangs again. */
	patience->skip_until_ns = now_ns + SKIP_MS * SW_NS_PER_MS;
	return true;
}
