#include "sim/simulator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/now.h"
#include "base/rng.h"
#include "policy/registry.h"
#include "sim/job_events.h"
#include "sim/model.h"
#include "sim/questions.h"
#include "split/cut.h"

#define USAGE_MAX 4096u
/* A simulation that gets here will never end: nodes fail faster than jobs can run, say. */
#define HORIZON_NS (INT64_C(50) * 365 * 86400 * SW_NS_PER_S)

/* A controller wakes its scheduler a little later than that asked for. */
#define LATE_NS (20 * SW_NS_PER_MS)

/* Wall times of decisions, counted in buckets of a sixteenth of an octave: enough for a
 * percentile, small enough to keep. */
#define BUCKETS (64 * 16)

/* What the owner of a job does to it, or an operator to the cluster, and when. */
struct change {
	sw_ns at;
	uint32_t number;
	struct sw_event event;
};

struct run {
	const struct sw_sim_config *config;
	struct sw_engine *engine;
	struct sw_world_model *world;
	struct sw_result *result;
	struct sw_sim_questions questions;
	sw_ns zero; /* of the trace, by the engine's clock */
	sw_events events;
	SW_VEC(struct sw_job_spec) specs; /* of the jobs that arrive now */
	SW_VEC(struct change) changes;	  /* in their order; none where the trace knows of none */
	size_t changed;			  /* so many have come */
	uint32_t arrived;
	uint64_t ended;
	sw_ns wake_at;
	uint64_t usage_stride, usage_skip;
	struct sw_usage last_step;  /* the step that is not over yet, averaged up to last_usage */
	struct sw_usage last_usage; /* the figures since the last instant */
	__int128 used_ns, up_ns;    /* GPU time */
	uint64_t *buckets;	    /* NULL: not asked for */
	struct sw_rng when_to_reload;
	struct sw_cut cut;	  /* where the world lets jobs be split */
	struct sw_delays *delays; /* NULL: there are no quotas */
	bool told_quotas;
	bool hopeless; /* given up before all jobs had ended */
};

static void count_decision(uint64_t *buckets, int64_t ns)
{
	uint64_t value = ns < 16 ? 16 : (uint64_t)ns;
	uint32_t octave = 63u - (uint32_t)__builtin_clzll(value);
	buckets[octave * 16 + (value >> (octave - 4) & 15)]++;
}

/* The upper edge of the bucket in which the 99th percentile lies. */
static uint64_t decision_p99(const uint64_t *buckets, uint64_t total)
{
	uint64_t seen = 0;
	for (uint32_t b = 4 * 16; b < BUCKETS; b++) { /* nothing is below 16 ns */
		seen += buckets[b];
		if (seen * 100 >= total * 99 && seen > 0)
			return (UINT64_C(16) + b % 16 + 1) << (b / 16 - 4);
	}
	return 0;
}

/* ---- one step */

static sw_ns next_arrival(const struct run *run)
{
	const struct sw_trace *trace = run->config->trace;
	return run->arrived < trace->jobs.count ? run->zero + trace->jobs.items[run->arrived].submit_ns : SW_TIME_NEVER;
}

static sw_ns next_change(const struct run *run)
{
	return run->changed < run->changes.count ? run->changes.items[run->changed].at : SW_TIME_NEVER;
}

static int collect_changes(struct run *run, sw_ns now)
{
	for (; next_change(run) == now; run->changed++) {
		struct sw_event *event = sw_vec_push(&run->events);
		if (event == NULL)
			return SW_ENOMEM;
		*event = run->changes.items[run->changed].event;
	}
	return 0;
}

/* Whether the job is on hold when it comes. */
static bool comes_held(const struct sw_trace *trace, uint32_t job)
{
	const struct sw_trace_job *asked = &trace->jobs.items[job];
	for (uint32_t h = asked->hold; h != 0; h = trace->holds.items[h - 1].next)
		if (trace->holds.items[h - 1].from_ns <= asked->submit_ns)
			return true;
	return false;
}

