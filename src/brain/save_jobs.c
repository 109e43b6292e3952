/* Jobs, as the brain keeps them, as bytes and back. See save.c. */
#include <stdlib.h>
#include <string.h>

#include "brain/asked.h"
#include "brain/prerun.h"
#include "brain/save.h"
#include "brain/state.h"
#include "brain/stops.h"

#define NUMBERS_MAX (UINT32_C(1) << 30)

/* ---- walks */

/* Whether the bytes that are read were written before this format. */
static bool is_below(const struct sw_pack *pack, uint32_t format)
{
	return pack->reads && pack->format < format;
}

static void pack_run(struct sw_pack *pack, struct sw_run *run)
{
	sw_pack_u32(pack, &run->node);
	sw_pack_u64(pack, &run->mask);
	sw_pack_u8(pack, &run->heard);
	sw_pack_int(pack, &run->code);
	sw_pack_int(pack, &run->signal);
}

static void pack_depend(struct sw_pack *pack, struct sw_depend *depend)
{
	uint8_t kind = (uint8_t)depend->kind;
	sw_pack_u8(pack, &kind);
	depend->kind = (enum sw_depend_kind)kind;
	sw_pack_u64(pack, &depend->job);
}

static void pack_runs(struct sw_pack *pack, struct sw_live *live)
{
	size_t count = live->run_count;
	sw_pack_count(pack, &count);
	if (pack->reads && (count == 0 || !sw_save_make(pack, &live->runs, count, sizeof *live->runs)))
		return;
	live->run_count = (uint32_t)count;
	for (size_t r = 0; r < count; r++)
		pack_run(pack, &live->runs[r]);
}

static void pack_depends(struct sw_pack *pack, struct sw_live *live)
{
	size_t count = live->depend_count;
	sw_pack_count(pack, &count);
	if (pack->reads && (count == 0 || !sw_save_make(pack, &live->depends, count, sizeof *live->depends)))
		return;
	live->depend_count = (uint32_t)count;
	for (size_t d = 0; d < count; d++)
		pack_depend(pack, &live->depends[d]);
}

static void pack_cause(struct sw_pack *pack, struct sw_cause *cause)
{
	uint8_t layer = (uint8_t)cause->layer, action = (uint8_t)cause->action;
	sw_pack_chars(pack, cause->name, sizeof cause->name);
	sw_pack_text(pack, &cause->line);
	sw_pack_u8(pack, &layer);
	sw_pack_u8(pack, &action);
	sw_pack_u32(pack, &cause->budget);
	sw_pack_u32(pack, &cause->rank);
	sw_pack_u32(pack, &cause->node);
	sw_pack_bool(pack, &cause->free);
	if (layer > SW_LAYER_UNKNOWN || action > SW_ACTION_MEMORY)
		sw_pack_fail(pack);
	if (!pack->reads)
		return;
	cause->layer = pack->failed == 0 ? (enum sw_failure_layer)layer : SW_LAYER_UNKNOWN;
	cause->action = pack->failed == 0 ? (enum sw_failure_action)action : SW_ACTION_NONE;
}

static void pack_trouble(struct sw_pack *pack, struct sw_trouble *trouble)
{
	pack_cause(pack, &trouble->cause);
	sw_pack_bool(pack, &trouble->pending);
	sw_pack_bool(pack, &trouble->again);
	sw_pack_bool(pack, &trouble->elsewhere);
	sw_pack_bool(pack, &trouble->memory_raised);
	sw_pack_u64(pack, &trouble->memory_bytes);
	sw_pack_u32(pack, &trouble->tried);
	sw_pack_u32(pack, &trouble->may);
	sw_pack_chars(pack, trouble->why, sizeof trouble->why);
	for (size_t i = 0; i < SW_TROUBLES_KEPT; i++) {
		sw_pack_word(pack, &trouble->classes[i]);
		sw_pack_word(pack, &trouble->seen[i]);
		sw_pack_u32(pack, &trouble->class_tries[i]);
		sw_pack_u32(pack, &trouble->seen_count[i]);
		sw_pack_u32(pack, &trouble->seen_node[i]);
	}
}

/* What failures have to do with the job. */
static void pack_failures(struct sw_pack *pack, struct sw_live *live)
{
	bool has_trouble = live->trouble != NULL, has_warning = live->warning != NULL;
	sw_pack_u32(pack, &live->failures);
	sw_pack_word(pack, &live->command_hash);
	sw_pack_bool(pack, &live->asked_retries);
	sw_pack_bool(pack, &live->is_prerun);
	sw_pack_bool(pack, &live->spoiled);
	sw_pack_bool(pack, &has_warning);
	if (has_warning)
		sw_pack_text(pack, &live->warning);
	sw_pack_bool(pack, &has_trouble);
	if (has_trouble && (!pack->reads || sw_save_make(pack, &live->trouble, 1, sizeof *live->trouble)))
		pack_trouble(pack, live->trouble);
}

