/* What a record says that a replay of the history needs: all of it. Of jobs that is how the engine
 * was asked for them, and what people did to them. It is also when their runs began and ended, with
 * their time on GPUs. There are quotas, nodes and wake-ups, and what is known of models, too. A
 * change of the policy, of the world or of numbers is told as a mark.
 *
 *  1. Its owner and operators hear all of a job. Other users hear when it came, how many GPUs it
 *     has, and whether it is of an array or has a pre-run. They also hear when it was held,
 *     released, requeued or cancelled, when it began and how it ended. That is in lists of jobs and
 *     in the stream of events, too. They hear neither how its program uses memory nor how long it
 *     was on GPUs.
 *  2. A profile names a model and describes a program, and has no owner: operators alone hear it.
 *  3. Quotas and nodes are for all users, as in their lists, without the reasons of people.
 *  4. Fields that are zero are left out: so is a stop rule of which its owner said nothing.
 */
#include <string.h>

#include "api/when.h"
#include "brain/agents.h"
#include "brain/fold.h"
#include "brain/report.h"
#include "brain/state.h"
#include "brain/stops.h"
#include "core/spec.h"

static json_t *describe_spec(const struct sw_job_spec *spec)
{
	json_t *object = json_object();
	for (size_t r = 0; r < sw_spec_row_count; r++) {
		uint64_t value = sw_spec_get(spec, &sw_spec_rows[r]);
		if (value != 0)
			json_object_set_new(object, sw_spec_rows[r].name, json_integer(value < INT64_MAX ? (json_int_t)value : INT64_MAX));
	}
	return object;
}

static json_t *tell_asked(const struct sw_brain *brain, const struct sw_job_request *request, uint32_t uid)
{
	char own[SW_BRAIN_OWN_TENANT], when[SW_WHEN_SIZE], user[72];
	struct sw_job_spec spec = sw_brain_spec(brain, request, 0, false);
	/* What stops it where its owner said nothing is the world's affair: of the replay's. */
	if (request->preempt_by == SW_PREEMPT_UNSAID) {
		spec.stop_rule = SW_STOP_AS_WORLD;
		spec.prefers_home = false;
	}
	json_t *told = json_pack("{s:o, s:s}", "spec", describe_spec(&spec), "tenant", sw_brain_tenant_of(request, uid, own));
	if (spec.model != 0)
		json_object_set_new(told, "model", json_string(sw_profiles_by_number(brain->profiles, spec.model)->name));
	if (spec.deadline_at > 0 && spec.deadline_at <= SW_WHEN_MAX_NS)
		json_object_set_new(told, "deadline", json_string(sw_when_format(spec.deadline_at, when)));
	json_t *depends = json_array();
	for (size_t i = 0; i < request->depend_count; i++)
		json_array_append_new(depends, json_integer((json_int_t)request->depends[i].job));
	if (request->depend_count > 0)
		json_object_set(told, "depends", depends);
	json_decref(depends);
	if (request->name != NULL && request->name[0] != '\0')
		json_object_set_new(told, "name", json_string(request->name));
	json_object_set_new(told, "user", json_string(sw_stop_user(brain, uid, user, sizeof user)));
	return told;
}

static bool may_hear_all(const struct sw_user *user, uint32_t uid)
{
	return user->is_operator || user->uid == uid;
}

/* A member of an array is as the job before it. */
static json_t *tell_submit(const struct sw_brain *brain, const struct sw_user *user, json_t *body)
{
	SW_CLEANUP(sw_job_request_freep) struct sw_job_request *request = NULL;
	if (json_object_get(body, "member") != NULL)
		return json_pack("{s:b, s:b}", "member", 1, "prerun", !json_is_false(json_object_get(body, "prerun")));
	json_t *wanted = json_object_get(body, "request");
	uint32_t uid = (uint32_t)json_integer_value(json_object_get(body, "uid"));
	if (wanted == NULL || sw_job_request_from_json(sw_job_stored, wanted, &request, NULL) < 0)
		return json_object(); /* it has a number all the same */
	const struct sw_job_spec least = {.gpus = request->gpus};
	json_t *told = may_hear_all(user, uid) ? tell_asked(brain, request, uid) : json_pack("{s:o}", "spec", describe_spec(&least));
	json_object_set_new(told, "prerun", json_boolean(request->prerun_ns > 0 && request->gpus > 1));
	return told;
}

