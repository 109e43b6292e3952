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

/* A job that was looked at, whether it ran or not. */
struct seen {
	int64_t submitted_ns;
	uint32_t row; /* in the trace; UINT32_MAX: it has none */
};

struct gathering {
	struct sw_cli_past *past;
	int64_t now_ns;
	const struct sw_cli_events *events; /* NULL: not asked for */
	SW_VEC(int64_t) ended_ns;	    /* by job number less one; 0: not known */
	SW_VEC(struct seen) jobs;	    /* in their order */
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
static int64_t ready_ns(const struct gathering *all, const json_t *job)
{
	int64_t ready = moment(job, "submitted_at", all->now_ns);
	size_t i;
	json_t *number;
	json_array_foreach(json_object_get(json_object_get(job, "asked"), "depends"), i, number)
	{
		uint64_t id = (uint64_t)json_integer_value(number);
		if (id >= 1 && id <= all->ended_ns.count && all->ended_ns.items[id - 1] > ready)
			ready = all->ended_ns.items[id - 1];
	}
	return ready;
}

static int intern(struct sw_trace *trace, const json_t *job, const char *key, uint32_t *field)
{
	const char *text = sw_cli_text(job, key, "");
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

static int note_end(struct gathering *all, const json_t *job)
{
	int64_t id = sw_cli_number(job, "id", 0);
	if (id < 1 || id > UINT32_MAX)
		return 0;
	while (all->ended_ns.count < (uint64_t)id) {
		int64_t *slot = sw_vec_push(&all->ended_ns);
		if (slot == NULL)
			return SW_ENOMEM;
		*slot = 0;
	}
	all->ended_ns.items[id - 1] = moment(job, "ended_at", 0);
	return 0;
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

/* How long after its start its run was heard to have begun; -1: that cannot be told, since it
 * was stopped or goes on. */
static int64_t begins_after(const struct gathering *all, const json_t *job, int64_t ran_ns)
{
	uint64_t number = (uint64_t)sw_cli_number(job, "id", 0);
	int64_t ended = moment(job, "ended_at", 0);
	const struct sw_cli_events *events = all->events;
	if (ended == 0 || sw_cli_number(job, "preemptions", 1) > 0 || sw_cli_number(job, "restarts", 1) > 0)
		return -1;
	for (size_t i = sw_cli_events_of(events, number); i < events->happenings.count && events->happenings.items[i].job == number; i++)
		if (events->happenings.items[i].kind == SW_CLI_BEGAN && events->happenings.items[i].at_ns >= ended - ran_ns)
			return events->happenings.items[i].at_ns - (ended - ran_ns);
	return -1;
}

/* What was said last. */
static bool frees(const struct gathering *all, uint64_t number)
{
	const struct sw_cli_events *events = all->events;
	bool last = false;
	for (size_t i = sw_cli_events_of(events, number); i < events->happenings.count && events->happenings.items[i].job == number; i++)
		if (events->happenings.items[i].kind == SW_CLI_BEGAN || events->happenings.items[i].kind == SW_CLI_FREES)
			last = events->happenings.items[i].frees;
	return last;
}

static int take_told(struct gathering *all, const json_t *job, struct sw_trace_job *row)
{
	struct sw_trace *trace = all->past->trace;
	struct sw_trace_told *told = sw_vec_push(&trace->told);
	if (told == NULL)
		return SW_ENOMEM;
	*told = (struct sw_trace_told){.begins_after_ns = begins_after(all, job, row->duration_ns), .frees = frees(all, (uint64_t)row->id)};
	row->told = (uint32_t)trace->told.count;
	return 0;
}

static int take_job(struct gathering *all, const json_t *job)
{
	struct sw_trace *trace = all->past->trace;
	int64_t ran_ns = run_time(job, all->now_ns), gpus = sw_cli_number(job, "gpus", 0);
	uint64_t number = (uint64_t)sw_cli_number(job, "id", 0);
	all->past->hidden += json_object_get(job, "ran_s") == NULL;
	if (all->past->first == 0 || number < all->past->first)
		all->past->first = number;
	int r = note_end(all, job);
	struct seen *seen = r == 0 ? sw_vec_push(&all->jobs) : NULL;
	if (seen == NULL)
		return SW_ENOMEM;
	*seen = (struct seen){moment(job, "submitted_at", all->now_ns), UINT32_MAX};
	if (ran_ns <= 0 || ran_ns > SW_TRACE_MAX_NS || gpus < 1 || gpus > SW_TRACE_MAX_GPUS) {
		all->past->never_ran++;
		return 0;
	}
	struct sw_trace_job *row = sw_trace_add(trace);
	struct sw_trace_fate *fate = row != NULL ? sw_trace_fate_of(trace, row) : NULL;
	if (fate == NULL)
		return SW_ENOMEM;
	seen->row = (uint32_t)(trace->jobs.count - 1);
	row->id = sw_cli_number(job, "id", 0);
	row->submit_ns = ready_ns(all, job);
	row->duration_ns = ran_ns;
	row->gpus = (uint32_t)gpus;
	take_asked(json_object_get(job, "asked"), row);
	if (all->events != NULL && seen->submitted_ns < all->events->since_ns)
		all->past->rows++;
	else if (all->events != NULL && take_told(all, job, row) < 0)
		return SW_ENOMEM;
	fate->started_ns = moment(job, "started_at", SW_NEVER);
	fate->ended_ns = moment(job, "ended_at", all->now_ns);
	fate->preemptions = (uint32_t)sw_cli_number(job, "preemptions", 0);
	fate->end = (uint8_t)end_of(job);
	r = intern(trace, job, "name", &row->name);
	/* Its profile is found by what it said, or else by its name. */
	const json_t *asked = json_object_get(job, "asked");
	bool said = sw_cli_text(asked, "model", "")[0] != '\0';
	r = r < 0 ? r : intern(trace, said ? asked : job, said ? "model" : "name", &row->model);
	r = r < 0 ? r : intern(trace, job, "user", &row->user);
	return r < 0 ? r : intern(trace, job, "tenant", &row->tenant);
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

static int take_submit(struct sw_trace *trace, struct sw_trace_job *row, const struct sw_cli_submit *submit)
{
	uint32_t number;
	if (row->told == 0 || !submit->is_open) {
		row->told = 0;
		return 0;
	}
	trace->told.items[row->told - 1].spec = submit->spec;
	if (submit->model[0] != '\0' && sw_trace_intern(trace, submit->model, strlen(submit->model), &number) < 0)
		return SW_ENOMEM;
	if (submit->model[0] != '\0')
		row->model = number;
	row->deadline_ns = submit->deadline_ns;
	return 0;
}

/* Jobs have numbers in the order of their submits, and say when that was. Rows go from the
 * lowest number on, so that what is left is found from the end. */
static int match_submits(const struct gathering *all)
{
	struct sw_trace *trace = all->past->trace;
	const struct sw_cli_events *events = all->events;
	size_t job = all->jobs.count, submit = events->submits.count;
	while (job > 0) {
		const struct seen *seen = &all->jobs.items[job - 1];
		const struct sw_cli_submit *said = submit > 0 ? &events->submits.items[submit - 1] : NULL;
		struct sw_trace_job *row = seen->row != UINT32_MAX ? &trace->jobs.items[seen->row] : NULL;
		if (said != NULL && said->at_ns > seen->submitted_ns) {
			submit--;
			continue;
		}
		bool same = said != NULL && said->at_ns == seen->submitted_ns;
		bool is_covered = row != NULL && seen->submitted_ns >= events->since_ns;
		if (is_covered && take_holds(all, row, same ? said : NULL) < 0)
			return SW_ENOMEM;
		if (row != NULL && same && take_submit(trace, row, said) < 0)
			return SW_ENOMEM;
		if (row != NULL && !same)
			row->told = 0;
		submit -= same;
		job--;
	}
	return guess_begins(trace);
}

/* ---- all of them */

static int take_page(void *user, json_t *jobs, struct sw_err *err)
{
	struct gathering *all = user;
	size_t i;
	json_t *job;
	json_array_foreach(jobs, i, job) if (take_job(all, job) < 0) return no_memory(err);
	if (all->bar != NULL)
		sw_cli_progress_draw(all->bar, all->jobs.count, "jobs");
	return 0;
}

static int64_t since(int64_t at_ns, int64_t zero_ns)
{
	return at_ns == SW_NEVER ? SW_NEVER : at_ns > zero_ns ? at_ns - zero_ns : 0;
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
	return sw_trace_sort(trace);
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
	SW_CLEANUP(sw_freep) char *longer = NULL;
	struct sw_cli_progress bar;
	int r = sw_client_get(client, "/v1/cluster", &cluster, err);
	if (r < 0)
		return r;
	if (asprintf(&longer, "%sasked=true&", query) < 0)
		return no_memory(err);
	all->now_ns = moment(cluster, "now", 0);
	uint64_t total = count_jobs(cluster);
	if (total > MANY && sw_cli_terminal(stderr).is_terminal) {
		sw_cli_progress_start(&bar, total);
		all->bar = &bar;
	}
	r = sw_cli_each_page(client, longer, take_page, all, err);
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
	if (r == 0 && events != NULL && (match_submits(&all) < 0 || sw_cli_events_apply(events, past.trace) < 0))
		r = no_memory(err);
	if (r == 0 && settle(past.trace) < 0)
		r = no_memory(err);
	sw_vec_free(&all.ended_ns);
	sw_vec_free(&all.jobs);
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
