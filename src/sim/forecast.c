#include "sim/forecast.h"

#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/number.h"
#include "policy/registry.h"

/* A policy that wants to look every second at jobs that never end would go on for ever. */
#define STEPS_MAX 300000u
#define HORIZON_NS (INT64_C(366) * 86400 * SW_NS_PER_S)

/* ---- how long */

int sw_forecast_note(struct sw_forecast_history *history, uint64_t kind, sw_ns ran_ns)
{
	struct sw_forecast_sample *sample = sw_vec_push(&history->samples);
	sw_ns *one = sample != NULL ? sw_vec_push(&history->all) : NULL;
	if (one == NULL)
		return SW_ENOMEM;
	*sample = (struct sw_forecast_sample){kind, ran_ns};
	*one = ran_ns;
	return 0;
}

static int by_time(const void *a, const void *b)
{
	sw_ns x = *(const sw_ns *)a, y = *(const sw_ns *)b;
	return (x > y) - (x < y);
}

static int by_kind(const void *a, const void *b)
{
	const struct sw_forecast_sample *x = a, *y = b;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return by_time(&x->ran_ns, &y->ran_ns);
}

void sw_forecast_sort(struct sw_forecast_history *history)
{
	if (history->samples.count == 0)
		return;
	qsort(history->samples.items, history->samples.count, sizeof *history->samples.items, by_kind);
	qsort(history->all.items, history->all.count, sizeof *history->all.items, by_time);
}

void sw_forecast_forget(struct sw_forecast_history *history)
{
	sw_vec_free(&history->samples);
	sw_vec_free(&history->all);
}

