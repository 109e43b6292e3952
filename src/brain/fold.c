/* The fold: journal records applied to the state, one by one. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "brain/agents.h"
#include "brain/arrays.h"
#include "brain/asked.h"
#include "brain/bulk.h"
#include "brain/changes.h"
#include "brain/check.h"
#include "brain/dependents.h"
#include "brain/fold.h"
#include "brain/forget.h"
#include "brain/gpu_types.h"
#include "brain/keys.h"
#include "brain/known.h"
#include "brain/limits.h"
#include "brain/moves.h"
#include "brain/prerun.h"
#include "brain/questions.h"
#include "brain/record.h"
#include "brain/report.h"
#include "brain/reshape.h"
#include "brain/runs.h"
#include "brain/shut.h"
#include "brain/silence.h"
#include "brain/slowdowns.h"
#include "brain/speakers.h"
#include "brain/speeds.h"
#include "brain/state.h"
#include "brain/terms.h"
#include "brain/trouble.h"
#include "failure/decide.h"

static int find_tenant(struct sw_brain *brain, const char *name, uint32_t *ret_tenant)
{
	uint32_t tenant = sw_names_find(&brain->tenant_index, name);
	if (tenant == SW_NAMES_NONE) {
		tenant = (uint32_t)brain->tenants.count;
		SW_CLEANUP(sw_freep) char *copy = strdup(name);
		if (copy == NULL || sw_vec_reserve(&brain->tenants, tenant + 1) < 0 || sw_names_add(&brain->tenant_index, copy, tenant) < 0)
			return SW_ENOMEM;
		*sw_vec_push(&brain->tenants) = SW_TAKE(copy);
	}
	*ret_tenant = tenant;
	return 0;
}

/* ---- steps of the engine */

int sw_brain_step(struct sw_brain *brain, const struct sw_event *events, size_t count, struct sw_err *err)
{
	struct sw_step outcome;
	int r = (brain->gathers ? sw_engine_hear : sw_engine_step)(brain->engine, brain->now, events, count, &outcome, err);
	if (r < 0)
		return r;
	brain->wake_at = outcome.wake_at;
	if (sw_brain_obey(brain, &outcome) < 0)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	for (size_t e = 0; e < count; e++)
		if (events[e].kind == SW_EV_CANCEL || events[e].kind == SW_EV_FINISH || events[e].kind == SW_EV_FAIL)
			if (sw_depends_end(brain, events[e].job.v) < 0)
				return sw_err_set(err, SW_ENOMEM, "out of memory");
	return 0;
}

int sw_brain_tell(struct sw_brain *brain, struct sw_event fact, struct sw_err *err)
{
	struct sw_step outcome;
	int r = sw_engine_hear(brain->engine, brain->now, &fact, 1, &outcome, err);
	if (r < 0)
		return r;
	/* The engine wakes when it would have. After a change of policy it refuses the jobs that
	 * have no place any more as soon as it hears anything. */
	return sw_brain_obey(brain, &outcome) < 0 ? sw_err_set(err, SW_ENOMEM, "out of memory") : 0;
}

static int step_one(struct sw_brain *brain, struct sw_event event, struct sw_err *err)
{
	return sw_brain_step(brain, &event, 1, err);
}

/* ---- applying records */

/* No work is lost by a default. The terms say how a job may be stopped whose owner said nothing.
 * Those of a live cluster let it go on where it was. */
static enum sw_stop_rule rule_of(const struct sw_brain *brain, const struct sw_job_request *request)
{
	switch (request->preempt_by) {
	case SW_PREEMPT_BY_REQUEUE:
		return SW_STOP_RESTART;
	case SW_PREEMPT_NEVER:
		return SW_STOP_NEVER;
	case SW_PREEMPT_UNSAID:
		return request->kind == SW_CLASS_OPPORTUNISTIC ? brain->terms.opportunistic_stop : brain->terms.guaranteed_stop;
	default:
		return SW_STOP_SUSPEND;
	}
}

static bool suspends(enum sw_stop_rule rule)
{
	return rule == SW_STOP_SUSPEND || rule == SW_STOP_IF_FREE;
}

