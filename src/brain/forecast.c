#include "brain/forecast.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "brain/arrays.h"
#include "brain/asked.h"
#include "brain/shut.h"
#include "brain/state.h"
#include "solve/solve.h"

#define HORIZON_NS (INT64_C(366) * 86400 * SW_NS_PER_S)
/* Decisions that nothing but time brings, and that start none of the jobs that matter. A policy
 * that takes turns among jobs that never end would go on for ever. */
#define IDLE_STEPS_MAX 1000u
#define ASK_EVERY 64u /* steps */
#define NOT_LISTED UINT32_MAX

/* A job that lives. */
struct life {
	uint32_t id;		 /* as the engine counts */
	sw_ns whole_ns, left_ns; /* of a run from its start, and of this one, as of `since` */
	sw_ns since;
	uint8_t whole_basis, basis;
	uint8_t why;
	bool runs, paused;
	bool matters; /* its start is looked for */
	bool waits_for_slot;
	uint32_t gpus;		/* held while it runs */
	uint32_t blocked;	/* what it waits for and has not come: ends of jobs, a slot */
	uint32_t next_in_array; /* the next member that waits for a slot, by its place in the list; NOT_LISTED */
	sw_ns starts_at;
	uint32_t ended[SW_BASES];
};

/* When the first ends, that is one thing less that the second waits for. */
struct edge {
	uint32_t awaited, waits; /* places in the list of lives */
};
/* An array of which only some members may be under way. */
struct slots {
	uint32_t first; /* member, as people count */
	uint32_t next;	/* that gets a slot when one is free, by its place; NOT_LISTED */
	uint32_t last;	/* that waits for one */
};

struct run {
	struct sw_brain *brain;
	const struct sw_forecast_config *config;
	struct sw_engine *engine; /* the copy */
	struct sw_lengths lengths;
	SW_VEC(struct life) lives; /* by id */
	SW_VEC(struct edge) edges; /* by the job that is waited for */
	SW_VEC(struct slots) arrays;
	SW_VEC(struct sw_event) events;		/* for the next step */
	uint64_t asked;				/* the last question of the policy that was solved */
	struct sw_pack found[SW_QUESTIONS_MAX]; /* answers to those of the last step, and as events */
	struct sw_reply replies[SW_QUESTIONS_MAX];
	bool solved;		     /* in the last step */
	struct sw_heap ends, pauses; /* of lives, by their places: when they end, and when they may compete */
	uint32_t ended[SW_BASES];
	uint32_t awaited; /* jobs that matter and have not started */
	uint32_t steps;
	bool frees;   /* runs that are suspended are taken to leave their GPUs' memory to others */
	bool stopped; /* for want of steps or time */
	sw_ns now, wake_at;
};

static int no_memory(struct sw_err *err)
{
	return sw_err_set(err, SW_ENOMEM, "out of memory");
}

static int push(struct run *run, struct sw_event event)
{
	struct sw_event *slot = sw_vec_push(&run->events);
	if (slot == NULL)
		return SW_ENOMEM;
	*slot = event;
	return 0;
}