/* The first sample of the kind, or behind it, that ran longer. */
static size_t first_longer(const struct sw_forecast_history *history, uint64_t kind, sw_ns ran_ns)
{
	size_t low = 0, high = history->samples.count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct sw_forecast_sample *sample = &history->samples.items[middle];
		if (sample->kind < kind || (sample->kind == kind && sample->ran_ns <= ran_ns))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

sw_ns sw_forecast_left(const struct sw_forecast_history *history, uint64_t kind, sw_ns expected_ns, sw_ns limit_ns, sw_ns ran_ns,
		       enum sw_basis *ret_basis)
{
	if (expected_ns > ran_ns || limit_ns > 0) {
		*ret_basis = expected_ns > ran_ns ? SW_BASIS_EXPECTED : SW_BASIS_LIMIT;
		sw_ns in_all = expected_ns > ran_ns ? expected_ns : limit_ns;
		return in_all > ran_ns ? in_all - ran_ns : 0; /* it is being ended */
	}
	size_t from = first_longer(history, kind, ran_ns), to = first_longer(history, kind, INT64_MAX);
	if (to > from) {
		*ret_basis = SW_BASIS_ALIKE;
		return history->samples.items[from + (to - from) / 2].ran_ns - ran_ns;
	}
	/* None of its kind ran so long: others say nothing about it. */
	bool of_a_kind = first_longer(history, kind, -1) < to;
	size_t longer = history->all.count;
	while (!of_a_kind && longer > 0 && history->all.items[longer - 1] > ran_ns)
		longer--;
	if (!of_a_kind && longer < history->all.count) {
		*ret_basis = SW_BASIS_ALL;
		return history->all.items[longer + (history->all.count - longer) / 2] - ran_ns;
	}
	if (history->all.count == 0 || ran_ns <= 0)
		return SW_TIME_NEVER;
	*ret_basis = SW_BASIS_AGAIN;
	return ran_ns;
}

/* ---- who when */

struct life {
	sw_ns left_ns; /* as of since */
	sw_ns since;
	uint32_t blocked; /* dependencies that have not ended */
	uint32_t gpus;	  /* held while it runs */
	bool runs;
};

struct run {
	const struct sw_forecast_config *config;
	struct sw_engine *engine;
	struct life *lives;
	struct sw_heap ends;
	struct sw_heap pauses; /* jobs that do not compete before a moment */
	SW_VEC(struct sw_event) events;
	SW_VEC(uint32_t) dependents; /* jobs that wait for others */
	struct sw_forecast_start *starts;
	uint32_t ended[SW_BASES];
	uint32_t awaited; /* jobs whose start is not known yet */
	uint32_t steps;
	sw_ns now;     /* of the run */
	sw_ns present; /* the moment that is called now outside; SW_TIME_NEVER: not reached */
	sw_ns wake_at;
};

static int push(struct run *run, struct sw_event event)
{
	struct sw_event *slot = sw_vec_push(&run->events);
	if (slot == NULL)
		return SW_ENOMEM;
	*slot = event;
	return 0;
}

/* ---- what the engine decides */

/* Work is counted in time on the GPUs that were asked for; an elastic job on others
 * takes longer or shorter. */
static sw_ns scaled(sw_ns ns, uint32_t times, uint32_t by)
{
	__extension__ typedef __int128 wide;
	wide result = times == by || by == 0 ? ns : (wide)ns * times / by;
	return result > HORIZON_NS ? HORIZON_NS : (sw_ns)result;
}

static void begin(struct run *run, uint32_t id)
{
	struct life *life = &run->lives[id];
	bool present = run->present != SW_TIME_NEVER;
	life->runs = true;
	life->since = run->now;
	life->gpus = sw_engine_job(run->engine, (struct sw_job_id){id})->gpus_held;
	if (!present)
		return;
	sw_ns left = scaled(life->left_ns, run->config->jobs[id].spec.gpus, life->gpus);
	if (left < HORIZON_NS)
		sw_heap_set(&run->ends, id, run->now + left);
	struct sw_forecast_start *start = &run->starts[id];
	bool awaited = run->config->jobs[id].state == SW_FORECAST_WAITS && start->in_ns == SW_TIME_NEVER;
	if (!awaited)
		return;
	start->in_ns = run->now - run->present;
	memcpy(start->ended, run->ended, sizeof start->ended);
	if (run->config->target == UINT32_MAX || run->config->target == id)
		run->awaited--;
}

static void stop(struct run *run, uint32_t id)
{
	struct life *life = &run->lives[id];
	if (!life->runs)
		return;
	life->runs = false;
	sw_heap_remove(&run->ends, id);
	if (run->present != SW_TIME_NEVER && life->left_ns != SW_TIME_NEVER) {
		sw_ns ran = scaled(run->now - life->since, life->gpus, run->config->jobs[id].spec.gpus);
		life->left_ns = ran < life->left_ns ? life->left_ns - ran : 0;
	}
}

static void obey(struct run *run, const struct sw_step *step)
{
	for (size_t c = 0; c < step->command_count; c++) {
		const struct sw_command *command = &step->commands[c];
		if (command->kind == SW_CMD_START) {
			begin(run, command->job);
		} else if (command->kind == SW_CMD_MOVE) {
			stop(run, command->job);
			begin(run, command->job);
		} else if (command->kind == SW_CMD_STOP || command->kind == SW_CMD_KILL) {
			stop(run, command->job);
		}
	}
}

/* Hands over the events that were gathered. */
static int step(struct run *run, struct sw_err *err)
{
	struct sw_step outcome;
	if (run->steps++ == STEPS_MAX)
		return sw_err_set(err, SW_ELIMIT, "the forecast takes too long");
	int r = sw_engine_step(run->engine, run->now, run->events.items, run->events.count, &outcome, err);
	run->events.count = 0;
	if (r < 0)
		return r;
	run->wake_at = outcome.wake_at;
	obey(run, &outcome);
	return 0;
}

static int step_with(struct run *run, enum sw_event_kind kind, uint32_t id, struct sw_err *err)
{
	if (push(run, (struct sw_event){.kind = kind, .job = {id}}) < 0)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	return step(run, err);
}

/* Lets time pass; the policy looks at the jobs whenever it wants to. */
static int pass_until(struct run *run, sw_ns until, struct sw_err *err)
{
	int r = 0;
	while (r == 0 && run->wake_at < until) {
		run->now = run->wake_at > run->now ? run->wake_at : run->now;
		r = step(run, err);
	}
	run->now = until > run->now ? until : run->now;
	return r;
}

/* ---- to the present */

/* All of them, in their order, and held; GPUs that take none and quotas first. */
static int submit_all(struct run *run, sw_ns way_ns, struct sw_err *err)
{
	const struct sw_forecast_config *config = run->config;
	SW_CLEANUP(sw_freep) struct sw_job_spec *specs = calloc(config->count + 1, sizeof *specs);
	int r = specs != NULL ? 0 : SW_ENOMEM;
	for (uint32_t n = 0; r == 0 && config->shut != NULL && n < config->topology->node_count; n++)
		if (config->shut[n] != 0)
			r = push(run, (struct sw_event){.kind = SW_EV_GPUS_SHUT, .node = {n}, .mask = config->shut[n]});
	for (uint32_t q = 0; r == 0 && q < config->quota_count; q++)
		r = push(run, (struct sw_event){.kind = SW_EV_QUOTA, .tenant = config->quotas[q].tenant, .gpus = config->quotas[q].gpus});
	for (uint32_t j = 0; r == 0 && j < config->count; j++) {
		specs[j] = config->jobs[j].spec;
		specs[j].held = true;
		if (specs[j].deadline_at != SW_TIME_NEVER)
			specs[j].deadline_at = way_ns + specs[j].deadline_at > 0 ? way_ns + specs[j].deadline_at : 1;
		r = push(run, (struct sw_event){.kind = SW_EV_SUBMIT, .spec = &specs[j]});
	}
	return r < 0 ? sw_err_set(err, SW_ENOMEM, "out of memory") : step(run, err);
}

/* Jobs that wait and have run: one after the other, each for as long as it did. */
static int run_stopped(struct run *run, struct sw_err *err)
{
	int r = 0;
	for (uint32_t j = 0; r == 0 && j < run->config->count; j++) {
		const struct sw_forecast_job *job = &run->config->jobs[j];
		if (job->state != SW_FORECAST_WAITS || job->ran_ns <= 0)
			continue;
		r = step_with(run, SW_EV_RELEASE, j, err);
		if (r == 0 && run->lives[j].runs)
			r = pass_until(run, run->now + job->ran_ns, err);
		r = r < 0 ? r : step_with(run, SW_EV_HOLD, j, err);
	}
	return r;
}

struct started {
	sw_ns ran_ns;
	uint32_t job;
};

static int longest_first(const void *a, const void *b)
{
	const struct started *x = a, *y = b;
	if (x->ran_ns != y->ran_ns)
		return x->ran_ns > y->ran_ns ? -1 : 1;
	return x->job < y->job ? -1 : 1;
}

/* Jobs that run: each starts as long before the present as it runs now. */
static int run_running(struct run *run, sw_ns present, struct sw_err *err)
{
	const struct sw_forecast_config *config = run->config;
	SW_CLEANUP(sw_freep) struct started *started = calloc(config->count + 1, sizeof *started);
	uint32_t count = 0;
	if (started == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	for (uint32_t j = 0; j < config->count; j++)
		if (config->jobs[j].state == SW_FORECAST_RUNS)
			started[count++] = (struct started){config->jobs[j].ran_ns, j};
	qsort(started, count, sizeof *started, longest_first);
	int r = 0;
	for (uint32_t s = 0; r == 0 && s < count; s++) {
		r = pass_until(run, present - started[s].ran_ns, err);
		r = r < 0 ? r : step_with(run, SW_EV_RELEASE, started[s].job, err);
	}
	return r < 0 ? r : pass_until(run, present, err);
}

/* How long the way to the present is: an upper bound is enough, since only differences count. */
static sw_ns length_of_way(const struct sw_forecast_config *config)
{
	sw_ns stopped = 0, running = 0;
	for (uint32_t j = 0; j < config->count; j++) {
		const struct sw_forecast_job *job = &config->jobs[j];
		if (job->state == SW_FORECAST_WAITS)
			stopped += job->ran_ns;
		else if (job->state == SW_FORECAST_RUNS && job->ran_ns > running)
			running = job->ran_ns;
	}
	return stopped + running + 1;
}

/* ---- from the present on */

/* A job that waits for no other any more competes, or does so after its pause. */
static int let_in(struct run *run, uint32_t id)
{
	const struct sw_forecast_job *job = &run->config->jobs[id];
	if (job->state != SW_FORECAST_WAITS || run->lives[id].blocked > 0)
		return 0;
	if (job->not_before_ns > run->now - run->present) {
		sw_heap_set(&run->pauses, id, run->present + job->not_before_ns);
		return 0;
	}
	return push(run, (struct sw_event){.kind = SW_EV_RELEASE, .job = {id}});
}

/* The present: what runs gets its end, and those that wait may compete. */
static int arrive(struct run *run, struct sw_err *err)
{
	run->present = run->now;
	for (uint32_t j = 0; j < run->config->count; j++) {
		struct life *life = &run->lives[j];
		life->left_ns = run->config->jobs[j].left_ns;
		life->since = run->now;
		if (life->runs)
			begin(run, j);
		if (run->config->jobs[j].state == SW_FORECAST_AWAY && life->left_ns < HORIZON_NS)
			sw_heap_set(&run->ends, j, run->now + life->left_ns);
		if (let_in(run, j) < 0)
			return sw_err_set(err, SW_ENOMEM, "out of memory");
	}
	return step(run, err);
}

/* Those that waited for this one. */
static int unblock(struct run *run, uint32_t ended)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < run->dependents.count; i++) {
		uint32_t id = run->dependents.items[i], before = run->lives[id].blocked;
		for (uint32_t d = 0; d < run->config->jobs[id].depend_count; d++)
			run->lives[id].blocked -= run->config->jobs[id].depends[d] == ended;
		if (before > 0)
			r = let_in(run, id);
	}
	return r;
}

