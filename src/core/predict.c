/* What would become of a job by a wish, and of the jobs beside it. The driver's scaler tells what
 * its GPUs make of it, the driver's predictor what its neighbours do. Where there is no predictor,
 * no job is said to gain by sharing.
 *
 * A place is looked for as for a wish. What the job holds, or where it stands, is given back
 * meanwhile and taken again, so that nothing has changed.
 */
#include <string.h>

#include "core/state.h"

#define ALONE 1000u

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
		ret_speed_milli[0] = ALONE;
		return predictor->speeds != NULL && residents->models[0] != 0;
	}
	if (predictor->speeds != NULL && count <= SW_RESIDENTS_MAX &&
	    predictor->speeds(predictor->context, residents->models, residents->guaranteed, count, ret_speed_milli))
		return true;
	for (size_t i = 0; i < count; i++)
		ret_speed_milli[i] = (uint32_t)(ALONE / count);
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

/* ---- beside others */

/* On one GPU; `forecast` gets what is worse there. One that is paused slows no other down. */
static void look_at(const struct sw_view *view, const struct sw_job *job, enum sw_job_class job_class, const struct sw_gpu *gpu,
		    struct sw_run_forecast *forecast)
{
	struct residents residents = {.count = 0};
	uint32_t speed[SW_RESIDENTS_MAX + 1], before[SW_RESIDENTS_MAX];
	for (uint32_t r = 0; r < gpu->residents; r++) {
		const struct sw_job *other = &view->engine->jobs.items[gpu->who[r]].seen;
		if (other != job && !other->paused)
			add(&residents, other, (enum sw_job_class)other->job_class);
	}
	size_t others = residents.count;
	uint32_t worth_before = others == 0 ? 0 : ALONE;
	if (others > 1) {
		(void)ask(view, &residents, others, before);
		worth_before = sum_of(before, others);
	}
	if (others < SW_RESIDENTS_MAX)
		add(&residents, job, job_class);
	speed[0] = ALONE;
	if (others > 0)
		forecast->known &= ask(view, &residents, others + 1, speed);
	for (size_t i = 0; i < others; i++)
		forecast->worst_milli = speed[i] < forecast->worst_milli ? speed[i] : forecast->worst_milli;
	forecast->share_milli = speed[others] < forecast->share_milli ? speed[others] : forecast->share_milli;
	uint32_t worth = sum_of(speed, others + 1);
	if (worth < forecast->worth_milli) {
		forecast->worth_milli = worth;
		forecast->before_milli = worth_before;
	}
}

/* On all GPUs of these parts. */
static void look_around(const struct sw_view *view, const struct sw_job *job, enum sw_job_class job_class, uint32_t parts,
			struct sw_run_forecast *forecast)
{
	const struct sw_ledger *ledger = &view->engine->ledger;
	const struct sw_gpu *before = NULL;
	for (uint32_t p = parts; p != SW_NO_PART; p = ledger->parts[p].next) {
		for (uint64_t rest = ledger->parts[p].mask; rest != 0; rest &= rest - 1) {
			const struct sw_gpu *gpu =
				&ledger->gpus[ledger->nodes[ledger->parts[p].node].first_gpu + (uint32_t)__builtin_ctzll(rest)];
			/* Mostly they sit together on all of their GPUs. */
			if (before == NULL || before->residents != gpu->residents ||
			    memcmp(before->who, gpu->who, gpu->residents * sizeof gpu->who[0]) != 0)
				look_at(view, job, job_class, gpu, forecast);
			before = gpu;
		}
	}
}

/* ---- on its GPUs */

static struct sw_run_shape shape_of(const struct sw_engine *engine, const struct sw_core_job *own, uint32_t gpus, uint32_t parts,
				    uint32_t split_milli, uint32_t cpus)
{
	const struct sw_job *job = &own->seen;
	return (struct sw_run_shape){
		.model = job->model,
		.gpus_asked = job->gpus,
		.gpus = gpus,
		.split_milli = split_milli,
		.gpu_types = sw_types_of(engine, parts),
		.cpus_asked = own->asked_cpus,
		.cpus = cpus,
		.distance = (uint8_t)sw_ledger_distance(&engine->ledger, parts),
		.best = (uint8_t)sw_topology_best(engine->topology, gpus),
	};
}

struct sw_run_shape sw_engine_run_shape(const struct sw_engine *engine, struct sw_job_id id)
{
	const struct sw_core_job *job = &engine->jobs.items[id.v];
	return shape_of(engine, job, job->seen.gpus_held, job->parts, job->split_milli, job->config.cpus);
}

