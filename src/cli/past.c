#include "cli/past.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "api/request.h"
#include "api/when.h"
#include "base/number.h"
#include "cli/live.h"
#include "cli/past_events.h"
#include "cli/progress.h"
#include "cli/terminal.h"

/* Below this, a bar would only flicker. */
#define MANY 5000u

struct gathering {
	struct sw_cli_past *past;
	int64_t now_ns;
	const struct sw_cli_events *events; /* NULL: not asked for */
	SW_VEC(int64_t) ended_ns;	    /* by job number less one; 0: not known */
	struct sw_cli_progress *bar;
};

static int64_t moment(const json_t *object, const char *key, int64_t fallback)
{
	const char *text = sw_cli_text(object, key, "");
	int64_t ns;
	return sw_when_parse(text, strlen(text), &ns) == 0 ? ns : fallback;
}

static int no_memory(struct sw_err *err)
{
	return sw_err_set(err, SW_ENOMEM, "out of memory");
}

/* ---- one job */

static enum sw_trace_end end_of(const json_t *job)
{
	static const struct {
		const char *state;
		enum sw_trace_end end;
	} ends[] = {{"CD", SW_TRACE_COMPLETED}, {"CA", SW_TRACE_CANCELLED}, {"TO", SW_TRACE_TIMED_OUT}};
	const char *state = sw_cli_text(job, "state", "");
	for (size_t i = 0; i < SW_CLI_COUNT_OF(ends); i++)
		if (strcmp(ends[i].state, state) == 0)
			return ends[i].end;
	return sw_cli_job_ended(job) ? SW_TRACE_FAILED : SW_TRACE_UNFINISHED;
}

/* Others' jobs do not say how long they ran; from start to end, then. */
static int64_t run_time(const json_t *job, int64_t now_ns)
{
	if (json_object_get(job, "ran_s") != NULL)
		return llround(sw_cli_real(job, "ran_s", 0) * (double)SW_NS_PER_S);
	int64_t started = moment(job, "started_at", INT64_MAX), ended = moment(job, "ended_at", now_ns);
	return ended > started ? ended - started : 0;
}

/* When it could have begun: invariant 3. Jobs depend on earlier ones, so their ends are known by
 * now, if they are in this history at all. */
static int64_t ready_ns(const struct gathering *all, int64_t submitted_ns, const json_t *depends)
{
	int64_t ready = submitted_ns;
	size_t i;
	json_t *number;
	json_array_foreach((json_t *)(uintptr_t)depends, i, number)
	{
		uint64_t id = (uint64_t)json_integer_value(number);
		if (id >= 1 && id <= all->ended_ns.count && all->ended_ns.items[id - 1] > ready)
			ready = all->ended_ns.items[id - 1];
	}
	return ready;
}

static int intern(struct sw_trace *trace, const char *text, uint32_t *field)
{
	size_t size = strlen(text);
	return sw_trace_intern(trace, text, size < SW_TRACE_MAX_NAME ? size : SW_TRACE_MAX_NAME, field);
}

static void take_asked(const json_t *asked, struct sw_trace_job *row)
{
	int64_t least = sw_cli_number(asked, "min_gpus", row->gpus), most = sw_cli_number(asked, "max_gpus", row->gpus);
	row->min_gpus = least >= 1 && least < row->gpus ? (uint32_t)least : row->gpus;
	row->max_gpus = most > row->gpus && most <= SW_TRACE_MAX_GPUS ? (uint32_t)most : row->gpus;
	double weight_milli = sw_cli_real(asked, "weight", 1) * 1000;
	row->weight_milli = weight_milli >= 1 && weight_milli <= 1e9 ? (uint32_t)llround(weight_milli) : 1000;
	row->gpu_memory_mib = (uint32_t)(sw_cli_number(asked, "gpu_memory_bytes", 0) >> 20);
	bool waits_its_turn = strcmp(sw_cli_text(asked, "class", ""), "opportunistic") == 0;
	row->job_class = waits_its_turn ? SW_CLASS_OPPORTUNISTIC : SW_CLASS_GUARANTEED;
	row->deadline_ns = moment(asked, "deadline", SW_NEVER);
	row->deadline_kind = row->deadline_ns != SW_NEVER ? SW_TRACE_SOFT : SW_TRACE_NO_DEADLINE;
}