struct sw_job_spec sw_brain_spec(const struct sw_brain *brain, const struct sw_job_request *request, uint32_t tenant, bool waits)
{
	uint32_t retries = request->retries_said ? request->retries : SW_FAILURE_RETRIES;
	return (struct sw_job_spec){
		.gpus = request->gpus,
		.min_gpus = request->min_gpus,
		.max_gpus = request->max_gpus,
		.tenant = tenant,
		.weight_milli = request->weight_milli,
		.gpu_memory_bytes = request->gpu_memory_bytes,
		.gpu_floor_bytes = request->gpu_floor_bytes,
		.host_memory_bytes = request->memory_bytes,
		.cpus = request->cpus,
		.model = sw_brain_model(brain, request),
		.use_milli = (uint16_t)request->gpu_use_milli,
		.retries = (uint16_t)(retries > UINT16_MAX ? UINT16_MAX : retries),
		.job_class = request->kind == SW_CLASS_OPPORTUNISTIC ? SW_CLASS_OPPORTUNISTIC : SW_CLASS_GUARANTEED,
		.is_auto = request->kind == SW_CLASS_AUTO,
		.knowledge = request->expected_ns > 0 ? SW_PREDICTED : SW_UNKNOWN,
		.work_ns = request->expected_ns,
		.deadline_at = request->deadline_at_ns > 0 ? request->deadline_at_ns : SW_TIME_NEVER,
		.held = request->held || waits,
		.cannot_pause = request->bare_gpu,
		.prefers_home = suspends(rule_of(brain, request)),
		.stop_rule = (uint8_t)rule_of(brain, request),
		.no_restart = request->no_requeue,
	};
}

const char *sw_brain_tenant_of(const struct sw_job_request *request, uint32_t uid, char own[SW_BRAIN_OWN_TENANT])
{
	snprintf(own, SW_BRAIN_OWN_TENANT, "uid%u", uid);
	return request->tenant != NULL && request->tenant[0] != '\0' ? request->tenant : own;
}

/* The first job of a request with a key stands for all of them: their numbers follow each other. */
static int keep_key(struct sw_brain *brain, json_t *body, uint64_t first)
{
	const char *text = NULL;
	json_int_t digest = 0, count = 1;
	if (json_unpack(body, "{s?s, s?I, s?I}", "key", &text, "digest", &digest, "count", &count) != 0 || text == NULL)
		return 0;
	assert(first > 0 && first <= brain->jobs.count);
	const struct sw_live *live = &brain->jobs.items[first - 1];
	const struct sw_key key = {
		.digest = (uint64_t)digest, .first = first, .at = brain->now, .uid = live->uid, .count = (uint32_t)count};
	return sw_keys_add(&brain->keys, text, &key);
}

static int read_fates(struct sw_asked *asked, json_t *list)
{
	size_t count = json_array_size(list);
	if (count == 0)
		return 0;
	asked->fates = calloc(count, sizeof *asked->fates);
	if (asked->fates == NULL)
		return SW_ENOMEM;
	for (size_t i = 0; i < count; i++) {
		json_t *fate = json_array_get(list, i);
		asked->fates[asked->fate_count++] = (struct sw_fate){.job = (uint64_t)json_integer_value(json_object_get(fate, "job")),
								     .ok = json_is_true(json_object_get(fate, "ok"))};
	}
	return 0;
}

/* What the record asks for becomes the model; *ret_uid and *ret_gid name the user. `said` has the
 * request; NULL: it is read. */
static int read_submit(struct sw_brain *brain, json_t *body, struct sw_said *said, uint32_t *ret_uid, uint32_t *ret_gid, struct sw_err *err)
{
	json_t *wanted;
	int uid, gid;
	if (json_unpack(body, "{s:i, s:i, s:o}", "uid", &uid, "gid", &gid, "request", &wanted) != 0)
		return sw_err_set(err, SW_EBUG, "a submit record lacks a field");
	SW_CLEANUP(sw_job_request_freep) struct sw_job_request *request = said != NULL ? SW_TAKE(said->request) : NULL;
	int r = request == NULL ? sw_job_request_from_json(sw_job_stored, wanted, &request, err) : 0;
	if (r < 0)
		return r;
	/* Of a member, the text says nothing of its index. */
	SW_CLEANUP(sw_asked_dropp)
	struct sw_asked *asked = said != NULL && !request->is_member ? sw_asked_copy(said->text) : sw_asked_new(request);
	const char *warning = json_string_value(json_object_get(body, "warning"));
	if (asked == NULL || read_fates(asked, json_object_get(body, "past")) < 0 ||
	    (warning != NULL && (asked->warning = strdup(warning)) == NULL))
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	r = sw_bulk_read(brain, body, asked, err);
	if (r < 0)
		return r;
	sw_job_request_free(brain->model);
	sw_asked_drop(brain->model_of);
	brain->model = SW_TAKE(request);
	brain->model_of = SW_TAKE(asked);
	*ret_uid = (uint32_t)uid;
	*ret_gid = (uint32_t)gid;
	return 0;
}

