/* Runs that share a GPU, coordinated by what was seen of them: AntMan's local coordinator
 * (src/share/coordinate.h) on the runs that the plan has put there.
 *
 * The plan has seen to it that what they asked for fits, and says which runs. So no run is
 * suspended here. The coordinator would suspend an opportunistic run of whose memory next to
 * nothing fits: that stands still with its memory in the host instead. Guaranteed runs take no
 * turns.
 *
 * What a guaranteed run asked for is its own whatever opportunistic ones do. When it needs more, it
 * has that too, as long as no other guaranteed run asked for it. What it takes goes to host memory
 * first. At the next look the opportunistic runs are made smaller by as much, and it comes back. A
 * run that was limited stays within the limit. A run that is to start where memory is short waits
 * until it has been taken from the others. A context cannot be put into host memory.
 *
 * What is learnt is lost with the agent; what was ordered stands in the runs' pages, and the
 * next agent learns anew. */
#include <stdlib.h>
#include <string.h>

#include "agent/brain/coordinate.h"
#include "agent/brain/gpu.h"
#include "agent/brain/speed.h"
#include "agent/brain/state.h"

/* So long after runs on a GPU were told to make room for another, they have. */
#define ROOM_NS (2 * SW_NS_PER_S)
/* After so long without a look, the figures mean nothing. */
#define BLIND_NS (10 * SW_NS_PER_S)

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* Its own among the runs that are alive, and stays. */
static uint64_t number_of(const struct sw_agent_run *run)
{
	return run->id.job << 11 | (run->id.epoch & 2047);
}

/* ---- what was seen */

static void take_gpu(struct sw_agent_brain *brain, const struct sw_sync_sample *sample)
{
	for (size_t i = 0; i < brain->gpus.count; i++)
		if (strcmp(brain->gpus.items[i].uuid, sample->gpu) == 0)
			brain->gpus.items[i].used_bytes = sample->memory_bytes;
}

static void take_run(struct sw_agent_brain *brain, const struct sw_sync_sample *sample)
{
	struct sw_agent_run *run = sw_agent_find(brain, sample->run);
	for (size_t i = 0; run != NULL && i < run->gpu_count; i++) {
		if (strcmp(brain->gpus.items[run->gpus[i]].uuid, sample->gpu) != 0)
			continue;
		run->seen[i] = (struct sw_coordinate_job){
			.id = number_of(run),
			.suspended = sample->suspended,
			.moving = sample->moving,
			.watched = sample->watched,
			.charged_bytes = sample->charged_bytes,
			.fixed_bytes = sample->fixed_bytes,
			.host_bytes = sample->host_bytes + sample->wanted_bytes, /* both would be on the GPU if there were room */
			.peak_bytes = sample->peak_bytes,
			.floor_bytes = sample->floor_bytes,
			.iterations = sample->iterations,
			.iteration_ns = (int64_t)sample->iteration_ns,
			.launches = sample->launches,
		};
	}
}

/* What it needs on one of its GPUs; while it moves, its memory may be counted twice. */
static void note_demand(struct sw_agent_run *run)
{
	uint64_t most = 0;
	bool moving = false;
	for (size_t i = 0; i < run->gpu_count; i++) {
		uint64_t bytes = run->seen[i].charged_bytes + run->seen[i].host_bytes;
		most = bytes > most ? bytes : most;
		moving = moving || run->seen[i].moving;
	}
	run->demand_bytes = moving ? run->demand_bytes : most;
}

/* ---- one GPU */

struct seat {
	struct sw_agent_run *run;
	size_t gpu; /* its number among the run's */
};

static size_t seat(struct sw_agent_run *run, uint32_t gpu, struct seat *seats, size_t count)
{
	for (size_t g = 0; g < run->gpu_count && run->hears_terms && count < SW_COORDINATE_JOBS; g++)
		if (run->gpus[g] == gpu)
			seats[count++] = (struct seat){run, g};
	return count;
}

/* The runs that use it; and the one that is to start beside them, unless one
 * of them is to go first. */
static size_t seat_all(const struct sw_agent_brain *brain, uint32_t gpu, struct seat seats[SW_COORDINATE_JOBS])
{
	size_t count = 0;
	bool stay = true;
	for (size_t i = 0; i < brain->runs.count; i++)
		if (sw_agent_is_active(brain->runs.items[i].run))
			count = seat(brain->runs.items[i].run, gpu, seats, count);
	for (size_t i = 0; i < count; i++)
		stay = stay && seats[i].run->wish == SW_WISH_RUN;
	for (size_t i = 0; i < brain->runs.count && stay; i++) {
		struct sw_agent_run *run = brain->runs.items[i].run;
		if (run->phase == SW_PHASE_WAITING && run->wish == SW_WISH_RUN && run->shares)
			count = seat(run, gpu, seats, count);
	}
	return count;
}