static int collect_arrivals(struct run *run, sw_ns now)
{
	size_t first = run->events.count;
	run->specs.count = 0;
	/* A controller decides after each record. */
	uint32_t most = run->config->world->recorded ? run->arrived + 1 : UINT32_MAX;
	for (; next_arrival(run) == now && run->arrived < most; run->arrived++) {
		struct sw_event *event = sw_vec_push(&run->events);
		struct sw_job_spec *spec = sw_vec_push(&run->specs);
		if (event == NULL || spec == NULL)
			return SW_ENOMEM;
		sw_world_model_spec(run->world, run->arrived, spec);
		spec->held = comes_held(run->config->trace, run->arrived);
		event->kind = SW_EV_SUBMIT;
	}
	for (size_t s = 0; s < run->specs.count; s++)
		run->events.items[first + s].spec = &run->specs.items[s];
	return 0;
}

/* Before the first job. */
static int tell_quotas(struct run *run)
{
	for (size_t q = 0; q < run->config->quota_count && !run->told_quotas; q++) {
		struct sw_event *event = sw_vec_push(&run->events);
		if (event == NULL)
			return SW_ENOMEM;
		event->kind = SW_EV_QUOTA;
		event->tenant = run->config->quotas[q].tenant;
		event->gpus = run->config->quotas[q].gpus;
	}
	run->told_quotas = true;
	return 0;
}

/* How many jobs these events end; failures end a job only when its retries are used up, which
 * only the engine knows. */
static uint64_t count_ended(const struct run *run, const struct sw_step *step)
{
	uint64_t ended = 0;
	for (size_t e = 0; e < run->events.count; e++) {
		const struct sw_event *event = &run->events.items[e];
		if (event->kind == SW_EV_FINISH || event->kind == SW_EV_FAIL)
			ended += sw_engine_job(run->engine, event->job)->state > SW_JOB_RUNNING;
	}
	for (size_t c = 0; c < step->command_count; c++)
		ended += step->commands[c].kind == SW_CMD_REFUSE;
	return ended;
}

/* The mean of two neighbouring figures, weighed by how long each held. */
static uint32_t weigh(uint32_t a, int64_t a_ns, uint32_t b, int64_t b_ns)
{
	return a_ns + b_ns == 0 ? b : (uint32_t)(((__int128)a * a_ns + (__int128)b * b_ns + (a_ns + b_ns) / 2) / (a_ns + b_ns));
}

/* The figures of `first` up to second->at_ns and of `second` up to end_ns, as one step
 * that covers the same area. */
static void merge_usage(struct sw_usage *first, const struct sw_usage *second, int64_t end_ns)
{
	int64_t a_ns = second->at_ns - first->at_ns, b_ns = end_ns - second->at_ns;
	first->gpus_used = weigh(first->gpus_used, a_ns, second->gpus_used, b_ns);
	first->gpus_up = weigh(first->gpus_up, a_ns, second->gpus_up, b_ns);
	first->jobs_running = weigh(first->jobs_running, a_ns, second->jobs_running, b_ns);
	first->jobs_waiting = weigh(first->jobs_waiting, a_ns, second->jobs_waiting, b_ns);
}

/* Usage is kept as a bounded number of steps. When there are too many, neighbours are merged, and
 * from then on a step lasts twice as many instants. */
