/* A run that goes on on other GPUs of the node, in the same processes. Its memory leaves by the
 * runtime, and the driver takes the rest off and brings it back elsewhere (deep.c). Then its memory
 * comes back there.
 *
 * Invariants:
 *  1. a run that cannot be moved goes on where it was, and `unmoved` says why;
 *  2. the account's `gpus` is where it is. It says so before anything of the job runs there;
 *  3. GPUs that it keeps stay in their places;
 *  4. from before its memory leaves until it is settled where it is, no process of it begins to use
 *     its GPUs. It would come up on those that it knew.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/device_group.h"
#include "agent/supervisor/account.h"
#include "agent/supervisor/deep.h"
#include "agent/supervisor/gpu.h"
#include "agent/supervisor/move.h"
#include "agent/supervisor/state.h"
#include "agent/supervisor/words.h"
#include "base/now.h"
#include "base/text.h"
#include "gpu/gpu.h"

#define FIRST_LOOK_NS (2 * SW_NS_PER_MS)
#define LONGEST_LOOK_NS (200 * SW_NS_PER_MS)
#define SHUT_NS (60 * SW_NS_PER_S)

static bool is_among(const char list[][SW_GPU_UUID_MAX], uint32_t count, const char *uuid)
{
	for (uint32_t i = 0; i < count; i++)
		if (strcmp(list[i], uuid) == 0)
			return true;
	return false;
}

/* The GPUs by their places now. False: it has none that can be moved. */
static bool read_own(const struct sw_supervisor *supervisor, struct sw_supervisor_move *move)
{
	const struct sw_texts *gpus = &supervisor->order->want.gpus;
	if (gpus->count > SW_PAGE_GPUS)
		return false;
	/* What it was moved to is in `to`. */
	for (uint32_t i = 0; i < gpus->count; i++)
		snprintf(move->from[i], sizeof move->from[i], "%s", move->gpus[0] != '\0' ? move->to[i] : gpus->items[i]);
	move->count = (uint32_t)gpus->count;
	return move->count > 0;
}

/* New GPUs take the places of those that are left. False: they are not as many as it has. */
static bool read_wish(struct sw_supervisor_move *move, const char *words)
{
	char wished[SW_PAGE_GPUS][SW_GPU_UUID_MAX];
	uint32_t count = 0, next = 0;
	const char *word;
	size_t size;
	while (sw_text_next(&words, &word, &size)) {
		if (count == move->count || size == 0 || size >= sizeof wished[0])
			return false;
		memcpy(wished[count], word, size);
		wished[count++][size] = '\0';
	}
	if (count != move->count)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		const char *place = move->from[i];
		if (!is_among((const char(*)[SW_GPU_UUID_MAX])wished, count, place)) {
			while (next < count && is_among((const char(*)[SW_GPU_UUID_MAX])move->from, count, wished[next]))
				next++;
			if (next == count)
				return false; /* one of them twice */
			place = wished[next++];
		}
		memmove(move->to[i], place, strlen(place) + 1);
	}
	return true;
}

static void write_list(const char list[][SW_GPU_UUID_MAX], uint32_t count, char text[SW_SYNC_PLACES_MAX])
{
	size_t used = 0;
	text[0] = '\0';
	for (uint32_t i = 0; i < count && used < SW_SYNC_PLACES_MAX; i++)
		used += (size_t)snprintf(text + used, SW_SYNC_PLACES_MAX - used, "%s%s", i > 0 ? "," : "", list[i]);
}

