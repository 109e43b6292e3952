/* Runs: what the engine decided, as wishes to nodes. A run is active, suspended where it ran, or a
 * ghost (it must stop and has not been heard to).
 *
 * The engine decides which run is suspended and where it goes, counts what it holds, and gives it
 * its epoch. Here its commands become wishes, and nothing is decided.
 *
 * Invariants (sw_brain_validate() checks them):
 *  1. a job has one run at the most, active or suspended, beside its ghosts; a suspended run
 *     has been seen running;
 *  2. a run is on the GPUs that the engine has for it, where it runs or where it stands.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "brain/dependents.h"
#include "brain/fold.h"
#include "brain/moves.h"
#include "brain/reshape.h"
#include "brain/runs.h"
#include "brain/state.h"
#include "brain/stops.h"

void sw_brain_touch(struct sw_brain *brain, const struct sw_live *live)
{
	for (uint32_t r = 0; r < live->run_count; r++)
		brain->nodes.items[live->runs[r].node].version++;
}

/* It goes on, or ends. */
static void end_deep(struct sw_live *live)
{
	live->deep = false;
	free(live->not_deep);
	live->not_deep = NULL;
	for (uint32_t r = 0; r < live->run_count; r++)
		live->runs[r].off = live->runs[r].held = false;
}

int sw_brain_drop_runs(struct sw_brain *brain, uint32_t id)
{
	struct sw_live *live = &brain->jobs.items[id];
	for (uint32_t r = 0; r < live->run_count; r++) {
		struct sw_brain_node *node = &brain->nodes.items[live->runs[r].node];
		for (size_t j = 0; j < node->jobs.count; j++)
			if (node->jobs.items[j] == id)
				node->jobs.items[j--] = node->jobs.items[--node->jobs.count];
		node->version++;
		if (!node->up || live->runs[r].heard == SW_HEARD_EXITED)
			continue;
		struct sw_ghost *ghost = sw_vec_push(&node->ghosts);
		if (ghost == NULL)
			return SW_ENOMEM;
		*ghost = (struct sw_ghost){id, live->epoch, live->runs[r].heard == SW_HEARD_NOTHING ? node->leases : live->runs[r].leased};
		live->ghosts++;
	}
	end_deep(live);
	free(live->unmoved);
	live->unmoved = NULL;
	free(live->runs);
	live->runs = NULL;
	live->run_count = 0;
	/* Parts of it that failed are of no concern any more. */
	if (live->trouble != NULL)
		live->trouble->pending = false;
	return 0;
}

void sw_brain_lay_ghost(struct sw_brain *brain, struct sw_brain_node *node, size_t index)
{
	assert(index < node->ghosts.count);
	struct sw_live *live = &brain->jobs.items[node->ghosts.items[index].job];
	assert(live->ghosts > 0);
	node->ghosts.items[index] = node->ghosts.items[--node->ghosts.count];
	if (--live->ghosts == 0)
		sw_brain_touch(brain, live);
}

/* ---- which run is where */

/* Where it is, or may be: one that moves may have to stay. */
static uint64_t mask_on(const struct sw_brain *brain, uint32_t id, const struct sw_brain_node *node)
{
	const struct sw_live *live = &brain->jobs.items[id];
	return sw_brain_run_on(live, (uint32_t)(node - brain->nodes.items))->mask | sw_brain_leaves(brain, live);
}

/* Those that stand still under an active run do so for its job. */
static void name_reason(struct sw_brain *brain, uint32_t id)
{
	const struct sw_live *live = &brain->jobs.items[id];
	for (uint32_t r = 0; r < live->run_count; r++) {
		const struct sw_brain_node *node = &brain->nodes.items[live->runs[r].node];
		for (size_t j = 0; j < node->jobs.count; j++) {
			struct sw_live *other = &brain->jobs.items[node->jobs.items[j]];
			if (sw_brain_is_suspended(brain, other) && (mask_on(brain, node->jobs.items[j], node) & live->runs[r].mask) != 0) {
				snprintf(other->reason, sizeof other->reason, "suspended in place for job %u", id + 1);
				sw_stop_name(other, id + UINT64_C(1));
			}
		}
	}
}

