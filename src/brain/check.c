/* Whether a record fits the state, before anything changes: what the engine has bounds for,
 * and what a record names.
 *
 * It is asked twice. A request is refused by it before its record is stored. Records that were
 * stored together may each have fitted and not fit together. So it is asked again as each one is
 * applied, and one that does not fit changes nothing. The driver then sets it aside.
 */
#include <inttypes.h>
#include <string.h>

#include "brain/check.h"
#include "brain/fold.h"
#include "brain/forget.h"
#include "brain/questions.h"
#include "brain/record.h"
#include "brain/speakers.h"
#include "brain/state.h"
#include "brain/terms.h"

int sw_brain_check_node(const struct sw_brain *brain, const char *name, size_t gpus, bool is_new, struct sw_err *err)
{
	const struct sw_engine_room room = sw_engine_room(brain->engine);
	if (gpus > SW_NODE_GPUS_MAX)
		return sw_err_set(err, SW_EINPUT, "node '%.60s' has %zu GPUs, the most is %u", name, gpus, SW_NODE_GPUS_MAX);
	if (gpus <= room.gpus && (!is_new || room.nodes > 0))
		return 0;
	sw_err_set(err, SW_EINPUT, "there is no room for node '%.60s' with %zu GPUs", name, gpus);
	sw_err_detail(err, "a cluster has at most %u nodes and %u GPUs; there is room for %u nodes and %u GPUs more", SW_CLUSTER_NODES_MAX,
		      SW_CLUSTER_GPUS_MAX, room.nodes, room.gpus);
	return SW_EINPUT;
}

int sw_brain_check_jobs(const struct sw_brain *brain, uint64_t count, struct sw_err *err)
{
	uint32_t room = sw_engine_room(brain->engine).jobs;
	if (count <= room)
		return 0;
	sw_err_set(err, SW_EINPUT, "there is no room for %" PRIu64 " more job%s", count, count == 1 ? "" : "s");
	sw_err_detail(err, "there is room for %u", room);
	return SW_EINPUT;
}

static int check_submit(const struct sw_brain *brain, json_t *body, struct sw_err *err)
{
	json_t *member = json_object_get(body, "member");
	if (member != NULL && (brain->array_refused || !json_is_integer(member)))
		return sw_err_set(err, SW_EINPUT, "a submit record goes on with an array that is not there");
	if (member == NULL && (!json_is_integer(json_object_get(body, "uid")) || !json_is_integer(json_object_get(body, "gid")) ||
			       !json_is_object(json_object_get(body, "request"))))
		return sw_err_set(err, SW_EINPUT, "a submit record lacks a field");
	return sw_brain_check_jobs(brain, 2, err); /* it may have a pre-run */
}

static int check_node(const struct sw_brain *brain, json_t *body, struct sw_err *err)
{
	const char *name = json_string_value(json_object_get(body, "name"));
	json_t *gpus = json_object_get(body, "gpus");
	if (name == NULL || !json_is_array(gpus))
		return sw_err_set(err, SW_EINPUT, "a node record lacks a field");
	for (size_t g = 0; g < json_array_size(gpus); g++)
		if (!json_is_string(json_array_get(gpus, g)))
			return sw_err_set(err, SW_EINPUT, "a node record has a GPU without a name");
	bool is_new = sw_brain_find_node(brain, name) == NULL;
	if (!is_new && !json_is_true(json_object_get(body, "changed")))
		return 0;
	return sw_brain_check_node(brain, name, json_array_size(gpus), is_new, err);
}

static int check_job(const struct sw_brain *brain, json_t *body, struct sw_err *err)
{
	json_t *job = json_object_get(body, "job");
	if (!json_is_integer(job))
		return sw_err_set(err, SW_EINPUT, "a record lacks its job");
	/* One that has left in the meantime is no fault of the record. */
	if (sw_brain_live(brain, (uint64_t)json_integer_value(job)) == NULL && !sw_brain_has_left(brain, json_integer_value(job)))
		return sw_err_set(err, SW_EINPUT, "a record names job %lld, which is not there", (long long)json_integer_value(job));
	return 0;
}

