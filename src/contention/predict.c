#include "contention/predict.h"

/* Slowdowns beyond this say only "never do that"; the cap keeps products small. */
#define SLOWEST_MILLI 1000000

const struct sw_predict_model sw_predict_default = {.host_mem_kappa_milli = 5000, .sharing_cost_milli = 0};

static bool is_gpu_rate(int resource)
{
	return resource != SW_USE_HOST_CPU && resource != SW_USE_HOST_MEM;
}

static uint64_t excess(uint64_t sum_milli)
{
	return sum_milli > 1000 ? sum_milli - 1000 : 0;
}

static uint64_t divide(uint64_t dividend, uint64_t divisor)
{
	return (dividend + divisor / 2) / divisor;
}

uint32_t sw_predict_slowdown_milli(const struct sw_predict_model *model, const struct sw_profile *job,
				   const struct sw_profile *const *others, size_t count)
{
	uint64_t worst = 1000, own_peak = 0;
	uint64_t sum[SW_USE_COUNT];
	for (int r = 0; r < SW_USE_COUNT; r++) {
		sum[r] = job->use_milli[r];
		for (size_t i = 0; i < count; i++)
			sum[r] += others[i]->use_milli[r];
		if (is_gpu_rate(r) && job->use_milli[r] > own_peak)
			own_peak = job->use_milli[r];
	}
	for (int r = 0; r < SW_USE_COUNT; r++) {
		uint64_t over = excess(sum[r]), slower = 1000;
		if (r == SW_USE_HOST_CPU)
			slower += over;
		else if (r == SW_USE_HOST_MEM)
			slower += divide((uint64_t)model->host_mem_kappa_milli * job->use_milli[r] * over, 1000000);
		else if (own_peak > 0)
			slower += divide(job->use_milli[r] * over, own_peak);
		if (slower > worst)
			worst = slower;
	}
	if (count > 0)
		worst += model->sharing_cost_milli;
	return (uint32_t)(worst < SLOWEST_MILLI ? worst : SLOWEST_MILLI);
}

uint32_t sw_predict_pair_milli(const struct sw_predict_model *model, const struct sw_profile *a, const struct sw_profile *b)
{
	uint64_t slow_a = sw_predict_slowdown_milli(model, a, &b, 1);
	uint64_t slow_b = sw_predict_slowdown_milli(model, b, &a, 1);
	return (uint32_t)divide((slow_a + slow_b) * 1000000, slow_a * slow_b);
}

bool sw_predict_fits(const struct sw_profile *const *jobs, size_t count, uint64_t gpu_mem_bytes)
{
	uint64_t left = gpu_mem_bytes;
	for (size_t i = 0; i < count; i++) {
		uint64_t need = jobs[i]->mem_persistent_bytes + jobs[i]->mem_ephemeral_bytes;
		if (need > left)
			return false;
		left -= need;
	}
	return true;
}
