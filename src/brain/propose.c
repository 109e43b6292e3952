/* Requests of people, checked against the state and turned into records. Nothing changes here. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/json.h"
#include "base/suggest.h"
#include "brain/bulk.h"
#include "brain/check.h"
#include "brain/keys.h"
#include "brain/prerun.h"
#include "brain/propose.h"
#include "brain/record.h"
#include "brain/state.h"
#include "brain/trouble.h"
#include "policy/registry.h"

/* What no cluster like this one could ever run is refused now, never left waiting. */
/* What stands beside each GPU: its own memory, processors, memory of the host. Some node must have
 * it for one GPU at least. */
static int check_beside(const struct sw_brain *brain, const struct sw_job_request *request, struct sw_err *err)
{
	uint32_t cpus = 0;
	uint64_t memory = 0, gpu_memory = 0;
	for (size_t n = 0; n < brain->nodes.count; n++) {
		const struct sw_topology_node *shape = &brain->nodes.items[n].shape;
		cpus = shape->cpus > cpus ? shape->cpus : cpus;
		memory = shape->memory_bytes > memory ? shape->memory_bytes : memory;
		gpu_memory = shape->gpu_memory_bytes > gpu_memory ? shape->gpu_memory_bytes : gpu_memory;
	}
	if (request->gpu_memory_bytes > gpu_memory) {
		sw_err_set(err, SW_EINPUT, "the job asks for more GPU memory than any GPU here has");
		sw_err_detail(err, "it asks for %" PRIu64 " MiB on each GPU, the largest has %" PRIu64, request->gpu_memory_bytes >> 20,
			      gpu_memory >> 20);
	} else if (request->cpus > cpus) {
		sw_err_set(err, SW_EINPUT, "the job asks for more processors than any node here has");
		sw_err_detail(err, "it asks for %u with each GPU, the largest node has %u", request->cpus, cpus);
	} else if (request->memory_bytes > memory) {
		sw_err_set(err, SW_EINPUT, "the job asks for more memory than any node here has");
		sw_err_detail(err, "it asks for %" PRIu64 " MiB with each GPU, the largest node has %" PRIu64, request->memory_bytes >> 20,
			      memory >> 20);
	} else {
		return 0;
	}
	sw_err_hint(err, "Ask for less; 'sharewell nodes' shows what there is.");
	return SW_EINPUT;
}

static int check_size(const struct sw_brain *brain, const struct sw_job_request *request, struct sw_err *err)
{
	uint32_t total = 0, largest = 0;
	for (size_t n = 0; n < brain->nodes.count; n++) {
		total += brain->nodes.items[n].shape.gpus;
		if (brain->nodes.items[n].shape.gpus > largest)
			largest = brain->nodes.items[n].shape.gpus;
	}
	if (brain->nodes.count == 0) /* no agent has come yet: not known */
		return 0;
	if (request->gpus > total) {
		int r = sw_err_set(err, SW_EINPUT, "the job asks for %u GPUs", request->gpus);
		sw_err_detail(err, "the cluster has %u, and its largest node %u", total, largest);
		sw_err_hint(err, "Ask for fewer, or add nodes first.");
		return r;
	}
	return check_beside(brain, request, err);
}

/* Of a job that has ended, here or as the driver remembers it. */
bool sw_brain_find_fate(const struct sw_brain *brain, uint64_t job, struct sw_fate *ret_fate)
{
	const struct sw_live *live = sw_brain_live(brain, job);
	const struct sw_brain_config *config = &brain->config;
	if (live == NULL)
		return job >= 1 && job <= brain->jobs.count && config->find_fate != NULL &&
		       config->find_fate(config->find_context, job, ret_fate);
	*ret_fate = (struct sw_fate){.job = job,
				     .ok = sw_engine_job(brain->engine, (struct sw_job_id){(uint32_t)(job - 1)})->state == SW_JOB_FINISHED,
				     .uid = live->uid};
	return live->is_over;
}

static int check_depends(const struct sw_brain *brain, const struct sw_job_request *request, struct sw_err *err)
{
	struct sw_fate fate;
	for (size_t d = 0; d < request->depend_count; d++)
		if (sw_brain_live(brain, request->depends[d].job) == NULL && !sw_brain_find_fate(brain, request->depends[d].job, &fate))
			return sw_err_set(err, SW_EINPUT, "the job depends on job %llu, which does not exist",
					  (unsigned long long)request->depends[d].job);
	return 0;
}