int sw_supervisor_move_pairs(const struct sw_supervisor *supervisor, struct sw_checkpoint_pair *pairs, size_t *ret_count,
			     struct sw_err *err)
{
	const struct sw_supervisor_move *move = &supervisor->move;
	SW_CLEANUP(sw_gpu_source_closep) struct sw_gpu_source *gpus = NULL;
	int r = sw_gpu_source_open("nvml", &gpus, err);
	if (r < 0)
		return r;
	uint32_t count = sw_gpu_source_count(gpus);
	if (count > SW_CHECKPOINT_PAIRS)
		return sw_err_set(err, SW_ELIMIT, "there are %u GPUs, and at most %u can change places", count, SW_CHECKPOINT_PAIRS);
	for (uint32_t i = 0; i < count; i++) {
		const char *from = sw_gpu_source_info(gpus, i)->uuid, *to = from;
		for (uint32_t g = 0; g < move->count; g++)
			to = strcmp(from, move->from[g]) == 0 ? move->to[g] : strcmp(from, move->to[g]) == 0 ? move->from[g] : to;
		if (!sw_share_uuid(from, pairs[i].from) || !sw_share_uuid(to, pairs[i].to))
			return sw_err_set(err, SW_EINPUT, "'%.60s' is not the UUID of a GPU", to);
	}
	*ret_count = count;
	return 0;
}

/* Why it cannot be moved now; NULL: it can. */
static const char *find_obstacle(const struct sw_supervisor *supervisor)
{
	if (supervisor->gpu.page == NULL)
		return "it runs without the GPU runtime";
	if (supervisor->stage != SW_STAGE_RUNNING || supervisor->stopping || supervisor->killing)
		return "it is about to end";
	if (supervisor->pause != SW_PAUSE_NONE)
		return "it is suspended";
	return sw_supervisor_deep_is_busy(supervisor) || supervisor->move.leaving ? "it is on its way to or from its GPUs" : NULL;
}

static void stay(struct sw_supervisor *supervisor, const char *why)
{
	struct sw_supervisor_move *move = &supervisor->move;
	snprintf(move->why, sizeof move->why, "%s", why);
	supervisor->account.run.unmoved = move->why;
}

static bool add_minor(const char *proc, const char *uuid, uint32_t *minors, size_t *count)
{
	int minor = *count < SW_DEVICE_GPUS_MAX ? sw_device_minor(proc, uuid) : -1;
	if (minor >= 0)
		minors[(*count)++] = (uint32_t)minor;
	return minor >= 0;
}

bool sw_supervisor_minors(const struct sw_supervisor *supervisor, const char *proc, uint32_t minors[SW_DEVICE_GPUS_MAX], size_t *ret_count)
{
	const struct sw_supervisor_move *move = &supervisor->move;
	const struct sw_texts *own = &supervisor->order->want.gpus;
	size_t count = 0;
	bool was_moved = move->gpus[0] != '\0', moves = supervisor->account.run.moving != NULL, good = own->count > 0;
	for (size_t i = 0; good && !was_moved && i < own->count; i++)
		good = add_minor(proc, own->items[i], minors, &count);
	for (uint32_t i = 0; good && (was_moved || moves) && i < move->count; i++)
		good = add_minor(proc, move->to[i], minors, &count) && (!moves || add_minor(proc, move->from[i], minors, &count));
	if (good)
		*ret_count = count;
	return good;
}

void sw_supervisor_keep_gpus(struct sw_supervisor *supervisor)
{
	uint32_t minors[SW_DEVICE_GPUS_MAX];
	size_t count = 0;
	if (supervisor->order->no_device_rule || geteuid() != 0 || supervisor->cgroup.folder < 0)
		return;
	if (!sw_supervisor_minors(supervisor, SW_DEVICE_PROC, minors, &count)) {
		/* GPUs that a file describes have no device files, and no GPU library. */
		if (supervisor->order->gpu_library != NULL && supervisor->order->want.gpus.count > 0)
			sw_supervisor_add_note(supervisor, "no device rule: the device files of its GPUs are unknown");
		return;
	}
	int program = sw_device_keep(supervisor->cgroup.folder, minors, count, supervisor->device_program);
	if (program >= 0)
		supervisor->device_program = program;
	else if (supervisor->device_program < 0)
		sw_supervisor_add_note(supervisor, "no device rule: the kernel takes none");
}