static void sample_usage(struct run *run, sw_ns now)
{
	struct sw_result *result = run->result;
	const struct sw_view *view = sw_engine_view(run->engine);
	struct sw_usage usage = {
		.at_ns = now,
		.gpus_used = sw_view_gpus(view) - sw_view_gpus_free(view),
		.gpus_up = sw_view_gpus(view),
		.jobs_running = sw_view_running(view),
		.jobs_waiting = sw_view_waiting(view),
	};
	if (run->usage_skip > 0) {
		run->used_ns += (__int128)(now - run->last_usage.at_ns) * run->last_usage.gpus_used;
		run->up_ns += (__int128)(now - run->last_usage.at_ns) * run->last_usage.gpus_up;
	}
	if (run->usage_skip++ % run->usage_stride != 0 && result->usage.count > 0) {
		merge_usage(&run->last_step, &run->last_usage, now);
		run->last_usage = usage;
		return;
	}
	if (result->usage.count > 0) {
		merge_usage(&run->last_step, &run->last_usage, now);
		result->usage.items[result->usage.count - 1] = run->last_step;
	}
	if (result->usage.count == USAGE_MAX) {
		for (size_t i = 0; 2 * i < USAGE_MAX; i++) {
			struct sw_usage *pair = &result->usage.items[2 * i];
			merge_usage(&pair[0], &pair[1], 2 * i + 2 < USAGE_MAX ? pair[2].at_ns : now);
			result->usage.items[i] = pair[0];
		}
		result->usage.count /= 2;
		run->usage_stride *= 2;
	}
	struct sw_usage *slot = sw_vec_push(&result->usage);
	if (slot == NULL)
		return; /* a gap in a plot */
	*slot = run->last_step = run->last_usage = usage;
}

static struct sw_engine_config engine_config(const struct run *run)
{
	const struct sw_sim_config *config = run->config;
	return (struct sw_engine_config){
		.topology = config->topology,
		.policy = config->policy,
		.fallback = &sw_policy_fifo,
		.placement = config->placement,
		.params = config->params,
		.seed = config->seed,
		.terms = sw_world_terms(config->world),
		.predictor = sw_world_model_predictor(run->world),
		.scaler = sw_world_model_scaler(run->world),
		.gpu_types = sw_world_model_gpu_types(run->world),
		.splitter = config->world->split_milli != 0 ? &run->cut.splitter : NULL,
	};
}

/* Goes on with an engine loaded from the bytes of this one. */
static int reload(struct run *run, struct sw_err *err)
{
	struct sw_engine_config config = engine_config(run);
	struct sw_engine *loaded = NULL;
	struct sw_pack pack = {0};
	bool adopted = false;
	sw_engine_save(run->engine, &pack);
	int r = pack.failed != 0 ? sw_err_set(err, pack.failed, "out of memory")
				 : sw_engine_load(&config, pack.bytes, pack.size, &loaded, &adopted, err);
	sw_pack_release(&pack);
	if (r < 0)
		return r;
	sw_engine_free(run->engine);
	run->engine = loaded;
	return adopted ? sw_err_set(err, SW_EBUG, "an engine did not recognise its own bytes") : 0;
}

/* In a history: when it was woken really, soon after this. Where it was not, what came before
 * that decided, and so it does here. */
static sw_ns wake_really(const struct run *run, sw_ns wake_at)
{
	const struct sw_trace *trace = run->config->trace;
	size_t low = 0, high = trace->wakes.count;
	if (!run->config->world->recorded || high == 0 || wake_at >= SW_TIME_NEVER - LATE_NS)
		return wake_at;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (run->zero + trace->wakes.items[middle] < wake_at)
			low = middle + 1;
		else
			high = middle;
	}
	sw_ns really = low < trace->wakes.count ? run->zero + trace->wakes.items[low] : SW_TIME_NEVER;
	return really < wake_at + LATE_NS ? really : wake_at + LATE_NS;
}

