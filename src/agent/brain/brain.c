/* The runs, what is said of them, and when to sync. The wishes are read in wishes.c,
 * actions found in act.c. */
#include "agent/brain/brain.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/brain/move.h"
#include "agent/brain/seen.h"
#include "agent/brain/state.h"
#include "base/hash.h"

static void free_run(struct sw_agent_run *run)
{
	if (run == NULL)
		return;
	free(run->want);
	free(run->gpus);
	free(run->wished);
	free(run->going);
	free(run->seen);
	free(run);
}

int sw_agent_brain_new(const struct sw_agent_brain_config *config, struct sw_agent_brain **ret_brain, struct sw_err *err)
{
	SW_CLEANUP(sw_agent_brain_freep) struct sw_agent_brain *brain = calloc(1, sizeof *brain);
	if (brain != NULL) {
		brain->node = strdup(config->node);
		brain->instance = strdup(config->instance);
		brain->home = config->home != NULL ? strdup(config->home) : NULL;
		brain->start = config->start;
		brain->throttle = config->throttle != NULL ? config->throttle : sw_throttle_at(0);
	}
	if (brain == NULL || brain->node == NULL || brain->instance == NULL || (config->home != NULL && brain->home == NULL))
		return sw_err_set(err, SW_ENOMEM, "cannot start the agent: out of memory");
	sw_rng_seed(&brain->rng, config->seed);
	brain->order = sw_hash_bytes(SW_HASH_START, config->instance, strlen(config->instance)) >> 12;
	brain->spacing_ns = SW_AGENT_SPACING_NS;
	brain->patience_ns = SW_AGENT_PATIENCE_NS;
	brain->sent_ns = brain->due_ns = brain->fresh_until_ns = INT64_MIN;
	*ret_brain = SW_TAKE(brain);
	return 0;
}

void sw_agent_brain_free(struct sw_agent_brain *brain)
{
	if (brain == NULL)
		return;
	for (size_t i = 0; i < brain->runs.count; i++)
		free_run(brain->runs.items[i].run);
	for (size_t i = 0; i < brain->gpus.count; i++) {
		free(brain->gpus.items[i].uuid);
		free(brain->gpus.items[i].kept);
	}
	sw_vec_free(&brain->runs);
	sw_vec_free(&brain->seen);
	sw_vec_free(&brain->gpus);
	sw_vec_free(&brain->reports);
	free(brain->inventory);
	free(brain->node);
	free(brain->instance);
	free(brain->home);
	free(brain);
}

/* ---- runs */

