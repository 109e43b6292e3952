/* What follows from wishes and facts: one walk over the runs, which gives what is to be
 * done and marks it as done. */
#include <assert.h>
#include <inttypes.h>

#include "agent/brain/coordinate.h"
#include "agent/brain/gpu.h"
#include "agent/brain/move.h"
#include "agent/brain/seen.h"
#include "agent/brain/state.h"

/* The actions that are being collected. */
struct collector {
	struct sw_agent_action *actions;
	size_t capacity, count;
};

static struct sw_agent_action *give(struct collector *out, enum sw_agent_act act, const struct sw_agent_run *run)
{
	assert(out->count < out->capacity);
	struct sw_agent_action *action = &out->actions[out->count++];
	*action = (struct sw_agent_action){.act = act, .id = run->id};
	return action;
}

/* An order for the supervisor. */
static struct sw_agent_action *tell(struct sw_agent_brain *brain, struct collector *out, enum sw_agent_act act, struct sw_agent_run *run,
				    enum sw_agent_told told)
{
	struct sw_agent_action *action = give(out, act, run);
	action->order = run->told_order = ++brain->order;
	action->why = run->why;
	run->told = told;
	return action;
}

static void use_gpu(struct sw_agent_brain *brain, const struct sw_agent_run *run, uint32_t number)
{
	struct sw_agent_gpu *gpu = &brain->gpus.items[number];
	gpu->users++;
	gpu->staying += run->wish == SW_WISH_RUN;
	/* Also while the controller does not know that a run stays where it should not be. */
	gpu->closed += !run->shares || run->wish != SW_WISH_RUN || sw_agent_is_moving(run) || sw_agent_is_elsewhere(run);
	gpu->opportunistic += run->opportunistic;
}

/* Where a run comes to that is on its way. */
static void use_next_gpus(struct sw_agent_brain *brain, const struct sw_agent_run *run)
{
	for (size_t i = 0; i < run->gpu_count; i++)
		if (sw_agent_goes_to(run, run->going[i]))
			use_gpu(brain, run, run->going[i]);
}

static void use_gpus(struct sw_agent_brain *brain, const struct sw_agent_run *run)
{
	for (size_t i = 0; i < run->gpu_count; i++)
		use_gpu(brain, run, run->gpus[i]);
	if (sw_agent_is_moving(run))
		use_next_gpus(brain, run);
}

static bool is_to_stop(const struct sw_agent_run *run)
{
	return run->phase == SW_PHASE_ALIVE && (run->wish == SW_WISH_STOP || run->wish == SW_WISH_FORGET);
}

/* It is suspended, and not yet off its GPUs; or cannot be, and the controller does not know. No run
 * starts there before: it may have to stop, and then needs them once more. */
static bool is_to_be_off(const struct sw_agent_run *run)
{
	return run->phase == SW_PHASE_ALIVE && run->wish == SW_WISH_SUSPEND && run->deep && run->said.depth != SW_DEPTH_OFF;
}

/* It is suspended, its GPU memory is there still, and the controller does not know that. Runs that
 * it has sent there may have no room. */
static bool is_stuck(const struct sw_agent_run *run)
{
	return run->phase == SW_PHASE_ALIVE && run->wish == SW_WISH_SUSPEND && run->said.held && !run->held_is_known;
}

/* A suspended run that is not where the controller takes it to be keeps others off, too. They are
 * there because the controller does not know of it. */
static void count_users(struct sw_agent_brain *brain)
{
	for (size_t i = 0; i < brain->gpus.count; i++) {
		struct sw_agent_gpu *gpu = &brain->gpus.items[i];
		gpu->users = gpu->staying = gpu->leaving = gpu->closed = gpu->opportunistic = 0;
	}
	for (size_t i = 0; i < brain->runs.count; i++) {
		const struct sw_agent_run *run = brain->runs.items[i].run;
		if (sw_agent_is_active(run))
			use_gpus(brain, run);
		else if (is_to_stop(run) || is_to_be_off(run) || is_stuck(run) || sw_agent_is_elsewhere(run))
			for (size_t g = 0; g < run->gpu_count; g++)
				brain->gpus.items[run->gpus[g]].leaving++;
	}
}

/* Asked for runs that are not active and want to be: every user is another run. A run that has
 * to leave comes first, or it would have to be killed without its grace. */