/* The place of the job; NOT_LISTED: it has ended. */
static uint32_t find(const struct run *run, uint32_t id)
{
	size_t low = 0, high = run->lives.count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (run->lives.items[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < run->lives.count && run->lives.items[low].id == id ? (uint32_t)low : NOT_LISTED;
}

/* ---- what the engine decides */

/* How long a job takes for what is left. A time limit is time as it passes. Other lengths are of
 * the GPUs that were asked for, and an elastic job may have more or less. */
static sw_ns takes(const struct run *run, const struct life *life, sw_ns left_ns, bool onto_clock)
{
	__extension__ typedef __int128 wide;
	uint32_t asked = sw_engine_job(run->engine, (struct sw_job_id){life->id})->gpus;
	if (left_ns >= HORIZON_NS || life->basis == SW_BASIS_LIMIT || life->gpus == 0 || life->gpus == asked)
		return left_ns;
	wide scaled = onto_clock ? (wide)left_ns * asked / life->gpus : (wide)left_ns * life->gpus / asked;
	return scaled > HORIZON_NS ? HORIZON_NS : (sw_ns)scaled;
}

static void plan_end(struct run *run, uint32_t place)
{
	const struct life *life = &run->lives.items[place];
	sw_ns left_ns = takes(run, life, life->left_ns, true);
	if (left_ns < HORIZON_NS && !life->paused)
		sw_heap_set(&run->ends, place, run->now + left_ns);
	else
		sw_heap_remove(&run->ends, place);
}

/* What it did until now is done. */
static void settle(struct run *run, struct life *life)
{
	if (life->left_ns < HORIZON_NS && !life->paused) {
		sw_ns done_ns = takes(run, life, run->now - life->since, false);
		life->left_ns = done_ns < life->left_ns ? life->left_ns - done_ns : 0;
	}
	life->since = run->now;
}

static void note_start(struct run *run, struct life *life)
{
	if (life->starts_at != SW_TIME_NEVER)
		return;
	life->starts_at = run->now;
	life->why = SW_FORECAST_STARTS;
	memcpy(life->ended, run->ended, sizeof life->ended);
	run->awaited -= life->matters;
}

static int begin(struct run *run, uint32_t place, const struct sw_command *command)
{
	struct life *life = &run->lives.items[place];
	const struct sw_job *job = sw_engine_job(run->engine, (struct sw_job_id){life->id});
	life->runs = true;
	life->since = run->now;
	life->gpus = job->gpus_held;
	life->paused = job->paused;
	plan_end(run, place);
	note_start(run, life);
	/* As its agent would say of it: that it has begun, and how it could be suspended. */
	int r = push(run, (struct sw_event){.kind = SW_EV_BEGUN, .job = {life->id}, .epoch = command->epoch});
	if (r < 0 || !run->brain->jobs.items[life->id].parks)
		return r;
	return push(run, (struct sw_event){.kind = SW_EV_KEEPS,
					   .job = {life->id},
					   .epoch = command->epoch,
					   .gpus = run->frees || job->stop_rule == SW_STOP_SUSPEND,
					   .frees = run->frees});
}

static void stop(struct run *run, uint32_t place, const struct sw_command *command)
{
	struct life *life = &run->lives.items[place];
	settle(run, life);
	life->runs = false;
	sw_heap_remove(&run->ends, place);
	/* Its run is lost, unless it stands there; also when it is moved: one that goes on
	 * elsewhere is not stopped. */
	if (!command->stands) {
		life->left_ns = life->whole_ns;
		life->basis = life->whole_basis;
	}
}

/* A run that is sent to other GPUs is there at once. */
static int arrive(struct run *run, uint32_t id)
{
	const struct sw_job_id job = {id};
	if (sw_engine_leaves(run->engine, job, NULL) == 0)
		return 0;
	return push(run, (struct sw_event){.kind = SW_EV_MOVED, .job = job, .epoch = sw_engine_epoch(run->engine, job)});
}

static int obey_one(struct run *run, const struct sw_command *command)
{
	uint32_t place = find(run, command->job);
	struct life *life = place != NOT_LISTED ? &run->lives.items[place] : NULL;
	if (life == NULL)
		return 0;
	switch (command->kind) {
	case SW_CMD_START:
		return begin(run, place, command);
	case SW_CMD_STOP:
		if (life->runs)
			stop(run, place, command);
		return 0;
	case SW_CMD_MOVE:
	case SW_CMD_LIMIT:
		if (!life->runs)
			return 0;
		if (command->kind == SW_CMD_MOVE && arrive(run, life->id) < 0)
			return SW_ENOMEM;
		settle(run, life);
		life->gpus = sw_engine_job(run->engine, (struct sw_job_id){life->id})->gpus_held;
		life->paused = sw_engine_job(run->engine, (struct sw_job_id){life->id})->paused;
		plan_end(run, place);
		return 0;
	default: /* a job that is ended for good */
		life->runs = false;
		sw_heap_remove(&run->ends, place);
		return 0;
	}
}

static bool goes_on(struct run *run)
{
	const struct sw_forecast_config *config = run->config;
	uint32_t most = config->steps_max > 0 ? config->steps_max : SW_FORECAST_STEPS_MAX;
	if (run->steps >= most ||
	    ((run->steps % ASK_EVERY == 0 || run->solved) && config->goes_on != NULL && !config->goes_on(config->user)))
		run->stopped = true;
	run->steps++;
	return !run->stopped;
}

/* A question of the policy is answered at once: how long its solver takes does not matter beside
 * jobs. */
static int solve(struct run *run)
{
	struct sw_engine_question asked;
	size_t q = 0;
	for (run->solved = false; sw_engine_next_question(run->engine, run->asked, &asked); q++) {
		struct sw_solve_outcome outcome;
		struct sw_pack *found = &run->found[q];
		sw_pack_release(found);
		*found = (struct sw_pack){0};
		if (sw_solve(&asked.asked, found, &outcome) < 0)
			return SW_ENOMEM;
		run->asked = asked.number;
		run->solved = true;
		run->replies[q] = (struct sw_reply){asked.number, asked.print, outcome.status, found->bytes, found->size};
		if (push(run, (struct sw_event){.kind = SW_EV_ANSWER, .reply = &run->replies[q]}) < 0)
			return SW_ENOMEM;
	}
	return 0;
}

/* Hands over the events that were gathered, and those that follow from what is decided, until there
 * are none. */
static int step(struct run *run, struct sw_err *err)
{
	do {
		struct sw_step outcome;
		if (!goes_on(run))
			return 0;
		int r = sw_engine_step(run->engine, run->now, run->events.items, run->events.count, &outcome, err);
		run->events.count = 0;
		if (r < 0)
			return r;
		run->wake_at = outcome.wake_at;
		for (size_t c = 0; c < outcome.command_count; c++)
			if (obey_one(run, &outcome.commands[c]) < 0)
				return no_memory(err);
		if (solve(run) < 0)
			return no_memory(err);
	} while (run->events.count > 0);
	return 0;
}

/* ---- jobs that wait for others */

/* It competes from now on, or from the end of its pause on. 0 or SW_ENOMEM. */
static int let_in(struct run *run, uint32_t place)
{
	const struct life *life = &run->lives.items[place];
	const struct sw_heap *retries = &run->brain->retries;
	if (life->blocked > 0 || life->why != SW_FORECAST_STARTS ||
	    sw_engine_job(run->engine, (struct sw_job_id){life->id})->state != SW_JOB_HELD)
		return 0;
	if (sw_heap_has(retries, life->id) && sw_heap_key(retries, life->id) > run->now) {
		sw_heap_set(&run->pauses, place, sw_heap_key(retries, life->id));
		return 0;
	}
	return push(run, (struct sw_event){.kind = SW_EV_RELEASE, .job = {life->id}});
}

/* The array whose first member this is; NULL: all of its members may be under way. */
static struct slots *find_array(struct run *run, uint32_t first)
{
	size_t low = 0, high = run->arrays.count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (run->arrays.items[middle].first < first)
			low = middle + 1;
		else
			high = middle;
	}
	return low < run->arrays.count && run->arrays.items[low].first == first ? &run->arrays.items[low] : NULL;
}

static int free_slot(struct run *run, uint32_t ended)
{
	const struct sw_live *live = &run->brain->jobs.items[run->lives.items[ended].id];
	struct slots *array = live->is_member && !run->lives.items[ended].waits_for_slot ? find_array(run, live->array_first) : NULL;
	if (array == NULL || array->next == NOT_LISTED)
		return 0;
	uint32_t place = array->next;
	struct life *life = &run->lives.items[place];
	array->next = life->next_in_array;
	life->waits_for_slot = false;
	life->blocked--;
	return let_in(run, place);
}

static int unblock(struct run *run, uint32_t ended)
{
	size_t low = 0, high = run->edges.count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (run->edges.items[middle].awaited < ended)
			low = middle + 1;
		else
			high = middle;
	}
	int r = 0;
	for (; r == 0 && low < run->edges.count && run->edges.items[low].awaited == ended; low++) {
		run->lives.items[run->edges.items[low].waits].blocked--;
		r = let_in(run, run->edges.items[low].waits);
	}
	return r < 0 ? r : free_slot(run, ended);
}

