#include "contention/predict.h"

/* Slowdowns beyond this say only "never do that"; the cap keeps products small. */
#define SLOWEST_MILLI 1000000
/* What an opportunistic job gets at the least, however busy the guaranteed ones are. */
#define REST_MILLI 50

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

static uint64_t own_peak(const struct sw_profile *job)
{
	uint64_t peak = 0;
	for (int r = 0; r < SW_USE_COUNT; r++)
		if (is_gpu_rate(r) && job->use_milli[r] > peak)
			peak = job->use_milli[r];
	return peak;
}

static void add_up(uint64_t sum[SW_USE_COUNT], const struct sw_profile *const *jobs, size_t count)
{
	for (int r = 0; r < SW_USE_COUNT; r++)
		for (size_t i = 0; i < count; i++)
			sum[r] += jobs[i]->use_milli[r];
}

/* The worst of the host's two resources, `sum` being what all residents use. */
static uint64_t host_milli(const struct sw_predict_model *model, const struct sw_profile *job, const uint64_t sum[SW_USE_COUNT])
{
	uint64_t cpu = 1000 + excess(sum[SW_USE_HOST_CPU]);
	uint64_t mem = 1000 + divide((uint64_t)model->host_mem_kappa_milli * job->use_milli[SW_USE_HOST_MEM] * excess(sum[SW_USE_HOST_MEM]),
				     1000000);
	return cpu > mem ? cpu : mem;
}

/* The worst rate of the GPU, `crowd` being what competes for it in thousandths of what there is. */
static uint64_t gpu_milli(const struct sw_profile *job, const uint64_t crowd[SW_USE_COUNT])
{
	uint64_t worst = 1000, peak = own_peak(job);
	for (int r = 0; r < SW_USE_COUNT; r++) {
		uint64_t slower = is_gpu_rate(r) && peak > 0 ? 1000 + divide(job->use_milli[r] * excess(crowd[r]), peak) : 1000;
		worst = slower > worst ? slower : worst;
	}
	return worst;
}

static uint32_t capped(uint64_t slow)
{
	return (uint32_t)(slow < SLOWEST_MILLI ? slow : SLOWEST_MILLI);
}

uint32_t sw_predict_slowdown_milli(const struct sw_predict_model *model, const struct sw_profile *job,
				   const struct sw_profile *const *others, size_t count)
{
	uint64_t sum[SW_USE_COUNT] = {0};
	add_up(sum, &job, 1);
	add_up(sum, others, count);
	uint64_t host = host_milli(model, job, sum), gpu = gpu_milli(job, sum);
	return capped((host > gpu ? host : gpu) + (count > 0 ? model->sharing_cost_milli : 0));
}

uint32_t sw_predict_gated_milli(const struct sw_predict_model *model, uint32_t gate_milli, const struct sw_profile *job, bool is_guaranteed,
				const struct sw_predict_neighbours *others)
{
	uint64_t ahead[SW_USE_COUNT] = {0}, behind[SW_USE_COUNT] = {0}, all[SW_USE_COUNT];
	add_up(ahead, others->guaranteed, others->guaranteed_count);
	add_up(behind, others->opportunistic, others->opportunistic_count);
	add_up(is_guaranteed ? ahead : behind, &job, 1);
	for (int r = 0; r < SW_USE_COUNT; r++) {
		uint64_t rest = ahead[r] < 1000 - REST_MILLI ? 1000 - ahead[r] : REST_MILLI;
		all[r] = ahead[r] + behind[r];
		behind[r] = behind[r] * 1000 / rest;
	}
	uint64_t host = host_milli(model, job, all), gpu = gpu_milli(job, is_guaranteed ? ahead : behind);
	uint64_t worst = host > gpu ? host : gpu;
	if (is_guaranteed && others->opportunistic_count > 0)
		worst = worst * gate_milli / 1000;
	return capped(worst + (others->guaranteed_count + others->opportunistic_count > 0 ? model->sharing_cost_milli : 0));
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
