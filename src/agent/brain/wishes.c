/* The answer of the controller: new runs are taken in first, which may fail; then every wish
 * is noted, which cannot.
 *
 * A wish that could not be read is the affair of its run alone. A run that is here goes on as it
 * was wished before; one that is not ends before it began, with the reason. Where not even the
 * run's id could be read, it may be any run: then none is stopped for not being listed. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/brain/coordinate.h"
#include "agent/brain/gpu.h"
#include "agent/brain/move.h"
#include "agent/brain/seen.h"
#include "agent/brain/state.h"

/* The first GPU of the wish that this node does not have; NULL: it has them all. */
static const char *missing_gpu(const struct sw_agent_brain *brain, const struct sw_agent_run *run)
{
	for (size_t i = 0; i < run->gpu_count; i++)
		if (!brain->gpus.items[run->gpus[i]].present)
			return brain->gpus.items[run->gpus[i]].uuid;
	return NULL;
}

/* It ends before it was started, if there is something that keeps it from that. */
static void refuse_start(struct sw_agent_brain *brain, struct sw_agent_run *run, const struct sw_want *want, bool stale)
{
	const char *missing = missing_gpu(brain, run);
	char detail[400];
	if (want->want != SW_WANT_RUN) {
		sw_agent_end(brain, run, SW_REASON_NEVER_STARTED, "it was not wanted any more before it was started");
	} else if (stale) {
		sw_agent_end(brain, run, SW_REASON_STALE, "this epoch, or a later one of the job, was here before");
	} else if (want->unfit != NULL) {
		sw_agent_end(brain, run, SW_REASON_ORDER, want->unfit);
	} else if (missing != NULL) {
		snprintf(detail, sizeof detail, "GPU '%s' is not in this node", missing);
		sw_agent_end(brain, run, SW_REASON_LAUNCH, detail);
	}
}

/* A wish for a run that is not known here. *complete becomes false when it cannot be taken
 * in now. 0 or SW_ENOMEM. */
static int take_in(struct sw_agent_brain *brain, const struct sw_want *want, bool *complete)
{
	if (want->want == SW_WANT_FORGET)
		return 0;
	bool stale = sw_agent_is_stale(brain, want->id);
	bool is_run = want->want == SW_WANT_RUN;
	if ((is_run && !stale && want->spec == NULL && want->unfit == NULL) || brain->runs.count >= SW_SYNC_RUNS_MAX) {
		*complete = false;
		return 0;
	}
	struct sw_want *copy = NULL;
	struct sw_agent_run *run = NULL;
	int r = sw_agent_see(brain, want->id, false);
	if (r == 0)
		r = sw_want_copy(want, &copy);
	if (r == 0)
		r = sw_agent_add(brain, want->id, &want->gpus, &run);
	if (r < 0) {
		free(copy);
		return r;
	}
	assert(run != NULL);
	run->phase = SW_PHASE_WAITING;
	run->want = copy;
	if (copy->spec != NULL)
		sw_agent_take_spec(run, copy->spec);
	/* As it is started: as its spec says, and alone. */
	run->terms_told = true;
	refuse_start(brain, run, want, stale);
	/* A run that waits is told like any other. */
	brain->dirty = true;
	return 0;
}

/* One line, whatever it was: it goes to the supervisor in a line, and to people's terminals. */
static void note_why(struct sw_agent_run *run, const char *why)
{
	snprintf(run->why, sizeof run->why, "%s", why != NULL ? why : "");
	for (unsigned char *at = (unsigned char *)run->why; *at != '\0'; at++) {
		bool is_two_bytes = *at == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0; /* the other control characters */
		if (is_two_bytes)
			at[0] = at[1] = '?';
		else if (*at < ' ' || *at == 0x7f)
			*at = ' ';
	}
}

static void note(struct sw_agent_brain *brain, struct sw_agent_run *run, const struct sw_want *want)
{
	if (want->want == SW_WANT_RUN || want->want == SW_WANT_SUSPEND)
		sw_agent_wish_gpus(brain, run, &want->gpus);
	run->listed = true;
	run->wish = (enum sw_agent_wish)want->want;
	run->signal = want->signal;
	run->grace_ms = want->grace_ms;
	note_why(run, want->why);
	run->limit_bytes = want->gpu_limit_bytes;
	run->share_milli = want->gpu_share_milli;
	run->paused = want->paused;
	run->deep = want->deep;
	run->held_is_known = want->held;
	run->opportunistic = run->asked_opportunistic && !want->upgraded;
}

/* Runs that have left no trace and are wanted no more. True: it is gone. */
static bool settle(struct sw_agent_brain *brain, struct sw_agent_run *run)
{
	if (!run->listed && (run->phase == SW_PHASE_WAITING || run->traceless)) {
		sw_agent_remove(brain, run);
		return true;
	}
	if (!run->listed) {
		run->wish = SW_WISH_STOP;
		run->why[0] = '\0';
		run->signal = 0;
		run->grace_ms = -1;
	}
	if (run->phase != SW_PHASE_WAITING)
		return false;
	if (run->wish == SW_WISH_STOP || run->wish == SW_WISH_FORGET)
		sw_agent_end(brain, run, SW_REASON_NEVER_STARTED, "it was not wanted any more before it was started");
	else if (sw_agent_is_stale(brain, run->id))
		sw_agent_end(brain, run, SW_REASON_STALE, "a later epoch of the job is here");
	return false;
}