/* ---- the list of lives */

static bool is_over(const struct run *run, uint64_t job)
{
	const struct sw_live *live = sw_brain_live(run->brain, job);
	return live == NULL || live->is_over;
}

static enum sw_forecast_why why_held(const struct run *run, const struct sw_live *live)
{
	if (live->user_held)
		return SW_FORECAST_HELD;
	if (live->stranded)
		return SW_FORECAST_STRANDED;
	for (uint32_t d = live->depend_at; d < live->depend_count; d++)
		if (live->depends[d].kind == SW_AFTER_NOT_OK && !is_over(run, live->depends[d].job))
			return SW_FORECAST_IF_FAILED;
	return SW_FORECAST_STARTS;
}

/* What its owner said of its length; jobs that share what they asked for are looked at one after
 * the other. */
struct said {
	const struct sw_asked *asked;
	sw_ns expected_ns, limit_ns;
};

static int read_said(struct said *said, const struct sw_live *live, struct sw_err *err)
{
	SW_CLEANUP(sw_job_request_freep) struct sw_job_request *request = NULL;
	if (said->asked == live->asked)
		return 0;
	int r = sw_asked_decode(live, &request, err);
	if (r == 0)
		*said = (struct said){live->asked, request->expected_ns, request->time_limit_ns};
	return r;
}

