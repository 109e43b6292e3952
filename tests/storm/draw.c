/* From a seed to the plan of a round. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "storm.h"

const char *const verb_names[VERBS] = {"submit", "cancel", "requeue", "suspend", "resume", "hold", "release", "move"};
const char *const target_names[KILL_KINDS] = {"controller", "agent", "nursery", "supervisor", "log writer", "job", "all but the jobs"};

enum { SPAN_US = 500000, CLOSE_US = 12000 };

static uint32_t below(struct sw_rng *rng, uint32_t bound)
{
	return (uint32_t)sw_rng_below(rng, bound);
}

static bool chance(struct sw_rng *rng, uint32_t percent)
{
	return below(rng, 100) < percent;
}

static void draw_end(struct sw_rng *rng, struct job_plan *job)
{
	static const uint32_t signals[] = {SIGKILL, SIGTERM, SIGUSR1, SIGHUP};
	uint32_t kind = below(rng, 10);
	if (kind < 4)
		return; /* ends well */
	job->code = 1 + below(rng, 255);
	if (kind == 9)
		job->signal = signals[below(rng, 4)];
	job->retries = chance(rng, 40) ? 1 + below(rng, 2) : 0;
	/* Fails for ever, or as often as its retries forgive. */
	job->fails = kind < 7 || job->retries == 0 ? UINT32_MAX : job->retries;
}

static void draw_shape(struct sw_rng *rng, struct job_plan *job)
{
	job->gpus = chance(rng, 8) ? GPUS_PER_NODE + 1 + below(rng, GPUS_PER_NODE) : 1 + below(rng, chance(rng, 30) ? 4 : 2);
	job->duration_ms = chance(rng, 30) ? 0 : 10 + below(rng, 350);
	if (chance(rng, 12))
		job->array = 2 + below(rng, ARRAY_MAX - 1);
	if (chance(rng, 25)) {
		job->children = 1 + below(rng, 3);
		job->child_kind = (enum children)below(rng, CHILDREN_KINDS);
	}
	job->is_deaf = chance(rng, 30);
	job->grace_ms = 50 + below(rng, 350);
}

/* What its owner allows, and the ways in which it may stand still. */
static void draw_keeping(struct sw_rng *rng, struct job_plan *job)
{
	uint32_t at_us = job->at_us[VERB_SUBMIT];
	job->keep = chance(rng, 40) ? KEEP_DEFAULT : (enum keep)(1 + below(rng, KEEP_KINDS - 1));
	if (job->gpus <= GPUS_PER_NODE && chance(rng, 50))
		job->gpu_kib = 64 << below(rng, 7);
	if (chance(rng, 20))
		job->at_us[VERB_HOLD] = at_us + 1 + below(rng, 200000);
	if (chance(rng, 30)) {
		job->at_us[VERB_SUSPEND] = at_us + 1 + below(rng, 250000);
		if (chance(rng, 60))
			job->at_us[VERB_RESUME] = job->at_us[VERB_SUSPEND] + 1 + below(rng, 150000);
	}
	if (job->gpu_kib > 0 && job->gpus < GPUS_PER_NODE && chance(rng, 20))
		job->at_us[VERB_MOVE] = at_us + 1 + below(rng, 250000);
}

static void draw_job(struct sw_rng *rng, uint64_t seed, size_t number, struct job_plan *job)
{
	*job = (struct job_plan){.client = below(rng, CLIENTS)};
	uint32_t at_us = job->at_us[VERB_SUBMIT] = 1 + below(rng, SPAN_US / 2);
	snprintf(job->name, sizeof job->name, "r%llu-%zu", (unsigned long long)seed, number);
	draw_shape(rng, job);
	draw_end(rng, job);
	job->has_key = chance(rng, 60);
	if (chance(rng, 8))
		job->at_us[VERB_CANCEL] = at_us + below(rng, 200000);
	else if (chance(rng, 15))
		job->at_us[VERB_REQUEUE] = at_us + below(rng, 200000);
	draw_keeping(rng, job);
}

/* Half of the kills come close behind a submit: the moments between a decision and a running
 * process are short, and the most dangerous. */
