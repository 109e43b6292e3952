/* What follows from a profile: skew, speed on several GPUs, the price of distance, the length of a
 * job. Integer arithmetic; products go through 128 bits. */
#include <assert.h>

#include "base/number.h"
#include "contention/profile.h"

uint32_t sw_profile_skew_milli(const struct sw_profile *profile)
{
	if (profile->model_bytes == 0)
		return 0;
	return (uint32_t)((unsigned __int128)profile->largest_tensor_bytes * 1000 / profile->model_bytes);
}

uint32_t sw_profile_gpu_use_milli(const struct sw_profile *profile)
{
	uint32_t most = 0;
	for (int r = SW_USE_SM; r <= SW_USE_DRAM_WRITE; r++)
		most = profile->use_milli[r] > most ? profile->use_milli[r] : most;
	return most;
}

/* The value at x on the line from (x0, y0) to (x1, y1). */
static int64_t between(int64_t x, int64_t x0, int64_t y0, int64_t x1, int64_t y1)
{
	return y0 + (int64_t)((__int128)(y1 - y0) * (x - x0) / (x1 - x0));
}

uint64_t sw_profile_speed_milli(const struct sw_profile *profile, uint32_t gpus)
{
	int64_t before_gpus = 1, before_speed = 1000;
	if (gpus <= 1)
		return 1000;
	for (uint32_t i = 0; i < profile->scaling_count; i++) {
		const struct sw_profile_scaling *known = &profile->scaling[i];
		if (gpus <= known->gpus)
			return (uint64_t)between(gpus, before_gpus, before_speed, known->gpus, known->speed_milli);
		before_gpus = known->gpus;
		before_speed = known->speed_milli;
	}
	return (uint64_t)before_speed;
}

uint32_t sw_profile_placement_milli(const struct sw_profile *profile, enum sw_profile_spread spread, enum sw_profile_spread best)
{
	assert(spread < SW_SPREAD_COUNT && best < SW_SPREAD_COUNT);
	if (spread <= best)
		return 1000;
	uint64_t there = profile->placement_milli[spread], here = profile->placement_milli[best];
	return (uint32_t)((there * 1000 + here / 2) / here);
}

static int64_t total_of(const struct sw_profile *profile, uint32_t batch)
{
	const struct sw_profile_total *totals = profile->totals;
	uint32_t last = profile->totals_count - 1;
	if (batch <= totals[0].batch)
		return totals[0].total_ns;
	for (uint32_t i = 1; i <= last; i++)
		if (batch <= totals[i].batch)
			return between(batch, totals[i - 1].batch, totals[i - 1].total_ns, totals[i].batch, totals[i].total_ns);
	return totals[last].total_ns;
}

int sw_profile_duration(const struct sw_profile *profile, int64_t iterations, uint32_t batch, uint32_t gpus, int64_t *ret_ns)
{
	if (iterations <= 0 && profile->totals_count == 0)
		return SW_ENOTFOUND;
	uint64_t speed = sw_profile_speed_milli(profile, gpus);
	__int128 alone = iterations > 0 ? (__int128)iterations * profile->iteration_ns : total_of(profile, batch);
	__int128 ns = alone > ((__int128)1 << 100) ? alone : (alone * 1000 + speed / 2) / speed;
	if (ns > INT64_MAX - 1)
		return SW_ELIMIT;
	*ret_ns = (int64_t)ns;
	return 0;
}