static bool gpus_are_free(const struct sw_agent_brain *brain, const struct sw_agent_run *run)
{
	for (size_t i = 0; i < run->gpu_count; i++) {
		const struct sw_agent_gpu *gpu = &brain->gpus.items[run->gpus[i]];
		if ((run->shares ? gpu->closed : gpu->users) > 0 || gpu->leaving > 0)
			return false;
	}
	return true;
}

/* Supervisors that die before they begin, of one run, before it is given up. */
enum { BEGINS_MAX = 3 };

enum leave { LEAVE_IN_PEACE, LEAVE_LATER, LEAVE_AT_ONCE };

/* How a suspended run can end. Beside others that go too it waits for its turn; beside one that
 * stays it would have to run there, so it gets no grace. */
static enum leave how_to_leave(const struct sw_agent_brain *brain, const struct sw_agent_run *run)
{
	enum leave how = LEAVE_IN_PEACE;
	for (size_t i = 0; i < run->gpu_count; i++) {
		if (brain->gpus.items[run->gpus[i]].staying > 0)
			return LEAVE_AT_ONCE;
		if (brain->gpus.items[run->gpus[i]].users > 0)
			how = LEAVE_LATER;
	}
	return how;
}

/* Runs of one job are neighbours. */
static bool job_is_alive(const struct sw_agent_brain *brain, size_t place)
{
	uint64_t job = brain->runs.items[place].run->id.job;
	for (size_t i = place; i-- > 0 && brain->runs.items[i].run->id.job == job;)
		if (brain->runs.items[i].run->phase == SW_PHASE_ALIVE)
			return true;
	for (size_t i = place + 1; i < brain->runs.count && brain->runs.items[i].run->id.job == job; i++)
		if (brain->runs.items[i].run->phase == SW_PHASE_ALIVE)
			return true;
	return false;
}

static void maybe_start(struct sw_agent_brain *brain, int64_t now_ns, size_t place, struct collector *out)
{
	struct sw_agent_run *run = brain->runs.items[place].run;
	if (run->wish != SW_WISH_RUN || brain->old_controller || now_ns >= brain->fresh_until_ns || !gpus_are_free(brain, run) ||
	    !sw_agent_room_is_made(brain, run, now_ns) || job_is_alive(brain, place))
		return;
	if (run->lease_length_ns != 0 && now_ns >= run->lease_ns)
		return;
	struct sw_agent_action *action = give(out, SW_ACT_START, run);
	action->want = run->want;
	action->lease_boot_ns = run->lease_length_ns != 0 ? run->lease_ns : 0;
	run->phase = SW_PHASE_ALIVE;
	run->told_lease_ns = action->lease_boot_ns;
	sw_agent_use(brain, run->id);
	use_gpus(brain, run);
}

static void maybe_stop(struct sw_agent_brain *brain, struct sw_agent_run *run, struct collector *out)
{
	/* Its exit is recorded although it lives: the controller gave it up. */
	bool given_up = run->wish == SW_WISH_FORGET;
	uint32_t signal = given_up ? 0 : run->signal;
	int64_t grace_ms = given_up ? 0 : run->grace_ms;
	if (run->told == SW_TOLD_STOP && run->told_signal == signal && run->told_grace_ms == grace_ms)
		return;
	bool was_active = sw_agent_is_active(run);
	enum leave how = was_active ? LEAVE_IN_PEACE : how_to_leave(brain, run);
	if (how == LEAVE_LATER && grace_ms != 0)
		return;
	struct sw_agent_action *action = tell(brain, out, SW_ACT_STOP, run, SW_TOLD_STOP);
	action->signal = signal;
	action->grace_ms = how == LEAVE_IN_PEACE ? grace_ms : 0;
	if (!was_active)
		use_gpus(brain, run);
	run->told_signal = signal;
	run->told_grace_ms = grace_ms;
}

