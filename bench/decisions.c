/* How long one decision takes with a long queue: a full cluster, `waiting` jobs in the queue, and
 * then one event at a time (a job ends, another comes), each timed from event to commands. Prints
 * one line of JSON per policy and placement.
 *
 *	bench_decisions [nodes gpus-per-node waiting events [policy placement]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/number.h"
#include "base/rng.h"
#include "core/engine.h"
#include "placement/registry.h"
#include "policy/registry.h"

struct bench {
	struct sw_engine *engine;
	struct sw_rng rng;
	sw_ns now;
	uint32_t *running; /* ids, in no order; kept from the commands */
	uint32_t *place;   /* of each id in running, or UINT32_MAX */
	uint32_t running_count;
	uint32_t submitted;
	sw_ns wake_at;
};

static int64_t clock_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Sizes and lengths like those of a research cluster: mostly one GPU, some
 * gangs; minutes to days. */
static struct sw_job_spec draw_job(struct sw_rng *rng)
{
	static const uint32_t sizes[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 4, 4, 8, 8, 16, 64};
	uint32_t gpus = sizes[sw_rng_below(rng, sizeof sizes / sizeof sizes[0])];
	int64_t seconds = INT64_C(60) << sw_rng_below(rng, 11);
	return (struct sw_job_spec){.gpus = gpus,
				    .min_gpus = gpus,
				    .max_gpus = gpus,
				    .knowledge = SW_KNOWN,
				    .work_ns = (seconds + (int64_t)sw_rng_below(rng, (uint64_t)seconds)) * SW_NS_PER_S,
				    .skew_milli = (uint16_t)(1 + sw_rng_below(rng, 900)),
				    .deadline_at = SW_TIME_NEVER};
}

static void follow(struct bench *bench, const struct sw_step *step)
{
	for (size_t c = 0; c < step->command_count; c++) {
		uint32_t id = step->commands[c].job;
		if (step->commands[c].kind == SW_CMD_START) {
			bench->place[id] = bench->running_count;
			bench->running[bench->running_count++] = id;
		} else if (step->commands[c].kind == SW_CMD_STOP) {
			uint32_t last = bench->running[--bench->running_count];
			bench->running[bench->place[id]] = last;
			bench->place[last] = bench->place[id];
			bench->place[id] = UINT32_MAX;
		}
	}
	bench->wake_at = step->wake_at;
}

static int64_t step(struct bench *bench, const struct sw_event *events, size_t count)
{
	struct sw_step outcome;
	struct sw_err err = {0};
	/* Wake-ups that fall in between are decisions too, but no caller waits for them. */
	while (bench->wake_at < bench->now)
		if (sw_engine_step(bench->engine, bench->wake_at, NULL, 0, &outcome, &err) == 0)
			follow(bench, &outcome);
	int64_t before = clock_ns();
	if (sw_engine_step(bench->engine, bench->now, events, count, &outcome, &err) < 0) {
		fprintf(stderr, "%s\n", err.fact);
		exit(1);
	}
	int64_t took = clock_ns() - before;
	follow(bench, &outcome);
	return took;
}

static int64_t submit_one(struct bench *bench)
{
	struct sw_job_spec spec = draw_job(&bench->rng);
	struct sw_event event = {.kind = SW_EV_SUBMIT, .spec = &spec};
	bench->submitted++;
	return step(bench, &event, 1);
}

static int64_t finish_one(struct bench *bench)
{
	uint32_t at = (uint32_t)sw_rng_below(&bench->rng, bench->running_count), id = bench->running[at];
	struct sw_event event = {.kind = SW_EV_FINISH, .job = {id}, .epoch = sw_engine_epoch(bench->engine, (struct sw_job_id){id})};
	uint32_t last = bench->running[--bench->running_count];
	bench->running[at] = last;
	bench->place[last] = at;
	bench->place[id] = UINT32_MAX;
	return step(bench, &event, 1);
}