uint64_t sw_brain_occupant(const struct sw_brain *brain, uint32_t id)
{
	const struct sw_live *live = &brain->jobs.items[id];
	uint64_t first = 0;
	for (uint32_t r = 0; r < live->run_count; r++) {
		const struct sw_brain_node *node = &brain->nodes.items[live->runs[r].node];
		for (size_t j = 0; j < node->jobs.count; j++) {
			uint32_t other = node->jobs.items[j];
			if (!sw_brain_is_suspended(brain, &brain->jobs.items[other]) &&
			    (mask_on(brain, other, node) & live->runs[r].mask) != 0 && (first == 0 || other + UINT64_C(1) < first))
				first = other + UINT64_C(1);
		}
	}
	return first;
}

/* Where the ghost was is known of the first part of a job's last run; of
 * others it may be any GPU. */
static bool may_be_on(const struct sw_brain *brain, const struct sw_ghost *ghost, uint32_t node, uint64_t mask)
{
	const struct sw_live *live = &brain->jobs.items[ghost->job];
	bool known = ghost->epoch == live->epoch && live->last_node == node;
	return !known || (live->last_mask & mask) != 0;
}

uint64_t sw_brain_parting(const struct sw_brain *brain, uint32_t id)
{
	const struct sw_live *live = &brain->jobs.items[id];
	for (uint32_t r = 0; r < live->run_count; r++) {
		const struct sw_brain_node *node = &brain->nodes.items[live->runs[r].node];
		for (size_t j = 0; j < node->jobs.count; j++) {
			const struct sw_live *other = &brain->jobs.items[node->jobs.items[j]];
			const struct sw_run *run = sw_brain_run_on(other, live->runs[r].node);
			bool leaves =
				sw_brain_is_suspended(brain, other) && other->deep && !run->off && (run->mask & live->runs[r].mask) != 0;
			if (leaves || (other != live && (sw_brain_leaves(brain, other) & live->runs[r].mask) != 0))
				return node->jobs.items[j] + UINT64_C(1);
		}
	}
	return 0;
}

uint64_t sw_brain_leaver(const struct sw_brain *brain, uint32_t id)
{
	const struct sw_live *live = &brain->jobs.items[id];
	if (live->ghosts > 0)
		return id + UINT64_C(1);
	for (uint32_t r = 0; r < live->run_count; r++) {
		const struct sw_brain_node *node = &brain->nodes.items[live->runs[r].node];
		for (size_t g = 0; g < node->ghosts.count; g++)
			if (may_be_on(brain, &node->ghosts.items[g], live->runs[r].node, live->runs[r].mask))
				return node->ghosts.items[g].job + UINT64_C(1);
	}
	return 0;
}

/* ---- commands */

static int make_runs(struct sw_brain *brain, const struct sw_command *command)
{
	const struct sw_ledger *ledger = sw_engine_ledger(brain->engine);
	struct sw_live *live = &brain->jobs.items[command->job];
	uint32_t count = 0;
	assert(live->run_count == 0 && command->parts != SW_NO_PART && command->epoch > live->epoch);
	for (uint32_t p = command->parts; p != SW_NO_PART; p = ledger->parts[p].next)
		count++;
	struct sw_run *runs = calloc(count + 1, sizeof *runs);
	if (runs == NULL)
		return SW_ENOMEM;
	live->runs = runs;
	live->epoch = command->epoch;
	for (uint32_t p = command->parts; p != SW_NO_PART; p = ledger->parts[p].next) {
		struct sw_brain_node *node = &brain->nodes.items[ledger->parts[p].node];
		uint32_t *slot = sw_vec_push(&node->jobs);
		if (slot == NULL)
			return SW_ENOMEM;
		*slot = command->job;
		runs[live->run_count++] = (struct sw_run){.node = ledger->parts[p].node, .mask = ledger->parts[p].mask};
		node->version++;
	}
	live->last_node = runs[0].node;
	live->last_mask = runs[0].mask;
	return 0;
}

