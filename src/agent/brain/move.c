/* Runs that go on on other GPUs of the node: the wish names other GPUs than those that the run has.
 *
 * Invariants:
 *  1. until the supervisor has said how a move ended, the run is on both: the GPUs that it had and
 *     those that it goes to. It lets no run in there;
 *  2. nothing but a stop is told meanwhile;
 *  3. what cannot be is not tried again for the same wish, while the supervisor is linked to.
 */
#include <stdio.h>
#include <string.h>

#include "agent/brain/move.h"
#include "agent/brain/state.h"
#include "base/text.h"

static bool is_among(const uint32_t *gpus, size_t count, uint32_t gpu)
{
	for (size_t i = 0; i < count; i++)
		if (gpus[i] == gpu)
			return true;
	return false;
}

/* In whatever order. */
static bool are_same(const uint32_t *a, const uint32_t *b, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!is_among(b, count, a[i]))
			return false;
	return true;
}

enum unknown { REFUSE_UNKNOWN, TAKE_UNKNOWN };

/* The GPUs of a list with commas. False, and nothing changes: they are not as many as the run
 * has, or not all are known. */
static bool read_places(struct sw_agent_brain *brain, const char *text, size_t count, enum unknown unknown, uint32_t *gpus)
{
	uint32_t found[SW_SYNC_GPUS_MAX];
	size_t used = 0;
	const char *uuid;
	size_t size;
	while (text != NULL && used < count && used < SW_SYNC_GPUS_MAX && sw_text_next(&text, &uuid, &size)) {
		uint32_t gpu = sw_agent_find_gpu(brain, uuid, size);
		if (gpu == brain->gpus.count && (unknown == REFUSE_UNKNOWN || sw_agent_intern_gpu(brain, uuid, size, &gpu) < 0))
			return false;
		found[used++] = gpu;
	}
	if (text == NULL || *text != '\0' || used != count)
		return false;
	memcpy(gpus, found, count * sizeof *gpus);
	return true;
}

/* Over the end nothing is written: a run with so many GPUs has no GPU page, and stays. */
static void write_places(const struct sw_agent_brain *brain, const uint32_t *gpus, size_t count, char text[SW_SYNC_PLACES_MAX])
{
	size_t used = 0;
	text[0] = '\0';
	for (size_t i = 0; i < count && used < SW_SYNC_PLACES_MAX; i++)
		used += (size_t)snprintf(text + used, SW_SYNC_PLACES_MAX - used, "%s%s", i > 0 ? "," : "", brain->gpus.items[gpus[i]].uuid);
}

bool sw_agent_is_moving(const struct sw_agent_run *run)
{
	return run->phase == SW_PHASE_ALIVE && (run->told == SW_TOLD_MOVE || run->said.moving != NULL);
}

bool sw_agent_is_elsewhere(const struct sw_agent_run *run)
{
	return run->phase == SW_PHASE_ALIVE && run->wishes_gpus && !are_same(run->wished, run->gpus, run->gpu_count);
}

bool sw_agent_goes_to(const struct sw_agent_run *run, uint32_t gpu)
{
	return is_among(run->going, run->gpu_count, gpu) && !is_among(run->gpus, run->gpu_count, gpu);
}

enum sw_trespass sw_agent_brain_trespass(struct sw_agent_brain *brain, struct sw_run_id id, const char *gpu)
{
	struct sw_agent_run *run = sw_agent_find(brain, id);
	if (run == NULL || run->phase != SW_PHASE_ALIVE || !run->fresh)
		return SW_TRESPASS_NONE;
	uint32_t number = sw_agent_find_gpu(brain, gpu, strlen(gpu));
	if (is_among(run->gpus, run->gpu_count, number) || (sw_agent_is_moving(run) && is_among(run->going, run->gpu_count, number)))
		return SW_TRESPASS_NONE;
	bool is_known = run->trespassed;
	run->trespassed = true;
	return is_known ? SW_TRESPASS_KNOWN : SW_TRESPASS_NEW;
}