/* Without a scaler as the engine itself takes it to be. */
static bool scale(const struct sw_engine *engine, const struct sw_run_shape *shape, uint32_t *ret_slow_milli)
{
	const struct sw_scaler *scaler = &engine->config.scaler;
	if (scaler->slow != NULL)
		return scaler->slow(scaler->context, shape, ret_slow_milli);
	bool asked = shape->gpus == shape->gpus_asked || shape->split_milli != 0;
	uint64_t slow = shape->split_milli != 0 ? shape->split_milli : asked ? ALONE : (uint64_t)ALONE * shape->gpus_asked / shape->gpus;
	*ret_slow_milli = slow < 1 ? 1 : slow < UINT32_MAX ? (uint32_t)slow : UINT32_MAX;
	return asked;
}

/* ---- a place */

struct candidate {
	uint32_t parts, gpus, split_milli;
	uint32_t cpus; /* per GPU, as it would be set up; 0: as it asked */
	bool fits;
};

static void judge(const struct sw_view *view, const struct sw_core_job *own, enum sw_job_class job_class, const struct candidate *place,
		  struct sw_run_forecast *forecast)
{
	const struct sw_engine *engine = view->engine;
	const struct sw_job *job = &own->seen;
	const struct sw_run_shape shape = shape_of(engine, own, place->gpus, place->parts, place->split_milli, place->cpus);
	uint32_t slow = ALONE;
	*forecast = (struct sw_run_forecast){
		.share_milli = UINT32_MAX,
		.worst_milli = ALONE,
		.worth_milli = UINT32_MAX,
		.gpus = place->gpus,
		.power_watts = sw_types_power(engine, place->parts),
		.gpu_memory_bytes = job->gpu_memory_bytes,
		.fits = place->fits,
		.known = scale(engine, &shape, &slow),
	};
	look_around(view, job, job_class, place->parts, forecast);
	forecast->speed_milli = slow == ALONE ? forecast->share_milli : (uint32_t)((uint64_t)forecast->share_milli * ALONE / slow);
}

/* No GPUs are known on which it would be: in the best place, of the types that are there, on this
 * node or (UINT32_MAX) anywhere. */
static void dream(const struct sw_view *view, const struct sw_core_job *own, uint32_t gpus, uint32_t node, struct sw_run_forecast *forecast)
{
	const struct sw_job *job = &own->seen;
	const struct sw_engine *engine = view->engine;
	uint8_t best = (uint8_t)sw_topology_best(engine->topology, gpus);
	struct sw_run_shape shape = {.model = job->model,
				     .gpus_asked = job->gpus,
				     .gpus = gpus,
				     .cpus_asked = own->asked_cpus,
				     .cpus = own->config.cpus,
				     .distance = best,
				     .best = best};
	uint64_t types = node == UINT32_MAX ? engine->topology->gpu_types : UINT64_C(1) << engine->topology->nodes[node].gpu_type;
	uint32_t slow = ALONE, least = UINT32_MAX;
	bool known = true;
	for (; types != 0; types &= types - 1) {
		shape.gpu_types = types & -types;
		known &= scale(engine, &shape, &slow);
		least = slow < least ? slow : least;
	}
	uint32_t speed = (uint32_t)(UINT64_C(1000000) / (least == UINT32_MAX ? ALONE : least));
	*forecast = (struct sw_run_forecast){.speed_milli = speed,
					     .share_milli = ALONE,
					     .worst_milli = ALONE,
					     .worth_milli = ALONE,
					     .gpus = gpus,
					     .gpu_memory_bytes = job->gpu_memory_bytes,
					     .known = known};
}

static enum sw_job_class class_by(const struct sw_job *job, uint8_t as)
{
	if (as == SW_AS_ASKED)
		return (enum sw_job_class)(job->state == SW_JOB_RUNNING ? job->job_class : job->asked_class);
	return as == SW_AS_GUARANTEED ? SW_CLASS_GUARANTEED : SW_CLASS_OPPORTUNISTIC;
}

/* ---- beside a running job */

static bool fits_beside(const struct sw_view *view, const struct sw_core_job *job, const struct sw_wish *wish,
			const struct sw_core_job *with)
{
	struct sw_share share = sw_share_of(&job->seen);
	const struct sw_ledger *ledger = &view->engine->ledger;
	share.compute_milli = wish->promise == SW_REST ? 0 : share.compute_milli;
	share.guaranteed = class_by(&job->seen, wish->as) == SW_CLASS_GUARANTEED;
	return job->seen.gpu_memory_bytes > 0 && with->seen.gpu_memory_bytes > 0 && with->split_milli == 0 &&
	       with->seen.gpus_held >= job->seen.min_gpus && with->seen.gpus_held <= job->seen.max_gpus &&
	       sw_ledger_fits(ledger, with->parts, share) && !sw_ledger_touches_closed(ledger, with->parts) &&
	       !sw_ledger_touches(ledger, with->parts, job->avoid);
}