static int start(struct sw_brain *brain, const struct sw_command *command)
{
	struct sw_live *live = &brain->jobs.items[command->job];
	int r = 0;
	if (command->goes_on) {
		assert(live->run_count > 0 && live->epoch == command->epoch);
		end_deep(live);
		sw_brain_touch(brain, live);
	} else {
		r = sw_brain_drop_runs(brain, command->job);
		r = r < 0 ? r : make_runs(brain, command);
	}
	live->reason[0] = '\0';
	sw_stop_end(brain, live);
	name_reason(brain, command->job);
	return r;
}

/* The same run, on these GPUs from now on; or on those that it never left. */
static void move(struct sw_brain *brain, const struct sw_command *command)
{
	struct sw_live *live = &brain->jobs.items[command->job];
	assert(live->run_count == 1 && live->epoch == command->epoch);
	live->runs[0].mask = live->last_mask = command->mask;
	sw_brain_touch(brain, live);
	if (command->reason == SW_REASON_BOUNCED)
		return;
	/* Words for people: without memory for them it moves all the same. */
	(void)sw_stop_note(brain, command->job, SW_STOP_MOVED, SW_STOPPED_BY_POLICY, 0);
	free(live->unmoved);
	live->unmoved = NULL;
	name_reason(brain, command->job);
}

/* A run stops since its node is lost, or since the node has other GPUs now. */
static const char *name_loss(const struct sw_brain *brain, const struct sw_live *live)
{
	for (uint32_t r = 0; r < live->run_count; r++)
		if (!brain->nodes.items[live->runs[r].node].up)
			return "node lost";
	return SW_BRAIN_GPUS_GONE;
}

/* The first job that is given GPUs of this one in the same step, from 1; 0: there is none. */
static uint64_t find_successor(const struct sw_brain *brain, const struct sw_step *step, const struct sw_live *live)
{
	const struct sw_ledger *ledger = sw_engine_ledger(brain->engine);
	for (size_t c = 0; c < step->command_count; c++)
		for (uint32_t p = step->commands[c].kind == SW_CMD_START ? step->commands[c].parts : SW_NO_PART; p != SW_NO_PART;
		     p = ledger->parts[p].next) {
			const struct sw_run *run = sw_brain_run_on(live, ledger->parts[p].node);
			if (run != NULL && (run->mask & ledger->parts[p].mask) != 0)
				return step->commands[c].job + UINT64_C(1);
		}
	return 0;
}

static int stop(struct sw_brain *brain, const struct sw_step *step, const struct sw_command *command)
{
	struct sw_live *live = &brain->jobs.items[command->job];
	const char *why = command->reason == SW_REASON_NODE_LOST  ? name_loss(brain, live)
			  : command->reason == SW_REASON_HELD	  ? "held"
			  : command->reason == SW_REASON_MOVED	  ? "moved"
			  : command->reason == SW_REASON_REQUEUED ? "requeued"
			  : command->reason == SW_REASON_BOUNCED  ? SW_BRAIN_BOUNCED
								  : "preempted";
	bool is_dropped = command->reason == SW_REASON_NODE_LOST && live->run_count == 0;
	uint64_t successor = command->reason == SW_REASON_PREEMPTED ? find_successor(brain, step, live) : 0;
	enum sw_stop_cause cause = command->reason == SW_REASON_PREEMPTED || command->reason == SW_REASON_MOVED ? SW_STOPPED_BY_POLICY
				   : command->reason == SW_REASON_BOUNCED					? SW_STOPPED_BY_ANOTHER
														: SW_STOPPED_BY_NODE;
	if (!is_dropped && sw_stop_note(brain, command->job, command->stands ? SW_STOP_SUSPENDED : SW_STOP_ANEW, cause, successor) < 0)
		return SW_ENOMEM;
	/* One that was dropped with its step still to come has nothing left that could stand. */
	if (!command->stands || live->run_count == 0) {
		if (!is_dropped)
			snprintf(live->reason, sizeof live->reason, successor != 0 ? "%s for job %llu" : "%s", why,
				 (unsigned long long)successor);
		/* It may not start a second time. */
		if (sw_engine_job(brain->engine, (struct sw_job_id){command->job})->state == SW_JOB_FAILED)
			live->ended_at = brain->now;
		sw_depends_end(brain, command->job);
		return sw_brain_drop_runs(brain, command->job);
	}
	snprintf(live->reason, sizeof live->reason, "suspended in place");
	sw_brain_touch(brain, live);
	return 0;
}