static void pack_pace(struct sw_pack *pack, struct sw_live *live)
{
	bool has_pace = live->pace != NULL;
	sw_pack_bool(pack, &has_pace);
	if (!has_pace || (pack->reads && !sw_save_make(pack, &live->pace, 1, sizeof *live->pace)))
		return;
	struct sw_pace *pace = live->pace;
	if (pace == NULL)
		return;
	sw_pack_u32(pack, &pace->epoch);
	sw_pack_near(pack, &pace->at, live->submitted_at);
	sw_pack_i64(pack, &pace->iteration_ns);
	sw_pack_i64(pack, &pace->alone_ns);
	sw_pack_u64(pack, &pace->iterations);
	sw_pack_u32(pack, &pace->beside.count);
	if (pace->beside.count > SW_SYNC_JOBS_LISTED || pace->iteration_ns < 0 || pace->alone_ns < 0)
		sw_pack_fail(pack);
	for (uint32_t i = 0; i < pace->beside.count && pack->failed == 0; i++)
		sw_pack_u64(pack, &pace->beside.items[i]);
}

static void pack_model(struct sw_pack *pack, struct sw_live *live)
{
	bool has_model = live->model != NULL;
	sw_pack_bool(pack, &has_model);
	if (has_model)
		sw_pack_text(pack, &live->model);
}

static void pack_fates(struct sw_pack *pack, struct sw_asked *asked)
{
	size_t count = asked->fate_count;
	sw_pack_count(pack, &count);
	if (pack->reads && (count == 0 || !sw_save_make(pack, &asked->fates, count, sizeof *asked->fates)))
		return;
	asked->fate_count = (uint32_t)count;
	for (size_t f = 0; f < count; f++) {
		sw_pack_u64(pack, &asked->fates[f].job);
		sw_pack_bool(pack, &asked->fates[f].ok);
	}
}

static void pack_bulk(struct sw_pack *pack, struct sw_brain *brain, struct sw_asked *asked)
{
	bool warns = asked->warning != NULL;
	pack_fates(pack, asked);
	for (int b = 0; b < SW_BULKS && pack->failed == 0; b++) {
		struct sw_bulk bulk = asked->bulk[b];
		sw_pack_u32(pack, &bulk.size);
		if (bulk.size > 0)
			sw_pack_raw(pack, bulk.digest, sizeof bulk.digest);
		if (pack->reads && pack->failed == 0 && bulk.size > 0 && sw_asked_add_bulk(brain, asked, b, &bulk) < 0)
			pack->failed = SW_ENOMEM;
	}
	sw_pack_bool(pack, &warns);
	if (warns)
		sw_pack_text(pack, &asked->warning);
}

/* What it asked for; the members of an array share that with the one before. */
static void pack_asked(struct sw_pack *pack, struct sw_brain *brain, struct sw_live *live, const struct sw_live *before)
{
	bool same = !pack->reads && before != NULL && live->asked == before->asked;
	sw_pack_bool(pack, &same);
	if (!same) {
		char *text = pack->reads ? NULL : live->asked->text;
		sw_pack_text(pack, &text);
		if (pack->reads && pack->failed == 0 && (live->asked = sw_asked_copy(text)) == NULL)
			pack->failed = SW_ENOMEM;
		if (pack->reads)
			free(text);
		if (pack->failed == 0 && (!pack->reads || pack->format >= 8))
			pack_bulk(pack, brain, live->asked);
	} else if (pack->reads && before != NULL && before->asked != NULL) {
		live->asked = sw_asked_share(before->asked);
	} else if (pack->reads) {
		sw_pack_fail(pack);
	}
	sw_pack_bool(pack, &live->is_member);
	sw_pack_u32(pack, &live->array_index);
}

static void pack_depth(struct sw_pack *pack, struct sw_live *live)
{
	bool refused = live->not_deep != NULL;
	sw_pack_bool(pack, &live->deep);
	for (uint32_t r = 0; r < live->run_count && live->deep; r++)
		sw_pack_bool(pack, &live->runs[r].off);
	sw_pack_bool(pack, &refused);
	if (refused)
		sw_pack_text(pack, &live->not_deep);
}