static int check_door(const struct sw_brain *brain, json_t *body, struct sw_err *err)
{
	const char *name = json_string_value(json_object_get(body, "name"));
	if (name == NULL || sw_brain_find_node(brain, name) == NULL)
		return sw_err_set(err, SW_EINPUT, "a record names a node that is not there");
	return 0;
}

static int check_shut(const struct sw_brain *brain, json_t *body, struct sw_err *err)
{
	if (!json_is_array(json_object_get(body, "shut")))
		return sw_err_set(err, SW_EINPUT, "a record of GPUs that take no jobs lacks their list");
	return check_door(brain, body, err);
}

/* A policy that is missing, or a file that a setting names, is no fault of the record: it may
 * only have been forgotten. */
static int check_policy(const struct sw_brain *brain, json_t *body, struct sw_err *err)
{
	const char *name = json_string_value(json_object_get(body, "policy"));
	if (name == NULL || !json_is_object(json_object_get(body, "settings")))
		return sw_err_set(err, SW_EINPUT, "a policy record lacks a field");
	const struct sw_policy *policy = sw_brain_find_policy(&brain->config, name);
	if (policy != NULL) {
		SW_CLEANUP(sw_params_freep) struct sw_params *params = NULL;
		return sw_brain_read_settings(policy, json_object_get(body, "settings"), &params, err);
	}
	sw_err_set(err, SW_ENOTFOUND, "there is no policy '%s'", name);
	sw_err_hint(err, "It was put in charge once: start the controller with --plugin and the file that it came from.");
	return SW_ENOTFOUND;
}

int sw_brain_check(struct sw_brain *brain, enum sw_record_kind kind, json_t *body, struct sw_err *err)
{
	int r = 0;
	switch (kind) {
	case SW_RECORD_SUBMIT:
		r = check_submit(brain, body, err);
		/* The members that follow a first one that was refused would go
		 * to the array before it. */
		if (json_object_get(body, "member") == NULL)
			brain->array_refused = r < 0;
		return r;
	case SW_RECORD_NODE:
		return check_node(brain, body, err);
	case SW_RECORD_CANCEL:
	case SW_RECORD_HOLD:
	case SW_RECORD_RELEASE:
	case SW_RECORD_REQUEUE:
	case SW_RECORD_LIMIT:
	case SW_RECORD_MOVE:
		return check_job(brain, body, err);
	case SW_RECORD_GPUS:
		return check_shut(brain, body, err);
	case SW_RECORD_NODE_LOST:
	case SW_RECORD_NODE_SILENT:
	case SW_RECORD_NODE_REMOVE:
	case SW_RECORD_NODE_CLOSE:
	case SW_RECORD_NODE_OPEN:
		return check_door(brain, body, err);
	case SW_RECORD_SPEAKER:
		return sw_speaker_check(brain, body, err);
	case SW_RECORD_NUMBERS:
		return json_integer_value(json_object_get(body, "above")) > 0
			       ? 0
			       : sw_err_set(err, SW_EINPUT, "a record of numbers lacks its number");
	case SW_RECORD_FORGET:
		return json_is_array(json_object_get(body, "jobs")) ? 0
								    : sw_err_set(err, SW_EINPUT, "a record of jobs that leave names none");
	case SW_RECORD_POLICY:
		return check_policy(brain, body, err);
	case SW_RECORD_WORLD:
		return sw_brain_check_world(body, err);
	case SW_RECORD_ANSWER:
		return sw_brain_check_answer(brain, body, err);
	default:
		return 0;
	}
}

void sw_brain_pass_over(struct sw_brain *brain, enum sw_record_kind kind, const char *body, size_t size)
{
	json_t *json = kind == SW_RECORD_SUBMIT ? sw_record_parse(body, size, NULL) : NULL;
	if (kind == SW_RECORD_SUBMIT && json_object_get(json, "member") == NULL)
		brain->array_refused = true;
	json_decref(json);
}