static void maybe_suspend(struct sw_agent_brain *brain, struct sw_agent_run *run, struct collector *out)
{
	if (sw_agent_is_moving(run))
		return;
	(void)sw_agent_stands_elsewhere(brain, run);
	/* What was taken off stays so until it is resumed. */
	run->told_deep = run->told_deep && run->deep;
	if (run->told == SW_TOLD_STOP || (run->told == SW_TOLD_SUSPEND && run->told_deep == run->deep))
		return;
	bool stands = run->said.state == SW_RUN_SUSPENDED && (!run->deep || run->said.depth == SW_DEPTH_OFF);
	if (run->told == SW_TOLD_NOTHING && stands)
		return;
	run->told_deep = run->deep;
	tell(brain, out, SW_ACT_SUSPEND, run, SW_TOLD_SUSPEND)->deep = run->deep;
}

static void maybe_resume(struct sw_agent_brain *brain, int64_t now_ns, struct sw_agent_run *run, struct collector *out)
{
	if (run->told == SW_TOLD_STOP || run->told == SW_TOLD_RESUME || sw_agent_is_moving(run) || sw_agent_stands_elsewhere(brain, run))
		return;
	if (run->told == SW_TOLD_NOTHING && run->said.state != SW_RUN_SUSPENDED)
		return;
	if (now_ns >= brain->fresh_until_ns)
		return;
	if (!sw_agent_is_active(run)) {
		if (!gpus_are_free(brain, run))
			return;
		use_gpus(brain, run);
	}
	tell(brain, out, SW_ACT_RESUME, run, SW_TOLD_RESUME);
}

static void maybe_move(struct sw_agent_brain *brain, int64_t now_ns, struct sw_agent_run *run, struct collector *out)
{
	if (now_ns >= brain->fresh_until_ns || !sw_agent_move_is_due(brain, run))
		return;
	const char *gpus = sw_agent_begin_move(brain, run);
	tell(brain, out, SW_ACT_MOVE, run, SW_TOLD_MOVE)->gpus = gpus;
	use_next_gpus(brain, run);
}

/* A run without a lease may have a supervisor of version 0.1, which has one all the same. It is
 * told once that it has no end. A run whose order cannot be read is told nothing. It may have a
 * lease, and another run of its job follows the end of that. */
static void maybe_extend(int64_t now_ns, struct sw_agent_run *run, struct collector *out)
{
	bool endless = run->lease_is_known && run->lease_length_ns == 0;
	int64_t lease_ns = endless ? now_ns + SW_AGENT_LEASE_FOR_EVER_NS : run->lease_ns;
	bool was_told = run->told_lease_ns != INT64_MIN;
	if (lease_ns <= now_ns ||
	    (was_told && (endless || lease_ns - run->told_lease_ns < run->lease_length_ns / 1000 * SW_AGENT_LEASE_STEP_MILLI)))
		return;
	give(out, SW_ACT_LEASE, run)->lease_boot_ns = lease_ns;
	run->told_lease_ns = lease_ns;
}

/* Whether a run may begin late. Nothing of it has begun, it holds no lease, by which it could be
 * elsewhere now, and its GPUs are there. */
static bool may_begin(const struct sw_agent_brain *brain, const struct sw_agent_run *run)
{
	if (run->began || !run->lease_is_known || run->lease_length_ns != 0 || run->begins == BEGINS_MAX || brain->old_controller)
		return false;
	for (size_t i = 0; brain->inventory != NULL && i < run->gpu_count; i++)
		if (!brain->gpus.items[run->gpus[i]].present)
			return false;
	return true;
}

/* Where a run has not begun no work is lost yet, but its gang would have to start anew.
 * Another supervisor begins it, if the controller still wishes it. */
static void handle_lost(const struct sw_agent_brain *brain, int64_t now_ns, struct sw_agent_run *run, struct collector *out)
{
	bool begins = may_begin(brain, run), is_wished = run->wish == SW_WISH_RUN && now_ns < brain->fresh_until_ns;
	if (begins && !is_wished && (run->wish == SW_WISH_RUN || run->wish == SW_WISH_UNKNOWN))
		return; /* the next answer tells */
	run->lost = false;
	begins = begins && is_wished;
	run->begins += begins;
	give(out, begins ? SW_ACT_BEGIN : SW_ACT_RECOVER, run);
}

