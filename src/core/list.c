/* Lists of jobs for policies, whose links the core keeps: behind the policy's own bytes, so that
 * they are saved, loaded and zeroed with them.
 *
 * A job has a link for each of the first lists. One more is for all shelves, of which it is on one
 * at most. Ends of shelves of a node lie behind the policy's bytes for that node.
 *
 * Invariants (sw_lists_are_sound() checks them, also of what was loaded):
 *  1. a job that has ended is in no list;
 *  2. from the first of a list its links lead to the last and back, past as many as it counts;
 *  3. a job that is on no shelf has no neighbour there.
 */
#include "core/state.h"

/* Ids plus one; 0: none. */
struct ends {
	uint32_t first, last, count;
};

struct link {
	uint32_t before, after;
};

/* The last link of a job: that of its shelf. */
struct place {
	struct link link;
	uint32_t shelf; /* number of the list plus one; 0: none */
};

/* ---- where the bytes are */

static size_t aligned(size_t size)
{
	return (size + 7) / 8 * 8;
}

static bool has_shelves(const struct sw_policy *policy)
{
	return (policy->shelf_count | policy->node_shelf_count) != 0;
}

/* Lists but for those of nodes. */
static uint32_t fixed_count(const struct sw_policy *policy)
{
	return policy->list_count + policy->shelf_count;
}

static size_t behind(size_t own, size_t more)
{
	return more == 0 ? own : aligned(own) + aligned(more);
}

size_t sw_list_state_size(const struct sw_policy *policy)
{
	return behind(policy->state_size, sizeof(struct ends) * fixed_count(policy));
}

size_t sw_list_job_state_size(const struct sw_policy *policy)
{
	size_t links = sizeof(struct link) * policy->list_count;
	return behind(policy->job_state_size, links + (has_shelves(policy) ? sizeof(struct place) : 0));
}

size_t sw_list_node_state_size(const struct sw_policy *policy)
{
	return behind(policy->node_state_size, sizeof(struct ends) * policy->node_shelf_count);
}

static uint64_t count_lists(const struct sw_engine *engine)
{
	return fixed_count(engine->policy) + (uint64_t)engine->policy->node_shelf_count * engine->topology->node_count;
}

/* Of a list that there is. */
static inline struct ends *ends_of(const struct sw_engine *engine, uint32_t list)
{
	const struct sw_policy *policy = engine->policy;
	if (list < fixed_count(policy))
		return (struct ends *)(void *)((char *)engine->policy_state + aligned(policy->state_size)) + list;
	uint32_t shelf = list - fixed_count(policy), node = shelf / policy->node_shelf_count;
	char *own = engine->node_states + engine->node_states_each * node;
	return (struct ends *)(void *)(own + aligned(policy->node_state_size)) + (shelf - node * policy->node_shelf_count);
}

/* For any shelf: the same. */
static inline struct link *link_of(const struct sw_engine *engine, uint32_t list, uint32_t number)
{
	const struct sw_policy *policy = engine->policy;
	char *own = engine->job_states + (size_t)(number - 1) * engine->job_states_each;
	return (struct link *)(void *)(own + aligned(policy->job_state_size)) + (list < policy->list_count ? list : policy->list_count);
}

static inline uint32_t *shelf_of(const struct sw_engine *engine, uint32_t number)
{
	struct place *place = (struct place *)(void *)link_of(engine, engine->policy->list_count, number);
	return &place->shelf;
}

/* 0: the core knows no such job, or no job is in a list. */
static inline uint32_t number_of(struct sw_engine *engine, const struct sw_job *job)
{
	bool known = fixed_count(engine->policy) + engine->policy->node_shelf_count > 0 && sw_engine_own(engine, job) != NULL;
	return known ? job->id.v + 1 : 0;
}

/* Whatever the number of the list. */
static inline bool is_in(const struct sw_engine *engine, uint32_t list, uint32_t number)
{
	const struct sw_policy *policy = engine->policy;
	if (number == 0)
		return false;
	if (list >= policy->list_count)
		return has_shelves(policy) && list != SW_NO_LIST && *shelf_of(engine, number) == list + 1;
	return link_of(engine, list, number)->before != 0 || ends_of(engine, list)->first == number;
}

/* ---- coming and going */

static void take_out(const struct sw_engine *engine, uint32_t list, uint32_t number)
{
	struct ends *ends = ends_of(engine, list);
	struct link *link = link_of(engine, list, number);
	*(link->before == 0 ? &ends->first : &link_of(engine, list, link->before)->after) = link->after;
	*(link->after == 0 ? &ends->last : &link_of(engine, list, link->after)->before) = link->before;
	*link = (struct link){0};
	ends->count--;
	if (list >= engine->policy->list_count)
		*shelf_of(engine, number) = 0;
}

/* Behind this one; 0: to the front. */
static void insert(const struct sw_engine *engine, uint32_t list, uint32_t number, uint32_t before)
{
	if (list >= engine->policy->list_count) {
		uint32_t *shelf = shelf_of(engine, number);
		if (*shelf != 0)
			take_out(engine, *shelf - 1, number);
		*shelf = list + 1;
	}
	struct ends *ends = ends_of(engine, list);
	struct link *link = link_of(engine, list, number);
	link->before = before;
	link->after = before == 0 ? ends->first : link_of(engine, list, before)->after;
	*(before == 0 ? &ends->first : &link_of(engine, list, before)->after) = number;
	*(link->after == 0 ? &ends->last : &link_of(engine, list, link->after)->before) = number;
	ends->count++;
}

