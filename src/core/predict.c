/* What would become of jobs on one GPU, as the driver's predictor tells it; where there is none, no
 * job is said to gain by sharing. */
#include <string.h>

#include "core/state.h"

struct residents {
	uint32_t models[SW_RESIDENTS_MAX];
	bool guaranteed[SW_RESIDENTS_MAX];
	size_t count;
};

static void add(struct residents *residents, const struct sw_job *job, enum sw_job_class job_class)
{
	residents->models[residents->count] = job->model;
	residents->guaranteed[residents->count++] = job_class == SW_CLASS_GUARANTEED;
}

/* Where there are too many, each runs at 1/n too. */
static bool ask(const struct sw_view *view, const struct residents *residents, size_t count, uint32_t *ret_speed_milli)
{
	const struct sw_predictor *predictor = &view->engine->config.predictor;
	if (count == 1) {
		ret_speed_milli[0] = 1000;
		return predictor->speeds != NULL && residents->models[0] != 0;
	}
	if (predictor->speeds != NULL && count <= SW_RESIDENTS_MAX &&
	    predictor->speeds(predictor->context, residents->models, residents->guaranteed, count, ret_speed_milli))
		return true;
	for (size_t i = 0; i < count; i++)
		ret_speed_milli[i] = (uint32_t)(1000 / count);
	return false;
}

static uint32_t sum_of(const uint32_t *speed_milli, size_t count)
{
	uint32_t sum = 0;
	for (size_t i = 0; i < count; i++)
		sum += speed_milli[i];
	return sum;
}

bool sw_predict_together(const struct sw_view *view, const struct sw_job *const *jobs, size_t count, uint32_t *ret_speed_milli)
{
	struct residents residents = {.count = 0};
	for (size_t i = 0; i < count && i < SW_RESIDENTS_MAX; i++)
		add(&residents, jobs[i], (enum sw_job_class)jobs[i]->job_class);
	return count > 0 && ask(view, &residents, count, ret_speed_milli);
}

/* On one GPU; `beside` gets what is worse there. */
static void look_at(const struct sw_view *view, const struct sw_job *job, enum sw_job_class job_class, const struct sw_gpu *gpu,
		    struct sw_beside *beside)
{
	struct residents residents = {.count = 0};
	uint32_t speed[SW_RESIDENTS_MAX + 1], before[SW_RESIDENTS_MAX];
	for (uint32_t r = 0; r < gpu->residents; r++) {
		const struct sw_job *other = &view->engine->jobs.items[gpu->who[r]].seen;
		if (other != job)
			add(&residents, other, (enum sw_job_class)other->job_class);
	}
	size_t others = residents.count;
	uint32_t worth_before = 1000;
	if (others > 1) {
		(void)ask(view, &residents, others, before);
		worth_before = sum_of(before, others);
	}
	if (others < SW_RESIDENTS_MAX)
		add(&residents, job, job_class);
	beside->known &= ask(view, &residents, others + 1, speed);
	for (size_t i = 0; i < others; i++)
		beside->worst_milli = speed[i] < beside->worst_milli ? speed[i] : beside->worst_milli;
	beside->speed_milli = speed[others] < beside->speed_milli ? speed[others] : beside->speed_milli;
	uint32_t worth = sum_of(speed, others + 1);
	if (worth < beside->worth_milli) {
		beside->worth_milli = worth;
		beside->before_milli = worth_before;
	}
}

static bool fits(const struct sw_view *view, const struct sw_core_job *job, enum sw_job_class job_class, const struct sw_core_job *with)
{
	struct sw_share share = sw_share_of(&job->seen);
	const struct sw_ledger *ledger = &view->engine->ledger;
	share.compute_milli = 0;
	share.guaranteed = job_class == SW_CLASS_GUARANTEED;
	return job->seen.gpu_memory_bytes > 0 && with->seen.gpu_memory_bytes > 0 && with->split_milli == 0 &&
	       with->seen.gpus_held >= job->seen.min_gpus && with->seen.gpus_held <= job->seen.max_gpus &&
	       sw_ledger_fits(ledger, with->parts, share) && !sw_ledger_touches_closed(ledger, with->parts) &&
	       !sw_ledger_touches(ledger, with->parts, job->avoid);
}

bool sw_predict_beside(const struct sw_view *view, const struct sw_job *job, enum sw_job_class job_class, const struct sw_job *with,
		       struct sw_beside *ret_beside)
{
	const struct sw_ledger *ledger = &view->engine->ledger;
	const struct sw_core_job *own = sw_engine_own(view->engine, job), *host = sw_engine_own(view->engine, with);
	if (own == NULL || host == NULL || own == host || host->seen.state != SW_JOB_RUNNING)
		return false;
	struct sw_beside beside = {.speed_milli = UINT32_MAX, .worst_milli = UINT32_MAX, .worth_milli = UINT32_MAX, .known = true};
	const struct sw_gpu *before = NULL;
	for (uint32_t p = host->parts; p != SW_NO_PART; p = ledger->parts[p].next) {
		for (uint64_t rest = ledger->parts[p].mask; rest != 0; rest &= rest - 1) {
			const struct sw_gpu *gpu =
				&ledger->gpus[ledger->nodes[ledger->parts[p].node].first_gpu + (uint32_t)__builtin_ctzll(rest)];
			/* Mostly they sit together on all of their GPUs. */
			if (before == NULL || before->residents != gpu->residents ||
			    memcmp(before->who, gpu->who, gpu->residents * sizeof gpu->who[0]) != 0)
				look_at(view, &own->seen, job_class, gpu, &beside);
			before = gpu;
		}
	}
	beside.fits = fits(view, own, job_class, host);
	*ret_beside = beside;
	return true;
}