static void pack_move(struct sw_pack *pack, struct sw_live *live, struct sw_engine_run *old)
{
	bool unmoved = live->unmoved != NULL;
	for (uint32_t r = 0; r < live->run_count && is_below(pack, 13); r++) {
		uint64_t from = 0;
		sw_pack_u64(pack, &from);
		if (from != 0)
			sw_pack_near(pack, &old->move_at, 0);
		if (from != 0 && (live->run_count > 1 || from == live->runs[r].mask))
			sw_pack_fail(pack);
		old->leaves = from;
	}
	sw_pack_bool(pack, &unmoved);
	if (unmoved)
		sw_pack_text(pack, &live->unmoved);
	sw_ns until = 0;
	if (unmoved && pack->reads && pack->format >= 7 && pack->format < 13)
		sw_pack_near(pack, &until, 0);
	if (old->leaves == 0)
		old->move_at = until;
}

static void pack_lease(struct sw_pack *pack, struct sw_live *live)
{
	sw_pack_i64(pack, &live->lease_ns);
	sw_pack_i64(pack, &live->grace_ns);
	sw_pack_bool(pack, &live->stranded);
	sw_pack_bool(pack, &live->node_lost);
	for (uint32_t r = 0; r < live->run_count; r++)
		sw_pack_bool(pack, &live->runs[r].leased);
	if (live->lease_ns < 0 || live->lease_ns > SW_JOB_LEASE_MAX_NS || live->grace_ns < 0 || live->grace_ns > SW_JOB_DURATION_MAX_NS)
		sw_pack_fail(pack);
}

/* How often the engine had started the job, the number of its run for agents, and whether that was
 * suspended. It is one number since format 13, and the engine knows the rest. */
static void pack_epoch(struct sw_pack *pack, struct sw_live *live, struct sw_engine_run *old)
{
	bool suspended = false;
	sw_pack_u32(pack, &live->epoch);
	old->epoch = live->epoch;
	if (is_below(pack, 13))
		sw_pack_u32(pack, &live->epoch);
	pack_runs(pack, live);
	sw_pack_bool(pack, &live->parks);
	if (is_below(pack, 13))
		sw_pack_bool(pack, &suspended);
	if (suspended)
		sw_pack_near(pack, &old->stood_at, 0);
}

/* `before` is the job before this one; NULL: this is the first. Not here: ghosts. What
 * earlier versions kept of its run, and the engine does now, goes into `old`; its epoch there
 * is that of their engine. */
static void pack_live(struct sw_pack *pack, struct sw_brain *brain, struct sw_live *live, const struct sw_live *before,
		      struct sw_engine_run *old)
{
	pack_asked(pack, brain, live, before);
	sw_pack_text(pack, &live->name);
	pack_depends(pack, live);
	sw_pack_u32(pack, &live->uid);
	sw_pack_u32(pack, &live->gid);
	sw_pack_u32(pack, &live->tenant);
	pack_epoch(pack, live, old);
	sw_pack_u32(pack, &live->held_by);
	uint64_t unused = 0;
	for (int i = 0; i < 2 && pack->reads && pack->format < 11; i++)
		sw_pack_u64(pack, &unused);
	sw_pack_u32(pack, &live->last_node);
	sw_pack_u64(pack, &live->last_mask);
	sw_pack_int(pack, &live->code);
	sw_pack_int(pack, &live->signal);
	sw_pack_chars(pack, live->reason, sizeof live->reason);
	sw_pack_near(pack, &live->submitted_at, before != NULL ? before->submitted_at : 0);
	sw_pack_near(pack, &live->started_at, live->submitted_at);
	sw_pack_near(pack, &live->ended_at, live->submitted_at);
	pack_failures(pack, live);
	sw_pack_bool(pack, &live->user_held);
	sw_pack_bool(pack, &live->timed_out);
	if (pack->reads && pack->format < 2)
		return;
	sw_pack_u64(pack, &live->limit_bytes);
	sw_pack_u32(pack, &live->limit_milli);
	if (live->limit_bytes > SW_JOB_BYTES_MAX || live->limit_milli >= 1000)
		sw_pack_fail(pack);
	if (pack->reads && pack->format < 3)
		return;
	pack_pace(pack, live);
	pack_model(pack, live);
	if (pack->reads && pack->format < 4)
		return;
	pack_depth(pack, live);
	if (pack->reads && pack->format < 6)
		return;
	pack_move(pack, live, old);
	if (pack->reads && pack->format < 8)
		return;
	sw_pack_u32(pack, &live->array_first);
	pack_lease(pack, live);
	if (pack->reads && pack->format < 9)
		return;
	sw_stop_pack(pack, live);
	if (pack->reads && pack->format < 10)
		return;
	for (uint32_t r = 0; r < live->run_count; r++) {
		sw_pack_bool(pack, &live->runs[r].frees);
		sw_pack_bool(pack, &live->runs[r].held);
	}
}

