#include "sim/model.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/heap.h"
#include "contention/crowd.h"
#include "sim/boots.h"
#include "sim/faults.h"
#include "sim/interleave.h"
#include "sim/neighbours.h"
#include "world/alone.h"

#define WHOLE 1000
#define SLOWEST 1000000u
/* Of the GPU; where a world takes it to be enough for all, nothing hangs on how much it is. */
#define SOME_MEMORY (UINT64_C(1) << 20)
#define LEARNED_MAX ((size_t)16 << 20)

/* Time per unit of work, as a fraction: some worlds have more of it than fits into thousandths. */
struct pace {
	int64_t slow, full;
};
static const struct pace full_speed = {WHOLE, WHOLE};

/* One job in the world. */
struct life {
	int64_t left_ns; /* work left at as_of_ns, in time alone on the GPUs it asked for */
	int64_t as_of_ns;
	int64_t stall_until_ns; /* no progress before: starting, copying */
	int64_t kept_ns;	/* work left when its state was last safe: where it falls back to */
	int64_t overhead_ns;	/* per event, in worlds that charge it */
	int64_t told_end_ns;	/* when the engine takes it to end */
	struct pace pace;
	uint32_t wave; /* the last disturbance that reached it */
	uint32_t epoch;
	const struct sw_profile *profile;
	bool runs;
	bool paused; /* runs, and stands still */
	bool has_run;
	bool lost_state;     /* must start from a checkpoint */
	bool is_inside;	     /* what its last stop cost is in its run time already */
	uint32_t inside;     /* stops that are, and have not come yet */
	uint32_t told_milli; /* its speed, where that is measured */
	uint32_t starts;     /* how often it was started, or went on after it was suspended */
	bool will_fail;	     /* the event ahead is a failure */
};

struct sw_world_model {
	const struct sw_world *world;
	const struct sw_trace *trace;
	const struct sw_topology *topology;
	struct life *lives;
	uint32_t count;
	uint32_t wave;	       /* counts disturbances */
	struct sw_heap ends;   /* by time */
	struct sw_heap begins; /* when runs are heard to have begun, where a history tells that */
	sw_events news;	       /* learned since the last step */
	struct sw_faults *faults;
	struct sw_boots *boots;
	struct sw_neighbours *neighbours; /* NULL where they do not matter */
	struct sw_crowd *crowd;		  /* where they matter by their profiles */
	struct sw_learn *learn;		  /* what was measured and corrects these; NULL: nothing */
	const struct sw_profiles *profiles;
	struct sw_alone *alone;	   /* how fast jobs run without neighbours */
	struct sw_alone *expected; /* the same as policies expect it; another in a history */
	bool costs_nothing;	   /* every job runs at full speed from its start: the common case in big runs */
};

/* ---- life */

/* What a controller told its scheduler of the job; NULL: the world does, or the trace does not
 * say. */
static const struct sw_trace_told *told_of(const struct sw_world_model *model, uint32_t id)
{
	uint32_t told = model->world->recorded ? model->trace->jobs.items[id].told : 0;
	return told != 0 ? &model->trace->told.items[told - 1] : NULL;
}

sw_ns sw_world_model_zero(const struct sw_world_model *model)
{
	return model->world->recorded ? model->trace->clock_ns : 0;
}

static sw_ns deadline_of(const struct sw_world_model *model, const struct sw_trace_job *job)
{
	return job->deadline_ns != SW_NEVER ? job->deadline_ns + sw_world_model_zero(model) : SW_TIME_NEVER;
}

static int64_t work_of(const struct sw_world_model *model, const struct sw_trace_job *job, const struct sw_profile *profile)
{
	int64_t work = job->duration_ns;
	if (model->world->work_from_iterations && job->iterations > 0 && job->iteration_ns > 0) {
		if (sw_world_work_ns(model->world, job->iterations, job->iteration_ns, &work) < 0)
			work = job->duration_ns;
	} else if (work == 0) {
		if (sw_profile_duration(profile, job->iterations, job->batch_size, job->gpus, &work) < 0)
			work = 0;
	}
	return work;
}

/* The profiles that were looked up last: most jobs share a model and a batch with others. */
struct looked_up {
	const struct sw_profile *profile; /* NULL: none yet */
	uint32_t model, batch;
};
#define LOOKED_UP 256u

static const struct sw_profile *profile_of(struct looked_up *seen, const struct sw_profiles *profiles, const struct sw_trace *trace,
					   const struct sw_trace_job *job)
{
	struct looked_up *one = &seen[(job->model * 31 + job->batch_size) % LOOKED_UP];
	if (one->profile == NULL || one->model != job->model || one->batch != job->batch_size)
		*one = (struct looked_up){sw_profiles_find_batch(profiles, sw_trace_string(trace, job->model), job->batch_size), job->model,
					  job->batch_size};
	return one->profile;
}

