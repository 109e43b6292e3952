/* Lists of jobs for policies, whose links the core keeps: behind the policy's own bytes, so that
 * they are saved, loaded and zeroed with them.
 *
 * Invariants (sw_lists_are_sound() checks them, also of what was loaded):
 *  1. a job that has ended is in no list;
 *  2. from the first of a list its links lead to the last and back.
 */
#include "core/state.h"

/* Ids plus one; 0: none. */
struct ends {
	uint32_t first, last;
};

struct link {
	uint32_t before, after;
};

static struct ends *ends_of(const struct sw_view *view, uint32_t list)
{
	char *own = view->engine->policy_state;
	return (struct ends *)(void *)(own + sw_list_aligned(view->engine->policy->state_size)) + list;
}

static struct link *link_of(const struct sw_view *view, uint32_t list, uint32_t number)
{
	char *own = view->engine->job_states + (size_t)(number - 1) * view->engine->job_states_each;
	return (struct link *)(void *)(own + sw_list_aligned(view->engine->policy->job_state_size)) + list;
}

/* The number of a job that the core knows and may be in this list; 0: it is neither. */
static uint32_t number_of(const struct sw_view *view, uint32_t list, const struct sw_job *job)
{
	bool known = list < view->engine->policy->list_count && sw_engine_own(view->engine, job) != NULL;
	return known ? job->id.v + 1 : 0;
}

static bool is_in(const struct sw_view *view, uint32_t list, uint32_t number)
{
	return number != 0 && (link_of(view, list, number)->before != 0 || ends_of(view, list)->first == number);
}

bool sw_list_has(const struct sw_view *view, uint32_t list, const struct sw_job *job)
{
	return is_in(view, list, number_of(view, list, job));
}

/* Behind this one; 0: to the front. */
static void insert(const struct sw_view *view, uint32_t list, uint32_t number, uint32_t before)
{
	struct ends *ends = ends_of(view, list);
	struct link *link = link_of(view, list, number);
	link->before = before;
	link->after = before == 0 ? ends->first : link_of(view, list, before)->after;
	*(before == 0 ? &ends->first : &link_of(view, list, before)->after) = number;
	*(link->after == 0 ? &ends->last : &link_of(view, list, link->after)->before) = number;
}

void sw_list_append(struct sw_view *view, uint32_t list, const struct sw_job *job)
{
	uint32_t number = number_of(view, list, job);
	if (number != 0 && job->state <= SW_JOB_RUNNING && !is_in(view, list, number))
		insert(view, list, number, ends_of(view, list)->last);
}

void sw_list_insert(struct sw_view *view, uint32_t list, const struct sw_job *job)
{
	uint32_t number = number_of(view, list, job);
	if (number == 0 || job->state > SW_JOB_RUNNING || is_in(view, list, number))
		return;
	uint32_t before = ends_of(view, list)->last;
	while (before > number)
		before = link_of(view, list, before)->before;
	insert(view, list, number, before);
}

void sw_list_remove(struct sw_view *view, uint32_t list, const struct sw_job *job)
{
	uint32_t number = number_of(view, list, job);
	if (!is_in(view, list, number))
		return;
	struct ends *ends = ends_of(view, list);
	struct link *link = link_of(view, list, number);
	*(link->before == 0 ? &ends->first : &link_of(view, list, link->before)->after) = link->after;
	*(link->after == 0 ? &ends->last : &link_of(view, list, link->after)->before) = link->before;
	*link = (struct link){0};
}

const struct sw_job *sw_list_next(const struct sw_view *view, uint32_t list, const struct sw_job *after)
{
	if (list >= view->engine->policy->list_count || (after != NULL && !sw_list_has(view, list, after)))
		return NULL;
	uint32_t next = after == NULL ? ends_of(view, list)->first : link_of(view, list, after->id.v + 1)->after;
	return next == 0 ? NULL : sw_view_job(view, (struct sw_job_id){next - 1});
}

void sw_lists_drop(struct sw_engine *engine, const struct sw_core_job *job)
{
	for (uint32_t list = 0; list < engine->policy->list_count; list++)
		sw_list_remove(&engine->view, list, &job->seen);
}

static bool is_sound(const struct sw_engine *engine, uint32_t list)
{
	const struct sw_view *view = &engine->view;
	const struct ends *ends = ends_of(view, list);
	uint32_t before = 0, listed = 0;
	for (uint32_t number = ends->first; number != 0; number = link_of(view, list, number)->after) {
		if (!sw_engine_knows(engine, number - 1) || engine->jobs.items[number - 1].seen.state > SW_JOB_RUNNING ||
		    link_of(view, list, number)->before != before || listed++ == engine->known.count)
			return false;
		before = number;
	}
	/* The others have no links. */
	for (uint32_t id = sw_engine_next(engine, 0); id != SW_BITMAP_NONE; id = sw_engine_next(engine, id + 1))
		if (is_in(view, list, id + 1))
			listed--;
		else if (link_of(view, list, id + 1)->after != 0)
			return false;
	return ends->last == before && listed == 0;
}

bool sw_lists_are_sound(const struct sw_engine *engine)
{
	for (uint32_t list = 0; list < engine->policy->list_count; list++)
		if (!is_sound(engine, list))
			return false;
	return true;
}
