#include "contention/predict.h"

#define MILLION UINT64_C(1000000)
/* The repetition falls towards its answer and ends by itself where nothing changes any more; this
 * is for the last digits. */
#define ROUNDS_MAX 200

const struct sw_predict_model sw_predict_default = {
	.host_mem_kappa_milli = 5000, .sharing_cost_milli = 0, .switch_cost_milli = 70, .gate_cost_milli = 20, .gate_use_milli = 800};

const char *sw_predict_way_name(size_t way)
{
	static const char *const names[SW_WAY_COUNT] = {"slices", "mps", "gate"};
	return way < SW_WAY_COUNT ? names[way] : NULL;
}

const char *sw_predict_bound_name(int bound)
{
	static const char *const names[] = {"SM",   "memory pipeline", "L2 cache",    "memory reads", "memory writes",
					    "PCIe", "host cores",      "host memory", "nothing",      "its turn on the GPU"};
	return bound >= 0 && (size_t)bound < sizeof names / sizeof names[0] ? names[bound] : "?";
}

static uint64_t divide(uint64_t dividend, uint64_t divisor)
{
	return (dividend + divisor / 2) / divisor;
}

static uint32_t capped(uint64_t slow_milli)
{
	return (uint32_t)(slow_milli < SW_PREDICT_SLOWEST_MILLI ? slow_milli : SW_PREDICT_SLOWEST_MILLI);
}

static void slow_down(struct sw_prediction *prediction, uint64_t slow_milli, int bound)
{
	if (slow_milli > prediction->slow_milli)
		*prediction = (struct sw_prediction){capped(slow_milli), bound};
}

static void add_up(uint64_t *sum, const struct sw_profile *const *jobs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		for (int r = 0; r < SW_USE_COUNT; r++)
			sum[r] += jobs[i]->use_milli[r];
}

/* By how much the uses of a resource together exceed it. */
static uint64_t excess(uint64_t sum_milli)
{
	return sum_milli > 1000 ? sum_milli - 1000 : 0;
}

static void wait_for_gpu_parts(const struct sw_profile *job, const uint64_t *sum, struct sw_prediction *prediction)
{
	uint64_t own_peak = 0;
	for (int r = 0; r < SW_USE_HOST_CPU; r++)
		own_peak = job->use_milli[r] > own_peak ? job->use_milli[r] : own_peak;
	for (int r = 0; r < SW_USE_HOST_CPU && own_peak > 0; r++)
		slow_down(prediction, 1000 + divide(job->use_milli[r] * excess(sum[r]), own_peak), r);
}

static void wait_for_host(const struct sw_predict_model *model, const struct sw_profile *job, const uint64_t *sum,
			  struct sw_prediction *prediction)
{
	uint64_t paging = (uint64_t)model->host_mem_kappa_milli * job->use_milli[SW_USE_HOST_MEM] * excess(sum[SW_USE_HOST_MEM]);
	slow_down(prediction, 1000 + excess(sum[SW_USE_HOST_CPU]), SW_USE_HOST_CPU);
	slow_down(prediction, 1000 + divide(paging, MILLION), SW_USE_HOST_MEM);
}

/* Taking turns. All fractions in millionths; jobs in ascending order of `busy`, so that rounding
 * does not depend on how they were given. */
struct turns {
	size_t count;
	uint64_t busy[SW_PREDICT_TURNS_MAX];
	uint64_t rate[SW_PREDICT_TURNS_MAX]; /* of the GPU, while the job has work */
	uint64_t given;			     /* of the GPU's time, what there is for all of them */
	uint64_t switched;		     /* what remains of that when it switches between jobs */
};

/* The part of the GPU that job `i` gets while it has work, where job j has work for the part
 * active[j] of the time. */
static uint64_t rate_among(const struct turns *turns, const uint64_t *active, size_t i)
{
	uint64_t chance[SW_PREDICT_TURNS_MAX + 1] = {MILLION}; /* that so many others have work */
	size_t others = 0;
	for (size_t j = 0; j < turns->count; j++) {
		if (j == i)
			continue;
		chance[++others] = 0;
		for (size_t k = others; k > 0; k--)
			chance[k] = divide(chance[k] * (MILLION - active[j]) + chance[k - 1] * active[j], MILLION);
		chance[0] = divide(chance[0] * (MILLION - active[j]), MILLION);
	}
	uint64_t rate = chance[0];
	for (size_t k = 1; k <= others; k++)
		rate += divide(chance[k] * turns->switched, (k + 1) * MILLION);
	rate = divide(rate * turns->given, MILLION);
	return rate > 0 ? rate : 1;
}