/* The pre-run that is made of it must be a request, too: its name is longer. */
static int check_prerun(const struct sw_job_request *request, struct sw_err *err)
{
	if (request->prerun_ns <= 0 || request->gpus < 2)
		return 0;
	SW_CLEANUP(sw_job_request_freep) struct sw_job_request *first = sw_prerun_request(request);
	return first != NULL ? sw_job_request_check("the pre-run", first, err) : sw_err_set(err, SW_ENOMEM, "out of memory");
}

/* What became of those that have ended: they may have left when the record is applied. */
static void write_fates(const struct sw_brain *brain, const struct sw_job_request *request, struct sw_json *json)
{
	struct sw_fate fate;
	bool any = false;
	for (size_t d = 0; d < request->depend_count; d++) {
		if (!sw_brain_find_fate(brain, request->depends[d].job, &fate))
			continue;
		if (!any) {
			sw_json_key(json, "past");
			sw_json_array(json);
		}
		any = true;
		sw_json_object(json);
		sw_json_key_u64(json, "job", fate.job);
		sw_json_key_bool(json, "ok", fate.ok);
		sw_json_end_object(json);
	}
	if (any)
		sw_json_end_array(json);
}

/* The request without its large parts, which go to `texts`. What would be said of them at the
 * submit is said now: the fold does not see them. */
static char *encode_slim(const struct sw_brain *brain, const struct sw_job_request *request, struct sw_record_text texts[SW_BULKS],
			 char **ret_warning)
{
	char *text = sw_job_request_encode(request);
	SW_CLEANUP(sw_job_request_freep) struct sw_job_request *slim = NULL;
	struct sw_live trial = {0};
	if (text == NULL || brain->config.load_text == NULL || strlen(text) < SW_BULK_LEAST)
		return text;
	slim = sw_job_request_copy(request);
	if (slim == NULL || sw_bulk_take(brain, slim, texts) < 0) {
		for (int b = 0; b < SW_BULKS; b++)
			free(texts[b].bytes);
		free(text);
		return NULL;
	}
	free(text);
	sw_brain_warn(brain, &trial, request);
	*ret_warning = trial.warning;
	return sw_job_request_encode(slim);
}

/* The submit as values, for its record; NULL: it has parts that are told elsewhere, or there is no
 * memory for what only saves time. */
static struct sw_said *say(const struct sw_user *user, const struct sw_job_request *request, const char *text,
			   const struct sw_submit_key *key)
{
	SW_CLEANUP(sw_said_freep) struct sw_said *said = request->depend_count == 0 ? calloc(1, sizeof *said) : NULL;
	if (said == NULL)
		return NULL;
	said->rest = json_pack("{s:i, s:i, s:{}}", "uid", (int)user->uid, "gid", (int)user->gid, "request");
	said->request = sw_job_request_copy(request);
	said->text = strdup(text);
	bool good = said->rest != NULL && said->request != NULL && said->text != NULL;
	if (good && key != NULL)
		good = json_object_set_new(said->rest, "key", json_string(key->text)) == 0 &&
		       json_object_set_new(said->rest, "digest", json_integer((json_int_t)key->digest)) == 0 &&
		       json_object_set_new(said->rest, "count", json_integer(key->count)) == 0;
	return good ? SW_TAKE(said) : NULL;
}