void sw_supervisor_move(struct sw_supervisor *supervisor, const char *words)
{
	struct sw_supervisor_move *move = &supervisor->move;
	struct sw_supervisor_move wanted = *move;
	const char *obstacle = find_obstacle(supervisor);
	if (supervisor->account.run.moving != NULL)
		return; /* what came of it is told when it has ended */
	if (obstacle == NULL && (!read_own(supervisor, &wanted) || !read_wish(&wanted, words)))
		obstacle = "these are not as many GPUs as it has";
	if (obstacle != NULL) {
		stay(supervisor, obstacle);
		return;
	}
	*move = wanted;
	write_list((const char(*)[SW_GPU_UUID_MAX])move->to, move->count, move->moving);
	supervisor->account.run.moving = move->moving;
	supervisor->account.run.unmoved = NULL;
	move->leaving = true;
	sw_supervisor_keep_gpus(supervisor);
	move->look_step_ns = FIRST_LOOK_NS;
	move->look_at_ns = sw_now_boot_ns();
	move->until_ns = sw_now_boot_ns() + SHUT_NS;
	sw_supervisor_enter(supervisor, supervisor->account.run.state);
}

void sw_supervisor_move_end(struct sw_supervisor *supervisor, const char *why)
{
	struct sw_supervisor_move *move = &supervisor->move;
	bool moved = why == NULL;
	move->leaving = false;
	move->look_at_ns = SW_NEVER;
	supervisor->account.run.moving = NULL;
	if (moved || move->gpus[0] != '\0') {
		/* `to` is where it is, whatever was tried. */
		if (!moved)
			memcpy(move->to, move->from, sizeof move->to);
		write_list((const char(*)[SW_GPU_UUID_MAX])move->to, move->count, move->gpus);
		supervisor->account.run.gpus = move->gpus;
	}
	if (!moved)
		stay(supervisor, why);
	else
		sw_supervisor_log_move(supervisor);
	sw_supervisor_keep_gpus(supervisor);
	/* Now that it is known where a process that comes will be. */
	if (move->shut && supervisor->gpu.page != NULL)
		sw_share_page_admit(supervisor->gpu.page);
	move->shut = false;
}

void sw_supervisor_move_cancel(struct sw_supervisor *supervisor, const char *why)
{
	if (!supervisor->move.leaving)
		return;
	sw_supervisor_move_end(supervisor, why);
	sw_supervisor_gpu_return(supervisor, sw_now_boot_ns());
	sw_supervisor_enter(supervisor, supervisor->account.run.state);
}

/* Whether no process comes to its GPUs any more; then its memory leaves. It goes on until then: how
 * long a driver takes to begin is not promised. */
static bool is_shut(struct sw_supervisor *supervisor, int64_t now_ns)
{
	struct sw_supervisor_move *move = &supervisor->move;
	if (move->shut)
		return true;
	move->shut = sw_share_page_shut(supervisor->gpu.page, 0);
	if (move->shut)
		sw_supervisor_gpu_leave(supervisor, now_ns);
	return move->shut;
}

void sw_supervisor_move_tick(struct sw_supervisor *supervisor, int64_t now_ns)
{
	struct sw_supervisor_move *move = &supervisor->move;
	char why[sizeof supervisor->gpu.detail];
	if (!move->leaving || now_ns < move->look_at_ns)
		return;
	if (!is_shut(supervisor, now_ns) && now_ns >= move->until_ns) {
		sw_supervisor_move_cancel(supervisor, "one of its processes has been about to use its GPUs for a minute");
		return;
	}
	if (!move->shut || !sw_supervisor_gpu_has_left(supervisor, now_ns)) {
		move->look_at_ns = now_ns + move->look_step_ns;
		move->look_step_ns = move->look_step_ns < LONGEST_LOOK_NS ? move->look_step_ns * 2 : LONGEST_LOOK_NS;
		return;
	}
	snprintf(why, sizeof why, "%s", supervisor->gpu.detail);
	if (why[0] != '\0') { /* it did not even leave */
		sw_supervisor_move_cancel(supervisor, why);
		return;
	}
	move->leaving = false;
	move->look_at_ns = SW_NEVER;
	sw_supervisor_deep_move(supervisor, now_ns);
}
