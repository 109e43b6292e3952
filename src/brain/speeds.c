/* How jobs get on, as their agents measured it. It is heard, recorded, told to the engine, whose
 * policies see it as sw_job_speed_milli(), and learned from (slowdowns.c).
 *
 * An agent says the same in every sync until something has changed by enough
 * (src/agent/brain/speed.c). A record is made when it differs from the last one. There is one for
 * all runs of a sync. What an iteration takes alone outlives the run: a later one may never be
 * alone. A job that never was takes what an earlier one of the same user, command and number of
 * GPUs took. Of a gang the agent of the first part speaks for all: their iterations are the
 * same. */
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "brain/fold.h"
#include "brain/record.h"
#include "brain/slowdowns.h"
#include "brain/speeds.h"
#include "brain/state.h"

/* However often agents change their mind. */
#define SPACING_NS (2 * SW_NS_PER_S)
#define SLOWEST_MILLI UINT32_C(1000000)
/* Runs that one record tells of: the others are still news in the next sync. */
#define SPEEDS_MAX 256u
/* So many jobs before it are asked what an iteration takes alone. */
#define LIKE_MAX 1024u

/* ---- hearing */

static bool are_same(const struct sw_sync_jobs *a, const struct sw_sync_jobs *b)
{
	return a->count == b->count && memcmp(a->items, b->items, a->count * sizeof a->items[0]) == 0;
}

static bool is_news(const struct sw_live *live, const struct sw_sync_speed *said, sw_ns now)
{
	static const struct sw_pace none;
	const struct sw_pace *pace = live->pace != NULL ? live->pace : &none;
	if (said->iteration_ns == 0 && said->alone_ns == 0)
		return pace->epoch == live->epoch && pace->iteration_ns > 0;
	if (live->pace != NULL && said->iteration_ns > 0 && now < pace->at + SPACING_NS)
		return false;
	if (said->alone_ns > 0 && said->alone_ns != pace->alone_ns)
		return true;
	return said->iteration_ns != (pace->epoch == live->epoch ? pace->iteration_ns : 0) ||
	       (said->iteration_ns > 0 && !are_same(&said->beside, &pace->beside));
}

static json_t *describe(const struct sw_brain *brain, const struct sw_sync_run *said)
{
	json_t *beside = json_array();
	for (uint32_t i = 0; i < said->speed.beside.count; i++)
		if (sw_brain_live(brain, said->speed.beside.items[i]) != NULL)
			json_array_append_new(beside, json_integer((json_int_t)said->speed.beside.items[i]));
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:o}", "job", (json_int_t)said->id.job, "epoch", (json_int_t)said->id.epoch,
			 "iteration_ns", (json_int_t)said->speed.iteration_ns, "alone_ns", (json_int_t)said->speed.alone_ns, "iterations",
			 (json_int_t)said->speed.iterations, "beside", beside);
}

int sw_brain_hear_speeds(struct sw_brain *brain, sw_ns now, const struct sw_sync *sync, uint32_t node, sw_records *records,
			 struct sw_err *err)
{
	json_t *speeds = NULL;
	for (size_t s = 0; s < sync->run_count && json_array_size(speeds) < SPEEDS_MAX; s++) {
		const struct sw_sync_run *said = &sync->runs[s];
		const struct sw_live *live = sw_brain_live(brain, said->id.job);
		if (live == NULL || live->run_count == 0 || live->epoch != said->id.epoch || sw_brain_is_suspended(brain, live) ||
		    live->runs[0].node != node || live->runs[0].heard != SW_HEARD_RUNNING || !is_news(live, &said->speed, now))
			continue;
		speeds = speeds != NULL ? speeds : json_array();
		json_array_append_new(speeds, describe(brain, said));
	}
	if (speeds == NULL)
		return 0;
	return sw_record_push(records, SW_RECORD_SPEED, json_pack("{s:s, s:o}", "node", sync->node, "speeds", speeds), err);
}

/* ---- applying */

static uint32_t ratio_milli(int64_t above, int64_t below)
{
	if (above <= 0 || below <= 0)
		return 0;
	__int128 milli = ((__int128)above * 1000 + below / 2) / below;
	return milli < 1 ? 1 : milli < SLOWEST_MILLI ? (uint32_t)milli : SLOWEST_MILLI;
}

static void read_beside(json_t *list, struct sw_sync_jobs *beside)
{
	for (size_t i = 0; i < json_array_size(list) && beside->count < SW_SYNC_JOBS_LISTED; i++)
		beside->items[beside->count++] = (uint64_t)json_integer_value(json_array_get(list, i));
}

/* What one of its kind took alone; 0: not known. */
static int64_t alone_of_like(const struct sw_brain *brain, uint32_t id)
{
	const struct sw_live *live = &brain->jobs.items[id];
	for (uint32_t other = id, left = LIKE_MAX; other > 0 && left > 0; left--) {
		const struct sw_live *before = &brain->jobs.items[--other];
		if (before->pace != NULL && before->pace->alone_ns > 0 && before->uid == live->uid &&
		    before->command_hash == live->command_hash &&
		    sw_engine_job(brain->engine, (struct sw_job_id){other})->gpus ==
			    sw_engine_job(brain->engine, (struct sw_job_id){id})->gpus)
			return before->pace->alone_ns;
	}
	return 0;
}