/* What others hold there. What is on its way may be counted twice for a moment, so
 * only what stays counts. */
static uint64_t find_foreign(const struct sw_agent_gpu *gpu)
{
	return least(gpu->foreign_bytes[0], gpu->foreign_bytes[1]);
}

static void note_foreign(struct sw_agent_brain *brain, uint32_t number)
{
	struct sw_agent_gpu *gpu = &brain->gpus.items[number];
	struct seat seats[SW_COORDINATE_JOBS];
	size_t count = seat_all(brain, number, seats);
	uint64_t ours = 0;
	if (gpu->used_bytes == UINT64_MAX)
		return;
	for (size_t i = 0; i < count; i++)
		ours += seats[i].run->seen[seats[i].gpu].charged_bytes;
	gpu->foreign_bytes[1] = gpu->foreign_bytes[0];
	gpu->foreign_bytes[0] = minus(gpu->used_bytes, ours);
}

/* What a guaranteed run may have at most. That is what it asked for, or what it needs as far as no
 * other guaranteed one asked for it. */
static uint64_t allowed_bytes(const struct sw_agent_gpu *gpu, const struct seat *seats, size_t count, size_t own)
{
	const struct sw_agent_run *run = seats[own].run;
	uint64_t asked = sw_agent_asked_bytes(run), room = minus(gpu->capacity_bytes, find_foreign(gpu));
	if (sw_agent_is_limited(run))
		return asked;
	for (size_t i = 0; i < count; i++)
		if (i != own && !seats[i].run->opportunistic)
			room = minus(room, sw_agent_asked_bytes(seats[i].run));
	uint64_t needed = least(run->demand_bytes, room);
	return needed > asked ? needed : asked;
}

static struct sw_coordinate_job describe(const struct sw_agent_brain *brain, const struct sw_agent_gpu *gpu, const struct seat *seats,
					 size_t count, size_t own)
{
	const struct sw_agent_run *run = seats[own].run;
	struct sw_coordinate_job job = run->seen[seats[own].gpu];
	/* It starts, or its page cannot be read: it will want what it asked for. */
	if (job.id == 0)
		job.host_bytes = least(sw_agent_asked_bytes(run), gpu->capacity_bytes);
	job.id = job.arrival = number_of(run);
	job.class = run->opportunistic ? SW_CLASS_OPPORTUNISTIC : SW_CLASS_GUARANTEED;
	job.throttle = brain->throttle;
	job.asked_bytes = run->opportunistic ? sw_agent_asked_bytes(run) : allowed_bytes(gpu, seats, count, own);
	job.asked_milli = run->share_milli;
	return job;
}

/* A run works only as far as it may on every GPU that it has. */
static void take_order(struct sw_agent_run *run, const struct sw_coordinate_job *job, const struct sw_coordinate_order *order)
{
	struct sw_coordinate_order taken = *order;
	if (taken.suspend) {
		taken.limit_bytes = job->fixed_bytes;
		taken.share_milli = 0;
	}
	/* Nothing would be "as its spec says". */
	taken.limit_bytes = taken.limit_bytes > 0 ? taken.limit_bytes : 1;
	if (run->ordered) {
		taken.limit_bytes = least(taken.limit_bytes, run->order.limit_bytes);
		taken.share_milli = (uint32_t)least(taken.share_milli, run->order.share_milli);
	}
	run->order = taken;
	run->ordered = true;
}

static void coordinate(struct sw_agent_brain *brain, uint32_t number, int64_t now_ns)
{
	struct sw_agent_gpu *gpu = &brain->gpus.items[number];
	struct seat seats[SW_COORDINATE_JOBS];
	struct sw_coordinate_job jobs[SW_COORDINATE_JOBS];
	struct sw_coordinate_order orders[SW_COORDINATE_JOBS];
	size_t count = seat_all(brain, number, seats);
	/* One whose neighbour has gone keeps what it needs. */
	bool wanted = count > 1 || (count == 1 && seats[0].run->raised);
	if (wanted && gpu->kept == NULL)
		gpu->kept = calloc(1, sizeof *gpu->kept);
	if (!wanted || gpu->kept == NULL || gpu->capacity_bytes == 0) {
		free(gpu->kept);
		gpu->kept = NULL;
		gpu->tight = false;
		return;
	}
	for (size_t i = 0; i < count; i++)
		jobs[i] = describe(brain, gpu, seats, count, i);
	const struct sw_coordinate_gpu room = {.capacity_bytes = gpu->capacity_bytes, .foreign_bytes = find_foreign(gpu), .placed = true};
	sw_coordinate(gpu->kept, &room, jobs, count, now_ns, orders);
	gpu->tight = false;
	for (size_t i = 0; i < count; i++) {
		gpu->tight = gpu->tight || orders[i].suspend || orders[i].limit_bytes < jobs[i].asked_bytes;
		seats[i].run->seated_ns = orders[i].suspend ? 0 : seats[i].run->seated_ns > 0 ? seats[i].run->seated_ns : now_ns;
		take_order(seats[i].run, &jobs[i], &orders[i]);
	}
}

