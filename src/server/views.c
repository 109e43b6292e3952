/* Jobs as JSON, for callers that may see all of them and for those that may not. */
#include <pwd.h>
#include <string.h>

#include "api/views.h"
#include "api/when.h"
#include "base/number.h"
#include "server/company.h"
#include "server/past.h"
#include "server/state.h"
#include "server/uses.h"
#include "server/views.h"
#include "server/waiting.h"

/* Jobs that are counted at one go. */
#define COUNTED_AT_ONCE 20000u

#define NAMES_KEPT 1024u

bool sw_may_see(const struct sw_peer *peer, const struct sw_job_view *view)
{
	return peer->user.is_operator || ((peer->roles & SW_ROLE_USER) != 0 && peer->user.uid == view->uid);
}

void sw_write_time(struct sw_json *json, const char *key, int64_t ns)
{
	char text[SW_WHEN_SIZE];
	sw_json_key(json, key);
	if (ns < 0 || ns > SW_WHEN_MAX_NS) /* SW_TIME_NEVER is one of these */
		sw_json_null(json);
	else
		sw_json_string(json, sw_when_format(ns, text));
}

const char *sw_user_name(struct sw_server *server, uint32_t uid)
{
	for (size_t i = 0; i < server->user_names.count; i++)
		if (server->user_names.items[i].uid == uid)
			return server->user_names.items[i].name;
	/* Few users, asked for often, and the system may have to ask others. */
	if (server->user_names.count == NAMES_KEPT)
		server->user_names.count = 0;
	struct sw_user_name *slot = sw_vec_push(&server->user_names);
	if (slot == NULL)
		return "";
	const struct passwd *entry = getpwuid(uid);
	slot->uid = uid;
	if (entry != NULL && strlen(entry->pw_name) < sizeof slot->name)
		memcpy(slot->name, entry->pw_name, strlen(entry->pw_name) + 1);
	else
		snprintf(slot->name, sizeof slot->name, "%u", uid);
	return slot->name;
}

/* Why its last failed run failed, where one did. */
static void write_failure(struct sw_json *json, const struct sw_job_view *view)
{
	sw_json_key(json, "failure");
	if (view->failure[0] == '\0') {
		sw_json_null(json);
		return;
	}
	sw_json_object(json);
	sw_json_key_string(json, "class", view->failure);
	sw_json_key_string(json, "layer", view->failure_layer);
	sw_json_key_string(json, "line", view->failure_line);
	sw_json_key_string(json, "says", view->failure_says);
	sw_json_key_string(json, "hint", view->failure_hint);
	sw_json_key_string(json, "done", view->failure_done);
	sw_json_end_object(json);
}

void sw_write_stop(struct sw_server *server, struct sw_json *json, uint64_t job)
{
	struct sw_stop_view stop;
	sw_json_key(json, "stop");
	if (!sw_brain_stop(server->brain, job, &stop)) {
		sw_json_null(json);
		return;
	}
	sw_json_object(json);
	sw_json_key_string(json, "kind", stop.kind);
	sw_write_time(json, "at", stop.at);
	sw_json_key_string(json, "by", stop.by);
	sw_json_key(json, "user");
	if (stop.uid != UINT32_MAX)
		sw_json_string(json, sw_user_name(server, stop.uid));
	else
		sw_json_null(json);
	sw_json_key(json, "job");
	if (stop.job != 0)
		sw_json_u64(json, stop.job);
	else
		sw_json_null(json);
	sw_json_key_string(json, "why", stop.why);
	sw_json_key_string(json, "next", stop.next);
	sw_write_time(json, "until", stop.until);
	sw_json_end_object(json);
}

static void write_span(struct sw_json *json, const char *key, int64_t ns)
{
	sw_json_key(json, key);
	if (ns > 0)
		sw_json_decimal(json, ns, SW_NS_PER_S);
	else
		sw_json_null(json);
}

static void write_amount(struct sw_json *json, const char *key, uint64_t amount)
{
	sw_json_key(json, key);
	if (amount > 0)
		sw_json_u64(json, amount);
	else
		sw_json_null(json);
}

static void write_limit(struct sw_json *json, const struct sw_job_view *view)
{
	sw_json_key(json, "limit");
	if (view->limit_bytes == 0 && view->limit_milli == 0) {
		sw_json_null(json);
		return;
	}
	sw_json_object(json);
	write_amount(json, "gpu_memory", view->limit_bytes);
	write_amount(json, "compute", view->limit_milli / 10);
	sw_json_end_object(json);
}

/* How it does on its GPUs, where its agents have said so. */
static void write_use(struct sw_server *server, struct sw_json *json, const struct sw_job_view *view)
{
	struct sw_use use;
	sw_json_key(json, "gpu");
	if (!sw_uses_sum(&server->machines, server->brain, view->id, &use)) {
		sw_json_null(json);
		return;
	}
	sw_json_object(json);
	sw_json_key_u64(json, "memory_bytes", use.memory_bytes);
	write_amount(json, "limit_bytes", use.limit_bytes);
	sw_json_key_u64(json, "host_bytes", use.host_bytes);
	write_span(json, "iteration_s", (int64_t)use.iteration_ns);
	sw_json_key_u64(json, "outside_processes", use.outside);
	sw_json_key_bool(json, "trespass", use.trespass);
	sw_json_key(json, "compute");
	if (use.has_share)
		sw_json_decimal(json, use.share_milli, 10);
	else
		sw_json_null(json);
	sw_json_key_bool(json, "yields", use.yields);
	sw_write_time(json, "sampled_at", use.sampled_at_ns);
	sw_json_end_object(json);
}