/* The same, or 0 where it cannot come into this list or is in already. */
static uint32_t newcomer(const struct sw_view *view, uint32_t list, const struct sw_job *job)
{
	uint32_t number = list < count_lists(view->engine) ? number_of(view->engine, job) : 0;
	return number != 0 && job->state <= SW_JOB_RUNNING && !is_in(view->engine, list, number) ? number : 0;
}

void sw_list_append(struct sw_view *view, uint32_t list, const struct sw_job *job)
{
	uint32_t number = newcomer(view, list, job);
	if (number != 0)
		insert(view->engine, list, number, ends_of(view->engine, list)->last);
}

void sw_list_insert(struct sw_view *view, uint32_t list, const struct sw_job *job)
{
	uint32_t number = newcomer(view, list, job);
	if (number == 0)
		return;
	uint32_t before = ends_of(view->engine, list)->last;
	while (before > number)
		before = link_of(view->engine, list, before)->before;
	insert(view->engine, list, number, before);
}

void sw_list_put(struct sw_view *view, uint32_t list, const struct sw_job *job, const struct sw_job *behind)
{
	uint32_t number = newcomer(view, list, job), before = behind == NULL ? 0 : number_of(view->engine, behind);
	if (number != 0 && (behind == NULL || is_in(view->engine, list, before)))
		insert(view->engine, list, number, before);
}

void sw_list_remove(struct sw_view *view, uint32_t list, const struct sw_job *job)
{
	uint32_t number = number_of(view->engine, job);
	if (is_in(view->engine, list, number))
		take_out(view->engine, list, number);
}

void sw_lists_drop(struct sw_engine *engine, const struct sw_core_job *job)
{
	for (uint32_t list = 0; list < engine->policy->list_count; list++)
		sw_list_remove(&engine->view, list, &job->seen);
	if (has_shelves(engine->policy))
		sw_list_remove(&engine->view, sw_list_shelf(&engine->view, &job->seen), &job->seen);
}

/* ---- looking */

bool sw_list_has(const struct sw_view *view, uint32_t list, const struct sw_job *job)
{
	return is_in(view->engine, list, number_of(view->engine, job));
}

const struct sw_job *sw_list_next(const struct sw_view *view, uint32_t list, const struct sw_job *after)
{
	struct sw_engine *engine = view->engine;
	uint32_t number = after != NULL ? number_of(engine, after) : 0;
	if (after != NULL ? !is_in(engine, list, number) : list >= count_lists(engine))
		return NULL;
	uint32_t next = after != NULL ? link_of(engine, list, number)->after : ends_of(engine, list)->first;
	return next == 0 ? NULL : &engine->jobs.items[next - 1].seen;
}

uint32_t sw_list_length(const struct sw_view *view, uint32_t list)
{
	return list < count_lists(view->engine) ? ends_of(view->engine, list)->count : 0;
}

uint32_t sw_list_shelf(const struct sw_view *view, const struct sw_job *job)
{
	uint32_t number = has_shelves(view->engine->policy) ? number_of(view->engine, job) : 0;
	return number != 0 ? *shelf_of(view->engine, number) - 1 : SW_NO_LIST;
}

/* ---- whether all is well */

/* The way of one list. */
static bool leads_through(const struct sw_engine *engine, uint32_t list)
{
	const struct ends *ends = ends_of(engine, list);
	uint32_t before = 0, passed = 0;
	for (uint32_t number = ends->first; number != 0; number = link_of(engine, list, number)->after) {
		if (!sw_engine_knows(engine, number - 1) || engine->jobs.items[number - 1].seen.state > SW_JOB_RUNNING ||
		    !is_in(engine, list, number) || link_of(engine, list, number)->before != before || passed++ == engine->known.count)
			return false;
		before = number;
	}
	return ends->last == before && ends->count == passed;
}

/* So many jobs say that they are in this list, or on a shelf; the others have no links. */
static bool counts(const struct sw_engine *engine, uint32_t list, uint64_t expected)
{
	bool shelves = list >= engine->policy->list_count;
	uint64_t listed = 0;
	for (uint32_t id = sw_engine_next(engine, 0); id != SW_BITMAP_NONE; id = sw_engine_next(engine, id + 1)) {
		const struct link *link = link_of(engine, list, id + 1);
		if (shelves ? *shelf_of(engine, id + 1) != 0 : is_in(engine, list, id + 1))
			listed++;
		else if ((link->before | link->after) != 0)
			return false;
	}
	return listed == expected;
}

bool sw_lists_are_sound(const struct sw_engine *engine)
{
	uint64_t on_shelves = 0;
	for (uint32_t list = 0; list < count_lists(engine); list++) {
		if (!leads_through(engine, list))
			return false;
		if (list >= engine->policy->list_count)
			on_shelves += ends_of(engine, list)->count;
		else if (!counts(engine, list, ends_of(engine, list)->count))
			return false;
	}
	return !has_shelves(engine->policy) || counts(engine, engine->policy->list_count, on_shelves);
}