void sw_agent_coordinate(struct sw_agent_brain *brain, int64_t now_ns)
{
	for (size_t i = 0; i < brain->runs.count; i++)
		brain->runs.items[i].run->ordered = false;
	/* Before the first answer it is not known which are limited. */
	for (uint32_t i = 0; i < brain->gpus.count && brain->answered_ns != 0; i++)
		coordinate(brain, i, now_ns);
	for (size_t i = 0; i < brain->runs.count; i++) {
		struct sw_agent_run *run = brain->runs.items[i].run;
		run->raised = run->ordered && !run->opportunistic && run->order.limit_bytes > sw_agent_asked_bytes(run);
	}
}

bool sw_agent_is_blind(const struct sw_agent_brain *brain, int64_t now_ns)
{
	int64_t since = brain->looked_ns > brain->answered_ns ? brain->looked_ns : brain->answered_ns;
	return now_ns - since >= BLIND_NS;
}

bool sw_agent_room_is_made(const struct sw_agent_brain *brain, const struct sw_agent_run *run, int64_t now_ns)
{
	bool tight = false;
	for (size_t i = 0; i < run->gpu_count; i++)
		tight = tight || brain->gpus.items[run->gpus[i]].tight;
	return !tight || sw_agent_is_blind(brain, now_ns) || (run->seated_ns > 0 && now_ns - run->seated_ns >= ROOM_NS);
}

/* ---- a look */

/* Whether the look saw all of its GPUs, be it with nothing on them. */
static bool was_looked_at(const struct sw_agent_brain *brain, const struct sw_agent_run *run)
{
	for (size_t i = 0; i < run->gpu_count; i++)
		if (brain->gpus.items[run->gpus[i]].used_bytes == UINT64_MAX)
			return false;
	return true;
}

/* Processes outside the runtime keep their memory on the GPUs whatever becomes of the run. */
static void note_outside(struct sw_agent_brain *brain, const struct sw_sync_sample *samples, size_t count)
{
	for (size_t i = 0; i < brain->runs.count; i++) {
		struct sw_agent_run *run = brain->runs.items[i].run;
		run->was_outside = run->outside;
		run->outside = run->outside && !was_looked_at(brain, run);
	}
	for (size_t s = 0; s < count; s++) {
		struct sw_agent_run *run = samples[s].has_run && samples[s].outside > 0 ? sw_agent_find(brain, samples[s].run) : NULL;
		if (run != NULL)
			run->outside = true;
	}
	for (size_t i = 0; i < brain->runs.count; i++)
		brain->dirty = brain->dirty || brain->runs.items[i].run->outside != brain->runs.items[i].run->was_outside;
}

void sw_agent_brain_look(struct sw_agent_brain *brain, int64_t now_ns, const struct sw_sync_sample *samples, size_t count)
{
	brain->looked_ns = now_ns;
	for (size_t i = 0; i < brain->runs.count; i++) {
		struct sw_agent_run *run = brain->runs.items[i].run;
		memset(run->seen, 0, run->gpu_count * sizeof *run->seen);
	}
	for (uint32_t i = 0; i < brain->gpus.count; i++)
		brain->gpus.items[i].used_bytes = UINT64_MAX;
	for (size_t i = 0; i < count; i++) {
		if (samples[i].gpu != NULL && !samples[i].has_run)
			take_gpu(brain, &samples[i]);
		else if (samples[i].gpu != NULL && samples[i].runtime)
			take_run(brain, &samples[i]);
	}
	note_outside(brain, samples, count);
	for (size_t i = 0; i < brain->runs.count; i++)
		note_demand(brain->runs.items[i].run);
	for (uint32_t i = 0; i < brain->gpus.count; i++)
		note_foreign(brain, i);
	sw_agent_coordinate(brain, now_ns);
	if (sw_agent_follow_speeds(brain, now_ns))
		brain->dirty = true;
}
