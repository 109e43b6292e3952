#include "cli/past_events.h"

#include <inttypes.h>
#include <string.h>

#include "api/request.h"
#include "api/when.h"
#include "base/number.h"
#include "cli/live.h"
#include "cli/past.h"
#include "core/spec.h"

static int no_memory(struct sw_err *err)
{
	return sw_err_set(err, SW_ENOMEM, "out of memory");
}

static int64_t moment(const json_t *object, const char *key, int64_t fallback)
{
	const char *text = sw_cli_text(object, key, "");
	int64_t ns;
	return sw_when_parse(text, strlen(text), &ns) == 0 ? ns : fallback;
}

/* ---- submits */

/* A text that lives as long as the events; many have the same. */
static char *keep(struct sw_cli_events *events, const char *text)
{
	if (json_object_get(events->texts, text) == NULL && json_object_set_new(events->texts, text, json_string(text)) != 0)
		return NULL;
	return (char *)(uintptr_t)json_string_value(json_object_get(events->texts, text));
}

/* What a newer controller says and this program does not know is left out. */
static void read_spec(const json_t *object, struct sw_job_spec *spec)
{
	for (size_t r = 0; r < sw_spec_row_count; r++) {
		const json_t *value = json_object_get(object, sw_spec_rows[r].name);
		if (json_is_integer(value) && json_integer_value(value) >= 0)
			(void)sw_spec_set(spec, &sw_spec_rows[r], (uint64_t)json_integer_value(value));
	}
}

static int read_submit(struct sw_cli_events *events, const json_t *event, struct sw_cli_submit *ret_submit)
{
	size_t count = events->submits.count;
	struct sw_cli_submit submit = {.deadline_ns = SW_NEVER};
	if (!json_is_true(json_object_get(event, "member"))) {
		submit.name = keep(events, sw_cli_text(event, "name", ""));
		submit.user = keep(events, sw_cli_text(event, "user", ""));
		submit.depends = json_object_get(event, "depends");
		submit.tenant = keep(events, sw_cli_text(event, "tenant", ""));
		submit.model = keep(events, sw_cli_text(event, "model", ""));
		submit.deadline_ns = moment(event, "deadline", SW_NEVER);
		submit.is_open = json_object_get(event, "tenant") != NULL;
		submit.has_prerun = json_is_true(json_object_get(event, "prerun"));
		read_spec(json_object_get(event, "spec"), &submit.spec);
		if (submit.depends != NULL && json_array_append(events->lists, (json_t *)(uintptr_t)submit.depends) != 0)
			return SW_ENOMEM;
	} else if (count > 0) { /* else its array began before the first event */
		submit = events->submits.items[count - 1];
		submit.has_prerun &= json_is_true(json_object_get(event, "prerun"));
	}
	submit.at_ns = moment(event, "at", 0);
	*ret_submit = submit;
	bool whole = submit.name != NULL && submit.user != NULL && submit.tenant != NULL && submit.model != NULL;
	return submit.is_open && !whole ? SW_ENOMEM : 0;
}

/* A pre-run is the job on one GPU, and comes right before it. */
static int take_submit(struct sw_cli_events *events, const json_t *event)
{
	struct sw_cli_submit submit = {0}, *slot = NULL;
	if (read_submit(events, event, &submit) < 0)
		return SW_ENOMEM;
	if (submit.has_prerun) {
		slot = sw_vec_push(&events->submits);
		if (slot == NULL)
			return SW_ENOMEM;
		*slot = submit;
		slot->spec.gpus = slot->spec.min_gpus = slot->spec.max_gpus = 1;
		slot->spec.retries = 0;
		slot->has_prerun = false;
	}
	slot = sw_vec_push(&events->submits);
	if (slot == NULL)
		return SW_ENOMEM;
	*slot = submit;
	return 0;
}

/* ---- the others */

static enum sw_trace_end end_of(const char *how)
{
	return strcmp(how, "completed") == 0 ? SW_TRACE_COMPLETED : strcmp(how, "timed out") == 0 ? SW_TRACE_TIMED_OUT : SW_TRACE_FAILED;
}

static int take_happening(struct sw_cli_events *events, const json_t *event, enum sw_cli_happening_kind kind)
{
	struct sw_cli_happening *slot = sw_vec_push(&events->happenings);
	if (slot == NULL)
		return SW_ENOMEM;
	*slot = (struct sw_cli_happening){
		.at_ns = moment(event, "at", 0),
		.seq = (uint64_t)sw_cli_number(event, "seq", 0),
		.job = (uint64_t)sw_cli_number(event, "job", 0),
		.kind = kind,
		.leaves = json_is_true(json_object_get(event, "leaves")),
		.frees = json_is_true(json_object_get(event, "frees")),
		.end = (uint8_t)(kind == SW_CLI_CANCELLED ? SW_TRACE_CANCELLED : end_of(sw_cli_text(event, "how", ""))),
		.ran_ns = sw_cli_number(event, "ran_ns", -1),
		.stops = (uint32_t)sw_cli_number(event, "stops", 0),
	};
	return 0;
}