static int step(struct run *run, sw_ns now, struct sw_err *err)
{
	run->events.count = 0;
	if (run->config->reload_milli > 0 && sw_rng_below(&run->when_to_reload, 1000) < run->config->reload_milli) {
		int r = reload(run, err);
		if (r < 0)
			return r;
	}
	if (tell_quotas(run) < 0 || sw_world_model_collect(run->world, run->engine, now, &run->events) < 0 ||
	    collect_changes(run, now) < 0 || collect_arrivals(run, now) < 0 ||
	    sw_sim_questions_collect(&run->questions, now, &run->events) < 0)
		return sw_err_set(err, SW_ENOMEM, "out of memory at %lld s of simulated time",
				  (long long)((now - run->zero) / SW_NS_PER_S));
	struct sw_step outcome;
	int64_t before = run->buckets != NULL ? sw_now_monotonic_ns() : 0;
	int r = sw_engine_step(run->engine, now, run->events.items, run->events.count, &outcome, err);
	if (r < 0)
		return r;
	if (run->buckets != NULL)
		count_decision(run->buckets, sw_now_monotonic_ns() - before);
	if (run->config->validate) {
		r = sw_engine_validate(run->engine, err);
		if (r < 0)
			return r;
	}
	run->result->events += run->events.count;
	run->result->decisions++;
	run->wake_at = wake_really(run, outcome.wake_at);
	if (run->delays != NULL)
		sw_delays_note(run->delays, run->engine, run->events.items, run->events.count, &outcome, run->arrived);
	if (run->config->list_job_events &&
	    sw_job_events_note(run->result, run->config->trace, now - run->zero, run->events.items, run->events.count, &outcome) < 0)
		return sw_err_set(err, SW_ENOMEM, "out of memory for what happened to the jobs");
	uint64_t ended = count_ended(run, &outcome);
	sw_world_model_obey(run->world, run->engine, now, &outcome);
	if (sw_sim_questions_solve(&run->questions, run->engine, now) < 0)
		return sw_err_set(err, SW_ENOMEM, "out of memory for a question of the policy");
	run->ended += ended;
	if (ended > 0 && run->config->ended != NULL)
		atomic_fetch_add_explicit(run->config->ended, ended, memory_order_relaxed);
	sample_usage(run, now - run->zero);
	return 0;
}