static int note_end(struct gathering *all, uint64_t id, int64_t ended_ns)
{
	if (id < 1 || id > UINT32_MAX)
		return 0;
	while (all->ended_ns.count < id) {
		int64_t *slot = sw_vec_push(&all->ended_ns);
		if (slot == NULL)
			return SW_ENOMEM;
		*slot = 0;
	}
	all->ended_ns.items[id - 1] = ended_ns;
	if (all->past->first == 0 || id < all->past->first)
		all->past->first = id;
	return 0;
}

/* Makes a row of one that ran; *ret_row is NULL for one that never did. */
static int add_row(struct gathering *all, int64_t id, int64_t ran_ns, int64_t gpus, struct sw_trace_job **ret_row)
{
	*ret_row = NULL;
	if (ran_ns <= 0 || ran_ns > SW_TRACE_MAX_NS || gpus < 1 || gpus > SW_TRACE_MAX_GPUS) {
		all->past->never_ran++;
		return 0;
	}
	struct sw_trace_job *row = sw_trace_add(all->past->trace);
	if (row == NULL || sw_trace_fate_of(all->past->trace, row) == NULL)
		return SW_ENOMEM;
	row->id = id;
	row->duration_ns = ran_ns;
	row->gpus = (uint32_t)gpus;
	*ret_row = row;
	return 0;
}

static int take_names(struct sw_trace *trace, struct sw_trace_job *row, const char *name, const char *model, const char *user,
		      const char *tenant)
{
	/* Its profile is found by what it said, or else by its name. */
	int r = intern(trace, name, &row->name);
	r = r < 0 ? r : intern(trace, model[0] != '\0' ? model : name, &row->model);
	r = r < 0 ? r : intern(trace, user, &row->user);
	return r < 0 ? r : intern(trace, tenant, &row->tenant);
}

/* By the row that the controller has of it. */
static int take_job(struct gathering *all, const json_t *job, struct sw_trace_job **ret_row)
{
	const json_t *asked = json_object_get(job, "asked");
	uint64_t id = (uint64_t)sw_cli_number(job, "id", 0);
	all->past->hidden += json_object_get(job, "ran_s") == NULL;
	if (note_end(all, id, moment(job, "ended_at", 0)) < 0 ||
	    add_row(all, (int64_t)id, run_time(job, all->now_ns), sw_cli_number(job, "gpus", 0), ret_row) < 0)
		return SW_ENOMEM;
	struct sw_trace_job *row = *ret_row;
	if (row == NULL)
		return 0;
	struct sw_trace_fate *fate = sw_trace_fate_of(all->past->trace, row);
	row->submit_ns = ready_ns(all, moment(job, "submitted_at", all->now_ns), json_object_get(asked, "depends"));
	take_asked(asked, row);
	fate->started_ns = moment(job, "started_at", SW_NEVER);
	fate->ended_ns = moment(job, "ended_at", all->now_ns);
	fate->preemptions = (uint32_t)sw_cli_number(job, "preemptions", 0);
	fate->end = (uint8_t)end_of(job);
	return take_names(all->past->trace, row, sw_cli_text(job, "name", ""), sw_cli_text(asked, "model", ""),
			  sw_cli_text(job, "user", ""), sw_cli_text(job, "tenant", ""));
}

/* ---- events */

/* Whether the job was on hold when it came. Where its submit is not told, by this first of its
 * events. A release says so, unless the job had run by then and there was nothing to release. */
static bool came_held(const struct sw_cli_submit *submit, const struct sw_cli_happening *first, int64_t started_ns)
{
	if (submit != NULL && submit->is_open)
		return submit->spec.held;
	return first->kind == SW_CLI_RELEASED && first->at_ns < started_ns;
}