/* How long the run took until now that goes on, or would be gone on with. */
static sw_ns ran_for(const struct run *run, const struct sw_live *live, const struct sw_job *job)
{
	bool lives = job->state == SW_JOB_RUNNING || sw_brain_is_suspended(run->brain, live);
	sw_ns stretch = job->state == SW_JOB_RUNNING && !job->paused ? run->now - job->since : 0;
	if (!lives || run->config->now < job->since)
		return 0;
	/* When a later run began is not known: it is taken to have begun when it went on last. */
	return live->epoch <= 1 ? sw_engine_clock(run->engine, job->id)->ran_ns + stretch : stretch;
}

static void measure(struct run *run, struct life *life, const struct sw_live *live, const struct sw_job *job, const struct said *said)
{
	struct sw_length_question question = {
		.kind = sw_length_kind(live->uid, live->name), .expected_ns = said->expected_ns, .limit_ns = said->limit_ns};
	enum sw_basis basis = SW_BASIS_ALL;
	life->whole_ns = sw_lengths_left(&run->lengths, &question, &basis);
	life->whole_basis = (uint8_t)basis;
	question.ran_ns = ran_for(run, live, job);
	life->left_ns = sw_lengths_left(&run->lengths, &question, &basis);
	life->basis = (uint8_t)basis;
}

static bool is_asked_for(const struct run *run, const struct sw_live *live, uint64_t job)
{
	const struct sw_forecast_config *config = run->config;
	return config->last == 0 || (job >= config->first && job <= config->last && !live->is_prerun);
}

static int add_life(struct run *run, uint32_t id, struct said *said, struct sw_err *err)
{
	const struct sw_live *live = &run->brain->jobs.items[id];
	const struct sw_job *job = sw_engine_job(run->engine, (struct sw_job_id){id});
	int r = read_said(said, live, err);
	struct life *life = r == 0 ? sw_vec_push(&run->lives) : NULL;
	if (life == NULL)
		return r < 0 ? r : no_memory(err);
	*life = (struct life){
		.id = id,
		.since = run->now,
		.why = job->state == SW_JOB_HELD ? (uint8_t)why_held(run, live) : SW_FORECAST_STARTS,
		.runs = job->state == SW_JOB_RUNNING,
		.paused = job->paused,
		.gpus = job->gpus_held,
		.next_in_array = NOT_LISTED,
		.starts_at = job->state == SW_JOB_RUNNING ? run->now : SW_TIME_NEVER,
	};
	life->matters = !life->runs && life->why == SW_FORECAST_STARTS && is_asked_for(run, live, id + UINT64_C(1));
	run->awaited += life->matters;
	measure(run, life, live, job, said);
	return 0;
}

static int add_lives(struct run *run, struct sw_err *err)
{
	struct said said = {0};
	int r = 0;
	for (uint32_t id = sw_brain_next_known(run->brain, 0); r == 0 && id != SW_BITMAP_NONE; id = sw_brain_next_known(run->brain, id + 1))
		if (sw_engine_job(run->engine, (struct sw_job_id){id})->state <= SW_JOB_RUNNING)
			r = run->lives.count < SW_FORECAST_JOBS_MAX
				    ? add_life(run, id, &said, err)
				    : sw_err_set(err, SW_ELIMIT, "there are more than %u jobs, too many for a forecast",
						 SW_FORECAST_JOBS_MAX);
	return r;
}

/* ---- what they wait for */

static int queue_for_slot(struct run *run, uint32_t place)
{
	struct life *life = &run->lives.items[place];
	uint32_t first = run->brain->jobs.items[life->id].array_first;
	struct slots *array = find_array(run, first);
	life->blocked++;
	life->waits_for_slot = true;
	if (array != NULL) {
		run->lives.items[array->last].next_in_array = place;
		array->last = place;
		return 0;
	}
	array = sw_vec_push(&run->arrays); /* members follow each other, so this is the last */
	if (array == NULL)
		return SW_ENOMEM;
	*array = (struct slots){first, place, place};
	return 0;
}