static void bring_to_life(struct sw_world_model *model, const struct sw_profiles *profiles)
{
	const struct sw_trace *trace = model->trace;
	struct looked_up seen[LOOKED_UP] = {0};
	for (uint32_t j = 0; j < model->count; j++) {
		const struct sw_trace_job *job = &trace->jobs.items[j];
		struct life *life = &model->lives[j];
		life->profile = profile_of(seen, profiles, trace, job);
		life->left_ns = life->kept_ns = work_of(model, job, life->profile);
		if (model->world->recorded && job->fate != 0)
			life->inside = trace->fates.items[job->fate - 1].preemptions;
		if (model->world->event_overhead)
			life->overhead_ns = sw_world_event_overhead_ns(model->world, sw_trace_string(trace, job->model), job->gpus);
	}
}

static int make_crowd(struct sw_world_model *model, struct sw_err *err)
{
	struct sw_terms terms = sw_world_terms(model->world);
	struct sw_crowd_rule rule = sw_terms_crowd_rule(&terms);
	const char *path = model->world->learned;
	SW_CLEANUP(sw_freep) char *text = NULL;
	size_t size;
	int r = sw_crowd_new(model->profiles, &rule, &model->crowd, err);
	if (r < 0 || path == NULL || path[0] == '\0')
		return r;
	r = sw_file_read(path, LEARNED_MAX, &text, &size, err);
	r = r < 0 ? r : sw_learn_new(model->profiles, &rule.model, &model->learn, err);
	r = r < 0 ? r : sw_learn_read(model->learn, path, text, size, err);
	if (r == 0)
		sw_crowd_correct(model->crowd, model->learn);
	return r;
}

/* What happened in a history had all slowdowns in it; what its policies expected did not. */
static int make_alone(struct sw_world_model *model, struct sw_err *err)
{
	int r = sw_alone_new(model->profiles, &model->alone, err);
	model->expected = model->alone;
	if (r == 0 && model->world->recorded)
		r = sw_alone_new(model->profiles, &model->expected, err);
	if (r == 0)
		sw_alone_set_placement(model->expected, model->world->placement_slowdown);
	return r;
}

int sw_world_model_name_types(struct sw_world_model *model, const char *const *names, size_t count)
{
	if (sw_alone_set_types(model->expected, &model->world->gpu_types, names, count) < 0)
		return SW_ENOMEM;
	model->costs_nothing &= !sw_alone_has_speeds(model->alone);
	return 0;
}