/* One more member: the same as the job before, under another index. */
static int read_member(struct sw_brain *brain, json_int_t index, uint32_t *ret_uid, uint32_t *ret_gid, struct sw_err *err)
{
	const struct sw_live *before = sw_brain_live(brain, brain->jobs.count);
	if (before == NULL || !before->is_member || index < 0 || index > UINT32_MAX)
		return sw_err_set(err, SW_EBUG, "a submit record goes on with an array that is not there");
	if (brain->model == NULL || brain->model_of != before->asked) {
		SW_CLEANUP(sw_job_request_freep) struct sw_job_request *request = NULL;
		int r = sw_asked_decode(before, &request, err);
		if (r < 0)
			return r;
		sw_job_request_free(brain->model);
		sw_asked_drop(brain->model_of);
		brain->model = SW_TAKE(request);
		brain->model_of = sw_asked_share(before->asked);
		brain->model_first = sw_array_first(brain, brain->jobs.count);
	}
	brain->model->is_member = true;
	brain->model->array_index = (uint32_t)index;
	*ret_uid = before->uid;
	*ret_gid = before->gid;
	return 0;
}

/* The command by which failures are counted; of a large one the digest says which it is. */
static uint64_t command_key(const struct sw_job_request *request, const struct sw_asked *asked)
{
	uint64_t key = sw_brain_command_key(request);
	const struct sw_bulk *bulk = &asked->bulk[SW_BULK_COMMAND];
	return bulk->size > 0 ? sw_hash_bytes(key, bulk->digest, sizeof bulk->digest) : key;
}

/* One job of a submit. Takes `asked`. */
static int add_job(struct sw_brain *brain, uint32_t uid, uint32_t gid, const struct sw_job_request *request, struct sw_asked *asked,
		   struct sw_awaited awaited, struct sw_err *err)
{
	uint32_t tenant;
	char own[SW_BRAIN_OWN_TENANT];
	struct sw_live *live = NULL;
	if (asked != NULL && find_tenant(brain, sw_brain_tenant_of(request, uid, own), &tenant) == 0)
		live = sw_brain_add(brain);
	if (live == NULL) {
		sw_asked_drop(asked);
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	}
	*live = (struct sw_live){
		.asked = asked,
		.is_member = request->is_member,
		.array_index = request->array_index,
		.array_first = request->is_member ? (uint32_t)brain->model_first : 0,
		.name = strdup(request->name != NULL ? request->name : ""),
		.model = request->model != NULL ? strdup(request->model) : NULL,
		.uid = uid,
		.gid = gid,
		.tenant = tenant,
		.last_node = UINT32_MAX,
		.submitted_at = brain->now,
		.started_at = SW_TIME_NEVER,
		.ended_at = SW_TIME_NEVER,
		.user_held = request->held,
		.asked_retries = request->retries_said,
		.command_hash = command_key(request, asked),
		.parks = suspends(rule_of(brain, request)),
		.held_by = SW_NOBODY,
		.lease_ns = request->on_lost == SW_ON_LOST_RESTART ? request->lease_ns : 0,
		.grace_ns = request->grace_ns,
	};
	if (live->name == NULL || (request->model != NULL && live->model == NULL) ||
	    sw_depends_begin(brain, (uint32_t)brain->jobs.count - 1, request, &awaited) < 0)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	if (asked->uses == NULL)
		sw_brain_warn(brain, live, request);
	else if (asked->warning != NULL)
		live->warning = strdup(asked->warning);
	if (brain->jobs.count == 1 || live[-1].asked != asked) /* once for an array */
		sw_brain_warn_model(brain, live, request);
	struct sw_job_spec spec = sw_brain_spec(brain, request, tenant, live->depend_count > 0);
	int r = step_one(brain, (struct sw_event){.kind = SW_EV_SUBMIT, .spec = &spec}, err);
	/* Both number jobs as they come. */
	assert(r < 0 || sw_engine_job(brain->engine, (struct sw_job_id){(uint32_t)brain->jobs.count - 1}) != NULL);
	return r < 0 ? r : sw_depends_judge(brain, (uint32_t)brain->jobs.count - 1, err);
}

static int add_prerun(struct sw_brain *brain, uint32_t uid, uint32_t gid, const struct sw_job_request *request, struct sw_err *err)
{
	SW_CLEANUP(sw_job_request_freep) struct sw_job_request *first = sw_prerun_request(request);
	struct sw_asked *asked = first != NULL ? sw_asked_new(first) : NULL;
	bool good = asked != NULL;
	for (int b = 0; b < SW_BULKS && good; b++)
		good = brain->model_of->bulk[b].size == 0 || sw_asked_add_bulk(brain, asked, b, &brain->model_of->bulk[b]) == 0;
	if (!good) {
		sw_asked_drop(asked);
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	}
	int r = add_job(brain, uid, gid, first, asked, (struct sw_awaited){0}, err);
	if (r == 0) {
		struct sw_live *live = sw_brain_live(brain, brain->jobs.count);
		live->is_prerun = true;
		live->array_first = live->is_member ? (uint32_t)brain->jobs.count : 0;
	}
	return r;
}

/* That of its first member, before which it was made. */
static uint64_t prerun_of_array(const struct sw_brain *brain)
{
	const struct sw_live *before = brain->model_first > 1 ? &brain->jobs.items[brain->model_first - 2] : NULL;
	return before != NULL && before->is_prerun ? brain->model_first - 1 : 0;
}