/* From when to when the job was on hold, after it could have begun. `submit`: NULL: not told. */
static int take_holds(const struct gathering *all, struct sw_trace_job *row, const struct sw_cli_submit *submit)
{
	const int64_t started_ns = sw_trace_fate_of(all->past->trace, row)->started_ns;
	const uint64_t job = (uint64_t)row->id;
	bool held = false, is_first = true;
	struct sw_cli_happening from = {.at_ns = INT64_MIN};
	const struct sw_cli_events *events = all->events;
	for (size_t i = sw_cli_events_of(events, job); i < events->happenings.count && events->happenings.items[i].job == job; i++) {
		const struct sw_cli_happening *event = &events->happenings.items[i];
		if (event->kind != SW_CLI_HELD && event->kind != SW_CLI_RELEASED)
			continue;
		held = is_first ? came_held(submit, event, started_ns) : held;
		is_first = false;
		if (event->kind == SW_CLI_HELD) {
			from = held ? from : *event;
			held = true;
			continue;
		}
		if (held && event->at_ns > row->submit_ns) {
			if (sw_trace_add_hold(all->past->trace, row, from.at_ns, event->at_ns, from.leaves) < 0)
				return SW_ENOMEM;
			all->past->holds++;
		}
		held = false;
	}
	return 0;
}

/* What became of a job, by the events. */
struct course {
	int64_t begun_ns, ended_ns; /* when it was first heard to have begun; its last end. SW_NEVER: not told */
	int64_t ran_ns;		    /* on GPUs, until then; -1: not told */
	uint32_t stops, begins, ends;
	uint8_t end;  /* enum sw_trace_end */
	bool frees;   /* what was said last */
	bool goes_on; /* it began once more after that */
};

static struct course follow(const struct sw_cli_events *events, uint64_t job)
{
	struct course course = {.begun_ns = SW_NEVER, .ended_ns = SW_NEVER, .ran_ns = -1};
	for (size_t i = sw_cli_events_of(events, job); i < events->happenings.count && events->happenings.items[i].job == job; i++) {
		const struct sw_cli_happening *event = &events->happenings.items[i];
		bool begins = event->kind == SW_CLI_BEGAN, ends = event->kind == SW_CLI_EXITED || event->kind == SW_CLI_CANCELLED;
		if (begins && course.begins++ == 0)
			course.begun_ns = event->at_ns;
		course.goes_on = begins || (course.goes_on && !ends);
		if (begins || event->kind == SW_CLI_FREES)
			course.frees = event->frees;
		if (!ends)
			continue;
		course.ends++;
		course.ended_ns = event->at_ns;
		course.ran_ns = event->ran_ns;
		course.stops = event->stops;
		course.end = event->end;
	}
	return course;
}

/* Of a run that was stopped, or goes on, it cannot be told how long after its start it was heard to
 * have begun: -1. */
static int64_t begins_after(const struct course *course)
{
	int64_t started_ns = course->ended_ns - course->ran_ns;
	bool known = !course->goes_on && course->begins == 1 && course->ends == 1 && course->stops == 0 && course->ran_ns >= 0;
	return known && course->begun_ns >= started_ns ? course->begun_ns - started_ns : -1;
}

static int take_requeues(const struct gathering *all, uint64_t job)
{
	const struct sw_cli_events *events = all->events;
	for (size_t i = sw_cli_events_of(events, job); i < events->happenings.count && events->happenings.items[i].job == job; i++) {
		if (events->happenings.items[i].kind != SW_CLI_REQUEUED)
			continue;
		struct sw_trace_event *slot = sw_vec_push(&all->past->trace->events);
		if (slot == NULL)
			return SW_ENOMEM;
		/* By its number for now: trace indices are known in the end. */
		*slot = (struct sw_trace_event){events->happenings.items[i].at_ns, {.kind = SW_EV_REQUEUE, .job = {(uint32_t)job}}};
		all->past->requeues++;
	}
	return 0;
}

/* ---- how the scheduler was asked for them */

