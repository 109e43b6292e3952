/* Lists of jobs for policies, whose links the core keeps: behind the policy's own bytes, so that
 * they are saved, loaded and zeroed with them.
 *
 * Invariant: a job that has ended is in no list.
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