static size_t place_of(const struct sw_agent_brain *brain, struct sw_run_id id)
{
	size_t low = 0, high = brain->runs.count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (sw_run_id_compare(brain->runs.items[middle].run->id, id) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct sw_agent_run *sw_agent_find(const struct sw_agent_brain *brain, struct sw_run_id id)
{
	size_t place = place_of(brain, id);
	if (place == brain->runs.count || sw_run_id_compare(brain->runs.items[place].run->id, id) != 0)
		return NULL;
	return brain->runs.items[place].run;
}

uint32_t sw_agent_find_gpu(const struct sw_agent_brain *brain, const char *uuid, size_t size)
{
	uint32_t gpu = 0;
	while (gpu < brain->gpus.count &&
	       (strlen(brain->gpus.items[gpu].uuid) != size || memcmp(brain->gpus.items[gpu].uuid, uuid, size) != 0))
		gpu++;
	return gpu;
}

int sw_agent_intern_gpu(struct sw_agent_brain *brain, const char *uuid, size_t size, uint32_t *ret_gpu)
{
	uint32_t known = sw_agent_find_gpu(brain, uuid, size);
	if (known < brain->gpus.count) {
		*ret_gpu = known;
		return 0;
	}
	char *copy = strndup(uuid, size);
	struct sw_agent_gpu *gpu = copy != NULL ? sw_vec_push(&brain->gpus) : NULL;
	if (gpu == NULL) {
		free(copy);
		return SW_ENOMEM;
	}
	gpu->uuid = copy;
	*ret_gpu = (uint32_t)(brain->gpus.count - 1);
	return 0;
}

static int intern_gpu(struct sw_agent_brain *brain, const char *uuid, uint32_t *ret_gpu)
{
	return sw_agent_intern_gpu(brain, uuid, strlen(uuid), ret_gpu);
}

static int set_gpus(struct sw_agent_brain *brain, struct sw_agent_run *run, const struct sw_texts *gpus)
{
	run->gpus = calloc(gpus->count + 1, sizeof *run->gpus);
	run->wished = calloc(gpus->count + 1, sizeof *run->wished);
	run->going = calloc(gpus->count + 1, sizeof *run->going);
	run->seen = calloc(gpus->count + 1, sizeof *run->seen);
	if (run->gpus == NULL || run->wished == NULL || run->going == NULL || run->seen == NULL)
		return SW_ENOMEM;
	for (size_t i = 0; i < gpus->count; i++) {
		int r = intern_gpu(brain, gpus->items[i], &run->gpus[i]);
		if (r < 0)
			return r;
		run->going[i] = run->gpus[i];
		run->gpu_count++;
	}
	return 0;
}

int sw_agent_add(struct sw_agent_brain *brain, struct sw_run_id id, const struct sw_texts *gpus, struct sw_agent_run **ret_run)
{
	if (brain->runs.count >= SW_SYNC_RUNS_MAX)
		return SW_ELIMIT;
	struct sw_agent_run *run = calloc(1, sizeof *run);
	/* Room for its report, and for itself, is made here, so that neither can be missing
	 * later. */
	if (run == NULL || set_gpus(brain, run, gpus) < 0 || sw_vec_reserve(&brain->reports, brain->runs.count + 1) < 0 ||
	    sw_vec_push(&brain->runs) == NULL) {
		free_run(run);
		return SW_ENOMEM;
	}
	run->id = run->said.id = id;
	run->wish = SW_WISH_UNKNOWN;
	run->grace_ms = -1;
	run->lease_ns = run->told_lease_ns = INT64_MIN;
	run->said.reason = run->reason;
	brain->runs.count--;
	size_t place = place_of(brain, id);
	memmove(&brain->runs.items[place + 1], &brain->runs.items[place], (brain->runs.count - place) * sizeof *brain->runs.items);
	brain->runs.items[place].run = run;
	brain->runs.count++;
	*ret_run = run;
	return 0;
}

void sw_agent_remove(struct sw_agent_brain *brain, struct sw_agent_run *run)
{
	size_t place = place_of(brain, run->id);
	assert(brain->runs.items[place].run == run);
	brain->runs.count--;
	memmove(&brain->runs.items[place], &brain->runs.items[place + 1], (brain->runs.count - place) * sizeof *brain->runs.items);
	free_run(run);
}

/* A copy in the run's own room; NULL stays NULL. */
static const char *keep_text(char *room, size_t size, const char *text)
{
	snprintf(room, size, "%s", text != NULL ? text : "");
	return text != NULL ? room : NULL;
}

static void keep_account(struct sw_agent_run *run, const struct sw_sync_run *said)
{
	snprintf(run->reason, sizeof run->reason, "%s", said->reason != NULL ? said->reason : "");
	snprintf(run->detail, sizeof run->detail, "%s", said->detail != NULL ? said->detail : "");
	run->said = *said;
	run->said.reason = run->reason;
	run->said.detail = run->detail[0] != '\0' ? run->detail : NULL;
	run->said.gpus = keep_text(run->gpus_text, sizeof run->gpus_text, said->gpus);
	run->said.moving = keep_text(run->moving_text, sizeof run->moving_text, said->moving);
	run->said.unmoved = keep_text(run->unmoved, sizeof run->unmoved, said->unmoved);
	run->said.failure = keep_text(run->failure, sizeof run->failure, said->failure);
	run->said.failure_line = keep_text(run->failure_line, sizeof run->failure_line, said->failure_line);
	run->said.failure_path = keep_text(run->failure_path, sizeof run->failure_path, said->failure_path);
	if (said->state == SW_RUN_EXITED)
		run->phase = SW_PHASE_OVER;
}

void sw_agent_end(struct sw_agent_brain *brain, struct sw_agent_run *run, const char *reason, const char *detail)
{
	/* What cannot be started has failed; what was only not wanted has not. */
	bool failed = strcmp(reason, SW_REASON_LAUNCH) == 0 || strcmp(reason, SW_REASON_ORDER) == 0;
	keep_account(run, &(struct sw_sync_run){.id = run->id,
						.state = SW_RUN_EXITED,
						.code = failed ? SW_AGENT_NOT_STARTED_CODE : 0,
						.reason = reason,
						.detail = detail});
	run->traceless = true;
	sw_agent_use(brain, run->id);
	brain->dirty = true;
}

bool sw_agent_is_active(const struct sw_agent_run *run)
{
	if (run->phase != SW_PHASE_ALIVE)
		return false;
	/* What is known of a suspended run is old until its supervisor confirms it, after all that
	 * it was told. A stop wakes the run up. */
	bool up_to_date = run->fresh && run->done_order == run->told_order;
	bool stays = run->told == SW_TOLD_NOTHING || run->told == SW_TOLD_SUSPEND;
	return !(up_to_date && stays && run->said.state == SW_RUN_SUSPENDED);
}

/* ---- inputs */

static const char *copy_text(char **at, const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = memcpy(*at, text, size);
	*at += size;
	return copy;
}

/* One block: the inventory, its GPUs, their texts. */
static struct sw_sync_inventory *copy_inventory(const struct sw_sync_inventory *inventory)
{
	size_t size = sizeof *inventory + inventory->gpu_count * sizeof *inventory->gpus;
	for (size_t i = 0; i < inventory->gpu_count; i++)
		size += strlen(inventory->gpus[i].uuid) + strlen(inventory->gpus[i].name) + 2;
	struct sw_sync_inventory *copy = malloc(size);
	if (copy == NULL)
		return NULL;
	*copy = *inventory;
	copy->gpus = (struct sw_sync_gpu *)(copy + 1);
	char *text = (char *)(copy->gpus + inventory->gpu_count);
	for (size_t i = 0; i < inventory->gpu_count; i++) {
		copy->gpus[i] = inventory->gpus[i];
		copy->gpus[i].uuid = copy_text(&text, inventory->gpus[i].uuid);
		copy->gpus[i].name = copy_text(&text, inventory->gpus[i].name);
	}
	return copy;
}

int sw_agent_brain_inventory(struct sw_agent_brain *brain, const struct sw_sync_inventory *inventory)
{
	if (inventory->gpu_count > SW_SYNC_GPUS_MAX)
		return SW_ELIMIT;
	uint32_t numbers[SW_SYNC_GPUS_MAX];
	for (size_t i = 0; i < inventory->gpu_count; i++) {
		int r = intern_gpu(brain, inventory->gpus[i].uuid, &numbers[i]);
		if (r < 0)
			return r;
	}
	struct sw_sync_inventory *copy = copy_inventory(inventory);
	if (copy == NULL)
		return SW_ENOMEM;
	free(brain->inventory);
	brain->inventory = copy;
	for (size_t i = 0; i < brain->gpus.count; i++)
		brain->gpus.items[i].present = false;
	for (size_t i = 0; i < inventory->gpu_count; i++) {
		brain->gpus.items[numbers[i]].present = true;
		brain->gpus.items[numbers[i]].capacity_bytes = inventory->gpus[i].memory_bytes;
	}
	brain->inventory_known = brain->inventory_sent = false;
	brain->dirty = true;
	return 0;
}

int sw_agent_brain_found(struct sw_agent_brain *brain, const struct sw_sync_run *run, const struct sw_texts *gpus)
{
	if (sw_agent_find(brain, run->id) != NULL)
		return SW_EINPUT;
	struct sw_agent_run *found = NULL;
	int r = sw_agent_see(brain, run->id, true);
	if (r == 0)
		r = sw_agent_add(brain, run->id, gpus, &found);
	if (r < 0)
		return r;
	assert(found != NULL);
	found->phase = SW_PHASE_ALIVE;
	keep_account(found, run);
	sw_agent_hear_gpus(brain, found);
	brain->dirty = true;
	return 0;
}

void sw_agent_brain_link(struct sw_agent_brain *brain, struct sw_run_id id, bool up)
{
	struct sw_agent_run *run = sw_agent_find(brain, id);
	if (run == NULL || run->phase != SW_PHASE_ALIVE)
		return;
	run->linked = up;
	run->fresh = false;
	run->lost = false;
	/* What of it arrived is not known: tell it again. */
	run->terms_told = run->terms_told && up;
	run->told = SW_TOLD_NOTHING;
	run->stays = false;
	run->told_deep = false;
	run->told_order = run->done_order = 0;
	run->told_lease_ns = INT64_MIN;
}

void sw_agent_brain_said(struct sw_agent_brain *brain, const struct sw_sync_run *said, uint64_t order)
{
	struct sw_agent_run *run = sw_agent_find(brain, said->id);
	if (run == NULL || run->phase != SW_PHASE_ALIVE)
		return;
	bool obeys = run->told_deep && order != run->done_order;
	if (run->said.state != said->state || run->said.depth != said->depth || run->said.held != said->held || obeys)
		brain->dirty = true;
	keep_account(run, said);
	run->fresh = true;
	/* Numbers of earlier links and agents mean nothing here. */
	run->done_order = order == run->told_order ? order : 0;
	sw_agent_hear_gpus(brain, run);
}

void sw_agent_brain_lost(struct sw_agent_brain *brain, struct sw_run_id id, bool began)
{
	struct sw_agent_run *run = sw_agent_find(brain, id);
	if (run == NULL || run->phase != SW_PHASE_ALIVE)
		return;
	run->linked = run->fresh = false;
	run->lost = true;
	run->began = began;
}

void sw_agent_brain_nudge(struct sw_agent_brain *brain)
{
	brain->dirty = true;
}

/* ---- the sync */

void sw_agent_brain_failed(struct sw_agent_brain *brain, int64_t now_ns, uint64_t number)
{
	if (!brain->waiting || number != brain->number)
		return;
	brain->waiting = false;
	if (brain->failures < 20)
		brain->failures++;
	int64_t wait = SW_AGENT_BACKOFF_NS << (brain->failures - 1);
	if (wait > SW_AGENT_BACKOFF_MOST_NS)
		wait = SW_AGENT_BACKOFF_MOST_NS;
	/* Half of it is chance, so that the agents of a cluster do not come back all at once. */
	brain->retry_ns = now_ns + wait / 2 + (int64_t)sw_rng_below(&brain->rng, (uint64_t)(wait / 2 + 1));
}

void sw_agent_brain_put_off(struct sw_agent_brain *brain, int64_t now_ns, int64_t wait_ns)
{
	int64_t until_ns = now_ns + (wait_ns < SW_AGENT_PUT_OFF_MOST_NS ? wait_ns : SW_AGENT_PUT_OFF_MOST_NS);
	/* Chance again, so that not all come back in the same moment. */
	until_ns += (int64_t)sw_rng_below(&brain->rng, SW_AGENT_BACKOFF_NS);
	if (!brain->waiting && brain->retry_ns < until_ns)
		brain->retry_ns = until_ns;
}

int64_t sw_agent_brain_wake(const struct sw_agent_brain *brain)
{
	/* The first word of an instance says what the node has. */
	if (brain->number == 0)
		return brain->inventory != NULL ? INT64_MIN : SW_NEVER;
	if (brain->waiting) {
		int64_t patient = brain->sent_ns + brain->patience_ns;
		int64_t news = brain->dirty ? brain->sent_ns + brain->spacing_ns : SW_NEVER;
		return news < patient ? news : patient;
	}
	if (brain->failures > 0)
		return brain->retry_ns;
	int64_t spaced = brain->sent_ns + brain->spacing_ns;
	return brain->dirty || brain->due_ns < spaced ? spaced : brain->due_ns;
}

/* Whether its supervisor has spoken since it was told something: what it said before
 * may be of another time. */
static bool has_answered(const struct sw_agent_run *run)
{
	return run->done_order == run->told_order;
}

/* Its supervisor has done what it was told, and it is not off: that cannot be. */
static bool is_refused(const struct sw_agent_run *run)
{
	bool told = run->told == SW_TOLD_SUSPEND && run->told_deep && run->fresh && has_answered(run);
	return told && run->wish == SW_WISH_SUSPEND && run->deep && run->said.state == SW_RUN_SUSPENDED &&
	       run->said.depth == SW_DEPTH_USUAL;
}

size_t sw_agent_brain_runs(struct sw_agent_brain *brain, const struct sw_sync_run **ret_runs)
{
	brain->reports.count = brain->runs.count;
	for (size_t i = 0; i < brain->runs.count; i++) {
		const struct sw_agent_run *run = brain->runs.items[i].run;
		struct sw_sync_run *report = &brain->reports.items[i];
		*report = run->said;
		report->speed = run->speed.told;
		report->frees = run->said.movable && !run->outside;
		if (is_refused(run))
			report->depth = SW_DEPTH_REFUSED;
		else if (report->depth == SW_DEPTH_OFF && !has_answered(run))
			report->depth = SW_DEPTH_LEAVING;
		report->unmoved = run->stays && sw_agent_is_elsewhere(run) ? run->why_stays : NULL;
		if (run->phase == SW_PHASE_WAITING && run->wish == SW_WISH_SUSPEND)
			report->state = SW_RUN_SUSPENDED;
		else if (run->phase == SW_PHASE_WAITING)
			report->detail = "waits for its GPUs";
	}
	*ret_runs = brain->reports.items;
	return brain->runs.count;
}

bool sw_agent_brain_sync(struct sw_agent_brain *brain, int64_t now_ns, struct sw_sync *ret_sync)
{
	if (now_ns < sw_agent_brain_wake(brain))
		return false;
	/* A controller that is slow to answer must not be overtaken for ever; one that keeps
	 * the question is not slow. */
	if (brain->waiting && now_ns - brain->sent_ns < SW_AGENT_KEPT_NS) {
		if (brain->spacing_ns < SW_AGENT_SPACING_MOST_NS)
			brain->spacing_ns *= 2;
	} else {
		brain->spacing_ns = SW_AGENT_SPACING_NS;
	}
	brain->number++;
	brain->waiting = true;
	brain->dirty = false;
	brain->sent_ns = now_ns;
	brain->inventory_sent = brain->inventory != NULL && !brain->inventory_known;
	const struct sw_sync_run *runs;
	size_t count = sw_agent_brain_runs(brain, &runs);
	*ret_sync = (struct sw_sync){
		.node = brain->node,
		.home = brain->home,
		.start = brain->start,
		.instance = brain->instance,
		.number = brain->number,
		.have = brain->have,
		.leases = true,
		.inventory = brain->inventory_sent ? brain->inventory : NULL,
		.runs = brain->reports.items,
		.run_count = count,
	};
	return true;
}