static bool predict_beside(const struct sw_view *view, const struct sw_core_job *job, const struct sw_wish *wish,
			   struct sw_run_forecast *ret_forecast)
{
	const struct sw_core_job *host = sw_engine_own(view->engine, wish->where.beside);
	if (host == NULL || host == job || host->seen.state != SW_JOB_RUNNING)
		return false;
	uint32_t cpus = wish->config.cpus != 0 ? wish->config.cpus : job->config.cpus;
	const struct candidate place = {host->parts, host->seen.gpus_held, 0, cpus, fits_beside(view, job, wish, host)};
	judge(view, job, class_by(&job->seen, wish->as), &place, ret_forecast);
	return true;
}

/* ---- elsewhere */

/* The largest part of a split. */
static uint64_t largest_of(const struct sw_split *split)
{
	uint64_t most = 0;
	for (uint32_t p = 0; p < split->count; p++)
		most = split->parts[p].memory_bytes > most ? split->parts[p].memory_bytes : most;
	return most;
}

/* On GPUs that the wish names; false: they make no sense. */
static bool judge_named(const struct sw_view *view, struct sw_core_job *job, const struct sw_wish *wish,
			struct sw_run_forecast *ret_forecast)
{
	struct sw_engine *engine = view->engine;
	const struct sw_split *split = wish->where.kind == SW_WHERE_PARTS ? wish->where.parts : NULL;
	struct sw_spot spot;
	bool open = true, sensible;
	if (split != NULL) {
		sw_spot_begin(&spot, &engine->ledger, sw_share_of(&job->seen));
		sensible = job->seen.gpus == 1 && sw_split_is_sensible(split->alone_milli, split->count) &&
			   sw_split_gather(engine, split, &spot);
		open = sensible && !sw_ledger_touches_closed(&engine->ledger, spot.head) &&
		       !sw_ledger_touches(&engine->ledger, spot.head, job->avoid) && engine->config.splitter != NULL;
	} else {
		sensible = sw_plan_gather_at(engine, job, wish->where.gpus, wish->where.count, &spot, &open);
	}
	bool answers = sensible && !spot.failed;
	if (answers) {
		const struct candidate place = {spot.head, spot.gpus, split != NULL ? split->alone_milli : 0, job->config.cpus,
						open && sw_ledger_fits(&engine->ledger, spot.head, spot.share)};
		judge(view, job, (enum sw_job_class)job->seen.job_class, &place, ret_forecast);
		if (split != NULL)
			ret_forecast->gpu_memory_bytes = largest_of(split);
	}
	sw_spot_discard(&spot);
	return answers;
}

/* On what is held for it, where it would start then. */
static bool judge_held(const struct sw_view *view, const struct sw_core_job *job, uint32_t gpus, struct sw_run_forecast *ret_forecast)
{
	const struct sw_engine *engine = view->engine;
	const struct sw_ledger *ledger = &engine->ledger;
	if (!sw_hold_suffices(engine, job, gpus))
		return false;
	uint32_t parts = sw_hold_of(engine, job->seen.id.v)->parts;
	if (!sw_ledger_is_free(ledger, parts) || sw_ledger_touches_closed(ledger, parts) ||
	    !sw_ledger_fits(ledger, parts, sw_share_of(&job->seen)))
		return false;
	const struct candidate place = {parts, gpus, 0, job->config.cpus, sw_plan_has_asked(ledger, parts, job)};
	judge(view, job, (enum sw_job_class)job->seen.job_class, &place, ret_forecast);
	return true;
}

static void judge_found(const struct sw_view *view, struct sw_core_job *job, uint32_t gpus, const struct sw_wish *wish,
			struct sw_run_forecast *ret_forecast)
{
	struct sw_engine *engine = view->engine;
	struct sw_place where = sw_plan_place_of(engine, &wish->where);
	uint32_t parts;
	if (sw_plan_is_homebound(engine, job))
		gpus = sw_ledger_count_gpus(&engine->ledger, job->home);
	if (where.rule == engine->config.placement && judge_held(view, job, gpus, ret_forecast))
		return;
	bool found = sw_plan_find(&engine->plan, job, gpus, where, &parts);
	if (!found && wish->where.kind == SW_WHERE_CLUSTER && sw_order_takes_any_place(engine)) {
		where.rule = NULL;
		found = sw_plan_find(&engine->plan, job, gpus, where, &parts);
	}
	if (!found) {
		dream(view, job, gpus, where.node, ret_forecast);
		return;
	}
	const struct candidate place = {parts, gpus, 0, job->config.cpus, sw_plan_has_asked(&engine->ledger, parts, job)};
	judge(view, job, (enum sw_job_class)job->seen.job_class, &place, ret_forecast);
	sw_plan_let_go(&engine->plan, job, parts);
}