static int apply_submit(struct sw_brain *brain, json_t *body, struct sw_said *said, uint64_t *ret_job, struct sw_err *err)
{
	const json_t *member = json_object_get(body, "member");
	uint32_t uid = 0, gid = 0;
	int r = member != NULL ? read_member(brain, json_integer_value(member), &uid, &gid, err)
			       : read_submit(brain, body, said, &uid, &gid, err);
	if (r < 0)
		return r;
	const struct sw_job_request *request = brain->model;
	struct sw_awaited awaited = {0};
	json_int_t limit = json_integer_value(json_object_get(body, "limit"));
	bool in_two = request->prerun_ns > 0 && request->gpus > 1;
	if (member != NULL && json_is_false(json_object_get(body, "prerun"))) {
		awaited.prerun = prerun_of_array(brain);
	} else if (in_two) {
		r = add_prerun(brain, uid, gid, request, err);
		awaited.prerun = brain->jobs.count;
	}
	if (member == NULL)
		brain->model_first = brain->jobs.count + 1;
	else if (limit > 0 && brain->jobs.count + 1 - brain->model_first >= (uint64_t)limit)
		awaited.slots = (uint64_t)limit;
	if (r == 0)
		r = add_job(brain, uid, gid, request, sw_asked_share(brain->model_of), awaited, err);
	if (r == 0 && keep_key(brain, body, brain->jobs.count) < 0)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	*ret_job = brain->jobs.count;
	return r < 0 ? r : sw_brain_settle(brain, err);
}

/* A node that is not known. It owns the GPUs then. */
static int add_node(struct sw_brain *brain, const char *name, const struct sw_topology_node *shape, struct sw_brain_gpu **gpus, bool leases,
		    struct sw_err *err)
{
	SW_CLEANUP(sw_freep) char *copy = strdup(name);
	if (copy == NULL || sw_vec_reserve(&brain->nodes, brain->nodes.count + 1) < 0 ||
	    sw_names_add(&brain->node_index, copy, (uint32_t)brain->nodes.count) < 0)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	struct sw_brain_node *node = sw_vec_push(&brain->nodes);
	*node = (struct sw_brain_node){
		.name = SW_TAKE(copy),
		.gpus = SW_TAKE(*gpus),
		.shape = *shape,
		.up = true,
		.version = 1,
		.leases = leases,
		.heard_at = brain->now,
		.answered_at = brain->now,
	};
	struct sw_event events[] = {{.kind = SW_EV_NODE_ADD, .shape = &node->shape},
				    {.kind = SW_EV_GPUS_SHUT,
				     .node = {(uint32_t)brain->nodes.count - 1},
				     .mask = sw_brain_shut_mask(node->gpus, node->shape.gpus)}};
	/* Both at once: no job is put on what is shut. */
	return sw_brain_step(brain, events, events[1].mask != 0 ? 2 : 1, err);
}