void sw_brain_set_deep(struct sw_brain *brain, struct sw_live *live)
{
	if (live->deep)
		return;
	end_deep(live);
	live->deep = true;
	sw_brain_touch(brain, live);
}

int sw_brain_refuse_deep(struct sw_brain *brain, uint32_t id, const char *why)
{
	struct sw_live *live = &brain->jobs.items[id];
	end_deep(live);
	live->not_deep = strdup(why);
	if (live->not_deep == NULL)
		return SW_ENOMEM;
	sw_brain_touch(brain, live);
	return 0;
}

/* What its policy says of a job at submit, in whole characters, as its user sees it. */
static int note_words(struct sw_live *live, const char *words)
{
	size_t length = words != NULL ? sw_utf8_start(words, SW_REASON_MAX) : 0;
	char *all = NULL;
	if (length == 0)
		return 0;
	if (asprintf(&all, "%s%s%.*s", live->warning != NULL ? live->warning : "", live->warning != NULL ? "; " : "", (int)length, words) <
	    0)
		return SW_ENOMEM;
	free(live->warning);
	live->warning = all;
	return 0;
}

static int refuse(struct sw_brain *brain, const struct sw_command *command)
{
	struct sw_live *live = &brain->jobs.items[command->job];
	const char *own = command->reason == SW_REASON_TOO_LARGE      ? "larger than the cluster"
			  : command->reason == SW_REASON_NOT_ADMITTED ? "not admitted by the policy"
			  /* The rest is refused before it is a job. */
			  : command->reason == SW_REASON_BAD_SPEC ? "the world's rules for stops forbid its class"
								  : "no node could hold it";
	const char *why = command->text != NULL && sw_utf8_start(command->text, SW_REASON_MAX) > 0 ? command->text : own;
	size_t shown = sw_utf8_start(why, sizeof live->reason - 1);
	live->ended_at = brain->now;
	snprintf(live->reason, sizeof live->reason, "%.*s", (int)shown, why);
	/* A long sentence is there in full too. */
	int r = sw_utf8_start(why, SW_REASON_MAX) > shown ? note_words(live, why) : 0;
	return r < 0 ? r : sw_depends_end(brain, command->job);
}

int sw_brain_obey(struct sw_brain *brain, const struct sw_step *step)
{
	int r = 0;
	for (size_t c = 0; r == 0 && c < step->command_count; c++) {
		const struct sw_command *command = &step->commands[c];
		if (command->kind == SW_CMD_ASK) /* the driver looks what is open */
			continue;
		/* No world that lets nodes be switched can be in force: see
		 * sw_brain_takes_world(). */
		assert(command->kind < SW_CMD_NODE_OFF && sw_bitmap_has(&brain->known, command->job));
		struct sw_live *live = &brain->jobs.items[command->job];
		switch (command->kind) {
		case SW_CMD_START:
			r = start(brain, command);
			break;
		case SW_CMD_STOP:
			r = stop(brain, step, command);
			break;
		case SW_CMD_MOVE:
			move(brain, command);
			break;
		case SW_CMD_KILL:
			r = sw_brain_drop_runs(brain, command->job);
			break;
		case SW_CMD_REFUSE:
			r = refuse(brain, command);
			break;
		case SW_CMD_ADMIT:
			r = note_words(live, command->text);
			break;
		default:
			assert(command->kind == SW_CMD_LIMIT);
			sw_brain_touch(brain, live);
			break;
		}
	}
	return r;
}