static int take_wake(struct sw_cli_events *events, int64_t at_ns)
{
	int64_t *slot = sw_vec_push(&events->wakes);
	if (slot == NULL)
		return SW_ENOMEM;
	*slot = at_ns;
	return 0;
}

static int take_event(struct sw_cli_events *events, json_t *event)
{
	static const struct {
		const char *kind;
		enum sw_cli_happening_kind happens;
	} of_jobs[] = {{"hold", SW_CLI_HELD},
		       {"release", SW_CLI_RELEASED},
		       {"exit", SW_CLI_EXITED},
		       {"cancel", SW_CLI_CANCELLED},
		       {"requeue", SW_CLI_REQUEUED}};
	const char *kind = sw_cli_text(event, "kind", "");
	if (strcmp(kind, "submit") == 0)
		return take_submit(events, event);
	for (size_t i = 0; i < SW_CLI_COUNT_OF(of_jobs); i++)
		if (strcmp(kind, of_jobs[i].kind) == 0)
			return take_happening(events, event, of_jobs[i].happens);
	if (strcmp(kind, "run") == 0)
		return take_happening(events, event, json_is_true(json_object_get(event, "begins")) ? SW_CLI_BEGAN : SW_CLI_FREES);
	if (strcmp(kind, "numbers") == 0)
		events->gap = events->submits.count;
	events->policies += strcmp(kind, "policy") == 0 && events->submits.count > 0;
	events->worlds += strcmp(kind, "world") == 0 && events->submits.count > 0;
	if (strcmp(kind, "wake") == 0)
		return take_wake(events, moment(event, "at", 0));
	if (strcmp(kind, "profile") == 0)
		return json_object_set(events->profiles, sw_cli_text(event, "name", ""), event) == 0 ? 0 : SW_ENOMEM;
	return json_array_append(events->cluster, event) == 0 ? 0 : SW_ENOMEM;
}

static int compare(const void *a, const void *b)
{
	const struct sw_cli_happening *x = a, *y = b;
	return x->job != y->job ? (x->job > y->job) - (x->job < y->job) : (x->seq > y->seq) - (x->seq < y->seq);
}

static int fetch(struct sw_client *client, struct sw_cli_events *events, struct sw_err *err)
{
	const char *all = "&all=true";
	for (int64_t after = 0; after >= 0;) {
		char path[100];
		SW_JSON *page = NULL;
		size_t i;
		json_t *event;
		struct sw_err words = {0};
		snprintf(path, sizeof path, "/v1/journal/events?limit=%u&after=%" PRId64 "%s", SW_LIST_MAX, after, all);
		int r = sw_client_get(client, path, &page, &words);
		if (r == SW_EINPUT && all[0] != '\0') {
			all = ""; /* a controller of an earlier version knows holds and releases alone */
			continue;
		}
		if (r == SW_ENOTFOUND) {
			events->since_ns = INT64_MAX; /* a controller of an earlier version */
			return 0;
		}
		if (r < 0) {
			*err = words;
			return r;
		}
		json_array_foreach(json_object_get(page, "events"), i, event) if (take_event(events, event) < 0) return no_memory(err);
		/* Events may go while they are read: the last page knows best. */
		events->since_ns = moment(page, "since", INT64_MIN);
		events->last_job = (uint64_t)sw_cli_number(page, "last_job", 0);
		int64_t next = sw_cli_number(page, "next", -1);
		after = next > after ? next : -1;
	}
	uint64_t job = events->last_job;
	for (size_t i = events->submits.count; i > events->gap && job > 0; i--)
		events->submits.items[i - 1].job = job--;
	if (events->happenings.count > 0)
		qsort(events->happenings.items, events->happenings.count, sizeof *events->happenings.items, compare);
	return 0;
}

int sw_cli_events_fetch(struct sw_client *client, struct sw_cli_events *ret_events, struct sw_err *err)
{
	struct sw_cli_events events = {
		.since_ns = INT64_MIN, .cluster = json_array(), .profiles = json_object(), .texts = json_object(), .lists = json_array()};
	bool whole = events.cluster != NULL && events.profiles != NULL && events.texts != NULL && events.lists != NULL;
	int r = whole ? fetch(client, &events, err) : no_memory(err);
	if (r < 0)
		sw_cli_events_release(&events);
	else
		*ret_events = events;
	return r;
}

