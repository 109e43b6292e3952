#include "api/routes.h"

#include <string.h>

#include "api/job.h"
#include "base/number.h"

#define KIB(n) ((size_t)(n) << 10)
#define MIB(n) ((size_t)(n) << 20)
#define JSON "application/json"

#define USERS (SW_ROLE_USER | SW_ROLE_OPERATOR)
#define ALL (SW_ROLE_USER | SW_ROLE_OPERATOR | SW_ROLE_AGENT)

static const struct sw_api_field list_parameters[] = {
	{"state", "string", "only jobs in these states, separated by commas: PD or PENDING, R or RUNNING, ..., `active`, `ended`"},
	{"user", "string", "only jobs of this user: a name, a number, or `me`"},
	{"name", "string", "only jobs with this name; a `*` at the end stands for anything"},
	{"limit", "integer", "at most this many jobs, 1 to 1000; 100 by default"},
	{"cursor", "integer", "go on behind this job: the `next` of the page before"},
	{"order", "string", "`asc` (oldest first, by default) or `desc`"},
	{"since", "string", "only jobs that had not ended before this moment: RFC 3339"},
	{"until", "string", "only jobs that were submitted by this moment: RFC 3339"},
	{"asked", "boolean", "with what each asked for, in short; pages may then be shorter"},
	{NULL, NULL, NULL},
};
static const struct sw_api_field forecast_parameters[] = {
	{"job", "integer", "of this job alone"},
	{"limit", "integer", "at most this many jobs, 1 to 1000; 100 by default"},
	{"cursor", "integer", "go on behind this job: the `next` of the page before"},
	{NULL, NULL, NULL},
};
static const struct sw_api_field log_parameters[] = {
	{"offset", "integer", "start at this byte; a negative one counts from the end"},
	{"limit", "integer", "at most this many bytes"},
	{"follow", "boolean", "stay until the job has ended, and send what it writes"},
	{"run", "integer", "which run of the job, by its epoch; the last one by default"},
	{NULL, NULL, NULL},
};
static const struct sw_api_field suspend_parameters[] = {
	{"deep", "boolean", "off its GPUs whole, contexts and all, if the driver can; its processes stay. Else it is suspended as usual"},
	{"force", "boolean", "stop it even if it would lose its run and start anew; without this, that is refused"},
	{NULL, NULL, NULL},
};
static const struct sw_api_field event_parameters[] = {
	{"after", "integer", "go on behind this event; the header Last-Event-ID says the same and comes first"},
	{"job", "integer", "only events of this job"},
	{NULL, NULL, NULL},
};

static const struct sw_api_field kept_parameters[] = {
	{"after", "integer", "go on behind this event: the `next` of the page before"},
	{"limit", "integer", "at most this many events, 1 to 1000; 100 by default"},
	{"all", "boolean", "all kinds of events, not holds and releases alone"},
	{NULL, NULL, NULL},
};