static int run_to_the_end(struct run *run, struct sw_err *err)
{
	const struct sw_trace *trace = run->config->trace;
	sw_ns last_submit = run->zero + (trace->jobs.count > 0 ? trace->jobs.items[trace->jobs.count - 1].submit_ns : 0);
	while (run->ended < run->config->trace->jobs.count) {
		sw_ns now = next_arrival(run), world = sw_world_model_next(run->world);
		now = world < now ? world : now;
		now = next_change(run) < now ? next_change(run) : now;
		now = run->wake_at < now ? run->wake_at : now;
		now = sw_sim_questions_next(&run->questions) < now ? sw_sim_questions_next(&run->questions) : now;
		if (now == SW_TIME_NEVER || now - HORIZON_NS > last_submit) {
			/* Jobs wait for what will not come: they are reported as unfinished. */
			run->hopeless = true;
			return 0;
		}
		if (run->config->stop != NULL && atomic_load_explicit(run->config->stop, memory_order_relaxed))
			return sw_err_set(err, SW_ESTOPPED, "the simulation of '%s' was stopped", run->config->policy->name);
		int r = step(run, now, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- the result */

static uint8_t outcome_state(const struct sw_job *job)
{
	switch (job->state) {
	case SW_JOB_FINISHED:
		return SW_OUTCOME_FINISHED;
	case SW_JOB_FAILED:
		return SW_OUTCOME_FAILED;
	case SW_JOB_REFUSED:
		return SW_OUTCOME_REFUSED;
	default:
		return SW_OUTCOME_UNFINISHED;
	}
}

static int write_outcomes(struct run *run)
{
	const struct sw_trace *trace = run->config->trace;
	struct sw_outcome *outcomes = sw_vec_push_n(&run->result->outcomes, trace->jobs.count);
	if (outcomes == NULL)
		return SW_ENOMEM;
	for (uint32_t j = 0; j < trace->jobs.count; j++) {
		const struct sw_trace_job *asked = &trace->jobs.items[j];
		outcomes[j] = (struct sw_outcome){
			.id = asked->id,
			.submit_ns = asked->submit_ns,
			.start_ns = SW_TIME_NEVER,
			.end_ns = SW_TIME_NEVER,
			.deadline_ns = asked->deadline_ns,
			.work_ns = asked->duration_ns,
			.gpus = asked->gpus,
			.tenant = asked->tenant,
			.state = SW_OUTCOME_UNFINISHED,
		};
		const struct sw_job *job = sw_engine_job(run->engine, (struct sw_job_id){j});
		if (job == NULL)
			continue; /* the run was over before it came */
		outcomes[j].state = outcome_state(job);
		outcomes[j].start_ns = job->first_start_at != SW_TIME_NEVER ? job->first_start_at - run->zero : SW_TIME_NEVER;
		outcomes[j].run_ns = sw_job_ran(sw_engine_view(run->engine), job);
		if (job->state == SW_JOB_FINISHED || job->state == SW_JOB_FAILED) {
			outcomes[j].end_ns = job->since - run->zero;
			outcomes[j].wait_ns = job->since - job->submit_at - outcomes[j].run_ns;
		}
		outcomes[j].preemptions = job->preemptions;
		outcomes[j].migrations = job->migrations;
		outcomes[j].restarts = job->restarts;
		outcomes[j].promotions = job->promotions;
		outcomes[j].share_wait_ns = run->delays != NULL ? sw_delays_of(run->delays, j) : 0;
	}
	return 0;
}

static int describe(struct run *run)
{
	const struct sw_sim_config *config = run->config;
	struct sw_result *result = run->result;
	result->policy = strdup(config->policy->name);
	result->placement = strdup(config->placement->name);
	result->world = strdup(config->world->name);
	result->trace = strdup(config->trace->origin);
	result->cluster = strdup(config->cluster);
	result->assumptions = sw_world_describe(config->world);
	result->notes = strdup(sw_engine_notes(run->engine));
	if (run->hopeless && result->notes != NULL) {
		char *more = NULL;
		const char *first = result->notes;
		long long days = (long long)((sw_view_now(sw_engine_view(run->engine)) - run->zero) / SW_NS_PER_S / 86400);
		int length = asprintf(&more, "%s%sgiven up after %lld days: the jobs that are left would never end", first,
				      first[0] ? "; " : "", days);
		free(result->notes);
		result->notes = length < 0 ? NULL : more;
	}
	result->seed = config->seed;
	result->log_hash = sw_engine_log_hash(run->engine);
	result->command_hash = sw_engine_command_hash(run->engine);
	result->gpus = config->topology->gpu_count;
	result->gpu_used_s = (double)run->used_ns / 1e9;
	result->gpu_up_s = (double)run->up_ns / 1e9;
	if (run->buckets != NULL)
		result->decision_p99_ns = decision_p99(run->buckets, result->decisions);
	struct rusage usage;
	if (getrusage(RUSAGE_SELF, &usage) == 0)
		result->max_rss_bytes = (uint64_t)usage.ru_maxrss * 1024;
	bool whole = result->policy != NULL && result->placement != NULL && result->world != NULL && result->trace != NULL &&
		     result->cluster != NULL && result->assumptions != NULL && result->notes != NULL;
	return whole ? 0 : SW_ENOMEM;
}

static bool is_of_job(const struct change *change)
{
	return change->event.kind == SW_EV_HOLD || change->event.kind == SW_EV_HOLD_NEXT || change->event.kind == SW_EV_RELEASE;
}

/* Those of the cluster come first in an instant, in their order; then by job. */
static int compare_changes(const void *a, const void *b)
{
	const struct change *x = a, *y = b;
	if (x->at != y->at)
		return (x->at > y->at) - (x->at < y->at);
	if (!is_of_job(x) || !is_of_job(y))
		return is_of_job(x) || is_of_job(y) ? is_of_job(x) - is_of_job(y) : (x->number > y->number) - (x->number < y->number);
	if (x->event.job.v != y->event.job.v)
		return (x->event.job.v > y->event.job.v) - (x->event.job.v < y->event.job.v);
	/* A job that is held anew in the moment of its release. */
	return (x->event.kind != SW_EV_RELEASE) - (y->event.kind != SW_EV_RELEASE);
}

static int add_change(struct run *run, sw_ns at, const struct sw_event *event)
{
	struct change *change = sw_vec_push(&run->changes);
	if (change == NULL)
		return SW_ENOMEM;
	*change = (struct change){.at = run->zero + (at > 0 ? at : 0), .number = (uint32_t)run->changes.count, .event = *event};
	return 0;
}

static int add_job_change(struct run *run, uint32_t job, sw_ns at, enum sw_event_kind kind)
{
	return add_change(run, at, &(struct sw_event){.kind = kind, .job = {job}});
}

/* Those of the cluster, and holds and releases, in their order. */
static int list_changes(struct run *run)
{
	const struct sw_trace *trace = run->config->trace;
	for (size_t e = 0; run->config->world->recorded && e < trace->events.count; e++)
		if (add_change(run, trace->events.items[e].at_ns, &trace->events.items[e].event) < 0)
			return SW_ENOMEM;
	for (uint32_t j = 0; trace->holds.count > 0 && j < trace->jobs.count; j++)
		for (uint32_t h = trace->jobs.items[j].hold; h != 0; h = trace->holds.items[h - 1].next) {
			const struct sw_trace_hold *hold = &trace->holds.items[h - 1];
			int r = 0;
			if (hold->from_ns > trace->jobs.items[j].submit_ns)
				r = add_job_change(run, j, hold->from_ns, hold->leaves ? SW_EV_HOLD_NEXT : SW_EV_HOLD);
			if (r < 0 || add_job_change(run, j, hold->to_ns, SW_EV_RELEASE) < 0)
				return SW_ENOMEM;
		}
	if (run->changes.count > 0)
		qsort(run->changes.items, run->changes.count, sizeof *run->changes.items, compare_changes);
	return 0;
}

static int prepare(struct run *run, struct sw_err *err)
{
	const struct sw_sim_config *config = run->config;
	run->cut = sw_cut_make((uint32_t)config->world->split_milli);
	run->questions.world = config->world;
	sw_rng_seed(&run->when_to_reload, config->seed);
	int r = sw_world_model_new(config->world, config->profiles, config->trace, config->topology, config->seed, &run->world, err);
	if (r < 0)
		return r;
	if (sw_world_model_name_types(run->world, config->gpu_types, config->gpu_type_count) < 0)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	run->zero = sw_world_model_zero(run->world);
	struct sw_engine_config engine = engine_config(run);
	r = sw_engine_new(&engine, &run->engine, err);
	if (r < 0)
		return r;
	run->result = calloc(1, sizeof *run->result);
	run->buckets = config->time_decisions ? calloc(BUCKETS, sizeof *run->buckets) : NULL;
	if (run->result == NULL || (config->time_decisions && run->buckets == NULL) || list_changes(run) < 0)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	if (config->quota_count > 0) {
		run->delays = sw_delays_new(config->quotas, config->quota_count, (uint32_t)config->trace->jobs.count);
		run->result->has_quotas = true;
		if (run->delays == NULL)
			return sw_err_set(err, SW_ENOMEM, "out of memory");
	}
	run->wake_at = SW_TIME_NEVER;
	run->usage_stride = 1;
	return 0;
}

int sw_simulate(const struct sw_sim_config *config, struct sw_result **ret_result, struct sw_err *err)
{
	struct run run = {.config = config};
	int64_t began = sw_now_thread_ns();
	int r = prepare(&run, err);
	if (r == 0)
		r = run_to_the_end(&run, err);
	if (r == 0 && (write_outcomes(&run) < 0 || describe(&run) < 0))
		r = sw_err_set(err, SW_ENOMEM, "out of memory for the results");
	if (r == 0) {
		sw_result_summarise(run.result);
		run.result->cpu_s = (double)(sw_now_thread_ns() - began) / 1e9;
		*ret_result = SW_TAKE(run.result);
	}
	if (run.result != NULL)
		sw_result_free(run.result);
	if (run.world != NULL)
		sw_world_model_free(run.world);
	if (run.engine != NULL)
		sw_engine_free(run.engine);
	if (run.delays != NULL)
		sw_delays_free(run.delays);
	sw_sim_questions_release(&run.questions);
	sw_vec_free(&run.events);
	sw_vec_free(&run.specs);
	sw_vec_free(&run.changes);
	free(run.buckets);
	return r;
}