static int compare_spans(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

/* Runs of which it cannot be told begin as late as others do. */
static int guess_begins(struct sw_trace *trace)
{
	SW_VEC(int64_t) known = {0};
	if (trace->told.count == 0)
		return 0;
	if (sw_vec_reserve(&known, trace->told.count) < 0)
		return SW_ENOMEM;
	for (size_t i = 0; i < trace->told.count; i++)
		if (trace->told.items[i].begins_after_ns >= 0)
			*sw_vec_push(&known) = trace->told.items[i].begins_after_ns;
	if (known.count > 0)
		qsort(known.items, known.count, sizeof *known.items, compare_spans);
	for (size_t i = 0; i < trace->told.count && known.count > 0; i++)
		if (trace->told.items[i].begins_after_ns < 0)
			trace->told.items[i].begins_after_ns = known.items[known.count / 2];
	sw_vec_free(&known);
	return 0;
}

/* What the scheduler was told of it. */
static int take_told(struct gathering *all, struct sw_trace_job *row, const struct sw_cli_submit *submit, const struct course *course)
{
	struct sw_trace_told *told = submit->is_open ? sw_vec_push(&all->past->trace->told) : NULL;
	if (told == NULL)
		return submit->is_open ? SW_ENOMEM : 0;
	*told = (struct sw_trace_told){.spec = submit->spec, .begins_after_ns = begins_after(course), .frees = course->frees};
	row->told = (uint32_t)all->past->trace->told.count;
	return submit->model[0] != '\0' ? intern(all->past->trace, submit->model, &row->model) : 0;
}

/* By events alone. */
static int take_course(struct gathering *all, const struct sw_cli_submit *submit, const struct course *course,
		       struct sw_trace_job **ret_row)
{
	const struct sw_job_spec *spec = &submit->spec;
	int64_t ran_ns = course->ran_ns >= 0 ? course->ran_ns : course->begun_ns != SW_NEVER ? course->ended_ns - course->begun_ns : 0;
	all->past->hidden += !submit->is_open;
	if (note_end(all, submit->job, course->ended_ns != SW_NEVER ? course->ended_ns : 0) < 0 ||
	    add_row(all, (int64_t)submit->job, ran_ns, spec->gpus, ret_row) < 0)
		return SW_ENOMEM;
	struct sw_trace_job *row = *ret_row;
	if (row == NULL)
		return 0;
	struct sw_trace_fate *fate = sw_trace_fate_of(all->past->trace, row);
	row->submit_ns = ready_ns(all, submit->at_ns, submit->depends);
	if (submit->has_prerun && submit->job >= 2 && all->ended_ns.items[submit->job - 2] > row->submit_ns)
		row->submit_ns = all->ended_ns.items[submit->job - 2];
	row->min_gpus = spec->min_gpus >= 1 && spec->min_gpus < row->gpus ? spec->min_gpus : row->gpus;
	row->max_gpus = spec->max_gpus > row->gpus && spec->max_gpus <= SW_TRACE_MAX_GPUS ? spec->max_gpus : row->gpus;
	row->weight_milli = spec->weight_milli > 0 ? spec->weight_milli : 1000;
	row->gpu_memory_mib = (uint32_t)(spec->gpu_memory_bytes >> 20);
	row->job_class = spec->job_class;
	row->deadline_ns = submit->deadline_ns;
	row->deadline_kind = row->deadline_ns != SW_NEVER ? SW_TRACE_SOFT : SW_TRACE_NO_DEADLINE;
	fate->started_ns = course->begun_ns != SW_NEVER ? course->begun_ns : course->ended_ns - ran_ns;
	fate->ended_ns = course->ended_ns;
	fate->preemptions = course->stops;
	fate->end = course->end;
	return submit->is_open ? take_names(all->past->trace, row, submit->name, submit->model, submit->user, submit->tenant) : 0;
}

/* ---- rows, as far as they are needed */

struct reader {
	struct sw_client *client;
	const char *query;
	json_t *page; /* owned; NULL: none yet */
	size_t at;
	int64_t next; /* cursor of the next page; -1: there is none */
};

/* The first row from this number on, which is above those that were asked for; NULL: there is
 * none. */
static int next_row(struct reader *reader, uint64_t from, const json_t **ret_row, struct sw_err *err)
{
	for (;;) {
		const json_t *jobs = json_object_get(reader->page, "jobs");
		for (; reader->at < json_array_size(jobs); reader->at++) {
			*ret_row = json_array_get(jobs, reader->at);
			if ((uint64_t)sw_cli_number(*ret_row, "id", 0) >= from)
				return 0;
		}
		SW_CLEANUP(sw_freep) char *path = NULL;
		*ret_row = NULL;
		if (reader->next < 0)
			return 0;
		int64_t cursor = (int64_t)from - 1 > reader->next ? (int64_t)from - 1 : reader->next;
		if (asprintf(&path, "/v1/jobs?%sasked=true&limit=%u&cursor=%" PRId64, reader->query, SW_LIST_MAX, cursor) < 0)
			return no_memory(err);
		json_decref(reader->page);
		reader->page = NULL;
		reader->at = 0;
		int r = sw_client_get(reader->client, path, &reader->page, err);
		if (r < 0)
			return r;
		int64_t next = sw_cli_number(reader->page, "next", -1);
		reader->next = next > cursor ? next : -1; /* whatever the other side says, this ends */
	}
}

/* Jobs below this number. Where nothing is told of submits, times on hold are. */
static int take_rows(struct gathering *all, struct reader *reader, uint64_t below, struct sw_err *err)
{
	const struct sw_cli_events *events = all->events;
	const json_t *job = NULL;
	int r = below > 1 ? next_row(reader, 1, &job, err) : 0;
	while (r == 0 && job != NULL && (uint64_t)sw_cli_number(job, "id", 0) < below) {
		struct sw_trace_job *row;
		uint64_t id = (uint64_t)sw_cli_number(job, "id", 0);
		bool covered = events != NULL && moment(job, "submitted_at", all->now_ns) >= events->since_ns;
		if (take_job(all, job, &row) < 0 || (row != NULL && covered && take_holds(all, row, NULL) < 0))
			return no_memory(err);
		all->past->rows += row != NULL && events != NULL && (!covered || events->submits.count > 0);
		if (all->bar != NULL)
			sw_cli_progress_draw(all->bar, id, "jobs");
		r = next_row(reader, id + 1, &job, err);
	}
	return r;
}

/* A job that the events tell of. Where these do not tell how long it ran, its row does. Such a job
 * runs still, or ended in a way that is no event, or under an earlier version. */
static int take_submitted(struct gathering *all, struct reader *reader, const struct sw_cli_submit *submit, struct sw_err *err)
{
	const struct course course = follow(all->events, submit->job);
	bool never_ran = course.begins == 0 && (course.ends == 0 || (course.end == SW_TRACE_CANCELLED && course.ran_ns < 0));
	bool is_told = submit->spec.gpus > 0 && !course.goes_on && (course.ran_ns >= 0 || never_ran || !submit->is_open);
	struct sw_trace_job *row = NULL;
	const json_t *job = NULL;
	int r = is_told ? 0 : next_row(reader, submit->job, &job, err);
	if (r < 0)
		return r;
	if (job != NULL && (uint64_t)sw_cli_number(job, "id", 0) != submit->job)
		job = NULL; /* it is not kept any more */
	if ((job != NULL ? take_job(all, job, &row) : take_course(all, submit, &course, &row)) < 0)
		return no_memory(err);
	all->past->unheard += job != NULL && row != NULL && sw_cli_job_ended(job);
	if (row != NULL &&
	    (take_told(all, row, submit, &course) < 0 || take_holds(all, row, submit) < 0 || take_requeues(all, submit->job) < 0))
		return no_memory(err);
	return 0;
}

/* ---- all of them */

static int take_all(struct gathering *all, struct reader *reader, struct sw_err *err)
{
	const struct sw_cli_events *events = all->events;
	size_t first = 0, count = events != NULL ? events->submits.count : 0;
	while (first < count && events->submits.items[first].job == 0)
		first++;
	int r = take_rows(all, reader, first < count ? events->submits.items[first].job : UINT64_MAX, err);
	for (size_t i = first; r == 0 && i < count; i++)
		r = take_submitted(all, reader, &events->submits.items[i], err);
	if (r == 0 && guess_begins(all->past->trace) < 0)
		r = no_memory(err);
	return r;
}

static int64_t since(int64_t at_ns, int64_t zero_ns)
{
	return at_ns == SW_NEVER ? SW_NEVER : at_ns > zero_ns ? at_ns - zero_ns : 0;
}

/* Requeues name jobs by their places from now on. There are few of them. */
static void place_requeues(struct sw_trace *trace)
{
	for (size_t e = 0; e < trace->events.count; e++) {
		struct sw_event *event = &trace->events.items[e].event;
		uint32_t place = 0;
		while (event->kind == SW_EV_REQUEUE && trace->jobs.items[place].id != (int64_t)event->job.v)
			place++;
		if (event->kind == SW_EV_REQUEUE)
			event->job.v = place;
	}
}

/* From moments of the calendar to times of the trace. */
static int settle(struct sw_trace *trace)
{
	int64_t zero_ns = INT64_MAX;
	for (size_t i = 0; i < trace->jobs.count; i++)
		zero_ns = trace->jobs.items[i].submit_ns < zero_ns ? trace->jobs.items[i].submit_ns : zero_ns;
	for (size_t i = 0; i < trace->jobs.count; i++) {
		trace->jobs.items[i].submit_ns -= zero_ns;
		trace->jobs.items[i].deadline_ns = since(trace->jobs.items[i].deadline_ns, zero_ns);
	}
	for (size_t i = 0; i < trace->holds.count; i++) {
		trace->holds.items[i].from_ns = since(trace->holds.items[i].from_ns, zero_ns);
		trace->holds.items[i].to_ns = since(trace->holds.items[i].to_ns, zero_ns);
	}
	for (size_t i = 0; i < trace->wakes.count; i++)
		trace->wakes.items[i] -= zero_ns;
	for (size_t i = 0; i < trace->events.count; i++)
		trace->events.items[i].at_ns = since(trace->events.items[i].at_ns, zero_ns);
	for (size_t i = 0; i < trace->fates.count; i++) {
		trace->fates.items[i].started_ns = since(trace->fates.items[i].started_ns, zero_ns);
		trace->fates.items[i].ended_ns = since(trace->fates.items[i].ended_ns, zero_ns);
	}
	trace->clock_ns = trace->jobs.count > 0 ? zero_ns : 0;
	if (sw_trace_sort(trace) < 0)
		return SW_ENOMEM;
	place_requeues(trace);
	return 0;
}

static uint64_t count_jobs(const json_t *cluster)
{
	uint64_t count = 0;
	const char *state;
	json_t *jobs;
	json_object_foreach(json_object_get(cluster, "jobs"), state, jobs) count += (uint64_t)json_integer_value(jobs);
	return count;
}

static int fetch(struct sw_client *client, const char *query, struct gathering *all, struct sw_err *err)
{
	SW_JSON *cluster = NULL;
	struct sw_cli_progress bar;
	struct reader reader = {.client = client, .query = query};
	int r = sw_client_get(client, "/v1/cluster", &cluster, err);
	if (r < 0)
		return r;
	all->now_ns = moment(cluster, "now", 0);
	uint64_t total = count_jobs(cluster);
	if (total > MANY && sw_cli_terminal(stderr).is_terminal) {
		sw_cli_progress_start(&bar, total);
		all->bar = &bar;
	}
	r = take_all(all, &reader, err);
	json_decref(reader.page);
	if (all->bar != NULL)
		sw_cli_progress_end(all->bar);
	return r;
}

int sw_cli_past_fetch(struct sw_client *client, const char *query, const struct sw_cli_events *events, struct sw_cli_past *ret_past,
		      struct sw_err *err)
{
	struct sw_cli_past past = {0};
	struct gathering all = {.past = &past, .events = events};
	int r = sw_trace_new("history of this cluster", "sharewell", &past.trace);
	r = r < 0 ? no_memory(err) : fetch(client, query, &all, err);
	if (r == 0 && events != NULL && sw_cli_events_apply(events, past.trace) < 0)
		r = no_memory(err);
	if (r == 0 && settle(past.trace) < 0)
		r = no_memory(err);
	sw_vec_free(&all.ended_ns);
	if (r < 0)
		sw_cli_past_release(&past);
	else
		*ret_past = past;
	return r;
}

void sw_cli_past_release(struct sw_cli_past *past)
{
	sw_trace_free(past->trace);
	past->trace = NULL;
}

/* ---- the cluster */

static int64_t gpu_memory(const json_t *node)
{
	int64_t bytes = sw_cli_number(json_array_get(json_object_get(node, "devices"), 0), "memory_bytes", 0);
	return bytes >= 1 << 20 ? bytes : (int64_t)SW_CLUSTER_GPU_MEM_BYTES;
}

static bool counts(const json_t *node)
{
	return json_is_true(json_object_get(node, "up")) && sw_cli_number(node, "gpus", 0) > 0;
}

static bool alike(const json_t *a, const json_t *b)
{
	static const char *const keys[] = {"gpus", "cpus", "memory_bytes"};
	for (size_t i = 0; i < SW_CLI_COUNT_OF(keys); i++)
		if (sw_cli_number(a, keys[i], 0) != sw_cli_number(b, keys[i], 0))
			return false;
	return gpu_memory(a) == gpu_memory(b);
}

/* Nodes in a row that are alike are one line of the description. */
static void describe(FILE *out, const json_t *nodes)
{
	fputs("nodes:\n", out);
	for (size_t i = 0, next; i < json_array_size(nodes); i = next) {
		const json_t *node = json_array_get(nodes, i);
		int64_t cpus = sw_cli_number(node, "cpus", 0), bytes = sw_cli_number(node, "memory_bytes", 0);
		for (next = i + 1; next < json_array_size(nodes) && alike(node, json_array_get(nodes, next));)
			next++;
		fprintf(out, "  - {count: %zu, gpus: %" PRId64 ", gpu_memory: %" PRId64, next - i, sw_cli_number(node, "gpus", 1),
			gpu_memory(node));
		if (cpus > 0)
			fprintf(out, ", cpus: %" PRId64, cpus);
		if (bytes >= 1 << 20)
			fprintf(out, ", memory: %" PRId64, bytes);
		fputs("}\n", out);
	}
}

int sw_cli_past_shape(const json_t *nodes, struct sw_cluster_spec **ret_spec, struct sw_err *err)
{
	SW_CLEANUP(sw_freep) char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	if (out == NULL)
		return no_memory(err);
	describe(out, nodes);
	return fclose(out) != 0 ? no_memory(err) : sw_cluster_parse("this cluster", text, size, ret_spec, err);
}

int sw_cli_past_cluster(struct sw_client *client, struct sw_cluster_spec **ret_spec, struct sw_err *err)
{
	SW_JSON *answer = NULL, *nodes = json_array();
	size_t i;
	json_t *node;
	int r = nodes == NULL ? no_memory(err) : sw_client_get(client, "/v1/nodes", &answer, err);
	if (r < 0)
		return r;
	json_array_foreach(json_object_get(answer, "nodes"), i, node) if (counts(node)) json_array_append(nodes, node);
	if (json_array_size(nodes) == 0) {
		sw_err_set(err, SW_ENOTFOUND, "the cluster has no GPUs at present");
		sw_err_detail(err, "no node is up");
		sw_err_hint(err, "Give its shape with --cluster.");
		return SW_ENOTFOUND;
	}
	return sw_cli_past_shape(nodes, ret_spec, err);
}