static void settle(struct turns *turns)
{
	for (size_t i = 0; i < turns->count; i++)
		turns->rate[i] = turns->given;
	bool changed = true;
	for (int round = 0; changed && round < ROUNDS_MAX; round++) {
		uint64_t active[SW_PREDICT_TURNS_MAX];
		for (size_t i = 0; i < turns->count; i++)
			active[i] = divide(turns->busy[i] * MILLION,
					   turns->busy[i] + divide(turns->rate[i] * (MILLION - turns->busy[i]), MILLION));
		changed = false;
		for (size_t i = 0; i < turns->count; i++) {
			uint64_t rate = rate_among(turns, active, i);
			changed = changed || rate != turns->rate[i];
			turns->rate[i] = rate;
		}
	}
}

/* The jobs take turns in `given` of the GPU's time. */
static void take_turns(const struct sw_predict_model *model, const struct sw_profile *const *jobs, size_t count, uint64_t given,
		       struct sw_prediction *predictions)
{
	if (given == 0 || count > SW_PREDICT_TURNS_MAX) {
		for (size_t i = 0; i < count; i++)
			slow_down(&predictions[i], SW_PREDICT_SLOWEST_MILLI, SW_BOUND_TURNS);
		return;
	}
	struct turns turns = {.count = count, .given = given, .switched = divide(MILLION * 1000, 1000 + model->switch_cost_milli)};
	size_t order[SW_PREDICT_TURNS_MAX];
	for (size_t i = 0; i < count; i++) {
		size_t at = i;
		for (; at > 0 && jobs[order[at - 1]]->busy_milli > jobs[i]->busy_milli; at--)
			order[at] = order[at - 1];
		order[at] = i;
	}
	for (size_t i = 0; i < count; i++)
		turns.busy[i] = jobs[order[i]]->busy_milli * UINT64_C(1000);
	settle(&turns);
	for (size_t i = 0; i < count; i++) {
		uint64_t slow = MILLION - turns.busy[i] + divide(turns.busy[i] * MILLION, turns.rate[i]);
		slow_down(&predictions[order[i]], divide(slow, 1000), SW_BOUND_TURNS);
	}
}

/* The first `guaranteed` go ahead; the others take turns in what these leave idle together, where
 * each rests when it does whatever the others do. */
static void pass_gate(const struct sw_predict_model *model, const struct sw_profile *const *jobs, size_t guaranteed, size_t count,
		      struct sw_prediction *predictions)
{
	uint64_t idle = MILLION;
	for (size_t i = 0; i < guaranteed; i++) {
		idle = divide(idle * (1000 - jobs[i]->busy_milli), 1000);
		slow_down(&predictions[i], divide(predictions[i].slow_milli * (UINT64_C(1000) + model->gate_cost_milli), 1000),
			  SW_BOUND_TURNS);
	}
	take_turns(model, jobs + guaranteed, count - guaranteed, divide(idle * model->gate_use_milli, 1000), predictions + guaranteed);
}

/* Jobs that are all alike to the GPU. */
static void share_alike(const struct sw_predict_model *model, enum sw_predict_way way, const struct sw_profile *const *jobs, size_t count,
			struct sw_prediction *predictions)
{
	uint64_t sum[SW_USE_COUNT] = {0};
	add_up(sum, jobs, count);
	if (way == SW_WAY_SLICES && count > 1)
		take_turns(model, jobs, count, MILLION, predictions);
	for (size_t i = 0; i < count && way == SW_WAY_MPS; i++)
		wait_for_gpu_parts(jobs[i], sum, &predictions[i]);
}

void sw_predict_gated(const struct sw_predict_model *model, enum sw_predict_way among, const struct sw_profile *const *jobs,
		      size_t guaranteed, size_t count, struct sw_prediction *ret_predictions)
{
	uint64_t sum[SW_USE_COUNT] = {0};
	bool gate = guaranteed > 0 && guaranteed < count;
	add_up(sum, jobs, count);
	for (size_t i = 0; i < count; i++)
		ret_predictions[i] = (struct sw_prediction){1000, SW_BOUND_NOTHING};
	share_alike(model, among, jobs, gate ? guaranteed : count, ret_predictions);
	if (gate)
		pass_gate(model, jobs, guaranteed, count, ret_predictions);
	for (size_t i = 0; i < count; i++) {
		wait_for_host(model, jobs[i], sum, &ret_predictions[i]);
		if (among == SW_WAY_MPS && count > 1)
			ret_predictions[i].slow_milli = capped((uint64_t)ret_predictions[i].slow_milli + model->sharing_cost_milli);
	}
}

void sw_predict_set(const struct sw_predict_model *model, enum sw_predict_way way, const struct sw_profile *const *jobs, size_t count,
		    struct sw_prediction *ret_predictions)
{
	bool gate = way == SW_WAY_GATE;
	sw_predict_gated(model, gate ? SW_WAY_SLICES : way, jobs, gate ? 1 : count, count, ret_predictions);
}