/* id, method, path, name, about, parameters, request, response, media, body_max, roles, status */
const struct sw_route sw_routes[SW_ROUTES] = {
	{SW_ROUTE_SUBMIT, SW_POST, "/v1/jobs", "submitJobs",
	 "Submit a job, or a list of up to 10000; all of them or none, and once for each `Idempotency-Key`", NULL,
	 "#JobRequest|#JobRequest[]", "#Submitted", JSON, MIB(16), USERS, 201},
	{SW_ROUTE_LIST, SW_GET, "/v1/jobs", "listJobs", "List jobs, a page at a time", list_parameters, NULL, "#JobList", JSON, 0, USERS,
	 200},
	{SW_ROUTE_JOB, SW_GET, "/v1/jobs/{id}", "getJob", "Show one job, with what was asked for", NULL, NULL, "#Job", JSON, 0, USERS, 200},
	{SW_ROUTE_CANCEL, SW_POST, "/v1/jobs/{id}/cancel", "cancelJob", "End a job for good", NULL, NULL, "#Job", JSON, KIB(1), USERS, 200},
	{SW_ROUTE_HOLD, SW_POST, "/v1/jobs/{id}/hold", "holdJob",
	 "Keep a job from starting until it is released; a run goes on, and the job is held once that is over", NULL, NULL, "#Job", JSON,
	 KIB(1), USERS, 200},
	{SW_ROUTE_RELEASE, SW_POST, "/v1/jobs/{id}/release", "releaseJob", "Let a held job compete again", NULL, NULL, "#Job", JSON, KIB(1),
	 USERS, 200},
	{SW_ROUTE_REQUEUE, SW_POST, "/v1/jobs/{id}/requeue", "requeueJob", "Stop a running job and let it start anew", NULL, NULL, "#Job",
	 JSON, KIB(1), USERS, 200},
	{SW_ROUTE_SUSPEND, SW_POST, "/v1/jobs/{id}/suspend", "suspendJob", "Take a job off its GPUs until it is resumed",
	 suspend_parameters, NULL, "#Job", JSON, KIB(1), USERS, 200},
	{SW_ROUTE_RESUME, SW_POST, "/v1/jobs/{id}/resume", "resumeJob", "Let a suspended job go on as soon as there is room", NULL, NULL,
	 "#Job", JSON, KIB(1), USERS, 200},
	{SW_ROUTE_LIMIT, SW_POST, "/v1/jobs/{id}/limit", "limitJob",
	 "Set or lift what a job may have of its GPUs, also while it runs; it lasts for the job's life", NULL, "#Limit", "#Job", JSON,
	 KIB(4), USERS, 200},
	{SW_ROUTE_MOVE, SW_POST, "/v1/jobs/{id}/move", "moveJob",
	 "Let a running job go on on other GPUs of its node, in the same processes; `moving` says when it is there", NULL, "#Move", "#Job",
	 JSON, KIB(4), USERS, 200},
	{SW_ROUTE_CHANGE, SW_POST, "/v1/jobs/change", "changeJobs",
	 "Cancel, hold, release, requeue, suspend or resume up to 100000 jobs, all of them or none; the scheduler decides once for all of "
	 "them",
	 NULL, "#Change", "#Changed", JSON, MIB(2), USERS, 200},
	{SW_ROUTE_WHY, SW_GET, "/v1/jobs/{id}/why", "explainJob", "Say in one sentence why a job waits, or how it ended", NULL, NULL,
	 "#Why", JSON, 0, USERS, 200},
	{SW_ROUTE_FORECAST, SW_GET, "/v1/forecast", "forecastStarts",
	 "Estimate when jobs that wait will start; the answer is of the state as it is now, and may take a second or two",
	 forecast_parameters, NULL, "#Forecast", JSON, 0, USERS, 200},
	{SW_ROUTE_TRY, SW_POST, "/v1/forecast", "forecastJobs",
	 "Check a job, or a list of up to 100, as a submit would, and estimate when it would start; nothing is submitted", NULL,
	 "#JobRequest|#JobRequest[]", "#Forecast", JSON, MIB(4), USERS, 200},
	{SW_ROUTE_LOGS, SW_GET, "/v1/jobs/{id}/logs", "readLogs", "Read what a job wrote, a range of it or as it comes", log_parameters,
	 NULL, NULL, "text/plain", 0, USERS, 200},
	{SW_ROUTE_NODES, SW_GET, "/v1/nodes", "listNodes", "List nodes and their GPUs with the last figures of each", NULL, NULL,
	 "#NodeList", JSON, 0, USERS, 200},
	{SW_ROUTE_NODE_DOOR, SW_POST, "/v1/nodes", "closeNode", "Close a node to new jobs, or open it again; jobs that run there go on",
	 NULL, "#NodeChange", "#Node", JSON, KIB(4), SW_ROLE_OPERATOR, 200},
	{SW_ROUTE_CLUSTER, SW_GET, "/v1/cluster", "getCluster", "Show the cluster as a whole: GPUs, jobs by state, policy", NULL, NULL,
	 "#Cluster", JSON, 0, USERS, 200},
	{SW_ROUTE_GET_POLICY, SW_GET, "/v1/policy", "getPolicy", "Show the policy in charge, and those there are", NULL, NULL, "#Policy",
	 JSON, 0, USERS, 200},
	{SW_ROUTE_SET_POLICY, SW_POST, "/v1/policy", "setPolicy", "Change the policy while the cluster runs", NULL, "#PolicyChange",
	 "#Policy", JSON, KIB(64), SW_ROLE_OPERATOR, 200},
	{SW_ROUTE_GET_WORLD, SW_GET, "/v1/world", "getWorld", "Show the terms of the cluster's world", NULL, NULL, "#World", JSON, 0, USERS,
	 200},
	{SW_ROUTE_SET_WORLD, SW_POST, "/v1/world", "setWorld", "Change the terms while the cluster runs; jobs that run stay", NULL,
	 "#WorldChange", "#World", JSON, KIB(256), SW_ROLE_OPERATOR, 200},
	{SW_ROUTE_GET_QUOTA, SW_GET, "/v1/quota", "listQuotas", "List tenants, with their quotas and the GPUs that they hold", NULL, NULL,
	 "#TenantList", JSON, 0, USERS, 200},
	{SW_ROUTE_QUOTA, SW_POST, "/v1/quota", "setQuota", "Set or lift a tenant's quota of GPUs", NULL, "#Quota", "#Quota", JSON, KIB(4),
	 SW_ROLE_OPERATOR, 200},
	{SW_ROUTE_EVENTS, SW_GET, "/v1/events", "watchEvents", "Watch what happens, as server-sent events", event_parameters, NULL,
	 "#Event", "text/event-stream", 0, USERS, 200},
	{SW_ROUTE_SYNC, SW_POST, "/v1/agents/sync", "syncAgent",
	 "An agent tells all it knows and hears all that is wanted; waits up to 10 s", NULL, "#Sync", "#Answer", JSON, MIB(16),
	 SW_ROLE_AGENT, 200},
	{SW_ROUTE_BACKUP, SW_GET, "/v1/journal/backup", "backUpJournal", "Copy the journal while the controller goes on: one SQLite file",
	 NULL, NULL, NULL, "application/vnd.sqlite3", 0, SW_ROLE_OPERATOR, 200},
	{SW_ROUTE_KEPT, SW_GET, "/v1/journal/events", "listEvents",
	 "List holds and releases of jobs that the journal still has, or all that a replay needs, oldest first, a page at a time",
	 kept_parameters, NULL, "#EventList", JSON, 0, USERS, 200},
	{SW_ROUTE_METRICS, SW_GET, "/metrics", "getMetrics", "Figures for Prometheus", NULL, NULL, NULL, "text/plain; version=0.0.4", 0,
	 ALL, 200},
	{SW_ROUTE_HEALTH, SW_GET, "/healthz", "getHealth", "Say whether the controller can do its work (503: it cannot)", NULL, NULL,
	 "#Health", JSON, 0, SW_ROLE_NOBODY, 200},
	{SW_ROUTE_OPENAPI, SW_GET, "/v1/openapi.json", "getOpenapi", "This description, for machines", NULL, NULL, NULL, JSON, 0, ALL, 200},
};