/* The text is put together without a detour through a tree. */
static int push_submit(const struct sw_brain *brain, const struct sw_user *user, const struct sw_job_request *request,
		       const struct sw_submit_key *key, sw_records *records, struct sw_err *err)
{
	struct sw_record_text texts[SW_BULKS] = {0};
	SW_CLEANUP(sw_freep) char *warning = NULL;
	SW_CLEANUP(sw_freep) char *text = encode_slim(brain, request, texts, &warning);
	struct sw_json json = {0};
	if (text == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	sw_json_object(&json);
	sw_json_key_i64(&json, "gid", (int)user->gid);
	write_fates(brain, request, &json);
	sw_bulk_write(&json, texts);
	if (warning != NULL)
		sw_json_key_string(&json, "warning", warning);
	sw_json_key(&json, "request");
	sw_json_raw(&json, text, strlen(text));
	sw_json_key_i64(&json, "uid", (int)user->uid);
	if (key != NULL) {
		sw_json_key_string(&json, "key", key->text);
		sw_json_key_i64(&json, "digest", (int64_t)key->digest);
		sw_json_key_u64(&json, "count", key->count);
	}
	sw_json_end_object(&json);
	size_t size = json.size;
	int r = sw_record_push_text(records, SW_RECORD_SUBMIT, sw_json_take(&json, NULL), size, err);
	struct sw_record *record = r == 0 ? &records->items[records->count - 1] : NULL;
	if (record != NULL)
		memcpy(record->texts, texts, sizeof texts);
	if (record != NULL && texts[SW_BULK_ENV].bytes == NULL && texts[SW_BULK_COMMAND].bytes == NULL)
		record->said = say(user, request, text, key);
	for (int b = 0; r < 0 && b < SW_BULKS; b++)
		free(texts[b].bytes);
	return r;
}

/* Thousands of these may be one request, each with a whole environment: that is told once. */
int sw_brain_propose_others(const struct sw_job_request *request, uint32_t count, sw_records *records, struct sw_err *err)
{
	uint32_t step = request->array_step > 0 ? request->array_step : 1;
	/* The first has the pre-run of them all. */
	const char *prerun = request->prerun_ns > 0 && request->gpus > 1 ? ",\"prerun\":false" : "";
	char limit[32] = "";
	if (request->array_limit > 0)
		snprintf(limit, sizeof limit, ",\"limit\":%u", request->array_limit);
	int r = 0;
	for (uint32_t i = 1; r == 0 && i < count; i++) {
		char *text = NULL;
		int size = asprintf(&text, "{\"member\":%u%s%s}", request->array_first + i * step, prerun, limit);
		r = sw_record_push_text(records, SW_RECORD_SUBMIT, size >= 0 ? text : NULL, size >= 0 ? (size_t)size : 0, err);
	}
	return r;
}

int sw_brain_propose_submit(struct sw_brain *brain, const struct sw_user *user, const struct sw_job_request *request, sw_records *records,
			    struct sw_err *err)
{
	return sw_brain_propose_keyed_submit(brain, user, request, NULL, records, err);
}

/* Asked here and not where requests are read: journals have jobs that were let in with both. */
static int check_lost(const struct sw_job_request *request, struct sw_err *err)
{
	if (!request->no_requeue || request->on_lost != SW_ON_LOST_RESTART)
		return 0;
	sw_err_set(err, SW_EINPUT, "cannot submit this job");
	sw_err_detail(err, "'requeue: false' forbids a second start, 'on_lost: restart' asks for one");
	sw_err_hint(err, "With 'on_lost: wait' it runs on and is found again when its node answers.");
	return SW_EINPUT;
}

int sw_brain_propose_keyed_submit(struct sw_brain *brain, const struct sw_user *user, const struct sw_job_request *request,
				  const struct sw_submit_key *key, sw_records *records, struct sw_err *err)
{
	int r = check_size(brain, request, err);
	if (r == 0)
		r = check_depends(brain, request, err);
	if (r == 0)
		r = check_prerun(request, err);
	if (r == 0)
		r = check_lost(request, err);
	if (r == 0)
		r = sw_brain_check_jobs(brain, 2, err);
	/* What the operator chose for a class stands in the record from now on. */
	struct sw_job_request chosen = *request;
	if (request->on_lost == SW_ON_LOST_UNSAID && !request->no_requeue && brain->config.restarts[request->kind]) {
		chosen.on_lost = SW_ON_LOST_RESTART;
		chosen.lease_ns = SW_JOB_LEASE_NS;
	}
	return r < 0 ? r : push_submit(brain, user, &chosen, key, records, err);
}

bool sw_brain_find_key(const struct sw_brain *brain, sw_ns now, const struct sw_user *user, const char *text, struct sw_submit_key *ret_key,
		       uint64_t *ret_first)
{
	const struct sw_key *key = sw_keys_find(&brain->keys, now, user->uid, text);
	if (key == NULL)
		return false;
	*ret_key = (struct sw_submit_key){key->text, key->digest, key->count};
	*ret_first = key->first;
	return true;
}

/* Whether the policy starts with these parameters, in an engine of its own. */
static int try_policy(struct sw_brain *brain, const struct sw_policy *policy, const struct sw_params *params, struct sw_err *err)
{
	SW_CLEANUP(sw_topology_freep) struct sw_topology *nothing = NULL;
	SW_CLEANUP(sw_engine_freep) struct sw_engine *engine = NULL;
	struct sw_engine_config config;
	if (sw_topology_new_empty(&nothing) < 0)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	int r = sw_brain_engine_config(brain, &config, err);
	if (r < 0)
		return r;
	config.policy = policy;
	config.params = params;
	config.topology = nothing;
	return sw_engine_new(&config, &engine, err);
}

int sw_brain_propose_policy(struct sw_brain *brain, const struct sw_user *user, const char *name, const char *const *settings, size_t count,
			    sw_records *records, struct sw_err *err)
{
	if (!user->is_operator)
		return sw_err_set(err, SW_EDENIED, "only operators change the policy");
	const struct sw_policy *policy = sw_brain_find_policy(&brain->config, name);
	if (policy == NULL) {
		const char *names[64];
		size_t known = 0;
		for (; sw_policies[known] != NULL && known < 63; known++)
			names[known] = sw_policies[known]->name;
		for (size_t p = 0; sw_policies_packed(p) != NULL && known < 63; p++)
			names[known++] = sw_policies_packed(p)->name;
		if (brain->config.plugin != NULL)
			names[known++] = brain->config.plugin->name;
		const char *near = sw_suggest(name, names, known, sizeof names[0]);
		int r = sw_err_set(err, SW_ENOTFOUND, "there is no policy '%.60s'", name);
		if (near != NULL)
			sw_err_hint(err, "Did you mean '%s'?", near);
		else
			sw_err_hint(err, "'sharewell policy' lists those that there are.");
		return r;
	}
	SW_CLEANUP(sw_params_freep) struct sw_params *trial = NULL;
	int r = sw_params_new(policy, &trial, err);
	json_t *object = json_object();
	for (size_t s = 0; r == 0 && s < count; s++) {
		const char *equals = strchr(settings[s], '=');
		char parameter[64];
		if (equals == NULL || (size_t)(equals - settings[s]) >= sizeof parameter) {
			r = sw_err_set(err, SW_EINPUT, "'%.60s' is not of the form name=value", settings[s]);
			break;
		}
		snprintf(parameter, sizeof parameter, "%.*s", (int)(equals - settings[s]), settings[s]);
		const struct sw_param *param = sw_params_find(policy, parameter, err);
		r = param == NULL ? SW_EINPUT : sw_params_set(trial, param, equals + 1, strlen(equals + 1), err);
		if (r == 0 && json_object_set_new(object, parameter, json_string(equals + 1)) != 0)
			r = sw_err_set(err, SW_ENOMEM, "out of memory");
	}
	r = r < 0 ? r : try_policy(brain, policy, trial, err);
	if (r < 0) {
		json_decref(object);
		return r;
	}
	return sw_record_push(records, SW_RECORD_POLICY, json_pack("{s:s, s:o}", "policy", policy->name, "settings", object), err);
}

int sw_brain_propose_door(struct sw_brain *brain, const struct sw_user *user, const char *name, bool closed, const char *why,
			  sw_records *records, struct sw_err *err)
{
	if (!user->is_operator)
		return sw_err_set(err, SW_EDENIED, "only operators %s nodes", closed ? "drain" : "resume");
	const struct sw_brain_node *node = sw_brain_find_node(brain, name);
	if (node == NULL) {
		int r = sw_err_set(err, SW_ENOTFOUND, "there is no node '%.60s'", name);
		sw_err_hint(err, "'sharewell nodes' lists those there are.");
		return r;
	}
	char clean[sizeof node->closed_why];
	sw_failure_clean(why, strlen(why), clean, sizeof clean);
	return sw_record_push(records, closed ? SW_RECORD_NODE_CLOSE : SW_RECORD_NODE_OPEN,
			      json_pack("{s:s, s:i, s:s}", "name", node->name, "by", (int)user->uid, "why", clean), err);
}

int sw_brain_propose_quota(struct sw_brain *brain, const struct sw_user *user, const char *tenant, uint32_t gpus, sw_records *records,
			   struct sw_err *err)
{
	(void)brain;
	if (!user->is_operator)
		return sw_err_set(err, SW_EDENIED, "only operators change quotas");
	if (tenant[0] == '\0' || strlen(tenant) > 128)
		return sw_err_set(err, SW_EINPUT, "a tenant's name has 1 to 128 characters");
	json_int_t number = gpus == UINT32_MAX ? -1 : (json_int_t)gpus;
	return sw_record_push(records, SW_RECORD_QUOTA, json_pack("{s:s, s:I}", "tenant", tenant, "gpus", number), err);
}
