/* Types of GPUs, as the driver knows them: what policies are told. */
#include "core/state.h"

uint32_t sw_view_gpu_types(const struct sw_view *view)
{
	const struct sw_gpu_types *types = view->engine->config.gpu_types;
	return types != NULL ? types->count : 0;
}

bool sw_view_gpu_type(const struct sw_view *view, uint32_t gpu_type, struct sw_gpu_type *ret_type)
{
	const struct sw_gpu_types *types = view->engine->config.gpu_types;
	if (types == NULL || gpu_type >= types->count) {
		*ret_type = (struct sw_gpu_type){.name = "", .speed_milli = 1000};
		return false;
	}
	*ret_type = types->items[gpu_type];
	return true;
}

uint32_t sw_job_type_speed_milli(const struct sw_view *view, const struct sw_job *job, uint32_t gpu_type)
{
	const struct sw_scaler *scaler = &view->engine->config.scaler;
	const struct sw_core_job *own = sw_engine_own(view->engine, job);
	uint32_t slow = 1000;
	if (scaler->slow == NULL || own == NULL || gpu_type >= SW_GPU_TYPES_MAX)
		return 1000;
	const struct sw_run_shape shape = {
		.model = job->model, .gpus_asked = job->gpus, .gpus = job->gpus, .gpu_types = UINT64_C(1) << gpu_type};
	(void)scaler->slow(scaler->context, &shape, &slow);
	return (1000000 + slow / 2) / slow;
}

uint32_t sw_types_sum_power(const struct sw_engine *engine, uint32_t parts)
{
	const struct sw_gpu_types *types = engine->config.gpu_types;
	uint64_t watts = 0;
	for (uint32_t p = parts; p != SW_NO_PART; p = engine->ledger.parts[p].next) {
		const struct sw_part *part = &engine->ledger.parts[p];
		uint32_t type = engine->topology->nodes[part->node].gpu_type;
		uint64_t each = type < types->count ? types->items[type].busy_watts : 0;
		if (each == 0)
			return 0;
		watts += each * (uint64_t)__builtin_popcountll(part->mask);
	}
	return watts < UINT32_MAX ? (uint32_t)watts : UINT32_MAX;
}