/* Where one that is suspended in place stands with its GPUs: a word, and what
 * it adds to the reason. */
static const char *name_depth(const struct sw_job_view *view, char *reason, size_t size)
{
	static const char *const words[] = {NULL, "leaving", "off", "refused"};
	static const char *const more[] = {"", ", on its way off its GPUs whole", ", off its GPUs whole", "; "};
	size_t used = strlen(reason);
	snprintf(reason + used, size - used, "%s%s", more[view->depth], view->depth == SW_DEPTH_REFUSED ? view->not_deep : "");
	return words[view->depth];
}

void sw_write_job_details(struct sw_server *server, struct sw_json *json, const struct sw_job_view *view)
{
	char reason[400];
	if (view->held_by != UINT32_MAX)
		snprintf(reason, sizeof reason, "suspended by user %.64s", sw_user_name(server, view->held_by));
	else if (strcmp(view->state, "PD") != 0 || (!sw_brain_drained(server->brain, view->id, reason, sizeof reason) &&
						    !sw_brain_shut_out(server->brain, view->id, reason, sizeof reason)))
		snprintf(reason, sizeof reason, "%s", view->reason);
	const struct sw_job_row row = {
		.name = view->name,
		.tenant = view->tenant,
		.deep = name_depth(view, reason, sizeof reason),
		.reason = reason,
		.held = view->held,
		.moving = view->is_moving,
		.unmoved = view->unmoved,
		.unreachable = view->unreachable,
		.unreachable_since_ns = view->unreachable_since,
		.node = view->node,
		.gpu_mask = view->gpu_mask,
		.ran_ns = view->ran_ns,
		.retry_at_ns = view->retry_at,
		.epoch = view->epoch,
		.restarts = view->restarts,
		.preemptions = view->preemptions,
		.job_class = view->is_opportunistic ? SW_CLASS_OPPORTUNISTIC : SW_CLASS_GUARANTEED,
		.paused = view->is_paused,
		.code = view->code,
		.signal = view->signal,
		.gpu_memory_bytes = view->gpu_memory_bytes,
		.warning = view->warning,
	};
	sw_encode_row(json, &sw_job_details_table, &row);
	sw_write_stop(server, json, view->id);
	write_limit(json, view);
	write_use(server, json, view);
	sw_company_write_speed(server, json, view->id);
	sw_company_write(server, json, view->id);
	write_failure(json, view);
}

/* The request in short, without its command and environment. */
void sw_write_job_asked(struct sw_json *json, const struct sw_job_view *view)
{
	SW_CLEANUP(sw_job_request_freep) struct sw_job_request *asked = NULL;
	if (sw_job_request_decode(sw_job_stored, view->request, strlen(view->request), &asked, NULL) < 0)
		json->failed = true; /* out of memory */
	if (json->failed)
		return;
	sw_json_object(json);
	sw_encode_row(json, &sw_asked_table, asked);
	sw_json_end_object(json);
}

void sw_write_job_brief(struct sw_server *server, struct sw_json *json, const struct sw_job_view *view, bool past)
{
	const struct sw_job_row row = {
		.id = view->id,
		.state = view->state,
		.state_long = view->state_long,
		.user = sw_user_name(server, view->uid),
		.uid = view->uid,
		.gpus = view->gpus,
		.submitted_at_ns = view->submitted_at,
		.started_at_ns = view->started_at,
		.ended_at_ns = view->ended_at,
		.past = past,
	};
	sw_encode_row(json, &sw_job_brief_table, &row);
}

void sw_write_job(struct sw_server *server, struct sw_json *json, const struct sw_job_view *view, bool in_full, enum sw_job_extra extra)
{
	sw_json_object(json);
	sw_write_job_brief(server, json, view, false);
	if (in_full)
		sw_write_job_details(server, json, view);
	if (in_full && extra == SW_WITH_REQUEST) {
		SW_CLEANUP(sw_freep) char *whole = view->bulky ? sw_brain_whole_request(server->brain, view->id, NULL) : NULL;
		sw_json_key(json, "request");
		if (whole != NULL)
			sw_json_raw(json, whole, strlen(whole));
		else
			sw_job_view_request(view, json);
	}
	if (in_full && extra == SW_WITH_ASKED) {
		sw_json_key(json, "asked");
		sw_write_job_asked(json, view);
	}
	if (extra == SW_CHANGED || extra == SW_UNCHANGED)
		sw_json_key_bool(json, "changed", extra == SW_CHANGED);
	sw_json_end_object(json);
}

void sw_count_jobs(struct sw_server *server, uint64_t counts[SW_STATES])
{
	if (sw_brain_known_count(server->brain) > COUNTED_AT_ONCE) {
		sw_waiting_states(server, counts);
		sw_past_add_counts(server, counts);
		return;
	}
	memset(counts, 0, SW_STATES * sizeof counts[0]);
	for (uint64_t id = sw_brain_next_job(server->brain, 1); id != 0; id = sw_brain_next_job(server->brain, id + 1)) {
		unsigned state = sw_state_find(sw_brain_state_of(server->brain, id));
		if (state < SW_STATES)
			counts[state]++;
	}
	sw_past_add_counts(server, counts);
}