int sw_world_model_new(const struct sw_world *world, const struct sw_profiles *profiles, const struct sw_trace *trace,
		       const struct sw_topology *topology, uint64_t seed, struct sw_world_model **ret_model, struct sw_err *err)
{
	SW_CLEANUP(sw_world_model_freep) struct sw_world_model *model = calloc(1, sizeof *model);
	if (model == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	*model = (struct sw_world_model){
		.world = world, .profiles = profiles, .trace = trace, .topology = topology, .count = (uint32_t)trace->jobs.count};
	model->costs_nothing = (world->replace_is_free || (world->migrate.fixed_ns == 0 && world->migrate.bytes_per_s == 0)) &&
			       world->preempt == SW_PREEMPT_FREE && world->start_ns == 0 && world->restart_ns == 0 &&
			       (!world->placement_slowdown || world->recorded) && !world->sharing_slowdown && !world->event_overhead &&
			       world->job_failure_ppm == 0;
	model->lives = calloc(model->count + 1, sizeof *model->lives);
	if (model->lives == NULL || sw_heap_reserve(&model->ends, model->count + 1) < 0 ||
	    sw_heap_reserve(&model->begins, model->count + 1) < 0)
		return sw_err_set(err, SW_ENOMEM, "out of memory for %u jobs", model->count);
	bring_to_life(model, profiles);
	if (world->sharing_slowdown && !world->recorded) {
		model->neighbours = sw_neighbours_new(topology->gpu_count, model->count);
		if (model->neighbours == NULL)
			return sw_err_set(err, SW_ENOMEM, "out of memory for %u GPUs", topology->gpu_count);
	}
	int r = make_alone(model, err);
	if (r < 0)
		return r;
	r = world->sharing_slowdown && world->sharing_by != SW_SHARING_BY_STAGES ? make_crowd(model, err) : 0;
	if (r < 0)
		return r;
	r = sw_faults_new(world, topology, seed, &model->faults);
	r = r < 0 ? r : sw_boots_new(topology->node_count, world->boot_ns, &model->boots);
	if (r < 0)
		return sw_err_set(err, r, "out of memory");
	*ret_model = SW_TAKE(model);
	return 0;
}

void sw_world_model_free(struct sw_world_model *model)
{
	free(model->lives);
	if (model->neighbours != NULL)
		sw_neighbours_free(model->neighbours);
	if (model->crowd != NULL)
		sw_crowd_free(model->crowd);
	if (model->expected != model->alone)
		sw_alone_free(model->expected);
	sw_alone_free(model->alone);
	if (model->learn != NULL)
		sw_learn_free(model->learn);
	sw_heap_release(&model->ends);
	sw_heap_release(&model->begins);
	sw_vec_free(&model->news);
	if (model->faults != NULL)
		sw_faults_free(model->faults);
	if (model->boots != NULL)
		sw_boots_free(model->boots);
	free(model);
}

/* Whether a job of this rule is suspended where it ran. */
static bool stands_when_stopped(const struct sw_world *world, uint8_t stop_rule)
{
	return world->preempt == SW_PREEMPT_IN_PLACE && (stop_rule == SW_STOP_SUSPEND || stop_rule == SW_STOP_IF_FREE);
}

/* Its owner said nothing: the world does. */
static void resolve_stop(const struct sw_world *world, struct sw_job_spec *spec)
{
	bool yields = spec->job_class == SW_CLASS_OPPORTUNISTIC;
	if (spec->stop_rule == SW_STOP_AS_WORLD)
		spec->stop_rule = (uint8_t)(yields ? world->opportunistic_stop : world->guaranteed_stop);
	spec->prefers_home = stands_when_stopped(world, spec->stop_rule);
}

void sw_world_model_spec(const struct sw_world_model *model, uint32_t id, struct sw_job_spec *ret_spec)
{
	const struct sw_trace_job *job = &model->trace->jobs.items[id];
	const struct life *life = &model->lives[id];
	const struct sw_trace_told *told = told_of(model, id);
	if (told != NULL) {
		*ret_spec = told->spec;
		ret_spec->tenant = job->tenant;
		ret_spec->model = life->profile->number;
		ret_spec->deadline_at = deadline_of(model, job);
		resolve_stop(model->world, ret_spec);
		return;
	}
	*ret_spec = (struct sw_job_spec){
		.gpus = job->gpus,
		.min_gpus = job->min_gpus,
		.max_gpus = job->max_gpus,
		.tenant = job->tenant,
		.weight_milli = job->weight_milli,
		.cpus = (uint32_t)model->world->host_cpus_per_gpu,
		.host_memory_bytes = model->world->host_mem_per_gpu_bytes,
		.model = life->profile->number,
		.skew_milli = life->profile->is_default ? 0 : (uint16_t)sw_profile_skew_milli(life->profile),
		.retries = (uint16_t)model->world->retries,
		.job_class = job->job_class,
		.knowledge = SW_KNOWN,
		.work_ns = life->left_ns,
		.deadline_at = deadline_of(model, job),
	};
	/* How much memory a job needs is known where its trace says so, or its model is known; only
	 * then can it share a GPU. */
	ret_spec->gpu_memory_bytes = (uint64_t)job->gpu_memory_mib << 20;
	if (job->gpu_memory_mib == 0 && model->world->sharing_slowdown && !model->world->recorded && !life->profile->is_default)
		ret_spec->gpu_memory_bytes = life->profile->mem_persistent_bytes + life->profile->mem_ephemeral_bytes;
	if (!life->profile->is_default)
		ret_spec->gpu_floor_bytes = life->profile->mem_persistent_bytes;
	if (model->world->sharing_slowdown && model->world->sharing_by == SW_SHARING_BY_STAGES)
		ret_spec->gpu_memory_bytes = SOME_MEMORY;
	resolve_stop(model->world, ret_spec);
	if (!life->profile->is_default)
		ret_spec->use_milli = (uint16_t)sw_profile_gpu_use_milli(life->profile);
}

/* ---- speed */

static bool is_full(struct pace pace)
{
	return pace.slow == pace.full;
}

static int64_t time_for(int64_t work_ns, struct pace pace)
{
	__int128 time = ((__int128)work_ns * pace.slow + pace.full - 1) / pace.full;
	return time > INT64_MAX / 4 ? INT64_MAX / 4 : (int64_t)time;
}

static int64_t work_in(int64_t time_ns, struct pace pace)
{
	return is_full(pace) ? time_ns : (int64_t)(((__int128)time_ns * pace.full + pace.slow / 2) / pace.slow);
}

static bool works(const struct life *life)
{
	return life->runs && !life->paused;
}

/* Brings the work left up to now. */
static void count_time(struct life *life, sw_ns now)
{
	int64_t from = life->as_of_ns > life->stall_until_ns ? life->as_of_ns : life->stall_until_ns;
	if (now > from && !life->paused) {
		int64_t done = work_in(now - from, life->pace);
		life->left_ns = done < life->left_ns ? life->left_ns - done : 0;
	}
	if (now > life->as_of_ns)
		life->as_of_ns = now;
}

static bool is_guaranteed(const struct sw_engine *engine, uint32_t id)
{
	return sw_engine_job(engine, (struct sw_job_id){id})->job_class == SW_CLASS_GUARANTEED;
}

/* How much the residents of one GPU slow this job down, by their profiles. */
static uint32_t profiled_milli(const struct sw_world_model *model, const struct sw_engine *engine, uint32_t id, const uint32_t *residents,
			       uint32_t count)
{
	uint32_t models[SW_GPU_RESIDENTS_MAX], slow_milli[SW_GPU_RESIDENTS_MAX];
	bool guaranteed[SW_GPU_RESIDENTS_MAX];
	size_t present = 0, own = 0;
	for (uint32_t r = 0; r < count; r++) {
		if (residents[r] != id && !works(&model->lives[residents[r]]))
			continue;
		own = residents[r] == id ? present : own;
		models[present] = model->lives[residents[r]].profile->number;
		guaranteed[present++] = is_guaranteed(engine, residents[r]);
	}
	sw_crowd_slowdowns(model->crowd, models, guaranteed, present, slow_milli);
	return slow_milli[own];
}

/* The same by the stages of their iterations, as the time that one of this job's own takes. */
static int64_t staged_ns(const struct sw_world_model *model, const struct sw_engine *engine, uint32_t id, const uint32_t *residents,
			 uint32_t count)
{
	const struct sw_trace_job *own = &model->trace->jobs.items[id];
	int64_t worst = own->iteration_ns;
	for (uint32_t r = 0; r < count && !is_guaranteed(engine, id); r++) {
		const struct sw_trace_job *other = &model->trace->jobs.items[residents[r]];
		if (residents[r] == id || !works(&model->lives[residents[r]]))
			continue;
		int64_t takes = is_guaranteed(engine, residents[r])
					? sw_interleave_rounds(own->stage_us, other->stage_us) * other->iteration_ns
					: 2 * own->iteration_ns;
		worst = takes > worst ? takes : worst;
	}
	return worst;
}

/* The worst of its GPUs sets the pace of a job. */
static struct pace sharing_pace(const struct sw_world_model *model, const struct sw_engine *engine, uint32_t id)
{
	const uint32_t *residents, *before = NULL;
	uint32_t count, count_before = 0;
	bool staged = model->world->sharing_by == SW_SHARING_BY_STAGES;
	struct pace worst = {WHOLE, WHOLE};
	if (staged)
		worst.slow = worst.full = model->trace->jobs.items[id].iteration_ns;
	if (worst.full == 0)
		return full_speed;
	for (uint32_t g = 0; sw_neighbours_at(model->neighbours, id, g, &residents, &count); g++) {
		/* Mostly they sit together on all of their GPUs. */
		if (before != NULL && count == count_before && memcmp(residents, before, count * sizeof *residents) == 0)
			continue;
		before = residents;
		count_before = count;
		int64_t slow =
			staged ? staged_ns(model, engine, id, residents, count) : profiled_milli(model, engine, id, residents, count);
		worst.slow = slow > worst.slow ? slow : worst.slow;
	}
	return worst;
}

static struct pace pace_of(const struct sw_world_model *model, const struct sw_engine *engine, uint32_t id)
{
	const struct sw_run_shape shape = sw_engine_run_shape(engine, (struct sw_job_id){id});
	uint64_t slow = sw_alone_slow_milli(model->alone, model->lives[id].profile, &shape);
	if (model->neighbours == NULL)
		return (struct pace){(int64_t)slow, WHOLE};
	struct pace pace = sharing_pace(model, engine, id);
	if (pace.full != WHOLE)
		return (struct pace){pace.slow * (int64_t)slow, pace.full * WHOLE};
	slow = slow * (uint64_t)pace.slow / WHOLE;
	return (struct pace){(int64_t)(slow > SLOWEST ? SLOWEST : slow), WHOLE};
}

/* ---- news for the engine */

static void tell(struct sw_world_model *model, uint32_t id, sw_ns ends_at)
{
	/* A controller knows no more than it was told. */
	struct sw_event *event = told_of(model, id) == NULL ? sw_vec_push(&model->news) : NULL;
	if (event == NULL)
		return; /* the engine keeps its own guess */
	model->lives[id].told_end_ns = ends_at;
	*event = (struct sw_event){
		.kind = SW_EV_PROGRESS,
		.job = {id},
		.epoch = model->lives[id].epoch,
		.left_ns = model->lives[id].left_ns,
		.as_of = model->lives[id].as_of_ns,
		.ends_at = ends_at,
	};
}

/* What has become of a run where a move is not free: it has begun, or is on its new GPUs. */
static void tell_of_run(struct sw_world_model *model, uint32_t id, enum sw_event_kind kind)
{
	struct sw_event *event = model->world->moves == SW_MOVES_RESTART ? sw_vec_push(&model->news) : NULL;
	if (event != NULL)
		*event = (struct sw_event){.kind = kind, .job = {id}, .epoch = model->lives[id].epoch};
}

static void tell_keeps(struct sw_world_model *model, const struct sw_engine *engine, uint32_t id, bool frees)
{
	uint8_t rule = sw_engine_job(engine, (struct sw_job_id){id})->stop_rule;
	struct sw_event *event = stands_when_stopped(model->world, rule) ? sw_vec_push(&model->news) : NULL;
	if (event != NULL)
		*event = (struct sw_event){.kind = SW_EV_KEEPS,
					   .job = {id},
					   .epoch = model->lives[id].epoch,
					   .gpus = frees || rule == SW_STOP_SUSPEND,
					   .frees = frees};
}

/* A run says soon after its start whether it would go on after a stop, and whether its memory
 * leaves its GPUs meanwhile. */
static void begin(struct sw_world_model *model, const struct sw_engine *engine, uint32_t id, bool goes_on, sw_ns now)
{
	const struct sw_trace_told *told = told_of(model, id);
	if (told != NULL && !goes_on)
		sw_heap_set(&model->begins, id, now + (told->begins_after_ns > 0 ? told->begins_after_ns : 0));
	if (told != NULL)
		return;
	tell_of_run(model, id, SW_EV_BEGUN);
	tell_keeps(model, engine, id, true);
}

static void tell_speed(struct sw_world_model *model, uint32_t id)
{
	struct life *life = &model->lives[id];
	uint32_t speed_milli = life->paused ? 0 : (uint32_t)(life->pace.full * WHOLE / (life->pace.slow > 0 ? life->pace.slow : 1));
	struct sw_event *event = NULL;
	if (!model->world->tells_speed && !model->world->recorded && life->runs && speed_milli != life->told_milli)
		event = sw_vec_push(&model->news);
	if (event == NULL)
		return;
	life->told_milli = speed_milli;
	*event = (struct sw_event){.kind = SW_EV_SPEED, .job = {id}, .epoch = life->epoch, .speed_milli = speed_milli};
}

/* Looks ahead: when the job will end, or fail. */
static void look_ahead(struct sw_world_model *model, uint32_t id, sw_ns now)
{
	struct life *life = &model->lives[id];
	tell_speed(model, id);
	/* A failure that lies ahead stays where it is, unless the job ends before. */
	if (life->paused) {
		if (!life->will_fail)
			sw_heap_remove(&model->ends, id);
		return;
	}
	int64_t from = now > life->stall_until_ns ? now : life->stall_until_ns;
	int64_t time = time_for(life->left_ns, life->pace);
	int64_t ends_at = time > SW_TIME_NEVER - 1 - from ? SW_TIME_NEVER - 1 : from + time;
	if (ends_at != life->told_end_ns)
		tell(model, id, ends_at);
	if (life->will_fail && sw_heap_has(&model->ends, id) && sw_heap_key(&model->ends, id) < ends_at)
		return;
	life->will_fail = false;
	sw_heap_set(&model->ends, id, ends_at);
}

/* ---- commands */

/* The speed of the jobs that share a GPU with this one changes as it comes and goes. */
static void disturb_neighbours(struct sw_world_model *model, const struct sw_engine *engine, uint32_t id, sw_ns now)
{
	const uint32_t *residents;
	uint32_t count;
	model->wave++;
	for (uint32_t g = 0; sw_neighbours_at(model->neighbours, id, g, &residents, &count); g++) {
		for (uint32_t r = 0; r < count; r++) {
			uint32_t other = residents[r];
			if (other == id || !works(&model->lives[other]) || model->lives[other].wave == model->wave ||
			    sw_engine_job(engine, (struct sw_job_id){other})->state != SW_JOB_RUNNING)
				continue;
			model->lives[other].wave = model->wave;
			count_time(&model->lives[other], now);
			model->lives[other].pace = pace_of(model, engine, other);
			look_ahead(model, other, now);
		}
	}
}

static void get_up(struct sw_world_model *model, const struct sw_engine *engine, uint32_t id, sw_ns now)
{
	struct life *life = &model->lives[id];
	count_time(life, now);
	life->runs = false;
	sw_heap_remove(&model->ends, id);
	sw_heap_remove(&model->begins, id);
	if (model->neighbours == NULL)
		return;
	disturb_neighbours(model, engine, id, now);
	sw_neighbours_leave(model->neighbours, id);
}

static uint64_t gpu_state_bytes(const struct life *life)
{
	/* A caching allocator keeps what an iteration needs, too. */
	return life->profile->mem_persistent_bytes + life->profile->mem_ephemeral_bytes;
}

/* Back to the last checkpoint of this run, or to its beginning. */
static void lose_work(struct sw_world_model *model, uint32_t id)
{
	struct life *life = &model->lives[id];
	int64_t every = model->world->checkpoint_ns, done = life->kept_ns - life->left_ns;
	life->left_ns = every > 0 && done > 0 ? life->kept_ns - done / every * every : life->kept_ns;
	life->kept_ns = life->left_ns;
	life->lost_state = true;
}

/* What it costs a job to get going here. */
static int64_t starting_cost(const struct sw_world_model *model, const struct life *life, bool resume)
{
	const struct sw_world *world = model->world;
	if (!life->has_run)
		return world->start_ns;
	if (life->is_inside)
		return 0;
	if (life->lost_state || !resume)
		return world->restart_ns;
	if (world->preempt != SW_PREEMPT_SUSPEND && world->preempt != SW_PREEMPT_IN_PLACE)
		return 0;
	/* Copied out when it stopped, copied in now: charged together, to the job that was
	 * moved. */
	return sw_transfer_ns(&world->suspend, gpu_state_bytes(life)) + sw_transfer_ns(&world->resume, gpu_state_bytes(life));
}

/* The run gets its fate: the failure that is ahead of it, if any. */
static void draw_failure(struct sw_world_model *model, uint32_t id)
{
	struct life *life = &model->lives[id];
	uint32_t at_milli;
	life->will_fail = sw_faults_run_fails(model->faults, id, life->starts, &at_milli);
	if (life->will_fail)
		sw_heap_set(&model->ends, id, life->stall_until_ns + time_for(life->left_ns / 1000 * at_milli, life->pace) + 1);
}

static void start(struct sw_world_model *model, const struct sw_engine *engine, const struct sw_command *command, sw_ns now)
{
	struct life *life = &model->lives[command->job];
	life->epoch = command->epoch;
	life->starts++;
	life->runs = true;
	life->paused = false;
	life->as_of_ns = now;
	life->stall_until_ns = now;
	life->pace = full_speed;
	life->told_milli = 0;
	/* What the engine thinks of by itself. */
	life->told_end_ns = command->gpus == model->trace->jobs.items[command->job].gpus ? now + life->left_ns : SW_TIME_NEVER;
	if (model->costs_nothing && command->gpus == model->trace->jobs.items[command->job].gpus && command->config.cpus == 0) {
		sw_heap_set(&model->ends, command->job, now + life->left_ns);
		/* It may have lost work in this very step, which the engine has not heard. */
		if (sw_engine_clock(engine, (struct sw_job_id){command->job})->work_left_ns != life->left_ns)
			tell(model, command->job, now + life->left_ns);
		return;
	}
	life->stall_until_ns = now + starting_cost(model, life, command->resume || command->goes_on);
	life->has_run = true;
	life->lost_state = false;
	life->kept_ns = command->goes_on ? life->kept_ns : life->left_ns;
	if (model->neighbours != NULL) {
		(void)sw_neighbours_enter(model->neighbours, sw_engine_ledger(engine), command->job, command->parts);
		disturb_neighbours(model, engine, command->job, now);
	}
	life->pace = pace_of(model, engine, command->job);
	draw_failure(model, command->job);
	begin(model, engine, command->job, command->goes_on, now);
	life->is_inside = false;
	look_ahead(model, command->job, now);
	if (sw_engine_clock(engine, (struct sw_job_id){command->job})->work_left_ns != life->left_ns)
		tell(model, command->job, now + (life->stall_until_ns - now) + time_for(life->left_ns, life->pace));
}

/* A history's run times hold what its jobs lost with their nodes, and by as many stops as they
 * had. */
static void count_inside(const struct sw_world_model *model, struct life *life, uint8_t reason)
{
	bool is_lost = reason == SW_REASON_NODE_LOST || reason == SW_REASON_REQUEUED;
	life->is_inside = model->world->recorded && (is_lost || (reason == SW_REASON_PREEMPTED && life->inside > 0));
	if (life->is_inside && reason == SW_REASON_PREEMPTED)
		life->inside--;
}

static void stop(struct sw_world_model *model, const struct sw_engine *engine, const struct sw_command *command, sw_ns now)
{
	struct life *life = &model->lives[command->job];
	bool is_lost = command->reason == SW_REASON_NODE_LOST || command->reason == SW_REASON_REQUEUED;
	if (!life->runs && !is_lost)
		return;
	if (model->costs_nothing && is_full(life->pace) && !life->paused && command->reason == SW_REASON_PREEMPTED) {
		life->left_ns = sw_heap_key(&model->ends, command->job) - now;
		life->runs = false;
		sw_heap_remove(&model->ends, command->job);
		return;
	}
	if (life->runs)
		get_up(model, engine, command->job, now);
	bool in_place = model->world->preempt == SW_PREEMPT_IN_PLACE && !command->stands;
	bool begins_anew = command->reason == SW_REASON_PREEMPTED || command->reason == SW_REASON_MOVED;
	count_inside(model, life, command->reason);
	if (!life->is_inside && (is_lost || (in_place && begins_anew)))
		lose_work(model, command->job);
	tell(model, command->job, now);
}

static void move(struct sw_world_model *model, const struct sw_engine *engine, const struct sw_command *command, sw_ns now)
{
	struct life *life = &model->lives[command->job];
	count_time(life, now);
	/* It may have gone on, moved and been paused again in one decision. */
	life->paused = sw_engine_job(engine, (struct sw_job_id){command->job})->paused;
	if (model->neighbours != NULL) {
		life->runs = false;
		disturb_neighbours(model, engine, command->job, now);
		sw_neighbours_leave(model->neighbours, command->job);
		life->runs = true;
		(void)sw_neighbours_enter(model->neighbours, sw_engine_ledger(engine), command->job, command->parts);
		disturb_neighbours(model, engine, command->job, now);
	}
	if (!model->world->replace_is_free)
		life->stall_until_ns = now + sw_transfer_ns(&model->world->migrate, gpu_state_bytes(life));
	life->pace = pace_of(model, engine, command->job);
	tell_of_run(model, command->job, SW_EV_MOVED);
	/* What the engine was told of another place does not hold any more. Where each event costs
	 * something, it is told of all jobs at the next one. */
	if (!model->world->event_overhead && sw_engine_clock(engine, (struct sw_job_id){command->job})->ends_at != life->told_end_ns)
		life->told_end_ns = SW_TIME_NEVER;
	look_ahead(model, command->job, now);
}

/* Its memory is where it was, so only the switch itself takes time, and the same for all jobs. */
static void set_paused(struct sw_world_model *model, struct life *life, bool paused, sw_ns now)
{
	life->paused = paused;
	if (!paused && life->stall_until_ns < now + model->world->switch_ns)
		life->stall_until_ns = now + model->world->switch_ns;
}

/* Its class is another, or whether it works: it and its neighbours go on at another pace. */
static void change_share(struct sw_world_model *model, const struct sw_engine *engine, uint32_t id, sw_ns now)
{
	struct life *life = &model->lives[id];
	const struct sw_job *job = sw_engine_job(engine, (struct sw_job_id){id});
	if (!life->runs || (model->neighbours == NULL && job->paused == life->paused))
		return;
	count_time(life, now);
	if (job->paused != life->paused)
		set_paused(model, life, job->paused, now);
	if (!life->paused)
		life->pace = pace_of(model, engine, id);
	else if (sw_engine_clock(engine, job->id)->work_left_ns != life->left_ns)
		tell(model, id, SW_TIME_NEVER);
	look_ahead(model, id, now);
	if (model->neighbours != NULL)
		disturb_neighbours(model, engine, id, now);
}

void sw_world_model_obey(struct sw_world_model *model, const struct sw_engine *engine, sw_ns now, const struct sw_step *step)
{
	for (size_t c = 0; c < step->command_count; c++) {
		const struct sw_command *command = &step->commands[c];
		switch (command->kind) {
		case SW_CMD_START:
			start(model, engine, command, now);
			break;
		case SW_CMD_STOP:
		case SW_CMD_KILL:
			stop(model, engine, command, now);
			break;
		case SW_CMD_MOVE:
			if (!model->world->replace_is_free || command->gpus != model->trace->jobs.items[command->job].gpus ||
			    model->neighbours != NULL || !is_full(model->lives[command->job].pace) || sw_alone_has_speeds(model->alone) ||
			    command->config.cpus != 0)
				move(model, engine, command, now);
			break;
		case SW_CMD_LIMIT:
			change_share(model, engine, command->job, now);
			break;
		case SW_CMD_NODE_OFF:
		case SW_CMD_NODE_ON:
			sw_boots_switch(model->boots, command->node, command->kind == SW_CMD_NODE_ON, now);
			break;
		default:
			break;
		}
	}
}

/* ---- events */

/* Up to which time an end belongs to the event at `now`. */
static sw_ns end_of_event(const struct sw_world_model *model, sw_ns now)
{
	return now + (sw_ns)((__int128)now * model->world->merge_ends_ppb / 1000000000);
}

/* Every event costs every running job its overhead: what it did since the last one counts less by
 * so much. The way to its own end is not charged. */
static int charge_everybody(struct sw_world_model *model, const struct sw_engine *engine, sw_ns now, sw_events *events)
{
	const struct sw_view *view = sw_engine_view(engine);
	for (const struct sw_job *job = sw_view_next_running(view, NULL); job != NULL; job = sw_view_next_running(view, job)) {
		struct life *life = &model->lives[job->id.v];
		if (!works(life) || sw_heap_key(&model->ends, job->id.v) <= end_of_event(model, now))
			continue;
		int64_t from = life->as_of_ns > life->stall_until_ns ? life->as_of_ns : life->stall_until_ns;
		int64_t done = now - from - life->overhead_ns;
		if (done > 0) {
			done = work_in(done, life->pace);
			life->left_ns -= done < life->left_ns ? done : life->left_ns;
		}
		life->as_of_ns = now;
		from = now > life->stall_until_ns ? now : life->stall_until_ns;
		int64_t ends_at = life->told_end_ns = from + time_for(life->left_ns, life->pace);
		if (!life->will_fail)
			sw_heap_set(&model->ends, job->id.v, ends_at);
		struct sw_event *event = sw_vec_push(events);
		if (event == NULL)
			return SW_ENOMEM;
		*event = (struct sw_event){.kind = SW_EV_PROGRESS,
					   .job = job->id,
					   .epoch = life->epoch,
					   .left_ns = life->left_ns,
					   .as_of = now,
					   .ends_at = ends_at};
	}
	return 0;
}

/* In a history one at a time: a controller decides after each record. */
static int end_runs(struct sw_world_model *model, const struct sw_engine *engine, sw_ns now, sw_events *events)
{
	size_t most = model->world->recorded ? events->count + 1 : SIZE_MAX;
	while (sw_heap_top_key(&model->ends) <= end_of_event(model, now) && events->count < most) {
		uint32_t id = model->ends.entries[0].id;
		struct life *life = &model->lives[id];
		struct sw_event *event = sw_vec_push(events);
		if (event == NULL)
			return SW_ENOMEM;
		get_up(model, engine, id, now);
		if (life->will_fail)
			lose_work(model, id);
		*event = (struct sw_event){.kind = life->will_fail ? SW_EV_FAIL : SW_EV_FINISH,
					   .job = {id},
					   .epoch = life->epoch,
					   .left_ns = life->left_ns,
					   .ends_at = now};
	}
	return 0;
}

/* Runs that are heard to have begun. */
static void begin_runs(struct sw_world_model *model, const struct sw_engine *engine, sw_ns now)
{
	while (sw_heap_top_key(&model->begins) <= now) {
		uint32_t id = model->begins.entries[0].id;
		const struct sw_trace_told *told = told_of(model, id);
		sw_heap_remove(&model->begins, id);
		tell_of_run(model, id, SW_EV_BEGUN);
		tell_keeps(model, engine, id, told != NULL && told->frees);
	}
}

static int break_nodes(struct sw_world_model *model, sw_ns now, sw_events *events)
{
	uint32_t node;
	bool up;
	while (sw_faults_take(model->faults, now, &node, &up)) {
		if (!sw_boots_passes_fault(model->boots, node, up))
			continue;
		struct sw_event *event = sw_vec_push(events);
		if (event == NULL)
			return SW_ENOMEM;
		*event = (struct sw_event){.kind = up ? SW_EV_NODE_UP : SW_EV_NODE_DOWN, .node = {node}};
	}
	return 0;
}

/* Nodes that were switched on and are up by now. */
static int boot_nodes(struct sw_world_model *model, sw_ns now, sw_events *events)
{
	uint32_t node;
	while (sw_boots_take(model->boots, now, &node)) {
		struct sw_event *event = sw_vec_push(events);
		if (event == NULL)
			return SW_ENOMEM;
		*event = (struct sw_event){.kind = SW_EV_NODE_UP, .node = {node}};
	}
	return 0;
}

sw_ns sw_world_model_next(const struct sw_world_model *model)
{
	sw_ns end = sw_heap_top_key(&model->ends), fault = sw_faults_next(model->faults), begin = sw_heap_top_key(&model->begins);
	sw_ns boot = sw_boots_next(model->boots);
	end = begin < end ? begin : end;
	end = boot < end ? boot : end;
	return end < fault ? end : fault;
}

int sw_world_model_collect(struct sw_world_model *model, const struct sw_engine *engine, sw_ns now, sw_events *events)
{
	begin_runs(model, engine, now);
	for (size_t n = 0; n < model->news.count; n++) {
		struct sw_event *event = sw_vec_push(events);
		if (event == NULL)
			return SW_ENOMEM;
		*event = model->news.items[n];
	}
	model->news.count = 0;
	int r = model->world->event_overhead ? charge_everybody(model, engine, now, events) : 0;
	if (r == 0)
		r = end_runs(model, engine, now, events);
	if (r == 0)
		r = break_nodes(model, now, events);
	return r < 0 ? r : boot_nodes(model, now, events);
}

struct sw_predictor sw_world_model_predictor(const struct sw_world_model *model)
{
	return (struct sw_predictor){model->crowd, model->crowd != NULL ? sw_crowd_speeds : NULL};
}

struct sw_scaler sw_world_model_scaler(const struct sw_world_model *model)
{
	return sw_alone_scaler(model->expected);
}

const struct sw_gpu_types *sw_world_model_gpu_types(const struct sw_world_model *model)
{
	return sw_alone_types(model->expected);
}