void sw_cli_events_release(struct sw_cli_events *events)
{
	sw_vec_free(&events->submits);
	sw_vec_free(&events->happenings);
	sw_vec_free(&events->wakes);
	json_decref(events->cluster);
	json_decref(events->profiles);
	json_decref(events->texts);
	json_decref(events->lists);
	json_decref(events->nodes);
	json_decref(events->quotas);
	*events = (struct sw_cli_events){0};
}

size_t sw_cli_events_of(const struct sw_cli_events *events, uint64_t job)
{
	size_t low = 0, high = events->happenings.count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (events->happenings.items[middle].job < job)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* ---- the cluster */

static int add(struct sw_trace *trace, int64_t at_ns, struct sw_event event)
{
	struct sw_trace_event *slot = sw_vec_push(&trace->events);
	if (slot == NULL)
		return SW_ENOMEM;
	*slot = (struct sw_trace_event){at_ns, event};
	return 0;
}

/* A node as the events go by. A silent one takes no jobs, as a closed one. */
struct availability {
	bool is_closed, is_silent;
};

static int set_open(struct sw_trace *trace, int64_t at_ns, uint32_t node, struct availability *availability, bool closed, bool silent)
{
	bool was = availability->is_closed || availability->is_silent, is = closed || silent;
	*availability = (struct availability){closed, silent};
	return was == is ? 0 : add(trace, at_ns, (struct sw_event){.kind = is ? SW_EV_NODE_CLOSE : SW_EV_NODE_OPEN, .node = {node}});
}

static int shut(struct sw_trace *trace, int64_t at_ns, uint32_t node, const json_t *list)
{
	uint64_t mask = 0;
	size_t i;
	json_t *gpu;
	json_array_foreach(list, i, gpu) if (json_integer_value(gpu) >= 0 && json_integer_value(gpu) < 64) mask |=
		UINT64_C(1) << json_integer_value(gpu);
	return list == NULL ? 0 : add(trace, at_ns, (struct sw_event){.kind = SW_EV_GPUS_SHUT, .node = {node}, .mask = mask});
}

static int take_node(struct sw_trace *trace, const json_t *event, uint32_t node, struct availability *availability)
{
	const char *kind = sw_cli_text(event, "kind", "");
	int64_t at_ns = moment(event, "at", 0);
	if (strcmp(kind, "node_removed") == 0)
		return add(trace, at_ns, (struct sw_event){.kind = SW_EV_NODE_DOWN, .node = {node}});
	if (strcmp(kind, "node_unreachable") == 0)
		return set_open(trace, at_ns, node, availability, availability->is_closed, true);
	if (strcmp(kind, "node_closed") == 0 || strcmp(kind, "node_opened") == 0)
		return set_open(trace, at_ns, node, availability, kind[5] == 'c', availability->is_silent);
	if (strcmp(kind, "node") == 0 && (add(trace, at_ns, (struct sw_event){.kind = SW_EV_NODE_UP, .node = {node}}) < 0 ||
					  set_open(trace, at_ns, node, availability, availability->is_closed, false) < 0))
		return SW_ENOMEM;
	return shut(trace, at_ns, node, json_object_get(event, "shut"));
}

/* Whether the events tell when the node came. */
static bool came(const struct sw_cli_events *events, const char *name)
{
	size_t i;
	json_t *event;
	json_array_foreach(events->cluster, i, event) if (strcmp(sw_cli_text(event, "kind", ""), "node") == 0 &&
							  strcmp(sw_cli_text(event, "node", ""), name) == 0) return true;
	return false;
}

static int add_node(struct sw_trace *trace, const struct sw_cli_events *events, const json_t *shown, uint32_t node)
{
	const char *name = sw_cli_text(shown, "name", "");
	struct availability availability = {0};
	size_t i;
	json_t *event;
	int r = 0;
	/* Where all events are there, they tell when it came; those of an
	 * earlier version do not. */
	if (events->since_ns == INT64_MIN && came(events, name))
		r = add(trace, INT64_MIN, (struct sw_event){.kind = SW_EV_NODE_DOWN, .node = {node}});
	json_array_foreach(events->cluster, i, event) if (r == 0 && strcmp(sw_cli_text(event, "node", ""), name) == 0) r =
		take_node(trace, event, node, &availability);
	return r;
}

/* Whether the node was there in the time of the events. */
static bool was_there(const struct sw_cli_events *events, const json_t *shown)
{
	size_t i;
	json_t *event;
	bool named = false;
	json_array_foreach(events->cluster, i, event) named |= strcmp(sw_cli_text(event, "node", ""), sw_cli_text(shown, "name", "?")) == 0;
	return sw_cli_number(shown, "gpus", 0) > 0 && (named || json_is_true(json_object_get(shown, "up")));
}

int sw_cli_events_cluster(struct sw_client *client, struct sw_cli_events *events, struct sw_cluster_spec **ret_spec, struct sw_err *err)
{
	SW_JSON *answer = NULL;
	size_t i;
	json_t *shown;
	int r = sw_client_get(client, "/v1/nodes", &answer, err);
	events->nodes = r == 0 ? json_array() : NULL;
	if (events->nodes == NULL)
		return r < 0 ? r : no_memory(err);
	json_array_foreach(json_object_get(answer, "nodes"), i, shown) if (was_there(events, shown))
		json_array_append(events->nodes, shown);
	if (json_array_size(events->nodes) > 0)
		return sw_cli_past_shape(events->nodes, ret_spec, err);
	return sw_cli_past_cluster(client, ret_spec, err);
}

int sw_cli_events_quotas(struct sw_client *client, struct sw_cli_events *events, struct sw_err *err)
{
	SW_JSON *answer = NULL;
	int r = sw_client_get(client, "/v1/quota", &answer, err);
	if (r == 0)
		events->quotas = json_incref(json_object_get(answer, "tenants"));
	return r;
}

static int add_quota(struct sw_trace *trace, int64_t at_ns, const char *tenant, int64_t gpus)
{
	uint32_t number;
	if (sw_trace_intern(trace, tenant, strlen(tenant), &number) < 0)
		return SW_ENOMEM;
	uint32_t most = gpus < 0 || gpus > UINT32_MAX ? UINT32_MAX : (uint32_t)gpus;
	return add(trace, at_ns, (struct sw_event){.kind = SW_EV_QUOTA, .tenant = number, .gpus = most});
}

static int add_quotas(const struct sw_cli_events *events, struct sw_trace *trace)
{
	SW_JSON *named = json_object();
	size_t i;
	json_t *event, *tenant;
	json_array_foreach(events->cluster, i, event)
	{
		const char *name = sw_cli_text(event, "tenant", NULL);
		if (name == NULL || strcmp(sw_cli_text(event, "kind", ""), "quota") != 0)
			continue;
		if (json_object_set_new(named, name, json_true()) != 0 ||
		    add_quota(trace, moment(event, "at", 0), name, sw_cli_number(event, "gpus", -1)) < 0)
			return SW_ENOMEM;
	}
	/* Of one that was set before the first event only what it is now is known. */
	json_array_foreach(events->quotas, i, tenant)
	{
		const char *name = sw_cli_text(tenant, "tenant", NULL);
		int64_t gpus = sw_cli_number(tenant, "quota", -1);
		if (name != NULL && gpus >= 0 && json_object_get(named, name) == NULL && add_quota(trace, INT64_MIN, name, gpus) < 0)
			return SW_ENOMEM;
	}
	return 0;
}

int sw_cli_events_apply(const struct sw_cli_events *events, struct sw_trace *trace)
{
	size_t i;
	json_t *shown;
	int64_t *wakes = sw_vec_push_n(&trace->wakes, events->wakes.count);
	if (wakes == NULL && events->wakes.count > 0)
		return SW_ENOMEM;
	if (events->wakes.count > 0)
		memcpy(wakes, events->wakes.items, events->wakes.count * sizeof *wakes);
	json_array_foreach(events->nodes, i, shown) if (add_node(trace, events, shown, (uint32_t)i) < 0) return SW_ENOMEM;
	return events->quotas != NULL ? add_quotas(events, trace) : 0;
}

/* ---- models */

int sw_cli_events_profiles(const json_t *known, struct sw_profiles *profiles, struct sw_err *err)
{
	const char *name;
	json_t *event;
	json_object_foreach((json_t *)(uintptr_t)known, name, event)
	{
		const json_t *use = json_object_get(event, "use_milli");
		int64_t busy_milli = sw_cli_number(event, "busy_milli", 0);
		if (json_array_size(use) != SW_USE_COUNT || busy_milli < 1 || busy_milli > 1000)
			continue; /* what is built in holds again, or a newer controller says it otherwise */
		struct sw_profile profile = *sw_profiles_find(profiles, name);
		profile.name = name;
		profile.source = "measured in the cluster";
		profile.is_default = false;
		profile.is_own = profile.estimated = true;
		profile.busy_milli = (uint16_t)busy_milli;
		profile.busy_known = json_is_true(json_object_get(event, "busy_known"));
		for (size_t i = 0; i < SW_USE_COUNT; i++)
			profile.use_milli[i] = (uint16_t)json_integer_value(json_array_get(use, i));
		int r = sw_profiles_put(profiles, &profile, NULL, err);
		if (r < 0)
			return r;
	}
	return 0;
}
