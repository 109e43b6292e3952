#include "cli/outlook.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/request.h"
#include "api/when.h"
#include "base/hash.h"
#include "base/number.h"
#include "cli/live.h"
#include "cli/past.h"
#include "placement/registry.h"
#include "policy/registry.h"

/* Pages of ended jobs that are looked at for medians: the latest say most. */
#define PAGES_OF_PAST 5u

/* A forecast in the making. */
struct making {
	struct sw_cli_outlook *outlook;
	struct sw_forecast_history history;
	json_t *tenants; /* name: number */
	SW_VEC(struct sw_forecast_job) jobs;
	SW_VEC(uint32_t) depends; /* of all jobs, one after the other */
	SW_VEC(struct sw_forecast_quota) quotas;
	json_t *living;	       /* all pages together */
	json_t *closed;	       /* names of nodes that take no more jobs */
	json_t *places;	       /* of the other nodes: name, number in the forecast's topology */
	SW_VEC(uint64_t) shut; /* by that number: GPUs that take no jobs */
};

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

static sw_ns seconds(const json_t *object, const char *key)
{
	double value = sw_cli_real(object, key, 0);
	return value > 0 && value < 1e9 ? llround(value * (double)SW_NS_PER_S) : 0;
}

/* Jobs of one user and name are of a kind. */
static uint64_t kind_of(const json_t *job)
{
	const char *name = sw_cli_text(job, "name", ""), *user = sw_cli_text(job, "user", "");
	return sw_hash_bytes(sw_hash_bytes(SW_HASH_START, user, strlen(user) + 1), name, strlen(name));
}

/* ---- how long jobs ran */

static int note_past(struct making *making, const json_t *jobs, struct sw_err *err)
{
	size_t i;
	json_t *job;
	json_array_foreach(jobs, i, job)
	{
		int64_t started = moment(job, "started_at", INT64_MAX), ended = moment(job, "ended_at", 0);
		sw_ns ran = json_object_get(job, "ran_s") != NULL ? seconds(job, "ran_s") : ended > started ? ended - started : 0;
		if (ran > 0 && sw_forecast_note(&making->history, kind_of(job), ran) < 0)
			return no_memory(err);
	}
	return 0;
}

static int fetch_past(struct sw_client *client, struct making *making, struct sw_err *err)
{
	int64_t cursor = 0;
	for (unsigned page = 0; page < PAGES_OF_PAST && cursor >= 0; page++) {
		SW_JSON *answer = NULL;
		char path[128];
		snprintf(path, sizeof path, "/v1/jobs?state=CD,TO&order=desc&limit=%u&cursor=%" PRId64, SW_LIST_MAX, cursor);
		int r = sw_client_get(client, path, &answer, err);
		r = r < 0 ? r : note_past(making, json_object_get(answer, "jobs"), err);
		if (r < 0)
			return r;
		cursor = sw_cli_number(answer, "next", -1);
	}
	sw_forecast_sort(&making->history);
	return 0;
}

/* ---- the jobs that live */

static int take_page(void *user, json_t *jobs, struct sw_err *err)
{
	struct making *making = user;
	size_t i;
	json_t *job;
	json_array_foreach(jobs, i, job)
	{
		uint64_t *id = sw_vec_push(&making->outlook->ids);
		if (id == NULL)
			return no_memory(err);
		*id = (uint64_t)sw_cli_number(job, "id", 0);
	}
	return json_array_extend(making->living, jobs) == 0 ? 0 : no_memory(err);
}

static uint32_t tenant_of(struct making *making, const char *name)
{
	json_t *known = json_object_get(making->tenants, name);
	if (known == NULL)
		json_object_set_new(making->tenants, name, json_integer((json_int_t)json_object_size(making->tenants)));
	return (uint32_t)sw_cli_number(making->tenants, name, 0);
}