static int ascending(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static void measure(const struct sw_topology *topology, const struct sw_policy *policy, const struct sw_placement *placement,
		    uint32_t waiting, uint32_t events)
{
	struct bench bench = {.wake_at = SW_TIME_NEVER};
	struct sw_engine_config config = {.topology = topology, .policy = policy, .placement = placement, .terms.keeps_state = true};
	struct sw_err err = {0};
	uint32_t most = waiting + topology->gpu_count + 4 * events + 1000;
	bench.running = calloc(most, sizeof *bench.running);
	bench.place = calloc(most, sizeof *bench.place);
	int64_t *times = calloc(events, sizeof *times);
	if (sw_engine_new(&config, &bench.engine, &err) < 0 || bench.running == NULL || bench.place == NULL || times == NULL)
		exit(1);
	sw_rng_seed(&bench.rng, 1);
	const struct sw_view *view = sw_engine_view(bench.engine);
	while (sw_view_waiting(view) < waiting && bench.submitted < most - 2 * events) {
		bench.now += SW_NS_PER_S;
		submit_one(&bench);
	}
	for (uint32_t e = 0; e < events; e++) {
		bench.now += SW_NS_PER_S;
		times[e] = sw_view_waiting(view) < waiting || bench.running_count == 0 ? submit_one(&bench) : finish_one(&bench);
	}
	qsort(times, events, sizeof *times, ascending);
	printf("{\"policy\": \"%s\", \"placement\": \"%s\", \"gpus\": %u, \"waiting\": %u, \"running\": %u, \"p50_us\": %.1f, \"p99_us\": "
	       "%.1f, \"max_us\": %.1f}\n",
	       policy->name, placement->name, topology->gpu_count, sw_view_waiting(view), sw_view_running(view),
	       (double)times[events / 2] / 1e3, (double)times[events * UINT64_C(99) / 100] / 1e3, (double)times[events - 1] / 1e3);
	fflush(stdout);
	sw_engine_free(bench.engine);
	free(bench.running);
	free(bench.place);
	free(times);
}

int main(int argc, char **argv)
{
	uint32_t numbers[4] = {2000, 8, 10000, 20000};
	const char *policy = argc > 6 ? argv[5] : NULL, *placement = argc > 6 ? argv[6] : NULL;
	for (int a = 1; a < argc && a <= 4; a++) {
		int64_t value;
		if (sw_parse_i64(argv[a], strlen(argv[a]), &value) < 0 || value < 1 || value > 1000000) {
			fprintf(stderr, "usage: %s [nodes gpus-per-node waiting events [policy placement]]\n", argv[0]);
			return 2;
		}
		numbers[a - 1] = (uint32_t)value;
	}
	struct sw_topology_node *nodes = calloc(numbers[0], sizeof *nodes);
	struct sw_topology *topology;
	struct sw_err err = {0};
	for (uint32_t n = 0; nodes != NULL && n < numbers[0]; n++)
		nodes[n] = (struct sw_topology_node){
			.gpus = numbers[1], .cpus = 128, .memory_bytes = UINT64_C(1) << 40, .gpu_memory_bytes = UINT64_C(80) << 30};
	if (nodes == NULL || sw_topology_new(nodes, numbers[0], &topology, &err) < 0) {
		fprintf(stderr, "%s\n", err.fact);
		return 1;
	}
	for (size_t p = 0; sw_policies[p] != NULL; p++)
		for (size_t r = 0; sw_placements[r] != NULL; r++)
			if (sw_policies[p]->decide == NULL && (policy == NULL || (strcmp(policy, sw_policies[p]->name) == 0 &&
										  strcmp(placement, sw_placements[r]->name) == 0)))
				measure(topology, sw_policies[p], sw_placements[r], numbers[2], numbers[3]);
	sw_topology_free(topology);
	free(nodes);
	return 0;
}