/* Matches a path against a pattern with at most one "{id}". An id that is no
 * number matches nothing. */
static bool match(const char *pattern, const char *path, size_t size, uint64_t *ret_job)
{
	const char *hole = strstr(pattern, "{id}");
	if (hole == NULL)
		return strlen(pattern) == size && memcmp(pattern, path, size) == 0;
	size_t before = (size_t)(hole - pattern), after = strlen(hole + 4);
	if (size <= before + after || memcmp(path, pattern, before) != 0 || memcmp(path + size - after, hole + 4, after) != 0)
		return false;
	const char *number = path + before;
	size_t digits = size - before - after;
	for (size_t i = 0; i < digits; i++)
		if (number[i] < '0' || number[i] > '9')
			return false;
	uint64_t job;
	if (sw_parse_u64(number, digits, &job) < 0 || job == 0 || job > SW_JOB_ID_MAX)
		return false;
	*ret_job = job;
	return true;
}

static const struct {
	const char *name;
	unsigned role;
} roles[] = {{"user", SW_ROLE_USER}, {"operator", SW_ROLE_OPERATOR}, {"agent", SW_ROLE_AGENT}};
#define ROLES (sizeof roles / sizeof roles[0])

unsigned sw_role_find(const char *name)
{
	for (size_t i = 0; i < ROLES; i++)
		if (strcmp(name, roles[i].name) == 0)
			return roles[i].role;
	return 0;
}

const char *sw_role_name(unsigned role)
{
	for (size_t i = 0; i < ROLES; i++)
		if (role == roles[i].role)
			return roles[i].name;
	return "nobody";
}

int sw_route_find(enum sw_method method, const char *path, size_t size, const struct sw_route **ret_route, uint64_t *ret_job,
		  int *ret_status, struct sw_err *err)
{
	bool gets = false, posts = false;
	for (size_t i = 0; i < SW_ROUTES; i++) {
		uint64_t job = 0;
		if (!match(sw_routes[i].path, path, size, &job))
			continue;
		if (sw_routes[i].method == method) {
			*ret_route = &sw_routes[i];
			*ret_job = job;
			return 0;
		}
		gets = gets || sw_routes[i].method == SW_GET;
		posts = posts || sw_routes[i].method == SW_POST;
	}
	int shown = size < 200 ? (int)size : 200;
	if (gets || posts) {
		*ret_status = 405;
		sw_err_set(err, SW_EINPUT, "this method does not go with '%.*s'", shown, path);
		sw_err_hint(err, "%s.", gets && posts ? "GET and POST do" : gets ? "GET does" : "POST does");
		return SW_EINPUT;
	}
	*ret_status = 404;
	sw_err_set(err, SW_ENOTFOUND, "there is nothing at '%.*s'", shown, path);
	sw_err_hint(err, "/v1/openapi.json lists what there is.");
	return SW_ENOTFOUND;
}
