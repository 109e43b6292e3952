/* Jobs that have ended leave: the state follows the jobs that live, not the past.
 *
 * A job may leave when nothing refers to it. No job waits for it, no part of it may still be alive
 * on a node, and it is not of the newest submit. Whether its time is over is for the driver's
 * configuration to say, when a record is made. What the record says is done, as long as nothing
 * refers to the job by then. What people may ask about it later the driver keeps, in the same
 * commit as the record.
 *
 * Invariants:
 *  1. a job that lives is never forgotten;
 *  2. every job that has ended and is known is listed once. The list is in the order of the ends
 *     but for those that were needed when it was their turn.
 */
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "brain/asked.h"
#include "brain/forget.h"
#include "brain/record.h"
#include "brain/state.h"

#define AT_ONCE 256u	    /* jobs of one record */
#define LOOKED_AT_MAX 1024u /* jobs looked at for one record: some may still be needed */
#define BLOCK 1024u	    /* so many that follow each other give their memory back together */
#define LATER_NS (10 * SW_NS_PER_S)

/* ---- the list */

int sw_brain_note_end(struct sw_brain *brain, uint32_t job)
{
	uint32_t *slot = sw_vec_push(&brain->past.jobs);
	if (slot == NULL)
		return SW_ENOMEM;
	*slot = job;
	brain->past.known++;
	return 0;
}

struct ended {
	sw_ns at;
	uint32_t job;
};

static int compare(const void *a, const void *b)
{
	const struct ended *x = a, *y = b;
	return x->at != y->at ? (x->at > y->at) - (x->at < y->at) : (x->job > y->job) - (x->job < y->job);
}

int sw_brain_list_past(struct sw_brain *brain)
{
	SW_CLEANUP(sw_freep) struct ended *all = calloc(brain->known.count + 1, sizeof *all);
	size_t count = 0;
	if (all == NULL || sw_vec_reserve(&brain->past.jobs, brain->known.count) < 0)
		return SW_ENOMEM;
	for (uint32_t job = sw_brain_first(brain); job != 0; job = sw_brain_after(brain, job)) {
		const struct sw_live *live = sw_brain_live(brain, job);
		if (live->is_over)
			all[count++] = (struct ended){live->ended_at, job};
	}
	qsort(all, count, sizeof *all, compare);
	brain->past.jobs.count = brain->past.start = 0;
	for (size_t i = 0; i < count; i++)
		*sw_vec_push(&brain->past.jobs) = all[i].job;
	brain->past.known = (uint32_t)count;
	return 0;
}

static uint32_t first_listed(const struct sw_brain *brain)
{
	return brain->past.jobs.items[brain->past.start];
}

/* The first goes out of the list, or behind the last: it is needed still. */
static void pass(struct sw_brain *brain, bool again)
{
	uint32_t job = brain->past.jobs.items[brain->past.start++];
	if (brain->past.start * 2 > brain->past.jobs.count) {
		brain->past.jobs.count -= brain->past.start;
		memmove(brain->past.jobs.items, brain->past.jobs.items + brain->past.start, brain->past.jobs.count * sizeof(uint32_t));
		brain->past.start = 0;
	}
	if (again)
		*sw_vec_push(&brain->past.jobs) = job; /* there is room where it was before */
}

/* Those that have left go from the head of the list; behind it they stay for a while. */
static void trim(struct sw_brain *brain)
{
	while (brain->past.start < brain->past.jobs.count && sw_brain_live(brain, first_listed(brain)) == NULL)
		pass(brain, false);
}

/* ---- whose time is over */

/* The next record may go on with the array of the newest job, which has its pre-run before it. By
 * the state alone: a replay must come to the same. */
static bool is_newest(const struct sw_brain *brain, uint32_t job)
{
	const struct sw_live *last = sw_brain_live(brain, brain->jobs.count);
	uint64_t first = last == NULL ? UINT64_MAX : last->is_member ? last->array_first : brain->jobs.count;
	return job >= first || (job + UINT64_C(1) == first && sw_brain_live(brain, job)->is_prerun);
}

static bool is_needed(const struct sw_brain *brain, uint32_t job)
{
	const struct sw_live *live = sw_brain_live(brain, job);
	const struct sw_job *seen = sw_engine_job(brain->engine, (struct sw_job_id){job - 1});
	return !live->is_over || live->ended_at == SW_TIME_NEVER || live->run_count > 0 || live->ghosts > 0 || live->is_queued ||
	       live->awaited > 0 || live->waiter_first != 0 || live->depend_count > 0 || sw_heap_has(&brain->retries, job - 1) ||
	       seen->fresh != 0 || is_newest(brain, job);
}

/* Some more than are kept, so that a record is worth its while. */
static uint32_t most(const struct sw_brain *brain)
{
	uint32_t keep = brain->config.keep_jobs, more = keep / 16 < AT_ONCE ? keep / 16 : AT_ONCE;
	return keep > UINT32_MAX - more ? UINT32_MAX : keep + more;
}

static sw_ns ends_its_time(const struct sw_brain *brain)
{
	sw_ns ended_at = sw_brain_live(brain, first_listed(brain))->ended_at, keep = brain->config.keep_for_ns;
	return keep <= 0 || ended_at >= SW_TIME_NEVER - keep ? SW_TIME_NEVER : ended_at + keep;
}