/* Where it runs, set up otherwise. */
static void judge_here(const struct sw_view *view, const struct sw_core_job *job, uint32_t held, struct sw_run_forecast *ret_forecast)
{
	struct sw_engine *engine = view->engine;
	uint32_t parts = sw_config_parts(engine, job, held);
	bool fits = parts != SW_NO_PART && sw_ledger_fits(&engine->ledger, parts, sw_share_of(&job->seen)) &&
		    sw_plan_has_asked(&engine->ledger, parts, job);
	const struct candidate place = {held, job->seen.gpus_held, job->split_milli, job->config.cpus, fits};
	judge(view, job, (enum sw_job_class)job->seen.job_class, &place, ret_forecast);
	sw_ledger_drop_parts(&engine->ledger, parts);
}

/* With the class, the compute and the configuration of the wish, as if the job were nowhere. */
static bool predict_elsewhere(const struct sw_view *view, struct sw_core_job *job, const struct sw_wish *wish,
			      struct sw_run_forecast *ret_forecast)
{
	struct sw_engine *engine = view->engine;
	struct sw_job kept = job->seen;
	struct sw_config config = job->config, wished = sw_config_with(config, &wish->config);
	bool runs = kept.state == SW_JOB_RUNNING, answers = true;
	uint32_t gpus = wish->gpus != 0 ? wish->gpus : runs ? kept.gpus_held : kept.gpus, stood = job->stands;
	if (runs)
		sw_ledger_give(&engine->ledger, job->parts, sw_share_of(&kept));
	sw_engine_rise(engine, job);
	if (!sw_plan_is_homebound(engine, job))
		sw_config_put(job, &wished);
	job->seen.job_class = (uint8_t)class_by(&kept, wish->as);
	if (wish->promise == SW_REST)
		job->seen.compute_milli = 0;
	if (wish->where.kind == SW_WHERE_GPUS || wish->where.kind == SW_WHERE_PARTS)
		answers = judge_named(view, job, wish, ret_forecast);
	else if (runs && wish->where.kind == SW_WHERE_CLUSTER && gpus == kept.gpus_held)
		judge_here(view, job, job->parts, ret_forecast);
	else
		judge_found(view, job, gpus, wish, ret_forecast);
	job->seen = kept;
	job->config = config;
	if (stood != SW_NO_PART)
		sw_engine_stand(engine, job, stood);
	if (runs) {
		sw_ledger_take(&engine->ledger, job->parts, sw_share_of(&kept));
		if (answers && (job->split_milli != 0 || kept.paused))
			ret_forecast->fits = false; /* such a run stays where it is */
	}
	return answers;
}

bool sw_predict_run(const struct sw_view *view, const struct sw_job *seen, const struct sw_wish *wish, struct sw_run_forecast *ret_forecast)
{
	static const struct sw_wish ordinary = {0};
	struct sw_core_job *job = sw_engine_own(view->engine, seen);
	wish = wish != NULL ? wish : &ordinary;
	bool sets_up = !sw_config_is_zero(&wish->config);
	if (job == NULL || view->engine->plan.looks || job->seen.state > SW_JOB_RUNNING ||
	    !sw_plan_is_wish(view->engine, job, wish, sets_up))
		return false;
	bool runs = job->seen.state == SW_JOB_RUNNING, beside = wish->where.kind == SW_WHERE_BESIDE;
	if (beside || !runs || wish->where.kind != SW_WHERE_CLUSTER || (wish->gpus != 0 && wish->gpus != job->seen.gpus_held) || sets_up) {
		bool shaded = sw_shade_cast(view->engine, job, wish->until != 0 ? wish->until : job->seen.until);
		bool answers = beside ? predict_beside(view, job, wish, ret_forecast) : predict_elsewhere(view, job, wish, ret_forecast);
		if (shaded)
			sw_shade_lift(view->engine);
		return answers;
	}
	/* A longer lease may be refused where GPUs are held for another. */
	bool stays = wish->until == 0 || !sw_hold_closes_parts(view->engine, job, job->parts, wish->until);
	const struct candidate place = {job->parts, job->seen.gpus_held, job->split_milli, job->config.cpus, stays};
	judge(view, job, class_by(&job->seen, wish->as), &place, ret_forecast);
	return true;
}