/* Ends, and the ends of pauses. */
static int end_those_due(struct run *run)
{
	int r = 0;
	while (r == 0 && sw_heap_top_key(&run->ends) <= run->now) {
		uint32_t id = run->ends.entries[0].id;
		sw_heap_remove(&run->ends, id);
		run->lives[id].runs = false;
		run->ended[run->config->jobs[id].basis]++;
		if (run->config->jobs[id].state != SW_FORECAST_AWAY)
			r = push(run, (struct sw_event){.kind = SW_EV_FINISH,
							.job = {id},
							.epoch = sw_engine_epoch(run->engine, (struct sw_job_id){id})});
		r = r < 0 ? r : unblock(run, id);
	}
	while (r == 0 && sw_heap_top_key(&run->pauses) <= run->now) {
		uint32_t id = run->pauses.entries[0].id;
		sw_heap_remove(&run->pauses, id);
		r = let_in(run, id);
	}
	return r;
}

static int run_on(struct run *run, struct sw_err *err)
{
	int r = 0;
	while (r == 0 && run->awaited > 0) {
		/* SW_TIME_NEVER where there is none. */
		sw_ns next = sw_heap_top_key(&run->ends), pause = sw_heap_top_key(&run->pauses);
		next = pause < next ? pause : next;
		/* When nothing will ever end or come, what the policy might do is of no
		 * interest. */
		if (next == SW_TIME_NEVER || next - run->present > HORIZON_NS)
			return 0;
		next = run->wake_at < next ? run->wake_at : next;
		run->now = next > run->now ? next : run->now;
		if (end_those_due(run) < 0)
			return sw_err_set(err, SW_ENOMEM, "out of memory");
		r = step(run, err);
	}
	return r;
}