void sw_agent_wish_gpus(struct sw_agent_brain *brain, struct sw_agent_run *run, const struct sw_texts *gpus)
{
	char text[SW_SYNC_PLACES_MAX];
	uint32_t wished[SW_SYNC_GPUS_MAX];
	size_t used = 0;
	text[0] = '\0';
	for (size_t i = 0; i < gpus->count && used < sizeof text; i++)
		used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i > 0 ? "," : "", gpus->items[i]);
	if (used >= sizeof text || gpus->count != run->gpu_count || !read_places(brain, text, gpus->count, REFUSE_UNKNOWN, wished))
		return; /* such a run is never moved, nor is one to where there is nothing */
	if (run->wishes_gpus && are_same(wished, run->wished, run->gpu_count))
		return;
	memcpy(run->wished, wished, run->gpu_count * sizeof *wished);
	run->wishes_gpus = true;
	run->stays = false;
}

static void stay(struct sw_agent_brain *brain, struct sw_agent_run *run, const char *why)
{
	run->stays = true;
	snprintf(run->why_stays, sizeof run->why_stays, "%s", why);
	brain->dirty = true;
}

void sw_agent_hear_gpus(struct sw_agent_brain *brain, struct sw_agent_run *run)
{
	/* After a restart supervisors speak before the inventory is there, so they may name GPUs
	 * that are not known yet. */
	uint32_t before[SW_SYNC_GPUS_MAX];
	memcpy(before, run->gpus, run->gpu_count * sizeof *before);
	if (read_places(brain, run->said.gpus, run->gpu_count, TAKE_UNKNOWN, run->gpus) &&
	    memcmp(before, run->gpus, run->gpu_count * sizeof *before) != 0) {
		memset(run->seen, 0, run->gpu_count * sizeof *run->seen);
		brain->dirty = true;
	}
	(void)read_places(brain, run->said.moving, run->gpu_count, TAKE_UNKNOWN, run->going);
	if (run->told != SW_TOLD_MOVE || !run->fresh || run->done_order != run->told_order || run->said.moving != NULL)
		return;
	run->told = SW_TOLD_NOTHING;
	if (!are_same(run->going, run->gpus, run->gpu_count))
		stay(brain, run, run->said.unmoved != NULL ? run->said.unmoved : "it did not move");
}

bool sw_agent_stands_elsewhere(struct sw_agent_brain *brain, struct sw_agent_run *run)
{
	bool stands = run->wish == SW_WISH_SUSPEND || run->said.state == SW_RUN_SUSPENDED;
	if (!stands || !sw_agent_is_elsewhere(run) || sw_agent_is_moving(run))
		return false;
	if (!run->stays)
		stay(brain, run, "it was suspended before it could go");
	return true;
}

bool sw_agent_move_is_due(struct sw_agent_brain *brain, struct sw_agent_run *run)
{
	if (!sw_agent_is_elsewhere(run) || run->stays || sw_agent_is_moving(run) || !run->fresh || run->said.state != SW_RUN_RUNNING ||
	    run->told == SW_TOLD_STOP || run->done_order != run->told_order)
		return false;
	if (!run->said.movable) {
		stay(brain, run, "it runs without the GPU runtime");
		return false;
	}
	for (size_t i = 0; i < run->gpu_count; i++) {
		const struct sw_agent_gpu *gpu = &brain->gpus.items[run->wished[i]];
		if (!gpu->present) {
			stay(brain, run, "a GPU that it should go to is not in this node any more");
			return false;
		}
		if (!is_among(run->gpus, run->gpu_count, run->wished[i]) &&
		    ((run->shares ? gpu->closed : gpu->users) > 0 || gpu->leaving > 0))
			return false;
	}
	return true;
}

const char *sw_agent_begin_move(const struct sw_agent_brain *brain, struct sw_agent_run *run)
{
	memcpy(run->going, run->wished, run->gpu_count * sizeof *run->going);
	write_places(brain, run->going, run->gpu_count, run->going_text);
	return run->going_text;
}
