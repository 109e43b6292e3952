/* What each user has in the queue: jobs that wait or run, and the bytes of their environments
 * and scripts. And jobs by state, where there are too many to count at one go.
 *
 * A submit adds to the figures; nothing takes away from them. When a user seems to be at a
 * bound, all jobs are counted anew, in slices, and the user is asked to come back meanwhile. So
 * the figures are never too low, and right whenever it matters, without a hook at each place
 * where a job may end.
 */
#include <string.h>

#include "base/now.h"
#include "base/number.h"
#include "server/batch.h"
#include "server/callers.h"
#include "server/state.h"
#include "server/waiting.h"

/* Of all users together: what the controller and its disk can bear. */
#define JOBS_MOST UINT64_C(4000000)
#define HELD_MOST ((uint64_t)16 << 30)
/* Jobs and bytes looked at in one slice. */
#define SLICE_JOBS 4096u
#define SLICE_BYTES ((uint64_t)8 << 20)
#define AGAIN_NS SW_NS_PER_S

/* The user's line; NULL: out of memory. */
static struct sw_user_jobs *find(struct sw_waiting *waiting, uint32_t uid)
{
	size_t low = 0, high = waiting->users.count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (waiting->users.items[middle].uid < uid)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < waiting->users.count && waiting->users.items[low].uid == uid)
		return &waiting->users.items[low];
	if (sw_vec_push(&waiting->users) == NULL)
		return NULL;
	struct sw_user_jobs *slot = &waiting->users.items[low];
	memmove(slot + 1, slot, (waiting->users.count - 1 - low) * sizeof *slot);
	*slot = (struct sw_user_jobs){.uid = uid};
	return slot;
}

/* ---- counting anew */

static void ask_for_count(struct sw_waiting *waiting)
{
	if (waiting->counting || (waiting->counted_ns != 0 && sw_now_boot_ns() - waiting->counted_ns < AGAIN_NS))
		return;
	waiting->counting = true;
	waiting->begun = false;
	evtimer_add(waiting->step, &(struct timeval){0});
}

static void begin_count(struct sw_server *server)
{
	struct sw_waiting *waiting = &server->waiting;
	waiting->begun = true;
	waiting->next = sw_brain_next_job(server->brain, 1);
	waiting->last = sw_brain_job_count(server->brain);
	waiting->request = NULL;
	for (size_t i = 0; i < waiting->users.count; i++)
		waiting->users.items[i].next_jobs = waiting->users.items[i].next_bytes = 0;
	memset(waiting->next_states, 0, sizeof waiting->next_states);
}

/* Users without jobs are forgotten. */
static void end_count(struct sw_waiting *waiting)
{
	size_t kept = 0;
	waiting->counting = false;
	waiting->counted_ns = sw_now_boot_ns();
	waiting->jobs = waiting->bytes = 0;
	memcpy(waiting->states, waiting->next_states, sizeof waiting->states);
	for (size_t i = 0; i < waiting->users.count; i++) {
		struct sw_user_jobs user = waiting->users.items[i];
		user.jobs = user.next_jobs;
		user.bytes = user.next_bytes;
		waiting->jobs += user.jobs;
		waiting->bytes += user.bytes;
		if (user.jobs > 0)
			waiting->users.items[kept++] = user;
	}
	waiting->users.count = kept;
}

static void count_job(struct sw_server *server, uint64_t id, uint64_t *bytes)
{
	struct sw_waiting *waiting = &server->waiting;
	struct sw_job_view view;
	if (!sw_brain_job(server->brain, sw_server_now(server), id, &view))
		return;
	unsigned state = sw_state_find(view.state);
	if (state < SW_STATES)
		waiting->next_states[state]++;
	if (view.ended_at != SW_TIME_NEVER)
		return;
	struct sw_user_jobs *user = find(waiting, view.uid);
	if (user == NULL)
		return;
	user->next_jobs++;
	/* The members of an array hold one text together. */
	if (view.request == waiting->request)
		return;
	waiting->request = view.request;
	user->next_bytes += view.request_size;
	*bytes += view.request_size;
}

static void on_step(evutil_socket_t fd, short what, void *user)
{
	(void)fd;
	(void)what;
	struct sw_server *server = user;
	SW_HOLDS_LOOP(server);
	struct sw_waiting *waiting = &server->waiting;
	uint64_t bytes = 0;
	/* Jobs that were admitted and are not there yet would be missed. */
	if (!waiting->begun && !sw_batch_rests(server)) {
		evtimer_add(waiting->step, &(struct timeval){.tv_usec = 1000});
		return;
	}
	if (!waiting->begun)
		begin_count(server);
	for (uint32_t i = 0; i < SLICE_JOBS && bytes < SLICE_BYTES && waiting->next > 0; i++) {
		count_job(server, waiting->next, &bytes);
		waiting->next = sw_brain_next_job(server->brain, waiting->next + 1);
		if (waiting->next > waiting->last)
			waiting->next = 0;
	}
	if (waiting->next == 0)
		end_count(waiting);
	else
		evtimer_add(waiting->step, &(struct timeval){0});
}

/* ---- asking */

static int check(struct sw_server *server, const struct sw_user *user, const struct sw_user_jobs *has, uint64_t jobs, uint64_t bytes,
		 struct sw_err *err)
{
	const struct sw_waiting *waiting = &server->waiting;
	const uint64_t *bounds = server->callers.bounds;
	/* One request that is larger than the bound may come alone. */
	if (!user->is_operator && has->jobs > 0 && has->jobs + jobs > bounds[SW_USER_BOUND_JOBS])
		return sw_user_bound_refuse(server, SW_USER_BOUND_JOBS, true, err);
	if (has->bytes > 0 && has->bytes + bytes > bounds[SW_USER_BOUND_HELD])
		return sw_user_bound_refuse(server, SW_USER_BOUND_HELD, true, err);
	if (waiting->jobs + jobs > JOBS_MOST)
		return sw_user_bound_refuse(server, SW_USER_BOUND_JOBS, false, err);
	if (waiting->bytes + bytes > HELD_MOST)
		return sw_user_bound_refuse(server, SW_USER_BOUND_HELD, false, err);
	return 0;
}

int sw_waiting_admit(struct sw_server *server, const struct sw_user *user, uint64_t jobs, uint64_t bytes, struct sw_err *err)
{
	struct sw_waiting *waiting = &server->waiting;
	struct sw_user_jobs *has = find(waiting, user->uid);
	if (has == NULL) {
		sw_err_set(err, SW_ENOMEM, "out of memory");
		return 503;
	}
	int status = check(server, user, has, jobs, bytes, err);
	if (status != 0) {
		ask_for_count(waiting);
		return status;
	}
	has->jobs += jobs;
	has->bytes += bytes;
	/* A count that goes on has not seen these. */
	has->next_jobs += jobs;
	has->next_bytes += bytes;
	waiting->jobs += jobs;
	waiting->bytes += bytes;
	return 0;
}

void sw_waiting_states(struct sw_server *server, uint64_t counts[SW_STATES])
{
	memcpy(counts, server->waiting.states, sizeof server->waiting.states);
	ask_for_count(&server->waiting);
}

int sw_waiting_start(struct sw_server *server, struct sw_err *err)
{
	server->waiting.step = evtimer_new(server->base, on_step, server);
	if (server->waiting.step == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	ask_for_count(&server->waiting);
	return 0;
}

void sw_waiting_stop(struct sw_server *server)
{
	if (server->waiting.step != NULL)
		event_free(server->waiting.step);
	sw_vec_free(&server->waiting.users);
}