/* What the job had got by then, in nanoseconds; nothing where an earlier version recorded that. */
static void tell_got(json_t *told, const struct sw_user *user, sw_ns at, json_t *body)
{
	json_int_t ran = json_integer_value(json_object_get(body, "ran")), since = json_integer_value(json_object_get(body, "since"));
	uint32_t uid = (uint32_t)json_integer_value(json_object_get(body, "uid"));
	ran += since > 0 && at > since ? at - since : 0;
	if (ran <= 0 || !may_hear_all(user, uid))
		return;
	json_object_set_new(told, "ran_ns", json_integer(ran));
	json_object_set_new(told, "stops", json_integer(json_integer_value(json_object_get(body, "stops"))));
}

static json_t *tell_change(enum sw_record_kind kind, const struct sw_user *user, sw_ns at, json_t *body)
{
	json_t *told = json_pack("{s:I}", "job", json_integer_value(json_object_get(body, "job")));
	if (kind == SW_RECORD_HOLD)
		json_object_set_new(told, "leaves", json_boolean(json_is_true(json_object_get(body, "leaves"))));
	if (kind == SW_RECORD_CANCEL)
		tell_got(told, user, at, body);
	return told;
}

static bool is_exit(json_t *body)
{
	const char *state = json_string_value(json_object_get(body, "state"));
	return state != NULL && strcmp(state, "exited") == 0;
}

static json_t *tell_exit(const struct sw_user *user, sw_ns at, const struct sw_report *report, json_t *body)
{
	const char *how = report->code == 0 && report->signal == 0 && report->reason[0] == '\0' ? "completed"
			  : strcmp(report->reason, SW_REASON_TIME_LIMIT) == 0			? "timed out"
												: "failed";
	json_t *told = json_pack("{s:I, s:s}", "job", (json_int_t)report->job, "how", how);
	tell_got(told, user, at, body);
	return told;
}

/* That a run has begun or ended, and whether its GPU memory leaves its GPUs while it is suspended;
 * that again when it changes. A job that has left the brain has no owner here: operators alone
 * hear of its memory. */
static json_t *tell_run(const struct sw_brain *brain, const struct sw_user *user, sw_ns at, json_t *body)
{
	struct sw_report report;
	if (sw_report_read(body, &report, NULL) < 0)
		return NULL;
	if (report.state == SW_REPORT_EXITED)
		return tell_exit(user, at, &report, body);
	const struct sw_live *live = sw_brain_live(brain, report.job);
	bool all = user->is_operator || (live != NULL && may_hear_all(user, live->uid));
	bool begins = report.state == SW_REPORT_RUNNING;
	bool frees = report.state == SW_REPORT_FREES || report.state == SW_REPORT_OFF;
	if (!begins && (!all || (!frees && report.state != SW_REPORT_STAYS)))
		return NULL;
	return json_pack("{s:I, s:b, s:b}", "job", (json_int_t)report.job, "begins", begins, "frees",
			 all && (frees || (begins && strcmp(report.reason, SW_BRAIN_FREES) == 0)));
}

static json_t *tell_quota(json_t *body)
{
	const char *tenant = json_string_value(json_object_get(body, "tenant"));
	json_int_t gpus = json_integer_value(json_object_get(body, "gpus"));
	return tenant != NULL ? json_pack("{s:s, s:o}", "tenant", tenant, "gpus", gpus < 0 ? json_null() : json_integer(gpus)) : NULL;
}

/* The numbers of GPUs that take no jobs; NULL: the record does not say. */
static json_t *tell_shut(const struct sw_brain *brain, const char *name, json_t *body)
{
	json_t *shut = json_object_get(body, "shut"), *list, *entry;
	const struct sw_brain_node *node = sw_brain_find_node(brain, name);
	size_t i;
	if (shut == NULL || node == NULL)
		return NULL;
	list = json_array();
	for (uint32_t g = 0; g < node->shape.gpus; g++)
		json_array_foreach(shut, i, entry)
		{
			const char *gpu = json_string_value(json_object_get(entry, "gpu"));
			if (gpu == NULL || strcmp(gpu, node->gpus[g].uuid) != 0)
				continue;
			json_array_append_new(list, json_integer(g));
			break;
		}
	return list;
}