sw_ns sw_brain_forgets_at(const struct sw_brain *brain)
{
	if (!brain->config.forgets || brain->past.known == 0)
		return SW_TIME_NEVER;
	sw_ns due = brain->past.known > most(brain) ? brain->now : ends_its_time(brain);
	return due > brain->past.look_at ? due : brain->past.look_at;
}

int sw_brain_propose_forget(struct sw_brain *brain, sw_ns now, sw_records *records, struct sw_err *err)
{
	if (sw_brain_forgets_at(brain) > now)
		return 0;
	struct sw_json json = {0};
	uint32_t count = 0, known = brain->past.known, excess = known > brain->config.keep_jobs ? known - brain->config.keep_jobs : 0;
	sw_json_object(&json);
	sw_json_key(&json, "jobs");
	sw_json_array(&json);
	for (uint32_t left = known < LOOKED_AT_MAX ? known : LOOKED_AT_MAX; left > 0 && count<AT_ONCE; left--, excess -= excess> 0) {
		if (excess == 0 && ends_its_time(brain) > now)
			break;
		uint32_t job = first_listed(brain);
		bool needed = is_needed(brain, job);
		/* Those of the record stay listed until it is applied, which may never be. */
		pass(brain, true);
		trim(brain);
		if (needed)
			continue;
		sw_json_u64(&json, job);
		count++;
	}
	sw_json_end_array(&json);
	sw_json_end_object(&json);
	brain->past.look_at = count == 0 ? now + LATER_NS : 0;
	size_t size = json.size;
	char *text = sw_json_take(&json, NULL);
	if (text != NULL && count == 0) {
		free(text);
		return 0;
	}
	return sw_record_push_text(records, SW_RECORD_FORGET, text, size, err);
}

/* ---- applying */

static bool is_empty(const struct sw_brain *brain, uint32_t block)
{
	uint64_t end = ((uint64_t)block + 1) * BLOCK;
	return end <= brain->jobs.count && sw_brain_next_known(brain, block * BLOCK) >= end;
}

/* A page may belong to two blocks: it goes with the second of them. */
static void give_back(struct sw_brain *brain, uint32_t block)
{
	if (!is_empty(brain, block))
		return;
	uint32_t from = (block > 0 && is_empty(brain, block - 1) ? block - 1 : block) * BLOCK;
	uint32_t to = (is_empty(brain, block + 1) ? block + 2 : block + 1) * BLOCK;
	sw_table_clear(&brain->jobs, from, to);
	sw_heap_forget(&brain->retries, from, to);
}

static void forget(struct sw_brain *brain, uint32_t job)
{
	struct sw_length length;
	if (is_needed(brain, job))
		return;
	bool says = sw_brain_length(brain, job, &length);
	if (!sw_engine_forget(brain->engine, (struct sw_job_id){job - 1}))
		return;
	if (says)
		(void)sw_brain_recall_length(brain, &length); /* without memory for it, a forecast knows a little less */
	sw_brain_drop_live(sw_brain_live(brain, job));
	sw_bitmap_remove(&brain->known, job - 1);
	brain->past.known--;
	give_back(brain, (job - 1) / BLOCK);
}

static int each(const struct sw_brain *brain, json_t *body, int (*fn)(void *user, uint64_t job), void *user, struct sw_err *err)
{
	json_t *jobs = json_object_get(body, "jobs"), *number;
	size_t i;
	if (!json_is_array(jobs))
		return sw_err_set(err, SW_EINPUT, "a record of jobs that leave names none");
	json_array_foreach(jobs, i, number)
	{
		json_int_t job = json_integer_value(number);
		int r = job > 0 && sw_brain_live(brain, (uint64_t)job) != NULL ? fn(user, (uint64_t)job) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

static int forget_one(void *user, uint64_t job)
{
	forget(user, (uint32_t)job);
	return 0;
}

int sw_brain_apply_forget(struct sw_brain *brain, json_t *body, struct sw_err *err)
{
	int r = each(brain, body, forget_one, brain, err);
	trim(brain);
	return r;
}

int sw_brain_each_forgotten(const struct sw_brain *brain, const char *body, size_t size, int (*fn)(void *user, uint64_t job), void *user,
			    struct sw_err *err)
{
	json_t *json = sw_record_parse(body, size, err);
	if (json == NULL)
		return SW_EBUG;
	int r = each(brain, json, fn, user, err);
	json_decref(json);
	return r;
}

bool sw_brain_has_left(const struct sw_brain *brain, int64_t job)
{
	return job >= 1 && (uint64_t)job <= brain->jobs.count && sw_brain_live(brain, (uint64_t)job) == NULL;
}

int sw_brain_skip_numbers(struct sw_brain *brain, uint64_t above, struct sw_err *err)
{
	if (above <= brain->jobs.count)
		return 0;
	int r = above < UINT32_MAX ? sw_engine_skip(brain->engine, (uint32_t)above) : SW_ELIMIT;
	if (r == 0 && sw_table_reserve(&brain->jobs, above) < 0)
		r = SW_ENOMEM;
	if (r < 0)
		return sw_err_set(err, r, r == SW_ENOMEM ? "out of memory" : "no job can have a number above %llu",
				  (unsigned long long)above);
	brain->jobs.count = above;
	/* What comes next goes on with nothing that was there. */
	sw_job_request_free(brain->model);
	sw_asked_drop(brain->model_of);
	brain->model = NULL;
	brain->model_of = NULL;
	brain->model_first = 0;
	return 0;
}