static void apply_wishes(struct sw_agent_brain *brain, const struct sw_answer_message *answer)
{
	bool any = false; /* run may be wished for: one whose id could not be read is */
	for (size_t i = 0; i < answer->unread_count; i++)
		any = any || !answer->unread[i].has_id;
	for (size_t i = 0; i < brain->runs.count; i++)
		brain->runs.items[i].run->listed = any;
	for (size_t i = 0; i < answer->unread_count; i++) {
		struct sw_agent_run *run = answer->unread[i].has_id ? sw_agent_find(brain, answer->unread[i].id) : NULL;
		if (run != NULL)
			run->listed = true;
	}
	for (size_t i = 0; i < answer->want_count; i++) {
		struct sw_agent_run *run = sw_agent_find(brain, answer->wants[i].id);
		if (run != NULL)
			note(brain, run, &answer->wants[i]);
	}
	for (size_t i = 0; i < brain->runs.count;)
		if (!settle(brain, brain->runs.items[i].run))
			i++;
}

/* Runs that are wished to go on may do so for their lease's length again, from when
 * the question was sent. */
static void renew_leases(struct sw_agent_brain *brain)
{
	brain->patience_ns = SW_AGENT_PATIENCE_NS;
	for (size_t i = 0; i < brain->runs.count; i++) {
		struct sw_agent_run *run = brain->runs.items[i].run;
		if (run->lease_length_ns == 0 || run->phase == SW_PHASE_OVER || run->wish > SW_WISH_SUSPEND)
			continue;
		if (brain->sent_ns + run->lease_length_ns > run->lease_ns)
			run->lease_ns = brain->sent_ns + run->lease_length_ns;
		int64_t patience = run->lease_length_ns / 1000 * SW_AGENT_PATIENCE_MILLI;
		if (patience < brain->patience_ns)
			brain->patience_ns = patience;
	}
}

/* When to ask again: at once, since the controller keeps the question until it has news; unless
 * it seems not to do so. */
static int64_t next_due(const struct sw_agent_brain *brain, int64_t now_ns, const struct sw_answer_message *answer, bool complete)
{
	bool hasty = now_ns - brain->sent_ns < SW_AGENT_HASTY_NS;
	if (complete && (answer->version != brain->have || !hasty))
		return now_ns;
	int64_t retry = answer->retry_ms * SW_NS_PER_MS;
	if (retry < SW_AGENT_HASTY_NS)
		retry = SW_AGENT_HASTY_NS;
	return now_ns + (retry < 10 * SW_NS_PER_S ? retry : 10 * SW_NS_PER_S);
}

/* Runs that are not known here; *complete as above. 0 or SW_ENOMEM. */
static int take_in_all(struct sw_agent_brain *brain, const struct sw_answer_message *answer, bool *complete)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < answer->want_count; i++)
		if (sw_agent_find(brain, answer->wants[i].id) == NULL)
			r = take_in(brain, &answer->wants[i], complete);
	for (size_t i = 0; r == 0 && i < answer->unread_count; i++) {
		const struct sw_unread *unread = &answer->unread[i];
		struct sw_want want = {.id = unread->id, .want = SW_WANT_RUN, .grace_ms = -1, .unfit = unread->why};
		if (unread->has_id && sw_agent_find(brain, unread->id) == NULL)
			r = take_in(brain, &want, complete);
	}
	return r;
}

int sw_agent_brain_answer(struct sw_agent_brain *brain, int64_t now_ns, uint64_t number, const struct sw_answer_message *answer)
{
	if (!brain->waiting || number != brain->number)
		return 0;
	bool complete = true;
	int r = take_in_all(brain, answer, &complete);
	if (r < 0) {
		sw_agent_brain_failed(brain, now_ns, number);
		return r;
	}
	apply_wishes(brain, answer);
	if (brain->answered_ns == 0) {
		brain->answered_ns = now_ns;
		if (brain->looked_ns != 0)
			sw_agent_coordinate(brain, now_ns);
	}
	brain->waiting = false;
	brain->failures = 0;
	brain->spacing_ns = SW_AGENT_SPACING_NS;
	brain->inventory_known |= brain->inventory_sent;
	brain->old_controller = answer->lease_ms < SW_LEASE_OF_OLD_MS;
	brain->fresh_until_ns = brain->sent_ns + SW_AGENT_FRESH_NS;
	renew_leases(brain);
	brain->due_ns = next_due(brain, now_ns, answer, complete);
	/* Version 0 asks for everything, specs included. */
	brain->have = complete ? answer->version : 0;
	return 0;
}