static int prepare(struct run *run, struct sw_err *err)
{
	const struct sw_forecast_config *config = run->config;
	struct sw_engine_config engine = {
		.topology = config->topology,
		.policy = config->policy,
		.fallback = &sw_policy_fifo,
		.placement = config->placement,
		.params = config->params,
		.seed = 1,
		.terms = sw_terms_unsaid,
	};
	run->lives = calloc(config->count + 1, sizeof *run->lives);
	if (run->lives == NULL || sw_heap_reserve(&run->ends, config->count + 1) < 0 ||
	    sw_heap_reserve(&run->pauses, config->count + 1) < 0)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	for (uint32_t j = 0; j < config->count; j++) {
		run->starts[j] = (struct sw_forecast_start){.in_ns = SW_TIME_NEVER};
		run->lives[j].blocked = config->jobs[j].depend_count;
		uint32_t *slot = config->jobs[j].depend_count > 0 ? sw_vec_push(&run->dependents) : NULL;
		if (slot != NULL)
			*slot = j;
		else if (config->jobs[j].depend_count > 0)
			return sw_err_set(err, SW_ENOMEM, "out of memory");
		run->awaited += config->jobs[j].state == SW_FORECAST_WAITS && (config->target == UINT32_MAX || config->target == j);
	}
	return sw_engine_new(&engine, &run->engine, err);
}

int sw_forecast(const struct sw_forecast_config *config, struct sw_forecast_start *ret_starts, struct sw_err *err)
{
	struct run run = {.config = config, .starts = ret_starts, .present = SW_TIME_NEVER, .wake_at = SW_TIME_NEVER};
	if (config->count > SW_FORECAST_JOBS_MAX)
		return sw_err_set(err, SW_ELIMIT, "%u jobs are too many to forecast; up to %u can be", config->count, SW_FORECAST_JOBS_MAX);
	sw_ns way_ns = length_of_way(config);
	int r = prepare(&run, err);
	r = r < 0 ? r : submit_all(&run, way_ns, err);
	r = r < 0 ? r : run_stopped(&run, err);
	r = r < 0 ? r : run_running(&run, way_ns, err);
	r = r < 0 ? r : arrive(&run, err);
	r = r < 0 ? r : run_on(&run, err);
	if (run.engine != NULL)
		sw_engine_free(run.engine);
	sw_heap_release(&run.ends);
	sw_heap_release(&run.pauses);
	sw_vec_free(&run.events);
	sw_vec_free(&run.dependents);
	free(run.lives);
	return r;
}