static void draw_kill(struct sw_rng *rng, const struct round_plan *plan, struct kill_plan *kill)
{
	static const uint8_t weights[KILL_KINDS] = {25, 24, 10, 20, 4, 14, 3};
	uint32_t drawn = below(rng, 100), target = 0;
	for (uint32_t sum = weights[0]; drawn >= sum && target + 1 < KILL_KINDS; sum += weights[target])
		target++;
	const struct job_plan *job = &plan->jobs[below(rng, (uint32_t)plan->job_count)];
	bool close = chance(rng, 50);
	*kill = (struct kill_plan){
		.target = (enum target)target,
		.at_us = close ? job->at_us[VERB_SUBMIT] + below(rng, CLOSE_US) : 1 + below(rng, SPAN_US),
		.pick = below(rng, UINT32_MAX),
		.back_after_us = chance(rng, 60) ? 0 : below(rng, 200000),
	};
}

static void sort_kills(struct round_plan *plan)
{
	for (size_t i = 1; i < plan->kill_count; i++)
		for (size_t j = i; j > 0 && plan->kills[j].at_us < plan->kills[j - 1].at_us; j--) {
			struct kill_plan held = plan->kills[j];
			plan->kills[j] = plan->kills[j - 1];
			plan->kills[j - 1] = held;
		}
}

/* Its GPU opens again some seconds after it has left, so that there is not one in each round. */
static void draw_stranger(struct sw_rng *rng, struct stranger_plan *stranger)
{
	*stranger = (struct stranger_plan){
		.node = below(rng, NODES),
		.gpu = below(rng, GPUS_PER_NODE),
		.stay_us = 100000 + below(rng, 2000000),
		.is_first = chance(rng, 60),
	};
	if (!stranger->is_first)
		stranger->at_us = 1 + below(rng, SPAN_US);
}

void draw_round(uint64_t seed, struct round_plan *ret_plan)
{
	struct sw_rng rng;
	sw_rng_seed(&rng, seed);
	memset(ret_plan, 0, sizeof *ret_plan);
	ret_plan->seed = seed;
	ret_plan->job_count = 3 + below(&rng, ROUND_JOBS - 2);
	for (size_t i = 0; i < ret_plan->job_count; i++)
		draw_job(&rng, seed, i, &ret_plan->jobs[i]);
	ret_plan->kill_count = 1 + below(&rng, ROUND_KILLS);
	for (size_t i = 0; i < ret_plan->kill_count; i++)
		draw_kill(&rng, ret_plan, &ret_plan->kills[i]);
	sort_kills(ret_plan);
	struct kill_plan *last = &ret_plan->kills[ret_plan->kill_count - 1];
	if (chance(&rng, 3)) {
		ret_plan->has_outage = true;
		last->target = chance(&rng, 50) ? KILL_CONTROLLER : KILL_AGENT;
		last->back_after_us = 3000000 + below(&rng, 4000000);
	}
	if (chance(&rng, 15))
		draw_stranger(&rng, &ret_plan->stranger);
}

void print_round(const struct round_plan *plan)
{
	printf("round %llu:\n", (unsigned long long)plan->seed);
	for (size_t i = 0; i < plan->job_count; i++) {
		const struct job_plan *job = &plan->jobs[i];
		printf("  %7.1f ms  submit %s: %u GPUs, %u KiB, keep %u, %u ms, exit %u signal %u in its first %u runs, %u retries, array "
		       "%u, %u children "
		       "of kind %u%s",
		       (double)job->at_us[VERB_SUBMIT] / 1000, job->name, job->gpus, job->gpu_kib, job->keep, job->duration_ms, job->code,
		       job->signal, job->fails, job->retries, job->array, job->children, job->child_kind, job->is_deaf ? ", deaf" : "");
		for (int verb = VERB_SUBMIT + 1; verb < VERBS; verb++)
			if (job->at_us[verb] > 0)
				printf(", %s at %.1f ms", verb_names[verb], (double)job->at_us[verb] / 1000);
		putchar('\n');
	}
	for (size_t i = 0; i < plan->kill_count; i++)
		printf("  %7.1f ms  kill %s, back after %.1f ms\n", (double)plan->kills[i].at_us / 1000,
		       target_names[plan->kills[i].target], (double)plan->kills[i].back_after_us / 1000);
	if (plan->stranger.stay_us > 0)
		printf("  %7.1f ms  a stranger on GPU %u of node %u%s, for %.1f ms\n", (double)plan->stranger.at_us / 1000,
		       plan->stranger.gpu, plan->stranger.node, plan->stranger.is_first ? ", there before" : "",
		       (double)plan->stranger.stay_us / 1000);
}