static int add_waits(struct run *run, uint32_t place)
{
	struct life *life = &run->lives.items[place];
	const struct sw_live *live = &run->brain->jobs.items[life->id];
	int r = 0;
	for (uint32_t d = live->depend_at; r == 0 && d < live->depend_count; d++) {
		const struct sw_depend *depend = &live->depends[d];
		if (depend->kind == SW_AFTER_SLOT) {
			r = sw_array_admits(live, life->id + UINT64_C(1)) ? 0 : queue_for_slot(run, place);
			continue;
		}
		if (is_over(run, depend->job))
			continue;
		struct edge *edge = sw_vec_push(&run->edges);
		if (edge == NULL)
			return SW_ENOMEM;
		*edge = (struct edge){find(run, (uint32_t)(depend->job - 1)), place};
		life->blocked++;
	}
	return r;
}

static int by_awaited(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;
	if (x->awaited != y->awaited)
		return x->awaited < y->awaited ? -1 : 1;
	return (x->waits > y->waits) - (x->waits < y->waits);
}

static int add_all_waits(struct run *run)
{
	int r = 0;
	for (uint32_t place = 0; r == 0 && place < run->lives.count; place++)
		if (run->brain->jobs.items[run->lives.items[place].id].depend_count > 0)
			r = add_waits(run, place);
	if (run->edges.count > 1)
		qsort(run->edges.items, run->edges.count, sizeof *run->edges.items, by_awaited);
	return r;
}

/* ---- running ahead */

/* Whether runs would leave their GPUs' memory to others: as most of those do that run now. */
static bool do_most_free(const struct sw_brain *brain)
{
	uint32_t free = 0, all = 0;
	for (size_t n = 0; n < brain->nodes.count; n++)
		for (size_t j = 0; j < brain->nodes.items[n].jobs.count; j++) {
			const struct sw_run *run = sw_brain_run_on(&brain->jobs.items[brain->nodes.items[n].jobs.items[j]], (uint32_t)n);
			all += run->heard == SW_HEARD_RUNNING;
			free += run->heard == SW_HEARD_RUNNING && (run->frees || run->off);
		}
	return free * 2 >= all;
}

static int copy_engine(struct run *run, struct sw_err *err)
{
	struct sw_brain *brain = run->brain;
	struct sw_engine_config config;
	struct sw_pack pack = {0};
	bool adopted = false;
	size_t size = 0;
	int r = sw_brain_engine_config(brain, &config, err);
	if (r < 0)
		return r;
	if (brain->policy != NULL)
		config.policy = sw_brain_find_policy(&brain->config, brain->policy);
	config.params = brain->params;
	sw_engine_save(brain->engine, &pack);
	SW_CLEANUP(sw_freep) unsigned char *bytes = sw_pack_take(&pack, &size);
	sw_pack_release(&pack);
	if (bytes == NULL)
		return no_memory(err);
	return sw_engine_load(&config, bytes, size, &run->engine, &adopted, err);
}

static int prepare(struct run *run, struct sw_err *err)
{
	int r = copy_engine(run, err);
	if (r == 0 && sw_brain_lengths(run->brain, &run->lengths) < 0)
		r = no_memory(err);
	r = r < 0 ? r : add_lives(run, err);
	if (r < 0)
		return r;
	uint32_t count = (uint32_t)run->lives.count;
	if (sw_heap_reserve(&run->ends, count + 1) < 0 || sw_heap_reserve(&run->pauses, count + 1) < 0 || add_all_waits(run) < 0)
		return no_memory(err);
	run->frees = do_most_free(run->brain);
	if (solve(run) < 0)
		return no_memory(err);
	for (uint32_t place = 0; place < count; place++) {
		if (run->lives.items[place].runs)
			plan_end(run, place);
		if (arrive(run, run->lives.items[place].id) < 0 || let_in(run, place) < 0)
			return no_memory(err);
	}
	return 0;
}