static int apply_node(struct sw_brain *brain, json_t *body, struct sw_err *err)
{
	const char *name, *gpu = NULL;
	json_t *gpus, *shut = NULL;
	json_int_t cpus, memory, gpu_memory;
	int changed = 0, leases = 0; /* journals of earlier versions do not say, and went on with what they knew */
	if (json_unpack(body, "{s:s, s:I, s:I, s:I, s:o, s?b, s?o, s?b, s?s}", "name", &name, "cpus", &cpus, "memory_bytes", &memory,
			"gpu_memory_bytes", &gpu_memory, "gpus", &gpus, "changed", &changed, "shut", &shut, "leases", &leases, "gpu",
			&gpu) != 0)
		return sw_err_set(err, SW_EBUG, "a node record lacks a field");
	struct sw_brain_node *node = sw_brain_find_node(brain, name);
	if (node != NULL)
		node->leases = leases != 0;
	if (node != NULL && !changed) {
		uint32_t number = (uint32_t)(node - brain->nodes.items);
		node->up = true;
		if (shut != NULL)
			sw_brain_take_shut(node->gpus, node->shape.gpus, shut);
		struct sw_event events[] = {
			{.kind = SW_EV_NODE_UP, .node = {number}},
			{.kind = SW_EV_GPUS_SHUT, .node = {number}, .mask = sw_brain_shut_mask(node->gpus, node->shape.gpus)}};
		int r = sw_brain_step(brain, events, shut != NULL ? 2 : 1, err);
		return r < 0 ? r : sw_brain_end_silence(brain, node, err);
	}
	size_t count = json_array_size(gpus);
	SW_CLEANUP(sw_freep) struct sw_brain_gpu *list = calloc(count + 1, sizeof *list);
	if (list == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	for (size_t g = 0; g < count; g++)
		snprintf(list[g].uuid, sizeof list[g].uuid, "%s", json_string_value(json_array_get(gpus, g)));
	if (shut != NULL)
		sw_brain_take_shut(list, (uint32_t)count, shut);
	uint32_t gpu_type = 0;
	if (sw_brain_find_gpu_type(brain, gpu, &gpu_type) < 0)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	const struct sw_topology_node shape = {.gpus = (uint32_t)count,
					       .gpu_type = gpu_type,
					       .cpus = (uint32_t)cpus,
					       .memory_bytes = (uint64_t)memory,
					       .gpu_memory_bytes = (uint64_t)gpu_memory};
	if (node == NULL)
		return add_node(brain, name, &shape, &list, leases != 0, err);
	int r = sw_brain_reshape(brain, node, &shape, SW_TAKE(list), err);
	return r < 0 ? r : sw_brain_end_silence(brain, node, err);
}

static int apply_node_lost(struct sw_brain *brain, json_t *body, struct sw_err *err)
{
	const char *name;
	struct sw_brain_node *node = json_unpack(body, "{s:s}", "name", &name) == 0 ? sw_brain_find_node(brain, name) : NULL;
	if (node == NULL)
		return sw_err_set(err, SW_EBUG, "a record names a node that is not there");
	node->up = false;
	while (node->ghosts.count > 0)
		sw_brain_lay_ghost(brain, node, node->ghosts.count - 1);
	int r = step_one(brain, (struct sw_event){.kind = SW_EV_NODE_DOWN, .node = {(uint32_t)(node - brain->nodes.items)}}, err);
	return r < 0 ? r : sw_brain_settle(brain, err); /* some may not start a second time */
}

/* Whether a suspended run that ended did so by itself, before it stood still. */
static bool ended_by_itself(int signal, const char *reason)
{
	return reason[0] == '\0' ? signal == 0 : strcmp(reason, SW_REASON_TIME_LIMIT) == 0 || strcmp(reason, SW_REASON_MEMORY_LIMIT) == 0;
}

/* Whether something else than the job ended the run, so that its code says
 * nothing about the job. */
static bool is_interruption(const char *reason)
{
	static const char *const reasons[] = {
		SW_REASON_STOPPED,  SW_REASON_LEASE, SW_REASON_NEVER_STARTED, SW_REASON_STALE, SW_REASON_SUPERVISOR_LOST,
		SW_REASON_SHUTDOWN, "lost"};
	for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
		if (strcmp(reason, reasons[i]) == 0)
			return true;
	return false;
}

/* Once all of its parts run, the engine hears whether the run can be suspended: its processes stand
 * still, whatever holds its GPU memory. Unless its owner said that it may be, it is only where that
 * memory leaves the GPUs. */
static int tell_keeps(struct sw_brain *brain, uint32_t id, struct sw_err *err)
{
	const struct sw_live *live = &brain->jobs.items[id];
	bool frees = true;
	for (uint32_t r = 0; r < live->run_count; r++) {
		if (live->runs[r].heard != SW_HEARD_RUNNING)
			return 0;
		frees = frees && (live->runs[r].frees || live->runs[r].off) && !live->runs[r].held;
	}
	if (!live->parks)
		return 0;
	bool keeps = frees || sw_engine_job(brain->engine, (struct sw_job_id){id})->stop_rule == SW_STOP_SUSPEND;
	return step_one(brain, (struct sw_event){.kind = SW_EV_KEEPS, .job = {id}, .epoch = live->epoch, .gpus = keeps, .frees = frees},
			err);
}

/* Suspended, it holds its GPU memory still: jobs that were to come there cannot. */
static int hear_held(struct sw_brain *brain, struct sw_run *run, uint32_t id, struct sw_err *err)
{
	const struct sw_live *live = &brain->jobs.items[id];
	if (!sw_brain_is_suspended(brain, live))
		return 0;
	run->held = true;
	sw_brain_touch(brain, live);
	return step_one(brain, (struct sw_event){.kind = SW_EV_STAY, .job = {id}, .epoch = live->epoch, .where = run->node}, err);
}

/* What it does while it runs, and leaves on its GPUs while it is suspended. */
static int hear_frees(struct sw_brain *brain, struct sw_run *run, uint32_t id, bool frees, struct sw_err *err)
{
	run->frees = frees;
	return frees || !sw_brain_is_suspended(brain, &brain->jobs.items[id]) ? tell_keeps(brain, id, err) : hear_held(brain, run, id, err);
}

int sw_brain_lose_suspended(struct sw_brain *brain, uint32_t id, struct sw_err *err)
{
	struct sw_live *live = &brain->jobs.items[id];
	uint32_t epoch = live->epoch;
	if (sw_brain_drop_runs(brain, id) < 0)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	assert(live->run_count == 0);
	int r = step_one(brain, (struct sw_event){.kind = SW_EV_FAIL, .job = {id}, .epoch = epoch, .left_ns = -1, .verdict = SW_FAIL_FREE},
			 err);
	if (r < 0 || sw_engine_job(brain->engine, (struct sw_job_id){id})->state <= SW_JOB_RUNNING)
		return r;
	live->ended_at = brain->now;
	return sw_brain_settle(brain, err);
}

/* Its run starts, or goes on. */
static int hear_start(struct sw_brain *brain, const struct sw_brain_node *node, struct sw_run *run, const struct sw_report *report,
		      struct sw_err *err)
{
	struct sw_live *live = sw_brain_live(brain, report->job);
	const struct sw_event begun = {.kind = SW_EV_BEGUN, .job = {(uint32_t)(report->job - 1)}, .epoch = live->epoch};
	bool begins = run->heard < SW_HEARD_RUNNING && report->state != SW_REPORT_STARTING;
	run->leased = run->heard == SW_HEARD_NOTHING ? node->leases : run->leased;
	run->heard = report->state == SW_REPORT_STARTING ? SW_HEARD_STARTING : SW_HEARD_RUNNING;
	run->frees = strcmp(report->reason, SW_BRAIN_FREES) == 0;
	if (live->started_at == SW_TIME_NEVER && run->heard == SW_HEARD_RUNNING)
		live->started_at = brain->now;
	int r = begins ? sw_brain_tell(brain, begun, err) : 0;
	return r < 0 ? r : tell_keeps(brain, (uint32_t)(report->job - 1), err);
}

static int hear_exit(struct sw_brain *brain, struct sw_run *run, const struct sw_report *report, struct sw_err *err)
{
	struct sw_live *live = sw_brain_live(brain, report->job);
	uint32_t id = (uint32_t)(report->job - 1);
	run->heard = SW_HEARD_EXITED;
	run->code = report->code;
	run->signal = report->signal;
	if (sw_brain_is_suspended(brain, live) && !ended_by_itself(report->signal, report->reason)) {
		snprintf(live->reason, sizeof live->reason, "lost while suspended");
		return sw_brain_lose_suspended(brain, id, err);
	}
	int r = report->failure != NULL ? sw_brain_note_failure(brain, id, run->node, report->failure, err) : 0;
	if (r < 0)
		return r;
	snprintf(live->reason, sizeof live->reason, "%s", report->reason);
	live->timed_out = strcmp(report->reason, SW_REASON_TIME_LIMIT) == 0;
	if (live->started_at == SW_TIME_NEVER)
		live->started_at = brain->now;
	/* Something else ended it, or a part of it: what is left of it stops, and it runs anew. */
	if (is_interruption(report->reason))
		return sw_brain_end_run(brain, id, true, err);
	for (uint32_t i = 0; i < live->run_count; i++)
		if (live->runs[i].heard != SW_HEARD_EXITED)
			return 0; /* the others of the gang */
	return sw_brain_end_run(brain, id, false, err);
}

static void hear_gone(struct sw_brain *brain, struct sw_brain_node *node, const struct sw_report *report)
{
	for (size_t g = node->ghosts.count; g-- > 0;)
		if (node->ghosts.items[g].job + UINT64_C(1) == report->job && node->ghosts.items[g].epoch == report->epoch)
			sw_brain_lay_ghost(brain, node, g);
}

static int hear_report(struct sw_brain *brain, struct sw_brain_node *node, struct sw_run *run, const struct sw_report *report,
		       struct sw_err *err)
{
	struct sw_live *live = sw_brain_live(brain, report->job);
	uint32_t id = (uint32_t)(report->job - 1);
	int r = 0;
	assert(live != NULL && live->epoch == report->epoch);
	switch (report->state) {
	case SW_REPORT_OFF:
		run->off = run->frees = sw_brain_is_suspended(brain, live) && live->deep;
		return tell_keeps(brain, id, err);
	case SW_REPORT_FREES:
	case SW_REPORT_STAYS:
		return hear_frees(brain, run, id, report->state == SW_REPORT_FREES, err);
	case SW_REPORT_HELD:
		return hear_held(brain, run, id, err);
	case SW_REPORT_REFUSED:
		r = sw_brain_is_suspended(brain, live) && live->deep ? sw_brain_refuse_deep(brain, id, report->reason) : 0;
		return r < 0 ? sw_err_set(err, SW_ENOMEM, "out of memory") : 0;
	case SW_REPORT_MOVED:
	case SW_REPORT_UNMOVED:
		return sw_brain_end_move(brain, id, report->state == SW_REPORT_UNMOVED ? report->reason : NULL, err);
	case SW_REPORT_EXITED:
		return hear_exit(brain, run, report, err);
	default:
		return hear_start(brain, node, run, report, err);
	}
}

static int apply_report(struct sw_brain *brain, json_t *body, struct sw_err *err)
{
	struct sw_report report;
	if (sw_report_read(body, &report, err) < 0)
		return SW_EBUG;
	struct sw_brain_node *node = sw_brain_find_node(brain, report.node);
	struct sw_live *live = sw_brain_live(brain, report.job);
	if (node != NULL && report.state == SW_REPORT_GONE) {
		hear_gone(brain, node, &report);
		return 0;
	}
	/* Journals of earlier versions: what goes on here was stopped and started anew there, and
	 * this is of its next run. */
	bool is_next = live != NULL && sw_brain_leaves(brain, live) != 0 && live->epoch + 1 == report.epoch;
	const struct sw_event anew = {.kind = SW_EV_ANEW, .job = {(uint32_t)(report.job - 1)}, .epoch = is_next ? live->epoch : 0};
	if (is_next && sw_brain_step(brain, &anew, 1, err) < 0)
		return SW_ENOMEM;
	struct sw_run *run = node != NULL && live != NULL && live->epoch == report.epoch
				     ? sw_brain_run_on(live, (uint32_t)(node - brain->nodes.items))
				     : NULL;
	return run != NULL ? hear_report(brain, node, run, &report, err) : 0; /* else: about a run that is over */
}

static int apply_door(struct sw_brain *brain, json_t *body, bool closed, struct sw_err *err)
{
	const char *name, *why = "";
	struct sw_brain_node *node =
		json_unpack(body, "{s:s, s?s}", "name", &name, "why", &why) == 0 ? sw_brain_find_node(brain, name) : NULL;
	if (node == NULL)
		return sw_err_set(err, SW_EBUG, "a record names a node that is not there");
	brain->closed_nodes += (uint32_t)closed - (node->closed != SW_OPEN);
	node->closed = closed ? SW_CLOSED_BY_OPERATOR : SW_OPEN;
	snprintf(node->closed_why, sizeof node->closed_why, "%s", why);
	memset(node->faults, 0, sizeof node->faults);
	if (node->silent) /* to the engine it is closed anyway, until it is back */
		return 0;
	return step_one(
		brain,
		(struct sw_event){.kind = closed ? SW_EV_NODE_CLOSE : SW_EV_NODE_OPEN, .node = {(uint32_t)(node - brain->nodes.items)}},
		err);
}

static int apply_quota(struct sw_brain *brain, json_t *body, struct sw_err *err)
{
	const char *name;
	json_int_t gpus;
	uint32_t tenant;
	if (json_unpack(body, "{s:s, s:I}", "tenant", &name, "gpus", &gpus) != 0)
		return sw_err_set(err, SW_EBUG, "a quota record lacks a field");
	if (find_tenant(brain, name, &tenant) < 0)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	return step_one(brain, (struct sw_event){.kind = SW_EV_QUOTA, .tenant = tenant, .gpus = gpus < 0 ? UINT32_MAX : (uint32_t)gpus},
			err);
}

int sw_brain_read_settings(const struct sw_policy *policy, json_t *settings, struct sw_params **ret_params, struct sw_err *err)
{
	SW_CLEANUP(sw_params_freep) struct sw_params *params = NULL;
	int r = sw_params_new(policy, &params, err);
	const char *name;
	json_t *value;
	json_object_foreach(settings, name, value)
	{
		const struct sw_param *param = r == 0 ? sw_params_find(policy, name, err) : NULL;
		const char *text = json_string_value(value);
		if (param == NULL || text == NULL)
			return r < 0 ? r : SW_EINPUT;
		r = sw_params_set(params, param, text, strlen(text), err);
	}
	if (r < 0)
		return r;
	*ret_params = SW_TAKE(params);
	return 0;
}

static int apply_policy(struct sw_brain *brain, json_t *body, struct sw_err *err)
{
	const char *name;
	json_t *settings;
	if (json_unpack(body, "{s:s, s:o}", "policy", &name, "settings", &settings) != 0)
		return sw_err_set(err, SW_EBUG, "a policy record lacks a field");
	const struct sw_policy *policy = sw_brain_find_policy(&brain->config, name);
	if (policy == NULL) {
		sw_err_set(err, SW_ENOTFOUND, "there is no policy '%s'", name);
		sw_err_hint(err, "It was put in charge once: start the controller with --plugin and the file that it came from.");
		return SW_ENOTFOUND;
	}
	SW_CLEANUP(sw_params_freep) struct sw_params *params = NULL;
	SW_CLEANUP(sw_freep) char *copy = strdup(policy->name);
	SW_CLEANUP(sw_freep) char *text = json_dumps(settings, JSON_COMPACT | JSON_SORT_KEYS);
	if (copy == NULL || text == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	int r = sw_brain_read_settings(policy, settings, &params, err);
	if (r == 0)
		r = sw_engine_set_policy(brain->engine, policy, params, err);
	if (r < 0)
		return r;
	if (brain->params != NULL)
		sw_params_free(brain->params);
	brain->params = SW_TAKE(params);
	free(brain->policy);
	free(brain->settings);
	brain->policy = SW_TAKE(copy);
	brain->settings = SW_TAKE(text);
	return sw_brain_step(brain, NULL, 0, err);
}

static int apply(struct sw_brain *brain, enum sw_record_kind kind, json_t *body, struct sw_said *said, uint64_t *ret_made,
		 struct sw_err *err)
{
	switch (kind) {
	case SW_RECORD_SUBMIT:
		return apply_submit(brain, body, said, ret_made, err);
	case SW_RECORD_CANCEL:
	case SW_RECORD_HOLD:
	case SW_RECORD_RELEASE:
	case SW_RECORD_REQUEUE:
		return sw_brain_apply_change(brain, kind, body, err);
	case SW_RECORD_NODE:
		return apply_node(brain, body, err);
	case SW_RECORD_SPEAKER:
		return sw_speaker_apply(brain, body, err);
	case SW_RECORD_NODE_LOST:
		return apply_node_lost(brain, body, err);
	case SW_RECORD_NODE_SILENT:
		return sw_brain_apply_silence(brain, body, err);
	case SW_RECORD_NODE_REMOVE:
		return sw_brain_apply_remove(brain, body, err);
	case SW_RECORD_REPORT:
		return apply_report(brain, body, err);
	case SW_RECORD_WAKE:
		return sw_brain_settle_and_step(brain, err);
	case SW_RECORD_POLICY:
		return apply_policy(brain, body, err);
	case SW_RECORD_WORLD:
		return sw_brain_apply_world(brain, body, err);
	case SW_RECORD_ANSWER:
		return sw_brain_apply_answer(brain, body, err);
	case SW_RECORD_QUOTA:
		return apply_quota(brain, body, err);
	case SW_RECORD_NODE_CLOSE:
	case SW_RECORD_NODE_OPEN:
		return apply_door(brain, body, kind == SW_RECORD_NODE_CLOSE, err);
	case SW_RECORD_LIMIT:
		return sw_brain_apply_limit(brain, body, err);
	case SW_RECORD_MOVE:
		return sw_brain_apply_move(brain, body, err);
	case SW_RECORD_GPUS:
		return sw_brain_apply_shut(brain, body, err);
	case SW_RECORD_SPEED:
		return sw_brain_apply_speeds(brain, body, err);
	case SW_RECORD_FORGET:
		return sw_brain_apply_forget(brain, body, err);
	case SW_RECORD_NUMBERS:
		return sw_brain_skip_numbers(brain, (uint64_t)json_integer_value(json_object_get(body, "above")), err);
	case SW_RECORD_PROFILE:
		return sw_brain_apply_profile(brain, body, err);
	default:
		return sw_err_set(err, SW_ELIMIT, "the journal holds a record of kind %d, which this version does not know", (int)kind);
	}
}

static int apply_body(struct sw_brain *brain, sw_ns at, enum sw_record_kind kind, json_t *body, struct sw_said *said, uint64_t *ret_job,
		      struct sw_err *err)
{
	uint64_t made = 0;
	int r = sw_brain_check(brain, kind, body, err);
	if (r < 0)
		return r;
	/* A clock that was wrong by centuries wrote what is beyond: a state of that time
	 * could not be read again. */
	if (at > brain->now && at <= SW_ENGINE_TIME_MAX)
		brain->now = at;
	sw_brain_learn(brain);
	bool is_change = kind >= SW_RECORD_CANCEL && kind <= SW_RECORD_REQUEUE;
	r = is_change && json_object_get(body, "more") != NULL ? 0 : sw_brain_conclude_changes(brain, err);
	if (r == 0)
		r = apply(brain, kind, body, said, &made, err);
	if (r == 0)
		r = sw_brain_strand(brain, err);
	/* It may have come half of the way. */
	if (r == SW_EINPUT || r == SW_ENOTFOUND)
		r = SW_EBUG;
	if (r == 0 && ret_job != NULL)
		*ret_job = made;
	return r;
}

int sw_brain_apply(struct sw_brain *brain, sw_ns at, enum sw_record_kind kind, const char *body, size_t size, uint64_t *ret_job,
		   struct sw_err *err)
{
	json_t *json = sw_record_parse(body, size, err);
	int r = json != NULL ? apply_body(brain, at, kind, json, NULL, ret_job, err) : SW_EINPUT;
	json_decref(json);
	return r;
}

int sw_brain_apply_record(struct sw_brain *brain, sw_ns at, struct sw_record *record, uint64_t *ret_job, struct sw_err *err)
{
	SW_CLEANUP(sw_said_freep) struct sw_said *said = SW_TAKE(record->said);
	if (said == NULL)
		return sw_brain_apply(brain, at, record->kind, record->body, record->size, ret_job, err);
	return apply_body(brain, at, record->kind, said->rest, said, ret_job, err);
}