static json_t *tell_node(const struct sw_brain *brain, json_t *body)
{
	const char *name = json_string_value(json_object_get(body, "name"));
	json_t *told = name != NULL ? json_pack("{s:s}", "node", name) : NULL;
	json_t *shut = told != NULL ? tell_shut(brain, name, body) : NULL;
	if (shut != NULL)
		json_object_set_new(told, "shut", shut);
	return told;
}

static const char *word_of(enum sw_record_kind kind, json_t *body)
{
	switch (kind) {
	case SW_RECORD_SUBMIT:
		return "submit";
	case SW_RECORD_CANCEL:
		return "cancel";
	case SW_RECORD_REQUEUE:
		return "requeue";
	case SW_RECORD_POLICY:
		return "policy";
	case SW_RECORD_WORLD:
		return "world";
	case SW_RECORD_NUMBERS:
		return "numbers";
	case SW_RECORD_HOLD:
		return "hold";
	case SW_RECORD_RELEASE:
		return "release";
	case SW_RECORD_REPORT:
		return is_exit(body) ? "exit" : "run";
	case SW_RECORD_QUOTA:
		return "quota";
	case SW_RECORD_PROFILE:
		return "profile";
	case SW_RECORD_NODE:
		return "node";
	case SW_RECORD_NODE_LOST:
	case SW_RECORD_NODE_REMOVE:
		return "node_removed";
	case SW_RECORD_NODE_SILENT:
		return "node_unreachable";
	case SW_RECORD_NODE_CLOSE:
		return "node_closed";
	case SW_RECORD_NODE_OPEN:
		return "node_opened";
	case SW_RECORD_GPUS:
		return "gpus";
	case SW_RECORD_WAKE:
		return "wake";
	default:
		return NULL;
	}
}

static json_t *tell_mark(enum sw_record_kind kind, json_t *body)
{
	if (kind == SW_RECORD_NUMBERS)
		return json_pack("{s:I}", "above", json_integer_value(json_object_get(body, "above")));
	return kind == SW_RECORD_POLICY ? json_pack("{s:s*}", "policy", json_string_value(json_object_get(body, "policy")))
					: json_pack("{s:s*}", "world", json_string_value(json_object_get(body, "name")));
}

static json_t *tell(const struct sw_brain *brain, const struct sw_user *user, enum sw_record_kind kind, sw_ns at, json_t *body)
{
	switch (kind) {
	case SW_RECORD_SUBMIT:
		return tell_submit(brain, user, body);
	case SW_RECORD_CANCEL:
	case SW_RECORD_HOLD:
	case SW_RECORD_RELEASE:
	case SW_RECORD_REQUEUE:
		return tell_change(kind, user, at, body);
	case SW_RECORD_POLICY:
	case SW_RECORD_WORLD:
	case SW_RECORD_NUMBERS:
		return tell_mark(kind, body);
	case SW_RECORD_REPORT:
		return tell_run(brain, user, at, body);
	case SW_RECORD_QUOTA:
		return tell_quota(body);
	case SW_RECORD_PROFILE:
		return user->is_operator ? json_deep_copy(body) : NULL;
	case SW_RECORD_WAKE:
		return json_object();
	default:
		return tell_node(brain, body);
	}
}

char *sw_brain_retell(const struct sw_brain *brain, const struct sw_user *user, uint64_t seq, sw_ns at, enum sw_record_kind kind,
		      const char *body, size_t size)
{
	char when[SW_WHEN_SIZE], *text = NULL;
	json_t *record = word_of(kind, NULL) != NULL ? json_loadb(body, size, 0, NULL) : NULL;
	const char *word = word_of(kind, record);
	json_t *told = record != NULL ? tell(brain, user, kind, at, record) : NULL;
	/* A controller with a fault may have stored any moment. */
	const char *moment = at >= 0 && at <= SW_WHEN_MAX_NS ? sw_when_format(at, when) : NULL;
	json_t *head = told != NULL ? json_pack("{s:I, s:s?, s:s}", "seq", (json_int_t)seq, "at", moment, "kind", word) : NULL;
	if (head != NULL && json_object_update_missing(head, told) == 0)
		text = json_dumps(head, JSON_COMPACT);
	json_decref(head);
	json_decref(told);
	json_decref(record);
	return text;
}