/* Ends, and the ends of pauses. */
static int end_those_due(struct run *run)
{
	int r = 0;
	while (r == 0 && sw_heap_top_key(&run->ends) <= run->now) {
		uint32_t place = run->ends.entries[0].id;
		struct life *life = &run->lives.items[place];
		sw_heap_remove(&run->ends, place);
		life->runs = false;
		run->ended[life->basis]++;
		r = push(run, (struct sw_event){.kind = SW_EV_FINISH,
						.job = {life->id},
						.epoch = sw_engine_epoch(run->engine, (struct sw_job_id){life->id})});
		r = r < 0 ? r : unblock(run, place);
	}
	while (r == 0 && sw_heap_top_key(&run->pauses) <= run->now) {
		uint32_t place = run->pauses.entries[0].id;
		sw_heap_remove(&run->pauses, place);
		r = let_in(run, place);
	}
	return r;
}

static int run_ahead(struct run *run, struct sw_err *err)
{
	uint32_t idle = 0;
	int r = 0;
	/* What was heard and not decided on yet is decided now; jobs whose wait is over compete. */
	if (run->wake_at <= run->now || run->events.count > 0)
		r = step(run, err);
	while (r == 0 && run->awaited > 0 && !run->stopped) {
		sw_ns next = sw_heap_top_key(&run->ends), pause = sw_heap_top_key(&run->pauses);
		next = pause < next ? pause : next;
		uint32_t awaited = run->awaited;
		if (next == SW_TIME_NEVER && (run->wake_at == SW_TIME_NEVER || ++idle > IDLE_STEPS_MAX))
			return 0;
		bool ends = next != SW_TIME_NEVER;
		next = run->wake_at < next ? run->wake_at : next;
		if (next - run->config->now > HORIZON_NS) {
			run->stopped = ends;
			return 0;
		}
		run->now = next > run->now ? next : run->now;
		if (end_those_due(run) < 0)
			return no_memory(err);
		r = step(run, err);
		idle = run->awaited < awaited ? 0 : idle;
	}
	return r;
}

/* ---- the answer */

static bool takes_any_node_jobs(const struct sw_brain *brain)
{
	for (size_t n = 0; n < brain->nodes.count; n++)
		if (brain->nodes.items[n].up && !brain->nodes.items[n].silent && brain->nodes.items[n].closed == SW_OPEN)
			return true;
	return false;
}

/* Of one that was to start and did not. */
static enum sw_forecast_why why_not(const struct run *run, const struct life *life, bool endless)
{
	if (!takes_any_node_jobs(run->brain))
		return SW_FORECAST_NO_NODE;
	if (run->stopped)
		return SW_FORECAST_FAR;
	if (life->blocked > 0)
		return SW_FORECAST_AWAITS;
	const struct sw_job *job = sw_engine_job(run->engine, (struct sw_job_id){life->id});
	if (job->job_class == SW_CLASS_GUARANTEED && sw_view_tenant_quota(sw_engine_view(run->engine), job->tenant) < job->min_gpus)
		return SW_FORECAST_QUOTA;
	return endless ? SW_FORECAST_LENGTH : SW_FORECAST_NO_ROOM;
}

static int push_row(struct sw_forecast *forecast, const struct sw_forecast_row *row)
{
	struct sw_forecast_row *slot = sw_vec_push(&forecast->rows);
	if (slot == NULL)
		return SW_ENOMEM;
	*slot = *row;
	return 0;
}

static int answer(const struct run *run, struct sw_forecast *forecast)
{
	const struct sw_forecast_config *config = run->config;
	bool endless = false;
	int r = 0;
	for (size_t i = 0; i < run->lives.count; i++)
		endless = endless || run->lives.items[i].runs;
	for (size_t i = 0; r == 0 && i < run->lives.count; i++) {
		const struct life *life = &run->lives.items[i];
		const struct sw_live *live = &run->brain->jobs.items[life->id];
		bool ran = sw_engine_job(run->brain->engine, (struct sw_job_id){life->id})->state == SW_JOB_RUNNING;
		if (!is_asked_for(run, live, life->id + UINT64_C(1)) || (ran && config->last == 0))
			continue;
		struct sw_forecast_row row = {.job = life->id + UINT64_C(1), .starts_at = life->starts_at, .why = life->why};
		memcpy(row.ended, life->ended, sizeof row.ended);
		if (row.starts_at == SW_TIME_NEVER && row.why == SW_FORECAST_STARTS)
			row.why = why_not(run, life, endless);
		r = push_row(forecast, &row);
	}
	return r;
}