static int index_of(const struct sw_cli_outlook *outlook, uint64_t id)
{
	size_t low = 0, high = outlook->ids.count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (outlook->ids.items[middle] < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < outlook->ids.count && outlook->ids.items[low] == id ? (int)low : -1;
}

/* Why nobody can tell when this job starts; NULL: that can be forecast. */
static const char *riddle_of(const struct making *making, const json_t *job)
{
	size_t i;
	json_t *number;
	if (strcmp(sw_cli_text(job, "reason", ""), "JobArrayTaskLimit") == 0)
		return "others of its array must end first";
	json_array_foreach(json_object_get(json_object_get(job, "asked"), "depends_on_failure"), i,
			   number) if (index_of(making->outlook, (uint64_t)json_integer_value(number)) >=
				       0) return "it runs only if a job fails that has not ended yet";
	return NULL;
}

static uint64_t gpus_of(const json_t *job)
{
	uint64_t mask = 0;
	size_t i;
	json_t *index;
	json_array_foreach(json_object_get(job, "gpu_indexes"), i, index) if (json_integer_value(index) < 64) mask |=
		UINT64_C(1) << json_integer_value(index);
	return mask;
}

/* Of one that runs: whether some of its GPUs take no other after it. Then the rest of them is left
 * out with these: nobody else starts there before it ends. */
static bool is_on_shut(const struct making *making, const json_t *job)
{
	int64_t place = sw_cli_number(making->places, sw_cli_text(job, "node", ""), -1);
	if (place < 0 || (size_t)place >= making->shut.count || (making->shut.items[place] & gpus_of(job)) == 0)
		return false;
	making->shut.items[place] |= gpus_of(job);
	return true;
}

static enum sw_forecast_state state_of(const struct making *making, const json_t *job)
{
	const char *state = sw_cli_text(job, "state", ""), *node = sw_cli_text(job, "node", "");
	if (strcmp(state, "R") == 0 || strcmp(state, "CF") == 0)
		return json_object_get(making->closed, node) != NULL || is_on_shut(making, job) ? SW_FORECAST_AWAY : SW_FORECAST_RUNS;
	if (strcmp(state, "UN") == 0)
		return SW_FORECAST_AWAY;
	if (riddle_of(making, job) != NULL)
		return SW_FORECAST_HELD;
	return json_is_true(json_object_get(job, "held")) ? SW_FORECAST_HELD : SW_FORECAST_WAITS;
}

/* As the controller gave it to its engine. */
static struct sw_job_spec spec_of(struct making *making, const json_t *job)
{
	const json_t *asked = json_object_get(job, "asked");
	int64_t gpus = sw_cli_number(asked, "gpus", sw_cli_number(job, "gpus", 1));
	sw_ns expected = seconds(asked, "expected_s");
	int64_t deadline = moment(asked, "deadline", SW_TIME_NEVER);
	return (struct sw_job_spec){
		.gpus = (uint32_t)gpus,
		.min_gpus = (uint32_t)sw_cli_number(asked, "min_gpus", gpus),
		.max_gpus = (uint32_t)sw_cli_number(asked, "max_gpus", gpus),
		.tenant = tenant_of(making, sw_cli_text(job, "tenant", "")),
		.weight_milli = (uint32_t)llround(sw_cli_real(asked, "weight", 1) * 1000),
		.gpu_memory_bytes = (uint64_t)sw_cli_number(asked, "gpu_memory_bytes", 0),
		.host_memory_bytes = (uint64_t)sw_cli_number(asked, "memory_bytes", 0),
		.cpus = (uint32_t)sw_cli_number(asked, "cpus", 0),
		.job_class = strcmp(sw_cli_text(asked, "class", ""), "opportunistic") == 0 ? SW_CLASS_OPPORTUNISTIC : SW_CLASS_GUARANTEED,
		.is_auto = strcmp(sw_cli_text(asked, "class", ""), "auto") == 0,
		.knowledge = expected > 0 ? SW_PREDICTED : SW_UNKNOWN,
		.work_ns = expected,
		.deadline_at = deadline != SW_TIME_NEVER ? deadline - making->outlook->now_ns : SW_TIME_NEVER,
	};
}

/* Those of its dependencies that have not ended. */
static int add_depends(struct making *making, const json_t *job, struct sw_forecast_job *made)
{
	size_t i;
	json_t *number;
	json_array_foreach(json_object_get(json_object_get(job, "asked"), "depends"), i, number)
	{
		int index = index_of(making->outlook, (uint64_t)json_integer_value(number));
		if (index < 0 || made->state != SW_FORECAST_WAITS)
			continue;
		uint32_t *slot = sw_vec_push(&making->depends);
		if (slot == NULL)
			return SW_ENOMEM;
		*slot = (uint32_t)index;
		made->depend_count++;
	}
	return 0;
}

static int add_job(struct making *making, const json_t *job)
{
	const json_t *asked = json_object_get(job, "asked");
	struct sw_forecast_job *made = sw_vec_push(&making->jobs);
	enum sw_basis basis = SW_BASIS_ALL;
	if (made == NULL)
		return SW_ENOMEM;
	*made = (struct sw_forecast_job){.spec = spec_of(making, job), .state = (uint8_t)state_of(making, job)};
	const char *why = riddle_of(making, job);
	struct sw_cli_riddle *riddle = why != NULL ? sw_vec_push(&making->outlook->riddles) : NULL;
	if (riddle != NULL)
		*riddle = (struct sw_cli_riddle){(uint64_t)sw_cli_number(job, "id", 0), why};
	else if (why != NULL)
		return SW_ENOMEM;
	int64_t now_ns = making->outlook->now_ns, started = moment(job, "started_at", now_ns);
	bool hidden = json_object_get(job, "ran_s") == NULL;
	made->not_before_ns = moment(job, "retry_at", now_ns) - now_ns;
	made->ran_ns = !hidden ? seconds(job, "ran_s") : made->state != SW_FORECAST_WAITS && started < now_ns ? now_ns - started : 0;
	made->left_ns = sw_forecast_left(&making->history, kind_of(job), seconds(asked, "expected_s"), seconds(asked, "time_limit_s"),
					 made->ran_ns, &basis);
	made->basis = (uint8_t)basis;
	return add_depends(making, job, made);
}

static int add_jobs(struct making *making, struct sw_err *err)
{
	size_t i;
	json_t *job;
	json_array_foreach(making->living, i, job) if (add_job(making, job) < 0) return no_memory(err);
	/* Where they stand is known only now that none is added any more. */
	uint32_t used = 0;
	for (size_t j = 0; j < making->jobs.count; used += making->jobs.items[j++].depend_count)
		making->jobs.items[j].depends = making->depends.items + used;
	return 0;
}

static int add_quotas(struct sw_client *client, struct making *making, struct sw_err *err)
{
	SW_JSON *answer = NULL;
	size_t i;
	json_t *tenant;
	int r = sw_client_get(client, "/v1/quota", &answer, err);
	if (r < 0)
		return r;
	json_array_foreach(json_object_get(answer, "tenants"), i, tenant)
	{
		const char *name = sw_cli_text(tenant, "tenant", NULL);
		int64_t gpus = sw_cli_number(tenant, "quota", -1);
		if (name == NULL || gpus < 0 || gpus > UINT32_MAX)
			continue;
		struct sw_forecast_quota *quota = sw_vec_push(&making->quotas);
		if (quota == NULL)
			return no_memory(err);
		*quota = (struct sw_forecast_quota){tenant_of(making, name), (uint32_t)gpus};
	}
	return 0;
}

/* ---- the forecast */

static const struct sw_placement *find_placement(const char *name)
{
	for (size_t p = 0; sw_placements[p] != NULL; p++)
		if (strcmp(sw_placements[p]->name, name) == 0)
			return sw_placements[p];
	return NULL;
}

static int make_params(const struct sw_policy *policy, const json_t *settings, struct sw_params **ret_params, struct sw_err *err)
{
	SW_CLEANUP(sw_params_freep) struct sw_params *params = NULL;
	int r = sw_params_new(policy, &params, err);
	for (size_t p = 0; r == 0 && p < policy->param_count; p++) {
		const char *text = sw_cli_text(settings, policy->params[p].name, NULL);
		if (text != NULL && text[0] != '\0')
			r = sw_params_set(params, &policy->params[p], text, strlen(text), err);
	}
	if (r == 0)
		*ret_params = SW_TAKE(params);
	return r;
}

static int predict(struct sw_client *client, struct making *making, uint64_t target, struct sw_err *err)
{
	SW_JSON *rules = NULL;
	SW_CLEANUP(sw_cluster_freep) struct sw_cluster_spec *cluster = NULL;
	SW_CLEANUP(sw_topology_freep) struct sw_topology *topology = NULL;
	SW_CLEANUP(sw_params_freep) struct sw_params *params = NULL;
	struct sw_cli_outlook *outlook = making->outlook;
	int r = sw_client_get(client, "/v1/policy", &rules, err);
	if (r < 0)
		return r;
	const struct sw_policy *policy = sw_policy_find(sw_cli_text(rules, "policy", ""));
	const struct sw_placement *placement = find_placement(sw_cli_text(rules, "placement", ""));
	if (policy == NULL || placement == NULL)
		return sw_err_set(err, SW_ENOTFOUND, "the policy in charge is not one of this program's");
	r = make_params(policy, json_object_get(rules, "settings"), &params, err);
	r = r < 0 ? r : sw_cli_past_cluster(client, true, &cluster, err);
	r = r < 0 ? r : sw_cluster_topology(cluster, &topology, err);
	if (r < 0)
		return r;
	int index = target > 0 ? index_of(outlook, target) : -1;
	outlook->starts = calloc(making->jobs.count + 1, sizeof *outlook->starts);
	if (outlook->starts == NULL)
		return no_memory(err);
	return sw_forecast(
		&(struct sw_forecast_config){
			.topology = topology,
			/* Nodes may have come or gone between two questions. */
			.shut = making->shut.count == topology->node_count ? making->shut.items : NULL,
			.policy = policy,
			.params = params,
			.placement = placement,
			.jobs = making->jobs.items,
			.count = (uint32_t)making->jobs.count,
			.quotas = making->quotas.items,
			.quota_count = (uint32_t)making->quotas.count,
			.target = index >= 0 ? (uint32_t)index : UINT32_MAX,
		},
		outlook->starts, err);
}

static int count_living(struct sw_client *client, struct sw_cli_outlook *outlook, int64_t *ret_count, struct sw_err *err)
{
	SW_JSON *cluster = NULL;
	int64_t count = 0;
	int r = sw_client_get(client, "/v1/cluster", &cluster, err);
	if (r < 0)
		return r;
	for (unsigned s = 0; s < SW_STATES; s++)
		if (!sw_state_names[s].ended)
			count += sw_cli_number(json_object_get(cluster, "jobs"), sw_state_names[s].brief, 0);
	outlook->now_ns = moment(cluster, "now", 0);
	*ret_count = count;
	return 0;
}

static uint64_t shut_on(const json_t *node)
{
	uint64_t mask = 0;
	size_t g;
	json_t *gpu;
	json_array_foreach(json_object_get(node, "devices"), g, gpu) if (g < 64 && sw_cli_text(gpu, "shut", "")[0] != '\0') mask |=
		UINT64_C(1) << g;
	return mask;
}

/* What runs on a node that takes no more jobs leaves nothing behind that others could have; nor
 * do GPUs that take none. */
static int find_doors(struct sw_client *client, struct making *making, struct sw_err *err)
{
	SW_JSON *answer = NULL;
	size_t i;
	json_t *node;
	making->closed = json_object();
	making->places = json_object();
	int r = making->closed != NULL && making->places != NULL ? sw_client_get(client, "/v1/nodes", &answer, err) : no_memory(err);
	json_array_foreach(json_object_get(answer, "nodes"), i, node)
	{
		const char *name = sw_cli_text(node, "name", "");
		if (json_is_true(json_object_get(node, "closed")))
			json_object_set_new(making->closed, name, json_true());
		if (!sw_cli_past_counts(node, true))
			continue;
		json_object_set_new(making->places, name, json_integer((json_int_t)making->shut.count));
		uint64_t *mask = sw_vec_push(&making->shut);
		if (mask == NULL)
			return no_memory(err);
		*mask = shut_on(node);
		making->outlook->shut += (uint32_t)__builtin_popcountll(*mask);
	}
	return r;
}

static int gather(struct sw_client *client, struct making *making, struct sw_err *err)
{
	making->tenants = json_object();
	making->living = json_array();
	if (making->tenants == NULL || making->living == NULL)
		return no_memory(err);
	int r = sw_cli_each_page(client, "state=PD,CF,R,S,UN&asked=true&", take_page, making, err);
	r = r < 0 ? r : fetch_past(client, making, err);
	r = r < 0 ? r : find_doors(client, making, err);
	r = r < 0 ? r : add_jobs(making, err);
	return r < 0 ? r : add_quotas(client, making, err);
}

static void release(struct making *making)
{
	sw_forecast_forget(&making->history);
	json_decref(making->tenants);
	json_decref(making->living);
	json_decref(making->closed);
	json_decref(making->places);
	sw_vec_free(&making->shut);
	sw_vec_free(&making->jobs);
	sw_vec_free(&making->depends);
	sw_vec_free(&making->quotas);
}

int sw_cli_outlook_make(struct sw_client *client, uint64_t target, struct sw_cli_outlook *ret_outlook, struct sw_err *err)
{
	struct sw_cli_outlook outlook = {0};
	struct making making = {.outlook = &outlook};
	struct sw_err problem = {0};
	int64_t living;
	int r = count_living(client, &outlook, &living, err);
	if (r == 0 && living > SW_FORECAST_JOBS_MAX) {
		snprintf(outlook.none, sizeof outlook.none, "there are more than %u jobs, too many to forecast", SW_FORECAST_JOBS_MAX);
	} else if (r == 0) {
		r = gather(client, &making, err);
		if (r == 0 && predict(client, &making, target, &problem) < 0)
			snprintf(outlook.none, sizeof outlook.none, "%.190s", problem.fact);
	}
	release(&making);
	if (r < 0)
		sw_cli_outlook_release(&outlook);
	else
		*ret_outlook = outlook;
	return r;
}

void sw_cli_outlook_release(struct sw_cli_outlook *outlook)
{
	sw_vec_free(&outlook->ids);
	sw_vec_free(&outlook->riddles);
	free(outlook->starts);
	outlook->starts = NULL;
}

/* ---- in words */

static const struct sw_forecast_start *start_of(const struct sw_cli_outlook *outlook, uint64_t id)
{
	int index = outlook->none[0] == '\0' && outlook->starts != NULL ? index_of(outlook, id) : -1;
	return index >= 0 && outlook->starts[index].in_ns != SW_TIME_NEVER ? &outlook->starts[index] : NULL;
}

int64_t sw_cli_outlook_at(const struct sw_cli_outlook *outlook, uint64_t id)
{
	const struct sw_forecast_start *start = start_of(outlook, id);
	return start != NULL ? outlook->now_ns + start->in_ns : -1;
}

static void say_span(int64_t s, char *text, size_t size)
{
	if (s < 120)
		snprintf(text, size, "%" PRId64 " s", s);
	else if (s < 7200)
		snprintf(text, size, "%" PRId64 " min", (s + 30) / 60);
	else if (s < 2 * 86400)
		snprintf(text, size, "%" PRId64 " h", (s + 1800) / 3600);
	else
		snprintf(text, size, "%" PRId64 " days", (s + 43200) / 86400);
}

/* "17:42", or with the date where it is another day. */
static void say_moment(int64_t at_ns, int64_t now_ns, char *text, size_t size)
{
	time_t at = (time_t)(at_ns / SW_NS_PER_S), now = (time_t)(now_ns / SW_NS_PER_S);
	struct tm then = {0}, today = {0};
	text[0] = '\0';
	if (localtime_r(&at, &then) == NULL || localtime_r(&now, &today) == NULL)
		return;
	bool same_day = then.tm_yday == today.tm_yday && then.tm_year == today.tm_year;
	strftime(text, size, same_day ? "%H:%M" : "%Y-%m-%d %H:%M", &then);
}

static const char *const basis_keys[SW_BASES] = {"expected", "limits", "alike", "all", "again"};

/* "runs as long as ..." */
static const char *const basis_words[SW_BASES] = {
	[SW_BASIS_EXPECTED] = "its owner expects",
	[SW_BASIS_LIMIT] = "its limit allows",
	[SW_BASIS_ALIKE] = "earlier jobs of its name (median)",
	[SW_BASIS_ALL] = "jobs here usually do (median)",
	[SW_BASIS_AGAIN] = "it has until now, again",
};

/* What the estimate rests on, from the jobs that end before. */
static void say_basis(const struct sw_forecast_start *start, char *text, size_t size)
{
	uint32_t jobs = 0, bases = 0, said = 0;
	int used = 0;
	text[0] = '\0';
	for (size_t b = 0; b < SW_BASES; b++) {
		jobs += start->ended[b];
		bases += start->ended[b] > 0;
	}
	if (jobs == 1)
		used = snprintf(text, size, ", if the job that ends before runs as long as ");
	else if (jobs > 1)
		used = snprintf(text, size, ", if each of the %u jobs that end before runs as long as ", jobs);
	for (size_t b = 0; b < SW_BASES && used >= 0 && (size_t)used < size; b++) {
		if (start->ended[b] == 0)
			continue;
		const char *between = said == 0 ? "" : said + 1 == bases ? " or " : ", ";
		used += snprintf(text + used, size - (size_t)used, "%s%s", between, basis_words[b]);
		said++;
	}
}

char *sw_cli_outlook_say(const struct sw_cli_outlook *outlook, uint64_t id, char *text, size_t size)
{
	const struct sw_forecast_start *start = start_of(outlook, id);
	char span[32], at[32], basis[256];
	const char *why = outlook->none;
	for (size_t i = 0; i < outlook->riddles.count; i++)
		if (outlook->riddles.items[i].id == id)
			why = outlook->riddles.items[i].why;
	if (why[0] != '\0') {
		snprintf(text, size, "nobody can tell when it starts: %s", why);
	} else if (start == NULL && outlook->shut > 0) {
		snprintf(text, size,
			 "nobody can tell when it starts: %u GPU%s no jobs now, as 'sharewell nodes' says, or the jobs ahead of it may run "
			 "for ever",
			 outlook->shut, outlook->shut == 1 ? " takes" : "s take");
	} else if (start == NULL) {
		snprintf(text, size, "nobody can tell when it starts: how long jobs ahead of it run is not known; time limits would tell");
	} else if (start->in_ns < SW_NS_PER_S) {
		snprintf(text, size, "expected to start at any moment");
	} else {
		say_span((start->in_ns + SW_NS_PER_S / 2) / SW_NS_PER_S, span, sizeof span);
		say_moment(outlook->now_ns + start->in_ns, outlook->now_ns, at, sizeof at);
		say_basis(start, basis, sizeof basis);
		snprintf(text, size, "expected to start in about %s (%s)%s", span, at, basis);
	}
	return text;
}

int sw_cli_outlook_put(const struct sw_cli_outlook *outlook, uint64_t id, json_t *job)
{
	const struct sw_forecast_start *start = start_of(outlook, id);
	char when[SW_WHEN_SIZE];
	json_t *basis = start != NULL ? json_object() : json_null();
	for (size_t b = 0; start != NULL && b < SW_BASES; b++)
		if (json_object_set_new(basis, basis_keys[b], json_integer(start->ended[b])) != 0)
			basis = NULL;
	json_t *at = start != NULL ? json_string(sw_when_format(outlook->now_ns + start->in_ns, when)) : json_null();
	bool put = json_object_set_new(job, "estimated_start_at", at) == 0;
	return json_object_set_new(job, "basis", basis) == 0 && put ? 0 : SW_ENOMEM;
}