/* ---- all of them */

/* In rows: how many numbers are not known, and how many are then. */
void sw_save_jobs(struct sw_pack *out, struct sw_brain *brain)
{
	size_t known = brain->known.count;
	uint32_t numbers = (uint32_t)brain->jobs.count, end = 0;
	const struct sw_live *before = NULL;
	sw_pack_count(out, &known);
	sw_pack_u32(out, &numbers);
	for (uint32_t id = sw_brain_next_known(brain, 0); id != SW_BITMAP_NONE; id = sw_brain_next_known(brain, id + 1)) {
		if (id >= end) {
			uint32_t gap = id - end, row = sw_bitmap_row(&brain->known, id);
			sw_pack_u32(out, &gap);
			sw_pack_u32(out, &row);
			end = id + row;
		}
		pack_live(out, brain, &brain->jobs.items[id], before, &(struct sw_engine_run){0});
		before = &brain->jobs.items[id];
	}
}

static bool are_sensible(const struct sw_brain *brain, const struct sw_live *live)
{
	for (uint32_t r = 0; r < live->run_count; r++) {
		const struct sw_run *run = &live->runs[r];
		const struct sw_brain_node *node = run->node < brain->nodes.count ? &brain->nodes.items[run->node] : NULL;
		if (node == NULL || run->heard > SW_HEARD_EXITED || run->mask == 0 ||
		    (node->shape.gpus < 64 && run->mask >> node->shape.gpus != 0) || sw_brain_run_on(live, run->node) != run)
			return false;
	}
	/* A pre-run is made before its gang. */
	if (sw_prerun_of(live) > 0 && sw_brain_live(brain, sw_prerun_of(live)) == NULL)
		return false;
	return live->trouble == NULL || live->trouble->cause.node < brain->nodes.count;
}

/* For the engine, once it is loaded. False: out of memory. */
static bool keep_old(struct sw_live *live, const struct sw_engine_run *old, uint32_t id, sw_old_runs *ret_old)
{
	struct sw_old_run *slot = sw_vec_push(ret_old);
	if (slot == NULL)
		return false;
	*slot = (struct sw_old_run){id, *old};
	if (live->pace != NULL)
		live->pace->epoch = live->pace->epoch == old->epoch ? live->epoch : 0;
	slot->run.epoch = live->epoch;
	for (uint32_t r = 0; r < live->run_count; r++)
		slot->run.begun |= live->runs[r].heard >= SW_HEARD_RUNNING;
	return true;
}

int sw_save_load_jobs(struct sw_pack *pack, struct sw_brain *brain, sw_old_runs *ret_old)
{
	size_t count = 0;
	sw_pack_count(pack, &count);
	/* Up to format 7 no number was left out. */
	uint32_t numbers = (uint32_t)count, last = SW_BITMAP_NONE;
	if (pack->format >= 8)
		sw_pack_u32(pack, &numbers);
	if (count > sw_pack_left(pack) || numbers < count || numbers > NUMBERS_MAX)
		return SW_EINPUT;
	uint32_t row = pack->format >= 8 ? 0 : (uint32_t)count;
	for (size_t i = 0; i < count && pack->failed == 0; i++, row--) {
		uint32_t gap = 0;
		if (row == 0) {
			sw_pack_u32(pack, &gap);
			sw_pack_u32(pack, &row);
		}
		if (gap > numbers - brain->jobs.count - (count - i) || row == 0 || row > count - i)
			return SW_EINPUT;
		brain->jobs.count += gap;
		struct sw_live *live = sw_brain_add(brain);
		if (live == NULL)
			return SW_ENOMEM;
		struct sw_engine_run old = {0};
		pack_live(pack, brain, live, last != SW_BITMAP_NONE ? &brain->jobs.items[last] : NULL, &old);
		last = (uint32_t)brain->jobs.count - 1;
		if (is_below(pack, 13) && !keep_old(live, &old, last, ret_old))
			return SW_ENOMEM;
		if (pack->format < 8 && live->is_member)
			live->array_first =
				last > 0 && live[-1].is_member && live[-1].asked == live->asked ? live[-1].array_first : last + 1;
		if (live->is_member != (live->array_first != 0) || live->array_first > last + 1)
			sw_pack_fail(pack);
		if (pack->failed == 0 && (live->tenant >= brain->tenants.count || !are_sensible(brain, live)))
			sw_pack_fail(pack);
	}
	if (pack->failed == 0)
		brain->jobs.count = numbers;
	return pack->failed;
}