/* What the record says of one run, noted; 1: the engine is to know. */
static int apply_speed(struct sw_brain *brain, json_t *body, struct sw_event *ret_event, struct sw_err *err)
{
	json_int_t number, epoch, iteration_ns, alone_ns, iterations;
	json_t *beside;
	if (json_unpack(body, "{s:I, s:I, s:I, s:I, s:I, s:o}", "job", &number, "epoch", &epoch, "iteration_ns", &iteration_ns, "alone_ns",
			&alone_ns, "iterations", &iterations, "beside", &beside) != 0)
		return sw_err_set(err, SW_EBUG, "a record of speeds lacks a field");
	struct sw_live *live = sw_brain_live(brain, (uint64_t)number);
	if (live == NULL || live->epoch != epoch || live->run_count == 0 || sw_brain_is_suspended(brain, live))
		return 0; /* about a run that is over, or stands still */
	if (live->pace == NULL && (live->pace = calloc(1, sizeof *live->pace)) == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	*live->pace = (struct sw_pace){
		.epoch = live->epoch,
		.at = brain->now,
		.iteration_ns = iteration_ns,
		.alone_ns = alone_ns > 0 ? alone_ns : live->pace->alone_ns,
		.iterations = (uint64_t)iterations,
	};
	if (live->pace->alone_ns == 0)
		live->pace->alone_ns = alone_of_like(brain, (uint32_t)(number - 1));
	read_beside(beside, &live->pace->beside);
	*ret_event = (struct sw_event){.kind = SW_EV_SPEED,
				       .job = {(uint32_t)(number - 1)},
				       .epoch = live->epoch,
				       .speed_milli = ratio_milli(live->pace->alone_ns, live->pace->iteration_ns)};
	return 1;
}

int sw_brain_apply_speeds(struct sw_brain *brain, json_t *body, struct sw_err *err)
{
	json_t *speeds = json_object_get(body, "speeds");
	size_t count = json_array_size(speeds), told = 0;
	SW_CLEANUP(sw_freep) struct sw_event *events = calloc(count + 1, sizeof *events);
	if (events == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	for (size_t i = 0; i < count; i++) {
		int r = apply_speed(brain, json_array_get(speeds, i), &events[told], err);
		if (r < 0)
			return r;
		told += (size_t)r;
	}
	for (size_t i = 0; i < told; i++)
		sw_brain_observe(brain, events[i].job.v + UINT64_C(1));
	sw_brain_learn(brain);
	return told > 0 ? sw_brain_step(brain, events, told, err) : 0;
}

/* ---- looking */

bool sw_brain_speed(const struct sw_brain *brain, uint64_t id, struct sw_speed_view *ret_view)
{
	const struct sw_live *live = sw_brain_live(brain, id);
	if (live == NULL || live->pace == NULL || sw_brain_is_suspended(brain, live) || live->run_count == 0)
		return false;
	const struct sw_pace *pace = live->pace;
	*ret_view = (struct sw_speed_view){.alone_ns = pace->alone_ns};
	if (pace->epoch == live->epoch) {
		ret_view->iteration_ns = pace->iteration_ns;
		ret_view->iterations = pace->iterations;
		ret_view->slow_milli = ratio_milli(pace->iteration_ns, pace->alone_ns);
		ret_view->beside = pace->beside;
	}
	return true;
}

static int compare_neighbours(const void *left, const void *right)
{
	const struct sw_neighbour_view *a = left, *b = right;
	return (a->job > b->job) - (a->job < b->job);
}

size_t sw_brain_neighbours(const struct sw_brain *brain, uint64_t id, struct sw_neighbour_view *ret_neighbours, size_t capacity)
{
	const struct sw_live *live = sw_brain_live(brain, id);
	size_t count = 0, kept = 0;
	if (live == NULL || sw_brain_is_suspended(brain, live))
		return 0;
	for (uint32_t r = 0; r < live->run_count; r++) {
		const struct sw_brain_node *node = &brain->nodes.items[live->runs[r].node];
		for (size_t j = 0; j < node->jobs.count; j++) {
			const struct sw_live *there = &brain->jobs.items[node->jobs.items[j]];
			uint64_t mask = there == live || sw_brain_is_suspended(brain, there)
						? 0
						: sw_brain_run_on(there, live->runs[r].node)->mask & live->runs[r].mask;
			bool known = false;
			for (size_t k = 0; k < kept; k++)
				known = known || ret_neighbours[k].job == node->jobs.items[j] + UINT64_C(1);
			if (mask == 0 || known)
				continue;
			if (kept < capacity)
				ret_neighbours[kept++] = (struct sw_neighbour_view){
					.job = node->jobs.items[j] + UINT64_C(1),
					.node = node->name,
					.mask = mask,
					.paused = sw_engine_job(brain->engine, (struct sw_job_id){node->jobs.items[j]})->paused,
				};
			count++;
		}
	}
	qsort(ret_neighbours, kept, sizeof *ret_neighbours, compare_neighbours);
	return count;
}