/* Of jobs that were asked for by their numbers and do not live. */
static int answer_ended(const struct run *run, struct sw_forecast *forecast)
{
	const struct sw_forecast_config *config = run->config;
	int r = 0;
	for (uint64_t job = config->first; r == 0 && config->last != 0 && job <= config->last; job++) {
		const struct sw_live *live = sw_brain_live(run->brain, job);
		if (live == NULL || live->is_prerun || find(run, (uint32_t)(job - 1)) != NOT_LISTED)
			continue;
		bool refused = sw_engine_job(run->brain->engine, (struct sw_job_id){(uint32_t)(job - 1)})->state == SW_JOB_REFUSED;
		r = push_row(forecast, &(struct sw_forecast_row){.job = job,
								 .starts_at = SW_TIME_NEVER,
								 .why = refused ? SW_FORECAST_REFUSED : SW_FORECAST_OVER});
	}
	return r;
}

static int by_job(const void *a, const void *b)
{
	const struct sw_forecast_row *x = a, *y = b;
	return (x->job > y->job) - (x->job < y->job);
}

int sw_brain_forecast(struct sw_brain *brain, const struct sw_forecast_config *config, struct sw_forecast *ret_forecast, struct sw_err *err)
{
	struct run run = {
		.brain = brain, .config = config, .now = config->now > brain->now ? config->now : brain->now, .wake_at = brain->wake_at};
	struct sw_forecast forecast = {0};
	int r = prepare(&run, err);
	r = r < 0 ? r : run_ahead(&run, err);
	if (r == 0 && (answer(&run, &forecast) < 0 || answer_ended(&run, &forecast) < 0))
		r = no_memory(err);
	for (size_t n = 0; n < brain->nodes.count; n++)
		if (brain->nodes.items[n].up)
			forecast.gpus_shut += (uint32_t)__builtin_popcountll(
				sw_brain_shut_mask(brain->nodes.items[n].gpus, brain->nodes.items[n].shape.gpus));
	if (forecast.rows.count > 1)
		qsort(forecast.rows.items, forecast.rows.count, sizeof *forecast.rows.items, by_job);
	if (run.engine != NULL)
		sw_engine_free(run.engine);
	sw_lengths_release(&run.lengths);
	sw_vec_free(&run.lives);
	sw_vec_free(&run.edges);
	sw_vec_free(&run.arrays);
	sw_vec_free(&run.events);
	for (size_t q = 0; q < SW_QUESTIONS_MAX; q++)
		sw_pack_release(&run.found[q]);
	sw_heap_release(&run.ends);
	sw_heap_release(&run.pauses);
	if (r < 0)
		sw_forecast_release(&forecast);
	else
		*ret_forecast = forecast;
	return r;
}

void sw_forecast_release(struct sw_forecast *forecast)
{
	sw_vec_free(&forecast->rows);
}

/* ---- in words */

char *sw_forecast_say(enum sw_forecast_why why, uint32_t gpus_shut, char *text, size_t size)
{
	static const char *const words[SW_FORECAST_WHYS] = {
		[SW_FORECAST_STARTS] = "",
		[SW_FORECAST_HELD] = "it is on hold",
		[SW_FORECAST_IF_FAILED] = "it runs only if a job fails that has not ended yet",
		[SW_FORECAST_STRANDED] = "its last run may still be alive on a node that does not answer",
		[SW_FORECAST_AWAITS] = "it is not known when a job that it waits for ends",
		[SW_FORECAST_LENGTH] = "how long jobs ahead of it run is not known; time limits would tell",
		[SW_FORECAST_QUOTA] = "its tenant may hold fewer GPUs than it needs",
		[SW_FORECAST_NO_ROOM] = "it would have no place even when all jobs that run now have ended",
		[SW_FORECAST_NO_NODE] = "no node takes jobs at present",
		[SW_FORECAST_FAR] = "it is further ahead than a forecast looks",
		[SW_FORECAST_OVER] = "it has ended",
		[SW_FORECAST_REFUSED] = "it would be refused",
	};
	bool may_be_shut = gpus_shut > 0 && (why == SW_FORECAST_LENGTH || why == SW_FORECAST_NO_ROOM);
	if (may_be_shut)
		snprintf(text, size, "%u GPU%s no jobs now ('sharewell nodes' says why), and %s", gpus_shut,
			 gpus_shut == 1 ? " takes" : "s take", words[why]);
	else
		snprintf(text, size, "%s", words[why]);
	return text;
}