static void handle_alive(struct sw_agent_brain *brain, int64_t now_ns, struct sw_agent_run *run, struct collector *out)
{
	if (run->lost)
		handle_lost(brain, now_ns, run, out);
	if (!run->linked)
		return;
	maybe_extend(now_ns, run, out);
	if (sw_agent_terms_change(brain, run, now_ns))
		give(out, SW_ACT_TERMS, run)->terms = &run->terms;
	/* Whether it stands still decides whether it may move, and what is known of that may be
	 * old: its supervisor speaks first. */
	if (!run->fresh && (run->said.state == SW_RUN_SUSPENDED || run->want == NULL))
		return;
	switch (run->wish) {
	case SW_WISH_RUN:
		maybe_resume(brain, now_ns, run, out);
		maybe_move(brain, now_ns, run, out);
		break;
	case SW_WISH_SUSPEND:
		maybe_suspend(brain, run, out);
		break;
	case SW_WISH_STOP:
	case SW_WISH_FORGET:
		maybe_stop(brain, run, out);
		break;
	case SW_WISH_UNKNOWN:
		break;
	}
}

/* True: the run is gone. */
static bool handle_over(struct sw_agent_brain *brain, struct sw_agent_run *run, struct collector *out)
{
	if (run->wish != SW_WISH_FORGET)
		return false;
	if (!run->traceless)
		give(out, SW_ACT_DELETE, run);
	sw_agent_remove(brain, run);
	return true;
}

enum { ACTIONS_OF_A_RUN = 3 };

size_t sw_agent_brain_act(struct sw_agent_brain *brain, int64_t now_ns, struct sw_agent_action *actions, size_t capacity)
{
	assert(capacity >= ACTIONS_OF_A_RUN);
	struct collector out = {actions, capacity, 0};
	count_users(brain);
	for (size_t i = 0; i < brain->runs.count && out.capacity - out.count >= ACTIONS_OF_A_RUN;) {
		struct sw_agent_run *run = brain->runs.items[i].run;
		bool gone = false;
		switch (run->phase) {
		case SW_PHASE_WAITING:
			maybe_start(brain, now_ns, i, &out);
			break;
		case SW_PHASE_ALIVE:
			handle_alive(brain, now_ns, run, &out);
			break;
		case SW_PHASE_OVER:
			gone = handle_over(brain, run, &out);
			break;
		}
		if (!gone)
			i++;
	}
	return out.count;
}

/* ---- validation */

static int broken(struct sw_err *err, const struct sw_agent_run *run, const char *what)
{
	return sw_err_set(err, SW_EBUG, "the agent's state is broken at job %" PRIu64 ", epoch %" PRIu32 ": %s", run->id.job, run->id.epoch,
			  what);
}

static bool share_gpu(const struct sw_agent_run *a, const struct sw_agent_run *b)
{
	for (size_t i = 0; i < a->gpu_count; i++)
		for (size_t j = 0; j < b->gpu_count; j++)
			if (a->gpus[i] == b->gpus[j])
				return true;
	return false;
}

/* Certainly uses its GPUs. What wakes up only because it was told to stop is on its
 * way out, without grace. */
static bool is_running(const struct sw_agent_run *run)
{
	return run->phase == SW_PHASE_ALIVE && (run->said.state != SW_RUN_SUSPENDED || run->told == SW_TOLD_RESUME);
}

int sw_agent_brain_validate(const struct sw_agent_brain *brain, struct sw_err *err)
{
	for (size_t i = 0; i < brain->runs.count; i++) {
		const struct sw_agent_run *run = brain->runs.items[i].run;
		if (i > 0 && sw_run_id_compare(brain->runs.items[i - 1].run->id, run->id) >= 0)
			return broken(err, run, "the runs are out of order");
		if (run->phase != SW_PHASE_WAITING && !sw_agent_is_stale(brain, run->id))
			return broken(err, run, "it was started but its epoch counts as fresh");
		if (run->phase == SW_PHASE_WAITING && (run->want == NULL || run->want->spec == NULL))
			return broken(err, run, "it waits but its command is not known");
		if ((run->said.state == SW_RUN_EXITED) != (run->phase == SW_PHASE_OVER))
			return broken(err, run, "state and phase differ");
		for (size_t j = 0; j < i; j++) {
			const struct sw_agent_run *other = brain->runs.items[j].run;
			if (is_running(run) && is_running(other) && !(run->shares && other->shares) && share_gpu(run, other))
				return broken(err, run, "it shares a GPU with another active run");
		}
	}
	return 0;
}
